//! How one model is spoken to, and a request that is ready to go.
//!
//! A [`Wire`] is everything about a model that changes the bytes of a request: dialect, name, how thinking is asked
//! for, the provider's oddities. It holds no address and no key.

use std::sync::Arc;

use max_team_core::chat::{Message, NativeBlocks};
use serde::Deserialize;

use crate::body::Body;
use crate::dialect::Dialect;

/// How a model is asked to think. Names are those of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// It is not asked; nothing is sent.
    #[default]
    None,
    /// Anthropic, older: `thinking: {type: enabled, budget_tokens}`.
    Budget,
    /// Anthropic, newer: `thinking: {type: adaptive}`; a budget is refused there.
    Adaptive,
    Effort,
    /// OpenAI, newest: over chat completions a request with tools must say `reasoning_effort: none`.
    EffortWithoutTools,
    /// DeepSeek, GLM, Kimi: `thinking: {type: enabled | disabled}`.
    Switch,
}

/// A provider's departures from its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Quirks {
    /// The bound on output is called `max_completion_tokens`.
    pub(crate) completion_tokens: bool,
    /// `stream_options` is refused; usage comes unasked.
    pub(crate) no_stream_options: bool,
}

/// How one model is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wire {
    /// The wire format.
    pub dialect: Dialect,
    /// The provider's row in the catalogue.
    pub provider: String,
    /// The model's name as the provider knows it.
    pub model: String,
    /// Whether answers are streamed.
    pub stream: bool,
    /// How thinking is asked for.
    pub thinking: Thinking,
    /// Tokens to think with; 0: not at all.
    pub thinking_tokens: u32,
    pub(crate) quirks: Quirks,
}

impl Wire {
    /// A wire without oddities.
    pub fn new(dialect: Dialect, provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            dialect,
            provider: provider.into(),
            model: model.into(),
            stream: true,
            thinking: Thinking::None,
            thinking_tokens: 0,
            quirks: Quirks::default(),
        }
    }

    /// What native blocks are filed under: the same model at another provider may not understand them.
    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// The message's native blocks, if this very model made them.
    pub(crate) fn own<'m>(&self, message: &'m Message) -> Option<&'m NativeBlocks> {
        let native = message.native.as_ref()?;
        let same = native.dialect == self.dialect.name()
            && native.model.strip_prefix(self.provider.as_str()).and_then(|rest| rest.strip_prefix('/'))
                == Some(self.model.as_str());
        same.then_some(native)
    }
}

/// A request that is ready to go. Cheap to clone, so that a retry sends the same bytes.
#[derive(Debug, Clone)]
pub struct Request {
    /// How its model is spoken to.
    pub wire: Arc<Wire>,
    /// Counts the agent's calls from 1; a recorded model answers by it.
    pub number: u32,
    /// Whose conversation it is; a recorded model answers by it.
    pub speaker: Arc<str>,
    /// Tokens that the answer may have; a recorded model claims no more.
    pub max_tokens: u32,
    pub body: Body,
}
