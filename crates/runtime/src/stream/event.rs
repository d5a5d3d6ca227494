//! The format of the stream's events.
//!
//! The format is a promise to other programs: fields are added, never renamed and never given another meaning; a
//! change that breaks a reader needs a new [`STREAM_VERSION`].

use std::fmt;
use std::str::FromStr;

use max_team_core::chat::Usage;
use max_team_core::event::ToolOutcome;
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId};
use max_team_core::message::{Address, MessageKind};
use max_team_core::plan::event::Totals;
use max_team_core::policy::DecidedBy;
use max_team_core::status::{AgentStage, FailureCause, IdleReason, SessionStatus};
use serde::{Deserialize, Serialize};

use super::step::StepText;
use crate::rows::AnswerWord;

/// The version of the event format.
pub const STREAM_VERSION: u32 = 1;

/// An event of the log, or a piece of an answer that is still being written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamEvent {
    /// The version of the format: [`STREAM_VERSION`].
    pub v: u32,
    /// The entry of the log that it follows from; for a live piece, the last entry before it.
    pub seq: u64,
    /// Which of the entry's events it is, counted from 1, unless it is the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    pub session: SessionId,
    pub at_ms: i64,
    /// The agent that caused it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Who>,
    #[serde(flatten)]
    pub what: What,
    /// Whether a text in it was too long and is cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl StreamEvent {
    /// The place behind it: a reader that begins there gets the next event first.
    pub fn mark(&self) -> Mark {
        Mark { seq: self.seq, part: self.part }
    }
}

/// An agent, as events name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    pub id: AgentId,
    pub name: String,
    /// Whether it leads the session.
    pub lead: bool,
}

/// A place in the stream: after an entry, or after one of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Mark {
    pub seq: u64,
    /// The event of the entry, from 1; `None`: the last.
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum What {
    /// The agent's current step, or text that it writes between tool calls.
    Status {
        /// The round of the turn.
        #[serde(default, skip_serializing_if = "is_zero")]
        iteration: u32,
        /// The step, as text.
        message: StepText,
        /// The tool call that it is about, if any.
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
        tool_name: String,
        /// Its arguments, as JSON.
        tool_args: String,
        /// The file, command or agent that the call is about.
        target: String,
    },
    /// A call has its result. A call that never began (refused, not understood) has only this event.
    ToolResult {
        /// The round of the turn.
        iteration: u32,
        tool_id: String,
        tool_name: String,
        /// The result in a line.
        summary: String,
        /// The whole text of the result.
        tool_result: String,
        /// How the call ended.
        ending: ToolOutcome,
        /// Whether it failed.
        is_error: bool,
        /// Milliseconds it took.
        ms: u64,
    },
    /// A piece of an answer. Only live: the whole answer comes by the log.
    ContentDelta {
        /// The round of the turn.
        iteration: u32,
        /// The next characters of the text.
        delta: String,
        /// Whether `delta` is the whole text so far: sent to a reader that comes in the middle of an answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        whole: bool,
    },
    /// A turn ended normally.
    Final {
        /// The number of rounds.
        iteration: u32,
        response: String,
        /// Always true: no more events of this turn follow.
        done: bool,
        /// How it ended: `answered`, `proposed`.
        end: String,
    },
    /// A failure: of a call that is retried, or of the turn.
    Error {
        /// The round of the turn.
        #[serde(default, skip_serializing_if = "is_zero")]
        iteration: u32,
        /// The reason, as text.
        message: FailureCause,
        /// Whether the turn has ended.
        done: bool,
        /// The part of an answer that there is.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        response: String,
        /// How the turn ended, if it did: `failed`, `budget`, `interrupted` …
        #[serde(default, skip_serializing_if = "String::is_empty")]
        end: String,
        /// When it is retried, if it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at_ms: Option<i64>,
    },
    /// Something happened to a plan.
    Plan {
        plan: PlanId,
        state: PlanStep,
        /// Its goal, when it is proposed or changed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        goal: String,
        /// The tasks of the proposed plan, each with its owner and its dependencies.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<TaskLine>,
        /// The task that it is about, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// Details as text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        /// Who caused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The outcome of its tasks, at its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tally: Option<Box<Totals>>,
    },
    /// Something happened to a task of a plan.
    Task {
        plan: PlanId,
        task: String,
        state: TaskStep,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        /// The member that it is assigned to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// The agent that works on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<AgentId>,
        /// Details as text: the question, the result, the error.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        /// Who decided it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Whether the result is proven, at its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<max_team_core::plan::event::Proof>,
        /// When it is retried, if it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at_ms: Option<i64>,
    },
    /// A message was put into a mailbox.
    Mail {
        id: EnvelopeId,
        from: Address,
        /// The address of the mailbox.
        to: Address,
        /// The name of the agent that reads the mailbox.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        to_name: String,
        kind: MessageKind,
        /// The message that it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<EnvelopeId>,
        /// Its text, if it has one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// A person is asked, or has answered.
    Approval {
        question: QuestionId,
        /// The state of the question.
        state: ApprovalStep,
        /// The plan that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<PlanId>,
        /// The call that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_name: Option<String>,
        /// The question, or the comment with the answer.
        #[serde(default, skip_serializing_if = "StepText::is_empty")]
        message: StepText,
        /// The action as a person sees it: a diff, a command.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        preview: String,
        /// The answer in a word: `yes`, `no`, `approved`, `rejected` …
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<AnswerWord>,
        /// The author of the answer, as text.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "author")]
        by: Option<DecidedBy>,
    },
    /// Money or tokens were spent, or are short.
    Budget {
        state: BudgetStep,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
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
    /// The status of the session has changed: which agents work or were stopped, and which questions wait.
    Session { status: Box<SessionStatus> },
    /// An agent has changed its state.
    Agent {
        state: AgentStage,
        /// Why it does nothing, if so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<IdleReason>,
        /// Its task, if it has one.
        #[serde(default, skip_serializing_if = "StepText::is_empty")]
        message: StepText,
    },
}

/// The author of an answer as text; an author that is read is a person.
mod author {
    use max_team_core::policy::DecidedBy;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(by: &Option<DecidedBy>, serializer: S) -> Result<S::Ok, S::Error> {
        by.as_ref().map(DecidedBy::name).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DecidedBy>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(DecidedBy::Person))
    }
}

/// A task of a plan that is proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLine {
    pub id: String,
    /// The member that will own it.
    pub agent: String,
    /// The tasks that it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

/// What can happen to a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStep {
    /// It is shown to the user for approval.
    Proposed,
    /// The user changed it.
    Edited,
    /// An edit was refused.
    EditRefused,
    /// It goes on: with a larger budget, or after a stop.
    Resumed,
    /// Another plan was proposed in its place; the message names the tasks that wait for the user's decision.
    Revised,
    /// That revision was not approved.
    RevisionEnded,
    /// It, or one of its tasks, is being stopped.
    Stopping,
    /// The user left while it ran; it goes on when the session is next opened.
    Paused,
    /// It has ended: all tasks are done.
    Done,
    /// It has ended: some tasks are done.
    Partial,
    /// It has ended: no task is done.
    Failed,
    /// It has ended: it was stopped.
    Stopped,
    /// It has ended: the user rejected it.
    Rejected,
    /// It has ended: another plan replaces it.
    Replaced,
}

/// What can happen to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStep {
    /// It is queued for another attempt.
    Approved,
    /// It is in its owner's mailbox.
    Dispatched,
    /// Its owner works on it.
    Running,
    /// Its owner has a question.
    Asking,
    /// Its owner got the answer.
    Answered,
    /// Its owner waits for a person; or for the model server, if the message says why it cannot be reached.
    Waiting,
    /// Its owner has reported success; the checks run.
    Checking,
    /// Its checks failed while other tasks changed files, and run again after those.
    Deferred,
    /// The lead changed the task, or added a note to it.
    Changed,
    /// It waits for budget.
    Paused,
    /// It is done.
    Done,
    /// Its owner was asked again after its end, and answered.
    Corrected,
    /// An attempt failed.
    Failed,
    /// It was decided what to do about its failure.
    Ruled,
    /// It is skipped.
    Skipped,
    /// It was cancelled.
    Cancelled,
    /// Its owner has stopped.
    Stopped,
}

/// The state of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStep {
    /// It waits for an answer.
    Asked,
    /// It was answered, or could not be.
    Answered,
    /// No answer is needed any more.
    Withdrawn,
}

/// What can happen to a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetStep {
    /// A call was charged.
    Spent,
    /// The cost of the call is an estimate: the provider did not report its usage.
    Unknown,
    /// The budget is exhausted.
    Reached,
    /// The budget was raised.
    Raised,
}

impl What {
    /// Whether the journal does not hold it: a piece of a running answer, or the progress of a running tool.
    pub fn is_live(&self) -> bool {
        matches!(self, Self::ContentDelta { .. } | Self::Status { tool_id: Some(_), .. })
    }

    /// All event types.
    pub const TYPES: [&str; 13] = [
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
        "session",
        "agent",
    ];

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
            Self::Session { .. } => "session",
            Self::Agent { .. } => "agent",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(iteration: &u32) -> bool {
    *iteration == 0
}
