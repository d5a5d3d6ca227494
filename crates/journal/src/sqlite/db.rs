//! One connection: opening it, its settings, the version of its tables, and what its errors mean.
//!
//! Opening scans nothing, so it costs the same with ten entries as with a million. It never changes a file that a
//! newer program wrote, or that is not ours. Migrations are only ever added.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::cache::WriterCache;
use crate::chain::FaultDetail;
use crate::error::JournalError;
use crate::limits::{BUSY_MAX, CACHE_KIB, LOG_BYTES_KEPT, STATEMENTS_MAX, WRITER_CACHE_KIB};

/// The database's name in its folder, and its write-ahead log's.
pub(crate) const FILE: &str = "journal.db";
pub(crate) const LOG: &str = "journal.db-wal";
/// Each script migrates the tables from the version of its index to the next.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/0001_log.sql")];
/// Marks the file as ours (`MxTm`), for `file` and for ourselves.
const APPLICATION_ID: i64 = 0x4d78_546d;

/// Closing any descriptor of a file drops all locks that this process holds on it, SQLite's too. So no thread may
/// create the file while another thread of this process opens it.
static OPENING: Mutex<()> = Mutex::new(());

/// A connection and the file behind it.
#[derive(Debug)]
pub(crate) struct Db {
    pub(super) conn: Connection,
    pub(super) path: PathBuf,
    pub(super) known: WriterCache,
    /// The file that the path led to when it was opened.
    pub(super) file: Option<FileId>,
}

/// The device and number of a file.
pub(super) type FileId = (u64, u64);

/// The file that a path leads to now.
pub(super) fn file_id(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

impl Db {
    /// Opens the database for writing; makes it if it is not there.
    pub(super) fn open(dir: &Path, pages_max: Option<u32>) -> Result<Self, JournalError> {
        let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        let path = dir.join(FILE);
        create(dir, &path)?;
        let until = Instant::now() + BUSY_MAX;
        loop {
            match Self::open_once(&path, pages_max) {
                // Two processes that make the same journal at once can meet where SQLite does not wait by itself.
                Err(JournalError::Busy { .. }) if Instant::now() < until => {
                    thread::park_timeout(Duration::from_millis(1))
                }
                opened => return opened,
            }
        }
    }

    fn open_once(path: &Path, pages_max: Option<u32>) -> Result<Self, JournalError> {
        let db = Self::connect(path)?;
        // SQLite also opens a file that it cannot write, and would report this only at the first write.
        if db.run(|conn| conn.is_readonly("main"))? {
            let detail = "it can only be read".to_owned();
            return Err(JournalError::Unwritable { path: path.to_owned(), detail });
        }
        // Closing this connection must not move the write-ahead log into the database of another program.
        let touch = |may: bool| db.run(|conn| conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !may));
        touch(false)?;
        let version = db.version()?;
        if version == 0 {
            db.expect_empty()?;
        }
        touch(true)?;
        let mode: String = db.run(|conn| conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)))?;
        if mode != "wal" {
            let detail = "its file system cannot share memory between processes".to_owned();
            return Err(JournalError::Unwritable { path: path.to_owned(), detail });
        }
        // `secure_delete` overwrites deleted rows, so that an erasure leaves nothing of them in the file.
        db.run(|conn| {
            conn.execute_batch(&format!(
                "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON;
                 PRAGMA journal_size_limit = {LOG_BYTES_KEPT}; PRAGMA cache_size = -{WRITER_CACHE_KIB};"
            ))
        })?;
        if let Some(pages) = pages_max {
            db.run(|conn| conn.pragma_update(None, "max_page_count", pages))?;
        }
        if version < known() {
            db.migrate()?;
        }
        Ok(db)
    }

    /// Opens one more connection to a database that is already there, for reading only.
    pub(super) fn open_reader(path: &Path) -> Result<Self, JournalError> {
        let db = Self::connect(path)?;
        db.run(|conn| conn.execute_batch("PRAGMA query_only = ON"))?;
        Ok(db)
    }

    /// Like `open_reader`, for a file that cannot change, in a folder where no file can be created (`immutable`).
    pub(super) fn open_still(path: &Path) -> Result<Self, JournalError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let name = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // Bytes with a meaning in a URI are percent-encoded.
        let letter = |byte: &u8| match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(*byte).to_string(),
            byte => format!("%{byte:02x}"),
        };
        let name: String = name.as_os_str().as_bytes().iter().map(letter).collect();
        let conn = Connection::open_with_flags(format!("file:{name}?immutable=1"), flags);
        let conn = conn.map_err(|error| problem(path, &error))?;
        Ok(Self { conn, path: path.to_owned(), known: WriterCache::default(), file: file_id(path) })
    }

    /// Like `open_reader`, for a truncated file. Nothing is moved or repaired.
    pub(super) fn open_broken(path: &Path) -> Result<Self, JournalError> {
        // `writable_schema=ON` makes SQLite open a truncated file instead of reporting corruption.
        let db = Self::connect_after(path, "PRAGMA writable_schema = ON;")?;
        db.run(|conn| {
            conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            conn.execute_batch("PRAGMA query_only = ON")
        })?;
        Ok(db)
    }

    pub(super) fn connect(path: &Path) -> Result<Self, JournalError> {
        Self::connect_after(path, "")
    }

    fn connect_after(path: &Path, first: &str) -> Result<Self, JournalError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || -> rusqlite::Result<Connection> {
            let mut conn = Connection::open_with_flags(path, flags)?;
            conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
            conn.busy_handler(Some(wait))?;
            // Otherwise statements near a partial index are prepared again for every new value.
            conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            conn.execute_batch(&format!(
                "{first} PRAGMA mmap_size = 0; PRAGMA cache_size = -{CACHE_KIB}; PRAGMA temp_store = MEMORY;"
            ))?;
            Ok(conn)
        };
        let conn = open().map_err(|error| problem(path, &error))?;
        Ok(Self { conn, path: path.to_owned(), known: WriterCache::default(), file: file_id(path) })
    }

    /// The version of the tables; refuses one that we do not know.
    fn version(&self) -> Result<i64, JournalError> {
        let found: i64 = self.run(|conn| conn.pragma_query_value(None, "user_version", |row| row.get(0)))?;
        if found > known() {
            return Err(JournalError::Newer { path: self.path.clone(), found, known: known() });
        }
        Ok(found)
    }

    /// Refuses what is no journal, or one whose tables are not those that we read.
    pub(super) fn expect_known(&self) -> Result<(), JournalError> {
        if self.version()? == known() {
            return Ok(());
        }
        let detail = "it is no journal, or one of an older version".to_owned();
        Err(JournalError::Corrupt { path: self.path.clone(), detail })
    }

    fn expect_empty(&self) -> Result<(), JournalError> {
        let ours: i64 = self.run(|conn| conn.pragma_query_value(None, "application_id", |row| row.get(0)))?;
        let tables: i64 =
            self.run(|conn| conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)))?;
        // Another process may be creating the journal right now: then the application id is set, too.
        if tables > 0 && ours != APPLICATION_ID {
            let detail = "it is a database of another program".to_owned();
            return Err(JournalError::Corrupt { path: self.path.clone(), detail });
        }
        Ok(())
    }

    fn migrate(&self) -> Result<(), JournalError> {
        self.run(|conn| conn.execute_batch("BEGIN IMMEDIATE"))?;
        // Another process may have migrated before this one got the lock.
        let version = self.version()?;
        let missing = MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(usize::MAX));
        let script: String = missing.copied().collect();
        let known = known();
        self.run(|conn| {
            conn.execute_batch(&format!(
                "{script}; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {known}; COMMIT"
            ))
        })
    }

    /// Runs something on the connection and says what its failure means.
    pub(super) fn run<T>(&self, run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, JournalError> {
        run(&self.conn).map_err(|error| problem(&self.path, &error))
    }
}

/// How much of a file is missing, by the size that its header says.
pub(super) fn shortfall(path: &Path) -> Option<FaultDetail> {
    let mut head = [0; 32];
    let mut file = File::open(path).ok()?;
    file.read_exact(&mut head).ok()?;
    let found = file.metadata().ok()?.len();
    let number = |at: usize, bytes: usize| {
        head.iter().skip(at).take(bytes).fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    // The page size, where 1 stands for 65,536, and the number of pages.
    let size = Some(number(16, 2)).filter(|size| *size != 1).unwrap_or(1 << 16);
    let expected = size * number(28, 4);
    (found < expected).then_some(FaultDetail::Short { found, expected })
}

/// The statements that make the tables from nothing.
pub(super) fn all_migrations() -> String {
    MIGRATIONS.concat()
}

/// The version that this program writes.
fn known() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

fn create(dir: &Path, path: &Path) -> Result<(), JournalError> {
    let unwritable = |path: &Path, error: std::io::Error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => JournalError::DiskFull { path: path.to_owned() },
        _ => JournalError::Unwritable { path: path.to_owned(), detail: error.to_string() },
    };
    // A parent of the folder that is a file is reported as well.
    if let Some(file) = dir.ancestors().find(|folder| folder.exists()).filter(|there| !there.is_dir()) {
        return Err(JournalError::NoFolder { path: file.to_owned() });
    }
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| unwritable(dir, error))?;
    match OpenOptions::new().create_new(true).write(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(unwritable(path, error)),
    }
}

/// Waits for another process's transaction: briefly at first, because most last well under a millisecond.
fn wait(tries: i32) -> bool {
    const SHORT: Duration = Duration::from_micros(50);
    const LONG: Duration = Duration::from_millis(1);
    const SHORT_TRIES: i32 = 40;
    thread::park_timeout(if tries < SHORT_TRIES { SHORT } else { LONG });
    u128::try_from(tries).is_ok_and(|tries| tries < BUSY_MAX.as_millis())
}

/// The `JournalError` for an error of SQLite.
pub(super) fn problem(path: &Path, error: &rusqlite::Error) -> JournalError {
    let (path, detail) = (path.to_owned(), error.to_string());
    let Some(code) = error.sqlite_error() else { return JournalError::Io { path, detail } };
    match code.code {
        ErrorCode::DiskFull => JournalError::DiskFull { path },
        // The index of the write-ahead log could not grow.
        ErrorCode::SystemIoFailure if code.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
            JournalError::DiskFull { path }
        }
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            JournalError::Unwritable { path, detail }
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => JournalError::Corrupt { path, detail },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => JournalError::Busy { path },
        _ => JournalError::Io { path, detail: format!("{detail} (SQLite's code {})", code.extended_code) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_held_elsewhere_is_busy() {
        let dir = tempfile::tempdir().unwrap();
        let (one, mut two) = (Db::open(dir.path(), None).unwrap(), Db::open(dir.path(), None).unwrap());
        one.run(|conn| conn.execute_batch("BEGIN IMMEDIATE")).unwrap();
        two.conn.busy_handler(None::<fn(i32) -> bool>).unwrap();
        let refused = two.run(|conn| conn.execute_batch("BEGIN IMMEDIATE")).unwrap_err();
        assert_eq!(refused, JournalError::Busy { path: dir.path().join("journal.db") });
        one.run(|conn| conn.execute_batch("COMMIT")).unwrap();
        two.run(|conn| conn.execute_batch("BEGIN IMMEDIATE")).unwrap();
    }

    #[test]
    fn waiting_ends() {
        assert!(wait(0));
        assert!(!wait(i32::MAX));
    }
}
