//! Letters to a person: they are read once they have been shown.
//!
//! What says so is what says it of every reader: that the letter was taken from its mailbox, here by the person.

use max_team_core::id::{AgentId, EnvelopeId, TurnId};
use max_team_core::message::{Envelope, Kind, Principal};

use super::Post;
use crate::agent::result_id;
use crate::error::RuntimeError;
use crate::session::agent_stream;
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
            Self::Turn(agent, turn) => letter.id == result_id(&agent_stream(agent), turn),
            Self::End(agent) => letter.kind == Kind::ShutdownApproved && letter.from == agent_stream(agent),
        }
    }
}

impl Post<'_> {
    /// This was shown to a person: the letters to them that say it are read. Those that nobody has shown are not.
    pub async fn see(&self, by: &Principal, shown: &[Shown]) -> Result<(), RuntimeError> {
        let mail = self.journal.pending_mail(&by.address())?;
        let is_shown = |letter: &&Envelope| shown.iter().any(|shown| shown.is(letter));
        let seen: Vec<EnvelopeId> = mail.iter().filter(is_shown).map(|letter| letter.id).collect();
        if seen.is_empty() {
            return Ok(());
        }
        let mut commit = commit_at(now_ms());
        commit.actor = by.address();
        commit.acks = seen;
        self.journal.commit(commit).await?;
        Ok(())
    }
}
