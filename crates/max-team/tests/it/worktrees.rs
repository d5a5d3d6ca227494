//! Copies through the whole program: a member works in one, and what it left is looked at, taken and dropped.

use std::process::Command;

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::chat::Terminal;
use super::plans::{news, plan, task, voice, write};
use super::program::{Program, Ran};

fn git(program: &Program, words: &[&str]) -> String {
    let ran = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
        .args(words)
        .current_dir(program.project())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

/// A team whose coder changes three files in a copy, checked by this command.
fn team(check: &str) -> ModelServer {
    let tasks = json!([{ "id": "impl", "title": "impl", "agent": "leo", "description": "Change it.", "retry": 0,
        "isolation": "worktree", "verify": [check] }]);
    let changes =
        vec![write("a.txt", "copy\n"), write("b.txt", "copy\n"), write("新.txt", "copy\n"), Reply::text("Changed.")];
    ModelServer::start(
        Script::new()
            .when(voice(task("impl"), changes))
            .when(voice(news("is over:"), vec![Reply::text("x"), Reply::text("All of it is done.")]))
            .on(news("please"), plan(tasks))
            .on(|_| true, Reply::text("I cannot say.")),
    )
}

fn project(server: &ModelServer) -> Program {
    let program = Program::team(server).file("a.txt", "one\n").file("b.txt", "one\n");
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first"]] {
        git(&program, words);
    }
    program.file("dirty.txt", "mine\n")
}

fn listed(program: &Program) -> Vec<Value> {
    program.run(&["worktrees", "list", "--json"]).json().as_array().unwrap().clone()
}

fn said(ran: &Ran, code: i32, words: &str) {
    assert!(ran.code == code && (ran.err.contains(words) || ran.out.contains(words)), "{words}: {ran:?}");
}

#[test]
fn what_passes_its_checks_is_merged_and_the_copy_goes() {
    let server = team("grep -q copy a.txt");
    let program = project(&server);
    let ran = program.run(&["-p", "change it, please", "--approve", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "All of it is done.\n"), "{ran:?}");
    assert_eq!(["a.txt", "b.txt", "新.txt"].map(|name| program.read(name)), ["copy\n", "copy\n", "copy\n"]);
    assert_eq!(git(&program, &["log", "--format=%s"]), "first\n", "no commit is made");
    assert_eq!(listed(&program), [] as [Value; 0]);
    said(&program.run(&["worktrees", "list"]), 0, "there are no copies");
    said(&program.run(&["worktrees", "show"]), 1, "there are no copies");
    said(&program.run(&["worktrees", "accept", "zzz"]), 2, "there is no copy `zzz`");
}

#[test]
fn what_does_not_is_kept_and_the_user_decides_file_by_file() {
    let server = team("false");
    let program = project(&server);
    let ran = program.run(&["-p", "change it, please", "--approve", "never"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert_eq!(program.read("a.txt"), "one\n");
    let all = listed(&program);
    let (id, root) = (all[0]["id"].as_str().unwrap(), all[0]["root"].as_str().unwrap());
    assert_eq!((all.len(), &all[0]["open"], &all[0]["by"]), (1, &json!(3), &json!("leo at `impl`")), "{all:?}");
    assert_eq!(std::fs::read_to_string(format!("{root}/dirty.txt")).unwrap(), "mine\n");
    said(&program.run(&["worktrees", "clean"]), 0, "0 copies removed, 1 kept");

    let short = &id[id.len() - 8..];
    let program = program.file("b.txt", "mine\n");
    let shown = program.run(&["worktrees", "show", short]);
    for part in
        ["a.txt  (ready)", "b.txt  (conflict: it has changed in the project too)", "+copy", "<<<<<<< yours\nmine\n"]
    {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let told = program.run(&["worktrees", "show", "--json"]).json();
    assert_eq!(told["changes"][1]["fate"], "conflict", "{told}");
    said(&program.run(&["worktrees", "accept", short, "none.txt"]), 2, "`none.txt` has not changed in this copy");
    said(&program.run(&["worktrees", "accept", short, "a.txt"]), 0, "1 file taken into the project");
    assert_eq!((program.read("a.txt"), program.read("b.txt")), ("copy\n".to_owned(), "mine\n".to_owned()));
    assert!(!program.project().join("新.txt").exists());
    said(&program.run(&["worktrees", "reject", short, "新.txt"]), 0, "1 file still waits for a decision");
    said(&program.run(&["worktrees", "accept", short]), 8, "b.txt: it has changed in the project too");
    assert_eq!(program.read("b.txt"), "mine\n");
    said(&program.run(&["worktrees", "reject", short]), 0, "the copy is removed, and its changes with it");
    assert_eq!(listed(&program), [] as [Value; 0]);
    assert_eq!(program.read("a.txt"), "copy\n", "what was taken stays");
}

/// A lead that has somebody with a copy of their own change something.
fn delegating() -> (ModelServer, Program) {
    let calls = vec![
        Reply::new().tool("d", "dispatch_task", json!({ "agent": "scribe", "description": "Write into a.txt." })),
        Reply::text("The scribe is done."),
    ];
    let server = ModelServer::start(
        Script::new()
            .when(voice(news("please"), calls))
            .when(voice(|_| true, vec![write("a.txt", "copy\n"), Reply::text("Written.")])),
    );
    let scribe =
        "---\nname: scribe\nrole: scribe\ndescription: Writes\nisolation: worktree\ntools: [write_file]\n---\nWrite.\n";
    let program = project(&server).file(".max-team/agents/scribe.md", scribe);
    (server, program)
}

const MODE: [&str; 2] = ["--permission-mode", "acceptEdits"];

/// A chat up to the question what becomes of the changes.
fn asked(program: &Program, more: &[&str]) -> Terminal {
    let mut terminal = Terminal::open(program, &[&MODE, more].concat());
    terminal.wait("or give a task");
    terminal.keys(&["change it, please", "Enter"]);
    terminal.wait("leave them for later");
    assert_eq!(program.read("a.txt"), "one\n", "nothing is taken before the yes");
    terminal
}

fn told(server: &ModelServer, words: &str) {
    let requests = server.requests();
    let last = requests.last().unwrap();
    assert!(last.contains("Written.") && last.contains(words), "{}", last.body);
}

#[test]
fn what_was_done_in_a_copy_is_shown_in_the_chat_and_taken_dropped_or_left() {
    for (key, file, kept, words) in [
        ("y", "copy\n", 0, "1 file is in the project now"),
        ("n", "one\n", 0, "The user has dropped the changes"),
        ("Escape", "one\n", 1, "the user decides later"),
    ] {
        let (server, program) = delegating();
        let mut terminal = asked(&program, &[]);
        let screen = terminal.screen();
        assert!(screen.contains("? max has changes for you, in a copy of the project"), "{screen}");
        assert!(screen.contains("- one") && screen.contains("+ copy"), "{screen}");
        terminal.answer(key);
        terminal.wait("The scribe is done.");
        let (screen, tail) = (terminal.screen().replace('\n', " "), words.split(' ').next_back().unwrap());
        assert!(screen.contains("→ The") && screen.contains(tail), "{screen}");
        assert_eq!((program.read("a.txt").as_str(), listed(&program).len()), (file, kept), "{key}");
        told(&server, words);
    }
}

#[test]
fn what_was_done_in_a_copy_is_decided_about_from_the_inbox_after_a_kill() {
    for (verb, more, file, words) in [
        ("approve", &[][..], "copy\n", "1 file is in the project now"),
        ("deny", &["-m", "too long"], "one\n", "They say: too long\n\n[The user has dropped the changes"),
    ] {
        let (server, program) = delegating();
        asked(&program, &[]).kill();
        let inbox = program.run(&["inbox", "--json"]).json();
        let id = inbox[0]["short"].as_str().unwrap();
        assert_eq!((&inbox[0]["kind"], &inbox[0]["lines_added"]), (&json!("merge"), &json!(1)), "{inbox}");
        said(&program.run(&["inbox"]), 0, "has changes for you, in a copy of the project (+1 -1)");
        said(&program.run(&["inbox", id]), 0, "+copy");
        assert_eq!(program.run(&[&[verb, id], more].concat()).code, 0);
        let ran = program.run(&[&["-c", "-p", ""], &MODE[..]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (0, "The scribe is done.\n"), "{ran:?}");
        assert_eq!((program.read("a.txt").as_str(), listed(&program).len()), (file, 0), "{verb}");
        told(&server, words);
    }
}

#[test]
fn where_nobody_can_be_asked_the_copy_stays_and_the_command_is_told() {
    let (server, program) = delegating();
    let ran = program.run(&[&["-p", "change it, please"], &MODE[..]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "The scribe is done.\n"), "{ran:?}");
    let id = listed(&program)[0]["id"].as_str().unwrap().to_owned();
    let command = format!("max-team worktrees accept {id}");
    assert!(ran.err.contains(&command), "{ran:?}");
    told(&server, &command);
    said(&program.run(&["worktrees", "accept", &id, "a.txt"]), 0, "1 file taken into the project");
    assert_eq!((program.read("a.txt"), listed(&program).len()), ("copy\n".to_owned(), 0));
}
