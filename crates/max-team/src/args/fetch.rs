//! `fetch`: its flags.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Args)]
pub(crate) struct Fetch {
    /// The address, beginning with https:// or http://
    pub(crate) url: String,
    /// Run the page's scripts in Chromium. auto: if there is nearly no text without them
    #[arg(long, value_enum, default_value_t = Render::Auto, hide_possible_values = false)]
    pub(crate) render: Render,
    /// Print only the elements that this CSS selector finds
    #[arg(long, value_name = "CSS")]
    pub(crate) selector: Option<String>,
    /// Print only page N of a long text, as agents get it; default: the whole text
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) page: Option<u32>,
    /// Print HTML and JSON as they are
    #[arg(long, conflicts_with = "selector")]
    pub(crate) raw: bool,
    /// Allow this host of your machine or private network; with a port, only that port
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) allow_host: Vec<String>,
    /// A settings file to use instead of the project's own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// When scripts are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Render {
    Auto,
    Never,
    Always,
}
