//! Files put back: what agents changed, and nothing that anybody else did.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use max_team_testkit::{Gate, ModelServer, Reply};
use serde_json::json;

use crate::chat::Terminal;
use crate::program::{Program, Ran, finish, kill, kill_points, killed_at, signal, soon};

mod deletions;
mod meanwhile;
mod parallel;
mod unknown;

/// Everything goes, the first time and whenever it goes on.
const FREE: [&str; 2] = ["--permission-mode", "bypassPermissions"];

fn say(program: &Program, words: &str, first: bool) -> Ran {
    let go_on = if first { vec![] } else { vec!["-c"] };
    let arguments: Vec<&str> = go_on.into_iter().chain(["-p", words]).chain(FREE).collect();
    let ran = program.run(&arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

fn write(reply: Reply, path: &str, content: &str) -> Reply {
    reply.tool(format!("w-{path}"), "write_file", json!({ "path": path, "content": content }))
}

fn shell(command: &str) -> Reply {
    Reply::new().tool("s", "run_shell", json!({ "command": command }))
}

/// Every file of the project, with its bytes and whether it can be run; of a link, where it leads.
fn tree(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, bool)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.strip_prefix(root).unwrap().to_owned();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                files.insert(name, (target.as_os_str().as_encoded_bytes().to_vec(), false));
            } else {
                let runs = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
                files.insert(name, (fs::read(&path).unwrap(), runs));
            }
        }
    }
    files
}

#[test]
fn turns_are_undone_one_after_the_other_and_that_is_undone_too() {
    let server = ModelServer::start([
        write(write(Reply::new(), "new/file.txt", "made\n"), "old.txt", "one\n"),
        Reply::text("first"),
        Reply::new().tool("e", "edit_file", json!({ "path": "old.txt", "old": "one", "new": "two" })),
        Reply::text("second"),
        Reply::text("third"),
    ]);
    let program = Program::with(&server).file("old.txt", "zero\n").file("tool.sh", "#!/bin/sh\n");
    let tool = program.project().join("tool.sh");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let zero = tree(&program.project());
    say(&program, "begin", true);
    let one = tree(&program.project());
    say(&program, "go on", false);
    let two = tree(&program.project());

    let listed = program.run(&["rewind", "--list"]);
    assert!(listed.out.contains("turn:1") && listed.out.contains("+new/file.txt  ~old.txt"), "{listed:?}");
    let asked = program.run(&["rewind"]);
    assert_eq!(asked.code, 5, "nobody is here to ask: {asked:?}");
    assert!(asked.out.contains("-two\n+one\n"), "{asked:?}");
    let dry = program.run(&["rewind", "--dry-run", "--to", "turn:1"]);
    assert_eq!((dry.code, tree(&program.project()) == two), (0, true), "{dry:?}");

    assert_eq!(program.run(&["rewind", "--yes"]).code, 0);
    assert_eq!(tree(&program.project()), one);
    let back = program.run(&["rewind", "--yes"]);
    assert_eq!((back.code, tree(&program.project())), (0, zero.clone()), "{back:?}");
    assert!(!program.project().join("new").exists(), "a folder that has become empty goes");
    assert_eq!(program.run(&["rewind", "--undo", "--yes"]).code, 0);
    assert_eq!(tree(&program.project()), one);
    assert_eq!(program.run(&["rewind", "--undo", "--yes"]).code, 0);
    assert_eq!(tree(&program.project()), zero);
    let nothing = program.run(&["rewind", "--yes"]);
    assert_eq!((nothing.code, nothing.out.contains("nothing to put back")), (0, true), "{nothing:?}");

    say(&program, "what now", false);
    let told = server.requests().last().unwrap().body.to_string();
    assert_eq!(told.matches("From the program").count(), 1, "{told}");
    assert!(told.contains("`new/file.txt` (removed)"), "{told}");
    assert!(server.problems().is_empty(), "{:?}", server.problems());
    let verified = program.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
}

/// It is over when its agent is told so, and what it did until then is known.
#[test]
fn changes_of_a_background_command_are_put_back() {
    let server = ModelServer::start([
        Reply::new().tool("b", "run_shell", json!({ "command": "cp a made && rm b", "background": true })),
        Reply::new().tool("o", "shell_output", json!({ "id": "sh-1", "wait": 60 })),
        Reply::text("done"),
    ]);
    let program = Program::with(&server).file("a", "a\n").file("b", "b\n");
    let before = tree(&program.project());
    say(&program, "begin", true);
    assert!(program.project().join("made").exists() && !program.project().join("b").exists());
    let listed = program.run(&["rewind", "--list"]);
    assert!(listed.out.contains("-b  +made") && !listed.out.contains('!'), "{listed:?}");
    assert_eq!(program.run(&["rewind", "--yes"]).code, 0);
    assert_eq!(tree(&program.project()), before);
}

/// Whoever stops the program stops its commands; what those have done is still the agent's.
#[test]
fn changes_of_a_killed_command_are_put_back() {
    for background in [false, true] {
        let gate = Gate::new();
        let command = json!({ "command": "cp a made && sleep 600", "background": background });
        let server =
            ModelServer::start([Reply::new().tool("s", "run_shell", command), Reply::text("never").gate_before(&gate)]);
        let program = Program::with(&server).file("a", "a\n");
        let before = tree(&program.project());
        let mut running = program.start(&[&["-p", "begin"], &FREE[..]].concat());
        while !program.project().join("made").exists() || (background && server.count() < 2) {
            assert!(running.try_wait().unwrap().is_none(), "{:?}", finish(running));
            std::thread::yield_now();
        }
        signal(&running, "TERM");
        let ended = finish(running);
        gate.open();
        assert_eq!(ended.code, 143, "{ended:?}");
        let back = program.run(&["rewind", "--yes"]);
        assert_eq!((back.code, tree(&program.project()) == before), (0, true), "{background}: {back:?}");
    }
}

/// What no session refers to any more is not kept for anybody.
#[test]
fn bytes_go_with_the_last_session_that_refers_to_them() {
    let server = ModelServer::start([shell("rm a"), Reply::text("one"), shell("rm b"), Reply::text("two")]);
    let program = Program::with(&server).file("a", "forgotten marmalade\n").file("b", "kept\n").file("c", "now\n");
    say(&program, "first", true);
    say(&program, "second", true);
    let sessions = program.run(&["sessions", "list", "--json"]).json();
    let kept = |bytes: &str| tree(&program.home().join("images")).values().any(|(held, _)| held == bytes.as_bytes());
    assert!(kept("forgotten marmalade\n") && kept("kept\n") && kept("now\n"));
    let first = sessions[1]["session"].as_str().unwrap();
    assert_eq!(program.run(&["sessions", "forget", first, "--yes"]).code, 0);
    assert!(!kept("forgotten marmalade\n") && kept("kept\n") && kept("now\n"));
    assert_eq!(program.run(&["rewind", "--yes"]).code, 0);
    assert_eq!(program.read("b"), "kept\n");
}

#[test]
fn later_changes_of_the_user_stay_and_are_named() {
    let server = ModelServer::start([
        write(write(write(Reply::new(), "a", "agent"), "b", "agent"), "c/d", "agent"),
        Reply::text("done"),
    ]);
    let program = Program::with(&server).file("a", "user").file("b", "user");
    say(&program, "begin", true);
    fs::write(program.project().join("b"), "user again").unwrap();
    let one = program.run(&["rewind", "--yes", "./c"]);
    assert_eq!((one.code, program.project().join("c/d").exists(), program.read("a").as_str()), (0, false, "agent"));
    let ran = program.run(&["rewind", "--yes"]);
    assert_eq!(ran.code, 8, "{ran:?}");
    assert!(ran.out.contains("b: it has been changed since"), "{ran:?}");
    assert_eq!((program.read("a").as_str(), program.read("b").as_str()), ("user", "user again"));
}

/// What no file tool names: a folder deleted, bytes that are no text, a link in the place of a file, a program, in a project
/// without git; what it ignores is left alone.
#[test]
fn changes_of_a_command_are_put_back() {
    let commands = [
        "rm -r folder",
        "ln -sf /etc/hostname plain.txt",
        "chmod -x tool.sh",
        "mv binary.bin moved.bin",
        "cp tool.sh ignored/out",
        "mkdir was && cp tool.sh was/new.sh",
    ];
    let replies: Vec<Reply> = commands.iter().map(|command| shell(command)).chain([Reply::text("done")]).collect();
    let server = ModelServer::start(replies);
    let program = Program::with(&server)
        .file("folder/deep/a.txt", "a\n")
        .file("folder/b.bin", [0, 159, 146, 150])
        .file("plain.txt", "plain\n")
        .file("tool.sh", "#!/bin/sh\n")
        .file("binary.bin", [255, 0, 1])
        .file(".gitignore", "ignored/\n")
        .file("ignored/keep", "mine");
    fs::set_permissions(program.project().join("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("folder/b.bin", program.project().join("link")).unwrap();
    let before = tree(&program.project());
    say(&program, "wreck it", true);
    assert!(!program.project().join("folder").exists(), "{:?}", server.requests().last().map(|last| &last.body));
    assert!(program.project().join("plain.txt").is_symlink());
    let ran = program.run(&["rewind", "--yes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut after = tree(&program.project());
    assert!(after.remove(Path::new("ignored/out")).is_some(), "what is ignored is nobody's to put back");
    assert_eq!(after, before);
    assert!(fs::read_to_string("/etc/hostname").is_ok_and(|text| text != "plain\n"), "no link is followed");
    assert_eq!(program.run(&["rewind", "--undo", "--yes"]).code, 0);
    assert!(!program.project().join("folder").exists() && program.project().join("plain.txt").is_symlink());
}

fn mode(program: &Program, path: &str) -> u32 {
    fs::metadata(program.project().join(path)).unwrap().permissions().mode() & 0o777
}

/// What only its owner may read stays so, whoever removed or replaced it, and is so at the first instant that it is back.
#[test]
fn a_secret_comes_back_as_one() {
    let server = ModelServer::start([
        shell("rm gone"),
        shell("mv -f other moved"),
        write(Reply::new(), "written", "agent"),
        Reply::text("done"),
    ]);
    let names = ["gone", "moved", "written"];
    let program =
        names.iter().fold(Program::with(&server), |program, name| program.file(name, *name)).file("other", "x");
    for name in names {
        fs::set_permissions(program.project().join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let before = tree(&program.project());
    say(&program, "begin", true);
    assert_eq!((mode(&program, "moved"), mode(&program, "written")), (0o644, 0o600));
    // Killed when the first one is about to get its name: what is left of it is nobody else's to read.
    killed_at_the_first_name(&program);
    for entry in fs::read_dir(program.project()).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let is_secret = names.contains(&text.as_str());
        assert!(!is_secret || entry.metadata().unwrap().permissions().mode() & 0o077 == 0, "{entry:?}");
    }
    assert_eq!(program.run(&["rewind", "--yes"]).code, 0);
    assert_eq!(tree(&program.project()), before);
    assert_eq!(names.map(|name| mode(&program, name)), [0o600; 3]);
    assert_eq!(mode(&program, "other"), 0o644);
    assert_eq!(program.run(&["rewind", "--undo", "--yes"]).code, 0);
    assert_eq!((program.read("moved").as_str(), mode(&program, "written")), ("x", 0o600));
}

/// A rewind that is killed when the first file is about to get its name.
fn killed_at_the_first_name(program: &Program) {
    let prefix = ["strace", "-f", "-o", "/dev/null", "-e", "trace=renameat,renameat2", "-e"];
    let inject = ["inject=renameat,renameat2:signal=SIGKILL:when=1"];
    let mut killed = program.prefixed(&[&prefix[..], &inject].concat(), &["rewind", "--yes"]);
    assert_ne!(finish(killed.spawn().unwrap()).code, 0);
}

/// What each may do with a file comes back whole, also where nothing else has changed and where nobody may write it any more.
#[test]
fn permissions_come_back_to_the_last_bit() {
    let server = ModelServer::start([
        shell(
            "chmod 600 group; chmod 444 shut; rm gone; echo x > both; chmod 400 both; chmod 666 program; chmod 600 mine",
        ),
        write(Reply::new(), "written", "agent"),
        Reply::text("done"),
    ]);
    let modes =
        [("group", 0o640), ("shut", 0o664), ("gone", 0o750), ("both", 0o604), ("program", 0o755), ("written", 0o660)];
    let program = modes.iter().fold(Program::with(&server), |program, (name, _)| program.file(name, *name));
    let program = program.file("mine", "mine");
    let set = |name: &str, mode| {
        fs::set_permissions(program.project().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    modes.iter().for_each(|(name, mode)| set(name, *mode));
    say(&program, "begin", true);
    let done = [("group", 0o600), ("shut", 0o444), ("both", 0o400), ("program", 0o666), ("written", 0o660)];
    assert_eq!(done.map(|(name, _)| (name, mode(&program, name))), done);
    set("mine", 0o640);
    let shown = program.run(&["rewind", "--dry-run"]);
    assert!(shown.out.contains("+++ b/group\nmode: 0600 becomes 0640\n"), "{shown:?}");
    // One that is about to get its name back is nobody's to read who will not be one.
    killed_at_the_first_name(&program);
    for entry in fs::read_dir(program.project()).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let most = modes.iter().find(|(name, _)| *name == text).map_or(0o777, |(_, mode)| *mode);
        let has = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert!(has & !most == 0 || text == "program", "{entry:?} {has:o}");
    }
    assert_eq!(program.run(&["rewind", "--yes"]).code, 8, "what the user has opened since is theirs");
    assert_eq!(modes.map(|(name, _)| (name, mode(&program, name))), modes);
    assert_eq!((program.read("both").as_str(), mode(&program, "mine")), ("both", 0o640));
    assert_eq!(program.run(&["rewind", "--undo", "--yes"]).code, 0);
    assert_eq!(done.map(|(name, _)| (name, mode(&program, name))), done);
}

/// `kill -9` at a sample of the calls of one kind: what was begun is gone on with by the next one.
fn killed_at_some(calls: &str) {
    let names = ["a", "b", "c/d", "e"];
    let written = || {
        let reply = names.iter().fold(Reply::new(), |reply, name| write(reply, name, "agent"));
        let server = ModelServer::start([reply, Reply::text("done")]);
        let program = names.iter().take(3).fold(Program::with(&server), |program, name| program.file(name, *name));
        let before = tree(&program.project());
        say(&program, "begin", true);
        (program, before)
    };
    let (calm, _) = written();
    let mut fired = 0;
    for n in kill_points(calls, |prefix| calm.prefixed(prefix, &["rewind", "--yes"])) {
        let (program, before) = written();
        let prefix = killed_at(calls, n);
        let prefix: Vec<&str> = prefix.iter().map(String::as_str).collect();
        let killed = finish(program.prefixed(&prefix, &["rewind", "--yes"]).spawn().unwrap());
        fired += usize::from(killed.code != 0);
        let again = program.run(&["rewind", "--yes"]);
        assert_eq!(again.code, 0, "{n}: {again:?}");
        assert_eq!(tree(&program.project()), before, "{n}");
        let verified = program.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{verified:?}");
    }
    assert!(fired > 1, "strace never fired");
}

#[test]
fn killed_between_its_files_it_is_finished_by_the_next() {
    killed_at_some("renameat,renameat2,unlinkat");
}

#[test]
fn killed_while_it_is_written_down_it_is_finished_by_the_next() {
    killed_at_some("pwrite64");
}

/// A full disk: what could not be put back is named, nothing is half written, and it can be done again.
#[test]
fn on_a_full_disk_the_rest_is_put_back_later() {
    let server = ModelServer::start([write(write(Reply::new(), "a", "agent"), "b", "agent"), Reply::text("done")]);
    let program = Program::with(&server).file("a", "user's a").file("b", "user's b");
    let before = tree(&program.project());
    say(&program, "begin", true);
    let rename = ["strace", "-f", "-o", "/dev/null", "-e", "trace=renameat", "-e"];
    let prefix: Vec<&str> = rename.into_iter().chain(["inject=renameat:error=ENOSPC:when=1"]).collect();
    let ran = finish(program.prefixed(&prefix, &["rewind", "--yes"]).spawn().unwrap());
    assert_eq!(ran.code, 8, "{ran:?}");
    assert!(ran.err.contains("a: cannot write `a`: the disk is full"), "{ran:?}");
    assert_eq!((program.read("a").as_str(), program.read("b").as_str()), ("agent", "user's b"));
    let again = program.run(&["rewind", "--yes"]);
    assert_eq!((again.code, tree(&program.project())), (0, before), "{again:?}");
}

#[test]
fn nothing_is_put_back_while_an_agent_works() {
    let gate = Gate::new();
    let server = ModelServer::start([write(Reply::new(), "a", "agent"), Reply::text("done").gate_before(&gate)]);
    let program = Program::with(&server).file("a", "user");
    let mut child = program.start(&["-p", "begin", FREE[0], FREE[1]]);
    gate.wait_reached();
    let ran = program.run(&["rewind", "--yes"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("open in another process") && program.read("a") == "agent", "{ran:?}");
    assert_eq!(program.run(&["rewind", "--dry-run"]).code, 0);
    kill(&mut child);
    gate.open();
    assert_eq!(program.run(&["rewind", "--yes"]).code, 0);
    assert_eq!(program.read("a"), "user");
}

#[test]
fn in_the_chat_it_is_listed_shown_and_done() {
    let server = ModelServer::start([write(Reply::new(), "a", "agent\n"), Reply::text("done"), Reply::text("I see")]);
    let program = Program::with(&server).file("a", "user\n");
    let mut terminal = Terminal::open(&program, &FREE);
    terminal.wait("or give a task");
    for (typed, shown) in [
        ("begin", "tokens in"),
        ("/rewind yes", "shows first"),
        ("/rewind", "~a"),
        ("/rewind 1", "`/rewind yes` puts"),
        ("/rewind yes", "1 file put back"),
        ("what now", "I see"),
    ] {
        terminal.keys(&[typed, "Enter"]);
        terminal.wait(shown);
    }
    let screen = terminal.screen();
    assert!(screen.contains("- agent") && screen.contains("+ user"), "{screen}");
    terminal.keys(&["C-d"]);
    terminal.wait_end();
    assert_eq!(program.read("a"), "user\n");
    let told = server.requests().last().unwrap().body.to_string();
    assert!(told.contains("what now") && told.contains("has put files back"), "{told}");
    // What the program tells is not what the user said, and people read it in their own language.
    let shown = program.run(&["sessions", "show"]);
    assert!(shown.out.contains("the lead is told that you put 1 file back: a"), "{shown:?}");
    assert!(!screen.contains("From the program") && !shown.out.contains("From the program"), "{screen} {shown:?}");
}

/// Numbers that look like chance and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

const PATHS: [&str; 5] = ["a", "b", "c/d", "c/e", "f/g/h"];

/// Whoever did something to a file: an agent, or the user; and what it was before.
type Edits = Vec<(usize, &'static str, bool, Option<Vec<u8>>)>;

/// Any turn can be gone back to: each file is what it was before the agents' first action since, unless the user has changed it
/// after that; then it stays.
#[test]
fn going_back_to_any_turn_gives_its_files_but_for_what_the_user_did() {
    const TURNS: usize = 5;
    for seed in 0..6_u64 {
        let mut dice = Dice(seed.wrapping_mul(7_919) + 1);
        let mut count = 0;
        let mut fresh = || {
            count += 1;
            format!("{seed}-{count}\n").repeat(count % 3 + 1)
        };
        let server = ModelServer::start(Vec::<Reply>::new());
        let mut program = Program::with(&server).file("a", "first").file("c/d", "first");
        let mut edits: Edits = Vec::new();
        let mut model: BTreeMap<&str, Vec<u8>> = [("a", b"first".to_vec()), ("c/d", b"first".to_vec())].into();
        for turn in 1..=TURNS {
            let mut replies = Vec::new();
            for _ in 0..1 + dice.roll(3) {
                let path = PATHS[dice.roll(PATHS.len())];
                let (reply, was) = if dice.roll(3) == 0 {
                    (shell(&format!("rm -f {path}")), model.remove(path))
                } else {
                    let content = fresh();
                    (write(Reply::new(), path, &content), model.insert(path, content.into_bytes()))
                };
                replies.push(reply);
                if was.is_some() || model.contains_key(path) {
                    edits.push((turn, path, false, was));
                }
            }
            replies.push(Reply::text("done"));
            let server = ModelServer::start(replies);
            program = program.variable("ANTHROPIC_BASE_URL", server.url());
            say(&program, "go on", turn == 1);
            assert!(server.problems().is_empty(), "{:?}", server.problems());
            if dice.roll(2) == 0 {
                let (path, content) = (PATHS[dice.roll(PATHS.len())], fresh());
                program = program.file(path, &content);
                edits.push((turn, path, true, model.insert(path, content.into_bytes())));
            }
        }
        let to = 1 + dice.roll(TURNS);
        let before = tree(&program.project());
        let mut want = before.clone();
        for path in PATHS {
            let mut since = edits.iter().filter(|(turn, of, ..)| *turn >= to && *of == path);
            let Some((.., was)) = since.by_ref().find(|(.., by_user, _)| !by_user) else { continue };
            if !since.any(|(.., by_user, _)| *by_user) {
                match was {
                    Some(bytes) => drop(want.insert(path.into(), (bytes.clone(), false))),
                    None => drop(want.remove(Path::new(path))),
                }
            }
        }
        let ran = program.run(&["rewind", "--yes", "--to", &format!("turn:{to}")]);
        assert!(matches!(ran.code, 0 | 8), "{ran:?}");
        assert_eq!(tree(&program.project()), want, "seed {seed}, to {to}: {edits:?} {ran:?}");
        assert!(matches!(program.run(&["rewind", "--undo", "--yes"]).code, 0 | 1));
        let back = tree(&program.project());
        assert!(back == before || want == before, "seed {seed}, to {to}");
    }
}
