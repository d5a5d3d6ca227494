//! The loop of one agent: intent → answer → tools → intent … → answer.
//!
//! [`Turn`] lives as long as its agent; between turns it is idle. `decide` (in `decide`) turns an input into events
//! and changes nothing; `apply` (in `apply`) folds an event in and decides nothing; `pending` lists the effects that
//! are due. A fresh process that folds the log gets the same `pending` as the one that died, and continues.

mod actions;
mod apply;
mod bill;
mod call;
mod compact;
mod conversation;
mod decide;
mod fork;
mod mail_rules;
mod teammate;
#[cfg(test)]
mod tests;
mod tools;
mod worktree_review;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::agent::{Definition, Settings};
use crate::chat::{Message, Part, PartialAnswer};
use crate::context::Window;
use crate::event::{InterruptedBy, LlmEnded, LlmIntent, LlmOutcome, Steered, ToolOutcome, TurnEnded, TurnOutcome};
use crate::hash::Hash;
use crate::id::{AgentId, EnvelopeId, QuestionId, SessionId, TurnId};
use crate::interrupt::Hold;
use crate::ledger::{Bill, Charge, Ledger, RemainingBudget};
use crate::memory::Recall;
use crate::message::{Assignment, Envelope};
use crate::policy::{Action, ActionKind, DecidedBy, Grant, PermissionAnswer, RememberedRule, Repeatability};
use crate::rewind::RewindNote;
use crate::teammate::requests::Requests;
use crate::teammate::{AgentEnded, CommandBegun};

use conversation::Conversation;

pub use actions::TurnActions;
pub use call::json_in;
pub use fork::{Forked, InheritedConversation};
pub use mail_rules::{MailAction, TurnStage, is_note, is_stop, waits_for_turn_end};
pub use teammate::trigger;
pub use tools::{NEED_CLARIFY, SETTLE, STRUCTURED_OUTPUT, SUBMIT_PLAN};

/// The state of an agent's loop.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Turn {
    identity: Option<Identity>,
    settings: Option<Arc<Settings>>,
    conversation: Conversation,
    ledger: Ledger,
    grants: Vec<Grant>,
    calls_made: u32,
    phase: Phase,
    current: Option<RunningTurn>,
    last: Option<TurnEnded>,
    stop: StopRecord,
    team: Teamwork,
}

/// What remains of a stop.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct StopRecord {
    /// The stopped turn, until the next one begins.
    halted: Option<Box<HaltedTurn>>,
    /// The hold of a person's stop, until the next turn begins.
    held: Option<Box<Hold>>,
    /// Like `held`, with a session stop that came while the agent was idle. It comes from a row and is never stored
    /// here.
    #[serde(skip)]
    known: Option<Box<Hold>>,
}

/// The agent as a member of a team.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Teamwork {
    /// Its requests to other agents.
    requests: Requests,
    /// Consecutive turns that only teammates' messages began.
    echoes: u32,
    /// Length of the chain of teammate messages that led to its last turn.
    hops: u32,
    /// Its lead gave it a task, and it waited for teammates at its last report.
    owes: bool,
    /// Its commands that run in the background.
    commands: Vec<CommandBegun>,
    /// Requests for teammates that it was told to refuse: none of these begins, even while their worktrees still
    /// exist.
    refused: Vec<EnvelopeId>,
    /// The end of the agent, if it has ended.
    gone: Option<AgentEnded>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Identity {
    agent: AgentId,
    session: SessionId,
    definition: Arc<Definition>,
    /// The task that a teammate was started for, with its name and role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "mate")]
    teammate: Option<Arc<Assignment>>,
}

/// A turn that was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HaltedTurn {
    /// Name of the person or component that stopped it.
    pub by: String,
    /// The kind of that person or component, if known.
    #[serde(default)]
    pub who: Option<DecidedBy>,
    /// The task it belonged to, if another agent or a plan waited for the result.
    pub assignment: Option<Arc<Assignment>>,
}

/// The limit that stopped a turn whose next call could not be paid.
const OUT_OF_BUDGET: &str = "budget";

impl HaltedTurn {
    /// Whether the next call could not be paid.
    pub fn is_out_of_budget(&self) -> bool {
        matches!(&self.who, Some(DecidedBy::Rule(rule)) if rule == OUT_OF_BUDGET)
    }
}

/// The running turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RunningTurn {
    turn: TurnId,
    counts: TurnCounts,
    repeats: Repeats,
    /// The fallback model has taken over.
    fallback: bool,
    stopped: Option<TurnStop>,
    /// The last text of the model.
    text: String,
    /// The task and the recipient of its result, if that is not the user.
    assignment: Option<Arc<Assignment>>,
    /// The message that began it.
    envelope: Option<EnvelopeId>,
    /// Its cost so far.
    charges: Vec<Charge>,
    /// The turn only compacts the conversation.
    compacting: bool,
    /// A summary could not be made: this turn asks for no other.
    unsummarised: bool,
    work: TurnWork,
    /// Only teammates' messages began it: no reader waits for its answer.
    quiet: bool,
    /// The user has written meanwhile.
    is_steered: bool,
    /// The turn is a review of a worktree; this message is sent at its end.
    reviewing: Option<Box<Envelope>>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct TurnCounts {
    /// Model calls so far.
    rounds: u32,
    nudges: u32,
    /// Structured answers that did not match their schema.
    misfits: u32,
}

/// Identical answers in a row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Repeats {
    count: u32,
    /// The calls of the last answer, and their results, to tell a repeated call from one with a new result.
    calls: Option<Hash>,
    results: Option<Hash>,
}

/// The stop of a turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TurnStop {
    by: String,
    /// The kind of person or component that stopped it, if known.
    who: Option<DecidedBy>,
}

/// What a turn did with its tools.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct TurnWork {
    did: TurnActions,
    /// It has done more than read.
    acted: bool,
    /// It has written to a teammate.
    wrote: bool,
    /// Targets of calls that a crash interrupted: their outcome is unknown, and no later call to them has succeeded.
    unknown: Vec<String>,
}

impl RunningTurn {
    fn new(turn: TurnId, assignment: Option<Arc<Assignment>>) -> Self {
        Self {
            turn,
            counts: TurnCounts::default(),
            repeats: Repeats::default(),
            fallback: false,
            stopped: None,
            text: String::new(),
            assignment,
            envelope: None,
            charges: Vec::new(),
            compacting: false,
            unsummarised: false,
            work: TurnWork::default(),
            quiet: false,
            is_steered: false,
            reviewing: None,
        }
    }

    /// The work to continue after a stop, or after the budget cut it off.
    fn halted(self, end: &TurnOutcome) -> Option<Box<HaltedTurn>> {
        let (by, who) = match end {
            TurnOutcome::Interrupted => self.stopped.map(|stopped| (stopped.by, stopped.who))?,
            TurnOutcome::Budget => (OUT_OF_BUDGET.to_owned(), Some(DecidedBy::Rule(OUT_OF_BUDGET.to_owned()))),
            _ => return None,
        };
        Some(Box::new(HaltedTurn { by, who, assignment: self.assignment }))
    }
}

impl RunningTurn {
    /// Adds the cost of an ended call.
    fn charge(&mut self, intent: &LlmIntent, ended: &LlmEnded) {
        let Some(Bill { usage, nano, unknown_nano, is_priced }) = ended.bill(intent) else { return };
        let (unpriced_calls, last_call) = (u64::from(!is_priced), intent.call);
        match self.charges.iter_mut().find(|charge| charge.model == intent.model.name) {
            Some(charge) => {
                charge.calls += 1;
                charge.usage += usage;
                charge.nano = charge.nano.saturating_add(nano);
                charge.unknown_nano = charge.unknown_nano.saturating_add(unknown_nano);
                charge.unpriced_calls += unpriced_calls;
                charge.last_call = last_call;
            }
            None => {
                let model = intent.model.name.clone();
                self.charges.push(Charge { model, calls: 1, usage, nano, unknown_nano, unpriced_calls, last_call });
            }
        }
    }

    /// Whether it belongs to a plan: its time does not run while it waits.
    fn is_planned(&self) -> bool {
        self.assignment.as_ref().is_some_and(|given| given.plan.is_some())
    }

    /// Takes an answer in.
    fn hear(&mut self, message: &Message, calls: &[ToolCall]) {
        let text = message.text();
        if !text.is_empty() {
            self.text = text;
        }
        let fingerprint = apply::fingerprint(calls);
        let again = fingerprint.is_some() && fingerprint == self.repeats.calls;
        self.repeats.count = if again { self.repeats.count + 1 } else { 1 };
        self.repeats.calls = fingerprint;
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
enum Phase {
    /// No turn runs.
    #[default]
    Idle,
    /// A turn runs and the next call has not been decided.
    Ready,
    /// A model call is in flight.
    Calling(PendingModelCall),
    /// A failed call waits for its retry.
    Waiting(PendingModelCall, i64),
    /// The tool calls of an answer.
    Working(Vec<ToolCall>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct PendingModelCall {
    intent: LlmIntent,
    failed: u32,
    /// Whether its retries are used up and it waits for a model server that cannot be reached.
    #[serde(default)]
    parked: bool,
}

/// The key of an answer's tool call: the number of the model call and the position in the answer.
pub fn call_key(call: u32, index: usize) -> String {
    format!("{call}.{index}")
}

/// One tool call of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in the agent's stream: call number and position.
    pub key: String,
    /// The provider's id.
    pub id: String,
    pub tool: String,
    pub input: Arc<Value>,
    status: ToolCallStatus,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum ToolCallStatus {
    Open,
    Asked {
        question: QuestionId,
        action: Action,
        class: Repeatability,
        #[serde(default)]
        memory: RememberedRule,
        /// The comment of an earlier approval.
        #[serde(default)]
        words: String,
    },
    Intended {
        action: Action,
        class: Repeatability,
        #[serde(default)]
        attended: bool,
        /// The comment that follows the results.
        #[serde(default)]
        words: String,
    },
    Done {
        content: Vec<Part>,
        is_error: bool,
        ran: bool,
        #[serde(default)]
        words: String,
    },
}

/// What the driver knows at the moment of a decision.
#[derive(Debug, Clone)]
pub struct TurnEnv {
    /// Milliseconds since the epoch.
    pub at_ms: i64,
    /// A random number, for jitter.
    pub jitter: u32,
    /// A fresh UUID, from which ids are made.
    pub fresh: Uuid,
    /// What every request carries besides the history.
    pub frame: PromptRef,
    /// Like `frame`, for a call for a summary.
    pub compact: PromptRef,
    /// Facts that a compaction keeps without a model; used only when a summary has arrived.
    pub facts: String,
    /// Messages that have arrived since the turn began; they go with the next call.
    pub steer: Option<Steered>,
    /// What the shared budgets have left.
    pub left: RemainingBudget,
    /// What they will have left at most once all running calls are settled.
    pub later: RemainingBudget,
}

/// What every request carries besides the history: content addresses and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptRef {
    /// Blob: the system text.
    pub instructions: Hash,
    /// Blob: the tools' schemas.
    pub tools: Hash,
    /// Blob: the settings.
    pub settings: Hash,
    /// Bytes of all of them.
    pub bytes: usize,
}

/// The result of judging a tool call before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedCall {
    /// Key of the call.
    pub key: String,
    /// Its effect and whether it may be repeated after a crash; or why it cannot run.
    pub found: Result<(Action, Repeatability), PrepareError>,
}

/// Why a call cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrepareError {
    /// The model is told, and can correct the call.
    Told(String),
    /// The tool refuses it, even with an approval.
    Refused {
        /// The target that it would have changed.
        target: String,
        basis: crate::policy::Basis,
        /// Text for the model.
        words: String,
    },
    /// The turn cannot continue.
    Fatal(String),
}

/// What a turn reacts to.
#[derive(Debug, Clone)]
pub enum TurnInput {
    /// A message is taken from the mailbox and begins a turn.
    Begin {
        /// The new turn.
        turn: TurnId,
        /// The message that begins it.
        envelope: EnvelopeId,
        /// The content of the message.
        input: Vec<Part>,
        /// The task and the recipient of its result, if that is not the user.
        assignment: Option<Arc<Assignment>>,
        /// What was recalled from memory for it.
        recall: Option<Recall>,
        /// Notes about files that a rewind restored.
        rewound: Vec<RewindNote>,
        /// Further messages that it answers.
        envelopes: Vec<EnvelopeId>,
        /// Only teammates' messages begin it: no reader waits for its answer.
        quiet: bool,
        /// Length of the chain of teammate messages that led to it.
        hops: u32,
    },
    /// The user asks to compact the whole conversation.
    Compact {
        /// The turn that only compacts.
        turn: TurnId,
        /// What the summary should keep above all.
        keep: String,
    },
    /// The user undoes the last compaction.
    Uncompact,
    /// New settings from now on.
    Configure(Arc<Settings>),
    /// A new definition from now on, with its settings.
    Redefine(Arc<Definition>, Arc<Settings>),
    /// The model call ended.
    ModelEnded {
        /// Number of the call and of the attempt: a late end of an abandoned attempt changes nothing.
        call: (u32, u32),
        /// The outcome; `retry_at_ms` is decided here, not given.
        outcome: LlmOutcome,
        /// Milliseconds it took.
        ms: u64,
        /// The part of the answer that had arrived, if the call ended without one.
        streamed: PartialAnswer,
        /// Its first calls, if judging them took no time: they are then decided in the same commit. For an answer of
        /// JSON without calls: whether it matches the agreed schema.
        prepared: Vec<PreparedCall>,
    },
    /// It is time for the retry.
    Woke,
    /// Calls were judged, in order.
    Prepared(Vec<PreparedCall>),
    /// Calls that act on the team were carried out together: each with its result for the model, and whether it
    /// failed.
    Acted(Vec<(String, Vec<Part>, bool)>),
    /// A tool ended.
    ToolEnded {
        /// Key of the call.
        key: String,
        /// The result for the model.
        content: Vec<Part>,
        /// Whether it failed.
        is_error: bool,
        /// Whether it ran, was stopped, or has an unknown outcome.
        ending: ToolOutcome,
        /// Why the turn cannot continue, if so.
        fatal: Option<String>,
        /// Milliseconds it took.
        ms: u64,
    },
    /// A question was answered.
    Answered {
        question: QuestionId,
        /// The person's answer.
        answer: PermissionAnswer,
    },
    /// The called agent has no answer to a question, or its changes in a worktree need a decision: the user is asked,
    /// if possible.
    Unanswered {
        /// Key of the call.
        key: String,
        /// The question as a person reads it.
        action: Action,
    },
    /// The turn is stopped.
    Interrupt {
        /// The person or component that stops it.
        by: InterruptedBy,
    },
    /// The changes of a review are gone or not finished: no question is needed. A decision that a person has already
    /// made is carried out first.
    Moot {
        /// Text for the result of the review.
        words: String,
    },
    /// The agent can never continue, and no work of its process is left.
    Broken {
        /// The reason for people.
        detail: String,
    },
    /// This process has just folded the log; no work of the process before it is left.
    Recovered,
}

/// What the driver has to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEffect {
    /// Call the model as the intent says.
    CallModel(LlmIntent),
    /// Judge these calls in order, up to and including the first that is not pure.
    Prepare(Vec<String>),
    /// Run a tool.
    RunTool {
        /// Key of the call.
        key: String,
        /// The allowed action.
        action: Action,
        /// Whether a person has seen this very action and approved it.
        attended: bool,
    },
    /// A person must answer.
    Ask {
        question: QuestionId,
        /// Name of the tool.
        tool: String,
        /// The action in question.
        action: Action,
        /// The rule that "always allow" adds.
        memory: RememberedRule,
    },
    /// Wait until a call of another agent has been settled.
    Afford,
    /// Wait for the retry.
    Sleep {
        /// When the retry is due.
        until_ms: i64,
    },
    /// Cancel all running calls.
    CancelAll,
}

impl Turn {
    /// A loop before its agent has started.
    pub fn new() -> Self {
        Self::default()
    }

    /// The effects that are due.
    pub fn pending(&self) -> Vec<TurnEffect> {
        let interrupted = self.current.as_ref().is_some_and(|current| current.stopped.is_some());
        match &self.phase {
            Phase::Idle => Vec::new(),
            Phase::Ready if interrupted => Vec::new(),
            Phase::Ready => vec![TurnEffect::Afford],
            // The user's decision about a worktree is carried out even after a stop.
            Phase::Working(calls)
                if interrupted && self.review_message().is_some() && worktree_review::is_settling(calls) =>
            {
                pending_calls(calls)
            }
            _ if interrupted => vec![TurnEffect::CancelAll],
            Phase::Calling(calling) => vec![TurnEffect::CallModel(calling.intent.clone())],
            Phase::Waiting(_, until_ms) => vec![TurnEffect::Sleep { until_ms: *until_ms }],
            Phase::Working(calls) => pending_calls(calls),
        }
    }

    /// Whether a turn runs.
    pub fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// The running turn.
    pub fn current(&self) -> Option<TurnId> {
        self.current.as_ref().map(|current| current.turn)
    }

    /// The task of the running turn, if another agent or a plan waits for the result.
    pub fn assignment(&self) -> Option<&Assignment> {
        self.current.as_ref()?.assignment.as_deref()
    }

    /// The message that began the running turn: its result answers this one.
    pub fn began_with(&self) -> Option<EnvelopeId> {
        self.current.as_ref()?.envelope
    }

    /// Name of the person or component that stopped the running turn, if it was stopped.
    pub fn stopped_by(&self) -> Option<&str> {
        self.current.as_ref()?.stopped.as_ref().map(|stopped| stopped.by.as_str())
    }

    /// The targets of calls of this turn whose outcome is unknown, because the process died while they ran.
    pub fn unknown_outcomes(&self) -> &[String] {
        self.current.as_ref().map_or(&[], |current| &current.work.unknown)
    }

    /// Keys of the calls whose outcome would be unknown if this process ended.
    pub fn unknown(&self) -> Vec<&str> {
        let interrupted = self.stopped_by().is_some();
        match &self.phase {
            // The call of a review can be repeated, and its question can wait.
            Phase::Working(_) if self.review_message().is_some() => Vec::new(),
            Phase::Working(calls) => decide::unknown(calls, interrupted).map(|call| call.key.as_str()).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a call of the running turn waits for a person.
    pub fn is_asking(&self) -> bool {
        matches!(&self.phase, Phase::Working(calls) if calls.iter().any(|call| matches!(call.status, ToolCallStatus::Asked { .. })))
    }

    /// Whether the running turn has changed nothing and asked no one, so that its answer depends only on what it read.
    pub fn only_looked(&self) -> bool {
        self.current.as_ref().is_some_and(|current| !current.work.acted)
    }

    /// The call in flight, or the one that waits for its retry.
    pub fn calling(&self) -> Option<&LlmIntent> {
        match &self.phase {
            Phase::Calling(calling) | Phase::Waiting(calling, _) => Some(&calling.intent),
            _ => None,
        }
    }

    /// The last ended call and its last ended attempt; the highest number if no other attempt follows.
    pub fn settled_call(&self) -> (u32, u32) {
        match &self.phase {
            Phase::Calling(PendingModelCall { intent, .. }) => (intent.call, intent.attempt.saturating_sub(1)),
            Phase::Waiting(PendingModelCall { intent, .. }, _) => (intent.call, intent.attempt),
            _ => (self.calls_made, u32::MAX),
        }
    }

    /// Whether the turn waits for a model server that cannot be reached.
    pub fn is_parked(&self) -> bool {
        matches!(&self.phase, Phase::Calling(calling) | Phase::Waiting(calling, _) if calling.parked)
    }

    /// The cost of the running turn so far, by model.
    pub fn charges(&self) -> &[Charge] {
        self.current.as_ref().map_or(&[], |current| &current.charges)
    }
    /// How the last turn ended, reviews excluded.
    pub fn last(&self) -> Option<&TurnEnded> {
        self.last.as_ref()
    }

    /// The last turn, if it was stopped.
    pub fn halted(&self) -> Option<&HaltedTurn> {
        self.stop.halted.as_deref()
    }

    /// Whether it was last stopped: then it begins nothing by itself.
    pub fn is_stopped(&self) -> bool {
        self.held().is_some() || self.last.as_ref().is_some_and(|last| last.end == TurnOutcome::Interrupted)
    }

    /// The hold of a person's stop.
    pub fn held(&self) -> Option<&Hold> {
        self.stop.known.as_deref().or(self.stop.held.as_deref())
    }

    /// Whether a message is on hold since a stop.
    pub fn is_on_hold(&self, envelope: &Envelope) -> bool {
        self.held().is_some_and(|held| held.holds(envelope))
    }

    /// The newest turn that it knows: its own, or the one that a stop names.
    pub fn newest(&self) -> Option<TurnId> {
        let since = self.held().and_then(|held| held.since);
        self.current().max(self.last.as_ref().map(|last| last.turn)).max(since)
    }

    /// The permissions that a person has granted.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// The whole history.
    pub fn history(&self) -> &[Message] {
        &self.conversation.history
    }

    /// The part of the history that requests carry.
    pub fn window(&self) -> Window {
        self.conversation.window
    }

    /// The message that stands at the head of the window for the messages that left it.
    pub fn summary_message(&self) -> Option<Message> {
        self.conversation.head()
    }

    /// The message that began the turn before this message.
    pub fn asked_before(&self, message: usize) -> Option<String> {
        self.conversation.asked_before(message)
    }

    /// Whether the running turn only compacts.
    pub fn is_compacting(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.compacting)
    }

    /// Money and tokens.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The settings that it works under.
    pub fn settings(&self) -> Option<&Arc<Settings>> {
        self.settings.as_ref()
    }

    /// The agent and session that it serves.
    pub fn identity(&self) -> Option<(AgentId, SessionId, &Arc<Definition>)> {
        self.identity.as_ref().map(|identity| (identity.agent, identity.session, &identity.definition))
    }

    /// Estimated tokens of the history in the next request.
    pub fn window_tokens(&self) -> u64 {
        self.conversation.window_tokens()
    }

    /// The tool calls of the current answer that have no result yet.
    pub fn open_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let calls = if let Phase::Working(calls) = &self.phase { calls.as_slice() } else { &[] };
        calls.iter().filter(|call| !matches!(call.status, ToolCallStatus::Done { .. }))
    }

    /// A tool call of the current answer.
    pub fn call(&self, key: &str) -> Option<&ToolCall> {
        match &self.phase {
            Phase::Working(calls) => calls.iter().find(|call| call.key == key),
            _ => None,
        }
    }
}

fn pending_calls(calls: &[ToolCall]) -> Vec<TurnEffect> {
    let mut effects = Vec::new();
    let mut open = Vec::new();
    let mut asks = false;
    for call in calls {
        // Calls that change something run alone and in order; read-only calls run side by side.
        match &call.status {
            ToolCallStatus::Done { .. } => {}
            // One question is asked at a time.
            ToolCallStatus::Open if asks => {}
            ToolCallStatus::Open => open.push(call.key.clone()),
            ToolCallStatus::Asked { question, action, memory, .. } => {
                let (tool, action, memory) = (call.tool.clone(), action.clone(), memory.clone());
                // A question about a worktree does not hold up running calls.
                let holds = action.kind != ActionKind::Merge;
                effects.push(TurnEffect::Ask { question: *question, tool, action, memory });
                asks = true;
                if holds {
                    break;
                }
            }
            ToolCallStatus::Intended { action, class, attended, .. } => {
                let is_alone = !effects.iter().any(|effect| matches!(effect, TurnEffect::RunTool { .. }));
                if *class == Repeatability::Pure || is_alone {
                    let (key, action) = (call.key.clone(), action.clone());
                    effects.push(TurnEffect::RunTool { key, action, attended: *attended });
                }
                if *class != Repeatability::Pure {
                    break;
                }
            }
        }
    }
    if !open.is_empty() {
        effects.push(TurnEffect::Prepare(open));
    }
    effects
}
