//! Why a server is over, by kind, so that it can be told in the user's language.

use max_team_sandbox::{Limit, SandboxError};
use serde::{Deserialize, Serialize};

use crate::clean;

/// Bytes of a line that a program wrote before it ended.
const LINE_BYTES_MAX: usize = 300;
/// Bytes of a program's standard error that are searched for such a line.
const TAIL_BYTES: usize = 8 << 10;

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ServerEnd {
    /// The program ended by itself. `wrote` is a line of its standard error: it is for the user, who knows the program, and no
    /// part of the words for models.
    #[error("its program ended with exit code {code}")]
    Exited { code: i32, wrote: Option<String> },
    #[error("its program was ended by signal {signal}")]
    Signalled { signal: i32, wrote: Option<String> },
    #[error("its program was ended: it used too much {}", .0.name())]
    Limit(Limit),
    #[error("its program ended")]
    Stopped,
    #[error("the program `{0}` was not found; install it, or check its name")]
    NoProgram(String),
    #[error("`{0}` is there but cannot be started; check the interpreter in its first line")]
    NoInterpreter(String),
    #[error("`{0}` may not be run; check that it is a program and has the permission to execute")]
    NotExecutable(String),
    #[error("it sent a message of more than {mb} MB")]
    LongMessage { mb: usize },
    #[error("it prints lines that are no messages")]
    BadLines,
    #[error("the connection was closed")]
    Closed,
    /// As a library or the system puts it.
    #[error("{0}")]
    Other(String),
}

impl From<SandboxError> for ServerEnd {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::NotFound(program) => Self::NoProgram(program),
            SandboxError::Interpreter(program) => Self::NoInterpreter(program),
            SandboxError::Denied(program) => Self::NotExecutable(program),
            other => Self::Other(other.to_string()),
        }
    }
}

/// The end of what a program wrote to its standard error.
#[derive(Debug, Default)]
pub(crate) struct ErrorTail(Vec<u8>);

impl ErrorTail {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes.get(bytes.len().saturating_sub(TAIL_BYTES)..).unwrap_or(bytes));
        let excess = self.0.len().saturating_sub(TAIL_BYTES);
        self.0.drain(..excess);
    }

    /// The last line that speaks of an error, else the last line: some programs print a stack or their version after the reason.
    pub(crate) fn reason(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0);
        let lines = || text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
        let line = lines().find(|line| line.to_ascii_lowercase().contains("error")).or_else(|| lines().next())?;
        Some(clean::text(line, LINE_BYTES_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_names_the_error_is_found() {
        for (wrote, line) in [
            ("", None),
            ("starting\nno config\n\n", Some("no config")),
            ("Error: no module `x`\n    at load\n\nNode.js v22.0.0\n", Some("Error: no module `x`")),
            ("Traceback:\nValueError: bad\u{1b}[2J\n", Some("ValueError: bad[2J")),
        ] {
            let mut tail = ErrorTail::default();
            wrote.as_bytes().chunks(3).for_each(|bytes| tail.add(bytes));
            assert_eq!(tail.reason().as_deref(), line);
        }
        let mut tail = ErrorTail::default();
        (0..100).for_each(|_| tail.add(&[b'x'; TAIL_BYTES]));
        assert_eq!(tail.0.len(), TAIL_BYTES);
    }
}
