//! What can happen to one task of a plan.

use serde::{Deserialize, Serialize};

use crate::calling::cache::Age;
use crate::chat::Usage;
use crate::hash::Hash;
use crate::id::{AgentId, EnvelopeId};
use crate::plan::Budget;
use crate::policy::By;

/// A task is in its owner's mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAssigned {
    /// The task.
    pub task: String,
    /// Counts its assignments from 1.
    pub attempt: u32,
    /// The agent that has it.
    pub agent: AgentId,
    /// The member it is.
    pub member: String,
    /// The model it uses, if not the member's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When it is given up.
    pub deadline_ms: i64,
    /// What the last attempt came to, for this one to know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Hashes of its declared files then; `None` for one that was not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Option<Hash>>,
    /// Blob: how the working tree was then, if it will be asked what changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Hash>,
    /// The tasks that are worked on beside it, as many as its owner is told of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

/// Its owner has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStarted {
    /// The task.
    pub task: String,
    /// Which attempt.
    pub attempt: u32,
}

/// What was seen before its owner could change anything: the working tree, or checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMarked {
    /// The task.
    pub task: String,
    /// Blob: how the tree was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Hash>,
    /// Checks that passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<String>,
}

/// Its owner needs to know something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAsked {
    /// The task.
    pub task: String,
    /// Which attempt.
    pub attempt: u32,
    /// What they ask.
    pub question: String,
    /// The letter that asked.
    pub letter: EnvelopeId,
    /// When.
    pub at_ms: i64,
}

/// Its owner waits for a person, or for a model server that cannot be reached: its time stands still until that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskHeld {
    /// The task.
    pub task: String,
    /// Which attempt.
    pub attempt: u32,
    /// Since when.
    pub at_ms: i64,
    /// Why the model server cannot be reached, if it waits for that and not for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<String>,
}

/// They were told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAnswered {
    /// The task.
    pub task: String,
    /// What they were told.
    pub answer: String,
    /// By whom.
    pub by: String,
}

/// A task that had asked, or whose time stood still, works again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResumed {
    /// The task.
    pub task: String,
    /// When it is given up now.
    pub deadline_ms: i64,
}

/// Its owner says that it is done. Nothing is proven yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskReported {
    /// The task.
    pub task: String,
    /// Which attempt.
    pub attempt: u32,
    /// What they say.
    pub output: String,
    /// What it used.
    pub spent: Spent,
    /// Commands that a crash interrupted: their outcome is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// A task ended well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDone {
    /// The task.
    pub task: String,
    /// Which attempt.
    pub attempt: u32,
    /// What came of it.
    pub result: TaskResult,
}

/// What came of a task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TaskResult {
    /// What its owner says.
    pub output: String,
    /// What was collected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Whether it is proven.
    pub proof: Proof,
    /// By what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// What it used, over all attempts.
    #[serde(default)]
    pub spent: Spent,
    /// Commands that a crash interrupted: their outcome is unknown, and files that they left prove nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Nobody was asked: it had been answered before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Cached>,
}

impl TaskResult {
    /// Whether nothing was verified except that declared files exist.
    pub fn is_only_files(&self) -> bool {
        let is_file = |what: &str| {
            self.artifacts.iter().any(|artifact| artifact.kind == ArtifactType::FilePath && artifact.name == what)
        };
        let has_evidence = self.proof == Proof::Verified && !self.evidence.is_empty();
        has_evidence && self.evidence.iter().all(|evidence| is_file(&evidence.what))
    }
}

/// The answer that a task was given instead of being done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cached {
    /// What it was filed under, among what is kept of the owner's answers.
    pub key: String,
    /// How old it was then.
    pub age_ms: u64,
}

impl Cached {
    /// Where a result is from, for whoever asks.
    pub fn words(&self) -> String {
        format!("from the cache, {}", Age::of(self.age_ms))
    }
}

impl TaskResult {
    /// What an attempt that failed leaves: the owner's answer, and what was seen of its work. `None`: no answer came.
    pub fn of_failure(failed: &TaskFailed, unknown: &[String]) -> Option<Self> {
        if failed.output.trim().is_empty() {
            return None;
        }
        let artifacts = if failed.artifacts.is_empty() {
            vec![Artifact { name: "answer".to_owned(), kind: ArtifactType::Text, content: failed.output.clone() }]
        } else {
            failed.artifacts.clone()
        };
        let is_wrong = failed.evidence.iter().any(|evidence| !evidence.ok);
        Some(Self {
            output: failed.output.clone(),
            artifacts,
            proof: if is_wrong { Proof::Failed } else { Proof::Unverified },
            evidence: failed.evidence.clone(),
            unknown: unknown.to_vec(),
            ..Self::default()
        })
    }
}

/// Whether a result is proven. A model's word never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Everything that was declared was there and passed.
    Verified,
    /// Nothing was declared that could prove it.
    #[default]
    Unverified,
    /// Something was missing or did not pass.
    Failed,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The file or the command.
    pub what: String,
    /// Whether it speaks for the result.
    pub ok: bool,
    /// What was seen.
    pub detail: String,
    /// The exit code, if a command ran and exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Whether the command also passed before the task began: then its success does not show that the task was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passed_before: bool,
}

impl Evidence {
    /// Evidence from a file, a command or a merge.
    pub fn new(what: impl Into<String>, ok: bool, detail: impl Into<String>) -> Self {
        Self { what: what.into(), ok, detail: detail.into(), code: None, passed_before: false }
    }

    /// Whether the command could not even start (exit 126 or 127): that says nothing about the task.
    pub fn is_unstartable(&self) -> bool {
        !self.ok && matches!(self.code, Some(126 | 127))
    }

    /// A reason to doubt a check that passed, for readers of the result.
    pub fn caveat(&self) -> Option<&'static str> {
        (self.ok && self.passed_before).then_some("also passed before the task")
    }
}

/// The form of an artifact's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactType {
    /// Words.
    Text,
    /// The path of a file in the project.
    FilePath,
    /// JSON.
    Json,
}

/// Something that a task leaves to those that build on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// `design_doc`, `code_diff`, `test_report` …
    pub name: String,
    /// How to read the content.
    #[serde(rename = "type")]
    pub kind: ArtifactType,
    /// The content.
    pub content: String,
}

/// What something used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Nano-dollars, as far as prices are known.
    pub nano: u64,
    /// How much of them is for calls whose outcome nobody knows: it may have been paid, or not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_nano: u64,
    /// Tokens.
    #[serde(default)]
    pub usage: Usage,
    /// Milliseconds of work.
    pub ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(nano: &u64) -> bool {
    *nano == 0
}

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its time ran out.
    Timeout,
    /// Its owner could not do it.
    Agent,
    /// Its owner said it was done, and the checks say otherwise.
    Checks,
    /// Its owner said it was done, and a check cannot be started on this machine.
    Environment,
    /// Its owner ended it as not done, and said why.
    NotDone,
}

/// An attempt failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskFailed {
    /// The task.
    pub task: String,
    /// Which attempt.
    pub attempt: u32,
    /// Why, typed.
    pub cause: Cause,
    /// Why, in words.
    pub error: String,
    /// The evidence so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// What its owner said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// What was collected, if code has looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// What it used.
    #[serde(default)]
    pub spent: Spent,
    /// When it will be tried again, if it will by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at_ms: Option<i64>,
    /// Whether its owner is still at it, and was told to stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopping: bool,
}

/// Whoever was told to stop has: nobody is at it any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStopped {
    /// The task.
    pub task: String,
    /// Which attempt.
    pub attempt: u32,
    /// What it had used.
    pub spent: Spent,
    /// The files that it had changed, from the project's folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// Its checks failed while other tasks changed files of the same project: they run again once those are through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDeferred {
    /// The task.
    pub task: String,
    /// Which attempt.
    pub attempt: u32,
    /// The tasks that it waits for.
    pub after: Vec<String>,
    /// What was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// The lead adds a note to a task that has not begun. The approved words stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskChanged {
    /// The task.
    pub task: String,
    /// What its owner is told besides the approved words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Only in older entries, where the lead replaced the approved words: the new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Only in older entries: the new description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who said so.
    pub by: String,
}

/// A task that had failed may be tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskQueued {
    /// The task.
    pub task: String,
}

/// What to do about a task that failed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// Go on without it.
    Skip,
    /// Try again: by whom, with which model, knowing what.
    Retry {
        /// Another member.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Another model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// What to know this time.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// It was mended by hand: check it again.
    Fixed,
    /// The owner's last answer counts as the result.
    Accept,
    /// Leave it failed; what builds on it is given up too.
    GiveUp,
    /// Somebody else must say.
    Escalate,
}

/// Somebody said what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRuled {
    /// The task.
    pub task: String,
    /// What to do.
    pub ruling: Ruling,
    /// Who said so, by name.
    pub by: String,
    /// The decider: a person, the lead or a rule of the code. Older entries lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<By>,
    /// The decider's note: it stands beside the owner's answer. The note of a retry is part of the decision.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Ruling {
    /// The name that models and programs use.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Retry { .. } => "retry",
            Self::Fixed => "fixed",
            Self::Accept => "accept",
            Self::GiveUp => "give_up",
            Self::Escalate => "escalate",
        }
    }
}

/// Why a task was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Its `when` does not hold, or everything it builds on was skipped.
    Condition,
    /// Somebody decided to go on without it.
    Decision,
}

/// A task is not going to be done, and that is fine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSkipped {
    /// The task.
    pub task: String,
    /// Why.
    pub reason: SkipReason,
    /// Why, in words.
    pub detail: String,
}

/// A task is not going to be done, although it should have been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCancelled {
    /// The task.
    pub task: String,
    /// Why.
    pub detail: String,
    /// What it had used.
    #[serde(default)]
    pub spent: Spent,
    /// Whether its owner is still at it, and was told to stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopping: bool,
    /// The files that it had changed, from the project's folder; of an owner that is still at it, they come with its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A task waits for money.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPaused {
    /// The task.
    pub task: String,
    /// What its owner handed back.
    pub output: String,
    /// What it has used.
    pub spent: Spent,
    /// What everybody together had left then: too little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Budget>,
    /// Whether it was its own budget that was used up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}
