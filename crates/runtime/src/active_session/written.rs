//! Messages of people that frontends know of: those that were written here, and those that were shown.

use std::collections::{HashMap, HashSet};

use max_team_core::id::EnvelopeId;
use max_team_core::limits::MAIL_WAITING_MAX;
use max_team_core::message::Envelope;

/// How long a message may be on its way into the journal.
const WRITING_MS: i64 = 60_000;

/// Which of them were written, and when. Read ones are removed now and then.
#[derive(Debug)]
pub(super) struct SeenMail {
    known: HashMap<EnvelopeId, i64>,
    /// The size at which read ones are removed.
    full: usize,
}

impl Default for SeenMail {
    fn default() -> Self {
        Self { known: HashMap::new(), full: MAIL_WAITING_MAX }
    }
}

impl SeenMail {
    pub(super) fn knows(&self, envelope: EnvelopeId) -> bool {
        self.known.contains_key(&envelope)
    }

    /// Notes these messages. `waiting`: all unread ones.
    pub(super) fn note(&mut self, envelopes: &[Envelope], waiting: impl FnOnce() -> HashSet<EnvelopeId>) {
        let newest = envelopes.iter().map(|envelope| envelope.sent_at_ms).max();
        if let Some(newest_ms) = newest.filter(|_| self.known.len() >= self.full) {
            let waiting = waiting();
            self.known.retain(|id, at_ms| waiting.contains(id) || newest_ms.saturating_sub(*at_ms) < WRITING_MS);
            self.full = MAIL_WAITING_MAX.max(self.known.len().saturating_mul(2));
        }
        self.known.extend(envelopes.iter().map(|envelope| (envelope.id, envelope.sent_at_ms)));
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::message::MessageKind;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn envelope(id: usize, at_ms: i64) -> Envelope {
        let id = EnvelopeId::new(Uuid::from_u128(id as u128));
        Envelope::new(id, "user/me", "agent/a", MessageKind::UserInput, json!({}), at_ms)
    }

    /// However many were written: what waits, and what is being written, is never shown again.
    #[test]
    fn waiting_messages_are_never_forgotten() {
        let (first, writing) = (envelope(0, 0), envelope(1, 2 * WRITING_MS));
        let mut written = SeenMail::default();
        written.note(&[first.clone(), writing.clone()], || panic!("there is room"));
        for id in 2..MAIL_WAITING_MAX {
            written.note(&[envelope(id, 0)], || panic!("there is room"));
        }
        let last = envelope(MAIL_WAITING_MAX, 2 * WRITING_MS);
        written.note(std::slice::from_ref(&last), || HashSet::from([first.id]));
        assert!(written.knows(first.id) && written.knows(writing.id) && written.knows(last.id));
        assert!(!written.knows(envelope(2, 0).id), "it was read");
    }
}
