//! How the program ends: each user-facing failure has an exit code and words that say what to do next.

pub use max_team_core::verdict::Exit;

use crate::i18n::{Lang, Translated};

/// A failure with its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    pub exit: Exit,
    pub message: String,
    chinese: Option<String>,
}

impl CliError {
    /// A message that is not translated.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), chinese: None }
    }

    /// A message in both languages, so that failing code need not know the user's.
    pub fn said(exit: Exit, words: impl Fn(Lang) -> String) -> Self {
        Self { exit, message: words(Lang::En), chinese: Some(words(Lang::Zh)) }
    }

    /// A message that is translated already.
    pub fn translated(exit: Exit, message: &Translated) -> Self {
        Self::said(exit, |lang| message.get(lang).to_owned())
    }

    /// A file that cannot be written.
    pub fn unwritable(shown: &str, error: &std::io::Error) -> Self {
        Self::said(Exit::Failed, |lang| lang.unwritable(shown, lang.io_fault(error)))
    }

    pub fn words(&self, lang: Lang) -> &str {
        match (lang, &self.chinese) {
            (Lang::Zh, Some(words)) => words,
            _ => &self.message,
        }
    }
}
