//! Definitions in folders: who there is, where each is written, and that each is who it says it is.

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::chat::Terminal;
use crate::program::{Program, Ran};

const REVIEWER: &str = "---\nname: reviewer\ndescription: Reviews code: all of it\ntools: Read, Grep, TodoWrite\n\
                        permisionMode: plan\n---\nYou review code.\n";
const WEATHER: &str = "---\nname: weather\ntype: sub\ndescription: 天气查询专家\ncache:\n  ttl: 7200\n  keys: [\"city\"]\n\
                       tools:\n  - http-get\n  - geocode\n---\n响应天气查询。\n";

/// A project and a user with definitions in every place.
fn full() -> Program {
    let program = Program::alone()
        .file(".git/HEAD", "ref: refs/heads/main\n")
        .file("agents/weather-sub.md", WEATHER)
        .file("agents/README.md", "# Not an agent\n")
        .file("agents/notes.md", "# Not an agent either\n")
        .file(".max-team/agents/reviewer.md", REVIEWER)
        .file(".claude/agents/deep/down/reviewer.md", "---\nname: reviewer\ndescription: Shadowed\n---\nx\n")
        .file(".claude/agents/explore.md", "---\nname: explore\ndescription: Our own\nmodel: haiku\n---\nYou look.\n")
        .file(
            ".claude/agents/leo.md",
            "---\nname: leo\ndescription: Our own coder\ntools: Read, Edit\n---\nYou code.\n",
        )
        .file(".claude/agents/max.md", "---\nname: max\ndescription: A namesake\n---\nYou are Max.\n")
        .file(".claude/agents/broken.md", "---\nname: broken\nname: twice\n---\nx\n");
    let user = |name: &str, text: &str| {
        let path = program.project().join("..").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    user(".claude/agents/reviewer.md", "---\nname: reviewer\ndescription: Everywhere\n---\nx\n");
    user("home/agents/poet.md", "---\ndescription: Writes poems\ntools: []\n---\nYou are a poet.\n");
    program
}

#[test]
fn all_agents_are_listed_with_their_files() {
    let ran = full().run(&["agents", "list"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    insta::assert_snapshot!(format!("{}\n{}", ran.out, ran.err));
}

#[test]
fn one_is_shown_with_what_it_shadows() {
    let program = full();
    // Where it keeps its data follows from where the project is.
    let show = |program: &Program, name: &str| {
        let data = program.run(&["files", "path", "--agent", name]).out;
        program.run(&["agents", "show", name]).out.replace(data.trim(), "<DATA>")
    };
    let shown = ["reviewer", "weather", "leo", "poet"].map(|name| show(&program, name));
    insta::assert_snapshot!(shown.join("\n=====\n\n"));
    insta::assert_snapshot!(show(&full().variable("LANG", "zh_CN.UTF-8"), "explore"));
    let json = program.run(&["agents", "show", "weather", "--json"]).json();
    assert_eq!((json["place"].as_str(), json["cache"]["ttl_s"].as_u64()), (Some("expert"), Some(7200)));
    assert_eq!((&json["tools"], &json["left_out"]), (&json!(["geocode", "web_fetch"]), &json!([])));
    assert_eq!(json["prompt"], "响应天气查询。");
    let all = program.run(&["agents", "list", "--json"]).json();
    let reviewer = all.as_array().unwrap().iter().find(|agent| agent["name"] == "reviewer").unwrap();
    assert_eq!(reviewer["file"], ".max-team/agents/reviewer.md:2");
    assert_eq!(reviewer["shadows"].as_array().unwrap().len(), 2, "{reviewer}");
    let ran = program.run(&["agents", "show", "reviwer"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean `reviewer`?"), "{ran:?}");
}

#[test]
fn a_new_one_is_written_once_and_loads() {
    let program = Program::alone();
    let new = |more: &[&str]| program.run(&[&["agents", "new"], more].concat());
    let ran = new(&["poet", "--description", "Writes poems: short ones"]);
    assert!(ran.code == 0 && ran.out.contains(".max-team/agents/poet.md"), "{ran:?}");
    let shown = program.run(&["agents", "show", "poet", "--json"]).json();
    assert_eq!(shown["description"], "Writes poems: short ones");
    assert_eq!((&shown["notes"], &shown["left_out"]), (&json!([]), &json!([])), "{shown}");
    assert_eq!(shown["tools"], json!(["list_dir", "read_file", "search_code"]));
    let before = program.read(".max-team/agents/poet.md");
    let ran = new(&["poet"]);
    assert!(ran.code == 2 && ran.err.contains("stays as it is"), "{ran:?}");
    assert_eq!(program.read(".max-team/agents/poet.md"), before);
    let ran = new(&["The Poet"]);
    assert!(ran.code == 2 && ran.err.contains("`the-poet` would do"), "{ran:?}");
    assert_eq!(new(&["../../poet"]).code, 2);
    assert_eq!(new(&["painter", "--user"]).code, 0);
    assert!(program.home().join("agents/painter.md").exists());
    let chinese = Program::alone().variable("LANG", "zh_CN.UTF-8");
    assert!(chinese.run(&["agents", "new", "诗人"]).out.contains("已写入"));
    assert_eq!(chinese.run(&["agents", "show", "诗人", "--json"]).json()["notes"], json!([]));
}

/// A limit that cannot be read leaves the agent out; anything else is left out by itself. The words say which.
#[test]
fn a_value_that_cannot_be_meant_is_told_with_what_becomes_of_it() {
    let limits = [
        "maxTurns: banana",
        "maxTurns: 0",
        "budget: x",
        "budget: {usdd: 1}",
        "permissionMode: yolo",
        "isolation: moon",
        "disallowedTools: run_shel",
        "constraints: {read_onli: true}",
    ];
    let flavours = ["effort: huge", "cache: 5", "type: boss", "background: maybe"];
    let mut program = Program::alone()
        .file(".claude/agents/keyed.md", "---\nname: keyed\ndescription: d\ncache: {ttl: 2h, key: [a]}\n---\nx\n");
    for (at, line) in limits.iter().chain(&flavours).enumerate() {
        let text = format!("---\nname: odd{at:02}\ndescription: d\n{line}\n---\nx\n");
        program = program.file(&format!(".claude/agents/odd{at:02}.md"), text);
    }
    let listed = program.run(&["agents", "list"]);
    for (at, line) in limits.iter().chain(&flavours).enumerate() {
        let is_limit = at < limits.len();
        let name = format!("odd{at:02}");
        let told: Vec<&str> = listed.err.lines().filter(|told| told.contains(&format!("{name}.md:"))).collect();
        let what = if is_limit { "the agent is left out" } else { "the value is left out" };
        assert!(told.len() == 1 && told[0].ends_with(what), "{line}: {told:?}");
        assert_eq!(told[0].contains("could do more than its author wanted"), is_limit, "{line}: {told:?}");
        assert_eq!(listed.out.contains(&name), !is_limit, "{line}: {listed:?}");
    }
    assert!(listed.err.contains("`cache`: unknown key `key`, did you mean `keys`?"), "{listed:?}");
}

/// Nobody is written where somebody of that name counts first.
#[test]
fn a_name_that_is_taken_is_not_written_again() {
    let program = Program::alone().file(".claude/agents/critic.md", "---\nname: critic\ndescription: d\n---\nx\n");
    for (name, place) in [("critic", ".claude/agents/critic.md:2"), ("max", "the built-in team")] {
        for more in [&[][..], &["--user"]] {
            let ran = program.run(&[&["agents", "new", name], more].concat());
            assert!(ran.code == 2 && ran.err.contains(place), "{ran:?}");
        }
    }
    assert!(!program.project().join(".max-team/agents").exists() && !program.home().join("agents").exists());
    // What comes with the program gives way.
    assert_eq!(program.run(&["agents", "new", "narrator", "--user"]).code, 0);
}

/// A stranger's file that takes a known name is named, and takes no more freedom by it.
#[test]
fn a_project_that_replaces_what_is_built_in_says_so() {
    let server = ModelServer::start(Script::new().when(|_| Some(Reply::text("hello"))));
    let explore = "---\nname: explore\ndescription: Ours\ntools: Read, Write, Bash\n---\nYou look.\n";
    let program = Program::team(&server).file(".claude/agents/explore.md", explore);
    let told = "the project's `explore` replaces the built-in one";
    for words in [&["-p", "hi"][..], &["agents", "list"]] {
        let ran = program.run(words);
        assert_eq!(ran.err.matches(told).count(), 1, "{ran:?}");
    }
    let shown = program.run(&["agents", "show", "explore", "--json"]).json();
    assert_eq!(shown["constraints"]["read_only"], true, "{shown}");
    // The user's own is as it says.
    let own = Program::team(&server).file("../home/agents/explore.md", explore);
    let shown = own.run(&["agents", "show", "explore", "--json"]).json();
    assert_ne!(shown["constraints"]["read_only"], true, "{shown}");
    assert!(!own.run(&["agents", "list"]).err.contains("replaces"));
}

/// What is shown is what there is when it works.
#[test]
fn the_tools_that_are_shown_are_those_it_has() {
    let server = ModelServer::start(Script::new().when(|_| Some(Reply::text("hello"))));
    let free = "---\nname: free\ndescription: Has all\n---\nYou work.\n";
    let reads = "---\nname: reads\ndescription: Reads\ntools: Read, memory_read, skill\n---\nYou read.\n";
    let program = Program::team(&server).file(".claude/agents/free.md", free).file(".claude/agents/reads.md", reads);
    for (name, words) in [
        ("max", &["-p", "hi"][..]),
        ("free", &["agents", "test", "free", "hi"]),
        ("reads", &["agents", "test", "reads", "hi"]),
        ("explore", &["agents", "test", "explore", "hi"]),
    ] {
        let shown = program.run(&["agents", "show", name, "--json"]).json();
        let shown: Vec<&str> = shown["tools"].as_array().unwrap().iter().map(|tool| tool.as_str().unwrap()).collect();
        assert_eq!(program.run(words).code, 0, "{words:?}");
        let requests = server.requests();
        let has = tools(&requests.last().unwrap().body);
        // What is shown is what it may use; its requests describe a part of it, and how to find the others.
        assert!(has.iter().all(|tool| *tool == "tool_search" || shown.contains(tool)), "{name}: {has:?}");
        assert!(has.contains(&"tool_search") || shown.len() <= has.len() + 2, "{name}: {has:?}");
    }
}

fn said(server: &ModelServer, run: impl FnOnce(&Program) -> Ran) -> Value {
    let program = Program::team(server)
        .file("agents/dialog-agent.md", "---\nname: dialog\ntype: main\ntools: [task, http-get]\n---\nYou host.\n")
        .file(
            ".claude/agents/tester.md",
            "---\nname: tester\ndescription: Tests\ntools: Write, Read\n---\nYou test.\n",
        );
    let ran = run(&program);
    assert_eq!(ran.code, 0, "{ran:?}");
    server.requests()[0].body.clone()
}

fn tools(body: &Value) -> Vec<&str> {
    body["tools"].as_array().into_iter().flatten().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn one_is_put_to_the_test_and_only_looks() {
    let server = ModelServer::start(Script::new().when(|request: &Recorded| {
        Some(match request.tool_results() {
            0 => Reply::new().tool("t1", "write_file", json!({ "path": "x.txt", "content": "x" })),
            _ => Reply::text("done"),
        })
    }));
    let program = Program::with(&server).file(
        ".claude/agents/tester.md",
        "---\nname: tester\ndescription: Tests\ntools: Write, Read\npermissionMode: acceptEdits\n---\nYou test.\n",
    );
    let ran = program.run(&["agents", "test", "tester", "write something"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{ran:?}");
    assert!(ran.err.contains("held back"), "{ran:?}");
    assert!(!program.project().join("x.txt").exists());
    let requests = server.requests();
    assert!(requests[0].contains("You test.") && tools(&requests[0].body) == ["read_file", "write_file"]);
    let ran = program.run(&["agents", "test", "testr", "x"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean `tester`?"), "{ran:?}");
}

#[test]
fn a_lead_named_by_a_file_still_has_no_file_tools() {
    let server = ModelServer::start(Script::new().then(Reply::text("hello")));
    let body = said(&server, |program| program.run(&["-p", "hi"]));
    assert!(body["system"].to_string().contains("You host."), "{body}");
    let tools = tools(&body);
    assert_eq!(tools, ["task"], "what its file lists, and no hands");
}

#[test]
fn definitions_are_given_on_the_command_line() {
    let given = r#"{"tester": {"description": "Mine: not theirs", "prompt": "You are given.", "tools": ["Read"]}}"#;
    let server = ModelServer::start(Script::new().then(Reply::text("hello")));
    let body = said(&server, |program| program.run(&["-p", "hi", "--agents", given, "--agent", "tester"]));
    assert!(body["system"].to_string().contains("You are given.") && tools(&body) == ["read_file"], "{body}");
    let program = Program::alone().file("given.json", given).file("one.md", REVIEWER);
    let listed = |file: &str| {
        let ran = program.run(&["agents", "list", "--json", "--agents", file]);
        let all = ran.json();
        let flags = all.as_array().unwrap().iter().filter(|agent| agent["scope"] == "flag");
        flags.map(|agent| agent["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (listed("given.json"), listed("one.md"), listed(given)),
        (vec!["tester".to_owned()], vec!["reviewer".to_owned()], vec!["tester".to_owned()])
    );
    let ran = program.run(&["agents", "list", "--agents", "{\"a\": "]);
    assert!(ran.code == 3 && ran.err.contains("--agents"), "{ran:?}");
}

#[test]
fn definitions_are_found_up_to_the_repositorys_root_and_no_further() {
    let program = Program::alone()
        .file("repo/.git/HEAD", "x")
        .file("repo/.claude/agents/root.md", "---\nname: root\ndescription: r\n---\nx\n")
        .file("repo/.claude/agents/near.md", "---\nname: near\ndescription: far\n---\nx\n")
        .file("repo/a/b/.claude/agents/near.md", "---\nname: near\ndescription: near\n---\nx\n")
        .file(".claude/agents/above.md", "---\nname: above\ndescription: a\n---\nx\n");
    let mut command = program.command(&["agents", "list", "--json"]);
    command.current_dir(program.project().join("repo/a/b"));
    let all = crate::program::finish(command.spawn().unwrap()).json();
    let found = |name: &str| all.as_array().unwrap().iter().find(|agent| agent["name"] == name).cloned();
    assert_eq!(found("near").unwrap()["description"], "near");
    assert!(found("root").is_some() && found("above").is_none(), "{all}");
}

const POET: &str =
    "---\nname: poet\ndescription: Writes poems\ntools: Read, Write\nmaxTurns: 3\n---\nYou are a poet.\n";

#[test]
fn an_expert_is_called_under_its_own_words_and_tools() {
    let script = Script::new().when(|request: &Recorded| {
        let is_poet = request.body["system"].to_string().contains("You are a poet.");
        Some(match (is_poet, request.tool_results()) {
            (true, _) => Reply::text("Roses are red."),
            (false, 0) => {
                Reply::new().tool("t1", "task", json!({ "agent": "poet", "arguments": { "about": "roses" } }))
            }
            (false, _) => Reply::text("He says: roses are red."),
        })
    });
    let server = ModelServer::start(script);
    let program = Program::team(&server).file("agents/poet-sub.md", POET);
    let ran = program.run(&["-p", "a poem"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "He says: roses are red.\n"), "{ran:?}");
    let requests = server.requests();
    let poet = requests.iter().find(|request| request.contains("You are a poet.")).unwrap();
    assert!(poet.contains("roses") && tools(&poet.body) == ["read_file", "write_file"], "{:?}", tools(&poet.body));
}

#[test]
fn an_expert_that_is_written_during_a_chat_can_be_called() {
    let server = ModelServer::start(Script::new().then(Reply::text("First.")).then(Reply::text("Second.")));
    let program = Program::team(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["one", "Enter"]);
    terminal.wait("First.");
    let program = program.file(".max-team/agents/poet.md", POET);
    terminal.keys(&["two", "Enter"]);
    terminal.wait("Second.");
    let told: Vec<bool> = server.requests().iter().map(|request| request.contains("Writes poems")).collect();
    assert_eq!(told, [false, true], "{:?}", program.project());
}
