//! The journal's own bounds; those that others share are in `max_team_core::limits`.

use std::time::Duration;

/// Bytes of one payload, blob or snapshot.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// Entries that a watcher reads at once.
pub(crate) const WATCH_ENTRIES_MAX: usize = 64;
/// Entries that a fold reads at once.
pub(crate) const FOLD_ENTRIES_MAX: usize = 256;
/// Faults that a verification lists; the rest are counted.
pub(crate) const FAULTS_MAX: usize = 1_000;
/// Lines that the database's own check returns.
pub(crate) const CHECK_LINES_MAX: usize = 100;
/// Entry numbers that a walk tries in order to find readable entries after damage.
pub(crate) const PROBES_MAX: u32 = 100_000;
/// Entry numbers tried at one damaged place if the number of entries in the log is unknown.
pub(crate) const PROBES_AHEAD: u64 = 4_096;
/// Read connections kept open while idle.
pub(crate) const READERS_IDLE_MAX: usize = 2;
/// Prepared statements kept per connection.
pub(crate) const STATEMENTS_MAX: usize = 64;
/// Memory for pages per connection that reads.
pub(crate) const CACHE_KIB: i64 = 1_024;
/// Memory for pages of the connection that writes: more, because a large team changes the same pages all the time.
pub(crate) const WRITER_CACHE_KIB: i64 = 4_096;
/// Pages in the write-ahead log before they are moved into the database. A crash leaves at most about this much to be
/// read again at the next start.
pub(crate) const CHECKPOINT_PAGES: i64 = 2_000;
/// Bytes that the write-ahead log keeps on disk for reuse.
pub(crate) const LOG_BYTES_KEPT: i64 = 16 << 20;
/// How long to wait for another process's transaction.
pub(crate) const BUSY_MAX: Duration = Duration::from_secs(5);
/// How long a group waits for the callers that the last group answered: the duration of the last sync divided by this.
pub(crate) const PACE_SHARE: u32 = 8;
/// The longest such wait.
pub(crate) const PACE_MAX: Duration = Duration::from_millis(1);
/// How long patient commits wait for others to share their transaction.
pub(crate) const GATHER: Duration = Duration::from_millis(5);
/// Patient commits do not wait if so many are queued.
pub(crate) const GATHERED_MIN: usize = 128;
/// Pages that a backup copies at a time.
pub(crate) const COPY_PAGES: i32 = 1_024;
/// Rows that a comparison names; the rest are counted.
pub(crate) const DRIFT_ROWS_MAX: usize = 100;
/// How often an erasure in memory is decided again because a commit came in between.
pub(crate) const ERASE_TRIES_MAX: usize = 64;
