//! The beginning of a session.

use serde::{Deserialize, Serialize};

use crate::channel::ChatAddress;
use crate::id::{AgentId, SessionId};
use crate::message::Principal;

/// A session begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionOpened {
    pub session: SessionId,
    /// The agent that leads it.
    pub lead: AgentId,
    /// The directory it works in.
    pub cwd: String,
    /// Who opened it.
    pub by: Principal,
    /// The flags that chose its lead and its team.
    #[serde(default, skip_serializing_if = "LaunchFlags::is_default")]
    pub choice: LaunchFlags,
    /// The chat of a messaging service that it is held in; `None` for one of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatAddress>,
}

/// The flags with which a session's lead and team were chosen; a resumed session is led in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LaunchFlags {
    /// `--agents`: a file, absolute, or the text itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<String>,
    /// `--agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// `--solo`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub solo: bool,
    /// `--coordinator`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub coordinator: bool,
}

impl LaunchFlags {
    /// Whether no flag chose anything.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
