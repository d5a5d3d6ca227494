//! Streamable HTTP at `/mcp`.
//!
//! Web pages must not reach the server through the user's browser: requests with an `Origin` that is not allowed, or with another
//! `Host`, are refused. On an address that other machines can reach, every request needs the bearer token.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use max_team_core::limits::{MCP_CONNECTIONS_MAX, MCP_HTTP_SESSION_IDLE_MS, MCP_HTTP_SESSIONS_MAX};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::secret::{is_equal, new_secret};

/// The only path that is served.
const PATH: &str = "/mcp";
/// How long a client may take to send the head of a request.
const HEAD_WAIT: Duration = Duration::from_secs(30);
/// How long to wait after a connection could not be accepted, such as when no file can be opened.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// The address to listen on, and the requests that are accepted there.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The address or name to bind.
    pub host: String,
    /// The port; 0 for a free one.
    pub port: u16,
    /// The bearer token that every request must carry. Without one, it is generated where other machines can reach the server.
    pub token: Option<String>,
    /// Origins of web pages that may send requests.
    pub origins: Vec<String>,
}

/// A server that cannot be started or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used.
    #[error("cannot listen on `{address}`: {error}")]
    Bind {
        address: String,
        /// The reason of the system.
        error: std::io::Error,
    },
    /// There is no randomness for a token.
    #[error("no token can be made: {0}; name a file with --token-file")]
    Token(std::io::Error),
    /// The connection to the client failed.
    #[error("the connection failed: {0}")]
    Transport(String),
}

/// A server that listens; `H` answers the protocol's requests.
pub struct HttpServer<H> {
    listener: TcpListener,
    address: SocketAddr,
    generated: Option<String>,
    front: Arc<Front<H>>,
    stop: CancellationToken,
}

impl<H> std::fmt::Debug for HttpServer<H> {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Checks requests before the protocol sees them.
struct Front<H> {
    token: Option<String>,
    sessions: Arc<LocalSessionManager>,
    service: StreamableHttpService<H, LocalSessionManager>,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

impl<H: ServerHandler + Clone> HttpServer<H> {
    pub async fn bind(server: H, options: HttpOptions) -> Result<Self, ServeError> {
        let HttpOptions { host, port, token, origins } = options;
        let unusable = |error| ServeError::Bind { address: format!("{host}:{port}"), error };
        let listener = TcpListener::bind((host.as_str(), port)).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let is_local = address.ip().is_loopback();
        let generated = (token.is_none() && !is_local).then(new_secret).transpose().map_err(ServeError::Token)?;
        let stop = CancellationToken::new();
        let config = StreamableHttpServerConfig::default()
            .with_cancellation_token(stop.clone())
            .with_allowed_origins(origins)
            .enforce_origin_validation();
        let config = match (is_local, address.ip().is_unspecified()) {
            (true, _) => config,
            // Clients use any name of this machine; the token, which a web page does not know, keeps others out.
            (false, true) => config.disable_allowed_hosts(),
            (false, false) => {
                let hosts = config.allowed_hosts.clone().into_iter().chain([host, address.ip().to_string()]);
                config.clone().with_allowed_hosts(hosts)
            }
        };
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(Duration::from_millis(MCP_HTTP_SESSION_IDLE_MS));
        let sessions = Arc::new(sessions);
        let service = StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(&sessions), config);
        let front = Arc::new(Front { token: token.or_else(|| generated.clone()), sessions, service });
        Ok(Self { listener, address, generated, front, stop })
    }

    /// The address of the server, for clients on this machine.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// The token that was generated, if one was needed and none was given.
    pub fn generated_token(&self) -> Option<&str> {
        self.generated.as_deref()
    }

    /// Serves until `shutdown`.
    pub async fn run(self, shutdown: &CancellationToken) {
        let places = Arc::new(Semaphore::new(MCP_CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.listener, &places) => accepted,
                () = shutdown.cancelled() => break,
            };
            while connections.try_join_next().is_some() {}
            let Some((stream, place)) = accepted else { continue };
            let front = Arc::clone(&self.front);
            connections.spawn(async move {
                serve(stream, front).await;
                drop(place);
            });
        }
        self.stop.cancel();
        connections.shutdown().await;
    }
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(_) => {
            tokio::time::sleep(ACCEPT_RETRY).await;
            None
        }
    }
}

async fn serve<H: ServerHandler>(stream: TcpStream, front: Arc<Front<H>>) {
    let answer = service_fn(move |request| {
        let front = Arc::clone(&front);
        async move { Ok::<_, Infallible>(front.answer(request).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT);
    // A connection that breaks concerns its client alone.
    drop(server.serve_connection(TokioIo::new(stream), answer).await);
}

impl<H: ServerHandler> Front<H> {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        if request.uri().path().trim_end_matches('/') != PATH {
            return refuse(StatusCode::NOT_FOUND, "the server is at /mcp");
        }
        if !self.is_allowed(&request) {
            let mut answer = refuse(StatusCode::UNAUTHORIZED, "send `Authorization: Bearer TOKEN`");
            answer.headers_mut().insert(WWW_AUTHENTICATE, http::HeaderValue::from_static("Bearer"));
            return answer;
        }
        let is_first = request.method() == Method::POST && !request.headers().contains_key("mcp-session-id");
        if is_first && self.sessions.sessions.read().await.len() >= MCP_HTTP_SESSIONS_MAX {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many sessions: try again later");
        }
        self.service.handle(request).await
    }

    fn is_allowed(&self, request: &Request<Incoming>) -> bool {
        let Some(token) = &self.token else { return true };
        let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given =
            given.and_then(|value| value.split_once(' ')).filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        given.is_some_and(|(_, given)| is_equal(given.trim().as_bytes(), token.as_bytes()))
    }
}

fn refuse(status: StatusCode, words: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(words.as_bytes())).boxed());
    *answer.status_mut() = status;
    answer
}
