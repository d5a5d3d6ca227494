//! One attempt at a call, over HTTP.
//!
//! One connection pool for all agents, built on first use. Redirects are never followed (the key would travel
//! along), servers on this machine are never reached through a proxy, nothing is retried but a request that nobody has
//! read: its kept connection turned out to be dead, or the other side has refused it unread. `idle_timeout` bounds the wait for the first byte and between bytes; there is
//! no bound on the whole, because long answers are long.

use std::collections::HashMap;
use std::error::Error as _;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use max_team_core::chat::Answer;
use max_team_core::limits::{ANSWER_BYTES_MAX, ERROR_BODY_BYTES_MAX};
use max_team_core::recovery::Failure;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response, redirect};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_util::sync::CancellationToken;

use crate::call::{CallError, Delta, Fault, Sink};
use crate::dialect::Reader;
use crate::endpoint::Endpoint;
use crate::failure::{self, Said};
use crate::patience::Patience;
use crate::sse;
use crate::wire::Request;

/// Reaching a host takes no longer than this.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections are kept this long for the next request.
const KEEP_ALIVE: Duration = Duration::from_secs(90);
/// After the closing event, the end of the body is waited for this long, so that the connection can be kept.
const DRAIN: Duration = Duration::from_millis(20);

/// How calls are made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether answers are streamed.
    pub stream: bool,
    /// The longest wait for the first byte and between bytes (`llm.timeout`). Without streaming the first byte comes
    /// when the whole answer is written.
    pub idle_timeout: Duration,
    /// Certificates to trust beside the usual ones (`SSL_CERT_FILE`).
    pub cert_file: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { stream: true, idle_timeout: Duration::from_secs(120), cert_file: None }
    }
}

/// Makes calls. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    proxied: OnceLock<Result<reqwest::Client, String>>,
    direct: OnceLock<Result<reqwest::Client, String>>,
    /// When each origin last answered: a connection to it may still be kept.
    answered: Mutex<HashMap<String, Instant>>,
}

impl Client {
    /// A client that has not connected to anything.
    pub fn new(options: Options) -> Self {
        let inner = Inner { options, proxied: OnceLock::new(), direct: OnceLock::new(), answered: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Does the work of the first use ahead of it. For a moment when nobody waits.
    pub fn warm(&self, endpoint: &Endpoint) {
        // If it fails, the first call will say so.
        let _ = self.http(endpoint);
    }

    /// Makes one attempt. Deltas come as they arrive; cancelling returns at once with what there is.
    pub async fn call(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        cancel: &CancellationToken,
        mut on_delta: impl FnMut(Delta<'_>) + Send,
    ) -> Result<Answer, CallError> {
        let mut reader = Reader::new(request.wire.dialect);
        let mut request_id = None;
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            ended = self.attempt(endpoint, request, &mut reader, &mut request_id, &mut on_delta) => Some(ended),
        };
        match ended {
            None => Err(CallError::Cancelled { partial: reader.partial(), usage: reader.usage() }),
            Some(Ok(())) => Ok(reader.answer(&request.wire, request_id)),
            Some(Err(fault)) => {
                let detail = endpoint.redact(&format!("{}: {}", endpoint.provider().name, fault.detail));
                Err(CallError::Failed { failure: fault.failure, detail, request_id })
            }
        }
    }

    async fn attempt(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        reader: &mut Reader,
        request_id: &mut Option<String>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let bound = self.inner.options.idle_timeout;
        let alarm = pin!(tokio::time::sleep(bound));
        let mut patience = Patience::new(bound, alarm);
        let mut response = self.send(endpoint, request, &mut patience).await?;
        *request_id = header(response.headers(), "request-id").or_else(|| header(response.headers(), "x-request-id"));
        if !response.status().is_success() {
            return Err(refusal(&mut response, &mut patience).await);
        }
        let kind = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
        if kind.contains("text/html") {
            let detail = "a web page came instead of an answer; check `base_url`, or log in to the network";
            return Err(Fault::new(Failure::InvalidRequest, detail));
        }
        let streamed = kind.contains("event-stream") || (request.wire.stream && !kind.contains("json"));
        if streamed {
            read_stream(&mut response, &mut patience, reader, sink).await
        } else {
            let body = read_whole(&mut response, &mut patience, ANSWER_BYTES_MAX).await?;
            reader.whole(&body, sink)
        }
    }

    /// Sends the request and waits for the head of the response. A kept connection may have been closed by the other
    /// side while it lay idle; a request that met such a one, and no byte of an answer, is sent once more, as is one
    /// that was refused unread.
    async fn send(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        patience: &mut Patience<'_>,
    ) -> Result<Response, Fault> {
        let http = self.http(endpoint).map_err(|problem| Fault::new(Failure::Network, problem))?;
        let accept = if request.wire.stream { "text/event-stream, application/json" } else { "application/json" };
        // Put together by hand: a builder would go through the headers one by one, for each request of each agent.
        let post = || {
            let mut post = reqwest::Request::new(Method::POST, endpoint.url().clone());
            let mut headers = endpoint.headers().clone();
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            headers.entry(ACCEPT).or_insert(HeaderValue::from_static(accept));
            *post.headers_mut() = headers;
            *post.body_mut() = Some(request.body.to_http());
            http.execute(post)
        };
        let origin = endpoint.origin();
        let mut sent = patience.with(post()).await?;
        if let Err(error) = &sent
            && (was_refused(error) || (self.may_be_kept(origin) && was_dropped(error)))
        {
            sent = patience.with(post()).await?;
        }
        let response = sent.map_err(|error| unreachable_host(&error, endpoint))?;
        self.has_answered(origin);
        Ok(response)
    }

    fn http(&self, endpoint: &Endpoint) -> Result<&reqwest::Client, String> {
        let direct = endpoint.is_loopback();
        let cell = if direct { &self.inner.direct } else { &self.inner.proxied };
        cell.get_or_init(|| build(&self.inner.options, direct)).as_ref().map_err(Clone::clone)
    }

    fn has_answered(&self, origin: &str) {
        let mut answered = self.answered();
        match answered.get_mut(origin) {
            Some(at) => *at = Instant::now(),
            None => drop(answered.insert(origin.to_owned(), Instant::now())),
        }
    }

    fn may_be_kept(&self, origin: &str) -> bool {
        self.answered().get(origin).is_some_and(|at| at.elapsed() < KEEP_ALIVE)
    }

    fn answered(&self) -> std::sync::MutexGuard<'_, HashMap<String, Instant>> {
        self.inner.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn refusal(response: &mut Response, patience: &mut Patience<'_>) -> Fault {
    let status = response.status().as_u16();
    let wait = failure::retry_after_ms(response.headers(), Timestamp::now());
    // A body that does not arrive changes nothing about the status.
    let body = read_start(response, patience, ERROR_BODY_BYTES_MAX).await;
    failure::by_status(status, &Said::read(&body), wait)
}

async fn read_stream(
    response: &mut Response,
    patience: &mut Patience<'_>,
    reader: &mut Reader,
    sink: &mut Sink<'_>,
) -> Result<(), Fault> {
    let mut parser = sse::Parser::default();
    let mut bytes = 0;
    loop {
        let chunk = match next(response, patience).await {
            Ok(Some(chunk)) => chunk,
            Ok(None) | Err(_) if reader.is_complete() => return Ok(()),
            Ok(None) => {
                let detail = "the stream ended before the answer did; try again";
                return Err(Fault::new(Failure::Truncated, detail));
            }
            Err(fault) => return Err(fault),
        };
        bytes += chunk.len();
        if bytes > ANSWER_BYTES_MAX {
            return Err(too_large());
        }
        parser.feed(&chunk, |event| reader.event(event, sink))?;
        if reader.has_ended() {
            let _ = tokio::time::timeout(DRAIN, async { while let Ok(Some(_)) = response.chunk().await {} }).await;
            return Ok(());
        }
    }
}

async fn read_whole(response: &mut Response, patience: &mut Patience<'_>, bytes_max: usize) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    while let Some(chunk) = next(response, patience).await? {
        body.extend_from_slice(&chunk);
        if body.len() > bytes_max {
            return Err(too_large());
        }
    }
    Ok(body)
}

/// As much of a body as comes and fits.
async fn read_start(response: &mut Response, patience: &mut Patience<'_>, bytes_max: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = next(response, patience).await {
        body.extend_from_slice(&chunk);
        if body.len() >= bytes_max {
            body.truncate(bytes_max);
            break;
        }
    }
    body
}

async fn next(response: &mut Response, patience: &mut Patience<'_>) -> Result<Option<bytes::Bytes>, Fault> {
    patience.with(response.chunk()).await?.map_err(|error| {
        let detail = format!("the connection broke in the middle of the answer ({}); try again", cause(&error));
        Fault::new(Failure::Network, detail)
    })
}

fn build(options: &Options, direct: bool) -> Result<reqwest::Client, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots(options)?)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let builder = reqwest::Client::builder()
        .user_agent(concat!("max-team/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(KEEP_ALIVE)
        .tcp_nodelay(true)
        .redirect(redirect::Policy::none());
    let builder = if direct { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| format!("the HTTP client cannot be built: {}", cause(&error)))
}

fn roots(options: &Options) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = &options.cert_file {
        let shown = path.display();
        let unreadable = |error| format!("certificates cannot be read from `{shown}`: {error}; correct SSL_CERT_FILE");
        for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
            // A bundle may hold oddities that nobody needs; only an unreadable file is worth stopping for.
            let _ = roots.add(certificate.map_err(unreadable)?);
        }
    }
    Ok(roots)
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

impl From<sse::TooLarge> for Fault {
    fn from(_: sse::TooLarge) -> Self {
        too_large()
    }
}

fn too_large() -> Fault {
    Fault::new(Failure::TooLarge, format!("the answer is larger than {} MiB", ANSWER_BYTES_MAX >> 20))
}

/// The innermost reason, which is the one that says something.
fn cause(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |error| (**error).source())
}

/// Whether a connection was closed before a byte of the answer had come.
fn was_dropped(error: &reqwest::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    !error.is_connect()
        && !error.is_timeout()
        && causes(error).any(|error| match error.downcast_ref::<std::io::Error>() {
            Some(io) => matches!(io.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof),
            // hyper's own words; it is not a dependency of ours, and a test holds us to them.
            None => error.to_string() == "connection closed before message completed",
        })
}

/// Whether the other side has said, over HTTP/2, that it took no notice of the request: it refused this one, or leaves
/// the connection in peace. The client would see to it by itself for a body it can copy, which ours is not. The words
/// are h2's, and a test holds us to them.
fn was_refused(error: &reqwest::Error) -> bool {
    causes(error).any(|error| {
        let words = error.to_string();
        words == "stream error received: refused stream before processing any application logic"
            || words.starts_with("connection error received: not a result of an error")
    })
}

fn unreachable_host(error: &reqwest::Error, endpoint: &Endpoint) -> Fault {
    let host = endpoint.url().host_str().unwrap_or_default();
    let place = endpoint.url().port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let cause = cause(error);
    let advice = if cause.contains("certificate") {
        "behind a proxy that inspects TLS, name its certificates in SSL_CERT_FILE"
    } else if endpoint.is_loopback() {
        "is the server running, and is `base_url` right?"
    } else {
        "check the network, the proxy and `base_url`"
    };
    let what = match error.is_connect() {
        true => "cannot be reached",
        false => "closed the connection without an answer",
    };
    Fault::new(Failure::Network, format!("`{place}` {what} ({cause}); {advice}"))
}
