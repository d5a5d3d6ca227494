//! The list of tasks that the agents of a session share: a stream, the rows that it makes, and who writes to it.
//!
//! Agents of the session and people in other processes write to one stream. Whoever does reads where the stream stands,
//! then the rows, decides in `core::tasks`, and commits for exactly that state; who comes too late decides anew. So
//! nothing is kept in memory that could be old, and no two hold one task. Tasks of the plans at work are listed beside
//! them and never changed here.

mod lines;
mod rows;
mod tools;

use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::limits::LIST_WRITE_TRIES_MAX;
use max_team_core::message::Principal;
use max_team_core::tasks::{Doer, Input, Item, Move, Status, Tasks};
use max_team_journal::{Commit, Entry, Expect, Journal, JournalError, Strength};

use crate::error::RuntimeError;
use crate::rows::event_of;
use crate::shared::{append, commit_at, now_ms};

pub use lines::Line;
pub(crate) use lines::whole;
pub(crate) use rows::{is_any, project};
pub(crate) use tools::{Ask, all as tools};

/// The lists of a journal; needs no house.
#[derive(Debug, Clone, Copy)]
pub struct TaskLists<'j> {
    journal: &'j Journal,
}

/// A change that somebody is about to commit: events for a list's stream, and where that stood when they were decided.
#[derive(Debug)]
pub(crate) struct Change {
    pub stream: String,
    pub head: u64,
    pub events: Vec<Event>,
    /// The list as it will be.
    pub tasks: Tasks,
}

/// The stream of a session's list.
pub(crate) fn stream(session: SessionId) -> String {
    format!("{}{session}", rows::STREAM)
}

/// Entries of a list's stream that are read at once.
pub(crate) const LIST_READ: usize = 256;

/// What was put on a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Put {
    /// A task.
    Added,
    /// One that was there, to somebody by name.
    Given(String),
}

/// What a person, or the lead as the actor of its entries, has put on a list with one: that is newer than a stop before it. What a
/// colleague lists may be the last thing it did before it read of the stop.
fn put(entry: &Entry, lead: &str) -> Option<Put> {
    let is_said = entry.actor.starts_with("user/") || entry.actor == lead;
    match event_of(entry).ok().filter(|_| is_said)? {
        Event::ItemAdded(_) => Some(Put::Added),
        Event::ItemMoved(moved) if moved.what == Move::Assigned => Some(Put::Given(moved.state.owner)),
        _ => None,
    }
}

/// Reads on in a list behind so many entries, and tells of all that was put there with how many there are then; how far it has come.
pub(crate) fn each_put(
    journal: &Journal,
    session: SessionId,
    mut read: u64,
    lead: &str,
    mut hear: impl FnMut(Put, u64),
) -> Result<u64, RuntimeError> {
    loop {
        let entries = journal.read(&stream(session), read, LIST_READ)?;
        for entry in &entries {
            read = entry.stream_seq;
            if let Some(put) = put(entry, lead) {
                hear(put, read);
            }
        }
        if entries.len() < LIST_READ {
            return Ok(read);
        }
    }
}

/// The tasks that can be begun with.
pub(crate) fn free(tasks: &Tasks) -> impl Iterator<Item = &Item> {
    let is_free = |item: &&Item| item.state.status == Status::Pending && tasks.blockers(item).next().is_none();
    tasks.items().filter(is_free)
}

/// Those of them that somebody may take: anybody's, and what is meant for it.
pub(crate) fn free_for<'t>(tasks: &'t Tasks, name: &'t str) -> impl Iterator<Item = &'t Item> {
    free(tasks).filter(move |item| item.state.owner.is_empty() || item.state.owner == name)
}

/// The user, as somebody who does something with a list.
pub fn user(by: &Principal) -> Doer {
    Doer { at: by.address(), name: by.user.clone(), steers: true }
}

impl<'j> TaskLists<'j> {
    /// Of this journal.
    pub fn new(journal: &'j Journal) -> Self {
        Self { journal }
    }

    /// A session's list as it stands.
    pub fn tasks(&self, session: SessionId) -> Result<Tasks, RuntimeError> {
        rows::read(self.journal, session)
    }

    /// What it takes to do what somebody wants; the caller commits it. No events: it is so already.
    pub(crate) fn change(&self, session: SessionId, doer: &Doer, input: &Input) -> Result<Change, RuntimeError> {
        let stream = stream(session);
        // Where it stands is read first: what comes in between is seen as a conflict, never missed.
        let head = self.journal.head(&stream)?;
        let mut tasks = self.tasks(session)?;
        let events = tasks.decide(doer, input)?;
        events.iter().for_each(|event| tasks.apply(event));
        Ok(Change { stream, head, events, tasks })
    }

    /// Does what a person wants, and says what became of it.
    pub async fn write(&self, session: SessionId, by: &Principal, input: &Input) -> Result<Vec<Event>, RuntimeError> {
        let doer = user(by);
        let mut commit = commit_at(now_ms());
        // Whoever gave the command is told that it is done.
        commit.strength = Strength::Full;
        commit.actor = by.address();
        self.commit(session, &doer, input, commit).await
    }

    /// Decides and commits by itself, anew where somebody else was first.
    pub(crate) async fn commit(
        &self,
        session: SessionId,
        doer: &Doer,
        input: &Input,
        base: Commit,
    ) -> Result<Vec<Event>, RuntimeError> {
        for _ in 0..LIST_WRITE_TRIES_MAX {
            let change = self.change(session, doer, input)?;
            if change.events.is_empty() {
                return Ok(Vec::new());
            }
            let mut commit = base.clone();
            commit.expect.push((change.stream.clone(), Expect::At(change.head)));
            for event in &change.events {
                commit.projections.extend(crate::rows::project(&change.stream, commit.at_ms, event));
                commit.appends.push(append(&change.stream, event, &commit.actor)?);
            }
            match self.journal.commit(commit).await {
                Ok(_) => return Ok(change.events),
                Err(JournalError::Conflict { stream, .. }) if stream == change.stream => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(RuntimeError::Busy(stream(session)))
    }
}
