//! Letters between addresses, and who may send them.
//!
//! Users, agents and doors all have an address and a mailbox. An approval is a question in a user's mailbox and an
//! answer in the agent's; there is no other channel. An envelope's id makes sending it twice harmless.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::calling::cache::Asked;
use crate::id::{EnvelopeId, PlanId};
use crate::mates::Life;

/// A mailbox's name: `agent/<id>`, `user/<name>`.
pub type Address = String;

/// What a letter is about: the union of what users, leads, members and teammates say to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A user speaks to the lead.
    UserInput,
    /// An agent waits for a person: said to whoever waits for the agent.
    PermissionRequest,
    /// A person answers a question of an agent; whoever waits for the agent is told that it goes on.
    PermissionResponse,
    /// An agent is given something to do.
    TaskAssign,
    /// It is done with it, one way or another.
    TaskResult,
    /// A task failed and the lead must say what to do.
    TaskFailed,
    /// Whoever does a task needs to know something.
    NeedClarify,
    /// The lead says something about a task: an answer, or what to do about its failure.
    TaskUpdate,
    /// A plan is proposed.
    PlanApprovalRequest,
    /// A person says something about a plan; or the lead is told what they said.
    PlanApprovalResponse,
    /// A plan is told that another one was proposed in its place, or that this one was not approved.
    PlanRevised,
    /// Every task of a plan is over.
    AllTasksDone,
    /// Somebody answers what an agent asked a colleague.
    Text,
    /// Somebody stops a plan, a task or an agent.
    Shutdown,
    /// A teammate has nothing to do, and why: its lead knows, and does nothing about it.
    IdleNotification,
    /// A teammate is asked to come to an end.
    ShutdownRequest,
    /// It does.
    ShutdownApproved,
    /// It does not, and why.
    ShutdownRejected,
    /// What a person has allowed one of them for the session, the others may from now on.
    TeamPermissionUpdate,
    /// A teammate is to work in another mode.
    ModeSetRequest,
    /// A teammate waits for a person who lets it reach something outside its walls.
    SandboxPermissionRequest,
    /// They did, or did not.
    SandboxPermissionResponse,
    /// A teammate is no more.
    TeammateTerminated,
    /// A letter came back: nobody is there any more who could read it.
    Undelivered,
    /// A user wants these teammates to begin.
    TeamRequest,
    /// The user has put files back: told with what they say next.
    FilesRewound,
}

impl Kind {
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
        }
    }
}

/// What an agent is asked to do, and who waits for it: the head of a `task_assign` letter.
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
    /// Which attempt; of a call, how often it was spoken to.
    pub attempt: u32,
    /// What it is about, in a few words, if somebody said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// How many calls deep it is: those that a user or a plan gave it to are at none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// What its answer is kept under, if it may be used again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Box<Asked>>,
    /// The skill that it carries out, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// How long whoever was given it lives.
    #[serde(default, skip_serializing_if = "Life::is_call")]
    pub life: Life,
}

impl Assignment {
    /// Whether a person waits for what comes of it.
    pub fn is_for_user(&self) -> bool {
        self.reply_to.starts_with("user/")
    }
}

pub(crate) fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// One letter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// Unique; a second delivery under the same id changes nothing.
    pub id: EnvelopeId,
    /// Who sends it.
    pub from: Address,
    /// Whose mailbox it goes to.
    pub to: Address,
    /// What it is about.
    pub kind: Kind,
    /// What it says; its shape depends on the kind.
    pub body: Value,
    /// The letter it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<EnvelopeId>,
    /// What made it be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// When.
    pub sent_at_ms: i64,
    /// How many letters of colleagues led to it, each written because of the one before, since a person or the lead had a word.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
}

impl Envelope {
    /// A letter that answers none.
    pub fn new(
        id: EnvelopeId,
        from: impl Into<Address>,
        to: impl Into<Address>,
        kind: Kind,
        body: Value,
        sent_at_ms: i64,
    ) -> Self {
        Self { id, from: from.into(), to: to.into(), kind, body, reply_to: None, cause: None, sent_at_ms, hops: 0 }
    }

    /// The same as the answer to another, if it is one.
    pub fn answering(self, letter: impl Into<Option<EnvelopeId>>) -> Self {
        Self { reply_to: letter.into(), ..self }
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

/// On whose behalf a command is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The face it came through: `terminal`, `headless` …
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
}
