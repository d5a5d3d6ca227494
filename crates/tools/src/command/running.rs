//! The commands of this process that run, for readers of files that a command may have made.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use max_team_core::hash::Hash;
use max_team_core::limits::APPROVED_FILES_MAX;
use max_team_core::policy::protecting_row;

use super::approvals::{self, Approval, ApprovedFiles};
use super::planted::PlantedFiles;
use super::tracked::content;

/// All commands that run.
static RUNNING: Mutex<Vec<Weak<RunningCommand>>> = Mutex::new(Vec::new());

/// A command that runs.
#[derive(Debug)]
pub(super) struct RunningCommand {
    number: u64,
    planted: PlantedFiles,
}

impl RunningCommand {
    /// Counts the command as running until this is dropped.
    pub(super) fn begin(planted: PlantedFiles) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let own = Arc::new(Self { number: NEXT.fetch_add(1, Ordering::Relaxed), planted });
        let mut running = lock();
        running.retain(|running| running.strong_count() > 0);
        if running.is_empty() {
            // No watch reads the old approvals any more.
            approvals::clear();
        }
        running.push(Arc::downgrade(&own));
        if own.planted.opens_to_others() {
            let (folders, patterns) = (own.planted.folders.clone(), own.planted.open.clone());
            approvals::add(&Approval::Rows { number: own.number, folders, patterns });
        }
        own
    }

    /// The file with the approvals, for the supervisor.
    pub(super) fn approvals() -> Option<Arc<File>> {
        approvals::file()
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if self.planted.opens_to_others() {
            approvals::add(&Approval::Ended(self.number));
        }
    }
}

/// Notes that a file with this content is made with the user's approval, if its name is protected. It is called before the
/// file gets its name, so that no watch moves it in between.
pub(crate) fn note(root: &Path, path: &Path, hash: Hash) {
    if protecting_row(&path.to_string_lossy()).is_some() && lock().iter().any(|running| running.strong_count() > 0) {
        approvals::add(&Approval::File(root.join(path), hash));
    }
}

/// Notes that this process makes a file for the user, relative to a project's folder.
pub fn approve_file(root: &Path, path: &Path, bytes: &[u8]) {
    if let Ok(root) = root.canonicalize() {
        note(&root, path, Hash::of(bytes));
    }
}

/// Notes new protected files, and all files of new protected folders, of a command that was approved with their names in its
/// text.
pub(super) fn note_all(mut paths: Vec<PathBuf>) {
    let mut looked_at = 0;
    while let Some(path) = paths.pop().filter(|_| looked_at < APPROVED_FILES_MAX) {
        looked_at += 1;
        if path.is_dir() && !path.is_symlink() {
            paths.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if let Some(bytes) = content(&path) {
            approvals::add(&Approval::File(path, Hash::of(bytes)));
        }
    }
}

/// Whether a protected file appeared while a command runs that may have made it, without the user's approval of its
/// content. Such a file is not to be obeyed.
pub fn is_planted(path: &Path) -> bool {
    let running: Vec<Arc<RunningCommand>> = lock().iter().filter_map(Weak::upgrade).collect();
    if running.is_empty() {
        return false;
    }
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let (Some(folder), Some(name)) = (folder, path.file_name()) else { return false };
    let path = folder.join(name);
    let approved = approvals::file().as_deref().map(ApprovedFiles::read).unwrap_or_default();
    running.iter().any(|running| running.planted.is_forbidden(&path, &approved))
}

fn lock() -> MutexGuard<'static, Vec<Weak<RunningCommand>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_of_git_may_change_is_open_to_no_other_command() {
        let folder = PathBuf::from("/p");
        for (makes_repositories, is_shared) in [(false, true), (true, false)] {
            let (folders, open) = (vec![folder.clone()], vec![".envrc".to_owned()]);
            let _own =
                RunningCommand::begin(PlantedFiles { folders, open, makes_repositories, ..PlantedFiles::default() });
            let approved = ApprovedFiles::read(&approvals::file().unwrap());
            assert_eq!(approved.opens(&folder.join(".envrc"), ".envrc"), is_shared);
        }
    }
}
