//! How the program ends: each user-facing failure has an exit code and words that say what to do next.

pub(crate) use max_team_core::verdict::Exit;

use crate::words::Lang;

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
