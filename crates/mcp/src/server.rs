//! One server: its state and its connection. After a failure the next call connects again, with growing waits.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use max_team_core::hash::Hash;
use max_team_core::limits::{MCP_ANSWER_MS_MAX, MCP_ASKING_CALLS_MAX, MCP_RESTARTS_MAX, MCP_RETRY_MS};
use max_team_core::mcp::{McpServer, SourceState};
use max_team_core::rewind::MovedFile;
use rmcp::model::CallToolResult;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, McpError, ToolList};
use crate::connector::Connector;
use crate::known_tools::{KnownTool, KnownTools};
use crate::last_error;
use crate::log::Log;
use crate::notice::ServerNotice;
use crate::process::{ExitReason, Launch};
use crate::running::{self, RunningServer};
use crate::running_call::{RunningCall, Watcher};
use crate::server_end::ServerEnd;

/// The wait before the first restart; each further one waits three times as long.
const BACKOFF: Duration = Duration::from_millis(250);

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerStatus {
    /// It is not running; its tools are known, or will be asked for.
    Idle,
    /// It is being started or reached.
    Starting,
    /// It is connected.
    Ready,
    /// It failed and is started again by the next call.
    Failed(McpError),
    /// It failed too often: its tools are withdrawn.
    Withdrawn(McpError),
    /// Its tools differ from those that the user trusted: they are withheld.
    Changed,
}

impl ServerStatus {
    /// The state as people are shown it.
    pub fn shown(&self, words: impl Fn(&McpError) -> String) -> SourceState {
        match self {
            Self::Idle => SourceState::Idle,
            Self::Starting => SourceState::Starting,
            Self::Ready => SourceState::Ready,
            Self::Failed(error @ (McpError::Login(_) | McpError::LoginEnded(_)))
            | Self::Withdrawn(error @ (McpError::Login(_) | McpError::LoginEnded(_))) => {
                SourceState::NeedsLogin(words(error))
            }
            Self::Failed(error) => SourceState::Failed(words(error)),
            Self::Withdrawn(error) => SourceState::Withdrawn(words(error)),
            Self::Changed => SourceState::Changed,
        }
    }
}

/// A server that agents may use. Cheap to hold: nothing runs until it is needed.
pub struct Server {
    connector: Connector,
    hash: Hash,
    /// The hash of the tools that the user trusted; `None`: the user's own entry, whose tools may change.
    pin: Option<Hash>,
    state: Mutex<State>,
    generation: AtomicU64,
    /// Held while a connection is made, so that several calls make one.
    connection: AsyncMutex<Option<Arc<OpenConnection>>>,
    /// Calls that wait for a person's answer, by the name in the question.
    parked: Mutex<HashMap<String, ParkedCall>>,
}

/// A call that waits for a person's answer.
#[derive(Debug)]
struct ParkedCall {
    call: RunningCall,
    /// Ends the task that gives the call up.
    end: AbortHandle,
}

#[derive(Debug)]
pub(crate) struct OpenConnection {
    pub(crate) connection: Connection,
    /// Why its program ended, if it did.
    ended: ExitReason,
}

#[derive(Debug)]
struct State {
    status: ServerStatus,
    /// The tools as last listed; read from the file once.
    known: Option<Arc<KnownTools>>,
    is_read: bool,
    /// Failures in a row.
    failures: u32,
    /// When it may be tried again.
    not_before: Instant,
    /// Notices that no session has shown yet.
    notices: Vec<ServerNotice>,
    /// Whether paths that the sandbox does not open were named.
    are_paths_told: bool,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("server", &self.connector.server).finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        running::hide(&self.connector.launch.home, &self.hash);
    }
}

impl Server {
    pub(crate) fn new(
        server: McpServer,
        launch: Launch,
        cert_file: Option<std::path::PathBuf>,
        pin: Option<Hash>,
    ) -> Arc<Self> {
        let log = Arc::new(Log::new(&launch.home, &server));
        let (hash, changed) = (server.hash(), Arc::new(Notify::new()));
        let state = State {
            status: ServerStatus::Idle,
            known: None,
            is_read: false,
            failures: 0,
            not_before: Instant::now(),
            notices: Vec::new(),
            are_paths_told: false,
        };
        Arc::new(Self {
            connector: Connector { server, launch, log, changed, cert_file, moved: Arc::default() },
            hash,
            pin,
            state: Mutex::new(state),
            generation: AtomicU64::new(1),
            connection: AsyncMutex::new(None),
            parked: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry that defines it.
    pub fn config(&self) -> &McpServer {
        &self.connector.server
    }

    /// Its state now.
    pub fn status(&self) -> ServerStatus {
        self.state().status.clone()
    }

    /// A number that changes with its tools.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Notices for the user that were not shown yet.
    pub fn take_notices(&self) -> Vec<ServerNotice> {
        std::mem::take(&mut self.state().notices)
    }

    /// What is known of its tools, without asking it.
    pub fn known(&self) -> Option<Arc<KnownTools>> {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_read, true) {
            state.known = KnownTools::read(&self.connector.launch.home, &self.hash).map(Arc::new);
            if state.known.as_ref().is_some_and(|known| self.differs(known)) {
                state.status = ServerStatus::Changed;
                state.notices.push(self.changed_notice());
            }
        }
        state.known.clone()
    }

    fn changed_notice(&self) -> ServerNotice {
        ServerNotice::Changed { server: self.config().name.clone() }
    }

    /// The tools that agents have now.
    pub fn offered(&self) -> Vec<KnownTool> {
        let Some(known) = self.known() else { return Vec::new() };
        if matches!(self.state().status, ServerStatus::Withdrawn(_) | ServerStatus::Changed) {
            return Vec::new();
        }
        let chosen = self.config().tools.as_deref();
        let is_chosen = |tool: &&KnownTool| chosen.is_none_or(|names| names.contains(&tool.name));
        known.tools.iter().filter(is_chosen).cloned().collect()
    }

    /// Whether its tools are others than the user trusted.
    fn differs(&self, known: &KnownTools) -> bool {
        self.pin.is_some_and(|pin| pin != known.hash())
    }

    /// Whether an agent's first request has to wait for it: nothing is known of it yet.
    pub fn is_unknown(&self) -> bool {
        self.known().is_none() && matches!(self.status(), ServerStatus::Idle | ServerStatus::Starting)
    }

    /// Whether its tools were withdrawn and it is time to look whether it is back.
    pub fn is_due(&self) -> bool {
        let state = self.state();
        matches!(state.status, ServerStatus::Withdrawn(_)) && Instant::now() >= state.not_before
    }

    /// Connects and lists its tools.
    pub async fn refresh(&self) -> Result<Arc<KnownTools>, McpError> {
        let is_open = self.connection.lock().await.as_ref().is_some_and(|open| !open.connection.is_closed());
        let open = self.connect().await?;
        match self.known() {
            // A new connection begins with a list.
            Some(known) if !is_open => Ok(known),
            _ => self.list(&open).await,
        }
    }

    /// Connects if it is not connected, so that start-up does not count against the time of a call.
    pub(crate) async fn ready(&self) -> Result<(), McpError> {
        // Nothing was sent to a tool yet.
        self.connect().await.map(drop).map_err(|error| McpError::Connect(error.to_string()))
    }

    /// Takes the protected files that its program made and that were moved away since this was last asked.
    pub(crate) fn take_moved(&self) -> Vec<MovedFile> {
        self.connector.moved.take()
    }

    /// Calls a tool. A call that only reads is made again if the server ends in the middle of it. `is_sent` becomes true once the
    /// server may have got the call.
    pub(crate) async fn call(
        &self,
        tool: &KnownTool,
        arguments: Map<String, Value>,
        watcher: &Watcher,
        is_sent: &AtomicBool,
    ) -> Result<CallToolResult, McpError> {
        let mut is_second = false;
        loop {
            let unsent = |error: McpError| McpError::Connect(error.to_string());
            let open = self.connect().await.map_err(unsent)?;
            self.relist_if_changed(&open).await.map_err(unsent)?;
            // What was judged is what is called.
            if !self.known().is_some_and(|known| known.tools.contains(tool)) {
                let words =
                    format!("`{}` has changed since it was described; look at its description again", tool.name);
                return Err(McpError::Answer(words));
            }
            is_sent.store(true, Ordering::Release);
            let ended = open.connection.call(&tool.name, arguments.clone(), watcher).await;
            match ended.map_err(|error| self.connector.with_server_name(error)) {
                Err(error) if error.is_lost() => {
                    let error = open.ended.get().map_or(error, McpError::Gone);
                    self.drop_connection(&open, error.clone()).await;
                    if is_second || !tool.reads_only || matches!(error, McpError::Login(_) | McpError::LoginEnded(_)) {
                        return Err(error);
                    }
                    is_second = true;
                }
                ended => {
                    if ended.is_ok() {
                        self.state().failures = 0;
                    }
                    return ended;
                }
            }
        }
    }

    /// Asks the server something that changes nothing, within the time of a call.
    pub(crate) async fn ask<T, F>(&self, ask: impl FnOnce(Arc<OpenConnection>) -> F) -> Result<T, McpError>
    where
        F: Future<Output = Result<T, McpError>>,
    {
        let open = self.connect().await?;
        let limit = Duration::from_millis(self.config().call_ms());
        let answered = timeout(limit, ask(Arc::clone(&open))).await.unwrap_or(Err(McpError::Timeout(limit)));
        let answered = answered.map_err(|error| self.connector.with_server_name(error));
        if let Err(error) = &answered
            && error.is_lost()
        {
            self.drop_connection(&open, error.clone()).await;
        }
        answered
    }

    fn parked(&self) -> MutexGuard<'_, HashMap<String, ParkedCall>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a call that waits for a person's answer, until the answer comes, the turn is stopped or the time is over. The name
    /// finds it again; `None`: too many wait already.
    pub(crate) fn park_call(self: &Arc<Self>, call: RunningCall, stop: CancellationToken) -> Option<String> {
        let mut parked = self.parked();
        if parked.len() >= MCP_ASKING_CALLS_MAX {
            return None;
        }
        // Random, so that an answer from before a restart matches no new call.
        let name = format!("{:016x}", RandomState::new().build_hasher().finish());
        let (server, own) = (Arc::downgrade(self), name.clone());
        let end = tokio::spawn(async move {
            drop(timeout(Duration::from_millis(MCP_ANSWER_MS_MAX), stop.cancelled()).await);
            if let Some(server) = server.upgrade() {
                server.parked().remove(&own);
            }
        });
        parked.insert(name.clone(), ParkedCall { call, end: end.abort_handle() });
        Some(name)
    }

    /// The call that waits for the answer to a question; `None`: it was given up, or made by an earlier process.
    pub(crate) fn take_parked_call(&self, name: &str) -> Option<RunningCall> {
        let parked = self.parked().remove(name)?;
        parked.end.abort();
        Some(parked.call)
    }

    /// Lists the tools again if the server said that they have changed.
    async fn relist_if_changed(&self, open: &OpenConnection) -> Result<(), McpError> {
        let is_told = self.connector.changed.notified();
        tokio::pin!(is_told);
        // Checks without waiting.
        if !is_told.as_mut().enable() {
            return Ok(());
        }
        let listed = self.list(open).await;
        if listed.is_err() {
            // The next call lists them again.
            self.connector.changed.notify_one();
        }
        listed.map(drop)
    }

    /// The open connection, or a new one.
    async fn connect(&self) -> Result<Arc<OpenConnection>, McpError> {
        let mut slot = self.connection.lock().await;
        if let Some(open) = slot.as_ref() {
            if !open.connection.is_closed() {
                return Ok(Arc::clone(open));
            }
            let end = open.ended.get().unwrap_or(ServerEnd::Closed);
            *slot = None;
            self.fail(&McpError::Gone(end));
        }
        let wait = {
            let state = self.state();
            match &state.status {
                ServerStatus::Withdrawn(error) if Instant::now() < state.not_before => return Err(error.clone()),
                _ => state.not_before,
            }
        };
        sleep_until(wait).await;
        // Withdrawn tools come back once they are listed.
        if !matches!(self.status(), ServerStatus::Withdrawn(_)) {
            self.set(ServerStatus::Starting);
        }
        // After a failure nothing is taken for granted: the server may have been replaced by a newer one.
        let is_fresh = self.state().failures == 0;
        let era = self.known().filter(|_| is_fresh).map(|known| known.era);
        self.tell_paths();
        match self.connector.connect(era).await {
            Ok((connection, ended)) => {
                let open = Arc::new(OpenConnection { connection, ended });
                // Listed before the first call, so that changed tools are noticed.
                self.list(&open).await?;
                *slot = Some(Arc::clone(&open));
                Ok(open)
            }
            Err(error) => {
                self.fail(&error);
                Err(error)
            }
        }
    }

    /// Asks for the tools and remembers them.
    async fn list(&self, open: &OpenConnection) -> Result<Arc<KnownTools>, McpError> {
        let list = match open.connection.tools().await.map_err(|error| self.connector.with_server_name(error)) {
            Ok(list) => list,
            Err(error) => {
                self.fail(&error);
                return Err(error);
            }
        };
        let ToolList { tools, is_cut, bad } = list;
        let prompts = open.connection.prompts().await.unwrap_or_else(|error| {
            self.connector.log.line(&format!("its prompts cannot be listed: {error}"));
            Vec::new()
        });
        let known = Arc::new(KnownTools { era: open.connection.era(), tools, is_cut, bad, prompts });
        let before = self.known();
        if before.as_deref() != Some(&known) {
            known.keep(&self.connector.launch.home, &self.hash);
            self.state().known = Some(Arc::clone(&known));
            self.generation.fetch_add(1, Ordering::AcqRel);
            self.tell_of_tools(&known);
        }
        last_error::forget(&self.connector.launch.home, &self.hash);
        if self.differs(&known) {
            self.set(ServerStatus::Changed);
            self.notice(self.changed_notice());
            return Err(McpError::Changed);
        }
        self.set(ServerStatus::Ready);
        Ok(known)
    }

    async fn drop_connection(&self, open: &Arc<OpenConnection>, why: McpError) {
        let mut slot = self.connection.lock().await;
        if slot.as_ref().is_some_and(|current| Arc::ptr_eq(current, open)) {
            *slot = None;
            self.fail(&why);
        }
    }

    fn set(&self, status: ServerStatus) {
        let mut state = self.state();
        let offers = |status: &ServerStatus| !matches!(status, ServerStatus::Withdrawn(_) | ServerStatus::Changed);
        let has_changed = offers(&state.status) != offers(&status);
        let is_same = std::mem::replace(&mut state.status, status.clone()) == status;
        drop(state);
        if has_changed {
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        if !is_same {
            let (pid, name, tools) = (std::process::id(), self.config().name.clone(), self.offered().len());
            running::show(&self.connector.launch.home, &self.hash, &RunningServer { pid, name, status, tools });
        }
    }

    /// Counts a failure: the next start waits longer, and after too many the tools are withdrawn.
    fn fail(&self, error: &McpError) {
        let name = self.config().name.clone();
        self.connector.log.line(&error.to_string());
        last_error::keep(&self.connector.launch.home, &self.hash, error);
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        let is_unknown = state.known.is_none();
        let is_over = state.failures > MCP_RESTARTS_MAX
            || is_unknown
            || matches!(error, McpError::Login(_) | McpError::LoginEnded(_));
        if is_over {
            state.not_before = Instant::now() + Duration::from_millis(MCP_RETRY_MS);
            if !matches!(state.status, ServerStatus::Withdrawn(_)) {
                state.notices.push(ServerNotice::Unused { server: name, error: error.clone() });
            }
            drop(state);
            self.set(ServerStatus::Withdrawn(error.clone()));
        } else {
            state.not_before = Instant::now() + BACKOFF * 3_u32.pow(state.failures.saturating_sub(1).min(4));
            drop(state);
            self.set(ServerStatus::Failed(error.clone()));
        }
    }

    fn notice(&self, notice: ServerNotice) {
        self.state().notices.push(notice);
    }

    /// Names tools that are not used, once for each list that the server gives.
    fn tell_of_tools(&self, known: &KnownTools) {
        let server = &self.config().name;
        if known.is_cut {
            self.notice(ServerNotice::ToolsCut { server: server.clone(), used: known.tools.len() });
        }
        if !known.bad.is_empty() {
            self.notice(ServerNotice::BadTools { server: server.clone(), names: known.bad.clone() });
        }
    }

    /// Names the paths of the entry that its program does not reach, before its first start.
    fn tell_paths(&self) {
        if std::mem::replace(&mut self.state().are_paths_told, true) {
            return;
        }
        let server = &self.config().name;
        for (path, why) in self.connector.launch.refused(self.config()) {
            self.notice(ServerNotice::Refused { server: server.clone(), path, why });
        }
    }
}
