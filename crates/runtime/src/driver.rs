//! The driver of a state machine: decide, commit, apply, do. An agent's loop has one, and so has a plan's.
//!
//! The machine may be ahead of the log while several decisions wait for one commit. A loop whose commit fails is dropped:
//! the log is the truth, and the next loop folds it again.

use std::ops::Deref;
use std::sync::Arc;

use max_team_core::event::Event;
use max_team_core::machine::Machine;
use max_team_journal::{Commit, Entry, Expect, Journal, Projection};

use crate::active_session::{ActiveSession, HandedIn};
use crate::agent::Newcomer;
use crate::error::RuntimeError;
use crate::handle::{Notice, Origin};
use crate::notices::Ticket;
use crate::rows::{self, event_of};
use crate::shared::{append, commit_at, now_ms};

/// A machine with its place in its stream, and the notices about its commits that frontends have not got yet.
pub(crate) struct Driver<M> {
    pub(crate) machine: M,
    /// Also the address of its mailbox.
    pub(crate) stream: String,
    /// Who it is, for frontends.
    pub(crate) origin: Arc<Origin>,
    /// Entries of the stream.
    pub(crate) head: u64,
    /// The head at the last snapshot.
    snapshot_at: u64,
    /// Events that the machine has applied before their commit.
    ahead: usize,
    untold: Vec<(Ticket, Vec<Notice>)>,
}

/// A commit on its way into the journal, with the agents that begin to exist with it.
pub(crate) struct Part {
    handed: HandedIn,
    newcomers: Vec<Newcomer>,
    events: usize,
}

impl Part {
    /// The first half of a commit with this number of events of a stream: it waits in the journal's queue.
    pub(crate) async fn hand_in(
        active: &Arc<ActiveSession>,
        commit: Commit,
        newcomers: Vec<Newcomer>,
        events: usize,
    ) -> Result<Self, RuntimeError> {
        Ok(Self { handed: active.hand_in(commit).await?, newcomers, events })
    }
}

impl<M> Deref for Driver<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.machine
    }
}

impl<M: Machine> Driver<M> {
    pub(crate) fn new(stream: String, origin: Origin, machine: M, head: u64) -> Self {
        let origin = Arc::new(origin);
        Self { machine, stream, origin, head, snapshot_at: head, ahead: 0, untold: Vec::new() }
    }

    /// Decides and applies ahead of the commit: the next decision builds on it.
    pub(crate) fn step(&mut self, input: M::Input, now: &M::Now<'_>, at_ms: i64) -> Vec<Event> {
        let events = self.machine.step(input, now, at_ms);
        self.ahead += events.len();
        events
    }

    /// Applies what was decided for the next commit, as far as that is not done.
    pub(crate) fn look_ahead(&mut self, events: &[Event], at_ms: i64) {
        events.iter().skip(self.ahead).for_each(|event| self.machine.apply(event, at_ms));
        self.ahead = events.len();
    }

    /// A commit to the stream, behind this number of events that are on their way.
    pub(crate) fn commit_at(&self, active: &ActiveSession, at_ms: i64, behind: usize) -> Commit {
        let mut commit = commit_at(at_ms);
        commit.fence = Some(active.fence.clone());
        commit.expect.push((self.stream.clone(), Expect::At(self.head + behind as u64)));
        let name = &self.origin.name;
        commit.actor = if self.origin.agent.is_some() { format!("agent:{name}") } else { name.to_string() };
        commit
    }

    /// Adds an event of the stream to a commit, with its rows.
    pub(crate) fn append(&self, event: &Event, commit: &mut Commit) -> Result<(), RuntimeError> {
        commit.appends.push(append(&self.stream, event, &commit.actor)?);
        commit.projections.extend(rows::project(&self.stream, commit.at_ms, event));
        Ok(())
    }

    /// The second half: it is in the journal, and its newcomers begin. They get ready while the journal writes.
    pub(crate) async fn stored(
        &mut self,
        active: &Arc<ActiveSession>,
        part: Part,
        at_ms: i64,
    ) -> Result<(), RuntimeError> {
        let Part { handed, mut newcomers, events } = part;
        newcomers.iter_mut().for_each(|newcomer| newcomer.prepare(at_ms));
        active.stored(handed).await?;
        self.head += events as u64;
        newcomers.into_iter().for_each(|newcomer| newcomer.begin(active));
        Ok(())
    }

    /// Everything that was decided is committed: the machine applies what it has not yet.
    pub(crate) fn catch_up(&mut self, events: &[Event], at_ms: i64) {
        self.look_ahead(events, at_ms);
        self.ahead = 0;
    }

    /// Announces events with the next `tell`, at their place in the order of commits.
    pub(crate) fn will_tell(
        &mut self,
        active: &ActiveSession,
        word: Ticket,
        at_ms: i64,
        events: impl IntoIterator<Item = Event>,
    ) {
        let (session, from) = (active.session, &self.origin);
        let notice = |event| Notice::Event { session, from: Arc::clone(from), at_ms, event: Arc::new(event) };
        self.untold.push((word, events.into_iter().map(notice).collect()));
    }

    pub(crate) fn has_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    pub(crate) fn tell(&mut self) {
        self.untold.drain(..).for_each(|(word, notices)| word.tell(notices));
    }

    /// Keeps folding short: at most one snapshot per doubling of the stream, of what the log says rather than of the machine,
    /// whose times may differ from those of the commits.
    pub(crate) async fn snapshot(&mut self, active: &ActiveSession) -> Result<(), RuntimeError> {
        if self.head < M::SNAPSHOT_ENTRIES_MIN.max(self.snapshot_at.saturating_mul(2)) {
            return Ok(());
        }
        self.snapshot_at = self.head;
        let (shared, stream) = (Arc::clone(&active.shared), self.stream.clone());
        let state = move || {
            let (machine, head) = fold::<M>(&shared.journal, &stream)?;
            Ok::<_, RuntimeError>((serde_json::to_vec(&machine).ok(), head))
        };
        let Ok(folded) = tokio::task::spawn_blocking(state).await else { return Ok(()) };
        let (Some(state), stream_seq) = folded? else { return Ok(()) };
        let mut commit = commit_at(now_ms());
        commit.fence = Some(active.fence.clone());
        let (stream, version) = (self.stream.clone(), M::SNAPSHOT_VERSION);
        commit.projections.push(Projection::Snapshot { stream, stream_seq, version, state });
        active.shared.keep(commit).await
    }
}

/// Folds a stream into its machine; returns also how many entries it has.
pub(crate) fn fold<M: Machine>(journal: &Journal, stream: &str) -> Result<(M, u64), RuntimeError> {
    let apply = |machine: &mut M, entry: &Entry| {
        machine.apply(&event_of(entry)?, entry.at_ms);
        Ok::<_, RuntimeError>(())
    };
    let folded = journal.fold(stream, M::SNAPSHOT_VERSION, M::default(), apply)?;
    Ok((folded.state, folded.stream_seq))
}
