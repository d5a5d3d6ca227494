//! What a run, or a turn of one that listens, came to: the code and the words for whoever reads a result are one sum.

use max_team_core::event::TurnEnded;
use max_team_core::id::PlanId;
use max_team_core::plan::Plan;
use max_team_core::plan::event::{About, PlanEnd};

use super::tally::Tally;
use super::{Headless, Task};
use crate::exit::Exit;
use crate::stream_json::Cut;
use crate::words::Lang;

/// What it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) exit: Exit,
    /// Why it is an error, whatever the lead has said.
    pub(super) cut: Option<Cut>,
    /// The plan that was looked at for it.
    pub(super) plan: Option<PlanId>,
}

impl Verdict {
    /// How a plan stands, for whoever leaves it there.
    pub(crate) fn of_plan(plan: &Plan) -> Self {
        let is_asked = |about: &About| plan.asked().any(|(_, asked)| asked == about);
        let (exit, reason, error) = match plan.ended() {
            Some(PlanEnd::Done | PlanEnd::Replaced) => return Self { exit: Exit::Ok, cut: None, plan: None },
            Some(PlanEnd::Partial) => (Exit::Partial, "partial", "the plan is partly done"),
            Some(PlanEnd::Failed) => (Exit::Failed, "failed", "the plan failed"),
            Some(PlanEnd::Stopped) if plan.is_stopped_by_person() => {
                (Exit::Interrupted, "stopped", "the plan was stopped")
            }
            Some(PlanEnd::Stopped) => (Exit::Limit, "stopped", "the plan was stopped: its time was over"),
            Some(PlanEnd::Rejected) => (Exit::Denied, "rejected", "the plan was rejected"),
            None if is_asked(&About::Budget) => (Exit::Budget, "budget", "the plan waits for a larger budget"),
            None if plan.is_parked() => {
                (Exit::Failed, "parked", "the model server cannot be reached: the plan is parked and goes on with `-c`")
            }
            None if plan.asked().next().is_some() => (Exit::Denied, "needs_approval", "the plan waits for a person"),
            None => (Exit::Partial, "partial", "the plan is partly done"),
        };
        Self { exit, cut: Some(Cut::new(reason, error)), plan: None }
    }
}

impl Headless {
    /// What a turn of the lead's came to; or, without one, a run in which the lead says nothing more.
    pub(super) fn verdict(
        &self,
        tally: &Tally,
        ended: Option<&TurnEnded>,
        stopped: Option<Exit>,
    ) -> anyhow::Result<Verdict> {
        let of_turn = ended.map_or(Exit::Ok, |ended| Exit::of(&ended.end));
        let is_refused = ended.is_some() && !(tally.unasked.is_empty() && tally.denials.is_empty());
        let exit = match stopped.unwrap_or(of_turn) {
            Exit::Ok if is_refused => Exit::Denied,
            Exit::Interrupted if stopped.is_none() && tally.is_out_of_time => Exit::Limit,
            exit => exit,
        };
        let mut verdict = Verdict { exit, cut: None, plan: None };
        for plan in self.plans_that_count(tally, ended.is_some()) {
            if verdict.exit != Exit::Ok {
                break;
            }
            let state = self.handle.plan(plan)?;
            // The lead has come to an answer since.
            let is_answered = ended.is_some() || matches!(self.task, Task::Listen);
            let is_outlived = is_answered && tally.outlived.contains(&plan) && state.is_stopped_by_person();
            if !is_outlived {
                verdict = Verdict { plan: Some(plan), ..Verdict::of_plan(&state) };
            }
        }
        verdict.exit = tally.exit(verdict.exit);
        // Where the lead says nothing, whoever was asked for something is all that there was.
        let failed = || Cut::new("failed", "a teammate could not do what it was asked for");
        let is_failed = ended.is_none() && verdict.exit == Exit::Failed;
        if verdict.exit == Exit::Limit && tally.is_out_of_time {
            verdict.cut = Some(Cut::late(Lang::En.lead_out_of_time().to_owned()));
        }
        verdict.cut = verdict.cut.or_else(|| self.cut(verdict.exit, stopped)).or_else(|| is_failed.then(failed));
        Ok(verdict)
    }

    /// What a plan that waits for a person leaves a run with, which somebody may have stopped.
    pub(super) fn verdict_of_waiting(&self, plan: &Plan, stopped: Option<Exit>) -> Verdict {
        match stopped {
            Some(exit) => Verdict { exit, cut: self.cut(exit, stopped), plan: None },
            None => Verdict::of_plan(plan),
        }
    }

    /// Where one answer is waited for, the plan that is spoken of counts for it. A run that listens has many: a plan counts for the
    /// turn that reports it, and at the end if none has.
    fn plans_that_count(&self, tally: &Tally, of_turn: bool) -> Vec<PlanId> {
        let last = tally.plan_to_tell().map(|(plan, ..)| *plan);
        match self.task {
            Task::Listen if of_turn => tally.reports.clone(),
            Task::Listen => last.into_iter().filter(|plan| !tally.is_reported(*plan)).collect(),
            _ => last.into_iter().collect(),
        }
    }

    /// What a code says without a plan; which time was over, if that has stopped it.
    fn cut(&self, exit: Exit, stopped: Option<Exit>) -> Option<Cut> {
        self.late(stopped, Lang::En).map(Cut::late).or_else(|| Cut::of(exit))
    }
}
