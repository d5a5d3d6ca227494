//! Waits that end on time.
//!
//! The runtime's timers tick in whole milliseconds and round up; a bench that adds up ten answers would charge the
//! client for the rounding. Here one thread sleeps until the next deadline, to some tens of microseconds, and wakes
//! whoever waits for it. It never spins: the client under measure needs the processor.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::sync::oneshot;

#[derive(Debug)]
pub(crate) struct Clock {
    face: Arc<Face>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Face {
    waits: Mutex<Waits>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waits {
    /// By deadline; the number tells those of the same instant apart.
    by_time: BTreeMap<(Instant, u64), oneshot::Sender<()>>,
    count: u64,
    stopped: bool,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        let face = Arc::new(Face::default());
        let thread = std::thread::Builder::new().name("model-clock".into()).spawn({
            let face = face.clone();
            move || face.run()
        });
        Clock { face, thread: Some(thread.expect("start the clock")) }
    }

    /// Returns at `at`, or never if the clock stops before.
    pub(crate) async fn until(&self, at: Instant) {
        let (wake, woken) = oneshot::channel();
        {
            let mut waits = self.face.lock();
            waits.count += 1;
            let n = waits.count;
            waits.by_time.insert((at, n), wake);
        }
        self.face.changed.notify_all();
        if woken.await.is_err() {
            std::future::pending().await
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.face.lock().stopped = true;
        self.face.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // Its panic, if any, was printed by itself.
            let _ = thread.join();
        }
    }
}

impl Face {
    fn run(&self) {
        let mut waits = self.lock();
        while !waits.stopped {
            let now = Instant::now();
            while let Some(first) = waits.by_time.first_entry().filter(|first| first.key().0 <= now) {
                // Whoever waited may have gone with its connection.
                let _ = first.remove().send(());
            }
            waits = match waits.by_time.keys().next() {
                Some((next, _)) => {
                    let left = next.saturating_duration_since(now);
                    self.changed.wait_timeout(waits, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(waits).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
