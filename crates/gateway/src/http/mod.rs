//! The team over HTTP, for browsers and programs.
//!
//! It is [`TeamHandle`] behind a wire: commands, queries and the stream, with readable routes for the most common of them. A visitor is a
//! [`Principal`](max_team_core::message::Principal) whose role follows from a token; the runtime alone compares it with what a command
//! needs. Sessions that the server opens live on without a client, and go on when the server is started again.

mod access;
mod assets;
mod body;
mod command_schemas;
mod completion;
mod connection;
mod error;
mod events;
mod extract;
mod files;
mod folder_routes;
mod forks;
mod handovers;
mod hub;
mod inbox;
mod keys;
mod memory_routes;
mod metrics;
mod openapi;
mod plans;
mod prompt;
mod rate;
mod routes;
pub mod running;
mod schemas;
mod session_routes;
mod sessions;
mod team;
pub mod tokens;
mod watcher;
mod worktree_routes;
mod ws;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use max_team_core::limits::{WEB_FILES_AT_ONCE_MAX, WEB_WATCHERS_MAX};
use max_team_runtime::{Notice, RuntimeError, TeamHandle};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use access::AllowedHosts;
use connection::Acceptor;
pub use connection::TlsError;
use hub::Hub;
use keys::KeptAnswers;
use metrics::Metrics;
use rate::RateLimit;
use sessions::OpenSessions;
pub use sessions::{NewProject, SessionSource};
use tokens::TokenStore;

/// The name of this way in, in principals and answers.
const WEB_DOOR: &str = "web";

/// The address to listen on, and how it is reached.
#[derive(Debug, Clone, Default)]
pub struct WebOptions {
    /// The address or name to bind.
    pub host: String,
    /// The port; 0 for a free one.
    pub port: u16,
    /// Certificate chain and key, as PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The address under which browsers reach the server, if not its own.
    pub public_url: Option<String>,
    /// Whether a proxy ends TLS and passes requests on.
    pub is_behind_proxy: bool,
}

/// What visitors are told about the server.
#[derive(Debug, Clone, Serialize)]
pub struct AboutServer {
    /// The user that runs it.
    pub user: String,
    /// The folder that the team works in.
    pub folder: String,
    /// `en` or `zh`.
    pub language: &'static str,
    /// The recorded demo that is played, if one is.
    pub demo: Option<DemoPrompt>,
}

/// A recorded demo.
#[derive(Debug, Clone, Serialize)]
pub struct DemoPrompt {
    pub name: String,
    /// The message that the recording answers.
    pub prompt: String,
}

/// A web server that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address cannot be used.
    #[error("cannot listen on `{host}:{port}`: {error}")]
    Bind {
        host: String,
        port: u16,
        /// The reason of the system.
        error: std::io::Error,
    },
    /// Certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address is no loopback address, and nothing protects the connection.
    #[error("`{0}` can be reached from other machines, and the connection is not protected")]
    Exposed(String),
    /// Another process serves the folder.
    #[error("process {pid} serves `{folder}` already")]
    Served { folder: String, pid: u32 },
    /// The journal cannot be followed.
    #[error(transparent)]
    Team(#[from] RuntimeError),
}

/// What all requests share.
pub(crate) struct Web {
    team: TeamHandle,
    sessions: OpenSessions,
    tokens: TokenStore,
    hub: Arc<Hub>,
    hosts: AllowedHosts,
    requests: RateLimit,
    logins: RateLimit,
    watchers: Arc<Semaphore>,
    /// What writes with an idempotency key were answered.
    keys: Arc<KeptAnswers>,
    /// Permits for uploads and downloads: their bytes are held in memory.
    files: Arc<Semaphore>,
    metrics: Metrics,
    about: AboutServer,
    port: u16,
    url: String,
    /// Cancelled when the server ends: streams end, so that clients connect again.
    closing: CancellationToken,
}

/// A server that listens.
pub struct WebServer {
    listener: TcpListener,
    acceptor: Acceptor,
    web: Arc<Web>,
    notices: mpsc::Receiver<Notice>,
}

impl std::fmt::Debug for WebServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebServer").field("url", &self.web.url).finish_non_exhaustive()
    }
}

impl WebServer {
    /// Listens. `home` is the user's folder, which holds the tokens.
    pub async fn bind(
        team: TeamHandle,
        source: SessionSource,
        home: PathBuf,
        about: AboutServer,
        options: WebOptions,
    ) -> Result<Self, WebError> {
        let WebOptions { host, port, tls, public_url, is_behind_proxy } = options;
        let unusable = |error| WebError::Bind { host: host.clone(), port, error };
        let acceptor = Acceptor::new(tls.as_ref())?;
        let listener = TcpListener::bind((host.as_str(), port)).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        if !address.ip().is_loopback() && tls.is_none() && !is_behind_proxy {
            return Err(WebError::Exposed(address.to_string()));
        }
        let names: Vec<String> = public_url.iter().filter_map(|url| host_of(url)).chain([host]).collect();
        let is_secure = tls.is_some() || public_url.as_ref().is_some_and(|url| url.starts_with("https://"));
        let notices = team.watch();
        // Without it, answers of other processes come whole.
        drop(team.hear_others());
        let sessions = OpenSessions::new(team.clone(), source, &home);
        // Before the address is printed: from then on a session can be handed over.
        match sessions.serve_folder(&about.user).await {
            Err(RuntimeError::OwnedElsewhere { by, .. }) => {
                return Err(WebError::Served { folder: about.folder, pid: by.pid });
            }
            served => served?,
        }
        let web = Web {
            keys: KeptAnswers::new(&home, sessions.source().root()),
            sessions,
            tokens: TokenStore::new(&home),
            hub: Hub::start(&team).await?,
            hosts: AllowedHosts::new(&names, address.ip().is_unspecified(), is_secure),
            requests: RateLimit::of_requests(),
            logins: RateLimit::of_logins(),
            watchers: Arc::new(Semaphore::new(WEB_WATCHERS_MAX)),
            files: Arc::new(Semaphore::new(WEB_FILES_AT_ONCE_MAX)),
            metrics: Metrics::default(),
            port: address.port(),
            url: public_url.unwrap_or_else(|| own_url(address, tls.is_some())),
            closing: CancellationToken::new(),
            team,
            about,
        };
        Ok(Self { listener, acceptor, web: Arc::new(web), notices })
    }

    /// The address for browsers.
    pub fn url(&self) -> &str {
        &self.web.url
    }

    pub fn port(&self) -> u16 {
        self.web.port
    }

    /// A link that logs one browser in, once.
    pub fn login_link(&self) -> Result<String, std::io::Error> {
        login_link(&self.web.tokens, self.url())
    }

    /// Serves until `shutdown`. Sessions with unfinished work that an earlier process had open here go on.
    pub async fn run(self, shutdown: &CancellationToken) {
        let Self { listener, acceptor, web, notices } = self;
        let router = routes::router(&web);
        let follow = web.sessions.follow(notices);
        let resume = async {
            web.sessions.resume(&web.about.user).await;
            web.sessions.take_handovers(&web.about.user).await;
            std::future::pending::<()>().await;
        };
        let serve = connection::serve(&listener, &acceptor, router, shutdown);
        tokio::select! {
            () = serve => {}
            () = follow => {}
            () = resume => {}
            () = web.hub.run() => {}
        }
        web.closing.cancel();
    }
}

/// A link to a server's login page, with a code that works once.
pub fn login_link(tokens: &TokenStore, url: &str) -> Result<String, std::io::Error> {
    let code = tokens.login_code(max_team_runtime::now_ms())?;
    Ok(format!("{url}/login#{code}"))
}

fn own_url(address: SocketAddr, is_tls: bool) -> String {
    format!("{}://{address}", if is_tls { "https" } else { "http" })
}

/// The host of an address, without port and path.
fn host_of(url: &str) -> Option<String> {
    let uri: http::Uri = url.parse().ok()?;
    uri.host().map(str::to_lowercase)
}
