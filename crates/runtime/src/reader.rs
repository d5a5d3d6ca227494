//! The team, for commands that start none: stored answers, and messages that running sessions read.

use std::borrow::Cow;

use max_team_core::event::Event;
use max_team_core::id::EnvelopeId;
use max_team_journal::{Entry, Journal, Watch};

use crate::cache::Caches;
use crate::error::RuntimeError;
use crate::memory::Memories;
use crate::query::StoredQuestion;
use crate::stream::{Mark, Scope, StreamReader};
use crate::tasks::TaskLists;
use crate::user_mail::UserMail;

/// Reads the journal without a running team. Opening one needs neither settings nor models.
#[derive(Debug, Clone)]
pub struct TeamReader {
    journal: Journal,
}

impl TeamReader {
    pub(crate) fn new(journal: Journal) -> Self {
        Self { journal }
    }

    /// Answers a question from the journal.
    pub fn ask<Q: StoredQuestion>(&self, question: Q) -> Result<Q::Answer, RuntimeError> {
        question.read(&self.journal)
    }

    /// The stored and following events of a session, an agent or everything.
    pub fn stream(&self, scope: Scope, from: Mark) -> Result<StreamReader, RuntimeError> {
        StreamReader::open(&self.journal, scope, from)
    }

    /// Everything that is written to the log from now on, by any process.
    pub fn follow(&self) -> Result<LogFollower, RuntimeError> {
        Ok(LogFollower(self.journal.watch(self.journal.last_seq()?)?))
    }

    /// Messages and answers of a person; the process that has the session open reads them.
    pub fn post(&self) -> UserMail<'_> {
        UserMail::new(&self.journal)
    }

    /// Changes of the memory.
    pub fn memories(&self) -> Memories<'_> {
        Memories::new(&self.journal)
    }

    /// Changes of task lists.
    pub fn task_lists(&self) -> TaskLists<'_> {
        TaskLists::new(&self.journal)
    }

    /// Changes of kept answers.
    pub fn caches(&self) -> Caches<'_> {
        Caches::new(&self.journal)
    }
}

/// Follows the log.
#[derive(Debug)]
pub struct LogFollower(Watch);

impl LogFollower {
    /// The next entry.
    pub async fn next(&mut self) -> Result<LogEntry, RuntimeError> {
        Ok(LogEntry(self.0.next().await?))
    }
}

/// An entry of the log.
#[derive(Debug)]
pub struct LogEntry(Entry);

impl LogEntry {
    /// The stream it belongs to.
    pub fn stream(&self) -> &str {
        &self.0.stream
    }

    /// The name of what happened.
    pub fn name(&self) -> &str {
        &self.0.event
    }

    /// What happened, if it is an event of the team.
    pub fn event(&self) -> Option<Event> {
        serde_json::from_slice(self.0.payload.as_deref()?).ok()
    }

    /// Whether it says that a message was acknowledged.
    pub fn takes(&self, message: EnvelopeId) -> bool {
        let payload = self.0.payload.as_deref().filter(|_| self.0.event == Cow::Borrowed("acked"));
        let ids: Option<Vec<EnvelopeId>> = payload.and_then(|payload| serde_json::from_slice(payload).ok());
        ids.is_some_and(|ids| ids.contains(&message))
    }
}
