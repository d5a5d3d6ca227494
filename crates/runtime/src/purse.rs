//! What a session, a plan in it, or somebody in that with those who work for them, may still spend.
//!
//! Every agent reserves the most that a call can cost before it is made, from its own plan's purse and from the
//! session's, under one lock: many agents at once can never spend what only one of them could. The truth is in the
//! agents' own ledgers; a purse is made again from them when a session is opened.

use std::sync::{Arc, Mutex};

use max_team_core::chat::Usage;
use max_team_core::ledger::Left;
use max_team_core::plan::Budget;
use tokio::sync::watch;

use crate::shared::lock;

/// A purse inside another one.
#[derive(Debug, Clone)]
pub(crate) struct Purse {
    own: Arc<Mutex<Coins>>,
    outer: Option<Arc<Purse>>,
    /// Whether it is one agent's, and of those who work for it.
    is_personal: bool,
    /// Counts what was settled; the outermost purse's is the one that counts.
    settled: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Coins {
    cap: Budget,
    /// Spent or set aside.
    nano: u64,
    tokens: u64,
    /// How much of that is set aside for calls that are being made.
    held: (u64, u64),
}

impl Coins {
    /// What is left; `later`: once nothing is set aside any more, if all of it comes back.
    fn left(&self, later: bool) -> Left {
        let (nano, tokens) = if later { self.held } else { (0, 0) };
        let (nano, tokens) = (self.nano.saturating_sub(nano), self.tokens.saturating_sub(tokens));
        Left {
            nano: self.cap.nano.map(|cap| cap.saturating_sub(nano)),
            tokens: self.cap.tokens.map(|cap| cap.saturating_sub(tokens)),
        }
    }
}

impl Purse {
    pub(crate) fn new(cap: Budget, outer: Option<Arc<Purse>>) -> Self {
        Self::holding(Coins { cap, ..Coins::default() }, outer, false)
    }

    /// What one agent and those who work for it may spend, of which so much is spent already; further out that is known.
    pub(crate) fn personal(cap: Budget, (nano, tokens): (u64, u64), outer: Arc<Purse>) -> Self {
        Self::holding(Coins { cap, nano, tokens, ..Coins::default() }, Some(outer), true)
    }

    fn holding(coins: Coins, outer: Option<Arc<Purse>>, is_personal: bool) -> Self {
        Self { own: Arc::new(Mutex::new(coins)), outer, is_personal, settled: watch::Sender::new(0) }
    }

    /// What one agent may spend, if this is its purse.
    pub(crate) fn own_cap(&self) -> Budget {
        if self.is_personal { lock(&self.own).cap } else { Budget::default() }
    }

    /// What is left to all who share a plan or a session.
    pub(crate) fn left_to_all(&self) -> Left {
        match &self.outer {
            Some(outer) if self.is_personal => outer.left_to_all(),
            _ => self.left(),
        }
    }

    /// A larger or smaller cap from now on.
    pub(crate) fn cap(&self, cap: Budget) {
        lock(&self.own).cap = cap;
        self.ring();
    }

    fn ring(&self) {
        match &self.outer {
            Some(outer) => outer.ring(),
            None => self.settled.send_modify(|count| *count += 1),
        }
    }

    /// Tells whoever waits for money that there may be more.
    pub(crate) fn settled(&self) -> watch::Receiver<u64> {
        match &self.outer {
            Some(outer) => outer.settled(),
            None => self.settled.subscribe(),
        }
    }

    /// Whether anybody counts at all.
    pub(crate) fn is_bounded(&self) -> bool {
        let cap = lock(&self.own).cap;
        cap.nano.is_some() || cap.tokens.is_some() || self.outer.as_ref().is_some_and(|outer| outer.is_bounded())
    }

    /// What is left, here and further out.
    pub(crate) fn left(&self) -> Left {
        self.leaves(false)
    }

    /// What will be left at most, once all calls that are being made have said what they cost.
    pub(crate) fn left_later(&self) -> Left {
        self.leaves(true)
    }

    fn leaves(&self, later: bool) -> Left {
        let own = lock(&self.own).left(later);
        let outer = self.outer.as_ref().map(|outer| outer.leaves(later)).unwrap_or_default();
        Left { nano: least(own.nano, outer.nano), tokens: least(own.tokens, outer.tokens) }
    }

    /// What the call really cost takes the place of what was set aside.
    pub(crate) fn settle(&self, reserved: (u64, u64), used: (u64, u64)) {
        {
            let mut coins = lock(&self.own);
            coins.nano = coins.nano.saturating_sub(reserved.0).saturating_add(used.0);
            coins.tokens = coins.tokens.saturating_sub(reserved.1).saturating_add(used.1);
            coins.held = (coins.held.0.saturating_sub(reserved.0), coins.held.1.saturating_sub(reserved.1));
        }
        match &self.outer {
            Some(outer) => outer.settle(reserved, used),
            None => self.settled.send_modify(|count| *count += 1),
        }
    }

    /// Sets aside what a call may cost at most.
    pub(crate) fn reserve(&self, nano: u64, tokens: u64) {
        self.charge(nano, tokens);
        self.hold(nano, tokens);
    }

    fn hold(&self, nano: u64, tokens: u64) {
        {
            let held = &mut lock(&self.own).held;
            *held = (held.0.saturating_add(nano), held.1.saturating_add(tokens));
        }
        if let Some(outer) = &self.outer {
            outer.hold(nano, tokens);
        }
    }

    /// Counts what was spent before this process looked.
    pub(crate) fn charge(&self, nano: u64, tokens: u64) {
        {
            let mut coins = lock(&self.own);
            coins.nano = coins.nano.saturating_add(nano);
            coins.tokens = coins.tokens.saturating_add(tokens);
        }
        if let Some(outer) = &self.outer {
            outer.charge(nano, tokens);
        }
    }
}

/// The smaller of two bounds, where there are any.
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
    use super::*;

    #[test]
    fn the_inner_purse_never_holds_more_than_the_outer() {
        let outer = Arc::new(Purse::new(Budget { nano: Some(100), ..Budget::default() }, None));
        let inner =
            Purse::new(Budget { nano: Some(80), tokens: Some(10), ..Budget::default() }, Some(Arc::clone(&outer)));
        let other = Purse::new(Budget::default(), Some(Arc::clone(&outer)));
        assert_eq!(inner.left(), Left { nano: Some(80), tokens: Some(10) });
        other.reserve(50, 3);
        assert_eq!(inner.left(), Left { nano: Some(50), tokens: Some(10) });
        inner.reserve(40, 8);
        assert_eq!(outer.left().nano, Some(10));
        inner.settle((40, 8), (5, 1));
        assert_eq!(inner.left(), Left { nano: Some(45), tokens: Some(9) });
        assert!(inner.is_bounded() && other.is_bounded());
    }

    #[test]
    fn those_who_work_for_somebody_spend_what_they_were_given() {
        let plan = Arc::new(Purse::new(Budget { nano: Some(100), ..Budget::default() }, None));
        let money = |nano| Budget { nano: Some(nano), ..Budget::default() };
        let member = Arc::new(Purse::personal(money(30), (5, 0), Arc::clone(&plan)));
        let called = Purse::personal(Budget { tokens: Some(9), ..money(20) }, (0, 1), Arc::clone(&member));
        assert_eq!((called.left().tokens, called.left_to_all().tokens), (Some(8), None));
        called.reserve(15, 0);
        assert_eq!((called.left().nano, member.left().nano, plan.left().nano), (Some(5), Some(10), Some(85)));
        member.reserve(8, 0);
        assert_eq!((called.left().nano, called.left_to_all().nano), (Some(2), Some(77)));
    }
}
