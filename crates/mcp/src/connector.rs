//! Connects to a server over its standard input, streamable HTTP or the older event stream.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use max_team_core::mcp::{HttpTransport, McpServer};
use max_team_tools::command::MovedFiles;
use rmcp::service::ClientInitializeError;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::connection::{Client, Connection, McpError};
use crate::http;
use crate::http_client::HttpClient;
use crate::http_fault::{self, HttpFault};
use crate::known_tools::Era;
use crate::log::Log;
use crate::login::{Login, LoginFile};
use crate::oauth_http::LoginClient;
use crate::process::{ExitReason, Launch, ProcessTransport};
use crate::server_end::ServerEnd;
use crate::sse::SseTransport;

/// How long `rmcp` waits for an answer to `server/discover` before it tries `initialize`.
const PROBE: Duration = Duration::from_secs(10);

/// What is needed to reach a server.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) server: McpServer,
    pub(crate) launch: Launch,
    pub(crate) log: Arc<Log>,
    /// Told when the server says that its tools have changed.
    pub(crate) changed: Arc<Notify>,
    /// More certificates to trust.
    pub(crate) cert_file: Option<PathBuf>,
    /// Protected files that the server's program made and that were moved away.
    pub(crate) moved: Arc<MovedFiles>,
}

impl Connector {
    /// Starts or reaches the server and agrees with it on the protocol.
    pub(crate) async fn connect(&self, era: Option<Era>) -> Result<(Connection, ExitReason), McpError> {
        // A program of the older protocol may leave the question unanswered; over HTTP it is always answered.
        let probe = if era.is_none() && self.server.is_local() { PROBE } else { Duration::ZERO };
        let limit = Duration::from_millis(self.server.connect_ms()) + probe;
        match timeout(limit, self.reach(era)).await {
            Ok(reached) => reached,
            Err(_) => Err(McpError::Timeout(limit)),
        }
    }

    async fn reach(&self, era: Option<Era>) -> Result<(Connection, ExitReason), McpError> {
        if self.server.is_local() {
            return match self.start(era).await {
                // Some servers of the older protocol end when they are asked for the newer one.
                Err(first) if era.is_none() => self.start(Some(Era::Initialize)).await.map_err(|_| first),
                started => started,
            };
        }
        let connect = Duration::from_millis(self.server.connect_ms());
        let client = http::client(self.cert_file.as_deref(), connect).map_err(McpError::Connect)?;
        let ended = ExitReason::default();
        let logins = LoginClient::new(self.cert_file.as_deref()).map_err(McpError::Connect)?;
        let login = Login::new(&self.launch.home, &self.server, Arc::new(logins));
        let client = HttpClient::new(client, login, ended.clone());
        let first = match self.server.transport {
            HttpTransport::Sse => return self.by_events(client, ended).await,
            HttpTransport::Http | HttpTransport::Either => {
                let opened = match self.by_messages(&client, era).await {
                    // Some servers of the older protocol answer any question, also that for the newer one.
                    Err(McpError::Connect(_) | McpError::Gone(_) | McpError::Http(HttpFault::Content))
                        if era.is_none() =>
                    {
                        self.by_messages(&client, Some(Era::Initialize)).await
                    }
                    opened => opened,
                };
                match opened {
                    Ok(connection) => return Ok((connection, ended)),
                    Err(error) => error,
                }
            }
        };
        // Only a server that is there and does not know this way may know the older one.
        let may_be_older = match &first {
            McpError::Http(fault) => matches!(fault, HttpFault::NotFound(_) | HttpFault::Status(_)),
            McpError::Connect(_) | McpError::Answer(_) => true,
            McpError::Login(_)
            | McpError::LoginEnded(_)
            | McpError::Timeout(_)
            | McpError::Changed
            | McpError::Gone(_) => false,
        };
        if self.server.transport == HttpTransport::Http || !may_be_older {
            return Err(first);
        }
        self.by_events(client, ended).await.map_err(|_| first)
    }

    /// Starts the program of a local server.
    async fn start(&self, era: Option<Era>) -> Result<(Connection, ExitReason), McpError> {
        let started =
            ProcessTransport::start(&self.launch, &self.server, Arc::clone(&self.log), Arc::clone(&self.moved));
        let (transport, reason) = started.map_err(McpError::Connect)?;
        match Connection::open(transport, era, self.client()).await {
            Ok(connection) => Ok((connection, reason)),
            Err(error) => Err(self.failed(&error, reason.get())),
        }
    }

    /// By streamable HTTP.
    async fn by_messages(&self, client: &HttpClient, era: Option<Era>) -> Result<Connection, McpError> {
        let transport = http::transport(client.clone(), &self.server).map_err(McpError::Connect)?;
        Connection::open(transport, era, self.client()).await.map_err(|error| self.failed(&error, None))
    }

    /// By the older event stream, which knows only the older protocol.
    async fn by_events(&self, client: HttpClient, ended: ExitReason) -> Result<(Connection, ExitReason), McpError> {
        let headers = http::headers(&self.server).map_err(McpError::Connect)?;
        let opened = SseTransport::open(client, &self.server.url, headers).await;
        let transport = opened.map_err(|error| self.with_server_name(error))?;
        let opened = Connection::open(transport, Some(Era::Initialize), self.client()).await;
        let reason = ended.get();
        opened.map(|connection| (connection, ended)).map_err(|error| self.failed(&error, reason))
    }

    fn client(&self) -> Client {
        Client::new(self.launch.root.clone(), Arc::clone(&self.changed))
    }

    /// Adds the server's name to errors about its login.
    pub(crate) fn with_server_name(&self, error: McpError) -> McpError {
        match error {
            McpError::Http(HttpFault::Login)
                if self.server.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) =>
            {
                McpError::Http(HttpFault::Token)
            }
            McpError::Http(HttpFault::Login) => {
                LoginFile::new(&self.launch.home, &self.server).mark(true);
                McpError::Login(self.server.name.clone())
            }
            McpError::Http(HttpFault::LoginEnded) => McpError::LoginEnded(self.server.name.clone()),
            other => other,
        }
    }

    fn failed(&self, error: &ClientInitializeError, ended: Option<ServerEnd>) -> McpError {
        if let Some(end) = ended {
            return McpError::Gone(end);
        }
        let said = match error {
            ClientInitializeError::ConnectionClosed(_) => return McpError::Gone(ServerEnd::Closed),
            ClientInitializeError::JsonRpcError(said) => {
                return McpError::Answer(crate::clean::text(&said.message, 400));
            }
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return self.failed(fallback, None),
            ClientInitializeError::TransportError { error, .. } => match http_fault::behind(&*error.error) {
                Some(fault) => return self.with_server_name(McpError::Http(fault)),
                None => innermost(&*error.error),
            },
            other => other.to_string(),
        };
        McpError::Connect(crate::clean::text(&said, 400))
    }
}

/// The reason behind all other reasons.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.last().map(ToString::to_string).unwrap_or_default()
}
