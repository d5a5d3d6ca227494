//! The life of one plan: proposal → approval → work → report.
//!
//! [`Plan`] keeps a few small ordered sets (ready, active, asking, waiting tasks) beside one record per task, so that
//! the cost of a step does not grow with the plan. Recovery folds `apply` over the log; `pending` then lists the
//! effects that are due.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::apply::shape;
use super::deadlines::Deadlines;
use super::event::{
    ApprovalMode, Artifact, Correction, PlanEnd, PlanProposed, PlanQuestion, ResourceUse, TaskErrorKind, TaskResult,
    Totals,
};
use super::path_locks::PathLocks;
use super::questions::OpenQuestions;
use super::queues::TaskQueues;
use super::revise::Revision;
use super::task_state::{Decision, LeadNote, TaskRecord, TaskState};
use super::{Budget, Draft, Forecast, Graph, TaskDraft};
use crate::delegation::ending::not_done;
use crate::hash::Hash;
use crate::id::{AgentId, PlanId, QuestionId, SessionId, TurnId};

/// A plan and its progress. A snapshot omits the graph, which follows from the draft.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Plan {
    pub(super) proposed: Option<Box<PlanProposed>>,
    #[serde(skip)]
    pub(super) graph: Option<Graph>,
    pub(super) slots: Vec<TaskRecord>,
    pub(super) queues: TaskQueues,
    /// Paths that no other task may work on.
    pub(super) claims: PathLocks,
    pub(super) clock: Deadlines,
    pub(super) money: GrantedBudget,
    pub(super) questions: OpenQuestions,
    pub(super) progress: Progress,
    /// The turn id that stands for the time of a person's last answer about the plan.
    pub(super) said: Option<TurnId>,
    /// The user who left while the plan ran, until its next event.
    pub(super) paused_by: Option<String>,
    /// A revision of it waits for the user's decision.
    pub(super) revision: Option<Revision>,
    pub(super) closing: PlanClosing,
}

/// What people have granted beyond the written budget.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GrantedBudget {
    /// How often a person granted the written amount again.
    pub grants: u64,
    /// What was left of the budget when a task last found it too little.
    pub too_little: Option<Budget>,
}

impl GrantedBudget {
    /// If several tasks found too little, the smallest rest counts, so that one of them continues first.
    pub(super) fn keep_smallest_rest(&mut self, left: Option<Budget>) {
        self.too_little = match (self.too_little, left) {
            (Some(one), Some(other)) => {
                Some(Budget { nano: one.nano.min(other.nano), tokens: one.tokens.min(other.tokens), wall_ms: None })
            }
            (one, other) => one.or(other),
        };
    }
}

/// Counters of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Tasks of approved waves that are not settled, and tasks of all waves.
    pub open: usize,
    pub unsettled: usize,
    /// Waves that may run.
    pub waves: usize,
    pub tally: Totals,
    /// Number of results of its tasks, corrections included.
    pub results: u64,
}

/// How a plan ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PlanClosing {
    pub stopped: bool,
    /// It was stopped because its time was over, not by a person.
    pub overdue: bool,
    /// It was stopped to be replaced; and the replacement, once it is known.
    pub replaced: bool,
    pub replaced_by: Option<PlanId>,
    pub end: Option<PlanEnd>,
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut plan = Self::deserialize(deserializer)?;
        plan.graph = plan.draft().and_then(shape);
        Ok(plan)
    }
}

/// Stages of a task, by the names that users and models see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Proposed, not approved.
    Planned,
    /// Approved, not begun.
    Approved,
    /// In its owner's mailbox.
    Dispatched,
    /// Being worked on.
    Running,
    /// The task succeeded.
    Done,
    /// The task failed for good, or waits for a retry.
    Failed,
    Skipped,
    Cancelled,
}

impl TaskStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Approved => "approved",
            Self::Dispatched => "dispatched",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason<'p> {
    /// It does not wait.
    No,
    /// For other tasks.
    For(Vec<&'p str>),
    /// For the user to approve the plan, this task, or what its owner is about to do.
    Approval,
    /// For a free place, or for a task that owns the same paths.
    Place,
    /// For the answer to its owner's question.
    Answer(&'p str),
    /// For the next attempt.
    Retry {
        /// When that attempt begins.
        at_ms: i64,
    },
    /// For a decision about its failure.
    Ruling,
    Budget,
    /// For the user, who stopped the plan, to continue it.
    Stopped,
    /// For its checks.
    Checks,
    /// For a model server that cannot be reached.
    Server,
}

/// One task, for display.
#[derive(Debug, Clone)]
pub struct TaskView<'p> {
    /// The task as written in the draft.
    pub task: &'p TaskDraft,
    /// Notes that the lead has added since.
    pub notes: &'p [LeadNote],
    /// Its place in the plan.
    pub index: usize,
    /// Its current stage.
    pub status: TaskStatus,
    /// What it waits for.
    pub waits: WaitReason<'p>,
    /// The member that does it: the owner in the draft, or the one it was reassigned to.
    pub member: &'p str,
    /// The agent that works on it.
    pub agent: Option<AgentId>,
    /// Number of the attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// The last failure.
    pub error: &'p str,
    /// What is known of its reason besides the text.
    pub error_kind: &'p TaskErrorKind,
    /// The owner's last answer and the evidence, also if the task failed or was skipped.
    pub result: Option<&'p TaskResult>,
    /// The decision about its last failure.
    pub decision: Option<&'p Decision>,
    /// The owner's last answer after the task was over.
    pub correction: Option<Correction>,
    /// What it has used, as far as reported.
    pub spent: ResourceUse,
    /// When it was last assigned, and when it ended.
    pub since_ms: (i64, i64),
}

/// What the driver has to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanEffect {
    /// Run the checks of a task.
    Check {
        /// Its place in the plan.
        task: usize,
        attempt: u32,
    },
    /// Wait until a deadline or a retry.
    Sleep { until_ms: i64 },
}

impl Plan {
    /// A plan before its proposal.
    pub fn new() -> Self {
        Self::default()
    }

    /// The effects that are due. Messages were sent with the events; agents that have a task work without further
    /// effects.
    pub fn pending(&self) -> Vec<PlanEffect> {
        if self.closing.end.is_some() {
            return Vec::new();
        }
        let checking = self.queues.active.iter().filter_map(|task| {
            let slot = self.slots.get(*task)?;
            (slot.state == TaskState::Checking && !self.is_held())
                .then_some(PlanEffect::Check { task: *task, attempt: slot.tries.attempt })
        });
        let next = self.clock.next_ms().map(|until_ms| PlanEffect::Sleep { until_ms });
        checking.chain(next).collect()
    }

    /// Which plan it is.
    pub fn id(&self) -> Option<PlanId> {
        self.proposed.as_ref().map(|proposed| proposed.plan)
    }

    /// The proposal, with the current draft.
    pub fn proposed(&self) -> Option<&PlanProposed> {
        self.proposed.as_deref()
    }

    /// The session it belongs to.
    pub fn session(&self) -> Option<SessionId> {
        self.proposed.as_ref().map(|proposed| proposed.session)
    }

    /// The tasks and limits as they stand.
    pub fn draft(&self) -> Option<&Draft> {
        self.proposed.as_ref().map(|proposed| &proposed.draft)
    }

    /// A task as written in the draft.
    pub(super) fn draft_task(&self, task: usize) -> Option<&TaskDraft> {
        self.draft()?.tasks.get(task)
    }

    /// Expected cost and duration.
    pub fn forecast(&self) -> Option<&Forecast> {
        self.proposed.as_ref().map(|proposed| &proposed.forecast)
    }

    /// The checked order of its tasks.
    pub fn graph(&self) -> Option<&Graph> {
        self.graph.as_ref()
    }

    /// When a person is asked.
    pub fn approve(&self) -> ApprovalMode {
        self.proposed.as_ref().map(|proposed| proposed.approve).unwrap_or_default()
    }

    /// How it ended, if it did.
    pub fn ended(&self) -> Option<PlanEnd> {
        self.closing.end
    }

    /// Whether it ended because a person stopped it, and not because its time was over.
    pub fn is_stopped_by_person(&self) -> bool {
        self.closing.end == Some(PlanEnd::Stopped) && !self.closing.overdue
    }

    /// The turn id that the plan's messages carry: a stop that is newer than this turn holds them back. It is the
    /// proposal, or a person's later approval.
    pub fn turn(&self) -> Option<TurnId> {
        self.proposed.as_ref().map(|proposed| TurnId::new(proposed.plan.uuid())).max(self.said)
    }

    /// Whether the user stopped it, and has neither continued nor cancelled it.
    pub fn is_held(&self) -> bool {
        self.closing.end.is_none() && self.clock.held_at_ms.is_some()
    }

    /// Whether any wave of it may run.
    pub fn is_approved(&self) -> bool {
        self.progress.waves > 0
    }

    /// The open questions to people.
    pub fn asked(&self) -> impl Iterator<Item = (QuestionId, &PlanQuestion)> {
        self.questions.open.iter().map(|(question, (_, about))| (*question, about))
    }

    /// The number of tasks of each outcome.
    pub fn tally(&self) -> Totals {
        self.progress.tally
    }

    /// Tasks that an agent works on or that are being checked, in the order of the plan.
    pub fn active(&self) -> impl Iterator<Item = usize> {
        self.queues.active.iter().copied()
    }

    /// Whether the plan continues without the user: work, checks, retries or a decision of the lead are due.
    pub fn is_moving(&self) -> bool {
        let moves = !self.clock.due.is_empty() || self.queues.is_moving();
        self.closing.end.is_none() && !self.is_held() && moves
    }

    /// The task at a place in the plan.
    pub fn task(&self, index: usize) -> Option<TaskView<'_>> {
        let task = self.draft_task(index)?;
        let slot = self.slots.get(index)?;
        Some(TaskView {
            task,
            notes: &slot.notes,
            index,
            status: slot.status(),
            waits: self.waits(index, slot),
            member: slot.owner.member.as_deref().unwrap_or(&task.agent),
            agent: slot.owner.agent,
            attempt: slot.tries.attempt,
            error: &slot.error,
            error_kind: &slot.error_kind,
            result: slot.outcome.result.as_deref(),
            decision: slot.decision.as_ref(),
            correction: slot.outcome.correction,
            spent: slot.money.spent,
            since_ms: (slot.owner.since_ms, slot.outcome.ended_at_ms),
        })
    }

    /// All tasks, in the order they were written.
    pub fn tasks(&self) -> impl Iterator<Item = TaskView<'_>> {
        (0..self.slots.len()).filter_map(|index| self.task(index))
    }

    /// The outputs of a task's needs, in their order, however those tasks ended.
    pub fn upstream(&self, index: usize) -> Vec<(&str, &[Artifact])> {
        let (Some(graph), Some(draft)) = (&self.graph, self.draft()) else { return Vec::new() };
        let left = graph.needs(index).iter().filter_map(|need| {
            let result = self.slots.get(*need)?.outcome.result.as_deref()?;
            Some((draft.tasks.get(*need)?.id.as_str(), result.artifacts.as_slice()))
        });
        left.collect()
    }

    /// Why the task named in a `failed` condition failed, for the task that handles the failure. An owner that ended
    /// its task as not done gives the reason in its answer, which is part of `upstream`.
    pub fn upstream_error(&self, index: usize) -> Option<(&str, &str)> {
        let (task, _) = self.graph.as_ref()?.condition(index)?;
        let slot = self.slots.get(task)?;
        let is_said = slot.outcome.result.as_ref().is_some_and(|result| not_done(&result.output).is_some());
        let failed = matches!(slot.state, TaskState::Failed { .. }) && !is_said;
        failed.then_some((self.draft_task(task)?.id.as_str(), slot.error.as_str()))
    }

    fn waits<'p>(&'p self, index: usize, slot: &'p TaskRecord) -> WaitReason<'p> {
        match &slot.state {
            TaskState::Held { outage: true, .. } => WaitReason::Server,
            TaskState::Planned | TaskState::Held { .. } => WaitReason::Approval,
            TaskState::Approved if slot.open > 0 => {
                let needs = self.graph.as_ref().map_or(&[][..], |graph| graph.needs(index));
                let open =
                    needs.iter().filter(|need| self.slots.get(**need).is_some_and(|slot| !slot.state.is_settled()));
                let tasks = self.draft().map_or(&[][..], |draft| &draft.tasks);
                WaitReason::For(open.filter_map(|need| tasks.get(*need)).map(|task| task.id.as_str()).collect())
            }
            TaskState::Approved
                if self.queues.gated.contains(&index)
                    || self.questions.is_asked(Some(index))
                    || self.awaits_revision(index) =>
            {
                WaitReason::Approval
            }
            TaskState::Approved | TaskState::Answered { .. } | TaskState::Unchecked => WaitReason::Place,
            TaskState::Deferred { after } => {
                let under_way = |task: &&usize| self.slots.get(**task).is_some_and(|slot| slot.state.is_under_way());
                let tasks = self.draft().map_or(&[][..], |draft| &draft.tasks);
                WaitReason::For(
                    after.iter().filter(under_way).filter_map(|task| Some(tasks.get(*task)?.id.as_str())).collect(),
                )
            }
            TaskState::Asking { question, .. } => WaitReason::Answer(question),
            TaskState::Checking => WaitReason::Checks,
            TaskState::Waiting { until_ms } => WaitReason::Retry { at_ms: *until_ms },
            TaskState::Failed { settled: false } => WaitReason::Ruling,
            TaskState::Paused if self.is_held() => WaitReason::Stopped,
            TaskState::Paused => WaitReason::Budget,
            _ => WaitReason::No,
        }
    }

    pub(super) fn next_question(&self, ahead: u32) -> QuestionId {
        self.questions.next_id(self.id(), ahead)
    }

    /// The id of the agent that does a task as this member. The same member keeps its agent, and so its context, over
    /// attempts. The ids of neighbouring tasks are close to each other (plan's time, then the task's place), so that
    /// the journal stores their entries together.
    pub(super) fn agent_for(&self, task: &str, member: &str, model: Option<&str>) -> AgentId {
        let plan = self.id().map(|plan| plan.to_string()).unwrap_or_default();
        let fields = [plan.as_bytes(), task.as_bytes(), member.as_bytes(), model.unwrap_or_default().as_bytes()];
        let [.., a, b, c, d, e, f, g, h] = *Hash::of_fields(&fields).uuid().as_bytes();
        let begun = self.id().map(|plan| *plan.uuid().as_bytes()).unwrap_or_default();
        let [t0, t1, t2, t3, t4, t5, ..] = begun;
        let place = self.graph().and_then(|graph| graph.index(task)).unwrap_or_default();
        let [.., high, low] = place.to_be_bytes();
        AgentId::new(
            uuid::Builder::from_custom_bytes([t0, t1, t2, t3, t4, t5, high, low, a, b, c, d, e, f, g, h]).into_uuid(),
        )
    }
}
