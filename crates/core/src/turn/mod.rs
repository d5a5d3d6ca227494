//! The loop of one agent: intent → answer → tools → intent … → answer.
//!
//! [`Turn`] lives as long as its agent; between turns it is idle. `decide` (in `decide`) turns an input into
//! events and changes nothing; `apply` (in `apply`) folds an event in and decides nothing; `pending` lists what
//! still has to be done in the world. A fresh process that folds the log gets the same `pending` as the one that
//! died, and goes on.

mod apply;
mod bill;
mod call;
mod compact;
mod decide;
mod did;
mod mail;
mod mates;
mod past;
mod review;
#[cfg(test)]
mod tests;
mod tools;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::chat::{Message, Part, Streamed};
use crate::context::summary::Compacted;
use crate::context::{BYTES_PER_KILOTOKEN, Weight, Window};
use crate::event::{End, Ending, LlmEnded, LlmIntent, Outcome, Steered, Stopper, TurnEnded};
use crate::hash::Hash;
use crate::id::{AgentId, EnvelopeId, QuestionId, SessionId, TurnId};
use crate::ledger::{Bill, Charge, Ledger, Left};
use crate::mates::requests::Requests;
use crate::mates::{AgentEnded, CommandBegun};
use crate::memory::Recall;
use crate::message::{Assignment, Envelope};
use crate::plan::Task;
use crate::policy::{Action, Answer, By, Class, Deed, Grant, Memory};
use crate::rewind::Told;
use crate::stop::Held;
use crate::team::{Definition, Settings};

pub use call::json_in;
pub use did::Did;
pub use mail::{ASIDE, is_note, is_stop};
pub use mates::trigger;
pub use past::{Forked, Past};
pub use tools::{NEED_CLARIFY, SETTLE, STRUCTURED_OUTPUT, SUBMIT_PLAN, TASK_UPDATE};

/// The state of an agent's loop.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Turn {
    identity: Option<Identity>,
    settings: Option<Arc<Settings>>,
    history: Vec<Message>,
    weights: Vec<Weight>,
    window: Window,
    ledger: Ledger,
    grants: Vec<Grant>,
    calls_made: u32,
    bytes_per_kilotoken: u64,
    phase: Phase,
    current: Option<Current>,
    last: Option<TurnEnded>,
    /// What it was at when it was stopped, as long as it has begun nothing since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    halted: Option<Box<Halted>>,
    /// What a person's stop has left waiting, as long as nothing has begun since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<Box<Held>>,
    /// The same with a stop of everybody, which is in the lead's own stream: it is looked up there, and never stored here.
    #[serde(skip)]
    known: Option<Box<Held>>,
    /// Tasks that were written down and not proposed yet.
    #[serde(default)]
    drafts: Vec<Task>,
    /// What has left the window and is told in short; the last one counts.
    #[serde(default)]
    compactions: Vec<Compacted>,
    /// A compaction was taken back: until the next that somebody asks for there is none.
    #[serde(default)]
    restored: bool,
    /// What it has asked of others by letter.
    #[serde(default, skip_serializing_if = "Requests::is_empty")]
    requests: Requests,
    /// Turns since somebody other than a colleague wanted something of it.
    #[serde(default)]
    echoes: u32,
    /// How many letters of colleagues in a row led to its last turn.
    #[serde(default)]
    hops: u32,
    /// Its lead gave it something to do, and it waited for colleagues when it last reported.
    #[serde(default)]
    owes: bool,
    /// Its commands that run in the background.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    commands: Vec<CommandBegun>,
    /// Requests for teammates that it was told to refuse: nobody of them begins, also where what was made for them is not gone yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<EnvelopeId>,
    /// That it is no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone: Option<AgentEnded>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Identity {
    agent: AgentId,
    session: SessionId,
    definition: Arc<Definition>,
    /// What a teammate was started for, and who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mate: Option<Arc<Assignment>>,
}

/// A turn that was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halted {
    /// Who or what has stopped it.
    pub by: String,
    /// What they are, if that is known.
    #[serde(default)]
    pub who: Option<By>,
    /// What it was a part of, if somebody other than the user waited for it.
    pub assignment: Option<Arc<Assignment>>,
}

/// The limit that stopped a turn whose next call could not be paid.
const OUT_OF_BUDGET: &str = "budget";

impl Halted {
    /// Whether the next call could not be paid.
    pub fn is_out_of_budget(&self) -> bool {
        matches!(&self.who, Some(By::Rule(rule)) if rule == OUT_OF_BUDGET)
    }
}

/// What is known of the turn that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Current {
    turn: TurnId,
    rounds: u32,
    nudges: u32,
    /// Identical answers in a row, and what they looked like.
    repeats: u32,
    fingerprint: Option<Hash>,
    /// The fallback model has taken over.
    fallback: bool,
    interrupted: Option<String>,
    /// What whoever has stopped it is.
    #[serde(default)]
    stopper: Option<By>,
    /// The last text the model said.
    text: String,
    /// Who waits for the answer, if not the user.
    #[serde(default)]
    assignment: Option<Arc<Assignment>>,
    /// The message that began it.
    #[serde(default)]
    envelope: Option<EnvelopeId>,
    /// What it cost so far.
    #[serde(default)]
    charges: Vec<Charge>,
    /// It is about nothing but making room.
    #[serde(default)]
    compacting: bool,
    /// There was no summary to be had: it is not asked for again in this turn.
    #[serde(default)]
    unsummarised: bool,
    /// Structured answers that did not have their shape.
    #[serde(default)]
    misfits: u32,
    /// It has done more than look.
    #[serde(default)]
    acted: bool,
    /// Targets of calls that a crash interrupted: their outcome is unknown, and they have not run well since.
    #[serde(default)]
    unknown: Vec<String>,
    /// Nobody waits for what comes of it.
    #[serde(default)]
    quiet: bool,
    /// The user said something meanwhile.
    #[serde(default)]
    is_steered: bool,
    /// It has written to a colleague.
    #[serde(default)]
    wrote: bool,
    /// The results of the last answer's calls, to tell a repeated call from one with a new result.
    #[serde(default)]
    results: Option<Hash>,
    /// What it did with its tools.
    #[serde(default)]
    did: Did,
    /// It is about nothing but what was done in a copy; this is sent when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reviewing: Option<Box<Envelope>>,
}

impl Current {
    fn new(turn: TurnId, assignment: Option<Arc<Assignment>>) -> Self {
        Self {
            turn,
            rounds: 0,
            nudges: 0,
            repeats: 0,
            fingerprint: None,
            fallback: false,
            interrupted: None,
            stopper: None,
            text: String::new(),
            assignment,
            envelope: None,
            charges: Vec::new(),
            compacting: false,
            unsummarised: false,
            misfits: 0,
            acted: false,
            unknown: Vec::new(),
            quiet: false,
            is_steered: false,
            wrote: false,
            results: None,
            did: Did::default(),
            reviewing: None,
        }
    }

    /// The work to continue after a stop, or after the budget cut it off.
    fn halted(self, end: &End) -> Option<Box<Halted>> {
        let (by, who) = match end {
            End::Interrupted => (self.interrupted?, self.stopper),
            End::Budget => (OUT_OF_BUDGET.to_owned(), Some(By::Rule(OUT_OF_BUDGET.to_owned()))),
            _ => return None,
        };
        Some(Box::new(Halted { by, who, assignment: self.assignment }))
    }
}

impl Current {
    /// What is known of the cost once a call has ended.
    fn charge(&mut self, intent: &LlmIntent, ended: &LlmEnded) {
        let Some(Bill { usage, nano, unknown_nano, .. }) = ended.bill(intent) else { return };
        match self.charges.iter_mut().find(|charge| charge.model == intent.model.name) {
            Some(charge) => {
                charge.calls += 1;
                charge.usage += usage;
                charge.nano = charge.nano.saturating_add(nano);
                charge.unknown_nano = charge.unknown_nano.saturating_add(unknown_nano);
            }
            None => {
                let model = intent.model.name.clone();
                self.charges.push(Charge { model, calls: 1, usage, nano, unknown_nano });
            }
        }
    }

    /// Whether it is a plan's: its time stands still while it waits.
    fn is_planned(&self) -> bool {
        self.assignment.as_ref().is_some_and(|given| given.plan.is_some())
    }

    /// What is known once an answer has been heard.
    fn hear(&mut self, message: &Message, calls: &[Call]) {
        let text = message.text();
        if !text.is_empty() {
            self.text = text;
        }
        let fingerprint = apply::fingerprint(calls);
        let again = fingerprint.is_some() && fingerprint == self.fingerprint;
        self.repeats = if again { self.repeats + 1 } else { 1 };
        self.fingerprint = fingerprint;
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
enum Phase {
    /// Between turns.
    #[default]
    Idle,
    /// A turn runs and the next call has not been decided.
    Ready,
    /// A model call is in flight.
    Calling(Calling),
    /// A failed call waits for its retry.
    Waiting(Calling, i64),
    /// The tools of an answer.
    Working(Vec<Call>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Calling {
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
pub struct Call {
    /// Unique in the agent's stream: call number and position.
    pub key: String,
    /// The provider's id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Arc<Value>,
    status: Status,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Status {
    Open,
    Asked {
        question: QuestionId,
        action: Action,
        class: Class,
        #[serde(default)]
        memory: Memory,
        /// What was said along with an earlier yes to it.
        #[serde(default)]
        words: String,
    },
    Intended {
        action: Action,
        class: Class,
        #[serde(default)]
        attended: bool,
        /// What is told behind the results.
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
pub struct Now {
    /// The time.
    pub at_ms: i64,
    /// A random number, for jitter.
    pub jitter: u32,
    /// A fresh UUID, from which ids are made.
    pub fresh: Uuid,
    /// What every request carries besides the history.
    pub frame: Frame,
    /// The same for a call that sums up what is old.
    pub compact: Frame,
    /// What a compaction keeps without asking a model; only looked at when a summary has come.
    pub facts: String,
    /// What the user has said since the turn began; it goes with the next call.
    pub steer: Option<Steered>,
    /// What the whole team has left.
    pub left: Left,
    /// What it will have left at most once all calls that are being made have said what they cost.
    pub later: Left,
}

/// What every request carries besides the history: content addresses and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Blob: the system text.
    pub instructions: Hash,
    /// Blob: the tools' schemas.
    pub tools: Hash,
    /// Blob: the settings.
    pub settings: Hash,
    /// Bytes of all of them.
    pub bytes: usize,
}

/// What a tool call was found to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The call.
    pub key: String,
    /// What it would do and what a crash means for it; or why it cannot run.
    pub found: Result<(Action, Class), Obstacle>,
}

/// Why a call cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The model is told and can do better.
    Told(String),
    /// The tool refuses, also with an approval.
    Refused {
        /// What it would have changed.
        target: String,
        /// Why, as a rule.
        rule: String,
        /// What the model is told.
        words: String,
    },
    /// Nobody in this turn can do anything about it.
    Fatal(String),
}

/// What happened in the world.
#[derive(Debug, Clone)]
pub enum Input {
    /// A user's message is taken from the mailbox.
    Begin {
        /// The new turn.
        turn: TurnId,
        /// The letter.
        envelope: EnvelopeId,
        /// What it says.
        input: Vec<Part>,
        /// Who waits for the answer, if not the user.
        assignment: Option<Arc<Assignment>>,
        /// What it is told from memory.
        recall: Option<Recall>,
        /// What it is told of files that were put back.
        rewound: Vec<Told>,
        /// Further letters.
        letters: Vec<EnvelopeId>,
        /// Nobody waits for what comes of it.
        quiet: bool,
        /// How many letters of colleagues in a row led to it.
        hops: u32,
    },
    /// Everything so far is to be summed up.
    Compact {
        /// The turn that does nothing else.
        turn: TurnId,
        /// What is to be kept above all.
        keep: String,
    },
    /// The last compaction is taken back.
    Uncompact,
    /// Other settings from now on.
    Configure(Arc<Settings>),
    /// Another definition from now on, with the settings that go with it.
    Redefine(Arc<Definition>, Arc<Settings>),
    /// The model call ended.
    ModelEnded {
        /// Which call, and which attempt at it: one that was given up on changes nothing when it lands late.
        call: (u32, u32),
        /// How; `retry_at_ms` is decided here, not given.
        outcome: Outcome,
        /// Milliseconds it took.
        ms: u64,
        /// How much of an answer had come, where there is none.
        streamed: Streamed,
        /// Its first calls, where looking at them took no time: they are then judged in the same commit. Of an answer without
        /// calls that consists of JSON: whether it has the shape that was agreed.
        prepared: Vec<Prepared>,
    },
    /// It is time for the retry.
    Woke,
    /// Calls were looked at, in order.
    Prepared(Vec<Prepared>),
    /// Calls that act on the team were carried out together: each with what the model is told, and whether it went wrong.
    Acted(Vec<(String, Vec<Part>, bool)>),
    /// A tool ended.
    ToolEnded {
        /// The call.
        key: String,
        /// What the model is told.
        content: Vec<Part>,
        /// Whether it failed.
        is_error: bool,
        /// Whether it ran, was stopped, or has an unknown outcome.
        ending: Ending,
        /// The turn cannot go on, and why.
        fatal: Option<String>,
        /// Milliseconds it took.
        ms: u64,
    },
    /// A question was answered.
    Answered {
        /// Which.
        question: QuestionId,
        /// How.
        answer: Answer,
    },
    /// Nobody on the team can say what a call asks, or what becomes of what was done for it in a copy: the user is asked, if
    /// anybody can be.
    Unanswered {
        /// The call.
        key: String,
        /// The question, as a person reads it.
        action: Action,
    },
    /// Somebody stops the turn.
    Interrupt {
        /// Who.
        by: Stopper,
    },
    /// What a review is about is no more, or is not done yet: nobody needs to be asked. What a person has said is done first.
    Moot {
        /// What is known of it.
        words: String,
    },
    /// Whoever is at it cannot go on, ever; whatever ran before is gone.
    Broken {
        /// Why.
        detail: String,
    },
    /// This process has just folded the log; whatever ran before is gone.
    Recovered,
}

/// What still has to be done in the world.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Call the model as the intent says.
    CallModel(LlmIntent),
    /// Look at these calls in order, up to and including the first that is not pure.
    Prepare(Vec<String>),
    /// Run a tool.
    RunTool {
        /// The call.
        key: String,
        /// What it was allowed to do.
        action: Action,
        /// Whether a person has looked at this very action and said yes.
        attended: bool,
    },
    /// Somebody must answer.
    Ask {
        /// The question.
        question: QuestionId,
        /// The tool.
        tool: String,
        /// What would be done.
        action: Action,
        /// What a "yes, always" is remembered as.
        memory: Memory,
    },
    /// Nothing until a call of somebody else has said what it really cost.
    Afford,
    /// Nothing until then.
    Sleep {
        /// When.
        until_ms: i64,
    },
    /// Stop whatever is in flight.
    CancelAll,
}

impl Turn {
    /// A loop that has not heard of its agent yet.
    pub fn new() -> Self {
        Self { bytes_per_kilotoken: BYTES_PER_KILOTOKEN, ..Self::default() }
    }

    /// What still has to be done.
    pub fn pending(&self) -> Vec<Effect> {
        let interrupted = self.current.as_ref().is_some_and(|current| current.interrupted.is_some());
        match &self.phase {
            Phase::Idle => Vec::new(),
            Phase::Ready if interrupted => Vec::new(),
            Phase::Ready => vec![Effect::Afford],
            // What the user has said becomes of a copy is carried to its end.
            Phase::Working(calls) if interrupted && self.reviewing().is_some() && review::is_settling(calls) => {
                pending_calls(calls)
            }
            _ if interrupted => vec![Effect::CancelAll],
            Phase::Calling(calling) => vec![Effect::CallModel(calling.intent.clone())],
            Phase::Waiting(_, until_ms) => vec![Effect::Sleep { until_ms: *until_ms }],
            Phase::Working(calls) => pending_calls(calls),
        }
    }

    /// Whether a turn runs.
    pub fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// The turn that runs.
    pub fn current(&self) -> Option<TurnId> {
        self.current.as_ref().map(|current| current.turn)
    }

    /// What the turn that runs is a part of, if somebody other than the user waits for it.
    pub fn assignment(&self) -> Option<&Assignment> {
        self.current.as_ref()?.assignment.as_deref()
    }

    /// The message that began the turn that runs: its result answers this one.
    pub fn began_with(&self) -> Option<EnvelopeId> {
        self.current.as_ref()?.envelope
    }

    /// Who or what has stopped the turn that runs, if it was stopped.
    pub fn stopped_by(&self) -> Option<&str> {
        self.current.as_ref()?.interrupted.as_deref()
    }

    /// The targets of calls of this turn whose outcome is unknown, because the process died while they ran.
    pub fn unknown_outcomes(&self) -> &[String] {
        self.current.as_ref().map_or(&[], |current| &current.unknown)
    }

    /// The keys of the calls that nobody can say of whether they happened, if the process that made them is gone.
    pub fn unknown(&self) -> Vec<&str> {
        let interrupted = self.stopped_by().is_some();
        match &self.phase {
            // What it has to do can be done again, and what it has to ask can wait.
            Phase::Working(_) if self.reviewing().is_some() => Vec::new(),
            Phase::Working(calls) => decide::unknown(calls, interrupted).map(|call| call.key.as_str()).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a call of the turn that runs waits for a person.
    pub fn is_asking(&self) -> bool {
        matches!(&self.phase, Phase::Working(calls) if calls.iter().any(|call| matches!(call.status, Status::Asked { .. })))
    }

    /// Whether the turn that runs has changed nothing and asked nobody: its answer follows from what it was told.
    pub fn only_looked(&self) -> bool {
        self.current.as_ref().is_some_and(|current| !current.acted)
    }

    /// The call in flight, or the one that waits to be made again.
    pub fn calling(&self) -> Option<&LlmIntent> {
        match &self.phase {
            Phase::Calling(calling) | Phase::Waiting(calling, _) => Some(&calling.intent),
            _ => None,
        }
    }

    /// Whether the turn waits for a model server that cannot be reached.
    pub fn is_parked(&self) -> bool {
        matches!(&self.phase, Phase::Calling(calling) | Phase::Waiting(calling, _) if calling.parked)
    }

    /// What the turn that runs has cost so far, by model.
    pub fn charges(&self) -> &[Charge] {
        self.current.as_ref().map_or(&[], |current| &current.charges)
    }

    /// Tasks that were written down and not proposed yet.
    pub fn drafts(&self) -> &[Task] {
        &self.drafts
    }

    /// How the last turn ended that was about more than a copy.
    pub fn last(&self) -> Option<&TurnEnded> {
        self.last.as_ref()
    }

    /// The last turn, if it was stopped.
    pub fn halted(&self) -> Option<&Halted> {
        self.halted.as_deref()
    }

    /// Whether the last thing that happened to it is that it was stopped: nothing is begun by that.
    pub fn is_stopped(&self) -> bool {
        self.held().is_some() || self.last.as_ref().is_some_and(|last| last.end == End::Interrupted)
    }

    /// What a person's stop has left waiting.
    pub fn held(&self) -> Option<&Held> {
        self.known.as_deref().or(self.held.as_deref())
    }

    /// Whether a letter waits with what a stop has left.
    pub fn holds(&self, letter: &Envelope) -> bool {
        self.held().is_some_and(|held| held.holds(letter))
    }

    /// The newest turn that it knows of: its own, or the one that a stop names.
    pub fn newest(&self) -> Option<TurnId> {
        let since = self.held().and_then(|held| held.since);
        self.current().max(self.last.as_ref().map(|last| last.turn)).max(since)
    }

    /// What a person has allowed.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// The whole history.
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// The part of the history that requests carry.
    pub fn window(&self) -> Window {
        self.window
    }

    /// What stands at the head of the window in the place of what has left it.
    pub fn head(&self) -> Option<Message> {
        self.compactions.last().map(Compacted::head)
    }

    /// What it was last asked before that message.
    pub fn asked_before(&self, message: usize) -> Option<String> {
        let last = self.weights.iter().take(message).rposition(|weight| weight.starts_turn)?;
        self.history.get(last).map(Message::text)
    }

    /// Whether the turn that runs is about nothing but making room.
    pub fn is_compacting(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.compacting)
    }

    /// Money and tokens.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What it works under.
    pub fn settings(&self) -> Option<&Arc<Settings>> {
        self.settings.as_ref()
    }

    /// Which agent and session it serves.
    pub fn identity(&self) -> Option<(AgentId, SessionId, &Arc<Definition>)> {
        self.identity.as_ref().map(|identity| (identity.agent, identity.session, &identity.definition))
    }

    /// About how many tokens the next request's history has.
    pub fn window_tokens(&self) -> u64 {
        let bytes = crate::context::weigh(&self.weights, self.window) + self.head_bytes();
        crate::context::tokens(bytes, self.bytes_per_kilotoken)
    }

    /// A tool call of the answer at work.
    pub fn call(&self, key: &str) -> Option<&Call> {
        match &self.phase {
            Phase::Working(calls) => calls.iter().find(|call| call.key == key),
            _ => None,
        }
    }
}

fn pending_calls(calls: &[Call]) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut open = Vec::new();
    let mut asks = false;
    for call in calls {
        // What changes something runs alone and in order; what only looks runs beside its neighbours.
        match &call.status {
            Status::Done { .. } => {}
            // One thing is asked at a time.
            Status::Open if asks => {}
            Status::Open => open.push(call.key.clone()),
            Status::Asked { question, action, memory, .. } => {
                let (tool, action, memory) = (call.tool.clone(), action.clone(), memory.clone());
                // What is asked about a copy holds up nobody who is at work.
                let holds = action.deed != Deed::Merge;
                effects.push(Effect::Ask { question: *question, tool, action, memory });
                asks = true;
                if holds {
                    break;
                }
            }
            Status::Intended { action, class, attended, .. } => {
                let is_alone = !effects.iter().any(|effect| matches!(effect, Effect::RunTool { .. }));
                if *class == Class::Pure || is_alone {
                    let (key, action) = (call.key.clone(), action.clone());
                    effects.push(Effect::RunTool { key, action, attended: *attended });
                }
                if *class != Class::Pure {
                    break;
                }
            }
        }
    }
    if !open.is_empty() {
        effects.push(Effect::Prepare(open));
    }
    effects
}
