//! Messages between addresses, and the roles of people.
//!
//! Users, agents and plans have an address and a mailbox. An approval is a question in a user's mailbox and an answer
//! in the agent's; there is no other way. The id of a message makes sending it twice harmless.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::delegation::cache::CacheKey;
use crate::id::{EnvelopeId, PlanId};
use crate::teammate::Lifetime;

/// A mailbox's name: `agent/<id>`, `user/<name>`.
pub type Address = String;

/// The kind of a message between users, leads, members and teammates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// A user writes to an agent.
    UserInput,
    /// An agent waits for a person: told to the agent or plan that waits for it.
    PermissionRequest,
    /// A person answers a question of an agent; or the agent or plan that waits for it is told that it continues.
    PermissionResponse,
    /// An agent is given a task.
    TaskAssign,
    /// The result of a task, done or not.
    TaskResult,
    /// A task failed and the lead must say what to do.
    TaskFailed,
    /// The owner of a task asks a question about it.
    NeedClarify,
    /// The lead answers a question about a task, or decides about its failure.
    TaskUpdate,
    /// A plan is proposed.
    PlanApprovalRequest,
    /// A person answers about a plan; or the lead is told their answer.
    PlanApprovalResponse,
    /// A plan is told that another one was proposed to replace it, or that the replacement was not approved.
    PlanRevised,
    /// All tasks of a plan have ended.
    AllTasksDone,
    /// Text from one agent to another, such as the answer to a question.
    Text,
    /// Stops a plan, a task or an agent.
    Shutdown,
    /// A teammate is idle, with the reason: recorded for its lead, which does not react.
    IdleNotification,
    /// Asks a teammate to shut down.
    ShutdownRequest,
    /// The teammate agrees to shut down.
    ShutdownApproved,
    /// The teammate declines to shut down, with the reason.
    ShutdownRejected,
    /// A permission that a person granted to one member for the session applies to the whole team.
    TeamPermissionUpdate,
    /// Changes a teammate's permission mode.
    ModeSetRequest,
    /// A teammate waits for a person's permission to reach something outside its sandbox.
    SandboxPermissionRequest,
    /// The person's answer to that.
    SandboxPermissionResponse,
    /// A teammate has ended.
    TeammateTerminated,
    /// A message came back because its recipient has ended.
    Undelivered,
    /// A user asks to start teammates.
    TeamRequest,
    /// The user has rewound files: told with the user's next message.
    FilesRewound,
    /// A person hands a session over to the server of its folder: read by that server.
    SessionHandover,
}

impl MessageKind {
    /// The name it has in the journal.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserInput => "user_input",
            Self::PermissionRequest => "permission_request",
            Self::PermissionResponse => "permission_response",
            Self::TaskAssign => "task_assign",
            Self::TaskResult => "task_result",
            Self::TaskFailed => "task_failed",
            Self::NeedClarify => "need_clarify",
            Self::TaskUpdate => "task_update",
            Self::PlanApprovalRequest => "plan_approval_request",
            Self::PlanApprovalResponse => "plan_approval_response",
            Self::PlanRevised => "plan_revised",
            Self::AllTasksDone => "all_tasks_done",
            Self::Text => "text",
            Self::Shutdown => "shutdown",
            Self::IdleNotification => "idle_notification",
            Self::ShutdownRequest => "shutdown_request",
            Self::ShutdownApproved => "shutdown_approved",
            Self::ShutdownRejected => "shutdown_rejected",
            Self::TeamPermissionUpdate => "team_permission_update",
            Self::ModeSetRequest => "mode_set_request",
            Self::SandboxPermissionRequest => "sandbox_permission_request",
            Self::SandboxPermissionResponse => "sandbox_permission_response",
            Self::TeammateTerminated => "teammate_terminated",
            Self::Undelivered => "undelivered",
            Self::TeamRequest => "team_request",
            Self::FilesRewound => "files_rewound",
            Self::SessionHandover => "session_handover",
        }
    }
}

/// A task for an agent, and the recipient of its result: the head of a `task_assign` message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Assignment {
    /// Where the result goes.
    pub reply_to: Address,
    /// The plan it belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// The plan whose task it corrects, if the lead writes to a member that is done with its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrects: Option<PlanId>,
    /// The task's name in the plan; or the key of the call that delegated it.
    pub task: String,
    /// Number of the attempt; for a call, how often the agent was written to.
    pub attempt: u32,
    /// A short title, if one was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Depth of nested calls; 0 for a task from a user or a plan.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// The cache key for its answer, if the answer may be cached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Box<CacheKey>>,
    /// The skill that it runs, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// How long the agent that got it lives.
    #[serde(default, skip_serializing_if = "Lifetime::is_call")]
    pub life: Lifetime,
}

impl Assignment {
    /// Whether a person waits for the result.
    pub fn is_for_user(&self) -> bool {
        self.reply_to.starts_with("user/")
    }
}

pub(crate) fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A message in a mailbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// Unique: a second delivery under the same id changes nothing.
    pub id: EnvelopeId,
    /// Who sends it.
    pub from: Address,
    /// Whose mailbox it goes to.
    pub to: Address,
    /// The kind of message.
    pub kind: MessageKind,
    /// Its content; the form depends on the kind.
    pub body: Value,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<EnvelopeId>,
    /// The turn or the call that sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// When it was sent.
    pub sent_at_ms: i64,
    /// Length of the chain of teammate messages that led to it, each written because of the one before, since a person
    /// or the lead wrote.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
}

impl Envelope {
    /// A message that answers none.
    pub fn new(
        id: EnvelopeId,
        from: impl Into<Address>,
        to: impl Into<Address>,
        kind: MessageKind,
        body: impl Into<Value>,
        sent_at_ms: i64,
    ) -> Self {
        let body = body.into();
        Self { id, from: from.into(), to: to.into(), kind, body, reply_to: None, cause: None, sent_at_ms, hops: 0 }
    }

    /// The same message as the answer to another.
    pub fn answering(self, envelope: impl Into<Option<EnvelopeId>>) -> Self {
        Self { reply_to: envelope.into(), ..self }
    }
}

/// The rights of a person. Each role has those of the roles below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees sessions and messages.
    Viewer,
    /// Also talks to the team and stops it.
    Member,
    /// Also approves, answers questions, and changes settings and team.
    Owner,
}

impl Role {
    /// The role's name in messages and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Owner => "owner",
        }
    }
}

/// The person on whose behalf a command is given, and their rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The frontend it came through: `terminal`, `headless` …
    pub door: String,
    /// The user behind it.
    pub user: String,
    /// What they may do.
    pub role: Role,
}

impl Principal {
    /// The address of the user's mailbox.
    pub fn address(&self) -> Address {
        format!("user/{}", self.user)
    }

    /// The user and the frontend, as records name the author of an act.
    pub fn signature(&self) -> String {
        format!("{} at {}", self.user, self.door)
    }

    /// The user and the frontend of a signature.
    pub fn parse_signature(text: &str) -> Option<(&str, &str)> {
        text.rsplit_once(" at ")
    }
}
