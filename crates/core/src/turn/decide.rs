//! Turning inputs into events. Nothing here changes state: what is decided is committed first, then applied.

use super::apply::calls_of;
use super::{Call, Calling, Current, Frame, Input, Now, Phase, Prepared, Status, Turn};
use crate::chat::{Answer, Part, Stop};
use crate::context::{self, Window};
use crate::event::{
    Approval, Configured, End, Ending, Event, Interrupted, LlmEnded, LlmIntent, Nudged, Outcome, QuestionAnswered,
    QuestionAsked, RequestRef, ToolDone, ToolIntent, TurnEnded, TurnStarted,
};
use crate::hash::Hash;
use crate::id::QuestionId;
use crate::ledger::Grant;
use crate::limits::{BYTES_PER_TOKEN_MAX, CALLS_PER_ANSWER_MAX, NUDGES_MAX, REPEATS_MAX};
use crate::policy::{self, Action, By, Class, Verdict};
use crate::recovery::{self, Attempt, Failure, Remedy, Reopen};
use crate::team::Settings;

/// The tool that hands over a structured answer.
pub const STRUCTURED_OUTPUT: &str = "structured_output";

const NUDGE_EMPTY: &str = "(Your answer was empty. Answer the user, or call a tool.)";
const NUDGE_STRUCTURED: &str =
    "(Call the `structured_output` tool now with your final answer; plain text is not accepted.)";
const NUDGE_HAND_BACK: &str =
    "(The budget is used up. Tools are off. Hand back what you have: what is done, what is left, what you know.)";
const TOLD_INTERRUPTED: &str = "Not finished: the user interrupted the turn.";
const TOLD_UNKNOWN: &str = "Outcome unknown: the program stopped while this ran. It may or may not have happened; check before doing it again.";

impl Turn {
    /// What follows from an input. An input that no longer fits (a late end, a second answer) decides nothing.
    pub fn decide(&self, input: Input, now: &Now) -> Vec<Event> {
        match (input, &self.current) {
            (Input::Configure(settings), _) => self.configure(*settings),
            (Input::Begin { turn, envelope, input }, None) if self.settings.is_some() => {
                let current = Current::new(turn);
                let ahead = Ahead::of(&input, true);
                let mut events = vec![Event::TurnStarted(TurnStarted { turn, envelope, input })];
                events.extend(self.next_call(&current, ahead, now));
                events
            }
            (_, None) | (Input::Begin { .. }, Some(_)) => Vec::new(),
            (input, Some(current)) => self.decide_busy(current, input, now),
        }
    }

    fn decide_busy(&self, current: &Current, input: Input, now: &Now) -> Vec<Event> {
        match (input, &self.phase) {
            (Input::ModelEnded { outcome, ms, prepared }, Phase::Calling(calling)) => {
                self.model_ended(current, calling, outcome, ms, prepared, now)
            }
            (Input::Woke, Phase::Waiting(calling, until_ms)) if now.at_ms >= *until_ms => {
                vec![again(calling, calling.intent.request.window, calling.intent.fallback)]
            }
            (Input::Prepared(prepared), Phase::Working(calls)) => {
                self.prepared(current, calls, prepared, Ahead::default(), now)
            }
            (Input::ToolEnded { key, content, is_error, interrupted, fatal, ms }, Phase::Working(calls)) => {
                let running =
                    calls.iter().any(|call| call.key == key && matches!(call.status, Status::Intended { .. }));
                if !running {
                    return Vec::new();
                }
                let ending = if interrupted { Ending::Interrupted } else { Ending::Ran };
                let mut done = vec![ToolDone { key, ending, content, is_error, ms }];
                if let Some(detail) = fatal {
                    close(calls, &mut done, Ending::Interrupted, &format!("Not run: {detail}"));
                    return finish_with(done, ended(current, End::Broken { detail }, None));
                }
                if current.interrupted.is_some() {
                    // Neighbours that never started will not start now.
                    close_idle(calls, &mut done);
                }
                self.tools_done(current, calls, done, Ahead::default(), now)
            }
            (Input::Answered { question, answer }, Phase::Working(calls)) => {
                self.answered(current, calls, question, answer, now)
            }
            (Input::Interrupt { by }, phase) if current.interrupted.is_none() => {
                self.interrupt(current, phase, by, now)
            }
            (Input::Recovered, phase) => self.recover(current, phase, now),
            _ => Vec::new(),
        }
    }

    fn configure(&self, settings: Settings) -> Vec<Event> {
        if self.settings.as_ref() == Some(&settings) {
            return Vec::new();
        }
        vec![Event::Configured(Configured { settings })]
    }

    /// The next model call, or the end of the turn if there may be none. `ahead` is what the events before it in
    /// the same decision add to the history.
    fn next_call(&self, current: &Current, ahead: Ahead, now: &Now) -> Vec<Event> {
        let Some(settings) = &self.settings else { return Vec::new() };
        if current.rounds >= settings.rounds_max {
            return vec![Event::TurnEnded(ended(current, End::Rounds, None))];
        }
        let model = settings.fallback.as_ref().filter(|_| current.fallback).unwrap_or(&settings.model);
        let mut weights = self.weights.clone();
        weights.extend(ahead.0);
        let answer_tokens = u64::from(model.max_tokens).min(model.context_tokens / 2);
        let room_tokens = model.context_tokens.saturating_sub(answer_tokens);
        let room_bytes =
            usize::try_from(room_tokens.saturating_mul(self.bytes_per_kilotoken) / 1_000).unwrap_or(usize::MAX);
        let window = context::fit(&weights, self.window, room_bytes.saturating_sub(now.frame.bytes));
        let bytes = context::weigh(&weights, window) + now.frame.bytes;
        if bytes as u64 > model.context_tokens.saturating_mul(BYTES_PER_TOKEN_MAX) {
            let detail = format!(
                "the request has {bytes} bytes, far more than the {} tokens that `{}` can take; \
                 put the text into a file and let it be read in parts",
                model.context_tokens, model.name
            );
            let end = End::Failed { failure: Failure::ContextOverflow, detail };
            return vec![Event::TurnEnded(ended(current, end, None))];
        }
        let input_tokens = context::tokens(bytes, self.bytes_per_kilotoken);
        let mut intent = LlmIntent {
            call: self.calls_made + 1,
            attempt: 1,
            request: request(now.frame, window, weights.len()),
            model: format!("{}/{}", model.provider, model.name),
            fallback: current.fallback,
            max_tokens: model.max_tokens,
            reserved_nano: 0,
            bytes,
            hand_back: false,
        };
        match self.ledger.judge(model.price, input_tokens, model.max_tokens) {
            Grant::Call { max_tokens, nano } => {
                (intent.max_tokens, intent.reserved_nano) = (max_tokens, nano);
                vec![Event::LlmIntent(intent)]
            }
            Grant::HandBack { max_tokens, nano } if current.rounds > 0 => {
                (intent.max_tokens, intent.reserved_nano, intent.hand_back) = (max_tokens, nano, true);
                intent.request.upto += 1;
                vec![Event::Nudged(Nudged { text: NUDGE_HAND_BACK.to_owned() }), Event::LlmIntent(intent)]
            }
            // With nothing done yet there is nothing to hand back: what is left is kept for a bigger budget.
            Grant::HandBack { .. } | Grant::Exhausted => vec![Event::TurnEnded(ended(current, End::Budget, None))],
        }
    }

    fn model_ended(
        &self,
        current: &Current,
        calling: &Calling,
        outcome: Outcome,
        ms: u64,
        prepared: Vec<Prepared>,
        now: &Now,
    ) -> Vec<Event> {
        let end = |outcome| Event::LlmEnded(LlmEnded { call: calling.intent.call, outcome, ms });
        match outcome {
            Outcome::Done(answer) => {
                let answer = Answer { message: answer.message.with_own_ids(), ..answer };
                let calls = calls_of(calling.intent.call, &answer.message);
                let mut heard = current.clone();
                heard.hear(&answer.message, &calls);
                let next = if calls.is_empty() {
                    self.answered_in_words(&heard, calling, &answer, now)
                } else {
                    self.answered_with_calls(&heard, calling, &answer, &calls, prepared, now)
                };
                [end(Outcome::Done(answer))].into_iter().chain(next).collect()
            }
            Outcome::Cancelled { partial, usage } => {
                let text = partial.clone();
                let over = TurnEnded { text, ..ended(current, End::Interrupted, None) };
                vec![end(Outcome::Cancelled { partial, usage }), Event::TurnEnded(over)]
            }
            Outcome::Failed { failure, detail, .. } => self.failed(current, calling, failure, detail, ms, now),
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
        let end = match (calling.intent.hand_back, &heard.interrupted) {
            (true, _) => End::Budget,
            (false, Some(_)) => End::Interrupted,
            (false, None) if prepared.is_empty() => return Vec::new(),
            (false, None) => {
                return self.prepared(heard, calls, prepared, Ahead::of(&answer.message.parts, false), now);
            }
        };
        let mut done = Vec::new();
        close(calls, &mut done, Ending::Interrupted, TOLD_INTERRUPTED);
        finish_with(done, ended(heard, end, None))
    }

    /// What an answer without tools leads to: the end, or another word to the model.
    fn answered_in_words(&self, heard: &Current, calling: &Calling, answer: &Answer, now: &Now) -> Vec<Event> {
        let over = |end| vec![Event::TurnEnded(ended(heard, end, None))];
        if heard.interrupted.is_some() {
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
            _ if empty => self.nudge(heard, said, NUDGE_EMPTY, End::Empty, now),
            _ if self.settings.as_ref().is_some_and(|settings| settings.structured) => {
                self.nudge(heard, said, NUDGE_STRUCTURED, End::Unstructured, now)
            }
            _ => over(End::Answered),
        }
    }

    fn nudge(&self, current: &Current, mut ahead: Ahead, words: &str, give_up: End, now: &Now) -> Vec<Event> {
        if current.nudges >= NUDGES_MAX {
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
        failure: Failure,
        detail: String,
        ms: u64,
        now: &Now,
    ) -> Vec<Event> {
        let window = calling.intent.request.window;
        let half = context::weigh(&self.weights, window) / 2;
        let smaller = context::shrink(&self.weights, window, half);
        let attempt = Attempt {
            failed_before: calling.failed,
            retries_max: self.settings.as_ref().map_or(0, |settings| settings.retries_max),
            fallback: !current.fallback && self.settings.as_ref().is_some_and(|settings| settings.fallback.is_some()),
            can_shrink: smaller != window,
            jitter: now.jitter,
        };
        let remedy = if current.interrupted.is_some() { Remedy::GiveUp } else { recovery::remedy(&failure, attempt) };
        let retry_at_ms = match remedy {
            Remedy::Retry { after_ms } => Some(now.at_ms.saturating_add_unsigned(after_ms)),
            _ => None,
        };
        let outcome = Outcome::Failed { failure: failure.clone(), detail: detail.clone(), retry_at_ms };
        let mut events = vec![Event::LlmEnded(LlmEnded { call: calling.intent.call, outcome, ms })];
        match remedy {
            Remedy::Retry { .. } => {}
            Remedy::Fallback => events.push(self.fall_back(calling)),
            Remedy::Shrink => events.push(again(calling, smaller, calling.intent.fallback)),
            Remedy::GiveUp if current.interrupted.is_some() => {
                events.push(Event::TurnEnded(ended(current, End::Interrupted, None)));
            }
            Remedy::GiveUp => events.push(Event::TurnEnded(ended(current, End::Failed { failure, detail }, None))),
        }
        events
    }

    fn fall_back(&self, calling: &Calling) -> Event {
        let mut event = again(calling, calling.intent.request.window, true);
        if let (Event::LlmIntent(intent), Some(model)) =
            (&mut event, self.settings.as_ref().and_then(|settings| settings.fallback.as_ref()))
        {
            intent.model = format!("{}/{}", model.provider, model.name);
            intent.max_tokens = intent.max_tokens.min(model.max_tokens);
        }
        event
    }

    fn prepared(
        &self,
        current: &Current,
        calls: &[Call],
        prepared: Vec<Prepared>,
        ahead: Ahead,
        now: &Now,
    ) -> Vec<Event> {
        let (mut done, mut events) = (Vec::new(), Vec::new());
        for Prepared { key, found } in prepared {
            let Some((index, call)) = calls.iter().enumerate().find(|(_, call)| call.key == key) else { continue };
            if !matches!(call.status, Status::Open) {
                continue;
            }
            if index >= CALLS_PER_ANSWER_MAX {
                let why = format!("Not run: at most {CALLS_PER_ANSWER_MAX} tool calls are run per answer.");
                done.push(told(key, Ending::Invalid, &why));
                continue;
            }
            match found {
                Err(why) => done.push(told(key, Ending::Invalid, &why)),
                Ok((action, class)) => match self.judge(call, action, class, now) {
                    Judged::Event(event) => events.push(event),
                    Judged::Refused(refusal) => done.push(refusal),
                },
            }
        }
        events.splice(0..0, self.tools_done(current, calls, done, ahead, now));
        events
    }

    fn judge(&self, call: &Call, action: Action, class: Class, now: &Now) -> Judged {
        let mode = self.settings.as_ref().map(|settings| settings.mode).unwrap_or_default();
        let judgement = policy::judge(mode, &self.grants, &action);
        match judgement.verdict {
            Verdict::Allow => Judged::Event(intend(call, action, class, Approval::Rule(judgement.rule))),
            Verdict::Deny => {
                let why =
                    format!("Not allowed by {}: nobody was asked. Do not try to get around this.", judgement.rule);
                Judged::Refused(told(call.key.clone(), Ending::Refused, &why))
            }
            Verdict::Ask => Judged::Event(Event::QuestionAsked(QuestionAsked {
                question: QuestionId::new(now.fresh),
                key: call.key.clone(),
                tool: call.tool.clone(),
                action,
                class,
                rule: judgement.rule,
            })),
        }
    }

    fn answered(
        &self,
        current: &Current,
        calls: &[Call],
        question: QuestionId,
        answer: policy::Answer,
        now: &Now,
    ) -> Vec<Event> {
        let asked = calls.iter().find_map(|call| match &call.status {
            Status::Asked { question: asked, action, class } if *asked == question => Some((call, action, *class)),
            _ => None,
        });
        let Some((call, action, class)) = asked else { return Vec::new() };
        let said = Event::QuestionAnswered(QuestionAnswered { question, answer: answer.clone() });
        if answer.allow {
            let intent = intend(call, action.clone(), class, Approval::Question(question));
            return vec![said, intent];
        }
        let refusal = told(call.key.clone(), Ending::Refused, &refusal_words(&answer));
        let mut events = vec![said];
        events.extend(self.tools_done(current, calls, vec![refusal], Ahead::default(), now));
        events
    }

    /// The results, and what follows once every call has one. `ahead` is what the events before these add to the
    /// history.
    fn tools_done(
        &self,
        current: &Current,
        calls: &[Call],
        done: Vec<ToolDone>,
        mut ahead: Ahead,
        now: &Now,
    ) -> Vec<Event> {
        let is_done = |call: &Call| call.is_done() || done.iter().any(|done| done.key == call.key);
        if !calls.iter().all(is_done) {
            return done.into_iter().map(Event::ToolDone).collect();
        }
        let structured = calls.iter().find(|call| call.tool == STRUCTURED_OUTPUT && ran_well(call, &done));
        let over = if current.interrupted.is_some() {
            Some(ended(current, End::Interrupted, None))
        } else if let Some(call) = structured {
            Some(ended(current, End::Answered, Some(call.input.clone())))
        } else if current.repeats >= REPEATS_MAX {
            Some(ended(current, End::Looping, None))
        } else {
            None
        };
        if let Some(over) = over {
            return finish_with(done, over);
        }
        let earlier = calls.iter().filter_map(|call| match &call.status {
            Status::Done { content, .. } => Some(content),
            _ => None,
        });
        let contents = earlier.chain(done.iter().map(|done| &done.content));
        let results: Vec<Part> = contents
            .map(|content| Part::ToolResult { id: String::new(), content: content.clone(), is_error: false })
            .collect();
        ahead.add(&results);
        let next = self.next_call(current, ahead, now);
        done.into_iter().map(Event::ToolDone).chain(next).collect()
    }

    fn interrupt(&self, current: &Current, phase: &Phase, by: String, now: &Now) -> Vec<Event> {
        let mut events = vec![Event::Interrupted(Interrupted { by: by.clone() })];
        let stopped = Current { interrupted: Some(by), ..current.clone() };
        match phase {
            Phase::Idle | Phase::Calling(_) => {}
            Phase::Ready | Phase::Waiting(..) => events.push(Event::TurnEnded(ended(&stopped, End::Interrupted, None))),
            Phase::Working(calls) => {
                let mut done = Vec::new();
                close_idle(calls, &mut done);
                events.extend(self.tools_done(&stopped, calls, done, Ahead::default(), now));
            }
        }
        events
    }

    /// The process that ran this is gone. Nothing that finished is done again; what did not finish is reopened.
    fn recover(&self, current: &Current, phase: &Phase, now: &Now) -> Vec<Event> {
        let interrupted = current.interrupted.is_some();
        match phase {
            Phase::Idle | Phase::Waiting(..) => Vec::new(),
            Phase::Ready if interrupted => vec![Event::TurnEnded(ended(current, End::Interrupted, None))],
            Phase::Ready => self.next_call(current, Ahead::default(), now),
            Phase::Calling(calling) => {
                let lost = LlmEnded { call: calling.intent.call, outcome: Outcome::Lost, ms: 0 };
                let next = if interrupted {
                    Event::TurnEnded(ended(current, End::Interrupted, None))
                } else {
                    again(calling, calling.intent.request.window, calling.intent.fallback)
                };
                vec![Event::LlmEnded(lost), next]
            }
            Phase::Working(calls) => {
                let mut done = Vec::new();
                for call in calls {
                    if let Status::Intended { class, .. } = &call.status
                        && (interrupted || recovery::reopen(*class) == Reopen::Unknown)
                    {
                        done.push(told(call.key.clone(), Ending::Unknown, TOLD_UNKNOWN));
                    }
                }
                if interrupted {
                    close_idle(calls, &mut done);
                }
                if done.is_empty() { Vec::new() } else { self.tools_done(current, calls, done, Ahead::default(), now) }
            }
        }
    }
}

/// What events earlier in the same decision add to the history.
#[derive(Default)]
struct Ahead(Vec<context::Weight>);

impl Ahead {
    fn of(parts: &[Part], starts_turn: bool) -> Self {
        let mut ahead = Self::default();
        if !parts.is_empty() {
            ahead.add(parts);
        }
        if let Some(weight) = ahead.0.last_mut() {
            weight.starts_turn = starts_turn;
        }
        ahead
    }

    fn add(&mut self, parts: &[Part]) {
        self.0.push(context::Weight::of(&crate::chat::Message::user(parts.to_vec()), false));
    }
}

enum Judged {
    Event(Event),
    Refused(ToolDone),
}

fn request(frame: Frame, window: Window, upto: usize) -> RequestRef {
    RequestRef { instructions: frame.instructions, tools: frame.tools, settings: frame.settings, window, upto }
}

/// The same call once more: same place in the history, next attempt.
fn again(calling: &Calling, window: Window, fallback: bool) -> Event {
    let mut intent = calling.intent.clone();
    intent.attempt += 1;
    intent.fallback = fallback;
    intent.request.window = window;
    Event::LlmIntent(intent)
}

fn intend(call: &Call, action: Action, class: Class, approval: Approval) -> Event {
    let input = Hash::of(call.input.to_string());
    Event::ToolIntent(ToolIntent { key: call.key.clone(), tool: call.tool.clone(), input, class, approval, action })
}

fn told(key: String, ending: Ending, words: &str) -> ToolDone {
    ToolDone { key, ending, content: vec![Part::text(words)], is_error: true, ms: 0 }
}

fn ended(current: &Current, end: End, structured: Option<serde_json::Value>) -> TurnEnded {
    TurnEnded { turn: current.turn, end, text: current.text.clone(), structured }
}

fn finish_with(done: Vec<ToolDone>, over: TurnEnded) -> Vec<Event> {
    done.into_iter().map(Event::ToolDone).chain([Event::TurnEnded(over)]).collect()
}

/// Gives every call without a result one, so that no tool use is left dangling.
fn close(calls: &[Call], done: &mut Vec<ToolDone>, ending: Ending, words: &str) {
    for call in calls {
        if !call.is_done() && !done.iter().any(|done| done.key == call.key) {
            done.push(told(call.key.clone(), ending, words));
        }
    }
}

/// The same for calls that do not run at the moment; those that run end by themselves when they are cancelled.
fn close_idle(calls: &[Call], done: &mut Vec<ToolDone>) {
    for call in calls {
        if matches!(call.status, Status::Open | Status::Asked { .. }) && !done.iter().any(|done| done.key == call.key) {
            done.push(told(call.key.clone(), Ending::Interrupted, TOLD_INTERRUPTED));
        }
    }
}

fn ran_well(call: &Call, done: &[ToolDone]) -> bool {
    match &call.status {
        Status::Done { is_error, ran, .. } => *ran && !is_error,
        _ => done.iter().any(|done| done.key == call.key && done.ending == Ending::Ran && !done.is_error),
    }
}

/// Never "the user refused" when nobody was asked.
fn refusal_words(answer: &policy::Answer) -> String {
    let comment = if answer.comment.is_empty() { String::new() } else { format!(" They say: {}", answer.comment) };
    match &answer.by {
        By::Person(_) => format!("The user said no.{comment}"),
        By::Rule(rule) => format!("Not allowed by {rule}; nobody was asked."),
        By::Nobody(why) => format!("Not run: this needs the user's yes, and nobody could be asked ({why})."),
    }
}
