//! A tool of a server, as agents call it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use max_team_core::limits::{MCP_CONNECT_MS, MCP_LIST_MS};
use max_team_core::mcp::tool_name;
use max_team_core::policy::{Action, ActionKind, Repeatability};
use max_team_tools::{RemoteFuture, RemoteTool, Spec, ToolContext, ToolError};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::clean;
use crate::connection::McpError;
use crate::known_tools::KnownTool;
use crate::result;
use crate::server::Server;

/// Characters of the input that a person is shown before approval.
const PREVIEW_CHARS_MAX: usize = 2_000;

/// One tool of one server.
#[derive(Debug)]
pub(crate) struct McpTool {
    server: Arc<Server>,
    tool: KnownTool,
    spec: Spec,
}

impl McpTool {
    pub(crate) fn new(server: Arc<Server>, tool: KnownTool) -> Self {
        let name = &server.config().name;
        let spec = Spec {
            name: tool_name(name, &tool.name),
            description: clean::description(name, &tool.description),
            schema: clean::schema(&tool.schema),
            class: tool.class(),
            null_is_absent: false,
        };
        Self { server, tool, spec }
    }

    fn failed(&self, error: &McpError, is_sent: bool) -> ToolError {
        let name = &self.server.config().name;
        let words = format!("the MCP server `{name}`: {error}");
        let may_have_run = matches!(error, McpError::Gone(_) | McpError::Timeout(_));
        if is_sent && may_have_run && self.spec.class == Repeatability::Opaque {
            return ToolError::Unknown(format!(
                "{words}; whether the call took effect is unknown, so it is not repeated"
            ));
        }
        ToolError::correctable(words)
    }
}

impl RemoteTool for McpTool {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn action(&self, _: &ToolContext, args: &Value) -> Result<Action, ToolError> {
        let kind = if self.tool.reads_only { ActionKind::Query } else { ActionKind::Remote };
        let shown = serde_json::to_string_pretty(args).unwrap_or_default();
        let preview = shown.chars().take(PREVIEW_CHARS_MAX).collect();
        let target = format!("{} on {}", self.tool.name, self.server.config().name);
        Ok(Action { kind, preview, ..Action::read(target) })
    }

    fn server(&self, _: &Value, _: &Action) -> Option<String> {
        Some(self.server.config().name.clone())
    }

    fn time(&self) -> Duration {
        let config = self.server.config();
        // A server that is not running is started, asked twice and listed first.
        Duration::from_millis(config.call_ms() + 2 * config.connect_ms() + MCP_CONNECT_MS + MCP_LIST_MS)
    }

    fn call<'a>(&'a self, cx: &'a ToolContext, args: Value, _: &'a Action, _: bool) -> RemoteFuture<'a> {
        Box::pin(async move {
            let arguments = match args {
                Value::Object(map) => map,
                _ => Map::new(),
            };
            self.server.ready().await.map_err(|error| self.failed(&error, false))?;
            let (limit, is_sent) = (Duration::from_millis(self.server.config().call_ms()), AtomicBool::new(false));
            let called = timeout(limit, self.server.call(&self.tool, arguments, &cx.progress, &is_sent)).await;
            let ended = called.unwrap_or(Err(McpError::Timeout(limit)));
            ended.map(result::output).map_err(|error| self.failed(&error, is_sent.load(Ordering::Acquire)))
        })
    }
}
