//! One command, run without a shell: an argv in a folder, bounded in time and memory.
//!
//! The command leads a process group of its own and all of the group ends with it, whether it ends by itself, by its
//! time or because nobody wants it any more. It reads nothing, and does not see variables that look like secrets.
//! Nothing here judges whether a command may run, and nothing here is a wall around it.

mod job;
mod kept;
mod split;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub(crate) use job::{Job, Out};
pub(crate) use kept::Kept;
pub use split::{LINE_BYTES_MAX, SplitError, join, quote, split};

/// Bytes of output that are kept of one command.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// A command that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// What it exited with, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// What it wrote to either output, in the order it was written; of more than [`OUTPUT_BYTES_MAX`], the beginning
    /// and the end, with the number of bytes in between.
    pub output: String,
    /// How long it ran, in milliseconds.
    pub ms: u64,
    /// Why it is over.
    pub ended: Ended,
}

impl Ran {
    /// Whether it ended by itself and says that all went well.
    pub fn ok(&self) -> bool {
        self.ended == Ended::Exited && self.code == Some(0)
    }
}

/// Why a command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It ended by itself.
    Exited,
    /// It was ended because its time was up.
    TimedOut,
    /// It was ended because nobody wanted it any more.
    Cancelled,
}

/// A command that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// No program.
    #[error("there is no command to run; name a program and its arguments")]
    Empty,
    /// The program is nowhere.
    #[error("the program `{0}` was not found; install it, or check its name")]
    NotFound(String),
    /// The program is a script, and what it names in its first line is nowhere.
    #[error("`{0}` is there but cannot be started; check the interpreter in its first line")]
    Interpreter(String),
    /// The program may not be run.
    #[error("`{0}` may not be run; check that it is a program and has the permission to execute")]
    Denied(String),
    /// The folder is not there.
    #[error("there is no folder `{}` to run a command in", .0.display())]
    Folder(PathBuf),
    /// The system refuses.
    #[error("cannot run `{program}`: {source}")]
    Io {
        /// What was to be run.
        program: String,
        /// What the system says.
        source: io::Error,
    },
}

/// Runs a command to its end. Blocking; `cancel` ends it early.
pub fn run(argv: &[String], dir: &Path, timeout: Duration, cancel: &CancellationToken) -> Result<Ran, CommandError> {
    let mut kept = Kept::new(OUTPUT_BYTES_MAX);
    let over = Job::new(argv, dir, timeout).run(cancel, &mut |_, bytes| {
        kept.push(bytes);
        true
    })?;
    Ok(Ran { code: over.code, signal: over.signal, output: kept.text(), ms: over.ms, ended: over.ended })
}

/// Whether a variable of this name is probably a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let within = ["API_KEY", "APIKEY", "PASSWORD", "PASSWD", "SECRET", "CREDENTIAL", "PRIVATE_KEY", "ACCESS_KEY"];
    let whole = |word: &str| name == word || name.ends_with(&format!("_{word}"));
    within.iter().any(|word| name.contains(word)) || ["TOKEN", "PAT", "AUTH", "PASS"].into_iter().any(whole)
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SESSION_TOKEN",
            "CLIENT_SECRET",
            "PGPASSWORD",
            "MYSQL_PASSWORD_FILE",
            "db_password",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GH_PAT",
            "NPM_CONFIG__AUTH",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "CARGO_TARGET_DIR", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "KEYMAP", "PWD"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
