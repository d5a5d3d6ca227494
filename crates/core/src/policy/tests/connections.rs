//! Connections that commands make while they run.

use super::*;

/// The verdict on a connection to a host, and on one whose name leads to a private address.
fn verdict(rules: &[(List, &str)], host: &str, address: Option<&str>) -> Verdict {
    let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
    let anchors = Anchors { root: "/p", base: "/p", home: "/" };
    let rules = rules.iter().map(|(list, text)| Rule::new(*list, text, origin.clone(), &anchors)).collect();
    let permissions = Permissions { rules, ..Permissions::default() };
    let none = Constraints::default();
    let rules = Rules { permissions: &permissions, ..Rules::new(Mode::Default, &none) };
    judge(&rules, "run_shell", &Action::connection("1.0", host, address.map(str::to_owned), String::new())).verdict
}

#[test]
fn only_a_rule_with_the_domain_opens_a_host_to_commands() {
    let allow = |text| [(List::Allow, text)];
    let table = [
        ("WebFetch", "a.example", None, Ask),
        ("*", "a.example", None, Ask),
        ("WebFetch(domain:*)", "a.example", None, Ask),
        ("WebFetch(domain:*.*)", "a.example", None, Ask),
        ("Bash", "a.example", None, Ask),
        ("run_shell", "a.example", None, Ask),
        ("WebFetch(domain:a.example)", "a.example", None, Allow),
        ("WebFetch(domain:a.example)", "A.example.", None, Allow),
        ("WebFetch(domain:*.example)", "a.example", None, Allow),
        ("WebFetch(domain:a.example)", "evil-a.example", None, Ask),
        ("WebFetch(domain:a.example)", "a.example.evil", None, Ask),
        // Odd ports are named.
        ("WebFetch(domain:a.example)", "a.example:22", None, Ask),
        ("WebFetch(domain:a.example:22)", "a.example:22", None, Allow),
        // A name that leads to a private address is not opened by its name alone.
        ("WebFetch(domain:a.example)", "a.example", Some("10.0.0.5"), Ask),
        ("WebFetch(domain:10.0.0.5)", "a.example", Some("10.0.0.5"), Ask),
        ("WebFetch(domain:a.example)", "a.example", Some("127.0.0.1:443"), Ask),
    ];
    for (rule, host, address, want) in table {
        assert_eq!(verdict(&allow(rule), host, address), want, "{rule} {host} {address:?}");
    }
    let both = |address| [(List::Allow, "WebFetch(domain:a.example)"), (List::Allow, address)];
    assert_eq!(verdict(&both("WebFetch(domain:10.0.0.5)"), "a.example", Some("10.0.0.5")), Allow);
    assert_eq!(verdict(&both("WebFetch(domain:10.0.0.*)"), "a.example", Some("10.0.0.5")), Ask, "the address is named");
    assert_eq!(verdict(&both("WebFetch(domain:127.0.0.1)"), "a.example", Some("127.0.0.1:443")), Ask, "with its port");
    assert_eq!(verdict(&both("WebFetch(domain:127.0.0.1:443)"), "a.example", Some("127.0.0.1:443")), Allow);
    let denied = [(List::Allow, "WebFetch(domain:a.example)"), (List::Deny, "WebFetch")];
    assert_eq!(verdict(&denied, "a.example", None), Deny);
}

#[test]
fn an_approved_plan_opens_its_registries_to_commands_only() {
    let none = Constraints::default();
    let registries = ["npm.example".to_owned(), "localhost:4873".to_owned()];
    let judged = |mode, host, address: Option<&str>| {
        let rules = Rules { registries: &registries, ..Rules::new(mode, &none) };
        let connection = Action::connection("1.0", host, address.map(str::to_owned), String::new());
        judge(&rules, "run_shell", &connection).verdict
    };
    for mode in [Mode::Default, Mode::DontAsk, Mode::AcceptEdits] {
        assert_eq!(judged(mode, "NPM.example", None), Allow);
        assert_eq!(judged(mode, "localhost:4873", None), Allow);
    }
    for (host, address) in [("a.npm.example", None), ("npm.example:22", None), ("npm.example", Some("10.0.0.5"))] {
        assert_eq!(judged(Mode::Default, host, address), Ask, "{host} {address:?}");
    }
    let rules = Rules { registries: &registries, ..Rules::new(Mode::Default, &none) };
    let page = Action { kind: ActionKind::Fetch, ..Action::read("npm.example") };
    assert_eq!(judge(&rules, "web_fetch", &page).verdict, Ask, "not to other tools");
}

#[test]
fn the_answer_to_a_question_keeps_a_rule_for_the_host_and_its_address() {
    let action = Action::connection("1.0", "mirror.example", Some("10.0.0.5:4873".to_owned()), String::new());
    let none = Constraints::default();
    let judged = judge(&Rules::new(Mode::BypassPermissions, &none), "run_shell", &action);
    assert_eq!(judged.verdict, Ask, "no mode opens a host");
    let want = ["WebFetch(domain:mirror.example)", "WebFetch(domain:10.0.0.5:4873)"];
    assert_eq!(judged.memory.rules(), want.map(str::to_owned));
    assert_eq!(judge(&Rules::new(Mode::DontAsk, &none), "run_shell", &action).verdict, Deny);
}
