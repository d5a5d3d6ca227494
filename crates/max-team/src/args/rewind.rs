//! `rewind`: its flags.

use clap::Args;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Files that you changed yourself after the agents did are not touched; they are listed, and the exit code is 8."
)]
pub(crate) struct Rewind {
    /// Session ID (a unique prefix or suffix is enough; default: the last session of this folder), then files or folders
    /// (default: all). If the first argument is not the ID of a session, it is taken as a
    /// file
    #[arg(value_name = "SESSION] [FILE")]
    pub(crate) words: Vec<String>,
    /// The point: `last-turn`, `turn:N`, the number of an event (`events` and `replay` show them), or a time such as 14:05 or
    /// 2026-05-01T14:05; default: just before your latest message that led to changed files
    #[arg(long, value_name = "POINT")]
    pub(crate) to: Option<String>,
    /// Only show the points
    #[arg(long, conflicts_with_all = ["to", "yes", "dry_run", "undo"])]
    pub(crate) list: bool,
    /// Undo the last rewind
    #[arg(long, conflicts_with = "to")]
    pub(crate) undo: bool,
    /// Only show what would be restored
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Restore without a question
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    /// With --list or --dry-run: as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
