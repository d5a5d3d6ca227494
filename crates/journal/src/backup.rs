//! A copy of the journal somewhere else, and back again.
//!
//! A backup is one file that needs nothing beside it. It is made while others work, and looked at before it counts: a
//! copy of a damaged journal is no backup. Restoring looks at the copy first, and only replaces a journal that nobody
//! has open.

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
        // Of one that is not kept the report says what is wrong.
        sqlite.backup(to, |made| Self::look(made)?.verify())
    }

    /// A journal in a file of any name, such as a backup, for those who only look.
    pub fn look(file: &Path) -> Result<Self, JournalError> {
        if fs::metadata(file).is_ok_and(|file| file.len() > 0) {
            return Ok(Self { engine: Engine::Sqlite(Arc::new(Sqlite::look(file)?)) });
        }
        Err(JournalError::Absent { path: file.to_owned() })
    }

    /// Replaces the journal in a folder by a backup. What was there is kept in the file of that name, if there was
    /// anything. Nothing is changed if the backup does not hold, as the report then says, or if somebody uses the journal.
    pub async fn restore(dir: &Path, from: &Path, kept: &Path) -> Result<Report, JournalError> {
        let log = sqlite::log_of(from);
        // A young one may still be in its write-ahead log alone.
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
        // A copy beside it is opened as any journal is: an older one becomes one of today, and the backup stays as it is.
        let beside = Beside::make(dir)?;
        let file = beside.0.join(sqlite::FILE);
        take(from, &file)?;
        // What was copied from beside a killed program has its last entries in there.
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

/// Copies a file. Wherever it lay, it is the user's alone from now on.
fn take(from: &Path, to: &Path) -> Result<(), JournalError> {
    let read = fs::File::open(from);
    read.map_err(|error| JournalError::Io { path: from.to_owned(), detail: error.to_string() })?;
    let copied = fs::copy(from, to).and_then(|_| fs::set_permissions(to, Permissions::from_mode(0o600)));
    copied.map_err(|error| sqlite::failed(to, &error))
}

/// A folder for the time of a restoration.
struct Beside(PathBuf);

impl Beside {
    fn make(dir: &Path) -> Result<Self, JournalError> {
        let path = dir.join(format!("restoring-{}", std::process::id()));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| JournalError::Unwritable { path: path.clone(), detail: error.to_string() })?;
        Ok(Self(path))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // What is left behind is in nobody's way.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Who has a file open, in words, where the system tells.
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
