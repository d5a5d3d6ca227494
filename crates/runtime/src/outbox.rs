//! Messages to chats: put into the outbox in the commit that ends a turn, moved on by the process that serves the account.

use max_team_core::channel::{ChatAddress, Delivery, Outgoing};
use max_team_core::event::TurnEnded;
use max_team_core::limits::OUTBOX_PAGE_MAX;
use max_team_core::message::Principal;
use max_team_journal::{Durability, Fence, Journal, JournalError, OutboxOp, OutboxPart, PartState};
use serde::Serialize;

use crate::error::RuntimeError;
use crate::runtime::Runtime;
use crate::shared::{commit_at, lock, now_ms};

/// A message to a chat that is not sent yet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutgoingMessage {
    /// Its id in the outbox. A service that is given this id with the message can recognise a second attempt.
    pub id: String,
    pub chat: ChatAddress,
    pub body: Outgoing,
    /// Its last delivery state; `None` while it waits for an attempt.
    pub delivery: Option<Delivery>,
}

/// The claim on an account of a channel: one process at a time receives and sends there.
pub(crate) fn resource(channel: &str, account: &str) -> String {
    format!("channel/{}", prefix(channel, account))
}

fn prefix(channel: &str, account: &str) -> String {
    format!("{channel}:{account}/")
}

/// The message that tells a chat how a turn of its lead ended. One turn has one message.
pub(crate) fn reply(chat: &ChatAddress, over: &TurnEnded) -> Result<OutboxOp, RuntimeError> {
    let body = Outgoing::Reply { turn: over.turn, text: over.text.clone(), end: over.end.clone() };
    let malformed = |error: serde_json::Error| JournalError::Malformed {
        what: "a message to a chat".to_owned(),
        detail: error.to_string(),
    };
    let body = serde_json::to_value(body).map_err(malformed)?;
    Ok(OutboxOp::Put { id: over.turn.to_string(), to: chat.to_string(), body })
}

/// The messages of an account that are waiting, being sent, or perhaps sent, in the order they were written.
pub(crate) fn unsent(journal: &Journal, channel: &str, account: &str) -> Result<Vec<OutgoingMessage>, RuntimeError> {
    let to = prefix(channel, account);
    let mut parts = Vec::new();
    for state in [PartState::Pending, PartState::Sending, PartState::Unknown] {
        parts.extend(journal.outbox(state, &to, OUTBOX_PAGE_MAX)?);
    }
    parts.sort_unstable_by_key(|part| part.seq);
    parts.into_iter().map(read).collect()
}

fn read(part: OutboxPart) -> Result<OutgoingMessage, RuntimeError> {
    let unreadable =
        |detail: String| RuntimeError::Unreadable { seq: part.seq, stream: format!("outbox/{}", part.to), detail };
    let chat = part.to.parse::<ChatAddress>().map_err(|error| unreadable(error.to_string()))?;
    let body = serde_json::from_value(part.body.clone()).map_err(|error| unreadable(error.to_string()))?;
    let delivery = match part.state {
        PartState::Sending => Some(Delivery::Sending),
        PartState::Unknown => Some(Delivery::Unknown),
        _ => None,
    };
    Ok(OutgoingMessage { id: part.id, chat, body, delivery })
}

impl Runtime {
    /// Claims an account of a channel for this process.
    pub(crate) async fn serve_channel(&self, channel: &str, account: &str) -> Result<(), RuntimeError> {
        self.serve(&resource(channel, account)).await
    }

    /// Claims an account of a channel, or a folder, until the process ends.
    pub(crate) async fn serve(&self, resource: &str) -> Result<(), RuntimeError> {
        let epoch = self.shared.journal.claim(resource, &self.shared.worker).await?;
        lock(&self.served).insert(resource.to_owned(), epoch);
        Ok(())
    }

    /// The claim on something that this process serves.
    pub(crate) fn served(&self, resource: &str) -> Result<Fence, RuntimeError> {
        let epoch = lock(&self.served).get(resource).copied();
        let epoch = epoch.ok_or_else(|| RuntimeError::NotServed(resource.to_owned()))?;
        Ok(Fence { resource: resource.to_owned(), worker: self.shared.worker.id(), epoch })
    }

    /// Records what happened to a message, before it is sent and after it.
    pub(crate) async fn deliver(
        &self,
        by: &Principal,
        id: String,
        chat: &ChatAddress,
        delivery: Delivery,
    ) -> Result<(), RuntimeError> {
        let mut commit = commit_at(now_ms());
        commit.strength = Durability::Full;
        commit.fence = Some(self.served(&resource(chat.channel(), chat.account()))?);
        commit.actor = by.address();
        commit.outbox.push(match delivery {
            Delivery::Sending => OutboxOp::Sending { id },
            Delivery::Sent { native } => OutboxOp::Sent { id, native },
            Delivery::Unknown => OutboxOp::Unknown { id },
            Delivery::Retry => OutboxOp::Retry { id },
            Delivery::Dead { reason } => OutboxOp::Dead { id, reason },
        });
        self.shared.journal.commit(commit).await?;
        Ok(())
    }
}
