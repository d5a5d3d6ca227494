//! Calls through the whole program: two explorers side by side in a real repository, what the lines say of them, and the sandbox
//! that only let them look.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use max_team_testkit::{Gate, ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use crate::program::Program;

fn git(program: &Program, words: &[&str]) {
    let own = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"];
    let ran = Command::new("git").args(own).args(words).current_dir(program.project()).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
}

/// A project under version control with two things to find.
fn repository(server: &ModelServer) -> Program {
    let program = Program::team(server).file("src/a.txt", "alpha\n").file("src/b.txt", "beta\n");
    git(&program, &["init", "-q"]);
    git(&program, &["add", "."]);
    git(&program, &["commit", "-qm", "the first one"]);
    program
}

fn explore(id: &str, prompt: &str) -> (String, Value) {
    (id.to_owned(), json!({ "description": format!("find {prompt}"), "prompt": prompt, "type": "explore" }))
}

/// Whether a request is of a sub-agent that was told this.
fn is_told(request: &Recorded, prompt: &str) -> bool {
    request.user_texts().first().is_some_and(|text| text == prompt)
}

/// A lead that calls two explorers in one answer; each runs what it is given and answers.
fn two_explorers(gate: &Gate, commands: [&'static str; 2]) -> ModelServer {
    let waits = gate.clone();
    let mut script = Script::new();
    for (prompt, command) in ["alpha", "beta"].into_iter().zip(commands) {
        let waits = waits.clone();
        script = script.when(move |request: &Recorded| {
            let reply = match (is_told(request, prompt), request.tool_results()) {
                (false, _) => return None,
                (true, 0) => Reply::new().tool("e1", "run_shell", json!({ "command": command })).gate_before(&waits),
                (true, _) => Reply::text(format!("It is {prompt}.")).usage(100, 10, 0, 0),
            };
            Some(reply)
        });
    }
    let (alpha, beta) = (explore("t1", "alpha"), explore("t2", "beta"));
    let both = Reply::text("Looking.").tool(alpha.0, "agent", alpha.1).tool(beta.0, "agent", beta.1);
    ModelServer::start(script.then(both).then(Reply::text("Both are there.")))
}

#[test]
fn two_explorers_look_side_by_side() {
    let gate = Gate::new();
    let server = two_explorers(&gate, ["git log --oneline", "grep -rn beta src"]);
    let program = repository(&server);
    let child = program.start(&["-p", "find both", "--output-format", "stream-json"]);
    // Both have asked their model before either was answered.
    gate.wait_reached_by(2);
    gate.open();
    let ran = crate::program::finish(child);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(server.problems().is_empty(), "{:?}", server.problems());
    let lines = ran.lines();
    assert_eq!(lines.last().unwrap()["result"], "Both are there.");
    let init = &lines[0]["agents"];
    assert!(
        ["explore", "plan", "general"].iter().all(|name| init.as_array().unwrap().contains(&json!(name))),
        "{init}"
    );
    // What they say and do is known by the call that it is for, and never taken for the lead's.
    for (id, found) in [("t1", "the first one"), ("t2", "src/b.txt:1:beta")] {
        let of: Vec<&Value> = lines.iter().filter(|line| line["parent_tool_use_id"] == id).collect();
        let kinds: Vec<&str> = of.iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["assistant", "user", "assistant"], "{id}");
        assert!(of[1].to_string().contains(found), "{}", of[1]);
    }
    let told = server.requests().into_iter().find(|request| request.tool_results() == 2).unwrap();
    assert!(told.contains("It is alpha.") && told.contains("It is beta."), "{}", told.body);
    assert!(told.contains("`send_message` to `explore-"), "{}", told.body);
    assert!(!told.contains("the first one"), "their looks are not the lead's");
    // What was spent is known by agent, and together with whoever it was spent for.
    let costs = program.run(&["cost", "--by", "agent", "--json"]).json();
    let of = |rows: &Value, name: &str| {
        rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()["output_tokens"].as_u64().unwrap()
    };
    let (max, explore) = (of(&costs["rows"], "max"), of(&costs["rows"], "explore"));
    assert!(explore >= 20, "{costs}");
    assert_eq!(of(&costs["with_calls"], "max"), max + explore);
}

/// A write that the gate sees is refused; one that it cannot see, and is told to let through, finds nothing to write on.
#[test]
fn explorers_cannot_write_under_any_permission() {
    let gate = Gate::new();
    gate.open();
    let server = two_explorers(&gate, ["touch src/new.txt", "./change.sh"]);
    let program = repository(&server).file("change.sh", "#!/bin/sh\nid -u && echo owned > src/b.txt\n");
    let script = program.project().join("change.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran =
        program.run(&["-p", "find both", "--permission-mode", "bypassPermissions", "--output-format", "stream-json"]);
    let results = |id: &str| {
        let of = |line: &&Value| line["parent_tool_use_id"] == id && line["type"] == "user";
        ran.lines().iter().find(of).unwrap()["message"]["content"][0].to_string()
    };
    assert!(results("t1").contains("read_only"), "{}", results("t1"));
    assert!(results("t2").contains("src/b.txt: ") && !results("t2").contains("Not allowed"), "{}", results("t2"));
    assert_eq!(program.read("src/b.txt"), "beta\n");
    assert!(!program.project().join("src/new.txt").exists());
}

/// A lead that coordinates is offered nothing else, and an agent with hands may call, too.
#[test]
fn the_tools_a_model_is_offered() {
    let tools = |request: &Recorded| {
        let tools = request.body["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let server = ModelServer::start([Reply::text("a"), Reply::text("b"), Reply::text("c")]);
    let program = Program::team(&server);
    assert_eq!(program.run(&["-p", "hi", "--coordinator"]).code, 0);
    assert_eq!(program.run(&["-p", "hi"]).code, 0);
    assert_eq!(program.run(&["-p", "hi", "--solo"]).code, 0);
    let requests = server.requests();
    assert_eq!(tools(&requests[0]), "agent ask_user send_message");
    assert!(requests[0].body["system"].to_string().contains("Never leave the understanding"));
    let kinds = |request: &Recorded| {
        let tools = request.body["tools"].as_array().unwrap().clone();
        let agent = tools.into_iter().find(|tool| tool["name"] == "agent").unwrap();
        let told = agent["input_schema"]["properties"]["type"]["description"].as_str().unwrap().to_owned();
        let names = told.split('`').skip(1).step_by(2).filter(|name| told.contains(&format!("`{name}`: ")));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        names.join(" ")
    };
    let types = "earthquake explore general hotel memory narrator plan train weather";
    let team = "ada earthquake explore general hotel leo memory narrator plan ray sam train weather";
    assert_eq!([kinds(&requests[0]), kinds(&requests[1]), kinds(&requests[2])], [team, team, types]);
}
