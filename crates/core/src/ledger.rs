//! Money and tokens: reserved before a call, settled after it.
//!
//! A call that the budget cannot pay is never made. A call without reported usage (the process died, the answer broke
//! off) is charged by an estimate. Prices are nano-dollars per token, so that nothing is ever rounded away.

use serde::{Deserialize, Serialize};

use crate::chat::Usage;
use crate::limits::HAND_BACK_TOKENS;

/// Nano-dollars in a dollar.
pub const NANO: u64 = 1_000_000_000;

/// What a model's tokens cost, in nano-dollars each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    pub input: u64,
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
}

impl Price {
    /// A model that costs nothing (it runs on the user's own machine).
    pub const FREE: Self = Self { input: 0, output: 0, cache_read: 0, cache_write: 0 };

    /// What some usage costs.
    pub fn cost_of(&self, usage: Usage) -> u64 {
        usage
            .input
            .saturating_mul(self.input)
            .saturating_add(usage.output.saturating_mul(self.output))
            .saturating_add(usage.cache_read.saturating_mul(self.cache_read))
            .saturating_add(usage.cache_write.saturating_mul(self.cache_write))
    }

    /// The most that a call with this much input and output can cost.
    fn ceiling(&self, input_tokens: u64, output_tokens: u64) -> u64 {
        let input = self.input.max(self.cache_write);
        input_tokens.saturating_mul(input).saturating_add(output_tokens.saturating_mul(self.output))
    }
}

/// Nano-dollars as dollars, for display only; amounts are counted in whole nano-dollars.
#[expect(clippy::cast_precision_loss, reason = "for people; a nano-dollar is nothing")]
pub fn dollars(nano: u64) -> f64 {
    nano as f64 / NANO as f64
}

/// What some calls of one model used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Charge {
    /// The model's name.
    pub model: String,
    pub calls: u64,
    pub usage: Usage,
    /// Nano-dollars, as far as the price is known; estimates included.
    pub nano: u64,
    /// The estimated part of them, for calls without reported usage.
    #[serde(default)]
    pub unknown_nano: u64,
    /// Calls without a known price.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unpriced_calls: u64,
    /// The number of the last of these calls; 0 in journals that do not record it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last_call: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The charge of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bill {
    pub usage: Usage,
    /// Nano-dollars; nothing without a price.
    pub nano: u64,
    /// How much of them is estimated.
    pub unknown_nano: u64,
    /// Whether the model has a price.
    pub is_priced: bool,
}

impl Bill {
    /// For the usage that the provider reported.
    pub fn known(usage: Usage, price: Option<Price>) -> Self {
        let nano = price.map_or(0, |price| price.cost_of(usage));
        Self { usage, nano, unknown_nano: 0, is_priced: price.is_some() }
    }

    /// For an estimated usage.
    pub fn estimated(usage: Usage, price: Option<Price>) -> Self {
        let known = Self::known(usage, price);
        Self { unknown_nano: known.nano, ..known }
    }

    /// For the whole reservation: a call without an end in a journal that records no estimate.
    pub fn reserved(nano: u64) -> Self {
        Self { usage: Usage::default(), nano, unknown_nano: nano, is_priced: true }
    }
}

/// What other budgets, such as the plan's or the session's, leave for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemainingBudget {
    pub nano: Option<u64>,
    /// Tokens, in and out.
    pub tokens: Option<u64>,
}

/// What the next call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallGrant {
    /// Go on, writing at most this many tokens; this much is reserved.
    Call {
        /// `max_tokens` for the call, clamped to what remains.
        max_tokens: u32,
        nano: u64,
    },
    /// Only enough is left for one call without tools that hands back what there is.
    HandBack {
        /// `max_tokens` for that call.
        max_tokens: u32,
        nano: u64,
    },
    /// Nothing more can be bought.
    Exhausted,
}

/// What was spent, what is reserved, and the cap.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// The cap in nano-dollars, if the user set one.
    pub cap_nano: Option<u64>,
    pub spent_nano: u64,
    /// Reserved by calls in flight.
    pub reserved_nano: u64,
    /// Estimated cost of calls without reported usage.
    pub unknown_nano: u64,
    /// Tokens of all settled calls.
    pub usage: Usage,
    /// Settled calls whose model has no price.
    pub unpriced_calls: u64,
}

impl Ledger {
    /// Nano-dollars left under the cap.
    pub fn left_nano(&self) -> Option<u64> {
        let committed = self.spent_nano.saturating_add(self.reserved_nano).saturating_add(self.unknown_nano);
        self.cap_nano.map(|cap| cap.saturating_sub(committed))
    }

    /// Caps this ledger at what the other budgets leave.
    #[must_use]
    pub fn within(mut self, left: RemainingBudget) -> Self {
        if let Some(left) = left.nano {
            let committed = self.spent_nano.saturating_add(self.reserved_nano).saturating_add(self.unknown_nano);
            let cap = committed.saturating_add(left);
            self.cap_nano = Some(self.cap_nano.map_or(cap, |own| own.min(cap)));
        }
        self
    }

    /// Judges the next call. Without a cap everything is granted; under one, nothing that has no price.
    pub fn authorize(&self, price: Option<Price>, input_tokens: u64, max_tokens: u32) -> CallGrant {
        let Some(price) = price else {
            return if self.cap_nano.is_none() {
                CallGrant::Call { max_tokens, nano: 0 }
            } else {
                CallGrant::Exhausted
            };
        };
        let full = price.ceiling(input_tokens, u64::from(max_tokens));
        let Some(left) = self.left_nano() else { return CallGrant::Call { max_tokens, nano: full } };
        let hand_back = price.ceiling(input_tokens, u64::from(HAND_BACK_TOKENS.min(max_tokens)));
        let affordable = |budget: u64| -> u32 {
            let input = price.ceiling(input_tokens, 0);
            let tokens = budget.saturating_sub(input).checked_div(price.output).unwrap_or(u64::from(max_tokens));
            u32::try_from(tokens).unwrap_or(u32::MAX).min(max_tokens)
        };
        // A working call is only granted if a hand-back after it (with its own output as new input) still fits.
        let spare = left.saturating_sub(hand_back);
        let clamped = affordable(spare);
        if clamped >= HAND_BACK_TOKENS.min(max_tokens) && price.ceiling(input_tokens, u64::from(clamped)) <= spare {
            return CallGrant::Call { max_tokens: clamped, nano: price.ceiling(input_tokens, u64::from(clamped)) };
        }
        let clamped = affordable(left).min(HAND_BACK_TOKENS);
        if clamped > 0 && price.ceiling(input_tokens, u64::from(clamped)) <= left {
            return CallGrant::HandBack { max_tokens: clamped, nano: price.ceiling(input_tokens, u64::from(clamped)) };
        }
        CallGrant::Exhausted
    }

    /// Sets money aside for a call.
    pub fn reserve(&mut self, nano: u64) {
        self.reserved_nano = self.reserved_nano.saturating_add(nano);
    }

    /// Settles a call: its bill replaces the reservation. Without a bill the call was free.
    pub fn settle(&mut self, reserved: u64, bill: Option<Bill>) {
        self.reserved_nano = self.reserved_nano.saturating_sub(reserved);
        let Some(bill) = bill else { return };
        self.usage += bill.usage;
        self.spent_nano = self.spent_nano.saturating_add(bill.nano.saturating_sub(bill.unknown_nano));
        self.unknown_nano = self.unknown_nano.saturating_add(bill.unknown_nano);
        self.unpriced_calls += u64::from(!bill.is_priced);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price { input: 3_000, output: 15_000, cache_read: 300, cache_write: 3_750 };

    fn capped(dollars_milli: u64) -> Ledger {
        Ledger { cap_nano: Some(dollars_milli * NANO / 1_000), ..Ledger::default() }
    }

    #[test]
    fn without_a_cap_or_a_price_calls_are_granted() {
        let grant = Ledger::default().authorize(Some(PRICE), 1_000, 4_096);
        assert_eq!(grant, CallGrant::Call { max_tokens: 4_096, nano: 3_750 * 1_000 + 15_000 * 4_096 });
        assert_eq!(Ledger::default().authorize(None, 1, 1), CallGrant::Call { max_tokens: 1, nano: 0 });
        assert_eq!(capped(1_000).authorize(None, 1, 1), CallGrant::Exhausted);
    }

    #[test]
    fn the_cap_clamps_then_hands_back_then_ends() {
        let table = [
            (1_000, CallGrant::Call { max_tokens: 8_192, nano: 3_750 * 1_000 + 15_000 * 8_192 }),
            // $0.10 − hand-back (3.75 + 15.36 m$) leaves 80.89 m$ → minus input 3.75 → 5 142 tokens.
            (100, CallGrant::Call { max_tokens: 5_142, nano: 3_750 * 1_000 + 15_000 * 5_142 }),
            (20, CallGrant::HandBack { max_tokens: 1_024, nano: 3_750 * 1_000 + 15_000 * 1_024 }),
            (10, CallGrant::HandBack { max_tokens: 416, nano: 3_750 * 1_000 + 15_000 * 416 }),
            (3, CallGrant::Exhausted),
        ];
        for (milli, want) in table {
            assert_eq!(capped(milli).authorize(Some(PRICE), 1_000, 8_192), want, "{milli} m$");
        }
    }

    #[test]
    fn bills_replace_reservations() {
        let mut ledger = capped(100);
        ledger.reserve(60_000_000);
        ledger.settle(60_000_000, Some(Bill::reserved(60_000_000)));
        assert_eq!(ledger.left_nano(), Some(40_000_000));
        let usage = Usage { input: 1_000, output: 100, ..Usage::default() };
        ledger.reserve(30_000_000);
        ledger.settle(30_000_000, Some(Bill::known(usage, Some(PRICE))));
        assert_eq!(ledger.spent_nano, 4_500_000);
        assert_eq!(ledger.left_nano(), Some(35_500_000));
        ledger.reserve(30_000_000);
        ledger.settle(30_000_000, Some(Bill::estimated(usage, Some(PRICE))));
        assert_eq!((ledger.spent_nano, ledger.unknown_nano), (4_500_000, 64_500_000));
        ledger.reserve(30_000_000);
        ledger.settle(30_000_000, None);
        assert_eq!((ledger.left_nano(), ledger.unpriced_calls), (Some(31_000_000), 0));
        ledger.settle(0, Some(Bill::estimated(usage, None)));
        assert_eq!((ledger.left_nano(), ledger.unpriced_calls), (Some(31_000_000), 1));
    }
}
