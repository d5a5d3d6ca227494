//! Changes in an agent's own worktree that no caller waits for: of a finished background task, or of a teammate that
//! was shut down.
//!
//! A caller that waits is asked about the changes in its call (`mail`). If no call is left, the agent itself asks: in
//! a turn without a model, begun in the commit that ends its work, with the same question, the same answers and the
//! same effects.

use std::sync::Arc;

use max_team_core::body::{Body, TaskResult};
use max_team_core::chat::Part;
use max_team_core::event::{Event, ReviewBegun, ToolOutcome, TurnOutcome};
use max_team_core::id::TurnId;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::policy::{Action, ActionKind};
use max_team_core::teammate::{AgentEnded, Lifetime};
use max_team_core::turn::{SETTLE, TurnInput};

use super::flight::{EffectDone, Flight, Future};
use super::mail::{answering, derived};
use super::{Agent, Extra, millis};
use crate::error::RuntimeError;
use crate::shared::{new_id, now_ms};
use crate::{session, worktree};

/// The text about undecided changes of an agent that gets more work.
const GOES_ON: &str = "[It was given more to do before anybody had decided about its changes. They are in its copy, where it \
                       goes on; the user is asked when it is done with that.]";

impl Agent {
    /// The agent's own worktree, if it works in one. A worktree in which it was called belongs to its caller.
    fn own_copy(&self) -> Option<String> {
        let id = worktree::id_of(self.frame.settings());
        (self.turn.origin.agent?.to_string() == id).then_some(id)
    }

    /// The review of a background task that has ended in any way: its changes are decided about before its result is
    /// sent.
    pub(super) fn review_after(&self, events: &[Event], at_ms: i64) -> Option<Event> {
        let over = events.iter().find_map(|event| match event {
            Event::TurnEnded(over) => Some(over),
            _ => None,
        })?;
        let stopped_now = events.iter().find_map(|event| match event {
            Event::Interrupted(interrupted) => Some(interrupted.by.as_str()),
            _ => None,
        });
        let stopped_by = stopped_now.or(self.turn.stopped_by());
        let given = self.turn.assignment().filter(|given| given.life == Lifetime::Background)?;
        let (copy, envelope) = (self.own_copy()?, self.result_envelope(given, over, stopped_by, at_ms));
        Some(begun(copy, answering(envelope, self.turn.began_with())))
    }

    /// Whether a person is asked about its changes. The result of a stopped agent only says where they are.
    fn asks(&self) -> bool {
        self.turn.review_message().is_some_and(|envelope| envelope.result().work.end != Some(TurnOutcome::Interrupted))
    }

    /// The review of an ended teammate, whose changes may wait for a decision. No caller waits: its lead is told with
    /// its next turn.
    pub(super) fn review_of_ended(&self, ended: &AgentEnded) -> Option<Event> {
        let copy = self.own_copy()?;
        let envelope = Envelope::new(
            derived(&[self.turn.stream.as_bytes(), b"reviewed"]),
            &self.turn.stream,
            session::agent_stream(self.active.lead),
            MessageKind::TaskResult,
            Body::Result(Box::new(TaskResult {
                teammate: Some(&ended.name),
                from: &ended.name,
                stopped: true,
                ..TaskResult::default()
            })),
            now_ms(),
        );
        Some(begun(copy, envelope))
    }

    /// Whether this call is the look at the changes, before a decision about them.
    pub(super) fn is_unseen(&self, action: &Action) -> bool {
        let is_decided = action.parameters.iter().any(|(name, _)| name == SETTLE);
        self.turn.review_message().is_some() && action.kind == ActionKind::Merge && !is_decided
    }

    /// The changes that it asks about may have been merged or dropped by a command while its loop was not loaded.
    pub(super) async fn ask_no_more(&mut self) -> Result<(), RuntimeError> {
        let is_asking = self.turn.review_message().is_some() && self.turn.is_asking();
        if is_asking && worktree::is_gone(&self.active.shared, &worktree::id_of(self.frame.settings())) {
            let words = format!("[{}]", worktree::GONE);
            return self.step(TurnInput::Moot { words }, Extra::default()).await;
        }
        Ok(())
    }

    /// It gets more work: the question about its changes comes after that. Readers of its present result are told so.
    pub(super) async fn ask_later(&mut self) -> Result<(), RuntimeError> {
        self.step(TurnInput::Moot { words: GOES_ON.to_owned() }, Extra::default()).await
    }

    /// Reads its changes. If there is something to decide, it becomes a question.
    pub(super) fn look_over(&self, flight: Flight, key: String, action: Action) -> Future {
        let (active, agent) = (Arc::clone(&self.active), self.turn.origin.agent);
        let (background, asks) = (Arc::clone(&self.commands.background), self.asks());
        Box::pin(async move {
            let started = std::time::Instant::now();
            // Its background commands are ended first, so that the changes stay as they are shown.
            if background.is_used() {
                drop(tokio::task::spawn_blocking(move || background.close()).await);
            }
            active.vacated(&action.target).await;
            let changed = match agent {
                Some(agent) => worktree::changed(&active.shared, agent).await,
                None => None,
            };
            let input = match changed {
                Some(changed) if changed.is_open && asks => {
                    TurnInput::Unanswered { key, action: changed.question(String::new()) }
                }
                told => {
                    let content = vec![Part::text(told.map(|changed| changed.news).unwrap_or_default())];
                    let ms = millis(started);
                    TurnInput::ToolEnded { key, content, is_error: false, ending: ToolOutcome::Ran, fatal: None, ms }
                }
            };
            EffectDone { flight, input: Some(input) }
        })
    }
}

fn begun(copy: String, envelope: Envelope) -> Event {
    Event::ReviewBegun(ReviewBegun { turn: TurnId::new(new_id()), copy, envelope: Box::new(envelope) })
}

/// The message that waited for a decision, with the outcome; `None`: it has no text.
pub(crate) fn decided(envelope: &Envelope, came_to: &str, at_ms: i64) -> Option<Envelope> {
    let text =
        [envelope.text(), came_to].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("\n\n");
    let body = Body::Result(Box::new(TaskResult { text: &text, ..envelope.result() })).into();
    Some(Envelope { sent_at_ms: at_ms, body, ..envelope.clone() }).filter(|_| !text.is_empty())
}
