//! Commands as they run: real processes, whole process trees, outputs without end.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use max_team_core::agent::Constraints;
use max_team_core::policy::rule::{Anchors, List, Origin, RuleScope};
use max_team_core::policy::{Permissions, Rule, Visibility};
use max_team_tools::command::{CommandError, CommandOutput, CommandSandbox, EndReason, OUTPUT_BYTES_MAX, is_secret};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const LONG: Duration = Duration::from_secs(60);

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn run(
    argv: &[String],
    dir: &Path,
    timeout: Duration,
    cancel: &CancellationToken,
) -> Result<CommandOutput, CommandError> {
    max_team_tools::command::run(argv, dir, timeout, Some(&CommandSandbox::around(dir)), cancel)
}

fn ran(dir: &Path, words: &[&str], timeout: Duration) -> CommandOutput {
    run(&argv(words), dir, timeout, &CancellationToken::new()).unwrap()
}

/// The same with the sandbox turned off, where processes have the numbers that everybody sees.
fn bare(dir: &Path, words: &[&str], timeout: Duration) -> CommandOutput {
    let isolation = CommandSandbox { on: false, ..CommandSandbox::around(dir) };
    max_team_tools::command::run(&argv(words), dir, timeout, Some(&isolation), &CancellationToken::new()).unwrap()
}

/// A script, written by another process: a file that this one has open for writing cannot be run meanwhile.
fn script(dir: &Path, name: &str, text: &str) {
    assert!(ran(dir, &["sh", "-c", &format!("printf '%s\n' '{text}' > {name} && chmod 755 {name}")], LONG).ok());
}

/// Whether a process is there and not merely waiting to be reaped.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// Waits for what a signal does, which is soon but not at once.
fn soon(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        if what() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn a_command_says_how_it_went() {
    let dir = TempDir::new().unwrap();
    let fine = ran(dir.path(), &["sh", "-c", "echo one; echo two >&2; echo three; pwd"], LONG);
    let here = dir.path().canonicalize().unwrap();
    assert_eq!(fine.output, format!("one\ntwo\nthree\n{}\n", here.display()));
    assert!(fine.ok() && fine.code == Some(0) && fine.signal.is_none() && fine.ended == EndReason::Exited);

    let bad = ran(dir.path(), &["sh", "-c", "exit 3"], LONG);
    assert_eq!((bad.ok(), bad.code, bad.signal, bad.ended), (false, Some(3), None, EndReason::Exited));
    let hit = ran(dir.path(), &["sh", "-c", "kill -9 $$"], LONG);
    assert_eq!((hit.ok(), hit.code, hit.signal, hit.ended), (false, None, Some(9), EndReason::Exited));

    let odd = ran(dir.path(), &["printf", "caf\\351"], LONG);
    assert_eq!(odd.output, "caf\u{fffd}");
    let still = ran(dir.path(), &["cat"], LONG);
    assert_eq!((still.ok(), still.output.as_str()), (true, ""), "there is nothing to read");
    assert_eq!(ran(dir.path(), &["echo", "a b", "$HOME", "*"], LONG).output, "a b $HOME *\n");
}

#[test]
fn programs_that_cannot_run_are_named() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("plain"), "x").unwrap();
    script(dir.path(), "script", "#!/nowhere/at/all");
    let told = |words: &[&str], dir: &Path| run(&argv(words), dir, LONG, &CancellationToken::new()).unwrap_err();
    assert!(
        matches!(told(&["no-such-program-here"], dir.path()), CommandError::NotFound(name) if name == "no-such-program-here")
    );
    assert!(matches!(told(&["./none"], dir.path()), CommandError::NotFound(_)));
    assert!(matches!(told(&["./plain"], dir.path()), CommandError::Denied(_)));
    assert!(matches!(told(&["./script"], dir.path()), CommandError::Interpreter(_)));
    assert!(matches!(told(&[], dir.path()), CommandError::Empty));
    assert!(matches!(told(&["echo", "a\0b"], dir.path()), CommandError::Io { .. }));
    assert!(matches!(told(&["echo"], &dir.path().join("none")), CommandError::Folder(_)));
    let words = told(&["no-such-program-here"], dir.path()).to_string();
    assert_eq!(words, "the program `no-such-program-here` was not found; install it, or check its name");
}

#[test]
fn a_path_is_relative_to_the_folder() {
    let dir = TempDir::new().unwrap();
    script(dir.path(), "run.sh", "#!/bin/sh\necho ran");
    assert_eq!(ran(dir.path(), &["./run.sh"], LONG).output, "ran\n");
}

#[test]
fn time_ends_a_whole_tree() {
    let dir = TempDir::new().unwrap();
    let script = "echo $$; sleep 100 & echo $!; sleep 100";
    let over = bare(dir.path(), &["sh", "-c", script], Duration::from_millis(300));
    assert_eq!(over.ended, EndReason::TimedOut);
    assert!(!over.ok() && over.code.is_none() && over.signal == Some(15), "{over:?}");
    assert!(over.ms < 5_000, "{over:?}");
    let pids: Vec<&str> = over.output.lines().collect();
    assert_eq!(pids.len(), 2, "{over:?}");
    assert!(soon(|| pids.iter().all(|pid| !is_alive(pid))), "{pids:?}");
}

#[test]
fn a_tree_that_does_not_listen_is_killed() {
    let dir = TempDir::new().unwrap();
    let script = "trap '' TERM; echo $$; (trap '' TERM; sleep 100) & echo $!; while :; do sleep 1; done";
    let over = bare(dir.path(), &["sh", "-c", script], Duration::from_millis(300));
    assert_eq!((over.ended, over.signal), (EndReason::TimedOut, Some(9)), "{over:?}");
    assert!(over.ms < 10_000, "{over:?}");
    assert!(soon(|| over.output.lines().all(|pid| !is_alive(pid))), "{over:?}");
}

#[test]
fn a_cancelled_command_ends() {
    let dir = TempDir::new().unwrap();
    let cancel = CancellationToken::new();
    let over = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&argv(&["sh", "-c", "touch started; sleep 100"]), dir.path(), LONG, &cancel));
        assert!(soon(|| dir.path().join("started").exists()));
        cancel.cancel();
        running.join().unwrap().unwrap()
    });
    assert_eq!(over.ended, EndReason::Cancelled);
    assert!(over.ms < 20_000, "{over:?}");
    let already = run(&argv(&["sleep", "100"]), dir.path(), LONG, &cancel).unwrap();
    assert_eq!(already.ended, EndReason::Cancelled);
}

#[test]
fn processes_left_behind_do_not_hold_us() {
    let dir = TempDir::new().unwrap();
    let script = "sleep 100 & echo $!";
    let over = bare(dir.path(), &["sh", "-c", script], LONG);
    assert!(over.ok() && over.ms < 20_000, "{over:?}");
    assert!(soon(|| !is_alive(over.output.trim())), "it ends with its leader: {over:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn processes_that_leave_the_group_end_too() {
    let dir = TempDir::new().unwrap();
    let over = bare(dir.path(), &["sh", "-c", "setsid sleep 100 & echo $!"], LONG);
    assert!(over.ok() && over.ms < 5_000, "{over:?}");
    assert!(!is_alive(over.output.trim()), "{over:?}");
}

#[test]
fn a_command_is_kept_in_its_folder() {
    let dir = TempDir::new().unwrap();
    let here = dir.path().canonicalize().unwrap();
    fs::create_dir_all(here.join("own/.git")).unwrap();
    fs::write(here.join("own/.git/config"), "kept").unwrap();
    let script = "echo x > in; echo x > ../out; echo x > .git/config; echo '{}' > .mcp.json; exit 4";
    let over = ran(&here.join("own"), &["sh", "-c", script], LONG);
    assert_eq!(over.code, Some(4), "{over:?}");
    assert!(here.join("own/in").exists() && !here.join("out").exists());
    assert_eq!(fs::read_to_string(here.join("own/.git/config")).unwrap(), "kept");
    let told = format!(
        "[`{0}/own/.mcp.json` is only for the user to make; it was moved to `{0}/own/.mcp.json.untrusted-1`]\n\
         [if the user made it while the command ran, tell them where it is now]\n",
        here.display()
    );
    assert!(over.output.ends_with(&told) && !here.join("own/.mcp.json").exists(), "{over:?}");
}

/// The sandbox of somebody with rules, and perhaps one more folder.
fn ruled(root: &Path, also: &[&Path], rules: &[(List, &str)]) -> CommandSandbox {
    let text = root.to_str().unwrap();
    let anchors = Anchors { root: text, base: text, home: "/" };
    let origin = || Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
    let rules = rules.iter().map(|(list, text)| Rule::new(*list, text, origin(), &anchors)).collect();
    let also = also.iter().map(|folder| folder.to_str().unwrap().to_owned()).collect();
    let permissions = Permissions { root: text.to_owned(), rules, also, ..Permissions::default() };
    let sight = Arc::new(Visibility::from_policy(&Constraints::default(), &permissions));
    CommandSandbox { sight, ..CommandSandbox::around(root) }
}

fn ran_in(isolation: &CommandSandbox, script: &str) -> CommandOutput {
    let argv = ["sh", "-c", script].map(str::to_owned);
    max_team_tools::command::run(&argv, &isolation.root, LONG, Some(isolation), &CancellationToken::new()).unwrap()
}

#[test]
fn paths_that_a_rule_protects_are_not_created() {
    let dir = TempDir::new().unwrap();
    let here = dir.path().canonicalize().unwrap();
    fs::write(here.join("old.sql"), "kept").unwrap();
    let isolation = ruled(&here, &[], &[(List::Deny, "Edit(*.sql)"), (List::Deny, "Edit(./gen/**)")]);
    let over =
        ran_in(&isolation, "echo x > old.sql; mkdir -p a gen/b; echo x > a/new.sql; echo x > gen/b/c; echo x > a/fine");
    assert_eq!(fs::read_to_string(here.join("old.sql")).unwrap(), "kept");
    for (made, is_there) in [("a/new.sql", false), ("a/new.sql.untrusted-1", true), ("gen", false), ("a/fine", true)] {
        assert_eq!(here.join(made).exists(), is_there, "{made}: {over:?}");
    }
    assert!(over.output.contains("a/new.sql` is only for the user to make"), "{over:?}");
    let blanket = ruled(&here, &[], &[(List::Deny, "Edit")]);
    ran_in(&blanket, "mkdir target");
    assert!(here.join("target").is_dir(), "a rule that names no place is for tools that write files");
}

#[test]
fn a_command_cannot_change_agent_definitions() {
    let dir = TempDir::new().unwrap();
    let here = dir.path().canonicalize().unwrap();
    fs::create_dir_all(here.join("agents")).unwrap();
    fs::write(here.join("agents/leo.md"), "kept").unwrap();
    let script = "echo x > agents/leo.md; echo x > agents/explore.md; echo x > agents/code.py; mv agents other; exit 3";
    let over = ran_in(&CommandSandbox::around(&here), script);
    assert_eq!(over.code, Some(3), "{over:?}");
    assert_eq!(fs::read_to_string(here.join("agents/leo.md")).unwrap(), "kept");
    assert!(
        here.join("agents/explore.md.untrusted-1").exists() && !here.join("agents/explore.md").exists(),
        "{over:?}"
    );
    assert!(here.join("agents/code.py").exists(), "{over:?}");
    assert!(over.output.contains("agents/explore.md` is only for the user to make"), "{over:?}");
    // Where there was no such folder, too.
    let bare = TempDir::new().unwrap();
    let here = bare.path().canonicalize().unwrap();
    let over = ran_in(&CommandSandbox::around(&here), "mkdir agents; echo x > agents/explore.md");
    assert!(!here.join("agents/explore.md").exists() && over.ok(), "{over:?}");
}

#[test]
fn a_file_under_an_ask_rule_is_open_only_to_an_approved_command() {
    let dir = TempDir::new().unwrap();
    let here = dir.path().canonicalize().unwrap();
    fs::write(here.join("key"), "needle").unwrap();
    let isolation = ruled(&here, &[], &[(List::Ask, "Read(./key)")]);
    let shut = ran_in(&isolation, "cat key");
    assert!(!shut.ok() && !shut.output.contains("needle"), "{shut:?}");
    let open = ran_in(&CommandSandbox { attended: true, ..isolation }, "cat key");
    assert_eq!(open.output, "needle");
}

#[test]
fn further_folders_are_read_and_written_but_for_what_others_obey() {
    // Not in /tmp, which is another one inside the sandbox.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let here = dir.path().canonicalize().unwrap();
    for folder in ["own", "shared/.git", "other"] {
        fs::create_dir_all(here.join(folder)).unwrap();
    }
    for file in ["shared/lib", "shared/.git/config", "other/file", "shared/key.pem"] {
        fs::write(here.join(file), "needle").unwrap();
    }
    let script = "cat ../shared/lib; cat ../other/file; cat ../shared/key.pem; echo x > ../shared/new; \
                  echo x > ../shared/.git/config; echo x > ../shared/.mcp.json";
    let deny = format!("Read(/{}/shared/*.pem)", here.display());
    let over = ran_in(&ruled(&here.join("own"), &[&here.join("shared")], &[(List::Deny, &deny)]), script);
    assert_eq!(over.output.matches("needle").count(), 1, "{over:?}");
    assert!(here.join("shared/new").exists(), "{over:?}");
    assert_eq!(fs::read_to_string(here.join("shared/.git/config")).unwrap(), "needle");
    assert!(here.join("shared/.mcp.json.untrusted-1").exists() && !here.join("shared/.mcp.json").exists(), "{over:?}");
}

#[test]
fn repositories_in_the_folder_are_kept_too() {
    let dir = TempDir::new().unwrap();
    let here = dir.path().canonicalize().unwrap();
    fs::create_dir_all(here.join("deps/lib/.git/hooks")).unwrap();
    fs::write(here.join("deps/lib/.git/config"), "kept").unwrap();
    let script = "cd deps/lib; echo x > y; echo x > .git/index; echo x > .git/config; echo x > .git/hooks/post-checkout; \
                  echo ../evil > .git/commondir; mv .git gone; mv ../lib ../gone; exit 0";
    let over = ran(&here, &["sh", "-c", script], LONG);
    let lib = here.join("deps/lib");
    assert!(lib.join("y").exists() && !lib.join(".git/index").exists(), "{over:?}");
    assert_eq!(fs::read_to_string(lib.join(".git/config")).unwrap(), "kept");
    for name in ["hooks/post-checkout", "commondir"] {
        assert!(!lib.join(".git").join(name).exists(), "{name}: {over:?}");
    }
}

#[test]
fn output_without_end_is_kept_in_bounds() {
    let dir = TempDir::new().unwrap();
    let bytes = 50 << 20;
    let script = format!("echo first; head -c {bytes} /dev/zero | tr '\\0' x; echo; echo last");
    let over = ran(dir.path(), &["sh", "-c", &script], LONG);
    assert!(over.ok());
    assert!(over.output.len() < OUTPUT_BYTES_MAX + 100, "{}", over.output.len());
    assert!(over.output.starts_with("first\n") && over.output.ends_with("\nlast\n"));
    let cut = 6 + bytes + 1 + 5 - OUTPUT_BYTES_MAX;
    assert!(over.output.contains(&format!("[… {cut} bytes cut …]")));
    let endless = ran(dir.path(), &["yes"], Duration::from_millis(300));
    // Whichever comes first on this machine.
    assert!(matches!(endless.ended, EndReason::TimedOut | EndReason::Limit(_)), "{:?}", endless.ended);
    assert!(endless.ms < 5_000);
}

#[test]
fn a_command_sees_no_secrets() {
    let dir = TempDir::new().unwrap();
    let seen = ran(dir.path(), &["env"], LONG).output;
    assert!(seen.contains("PATH="));
    let names = seen.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    assert_eq!(names.filter(|name| is_secret(name)).count(), 0);
}
