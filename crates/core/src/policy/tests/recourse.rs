//! What would let a refused call run, as a table over all reasons of a refusal or a question.

use super::*;

/// The rules of the table, with a root so that places outside the project are known as such.
fn permissions() -> Permissions {
    let rule = |list, text: &str| {
        let origin = Origin { scope: RuleScope::User, file: String::new(), line: 1 };
        Rule::new(list, text, origin, &Anchors { root: "/r", base: "/r", home: "/h" })
    };
    let rules = vec![rule(List::Ask, "Bash(make:*)"), rule(List::Deny, "Bash(cargo publish:*)")];
    Permissions { root: "/r".into(), rules, ..Permissions::default() }
}

#[test]
fn every_refusal_names_a_recourse() {
    let (free, read_only) = (Constraints::default(), Constraints { read_only: true, ..Constraints::default() });
    let owned = list(&["src/**"]);
    let own = |mode| Rules { approved: true, owns: Some(&owned), ..Rules::new(mode, &free) };
    let plain = |mode| Rules::new(mode, &free);
    let all = permissions();
    let opaque =
        CommandLine::Opaque { text: "for x in *; do echo $x; done".into(), why: ShellSyntax::ControlStructure };
    let hidden = Action { line: Some(opaque), ..act(Execute, "for x in *; do echo $x; done") };
    let table = [
        (plain(Mode::Default), act(Write, "a"), Ask, Recourse::RuleOrMode),
        (plain(Mode::DontAsk), act(Write, "a"), Deny, Recourse::RuleOrMode),
        (plain(Mode::Default), line("cargo test"), Ask, Recourse::RuleOrMode),
        (plain(Mode::DontAsk), line("git clean -f"), Deny, Recourse::RuleOrMode),
        (plain(Mode::Plan), act(Write, "a"), Deny, Recourse::Mode),
        (plain(Mode::Plan), line("cargo test"), Deny, Recourse::Mode),
        (plain(Mode::DontAsk), act(Question, ""), Deny, Recourse::Mode),
        (plain(Mode::DontAsk), act(ActionKind::Merge, "copy"), Deny, Recourse::Mode),
        (plain(Mode::Default), act(Fetch, "example.org"), Ask, Recourse::Rule),
        (plain(Mode::Default), act(Write, "/etc/hosts"), Ask, Recourse::Rule),
        (plain(Mode::Default), hidden, Ask, Recourse::Rule),
        (plain(Mode::Default), line("cargo publish"), Deny, Recourse::Rule),
        (own(Mode::Default), act(Write, "docs/a.md"), Ask, Recourse::Rule),
        (Rules::new(Mode::Default, &read_only), act(Write, "a"), Deny, Recourse::Rule),
        (plain(Mode::BypassPermissions), line("make all"), Ask, Recourse::Person),
        (plain(Mode::BypassPermissions), line("git push"), Ask, Recourse::Person),
        (plain(Mode::DontAsk), line("git push"), Deny, Recourse::Person),
        (plain(Mode::Default), act(Write, "AGENTS.md"), Ask, Recourse::Person),
        (plain(Mode::Default), act(Question, ""), Ask, Recourse::Person),
        (plain(Mode::Default), act(ActionKind::Merge, "copy"), Ask, Recourse::Person),
        (plain(Mode::DontAsk), act(ActionKind::Propose, ""), Ask, Recourse::Person),
        // All parts of a line must be lifted, so the hardest counts, in any order.
        (plain(Mode::Default), shell(&[&["cargo", "test"], &["git", "push"]]), Ask, Recourse::Person),
        (plain(Mode::Default), shell(&[&["curl", "https://example.org"], &["git", "push"]]), Ask, Recourse::Person),
    ];
    for (rules, action, verdict, recourse) in table {
        let judged = judge(&Rules { permissions: &all, ..rules }, "run_shell", &action);
        let found = (judged.verdict, judged.recourse);
        assert_eq!(found, (verdict, recourse), "{:?} `{}`: {}", rules.mode, action.target, judged.rule);
    }
    // The setting that forbids questions changes the verdict, not what the call needs.
    let mute = Permissions { never_asks: true, ..permissions() };
    for (text, recourse) in [("cargo test", Recourse::RuleOrMode), ("git push", Recourse::Person)] {
        let judged = judge(&Rules { permissions: &mute, ..plain(Mode::Default) }, "run_shell", &line(text));
        assert_eq!((judged.verdict, judged.recourse), (Deny, recourse), "{text}");
    }
}

#[test]
fn an_entry_without_a_recourse_is_read_and_the_default_is_not_written() {
    let old = r#"{"tool":"write_file","target":"a","by":{"rule":"only the user changes `a`"}}"#;
    let refusal: crate::event::Refusal = serde_json::from_str(old).unwrap();
    assert_eq!(refusal.recourse, Recourse::Rule);
    assert_eq!(serde_json::to_string(&refusal).unwrap(), old);
    for recourse in [Recourse::RuleOrMode, Recourse::Mode, Recourse::Person, Recourse::Nothing] {
        let refusal = crate::event::Refusal { recourse, ..refusal.clone() };
        let back: crate::event::Refusal = serde_json::from_str(&serde_json::to_string(&refusal).unwrap()).unwrap();
        assert_eq!(back, refusal);
    }
}
