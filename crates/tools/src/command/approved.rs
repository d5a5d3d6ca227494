//! Protected files that were made with the user's approval while commands ran.
//!
//! When a command ends, the sandbox moves new files with a protected name away. It cannot tell whether the command made the
//! file, or a file tool or a `git checkout` that the user approved in the meantime. Those two note their files here, for
//! every running command of this process, and the files are moved back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use max_team_core::limits::APPROVED_FILES_MAX;
use max_team_core::policy::protected;
use max_team_sandbox::Appeared;

/// The notes of all commands that run.
static RUNNING: Mutex<Vec<Weak<Mutex<Vec<PathBuf>>>>> = Mutex::new(Vec::new());

/// Files that were approved since a command began.
#[derive(Debug)]
pub(super) struct Approved(Arc<Mutex<Vec<PathBuf>>>);

impl Approved {
    /// Notes from now on.
    pub(super) fn watch() -> Self {
        let own = Arc::new(Mutex::default());
        let mut running = lock(&RUNNING);
        running.retain(|notes| notes.strong_count() > 0);
        running.push(Arc::downgrade(&own));
        Self(own)
    }

    /// Moves approved files back to their names; the remaining files were made by the command.
    pub(super) fn give_back(&self, appeared: Vec<Appeared>) -> Vec<Appeared> {
        let notes = std::mem::take(&mut *lock(&self.0));
        let is_left = |Appeared { path, moved }: &Appeared| {
            let Some(moved) = moved else { return true };
            for note in notes.iter().filter(|note| note.starts_with(path)) {
                let Ok(rest) = note.strip_prefix(path) else { continue };
                let from = if rest.as_os_str().is_empty() { moved.clone() } else { moved.join(rest) };
                let folder = note.parent().map_or(Ok(()), fs::create_dir_all);
                if note.symlink_metadata().is_err() && folder.is_ok() {
                    let _ = fs::rename(from, note);
                }
            }
            // A folder that held only approved files is removed.
            moved.symlink_metadata().is_ok() && !(moved.is_dir() && fs::remove_dir(moved).is_ok())
        };
        appeared.into_iter().filter(is_left).collect()
    }
}

/// Notes that something was made with a person's yes, if its name is protected.
pub(crate) fn note(root: &Path, path: &Path) {
    if protected(&path.to_string_lossy()).is_none() {
        return;
    }
    let path = root.join(path);
    for notes in lock(&RUNNING).iter().filter_map(Weak::upgrade) {
        let mut notes = lock(&notes);
        if notes.len() < APPROVED_FILES_MAX && !notes.contains(&path) {
            notes.push(path.clone());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_approved_is_given_back_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let approved = Approved::watch();
        note(&root, Path::new(".github/workflows/ci.yml"));
        note(&root, Path::new("AGENTS.md"));
        note(&root, Path::new("src/main.rs"));
        for name in [
            ".github/workflows.untrusted-1/ci.yml",
            ".github/workflows.untrusted-1/evil.yml",
            "AGENTS.md.untrusted-1",
            ".envrc.untrusted-1",
        ] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), name).unwrap();
        }
        let appeared =
            |name: &str| Appeared { path: root.join(name), moved: Some(root.join(format!("{name}.untrusted-1"))) };
        let left = approved.give_back([".github/workflows", "AGENTS.md", ".envrc"].map(appeared).to_vec());
        assert_eq!(left, [appeared(".github/workflows"), appeared(".envrc")]);
        let there = |name: &str| root.join(name).exists();
        assert!(
            there("AGENTS.md") && there(".github/workflows/ci.yml") && there(".github/workflows.untrusted-1/evil.yml")
        );
        assert!(!there(".envrc") && !there(".github/workflows/evil.yml"));
    }
}
