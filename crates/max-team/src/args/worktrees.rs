//! `worktrees`: its flags.

use clap::Subcommand;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Worktrees {
    /// List worktrees, oldest first, with the number of files that you have neither accepted nor rejected
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the changes of a worktree, how they would be merged, and conflicts with your own changes
    Show {
        /// Worktree ID (a unique prefix or suffix is enough); may be left out if there is only one
        id: Option<String>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Merge files of a worktree into the project, without a commit. Exit 8 if some could not be merged
    Accept {
        /// Worktree ID (a unique prefix or suffix is enough)
        id: String,
        /// Only these files, as `show` names them
        files: Vec<String>,
    },
    /// Drop a worktree's changes to these files; without files, remove the worktree
    Reject {
        /// Worktree ID (a unique prefix or suffix is enough)
        id: String,
        /// Only these files, as `show` names them
        files: Vec<String>,
    },
    /// Remove worktrees whose files are all accepted or rejected, and leftovers of processes that were killed
    Clean,
}
