//! Where audit lines gather until their thread writes them.
//!
//! Work that comes in a burst (a wave of answers) is worth one write, not one per line, and none of it on the thread
//! that the work waits for. The thread begins with the first item and is woken by items, never by a clock.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use max_team_core::event::Event;
use max_team_core::message::Envelope;

use super::{AuditLevel, AuditOptions, Item, Writer};
use crate::handle::Origin;
use crate::shared::lock;

/// How long the first item of a burst waits for the others.
const GATHER: Duration = Duration::from_millis(5);
/// Items that may wait; more are counted and left out.
const ITEMS_MAX: usize = 16_384;

/// The audit file, as the house sees it.
#[derive(Debug)]
pub(crate) struct Audit {
    /// Whether letters are worth a line.
    letters: bool,
    tray: Arc<Tray>,
    thread: Mutex<Option<JoinHandle<()>>>,
    writer: Mutex<Option<Writer>>,
}

#[derive(Debug, Default)]
struct Tray {
    state: Mutex<State>,
    /// There is something to write.
    filled: Condvar,
    /// Nothing more will come.
    closing: Condvar,
}

#[derive(Debug, Default)]
struct State {
    items: Vec<Item>,
    /// Items that there was no room for.
    left_out: u64,
    closed: bool,
}

impl Audit {
    pub(crate) fn new(options: AuditOptions) -> Self {
        let letters = options.level <= AuditLevel::Debug;
        let writer = Writer { options, file: None, names: Default::default() };
        Self { letters, tray: Arc::default(), thread: Mutex::new(None), writer: Mutex::new(Some(writer)) }
    }

    /// Something happened.
    pub(crate) fn event(&self, from: &Arc<Origin>, at_ms: i64, event: &Arc<Event>) {
        self.put(Item::Event { from: Arc::clone(from), at_ms, event: Arc::clone(event) });
    }

    /// A letter was sent.
    pub(crate) fn letter(&self, letter: &Envelope) {
        if self.letters {
            self.put(Item::Letter(letter.clone()));
        }
    }

    fn put(&self, item: Item) {
        let mut state = lock(&self.tray.state);
        if state.closed {
            return;
        }
        if state.items.len() >= ITEMS_MAX {
            state.left_out += 1;
            return;
        }
        state.items.push(item);
        let first = state.items.len() == 1;
        drop(state);
        if first {
            self.begin();
            self.tray.filled.notify_one();
        }
    }

    /// Starts the thread, once. Without one nobody could write: what waits is dropped, as a line on a full disk is.
    fn begin(&self) {
        let Some(writer) = lock(&self.writer).take() else { return };
        let tray = Arc::clone(&self.tray);
        match std::thread::Builder::new().name("audit".to_owned()).spawn(move || tray.run(writer)) {
            Ok(thread) => *lock(&self.thread) = Some(thread),
            Err(_) => lock(&self.tray.state).closed = true,
        }
    }

    /// Writes what has gathered, and ends the thread.
    pub(crate) fn close(&self) {
        lock(&self.tray.state).closed = true;
        self.tray.filled.notify_one();
        self.tray.closing.notify_one();
        if let Some(thread) = lock(&self.thread).take() {
            // A crash of that thread has cost lines, nothing else.
            drop(thread.join());
        }
    }
}

impl Tray {
    fn run(&self, mut writer: Writer) {
        loop {
            let mut state = lock(&self.state);
            while state.items.is_empty() {
                if state.closed {
                    return;
                }
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let gathered = self.closing.wait_timeout_while(state, GATHER, |state| !state.closed);
            let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
            let (items, left_out) = (std::mem::take(&mut state.items), std::mem::take(&mut state.left_out));
            drop(state);
            writer.write(items, left_out);
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.close();
    }
}
