//! One request, bounded in time and bytes.
//!
//! The address that was looked at is the address that is connected to: the check sits where names are resolved, and
//! nothing resolves a second time. No proxy, for it would resolve names itself; no redirect is followed here.

use std::error::Error as StdError;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use max_team_core::limits::PAGE_MS_MAX;
use max_team_core::policy::is_local_host;
use max_team_sandbox::is_public;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED, LOCATION};
use reqwest::{Url, redirect};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::fault::{BodyFlaw, PrivateAddress, WebFault};
use super::host;
use crate::document;
use crate::remote::on_thread;
use crate::text::{clip, size, visible};
use crate::tool::ToolContext;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of an error that are repeated.
const CAUSE_BYTES_MAX: usize = 300;

/// Where a request may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressGuard {
    /// The public internet, and hosts that the user has opened in the settings.
    Public,
    /// The same, and a host of this machine or of a private network if the address names it as such: the policy has judged it.
    Judged,
    /// A service that the user has set up, wherever it is.
    Service,
}

/// A request: a GET, or a POST if it has a body.
#[derive(Debug)]
pub(crate) struct HttpRequest<'a> {
    pub(crate) url: &'a Url,
    pub(crate) guard: AddressGuard,
    /// Bytes of the answer that are taken.
    pub(crate) max: usize,
    /// The same for a document (PDF, office files), of which a part is of no use.
    pub(crate) document_max: u64,
    pub(crate) headers: Vec<(HeaderName, String)>,
    pub(crate) body: Option<String>,
    /// Whether a body that breaks off is taken as far as it came; otherwise it is an error.
    pub(crate) takes_part: bool,
}

impl<'a> HttpRequest<'a> {
    pub(crate) fn get(url: &'a Url, guard: AddressGuard, max: usize) -> Self {
        Self { url, guard, max, document_max: max as u64, headers: Vec::new(), body: None, takes_part: false }
    }
}

/// What came back.
#[derive(Debug, Clone, Default)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    /// Where it says to go instead.
    pub(crate) location: Option<String>,
    /// What it says it is, in lower case and without parameters; empty if it does not say.
    pub(crate) media_type: String,
    pub(crate) charset: Option<String>,
    /// How the body is compressed, though that was not asked for.
    pub(crate) encoding: Option<String>,
    /// By which the server recognises this version.
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    pub(crate) body: Vec<u8>,
    /// Whether there was more than was wanted.
    pub(crate) is_cut: bool,
    /// Why the body ended before its end.
    pub(crate) broken: Option<BodyFlaw>,
}

impl HttpReply {
    /// The same with its body as it was before a server compressed it, within these bounds.
    fn inflated(mut self, max: usize, document_max: u64) -> Self {
        let reader: Box<dyn io::Read + '_> = match self.encoding.as_deref() {
            Some("gzip" | "x-gzip") => Box::new(MultiGzDecoder::new(self.body.as_slice())),
            Some("deflate") => Box::new(ZlibDecoder::new(self.body.as_slice())),
            _ => return self,
        };
        let mut body = Vec::new();
        let read = reader.take(document_max.max(max as u64) + 1).read_to_end(&mut body);
        let most = if document::kind(&body).is_some() { document_max } else { max as u64 };
        // A compressed body that was cut ends early by our own doing.
        let (is_whole, is_larger) = (!self.is_cut, body.len() as u64 > most);
        let unpacked = read.err().filter(|_| is_whole && !is_larger);
        self.broken = self.broken.or_else(|| unpacked.map(|err| BodyFlaw::Compressed(err.to_string())));
        self.is_cut |= is_larger;
        body.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        (self.body, self.encoding) = (body, None);
        self
    }
}

/// Gets what is at an address, up to `max` bytes of it.
pub(crate) async fn fetch(cx: &ToolContext, url: &Url, guard: AddressGuard, max: usize) -> Result<HttpReply, WebFault> {
    send(cx, HttpRequest::get(url, guard, max)).await
}

/// Makes a request.
pub(crate) async fn send(cx: &ToolContext, request: HttpRequest<'_>) -> Result<HttpReply, WebFault> {
    let url = shown(request.url);
    let may_be_private = may_be_private(cx, &request);
    if !may_be_private && let Err(address) = check_literal(request.url) {
        return Err(WebFault::Private { url, address });
    }
    if let Some(pages) = &cx.services.recorded_pages {
        return pages.reply(&request).ok_or(WebFault::NotRecorded(url));
    }
    let client = client(cx, may_be_private).map_err(|why| WebFault::NoClient { url: url.clone(), why })?;
    let (max, document_max, takes_part) = (request.max, request.document_max, request.takes_part);
    let reply = match timeout(Duration::from_millis(PAGE_MS_MAX), ask(cx, &client, request)).await {
        Ok(Ok(reply)) if reply.encoding.is_some() => on_thread(move || Ok(reply.inflated(max, document_max))).await?,
        Ok(reply) => reply.map_err(|err| fault(url.clone(), &err))?,
        Err(_) => return Err(WebFault::Late { url, seconds: PAGE_MS_MAX / 1_000 }),
    };
    match &reply.broken {
        Some(flaw) if !takes_part || reply.body.is_empty() => Err(WebFault::Body { url, flaw: flaw.clone() }),
        _ => Ok(reply),
    }
}

async fn ask(
    cx: &ToolContext,
    client: &reqwest::Client,
    request: HttpRequest<'_>,
) -> Result<HttpReply, reqwest::Error> {
    let HttpRequest { url, max, document_max, headers, body, .. } = request;
    let host = url.host_str().unwrap_or_default();
    cx.progress.say(|| format!("connecting to {host}"));
    let request = match body {
        Some(body) => client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body),
        None => client.get(url.clone()),
    };
    let request = request.header(ACCEPT, "text/html, text/plain, application/json, */*;q=0.5");
    let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
    let mut response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let promised = response.content_length().unwrap_or_default();
    let (mut body, mut most, mut is_cut, mut broken) = (Vec::new(), max as u64, false, None);
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(err) => {
                broken = Some(BodyFlaw::BrokeOff(cause(&err)));
                break;
            }
        };
        body.extend_from_slice(&chunk);
        cx.progress.say(|| format!("{} from {host}", size(body.len() as u64)));
        let is_document = document::kind(&body).is_some();
        if is_document {
            most = document_max;
        }
        // The rest of a document that is too large is not waited for.
        is_cut = body.len() as u64 > most || (is_document && promised > most);
        if is_cut {
            break;
        }
    }
    body.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let told = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (media_type, charset) = content_type(told);
    let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let (location, etag, last_modified) = (text(LOCATION), text(ETAG), text(LAST_MODIFIED));
    let encoding = text(CONTENT_ENCODING).map(|name| name.trim().to_ascii_lowercase());
    let encoding = encoding.filter(|name| !name.is_empty() && name != "identity");
    Ok(HttpReply { status, location, media_type, charset, encoding, etag, last_modified, body, is_cut, broken })
}

/// The media type and the charset in a header `Content-Type`.
pub(super) fn content_type(told: &str) -> (String, Option<String>) {
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
fn check_literal(url: &Url) -> Result<(), PrivateAddress> {
    let host = url.host_str().unwrap_or_default();
    match bare(host).parse::<IpAddr>() {
        Ok(address) if !is_public(address) => Err(PrivateAddress { host: host.to_owned(), address }),
        _ => Ok(()),
    }
}

/// Whether a request may go to this machine or into a private network. It follows no redirect, so its address says all.
fn may_be_private(cx: &ToolContext, request: &HttpRequest<'_>) -> bool {
    let (name, port) = (request.url.host_str().unwrap_or_default(), request.url.port_or_known_default());
    match request.guard {
        AddressGuard::Service => true,
        AddressGuard::Judged if is_local_host(&host(request.url)) => true,
        AddressGuard::Judged | AddressGuard::Public => is_host_opened(&cx.services.private_hosts, name, port),
    }
}

/// Whether the user has opened this host, for all ports (`HOST`) or for one (`HOST:PORT`).
pub(crate) fn is_host_opened(private: &[String], host: &str, port: Option<u16>) -> bool {
    let host = bare(host);
    private.iter().any(|rule| match split_port(rule) {
        (name, None) => bare(name).eq_ignore_ascii_case(host),
        (name, only) => bare(name).eq_ignore_ascii_case(host) && only == port,
    })
}

/// A host and the port behind it: `wiki.local:8080`, `[::1]:8080`. `::1` is a host alone.
fn split_port(rule: &str) -> (&str, Option<u16>) {
    match rule.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (rule, None),
        },
        _ => (rule, None),
    }
}

/// A host without the brackets of an IPv6 address and the dot at the end of a full name.
pub(crate) fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.')
}

/// The system's clock. A time before 1970 is an error that refuses the connection; the clock of rustls panics then.
#[derive(Debug)]
struct TlsClock;

impl TimeProvider for TlsClock {
    fn current_time(&self) -> Option<UnixTime> {
        SystemTime::now().duration_since(UNIX_EPOCH).ok().map(UnixTime::since_unix_epoch)
    }
}

fn client(cx: &ToolContext, may_be_private: bool) -> Result<reqwest::Client, String> {
    let lookups = cx.remote.lookups();
    builder(cx.services.cert_file.as_deref())?
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .dns_resolver(Arc::new(Resolver { may_be_private, lookups, look_up: system_look_up }))
        .build()
        .map_err(|err| format!("the HTTP client cannot be built: {}", cause(&err)))
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
    /// Whether the host of this request may lie on this machine or in a private network.
    may_be_private: bool,
    lookups: Arc<Semaphore>,
    look_up: fn(&str) -> io::Result<Vec<SocketAddr>>,
}

fn system_look_up(host: &str) -> io::Result<Vec<SocketAddr>> {
    Ok((host, 0).to_socket_addrs()?.collect())
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (may_be_private, look_up) = (self.may_be_private, self.look_up);
        let lookups = Arc::clone(&self.lookups);
        Box::pin(async move {
            // The system's look-up holds a thread until it ends, also when its caller no longer waits.
            let turn = lookups.acquire_owned().await?;
            let asked = host.clone();
            let (found, _) = spawn_blocking(move || look_up(&asked).map(|found| (found, turn))).await??;
            // One private address among public ones is a trap as well.
            let own = found.iter().find(|address| !is_public(address.ip()));
            if let Some(own) = own.filter(|_| !may_be_private) {
                return Err(PrivateAddress { host, address: own.ip() }.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Why no answer came.
fn fault(url: String, err: &reqwest::Error) -> WebFault {
    let refused = std::iter::successors(err.source(), |err| (**err).source()).last();
    if let Some(address) = refused.and_then(|err| err.downcast_ref::<PrivateAddress>()) {
        return WebFault::Private { url, address: address.clone() };
    }
    let why = cause(err);
    match err.is_connect() {
        true => WebFault::Unreachable { url, why },
        false => WebFault::Body { url, flaw: BodyFlaw::BrokeOff(why) },
    }
}

/// The innermost reason, without the address, which may hold a password.
fn cause(err: &reqwest::Error) -> String {
    let last = std::iter::successors(err.source(), |err| (**err).source()).last();
    visible(&clip(&last.map_or_else(|| "no answer".to_owned(), ToString::to_string), CAUSE_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_rule_with_a_port_opens_only_that_port() {
        let table = [
            ("wiki.local", "http://wiki.local/", true),
            ("wiki.local", "http://wiki.local:8080/", true),
            ("wiki.local:8080", "http://wiki.local:8080/", true),
            ("wiki.local:8080", "http://wiki.local/", false),
            ("wiki.local:443", "https://wiki.local/", true),
            ("Wiki.Local:80", "http://wiki.local/", true),
            ("wiki.local", "http://other.local/", false),
            ("127.0.0.1:9000", "http://127.0.0.1:9000/", true),
            ("127.0.0.1:9000", "http://127.0.0.1:9001/", false),
            ("::1", "http://[::1]:9000/", true),
            ("[::1]:9000", "http://[::1]:9000/", true),
            ("[::1]:9000", "http://[::1]/", false),
        ];
        for (rule, address, is_open) in table {
            let url = url(address);
            let found = is_host_opened(&[rule.to_owned()], url.host_str().unwrap(), url.port_or_known_default());
            assert_eq!(found, is_open, "{rule} {address}");
        }
    }

    fn resolver(may_be_private: bool, look_up: fn(&str) -> io::Result<Vec<SocketAddr>>) -> Resolver {
        Resolver { may_be_private, lookups: Arc::new(Semaphore::new(1)), look_up }
    }

    /// A name that is public when it is first asked for and this machine from then on.
    fn rebinding(_: &str) -> io::Result<Vec<SocketAddr>> {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let first = ASKED.fetch_add(1, Ordering::SeqCst) == 0;
        Ok(vec![if first { ([93, 184, 216, 34], 0).into() } else { ([127, 0, 0, 1], 0).into() }])
    }

    #[tokio::test]
    async fn a_name_that_changes_its_address_is_refused_when_it_becomes_private() {
        let resolver = resolver(false, rebinding);
        let name = || "evil.example".parse::<Name>().unwrap();
        let first: Vec<SocketAddr> = resolver.resolve(name()).await.ok().unwrap().collect();
        assert_eq!(first, [([93, 184, 216, 34], 0).into()], "the checked address is the one that is connected to");
        let Err(refused) = resolver.resolve(name()).await else { panic!("it is this machine now") };
        assert!(refused.to_string().contains("private network"), "{refused}");
    }

    #[tokio::test]
    async fn a_private_address_among_public_ones_is_refused() {
        let mixed = |_: &str| Ok(vec![([93, 184, 216, 34], 0).into(), ([10, 0, 0, 1], 0).into()]);
        let name = || "mixed.example".parse::<Name>().unwrap();
        assert!(resolver(false, mixed).resolve(name()).await.is_err());
        assert_eq!(resolver(true, mixed).resolve(name()).await.ok().unwrap().count(), 2);
    }
}
