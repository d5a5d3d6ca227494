//! The conversation of an agent: its whole history, and the window of it that requests carry.

use serde::{Deserialize, Serialize};

use crate::chat::Message;
use crate::context::summary::Compacted;
use crate::context::{self, BYTES_PER_KILOTOKEN, RequestSize, Window};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Conversation {
    pub(super) history: Vec<Message>,
    pub(super) weights: Vec<RequestSize>,
    pub(super) window: Window,
    /// Compactions of messages that have left the window; the last one counts.
    pub(super) compactions: Vec<Compacted>,
    /// The user undid a compaction: until the next one that the user asks for, messages are compacted only if they
    /// would be cut.
    pub(super) restored: bool,
    pub(super) bytes_per_kilotoken: u64,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            history: Vec::new(),
            weights: Vec::new(),
            window: Window::default(),
            compactions: Vec::new(),
            restored: false,
            bytes_per_kilotoken: BYTES_PER_KILOTOKEN,
        }
    }
}

impl Conversation {
    pub(super) fn push(&mut self, message: Message, starts_turn: bool) {
        self.weights.push(RequestSize::of_message(&message, starts_turn));
        self.history.push(message);
    }

    pub(super) fn compact(&mut self, compacted: &Compacted) {
        self.window.from = compacted.before;
        self.compactions.push(compacted.clone());
        self.restored = false;
    }

    /// Undoes the last compaction.
    pub(super) fn restore(&mut self) {
        if let Some(compacted) = self.compactions.pop() {
            (self.window, self.restored) = (compacted.window, true);
        }
    }

    /// The summary that stands at the head of the window.
    pub(super) fn head(&self) -> Option<Message> {
        self.compactions.last().map(Compacted::head)
    }

    pub(super) fn head_bytes(&self) -> usize {
        self.head().map_or(0, |head| RequestSize::of_message(&head, false).full)
    }

    /// Estimated tokens of this many bytes.
    pub(super) fn tokens(&self, bytes: usize) -> u64 {
        context::tokens(bytes, self.bytes_per_kilotoken)
    }

    /// Estimated tokens of the window.
    pub(super) fn window_tokens(&self) -> u64 {
        self.tokens(context::window_bytes(&self.weights, self.window) + self.head_bytes())
    }

    /// The message that began the turn before this message.
    pub(super) fn asked_before(&self, message: usize) -> Option<String> {
        let last = self.weights.iter().take(message).rposition(|weight| weight.starts_turn)?;
        self.history.get(last).map(Message::text)
    }

    /// Providers report the tokens of a request; the next estimate uses the ratio, within limits.
    pub(super) fn learn_ratio(&mut self, bytes: usize, input_tokens: u64) {
        if input_tokens > 200 {
            let measured = (bytes as u64).saturating_mul(1_000) / input_tokens;
            self.bytes_per_kilotoken = measured.clamp(1_500, 5_000);
        }
    }
}
