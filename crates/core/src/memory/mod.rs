//! The blackboard: what a team remembers about its user and its work.
//!
//! A fact is a JSON value under a dotted key (`user_profile.location`) with where it came from. Every agent reads;
//! [`may_write`] says who writes what. Nothing here stores anything: events are decided here, the runtime commits them
//! and derives rows, and `bm25` orders what a question finds. What is recalled is data for a model, never an order.

mod bm25;
mod board;
mod extract_rule;
mod file;
mod key;
mod verbatim;
mod write_policy;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use bm25::{Posting, QUERY_TERMS_MAX, query_terms, score, terms};
pub use board::Board;
pub use extract_rule::{Exchange, is_due, says_something_lasting};
pub use file::MemoryFile;
pub use key::{BoardScope, Key, KeyError, Section};
pub use verbatim::{is_verbatim, occurs, proof, vouches};
pub use write_policy::{EXPERT, WriteRefusal, Writer, forget, is_keeper, may_write, set};

use crate::id::{SessionId, TurnId};

/// Where a fact came from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// The session it was said in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The turn of the agent that wrote it down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The words it follows from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub quote: String,
    /// The file it was imported from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
}

/// One remembered fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    pub key: Key,
    pub value: Value,
    /// The user, agent or program that wrote it.
    pub by: Writer,
    /// Where it came from.
    #[serde(default)]
    pub source: Source,
    /// When it was written down.
    pub at_ms: i64,
}

impl Fact {
    /// The value in words: a text as it is, anything else as JSON.
    pub fn value_text(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned)
    }
}

/// A fact is written (memory stream).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemorySet {
    pub key: Key,
    pub value: Value,
    /// The user, agent or program that wrote it.
    pub by: Writer,
    /// Where it came from.
    #[serde(default)]
    pub source: Source,
    /// Facts above or below its key, which it replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<Key>,
}

/// Facts are removed (memory stream).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryForgotten {
    /// The key of every removed fact.
    pub keys: Vec<Key>,
    /// The user, agent or program that removed them.
    pub by: Writer,
}

/// The exchanges up to here were handed to the agent that extracts facts from them (session stream).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryHanded {
    /// The last entry of the session's stream that belongs to them.
    pub upto: u64,
    /// The agent that extracts facts.
    pub agent: crate::id::AgentId,
    /// The entry after which they begin.
    #[serde(default)]
    pub after: u64,
    /// How often they were handed over, this time included; 0 in journals that do not record it.
    #[serde(default)]
    pub attempt: u32,
}

/// Why a fact is in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecallReason {
    /// It says how the lead speaks.
    Personality,
    /// It says who the user is and what they like: always told, as far as there is room.
    Standing,
    /// It says where the last conversation in the project stood.
    LastConversation,
    /// It shares these terms with the user's message.
    Matched {
        terms: Vec<String>,
        /// How well it fits, in thousandths.
        score_milli: u64,
    },
}

/// A fact that was put into a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecalledFact {
    /// The board that it is on.
    pub scope: BoardScope,
    pub key: Key,
    /// When it was written, which distinguishes it from a later value.
    pub at_ms: i64,
    /// Why it is in the prompt.
    pub why: RecallReason,
}

/// The facts that a turn gets from memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Recall {
    /// Text beside the user's message; empty if all facts are in the system text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The facts that are in the prompt, here or in the system text, and why.
    pub facts: Vec<RecalledFact>,
    /// Matching facts that did not fit.
    #[serde(default)]
    pub left_out: usize,
}
