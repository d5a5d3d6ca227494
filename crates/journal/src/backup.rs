//! Backs up the journal into one file, and restores it.
//!
//! A backup is made while other processes write, and needs no second file. It is verified before it is kept: a copy of
//! a damaged journal is no backup. Restoring verifies the backup first, and refuses while a process has the journal
//! open.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::JournalError;
use crate::sqlite::{self, Options, Sqlite};
use crate::verify::Report;
use crate::worker;
use crate::{Engine, Journal};

impl Journal {
    /// Copies the journal into a new file, while it is in use. The copy is checked; one that does not hold is not kept.
    pub fn backup(&self, to: &Path) -> Result<Report, JournalError> {
        let Engine::Sqlite(sqlite) = &self.engine else { return Err(JournalError::Absent { path: to.to_owned() }) };
        // If the copy is not kept, the report says what is wrong with it.
        sqlite.backup(to, |made| Self::look(made)?.verify())
    }

    /// Opens a journal in a file of any name, such as a backup, for reading.
    pub fn look(file: &Path) -> Result<Self, JournalError> {
        if fs::metadata(file).is_ok_and(|file| file.len() > 0) {
            return Ok(Self { engine: Engine::Sqlite(Arc::new(Sqlite::look(file)?)) });
        }
        Err(JournalError::Absent { path: file.to_owned() })
    }

    /// Replaces the journal in `dir` by the backup `from`. The old journal, if there is one, is kept in the file
    /// `kept`. Changes nothing if the backup is damaged (the report lists its faults) or if a process uses the
    /// journal.
    pub async fn restore(dir: &Path, from: &Path, kept: &Path) -> Result<Report, JournalError> {
        let log = sqlite::log_of(from);
        // A new journal may have all its entries in the write-ahead log still.
        let holds = |path: &Path| fs::metadata(path).is_ok_and(|file| file.len() > 0);
        if !from.exists() || !(holds(from) || holds(&log)) {
            return Err(JournalError::Absent { path: from.to_owned() });
        }
        if kept.exists() {
            return Err(JournalError::Exists { path: kept.to_owned() });
        }
        let path = dir.join(sqlite::FILE);
        if let Some(by) = worker::living(&dir.join("workers")).first() {
            let by = format!("`{}` (process {} on `{}`)", by.what, by.pid, by.host);
            return Err(JournalError::InUse { path, by });
        }
        // A copy is opened instead of the backup, because opening migrates an older version; the backup stays
        // unchanged.
        let beside = RestoreDir::make(dir)?;
        let file = beside.0.join(sqlite::FILE);
        take(from, &file)?;
        // If the backup is a raw copy of a killed program's files, its last entries are in the write-ahead log.
        if log.exists() {
            take(&log, &beside.0.join(sqlite::LOG))?;
        }
        let copy = Self::open(beside.0.clone(), Options::default())?;
        let found = copy.verify()?;
        copy.close().await?;
        drop(copy);
        if !found.is_sound() {
            return Ok(found);
        }
        match sqlite::restore(dir, &file, kept) {
            Err(JournalError::Busy { path }) => {
                let by = holders(&path);
                Err(JournalError::InUse { path, by })
            }
            restored => restored.map(|()| found),
        }
    }
}

/// Copies a file and makes the copy private to the user.
fn take(from: &Path, to: &Path) -> Result<(), JournalError> {
    let read = fs::File::open(from);
    read.map_err(|error| JournalError::Io { path: from.to_owned(), detail: error.to_string() })?;
    let copied = fs::copy(from, to).and_then(|_| fs::set_permissions(to, Permissions::from_mode(0o600)));
    copied.map_err(|error| sqlite::failed(to, &error))
}

/// A temporary folder for one restore, removed on drop.
struct RestoreDir(PathBuf);

impl RestoreDir {
    fn make(dir: &Path) -> Result<Self, JournalError> {
        let path = dir.join(format!("restoring-{}", std::process::id()));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| JournalError::Unwritable { path: path.clone(), detail: error.to_string() })?;
        Ok(Self(path))
    }
}

impl Drop for RestoreDir {
    fn drop(&mut self) {
        // A folder that cannot be removed does no harm.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The processes that have a file open, as text; found through `/proc`.
fn holders(path: &Path) -> String {
    let holds = |process: &Path| {
        let files = fs::read_dir(process.join("fd")).ok()?;
        let mut open = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        open.any(|file| file == path).then_some(())
    };
    let processes = fs::read_dir("/proc").into_iter().flatten();
    let others = processes.filter_map(|process| {
        let process = process.ok()?.path();
        let pid: u32 = process.file_name()?.to_str()?.parse().ok()?;
        (pid != std::process::id() && holds(&process).is_some()).then(|| format!("process {pid}"))
    });
    let others: Vec<String> = others.collect();
    if others.is_empty() { "another process".to_owned() } else { others.join(", ") }
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}
