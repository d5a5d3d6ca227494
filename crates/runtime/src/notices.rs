//! Delivers notices to subscribers in commit order.
//!
//! A message can be read while the journal still writes it, so its reader may commit before the sender has published
//! its own notices. Therefore each loop takes a place in line before its decision becomes readable, and fills it once
//! the decision is stored; notices behind an empty place wait. A place that is dropped is skipped.
//!
//! Loops never wait for a frontend. Unread notices are queued; live pieces are left out if the queue is long, and a
//! frontend whose queue is full gets `Stopped` as its last notice.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use max_team_core::limits::{NOTICES_MAX, NOTICES_SHOWN_MAX};
use max_team_core::message::Envelope;
use tokio::sync::mpsc;

use crate::audit::{Audit, AuditFailure};
use crate::error::RuntimeError;
use crate::handle::Notice;
use crate::shared::lock;

#[derive(Debug)]
pub(crate) struct NoticeBus {
    audit: Option<Audit>,
    watchers: Mutex<Vec<mpsc::Sender<Notice>>>,
    line: Mutex<NoticeQueue>,
    /// Held while notices are sent, so that two threads cannot change their order.
    speaking: Mutex<()>,
}

#[derive(Debug, Default)]
struct NoticeQueue {
    /// The number of the first place.
    first: usize,
    /// `None`: the place is not filled yet.
    places: VecDeque<Option<Vec<Notice>>>,
}

/// A place in line.
#[derive(Debug)]
pub(crate) struct Ticket {
    notices: Arc<NoticeBus>,
    number: usize,
}

impl NoticeBus {
    pub(crate) fn new(audit: Option<Audit>) -> Arc<Self> {
        Arc::new(Self { audit, watchers: Mutex::default(), line: Mutex::default(), speaking: Mutex::default() })
    }

    /// Notices from now on.
    pub(crate) fn watch(&self) -> mpsc::Receiver<Notice> {
        self.watch_within(NOTICES_MAX)
    }

    fn watch_within(&self, notices_max: usize) -> mpsc::Receiver<Notice> {
        let (sender, receiver) = mpsc::channel(notices_max);
        lock(&self.watchers).push(sender);
        receiver
    }

    /// The next place in line.
    pub(crate) fn ticket(self: &Arc<Self>) -> Ticket {
        let mut line = lock(&self.line);
        line.places.push_back(None);
        Ticket { notices: Arc::clone(self), number: line.first + line.places.len() - 1 }
    }

    /// Sends a notice to every subscriber and the audit file, after all that was decided before.
    pub(crate) fn tell(self: &Arc<Self>, notice: Notice) {
        self.ticket().tell(vec![notice]);
    }

    /// Sends a live notice at once to every subscriber that keeps up.
    pub(crate) fn show(&self, notice: &Notice) {
        for watcher in lock(&self.watchers).iter() {
            // A subscriber that is behind gets the finished answer instead.
            if watcher.max_capacity() - watcher.capacity() < NOTICES_SHOWN_MAX {
                drop(watcher.try_send(notice.clone()));
            }
        }
    }

    /// Writes a message to the audit file.
    pub(crate) fn envelope(&self, envelope: &Envelope) {
        if let Some(audit) = &self.audit {
            audit.envelope(envelope);
        }
    }

    /// Writes the queued audit lines.
    pub(crate) fn close(&self) -> Result<(), AuditFailure> {
        self.audit.as_ref().map_or(Ok(()), Audit::close)
    }

    /// Whether the audit file could be written so far.
    pub(crate) fn check(&self) -> Result<(), AuditFailure> {
        self.audit.as_ref().map_or(Ok(()), Audit::check)
    }

    fn next(&self) -> Option<Vec<Notice>> {
        let mut line = lock(&self.line);
        let said = line.places.front_mut()?.take()?;
        line.places.pop_front();
        line.first += 1;
        Some(said)
    }

    fn speak(&self) {
        let _alone = lock(&self.speaking);
        while let Some(said) = self.next() {
            said.iter().for_each(|notice| self.hand_over(notice));
        }
    }

    fn hand_over(&self, notice: &Notice) {
        if let (Some(audit), Notice::Event { from, at_ms, event, .. }) = (&self.audit, notice) {
            audit.event(from, *at_ms, event);
        }
        lock(&self.watchers).retain(|watcher| {
            // The last slot is kept for the notice that no more follow.
            if watcher.capacity() > 1 {
                return watcher.try_send(notice.clone()).is_ok();
            }
            let error = Arc::new(RuntimeError::Behind(watcher.max_capacity()));
            drop(watcher.try_send(Notice::Stopped { session: notice.session(), whole: true, error }));
            false
        });
    }
}

impl Ticket {
    /// Fills the place, and sends everything up to the next empty place.
    pub(crate) fn tell(self, notices: Vec<Notice>) {
        self.fill(notices);
        self.notices.speak();
    }

    fn fill(&self, notices: Vec<Notice>) {
        let mut line = lock(&self.notices.line);
        let place = self.number.checked_sub(line.first).and_then(|index| line.places.get_mut(index));
        if let Some(place @ None) = place {
            *place = Some(notices);
        }
    }
}

impl Drop for Ticket {
    /// Skips a place that was not filled; notices behind it go out with the next `tell`.
    fn drop(&mut self) {
        self.fill(Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::id::SessionId;
    use uuid::Uuid;

    use super::*;

    fn idle(waiting: bool) -> Notice {
        Notice::Idle { session: SessionId::new(Uuid::nil()), waiting }
    }

    fn heard(faces: &mut mpsc::Receiver<Notice>) -> Vec<bool> {
        let heard = std::iter::from_fn(|| faces.try_recv().ok());
        heard
            .filter_map(|notice| if let Notice::Idle { waiting, .. } = notice { Some(waiting) } else { None })
            .collect()
    }

    #[test]
    fn earlier_decisions_are_heard_first() {
        let notices = NoticeBus::new(None);
        let mut faces = notices.watch();
        let (first, given_up, last) = (notices.ticket(), notices.ticket(), notices.ticket());
        last.tell(vec![idle(true)]);
        drop(given_up);
        assert!(heard(&mut faces).is_empty());
        first.tell(vec![idle(false), idle(false)]);
        assert_eq!(heard(&mut faces), [false, false, true]);
        drop(notices.ticket());
        notices.tell(idle(true));
        assert_eq!(heard(&mut faces), [true]);
    }
    /// A face that never listens; what happens goes on, and others hear all of it.
    #[test]
    fn no_agent_waits_for_a_frontend_and_a_late_one_hears_everything() {
        let notices = NoticeBus::new(None);
        let (mut late, mut quick) = (notices.watch(), notices.watch());
        for number in 0..10_000 {
            notices.tell(idle(number % 2 == 0));
            notices.show(&idle(true));
            while quick.try_recv().is_ok() {}
        }
        let heard = heard(&mut late);
        // What is only for show ends where it is behind; nothing that happened is missing.
        assert_eq!(heard.len(), 10_000 + NOTICES_SHOWN_MAX / 2);
        assert_eq!(heard.last(), Some(&false));
    }

    #[test]
    fn a_face_that_is_hopelessly_behind_is_told_so_and_no_more() {
        let notices = NoticeBus::new(None);
        let mut face = notices.watch_within(16);
        (0..20).for_each(|_| notices.tell(idle(true)));
        let heard: Vec<Notice> = std::iter::from_fn(|| face.try_recv().ok()).collect();
        assert_eq!(heard.len(), 16);
        let last = heard.last();
        assert!(
            matches!(last, Some(Notice::Stopped { error, .. }) if matches!(**error, RuntimeError::Behind(_))),
            "{last:?}"
        );
        assert!(face.is_closed() && lock(&notices.watchers).is_empty());
    }
}
