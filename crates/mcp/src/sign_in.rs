//! Signing in at a server with a browser: the authorization-code flow with PKCE, answered on this machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use max_team_core::limits::MCP_LOGIN_MS;
use max_team_core::mcp::McpServer;
use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use rmcp::transport::auth::{AuthorizationMetadataSource, OAuthClientConfig};
use rmcp::transport::{AuthError, AuthorizationManager};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout, timeout_at};

use crate::clean;
use crate::http_fault::HttpFault;
use crate::login::LoginFile;
use crate::oauth_http::{LoginClient, is_safe};

/// The path that the browser comes back to.
const CALLBACK: &str = "/callback";
/// Bytes of the browser's request that are read.
const REQUEST_BYTES_MAX: usize = 16 << 10;
/// How long the browser may take to send its request.
const REQUEST_WAIT: Duration = Duration::from_secs(10);

/// Why the user could not sign in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// The server cannot be reached.
    #[error("{0}")]
    Http(#[from] HttpFault),
    /// The server names no place to sign in.
    #[error("it offers no login: give it a token with `--header`")]
    NotOffered,
    /// Its place to sign in would get codes and tokens unencrypted.
    #[error("its login is at an address that is not encrypted (`{0}`): it is not used")]
    Open(String),
    /// The place to sign in does not accept unknown programs.
    #[error(
        "its login accepts only known programs ({0}): register one there and put its `clientId` under `oauth` into the entry"
    )]
    Registration(String),
    /// The place that answered is not the one that was asked.
    #[error("the login was answered by another place than the one that was asked: it is refused")]
    Issuer,
    /// The user, or the place to sign in, said no.
    #[error("the login was refused: {0}")]
    Denied(String),
    /// There was no answer in time.
    #[error("the login was not finished within {} minutes", MCP_LOGIN_MS / 60_000)]
    Timeout,
    /// Another failure of the login.
    #[error("the login failed: {0}")]
    Failed(String),
}

impl From<AuthError> for SignInError {
    fn from(error: AuthError) -> Self {
        let words = |words: &str| clean::text(words, 200);
        match error {
            AuthError::AuthorizationServerMismatch { .. } | AuthError::AuthorizationServerMissingIssuer { .. } => {
                Self::Issuer
            }
            AuthError::RegistrationFailed(why) => Self::Registration(words(&why)),
            AuthError::NoAuthorizationSupport => Self::NotOffered,
            other => Self::Failed(words(&other.to_string())),
        }
    }
}

/// A login that waits for the user's browser.
pub struct SignIn {
    manager: AuthorizationManager,
    listener: TcpListener,
    url: String,
    /// The word that the browser must bring back.
    state: String,
}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignIn").finish_non_exhaustive()
    }
}

impl SignIn {
    /// Finds out where the user signs in, and makes the address to open.
    pub async fn begin(home: &Path, server: &McpServer, cert_file: Option<&Path>) -> Result<Self, SignInError> {
        let client = Arc::new(LoginClient::new(cert_file).map_err(SignInError::Failed)?);
        let challenge = challenge(client.plain(), server).await?;
        let mut manager = AuthorizationManager::new_with_oauth_http_client(server.url.as_str(), client).await?;
        let found = manager.resolve_metadata_from_challenge(challenge.as_deref()).await?;
        // Old servers do not say where: they are asked at the customary paths, but only if they ask for a login.
        if found.source == AuthorizationMetadataSource::LegacyEndpointFallback && challenge.is_none() {
            return Err(SignInError::NotOffered);
        }
        manager.set_metadata(found.metadata);
        let listener = TcpListener::bind(("127.0.0.1", server.oauth.callback_port.unwrap_or(0))).await;
        let listener = listener.map_err(|error| SignInError::Failed(error.to_string()))?;
        let port = listener.local_addr().map_err(|error| SignInError::Failed(error.to_string()))?.port();
        let redirect = format!("http://127.0.0.1:{port}{CALLBACK}");
        let scopes = match server.oauth.scopes.as_slice() {
            [] => manager.select_initial_scopes(&[]).await,
            own => own.to_vec(),
        };
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let secret = match &server.oauth.client_id {
            Some(id) => {
                let mut config = OAuthClientConfig::new(id, &redirect);
                config.client_secret.clone_from(&server.oauth.client_secret);
                manager.configure_client(config)?;
                server.oauth.client_secret.clone()
            }
            None => manager.register_client("Max Team", &redirect, &scopes).await?.client_secret,
        };
        manager.set_credential_store(LoginFile::new(home, server).with_secret(secret));
        let url = manager.get_authorization_url(&scopes).await?;
        let parsed = Url::parse(&url).map_err(|error| SignInError::Failed(error.to_string()))?;
        if !is_safe(&parsed) {
            return Err(SignInError::Open(clean::text(&parsed.origin().ascii_serialization(), 200)));
        }
        let state = parsed.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned());
        let state = state.ok_or(SignInError::NotOffered)?;
        Ok(Self { manager, listener, url, state })
    }

    /// The address that the user opens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits until the browser comes back, or the user gives the address that it ended at, and stores the login.
    pub async fn finish(self, pasted: impl Future<Output = String>) -> Result<(), SignInError> {
        let deadline = Instant::now() + Duration::from_millis(MCP_LOGIN_MS);
        tokio::pin!(pasted);
        let mut may_paste = true;
        loop {
            let answered = tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.hear(stream).await,
                    Err(_) => None,
                },
                line = &mut pasted, if may_paste => {
                    may_paste = false;
                    match self.answer(line.trim()) {
                        Some(answer) => Some(self.exchange(answer).await),
                        None => None,
                    }
                }
                () = tokio::time::sleep_until(deadline) => return Err(SignInError::Timeout),
            };
            if let Some(ended) = answered {
                return ended;
            }
        }
    }

    /// Answers one request of a browser; `None` if it is not the answer to this login.
    async fn hear(&self, mut stream: TcpStream) -> Option<Result<(), SignInError>> {
        let head = timeout(REQUEST_WAIT, head(&mut stream)).await.ok()??;
        let path = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let Some(answer) = self.answer(&format!("http://127.0.0.1{path}")) else {
            // Another page of the browser can reach this port: it neither ends nor fakes the login.
            reply(&mut stream, 400, "This is not the answer to the login that is under way. / 这不是当前登录的应答。")
                .await;
            return None;
        };
        let ended = match timeout_at(Instant::now() + REQUEST_WAIT * 3, self.exchange(answer)).await {
            Ok(ended) => ended,
            Err(_) => Err(SignInError::Timeout),
        };
        let (status, words) = match &ended {
            Ok(()) => (200, "You are signed in. You can close this page. / 登录成功，可以关闭此页。"),
            Err(_) => (400, "The login failed; the terminal says why. / 登录失败，原因见终端。"),
        };
        reply(&mut stream, status, words).await;
        Some(ended)
    }

    /// The parts of an address that the browser came back to, if it belongs to this login.
    fn answer(&self, url: &str) -> Option<Answer> {
        let url = Url::parse(url).ok().filter(|url| url.path() == CALLBACK)?;
        let part = |name: &str| url.query_pairs().find(|(own, _)| own == name).map(|(_, value)| value.into_owned());
        (part("state")? == self.state).then(|| Answer {
            code: part("code"),
            issuer: part("iss"),
            error: part("error_description").or_else(|| part("error")),
        })
    }

    async fn exchange(&self, answer: Answer) -> Result<(), SignInError> {
        let Some(code) = answer.code else {
            return Err(SignInError::Denied(clean::text(&answer.error.unwrap_or_default(), 200)));
        };
        let issuer = answer.issuer.as_deref();
        let token = self.manager.exchange_code_for_token_with_issuer(&code, &self.state, issuer).await;
        token.map(drop).map_err(|error| match error {
            AuthError::TokenExchangeFailed(why) => SignInError::Denied(clean::text(&why, 200)),
            other => other.into(),
        })
    }
}

/// What the browser brought back.
struct Answer {
    code: Option<String>,
    issuer: Option<String>,
    error: Option<String>,
}

/// What the server says when it is asked without a login.
async fn challenge(client: &reqwest::Client, server: &McpServer) -> Result<Option<String>, SignInError> {
    let request = client.post(&server.url).header(CONTENT_TYPE, "application/json");
    let request = request.header(ACCEPT, "application/json, text/event-stream");
    let body = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
    let response = request.body(body).send().await.map_err(HttpFault::from)?;
    let told = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok((response.status().as_u16() == 401).then(|| told.unwrap_or_else(|| "Bearer".to_owned())))
}

/// The first line of a request and its headers.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < REQUEST_BYTES_MAX {
        let mut block = [0; 1024];
        let read = stream.read(&mut block).await.ok().filter(|read| *read > 0)?;
        head.extend_from_slice(block.get(..read)?);
    }
    String::from_utf8(head).ok()
}

async fn reply(stream: &mut TcpStream, status: u16, words: &str) {
    let length = words.len();
    let text = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n\
         content-length: {length}\r\n\r\n{words}"
    );
    drop(stream.write_all(text.as_bytes()).await);
    drop(stream.shutdown().await);
}
