//! `memory`: its flags.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Board {
    /// Facts about you, for every project
    User,
    /// Facts about this project
    Project,
}

/// Whose folder a new file goes into.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct OwnFolder {
    /// Write it to your own folder, for all projects, instead of this project's (`--scope user` means the same)
    #[arg(long)]
    user: bool,
    #[arg(long, value_enum, hide = true, conflicts_with = "user")]
    scope: Option<Board>,
}

impl OwnFolder {
    pub(crate) fn is_users(self) -> bool {
        self.user || self.scope == Some(Board::User)
    }
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Memory {
    /// List remembered facts, of this project and of you
    List {
        /// Only facts under this key, for example user_profile
        key: Option<String>,
        /// Only facts about you (user) or about this project (project); default: both
        #[arg(long, value_enum)]
        scope: Option<Board>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Search facts by words, in English or Chinese
    Search {
        /// Words to search for
        #[arg(required = true)]
        words: Vec<String>,
        /// At most this many
        #[arg(long, default_value_t = 10)]
        limit: usize,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one fact: its value, author, time and source
    Show {
        /// The key, for example user_profile.location
        key: String,
        /// Only facts about you (user) or about this project (project); default: both
        #[arg(long, value_enum)]
        scope: Option<Board>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remember a fact
    Set {
        /// The key, for example preferences.tea; a wrong beginning lists the allowed ones
        key: String,
        /// The value: words, or JSON
        value: String,
        /// Store the fact for you (user) or for this project (project); default: project for keys that begin with
        /// `notes` or `dialog_context`, else user
        #[arg(long, value_enum)]
        scope: Option<Board>,
    },
    /// Forget a fact or all facts under a key, and erase the text from the memory's log
    Forget {
        /// The key of a fact (`preferences.tea`), or the beginning of keys (`preferences`)
        key: String,
        /// Only facts about you (user) or about this project (project); default: both
        #[arg(long, value_enum)]
        scope: Option<Board>,
    },
    /// Show which facts the model saw when it gave the last answer of a session, and why
    Why {
        /// Session ID (a unique prefix or suffix is enough); default: the last session of any folder
        session: Option<String>,
        /// Show all turns of the session
        #[arg(long)]
        all: bool,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Export the memory as JSON, or into a folder as SOUL.md (how Max speaks), USER.md and MEMORY.md
    Export {
        /// Folder to write to
        folder: Option<PathBuf>,
        /// Export facts about you (user) or about this project (project)
        #[arg(long, value_enum, default_value = "user")]
        scope: Board,
        /// Replace files that are there
        #[arg(long)]
        force: bool,
    },
    /// Import facts from SOUL.md, USER.md, MEMORY.md or exported JSON
    Import {
        /// Files to read
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Store the facts for you (user) or for this project (project); default: project for keys that begin with
        /// `notes` or `dialog_context`, else user
        #[arg(long, value_enum)]
        scope: Option<Board>,
        /// Only show what would be imported
        #[arg(long)]
        dry_run: bool,
    },
}
