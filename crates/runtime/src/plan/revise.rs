//! Revisions of plans: which plans a new one replaces, and the messages to them and to the lead.

use std::borrow::Cow;

use max_team_core::body::{Body, PlanRevision};
use max_team_core::id::{PlanId, TurnId};
use max_team_core::limits::PLAN_REVISIONS_MAX;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::plan::event::{PlanProposed, PlanQuestion};
use max_team_core::plan::{Plan, TaskStatus};

use super::messages::cost;
use super::plan_stream;
use super::propose::open_plans;
use crate::active_session::{ActiveSession, fold_plan};
use crate::agent::derived;
use crate::shared::now_ms;

/// The plans that a new one replaces.
#[derive(Default)]
pub(crate) struct Revised {
    /// The plan that stops once the new one is approved, and whose results the new one takes over.
    pub(crate) base: Option<PlanId>,
    /// The replaced plans that have not ended: withdrawn if they wait for approval, held in parts if they run.
    pub(crate) open: Vec<(PlanId, Plan)>,
}

/// The plans that a plan named as the replaced one stands for: itself, and while none of them was approved, the one before.
pub(crate) fn resolve(active: &ActiveSession, named: Option<PlanId>) -> Result<Revised, String> {
    let (mut revised, mut next) = (Revised { base: named, open: Vec::new() }, named);
    for _ in 0..PLAN_REVISIONS_MAX {
        let Some(id) = next else { return Ok(revised) };
        let folded = fold_plan(&active.shared, id).ok().map(|(plan, _)| plan);
        let Some(plan) = folded.filter(|plan| plan.session() == Some(active.session)) else {
            return Err(format!("`revises` names `{id}`, which is no plan of this session"));
        };
        next = plan.proposed().filter(|_| !plan.is_approved()).and_then(|proposed| proposed.revises);
        if plan.is_approved() {
            revised.base = Some(id);
        }
        if plan.ended().is_none() {
            revised.open.push((id, plan));
        }
    }
    Ok(revised)
}

/// The plan that a lead replaces if it names none: its own that waited for approval when this turn began, or the one that is
/// stuck. None if there are several.
pub(crate) fn implied(active: &ActiveSession, lead: &str, turn: Option<TurnId>) -> Option<PlanId> {
    let open = open_plans(active).ok()?;
    let is_older = |id: PlanId| turn.is_some_and(|turn| id.uuid() < turn.uuid());
    let waits = |plan: &Plan| {
        let is_own = plan.proposed().is_some_and(|proposed| proposed.by == lead);
        is_own && plan.asked().any(|(_, about)| *about == PlanQuestion::Proposal)
    };
    let only = |mut found: Vec<PlanId>| found.pop().filter(|_| found.is_empty());
    let waiting: Vec<PlanId> =
        open.iter().filter(|(id, plan)| is_older(*id) && waits(plan)).map(|(id, _)| *id).collect();
    if !waiting.is_empty() {
        return only(waiting);
    }
    only(open.iter().filter(|(_, plan)| plan.is_approved() && plan.needs_ruling()).map(|(id, _)| *id).collect())
}

/// The messages that tell the replaced plans of a proposed revision.
pub(crate) fn tell(from: &str, proposed: &PlanProposed, revised: &Revised) -> Vec<Envelope> {
    let (revision, tasks) = (proposed.plan, Cow::Borrowed(proposed.draft.tasks.as_slice()));
    let body = PlanRevision { revision: Some(revision), tasks: Some(tasks), reworked: false };
    let envelope = |(old, _): &(PlanId, Plan)| {
        let to = plan_stream(*old);
        let id = derived(&[to.as_bytes(), revision.to_string().as_bytes(), b"revised"]);
        Envelope::new(id, from, to, MessageKind::PlanRevised, Body::Revision(body.clone()), now_ms())
    };
    revised.open.iter().map(envelope).collect()
}

/// The text for a lead about a plan that it has just proposed.
pub(crate) fn words(proposed: &PlanProposed, revised: &Revised) -> String {
    let id = proposed.plan;
    let mut text = match proposed.approving_rule() {
        Some(rule) => format!(
            "Plan {id} runs now, approved by {rule}. You are told when something must be decided and when it is over."
        ),
        None => {
            format!("Plan {id} is before the user now. Nothing of it runs until they approve it; you will be told.")
        }
    };
    if proposed.is_held_by_risks() {
        text.push_str(&format!(
            " It waits because it is risky: {}. A plan without this runs without the user: submit it with `revises: {id}`.",
            proposed.risks.join("; ")
        ));
    }
    for (old, plan) in &revised.open {
        text.push_str(&if plan.is_approved() {
            running(*old, plan, proposed)
        } else {
            format!(" Plan {old}, which waited for their approval, is withdrawn.")
        });
    }
    if revised.base.is_some() && !proposed.carried.is_empty() {
        let kept: Vec<&str> = proposed.carried.iter().map(|carried| carried.task.as_str()).collect();
        text.push_str(&format!(" Done tasks with the same id and content keep their results: {}.", kept.join(", ")));
    }
    text
}

/// What becomes of a running plan whose revision was proposed.
fn running(old: PlanId, plan: &Plan, proposed: &PlanProposed) -> String {
    let (tally, is_approved) = (plan.tally(), proposed.approving_rule().is_some());
    let mut text = format!(
        " It revises plan {old}, of which {} of {} tasks are done, for {} so far; that plan stops{}.",
        tally.done,
        tally.tasks,
        cost(tally.spent),
        if is_approved { "" } else { " once they approve" },
    );
    if is_approved {
        return text;
    }
    let held: Vec<&str> = plan.affected(&proposed.draft.tasks).map(|task| task.id.as_str()).collect();
    if !held.is_empty() {
        let held = held.join(", ");
        text.push_str(&format!(
            " Until they decide, its tasks that have not begun and that you drop or change wait: {held}."
        ));
    }
    let at_work = plan.tasks().filter(|view| matches!(view.status, TaskStatus::Dispatched | TaskStatus::Running));
    let at_work: Vec<&str> = at_work.map(|view| view.task.id.as_str()).collect();
    if !at_work.is_empty() {
        let at_work = at_work.join(", ");
        text.push_str(&format!(" Tasks at work go on: {at_work}; `task_update` with `decision: cancel` stops one."));
    }
    text
}
