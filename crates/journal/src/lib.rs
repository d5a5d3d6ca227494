//! What survives a crash: one append-only log, and the rows that follow from it.
//!
//! A [`Commit`] is one transaction of plain data; a [`Journal`] is a cheap handle on the engine that stores it. The log
//! is the truth: mail, timers, outbox and projections change in the transaction of the entry that causes them, and
//! can be rebuilt from the log alone. This crate never decides what happens, never reads a clock for what it stores,
//! and never looks inside a caller's payload.

mod backup;
mod chain;
mod commit;
mod drift;
mod entry;
mod erase;
mod error;
mod export;
mod fault;
mod fold;
mod limits;
mod memory;
mod notify;
mod outbox;
mod read;
mod seal;
mod sqlite;
mod system_events;
mod timer;
mod transaction;
mod verify;
mod watch;
mod worker;

use std::collections::{BTreeSet, HashSet};
use std::future::Future;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::EnvelopeId;
use max_team_core::message::Envelope;
use tokio::sync::oneshot;

pub use self::chain::{ChainCheck, FaultDetail, FaultKind, SchemaChange};
pub use self::commit::{Append, Commit, Committed, Durability, Expect, Fence, Projection};
pub use self::drift::{Drift, DriftKind, DriftReport};
pub use self::entry::Entry;
pub use self::erase::{Erase, ForgottenSessions};
pub use self::error::JournalError;
pub use self::fault::{CrashPoint, Sabotage};
pub use self::fold::FoldedState;
pub use self::outbox::{OutboxOp, OutboxPart, PartState};
pub use self::read::{Cursor, ListedRow, ScanItem, Snapshot};
pub use self::seal::ExternalSeal;
pub use self::sqlite::Options;
pub use self::system_events::OWN_EVENTS;
pub use self::timer::{Timer, TimerOp};
pub use self::verify::{Fault, Report};
pub use self::watch::{Notifications, Watch};
pub use self::worker::{Worker, WorkerInfo};

use self::entry::Head;
use self::memory::MemoryEngine;
use self::sqlite::Sqlite;

/// A handle on the journal. Cloning it is cheap; clones share one writer.
#[derive(Debug, Clone)]
pub struct Journal {
    engine: Engine,
}

#[derive(Debug, Clone)]
enum Engine {
    Sqlite(Arc<Sqlite>),
    Memory(Arc<MemoryEngine>),
}

/// A commit that was handed over and may not be stored yet.
#[derive(Debug)]
#[must_use = "nothing is known to be stored before it says so"]
pub struct PendingCommit(CommitPath);

#[derive(Debug)]
enum CommitPath {
    /// The writer will answer.
    Queued(oneshot::Receiver<Result<Committed, JournalError>>),
    /// It is stored already.
    Stored(Arc<MemoryEngine>, Committed),
}

impl PendingCommit {
    /// Waits until it is stored.
    pub async fn stored(self) -> Result<Committed, JournalError> {
        match self.0 {
            CommitPath::Queued(answered) => answered.await.map_err(|_| JournalError::Closed)?,
            CommitPath::Stored(memory, committed) => {
                memory.life().go_on().await;
                Ok(committed)
            }
        }
    }
}

/// Returns the folder if a journal is in it.
fn there(dir: PathBuf) -> Result<PathBuf, JournalError> {
    let holds = |name: &str| std::fs::metadata(dir.join(name)).is_ok_and(|file| file.len() > 0);
    // A new journal may have all its entries in the write-ahead log still.
    let is_there = holds(sqlite::FILE) || holds(sqlite::LOG);
    if is_there { Ok(dir) } else { Err(JournalError::Absent { path: dir.join(sqlite::FILE) }) }
}

/// Opening and closing.
impl Journal {
    /// Opens the journal in a folder; creates both if they are missing. Any number of processes may open it.
    pub fn open(dir: impl Into<PathBuf>, options: Options) -> Result<Self, JournalError> {
        Ok(Self { engine: Engine::Sqlite(Arc::new(Sqlite::open(dir.into(), options)?)) })
    }

    /// Like `open`, but where nothing can be written the journal is opened for reading, and writes fail with the
    /// reason.
    pub fn open_read_only(dir: impl Into<PathBuf>, options: Options) -> Result<Self, JournalError> {
        let dir = dir.into();
        match Self::open(&dir, options) {
            Err(why @ (JournalError::Unwritable { .. } | JournalError::DiskFull { .. })) => {
                Ok(Self { engine: Engine::Sqlite(Arc::new(Sqlite::open_unwritable(dir, why)?)) })
            }
            opened => opened,
        }
    }

    /// Why nothing can be written, if the journal was opened for reading for that reason. Such a journal does not
    /// notice what other processes write.
    pub fn unwritable(&self) -> Option<JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.unwritable(),
            Engine::Memory(_) => None,
        }
    }

    /// Opens an existing journal; creates none.
    pub fn open_existing(dir: impl Into<PathBuf>, options: Options) -> Result<Self, JournalError> {
        Self::open(there(dir.into())?, options)
    }

    /// Like `open_existing`, but also opens a journal that can only be read.
    pub fn open_existing_read_only(dir: impl Into<PathBuf>) -> Result<Self, JournalError> {
        Self::open_read_only(there(dir.into())?, Options::default())
    }

    /// Like `open_existing_read_only`, but also opens a damaged file, as far as it can be read. `verify` reports what is wrong
    /// with it.
    pub fn open_damaged(dir: impl Into<PathBuf>) -> Result<Self, JournalError> {
        match Self::open_existing_read_only(dir) {
            Err(JournalError::Corrupt { path, detail }) => match Sqlite::examine(&path, &detail) {
                Ok(sqlite) => Ok(Self { engine: Engine::Sqlite(Arc::new(sqlite)) }),
                // The first error says more.
                Err(_) => Err(JournalError::Corrupt { path, detail }),
            },
            found => found,
        }
    }

    /// A journal that lives as long as its handles: for simulation and tests.
    pub fn memory() -> Self {
        Self { engine: Engine::Memory(Arc::default()) }
    }

    /// A journal in memory with a copy of these entries and the rows derived from them, to examine a log without
    /// touching it. Entries are numbered from 1 in the given order.
    pub fn replica(log: Vec<Entry>, project: impl Fn(&Entry) -> Vec<Projection>) -> Result<Self, JournalError> {
        let memory = MemoryEngine::of_log(log);
        memory.rebuild(project)?;
        Ok(Self { engine: Engine::Memory(Arc::new(memory)) })
    }

    /// Opens the same journal once more, as another process would; also after this handle was closed.
    pub fn reopen(&self) -> Result<Self, JournalError> {
        let engine = match &self.engine {
            Engine::Sqlite(sqlite) => Engine::Sqlite(Arc::new(sqlite.reopen()?)),
            Engine::Memory(memory) => Engine::Memory(Arc::new(memory.reopen())),
        };
        Ok(Self { engine })
    }

    /// Seals the log and ends the writer, after everything that was queued. Dropping the handles without it loses
    /// nothing either.
    pub async fn close(&self) -> Result<(), JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            Engine::Memory(memory) => memory.close(),
        }
    }
}

impl Journal {
    /// Stores a commit, all of it or nothing. Dropping the future after the hand-over does not cancel the commit.
    pub async fn commit(&self, commit: Commit) -> Result<Committed, JournalError> {
        self.submit(commit).await?.stored().await
    }

    /// Hands a commit over without waiting until it is stored. Commits are stored in the order in which they are
    /// handed over: a later commit that acknowledges a message of this one is refused if this one is.
    pub async fn submit(&self, commit: Commit) -> Result<PendingCommit, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => Ok(PendingCommit(CommitPath::Queued(sqlite.submit_commit(commit).await?))),
            Engine::Memory(memory) => {
                Ok(PendingCommit(CommitPath::Stored(Arc::clone(memory), memory.commit(commit).await?)))
            }
        }
    }

    /// Like `commit`, but blocks the thread; inside a runtime its other tasks wait, too.
    pub fn commit_blocking(&self, commit: Commit) -> Result<Committed, JournalError> {
        block_on(self.commit(commit))
    }

    /// Starts a worker. It owns what it claims until the value is dropped or the process dies.
    pub fn worker(&self, info: WorkerInfo) -> Result<Worker, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.worker(info),
            Engine::Memory(memory) => Ok(Worker::start_within(Arc::clone(memory.store()), info)),
        }
    }

    /// Makes the worker the owner; returns the epoch for its fences. Claiming again what it owns changes nothing;
    /// what a living worker owns is `Owned`; what a dead one owned is taken over under a new epoch.
    pub async fn claim(&self, resource: &str, worker: &Worker) -> Result<u64, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.claim(resource.to_owned(), worker.id()).await,
            Engine::Memory(memory) => memory.claim(resource, worker.id()),
        }
    }

    /// Gives a claim back; does nothing if the worker no longer holds it.
    pub async fn release(&self, resource: &str, worker: &Worker, epoch: u64) -> Result<(), JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.release(resource.to_owned(), worker.id(), epoch).await,
            Engine::Memory(memory) => memory.release(resource, worker.id(), epoch),
        }
    }

    /// Erases payloads from every entry that has them, and records a tombstone; returns the number of entries.
    pub async fn erase(&self, erase: Erase) -> Result<u64, JournalError> {
        self.erase_as(move || Ok(erase.clone())).await
    }

    /// Like `erase`, but decides inside the transaction: nothing is written between what `decide` reads and the
    /// erasure.
    pub async fn erase_as<E: From<JournalError> + Send + 'static>(
        &self,
        decide: impl Fn() -> Result<Erase, E> + Send + 'static,
    ) -> Result<u64, E> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.erase(decide).await,
            Engine::Memory(memory) => memory.erase(decide),
        }
    }

    /// Returns unused space of the file to the system; says how many bytes. It copies the whole database: other
    /// writers wait until it ends, or fail with `Busy`. Does nothing while a worker is alive.
    pub fn compact(&self) -> Result<u64, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.compact(),
            Engine::Memory(_) => Ok(0),
        }
    }

    /// The workers that are alive, in no order.
    pub fn living(&self) -> Result<Vec<WorkerInfo>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => Ok(sqlite.living()),
            Engine::Memory(memory) => Ok(memory.open_tables()?.living()),
        }
    }

    /// Derives mail, timers, outbox and projections from the log again; drops snapshots. Meant for a journal that no
    /// other process uses: other writers wait until it ends, or fail with `Busy`.
    pub fn rebuild(&self, project: impl Fn(&Entry) -> Vec<Projection>) -> Result<(), JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.rebuild(project),
            Engine::Memory(memory) => memory.rebuild(project),
        }
    }
}

/// Faults, for tests. Only in memory; on disk they do nothing, because a test can kill a real process there.
impl Journal {
    /// Simulates the death of the process that uses this handle and its clones, at the n-th commit from now on; the
    /// future ends at that moment. Reopened handles live on.
    pub fn die(&self, death: CrashPoint, commit: u64) -> impl Future<Output = ()> + Send + 'static {
        let end = match &self.engine {
            Engine::Sqlite(_) => None,
            Engine::Memory(memory) => Some(memory.life().end(death, commit, &memory.store().tables())),
        };
        async move {
            match end {
                Some(end) => end.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Before each commit is handed over, yields as often as `wait` says, so that other tasks go first.
    pub fn wait_before(&self, wait: impl FnMut() -> u32 + Send + 'static) {
        if let Engine::Memory(memory) = &self.engine {
            memory.life().wait_before(wait);
        }
    }

    /// Plants a bug: `bend` decides what is stored of each commit.
    pub fn sabotage(&self, bend: impl FnMut(Commit) -> Sabotage + Send + 'static) {
        if let Engine::Memory(memory) = &self.engine {
            memory.life().sabotage(bend);
        }
    }
}

/// Reading: in the calling thread, never behind a writer.
impl Journal {
    /// A stream's entries after the given place.
    pub fn read(&self, stream: &str, after_stream_seq: u64, limit: usize) -> Result<Vec<Entry>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.read(stream, after_stream_seq, limit)),
            Engine::Memory(memory) => Ok(memory.open_tables()?.read(stream, after_stream_seq, limit)),
        }
    }

    /// All streams' entries after the given one, in reading order.
    pub fn read_all(&self, after_seq: u64, limit: usize) -> Result<Vec<Entry>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.read_all(after_seq, limit)),
            Engine::Memory(memory) => Ok(memory.open_tables()?.read_all(after_seq, limit)),
        }
    }

    /// The entries of one event after the given one, in all streams. It passes over everything else on its way.
    pub fn read_event(&self, event: &str, after_seq: u64, limit: usize) -> Result<Vec<Entry>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.read_event(event, after_seq, limit)),
            Engine::Memory(memory) => Ok(memory.open_tables()?.read_event(event, after_seq, limit)),
        }
    }

    /// A stream's last entry; 0 when it has none.
    pub fn head(&self, stream: &str) -> Result<u64, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.head(stream)),
            Engine::Memory(memory) => Ok(memory.open_tables()?.head(stream)),
        }
        .map(|head| head.stream_seq)
    }

    /// The last entry of all; 0 when there is none.
    pub fn last_seq(&self) -> Result<u64, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(sqlite::Db::last_seq),
            Engine::Memory(memory) => Ok(memory.open_tables()?.last_seq()),
        }
    }

    /// Bytes by their hash: a commit's blob, or a payload too large for its entry.
    pub fn blob(&self, hash: &Hash) -> Result<Option<Vec<u8>>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.blob(hash)),
            Engine::Memory(memory) => Ok(memory.open_tables()?.blob(hash)),
        }
    }

    /// The hashes of the payloads that occur in these entries, told by number and stream, and in no other: those that can
    /// be erased with them.
    pub fn payloads_of(&self, is_inside: impl Fn(u64, &str) -> bool) -> Result<BTreeSet<Hash>, JournalError> {
        let (mut inside, mut outside) = (BTreeSet::new(), HashSet::new());
        self.hashes(&mut |seq, stream, hash| {
            if is_inside(seq, stream) {
                inside.insert(hash);
            }
        })?;
        self.hashes(&mut |seq, stream, hash| {
            if inside.contains(&hash) && !is_inside(seq, stream) {
                outside.insert(hash);
            }
        })?;
        inside.retain(|hash| !outside.contains(hash));
        Ok(inside)
    }

    fn hashes(&self, each: &mut dyn FnMut(u64, &str, Hash)) -> Result<(), JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.hashes(each)),
            Engine::Memory(memory) => memory.open_tables()?.scan(0, &mut |entry| {
                each(entry.seq, &entry.stream, entry.payload_hash);
                Ok(ControlFlow::Continue(()))
            }),
        }
    }

    /// A stream's folded state, if a commit kept one.
    pub fn snapshot(&self, stream: &str) -> Result<Option<Snapshot>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.snapshot(stream)),
            Engine::Memory(memory) => Ok(memory.open_tables()?.snapshot(stream)),
        }
    }

    /// The messages in a mailbox that are not acknowledged, oldest first.
    pub fn pending_mail(&self, address: &str) -> Result<Vec<Envelope>, JournalError> {
        let entries = match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.pending_mail(address))?,
            Engine::Memory(memory) => memory.open_tables()?.pending_mail(address),
        };
        let mut envelopes = Vec::with_capacity(entries.len());
        for entry in &entries {
            // A message that was erased before it was acknowledged has no content.
            let Some(payload) = entry.payload.as_deref() else { continue };
            if let Event::Mailed(envelope) = system_events::parse(entry, payload)? {
                envelopes.push(envelope);
            }
        }
        Ok(envelopes)
    }

    /// How many messages wait in a mailbox.
    pub fn count_mail(&self, address: &str) -> Result<usize, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.count_mail(address)),
            Engine::Memory(memory) => Ok(memory.open_tables()?.pending_mail(address).len()),
        }
    }

    /// The addresses whose mailboxes have waiting messages.
    pub fn mailboxes(&self) -> Result<Vec<String>, JournalError> {
        let streams = match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.mailboxes())?,
            Engine::Memory(memory) => memory.open_tables()?.mailboxes(),
        };
        Ok(streams.iter().filter_map(|stream| system_events::mail_address(stream)).map(str::to_owned).collect())
    }

    /// Whether a message was ever sent under this id.
    pub fn has_mail(&self, id: EnvelopeId) -> Result<bool, JournalError> {
        Ok(self.addressee(id)?.is_some())
    }

    /// The address that the message with this id was sent to, acknowledged or not.
    pub fn addressee(&self, id: EnvelopeId) -> Result<Option<String>, JournalError> {
        let envelope = match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.envelope(id))?,
            Engine::Memory(memory) => memory.open_tables()?.envelope(id),
        };
        Ok(envelope.and_then(|envelope| system_events::mail_address(&envelope.stream).map(str::to_owned)))
    }

    /// A projected row.
    pub fn get(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.get(table, key)),
            Engine::Memory(memory) => Ok(memory.open_tables()?.get(table, key)),
        }
    }

    /// A table's rows, newest first, from behind the cursor on.
    pub fn list(&self, table: &str, limit: usize, after: Option<&Cursor>) -> Result<Vec<ListedRow>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.list(table, limit, after)),
            Engine::Memory(memory) => Ok(memory.open_tables()?.list(table, limit, after)),
        }
    }

    /// The live worker that owns a resource; a dead one owns nothing.
    pub fn owner(&self, resource: &str) -> Result<Option<WorkerInfo>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.owner(resource),
            Engine::Memory(memory) => Ok(memory.open_tables()?.living_owner(resource)),
        }
    }

    /// The timers that are due, soonest first.
    pub fn due_timers(&self, now_ms: i64, limit: usize) -> Result<Vec<Timer>, JournalError> {
        self.timers(i64::MIN, now_ms, limit)
    }

    /// The first timer that is not due yet: what to sleep until.
    pub fn next_timer(&self, now_ms: i64) -> Result<Option<Timer>, JournalError> {
        Ok(self.timers(now_ms, i64::MAX, 1)?.pop())
    }

    fn timers(&self, after_ms: i64, upto_ms: i64, limit: usize) -> Result<Vec<Timer>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.timers(after_ms, upto_ms, limit)),
            Engine::Memory(memory) => memory.open_tables()?.timers(after_ms, upto_ms, limit),
        }
    }

    /// The outbox's parts in a state whose address begins with `to`, in the order they were put there.
    pub fn outbox(&self, state: PartState, to: &str, limit: usize) -> Result<Vec<OutboxPart>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.outbox(state, to, limit)),
            Engine::Memory(memory) => memory.open_tables()?.outbox(state, to, limit),
        }
    }

    /// Follows the log from behind the given entry on, also what other processes add.
    pub fn watch(&self, after_seq: u64) -> Result<Watch, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => Ok(Watch::new(self.clone(), sqlite.listen()?, after_seq)),
            Engine::Memory(memory) => Ok(Watch::new(self.clone(), memory.bell(), after_seq)),
        }
    }

    /// Hints that other processes write, without following what they write. This process's own commits give none,
    /// except in memory, where all handles share one bell.
    pub fn nudges(&self) -> Result<Notifications, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => Ok(Notifications::new(sqlite.listen_to_others()?)),
            Engine::Memory(memory) => Ok(Notifications::new(memory.bell())),
        }
    }

    /// The database's own check of its file; an empty list is a healthy one. `verify` checks what is in it.
    pub fn quick_check(&self) -> Result<Vec<String>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(sqlite::Db::quick_check),
            Engine::Memory(_) => Ok(Vec::new()),
        }
    }

    /// Why the file could not be opened normally.
    fn broken(&self) -> Option<&FaultDetail> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.broken(),
            Engine::Memory(_) => None,
        }
    }

    fn whole_check(&self) -> Result<Vec<String>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(sqlite::Db::whole_check),
            Engine::Memory(_) => Ok(Vec::new()),
        }
    }

    /// Tables, indexes, triggers and views that differ from those of the program.
    fn schema_check(&self) -> Result<Vec<FaultDetail>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(sqlite::Db::schema_check),
            Engine::Memory(_) => Ok(Vec::new()),
        }
    }

    /// Blobs whose bytes do not match their hash, including payloads of entries.
    fn false_blobs(&self) -> Result<Vec<Hash>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(sqlite::Db::false_blobs),
            Engine::Memory(_) => Ok(Vec::new()),
        }
    }

    fn scan(
        &self,
        after_seq: u64,
        each: &mut dyn FnMut(Entry) -> Result<ControlFlow<()>, JournalError>,
    ) -> Result<(), JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.scan(after_seq, each)),
            Engine::Memory(memory) => {
                // `each` may read the journal, which is impossible while the tables are locked: so the entries are
                // collected first.
                let mut found = Vec::new();
                memory.open_tables()?.scan(after_seq, &mut |entry| {
                    found.push(entry);
                    Ok(ControlFlow::Continue(()))
                })?;
                for entry in found {
                    if each(entry)?.is_break() {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// Walks over the log after an entry, and skips what cannot be read.
    fn scan_past(
        &self,
        after_seq: u64,
        each: &mut dyn FnMut(ScanItem<'_>) -> ControlFlow<()>,
    ) -> Result<(), JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| db.scan_past(after_seq, each)),
            Engine::Memory(_) => self.scan(after_seq, &mut |entry| Ok(each(ScanItem::Entry(&entry)))),
        }
    }

    /// Walks over the whole log, skips what cannot be read, and returns the streams' heads of the same state.
    fn scan_with_heads(&self, each: &mut dyn FnMut(ScanItem<'_>)) -> Result<Vec<(String, Head)>, JournalError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(|db| {
                db.at_once(|db| {
                    db.scan_past(0, &mut |walked| {
                        each(walked);
                        ControlFlow::Continue(())
                    })?;
                    db.heads()
                })
            }),
            Engine::Memory(memory) => {
                let tables = memory.open_tables()?;
                tables.scan(0, &mut |entry| {
                    each(ScanItem::Entry(&entry));
                    Ok(ControlFlow::Continue(()))
                })?;
                Ok(tables.heads())
            }
        }
    }
}

/// Waits for a future in this thread. `unconstrained`: inside a task, tokio would otherwise make it yield to a
/// runtime that is waiting for us.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(tokio::task::unconstrained(future));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
