//! What a judgement rests on, as data: records name the person, the plan or the mode behind it, and screens say it in the
//! user's language.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::policy::protected::Protection;
use crate::policy::{DangerReason, GrantScope, HiddenReason, Mode, ShellSyntax};

/// The authority that decided. Its text is a judgement's rule.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A rule, a constraint or a setting that only the text beside it describes.
    #[default]
    Rule,
    /// A remembered answer of a person; only in older entries.
    Answer,
    /// An approved plan.
    Plan,
    /// The permission mode; only in older entries.
    Mode,
    /// A built-in rule.
    BuiltIn(AutoAllow),
    /// A rule as it is written, with its place.
    Written(String),
    /// A remembered answer of a person that holds so long.
    Granted(GrantScope),
    /// This permission mode.
    InMode(Mode),
    /// A constraint of the member.
    Member(String),
    /// The member's `allowed_commands` do not have this command; with the nearest that they have.
    NotAllowed { command: String, near: Option<String>, is_empty: bool },
    /// The member may run plain commands only, and this line needs a shell.
    NeedsShell(ShellSyntax),
    /// A hook covers this call, by its place and its rule, and is not run here.
    Hook { origin: String, rule: String },
    /// No rule names the host.
    Host(String),
    /// No rule names the host, which is on this machine or in a private network.
    LocalHost(String),
    /// A command connects to a host that no rule names; with the private address that its name leads to.
    Connection { host: String, address: Option<String> },
    /// No rule allows web searches; with the host of the search service.
    Searches(String),
    /// The path is outside the project, and this setting closes everything outside.
    Closed { path: String, setting: String },
    /// The call asks the user something.
    Question,
    /// The line has no command.
    EmptyLine,
    /// Files of other agents are hidden.
    OthersFiles,
    /// A file that no tool reads.
    PrivateKey(String),
    /// A file that no tool changes.
    Held { path: String, why: Protection },
    /// A protected file: each change asks.
    Protected { path: String, why: Protection },
    /// An action that always asks, with the reason.
    Danger(DangerReason),
    /// The effects of a command cannot be known, with the reason.
    Hidden(HiddenReason),
    /// A teammate's plan needs the approval of its lead or a person.
    TeammatePlan,
    /// A person decides about the changes in a worktree.
    WorktreeChanges,
    /// The path is not among those that the task owns.
    Unowned,
    /// The path is outside the project, and then this decided.
    Outside { path: String, then: Box<Basis> },
    /// The command can discard uncommitted work, and then this decided.
    Discards(Box<Basis>),
    /// The history may show hidden files, and then this decided.
    History(Box<Basis>),
    /// This machine can protect and hide nothing in a folder that the command writes; this decided before.
    Unshielded(Box<Basis>),
    /// This asks, and settings turn questions into refusals.
    NeverAsks(Box<Basis>),
}

impl Basis {
    /// Whether only the text beside it says what decided.
    pub fn is_untyped(&self) -> bool {
        *self == Self::Rule
    }

    /// Whether the permission mode decided in the end.
    pub fn is_mode(&self) -> bool {
        match self {
            Self::Mode | Self::InMode(_) => true,
            Self::Outside { then, .. }
            | Self::Discards(then)
            | Self::History(then)
            | Self::Unshielded(then)
            | Self::NeverAsks(then) => then.is_mode(),
            _ => false,
        }
    }
}

/// The text of a judgement's rule; empty where only the text beside it says what decided.
impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule | Self::Answer | Self::Mode => Ok(()),
            Self::Plan => f.write_str("the approved plan"),
            Self::BuiltIn(free) => f.write_str(free.reason()),
            Self::Written(rule) => write!(f, "the rule {rule}"),
            Self::Granted(until) => write!(f, "allowed {} by the user", until.name()),
            Self::InMode(mode) => write!(f, "permission mode `{}`", mode.name()),
            Self::Member(limit) => write!(f, "the member's {limit}"),
            Self::NotAllowed { command, near, is_empty } => {
                write!(f, "the member's `allowed_commands`: `{command}` is not in it")?;
                match near {
                    Some(near) => write!(f, "; nearest allowed: `{near}`"),
                    None if *is_empty => f.write_str("; the list is empty"),
                    None => Ok(()),
                }
            }
            Self::NeedsShell(why) => {
                write!(f, "the member's `allowed_commands`: plain commands only, and this needs a shell ({why})")
            }
            Self::Hook { origin, rule } => {
                write!(f, "a `PreToolUse` hook ({origin}) covers `{rule}` and is not run here")
            }
            Self::Host(host) => write!(f, "no rule names the host `{host}`"),
            Self::Connection { host, address: None } => {
                write!(
                    f,
                    "no rule names the host `{host}`, which the command connects to; its code can also send data there"
                )
            }
            Self::Connection { host, address: Some(address) } => {
                write!(
                    f,
                    "the command connects to `{host}`, which leads to `{address}` on this machine or in a private network; its code \
                     can also send data there"
                )
            }
            Self::LocalHost(host) => {
                write!(f, "no rule names the host `{host}`, which is on this machine or in a private network")
            }
            Self::Searches(host) => write!(f, "no rule allows web searches (`{host}`)"),
            Self::Closed { path, setting } => {
                write!(f, "`{path}` is outside the project, and settings say `{setting}`")
            }
            Self::Question => f.write_str("a question to the user"),
            Self::EmptyLine => f.write_str("there is no command in the line"),
            Self::OthersFiles => f.write_str("what others keep is theirs alone"),
            Self::PrivateKey(path) => write!(f, "`{path}` holds a private key"),
            Self::Held { path, why } => write!(f, "only the user changes `{path}`: {why}"),
            Self::Protected { path, why } => write!(f, "always asked: `{path}`: {why}"),
            Self::Danger(why) => write!(f, "always asked: {why}"),
            Self::Hidden(why) => write!(f, "cannot be analysed: {why}"),
            Self::TeammatePlan => f.write_str("the lead or a person approves a teammate's plan"),
            Self::WorktreeChanges => f.write_str("a person decides about changes in a worktree"),
            Self::Unowned => f.write_str("outside the paths this task owns"),
            Self::Outside { path, then } => write!(f, "`{path}` is outside the project; {then}"),
            Self::Discards(then) => write!(f, "it can discard uncommitted work; {then}"),
            Self::History(then) => write!(f, "the history may show files that are not for this agent; {then}"),
            Self::Unshielded(then) => {
                write!(f, "here it can also change protected files and read blocked ones; {then}")
            }
            Self::NeverAsks(then) => write!(f, "{then}; settings say `denyInsteadOfPrompting`"),
        }
    }
}

/// A built-in rule that allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoAllow {
    /// Handing over the final answer.
    Answer,
    /// Working with teammates.
    Team,
    /// Querying sources that the user has configured: logs, metrics.
    SetUp,
    /// Reading inside the project.
    Read,
    /// Reading in the additional folders of settings.
    ReadAlso,
    /// Reading and writing in an agent folder.
    Own,
    /// Reading and writing devices that store nothing: `/dev/null`.
    Device,
    /// A command that only touches paths, each of which was judged.
    Places,
    /// The rest of a pipeline, if nothing in it needs a permission.
    Rest,
    /// A host that the member's definition names.
    Hosts,
    /// An approved check of its task, or the project's test command.
    Check,
    /// Editing in the agent's own worktree: its changes are reviewed before they reach the project.
    Worktree,
    /// A command in a sandbox where nothing can be changed and no host reached.
    Still,
}

impl AutoAllow {
    pub const ALL: [Self; 13] = [
        Self::Answer,
        Self::Team,
        Self::SetUp,
        Self::Read,
        Self::ReadAlso,
        Self::Own,
        Self::Device,
        Self::Places,
        Self::Rest,
        Self::Hosts,
        Self::Check,
        Self::Worktree,
        Self::Still,
    ];

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Team => "team",
            Self::SetUp => "set-up",
            Self::Read => "read-inside",
            Self::ReadAlso => "read-additional",
            Self::Own => "own-folder",
            Self::Device => "empty-device",
            Self::Places => "judged-by-place",
            Self::Rest => "rest-of-line",
            Self::Hosts => "allowed-hosts",
            Self::Check => "check",
            Self::Worktree => "own-worktree",
            Self::Still => "read-only-sandbox",
        }
    }

    /// The reason as the judge words it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Answer => "answering is always allowed",
            Self::Team => "working with the team is always allowed",
            Self::SetUp => "asking what the user has set up is always allowed",
            Self::Read => "reading inside the project is always allowed",
            Self::ReadAlso => "reading in `additionalDirectories` is always allowed",
            Self::Own => "a folder of its own is always open to it",
            Self::Device => "a device that holds nothing",
            Self::Places => "it reads and writes only where that needs no question",
            Self::Rest => "the rest of the line",
            Self::Hosts => "the member's `allowed_hosts`",
            Self::Check => "an approved check of its task, or the project's test command",
            Self::Worktree => "editing in its own worktree is always allowed",
            Self::Still => "it runs where it can change nothing and reach no host",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::RemoteEffect;

    #[test]
    fn bases_of_older_entries_are_read() {
        let table = [
            (json!("rule"), Basis::Rule),
            (json!("answer"), Basis::Answer),
            (json!("plan"), Basis::Plan),
            (json!("mode"), Basis::Mode),
            (json!({ "built_in": "read" }), Basis::BuiltIn(AutoAllow::Read)),
            (json!({ "danger": "it publishes" }), Basis::Danger(DangerReason::Other("it publishes".to_owned()))),
            (json!({ "hidden": "a loop" }), Basis::Hidden(HiddenReason::Other("a loop".to_owned()))),
        ];
        for (old, basis) in table {
            assert_eq!(serde_json::from_value::<Basis>(old.clone()).unwrap(), basis);
            assert_eq!(serde_json::to_value(&basis).unwrap(), old);
        }
        let typed = [
            Basis::Danger(DangerReason::Remote(RemoteEffect::Publishes)),
            Basis::Hidden(HiddenReason::Shell(ShellSyntax::Expansion)),
            Basis::Hidden(HiddenReason::GitConfig),
            Basis::NeedsShell(ShellSyntax::ManyCommands(9)),
        ];
        for basis in typed {
            let json = serde_json::to_value(&basis).unwrap();
            assert_eq!(serde_json::from_value::<Basis>(json).unwrap(), basis);
        }
        let nested = Basis::NeverAsks(Box::new(Basis::InMode(Mode::Plan)));
        let json: Value = serde_json::to_value(&nested).unwrap();
        assert!(nested.is_mode() && serde_json::from_value::<Basis>(json).unwrap() == nested);
    }
}
