//! Following the log as it grows.
//!
//! A watch catches up by reading, then sleeps until a bell rings: the one of this process after each commit, or the
//! one that another process rings through a nudge. A bell carries nothing; what happened is read from the log. So a
//! ring too many costs one empty read, and no watcher ever polls.

use std::collections::VecDeque;

use tokio::sync::watch;

use crate::Journal;
use crate::entry::Entry;
use crate::error::JournalError;
use crate::limits::WATCH_ENTRIES_MAX;

/// Wakes the watchers of one handle.
#[derive(Debug)]
pub(crate) struct Signal(watch::Sender<()>);

impl Default for Signal {
    fn default() -> Self {
        Self(watch::Sender::new(()))
    }
}

impl Signal {
    pub(crate) fn ring(&self) {
        self.0.send_replace(());
    }
}

/// Hints that another process may have written something.
#[derive(Debug)]
pub struct Notifications(watch::Receiver<()>);

impl Notifications {
    pub(crate) fn new(bell: &Signal) -> Self {
        Self(bell.0.subscribe())
    }

    /// The next hint; several that come together are one. Ends with `Closed` when the journal is gone.
    pub async fn next(&mut self) -> Result<(), JournalError> {
        self.0.changed().await.map_err(|_| JournalError::Closed)
    }
}

/// The log from some entry on, including what is yet to come.
#[derive(Debug)]
pub struct Watch {
    journal: Journal,
    rings: watch::Receiver<()>,
    after_seq: u64,
    read: VecDeque<Entry>,
}

impl Watch {
    /// The bell must be able to ring (the nudges must be heard) before this is called: what was committed before is
    /// read, what is committed later rings.
    pub(crate) fn new(journal: Journal, bell: &Signal, after_seq: u64) -> Self {
        Self { journal, rings: bell.0.subscribe(), after_seq, read: VecDeque::new() }
    }

    /// The next entry, as soon as there is one. Ends with `Closed` when the journal is closed. Dropping the future
    /// loses nothing.
    pub async fn next(&mut self) -> Result<Entry, JournalError> {
        loop {
            if let Some(entry) = self.try_next()? {
                return Ok(entry);
            }
            self.rings.changed().await.map_err(|_| JournalError::Closed)?;
        }
    }

    /// The next entry, if it is there already.
    pub fn try_next(&mut self) -> Result<Option<Entry>, JournalError> {
        if self.read.is_empty() {
            // Before the reading: what is committed meanwhile rings again.
            self.rings.mark_unchanged();
            self.read = self.journal.read_all(self.after_seq, WATCH_ENTRIES_MAX)?.into();
        }
        let entry = self.read.pop_front();
        self.after_seq = entry.as_ref().map_or(self.after_seq, |entry| entry.seq);
        Ok(entry)
    }
}
