//! The wire formats: one folder each, with `encode` (requests) and `read` (answers).
//!
//! A dialect knows bytes, never addresses, keys or time. Providers and models are rows in the catalogue; only a new
//! *format* is a new variant here.

mod anthropic;
mod openai_chat;

use max_team_core::chat::{Answer, ChatRole, Message, NativeBlocks, Part, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::body::Body;
use crate::call::{CallFault, Sink};
use crate::sse::Event;
use crate::tool::ToolSpec;
use crate::transcript::{CallIds, Head, MessageItems, RequestOptions};
use crate::wire::Wire;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    Anthropic,
    /// OpenAI chat completions.
    OpenaiChat,
}

impl Dialect {
    /// Its name in catalogues and native blocks.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenaiChat => "openai_chat",
        }
    }

    /// Where requests go, below the versioned base address.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "messages",
            Self::OpenaiChat => "chat/completions",
        }
    }
}

pub(crate) fn head(dialect: Dialect, system: &str, tools: &[ToolSpec]) -> Head {
    match dialect {
        Dialect::Anthropic => anthropic::encode::head(system, tools),
        Dialect::OpenaiChat => openai_chat::encode::head(system, tools),
    }
}

pub(crate) fn message(wire: &Wire, message: &Message, ids: &mut CallIds) -> MessageItems {
    match wire.dialect {
        Dialect::Anthropic => anthropic::encode::message(wire, message, ids),
        Dialect::OpenaiChat => openai_chat::encode::message(wire, message, ids),
    }
}

pub(crate) fn body(wire: &Wire, head: &Head, call: &RequestOptions, shown: &[(ChatRole, &MessageItems)]) -> Body {
    match wire.dialect {
        Dialect::Anthropic => anthropic::encode::body(wire, head, call, shown),
        Dialect::OpenaiChat => openai_chat::encode::body(wire, head, call, shown),
    }
}

/// Reads one answer, whole or in events. What it has so far survives a cancellation.
#[derive(Debug)]
pub(crate) enum Reader {
    Anthropic(anthropic::read::AnthropicReader),
    OpenaiChat(openai_chat::read::OpenaiChatReader),
}

impl Reader {
    pub(crate) fn new(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Anthropic => Self::Anthropic(Default::default()),
            Dialect::OpenaiChat => Self::OpenaiChat(Default::default()),
        }
    }

    /// Takes in an event of a stream.
    pub(crate) fn event(&mut self, event: Event<'_>, sink: &mut Sink<'_>) -> Result<(), CallFault> {
        match self {
            Self::Anthropic(reader) => reader.event(event, sink),
            Self::OpenaiChat(reader) => reader.event(event, sink),
        }
    }

    /// Takes in an answer that came in one piece.
    pub(crate) fn whole(&mut self, body: &[u8], sink: &mut Sink<'_>) -> Result<(), CallFault> {
        match self {
            Self::Anthropic(reader) => reader.whole(body, sink),
            Self::OpenaiChat(reader) => reader.whole(body, sink),
        }
    }

    /// The closing event has come: nothing more is worth waiting for.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Anthropic(reader) => reader.has_ended(),
            Self::OpenaiChat(reader) => reader.has_ended(),
        }
    }

    /// What is there is an answer, should the stream end here.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Self::Anthropic(reader) => reader.has_ended(),
            Self::OpenaiChat(reader) => reader.is_complete(),
        }
    }

    /// The text so far.
    pub(crate) fn partial(&self) -> String {
        match self {
            Self::Anthropic(reader) => reader.partial(),
            Self::OpenaiChat(reader) => reader.partial(),
        }
    }

    /// Bytes of content so far: text, thinking, calls and their input; without keep-alive bytes.
    pub(crate) fn content_bytes(&self) -> usize {
        match self {
            Self::Anthropic(reader) => reader.content_bytes(),
            Self::OpenaiChat(reader) => reader.content_bytes(),
        }
    }

    /// The usage so far.
    pub(crate) fn usage(&self) -> Usage {
        match self {
            Self::Anthropic(reader) => reader.usage,
            Self::OpenaiChat(reader) => reader.usage,
        }
    }

    /// The finished answer.
    pub(crate) fn answer(self, wire: &Wire, request_id: Option<String>) -> Answer {
        let draft = match self {
            Self::Anthropic(reader) => reader.draft(),
            Self::OpenaiChat(reader) => reader.draft(),
        };
        draft.answer(wire, request_id)
    }
}

/// An answer as a dialect understood it.
#[derive(Debug)]
pub(crate) struct Draft {
    parts: Vec<Part>,
    /// The provider's own blocks as JSON; none if there is nothing worth sending back.
    native: Option<String>,
    stop: StopReason,
    usage: Usage,
    id: Option<String>,
    model: Option<String>,
}

impl Draft {
    fn answer(mut self, wire: &Wire, request_id: Option<String>) -> Answer {
        let native = self.native.and_then(|blocks| RawValue::from_string(blocks).ok()).map(|blocks| NativeBlocks {
            dialect: wire.dialect.name().to_owned(),
            model: wire.key(),
            blocks,
        });
        // Blocks without a neutral form (server tools, hidden thinking) must not make the message look empty.
        if self.parts.is_empty() && native.is_some() {
            self.parts.push(Part::Thinking { text: String::new() });
        }
        Answer {
            message: Message { role: ChatRole::Assistant, parts: self.parts, native }.with_own_ids(),
            stop: self.stop,
            usage: self.usage,
            request_id: request_id.or(self.id),
            model: self.model.unwrap_or_else(|| wire.model.clone()),
        }
    }
}

#[cfg(test)]
pub(crate) mod fixture;
