//! Messages that run a team: stops, modes, permissions, teammates that begin or end.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::is_false;
use crate::id::{EnvelopeId, PlanId, SessionId, TurnId, WorkerId};
use crate::policy::{DecidedBy, Mode};
use crate::rewind::RewindNote;
use crate::teammate::Spawn;

/// A stop of an agent, a plan or a task, or the request that a teammate ends.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Stop<'a> {
    /// The name of the person, agent or limit.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub by: &'a str,
    /// The kind of stopper; absent if a person stops: the sender is that person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<DecidedBy>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub text: &'a str,
    /// A person's stop, which puts unread messages on hold.
    #[serde(skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// For a session stop: messages written before this turn are on hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<TurnId>,
    /// Of a lead's request: its name.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub from: &'a str,
    /// It ends a teammate.
    #[serde(skip_serializing_if = "is_false")]
    pub end: bool,
    /// The task of a plan that is stopped; without it the plan is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<&'a str>,
    /// The plan that replaces the stopped one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<PlanId>,
}

/// The end of a teammate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TeammateEnded<'a> {
    pub text: &'a str,
    /// The name of the teammate.
    pub from: &'a str,
    /// The name of the person, agent or limit that ended it.
    pub by: &'a str,
    /// It was ended without a request, or did not answer one in time.
    pub forced: bool,
}

/// A change of a teammate's permission mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SetMode<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Of a lead: its name.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub from: &'a str,
}

/// Why a message was returned, as data beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnCause {
    /// Only the text says why.
    #[default]
    Text,
    /// Its reader has ended.
    Ended,
    /// Its reader cannot work, with the reason.
    Failed(String),
}

impl ReturnCause {
    fn is_text(&self) -> bool {
        *self == Self::Text
    }
}

/// The text for models and people; empty if only the text beside it says why.
impl fmt::Display for ReturnCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => Ok(()),
            Self::Ended => f.write_str("it has ended"),
            Self::Failed(why) => write!(f, "it cannot work: {why}"),
        }
    }
}

/// A message that its reader did not read, for its sender.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Undelivered<'a> {
    /// The words for a model.
    pub text: &'a str,
    /// The name of the agent that did not read it.
    pub from: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "letter")]
    pub envelope: Option<EnvelopeId>,
    /// The address of its sender.
    pub sender: &'a str,
    /// Why it was not read; empty in old messages, whose text says it.
    pub why: &'a str,
    /// What is known of that besides its text.
    #[serde(skip_serializing_if = "ReturnCause::is_text")]
    pub cause: ReturnCause,
    /// Its first words.
    pub said: &'a str,
}

/// A user's request to start teammates.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TeamRequest<'a> {
    /// `None`: they cannot be read.
    #[serde(rename = "mates")]
    pub teammates: Option<Cow<'a, [Spawn]>>,
    /// The name of the user.
    pub by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// A rewind of files, for the lead.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilesRewound {
    #[serde(flatten)]
    pub told: RewindNote,
    /// The rewinds that it reports; an older message reports only the one that its id is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Vec<Uuid>>,
}

/// A session that the server of its folder is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Handover<'a> {
    /// The person who hands it over.
    pub by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The process that had the session open: the server waits until it lets go. The hand-over is void once another process has the
    /// session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<WorkerId>,
}
