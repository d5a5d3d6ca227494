//! The record of one task in a plan, and the states of a task.
//!
//! Only data: `decide` and `advance` decide the transitions, `apply` folds them.

use serde::{Deserialize, Serialize};

use super::event::{Correction, ResourceUse, Ruling, SkipReason, TaskAssigned, TaskErrorKind, TaskFailed, TaskResult};
use super::state::TaskStatus;
use crate::hash::Hash;
use crate::id::{AgentId, EnvelopeId};
use crate::ledger::Charge;

/// Why a task will not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SkipCause {
    Skip(SkipReason, String),
    /// Only in older snapshots.
    Cancel(String),
    GiveUp(TaskErrorKind),
}

/// The record of one task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskRecord {
    pub state: TaskState,
    /// Needs that are not settled.
    pub open: usize,
    pub owner: TaskOwner,
    pub tries: Attempts,
    /// Text for its next owner besides the task.
    pub note: String,
    pub error: String,
    /// What is known of the reason for the error besides its text.
    #[serde(default, skip_serializing_if = "TaskErrorKind::is_text")]
    pub error_kind: TaskErrorKind,
    pub output: String,
    /// Commands of its last attempt whose outcome is unknown.
    pub unknown: Vec<String>,
    pub outcome: TaskOutcome,
    pub baseline: Baseline,
    pub money: TaskMoney,
    /// The message of its last question: a repeated delivery is no second question.
    #[serde(rename = "letter")]
    pub envelope: Option<EnvelopeId>,
    /// Notes that the lead has added to the approved text.
    pub notes: Vec<LeadNote>,
    /// The decision about its last failure.
    pub decision: Option<Decision>,
}

/// The agent that does a task, or did it last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskOwner {
    pub agent: Option<AgentId>,
    pub member: Option<String>,
    pub model: Option<String>,
    pub since_ms: i64,
}

/// How often a task was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Attempts {
    pub attempt: u32,
    /// Failures since the last decision about a failure.
    pub failures: u32,
    /// Decisions to try again.
    pub retried: u32,
    /// A person fixed it: if its checks fail again, the person is asked, without an automatic retry.
    pub by_hand: bool,
    /// The checks of this attempt were deferred once.
    pub deferred: bool,
}

/// The result of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskOutcome {
    pub result: Option<Box<TaskResult>>,
    /// The number of its result among the results of the plan, and how many there were when its owner was last told.
    pub number: u64,
    pub told: u64,
    /// The owner's last answer after the task was over.
    pub correction: Option<Correction>,
    /// It failed, and another task made up for it.
    pub mended: bool,
    pub ended_at_ms: i64,
}

/// The state when a task was first assigned: all its attempts together are compared with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Baseline {
    /// Hashes of the declared files.
    pub before: Vec<Option<Hash>>,
    /// Snapshot of the working tree.
    pub tree: Option<Hash>,
    /// Checks that passed before the owner could change anything.
    pub passed: Vec<String>,
}

/// What a task has used, and may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskMoney {
    pub spent: ResourceUse,
    /// Whether its own budget is used up; and how often a person granted the written amount again.
    pub own_short: bool,
    pub grants: u64,
}

/// A decision about a failed task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What was decided.
    pub ruling: Ruling,
    /// The decider's name.
    pub by: String,
    /// The decider's note, if there is one.
    pub note: String,
}

impl Decision {
    /// The decision as text, for readers of the task's result.
    pub fn as_text(&self) -> String {
        let (by, name, note) = (&self.by, self.ruling.name(), self.note.trim());
        if note.is_empty() { format!("{by} decided: {name}") } else { format!("{by} decided: {name}, {note}") }
    }
}

/// A note that a lead has added to a task after its plan was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeadNote {
    /// The lead's name.
    pub by: String,
    pub text: String,
}

/// The state of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TaskState {
    #[default]
    Planned,
    Approved,
    /// In its owner's mailbox.
    Dispatched {
        deadline_ms: i64,
    },
    Running {
        deadline_ms: i64,
    },
    /// The owner waits for a person or for the model server; its time does not run.
    Held {
        left_ms: i64,
        #[serde(default)]
        outage: bool,
    },
    /// The owner asked something: it keeps its paths, but no place.
    Asking {
        question: String,
        #[serde(rename = "letter")]
        envelope: EnvelopeId,
        left_ms: i64,
    },
    /// The owner's question is answered; the task waits for a free place.
    Answered {
        answer: String,
        unanswered: bool,
        #[serde(rename = "letter")]
        envelope: EnvelopeId,
        left_ms: i64,
    },
    /// Reported done, and waiting for a free place to be checked.
    Unchecked,
    /// Its checks failed while these tasks changed files: they run again when those tasks have ended.
    Deferred {
        after: Vec<usize>,
    },
    /// Reported done; its checks run.
    Checking,
    /// It failed and will be retried automatically.
    Waiting {
        until_ms: i64,
    },
    /// It failed for good; `settled` once no decision about it is open.
    Failed {
        settled: bool,
    },
    /// It waits for budget.
    Paused,
    Done,
    Skipped(SkipReason),
    Cancelled,
}

impl TaskState {
    /// Whether an agent works on the task.
    pub(super) fn is_at_work(&self) -> bool {
        matches!(
            self,
            Self::Dispatched { .. }
                | Self::Running { .. }
                | Self::Held { .. }
                | Self::Asking { .. }
                | Self::Answered { .. }
        )
    }

    /// Whether the task may still change files without a decision of a person: it is being worked on, checked, or tried
    /// again.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_at_work() || matches!(self, Self::Unchecked | Self::Checking | Self::Waiting { .. })
    }

    pub(super) fn is_settled(&self) -> bool {
        matches!(self, Self::Done | Self::Skipped(_) | Self::Cancelled | Self::Failed { settled: true })
    }
}

impl TaskRecord {
    pub(super) fn status(&self) -> TaskStatus {
        match &self.state {
            TaskState::Planned => TaskStatus::Planned,
            TaskState::Approved => TaskStatus::Approved,
            TaskState::Dispatched { .. } => TaskStatus::Dispatched,
            TaskState::Unchecked if self.tries.by_hand => TaskStatus::Failed,
            TaskState::Running { .. }
            | TaskState::Held { .. }
            | TaskState::Asking { .. }
            | TaskState::Answered { .. }
            | TaskState::Unchecked
            | TaskState::Deferred { .. }
            | TaskState::Checking
            | TaskState::Paused => TaskStatus::Running,
            TaskState::Waiting { .. } | TaskState::Failed { .. } => TaskStatus::Failed,
            TaskState::Done => TaskStatus::Done,
            TaskState::Skipped(_) => TaskStatus::Skipped,
            TaskState::Cancelled => TaskStatus::Cancelled,
        }
    }

    /// Assigns the task. Its owner knows the first `told` results of the plan.
    pub(super) fn assign(&mut self, assigned: &TaskAssigned, told: u64, at_ms: i64) {
        self.state = TaskState::Dispatched { deadline_ms: assigned.deadline_ms };
        self.owner = TaskOwner {
            agent: Some(assigned.agent),
            member: Some(assigned.member.clone()),
            model: assigned.model.clone(),
            since_ms: at_ms,
        };
        self.tries = Attempts { attempt: assigned.attempt, by_hand: false, deferred: false, ..self.tries };
        (self.outcome.told, self.outcome.correction) = (told, None);
        if self.baseline.before.is_empty() {
            self.baseline.before.clone_from(&assigned.before);
        }
        self.baseline.tree = self.baseline.tree.or(assigned.tree);
        self.output.clear();
        self.decision = None;
    }

    /// An attempt failed.
    pub(super) fn fail(&mut self, failed: &TaskFailed, at_ms: i64) {
        self.tries.failures += 1;
        self.error.clone_from(&failed.error);
        self.error_kind = failed.kind();
        self.note = format!("The last attempt failed: {}", failed.error);
        self.outcome.ended_at_ms = at_ms;
        // A check that failed here can fail: if it passes later, that proves something.
        let has_failed = |line: &String| failed.evidence.iter().any(|found| !found.ok && found.what == *line);
        self.baseline.passed.retain(|line| !has_failed(line));
        if !failed.output.is_empty() {
            self.output.clone_from(&failed.output);
        }
        // The last answer stays, even if this attempt gave none.
        if let Some(result) = TaskResult::of_failure(failed, &self.unknown) {
            self.outcome.result = Some(Box::new(result));
        }
    }

    /// Prepares another attempt, perhaps by another owner.
    pub(super) fn retry(&mut self, agent: Option<&String>, model: Option<&String>, note: &str) {
        self.tries.failures = 0;
        self.tries.retried += 1;
        self.owner.member = agent.cloned().or(self.owner.member.take());
        self.owner.model = model.cloned().or(self.owner.model.take());
        if !note.is_empty() {
            self.note = format!("{}\n{note}", self.note);
        }
    }

    pub(super) fn is_verified(&self) -> bool {
        self.outcome.result.as_ref().is_some_and(|result| result.is_verified())
    }

    /// What a corrected result cost beyond the one before it.
    pub(super) fn newly_spent(&self, result: &TaskResult) -> ResourceUse {
        let before = self.outcome.result.as_ref().map(|known| known.spent);
        result.spent.beyond(before.unwrap_or_default())
    }
}

impl ResourceUse {
    /// Adds what calls of a model used.
    pub fn charge(&mut self, charge: &Charge) {
        let Charge { nano, unknown_nano, usage, .. } = *charge;
        self.add(Self { nano, unknown_nano, usage, ms: 0 });
    }

    /// Adds what something else used.
    pub fn add(&mut self, other: Self) {
        self.nano = self.nano.saturating_add(other.nano);
        self.unknown_nano = self.unknown_nano.saturating_add(other.unknown_nano);
        self.usage += other.usage;
        self.ms = self.ms.saturating_add(other.ms);
    }

    /// What this has used beyond another.
    #[must_use]
    pub fn beyond(self, other: Self) -> Self {
        let mut more = self;
        more.nano = self.nano.saturating_sub(other.nano);
        more.unknown_nano = self.unknown_nano.saturating_sub(other.unknown_nano);
        more.ms = self.ms.saturating_sub(other.ms);
        more.usage.input = self.usage.input.saturating_sub(other.usage.input);
        more.usage.output = self.usage.output.saturating_sub(other.usage.output);
        more.usage.cache_read = self.usage.cache_read.saturating_sub(other.usage.cache_read);
        more.usage.cache_write = self.usage.cache_write.saturating_sub(other.usage.cache_write);
        more
    }
}
