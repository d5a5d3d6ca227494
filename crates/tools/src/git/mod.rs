//! What git knows about a folder: what has changed, and what has changed since a moment.
//!
//! Everything is asked through `repo`, which runs nothing that a repository brings along. Looking never changes the
//! repository, its index included; only `commit` does. What a member does not see is left out and counted; that goes
//! for files, not for what people wrote into commit messages. No network, no remote, no push.

mod commit;
mod locks;
pub(crate) mod patch;
pub(crate) mod process;
pub(crate) mod repo;
mod sandboxed;
mod tools;
pub(crate) mod worktree_diff;

use std::path::Path;

use max_team_core::policy::Visibility;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub(crate) use self::repo::Repo;
use self::worktree_diff::DiffBuilder;
use crate::command::CommandError;
use crate::text::many;
use crate::tool::ToolError;

pub use commit::GitCommit;
pub(crate) use commit::git_commit;
pub use locks::{blocking_locks, clear_left_locks};
pub use patch::DIFF_BYTES_MAX;
pub use tools::{GitDiff, GitLog, GitStatus};
pub(crate) use tools::{git_diff, git_log, git_status};

/// Files of one diff that are counted and named.
pub const FILES_MAX: usize = 2_000;

/// How a working tree differs from something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// A unified diff, within [`DIFF_BYTES_MAX`]; it says what it leaves out, what is out of sight first.
    pub text: String,
    /// The files that differ, by path; of more than [`FILES_MAX`], the first.
    pub files: Vec<FileStat>,
    /// Whether anything was left out for want of room.
    pub cut: bool,
    /// Files that differ and are out of sight: in no list and in no text.
    #[serde(default)]
    pub hidden: usize,
}

/// How much of one file differs. Of a file that is not text, no lines are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    /// Its path, relative to the folder.
    pub path: String,
    /// Lines that are new.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
}

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It could not be run.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The folder cannot be opened.
    #[error("cannot open the folder `{0}`: {1}")]
    Folder(String, String),
    /// A path that is not valid.
    #[error("{0}")]
    Path(String),
    /// A name that stands for no commit.
    #[error("`{0}` is no commit, branch or tag of this repository; `git_log` lists the latest commits")]
    NoCommit(String),
    /// Git reports a failure.
    #[error("git cannot {doing}: {words}")]
    Failed {
        /// What it was asked to do.
        doing: String,
        /// What it says.
        words: String,
    },
    /// It took too long.
    #[error("git did not answer within {0} seconds; name fewer paths")]
    TimedOut(u64),
    /// It used too much of something.
    #[error("git was stopped for taking too much ({0}); name fewer paths")]
    Limit(&'static str),
    /// The call was cancelled.
    #[error("stopped before it was done")]
    Stopped,
}

impl From<GitError> for ToolError {
    fn from(err: GitError) -> Self {
        match err {
            GitError::Command(error) => error.into(),
            err => Self::correctable(err.to_string()),
        }
    }
}

/// How the working tree differs from the last commit, files that are new and not ignored included. `paths` are paths
/// or globs relative to `root`; none means everything beneath it. `None`: there is no git repository here. Blocking.
pub fn diff(root: &Path, paths: &[String], cancel: &CancellationToken) -> Result<Option<Diff>, GitError> {
    diff_seen(root, paths, &Visibility::default(), cancel)
}

/// Like `diff`, within sight: hidden files are left out, and counted. Blocking.
pub fn diff_seen(
    root: &Path,
    paths: &[String],
    sight: &Visibility,
    cancel: &CancellationToken,
) -> Result<Option<Diff>, GitError> {
    let Some(repo) = Repo::open(root, sight, cancel)? else { return Ok(None) };
    diff_to_base(&repo, paths).map(Some)
}

/// How the working tree differs from the base of a repository.
fn diff_to_base(repo: &Repo<'_>, paths: &[String]) -> Result<Diff, GitError> {
    let specs = repo.specs(paths)?;
    let mut changes = DiffBuilder::default();
    changes.tracked(repo, &specs)?;
    for path in worktree_diff::untracked(repo, &specs)?.paths(&mut changes.patch.cut) {
        changes.untracked(repo, &path);
    }
    Ok(changes.finish())
}

/// One line on hidden files; nothing if there are none.
pub(crate) fn left_out(hidden: usize) -> String {
    if hidden == 0 { String::new() } else { format!("[{} out of sight left out]\n", many(hidden, "file")) }
}
