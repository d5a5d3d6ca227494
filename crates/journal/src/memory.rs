//! The engine without a disk: for simulation and tests.
//!
//! It stores what `transaction` says in maps, as the other engine does in tables. It lives as long as one of its handles, so
//! a simulated crash drops the team and keeps the store. All strengths are the same here.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use max_team_core::hash::Hash;
use max_team_core::id::{EnvelopeId, WorkerId};
use max_team_core::limits::INLINE_BYTES_MAX;

use crate::commit::{Append, Commit, Committed, Projection};
use crate::entry::{Entry, Head};
use crate::erase::Erase;
use crate::error::JournalError;
use crate::fault::{CommitStep, FaultInjector};
use crate::limits::ERASE_TRIES_MAX;
use crate::outbox::{OutboxPart, PartState};
use crate::read::{Cursor, ListedRow, Snapshot};
use crate::seal::Seal;
use crate::system_events::{self, RowChange, SystemEvent};
use crate::timer::Timer;
use crate::transaction::{OutboxRecord, SentMessage, TransactionReader, Writes, resolve, resolve_own};
use crate::watch::Signal;
use crate::worker::{Owner, WorkerInfo};

/// One handle on a store.
#[derive(Debug, Default)]
pub(crate) struct MemoryEngine {
    store: Arc<Store>,
    closed: AtomicBool,
    life: FaultInjector,
}

/// What its handles share.
#[derive(Debug, Default)]
pub(crate) struct Store {
    tables: Mutex<Tables>,
    bell: Arc<Signal>,
}

/// The log and the rows.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tables {
    /// Entry `n` is at `n - 1`; a payload that is not inline is in `blobs`.
    entries: Vec<Entry>,
    streams: BTreeMap<String, Stream>,
    blobs: HashMap<Hash, Vec<u8>>,
    rows: DerivedRows,
    owners: HashMap<String, Owner>,
    workers: HashMap<WorkerId, WorkerInfo>,
}

#[derive(Debug, Default, Clone)]
struct Stream {
    head: Head,
    seqs: Vec<u64>,
}

/// What can be rebuilt from the log.
#[derive(Debug, Default, Clone, PartialEq)]
struct DerivedRows {
    mail: BTreeMap<EnvelopeId, MailRow>,
    timers: BTreeMap<String, TimerRow>,
    parts: BTreeMap<String, PartRow>,
    projections: BTreeMap<(String, String), (i64, Vec<u8>)>,
    snapshots: BTreeMap<String, Snapshot>,
}

#[derive(Debug, Clone, PartialEq)]
struct MailRow {
    seq: u64,
    taken: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
struct TimerRow {
    due_at_ms: i64,
    seq: u64,
}

#[derive(Debug, Clone, PartialEq)]
struct PartRow {
    seq: u64,
    state: PartState,
    native: Option<String>,
}

impl Store {
    /// The tables; a panic elsewhere cannot have left them half written, for a commit is resolved before the first write.
    pub(crate) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryEngine {
    pub(crate) fn reopen(&self) -> Self {
        Self { store: Arc::clone(&self.store), ..Self::default() }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn life(&self) -> &FaultInjector {
        &self.life
    }

    pub(crate) fn bell(&self) -> &Arc<Signal> {
        &self.store.bell
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn open_tables(&self) -> Result<MutexGuard<'_, Tables>, JournalError> {
        if self.is_closed() {
            return Err(JournalError::Closed);
        }
        Ok(self.store.tables())
    }

    /// Stores a commit, or what the handle's faults make of it.
    pub(crate) async fn commit(&self, commit: Commit) -> Result<Committed, JournalError> {
        self.life.go_on().await;
        let mut all = Committed::default();
        for step in self.life.arrive(commit).await {
            self.life.go_on().await;
            match self.take(step)? {
                Some(committed) => join(&mut all, committed),
                None => self.life.go_on().await,
            }
        }
        self.store.bell.ring();
        Ok(all)
    }

    /// One transaction; nothing if the process has died before it.
    fn take(&self, step: CommitStep) -> Result<Option<Committed>, JournalError> {
        let mut tables = self.open_tables()?;
        if !self.life.before(&step, &mut tables) {
            return Ok(None);
        }
        let (kept, at_ms) = (step.kept(), step.commit.at_ms);
        let (writes, committed) = resolve(step.commit, TransactionReader::Memory(&tables))?;
        let is_seal_due = writes.is_seal_due();
        tables.write(writes);
        if is_seal_due {
            tables.seal(at_ms)?;
        }
        self.life.after(kept, &mut tables);
        Ok(Some(committed))
    }

    pub(crate) fn claim(&self, resource: &str, worker: WorkerId) -> Result<u64, JournalError> {
        let mut tables = self.open_tables()?;
        let owner = tables.owner(resource).unwrap_or_default();
        let mut epoch = owner.epoch;
        if owner.worker != Some(worker) {
            if let Some(by) = owner.worker.and_then(|worker| tables.workers.get(&worker)) {
                return Err(JournalError::Owned { resource: resource.to_owned(), by: Box::new(by.clone()) });
            }
            epoch += 1;
            tables.owners.insert(resource.to_owned(), Owner { worker: Some(worker), epoch });
        }
        Ok(epoch)
    }

    pub(crate) fn release(&self, resource: &str, worker: WorkerId, epoch: u64) -> Result<(), JournalError> {
        let mut tables = self.open_tables()?;
        if tables.owner(resource) == Some(Owner { worker: Some(worker), epoch }) {
            tables.owners.insert(resource.to_owned(), Owner { worker: None, epoch });
        }
        Ok(())
    }

    /// `decide` reads these tables, which is impossible while they are locked. So its decision counts only if nothing
    /// was written meanwhile; otherwise it decides again.
    pub(crate) fn erase<E: From<JournalError>>(&self, decide: impl Fn() -> Result<Erase, E>) -> Result<u64, E> {
        for _ in 0..ERASE_TRIES_MAX {
            let seen = self.open_tables()?.last_seq();
            let erase = decide()?;
            let tables = self.open_tables()?;
            if tables.last_seq() == seen {
                return Ok(self.erase_in(tables, &erase)?);
            }
        }
        Err(JournalError::Busy { path: PathBuf::from(":memory:") }.into())
    }

    fn erase_in(&self, mut tables: MutexGuard<'_, Tables>, erase: &Erase) -> Result<u64, JournalError> {
        let writes = resolve_own(erase.append()?, erase.at_ms, TransactionReader::Memory(&tables))?;
        tables.write(writes);
        let mut erased = 0;
        for hash in &erase.payloads {
            let was_blob = tables.blobs.remove(hash).is_some();
            for entry in &mut tables.entries {
                let spared = entry.stream == system_events::SEAL || entry.stream == system_events::ERASED;
                if entry.payload_hash == *hash && !spared {
                    erased += u64::from(entry.payload.take().is_some() || was_blob);
                }
            }
        }
        tables.unlist(&erase.payloads);
        erase.rows.iter().for_each(|row| tables.rows.change(RowChange::Projection(row.clone())));
        drop(tables);
        self.store.bell.ring();
        Ok(erased)
    }

    pub(crate) fn close(&self) -> Result<(), JournalError> {
        let mut tables = self.open_tables()?;
        let at_ms = tables.entries.last().map_or(0, |entry| entry.at_ms);
        let sealed = tables.seal(at_ms);
        drop(tables);
        self.closed.store(true, Ordering::Release);
        self.store.bell.ring();
        sealed
    }

    /// A store with these entries as its log, numbered and chained anew, and nothing derived from them yet.
    pub(crate) fn of_log(entries: Vec<Entry>) -> Self {
        let mut writes = Writes::default();
        for (seq, entry) in (1..).zip(entries) {
            let head = writes.heads.entry(entry.stream.clone()).or_default();
            let is_erased = entry.payload.is_none();
            let append = Append {
                stream: entry.stream,
                event: entry.event,
                version: entry.version,
                payload: entry.payload.unwrap_or_default(),
                actor: entry.actor,
                cause: entry.cause,
            };
            let mut linked = Entry::link(append, seq, entry.at_ms, head);
            linked.payload = linked.payload.filter(|_| !is_erased);
            writes.entries.push(linked);
        }
        let memory = Self::default();
        memory.store.tables().write(writes);
        memory
    }

    pub(crate) fn rebuild(&self, project: impl Fn(&Entry) -> Vec<Projection>) -> Result<(), JournalError> {
        let mut tables = self.open_tables()?;
        let mut rows = Vec::new();
        for seq in 1..=tables.last_seq() {
            let Some(entry) = tables.entry(seq) else { continue };
            if let Some(own) = SystemEvent::read(&entry)? {
                own.rows(seq, &mut rows);
            }
            rows.extend(project(&entry).into_iter().map(RowChange::Projection));
        }
        tables.rows = DerivedRows::default();
        rows.into_iter().for_each(|row| tables.rows.change(row));
        Ok(())
    }
}

/// What became of a commit that was stored in several transactions.
fn join(all: &mut Committed, committed: Committed) {
    if all.first_seq == 0 {
        all.first_seq = committed.first_seq;
    }
    all.last_seq = all.last_seq.max(committed.last_seq);
    for (stream, stream_seq) in committed.heads {
        match all.heads.iter_mut().find(|(name, _)| *name == stream) {
            Some((_, head)) => *head = stream_seq,
            None => all.heads.push((stream, stream_seq)),
        }
    }
}

impl Tables {
    /// Restores an earlier state of the log and its rows. Owners and live workers stay, because they are not part of
    /// the log.
    pub(crate) fn fall_back(&mut self, then: Self) {
        let (owners, workers) = (std::mem::take(&mut self.owners), std::mem::take(&mut self.workers));
        *self = Self { owners, workers, ..then };
    }

    pub(crate) fn begin(&mut self, info: WorkerInfo) {
        self.workers.insert(info.id, info);
    }

    pub(crate) fn end(&mut self, worker: WorkerId) {
        self.workers.remove(&worker);
    }

    /// Ends all workers, as the kernel does when their process dies.
    pub(crate) fn end_workers(&mut self) {
        self.workers.clear();
    }

    fn write(&mut self, writes: Writes) {
        for mut entry in writes.entries {
            if entry.payload.as_ref().is_some_and(|payload| payload.len() > INLINE_BYTES_MAX) {
                let payload = entry.payload.take().unwrap_or_default();
                self.blobs.entry(entry.payload_hash).or_insert(payload);
            }
            self.streams.entry(entry.stream.clone()).or_default().seqs.push(entry.seq);
            self.entries.push(entry);
        }
        for (stream, head) in writes.heads {
            self.streams.entry(stream).or_default().head = head;
        }
        for (hash, bytes) in writes.blobs {
            self.blobs.entry(hash).or_insert(bytes);
        }
        writes.rows.into_iter().for_each(|row| self.rows.change(row));
    }

    /// Removes the journal's own rows that were derived from erased entries: a rebuild would not make them.
    fn unlist(&mut self, payloads: &[Hash]) {
        let is_gone = |entry: &&Entry| {
            let spared = entry.stream == system_events::SEAL || entry.stream == system_events::ERASED;
            payloads.contains(&entry.payload_hash) && !spared
        };
        let (mut seqs, mut streams) = (HashSet::new(), HashSet::new());
        for entry in self.entries.iter().filter(is_gone) {
            seqs.insert(entry.seq);
            streams.insert(entry.stream.clone());
        }
        self.rows.mail.retain(|_, row| !seqs.contains(&row.seq));
        self.rows.timers.retain(|_, row| !seqs.contains(&row.seq));
        self.rows.parts.retain(|_, row| !seqs.contains(&row.seq));
        self.rows.snapshots.retain(|stream, _| !streams.contains(stream));
    }

    pub(crate) fn living(&self) -> Vec<WorkerInfo> {
        self.workers.values().cloned().collect()
    }

    /// Seals what no seal covers yet, if that is more than the last seal itself.
    fn seal(&mut self, at_ms: i64) -> Result<(), JournalError> {
        let last = self.streams.get(system_events::SEAL).and_then(|stream| stream.seqs.last()).copied();
        let before = match last.and_then(|seq| self.entry(seq)) {
            Some(entry) => Some(system_events::parse::<Seal>(&entry, entry.payload.as_deref().unwrap_or_default())?),
            None => None,
        };
        if last.unwrap_or(0) == self.last_seq() {
            return Ok(());
        }
        let mut seal = Seal::after(before.as_ref());
        let skipped = usize::try_from(seal.to_seq).unwrap_or(usize::MAX);
        self.entries.iter().skip(skipped).for_each(|entry| seal.add(entry.seq, &entry.hash));
        let writes = resolve_own(seal.append()?, at_ms, TransactionReader::Memory(self))?;
        self.write(writes);
        Ok(())
    }
}

impl DerivedRows {
    fn change(&mut self, row: RowChange) {
        match row {
            RowChange::Mail { id, seq } => drop(self.mail.insert(id, MailRow { seq, taken: None })),
            RowChange::Taken { id, seq } => {
                if let Some(mail) = self.mail.get_mut(&id) {
                    mail.taken = Some(seq);
                }
            }
            RowChange::Timer { id, due_at_ms, seq } => drop(self.timers.insert(id, TimerRow { due_at_ms, seq })),
            RowChange::NoTimer { id } => drop(self.timers.remove(&id)),
            RowChange::Part { id, seq } => {
                self.parts.insert(id, PartRow { seq, state: PartState::Pending, native: None });
            }
            RowChange::PartMoved { id, state, native } => {
                if let Some(part) = self.parts.get_mut(&id) {
                    (part.state, part.native) = (state, native);
                }
            }
            RowChange::Projection(Projection::Put { table, key, value, sort_ms }) => {
                self.projections.insert((table.into_owned(), key), (sort_ms, value));
            }
            RowChange::Projection(Projection::Raise { table, key, value }) => {
                let row = self.projections.entry((table.into_owned(), key)).or_default();
                if value > row.1 {
                    *row = (0, value);
                }
            }
            RowChange::Projection(Projection::Delete { table, key }) => {
                self.projections.remove(&(table.into_owned(), key));
            }
            RowChange::Projection(Projection::Snapshot { stream, stream_seq, version, state }) => {
                self.snapshots.insert(stream, Snapshot { stream_seq, version, state });
            }
        }
    }
}

impl Tables {
    pub(crate) fn last_seq(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.seq)
    }

    pub(crate) fn head(&self, stream: &str) -> Head {
        self.streams.get(stream).map(|stream| stream.head).unwrap_or_default()
    }

    pub(crate) fn heads(&self) -> Vec<(String, Head)> {
        self.streams.iter().map(|(name, stream)| (name.clone(), stream.head)).collect()
    }

    pub(crate) fn envelope(&self, id: EnvelopeId) -> Option<SentMessage> {
        let mail = self.rows.mail.get(&id)?;
        Some(SentMessage { stream: self.stored(mail.seq)?.stream.clone(), taken: mail.taken.is_some() })
    }

    pub(crate) fn has_timer(&self, id: &str) -> bool {
        self.rows.timers.contains_key(id)
    }

    pub(crate) fn part_state(&self, id: &str) -> Option<OutboxRecord> {
        let part = self.rows.parts.get(id)?;
        Some(OutboxRecord { stream: self.stored(part.seq)?.stream.clone(), state: part.state })
    }

    pub(crate) fn owner(&self, resource: &str) -> Option<Owner> {
        self.owners.get(resource).copied()
    }

    pub(crate) fn living_owner(&self, resource: &str) -> Option<WorkerInfo> {
        self.workers.get(&self.owner(resource)?.worker?).cloned()
    }

    fn stored(&self, seq: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(seq.checked_sub(1)?).ok()?)
    }

    fn entry(&self, seq: u64) -> Option<Entry> {
        let mut entry = self.stored(seq)?.clone();
        entry.payload = entry.payload.or_else(|| self.blobs.get(&entry.payload_hash).cloned());
        Some(entry)
    }

    pub(crate) fn read(&self, stream: &str, after: u64, limit: usize) -> Vec<Entry> {
        let Some(stream) = self.streams.get(stream) else { return Vec::new() };
        let skipped = usize::try_from(after).unwrap_or(usize::MAX);
        stream.seqs.iter().skip(skipped).take(limit).filter_map(|seq| self.entry(*seq)).collect()
    }

    pub(crate) fn read_all(&self, after: u64, limit: usize) -> Vec<Entry> {
        (after.saturating_add(1)..=self.last_seq()).take(limit).filter_map(|seq| self.entry(seq)).collect()
    }

    pub(crate) fn read_event(&self, event: &str, after: u64, limit: usize) -> Vec<Entry> {
        let entries = (after.saturating_add(1)..=self.last_seq()).filter_map(|seq| self.entry(seq));
        entries.filter(|entry| entry.event == event).take(limit).collect()
    }

    pub(crate) fn scan(
        &self,
        after: u64,
        each: &mut dyn FnMut(Entry) -> Result<ControlFlow<()>, JournalError>,
    ) -> Result<(), JournalError> {
        for entry in (after.saturating_add(1)..=self.last_seq()).filter_map(|seq| self.entry(seq)) {
            if each(entry)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.blobs.get(hash).cloned()
    }

    pub(crate) fn snapshot(&self, stream: &str) -> Option<Snapshot> {
        self.rows.snapshots.get(stream).cloned()
    }

    pub(crate) fn pending_mail(&self, address: &str) -> Vec<Entry> {
        let Some(stream) = self.streams.get(&system_events::mail_stream(address)) else { return Vec::new() };
        let mut seqs: Vec<u64> =
            self.rows.mail.values().filter(|mail| mail.taken.is_none()).map(|mail| mail.seq).collect();
        seqs.retain(|seq| stream.seqs.binary_search(seq).is_ok());
        seqs.sort_unstable();
        seqs.into_iter().filter_map(|seq| self.entry(seq)).collect()
    }

    pub(crate) fn mailboxes(&self) -> Vec<String> {
        let open = self.rows.mail.values().filter(|mail| mail.taken.is_none());
        let streams: BTreeSet<String> =
            open.filter_map(|mail| self.stored(mail.seq)).map(|stored| stored.stream.clone()).collect();
        streams.into_iter().collect()
    }

    pub(crate) fn get(&self, table: &str, key: &str) -> Option<Vec<u8>> {
        self.rows.projections.get(&(table.to_owned(), key.to_owned())).map(|(_, value)| value.clone())
    }

    pub(crate) fn list(&self, table: &str, limit: usize, after: Option<&Cursor>) -> Vec<ListedRow> {
        let mut items: Vec<ListedRow> = self
            .rows
            .projections
            .iter()
            .filter(|((kind, _), _)| kind == table)
            .map(|((_, key), (sort_ms, value))| ListedRow { key: key.clone(), sort_ms: *sort_ms, value: value.clone() })
            .filter(|item| after.is_none_or(|after| item.cursor() < *after))
            .collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.cursor()));
        items.truncate(limit);
        items
    }

    /// Timers that are due in the range, soonest first.
    pub(crate) fn timers(&self, after_ms: i64, upto_ms: i64, limit: usize) -> Result<Vec<Timer>, JournalError> {
        let in_range = self.rows.timers.iter().filter(|(_, row)| row.due_at_ms > after_ms && row.due_at_ms <= upto_ms);
        let mut due: Vec<_> = in_range.map(|(id, row)| (row.due_at_ms, id, row.seq)).collect();
        due.sort_unstable();
        due.truncate(limit);
        due.into_iter()
            .filter_map(|(_, _, seq)| self.entry(seq))
            .filter_map(|entry| Timer::of(&entry).transpose())
            .collect()
    }

    pub(crate) fn outbox(&self, state: PartState, to: &str, limit: usize) -> Result<Vec<OutboxPart>, JournalError> {
        let in_state = self.rows.parts.values().filter(|part| part.state == state);
        let mut parts: Vec<_> = in_state.map(|part| (part.seq, part.native.clone())).collect();
        parts.sort_unstable();
        let stream = system_events::outbox_stream(to);
        let found = parts.into_iter().filter_map(|(seq, native)| Some((self.entry(seq)?, native)));
        let found = found.filter(|(entry, _)| entry.stream.starts_with(&stream)).take(limit);
        found.filter_map(|(entry, native)| OutboxPart::of(&entry, state, native).transpose()).collect()
    }
}
