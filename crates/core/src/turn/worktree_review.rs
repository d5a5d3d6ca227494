//! A review: after an agent's work, a person decides about the changes in its worktree, in a turn without a model.
//!
//! The turn has one call, which no model asked for: it shows the worktree, and then merges or drops the changes as the
//! person decided. The outcome becomes the turn's text.

use serde_json::Value;

use super::tools::{SETTLE, left, ran};
use super::{Phase, RunningTurn, ToolCall, ToolCallStatus, Turn};
use crate::chat::Part;
use crate::event::{Event, ReviewBegun, ToolDone, TurnEnded, TurnOutcome};
use crate::message::Envelope;
use crate::policy::{Action, ActionKind, Repeatability};

use super::decide::ended;

/// The tool name of the one call.
const TOOL: &str = "worktree";

impl Turn {
    /// The message to send at the end of the running turn, if that is a review.
    pub fn review_message(&self) -> Option<&Envelope> {
        self.current.as_ref()?.reviewing.as_deref()
    }

    pub(super) fn begin_review(&mut self, begun: &ReviewBegun) {
        let current = RunningTurn::new(begun.turn, None);
        self.current = Some(RunningTurn { reviewing: Some(begun.envelope.clone()), ..current });
        let action = Action { kind: ActionKind::Merge, ..Action::read(begun.copy.clone()) };
        self.phase = Phase::Working(vec![ToolCall {
            key: begun.turn.to_string(),
            id: String::new(),
            tool: TOOL.to_owned(),
            input: Value::Null.into(),
            status: ToolCallStatus::Intended {
                action,
                class: Repeatability::Idempotent,
                attended: false,
                words: String::new(),
            },
        }]);
    }
}

/// The end of a review, once its call has a result.
pub(super) fn reviewed(current: &RunningTurn, done: Vec<ToolDone>) -> Vec<Event> {
    let texts = done.iter().flat_map(|done| &done.content).filter_map(|part| match part {
        Part::Text { text } => Some(text.trim()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let over = TurnEnded { text, ..ended(current, TurnOutcome::Answered, None) };
    done.into_iter().map(Event::ToolDone).chain([Event::TurnEnded(over)]).collect()
}

/// Ends a review that cannot continue: the changes stay in the worktree, unless a person has decided about them.
pub(super) fn end_review_unmerged(current: &RunningTurn, calls: &[ToolCall], why: &str) -> Vec<Event> {
    over_with(current, calls, |action| if is_decided(action) { unsettled(action, why) } else { left(action, why) })
}

/// Ends a review that has nothing to ask any more.
pub(super) fn end_review_moot(current: &RunningTurn, calls: &[ToolCall], words: &str) -> Vec<Event> {
    over_with(current, calls, |action| format!("{}\n\n{words}", action.said))
}

fn over_with(current: &RunningTurn, calls: &[ToolCall], words: impl Fn(&Action) -> String) -> Vec<Event> {
    let done = calls.iter().filter_map(|call| match &call.status {
        ToolCallStatus::Intended { action, .. } | ToolCallStatus::Asked { action, .. } => {
            Some(ran(call, words(action)))
        }
        _ => None,
    });
    reviewed(current, done.collect())
}

/// Whether a person's decision is being carried out.
pub(super) fn is_settling(calls: &[ToolCall]) -> bool {
    calls.iter().any(|call| matches!(&call.status, ToolCallStatus::Intended { action, .. } if is_decided(action)))
}

/// Whether a person has decided about the worktree.
fn is_decided(action: &Action) -> bool {
    action.parameters.iter().any(|(name, _)| name == SETTLE)
}

/// The result of a call that may or may not have carried out the person's decision.
fn unsettled(action: &Action, why: &str) -> String {
    let Action { said, target, .. } = action;
    format!(
        "{said}\n\n[The user has said what becomes of the changes in the worktree, and it is unknown whether it was done: {why}. \
         `max-team worktrees show {target}` shows what is left of them.]"
    )
}
