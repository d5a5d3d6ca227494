//! Letters to a person: they are read once they have been shown.
//!
//! What says so is what says it of every reader: that the letter was taken from its mailbox, here by the person.

use std::collections::HashSet;

use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::message::Principal;

use super::Post;
use crate::census::Cast;
use crate::error::RuntimeError;
use crate::session::{Sessions, agent_stream};
use crate::shared::{commit_at, now_ms};

impl Post<'_> {
    /// What somebody of a session has written to a person and that was never shown.
    pub fn unseen(&self, by: &Principal, session: SessionId) -> Result<Vec<EnvelopeId>, RuntimeError> {
        let mail = self.journal.pending_mail(&by.address())?;
        if mail.is_empty() {
            return Ok(Vec::new());
        }
        let cast = Cast::of(self.journal, session)?;
        let lead = Sessions::new(self.journal).row(session)?.lead;
        let own: HashSet<String> = cast.addresses().chain([agent_stream(lead)]).collect();
        Ok(mail.iter().filter(|letter| own.contains(&letter.from)).map(|letter| letter.id).collect())
    }

    /// These were shown to whoever they are for.
    pub async fn see(&self, by: &Principal, letters: &[EnvelopeId]) -> Result<(), RuntimeError> {
        if letters.is_empty() {
            return Ok(());
        }
        let mut commit = commit_at(now_ms());
        commit.actor = by.address();
        commit.acks.extend(letters);
        self.journal.commit(commit).await?;
        Ok(())
    }
}
