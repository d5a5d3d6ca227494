//! A fork is never stronger than the session that it continues: it keeps its tools, rules, mode and team.

use std::path::PathBuf;
use std::process::Command;

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::json;

use crate::program::{Program, Ran};
use crate::resume::{model, results, tools};

const AGENTS: &str = "agents:\n  - name: hand\n    role: coder\n    system_prompt: You work.\n    \
                      tools: [read_file, write_file, run_shell]\n    constraints: {blocked_patterns: ['secret*'], \
                      write_patterns: ['docs/**'], allowed_commands: [ls]}\n";

/// A fork works in a worktree, or with this flag in the project itself.
const PLACES: [&[&str]; 2] = [&[], &["--here"]];

fn git(program: &Program) {
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first"]] {
        let own = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
        let ran = Command::new("git").args(own).args(words).current_dir(program.project()).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
}

/// Opens a session, and continues it in a fork with these flags.
fn forked(program: &Program, first: &[&str], place: &[&str], flags: &[&str]) -> Ran {
    git(program);
    let ran = program.run(first);
    assert_eq!(ran.code, 0, "{ran:?}");
    let sessions = program.run(&["sessions", "list", "--json"]).json();
    let id = sessions[0]["session"].as_str().unwrap().to_owned();
    let ran = program.run(&[&["fork", &id, "go", "-p"], place, flags].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// The folder that the fork worked in.
fn folder(program: &Program) -> PathBuf {
    let copies = program.run(&["worktrees", "list", "--json"]).json();
    copies[0]["root"].as_str().map_or_else(|| program.project(), PathBuf::from)
}

#[test]
fn an_agents_constraints_hold_in_a_fork() {
    for place in PLACES {
        let server = model(&[
            ("read_file", json!({ "path": "secret.txt" })),
            ("write_file", json!({ "path": "main.rs", "content": "x" })),
            ("run_shell", json!({ "command": "touch made" })),
            ("write_file", json!({ "path": "docs/a.md", "content": "x" })),
        ]);
        let program = Program::team(&server).file("agents.yaml", AGENTS).file("secret.txt", "12345");
        let first = ["-p", "hi", "--agents", "agents.yaml", "--agent", "hand"];
        forked(&program, &first, place, &["--permission-mode", "bypassPermissions"]);
        let told = results(server.requests().last().unwrap());
        assert!(told[0].contains("`blocked_patterns`") && !told[0].contains("12345"), "{told:?}");
        assert!(told[1].contains("`write_patterns`"), "{told:?}");
        assert!(told[2].contains("`write_patterns`"), "{told:?}");
        let folder = folder(&program);
        assert_eq!(std::fs::read_to_string(folder.join("docs/a.md")).unwrap(), "x", "{told:?}");
        assert!(!folder.join("main.rs").exists() && !folder.join("made").exists());
        assert_eq!(tools(server.requests().last().unwrap()), ["read_file", "run_shell", "write_file"]);
    }
}

/// Rules name places of the project, also where the fork works in a worktree of it.
#[test]
fn rules_of_flags_hold_in_a_fork_and_in_its_worktree() {
    for place in PLACES {
        let write = |path: &str| ("write_file", json!({ "path": path, "content": "x" }));
        let server = model(&[
            ("run_shell", json!({ "command": "touch made" })),
            write("db/a.sql"),
            write("key/b"),
            write("c.txt"),
        ]);
        let program = Program::team(&server).file("db/old.sql", "x").file("key/old", "x");
        let absolute = format!("Edit(/{}/key/**)", program.project().canonicalize().unwrap().display());
        let rules = ["Bash(touch:*)", "Edit(./db/**)", &absolute].map(|rule| ["--disallowed-tools", rule]);
        let first = [&["-p", "hi", "--solo"][..], rules.as_flattened()].concat();
        forked(&program, &first, place, &["--permission-mode", "bypassPermissions"]);
        let told = results(server.requests().last().unwrap());
        for (result, rule) in told.iter().zip(["Bash(touch:*)", "Edit(./db/**)", "Edit("]) {
            assert!(result.contains("Not allowed (the rule") && result.contains(rule), "{place:?} {rule}: {told:?}");
        }
        let folder = folder(&program);
        assert!(!folder.join("made").exists() && !folder.join("db/a.sql").exists() && !folder.join("key/b").exists());
        assert_eq!(std::fs::read_to_string(folder.join("c.txt")).unwrap(), "x", "{told:?}");
    }
}

#[test]
fn a_mode_holds_in_a_fork_until_the_user_names_another_one() {
    for (flags, is_written) in [(&[][..], false), (&["--permission-mode", "acceptEdits"], true)] {
        let server = model(&[("write_file", json!({ "path": "a.txt", "content": "x" }))]);
        let program = Program::team(&server).file("old.txt", "x");
        forked(&program, &["-p", "hi", "--solo", "--permission-mode", "plan"], &["--here"], flags);
        let told = results(server.requests().last().unwrap());
        assert_eq!((program.project().join("a.txt").exists(), told[0].contains("plan")), (is_written, !is_written));
    }
}

#[test]
fn a_forked_lead_has_the_tools_and_the_team_of_its_origin() {
    let few = "agents:\n- {name: max, role: team_lead, system_prompt: You lead., tools: [ask_user]}\n";
    for first in [&["-p", "hi", "--coordinator"][..], &["-p", "hi", "--agents", "few.yaml"]] {
        let server = ModelServer::start([Reply::text("Hello."), Reply::text("Forked."), Reply::text("Again.")]);
        let program = Program::team(&server).file("few.yaml", few);
        forked(&program, first, &["--here"], &[]);
        assert_eq!(program.run(&["-c", "-p", "go on"]).code, 0);
        let requests = server.requests();
        for request in &requests[1..] {
            assert_eq!(tools(request), tools(&requests[0]), "{first:?}");
        }
    }
}

#[test]
fn agents_that_a_fork_calls_are_bound_too() {
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
    let program = Program::team(&server).file("old.txt", "x");
    let first = ["-p", "hi", "--disallowed-tools", "Bash(touch:*)"];
    forked(&program, &first, &["--here"], &["--permission-mode", "bypassPermissions"]);
    assert!(!program.project().join("made").exists());
    let is_refused = |request: &Recorded| results(request).iter().any(|result| result.contains("Bash(touch:*)"));
    assert!(server.requests().iter().any(is_refused), "{:?}", server.requests().len());
}
