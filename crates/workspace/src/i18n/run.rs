//! Phrases about plans that are left unfinished: by a user who leaves the chat, and by headless runs.

use max_team_core::event::{Refusal, TurnEnded, TurnOutcome};
use max_team_core::plan::event::{ApprovalMode, PlanQuestion};
use max_team_core::plan::{Plan, TaskStatus};
use max_team_core::policy::Recourse;

use super::Lang;
use crate::format::dollars;

impl Lang {
    /// Names calls that needed an approval in a run without a user.
    pub fn nobody_asked(self, calls: &[(String, Recourse)]) -> Option<String> {
        let ((first, _), more) = calls.split_first()?;
        let others = if more.is_empty() { String::new() } else { format!(" (+{})", more.len()) };
        // Advice to write a rule is true if it helps one of the calls.
        Some(if calls.iter().all(|(_, recourse)| recourse.is_beyond_rules()) {
            self.not_done_needs_chat(first, &others)
        } else {
            self.not_done_needs_rule(first, &others)
        })
    }

    /// Which questions wait in the inbox, and how to go on.
    pub fn questions_wait(self, first: &str, more: usize, session: &str) -> String {
        let others = if more == 0 { String::new() } else { format!(" (+{more})") };
        let words = self.waits_for_your_answer(first, &others);
        self.then_go_on(&words, session)
    }

    /// That a question has begun to wait, and the command that answers it.
    pub fn question_waits(self, who: &str, what: &str, id: &str, is_asked: bool) -> String {
        let answer = if is_asked { self.answer_with_text(id) } else { self.answer_with_yes_or_no(id) };
        self.agent_waits_for_answer(who, what, &answer)
    }

    /// Which call was refused by a rule or the permission mode.
    pub fn refused_call(self, who: &str, call: &str, rule: &str, refusal: &Refusal) -> String {
        let hint = match refusal.recourse {
            Recourse::Nothing => self.recourse_nothing(),
            Recourse::RuleOrMode => self.recourse_rule_or_mode(),
            Recourse::Mode => self.recourse_mode(),
            Recourse::Rule | Recourse::Person => "",
        };
        let rule = self.basis(&refusal.basis, rule);
        self.refused_of(call, who, &rule, hint)
    }

    /// What of a budget that ended a turn may not have been spent, and what to do about it.
    pub fn budget_unknown(self, ended: &TurnEnded) -> Option<String> {
        let money = Some(ended.unknown_nano).filter(|nano| *nano > 0).map(dollars)?;
        Some(self.budget_estimated(&money))
    }

    /// Why a turn of a headless run ended without a plain answer, and what to do next.
    pub fn ended_because(self, end: &TurnOutcome) -> Option<String> {
        let words = match end {
            TurnOutcome::Answered | TurnOutcome::Proposed | TurnOutcome::Interrupted => return None,
            TurnOutcome::Truncated => self.ended_because_truncated(),
            TurnOutcome::Refused => self.ended_because_refused(),
            TurnOutcome::Empty => self.ended_because_empty(),
            TurnOutcome::Unstructured => self.ended_because_unstructured(),
            TurnOutcome::Looping => self.ended_because_looping(),
            TurnOutcome::Rounds => self.ended_because_rounds(),
            TurnOutcome::Budget => self.ended_because_budget(),
            TurnOutcome::Failed { failure, detail } => {
                return Some(self.model_gave_no_answer(self.failure(failure), detail));
            }
            TurnOutcome::Broken { detail } => {
                return Some(self.work_failed(detail));
            }
        };
        Some(words.to_owned())
    }

    /// Where a plan that is not over stands, and what to do about it; nothing for one that is.
    pub fn standing(self, plan: &Plan) -> Option<String> {
        if plan.ended().is_some() || plan.proposed().is_none() {
            return None;
        }
        let failing = plan.tasks().filter(|view| view.status == TaskStatus::Failed).count();
        let progress = self.progress(&plan.tally(), failing);
        Some(match self.answered_with(plan) {
            Some(how) => self.plan_waits_with_progress(&how, &progress),
            None => self.plan_unfinished(&progress),
        })
    }

    /// What a plan waits for, and how to answer from any terminal.
    pub fn answered_with(self, plan: &Plan) -> Option<String> {
        let id = plan.id()?;
        let (question, about) = plan.asked().next()?;
        Some(match about {
            PlanQuestion::Failure { task, .. } => self.failed_task_needs_decision(task, question),
            PlanQuestion::Budget => self.plan_over_budget(question),
            PlanQuestion::Start { .. } | PlanQuestion::Rest => self.plan_question_waits(question),
            PlanQuestion::Proposal if plan.approve() == ApprovalMode::Never => self.risky_plan_waits(id),
            PlanQuestion::Proposal => self.plan_approval_waits(id),
        })
    }

    /// That a run was stopped; and how to go on, where there is something to go on with.
    pub fn interrupted(self, session: Option<&str>) -> String {
        match session {
            Some(session) => self.stopped_work_kept_resume(session),
            None => self.stopped_work_kept().to_owned(),
        }
    }

    /// Who was stopped while others came to an answer; and how to go on with them, where they can.
    pub fn answered_without(self, names: &[&str], session: Option<&str>) -> String {
        let names = names.join(self.comma());
        match session {
            Some(session) => self.stopped_agents_resume(&names, session),
            None => self.answered_without_them(&names),
        }
    }
}
