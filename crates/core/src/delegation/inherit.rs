//! Combines an agent's settings with its caller's: a called agent is never allowed more than its caller.
//!
//! An action that one of the two refuses is refused; one that either asks about is asked about. A property test
//! compares the result with the policy.

use crate::agent::{Constraints, Settings};
use crate::policy::rule::List;
use crate::policy::visibility::{clean, is_within};
use crate::policy::{Permissions, Rule};

impl Settings {
    /// Limits these settings to what `caller` allows: the result is on no axis freer than the caller.
    #[must_use]
    pub fn bounded_by(mut self, caller: &Settings) -> Self {
        for mode in std::iter::once(&caller.mode).chain(&caller.within) {
            if *mode != self.mode && !self.within.contains(mode) {
                self.within.push(*mode);
            }
        }
        self.permissions = joined(self.permissions, &caller.permissions);
        // It works on the caller's files, under the plan that was approved for the caller.
        self.approved = caller.approved;
        // Corrections are left to the owner of the task, too.
        self.corrects = false;
        // The checks were approved for the owner of the task alone.
        self.checks.clear();
        self.tests.clone_from(&caller.tests);
        self.sandboxed &= caller.sandboxed;
        self.unshielded |= caller.unshielded;
        if caller.owns.is_some() {
            self.owns.clone_from(&caller.owns);
        }
        let constraints = self.constraints.meet(&caller.constraints);
        self.limited_by(&constraints)
    }
}

/// The caller's rules, and the denials and questions among the agent's own rules.
fn joined(own: Permissions, caller: &Permissions) -> Permissions {
    let mut all = caller.clone();
    let is_new = |rule: &Rule| rule.list != List::Allow && !caller.rules.contains(rule);
    all.rules.extend(own.rules.into_iter().filter(is_new));
    all.guarded.extend(own.guarded.into_iter().filter(|file| !caller.guarded.contains(file)));
    all.no_reads_outside |= own.no_reads_outside;
    all.no_writes_outside |= own.no_writes_outside;
    all.never_asks |= own.never_asks;
    // An agent that is called from within a worktree works in that worktree.
    if all.copy.is_empty() {
        all.copy = own.copy;
    }
    all
}

impl Constraints {
    /// The constraints that satisfy both.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        let (write_patterns, write_within) = self.writes(other);
        Self {
            allowed_dirs: dirs(self.allowed_dirs.as_deref(), other.allowed_dirs.as_deref()),
            blocked_patterns: union(&self.blocked_patterns, &other.blocked_patterns),
            write_patterns,
            write_within,
            read_only: self.read_only || other.read_only,
            allowed_commands: match (&self.allowed_commands, &other.allowed_commands) {
                (Some(one), Some(two)) => Some(commands(one, two)),
                (one, two) => one.as_ref().or(two.as_ref()).map(|only| commands(only, only)),
            },
            // If either list came with the project, the result is not trusted.
            foreign_commands: self.foreign_commands || other.foreign_commands,
            allowed_hosts: hosts(&self.allowed_hosts, &other.allowed_hosts),
            max_tokens: least(self.max_tokens, other.max_tokens),
            timeout_ms: least(self.timeout_ms, other.timeout_ms),
        }
    }

    /// Two lists of patterns cannot be merged into one: both are kept, and a file must match both.
    fn writes(&self, other: &Self) -> (Option<Vec<String>>, Vec<Vec<String>>) {
        let mut lists: Vec<&Vec<String>> = Vec::new();
        let own = self.write_patterns.iter().chain(&self.write_within);
        for list in own.chain(&other.write_patterns).chain(&other.write_within) {
            if !lists.contains(&list) {
                lists.push(list);
            }
        }
        let mut lists = lists.into_iter().cloned();
        (lists.next(), lists.collect())
    }
}

/// The folders that both lists include; `None` stands for everything, an empty list for nothing.
fn dirs(one: Option<&[String]>, two: Option<&[String]>) -> Option<Vec<String>> {
    let some = |dirs: &&[String]| !dirs.iter().any(|dir| clean(dir).is_empty());
    let (one, two) = match (one.filter(some), two.filter(some)) {
        (None, None) => return None,
        (Some(only), None) | (None, Some(only)) => (only, only),
        (Some(one), Some(two)) => (one, two),
    };
    Some(paired(one, two, |one, two| {
        let (one, two) = (clean(one), clean(two));
        if is_within(&one, &two) { Some(one) } else { is_within(&two, &one).then_some(two) }
    }))
}

/// The longer of two command prefixes, if one begins with the other.
fn commands(one: &[String], two: &[String]) -> Vec<String> {
    paired(one, two, |one, two| {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (one, two) = (words(one), words(two));
        let longer = if one.starts_with(&two) { Some(one) } else { two.starts_with(&one).then_some(two) };
        longer.map(|words| words.join(" ")).filter(|text| !text.is_empty())
    })
}

/// The narrower of two host patterns, if one includes the other.
fn hosts(one: &[String], two: &[String]) -> Vec<String> {
    paired(one, two, |one, two| {
        let (one, two) = (one.to_lowercase(), two.to_lowercase());
        // `*.example.com` includes names below it, and patterns for names below it.
        let names = |wide: &str, narrow: &str| {
            wide == narrow
                || wide.strip_prefix('*').is_some_and(|above| {
                    let narrow = narrow.strip_prefix('*').unwrap_or(narrow);
                    narrow.len() > above.len() && narrow.ends_with(above)
                })
        };
        if names(&two, &one) { Some(one) } else { names(&one, &two).then_some(two) }
    })
}

fn paired(one: &[String], two: &[String], both: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    let mut found: Vec<String> = one.iter().flat_map(|one| two.iter().filter_map(|two| both(one, two))).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn union(one: &[String], two: &[String]) -> Vec<String> {
    one.iter().chain(two.iter().filter(|pattern| !one.contains(pattern))).cloned().collect()
}

fn least<T: Ord + Copy>(one: Option<T>, two: Option<T>) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    use super::*;
    use crate::agent::tests::settings;
    use crate::policy::command_line::{CommandLine, SimpleCommand};
    use crate::policy::rule::{Anchors, Origin, RuleScope};
    use crate::policy::{Action, ActionKind, CommandReach, Mode, ShellSyntax, judge};

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn lists_meet() {
        type Dirs = Option<&'static [&'static str]>;
        let table: [(Dirs, Dirs, Dirs); 9] = [
            (None, None, None),
            (Some(&["."]), None, None),
            (Some(&["."]), Some(&["src"]), Some(&["src"])),
            (Some(&["src"]), None, Some(&["src"])),
            (Some(&["src"]), Some(&[]), Some(&[])),
            (Some(&["src", "docs"]), Some(&["src/a", "tests"]), Some(&["src/a"])),
            (Some(&["src/a/"]), Some(&["./src"]), Some(&["src/a"])),
            (Some(&["src"]), Some(&["srcs"]), Some(&[])),
            (Some(&["a", "b"]), Some(&["b", "a"]), Some(&["a", "b"])),
        ];
        for (one, two, want) in table {
            let (mine, theirs) = (one.map(words), two.map(words));
            assert_eq!(dirs(mine.as_deref(), theirs.as_deref()), want.map(words), "{one:?} {two:?}");
        }
        let table: [(&[&str], &[&str], &[&str]); 4] = [
            (&["go test", "ls"], &["go", "cat"], &["go test"]),
            (&["go"], &["go"], &["go"]),
            (&["go"], &["gofmt"], &[]),
            (&[], &["go"], &[]),
        ];
        for (one, two, want) in table {
            assert_eq!(commands(&words(one), &words(two)), words(want), "{one:?} {two:?}");
        }
        let table: [(&[&str], &[&str], &[&str]); 5] = [
            (&["*.a.org"], &["x.a.org", "a.org"], &["x.a.org"]),
            (&["*.a.org"], &["*.b.a.org"], &["*.b.a.org"]),
            (&["A.org"], &["a.ORG"], &["a.org"]),
            (&["a.org"], &[], &[]),
            (&["*.a.org"], &["*.a.org"], &["*.a.org"]),
        ];
        for (one, two, want) in table {
            assert_eq!(hosts(&words(one), &words(two)), words(want), "{one:?} {two:?}");
        }
    }

    #[test]
    fn the_rest_is_the_stricter_of_the_two() {
        let caller = Constraints {
            write_patterns: Some(words(&["src/**"])),
            max_tokens: Some(500),
            timeout_ms: Some(9),
            ..Constraints::default()
        };
        let own =
            Constraints { write_patterns: Some(words(&["*.rs"])), max_tokens: Some(900), ..Constraints::default() };
        let both = own.meet(&caller);
        assert_eq!((both.max_tokens, both.timeout_ms, both.read_only), (Some(500), Some(9), false));
        assert_eq!(
            (both.write_patterns.clone(), both.write_within.clone()),
            (Some(words(&["*.rs"])), vec![words(&["src/**"])])
        );
        assert_eq!(both.meet(&caller), both, "twice is once");
        let looks = Constraints { read_only: true, ..Constraints::default() };
        assert!(looks.meet(&caller).read_only && caller.meet(&looks).read_only);
        let settings = Settings { mode: Mode::BypassPermissions, ..settings(&Constraints::default()) };
        let plan = Settings { mode: Mode::Plan, within: vec![Mode::Default], ..settings.clone() };
        let corrects = Settings { corrects: true, ..settings.clone() };
        assert!(!settings.clone().bounded_by(&corrects).corrects, "a correction is its owner's alone");
        assert_eq!(settings.bounded_by(&plan).within, [Mode::Plan, Mode::Default]);
    }

    fn some(of: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
        subsequence(of, 0..=of.len()).prop_map(|chosen| words(&chosen))
    }

    fn constraints() -> impl Strategy<Value = Constraints> {
        let commands = some(&["go", "go test", "cat", "touch", "ls"]);
        (
            proptest::option::of(some(&["src", "src/a", "docs", "."])),
            some(&["*.env", "*key*", "src/a/**"]),
            proptest::option::of(some(&["src/**", "*.rs", "docs/*.md"])),
            proptest::option::of(commands),
            some(&["a.org", "*.a.org", "b.org"]),
            any::<bool>(),
        )
            .prop_map(
                |(allowed_dirs, blocked_patterns, write_patterns, allowed_commands, allowed_hosts, read_only)| {
                    let (write_within, max_tokens, timeout_ms) = (Vec::new(), None, None);
                    Constraints {
                        allowed_dirs,
                        blocked_patterns,
                        write_patterns,
                        write_within,
                        read_only,
                        allowed_commands,
                        foreign_commands: false,
                        allowed_hosts,
                        max_tokens,
                        timeout_ms,
                    }
                },
            )
    }

    proptest! {
        /// Whoever is bound once more by what it is bound by stays as it is: nothing is written down again and again.
        #[test]
        fn the_meet_of_two_settings_is_idempotent(one in constraints(), two in constraints()) {
            let both = one.meet(&two);
            prop_assert_eq!(both.meet(&one).meet(&two), both);
        }
    }

    fn permissions() -> impl Strategy<Value = Permissions> {
        let texts =
            ["Edit", "Edit(./docs/**)", "Read(./src/**)", "Bash(go test:*)", "WebFetch(domain:a.org)", "Agent(leo)"];
        let rule = (select(vec![List::Allow, List::Ask, List::Deny]), select(texts.to_vec()));
        proptest::collection::vec(rule, 0..4).prop_map(|rules| {
            let origin = || Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
            let anchors = Anchors { root: "/p", base: "/p", home: "/h" };
            let rules = rules.into_iter().map(|(list, text)| Rule::new(list, text, origin(), &anchors)).collect();
            Permissions { root: "/p".into(), rules, ..Permissions::default() }
        })
    }

    fn any_settings() -> impl Strategy<Value = Settings> {
        let modes = || select(Mode::NAMES.map(|(_, mode)| mode).to_vec());
        let within = proptest::collection::vec(modes(), 0..2);
        let owns = proptest::option::of(some(&["src/**", "docs/**"]));
        (constraints(), permissions(), modes(), within, any::<bool>(), any::<[bool; 2]>(), owns).prop_map(
            |(constraints, permissions, mode, within, approved, [sandboxed, unshielded], owns)| Settings {
                permissions,
                mode,
                within,
                approved,
                sandboxed,
                unshielded,
                owns,
                ..settings(&constraints)
            },
        )
    }

    fn action() -> impl Strategy<Value = Action> {
        let paths = ["src/a/x.rs", "src/b.rs", "docs/a.md", "prod.env", ".", "/etc/passwd", "src", "@files/a.md"];
        let kinds = [
            ActionKind::Read,
            ActionKind::ReadLinked,
            ActionKind::Write,
            ActionKind::Query,
            ActionKind::Team,
            ActionKind::Ask,
            ActionKind::ReadOwn,
            ActionKind::WriteOwn,
        ];
        let touch = (select(kinds.to_vec()), select(paths.to_vec()))
            .prop_map(|(kind, path)| Action { kind, ..Action::read(path) });
        let fetch = select(vec!["a.org", "x.a.org", "b.org", "c.org"])
            .prop_map(|host| Action { kind: ActionKind::Fetch, ..Action::read(host) });
        let lines = [
            "go test ./...",
            "python3 -c x",
            "cat src/b.rs",
            "touch docs/a.md",
            "rm src/b.rs",
            "ls",
            "curl b.org",
            "git log",
        ];
        let run = select(lines.to_vec()).prop_map(|text| {
            let argv = words(&text.split_whitespace().collect::<Vec<_>>());
            let part = SimpleCommand { argv, ..SimpleCommand::default() };
            Action { kind: ActionKind::Execute, line: Some(CommandLine::Plain(vec![part])), ..Action::read(text) }
        });
        let hidden = Just(Action {
            kind: ActionKind::Execute,
            line: Some(CommandLine::Opaque {
                text: "for x in *; do rm $x; done".into(),
                why: ShellSyntax::ControlStructure,
            }),
            ..Action::read("for x in *; do rm $x; done")
        });
        prop_oneof![touch, fetch, run, hidden]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        /// Whatever is allowed to the one who is called is allowed to the caller, and what the caller is refused stays so.
        #[test]
        fn a_called_agent_is_never_freer_than_its_caller(
            caller in any_settings(),
            own in any_settings(),
            action in action(),
        ) {
            let bounded = own.clone().bounded_by(&caller);
            let judged = |settings: &Settings| judge(&settings.rules(), "a_tool", &action);
            let verdict = |settings: &Settings| judged(settings).verdict;
            // A run that changes nothing is compared with what the caller may do if it changes nothing.
            let looks = judged(&bounded).reach == CommandReach::ReadOnly;
            let constraints = Constraints { read_only: true, ..caller.constraints.clone() };
            let still = Settings { constraints, ..caller.clone() };
            let most = if looks { verdict(&still).min(verdict(&caller)) } else { verdict(&caller) };
            prop_assert!(verdict(&bounded) >= most, "{bounded:?}");
            // Twice removed is no freer either, and being bounded again changes nothing.
            prop_assert_eq!(&bounded.clone().bounded_by(&caller), &bounded);
        }
    }
}
