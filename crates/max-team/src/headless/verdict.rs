//! What a run without a chat, or one turn of it, came to. The exit code and the `result` object are both made of a
//! [`Verdict`], so that they agree.

use std::borrow::Cow;

use max_team_core::event::{End, TurnEnded};
use max_team_core::id::PlanId;
use max_team_core::plan::Plan;
use max_team_core::plan::event::{About, PlanEnd};
use serde_json::Value;

use super::tally::Tally;
use super::{Headless, Task};
use crate::exit::Exit;
use crate::words::Lang;

/// `terminal_reason` of a run that was stopped, whoever stopped it.
const STOPPED: &str = "stopped";
/// `terminal_reason` of a plan that waits for a person.
const NEEDS_APPROVAL: &str = "needs_approval";

/// The outcome of a run or a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) exit: Exit,
    /// The `terminal_reason` of the result: a word for scripts.
    pub(crate) reason: Cow<'static, str>,
    /// Why it is an error, in words.
    pub(crate) error: Option<Cow<'static, str>>,
    /// The plan that decided it.
    pub(crate) plan: Option<PlanId>,
}

impl Verdict {
    fn new(exit: Exit, reason: &'static str, error: &'static str) -> Self {
        Self { exit, reason: reason.into(), error: Some(error.into()), plan: None }
    }

    fn ok(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { exit: Exit::Ok, reason: reason.into(), error: None, plan: None }
    }

    /// The `subtype` of the result.
    pub(crate) fn subtype(&self) -> &'static str {
        match (self.exit, &*self.reason) {
            (Exit::Ok, _) => "success",
            (Exit::Budget, _) => "error_max_budget_usd",
            (Exit::Denied, NEEDS_APPROVAL) => NEEDS_APPROVAL,
            (Exit::Limit, "rounds") => "error_max_turns",
            (Exit::Limit, "unstructured") => "error_max_structured_output_retries",
            _ => "error_during_execution",
        }
    }

    /// How a turn of the lead's ended.
    pub(crate) fn of_turn(end: &End) -> Self {
        match Exit::of(end) {
            Exit::Ok => Self::ok(end_name(end)),
            Exit::Interrupted => Self::of_stop(Exit::Interrupted),
            exit => {
                let error = Lang::En.ended_because(end).map(Cow::Owned);
                Self { exit, reason: end_name(end).into(), error, plan: None }
            }
        }
    }

    /// A run that a signal or a person has stopped.
    pub(crate) fn of_stop(exit: Exit) -> Self {
        Self::new(exit, STOPPED, "stopped before everything asked for was done")
    }

    /// A run in which an agent waits for the user's answer.
    fn of_question() -> Self {
        Self::new(Exit::Denied, NEEDS_APPROVAL, "a question waits for the user's answer")
    }

    /// A run that failed outside of any turn.
    pub(crate) fn of_error(exit: Exit, error: String) -> Self {
        let reason = match exit {
            Exit::Usage => "usage",
            Exit::Config => "config",
            Exit::NoKey => "no_key",
            Exit::Denied => "denied",
            Exit::Budget => "budget",
            Exit::Interrupted | Exit::Terminated | Exit::Limit => STOPPED,
            Exit::Ok | Exit::Failed | Exit::Partial => "failed",
        };
        // An error is one, whatever code it came with.
        let exit = if exit == Exit::Ok { Exit::Failed } else { exit };
        Self { exit, reason: reason.into(), error: Some(error.into()), plan: None }
    }

    /// How a plan stands that is left where it is.
    pub(crate) fn of_plan(plan: &Plan) -> Self {
        let is_asked = |about: &About| plan.asked().any(|(_, asked)| asked == about);
        match plan.ended() {
            Some(PlanEnd::Done | PlanEnd::Replaced) => Self::ok("done"),
            Some(PlanEnd::Partial) => Self::new(Exit::Partial, "partial", "the plan is partly done"),
            Some(PlanEnd::Failed) => Self::new(Exit::Failed, "failed", "the plan failed"),
            Some(PlanEnd::Stopped) if plan.is_stopped_by_person() => {
                Self::new(Exit::Interrupted, STOPPED, "the plan was stopped")
            }
            Some(PlanEnd::Stopped) => Self::new(Exit::Limit, STOPPED, "the plan was stopped: its time was over"),
            Some(PlanEnd::Rejected) => Self::new(Exit::Denied, "rejected", "the plan was rejected"),
            None if is_asked(&About::Budget) => Self::new(Exit::Budget, "budget", "the plan waits for a larger budget"),
            None if plan.is_parked() => Self::new(
                Exit::Failed,
                "parked",
                "the model server cannot be reached: the plan is parked and goes on with `-c`",
            ),
            None if plan.asked().next().is_some() => {
                Self::new(Exit::Denied, NEEDS_APPROVAL, "the plan waits for a person")
            }
            None => Self::new(Exit::Partial, "partial", "the plan is partly done"),
        }
    }
}

/// The name of an end, as the journal writes it.
pub(crate) fn end_name(end: &End) -> String {
    match serde_json::to_value(end) {
        Ok(Value::String(name)) => name,
        Ok(Value::Object(fields)) => fields.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

impl Headless {
    /// The outcome of a turn of the lead's; or, without one, of a run in which the lead says nothing more.
    pub(super) fn verdict(
        &self,
        tally: &Tally,
        ended: Option<&TurnEnded>,
        stopped: Option<Exit>,
    ) -> anyhow::Result<Verdict> {
        let of_turn = || ended.map_or_else(|| Verdict::ok("done"), |ended| Verdict::of_turn(&ended.end));
        let mut verdict = stopped.map_or_else(of_turn, |exit| self.verdict_of_stop(exit));
        if verdict.exit == Exit::Ok && !tally.waiting.is_empty() {
            verdict = Verdict::of_question();
        }
        if verdict.exit == Exit::Interrupted && stopped.is_none() && tally.is_out_of_time {
            verdict = Verdict::new(Exit::Limit, STOPPED, Lang::En.lead_out_of_time());
        }
        for plan in self.plans_that_count(tally, ended.is_some()) {
            if verdict.exit != Exit::Ok {
                break;
            }
            let state = self.handle.plan(plan)?;
            // The lead has come to an answer since.
            let is_answered = ended.is_some() || matches!(self.task, Task::Listen);
            let is_outlived = is_answered && tally.outlived.contains(&plan) && state.is_stopped_by_person();
            let of_plan = Verdict::of_plan(&state);
            let counts = !is_outlived && (of_plan.exit != Exit::Ok || ended.is_none());
            verdict = Verdict { plan: Some(plan), ..if counts { of_plan } else { verdict } };
        }
        Ok(match tally.exit(verdict.exit) {
            exit if exit == verdict.exit => verdict,
            Exit::Interrupted => Verdict { plan: verdict.plan, ..Verdict::of_stop(Exit::Interrupted) },
            Exit::Budget => {
                Verdict::new(Exit::Budget, "budget", "a teammate's next call is more than the budget allows")
            }
            Exit::Partial => Verdict::new(Exit::Partial, "partial", "a member of the team could not begin"),
            // Where the lead says nothing, the teammate that was asked for something is all that there was.
            exit => Verdict::new(exit, "failed", "a teammate could not do what it was asked for"),
        })
    }

    /// The outcome of a run whose plan waits for a person.
    pub(super) fn verdict_of_waiting(&self, plan: &Plan, stopped: Option<Exit>) -> Verdict {
        stopped.map_or_else(|| Verdict::of_plan(plan), |exit| self.verdict_of_stop(exit))
    }

    /// The outcome of a run that was stopped: by its own time limit, or by a person.
    fn verdict_of_stop(&self, exit: Exit) -> Verdict {
        let error = self.late(Some(exit), Lang::En).map(Cow::Owned);
        let stop = Verdict::of_stop(exit);
        Verdict { error: error.or(stop.error), ..stop }
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
}

#[cfg(test)]
mod tests {
    use max_team_core::recovery::Failure;

    use super::*;

    /// Every end of a turn, with its exit code, subtype and reason.
    #[test]
    fn each_end_of_a_turn_has_one_code_and_one_subtype() {
        let failed = |failure| End::Failed { failure, detail: "x".into() };
        let error = "error_during_execution";
        let table = [
            (End::Answered, 0, "success", "answered"),
            (End::Proposed, 0, "success", "proposed"),
            (End::Truncated, 7, error, "truncated"),
            (End::Refused, 1, error, "refused"),
            (End::Empty, 1, error, "empty"),
            (End::Unstructured, 7, "error_max_structured_output_retries", "unstructured"),
            (End::Looping, 7, error, "looping"),
            (End::Rounds, 7, "error_max_turns", "rounds"),
            (End::Budget, 6, "error_max_budget_usd", "budget"),
            (End::Interrupted, 130, error, "stopped"),
            (failed(Failure::Auth), 4, error, "failed"),
            (failed(Failure::Setup), 3, error, "failed"),
            (failed(Failure::Network), 1, error, "failed"),
            (End::Broken { detail: "x".into() }, 1, error, "broken"),
        ];
        for (end, code, subtype, reason) in table {
            let verdict = Verdict::of_turn(&end);
            assert_eq!((verdict.exit as u8, verdict.subtype(), &*verdict.reason), (code, subtype, reason), "{end:?}");
            assert_eq!(verdict.error.is_some(), code != 0, "{end:?}");
        }
    }

    /// Every code that a failure outside of a turn has.
    #[test]
    fn each_failure_has_one_code_and_one_subtype() {
        let error = "error_during_execution";
        let table = [
            (Exit::Ok, 1, error, "failed"),
            (Exit::Failed, 1, error, "failed"),
            (Exit::Usage, 2, error, "usage"),
            (Exit::Config, 3, error, "config"),
            (Exit::NoKey, 4, error, "no_key"),
            (Exit::Denied, 5, "error_permission_denied", "denied"),
            (Exit::Budget, 6, "error_max_budget_usd", "budget"),
            (Exit::Limit, 7, error, "stopped"),
            (Exit::Partial, 8, error, "failed"),
            (Exit::Interrupted, 130, error, "stopped"),
            (Exit::Terminated, 143, error, "stopped"),
        ];
        for (exit, code, subtype, reason) in table {
            let verdict = Verdict::of_error(exit, "why".to_owned());
            assert_eq!((verdict.exit as u8, verdict.subtype(), &*verdict.reason), (code, subtype, reason), "{exit:?}");
            assert_eq!(verdict.error.as_deref(), Some("why"));
        }
    }
}
