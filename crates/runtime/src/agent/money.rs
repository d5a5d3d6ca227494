//! What an agent may spend, and what it has.

use std::collections::BTreeMap;
use std::sync::Arc;

use max_team_core::chat::Usage;
use max_team_core::context::{self, BYTES_PER_KILOTOKEN};
use max_team_core::event::{Event, TurnEnded};
use max_team_core::ledger::Left;
use max_team_core::plan::event::Spent;
use max_team_core::turn::Input;

use super::{Agent, millis};
use crate::census::Census;
use crate::purse;
use crate::shared::{lock, now_ms};

/// The cost of the other agents of a session.
#[derive(Default)]
pub(super) struct Others {
    pub nano: u64,
    pub unknown_nano: u64,
    /// Their tokens, by model.
    pub usage: BTreeMap<String, Usage>,
}

impl Agent {
    /// One decision. What it may spend is set aside before anybody else can look.
    pub(super) fn decide(&mut self, input: Input) -> Vec<Event> {
        self.reveal_for(&input);
        if !self.purse.is_bounded() {
            (self.left, self.later) = (Left::default(), Left::default());
            return self.turn.decide(input, &self.now());
        }
        let floor = Arc::clone(&self.floor);
        let _alone = lock(&floor.spending);
        // Before it is looked: what is settled in between is looked at once more.
        self.settled = *self.purse.settled().borrow();
        (self.left, self.later) = (self.purse.left(), self.purse.left_later());
        let events = self.turn.decide(input, &self.now());
        for event in &events {
            match event {
                Event::LlmEnded(ended) => {
                    let bill = self.turn.calling().and_then(|intent| ended.bill(intent));
                    let used = bill.map_or((0, 0), |bill| (bill.nano, purse::tokens(bill.usage)));
                    self.purse.settle(std::mem::take(&mut self.held), used);
                }
                Event::LlmIntent(intent) => {
                    let tokens = context::tokens(intent.bytes, BYTES_PER_KILOTOKEN);
                    self.held = (intent.reserved_nano, tokens.saturating_add(u64::from(intent.max_tokens)));
                    self.purse.reserve(self.held.0, self.held.1);
                }
                _ => {}
            }
        }
        events
    }

    /// What everybody else in the session has spent; what cannot be read now is still in their own ledgers.
    pub(super) fn spent_by_others(&self) -> Others {
        let costs = Census::new(&self.floor.shared.journal).costs(Some(self.floor.session), 0, now_ms());
        let mut sum = Others::default();
        for cost in costs.unwrap_or_default().into_iter().filter(|cost| Some(cost.agent) != self.origin.agent) {
            sum.nano = sum.nano.saturating_add(cost.nano);
            sum.unknown_nano = sum.unknown_nano.saturating_add(cost.unknown_nano);
            *sum.usage.entry(cost.model).or_default() += cost.usage;
        }
        sum
    }

    /// The money and tokens of a turn's end, with those of whom it has called, for whoever waits for it.
    pub(super) fn spent(&self, ended: &TurnEnded) -> Spent {
        let mut spent = Spent { ms: millis(self.began), ..Default::default() };
        // What cannot be read now is still in everybody's own ledger.
        let called = self.spent_by_called().unwrap_or_default();
        for charge in ended.charges.iter().chain(&called) {
            spent.nano = spent.nano.saturating_add(charge.nano);
            spent.unknown_nano = spent.unknown_nano.saturating_add(charge.unknown_nano);
            spent.usage += charge.usage;
        }
        spent
    }
}

impl Drop for Agent {
    /// However it ends: of a call whose end it does not see nobody else will, and nobody waits for what it had set aside.
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.purse.settle(held, held);
    }
}
