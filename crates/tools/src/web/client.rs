//! One GET, bounded in time and bytes.
//!
//! The address that was looked at is the address that is connected to: the check sits where names are resolved, and
//! nothing resolves a second time. No proxy, for it would resolve names itself; no redirect is followed here.

use std::error::Error as StdError;
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use max_team_core::limits::PAGE_MS_MAX;
use max_team_sandbox::is_public;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Url, redirect};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::text::{clip, size, visible};
use crate::tool::{ToolContext, ToolError};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of an error that are repeated.
const CAUSE_BYTES_MAX: usize = 300;

/// Where a request may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressGuard {
    /// The public internet, and hosts that the user has named.
    Public,
    /// A service that the user has set up, wherever it is.
    Service,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    /// Where it says to go instead.
    pub(crate) location: Option<String>,
    /// What it says it is, in lower case and without parameters; empty if it does not say.
    pub(crate) media_type: String,
    pub(crate) charset: Option<String>,
    pub(crate) body: Vec<u8>,
    /// Whether there was more than was wanted.
    pub(crate) is_cut: bool,
}

/// Gets what is at an address, up to `max` bytes of it.
pub(crate) async fn fetch(
    cx: &ToolContext,
    url: &Url,
    guard: AddressGuard,
    max: usize,
) -> Result<HttpReply, ToolError> {
    let shown = shown(url);
    let failed = |words: String| ToolError::correctable(format!("`{shown}`: {words}"));
    if guard == AddressGuard::Public {
        check_literal(url, &cx.services.private_hosts).map_err(|refused| failed(refused.to_string()))?;
    }
    let client = client(cx, guard).map_err(failed)?;
    match timeout(Duration::from_millis(PAGE_MS_MAX), ask(cx, &client, url, max)).await {
        Ok(reply) => reply.map_err(|err| failed(reason(&err))),
        Err(_) => Err(failed(format!("no whole answer within {} s", PAGE_MS_MAX / 1_000))),
    }
}

async fn ask(cx: &ToolContext, client: &reqwest::Client, url: &Url, max: usize) -> Result<HttpReply, reqwest::Error> {
    let host = url.host_str().unwrap_or_default();
    cx.progress.say(|| format!("connecting to {host}"));
    let request = client.get(url.clone()).header(ACCEPT, "text/html, text/plain, application/json, */*;q=0.5");
    let mut response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        cx.progress.say(|| format!("{} from {host}", size(body.len() as u64)));
        if body.len() > max {
            break;
        }
    }
    let is_cut = body.len() > max;
    body.truncate(max);
    let (media_type, charset) = kind(&headers);
    let location = headers.get(LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Ok(HttpReply { status, location, media_type, charset, body, is_cut })
}

fn kind(headers: &HeaderMap) -> (String, Option<String>) {
    let told = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = told.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.eq_ignore_ascii_case("charset").then(|| value.trim_matches('"').to_owned())
    });
    (media_type, charset)
}

/// An address without the user name and password in it.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    visible(&clip(url.as_str(), CAUSE_BYTES_MAX))
}

/// An address that is written as a number is connected to without being resolved, so it is checked here.
fn check_literal(url: &Url, private: &[String]) -> Result<(), PrivateAddress> {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) if !is_public(address) && !is_named(private, bare) => {
            Err(PrivateAddress { host: host.to_owned(), address })
        }
        _ => Ok(()),
    }
}

fn is_named(private: &[String], host: &str) -> bool {
    private.iter().any(|name| name.eq_ignore_ascii_case(host))
}

/// The system's clock. A time before 1970 is an error that refuses the connection; the clock of rustls panics then.
#[derive(Debug)]
struct TlsClock;

impl TimeProvider for TlsClock {
    fn current_time(&self) -> Option<UnixTime> {
        SystemTime::now().duration_since(UNIX_EPOCH).ok().map(UnixTime::since_unix_epoch)
    }
}

fn client(cx: &ToolContext, guard: AddressGuard) -> Result<reqwest::Client, String> {
    let lookups = cx.remote.lookups();
    let public = (guard == AddressGuard::Public).then(|| cx.services.private_hosts.clone());
    builder(cx.services.cert_file.as_deref())?
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .dns_resolver(Arc::new(Resolver { public, lookups }))
        .build()
        .map_err(|err| format!("the HTTP client cannot be built: {}", reason(&err)))
}

/// A client with our TLS and the certificates of the system's bundle and of `cert_file`.
pub fn builder(cert_file: Option<&Path>) -> Result<reqwest::ClientBuilder, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ClientConfig::builder_with_details(provider, Arc::new(TlsClock))
        .with_safe_default_protocol_versions()
        .map_err(|err| format!("TLS cannot be set up: {err}"))?
        .with_root_certificates(roots(cert_file)?)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let agent = concat!("max-team/", env!("CARGO_PKG_VERSION"));
    Ok(reqwest::Client::builder().user_agent(agent).tls_backend_preconfigured(tls))
}

fn roots(cert_file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = cert_file {
        let shown = path.display();
        let unreadable = |err| format!("certificates cannot be read from `{shown}`: {err}; correct SSL_CERT_FILE");
        let mut taken = 0;
        for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
            // A bundle may hold certificates that are not accepted; only a file without an accepted one is an error.
            taken += usize::from(roots.add(certificate.map_err(unreadable)?).is_ok());
        }
        if taken == 0 {
            return Err(format!("there is no certificate in `{shown}`; correct SSL_CERT_FILE, or leave it out"));
        }
    }
    Ok(roots)
}

/// Gives only addresses that may be connected to.
#[derive(Debug)]
struct Resolver {
    /// Set where only the public internet may be reached: the hosts that are excepted.
    public: Option<Vec<String>>,
    lookups: Arc<Semaphore>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let may_be_private = self.public.as_ref().is_none_or(|private| is_named(private, &host));
        let lookups = Arc::clone(&self.lookups);
        Box::pin(async move {
            // The system's look-up holds a thread until it ends, also when its caller no longer waits.
            let turn = lookups.acquire_owned().await?;
            let asked = host.clone();
            let look_up = move || (asked.as_str(), 0).to_socket_addrs().map(|found| (found.collect(), turn));
            let (found, _): (Vec<SocketAddr>, _) = spawn_blocking(look_up).await??;
            // One private address among public ones is a trap as well.
            let own = found.iter().find(|address| !is_public(address.ip()));
            if let Some(own) = own.filter(|_| !may_be_private) {
                return Err(PrivateAddress { host, address: own.ip() }.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// A private address that the user has not opened.
#[derive(Debug)]
struct PrivateAddress {
    host: String,
    address: IpAddr,
}

impl fmt::Display for PrivateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, address } = self;
        write!(
            f,
            "`{host}` is `{address}`, on this machine or in a private network; only the user can open it, with \
             `tools.private_hosts`"
        )
    }
}

impl StdError for PrivateAddress {}

/// Why it failed: the innermost reason, without the address, which may hold a password.
fn reason(err: &reqwest::Error) -> String {
    let chain = std::iter::successors(err.source(), |err| (**err).source());
    let last = chain.last();
    if let Some(refused) = last.and_then(|err| err.downcast_ref::<PrivateAddress>()) {
        return refused.to_string();
    }
    let cause = last.map_or_else(|| "no answer".to_owned(), ToString::to_string);
    let what = if err.is_connect() { "cannot be reached" } else { "broke off" };
    format!("{what} ({})", visible(&clip(&cause, CAUSE_BYTES_MAX)))
}
