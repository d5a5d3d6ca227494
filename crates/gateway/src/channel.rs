//! What a messaging service must provide.

use std::time::Duration;

use max_team_core::channel::ChatAddress;
use max_team_core::message::Role;
use max_team_runtime::OutgoingMessage;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

/// One account of a messaging service.
#[expect(
    async_fn_in_trait,
    reason = "a gateway polls its channels on its own thread, so their futures need not be `Send`"
)]
pub trait Channel {
    /// The service: the first part of its chats' addresses.
    fn name(&self) -> &str;

    /// The account there: the second part.
    fn account(&self) -> &str;

    /// Whether the service drops a second message with the same [`OutgoingMessage::id`]. If so, a message that was being sent when the
    /// process ended is sent again; otherwise it stays marked as perhaps sent, because no service may post twice.
    fn drops_repeats(&self) -> bool {
        false
    }

    /// Receives until `shutdown`. Each message goes to [`Gateway::receive`], and is acknowledged to the service after that returned.
    async fn listen(&self, gateway: &Gateway, shutdown: &CancellationToken) -> Result<(), ChannelError>;

    /// Sends one message; returns the service's id of it.
    async fn send(&self, message: &OutgoingMessage) -> Result<String, SendError>;
}

/// A message from a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    pub chat: ChatAddress,
    /// The service's id of the message: a second delivery under the same id changes nothing.
    pub native: String,
    /// The sender, as the service calls them.
    pub sender: String,
    /// What the sender may do.
    pub role: Role,
    pub text: String,
}

/// A channel that cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ChannelError(pub String);

/// A message that was not sent, or perhaps was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The service did not take it, and will after this time (rate limit, connection refused).
    #[error("not sent, next attempt in {0:?}")]
    Later(Duration),
    /// The service will never take it.
    #[error("{0}")]
    Refused(String),
    /// The connection broke while it was sent: the service may have it.
    #[error("the connection ended while the message was sent")]
    Unknown,
}
