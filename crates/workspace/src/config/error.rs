//! What can be wrong with a configuration, said so that it can be put right.
//!
//! Loading goes on after a problem, so that one run names them all. A problem begins with its place
//! (`file:line:col`, or the flag), and the whole message ends with what to do next. No value of a secret key
//! ever enters a message, and no control character of a file reaches the terminal.

use std::fmt;
use std::io;

pub use max_team_core::text::quote;

use crate::exit::{CliError, Exit};
use crate::i18n::{Lang, Translated};

/// One thing that is wrong.
#[derive(Debug)]
pub enum Problem {
    /// The file is there, or was asked for, but cannot be read.
    Unreadable { file: String, cause: io::Error },
    /// The file appeared while a command runs, without the user's approval.
    Planted { file: String },
    /// A pipe or a device, which could hold up reading for ever.
    Irregular { file: String },
    /// Far too long for a configuration.
    TooLarge { file: String },
    NotText {
        file: String,
        /// The first line that is not.
        line: usize,
    },
    /// Not YAML, or not the part of YAML that we take.
    Syntax {
        /// `file:line:col`.
        place: String,
        /// What the parser says.
        message: Translated,
    },
    /// YAML that breaks a rule of what is written in it.
    Rule {
        /// `file:line:col`.
        place: String,
        /// Which, and what would do.
        message: Translated,
    },
    /// A value of the wrong type or out of bounds.
    Value {
        /// `file:line:col` or the flag.
        place: String,
        /// The key, or the part of the file that has none.
        key: Translated,
        /// What would do.
        wanted: Translated,
        /// What is there.
        found: Translated,
    },
    /// A variable that is not set.
    Unset {
        /// `file:line:col`.
        place: String,
        key: String,
        name: String,
    },
    /// A reference that is none.
    Reference {
        /// `file:line:col`.
        place: String,
        key: String,
        /// What stands there.
        text: String,
    },
    /// A flag or a question named a key that does not exist.
    UnknownKey {
        place: String,
        key: String,
        /// The key that was probably meant.
        near: Option<&'static str>,
    },
}

impl Problem {
    pub(crate) fn words(&self, lang: Lang) -> String {
        match self {
            Self::Unreadable { file, cause } => lang.settings_unreadable(file, lang.io_fault(cause)),
            Self::Planted { file } => lang.settings_unreadable(file, lang.file_planted()),
            Self::Irregular { file } => lang.settings_unreadable(file, lang.file_irregular()),
            Self::TooLarge { file } => lang.settings_too_large(file, super::files::BYTES_MAX >> 10),
            Self::NotText { file, line } => lang.settings_not_text(file, *line),
            Self::Syntax { place, message } | Self::Rule { place, message } => lang.headed(place, message.get(lang)),
            Self::Value { place, key, wanted, found } => {
                lang.settings_value(place, key.get(lang), wanted.get(lang), found.get(lang))
            }
            Self::Unset { place, key, name } => lang.settings_unset(place, key, name),
            Self::Reference { place, key, text } => lang.settings_reference(place, key, text),
            Self::UnknownKey { place, key, near } => {
                let near = near.map(|near| lang.near_name(near)).unwrap_or_default();
                lang.settings_unknown_key(place, key, &near)
            }
        }
    }

    /// What the reader can do about it.
    fn next(&self, lang: Lang) -> &'static str {
        match self {
            Self::Unreadable { cause, .. } if cause.kind() == io::ErrorKind::NotFound => lang.settings_check_path(),
            Self::Unreadable { .. } | Self::Planted { .. } | Self::Irregular { .. } => lang.settings_make_readable(),
            Self::TooLarge { .. } => lang.settings_right_file(),
            Self::NotText { .. } => lang.settings_save_utf8(),
            Self::Syntax { .. } | Self::Rule { .. } => lang.settings_correct_line(),
            Self::Value { place, .. } if place.starts_with("--") => lang.settings_correct_flag(),
            Self::Value { .. } => lang.settings_correct_value(),
            Self::Unset { .. } => lang.settings_set_variable(),
            Self::Reference { .. } => lang.settings_write_reference(),
            Self::UnknownKey { .. } => lang.settings_see_keys(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(Lang::En))
    }
}

/// Everything that is wrong; never empty.
#[derive(Debug, thiserror::Error)]
pub struct ConfigError {
    /// In the order of the sources.
    pub problems: Vec<Problem>,
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::said(Exit::Config, |lang| error.words(lang))
    }
}

impl ConfigError {
    /// All problems, and what to do about the first.
    pub fn words(&self, lang: Lang) -> String {
        let problems = self.problems.iter().map(|problem| problem.words(lang));
        let next = self.problems.first().map_or("", |problem| problem.next(lang));
        problems.chain([next.to_owned()]).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(Lang::En))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_ends_with_what_to_do() {
        let unset = Problem::Unset { place: "a.yaml:1:2".into(), key: "llm.provider".into(), name: "X".into() };
        let text = ConfigError::from(unset).to_string();
        let expected = "a.yaml:1:2: `llm.provider`: the variable `X` is not set\n\
                        set the variable, or write `${NAME:-default}`";
        assert_eq!(text, expected);
    }

    #[test]
    fn quotes_are_safe_to_print() {
        assert_eq!(quote("a\u{1b}[2J\nb"), "a\\u{1b}[2J\\nb");
        assert_eq!(quote(&"x".repeat(100)), format!("{}…", "x".repeat(80)));
    }
}
