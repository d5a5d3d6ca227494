//! `run_shell` and its companions as a model meets them: real commands, inside a sandbox, through the registry.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use max_team_core::chat::Part;
use max_team_core::limits::{BACKGROUND_MAX, KEPT_BYTES_MAX};
use max_team_core::policy::{ActionKind, CommandLine};
use max_team_tools::command::CommandSandbox;
use max_team_tools::shell::JobNote;
use max_team_tools::{Output, OutputStore, Progress, Registry, Root, ToolContext, ToolError};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Fixture {
    _home: TempDir,
    cx: ToolContext,
    tools: Registry,
}

impl Fixture {
    fn new() -> Self {
        // Not in /tmp, which is another one inside the sandbox.
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(home.path().join("project")).unwrap();
        let cx = ToolContext::new(Arc::new(Root::open(home.path().join("project")).unwrap()));
        let store = Some(Arc::new(OutputStore::new(home.path().join("store"))));
        Self { _home: home, cx: ToolContext { outputs: store, ..cx }, tools: Registry::builtin() }
    }

    fn root(&self) -> &Path {
        self.cx.root.path()
    }

    fn call(&self, tool: &str, input: Value) -> Result<Output, ToolError> {
        let prepared = self.tools.prepare(&self.cx, tool, &input)?;
        self.tools.run(&self.cx, tool, input, &prepared.action, false)
    }

    fn said(&self, tool: &str, input: Value) -> (String, bool) {
        let output = self.call(tool, input).unwrap();
        let [Part::Text { text }] = output.content.as_slice() else { panic!("{output:?}") };
        (text.clone(), output.is_error)
    }

    /// How it ended without its time, what it printed, and whether that is an error.
    fn ran(&self, command: &str) -> (String, String, bool) {
        let (text, is_error) = self.said("run_shell", json!({ "command": command }));
        let (head, rest) = text.split_once('\n').unwrap();
        (head.split(',').next().unwrap().to_owned(), rest.to_owned(), is_error)
    }

    fn refused(&self, tool: &str, input: Value) -> String {
        self.call(tool, input).unwrap_err().to_string()
    }

    /// Waits until a background command is over; what it said last.
    fn over(&self, id: &str) -> (String, bool) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let (text, is_error) = self.said("shell_output", json!({ "id": id, "since": 0, "wait": 30 }));
            if !text.contains("): runs for ") || Instant::now() > until {
                return (text, is_error);
            }
        }
    }
}

#[test]
fn lines_run_as_they_were_judged() {
    let fixture = Fixture::new();
    fs::write(fixture.root().join("a.txt"), "one\ntwo\n").unwrap();
    let table = [
        ("echo hello", "exit code 0", "hello", false),
        ("cat a.txt | wc -l", "exit code 0", "2", false),
        ("grep three a.txt || echo none", "exit code 0", "none", false),
        ("grep three a.txt", "exit code 1", "(it printed nothing)", true),
        ("cat nothing 2>&1 > out.txt; cat out.txt", "exit code 0", "cat: nothing: No such file or directory", false),
        ("mkdir d && cd d && echo x > y && cd .. && cat d/y", "exit code 0", "x", false),
        ("echo 'a;b' \"c d\" e\\ f", "exit code 0", "a;b c d e f", false),
        ("sh -c 'exit 7'", "exit code 7", "(it printed nothing)", true),
        ("sh -c 'kill -9 $$'", "ended by signal 9", "(it printed nothing)", true),
        // Only a shell understands these; whoever calls has approved them.
        ("for x in 1 2; do echo $x; done", "exit code 0", "1\n2", false),
        ("echo *.txt", "exit code 0", "a.txt out.txt", false),
        ("echo \"$(cat a.txt)\" | head -1", "exit code 0", "one", false),
    ];
    for (command, how, printed, is_error) in table {
        assert_eq!(fixture.ran(command), (how.to_owned(), printed.to_owned(), is_error), "{command}");
    }
    for name in ["exec", "Bash"] {
        assert!(fixture.said(name, json!({ "command": "echo x" })).0.ends_with("\nx"), "{name}");
    }
    assert!(fixture.refused("run_shell", json!({ "command": "no-such-program" })).contains("was not found"));
    let long = fixture.refused("run_shell", json!({ "command": "ls", "timeout": 601 }));
    assert_eq!(long, "`timeout` is in seconds, at most 600; give `background: true` to what takes longer");
}

#[test]
fn the_effect_of_a_call_is_told_before() {
    let fixture = Fixture::new();
    let action = |input: Value| fixture.tools.prepare(&fixture.cx, "run_shell", &input).unwrap().action;
    let plain = action(json!({ "command": "ls -l", "description": "look" }));
    assert_eq!((plain.kind, plain.target.as_str(), plain.parameters.len()), (ActionKind::Execute, "ls -l", 0));
    assert!(matches!(plain.line, Some(CommandLine::Plain(_))));
    let odd = action(json!({ "command": "ls $X\u{1b}[2J", "background": true }));
    assert_eq!(odd.preview, "ls $X\\u{1b}[2J");
    assert_eq!(odd.parameters, [("run_in_background".to_owned(), "true".to_owned())]);
}

#[test]
fn a_link_that_was_changed_since_is_not_followed() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.root().join("one")).unwrap();
    fs::create_dir(fixture.root().join("two")).unwrap();
    std::os::unix::fs::symlink("one", fixture.root().join("link")).unwrap();
    let input = json!({ "command": "touch link/x" });
    let judged = fixture.tools.prepare(&fixture.cx, "run_shell", &input).unwrap().action;
    fs::remove_file(fixture.root().join("link")).unwrap();
    std::os::unix::fs::symlink("two", fixture.root().join("link")).unwrap();
    let told = fixture.tools.run(&fixture.cx, "run_shell", input, &judged, false).unwrap_err().to_string();
    assert!(told.contains("leads elsewhere now than when it was judged; nothing was run"), "{told}");
    assert!(!fixture.root().join("one/x").exists() && !fixture.root().join("two/x").exists());
}

#[test]
fn long_output_is_cut_and_kept() {
    let fixture = Fixture::new();
    let (text, _) = fixture.said("run_shell", json!({ "command": "seq 100000" }));
    assert!(text.starts_with("exit code 0") && text.ends_with("\n99999\n100000"), "{}", &text[text.len() - 40..]);
    assert!(text.len() < 30_000, "{}", text.len());
    let path = text.split_once("all of it is in `").unwrap().1.split('`').next().unwrap();
    let (read, _) = fixture.said("read_file", json!({ "path": path, "offset": 50_000, "limit": 1 }));
    assert!(read.contains("50000"), "{read}");
    let (colours, _) =
        fixture.said("run_shell", json!({ "command": "printf '\\033[31mred\\033[0m \\007 \\033]0;x\\007'" }));
    assert!(colours.ends_with("\nred \\u{7} "), "{colours:?}");
}

#[test]
fn a_command_says_how_far_it_is_and_can_be_ended() {
    let fixture = Fixture::new();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&lines);
    let cancel = fixture.cx.cancel.clone();
    let progress = Progress::new(move |line: String| {
        heard.lock().unwrap().push(line);
        cancel.cancel();
    });
    let cx = ToolContext { progress, ..fixture.cx.clone() };
    let input = json!({ "command": "while :; do echo tick; sleep 0.05; done", "timeout": 60 });
    let judged = fixture.tools.prepare(&cx, "run_shell", &input).unwrap().action;
    let told = fixture.tools.run(&cx, "run_shell", input, &judged, false).unwrap_err().to_string();
    assert_eq!(told, "stopped before it was done");
    let lines = lines.lock().unwrap();
    assert!(lines.first().unwrap().lines().all(|line| line == "tick"), "{lines:?}");
}

#[test]
fn time_ends_it_and_says_so() {
    let fixture = Fixture::new();
    let (text, is_error) = fixture.said("run_shell", json!({ "command": "echo begun; sleep 100", "timeout": 1 }));
    assert_eq!(text, "TIMED OUT after 1 s: ended with everything it had started\nbegun");
    assert!(is_error);
}

#[test]
fn a_command_in_the_background_is_looked_at_and_ended() {
    let fixture = Fixture::new();
    let input = json!({ "command": "sh -c 'echo ready; while :; do sleep 1; done'", "background": true, "description": "a server" });
    let (begun, _) = fixture.said("run_shell", input);
    assert!(begun.starts_with("runs in the background as `sh-1`."), "{begun}");
    let jobs = || JobNote::of(fixture.cx.outputs.as_ref().unwrap(), std::process::id());
    let [job] = jobs().try_into().unwrap();
    assert_eq!((job.id.as_str(), &job.over), ("sh-1", &None));
    assert!(job.command.ends_with(": a server"), "{job:?}");
    assert_eq!(JobNote::of(fixture.cx.outputs.as_ref().unwrap(), 1), [], "what another process left is not believed");
    let (seen, is_error) = fixture.said("shell_output", json!({ "id": "sh-1", "wait": 30 }));
    assert!(seen.contains(": a server): runs for ") && seen.contains("\nready\n") && !is_error, "{seen}");
    let (again, _) = fixture.said("BashOutput", json!({ "id": "sh-1" }));
    assert!(again.contains("\n(nothing new)\n") && again.contains("`@output/sh-1.txt`"), "{again}");
    let (whole, _) = fixture.said("shell_output", json!({ "id": "sh-1", "since": 0 }));
    assert!(whole.contains("\nready\n"), "{whole}");
    let (stopped, is_error) = fixture.said("shell_stop", json!({ "id": "sh-1" }));
    assert!(stopped.contains("STOPPED after ") && !is_error, "{stopped}");
    assert!(jobs()[0].over.as_ref().unwrap().starts_with("STOPPED after "));
    assert!(fixture.said("KillShell", json!({ "id": "1" })).0.contains("STOPPED after "));
    assert!(fixture.said("read_file", json!({ "path": "@output/sh-1.txt" })).0.contains("ready"));
    let unknown = fixture.refused("shell_output", json!({ "id": "sh-9" }));
    assert!(unknown.contains("no background command `sh-9`; there are: `sh-1` (`sh -c"), "{unknown}");
    fixture.cx.background.close();
    assert_eq!(jobs(), [], "over with its agent's work");
}

#[test]
fn how_a_background_command_ended_is_told() {
    let fixture = Fixture::new();
    fixture.said("run_shell", json!({ "command": "echo a && false", "background": true }));
    fixture.said("run_shell", json!({ "command": "no-such-program", "background": true }));
    fixture.said("run_shell", json!({ "command": "yes", "background": true, "timeout": 1 }));
    let (failed, is_error) = fixture.over("sh-1");
    assert!(failed.contains("): exit code 1, ") && failed.contains("\na\n") && is_error, "{failed}");
    let (none, is_error) = fixture.over("sh-2");
    assert!(none.contains("the program `no-such-program` was not found") && is_error, "{none}");
    let (late, _) = fixture.over("sh-3");
    // Whichever comes first on this machine.
    let (timed, flooded) = ("TIMED OUT after 1 s", "STOPPED for taking too much (output)");
    assert!(late.contains(timed) || late.contains(flooded), "{}", &late[..200]);
    assert!(fs::metadata(fixture._home.path().join("store/sh-3.txt")).unwrap().len() <= KEPT_BYTES_MAX as u64);
    assert!(late.contains("; the next come with `since: "), "{}", &late[late.len() - 200..]);
}

#[test]
fn there_are_so_many_and_they_end_with_the_work() {
    let fixture = Fixture::new();
    for _ in 0..BACKGROUND_MAX {
        fixture.said("run_shell", json!({ "command": "sleep 1000", "background": true }));
    }
    let told = fixture.refused("run_shell", json!({ "command": "sleep 1000", "background": true }));
    assert!(told.starts_with("8 commands run in the background already (`sh-1`, "), "{told}");
    fixture.said("shell_stop", json!({ "id": "sh-3" }));
    let (begun, _) = fixture.said("run_shell", json!({ "command": "sleep 1000", "background": true }));
    assert!(begun.contains("`sh-9`"), "{begun}");
    fixture.cx.background.close();
    for id in ["sh-1", "sh-9"] {
        assert!(fixture.said("shell_output", json!({ "id": id })).0.contains("STOPPED after "));
    }
    let closed = fixture.refused("run_shell", json!({ "command": "ls", "background": true }));
    assert_eq!(closed, "your work is over; nothing more is started");
}

#[test]
fn within_sandbox_that_only_look_nothing_is_written() {
    let mut fixture = Fixture::new();
    fs::write(fixture.root().join("a.txt"), "one\n").unwrap();
    let isolation = CommandSandbox { read_only: true, ..CommandSandbox::clone(&fixture.cx.sandbox) };
    fixture.cx.sandbox = Arc::new(isolation);
    assert_eq!(fixture.ran("cat a.txt | wc -l"), ("exit code 0".into(), "1".into(), false));
    let tries = [
        "touch b.txt",
        "echo two > a.txt",
        "rm a.txt",
        "mv a.txt c.txt",
        "mkdir d",
        "sh -c 'for name in a b; do echo x > $name.txt; done; exit 3'",
    ];
    for line in tries {
        let (ended, said, is_error) = fixture.ran(line);
        assert!(is_error && ended != "exit code 0", "{line}: {ended} {said}");
    }
    assert_eq!(fs::read_to_string(fixture.root().join("a.txt")).unwrap(), "one\n");
    assert_eq!(fs::read_dir(fixture.root()).unwrap().count(), 1);
}
