//! One agent's loop: decide, commit, apply, do.
//!
//! The loop owns its [`Turn`] and is the only writer of the agent's stream. It starts what is pending (`flight`),
//! waits for something to land, for mail or for an order, and turns each into exactly one decision and one commit.
//! A commit that fails drops the loop: the log is the truth and the next process folds it again. A turn that waits
//! for a person holds nothing but rows.

mod flight;
mod frame;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use max_team_core::event::{End, Event, Outcome, Replied};
use max_team_core::id::{AgentId, EnvelopeId, SessionId, TurnId};
use max_team_core::limits::SNAPSHOT_ENTRIES_MIN;
use max_team_core::message::{Envelope, Kind};
use max_team_core::policy::{Answer, Class};
use max_team_core::team::Settings;
use max_team_core::turn::{Input, Now, Turn};
use max_team_journal::{Expect, Fence, Projection, Strength};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::error::RuntimeError;
use crate::handle::{Notice, Status};
use crate::house::{Shared, append, commit_at, now_ms};
use crate::session;

use flight::{Flight, Landed};
pub(crate) use frame::Frame;

/// How long parking waits for what is under way.
const PARK_WAIT: Duration = Duration::from_secs(2);
/// The version of the snapshots that this code reads and writes.
pub(crate) const SNAPSHOT_VERSION: u32 = 1;

/// What the house tells a running loop.
pub(crate) enum Control {
    /// Mail may have come.
    Mail,
    Interrupt {
        by: String,
    },
    Configure(Box<Settings>),
    Status(oneshot::Sender<Status>),
    /// Park: drop what is in flight and go.
    Stop,
}

/// What a loop starts from.
pub(crate) struct Seat {
    pub session: SessionId,
    pub agent: AgentId,
    pub fence: Fence,
    /// Entries of the agent's stream that `turn` has folded.
    pub head: u64,
    pub turn: Turn,
    pub frame: Frame,
}

pub(crate) struct Agent {
    shared: Arc<Shared>,
    session: SessionId,
    stream: String,
    session_stream: String,
    name: String,
    fence: Fence,
    head: u64,
    snapshot_at: u64,
    turn: Turn,
    frame: Frame,
    flights: FuturesUnordered<flight::Future>,
    in_flight: HashSet<Flight>,
    wire: Option<flight::Wire>,
    cancel: CancellationToken,
    /// Set until this process has run something itself: what is pending then was left open by another one.
    resumed: bool,
}

impl Agent {
    pub(crate) fn new(shared: Arc<Shared>, seat: Seat) -> Self {
        let name = seat.turn.identity().map_or_else(String::new, |(_, _, definition)| definition.name.clone());
        Self {
            shared,
            session: seat.session,
            stream: session::agent_stream(seat.agent),
            session_stream: session::stream(seat.session),
            name,
            fence: seat.fence,
            head: seat.head,
            snapshot_at: seat.head,
            turn: seat.turn,
            frame: seat.frame,
            flights: FuturesUnordered::new(),
            in_flight: HashSet::new(),
            wire: None,
            cancel: CancellationToken::new(),
            resumed: true,
        }
    }

    /// Runs until it is told to stop or the journal fails.
    pub(crate) async fn run(mut self, mut controls: mpsc::Receiver<Control>) {
        if let Err(error) = self.work(&mut controls).await {
            let stopped = Notice::Stopped { session: self.session, error: Arc::new(error) };
            self.shared.publish(stopped).await;
        }
        self.cancel.cancel();
        // What stops at once is recorded; what does not stop is left to the next process, which knows what to do.
        let drain = async {
            while let Some(landed) = self.flights.next().await {
                self.park(landed).await;
            }
        };
        drop(tokio::time::timeout(PARK_WAIT, drain).await);
    }

    async fn work(&mut self, controls: &mut mpsc::Receiver<Control>) -> Result<(), RuntimeError> {
        self.step(Input::Recovered, Vec::new()).await?;
        let mut mail = true;
        let mut idle = false;
        loop {
            if mail {
                mail = self.take_mail().await?;
            }
            self.launch();
            self.resumed = false;
            if self.turn.is_busy() {
                idle = false;
            } else if !idle {
                idle = true;
                self.shared.publish(Notice::Idle { session: self.session }).await;
            }
            let was_busy = self.turn.is_busy();
            tokio::select! {
                biased;
                control = controls.recv() => match control {
                    None | Some(Control::Stop) => return Ok(()),
                    Some(Control::Mail) => mail = true,
                    Some(Control::Interrupt { by }) => self.step(Input::Interrupt { by }, Vec::new()).await?,
                    Some(Control::Configure(settings)) => {
                        self.frame.configure(&settings);
                        self.step(Input::Configure(settings), Vec::new()).await?;
                    }
                    // A face that no longer waits for the answer is no reason to stop.
                    Some(Control::Status(reply)) => drop(reply.send(self.status())),
                },
                Some(landed) = self.flights.next(), if !self.flights.is_empty() => self.land(landed).await?,
            }
            if was_busy && !self.turn.is_busy() {
                // Whatever of this turn is still under way is over, and what was said meanwhile is next.
                self.cancel.cancel();
                mail = true;
            }
        }
    }

    /// Takes what the mailbox holds: answers at any time, a user's message between turns. Returns whether it should
    /// be looked at again.
    async fn take_mail(&mut self) -> Result<bool, RuntimeError> {
        for envelope in self.shared.journal.pending_mail(&self.stream)? {
            match envelope.kind {
                Kind::PermissionResponse => {
                    let ack = vec![envelope.id];
                    match answer_of(&envelope) {
                        Some((question, answer)) => self.step(Input::Answered { question, answer }, ack).await?,
                        None => self.commit(Vec::new(), ack).await?,
                    }
                }
                Kind::UserInput if !self.turn.is_busy() => {
                    self.cancel = CancellationToken::new();
                    self.frame.refresh();
                    let input = vec![max_team_core::chat::Part::text(text_of(&envelope))];
                    let begin = Input::Begin { turn: TurnId::new(Uuid::now_v7()), envelope: envelope.id, input };
                    self.step(begin, vec![envelope.id]).await?;
                }
                Kind::UserInput => {}
            }
        }
        Ok(false)
    }

    fn now(&self) -> Now {
        let fresh = Uuid::now_v7();
        let [.., a, b, c, d] = *fresh.as_bytes();
        Now { at_ms: now_ms(), jitter: u32::from_le_bytes([a, b, c, d]), fresh, frame: self.frame.address() }
    }

    /// One decision, one commit.
    async fn step(&mut self, input: Input, acks: Vec<EnvelopeId>) -> Result<(), RuntimeError> {
        let now = self.now();
        let events = self.turn.decide(input, &now);
        self.commit(events, acks).await
    }

    async fn commit(&mut self, events: Vec<Event>, acks: Vec<EnvelopeId>) -> Result<(), RuntimeError> {
        if events.is_empty() && acks.is_empty() {
            return Ok(());
        }
        let at_ms = now_ms();
        let mut commit = commit_at(at_ms);
        commit.fence = Some(self.fence.clone());
        commit.expect.push((self.stream.clone(), Expect::At(self.head)));
        commit.acks = acks;
        let actor = format!("agent:{}", self.name);
        commit.actor.clone_from(&actor);
        let mut replies = Vec::new();
        for event in &events {
            commit.appends.push(append(&self.stream, event, &actor)?);
            if let Event::TurnEnded(ended) = event {
                let whole = ended.end == End::Answered;
                replies.push(Event::Replied(Replied { turn: ended.turn, text: ended.text.clone(), whole }));
                // The answer is about to be shown.
                commit.strength = Strength::Full;
            }
            if let Event::LlmIntent(_) = event {
                commit.blobs.extend(self.frame.unstored());
            }
            if let Event::ToolIntent(intent) = event
                && matches!(intent.class, Class::Keyed | Class::Opaque)
            {
                // It is about to leave us, and nobody could tell afterwards whether it had.
                commit.strength = Strength::Full;
            }
        }
        for reply in &replies {
            commit.projections.extend(session::project(&self.session_stream, at_ms, reply));
            commit.appends.push(append(&self.session_stream, reply, &actor)?);
        }
        self.shared.journal.commit(commit).await?;
        self.head += events.len() as u64;
        for event in &events {
            self.turn.apply(event);
            self.shared.audit(&self.name, at_ms, event);
        }
        let ended = !replies.is_empty();
        for event in events.into_iter().chain(replies) {
            self.shared.publish(Notice::Event { session: self.session, at_ms, event: Arc::new(event) }).await;
        }
        if ended {
            self.snapshot().await?;
        }
        Ok(())
    }

    /// Keeps folding short without ever writing more than the log itself: at most one snapshot per doubling.
    async fn snapshot(&mut self) -> Result<(), RuntimeError> {
        if self.head < SNAPSHOT_ENTRIES_MIN.max(self.snapshot_at.saturating_mul(2)) {
            return Ok(());
        }
        let Ok(state) = serde_json::to_vec(&self.turn) else { return Ok(()) };
        let mut commit = commit_at(now_ms());
        commit.fence = Some(self.fence.clone());
        commit.projections.push(Projection::Snapshot {
            stream: self.stream.clone(),
            stream_seq: self.head,
            version: SNAPSHOT_VERSION,
            state,
        });
        self.shared.journal.commit(commit).await?;
        self.snapshot_at = self.head;
        Ok(())
    }

    async fn land(&mut self, landed: Landed) -> Result<(), RuntimeError> {
        self.in_flight.remove(&landed.flight);
        match landed.input {
            Some(input) => self.step(input, Vec::new()).await,
            None => Ok(()),
        }
    }

    /// On the way out: what did finish is recorded as finished, so that it is neither paid nor done again.
    /// Everything else stays open and goes on in the next process.
    async fn park(&mut self, landed: Landed) {
        let finished = match &landed.input {
            Some(Input::ToolEnded { interrupted, .. }) => !interrupted,
            Some(Input::ModelEnded { outcome, .. }) => matches!(outcome, Outcome::Done(_)),
            _ => false,
        };
        if let Some(input) = landed.input.filter(|_| finished) {
            let mut events = self.turn.decide(input, &self.now());
            // The next call would be promised and never made: the next process decides about it.
            events.retain(|event| !matches!(event, Event::LlmIntent(_) | Event::Nudged(_)));
            // If even this cannot be written, the log still says that it was started; recovery knows what to do.
            drop(self.commit(events, Vec::new()).await);
        }
    }

    fn status(&self) -> Status {
        Status {
            ledger: self.turn.ledger().clone(),
            window_tokens: self.turn.window_tokens(),
            frame_bytes: self.frame.address().bytes,
            messages: (self.turn.history().len().saturating_sub(self.turn.window().from), self.turn.history().len()),
            settings: self.frame.settings().clone(),
            instructions: self.frame.files().to_vec(),
            busy: self.turn.is_busy(),
        }
    }
}

fn text_of(envelope: &Envelope) -> String {
    envelope.body.get("text").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

fn answer_of(envelope: &Envelope) -> Option<(max_team_core::id::QuestionId, Answer)> {
    let question = envelope.body.get("question")?.as_str()?.parse().ok()?;
    let answer = serde_json::from_value(envelope.body.get("answer")?.clone()).ok()?;
    Some((question, answer))
}
