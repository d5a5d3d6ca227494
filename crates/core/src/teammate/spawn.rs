//! The start of a teammate, as a lead's model or a user asks for it.

use serde::{Deserialize, Serialize};

use super::color;
use crate::agent::Isolation;
use crate::delegation::tool_filter::GENERAL;
use crate::policy::Mode;

/// A teammate that is to be started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spawn {
    /// Its name in the session.
    pub name: String,
    /// Its role in the team.
    pub role: String,
    /// Its first task.
    #[serde(alias = "task", alias = "description", alias = "message")]
    pub prompt: String,
    /// Its agent type; `None`: the general one.
    #[serde(rename = "type", alias = "subagent_type", alias = "agent_type", alias = "agent")]
    pub kind: Option<String>,
    /// Another model than its type's.
    pub model: Option<String>,
    /// How freely it acts, where that is stricter.
    #[serde(alias = "permission_mode")]
    pub mode: Option<Mode>,
    /// Whether it plans first.
    #[serde(alias = "plan_mode_required")]
    pub plan_first: bool,
    pub color: Option<String>,
    /// Where its changes go.
    pub isolation: Option<Isolation>,
    /// Whether it takes tasks from the shared list by itself.
    #[serde(alias = "auto_claim")]
    pub claims: Option<bool>,
}

impl Spawn {
    /// For requests stored by older versions: an unknown color becomes a free one.
    pub fn repainted(self) -> Self {
        let color = self.color.as_deref().and_then(|word| color(word).ok()).map(str::to_owned);
        Self { color, ..self }
    }

    /// The type of agent that it is.
    pub fn kind(&self) -> &str {
        self.kind.as_deref().map(str::trim).filter(|kind| !kind.is_empty()).unwrap_or(GENERAL)
    }

    /// Whether it plans first.
    pub fn plans(&self) -> bool {
        self.plan_first || self.mode == Some(Mode::Plan)
    }
}
