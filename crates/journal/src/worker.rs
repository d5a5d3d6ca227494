//! Ownership: a worker is a process, and it is alive as long as it holds the lock on its own file.
//!
//! The kernel drops the lock when the process dies, however it dies, so an idle team renews nothing and a dead one
//! blocks no other process. A file lock belongs to an open file, not to a process: one process can have two workers.
//! On the memory engine a set in the process replaces the files.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use max_team_core::id::WorkerId;
use serde::{Deserialize, Serialize};

use crate::error::JournalError;
use crate::memory::Store;
use crate::transaction::encode;

/// What others are told about a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerInfo {
    /// Its identity, new with every start.
    pub id: WorkerId,
    pub pid: u32,
    pub host: String,
    /// When it started.
    pub started_at_ms: i64,
    /// What it is, as text: `chat in /path`.
    pub what: String,
}

/// A row of ownership. The epoch outlives its owners and only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Owner {
    pub(crate) worker: Option<WorkerId>,
    pub(crate) epoch: u64,
}

/// A live worker: as long as this value exists and does not rest, what it claimed is its own.
#[derive(Debug)]
pub struct Worker {
    info: WorkerInfo,
    hold: WorkerLock,
}

#[derive(Debug)]
enum WorkerLock {
    File { path: PathBuf, lock: Mutex<Option<File>> },
    Memory(Arc<Store>),
}

impl Worker {
    pub fn id(&self) -> WorkerId {
        self.info.id
    }

    /// What others are told about it.
    pub fn info(&self) -> &WorkerInfo {
        &self.info
    }

    /// Starts a worker that other processes can see.
    pub(crate) fn start_in(workers: &Path, info: WorkerInfo) -> Result<Self, JournalError> {
        sweep(workers);
        let path = lock_path(workers, info.id);
        let lock = Mutex::new(Some(begin(&path, &info)?));
        Ok(Self { info, hold: WorkerLock::File { path, lock } })
    }

    /// Starts a worker inside this process, for the memory engine.
    pub(crate) fn start_within(store: Arc<Store>, info: WorkerInfo) -> Self {
        store.tables().begin(info.clone());
        Self { info, hold: WorkerLock::Memory(store) }
    }

    /// Gives up all ownership, as if the process had died: other workers can claim its resources. This writes nothing
    /// to the journal, so it works where a release cannot be stored.
    pub fn rest(&self) {
        match &self.hold {
            WorkerLock::File { path, lock } => {
                // A missing file means a dead worker, too, so neither the order nor a failure matters.
                drop(fs::remove_file(path));
                drop(lock.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
            WorkerLock::Memory(store) => store.tables().end(self.info.id),
        }
    }

    /// Ends the rest. Resources that no other worker has claimed meanwhile are still its own.
    pub fn revive(&self) -> Result<(), JournalError> {
        match &self.hold {
            WorkerLock::File { path, lock } => {
                let mut lock = lock.lock().unwrap_or_else(PoisonError::into_inner);
                if lock.is_none() {
                    // A file that could not be removed then is not locked, so it counts as a dead worker's.
                    path.parent().into_iter().for_each(sweep);
                    *lock = Some(begin(path, &self.info)?);
                }
            }
            WorkerLock::Memory(store) => store.tables().begin(self.info.clone()),
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.rest();
    }
}

/// Makes and locks a worker's file.
fn begin(path: &Path, info: &WorkerInfo) -> Result<File, JournalError> {
    let text = encode("a worker", info)?;
    // Locked under another name first, because an unlocked file counts as a dead worker's.
    let making = path.with_extension("new");
    let make = || {
        if path.exists() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let mut lock = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&making)?;
        let written = lock.lock().and_then(|()| lock.write_all(&text)).and_then(|()| fs::rename(&making, path));
        written.inspect_err(|_| drop(fs::remove_file(&making)))?;
        Ok(lock)
    };
    make().map_err(|error: io::Error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => JournalError::DiskFull { path: path.to_owned() },
        _ => JournalError::Unwritable { path: path.to_owned(), detail: error.to_string() },
    })
}

/// Whether a worker is alive; removes the file of a dead one.
pub(crate) fn alive(workers: &Path, id: WorkerId) -> Result<Option<WorkerInfo>, JournalError> {
    let path = lock_path(workers, id);
    let failed = |error: io::Error| JournalError::Io { path: path.clone(), detail: error.to_string() };
    let mut lock = match File::open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    match lock.try_lock() {
        Ok(()) => {
            bury(&path, &lock);
            Ok(None)
        }
        Err(TryLockError::WouldBlock) => {
            let mut text = Vec::new();
            lock.read_to_end(&mut text).map_err(failed)?;
            let unnamed = WorkerInfo { id, pid: 0, host: String::new(), started_at_ms: 0, what: id.to_string() };
            Ok(Some(serde_json::from_slice(&text).unwrap_or(unnamed)))
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Removes a dead worker's file, unless the worker has revived meanwhile and made a new file of the same name.
fn bury(path: &Path, dead: &File) {
    let place = |file: fs::Metadata| (file.dev(), file.ino());
    let is_same = fs::metadata(path).is_ok_and(|there| dead.metadata().is_ok_and(|dead| place(there) == place(dead)));
    if is_same {
        drop(fs::remove_file(path));
    }
}

/// Removes the files of dead workers; files that cannot be examined stay.
fn sweep(workers: &Path) {
    living(workers);
}

/// The workers that are alive, in no order.
pub(crate) fn living(workers: &Path) -> Vec<WorkerInfo> {
    let files = fs::read_dir(workers).into_iter().flatten();
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    names.filter_map(|name| alive(workers, name.strip_suffix(".lock")?.parse().ok()?).ok()?).collect()
}

fn lock_path(workers: &Path, id: WorkerId) -> PathBuf {
    workers.join(format!("{id}.lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(folder: &Path) -> Worker {
        let id = format!("wrk_{:032x}", 1).parse().unwrap();
        let info = WorkerInfo { id, pid: 1, host: "here".into(), started_at_ms: 1, what: "a test".into() };
        Worker::start_in(folder, info).unwrap()
    }

    /// Somebody has looked at the file of the life before, and removes it late: the new one stays.
    #[test]
    fn a_revived_worker_is_not_taken_for_its_former_self() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(folder.path());
        let path = lock_path(folder.path(), worker.id());
        let before = File::open(&path).unwrap();
        worker.rest();
        before.try_lock().unwrap();
        worker.revive().unwrap();
        bury(&path, &before);
        assert_eq!(alive(folder.path(), worker.id()).unwrap().as_ref(), Some(worker.info()));
    }

    /// What could not be removed when it went to rest is in nobody's way.
    #[test]
    fn a_revived_worker_removes_its_former_files() {
        let folder = tempfile::tempdir().unwrap();
        let worker = worker(folder.path());
        worker.rest();
        fs::write(lock_path(folder.path(), worker.id()), "left").unwrap();
        worker.revive().unwrap();
        assert_eq!(alive(folder.path(), worker.id()).unwrap().as_ref(), Some(worker.info()));
    }
}
