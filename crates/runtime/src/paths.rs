//! Who is at work on which paths, over all plans of a session.
//!
//! A plan keeps its own tasks out of each other's way; this keeps plans out of each other's. A task takes all its paths
//! at once, in the decision that gives it to somebody, and waits for no others while it has them: nothing can lock up.
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

    /// One decision of a plan under what others hold. What it holds then is noted before anybody else decides; the
    /// plans that may go on now are handed back.
    pub(crate) fn decide<T>(
        &self,
        id: PlanId,
        plan: &mut Plan,
        decide: impl FnOnce(&mut Plan, &[String]) -> T,
    ) -> (T, Vec<PlanId>) {
        let mut held = lock(&self.0);
        let others = held.plans.iter().filter(|(other, _)| **other != id);
        let taken: Vec<String> = others.flat_map(|(_, globs)| globs.iter().cloned()).collect();
        let decided = decide(plan, &taken);
        let now = plan.held();
        let before = held.plans.remove(&id).unwrap_or_default();
        let freed = before.iter().any(|glob| !now.contains(glob));
        if !now.is_empty() {
            held.plans.insert(id, now);
        }
        if !taken.is_empty() && plan.has_ready() {
            held.waiting.insert(id);
        } else {
            held.waiting.remove(&id);
        }
        let rung = if freed { held.waiting.iter().copied().filter(|other| *other != id).collect() } else { Vec::new() };
        (decided, rung)
    }

    /// Whether a plan could go on but for what others hold.
    pub(crate) fn waits(&self, id: PlanId) -> bool {
        lock(&self.0).waiting.contains(&id)
    }
}
