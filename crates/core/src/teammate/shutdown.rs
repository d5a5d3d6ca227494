//! How a teammate ends: who may end it, when it ends, and which of its unread messages return to their senders.
//!
//! A request ends it after its turn unless it declines; an order stops the turn first.

use crate::message::{Envelope, MessageKind};

/// When an agent that shuts down ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// At once: it has no turn.
    Now,
    /// Once its turn is over.
    Later,
    /// Once its turn is over, and the turn is stopped.
    Stopping,
}

/// Whether a message asks or tells its reader to end.
pub fn is_end(envelope: &Envelope) -> bool {
    envelope.kind == MessageKind::ShutdownRequest || (envelope.kind == MessageKind::Shutdown && envelope.stop().end)
}

/// Why a message may not end its reader; `None` if it may.
pub fn shutdown_error(envelope: &Envelope, is_teammate: bool, lead: &str) -> Option<&'static str> {
    if !is_teammate {
        return Some("only a teammate comes to an end like this");
    }
    let counts = envelope.from == lead || envelope.from.starts_with("user/");
    (!counts).then_some("only its lead or the user ends a teammate")
}

/// The message that counts among those that may end an agent: an order before a request.
pub fn strongest<'a>(ends: impl IntoIterator<Item = &'a Envelope>) -> Option<&'a Envelope> {
    ends.into_iter().min_by_key(|envelope| envelope.kind != MessageKind::Shutdown)
}

/// When a message ends an agent that is busy or idle.
pub fn shutdown_time(envelope: &Envelope, is_busy: bool, is_stopped: bool) -> Shutdown {
    match (is_busy, envelope.kind) {
        (false, _) => Shutdown::Now,
        (true, MessageKind::Shutdown) if !is_stopped => Shutdown::Stopping,
        (true, _) => Shutdown::Later,
    }
}

/// Whether an unread message returns to its sender when its reader ends. A message without content does not.
pub fn returns_to_sender(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Text | MessageKind::UserInput | MessageKind::TaskAssign | MessageKind::ModeSetRequest)
}
