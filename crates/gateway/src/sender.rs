//! Sends the messages of the outbox: each chat's in the order they were written, several chats at a time.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use max_team_core::channel::{ChatAddress, Delivery};
use max_team_core::id::EnvelopeId;
use max_team_core::limits::{CHATS_SENDING_MAX, SEND_ATTEMPTS_MAX, SEND_GRACE_MS};
use max_team_core::message::Principal;
use max_team_runtime::stream::{Scope, What};
use max_team_runtime::{Command, Order, OutgoingMessage, RuntimeError, TeamHandle, new_id, query};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::channel::{Channel, SendError};

pub(crate) struct Sender<'g, C> {
    team: &'g TeamHandle,
    channel: &'g C,
    by: Principal,
    /// Chats whose first message the service did not take yet: when to try again, and the attempts so far.
    later: RefCell<HashMap<ChatAddress, (Instant, u32)>>,
}

impl<'g, C: Channel> Sender<'g, C> {
    pub(crate) fn new(team: &'g TeamHandle, channel: &'g C, by: Principal) -> Self {
        Self { team, channel, by, later: RefCell::default() }
    }

    /// Settles what the last process was sending when it ended.
    pub(crate) async fn recover(&self) -> Result<(), RuntimeError> {
        for message in self.outbox().await? {
            let cut_off = message.delivery == Some(Delivery::Sending);
            if self.channel.drops_repeats() && message.delivery.is_some() {
                self.record(&message, Delivery::Retry).await?;
            } else if cut_off {
                self.record(&message, Delivery::Unknown).await?;
            }
        }
        Ok(())
    }

    /// Sends what is written, as it is written, until `stop`; what is being sent then is finished.
    pub(crate) async fn run(&self, stop: &CancellationToken) -> Result<(), RuntimeError> {
        let from = self.team.ask(query::Position {}).await?;
        let mut events = self.team.stream(Scope::All, from)?;
        loop {
            self.send_all(stop).await?;
            let retry_at = self.later.borrow().values().map(|(at, _)| *at).min();
            loop {
                let event = tokio::select! {
                    event = events.next() => event?,
                    () = wait_until(retry_at) => break,
                    () = stop.cancelled() => return Ok(()),
                };
                // A message is committed together with the end of the turn that it tells of.
                if matches!(event.what, What::Final { .. } | What::Error { done: true, .. }) {
                    break;
                }
            }
        }
    }

    async fn send_all(&self, stop: &CancellationToken) -> Result<(), RuntimeError> {
        loop {
            let mut chats: BTreeMap<ChatAddress, Vec<OutgoingMessage>> = BTreeMap::new();
            for message in self.outbox().await?.into_iter().filter(|message| message.delivery.is_none()) {
                chats.entry(message.chat.clone()).or_default().push(message);
            }
            let now = Instant::now();
            chats.retain(|chat, _| self.later.borrow().get(chat).is_none_or(|(at, _)| *at <= now));
            if chats.is_empty() || stop.is_cancelled() {
                return Ok(());
            }
            let sending = stream::iter(chats.into_values().map(|messages| self.send_in_order(messages, stop)));
            let results: Vec<_> = sending.buffer_unordered(CHATS_SENDING_MAX).collect().await;
            results.into_iter().collect::<Result<(), _>>()?;
        }
    }

    /// Sends the messages of one chat up to the first one that has to wait.
    async fn send_in_order(
        &self,
        messages: Vec<OutgoingMessage>,
        stop: &CancellationToken,
    ) -> Result<(), RuntimeError> {
        for message in messages {
            if stop.is_cancelled() {
                return Ok(());
            }
            // Committed before the first byte leaves: after a crash it is known that the service may have it.
            self.record(&message, Delivery::Sending).await?;
            let sent = tokio::select! {
                sent = self.channel.send(&message) => sent,
                () = grace(stop) => Err(SendError::Unknown),
            };
            let attempts = self.later.borrow_mut().remove(&message.chat).map_or(1, |(_, attempts)| attempts + 1);
            let delivery = match sent {
                Ok(native) => Delivery::Sent { native },
                Err(SendError::Refused(reason)) => Delivery::Dead { reason },
                Err(SendError::Unknown) if !self.channel.drops_repeats() => Delivery::Unknown,
                Err(SendError::Later(_) | SendError::Unknown) if attempts >= SEND_ATTEMPTS_MAX => {
                    Delivery::Dead { reason: format!("not sent after {attempts} attempts") }
                }
                Err(error) => {
                    self.record(&message, Delivery::Retry).await?;
                    let wait = if let SendError::Later(wait) = error { wait } else { Duration::ZERO };
                    self.later.borrow_mut().insert(message.chat.clone(), (Instant::now() + wait, attempts));
                    return Ok(());
                }
            };
            self.record(&message, delivery).await?;
        }
        Ok(())
    }

    async fn outbox(&self) -> Result<Vec<OutgoingMessage>, RuntimeError> {
        let (channel, account) = (self.channel.name().to_owned(), self.channel.account().to_owned());
        self.team.ask(query::Outbox { channel, account }).await
    }

    async fn record(&self, message: &OutgoingMessage, delivery: Delivery) -> Result<(), RuntimeError> {
        let command = Command::Deliver { message: message.id.clone(), chat: message.chat.clone(), delivery };
        let (by, key) = (self.by.clone(), EnvelopeId::new(new_id()));
        self.team.command(Order { by, cwd: String::new(), key, command }).await
    }
}

/// The time that a message which is being sent has after `stop`.
async fn grace(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(Duration::from_millis(SEND_GRACE_MS)).await;
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
