//! The folder of a fork: the project itself, or a worktree with the files as they were at that point of the run.

use std::path::{Path, PathBuf};

use max_team_core::agent::Constraints;
use max_team_core::policy::Visibility;
use max_team_runtime::maintenance::Storage;
use max_team_runtime::replay::{Fork, Point, Site, Tape};
use max_team_runtime::{RuntimeError, new_id, now_ms, query};
use max_team_tools::worktree::{Worktree, WorktreeError, WorktreeOptions, Worktrees};
use tokio_util::sync::CancellationToken;

use crate::exit::{CliError, Exit};
use crate::permissions;
use crate::setup::{self, AppEnv};

/// The worktree of a fork.
#[derive(Debug, Clone)]
pub struct ForkWorktree {
    pub id: String,
    pub root: PathBuf,
    /// What became of its files; `None` if there was nothing to put back.
    pub restored: Option<RestoreOutcome>,
}

/// What became of files that were to be as they were.
#[derive(Debug, Clone)]
pub enum RestoreOutcome {
    /// So many are; these are not, and why.
    Done(usize, Vec<(String, String)>),
    /// The journal here does not know how they were.
    Unknown,
}

impl ForkWorktree {
    /// Makes a worktree of the project, with the files as they were behind an entry of the run. `storage` is opened only if files
    /// may have changed since. `here` is how the caller is told to continue in the project itself. Blocking.
    pub fn make(
        place: &AppEnv,
        tape: &Tape,
        behind: u64,
        project: &Path,
        storage: impl FnOnce() -> Result<Storage, CliError>,
        here: &str,
    ) -> Result<Self, CliError> {
        let mut copy = copy(place, project, tape, here)?;
        let (id, root) = (copy.id().to_owned(), copy.root());
        let restored = if tape.is_last(behind) {
            None
        } else {
            Some(restore(place, &storage()?, tape, behind, project, &mut copy, here)?)
        };
        Ok(Self { id, root, restored })
    }

    /// Removes it: no session works in it. Blocking.
    pub fn remove(&self, place: &AppEnv) -> Result<(), CliError> {
        let removed = Worktrees::within(&place.home).find(&self.id).and_then(Worktree::remove);
        removed.map_err(|error| CliError::new(Exit::Failed, error.to_string()))
    }

    /// Paths that are not as they were.
    fn left(&self) -> Vec<String> {
        match &self.restored {
            Some(RestoreOutcome::Done(_, left)) => left.iter().map(|(path, _)| path.clone()).collect(),
            _ => Vec::new(),
        }
    }
}

/// The beginning of a fork that works in a worktree, or in `root`.
pub fn begin(
    tape: &Tape,
    at: Point,
    edits: bool,
    root: &Path,
    worktree: Option<&ForkWorktree>,
) -> Result<Fork, RuntimeError> {
    let left = worktree.map(ForkWorktree::left).unwrap_or_default();
    let site = match worktree.map(|worktree| &worktree.restored) {
        None => Site::Here,
        Some(Some(RestoreOutcome::Done(..))) => Site::Back(&left),
        Some(_) => Site::Copy,
    };
    tape.fork(at, edits, root, site)
}

/// The project of which a folder is a worktree.
pub fn project_of(home: &Path, folder: &Path) -> Option<PathBuf> {
    Worktrees::within(home).project_of(folder)
}

/// A worktree of the project to go on in, with its permission files even if git ignores them.
fn copy(place: &AppEnv, root: &Path, tape: &Tape, here: &str) -> Result<Worktree, CliError> {
    let rules = permissions::load(place, root, &permissions::RuleFlags::default())?.permissions;
    let sight = Visibility::from_policy(&Constraints::default(), &rules);
    let named = permissions::FILES.map(str::to_owned);
    let (id, by) = (format!("fork_{}", new_id().simple()), format!("fork of {}", tape.session));
    let order = WorktreeOptions { id: &id, project: root, sight: &sight, named: &named, by: &by, at_ms: now_ms() };
    let made = Worktrees::within(&place.home).make(&order, &CancellationToken::new());
    made.map_err(|error| no_worktree(&error, here))
}

fn no_worktree(error: &WorktreeError, here: &str) -> CliError {
    CliError::said(Exit::Failed, |lang| lang.no_fork_copy(error, here))
}

/// Puts the files of a worktree as they were behind an entry, as far as the journal knows how that was.
fn restore(
    place: &AppEnv,
    storage: &Storage,
    tape: &Tape,
    behind: u64,
    project: &Path,
    copy: &mut Worktree,
    here: &str,
) -> Result<RestoreOutcome, CliError> {
    if storage.reader().ask(query::Session { session: tape.session }).is_err() {
        return Ok(RestoreOutcome::Unknown);
    }
    let rewind = storage.rewind(&place.home, tape.session);
    let (plan, outcome) = rewind.restore(behind, project, &copy.root()).map_err(setup::failed)?;
    // Restored files count as the worktree's starting point, so that they are not merged with the fork's own changes.
    let done: Vec<String> = outcome.done.iter().map(|put| put.change.path.clone()).collect();
    copy.put_back(&done).map_err(|error| no_worktree(&error, here))?;
    let lang = place.speaks();
    let skipped = plan.skipped.iter().map(|skip| (skip.path.clone(), lang.rewind_skip(&skip.why)));
    let failed = outcome.failed.iter().map(|failed| (failed.path.clone(), failed.why.clone()));
    let unseen = plan.left.iter().map(|left| (lang.rewind_left_what(left), lang.rewind_left_why(left.why)));
    Ok(RestoreOutcome::Done(outcome.done.len(), skipped.chain(failed).chain(unseen).collect()))
}
