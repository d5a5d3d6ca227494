//! What agents may do: verdicts of the policy.
//!
//! A tool describes the effect of a call ([`Action`]); the policy decides whether it may run ([`judge`]). A member's
//! constraints come first and nothing loosens them; then come the rules of settings, actions that always need a
//! person, the mode, what a person has granted, and the approved plan. Nothing here asks a person: an `Ask` becomes a
//! question event elsewhere.

pub mod command_line;
mod deletion;
pub mod glob;
mod grant;
mod hint;
mod judge;
pub mod lint;
pub mod program;
mod protected;
mod reach;
mod reason;
mod recourse;
pub mod rule;
mod shell_syntax;
pub mod split;
pub(crate) mod visibility;

use serde::{Deserialize, Serialize};

pub use command_line::CommandLine;
pub use deletion::{
    DELETION_WORD, DeletedPath, Deletion, DeletionTarget, deletion_targets, is_deletion_word, only_touches_paths,
};
pub use grant::{Grant, GrantScope, RememberedRule};
pub use hint::Hint;
pub use judge::{AutoAllow, Basis, Judgement, Rules, judge};
pub use protected::{
    GitAccess, PROTECTED, ProtectedReason, ProtectedRow, Protection, approved_rows, git_access, is_build_folder,
    is_dependency_folder, is_row_folder, protecting_row, row_at, sandbox_rows, team_config_row,
};
pub use reach::CommandReach;
pub use reason::{DangerReason, HiddenReason, RemoteEffect};
pub use recourse::Recourse;
pub use rule::{Rule, is_local_host};
pub use shell_syntax::ShellSyntax;
pub use visibility::Visibility;

use crate::hash::Hash;

/// Whether a call may be repeated after a crash (see `recovery`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeatability {
    /// Changes nothing: run it again.
    Pure,
    /// The same call leads to the same state: compare, then finish or redo.
    Idempotent,
    /// Carries a key under which the outside can be asked: look it up, then finish or redo.
    Keyed,
    /// It is unknown whether the call took effect: never run it again silently.
    Opaque,
}

/// The kind of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// Reads something inside the project.
    Read,
    /// Reads something that is also reachable from outside the project (a hard link).
    ReadLinked,
    /// Changes a file inside the project.
    Write,
    /// Runs a command.
    Execute,
    /// Fetches something from a network host; the target is the host.
    Fetch,
    /// Queries a source that the user has configured (logs, metrics), or the agent's own earlier output.
    Query,
    /// Calls a tool of a server that may change something there; the target names the tool and the server.
    Remote,
    /// Acts on the team: proposes, delegates, asks a teammate.
    Team,
    /// Asks the user something.
    Ask,
    /// Hands over the final answer; changes nothing.
    Answer,
    /// Reads in an agent folder; the target begins with the folder's name (`@files/…`).
    ReadOwn,
    /// Changes a file in an agent folder.
    WriteOwn,
    /// Merges the changes of a worktree into the project, or drops them; the target is the worktree.
    Merge,
    /// Submits the agent's plan to its lead or to a person; the agent acts after the approval.
    Propose,
}

impl ActionKind {
    /// Whether it changes nothing and needs no answer from a person or another agent.
    pub fn is_read_only(self) -> bool {
        match self {
            Self::Read | Self::ReadLinked | Self::Fetch | Self::Query | Self::Answer => true,
            Self::Write | Self::ReadOwn | Self::WriteOwn | Self::Execute | Self::Remote => false,
            Self::Team | Self::Ask | Self::Merge | Self::Propose => false,
        }
    }
}

/// The effect of a tool call, in a form that a person and a rule can judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// The kind of action.
    #[serde(rename = "deed")]
    pub kind: ActionKind,
    /// Its object: a path relative to the root, the command line, or the host.
    pub target: String,
    /// Shown to the user before approval: a unified diff for edits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preview: String,
    /// The target's hash before (`None`: it does not exist).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Hash>,
    /// The target's hash after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Hash>,
    /// The parsed command line. If it is set, it is what is judged, and nothing else is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<CommandLine>,
    /// Paths that are links, with their targets: a denial applies to both ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<(String, String)>,
    /// The sandbox that the verdict named, if it is a command.
    #[serde(default, skip_serializing_if = "CommandReach::is_default")]
    pub reach: CommandReach,
    /// Parameters of the call that rules can match (`run_in_background`, `model`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// The result of the call, if it has run already and only its consequence is to be decided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// What a command deletes that a scan of the project does not watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<Box<Deletion>>,
}

impl Action {
    /// A read action.
    pub fn read(target: impl Into<String>) -> Self {
        Self {
            kind: ActionKind::Read,
            target: target.into(),
            preview: String::new(),
            before: None,
            after: None,
            line: None,
            links: Vec::new(),
            reach: CommandReach::default(),
            parameters: Vec::new(),
            said: String::new(),
            deletion: None,
        }
    }

    /// A question that a call asks while it is under way. The answer is given to the call, which then continues; `call` is the
    /// name by which it is found again.
    pub fn asked_by_call(call: impl Into<String>, target: impl Into<String>, question: String) -> Self {
        let parameters = vec![(ASKED_BY_CALL.to_owned(), call.into())];
        Self { kind: ActionKind::Ask, preview: question, parameters, ..Self::read(target) }
    }

    /// A connection that a command makes while its call is under way; it waits if a person is asked. `address`: the address of
    /// this machine or of a private network that the host's name leads to, which must be allowed as well.
    pub fn connection(
        call: impl Into<String>,
        host: impl Into<String>,
        address: Option<String>,
        preview: String,
    ) -> Self {
        let mut parameters = vec![(ASKED_BY_CALL.to_owned(), call.into())];
        parameters.extend(address.map(|address| (AT_ADDRESS.to_owned(), address)));
        Self { kind: ActionKind::Fetch, preview, parameters, ..Self::read(host) }
    }

    /// The private address that the host of a connection leads to.
    pub(crate) fn address(&self) -> Option<&str> {
        self.parameter(AT_ADDRESS).filter(|_| self.asking_call().is_some())
    }

    /// The call under way that asks, if one does.
    pub fn asking_call(&self) -> Option<&str> {
        self.parameter(ASKED_BY_CALL).filter(|_| matches!(self.kind, ActionKind::Ask | ActionKind::Fetch))
    }

    /// The same question with a person's answer, for the call that asked. `None`: the person declines.
    pub fn with_answer(mut self, answer: Option<&str>) -> Self {
        let (name, value) = answer.map_or((DECLINED, ""), |words| (ANSWERED, words));
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same question, which no person has answered; for the call that asked it counts as declined.
    pub fn without_answer(mut self) -> Self {
        self.parameters.push((DECLINED.to_owned(), BY_NOBODY.to_owned()));
        self
    }

    /// Whether a person has declined it.
    pub fn is_refused(&self) -> bool {
        self.parameter(DECLINED).is_some_and(|by| by != BY_NOBODY)
    }

    /// The answer to a question that a call asked; `None` inside: declined.
    pub fn answer(&self) -> Option<Option<&str>> {
        match self.parameter(ANSWERED) {
            Some(words) => Some(Some(words)),
            None => self.parameter(DECLINED).map(|_| None),
        }
    }

    /// Whether the call says that its command changes files.
    pub fn writes(&self) -> bool {
        self.parameter(WRITES) == Some("true")
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find_map(|(key, value)| (key == name).then_some(value.as_str()))
    }
}

/// The parameter of a command that says that it changes files.
pub const WRITES: &str = "writes";
/// Parameters of questions that a call asks while it is under way.
const ASKED_BY_CALL: &str = "asked_by_call";
const AT_ADDRESS: &str = "at_address";
const ANSWERED: &str = "answered";
const DECLINED: &str = "declined";
/// Its value where no person was asked.
const BY_NOBODY: &str = "nobody";

/// What may happen to a call, in order of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call may run.
    Allow,
    /// Ask a person first.
    Ask,
    /// The call is refused.
    Deny,
}

/// Permission mode: how freely an agent may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Read freely, ask before every change.
    #[default]
    #[serde(alias = "manual")]
    Default,
    /// Change files without asking.
    AcceptEdits,
    /// Read only: changes and commands are refused.
    Plan,
    /// Change files without asking; ask about dangerous actions.
    Auto,
    /// Never ask: refuse what would need a question.
    DontAsk,
    /// Never ask: allow everything.
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

    /// Whether it allows less than another mode.
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
    pub fn parse(name: &str) -> Option<Self> {
        let known = Self::NAMES.iter().find(|(own, _)| *own == name).map(|(_, mode)| *mode);
        known.or((name == "manual").then_some(Self::Default))
    }

    /// The name users write.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("default", |(name, _)| name)
    }
}

/// The permission settings of all scopes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Permissions {
    /// The project's folder, absolute; paths outside it are recognized by it.
    pub root: String,
    /// The rules, the weakest scope first.
    pub rules: Vec<Rule>,
    /// Files that this run was given by name and obeys (`--config`, `--agents`), absolute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guarded: Vec<String>,
    /// Folders besides the project's that commands work in (`additionalDirectories`), absolute and without links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Whether nothing outside these folders is read, even if a rule allows it
    /// (`blockReadsOutsideWorkingDirectories`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_reads_outside: bool,
    /// Whether nothing outside these folders is changed (`blockWritesOutsideWorkingDirectories`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_writes_outside: bool,
    /// Whether questions become refusals in every mode (`denyInsteadOfPrompting`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_asks: bool,
    /// The worktree that the agent works in, absolute; empty if there is none. A path in it is judged as the path in
    /// the project that it stands for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub copy: String,
}

impl Permissions {
    /// No permission settings.
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

    /// Whether every use of a tool is denied, so that the model need not know the tool.
    pub fn denies_tool(&self, tool: &str) -> bool {
        self.rules.iter().any(|rule| rule.denies_tool(tool))
    }

    /// Whether there are no permission settings.
    pub fn is_empty(&self) -> bool {
        self == Self::none()
    }
}

/// The author of an answer. "The user refused" is only true of a person: a rule, or a run without a person, is named
/// as such.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// A person, and the frontend they used.
    Person(String),
    /// A rule, by its text.
    Rule(String),
    /// A permission that the user gave to another agent for the session; with that agent's name.
    Grant(String),
    /// No person could be asked; with the reason.
    Nobody(String),
    /// The lead of the asking agent.
    Lead(String),
}

impl DecidedBy {
    /// A person at a frontend.
    pub fn person(who: &crate::message::Principal) -> Self {
        Self::Person(who.signature())
    }

    /// The author for people.
    pub fn name(&self) -> String {
        match self {
            Self::Person(who) | Self::Rule(who) | Self::Lead(who) => who.clone(),
            Self::Grant(asker) => format!("what `{asker}` was allowed for the session"),
            Self::Nobody(why) => format!("nobody ({why})"),
        }
    }
}

/// The answer to a permission question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionAnswer {
    /// Yes or no.
    pub allow: bool,
    /// Allow, and remember it as the rule that the question names.
    #[serde(default)]
    pub always: bool,
    /// How long it is remembered.
    #[serde(default)]
    pub until: GrantScope,
    /// A comment for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// For changes in a worktree: drop them. A mere refusal drops nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop: bool,
    /// The user wrote something instead of yes or no: the call is not run, and the user is asked again if it is made again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub put_off: bool,
    /// The word that approves a deletion which cannot be taken back.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub word: String,
    /// Whose answer it is.
    pub by: DecidedBy,
}

/// The decision about the changes in a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeDecision {
    /// They are merged into the project, as far as possible.
    Taken,
    /// They are dropped, and the worktree is removed.
    Dropped,
    /// They stay in the worktree.
    Left,
}

impl MergeDecision {
    /// All variants with their names.
    const NAMES: [(Self, &str); 3] = [(Self::Taken, "take"), (Self::Dropped, "drop"), (Self::Left, "leave")];

    /// The word that stands for it.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(settled, _)| *settled == self).map_or("", |(_, name)| name)
    }

    /// What a word stands for.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(settled, _)| *settled)
    }
}

impl PermissionAnswer {
    /// Allow or refuse this one call, without a comment.
    pub fn new(allow: bool, by: DecidedBy) -> Self {
        Self {
            allow,
            always: false,
            until: GrantScope::default(),
            comment: String::new(),
            drop: false,
            put_off: false,
            word: String::new(),
            by,
        }
    }

    /// The answer about the changes in a worktree.
    pub fn merge_answer(settled: MergeDecision, by: DecidedBy) -> Self {
        Self { drop: settled == MergeDecision::Dropped, ..Self::new(settled == MergeDecision::Taken, by) }
    }

    /// Whether it lets an action run: what deletes something for good needs a person who typed the word.
    pub fn approves(&self, action: &Action) -> bool {
        let is_typed = || matches!(self.by, DecidedBy::Person(_)) && is_deletion_word(&self.word);
        self.allow && (action.loss().is_none() || is_typed())
    }

    /// The decision about the changes in a worktree. Only a person drops them.
    pub fn merge_decision(&self) -> MergeDecision {
        match (self.allow, self.drop, &self.by) {
            (true, ..) => MergeDecision::Taken,
            (false, true, DecidedBy::Person(_)) => MergeDecision::Dropped,
            _ => MergeDecision::Left,
        }
    }
}

#[cfg(test)]
mod tests;
