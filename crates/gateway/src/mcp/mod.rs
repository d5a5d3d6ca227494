//! The team as an MCP server: other programs ask it, read its work, and follow plans that the user has approved.
//!
//! A client is a principal of its own (`mcp:<client name>`, a member) with its own sessions (the chats `mcp:<client name>/<folder>`).
//! It never answers a question or approves a plan: these wait in the user's inbox. The server starts without a model's key; the
//! runtime is started by the first call that needs it.

mod answer;
mod caller;
mod handler;
mod http;
mod plans;
mod progress;
mod read;
mod result;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use max_team_core::limits::MCP_CALLS_MAX;
use max_team_runtime::maintenance::Storage;
use max_team_runtime::{RuntimeError, TeamReader};
use max_team_workspace::exit::CliError;
use max_team_workspace::i18n::Lang;
use max_team_workspace::open::Workspace;
use max_team_workspace::selection::Selection;
use max_team_workspace::setup::{self, AppEnv};
use rmcp::ServiceExt as _;
use rmcp::task_manager::TaskManager;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
pub use http::{HttpOptions, HttpServer, ServeError};

/// The team of one folder, as MCP clients reach it. A clone is the same server.
#[derive(Clone)]
pub struct McpServer {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("root", &self.shared.root).finish_non_exhaustive()
    }
}

struct Shared {
    place: AppEnv,
    selection: Selection,
    /// The folder that the team works in.
    root: PathBuf,
    lang: Lang,
    /// Answers from the journal, without a running team.
    reader: TeamReader,
    team: Mutex<TeamState>,
    /// Calls that wait for the team.
    calls: Semaphore,
    tasks: TaskManager,
    /// Cancelled when the server ends, so that calls leave their work to the next process instead of stopping it.
    closing: CancellationToken,
}

enum TeamState {
    /// No call has needed the runtime yet. The storage is gone if a start has failed.
    NotStarted(Option<Storage>),
    Running {
        gateway: Arc<Gateway>,
        follower: AbortHandle,
    },
}

impl McpServer {
    /// Reads the settings of a folder and opens the journal. Neither a key nor a model is needed yet.
    pub fn open(place: AppEnv, selection: Selection) -> Result<Self, CliError> {
        let config = place.settings(selection.config.as_deref(), Vec::new())?;
        config.warnings.iter().for_each(|warning| place.tell(warning));
        let root = setup::project_root(&place, &config)?;
        let lang = place.lang(&config);
        let storage = place.begin(&config)?;
        let reader = storage.reader();
        let shared = Shared {
            place,
            selection,
            root,
            lang,
            reader,
            team: Mutex::new(TeamState::NotStarted(Some(storage))),
            calls: Semaphore::new(MCP_CALLS_MAX),
            tasks: TaskManager::new(),
            closing: CancellationToken::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Serves one client over standard input and output, until it hangs up or `shutdown`.
    pub async fn serve_stdio(&self, shutdown: &CancellationToken) -> Result<(), ServeError> {
        let transport = rmcp::transport::stdio_pipes();
        let running = tokio::select! {
            running = self.clone().serve_with_ct(transport, shutdown.child_token()) => running,
            () = shutdown.cancelled() => return Ok(()),
        };
        // A client that leaves before it has said anything is no failure.
        let Ok(running) = running else { return Ok(()) };
        running.waiting().await.map(drop).map_err(|error| ServeError::Transport(error.to_string()))
    }

    /// Ends the work of this process: open sessions are parked, and go on when they are opened again.
    pub async fn close(&self) -> Result<(), RuntimeError> {
        self.shared.closing.cancel();
        self.shared.tasks.shutdown();
        match &*self.shared.team.lock().await {
            TeamState::NotStarted(_) => Ok(()),
            TeamState::Running { gateway, follower } => {
                follower.abort();
                gateway.team().shutdown().await
            }
        }
    }

    /// The sessions of clients; starts the runtime if no call has needed it before. Settings and keys are read then, so that a key
    /// that was missing at the start can be added without a restart.
    async fn gateway(&self) -> Result<Arc<Gateway>, CliError> {
        let mut team = self.shared.team.lock().await;
        let storage = match &mut *team {
            TeamState::Running { gateway, .. } => return Ok(Arc::clone(gateway)),
            TeamState::NotStarted(storage) => storage,
        };
        let Shared { place, selection, .. } = &*self.shared;
        let workspace = Workspace::read(place, selection, Vec::new())?;
        workspace.require_model(place)?;
        let storage = match storage.take() {
            Some(storage) => storage,
            None => place.begin(&workspace.config)?,
        };
        let handle = workspace.start(place, storage, "an MCP server", false)?;
        let notices = handle.watch();
        let gateway = Arc::new(Gateway::new(handle, place.clone(), selection.clone()));
        let following = Arc::clone(&gateway);
        let follower = tokio::spawn(async move { following.follow(notices).await }).abort_handle();
        *team = TeamState::Running { gateway: Arc::clone(&gateway), follower };
        Ok(gateway)
    }
}
