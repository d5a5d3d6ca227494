//! The charge of a call: by the usage that the provider reported, else by an estimate.

use super::{Calling, Turn};
use crate::chat::{Streamed, Usage};
use crate::context::Weight;
use crate::event::{LlmEnded, LlmIntent, Outcome};
use crate::ledger::Bill;
use crate::limits::LOST_OUTPUT_TOKENS;

impl LlmEnded {
    /// The charge of the call; `None` if it failed before it could cost anything.
    pub fn bill(&self, intent: &LlmIntent) -> Option<Bill> {
        let price = intent.model.price;
        match (&self.outcome, self.estimate) {
            (_, Some(usage)) => Some(Bill::estimated(usage, price)),
            (Outcome::Done(answer), None) => Some(Bill::known(answer.usage, price)),
            (Outcome::Cancelled { usage, .. }, None) => Some(Bill::known(*usage, price)),
            (Outcome::Failed { failure, .. }, None) if !failure.may_have_cost() => None,
            // Only in older journals, which record no estimates.
            (Outcome::Failed { .. } | Outcome::Lost, None) => Some(Bill::reserved(intent.reserved_nano)),
        }
    }

    /// The part of the reservation that is not charged.
    pub(super) fn freed_nano(&self, intent: &LlmIntent) -> u64 {
        intent.reserved_nano.saturating_sub(self.bill(intent).map_or(0, |bill| bill.nano))
    }
}

impl Turn {
    /// The end of a call, with an estimated usage if the provider reported none.
    pub(super) fn call_ended(&self, calling: &Calling, outcome: Outcome, streamed: Streamed, ms: u64) -> LlmEnded {
        let intent = &calling.intent;
        let estimate = self.estimate(intent, &outcome, streamed);
        LlmEnded { call: intent.call, outcome, ms, summary: intent.summary.is_some(), estimate }
    }

    fn estimate(&self, intent: &LlmIntent, outcome: &Outcome, streamed: Streamed) -> Option<Usage> {
        let tokens = |bytes| self.conversation.tokens(bytes);
        let is_free = match outcome {
            Outcome::Cancelled { .. } => !streamed.is_sent,
            Outcome::Failed { failure, .. } => {
                !failure.may_have_cost() && streamed.bytes == 0 && streamed.usage == Usage::default()
            }
            Outcome::Done(_) | Outcome::Lost => false,
        };
        if is_free {
            return None;
        }
        let (told, output) = match outcome {
            Outcome::Done(answer) if answer.usage.output > 0 => (answer.usage, 0),
            Outcome::Done(answer) if answer.message.parts.is_empty() => (answer.usage, 0),
            Outcome::Done(answer) => (answer.usage, tokens(Weight::of_parts(&answer.message.parts).full)),
            Outcome::Cancelled { usage, .. } => (*usage, tokens(streamed.bytes)),
            Outcome::Failed { .. } => (streamed.usage, tokens(streamed.bytes)),
            Outcome::Lost => (Usage::default(), u64::from(LOST_OUTPUT_TOKENS.min(intent.max_tokens))),
        };
        let input = if told.input_total() == 0 { tokens(intent.bytes) } else { told.input };
        let usage = Usage { input, output: told.output.max(output), ..told };
        // A complete answer ends with its usage; an incomplete one has reported part of it at most.
        let is_told = usage == told && matches!(outcome, Outcome::Done(_) | Outcome::Cancelled { .. });
        (!is_told).then_some(usage)
    }
}
