//! Messages to and from plans, and questions with their answers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::is_false;
use crate::id::{EnvelopeId, PlanId, QuestionId, SessionId};
use crate::message::{Assignment, Principal};
use crate::plan::TaskDraft;
use crate::plan::event::{PlanDecision, PlanProposed, Ruling};
use crate::policy::PermissionAnswer;

/// A plan that is proposed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Proposal {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Box<PlanProposed>>,
}

/// An agent waits for a person, or for a model server. A plan is told which task waits; a lead is told what its teammate asks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentQuestion<'a> {
    /// For a plan: the task that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Cow<'a, Assignment>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// Why the model server cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage: Option<&'a str>,
    /// For a lead: the name of the teammate.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub from: &'a str,
    /// For a lead: the tool that the teammate wants to use.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub tool: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub target: &'a str,
    /// The plan of a teammate that plans first.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub text: &'a str,
}

/// A question of a task's owner to its plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Clarification<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Cow<'a, Assignment>>,
    /// The text of the question.
    pub question: &'a str,
    /// The key of the call that waits for the answer.
    pub call: &'a str,
    /// The name of the owner.
    pub from: &'a str,
}

/// The answer to an agent's question, for the agent; or for a plan: the task goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QuestionAnswer<'a> {
    /// Of a lead: its comment.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub text: &'a str,
    /// Of a lead: its name.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub from: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<PermissionAnswer>,
    /// The order that it was given with: the same order again is no second answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<EnvelopeId>,
    /// For a plan: the task that goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Cow<'a, Assignment>>,
}

/// A person's answer to a question of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub say: Option<PlanDecision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// The order that it was given with: the same order again is no second answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<EnvelopeId>,
}

/// What the lead says about a task of a plan that runs; or the user continues a stopped plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskInstruction<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub task: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<Instruction>,
    /// The name of the lead or the user.
    pub by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'a str>,
    #[serde(rename = "continue", skip_serializing_if = "is_false")]
    pub continues: bool,
}

/// What the lead says about a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instruction {
    /// To a question of its owner.
    Answer(String),
    /// About its failure.
    Rule(Ruling),
    /// For its owner, before it begins.
    Note(String),
    Cancel,
}

/// A revision of a plan, for the plan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanRevision<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<PlanId>,
    /// Its tasks, when it is proposed; without them, it was not approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Cow<'a, [TaskDraft]>>,
    /// The user asked for another one.
    #[serde(skip_serializing_if = "is_false")]
    pub reworked: bool,
}
