//! The seam under every face: serialisable commands with a principal and an idempotency key, queries, notices.
//!
//! A command is acknowledged after its commit, never before. Notices of events come in the order of the journal and wait
//! for a face that is slow, which nobody else does; deltas of a model's answer are only for show and may be dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use max_team_core::chat::{Message, Usage};
use max_team_core::event::{Choice, Event};
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::ledger::Ledger;
use max_team_core::message::{Principal, Role};
use max_team_core::plan::Draft;
use max_team_core::plan::event::{Approve, Say};
use max_team_core::policy::{Action, Answer, Memory, Recourse};
use max_team_core::rewind::MovedFile;
use max_team_core::team::{Constraints, Definition, Model, Settings};
use max_team_core::turn::Forked;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::agent;
use crate::definitions::Definitions;
use crate::error::RuntimeError;
use crate::house::{Bound, House};
use crate::memory::Remember;
use crate::post::{Pending, Post, Shown};
use crate::query::{self, Query, Question, Reply};
use crate::replay::Tape;
use crate::rewind;
use crate::stream::{Mark, Scope, StreamReader};
use crate::team_tools::Spawn;

/// A command, on somebody's behalf.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Whose.
    pub by: Principal,
    /// The directory it was given in.
    pub cwd: String,
    /// Giving the same order twice under one key does it once.
    pub key: EnvelopeId,
    /// What to do.
    pub command: Command,
}

/// What a face can ask for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "orders are few, and settings are the rarest of them")]
pub enum Command {
    /// Say something to the lead of an open session. A turn that runs hears it before its next call, if it makes one.
    Say {
        /// The session.
        session: SessionId,
        /// The words.
        text: String,
    },
    /// Say something to the lead once the turn that runs is over.
    Queue {
        /// The session.
        session: SessionId,
        /// The words.
        text: String,
    },
    /// Take back what was said to the lead, or written to one teammate, and nobody has read.
    Withdraw {
        /// The session.
        session: SessionId,
        /// The key of the order that said or wrote it.
        letter: EnvelopeId,
    },
    /// Write to somebody of a session, open here or not: teammates by name, `team` for everybody, the lead.
    Write {
        /// The session.
        session: SessionId,
        /// Whom.
        to: Vec<String>,
        /// The words.
        text: String,
    },
    /// Go on with these teammates and tasks in the background, whom somebody has interrupted; without names, with all of them.
    Continue {
        /// The session.
        session: SessionId,
        /// Whom.
        to: Vec<String>,
    },
    /// Let these teammates begin. The lead looks at them like at those whom its model wants.
    Team {
        /// The session.
        session: SessionId,
        /// Who.
        mates: Vec<Spawn>,
    },
    /// Answer a question.
    Answer {
        /// The session.
        session: SessionId,
        /// The question.
        question: QuestionId,
        /// The answer.
        answer: Answer,
    },
    /// Say something about a plan: the answer to one of its questions.
    Decide {
        /// The question.
        question: QuestionId,
        /// What to say.
        say: Say,
    },
    /// Put a plan before the user, without asking the lead for one.
    Propose {
        /// The session.
        session: SessionId,
        /// The plan.
        draft: Box<Draft>,
        /// Where it comes from.
        source: String,
    },
    /// Stop a plan, or one of its tasks; everything under it stops too.
    Stop {
        /// The plan.
        plan: PlanId,
        /// The task.
        task: Option<String>,
    },
    /// Stop the turn; what is done is kept. What the user has said meanwhile is told next.
    Interrupt {
        /// The session.
        session: SessionId,
    },
    /// Stop the turn; what is done is kept. Nothing begins before somebody writes anew.
    Halt {
        /// The session.
        session: SessionId,
    },
    /// Sum up what was said so far, to make room.
    Compact {
        /// The session.
        session: SessionId,
        /// What is to be kept above all.
        keep: String,
    },
    /// Take the last compaction back.
    Uncompact {
        /// The session.
        session: SessionId,
    },
    /// These work here from the next turn, call or task on, in the place of those before. What runs keeps what it has, but
    /// for what has become stricter.
    Crew {
        /// The session.
        session: SessionId,
        /// All of them.
        crew: Box<Crew>,
    },
    /// Work under other settings from the next call on.
    Configure {
        /// The session.
        session: SessionId,
        /// All of them.
        settings: Settings,
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
            | Self::Interrupt { .. }
            | Self::Halt { .. } => Role::Member,
            Self::Team { .. }
            | Self::Answer { .. }
            | Self::Decide { .. }
            | Self::Compact { .. }
            | Self::Uncompact { .. }
            | Self::Crew { .. }
            | Self::Configure { .. } => Role::Owner,
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
    /// This one.
    Id(SessionId),
    /// This one, with its last compaction taken back.
    Before(SessionId),
    /// A new one that goes on from a point of another, within its constraints.
    Fork(Box<Forked>, Bound),
}

/// How to open a session. A resumed one keeps its agent and history, and at least the constraints that it had before
/// (`core::resume`); the model and everything else are those given now.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Open {
    /// Which.
    pub which: Which,
    /// The lead. A resumed session takes this definition over if it is the same agent and has no more tools than before.
    pub definition: Definition,
    /// What the lead works under.
    pub settings: Settings,
    /// Whether the user named the mode for this run; otherwise a resumed session keeps its own mode where that is stricter.
    #[serde(default)]
    pub mode_is_named: bool,
    /// The flags that chose the lead and the team of a new session.
    #[serde(default)]
    pub choice: Choice,
    /// The user's JSON Schema for a structured answer.
    pub schema: Option<serde_json::Value>,
    /// The colleagues of the lead; without them it works alone.
    pub team: Option<Team>,
    /// Where the definitions of lead and team are written; asked before each message.
    #[serde(skip)]
    pub definitions: Option<Arc<dyn Definitions>>,
}

impl Open {
    /// A way to open a session in which no flag chose the mode or the team, and which answers in words.
    pub fn new(which: Which, definition: Definition, settings: Settings, team: Option<Team>) -> Self {
        Self {
            which,
            definition,
            settings,
            mode_is_named: false,
            choice: Choice::default(),
            schema: None,
            team,
            definitions: None,
        }
    }
}

/// Who works for a lead, and how.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Team {
    /// The members.
    pub members: Vec<Mate>,
    /// Those who speak when they are called and own no tasks: experts, and the types that come with the program.
    #[serde(default)]
    pub experts: Vec<Mate>,
    /// When a person is asked while plans are approved and carried out.
    pub approve: Approve,
    /// Tasks that may run at once.
    pub max_parallel: u32,
    /// Models that a plan or a ruling may name.
    pub models: BTreeMap<String, Model>,
    /// Models that a skill may wish for, by every name it may have for them.
    #[serde(default)]
    pub wished: BTreeMap<String, Model>,
    /// How deep calls go; `0`: nobody calls anybody.
    #[serde(default)]
    pub call_depth: u32,
    /// Whether the lead only coordinates: it calls, goes on with whom it called, and asks the user.
    #[serde(default)]
    pub coordinator: bool,
}

/// Who works in a session, as it is written now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crew {
    /// Who leads, if that is written otherwise than before.
    pub lead: Option<Lead>,
    /// The members.
    pub members: Vec<Mate>,
    /// Those who can be called besides.
    pub experts: Vec<Mate>,
}

/// A lead in other words, with other tools or another model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lead {
    /// What makes it itself.
    pub definition: Definition,
    /// What it may never do.
    pub constraints: Constraints,
    /// The model that answers, if another one is written down.
    pub model: Option<Model>,
}

/// A member, resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mate {
    /// What makes it itself.
    pub definition: Arc<Definition>,
    /// What it works under.
    pub settings: Settings,
}

/// An open session.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Which.
    pub session: SessionId,
    /// Its lead.
    pub agent: AgentId,
    /// What its lead works under.
    pub settings: Arc<Settings>,
    /// Whether it existed before.
    pub resumed: bool,
    /// Whether a turn or unread mail was waiting, which now goes on.
    pub continuing: bool,
    /// The same of its lead alone. What somebody has stopped meanwhile does not go on.
    pub lead_goes_on: bool,
    /// Whether its lead has a turn that somebody has stopped meanwhile.
    pub lead_halts: bool,
    /// Stops that were said before and that somebody has still to read, and who.
    pub stops: Vec<(AgentId, EnvelopeId)>,
    /// What was said so far.
    pub history: Vec<Message>,
    /// What the user has said that nobody had read when it was opened, oldest first.
    pub queued: Vec<Queued>,
    /// How many letters wait for the lead because of a stop, whoever has written them.
    pub held: usize,
    /// How the last turn ended, if one did.
    pub last: Option<max_team_core::event::TurnEnded>,
    /// Questions that wait for an answer since before; they are not published again.
    pub asked: Vec<Asked>,
    /// What was open when the last process left it, and goes on here.
    pub recovered: Recovered,
    /// Plans that are not over.
    pub plans: Vec<PlanId>,
    /// Instruction files that apply here, with their bytes, and what the user should know about them.
    pub instructions: Vec<(String, usize)>,
    /// What the user should know about them.
    pub notes: Vec<String>,
    /// Skills that the user can ask for by name.
    pub skills: Vec<String>,
    /// Protected files that commands made without approval and that are still where they were moved to.
    pub moved: Vec<MovedFile>,
    /// The whole crew, if a definition has changed since it was read for this opening.
    pub crew: Option<Arc<Crew>>,
}

/// A session that another frontend has open.
#[derive(Debug, Clone, Serialize)]
pub struct Attached {
    /// The session.
    pub session: SessionId,
    /// Its lead.
    pub lead: AgentId,
    /// The place in the log behind everything that has happened so far.
    pub from: Mark,
    /// Questions and plans that wait for a person.
    pub asked: Vec<Pending>,
}

/// What a session had open when it was opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Agents in the middle of something.
    pub agents: usize,
    /// Tasks of plans that somebody works on.
    pub tasks: usize,
    /// Letters that nobody has begun with.
    pub mail: usize,
    /// Teams that a user wanted and that have not begun.
    pub teams: usize,
    /// Questions that wait for a person.
    pub approvals: usize,
    /// Calls of which nobody can say whether they happened.
    pub unknown: usize,
}

impl Recovered {
    /// Whether nothing was open.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A message that nobody has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    /// Its letter.
    pub letter: EnvelopeId,
    /// The words.
    pub text: String,
    /// Whether it waits until the turn that runs is over.
    pub wait: bool,
    /// Whether it was written to the whole team, of which this is the lead's copy.
    pub all: bool,
}

/// A question that waits for an answer.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Which.
    pub question: QuestionId,
    /// The tool.
    pub tool: String,
    /// What would be done.
    pub action: Action,
    /// Who asks.
    pub by: String,
    /// The same as an agent.
    pub agent: Option<AgentId>,
    /// The task that it is at, or what it is at in a few words.
    pub task: Option<String>,
    /// What it is painted in, if it is a teammate.
    pub color: Option<String>,
    /// Why somebody is asked.
    pub rule: String,
    /// What would let the call run without the question.
    pub recourse: Recourse,
    /// What a "yes, always" is remembered as.
    pub memory: Memory,
    /// Since when.
    pub at_ms: i64,
}

/// How a session stands.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Its own money and tokens.
    pub ledger: Ledger,
    /// What everybody else in the session has spent so far, in nano-dollars.
    pub others_nano: u64,
    /// How much of that is for calls whose outcome is unknown.
    pub others_unknown_nano: u64,
    /// The tokens of all other agents, by model.
    pub others_usage: BTreeMap<String, Usage>,
    /// Tokens of the history in the window, estimated.
    pub window_tokens: u64,
    /// Bytes of the system text and the tools' schemas.
    pub frame_bytes: usize,
    /// Messages in the window and in all.
    pub messages: (usize, usize),
    /// What it works under.
    pub settings: Settings,
    /// Instruction files with their bytes.
    pub instructions: Vec<(String, usize)>,
    /// Whether a turn runs.
    pub busy: bool,
}

impl Status {
    /// The tokens of the whole session, by model.
    pub fn usage_by_model(&self) -> BTreeMap<String, Usage> {
        let mut all = self.others_usage.clone();
        *all.entry(self.settings.model.name.clone()).or_default() += self.ledger.usage;
        all
    }

    /// The tokens of the whole session.
    pub fn usage(&self) -> Usage {
        self.others_usage.values().fold(self.ledger.usage, |mut sum, usage| {
            sum += *usage;
            sum
        })
    }
}

/// A piece of an answer on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Text.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// A tool call begins to be written.
    Tool(String),
    /// What the call has used so far.
    Usage(Usage),
    /// The provider's pace is kept: nothing for so long.
    Waiting(std::time::Duration),
    /// How far a tool that runs is.
    Progress {
        /// The tool call.
        key: String,
        /// In a few words; of a command, the last lines that it has printed.
        words: String,
    },
}

/// Where a notice comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The agent, if it is one.
    pub agent: Option<AgentId>,
    /// The plan, if it is one.
    pub plan: Option<PlanId>,
    /// The agent's name.
    pub name: Arc<str>,
    /// Whether it is the session's lead.
    pub lead: bool,
    /// The task that the agent is at: plan and name.
    pub task: Option<(PlanId, String)>,
    /// The call that the agent works for: whose, and its key.
    pub call: Option<(AgentId, String)>,
    /// Whether it works beside the session, which is at rest without it.
    pub aside: bool,
    /// What it is painted in, if it is a teammate.
    pub color: Option<Arc<str>>,
}

impl Origin {
    /// Something with a name.
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

    /// An agent.
    pub fn agent(agent: AgentId) -> Self {
        Self { agent: Some(agent), ..Self::named("") }
    }
}

/// What a face is told.
#[derive(Debug, Clone)]
pub enum Notice {
    /// Something happened and is in the journal.
    Event {
        /// The session.
        session: SessionId,
        /// Who did it.
        from: Arc<Origin>,
        /// When.
        at_ms: i64,
        /// What.
        event: Arc<Event>,
    },
    /// Something is on its way and not in the journal.
    Delta {
        /// The session.
        session: SessionId,
        /// Whose.
        from: Arc<Origin>,
        /// The number of the model call ([`LlmIntent::call`](max_team_core::event::LlmIntent)) that it is a piece of; 0 for
        /// the progress of a tool. Pieces are not in line with events: one can come before the event of its call.
        call: u32,
        /// What.
        delta: Delta,
    },
    /// Copies of the project are being made for those who are about to begin; not in the journal.
    Copies {
        /// The session.
        session: SessionId,
        /// The order that asks for them.
        order: EnvelopeId,
        /// How many there are so far; all of them, if that is over.
        made: usize,
        /// How many there will be.
        of: usize,
    },
    /// Definitions were changed in their files, and count from now on; not in the journal.
    Redefined {
        /// The session.
        session: SessionId,
        /// The whole crew, if a definition has changed.
        crew: Option<Arc<Crew>>,
        /// What the user should be told.
        notes: Vec<String>,
    },
    /// The session has nothing more to do until somebody says something.
    Idle {
        /// The session.
        session: SessionId,
        /// Whether somebody waits for a person: a question, a plan to approve.
        waiting: bool,
    },
    /// Somebody of the session cannot go on.
    Stopped {
        /// The session.
        session: SessionId,
        /// Whether nobody of it can, as far as whoever hears this is concerned: its lead has stopped, the journal cannot be
        /// written, or there is nothing more to hear.
        whole: bool,
        /// Why.
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

/// A cheap handle on the house. All faces hold one.
#[derive(Debug, Clone)]
pub struct TeamHandle {
    pub(crate) house: Arc<House>,
}

impl TeamHandle {
    /// Looks after the memory like this from now on; said once, before the first session is opened. Without it leads are
    /// told what is remembered, and nobody takes anything from conversations.
    pub fn remember(&self, remember: Remember) {
        // Whoever says it twice is held to what they said first.
        drop(self.house.shared.remember.set(remember));
    }

    /// The user cannot be asked from now on, and agents are told so; said once, before the first session is opened.
    pub fn work_unattended(&self) {
        self.house.shared.unattended.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Opens a session, claims it for this process, and lets whatever was waiting in it go on.
    pub async fn open(&self, by: Principal, cwd: &std::path::Path, open: Open) -> Result<Opened, RuntimeError> {
        require(&by, Role::Member)?;
        self.house.open(by, cwd, open).await
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
        self.house.command(order).await
    }

    /// Notices from now on.
    pub fn watch(&self) -> mpsc::Receiver<Notice> {
        self.house.watch()
    }

    /// What happens, from any place of the log on: first what has happened since, then what comes; with the pieces of answers
    /// that are on their way here. However slow the reader is, nobody waits for it.
    pub fn stream(&self, scope: Scope, from: Mark) -> Result<StreamReader, RuntimeError> {
        let shared = &self.house.shared;
        Ok(StreamReader::open(&shared.journal, scope, from)?.live(&shared.pieces))
    }

    /// Answers a question, with the type that belongs to it.
    pub async fn ask<Q: Question>(&self, question: Q) -> Result<Q::Answer, RuntimeError> {
        question.answer(&self.house).await
    }

    /// Answers a question that came over a wire.
    pub async fn query(&self, query: Query) -> Result<Reply, RuntimeError> {
        query.answer(&self.house).await
    }

    /// Whether a text names a file or folder of a project.
    pub fn is_path(&self, root: &std::path::Path, text: &str) -> bool {
        agent::is_path(root, text)
    }

    /// A person has seen this: what of their letters says it is read.
    pub async fn see(&self, by: &Principal, shown: &[Shown]) -> Result<(), RuntimeError> {
        Post::new(&self.house.shared.journal).see(by, shown).await
    }

    /// All that the journal holds of a session, taken out of it.
    pub fn tape(&self, session: SessionId) -> Result<Tape, RuntimeError> {
        Tape::of(&self.house.shared.journal, session)
    }

    /// Puts files back as was shown, while nobody in the open session is at work.
    pub async fn rewind(
        &self,
        session: SessionId,
        plan: rewind::Plan,
        by: Principal,
    ) -> Result<rewind::Outcome, RuntimeError> {
        require(&by, Role::Owner)?;
        self.house.rewind(session, plan, by).await
    }

    /// Waits until nobody in a session is busy, those beside it included: what was said in it has been looked at.
    pub async fn settle(&self, session: SessionId) {
        self.house.settle(session).await;
    }

    /// The user leaves: plans that run are paused by them, and go on when their session is opened again.
    pub fn leave(&self, by: &Principal) {
        self.house.leave(by);
    }

    /// Parks a session: what runs is dropped where it stands and goes on when the session is opened again.
    pub async fn close(&self, session: SessionId) {
        self.house.close_session(session).await;
    }

    /// Parks everything, seals and closes the journal.
    pub async fn shutdown(&self) -> Result<(), RuntimeError> {
        self.house.shutdown().await
    }
}

/// The only place that compares a person's role with what they ask for.
fn require(by: &Principal, least: Role) -> Result<(), RuntimeError> {
    if by.role >= least {
        return Ok(());
    }
    Err(RuntimeError::RoleTooLow { user: by.user.clone(), role: by.role, least })
}
