//! What a plan knows of one task, and the states a task can be in.
//!
//! Only data: which state follows which is decided in `decide` and `advance` and folded in `apply`.

use serde::{Deserialize, Serialize};

use super::event::{Proof, Ruling, SkipReason, Spent, TaskResult};
use super::machine::Status;
use crate::hash::Hash;
use crate::id::{AgentId, EnvelopeId};

/// Why a task will not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Doom {
    Skip(SkipReason, String),
    Cancel(String),
}

/// What is known of one task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Slot {
    pub state: State,
    /// Needs that are not settled.
    pub open: usize,
    pub attempt: u32,
    /// Failures since somebody last said what to do.
    pub failures: u32,
    pub agent: Option<AgentId>,
    pub member: Option<String>,
    pub model: Option<String>,
    pub note: String,
    pub error: String,
    pub output: String,
    pub spent: Spent,
    pub result: Option<Box<TaskResult>>,
    pub assigned_at_ms: i64,
    /// Times that somebody said it was to be tried again.
    pub retried: u32,
    /// Commands of its last attempt whose outcome is unknown.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// Hashes of its declared files when it was last given to somebody.
    pub before: Vec<Option<Hash>>,
    /// How the working tree was when it was first given to somebody.
    pub tree: Option<Hash>,
    /// Whether its own budget is used up; and how often a person has said that there is as much again.
    pub own_short: bool,
    pub grants: u64,
    pub ended_at_ms: i64,
    /// The letter that last asked something: the same one again is no second question.
    pub letter: Option<EnvelopeId>,
    /// Somebody mended it by hand: if that does not pass, they are told, and nobody tries again by themselves.
    pub by_hand: bool,
    /// It failed, and another task made up for it.
    pub mended: bool,
    /// The checks of this attempt were put off once.
    #[serde(default)]
    pub deferred: bool,
    /// Checks that passed before its owner could change anything.
    #[serde(default)]
    pub passed: Vec<String>,
    /// What the lead has added to the approved words.
    #[serde(default)]
    pub notes: Vec<LeadNote>,
    /// The decision about its last failure.
    #[serde(default)]
    pub decision: Option<Decision>,
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
    /// The decision in words, for readers of the task's result.
    pub fn words(&self) -> String {
        let (by, name, note) = (&self.by, self.ruling.name(), self.note.trim());
        if note.is_empty() { format!("{by} decided: {name}") } else { format!("{by} decided: {name}, {note}") }
    }
}

/// What a lead has added to a task after its plan was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeadNote {
    /// The lead's name.
    pub by: String,
    /// The note.
    pub text: String,
}

/// Where a task stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
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
    /// Its owner waits for a person or for the model server, and time for it.
    Held {
        left_ms: i64,
        #[serde(default)]
        outage: bool,
    },
    /// Its owner asked something and holds nothing meanwhile.
    Asking {
        question: String,
        letter: EnvelopeId,
        left_ms: i64,
    },
    /// … and has the answer.
    Answered {
        answer: String,
        by: String,
        letter: EnvelopeId,
        left_ms: i64,
    },
    /// Said to be done, and not looked at yet for want of a place.
    Unchecked,
    /// Its checks failed while these tasks changed files: they run again once those are through.
    Deferred {
        after: Vec<usize>,
    },
    /// Its owner is done; code looks at what is there.
    Checking,
    /// It failed and will be tried again by itself.
    Waiting {
        until_ms: i64,
    },
    /// It failed for good; `settled` once nobody has to say anything about it any more.
    Failed {
        settled: bool,
    },
    /// It waits for money.
    Paused,
    Done,
    Skipped(SkipReason),
    Cancelled,
}

impl State {
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

impl Slot {
    pub(super) fn status(&self) -> Status {
        match &self.state {
            State::Planned => Status::Planned,
            State::Approved => Status::Approved,
            State::Dispatched { .. } => Status::Dispatched,
            State::Unchecked if self.by_hand => Status::Failed,
            State::Running { .. }
            | State::Held { .. }
            | State::Asking { .. }
            | State::Answered { .. }
            | State::Unchecked
            | State::Deferred { .. }
            | State::Checking
            | State::Paused => Status::Running,
            State::Waiting { .. } | State::Failed { .. } => Status::Failed,
            State::Done => Status::Done,
            State::Skipped(_) => Status::Skipped,
            State::Cancelled => Status::Cancelled,
        }
    }

    /// Whether a check proves the result. The existence of files alone does not.
    pub(super) fn is_verified(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result.proof == Proof::Verified && !result.is_only_files())
    }
}

impl Spent {
    /// Adds what something else used.
    pub fn add(&mut self, other: Self) {
        self.nano = self.nano.saturating_add(other.nano);
        self.unknown_nano = self.unknown_nano.saturating_add(other.unknown_nano);
        self.usage += other.usage;
        self.ms = self.ms.saturating_add(other.ms);
    }
}
