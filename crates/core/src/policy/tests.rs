//! The gate as tables, and what must hold under any rules as properties.

use proptest::prelude::*;

use super::ActionKind::{
    Answer as Say, Ask as Question, Execute, Fetch, Query, Read, ReadLinked, ReadOwn, Team, Write, WriteOwn,
};
use super::Verdict::{Allow, Ask, Deny};
use super::rule::{Anchors, List, Origin, RuleScope};
use super::*;
use crate::agent::Constraints;

mod connections;
mod reach;
mod recourse;

const KINDS: [ActionKind; 11] =
    [Read, ReadLinked, Write, Execute, Fetch, Query, Team, Question, Say, ReadOwn, WriteOwn];

const TOOL: &str = "a_tool";

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn act(kind: ActionKind, target: &str) -> Action {
    Action { kind, ..Action::read(target) }
}

fn free(constraints: &Constraints, mode: Mode) -> Rules<'_> {
    Rules::new(mode, constraints)
}

#[test]
fn modes_judge_as_documented() {
    // Read, ReadLinked, Write, Execute, Fetch, Query, Team, Ask, Answer, ReadOwn, WriteOwn
    let table = [
        (Mode::Default, [Allow, Ask, Ask, Ask, Ask, Allow, Allow, Ask, Allow, Allow, Allow]),
        (Mode::AcceptEdits, [Allow, Ask, Allow, Ask, Ask, Allow, Allow, Ask, Allow, Allow, Allow]),
        (Mode::Plan, [Allow, Ask, Deny, Deny, Ask, Allow, Allow, Ask, Allow, Allow, Deny]),
        (Mode::Auto, [Allow, Ask, Allow, Ask, Ask, Allow, Allow, Ask, Allow, Allow, Allow]),
        (Mode::DontAsk, [Allow, Deny, Deny, Deny, Deny, Allow, Allow, Deny, Allow, Allow, Allow]),
        (Mode::BypassPermissions, [Allow, Allow, Allow, Allow, Ask, Allow, Allow, Ask, Allow, Allow, Allow]),
    ];
    let none = Constraints::default();
    for (mode, verdicts) in table {
        for (kind, want) in KINDS.into_iter().zip(verdicts) {
            assert_eq!(judge(&free(&none, mode), TOOL, &act(kind, "a")).verdict, want, "{mode:?} {kind:?}");
        }
    }
}

#[test]
fn named_hosts_need_no_question() {
    let allowed_hosts = list(&["docs.rs", "*.Example.org"]);
    let constraints = Constraints { allowed_hosts, ..Constraints::default() };
    let table = [
        ("docs.rs", Allow),
        ("DOCS.rs", Allow),
        ("a.b.example.org", Allow),
        ("example.org", Ask),
        ("evilexample.org", Ask),
        (".example.org", Ask),
        ("docs.rs.evil.org", Ask),
        ("evil.docs.rs", Ask),
    ];
    for (host, want) in table {
        assert_eq!(judge(&free(&constraints, Mode::Default), TOOL, &act(Fetch, host)).verdict, want, "{host}");
    }
}

#[test]
fn an_agents_own_directory_is_allowed_unless_a_rule_names_it() {
    use super::rule::{Anchors, List, Origin, RuleScope};
    let rule = |list, text: &str| {
        let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
        Rule::new(list, text, origin, &Anchors { root: "/p", base: "/p", home: "/" })
    };
    // A rule, and what becomes of a look at `@files/a.md`, a change of it, and the same of `@data/a.md`.
    let table = [
        (rule(List::Deny, "Edit(@data/**)"), [Allow, Allow, Allow, Deny]),
        (rule(List::Deny, "Read(@files/**)"), [Deny, Allow, Allow, Allow]),
        (rule(List::Ask, "Edit(@files/*.md)"), [Allow, Ask, Allow, Allow]),
        (rule(List::Deny, "Edit(*.md)"), [Allow, Deny, Allow, Deny]),
        (rule(List::Deny, "Read"), [Deny, Allow, Deny, Allow]),
        (rule(List::Deny, "write_file"), [Allow, Deny, Allow, Deny]),
        (rule(List::Deny, "Edit(./src/**)"), [Allow; 4]),
        (rule(List::Deny, "Edit(//h/**)"), [Allow; 4]),
    ];
    let walled = Constraints {
        allowed_dirs: Some(list(&["src"])),
        write_patterns: Some(list(&["src/*.rs"])),
        ..Constraints::default()
    };
    for (rule, verdicts) in table {
        let text = rule.text.clone();
        let permissions = Permissions {
            root: "/p".into(),
            rules: vec![rule],
            no_reads_outside: true,
            no_writes_outside: true,
            ..Permissions::default()
        };
        let owns = list(&["src/**"]);
        let rules = Rules {
            permissions: &permissions,
            owns: Some(&owns),
            approved: true,
            ..Rules::new(Mode::Default, &walled)
        };
        for (at, want) in verdicts.into_iter().enumerate() {
            let (kind, tool) = if at % 2 == 0 { (ReadOwn, "read_file") } else { (WriteOwn, "write_file") };
            let target = if at < 2 { "@files/a.md" } else { "@data/a.md" };
            assert_eq!(judge(&rules, tool, &act(kind, target)).verdict, want, "{text}: {kind:?} {target}");
        }
    }
    let looks = Constraints { read_only: true, ..Constraints::default() };
    let blocked = Constraints { blocked_patterns: list(&["*.env"]), ..Constraints::default() };
    let none = Constraints::default();
    for (_, mode) in Mode::NAMES {
        let verdict = |constraints, kind, path| judge(&Rules::new(mode, constraints), TOOL, &act(kind, path));
        assert_eq!(verdict(&looks, ReadOwn, "@data/a.md").verdict, Allow);
        let refused = verdict(&looks, WriteOwn, "@data/a.md");
        assert_eq!((refused.verdict, refused.rule.as_str()), (Deny, "the member's `read_only`"));
        for kind in [ReadOwn, WriteOwn] {
            assert_eq!(verdict(&blocked, kind, "@files/prod.ENV").verdict, Deny);
        }
        assert!(verdict(&none, WriteOwn, "@files/.git/hooks/pre-commit").verdict > Allow);
    }
    let within = Rules { within: &[Mode::Plan], ..Rules::new(Mode::BypassPermissions, &none) };
    assert_eq!(judge(&within, TOOL, &act(WriteOwn, "@files/a")).verdict, Deny, "works for somebody who only looks");
}

/// A write inside, a write outside, a command: only the files of the task need no question.
#[test]
fn a_correction_is_allowed_within_the_paths_of_its_task() {
    let none = Constraints::default();
    let (owns, nothing) = (list(&["src/**"]), Vec::new());
    let table = [
        (Mode::Default, Some(&owns), [Allow, Ask, Ask]),
        (Mode::Default, Some(&nothing), [Ask, Ask, Ask]),
        (Mode::Default, None, [Ask, Ask, Ask]),
        (Mode::DontAsk, Some(&owns), [Allow, Deny, Deny]),
        (Mode::Plan, Some(&owns), [Deny, Deny, Deny]),
    ];
    for (mode, owns, want) in table {
        let rules = Rules { corrects: true, owns: owns.map(Vec::as_slice), ..free(&none, mode) };
        let acts = [act(Write, "src/a.rs"), act(Write, "doc/a.md"), act(Execute, "go test ./...")];
        let verdicts = acts.map(|action| judge(&rules, TOOL, &action).verdict);
        assert_eq!(verdicts, want, "{mode:?} {owns:?}");
    }
}

#[test]
fn an_approved_plan_allows_the_paths_of_its_task() {
    // A write inside, a write outside, a command.
    let table = [
        (Mode::Default, [Allow, Ask, Allow]),
        (Mode::AcceptEdits, [Allow, Ask, Allow]),
        (Mode::Auto, [Allow, Ask, Allow]),
        (Mode::Plan, [Deny, Deny, Deny]),
        (Mode::DontAsk, [Allow, Deny, Allow]),
        (Mode::BypassPermissions, [Allow, Allow, Allow]),
    ];
    let (none, owns) = (Constraints::default(), list(&["src/**", "README.md"]));
    for (mode, verdicts) in table {
        let rules = Rules { approved: true, owns: Some(&owns), ..free(&none, mode) };
        let kinds = [act(Write, "src/a/b.rs"), act(Write, "tests/a.rs"), act(Execute, "go test ./...")];
        for (action, want) in kinds.iter().zip(verdicts) {
            assert_eq!(judge(&rules, TOOL, action).verdict, want, "{mode:?} {action:?}");
        }
    }
    let rules = Rules { approved: true, owns: Some(&owns), ..free(&none, Mode::Default) };
    assert_eq!(judge(&rules, TOOL, &act(Write, "README.md")).rule, "the approved plan");
    assert_eq!(judge(&rules, TOOL, &act(Write, "docs/README.md")).rule, "outside the paths this task owns");
    let rules = Rules { owns: None, ..rules };
    assert_eq!(judge(&rules, TOOL, &act(Write, "anything")).verdict, Allow);
    // A plan says nothing about files that lead elsewhere.
    assert_eq!(judge(&rules, TOOL, &act(ReadLinked, "a")).verdict, Ask);
}

#[test]
fn constraints_are_named_and_absolute() {
    let constraints = Constraints {
        allowed_dirs: Some(list(&["src", "docs/api"])),
        blocked_patterns: list(&["*.env", "*secret*"]),
        write_patterns: Some(list(&["*_test.go", "src/gen/**"])),
        ..Constraints::default()
    };
    let dirs = "the member's `allowed_dirs` (`src`, `docs/api`)";
    let table = [
        (Read, "src/a.go", None),
        (Read, "docs", None),
        (Read, ".", None),
        (Read, "docs/other", Some(dirs)),
        (ReadLinked, "docs", Some(dirs)),
        (Write, "docs", Some(dirs)),
        (Write, "a_test.go", Some(dirs)),
        (Read, "src/Prod.ENV", Some("the member's `blocked_patterns` (`*.env`)")),
        (Read, "src/Secrets/a", Some("the member's `blocked_patterns` (`*secret*`)")),
        (Write, "src/secret_test.go", Some("the member's `blocked_patterns` (`*secret*`)")),
        (Write, "src/a.go", Some("the member's `write_patterns` (`*_test.go`, `src/gen/**`)")),
        (Write, "src/x/a_test.go", None),
        (Write, "src/gen/x/a.go", None),
        (Execute, "cat .env", None),
        (Team, ".env", None),
    ];
    let grants = [Read, ReadLinked, Write, Execute].map(Grant::of_kind);
    for (mode_name, mode) in Mode::NAMES {
        for (kind, target, want) in table {
            let owns = list(&["**"]);
            let rules = Rules { grants: &grants, approved: true, owns: Some(&owns), ..Rules::new(mode, &constraints) };
            let judged = judge(&rules, TOOL, &act(kind, target));
            match want {
                Some(rule) => assert_eq!((judged.verdict, judged.rule.as_str()), (Deny, rule), "{mode_name} {target}"),
                None if mode == Mode::Plan => {}
                None => assert_eq!(judged.verdict, Allow, "{mode_name} {kind:?} {target}"),
            }
        }
    }
}

#[test]
fn a_file_in_a_worktree_is_judged_like_the_project_file() {
    use super::rule::{Anchors, List, Origin, RuleScope};
    let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
    let anchors = Anchors { root: "/p", base: "/p", home: "/" };
    let rules = vec![Rule::new(List::Deny, "Edit(./db/**)", origin, &anchors)];
    let permissions = Permissions { root: "/p".into(), rules, copy: "/h/c/".into(), ..Permissions::default() };
    let constraints = Constraints { blocked_patterns: list(&["*.pem"]), ..Constraints::default() };
    let rules = Rules { permissions: &permissions, ..Rules::new(Mode::AcceptEdits, &constraints) };
    let table = [
        (Read, "/h/c/src/a", Allow),
        (Write, "/h/c/src/a", Allow),
        (Write, "src/a", Allow),
        (Write, "/h/c/db/x", Deny),
        (Write, "db/x", Deny),
        (Read, "/h/c/key.pem", Deny),
        (Write, "/h/c/.git/config", Ask),
        (Read, "/h/copy/x", Ask),
        (Read, "/h/c/../x", Ask),
    ];
    for (kind, path, want) in table {
        assert_eq!(judge(&rules, TOOL, &act(kind, path)).verdict, want, "{kind:?} {path}");
    }
}

#[test]
fn a_pattern_that_cannot_be_read_is_taken_strictly() {
    let rules = |blocked: &[&str], write: &[&str]| Constraints {
        blocked_patterns: list(blocked),
        write_patterns: Some(list(write)),
        ..Constraints::default()
    };
    let bypass =
        |constraints: &Constraints, kind| judge(&free(constraints, Mode::BypassPermissions), TOOL, &act(kind, "a"));
    assert_eq!(bypass(&rules(&["[a"], &[]), Read).verdict, Deny);
    assert_eq!(bypass(&rules(&[], &["[a"]), Write).verdict, Deny);
    let (none, owns) = (Constraints::default(), list(&["[a"]));
    let approved = Rules { approved: true, owns: Some(&owns), ..free(&none, Mode::Auto) };
    assert_eq!(judge(&approved, TOOL, &act(Write, "a")).verdict, Ask);
}

fn shell(words: &[&[&str]]) -> Action {
    let part =
        |words: &&[&str]| command_line::SimpleCommand { argv: list(words), ..command_line::SimpleCommand::default() };
    Action { line: Some(command_line::CommandLine::Plain(words.iter().map(part).collect())), ..act(Execute, "x") }
}

#[test]
fn an_owner_runs_its_own_checks_and_nothing_like_them() {
    let constraints = Constraints { allowed_commands: Some(list(&["cargo test"])), ..Constraints::default() };
    let checks = [list(&["./smoke.sh", "--quick"]), list(&["sh", "-c", "make ok"]), list(&["git", "push"])];
    let table: [(&[&[&str]], Mode, Verdict); 10] = [
        (&[&["./smoke.sh", "--quick"]], Mode::Default, Allow),
        (&[&["./smoke.sh", "--quick"]], Mode::DontAsk, Allow),
        (&[&["./smoke.sh", "--quick"]], Mode::Plan, Deny),
        (&[&["./smoke.sh", "--slow"]], Mode::Default, Ask),
        (&[&["./smoke.sh"]], Mode::Default, Ask),
        (&[&["./smoke.sh", "--quick", "x"]], Mode::Default, Ask),
        (&[&["sh", "-c", "make ok"]], Mode::Default, Allow),
        (&[&["sh", "-c", "make other"]], Mode::DontAsk, Deny),
        // What always needs a person still does; and in another folder it is another command.
        (&[&["git", "push"]], Mode::Default, Ask),
        (&[&["cd", "sub"], &["./smoke.sh", "--quick"]], Mode::Default, Ask),
    ];
    for (words, mode, want) in table {
        let rules = Rules { checks: &checks, approved: true, ..free(&constraints, mode) };
        let judged = judge(&rules, TOOL, &shell(words));
        assert_eq!(judged.verdict, want, "{words:?} {mode:?}: {}", judged.rule);
    }
    let none = Constraints::default();
    let rules = Rules { checks: &checks, ..free(&none, Mode::Default) };
    let judged = judge(&rules, TOOL, &shell(&[&["./smoke.sh", "--quick"]]));
    assert_eq!(judged.basis, Basis::BuiltIn(AutoAllow::Check), "no question without a plan, too");
    // A tool of ours may choose some of the tests.
    for (line, want) in
        [("./smoke.sh --quick", Allow), ("./smoke.sh --quick one", Allow), ("./smoke.sh --quicker", Ask)]
    {
        assert_eq!(judge(&rules, TOOL, &act(Execute, line)).verdict, want, "{line}");
    }
}

#[test]
fn a_refused_command_is_one_line_with_the_nearest_allowed() {
    let allowed = list(&["ls", "cargo build", "cargo test", "python3 -m pytest", "npm test", "./"]);
    let table: [(&[&str], &str, &str); 11] = [
        (&["cargo", "publish"], "cargo publish", "`cargo build`"),
        (&["cargo", "tset"], "cargo tset", "`cargo test`"),
        (&["crago", "tset", "--all"], "crago", "`cargo test`"),
        (&["python3", "-m", "pytst"], "python3 -m", "`python3 -m pytest`"),
        (&["carg", "test"], "carg", "`cargo test`"),
        (&["python3", "-c", "x"], "python3 -c", "`python3 -m pytest`"),
        (&["/usr/bin/python3", "x.py"], "/usr/bin/python3", "`python3 -m pytest`"),
        (&["python", "x.py"], "python", "`python3 -m pytest`"),
        (&["nmp", "test"], "nmp", "`npm test`"),
        (&["curl", "x"], "curl", ""),
        (&["sl"], "sl", ""),
    ];
    let constraints = Constraints { allowed_commands: Some(allowed), ..Constraints::default() };
    for (words, name, near) in table {
        let judged = judge(&free(&constraints, Mode::Default), TOOL, &shell(&[words]));
        let want = match near {
            "" => format!("the member's `allowed_commands`: `{name}` is not in it"),
            near => format!("the member's `allowed_commands`: `{name}` is not in it; nearest allowed: {near}"),
        };
        assert_eq!((judged.verdict, judged.rule), (Ask, want), "{words:?}");
    }
}

#[test]
fn a_refusal_names_no_command_that_is_refused_itself() {
    let constraints = Constraints {
        allowed_commands: Some(list(&["cargo build", "cargo test", "cargo fmt"])),
        ..Constraints::default()
    };
    let origin = || Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
    let anchors = Anchors { root: "/p", base: "/p", home: "/h" };
    let deny = |text: &str| Rule::new(List::Deny, text, origin(), &anchors);
    let told = |denied: &[&str], mode: Mode| {
        let permissions =
            Permissions { rules: denied.iter().map(|text| deny(text)).collect(), ..Permissions::default() };
        let rules = Rules { permissions: &permissions, ..free(&constraints, mode) };
        judge(&rules, TOOL, &shell(&[&["cargo", "tset"]])).rule
    };
    assert!(told(&[], Mode::Default).ends_with("nearest allowed: `cargo test`"));
    assert!(told(&["Bash(cargo test)"], Mode::Default).ends_with("nearest allowed: `cargo build`"));
    assert!(told(&["Bash(cargo:*)"], Mode::Default).contains("Bash(cargo:*)"), "a denial comes first");
    assert!(told(&[], Mode::Plan).ends_with("`cargo tset` is not in it"), "a plan only looks");
}

#[test]
fn edits_in_a_worktree_need_no_approval() {
    let none = Constraints::default();
    let copy = Permissions { root: "/p".into(), copy: "/copies/a/tree".into(), ..Permissions::default() };
    let table = [
        (Mode::Default, "src/a.rs", Allow),
        (Mode::DontAsk, "src/a.rs", Allow),
        (Mode::Plan, "src/a.rs", Deny),
        (Mode::Default, "/copies/a/tree/src/a.rs", Allow),
        // What other programs obey, and what is not in the worktree, is asked about as ever.
        (Mode::Default, ".github/workflows/ci.yml", Ask),
        (Mode::Default, "/etc/hosts", Ask),
    ];
    for (mode, path, want) in table {
        let rules = Rules { permissions: &copy, ..free(&none, mode) };
        assert_eq!(judge(&rules, TOOL, &act(Write, path)).verdict, want, "{mode:?} {path}");
    }
    let owns = list(&["src/**"]);
    let rules = Rules { permissions: &copy, approved: true, owns: Some(&owns), ..free(&none, Mode::Default) };
    assert_eq!(judge(&rules, TOOL, &act(Write, "docs/a.md")).verdict, Ask, "a plan merges by itself");
}

#[test]
fn an_empty_allow_list_allows_nothing() {
    let no = || Some(Vec::new());
    let none = Constraints::default();
    let dirs = Constraints { allowed_dirs: no(), ..Constraints::default() };
    let writes = Constraints { write_patterns: no(), ..Constraints::default() };
    let within = Constraints { write_within: vec![Vec::new()], ..Constraints::default() };
    let commands = Constraints { allowed_commands: no(), ..Constraints::default() };
    // The constraints, the action, and what becomes of it where everything else is allowed.
    let table = [
        (&none, Read, Allow),
        (&none, Write, Allow),
        (&none, Execute, Allow),
        (&dirs, Read, Deny),
        (&dirs, Write, Deny),
        (&writes, Read, Allow),
        (&writes, Write, Deny),
        (&within, Write, Deny),
        (&commands, Execute, Deny),
        (&commands, Read, Allow),
        // No host is free; each is asked about.
        (&none, Fetch, Ask),
    ];
    for (constraints, kind, want) in table {
        let rules = Rules { approved: true, ..free(constraints, Mode::BypassPermissions) };
        assert_eq!(judge(&rules, TOOL, &act(kind, "a")).verdict, want, "{constraints:?} {kind:?}");
    }
    // A task that owns nothing changes nothing unasked, whatever was approved.
    for (owns, want) in [(None, Allow), (Some(&[][..]), Ask)] {
        let rules = Rules { approved: true, owns, ..free(&none, Mode::AcceptEdits) };
        assert_eq!(judge(&rules, TOOL, &act(Write, "a")).verdict, want, "{owns:?}");
    }
    // Two lists with nothing in common leave nothing, and a met list is no freer.
    let one = Constraints { allowed_dirs: Some(list(&["src"])), ..Constraints::default() };
    let two = Constraints { allowed_dirs: Some(list(&["docs"])), ..Constraints::default() };
    for met in [one.meet(&two), one.meet(&dirs), dirs.meet(&none)] {
        assert_eq!(met.allowed_dirs, no(), "{met:?}");
    }
    assert_eq!(writes.meet(&none).write_patterns, no());
}

#[test]
fn changes_of_protected_files_always_ask() {
    let guarded = vec!["/home/p/var/record.jsonl".to_owned()];
    let permissions = Permissions { root: "/home/p".into(), guarded, ..Permissions::default() };
    let none = Constraints::default();
    let grants = [Grant::of_kind(Write), Grant::of_kind(Execute)];
    let rules = |mode| Rules { permissions: &permissions, approved: true, grants: &grants, ..Rules::new(mode, &none) };
    let run = |words: &str| {
        let argv: Vec<String> = words.split(' ').map(str::to_owned).collect();
        Action { kind: Execute, line: Some(CommandLine::single(&argv)), ..Action::read(words) }
    };
    let paths =
        [".github/workflows/ci.yml", "AGENTS.md", "docs/CLAUDE.md", ".envrc", ".vscode/tasks.json", "/home/u/.bashrc"];
    let commands = [
        "cp x .github/workflows/ci.yml",
        "cp -r x .github",
        "cp tpl/AGENTS.md .",
        "cp a/.envrc b.txt sub/",
        "mv x .husky/pre-commit",
        "tee CLAUDE.md",
        "sed -i s/a/b/ AGENTS.md",
        "touch .git/hooks/post-commit",
        "rm .github/workflows/ci.yml",
        "ln -s /tmp/x .vscode",
        "truncate -s 0 logs/audit.jsonl",
        "tee var/record.jsonl",
        "rm -r var",
        "timeout 5 cp x .cursorrules",
    ];
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Auto, Mode::BypassPermissions] {
        let actions = paths.map(|path| act(Write, path)).into_iter().chain(commands.map(run));
        for action in actions {
            let judged = judge(&rules(mode), TOOL, &action);
            assert_eq!((judged.verdict, judged.is_danger), (Ask, true), "{mode:?} {}: {}", action.target, judged.rule);
        }
    }
    // Ordinary work in the plan stays free, and everything may be read.
    for action in [
        act(Write, "Makefile"),
        act(Write, "src/a.rs"),
        act(Read, "AGENTS.md"),
        run("cp a.rs b.rs"),
        run("cp src/a.rs ."),
        run("cat AGENTS.md"),
    ] {
        assert_eq!(judge(&rules(Mode::AcceptEdits), TOOL, &action).verdict, Allow, "{}", action.target);
    }
}

#[test]
fn a_grant_never_beats_plan_mode() {
    let (none, grants) = (Constraints::default(), [Grant::of_kind(Write), Grant::of_kind(Execute)]);
    for kind in [Write, Execute] {
        let rules = |mode| Rules { grants: &grants, ..free(&none, mode) };
        assert_eq!(judge(&rules(Mode::Default), TOOL, &act(kind, "a")).verdict, Allow);
        assert_eq!(judge(&rules(Mode::Plan), TOOL, &act(kind, "a")).verdict, Deny);
    }
}

#[test]
fn old_kinds_are_still_read() {
    for (text, kind) in [
        ("read_linked", ReadLinked),
        ("write", Write),
        ("answer", Say),
        ("execute", Execute),
        ("read_own", ReadOwn),
        ("write_own", WriteOwn),
    ] {
        assert_eq!(serde_json::from_value::<ActionKind>(text.into()).unwrap(), kind);
    }
}

#[test]
fn old_grants_are_still_read() {
    let old: Grant = serde_json::from_str(r#"{"deed":"write"}"#).unwrap();
    assert_eq!(old, Grant::of_kind(Write));
    let new = Grant::rule("Bash(cargo test:*)", GrantScope::Task, "/p");
    assert_eq!(serde_json::from_str::<Grant>(&serde_json::to_string(&new).unwrap()).unwrap(), new);
}

/// A command of plain words.
fn line(text: &str) -> Action {
    let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
    Action { line: Some(CommandLine::single(&argv)), ..act(Execute, text) }
}

#[test]
fn a_remembered_rule_allows_again_and_nothing_else() {
    let none = Constraints::default();
    let first = judge(&free(&none, Mode::Default), "run_shell", &line("cargo test -p core"));
    assert_eq!(first.memory, RememberedRule::Rules(vec!["Bash(cargo test:*)".into()]));
    assert_eq!(first.hint.to_string(), "`\"allow\": [\"Bash(cargo test:*)\"]`");
    let grants = [Grant::rule(&first.memory.rules()[0], GrantScope::Session, "")];
    let rules = Rules { grants: &grants, ..free(&none, Mode::Default) };
    let verdict = |text: &str| judge(&rules, "run_shell", &line(text)).verdict;
    assert_eq!(
        (verdict("cargo test x"), verdict("cargo build"), verdict("cargo test --config x=y")),
        (Allow, Ask, Ask)
    );
    let push = judge(&rules, "run_shell", &line("git push"));
    assert_eq!((push.verdict, push.memory, push.is_danger), (Ask, RememberedRule::Nothing, true));
    assert_eq!(push.rule, "always asked: it publishes commits");
}

/// Whoever says yes to `touch` for the session has not said yes to `rm -rf` of somebody else.
#[test]
fn a_yes_to_changes_is_none_to_deletions() {
    let (none, permissions) = (Constraints::default(), Permissions { root: "/r".into(), ..Permissions::default() });
    let under = |grants: &[Grant], text: &str| {
        let rules = Rules { grants, permissions: &permissions, ..free(&none, Mode::Default) };
        judge(&rules, "run_shell", &line(text))
    };
    let touch = under(&[], "touch one.txt");
    assert_eq!(touch.memory, RememberedRule::Rules(vec!["Edit".into()]));
    let edits = [Grant::rule("Edit", GrantScope::Session, "/r")];
    assert_eq!(under(&edits, "touch two.txt").verdict, Allow);
    let gone = under(&edits, "rm -rf src");
    assert_eq!((gone.verdict, gone.memory), (Ask, RememberedRule::Rules(vec!["Edit(./src)".into()])));
    let there = [Grant::rule("Edit(./src)", GrantScope::Session, "/r")];
    let verdict = |text: &str| under(&there, text).verdict;
    assert_eq!((verdict("rm -rf src"), verdict("rm -rf lib"), verdict("touch src")), (Allow, Ask, Allow));
    // What is moved is gone from where it was.
    for text in ["mv src/keep.txt gone.txt", "mv -t gone src/keep.txt", "mv -f lib/a src/keep.txt gone"] {
        let moved = under(&edits, text);
        let RememberedRule::Rules(rules) = &moved.memory else { panic!("{moved:?}") };
        assert_eq!((moved.verdict, rules.contains(&"Edit(./src/keep.txt)".into())), (Ask, true), "{text}: {rules:?}");
        assert!(!rules.contains(&"Edit".into()), "{text}: {rules:?}");
    }
    assert_eq!((verdict("mv src gone"), verdict("mv lib src")), (Ask, Ask));
    let both = [Grant::rule("Edit(./src)", GrantScope::Session, "/r"), Grant::rule("Edit", GrantScope::Session, "/r")];
    assert_eq!((under(&both, "mv src gone").verdict, under(&both, "mv lib src").verdict), (Allow, Ask));
}

#[test]
fn a_called_agent_is_at_least_as_strict_as_its_caller() {
    let none = Constraints::default();
    let rules = Rules { within: &[Mode::Plan], ..free(&none, Mode::BypassPermissions) };
    assert_eq!(judge(&rules, TOOL, &act(Write, "a")).verdict, Deny);
    assert_eq!(judge(&rules, TOOL, &act(Write, "a")).rule, "permission mode `plan`");
}

/// Rules as anybody might write them.
fn any_rule() -> impl Strategy<Value = Rule> {
    let lists = prop_oneof![Just(rule::List::Deny), Just(rule::List::Ask), Just(rule::List::Allow)];
    let text = prop_oneof![
        "(Bash|Edit|Read|Agent|WebFetch|Write|mcp__a|\\*)",
        "Bash\\((git|cargo|rm|ls|\\*)( (push|test|x|\\*)){0,2}(:\\*)?\\)",
        "(Edit|Read)\\((//|~/|/|\\./|)[ab*]{1,2}(/[ab*]{1,2}){0,2}\\)",
        "[ -~]{0,12}",
    ];
    (lists, text).prop_map(|(list, text)| {
        let origin = rule::Origin { scope: rule::RuleScope::User, file: "f".into(), line: 1 };
        Rule::new(list, &text, origin, &rule::Anchors { root: "/r", base: "/r/a", home: "/h" })
    })
}

fn any_action() -> impl Strategy<Value = Action> {
    let words = "(git|cargo|rm|ls|cat|sh|find|a)( (push|test|x|-rf|a/b|/etc|\\.\\.|-exec|\\.git)){0,3}";
    let line = prop_oneof![
        words.prop_map(|text: String| CommandLine::single(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())),
        "[ -~]{0,20}".prop_map(|text| CommandLine::Opaque { text, why: ShellSyntax::Expansion }),
    ];
    prop_oneof![
        (0..KINDS.len(), "(@files/|)[ab.]{1,2}(/[ab.]{1,2}){0,2}").prop_map(|(kind, path)| act(KINDS[kind], &path)),
        line.prop_map(|line| Action { line: Some(line), ..act(Execute, "x") }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A child has the parent's rules and perhaps more that forbid, its constraints, a mode of its own: never freer.
    #[test]
    fn a_child_is_never_freer(
        rules in proptest::collection::vec(any_rule(), 0..5),
        more in proptest::collection::vec(any_rule(), 0..3),
        modes in (0_usize..6, 0_usize..6),
        approved: bool,
        blocked in proptest::collection::vec("[ab*]{1,2}", 0..2),
        commands in proptest::option::of(proptest::collection::vec("(git|ls|cargo test)", 0..2)),
        action in any_action(),
    ) {
        let (none, (_, mode), (_, own)) = (Constraints::default(), Mode::NAMES[modes.0], Mode::NAMES[modes.1]);
        let some = Constraints { blocked_patterns: blocked, allowed_commands: commands, ..Constraints::default() };
        let strict = more.into_iter().filter(|rule| rule.list != rule::List::Allow);
        let parent = Permissions { root: "/r".into(), rules: rules.clone(), ..Permissions::default() };
        let child = Permissions { root: "/r".into(), rules: rules.into_iter().chain(strict).collect(), ..Permissions::default() };
        let free = Rules { permissions: &parent, approved, ..Rules::new(mode, &none) };
        let bound = Rules { permissions: &child, within: &[mode], approved, ..Rules::new(own, &some) };
        let (above, below) = (judge(&free, TOOL, &action), judge(&bound, TOOL, &action));
        prop_assert!(below.verdict >= above.verdict, "{:?}\n{:?}", below, above);
    }

    /// One more denial never loosens, and danger never passes.
    #[test]
    fn a_denial_only_tightens(
        rules in proptest::collection::vec(any_rule(), 0..5),
        more in any_rule(),
        mode in 0_usize..6,
        approved: bool,
        action in any_action(),
    ) {
        let (none, (_, mode)) = (Constraints::default(), Mode::NAMES[mode]);
        prop_assume!(more.list == rule::List::Deny);
        let before = Permissions { root: "/r".into(), rules: rules.clone(), ..Permissions::default() };
        let after = Permissions { root: "/r".into(), rules: rules.into_iter().chain([more]).collect(), ..Permissions::default() };
        let judged = |permissions| judge(&Rules { permissions, approved, ..Rules::new(mode, &none) }, TOOL, &action);
        let (before, after) = (judged(&before), judged(&after));
        prop_assert!(after.verdict >= before.verdict);
        let is_push = matches!(&action.line, Some(CommandLine::Plain(parts)) if parts[0].argv.starts_with(&["git".into(), "push".into()]));
        prop_assert!(!is_push || before.verdict > Allow);
    }

    /// More constraints never make a verdict milder.
    #[test]
    fn constraints_only_tighten(
        mode in 0_usize..6,
        kind in 0..KINDS.len(),
        approved: bool,
        granted: bool,
        blocked in proptest::collection::vec("[ab*?]{1,3}", 0..3),
        write in proptest::option::of(proptest::collection::vec("[ab*/]{1,5}", 0..3)),
        dirs in proptest::option::of(proptest::collection::vec("[ab]{1,2}", 0..3)),
        target in "[ab]{1,2}(/[ab]{1,2}){0,2}",
    ) {
        let (none, (_, mode)) = (Constraints::default(), Mode::NAMES[mode]);
        let some = Constraints {
            allowed_dirs: dirs, blocked_patterns: blocked, write_patterns: write, ..Constraints::default()
        };
        let action = act(KINDS[kind], &target);
        let grants = [Grant::of_kind(action.kind)];
        let rules = |constraints| Rules {
            grants: if granted { &grants } else { &[] }, approved, ..Rules::new(mode, constraints)
        };
        let (loose, tight) = (judge(&rules(&none), TOOL, &action), judge(&rules(&some), TOOL, &action));
        prop_assert!(tight.verdict == loose.verdict || tight.verdict == Deny, "{:?} {:?}", tight, loose);
        prop_assert!(mode != Mode::Plan || !matches!(action.kind, Write | Execute | WriteOwn) || tight.verdict == Deny);
    }
}
