//! Inputs of a plan, from the loop that drives it. The resulting facts are in `event`.

use super::event::{
    Artifact, CachedAnswer, CarriedResult, EditRefused, Evidence, PlanDecision, PlanEdited, PlanProposed, Proof,
    Recheck, ResourceUse, Ruling, TaskFiles,
};
use super::{Budget, Edit, TaskDraft};
use crate::hash::Hash;
use crate::id::{EnvelopeId, PlanId, QuestionId, TurnId};
use crate::policy::DecidedBy;

/// What a plan reacts to.
#[derive(Debug, Clone)]
pub enum PlanInput {
    /// A plan is proposed.
    Propose(Box<PlanProposed>),
    /// A person edited the plan before approving it; the new draft has been checked.
    Edited {
        /// The question that the edit answers.
        question: QuestionId,
        /// The edits of the person.
        edits: Vec<Edit>,
        /// The resulting plan.
        edited: Box<PlanEdited>,
    },
    /// A person's edit cannot be applied.
    Unfit(EditRefused),
    /// A person answered a question about the plan.
    Answered {
        question: QuestionId,
        /// The person's answer.
        say: PlanDecision,
        by: DecidedBy,
    },
    /// An owner has begun.
    Begun {
        /// The task's place in the plan.
        task: usize,
        attempt: u32,
    },
    /// The owner's work on an attempt has ended.
    Reported {
        /// The task's place in the plan.
        task: usize,
        attempt: u32,
        /// How it ended.
        report: Report,
        /// What this attempt used.
        spent: ResourceUse,
    },
    /// A task that was just assigned, before its owner was told, is answered from the cache.
    Served {
        /// The task's place in the plan.
        task: usize,
        attempt: u32,
        output: String,
        /// What the answer alone proves.
        findings: Findings,
        /// The cache entry that it comes from.
        cached: CachedAnswer,
    },
    /// The owner of a task that is over was asked again and has answered.
    Corrected {
        /// The task's place in the plan.
        task: usize,
        answer: NewAnswer,
    },
    /// The checks of a task have run.
    Checked {
        /// The task's place in the plan.
        task: usize,
        attempt: u32,
        /// Results of the checks.
        findings: Findings,
    },
    /// The lead has no answer to an owner's question.
    Unanswered {
        /// The task's place in the plan.
        task: usize,
    },
    /// The owner has a question.
    Asked {
        /// The task's place in the plan.
        task: usize,
        attempt: u32,
        question: String,
        /// The message that asked.
        envelope: EnvelopeId,
    },
    /// A snapshot of the working tree, taken before the owner can change anything.
    Marked {
        /// The task's place in the plan.
        task: usize,
        /// Blob: the snapshot.
        tree: Hash,
    },
    /// A check passed before the owners of these tasks could change anything.
    Probed {
        /// The tasks' places in the plan.
        tasks: Vec<usize>,
        line: String,
    },
    /// The owner waits for a person, or for a model server that cannot be reached.
    Held {
        /// The task's place in the plan.
        task: usize,
        attempt: u32,
        /// Why the model server cannot be reached; `None` if the owner waits for a person.
        outage: Option<String>,
    },
    /// The owner no longer waits.
    Freed {
        /// The task's place in the plan.
        task: usize,
        attempt: u32,
    },
    /// The answer to an owner's question.
    Told {
        /// The task's place in the plan.
        task: usize,
        answer: String,
        /// Name of the agent or person that answered.
        by: String,
    },
    /// A decision about a failed task.
    Rule {
        /// The task's place in the plan.
        task: usize,
        /// What to do.
        ruling: Ruling,
        /// Name of the decider.
        by: String,
        /// A note of the decider.
        note: String,
    },
    /// The lead has read about every failure and decided nothing more.
    LeadSilent,
    /// A deadline or a retry may be due.
    Woke,
    /// Time has passed in which no agent could work, because this process or the whole machine slept.
    Slept {
        /// Milliseconds that it slept.
        ms: i64,
    },
    /// The user leaves while the plan runs.
    Pause {
        /// Name of the user.
        by: String,
        /// The files that unfinished tasks have changed so far.
        files: Vec<TaskFiles>,
    },
    /// The user stops the plan: it stays stopped until it is continued or cancelled.
    Hold {
        /// Name of the user.
        by: String,
    },
    /// The user continues a stopped plan.
    Continue {
        /// Name of the user.
        by: String,
    },
    /// The lead adds a note to a task.
    Note {
        /// The task's place in the plan.
        task: usize,
        /// Text for the owner.
        note: String,
        /// Name of the lead.
        by: String,
    },
    /// A revision of this plan was proposed.
    Revised {
        /// The proposed replacement.
        revision: PlanId,
        /// The tasks of the replacement.
        tasks: Vec<TaskDraft>,
    },
    /// A revision of this plan was not approved.
    RevisionEnded {
        /// The proposed replacement.
        revision: PlanId,
        /// Whether the user asked for another one.
        reworked: bool,
    },
    /// A revision of this plan was approved and replaces it.
    Replaced {
        /// The approved replacement.
        revision: PlanId,
    },
    /// The plan, or one task of it, is cancelled.
    Stop {
        /// The task's place in the plan; `None` for the whole plan.
        task: Option<usize>,
        /// Name of the person or agent that cancels it.
        by: String,
    },
    /// The budget has room again.
    Resume {
        /// The cause, such as a larger budget.
        by: String,
    },
    /// This process has just folded the log.
    Recovered {
        /// Stops and revisions that arrived meanwhile: they count before any task begins.
        first: Vec<PlanInput>,
    },
}

/// How the owner's work on an attempt ended.
#[derive(Debug, Clone)]
pub enum Report {
    /// The owner reports success. If there is nothing to check, the findings come with it.
    Done {
        /// The owner's answer.
        output: String,
        /// The findings, if nothing had to be checked.
        findings: Option<Findings>,
        /// Commands that a crash interrupted: their outcome is unknown.
        unknown: Vec<String>,
    },
    /// The owner could not finish.
    Failed {
        /// The failure for people.
        error: String,
        /// The owner's last answer, if there is one.
        output: String,
    },
    /// The owner reports that the task is not done.
    NotDone {
        /// The owner's answer, which begins with `NOT DONE`.
        output: String,
    },
    /// The budget was used up; with the owner's partial result.
    OutOfMoney {
        /// The owner's answer.
        output: String,
        /// What the shared budgets had left, if known.
        left: Option<Budget>,
        /// Whether the task's own budget was used up.
        own: bool,
    },
    /// The owner was stopped.
    Stopped,
}

/// The owner's answer after it was asked again about a task that is over.
#[derive(Debug, Clone)]
pub struct NewAnswer {
    /// Its text; empty if the turn did not finish.
    pub output: String,
    /// Results of the checks after it, if they ran.
    pub findings: Option<Findings>,
    /// Whether the checks ran.
    pub checks: Recheck,
    /// What the answer used.
    pub spent: ResourceUse,
}

/// Results of a task's checks.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Whether the result is verified.
    pub proof: Proof,
    /// The checks behind `proof`.
    pub evidence: Vec<Evidence>,
    /// The outputs that were collected.
    pub artifacts: Vec<Artifact>,
    /// Tasks whose owners may change the checked files.
    pub beside: Vec<usize>,
}

/// What the driver knows at the moment of a decision.
#[derive(Debug, Clone, Copy)]
pub struct PlanEnv<'a> {
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// Globs of the paths that other plans work on.
    pub taken: &'a [String],
    /// A turn id newer than all known ones, for what a person decides now.
    pub fresh: Option<TurnId>,
    /// For a revision: what the plan that it revises has finished so far.
    pub carried: Option<&'a [CarriedResult]>,
}

impl PlanEnv<'_> {
    /// A moment at which no other plan holds paths.
    pub fn at(at_ms: i64) -> Self {
        Self { at_ms, taken: &[], fresh: None, carried: None }
    }
}
