//! The life of one plan: proposal → approval → work → report.
//!
//! [`Plan`] keeps a few small ordered sets (what is ready, active, asking, waiting) beside one record per task, so
//! that a step costs what it touches and not what the plan is large. Recovery folds `apply` over the log; `pending`
//! then says what still has to be done.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::apply::shape;
use super::claims::Claims;
use super::event::{About, Approve, Artifact, PlanEnd, PlanProposed, Spent, Tally, TaskResult};
use super::ready::Ready;
use super::revise::Revision;
use super::slot::{Decision, Doom, LeadNote, Slot, State};
use super::{Budget, Draft, Forecast, Graph, Task};
use crate::calling::ending::not_done;
use crate::hash::Hash;
use crate::id::{AgentId, PlanId, QuestionId, SessionId, TurnId};

/// A plan and how far it is. As a snapshot it leaves its shape out, which is made again from what it says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Plan {
    pub(super) proposed: Option<Box<PlanProposed>>,
    #[serde(skip)]
    pub(super) graph: Option<Graph>,
    pub(super) slots: Vec<Slot>,
    /// Tasks whose needs are settled and that may run.
    pub(super) ready: Ready,
    /// Tasks that could run but for a person's word that nobody has asked for yet; and those that have it.
    pub(super) gated: BTreeSet<usize>,
    pub(super) passed: BTreeSet<usize>,
    /// Tasks that will not run, and why: said in events as soon as somebody looks.
    pub(super) doomed: BTreeMap<usize, Doom>,
    /// Tasks that hold one of the places that `max_parallel` gives out.
    pub(super) active: BTreeSet<usize>,
    /// Tasks that were given up or ran out of time, and whose owners have not stopped yet. They keep their paths, and
    /// the plan does not end before they have.
    pub(super) stopping: BTreeSet<usize>,
    /// Tasks whose owners asked something; and those that have their answer and wait for a place.
    pub(super) asking: BTreeSet<usize>,
    pub(super) answered: BTreeSet<usize>,
    /// Tasks that were reported done and wait for a free place to be checked.
    pub(super) unchecked: BTreeSet<usize>,
    /// Tasks whose checks run again once others are through.
    #[serde(default)]
    pub(super) deferred: BTreeSet<usize>,
    /// Paths that nobody else may work on.
    pub(super) claims: Claims,
    /// When something is to be done by the clock.
    pub(super) clock: BTreeSet<(i64, usize)>,
    /// When the whole plan's time is over.
    pub(super) over_at_ms: Option<i64>,
    /// Tasks that failed and wait for the lead's word.
    pub(super) with_lead: BTreeSet<usize>,
    /// Tasks that wait for money; and how often a person has said that there is as much again.
    pub(super) paused: BTreeSet<usize>,
    pub(super) grants: u64,
    /// What was left when somebody last found it too little.
    pub(super) too_little: Option<Budget>,
    /// Questions that people have not answered; and which one is about a task, or about the whole plan.
    pub(super) asked: BTreeMap<QuestionId, About>,
    #[serde(with = "pairs")]
    pub(super) asked_of: BTreeMap<Option<usize>, QuestionId>,
    pub(super) questions: u32,
    /// Tasks of approved waves that are not settled, and tasks of all waves.
    pub(super) open: usize,
    pub(super) unsettled: usize,
    /// Waves that may run.
    pub(super) waves: usize,
    pub(super) tally: Tally,
    pub(super) stopped: bool,
    /// Its time was over when it was stopped: nobody had to say so.
    pub(super) overdue: bool,
    /// The turn that a person's last answer to what it asked counts as.
    pub(super) said: Option<TurnId>,
    /// The user who left while it ran, until something happens to it again.
    #[serde(default)]
    pub(super) paused_by: Option<String>,
    /// A revision of it waits for the user's decision.
    #[serde(default)]
    pub(super) revision: Option<Revision>,
    /// It was stopped for another plan to be made; and that plan, once it is known.
    pub(super) replaced: bool,
    #[serde(default)]
    pub(super) replaced_by: Option<PlanId>,
    pub(super) ended: Option<PlanEnd>,
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

/// A map whose keys JSON does not take for keys.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::id::QuestionId;

    type Map = BTreeMap<Option<usize>, QuestionId>;

    pub(super) fn serialize<S: Serializer>(map: &Map, serializer: S) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map, D::Error> {
        Ok(Vec::<(Option<usize>, QuestionId)>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// The stages of a task's life, by the names everybody uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Written down, not approved.
    Planned,
    /// Approved, not begun.
    Approved,
    /// In its owner's mailbox.
    Dispatched,
    /// Being worked on.
    Running,
    /// Ended well.
    Done,
    /// Ended badly, or between two attempts.
    Failed,
    /// Left out.
    Skipped,
    /// Given up.
    Cancelled,
}

impl Status {
    /// Its name.
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

/// Why a task does not move although nothing is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waits<'p> {
    /// It does not wait.
    No,
    /// For other tasks.
    For(Vec<&'p str>),
    /// For the user to approve the plan, this task, or what its owner is about to do.
    Approval,
    /// For a place, or for a task that owns the same paths.
    Place,
    /// For the answer to what its owner asked.
    Answer(&'p str),
    /// For the next attempt.
    Retry {
        /// When that is.
        at_ms: i64,
    },
    /// For somebody to say what to do about its failure.
    Ruling,
    /// For money.
    Budget,
    /// For its checks.
    Checks,
    /// For a model server that cannot be reached.
    Server,
}

/// One task, for people.
#[derive(Debug, Clone)]
pub struct TaskView<'p> {
    /// As it was written.
    pub task: &'p Task,
    /// What the lead has added since.
    pub notes: &'p [LeadNote],
    /// Its place in the plan.
    pub index: usize,
    /// The stage of its life.
    pub status: Status,
    /// Why it does not move.
    pub waits: Waits<'p>,
    /// Who does it: its owner, unless it was given to somebody else.
    pub member: &'p str,
    /// The agent that has it.
    pub agent: Option<AgentId>,
    /// Which attempt this is, from 1; 0 before the first.
    pub attempt: u32,
    /// What went wrong last.
    pub error: &'p str,
    /// Its owner's last answer and what was seen of the work, also if the task failed or was left out.
    pub result: Option<&'p TaskResult>,
    /// The decision about its last failure.
    pub decision: Option<&'p Decision>,
    /// What it has used so far, as far as it was reported.
    pub spent: Spent,
    /// When it was last given to somebody, and when it was over.
    pub since_ms: (i64, i64),
}

/// What still has to be done in the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Look at what a task left behind.
    Check {
        /// Its place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
    },
    /// Nothing until then.
    Sleep {
        /// When.
        until_ms: i64,
    },
}

impl Plan {
    /// A plan that nobody has proposed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What still has to be done. Letters that follow from events were sent with them; agents that were given a task
    /// go on by themselves.
    pub fn pending(&self) -> Vec<Effect> {
        if self.ended.is_some() {
            return Vec::new();
        }
        let checking = self.active.iter().filter_map(|task| {
            let slot = self.slots.get(*task)?;
            (slot.state == State::Checking).then_some(Effect::Check { task: *task, attempt: slot.attempt })
        });
        let soonest = self.clock.first().map(|(until_ms, _)| *until_ms).into_iter().chain(self.over_at_ms).min();
        let next = soonest.map(|until_ms| Effect::Sleep { until_ms });
        checking.chain(next).collect()
    }

    /// Which plan it is.
    pub fn id(&self) -> Option<PlanId> {
        self.proposed.as_ref().map(|proposed| proposed.plan)
    }

    /// How it was proposed, with the draft as it stands now.
    pub fn proposed(&self) -> Option<&PlanProposed> {
        self.proposed.as_deref()
    }

    /// The session it belongs to.
    pub fn session(&self) -> Option<SessionId> {
        self.proposed.as_ref().map(|proposed| proposed.session)
    }

    /// What it says.
    pub fn draft(&self) -> Option<&Draft> {
        self.proposed.as_ref().map(|proposed| &proposed.draft)
    }

    /// What it was expected to cost.
    pub fn forecast(&self) -> Option<&Forecast> {
        self.proposed.as_ref().map(|proposed| &proposed.forecast)
    }

    /// Its shape.
    pub fn graph(&self) -> Option<&Graph> {
        self.graph.as_ref()
    }

    /// When a person is asked.
    pub fn approve(&self) -> Approve {
        self.proposed.as_ref().map(|proposed| proposed.approve).unwrap_or_default()
    }

    /// How it ended, if it did.
    pub fn ended(&self) -> Option<PlanEnd> {
        self.ended
    }

    /// Whether it ended because a person stopped it, and not because its time was over.
    pub fn is_stopped_by_person(&self) -> bool {
        self.ended == Some(PlanEnd::Stopped) && !self.overdue
    }

    /// The turn that its letters count as written in: whatever was stopped later holds them. A plan that a person has said yes to
    /// since begins anew with that.
    pub fn turn(&self) -> Option<TurnId> {
        self.proposed.as_ref().map(|proposed| TurnId::new(proposed.plan.uuid())).max(self.said)
    }

    /// Whether any of it may run.
    pub fn is_approved(&self) -> bool {
        self.waves > 0
    }

    /// What people are asked about it.
    pub fn asked(&self) -> impl Iterator<Item = (QuestionId, &About)> {
        self.asked.iter().map(|(question, about)| (*question, about))
    }

    /// How many tasks came to what.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Tasks that somebody works on or that code looks at, in the order of the plan.
    pub fn active(&self) -> impl Iterator<Item = usize> {
        self.active.iter().copied()
    }

    /// Whether anything is to come by itself: work, checks, retries, the lead's word.
    pub fn is_moving(&self) -> bool {
        self.ended.is_none()
            && !(self.active.is_empty()
                && self.answered.is_empty()
                && self.asking.is_empty()
                && self.unchecked.is_empty()
                && self.clock.is_empty()
                && self.stopping.is_empty()
                && self.with_lead.is_empty())
    }

    /// One task.
    pub fn task(&self, index: usize) -> Option<TaskView<'_>> {
        let task = self.draft()?.tasks.get(index)?;
        let slot = self.slots.get(index)?;
        Some(TaskView {
            task,
            notes: &slot.notes,
            index,
            status: slot.status(),
            waits: self.waits(index, slot),
            member: slot.member.as_deref().unwrap_or(&task.agent),
            agent: slot.agent,
            attempt: slot.attempt,
            error: &slot.error,
            result: slot.result.as_deref(),
            decision: slot.decision.as_ref(),
            spent: slot.spent,
            since_ms: (slot.assigned_at_ms, slot.ended_at_ms),
        })
    }

    /// All tasks, in the order they were written.
    pub fn tasks(&self) -> impl Iterator<Item = TaskView<'_>> {
        (0..self.slots.len()).filter_map(|index| self.task(index))
    }

    /// What a task builds on: what its needs left behind, in their order, however they ended.
    pub fn upstream(&self, index: usize) -> Vec<(&str, &[Artifact])> {
        let (Some(graph), Some(draft)) = (&self.graph, self.draft()) else { return Vec::new() };
        let left = graph.needs(index).iter().filter_map(|need| {
            let result = self.slots.get(*need)?.result.as_deref()?;
            Some((draft.tasks.get(*need)?.id.as_str(), result.artifacts.as_slice()))
        });
        left.collect()
    }

    /// Why the upstream of a failed condition failed: for a task that is to mend it. An owner that ended its task as not done
    /// gives the reason in its answer, which is part of `upstream`.
    pub fn upstream_error(&self, index: usize) -> Option<(&str, &str)> {
        let (task, _) = self.graph.as_ref()?.condition(index)?;
        let slot = self.slots.get(task)?;
        let is_said = slot.result.as_ref().is_some_and(|result| not_done(&result.output).is_some());
        let failed = matches!(slot.state, State::Failed { .. }) && !is_said;
        failed.then_some((self.draft()?.tasks.get(task)?.id.as_str(), slot.error.as_str()))
    }

    fn waits<'p>(&'p self, index: usize, slot: &'p Slot) -> Waits<'p> {
        match &slot.state {
            State::Held { outage: true, .. } => Waits::Server,
            State::Planned | State::Held { .. } => Waits::Approval,
            State::Approved if slot.open > 0 => {
                let needs = self.graph.as_ref().map_or(&[][..], |graph| graph.needs(index));
                let open =
                    needs.iter().filter(|need| self.slots.get(**need).is_some_and(|slot| !slot.state.is_settled()));
                let tasks = self.draft().map_or(&[][..], |draft| &draft.tasks);
                Waits::For(open.filter_map(|need| tasks.get(*need)).map(|task| task.id.as_str()).collect())
            }
            State::Approved
                if self.gated.contains(&index)
                    || self.asked_of.contains_key(&Some(index))
                    || self.awaits_revision(index) =>
            {
                Waits::Approval
            }
            State::Approved | State::Answered { .. } | State::Unchecked => Waits::Place,
            State::Deferred { after } => {
                let under_way = |task: &&usize| self.slots.get(**task).is_some_and(|slot| slot.state.is_under_way());
                let tasks = self.draft().map_or(&[][..], |draft| &draft.tasks);
                Waits::For(
                    after.iter().filter(under_way).filter_map(|task| Some(tasks.get(*task)?.id.as_str())).collect(),
                )
            }
            State::Asking { question, .. } => Waits::Answer(question),
            State::Checking => Waits::Checks,
            State::Waiting { until_ms } => Waits::Retry { at_ms: *until_ms },
            State::Failed { settled: false } => Waits::Ruling,
            State::Paused => Waits::Budget,
            _ => Waits::No,
        }
    }

    /// An id that follows from what this plan is and how many questions it has asked.
    pub(super) fn next_question(&self, ahead: u32) -> QuestionId {
        let plan = self.id().map(|plan| plan.to_string()).unwrap_or_default();
        let count = (self.questions + ahead).to_string();
        QuestionId::new(Hash::of_fields(&[plan.as_bytes(), b"question", count.as_bytes()]).uuid())
    }

    /// The agent that a member is while it has this task. The same member keeps it over attempts, with what it knows.
    /// Those of neighbouring tasks are neighbours, by the plan's time and the task's place: what is stored together
    /// is found together.
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
