//! What kind of word a judgement rests on, as data: evidence names the person, the plan or the mode behind it.

use serde::{Deserialize, Serialize};

/// The kind of word that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A rule, a constraint or a setting.
    #[default]
    Rule,
    /// An answer of a person that holds for longer.
    Answer,
    /// An approved plan.
    Plan,
    /// The permission mode.
    Mode,
    /// A built-in rule.
    BuiltIn(Free),
}

/// A built-in rule that allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Free {
    /// Answering whoever asked.
    Answer,
    /// Working with colleagues.
    Team,
    /// Asking what the user has set up for it: logs, metrics.
    SetUp,
    /// Reading inside the project.
    Read,
    /// Reading in the folders that settings name besides.
    ReadAlso,
    /// Reading and writing in a folder of its own.
    Own,
    /// Reading and writing where nothing is kept: `/dev/null`.
    Device,
    /// A command that does no more than what was judged place by place.
    Places,
    /// What a command line pipes into, if nothing of it needs a word.
    Rest,
    /// A host that the member's definition names.
    Hosts,
    /// An approved check of its task, or the project's test command.
    Check,
    /// Editing in its own worktree: a merge is looked at before it reaches the project.
    Worktree,
}

impl Free {
    /// All of them.
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

    /// What it is called.
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

    /// What the judge says of it.
    pub fn words(self) -> &'static str {
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

    /// Which of them a judgement's words speak of; whatever stands before says where that was.
    pub fn of(rule: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|free| rule.ends_with(free.words()))
    }
}
