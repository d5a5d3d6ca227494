//! `cache`: its flags.

use clap::Subcommand;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Cache {
    /// List the answers that are kept, by expert, the newest first
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what is kept of an expert's answers: arguments, what was found, what was said
    Show {
        /// The expert
        expert: String,
        /// Only answers under this key, or its beginning
        key: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Keep no answers any more, of one expert or of all
    Clear {
        /// The expert
        expert: Option<String>,
    },
}
