//! Messages to and from a model, in a form that belongs to no provider.
//!
//! An assistant's message carries, beside its neutral parts, the provider's own blocks byte for byte ([`NativeBlocks`]). The
//! same provider gets those back exactly (thinking with its signature, unknown kinds, order); any other gets the
//! neutral parts. Nothing here knows a wire format.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatRole {
    /// The user, and the results of tools.
    User,
    Assistant,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
    },
    /// The model's reasoning; shown folded, never sent to another provider.
    Thinking {
        text: String,
    },
    Image {
        /// `image/png` and so on.
        media_type: String,
        /// The file's content in Base64.
        data: String,
    },
    /// The model wants a tool to run.
    ToolUse {
        /// The provider's id for the call.
        id: String,
        name: String,
        /// Its input as the model gave it; anything but an object is refused later, with a reason.
        input: Arc<Value>,
    },
    /// The result of a tool call.
    ToolResult {
        /// The call's id.
        id: String,
        /// Text and images.
        content: Vec<Part>,
        /// Whether it failed.
        is_error: bool,
    },
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// About how many bytes this adds to a request.
    pub fn weight(&self) -> usize {
        match self {
            Self::Text { text } => text.len() + 24,
            Self::Thinking { text } => text.len() + 400,
            // Providers charge pictures by area, not by bytes; this is the usual ceiling in token-equivalents.
            Self::Image { .. } => 6_000,
            Self::ToolUse { name, input, .. } => name.len() + written_len(input) + 80,
            Self::ToolResult { content, .. } => content.iter().map(Self::weight).sum::<usize>() + 80,
        }
    }
}

/// Writes a value as JSON, without the formatter calls of its `Display`.
pub(crate) fn write(to: impl io::Write, value: &Value) {
    // A JSON value can always be written, and the writers used here (a counter, memory) never fail.
    let _ = serde_json::to_writer(to, value);
}

/// How long a value is as JSON.
fn written_len(value: &Value) -> usize {
    struct ByteCounter(usize);
    impl io::Write for ByteCounter {
        fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
            self.0 += piece.len();
            Ok(piece.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counted = ByteCounter(0);
    write(&mut counted, value);
    counted.0
}

/// The provider's own blocks of one answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NativeBlocks {
    /// Which wire format they are in (`anthropic`, `openai_chat`).
    pub dialect: String,
    /// The model that made them; signatures are valid for that model only.
    pub model: String,
    /// The blocks as JSON, byte for byte.
    pub blocks: Box<RawValue>,
}

impl PartialEq for NativeBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.dialect == other.dialect && self.model == other.model && self.blocks.get() == other.blocks.get()
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: ChatRole,
    /// What is said.
    pub parts: Vec<Part>,
    /// The provider's own blocks, on an assistant's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeBlocks>,
}

impl Message {
    /// A user's message.
    pub fn user(parts: Vec<Part>) -> Self {
        Self { role: ChatRole::User, parts, native: None }
    }

    /// An assistant's message without native blocks.
    pub fn assistant(parts: Vec<Part>) -> Self {
        Self { role: ChatRole::Assistant, parts, native: None }
    }

    /// All text parts, joined as paragraphs.
    pub fn text(&self) -> String {
        let mut whole = String::new();
        for part in &self.parts {
            if let Part::Text { text } = part {
                if !whole.is_empty() && !text.is_empty() {
                    whole.push_str("\n\n");
                }
                whole.push_str(text);
            }
        }
        whole
    }

    /// The tool calls, in order: id, name, input.
    pub fn tool_uses(&self) -> impl Iterator<Item = (&str, &str, &Arc<Value>)> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolUse { id, name, input } => Some((id.as_str(), name.as_str(), input)),
            _ => None,
        })
    }

    /// Gives every tool call an id of its own. Two calls under one id cannot be answered apart, so the later ones
    /// are renamed; the native blocks still hold the clash and are dropped.
    pub fn with_own_ids(mut self) -> Self {
        if self.tool_uses().count() <= 1 && self.tool_uses().all(|(id, ..)| !id.is_empty()) {
            return self;
        }
        let mut seen = HashSet::new();
        let mut renamed = false;
        for (index, part) in self.parts.iter_mut().enumerate() {
            if let Part::ToolUse { id, .. } = part
                && (id.is_empty() || !seen.insert(id.clone()))
            {
                *id = format!("{}_{index}", if id.is_empty() { "call" } else { id.as_str() });
                seen.insert(id.clone());
                renamed = true;
            }
        }
        if renamed {
            self.native = None;
        }
        self
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had finished.
    EndTurn,
    /// It wants tools to run.
    ToolUse,
    /// It hit `max_tokens`; what is there may be cut.
    MaxTokens,
    /// It (or its provider's filter) will not answer.
    Refusal,
    /// It paused a long server-side turn and wants to be called again with the same history.
    Pause,
    /// Anything else a provider may say.
    Other(String),
}

/// Tokens of one or more calls. `input` never includes the cached ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens paid in full.
    pub input: u64,
    pub output: u64,
    /// Input tokens read from the provider's cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    #[serde(default)]
    pub cache_write: u64,
}

impl Usage {
    /// All input tokens, cached or not.
    pub fn input_total(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
    }
}

/// How much of an answer had come when its call ended without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartialAnswer {
    /// Whether the request was being sent: the provider may charge for it from then on.
    pub is_sent: bool,
    /// The usage that the provider had reported.
    pub usage: Usage,
    /// Bytes of content.
    pub bytes: usize,
}

/// A finished answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What it said.
    pub message: Message,
    /// Why it stopped.
    pub stop: StopReason,
    /// What it used.
    pub usage: Usage,
    /// The provider's id of the request, for their support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The model that answered, by its own account.
    pub model: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> Part {
        Part::ToolUse { id: id.into(), name: "t".into(), input: json!({}).into() }
    }

    #[test]
    fn clashing_ids_are_told_apart_and_native_blocks_dropped() {
        let native = NativeBlocks {
            dialect: "anthropic".into(),
            model: "m".into(),
            blocks: RawValue::from_string("[]".into()).unwrap(),
        };
        let clash = Message {
            role: ChatRole::Assistant,
            parts: vec![call("a"), call("a"), call("")],
            native: Some(native.clone()),
        };
        let mended = clash.with_own_ids();
        let ids: Vec<_> = mended.tool_uses().map(|(id, ..)| id.to_owned()).collect();
        assert_eq!(ids, ["a", "a_1", "call_2"]);
        assert_eq!(mended.native, None);

        let fine =
            Message { role: ChatRole::Assistant, parts: vec![call("a"), call("b")], native: Some(native.clone()) };
        assert_eq!(fine.clone().with_own_ids(), fine);
    }

    #[test]
    fn native_blocks_survive_json_byte_for_byte() {
        let blocks = r#"[ {"type":"thinking", "signature":"Zm9v\u002b",  "x":1.0e2} ]"#;
        let message = Message {
            role: ChatRole::Assistant,
            parts: vec![],
            native: Some(NativeBlocks {
                dialect: "anthropic".into(),
                model: "m".into(),
                blocks: RawValue::from_string(blocks.into()).unwrap(),
            }),
        };
        let back: Message = serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();
        assert_eq!(back.native.unwrap().blocks.get(), blocks);
    }
}
