//! Gathers the facts for the outcome of a run without a chat, or of one of its turns; `core::verdict` decides.

use max_team_core::event::TurnEnded;
use max_team_core::id::PlanId;
use max_team_core::plan::Plan;
use max_team_core::verdict::{RunFacts, RunVerdict};
use max_team_runtime::query;

use super::run_state::RunState;
use super::{Headless, Task};
use max_team_workspace::exit::Exit;
use max_team_workspace::i18n::Lang;

impl Headless {
    /// The outcome of a turn of the lead's; or, without one, of a run in which the lead says nothing more.
    pub(super) async fn verdict(
        &self,
        tally: &RunState,
        ended: Option<&TurnEnded>,
        stopped: Option<Exit>,
    ) -> anyhow::Result<RunVerdict> {
        let mut plans: Vec<(PlanId, Plan)> = Vec::new();
        for plan in self.plans_that_count(tally, ended.is_some()) {
            plans.push((plan, *self.handle.ask(query::Plan { plan }).await?));
        }
        Ok(RunVerdict::from_facts(&RunFacts {
            ended: ended.map(|ended| (&ended.end, Lang::En.ended_because(&ended.end))),
            stopped: stopped.map(|exit| (exit, self.late(Some(exit), Lang::En))),
            is_asked: !tally.questions.waiting.is_empty(),
            out_of_time: tally.turn.is_out_of_time.then(|| Lang::En.lead_out_of_time()),
            listens: matches!(self.task, Task::Listen(_)),
            plans: plans.iter().map(|(plan, state)| (*plan, state, tally.plans.outlived.contains(plan))).collect(),
            others: tally.others(),
        }))
    }

    /// The outcome of a run whose plan waits for a person.
    pub(super) fn verdict_of_waiting(&self, plan: &Plan, stopped: Option<Exit>) -> RunVerdict {
        let of_stop = |exit| RunVerdict::of_stop(exit, self.late(Some(exit), Lang::En));
        stopped.map_or_else(|| RunVerdict::of_plan(plan), of_stop)
    }

    /// Where one answer is waited for, the plan that is spoken of counts for it. A run that listens has many: a plan counts for the
    /// turn that reports it, and at the end if none has.
    fn plans_that_count(&self, tally: &RunState, of_turn: bool) -> Vec<PlanId> {
        let last = tally.plan_to_tell().map(|(plan, ..)| *plan);
        match self.task {
            Task::Listen(_) if of_turn => tally.plans.reports.clone(),
            Task::Listen(_) => last.into_iter().filter(|plan| !tally.is_reported(*plan)).collect(),
            _ => last.into_iter().collect(),
        }
    }
}
