//! What happens to files while a command runs that nobody waits for.

use max_team_testkit::{ModelServer, Reply};
use serde_json::{Value, json};

use super::{FREE, shell, tree, write};
use crate::chat::Terminal;
use crate::program::Program;

/// What is painted beneath a turn once it is over.
const TURN_OVER: &str = "tokens in";

/// A command that changes nothing, as far as anybody could know before it, and runs until it is stopped.
fn waiting() -> Reply {
    Reply::new().tool("b", "run_shell", json!({ "command": "touch z && sleep 600", "background": true }))
}

fn stop() -> Reply {
    Reply::new().tool("o", "shell_stop", json!({ "id": "sh-1" }))
}

fn say(terminal: &mut Terminal, words: &str, until: &str) {
    terminal.keys(&[words, "Enter"]);
    terminal.wait(until);
}

fn leave(mut terminal: Terminal) {
    terminal.keys(&["/exit", "Enter"]);
    terminal.wait_end();
}

/// Steps with changes that looks at the tree have found.
fn looks(program: &Program) -> usize {
    let is_seen = |entry: &&Value| {
        let changed = &entry["payload"]["files_changed"];
        changed["seen"] == json!(true) && !changed["changes"].as_array().is_none_or(Vec::is_empty)
    };
    program.journal().iter().filter(is_seen).count()
}

/// The command sees what a file tool did, too; but that was done, and noted, in the turn before.
#[test]
fn a_tools_change_during_a_command_is_undone_in_its_own_turn() {
    let server = ModelServer::start([
        waiting(),
        write(Reply::new(), "a", "X\n"),
        Reply::text("First done."),
        shell("touch c"),
        stop(),
        write(Reply::new(), "b", "Y\n"),
        Reply::text("Second done."),
    ]);
    let program = Program::with(&server).file("z", "").file("a", "W\n").file("b", "V\n");
    let mut terminal = Terminal::open(&program, &FREE);
    terminal.wait("or give a task");
    say(&mut terminal, "begin", TURN_OVER);
    say(&mut terminal, "go on", TURN_OVER);
    leave(terminal);
    assert!(server.problems().is_empty(), "{:?}", server.problems());
    assert_eq!((program.read("a").as_str(), program.read("b").as_str()), ("X\n", "Y\n"));
    assert_eq!(looks(&program), 2);
    let listed = program.run(&["rewind", "--list"]);
    assert_eq!(listed.out.matches("~a").count(), 1, "{listed:?}");
    let back = program.run(&["rewind", "--to", "turn:2", "--yes"]);
    assert_eq!(back.code, 0, "{back:?}");
    assert_eq!((program.read("a").as_str(), program.read("b").as_str()), ("X\n", "V\n"), "{back:?}");
    assert_eq!(program.run(&["rewind", "--to", "turn:1", "--yes"]).code, 0);
    assert_eq!(program.read("a"), "W\n");
}

/// What was put back while a command ran is none of its work: taking its work back would bring the agent's back.
#[test]
fn files_put_back_during_a_command_stay_put_back() {
    let server = ModelServer::start([
        write(Reply::new(), "a", "X\n"),
        waiting(),
        Reply::text("First done."),
        stop(),
        Reply::text("Second done."),
    ]);
    let program = Program::with(&server).file("z", "").file("a", "W\n");
    let before = tree(&program.project());
    let mut terminal = Terminal::open(&program, &FREE);
    terminal.wait("or give a task");
    say(&mut terminal, "begin", TURN_OVER);
    say(&mut terminal, "/rewind 1", "`/rewind yes` puts");
    say(&mut terminal, "/rewind yes", "1 file put back");
    say(&mut terminal, "go on", TURN_OVER);
    leave(terminal);
    assert!(server.problems().is_empty(), "{:?}", server.problems());
    assert_eq!((looks(&program), tree(&program.project())), (1, before.clone()));
    let back = program.run(&["rewind", "--yes"]);
    assert_eq!((back.code, tree(&program.project())), (0, before), "{back:?}");
    assert!(back.out.contains("nothing to put back"), "{back:?}");
}
