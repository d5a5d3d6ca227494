//! `tasks`: its flags.

use clap::{Args, Subcommand};
use max_team_core::task_list::ListTaskStatus;

use super::ValueFault;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Tasks {
    /// List the tasks that the agents of a session share, and those of its running plans
    List {
        #[command(flatten)]
        of: TaskListScope,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one task in full
    Show {
        /// Its number in the shared list, or `plan:TASK` for a task of a running plan
        id: String,
        #[command(flatten)]
        of: TaskListScope,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a task
    Add {
        /// The task in one line
        subject: String,
        /// Everything that its owner needs to know
        #[arg(short = 'd', long, value_name = "TEXT", default_value = "")]
        description: String,
        #[command(flatten)]
        of: TaskListScope,
    },
    /// Change a task: assign it, take it from its owner, complete it, delete it
    Update(Update),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Update {
    /// Number of the task
    pub(crate) id: String,
    /// The new state: pending, in_progress (it becomes yours), completed, deleted
    #[arg(long, value_parser = status)]
    pub(crate) status: Option<ListTaskStatus>,
    /// The new owner; an empty name: none
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// The task in one line
    #[arg(long, value_name = "TEXT")]
    pub(crate) subject: Option<String>,
    /// Everything that its owner needs to know
    #[arg(short = 'd', long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// A task that must be completed first
    #[arg(long, value_name = "ID")]
    pub(crate) blocked_by: Vec<String>,
    /// A task that waits for this one
    #[arg(long, value_name = "ID")]
    pub(crate) blocks: Vec<String>,
    #[command(flatten)]
    pub(crate) of: TaskListScope,
}

/// Which session's list is meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct TaskListScope {
    /// Session ID (a unique prefix or suffix is enough); default: the last session of this folder
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

fn status(text: &str) -> Result<ListTaskStatus, ValueFault> {
    let names = ListTaskStatus::ALL.map(ListTaskStatus::name);
    let found = ListTaskStatus::ALL.into_iter().find(|status| status.name() == text);
    found.ok_or_else(|| ValueFault::one_of(text, &names))
}
