//! What can happen to a plan, as whoever drives it says it. Facts that follow are in `event`.

use super::event::{Artifact, Evidence, PlanEdited, PlanProposed, Proof, Ruling, Say, Spent};
use crate::id::{EnvelopeId, QuestionId};
use crate::policy::By;

/// What happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// Somebody has a plan.
    Propose(Box<PlanProposed>),
    /// A person changed it before saying yes; it has been checked.
    Edited(Box<PlanEdited>),
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
    },
    /// The lead has read about every failure and has nothing more to say.
    LeadSilent,
    /// Time has passed.
    Woke,
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
    Recovered,
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
    },
    /// They could not.
    Failed {
        /// Why.
        error: String,
    },
    /// The money ran out; this is what they handed back.
    OutOfMoney {
        /// What they say.
        output: String,
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
}

/// What the driver knows at the moment of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// The time.
    pub at_ms: i64,
}
