//! `files`: its flags.

use clap::{Args, Subcommand};

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Files {
    /// List the folders of all sessions and of this project's agents; with --session or --agent, the files in that folder
    List {
        #[command(flatten)]
        whose: FolderOwner,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a file
    Show {
        /// Path of the file in the folder of the session or agent, as `files list` prints it; may begin with `@files/` or `@data/`
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
    /// Files of this session (@files): its ID (a unique prefix or suffix is enough); default in `show` and `path`: the last
    /// session of the current folder
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Files of this agent in this project (@data)
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
}
