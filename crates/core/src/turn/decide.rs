//! Turns inputs into events. Nothing here changes state: events are committed first, then applied.
//!
//! This file says which input fits which phase; `call` decides about model calls, `tools` about tool calls.

use std::sync::Arc;

use super::tools::{PUT_OFF, came_to, close, close_idle, finish_with, tool_done_with};
use super::worktree_review::{end_review_moot, end_review_unmerged, is_settling};
use super::{PendingModelCall, Phase, RunningTurn, ToolCall, ToolCallStatus, Turn, TurnEnv, TurnInput, TurnStop};
use crate::agent::{Definition, Settings};
use crate::chat::{Part, PartialAnswer};
use crate::context::RequestSize;
use crate::event::{
    Configured, Event, Interrupted, InterruptedBy, LlmOutcome, ToolDone, ToolOutcome, TurnEnded, TurnOutcome,
    TurnStarted,
};
use crate::limits::SNAPSHOT_ENTRIES_MIN;
use crate::machine::Machine;
use crate::recovery::{self, Reopen};

const TOLD_UNKNOWN: &str = "Outcome unknown: the program stopped while this ran. It may or may not have happened; \
                            check before doing it again.";

impl Machine for Turn {
    const SNAPSHOT_VERSION: u32 = 7;
    const SNAPSHOT_ENTRIES_MIN: u64 = SNAPSHOT_ENTRIES_MIN;

    type Input = TurnInput;
    type Now<'n> = TurnEnv;

    fn decide(&self, input: TurnInput, now: &TurnEnv) -> Vec<Event> {
        self.decide(input, now)
    }

    fn apply(&mut self, event: &Event, _at_ms: i64) {
        self.apply(event);
    }
}

impl Turn {
    /// What follows from an input. An input that no longer fits (a late end, a second answer) decides nothing.
    pub fn decide(&self, input: TurnInput, now: &TurnEnv) -> Vec<Event> {
        let mut events = self.decide_any(input, now);
        self.tell_unknown(&mut events);
        events
    }

    /// Adds to a turn that ended by its budget how much of the budget is reserved for calls with an unknown outcome.
    fn tell_unknown(&self, events: &mut [Event]) {
        let billed = events.iter().filter_map(|event| match event {
            Event::LlmEnded(ended) => ended.bill(self.calling()?).map(|bill| bill.unknown_nano),
            _ => None,
        });
        let losing = billed.fold(0, u64::saturating_add);
        if let Some(Event::TurnEnded(ended)) = events.last_mut()
            && ended.end == TurnOutcome::Budget
        {
            ended.unknown_nano = self.ledger.unknown_nano.saturating_add(losing);
        }
    }

    fn decide_any(&self, input: TurnInput, now: &TurnEnv) -> Vec<Event> {
        match (input, &self.current) {
            (TurnInput::Configure(settings), _) => self.configure(settings, None),
            (TurnInput::Redefine(definition, settings), _) => self.configure(settings, Some(definition)),
            (TurnInput::Begin { turn, envelope, input, assignment, recall, rewound, envelopes, quiet, hops }, None)
                if self.can_begin() =>
            {
                let current = RunningTurn::new(turn, assignment.clone());
                let started =
                    TurnStarted { turn, envelope, input, assignment, recall, rewound, envelopes, quiet, hops };
                let ahead = PendingInput::of(&started.model_input(), true);
                let mut events = vec![Event::TurnStarted(started)];
                events.extend(self.next_call(&current, ahead, now));
                events
            }
            (TurnInput::Compact { turn, keep }, None) => self.asked_to_compact(turn, keep, now),
            (TurnInput::Uncompact, None) => self.uncompact().into_iter().collect(),
            (TurnInput::Interrupt { by }, None) if self.team.gone.is_none() => interrupted_again(by),
            (_, None) | (TurnInput::Begin { .. }, Some(_)) => Vec::new(),
            (input, Some(current)) => self.decide_busy(current, input, now),
        }
    }

    fn decide_busy(&self, current: &RunningTurn, input: TurnInput, now: &TurnEnv) -> Vec<Event> {
        match (input, &self.phase) {
            (TurnInput::ModelEnded { call, outcome, ms, streamed, prepared }, Phase::Calling(calling))
                if calling.is(call) =>
            {
                let ended = self.call_ended(calling, outcome, streamed, ms);
                self.model_ended(current, calling, ended, streamed, prepared, now)
            }
            (TurnInput::Woke, Phase::Waiting(calling, until_ms)) if now.at_ms >= *until_ms => {
                self.again(current, calling, calling.intent.request.window, calling.intent.fallback, 0, now)
            }
            (TurnInput::Woke, Phase::Ready) => self.go_on(current, now),
            (TurnInput::Prepared(prepared), Phase::Working(calls)) => {
                self.prepared(current, calls, prepared, PendingInput::default(), now)
            }
            (TurnInput::ToolEnded { key, content, is_error, ending, fatal, ms }, Phase::Working(calls)) => {
                let running =
                    calls.iter().any(|call| call.key == key && matches!(call.status, ToolCallStatus::Intended { .. }));
                if !running {
                    return Vec::new();
                }
                let mut done = vec![came_to(key, ending, content, is_error, ms)];
                if let Some(detail) = fatal {
                    close(calls, &mut done, ToolOutcome::Interrupted, &format!("Not run: {detail}"));
                    return finish_with(done, ended(current, TurnOutcome::Broken { detail }, None));
                }
                if current.stopped.is_some() {
                    // Calls that have not started are not started any more.
                    close_idle(calls, &mut done, current);
                }
                self.tools_done(current, calls, done, PendingInput::default(), now)
            }
            (TurnInput::Acted(acted), Phase::Working(calls)) => {
                let is_open = |(key, ..): &(String, _, _)| {
                    calls.iter().any(|call| call.key == *key && matches!(call.status, ToolCallStatus::Intended { .. }))
                };
                let done = acted.into_iter().filter(is_open);
                let done = done.map(|(key, content, is_error)| came_to(key, ToolOutcome::Ran, content, is_error, 0));
                let mut done: Vec<ToolDone> = done.collect();
                if done.is_empty() {
                    return Vec::new();
                }
                if current.stopped.is_some() {
                    close_idle(calls, &mut done, current);
                }
                self.tools_done(current, calls, done, PendingInput::default(), now)
            }
            (TurnInput::Answered { question, answer }, Phase::Working(calls)) => {
                self.answered(current, calls, question, answer, now)
            }
            (TurnInput::Unanswered { key, action }, Phase::Working(calls))
                if current.stopped.is_none() || current.reviewing.is_some() =>
            {
                self.unanswered(current, calls, &key, action, now)
            }
            (TurnInput::Interrupt { by }, _) if current.stopped.is_some() => interrupted_again(by),
            (TurnInput::Interrupt { by }, phase) => self.interrupt(current, phase, by, now),
            (TurnInput::Moot { words }, Phase::Working(calls))
                if current.reviewing.is_some() && !is_settling(calls) =>
            {
                end_review_moot(current, calls, &words)
            }
            (TurnInput::Broken { detail }, Phase::Working(calls)) if current.reviewing.is_some() => {
                end_review_unmerged(current, calls, &detail)
            }
            (TurnInput::Broken { detail }, phase) => broken(self, current, phase, detail),
            (TurnInput::Recovered, phase) => self.recover(current, phase, now),
            _ => Vec::new(),
        }
    }

    fn configure(&self, settings: Arc<Settings>, definition: Option<Arc<Definition>>) -> Vec<Event> {
        let known = self.identity.as_ref().map(|identity| &identity.definition);
        let definition = definition.filter(|definition| known.is_some_and(|known| known != definition));
        if self.settings.as_ref() == Some(&settings) && definition.is_none() {
            return Vec::new();
        }
        vec![Event::Configured(Configured { settings, definition, by: None })]
    }

    fn interrupt(&self, current: &RunningTurn, phase: &Phase, by: InterruptedBy, now: &TurnEnv) -> Vec<Event> {
        let InterruptedBy { name, who, ends, held } = by;
        let stopped = RunningTurn { stopped: Some(TurnStop { by: name.clone(), who: who.clone() }), ..current.clone() };
        let mut events = vec![Event::Interrupted(Interrupted { by: name, who, ends, held })];
        match phase {
            Phase::Idle | Phase::Calling(_) => {}
            Phase::Ready | Phase::Waiting(..) => {
                events.push(Event::TurnEnded(ended(&stopped, TurnOutcome::Interrupted, None)))
            }
            Phase::Working(calls) => {
                let mut done = Vec::new();
                close_idle(calls, &mut done, &stopped);
                events.extend(self.tools_done(&stopped, calls, done, PendingInput::default(), now));
            }
        }
        events
    }

    /// The process that ran this turn is gone. Finished work is not repeated; unfinished work is reopened.
    fn recover(&self, current: &RunningTurn, phase: &Phase, now: &TurnEnv) -> Vec<Event> {
        let interrupted = current.stopped.is_some();
        match phase {
            // After a restart the call is tried at once, so that the user sees whether the server is back.
            Phase::Waiting(calling, _) if calling.parked && !interrupted => {
                self.again(current, calling, calling.intent.request.window, calling.intent.fallback, 0, now)
            }
            Phase::Idle | Phase::Waiting(..) => Vec::new(),
            Phase::Ready if interrupted => vec![Event::TurnEnded(ended(current, TurnOutcome::Interrupted, None))],
            Phase::Ready => self.go_on(current, now),
            Phase::Calling(calling) => {
                let lost = self.call_ended(calling, LlmOutcome::Lost, PartialAnswer::default(), 0);
                let mut charged = current.clone();
                charged.charge(&calling.intent, &lost);
                let (current, freed) = (&charged, lost.freed_nano(&calling.intent));
                let next = if interrupted {
                    vec![Event::TurnEnded(ended(current, TurnOutcome::Interrupted, None))]
                } else {
                    self.again(current, calling, calling.intent.request.window, calling.intent.fallback, freed, now)
                };
                [Event::LlmEnded(lost)].into_iter().chain(next).collect()
            }
            // The user's decision is still carried out.
            Phase::Working(calls) if interrupted && current.reviewing.is_some() => {
                if is_settling(calls) {
                    Vec::new()
                } else {
                    end_review_unmerged(current, calls, PUT_OFF)
                }
            }
            Phase::Working(calls) => {
                let lost = unknown(calls, interrupted);
                let mut done: Vec<_> =
                    lost.map(|call| tool_done_with(call.key.clone(), ToolOutcome::Unknown, TOLD_UNKNOWN)).collect();
                if interrupted {
                    close_idle(calls, &mut done, current);
                }
                if done.is_empty() {
                    Vec::new()
                } else {
                    self.tools_done(current, calls, done, PendingInput::default(), now)
                }
            }
        }
    }
}

/// The calls whose outcome is unknown after the process that made them is gone.
pub(super) fn unknown(calls: &[ToolCall], interrupted: bool) -> impl Iterator<Item = &ToolCall> {
    calls.iter().filter(move |call| {
        matches!(call.status, ToolCallStatus::Intended { class, .. }
            if interrupted || recovery::reopen(class) == Reopen::Unknown)
    })
}

impl PendingModelCall {
    fn is(&self, (call, attempt): (u32, u32)) -> bool {
        self.intent.call == call && self.intent.attempt == attempt
    }
}

/// What events earlier in the same decision add to the history.
#[derive(Default)]
pub(super) struct PendingInput(pub(super) Vec<RequestSize>);

impl PendingInput {
    pub(super) fn of(parts: &[Part], starts_turn: bool) -> Self {
        let mut ahead = Self::default();
        if !parts.is_empty() {
            ahead.add(parts);
        }
        if let Some(weight) = ahead.0.last_mut() {
            weight.starts_turn = starts_turn;
        }
        ahead
    }

    pub(super) fn add(&mut self, parts: &[Part]) {
        self.0.push(RequestSize::of_parts(parts));
    }
}

/// Repeats a stop when nothing runs or the stop is under way: records only messages that are newly on hold.
fn interrupted_again(by: InterruptedBy) -> Vec<Event> {
    let InterruptedBy { name, who, ends, held } = by;
    held.map(|held| Event::Interrupted(Interrupted { by: name, who, ends, held: Some(held) })).into_iter().collect()
}

/// Ends a turn that cannot continue.
fn broken(turn: &Turn, current: &RunningTurn, phase: &Phase, detail: String) -> Vec<Event> {
    let end =
        |detail| if current.stopped.is_some() { TurnOutcome::Interrupted } else { TurnOutcome::Broken { detail } };
    match phase {
        Phase::Idle => Vec::new(),
        Phase::Ready | Phase::Waiting(..) => vec![Event::TurnEnded(ended(current, end(detail), None))],
        Phase::Calling(calling) => {
            let lost = turn.call_ended(calling, LlmOutcome::Lost, PartialAnswer::default(), 0);
            let mut charged = current.clone();
            charged.charge(&calling.intent, &lost);
            vec![Event::LlmEnded(lost), Event::TurnEnded(ended(&charged, end(detail), None))]
        }
        Phase::Working(calls) => {
            let mut done = Vec::new();
            close(calls, &mut done, ToolOutcome::Unknown, &format!("The outcome is unknown: {detail}"));
            finish_with(done, ended(current, end(detail), None))
        }
    }
}

pub(super) fn ended(current: &RunningTurn, end: TurnOutcome, structured: Option<serde_json::Value>) -> TurnEnded {
    let (text, charges) = (current.text.clone(), current.charges.clone());
    TurnEnded { turn: current.turn, end, text, structured, charges, short: None, unknown_nano: 0 }
}
