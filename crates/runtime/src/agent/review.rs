//! What somebody did in a copy of its own when nobody waits for it: a background task that is over, a teammate that was shut down.
//!
//! Whoever calls somebody and waits is asked about its changes in that call (`mail`). Where no call is left that could wait, the
//! one who did the work asks: a turn without a model, begun in the commit that says that its work is over, with the same
//! question, the same answers and the same effects.

use std::sync::Arc;

use max_team_core::chat::Part;
use max_team_core::event::{End, Ending, Event, ReviewBegun};
use max_team_core::id::TurnId;
use max_team_core::mates::{AgentEnded, Life};
use max_team_core::message::{Envelope, Kind};
use max_team_core::policy::{Action, Deed};
use max_team_core::turn::{Input, SETTLE};
use serde_json::json;

use super::flight::{Flight, Future, Landed};
use super::mail::{add, answering, derived, text_at};
use super::{Agent, Extra, millis};
use crate::error::RuntimeError;
use crate::shared::{new_id, now_ms};
use crate::{session, worktree};

/// What is said of changes that nobody has decided about when there is more to do.
const GOES_ON: &str = "[It was given more to do before anybody had decided about its changes. They are in its copy, where it \
                       goes on; the user is asked when it is done with that.]";

impl Agent {
    /// The copy that is its own, if it works in one. One in which it was called belongs to whoever called it.
    fn own_copy(&self) -> Option<String> {
        let id = worktree::id_of(self.frame.settings());
        (self.origin.agent?.to_string() == id).then_some(id)
    }

    /// A background task is over, well or not: what it did is decided about before it is told what came of it.
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
        let given = self.turn.assignment().filter(|given| given.life == Life::Background)?;
        let (copy, letter) = (self.own_copy()?, self.result_letter(given, over, stopped_by, at_ms));
        Some(begun(copy, answering(letter, self.turn.began_with())))
    }

    /// Whether a person is asked about what it did. Who was stopped has no more to say than where that is.
    fn asks(&self) -> bool {
        let stopped = json!(End::Interrupted);
        self.turn.reviewing().is_some_and(|letter| letter.body.get("end") != Some(&stopped))
    }

    /// A teammate is no more, and what it did may wait for a word. Nobody waits for it: its lead is told in passing.
    pub(super) fn review_of_ended(&self, ended: &AgentEnded) -> Option<Event> {
        let copy = self.own_copy()?;
        let letter = Envelope::new(
            derived(&[self.stream.as_bytes(), b"reviewed"]),
            &self.stream,
            session::agent_stream(self.floor.lead),
            Kind::TaskResult,
            json!({ "mate": ended.name, "from": ended.name, "stopped": true }),
            now_ms(),
        );
        Some(begun(copy, letter))
    }

    /// Whether a letter to one who is no more is about what it has left.
    pub(super) fn is_for_review(&self, letter: &Envelope) -> bool {
        self.turn.reviewing().is_some() && matches!(letter.kind, Kind::PermissionResponse | Kind::Shutdown)
    }

    /// Whether this is to look at what was done, which nobody has decided about.
    pub(super) fn is_unseen(&self, action: &Action) -> bool {
        let is_decided = action.parameters.iter().any(|(name, _)| name == SETTLE);
        self.turn.reviewing().is_some() && action.deed == Deed::Merge && !is_decided
    }

    /// What it asks about may have been taken or dropped from elsewhere, while nobody sat here.
    pub(super) async fn ask_no_more(&mut self) -> Result<(), RuntimeError> {
        let is_asking = self.turn.reviewing().is_some() && self.turn.is_asking();
        if is_asking && worktree::is_gone(&self.floor.shared, &worktree::id_of(self.frame.settings())) {
            let words = format!("[{}]", worktree::GONE);
            return self.step(Input::Moot { words }, Extra::default()).await;
        }
        Ok(())
    }

    /// It is given more to do: what becomes of what it did is asked once it has done that, too. Whoever reads what it came to
    /// so far is told.
    pub(super) async fn ask_later(&mut self) -> Result<(), RuntimeError> {
        self.step(Input::Moot { words: GOES_ON.to_owned() }, Extra::default()).await
    }

    /// Looks at what it did. What can be decided about becomes a question.
    pub(super) fn look_over(&self, flight: Flight, key: String, action: Action) -> Future {
        let (floor, agent) = (Arc::clone(&self.floor), self.origin.agent);
        let (background, asks) = (Arc::clone(&self.background), self.asks());
        Box::pin(async move {
            let started = std::time::Instant::now();
            // What is decided about is what is shown: nothing of its own goes on changing it.
            if background.is_used() {
                drop(tokio::task::spawn_blocking(move || background.close()).await);
            }
            floor.vacated(&action.target).await;
            let changed = match agent {
                Some(agent) => worktree::changed(&floor.shared, agent).await,
                None => None,
            };
            let input = match changed {
                Some(changed) if changed.is_open && asks => {
                    Input::Unanswered { key, action: changed.question(String::new()) }
                }
                told => {
                    let content = vec![Part::text(told.map(|changed| changed.news).unwrap_or_default())];
                    let ms = millis(started);
                    Input::ToolEnded { key, content, is_error: false, ending: Ending::Ran, fatal: None, ms }
                }
            };
            Landed { flight, input: Some(input) }
        })
    }
}

fn begun(copy: String, letter: Envelope) -> Event {
    Event::ReviewBegun(ReviewBegun { turn: TurnId::new(new_id()), copy, letter: Box::new(letter) })
}

/// The letter that waited for a decision, with what came of it; `None`: it has nothing to say.
pub(crate) fn decided(letter: &Envelope, came_to: &str, at_ms: i64) -> Option<Envelope> {
    let text = text_at(&letter.body, "text");
    let text =
        [text.as_str(), came_to].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("\n\n");
    let mut letter = Envelope { sent_at_ms: at_ms, ..letter.clone() };
    add(&mut letter.body, "text", &text);
    Some(letter).filter(|_| !text.is_empty())
}
