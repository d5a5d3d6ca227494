//! What a rewind cannot know it says, and it goes back only to where something of an agent's is still there.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::json;

use super::{Dice, FREE, say, shell, tree, write};
use crate::program::{Program, finish, kill};

const PLAN: &str = "goal: Say hello\ntasks:\n  - {id: write, agent: leo, do: Write it., owns: [\"*.txt\"]}\n";

#[test]
fn a_run_of_a_plan_is_a_point() {
    let server = ModelServer::start(Script::new().when(|request| {
        Some(match (request.contains("Write it."), request.tool_results()) {
            (true, 0) => write(Reply::new(), "hello.txt", "hello\n"),
            _ => Reply::text("Done."),
        })
    }));
    let program = Program::team(&server).file("plan.yaml", PLAN);
    let before = tree(&program.project());
    let ran = program.run(&["run", "plan.yaml", "--yes", "--permission-mode", "acceptEdits"]);
    assert_eq!((ran.code, program.read("hello.txt").as_str()), (0, "hello\n"), "{ran:?}");
    let listed = program.run(&["rewind", "--list"]);
    assert!(listed.out.contains("run plan.yaml") && listed.out.contains("+hello.txt"), "{listed:?}");
    let back = program.run(&["rewind", "--yes"]);
    assert_eq!((back.code, tree(&program.project())), (0, before), "{back:?}");
}

/// `turn:N` is the same turn wherever it is said.
#[test]
fn a_run_of_a_plan_counts_for_a_fork_as_for_a_rewind() {
    let server = ModelServer::start(Script::new().when(|_| Some(Reply::text("Done."))));
    let program = Program::team(&server).file("plan.yaml", PLAN);
    assert_eq!(program.run(&["run", "plan.yaml", "--yes", "--permission-mode", "acceptEdits"]).code, 0);
    say(&program, "Second words", false);
    let moments = program.run(&["rewind", "--list", "--json"]).json();
    assert_eq!(
        (moments[1]["turn"].as_u64(), moments[1]["said"].as_str()),
        (Some(2), Some("Second words")),
        "{moments}"
    );
    let session = program.run(&["rewind", "--dry-run", "--json"]).json()["session"].as_str().unwrap().to_owned();
    let begins = moments[1]["event"].as_u64().unwrap();
    let forked = program.run(&["fork", &session, "--at", "turn:2", "--here", "-p"]);
    assert!(forked.code == 0 && forked.err.contains(&format!("{}", begins - 1)), "{forked:?}");
    assert!(server.requests().last().unwrap().contains("Second words"), "said again");
    // Nobody said the first: whoever goes on from before it has to say something.
    let first = program.run(&["fork", &session, "--at", "turn:1", "--here", "-p", "Other words"]);
    assert!(first.code == 0 && !server.requests().last().unwrap().contains("run plan.yaml"), "{first:?}");
    assert_eq!(program.run(&["fork", &session, "--at", "turn:3", "--here", "-p", "x"]).code, 1);
}

/// Its supervisor notes the end of the command, so that later changes are the user's.
#[test]
fn changes_of_a_command_that_was_killed_with_the_program_are_put_back() {
    for background in [false, true] {
        let command = json!({ "command": "cp a made && sleep 600", "background": background });
        let gate = max_team_testkit::Gate::new();
        let server =
            ModelServer::start([Reply::new().tool("s", "run_shell", command), Reply::text("never").gate_before(&gate)]);
        let program = Program::with(&server).file("a", "a\n");
        let mut running = program.start(&[&["-p", "begin"], &FREE[..]].concat());
        while !program.project().join("made").exists() || (background && server.count() < 2) {
            assert!(running.try_wait().unwrap().is_none(), "{:?}", finish(running));
            std::thread::yield_now();
        }
        kill(&mut running);
        gate.open();
        max_team_sandbox::wait_until_gone();
        let program = program.file("mine", "the user's");
        let listed = program.run(&["rewind", "--list"]);
        assert!(listed.out.contains("+made") && !listed.out.contains("+mine"), "{listed:?}");
        let back = program.run(&["rewind", "--yes"]);
        assert_eq!((back.code, program.project().join("made").exists()), (8, false), "{back:?}");
        assert!(back.out.contains("mine (changed after a command was killed"), "{back:?}");
        assert_eq!(program.read("mine"), "the user's");
    }
}

#[test]
fn a_project_that_was_moved_is_not_there() {
    let server = ModelServer::start([write(Reply::new(), "a", "agent"), Reply::text("done")]);
    let program = Program::with(&server);
    say(&program, "begin", true);
    let sessions = program.run(&["sessions", "list", "--json"]).json();
    let session = sessions[0]["session"].as_str().unwrap();
    let mut command = program.command(&["rewind", session, "--yes"]);
    fs::rename(program.project(), program.home().join("elsewhere")).unwrap();
    let ran = finish(command.current_dir(program.home()).spawn().unwrap());
    assert_eq!(ran.code, 8, "{ran:?}");
    assert!(ran.out.contains("this folder is missing") && !ran.out.contains("nothing was changed"), "{ran:?}");
}

#[test]
fn words_that_name_nothing_are_refused() {
    let server = ModelServer::start([write(Reply::new(), "a", "agent"), Reply::text("done")]);
    let program = Program::with(&server);
    let none = program.run(&["rewind", "--list"]);
    assert!(none.code == 1 && none.err.contains("max-team rewind SESSION"), "{none:?}");
    say(&program, "begin", true);
    for flag in ["--list", "--yes"] {
        let session = program.run(&["rewind", "0badcafe", flag]);
        assert!(session.code == 2 && session.err.contains("there is no session `0badcafe`"), "{session:?}");
        let file = program.run(&["rewind", "src/none.rs", flag]);
        assert!(file.code == 2 && file.err.contains("`src/none.rs` is neither"), "{file:?}");
    }
    let undo = program.run(&["rewind", "--undo", "--yes"]);
    assert!(undo.code == 1 && undo.err.contains("nothing to undo"), "{undo:?}");
    assert_eq!(program.read("a"), "agent");
}

/// A turn without changes is nothing to go back to, and what was put back stays there.
#[test]
fn a_plain_rewind_never_goes_forwards() {
    let server = ModelServer::start([write(Reply::new(), "a", "agent"), Reply::text("done"), Reply::text("talk")]);
    let program = Program::with(&server).file("a", "user");
    say(&program, "begin", true);
    assert_eq!(program.run(&["rewind", "--yes"]).code, 0);
    assert_eq!(program.run(&["rewind", "--undo", "--yes"]).code, 0);
    say(&program, "talk", false);
    assert_eq!(program.run(&["rewind", "--to", "turn:1", "--yes"]).code, 0);
    assert_eq!(program.read("a"), "user");
    let plain = program.run(&["rewind", "--yes"]);
    assert_eq!((plain.code, program.read("a").as_str()), (0, "user"), "{plain:?}");
    assert!(plain.out.contains("nothing to put back"), "{plain:?}");
}

type Files = BTreeMap<PathBuf, (Vec<u8>, bool)>;

/// Which of all contents ever written a file has; nothing is the first.
fn number(files: &Files, path: &str) -> usize {
    let bytes = files.get(&PathBuf::from(path)).map(|(bytes, _)| String::from_utf8_lossy(bytes).into_owned());
    bytes.map_or(0, |text| text.trim().parse().unwrap())
}

/// Whatever agents, the user and rewinds did in whatever order: going to a point gives the files of that point but for what the user
/// changed since, and going back plainly never gives anything newer than what is there.
#[test]
fn after_any_history_a_point_is_what_it_was() {
    const PATHS: [&str; 3] = ["a", "b", "c/d"];
    for seed in 0..4_u64 {
        let mut dice = Dice(seed.wrapping_mul(104_729) + 5);
        let mut program = Program::with(&ModelServer::start(Vec::<Reply>::new()));
        let (mut count, mut log) = (0, Vec::new());
        let mut points: Vec<Files> = Vec::new();
        // What the user wrote: before which turn, where, what.
        let mut own: Vec<(usize, &str, usize)> = Vec::new();
        for _ in 0..14 {
            let before = tree(&program.project());
            let roll = if points.is_empty() { 0 } else { dice.roll(7) };
            match roll {
                0 | 1 => {
                    points.push(before);
                    let writes = (0..dice.roll(3)).map(|_| {
                        count += 1;
                        write(Reply::new(), PATHS[dice.roll(PATHS.len())], &format!("{count}\n"))
                    });
                    let replies: Vec<Reply> = writes.chain([Reply::text("done")]).collect();
                    let server = ModelServer::start(replies);
                    program = program.variable("ANTHROPIC_BASE_URL", server.url());
                    say(&program, "go on", points.len() == 1);
                    log.push("agents write".to_owned());
                }
                2 => {
                    let path = PATHS[dice.roll(PATHS.len())];
                    count += 1;
                    program = program.file(path, format!("{count}\n"));
                    own.push((points.len(), path, count));
                    log.push(format!("the user writes {count} to {path}"));
                }
                3 | 4 => {
                    let to = 1 + dice.roll(points.len());
                    log.push(format!("rewind to {to}"));
                    let ran = program.run(&["rewind", "--yes", "--to", &format!("turn:{to}")]);
                    assert!(matches!(ran.code, 0 | 8), "{ran:?}");
                    let after = tree(&program.project());
                    for path in PATHS {
                        let (was, now) = (number(&before, path), number(&after, path));
                        let theirs = |value: usize| own.iter().any(|(_, of, own)| *of == path && *own == value);
                        if own.iter().any(|(at, of, _)| *at >= to && *of == path) {
                            assert!(now == was || theirs(now), "seed {seed}, {path}: {log:?} {ran:?}");
                        } else {
                            assert_eq!(now, number(&points[to - 1], path), "seed {seed}, {path}: {log:?} {ran:?}");
                        }
                    }
                }
                5 => {
                    log.push("undo".to_owned());
                    assert!(matches!(program.run(&["rewind", "--undo", "--yes"]).code, 0 | 1 | 8));
                }
                _ => {
                    log.push("rewind".to_owned());
                    let ran = program.run(&["rewind", "--yes"]);
                    assert!(matches!(ran.code, 0 | 8), "{ran:?}");
                    let after = tree(&program.project());
                    let newer = |path: &&str| number(&after, path) > number(&before, path);
                    assert_eq!(PATHS.iter().find(|path| newer(path)), None, "seed {seed}: {log:?} {ran:?}");
                }
            }
        }
    }
}

/// More than can be kept: said by the rewind itself, not only in the list.
#[test]
fn a_rewind_says_that_too_many_files_changed() {
    let server = ModelServer::start([shell("mkdir many && cd many && seq 10001 | xargs touch"), Reply::text("done")]);
    let program = Program::with(&server);
    say(&program, "begin", true);
    let listed = program.run(&["rewind", "--list"]);
    assert!(listed.out.contains("! a command (too many files"), "{listed:?}");
    let ran = program.run(&["rewind", "--yes"]);
    assert!(ran.code == 8 && ran.out.contains("a command (too many files"), "{ran:?}");
}

/// A rewind is no crash: whoever goes on afterwards is told of nothing that was left open.
#[test]
fn a_rewind_leaves_nothing_open_and_what_goes_is_said() {
    let made = write(write(Reply::new(), "made", "agent\n"), "empty", "");
    let server = ModelServer::start([made, Reply::text("done"), Reply::text("I see")]);
    let program = Program::with(&server);
    say(&program, "begin", true);
    let back = program.run(&["rewind", "--yes"]);
    assert_eq!(back.code, 0, "{back:?}");
    assert!(back.out.contains("--- a/made\n+++ /dev/null\n") && back.out.contains("empty: empty, becomes nothing"));
    let on = say(&program, "what now", false);
    assert!(!on.err.contains("going on where it was left"), "{on:?}");
}

/// What is too large to be kept goes whole if it came since and is still what came, which is said. What was changed is named, and
/// nothing claims to put it back; what the user has touched is theirs.
#[test]
fn large_files_go_whole_or_are_named_and_left_alone() {
    let commands = [
        "truncate -s 9M made; truncate -s 9M mine; truncate -s 9M same; mkdir f; truncate -s 9M f/deep",
        "cp small large",
    ];
    let replies = commands.iter().map(|command| shell(command)).chain([Reply::text("done")]);
    let server = ModelServer::start(replies.collect::<Vec<_>>());
    let program = Program::with(&server).file("small", "small\n").file("large", vec![0; 9 << 20]);
    say(&program, "begin", true);
    let dry = program.run(&["rewind", "--dry-run"]);
    assert_eq!(dry.code, 8, "{dry:?}");
    assert!(dry.out.contains("made: 9437184 bytes, too large to be kept: removed whole\n"), "{dry:?}");
    assert!(dry.out.contains("4 newer files above 8 MB") && dry.out.contains("large (too large to be kept"), "{dry:?}");
    // As large as before, and of the same time; only the disk knows.
    let mine = program.project().join("mine");
    let modified = fs::metadata(&mine).unwrap().modified().unwrap();
    let mut file = fs::OpenOptions::new().write(true).open(&mine).unwrap();
    std::io::Write::write_all(&mut file, b"the user's").unwrap();
    file.set_modified(modified).unwrap();
    fs::remove_file(program.project().join("same")).unwrap();
    fs::write(program.project().join("same"), vec![0; 9 << 20]).unwrap();
    let back = program.run(&["rewind", "--yes"]);
    assert_eq!((back.code, back.err.contains("cannot be written")), (8, false), "{back:?}");
    assert!(
        back.out.contains("2 newer files above 8 MB") && back.out.contains("mine: it has been changed"),
        "{back:?}"
    );
    let is_there = |path: &str| program.project().join(path).exists();
    assert_eq!(["made", "f", "mine", "same"].map(is_there), [false, false, true, true]);
    let undone = program.run(&["rewind", "--undo", "--yes"]);
    assert!(undone.code == 8 && undone.out.contains("made: its earlier content was not kept"), "{undone:?}");
}

/// What was put back and taken back again before anybody heard of it is nothing to tell; what the lead has heard is corrected.
#[test]
fn the_lead_is_told_once_how_things_are() {
    let mut replies = vec![write(Reply::new(), "a", "agent")];
    replies.extend(["done", "one", "two", "three"].map(Reply::text));
    let server = ModelServer::start(replies);
    let program = Program::with(&server).file("a", "user");
    let last = || server.requests().last().unwrap().body.to_string();
    say(&program, "begin", true);
    assert_eq!(program.run(&["rewind", "--yes"]).code, 0);
    assert_eq!(program.run(&["rewind", "--undo", "--yes"]).code, 0);
    say(&program, "one", false);
    assert!(!last().contains("From the program"), "{}", last());
    assert_eq!(program.run(&["rewind", "--yes"]).code, 0);
    say(&program, "two", false);
    assert_eq!(last().matches("has put files back").count(), 1, "{}", last());
    assert_eq!(program.run(&["rewind", "--undo", "--yes"]).code, 0);
    say(&program, "three", false);
    assert_eq!(last().matches("The user has undone a restore").count(), 1, "{}", last());
}
