//! Which sandbox a verdict names for a command.

use proptest::sample::select;

use super::*;
use crate::policy::command_line::{CommandLine, Redirect, RedirectTarget, SimpleCommand};

/// A line of plain words, or an opaque one if it has signs of a shell.
fn line(text: &str) -> Action {
    let why = ShellSyntax::Expansion;
    let part = |words: &str| SimpleCommand {
        argv: words.split_whitespace().map(str::to_owned).collect(),
        ..SimpleCommand::default()
    };
    let line = match text.contains(['$', '*', '(', '`']) {
        true => CommandLine::Opaque { text: text.to_owned(), why },
        false => CommandLine::Plain(text.split(';').map(part).collect()),
    };
    Action { line: Some(line), ..act(Execute, text) }
}

fn writing(text: &str) -> Action {
    Action { parameters: vec![(WRITES.to_owned(), "true".to_owned())], ..line(text) }
}

/// The verdict and its sandbox in a word.
fn told(rules: &Rules<'_>, action: &Action) -> &'static str {
    let judged = judge(rules, "run_shell", action);
    match (judged.verdict, judged.reach) {
        (Allow, CommandReach::Project) => "runs",
        (Allow, CommandReach::Temporary) => "reads",
        (Allow, CommandReach::ReadOnly) => "looks",
        (Allow, CommandReach::BuildFolders) => "tests",
        (Allow, CommandReach::Unshielded) => "writes",
        (Ask, _) if judged.rule.contains("can also change protected files") => "warns",
        (Ask, _) => "asks",
        (Deny, _) => "refused",
    }
}

#[test]
fn what_needs_no_writing_and_no_host_runs_and_the_rest_asks() {
    let (free, still) = (Constraints::default(), Constraints { read_only: true, ..Constraints::default() });
    let tests = [list(&["pytest"])];
    // A line, and what becomes of it: in the default mode, in an approved plan, for an agent that changes nothing, in mode
    // `plan`, and in the default mode if it says that it writes.
    let table = [
        ("ls -la", ["runs", "runs", "runs", "runs", "runs"]),
        ("python3 -c print", ["looks", "runs", "looks", "looks", "asks"]),
        ("python3 tools/gen.py", ["looks", "runs", "looks", "looks", "asks"]),
        ("./build.sh --fast", ["looks", "runs", "looks", "looks", "asks"]),
        ("awk {print|sh} a", ["looks", "runs", "looks", "looks", "asks"]),
        ("wc -l $(ls)", ["looks", "looks", "looks", "looks", "asks"]),
        ("for f in *.py; do wc -l $f; done", ["looks", "looks", "looks", "looks", "asks"]),
        ("unheard-of --version", ["looks", "runs", "looks", "looks", "asks"]),
        // Known to write: it asks, unless the agent cannot write anyway.
        ("make", ["asks", "runs", "looks", "looks", "asks"]),
        ("cargo build", ["asks", "runs", "looks", "looks", "asks"]),
        ("git commit -m x", ["asks", "runs", "looks", "looks", "asks"]),
        ("git -C sub commit -m x", ["asks", "runs", "looks", "looks", "asks"]),
        ("touch a", ["asks", "runs", "refused", "refused", "asks"]),
        ("touch a; python3 x.py", ["asks", "runs", "refused", "refused", "asks"]),
        // The project's tests, and some of them.
        ("pytest", ["runs", "runs", "looks", "looks", "runs"]),
        ("pytest -q tests/test_a.py::test_b", ["runs", "runs", "looks", "looks", "runs"]),
        ("cd sub; pytest -q", ["asks", "runs", "looks", "looks", "asks"]),
        // Found by parsing, and asked first.
        ("git push", ["asks", "asks", "asks", "refused", "asks"]),
        ("curl a.org; python3 x.py", ["asks", "asks", "asks", "refused", "asks"]),
        ("cat /etc/passwd; python3 x.py", ["asks", "asks", "asks", "asks", "asks"]),
        ("rm -rf /srv", ["asks", "asks", "refused", "refused", "asks"]),
        ("git push $(x)", ["asks", "asks", "asks", "refused", "asks"]),
        ("git stash", ["asks", "asks", "asks", "refused", "asks"]),
    ];
    for (text, want) in table {
        let rules = |constraints, mode| Rules { sandboxed: true, tests: &tests, ..Rules::new(mode, constraints) };
        let all = [
            told(&rules(&free, Mode::Default), &line(text)),
            told(&Rules { approved: true, ..rules(&free, Mode::Default) }, &line(text)),
            told(&rules(&still, Mode::Default), &line(text)),
            told(&rules(&free, Mode::Plan), &line(text)),
            told(&rules(&free, Mode::Default), &writing(text)),
        ];
        assert_eq!(all, want, "{text}");
        // An agent that can change nothing cannot say otherwise.
        assert_eq!(told(&rules(&still, Mode::Default), &writing(text)), want[2], "{text}");
        assert_eq!(told(&rules(&free, Mode::Plan), &writing(text)), want[3], "{text}");
    }
}

#[test]
fn an_approved_plan_covers_lines_that_say_they_write() {
    let none = Constraints::default();
    let rules = Rules { sandboxed: true, approved: true, ..Rules::new(Mode::Default, &none) };
    let table = [
        ("for f in *; do cp $f b/$f; done", "runs"),
        ("cat > a $(x)", "runs"),
        ("git push $(x)", "asks"),
        ("git -c core.pager=x log", "asks"),
        ("python3 -c x", "runs"),
    ];
    for (text, want) in table {
        assert_eq!(told(&rules, &writing(text)), want, "{text}");
    }
    let refuses = Rules { mode: Mode::DontAsk, approved: false, ..rules };
    assert_eq!((told(&refuses, &line("wc $(x)")), told(&refuses, &writing("wc $(x)"))), ("looks", "refused"));
}

#[test]
fn a_file_that_a_line_writes_keeps_its_question() {
    let none = Constraints::default();
    let to = |path: &str| {
        let flows = vec![Redirect { fd: 1, to: RedirectTarget::Write(path.to_owned()) }];
        let part = SimpleCommand { argv: list(&["python3", "x.py"]), flows, ..SimpleCommand::default() };
        Action { line: Some(CommandLine::Plain(vec![part])), ..act(Execute, "python3 x.py > …") }
    };
    for mode in [Mode::Default, Mode::AcceptEdits] {
        let rules = Rules { sandboxed: true, ..Rules::new(mode, &none) };
        assert_eq!((told(&rules, &to("/dev/null")), told(&rules, &to("out"))), ("looks", "asks"), "{mode:?}");
    }
}

#[test]
fn only_test_tools_look_without_a_line() {
    let none = Constraints::default();
    let rules = Rules { sandboxed: true, ..Rules::new(Mode::Plan, &none) };
    for (tool, want) in [("run_test", Allow), ("coverage_report", Allow), ("query_log", Deny), ("run_shell", Deny)] {
        assert_eq!(judge(&rules, tool, &act(Execute, "pytest")).verdict, want, "{tool}");
    }
}

#[test]
fn a_list_of_commands_binds_and_only_a_person_goes_beyond_it() {
    let constraints = Constraints { allowed_commands: Some(list(&["ls", "make"])), ..Constraints::default() };
    let permissions = {
        let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
        let anchors = Anchors { root: "/p", base: "/p", home: "/" };
        let rules = ["Bash(date)", "Bash(echo $x)"].map(|text| Rule::new(List::Allow, text, origin.clone(), &anchors));
        Permissions { root: "/p".into(), rules: rules.to_vec(), ..Permissions::default() }
    };
    for (mode, beyond) in [
        (Mode::Default, "asks"),
        (Mode::BypassPermissions, "asks"),
        (Mode::Plan, "refused"),
        (Mode::DontAsk, "refused"),
    ] {
        let rules =
            Rules { sandboxed: true, approved: true, permissions: &permissions, ..Rules::new(mode, &constraints) };
        for text in ["date", "python3 -c x", "echo $x", "ls; date"] {
            assert_eq!(told(&rules, &line(text)), beyond, "{mode:?} {text}");
            assert_eq!(judge(&rules, "run_shell", &line(text)).memory, RememberedRule::Nothing);
        }
        assert_eq!(told(&rules, &line("ls -l")), "runs", "{mode:?}");
    }
}

#[test]
fn a_yes_of_another_agent_does_not_widen_the_sandbox() {
    let none = Constraints::default();
    let rules = Rules { sandboxed: true, ..Rules::new(Mode::Default, &none) };
    let judged = judge(&rules, "run_shell", &line("cat /etc/passwd; python3 x.py"));
    assert_eq!((judged.verdict, judged.reach), (Ask, CommandReach::ReadOnly));
}

fn fragments() -> impl Strategy<Value = String> {
    const PARTS: [&str; 16] = [
        "ls -la",
        "cat a",
        "python3 -c x",
        "awk {print} a",
        "make",
        "touch a",
        "rm a",
        "git push",
        "git commit -m x",
        "curl a.org",
        "./x.sh",
        "cd sub",
        "git log",
        "cat /etc/passwd",
        "sed -i s/a/b/ a",
        "echo $(x)",
    ];
    proptest::collection::vec(select(PARTS.to_vec()), 1..4).prop_map(|parts| parts.join(";"))
}

proptest! {
    /// Without a sandbox the verdicts are those of today. With one, a line that runs unasked and did not before runs where it
    /// changes nothing, unless an approved plan or the project's tests cover it.
    #[test]
    fn the_sandbox_only_adds_looking(
        text in fragments(),
        mode in select(Mode::NAMES.map(|(_, mode)| mode).to_vec()),
        read_only in any::<bool>(),
        says in any::<bool>(),
    ) {
        let constraints = Constraints { read_only, ..Constraints::default() };
        let action = if says { writing(&text) } else { line(&text) };
        let bare = Rules::new(mode, &constraints);
        let (before, now) = (judge(&bare, "run_shell", &action), judge(&Rules { sandboxed: true, ..bare }, "run_shell", &action));
        prop_assert_eq!(before.reach, CommandReach::Project);
        prop_assert!(now.verdict <= before.verdict);
        if now.verdict != before.verdict {
            prop_assert!(now.verdict != Allow || now.reach == CommandReach::ReadOnly, "{}", text);
        }
        let is_plain = matches!(&action.line, Some(CommandLine::Plain(_)));
        let names_change = ["touch", "rm", "git push", "curl", "sed -i"].iter().any(|word| text.contains(word));
        prop_assert!(now.reach == CommandReach::Project || !is_plain || !names_change, "{}", text);
    }
}

#[test]
fn where_nothing_is_protected_only_a_rule_or_a_person_lets_a_command_write() {
    let (free, still) = (Constraints::default(), Constraints { read_only: true, ..Constraints::default() });
    let tests = [list(&["pytest"])];
    let permissions = {
        let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
        let anchors = Anchors { root: "/p", base: "/p", home: "/" };
        let rules = ["Bash(make:*)", "Bash(touch:*)", "Edit", "Bash(echo $x > y)"]
            .map(|text| Rule::new(List::Allow, text, origin.clone(), &anchors));
        Permissions { root: "/p".into(), rules: rules.to_vec(), ..Permissions::default() }
    };
    // A line, and what becomes of it: in the default mode, in an approved plan, in mode `bypassPermissions`, for an agent that
    // changes nothing, in mode `dontAsk`, and in that mode with rules for `make`, `touch` and one line of a shell.
    let table = [
        ("ls -la", ["reads", "reads", "reads", "looks", "reads", "reads"]),
        ("git status --short", ["reads", "reads", "reads", "looks", "reads", "reads"]),
        ("cd sub; ls", ["reads", "reads", "reads", "looks", "reads", "reads"]),
        ("python3 -c print", ["looks", "looks", "looks", "looks", "looks", "looks"]),
        ("wc -l $(ls)", ["looks", "looks", "looks", "looks", "looks", "looks"]),
        ("pytest", ["tests", "tests", "tests", "looks", "tests", "tests"]),
        ("pytest -q tests/test_a.py", ["tests", "tests", "tests", "looks", "refused", "refused"]),
        ("ls; pytest", ["tests", "tests", "tests", "looks", "tests", "tests"]),
        ("make", ["warns", "warns", "warns", "looks", "refused", "writes"]),
        ("make; ls", ["warns", "warns", "warns", "looks", "refused", "writes"]),
        ("touch a", ["warns", "warns", "warns", "refused", "refused", "writes"]),
        ("touch a; cargo build", ["warns", "warns", "warns", "refused", "refused", "refused"]),
        ("echo $x > y", ["looks", "looks", "looks", "looks", "looks", "writes"]),
        ("git push", ["warns", "warns", "warns", "asks", "refused", "refused"]),
        ("cat /etc/passwd", ["asks", "asks", "reads", "asks", "refused", "refused"]),
    ];
    for (text, want) in table {
        let rules = |constraints, mode| Rules {
            sandboxed: true,
            unshielded: true,
            tests: &tests,
            ..Rules::new(mode, constraints)
        };
        let all = [
            told(&rules(&free, Mode::Default), &line(text)),
            told(&Rules { approved: true, ..rules(&free, Mode::Default) }, &line(text)),
            told(&rules(&free, Mode::BypassPermissions), &line(text)),
            told(&rules(&still, Mode::Default), &line(text)),
            told(&rules(&free, Mode::DontAsk), &line(text)),
            told(&Rules { permissions: &permissions, ..rules(&free, Mode::DontAsk) }, &line(text)),
        ];
        assert_eq!(all, want, "{text}");
    }
}

#[test]
fn a_question_where_nothing_is_protected_names_the_rules_that_answer_it() {
    let none = Constraints::default();
    let rules = Rules { sandboxed: true, unshielded: true, approved: true, ..Rules::new(Mode::Default, &none) };
    let table = [
        ("make", vec!["Bash(make)"]),
        ("make; ls; cargo build", vec!["Bash(make)", "Bash(cargo build:*)"]),
        ("touch a", vec!["Bash(touch a)"]),
    ];
    for (text, want) in table {
        let judged = judge(&rules, "run_shell", &line(text));
        assert_eq!((judged.verdict, judged.recourse), (Ask, Recourse::Rule), "{text}");
        assert_eq!(judged.memory.rules(), want, "{text}");
        let grants: Vec<Grant> = want.iter().map(|rule| Grant::rule(rule, GrantScope::Session, "/p")).collect();
        let judged = judge(&Rules { grants: &grants, ..rules }, "run_shell", &line(text));
        assert_eq!((judged.verdict, judged.reach), (Allow, CommandReach::Unshielded), "{text}");
    }
    for judged in [CommandReach::Temporary, CommandReach::Unshielded, CommandReach::Project] {
        assert_eq!(rules.reach_after_yes(judged), judged);
    }
    assert_eq!(rules.reach_after_yes(CommandReach::ReadOnly), CommandReach::Unshielded);
    let shielded = Rules { unshielded: false, ..rules };
    assert_eq!(shielded.reach_after_yes(CommandReach::ReadOnly), CommandReach::Project);
}

proptest! {
    /// A machine that protects less never lets more run, and a line that runs there writes the project only by a rule.
    #[test]
    fn less_protection_allows_no_more(
        text in fragments(),
        mode in select(Mode::NAMES.map(|(_, mode)| mode).to_vec()),
        read_only in any::<bool>(),
        approved in any::<bool>(),
        says in any::<bool>(),
    ) {
        let constraints = Constraints { read_only, ..Constraints::default() };
        let action = if says { writing(&text) } else { line(&text) };
        let whole = Rules { sandboxed: true, approved, ..Rules::new(mode, &constraints) };
        let before = judge(&whole, "run_shell", &action);
        let now = judge(&Rules { unshielded: true, ..whole }, "run_shell", &action);
        prop_assert!(now.verdict >= before.verdict, "{}", text);
        prop_assert!(now.verdict != Allow || now.reach.is_read_only(), "{} {:?}", text, now.reach);
    }
}

/// A plan covers the changes that are discarded if the task owns all of their files.
#[test]
fn a_task_discards_changes_of_its_own_files() {
    let (constraints, owns) = (Constraints::default(), ["src/**".to_owned(), "a.txt".to_owned(), "sub/x".to_owned()]);
    let permissions = Permissions { root: "/p".to_owned(), ..Permissions::default() };
    let plain = Rules { sandboxed: true, permissions: &permissions, ..Rules::new(Mode::Default, &constraints) };
    let planned = Rules { approved: true, owns: Some(&owns), ..plain };
    for (text, want) in [
        ("git restore src/a.rs a.txt", "runs"),
        ("git checkout -- a.txt", "runs"),
        ("git stash push -- src/a.rs", "runs"),
        ("git -C sub restore x", "runs"),
        ("git restore b.txt", "asks"),
        ("git restore src/../b.txt", "asks"),
        ("git restore ../p2/a.txt", "asks"),
        ("git restore a.txt b.txt", "asks"),
        ("cd other; git restore a.txt", "asks"),
        ("git stash", "asks"),
        ("git -c core.fsmonitor=x restore a.txt", "asks"),
    ] {
        assert_eq!(told(&planned, &line(text)), want, "{text}");
        assert_eq!(told(&Rules { owns: None, ..planned }, &line(text)), "asks", "{text}");
        assert_eq!(told(&plain, &line(text)), "asks", "{text}");
    }
}
