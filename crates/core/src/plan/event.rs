//! What can happen to a plan: the facts of a `plan/<id>` stream.
//!
//! Like all events these are forever: fields are added with defaults and never change what they mean.

mod tally;
mod task;

pub use tally::{Outcome, Tally};
pub use task::{
    Artifact, ArtifactType, Cached, Cause, Evidence, Proof, Ruling, SkipReason, Spent, TaskAnswered, TaskAsked,
    TaskAssigned, TaskCancelled, TaskChanged, TaskDeferred, TaskDone, TaskFailed, TaskHeld, TaskMarked, TaskPaused,
    TaskQueued, TaskReported, TaskResult, TaskResumed, TaskRuled, TaskSkipped, TaskStarted, TaskStopped,
};

use serde::{Deserialize, Serialize};

use super::{Draft, Edit, Forecast};
use crate::id::{AgentId, PlanId, QuestionId, SessionId, TurnId};
use crate::message::Principal;
use crate::rewind::MovedFile;

/// When a person is asked while a plan is approved and carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// Never: the plan runs as proposed, and what lies outside its members' constraints is refused. A plan that does
    /// something risky waits.
    Never,
    /// The plan as a whole; after that only what lies outside it.
    #[default]
    Plan,
    /// The plan, and then every change.
    Each,
    /// Only plans that do something risky.
    Risky,
}

impl Approve {
    /// All of them with the names users write.
    pub const NAMES: [(&str, Approve); 4] =
        [("never", Approve::Never), ("plan", Approve::Plan), ("each", Approve::Each), ("risky", Approve::Risky)];

    /// The name users write.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, approve)| *approve == self).map_or("plan", |(name, _)| name)
    }
}

/// A plan is put before the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanProposed {
    /// Which.
    pub plan: PlanId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The session's lead, who is told how it goes.
    pub lead: AgentId,
    /// What it says.
    pub draft: Draft,
    /// What it is expected to cost and take.
    pub forecast: Forecast,
    /// When a person is asked.
    pub approve: Approve,
    /// Tasks that may run at once.
    pub max_parallel: u32,
    /// Whose idea it is: an agent's name, or a file.
    pub by: String,
    /// The plan it takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revises: Option<PlanId>,
    /// What that one had already finished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<Carried>,
    /// What a person should look at twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
}

impl PlanProposed {
    /// Whether the plan waits only because of its risks: the setting would approve it without them.
    pub fn is_held_by_risks(&self) -> bool {
        !self.risks.is_empty() && matches!(self.approve, Approve::Never | Approve::Risky)
    }

    /// The setting that approves the plan without a person, if one does. A risky plan always waits for a person.
    pub fn approving_rule(&self) -> Option<&'static str> {
        match self.approve {
            Approve::Never if self.risks.is_empty() => Some("`--approve never`"),
            Approve::Risky if self.risks.is_empty() => Some("`--approve risky`: nothing risky in it"),
            _ => None,
        }
    }
}

/// A finished task that a revised plan takes over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// The task.
    pub task: String,
    /// What came of it.
    pub result: TaskResult,
}

/// The user changed it before saying yes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanEdited {
    /// What it says now.
    pub draft: Draft,
    /// What it is now expected to cost.
    pub forecast: Forecast,
    /// What a person should look at twice now; `None`: the same as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risks: Option<Vec<String>>,
    /// Who changed it.
    pub by: Principal,
}

/// A change that could not be made: the plan is what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditRefused {
    /// The question it was made in answer to.
    pub question: QuestionId,
    /// Why.
    pub error: String,
    /// Whose it was.
    pub by: Principal,
}

/// Questions that nobody needs an answer to any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanUnasked {
    /// Which.
    pub questions: Vec<QuestionId>,
    /// The plan that was proposed instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<PlanId>,
}

/// Another plan was proposed in this one's place. A plan that still waits for approval ends with it; one that runs goes on,
/// without the tasks that the user has still to decide about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRevised {
    /// The plan that was proposed.
    pub revision: PlanId,
    /// Tasks that had not begun and that the revision drops or changes: they do not begin before the user has decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
}

/// The revision of a running plan was not approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionEnded {
    /// The plan that was proposed.
    pub revision: PlanId,
    /// Whether the user asked for another revision: held tasks wait until the lead has proposed one, or has not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reworked: bool,
}

/// What a person is asked about a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Whether it may run.
    Proposal,
    /// Whether it may go on after its first wave.
    Rest,
    /// Whether this task may start.
    Start {
        /// The task.
        task: String,
    },
    /// What to do about a task that failed and that the lead could not help.
    Failure {
        /// The task.
        task: String,
        /// Why it failed.
        error: String,
    },
    /// Whether there is more to spend.
    Budget,
}

/// A person must decide about a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanAsked {
    /// Which question.
    pub question: QuestionId,
    /// What about.
    pub about: About,
}

/// What a person can say about a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Say {
    /// Go (on).
    Approve,
    /// Go, but ask again after the first wave.
    FirstWave,
    /// Change it first: what it says then is another question.
    Edit(Vec<Edit>),
    /// Propose something else, considering this.
    Changes(String),
    /// No, and why.
    Reject(String),
    /// What to do about the failed task.
    Rule(Ruling),
}

/// They did, or a rule did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanAnswered {
    /// Which question.
    pub question: QuestionId,
    /// What they said.
    pub say: Say,
    /// Who, and where.
    pub by: crate::policy::By,
    /// A turn that is newer than all that were known when a person said it: by that it is told what was stopped later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Of an approved revision: the results of the replaced plan that it takes over. Older entries do not say; then they are
    /// those of the proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Vec<Carried>>,
}

/// There is more to spend: what was paused goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanResumed {
    /// Who said so.
    pub by: String,
}

/// Somebody stopped the plan or one of its tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStopped {
    /// The task; without it, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Who.
    pub by: String,
    /// The approved plan that takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<PlanId>,
}

/// The user left while the plan ran: it goes on where it is when the session is next opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPaused {
    /// The user.
    pub by: String,
    /// The files that unfinished tasks have changed so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<TaskFiles>,
}

/// The files that a task has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFiles {
    /// The task.
    pub task: String,
    /// The files, from the project's folder.
    pub files: Vec<String>,
    /// Commands that ran in the background when this was noted: what they change is known when they end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<String>,
    /// Protected files that its commands made without approval, and that were moved away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFile>,
}

/// How a plan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanEnd {
    /// Every task that was to be done was.
    Done,
    /// Some were.
    Partial,
    /// None was.
    Failed,
    /// Somebody stopped it.
    Stopped,
    /// The user did not want it.
    Rejected,
    /// Another plan takes its place, or is asked for.
    Replaced,
}

/// The plan is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEnded {
    /// How.
    pub end: PlanEnd,
    /// What came of its tasks.
    pub tally: Tally,
}
