//! Everything that can happen.
//!
//! An event is a fact in a stream of the journal. Facts are never edited, only added; their JSON is what old
//! journals hold, so fields are added with defaults and never change meaning ([`VERSION`] counts breaking changes,
//! each with a way to read the old form). Enums here are externally tagged: native blocks inside must pass through
//! JSON byte for byte, which serde's other taggings do not allow.

mod names;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::calling::cache::{CacheCleared, CacheKept};
use crate::chat::{Answer, Part, Usage};
use crate::context::Window;
use crate::context::summary::{Compacted, CompactionAsked, CompactionFailed, Summary, Uncompacted};
use crate::hash::Hash;
use crate::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId, TurnId};
use crate::ledger::Charge;
use crate::mates::requests::{Requested, Responded};
use crate::mates::{AgentEnded, CommandBegun, CommandOver, Granted, LetterRefused};
use crate::memory::{MemoryForgotten, MemoryHanded, MemorySet, Recall};
use crate::message::{Assignment, Envelope, Principal};
use crate::plan::Task;
use crate::plan::event::{
    EditRefused, PlanAnswered, PlanAsked, PlanEdited, PlanEnded, PlanPaused, PlanProposed, PlanResumed, PlanRevised,
    PlanStopped, PlanUnasked, RevisionEnded, TaskAnswered, TaskAsked, TaskAssigned, TaskCancelled, TaskChanged,
    TaskDeferred, TaskDone, TaskFailed, TaskHeld, TaskMarked, TaskPaused, TaskQueued, TaskReported, TaskResumed,
    TaskRuled, TaskSkipped, TaskStarted, TaskStopped,
};
use crate::policy::{self, Action, By, Class};
use crate::recovery::Failure;
use crate::rewind::{FilesChanged, RewindEnded, Rewound, Told};
use crate::stop::Held;
use crate::tasks::{ItemAdded, ItemMoved, ItemWritten};
use crate::team::{Definition, Model, Settings};
use crate::turn::Forked;

pub use names::NAMES;

/// The version that entries are written with.
pub const VERSION: u32 = 1;

/// A fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A session begins (session stream).
    SessionOpened(SessionOpened),
    /// The user said something (session stream).
    Said(Said),
    /// The user took it back before anybody had read it (session stream).
    Withdrawn(Withdrawn),
    /// The user was answered (session stream).
    Replied(Replied),
    /// An agent begins to exist (agent stream).
    AgentStarted(AgentStarted),
    /// An agent works under these settings from now on (agent stream).
    Configured(Configured),
    /// It goes on from another's past (agent stream).
    Forked(Box<Forked>),
    /// A turn begins (agent stream).
    TurnStarted(TurnStarted),
    /// The turn that runs is told what the user has said meanwhile (agent stream).
    Steered(Steered),
    /// A model is about to be called (agent stream).
    LlmIntent(LlmIntent),
    /// The call ended, one way or another (agent stream).
    LlmEnded(LlmEnded),
    /// The model is told something by us, not by the user (agent stream).
    Nudged(Nudged),
    /// A tool is about to run (agent stream).
    ToolIntent(ToolIntent),
    /// The call has its result (agent stream).
    ToolDone(ToolDone),
    /// What a call does to files, and how they were (agent stream); or a copy that a plan or a person merges (session stream).
    FilesChanged(FilesChanged),
    /// Files are about to be put back (session stream).
    Rewound(Rewound),
    /// They were, as far as they could be (session stream).
    RewindEnded(RewindEnded),
    /// A person must decide (agent stream).
    QuestionAsked(QuestionAsked),
    /// They did, or nobody could (agent stream).
    QuestionAnswered(QuestionAnswered),
    /// The lead writes a task down, to propose it later (agent stream).
    TaskDrafted(Task),
    /// What it had written down has become a plan (agent stream).
    PlanSubmitted(PlanSubmitted),
    /// Somebody wants the window to be compacted now (agent stream).
    CompactionAsked(CompactionAsked),
    /// What came before is told in short from now on (agent stream).
    Compacted(Compacted),
    /// It could not be: what is too much is left out instead (agent stream).
    CompactionFailed(CompactionFailed),
    /// The last compaction counts no more (agent stream).
    Uncompacted(Uncompacted),
    /// Somebody stopped the turn (agent stream).
    Interrupted(Interrupted),
    /// The turn is over (agent stream).
    TurnEnded(TurnEnded),
    /// What the agent did in its copy is looked at (agent stream).
    ReviewBegun(ReviewBegun),
    /// Somebody was asked something by letter (agent stream).
    Requested(Requested),
    /// They answered, or nobody waits any more (agent stream).
    Responded(Responded),
    /// A letter was not accepted (agent stream).
    LetterRefused(LetterRefused),
    /// The agent is no more (agent stream).
    AgentEnded(AgentEnded),
    /// It may do what a person has allowed one of its team for the session (agent stream).
    Granted(Granted),
    /// A command of the agent's runs on in the background (agent stream).
    CommandBegun(CommandBegun),
    /// It is over (agent stream).
    CommandOver(CommandOver),
    /// A plan is put before the user (plan stream).
    PlanProposed(PlanProposed),
    /// The user changed it before saying yes (plan stream).
    PlanEdited(PlanEdited),
    /// A change to it could not be made (plan stream).
    EditRefused(EditRefused),
    /// A person must decide about it (plan stream).
    PlanAsked(PlanAsked),
    /// They did, or a rule did (plan stream).
    PlanAnswered(PlanAnswered),
    /// Nobody needs their answer any more (plan stream).
    PlanUnasked(PlanUnasked),
    /// Another plan was proposed in its place (plan stream).
    PlanRevised(PlanRevised),
    /// That one was not approved (plan stream).
    RevisionEnded(RevisionEnded),
    /// There is more to spend (plan stream).
    PlanResumed(PlanResumed),
    /// Somebody stopped it, or a task of it (plan stream).
    PlanStopped(PlanStopped),
    /// The user left while it ran (plan stream).
    PlanPaused(PlanPaused),
    /// It is over (plan stream).
    PlanEnded(PlanEnded),
    /// A task is in its owner's mailbox (plan stream).
    TaskAssigned(TaskAssigned),
    /// Its owner has begun (plan stream).
    TaskStarted(TaskStarted),
    /// What was seen before its owner could change anything (plan stream).
    TaskMarked(TaskMarked),
    /// Its owner needs to know something (plan stream).
    TaskAsked(TaskAsked),
    /// Its owner waits for a person (plan stream).
    TaskHeld(TaskHeld),
    /// They were told (plan stream).
    TaskAnswered(TaskAnswered),
    /// It is worked on again (plan stream).
    TaskResumed(TaskResumed),
    /// Its owner says that it is done (plan stream).
    TaskReported(TaskReported),
    /// It ended well (plan stream).
    TaskDone(TaskDone),
    /// An attempt at it failed (plan stream).
    TaskFailed(TaskFailed),
    /// It may be tried again (plan stream).
    TaskQueued(TaskQueued),
    /// Its checks failed while others changed files, and run again once those are through (plan stream).
    TaskDeferred(TaskDeferred),
    /// The lead adds a note to it (plan stream).
    TaskChanged(TaskChanged),
    /// Somebody said what to do about its failure (plan stream).
    TaskRuled(TaskRuled),
    /// It waits for money (plan stream).
    TaskPaused(TaskPaused),
    /// It is left out (plan stream).
    TaskSkipped(TaskSkipped),
    /// It is given up (plan stream).
    TaskCancelled(TaskCancelled),
    /// Whoever was at it has stopped (plan stream).
    TaskStopped(TaskStopped),
    /// Something is remembered from now on (memory stream).
    MemorySet(MemorySet),
    /// Something is not remembered any more (memory stream).
    MemoryForgotten(MemoryForgotten),
    /// What was said is looked at for what is worth remembering (session stream).
    MemoryHanded(MemoryHanded),
    /// What an expert answered may be used again (cache stream).
    CacheKept(CacheKept),
    /// Some of it may not any more (cache stream).
    CacheCleared(CacheCleared),
    /// There is another task in the shared list (list stream).
    ItemAdded(ItemAdded),
    /// A task of the shared list says something else (list stream).
    ItemWritten(ItemWritten),
    /// A task of the shared list stands otherwise than before (list stream).
    ItemMoved(ItemMoved),
    /// A letter was put into a mailbox (mail stream).
    Mailed(Envelope),
}

impl Event {
    /// The name it has in the journal.
    #[expect(clippy::too_many_lines, reason = "one line for each event")]
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionOpened(_) => "session_opened",
            Self::Said(_) => "said",
            Self::Withdrawn(_) => "withdrawn",
            Self::Replied(_) => "replied",
            Self::AgentStarted(_) => "agent_started",
            Self::Configured(_) => "configured",
            Self::Forked(_) => "forked",
            Self::TurnStarted(_) => "turn_started",
            Self::Steered(_) => "steered",
            Self::LlmIntent(_) => "llm_intent",
            Self::LlmEnded(_) => "llm_ended",
            Self::Nudged(_) => "nudged",
            Self::ToolIntent(_) => "tool_intent",
            Self::ToolDone(_) => "tool_done",
            Self::FilesChanged(_) => "files_changed",
            Self::Rewound(_) => "rewound",
            Self::RewindEnded(_) => "rewind_ended",
            Self::QuestionAsked(_) => "question_asked",
            Self::QuestionAnswered(_) => "question_answered",
            Self::TaskDrafted(_) => "task_drafted",
            Self::PlanSubmitted(_) => "plan_submitted",
            Self::CompactionAsked(_) => "compaction_asked",
            Self::Compacted(_) => "compacted",
            Self::CompactionFailed(_) => "compaction_failed",
            Self::Uncompacted(_) => "uncompacted",
            Self::Interrupted(_) => "interrupted",
            Self::TurnEnded(_) => "turn_ended",
            Self::ReviewBegun(_) => "review_begun",
            Self::Requested(_) => "requested",
            Self::Responded(_) => "responded",
            Self::LetterRefused(_) => "letter_refused",
            Self::AgentEnded(_) => "agent_ended",
            Self::Granted(_) => "granted",
            Self::CommandBegun(_) => "command_begun",
            Self::CommandOver(_) => "command_over",
            Self::PlanProposed(_) => "plan_proposed",
            Self::PlanEdited(_) => "plan_edited",
            Self::EditRefused(_) => "edit_refused",
            Self::PlanAsked(_) => "plan_asked",
            Self::PlanAnswered(_) => "plan_answered",
            Self::PlanUnasked(_) => "plan_unasked",
            Self::PlanRevised(_) => "plan_revised",
            Self::RevisionEnded(_) => "revision_ended",
            Self::PlanResumed(_) => "plan_resumed",
            Self::PlanStopped(_) => "plan_stopped",
            Self::PlanPaused(_) => "plan_paused",
            Self::PlanEnded(_) => "plan_ended",
            Self::TaskAssigned(_) => "task_assigned",
            Self::TaskStarted(_) => "task_started",
            Self::TaskMarked(_) => "task_marked",
            Self::TaskAsked(_) => "task_asked",
            Self::TaskHeld(_) => "task_held",
            Self::TaskAnswered(_) => "task_answered",
            Self::TaskResumed(_) => "task_resumed",
            Self::TaskReported(_) => "task_reported",
            Self::TaskDone(_) => "task_done",
            Self::TaskFailed(_) => "task_failed",
            Self::TaskQueued(_) => "task_queued",
            Self::TaskDeferred(_) => "task_deferred",
            Self::TaskChanged(_) => "task_changed",
            Self::TaskRuled(_) => "task_ruled",
            Self::TaskPaused(_) => "task_paused",
            Self::TaskSkipped(_) => "task_skipped",
            Self::TaskCancelled(_) => "task_cancelled",
            Self::TaskStopped(_) => "task_stopped",
            Self::MemorySet(_) => "memory_set",
            Self::MemoryForgotten(_) => "memory_forgotten",
            Self::MemoryHanded(_) => "memory_handed",
            Self::CacheKept(_) => "cache_kept",
            Self::CacheCleared(_) => "cache_cleared",
            Self::ItemAdded(_) => "item_added",
            Self::ItemWritten(_) => "item_written",
            Self::ItemMoved(_) => "item_moved",
            Self::Mailed(_) => "mailed",
        }
    }
}

/// A session begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionOpened {
    /// Which.
    pub session: SessionId,
    /// The agent that leads it.
    pub lead: AgentId,
    /// The directory it works in.
    pub cwd: String,
    /// Who opened it.
    pub by: Principal,
    /// The flags that chose its lead and its team.
    #[serde(default, skip_serializing_if = "Choice::is_default")]
    pub choice: Choice,
}

/// The flags with which a session's lead and team were chosen; a resumed session is led in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Choice {
    /// `--agents`: a file, absolute, or the text itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<String>,
    /// `--agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// `--solo`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub solo: bool,
    /// `--coordinator`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub coordinator: bool,
}

impl Choice {
    /// Whether no flag chose anything.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The user said something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// The letter that carries it to the lead.
    pub envelope: EnvelopeId,
    /// The words.
    pub text: String,
    /// Who said it, and where.
    pub by: Principal,
    /// The directory that the session works in.
    #[serde(default)]
    pub cwd: String,
}

/// The user took a message back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawn {
    /// The letter that carried it.
    pub envelope: EnvelopeId,
}

/// The user was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replied {
    /// The turn behind it.
    pub turn: TurnId,
    /// The words.
    pub text: String,
    /// Whether they are the whole answer.
    #[serde(default)]
    pub whole: bool,
}

/// An agent begins to exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentStarted {
    /// Which.
    pub agent: AgentId,
    /// The session it serves.
    pub session: SessionId,
    /// What makes it itself.
    pub definition: Arc<Definition>,
    /// What it was started for; nothing for a session's lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Arc<Assignment>>,
    /// What it works under from the beginning, where nobody configures it afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Arc<Settings>>,
}

/// An agent works under these settings from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Configured {
    /// All of them.
    pub settings: Arc<Settings>,
    /// What the agent is from now on, if it is written otherwise than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Arc<Definition>>,
    /// Who wants that; nobody, if it follows from what its session works under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
}

/// A turn begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnStarted {
    /// Which.
    pub turn: TurnId,
    /// The letter it answers.
    pub envelope: EnvelopeId,
    /// What it says.
    pub input: Vec<Part>,
    /// What it is a part of, if somebody other than the user waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Arc<Assignment>>,
    /// What it is told from memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<Recall>,
    /// What it is told of files that were put back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewound: Vec<Told>,
    /// Further letters that it answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub letters: Vec<EnvelopeId>,
    /// Nobody waits for what comes of it; only that it is over is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quiet: bool,
    /// How many letters of colleagues in a row led to it.
    #[serde(default, skip_serializing_if = "crate::message::is_zero")]
    pub hops: u32,
}

impl TurnStarted {
    /// What the model is told: the words, and beside them which files were put back and what was recalled.
    pub fn told(&self) -> Vec<Part> {
        let recalled = self.recall.iter().map(|recall| &recall.text).filter(|text| !text.is_empty());
        let beside = self.rewound.iter().map(|told| &told.text).chain(recalled);
        self.input.iter().cloned().chain(beside.map(|text| Part::text(text.clone()))).collect()
    }
}

/// Messages of the user and the team that came during the turn, added before its next call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Steered {
    /// The letters, oldest first.
    pub envelopes: Vec<EnvelopeId>,
    /// What they say.
    pub input: Vec<Part>,
    /// Messages of the team that are told with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub letters: Vec<EnvelopeId>,
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
    /// The model that is called, with the price it is settled at, whatever the settings say by then.
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
    /// The call is not for the turn itself: it sums up what is about to leave the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With an answer.
    Done(Answer),
    /// Without one.
    Failed {
        /// Why, typed.
        failure: Failure,
        /// Why, in words.
        detail: String,
        /// When it will be tried again, if it will.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at_ms: Option<i64>,
        /// Whether the retries are used up and it waits for a model server that cannot be reached.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        parked: bool,
    },
    /// Somebody stopped it; what had come is kept as plain text.
    Cancelled {
        /// The text so far.
        partial: String,
        /// What it had used, as far as known.
        usage: Usage,
    },
    /// The process died while it ran. It may have been paid.
    Lost,
}

/// The call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmEnded {
    /// Which call.
    pub call: u32,
    /// How.
    pub outcome: Outcome,
    /// Milliseconds from sending to the last byte.
    #[serde(default)]
    pub ms: u64,
    /// Whether it was made for a summary: its answer is then nobody's answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summary: bool,
    /// The estimate that is charged if the provider did not report the usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Usage>,
}

/// The model is told something by us.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nudged {
    /// The words.
    pub text: String,
}

/// On whose word a tool runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// A rule's.
    Rule(String),
    /// The answer to a question.
    Question(QuestionId),
}

/// A tool is about to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolIntent {
    /// The key of the call: unique in the agent's stream.
    pub key: String,
    /// The tool.
    pub tool: String,
    /// Hash of its input.
    pub input: Hash,
    /// What a crash means for it.
    pub class: Class,
    /// On whose word.
    pub approval: Approval,
    /// What it will do.
    pub action: Action,
    /// Whether a person has looked at this very action and said yes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attended: bool,
    /// Every rule that took part in allowing it, in order, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// What kind of word each rule is, in order: of `rules`, or of the one in `approval`. Older entries do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<policy::Basis>,
    /// What whoever said yes said along with it, as the model is told it behind the results.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// What was not allowed, and on whose word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The tool.
    pub tool: String,
    /// The command, the path or the host: all of it.
    pub target: String,
    /// Who, or which rule.
    pub by: By,
    /// What would let the call run.
    #[serde(default, skip_serializing_if = "policy::Recourse::is_default")]
    pub recourse: policy::Recourse,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It ran.
    Ran,
    /// It could not be run as asked (unknown tool, bad input): told to the model.
    Invalid,
    /// It was not allowed.
    Refused,
    /// It was stopped.
    Interrupted,
    /// A crash left it open and nobody can tell whether it happened.
    Unknown,
}

/// The call has its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDone {
    /// The key of the call.
    pub key: String,
    /// How it ended.
    pub ending: Ending,
    /// What the model is told.
    pub content: Vec<Part>,
    /// Whether it failed.
    pub is_error: bool,
    /// Milliseconds it took.
    #[serde(default)]
    pub ms: u64,
    /// What was not allowed, if it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Box<Refusal>>,
    /// What whoever decided without anything being run said along with it, as the model is told it behind the results.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
}

/// A person must decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionAsked {
    /// Which question.
    pub question: QuestionId,
    /// The call it is about.
    pub key: String,
    /// The tool.
    pub tool: String,
    /// What would be done.
    pub action: Action,
    /// What a crash means for it, once it runs.
    pub class: Class,
    /// The rule that asks.
    pub rule: String,
    /// What a "yes, always" is remembered as.
    #[serde(default)]
    pub memory: policy::Memory,
    /// What would let the call run without this question.
    #[serde(default, skip_serializing_if = "policy::Recourse::is_default")]
    pub recourse: policy::Recourse,
}

/// They did, or nobody could.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    /// Which question.
    pub question: QuestionId,
    /// The answer.
    pub answer: policy::Answer,
}

/// The lead has proposed a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanSubmitted {
    /// Which.
    pub plan: PlanId,
    /// The call that did it.
    pub key: String,
}

/// Somebody stopped the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interrupted {
    /// Who, by a name.
    pub by: String,
    /// What they are, which no name tells; entries of before do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<By>,
    /// Whether whoever is stopped ends with it, and is not to be gone on with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
    /// What is left waiting by it; `None`: what waits is told at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

/// Whoever or whatever stops something: a name to tell, and what is behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopper {
    /// The name.
    pub name: String,
    /// What they are, if that is known.
    pub who: Option<By>,
    /// Whether whoever is stopped ends with it.
    pub ends: bool,
    /// What is left waiting by it.
    pub held: Option<Held>,
}

impl Stopper {
    /// A person, told by the door they came through.
    pub fn person(by: &Principal) -> Self {
        Self { name: by.door.clone(), who: Some(By::person(by)), ends: false, held: None }
    }
}

impl From<&str> for Stopper {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), who: None, ends: false, held: None }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With an answer.
    Answered,
    /// With a plan: what follows comes from the user and the team.
    Proposed,
    /// With an answer that `max_tokens` cut short.
    Truncated,
    /// The model would not answer.
    Refused,
    /// The model said nothing, repeatedly.
    Empty,
    /// The model never gave the structured answer it was asked for.
    Unstructured,
    /// The model repeated itself.
    Looping,
    /// The round limit was reached.
    Rounds,
    /// The budget was reached; what there was has been handed back.
    Budget,
    /// Somebody stopped it.
    Interrupted,
    /// The model could not be reached or refused the request.
    Failed {
        /// Why, typed.
        failure: Failure,
        /// Why, in words.
        detail: String,
    },
    /// A tool could not go on (disk full, walls broken).
    Broken {
        /// Why, in words.
        detail: String,
    },
}

impl End {
    /// Whether the turn stopped at a limit or a failure that may be gone now: it can be continued.
    pub fn is_unfinished(&self) -> bool {
        matches!(self, Self::Budget | Self::Rounds | Self::Truncated | Self::Interrupted | Self::Failed { .. })
    }
}

/// The turn is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnded {
    /// Which.
    pub turn: TurnId,
    /// How.
    pub end: End,
    /// The answer's text, whole or partial.
    pub text: String,
    /// The structured answer, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// What the turn cost, by model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charges: Vec<Charge>,
    /// What there was too little of, where the budget ended it and it was not money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<Short>,
    /// What of the budget that ended it is set aside for calls whose outcome is unknown, in nano-dollars.
    #[serde(default, skip_serializing_if = "nothing")]
    pub unknown_nano: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like that")]
fn nothing(nano: &u64) -> bool {
    *nano == 0
}

/// An agent's work is over, and what it did in a copy of its own is for the user to decide about: a turn without a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewBegun {
    /// The turn.
    pub turn: TurnId,
    /// The copy.
    pub copy: String,
    /// What is sent once that is decided, with what came of it behind its words.
    pub letter: Box<Envelope>,
}

/// What there can be too little of besides money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Short {
    /// Tokens, in and out.
    Tokens,
}
