//! The gate as tables, and what must hold under any rules as properties.

use proptest::prelude::*;

use super::Deed::{Answer as Say, Ask as Question, Execute, Fetch, Query, Read, ReadLinked, Team, Write};
use super::Verdict::{Allow, Ask, Deny};
use super::*;

const DEEDS: [Deed; 9] = [Read, ReadLinked, Write, Execute, Fetch, Query, Team, Question, Say];

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn act(deed: Deed, target: &str) -> Action {
    Action { deed, ..Action::read(target) }
}

fn free(constraints: &Constraints, mode: Mode) -> Rules<'_> {
    Rules { mode, grants: &[], constraints, approved: false, owns: &[] }
}

#[test]
fn modes_judge_as_documented() {
    // Read, ReadLinked, Write, Execute, Fetch, Query, Team, Ask, Answer
    let table = [
        (Mode::Default, [Allow, Ask, Ask, Ask, Ask, Allow, Allow, Ask, Allow]),
        (Mode::AcceptEdits, [Allow, Ask, Allow, Ask, Ask, Allow, Allow, Ask, Allow]),
        (Mode::Plan, [Allow, Ask, Deny, Deny, Ask, Allow, Allow, Ask, Allow]),
        (Mode::Auto, [Allow, Ask, Allow, Ask, Ask, Allow, Allow, Ask, Allow]),
        (Mode::DontAsk, [Allow, Deny, Deny, Deny, Deny, Allow, Allow, Deny, Allow]),
        (Mode::BypassPermissions, [Allow, Allow, Allow, Allow, Allow, Allow, Allow, Ask, Allow]),
    ];
    let none = Constraints::default();
    for (mode, verdicts) in table {
        for (deed, want) in DEEDS.into_iter().zip(verdicts) {
            assert_eq!(judge(&free(&none, mode), &act(deed, "a")).verdict, want, "{mode:?} {deed:?}");
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
        assert_eq!(judge(&free(&constraints, Mode::Default), &act(Fetch, host)).verdict, want, "{host}");
    }
    let granted = Rules { grants: &[Grant { deed: Fetch }], ..free(&constraints, Mode::Default) };
    assert_eq!(judge(&granted, &act(Fetch, "x.org")).verdict, Allow);
}

#[test]
fn an_approved_plan_stands_behind_what_its_task_owns() {
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
        let rules = Rules { approved: true, owns: &owns, ..free(&none, mode) };
        let deeds = [act(Write, "src/a/b.rs"), act(Write, "tests/a.rs"), act(Execute, "go test ./...")];
        for (action, want) in deeds.iter().zip(verdicts) {
            assert_eq!(judge(&rules, action).verdict, want, "{mode:?} {action:?}");
        }
    }
    let rules = Rules { approved: true, owns: &owns, ..free(&none, Mode::Default) };
    assert_eq!(judge(&rules, &act(Write, "README.md")).rule, "the approved plan");
    assert_eq!(judge(&rules, &act(Write, "docs/README.md")).rule, "outside the paths this task owns");
    let rules = Rules { owns: &[], ..rules };
    assert_eq!(judge(&rules, &act(Write, "anything")).verdict, Allow);
    // A plan says nothing about files that lead elsewhere.
    assert_eq!(judge(&rules, &act(ReadLinked, "a")).verdict, Ask);
}

#[test]
fn constraints_are_named_and_absolute() {
    let constraints = Constraints {
        allowed_dirs: list(&["src", "docs/api"]),
        blocked_patterns: list(&["*.env", "*secret*"]),
        write_patterns: list(&["*_test.go", "src/gen/**"]),
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
    let grants = [Read, ReadLinked, Write, Execute].map(|deed| Grant { deed });
    for (mode_name, mode) in Mode::NAMES {
        for (deed, target, want) in table {
            let rules =
                Rules { mode, grants: &grants, constraints: &constraints, approved: true, owns: &list(&["**"]) };
            let judged = judge(&rules, &act(deed, target));
            match want {
                Some(rule) => assert_eq!((judged.verdict, judged.rule.as_str()), (Deny, rule), "{mode_name} {target}"),
                None if mode == Mode::Plan => {}
                None => assert_eq!(judged.verdict, Allow, "{mode_name} {deed:?} {target}"),
            }
        }
    }
}

#[test]
fn a_pattern_that_cannot_be_read_is_taken_strictly() {
    let rules = |blocked: &[&str], write: &[&str]| Constraints {
        blocked_patterns: list(blocked),
        write_patterns: list(write),
        ..Constraints::default()
    };
    let bypass = |constraints: &Constraints, deed| judge(&free(constraints, Mode::BypassPermissions), &act(deed, "a"));
    assert_eq!(bypass(&rules(&["[a"], &[]), Read).verdict, Deny);
    assert_eq!(bypass(&rules(&[], &["[a"]), Write).verdict, Deny);
    let (none, owns) = (Constraints::default(), list(&["[a"]));
    let approved = Rules { approved: true, owns: &owns, ..free(&none, Mode::Auto) };
    assert_eq!(judge(&approved, &act(Write, "a")).verdict, Ask);
}

#[test]
fn a_grant_never_beats_plan_mode() {
    let (none, grants) = (Constraints::default(), [Grant { deed: Write }, Grant { deed: Execute }]);
    for deed in [Write, Execute] {
        let rules = |mode| Rules { grants: &grants, ..free(&none, mode) };
        assert_eq!(judge(&rules(Mode::Default), &act(deed, "a")).verdict, Allow);
        assert_eq!(judge(&rules(Mode::Plan), &act(deed, "a")).verdict, Deny);
    }
}

#[test]
fn old_deeds_are_still_read() {
    for (text, deed) in [("read_linked", ReadLinked), ("write", Write), ("answer", Say), ("execute", Execute)] {
        assert_eq!(serde_json::from_value::<Deed>(text.into()).unwrap(), deed);
    }
}

proptest! {
    /// More constraints never make a verdict milder.
    #[test]
    fn constraints_only_tighten(
        mode in 0_usize..6,
        deed in 0_usize..7,
        approved: bool,
        granted: bool,
        blocked in proptest::collection::vec("[ab*?]{1,3}", 0..3),
        write in proptest::collection::vec("[ab*/]{1,5}", 0..3),
        dirs in proptest::collection::vec("[ab]{1,2}", 0..3),
        target in "[ab]{1,2}(/[ab]{1,2}){0,2}",
    ) {
        let (none, (_, mode)) = (Constraints::default(), Mode::NAMES[mode]);
        let some = Constraints {
            allowed_dirs: dirs, blocked_patterns: blocked, write_patterns: write, ..Constraints::default()
        };
        let action = act(DEEDS[deed], &target);
        let grants = [Grant { deed: action.deed }];
        let rules = |constraints| Rules {
            mode, grants: if granted { &grants } else { &[] }, constraints, approved, owns: &[],
        };
        let (loose, tight) = (judge(&rules(&none), &action), judge(&rules(&some), &action));
        prop_assert!(tight.verdict == loose.verdict || tight.verdict == Deny, "{:?} {:?}", tight, loose);
        prop_assert!(mode != Mode::Plan || !matches!(action.deed, Write | Execute) || tight.verdict == Deny);
    }
}
