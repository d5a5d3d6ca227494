//! `tasks`: its flags.

use clap::{Args, Subcommand};
use max_team_core::tasks::Status;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Tasks {
    /// List the tasks that a session's agents share, and those of its plans at work
    List {
        #[command(flatten)]
        of: Of,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show all of one task
    Show {
        /// Its number, or `plan:NAME`
        id: String,
        #[command(flatten)]
        of: Of,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a task
    #[command(after_help = "Example:\n  max-team tasks add \"Write the tests\" -d \"For the parser, with cargo test\"")]
    Add {
        /// What is to be done, in a line
        subject: String,
        /// All that whoever does it needs to know
        #[arg(short = 'd', long, value_name = "TEXT", default_value = "")]
        description: String,
        #[command(flatten)]
        of: Of,
    },
    /// Change a task: give it to somebody, take it back, say that it is done, delete it
    #[command(after_help = "Examples:\n  max-team tasks update 3 --owner leo\n  \
        max-team tasks update 3 --status pending      take it back from whoever holds it\n  \
        max-team tasks update 3 --blocked-by 1 --blocked-by 2")]
    Update(Update),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Update {
    /// Its number
    pub(crate) id: String,
    /// How it is to stand: pending, in_progress (you do it), completed, deleted
    #[arg(long, value_parser = status)]
    pub(crate) status: Option<Status>,
    /// Whose it is to be; an empty name: anybody's
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// What is to be done, in a line
    #[arg(long, value_name = "TEXT")]
    pub(crate) subject: Option<String>,
    /// All that whoever does it needs to know
    #[arg(short = 'd', long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// A task that must be completed first
    #[arg(long, value_name = "ID")]
    pub(crate) blocked_by: Vec<String>,
    /// A task that waits for this one
    #[arg(long, value_name = "ID")]
    pub(crate) blocks: Vec<String>,
    #[command(flatten)]
    pub(crate) of: Of,
}

/// Which session's list is meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct Of {
    /// The session: its id, or its beginning or end; the one last used here without it
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

fn status(text: &str) -> Result<Status, String> {
    let names = Status::ALL.map(Status::name);
    let found = Status::ALL.into_iter().find(|status| status.name() == text);
    found.ok_or_else(|| format!("there are {}", names.join(", ")))
}
