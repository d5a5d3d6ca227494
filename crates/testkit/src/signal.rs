//! A value that test threads can wait on.
//!
//! The server changes it, a test blocks until it looks right. Every wait ends: after [`WAIT_MAX`] it panics with an
//! account of what was seen, so a test that would hang fails with a reason. Async tests wait on a blocking thread,
//! because the product they drive may live on the very thread that would block.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a test waits for something that should happen at once. Generous: it is only ever spent on a failure.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub(crate) struct Signal<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Signal<T> {
    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.lock())
    }

    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Blocks until `done`; when that takes too long, panics with `story`.
    pub(crate) fn wait(&self, done: impl Fn(&T) -> bool, story: impl Fn(&T) -> String) {
        let (value, timeout) = self
            .changed
            .wait_timeout_while(self.lock(), WAIT_MAX, |value| !done(value))
            .unwrap_or_else(PoisonError::into_inner);
        let late = timeout.timed_out().then(|| story(&value));
        // Released first: the panic must not poison what other threads still read.
        drop(value);
        if let Some(story) = late {
            panic!("waited {} s: {story}", WAIT_MAX.as_secs());
        }
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a blocking wait for an async caller, and lets its panic through.
pub(crate) async fn off_thread<T: Send + Sync + 'static>(shared: Arc<T>, wait: impl FnOnce(&T) + Send + 'static) {
    if let Err(error) = tokio::task::spawn_blocking(move || wait(&shared)).await {
        std::panic::resume_unwind(error.into_panic());
    }
}
