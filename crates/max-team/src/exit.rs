//! How the program ends: each user-facing failure has an exit code and words that say what to do next.

use std::process::ExitCode;

use max_team_core::event::End;
use max_team_core::recovery::Failure;

use crate::words::Lang;

/// The exit codes, as documented in `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok = 0,
    Failed = 1,
    Usage = 2,
    Config = 3,
    NoKey = 4,
    Denied = 5,
    Budget = 6,
    Limit = 7,
    Partial = 8,
    Interrupted = 130,
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// The code for how a turn ended.
    pub(crate) fn of(end: &End) -> Self {
        match end {
            End::Answered | End::Proposed => Self::Ok,
            End::Budget => Self::Budget,
            End::Rounds | End::Looping | End::Truncated | End::Unstructured => Self::Limit,
            End::Interrupted => Self::Interrupted,
            End::Failed { failure: Failure::Auth, .. } => Self::NoKey,
            End::Failed { failure: Failure::Setup, .. } => Self::Config,
            End::Refused | End::Empty | End::Failed { .. } | End::Broken { .. } => Self::Failed,
        }
    }
}

/// A failure with its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Stop {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    chinese: Option<String>,
}

impl Stop {
    /// In the words of whoever failed.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), chinese: None }
    }

    /// In words of ours: whoever fails need not know which language is spoken.
    pub(crate) fn said(exit: Exit, words: impl Fn(Lang) -> String) -> Self {
        Self { exit, message: words(Lang::En), chinese: Some(words(Lang::Zh)) }
    }

    pub(crate) fn words(&self, lang: Lang) -> &str {
        match (lang, &self.chinese) {
            (Lang::Zh, Some(words)) => words,
            _ => &self.message,
        }
    }
}
