//! Copies the whole database from one file into another, for backup and restore.
//!
//! SQLite copies page by page. A backup is one state of the journal, also while other processes write; a restore is
//! one transaction, so that a crash leaves the old journal.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, Progress};

use super::Sqlite;
use super::db::{Db, FILE, LOG, problem};
use crate::error::JournalError;
use crate::limits::COPY_PAGES;
use crate::verify::Report;

impl Sqlite {
    /// Copies the journal into a new file. The file gets its name only once it is complete and found sound; otherwise
    /// no file is left.
    pub(crate) fn backup(
        &self,
        to: &Path,
        check: impl FnOnce(&Path) -> Result<Report, JournalError>,
    ) -> Result<Report, JournalError> {
        if to.exists() {
            return Err(JournalError::Exists { path: to.to_owned() });
        }
        let mut making = to.to_owned().into_os_string();
        making.push(format!(".{}.part", std::process::id()));
        let making = PathBuf::from(making);
        let made = self.read(|db| copy_out(db, &making)).and_then(|()| check(&making));
        let kept = made.and_then(|found| {
            if found.is_sound() {
                keep(&making, to)?;
            }
            Ok(found)
        });
        // Removes an unfinished copy, or the second name of a finished one.
        drop(fs::remove_file(&making));
        kept
    }

    /// Rewrites the file without its unused pages, unless a worker is alive.
    pub(crate) fn compact(&self) -> Result<u64, JournalError> {
        let size = || fs::metadata(&self.path).map_or(0, |file| file.len());
        if !self.living().is_empty() {
            return Ok(0);
        }
        let before = size();
        let db = Db::connect(&self.path)?;
        // The temporary copy that `VACUUM` makes may not fit into memory.
        db.run(|conn| {
            conn.execute_batch("PRAGMA temp_store = FILE; PRAGMA secure_delete = ON; VACUUM")?;
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        })?;
        Ok(before.saturating_sub(size()))
    }
}

/// Replaces the journal in the folder, after copying the old one to `kept`. Fails with `Busy` if another process has
/// it open.
pub(crate) fn restore(dir: &Path, from: &Path, kept: &Path) -> Result<(), JournalError> {
    let path = dir.join(FILE);
    // A deleted journal may have left its write-ahead log, which must not be applied to the new one.
    if !path.exists() {
        return exchange(dir, from, kept);
    }
    let mut old = match alone(&path) {
        Ok(old) => old,
        // A file that is too damaged to be opened is in use by no process.
        Err(JournalError::Corrupt { .. }) => return exchange(dir, from, kept),
        Err(error) => return Err(error),
    };
    match copy_out(&old, kept) {
        Err(JournalError::Corrupt { .. }) => {
            drop(fs::remove_file(kept));
            drop(old);
            return exchange(dir, from, kept);
        }
        copied => copied?,
    }
    let new = Db::open_reader(from)?;
    copy(&new.conn, &mut old.conn).map_err(|error| problem(&path, &error))
}

/// Opens a journal exclusively: fails with `Busy` if another connection has it open, and keeps others out until
/// dropped.
fn alone(path: &Path) -> Result<Db, JournalError> {
    let mut db = Db::connect(path)?;
    db.conn.busy_handler(None::<fn(i32) -> bool>).map_err(|error| problem(path, &error))?;
    // SQLite leaves WAL mode only for the last open connection.
    db.run(|conn| {
        conn.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
        conn.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
        conn.execute_batch("BEGIN EXCLUSIVE; COMMIT")
    })?;
    Ok(db)
}

/// Like `restore`, but by renaming files, for a journal that is unreadable or missing. An old journal has both names
/// until the new one replaces it, so that there is one at every moment.
fn exchange(dir: &Path, from: &Path, kept: &Path) -> Result<(), JournalError> {
    let path = dir.join(FILE);
    let is_done = |done: io::Result<()>| match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path, &error)),
        _ => Ok(()),
    };
    is_done(fs::hard_link(&path, kept).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists => Err(error),
        // A file system without hard links.
        _ => fs::copy(&path, kept).and_then(|_| File::open(kept)?.sync_all()),
    }))?;
    is_done(fs::rename(dir.join(LOG), log_of(kept)))?;
    is_done(fs::remove_file(dir.join(format!("{FILE}-shm"))))?;
    // The old write-ahead log must be gone from the disk before the new journal appears, or it would be applied to it.
    sync_folder(dir).map_err(|error| failed(&path, &error))?;
    let placed = File::open(from).and_then(|file| file.sync_all()).and_then(|()| fs::rename(from, &path));
    placed.and_then(|()| sync_folder(dir)).map_err(|error| failed(&path, &error))
}

/// The write-ahead log of a database in a file of any name.
pub(crate) fn log_of(file: &Path) -> PathBuf {
    beside(file, "-wal")
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.to_owned().into_os_string();
    name.push(end);
    name.into()
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all())
}

/// Copies into a new file, which then needs no other file beside it.
fn copy_out(db: &Db, to: &Path) -> Result<(), JournalError> {
    OpenOptions::new().create_new(true).write(true).mode(0o600).open(to).map_err(|error| failed(to, &error))?;
    let make = || {
        let mut made = Connection::open(to)?;
        copy(&db.conn, &mut made)?;
        made.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
        made.close().map_err(|(_, error)| error)
    };
    let made = make().map_err(|error| problem(to, &error));
    let synced =
        made.and_then(|()| File::open(to).and_then(|file| file.sync_all()).map_err(|error| failed(to, &error)));
    if synced.is_err() {
        // Removes the incomplete copy and SQLite's rollback journal beside it.
        drop(fs::remove_file(to));
        drop(fs::remove_file(beside(to, "-journal")));
    }
    synced
}

fn copy(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    // One read transaction for the whole copy: otherwise a write by another connection would start the copy again.
    from.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema")?;
    let copied = Backup::new(from, to)
        .and_then(|backup| backup.run_to_completion(COPY_PAGES, Duration::ZERO, None::<fn(Progress)>));
    from.execute_batch("COMMIT")?;
    copied
}

/// Gives a finished file its name; fails with `Exists` if another file has taken the name meanwhile.
fn keep(made: &Path, to: &Path) -> Result<(), JournalError> {
    match fs::hard_link(made, to) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(JournalError::Exists { path: to.to_owned() });
        }
        // A file system without hard links: `backup` has checked that the name was free when it began.
        Err(_) => fs::rename(made, to).map_err(|error| failed(to, &error))?,
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_folder(folder).map_err(|error| failed(to, &error))
}

pub(crate) fn failed(path: &Path, error: &io::Error) -> JournalError {
    let (path, detail) = (path.to_owned(), error.to_string());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => JournalError::DiskFull { path },
        io::ErrorKind::AlreadyExists => JournalError::Exists { path },
        _ => JournalError::Unwritable { path, detail },
    }
}
