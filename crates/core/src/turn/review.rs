//! What somebody did in a copy of its own, once its work is over: a turn without a model, about one thing that a person decides.
//!
//! It has one call, which nobody's answer asked for: to look at the copy, and then to do with it what the person said. What
//! came of it is the turn's text.

use serde_json::Value;

use super::tools::{SETTLE, left, ran};
use super::{Call, Current, Phase, Status, Turn};
use crate::chat::Part;
use crate::event::{End, Event, ReviewBegun, ToolDone, TurnEnded};
use crate::message::Envelope;
use crate::policy::{Action, Class, Deed};

use super::decide::ended;

/// What the one call is called.
const TOOL: &str = "worktree";

impl Turn {
    /// What is sent when the turn is over that runs, if it is about nothing but a copy.
    pub fn reviewing(&self) -> Option<&Envelope> {
        self.current.as_ref()?.reviewing.as_deref()
    }

    pub(super) fn begin_review(&mut self, begun: &ReviewBegun) {
        let current = Current::new(begun.turn, None);
        self.current = Some(Current { reviewing: Some(begun.letter.clone()), ..current });
        let action = Action { deed: Deed::Merge, ..Action::read(begun.copy.clone()) };
        self.phase = Phase::Working(vec![Call {
            key: begun.turn.to_string(),
            id: String::new(),
            tool: TOOL.to_owned(),
            input: Value::Null.into(),
            status: Status::Intended { action, class: Class::Idempotent, attended: false, words: String::new() },
        }]);
    }
}

/// The end of a review, once its call has a result.
pub(super) fn reviewed(current: &Current, done: Vec<ToolDone>) -> Vec<Event> {
    let texts = done.iter().flat_map(|done| &done.content).filter_map(|part| match part {
        Part::Text { text } => Some(text.trim()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let over = TurnEnded { text, ..ended(current, End::Answered, None) };
    done.into_iter().map(Event::ToolDone).chain([Event::TurnEnded(over)]).collect()
}

/// The end of one that nobody can go on with: what was done stays where it is, unless it was decided about.
pub(super) fn left_alone(current: &Current, calls: &[Call], why: &str) -> Vec<Event> {
    over_with(current, calls, |action| if is_decided(action) { unsettled(action, why) } else { left(action, why) })
}

/// The end of one that has nothing to ask any more.
pub(super) fn moot(current: &Current, calls: &[Call], words: &str) -> Vec<Event> {
    over_with(current, calls, |action| format!("{}\n\n{words}", action.said))
}

fn over_with(current: &Current, calls: &[Call], words: impl Fn(&Action) -> String) -> Vec<Event> {
    let done = calls.iter().filter_map(|call| match &call.status {
        Status::Intended { action, .. } | Status::Asked { action, .. } => Some(ran(call, words(action))),
        _ => None,
    });
    reviewed(current, done.collect())
}

/// Whether what a person has said is being done.
pub(super) fn is_settling(calls: &[Call]) -> bool {
    calls.iter().any(|call| matches!(&call.status, Status::Intended { action, .. } if is_decided(action)))
}

/// Whether a person has said what becomes of the copy.
fn is_decided(action: &Action) -> bool {
    action.parameters.iter().any(|(name, _)| name == SETTLE)
}

/// What a call came to that may or may not have done what the user said.
fn unsettled(action: &Action, why: &str) -> String {
    let Action { said, target, .. } = action;
    format!(
        "{said}\n\n[The user has said what becomes of the changes in the copy, and nobody knows whether it was done: {why}. \
         `max-team worktrees show {target}` shows what is left of them.]"
    )
}
