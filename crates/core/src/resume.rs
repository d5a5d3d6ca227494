//! What a resumed session works under: at least the constraints that it had before. A fork keeps those of the session that it
//! continues, also in a copy of the project.
//!
//! A session is opened with a definition and settings, from flags and files that need not be the same the next time. Both
//! are in the journal. What was refused or asked about before stays so; today's flags and files can only add to it.
//! A user who names a mode for this run (`--permission-mode`, a key in the chat) has decided that anew.

use crate::agent::{Constraints, Definition, Isolation, Settings};
use crate::policy::Permissions;
use crate::policy::rule::List;

impl Settings {
    /// Today's settings for a session that worked under `before`. `mode_is_named`: the user named today's mode for this run.
    #[must_use]
    pub fn resuming(mut self, before: &Settings, mode_is_named: bool) -> Self {
        if !mode_is_named && before.mode.is_stricter(self.mode) {
            self.mode = before.mode;
        }
        self.within
            .extend(before.within.iter().filter(|mode| !self.within.contains(mode)).copied().collect::<Vec<_>>());
        self.permissions = self.permissions.resuming(&before.permissions);
        self.budget_nano = self.budget_nano.or(before.budget_nano);
        self.budget_tokens = self.budget_tokens.or(before.budget_tokens);
        if before.owns.is_some() {
            self.owns.clone_from(&before.owns);
        }
        self.turn_ms = self.turn_ms.into_iter().chain(before.turn_ms).min();
        let constraints = self.constraints.resuming(&before.constraints);
        self.limited_by(&constraints)
    }
}

impl Permissions {
    /// Today's permissions with everything that `before` denies or asks about. In another folder than before, rules about
    /// places of the project hold for the same places there, too.
    #[must_use]
    pub fn resuming(mut self, before: &Permissions) -> Self {
        let is_elsewhere = !before.root.is_empty() && before.root != self.root;
        for rule in before.rules.iter().filter(|rule| rule.list != List::Allow) {
            let moved = is_elsewhere.then(|| rule.moved(&before.root, &self.root)).flatten();
            for rule in [Some(rule.clone()), moved].into_iter().flatten() {
                if !self.rules.iter().any(|own| own.is_equivalent(&rule)) {
                    self.rules.push(rule);
                }
            }
        }
        let guarded: Vec<String> = before.guarded.iter().filter(|file| !self.guarded.contains(file)).cloned().collect();
        self.guarded.extend(guarded);
        self.no_reads_outside |= before.no_reads_outside;
        self.no_writes_outside |= before.no_writes_outside;
        self.never_asks |= before.never_asks;
        self
    }
}

impl Constraints {
    fn resuming(&self, before: &Self) -> Self {
        // `meet` orders its lists: the same constraints in another order would be journalled as a change.
        if self == before { self.clone() } else { self.meet(before) }
    }
}

impl Definition {
    /// Whether a session that this agent has led goes on with `today`: it is the same agent, with nothing that it lacked before.
    pub fn can_resume_as(&self, today: &Definition) -> bool {
        (&self.name, self.place) == (&today.name, today.place) && !today.widens(self)
    }

    /// Whether it may use a tool, call an agent or change a place that `before` may not.
    fn widens(&self, before: &Definition) -> bool {
        let is_new = |tool: &&String| !before.tools.contains(tool) && !self.disallowed_tools.contains(tool);
        let inherits = self.inherits_tools && !before.inherits_tools;
        let tools = inherits || (!before.inherits_tools && self.tools.iter().any(|tool| is_new(&tool)));
        let given_back =
            self.inherits_tools && before.disallowed_tools.iter().any(|tool| !self.disallowed_tools.contains(tool));
        let calls = before.may_call.as_ref().is_some_and(|known| {
            self.may_call.as_ref().is_none_or(|names| names.iter().any(|name| !known.contains(name)))
        });
        let mode = before.mode.is_some_and(|known| self.mode.is_none_or(|mode| known.is_stricter(mode)));
        let leaves_worktree = before.isolation == Isolation::Worktree && self.isolation.is_none();
        tools || given_back || calls || mode || leaves_worktree
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::TeamRole;
    use crate::agent::tests::settings;
    use crate::policy::rule::{Anchors, Origin, RuleScope};
    use crate::policy::{Action, ActionKind, Mode, Rule, Verdict, judge};

    fn rule(list: List, text: &str, line: u32) -> Rule {
        let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line };
        Rule::new(list, text, origin, &Anchors { root: "/p", base: "/p", home: "/h" })
    }

    fn verdict(settings: &Settings, kind: ActionKind, path: &str) -> Verdict {
        judge(&settings.rules(), "a_tool", &Action { kind, ..Action::read(path) }).verdict
    }

    #[test]
    fn a_refusal_survives_a_resume() {
        let constraints = Constraints {
            blocked_patterns: vec!["secret*".into()],
            write_patterns: Some(vec!["docs/**".into()]),
            ..Constraints::default()
        };
        let before = Settings { mode: Mode::AcceptEdits, ..settings(&constraints) };
        let today = Settings { mode: Mode::AcceptEdits, ..settings(&Constraints::default()) };
        for (kind, path) in [(ActionKind::Read, "secret.txt"), (ActionKind::Write, "src/a.rs")] {
            assert_ne!(verdict(&today, kind, path), Verdict::Deny, "{path}");
            assert_eq!(verdict(&today.clone().resuming(&before, false), kind, path), Verdict::Deny, "{path}");
        }
        assert_eq!(verdict(&today.clone().resuming(&before, false), ActionKind::Write, "docs/a.md"), Verdict::Allow);
        // Twice is once, so that nothing is journalled again.
        let once = today.clone().resuming(&before, false);
        assert_eq!(today.resuming(&once, false), once);
    }

    #[test]
    fn the_stricter_mode_counts_unless_the_user_names_one() {
        let with = |mode| Settings { mode, ..settings(&Constraints::default()) };
        for (before, today, named, want) in [
            (Mode::Plan, Mode::Default, false, Mode::Plan),
            (Mode::Plan, Mode::AcceptEdits, true, Mode::AcceptEdits),
            (Mode::AcceptEdits, Mode::Default, false, Mode::Default),
            (Mode::Default, Mode::Default, false, Mode::Default),
        ] {
            assert_eq!(with(today).resuming(&with(before), named).mode, want, "{before:?} {today:?}");
        }
    }

    #[test]
    fn rules_that_take_away_are_kept_once_and_permissions_are_not() {
        let rules = vec![rule(List::Deny, "Bash", 1), rule(List::Ask, "Edit", 2), rule(List::Allow, "WebFetch", 3)];
        let before = Permissions { rules, never_asks: true, ..Permissions::default() };
        let today = Permissions { rules: vec![rule(List::Deny, "Bash", 7)], ..Permissions::default() };
        let both = today.resuming(&before);
        let texts: Vec<&str> = both.rules.iter().map(|rule| rule.text.as_str()).collect();
        assert_eq!(texts, ["Bash", "Edit"], "a rule that moved to another line is the same rule");
        assert!(both.never_asks);
    }

    /// A fork works in a copy of the project: a rule about a place of the project holds for that place of the copy.
    #[test]
    fn rules_about_places_hold_in_a_copy_of_the_project() {
        let rules = vec![
            rule(List::Deny, "Edit(./db/**)", 1),
            rule(List::Deny, "Edit(/own/**)", 2),
            rule(List::Deny, "Edit(//p/top/**)", 3),
            rule(List::Ask, "Read(//p/read/a)", 4),
            rule(List::Deny, "Edit(//etc/**)", 5),
            rule(List::Deny, "Edit(//peer/**)", 6),
            rule(List::Deny, "Edit(*.key)", 7),
        ];
        let before = Permissions { root: "/p".into(), rules, ..Permissions::default() };
        let today = Permissions { root: "/copy".into(), ..Permissions::default() };
        let both = Settings {
            mode: Mode::BypassPermissions,
            permissions: today.clone().resuming(&before),
            ..settings(&Constraints::default())
        };
        for (kind, path, want) in [
            (ActionKind::Write, "db/a", Verdict::Deny),
            (ActionKind::Write, "own/a", Verdict::Deny),
            (ActionKind::Write, "top/a", Verdict::Deny),
            (ActionKind::Write, "sub/a.key", Verdict::Deny),
            (ActionKind::Read, "read/a", Verdict::Ask),
            (ActionKind::Write, "/p/db/a", Verdict::Deny),
            (ActionKind::Write, "/etc/a", Verdict::Deny),
            (ActionKind::Write, "eer/a", Verdict::Allow),
            (ActionKind::Write, "a", Verdict::Allow),
        ] {
            assert_eq!(verdict(&both, kind, path), want, "{path}");
        }
        let again = both.permissions.clone();
        assert_eq!(again.clone().resuming(&both.permissions), again, "twice is once");
    }

    #[test]
    fn a_budget_is_kept_until_another_one_is_given() {
        let before = Settings { budget_nano: Some(5), ..settings(&Constraints::default()) };
        assert_eq!(settings(&Constraints::default()).resuming(&before, false).budget_nano, Some(5));
        let more = Settings { budget_nano: Some(9), ..settings(&Constraints::default()) };
        assert_eq!(more.resuming(&before, false).budget_nano, Some(9));
    }

    #[test]
    fn a_definition_is_taken_over_if_it_gives_nothing_more() {
        let tools = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let before = Definition { name: "x".into(), tools: tools(&["a", "b"]), ..Definition::default() };
        let table = [
            (Definition { prompt: "new".into(), ..before.clone() }, true),
            (Definition { tools: tools(&["a"]), ..before.clone() }, true),
            (Definition { tools: tools(&["a", "c"]), ..before.clone() }, false),
            (Definition { inherits_tools: true, tools: Vec::new(), ..before.clone() }, false),
            (Definition { place: TeamRole::Lead, ..before.clone() }, false),
            (Definition { name: "y".into(), ..before.clone() }, false),
        ];
        for (today, want) in table {
            assert_eq!(before.can_resume_as(&today), want, "{today:?}");
        }
        let bound = Definition {
            may_call: Some(tools(&["leo"])),
            mode: Some(Mode::Plan),
            isolation: Isolation::Worktree,
            ..before.clone()
        };
        assert!(bound.can_resume_as(&bound) && before.can_resume_as(&bound) && !bound.can_resume_as(&before));
    }
}
