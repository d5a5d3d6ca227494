//! How a host is reached: by itself, or through the proxy that the environment or the system names; with TLS where the
//! address says so.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use tower_service::Service;

use super::proxy::{Proxies, is_secure};
use super::tunnel::{Tunnel, TunnelRefused};

/// Reaching a host takes no longer than this.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection on which nothing moves is probed this often, and given up after so many probes.
const PROBE: Duration = Duration::from_secs(15);
const PROBES_MAX: u32 = 3;

/// Where SOCKS is spoken if the address does not say.
const SOCKS_PORT: u16 = 1_080;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a host was not reached.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// What has to be corrected before anything is tried.
    Setup(String),
    /// The proxy grants no tunnel, and says so by this status.
    Refused(u16),
    /// Any other failure of the connection.
    Failed(Cause),
}

impl From<Cause> for ConnectError {
    fn from(cause: Cause) -> Self {
        match cause.downcast_ref() {
            Some(TunnelRefused(status)) => Self::Refused(*status),
            None => Self::Failed(cause),
        }
    }
}

impl From<hyper::Error> for ConnectError {
    fn from(error: hyper::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// A byte stream to a host.
pub(super) trait Io: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Io for T {}

/// A host that was reached.
pub(super) struct ConnectedHost {
    pub(super) io: Box<dyn Io>,
    pub(super) speaks_two: bool,
    /// Set if requests go to a proxy that passes them on.
    pub(super) forward: Option<Forward>,
}

/// What a proxy that passes requests on wants to see with each.
#[derive(Debug, Clone)]
pub(super) struct Forward {
    pub(super) authorization: Option<HeaderValue>,
}

/// How hosts are reached. What is needed for it is made on first use.
#[derive(Debug)]
pub(super) struct Connector {
    cert_file: Option<PathBuf>,
    proxies: OnceLock<Proxies>,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Connector {
    pub(super) fn new(cert_file: Option<PathBuf>) -> Self {
        Self { cert_file, proxies: OnceLock::new(), tls: OnceLock::new() }
    }

    /// Uses these proxies instead of those of the environment.
    #[cfg(test)]
    pub(super) fn by(proxies: Proxies, cert_file: Option<PathBuf>) -> Self {
        Self { proxies: proxies.into(), ..Self::new(cert_file) }
    }

    /// Does the work of the first use.
    pub(super) fn warm(&self, to: &Uri) {
        // A failure is reported by the request that needs it.
        let _ = self.check(to);
    }

    /// Reaches a host; `direct` if no proxy may be asked.
    pub(super) async fn reach(&self, to: &Uri, direct: bool) -> Result<ConnectedHost, ConnectError> {
        let reached = tokio::time::timeout(CONNECT_TIMEOUT, async {
            match self.proxy(to, direct).map_err(ConnectError::Setup)? {
                Some(proxy) => self.reach_by(&proxy, to).await,
                None => self.over(tcp(), to).await,
            }
        });
        reached
            .await
            .unwrap_or_else(|_| Err(ConnectError::Failed(format!("it took longer than {CONNECT_TIMEOUT:?}").into())))
    }

    /// The proxy that a host is reached through.
    fn proxy(&self, to: &Uri, direct: bool) -> Result<Option<Intercept>, String> {
        if direct { Ok(None) } else { self.proxies().to(to) }
    }

    /// The host and port of the proxy, without its password.
    pub(super) fn proxy_name(&self, to: &Uri, direct: bool) -> Result<Option<String>, String> {
        let Some(proxy) = self.proxy(to, direct)? else { return Ok(None) };
        let at = with_port(proxy.uri()).ok();
        Ok(at.and_then(|at| at.authority().map(ToString::to_string)))
    }

    /// Whether there are certificates, where they are needed.
    pub(super) fn check(&self, to: &Uri) -> Result<(), String> {
        if is_secure(to) { self.tls().map(drop) } else { Ok(()) }
    }

    async fn reach_by(&self, proxy: &Intercept, to: &Uri) -> Result<ConnectedHost, ConnectError> {
        let at = proxy.uri();
        let scheme = at.scheme_str().unwrap_or_default();
        if !scheme.starts_with("socks") {
            return self.reach_by_http(proxy, to).await;
        }
        let at = with_port(at)?;
        let to = &with_port(to)?;
        if matches!(scheme, "socks4" | "socks5") {
            known_here(to).await?;
        }
        match scheme {
            "socks4" | "socks4a" => self.over(SocksV4::new(at, tcp()).local_dns(scheme == "socks4"), to).await,
            _ => {
                let mut socks = SocksV5::new(at, tcp()).local_dns(scheme == "socks5");
                if let Some((user, word)) = proxy.raw_auth() {
                    socks = socks.with_auth(user.to_owned(), word.to_owned());
                }
                self.over(socks, to).await
            }
        }
    }

    async fn reach_by_http(&self, proxy: &Intercept, to: &Uri) -> Result<ConnectedHost, ConnectError> {
        if !is_secure(proxy.uri()) {
            return self.ask_proxy(tcp(), proxy, to).await;
        }
        let mut tls = ClientConfig::clone(&*self.tls().map_err(ConnectError::Setup)?);
        // The proxy itself is asked in HTTP/1.1.
        tls.alpn_protocols.clear();
        self.ask_proxy(HttpsConnector::from((tcp(), tls)), proxy, to).await
    }

    /// Asks for a tunnel where the host speaks TLS; a plain request is told to the proxy, which passes it on.
    async fn ask_proxy<C>(&self, leg: C, proxy: &Intercept, to: &Uri) -> Result<ConnectedHost, ConnectError>
    where
        C: Service<Uri>,
        C::Response: Connection + Read + Write + Send + Unpin + 'static,
        C::Future: Send + 'static,
        C::Error: Into<Cause>,
    {
        let authorization = proxy.basic_auth().cloned();
        if !is_secure(to) {
            let reached = open(leg, proxy.uri()).await?;
            return Ok(ConnectedHost { forward: Some(Forward { authorization }), ..reached });
        }
        self.over(Tunnel { leg, proxy: proxy.uri().clone(), authorization }, to).await
    }

    /// TLS, if the address asks for it, over a connection that this connector makes.
    async fn over<C>(&self, connector: C, to: &Uri) -> Result<ConnectedHost, ConnectError>
    where
        C: Service<Uri>,
        C::Response: Connection + Read + Write + Send + Unpin + 'static,
        C::Future: Send + 'static,
        C::Error: Into<Cause>,
    {
        if is_secure(to) {
            open(HttpsConnector::from((connector, self.tls().map_err(ConnectError::Setup)?)), to).await
        } else {
            open(connector, to).await
        }
    }

    fn proxies(&self) -> &Proxies {
        self.proxies.get_or_init(Proxies::from_system)
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        self.tls.get_or_init(|| tls(self.cert_file.as_deref()).map(Arc::new)).clone()
    }
}

/// With `socks4` and `socks5` the name is resolved here. This check names the problem, which the proxy's error would
/// not.
async fn known_here(to: &Uri) -> Result<(), ConnectError> {
    let host = to.host().unwrap_or_default().trim_matches(['[', ']']);
    let found = tokio::net::lookup_host((host, to.port_u16().unwrap_or_default())).await;
    found.map(drop).map_err(|error| {
        let words = format!("the name is not known here: {error}; with `socks5h` or `socks4a` the proxy looks it up");
        ConnectError::Failed(words.into())
    })
}

fn usual_port(uri: &Uri) -> u16 {
    match uri.scheme_str() {
        Some("https") => 443,
        Some("http") => 80,
        _ => SOCKS_PORT,
    }
}

/// An address that names its port: what is told to a SOCKS proxy has one.
fn with_port(uri: &Uri) -> Result<Uri, Cause> {
    let host = uri.host().unwrap_or_default();
    let authority = format!("{host}:{}", uri.port_u16().unwrap_or_else(|| usual_port(uri)));
    let scheme = uri.scheme_str().unwrap_or_default();
    Ok(Uri::builder().scheme(scheme).authority(authority).path_and_query("/").build()?)
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(PROBE));
    tcp.set_keepalive_interval(Some(PROBE));
    tcp.set_keepalive_retries(Some(PROBES_MAX));
    tcp
}

async fn open<C>(mut connector: C, to: &Uri) -> Result<ConnectedHost, ConnectError>
where
    C: Service<Uri>,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Error: Into<Cause>,
{
    std::future::poll_fn(|cx| connector.poll_ready(cx)).await.map_err(Into::into)?;
    let io = connector.call(to.clone()).await.map_err(Into::into)?;
    let speaks_two = io.connected().is_negotiated_h2();
    Ok(ConnectedHost { io: Box::new(io), speaks_two, forward: None })
}

/// The system's clock. A time before 1970 is an error that refuses the connection; the clock of rustls panics then.
#[derive(Debug)]
struct SystemClock;

impl TimeProvider for SystemClock {
    fn current_time(&self) -> Option<UnixTime> {
        SystemTime::now().duration_since(UNIX_EPOCH).ok().map(UnixTime::since_unix_epoch)
    }
}

fn tls(cert_file: Option<&Path>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ClientConfig::builder_with_details(provider, Arc::new(SystemClock))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots(cert_file)?)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

fn roots(cert_file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = cert_file {
        let shown = path.display();
        let unreadable = |error| format!("certificates cannot be read from `{shown}`: {error}; correct SSL_CERT_FILE");
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
