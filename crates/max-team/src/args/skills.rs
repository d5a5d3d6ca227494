//! `skills`: its flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Format, TeamFlags};

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Skills {
    /// List them: where each comes from, whether it can be used, and what it is for
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Say everything about one, with its text
    Show {
        /// For example code_review
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Begin one: a folder with a SKILL.md to fill in
    New {
        /// Its name: small letters, digits and `-`
        name: String,
        /// What it is for and when to use it
        #[arg(long, value_name = "WORDS")]
        description: Option<String>,
        /// In the user's own folder, for every project
        #[arg(long)]
        user: bool,
    },
    /// Find what is broken, odd or hidden by another one. Exit 1 if there is anything
    Check {
        /// Only this one
        name: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Use a skill that this project brought along, as it is now
    Trust {
        /// Which; without it, all of them
        name: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Turn a skill off: agents are not told of it, and nobody can call it
    Disable {
        /// Skill name
        name: String,
    },
    /// Turn a skill on again
    Enable {
        /// Skill name
        name: String,
    },
    /// Carry out a skill with a contract: an input of a shape in, an output of a shape out
    Run(Box<RunSkill>),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RunSkill {
    /// For example code_review
    pub(crate) name: String,
    /// What goes in: JSON, or @FILE
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) input: String,
    /// How to print what comes out: text is the JSON object alone
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) output_format: Format,
    /// Afterwards, write the run into this file: `max-team replay FILE` plays it anywhere
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
