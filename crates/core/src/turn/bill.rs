//! The charge of a call: by the usage that the provider reported, else by an estimate.

use super::{PendingModelCall, Turn};
use crate::chat::{PartialAnswer, Usage};
use crate::context::RequestSize;
use crate::event::{LlmEnded, LlmIntent, LlmOutcome};
use crate::ledger::Bill;
use crate::limits::LOST_OUTPUT_TOKENS;

impl LlmEnded {
    /// The charge of the call; `None` if it failed before it could cost anything.
    pub fn bill(&self, intent: &LlmIntent) -> Option<Bill> {
        let price = intent.model.price;
        match (&self.outcome, self.estimate) {
            (_, Some(usage)) => Some(Bill::estimated(usage, price)),
            (LlmOutcome::Done(answer), None) => Some(Bill::known(answer.usage, price)),
            (LlmOutcome::Cancelled { usage, .. }, None) => Some(Bill::known(*usage, price)),
            (LlmOutcome::Failed { failure, .. }, None) if !failure.may_have_cost() => None,
            // Only in older journals, which record no estimates.
            (LlmOutcome::Failed { .. } | LlmOutcome::Lost, None) => Some(Bill::reserved(intent.reserved_nano)),
        }
    }

    /// The part of the reservation that is not charged.
    pub(super) fn freed_nano(&self, intent: &LlmIntent) -> u64 {
        intent.reserved_nano.saturating_sub(self.bill(intent).map_or(0, |bill| bill.nano))
    }
}

impl Turn {
    /// The end of a call, with an estimated usage if the provider reported none.
    pub(super) fn call_ended(
        &self,
        calling: &PendingModelCall,
        outcome: LlmOutcome,
        streamed: PartialAnswer,
        ms: u64,
    ) -> LlmEnded {
        let intent = &calling.intent;
        let estimate = self.estimate(intent, &outcome, streamed);
        LlmEnded { call: intent.call, outcome, ms, summary: intent.summary.is_some(), estimate }
    }

    fn estimate(&self, intent: &LlmIntent, outcome: &LlmOutcome, streamed: PartialAnswer) -> Option<Usage> {
        let tokens = |bytes| self.conversation.tokens(bytes);
        let is_free = match outcome {
            LlmOutcome::Cancelled { .. } => !streamed.is_sent,
            LlmOutcome::Failed { failure, .. } => {
                !failure.may_have_cost() && streamed.bytes == 0 && streamed.usage == Usage::default()
            }
            LlmOutcome::Done(_) | LlmOutcome::Lost => false,
        };
        if is_free {
            return None;
        }
        let (told, output) = match outcome {
            LlmOutcome::Done(answer) if answer.usage.output > 0 => (answer.usage, 0),
            LlmOutcome::Done(answer) if answer.message.parts.is_empty() => (answer.usage, 0),
            LlmOutcome::Done(answer) => (answer.usage, tokens(RequestSize::of_parts(&answer.message.parts).full)),
            LlmOutcome::Cancelled { usage, .. } => (*usage, tokens(streamed.bytes)),
            LlmOutcome::Failed { .. } => (streamed.usage, tokens(streamed.bytes)),
            LlmOutcome::Lost => (Usage::default(), u64::from(LOST_OUTPUT_TOKENS.min(intent.max_tokens))),
        };
        let input = if told.input_total() == 0 { tokens(intent.bytes) } else { told.input };
        let usage = Usage { input, output: told.output.max(output), ..told };
        // A complete answer ends with its usage; an incomplete one has reported part of it at most.
        let is_told = usage == told && matches!(outcome, LlmOutcome::Done(_) | LlmOutcome::Cancelled { .. });
        (!is_told).then_some(usage)
    }
}
