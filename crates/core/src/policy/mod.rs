//! What may be done: the gate's verdicts.
//!
//! A tool says what a call would do ([`Action`]); the policy says whether it may ([`judge`]). A member's constraints
//! come first and nothing loosens them; then come the rules of settings, what always needs a person, the mode, what a
//! person has granted, and the plan that stands behind the work. Nothing here asks anyone: an `Ask` becomes a question
//! event elsewhere.

mod grant;
mod guard;
mod judge;
pub mod line;
pub mod lint;
pub mod pattern;
pub mod program;
mod recourse;
pub mod rule;
pub(crate) mod sight;

use serde::{Deserialize, Serialize};

pub use grant::{Grant, Memory, Until};
pub use guard::{PROTECTED, Protected, Reach, guarded, kept, obeyed_anywhere, opened, protected, refusal};
pub use judge::{Basis, Free, Judgement, Rules, judge};
pub use line::Line;
pub use recourse::Recourse;
pub use rule::Rule;
pub use sight::Sight;

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
    /// Runs a command.
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
    /// Looks at something in a folder of its own; the target begins with the folder's name (`@files/…`).
    ReadOwn,
    /// Changes a file there.
    WriteOwn,
    /// Takes what somebody did in a copy of the project into it, or drops it; the target is the copy.
    Merge,
    /// Puts what it means to do before whoever leads it, or a person, and acts once they say yes.
    Propose,
}

impl Deed {
    /// Whether it only looks: it changes nothing, and asks nobody who could say something else another time.
    pub fn only_looks(self) -> bool {
        match self {
            Self::Read | Self::ReadLinked | Self::Fetch | Self::Query | Self::Answer => true,
            Self::Write | Self::ReadOwn | Self::WriteOwn | Self::Execute => false,
            Self::Team | Self::Ask | Self::Merge | Self::Propose => false,
        }
    }
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
    /// A command line, taken apart: whoever has one is judged by it, and runs nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Line>,
    /// Paths that lead elsewhere through a link, and where: what forbids looks at both ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<(String, String)>,
    /// Parameters of the call that rules may speak of (`run_in_background`, `model`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// What has come of the call already, where only what becomes of it is left to be said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
}

impl Action {
    /// An action that only looks.
    pub fn read(target: impl Into<String>) -> Self {
        Self {
            deed: Deed::Read,
            target: target.into(),
            preview: String::new(),
            before: None,
            after: None,
            line: None,
            links: Vec::new(),
            parameters: Vec::new(),
            said: String::new(),
        }
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

    /// Whether it lets less happen than another one.
    pub fn is_stricter(self, other: Mode) -> bool {
        let strictness = |mode| match mode {
            Self::BypassPermissions => 0,
            Self::AcceptEdits | Self::Auto => 1,
            Self::Default => 2,
            Self::DontAsk => 3,
            Self::Plan => 4,
        };
        strictness(self) > strictness(other)
    }

    /// The mode of that name.
    pub fn named(name: &str) -> Option<Self> {
        let known = Self::NAMES.iter().find(|(own, _)| *own == name).map(|(_, mode)| *mode);
        known.or((name == "manual").then_some(Self::Default))
    }

    /// The name users write.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("default", |(name, _)| name)
    }
}

/// What settings say about permissions, from all scopes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Permissions {
    /// The project's folder, absolute; places outside it are told apart by it.
    pub root: String,
    /// The rules, the weakest scope first.
    pub rules: Vec<Rule>,
    /// Files that this run was given by name and obeys (`--config`, `--agents`), absolute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guarded: Vec<String>,
    /// Folders besides the project's that commands work in (`additionalDirectories`), absolute and without links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Whether nothing outside these folders is looked at, whoever allows it (`blockReadsOutsideWorkingDirectories`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_reads_outside: bool,
    /// Whether nothing outside these folders is changed (`blockWritesOutsideWorkingDirectories`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_writes_outside: bool,
    /// Whether what would need a question is refused, in every mode (`denyInsteadOfPrompting`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_asks: bool,
    /// The copy of the project's folder that the agent works in instead, absolute; empty if there is none. What lies
    /// in it is judged as what it is a copy of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub copy: String,
}

impl Permissions {
    /// Nobody says anything.
    pub fn none() -> &'static Self {
        static NONE: Permissions = Permissions {
            root: String::new(),
            rules: Vec::new(),
            guarded: Vec::new(),
            also: Vec::new(),
            no_reads_outside: false,
            no_writes_outside: false,
            never_asks: false,
            copy: String::new(),
        };
        &NONE
    }

    /// Whether a tool is denied whatever it is used for: a model need not know of it.
    pub fn takes_away(&self, tool: &str) -> bool {
        self.rules.iter().any(|rule| rule.takes_away(tool))
    }

    /// Whether nobody says anything.
    pub fn is_empty(&self) -> bool {
        self == Self::none()
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
    /// Whoever leads the asker.
    Lead(String),
}

impl By {
    /// A person who came through a door.
    pub fn person(who: &crate::message::Principal) -> Self {
        Self::Person(format!("{} at {}", who.user, who.door))
    }

    /// Who, in words.
    pub fn name(&self) -> String {
        match self {
            Self::Person(who) | Self::Rule(who) | Self::Lead(who) => who.clone(),
            Self::Nobody(why) => format!("nobody ({why})"),
        }
    }
}

/// The answer to a permission question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Yes or no.
    pub allow: bool,
    /// Yes, and do not ask again for what the question says it would be remembered as.
    #[serde(default)]
    pub always: bool,
    /// For how long not to ask again.
    #[serde(default)]
    pub until: Until,
    /// A word to the model along with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// Of what is in a copy: it is to go. Whoever only says no has dropped nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop: bool,
    /// The user wrote something instead of yes or no: the call is not run, and the user is asked again if it is made again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub put_off: bool,
    /// Whose answer it is.
    pub by: By,
}

/// What becomes of what somebody did in a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It goes into the project, as far as it can.
    Taken,
    /// It goes, and the copy with it.
    Dropped,
    /// It stays where it is.
    Left,
}

impl Settled {
    /// All of them with the words that stand for them.
    const NAMES: [(Self, &str); 3] = [(Self::Taken, "take"), (Self::Dropped, "drop"), (Self::Left, "leave")];

    /// The word that stands for it.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(settled, _)| *settled == self).map_or("", |(_, name)| name)
    }

    /// What a word stands for.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(settled, _)| *settled)
    }
}

impl Answer {
    /// Yes or no to this one question, without a word.
    pub fn new(allow: bool, by: By) -> Self {
        Self { allow, always: false, until: Until::default(), comment: String::new(), drop: false, put_off: false, by }
    }

    /// The answer to what becomes of a copy.
    pub fn settling(settled: Settled, by: By) -> Self {
        Self { drop: settled == Settled::Dropped, ..Self::new(settled == Settled::Taken, by) }
    }

    /// What it says about a copy. Only a person drops one.
    pub fn settled(&self) -> Settled {
        match (self.allow, self.drop, &self.by) {
            (true, ..) => Settled::Taken,
            (false, true, By::Person(_)) => Settled::Dropped,
            _ => Settled::Left,
        }
    }
}

#[cfg(test)]
mod tests;
