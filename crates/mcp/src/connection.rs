//! One connection to a server: the protocol's two eras behind a few questions.
#![expect(deprecated, reason = "servers of the older protocol ask for the project's folder by `roots/list`")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use max_team_core::limits::{MCP_LIST_MS, SOURCE_TOOLS_MAX};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest, CustomResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability,
    Implementation, ListRootsResult, ListToolsRequest, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, Root, RootsCapabilities, ServerResult, UrlElicitationCapability,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RunningService,
    ServiceError,
};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, RoleClient};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::clean;
use crate::elicitation::{self, Elicitation};
use crate::http_fault::{self, HttpFault};
use crate::known_tools::{Era, KnownTool};
use crate::running_call::{OpenQuestion, Watcher};
use crate::server_end::ServerEnd;

/// Pages of a list that are asked for.
const PAGES_MAX: usize = 100;
/// Tools that cannot be read and are named.
const BAD_TOOLS_MAX: usize = 20;

/// Why a server is of no use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum McpError {
    /// It could not be started or reached.
    #[error("{0}")]
    Connect(String),
    /// It asks for a login first.
    #[error(
        "it asks for a login: run `max-team mcp login {0}`, or give it a token: `max-team mcp add {0} URL --header \
         \"Authorization: Bearer TOKEN\"`"
    )]
    Login(String),
    /// The user's login there is no longer accepted.
    #[error("its login has ended: run `max-team mcp login {0}` again")]
    LoginEnded(String),
    /// A request to its address failed.
    #[error("{0}")]
    Http(#[from] HttpFault),
    /// It did not answer in time.
    #[error("it did not answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// It ended, or the connection broke off.
    #[error("{0}")]
    Gone(ServerEnd),
    /// Its tools are others than the user trusted.
    #[error("its tools have changed since the user trusted it")]
    Changed,
    /// It answered with an error.
    #[error("it answers with an error: {0}")]
    Answer(String),
}

/// The tools of a server as it lists them.
#[derive(Debug, Default)]
pub(crate) struct ToolList {
    pub(crate) tools: Vec<KnownTool>,
    /// Whether there are more than are used.
    pub(crate) is_cut: bool,
    /// Names of entries that are no tools.
    pub(crate) bad: Vec<String>,
}

impl McpError {
    /// Whether a call that ended so may have taken effect.
    pub(crate) fn may_have_run(&self) -> bool {
        match self {
            Self::Gone(_) | Self::Timeout(_) => true,
            Self::Http(fault) => fault.may_have_run(),
            Self::Connect(_) | Self::Login(_) | Self::LoginEnded(_) | Self::Changed | Self::Answer(_) => false,
        }
    }

    /// Whether the connection is of no more use.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Gone(_) | Self::Login(_) | Self::LoginEnded(_) => true,
            Self::Http(fault) => fault.is_lost(),
            Self::Connect(_) | Self::Timeout(_) | Self::Changed | Self::Answer(_) => false,
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) service: RunningService<RoleClient, Client>,
}

impl Connection {
    /// Agrees with a server on the protocol. Without an `era`, both are tried: `server/discover`, then `initialize`.
    pub(crate) async fn open<T: Transport<RoleClient> + 'static>(
        transport: T,
        era: Option<Era>,
        client: Client,
    ) -> Result<Self, ClientInitializeError> {
        let modern = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match era {
            Some(Era::Initialize) => ClientLifecycleMode::Initialize,
            Some(Era::Discover) => ClientLifecycleMode::Discover { preferred_versions: modern },
            None => ClientLifecycleMode::Auto {
                preferred_versions: modern,
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
        };
        Ok(Self { service: client.serve_with_lifecycle(transport, lifecycle).await? })
    }

    /// Which of the two ways of beginning the server understands.
    pub(crate) fn era(&self) -> Era {
        let is_old = self.service.peer().peer_info().is_none_or(|info| info.protocol_version.has_initialize());
        if is_old { Era::Initialize } else { Era::Discover }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// The tools that the server offers, up to a bound.
    pub(crate) async fn tools(&self) -> Result<ToolList, McpError> {
        let limit = Duration::from_millis(MCP_LIST_MS);
        timeout(limit, self.all_tools()).await.unwrap_or(Err(McpError::Timeout(limit)))
    }

    async fn all_tools(&self) -> Result<ToolList, McpError> {
        let mut list = ToolList::default();
        if self.service.peer().peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
            return Ok(list);
        }
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            cursor = self.tool_page(cursor, &mut list).await?.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() || list.tools.len() > SOURCE_TOOLS_MAX {
                break;
            }
        }
        list.is_cut = cursor.is_some() || list.tools.len() > SOURCE_TOOLS_MAX;
        list.tools.truncate(SOURCE_TOOLS_MAX);
        list.bad.truncate(BAD_TOOLS_MAX);
        Ok(list)
    }

    /// Adds a page of tools; the cursor of the next one.
    async fn tool_page(&self, cursor: Option<String>, list: &mut ToolList) -> Result<Option<String>, McpError> {
        let request = ListToolsRequest::with_param(PaginatedRequestParams::default().with_cursor(cursor));
        match self.service.peer().send_request(ClientRequest::ListToolsRequest(request)).await? {
            ServerResult::ListToolsResult(page) => {
                list.tools.extend(page.tools.into_iter().map(KnownTool::from));
                Ok(page.next_cursor)
            }
            // A page with a tool that is no tool is no page for the library: its tools are read one by one.
            ServerResult::CustomResult(CustomResult(Value::Object(page))) if page.contains_key("tools") => {
                for tool in page.get("tools").and_then(Value::as_array).into_iter().flatten() {
                    match serde_json::from_value::<rmcp::model::Tool>(tool.clone()) {
                        Ok(tool) => list.tools.push(tool.into()),
                        Err(_) => {
                            list.bad.push(clean::text(tool.get("name").and_then(Value::as_str).unwrap_or("?"), 64))
                        }
                    }
                }
                Ok(page.get("nextCursor").and_then(Value::as_str).map(str::to_owned))
            }
            _ => Err(McpError::Answer("its list of tools cannot be read".to_owned())),
        }
    }

    /// Calls a tool. The call is taken back if the future is dropped.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        watcher: &Watcher,
    ) -> Result<CallToolResult, McpError> {
        let _watch = self.service.service().watch(watcher.clone());
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        Ok(self.service.call_tool(params).await?)
    }
}

impl From<ServiceError> for McpError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::Answer(elicitation::error_words(&error)),
            ServiceError::Timeout { timeout } => Self::Timeout(timeout),
            ServiceError::TransportClosed => Self::Gone(ServerEnd::Closed),
            ServiceError::TransportSend(error) => match http_fault::behind(&*error.error) {
                Some(fault) => Self::Http(fault),
                None => Self::Gone(ServerEnd::Other(crate::connector::innermost(&*error.error))),
            },
            other => Self::Gone(ServerEnd::Other(clean::text(&other.to_string(), 400))),
        }
    }
}

/// Our side of the protocol: what a server may ask of us, and what it tells us unasked.
#[derive(Debug)]
pub(crate) struct Client {
    /// The project's folder, for servers that ask for it.
    root: PathBuf,
    /// Told when the server says that its tools have changed.
    changed: Arc<Notify>,
    /// Where running calls show their progress and ask their questions, in the order in which they began.
    watchers: Mutex<BTreeMap<u64, Watcher>>,
}

/// Shows progress and questions for as long as it lives.
struct Watch<'a>(&'a Client, u64);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.watchers().remove(&self.1);
    }
}

impl Client {
    pub(crate) fn new(root: PathBuf, changed: Arc<Notify>) -> Self {
        Self { root, changed, watchers: Mutex::default() }
    }

    fn watchers(&self) -> MutexGuard<'_, BTreeMap<u64, Watcher>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, watcher: Watcher) -> Watch<'_> {
        let mut watchers = self.watchers();
        let key = watchers.keys().next_back().map_or(0, |last| last + 1);
        watchers.insert(key, watcher);
        Watch(self, key)
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("max-team", env!("CARGO_PKG_VERSION"));
        let mut can = ClientCapabilities::default();
        can.roots = Some(RootsCapabilities::default());
        let (form, url) = (FormElicitationCapability::default(), UrlElicitationCapability::default());
        can.elicitation = Some(ElicitationCapability::new().with_form(form).with_url(url));
        ClientConfig::new(can, name).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let root = Root::new(format!("file://{}", self.root.display()));
        Ok(ListRootsResult::new(vec![root]))
    }

    /// The protocol does not say which call a question belongs to: the newest asks it. Without a call no user waits for an
    /// answer, and a question is declined.
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let newest = self.watchers().values().next_back().map(|watcher| watcher.questions.clone());
        let (Some(questions), Some(asked)) = (newest, Elicitation::read(&request)) else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let (reply, answer) = oneshot::channel();
        let cancelled = ElicitResult::new(ElicitationAction::Cancel);
        if questions.send(OpenQuestion { asked, reply }).await.is_err() {
            return Ok(cancelled);
        }
        tokio::select! {
            answer = answer => Ok(answer.unwrap_or(cancelled)),
            () = context.ct.cancelled() => Ok(cancelled),
        }
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let words = match (params.message, params.total) {
            (Some(message), _) => message,
            (None, Some(total)) if total > 0.0 => format!("{:.0} %", params.progress / total * 100.0),
            (None, _) => format!("{}", params.progress),
        };
        let watchers: Vec<Watcher> = self.watchers().values().cloned().collect();
        // Reports are not told apart by call here, so every running call shows them.
        watchers.iter().for_each(|watcher| watcher.progress.say(|| clean::text(&words, 200)));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
