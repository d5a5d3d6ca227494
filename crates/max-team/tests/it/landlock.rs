//! A machine with Landlock alone, as in many containers: what runs without a question, and what a question and a refusal say.

use max_team_sandbox::{ENGINE, probe};
use max_team_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::chat::Terminal;
use crate::context::ok;
use crate::program::Program;

const UNPROTECTED: &str = "here it can also change protected files and read blocked ones";

fn shell(id: &str, command: &str) -> Reply {
    Reply::new().tool(id, "run_shell", json!({ "command": command }))
}

/// A repository on such a machine.
fn program(server: &ModelServer) -> Option<Program> {
    let program = Program::with(server).variable(ENGINE, "landlock");
    let program = program.file(".git/HEAD", "ref: refs/heads/main\n").file("a.txt", "what a.txt says\n");
    probe().landlock.is_ok().then_some(program)
}

#[test]
fn without_a_chat_reading_runs_and_writing_needs_a_rule() {
    let copy = "cp a.txt b.txt";
    let replies = || {
        [
            shell("t1", "cat a.txt"),
            shell("t2", "for f in *.txt; do wc -l $f; done"),
            shell("t3", copy),
            Reply::text("Done."),
        ]
    };
    let server = ModelServer::start(replies());
    let Some(program) = program(&server) else { return };
    let ran = ok(program.run(&["-p", "copy it", "--permission-mode", "bypassPermissions"]));
    let requests = server.requests();
    assert!(requests[1].contains("what a.txt says"), "{}", requests[1].body);
    assert!(requests[2].contains("1 a.txt"), "{}", requests[2].body);
    let told = requests[3].body["messages"].to_string();
    assert!(told.contains("--allowed-tools 'Bash(cp a.txt b.txt)'"), "{told}");
    assert!(!program.project().join("b.txt").exists() && ran.err.contains("--allowed-tools"), "{ran:?}");
    let server = ModelServer::start(replies());
    let program = program.variable("ANTHROPIC_BASE_URL", server.url());
    let rules = ["-p", "copy it", "--permission-mode", "acceptEdits", "--allowed-tools", "Bash(cp a.txt b.txt)"];
    ok(program.run(&rules));
    assert_eq!(program.read("b.txt"), "what a.txt says\n");
}

#[test]
fn the_question_says_what_is_not_protected() {
    let write = Reply::new().tool("t3", "write_file", json!({ "path": "b.txt", "content": "written" }));
    let replies = [shell("t1", "cat a.txt"), shell("t2", "touch made"), write, Reply::text("finished")];
    let server = ModelServer::start(replies);
    let Some(program) = program(&server) else { return };
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["make it", "Enter"]);
    terminal.wait("yes once");
    let screen = terminal.screen().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains(UNPROTECTED), "{screen}");
    assert!(server.requests()[1].contains("what a.txt says") && !program.project().join("made").exists());
    terminal.answer("y");
    terminal.wait("written");
    terminal.answer("y");
    terminal.wait("finished");
    assert!(program.project().join("made").exists() && program.read("b.txt") == "written");
    assert!(server.requests()[2].contains("protected files were not protected, no network"));
}
