//! `agents`: its flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Format, OwnFolder, TeamFlags};

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Agents {
    /// List the lead, the members and the experts (agents that others call, such as `explore`), with their files
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// A file that defines the team, or definitions as JSON
        #[arg(long, value_name = "FILE")]
        agents: Option<PathBuf>,
    },
    /// Show one agent: file, model, tools, limits, prompt, and the agents of the same name that it replaces
    Show {
        /// For example explore
        name: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// A file that defines the team, or definitions as JSON
        #[arg(long, value_name = "FILE")]
        agents: Option<PathBuf>,
    },
    /// Create a definition to edit, in .max-team/agents of this project
    New {
        /// Name of the new agent
        name: String,
        #[command(flatten)]
        folder: OwnFolder,
        /// What the agent is for, and when to call it
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Give one agent a task, without the team; read-only unless --permission-mode is set
    Test(Box<TryAgent>),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct TryAgent {
    /// Agent to test
    pub(crate) name: String,
    /// Task to give it
    pub(crate) prompt: String,
    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) output_format: Format,
    #[command(flatten)]
    pub(crate) team: TeamFlags,
}
