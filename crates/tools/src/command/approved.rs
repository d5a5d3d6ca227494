//! Protected files that appear while commands run: those that the user approved stay, all others are moved away.
//!
//! A command can make a file with a protected name where none was, and nothing tells its file from one that a file tool or a
//! `git checkout` made with the user's approval in the meantime. Those two note the path and the hash of the content here,
//! for every running command of this process: another content under the same name is not approved. While a command
//! runs, new names directly beneath its folders are moved away within [`PROTECTED_CHECK_MS`], and until then [`is_planted`]
//! keeps every reader in this process from obeying them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use max_team_core::hash::Hash;
use max_team_core::limits::{APPROVED_FILES_MAX, PROTECTED_CHECK_MS, SET_ASIDE_MAX};
use max_team_core::policy::{ProtectedRow, protecting_row};
use max_team_sandbox::{AppearedPath, set_aside};

use super::CommandSandbox;

/// All commands that run.
static RUNNING: Mutex<Vec<Weak<RunningCommand>>> = Mutex::new(Vec::new());

/// A command that runs, as far as protected files are concerned.
#[derive(Debug, Default)]
struct RunningCommand {
    /// The folders that it writes.
    folders: Vec<PathBuf>,
    /// Protected files and folders that were there when it began: the sandbox keeps them as they are.
    before: Vec<PathBuf>,
    /// The rows that it may change.
    open: Vec<&'static ProtectedRow>,
    /// Files that were approved since it began, with the hash of their content.
    approved: Mutex<Vec<(PathBuf, Hash)>>,
}

impl RunningCommand {
    fn is_approved(&self, path: &Path) -> bool {
        let hashes: Vec<Hash> =
            lock(&self.approved).iter().filter(|(file, _)| file == path).map(|(_, hash)| *hash).collect();
        !hashes.is_empty() && hash_of(path).is_some_and(|hash| hashes.contains(&hash))
    }

    /// Whether an approved file lies beneath a folder.
    fn holds_approved(&self, folder: &Path) -> bool {
        lock(&self.approved).iter().any(|(file, _)| file != folder && file.starts_with(folder))
    }

    fn was_there(&self, path: &Path) -> bool {
        self.before.iter().any(|known| path.starts_with(known))
    }
}

/// The record of one running command, from its start to its end.
#[derive(Debug)]
pub(super) struct ApprovedFiles(Arc<RunningCommand>);

impl ApprovedFiles {
    /// Notes approvals from now on. `before` is what was there of protected files.
    pub(super) fn watch(isolation: Option<&CommandSandbox>, before: Vec<PathBuf>) -> Self {
        let own = Arc::new(match isolation {
            Some(isolation) => RunningCommand {
                folders: isolation.written(),
                before,
                open: isolation.open.clone(),
                approved: Mutex::default(),
            },
            None => RunningCommand::default(),
        });
        let mut running = lock(&RUNNING);
        running.retain(|running| running.strong_count() > 0);
        running.push(Arc::downgrade(&own));
        Self(own)
    }

    /// Moves new protected files away until `is_over`, and returns them. Nested ones wait for the command's end: to look for
    /// them takes a walk through the whole project.
    pub(super) fn guard(&self, isolation: &CommandSandbox, is_over: &AtomicBool) -> Vec<AppearedPath> {
        let mut moved = Vec::new();
        loop {
            thread::park_timeout(Duration::from_millis(PROTECTED_CHECK_MS));
            if is_over.load(Ordering::Acquire) || moved.len() >= SET_ASIDE_MAX {
                return moved;
            }
            for path in isolation.protected_now(&self.0.folders).into_iter().filter(|path| self.is_alien(path)) {
                if let Some(place) = set_aside(&path) {
                    moved.push(AppearedPath { path, moved: Some(place) });
                }
            }
        }
    }

    /// Whether something is new and nothing in it is approved. An empty folder holds nothing that a program could obey.
    fn is_alien(&self, path: &Path) -> bool {
        let is_empty = || path.is_dir() && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        !self.0.was_there(path) && !self.0.is_approved(path) && !self.0.holds_approved(path) && !is_empty()
    }

    /// Moves approved files back to their names; the remaining files were made by the command.
    pub(super) fn give_back(&self, appeared: Vec<AppearedPath>) -> Vec<AppearedPath> {
        let notes = std::mem::take(&mut *lock(&self.0.approved));
        let is_left = |AppearedPath { path, moved }: &AppearedPath| {
            let Some(moved) = moved else { return true };
            for (note, hash) in notes.iter().filter(|(note, _)| note.starts_with(path)) {
                let Ok(rest) = note.strip_prefix(path) else { continue };
                let from = if rest.as_os_str().is_empty() { moved.clone() } else { moved.join(rest) };
                if hash_of(&from) != Some(*hash) || note.symlink_metadata().is_ok() {
                    continue;
                }
                if note.parent().map_or(Ok(()), fs::create_dir_all).is_ok() {
                    let _ = fs::rename(from, note);
                }
            }
            // A folder that held only approved files is removed.
            moved.symlink_metadata().is_ok() && !(moved.is_dir() && fs::remove_dir(moved).is_ok())
        };
        appeared.into_iter().filter(is_left).collect()
    }
}

/// Notes that a file with this content is made with the user's approval, if its name is protected. It is called before the
/// file gets its name, so that no command ends in between: the hash keeps any other content from being approved.
pub(crate) fn note(root: &Path, path: &Path, hash: Hash) {
    if protecting_row(&path.to_string_lossy()).is_none() {
        return;
    }
    let noted = (root.join(path), hash);
    for running in lock(&RUNNING).iter().filter_map(Weak::upgrade) {
        let mut notes = lock(&running.approved);
        if notes.len() < APPROVED_FILES_MAX && !notes.contains(&noted) {
            notes.push(noted.clone());
        }
    }
}

/// Notes a file, or all files of a folder, that a command made which was approved with them in sight.
pub(super) fn note_all(path: &Path) {
    let mut found = vec![path.to_owned()];
    let mut looked_at = 0;
    while let Some(path) = found.pop().filter(|_| looked_at < APPROVED_FILES_MAX) {
        looked_at += 1;
        if path.is_dir() && !path.is_symlink() {
            found.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if let Some(hash) = hash_of(&path) {
            note(Path::new("/"), &path, hash);
        }
    }
}

/// Whether a protected file appeared while a command runs that may have made it, without the user's approval of its
/// content. Such a file is not to be obeyed.
pub fn is_planted(path: &Path) -> bool {
    let running: Vec<Arc<RunningCommand>> = lock(&RUNNING).iter().filter_map(Weak::upgrade).collect();
    if running.is_empty() {
        return false;
    }
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let (Some(folder), Some(name)) = (folder, path.file_name()) else { return false };
    let path = folder.join(name);
    running.iter().any(|running| {
        let within = running.folders.iter().find_map(|folder| path.strip_prefix(folder).ok());
        let row = within.and_then(|within| protecting_row(&within.to_string_lossy()));
        row.is_some_and(|row| !running.open.contains(&row)) && !running.was_there(&path) && !running.is_approved(&path)
    })
}

/// The hash of a file's content; none for what is no plain file.
fn hash_of(path: &Path) -> Option<Hash> {
    path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    fs::read(path).ok().map(Hash::of)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_approved_files_are_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let approved = ApprovedFiles::watch(None, Vec::new());
        for name in [".github/workflows/ci.yml", "AGENTS.md", "CLAUDE.md", "src/main.rs"] {
            note(&root, Path::new(name), Hash::of("approved"));
        }
        for (name, text) in [
            (".github/workflows.untrusted-1/ci.yml", "approved"),
            (".github/workflows.untrusted-1/evil.yml", "approved"),
            ("AGENTS.md.untrusted-1", "approved"),
            ("CLAUDE.md.untrusted-1", "another content"),
            (".envrc.untrusted-1", "approved"),
        ] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), text).unwrap();
        }
        let appeared =
            |name: &str| AppearedPath { path: root.join(name), moved: Some(root.join(format!("{name}.untrusted-1"))) };
        let left = approved.give_back([".github/workflows", "AGENTS.md", "CLAUDE.md", ".envrc"].map(appeared).to_vec());
        assert_eq!(left, [appeared(".github/workflows"), appeared("CLAUDE.md"), appeared(".envrc")]);
        let there = |name: &str| root.join(name).exists();
        assert!(
            there("AGENTS.md") && there(".github/workflows/ci.yml") && there(".github/workflows.untrusted-1/evil.yml")
        );
        assert!(!there(".envrc") && !there(".github/workflows/evil.yml") && !there("CLAUDE.md"));
    }

    #[test]
    fn new_files_during_a_command_are_planted_unless_their_content_was_approved() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("packages/a")).unwrap();
        for name in ["AGENTS.md", "packages/a/CLAUDE.md"] {
            fs::write(root.join(name), "ours").unwrap();
        }
        let isolation = CommandSandbox::around(&root);
        let running = ApprovedFiles::watch(Some(&isolation), isolation.kept().unwrap().kept);
        fs::write(root.join("CLAUDE.md"), "evil").unwrap();
        fs::write(root.join("packages/a/AGENTS.md"), "evil").unwrap();
        fs::write(root.join("notes.md"), "ordinary").unwrap();
        let planted = |name: &str| is_planted(&root.join(name));
        assert!(planted("CLAUDE.md") && planted("packages/a/AGENTS.md"));
        assert!(!planted("AGENTS.md") && !planted("packages/a/CLAUDE.md") && !planted("notes.md"));
        note(&root, Path::new("CLAUDE.md"), Hash::of("good"));
        assert!(planted("CLAUDE.md"), "another content was approved");
        fs::write(root.join("CLAUDE.md"), "good").unwrap();
        assert!(!planted("CLAUDE.md"));
        drop(running);
        assert!(!planted("packages/a/AGENTS.md"), "the end of the command has moved it away");
    }
}
