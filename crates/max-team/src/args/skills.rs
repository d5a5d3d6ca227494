//! `skills`: its flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Format, OwnFolder, TeamFlags};

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Skills {
    /// List skills: source, state and purpose
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one skill with its text
    Show {
        /// For example code_review
        name: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a skill: a folder with a SKILL.md to fill in
    New {
        /// Its name: lowercase letters, digits and `-`
        name: String,
        /// What it is for and when to use it
        #[arg(long, value_name = "WORDS")]
        description: Option<String>,
        #[command(flatten)]
        folder: OwnFolder,
    },
    /// Find skills that are broken, suspicious, or hidden by another of the same name. Exit 1 if there are any
    Check {
        /// Only this one
        name: Option<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Trust a skill of this project in its present state
    Trust {
        /// The skill; default: all of them
        name: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Turn a skill off: agents do not see it and cannot call it
    Disable {
        /// Name of the skill
        name: String,
    },
    /// Turn a skill on again
    Enable {
        /// Name of the skill
        name: String,
    },
    /// Run a skill that has a contract (an input and an output schema)
    Run(Box<RunSkill>),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RunSkill {
    /// For example code_review
    pub(crate) name: String,
    /// The input: JSON, or @FILE
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) input: String,
    /// How to print the result. text: the skill's JSON object. json: that object with cost and session
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) output_format: Format,
    /// At the end, write a recording to this file; `max-team replay FILE` plays it on any machine
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) team: TeamFlags,
}

impl RunSkill {
    /// The settings file that was named.
    pub(crate) fn config(&self) -> Option<&PathBuf> {
        self.team.config.as_ref()
    }
}
