//! Everything that can happen.
//!
//! An event is a fact in a stream of the journal. Facts are never edited, only added; their JSON is what old
//! journals hold, so fields are added with defaults and never change meaning, and a renamed event or field keeps its stored
//! name (`serde(rename)`). [`VERSION`] would count breaking changes; there has been none. Enums here are externally tagged: native blocks inside must pass through
//! JSON byte for byte, which serde's other taggings do not allow.

mod names;
mod opened;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::{Definition, Model, Settings};
use crate::chat::{Answer, Part, Usage};
use crate::context::Window;
use crate::context::summary::{Compacted, CompactionAsked, CompactionFailed, Summary, Uncompacted};
use crate::delegation::cache::{CacheCleared, CacheKept};
use crate::hash::Hash;
use crate::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId, TurnId};
use crate::interrupt::Hold;
use crate::ledger::Charge;
use crate::memory::{MemoryForgotten, MemoryHanded, MemorySet, Recall};
use crate::message::{Assignment, Envelope, Principal};
use crate::plan::TaskDraft;
use crate::plan::event::{
    EditRefused, PlanAnswered, PlanAsked, PlanEdited, PlanEnded, PlanPaused, PlanProposed, PlanResumed, PlanRevised,
    PlanStopped, PlanUnasked, RevisionEnded, TaskAnswered, TaskAsked, TaskAssigned, TaskCancelled, TaskChanged,
    TaskCorrected, TaskDeferred, TaskDone, TaskFailed, TaskHeld, TaskMarked, TaskPaused, TaskQueued, TaskReported,
    TaskResumed, TaskRuled, TaskSkipped, TaskStarted, TaskStopped,
};
use crate::policy::{self, Action, DecidedBy, Repeatability};
use crate::recovery::Failure;
use crate::rewind::{FilesChanged, RewindEnded, RewindNote, Rewound};
use crate::task_list::{ItemAdded, ItemMoved, ItemWritten};
use crate::teammate::requests::{Requested, Responded};
use crate::teammate::{AgentEnded, CommandBegun, CommandOver, Granted, MessageRefused};
use crate::turn::Forked;

pub use names::NAMES;
pub use opened::{LaunchFlags, SessionOpened};

/// The version that entries are written with.
pub const VERSION: u32 = 1;

/// A fact in one stream of the journal; each variant names its stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A session begins (session stream).
    SessionOpened(SessionOpened),
    /// The user said something (session stream).
    Said(UserMessage),
    /// The user took a message back before an agent had read it (session stream).
    Withdrawn(Withdrawn),
    /// The user was answered (session stream).
    Replied(Replied),
    /// An agent begins to exist (agent stream).
    AgentStarted(AgentStarted),
    /// An agent works under these settings from now on (agent stream).
    Configured(Configured),
    /// The agent continues from another agent's history (agent stream).
    Forked(Box<Forked>),
    /// A turn begins (agent stream).
    TurnStarted(TurnStarted),
    /// The running turn is told what the user or the team has written meanwhile (agent stream).
    Steered(Steered),
    /// A model is about to be called (agent stream).
    LlmIntent(LlmIntent),
    /// The call ended, one way or another (agent stream).
    LlmEnded(LlmEnded),
    /// The runtime tells the model something (agent stream).
    Nudged(Nudged),
    /// A tool is about to run (agent stream).
    ToolIntent(ToolIntent),
    /// A tool call has its result (agent stream).
    ToolDone(ToolDone),
    /// What a call does to files, and how they were (agent stream); or a worktree that a plan or a person merges
    /// (session stream).
    FilesChanged(FilesChanged),
    /// A rewind is about to restore files (session stream).
    Rewound(Rewound),
    /// The rewind has ended; it lists what it could not restore (session stream).
    RewindEnded(RewindEnded),
    /// A person must decide (agent stream).
    QuestionAsked(QuestionAsked),
    /// The question was answered, or could not be (agent stream).
    QuestionAnswered(QuestionAnswered),
    /// The lead writes a task down, to propose it later (agent stream).
    TaskDrafted(TaskDraft),
    /// The drafted tasks have become a plan (agent stream).
    PlanSubmitted(PlanSubmitted),
    /// The user asked to compact the window now (agent stream).
    CompactionAsked(CompactionAsked),
    /// Messages before a boundary are replaced by a summary from now on (agent stream).
    Compacted(Compacted),
    /// A compaction failed: the window is cut instead (agent stream).
    CompactionFailed(CompactionFailed),
    /// The last compaction was undone (agent stream).
    Uncompacted(Uncompacted),
    /// The turn was stopped (agent stream).
    Interrupted(Interrupted),
    /// The turn is over (agent stream).
    TurnEnded(TurnEnded),
    /// The user is asked about the changes in the agent's worktree (agent stream).
    ReviewBegun(ReviewBegun),
    /// The agent has sent a request to another agent (agent stream).
    Requested(Requested),
    /// The request was answered, or has expired (agent stream).
    Responded(Responded),
    /// A message was not accepted (agent stream).
    #[serde(rename = "letter_refused")]
    MessageRefused(MessageRefused),
    /// The agent has ended (agent stream).
    AgentEnded(AgentEnded),
    /// The agent gets a permission that a person granted to a member of its team for the session (agent stream).
    Granted(Granted),
    /// A command of the agent continues in the background (agent stream).
    CommandBegun(CommandBegun),
    /// A background command has ended (agent stream).
    CommandOver(CommandOver),
    /// A plan was proposed to the user (plan stream).
    PlanProposed(PlanProposed),
    /// The user edited the plan before approving it (plan stream).
    PlanEdited(PlanEdited),
    /// An edit of the plan was refused (plan stream).
    EditRefused(EditRefused),
    /// A person must decide about the plan (plan stream).
    PlanAsked(PlanAsked),
    /// A person or a rule has decided (plan stream).
    PlanAnswered(PlanAnswered),
    /// Questions about the plan no longer need an answer (plan stream).
    PlanUnasked(PlanUnasked),
    /// Another plan was proposed to replace this one (plan stream).
    PlanRevised(PlanRevised),
    /// The replacement was not approved (plan stream).
    RevisionEnded(RevisionEnded),
    /// The budget has room again, or the user continues the stopped plan (plan stream).
    PlanResumed(PlanResumed),
    /// The plan, or a task of it, was stopped (plan stream).
    PlanStopped(PlanStopped),
    /// The plan was paused because the user left (plan stream).
    PlanPaused(PlanPaused),
    /// The plan has ended (plan stream).
    PlanEnded(PlanEnded),
    /// A task was put into its owner's mailbox (plan stream).
    TaskAssigned(TaskAssigned),
    /// The owner has begun the task (plan stream).
    TaskStarted(TaskStarted),
    /// The state of the files before the owner could change anything (plan stream).
    TaskMarked(TaskMarked),
    /// The owner has a question about the task (plan stream).
    TaskAsked(TaskAsked),
    /// The owner waits for a person (plan stream).
    TaskHeld(TaskHeld),
    /// The owner's question was answered (plan stream).
    TaskAnswered(TaskAnswered),
    /// The owner works on the task again (plan stream).
    TaskResumed(TaskResumed),
    /// The owner reports that the task is done (plan stream).
    TaskReported(TaskReported),
    /// The task succeeded (plan stream).
    TaskDone(TaskDone),
    /// The owner was asked again after the end of the task, and answered (plan stream).
    TaskCorrected(TaskCorrected),
    /// An attempt at the task failed (plan stream).
    TaskFailed(TaskFailed),
    /// The task may be tried again (plan stream).
    TaskQueued(TaskQueued),
    /// The checks failed while other tasks changed files; they run again when those tasks have ended (plan stream).
    TaskDeferred(TaskDeferred),
    /// The lead added a note to the task (plan stream).
    TaskChanged(TaskChanged),
    /// It was decided what to do about the task's failure (plan stream).
    TaskRuled(TaskRuled),
    /// The task waits for budget (plan stream).
    TaskPaused(TaskPaused),
    /// The task was skipped (plan stream).
    TaskSkipped(TaskSkipped),
    /// The task was cancelled (plan stream).
    TaskCancelled(TaskCancelled),
    /// The owner has stopped working on the task (plan stream).
    TaskStopped(TaskStopped),
    /// A fact was written to memory (memory stream).
    MemorySet(MemorySet),
    /// A fact was removed from memory (memory stream).
    MemoryForgotten(MemoryForgotten),
    /// The conversation is searched for what is worth remembering (session stream).
    MemoryHanded(MemoryHanded),
    /// An expert's answer was cached (cache stream).
    CacheKept(CacheKept),
    /// Entries were removed from the cache (cache stream).
    CacheCleared(CacheCleared),
    /// A task was added to the shared list (list stream).
    ItemAdded(ItemAdded),
    /// The text of a task of the shared list has changed (list stream).
    ItemWritten(ItemWritten),
    /// The status or the owner of a task of the shared list has changed (list stream).
    ItemMoved(ItemMoved),
    /// A message was put into a mailbox (mail stream).
    Mailed(Envelope),
}

/// A message from the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The mailbox message that carries it to the lead.
    pub envelope: EnvelopeId,
    pub text: String,
    /// The person who wrote it, and the frontend it came through.
    pub by: Principal,
    /// The directory that the session works in.
    #[serde(default)]
    pub cwd: String,
}

/// The user took a message back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawn {
    /// The mailbox message that carried it.
    pub envelope: EnvelopeId,
}

/// An answer to the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replied {
    /// The turn that produced it.
    pub turn: TurnId,
    pub text: String,
    /// Whether the text is the whole answer.
    #[serde(default)]
    pub whole: bool,
}

/// An agent begins to exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentStarted {
    pub agent: AgentId,
    /// The session it serves.
    pub session: SessionId,
    /// Its role, prompt, tools and model.
    pub definition: Arc<Definition>,
    /// The task it was started for; `None` for a session's lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Arc<Assignment>>,
    /// The settings it starts under, if no `Configured` event follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Arc<Settings>>,
}

/// An agent works under these settings from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Configured {
    /// The complete settings.
    pub settings: Arc<Settings>,
    /// The new definition, if it has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Arc<Definition>>,
    /// Who changed the settings; `None` if they follow from the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<DecidedBy>,
}

/// A turn begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnStarted {
    pub turn: TurnId,
    /// The message it answers.
    pub envelope: EnvelopeId,
    /// The content of that message.
    pub input: Vec<Part>,
    /// The task it belongs to, if another agent or a plan waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Arc<Assignment>>,
    /// What was recalled from memory for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<Recall>,
    /// Notes about files that a rewind restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewound: Vec<RewindNote>,
    /// Further messages that it answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "letters")]
    pub envelopes: Vec<EnvelopeId>,
    /// No agent waits for the answer: only the end of the turn is reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quiet: bool,
    /// Number of consecutive messages from teammates that led to this turn.
    #[serde(default, skip_serializing_if = "crate::message::is_zero")]
    pub hops: u32,
}

impl TurnStarted {
    /// The content for the model: the message, notes about restored files, and what was recalled.
    pub fn model_input(&self) -> Vec<Part> {
        let recalled = self.recall.iter().map(|recall| &recall.text).filter(|text| !text.is_empty());
        let beside = self.rewound.iter().map(|told| &told.text).chain(recalled);
        self.input.iter().cloned().chain(beside.map(|text| Part::text(text.clone()))).collect()
    }
}

/// Messages of the user and the team that came during the turn, added before its next call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Steered {
    /// The user's messages, oldest first.
    pub envelopes: Vec<EnvelopeId>,
    /// Content of these messages.
    pub input: Vec<Part>,
    /// Messages of the team that are added with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "letters")]
    pub from_team: Vec<EnvelopeId>,
}

/// What a request was made of, so that it can be made again from the journal alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRef {
    /// Blob: the system text.
    pub instructions: Hash,
    /// Blob: the tools' schemas.
    pub tools: Hash,
    /// Blob: the settings.
    pub settings: Hash,
    /// The part of the history that was sent.
    pub window: Window,
    /// One past its last message.
    pub upto: usize,
}

/// A model is about to be called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmIntent {
    /// Counts the agent's calls from 1.
    pub call: u32,
    /// Counts this call's attempts from 1.
    pub attempt: u32,
    /// What is sent.
    pub request: RequestRef,
    /// The model that is called, with the price that the call is settled at, even if the settings change meanwhile.
    pub model: Model,
    /// Whether the fallback model is the one called.
    #[serde(default)]
    pub fallback: bool,
    /// Output tokens it may write.
    pub max_tokens: u32,
    /// Nano-dollars set aside.
    pub reserved_nano: u64,
    /// Bytes of the request, as estimated.
    #[serde(default)]
    pub bytes: usize,
    /// The last call of a spent budget: no tools, hand back what there is.
    #[serde(default)]
    pub hand_back: bool,
    /// The call summarizes what is about to leave the window; it is not part of the turn's work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LlmOutcome {
    /// With an answer.
    Done(Answer),
    /// The call ended without an answer.
    Failed {
        /// The kind of failure.
        failure: Failure,
        /// The failure for people.
        detail: String,
        /// When it will be tried again, if it will.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at_ms: Option<i64>,
        /// Whether the retries are used up and it waits for a model server that cannot be reached.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        parked: bool,
    },
    /// The call was stopped; the text received so far is kept.
    Cancelled {
        /// The text received so far.
        partial: String,
        /// The usage so far, as far as known.
        usage: Usage,
    },
    /// The process died during the call, which may have been charged.
    Lost,
}

/// The call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmEnded {
    pub call: u32,
    pub outcome: LlmOutcome,
    /// Milliseconds from sending to the last byte.
    #[serde(default)]
    pub ms: u64,
    /// Whether it was made for a summary: its text is then not an answer to a message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summary: bool,
    /// The estimate that is charged if the provider did not report the usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Usage>,
}

/// A text from the runtime to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nudged {
    pub text: String,
}

/// What allowed a tool to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// The rule that allowed it.
    Rule(String),
    /// A person's answer to a question.
    Question(QuestionId),
}

/// A tool is about to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolIntent {
    /// The key of the call: unique in the agent's stream.
    pub key: String,
    pub tool: String,
    /// Hash of its input.
    pub input: Hash,
    /// Whether the call may be repeated after a crash.
    pub class: Repeatability,
    /// On whose word.
    pub approval: Approval,
    /// What it will do.
    pub action: Action,
    /// Whether a person has seen this very action and approved it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attended: bool,
    /// All rules that allowed it, in order, if there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The kind of each rule in `rules`, or of the one in `approval`. Older entries do not record it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<policy::Basis>,
    /// A comment that came with the approval; the model reads it after the tool results.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// An action that was not allowed, and who or what refused it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub tool: String,
    /// The whole command, path or host.
    pub target: String,
    /// The person or the rule that refused it.
    pub by: DecidedBy,
    /// The rule, if it is one that is not only a text. Older entries do not record it.
    #[serde(default, skip_serializing_if = "policy::Basis::is_untyped")]
    pub basis: policy::Basis,
    /// What would let the call run.
    #[serde(default, skip_serializing_if = "policy::Recourse::is_default")]
    pub recourse: policy::Recourse,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// The tool ran.
    Ran,
    /// The call could not be run as asked (unknown tool, bad input); the model is told.
    Invalid,
    /// It was not allowed.
    Refused,
    /// It was stopped.
    Interrupted,
    /// A crash interrupted the call: it is unknown whether it took effect.
    Unknown,
}

/// The call has its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDone {
    /// The key of the call.
    pub key: String,
    /// How it ended.
    pub ending: ToolOutcome,
    /// The result for the model.
    pub content: Vec<Part>,
    /// Whether it failed.
    pub is_error: bool,
    /// Milliseconds it took.
    #[serde(default)]
    pub ms: u64,
    /// The refused action, if the call was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Box<Refusal>>,
    /// A comment that came with a decision without running the tool; the model reads it after the tool results.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// A person must decide about a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionAsked {
    pub question: QuestionId,
    /// The call it is about.
    pub key: String,
    pub tool: String,
    /// What would be done.
    pub action: Action,
    /// Whether the call may be repeated after a crash.
    pub class: Repeatability,
    /// The rule that asks.
    pub rule: String,
    /// The rule, if it is one that is not only a text. Older entries do not record it.
    #[serde(default, skip_serializing_if = "policy::Basis::is_untyped")]
    pub basis: policy::Basis,
    /// The rule that "always allow" adds.
    #[serde(default)]
    pub memory: policy::RememberedRule,
    /// What would let the call run without this question.
    #[serde(default, skip_serializing_if = "policy::Recourse::is_default")]
    pub recourse: policy::Recourse,
}

/// The question was answered, or could not be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    pub question: QuestionId,
    pub answer: policy::PermissionAnswer,
}

/// The lead has proposed a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanSubmitted {
    pub plan: PlanId,
    /// The tool call that submitted it.
    pub key: String,
}

/// The turn was stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interrupted {
    /// Name of the person or component that stopped it.
    pub by: String,
    /// The kind of that person or component; older entries do not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<DecidedBy>,
    /// Whether the agent ends with the turn and cannot be continued.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
    /// The hold that a person's stop puts on the agent; `None`: unread messages begin the next turn at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Hold>,
}

/// The person or component that stops a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptedBy {
    /// The name for messages.
    pub name: String,
    /// Its kind, if known.
    pub who: Option<DecidedBy>,
    /// Whether the agent ends with the turn.
    pub ends: bool,
    /// The hold that the stop puts on the agent.
    pub held: Option<Hold>,
}

impl InterruptedBy {
    /// A person, named by the frontend they used.
    pub fn person(by: &Principal) -> Self {
        Self { name: by.door.clone(), who: Some(DecidedBy::person(by)), ends: false, held: None }
    }
}

impl From<&str> for InterruptedBy {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), who: None, ends: false, held: None }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// With an answer.
    Answered,
    /// With a plan; the user and the team continue from there.
    Proposed,
    /// With an answer that `max_tokens` cut short.
    Truncated,
    /// The model would not answer.
    Refused,
    /// The model returned no content, repeatedly.
    Empty,
    /// The model never gave the structured answer that was required.
    Unstructured,
    /// The model repeated itself.
    Looping,
    /// The round limit was reached.
    Rounds,
    /// The budget was reached; the turn handed back what it had.
    Budget,
    /// It was stopped.
    Interrupted,
    /// The model could not be reached or refused the request.
    Failed {
        /// The kind of failure.
        failure: Failure,
        /// The failure for people.
        detail: String,
    },
    /// A tool could not go on (disk full, sandbox broken).
    Broken {
        /// The failure for people.
        detail: String,
    },
}

impl TurnOutcome {
    /// Its name in the journal.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Proposed => "proposed",
            Self::Truncated => "truncated",
            Self::Refused => "refused",
            Self::Empty => "empty",
            Self::Unstructured => "unstructured",
            Self::Looping => "looping",
            Self::Rounds => "rounds",
            Self::Budget => "budget",
            Self::Interrupted => "interrupted",
            Self::Failed { .. } => "failed",
            Self::Broken { .. } => "broken",
        }
    }

    /// Whether the turn stopped at a limit or a failure that may be gone now, so that it can be continued.
    pub fn is_unfinished(&self) -> bool {
        matches!(self, Self::Budget | Self::Rounds | Self::Truncated | Self::Interrupted | Self::Failed { .. })
    }
}

/// The turn is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnded {
    pub turn: TurnId,
    pub end: TurnOutcome,
    /// The answer's text, whole or partial.
    pub text: String,
    /// The structured answer, if one was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// What the turn cost, by model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charges: Vec<Charge>,
    /// The resource that ran out, if the budget ended the turn and it was not money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<LimitedResource>,
    /// Nano-dollars of that budget that are reserved for calls with an unknown outcome.
    #[serde(default, skip_serializing_if = "nothing")]
    pub unknown_nano: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like that")]
fn nothing(nano: &u64) -> bool {
    *nano == 0
}

/// An agent has finished, and the user decides about the changes in its worktree: a turn without a model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewBegun {
    pub turn: TurnId,
    pub copy: String,
    /// The message to send after the decision, with the outcome appended to its text.
    #[serde(rename = "letter")]
    pub envelope: Box<Envelope>,
}

/// Resources other than money that a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedResource {
    /// Tokens, in and out.
    Tokens,
}
