//! `memory`: its flags.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

/// Whose memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Board {
    /// Yours, in every project
    User,
    /// This project's
    Project,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Memory {
    /// List what is remembered, here and everywhere
    List {
        /// Only what is under this key, for example user_profile
        key: Option<String>,
        /// Only this board
        #[arg(long, value_enum)]
        scope: Option<Board>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Find what has to do with some words, in English or Chinese
    Search {
        /// The words
        #[arg(required = true)]
        words: Vec<String>,
        /// At most this many
        #[arg(long, default_value_t = 10)]
        limit: usize,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one thing: its value, who wrote it down, when, and from which words
    Show {
        /// The key, for example user_profile.location
        key: String,
        /// Only this board
        #[arg(long, value_enum)]
        scope: Option<Board>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remember something on your word
    Set {
        /// The key, for example preferences.tea
        key: String,
        /// The value: words, or JSON
        value: String,
        /// On this board; left out: as the key's section says
        #[arg(long, value_enum)]
        scope: Option<Board>,
    },
    /// Forget what is under a key, and erase its text from the memory's log
    Forget {
        /// The key; a section forgets all of it
        key: String,
        /// Only this board
        #[arg(long, value_enum)]
        scope: Option<Board>,
    },
    /// Say what the last answer of a session was told from memory, and why
    Why {
        /// The session: its id, or its beginning or end; the last one without it
        session: Option<String>,
        /// All its turns
        #[arg(long)]
        all: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Write what is remembered: JSON to standard output, or SOUL.md, USER.md and MEMORY.md into a folder
    Export {
        /// The folder
        folder: Option<PathBuf>,
        /// Only this board (yours, unless said)
        #[arg(long, value_enum, default_value = "user")]
        scope: Board,
        /// Replace files that are there
        #[arg(long)]
        force: bool,
    },
    /// Take memories over from SOUL.md, USER.md, MEMORY.md or exported JSON, and show what was taken
    Import {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// On this board; left out: as each key's section says
        #[arg(long, value_enum)]
        scope: Option<Board>,
        /// Only show it
        #[arg(long)]
        dry_run: bool,
    },
}
