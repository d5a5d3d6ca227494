//! What kind of authority a judgement rests on, as data: audit lines name the person, the plan or the mode behind it.

use serde::{Deserialize, Serialize};

/// The kind of authority that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A rule, a constraint or a setting.
    #[default]
    Rule,
    /// A remembered answer of a person.
    Answer,
    /// An approved plan.
    Plan,
    /// The permission mode.
    Mode,
    /// A built-in rule.
    BuiltIn(AutoAllow),
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
}

impl AutoAllow {
    pub const ALL: [Self; 12] = [
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
            Self::Places => "it does no more than its places say",
            Self::Rest => "the rest of the line",
            Self::Hosts => "the member's `allowed_hosts`",
            Self::Check => "an approved check of its task, or the project's test command",
            Self::Worktree => "editing in its own worktree is always allowed",
        }
    }

    /// The variant whose reason ends a judgement's text; the text before it only says where.
    pub fn from_reason(rule: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|free| rule.ends_with(free.reason()))
    }
}
