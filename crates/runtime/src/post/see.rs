//! Letters to a person: they are read once they have been shown.
//!
//! What says so is what says it of every reader: that the letter was taken from its mailbox, here by the person.

use std::collections::HashSet;

use max_team_core::id::{AgentId, EnvelopeId, SessionId, TurnId};
use max_team_core::message::{Envelope, Kind, Principal};

use super::Post;
use crate::agent::derived;
use crate::census::Cast;
use crate::error::RuntimeError;
use crate::session::{Sessions, agent_stream};
use crate::shared::{commit_at, now_ms};

/// What a screen has shown, and a letter may have said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// A letter.
    Letter(EnvelopeId),
    /// What came of somebody's turn.
    Turn(AgentId, TurnId),
    /// That somebody is no more.
    End(AgentId),
}

impl Shown {
    /// Whether this letter says the same.
    fn is(&self, letter: &Envelope) -> bool {
        match *self {
            Self::Letter(id) => letter.id == id,
            Self::Turn(agent, turn) => {
                letter.id == derived(&[agent_stream(agent).as_bytes(), turn.to_string().as_bytes(), b"result"])
            }
            Self::End(agent) => letter.kind == Kind::ShutdownApproved && letter.from == agent_stream(agent),
        }
    }
}

impl Post<'_> {
    /// This was shown to a person: the letters to them that say it are read. Those that nobody has shown are not.
    pub async fn see_shown(&self, by: &Principal, shown: &[Shown]) -> Result<(), RuntimeError> {
        let mail = self.journal.pending_mail(&by.address())?;
        let is_shown = |letter: &&Envelope| shown.iter().any(|shown| shown.is(letter));
        let seen: Vec<EnvelopeId> = mail.iter().filter(is_shown).map(|letter| letter.id).collect();
        self.see(by, &seen).await
    }

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
