//! The blackboard: what a team remembers about its user and its work.
//!
//! A fact is a JSON value under a dotted key (`user_profile.location`) with where it came from. Every agent reads;
//! [`may_write`] says who writes what. Nothing here stores anything: events are decided here, the runtime commits them
//! and derives rows, and `rank` orders what a question finds. What is recalled is data for a model, never an order.

mod board;
mod file;
mod key;
mod lasting;
mod quote;
mod rank;
mod write;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use board::Board;
pub use file::File;
pub use key::{Key, KeyError, Scope, Section};
pub use lasting::{Exchange, is_due, says_something_lasting};
pub use quote::{is_verbatim, occurs, proof, vouches};
pub use rank::{Posting, QUERY_TERMS_MAX, query_terms, score, terms};
pub use write::{EXPERT, Refusal, Writer, forget, is_keeper, may_write, set};

use crate::id::{SessionId, TurnId};

/// Where a fact came from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// The session it was said in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The turn of whoever wrote it down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The words it follows from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub quote: String,
    /// The file it was imported from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
}

/// Something remembered, as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Under what.
    pub key: Key,
    /// What.
    pub value: Value,
    /// Who wrote it down.
    pub by: Writer,
    /// Where it came from.
    #[serde(default)]
    pub source: Source,
    /// When it was written down.
    pub at_ms: i64,
}

impl Fact {
    /// The value in words: a text as it is, anything else as JSON.
    pub fn words(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned)
    }
}

/// Something is remembered from now on (memory stream).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemorySet {
    /// Under what.
    pub key: Key,
    /// What.
    pub value: Value,
    /// Who wrote it down.
    pub by: Writer,
    /// Where it came from.
    #[serde(default)]
    pub source: Source,
    /// Facts that it takes the place of, besides the one under its own key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<Key>,
}

/// Something is not remembered any more (memory stream).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryForgotten {
    /// Under what: every single fact.
    pub keys: Vec<Key>,
    /// Who wanted it.
    pub by: Writer,
}

/// What was said up to here is in the hands of whoever extracts facts from it (session stream).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryHanded {
    /// The last entry of the session's stream among it.
    pub upto: u64,
    /// Who looks at it.
    pub agent: crate::id::AgentId,
    /// The entry that it begins behind.
    #[serde(default)]
    pub after: u64,
    /// How often it was handed over, this time included; 0 where nobody counted yet.
    #[serde(default)]
    pub attempt: u32,
}

/// Why a fact is in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It says how the lead speaks.
    Personality,
    /// It says who the user is and what they like: always told, as far as there is room.
    Standing,
    /// It says where the last conversation in the project stood.
    LastConversation,
    /// It has these words in common with what was said.
    Matched {
        /// The words.
        terms: Vec<String>,
        /// How well it fits, in thousandths.
        score_milli: u64,
    },
}

/// A fact that was put into a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recalled {
    /// Whose board it is on.
    pub scope: Scope,
    /// Under what.
    pub key: Key,
    /// When it had been written down: tells one value from a later one.
    pub at_ms: i64,
    /// Why it is there.
    pub why: Why,
}

/// What a turn is told from memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Recall {
    /// The words beside the user's; empty if everything is in the system text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What went into the prompt, here or in the system text, and why.
    pub facts: Vec<Recalled>,
    /// Facts that would have fitted and found no room.
    #[serde(default)]
    pub left_out: usize,
}
