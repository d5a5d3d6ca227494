//! A tool of a server, as agents call it.

use std::sync::Arc;
use std::time::Duration;

use max_team_core::chat::Part;
use max_team_core::limits::{MCP_ASKING_CALLS_MAX, MCP_CONNECT_MS, MCP_LIST_MS};
use max_team_core::mcp::tool_name;
use max_team_core::policy::{Action, ActionKind, Repeatability};
use max_team_tools::command::moved_note;
use max_team_tools::{Output, RemoteFuture, RemoteTool, Spec, ToolContext, ToolError};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::clean;
use crate::connection::McpError;
use crate::known_tools::KnownTool;
use crate::result;
use crate::running_call::{CallStep, RunningCall};
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
        let is_open = error.may_have_run();
        if is_sent && is_open { self.may_have_run(words) } else { ToolError::correctable(words) }
    }

    fn name(&self) -> &str {
        &self.server.config().name
    }

    /// Makes the call.
    async fn start(&self, cx: &ToolContext, args: Value) -> Result<RunningCall, ToolError> {
        let arguments = match args {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::correctable("stopped before the call was sent")),
            ready = self.server.ready() => ready.map_err(|error| self.failed(&error, false))?,
        }
        Ok(RunningCall::start(Arc::clone(&self.server), self.tool.clone(), arguments, cx.progress.clone()))
    }

    /// The call with the answer to its question. An answer that does not fit is asked for again.
    fn answered(&self, mut call: RunningCall, words: Option<&str>, cx: &ToolContext) -> Result<RunningCall, ToolError> {
        match call.answer(words) {
            Ok(()) => Ok(call),
            Err(why) => Err(self.ask(call, cx, Some(&why))),
        }
    }

    /// Has a person asked what a call asks; the call waits meanwhile.
    fn ask(&self, call: RunningCall, cx: &ToolContext, wrong: Option<&str>) -> ToolError {
        let mut question = call.question(self.name());
        if let Some(wrong) = wrong {
            question = format!("{question}\n✗ {wrong}");
        }
        let target = format!("{} on {}", self.tool.name, self.name());
        match self.server.park_call(call, cx.cancel.clone()) {
            Some(name) => ToolError::Asks(Box::new(Action::asked_by_call(name, target, question))),
            None => {
                let words = format!(
                    "the MCP server `{}` asks the user something while {MCP_ASKING_CALLS_MAX} of its calls wait for answers; the \
                     call was given up",
                    self.name()
                );
                self.may_have_run(words)
            }
        }
    }

    /// The answer came, but the call that asked is gone.
    fn answer_too_late(&self) -> ToolError {
        self.may_have_run(format!("the MCP server `{}` no longer waited for the user's answer", self.name()))
    }

    /// Adds a line about protected files that the server's program has made.
    fn with_moved(&self, mut output: Output, cx: &ToolContext) -> Output {
        let moved = self.server.take_moved();
        cx.sandbox.moved.extend(&moved);
        let note = moved_note(&moved);
        output.content.extend((!note.is_empty()).then(|| Part::text(note)));
        output
    }

    fn may_have_run(&self, words: String) -> ToolError {
        match self.spec.class {
            Repeatability::Opaque => {
                ToolError::Unknown(format!("{words}; whether the call took effect is unknown, so it is not repeated"))
            }
            _ => ToolError::correctable(words),
        }
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

    fn call<'a>(&'a self, cx: &'a ToolContext, args: Value, intent: &'a Action, _: bool) -> RemoteFuture<'a> {
        Box::pin(async move {
            let waiting = intent.asking_call();
            // A repeated call asks again; the stored answer is used.
            let mut answer = intent.answer();
            let mut call = match waiting.and_then(|name| self.server.take_parked_call(name)) {
                Some(call) => self.answered(call, answer.take().flatten(), cx)?,
                None if waiting.is_some() && self.spec.class == Repeatability::Opaque => {
                    return Err(self.answer_too_late());
                }
                None => self.start(cx, args).await?,
            };
            let limit = Duration::from_millis(self.server.config().call_ms());
            loop {
                match timeout(limit, call.next()).await {
                    Ok(CallStep::Ended(ended)) => {
                        let output = ended.map(result::output).map_err(|error| self.failed(&error, call.is_sent()));
                        return output.map(|output| self.with_moved(output, cx));
                    }
                    Ok(CallStep::Asks) => {
                        let is_same = intent.preview.starts_with(&call.question(self.name()));
                        match answer.take().filter(|_| is_same) {
                            Some(words) => call = self.answered(call, words, cx)?,
                            None => return Err(self.ask(call, cx, None)),
                        }
                    }
                    Err(_) => return Err(self.failed(&McpError::Timeout(limit), call.is_sent())),
                }
            }
        })
    }
}
