//! The sandbox that a verdict names for a command.

use serde::{Deserialize, Serialize};

/// What a command may change and reach, from the widest to the narrowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandReach {
    /// The agent's own folders with everything in them, because this machine cannot protect files there, and no host.
    Unshielded,
    /// The agent's own folders without protected files, and the agent's own hosts. Also the value for older entries.
    #[default]
    Project,
    /// Fresh temporary folders and the project's build folders that exist, and no host.
    BuildFolders,
    /// Fresh temporary folders, and no host.
    Temporary,
    /// The same for a command whose effects are not known. If files are hidden from the agent, so is the history of
    /// repositories.
    ReadOnly,
}

impl CommandReach {
    /// Whether it is the value for entries that do not record it.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether nothing in the project can be changed.
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::Temporary | Self::ReadOnly)
    }
}
