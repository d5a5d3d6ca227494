//! Refusals of protected files, as a run without a chat reports them, and what the start says about hooks and the home folder.

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::json;

use crate::chat::Terminal;
use crate::plans::{news, plan, task, voice};
use crate::program::Program;

/// Files that the team obeys itself.
const OWN: [&str; 5] =
    [".claude/settings.json", ".git/hooks/pre-commit", ".mcp.json", ".max-team/settings.json", ".git\u{200b}/hooks/x"];

fn write(path: &str) -> Reply {
    Reply::new().tool("t1", "write_file", json!({ "path": path, "content": "x" }))
}

#[test]
fn a_tools_own_refusal_is_a_denial() {
    for path in OWN {
        let server = ModelServer::start([write(path), Reply::text("I could not.")]);
        let program = Program::with(&server);
        let ran = program.run(&["-p", "write", "--permission-mode", "bypassPermissions", "--output-format", "json"]);
        let result = ran.json();
        assert_eq!(ran.code, 0, "{path}: {ran:?}");
        let denial = &result["permission_denials"][0];
        let reason = denial["reason"].as_str().unwrap();
        assert!(denial["target"] == path && reason.starts_with("only the user changes"), "{denial}");
        assert!(ran.err.contains("do it yourself") && !ran.err.contains("--allowed-tools"), "{ran:?}");
        let again = program.run(&["-c", "-p", "", "--output-format", "json"]);
        assert_eq!((again.code, &again.json()["permission_denials"]), (0, &result["permission_denials"]), "{again:?}");
    }
}

#[test]
fn so_is_one_of_a_members() {
    let tasks = json!([{ "id": "a", "title": "a", "agent": "leo", "description": "Look.", "retry": 0, "owns": ["*"] }]);
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), vec![write(".claude/settings.json"), Reply::text("I could not.")]))
            .on(news("is over:"), Reply::text("That is how it ended."))
            .on(news("please"), plan(tasks))
            .on(|_| true, Reply::text("Noted.")),
    );
    let program = Program::team(&server);
    let words = ["-p", "look, please", "--approve", "never", "--output-format", "json"];
    let ran = program.run(&words);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.json()["permission_denials"][0]["target"], ".claude/settings.json", "{ran:?}");
    assert!(ran.err.contains("refused `write_file .claude/settings.json` of leo"), "{ran:?}");
}

#[test]
fn a_protected_file_needs_a_person_and_the_advice_says_so() {
    for (lang, words) in [("en", "go on in a chat (`max-team -c`)"), ("zh", "请在聊天中继续")] {
        let copy = Reply::new().tool("t1", "run_shell", json!({ "command": "cp a.txt AGENTS.md" }));
        let server = ModelServer::start([copy, Reply::text("I could not.")]);
        let program = Program::with(&server).file("a.txt", "x");
        let ran = program.run(&["-p", "write", "--permission-mode", "acceptEdits", "--lang", lang]);
        assert!(ran.err.contains(words) && !ran.err.contains("--allowed-tools"), "{ran:?}");
        let told = server.requests()[1].body["messages"].to_string();
        assert!(told.contains("only the user can allow it") && !told.contains("acceptEdits"), "{told}");
    }
}

/// A rule of `ask` beats a rule of `allow`, and the mode `plan` beats both: advice to write a rule would not help.
#[test]
fn advice_names_only_what_helps() {
    let run = |lang: &str, options: &[&str]| {
        let make = Reply::new().tool("t1", "run_shell", json!({ "command": "make all" }));
        let server = ModelServer::start([make, Reply::text("I could not.")]);
        let settings = r#"{"permissions": {"ask": ["Bash(make:*)"]}}"#;
        let program = Program::with(&server).file(".max-team/settings.json", settings);
        let ran = program.run(&[&["-p", "build", "--lang", lang], options].concat());
        let told = server.requests()[1].body["messages"].to_string();
        assert!(!ran.err.contains("--allowed-tools") && !told.contains("--allowed-tools"), "{ran:?} {told}");
        (ran.err, told)
    };
    for (lang, words) in [("en", "go on in a chat (`max-team -c`)"), ("zh", "请在聊天中继续")] {
        let (err, told) = run(lang, &["--permission-mode", "acceptEdits"]);
        assert!(err.contains(words) && told.contains("only the user can allow it"), "{err} {told}");
    }
    for (lang, words) in
        [("en", "; another --permission-mode can allow it"), ("zh", "；可用其他 --permission-mode 允许")]
    {
        let (err, _) = run(lang, &["--permission-mode", "plan"]);
        assert!(err.contains(words), "{err}");
    }
}

#[test]
fn the_start_says_how_to_go_on_without_a_hook() {
    let hooks = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]}}"#;
    for (lang, words) in [("en", "needs your approval (runs without a chat refuse it)"), ("zh", "需要您批准")] {
        let server = ModelServer::start([Reply::text("Hi.")]);
        let program = Program::with(&server).file(".claude/settings.json", hooks);
        let ran = program.run(&["-p", "hi", "--lang", lang]);
        assert!(ran.err.contains("max-team permissions trust") && ran.err.contains(words), "{ran:?}");
    }
}

#[test]
fn a_start_in_the_home_folder_warns() {
    for (lang, words) in [("en", "The project folder is your home folder"), ("zh", "项目目录就是您的家目录")]
    {
        let server = ModelServer::start([Reply::text("Hi.")]);
        let program = Program::with(&server);
        let home = program.project();
        let ran = program.variable("HOME", home.to_str().unwrap()).run(&["-p", "hi", "--lang", lang]);
        assert_eq!(ran.err.matches(words).count(), 1, "{ran:?}");
    }
}

#[test]
fn a_plan_that_changes_protected_files_waits_and_the_inbox_shows_why() {
    let tasks = json!([{ "id": "a", "title": "a", "agent": "leo", "description": "Look.", "owns": [".github/workflows/ci.yml"],
        "verify": ["cargo test"] }]);
    let server = ModelServer::start(Script::new().on(news("please"), plan(tasks)).on(|_| true, Reply::text("Noted.")));
    let program = Program::team(&server);
    let ran = program.run(&["-p", "look, please", "--approve", "never"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.out.contains("! task `a` changes `.github/workflows/ci.yml`"), "{ran:?}");
    let list = program.run(&["inbox"]).out;
    let folder = program.project().canonicalize().unwrap();
    for words in [
        "! task `a` changes `.github/workflows/ci.yml`, which is protected: the CI service runs it by itself",
        "owns: .github/workflows/ci.yml",
        "must pass: cargo test",
        &format!("project: {}", folder.display()),
    ] {
        assert!(list.contains(words), "{words}: {list}");
    }
    let row = &program.run(&["inbox", "--json"]).json()[0];
    assert_eq!((&row["tasks"][0]["verify"][0], &row["cwd"]), (&json!("cargo test"), &json!(folder)), "{row}");
    assert_eq!(row["risks"].as_array().unwrap().len(), 1, "{row}");
}

#[test]
fn an_inbox_entry_names_the_agent_its_task_the_project_and_the_rule() {
    let file = "goal: Greet\ntasks:\n  - {id: a, title: Greet the world, agent: leo, do: Write it., owns: [a.txt]}\n";
    let server = ModelServer::start(
        Script::new()
            .when(voice(task("Greet the world"), vec![write("b.txt"), Reply::text("Written.")]))
            .on(|_| true, Reply::text("Noted.")),
    );
    let program = Program::team(&server).file("plan.yaml", file);
    let ran = program.run(&["run", "plan.yaml", "--yes"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    let folder = program.project().canonicalize().unwrap();
    let row = program.run(&["inbox", "--json"]).json()[0].clone();
    let known = ["who", "task", "purpose", "cwd"].map(|key| row[key].clone());
    assert_eq!(known, [json!("leo"), json!("a"), json!("Greet the world"), json!(folder)], "{row}");
    assert_eq!(row["why"], "outside the paths this task owns", "{row}");
    let id = row["short"].as_str().unwrap();
    for (lang, words) in [
        ("en", ["leo (task a)", "project: ", "task: Greet the world", "why: outside the paths this task owns"]),
        ("zh", ["leo（任务 a）", "项目: ", "任务: Greet the world", "原因: 在此任务负责的文件之外"]),
    ] {
        for command in [&["--lang", lang, "inbox"][..], &["--lang", lang, "inbox", id]] {
            let shown = program.run(command).out;
            assert!(words.iter().all(|words| shown.contains(words)), "{shown}");
            assert!(shown.contains(folder.to_str().unwrap()), "{shown}");
        }
    }
}

/// The lead has no assignment: the user's last message says what it works on.
#[test]
fn a_question_of_the_lead_shows_the_message_it_works_on() {
    let ask = Reply::new().tool("q", "ask_user", json!({ "question": "Which colour?", "options": ["red", "blue"] }));
    let server = ModelServer::start([ask]);
    let program = Program::team(&server);
    assert_eq!(program.run(&["-p", "paint the shed"]).code, 5);
    let shown = program.run(&["inbox"]).out;
    assert!(shown.contains("task: paint the shed") && !shown.contains("why:"), "{shown}");
}

/// A script that makes a protected file.
const PLANTS: &str = "echo evil > CLAUDE.md\n";

fn build() -> Reply {
    Reply::new().tool("t1", "run_shell", json!({ "command": "sh build.sh" }))
}

#[test]
fn a_file_that_a_command_made_without_approval_is_told_to_the_user_and_again_later() {
    let free = ["--allowed-tools", "Bash(sh build.sh)"];
    for (lang, words) in [("en", "were moved away: `"), ("zh", "受保护文件已被移走：`")] {
        let server = ModelServer::start([build(), Reply::text("Built."), Reply::text("Again."), Reply::text("Still.")]);
        let program = Program::with(&server).file("build.sh", PLANTS);
        let run = |line: &[&str]| program.run(&[line, free.as_slice(), &["--lang", lang]].concat());
        let ran = run(&["-p", "build"]);
        let is_told = |err: &str| err.contains(words) && err.contains("CLAUDE.md.untrusted-1`");
        assert!(ran.code == 0 && is_told(&ran.err), "{ran:?}");
        let again = run(&["-c", "-p", "go on"]);
        assert!(again.code == 0 && is_told(&again.err), "it is still there: {again:?}");
        std::fs::remove_file(program.project().join("CLAUDE.md.untrusted-1")).unwrap();
        let gone = run(&["-c", "-p", "go on"]);
        assert!(gone.code == 0 && !is_told(&gone.err), "{gone:?}");
    }
}

#[test]
fn programs_are_told_of_files_that_were_moved_away() {
    for format in ["json", "stream-json"] {
        let server = ModelServer::start([build(), Reply::text("Built.")]);
        let program = Program::with(&server).file("build.sh", PLANTS);
        let ran = program.run(&["-p", "build", "--allowed-tools", "Bash(sh build.sh)", "--output-format", format]);
        let lines = ran.lines();
        let moved = &lines.last().unwrap()["moved_files"][0];
        assert!(moved["path"].as_str().unwrap().ends_with("/CLAUDE.md"), "{ran:?}");
        assert!(moved["to"].as_str().unwrap().ends_with("/CLAUDE.md.untrusted-1"), "{ran:?}");
        let told = lines.iter().find(|line| line["subtype"] == "files_moved");
        assert_eq!(told.map(|line| &line["data"]["files"][0]), (format == "stream-json").then_some(moved), "{ran:?}");
    }
}

#[test]
fn the_chat_tells_of_files_that_were_moved_away() {
    let server = ModelServer::start([build(), Reply::text("Built.")]);
    let program = Program::with(&server).file("build.sh", PLANTS);
    let arguments = ["--allowed-tools", "Bash(sh build.sh)"];
    let mut terminal = Terminal::open(&program, &arguments);
    terminal.wait("or give a task");
    terminal.keys(&["build", "Enter"]);
    terminal.wait("Built.");
    let screen = terminal.screen();
    assert!(screen.contains("moved away"), "{screen}");
}
