//! What is recorded about a worktree, beside it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{FileState, WorktreeError, failed};

/// The file of the record. A folder that has it is a whole worktree.
pub(super) const FILE: &str = "copy.json";

/// What is known about a worktree.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) id: String,
    pub(super) project: PathBuf,
    pub(super) by: String,
    pub(super) made_at_ms: i64,
    /// The commit that holds the original tree.
    pub(super) base: String,
    /// Folders of objects that it borrows.
    pub(super) objects: Vec<PathBuf>,
    /// What of the project is not in it, and why.
    #[serde(default)]
    pub(super) left: Vec<String>,
    /// Files that were decided about.
    #[serde(default)]
    pub(super) settled: BTreeMap<String, FileDecision>,
    /// How many files were undecided at the last decision.
    #[serde(default)]
    pub(super) open: Option<usize>,
    /// How many files there were then that git ignores and that were not named.
    #[serde(default)]
    pub(super) ignored: usize,
}

/// What was decided about a file. It holds for what the file was then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDecision {
    /// Whether it went into the project.
    pub accepted: bool,
    /// Not a decision: the file was put back in the worktree before its agent worked there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
    /// How it was in the worktree.
    pub after: FileState,
}

impl FileDecision {
    /// It went into the project.
    pub(super) fn taken(after: FileState) -> Self {
        Self { accepted: true, back: false, after }
    }
}

impl Manifest {
    pub(super) fn read(home: &Path) -> Result<Self, WorktreeError> {
        let id = || home.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        read(&home.join(FILE))?.ok_or_else(|| WorktreeError::NotFound(id()))
    }

    pub(super) fn write(&self, home: &Path) -> Result<(), WorktreeError> {
        write(&home.join(FILE), self)
    }
}

/// Reads a record; `None` if there is none.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, WorktreeError> {
    let bytes = match fs::read(path) {
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|err| failed(path, &err))?,
    };
    let broken = |err: serde_json::Error| WorktreeError::Broken(path.display().to_string(), err.to_string());
    serde_json::from_slice(&bytes).map(Some).map_err(broken)
}

/// Writes a record so that it is there whole or not at all.
pub(super) fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), WorktreeError> {
    let trouble = |err: std::io::Error| failed(path, &err);
    let bytes = serde_json::to_vec(value).map_err(|err| trouble(err.into()))?;
    let temp = path.with_extension("tmp");
    let mut file = File::create(&temp).map_err(trouble)?;
    file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(trouble)?;
    fs::rename(&temp, path).map_err(trouble)?;
    sync_parent(path)
}

/// Removes a record.
pub(super) fn remove(path: &Path) -> Result<(), WorktreeError> {
    match fs::remove_file(path) {
        Err(err) if err.kind() != std::io::ErrorKind::NotFound => Err(failed(path, &err)),
        _ => sync_parent(path),
    }
}

fn sync_parent(path: &Path) -> Result<(), WorktreeError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    match synced {
        // File systems that cannot sync a folder say so.
        Err(err) if matches!(err.raw_os_error(), Some(22 | 95)) => Ok(()),
        other => other.map_err(|err| failed(folder, &err)),
    }
}
