//! `cache`: its flags.

use clap::Subcommand;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Cache {
    /// List cached answers by expert, newest first
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show cached answers of an expert: arguments, data, text
    Show {
        /// Name of the expert
        expert: String,
        /// Only answers whose `key` begins with this; `cache show EXPERT` prints the keys
        key: Option<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete cached answers of one expert, or of all experts
    Clear {
        /// Name of the expert; default: all experts
        expert: Option<String>,
    },
}
