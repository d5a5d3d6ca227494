//! One reader of the stream for all watchers.
//!
//! Each event is written as text once. A watcher that is up to date gets it from here; one that is behind reads the log from its own place
//! until it has caught up. Events that follow each other closely are sent together, so that a busy team wakes each watcher once per picture
//! of a screen. The text of answers that are being written is kept, so that a watcher that comes in the middle sees all of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use max_team_core::id::{AgentId, SessionId};
use max_team_core::limits::{
    STREAM_TEXT_BYTES_MAX, WEB_BATCH_EVENTS_MAX, WEB_LIVE_ANSWERS_MAX, WEB_WATCHER_BATCHES_MAX,
};
use max_team_runtime::{Mark, RuntimeError, Scope, StreamEvent, StreamReader, TeamHandle, What, query};
use tokio::sync::broadcast;
use tokio::time::{Instant, timeout_at};

/// The shortest time from one sending to the next: a screen shows no more pictures than that.
const PACE: Duration = Duration::from_millis(16);

/// An event, ready to be sent.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) session: SessionId,
    pub(crate) mark: Mark,
    /// Whether it is not in the log.
    pub(crate) is_live: bool,
    /// As an event of a `text/event-stream`.
    pub(crate) text: Bytes,
}

impl Frame {
    pub(crate) fn new(event: &StreamEvent) -> Self {
        let is_live = event.what.is_live();
        let mut text = String::new();
        if !is_live {
            text.push_str(&format!("id: {}\n", event.mark()));
        }
        // The data is one line: JSON has no line breaks outside of escapes.
        let data = serde_json::to_string(event).unwrap_or_default();
        text.push_str(&format!("event: {}\ndata: {data}\n\n", event.what.name()));
        Self { session: event.session, mark: event.mark(), is_live, text: text.into() }
    }

    /// The JSON in it.
    pub(crate) fn data(&self) -> &str {
        let text = std::str::from_utf8(&self.text).unwrap_or_default();
        text.split_once("data: ").map_or("", |(_, data)| data.trim_end())
    }
}

/// Events that are sent together.
pub(crate) type Batch = Arc<[Arc<Frame>]>;

/// The answers that are being written, by agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveAnswers(HashMap<AgentId, StreamEvent>);

impl LiveAnswers {
    /// Each with its whole text so far.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Frame> {
        self.0.values().map(Frame::new)
    }

    pub(crate) fn take(&mut self, event: &StreamEvent) {
        let Some(agent) = event.agent.as_ref().map(|who| who.id) else { return };
        match &event.what {
            What::ContentDelta { delta, iteration, .. } => {
                if self.0.len() >= WEB_LIVE_ANSWERS_MAX && !self.0.contains_key(&agent) {
                    return;
                }
                let known = self.0.entry(agent).or_insert_with(|| {
                    let what = What::ContentDelta { iteration: *iteration, delta: String::new(), whole: true };
                    StreamEvent { what, ..event.clone() }
                });
                if let What::ContentDelta { delta: text, .. } = &mut known.what
                    && text.len() < STREAM_TEXT_BYTES_MAX
                {
                    text.push_str(delta);
                }
            }
            What::ToolStart { .. }
            | What::ToolResult { .. }
            | What::Final { .. }
            | What::Error { .. }
            | What::Budget { .. } => drop(self.0.remove(&agent)),
            _ => {}
        }
    }
}

#[derive(Debug)]
struct HubState {
    /// The place behind the last event that was sent.
    position: Mark,
    answers: LiveAnswers,
}

/// Sends events to all watchers.
#[derive(Debug)]
pub(crate) struct Hub {
    sender: broadcast::Sender<Batch>,
    state: Mutex<HubState>,
    reader: tokio::sync::Mutex<StreamReader>,
}

/// A place in the stream from which a watcher is sent everything.
#[derive(Debug)]
pub(crate) struct HubPlace {
    pub(crate) frames: broadcast::Receiver<Batch>,
    /// Everything up to here is in the log.
    pub(crate) position: Mark,
    /// The answers that are being written there, as far as they are.
    pub(crate) answers: LiveAnswers,
}

impl Hub {
    /// Reads the stream of all sessions from now on.
    pub(crate) async fn start(team: &TeamHandle) -> Result<Arc<Self>, RuntimeError> {
        let position = team.ask(query::Position {}).await?;
        let reader = team.stream(Scope::All, position)?;
        let (sender, _) = broadcast::channel(WEB_WATCHER_BATCHES_MAX);
        let state = HubState { position, answers: LiveAnswers::default() };
        Ok(Arc::new(Self { sender, state: Mutex::new(state), reader: tokio::sync::Mutex::new(reader) }))
    }

    /// Passes events on, until the journal is closed.
    pub(crate) async fn run(&self) {
        let mut reader = self.reader.lock().await;
        let mut due = Instant::now();
        let mut is_open = true;
        while is_open && let Ok(first) = reader.next().await {
            let mut events = vec![first];
            while is_open
                && events.len() < WEB_BATCH_EVENTS_MAX
                && let Ok(event) = timeout_at(due, reader.next()).await
            {
                is_open = event.is_ok();
                events.extend(event);
            }
            due = Instant::now() + PACE;
            self.send(&events);
        }
    }

    pub(super) fn send(&self, events: &[StreamEvent]) {
        let frames: Batch = events.iter().map(|event| Arc::new(Frame::new(event))).collect();
        let mut state = self.state();
        for (event, frame) in events.iter().zip(&*frames) {
            if !frame.is_live {
                state.position = frame.mark;
            }
            state.answers.take(event);
        }
        // Without watchers there is nothing to do.
        drop(self.sender.send(frames));
    }

    /// Joins at the present place: nothing comes twice, and nothing is left out.
    pub(crate) fn join(&self) -> HubPlace {
        let state = self.state();
        HubPlace { frames: self.sender.subscribe(), position: state.position, answers: state.answers.clone() }
    }

    pub(crate) fn watchers(&self) -> usize {
        self.sender.receiver_count()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::hash::Hash;
    use max_team_runtime::Who;
    use max_team_runtime::stream::STREAM_VERSION;

    use super::*;

    fn event(seq: u64, what: What) -> StreamEvent {
        let id = Hash::of("max").uuid();
        let agent = Who { id: AgentId::new(id), name: "max".into(), lead: true };
        let session = SessionId::new(id);
        StreamEvent { v: STREAM_VERSION, seq, part: None, session, at_ms: 0, agent: Some(agent), what, cut: false }
    }

    #[test]
    fn a_frame_is_one_event_with_its_mark_and_a_piece_has_none() {
        let ended = What::Final { iteration: 1, response: "a\nb".into(), done: true, end: "answered".into() };
        let frame = Frame::new(&event(7, ended));
        let text = String::from_utf8_lossy(&frame.text).into_owned();
        assert!(text.starts_with("id: 7\nevent: final\ndata: {") && text.ends_with("}\n\n"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(frame.data().starts_with("{\"v\":1"), "{}", frame.data());
        let piece = Frame::new(&event(7, What::ContentDelta { iteration: 1, delta: "x".into(), whole: false }));
        assert!(piece.text.starts_with(b"event: content_delta\n") && piece.is_live);
    }

    #[test]
    fn an_answer_is_kept_while_it_is_written() {
        let mut answers = LiveAnswers::default();
        for delta in ["He", "llo"] {
            answers.take(&event(3, What::ContentDelta { iteration: 2, delta: delta.into(), whole: false }));
        }
        let kept = answers.0.values().next().map(|event| event.what.clone());
        assert_eq!(kept, Some(What::ContentDelta { iteration: 2, delta: "Hello".into(), whole: true }));
        answers.take(&event(
            4,
            What::Final { iteration: 2, response: "Hello".into(), done: true, end: "answered".into() },
        ));
        assert!(answers.0.is_empty());
    }
}
