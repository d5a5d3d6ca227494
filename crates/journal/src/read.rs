//! What readers get besides entries.

use serde::{Deserialize, Serialize};

use crate::entry::Entry;

/// One step of a walk over a log that may be damaged.
#[derive(Debug)]
pub enum ScanItem<'a> {
    /// The next entry that can be read.
    Entry(&'a Entry),
    /// Entries that cannot be read.
    Unread {
        from: u64,
        /// The last of them; `None` if nothing after the first can be read.
        to: Option<u64>,
    },
}

/// A folded state that a commit kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The last entry inside the state.
    pub stream_seq: u64,
    /// The version of the state's shape and of the fold that made it.
    pub version: u32,
    /// The state, as JSON.
    pub state: Vec<u8>,
}

/// A projected row in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedRow {
    pub key: String,
    /// What the list is sorted by.
    pub sort_ms: i64,
    /// The row, as JSON.
    pub value: Vec<u8>,
}

impl ListedRow {
    /// Where the next page of the list begins.
    pub fn cursor(&self) -> Cursor {
        Cursor { sort_ms: self.sort_ms, key: self.key.clone() }
    }
}

/// A place in a list: what comes after it is older, or equally old with a smaller key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cursor {
    /// The last item's sort value.
    pub sort_ms: i64,
    /// The last item's key.
    pub key: String,
}
