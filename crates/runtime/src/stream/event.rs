//! The shape of the stream: what a line of it may say.
//!
//! The shape is a promise to programs that are not ours: fields are added, never renamed and never given another meaning;
//! a change that breaks a reader is another [`STREAM_VERSION`].

use std::fmt;
use std::str::FromStr;

use max_team_core::chat::Usage;
use max_team_core::event::Ending;
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::message::{Address, Kind};
use max_team_core::plan::event::Tally;
use serde::{Deserialize, Serialize};

use crate::census::{Reason, Standing};

/// The version of the shape.
pub const STREAM_VERSION: u32 = 1;

/// Something that happened, or a piece of an answer on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamEvent {
    /// [`STREAM_VERSION`].
    pub v: u32,
    /// The entry of the log that it follows from; of a piece that is only live, the last entry before it.
    pub seq: u64,
    /// Which of the entry's events it is, counted from 1, unless it is the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// The session.
    pub session: SessionId,
    /// When.
    pub at_ms: i64,
    /// Whose doing it is, if it is an agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Who>,
    /// What.
    #[serde(flatten)]
    pub what: What,
    /// Whether a text in it was too long and is cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl StreamEvent {
    /// The place behind it: whoever begins there goes on with what comes next.
    pub fn mark(&self) -> Mark {
        Mark { seq: self.seq, part: self.part }
    }
}

/// An agent, as events name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// Which.
    pub id: AgentId,
    /// Its name.
    pub name: String,
    /// Whether it leads the session.
    pub lead: bool,
}

/// A place in the stream: behind an entry, or behind one of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Mark {
    /// The entry.
    pub seq: u64,
    /// The event of it, counted from 1; without it, the last.
    pub part: Option<u32>,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Some(part) => write!(f, "{}.{part}", self.seq),
            None => self.seq.fmt(f),
        }
    }
}

/// A text that is no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a place is the `seq` of an event, with `.` and its `part` behind it if it has one: `42` or `42.1`")]
pub struct NoMark;

impl FromStr for Mark {
    type Err = NoMark;

    fn from_str(text: &str) -> Result<Self, NoMark> {
        let (seq, part) = text.split_once('.').map_or((text, None), |(seq, part)| (seq, Some(part)));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        if !is_number(seq) || part.is_some_and(|part| !is_number(part)) {
            return Err(NoMark);
        }
        let seq = seq.parse().map_err(|_| NoMark)?;
        let part = part.map(str::parse).transpose().map_err(|_| NoMark)?;
        Ok(Self { seq, part })
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum What {
    /// What an agent is at, or what it says on its way.
    Status {
        /// The round of the turn.
        #[serde(default, skip_serializing_if = "is_zero")]
        iteration: u32,
        /// In words.
        message: String,
        /// The call that it is about, if it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_id: Option<String>,
        /// The model that is called, if one is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A tool begins to run.
    ToolStart {
        /// The round of the turn.
        iteration: u32,
        /// The call: unique for its agent.
        tool_id: String,
        /// The tool.
        tool_name: String,
        /// What it is given, as JSON.
        tool_args: String,
        /// What it is done to.
        target: String,
    },
    /// A call has its result. One that never began (refused, not understood) has only this.
    ToolResult {
        /// The round of the turn.
        iteration: u32,
        /// The call.
        tool_id: String,
        /// The tool.
        tool_name: String,
        /// The result in a line.
        summary: String,
        /// All of it that is text.
        tool_result: String,
        /// How the call ended.
        ending: Ending,
        /// Whether it failed.
        is_error: bool,
        /// Milliseconds it took.
        ms: u64,
    },
    /// A piece of an answer on its way. Only live: the whole answer comes by the log.
    ContentDelta {
        /// The round of the turn.
        iteration: u32,
        /// The piece.
        delta: String,
    },
    /// A turn ended as it should.
    Final {
        /// The rounds it took.
        iteration: u32,
        /// The answer.
        response: String,
        /// Nothing more comes of this turn.
        done: bool,
        /// How it ended: `answered`, `proposed`.
        end: String,
    },
    /// Something failed: a call that is made again, or the turn.
    Error {
        /// The round of the turn.
        #[serde(default, skip_serializing_if = "is_zero")]
        iteration: u32,
        /// Why, in words.
        message: String,
        /// Whether that was the end of the turn.
        done: bool,
        /// What there is of an answer.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        response: String,
        /// How the turn ended, if it did: `failed`, `budget`, `interrupted` …
        #[serde(default, skip_serializing_if = "String::is_empty")]
        end: String,
        /// When it is tried again, if it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at_ms: Option<i64>,
    },
    /// Something happened to a plan.
    Plan {
        /// Which.
        plan: PlanId,
        /// What.
        state: PlanStep,
        /// What it is for, when it is proposed or changed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        goal: String,
        /// Its tasks then, each with whose it is and what it builds on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<TaskLine>,
        /// The task, where it is about one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// More, in words.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        /// Who did it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// What came of its tasks, when it is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tally: Option<Box<Tally>>,
    },
    /// Something happened to a task of a plan.
    Task {
        /// The plan.
        plan: PlanId,
        /// The task.
        task: String,
        /// What.
        state: TaskStep,
        /// Which attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        /// Who has it, when it is given out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// The agent that this is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<AgentId>,
        /// More, in words: what was asked, what came of it, why it failed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        /// Who decided it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Whether the result is proven, when it is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<max_team_core::plan::event::Proof>,
        /// When it is tried again, if it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at_ms: Option<i64>,
    },
    /// A letter was put into a mailbox.
    Mail {
        /// Which.
        id: EnvelopeId,
        /// Who sends it.
        from: Address,
        /// Whose mailbox it is.
        to: Address,
        /// The name of the agent whose it is.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        to_name: String,
        /// What it is about.
        kind: Kind,
        /// The letter that it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<EnvelopeId>,
        /// Its words, if it has any.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// A person is asked, or has answered.
    Approval {
        /// The question.
        question: QuestionId,
        /// Where it stands.
        state: ApprovalStep,
        /// The plan that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<PlanId>,
        /// The call that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_id: Option<String>,
        /// The tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_name: Option<String>,
        /// What is asked; or what was said along with the answer.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        /// What would be done, as a person is shown it: a diff, a command.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        preview: String,
        /// The answer in a word: `yes`, `no`, `approved`, `rejected` …
        #[serde(default, skip_serializing_if = "String::is_empty")]
        said: String,
        /// Whose answer it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Money or tokens were used, or there are too few.
    Budget {
        /// What.
        state: BudgetStep,
        /// The model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Dollars; absent if there is no price.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// The plan that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<PlanId>,
        /// The task that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
    },
    /// An agent is in another state.
    Agent {
        /// Which.
        state: Standing,
        /// Why it does nothing, if it does nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
        /// What it was given to do, if somebody said.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
}

/// A task of a plan that is proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLine {
    /// Its name.
    pub id: String,
    /// Whose it is to be.
    pub agent: String,
    /// What it builds on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

/// What can happen to a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStep {
    /// It is put before the user.
    Proposed,
    /// The user changed it.
    Edited,
    /// A change could not be made.
    EditRefused,
    /// There is more to spend.
    Resumed,
    /// Another plan was proposed in its place; the message names the tasks that wait for the user's decision.
    Revised,
    /// That one was not approved.
    RevisionEnded,
    /// Somebody stops it, or a task of it.
    Stopping,
    /// The user left while it ran; it goes on when the session is next opened.
    Paused,
    /// It is over: everything was done.
    Done,
    /// It is over: some was done.
    Partial,
    /// It is over: nothing was done.
    Failed,
    /// It is over: it was stopped.
    Stopped,
    /// It is over: the user did not want it.
    Rejected,
    /// It is over: another takes its place.
    Replaced,
}

/// What can happen to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStep {
    /// It may be tried again.
    Approved,
    /// It is in its owner's mailbox.
    Dispatched,
    /// It is worked on.
    Running,
    /// Its owner needs to know something.
    Asking,
    /// Its owner was told.
    Answered,
    /// Its owner waits for a person; or for the model server, if the message says why that cannot be reached.
    Waiting,
    /// Its owner says that it is done.
    Checking,
    /// Its checks failed beside others, and run again once those are through.
    Deferred,
    /// The lead rewrote the task.
    Changed,
    /// It waits for money.
    Paused,
    /// It ended well.
    Done,
    /// An attempt failed.
    Failed,
    /// Somebody said what to do about its failure.
    Ruled,
    /// It is left out.
    Skipped,
    /// It is given up.
    Cancelled,
    /// Whoever was at it has stopped.
    Stopped,
}

/// Where a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStep {
    /// Somebody has to answer it.
    Asked,
    /// Somebody has, or nobody could.
    Answered,
    /// Nobody needs an answer any more.
    Withdrawn,
}

/// What can happen to money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetStep {
    /// A call was paid.
    Spent,
    /// The cost of the call is an estimate: the provider did not report its usage.
    Unknown,
    /// There is too little left to go on.
    Reached,
    /// There is more.
    Raised,
}

impl What {
    /// The types that there are.
    pub const TYPES: [&str; 12] = [
        "status",
        "tool_start",
        "tool_result",
        "content_delta",
        "final",
        "error",
        "plan",
        "task",
        "mail",
        "approval",
        "budget",
        "agent",
    ];

    /// Its type.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::ToolStart { .. } => "tool_start",
            Self::ToolResult { .. } => "tool_result",
            Self::ContentDelta { .. } => "content_delta",
            Self::Final { .. } => "final",
            Self::Error { .. } => "error",
            Self::Plan { .. } => "plan",
            Self::Task { .. } => "task",
            Self::Mail { .. } => "mail",
            Self::Approval { .. } => "approval",
            Self::Budget { .. } => "budget",
            Self::Agent { .. } => "agent",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(iteration: &u32) -> bool {
    *iteration == 0
}
