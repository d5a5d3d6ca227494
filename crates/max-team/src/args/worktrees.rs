//! `worktrees`: its flags.

use clap::Subcommand;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Worktrees {
    /// List copies, the oldest first, with how many files wait for a decision
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what differs in a copy, what would become of it, and where it meets changes of yours
    Show {
        /// The copy: its id, or its beginning or end; the only one without it
        id: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Take files of a copy into the project; no commit is made. Exit 8 if some could not be taken
    Accept {
        /// The copy: its id, or its beginning or end
        id: String,
        /// Only these files, as `show` names them
        files: Vec<String>,
    },
    /// Say no to files of a copy; without files, drop the copy
    Reject {
        /// The copy: its id, or its beginning or end
        id: String,
        /// Only these files, as `show` names them
        files: Vec<String>,
    },
    /// Remove the copies that hold nothing to decide about, and what killed processes left
    Clean,
}
