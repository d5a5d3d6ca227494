//! The sessions that the server runs: opened by a message, kept open without a client, and opened again after a restart.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::channel::{ChatAddress, WEB};
use max_team_core::event::LaunchFlags;
use max_team_core::id::SessionId;
use max_team_core::limits::CHATS_OPEN_MAX;
use max_team_core::message::{Principal, Role};
use max_team_runtime::maintenance::Storage;
use max_team_runtime::{Notice, OpenOptions, RuntimeError, SessionRow, TeamHandle, Which, query};
use max_team_workspace::exit::CliError;
use max_team_workspace::fork::project_of;
use max_team_workspace::models::{self, ChosenModel};
use max_team_workspace::open::Workspace;
use max_team_workspace::permissions::SearchService;
use max_team_workspace::selection::Selection;
use max_team_workspace::setup::{self, AppEnv};
use max_team_workspace::team::LeadKind;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};

use super::WEB_DOOR;
use super::error::ApiError;
use crate::gateway::{close_idle, is_busy};

/// The account of the sessions that pages begin.
const ACCOUNT: &str = "local";

/// Where new sessions get their team from.
#[derive(Debug)]
pub enum SessionSource {
    /// The settings and definitions of a folder, read for each session.
    Folder {
        place: Box<AppEnv>,
        selection: Box<Selection>,
        root: PathBuf,
        /// The model that the runtime was started with; its provider may be set up later.
        chosen: Arc<ChosenModel>,
        /// The storage that the runtime was started on.
        storage: Storage,
    },
    /// A recorded demo. The recording begins in its own project, so each session gets one.
    Recorded { open: Box<OpenOptions>, root: PathBuf, lay_out: NewProject },
}

/// Lays out another project for a recorded session.
pub struct NewProject(Box<dyn Fn() -> Result<PathBuf, CliError> + Send + Sync>);

impl NewProject {
    pub fn new(lay_out: impl Fn() -> Result<PathBuf, CliError> + Send + Sync + 'static) -> Self {
        Self(Box::new(lay_out))
    }
}

impl std::fmt::Debug for NewProject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NewProject").finish()
    }
}

impl SessionSource {
    pub(crate) fn root(&self) -> &Path {
        match self {
            Self::Folder { root, .. } | Self::Recorded { root, .. } => root,
        }
    }

    /// The service with which new sessions search the web.
    pub(crate) fn search_service(&self) -> Result<SearchService, ApiError> {
        let Self::Folder { place, selection, .. } = self else { return Ok(SearchService::default()) };
        let config = place.settings(selection.config.as_deref(), Vec::new());
        let services = config.and_then(|config| setup::services(place, &config));
        services.map(|services| services.search).map_err(ApiError::from)
    }

    /// Why no message can be answered, if none can.
    pub fn problem(&self) -> Option<String> {
        let Self::Folder { place, selection, chosen, .. } = self else { return None };
        if !chosen.is_pending() {
            return None;
        }
        let config = place.settings(selection.config.as_deref(), Vec::new());
        let stop = config.and_then(|config| models::choose(&config, place)).err()?;
        Some(stop.words(place.speaks()).to_owned())
    }

    /// Whether this server can run a session of this folder: the project's own, or a worktree of it.
    pub(crate) fn has(&self, cwd: &str) -> bool {
        let cwd = Path::new(cwd);
        match self {
            Self::Folder { root, place, .. } => {
                root == cwd || project_of(&place.home, cwd).is_some_and(|project| project == *root)
            }
            Self::Recorded { root, .. } => root.parent() == cwd.parent(),
        }
    }

    /// The folder for a new session.
    fn new_root(&self, has_sessions: bool) -> Result<PathBuf, ApiError> {
        match self {
            Self::Recorded { lay_out, .. } if has_sessions => Ok(lay_out.0()?),
            Self::Folder { root, .. } | Self::Recorded { root, .. } => Ok(root.clone()),
        }
    }

    /// The request that opens a session in a folder; `choice` names its lead and team.
    pub(crate) fn request(&self, which: Which, choice: &LaunchFlags, root: &Path) -> Result<OpenOptions, ApiError> {
        match self {
            Self::Recorded { open, .. } => Ok(OpenOptions { which, ..(**open).clone() }),
            Self::Folder { place, selection, chosen, .. } => {
                let LaunchFlags { agents, agent, solo, coordinator } = choice.clone();
                let mut selection = (**selection).clone();
                selection.agents = agents.map(PathBuf::from).or(selection.agents);
                selection.agent = agent.or(selection.agent);
                selection.solo |= solo;
                selection.coordinator |= coordinator;
                // Changed definitions are told to one session, so each reads its own.
                let workspace = LeadKind::read(&selection, place)
                    .and_then(|who| Workspace::read_in(place, &selection, Vec::new(), who, |_| Ok(root.to_path_buf())));
                let workspace = workspace.map_err(ApiError::from)?;
                chosen.set_up(&workspace.chosen);
                Ok(OpenOptions { choice: selection.choice(place), ..workspace.request(which) })
            }
        }
    }
}

/// The sessions that are open in this server.
#[derive(Debug)]
pub(crate) struct OpenSessions {
    pub(crate) team: TeamHandle,
    pub(crate) source: Arc<SessionSource>,
    /// The file that lists them, by folder, for the next process.
    register: PathBuf,
    /// Least recently used first. The lock is held while one is opened, so that two requests open it once.
    pub(crate) open: Mutex<VecDeque<SessionId>>,
    /// Held while a fork is made, which takes longer than opening a session.
    pub(crate) forking: Mutex<()>,
}

impl OpenSessions {
    pub(crate) fn new(team: TeamHandle, source: SessionSource, home: &Path) -> Self {
        let register = home.join("serve").join("sessions.json");
        Self { team, source: Arc::new(source), register, open: Mutex::default(), forking: Mutex::default() }
    }

    pub(crate) fn team(&self) -> &TeamHandle {
        &self.team
    }

    pub(crate) fn source(&self) -> &SessionSource {
        &self.source
    }

    /// The sessions that are open here.
    pub(crate) async fn list(&self) -> Vec<SessionId> {
        self.open.lock().await.iter().copied().collect()
    }

    /// Begins a conversation, or finds the one that the same key has begun.
    pub(crate) async fn create(
        &self,
        by: &Principal,
        name: &str,
        choice: &LaunchFlags,
        is_unattended: bool,
    ) -> Result<SessionId, ApiError> {
        let (chat, account) = Self::chat(by, name)?;
        let mut open = self.open.lock().await;
        if let Some(session) = self.of_chat(&chat, account).await? {
            self.open_known(&mut open, session, by).await?;
            return Ok(session);
        }
        let has_sessions = !self.team.ask(query::Sessions { limit: 1 }).await?.is_empty();
        let root = self.source.new_root(has_sessions)?;
        let request = self.source.request(Which::Chat(chat), choice, &root)?;
        let request = OpenOptions { unattended: is_unattended, ..request };
        self.begin(&mut open, &root, request, by).await
    }

    /// The chat that a visitor begins under a name, and its account.
    pub(crate) fn chat(by: &Principal, name: &str) -> Result<(ChatAddress, String), ApiError> {
        let account = if by.user.starts_with(WEB_DOOR) { plain(&by.user) } else { ACCOUNT.to_owned() };
        let chat = ChatAddress::new(WEB, &account, name).map_err(|error| ApiError::bad_request(error.to_string()))?;
        Ok((chat, account))
    }

    /// The session of a chat, if it has one.
    pub(crate) async fn of_chat(&self, chat: &ChatAddress, account: String) -> Result<Option<SessionId>, ApiError> {
        let chats = self.team.ask(query::Chats { channel: WEB.to_owned(), account }).await?;
        Ok(chats.into_iter().find(|row| row.chat.as_ref() == Some(chat)).map(|row| row.session))
    }

    /// Makes sure that some process runs a session: this one, unless another does.
    pub(crate) async fn ensure(&self, session: SessionId, by: &Principal) -> Result<(), ApiError> {
        self.open_known(&mut *self.open.lock().await, session, by).await
    }

    async fn open_known(
        &self,
        open: &mut VecDeque<SessionId>,
        session: SessionId,
        by: &Principal,
    ) -> Result<(), ApiError> {
        if let Some(at) = open.iter().position(|other| *other == session) {
            let known = open.remove(at);
            open.extend(known);
            return Ok(());
        }
        if self.team.ask(query::Owner { session }).await?.is_some() {
            return Ok(());
        }
        let choice = self.team.ask(query::SessionChoice { session }).await?;
        let row = self.team.ask(query::Session { session }).await?;
        let root = if self.source.has(&row.cwd) { PathBuf::from(row.cwd) } else { self.source.root().to_owned() };
        let request = self.source.request(Which::Id(session), &choice, &root)?;
        self.begin(open, &root, request, by).await.map(drop)
    }

    pub(crate) async fn begin(
        &self,
        open: &mut VecDeque<SessionId>,
        root: &Path,
        request: OpenOptions,
        by: &Principal,
    ) -> Result<SessionId, ApiError> {
        if !close_idle(&self.team, open, CHATS_OPEN_MAX, |session| *session).await? {
            let words = format!("{CHATS_OPEN_MAX} sessions are at work, which is the limit: try again later");
            return Err(ApiError::unavailable(words));
        }
        let which = request.which.clone();
        let session = match (self.team.open(by.clone(), root, request).await, which) {
            (Ok(opened), _) => opened.session,
            // Another process was faster: its messages travel through the journal.
            (Err(RuntimeError::OwnedElsewhere { .. }), Which::Id(session)) => return Ok(session),
            (Err(error), _) => return Err(error.into()),
        };
        open.push_back(session);
        self.remember(open);
        Ok(session)
    }

    /// Writes the list of open sessions down. Without the file a restarted server opens a session when a message comes for it.
    fn remember(&self, open: &VecDeque<SessionId>) {
        let mut folders = self.registered();
        folders.insert(self.source.root().display().to_string(), open.iter().copied().collect());
        let folder = self.register.parent().unwrap_or(Path::new("."));
        let written = std::fs::create_dir_all(folder).and_then(|()| {
            let new = self.register.with_extension("new");
            std::fs::write(&new, serde_json::to_vec(&folders)?)?;
            std::fs::rename(new, &self.register)
        });
        drop(written);
    }

    fn registered(&self) -> BTreeMap<String, Vec<SessionId>> {
        let text = std::fs::read(&self.register).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Opens the sessions with unfinished work that the last process had open in this folder.
    pub(crate) async fn resume(&self, user: &str) {
        let by = Principal { door: WEB_DOOR.to_owned(), user: user.to_owned(), role: Role::Owner };
        let sessions = self.registered().remove(&self.source.root().display().to_string()).unwrap_or_default();
        for session in sessions {
            let row = self.team.ask(query::Session { session }).await;
            let is_unfinished = match row {
                Ok(row) => !row.answered || is_busy(&self.team, session).await.unwrap_or(false),
                Err(_) => false,
            };
            if is_unfinished {
                // One that cannot be opened stays closed; the message that opens it tells why.
                drop(self.ensure(session, &by).await);
            }
        }
    }

    /// Heeds what becomes of open sessions.
    pub(crate) async fn follow(&self, mut notices: mpsc::Receiver<Notice>) {
        loop {
            match notices.recv().await {
                Some(Notice::Stopped { error, .. }) if matches!(*error, RuntimeError::Behind(_)) => {
                    notices = self.team.watch();
                    self.close_dead().await;
                }
                // The next message opens the session again, and it goes on from the journal.
                Some(Notice::Stopped { session, whole: true, .. }) => self.close(session).await,
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Closes the sessions whose lead no longer runs; called after notices were missed.
    async fn close_dead(&self) {
        for session in self.list().await {
            if self.team.ask(query::Details { session }).await.is_err() {
                self.close(session).await;
            }
        }
    }

    async fn close(&self, session: SessionId) {
        let mut open = self.open.lock().await;
        self.team.close(session).await;
        open.retain(|other| *other != session);
    }

    /// A row of the list of sessions, with the process that runs it.
    pub(crate) async fn row(&self, row: &SessionRow, here: &[SessionId]) -> Result<Value, ApiError> {
        let open = match here.contains(&row.session) {
            true => Some("here"),
            false => self.team.ask(query::Owner { session: row.session }).await?.map(|_| "elsewhere"),
        };
        let mut value = serde_json::to_value(row).map_err(|error| ApiError::internal(error.to_string()))?;
        if let Value::Object(value) = &mut value {
            value.insert("open".to_owned(), json!(open));
            value.insert("continuable".to_owned(), json!(self.source.has(&row.cwd)));
        }
        Ok(value)
    }
}

/// A name that can be the account of a chat.
fn plain(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    name.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).take(64).collect()
}
