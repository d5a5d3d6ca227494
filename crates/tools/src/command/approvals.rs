//! Approvals of protected files that are given while commands run, for the watches of those commands.
//!
//! A watch works in the command's supervisor, which may outlive this process. So approvals are lines of a file in memory that
//! every supervisor shares: the path and the content of a file that a tool made with the user's approval, and the names that
//! a command may change which the user approved with them in sight.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use max_team_core::hash::Hash;
use max_team_core::limits::{APPROVED_BYTES_MAX, APPROVED_FILES_MAX};
use max_team_core::policy::{protecting_row, row_at};
use serde::{Deserialize, Serialize};

use super::planted::{PlantedFiles, content};

/// All commands that run.
static RUNNING: Mutex<Vec<Weak<RunningCommand>>> = Mutex::new(Vec::new());

/// The file with the approvals; `None` if the system gives no such file: then nothing is approved.
static APPROVALS: LazyLock<Option<Arc<File>>> = LazyLock::new(|| shared_file().ok().map(Arc::new));

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Approval {
    /// A file with this content.
    File(PathBuf, Hash),
    /// All files with these patterns, while the command with this number runs.
    Rows(u64, Vec<String>),
    /// The command with this number has ended.
    Ended(u64),
}

/// A command that runs, for readers of files that it may have made.
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
        if let Some(file) = APPROVALS.as_ref().filter(|_| running.is_empty()) {
            // No watch reads the old approvals any more.
            let _ = file.set_len(0);
        }
        running.push(Arc::downgrade(&own));
        drop(running);
        if !own.planted.open.is_empty() {
            add(&Approval::Rows(own.number, own.planted.open.clone()));
        }
        own
    }

    /// The file for the supervisor.
    pub(super) fn approvals() -> Option<Arc<File>> {
        APPROVALS.clone()
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if !self.planted.open.is_empty() {
            add(&Approval::Ended(self.number));
        }
    }
}

/// Notes that a file with this content is made with the user's approval, if its name is protected. It is called before the
/// file gets its name, so that no watch moves it in between.
pub(crate) fn note(root: &Path, path: &Path, hash: Hash) {
    if protecting_row(&path.to_string_lossy()).is_some() && lock().iter().any(|running| running.strong_count() > 0) {
        add(&Approval::File(root.join(path), hash));
    }
}

/// Notes files, and all files of folders, that a command made which was approved with them in sight.
pub(super) fn note_all(mut paths: Vec<PathBuf>) {
    let mut looked_at = 0;
    while let Some(path) = paths.pop().filter(|_| looked_at < APPROVED_FILES_MAX) {
        looked_at += 1;
        if path.is_dir() && !path.is_symlink() {
            paths.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if let Some(bytes) = content(&path) {
            add(&Approval::File(path, Hash::of(bytes)));
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
    let approved = APPROVALS.as_deref().map(ApprovedFiles::read).unwrap_or_default();
    running.iter().any(|running| running.planted.is_forbidden(&path, &approved))
}

/// What is approved at one moment.
#[derive(Debug, Default)]
pub(super) struct ApprovedFiles {
    files: Vec<(PathBuf, Hash)>,
    patterns: Vec<String>,
}

impl ApprovedFiles {
    pub(super) fn read(file: &File) -> Self {
        let length = file.metadata().map_or(0, |meta| meta.len()).min(APPROVED_BYTES_MAX);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        if file.read_exact_at(&mut bytes, 0).is_err() {
            return Self::default();
        }
        let (mut files, mut rows) = (Vec::new(), Vec::new());
        for line in bytes.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Approval::File(path, hash)) => files.push((path, hash)),
                Ok(Approval::Rows(number, patterns)) => rows.push((number, patterns)),
                Ok(Approval::Ended(number)) => rows.retain(|(running, _)| *running != number),
                Err(_) => {}
            }
        }
        Self { files, patterns: rows.into_iter().flat_map(|(_, patterns)| patterns).collect() }
    }

    /// Whether a running command that was approved may make files of this name.
    pub(super) fn opens(&self, path: &str) -> bool {
        row_at(path).is_some_and(|row| self.patterns.iter().any(|pattern| pattern == row.pattern))
    }

    /// Whether the file at this path was approved with its present content.
    pub(super) fn holds(&self, path: &Path) -> bool {
        let mut known = self.files.iter().filter(|(file, _)| file == path).peekable();
        known.peek().is_some() && content(path).map(Hash::of).is_some_and(|hash| known.any(|(_, known)| *known == hash))
    }
}

fn add(approval: &Approval) {
    let (Some(file), Ok(mut line)) = (APPROVALS.as_ref(), serde_json::to_vec(approval)) else { return };
    line.push(b'\n');
    // The lock keeps lines apart.
    let _running = lock();
    let at = file.metadata().map_or(0, |meta| meta.len());
    if at + line.len() as u64 <= APPROVED_BYTES_MAX {
        // An approval that is not noted costs a file that is moved away, and the user hears of that.
        let _ = file.write_all_at(&line, at);
    }
}

#[cfg(target_os = "linux")]
fn shared_file() -> std::io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("approvals", MemfdFlags::CLOEXEC)?.into())
}

#[cfg(not(target_os = "linux"))]
fn shared_file() -> std::io::Result<File> {
    let path = std::env::temp_dir().join(format!("max-team-approvals-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}

fn lock() -> MutexGuard<'static, Vec<Weak<RunningCommand>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
