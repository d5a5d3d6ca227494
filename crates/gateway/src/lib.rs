//! Connections to the outside world.
//!
//! A [`Channel`] connects one account of a messaging service. The [`Gateway`] opens a session per chat, commits each message before
//! the channel acknowledges it, and sends what the outbox holds. [`mcp`] offers the team to other programs as tools, [`http`] to
//! browsers and programs as a web server. All of them see
//! the team only through `TeamHandle`.

mod channel;
mod gateway;
pub mod http;
pub mod mcp;
mod secret;
mod sender;
#[cfg(test)]
mod test_place;

pub use channel::{Channel, ChannelError, Incoming, SendError};
pub use gateway::{Gateway, GatewayError};
