//! Queues audit lines until their thread writes them.
//!
//! A burst of events (a wave of answers) is worth one write, not one per line, and none of it on the thread that the
//! work waits for. A line is formatted at once: keeping the event, and freeing it on another thread, would cost more.
//! The thread starts with the first line and is woken by lines, never by a timer.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use max_team_core::event::Event;
use max_team_core::message::Envelope;
use serde_json::json;

use super::{AuditBuffer, AuditFailure, AuditLevel, AuditOptions, Writer};
use crate::handle::Origin;
use crate::shared::lock;

/// How long the first line of a burst waits for the others.
const GATHER: Duration = Duration::from_millis(5);
/// Lines that may wait; further ones are only counted.
const LINES_MAX: usize = 16_384;

/// The audit file, as the runtime uses it.
#[derive(Debug)]
pub(crate) struct Audit {
    /// Whether messages get a line.
    envelopes: bool,
    tray: Arc<Tray>,
    thread: Mutex<Option<JoinHandle<()>>>,
    writer: Mutex<Option<Writer>>,
}

#[derive(Debug)]
struct Tray {
    state: Mutex<State>,
    /// Signals that there are lines to write.
    filled: Condvar,
    /// Signals that no more lines will come.
    closing: Condvar,
}

#[derive(Debug)]
struct State {
    page: AuditBuffer,
    /// Number of lines that were left out, and the time of the last one.
    left_out: u64,
    last_ms: i64,
    closed: bool,
    /// Why nothing more can be written.
    failure: Option<AuditFailure>,
}

impl Audit {
    pub(crate) fn new(options: AuditOptions) -> Self {
        let state =
            State { page: AuditBuffer::new(options.level), left_out: 0, last_ms: 0, closed: false, failure: None };
        let tray = Tray { state: Mutex::new(state), filled: Condvar::new(), closing: Condvar::new() };
        let envelopes = options.level <= AuditLevel::Debug;
        let writer = Writer { options, file: None };
        Self { envelopes, tray: Arc::new(tray), thread: Mutex::new(None), writer: Mutex::new(Some(writer)) }
    }

    pub(crate) fn event(&self, from: &Origin, at_ms: i64, event: &Event) {
        self.put(at_ms, |page| page.event(from, at_ms, event));
    }

    pub(crate) fn envelope(&self, envelope: &Envelope) {
        if self.envelopes {
            self.put(envelope.sent_at_ms, |page| page.envelope(envelope));
        }
    }

    /// Whether all lines so far could be written.
    pub(crate) fn check(&self) -> Result<(), AuditFailure> {
        lock(&self.tray.state).failure.clone().map_or(Ok(()), Err)
    }

    fn put(&self, at_ms: i64, write: impl FnOnce(&mut AuditBuffer)) {
        let mut state = lock(&self.tray.state);
        if state.closed || state.failure.is_some() {
            return;
        }
        if state.page.lines >= LINES_MAX {
            state.left_out += 1;
            state.last_ms = at_ms;
            return;
        }
        let was_empty = state.page.lines == 0;
        write(&mut state.page);
        let first = was_empty && state.page.lines > 0;
        drop(state);
        if first {
            self.begin();
            self.tray.filled.notify_one();
        }
    }

    /// Starts the thread, once. Without one nothing can be written.
    fn begin(&self) {
        let Some(writer) = lock(&self.writer).take() else { return };
        let (tray, options) = (Arc::clone(&self.tray), writer.options.clone());
        match std::thread::Builder::new().name("audit".to_owned()).spawn(move || tray.run(writer)) {
            Ok(thread) => *lock(&self.thread) = Some(thread),
            Err(error) => lock(&self.tray.state).failure = Some(options.failure(&error)),
        }
    }

    /// Writes the queued lines, and ends the thread.
    pub(crate) fn close(&self) -> Result<(), AuditFailure> {
        lock(&self.tray.state).closed = true;
        self.tray.filled.notify_one();
        self.tray.closing.notify_one();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic of that thread has lost lines, nothing else.
            drop(thread.join());
        }
        self.check()
    }
}

impl Tray {
    fn run(&self, mut writer: Writer) {
        loop {
            let mut state = lock(&self.state);
            while state.page.lines == 0 {
                if state.closed {
                    return;
                }
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let gathered = self.closing.wait_timeout_while(state, GATHER, |state| !state.closed);
            let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
            let (left_out, last_ms) = (std::mem::take(&mut state.left_out), state.last_ms);
            if left_out > 0 {
                let data = json!({ "error": "lines were left out: the file is too slow", "lines": left_out });
                state.page.line(AuditLevel::Error, last_ms, "error", "audit", data);
            }
            let text = state.page.turn();
            drop(state);
            if let Err(failure) = writer.write(&text) {
                lock(&self.state).failure = Some(failure);
                return;
            }
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        drop(self.close());
    }
}
