//! Folds events in. Nothing here decides: the same events always give the same state.

use std::sync::Arc;

use super::teammate::is_to_colleague;
use super::tools::{joined, misfits};
use super::{
    Identity, PendingModelCall, Phase, RunningTurn, StopRecord, ToolCall, ToolCallStatus, Turn, TurnStop, call_key,
};
use crate::chat::{Message, Part, write};
use crate::event::{
    AgentStarted, Configured, Event, Interrupted, LlmEnded, LlmIntent, LlmOutcome, QuestionAsked, ToolDone, ToolIntent,
    ToolOutcome,
};
use crate::hash::Hash;
use crate::id::QuestionId;
use crate::limits::REPEATS_WARNED;
use crate::policy::{Grant, GrantScope, RememberedRule, Repeatability};
use crate::teammate::report::{self, TurnTrigger};

impl Turn {
    /// Folds one event of the agent's stream in.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AgentStarted(started) => self.start(started),
            Event::Configured(configured) => self.reconfigure(configured),
            Event::Forked(forked) => self.inherit(&forked.past),
            Event::TurnStarted(started) => {
                self.stop = StopRecord::default();
                let current = RunningTurn::new(started.turn, started.assignment.clone());
                self.current = Some(RunningTurn { quiet: started.quiet, envelope: Some(started.envelope), ..current });
                self.team.echoes = if started.quiet { self.team.echoes.saturating_add(1) } else { 0 };
                self.team.hops = started.hops;
                self.team.owes |= self.trigger() == Some(TurnTrigger::Lead);
                self.phase = Phase::Ready;
                self.conversation.push(Message::user(started.model_input()), true);
            }
            Event::CompactionAsked(_) | Event::Compacted(_) | Event::CompactionFailed(_) | Event::Uncompacted(_) => {
                self.apply_compaction(event)
            }
            Event::LlmIntent(intent) => self.intend(intent),
            Event::LlmEnded(ended) => self.end_call(ended),
            Event::Nudged(nudged) => {
                if let Some(current) = &mut self.current {
                    current.counts.nudges += 1;
                }
                self.conversation.push(Message::user(vec![Part::text(nudged.text.clone())]), false);
            }
            Event::Steered(steered) => {
                if let Some(current) = &mut self.current {
                    // After a new message the same call is no repetition.
                    (current.repeats.count, current.repeats.calls) = (0, None);
                    current.is_steered |= !steered.envelopes.is_empty();
                }
                self.conversation.push(Message::user(steered.input.clone()), false);
            }
            Event::ToolIntent(intent) => self.begin_tool(intent),
            Event::ToolDone(done) => self.end_tool(done),
            Event::QuestionAsked(asked) => self.ask(asked),
            Event::QuestionAnswered(answered) if answered.answer.allow && answered.answer.always => {
                let granted = self.granted(answered.question, answered.answer.until);
                self.grants.extend(granted);
            }
            Event::Interrupted(interrupted) => self.stop(interrupted),
            Event::TurnEnded(ended) => {
                // Permissions for a task end with the turn that works on it.
                self.grants.retain(|grant| grant.until != GrantScope::Task);
                // A review of a worktree says nothing about how the agent's work ended.
                if self.review_message().is_none() {
                    let waits = report::says_wait(&ended.text);
                    self.team.owes &= waits || self.current.as_ref().is_some_and(|current| current.work.wrote);
                    self.last = Some(ended.clone());
                    self.stop.halted = self.current.take().and_then(|current| current.halted(&ended.end));
                }
                self.current = None;
                self.phase = Phase::Idle;
            }
            Event::ReviewBegun(begun) => self.begin_review(begun),
            // All other events are about the team, or belong to other streams.
            _ => self.apply_team(event),
        }
    }

    fn start(&mut self, started: &AgentStarted) {
        self.identity = Some(Identity {
            agent: started.agent,
            session: started.session,
            definition: started.definition.clone(),
            teammate: started.assignment.clone().filter(|given| given.life.teammate().is_some()),
        });
        if let Some(settings) = &started.settings {
            self.ledger.cap_nano = settings.budget_nano;
            self.settings = Some(Arc::clone(settings));
        }
    }

    fn stop(&mut self, interrupted: &Interrupted) {
        if let Some(held) = &interrupted.held {
            self.stop.held.get_or_insert_default().add(held);
            self.stop.known.iter_mut().for_each(|known| known.add(held));
        }
        if let Some(current) = &mut self.current {
            current.stopped = Some(TurnStop { by: interrupted.by.clone(), who: interrupted.who.clone() });
        }
    }

    fn reconfigure(&mut self, configured: &Configured) {
        self.ledger.cap_nano = configured.settings.budget_nano;
        self.settings = Some(Arc::clone(&configured.settings));
        if let (Some(identity), Some(definition)) = (&mut self.identity, &configured.definition) {
            identity.definition = Arc::clone(definition);
        }
    }

    fn apply_compaction(&mut self, event: &Event) {
        match event {
            Event::CompactionAsked(asked) => {
                self.current = Some(RunningTurn { compacting: true, ..RunningTurn::new(asked.turn, None) });
                self.phase = Phase::Ready;
            }
            Event::Compacted(compacted) => {
                self.conversation.compact(compacted);
            }
            Event::CompactionFailed(_) => {
                if let Some(current) = &mut self.current {
                    current.unsummarised = true;
                }
                self.phase = Phase::Ready;
            }
            Event::Uncompacted(_) => {
                self.conversation.restore();
            }
            _ => {}
        }
    }

    fn intend(&mut self, intent: &LlmIntent) {
        let (failed, parked) = match &self.phase {
            Phase::Calling(calling) | Phase::Waiting(calling, _) if calling.intent.call == intent.call => {
                (calling.failed, calling.parked)
            }
            _ => (0, false),
        };
        if let Some(current) = &mut self.current {
            current.fallback = intent.fallback;
            if intent.attempt == 1 && intent.summary.is_none() {
                current.counts.rounds += 1;
            }
        }
        self.calls_made = intent.call;
        if intent.summary.is_none() {
            self.conversation.window = intent.request.window;
        }
        self.ledger.reserve(intent.reserved_nano);
        self.phase = Phase::Calling(PendingModelCall { intent: intent.clone(), failed, parked });
    }

    fn end_call(&mut self, ended: &LlmEnded) {
        let Phase::Calling(mut calling) = std::mem::replace(&mut self.phase, Phase::Ready) else { return };
        self.ledger.settle(calling.intent.reserved_nano, ended.bill(&calling.intent));
        if let Some(current) = &mut self.current {
            current.charge(&calling.intent, ended);
        }
        match &ended.outcome {
            LlmOutcome::Done(answer) => {
                if calling.intent.summary.is_some() {
                    return;
                }
                self.conversation.learn_ratio(calling.intent.bytes, answer.usage.input_total());
                let calls = calls_of(calling.intent.call, &answer.message);
                if let Some(current) = &mut self.current {
                    current.hear(&answer.message, &calls);
                }
                if !answer.message.parts.is_empty() {
                    self.conversation.push(answer.message.clone(), false);
                }
                if !calls.is_empty() {
                    self.phase = Phase::Working(calls);
                }
            }
            LlmOutcome::Failed { retry_at_ms, parked, .. } => {
                calling.failed += 1;
                calling.parked = *parked;
                self.phase = match retry_at_ms {
                    Some(at_ms) => Phase::Waiting(calling, *at_ms),
                    None => Phase::Calling(calling),
                };
            }
            LlmOutcome::Cancelled { partial, .. } => {
                if calling.intent.summary.is_some() {
                    return;
                }
                if !partial.trim().is_empty() {
                    self.conversation.push(Message::assistant(vec![Part::text(partial.clone())]), false);
                }
                if let Some(current) = &mut self.current {
                    current.text = partial.clone();
                }
            }
            LlmOutcome::Lost => self.phase = Phase::Calling(calling),
        }
    }

    fn begin_tool(&mut self, intent: &ToolIntent) {
        let ToolIntent { key, action, class, attended, words, .. } = intent;
        if let Some(current) = &mut self.current {
            current.work.acted |= *class != Repeatability::Pure || !action.kind.is_read_only();
        }
        let (action, words) = (action.clone(), words.clone());
        self.set_status(key, ToolCallStatus::Intended { action, class: *class, attended: *attended, words });
    }

    /// Asks about a call. The comment of an earlier approval stays with it.
    fn ask(&mut self, asked: &QuestionAsked) {
        let QuestionAsked { question, key, action, class, memory, .. } = asked;
        let (action, memory, words) = (action.clone(), memory.clone(), self.words(key));
        self.set_status(key, ToolCallStatus::Asked { question: *question, action, class: *class, memory, words });
    }

    /// The comments that came with approvals of a call of the last answer.
    fn words(&self, key: &str) -> String {
        let Phase::Working(calls) = &self.phase else { return String::new() };
        calls.iter().find(|call| call.key == key).map_or_else(String::new, |call| call.comment().to_owned())
    }

    fn end_tool(&mut self, done: &ToolDone) {
        self.note_outcome(done);
        let (content, is_error) = (done.content.clone(), done.is_error);
        let words = joined(&self.words(&done.key), &done.words);
        self.set_status(
            &done.key,
            ToolCallStatus::Done { content, is_error, ran: done.ending == ToolOutcome::Ran, words },
        );
        let Phase::Working(calls) = &self.phase else { return };
        if !calls.iter().all(ToolCall::is_done) {
            return;
        }
        let Phase::Working(calls) = std::mem::replace(&mut self.phase, Phase::Ready) else { return };
        if self.review_message().is_some() {
            // No model answer has made this call, so no model is told its result.
            return;
        }
        if let Some(current) = self.current.as_mut().filter(|_| misfits(&calls, &[])) {
            current.counts.misfits += 1;
        }
        if let Some(current) = &mut self.current {
            current.compare(&calls);
        }
        let said: Vec<Part> = calls.iter().filter_map(ToolCall::said_along).collect();
        let mut parts: Vec<Part> = calls.into_iter().map(ToolCall::into_result).chain(said).collect();
        if let Some(current) = &self.current
            && current.repeats.count >= REPEATS_WARNED
        {
            parts.push(Part::text(format!(
                "(You have made exactly this call {} times in a row. Do something else, or answer with what you have.)",
                current.repeats.count
            )));
        }
        self.conversation.push(Message::user(parts), false);
    }

    /// Records the targets of calls with an unknown outcome, until a call to the same target succeeds.
    fn note_outcome(&mut self, done: &ToolDone) {
        let Phase::Working(calls) = &self.phase else { return };
        let (Some(call), Some(current)) = (calls.iter().find(|call| call.key == done.key), &mut self.current) else {
            return;
        };
        let target = match &call.status {
            ToolCallStatus::Intended { action, .. } => &action.target,
            _ => &call.tool,
        };
        let has_worked = done.ending == ToolOutcome::Ran && !done.is_error;
        current.work.wrote |= has_worked && is_to_colleague(call);
        if let ToolCallStatus::Intended { action, .. } = &call.status
            && has_worked
        {
            current.work.did.add(action);
        }
        if !has_worked {
            current.work.did.add_failed();
        }
        match done.ending {
            ToolOutcome::Unknown if !current.work.unknown.contains(target) => current.work.unknown.push(target.clone()),
            ToolOutcome::Ran if !done.is_error => current.work.unknown.retain(|known| known != target),
            _ => {}
        }
    }

    fn set_status(&mut self, key: &str, status: ToolCallStatus) {
        if let Phase::Working(calls) = &mut self.phase
            && let Some(call) = calls.iter_mut().find(|call| call.key == key)
        {
            call.status = status;
        }
    }

    /// The permissions that "always allow" as an answer to a question adds.
    pub(super) fn granted(&self, asked: QuestionId, until: GrantScope) -> Vec<Grant> {
        let Phase::Working(calls) = &self.phase else { return Vec::new() };
        let found = calls.iter().find_map(|call| match &call.status {
            ToolCallStatus::Asked { question, action, memory, .. } if *question == asked => Some((action.kind, memory)),
            _ => None,
        });
        let root = self.settings.as_ref().map_or("", |settings| &settings.permissions.root);
        match found {
            _ if until == GrantScope::Once => Vec::new(),
            Some((kind, RememberedRule::Kind)) => vec![Grant::of_kind(kind)],
            Some((_, memory)) => memory.rules().iter().map(|rule| Grant::rule(rule, until, root)).collect(),
            None => Vec::new(),
        }
    }
}

impl ToolCall {
    pub(super) fn is_done(&self) -> bool {
        matches!(self.status, ToolCallStatus::Done { .. })
    }

    fn into_result(self) -> Part {
        let (mut content, is_error) = match self.status {
            ToolCallStatus::Done { content, is_error, .. } => (content, is_error),
            _ => (Vec::new(), true),
        };
        if content.is_empty() {
            content.push(Part::text("(no output)"));
        }
        Part::ToolResult { id: self.id, content, is_error }
    }
}

pub(super) fn calls_of(call: u32, message: &Message) -> Vec<ToolCall> {
    let uses = message.tool_uses().enumerate();
    uses.map(|(index, (id, name, input))| ToolCall {
        key: call_key(call, index),
        id: id.to_owned(),
        tool: name.to_owned(),
        input: Arc::clone(input),
        status: ToolCallStatus::Open,
    })
    .collect()
}

/// Hash of the calls of an answer, without the provider's ids; `None` without calls.
pub(super) fn fingerprint(calls: &[ToolCall]) -> Option<Hash> {
    if calls.is_empty() {
        return None;
    }
    let pieces: Vec<Vec<u8>> = calls
        .iter()
        .map(|call| {
            let mut piece = call.tool.clone().into_bytes();
            piece.push(b' ');
            write(&mut piece, &call.input);
            piece
        })
        .collect();
    Some(Hash::of_fields(&pieces.iter().map(Vec::as_slice).collect::<Vec<_>>()))
}
