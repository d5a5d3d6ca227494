//! Results of tools: bounded, without secrets.

use max_team_core::limits::{MCP_ROW_CHARS_MAX, MCP_TEXT_BYTES_MAX};
use max_team_core::secret::{redact, redact_value};
use max_team_runtime::RuntimeError;
use max_team_workspace::exit::CliError;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use super::McpServer;
use crate::gateway::GatewayError;

/// The outcome of a call that worked.
#[derive(Debug)]
pub(super) enum CallReply {
    Text(String),
    /// A text that reports a failure of the work, not of the call.
    Failed(String),
    Data(Value),
}

/// Why a call did nothing, in words for the client's model and its user.
#[derive(Debug)]
pub(super) struct CallError(pub(super) String);

impl McpServer {
    pub(super) fn failed(&self, error: &RuntimeError) -> CallError {
        CallError(self.shared.lang.runtime_failure(error))
    }

    pub(super) fn refused(&self, error: &CliError) -> CallError {
        CallError(error.words(self.shared.lang).to_owned())
    }

    pub(super) fn not_taken(&self, error: &GatewayError) -> CallError {
        match error {
            GatewayError::Team(error) => self.failed(error),
            GatewayError::Workspace(error) => self.refused(error),
            error => CallError(error.to_string()),
        }
    }
}

pub(super) fn tool_result(outcome: Result<CallReply, CallError>) -> CallToolResult {
    let text = |text: &str| vec![ContentBlock::text(page(&redact(text), 0))];
    match outcome {
        Ok(CallReply::Text(words)) => CallToolResult::success(text(&words)),
        Ok(CallReply::Data(data)) => CallToolResult::structured(redact_value(&data)),
        Ok(CallReply::Failed(words)) | Err(CallError(words)) => CallToolResult::error(text(&words)),
    }
}

/// The part of a text from `offset` on that fits one result, with a note about the rest.
pub(super) fn page(text: &str, offset: usize) -> String {
    let from = text.ceil_char_boundary(offset.min(text.len()));
    let rest = text.get(from..).unwrap_or_default();
    if rest.len() <= MCP_TEXT_BYTES_MAX {
        return rest.to_owned();
    }
    let end = rest.floor_char_boundary(MCP_TEXT_BYTES_MAX);
    let shown = rest.get(..end).unwrap_or_default();
    format!("{shown}\n[cut: {} of {} bytes; the rest begins at offset {}]", shown.len(), text.len(), from + end)
}

/// The first line of a text, shortened to fit a row.
pub(super) fn row_text(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(MCP_ROW_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_read_in_pages() {
        let text = "好".repeat(MCP_TEXT_BYTES_MAX);
        let first = page(&text, 0);
        assert!(first.len() <= MCP_TEXT_BYTES_MAX + 100);
        let (shown, note) = first.split_once("\n[cut: ").unwrap();
        assert!(note.ends_with(&format!("the rest begins at offset {}]", shown.len())), "{note}");
        assert!(page(&text, shown.len()).starts_with('好'));
        assert_eq!(page("short", 0), "short");
        assert_eq!(page("short", 99), "");
    }
}
