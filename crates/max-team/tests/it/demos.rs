//! The demos, as somebody without a key sees them: recorded models, and everything else real.

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Program, Ran, finish, pipe};

/// A demo that was played, and what it left.
struct Played {
    ran: Ran,
    root: PathBuf,
    _kept: TempDir,
}

impl Played {
    fn new(words: &[&str], variables: &[(&str, &str)]) -> Self {
        let kept = tempfile::tempdir().unwrap();
        let mut program = Program::alone().variable("TMPDIR", kept.path().to_str().unwrap());
        for (name, value) in variables {
            program = program.variable(name, *value);
        }
        let ran = finish(program.merged(&[&["demo", "--keep", "--yes"], words].concat()).spawn().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
        let intro = ran.out.lines().next().unwrap();
        let root = PathBuf::from(intro.rsplit(' ').next().unwrap());
        Self { ran, root, _kept: kept }
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.root.join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}: {}", self.ran.out))
    }

    /// Whether the project's own check passes.
    fn passes(&self) -> bool {
        std::process::Command::new("sh").arg("tests/run.sh").current_dir(&self.root).output().unwrap().status.success()
    }

    fn entries(&self) -> Vec<Value> {
        let home = self.root.parent().unwrap().join("home");
        Program::alone().variable("MAX_TEAM_HOME", home.to_str().unwrap()).journal()
    }

    /// The events of plans, with the task that each is about.
    fn steps(&self) -> Vec<(String, String)> {
        let entries = self.entries();
        let of_plans = entries.iter().filter(|entry| entry["stream"].as_str().unwrap().starts_with("plan/"));
        let step = |entry: &Value| {
            let event = entry["event"].as_str().unwrap();
            (event.to_owned(), entry["payload"][event]["task"].as_str().unwrap_or_default().to_owned())
        };
        of_plans.map(step).collect()
    }

    /// Whether these stand in the output, in this order.
    fn says(&self, wanted: &[&str]) {
        let mut rest = self.ran.out.as_str();
        for words in wanted {
            let found = rest.find(words).unwrap_or_else(|| panic!("`{words}` is missing: {}", self.ran.out));
            rest = &rest[found + words.len()..];
        }
    }
}

/// A check runs before a task while its owner begins: whether it ends before the first change depends on the machine.
const EARLY: [&str; 2] =
    [" (its check had already passed before the task)", "；注意：有的检查在任务开始之前就已通过，不能证明这次改动"];

/// The output without what differs between two runs: folders, ids, and the order of two tasks that run at once.
fn steady(played: &Played) -> String {
    let at_once = |line: &&str| line.starts_with("max-team: cause: ") || line.starts_with("max-team: design: ");
    let mut lines: Vec<&str> = played.ran.out.lines().collect();
    let mut parallel: Vec<&str> = lines.iter().copied().filter(|line| at_once(line)).collect();
    parallel.sort_unstable();
    let first = lines.iter().position(&at_once).unwrap_or_default();
    lines.retain(|line| !at_once(line));
    lines.splice(first..first, parallel);
    let text = EARLY.iter().fold(lines.join("\n"), |text, early| text.replace(early, ""));
    let text = text.replace(played.root.parent().unwrap().to_str().unwrap(), "[FOLDER]");
    let without_id = |word: &str| match word.split_once("pln_") {
        Some((before, id)) => format!("{before}[PLAN]{}", id.trim_start_matches(|c: char| c.is_ascii_hexdigit())),
        None => word.to_owned(),
    };
    text.split(' ').map(without_id).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_demo_speaks_one_language() {
    let english = Played::new(&["--lang", "en"], &[]);
    insta::assert_snapshot!("demo_en", steady(&english));
    let chinese = steady(&Played::new(&["--lang", "zh"], &[]));
    for line in chinese.lines() {
        let plain = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        let words: Vec<bool> = line.split(' ').map(plain).collect();
        assert!(!words.windows(3).any(|three| three == [true; 3]), "an English sentence: {line}");
    }
    insta::assert_snapshot!("demo_zh", chinese);
}

/// Files with words that they have in the end.
type Files = &'static [(&'static str, &'static str)];

/// Every demo does what it says: files, checks, figures.
#[test]
fn every_demo_really_does_it() {
    let table: [(&str, &str, Files); 6] = [
        (
            "team",
            "4 of 4 tasks done, 2 verified, 0 failed",
            &[("lib/total.sh", "*) count=1"), ("tests/cart_test.sh", "1110")],
        ),
        (
            "feature",
            "3 of 3 tasks done, 2 verified, 0 failed",
            &[("notes.sh", "find)"), ("tests/find_test.sh", "milk")],
        ),
        (
            "bug-hunt",
            "4 of 4 tasks done, 2 verified, 0 failed",
            &[("lib/hours.sh", "${1#0}"), ("tests/day_test.sh", "08")],
        ),
        (
            "refactor",
            "4 of 4 tasks done, 4 verified, 0 failed",
            &[
                ("commands/put.sh", "fail \"no name"),
                ("commands/take.sh", "fail \"no name"),
                ("commands/find.sh", "fail \"no name"),
                ("tests/fail_test.sh", "box:"),
            ],
        ),
        (
            "fix",
            "1 of 2 tasks done, 1 verified, 1 failed",
            &[("lib/leap.sh", "400"), ("tests/century_test.sh", "1900")],
        ),
        ("replan", "2 of 2 tasks done, 1 verified, 0 failed", &[("greet.sh", "Hello"), ("README.md", "Hello")]),
    ];
    for (name, figures, files) in table {
        let played = Played::new(&[name], &[]);
        played.says(&["This is a recording", "(--yes)", &format!("plan: done: {figures}"), "That was the demo"]);
        assert!(!played.ran.out.contains("did not go as"), "{}", played.ran.out);
        for (file, words) in files {
            assert!(played.file(file).contains(words), "{name}: {file}");
        }
        assert!(played.passes(), "{name}");
        assert!(played.root.join(".git").exists(), "{name}");
    }
}

#[test]
fn a_false_done_is_caught_and_tried_again() {
    let played = Played::new(&[], &[]);
    played.says(&[
        "fix: begun (attempt 1)",
        "fix: failed: the task reported success, but a check failed: sh tests/run.sh: exit 1: one without a count: wanted '250', got '62500'",
        "fix: begun (attempt 2)",
        "fix: done, verified",
        "Leo's first attempt did not pass",
    ]);
    let found = played.entries().iter().any(|entry| {
        entry["event"] == "tool_done" && entry["payload"].to_string().contains("lib/total.sh:2:total() {")
    });
    assert!(found, "Leo looks around with a real command");
    let chinese = Played::new(&["--lang", "zh"], &[]);
    chinese.says(&["这是一段录制", "已批准", "fix: 失败", "fix: 完成，已验证", "4 个任务完成 4 个", "第二次通过了"]);
    assert!(chinese.passes() && chinese.file("tests/cart_test.sh").contains("空购物车"));
}

#[test]
fn three_leos_work_side_by_side() {
    let played = Played::new(&["refactor"], &[]);
    let steps = played.steps();
    let places = |event: &str| {
        let at = |task: &str| steps.iter().position(|step| step.0 == event && step.1 == task).unwrap();
        ["put", "take", "find"].map(at)
    };
    let (given, done) = (places("task_assigned"), places("task_done"));
    assert!(given.iter().max() < done.iter().min(), "{steps:?}");
    played.says(&["together: begun (attempt 1)", "together: done, verified"]);
}

#[test]
fn a_failed_test_starts_the_fix_that_waited_for_it() {
    let played = Played::new(&["fix"], &[]);
    played.says(&[
        "test: failed: the task reported success",
        "mend: begun",
        "mend: done, verified",
        "repaired by another task",
    ]);
}

#[test]
fn a_plan_is_sent_back_and_a_better_one_runs() {
    let played = Played::new(&["replan"], &[]);
    played.says(&[
        "3 tasks in 3 waves",
        "changes wanted: too much for a typo",
        "plan: replaced: 0 of 3 tasks done",
        "2 tasks in 1 wave",
        "approved (--yes)",
        "plan: done: 2 of 2 tasks done",
    ]);
    assert!(!played.root.join("tests/nobody_test.sh").exists(), "the plan that was sent back did not run");
}

/// Three experts are asked side by side and one afterwards. The lead is told their words and never their data.
#[test]
fn four_experts_answer_from_recorded_pages() {
    let played = Played::new(&["travel", "--lang", "en"], &[]);
    insta::assert_snapshot!("travel_en", steady(&played));
    let entries = played.entries();
    let first = |event: &str, words: &str| {
        let is = |entry: &Value| entry["event"] == event && entry["payload"].to_string().contains(words);
        entries.iter().position(is).unwrap_or_else(|| panic!("`{event}` with `{words}`: {}", played.ran.out))
    };
    let is_failed =
        |entry: &&Value| entry["event"] == "tool_done" && entry["payload"].to_string().contains("recorded pages");
    assert_eq!(entries.iter().filter(is_failed).count(), 0, "each address is recorded");
    let began = |name: &str| first("agent_started", &format!("\"name\":\"{name}\""));
    let answered =
        ["A warm coat", "seats and prices change", "Lantern House, 200 m"].map(|words| first("tool_done", words));
    let asked = ["weather", "train", "hotel"].map(began);
    assert!(asked.iter().max() < answered.iter().min(), "{asked:?} {answered:?}");
    assert!(answered.iter().max() < Some(&began("earthquake")));
    // The pages were read by the real tools: a table of a page, a list of a search, an error.
    for words in ["| G102 |", "not instructions", "https://stay.example/beijing/metro", "rooms.example/beijing`: 503"] {
        first("tool_done", words);
    }
    first("llm_ended", "price_total");
    assert!(
        !entries
            .iter()
            .any(|entry| entry["event"] == "tool_done" && entry["payload"].to_string().contains("price_total"))
    );
    let chinese = Played::new(&["travel", "--lang", "zh"], &[]);
    insta::assert_snapshot!("travel_zh", steady(&chinese));
}

/// A machine with a shell and nothing else.
#[test]
fn git_is_not_needed() {
    let programs = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/sh", programs.path().join("sh")).unwrap();
    let played = Played::new(&["team"], &[("PATH", programs.path().to_str().unwrap())]);
    played.says(&["plan: done: 4 of 4 tasks done, 2 verified"]);
    assert!(!played.root.join(".git").exists() && played.passes());
    let is_isolated = |played: &Played| !played.ran.out.contains("Skipped here");
    assert_eq!(is_isolated(&played), is_isolated(&Played::new(&["replan"], &[])), "as anywhere on this machine");
}

/// Without a terminal the demo answers its own questions: it never ends in an error.
#[test]
fn a_demo_without_a_terminal_goes_through() {
    let kept = tempfile::tempdir().unwrap();
    let program = Program::alone().variable("TMPDIR", kept.path().to_str().unwrap());
    for input in [&b""[..], b"what is this?\n"] {
        let ran = pipe(program.merged(&["demo"]), input);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.contains("4 of 4 tasks done, 2 verified") && ran.out.contains("That was the demo"), "{ran:?}");
        assert_eq!(std::fs::read_dir(kept.path()).unwrap().count(), 0, "what nobody wants to keep is gone");
    }
}

/// A no on standard input refuses the plan.
#[test]
fn a_no_on_standard_input_counts() {
    let program = Program::alone();
    let ran = program.pipe(&["demo"], b"n");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("(standard input)") && !ran.out.contains("4 of 4 tasks done"), "{ran:?}");
}

/// Where the system grants no isolation of any kind, one line says so and everything is shown.
#[cfg(target_os = "linux")]
#[test]
fn a_demo_without_isolation_says_so_and_goes_through() {
    let none =
        "for kind in user mnt pid net; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec \"$0\" \"$@\"";
    let prefix = ["unshare", "-Ur", "sh", "-c", none];
    let has_namespaces = std::process::Command::new("unshare").args(["-Ur", "true"]).output();
    if !has_namespaces.is_ok_and(|ran| ran.status.success()) {
        // Then every other demo here is one without.
        return;
    }
    let program = Program::alone();
    for (lang, name, skipped) in [("en", "team", "Skipped here: isolation ("), ("zh", "team", "此处跳过：隔离（")]
    {
        let ran = finish(program.prefixed(&prefix, &["demo", name, "--lang", lang]).spawn().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(ran.out.lines().filter(|line| line.starts_with(skipped)).count(), 1, "{ran:?}");
        assert!(!ran.out.contains("did not go as") && !ran.out.contains('✗'), "{ran:?}");
    }
}

#[test]
fn a_demo_keeps_to_itself() {
    let program = Program::alone().file(".max-team/agents.yaml", "agents: [{name: bob, role: team_lead}]\n");
    let before = program.read(".max-team/agents.yaml");
    let ran = program.run(&["demo", "replan", "--yes"]);
    assert!(ran.code == 0 && ran.out.contains("(leo)") && !ran.out.contains("bob"), "{ran:?}");
    assert_eq!(program.read(".max-team/agents.yaml"), before);
    assert_eq!(program.run(&["sessions", "list"]).out, "no sessions yet; start one with `max-team`\n");
}

#[test]
fn demos_are_listed_and_known_by_name() {
    let program = Program::alone();
    insta::assert_snapshot!(program.run(&["demo", "--list"]).out);
    let ran = program.run(&["demo", "refaktor"]);
    assert!(ran.code == 2 && ran.err.contains("refactor"), "{ran:?}");
}

/// Teammates write to each other, one plans first, and both end by a handshake.
#[test]
fn teammates_do_what_they_say() {
    let played = Played::new(&["teammates"], &[]);
    played.says(&["`sum.sh` adds up the sales."]);
    assert!(played.file("docs/format.md").contains("price in cents"));
    let sum = std::process::Command::new("sh").arg("sum.sh").current_dir(&played.root).output().unwrap();
    assert_eq!(sum.stdout, b"950\n");
    let entries = played.entries();
    let ended: Vec<&Value> = entries.iter().filter(|entry| entry["event"] == "agent_ended").collect();
    assert_eq!(ended.len(), 2, "{ended:?}");
}

/// Whether a line has words, and none of them is Chinese. Names of files, commands and code are the same in every language.
fn is_english(line: &str) -> bool {
    let code = ["```", "+", "-", "diff ", "@@", "$ ", "⏺", "ok ", "FAIL "];
    let is_code = code.iter().any(|start| line.trim_start().starts_with(start));
    let is_chinese = line.chars().any(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter));
    let words = line
        .split_whitespace()
        .filter(|word| word.len() > 2 && word.chars().all(|letter| letter.is_ascii_alphabetic()));
    !is_code && !is_chinese && words.count() > 3
}

/// A newcomer who reads Chinese sees no English sentence in any demo.
#[test]
fn every_demo_speaks_chinese() {
    for name in ["team", "feature", "bug-hunt", "refactor", "fix", "replan", "travel", "teammates"] {
        let played = Played::new(&[name, "--lang", "zh"], &[]);
        assert!(!played.ran.out.contains("没有按录制"), "{}", played.ran.out);
        let english: Vec<&str> = played.ran.out.lines().filter(|line| is_english(line)).collect();
        assert!(english.is_empty(), "{name}: {english:#?}");
        assert!(name == "travel" || name == "teammates" || played.passes(), "{name}");
    }
}
