//! A watcher of the stream: first the log from its place on, then what happens.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use max_team_core::id::SessionId;
use max_team_runtime::{Mark, RuntimeError, Scope, StreamReader, TeamHandle};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::hub::{Batch, Frame, Hub, LiveAnswers};

/// Stored events that are read before other tasks get their turn.
const BATCH: usize = 64;

/// Something to be sent to a watcher.
#[derive(Debug)]
pub(crate) enum WatchItem {
    Frame(Arc<Frame>),
    /// All stored events were sent; the place behind them.
    Ready(Mark),
}

impl WatchItem {
    /// As an event of a `text/event-stream`.
    pub(crate) fn text(&self) -> Bytes {
        match self {
            Self::Frame(frame) => frame.text.clone(),
            Self::Ready(position) => format!("event: ready\ndata: {{\"position\":\"{position}\"}}\n\n").into(),
        }
    }
}

enum Source {
    /// Has to read the log from its place.
    Behind,
    /// Reads the log up to a place, and then follows the hub from there.
    Log { reader: Box<StreamReader>, upto: Mark, frames: Option<Receiver<Batch>>, answers: LiveAnswers },
    /// Is up to date.
    Live(Receiver<Batch>),
    /// Reads alone: the events of one agent.
    Alone { reader: Box<StreamReader>, is_ready: bool },
}

/// The stream of one watcher.
pub(crate) struct Watcher {
    hub: Arc<Hub>,
    team: TeamHandle,
    scope: Scope,
    /// The place behind the last event that was sent.
    last: Mark,
    source: Source,
    queue: VecDeque<WatchItem>,
    /// Whether the watcher was told that it is up to date.
    was_ready: bool,
}

impl Watcher {
    /// Watches a scope behind a place; without one, from now on.
    pub(crate) fn new(
        hub: &Arc<Hub>,
        team: &TeamHandle,
        scope: Scope,
        from: Option<Mark>,
    ) -> Result<Self, RuntimeError> {
        let last = match from {
            Some(from) => from,
            None => hub.join().position,
        };
        let source = source(hub, team, scope, last)?;
        let (hub, team) = (Arc::clone(hub), team.clone());
        Ok(Self { hub, team, scope, last, source, queue: VecDeque::new(), was_ready: false })
    }

    /// The next event, as soon as there is one; `None` when the server ends.
    pub(crate) async fn next(&mut self) -> Option<WatchItem> {
        loop {
            if let Some(watched) = self.queue.pop_front() {
                return Some(watched);
            }
            match &mut self.source {
                Source::Behind => self.source = source(&self.hub, &self.team, self.scope, self.last).ok()?,
                Source::Log { .. } => {
                    self.catch_up().ok()?;
                    tokio::task::yield_now().await;
                }
                Source::Live(frames) => match frames.recv().await {
                    Ok(frames) => self.pass_on(&frames),
                    Err(RecvError::Lagged(_)) => self.source = Source::Behind,
                    Err(RecvError::Closed) => return None,
                },
                Source::Alone { reader, is_ready } => {
                    if !*is_ready {
                        if let Some(event) = reader.try_next().ok()? {
                            return Some(WatchItem::Frame(Arc::new(Frame::new(&event))));
                        }
                        *is_ready = true;
                        return Some(WatchItem::Ready(reader.position()));
                    }
                    let event = reader.next().await.ok()?;
                    return Some(WatchItem::Frame(Arc::new(Frame::new(&event))));
                }
            }
        }
    }

    /// What can be sent at once, after a first event.
    pub(crate) fn more(&mut self, room: usize) -> Vec<WatchItem> {
        let mut more: Vec<WatchItem> = self.queue.drain(..).collect();
        while more.len() < room {
            let Source::Live(frames) = &mut self.source else { break };
            match frames.try_recv() {
                Ok(frames) => self.pass_on(&frames),
                Err(TryRecvError::Lagged(_)) => self.source = Source::Behind,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
            more.extend(self.queue.drain(..));
        }
        more
    }

    fn pass_on(&mut self, frames: &[Arc<Frame>]) {
        for frame in frames {
            // A live event has the place of the last stored event before it.
            let is_new = match frame.is_live {
                true => !is_behind(self.last, frame.mark),
                false => is_behind(frame.mark, self.last),
            };
            if !is_new || !is_within(self.scope, frame.session) {
                continue;
            }
            if !frame.is_live {
                self.last = frame.mark;
            }
            self.queue.push_back(WatchItem::Frame(Arc::clone(frame)));
        }
    }

    /// Reads some stored events; at the place where the hub was joined, it changes over.
    fn catch_up(&mut self) -> Result<(), RuntimeError> {
        let Source::Log { reader, upto, frames, answers } = &mut self.source else { return Ok(()) };
        for _ in 0..BATCH {
            match reader.try_next()? {
                Some(event) if !is_behind(event.mark(), self.last) => answers.take(&event),
                Some(event) if !is_behind(event.mark(), *upto) => {
                    self.last = event.mark();
                    self.queue.push_back(WatchItem::Frame(Arc::new(Frame::new(&event))));
                }
                // What is behind that place comes from the hub.
                _ => {
                    let within = answers.frames().filter(|frame| is_within(self.scope, frame.session));
                    self.queue.extend(within.map(|frame| WatchItem::Frame(Arc::new(frame))));
                    if !self.was_ready {
                        self.was_ready = true;
                        self.queue.push_back(WatchItem::Ready(*upto));
                    }
                    if let Some(frames) = frames.take() {
                        self.source = Source::Live(frames);
                    }
                    break;
                }
            }
        }
        Ok(())
    }
}

fn source(hub: &Hub, team: &TeamHandle, scope: Scope, last: Mark) -> Result<Source, RuntimeError> {
    if let Scope::Agent(..) = scope {
        return Ok(Source::Alone { reader: Box::new(team.stream(scope, last)?), is_ready: false });
    }
    let joined = hub.join();
    let (from, upto) = if is_behind(last, joined.position) { (joined.position, last) } else { (last, joined.position) };
    // If the hub is behind the watcher, the log between the two says which of the hub's answers have ended.
    let reader = Box::new(team.log(scope, from)?);
    Ok(Source::Log { reader, upto, frames: Some(joined.frames), answers: joined.answers })
}

fn is_within(scope: Scope, session: SessionId) -> bool {
    match scope {
        Scope::All => true,
        Scope::Session(of) | Scope::Agent(of, _) => of == session,
    }
}

/// Whether a place is behind another one. The last event of an entry has no part.
pub(crate) fn is_behind(mark: Mark, other: Mark) -> bool {
    let key = |mark: Mark| (mark.seq, mark.part.unwrap_or(u32::MAX));
    key(mark) > key(other)
}

#[cfg(test)]
mod tests;
