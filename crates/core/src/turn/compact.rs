//! Making room: when what is old is summed up, by which call, and what comes of it.
//!
//! A call for a summary is a call like any other (it is reserved, retried, lost and paid in the same way) except that its
//! answer is not a message: it becomes the head of the window. If it cannot be had, the turn goes on in the old way.

use super::decide::{Ahead, ended};
use super::{Calling, Current, Now, Turn};
use crate::chat::Answer;
use crate::context::summary::{self, Compacted, CompactionAsked, CompactionFailed, Summary, Uncompacted, Why};
use crate::context::{self, Weight};
use crate::event::{End, Event, LlmIntent, RequestRef};
use crate::id::TurnId;
use crate::ledger::Grant;
use crate::limits::{SUMMARY_TOKENS_MAX, WINDOW_HIGH_PERCENT};
use crate::team::Model;

const EMPTY: &str = "the summary was empty";
const SPENT: &str = "the budget is used up";
/// How a request for a summary ends.
const ASK: &str = "\n\n(That was the conversation. Write the summary now.)";

impl Turn {
    /// Bytes of what stands at the head of the window.
    pub(super) fn head_bytes(&self) -> usize {
        self.compactions.last().map_or(0, |compacted| Weight::of(&compacted.head(), false).full)
    }

    /// The call that has to come before the next one, if the window is too full for that.
    pub(super) fn make_room(&self, current: &Current, weights: &[Weight], room: usize, now: &Now) -> Option<LlmIntent> {
        let at = self.settings.as_ref()?.compaction.at_percent;
        if at == 0 || current.unsummarised {
            return None;
        }
        let percent = match current.rounds {
            // Somebody wants it as it was: it is only summed up again where it would be cut otherwise.
            _ if self.restored => 100,
            0 => at,
            // Within a turn what it is about is still at work: it is left alone until there is no other way.
            _ => at.max(WINDOW_HIGH_PERCENT),
        };
        if (context::weigh(weights, self.window) as u64) < room as u64 * percent / 100 {
            return None;
        }
        let before = summary::boundary(&self.history, weights, self.window, room)?;
        self.sum_up(Summary { before, why: Why::Full, keep: String::new() }, 0, now)
    }

    /// The same after the provider has said that the request is too long.
    pub(super) fn make_room_for(
        &self,
        current: &Current,
        calling: &Calling,
        freed_nano: u64,
        now: &Now,
    ) -> Option<LlmIntent> {
        let settings = self.settings.as_ref()?;
        let plain = calling.intent.summary.is_none() && !calling.intent.hand_back;
        if settings.compaction.at_percent == 0 || current.unsummarised || !plain {
            return None;
        }
        // Whatever we thought its size was, it is more: half of it is the room there is.
        let room = context::weigh(&self.weights, self.window) / 2;
        let before = summary::boundary(&self.history, &self.weights, self.window, room)?;
        self.sum_up(Summary { before, why: Why::TooLong, keep: String::new() }, freed_nano, now)
    }

    /// Somebody wants everything so far to be summed up.
    pub(super) fn asked_to_compact(&self, turn: TurnId, keep: String, now: &Now) -> Vec<Event> {
        let before = self.history.len();
        if self.settings.is_none() || before <= self.window.from {
            return Vec::new();
        }
        let asked = Event::CompactionAsked(CompactionAsked { turn, keep: keep.clone() });
        let then = match self.sum_up(Summary { before, why: Why::Asked, keep }, 0, now) {
            Some(intent) => Event::LlmIntent(intent),
            None => Event::TurnEnded(ended(&Current::new(turn, None), End::Budget, None)),
        };
        vec![asked, then]
    }

    /// What takes the last compaction back; nothing if there is none, or while a turn runs.
    pub fn uncompact(&self) -> Option<Event> {
        let last = self.compactions.last().filter(|_| self.current.is_none())?;
        Some(Event::Uncompacted(Uncompacted { before: last.before }))
    }

    /// The call that sums up; nothing if there is no money for it.
    pub(super) fn sum_up(&self, about: Summary, freed_nano: u64, now: &Now) -> Option<LlmIntent> {
        let model = self.summariser()?;
        let bytes = self.asked_for(&about, &model).len() + now.compact.bytes;
        let input_tokens = context::tokens(bytes, self.bytes_per_kilotoken);
        let (max_tokens, reserved_nano) = match self.grant(&model, input_tokens, freed_nano, now.left) {
            Grant::Call { max_tokens, nano } => (max_tokens, nano),
            // The rest is for whoever has to hand back what there is.
            Grant::HandBack { .. } | Grant::Exhausted => return None,
        };
        let super::Frame { instructions, tools, settings, .. } = now.compact;
        Some(LlmIntent {
            call: self.calls_made + 1,
            attempt: 1,
            request: RequestRef { instructions, tools, settings, window: self.window, upto: about.before },
            model,
            fallback: false,
            max_tokens,
            reserved_nano,
            bytes,
            hand_back: false,
            summary: Some(about),
        })
    }

    /// The same call once more.
    pub(super) fn sum_up_again(
        &self,
        current: &Current,
        calling: &Calling,
        about: &Summary,
        freed_nano: u64,
        now: &Now,
    ) -> Vec<Event> {
        let Some(intent) = self.sum_up(about.clone(), freed_nano, now) else {
            return self.not_summed_up(current, about, SPENT.to_owned(), now);
        };
        let LlmIntent { call, attempt, fallback, .. } = calling.intent;
        vec![Event::LlmIntent(LlmIntent { call, attempt: attempt + 1, fallback, ..intent })]
    }

    /// Who sums up: somebody cheap, who does not think about it for long.
    fn summariser(&self) -> Option<Model> {
        let settings = self.settings.as_ref()?;
        let model = settings.compaction.model.as_ref().unwrap_or(&settings.model);
        let max_tokens = model.max_tokens.min(SUMMARY_TOKENS_MAX);
        Some(Model { max_tokens, thinking_tokens: 0, ..model.clone() })
    }

    /// What a call for a summary says, besides its instructions.
    pub fn asked_for(&self, about: &Summary, model: &Model) -> String {
        let messages = self.history.get(self.window.from..about.before).unwrap_or_default();
        let tokens = model.context_tokens.saturating_sub(u64::from(model.max_tokens));
        // Half of the estimate: what is measured in bytes may be twice as many tokens.
        let room = usize::try_from(tokens.saturating_mul(self.bytes_per_kilotoken) / 2_000).unwrap_or(usize::MAX);
        let head = self.head();
        let mut text = summary::transcript(head.as_ref(), messages, room);
        text.push_str(ASK);
        if !about.keep.is_empty() {
            text.push_str(&format!("\n\nKeep above all, in the user's words: {}", about.keep));
        }
        text
    }

    /// What follows from a summary.
    pub(super) fn summed_up(&self, current: &Current, about: &Summary, answer: &Answer, now: &Now) -> Vec<Event> {
        let text = answer.message.text();
        if text.trim().is_empty() {
            return self.not_summed_up(current, about, EMPTY.to_owned(), now);
        }
        let compacted = self.compacted(about, text, now);
        let ratio = self.bytes_per_kilotoken;
        let mut after = self.clone();
        let tokens =
            |turn: &Self| context::tokens(context::weigh(&turn.weights, turn.window) + turn.head_bytes(), ratio);
        let until_now = tokens(self);
        after.apply(&Event::Compacted(compacted.clone()));
        let compacted = Compacted { tokens: (until_now, tokens(&after)), ..compacted };
        let mut events = vec![Event::Compacted(compacted)];
        events.extend(after.go_on(current, now));
        events
    }

    fn compacted(&self, about: &Summary, summary: String, now: &Now) -> Compacted {
        let shown = self.history.len().saturating_sub(self.window.from) + usize::from(!self.compactions.is_empty());
        Compacted {
            before: about.before,
            window: self.window,
            why: about.why,
            summary,
            facts: now.facts.clone(),
            messages: (shown, self.history.len().saturating_sub(about.before) + 1),
            tokens: (0, 0),
        }
    }

    /// There is no summary: the turn goes on with less than it could have.
    pub(super) fn not_summed_up(&self, current: &Current, about: &Summary, detail: String, now: &Now) -> Vec<Event> {
        let mut after = self.clone();
        let failed = Event::CompactionFailed(CompactionFailed { detail });
        after.apply(&failed);
        if about.why == Why::TooLong {
            let half = context::weigh(&after.weights, after.window) / 2;
            after.window = context::shrink(&after.weights, after.window, half);
        }
        let current = Current { unsummarised: true, ..current.clone() };
        let mut events = vec![failed];
        events.extend(after.go_on(&current, now));
        events
    }

    /// With the turn, or, if it was about nothing else, to its end.
    pub(super) fn go_on(&self, current: &Current, now: &Now) -> Vec<Event> {
        let over = |end| vec![Event::TurnEnded(ended(current, end, None))];
        match (&current.interrupted, current.compacting) {
            (Some(_), _) => over(End::Interrupted),
            (None, true) => over(End::Answered),
            (None, false) => self.next_call(current, Ahead::default(), now),
        }
    }
}
