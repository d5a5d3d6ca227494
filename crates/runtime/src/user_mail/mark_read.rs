//! Messages to a person: they are read once their content has been shown.
//!
//! As for every reader, a message is read when it was taken from its mailbox; here the person's frontend takes it.

use max_team_core::id::{AgentId, EnvelopeId, TurnId};
use max_team_core::message::{Envelope, MessageKind, Principal, Role};
use serde::{Deserialize, Serialize};

use super::UserMail;
use crate::agent::result_id;
use crate::error::RuntimeError;
use crate::handle::require;
use crate::session::agent_stream;
use crate::shared::{commit_at, now_ms};

/// Content that a screen has shown and that a message may repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownContent {
    #[serde(rename = "letter")]
    Message(EnvelopeId),
    /// The outcome of an agent's turn.
    Turn(AgentId, TurnId),
    /// The end of an agent.
    End(AgentId),
}

impl ShownContent {
    /// Whether this message repeats it.
    fn is(&self, envelope: &Envelope) -> bool {
        match *self {
            Self::Message(id) => envelope.id == id,
            Self::Turn(agent, turn) => envelope.id == result_id(&agent_stream(agent), turn),
            Self::End(agent) => envelope.kind == MessageKind::ShutdownApproved && envelope.from == agent_stream(agent),
        }
    }
}

impl UserMail<'_> {
    /// Marks the messages to a person as read whose content was shown; the others stay unread.
    pub async fn mark_read(&self, by: &Principal, shown: &[ShownContent]) -> Result<(), RuntimeError> {
        require(by, Role::Member)?;
        let mail = self.journal.pending_mail(&by.address())?;
        let is_shown = |envelope: &&Envelope| shown.iter().any(|shown| shown.is(envelope));
        let seen: Vec<EnvelopeId> = mail.iter().filter(is_shown).map(|envelope| envelope.id).collect();
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
