//! The engine on a disk: SQLite with a write-ahead log, one writer thread, and readers beside it.
//!
//! Any number of processes, and of handles in one process, may open the same folder. The writer starts with the first
//! write and a reader with the first read, so a handle that is only held costs one connection. Everything that must
//! hold across processes is checked inside a transaction, against the tables.

mod cache;
mod copy;
mod damage;
mod db;
mod drift;
mod lookup;
mod read;
mod schema;
mod write;
mod writer;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use max_team_core::id::WorkerId;
use max_team_core::limits::COMMITS_QUEUED_MAX;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::copy::{failed, log_of, restore};
use self::db::shortfall;
pub(crate) use self::db::{Db, FILE, LOG};
use self::writer::{Job, Writer};
use crate::chain::FaultDetail;
use crate::commit::{Commit, Committed, Durability, Projection};
use crate::drift::DriftReport;
use crate::entry::Entry;
use crate::erase::Erase;
use crate::error::JournalError;
use crate::limits::READERS_IDLE_MAX;
use crate::notify::{Listener, Notifier};
use crate::watch::Signal;
use crate::worker::{self, Owner, Worker, WorkerInfo};

/// How to open a journal on a disk.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Makes every commit a full one (`journal.sync: full`).
    pub sync_all_full: bool,
    /// A quota: the database refuses to grow beyond this many pages of 4 KiB, as if the disk were full.
    pub pages_max: Option<u32>,
}

/// One handle on a folder.
#[derive(Debug)]
pub(crate) struct Sqlite {
    dir: PathBuf,
    path: PathBuf,
    options: Options,
    /// Why the file is opened as a damaged one, if it is.
    broken: Option<FaultDetail>,
    /// Whether the file cannot change, and no file can be created beside it.
    is_still: bool,
    writer: Mutex<WriterState>,
    readers: Mutex<Vec<Db>>,
    closed: AtomicBool,
    bell: Arc<Signal>,
    /// Rings only when other processes write.
    others: Arc<Signal>,
    ear: Listener,
}

/// The state of the writer thread.
#[derive(Debug)]
enum WriterState {
    Waiting(Box<Db>),
    Running(mpsc::Sender<Job>, JoinHandle<()>),
    /// Nothing can be written, for this reason.
    Unwritable(JournalError),
    Closed,
}

impl Sqlite {
    pub(crate) fn open(dir: PathBuf, options: Options) -> Result<Self, JournalError> {
        let db = Db::open(&dir, options.pages_max)?;
        Ok(Self::made(dir, db.path.clone(), options, WriterState::Waiting(Box::new(db)), Vec::new()))
    }

    /// A handle that only reads; writes fail with `why`.
    pub(crate) fn open_unwritable(dir: PathBuf, why: JournalError) -> Result<Self, JournalError> {
        let path = dir.join(FILE);
        let known = |db: Db| db.expect_known().map(|()| db);
        let (db, is_still) = match Db::open_reader(&path).and_then(known) {
            Ok(db) => (db, false),
            // Without a write-ahead log, the file can be read without memory shared with other processes.
            Err(_) if is_empty(&dir.join(LOG)) => {
                (Db::open_still(&path).and_then(known).map_err(|_| why.clone())?, true)
            }
            Err(_) => return Err(why),
        };
        let made = Self::made(dir, path, Options::default(), WriterState::Unwritable(why), vec![db]);
        Ok(Self { is_still, ..made })
    }

    /// Why nothing can be written through it, if so.
    pub(crate) fn unwritable(&self) -> Option<JournalError> {
        if let WriterState::Unwritable(why) = &*lock(&self.writer) { Some(why.clone()) } else { None }
    }

    /// A handle that only reads, on a file of any name.
    pub(crate) fn look(path: &Path) -> Result<Self, JournalError> {
        let db = Db::open_reader(path)?;
        db.expect_known()?;
        let dir = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self::made(dir, path.to_owned(), Options::default(), WriterState::Closed, vec![db]))
    }

    /// Like `look`, for a damaged file that cannot be opened normally.
    pub(crate) fn examine(path: &Path, detail: &str) -> Result<Self, JournalError> {
        let db = Db::open_broken(path)?;
        db.expect_known()?;
        let dir = path.parent().unwrap_or(Path::new("")).to_owned();
        let broken = shortfall(path).unwrap_or_else(|| FaultDetail::File(detail.to_owned()));
        let mut made = Self::made(dir, path.to_owned(), Options::default(), WriterState::Closed, vec![db]);
        made.broken = Some(broken);
        Ok(made)
    }

    pub(crate) fn broken(&self) -> Option<&FaultDetail> {
        self.broken.as_ref()
    }

    fn made(dir: PathBuf, path: PathBuf, options: Options, writer: WriterState, readers: Vec<Db>) -> Self {
        Self {
            path,
            ear: Listener::new(dir.join("workers")),
            dir,
            options,
            broken: None,
            is_still: false,
            writer: Mutex::new(writer),
            readers: Mutex::new(readers),
            closed: AtomicBool::new(false),
            bell: Arc::default(),
            others: Arc::default(),
        }
    }

    pub(crate) fn reopen(&self) -> Result<Self, JournalError> {
        Self::open(self.dir.clone(), self.options.clone())
    }

    pub(crate) async fn submit_commit(
        &self,
        commit: Commit,
    ) -> Result<oneshot::Receiver<Result<Committed, JournalError>>, JournalError> {
        let (answer, answered) = oneshot::channel();
        self.submit(Job::Commit(commit, answer)).await?;
        Ok(answered)
    }

    pub(crate) async fn claim(&self, resource: String, worker: WorkerId) -> Result<u64, JournalError> {
        let workers = self.workers();
        self.task(move |writer| {
            let owner = writer.db.owner(&resource)?.unwrap_or_default();
            if owner.worker == Some(worker) {
                return Ok(owner.epoch);
            }
            if let Some(other) = owner.worker
                && let Some(by) = worker::alive(&workers, other)?
            {
                return Err(JournalError::Owned { resource, by: Box::new(by) });
            }
            let epoch = owner.epoch + 1;
            writer.db.put_owner(&resource, Owner { worker: Some(worker), epoch })?;
            Ok(epoch)
        })
        .await
    }

    pub(crate) async fn release(&self, resource: String, worker: WorkerId, epoch: u64) -> Result<(), JournalError> {
        self.raw_task(move |writer| {
            writer.transact(Durability::Normal, |writer| {
                if writer.db.owner(&resource)? == Some(Owner { worker: Some(worker), epoch }) {
                    writer.db.put_owner(&resource, Owner { worker: None, epoch })?;
                }
                Ok::<_, JournalError>(())
            })?;
            // Another process may wait for the claim.
            writer.announce();
            Ok(())
        })
        .await
    }

    pub(crate) fn owner(&self, resource: &str) -> Result<Option<WorkerInfo>, JournalError> {
        match self.read(|db| db.owner(resource))?.and_then(|owner| owner.worker) {
            Some(worker) => worker::alive(&self.workers(), worker),
            None => Ok(None),
        }
    }

    pub(crate) async fn erase<E: From<JournalError> + Send + 'static>(
        &self,
        decide: impl Fn() -> Result<Erase, E> + Send + 'static,
    ) -> Result<u64, E> {
        self.raw_task(move |writer| writer.erase(decide)).await
    }

    /// Seals, moves the log into the database and ends the writer.
    pub(crate) async fn close(&self) -> Result<(), JournalError> {
        self.closed.store(true, Ordering::Release);
        let state = std::mem::replace(&mut *lock(&self.writer), WriterState::Closed);
        lock(&self.readers).clear();
        let result = match state {
            WriterState::Running(jobs, thread) => {
                let (answer, answered) = oneshot::channel();
                jobs.send(Job::Close(answer)).await.map_err(|_| JournalError::Closed)?;
                let closed = answered.await.map_err(|_| JournalError::Closed)?;
                // It has answered, so the thread is about to end.
                drop(thread.join());
                closed
            }
            WriterState::Waiting(_) | WriterState::Unwritable(_) => Ok(()),
            WriterState::Closed => Err(JournalError::Closed),
        };
        self.bell.ring();
        result
    }

    pub(crate) fn rebuild(&self, project: impl Fn(&Entry) -> Vec<Projection>) -> Result<(), JournalError> {
        self.expect_open()?;
        let db = Db::open(&self.dir, self.options.pages_max)?;
        db.run(|conn| conn.execute_batch("BEGIN IMMEDIATE"))?;
        // A failure drops the connection, and with it the transaction.
        db.rebuild(project)?;
        db.run(|conn| conn.execute_batch("COMMIT"))
    }

    /// Compares the rows with the log, on a connection of its own: nothing is changed.
    pub(crate) fn drift(&self, project: impl Fn(&Entry) -> Vec<Projection>) -> Result<DriftReport, JournalError> {
        self.expect_open()?;
        let db = if self.is_still { Db::open_still(&self.path)? } else { Db::connect(&self.path)? };
        db.drift(project)
    }

    pub(crate) fn worker(&self, info: WorkerInfo) -> Result<Worker, JournalError> {
        Worker::start_in(&self.make_workers()?, info)
    }

    /// The bell, which from now on also rings when other processes write.
    pub(crate) fn listen(&self) -> Result<&Signal, JournalError> {
        // Where nothing can be written, no socket can be created either; the journal can still be read.
        if matches!(&*lock(&self.writer), WriterState::Unwritable(_)) {
            return Ok(&self.bell);
        }
        let folder = self.make_workers()?;
        self.ear
            .listen([&self.bell, &self.others])
            .map_err(|error| JournalError::Unwritable { path: folder, detail: error.to_string() })?;
        Ok(&self.bell)
    }

    /// The bell that rings only when other processes write.
    pub(crate) fn listen_to_others(&self) -> Result<&Signal, JournalError> {
        self.listen()?;
        Ok(&self.others)
    }

    /// Reads on a connection of its own, in this thread.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Db) -> Result<T, JournalError>) -> Result<T, JournalError> {
        self.expect_open()?;
        let idle = lock(&self.readers).pop();
        let db = match idle {
            Some(db) => db,
            None if self.broken.is_some() => Db::open_broken(&self.path)?,
            None if self.is_still => Db::open_still(&self.path)?,
            None => Db::open_reader(&self.path)?,
        };
        let result = read(&db);
        let mut readers = lock(&self.readers);
        if readers.len() < READERS_IDLE_MAX && !self.closed.load(Ordering::Acquire) {
            readers.push(db);
        }
        result
    }

    fn expect_open(&self) -> Result<(), JournalError> {
        if self.closed.load(Ordering::Acquire) { Err(JournalError::Closed) } else { Ok(()) }
    }

    pub(crate) fn living(&self) -> Vec<WorkerInfo> {
        worker::living(&self.workers())
    }

    fn workers(&self) -> PathBuf {
        self.dir.join("workers")
    }

    fn make_workers(&self) -> Result<PathBuf, JournalError> {
        let folder = self.workers();
        match DirBuilder::new().recursive(true).mode(0o700).create(&folder) {
            Ok(()) => Ok(folder),
            Err(error) => Err(JournalError::Unwritable { path: folder, detail: error.to_string() }),
        }
    }

    /// Runs `work` in a transaction of normal strength in the writer thread.
    async fn task<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.raw_task(move |writer| {
            let mut done = None;
            writer.transact(Durability::Normal, |writer| {
                done = Some(work(writer)?);
                Ok(())
            })?;
            done.ok_or(JournalError::Closed)
        })
        .await
    }

    /// Runs `work` in the writer thread.
    async fn raw_task<T: Send + 'static, E: From<JournalError> + Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (answer, answered) = oneshot::channel();
        let task = move |writer: &mut Writer| drop(answer.send(work(writer)));
        self.submit(Job::Task(Box::new(task))).await?;
        answered.await.map_err(|_| JournalError::Closed)?
    }

    /// Hands a job to the writer, and starts the writer for its first job; waits while the queue is full.
    async fn submit(&self, job: Job) -> Result<(), JournalError> {
        let jobs = self.start()?;
        jobs.send(job).await.map_err(|_| JournalError::Closed)
    }

    fn start(&self) -> Result<mpsc::Sender<Job>, JournalError> {
        let mut state = lock(&self.writer);
        match &*state {
            WriterState::Running(jobs, _) => return Ok(jobs.clone()),
            WriterState::Unwritable(why) => return Err(why.clone()),
            WriterState::Waiting(_) | WriterState::Closed => {}
        }
        let WriterState::Waiting(db) = std::mem::replace(&mut *state, WriterState::Closed) else {
            return Err(JournalError::Closed);
        };
        let (jobs, queue) = mpsc::channel(COMMITS_QUEUED_MAX);
        let weakest = if self.options.sync_all_full { Durability::Full } else { Durability::Normal };
        let writer = Writer::new(*db, queue, Arc::clone(&self.bell), Notifier::new(&self.ear), weakest);
        let thread = thread::Builder::new()
            .name("journal-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| JournalError::Io { path: self.path.clone(), detail: error.to_string() })?;
        *state = WriterState::Running(jobs.clone(), thread);
        Ok(jobs)
    }
}

/// Whether there is nothing in a file, or no such file.
fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |file| file.len() == 0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
