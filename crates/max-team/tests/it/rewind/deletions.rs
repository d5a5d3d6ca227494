//! Approved deletions of what no scan watches: kept first and given back, or approved with a word.

use std::process::Command;

use super::*;

fn git(program: &Program, words: &str) -> String {
    let ran = Command::new("git")
        .current_dir(program.project())
        // A look must not write the index.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(words.split(' '))
        .output()
        .unwrap();
    assert!(ran.status.success(), "git {words}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

/// A repository with two commits, a branch, something staged and something not.
fn repository(program: &Program) {
    git(program, "init -q -b main");
    fs::write(program.project().join("a.txt"), "one\n").unwrap();
    fs::write(program.project().join(".gitignore"), "build/\nlocal.txt\n").unwrap();
    git(program, "add -A");
    git(program, "commit -q -m one");
    git(program, "branch side");
    fs::write(program.project().join("b.txt"), "two\n").unwrap();
    git(program, "add b.txt");
    fs::write(program.project().join("a.txt"), "more\n").unwrap();
}

/// What git says about it.
fn state(program: &Program) -> [String; 4] {
    ["status --porcelain=v2 --branch", "log --all --format=%H%d", "diff --cached", "fsck --strict"]
        .map(|words| git(program, words))
}

fn large_pack(program: &Program) {
    let pack = program.project().join(".git/objects/pack");
    fs::create_dir_all(&pack).unwrap();
    fs::File::create(pack.join("large.bin")).unwrap().set_len(300 << 20).unwrap();
}

fn deleting(command: &str) -> ModelServer {
    ModelServer::start([shell(command), Reply::text("all done")])
}

#[test]
fn a_deleted_repository_comes_back_as_it_was() {
    for command in ["rm -rf .git", "rm -rf .git && ls"] {
        let server = deleting(command);
        let program = Program::with(&server);
        repository(&program);
        let before = state(&program);
        let mut terminal = Terminal::open(&program, &[]);
        terminal.wait("or give a task");
        terminal.keys(&["delete it", "Enter"]);
        terminal.wait("Kept before it runs");
        assert!(!terminal.screen().contains("for good"), "{}", terminal.screen());
        terminal.answer("y");
        terminal.wait("all done");
        terminal.keys(&["C-d"]);
        terminal.wait_end();
        assert!(!program.project().join(".git").exists(), "{:?}", server.requests().last().unwrap().body);
        let back = program.run(&["rewind", "--yes"]);
        assert_eq!(back.code, 0, "{back:?}");
        assert_eq!(state(&program), before, "{command}");
        let verified = program.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{verified:?}");
    }
}

#[test]
fn commits_and_staged_files_that_git_discards_come_back() {
    for command in ["git reset --hard HEAD", "git branch -D side", "git stash clear", "git checkout -f"] {
        let server = deleting(command);
        let program = Program::with(&server);
        repository(&program);
        if command.contains("stash") {
            git(&program, "stash -q");
        }
        let (before, stashed) = (state(&program), git(&program, "stash list"));
        let mut terminal = Terminal::open(&program, &[]);
        terminal.wait("or give a task");
        terminal.keys(&["discard it", "Enter"]);
        terminal.wait("Kept before it runs");
        terminal.answer("y");
        terminal.wait("all done");
        terminal.keys(&["C-d"]);
        terminal.wait_end();
        let after = (state(&program), git(&program, "stash list"));
        assert_ne!(after, (before.clone(), stashed.clone()), "{command}: {:?}", server.requests().last().unwrap().body);
        let back = program.run(&["rewind", "--yes"]);
        assert_eq!(back.code, 0, "{command}: {back:?}");
        assert_eq!((state(&program), git(&program, "stash list")), (before, stashed), "{command}");
    }
}

#[test]
fn a_loss_is_said_first_and_only_the_word_allows_it() {
    let server = deleting("rm -rf .git");
    let program = Program::with(&server);
    repository(&program);
    large_pack(&program);
    let before = state(&program);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["delete it", "Enter"]);
    terminal.wait("This deletes `.git/objects/pack/large.bin` for good");

    let listed = program.run(&["inbox"]);
    assert!(listed.out.contains("--word delete"), "{listed:?}");
    let id = listed.out.split_whitespace().next().unwrap().to_owned();
    let shown = program.run(&["inbox", &id]);
    assert!(shown.out.starts_with("This deletes `.git/objects/pack/large.bin` for good"), "{shown:?}");
    let bare = program.run(&["approve", &id]);
    assert!(bare.code != 0 && bare.err.contains("needs the typed word `delete`"), "{bare:?}");
    let wrong = program.run(&["approve", &id, "--word", "yes"]);
    assert_ne!(wrong.code, 0, "{wrong:?}");

    terminal.answer("y");
    assert!(soon(|| terminal.screen().contains("type `delete`")), "{}", terminal.screen());
    terminal.keys(&["yes", "Enter"]);
    assert!(program.project().join(".git").exists());
    // By itself, the word is the name of a key.
    terminal.keys(&["-l", "delete"]);
    terminal.keys(&["Enter"]);
    terminal.wait("all done");
    terminal.keys(&["C-d"]);
    terminal.wait_end();
    assert!(!program.project().join(".git").exists(), "{:?}", server.requests().last().unwrap().body);
    let back = program.run(&["rewind", "--yes"]);
    assert_eq!(back.code, 0, "{back:?}");
    assert_eq!(state(&program), before, "all but the large file was kept");
    assert!(!program.project().join(".git/objects/pack/large.bin").exists());
}

#[test]
fn the_word_is_accepted_from_elsewhere() {
    let server = deleting("rm -rf .git");
    let program = Program::with(&server);
    repository(&program);
    large_pack(&program);
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["delete it", "Enter"]);
    terminal.wait("for good");
    let said = program.run(&["approve", "--word", "删除"]);
    assert_eq!(said.code, 0, "{said:?}");
    terminal.wait("all done");
    assert!(!program.project().join(".git").exists());
}

/// No mode covers a loss, and a run without a chat asks no person.
#[test]
fn without_a_person_nothing_is_lost() {
    let server = deleting("rm -rf build");
    let program = Program::with(&server);
    repository(&program);
    fs::create_dir(program.project().join("build")).unwrap();
    fs::File::create(program.project().join("build/large.bin")).unwrap().set_len(300 << 20).unwrap();
    say(&program, "delete it", true);
    assert!(program.project().join("build/large.bin").exists());
    assert!(server.requests().last().unwrap().contains("Not run: this needs the user's yes"));
}

#[test]
fn ignored_files_and_those_that_git_cleans_are_kept() {
    for command in ["rm -rf build local.txt", "git clean -fdxq"] {
        let server = deleting(command);
        let program = Program::with(&server);
        repository(&program);
        fs::create_dir_all(program.project().join("build/deep")).unwrap();
        fs::write(program.project().join("build/deep/x"), "made by hand").unwrap();
        fs::write(program.project().join("local.txt"), "KEY=1\n").unwrap();
        fs::write(program.project().join("new"), "untracked\n").unwrap();
        let before = tree(&program.project());
        say(&program, "delete them", true);
        assert!(
            !program.project().join("build").exists() && !program.project().join("local.txt").exists(),
            "{command}"
        );
        let back = program.run(&["rewind", "--yes"]);
        assert_eq!(back.code, 0, "{back:?}");
        let after = tree(&program.project());
        let differ = |name: &&PathBuf| !name.starts_with(".git") && before.get(*name) != after.get(*name);
        assert_eq!(before.keys().chain(after.keys()).find(differ), None, "{command}");
    }
}

#[test]
fn a_folder_outside_comes_back() {
    let server = deleting("rm -rf ../other");
    let program = Program::with(&server);
    let other = program.project().with_file_name("other");
    fs::create_dir_all(other.join("sub")).unwrap();
    fs::write(other.join("sub/x"), "outside").unwrap();
    let mut terminal = Terminal::open(&program, &[]);
    terminal.wait("or give a task");
    terminal.keys(&["delete it", "Enter"]);
    terminal.wait("Kept before it runs");
    terminal.answer("y");
    terminal.wait("all done");
    terminal.keys(&["C-d"]);
    terminal.wait_end();
    assert!(!other.exists(), "{:?}", server.requests().last().unwrap().body);
    let back = program.run(&["rewind", "--yes"]);
    assert_eq!(back.code, 0, "{back:?}");
    assert_eq!(fs::read_to_string(other.join("sub/x")).unwrap(), "outside");
}

/// Whenever the program is killed, the files are there or come back.
#[test]
fn killed_between_keeping_and_deleting_nothing_is_lost() {
    let scene = || {
        let server = deleting("rm -rf build");
        let program = Program::with(&server);
        repository(&program);
        fs::create_dir(program.project().join("build")).unwrap();
        fs::write(program.project().join("build/one"), "1").unwrap();
        fs::write(program.project().join("build/two"), "2").unwrap();
        (server, program)
    };
    let words = ["-p", "delete it", FREE[0], FREE[1]];
    let calls = "rename,unlinkat,fdatasync";
    let (_server, calm) = scene();
    let mut fired = 0;
    for n in kill_points(calls, |prefix| calm.prefixed(prefix, &words)) {
        let (_server, program) = scene();
        let prefix = killed_at(calls, n);
        let prefix: Vec<&str> = prefix.iter().map(String::as_str).collect();
        let killed = finish(program.prefixed(&prefix, &words).spawn().unwrap());
        fired += usize::from(killed.code != 0);
        let back = program.run(&["rewind", "--to", "turn:1", "--yes"]);
        for (name, content) in [("one", "1"), ("two", "2")] {
            let found = fs::read_to_string(program.project().join("build").join(name));
            assert_eq!(found.ok().as_deref(), Some(content), "{n}: {killed:?} {back:?}");
        }
    }
    assert!(fired > 1, "strace never fired");
}
