//! Everything that can go wrong, typed; each says what happened and what to do next.
//!
//! Errors are clonable, because the commits that share a transaction share its failure. They carry no engine's
//! types: a caller cannot tell, and need not know, which store is underneath.

use std::path::PathBuf;

use max_team_core::id::{EnvelopeId, WorkerId};

use crate::outbox::PartState;
use crate::worker::WorkerInfo;

/// Why the journal did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Another writer appended to the stream first.
    #[error(
        "stream `{stream}` is at {found}, not at {expected}: another writer was first; read it again and decide anew"
    )]
    Conflict {
        stream: String,
        /// Where it should have been.
        expected: u64,
        /// Where it is.
        found: u64,
    },
    /// The writer no longer owns what it writes to.
    #[error("`{resource}` is no longer ours ({}): stop working on it", held(*owner))]
    Fenced {
        /// What was owned.
        resource: String,
        /// The worker that owns it now, if there is one.
        owner: Option<WorkerId>,
    },
    /// A live worker owns it.
    #[error("`{resource}` is owned by `{}` (process {} on `{}`): go on there, or stop it first", by.what, by.pid, by.host)]
    Owned {
        /// What was to be claimed.
        resource: String,
        by: Box<WorkerInfo>,
    },
    /// The timer was already fired or cancelled, for example by another process.
    #[error("timer `{timer}` is gone: it was fired or cancelled already; do nothing")]
    Gone { timer: String },
    /// No message was ever sent under this id.
    #[error("no message `{id}` was ever sent: acknowledge only what `pending_mail` returned")]
    UnknownMail { id: EnvelopeId },
    /// No such part is in the outbox.
    #[error("no part `{part}` is in the outbox: put it there first")]
    UnknownPart { part: String },
    /// The part is not where it would have to be.
    #[error("part `{part}` is `{from}` and cannot become `{to}`: read the outbox again")]
    IllegalMove {
        part: String,
        /// Where it is.
        from: PartState,
        /// Where it was to go.
        to: PartState,
    },
    /// The stream is written by the journal alone.
    #[error("stream `{stream}` is the journal's own: use sends, acks, timers, outbox or erase")]
    Reserved { stream: String },
    /// A payload, blob or state beyond the bound.
    #[error("{bytes} bytes are too many for one payload (at most {max}): split it")]
    TooBig { bytes: usize, max: usize },
    /// Something stored or to be stored is not the JSON it should be.
    #[error("{what} is not valid: {detail}; run `max-team audit verify`")]
    Malformed { what: String, detail: String },
    /// No space is left.
    #[error("no space left for `{path}`: nothing of this was stored; free some space and try again")]
    DiskFull { path: PathBuf },
    /// The place cannot be written to.
    #[error(
        "cannot write `{path}`: {detail}; make it writable for this user, or set `MAX_TEAM_HOME` to a place that is"
    )]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        detail: String,
    },
    /// A file is where the folder should be.
    #[error("`{path}` is a file, and a folder is needed there; move it away, or set `MAX_TEAM_HOME` to a folder")]
    NoFolder {
        /// What is in the way.
        path: PathBuf,
    },
    /// There is no journal, or nothing in its file.
    #[error(
        "there is no journal in `{path}`, or the file is empty; set `MAX_TEAM_HOME` to where it is, or restore a copy"
    )]
    Absent {
        /// Where it would be.
        path: PathBuf,
    },
    /// Something is there already, and is not overwritten.
    #[error("`{path}` is already there and was left as it is: name another file, or move this one away")]
    Exists { path: PathBuf },
    /// Another process uses the journal that is to be replaced.
    #[error("`{path}` is in use by {by}: stop it first (`max-team ps`, `max-team stop`), then try again")]
    InUse {
        path: PathBuf,
        /// The processes, as text.
        by: String,
    },
    /// The file is damaged, or no journal at all.
    #[error(
        "`{path}` is damaged: {detail}; `max-team audit verify` tells more; restore a copy, or move the file aside to start anew"
    )]
    Corrupt {
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The file at the path is not the opened file any more, so writes to the opened one would be lost.
    #[error(
        "`{path}` was deleted, moved or replaced while it was in use: nothing more can be kept; \
         put it back or restore a backup (`max-team restore FILE`), then start again"
    )]
    Removed {
        /// The database, or its write-ahead log.
        path: PathBuf,
    },
    /// A newer program wrote it.
    #[error("`{path}` has version {found}, this program knows {known}: it was left untouched; update max-team")]
    Newer {
        path: PathBuf,
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// Another process holds the write lock for too long.
    #[error("`{path}` is being written by another process: try again; if it stays so, look for a stuck `max-team`")]
    Busy { path: PathBuf },
    /// The journal has been closed.
    #[error("the journal is closed: open it again")]
    Closed,
    /// Anything else the system refused.
    #[error("`{path}` failed: {detail}; check the disk, then start again: what was acknowledged is kept")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        detail: String,
    },
}

impl JournalError {
    /// Whether it refuses one commit for what it says, rather than failing all for what the disk does.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Conflict { .. }
            | Self::Fenced { .. }
            | Self::Owned { .. }
            | Self::Gone { .. }
            | Self::UnknownMail { .. }
            | Self::UnknownPart { .. }
            | Self::IllegalMove { .. }
            | Self::Reserved { .. }
            | Self::TooBig { .. }
            | Self::Malformed { .. } => true,
            Self::DiskFull { .. }
            | Self::Unwritable { .. }
            | Self::NoFolder { .. }
            | Self::Absent { .. }
            | Self::Exists { .. }
            | Self::InUse { .. }
            | Self::Corrupt { .. }
            | Self::Removed { .. }
            | Self::Newer { .. }
            | Self::Busy { .. }
            | Self::Closed
            | Self::Io { .. } => false,
        }
    }
}

fn held(owner: Option<WorkerId>) -> String {
    owner.map_or_else(|| "no worker owns it".to_owned(), |worker| format!("`{worker}` owns it"))
}
