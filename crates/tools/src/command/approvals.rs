//! Approvals of protected files that are given while commands run, for the watches of those commands.
//!
//! A watch works in the command's supervisor, which may outlive this process. So approvals are lines of a file in memory that
//! every supervisor shares: the path and the content of a file that a tool made with the user's approval, and the names that
//! a command may change which the user approved with them in sight.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use max_team_core::hash::Hash;
use max_team_core::limits::APPROVED_BYTES_MAX;
use max_team_core::policy::row_at;
use serde::{Deserialize, Serialize};

use super::tracked::content;

/// Keeps lines apart.
static WRITES: Mutex<()> = Mutex::new(());

/// The file with the approvals; `None` if the system gives no such file: then nothing is approved.
static APPROVALS: LazyLock<Option<Arc<File>>> = LazyLock::new(|| shared_file().ok().map(Arc::new));

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Approval {
    /// A file with this content.
    File(PathBuf, Hash),
    /// All files with these patterns in these folders, while the command with this number runs.
    Rows { number: u64, folders: Vec<PathBuf>, patterns: Vec<String> },
    /// The command with this number has ended.
    Ended(u64),
}

/// What is approved at one moment.
#[derive(Debug, Default)]
pub(super) struct ApprovedFiles {
    files: Vec<(PathBuf, Hash)>,
    /// Patterns with the folders in which they are open.
    rows: Vec<(Vec<PathBuf>, Vec<String>)>,
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
                Ok(Approval::Rows { number, folders, patterns }) => rows.push((number, (folders, patterns))),
                Ok(Approval::Ended(number)) => rows.retain(|(running, _)| *running != number),
                Err(_) => {}
            }
        }
        Self { files, rows: rows.into_iter().map(|(_, open)| open).collect() }
    }

    /// Whether a running command that was approved may make the file at this path, which has this name in its folder.
    pub(super) fn opens(&self, path: &Path, name: &str) -> bool {
        let Some(row) = row_at(name) else { return false };
        self.rows.iter().any(|(folders, patterns)| {
            folders.iter().any(|folder| path.starts_with(folder)) && patterns.iter().any(|open| open == row.pattern)
        })
    }

    /// Whether the file at this path was approved with its present content.
    pub(super) fn holds(&self, path: &Path) -> bool {
        let mut known = self.files.iter().filter(|(file, _)| file == path).peekable();
        known.peek().is_some() && content(path).map(Hash::of).is_some_and(|hash| known.any(|(_, known)| *known == hash))
    }
}

/// The file with the approvals.
pub(super) fn file() -> Option<Arc<File>> {
    APPROVALS.clone()
}

/// Removes all approvals.
pub(super) fn clear() {
    let _ = APPROVALS.as_ref().map(|file| file.set_len(0));
}

pub(super) fn add(approval: &Approval) {
    let (Some(file), Ok(mut line)) = (APPROVALS.as_ref(), serde_json::to_vec(approval)) else { return };
    line.push(b'\n');
    let _write = WRITES.lock().unwrap_or_else(PoisonError::into_inner);
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
    std::fs::remove_file(path)?;
    Ok(file)
}
