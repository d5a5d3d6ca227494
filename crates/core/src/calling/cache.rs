//! What an expert has found before: which calls it answers, and for how long.
//!
//! An entry is filed under a key that follows from the values of the definition's `cache.keys`, from the definition itself
//! and from where it works. It holds one call: all its arguments, what was found, and what was said about it. A call with
//! the same arguments is answered by it; one that agrees only in the key is made with what was found at hand. An entry is
//! as old as what was found: saying something new about it makes nothing fresher.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::Told;
use crate::hash::Hash;
use crate::limits::{CACHE_ENTRIES_MAX, CACHE_ENTRY_BYTES_MAX};
use crate::team::Definition;

/// Hex digits of a key.
const KEY_DIGITS: usize = 12;

/// What is kept of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What it is filed under.
    pub key: String,
    /// All arguments of the call.
    pub raw: Value,
    /// What was found; nothing if the expert only spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// What was said about it; may be empty.
    pub text: String,
    /// When it was found.
    pub created_at_ms: i64,
    /// Seconds for which it may be used.
    pub ttl_s: u64,
}

/// An answer is kept from now on, in place of what was under its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheKept {
    /// The answer.
    pub entry: Entry,
    /// Keys of what is not kept any more: too old, or too much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
}

/// Some answers are not kept any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCleared {
    /// Their keys.
    pub keys: Vec<String>,
}

/// A call whose answer may be kept, as whoever answers it knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// What its answer is filed under.
    pub key: String,
    /// The call itself: the same for the same expert with the same arguments.
    pub call: Hash,
    /// Seconds for which its answer may be used.
    pub ttl_s: u64,
    /// When that was found which the expert was handed; nothing if it was handed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_at_ms: Option<i64>,
}

/// What there is for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Its answer.
    Answer(Entry),
    /// What was found for one like it.
    Data(Entry),
    /// Nothing that is fresh.
    Nothing,
}

impl Entry {
    /// How old it is; nothing if it is too old, or from a time that has not come.
    pub fn age_ms(&self, now_ms: i64) -> Option<u64> {
        let age_ms = u64::try_from(now_ms.saturating_sub(self.created_at_ms)).ok()?;
        (age_ms < self.ttl_s.saturating_mul(1_000)).then_some(age_ms)
    }

    fn bytes(&self) -> usize {
        let data = self.data.as_ref().map_or(0, |data| data.to_string().len());
        self.raw.to_string().len().saturating_add(data).saturating_add(self.text.len())
    }
}

impl Asked {
    /// How a call of somebody who works in this place is known; `None`: nothing of theirs is kept.
    pub fn of(definition: &Definition, place: &str, args: &Value) -> Option<Self> {
        let cache = definition.cache.as_ref().filter(|cache| cache.ttl_s > 0)?;
        let mut fields = vec![version(definition, place).to_string().into_bytes()];
        // Without keys nothing says which arguments could differ: all of them count.
        let every = args.as_object().map(|args| args.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        for name in sorted(if cache.keys.is_empty() { &every } else { &cache.keys }) {
            let (state, value) = match args.get(name) {
                Some(value) => ("is", canonical(value)),
                None => ("is missing", String::new()),
            };
            fields.extend([name.as_bytes().to_vec(), state.as_bytes().to_vec(), value.into_bytes()]);
        }
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        let key: String = Hash::of_fields(&fields).to_string().chars().take(KEY_DIGITS).collect();
        let call = Hash::of_fields(&[definition.name.as_bytes(), key.as_bytes(), canonical(args).as_bytes()]);
        Some(Self { key, call, ttl_s: cache.ttl_s, handed_at_ms: None })
    }

    /// What the entry under its key is for this call.
    pub fn find(&self, entry: Option<Entry>, args: &Value, now_ms: i64) -> Found {
        // Whichever is shorter: how long it was kept for, or what the definition says now.
        let entry = entry.map(|entry| Entry { ttl_s: entry.ttl_s.min(self.ttl_s), ..entry });
        match entry.filter(|entry| entry.key == self.key && entry.age_ms(now_ms).is_some()) {
            Some(entry) if !entry.text.is_empty() && canonical(&entry.raw) == canonical(args) => Found::Answer(entry),
            Some(entry) if entry.data.is_some() => Found::Data(entry),
            _ => Found::Nothing,
        }
    }

    /// What is kept of an answer, given what is under its key now. An answer in a bad form, one that says nothing and one
    /// that is too large are not kept: the next call is made.
    pub fn keep(&self, raw: Value, told: Told, before: Option<Entry>, now_ms: i64) -> Option<Entry> {
        let found = told.result.filter(|data| !data.is_null());
        if !told.warnings.is_empty() || (found.is_none() && told.text.is_empty()) {
            return None;
        }
        let (data, created_at_ms) = match (found, self.handed_at_ms) {
            (Some(data), _) => (Some(data), now_ms),
            (None, None) => (None, now_ms),
            // It spoke about what it was handed; if something newer has come, its words are not about that.
            (None, Some(at_ms)) => (before.filter(|before| before.created_at_ms == at_ms)?.data, at_ms),
        };
        let entry = Entry { key: self.key.clone(), raw, data, text: told.text, created_at_ms, ttl_s: self.ttl_s };
        (entry.bytes() <= CACHE_ENTRY_BYTES_MAX).then_some(entry)
    }
}

/// Keys that make room for an entry: what is too old, and the oldest of what is too much.
pub fn dropped(entries: &[Entry], new: &str, now_ms: i64) -> Vec<String> {
    let others = entries.iter().filter(|entry| entry.key != new);
    let (mut fresh, old): (Vec<&Entry>, Vec<&Entry>) = others.partition(|entry| entry.age_ms(now_ms).is_some());
    fresh.sort_by_key(|entry| std::cmp::Reverse(entry.created_at_ms));
    let over = fresh.into_iter().skip(CACHE_ENTRIES_MAX.saturating_sub(1));
    old.into_iter().chain(over).map(|entry| entry.key.clone()).collect()
}

/// What an expert is told: its arguments, and what was found before.
pub fn message(args: &Value, data: Option<&Value>) -> String {
    json!({ "args": args, "cache_data": data }).to_string()
}

/// The arguments in what an expert was told.
pub fn arguments(message: &str) -> Option<Value> {
    match serde_json::from_str(message).ok()? {
        Value::Object(mut message) => message.remove("args"),
        _ => None,
    }
}

/// What the answers of a definition depend on besides the arguments.
fn version(definition: &Definition, place: &str) -> Hash {
    let keys = definition.cache.as_ref().map(|cache| sorted(&cache.keys)).unwrap_or_default();
    let parts = json!([definition.prompt, sorted(&definition.tools), sorted(&definition.skills), keys, place]);
    Hash::of(parts.to_string())
}

fn sorted(names: &[String]) -> Vec<&str> {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// JSON in the one form that equal values have: members in the order of their names.
fn canonical(value: &Value) -> String {
    fn ordered(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(ordered).collect(),
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                let members = members.into_iter().map(|(name, value)| (name.clone(), ordered(value)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }
    ordered(value).to_string()
}

#[cfg(test)]
mod tests;
