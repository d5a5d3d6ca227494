//! Folders of one's own, through the whole program: kept across sessions by one expert and by nobody else, handed from
//! one member to the next, looked at and cleared from the command line.

use std::os::unix::fs::PermissionsExt as _;

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::plans::{news, plan, task, voice, write};
use crate::program::Program;

/// An expert that works on files.
fn expert(name: &str, extra: &str) -> String {
    format!(
        "---\nname: {name}\ntype: sub\ndescription: Keeps notes\ntools: [read_file, write_file]\n{extra}---\nYou are {name}, \
         who keeps notes.\n"
    )
}

/// What the last tool returned.
fn last_result(request: &Recorded) -> String {
    let content = request.body["messages"].as_array().unwrap().last().unwrap()["content"].as_array().unwrap();
    let result = content.iter().rfind(|part| part["type"] == "tool_result").unwrap();
    let texts = result["content"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().concat()
}

/// A lead that has an expert make the call that the user names (`NAME TOOL PATH`), and says what came of it.
fn server() -> ModelServer {
    ModelServer::start(Script::new().when(|request: &Recorded| {
        let done = request.tool_results();
        if request.contains("who keeps notes") && !request.contains("You are Max") {
            let asked: Value = serde_json::from_str(&request.user_texts()[0]).unwrap();
            let (tool, path) = (asked["args"]["tool"].as_str().unwrap(), &asked["args"]["path"]);
            let input = match tool {
                "write_file" => json!({ "path": path, "content": "the tide is high\n" }),
                _ => json!({ "path": path }),
            };
            return Some(match done {
                0 => Reply::new().tool("e1", tool, input),
                _ => Reply::text(format!("---TEXT---\n{}", last_result(request))),
            });
        }
        let said = request.user_texts().last().unwrap().clone();
        let words: Vec<&str> = said.split_whitespace().collect();
        Some(match (done, words.as_slice()) {
            (0, [name, tool, path]) => {
                Reply::new().tool("t1", "task", json!({ "agent": name, "arguments": { "tool": tool, "path": path } }))
            }
            _ => Reply::text(last_result(request)),
        })
    }))
}

#[test]
fn files_of_an_expert_are_found_by_that_expert_alone() {
    let server = server();
    let program = Program::team(&server)
        .file(".max-team/agents/tides.md", expert("tides", ""))
        .file(".max-team/agents/other.md", expert("other", ""))
        .file(".max-team/agents/looker.md", expert("looker", "constraints: {read_only: true}\n"));
    let ask = |words: &str, flags: &[&str]| {
        let ran = program.run(&[&["-p", words], flags].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out
    };
    assert!(program.run(&["files", "list"]).out.contains("no files are kept"));
    let told = ask("tides write_file @data/x.md", &[]);
    assert!(told.contains("created `@data/x.md`"), "nobody was asked, and it was written: {told}");
    // Another process, another session.
    assert!(ask("tides read_file @data/x.md", &[]).contains("the tide is high"));
    let told = ask("other read_file @data/x.md", &[]);
    assert!(told.contains("nothing is kept in `@data` yet"), "{told}");
    let path = program.run(&["files", "path", "--agent", "tides"]).out.trim().to_owned();
    let inside = path.strip_prefix(program.home().to_str().unwrap()).unwrap();
    for path in [format!("{path}/x.md"), format!("../home{inside}/x.md"), format!("@data/..{inside}/x.md")] {
        let told = ask(&format!("other read_file {path}"), &[]);
        assert!(!told.contains("the tide is high"), "{path}: {told}");
    }
    // Whoever only looks, by mode or by definition, puts nothing there.
    assert!(ask("tides write_file @data/y.md", &["--permission-mode", "plan"]).contains("permission mode `plan`"));
    assert!(ask("looker write_file @data/y.md", &[]).contains("`read_only`"));
    let told = ask("tides write_file @data/y.md", &["--disallowed-tools", "Edit(@data/**)"]);
    assert!(told.contains("deny: Edit(@data/**)"), "{told}");

    let listed = program.run(&["files", "list", "--json"]).json();
    let [kept] = listed.as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((&kept["folder"], &kept["whose"], &kept["path"]), (&json!("@data"), &json!("tides"), &json!(path)));
    assert_eq!((&kept["bytes"], &kept["files"][0]["path"]), (&json!(17), &json!("x.md")));
    let mode = |path: &str| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&format!("{path}/x.md"))), (0o700, 0o600));
    assert!(program.run(&["agents", "show", "tides"]).out.contains(&path));
    let show = |words: &[&str]| program.run(&[&["files", "show"], words].concat());
    assert_eq!(show(&["@data/x.md", "--agent", "tides"]).out, "the tide is high\n");
    assert_eq!(show(&["x.md", "--agent", "tides", "--json"]).json()["text"], "the tide is high\n");
    assert_eq!(show(&["@data/x.md"]).code, 2, "whose?");
    assert_eq!(show(&["../x.md", "--agent", "tides"]).code, 1);
    assert_eq!(program.run(&["files", "clear"]).code, 2, "nothing is cleared by accident");
    assert_eq!(program.run(&["files", "clear", "--agent", "tides", "--session", "x"]).code, 2);
    assert_eq!(program.run(&["files", "clear", "--agent", "tides"]).out, "1 file removed\n");
    assert!(ask("tides read_file @data/x.md", &[]).contains("does not exist"));
    assert!(server.problems().is_empty(), "{:?}", server.problems());
}

/// Whoever keeps everything of ours within the project has put it where agents look.
#[test]
fn a_home_within_the_project_is_not_seen_by_its_real_name() {
    let server = server();
    let program = Program::team(&server)
        .file(".max-team/agents/tides.md", expert("tides", ""))
        .file(".max-team/agents/other.md", expert("other", ""));
    let home = program.project().join("home");
    let program = program.variable("MAX_TEAM_HOME", home.to_str().unwrap());
    let ask = |words: &str| program.run(&["-p", words, "--permission-mode", "bypassPermissions"]).out;
    assert!(ask("tides write_file @data/x.md").contains("created `@data/x.md`"));
    let path = program.run(&["files", "path", "--agent", "tides"]).out.trim().to_owned() + "/x.md";
    let kept = std::fs::read_to_string(&path).unwrap();
    for path in [path.as_str(), path.strip_prefix(program.project().to_str().unwrap()).unwrap().trim_matches('/')] {
        for (tool, name) in [("read_file", "other"), ("write_file", "other"), ("read_file", "tides")] {
            let told = ask(&format!("{name} {tool} {path}"));
            assert!(told.contains("is not for you to see"), "{name} {tool} {path}: {told}");
        }
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), kept);
    assert!(ask("tides read_file @data/x.md").contains("the tide is high"));
}

#[test]
fn members_of_a_session_hand_files_to_each_other() {
    let tasks = json!([
        { "id": "draft", "title": "draft", "agent": "leo", "description": "Draft it.", "outputs": ["@files/a.md"] },
        { "id": "check", "title": "check", "agent": "ada", "description": "Check it.", "depends_on": ["draft"] },
    ]);
    let read = || Reply::new().tool("r", "read_file", json!({ "path": "@files/a.md" }));
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("draft"), vec![write("@files/a.md", "a draft for ada\n"), Reply::text("Drafted.")]))
            .when(voice(task("check"), vec![read(), Reply::text("Checked.")]))
            .when(voice(news("is over:"), vec![Reply::text("x"), Reply::text("Both are done.")]))
            .on(news("again"), Reply::text("Nothing to do."))
            .on(news("please"), plan(tasks)),
    );
    let program = Program::team(&server);
    let ran = program.run(&["-p", "a draft, please", "--approve", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Both are done.\n"), "{ran:?}");
    let asked = server.requests();
    let checked = asked.iter().find(|request| task("check")(request) && request.tool_results() == 1).unwrap();
    assert!(last_result(checked).contains("a draft for ada"), "{}", checked.body);
    assert!(checked.body["system"].to_string().contains("# Folders outside the project"), "{}", checked.body["system"]);
    assert!(
        ran.err.contains("draft: done, verified only that its files exist"),
        "the declared file was found: {ran:?}"
    );
    assert!(std::fs::read_dir(program.project()).unwrap().next().is_none(), "nothing of it is in the project");

    let shown = program.run(&["files", "show", "a.md"]);
    assert_eq!(shown.out, "a draft for ada\n", "{shown:?}");
    let listed = program.run(&["files", "list"]).out;
    assert!(listed.starts_with("FOLDER") && listed.contains("@files") && listed.contains("ses_"), "{listed}");
    let first = program.run(&["files", "path"]).out.trim().to_owned();
    let session = first.rsplit('/').next().unwrap().to_owned();
    let file = program.run(&["files", "list", "--session", &session]).out;
    assert!(file.contains("@files/a.md"), "{file}");
    // Another session has a folder of its own.
    assert_eq!(program.run(&["-p", "again"]).out, "Nothing to do.\n");
    let second = program.run(&["files", "path"]).out;
    assert_ne!(first, second.trim());
    assert_eq!(program.run(&["files", "show", "a.md"]).code, 1);
    assert_eq!(program.run(&["files", "clear", "--session", &session]).out, "1 file removed\n");
    assert!(server.problems().is_empty(), "{:?}", server.problems());
}

#[test]
fn the_words_are_there_in_chinese() {
    let program = Program::alone().variable("LANG", "zh_CN.UTF-8");
    assert!(program.run(&["files", "list"]).out.contains("没有保存任何文件"));
    assert!(program.run(&["files", "clear"]).err.contains("请指明要清除的目录"));
}
