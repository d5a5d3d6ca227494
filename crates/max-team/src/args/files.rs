//! `files`: its flags.

use clap::{Args, Subcommand};

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Files {
    /// List the folders of all sessions and of this project's agents; with a session or agent, its files
    List {
        #[command(flatten)]
        whose: FolderOwner,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a file
    Show {
        /// Its path there, as `list` names it; `@files/` or `@data/` may stand before it
        path: String,
        #[command(flatten)]
        whose: FolderOwner,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the path of a folder, also if it does not exist yet
    Path {
        #[command(flatten)]
        whose: FolderOwner,
    },
    /// Remove all files of one session or one agent; --session or --agent is required
    Clear {
        #[command(flatten)]
        whose: FolderOwner,
    },
}

/// Whose folder is meant.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub(crate) struct FolderOwner {
    /// Files of this session (@files): its ID (a unique prefix or suffix is enough). Without --session and --agent, `show` and
    /// `path` use the last session here
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Files of this agent in this project (@data)
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
}
