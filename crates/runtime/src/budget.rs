//! Budgets: what a session, a plan in it, or an agent with its sub-agents may still spend.
//!
//! All budgets of a session are under one lock: an agent reads them, decides and reserves the most that its call can
//! cost before another one reads them, so that parallel agents together never overspend. The truth is in the agents'
//! own ledgers; budgets are computed from them when a session is opened. Whether
//! a call can be paid, and what an agent does if not, is decided in `core::ledger` and `core::turn::call`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use max_team_core::chat::Usage;
use max_team_core::id::{AgentId, PlanId};
use max_team_core::ledger::RemainingBudget;
use max_team_core::plan::Budget;
use tokio::sync::watch;

use crate::shared::lock;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Session,
    Plan(PlanId),
    /// One agent, and its sub-agents.
    Agent(AgentId),
}

/// One holder's budget among those of its session.
#[derive(Debug, Clone)]
pub(crate) struct BudgetPool {
    budgets: Arc<Mutex<Budgets>>,
    of: Holder,
}

#[derive(Debug)]
struct Budgets {
    accounts: HashMap<Holder, Account>,
    /// Counts the calls that were settled and the caps that were changed.
    settled: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Account {
    cap: Budget,
    /// Spent or reserved.
    nano: u64,
    tokens: u64,
    /// The part that is reserved for running calls.
    held: (u64, u64),
    outer: Option<Holder>,
}

impl Account {
    /// What is left; `later`: after all reservations are released unused.
    fn left(&self, later: bool) -> RemainingBudget {
        let (nano, tokens) = if later { self.held } else { (0, 0) };
        let (nano, tokens) = (self.nano.saturating_sub(nano), self.tokens.saturating_sub(tokens));
        RemainingBudget {
            nano: self.cap.nano.map(|cap| cap.saturating_sub(nano)),
            tokens: self.cap.tokens.map(|cap| cap.saturating_sub(tokens)),
        }
    }
}

/// A holder's budget while no other agent of the session decides about money.
pub(crate) struct PoolGuard<'b> {
    budgets: &'b mut Budgets,
    of: Holder,
}

impl PoolGuard<'_> {
    /// The account of `of`, then the ones around it.
    fn accounts(&self, of: Holder) -> impl Iterator<Item = &Account> {
        let account = |of: &Holder| self.budgets.accounts.get(of);
        std::iter::successors(account(&of), move |inner| account(inner.outer.as_ref()?))
    }

    fn each(&mut self, mut change: impl FnMut(&mut Account)) {
        let mut of = Some(self.of);
        while let Some(account) = of.and_then(|of| self.budgets.accounts.get_mut(&of)) {
            change(account);
            of = account.outer;
        }
    }

    fn left_of(&self, of: Holder, later: bool) -> RemainingBudget {
        self.accounts(of).map(|account| account.left(later)).fold(RemainingBudget::default(), |a, b| RemainingBudget {
            nano: least(a.nano, b.nano),
            tokens: least(a.tokens, b.tokens),
        })
    }

    /// What is left, here and in the outer budgets. `later`: at most, once all running calls have reported their cost.
    pub(crate) fn left(&self, later: bool) -> RemainingBudget {
        self.left_of(self.of, later)
    }

    /// How many settlements there were.
    pub(crate) fn count(&self) -> u64 {
        *self.budgets.settled.borrow()
    }

    /// Replaces a reservation by the real cost.
    pub(crate) fn settle(&mut self, reserved: (u64, u64), used: (u64, u64)) {
        self.each(|account| {
            account.nano = account.nano.saturating_sub(reserved.0).saturating_add(used.0);
            account.tokens = account.tokens.saturating_sub(reserved.1).saturating_add(used.1);
            account.held = (account.held.0.saturating_sub(reserved.0), account.held.1.saturating_sub(reserved.1));
        });
        self.budgets.settled.send_modify(|count| *count += 1);
    }

    /// Reserves the most that a call may cost.
    pub(crate) fn reserve(&mut self, nano: u64, tokens: u64) {
        self.charge(nano, tokens);
        self.each(|account| {
            account.held = (account.held.0.saturating_add(nano), account.held.1.saturating_add(tokens));
        });
    }

    fn charge(&mut self, nano: u64, tokens: u64) {
        self.each(|account| {
            account.nano = account.nano.saturating_add(nano);
            account.tokens = account.tokens.saturating_add(tokens);
        });
    }
}

impl BudgetPool {
    /// The budget of a session.
    pub(crate) fn new(cap: Budget) -> Self {
        let accounts = HashMap::from([(Holder::Session, Account { cap, ..Account::default() })]);
        let budgets = Budgets { accounts, settled: watch::Sender::new(0) };
        Self { budgets: Arc::new(Mutex::new(budgets)), of: Holder::Session }
    }

    /// Decides about money while no other agent of the session does.
    pub(crate) fn alone<T>(&self, decide: impl FnOnce(&mut PoolGuard<'_>) -> T) -> T {
        decide(&mut PoolGuard { budgets: &mut lock(&self.budgets), of: self.of })
    }

    fn of(&self, of: Holder) -> Self {
        Self { budgets: Arc::clone(&self.budgets), of }
    }

    /// A plan's budget inside that of the session, with this cap from now on.
    pub(crate) fn plan(&self, plan: PlanId, cap: Option<Budget>) -> Self {
        let pool = self.of(Holder::Plan(plan));
        let outer = Some(Holder::Session);
        pool.alone(|open| {
            open.budgets.accounts.entry(open.of).or_insert_with(|| Account { outer, ..Account::default() });
        });
        cap.into_iter().for_each(|cap| pool.cap(cap));
        pool
    }

    /// The budget of one agent and its sub-agents, if it has one.
    pub(crate) fn known(&self, agent: AgentId) -> Option<Self> {
        let pool = self.of(Holder::Agent(agent));
        pool.alone(|open| open.budgets.accounts.contains_key(&open.of)).then_some(pool)
    }

    /// A budget for one agent and its sub-agents inside this one. The amount that is already spent is counted here
    /// only: the outer budgets include it.
    pub(crate) fn personal(&self, agent: AgentId, cap: Budget, (nano, tokens): (u64, u64)) -> Self {
        let account = Account { cap, nano, tokens, outer: Some(self.of), ..Account::default() };
        let pool = self.of(Holder::Agent(agent));
        pool.alone(|open| open.budgets.accounts.insert(open.of, account));
        pool
    }

    fn is_personal(&self) -> bool {
        matches!(self.of, Holder::Agent(_))
    }

    /// The cap of one agent, if this is its own budget.
    pub(crate) fn own_cap(&self) -> Budget {
        let own = |open: &mut PoolGuard<'_>| open.accounts(open.of).next().map(|account| account.cap);
        if self.is_personal() { self.alone(own).unwrap_or_default() } else { Budget::default() }
    }

    /// What is left for all agents of a plan or a session.
    pub(crate) fn left_to_all(&self) -> RemainingBudget {
        self.alone(|open| {
            let mut of = open.of;
            while let (Holder::Agent(_), Some(account)) = (of, open.budgets.accounts.get(&of)) {
                of = account.outer.unwrap_or(Holder::Session);
            }
            open.left_of(of, false)
        })
    }

    /// Changes the cap.
    pub(crate) fn cap(&self, cap: Budget) {
        self.alone(|open| {
            open.budgets.accounts.entry(open.of).or_default().cap = cap;
            open.budgets.settled.send_modify(|count| *count += 1);
        });
    }

    /// Signals an agent that waits for budget that some may have been released.
    pub(crate) fn settled(&self) -> watch::Receiver<u64> {
        self.alone(|open| open.budgets.settled.subscribe())
    }

    /// Whether a budget bounds the holder at all.
    pub(crate) fn is_bounded(&self) -> bool {
        self.alone(|open| {
            open.accounts(open.of).any(|account| account.cap.nano.is_some() || account.cap.tokens.is_some())
        })
    }

    /// What is left, here and in the outer budgets.
    pub(crate) fn left(&self) -> RemainingBudget {
        self.alone(|open| open.left(false))
    }

    /// Replaces a reservation by the real cost.
    pub(crate) fn settle(&self, reserved: (u64, u64), used: (u64, u64)) {
        self.alone(|open| open.settle(reserved, used));
    }

    /// Adds what was spent before this process started.
    pub(crate) fn charge(&self, nano: u64, tokens: u64) {
        self.alone(|open| open.charge(nano, tokens));
    }
}

/// The smaller of two bounds, if there are any.
pub(crate) fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// All tokens of some usage.
pub(crate) fn tokens(usage: Usage) -> u64 {
    usage.input_total().saturating_add(usage.output)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_inner_pool_never_holds_more_than_the_outer() {
        let [one, two] = [1, 2].map(|number| PlanId::new(Uuid::from_u128(number)));
        let outer = BudgetPool::new(Budget { nano: Some(100), ..Budget::default() });
        let inner = outer.plan(one, Some(Budget { nano: Some(80), tokens: Some(10), ..Budget::default() }));
        let other = outer.plan(two, None);
        assert_eq!(inner.left(), RemainingBudget { nano: Some(80), tokens: Some(10) });
        other.alone(|open| open.reserve(50, 3));
        assert_eq!(inner.left(), RemainingBudget { nano: Some(50), tokens: Some(10) });
        inner.alone(|open| open.reserve(40, 8));
        assert_eq!(outer.left().nano, Some(10));
        inner.settle((40, 8), (5, 1));
        assert_eq!(inner.left(), RemainingBudget { nano: Some(45), tokens: Some(9) });
        assert!(inner.is_bounded() && other.is_bounded());
    }

    #[test]
    fn those_who_work_for_somebody_spend_what_they_were_given() {
        let plan = BudgetPool::new(Budget { nano: Some(100), ..Budget::default() });
        let [one, two] = [1, 2].map(|number| AgentId::new(Uuid::from_u128(number)));
        let money = |nano| Budget { nano: Some(nano), ..Budget::default() };
        let member = plan.personal(one, money(30), (5, 0));
        let called = member.personal(two, Budget { tokens: Some(9), ..money(20) }, (0, 1));
        assert_eq!((called.left().tokens, called.left_to_all().tokens), (Some(8), None));
        called.alone(|open| open.reserve(15, 0));
        assert_eq!((called.left().nano, member.left().nano, plan.left().nano), (Some(5), Some(10), Some(85)));
        member.alone(|open| open.reserve(8, 0));
        assert_eq!((called.left().nano, called.left_to_all().nano), (Some(2), Some(77)));
    }
}
