//! Results of turns.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::is_false;
use crate::event::TurnOutcome;
use crate::id::{SessionId, TurnId};
use crate::message::Assignment;
use crate::plan::Budget;
use crate::plan::event::ResourceUse;

/// The outcome of a turn, for the agent, plan or user that waits for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskResult<'a> {
    /// The words for its reader.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub text: &'a str,
    /// Of a teammate or a background task: the name of its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "mate")]
    pub teammate: Option<&'a str>,
    /// The same for the reader of the words.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub from: &'a str,
    /// Of a teammate.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub color: &'a str,
    /// Of a teammate: `done`, `failed` or `blocked`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'a str,
    /// Of a teammate: the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The session, if its use is to be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// It was stopped by a person.
    #[serde(skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// It was stopped before its model had said anything.
    #[serde(skip_serializing_if = "is_false")]
    pub silent: bool,
    /// It begins no turn of its reader.
    #[serde(skip_serializing_if = "is_false")]
    pub aside: bool,
    /// Of a task or a call.
    #[serde(flatten)]
    pub work: Work<'a>,
}

/// The outcome of a task or a call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Work<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Cow<'a, Assignment>>,
    /// The key of the call that waits.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub call: &'a str,
    /// The agent that did it.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub by: &'a str,
    /// Whether it was done.
    #[serde(skip_serializing_if = "is_false")]
    pub ok: bool,
    /// Whether it failed.
    #[serde(skip_serializing_if = "is_false")]
    pub is_error: bool,
    /// The last words of the model.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub output: &'a str,
    /// Why it failed.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub error: &'a str,
    /// How the turn ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<TurnOutcome>,
    /// The answer in the agreed form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// What it cost, with the agents that it called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<ResourceUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// What all agents of the plan or session have left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Budget>,
    /// Whether its own budget was the shorter one.
    #[serde(skip_serializing_if = "is_false")]
    pub own: bool,
    /// Whether it may have changed something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acted: Option<bool>,
    /// Whether its time limit stopped it.
    #[serde(skip_serializing_if = "is_false")]
    pub timed_out: bool,
    /// What it did with its tools, in words.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub did: &'a str,
    /// The targets of calls whose outcome is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Of a correction, on its way through the plan: its reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrects: Option<&'a str>,
    /// Of a correction: what the checks say, for its reader.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub checked: &'a str,
}
