//! Cache of an expert's answers: which entry answers a call, and for how long.
//!
//! An entry holds one call: all its arguments, the data and the text of the answer. Its key is a hash of the values of
//! the definition's `cache.keys`, of the definition itself and of where it works. A call with the same arguments is
//! answered by the entry; a call that shares only the key is made, and gets the entry's data. An entry is as old as
//! its data: new text about old data does not make it fresher.
//!
//! A task of a plan is cached in the same way. It has no arguments: its title, description, inputs and model count
//! instead. Only its text is cached.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::ExpertReply;
use crate::agent::Definition;
use crate::hash::Hash;
use crate::limits::{CACHE_ENTRIES_MAX, CACHE_ENTRY_BYTES_MAX, CALL_TITLE_CHARS_MAX};
use crate::plan::TaskDraft;

/// Hex digits of a key.
const KEY_DIGITS: usize = 12;

/// One cached call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheEntry {
    /// Hash that calls with the same key values share.
    pub key: String,
    /// All arguments of the call.
    pub raw: Value,
    /// The data; `None` if the answer had only text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The text of the answer; may be empty.
    pub text: String,
    /// When the data was found.
    pub created_at_ms: i64,
    /// Seconds for which the entry may be used.
    pub ttl_s: u64,
}

/// An answer was cached. It replaces the entry of the same call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheKept {
    pub entry: CacheEntry,
    /// Ids of entries that it displaces: expired, outdated, or too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
}

/// Entries were removed from the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCleared {
    /// Ids of the removed entries.
    pub ids: Vec<String>,
}

/// A call whose answer may be cached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheKey {
    /// Key of the cache entry.
    pub key: String,
    /// Hash of the expert, the key and all arguments.
    pub call: Hash,
    /// Seconds for which the answer may be used.
    pub ttl_s: u64,
    /// Age of the cached data that the expert was given; `None` if it was given none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_at_ms: Option<i64>,
    /// Stands for the arguments of a plan's task; `None` for a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Value>,
}

/// What the cache has for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheLookup {
    /// The answer of an earlier call with the same arguments.
    Answer(CacheEntry),
    /// Data of an earlier call with the same key.
    Data(CacheEntry),
    /// No entry that is still fresh.
    Nothing,
}

impl CacheEntry {
    /// Age of the entry; `None` if it has expired or its time lies in the future.
    pub fn age_ms(&self, now_ms: i64) -> Option<u64> {
        let age_ms = u64::try_from(now_ms.saturating_sub(self.created_at_ms)).ok()?;
        (age_ms < self.ttl_s.saturating_mul(1_000)).then_some(age_ms)
    }

    /// Identifies the entry among those of its expert: its key and its arguments.
    pub fn id(&self) -> String {
        format!("{}-{}", self.key, short(Hash::of(canonical(&self.raw))))
    }

    fn bytes(&self) -> usize {
        let data = self.data.as_ref().map_or(0, |data| data.to_string().len());
        self.raw.to_string().len().saturating_add(data).saturating_add(self.text.len())
    }
}

impl CacheKey {
    /// Cache key of a call of this expert. `place` describes where it works: the same text for the same root and
    /// limits. `None` if the definition caches nothing.
    pub fn for_call(definition: &Definition, place: &str, args: &Value) -> Option<Self> {
        let cache = definition.cache.as_ref().filter(|cache| cache.ttl_s > 0)?;
        let mut fields = vec![version(definition, place).to_string().into_bytes()];
        // Without configured keys all arguments are part of the key.
        let every = args.as_object().map(|args| args.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        for name in sorted(if cache.keys.is_empty() { &every } else { &cache.keys }) {
            let (state, value) = match args.get(name) {
                Some(value) => ("is", canonical(value)),
                None => ("is missing", String::new()),
            };
            fields.extend([name.as_bytes().to_vec(), state.as_bytes().to_vec(), value.into_bytes()]);
        }
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        let key = short(Hash::of_fields(&fields));
        let call = Hash::of_fields(&[definition.name.as_bytes(), key.as_bytes(), canonical(args).as_bytes()]);
        Some(Self { key, call, ttl_s: cache.ttl_s, handed_at_ms: None, step: None })
    }

    /// Cache key of a plan's task that this agent does with this model. `upstream` names the results that the task
    /// builds on, each with the hash of its text. `None` if the definition caches nothing or the task leaves more than
    /// text.
    pub fn step(
        definition: &Definition,
        place: &str,
        model: &str,
        task: &TaskDraft,
        upstream: &[(String, Hash)],
    ) -> Option<Self> {
        let cache = definition.cache.as_ref().filter(|cache| cache.ttl_s > 0 && task.leaves_only_words())?;
        let upstream: Vec<(&str, String)> = upstream.iter().map(|(name, hash)| (&**name, hash.to_string())).collect();
        let inputs = json!([task.caption(), task.description, upstream]);
        let title: String = task.caption().chars().take(CALL_TITLE_CHARS_MAX).collect();
        let step = json!({ "task": title, "model": model, "inputs": Hash::of(inputs.to_string()) });
        let (version, raw) = (version(definition, place).to_string(), canonical(&step));
        let key = short(Hash::of_fields(&[version.as_bytes(), b"step", raw.as_bytes()]));
        let call = Hash::of_fields(&[definition.name.as_bytes(), b"step", key.as_bytes(), raw.as_bytes()]);
        Some(Self { key, call, ttl_s: cache.ttl_s, handed_at_ms: None, step: Some(step) })
    }

    /// Looks a call up among the cached entries of its expert.
    pub fn find(&self, entries: &[CacheEntry], args: &Value, now_ms: i64) -> CacheLookup {
        // Whichever is shorter: how long it was kept for, or what the definition says now.
        let is_fresh =
            |entry: &&CacheEntry| entry.age_ms(now_ms).is_some_and(|age_ms| age_ms < self.ttl_s.saturating_mul(1_000));
        let like_it: Vec<&CacheEntry> = entries.iter().filter(|entry| entry.key == self.key).filter(is_fresh).collect();
        let newest = like_it.iter().filter(|entry| entry.data.is_some()).max_by_key(|entry| entry.created_at_ms);
        // An answer about data that newer data under the same key has replaced is not given again.
        let is_current = |entry: &CacheEntry| newest.is_none_or(|newest| entry.created_at_ms >= newest.created_at_ms);
        let args = canonical(args);
        let is_same = |entry: &&CacheEntry| !entry.text.is_empty() && canonical(&entry.raw) == args;
        match like_it.iter().copied().filter(|entry| is_current(entry)).find(is_same) {
            Some(answer) => CacheLookup::Answer(answer.clone()),
            None => newest.map_or(CacheLookup::Nothing, |newest| CacheLookup::Data((*newest).clone())),
        }
    }

    /// The entry to cache for an answer, given the earlier entries. An answer that is malformed, empty or too large is
    /// not cached: the next call is made.
    pub fn entry_for(&self, raw: Value, told: ExpertReply, entries: &[CacheEntry], now_ms: i64) -> Option<CacheEntry> {
        let found = told.result.filter(|data| !data.is_null());
        if !told.warnings.is_empty() || (found.is_none() && told.text.is_empty()) {
            return None;
        }
        let is_handed = |entry: &&CacheEntry| entry.key == self.key && Some(entry.created_at_ms) == self.handed_at_ms;
        let handed = entries.iter().filter(is_handed).find_map(|entry| entry.data.as_ref());
        let (data, created_at_ms) = match (found, self.handed_at_ms) {
            // Handed back unchanged: it is as old as it was.
            (Some(data), Some(at_ms)) if handed == Some(&data) => (Some(data), at_ms),
            (Some(data), _) => (Some(data), now_ms),
            (None, None) => (None, now_ms),
            // It spoke about what it was handed; if that is gone, its words are about nothing that is kept.
            (None, Some(at_ms)) => (Some(handed?.clone()), at_ms),
        };
        let entry = CacheEntry { key: self.key.clone(), raw, data, text: told.text, created_at_ms, ttl_s: self.ttl_s };
        (entry.bytes() <= CACHE_ENTRY_BYTES_MAX).then_some(entry)
    }
}

/// How old an answer is, in the unit that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerAge {
    /// Less than a minute.
    Moments,
    /// So many minutes.
    Minutes(u64),
    /// So many hours.
    Hours(u64),
    /// So many days.
    Days(u64),
}

impl AnswerAge {
    /// The age of an entry of this many milliseconds.
    pub fn from_ms(ms: u64) -> Self {
        match ms / 60_000 {
            0 => Self::Moments,
            minutes @ 1..120 => Self::Minutes(minutes),
            minutes if minutes < 48 * 60 => Self::Hours(minutes / 60),
            minutes => Self::Days(minutes / (24 * 60)),
        }
    }
}

impl fmt::Display for AnswerAge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moments => out.write_str("less than a minute old"),
            Self::Minutes(minutes) => write!(out, "{minutes} min old"),
            Self::Hours(hours) => write!(out, "{hours} h old"),
            Self::Days(days) => write!(out, "{days} days old"),
        }
    }
}

/// The entries that a new one displaces: those that are too old, those under its key whose data is older than its own, and
/// the oldest of those that are too many.
pub fn dropped(entries: &[CacheEntry], new: &CacheEntry, now_ms: i64) -> Vec<String> {
    let id = new.id();
    let others = entries.iter().filter(|entry| entry.id() != id);
    let is_outdated =
        |entry: &CacheEntry| new.data.is_some() && entry.key == new.key && entry.created_at_ms < new.created_at_ms;
    let is_kept = |entry: &&CacheEntry| entry.age_ms(now_ms).is_some() && !is_outdated(entry);
    let (mut fresh, old): (Vec<&CacheEntry>, Vec<&CacheEntry>) = others.partition(is_kept);
    fresh.sort_by_key(|entry| std::cmp::Reverse(entry.created_at_ms));
    let over = fresh.into_iter().skip(CACHE_ENTRIES_MAX.saturating_sub(1));
    old.into_iter().chain(over).map(CacheEntry::id).collect()
}

/// The message to an expert: the arguments, and cached data.
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

fn short(hash: Hash) -> String {
    hash.to_string().chars().take(KEY_DIGITS).collect()
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
