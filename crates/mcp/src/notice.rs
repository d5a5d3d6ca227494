//! What a user is told about a server, in the language of the interface.

use std::fmt;

use crate::connection::McpError;
use crate::process::RefusedGrant;

/// Something about a server that its user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerNotice {
    /// Its tools differ from those that the user trusted.
    Changed { server: String },
    /// It failed too often, or at its first start.
    Unused { server: String, error: McpError },
    /// It has more tools than are used.
    ToolsCut { server: String, used: usize },
    /// Tools that cannot be read; the others are used.
    BadTools { server: String, names: Vec<String> },
    /// A path of its entry that the sandbox does not open.
    Refused { server: String, path: String, why: RefusedGrant },
}

/// Words for users. The words of `Display` are English and also read by models.
#[derive(Clone, Copy)]
pub struct Words {
    pub error: fn(&McpError) -> String,
    pub notice: fn(&ServerNotice) -> String,
}

impl Default for Words {
    fn default() -> Self {
        Self { error: ToString::to_string, notice: ToString::to_string }
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Words")
    }
}

impl fmt::Display for ServerNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { server } => write!(f, "the tools of `{server}` have changed since you trusted it"),
            Self::Unused { server, error } => write!(f, "the MCP server `{server}` is not used: {error}"),
            Self::ToolsCut { server, used } => {
                write!(f, "`{server}` has more than {used} tools; the others are not used")
            }
            Self::BadTools { server, names } => write!(f, "tools of `{server}` cannot be read: {}", names.join(", ")),
            Self::Refused { server, path, why } => write!(f, "`{server}`: `{path}` is not opened: {why}"),
        }
    }
}
