//! Events of one task of a plan.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::chat::Usage;
use crate::delegation::cache::AnswerAge;
use crate::hash::Hash;
use crate::id::{AgentId, EnvelopeId};
use crate::plan::Budget;
use crate::policy::DecidedBy;

/// Files that are named one by one where a task changed files that it does not own.
const UNOWNED_SHOWN_MAX: usize = 10;

/// A task was put into its owner's mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAssigned {
    pub task: String,
    /// Counts its assignments from 1.
    pub attempt: u32,
    /// The agent that does it.
    pub agent: AgentId,
    /// The member of the team that this agent is.
    pub member: String,
    /// The model it uses, if not the member's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When the attempt times out.
    pub deadline_ms: i64,
    /// What the owner should know about earlier attempts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Hashes of its declared files at that time; `None` for a missing file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Option<Hash>>,
    /// Blob: snapshot of the working tree at that time, if a diff will be needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Hash>,
    /// Tasks that run at the same time, as far as the owner is told about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

/// The owner has begun the task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStarted {
    pub task: String,
    pub attempt: u32,
}

/// The state before the owner could change anything: the working tree, or checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMarked {
    pub task: String,
    /// Blob: snapshot of the working tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Hash>,
    /// Checks that passed already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<String>,
}

/// The owner has a question about the task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAsked {
    pub task: String,
    pub attempt: u32,
    /// What they ask.
    pub question: String,
    /// The message that asked.
    #[serde(rename = "letter")]
    pub envelope: EnvelopeId,
    /// When the owner asked.
    pub at_ms: i64,
}

/// The owner waits for a person, or for a model server that cannot be reached: the task's time does not run meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskHeld {
    pub task: String,
    pub attempt: u32,
    /// When the wait began.
    pub at_ms: i64,
    /// Why the model server cannot be reached; `None` if the owner waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<String>,
}

/// The owner of a task gets an answer, or is told that the lead has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAnswered {
    pub task: String,
    pub answer: String,
    /// The name of the agent or person that answered.
    pub by: String,
    /// Whether the lead had no answer: the owner then asks the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}

impl TaskAnswered {
    /// The name that older entries give for a missing answer, which they do not mark otherwise.
    const NOBODY: &str = "nobody";

    /// The record that the lead had no answer.
    pub(crate) fn missing(task: String) -> Self {
        let answer = "The lead has no answer; it is the user's to give.".to_owned();
        Self { task, answer, by: Self::NOBODY.to_owned(), unanswered: true }
    }

    /// Whether the lead had no answer.
    pub fn is_missing(&self) -> bool {
        self.unanswered || self.by == Self::NOBODY
    }
}

/// A task that waited for an answer, a person or a model server continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResumed {
    pub task: String,
    /// When the attempt times out now.
    pub deadline_ms: i64,
}

/// The owner reports that the task is done. Nothing is verified yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskReported {
    pub task: String,
    pub attempt: u32,
    /// The owner's answer.
    pub output: String,
    /// What it used.
    pub spent: ResourceUse,
    /// Commands that a crash interrupted: their outcome is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// The task succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDone {
    pub task: String,
    pub attempt: u32,
    /// What came of it.
    pub result: TaskResult,
}

/// The result of a task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TaskResult {
    /// The owner's answer.
    pub output: String,
    /// The outputs that were collected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Whether it is verified.
    pub proof: Proof,
    /// The checks behind `proof`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// What it used, over all attempts.
    #[serde(default)]
    pub spent: ResourceUse,
    /// Commands that a crash interrupted: their outcome is unknown, and files that they left prove nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// The task was not run: the cache had an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<CachedAnswer>,
}

impl TaskResult {
    /// Whether a check proves it. The existence of files alone does not.
    pub(in crate::plan) fn is_verified(&self) -> bool {
        self.proof == Proof::Verified && !self.is_only_files()
    }

    /// Whether nothing was verified except that declared files exist.
    pub fn is_only_files(&self) -> bool {
        let is_file = |what: &str| {
            self.artifacts.iter().any(|artifact| artifact.kind == ArtifactType::FilePath && artifact.name == what)
        };
        let has_evidence = self.proof == Proof::Verified && !self.evidence.is_empty();
        has_evidence && self.evidence.iter().all(|evidence| is_file(&evidence.what))
    }
}

/// The cached answer that a task got instead of being run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedAnswer {
    /// Key of the cache entry.
    pub key: String,
    /// Age of the entry when it was used.
    pub age_ms: u64,
}

impl CachedAnswer {
    /// The origin of the result, for display.
    pub fn origin_text(&self) -> String {
        format!("from the cache, {}", AnswerAge::from_ms(self.age_ms))
    }
}

impl TaskResult {
    /// The result that a failed attempt leaves: the owner's answer and the evidence. `None` if there was no answer.
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

/// Whether a result is verified. A model's own statement never is a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// All declared outputs exist and all checks passed.
    Verified,
    /// No output or check was declared.
    #[default]
    Unverified,
    /// A declared output is missing, or a check failed.
    Failed,
}

/// One file, command or merge that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The file or the command.
    pub what: String,
    /// Whether it supports the result.
    pub ok: bool,
    /// What the check found.
    pub detail: String,
    /// The exit code, if a command ran and exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// What a failed check found, if it is more than a text. Older entries do not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<CheckFault>,
    /// Whether the command also passed before the task began: then its success does not show that the task was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passed_before: bool,
}

/// What a failed check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckFault {
    /// The declared file does not exist.
    Missing,
    /// The declared file is empty.
    Empty,
    /// The command exited with this code, and printed this at last.
    Exit { code: i32, output: String },
    /// Commands of the task changed these files, which it does not own.
    Unowned(Vec<String>),
}

impl fmt::Display for CheckFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the file does not exist"),
            Self::Empty => f.write_str("the file is empty"),
            Self::Exit { code, output } if output.is_empty() => write!(f, "exit {code}: it printed nothing"),
            Self::Exit { code, output } => write!(f, "exit {code}: {output}"),
            Self::Unowned(files) => write!(f, "commands also changed {}, which the task does not own", shown(files)),
        }
    }
}

/// The first of some files, and how many more there are.
fn shown(files: &[String]) -> String {
    let names: Vec<String> = files.iter().take(UNOWNED_SHOWN_MAX).map(|file| format!("`{file}`")).collect();
    let more = files.len() - names.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    names.join(", ") + &more
}

impl Evidence {
    /// Evidence from a file, a command or a merge.
    pub fn new(what: impl Into<String>, ok: bool, detail: impl Into<String>) -> Self {
        Self { what: what.into(), ok, detail: detail.into(), code: None, fault: None, passed_before: false }
    }

    /// Evidence of a failed check.
    pub fn fault(what: impl Into<String>, fault: CheckFault) -> Self {
        Self { fault: Some(fault.clone()), ..Self::new(what, false, fault.to_string()) }
    }

    /// Whether the command could not even start (exit 126 or 127): that says nothing about the task.
    pub fn is_unstartable(&self) -> bool {
        !self.ok && matches!(self.code, Some(126 | 127))
    }

    /// Whether it shows changes of files that the task does not own: a person decides whether they stay.
    pub fn is_unowned(&self) -> bool {
        matches!(self.fault, Some(CheckFault::Unowned(_)))
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
    Text,
    /// The path of a file in the project.
    FilePath,
    Json,
}

/// An output of a task for the tasks that build on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// `design_doc`, `code_diff`, `test_report` …
    pub name: String,
    /// How to read the content.
    #[serde(rename = "type")]
    pub kind: ArtifactType,
    pub content: String,
}

/// Money, tokens and time that some work used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ResourceUse {
    /// Nano-dollars, as far as prices are known.
    pub nano: u64,
    /// The part for calls whose outcome is unknown: they may have been charged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_nano: u64,
    #[serde(default)]
    pub usage: Usage,
    /// Milliseconds of working time.
    pub ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(nano: &u64) -> bool {
    *nano == 0
}

/// Why an attempt at a task failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its time ran out.
    Timeout,
    /// The owner could not do it.
    Agent,
    /// The owner reported success, but the checks failed.
    Checks,
    /// The owner reported success, but a check cannot be started on this machine.
    Environment,
    /// The owner ended it as not done, with a reason.
    NotDone,
    /// The owner reported success, but its commands changed files that the task does not own.
    Unowned,
}

/// What is known of the reason why a task came to nothing, besides its text for people.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskErrorKind {
    /// Only the text says why.
    #[default]
    Text,
    /// The task reported success, but these checks failed.
    Checks(Vec<Evidence>),
    /// A person or an agent stopped it.
    Stopped(String),
    /// It needs this task, which failed.
    NeedFailed(String),
    /// It needs this task, which was given up.
    NeedGivenUp(String),
}

impl TaskErrorKind {
    pub fn is_text(&self) -> bool {
        *self == Self::Text
    }
}

/// The text for people; empty if only the text beside it says why.
impl fmt::Display for TaskErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => Ok(()),
            Self::Checks(failed) => {
                let words: Vec<String> = failed.iter().map(|one| format!("{}: {}", one.what, one.detail)).collect();
                write!(f, "the task reported success, but a check failed: {}", words.join("; "))
            }
            Self::Stopped(by) => write!(f, "stopped by {by}"),
            Self::NeedFailed(task) => write!(f, "it needs `{task}`, which failed"),
            Self::NeedGivenUp(task) => write!(f, "it needs `{task}`, which was given up"),
        }
    }
}

/// An attempt at a task failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskFailed {
    pub task: String,
    pub attempt: u32,
    /// The kind of failure.
    pub cause: Cause,
    /// The failure for people.
    pub error: String,
    /// The evidence so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The owner's answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The outputs that were collected, if the checks got that far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// What it used.
    #[serde(default)]
    pub spent: ResourceUse,
    /// When it is tried again, if that happens automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at_ms: Option<i64>,
    /// Whether the owner still works on it and was told to stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopping: bool,
}

impl TaskFailed {
    /// What is known of the reason besides its text.
    pub fn kind(&self) -> TaskErrorKind {
        match self.cause {
            Cause::Checks | Cause::Unowned => {
                TaskErrorKind::Checks(self.evidence.iter().filter(|one| !one.ok).cloned().collect())
            }
            _ => TaskErrorKind::Text,
        }
    }
}

/// An owner that was told to stop has stopped: no agent works on the task any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStopped {
    pub task: String,
    pub attempt: u32,
    /// What it had used.
    pub spent: ResourceUse,
    /// The files that it had changed, relative to the project's folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// The checks failed while other tasks changed files of the same project: they run again when those tasks have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDeferred {
    pub task: String,
    pub attempt: u32,
    /// The tasks that it waits for.
    pub after: Vec<String>,
    /// The results of the checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// The lead added a note to a task that has not begun. The approved text stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskChanged {
    pub task: String,
    /// A note for the owner besides the approved text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Only in older entries, where the lead replaced the approved text: the new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Only in older entries: the new description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Name of the agent that added it.
    pub by: String,
}

/// A failed task may be tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskQueued {
    pub task: String,
}

/// Decision about a task that failed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// Continue the plan without it.
    Skip,
    /// Try again: with which member and model, and with which note.
    Retry {
        /// The new owner; `None` for the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The new model; `None` for the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// What the owner should know this time.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// A person fixed it: run its checks again.
    Fixed,
    /// The owner's last answer counts as the result.
    Accept,
    /// Leave it failed; tasks that build on it are cancelled.
    GiveUp,
    /// Ask the user.
    Escalate,
}

/// It was decided what to do about a failed task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRuled {
    pub task: String,
    pub ruling: Ruling,
    /// Name of the decider.
    pub by: String,
    /// The decider: a person, the lead or a rule of the code. Older entries lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<DecidedBy>,
    /// The decider's note, shown beside the owner's answer. The note of a retry is part of `ruling`.
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

/// Why a task was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Its `when` does not hold, or all tasks it builds on were skipped.
    Condition,
    /// A person or the lead decided to continue without it.
    Decision,
}

/// A task will not be done, and need not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSkipped {
    pub task: String,
    pub reason: SkipReason,
    /// The reason for people.
    pub detail: String,
}

/// A task will not be done, although it should have been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCancelled {
    pub task: String,
    /// The reason for people.
    pub detail: String,
    /// What is known of the reason besides its text. Older entries do not record it.
    #[serde(default, skip_serializing_if = "TaskErrorKind::is_text")]
    pub kind: TaskErrorKind,
    /// What it had used.
    #[serde(default)]
    pub spent: ResourceUse,
    /// Whether the owner still works on it and was told to stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopping: bool,
    /// The files that it had changed, relative to the project's folder. If the owner still works on it, `TaskStopped`
    /// lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A task waits: for budget, or until the user continues the stopped plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPaused {
    pub task: String,
    /// The owner's partial result.
    pub output: String,
    /// What it has used.
    pub spent: ResourceUse,
    /// What the shared budgets had left, which was too little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Budget>,
    /// Whether the task's own budget was used up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Whether the user stopped the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}
