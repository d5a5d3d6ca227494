//! The sandbox that a verdict names for a command.

use serde::{Deserialize, Serialize};

/// What a command may change and reach, from the widest to the narrowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandReach {
    /// The agent's own folders without protected files, and the agent's own hosts. Also the value for older entries.
    #[default]
    Project,
    /// Fresh temporary folders, and no host. If files are hidden from the agent, so is the history of repositories.
    ReadOnly,
}

impl CommandReach {
    /// Whether it is the value for entries that do not record it.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
