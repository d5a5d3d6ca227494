//! What can be wrong with a configuration, said so that it can be put right.
//!
//! Loading goes on after a problem, so that one run names them all. A problem begins with its place
//! (`file:line:col`, or the flag), and the whole message ends with what to do next. No value of a secret key
//! ever enters a message, and no control character of a file reaches the terminal.

use std::fmt;
use std::io;

pub use max_team_core::text::quote;

/// One thing that is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file is there, or was asked for, but cannot be read.
    #[error("{file}: cannot be read: {cause}")]
    Unreadable { file: String, cause: io::Error },
    /// Far too long for a configuration.
    #[error("{file}: larger than {} KiB", super::files::BYTES_MAX >> 10)]
    TooLarge { file: String },
    #[error("{file}:{line}: not valid UTF-8")]
    NotText {
        file: String,
        /// The first line that is not.
        line: usize,
    },
    /// Not YAML, or not the part of YAML that we take.
    #[error("{place}: {message}")]
    Syntax {
        /// `file:line:col`.
        place: String,
        /// What the parser says.
        message: String,
    },
    /// YAML that breaks a rule of what is written in it.
    #[error("{place}: {message}")]
    Rule {
        /// `file:line:col`.
        place: String,
        /// Which, and what would do.
        message: String,
    },
    /// A value of the wrong type or out of bounds.
    #[error("{place}: `{key}`: expected {wanted}, found {found}")]
    Value {
        /// `file:line:col` or the flag.
        place: String,
        key: String,
        /// What would do.
        wanted: String,
        /// What is there.
        found: String,
    },
    /// A variable that is not set.
    #[error("{place}: `{key}`: the variable `{name}` is not set")]
    Unset {
        /// `file:line:col`.
        place: String,
        key: String,
        name: String,
    },
    /// A reference that is none.
    #[error("{place}: `{key}`: `{text}` is not a reference to a variable")]
    Reference {
        /// `file:line:col`.
        place: String,
        key: String,
        /// What stands there.
        text: String,
    },
    /// A flag or a question named a key that does not exist.
    #[error("{place}: unknown key `{key}`{}", did_you_mean(*.near))]
    UnknownKey {
        place: String,
        key: String,
        /// The key that was probably meant.
        near: Option<&'static str>,
    },
}

impl Problem {
    /// What the reader can do about it.
    fn next(&self) -> &'static str {
        match self {
            Self::Unreadable { cause, .. } if cause.kind() == io::ErrorKind::NotFound => {
                "check the path, or leave the flag out to use the usual files"
            }
            Self::Unreadable { .. } => "make the file readable for you, or move it away",
            Self::TooLarge { .. } => "is this the right file? move it away, or name another one",
            Self::NotText { .. } => "save the file as UTF-8",
            Self::Syntax { .. } | Self::Rule { .. } => "correct that line and run the command again",
            Self::Value { place, .. } if place.starts_with("--") => "correct the value, or leave the flag out",
            Self::Value { .. } => "correct the value, or delete the line to get the default",
            Self::Unset { .. } => "set the variable, or write `${NAME:-default}`",
            Self::Reference { .. } => "write `${NAME}`, `${NAME:-default}`, or `$${` for a plain `${`",
            Self::UnknownKey { .. } => "run `max-team config explain` to see every key",
        }
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

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        f.write_str(self.problems.first().map_or("", Problem::next))
    }
}

pub(super) fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default()
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
