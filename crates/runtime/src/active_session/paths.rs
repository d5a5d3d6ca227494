//! Path locks over all plans of a session.
//!
//! A plan keeps its own tasks apart; this keeps the plans apart. A task takes all its paths at once, in the decision
//! that assigns it, and waits for no others while it holds them: so there is no deadlock. It releases them with the
//! commit that says so: a decision that is not stored has freed nothing. The locks follow from each plan's own log, so
//! nothing here is journalled.

use std::collections::{HashMap, HashSet};

use max_team_core::id::PlanId;
use max_team_core::plan::Plan;

use crate::driver::Driver;

#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// The globs that each plan's tasks hold.
    plans: HashMap<PlanId, Vec<String>>,
    /// Plans that only wait for paths of others.
    waiting: HashSet<PlanId>,
}

impl Paths {
    /// Notes the paths of a plan that has just been folded.
    pub(crate) fn note(&mut self, id: PlanId, plan: &Plan) {
        self.plans.insert(id, plan.held());
    }

    /// One decision of a plan, given the paths that others hold. Paths that it takes are noted before another plan
    /// decides; paths that it releases stay its own until that is in the log ([`Self::settle`]).
    pub(crate) fn decide<T>(
        &mut self,
        id: PlanId,
        plan: &mut Driver<Plan>,
        decide: impl FnOnce(&mut Driver<Plan>, &[String]) -> T,
    ) -> T {
        let taken = self.by_others(id);
        let decided = decide(plan, &taken);
        self.take(id, plan.held());
        if !taken.is_empty() && plan.has_ready() {
            self.waiting.insert(id);
        } else {
            self.waiting.remove(&id);
        }
        decided
    }

    /// Whether a plan only waits for paths of others.
    pub(crate) fn waits(&self, id: PlanId) -> bool {
        self.waiting.contains(&id)
    }

    fn by_others(&self, id: PlanId) -> Vec<String> {
        let others = self.plans.iter().filter(|(other, _)| **other != id);
        others.flat_map(|(_, globs)| globs.iter().cloned()).collect()
    }

    fn take(&mut self, id: PlanId, now: Vec<String>) {
        let own = self.plans.entry(id).or_default();
        own.extend(now.into_iter().filter(|glob| !own.contains(glob)).collect::<Vec<_>>());
    }

    /// The decision is in the log: returns the plans that may go on now.
    pub(crate) fn settle(&mut self, id: PlanId, now: Vec<String>) -> Vec<PlanId> {
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
    fn released_paths_are_free_once_the_release_is_in_the_log() {
        let [one, two] = [1, 2].map(|number| PlanId::new(uuid::Uuid::from_u128(number)));
        let globs = |list: &[&str]| list.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
        let mut held = Paths::default();
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
