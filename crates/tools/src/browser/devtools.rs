//! A client of the DevTools protocol, over the two pipes of `--remote-debugging-pipe`.
//!
//! A message is JSON with a zero byte behind it. Chromium's thread (`process`) pushes what it reads into a [`MessageReader`]; calls wait
//! for the answer with their number, and events go to `events` in the order in which they come.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use max_team_core::limits::{BROWSER_CALL_MS, BROWSER_MESSAGE_BYTES_MAX};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Messages that wait to be written.
const OUTGOING_MAX: usize = 4_096;
/// Bytes at the start of a message that hold its number.
const NUMBER_BYTES: usize = 32;

/// Why a call came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DevToolsError {
    /// Chromium is gone.
    #[error("the browser has ended")]
    Ended,
    #[error("the page did not answer within {} s: a script may keep it busy", .0.as_secs_f32())]
    Late(Duration),
    #[error("the answer is larger than {} MiB", BROWSER_MESSAGE_BYTES_MAX >> 20)]
    TooLarge,
    /// Chromium's own words.
    #[error("{0}")]
    Refused(String),
}

type Answer = Result<Value, DevToolsError>;

/// Sends calls to one Chromium. Cheap to copy.
#[derive(Debug, Clone)]
pub(super) struct DevTools {
    outgoing: mpsc::Sender<Vec<u8>>,
    waiting: Arc<Mutex<HashMap<u64, oneshot::Sender<Answer>>>>,
    next: Arc<AtomicU64>,
    end: CancellationToken,
}

impl DevTools {
    /// A client that writes to `to`, and that ends when `end` fires.
    pub(super) fn new(to: pipe::Sender, end: CancellationToken) -> Self {
        let (outgoing, queue) = mpsc::channel(OUTGOING_MAX);
        tokio::spawn(write_all(to, queue, end.clone()));
        Self { outgoing, waiting: Arc::default(), next: Arc::new(AtomicU64::new(1)), end }
    }

    /// Calls a method of the browser, or of a page by its session.
    pub(super) async fn call(&self, session: Option<&str>, method: &str, params: Value) -> Answer {
        self.call_within(Duration::from_millis(BROWSER_CALL_MS), session, method, params).await
    }

    pub(super) async fn call_within(
        &self,
        limit: Duration,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Answer {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        lock(&self.waiting).insert(number, reply);
        let _forget = Forget(self, number);
        let message = encode(number, session, method, &params);
        let waits = async {
            self.outgoing.send(message).await.map_err(|_| DevToolsError::Ended)?;
            answer.await.unwrap_or(Err(DevToolsError::Ended))
        };
        tokio::select! {
            biased;
            answer = timeout(limit, waits) => answer.unwrap_or(Err(DevToolsError::Late(limit))),
            () = self.end.cancelled() => Err(DevToolsError::Ended),
        }
    }

    /// Calls a method and does not wait for its answer. Works on any thread.
    pub(super) fn post(&self, session: Option<&str>, method: &str, params: &Value) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Err(mpsc::error::TrySendError::Full(_)) = self.outgoing.try_send(encode(number, session, method, params))
        {
            // Chromium no longer reads. Without this message a page could stand still, so the browser is given up.
            self.end.cancel();
        }
    }

    /// Whether Chromium is gone, or is about to be.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_cancelled()
    }

    fn answer(&self, number: u64, answer: Answer) {
        if let Some(waiting) = lock(&self.waiting).remove(&number) {
            // A caller that no longer waits has given up.
            drop(waiting.send(answer));
        }
    }

    /// Fails every call under way.
    pub(super) fn fail_all(&self) {
        self.end.cancel();
        lock(&self.waiting).clear();
    }
}

/// Removes a call that no longer waits.
struct Forget<'a>(&'a DevTools, u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(&self.0.waiting).remove(&self.1);
    }
}

fn encode(number: u64, session: Option<&str>, method: &str, params: &Value) -> Vec<u8> {
    let mut message = json!({ "id": number, "method": method, "params": params });
    if let (Some(session), Some(members)) = (session, message.as_object_mut()) {
        members.insert("sessionId".to_owned(), session.into());
    }
    let mut bytes = message.to_string().into_bytes();
    bytes.push(0);
    bytes
}

async fn write_all(mut to: pipe::Sender, mut queue: mpsc::Receiver<Vec<u8>>, end: CancellationToken) {
    loop {
        let message = tokio::select! {
            () = end.cancelled() => return,
            message = queue.recv() => message,
        };
        let Some(message) = message else { return };
        tokio::select! {
            () = end.cancelled() => return,
            written = to.write_all(&message) => if written.is_err() { return },
        }
    }
}

/// An event of the browser or of a page.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) session: Option<String>,
    pub(super) method: String,
    pub(super) params: Value,
}

/// Divides what Chromium writes into messages.
pub(super) struct MessageReader<F> {
    devtools: DevTools,
    rest: Vec<u8>,
    /// Whether the message that is being read is too large and is passed over.
    passes_over: bool,
    events: F,
}

impl<F: FnMut(Event)> MessageReader<F> {
    pub(super) fn new(devtools: DevTools, events: F) -> Self {
        Self { devtools, rest: Vec::new(), passes_over: false, events }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == 0) {
            let (body, is_end) = piece.strip_suffix(&[0]).map_or((piece, false), |body| (body, true));
            if self.rest.len() + body.len() > BROWSER_MESSAGE_BYTES_MAX {
                self.passes_over = true;
                self.rest.truncate(NUMBER_BYTES);
            }
            if !self.passes_over {
                self.rest.extend_from_slice(body);
            }
            if is_end {
                let (message, is_whole) = (std::mem::take(&mut self.rest), !std::mem::take(&mut self.passes_over));
                if is_whole { self.message(&message) } else { self.too_large(&message) }
            }
        }
    }

    fn message(&mut self, message: &[u8]) {
        let Ok(Value::Object(mut message)) = serde_json::from_slice(message) else { return };
        if let Some(number) = message.get("id").and_then(Value::as_u64) {
            let answer = match message.get("error") {
                Some(error) => {
                    let words = error.get("message").and_then(Value::as_str).unwrap_or("the browser refuses");
                    Err(DevToolsError::Refused(words.to_owned()))
                }
                None => Ok(message.remove("result").unwrap_or_default()),
            };
            self.devtools.answer(number, answer);
            return;
        }
        let Some(Value::String(method)) = message.remove("method") else { return };
        let session = message.get("sessionId").and_then(Value::as_str).map(str::to_owned);
        (self.events)(Event { session, method, params: message.remove("params").unwrap_or_default() });
    }

    /// Chromium writes the number of an answer first.
    fn too_large(&mut self, head: &[u8]) {
        let digits: String = String::from_utf8_lossy(head.strip_prefix(b"{\"id\":").unwrap_or_default())
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        if let Ok(number) = digits.parse() {
            self.devtools.answer(number, Err(DevToolsError::TooLarge));
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
