//! Who is at work on which paths, over all plans of a session.
//!
//! A plan keeps its own tasks out of each other's way; this keeps plans out of each other's. A task takes all its paths
//! at once, in the decision that gives it to somebody, and waits for no others while it has them: nothing can lock up. It
//! gives them back with the commit that says so: a decision that is not stored has freed nothing.
//! What is held follows from each plan's own log, so nothing here is written down.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use max_team_core::id::PlanId;
use max_team_core::plan::Plan;

use crate::shared::lock;

#[derive(Debug, Default)]
pub(crate) struct Paths(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// The globs that each plan's tasks hold.
    plans: HashMap<PlanId, Vec<String>>,
    /// Plans that could go on but for what others hold.
    waiting: HashSet<PlanId>,
}

impl Paths {
    /// What a plan holds that has just been folded.
    pub(crate) fn note(&self, id: PlanId, plan: &Plan) {
        lock(&self.0).plans.insert(id, plan.held());
    }

    /// One decision of a plan under what others hold. What it takes is noted before anybody else decides; what it gives
    /// up is its own until that is in the log ([`Self::settle`]).
    pub(crate) fn decide<T>(&self, id: PlanId, plan: &mut Plan, decide: impl FnOnce(&mut Plan, &[String]) -> T) -> T {
        let mut held = lock(&self.0);
        let taken = held.by_others(id);
        let decided = decide(plan, &taken);
        held.take(id, plan.held());
        if !taken.is_empty() && plan.has_ready() {
            held.waiting.insert(id);
        } else {
            held.waiting.remove(&id);
        }
        decided
    }

    /// What was decided is in the log: the plans that may go on now.
    pub(crate) fn settle(&self, id: PlanId, plan: &Plan) -> Vec<PlanId> {
        lock(&self.0).settle(id, plan.held())
    }

    /// Whether a plan could go on but for what others hold.
    pub(crate) fn waits(&self, id: PlanId) -> bool {
        lock(&self.0).waiting.contains(&id)
    }
}

impl Held {
    fn by_others(&self, id: PlanId) -> Vec<String> {
        let others = self.plans.iter().filter(|(other, _)| **other != id);
        others.flat_map(|(_, globs)| globs.iter().cloned()).collect()
    }

    fn take(&mut self, id: PlanId, now: Vec<String>) {
        let own = self.plans.entry(id).or_default();
        own.extend(now.into_iter().filter(|glob| !own.contains(glob)).collect::<Vec<_>>());
    }

    fn settle(&mut self, id: PlanId, now: Vec<String>) -> Vec<PlanId> {
        let before = self.plans.remove(&id).unwrap_or_default();
        let freed = before.iter().any(|glob| !now.contains(glob));
        if !now.is_empty() {
            self.plans.insert(id, now);
        }
        if freed { self.waiting.iter().copied().filter(|other| *other != id).collect() } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_is_free_once_it_is_in_the_log() {
        let [one, two] = [1, 2].map(|number| PlanId::new(uuid::Uuid::from_u128(number)));
        let globs = |list: &[&str]| list.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
        let mut held = Held::default();
        held.take(one, globs(&["src/**"]));
        assert_eq!(held.by_others(two), ["src/**"], "taken in the decision");
        held.waiting.insert(two);
        held.take(one, globs(&["docs/**"]));
        assert_eq!(held.by_others(two), ["src/**", "docs/**"], "the commit may still fail");
        assert_eq!(held.settle(one, globs(&["docs/**"])), [two]);
        assert_eq!(held.by_others(two), ["docs/**"]);
        assert_eq!(held.settle(one, globs(&["docs/**"])), [], "nothing became free");
        assert_eq!(held.settle(one, Vec::new()), [two]);
        assert!(held.plans.is_empty());
    }
}
