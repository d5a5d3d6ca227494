//! Compaction: when old messages are summarized, by which call, and what follows.
//!
//! A call for a summary is a model call like any other (reserved, retried, lost and charged in the same way), but its
//! answer is not a message: it becomes the head of the window. Without a summary the turn continues with a cut window.

use super::decide::{PendingInput, ended};
use super::{PendingModelCall, RunningTurn, Turn, TurnEnv};
use crate::agent::Model;
use crate::chat::Answer;
use crate::context::summary::{
    self, Compacted, CompactionAsked, CompactionFailed, CompactionReason, Summary, Uncompacted,
};
use crate::context::{self, RequestSize};
use crate::event::{Event, LlmIntent, RequestRef, TurnOutcome};
use crate::id::TurnId;
use crate::ledger::CallGrant;
use crate::limits::{SUMMARY_TOKENS_MAX, WINDOW_HIGH_PERCENT};

const EMPTY: &str = "the summary was empty";
const SPENT: &str = "the budget is used up";
/// The end of a request for a summary.
const ASK: &str = "\n\n(That was the conversation. Write the summary now.)";

impl Turn {
    /// The call for a summary that has to come before the next call, if the window is too full.
    pub(super) fn make_room(
        &self,
        current: &RunningTurn,
        weights: &[RequestSize],
        room: usize,
        now: &TurnEnv,
    ) -> Option<LlmIntent> {
        let at = self.settings.as_ref()?.compaction.at_percent;
        if at == 0 || current.unsummarised {
            return None;
        }
        let percent = match current.counts.rounds {
            // The user undid a compaction: the conversation is only compacted again if it would be cut otherwise.
            _ if self.conversation.restored => 100,
            0 => at,
            // Within a turn its earlier messages are still in use: they are compacted only before they would be cut.
            _ => at.max(WINDOW_HIGH_PERCENT),
        };
        if (context::window_bytes(weights, self.conversation.window) as u64) < room as u64 * percent / 100 {
            return None;
        }
        let before = summary::boundary(&self.conversation.history, weights, self.conversation.window, room)?;
        self.sum_up(Summary { before, why: CompactionReason::Full, keep: String::new() }, 0, now)
    }

    /// Like `make_room`, after the provider has reported that the request is too long.
    pub(super) fn make_room_for(
        &self,
        current: &RunningTurn,
        calling: &PendingModelCall,
        freed_nano: u64,
        now: &TurnEnv,
    ) -> Option<LlmIntent> {
        let settings = self.settings.as_ref()?;
        let plain = calling.intent.summary.is_none() && !calling.intent.hand_back;
        if settings.compaction.at_percent == 0 || current.unsummarised || !plain {
            return None;
        }
        // The size estimate was too low, so only half of it is taken as room.
        let room = context::window_bytes(&self.conversation.weights, self.conversation.window) / 2;
        let before =
            summary::boundary(&self.conversation.history, &self.conversation.weights, self.conversation.window, room)?;
        self.sum_up(Summary { before, why: CompactionReason::TooLong, keep: String::new() }, freed_nano, now)
    }

    /// Compacts the whole conversation at the user's request.
    pub(super) fn asked_to_compact(&self, turn: TurnId, keep: String, now: &TurnEnv) -> Vec<Event> {
        let before = self.conversation.history.len();
        if self.settings.is_none() || before <= self.conversation.window.from {
            return Vec::new();
        }
        let asked = Event::CompactionAsked(CompactionAsked { turn, keep: keep.clone() });
        let then = match self.sum_up(Summary { before, why: CompactionReason::Asked, keep }, 0, now) {
            Some(intent) => Event::LlmIntent(intent),
            None => Event::TurnEnded(ended(&RunningTurn::new(turn, None), TurnOutcome::Budget, None)),
        };
        vec![asked, then]
    }

    /// The event that undoes the last compaction; `None` if there is none, or while a turn runs.
    pub fn uncompact(&self) -> Option<Event> {
        let last = self.conversation.compactions.last().filter(|_| self.current.is_none())?;
        Some(Event::Uncompacted(Uncompacted { before: last.before }))
    }

    /// The call for a summary; `None` if the budget does not cover it.
    pub(super) fn sum_up(&self, about: Summary, freed_nano: u64, now: &TurnEnv) -> Option<LlmIntent> {
        let model = self.summariser()?;
        let bytes = self.asked_for(&about, &model).len() + now.compact.bytes;
        let input_tokens = self.conversation.tokens(bytes);
        let (max_tokens, reserved_nano) = match self.grant(&model, input_tokens, freed_nano, now.left) {
            CallGrant::Call { max_tokens, nano } => (max_tokens, nano),
            // The rest of the budget is kept for the call that hands back a result.
            CallGrant::HandBack { .. } | CallGrant::Exhausted => return None,
        };
        let super::PromptRef { instructions, tools, settings, .. } = now.compact;
        Some(LlmIntent {
            call: self.calls_made + 1,
            attempt: 1,
            request: RequestRef { instructions, tools, settings, window: self.conversation.window, upto: about.before },
            model,
            fallback: false,
            max_tokens,
            reserved_nano,
            bytes,
            hand_back: false,
            summary: Some(about),
        })
    }

    /// Repeats a call for a summary.
    pub(super) fn sum_up_again(
        &self,
        current: &RunningTurn,
        calling: &PendingModelCall,
        about: &Summary,
        freed_nano: u64,
        now: &TurnEnv,
    ) -> Vec<Event> {
        let Some(intent) = self.sum_up(about.clone(), freed_nano, now) else {
            return self.not_summed_up(current, about, SPENT.to_owned(), now);
        };
        let LlmIntent { call, attempt, fallback, .. } = calling.intent;
        vec![Event::LlmIntent(LlmIntent { call, attempt: attempt + 1, fallback, ..intent })]
    }

    /// The model that summarizes: without thinking, and with a short answer.
    fn summariser(&self) -> Option<Model> {
        let settings = self.settings.as_ref()?;
        let model = settings.compaction.model.as_ref().unwrap_or(&settings.model);
        let max_tokens = model.max_tokens.min(SUMMARY_TOKENS_MAX);
        Some(Model { max_tokens, thinking_tokens: 0, ..model.clone() })
    }

    /// The text of a call for a summary, besides its instructions.
    pub fn asked_for(&self, about: &Summary, model: &Model) -> String {
        let messages = self.conversation.history.get(self.conversation.window.from..about.before).unwrap_or_default();
        let tokens = model.context_tokens.saturating_sub(u64::from(model.max_tokens));
        // Half of the estimate, because the tokens per byte may be twice as many.
        let room =
            usize::try_from(tokens.saturating_mul(self.conversation.bytes_per_kilotoken) / 2_000).unwrap_or(usize::MAX);
        let head = self.summary_message();
        let mut text = summary::transcript(head.as_ref(), messages, room);
        text.push_str(ASK);
        if !about.keep.is_empty() {
            text.push_str(&format!("\n\nKeep above all, in the user's words: {}", about.keep));
        }
        text
    }

    /// Events that follow from a summary.
    pub(super) fn summed_up(
        &self,
        current: &RunningTurn,
        about: &Summary,
        answer: &Answer,
        now: &TurnEnv,
    ) -> Vec<Event> {
        let text = answer.message.text();
        if text.trim().is_empty() {
            return self.not_summed_up(current, about, EMPTY.to_owned(), now);
        }
        let compacted = self.compacted(about, text, now);
        let mut after = self.clone();
        after.apply(&Event::Compacted(compacted.clone()));
        let compacted = Compacted { tokens: (self.window_tokens(), after.window_tokens()), ..compacted };
        let mut events = vec![Event::Compacted(compacted)];
        events.extend(after.go_on(current, now));
        events
    }

    fn compacted(&self, about: &Summary, summary: String, now: &TurnEnv) -> Compacted {
        let shown = self.conversation.history.len().saturating_sub(self.conversation.window.from)
            + usize::from(!self.conversation.compactions.is_empty());
        Compacted {
            before: about.before,
            window: self.conversation.window,
            why: about.why,
            summary,
            facts: now.facts.clone(),
            messages: (shown, self.conversation.history.len().saturating_sub(about.before) + 1),
            tokens: (0, 0),
        }
    }

    /// There is no summary: the turn continues with a cut window.
    pub(super) fn not_summed_up(
        &self,
        current: &RunningTurn,
        about: &Summary,
        detail: String,
        now: &TurnEnv,
    ) -> Vec<Event> {
        let mut after = self.clone();
        let failed = Event::CompactionFailed(CompactionFailed { detail });
        after.apply(&failed);
        if about.why == CompactionReason::TooLong {
            let half = context::window_bytes(&after.conversation.weights, after.conversation.window) / 2;
            after.conversation.window = context::shrink(&after.conversation.weights, after.conversation.window, half);
        }
        let current = RunningTurn { unsummarised: true, ..current.clone() };
        let mut events = vec![failed];
        events.extend(after.go_on(&current, now));
        events
    }

    /// Continues the turn, or ends it if it was only about the compaction.
    pub(super) fn go_on(&self, current: &RunningTurn, now: &TurnEnv) -> Vec<Event> {
        let over = |end| vec![Event::TurnEnded(ended(current, end, None))];
        match (&current.stopped, current.compacting) {
            (Some(_), _) => over(TurnOutcome::Interrupted),
            (None, true) => over(TurnOutcome::Answered),
            (None, false) => self.next_call(current, PendingInput::default(), now),
        }
    }
}
