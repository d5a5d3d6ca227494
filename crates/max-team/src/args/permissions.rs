//! `permissions`: its flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use max_team_core::policy::Mode;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Permissions {
    /// Explain whether an action would be allowed, asked or denied, by which rule, and how to change that. Exit 0 if
    /// it runs without a question, else 5
    Why(ExplainVerdict),
    /// Find rules without effect, rules that another rule overrides, and rules that allow more than they seem to. Exit 1 if
    /// there are any, or if a file of rules cannot be read
    Lint {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// List all rules with their files
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// List protected files: a change always asks you, or is refused
    Protected {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Use the `allow` rules of this project's settings; shows them and asks first. Its `deny` and `ask` rules always apply
    Trust {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ExplainVerdict {
    /// A command line or a web address; with --tool, a path, host or member
    #[arg(value_name = "WHAT", allow_hyphen_values = true)]
    pub(crate) what: String,
    /// Judge for this member of the team, under its constraints
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Judge this tool instead of a command: read_file, write_file, web_fetch, dispatch_task …
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Judge in this mode instead of the configured one
    #[arg(long, value_name = "MODE", value_parser = super::mode)]
    pub(crate) permission_mode: Option<Mode>,
    /// A file that defines the team
    #[arg(long, value_name = "FILE")]
    pub(crate) agents: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
