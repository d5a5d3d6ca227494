//! The state of a plan in one word.

use serde::Serialize;

use super::Plan;
use super::event::PlanEnd;
use super::task_state::TaskState;

/// The state of a plan, as lists show it and programs read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// Work continues without the user.
    Running,
    /// A person must answer, or the model server must come back, before work continues.
    Waiting,
    /// No process runs it; it continues when its session is opened.
    Paused,
    /// A person stopped it, or a limit ended it before all was done.
    Stopped,
    /// All of it is done.
    Done,
    /// It is over, and something failed.
    Failed,
}

impl PlanState {
    /// The name that lists show.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// The state of a plan that is over.
    pub fn of_end(end: PlanEnd) -> Self {
        match end {
            PlanEnd::Done => Self::Done,
            PlanEnd::Partial | PlanEnd::Failed => Self::Failed,
            PlanEnd::Stopped | PlanEnd::Rejected | PlanEnd::Replaced => Self::Stopped,
        }
    }
}

impl Plan {
    /// Its state. `has_owner`: a process has its session open. `is_told_to_stop`: a stop was recorded, whether read or
    /// not.
    pub fn state(&self, has_owner: bool, is_told_to_stop: bool) -> PlanState {
        let is_held =
            |task: &usize| self.slots.get(*task).is_some_and(|slot| matches!(slot.state, TaskState::Held { .. }));
        let holds = !self.queues.active.is_empty() && self.queues.active.iter().all(is_held);
        let is_parked = self.is_parked();
        let is_asked = self.asked().next().is_some() || self.revision().is_some();
        match self.ended() {
            Some(end) => PlanState::of_end(end),
            None if is_told_to_stop || self.is_held() => PlanState::Stopped,
            None if self.is_moving() && !holds && has_owner => PlanState::Running,
            None if self.is_moving() && !holds => PlanState::Paused,
            None if has_owner || is_asked || (holds && !is_parked) => PlanState::Waiting,
            None => PlanState::Paused,
        }
    }
}
