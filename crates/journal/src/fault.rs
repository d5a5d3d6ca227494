//! Fault injection: a handle in memory whose process dies with a commit.
//!
//! The commit that kills is stored, and neither it nor any later one returns: whoever waits for it does nothing about
//! it, as if the process had been killed in between. Only tests ask for it; a handle that nobody doomed pays for one
//! look at a lock. Reading goes on, for it leaves no trace.

use std::future::{Future, pending};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// How long a handle's process lives.
#[derive(Debug)]
pub(crate) struct Life {
    /// Commits that are still stored; without it, all.
    left: Mutex<Option<u64>>,
    dead: watch::Sender<bool>,
}

impl Default for Life {
    fn default() -> Self {
        Self { left: Mutex::default(), dead: watch::Sender::new(false) }
    }
}

impl Life {
    /// Ends with the commit of this number from now on; the future ends then too.
    pub(crate) fn end_with(&self, commit: u64) -> impl Future<Output = ()> + Send + 'static {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(commit);
        let mut dead = self.dead.subscribe();
        async move {
            // The handles may be gone by then: nobody is left to die.
            if dead.wait_for(|dead| *dead).await.is_err() {
                pending::<()>().await;
            }
        }
    }

    /// Returns only to the living.
    pub(crate) async fn go_on(&self) {
        if *self.dead.borrow() {
            pending::<()>().await;
        }
    }

    /// A commit was stored.
    pub(crate) async fn stored(&self) {
        let last = match &mut *self.left.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(left) => {
                *left = left.saturating_sub(1);
                *left == 0
            }
            None => false,
        };
        if last {
            self.dead.send_replace(true);
        }
        self.go_on().await;
    }
}
