//! The outcome of a run without a chat, or of one turn of it: exit code, `subtype`, `terminal_reason` and error agree,
//! because all are made of one [`RunVerdict`]. Frontends gather [`RunFacts`] and print.

mod recall;

use std::borrow::Cow;

use serde_json::Value;

use crate::event::TurnOutcome;
use crate::id::PlanId;
use crate::plan::Plan;
use crate::plan::event::{PlanEnd, PlanQuestion};
use crate::recovery::Failure;

pub use recall::{DeniedCall, RefusedCalls, counts, is_outlived};

/// `terminal_reason` of a run that a person, a signal or a limit stopped.
const STOPPED: &str = "stopped";
/// `terminal_reason` of a plan that waits for a person.
const NEEDS_APPROVAL: &str = "needs_approval";

/// The exit codes, as documented in `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything went well.
    Ok = 0,
    /// The work failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The settings are wrong.
    Config = 3,
    /// The key is missing or refused.
    NoKey = 4,
    /// Something needs an approval that it did not get.
    Denied = 5,
    /// The budget is used up.
    Budget = 6,
    /// A limit was reached: rounds, time, length of an answer.
    Limit = 7,
    /// Part of the work is done.
    Partial = 8,
    /// A person stopped it.
    Interrupted = 130,
    /// The system stopped it.
    Terminated = 143,
}

impl Exit {
    /// The code for how a turn ended.
    pub fn of_turn_outcome(end: &TurnOutcome) -> Self {
        match end {
            TurnOutcome::Answered | TurnOutcome::Proposed => Self::Ok,
            TurnOutcome::Budget => Self::Budget,
            TurnOutcome::Rounds | TurnOutcome::Looping | TurnOutcome::Truncated | TurnOutcome::Unstructured => {
                Self::Limit
            }
            TurnOutcome::Interrupted => Self::Interrupted,
            TurnOutcome::Failed { failure: Failure::Auth, .. } => Self::NoKey,
            TurnOutcome::Failed { failure: Failure::Setup, .. } => Self::Config,
            TurnOutcome::Refused | TurnOutcome::Empty | TurnOutcome::Failed { .. } | TurnOutcome::Broken { .. } => {
                Self::Failed
            }
        }
    }
}

/// The outcome of a run or a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunVerdict {
    /// The exit code.
    pub exit: Exit,
    /// The `terminal_reason` of the result: a word for scripts.
    pub reason: Cow<'static, str>,
    /// Why it is an error, in words.
    pub error: Option<Cow<'static, str>>,
    /// The plan that decided it.
    pub plan: Option<PlanId>,
}

/// The facts that decide the outcome of a turn, or of a run without a further answer of the lead.
#[derive(Debug, Default)]
pub struct RunFacts<'a> {
    /// How the lead's turn ended, and why that is an error, in words.
    pub ended: Option<(&'a TurnOutcome, Option<String>)>,
    /// The limit that stopped the run, with its text, if a limit of its own did.
    pub stopped: Option<(Exit, Option<String>)>,
    /// Whether an agent waits for the user's answer.
    pub is_asked: bool,
    /// The words for a lead that has worked as long as its definition lets it.
    pub out_of_time: Option<&'static str>,
    /// Whether the run listens for further messages, so that the lead has answered in any case.
    pub listens: bool,
    /// The plans that count, with whether each was stopped before the lead's last answer.
    pub plans: Vec<(PlanId, &'a Plan, bool)>,
    /// How the agents besides the lead came out.
    pub others: OtherAgents,
}

/// What went wrong with agents besides the lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OtherAgents {
    /// One was stopped by a person, and the lead has not answered since.
    pub is_stopped: bool,
    /// The next call of one is more than the budget allows.
    pub is_unpaid: bool,
    /// One could not join.
    pub is_unjoined: bool,
    /// An agent that works for the user failed, and the lead did not answer.
    pub has_failed: bool,
}

impl RunVerdict {
    fn new(exit: Exit, reason: &'static str, error: &'static str) -> Self {
        Self { exit, reason: reason.into(), error: Some(error.into()), plan: None }
    }

    fn ok(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { exit: Exit::Ok, reason: reason.into(), error: None, plan: None }
    }

    /// The verdict about a run.
    pub fn from_facts(facts: &RunFacts<'_>) -> Self {
        let of_turn =
            || facts.ended.as_ref().map_or_else(|| Self::ok("done"), |(end, why)| Self::of_turn(end, why.clone()));
        let stopped = facts.stopped.as_ref();
        let mut verdict = stopped.map_or_else(of_turn, |(exit, why)| Self::of_stop(*exit, why.clone()));
        if verdict.exit == Exit::Ok && facts.is_asked {
            verdict = Self::new(Exit::Denied, NEEDS_APPROVAL, "a question waits for the user's answer");
        }
        if let Some(words) = facts.out_of_time
            && verdict.exit == Exit::Interrupted
            && stopped.is_none()
        {
            verdict = Self::new(Exit::Limit, STOPPED, words);
        }
        for (plan, state, is_outlived) in &facts.plans {
            if verdict.exit != Exit::Ok {
                break;
            }
            // The lead has come to an answer since.
            let is_answered = facts.ended.is_some() || facts.listens;
            let is_outlived = is_answered && *is_outlived && state.is_stopped_by_person();
            let of_plan = Self::of_plan(state);
            let counts = !is_outlived && (of_plan.exit != Exit::Ok || facts.ended.is_none());
            verdict = Self { plan: Some(*plan), ..if counts { of_plan } else { verdict } };
        }
        facts.others.verdict(&verdict).unwrap_or(verdict)
    }

    /// The `subtype` of the result.
    pub fn subtype(&self) -> &'static str {
        match (self.exit, &*self.reason) {
            (Exit::Ok, _) => "success",
            (Exit::Budget, _) => "error_max_budget_usd",
            (Exit::Denied, NEEDS_APPROVAL) => NEEDS_APPROVAL,
            (Exit::Limit, "rounds") => "error_max_turns",
            (Exit::Limit, "unstructured") => "error_max_structured_output_retries",
            _ => "error_during_execution",
        }
    }

    /// How a turn of the lead's ended, and why that is an error, in words.
    pub fn of_turn(end: &TurnOutcome, why: Option<String>) -> Self {
        match Exit::of_turn_outcome(end) {
            Exit::Ok => Self::ok(end_name(end)),
            Exit::Interrupted => Self::of_stop(Exit::Interrupted, None),
            exit => Self { exit, reason: end_name(end).into(), error: why.map(Cow::Owned), plan: None },
        }
    }

    /// A run that a signal, a person or a limit of its own has stopped.
    pub fn of_stop(exit: Exit, why: Option<String>) -> Self {
        let stop = Self::new(exit, STOPPED, "stopped before everything asked for was done");
        Self { error: why.map(Cow::Owned).or(stop.error), ..stop }
    }

    /// A run that failed outside of any turn.
    pub fn of_error(exit: Exit, error: String) -> Self {
        let reason = match exit {
            Exit::Usage => "usage",
            Exit::Config => "config",
            Exit::NoKey => "no_key",
            Exit::Denied => "denied",
            Exit::Budget => "budget",
            Exit::Interrupted | Exit::Terminated | Exit::Limit => STOPPED,
            Exit::Ok | Exit::Failed | Exit::Partial => "failed",
        };
        // An error stays an error with any exit code.
        let exit = if exit == Exit::Ok { Exit::Failed } else { exit };
        Self { exit, reason: reason.into(), error: Some(error.into()), plan: None }
    }

    /// How a plan stands that is left where it is.
    pub fn of_plan(plan: &Plan) -> Self {
        let is_asked = |about: &PlanQuestion| plan.asked().any(|(_, asked)| asked == about);
        match plan.ended() {
            Some(PlanEnd::Done | PlanEnd::Replaced) => Self::ok("done"),
            Some(PlanEnd::Partial) => Self::new(Exit::Partial, "partial", "the plan is partly done"),
            Some(PlanEnd::Failed) => Self::new(Exit::Failed, "failed", "the plan failed"),
            Some(PlanEnd::Stopped) if plan.is_stopped_by_person() => {
                Self::new(Exit::Interrupted, STOPPED, "the plan was stopped")
            }
            Some(PlanEnd::Stopped) => Self::new(Exit::Limit, STOPPED, "the plan was stopped: its time was over"),
            Some(PlanEnd::Rejected) => Self::new(Exit::Denied, "rejected", "the plan was rejected"),
            None if is_asked(&PlanQuestion::Budget) => {
                Self::new(Exit::Budget, "budget", "the plan waits for a larger budget")
            }
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

impl RunVerdict {
    /// The outcome of a run whose user leaves: a plan that runs is paused, and goes on when the session is next opened.
    pub fn of_leaving(plan: &Plan) -> Self {
        if plan.is_moving() { Self::of_stop(Exit::Interrupted, None) } else { Self::of_plan(plan) }
    }
}

impl OtherAgents {
    /// The outcome of the run if everything else went well.
    fn verdict(self, known: &RunVerdict) -> Option<RunVerdict> {
        if known.exit != Exit::Ok {
            None
        } else if self.is_stopped {
            Some(RunVerdict { plan: known.plan, ..RunVerdict::of_stop(Exit::Interrupted, None) })
        } else if self.is_unpaid {
            let words = "a teammate's next call is more than the budget allows";
            Some(RunVerdict::new(Exit::Budget, "budget", words))
        } else if self.is_unjoined {
            Some(RunVerdict::new(Exit::Partial, "partial", "a member of the team could not begin"))
        } else if self.has_failed {
            // If the lead says nothing, the failure of the teammate that was asked decides the run.
            Some(RunVerdict::new(Exit::Failed, "failed", "a teammate could not do what it was asked for"))
        } else {
            None
        }
    }
}

/// The name of an end, as the journal writes it.
pub fn end_name(end: &TurnOutcome) -> String {
    match serde_json::to_value(end) {
        Ok(Value::String(name)) => name,
        Ok(Value::Object(fields)) => fields.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every end of a turn, with its exit code, subtype and reason.
    #[test]
    fn each_end_of_a_turn_has_one_code_and_one_subtype() {
        let failed = |failure| TurnOutcome::Failed { failure, detail: "x".into() };
        let error = "error_during_execution";
        let table = [
            (TurnOutcome::Answered, 0, "success", "answered"),
            (TurnOutcome::Proposed, 0, "success", "proposed"),
            (TurnOutcome::Truncated, 7, error, "truncated"),
            (TurnOutcome::Refused, 1, error, "refused"),
            (TurnOutcome::Empty, 1, error, "empty"),
            (TurnOutcome::Unstructured, 7, "error_max_structured_output_retries", "unstructured"),
            (TurnOutcome::Looping, 7, error, "looping"),
            (TurnOutcome::Rounds, 7, "error_max_turns", "rounds"),
            (TurnOutcome::Budget, 6, "error_max_budget_usd", "budget"),
            (TurnOutcome::Interrupted, 130, error, "stopped"),
            (failed(Failure::Auth), 4, error, "failed"),
            (failed(Failure::Setup), 3, error, "failed"),
            (failed(Failure::Network), 1, error, "failed"),
            (TurnOutcome::Broken { detail: "x".into() }, 1, error, "broken"),
        ];
        for (end, code, subtype, reason) in table {
            let verdict = RunVerdict::of_turn(&end, Some("why".into()));
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
            (Exit::Denied, 5, error, "denied"),
            (Exit::Budget, 6, "error_max_budget_usd", "budget"),
            (Exit::Limit, 7, error, "stopped"),
            (Exit::Partial, 8, error, "failed"),
            (Exit::Interrupted, 130, error, "stopped"),
            (Exit::Terminated, 143, error, "stopped"),
        ];
        for (exit, code, subtype, reason) in table {
            let verdict = RunVerdict::of_error(exit, "why".to_owned());
            assert_eq!((verdict.exit as u8, verdict.subtype(), &*verdict.reason), (code, subtype, reason), "{exit:?}");
            assert_eq!(verdict.error.as_deref(), Some("why"));
        }
    }

    #[test]
    fn a_question_a_limit_and_other_agents_turn_a_success_into_something_else() {
        let answered = || Some((&TurnOutcome::Answered, None));
        let others = |others: OtherAgents| RunFacts { ended: answered(), others, ..RunFacts::default() };
        let table = [
            (RunFacts { ended: answered(), ..RunFacts::default() }, 0, "answered"),
            (RunFacts::default(), 0, "done"),
            (RunFacts { ended: answered(), is_asked: true, ..RunFacts::default() }, 5, "needs_approval"),
            (RunFacts { is_asked: true, ..RunFacts::default() }, 5, "needs_approval"),
            (
                RunFacts {
                    ended: answered(),
                    stopped: Some((Exit::Limit, None)),
                    is_asked: true,
                    ..RunFacts::default()
                },
                7,
                "stopped",
            ),
            (
                RunFacts {
                    ended: Some((&TurnOutcome::Interrupted, None)),
                    out_of_time: Some("late"),
                    ..RunFacts::default()
                },
                7,
                "stopped",
            ),
            (RunFacts { ended: answered(), out_of_time: Some("late"), ..RunFacts::default() }, 0, "answered"),
            (others(OtherAgents { is_stopped: true, is_unpaid: true, ..OtherAgents::default() }), 130, "stopped"),
            (others(OtherAgents { is_unpaid: true, is_unjoined: true, ..OtherAgents::default() }), 6, "budget"),
            (others(OtherAgents { is_unjoined: true, has_failed: true, ..OtherAgents::default() }), 8, "partial"),
            (others(OtherAgents { has_failed: true, ..OtherAgents::default() }), 1, "failed"),
        ];
        for (facts, code, reason) in table {
            let verdict = RunVerdict::from_facts(&facts);
            assert_eq!((verdict.exit as u8, &*verdict.reason), (code, reason), "{facts:?}");
        }
        let stopped = RunFacts { stopped: Some((Exit::Limit, Some("its time is over".into()))), ..RunFacts::default() };
        assert_eq!(RunVerdict::from_facts(&stopped).error.as_deref(), Some("its time is over"));
    }
}
