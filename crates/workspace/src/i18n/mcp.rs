//! Phrases about MCP servers.

use super::Lang;

/// Servers that are named in one line.
const NAMED_MAX: usize = 8;

impl Lang {
    /// That a project brings servers which the user has not trusted; `None` if it brings none.
    pub fn servers_untrusted(self, names: &[&str]) -> Option<String> {
        let shown: Vec<String> = names.iter().take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
        let rest = if names.len() > NAMED_MAX { ", …" } else { "" };
        (!names.is_empty()).then(|| self.servers_not_trusted(names.len(), format!("{}{rest}", shown.join(", "))))
    }
}
