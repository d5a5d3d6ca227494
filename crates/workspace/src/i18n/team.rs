//! The phrases about members and their plans.
//!
//! Words that a member, a file or an error says are passed through as they are.

use max_team_core::delegation::cache::AnswerAge;
use max_team_core::ledger::dollars;
use max_team_core::plan::event::{
    CheckFault, Correction, CountedOutcome, Evidence, PlanDecision, PlanEnd, Proof, Recheck, Ruling, TaskErrorKind,
    TaskFiles, TaskResult, Totals,
};
use max_team_core::plan::{PlanState, TaskStatus};
use max_team_core::rewind::MovedFile;

use super::Lang;
use crate::format::spent;

/// Files of a stopped task that a line names.
const FILES_SHOWN_MAX: usize = 12;

impl Lang {
    pub fn shape(self, tasks: usize, waves: usize, path: &str) -> String {
        let counts = self.counts(tasks, waves);
        self.critical_path(&counts, path)
    }

    /// The forecast of a plan; without a range, no price is known.
    pub fn forecast(self, range: Option<&str>, time: &str, calls: u64) -> String {
        let calls = self.model_calls(calls);
        match range {
            Some(range) => self.forecast_with_price(range, time, &calls),
            None => self.forecast_without_price(time, &calls),
        }
    }

    /// The last correction of a task: what the checks say now, and what it cost.
    pub fn corrected(self, correction: &Correction, result: &TaskResult) -> String {
        let done = match (correction.not_done, correction.checks) {
            (true, _) => self.correction_not_done().to_owned(),
            (false, Recheck::Unneeded) => self.asked_again().to_owned(),
            (false, _) => self.correction_done().to_owned(),
        };
        let mark =
            |evidence: &Evidence| format!("{} {}", if evidence.ok { "✓" } else { "✗" }, self.check_name(evidence));
        let marks: Vec<String> = result.evidence.iter().map(mark).collect();
        let outcome = format!("{}: {}", self.outcome(result), marks.join(", "));
        let checks = match correction.checks {
            Recheck::Ran if marks.is_empty() => self.recheck_without_checks(),
            Recheck::Ran => outcome.as_str(),
            Recheck::Unneeded => self.recheck_unneeded(),
            Recheck::Worktree => self.recheck_worktree(),
            Recheck::Stopped => self.recheck_plan_stopped(),
            Recheck::Interrupted => self.recheck_stopped(),
        };
        let money = format!("${:.4}", dollars(correction.spent.nano));
        [done.as_str(), checks, money.as_str()].join(self.semicolon())
    }

    pub fn failed_with(self, error: &str, again: bool) -> String {
        match again {
            true => self.failed_tried_again(error),
            false => self.failed(error),
        }
    }

    pub fn told_by(self, by: &str, answer: &str) -> String {
        let by = self.person(by);
        self.answer_told_by(&by, answer)
    }

    pub fn decided_by(self, by: &str, ruling: &str) -> String {
        let by = self.person(by);
        self.decides(&by, ruling)
    }

    pub fn given_up(self, detail: &str, kind: &TaskErrorKind) -> String {
        self.given_up_because(self.task_error(detail, kind))
    }

    /// Why a task came to nothing; a reason that is only a text is shown as it was written.
    pub fn task_error(self, text: &str, kind: &TaskErrorKind) -> String {
        match kind {
            TaskErrorKind::Text => text.to_owned(),
            TaskErrorKind::Checks(failed) => {
                let found = |one: &Evidence| self.check_found(self.check_name(one), self.check_fault(one));
                self.checks_failed(failed.iter().map(found).collect::<Vec<_>>().join(self.semicolon()))
            }
            TaskErrorKind::Stopped(by) => self.stopped_by(by),
            TaskErrorKind::NeedFailed(task) => self.need_failed(task),
            TaskErrorKind::NeedGivenUp(task) => self.need_given_up(task),
        }
    }

    fn check_name(self, evidence: &Evidence) -> &str {
        if evidence.is_unowned() { self.unowned_paths() } else { &evidence.what }
    }

    fn check_fault(self, evidence: &Evidence) -> String {
        match &evidence.fault {
            None => evidence.detail.clone(),
            Some(CheckFault::Missing) => self.file_missing().to_owned(),
            Some(CheckFault::Empty) => self.file_empty().to_owned(),
            Some(CheckFault::Exit { code, output }) if output.is_empty() => {
                self.exited_with(code, self.printed_nothing())
            }
            Some(CheckFault::Exit { code, output }) => self.exited_with(code, output),
            Some(CheckFault::Unowned(files)) => self.changed_unowned(files.join(self.comma())),
        }
    }

    pub fn stopped_by(self, by: &str) -> String {
        let by = self.person(by);
        self.stopped_by_whom(&by)
    }

    /// That another plan was proposed, and the tasks that wait for the decision about it.
    pub fn plan_revised(self, by: &str, held: &[String]) -> String {
        if held.is_empty() {
            return self.plan_replaced_by(by);
        }
        let held = held.join(", ");
        self.plan_replaced_by_holding(by, &held)
    }

    /// The files that a stopped task had changed, as many as fit a line.
    pub fn had_changed(self, files: &[String]) -> String {
        let shown = files.iter().take(FILES_SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        self.agent_changed_files(&shown, self.and_more(files.len().saturating_sub(FILES_SHOWN_MAX)))
    }

    /// How many names a list leaves out; nothing, if it names all.
    pub(super) fn and_more(self, more: usize) -> String {
        if more == 0 { String::new() } else { self.and_more_names(more) }
    }

    /// What an unfinished task leaves: changed files, commands whose changes are not known yet, protected files that were
    /// moved away.
    pub fn task_left(self, left: &TaskFiles) -> String {
        let mut words = Vec::new();
        if !left.files.is_empty() {
            words.push(self.had_changed(&left.files));
        }
        if !left.running.is_empty() {
            let commands = left.running.join("`, `");
            words.push(self.command_still_running(&commands));
        }
        if !left.moved.is_empty() {
            words.push(self.moved_away(&left.moved));
        }
        words.join(self.semicolon())
    }

    /// Protected files that a command made without approval, and where they are now.
    pub fn moved_away(self, moved: &[MovedFile]) -> String {
        let one = |MovedFile { path, to }: &MovedFile| match to.as_str() {
            "" => self.file_not_moved(path),
            to => format!("`{path}` → `{to}`"),
        };
        let shown: Vec<String> = moved.iter().take(FILES_SHOWN_MAX).map(one).collect();
        let more = moved.len().saturating_sub(FILES_SHOWN_MAX);
        self.protected_files_moved(shown.join(", "), self.and_more(more))
    }

    /// A decision about a plan.
    pub fn said(self, say: &PlanDecision) -> String {
        let words = match say {
            PlanDecision::Approve => self.said_approve(),
            PlanDecision::FirstWave => self.said_first_wave(),
            PlanDecision::Edit(_) => self.said_edit(),
            PlanDecision::Changes(words) => return self.changes_wanted(words),
            PlanDecision::Reject(why) if !why.is_empty() => return self.rejected(why),
            PlanDecision::Reject(_) => self.said_reject(),
            PlanDecision::Rule(ruling) => return self.ruling(ruling),
        };
        words.to_owned()
    }

    pub fn said_by(self, say: &PlanDecision, by: &str) -> String {
        let said = self.said(say);
        self.reply_by(&said, self.person(by))
    }

    pub fn answered_by(self, say: &PlanDecision, by: &str) -> String {
        let said = self.said_by(say, by);
        self.answered(&said)
    }

    pub fn ruling(self, ruling: &Ruling) -> String {
        let words = match ruling {
            Ruling::Skip => self.ruling_skip(),
            Ruling::Retry { agent, model, .. } => {
                let name = |name: &Option<String>| name.clone().unwrap_or_default();
                let (agent, model) = (name(agent), name(model));
                return match (agent.is_empty(), model.is_empty()) {
                    (true, true) => self.again().to_owned(),
                    (false, true) => self.again_by(&agent),
                    (true, false) => self.again_with(&model),
                    (false, false) => self.again_by_with(&agent, &model),
                };
            }
            Ruling::Fixed => self.ruling_fixed(),
            Ruling::Accept => self.ruling_accept(),
            Ruling::GiveUp => self.ruling_give_up(),
            Ruling::Escalate => self.ruling_escalate(),
        };
        words.to_owned()
    }

    pub fn plan_end(self, end: PlanEnd) -> &'static str {
        match end {
            PlanEnd::Done => self.plan_end_done(),
            PlanEnd::Partial => self.plan_end_partial(),
            PlanEnd::Failed => self.plan_end_failed(),
            PlanEnd::Stopped => self.plan_end_stopped(),
            PlanEnd::Rejected => self.plan_end_rejected(),
            PlanEnd::Replaced => self.plan_end_replaced(),
        }
    }

    /// The state of a plan.
    pub fn plan_state(self, state: PlanState) -> &'static str {
        match state {
            PlanState::Running => self.plan_state_running(),
            PlanState::Waiting => self.plan_state_waiting(),
            PlanState::Paused => self.plan_state_paused(),
            PlanState::Stopped => self.plan_state_stopped(),
            PlanState::Done => self.plan_state_done(),
            PlanState::Failed => self.plan_state_failed(),
        }
    }

    /// The state of a plan in a line of its own.
    pub fn plan_stands(self, state: PlanState) -> String {
        let state = self.plan_state(state);
        self.plan_state_line(state)
    }

    pub fn came_to(self, end: PlanEnd, tally: &Totals) -> String {
        let (end, money) = (self.plan_end(end), spent(tally.spent.nano, tally.spent.unknown_nano));
        let tally = self.tally(tally);
        self.plan_ended_with(end, &tally, &money)
    }

    /// The counts of a plan's tasks.
    pub fn tally(self, tally: &Totals) -> String {
        let count = |(outcome, count): (CountedOutcome, usize)| match outcome {
            CountedOutcome::Cached => self.tally_cached(count),
            CountedOutcome::Verified => self.tally_verified(count),
            CountedOutcome::Failed => self.tally_failed(count),
            CountedOutcome::Mended => self.tally_mended(count),
            CountedOutcome::Skipped => self.tally_skipped(count),
            CountedOutcome::GivenUp => self.tally_given_up(count),
        };
        self.tally_done(tally.done, tally.tasks, tally.outcomes().map(count).collect::<String>())
    }

    pub fn proof(self, proof: Proof) -> &'static str {
        match proof {
            Proof::Verified => self.proof_verified(),
            Proof::Unverified => self.proof_unverified(),
            Proof::Failed => self.proof_failed(),
        }
    }

    /// Whether a result is proven, and where a cached one comes from.
    pub fn outcome(self, result: &TaskResult) -> String {
        let proof = self.proof(result.proof);
        match &result.cached {
            None if !result.unknown.is_empty() => {
                let commands = result.unknown.join("`, `");
                self.outcome_unknown_commands(proof, &commands)
            }
            None if result.evidence.iter().any(|evidence| evidence.passed_before) => self.passed_before_task(proof),
            None if result.is_only_files() => self.only_files_verified().to_owned(),
            None => proof.to_owned(),
            Some(cached) => {
                let age = self.age(AnswerAge::from_ms(cached.age_ms));
                self.from_the_cache(proof, &age)
            }
        }
    }

    pub fn task_status(self, status: TaskStatus) -> &'static str {
        match status {
            TaskStatus::Planned => self.task_status_planned(),
            TaskStatus::Approved => self.task_status_approved(),
            TaskStatus::Dispatched => self.task_status_dispatched(),
            TaskStatus::Running => self.task_status_running(),
            TaskStatus::Done => self.task_status_done(),
            TaskStatus::Failed => self.task_status_failed(),
            TaskStatus::Skipped => self.task_status_skipped(),
            TaskStatus::Cancelled => self.task_status_cancelled(),
        }
    }

    /// How far a plan is.
    pub fn progress(self, tally: &Totals, failing: usize) -> String {
        let Totals { tasks, done, verified, .. } = tally;
        let text = self.done_verified(done, tasks, verified);
        match failing {
            0 => text,
            _ => text + &self.and_failed(failing),
        }
    }

    /// Money and time of a member that was given one thing to do.
    pub fn member_done(self, name: &str, ok: bool, figures: &str) -> String {
        match ok {
            true => self.done(name, figures),
            false => self.not_done(name, figures),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_and_states_are_the_same_on_screens_and_for_models() {
        let all = Totals {
            tasks: 9,
            done: 3,
            verified: 2,
            failed: 4,
            mended: 1,
            skipped: 1,
            cancelled: 1,
            ..Totals::default()
        };
        let one = Totals { tasks: 1, done: 1, cached: 1, ..Totals::default() };
        for totals in [all, one] {
            assert_eq!(Lang::En.tally(&totals), totals.to_string());
            assert!(!Lang::Zh.tally(&totals).contains(", "));
        }
        use PlanState::{Done, Failed, Paused, Running, Stopped, Waiting};
        for state in [Running, Waiting, Paused, Stopped, Done, Failed] {
            assert_eq!(Lang::En.plan_state(state), state.name());
            assert_ne!(Lang::Zh.plan_state(state), state.name());
        }
    }
}
