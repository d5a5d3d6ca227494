//! The interface under every frontend: serialisable commands with a principal and an idempotency key, queries,
//! notices.
//!
//! A command is acknowledged after its commit, never before. Notices of events come in the order of the journal and
//! are queued for a slow frontend; agents never wait for it. Deltas of a model's answer are only shown live and may be
//! dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use max_team_core::agent::{Constraints, Definition, Model, Settings};
use max_team_core::channel::{ChatAddress, Delivery};
use max_team_core::chat::{Message, Usage};
use max_team_core::cost::SessionCost;
use max_team_core::event::{Event, LaunchFlags};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::ledger::Ledger;
use max_team_core::mcp::SourceStatus;
use max_team_core::memory::{BoardScope, Key};
use max_team_core::message::{Principal, Role};
use max_team_core::plan::Draft;
use max_team_core::plan::event::{ApprovalMode, PlanDecision};
use max_team_core::policy::{Action, Basis, PermissionAnswer, Recourse, RememberedRule};
use max_team_core::rewind::MovedFile;
use max_team_core::teammate::Spawn;
use max_team_core::turn::Forked;
use max_team_journal::Notifications;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::definitions::Definitions;
use crate::error::RuntimeError;
use crate::query::{self, Query, Question, Reply};
use crate::rewind;
use crate::runtime::{ResumedLead, Runtime};
use crate::session_files;
use crate::stream::{Mark, Scope, StreamReader};
use crate::user_mail::{PendingQuestion, ShownContent};

/// A command, with its author and its idempotency key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The person who gives it.
    pub by: Principal,
    /// The directory it was given in.
    pub cwd: String,
    /// Makes the order idempotent: a second order with the same key has no effect.
    pub key: EnvelopeId,
    /// What to do.
    pub command: Command,
}

/// What a frontend can ask for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "orders are few, and settings are the rarest of them")]
pub enum Command {
    /// Send a message to the lead of an open session. A running turn gets it with its next model call, if it makes
    /// one.
    Say { session: SessionId, text: String },
    /// Send a message to the lead that begins a turn after the running one.
    Queue { session: SessionId, text: String },
    /// Take back an unread message to the lead or to one teammate.
    Withdraw {
        session: SessionId,
        /// The key of the order that sent it.
        #[serde(rename = "letter")]
        envelope: EnvelopeId,
    },
    /// Send a message to agents of a session, open here or not: teammates by name, `team` for all of them, the lead.
    Write {
        session: SessionId,
        /// Names of the agents it is written to.
        to: Vec<String>,
        text: String,
    },
    /// Continue these stopped teammates and background tasks; without names, all of them, and the stopped plans.
    Continue {
        session: SessionId,
        /// Names of the agents it is for.
        to: Vec<String>,
    },
    /// Start these teammates. The lead checks them by the rules that apply to teammates its model asks for.
    Team {
        session: SessionId,
        #[serde(rename = "mates")]
        teammates: Vec<Spawn>,
    },
    /// Answer a question.
    Answer { session: SessionId, question: QuestionId, answer: PermissionAnswer },
    /// Answer a question of a plan.
    Decide { question: QuestionId, say: PlanDecision },
    /// Propose a plan to the user, without the lead's model.
    Propose {
        session: SessionId,
        draft: Box<Draft>,
        /// What it was made from, such as the name of a file.
        source: String,
    },
    /// Give up a plan, or one of its tasks and the tasks that depend on it.
    Stop { plan: PlanId, task: Option<String> },
    /// Stop the lead's turn and the agents that it called. Unread messages of the user begin the next turn.
    Interrupt { session: SessionId },
    /// Mark the messages to this person as read whose content a screen has shown.
    MarkRead { shown: Vec<ShownContent> },
    /// Restore files as the plan says, while no agent of the open session works. `query::RewindOutcome` tells what came of it.
    Rewind {
        session: SessionId,
        /// The plan, as `query::RewindPreview` gave it.
        plan: Box<rewind::RewindPlan>,
    },
    /// The user leaves an open session: running plans are paused in their name, and go on when the session is opened again.
    Leave { session: SessionId },
    /// Stop everything in the session: all agents, their background commands, and plans. An agent begins again with a new message to
    /// it or with `Continue`, a plan with `Continue`.
    StopSession { session: SessionId },
    /// Hand a session over to the server of its folder, which opens it once no other process has it open.
    HandOver { session: SessionId },
    /// Serve a folder in this process: it takes the sessions that are handed over there.
    ServeFolder { folder: String },
    /// Settle a hand-over to the folder that this process serves: the session is open, or another process has it.
    SettleHandover {
        folder: String,
        /// The message that handed the session over.
        handover: EnvelopeId,
    },
    /// Serve an account of a channel in this process: only its owner moves messages of that account out of the outbox.
    ServeChannel { channel: String, account: String },
    /// Record what happened to a message on its way to a chat.
    Deliver {
        /// The message, by its id in the outbox.
        message: String,
        chat: ChatAddress,
        delivery: Delivery,
    },
    /// Summarize the conversation so far, to free space in the context window.
    Compact {
        session: SessionId,
        /// What the summary must keep above all.
        keep: String,
    },
    /// Take the last compaction back.
    Uncompact { session: SessionId },
    /// Use other settings from the next model call on.
    Configure {
        session: SessionId,
        /// All settings, not only those that changed.
        settings: Settings,
    },
    /// Store a fact of the user in a memory board.
    Remember {
        scope: BoardScope,
        key: Key,
        /// An object becomes one fact per member.
        value: serde_json::Value,
    },
    /// Forget the facts under a key, and erase their text from the memory's log. `query::MemoryUses` tells where else it stands.
    Forget { scope: BoardScope, key: Key },
    /// Merge files of a worktree into its project. `query::WorktreeChanges` tells what is left of it.
    AcceptWorktree {
        worktree: String,
        /// These files; without names, all that differ.
        #[serde(default)]
        files: Vec<String>,
        /// The digest of the changes as `query::WorktreeChanges` gave them: others are not merged.
        #[serde(default)]
        shown: Option<Hash>,
    },
    /// Reject files of a worktree, or all of it: a worktree in which nothing is left to decide is removed.
    RejectWorktree {
        worktree: String,
        /// These files; without names, the whole worktree.
        #[serde(default)]
        files: Vec<String>,
        /// The digest of the changes as `query::WorktreeChanges` gave them: others are not rejected.
        #[serde(default)]
        shown: Option<Hash>,
    },
}

impl Command {
    /// The least role that may give this command.
    pub fn role(&self) -> Role {
        match self {
            Self::Say { .. }
            | Self::Queue { .. }
            | Self::Withdraw { .. }
            | Self::Write { .. }
            | Self::Continue { .. }
            | Self::Propose { .. }
            | Self::Stop { .. }
            | Self::MarkRead { .. }
            | Self::Leave { .. }
            | Self::Interrupt { .. }
            | Self::HandOver { .. }
            | Self::StopSession { .. } => Role::Member,
            Self::ServeChannel { .. }
            | Self::ServeFolder { .. }
            | Self::SettleHandover { .. }
            | Self::Deliver { .. }
            | Self::Team { .. }
            | Self::Answer { .. }
            | Self::Decide { .. }
            | Self::Rewind { .. }
            | Self::Compact { .. }
            | Self::Uncompact { .. }
            | Self::Configure { .. }
            | Self::Remember { .. }
            | Self::Forget { .. }
            | Self::AcceptWorktree { .. }
            | Self::RejectWorktree { .. } => Role::Owner,
        }
    }
}

/// Which session to open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// A new one.
    New,
    /// The one last used in this directory.
    Latest,
    /// The session with this id.
    Id(SessionId),
    /// The session with this id, with its last compaction taken back.
    Before(SessionId),
    /// The session of a chat of a messaging service; a new one, if it has none yet.
    Chat(ChatAddress),
    /// A new one that continues from a point of another, within its constraints; the session of a chat, if one is given.
    Fork(Box<Forked>, ResumedLead, Option<ChatAddress>),
}

/// How to open a session. A resumed one keeps its agent and history, and at least the constraints that it had before
/// (`core::resume`); the model and everything else are those given now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpenOptions {
    pub which: Which,
    /// The lead. A resumed session takes this definition over if it is the same agent and has no more tools than before.
    pub definition: Definition,
    /// The lead's settings.
    pub settings: Settings,
    /// Whether the user named the mode for this run; otherwise a resumed session keeps its own mode where that is stricter.
    #[serde(default)]
    pub mode_is_named: bool,
    /// The flags that chose the lead and the team of a new session.
    #[serde(default)]
    pub choice: LaunchFlags,
    /// The user's JSON Schema for a structured answer.
    pub schema: Option<serde_json::Value>,
    /// The agents that work for the lead; without them it works alone.
    pub team: Option<Team>,
    /// Whether the user cannot be asked: agents are told so.
    #[serde(default)]
    pub unattended: bool,
    /// The source of the lead's and the team's definitions; asked before each message.
    #[serde(skip)]
    pub definitions: Option<Arc<dyn Definitions>>,
}

impl OpenOptions {
    /// Opens a session without flags for mode or team, and without a schema for its answers.
    pub fn new(which: Which, definition: Definition, settings: Settings, team: Option<Team>) -> Self {
        Self {
            which,
            definition,
            settings,
            mode_is_named: false,
            choice: LaunchFlags::default(),
            schema: None,
            team,
            unattended: false,
            definitions: None,
        }
    }
}

/// The agents that a lead can use, and the bounds for them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Team {
    pub members: Vec<AgentSpec>,
    /// Agents that can be called but own no tasks of plans: experts, and the agent types that come with the program.
    #[serde(default)]
    pub experts: Vec<AgentSpec>,
    /// When a person is asked while plans are approved and carried out.
    pub approve: ApprovalMode,
    /// Tasks that may run at once.
    pub max_parallel: u32,
    /// Models that a plan or a ruling may name.
    pub models: BTreeMap<String, Model>,
    /// Models that a skill may ask for, by every name that a skill may use.
    #[serde(default)]
    pub wished: BTreeMap<String, Model>,
    /// How many calls of agents by agents may be nested; `0`: no agent may call another.
    #[serde(default)]
    pub call_depth: u32,
    /// Whether the lead only coordinates: it may call agents, write to agents that it called, and ask the user.
    #[serde(default)]
    pub coordinator: bool,
}

/// The agents of a session, as their files define them now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamDefinitions {
    /// The lead, if its definition has changed.
    pub lead: Option<Lead>,
    pub members: Vec<AgentSpec>,
    /// Agents that can be called but own no tasks.
    pub experts: Vec<AgentSpec>,
}

/// A changed definition of a lead: another prompt, other tools or another model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lead {
    pub definition: Definition,
    pub constraints: Constraints,
    /// The model, if the definition names another one.
    pub model: Option<Model>,
}

/// An agent's definition, with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSpec {
    pub definition: Arc<Definition>,
    pub settings: Settings,
}

/// An open session.
#[derive(Debug, Clone)]
pub struct OpenedSession {
    pub session: SessionId,
    pub agent: AgentId,
    /// The lead's settings.
    pub settings: Arc<Settings>,
    /// Whether it existed before.
    pub resumed: bool,
    /// Whether an unfinished turn or unread mail was waiting, which now goes on.
    pub continuing: bool,
    /// Like `continuing`, of the lead alone. Work that was stopped before the opening does not continue.
    pub lead_goes_on: bool,
    /// Whether the lead has a turn that was stopped before the opening.
    pub lead_halts: bool,
    /// The conversation so far.
    pub history: Vec<Message>,
    /// Messages of the user that were unread when it was opened, oldest first.
    pub queued: Vec<Queued>,
    /// How many messages a stop keeps from the lead, from any sender.
    pub held: usize,
    /// How the last turn ended, if one did.
    pub last: Option<max_team_core::event::TurnEnded>,
    /// Questions that were asked before and wait for an answer; they are not published again.
    pub asked: Vec<OpenQuestion>,
    /// Work that was open when the last process ended, and goes on here.
    pub recovered: Recovered,
    /// Plans that have not ended.
    pub plans: Vec<PlanId>,
    /// Instruction files that apply here, with their sizes in bytes.
    pub instructions: Vec<(String, usize)>,
    /// Notes for the user about them.
    pub notes: Vec<String>,
    /// Skills that the user can ask for by name.
    pub skills: Vec<String>,
    /// Protected files that commands made without approval and that still lie where they were moved to.
    pub moved: Vec<MovedFile>,
    /// The cost of its agents before this opening.
    pub cost: SessionCost,
    /// The whole crew, if a definition has changed since it was read for this opening.
    pub crew: Option<Arc<TeamDefinitions>>,
}

/// A session that another frontend has open.
#[derive(Debug, Clone, Serialize)]
pub struct Attached {
    pub session: SessionId,
    pub lead: AgentId,
    /// The place in the log behind everything that has happened so far.
    pub from: Mark,
    /// Questions and plans that wait for a person.
    pub asked: Vec<PendingQuestion>,
}

/// Work that a session had open when it was opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Agents with an unfinished turn.
    pub agents: usize,
    /// Tasks of plans that an agent works on.
    pub tasks: usize,
    /// Messages that no turn has read.
    pub mail: usize,
    /// Teams that a user asked for and that have not started.
    pub teams: usize,
    /// Questions that wait for a person.
    pub approvals: usize,
    /// Tool calls with an unknown outcome.
    pub unknown: usize,
}

impl Recovered {
    /// Whether nothing was open.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A message of the user that no turn has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    pub envelope: EnvelopeId,
    pub text: String,
    /// Whether it waits for the end of the running turn.
    pub wait: bool,
    /// Whether it is the lead's copy of a message to the whole team.
    pub all: bool,
}

/// A question that waits for an answer.
#[derive(Debug, Clone)]
pub struct OpenQuestion {
    pub question: QuestionId,
    pub tool: String,
    /// What would be done.
    pub action: Action,
    /// Name of the agent or plan that asks.
    pub by: String,
    /// The agent that asks, if it is one.
    pub agent: Option<AgentId>,
    /// The task that it works on, or its work in a few words.
    pub task: Option<String>,
    /// Its color, if it is a teammate.
    pub color: Option<String>,
    /// The rule because of which the user is asked.
    pub rule: String,
    /// The rule, if it is one that is not only a text.
    pub basis: Basis,
    /// What would let the call run without the question.
    pub recourse: Recourse,
    /// What a "yes, always" is remembered as.
    pub memory: RememberedRule,
    /// When the question was asked.
    pub at_ms: i64,
}

/// What the lead of an open session has spent, sees and works under.
#[derive(Debug, Clone, Serialize)]
pub struct SessionDetails {
    /// The lead's budget, and what is reserved and spent of it.
    pub ledger: Ledger,
    /// The cost of all agents of the session.
    pub cost: SessionCost,
    /// Tokens of the history in the window, estimated.
    pub window_tokens: u64,
    /// Bytes of the system text and the tools' schemas.
    pub frame_bytes: usize,
    /// Messages in the window, and in all.
    pub messages: (usize, usize),
    /// The lead's settings.
    pub settings: Settings,
    /// Instruction files with their bytes.
    pub instructions: Vec<(String, usize)>,
    /// Whether the lead is in a turn.
    pub busy: bool,
    /// The state of the MCP servers.
    pub sources: Vec<SourceStatus>,
}

/// A piece of an answer that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Thinking(String),
    /// The name of a tool that the model begins to call.
    Tool(String),
    /// Usage of the call so far.
    Usage(Usage),
    /// The rate limit of the provider delays the call by this long.
    Waiting(std::time::Duration),
    /// The state of a running tool.
    Progress {
        /// The tool call.
        key: String,
        /// A few words; of a command, its last lines of output.
        words: String,
    },
}

/// The source of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The agent, if the source is one.
    pub agent: Option<AgentId>,
    /// The plan, if the source is one.
    pub plan: Option<PlanId>,
    /// The agent's name.
    pub name: Arc<str>,
    /// Whether it is the session's lead.
    pub lead: bool,
    /// The task that the agent works on: plan and task id.
    pub task: Option<(PlanId, String)>,
    /// The call that the agent works for: the calling agent, and the key of the call.
    pub call: Option<(AgentId, String)>,
    /// Whether it works in the background of the session, which counts as idle meanwhile.
    pub aside: bool,
    /// Its color, if it is a teammate.
    pub color: Option<Arc<str>>,
}

impl Origin {
    /// A source with a name only.
    pub fn named(name: &str) -> Self {
        Self {
            agent: None,
            plan: None,
            name: name.into(),
            lead: false,
            task: None,
            call: None,
            aside: false,
            color: None,
        }
    }

    pub fn agent(agent: AgentId) -> Self {
        Self { agent: Some(agent), ..Self::named("") }
    }
}

/// What a frontend is told.
#[derive(Debug, Clone)]
pub enum Notice {
    /// An event that is in the journal.
    Event {
        session: SessionId,
        /// The agent or plan that caused it.
        from: Arc<Origin>,
        at_ms: i64,
        event: Arc<Event>,
    },
    /// A piece of a running model call or tool; not in the journal.
    Delta {
        session: SessionId,
        /// The agent whose answer it is a piece of.
        from: Arc<Origin>,
        /// The number of the model call ([`LlmIntent::call`](max_team_core::event::LlmIntent)) that it is a piece of; 0 for
        /// the progress of a tool. Pieces are not in line with events: one can come before the event of its call.
        call: u32,
        delta: Delta,
    },
    /// Worktrees are being made for agents that are about to start; not in the journal.
    Copies {
        session: SessionId,
        /// The order that asks for them.
        order: EnvelopeId,
        /// How many exist so far; equal to `of` at the end.
        made: usize,
        /// How many there will be.
        of: usize,
    },
    /// Definitions have changed in their files and apply from now on; not in the journal.
    Redefined {
        session: SessionId,
        /// The whole crew, if a definition has changed.
        crew: Option<Arc<TeamDefinitions>>,
        /// Notes for the user.
        notes: Vec<String>,
    },
    /// The session has nothing to do until a message or an answer comes.
    Idle {
        session: SessionId,
        /// Whether an agent or a plan waits for an answer of a person.
        waiting: bool,
    },
    /// An agent or a plan of the session cannot go on.
    Stopped {
        session: SessionId,
        /// Whether the whole session cannot go on for this subscriber: the lead has stopped, the journal cannot be
        /// written, or no further notices come.
        whole: bool,
        error: Arc<RuntimeError>,
    },
}

impl Notice {
    /// The session that it is about.
    pub fn session(&self) -> SessionId {
        match self {
            Self::Event { session, .. }
            | Self::Delta { session, .. }
            | Self::Copies { session, .. }
            | Self::Redefined { session, .. }
            | Self::Idle { session, .. }
            | Self::Stopped { session, .. } => *session,
        }
    }
}

/// A cheap handle on the runtime of this process. Every frontend holds one.
#[derive(Debug, Clone)]
pub struct TeamHandle {
    pub(crate) runtime: Arc<Runtime>,
}

impl TeamHandle {
    /// Opens a session, claims it for this process, and continues the work that was waiting in it. Not a command, because the
    /// definitions of its agents are read again from a source in this process ([`Definitions`]).
    pub async fn open(
        &self,
        by: Principal,
        cwd: &std::path::Path,
        open: OpenOptions,
    ) -> Result<OpenedSession, RuntimeError> {
        require(&by, Role::Member)?;
        self.runtime.open(by, cwd, open).await
    }

    /// Joins a session that a frontend of this or another process has open: the questions that wait there, and the place in the log
    /// from which [`stream`](Self::stream) tells what follows.
    pub async fn attach(&self, by: &Principal, session: SessionId) -> Result<Attached, RuntimeError> {
        require(by, Role::Viewer)?;
        let from = self.ask(query::Position {}).await?;
        let mut asked = self.ask(query::Inbox {}).await?;
        asked.retain(|pending| pending.session == Some(session));
        let lead = self.ask(query::Agents { session }).await?.first().map(|row| row.agent);
        Ok(Attached { session, lead: lead.ok_or(RuntimeError::NotOpen(session))?, from, asked })
    }

    /// Carries an order out; returns after its commit.
    pub async fn command(&self, order: Order) -> Result<(), RuntimeError> {
        require(&order.by, order.command.role())?;
        self.runtime.command(order).await
    }

    /// Answers a question with its own type. Every role may ask.
    pub async fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, RuntimeError> {
        question.answer(&self.runtime).await
    }

    /// Answers a question that came over a wire.
    pub async fn query(&self, query: Query) -> Result<Reply, RuntimeError> {
        query.answer(&self.runtime).await
    }

    /// Events of a scope from a place in the log on: first the stored ones, then new ones, with the live pieces of
    /// answers. A slow reader delays no agent.
    pub fn stream(&self, scope: Scope, from: Mark) -> Result<StreamReader, RuntimeError> {
        let shared = &self.runtime.shared;
        Ok(StreamReader::open(&shared.journal, scope, from)?.live(&shared.pieces))
    }

    /// From now on, streams also have the live pieces of sessions that other processes run. If this fails, their answers come whole.
    pub fn hear_others(&self) -> Result<(), std::io::Error> {
        let runtime = Arc::downgrade(&self.runtime);
        self.runtime.shared.pieces.hear_others(move |pass_on| {
            let runtime = runtime.upgrade();
            runtime.iter().for_each(|runtime| pass_on(&runtime.shared.pieces));
            runtime.is_some()
        })
    }

    /// Hints that another process may have written to the journal or let go of a session; what it was is asked for.
    pub fn changes_elsewhere(&self) -> Result<Notifications, RuntimeError> {
        Ok(self.runtime.shared.journal.nudges()?)
    }

    /// Like [`stream`](Self::stream), without the live pieces of answers.
    pub fn log(&self, scope: Scope, from: Mark) -> Result<StreamReader, RuntimeError> {
        StreamReader::open(&self.runtime.shared.journal, scope, from)
    }

    /// Notices from now on: the stream for a frontend in this process, which shares the events instead of getting them in the
    /// format of the wire.
    pub fn watch(&self) -> mpsc::Receiver<Notice> {
        self.runtime.watch()
    }

    /// Keeps a file among those of a session (`@files`) under its name or one like it, and returns its path (`@files/NAME`).
    /// Not a command, because the journal does not hold it: a message that mentions the file does what there is to do.
    pub async fn add_file(
        &self,
        by: &Principal,
        session: SessionId,
        name: String,
        bytes: Vec<u8>,
    ) -> Result<String, RuntimeError> {
        require(by, Role::Member)?;
        query::blocking(&self.runtime, move |shared| session_files::add(shared, session, &name, &bytes)).await
    }

    /// The bytes of a file of a session, by its path there. Not a query, because its answer is no text.
    pub async fn read_file(&self, session: SessionId, path: String) -> Result<Vec<u8>, RuntimeError> {
        query::blocking(&self.runtime, move |shared| session_files::read(shared, session, &path)).await
    }

    /// Closes a session: running work is dropped and continued when the session is opened again. Not a command, because it commits
    /// nothing and cannot be refused: the process gives back what `open` took.
    pub async fn close(&self, session: SessionId) {
        self.runtime.close_session(session).await;
    }

    /// Closes all sessions, then seals and closes the journal. The end of the process, and so no command either.
    pub async fn shutdown(&self) -> Result<(), RuntimeError> {
        self.runtime.shutdown().await
    }
}

/// The only place that compares a person's role with what they ask for. `TeamHandle` calls it for every command, and writers
/// that need no running team (`UserMail`, `TaskLists`, `Caches`) for each of their own.
pub fn require(by: &Principal, least: Role) -> Result<(), RuntimeError> {
    if by.role >= least {
        return Ok(());
    }
    Err(RuntimeError::RoleTooLow { user: by.user.clone(), role: by.role, least })
}
