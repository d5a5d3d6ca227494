//! `agents`: its flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Format, TeamFlags};

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Agents {
    /// List everybody: the lead, the members and the experts, and where each is written
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// A file that defines the team, or definitions as JSON
        #[arg(long, value_name = "FILE")]
        agents: Option<PathBuf>,
    },
    /// Say everything about one: where it came from, what it shadows, its model, tools and limits, its words
    Show {
        /// For example explore
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// A file that defines the team, or definitions as JSON
        #[arg(long, value_name = "FILE")]
        agents: Option<PathBuf>,
    },
    /// Write a definition to begin with, in .max-team/agents of this project
    New {
        /// What it is called
        name: String,
        /// In your own folder instead, for all projects
        #[arg(long)]
        user: bool,
        /// What it is for, and when to call it
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Give one agent something to do, without the team; it only looks unless --permission-mode says otherwise
    Test(Box<Try>),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Try {
    /// Whom
    pub(crate) name: String,
    /// What
    pub(crate) prompt: String,
    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) output_format: Format,
    #[command(flatten)]
    pub(crate) team: TeamFlags,
}
