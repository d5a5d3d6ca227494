//! The one thread that writes: it turns the commits that wait into one transaction.
//!
//! Commits that arrive while a transaction is under way share the next one, and its sync. A commit that is refused
//! has written nothing, so the others of its group go on; a failure of the disk fails them all. Answers go out only
//! after the transaction has ended. The thread never decides anything: `transaction` does.

use std::fs::File;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use max_team_core::limits::COMMITS_GROUPED_MAX;
use tokio::sync::{mpsc, oneshot};

use super::copy::log_of;
use super::db::{Db, FileId, file_id, problem};
use crate::commit::{Commit, Committed, Durability};
use crate::erase::Erase;
use crate::error::JournalError;
use crate::limits::{CHECKPOINT_PAGES, GATHER, GATHERED_MIN, PACE_MAX, PACE_SHARE};
use crate::notify::Notifier;
use crate::transaction::{TransactionReader, resolve};
use crate::watch::Signal;

/// Groups between two looks at the size of the write-ahead log.
const GROUPS_UNCHECKED: u32 = 64;

type Answer<T> = oneshot::Sender<Result<T, JournalError>>;
type Outcome = Result<Committed, JournalError>;

/// Work for the writer.
#[expect(clippy::large_enum_variant, reason = "nearly every job is a commit; a box would cost each of them")]
pub(super) enum Job {
    Commit(Commit, Answer<Committed>),
    /// Anything else that writes, in a transaction of its own.
    Task(Box<dyn FnOnce(&mut Writer) + Send>),
    Close(Answer<()>),
}

/// What the thread owns.
pub(super) struct Writer {
    pub(super) db: Db,
    jobs: mpsc::Receiver<Job>,
    bell: Arc<Signal>,
    nudger: Notifier,
    /// The strength that the connection is set to.
    strength: Durability,
    weakest: Durability,
    /// Set after a failure that may have lost earlier writes, such as a failed sync: all later writes fail with it.
    broken: Option<JournalError>,
    pace: SyncPacing,
    last_at_ms: i64,
    has_written: bool,
    unchecked: u32,
    /// The write-ahead log that the connection has open, once something was written.
    log: Option<FileId>,
}

/// How long to wait for the callers that were just answered, so that they share the next sync instead of the fastest
/// of them causing its own.
#[derive(Debug, Default)]
struct SyncPacing {
    commits: usize,
    wait: Duration,
}

impl Writer {
    pub(super) fn new(
        db: Db,
        jobs: mpsc::Receiver<Job>,
        bell: Arc<Signal>,
        nudger: Notifier,
        weakest: Durability,
    ) -> Self {
        Self {
            db,
            jobs,
            bell,
            nudger,
            strength: Durability::Normal,
            weakest,
            broken: None,
            pace: SyncPacing::default(),
            last_at_ms: 0,
            has_written: false,
            unchecked: GROUPS_UNCHECKED,
            log: None,
        }
    }

    /// Works until it is told to close, or until the last handle is gone and the queue is empty.
    pub(super) fn run(mut self) {
        let mut jobs = Vec::new();
        loop {
            self.pace.keep(&self.jobs);
            if self.jobs.blocking_recv_many(&mut jobs, COMMITS_GROUPED_MAX) == 0 {
                return;
            }
            self.gather(&mut jobs);
            let mut group = Vec::new();
            for job in jobs.drain(..) {
                match job {
                    Job::Commit(commit, answer) => group.push((commit, answer)),
                    Job::Task(task) => {
                        self.commit(std::mem::take(&mut group));
                        task(&mut self);
                    }
                    Job::Close(answer) => {
                        self.commit(group);
                        let closed = self.close();
                        drop(answer.send(closed));
                        return;
                    }
                }
            }
            self.commit(group);
            self.checkpoint_if_due();
        }
    }

    /// If all waiting commits are patient, waits once for more: a transaction costs more than the commits in it.
    #[expect(clippy::disallowed_methods, reason = "waits for more commits, and no event tells that the last one came")]
    fn gather(&mut self, jobs: &mut Vec<Job>) {
        let is_batch = |job: &Job| matches!(job, Job::Commit(commit, _) if commit.batch);
        if jobs.len() + self.jobs.len() < GATHERED_MIN && jobs.iter().all(is_batch) {
            thread::sleep(GATHER);
        }
        while jobs.len() < COMMITS_GROUPED_MAX
            && let Ok(job) = self.jobs.try_recv()
        {
            jobs.push(job);
        }
    }

    /// Commits a group as one transaction and answers each of its members.
    fn commit(&mut self, group: Vec<(Commit, Answer<Committed>)>) {
        if group.is_empty() {
            return;
        }
        let (commits, answers): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let strength = commits.iter().map(|commit| commit.strength).max().unwrap_or_default();
        let count = commits.len();
        let mut outcomes = Vec::with_capacity(count);
        let transaction: Result<_, JournalError> = self.transact(strength, |writer| {
            for commit in commits {
                outcomes.push(writer.commit_one(commit)?);
            }
            Ok(())
        });
        match transaction {
            Ok(sync) => {
                self.pace = SyncPacing::after(count, sync);
                // Before the answers: a caller may end the process as soon as it has its answer, before watchers are
                // woken.
                self.announce();
                for (answer, outcome) in answers.into_iter().zip(outcomes) {
                    drop(answer.send(outcome));
                }
            }
            Err(error) => {
                let mut refusals = outcomes.into_iter().map(Result::err);
                for answer in answers {
                    let refusal = refusals.next().flatten();
                    drop(answer.send(Err(refusal.unwrap_or_else(|| error.clone()))));
                }
            }
        }
    }

    /// The inner error refuses this commit; the outer one ends the transaction.
    fn commit_one(&mut self, commit: Commit) -> Result<Outcome, JournalError> {
        let at_ms = commit.at_ms;
        let (writes, committed) = match resolve(commit, TransactionReader::Sqlite(&self.db)) {
            Ok(resolved) => resolved,
            Err(error) if error.is_refusal() => return Ok(Err(error)),
            Err(error) => return Err(error),
        };
        let is_seal_due = writes.is_seal_due();
        self.db.write(writes)?;
        if is_seal_due {
            self.db.seal(at_ms)?;
        }
        self.last_at_ms = at_ms;
        self.has_written = true;
        Ok(Ok(committed))
    }

    /// Erases payloads: they are overwritten in the file and removed from the write-ahead log. `decide` runs inside
    /// the transaction, so that no other writer changes what it has read.
    pub(super) fn erase<E: From<JournalError>>(&mut self, decide: impl Fn() -> Result<Erase, E>) -> Result<u64, E> {
        let (mut erased, mut at_ms) = (0, 0);
        self.transact(Durability::Full, |writer| {
            let erase = decide()?;
            at_ms = erase.at_ms;
            erased = writer.db.erase(&erase)?;
            Ok::<_, E>(())
        })?;
        self.last_at_ms = at_ms;
        self.has_written = true;
        self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)");
        self.announce();
        Ok(erased)
    }

    /// Runs `work` in a transaction: all of it is stored, or none. Returns how long the sync took, if there was one.
    pub(super) fn transact<E: From<JournalError>>(
        &mut self,
        strength: Durability,
        work: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<Option<Duration>, E> {
        if let Some(error) = &self.broken {
            return Err(error.clone().into());
        }
        let strength = strength.max(self.weakest);
        self.set_strength(strength)?;
        self.db.run(|conn| conn.prepare_cached("BEGIN IMMEDIATE")?.execute([]))?;
        let before = self.db.conn.total_changes();
        let ended = self.db.recall().map_err(E::from).and_then(|()| work(self)).and_then(|()| {
            let started = Instant::now();
            self.end()?;
            self.expect_same_files()?;
            Ok(started)
        });
        match ended {
            Ok(_) if strength == Durability::Normal => Ok(None),
            Ok(started) => {
                // A transaction without changes syncs nothing, but the commits before it must be on the disk.
                if self.db.conn.total_changes() == before {
                    self.sync_log()?;
                }
                Ok(Some(started.elapsed()))
            }
            Err(error) => {
                self.db.known.forget();
                if !self.db.conn.is_autocommit() {
                    self.broken = self.db.run(|conn| conn.execute_batch("ROLLBACK")).err().or(self.broken.take());
                }
                Err(error)
            }
        }
    }

    fn end(&mut self) -> Result<(), JournalError> {
        let ended = self.db.conn.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        ended.map(drop).map_err(|error| self.failed(&error))
    }

    /// Fails if the paths no longer lead to the files that the connection has open: writes to a deleted file are lost.
    /// Paths are compared, because closing another descriptor of the database would drop SQLite's locks on it.
    fn expect_same_files(&mut self) -> Result<(), JournalError> {
        let log = log_of(&self.db.path);
        for (path, known) in [(&self.db.path, &mut self.db.file), (&log, &mut self.log)] {
            let found = file_id(path);
            if found.is_none() || known.is_some_and(|known| Some(known) != found) {
                let removed = JournalError::Removed { path: path.clone() };
                self.broken = Some(removed.clone());
                return Err(removed);
            }
            *known = found;
        }
        Ok(())
    }

    fn failed(&mut self, error: &rusqlite::Error) -> JournalError {
        let problem = problem(&self.db.path, error);
        if matches!(problem, JournalError::Io { .. }) {
            self.broken = Some(problem.clone());
        }
        problem
    }

    fn set_strength(&mut self, strength: Durability) -> Result<(), JournalError> {
        if self.strength != strength {
            let sql = match strength {
                Durability::Normal => "PRAGMA synchronous = NORMAL",
                Durability::Full => "PRAGMA synchronous = FULL",
            };
            self.db.run(|conn| conn.execute_batch(sql))?;
            self.strength = strength;
        }
        Ok(())
    }

    /// Syncs the write-ahead log from outside. SQLite holds no locks on that file, so closing it again is safe.
    fn sync_log(&mut self) -> Result<(), JournalError> {
        let path = log_of(&self.db.path);
        File::open(&path).and_then(|log| log.sync_data()).map_err(|error| {
            let problem = JournalError::Io { path, detail: error.to_string() };
            self.broken = Some(problem.clone());
            problem
        })
    }

    /// Wakes the watchers in this process and in others.
    pub(super) fn announce(&mut self) {
        self.bell.ring();
        self.nudger.nudge();
    }

    /// Moves the write-ahead log into the database once it has grown. Runs after the answers, so that only the next
    /// commits wait for it.
    fn checkpoint_if_due(&mut self) {
        self.unchecked += 1;
        if self.unchecked < GROUPS_UNCHECKED || !self.jobs.is_empty() && self.unchecked < 2 * GROUPS_UNCHECKED {
            return;
        }
        self.unchecked = 0;
        let pages = self.db.conn.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get::<_, i64>(1));
        if pages.is_ok_and(|pages| pages > CHECKPOINT_PAGES) {
            self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)");
        }
    }

    /// A checkpoint that readers prevent is no failure; one that the disk refuses is.
    fn checkpoint(&mut self, sql: &str) {
        if let Err(error) = self.db.conn.query_row(sql, [], |_| Ok(())) {
            self.failed(&error);
        }
    }

    fn close(mut self) -> Result<(), JournalError> {
        let at_ms = self.last_at_ms;
        let sealed = if self.has_written {
            self.transact(Durability::Normal, |writer| writer.db.seal(at_ms)).map(drop)
        } else {
            Ok(())
        };
        self.announce();
        // Without waiting for readers: while they use the log, it stays, and a connection that closes later moves it.
        if self.db.conn.busy_handler(None::<fn(i32) -> bool>).is_ok() {
            self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)");
        }
        sealed
    }
}

impl SyncPacing {
    fn after(commits: usize, sync: Option<Duration>) -> Self {
        sync.map_or_else(Self::default, |sync| Self { commits, wait: (sync / PACE_SHARE).min(PACE_MAX) })
    }

    /// Waits until as many commits are there as last time, or for a small part of the time of a sync.
    fn keep(&self, jobs: &mpsc::Receiver<Job>) {
        if self.commits < 2 {
            return;
        }
        let started = Instant::now();
        while jobs.len() < self.commits && started.elapsed() < self.wait {
            thread::yield_now();
        }
    }
}
