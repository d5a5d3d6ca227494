//! Commands of an agent, from outside: what is asked about, what runs on, and that nothing outlives the program.

use max_team_testkit::{ModelServer, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::chat::Terminal;
use crate::obeyed::runs;
use crate::program::{Program, finish, kill, soon};

const FREE: [&str; 2] = ["--permission-mode", "bypassPermissions"];

fn mark(of: &str) -> String {
    format!("86420.{}{of}", std::process::id())
}

#[test]
fn a_command_in_the_background_is_looked_at_and_ends_with_the_run() {
    let mark = mark("1");
    let server = ModelServer::start([
        Reply::new().tool("t1", "run_shell", json!({"command": format!("sleep {mark}"), "background": true})),
        Reply::new().tool("t2", "shell_output", json!({"id": "sh-1"})),
        Reply::text("it runs"),
    ]);
    let program = Program::with(&server);
    let ran = program.run(&[&["-p", "serve"], FREE.as_slice()].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "it runs\n"), "{ran:?}");
    let told = server.requests()[2].body.to_string();
    assert!(told.contains("runs in the background as `sh-1`") && told.contains("): runs for "), "{told}");
    assert!(!runs(&mark));
}

#[test]
fn nothing_outlives_a_kill() {
    let (beside, before) = (mark("2"), mark("3"));
    let server = ModelServer::start([
        Reply::new().tool("t1", "run_shell", json!({"command": format!("sleep {beside}"), "background": true})),
        Reply::new().tool("t2", "run_shell", json!({"command": format!("sleep {before} | cat"), "timeout": 600})),
    ]);
    let program = Program::with(&server);
    let mut child = program.start(&[&["-p", "go"], FREE.as_slice()].concat());
    assert!(soon(|| runs(&beside) && runs(&before)));
    kill(&mut child);
    assert!(soon(|| !runs(&beside) && !runs(&before)));
}

/// The next process runs the command again; the first run of it does not want to end.
#[test]
fn a_command_is_not_run_beside_what_a_killed_process_left_of_it() {
    let mark = mark("9");
    let server = ModelServer::start([
        Reply::new().tool("t1", "run_shell", json!({"command": "sh job.sh", "timeout": 600})),
        Reply::new().tool("t2", "run_shell", json!({"command": "sh again.sh"})),
        Reply::text("done"),
    ]);
    let script = format!("trap '' TERM\nsleep {mark}\n");
    let program = Program::with(&server).file("job.sh", &script).file("again.sh", "exit 0\n");
    let free = ["--allowed-tools", "Bash(sh job.sh)", "--allowed-tools", "Bash(sh again.sh)"];
    let mut child = program.start(&[&["-p", "go"], free.as_slice()].concat());
    assert!(soon(|| runs(&mark)));
    kill(&mut child);
    let ran = program.run(&[&["-c", "-p", ""], free.as_slice()].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "done\n"), "{ran:?}");
    assert!(!runs(&mark), "the first run was waited for");
}

/// The parent of the process that sleeps for so long.
fn parent_of_sleeper(mark: &str) -> Pid {
    let entries = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let want = format!("sleep\0{mark}\0");
    let sleeper =
        { entries }.find(|path| std::fs::read(path.join("cmdline")).is_ok_and(|line| line == want.as_bytes()));
    let stat = std::fs::read_to_string(sleeper.unwrap().join("stat")).unwrap();
    Pid::from_raw(stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()).unwrap()
}

/// The model is not told that a command was not run if it had begun.
#[test]
fn a_command_whose_supervisor_is_killed_has_an_unknown_outcome() {
    let mark = mark("4");
    let server = ModelServer::start([
        Reply::new().tool("t1", "run_shell", json!({"command": format!("sleep {mark}")})),
        Reply::text("I will look"),
    ]);
    let program = Program::with(&server);
    let child = program.start(&[&["-p", "go"], FREE.as_slice()].concat());
    assert!(soon(|| runs(&mark)));
    kill_process(parent_of_sleeper(&mark), Signal::KILL).unwrap();
    let ran = finish(child);
    assert_eq!((ran.code, ran.out.as_str()), (0, "I will look\n"), "{ran:?}");
    let told = server.requests()[1].body.to_string();
    let told = told.rsplit_once("tool_result").unwrap().1;
    assert!(told.contains("outcome unknown") && !told.contains("not run"), "{told}");
    let log = program.run(&["events", "--json"]).out;
    assert!(log.contains("unknown"), "{log}");
}

#[test]
fn a_question_shows_the_whole_command_and_what_a_yes_would_be_remembered_as() {
    let long = format!("cargo test --package one{} && rm -rf target/x", " --features some-feature".repeat(12));
    let server = ModelServer::start([
        Reply::new().tool("t1", "run_shell", json!({"command": long})),
        Reply::new().tool("t2", "run_shell", json!({"command": "git push origin main"})),
        Reply::new().tool("t3", "run_shell", json!({"command": "echo $HOME\u{1b}[2J", "writes": true})),
        Reply::text("all refused"),
    ]);
    let program = Program::with(&server);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["go", "Enter"]);
    terminal.wait("adds the rule");
    let screen: String = terminal.screen().split_whitespace().collect();
    assert!(screen.contains(&long.split_whitespace().collect::<String>()), "{screen}");
    assert!(screen.contains("Bash(cargotest:*)"), "{screen}");
    terminal.answer("n");
    terminal.wait("always asked");
    assert!(terminal.screen().contains("git push origin main"), "{}", terminal.screen());
    terminal.answer("n");
    terminal.wait("cannot be analysed");
    assert!(terminal.screen().contains("echo $HOME\\u{1b}[2J"), "{}", terminal.screen());
    terminal.answer("n");
    terminal.wait("all refused");
}
