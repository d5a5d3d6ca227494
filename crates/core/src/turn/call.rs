//! Model calls: the next one, a repeated one, and what follows from their end.

use super::apply::calls_of;
use super::decide::{Ahead, ended};
use super::tools::{close, finish_with, told_interrupted};
use super::{Call, Calling, Current, Now, Obstacle, Prepared, Turn};
use crate::calling::ending::{NUDGE_ANNOUNCED, announces};
use crate::chat::{Answer, Part, Stop, Streamed};
use crate::context::{self, Weight, Window};
use crate::event::{End, Ending, Event, LlmEnded, LlmIntent, Nudged, Outcome, RequestRef, Short, TurnEnded};
use crate::ledger::{Grant, Left};
use crate::limits::{BYTES_PER_TOKEN_MAX, HAND_BACK_TOKENS, NUDGES_MAX};
use crate::recovery::{self, Attempt, Failure, Remedy};
use crate::team::Model;

const NUDGE_EMPTY: &str = "(Your answer was empty. Answer the user, or call a tool.)";
const NUDGE_STRUCTURED: &str = "(Call the `structured_output` tool now with your final answer, or answer with nothing but \
                                that JSON object.)";
const NUDGE_HAND_BACK: &str =
    "(The budget is used up. Tools are off. Hand back what you have: what is done, what is left, what you know.)";

impl Turn {
    /// The next model call, or the end of the turn if no call may follow. `ahead` is what earlier events of the same
    /// decision add to the history.
    pub(super) fn next_call(&self, current: &Current, ahead: Ahead, now: &Now) -> Vec<Event> {
        let Some(model) = self.model(current.fallback) else { return Vec::new() };
        if self.settings.as_ref().is_some_and(|settings| current.counts.rounds >= settings.rounds_max) {
            return vec![Event::TurnEnded(ended(current, End::Rounds, None))];
        }
        let mut weights = self.conversation.weights.clone();
        weights.extend(ahead.0);
        // New messages are only taken in if a call follows that carries them; otherwise the next turn takes them.
        let steered = now.steer.clone();
        weights.extend(steered.iter().map(|steered| Weight::of_parts(&steered.input)));
        let room = self.room(model, now);
        if let Some(summary) = self.make_room(current, &weights, room, now) {
            return vec![Event::LlmIntent(LlmIntent { fallback: current.fallback, ..summary })];
        }
        let window = context::fit(&weights, self.conversation.window, room);
        let (mut intent, grant) = self.intent(model, &weights, window, 0, now);
        if intent.bytes as u64 > model.context_tokens.saturating_mul(BYTES_PER_TOKEN_MAX) {
            let end = End::Failed { failure: Failure::ContextOverflow, detail: too_large(&intent) };
            return vec![Event::TurnEnded(ended(current, end, None))];
        }
        intent.fallback = current.fallback;
        if self.is_worth_waiting(model, &intent, grant, now) {
            return Vec::new();
        }
        let mut events: Vec<Event> = steered.map(Event::Steered).into_iter().collect();
        match grant {
            Grant::Call { .. } => {}
            Grant::HandBack { .. } if current.counts.rounds > 0 => {
                intent.hand_back = true;
                intent.request.upto += 1;
                events.push(Event::Nudged(Nudged { text: NUDGE_HAND_BACK.to_owned() }));
            }
            // If the turn has done nothing yet, there is nothing to hand back: the rest of the budget is kept until it
            // is raised.
            Grant::HandBack { .. } | Grant::Exhausted => return vec![self.out_of_budget(current, &intent, now)],
        }
        events.push(Event::LlmIntent(intent));
        events
    }

    /// The end of a turn whose next call cannot be paid.
    fn out_of_budget(&self, current: &Current, intent: &LlmIntent, now: &Now) -> Event {
        let input_tokens = self.conversation.tokens(intent.bytes);
        let short = now.left.tokens.filter(|left| is_too_little(*left, input_tokens)).map(|_| Short::Tokens);
        Event::TurnEnded(TurnEnded { short, ..ended(current, End::Budget, None) })
    }

    /// Repeats a call: the same place in the history, the next attempt, under the present settings. It is judged like
    /// any other call, so that neither a crash nor a retry exceeds the budget; `freed_nano` is what the failed attempt
    /// releases in the same decision.
    pub(super) fn again(
        &self,
        current: &Current,
        calling: &Calling,
        window: Window,
        fallback: bool,
        freed_nano: u64,
        now: &Now,
    ) -> Vec<Event> {
        if let Some(about) = &calling.intent.summary {
            return self.sum_up_again(current, calling, about, freed_nano, now);
        }
        let Some(model) = self.model(fallback) else {
            return vec![Event::TurnEnded(ended(current, End::Budget, None))];
        };
        let (mut intent, grant) = self.intent(model, &self.conversation.weights, window, freed_nano, now);
        intent.call = calling.intent.call;
        intent.attempt = calling.intent.attempt + 1;
        intent.fallback = fallback;
        intent.hand_back = calling.intent.hand_back;
        match grant {
            Grant::Call { .. } => vec![Event::LlmIntent(intent)],
            Grant::HandBack { .. } if intent.hand_back => vec![Event::LlmIntent(intent)],
            Grant::HandBack { .. } | Grant::Exhausted => vec![self.out_of_budget(current, &intent, now)],
        }
    }

    /// A call of this model with this window, within its grant.
    fn intent(
        &self,
        model: &Model,
        weights: &[Weight],
        window: Window,
        freed_nano: u64,
        now: &Now,
    ) -> (LlmIntent, Grant) {
        let bytes = context::weigh(weights, window) + self.conversation.head_bytes() + now.frame.bytes;
        let grant = self.grant(model, self.conversation.tokens(bytes), freed_nano, now.left);
        let (max_tokens, reserved_nano) = match grant {
            Grant::Call { max_tokens, nano } | Grant::HandBack { max_tokens, nano } => (max_tokens, nano),
            Grant::Exhausted => (0, 0),
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
    fn is_worth_waiting(&self, model: &Model, intent: &LlmIntent, grant: Grant, now: &Now) -> bool {
        let words = |grant| if let Grant::Call { max_tokens, .. } = grant { max_tokens } else { 0 };
        let input_tokens = self.conversation.tokens(intent.bytes);
        now.later != now.left && words(self.grant(model, input_tokens, 0, now.later)) > words(grant)
    }

    /// The grant for a call with this many input tokens.
    pub(super) fn grant(&self, model: &Model, input_tokens: u64, freed_nano: u64, left: Left) -> Grant {
        let mut ledger = self.ledger.clone().within(left);
        ledger.settle(freed_nano, None);
        match left.tokens {
            // A call without enough tokens to hand back a result is not made.
            Some(left) if is_too_little(left, input_tokens) => Grant::Exhausted,
            Some(left) => {
                let most = u32::try_from(left - input_tokens).unwrap_or(u32::MAX);
                ledger.judge(model.price, input_tokens, model.max_tokens.min(most))
            }
            None => ledger.judge(model.price, input_tokens, model.max_tokens),
        }
    }

    /// Bytes of history that fit beside the instructions and the answer.
    fn room(&self, model: &Model, now: &Now) -> usize {
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
        current: &Current,
        calling: &Calling,
        ended_call: LlmEnded,
        streamed: Streamed,
        prepared: Vec<Prepared>,
        now: &Now,
    ) -> Vec<Event> {
        let mut current = current.clone();
        current.charge(&calling.intent, &ended_call);
        let LlmEnded { call, outcome, ms, summary, estimate } = ended_call;
        let end = |outcome| Event::LlmEnded(LlmEnded { call, outcome, ms, summary, estimate });
        match outcome {
            Outcome::Done(answer) if calling.intent.summary.is_some() => {
                let about = calling.intent.summary.iter();
                let then = about.flat_map(|about| self.summed_up(&current, about, &answer, now));
                let then: Vec<Event> = then.collect();
                [end(Outcome::Done(answer))].into_iter().chain(then).collect()
            }
            Outcome::Done(answer) => {
                let answer = Answer { message: answer.message.with_own_ids(), ..answer };
                let calls = calls_of(calling.intent.call, &answer.message);
                current.hear(&answer.message, &calls);
                let next = if calls.is_empty() {
                    self.answered_in_words(&current, calling, &answer, prepared, now)
                } else {
                    self.answered_with_calls(&current, calling, &answer, &calls, prepared, now)
                };
                [end(Outcome::Done(answer))].into_iter().chain(next).collect()
            }
            Outcome::Cancelled { partial, usage } => {
                let said = if calling.intent.summary.is_some() { &current.text } else { &partial };
                let over = TurnEnded { text: said.clone(), ..ended(&current, End::Interrupted, None) };
                vec![end(Outcome::Cancelled { partial, usage }), Event::TurnEnded(over)]
            }
            Outcome::Failed { failure, detail, .. } => {
                let failed = (failure.clone(), detail.clone());
                let outcome = Outcome::Failed { failure, detail, retry_at_ms: None, parked: false };
                let ended_call = LlmEnded { call, outcome, ms, summary, estimate };
                self.failed(&current, calling, failed, ended_call, streamed, now)
            }
            Outcome::Lost => Vec::new(),
        }
    }

    fn answered_with_calls(
        &self,
        heard: &Current,
        calling: &Calling,
        answer: &Answer,
        calls: &[Call],
        prepared: Vec<Prepared>,
        now: &Now,
    ) -> Vec<Event> {
        let end = match (calling.intent.hand_back, &heard.stopped) {
            (true, _) => End::Budget,
            (false, Some(_)) => End::Interrupted,
            (false, None) if prepared.is_empty() => return Vec::new(),
            (false, None) => {
                return self.prepared(heard, calls, prepared, Ahead::of(&answer.message.parts, false), now);
            }
        };
        let mut done = Vec::new();
        close(calls, &mut done, Ending::Interrupted, &told_interrupted(heard));
        finish_with(done, ended(heard, end, None))
    }

    /// The consequence of an answer without tools: the end of the turn, or another message to the model. With an agreed
    /// schema, `checked` says whether the JSON in the text matches it.
    fn answered_in_words(
        &self,
        heard: &Current,
        calling: &Calling,
        answer: &Answer,
        checked: Vec<Prepared>,
        now: &Now,
    ) -> Vec<Event> {
        let over = |end| vec![Event::TurnEnded(ended(heard, end, None))];
        if heard.stopped.is_some() {
            return over(End::Interrupted);
        }
        if calling.intent.hand_back {
            return over(End::Budget);
        }
        let said = Ahead::of(&answer.message.parts, false);
        let empty = answer.message.text().trim().is_empty();
        match answer.stop {
            Stop::Refusal => over(End::Refused),
            Stop::Pause => self.next_call(heard, said, now),
            Stop::MaxTokens if !empty => over(End::Truncated),
            _ if empty && self.may_say_nothing(heard) => over(End::Answered),
            _ if empty => self.nudge(heard, said, NUDGE_EMPTY, End::Empty, now),
            _ if !self.settings.as_ref().is_some_and(|settings| settings.structured) => {
                if self.only_announces(heard, &answer.message.text()) {
                    return self.nudge(heard, said, NUDGE_ANNOUNCED, End::Answered, now);
                }
                over(End::Answered)
            }
            _ => match (checked.into_iter().next().map(|checked| checked.found), json_in(&answer.message.text())) {
                (Some(Ok(_)), Some(value)) => vec![Event::TurnEnded(ended(heard, End::Answered, Some(value)))],
                (Some(Err(Obstacle::Told(why))), _) => {
                    let words = format!("({why})\n{NUDGE_STRUCTURED}");
                    self.nudge(heard, said, &words, End::Unstructured, now)
                }
                _ => self.nudge(heard, said, NUDGE_STRUCTURED, End::Unstructured, now),
            },
        }
    }

    /// Whether the answer of an agent that works for another only announces an action. It is told so once; teammates
    /// may wait.
    fn only_announces(&self, current: &Current, text: &str) -> bool {
        current.assignment.is_some() && self.mate().is_none() && current.counts.nudges == 0 && announces(text)
    }

    fn nudge(&self, current: &Current, mut ahead: Ahead, words: &str, give_up: End, now: &Now) -> Vec<Event> {
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
        current: &Current,
        calling: &Calling,
        (failure, detail): (Failure, String),
        ended_call: LlmEnded,
        streamed: Streamed,
        now: &Now,
    ) -> Vec<Event> {
        let window = calling.intent.request.window;
        let half = context::weigh(&self.conversation.weights, window) / 2;
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
        let outcome = Outcome::Failed { failure: failure.clone(), detail: detail.clone(), retry_at_ms, parked };
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
                events.push(Event::TurnEnded(ended(current, End::Interrupted, None)));
            }
            Remedy::GiveUp if !current.compacting && is_summary => {
                let about = calling.intent.summary.iter();
                events.extend(about.flat_map(|about| self.not_summed_up(current, about, detail.clone(), now)));
            }
            Remedy::GiveUp => events.push(Event::TurnEnded(ended(current, End::Failed { failure, detail }, None))),
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
