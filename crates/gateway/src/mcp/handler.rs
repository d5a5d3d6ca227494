//! The protocol's requests, of both eras (`initialize` up to 2025-11-25, `server/discover` since 2026-07-28).

use max_team_core::limits::{MCP_CALLS_MAX, MCP_TASK_TTL_MS};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CreateTaskResult, GetTaskParams,
    GetTaskResult, Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskExit, TaskOptions};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::McpServer;
use super::answer::Wait;
use super::caller::Caller;
use super::progress::Progress;
use super::result::{CallError, CallReply, tool_result};
use super::tools::TeamTool;

/// How often a client should ask for the state of a task.
const TASK_POLL_MS: u64 = 1_000;

const INSTRUCTIONS: &str = "Max Team: a team of AI agents that works in one folder. `ask` gives it work; `propose_plan` and `run_plan` \
    are for larger goals. The user, not you, answers questions and approves plans, with `max-team inbox` and `max-team approve`.";

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("max-team", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TeamTool::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        TeamTool::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TeamTool::find(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        let call = ToolCall {
            tool,
            arguments: Value::Object(request.arguments.unwrap_or_default()),
            caller: Caller::new(&context),
        };
        let has_tasks = context.client_capabilities().is_some_and(|client| client.supports_tasks());
        if tool.is_long() && has_tasks {
            return Ok(self.begin_task(call));
        }
        let wait = Wait { progress: Progress::of_request(&context), stop: &context.ct };
        Ok(self.call(call, wait).await.into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.shared.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.cancel_task(&request.task_id)
    }
}

struct ToolCall {
    tool: TeamTool,
    arguments: Value,
    caller: Caller,
}

impl McpServer {
    /// Starts a call whose outcome the client asks for later.
    fn begin_task(&self, call: ToolCall) -> CallToolResponse {
        let server = self.clone();
        let options = TaskOptions::new().with_ttl_ms(MCP_TASK_TTL_MS).with_poll_interval_ms(TASK_POLL_MS);
        let task = self.shared.tasks.spawn(options, move |task| {
            Box::pin(async move {
                let stop = CancellationToken::new();
                let wait = Wait { progress: Progress::Task(task.clone()), stop: &stop };
                let mut called = std::pin::pin!(server.call(call, wait));
                tokio::select! {
                    result = &mut called => Ok(result),
                    () = task.cancelled() => {
                        stop.cancel();
                        called.await;
                        Err(TaskExit::Cancelled)
                    }
                }
            })
        });
        CallToolResponse::Task(CreateTaskResult::new(task))
    }

    async fn call(&self, call: ToolCall, wait: Wait<'_>) -> CallToolResult {
        let outcome = if call.tool.is_long() {
            match self.shared.calls.try_acquire() {
                Ok(_permit) => self.work(call, wait).await,
                Err(_) => Err(CallError(format!("{MCP_CALLS_MAX} calls wait for the team already: try again later"))),
            }
        } else {
            self.work(call, wait).await
        };
        tool_result(outcome)
    }

    async fn work(&self, call: ToolCall, wait: Wait<'_>) -> Result<CallReply, CallError> {
        let ToolCall { tool, arguments, caller } = call;
        match tool {
            TeamTool::Ask => self.ask(&caller, read(arguments)?, wait).await,
            TeamTool::ProposePlan => self.propose_plan(&caller, read(arguments)?, wait).await,
            TeamTool::RunPlan => self.run_plan(&caller, read(arguments)?, wait).await,
            TeamTool::Status => self.status(&caller),
            TeamTool::AnswerOf => self.answer_of(&caller, &read(arguments)?),
            TeamTool::SearchMemory => self.search_memory(read(arguments)?),
            TeamTool::ReadArtifact => self.read_artifact(&read(arguments)?),
            TeamTool::ListAgents => self.list_agents(),
        }
    }
}

/// The arguments of a call. A wrong one is told to the client's model, which can correct it.
fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, CallError> {
    serde_json::from_value(arguments).map_err(|error| CallError(format!("wrong arguments: {error}")))
}
