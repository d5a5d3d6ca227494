//! The task list that the agents of a session share: a stream, its rows, and the way to write to it.
//!
//! Agents of the session and people in other processes write to one stream. A writer reads the stream's head, then the
//! rows, decides in `core::task_list`, and commits for exactly that head; on a conflict it decides again. So no stale
//! state is kept in memory, and no two agents hold one task. Tasks of running plans are listed beside them and never
//! changed here.

mod lines;
mod rows;

use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::limits::LIST_WRITE_TRIES_MAX;
use max_team_core::message::{Principal, Role};
use max_team_core::task_list::{Claimant, ListRequest, ListTask, ListTaskStatus, TaskList};
use max_team_journal::{Commit, Durability, Expect, Journal, JournalError};

use crate::error::RuntimeError;
use crate::handle::require;
use crate::shared::{append, commit_at, now_ms};

pub use lines::ListedTask;
pub(crate) use lines::whole;
pub(crate) use rows::{is_any, project};

/// The task lists of a journal; needs no runtime.
#[derive(Debug, Clone, Copy)]
pub struct TaskLists<'j> {
    journal: &'j Journal,
}

/// A change to commit: events for a list's stream, and the head for which they were decided.
#[derive(Debug)]
pub(crate) struct ListChange {
    pub stream: String,
    pub head: u64,
    pub events: Vec<Event>,
    /// The list after the change.
    pub tasks: TaskList,
}

/// The stream of a session's list.
pub(crate) fn stream(session: SessionId) -> String {
    format!("{}{session}", rows::STREAM)
}

/// Entries of a list's stream that are read at once.
pub(crate) const LIST_READ: usize = 256;

/// The tasks that can be begun.
pub(crate) fn free(tasks: &TaskList) -> impl Iterator<Item = &ListTask> {
    let is_free =
        |item: &&ListTask| item.state.status == ListTaskStatus::Pending && tasks.blockers(item).next().is_none();
    tasks.items().filter(is_free)
}

/// The free tasks that an agent may take: those without an owner, and those meant for it.
pub(crate) fn free_for<'t>(tasks: &'t TaskList, name: &'t str) -> impl Iterator<Item = &'t ListTask> {
    free(tasks).filter(move |item| item.state.owner.is_empty() || item.state.owner == name)
}

/// The user as an actor on a list.
pub fn user(by: &Principal) -> Claimant {
    Claimant { at: by.address(), name: by.user.clone(), steers: true }
}

impl<'j> TaskLists<'j> {
    pub fn new(journal: &'j Journal) -> Self {
        Self { journal }
    }

    /// A session's list.
    pub fn tasks(&self, session: SessionId) -> Result<TaskList, RuntimeError> {
        rows::read(self.journal, session)
    }

    /// The change that an input needs; the caller commits it. No events: the list is already in that state.
    pub(crate) fn change(
        &self,
        session: SessionId,
        doer: &Claimant,
        input: &ListRequest,
    ) -> Result<ListChange, RuntimeError> {
        let stream = stream(session);
        // The head is read first, so that a write in between becomes a conflict.
        let head = self.journal.head(&stream)?;
        let mut tasks = self.tasks(session)?;
        let events = tasks.decide(doer, input)?;
        events.iter().for_each(|event| tasks.apply(event));
        Ok(ListChange { stream, head, events, tasks })
    }

    /// Carries out a person's change; returns its events.
    pub async fn write(
        &self,
        session: SessionId,
        by: &Principal,
        input: &ListRequest,
    ) -> Result<Vec<Event>, RuntimeError> {
        require(by, Role::Member)?;
        let doer = user(by);
        let mut commit = commit_at(now_ms());
        // The user is told that it is done, so it must survive a power cut.
        commit.strength = Durability::Full;
        commit.actor = by.address();
        self.commit(session, &doer, input, commit).await
    }

    /// Decides and commits; decides again if another writer was first.
    pub(crate) async fn commit(
        &self,
        session: SessionId,
        doer: &Claimant,
        input: &ListRequest,
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
