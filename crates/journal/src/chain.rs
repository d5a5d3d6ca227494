//! Checks entries while they are read: each against its own hash, and against the entry before it in its stream.
//!
//! A `ChainCheck` gets entries in log order and keeps only the head of each stream, so that a reader can show entries as
//! evidence without reading the log twice. `verify` checks the whole log with it.

use std::collections::{HashMap, HashSet};
use std::fmt;

use max_team_core::hash::Hash;
use serde::{Serialize, Serializer};

use crate::Journal;
use crate::entry::{Entry, Head};
use crate::erase::Tombstone;
use crate::error::JournalError;
use crate::seal::Seal;
use crate::system_events;

/// Entries read from the journal at a time.
const PAGE: usize = 512;

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// It does not hash to what it says.
    Edited,
    /// Entries that must have been there are not.
    Missing,
    /// It stands where another must be.
    Reordered,
    /// A seal does not fit what it covers.
    SealBroken,
    /// Its payload is gone and no tombstone says so.
    PayloadMissing,
    /// The file itself is broken.
    Damaged,
}

/// What exactly is wrong; in English as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultDetail {
    /// Something beside the payload was changed.
    Column,
    /// The payload was changed.
    Payload,
    /// The payload of so many entries is gone.
    PayloadGone {
        hash: Hash,
        /// How many entries have it.
        entries: u64,
    },
    /// A text beside the log was changed.
    Blob(Hash),
    /// The entry before it was another.
    Link,
    /// Entries of the log that are not there.
    Gap { from: u64, to: u64 },
    /// Entries of the stream that are not there.
    StreamGap { from: u64, to: u64 },
    /// Another entry of the stream must be here.
    Place { expected: u64 },
    /// A seal that says nothing.
    SealUnread,
    /// A seal over other entries than there are.
    Seal {
        /// What it covers: how many, from which, to which.
        says: (u64, u64, u64),
        /// What there is.
        found: (u64, u64, u64),
    },
    /// The stream's head does not fit its last entry.
    Head,
    /// The stream has no head.
    NoHead,
    /// Entries that cannot be read; without a last one, nothing behind the first can.
    Unread { from: u64, to: Option<u64> },
    /// The file is shorter than it says.
    Short {
        /// Bytes that are there.
        found: u64,
        /// Bytes that must be.
        expected: u64,
    },
    /// A table, index, trigger or view of the database is not as the program makes it.
    Schema {
        /// What kind of object.
        object: String,
        name: String,
        /// How it differs.
        change: SchemaChange,
    },
    /// The log differs from the one that an external seal was made from.
    ExternalSeal {
        /// The last entry that the seal covers.
        to_seq: u64,
        /// The last entry of the log.
        last_seq: u64,
    },
    /// In the database's own words.
    File(String),
}

/// How an object of the database differs from the one that the program makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaChange {
    /// The program makes no such object.
    Added,
    /// It is not there.
    Missing,
    /// It is defined differently.
    Changed,
}

impl FaultDetail {
    /// What kind of fault it is.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Column | Self::Payload | Self::Blob(_) | Self::Link | Self::Head | Self::NoHead => FaultKind::Edited,
            Self::Gap { .. } | Self::StreamGap { .. } | Self::Schema { change: SchemaChange::Missing, .. } => {
                FaultKind::Missing
            }
            Self::Schema { change: SchemaChange::Added | SchemaChange::Changed, .. } => FaultKind::Edited,
            Self::Place { .. } => FaultKind::Reordered,
            Self::SealUnread | Self::Seal { .. } | Self::ExternalSeal { .. } => FaultKind::SealBroken,
            Self::PayloadGone { .. } => FaultKind::PayloadMissing,
            Self::Unread { .. } | Self::Short { .. } | Self::File(_) => FaultKind::Damaged,
        }
    }
}

impl fmt::Display for FaultDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column => f.write_str("a column does not fit its hash"),
            Self::Payload => f.write_str("the payload does not fit its hash"),
            Self::PayloadGone { hash, entries: 1 } => write!(f, "payload `{hash}` is gone and no tombstone says so"),
            Self::PayloadGone { hash, entries } => {
                write!(f, "payload `{hash}` of {entries} entries is gone and no tombstone says so")
            }
            Self::Blob(hash) => write!(f, "blob `{hash}` does not fit its hash"),
            Self::Link => f.write_str("it does not follow from the entry before it"),
            Self::Gap { from, to } => write!(f, "entries {from} to {to} are not there"),
            Self::StreamGap { from, to } => write!(f, "entries {from} to {to} of the stream are not there"),
            Self::Place { expected } => write!(f, "it stands where entry {expected} of the stream must be"),
            Self::SealUnread => f.write_str("it cannot be read"),
            Self::Seal { says: (count, from, to), found: (there, first, last) } => write!(
                f,
                "it covers {count} entries, {from} to {to}; there are {there}, {first} to {last}, or they differ"
            ),
            Self::Head => f.write_str("its head does not fit its last entry"),
            Self::NoHead => f.write_str("the stream has no head"),
            Self::Unread { from, to: Some(to) } if from == to => write!(f, "entry {from} cannot be read"),
            Self::Unread { from, to: Some(to) } => write!(f, "entries {from} to {to} cannot be read"),
            Self::Unread { from, to: None } => write!(f, "nothing from entry {from} on can be read"),
            Self::Short { found, expected } => {
                write!(f, "its end is missing: {found} bytes of {expected} are there")
            }
            Self::Schema { object, name, change: SchemaChange::Added } => {
                write!(f, "the {object} `{name}` was added to the database")
            }
            Self::Schema { object, name, change: SchemaChange::Missing } => {
                write!(f, "the {object} `{name}` was removed from the database")
            }
            Self::Schema { object, name, change: SchemaChange::Changed } => {
                write!(f, "the {object} `{name}` was changed in the database")
            }
            Self::ExternalSeal { to_seq, last_seq } if last_seq < to_seq => {
                write!(f, "the given seal covers entries 1 to {to_seq}; the log ends with entry {last_seq}")
            }
            Self::ExternalSeal { to_seq, .. } => {
                write!(f, "entries 1 to {to_seq} are not those that the given seal was made of")
            }
            Self::File(words) => f.write_str(words),
        }
    }
}

impl Serialize for FaultDetail {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Looks at entries in the order of the log.
#[derive(Debug)]
pub struct ChainCheck {
    /// The last entry that was met of each stream.
    heads: HashMap<String, Head>,
    /// Whether every stream is met from its first entry on.
    from_start: bool,
    /// The number of the last entry; `None` if only some streams are read, where gaps are normal.
    last_seq: Option<u64>,
    /// The seal that would have to stand here, if it is known.
    unsealed: Option<Seal>,
    /// The payloads that tombstones account for, if they could be read.
    buried: Option<HashSet<Hash>>,
    /// The entries that damage hides, if any were met.
    hidden: Option<UnreadableEntries>,
}

/// Entries that could not be read.
#[derive(Debug, Default)]
struct UnreadableEntries {
    /// Hidden entries that do not explain a gap of a stream yet.
    entries: u64,
    /// Streams that were met after the last hidden entry: damage does not explain a later gap in them.
    met: HashSet<String>,
}

impl Journal {
    /// A check for the log after this entry.
    pub fn check_behind(&self, after_seq: u64) -> ChainCheck {
        let from_start = after_seq == 0;
        let unsealed = from_start.then(|| Seal::after(None));
        ChainCheck { from_start, last_seq: Some(after_seq), unsealed, ..self.check_streams() }
    }

    /// A check for some of the streams, each read from its first entry.
    pub fn check_streams(&self) -> ChainCheck {
        // Without readable tombstones a lost payload looks like an erased one, so none is reported.
        let buried = self.buried().ok();
        ChainCheck { heads: HashMap::new(), from_start: true, last_seq: None, unsealed: None, buried, hidden: None }
    }

    /// The payloads that tombstones account for.
    fn buried(&self) -> Result<HashSet<Hash>, JournalError> {
        let (mut buried, mut after) = (HashSet::new(), 0);
        loop {
            let page = self.read(system_events::ERASED, after, PAGE)?;
            let Some(last) = page.last() else { return Ok(buried) };
            after = last.stream_seq;
            buried.extend(page.iter().flat_map(Tombstone::of));
        }
    }
}

impl ChainCheck {
    /// A check for the whole log, for a caller that accounts for missing payloads itself.
    pub(crate) fn whole() -> Self {
        let unsealed = Some(Seal::after(None));
        Self { heads: HashMap::new(), from_start: true, last_seq: Some(0), unsealed, buried: None, hidden: None }
    }

    /// What is wrong with the next entry; nothing, if it is as it was written.
    pub fn entry(&mut self, entry: &Entry) -> Vec<FaultDetail> {
        let mut faults = Vec::new();
        faults.extend(self.place(entry));
        faults.extend(self.content(entry));
        faults.extend(self.link(entry));
        if entry.stream == system_events::SEAL {
            faults.extend(self.seal(entry));
        }
        if let Some(unsealed) = &mut self.unsealed {
            unsealed.add(entry.seq, &entry.hash);
        }
        self.last_seq = self.last_seq.map(|_| entry.seq);
        let head = Head { row: 0, stream_seq: entry.stream_seq, hash: entry.hash };
        match self.heads.get_mut(&entry.stream) {
            Some(known) => *known = head,
            None => drop(self.heads.insert(entry.stream.clone(), head)),
        }
        if let Some(hidden) = self.hidden.as_mut().filter(|hidden| !hidden.met.contains(&entry.stream)) {
            hidden.met.insert(entry.stream.clone());
        }
        faults
    }

    /// Passes over entries that cannot be read; a stream may continue after them with a gap.
    pub fn skip(&mut self, from: u64, to: Option<u64>) {
        let hidden = self.hidden.get_or_insert_default();
        let entries = to.map_or(u64::MAX, |to| to.saturating_sub(from).saturating_add(1));
        hidden.entries = hidden.entries.saturating_add(entries);
        hidden.met.clear();
        self.last_seq = self.last_seq.and(to);
        // The next seal covers entries that were not read, so it cannot be compared; later seals build on what it
        // says.
        self.unsealed = None;
    }

    /// Whether anything could not be read.
    pub(crate) fn has_skipped(&self) -> bool {
        self.hidden.is_some()
    }

    /// Whether the entries that a stream lacks can be hidden ones. Each hidden entry explains one missing entry.
    pub(crate) fn is_hidden(&mut self, stream: &str, lacking: u64) -> bool {
        let Some(hidden) = self.hidden.as_mut().filter(|hidden| !hidden.met.contains(stream)) else { return false };
        let left = hidden.entries.checked_sub(lacking);
        hidden.entries = left.unwrap_or(hidden.entries);
        left.is_some()
    }

    /// The last entry that was met of each stream.
    pub(crate) fn take_heads(&mut self) -> HashMap<String, Head> {
        std::mem::take(&mut self.heads)
    }

    /// Entry numbers have no gaps: the write transaction assigns them.
    fn place(&self, entry: &Entry) -> Option<FaultDetail> {
        let from = self.last_seq?.saturating_add(1);
        (entry.seq > from).then(|| FaultDetail::Gap { from, to: entry.seq - 1 })
    }

    fn content(&self, entry: &Entry) -> impl Iterator<Item = FaultDetail> {
        let column = (entry.digest() != entry.hash).then_some(FaultDetail::Column);
        let hash = entry.payload_hash;
        let payload = match &entry.payload {
            Some(payload) => (Hash::of(payload) != hash).then_some(FaultDetail::Payload),
            None => {
                let is_lost = self.buried.as_ref().is_some_and(|buried| !buried.contains(&hash));
                is_lost.then_some(FaultDetail::PayloadGone { hash, entries: 1 })
            }
        };
        column.into_iter().chain(payload)
    }

    fn link(&mut self, entry: &Entry) -> Option<FaultDetail> {
        let head = match self.heads.get(&entry.stream) {
            Some(head) => *head,
            // Earlier entries of the stream were not read.
            None if !self.from_start && entry.stream_seq > 1 => return None,
            None => Head::default(),
        };
        let expected = head.stream_seq + 1;
        if entry.stream_seq > expected {
            if self.is_hidden(&entry.stream, entry.stream_seq - expected) {
                return None;
            }
            Some(FaultDetail::StreamGap { from: expected, to: entry.stream_seq - 1 })
        } else if entry.stream_seq < expected {
            Some(FaultDetail::Place { expected })
        } else {
            (entry.prev_hash != head.hash).then_some(FaultDetail::Link)
        }
    }

    /// Compares a seal with what it covers, and begins the next one.
    fn seal(&mut self, entry: &Entry) -> Option<FaultDetail> {
        let found = self.unsealed;
        let Some(says) = entry.payload.as_deref().and_then(|payload| serde_json::from_slice::<Seal>(payload).ok())
        else {
            self.unsealed = found.map(|found| Seal::after(Some(&found)));
            return Some(FaultDetail::SealUnread);
        };
        // Later seals build on what this seal says, so that they do not report the same fault again.
        self.unsealed = Some(Seal::after(Some(&says)));
        let range = |seal: Seal| (seal.count, seal.from_seq, seal.to_seq);
        let found = found.filter(|found| says != *found)?;
        Some(FaultDetail::Seal { says: range(says), found: range(found) })
    }
}
