//! The storage of a user's sessions as a whole: opened, backed up, verified, presented as evidence, and cleared of sessions.
//!
//! A process starts a team on a [`Storage`], and commands about storage use its verbs; none of them holds the journal itself.

mod forget;
mod rows;

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use max_team_core::id::SessionId;
use max_team_core::message::Principal;
use max_team_journal::{DriftReport, ExternalSeal, Journal, JournalError, Options, Report, Worker, WorkerInfo};
use max_team_tools::worktree::{Accept, MergeResult, Worktree, WorktreeError};
use max_team_tools::{AgentStore, OutputStore};
use tokio_util::sync::CancellationToken;

use crate::error::RuntimeError;
use crate::plan::Basis;
use crate::read_model::{EvidenceItem, Filter, ReadModel, WalkStep, WalkSummary};
use crate::reader::TeamReader;
use crate::rewind::Rewind;
use crate::session::Sessions;
use crate::worktree;

pub(crate) use forget::gone;
pub use forget::{ErasureOutcome as SessionsForgotten, Tombstone, forget_sessions, forks_of, prune_images};
pub use rows::{compare_rows, rebuild_rows};

/// The journal of a user, open in this process.
#[derive(Debug, Clone)]
pub struct Storage {
    pub(crate) journal: Journal,
}

/// For tests, which look into the journal beside the team.
impl From<Journal> for Storage {
    fn from(journal: Journal) -> Self {
        Self { journal }
    }
}

/// What a journal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    pub sessions: usize,
    pub entries: u64,
    /// The last use of a session.
    pub last_at_ms: Option<i64>,
}

impl Storage {
    /// Opens the journal of a folder, or makes one. `syncs_all`: every commit survives a power cut.
    pub fn open(home: &Path, syncs_all: bool) -> Result<Self, JournalError> {
        Journal::open(home, Options { sync_all_full: syncs_all, ..Options::default() }).map(Self::from)
    }

    /// Opens the journal for commands that mostly read: on a read-only disk those that write fail with the reason.
    pub fn open_read_only(home: &Path) -> Result<Self, JournalError> {
        Journal::open_read_only(home, Options::default()).map(Self::from)
    }

    /// Opens a journal that exists.
    pub fn open_existing(home: &Path) -> Result<Self, JournalError> {
        Journal::open_existing(home, Options::default()).map(Self::from)
    }

    /// Opens a journal that exists, like `open_read_only`.
    pub fn open_existing_read_only(home: &Path) -> Result<Self, JournalError> {
        Journal::open_existing_read_only(home).map(Self::from)
    }

    /// Opens a journal that exists, as far as it can be read: evidence is examined where it is.
    pub fn open_damaged(home: &Path) -> Result<Self, JournalError> {
        Journal::open_damaged(home).map(Self::from)
    }

    /// Opens a backup for reading.
    pub fn open_backup(file: &Path) -> Result<Self, JournalError> {
        Journal::look(file).map(Self::from)
    }

    /// Answers from what is stored, without a running team.
    pub fn reader(&self) -> TeamReader {
        TeamReader::new(self.journal.clone())
    }

    /// Why nothing can be written, if it was opened for reading for that reason. It then does not notice what other processes
    /// write.
    pub fn unwritable(&self) -> Option<JournalError> {
        self.journal.unwritable()
    }

    /// What it holds; `None` if it cannot be read.
    pub fn contents(&self) -> Option<Contents> {
        let rows = Sessions::new(&self.journal);
        let mut sessions = 0;
        rows.each_id(|_| sessions += 1).ok()?;
        let last_at_ms = rows.list(1).ok()?.first().map(|row| row.last_at_ms);
        Some(Contents { sessions, entries: self.journal.last_seq().ok()?, last_at_ms })
    }

    /// What a forecast of a plan is made from, under the budget of a new session.
    pub fn forecast_basis(&self, session_nano: Option<u64>) -> Basis {
        Basis::read(&self.journal, session_nano)
    }

    /// The number of its last entry.
    pub fn last_entry(&self) -> Result<u64, JournalError> {
        self.journal.last_seq()
    }

    /// Copies it into a new file; the report says whether the copy is sound.
    pub fn backup(&self, file: &Path) -> Result<Report, JournalError> {
        self.journal.backup(file)
    }

    /// Replaces the journal of a folder by a backup; what was there is kept in another file.
    pub async fn restore(home: &Path, file: &Path, kept: &Path) -> Result<Report, JournalError> {
        Journal::restore(home, file, kept).await
    }

    /// Faults of the database file; empty if it is sound.
    pub fn check_file(&self) -> Result<Vec<String>, JournalError> {
        self.journal.quick_check()
    }

    /// Checks every hash, chain and seal, and a seal that was kept elsewhere.
    pub fn verify(&self, seal: Option<ExternalSeal>) -> Result<Report, JournalError> {
        self.journal.verify_against(seal)
    }

    /// Compares every row and every stored state with the log; changes nothing.
    pub fn compare_rows(&self) -> Result<DriftReport, JournalError> {
        compare_rows(&self.journal)
    }

    /// Makes every row again from the log.
    pub fn rebuild_rows(&self) -> Result<(), JournalError> {
        rebuild_rows(&self.journal)
    }

    /// Walks over the wanted entries, as evidence; returns what was met on the way.
    pub fn records(
        &self,
        filter: &Filter,
        each: impl FnMut(EvidenceItem<'_>) -> ControlFlow<()>,
    ) -> Result<WalkSummary, RuntimeError> {
        ReadModel::new(&self.journal).records(filter, each)
    }

    /// Walks over the entries of the log, or of one session, as they are.
    pub fn entries(
        &self,
        session: Option<SessionId>,
        after_seq: u64,
        each: impl FnMut(WalkStep<'_>) -> ControlFlow<()>,
    ) -> Result<(), RuntimeError> {
        ReadModel::new(&self.journal).walk(session, after_seq, each)
    }

    /// The forks of these sessions; they stay when the sessions are forgotten.
    pub fn forks_of(&self, sessions: &[SessionId]) -> Result<Vec<SessionId>, RuntimeError> {
        forks_of(&self.journal, sessions)
    }

    /// Begins to forget sessions; `process` tells others who owns them meanwhile.
    pub fn forgetting(&self, home: &Path, process: WorkerInfo) -> Result<Forgetting, RuntimeError> {
        let worker = self.journal.worker(process)?;
        Ok(Forgetting { storage: self.clone(), home: home.to_owned(), worker })
    }

    /// Restores files of a session, open or not; `home` is where this user's journal is. Blocking.
    pub fn rewind(&self, home: &Path, session: SessionId) -> Rewind<'_> {
        Rewind::new(&self.journal, home, session)
    }

    /// Merges files of a worktree, once the agent's session says so, so that a rewind can undo it. Blocking.
    pub fn accept_worktree(
        &self,
        copy: &mut Worktree,
        accept: &Accept<'_>,
        by: &Principal,
        cancel: &CancellationToken,
    ) -> Result<MergeResult, WorktreeError> {
        worktree::accept_by(&self.journal, by, copy, accept, cancel)
    }
}

/// The answers that the HTTP server keeps to repeat them, beneath the user's folder.
pub const WEB_ANSWERS: &str = "serve/keys";

/// Forgets sessions, one after the other. No other process can open one of them meanwhile.
#[derive(Debug)]
pub struct Forgetting {
    storage: Storage,
    home: PathBuf,
    worker: Worker,
}

impl Forgetting {
    /// Forgets a session and the files that it keeps beside the journal; returns how many entries lost their content.
    pub async fn forget(&self, session: SessionId, by: &Principal) -> Result<u64, RuntimeError> {
        let journal = &self.storage.journal;
        let agents = ReadModel::new(journal).agents(session)?;
        let clear = || {
            AgentStore::files(&self.home, session).clear().map_err(|error| error.to_string())?;
            match std::fs::remove_dir_all(self.home.join(WEB_ANSWERS)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.to_string()),
                _ => {}
            }
            let stores = agents.iter().map(|row| OutputStore::of(&self.home, row.agent));
            stores.into_iter().try_for_each(|store| store.clear()).map_err(|error| error.to_string())
        };
        Ok(forget_sessions(journal, &self.worker, &[session], by, clear).await?.entries)
    }

    /// Ends it and closes the storage. With `frees_space`, the bytes of the erased contents are given back first; file contents
    /// only while no other process uses the journal.
    pub async fn finish(self, frees_space: bool) -> Result<Freed, RuntimeError> {
        let Self { storage: Storage { journal }, home, worker } = self;
        drop(worker);
        let is_used_by_others = !journal.living()?.is_empty();
        let bytes = match frees_space {
            true if is_used_by_others => journal.compact()?,
            true => prune_images(&journal, &home)? + journal.compact()?,
            false => 0,
        };
        journal.close().await?;
        Ok(Freed { bytes, is_used_by_others })
    }
}

/// The end of forgetting sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freed {
    pub bytes: u64,
    /// Whether other processes use the journal, so that not all space could be given back.
    pub is_used_by_others: bool,
}
