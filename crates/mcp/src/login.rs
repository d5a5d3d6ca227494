//! The user's login at a server: a private file with its tokens, and the token that requests carry.
//!
//! The file belongs to one address. A token is sent to the origin of that address and to no other.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use max_team_core::hash::Hash;
use max_team_core::limits::MCP_LOGIN_RENEWAL_MS;
use max_team_core::mcp::McpServer;
use reqwest::Url;
use rmcp::transport::auth::OAuthClientConfig;
use rmcp::transport::{
    AuthError, AuthorizationManager, CredentialRefreshGuard, CredentialStore, OAuthHttpClient, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::http_fault::HttpFault;

/// A token is renewed this many seconds before it ends, so that it does not end on its way.
const RENEWAL_SECONDS: u64 = 30;

/// Whether the user has a login at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginState {
    /// No login, and the server has not asked for one.
    None,
    /// The server asks for a login.
    Needed,
    /// There is a login.
    SignedIn,
}

/// The login of the user at a server.
pub fn login_state(home: &Path, server: &McpServer) -> LoginState {
    let file = LoginFile::new(home, server);
    match file.read() {
        Some(_) => LoginState::SignedIn,
        None if file.marker().exists() && !server.is_local() => LoginState::Needed,
        None => LoginState::None,
    }
}

/// Forgets the login at a server; whether there was one.
pub fn log_out(home: &Path, server: &McpServer) -> bool {
    LoginFile::new(home, server).remove()
}

#[derive(Serialize, Deserialize)]
struct StoredLogin {
    /// The address that the tokens are for.
    server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    credentials: Value,
}

/// A token that can be sent.
struct HeldToken {
    token: String,
    /// Whether it has ended, or is about to.
    is_due: bool,
}

/// The file that holds the login at one address.
#[derive(Debug, Clone)]
pub(crate) struct LoginFile {
    path: PathBuf,
    server: String,
    /// The secret of the client that the next login is stored with.
    client_secret: Option<String>,
}

impl LoginFile {
    pub(crate) fn new(home: &Path, server: &McpServer) -> Self {
        let name = format!("{}.json", Hash::of(server.url.as_bytes()));
        Self { path: home.join("mcp").join("logins").join(name), server: server.url.clone(), client_secret: None }
    }

    pub(crate) fn with_secret(self, client_secret: Option<String>) -> Self {
        Self { client_secret, ..self }
    }

    /// Says that the server asks for a login.
    fn marker(&self) -> PathBuf {
        self.path.with_extension("needed")
    }

    /// Remembers whether the server asks for a login.
    pub(crate) fn mark(&self, is_needed: bool) {
        // Only shown: without it the user is told at the next use.
        if is_needed {
            drop(self.write_to(&self.marker(), b""));
        } else {
            drop(fs::remove_file(self.marker()));
        }
    }

    fn read(&self) -> Option<StoredLogin> {
        let stored: StoredLogin = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        (stored.server == self.server).then_some(stored)
    }

    fn write_to(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        drop(fs::remove_file(&aside));
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&aside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&aside, path)
    }

    fn store(&self, credentials: &StoredCredentials) -> std::io::Result<()> {
        let credentials = serde_json::to_value(credentials)?;
        // A renewed login keeps the secret of its client; a login of another client has its own or none.
        let is_same = |stored: &StoredLogin| stored.credentials.get("client_id") == credentials.get("client_id");
        let client_secret = self.client_secret.clone().or_else(|| self.read().filter(is_same)?.client_secret);
        let stored = StoredLogin { server: self.server.clone(), client_secret, credentials };
        self.write_to(&self.path, &serde_json::to_vec_pretty(&stored)?)?;
        self.mark(false);
        Ok(())
    }

    fn remove(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }

    fn held(&self) -> Option<HeldToken> {
        let credentials = self.read()?.credentials;
        let response = credentials.get("token_response")?;
        let token = response.get("access_token")?.as_str()?.to_owned();
        let ends = response.get("expires_in").and_then(Value::as_u64);
        let ends = ends.zip(credentials.get("token_received_at").and_then(Value::as_u64));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let is_due = ends.is_some_and(|(seconds, since)| since + seconds < now + RENEWAL_SECONDS);
        Some(HeldToken { token, is_due })
    }
}

type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'a>>;

fn unstored(error: &dyn std::fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

// The trait's macro is not used here: its functions return boxed futures.
impl CredentialStore for LoginFile {
    fn load<'a, 'b>(&'a self) -> Stored<'b, Option<StoredCredentials>>
    where
        'a: 'b,
        Self: 'b,
    {
        let read = self.read().map(|stored| serde_json::from_value(stored.credentials)).transpose();
        Box::pin(std::future::ready(read.map_err(|error| unstored(&error))))
    }

    fn save<'a, 'b>(&'a self, credentials: StoredCredentials) -> Stored<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(std::future::ready(self.store(&credentials).map_err(|error| unstored(&error))))
    }

    fn clear<'a, 'b>(&'a self) -> Stored<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        self.remove();
        Box::pin(std::future::ready(Ok(())))
    }

    /// One process renews at a time: a refresh token may work only once.
    fn acquire_refresh_guard<'a, 'b>(&'a self) -> Stored<'b, Option<CredentialRefreshGuard>>
    where
        'a: 'b,
        Self: 'b,
    {
        let path = self.path.with_extension("lock");
        let lock = move || -> std::io::Result<File> {
            let file = OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(path)?;
            file.lock()?;
            Ok(file)
        };
        Box::pin(async move {
            let locked = tokio::task::spawn_blocking(lock).await.map_err(|error| unstored(&error))?;
            locked.map(|file| Some(CredentialRefreshGuard::new(file))).map_err(|error| unstored(&error))
        })
    }
}

/// Gives requests to a server their token.
#[derive(Clone)]
pub(crate) struct Login {
    file: LoginFile,
    url: Url,
    client: Arc<dyn OAuthHttpClient>,
    /// Held while a token is renewed, so that several requests renew it once.
    renewing: Arc<Mutex<()>>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("server", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// Whether only a new login helps: the login was taken back, or the client is no longer registered.
fn is_final(error: &AuthError) -> bool {
    match error {
        AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) => true,
        AuthError::TokenRefreshFailed(words) => {
            words.contains("invalid_client") || words.contains("unauthorized_client")
        }
        _ => false,
    }
}

impl Login {
    /// `None` if the entry brings its own header, or its address cannot be read.
    pub(crate) fn new(home: &Path, server: &McpServer, client: Arc<dyn OAuthHttpClient>) -> Option<Self> {
        let has_own = server.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let url = Url::parse(&server.url).ok().filter(|_| !has_own)?;
        Some(Self { file: LoginFile::new(home, server), url, client, renewing: Arc::default() })
    }

    /// The token for a request to this address, if there is one.
    pub(crate) async fn token(&self, to: &str) -> Result<Option<String>, HttpFault> {
        let is_same = Url::parse(to).is_ok_and(|to| to.origin() == self.url.origin());
        let Some(held) = self.file.held().filter(|_| is_same) else { return Ok(None) };
        if held.is_due { self.renew(&held.token).await.map(Some) } else { Ok(Some(held.token)) }
    }

    /// A new token in place of one that is no longer accepted.
    pub(crate) async fn renew(&self, old: &str) -> Result<String, HttpFault> {
        let _one = self.renewing.lock().await;
        if let Some(held) = self.file.held().filter(|held| held.token != old && !held.is_due) {
            return Ok(held.token);
        }
        let renewed = timeout(Duration::from_millis(MCP_LOGIN_RENEWAL_MS), self.exchange()).await;
        match renewed.unwrap_or(Err(AuthError::TokenExpired)) {
            Ok(()) => self.file.held().map(|held| held.token).ok_or(HttpFault::LoginEnded),
            Err(error) if is_final(&error) => {
                self.file.remove();
                self.file.mark(true);
                Err(HttpFault::LoginEnded)
            }
            Err(_) => Err(HttpFault::NotRenewed),
        }
    }

    async fn exchange(&self) -> Result<(), AuthError> {
        let client = Arc::clone(&self.client);
        let mut manager = AuthorizationManager::new_with_oauth_http_client(self.url.clone(), client).await?;
        manager.set_credential_store(self.file.clone());
        // Looks up where tokens are given out now: a login is not renewed at an issuer that did not give it.
        if !manager.initialize_from_store().await? {
            return Err(AuthError::AuthorizationRequired);
        }
        let stored = self.file.read().ok_or(AuthError::AuthorizationRequired)?;
        if let Some(secret) = stored.client_secret {
            let id = stored.credentials.get("client_id").and_then(Value::as_str).unwrap_or_default();
            manager.configure_client(OAuthClientConfig::new(id, self.url.as_str()).with_client_secret(secret))?;
        }
        manager.refresh_token().await.map(drop)
    }
}
