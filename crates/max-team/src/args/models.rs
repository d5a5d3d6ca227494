//! The flags of `models`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Clone, Args)]
pub(crate) struct Models {
    /// Only the models of this provider
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// As JSON; prices in dollars per million tokens
    #[arg(long)]
    pub(crate) json: bool,
    /// A settings file to use instead of the project's own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
