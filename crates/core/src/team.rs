//! Who is on the team: what defines an agent, and the settings it works under.
//!
//! A definition is data (from a file, a flag or the built-in set); the settings are what the configuration, the
//! flags and the catalogue make of it once. Both are journalled, so a run can be understood without today's files.

use serde::{Deserialize, Serialize};

use crate::ledger::Price;
use crate::limits::{RETRIES_MAX_DEFAULT, ROUNDS_MAX_DEFAULT};
use crate::policy::Mode;

/// A model, resolved against the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// The provider's row in the catalogue.
    pub provider: String,
    /// The model's name as the provider knows it.
    pub name: String,
    /// Tokens that fit its window.
    pub context_tokens: u64,
    /// Tokens that one answer may have.
    pub max_tokens: u32,
    /// Tokens it may think with (0: it does not think aloud).
    #[serde(default)]
    pub thinking_tokens: u32,
    /// What it costs; `None` if nobody knows.
    pub price: Option<Price>,
}

/// What an agent works under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The model that answers.
    pub model: Model,
    /// The model that takes over when the first cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Model>,
    /// How freely it may act.
    pub mode: Mode,
    /// Model rounds per turn.
    pub rounds_max: u32,
    /// Retries per model call.
    pub retries_max: u32,
    /// The cap on money, in nano-dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_nano: Option<u64>,
    /// Whether the turn must end in the `structured_output` tool.
    #[serde(default)]
    pub structured: bool,
}

impl Settings {
    /// The usual settings for a model.
    pub fn new(model: Model) -> Self {
        Self {
            model,
            fallback: None,
            mode: Mode::Default,
            rounds_max: ROUNDS_MAX_DEFAULT,
            retries_max: RETRIES_MAX_DEFAULT,
            budget_nano: None,
            structured: false,
        }
    }
}

/// What makes an agent itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub role: String,
    /// The words it is given first.
    pub prompt: String,
    /// The tools it may use.
    pub tools: Vec<String>,
}
