//! Model calls: the next one, a repeated one, and what follows from their end.

use super::apply::calls_of;
use super::decide::{PendingInput, ended};
use super::tools::{close, finish_with, told_interrupted};
use super::{PendingModelCall, PrepareError, PreparedCall, RunningTurn, ToolCall, Turn, TurnEnv};
use crate::agent::Model;
use crate::chat::{Answer, Part, PartialAnswer, StopReason};
use crate::context::{self, RequestSize, Window};
use crate::delegation::ending::{NUDGE_ANNOUNCED, announces};
use crate::event::{
    Event, LimitedResource, LlmEnded, LlmIntent, LlmOutcome, Nudged, RequestRef, ToolOutcome, TurnEnded, TurnOutcome,
};
use crate::ledger::{CallGrant, RemainingBudget};
use crate::limits::{BYTES_PER_TOKEN_MAX, HAND_BACK_TOKENS, NUDGES_MAX};
use crate::recovery::{self, Attempt, Failure, Remedy};

const NUDGE_EMPTY: &str = "(Your answer was empty. Give your answer, or call a tool.)";
const NUDGE_STRUCTURED: &str = "(Call the `structured_output` tool now with your final answer, or answer with nothing but \
                                that JSON object.)";
const NUDGE_HAND_BACK: &str =
    "(The budget is used up. Tools are off. Hand back what you have: what is done, what is left, what you know.)";

impl Turn {
    /// The next model call, or the end of the turn if no call may follow. `ahead` is what earlier events of the same
    /// decision add to the history.
    pub(super) fn next_call(&self, current: &RunningTurn, ahead: PendingInput, now: &TurnEnv) -> Vec<Event> {
        let Some(model) = self.model(current.fallback) else { return Vec::new() };
        if self.settings.as_ref().is_some_and(|settings| current.counts.rounds >= settings.rounds_max) {
            return vec![Event::TurnEnded(ended(current, TurnOutcome::Rounds, None))];
        }
        let mut weights = self.conversation.weights.clone();
        weights.extend(ahead.0);
        // New messages are only taken in if a call follows that carries them; otherwise the next turn takes them.
        let steered = now.steer.clone();
        weights.extend(steered.iter().map(|steered| RequestSize::of_parts(&steered.input)));
        let room = self.room(model, now);
        if let Some(summary) = self.make_room(current, &weights, room, now) {
            return vec![Event::LlmIntent(LlmIntent { fallback: current.fallback, ..summary })];
        }
        let window = context::fit(&weights, self.conversation.window, room);
        let (mut intent, grant) = self.intent(model, &weights, window, 0, now);
        if intent.bytes as u64 > model.context_tokens.saturating_mul(BYTES_PER_TOKEN_MAX) {
            let end = TurnOutcome::Failed { failure: Failure::ContextOverflow, detail: too_large(&intent) };
            return vec![Event::TurnEnded(ended(current, end, None))];
        }
        intent.fallback = current.fallback;
        if self.is_worth_waiting(model, &intent, grant, now) {
            return Vec::new();
        }
        let mut events: Vec<Event> = steered.map(Event::Steered).into_iter().collect();
        match grant {
            CallGrant::Call { .. } => {}
            CallGrant::HandBack { .. } if current.counts.rounds > 0 => {
                intent.hand_back = true;
                intent.request.upto += 1;
                events.push(Event::Nudged(Nudged { text: NUDGE_HAND_BACK.to_owned() }));
            }
            // If the turn has done nothing yet, there is nothing to hand back: the rest of the budget is kept until it
            // is raised.
            CallGrant::HandBack { .. } | CallGrant::Exhausted => {
                return vec![self.out_of_budget(current, &intent, now)];
            }
        }
        events.push(Event::LlmIntent(intent));
        events
    }

    /// The end of a turn whose next call cannot be paid.
    fn out_of_budget(&self, current: &RunningTurn, intent: &LlmIntent, now: &TurnEnv) -> Event {
        let input_tokens = self.conversation.tokens(intent.bytes);
        let short = now.left.tokens.filter(|left| is_too_little(*left, input_tokens)).map(|_| LimitedResource::Tokens);
        Event::TurnEnded(TurnEnded { short, ..ended(current, TurnOutcome::Budget, None) })
    }

    /// Repeats a call: the same place in the history, the next attempt, under the present settings. It is judged like
    /// any other call, so that neither a crash nor a retry exceeds the budget; `freed_nano` is what the failed attempt
    /// releases in the same decision.
    pub(super) fn again(
        &self,
        current: &RunningTurn,
        calling: &PendingModelCall,
        window: Window,
        fallback: bool,
        freed_nano: u64,
        now: &TurnEnv,
    ) -> Vec<Event> {
        if let Some(about) = &calling.intent.summary {
            return self.sum_up_again(current, calling, about, freed_nano, now);
        }
        let Some(model) = self.model(fallback) else {
            return vec![Event::TurnEnded(ended(current, TurnOutcome::Budget, None))];
        };
        let (mut intent, grant) = self.intent(model, &self.conversation.weights, window, freed_nano, now);
        intent.call = calling.intent.call;
        intent.attempt = calling.intent.attempt + 1;
        intent.fallback = fallback;
        intent.hand_back = calling.intent.hand_back;
        match grant {
            CallGrant::Call { .. } => vec![Event::LlmIntent(intent)],
            CallGrant::HandBack { .. } if intent.hand_back => vec![Event::LlmIntent(intent)],
            CallGrant::HandBack { .. } | CallGrant::Exhausted => vec![self.out_of_budget(current, &intent, now)],
        }
    }

    /// A call of this model with this window, within its grant.
    fn intent(
        &self,
        model: &Model,
        weights: &[RequestSize],
        window: Window,
        freed_nano: u64,
        now: &TurnEnv,
    ) -> (LlmIntent, CallGrant) {
        let bytes = context::window_bytes(weights, window) + self.conversation.head_bytes() + now.frame.bytes;
        let grant = self.grant(model, self.conversation.tokens(bytes), freed_nano, now.left);
        let (max_tokens, reserved_nano) = match grant {
            CallGrant::Call { max_tokens, nano } | CallGrant::HandBack { max_tokens, nano } => (max_tokens, nano),
            CallGrant::Exhausted => (0, 0),
        };
        let frame = now.frame;
        let (instructions, tools, settings) = (frame.instructions, frame.tools, frame.settings);
        let intent = LlmIntent {
            call: self.calls_made + 1,
            attempt: 1,
            request: RequestRef { instructions, tools, settings, window, upto: weights.len() },
            model: model.clone(),
            fallback: false,
            max_tokens,
            reserved_nano,
            bytes,
            hand_back: false,
            summary: None,
        };
        (intent, grant)
    }

    /// Whether the call would get more tokens after other calls have released their reservations.
    fn is_worth_waiting(&self, model: &Model, intent: &LlmIntent, grant: CallGrant, now: &TurnEnv) -> bool {
        let words = |grant| if let CallGrant::Call { max_tokens, .. } = grant { max_tokens } else { 0 };
        let input_tokens = self.conversation.tokens(intent.bytes);
        now.later != now.left && words(self.grant(model, input_tokens, 0, now.later)) > words(grant)
    }

    /// The grant for a call with this many input tokens.
    pub(super) fn grant(&self, model: &Model, input_tokens: u64, freed_nano: u64, left: RemainingBudget) -> CallGrant {
        let mut ledger = self.ledger.clone().within(left);
        ledger.settle(freed_nano, None);
        match left.tokens {
            // A call without enough tokens to hand back a result is not made.
            Some(left) if is_too_little(left, input_tokens) => CallGrant::Exhausted,
            Some(left) => {
                let most = u32::try_from(left - input_tokens).unwrap_or(u32::MAX);
                ledger.authorize(model.price, input_tokens, model.max_tokens.min(most))
            }
            None => ledger.authorize(model.price, input_tokens, model.max_tokens),
        }
    }

    /// Bytes of history that fit beside the instructions and the answer.
    fn room(&self, model: &Model, now: &TurnEnv) -> usize {
        let answer_tokens = u64::from(model.max_tokens).min(model.context_tokens / 2);
        let room_tokens = model.context_tokens.saturating_sub(answer_tokens);
        let room_bytes = room_tokens.saturating_mul(self.conversation.bytes_per_kilotoken) / 1_000;
        usize::try_from(room_bytes)
            .unwrap_or(usize::MAX)
            .saturating_sub(now.frame.bytes + self.conversation.head_bytes())
    }

    fn model(&self, fallback: bool) -> Option<&Model> {
        let settings = self.settings.as_ref()?;
        Some(settings.fallback.as_ref().filter(|_| fallback).unwrap_or(&settings.model))
    }

    pub(super) fn model_ended(
        &self,
        current: &RunningTurn,
        calling: &PendingModelCall,
        ended_call: LlmEnded,
        streamed: PartialAnswer,
        prepared: Vec<PreparedCall>,
        now: &TurnEnv,
    ) -> Vec<Event> {
        let mut current = current.clone();
        current.charge(&calling.intent, &ended_call);
        let LlmEnded { call, outcome, ms, summary, estimate } = ended_call;
        let end = |outcome| Event::LlmEnded(LlmEnded { call, outcome, ms, summary, estimate });
        match outcome {
            LlmOutcome::Done(answer) if calling.intent.summary.is_some() => {
                let about = calling.intent.summary.iter();
                let then = about.flat_map(|about| self.summed_up(&current, about, &answer, now));
                let then: Vec<Event> = then.collect();
                [end(LlmOutcome::Done(answer))].into_iter().chain(then).collect()
            }
            LlmOutcome::Done(answer) => {
                let answer = Answer { message: answer.message.with_own_ids(), ..answer };
                let calls = calls_of(calling.intent.call, &answer.message);
                current.hear(&answer.message, &calls);
                let next = if calls.is_empty() {
                    self.answered_in_words(&current, calling, &answer, prepared, now)
                } else {
                    self.answered_with_calls(&current, calling, &answer, &calls, prepared, now)
                };
                [end(LlmOutcome::Done(answer))].into_iter().chain(next).collect()
            }
            LlmOutcome::Cancelled { partial, usage } => {
                let said = if calling.intent.summary.is_some() { &current.text } else { &partial };
                let over = TurnEnded { text: said.clone(), ..ended(&current, TurnOutcome::Interrupted, None) };
                vec![end(LlmOutcome::Cancelled { partial, usage }), Event::TurnEnded(over)]
            }
            LlmOutcome::Failed { failure, detail, .. } => {
                let failed = (failure.clone(), detail.clone());
                let outcome = LlmOutcome::Failed { failure, detail, retry_at_ms: None, parked: false };
                let ended_call = LlmEnded { call, outcome, ms, summary, estimate };
                self.failed(&current, calling, failed, ended_call, streamed, now)
            }
            LlmOutcome::Lost => Vec::new(),
        }
    }

    fn answered_with_calls(
        &self,
        heard: &RunningTurn,
        calling: &PendingModelCall,
        answer: &Answer,
        calls: &[ToolCall],
        prepared: Vec<PreparedCall>,
        now: &TurnEnv,
    ) -> Vec<Event> {
        let end = match (calling.intent.hand_back, &heard.stopped) {
            (true, _) => TurnOutcome::Budget,
            (false, Some(_)) => TurnOutcome::Interrupted,
            (false, None) if prepared.is_empty() => return Vec::new(),
            (false, None) => {
                return self.prepared(heard, calls, prepared, PendingInput::of(&answer.message.parts, false), now);
            }
        };
        let mut done = Vec::new();
        close(calls, &mut done, ToolOutcome::Interrupted, &told_interrupted(heard));
        finish_with(done, ended(heard, end, None))
    }

    /// The consequence of an answer without tools: the end of the turn, or another message to the model. With an agreed
    /// schema, `checked` says whether the JSON in the text matches it.
    fn answered_in_words(
        &self,
        heard: &RunningTurn,
        calling: &PendingModelCall,
        answer: &Answer,
        checked: Vec<PreparedCall>,
        now: &TurnEnv,
    ) -> Vec<Event> {
        let over = |end| vec![Event::TurnEnded(ended(heard, end, None))];
        if heard.stopped.is_some() {
            return over(TurnOutcome::Interrupted);
        }
        if calling.intent.hand_back {
            return over(TurnOutcome::Budget);
        }
        let said = PendingInput::of(&answer.message.parts, false);
        let empty = answer.message.text().trim().is_empty();
        match answer.stop {
            StopReason::Refusal => over(TurnOutcome::Refused),
            StopReason::Pause => self.next_call(heard, said, now),
            StopReason::MaxTokens if !empty => over(TurnOutcome::Truncated),
            _ if empty && self.may_end_silently(heard) => over(TurnOutcome::Answered),
            _ if empty => self.nudge(heard, said, NUDGE_EMPTY, TurnOutcome::Empty, now),
            _ if !self.settings.as_ref().is_some_and(|settings| settings.structured) => {
                if self.only_announces(heard, &answer.message.text()) {
                    return self.nudge(heard, said, NUDGE_ANNOUNCED, TurnOutcome::Answered, now);
                }
                over(TurnOutcome::Answered)
            }
            _ => match (checked.into_iter().next().map(|checked| checked.found), json_in(&answer.message.text())) {
                (Some(Ok(_)), Some(value)) => vec![Event::TurnEnded(ended(heard, TurnOutcome::Answered, Some(value)))],
                (Some(Err(PrepareError::Told(why))), _) => {
                    let words = format!("({why})\n{NUDGE_STRUCTURED}");
                    self.nudge(heard, said, &words, TurnOutcome::Unstructured, now)
                }
                _ => self.nudge(heard, said, NUDGE_STRUCTURED, TurnOutcome::Unstructured, now),
            },
        }
    }

    /// Whether the answer of an agent that works for another only announces an action. It is told so once; teammates
    /// may wait.
    fn only_announces(&self, current: &RunningTurn, text: &str) -> bool {
        current.assignment.is_some() && self.teammate().is_none() && current.counts.nudges == 0 && announces(text)
    }

    fn nudge(
        &self,
        current: &RunningTurn,
        mut ahead: PendingInput,
        words: &str,
        give_up: TurnOutcome,
        now: &TurnEnv,
    ) -> Vec<Event> {
        if current.counts.nudges >= NUDGES_MAX {
            return vec![Event::TurnEnded(ended(current, give_up, None))];
        }
        ahead.add(&[Part::text(words)]);
        let mut events = vec![Event::Nudged(Nudged { text: words.to_owned() })];
        events.extend(self.next_call(current, ahead, now));
        events
    }

    fn failed(
        &self,
        current: &RunningTurn,
        calling: &PendingModelCall,
        (failure, detail): (Failure, String),
        ended_call: LlmEnded,
        streamed: PartialAnswer,
        now: &TurnEnv,
    ) -> Vec<Event> {
        let window = calling.intent.request.window;
        let half = context::window_bytes(&self.conversation.weights, window) / 2;
        let smaller = context::shrink(&self.conversation.weights, window, half);
        let is_summary = calling.intent.summary.is_some();
        let attempt = Attempt {
            failed_before: calling.failed,
            retries_max: self.settings.as_ref().map_or(0, |settings| settings.retries_max),
            fallback: !is_summary
                && !current.fallback
                && self.settings.as_ref().is_some_and(|settings| settings.fallback.is_some()),
            // Waits without a limit are only for calls that received nothing: each attempt is charged for the received
            // part of its answer.
            can_park: !is_summary && current.is_planned() && streamed.bytes == 0,
            can_shrink: !is_summary && smaller != window,
            jitter: now.jitter,
        };
        let remedy = if current.stopped.is_some() { Remedy::GiveUp } else { recovery::remedy(&failure, attempt) };
        let retry_at_ms = match remedy {
            Remedy::Retry { after_ms } | Remedy::Park { after_ms } => Some(now.at_ms.saturating_add_unsigned(after_ms)),
            _ => None,
        };
        let freed = ended_call.freed_nano(&calling.intent);
        let parked = matches!(remedy, Remedy::Park { .. });
        let outcome = LlmOutcome::Failed { failure: failure.clone(), detail: detail.clone(), retry_at_ms, parked };
        let mut events = vec![Event::LlmEnded(LlmEnded { outcome, ..ended_call })];
        if failure == Failure::ContextOverflow
            && current.stopped.is_none()
            && let Some(summary) = self.make_room_for(current, calling, freed, now)
        {
            events.push(Event::LlmIntent(LlmIntent { fallback: current.fallback, ..summary }));
            return events;
        }
        match remedy {
            Remedy::Retry { .. } | Remedy::Park { .. } => {}
            Remedy::Fallback => events.extend(self.again(current, calling, window, true, freed, now)),
            Remedy::Shrink => events.extend(self.again(current, calling, smaller, calling.intent.fallback, freed, now)),
            Remedy::GiveUp if current.stopped.is_some() => {
                events.push(Event::TurnEnded(ended(current, TurnOutcome::Interrupted, None)));
            }
            Remedy::GiveUp if !current.compacting && is_summary => {
                let about = calling.intent.summary.iter();
                events.extend(about.flat_map(|about| self.not_summed_up(current, about, detail.clone(), now)));
            }
            Remedy::GiveUp => {
                events.push(Event::TurnEnded(ended(current, TurnOutcome::Failed { failure, detail }, None)))
            }
        }
        events
    }
}

/// The JSON object that a text consists of: bare, or as its only fenced block.
pub fn json_in(text: &str) -> Option<serde_json::Value> {
    let parsed = |text: &str| serde_json::from_str(text).ok().filter(serde_json::Value::is_object);
    if let Some(value) = parsed(text.trim()) {
        return Some(value);
    }
    let mut parts = text.split("```");
    let (_, block, _) = (parts.next()?, parts.next()?, parts.next()?);
    // A second block leaves open which of them is the answer.
    parts.next().is_none().then_some(())?;
    let body = block.strip_prefix("json").or_else(|| block.strip_prefix("JSON")).unwrap_or(block);
    parsed(body.trim())
}

/// Whether this many tokens are too few for an answer to an input of this size.
fn is_too_little(left: u64, input_tokens: u64) -> bool {
    left < input_tokens.saturating_add(u64::from(HAND_BACK_TOKENS))
}

fn too_large(intent: &LlmIntent) -> String {
    format!(
        "the request has {} bytes, far more than the {} tokens that `{}` can take; \
         put the text into a file and let it be read in parts",
        intent.bytes, intent.model.context_tokens, intent.model.name
    )
}
