//! The phrases of the stream of events, as people read it.

use max_team_runtime::stream::{BudgetStep, PlanStep, StepText, TaskStep};

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

    /// A step of an agent, a question, or the text of a model.
    pub fn step(self, step: &StepText) -> String {
        match step {
            StepText::Text(text) => text.clone(),
            StepText::SessionBegins { cwd } => self.step_session_begins(cwd),
            StepText::Forked { session, seq } => self.step_forked(session, seq),
            StepText::Nudged(text) => self.step_nudged(text),
            StepText::Stopped { by } => self.stopped_by(by),
            StepText::Steered(text) => self.step_steered(text),
            StepText::TaskDrafted(id) => self.step_task_drafted(id),
            StepText::CompactionAsked => self.step_compaction_asked().to_owned(),
            StepText::Compacted { before, after } => self.step_compacted(before, after),
            StepText::CompactionFailed(why) => self.step_compaction_failed(why),
            StepText::Uncompacted => self.step_uncompacted().to_owned(),
            StepText::Requested { kind, to } => self.step_requested(kind.name(), to),
            StepText::Responded(kind) => self.step_responded(kind.name()),
            StepText::Unanswered => self.step_unanswered().to_owned(),
            StepText::MessageRefused { kind, from, why } => self.step_message_refused(kind.name(), from, why),
            StepText::Ended { by, reason, forced: false } => self.step_ended(self.person(by), reason),
            StepText::Ended { by, reason, .. } => self.step_ended_by_force(self.person(by), reason),
            StepText::ReviewBegun => self.step_review_begun().to_owned(),
            StepText::Granted { asker } => self.step_granted(asker),
            StepText::CommandBegun { id, name } => self.step_command_begun(id, name),
            StepText::CommandStopped { id } => self.step_command_stopped(id),
            StepText::CommandOver { id } => self.step_command_over(id),
            StepText::ItemAdded { id, subject } => self.step_item_added(id, subject),
            StepText::ItemWritten { id, subject } => self.step_item_written(id, subject),
            StepText::ItemMoved { id, status, owner } => {
                let owner = if owner.is_empty() { self.nobody() } else { owner };
                self.step_item_moved(id, self.list_status(*status), owner)
            }
            StepText::FilesRestored { failed } => self.step_files_restored(failed),
            StepText::FileMoved(file) => self.moved_away(std::slice::from_ref(file)),
            StepText::PlanAsks(about) => self.about_plan(about),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_said_as_programs_read_them() {
        let steps = [
            StepText::SessionBegins { cwd: "/p".to_owned() },
            StepText::Compacted { before: 9, after: 3 },
            StepText::Unanswered,
            StepText::CommandOver { id: "sh-1".to_owned() },
            StepText::ReviewBegun,
        ];
        for step in steps {
            assert_eq!(Lang::En.step(&step), step.to_string());
            assert_ne!(Lang::Zh.step(&step), step.to_string());
            assert_eq!(serde_json::to_value(&step).unwrap(), step.to_string());
        }
        // Text of a model stays as it is.
        assert_eq!(Lang::Zh.step(&StepText::from("sh-1 is over".to_owned())), "sh-1 is over");
    }
}
