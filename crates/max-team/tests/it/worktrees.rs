//! Copies through the whole program: a member works in one, and what it left is looked at, taken and dropped.

use std::process::Command;
use std::time::{Duration, Instant};

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use super::chat::Terminal;
use super::context::wait_for;
use super::hands::large_page;
use super::plans::{news, plan, task, voice, write};
use super::program::{Program, Ran};

pub(crate) fn git(program: &Program, words: &[&str]) -> String {
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
pub(crate) fn team(check: &str) -> ModelServer {
    team_that(json!({ "verify": [check] }), &["a.txt", "b.txt", "新.txt"])
}

/// A team whose coder writes files in a copy, at a task with more to it.
fn team_that(task_with: Value, files: &[&str]) -> ModelServer {
    let mut only = json!({ "id": "impl", "title": "impl", "agent": "leo", "description": "Change it.", "retry": 0,
        "isolation": "worktree" });
    only.as_object_mut().unwrap().extend(task_with.as_object().unwrap().clone());
    let tasks = json!([only]);
    let changes = files.iter().map(|file| write(file, "copy\n")).chain([Reply::text("Changed.")]).collect();
    ModelServer::start(
        Script::new()
            .when(voice(task("impl"), changes))
            .when(voice(news("is over:"), vec![Reply::text("x"), Reply::text("All of it is done.")]))
            .on(news("please"), plan(tasks))
            .on(|_| true, Reply::text("I cannot say.")),
    )
}

pub(crate) fn project(server: &ModelServer) -> Program {
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
fn work_that_passes_its_checks_is_merged_and_the_worktree_removed() {
    let server = team("grep -q copy a.txt");
    let program = project(&server);
    let ran = program.run(&["-p", "change it, please", "--approve", "never"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "All of it is done.\n"), "{ran:?}");
    assert_eq!(["a.txt", "b.txt", "新.txt"].map(|name| program.read(name)), ["copy\n", "copy\n", "copy\n"]);
    assert_eq!(git(&program, &["log", "--format=%s"]), "first\n", "no commit is made");
    assert_eq!(listed(&program), [] as [Value; 0]);
    // The merge is one step, and is put back as one.
    let points = program.run(&["rewind", "--list"]);
    assert!(points.out.contains("~a.txt  ~b.txt  +新.txt"), "{points:?}");
    assert_eq!(program.run(&["rewind", "--yes"]).code, 0);
    assert_eq!((program.read("a.txt"), program.read("b.txt")), ("one\n".to_owned(), "one\n".to_owned()));
    assert!(!program.project().join("新.txt").exists() && program.read("dirty.txt") == "mine\n");
    said(&program.run(&["worktrees", "list"]), 0, "there are no worktrees");
    said(&program.run(&["worktrees", "show"]), 1, "there are no worktrees");
    said(&program.run(&["worktrees", "accept", "zzz"]), 2, "there is no worktree `zzz`");
}

#[test]
fn work_that_fails_its_checks_is_kept_for_the_user() {
    let server = team("false");
    let program = project(&server);
    let ran = program.run(&["-p", "change it, please", "--approve", "never"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert_eq!(program.read("a.txt"), "one\n");
    let all = listed(&program);
    let told = format!("(3 files): `max-team worktrees show {}` to look", all[0]["id"].as_str().unwrap());
    assert!(ran.err.contains(&told), "the user is told, too: {ran:?}");
    let (id, root) = (all[0]["id"].as_str().unwrap(), all[0]["root"].as_str().unwrap());
    assert_eq!((all.len(), &all[0]["open"], &all[0]["by"]), (1, &json!(3), &json!("leo at `impl`")), "{all:?}");
    assert_eq!(std::fs::read_to_string(format!("{root}/dirty.txt")).unwrap(), "mine\n");
    said(&program.run(&["worktrees", "clean"]), 0, "0 worktrees removed, 1 kept");

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
    said(&program.run(&["worktrees", "accept", short, "none.txt"]), 2, "`none.txt` has not changed in this worktree");
    said(&program.run(&["worktrees", "accept", short, "a.txt"]), 0, "merged 1 file into the project");
    assert_eq!((program.read("a.txt"), program.read("b.txt")), ("copy\n".to_owned(), "mine\n".to_owned()));
    assert!(!program.project().join("新.txt").exists());
    said(&program.run(&["worktrees", "reject", short, "新.txt"]), 0, "1 file still waits for a decision");
    said(&program.run(&["worktrees", "accept", short]), 8, "b.txt: it has changed in the project too");
    assert_eq!(program.read("b.txt"), "mine\n");
    // A no stands if the file cannot be taken after all.
    let program = program.file("新.txt", "mine\n");
    said(&program.run(&["worktrees", "accept", short, "新.txt"]), 8, "the project has another file there");
    let shown = program.run(&["worktrees", "show", short]);
    assert!(shown.out.contains("新.txt  (rejected)"), "{}", shown.out);
    said(&program.run(&["worktrees", "reject", short]), 0, "the worktree is removed, and its changes with it");
    assert_eq!(listed(&program), [] as [Value; 0]);
    assert_eq!(program.read("a.txt"), "copy\n", "what was taken stays");
    // What the user took is of the session whose agent did it.
    assert_eq!(program.run(&["rewind", "--yes", "a.txt"]).code, 0);
    assert_eq!((program.read("a.txt"), program.read("b.txt")), ("one\n".to_owned(), "mine\n".to_owned()));
}

/// A lead that has somebody with a copy of their own change something.
pub(crate) fn delegating() -> (ModelServer, Program) {
    let calls = vec![
        Reply::new().tool("d", "dispatch_task", json!({ "agent": "scribe", "description": "Write into a.txt." })),
        Reply::text("The scribe is done."),
    ];
    let asked = |request: &Recorded| request.user_texts().iter().any(|text| text.contains("please"));
    let server = ModelServer::start(
        Script::new()
            .when(voice(asked, calls))
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
fn worktree_changes_are_shown_in_the_chat_and_accepted_dropped_or_left() {
    for (key, file, kept, words) in [
        ("y", "copy\n", 0, "1 file is in the project now"),
        ("n", "one\n", 0, "The user has rejected the changes"),
        ("Escape", "one\n", 1, "the user decides later"),
    ] {
        let (server, program) = delegating();
        let mut terminal = asked(&program, &[]);
        let screen = terminal.screen();
        assert!(screen.contains("? max has changes for you, in a worktree"), "{screen}");
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
fn worktree_changes_are_decided_from_the_inbox_after_a_kill() {
    for (verb, more, file, words) in [
        ("approve", &[][..], "copy\n", "1 file is in the project now"),
        ("deny", &["-m", "too long"], "one\n", "The user has rejected the changes"),
    ] {
        let (server, program) = delegating();
        asked(&program, &[]).kill();
        let inbox = program.run(&["inbox", "--json"]).json();
        let id = inbox[0]["short"].as_str().unwrap();
        assert_eq!((&inbox[0]["kind"], &inbox[0]["lines_added"]), (&json!("merge"), &json!(1)), "{inbox}");
        said(&program.run(&["inbox"]), 0, "has changes for you, in a worktree (+1 -1)");
        said(&program.run(&["inbox", id]), 0, "+copy");
        assert_eq!(program.run(&[&[verb, id], more].concat()).code, 0);
        let ran = program.run(&[&["-c", "-p", ""], &MODE[..]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (0, "The scribe is done.\n"), "{ran:?}");
        assert_eq!((program.read("a.txt").as_str(), listed(&program).len()), (file, 0), "{verb}");
        told(&server, words);
        // What they say is no part of what the scribe says.
        let along = "\"[The user decided about the changes of `dispatch_task`. They say: too long]\"";
        let requests = server.requests();
        assert_eq!(requests.last().unwrap().body.to_string().contains(along), verb == "deny");
    }
}

#[test]
fn a_headless_run_keeps_the_worktree_and_names_the_command() {
    let (server, program) = delegating();
    let ran = program.run(&[&["-p", "change it, please"], &MODE[..]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "The scribe is done.\n"), "{ran:?}");
    let id = listed(&program)[0]["id"].as_str().unwrap().to_owned();
    let command = format!("max-team worktrees accept {id}");
    assert!(ran.err.contains(&command), "{ran:?}");
    told(&server, &command);
    said(&program.run(&["worktrees", "accept", &id, "a.txt"]), 0, "merged 1 file into the project");
    assert_eq!((program.read("a.txt"), listed(&program).len()), ("copy\n".to_owned(), 0));
}

/// A lead whose teammate changes something in a copy.
fn with_teammate() -> (ModelServer, Program) {
    let spawn =
        json!({ "name": "ann", "role": "writer", "prompt": "Change a.txt.", "type": "leo", "isolation": "worktree" });
    let server = ModelServer::start(Script::new().when(move |request| {
        let is_teammate = request.user_texts().first().is_some_and(|text| text.starts_with("You are `ann`"));
        Some(match (is_teammate, request.tool_results()) {
            (true, 0) => write("a.txt", "copy\n"),
            (true, _) => Reply::text("Changed."),
            (false, 0) => Reply::new().tool("s", "spawn_teammate", spawn.clone()),
            (false, _) => Reply::text("So it is."),
        })
    }));
    let program = project(&server);
    (server, program)
}

#[test]
fn worktree_changes_of_a_teammate_are_asked_about_after_its_shutdown() {
    let (server, program) = with_teammate();
    let mut terminal = Terminal::open(&program, &MODE);
    terminal.wait("or give a task");
    terminal.keys(&["change it, please", "Enter"]);
    wait_for(&program, "turn_ended", "Changed.");
    said(&program.run(&["team", "shutdown", "ann"]), 0, "ann");
    terminal.wait("leave them for later");
    let screen = terminal.screen();
    assert!(screen.contains("? ann has changes for you, in a worktree"), "{screen}");
    assert_eq!(program.read("a.txt"), "one\n", "nothing is taken before the yes");
    terminal.answer("y");
    wait_for(&program, "turn_ended", "1 file is in the project now");
    assert_eq!((program.read("a.txt").as_str(), listed(&program).len()), ("copy\n", 0));
    terminal.keys(&["and now?", "Enter"]);
    let told = |request: &Recorded| request.contains("and now?") && request.contains("1 file is in the project now");
    let until = Instant::now() + Duration::from_secs(20);
    while !server.requests().iter().any(told) {
        assert!(Instant::now() < until, "{}", terminal.screen());
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn worktree_changes_of_a_teammate_are_reported_in_a_headless_run() {
    let (_server, program) = with_teammate();
    let ran = program.run(&[&["-p", "change it, please"], &MODE[..]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(program.run(&["team", "shutdown", "ann", "--now"]).code, 0);
    let ran = program.run(&[&["-c", "-p", ""], &MODE[..]].concat());
    let id = listed(&program)[0]["id"].as_str().unwrap().to_owned();
    said(&ran, 0, &format!("max-team worktrees show {id}"));
    assert_eq!(program.run(&["inbox", "--json"]).json(), json!([]), "it is not asked any more");
    said(&program.run(&["worktrees", "accept", &id]), 0, "merged 1 file into the project");
}

/// A copy with three files in it that nobody has decided about.
fn waiting() -> (ModelServer, Program, String) {
    let server = team("false");
    let program = project(&server);
    assert_ne!(program.run(&["-p", "change it, please", "--approve", "never"]).code, 0);
    let id = listed(&program)[0]["id"].as_str().unwrap().to_owned();
    (server, program, id)
}

/// Runs the program while a call of the system on the project's folder is meddled with.
fn meddled(program: &Program, how: &str, arguments: &[&str]) -> Ran {
    let (project, inject) = (program.project(), format!("inject=renameat:{how}"));
    let words = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", project.to_str().unwrap()];
    let prefix = [&words[..], &["-e", "trace=renameat", "-e", &inject]].concat();
    super::program::finish(program.prefixed(&prefix, arguments).spawn().unwrap())
}

#[test]
fn half_a_merge_is_finished_only_by_accept() {
    let (_server, program, id) = waiting();
    assert_ne!(meddled(&program, "signal=SIGKILL:when=2", &["worktrees", "accept", &id]).code, 0);
    let half = || ["a.txt", "b.txt", "新.txt"].map(|name| std::fs::read_to_string(program.project().join(name)).ok());
    let first = half();
    assert_eq!(first.iter().flatten().filter(|text| *text == "copy\n").count(), 1, "{first:?}");
    let all = listed(&program);
    assert_eq!(half(), first, "whoever looks takes nothing");
    assert_eq!(all[0]["begun"], json!(["a.txt"]));
    said(&program.run(&["worktrees", "show", &id]), 0, "was interrupted; already in the project: `a.txt`");
    said(&program.run(&["worktrees", "clean"]), 0, "0 worktrees removed, 1 kept");
    assert_eq!(half(), first, "nor does who shows or cleans");
    // It is a step of the session from the moment on at which it may have done something.
    said(&program.run(&["rewind", "--list"]), 0, "~a.txt  ~b.txt  +新.txt");
    said(&program.run(&["rewind", "--dry-run"]), 0, "-copy\n+one\n");

    // Undone by hand, and then said no to: nothing of it comes back.
    git(&program, &["checkout", "--", "a.txt", "b.txt"]);
    let undone = half();
    listed(&program);
    said(&program.run(&["worktrees", "reject", &id]), 0, "the worktree is removed");
    assert_eq!(half(), undone);
    assert_eq!(listed(&program), [] as [Value; 0]);
}

#[test]
fn half_a_merge_of_a_plan_is_put_back_and_made_again_by_the_plan_alone() {
    let server = team("grep -q copy a.txt");
    let program = project(&server);
    let ran = meddled(&program, "signal=SIGKILL:when=2", &["-p", "change it, please", "--approve", "never"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    let texts = || ["a.txt", "b.txt"].map(|name| program.read(name));
    assert_eq!(texts(), ["copy\n", "one\n"], "killed half way");
    let all = listed(&program);
    assert_eq!(texts(), ["copy\n", "one\n"], "whoever looks neither goes on nor back");
    assert_eq!(all[0]["begun"], json!(["a.txt"]));
    said(&program.run(&["rewind", "--list"]), 0, "~a.txt  ~b.txt  +新.txt");
    let ran = program.run(&["-c", "-p", ""]);
    assert_eq!((ran.code, texts()), (0, ["copy\n", "copy\n"].map(str::to_owned)), "{ran:?}");
    assert_eq!((program.read("新.txt").as_str(), listed(&program).len()), ("copy\n", 0));
    assert_eq!(program.run(&["rewind", "--yes"]).code, 0);
    assert_eq!((texts(), program.project().join("新.txt").exists()), (["one\n", "one\n"].map(str::to_owned), false));
}

#[test]
fn a_merge_that_meets_a_full_disk_says_what_it_took_and_puts_it_back() {
    let (_server, program, id) = waiting();
    let ran = meddled(&program, "error=ENOSPC:when=2", &["worktrees", "accept", &id]);
    said(&ran, 1, "the disk is full");
    for part in ["nothing was accepted", "restored: `a.txt`", "not accepted: `b.txt`"] {
        assert!(ran.err.contains(part), "{part}: {ran:?}");
    }
    assert_eq!(["a.txt", "b.txt"].map(|name| program.read(name)), ["one\n", "one\n"]);

    let ran = meddled(&program, "error=ENOSPC:when=2+", &["worktrees", "accept", &id]);
    said(&ran, 1, "in the project already: `a.txt`");
    let taken = program.read("a.txt");
    said(&program.run(&["worktrees", "reject", &id]), 0, "they stay in the project: `a.txt`");
    assert_eq!((taken.as_str(), program.read("a.txt").as_str()), ("copy\n", "copy\n"));
    assert_eq!(program.read("b.txt"), "one\n");
}

#[test]
fn a_declared_file_comes_back_though_git_ignores_it() {
    let server = team_that(json!({ "outputs": ["build/out.txt"] }), &["build/out.txt"]);
    let program = project(&server).file(".gitignore", "build/\n*.log\n").file("build/out.txt", "old\n");
    let ran = program.run(&["-p", "change it, please", "--approve", "never"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(program.read("build/out.txt"), "copy\n");
    assert_eq!(listed(&program), [] as [Value; 0]);
}

#[test]
fn other_ignored_files_are_told_of_and_kept() {
    let server = team_that(json!({ "outputs": ["build/out.txt"] }), &["build/out.txt", "build/more.txt", "x.log"]);
    let program = project(&server).file(".gitignore", "build/\n*.log\n");
    let ran = program.run(&["-p", "change it, please", "--approve", "never"]);
    assert_eq!((ran.code, program.read("build/out.txt").as_str()), (0, "copy\n"), "{ran:?}");
    assert!(!program.project().join("x.log").exists());
    let told = "ignored by git, not accepted and still in the worktree: `build/more.txt`, `x.log`";
    assert!(server.requests().iter().any(|request| request.contains(told)), "the lead hears of it");
    said(&ran, 0, "(2 files that git ignores, not merged): `max-team worktrees show");

    let all = listed(&program);
    let id = all[0]["id"].as_str().unwrap();
    assert_eq!((&all[0]["open"], &all[0]["ignored"]), (&json!(0), &json!(2)), "{all:?}");
    said(&program.run(&["worktrees", "list"]), 0, "0 (+2 ignored)");
    said(&program.run(&["worktrees", "show", id]), 0, "ignored by git, not merged:\n  build/more.txt\n  x.log\n");
    said(&program.run(&["worktrees", "clean"]), 0, "0 worktrees removed, 1 kept");
    said(&program.run(&["worktrees", "accept", id]), 0, "2 files are ignored by git and were not merged");
    said(&program.run(&["worktrees", "accept", id, "x.log"]), 0, "merged 1 file into the project");
    assert_eq!(program.read("x.log"), "copy\n");
    said(&program.run(&["worktrees", "reject", id, "build/more.txt"]), 0, "nothing is left to decide");
    assert_eq!(listed(&program), [] as [Value; 0]);
}

#[test]
fn one_that_works_in_copies_does_so_when_it_is_talked_to() {
    let server = ModelServer::start(
        Script::new()
            .when(voice(
                |request| request.contains("change it"),
                vec![write("a.txt", "copy\n"), Reply::text("Changed.")],
            ))
            .on(|_| true, Reply::text("Nothing to do.")),
    );
    let card = "---\nname: apart\ndescription: Works apart\ntools: Write, Read\nisolation: worktree\n---\nYou write.\n";
    let program = project(&server).file(".claude/agents/apart.md", card);
    let ways: [&[&str]; 2] = [&["agents", "test", "apart", "change it"], &["--agent", "apart", "-p", "change it"]];
    for way in ways {
        let ran = program.run(&[way, &["--permission-mode", "acceptEdits"]].concat());
        assert_eq!((ran.code, ran.out.as_str(), program.read("a.txt").as_str()), (0, "Changed.\n", "one\n"), "{ran:?}");
        let all = listed(&program);
        let id = all[0]["id"].as_str().unwrap();
        said(
            &ran,
            0,
            &format!("work of apart is in a worktree and not in the project (1 file): `max-team worktrees show {id}`"),
        );
        said(&program.run(&["worktrees", "accept", id]), 0, "merged 1 file into the project");
        assert_eq!((program.read("a.txt").as_str(), listed(&program).len()), ("copy\n", 0));
        git(&program, &["checkout", "--", "a.txt"]);
    }
    // A session that goes on after its copy was taken gets another; one without changes goes by itself.
    let ran = program.run(&["--agent", "apart", "-c", "-p", "and now?"]);
    assert_eq!((ran.code, listed(&program).len()), (0, 0), "{ran:?}");

    std::fs::remove_dir_all(program.project().join(".git")).unwrap();
    let ran = program.run(&["--agent", "apart", "-p", "change it", "--permission-mode", "acceptEdits"]);
    said(&ran, 1, "is in no git repository");
    assert_eq!(program.read("a.txt"), "one\n", "nobody works in the project instead");
}

/// Changes that wait for a decision hold up no call that only reads.
#[test]
fn pages_are_read_while_changes_of_a_worktree_wait() {
    let url = format!("http://127.0.0.1:{}/", large_page());
    let read = |reply: Reply| reply.tool("f", "web_fetch", json!({ "url": url }));
    let replies = vec![
        write("a.txt", "copy\n"),
        read(Reply::new()),
        Reply::text("Changed."),
        read(Reply::new()),
        Reply::text("Read again."),
    ];
    let server = ModelServer::start(Script::new().when(voice(|_| true, replies)));
    let card = "---\nname: apart\nrole: scribe\ndescription: Works apart\nisolation: worktree\n\
        tools: [write_file, web_fetch]\n---\nWrite.\n";
    let program = project(&server).file(".max-team/agents/apart.md", card);
    let allowed = [&MODE[..], &["--allowed-tools", "WebFetch(domain:127.0.0.1:*)"]].concat();
    let ways: [(&[&str], &str); 2] =
        [(&["--agent", "apart", "-p", "change it"], "Changed.\n"), (&["-c", "-p", "read it again"], "Read again.\n")];
    for (way, answer) in ways {
        let ran = program.run(&[way, &allowed].concat());
        assert_eq!((ran.code, ran.out.as_str(), listed(&program).len()), (0, answer, 1), "{ran:?}");
        let requests = server.requests();
        let last = requests.last().unwrap();
        assert!(last.contains("line 0") && !last.contains("no rule"), "{}", last.body);
    }
}

#[test]
fn a_worktree_of_a_teammate_outlives_the_start_of_its_team() {
    let server = ModelServer::start(
        Script::new()
            .when(voice(
                |request| request.contains("change it"),
                vec![
                    write("a.txt", "copy\n"),
                    Reply::text("Changed."),
                    write("b.txt", "copy\n"),
                    Reply::text("And the other."),
                ],
            ))
            .on(|_| true, Reply::text("Nothing to do.")),
    );
    let card = "---\nname: apart\ndescription: Works apart\ntools: Write, Read\nisolation: worktree\n---\nYou write.\n";
    let program = project(&server).file(".claude/agents/apart.md", card);
    let free = ["--permission-mode", "acceptEdits"];
    let ran = program.run(&[&["--agent", "apart", "-p", "change it"][..], &free].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "Changed.\n"), "{ran:?}");
    let ran = program.run(&[&["-c", "-p", "and the other"][..], &free].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "And the other.\n"), "{ran:?}");
    assert_eq!(["a.txt", "b.txt"].map(|file| program.read(file)), ["one\n", "one\n"], "nothing is in the project yet");
    let all = listed(&program);
    said(&program.run(&["worktrees", "accept", all[0]["id"].as_str().unwrap()]), 0, "merged 2 files into the project");
    assert_eq!(["a.txt", "b.txt"].map(|file| program.read(file)), ["copy\n", "copy\n"]);
}

/// While a project is copied nothing else comes: why is said once.
#[test]
fn making_the_worktrees_of_a_team_is_reported() {
    let server = ModelServer::start(Script::new().when(|_| Some(Reply::text("Here."))));
    let member = |name: &str| format!("  - {{name: {name}, prompt: Begin., isolation: worktree}}\n");
    let team = format!("members:\n{}{}", member("ann"), member("bob"));
    let program = project(&server).file(".max-team/teams/two.yaml", &team);
    let ran = program.run(&["--team", "two", "-p", "go"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.err.matches("making worktrees for 2 of the team").count(), 1, "{ran:?}");
}
