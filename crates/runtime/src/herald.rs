//! Whoever watches hears what happened in the order in which it came about.
//!
//! A letter is read while the journal still writes it, so whoever answers may be through before its sender has told
//! anybody what it sent. Therefore everybody takes their place in line before what they decided can be read by
//! others, and fills it once it is stored; what stands behind an empty place waits. A place that is left empty is
//! passed over.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use max_team_core::limits::NOTICES_MAX;
use max_team_core::message::Envelope;
use tokio::sync::mpsc;

use crate::audit::Audit;
use crate::handle::Notice;
use crate::shared::lock;

#[derive(Debug)]
pub(crate) struct Herald {
    audit: Option<Audit>,
    watchers: Mutex<Vec<mpsc::Sender<Notice>>>,
    line: Mutex<Line>,
    /// Held while notices are handed over, which takes as long as the slowest face.
    speaking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Line {
    /// The number of the first place.
    first: usize,
    /// `None`: nothing has been said there yet.
    places: VecDeque<Option<Vec<Notice>>>,
}

/// A place in line.
#[derive(Debug)]
pub(crate) struct Word {
    herald: Arc<Herald>,
    number: usize,
}

impl Herald {
    pub(crate) fn new(audit: Option<Audit>) -> Arc<Self> {
        Arc::new(Self {
            audit,
            watchers: Mutex::default(),
            line: Mutex::default(),
            speaking: tokio::sync::Mutex::default(),
        })
    }

    /// Notices from now on.
    pub(crate) fn watch(&self) -> mpsc::Receiver<Notice> {
        let (sender, receiver) = mpsc::channel(NOTICES_MAX);
        lock(&self.watchers).push(sender);
        receiver
    }

    /// The next place in line.
    pub(crate) fn word(self: &Arc<Self>) -> Word {
        let mut line = lock(&self.line);
        line.places.push_back(None);
        Word { herald: Arc::clone(self), number: line.first + line.places.len() - 1 }
    }

    /// Tells every face, and the audit file, after all that was decided before; waits for the slow ones.
    pub(crate) async fn tell(self: &Arc<Self>, notice: Notice) {
        self.word().tell(vec![notice]).await;
    }

    /// Tells every face that keeps up, at once: for what is only for show.
    pub(crate) fn show(&self, notice: &Notice) {
        for watcher in lock(&self.watchers).iter() {
            // A face that has fallen behind sees the finished answer instead; half of its queue is kept for that.
            if watcher.capacity() > NOTICES_MAX / 2 {
                drop(watcher.try_send(notice.clone()));
            }
        }
    }

    /// A letter was sent.
    pub(crate) fn letter(&self, letter: &Envelope) {
        if let Some(audit) = &self.audit {
            audit.letter(letter);
        }
    }

    /// Writes the audit lines that wait.
    pub(crate) fn close(&self) {
        if let Some(audit) = &self.audit {
            audit.close();
        }
    }

    fn next(&self) -> Option<Vec<Notice>> {
        let mut line = lock(&self.line);
        let said = line.places.front_mut()?.take()?;
        line.places.pop_front();
        line.first += 1;
        Some(said)
    }

    async fn speak(&self) {
        let _alone = self.speaking.lock().await;
        let mut watchers = None;
        while let Some(said) = self.next() {
            let watchers = watchers.get_or_insert_with(|| lock(&self.watchers).clone());
            for notice in said {
                self.hand_over(notice, watchers).await;
            }
        }
    }

    async fn hand_over(&self, notice: Notice, watchers: &[mpsc::Sender<Notice>]) {
        if let (Some(audit), Notice::Event { from, at_ms, event, .. }) = (&self.audit, &notice) {
            audit.event(from, *at_ms, event);
        }
        for watcher in watchers {
            if watcher.send(notice.clone()).await.is_err() {
                lock(&self.watchers).retain(|watcher| !watcher.is_closed());
            }
        }
    }
}

impl Word {
    /// What is to be heard in this place, and everything behind it that only waited for it.
    pub(crate) async fn tell(self, notices: Vec<Notice>) {
        self.fill(notices);
        self.herald.speak().await;
    }

    fn fill(&self, notices: Vec<Notice>) {
        let mut line = lock(&self.herald.line);
        let place = self.number.checked_sub(line.first).and_then(|index| line.places.get_mut(index));
        if let Some(place @ None) = place {
            *place = Some(notices);
        }
    }
}

impl Drop for Word {
    /// If nothing came of it, what stands behind is heard with whatever is said next.
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

    #[tokio::test]
    async fn what_was_decided_first_is_heard_first() {
        let herald = Herald::new(None);
        let mut faces = herald.watch();
        let (first, given_up, last) = (herald.word(), herald.word(), herald.word());
        last.tell(vec![idle(true)]).await;
        drop(given_up);
        assert!(heard(&mut faces).is_empty());
        first.tell(vec![idle(false), idle(false)]).await;
        assert_eq!(heard(&mut faces), [false, false, true]);
        drop(herald.word());
        herald.tell(idle(true)).await;
        assert_eq!(heard(&mut faces), [true]);
    }
}
