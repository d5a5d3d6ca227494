//! A command line as plain data, in a form that can be judged and run without a shell.
//!
//! `tools::shell` parses the text; nothing here does. A line is either *plain*, words joined by `&& || ; |` that mean
//! the same to every shell, or *opaque*: then only a shell can tell what it does.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ShellSyntax;
use crate::text::visible;

/// A command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLine {
    /// Commands whose every word is known.
    Plain(Vec<SimpleCommand>),
    /// A line that only a shell can parse.
    Opaque {
        /// The text as written.
        text: String,
        /// The part of it that is not plain.
        why: ShellSyntax,
    },
}

/// One command of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SimpleCommand {
    /// How it follows the one before it.
    #[serde(default)]
    pub join: Operator,
    /// Variables that are set for this command only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// The program and its arguments, unquoted. The runner of the line carries out `cd` itself.
    pub argv: Vec<String>,
    /// Redirections of input and output, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Redirect>,
}

/// How a command follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// Always: `;`, and the first command of a line.
    #[default]
    Then,
    /// If the one before succeeded: `&&`.
    And,
    /// If the one before failed: `||`.
    Or,
    /// At the same time, reading its output: `|`.
    Pipe,
}

/// A redirection of one descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// The descriptor of the command.
    pub fd: u32,
    /// The other end.
    pub to: RedirectTarget,
}

/// The other end of a redirection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedirectTarget {
    /// `< path`.
    Read(String),
    /// `> path`.
    Write(String),
    /// `>> path`.
    Append(String),
    /// `>& fd`: the same as that descriptor.
    Same(u32),
}

impl CommandLine {
    /// A line of one command.
    pub fn single(argv: &[String]) -> Self {
        Self::Plain(vec![SimpleCommand { argv: argv.to_vec(), ..SimpleCommand::default() }])
    }

    /// The line as a person must see it before approving: without invisible characters and terminal escapes.
    pub fn shown(&self) -> String {
        visible(&self.to_string())
    }
}

/// The text that every shell, and this project's parser, reads as this line.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match self {
            Self::Opaque { text, .. } => return f.write_str(text),
            Self::Plain(parts) => parts,
        };
        for (index, part) in parts.iter().enumerate() {
            match part.join {
                _ if index == 0 => {}
                Operator::Then => f.write_str("; ")?,
                Operator::And => f.write_str(" && ")?,
                Operator::Or => f.write_str(" || ")?,
                Operator::Pipe => f.write_str(" | ")?,
            }
            write!(f, "{part}")?;
        }
        Ok(())
    }
}

impl fmt::Display for SimpleCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quote(value))?;
        }
        f.write_str(&join(&self.argv))?;
        for Redirect { fd, to } in &self.flows {
            let usual = u32::from(!matches!(to, RedirectTarget::Read(_)));
            f.write_str(" ")?;
            if *fd != usual {
                write!(f, "{fd}")?;
            }
            match to {
                RedirectTarget::Read(path) => write!(f, "<{}", quote(path))?,
                RedirectTarget::Write(path) => write!(f, ">{}", quote(path))?,
                RedirectTarget::Append(path) => write!(f, ">>{}", quote(path))?,
                RedirectTarget::Same(fd) => write!(f, ">&{fd}")?,
            }
        }
        Ok(())
    }
}

/// Quotes a word for any shell.
pub fn quote(word: &str) -> String {
    let is_option = word.starts_with('-');
    let plain =
        |letter: char| letter.is_ascii_alphanumeric() || "_-./:,@%+^".contains(letter) || (letter == '=' && is_option);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { enclosed(word) }
}

fn enclosed(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Joins an argv into one line, quoted where necessary: a `=` in the program's name would make it an assignment.
pub fn join(argv: &[String]) -> String {
    let Some((program, rest)) = argv.split_first() else { return String::new() };
    let program = if program.contains('=') { enclosed(program) } else { quote(program) };
    std::iter::once(program).chain(rest.iter().map(|word| quote(word))).collect::<Vec<_>>().join(" ")
}
