//! The tools that read and write the memory: their descriptions, and how their arguments are read.

use max_team_core::memory::{Key, Section};
use serde::Deserialize;
use serde_json::{Value, json};

pub const READ: &str = "memory_read";
pub const WRITE: &str = "memory_write";

/// What a call asks for.
#[derive(Debug)]
pub(crate) enum MemoryRequest {
    Read(MemoryReadArgs),
    Write(Write),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MemoryReadArgs {
    pub key: Option<Key>,
    #[serde(alias = "search", alias = "text")]
    pub query: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Write {
    pub key: Key,
    /// Nothing: forget it.
    #[serde(default)]
    pub value: Value,
    #[serde(default)]
    pub quote: String,
    #[serde(default)]
    pub scope: Option<Where>,
}

/// On which board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Where {
    User,
    Project,
}

const READ_WORDS: &str = "Look into the memory of earlier conversations: by `key`, by words (`query`), or without either for the \
    list of keys.";
const WRITE_WORDS: &str = "Write a fact into the team's memory, or forget one (`value` null). Only the `memory` expert \
    may; a lead may write `dialog_context`. Each property of an object becomes a fact of its own. What speaks for the user \
    (`personality`, `user_profile`, `preferences`) needs `quote`: the user's own words, exactly.";

/// Names, descriptions and schemas.
pub(crate) fn all() -> [(&'static str, &'static str, Value); 2] {
    let sections = Section::NAMES.map(|(name, _)| name).join(", ");
    let key = format!("A dotted key such as user_profile.location; first part: {sections}.");
    let read = json!({
        "type": "object",
        "properties": {
            "key": { "type": "string", "description": key },
            "query": { "type": "string", "description": "Words to look for." },
        },
    });
    let write = json!({
        "type": "object", "required": ["key"],
        "properties": {
            "key": { "type": "string", "description": key },
            "value": { "description": "Any JSON; null forgets what is under the key." },
            "quote": { "type": "string", "description": "The user's words that it follows from, copied exactly." },
            "scope": {
                "type": "string", "enum": ["user", "project"],
                "description": "Whether it holds everywhere or in this project. Left out: `user` for what is about the user, else `project`.",
            },
        },
    });
    [(READ, READ_WORDS, read), (WRITE, WRITE_WORDS, write)]
}
