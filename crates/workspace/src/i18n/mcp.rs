//! Phrases about MCP servers.

use max_team_core::mcp::{SourceState, SourceStatus};

use super::Lang;

/// Servers that are named in one line.
const NAMED_MAX: usize = 8;

impl Lang {
    /// The state of a server in a few words.
    pub fn source_state(self, source: &SourceStatus) -> String {
        match &source.state {
            SourceState::Idle if source.tools == 0 => self.server_unknown().to_owned(),
            SourceState::Idle => self.server_known(source.tools),
            SourceState::Starting => self.source_starting().to_owned(),
            SourceState::Ready => self.source_ready(source.tools),
            SourceState::Failed(why) => self.source_failed(why),
            SourceState::Withdrawn(why) => self.source_withdrawn(why),
            SourceState::Changed => self.server_changed().to_owned(),
        }
    }

    /// That a project brings servers which the user has not trusted; `None` if it brings none.
    pub fn servers_untrusted(self, names: &[&str]) -> Option<String> {
        let shown: Vec<String> = names.iter().take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
        let rest = if names.len() > NAMED_MAX { ", …" } else { "" };
        (!names.is_empty()).then(|| self.servers_not_trusted(names.len(), format!("{}{rest}", shown.join(", "))))
    }
}
