//! The whole database from one file into another: backups, and back.
//!
//! SQLite copies page by page. A backup reads one state of the journal, however long it takes and whoever writes
//! meanwhile; a restored journal comes in as one transaction, so that a crash leaves the one before.

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
    /// Copies everything into a file that must not be there yet. Nobody sees the file before it is whole, and what was found
    /// in it is sound; if it is not, there is no file.
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
        // What could not be finished is nobody's backup; after a success the name is one too many.
        drop(fs::remove_file(&making));
        kept
    }

    /// Writes the file anew without what is empty in it, unless somebody is at work.
    pub(crate) fn compact(&self) -> Result<u64, JournalError> {
        let size = || fs::metadata(&self.path).map_or(0, |file| file.len());
        if !self.living().is_empty() {
            return Ok(0);
        }
        let before = size();
        let db = Db::connect(&self.path)?;
        // What is moved together may be more than memory has room for.
        db.run(|conn| {
            conn.execute_batch("PRAGMA temp_store = FILE; PRAGMA secure_delete = ON; VACUUM")?;
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        })?;
        Ok(before.saturating_sub(size()))
    }
}

/// Puts a journal in the place of the one in the folder, which goes into a file of its own first. `Busy`: somebody has
/// it open.
pub(crate) fn restore(dir: &Path, from: &Path, kept: &Path) -> Result<(), JournalError> {
    let path = dir.join(FILE);
    // A journal that is gone may have left its write-ahead log, which is no part of the new one.
    if !path.exists() {
        return exchange(dir, from, kept);
    }
    let mut old = match alone(&path) {
        Ok(old) => old,
        // What cannot be opened is nobody's to have open.
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

/// Opens a journal so that nobody else has it open, nor can until this is dropped.
fn alone(path: &Path) -> Result<Db, JournalError> {
    let mut db = Db::connect(path)?;
    db.conn.busy_handler(None::<fn(i32) -> bool>).map_err(|error| problem(path, &error))?;
    // Leaving the write-ahead log is only possible for the last one there.
    db.run(|conn| {
        conn.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
        conn.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
        conn.execute_batch("BEGIN EXCLUSIVE; COMMIT")
    })?;
    Ok(db)
}

/// The same by the names of the files, for a journal that cannot be read or is not there. If there was one, there is one
/// at every moment: the old one has both names until the new one takes its place.
fn exchange(dir: &Path, from: &Path, kept: &Path) -> Result<(), JournalError> {
    let path = dir.join(FILE);
    let is_done = |done: io::Result<()>| match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path, &error)),
        _ => Ok(()),
    };
    is_done(fs::hard_link(&path, kept).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists => Err(error),
        // A file system without links.
        _ => fs::copy(&path, kept).and_then(|_| File::open(kept)?.sync_all()),
    }))?;
    is_done(fs::rename(dir.join(LOG), log_of(kept)))?;
    is_done(fs::remove_file(dir.join(format!("{FILE}-shm"))))?;
    // The log is gone for good before there is a journal that it is not of.
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

/// Copies into a new file, which then needs no other beside it.
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
        // Half a copy is none, and what SQLite keeps beside it is of no use without it.
        drop(fs::remove_file(to));
        drop(fs::remove_file(beside(to, "-journal")));
    }
    synced
}

fn copy(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    // One state of it: whatever is written meanwhile would make it begin again.
    from.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema")?;
    let copied = Backup::new(from, to)
        .and_then(|backup| backup.run_to_completion(COPY_PAGES, Duration::ZERO, None::<fn(Progress)>));
    from.execute_batch("COMMIT")?;
    copied
}

/// Gives a finished file its name, unless somebody else was faster.
fn keep(made: &Path, to: &Path) -> Result<(), JournalError> {
    match fs::hard_link(made, to) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(JournalError::Exists { path: to.to_owned() });
        }
        // A file system without links; nobody was there a moment ago.
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
