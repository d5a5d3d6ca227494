//! A point where the server stops until the test says go.
//!
//! The test learns that the server has got there ([`Gate::wait_reached`]), does what it came for (kills the product,
//! looks at its files, starts another agent), then opens the gate. A gate opens once and stays open. One gate may be
//! shared by several replies: that is how a test proves that agents run side by side.

use std::sync::Arc;

use tokio::sync::watch;

use crate::signal::{Signal, off_thread};

#[derive(Clone, Debug, Default)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    open: watch::Sender<bool>,
    /// How many responses have come to this gate so far.
    reached: Signal<usize>,
}

impl Gate {
    pub fn new() -> Gate {
        Gate::default()
    }

    pub fn open(&self) {
        self.inner.open.send_replace(true);
    }

    pub fn is_open(&self) -> bool {
        *self.inner.open.borrow()
    }

    /// Whether a response has come to the gate.
    pub fn is_reached(&self) -> bool {
        self.inner.reached.read(|count| *count > 0)
    }

    /// Blocks until a response stands at the gate. In async tests use [`Gate::reached`].
    pub fn wait_reached(&self) {
        self.wait_reached_by(1);
    }

    /// Blocks until `count` responses have come to the gate.
    pub fn wait_reached_by(&self, count: usize) {
        self.inner.wait(count);
    }

    pub async fn reached(&self) {
        self.reached_by(1).await;
    }

    pub async fn reached_by(&self, count: usize) {
        off_thread(self.inner.clone(), move |inner| inner.wait(count)).await;
    }

    /// The server's side: says that it is here, and waits.
    pub(crate) async fn pass(&self) {
        let mut open = self.inner.open.subscribe();
        self.inner.reached.update(|count| *count += 1);
        // It cannot fail: the sender lives as long as `self`.
        let _ = open.wait_for(|open| *open).await;
    }
}

impl Inner {
    fn wait(&self, count: usize) {
        self.reached.wait(|seen| *seen >= count, |seen| format!("{seen} of {count} responses came to the gate"));
    }
}
