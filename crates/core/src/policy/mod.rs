//! What may be done: the gate's verdicts.
//!
//! A tool says what a call would do ([`Action`]); the policy says whether it may. A member's constraints come first and
//! nothing loosens them; then come the mode, what a person has granted, and the plan that stands behind the work.
//! Nothing here asks anyone: an `Ask` becomes a question event elsewhere.

pub mod pattern;
mod sight;

use serde::{Deserialize, Serialize};

pub use sight::Sight;

use crate::hash::Hash;
use crate::team::Constraints;

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
    /// Gets something from a host of the network; the target is the host.
    Fetch,
    /// Asks what was set up for it by the user (logs, metrics), or looks at its own earlier output.
    Query,
    /// Acts on the team itself: proposes, delegates, asks a colleague.
    Team,
    /// Asks the user something.
    Ask,
    /// Hands the final answer over; touches nothing.
    Answer,
}

/// What a tool call would do, in words a person and a rule can judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// The kind of deed.
    pub deed: Deed,
    /// What it is done to: a path relative to the root, the command that is run, or the host that is asked.
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

/// What an action is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// How freely the agent may act.
    pub mode: Mode,
    /// What a person has allowed for the rest of the session.
    pub grants: &'a [Grant],
    /// What the agent may never do.
    pub constraints: &'a Constraints,
    /// Whether an approved plan stands behind the work.
    pub approved: bool,
    /// Globs of the paths that the task owns; empty: no restriction.
    pub owns: &'a [String],
}

/// Judges one action.
pub fn judge(rules: &Rules<'_>, action: &Action) -> Judgement {
    let said = |verdict, rule: &str| Judgement { verdict, rule: rule.to_owned() };
    let by_mode = |verdict| Judgement { verdict, rule: format!("permission mode `{}`", rules.mode.name()) };
    if let Some(rule) = forbidden(rules.constraints, action) {
        return Judgement { verdict: Verdict::Deny, rule };
    }
    match (action.deed, rules.mode) {
        (Deed::Answer, _) => return said(Verdict::Allow, "answering is always allowed"),
        (Deed::Read, _) => return said(Verdict::Allow, "reading inside the project is always allowed"),
        (Deed::Query, _) => return said(Verdict::Allow, "asking what the user has set up is always allowed"),
        (Deed::Fetch, _) if pattern::hosts(&rules.constraints.allowed_hosts, &action.target) => {
            return said(Verdict::Allow, "the member's `allowed_hosts`");
        }
        (Deed::Team, _) => return said(Verdict::Allow, "working with the team is always allowed"),
        (Deed::Ask, Mode::DontAsk) | (Deed::Write | Deed::Execute, Mode::Plan) => return by_mode(Verdict::Deny),
        (Deed::Ask, _) => return said(Verdict::Ask, "a question to the user"),
        _ => {}
    }
    if rules.grants.iter().any(|grant| grant.deed == action.deed) {
        return said(Verdict::Allow, "allowed for this session by the user");
    }
    if rules.approved && !matches!(rules.mode, Mode::Plan | Mode::BypassPermissions) {
        match action.deed {
            Deed::Write if !rules.owns.is_empty() && !pattern::is_owned(rules.owns, &action.target) => {
                let verdict = if rules.mode == Mode::DontAsk { Verdict::Deny } else { Verdict::Ask };
                return said(verdict, "outside the paths this task owns");
            }
            Deed::Write | Deed::Execute => return said(Verdict::Allow, "the approved plan"),
            _ => {}
        }
    }
    match (rules.mode, action.deed) {
        (Mode::BypassPermissions, _) | (Mode::AcceptEdits | Mode::Auto, Deed::Write) => by_mode(Verdict::Allow),
        (Mode::DontAsk, _) => by_mode(Verdict::Deny),
        _ => by_mode(Verdict::Ask),
    }
}

/// The constraint that an action breaks, in words.
fn forbidden(constraints: &Constraints, action: &Action) -> Option<String> {
    let sight = Sight::of(constraints);
    match action.deed {
        Deed::Read => sight.hides(&action.target),
        Deed::ReadLinked => sight.shields(&action.target),
        Deed::Write => sight.shields(&action.target).or_else(|| {
            let only = &constraints.write_patterns;
            let free = only.is_empty() || pattern::is_named(only, &action.target);
            (!free).then(|| format!("the member's `write_patterns` ({})", sight::quoted(only)))
        }),
        Deed::Execute => {
            let allowed = constraints.allowed_commands.as_ref()?;
            let argv: Vec<&str> = action.target.split_whitespace().collect();
            let free = pattern::commands(allowed, &argv);
            (!free).then(|| format!("the member's `allowed_commands` ({})", sight::quoted(allowed)))
        }
        Deed::Fetch | Deed::Query | Deed::Team | Deed::Ask | Deed::Answer => None,
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

impl By {
    /// A person who came through a door.
    pub fn person(who: &crate::message::Principal) -> Self {
        Self::Person(format!("{} at {}", who.user, who.door))
    }

    /// Who, in words.
    pub fn name(&self) -> String {
        match self {
            Self::Person(who) | Self::Rule(who) => who.clone(),
            Self::Nobody(why) => format!("nobody ({why})"),
        }
    }
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
mod tests;
