//! The phrases of the commands that work on the journal alone.
//!
//! What an agent, a file or a check says is passed through as it is.

use max_team_core::event::ToolOutcome;
use max_team_core::id::{PlanId, SessionId};
use max_team_core::plan::TaskStatus;
use max_team_core::plan::event::{PlanEnd, PlanQuestion, Totals};
use max_team_core::policy::{GrantScope, ProtectedReason};
use max_team_core::status::{AgentStage, BlockCause, FailureCause, IdleReason, SuspendedWork, WaitTarget};
use max_team_runtime::storage::WorkerInfo;
use max_team_runtime::{AnswerWord, PersonReply, SpanKind};
use max_team_tools::shell::JobNote;

use super::{Lang, heads};

/// The column by which costs are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostBy {
    Agent,
    Task,
    Model,
    Day,
    Session,
}

impl Lang {
    /// The commands that decide about a failed task.
    pub fn failure_choices(self, id: &str, task: &str) -> String {
        let choices = [
            ("--retry [--by MEMBER] [--with MODEL] [-m NOTE]", self.choice_retry()),
            ("--skip", self.choice_skip()),
            ("--fixed", self.choice_fixed()),
            ("--accept", self.choice_accept()),
            ("--give-up", self.choice_give_up()),
        ];
        let head = self.failed_task_choices(task);
        let row = |(flag, words): &(&str, &str)| format!("  max-team approve {id} {flag}  # {words}");
        [head].into_iter().chain(choices.iter().map(row)).collect::<Vec<_>>().join("\n")
    }

    pub fn people_heads(self) -> [&'static str; 11] {
        heads(self.people_heads_row())
    }

    pub fn plan_heads(self) -> [&'static str; 6] {
        heads(self.plan_heads_row())
    }

    pub fn tool_heads(self) -> [&'static str; 3] {
        heads(self.tool_heads_row())
    }

    pub fn agent_heads(self) -> [&'static str; 5] {
        heads(self.agent_heads_row())
    }

    pub fn model_heads(self) -> [&'static str; 5] {
        heads(self.model_heads_row())
    }

    /// The words before the lines of `skills show`.
    pub fn skill_rows(self) -> [&'static str; 13] {
        heads(self.skill_rows_row())
    }

    /// The words before the lines of `permissions why`.
    pub fn why_heads(self) -> [&'static str; 6] {
        heads(self.why_heads_row())
    }

    /// Why files are protected.
    pub fn reach(self, reach: ProtectedReason) -> &'static str {
        match reach {
            ProtectedReason::Runs => self.reach_runs(),
            ProtectedReason::Instructs => self.reach_instructs(),
            ProtectedReason::Configures => self.reach_configures(),
            ProtectedReason::Records | ProtectedReason::Given => self.reach_records(),
        }
    }

    pub fn cost_heads(self, by: CostBy) -> [&'static str; 6] {
        let by = match by {
            CostBy::Agent => self.cost_by_agent(),
            CostBy::Task => self.cost_by_task(),
            CostBy::Model => self.cost_by_model(),
            CostBy::Day => self.cost_by_day(),
            CostBy::Session => self.cost_by_session(),
        };
        let [calls, input, cached, output, cost] = heads(self.cost_figures_row());
        [by, calls, input, cached, output, cost]
    }

    /// The status of a session in a line.
    pub fn session_status(self, working: &[String], questions: usize) -> String {
        let told = match working {
            [] => self.no_agent_works().to_owned(),
            names => self.agents_at_work(names.join(self.comma())),
        };
        if questions == 0 { told } else { [told, self.questions_open(questions)].join(self.semicolon()) }
    }

    pub fn person_state(self, state: AgentStage, reason: Option<&IdleReason>) -> &'static str {
        // An agent that the user did not stop has finished, or nothing runs its session.
        match reason {
            Some(IdleReason::Done) if state == AgentStage::Stopped => return self.state_finished(),
            Some(IdleReason::Blocked(BlockCause::NoProcess { left: None, .. })) => return self.state_not_running(),
            _ => {}
        }
        match state {
            AgentStage::Created => self.state_created(),
            AgentStage::Starting => self.state_starting(),
            AgentStage::Ready => self.state_ready(),
            AgentStage::Busy => self.state_busy(),
            AgentStage::Stopped => self.state_stopped(),
        }
    }

    /// Why an agent does nothing.
    pub fn idle_because(self, reason: &IdleReason) -> String {
        match reason {
            IdleReason::Done => self.done_word().to_owned(),
            IdleReason::WaitingFor(targets) => {
                let targets: Vec<&str> = targets.0.iter().map(|target| self.wait_target(target)).collect();
                self.waiting_for_thing(targets.join(self.comma()))
            }
            IdleReason::Blocked(cause) => self.block_cause(cause),
            IdleReason::Failed(cause) => self.failed_with(self.failure_cause(cause), false),
        }
    }

    fn wait_target(self, target: &WaitTarget) -> &str {
        match target {
            WaitTarget::You => self.target_you(),
            WaitTarget::Lead => self.target_lead(),
            WaitTarget::User => self.target_user(),
            WaitTarget::Place => self.target_place(),
            WaitTarget::Server => self.target_server(),
            WaitTarget::Worktrees => self.target_worktrees(),
            WaitTarget::Named(name) => name,
        }
    }

    fn block_cause(self, cause: &BlockCause) -> String {
        match cause {
            BlockCause::Budget => self.budget_used_up().to_owned(),
            BlockCause::Decision(error) => self.needs_decision(error),
            BlockCause::Messages(count) => self.messages_wait(count),
            BlockCause::NoClaims(name) => self.stopped_takes_no_tasks(name),
            BlockCause::NoProcess { session, left } => {
                let parked = self.no_process_runs(session);
                let left = left.as_ref().map(|left| match left {
                    SuspendedWork::Messages(count) => self.messages_wait(count),
                    SuspendedWork::NoClaims(name) => self.stopped_takes_no_tasks(name),
                    SuspendedWork::Stopped => self.cause_stopped().to_owned(),
                    SuspendedWork::Team => self.team_to_begin().to_owned(),
                });
                left.into_iter().chain([parked]).collect::<Vec<_>>().join(self.semicolon())
            }
            BlockCause::Other(text) => text.clone(),
        }
    }

    pub fn failure_cause(self, cause: &FailureCause) -> &str {
        match cause {
            FailureCause::Stopped => self.cause_stopped(),
            FailureCause::Refused => self.cause_refused(),
            FailureCause::Empty => self.cause_empty(),
            FailureCause::Unstructured => self.cause_unstructured(),
            FailureCause::Looping => self.cause_looping(),
            FailureCause::Rounds => self.cause_rounds(),
            FailureCause::Budget => self.budget_used_up(),
            FailureCause::Truncated => self.cause_truncated(),
            FailureCause::Lost => self.cause_lost(),
            FailureCause::Error(detail) => detail,
        }
    }

    /// How a command in the background is.
    pub fn job_state(self, job: &JobNote) -> &'static str {
        if job.over.is_some() { self.job_ended() } else { self.job_running() }
    }

    pub fn calling(self, model: &str, attempt: u32) -> String {
        match attempt {
            0 | 1 => self.calling_model(model),
            _ => self.calling_attempt(model, attempt),
        }
    }

    pub fn span(self, kind: SpanKind) -> &'static str {
        match kind {
            SpanKind::Session => self.span_session(),
            SpanKind::Plan => self.span_plan(),
            SpanKind::Task => self.span_task(),
            SpanKind::Attempt => self.span_attempt(),
            SpanKind::Turn => self.span_turn(),
            SpanKind::Model => self.span_model(),
            SpanKind::Tool => self.span_tool(),
            SpanKind::Question => self.span_question(),
            SpanKind::Compaction => self.span_compaction(),
        }
    }

    pub fn call_failed(self, key: &str, ending: ToolOutcome) -> String {
        let how = match ending {
            ToolOutcome::Refused => self.refused(),
            ToolOutcome::Interrupted => self.stopped_row(),
            ToolOutcome::Unknown => self.outcome_unknown(),
            ToolOutcome::Ran | ToolOutcome::Invalid => return self.call_without_result(key),
        };
        self.call_failed_because(key, how)
    }

    pub fn question_answered(self, yes: bool, by: &str) -> String {
        let word = if yes { self.yes_word() } else { self.no_word() };
        self.answered_word_by(word, self.person(by))
    }

    pub fn task_after(self, task: &str, agent: &str, needs: &str) -> String {
        match needs {
            "" => format!("{task} ({agent})"),
            _ => self.after(task, agent, needs),
        }
    }

    /// Since when who asks, in which session.
    pub fn asked_since(self, age: &str, who: &str, session: Option<&str>) -> String {
        match session {
            Some(session) => self.since_session(age, who, session),
            None => self.since(age, who),
        }
    }

    pub fn said_already(self, by: &str, said: AnswerWord, at: &str, can_go: bool) -> String {
        let back = if can_go { self.deny_takes_back() } else { "" };
        self.answered_but_unread(self.person(by), self.answer_word(said), at, back)
    }

    /// An answer, in a word or two.
    pub fn reply(self, reply: &PersonReply) -> String {
        match (self, reply) {
            (Self::En, reply) => reply.word().name().to_owned(),
            (Self::Zh, PersonReply::Plan(say)) => self.said(say),
            (Self::Zh, PersonReply::Agent(answer)) => {
                if answer.allow { self.yes_word() } else { self.no_word() }.to_owned()
            }
        }
    }

    /// The rules that were allowed with an answer, how long they hold, and for which agents.
    pub fn allowed_from_now_on(self, rules: &str, until: GrantScope, names: &[String]) -> String {
        let (names, others) = (names.join(", "), until == GrantScope::Repository);
        let later = if others { self.for_all_agents_later() } else { "" };
        let long = self.how_long(until);
        self.rules_allowed_from_now_on(long, rules, &names, later)
    }

    pub fn how_long(self, until: GrantScope) -> &'static str {
        match until {
            GrantScope::Once => self.how_long_once(),
            GrantScope::Task => self.how_long_task(),
            GrantScope::Session => self.how_long_session(),
            GrantScope::Repository => self.how_long_repository(),
        }
    }

    /// A question on the user's screen was answered elsewhere.
    pub fn answered_elsewhere(self, allow: bool, asked: &str, by: &str) -> String {
        match allow {
            true => self.answered_elsewhere_yes(self.person(by), asked),
            false => self.answered_elsewhere_no(self.person(by), asked),
        }
    }

    /// The rules that were allowed with it.
    pub fn and_allowed(self, rules: &str, until: GrantScope) -> String {
        let long = self.how_long(until);
        self.also_allowed_from_now_on(long, rules)
    }

    /// What a plan asks, in one line.
    pub fn about_plan(self, about: &PlanQuestion) -> String {
        match about {
            PlanQuestion::Proposal => self.may_this_plan_run().to_owned(),
            PlanQuestion::Rest => self.ask_after_first_wave().to_owned(),
            PlanQuestion::Start { task } => self.may_task_start(task),
            PlanQuestion::Failure { task, error, kind } => {
                let error = self.task_error(error, kind);
                self.plan_task_failed(task, &error)
            }
            PlanQuestion::Budget => self.ask_for_more_budget().to_owned(),
        }
    }

    /// What is said where no process runs the session.
    pub fn noted(self, session: Option<SessionId>) -> String {
        match session {
            Some(session) => self.answer_noted_no_process(session),
            None => self.answer_noted().to_owned(),
        }
    }

    /// That a plan is stopped while no process has its session open.
    pub fn plan_stop_noted(self, session: Option<SessionId>) -> String {
        let session = session.map(|session| session.to_string()).unwrap_or_default();
        self.stopped_no_task_begins(&session)
    }

    /// That a task is stopped while no process has its session open.
    pub fn task_stop_noted(self, task: &str, session: Option<SessionId>) -> String {
        let session = session.map(|session| session.to_string()).unwrap_or_default();
        self.task_is_given_up(task, &session)
    }

    /// A command was stored, but the process that runs the session has not read it yet.
    pub fn unheard(self, owner: &WorkerInfo) -> String {
        let (pid, what) = (owner.pid, &owner.what);
        self.answer_noted_for_process(pid, what)
    }

    pub fn plan_over(self, plan: PlanId, end: PlanEnd) -> String {
        let end = self.plan_end(end);
        self.plan_is_over(plan, end)
    }

    pub fn task_over(self, name: &str, status: TaskStatus) -> String {
        let status = self.task_status(status);
        self.task_is_over(name, status)
    }

    pub fn stopped_with(self, end: PlanEnd, tally: &Totals) -> String {
        let end = self.plan_end(end);
        let tally = self.tally(tally);
        self.ended_with_totals(end, &tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_states_are_those_of_the_journal() {
        use AgentStage::{Busy, Created, Ready, Starting, Stopped};
        for stage in [Created, Starting, Ready, Busy, Stopped] {
            assert_eq!(Lang::En.person_state(stage, None), stage.name());
            assert_ne!(Lang::Zh.person_state(stage, None), stage.name());
        }
        for until in [GrantScope::Once, GrantScope::Task, GrantScope::Session, GrantScope::Repository] {
            assert_eq!(Lang::En.how_long(until), until.name());
            assert_ne!(Lang::Zh.how_long(until), until.name());
        }
    }
}
