//! The phrases of the stream of events, as people read it.

use max_team_runtime::stream::{BudgetStep, PlanStep, TaskStep};

use super::Lang;

impl Lang {
    pub fn plan_step(self, step: PlanStep) -> &'static str {
        match step {
            PlanStep::Proposed => self.plan_step_proposed(),
            PlanStep::Edited => self.plan_step_edited(),
            PlanStep::EditRefused => self.plan_step_edit_refused(),
            PlanStep::Revised => self.plan_step_revised(),
            PlanStep::RevisionEnded => self.plan_step_revision_ended(),
            PlanStep::Resumed => self.plan_step_resumed(),
            PlanStep::Paused => self.plan_step_paused(),
            PlanStep::Stopping => self.plan_step_stopping(),
            PlanStep::Done => self.plan_step_done(),
            PlanStep::Partial => self.plan_step_partial(),
            PlanStep::Failed => self.plan_step_failed(),
            PlanStep::Stopped => self.plan_step_stopped(),
            PlanStep::Rejected => self.plan_step_rejected(),
            PlanStep::Replaced => self.plan_step_replaced(),
        }
    }

    pub fn task_step(self, step: TaskStep) -> &'static str {
        match step {
            TaskStep::Approved => self.task_step_approved(),
            TaskStep::Dispatched => self.task_step_dispatched(),
            TaskStep::Running => self.task_step_running(),
            TaskStep::Asking => self.task_step_asking(),
            TaskStep::Answered => self.task_step_answered(),
            TaskStep::Waiting => self.task_step_waiting(),
            TaskStep::Checking => self.task_step_checking(),
            TaskStep::Deferred => self.task_step_deferred(),
            TaskStep::Changed => self.task_step_changed(),
            TaskStep::Paused => self.task_step_paused(),
            TaskStep::Done => self.task_step_done(),
            TaskStep::Corrected => self.task_step_corrected(),
            TaskStep::Failed => self.task_step_failed(),
            TaskStep::Ruled => self.task_step_ruled(),
            TaskStep::Skipped => self.task_step_skipped(),
            TaskStep::Cancelled => self.task_step_cancelled(),
            TaskStep::Stopped => self.task_step_stopped(),
        }
    }

    pub fn budget_step(self, step: BudgetStep) -> &'static str {
        match step {
            BudgetStep::Spent => "",
            BudgetStep::Unknown => self.maybe_paid(),
            BudgetStep::Reached => self.budget_reached(),
            BudgetStep::Raised => self.budget_raised(),
        }
    }

    pub fn so_many_tasks(self, count: usize) -> String {
        self.tasks(count)
    }
}
