//! `files`: its flags.

use clap::{Args, Subcommand};

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Files {
    /// List what is kept: by every session, and by the agents of this project; of one of them, file by file
    List {
        #[command(flatten)]
        whose: Whose,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a file that is kept
    Show {
        /// Its path there, as `list` names it; `@files/` or `@data/` may stand before it
        path: String,
        #[command(flatten)]
        whose: Whose,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print where a folder is, whether anything is kept there yet or not
    Path {
        #[command(flatten)]
        whose: Whose,
    },
    /// Remove everything that a session or an agent keeps; one of them has to be named
    Clear {
        #[command(flatten)]
        whose: Whose,
    },
}

/// Whose folder is meant.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub(crate) struct Whose {
    /// What a session keeps (@files): its id, or its beginning or end; the one last used here if nothing is said
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// What an agent keeps in this project (@data), by its name
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
}
