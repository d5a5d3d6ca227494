//! What a session has spent: one fold over the model calls of its agents.
//!
//! The status line, `/cost` and the result of a headless run show sums of this fold, in whole nano-dollars; `ps` and `cost` add the
//! same bills. A call
//! counts once: in flight by the usage that the provider has reported so far, and by its bill when it has ended. A fold that starts
//! from a stored state ignores calls that the state contains already, so a reader may begin at any time.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::chat::Usage;
use crate::event::{Event, LlmEnded, LlmIntent};
use crate::id::AgentId;
use crate::ledger::{Bill, Charge};
use crate::turn::Turn;

/// Tokens and money of some model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spending {
    /// Calls that have ended.
    pub calls: u64,
    /// Their tokens, and those of calls in flight.
    pub usage: Usage,
    /// Nano-dollars, as far as prices are known; estimates included.
    pub nano: u64,
    /// The estimated part of them.
    pub unknown_nano: u64,
    /// Calls of models without a price.
    pub unpriced_calls: u64,
}

impl Spending {
    /// The sum of some charges.
    pub fn sum_of<'a>(charges: impl IntoIterator<Item = &'a Charge>) -> Self {
        charges.into_iter().fold(Self::default(), |mut sum, charge| {
            sum += Self::from(charge);
            sum
        })
    }

    /// All tokens, in and out.
    pub fn tokens(&self) -> u64 {
        self.usage.input_total().saturating_add(self.usage.output)
    }

    /// The money; `None` if the price of a call is not known, because zero would be a claim.
    pub fn known_nano(&self) -> Option<u64> {
        (self.unpriced_calls == 0).then_some(self.nano)
    }
}

impl AddAssign for Spending {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.usage += other.usage;
        self.nano = self.nano.saturating_add(other.nano);
        self.unknown_nano = self.unknown_nano.saturating_add(other.unknown_nano);
        self.unpriced_calls = self.unpriced_calls.saturating_add(other.unpriced_calls);
    }
}

impl From<&Charge> for Spending {
    fn from(charge: &Charge) -> Self {
        let Charge { calls, usage, nano, unknown_nano, unpriced_calls, .. } = *charge;
        Self { calls, usage, nano, unknown_nano, unpriced_calls }
    }
}

impl From<Bill> for Spending {
    fn from(bill: Bill) -> Self {
        let Bill { usage, nano, unknown_nano, is_priced } = bill;
        Self { calls: 1, usage, nano, unknown_nano, unpriced_calls: u64::from(!is_priced) }
    }
}

/// The cost of one agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
struct AgentCost {
    /// Ended calls, by model.
    models: BTreeMap<String, Spending>,
    /// Those of the turn that runs, or of the last one.
    turn: Spending,
    /// The last ended call and its attempt, as in [`Turn::settled_call`].
    settled: (u32, u32),
    in_flight: Option<InFlight>,
}

/// A call without an end, with the usage that was reported so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct InFlight {
    intent: Box<LlmIntent>,
    usage: Usage,
}

impl AgentCost {
    fn begin_call(&mut self, intent: &LlmIntent) {
        if (intent.call, intent.attempt) > self.settled {
            self.in_flight = Some(InFlight { intent: Box::new(intent.clone()), usage: Usage::default() });
        }
    }

    fn end_call(&mut self, ended: &LlmEnded) {
        let Some(InFlight { intent, .. }) = self.in_flight.take_if(|flight| flight.intent.call == ended.call) else {
            return;
        };
        self.settled = (intent.call, intent.attempt);
        if let Some(bill) = ended.bill(&intent) {
            self.turn += bill.into();
            *self.models.entry(intent.model.name).or_default() += bill.into();
        }
    }

    fn in_flight(&self) -> Spending {
        self.in_flight.as_ref().map_or_else(Spending::default, |InFlight { intent, usage }| {
            let nano = intent.model.price.map_or(0, |price| price.cost_of(*usage));
            Spending { usage: *usage, nano, ..Spending::default() }
        })
    }

    fn total(&self) -> Spending {
        self.models.values().fold(self.in_flight(), |mut sum, spent| {
            sum += *spent;
            sum
        })
    }
}

/// The cost of all agents of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SessionCost {
    agents: BTreeMap<AgentId, AgentCost>,
}

impl SessionCost {
    /// Adds the charge of an ended turn.
    pub fn charge(&mut self, agent: AgentId, charge: &Charge) {
        let cost = self.agents.entry(agent).or_default();
        *cost.models.entry(charge.model.clone()).or_default() += charge.into();
        cost.settled = cost.settled.max((charge.last_call, u32::MAX));
    }

    /// Adds the turn that runs.
    pub fn join(&mut self, agent: AgentId, turn: &Turn) {
        for charge in turn.charges() {
            self.charge(agent, charge);
        }
        let cost = self.agents.entry(agent).or_default();
        cost.turn = Spending::sum_of(turn.charges());
        cost.settled = turn.settled_call();
        cost.in_flight = None;
        turn.calling().into_iter().for_each(|intent| cost.begin_call(intent));
    }

    /// Takes in an event of an agent. Events that do not belong to a model call change nothing.
    pub fn apply(&mut self, agent: AgentId, event: &Event) {
        match event {
            Event::TurnStarted(_) | Event::CompactionAsked(_) => {
                self.agents.entry(agent).or_default().turn = Spending::default();
            }
            Event::LlmIntent(intent) => self.agents.entry(agent).or_default().begin_call(intent),
            Event::LlmEnded(ended) => self.agents.entry(agent).or_default().end_call(ended),
            Event::TurnEnded(_) => {
                let cost = self.agents.entry(agent).or_default();
                cost.in_flight = None;
                cost.settled.1 = u32::MAX;
            }
            _ => {}
        }
    }

    /// Takes in the usage that a call in flight has reported so far.
    pub fn apply_usage(&mut self, agent: AgentId, call: u32, usage: Usage) {
        let flight = self.agents.get_mut(&agent).and_then(|cost| cost.in_flight.as_mut());
        if let Some(flight) = flight.filter(|flight| flight.intent.call == call) {
            flight.usage = usage;
        }
    }

    /// Takes in another fold of the same session: of each agent, the one that knows more ended calls counts.
    pub fn merge(&mut self, other: Self) {
        for (agent, cost) in other.agents {
            match self.agents.get_mut(&agent) {
                Some(known) if known.settled >= cost.settled => {}
                Some(known) => *known = cost,
                None => drop(self.agents.insert(agent, cost)),
            }
        }
    }

    /// The cost of the session.
    pub fn total(&self) -> Spending {
        self.sum(|_| true)
    }

    /// The cost of one agent.
    pub fn agent(&self, agent: AgentId) -> Spending {
        self.sum(|other| other == agent)
    }

    /// The cost of all agents except this one.
    pub fn others(&self, agent: AgentId) -> Spending {
        self.sum(|other| other != agent)
    }

    /// The cost of the turn that an agent is in, or of its last one.
    pub fn turn(&self, agent: AgentId) -> Spending {
        self.agents.get(&agent).map_or_else(Spending::default, |cost| {
            let mut sum = cost.turn;
            sum += cost.in_flight();
            sum
        })
    }

    /// The cost of ended calls, by model.
    pub fn by_model(&self) -> BTreeMap<String, Spending> {
        let mut models: BTreeMap<String, Spending> = BTreeMap::new();
        for (model, spent) in self.agents.values().flat_map(|cost| &cost.models) {
            *models.entry(model.clone()).or_default() += *spent;
        }
        models
    }

    fn sum(&self, is_counted: impl Fn(AgentId) -> bool) -> Spending {
        let counted = self.agents.iter().filter(|(agent, _)| is_counted(**agent));
        counted.fold(Spending::default(), |mut sum, (_, cost)| {
            sum += cost.total();
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::agent::Model;
    use crate::chat::{Answer, Message, StopReason};
    use crate::context::Window;
    use crate::event::{LlmOutcome, RequestRef};
    use crate::hash::Hash;
    use crate::ledger::Price;

    const PRICE: Price = Price { input: 3_000, output: 15_000, cache_read: 300, cache_write: 3_750 };
    const USAGE: Usage = Usage { input: 100, output: 10, cache_read: 0, cache_write: 0 };

    fn agent(number: u128) -> AgentId {
        AgentId::new(Uuid::from_u128(number))
    }

    fn intent(call: u32, attempt: u32, price: Option<Price>) -> Event {
        let hash = Hash::of("x");
        let model = Model {
            provider: "p".into(),
            name: "m".into(),
            context_tokens: 200_000,
            max_tokens: 8_192,
            thinking_tokens: 0,
            price,
        };
        Event::LlmIntent(LlmIntent {
            call,
            attempt,
            request: RequestRef { instructions: hash, tools: hash, settings: hash, window: Window::default(), upto: 1 },
            model,
            fallback: false,
            max_tokens: 8_192,
            reserved_nano: 7,
            bytes: 0,
            hand_back: false,
            summary: None,
        })
    }

    fn ended(call: u32) -> Event {
        let message = Message::assistant(Vec::new());
        let answer = Answer { message, stop: StopReason::EndTurn, usage: USAGE, request_id: None, model: "m".into() };
        Event::LlmEnded(LlmEnded { call, outcome: LlmOutcome::Done(answer), ms: 1, summary: false, estimate: None })
    }

    /// A state of the journal: one ended turn whose last call has this number.
    fn stored(last_call: u32, calls: u64) -> SessionCost {
        let nano = calls * PRICE.cost_of(USAGE);
        let mut usage = Usage::default();
        (0..calls).for_each(|_| usage += USAGE);
        let charge = Charge { model: "m".into(), calls, usage, nano, unknown_nano: 0, unpriced_calls: 0, last_call };
        let mut cost = SessionCost::default();
        cost.charge(agent(1), &charge);
        cost
    }

    #[test]
    fn a_call_in_flight_counts_once() {
        let mut cost = SessionCost::default();
        cost.apply(agent(1), &intent(1, 1, Some(PRICE)));
        assert_eq!(cost.total(), Spending::default());
        cost.apply_usage(agent(1), 2, USAGE);
        assert_eq!(cost.total(), Spending::default(), "the usage of another call");
        cost.apply_usage(agent(1), 1, Usage { input: 100, ..Usage::default() });
        assert_eq!(cost.total().nano, 300_000);
        assert_eq!(cost.turn(agent(1)), cost.total());
        cost.apply(agent(1), &ended(1));
        assert_eq!((cost.total().nano, cost.total().calls), (450_000, 1));
        cost.apply(agent(1), &ended(1));
        assert_eq!(cost.total().calls, 1, "the same end twice");
        assert_eq!((cost.agent(agent(1)).nano, cost.others(agent(1)).nano), (450_000, 0));
        assert_eq!(cost.by_model().get("m").map(|spent| spent.nano), Some(450_000));
    }

    #[test]
    fn calls_inside_a_snapshot_are_not_counted_again() {
        let mut cost = stored(2, 2);
        for call in 1..=3 {
            cost.apply(agent(1), &intent(call, 1, Some(PRICE)));
            cost.apply(agent(1), &ended(call));
        }
        assert_eq!((cost.total().calls, cost.total().nano), (3, 3 * PRICE.cost_of(USAGE)));
    }

    #[test]
    fn a_newer_state_replaces_heard_events_and_an_older_one_does_not() {
        for (last_call, calls, want) in [(2, 2, 2), (1, 1, 1), (4, 4, 4)] {
            let mut cost = SessionCost::default();
            cost.apply(agent(1), &intent(1, 1, Some(PRICE)));
            cost.apply(agent(1), &ended(1));
            cost.merge(stored(last_call, calls));
            assert_eq!(cost.total().calls, want, "{last_call}");
        }
        let mut cost = stored(2, 2);
        cost.apply(agent(1), &intent(3, 1, Some(PRICE)));
        cost.apply(agent(1), &ended(3));
        cost.merge(stored(2, 2));
        cost.merge(stored(2, 2));
        assert_eq!(cost.total().calls, 3);
    }

    #[test]
    fn a_model_without_a_price_has_no_known_cost() {
        let mut cost = SessionCost::default();
        cost.apply(agent(1), &intent(1, 1, None));
        cost.apply(agent(1), &ended(1));
        assert_eq!((cost.total().known_nano(), cost.total().tokens()), (None, 110));
    }
}
