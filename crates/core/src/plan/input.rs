//! What can happen to a plan, as whoever drives it says it. Facts that follow are in `event`.

use super::event::{
    Artifact, Cached, Carried, EditRefused, Evidence, PlanEdited, PlanProposed, Proof, Ruling, Say, Spent, TaskFiles,
};
use super::{Budget, Edit, Task};
use crate::hash::Hash;
use crate::id::{EnvelopeId, PlanId, QuestionId, TurnId};
use crate::policy::By;

/// What happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// Somebody has a plan.
    Propose(Box<PlanProposed>),
    /// A person changed it before saying yes; it has been checked.
    Edited {
        /// The question they were asked.
        question: QuestionId,
        /// What they changed.
        edits: Vec<Edit>,
        /// What came of it.
        edited: Box<PlanEdited>,
    },
    /// A person's change cannot be made.
    Unfit(EditRefused),
    /// A person answered a question about it.
    Answered {
        /// Which question.
        question: QuestionId,
        /// What they said.
        say: Say,
        /// Who.
        by: By,
    },
    /// An owner has begun.
    Begun {
        /// The task's place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
    },
    /// An owner is done, one way or another.
    Reported {
        /// The task's place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
        /// How it went.
        report: Report,
        /// What this attempt used.
        spent: Spent,
    },
    /// A task that was just given to its owner, who has not been told, has been answered before.
    Served {
        /// The task's place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
        /// The answer.
        output: String,
        /// What the words alone amount to.
        findings: Findings,
        /// Where it is from.
        cached: Cached,
    },
    /// The owner of a task that is done has gone on with it, because the lead wrote to it.
    Corrected {
        /// The task's place in the plan.
        task: usize,
        /// What it says now.
        output: String,
        /// What code saw of its work now, if it has changed something since.
        findings: Option<Findings>,
        /// What the correction used.
        spent: Spent,
    },
    /// Code has looked at what is there.
    Checked {
        /// The task's place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
        /// What it saw.
        findings: Findings,
    },
    /// An owner needs to know something.
    Asked {
        /// The task's place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
        /// What.
        question: String,
        /// The letter that asked.
        letter: EnvelopeId,
    },
    /// How the working tree is, before an owner can change anything.
    Marked {
        /// The task's place in the plan.
        task: usize,
        /// Blob: how it is.
        tree: Hash,
    },
    /// A check passed before the owners of these tasks could change anything.
    Probed {
        /// The tasks' places in the plan.
        tasks: Vec<usize>,
        /// The check.
        line: String,
    },
    /// An owner waits for a person, or for a model server that cannot be reached.
    Held {
        /// The task's place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
        /// Why the model server cannot be reached, if it waits for that.
        outage: Option<String>,
    },
    /// It no longer waits.
    Freed {
        /// The task's place in the plan.
        task: usize,
        /// Which attempt.
        attempt: u32,
    },
    /// Here is what they need to know.
    Told {
        /// The task's place in the plan.
        task: usize,
        /// The answer.
        answer: String,
        /// Whose.
        by: String,
    },
    /// Somebody says what to do about a failure.
    Rule {
        /// The task's place in the plan.
        task: usize,
        /// What to do.
        ruling: Ruling,
        /// Who says so.
        by: String,
        /// What else they say about it.
        note: String,
    },
    /// The lead has read about every failure and has nothing more to say.
    LeadSilent,
    /// Time has passed.
    Woke,
    /// Time has passed in which nobody could work: this process, or the whole machine, slept.
    Slept {
        /// How much.
        ms: i64,
    },
    /// The user leaves while it runs.
    Pause {
        /// The user.
        by: String,
        /// The files that unfinished tasks have changed so far.
        files: Vec<TaskFiles>,
    },
    /// The lead adds a note to a task.
    Note {
        /// The task's place in the plan.
        task: usize,
        /// What its owner is told.
        note: String,
        /// Who says so.
        by: String,
    },
    /// A revision of this plan was proposed.
    Revised {
        /// The plan that was proposed.
        revision: PlanId,
        /// What it says is to be done.
        tasks: Vec<Task>,
    },
    /// A revision of this plan was not approved.
    RevisionEnded {
        /// The plan that was proposed.
        revision: PlanId,
        /// Whether the user asked for another one.
        reworked: bool,
    },
    /// A revision of this plan was approved and takes its place.
    Replaced {
        /// The plan that was approved.
        revision: PlanId,
    },
    /// Somebody stops it, or one task of it.
    Stop {
        /// The task's place in the plan.
        task: Option<usize>,
        /// Who.
        by: String,
    },
    /// There is more to spend.
    Resume {
        /// Who says so.
        by: String,
    },
    /// This process has just folded the log.
    Recovered {
        /// What was stopped or revised meanwhile: that counts before anything else begins.
        first: Vec<Input>,
    },
}

/// How an owner's work went.
#[derive(Debug, Clone)]
pub enum Report {
    /// They say it is done. Where nothing is to be looked at, the findings come with it.
    Done {
        /// What they say.
        output: String,
        /// What was found, if nothing had to be looked at.
        findings: Option<Findings>,
        /// Commands that a crash interrupted: their outcome is unknown.
        unknown: Vec<String>,
    },
    /// They could not.
    Failed {
        /// Why.
        error: String,
        /// Their last answer, if there is one.
        output: String,
    },
    /// They say that it is not done.
    NotDone {
        /// Their answer, which begins with `NOT DONE`.
        output: String,
    },
    /// The money ran out; this is what they handed back.
    OutOfMoney {
        /// What they say.
        output: String,
        /// What everybody together had left, if that was known.
        left: Option<Budget>,
        /// Whether it was the task's own budget.
        own: bool,
    },
    /// Somebody stopped them.
    Stopped,
}

/// What code saw.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Whether it is proven.
    pub proof: Proof,
    /// By what.
    pub evidence: Vec<Evidence>,
    /// What was collected.
    pub artifacts: Vec<Artifact>,
    /// Tasks whose owners may change the checked files.
    pub beside: Vec<usize>,
}

/// What the driver knows at the moment of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Now<'a> {
    /// The time.
    pub at_ms: i64,
    /// Globs of the paths that other plans are at work on.
    pub taken: &'a [String],
    /// A turn that is newer than all that are known, for what a person says now.
    pub fresh: Option<TurnId>,
    /// Of a revision: what the plan that it revises has finished by now.
    pub carried: Option<&'a [Carried]>,
}

impl Now<'_> {
    /// A moment at which nobody else is at work.
    pub fn at(at_ms: i64) -> Self {
        Self { at_ms, taken: &[], fresh: None, carried: None }
    }
}
