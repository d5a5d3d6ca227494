//! Events of a plan: the facts of a `plan/<id>` stream.
//!
//! Like all events they are kept forever: fields are added with defaults and never change their meaning.

mod correction;
mod task;
mod totals;

pub use correction::{Correction, Recheck, TaskCorrected};
pub use task::{
    Artifact, ArtifactType, CachedAnswer, Cause, CheckFault, Evidence, Proof, ResourceUse, Ruling, SkipReason,
    TaskAnswered, TaskAsked, TaskAssigned, TaskCancelled, TaskChanged, TaskDeferred, TaskDone, TaskErrorKind,
    TaskFailed, TaskHeld, TaskMarked, TaskPaused, TaskQueued, TaskReported, TaskResult, TaskResumed, TaskRuled,
    TaskSkipped, TaskStarted, TaskStopped,
};
pub use totals::{CountedOutcome, Totals};

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Draft, DraftFlaw, Edit, Forecast};
use crate::id::{AgentId, PlanId, QuestionId, SessionId, TurnId};
use crate::message::Principal;
use crate::packages::Installs;
use crate::policy::{Basis, Protection};
use crate::rewind::MovedFile;

/// When a person is asked while a plan is approved and carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// Never: the plan runs as proposed, and in the mode `default` its members are refused what would ask. A plan with risks
    /// waits for a person.
    Never,
    /// Once for the plan as a whole; later only for actions outside it.
    #[default]
    Plan,
    /// For the plan, and then for every change.
    Each,
    /// Only for plans with risks.
    Risky,
}

impl ApprovalMode {
    /// All variants with the names that users write.
    pub const NAMES: [(&str, ApprovalMode); 4] = [
        ("never", ApprovalMode::Never),
        ("plan", ApprovalMode::Plan),
        ("each", ApprovalMode::Each),
        ("risky", ApprovalMode::Risky),
    ];

    /// Whether plans without risks are approved without a person.
    pub fn is_automatic(self) -> bool {
        matches!(self, Self::Never | Self::Risky)
    }

    /// The name users write.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, approve)| *approve == self).map_or("plan", |(name, _)| name)
    }
}

/// A plan is proposed to the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanProposed {
    pub plan: PlanId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The session's lead, which gets the plan's reports.
    pub lead: AgentId,
    /// The proposed tasks and limits.
    pub draft: Draft,
    /// Expected cost and duration.
    pub forecast: Forecast,
    /// When a person is asked.
    pub approve: ApprovalMode,
    /// Tasks that may run at once.
    pub max_parallel: u32,
    /// Its author: an agent's name, or a file.
    pub by: String,
    /// The plan that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revises: Option<PlanId>,
    /// Finished tasks of that plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<CarriedResult>,
    /// Things that a person should check carefully.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// The checks among the risks: an approval of the plan covers them. Older entries lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risky_checks: Option<Vec<RiskyCheck>>,
    /// The risks, each with what is known of it besides its text. Older entries lack it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risk_kinds: Vec<PlanRisk>,
}

/// Something in a plan that a person should check carefully.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanRisk {
    /// A command that runs as a check, and why it asks.
    Check { check: RiskyCheck, rule: String, basis: Basis },
    /// A task may change a protected file.
    Protected { task: String, path: String, why: Protection },
    /// A task installs packages from registries that no rule has opened.
    Installs(Installs),
}

/// The text of the risk in a plan's list.
impl fmt::Display for PlanRisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check { check, rule, .. } if rule.is_empty() => f.write_str(&check.description()),
            Self::Check { check, rule, .. } => write!(f, "{}: {rule}", check.description()),
            Self::Protected { task, path, why } => {
                write!(f, "task `{task}` changes `{path}`, which is protected: {why}")
            }
            Self::Installs(installs) => installs.fmt(f),
        }
    }
}

/// A check that needs a person's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RiskyCheck {
    pub task: String,
    /// The command that runs as the check.
    pub line: String,
}

impl RiskyCheck {
    /// The text of this check in a plan's list of risks.
    pub fn description(&self) -> String {
        format!("task `{}` runs `{}` as a check", self.task, self.line)
    }
}

impl PlanProposed {
    /// The hosts of the registries that an approval of the plan opens to the commands of a task.
    pub fn registries(&self, task: &str) -> Vec<String> {
        let installs = self.risk_kinds.iter().filter_map(|risk| match risk {
            PlanRisk::Installs(installs) => Some(installs),
            PlanRisk::Check { .. } | PlanRisk::Protected { .. } => None,
        });
        let own = installs.filter(|installs| installs.task == task);
        own.flat_map(|installs| installs.registries.iter().map(|registry| registry.host.clone())).collect()
    }

    /// Whether the plan waits only because of its risks: the setting would approve it without them.
    pub fn is_held_by_risks(&self) -> bool {
        !self.risks.is_empty() && self.approve.is_automatic()
    }

    /// Whether an approval of the plan covers a check that needs a person. Older entries only have the check's text.
    pub fn covers(&self, check: &RiskyCheck) -> bool {
        match &self.risky_checks {
            Some(known) => known.contains(check),
            None => self.risks.iter().any(|risk| risk.starts_with(&check.description())),
        }
    }

    /// The setting that approves the plan without a person, if one does. A risky plan always waits for a person.
    pub fn approving_rule(&self) -> Option<&'static str> {
        match self.approve {
            ApprovalMode::Never if self.risks.is_empty() => Some("`--approve never`"),
            ApprovalMode::Risky if self.risks.is_empty() => Some("`--approve risky`: nothing risky in it"),
            _ => None,
        }
    }
}

/// A finished task that a revised plan takes over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CarriedResult {
    pub task: String,
    /// The result of the task.
    pub result: TaskResult,
}

/// The user edited a plan before approving it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanEdited {
    /// The plan after the edit.
    pub draft: Draft,
    /// Expected cost and duration after the edit.
    pub forecast: Forecast,
    /// The risks after the edit; `None` if they are unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risks: Option<Vec<String>>,
    /// The checks among them. Older entries lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risky_checks: Option<Vec<RiskyCheck>>,
    /// What is known of the risks. Older entries lack it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risk_kinds: Vec<PlanRisk>,
    /// Who changed it.
    pub by: Principal,
}

/// An edit was refused: the plan is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditRefused {
    /// The question that the edit answered.
    pub question: QuestionId,
    /// Why the edit could not be applied, in English.
    pub error: String,
    /// What is wrong with the plan that the edit would have made; older entries, and other errors, lack it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaws: Vec<DraftFlaw>,
    /// The person who made the edit.
    pub by: Principal,
}

/// Questions about the plan that no longer need an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanUnasked {
    pub questions: Vec<QuestionId>,
    /// The plan that was proposed instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<PlanId>,
}

/// Another plan was proposed to replace this one. A plan that still waits for approval ends; a running plan continues,
/// without the tasks that the user has still to decide about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRevised {
    /// The proposed replacement.
    pub revision: PlanId,
    /// Tasks that had not begun and that the revision drops or changes: they do not begin before the user has decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
}

/// The revision of a running plan was not approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionEnded {
    /// The proposed replacement.
    pub revision: PlanId,
    /// Whether the user asked for another revision: then held tasks wait until the lead has proposed it or has
    /// finished without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reworked: bool,
}

/// What a person is asked about a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanQuestion {
    /// Whether the plan may run.
    Proposal,
    /// Whether the plan may continue after its first wave.
    Rest,
    /// Whether this task may start.
    Start { task: String },
    /// What to do about a failed task for which the lead found no remedy.
    Failure {
        task: String,
        /// Why it failed.
        error: String,
        /// What is known of the reason besides its text. Older entries do not record it.
        #[serde(default, skip_serializing_if = "TaskErrorKind::is_text")]
        kind: TaskErrorKind,
    },
    /// Whether the budget is raised.
    Budget,
}

/// A person must decide about a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanAsked {
    pub question: QuestionId,
    pub about: PlanQuestion,
}

/// A person's answer about a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanDecision {
    /// Start, or continue.
    Approve,
    /// Start, but ask again after the first wave.
    FirstWave,
    /// Edit the plan first; the edited plan is asked about again.
    Edit(Vec<Edit>),
    /// Propose another plan that takes this comment into account.
    Changes(String),
    /// Do not run the plan; with the reason.
    Reject(String),
    /// What to do about the failed task.
    Rule(Ruling),
}

/// A person or a rule has decided about a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanAnswered {
    pub question: QuestionId,
    /// What they said.
    pub say: PlanDecision,
    /// The person or the rule that decided.
    pub by: crate::policy::DecidedBy,
    /// A turn id newer than all turns known when the person answered: turns that are stopped later can be told by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// If it approves a revision: the results of the replaced plan that the revision takes over. Older entries do not
    /// record it; then those of the proposal count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Vec<CarriedResult>>,
}

/// The budget has room again, or the user continues a stopped plan: paused tasks continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanResumed {
    /// The person or the cause, such as a larger budget.
    pub by: String,
    /// For a stopped plan: a turn id newer than the stop, so that the plan's messages are newer, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// The plan or one of its tasks was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStopped {
    /// The stopped task; `None` for the whole plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The person, agent or limit that stopped it.
    pub by: String,
    /// The approved plan that replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<PlanId>,
}

/// A running plan was paused: because the user left, and then it continues when the session is next opened; or because
/// the user stopped it, and then it continues when the user says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPaused {
    pub by: String,
    /// The files that unfinished tasks have changed so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<TaskFiles>,
    /// Whether the user stopped it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// The files that a task has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFiles {
    pub task: String,
    /// The files, from the project's folder.
    pub files: Vec<String>,
    /// Background commands that ran when this was recorded: their changes are known when they end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<String>,
    /// Protected files that its commands created without approval, and that were moved away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFile>,
}

/// How a plan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanEnd {
    /// Every task that had to be done is done.
    Done,
    /// Some tasks are done.
    Partial,
    /// No task is done.
    Failed,
    /// The plan was stopped.
    Stopped,
    /// The user rejected it.
    Rejected,
    /// Another plan replaces it, or was asked for.
    Replaced,
}

impl PlanEnd {
    /// The end for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Partial => "partly done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Rejected => "rejected",
            Self::Replaced => "replaced",
        }
    }
}

/// The plan is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEnded {
    pub end: PlanEnd,
    /// The outcomes of its tasks.
    pub tally: Totals,
}
