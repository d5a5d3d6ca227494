//! A resumed session keeps the constraints with which it was opened, whichever flags and files gave them to it.

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::json;

use crate::program::Program;

const AGENTS: &str = "agents:\n  - name: hand\n    role: coder\n    system_prompt: You work.\n    \
                      tools: [read_file, write_file, run_shell]\n    constraints: {blocked_patterns: ['secret*'], \
                      write_patterns: ['docs/**'], allowed_commands: [ls]}\n";

/// A model that answers once, and in the next run makes these calls one after the other.
pub(crate) fn model(calls: &[(&str, serde_json::Value)]) -> ModelServer {
    let mut script = Script::new().then(Reply::text("Hello."));
    for (tool, input) in calls {
        script = script.then(Reply::new().tool("t1", *tool, input.clone()));
    }
    ModelServer::start(script.then(Reply::text("Done.")))
}

pub(crate) fn results(request: &Recorded) -> Vec<String> {
    let messages = request.body["messages"].as_array().unwrap();
    let parts = messages.iter().flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    parts.filter(|part| part["type"] == "tool_result").map(|part| part["content"].to_string()).collect()
}

pub(crate) fn tools(request: &Recorded) -> Vec<String> {
    let tools = request.body["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The results of the calls in a run that resumes what `first` began.
fn resumed(program: &Program, server: &ModelServer, first: &[&str], second: &[&str]) -> Vec<String> {
    let ran = program.run(first);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = program.run(second);
    assert_eq!(ran.code, 0, "{ran:?}");
    results(server.requests().last().unwrap())
}

#[test]
fn an_agents_constraints_hold_after_a_resume() {
    for way in ["-c", "-r"] {
        let server = model(&[
            ("read_file", json!({ "path": "secret.txt" })),
            ("write_file", json!({ "path": "main.rs", "content": "x" })),
            ("run_shell", json!({ "command": "touch made" })),
            ("write_file", json!({ "path": "docs/a.md", "content": "x" })),
        ]);
        let program = Program::team(&server).file("agents.yaml", AGENTS).file("secret.txt", "12345");
        let first = ["-p", "hi", "--agents", "agents.yaml", "--agent", "hand"];
        let ran = program.run(&first);
        assert_eq!(ran.code, 0, "{ran:?}");
        let sessions = program.run(&["sessions", "list", "--json"]).json();
        let id = sessions[0]["session"].as_str().unwrap().to_owned();
        let way: &[&str] = if way == "-c" { &["-c"] } else { &["-r", &id] };
        let ran = program.run(&[way, &["-p", "go", "--permission-mode", "bypassPermissions"]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let told = results(server.requests().last().unwrap());
        assert!(told[0].contains("`blocked_patterns`") && !told[0].contains("12345"), "{told:?}");
        assert!(told[1].contains("`write_patterns`"), "{told:?}");
        assert!(told[2].contains("`write_patterns`"), "{told:?}");
        assert_eq!(program.read("docs/a.md"), "x", "{told:?}");
        assert!(!program.project().join("main.rs").exists() && !program.project().join("made").exists());
        assert_eq!(tools(server.requests().last().unwrap()), ["read_file", "run_shell", "write_file"]);
    }
}

#[test]
fn a_definitions_mode_holds_after_a_resume() {
    let server = model(&[("write_file", json!({ "path": "a.txt", "content": "x" }))]);
    let program = Program::team(&server).file(
        ".max-team/agents/looker.md",
        "---\nname: looker\npermissionMode: plan\ntools: [read_file, write_file]\n---\nLook.\n",
    );
    let told = resumed(
        &program,
        &server,
        &["-p", "hi", "--agent", "looker"],
        &["-c", "-p", "go", "--permission-mode", "acceptEdits"],
    );
    assert!(told[0].contains("plan") && !program.project().join("a.txt").exists(), "{told:?}");
}

#[test]
fn flags_of_the_first_run_hold_after_a_resume() {
    // A rule that denies a tool.
    let server = model(&[("run_shell", json!({ "command": "touch made" }))]);
    let program = Program::team(&server);
    let told = resumed(
        &program,
        &server,
        &["-p", "hi", "--solo", "--disallowed-tools", "Bash(touch:*)"],
        &["-c", "-p", "go", "--permission-mode", "bypassPermissions"],
    );
    assert!(told[0].contains("Bash(touch:*)") && !program.project().join("made").exists(), "{told:?}");
    // A mode, until the user names another one.
    let write = |path: &str| Reply::new().tool("t1", "write_file", json!({ "path": path, "content": "x" }));
    let replies = [Reply::text("Hello."), write("a.txt"), Reply::text("No."), write("b.txt"), Reply::text("Done.")];
    let server = ModelServer::start(replies);
    let program = Program::team(&server);
    let first = ["-p", "hi", "--solo", "--permission-mode", "plan"];
    let told = resumed(&program, &server, &first, &["-c", "-p", "go"]);
    assert!(told[0].contains("plan") && !program.project().join("a.txt").exists(), "{told:?}");
    let ran = program.run(&["-c", "-p", "go on", "--permission-mode", "acceptEdits"]);
    assert_eq!((ran.code, program.read("b.txt").as_str()), (0, "x"), "{ran:?}");
}

#[test]
fn a_lead_gets_no_tools_that_it_was_opened_without() {
    for first in [&["-p", "hi", "--coordinator"][..], &["-p", "hi", "--agents", "few.yaml"]] {
        let server = ModelServer::start([Reply::text("Hello."), Reply::text("Again.")]);
        let few = "agents:\n- {name: max, role: team_lead, system_prompt: You lead., tools: [ask_user]}\n";
        let program = Program::team(&server).file("few.yaml", few);
        for words in [first, &["-c", "-p", "go on"]] {
            let ran = program.run(words);
            assert_eq!(ran.code, 0, "{ran:?}");
        }
        let requests = server.requests();
        assert_eq!(tools(&requests[1]), tools(&requests[0]), "{first:?}");
    }
}

#[test]
fn agents_that_are_called_after_a_resume_are_bound_too() {
    let call = json!({ "description": "make", "prompt": "Make it.", "subagent_type": "general" });
    let script = Script::new()
        .on(
            |request| request.contains("You carry out the task that you are given") && request.tool_results() == 0,
            Reply::new().tool("t1", "run_shell", json!({ "command": "touch made" })),
        )
        .on(|request| request.contains("You carry out the task that you are given"), Reply::text("Made."))
        .then(Reply::text("Hello."))
        .then(Reply::new().tool("a", "agent", call))
        .then(Reply::text("Done."));
    let server = ModelServer::start(script);
    let program = Program::team(&server);
    let first = ["-p", "hi", "--disallowed-tools", "Bash(touch:*)"];
    resumed(&program, &server, &first, &["-c", "-p", "go", "--permission-mode", "bypassPermissions"]);
    assert!(!program.project().join("made").exists());
    let is_refused = |request: &Recorded| results(request).iter().any(|result| result.contains("Bash(touch:*)"));
    assert!(server.requests().iter().any(is_refused), "{:?}", server.requests().len());
}

#[test]
fn a_resumed_session_has_the_team_that_it_was_opened_with() {
    let team = "agents:\n- {name: max, role: team_lead, system_prompt: You lead.}\n- {name: leo, role: coder, \
                system_prompt: You are Strict Leo., tools: [read_file], constraints: {blocked_patterns: ['secret*']}}\n";
    let call = json!({ "description": "look", "prompt": "Look.", "subagent_type": "leo" });
    let script = Script::new()
        .on(
            |request| request.contains("You are Strict Leo") && request.tool_results() == 0,
            Reply::new().tool("t1", "read_file", json!({ "path": "secret.txt" })),
        )
        .on(|request| request.contains("You are Strict Leo"), Reply::text("Seen."))
        .on(|request| request.contains("You are Leo"), Reply::text("Another Leo."))
        .then(Reply::text("Hello."))
        .then(Reply::new().tool("a", "agent", call))
        .then(Reply::text("Done."));
    let server = ModelServer::start(script);
    let program = Program::team(&server).file("team.yaml", team).file("secret.txt", "12345");
    let told = resumed(&program, &server, &["-p", "hi", "--agents", "team.yaml"], &["-c", "-p", "go"]);
    assert!(told[0].contains("Seen."), "{told:?}");
    assert!(!server.requests().iter().any(|request| request.contains("12345")));
    // A team's file that is gone leaves the session as the journal has it.
    std::fs::remove_file(program.project().join("team.yaml")).unwrap();
    assert_ne!(program.run(&["-c", "-p", ""]).code, 3);
}
