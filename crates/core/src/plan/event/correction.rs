//! The answer of a task's owner that was asked again after its task was over.

use serde::{Deserialize, Serialize};

use super::{PlanEnded, ResourceUse, TaskResult};

/// The owner of a task that is over has answered again. Also the stream of an ended plan takes this event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskCorrected {
    pub task: String,
    /// The attempt that the answer corrects.
    pub attempt: u32,
    /// The result of the task from now on.
    pub result: TaskResult,
    /// The answer itself.
    pub correction: Correction,
    /// If the plan has ended: its end, with the counts from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<PlanEnded>,
}

/// The last answer of a task's owner after the task was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// What this answer alone used.
    pub spent: ResourceUse,
    /// Whether the task's checks ran after it.
    pub checks: Recheck,
    /// Whether the answer begins with `NOT DONE:`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_done: bool,
}

/// Whether the checks of a task ran after a correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recheck {
    /// They ran, or the task has none.
    Ran,
    /// The owner changed nothing: the evidence still holds.
    Unneeded,
    /// The changes are in a worktree and wait for the user.
    Worktree,
    /// The plan was stopped or never approved: it starts no command.
    Stopped,
    /// The user stopped the correction or its checks.
    Interrupted,
}

impl Recheck {
    /// The reason why the checks did not run although files may have changed.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Ran | Self::Unneeded => None,
            Self::Worktree => Some("its changes are in a worktree and wait for the user"),
            Self::Stopped => Some("the plan was stopped or never approved"),
            Self::Interrupted => Some("it was stopped"),
        }
    }
}
