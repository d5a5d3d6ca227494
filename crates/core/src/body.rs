//! What a message says, by its kind.
//!
//! The envelope's kind is the tag, so bodies that earlier releases wrote are read like new ones: a missing field has its default,
//! an unknown one is ignored, and so is one of another type. A body borrows from the envelope that it is read from, or from the values that it is written
//! from.

mod plan;
mod result;
mod team;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::de::value::MapDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{EnvelopeId, PlanId, SessionId};
use crate::message::{Assignment, Envelope, MessageKind};
use crate::teammate::Granted;

pub use plan::{
    AgentQuestion, Clarification, Instruction, PlanAnswer, PlanRevision, Proposal, QuestionAnswer, TaskInstruction,
};
pub use result::{TaskResult, Work};
pub use team::{FilesRewound, Handover, ReturnCause, SetMode, Stop, TeamRequest, TeammateEnded, Undelivered};

/// The body of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Body<'a> {
    /// `text`, and all kinds of which only the words are read.
    Words(Words<'a>),
    /// `user_input`.
    Input(UserInput<'a>),
    /// `task_assign`.
    Task(Task<'a>),
    /// `task_result` and `idle_notification`.
    Result(Box<TaskResult<'a>>),
    /// `shutdown` and `shutdown_request`.
    Stop(Stop<'a>),
    /// `plan_approval_request` to a plan.
    Proposal(Proposal),
    /// `permission_request`, `sandbox_permission_request`, and `plan_approval_request` to a lead.
    Question(AgentQuestion<'a>),
    /// `need_clarify` to a plan.
    Clarification(Clarification<'a>),
    /// `permission_response`, `sandbox_permission_response`, and `plan_approval_response` to a teammate.
    Answer(Box<QuestionAnswer<'a>>),
    /// `plan_approval_response` to a plan.
    PlanAnswer(PlanAnswer),
    /// `task_update`.
    Update(TaskInstruction<'a>),
    /// `plan_revised`.
    Revision(PlanRevision<'a>),
    /// `shutdown_approved` and `teammate_terminated`.
    Ended(TeammateEnded<'a>),
    /// `mode_set_request`.
    Mode(SetMode<'a>),
    /// `team_permission_update`.
    Grant(Granted),
    /// `undelivered`.
    Undelivered(Undelivered<'a>),
    /// `team_request`.
    Team(TeamRequest<'a>),
    /// `files_rewound`.
    Rewound(FilesRewound),
    /// `session_handover`.
    Handover(Handover<'a>),
}

/// Words of agents and plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Words<'a> {
    pub text: &'a str,
    /// The name of the agent that wrote them.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub from: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub color: &'a str,
    /// The message that they are about.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub about: &'a str,
    /// They begin no turn of their own: they are told with the next one.
    #[serde(skip_serializing_if = "is_false")]
    pub aside: bool,
    /// A plan, or a teammate, was stopped by a person, who needs not be told.
    #[serde(skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// The plan that they are about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// The question that they answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<EnvelopeId>,
    /// No agent could answer the question: the user is asked.
    #[serde(skip_serializing_if = "is_false")]
    pub ask: bool,
}

/// A message of a user to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UserInput<'a> {
    pub text: &'a str,
    /// The name of the user, for other agents than the lead.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub by: &'a str,
    /// The session, if its use is to be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// It is to be read once the turn that runs is over.
    #[serde(skip_serializing_if = "is_false")]
    pub wait: bool,
    /// The lead's copy of a message to all agents of the session.
    #[serde(skip_serializing_if = "is_false")]
    pub all: bool,
}

/// A task for an agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Task<'a> {
    /// What to do.
    pub text: &'a str,
    /// Whose task it is, and who waits for it. A task of the shared list has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Cow<'a, Assignment>>,
    /// Nano-dollars that it may cost, if that has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_nano: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
    /// Of a task of the shared list: the name of the lead.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub from: &'a str,
    /// Its number in the shared list.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub task: &'a str,
    /// The person who continues it.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

fn fields<'a, I: Iterator<Item = (&'a str, &'a Value)>>(all: I) -> MapDeserializer<'a, I, serde_json::Error> {
    MapDeserializer::new(all)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl<'a> Body<'a> {
    /// The body of a message. Fields that cannot be read have their default.
    pub fn read(envelope: &'a Envelope) -> Self {
        match envelope.kind {
            MessageKind::Text | MessageKind::TaskFailed | MessageKind::AllTasksDone | MessageKind::ShutdownRejected => {
                Self::Words(envelope.read())
            }
            MessageKind::UserInput => Self::Input(envelope.read()),
            MessageKind::TaskAssign => Self::Task(envelope.read()),
            MessageKind::TaskResult | MessageKind::IdleNotification => Self::Result(Box::new(envelope.read())),
            MessageKind::Shutdown | MessageKind::ShutdownRequest => Self::Stop(envelope.read()),
            MessageKind::PermissionRequest | MessageKind::SandboxPermissionRequest => Self::Question(envelope.read()),
            MessageKind::PermissionResponse | MessageKind::SandboxPermissionResponse => {
                Self::Answer(Box::new(envelope.read()))
            }
            MessageKind::PlanApprovalRequest => match envelope.read::<Proposal>() {
                proposal if proposal.proposed.is_some() => Self::Proposal(proposal),
                _ => Self::Question(envelope.read()),
            },
            MessageKind::PlanApprovalResponse => {
                match (envelope.read::<PlanAnswer>(), envelope.read::<QuestionAnswer<'_>>()) {
                    (said, _) if said.say.is_some() => Self::PlanAnswer(said),
                    (_, answer) if answer.answer.is_some() => Self::Answer(Box::new(answer)),
                    // The user's answer about a plan, told to its lead.
                    _ => Self::Words(envelope.read()),
                }
            }
            MessageKind::NeedClarify => match envelope.read::<Clarification<'_>>() {
                asked if asked.assignment.is_some() || envelope.text().is_empty() => Self::Clarification(asked),
                // The question of a task's owner, told to the lead.
                _ => Self::Words(envelope.read()),
            },
            MessageKind::TaskUpdate => Self::Update(envelope.read()),
            MessageKind::PlanRevised => Self::Revision(envelope.read()),
            MessageKind::ShutdownApproved | MessageKind::TeammateTerminated => Self::Ended(envelope.read()),
            MessageKind::ModeSetRequest => Self::Mode(envelope.read()),
            MessageKind::TeamPermissionUpdate => Self::Grant(envelope.read()),
            MessageKind::Undelivered => Self::Undelivered(envelope.read()),
            MessageKind::TeamRequest => Self::Team(envelope.read()),
            MessageKind::FilesRewound => Self::Rewound(envelope.read()),
            MessageKind::SessionHandover => Self::Handover(envelope.read()),
        }
    }
}

impl From<Body<'_>> for Value {
    fn from(body: Body<'_>) -> Self {
        serde_json::to_value(body).unwrap_or_default()
    }
}

impl Envelope {
    /// The words of a message of any kind.
    pub fn text(&self) -> &str {
        self.string("text")
    }

    /// The sender's name as the reader sees it.
    pub fn author(&self) -> &str {
        self.string("from")
    }

    /// The name of the person, agent or limit that a message acts for.
    pub fn by(&self) -> &str {
        self.string("by")
    }

    /// Like `by`; falls back to the sender's name, then its address.
    pub fn asker(&self) -> &str {
        [self.by(), self.author()].into_iter().find(|name| !name.is_empty()).unwrap_or(&self.from)
    }

    /// Of a report of a teammate or a background task: the name of its agent.
    pub fn teammate(&self) -> Option<&str> {
        self.body.get("mate").and_then(Value::as_str)
    }

    /// Whether a message begins no turn of its own.
    pub fn is_aside(&self) -> bool {
        self.flag("aside")
    }

    /// Whether a message says that its sender was stopped by a person, or is such a stop.
    pub fn is_stopped(&self) -> bool {
        self.flag("stopped")
    }

    /// The session that a message counts as a use of, or that its plan belongs to.
    pub fn session(&self) -> Option<SessionId> {
        self.string("session").parse().ok()
    }

    /// The sender's color on screen.
    pub fn color(&self) -> &str {
        self.string("color")
    }

    /// The body of a task.
    pub fn task(&self) -> Task<'_> {
        self.read()
    }

    /// The body of a result.
    pub fn result(&self) -> TaskResult<'_> {
        self.read()
    }

    /// The body of a stop.
    pub fn stop(&self) -> Stop<'_> {
        self.read()
    }

    /// The body without the fields that cannot be read: each has its default.
    fn read<'a, T: Deserialize<'a> + Default>(&'a self) -> T {
        let readable = |field: &(&'a str, &'a Value)| T::deserialize(fields(std::iter::once(*field))).is_ok();
        T::deserialize(&self.body).unwrap_or_else(|_| {
            let all = self.body.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value));
            T::deserialize(fields(all.filter(readable))).unwrap_or_default()
        })
    }

    fn string(&self, name: &str) -> &str {
        self.body.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.body.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}
