//! What may be done: the gate's verdicts.
//!
//! A tool says what a call would do ([`Action`]); the policy says whether it may. Verdicts are ordered, and where
//! several rules speak the strictest wins. Nothing here asks anyone: an `Ask` becomes a question event elsewhere.

use serde::{Deserialize, Serialize};

use crate::hash::Hash;

/// What is safe to do again after a crash (see `recovery`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Changes nothing: run it again.
    Pure,
    /// The same call leads to the same state: compare, then finish or redo.
    Idempotent,
    /// Carries a key under which the outside can be asked: look it up, then finish or redo.
    Keyed,
    /// Nobody can tell whether it happened: never run it again silently.
    Opaque,
}

/// What kind of thing a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Looks at something inside the walls.
    Read,
    /// Looks at something that is also reachable from outside the walls (a hard link).
    ReadLinked,
    /// Changes a file inside the walls.
    Write,
    /// Runs a command of the project.
    Execute,
    /// Hands the final answer over; touches nothing.
    Answer,
}

/// What a tool call would do, in words a person and a rule can judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// The kind of deed.
    pub deed: Deed,
    /// What it is done to: a path relative to the root.
    pub target: String,
    /// What the user is shown before saying yes: a unified diff for edits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preview: String,
    /// The target's hash before (`None`: it does not exist).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Hash>,
    /// The target's hash after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Hash>,
}

impl Action {
    /// An action that only looks.
    pub fn read(target: impl Into<String>) -> Self {
        Self { deed: Deed::Read, target: target.into(), preview: String::new(), before: None, after: None }
    }
}

/// What may happen; the order is the strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Do it.
    Allow,
    /// Ask a person first.
    Ask,
    /// Do not.
    Deny,
}

/// How freely an agent may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Look freely, ask before changing anything.
    #[default]
    #[serde(alias = "manual")]
    Default,
    /// Also change files freely.
    AcceptEdits,
    /// Only look.
    Plan,
    /// Change files freely; ask for what is dangerous.
    Auto,
    /// Never ask: what would need a question is refused.
    DontAsk,
    /// Never ask: everything goes.
    BypassPermissions,
}

impl Mode {
    /// All modes with the names users write.
    pub const NAMES: [(&str, Mode); 6] = [
        ("default", Mode::Default),
        ("acceptEdits", Mode::AcceptEdits),
        ("plan", Mode::Plan),
        ("auto", Mode::Auto),
        ("dontAsk", Mode::DontAsk),
        ("bypassPermissions", Mode::BypassPermissions),
    ];

    /// The name users write.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("default", |(name, _)| name)
    }
}

/// A standing permission that a person gave ("always").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The deed that needs no more asking, for the rest of the session.
    pub deed: Deed,
}

/// A verdict and who is behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// What may happen.
    pub verdict: Verdict,
    /// Which rule says so, for people and for the model.
    pub rule: String,
}

/// Judges one action.
pub fn judge(mode: Mode, grants: &[Grant], action: &Action) -> Judgement {
    let said = |verdict, rule: &str| Judgement { verdict, rule: rule.to_owned() };
    let by_mode = |verdict| Judgement { verdict, rule: format!("permission mode `{}`", mode.name()) };
    match action.deed {
        Deed::Answer => return said(Verdict::Allow, "answering is always allowed"),
        Deed::Read => return said(Verdict::Allow, "reading inside the project is always allowed"),
        Deed::Write if mode == Mode::Plan => return by_mode(Verdict::Deny),
        _ => {}
    }
    if grants.iter().any(|grant| grant.deed == action.deed) {
        return said(Verdict::Allow, "allowed for this session by the user");
    }
    match (mode, action.deed) {
        (Mode::BypassPermissions, _) | (Mode::AcceptEdits | Mode::Auto, Deed::Write) => by_mode(Verdict::Allow),
        (Mode::DontAsk, _) => by_mode(Verdict::Deny),
        _ => by_mode(Verdict::Ask),
    }
}

/// Who answered a question: never say "the user refused" when nobody was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A person, and where they sat.
    Person(String),
    /// A rule, and which.
    Rule(String),
    /// Nobody could be asked, and why.
    Nobody(String),
}

/// The answer to a permission question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Yes or no.
    pub allow: bool,
    /// Yes, and do not ask again for this kind of deed in this session.
    #[serde(default)]
    pub always: bool,
    /// A word to the model along with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// Whose answer it is.
    pub by: By,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_judge_as_documented() {
        use Deed::{Read, ReadLinked, Write};
        use Verdict::{Allow, Ask, Deny};
        let table = [
            (Mode::Default, [Allow, Ask, Ask]),
            (Mode::AcceptEdits, [Allow, Ask, Allow]),
            (Mode::Plan, [Allow, Ask, Deny]),
            (Mode::Auto, [Allow, Ask, Allow]),
            (Mode::DontAsk, [Allow, Deny, Deny]),
            (Mode::BypassPermissions, [Allow, Allow, Allow]),
        ];
        for (mode, verdicts) in table {
            for (deed, want) in [Read, ReadLinked, Write].into_iter().zip(verdicts) {
                let action = Action { deed, ..Action::read("a") };
                assert_eq!(judge(mode, &[], &action).verdict, want, "{mode:?} {deed:?}");
            }
        }
    }

    #[test]
    fn a_grant_never_beats_plan_mode() {
        let write = Action { deed: Deed::Write, ..Action::read("a") };
        let grants = [Grant { deed: Deed::Write }];
        assert_eq!(judge(Mode::Default, &grants, &write).verdict, Verdict::Allow);
        assert_eq!(judge(Mode::Plan, &grants, &write).verdict, Verdict::Deny);
    }
}
