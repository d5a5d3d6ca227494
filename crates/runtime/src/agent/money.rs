//! An agent's budget and cost.

use max_team_core::context::{self, BYTES_PER_KILOTOKEN};
use max_team_core::event::{Event, TurnEnded};
use max_team_core::ledger::RemainingBudget;
use max_team_core::plan::event::ResourceUse;
use max_team_core::turn::{Turn, TurnInput};

use super::{Agent, millis};
use crate::budget::{self, BudgetPool, PoolGuard};

/// An agent's budget, as of its last decision.
pub(super) struct Money {
    pub(super) pool: BudgetPool,
    /// Nano-dollars and tokens that the call in flight has reserved.
    held: (u64, u64),
    /// What was left then.
    pub(super) left: RemainingBudget,
    /// What will be left once all calls in flight have settled.
    pub(super) later: RemainingBudget,
    /// How many calls of all agents had settled.
    pub(super) settled: u64,
}

impl Money {
    pub(super) fn new(pool: BudgetPool, turn: &Turn) -> Self {
        let held = (turn.ledger().reserved_nano, 0);
        Self { pool, held, left: RemainingBudget::default(), later: RemainingBudget::default(), settled: 0 }
    }

    /// Settles calls that have ended, and reserves for those that begin.
    fn keep_account(&mut self, open: &mut PoolGuard<'_>, events: &[Event], turn: &Turn) {
        for event in events {
            match event {
                Event::LlmEnded(ended) => {
                    let bill = turn.calling().and_then(|intent| ended.bill(intent));
                    let used = bill.map_or((0, 0), |bill| (bill.nano, budget::tokens(bill.usage)));
                    open.settle(std::mem::take(&mut self.held), used);
                }
                Event::LlmIntent(intent) => {
                    let tokens = context::tokens(intent.bytes, BYTES_PER_KILOTOKEN);
                    self.held = (intent.reserved_nano, tokens.saturating_add(u64::from(intent.max_tokens)));
                    open.reserve(self.held.0, self.held.1);
                }
                _ => {}
            }
        }
    }

    /// A decision was not stored: what it reserved is free again.
    pub(super) fn release(&mut self) {
        self.pool.settle(std::mem::take(&mut self.held), (0, 0));
    }
}

impl Drop for Money {
    /// A call whose end its agent does not see counts as spent, as far as it was reserved.
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.pool.settle(held, held);
    }
}

impl Agent {
    /// One decision. Its reservation is made before another agent reads the budget.
    pub(super) fn decide(&mut self, input: TurnInput) -> Vec<Event> {
        self.reveal_for(&input);
        if !self.money.pool.is_bounded() {
            (self.money.left, self.money.later) = (RemainingBudget::default(), RemainingBudget::default());
            return self.turn.decide(input, &self.now());
        }
        let pool = self.money.pool.clone();
        pool.alone(|open| {
            self.money.settled = open.count();
            (self.money.left, self.money.later) = (open.left(false), open.left(true));
            let events = self.turn.decide(input, &self.now());
            self.money.keep_account(open, &events, &self.turn);
            events
        })
    }

    /// The money and tokens of a turn's end, with those of the agents that it has called, for the agent that waits for it.
    pub(super) fn spent(&self, ended: &TurnEnded) -> ResourceUse {
        let mut spent = ResourceUse { ms: millis(self.running.began), ..Default::default() };
        // If the journal cannot be read now, each agent's own ledger still has it.
        let called = self.spent_by_called().unwrap_or_default();
        for charge in ended.charges.iter().chain(&called) {
            spent.charge(charge);
        }
        spent
    }
}
