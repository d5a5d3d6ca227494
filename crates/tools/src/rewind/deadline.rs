//! How long a scan of a tree, or a wait for another scan, goes on.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use max_team_core::rewind::SkippedReason;
use tokio_util::sync::CancellationToken;

use crate::progress::Progress;

/// How often a wait checks whether it should go on.
const AGAIN: Duration = Duration::from_millis(20);
/// How long a scan may go on once the program is about to end, because the end waits for it.
const LEAVE_MAX: Duration = Duration::from_secs(3);

/// When the program was told to end, if it was.
pub(super) type ShutdownTime = OnceLock<Instant>;

/// What ends a scan or a wait.
pub(super) struct Deadline<'a> {
    pub(super) until: Instant,
    pub(super) cancel: &'a CancellationToken,
    pub(super) leaving: &'a ShutdownTime,
    pub(super) progress: &'a Progress,
}

impl Deadline<'_> {
    /// Whether it has to end; also reports what takes so long.
    pub(super) fn is_over(&self) -> bool {
        self.progress.say(|| "looking at the project".to_owned());
        Instant::now() >= self.until || self.is_stopped()
    }

    /// Whether it was cancelled, or the program is about to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled() || self.leaving.get().is_some_and(|since| since.elapsed() >= LEAVE_MAX)
    }

    /// Tries until it succeeds.
    pub(super) fn wait<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> Result<T, SkippedReason> {
        loop {
            if let Some(had) = attempt() {
                return Ok(had);
            }
            if self.is_over() {
                return Err(SkippedReason::Slow);
            }
            thread::park_timeout(AGAIN);
        }
    }

    /// Waits for a lock. One whose holder panicked still guards plain data.
    pub(super) fn lock<'m, T>(&self, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>, SkippedReason> {
        self.wait(|| match mutex.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(held)) => Some(PoisonError::into_inner(held)),
            Err(TryLockError::WouldBlock) => None,
        })
    }
}
