//! One attempt at a call, over HTTP.
//!
//! All agents share the connections of `http`. Redirects are never followed (the key would travel along), and servers
//! on this machine are never reached through a proxy. A request is sent again only if the server has not read it: a
//! kept connection was dead before the first byte was sent, or the server refused the request unread. A request that
//! may have been read may be billed; only the caller repeats it, and journals that. `idle_timeout` bounds the wait for
//! the first byte and between bytes, `progress_timeout` the time without new content, also if keep-alive bytes arrive.
//! The whole answer has no time limit.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use jiff::Timestamp;
use max_team_core::chat::{Answer, PartialAnswer};
use max_team_core::limits::{ANSWER_BYTES_MAX, ERROR_BODY_BYTES_MAX, PROGRESS_MS_DEFAULT};
use max_team_core::recovery::Failure;
use tokio_util::sync::CancellationToken;

use crate::call::{CallError, CallFault, Delta, Sink};
use crate::dialect::Reader;
use crate::endpoint::Endpoint;
use crate::failure::{self, ProviderError};
use crate::http::{ConnectError, HttpResponse, Pool, SendError};
use crate::idle_timeout::IdleTimeout;
use crate::sse;
use crate::wire::Request;

const NAME: &str = concat!("max-team/", env!("CARGO_PKG_VERSION"));
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
    /// The longest time without new content while an answer comes in (`llm.progress_timeout`); at least `idle_timeout`.
    pub progress_timeout: Duration,
    /// Certificates to trust beside the usual ones (`SSL_CERT_FILE`).
    pub cert_file: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            stream: true,
            idle_timeout: Duration::from_secs(120),
            progress_timeout: Duration::from_millis(PROGRESS_MS_DEFAULT),
            cert_file: None,
        }
    }
}

/// Makes calls. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    idle_timeout: Duration,
    progress_timeout: Duration,
    pool: Pool,
}

impl Client {
    /// A client that has not connected to anything.
    pub fn new(options: Options) -> Self {
        let Options { idle_timeout, progress_timeout, cert_file, .. } = options;
        Self { inner: Arc::new(Inner { idle_timeout, progress_timeout, pool: Pool::new(cert_file) }) }
    }

    /// Does the work of the first call ahead of time, while no call waits for it.
    pub fn warm(&self, endpoint: &Endpoint) {
        self.inner.pool.warm(endpoint);
    }

    /// The proxy that leads to an endpoint, or what has to be corrected first.
    pub(crate) fn proxy_for(&self, endpoint: &Endpoint) -> Result<Option<String>, String> {
        self.inner.pool.proxy_for(endpoint)
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
        let is_sent = Arc::new(AtomicBool::new(false));
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            ended = self.attempt(endpoint, request, &is_sent, &mut reader, &mut request_id, &mut on_delta) => Some(ended),
        };
        let is_sent = is_sent.load(Ordering::Relaxed);
        let streamed = PartialAnswer { is_sent, usage: reader.usage(), bytes: reader.content_bytes() };
        match ended {
            None => Err(CallError::Cancelled { partial: reader.partial(), streamed }),
            Some(Ok(())) => Ok(reader.answer(&request.wire, request_id)),
            Some(Err(fault)) => {
                let detail = endpoint.redact(&format!("{}: {}", endpoint.provider().name, fault.detail));
                Err(CallError::Failed { failure: fault.failure, detail, request_id, streamed })
            }
        }
    }

    async fn attempt(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        is_sent: &Arc<AtomicBool>,
        reader: &mut Reader,
        request_id: &mut Option<String>,
        sink: &mut Sink<'_>,
    ) -> Result<(), CallFault> {
        let Inner { idle_timeout, progress_timeout, .. } = *self.inner;
        let alarm = pin!(tokio::time::sleep(idle_timeout));
        let mut timeout = IdleTimeout::new(idle_timeout, progress_timeout, alarm);
        let mut response = self.send(endpoint, request, is_sent, &mut timeout).await?;
        timeout.expect_progress();
        *request_id = header(response.headers(), "request-id").or_else(|| header(response.headers(), "x-request-id"));
        if !response.status().is_success() {
            let proxy = if response.is_forwarded() { self.inner.pool.proxy(endpoint) } else { None };
            let fault = refusal(&mut response, &mut timeout).await;
            return Err(match proxy {
                Some(proxy) => passed_on(fault, response.status().as_u16(), &proxy),
                None => fault,
            });
        }
        let kind = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
        if kind.contains("text/html") {
            let detail = "a web page came instead of an answer; check `base_url`, or log in to the network";
            return Err(CallFault::new(Failure::InvalidRequest, detail));
        }
        let streamed = kind.contains("event-stream") || (request.wire.stream && !kind.contains("json"));
        if streamed {
            read_stream(&mut response, &mut timeout, reader, sink).await
        } else {
            let body = read_whole(&mut response, &mut timeout, ANSWER_BYTES_MAX).await?;
            reader.whole(&body, sink)
        }
    }

    /// Sends the request and waits for the head of the response. The server may have closed a kept connection while it
    /// was idle: a request of which nothing was sent over such a connection is sent once more, and so is one that was
    /// refused unread.
    async fn send(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        is_sent: &Arc<AtomicBool>,
        timeout: &mut IdleTimeout<'_>,
    ) -> Result<HttpResponse, CallFault> {
        let pool = &self.inner.pool;
        let accept = if request.wire.stream { "text/event-stream, application/json" } else { "application/json" };
        let mut headers = endpoint.headers().clone();
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(NAME));
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static(accept));
        let late = |fault: CallFault| {
            // As long as nothing was sent, the server was not reached.
            let failure = if is_sent.load(Ordering::Relaxed) { fault.failure } else { Failure::Network };
            let fault = CallFault { failure, ..fault };
            match pool.proxy(endpoint) {
                Some(proxy) => through(fault, &proxy),
                None => fault,
            }
        };
        let first = pool.send(endpoint, headers.clone(), request.body.to_http(is_sent), false);
        let mut sent = timeout.with(first).await.map_err(late)?;
        if let Err(SendError::Sent { error, is_unread }) = &sent
            && (*is_unread || was_refused(error))
        {
            let again = pool.send(endpoint, headers, request.body.to_http(is_sent), true);
            sent = timeout.with(again).await.map_err(late)?;
        }
        sent.map_err(|broken| unreachable_host(&broken, endpoint, pool.proxy(endpoint)))
    }
}

async fn refusal(response: &mut HttpResponse, timeout: &mut IdleTimeout<'_>) -> CallFault {
    let status = response.status().as_u16();
    let wait = failure::retry_after_ms(response.headers(), Timestamp::now());
    // A body that does not arrive changes nothing about the status.
    let body = read_start(response, timeout, ERROR_BODY_BYTES_MAX).await;
    failure::by_status(status, &ProviderError::read(&body), wait)
}

async fn read_stream(
    response: &mut HttpResponse,
    timeout: &mut IdleTimeout<'_>,
    reader: &mut Reader,
    sink: &mut Sink<'_>,
) -> Result<(), CallFault> {
    let mut parser = sse::Parser::default();
    let mut bytes = 0;
    loop {
        let chunk = match next(response, timeout).await {
            Ok(Some(chunk)) => chunk,
            Ok(None) | Err(_) if reader.is_complete() => return Ok(()),
            Ok(None) => {
                let detail = "the stream ended before the answer did; try again";
                return Err(CallFault::new(Failure::Truncated, detail));
            }
            Err(fault) => return Err(fault),
        };
        bytes += chunk.len();
        if bytes > ANSWER_BYTES_MAX {
            return Err(too_large());
        }
        parser.feed(&chunk, |event| reader.event(event, sink))?;
        timeout.has_come(reader.content_bytes());
        if reader.has_ended() {
            let _ = tokio::time::timeout(DRAIN, async { while let Ok(Some(_)) = response.chunk().await {} }).await;
            return Ok(());
        }
    }
}

async fn read_whole(
    response: &mut HttpResponse,
    timeout: &mut IdleTimeout<'_>,
    bytes_max: usize,
) -> Result<Vec<u8>, CallFault> {
    let mut body = Vec::new();
    let mut content_bytes = 0;
    while let Some(chunk) = next(response, timeout).await? {
        body.extend_from_slice(&chunk);
        // Some servers send blanks to keep the connection alive until the answer is there.
        content_bytes += chunk.iter().filter(|byte| !byte.is_ascii_whitespace()).count();
        timeout.has_come(content_bytes);
        if body.len() > bytes_max {
            return Err(too_large());
        }
    }
    Ok(body)
}

/// As much of a body as comes and fits.
async fn read_start(response: &mut HttpResponse, timeout: &mut IdleTimeout<'_>, bytes_max: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = next(response, timeout).await {
        body.extend_from_slice(&chunk);
        timeout.has_come(body.len());
        if body.len() >= bytes_max {
            body.truncate(bytes_max);
            break;
        }
    }
    body
}

async fn next(response: &mut HttpResponse, timeout: &mut IdleTimeout<'_>) -> Result<Option<bytes::Bytes>, CallFault> {
    let come = timeout.with(response.chunk()).await;
    if come.is_err() {
        response.give_up();
    }
    come?.map_err(|error| {
        let detail = format!("the connection broke in the middle of the answer ({}); try again", cause(&error));
        CallFault::new(Failure::Network, detail)
    })
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

impl From<sse::TooLarge> for CallFault {
    fn from(_: sse::TooLarge) -> Self {
        too_large()
    }
}

fn too_large() -> CallFault {
    CallFault::new(Failure::TooLarge, format!("the answer is larger than {} MiB", ANSWER_BYTES_MAX >> 20))
}

/// The innermost reason, which is the one that says something.
fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    causes(error).last().unwrap_or(error).to_string()
}

fn causes<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |error| (**error).source())
}

/// Whether the server said, over HTTP/2, that it did not process the request: it refused this request, or closes the
/// connection without an error. The texts are those of h2, and a test checks them.
fn was_refused(error: &hyper::Error) -> bool {
    causes(error).any(|error| {
        let words = error.to_string();
        words == "stream error received: refused stream before processing any application logic"
            || words.starts_with("connection error received: not a result of an error")
    })
}

/// Adds to an error that the request went through a proxy, which may be the cause.
fn through(fault: CallFault, proxy: &str) -> CallFault {
    CallFault { detail: format!("{}; it was asked for through the proxy `{proxy}`", fault.detail), ..fault }
}

/// A refusal that came through a proxy, which may have been its own.
fn passed_on(fault: CallFault, status: u16, proxy: &str) -> CallFault {
    match status {
        407 => refused_by(proxy, status),
        502..=504 => through(fault, proxy),
        _ => fault,
    }
}

/// The error for a refusal by the proxy itself.
fn refused_by(proxy: &str, status: u16) -> CallFault {
    let (failure, advice) = match status {
        407 => (
            Failure::Setup,
            "it wants a name and a password, or others; write `NAME:PASSWORD@` before its host in `HTTPS_PROXY`, \
             `HTTP_PROXY` or `ALL_PROXY`",
        ),
        408 | 429 | 500..=599 => (Failure::Network, "try later, or ask the proxy's operator"),
        _ => (Failure::Setup, "ask the proxy's operator to let this host through, or name the host in `NO_PROXY`"),
    };
    CallFault::new(failure, format!("the proxy `{proxy}` answered with HTTP {status}; {advice}"))
}

fn unreachable_host(broken: &SendError, endpoint: &Endpoint, proxy: Option<String>) -> CallFault {
    let place = endpoint.host().to_str().unwrap_or_default();
    let (what, cause) = match broken {
        SendError::Connect(ConnectError::Setup(words)) => return CallFault::new(Failure::Setup, words.clone()),
        SendError::Connect(ConnectError::Refused(status)) => return refused_by(&proxy.unwrap_or_default(), *status),
        SendError::Connect(ConnectError::Failed(trouble)) => ("cannot be reached", cause(&**trouble)),
        SendError::Sent { error, .. } if error.is_parse() => ("answered with what is not HTTP", cause(error)),
        SendError::Sent { error, .. } if error.is_timeout() => ("has gone silent", cause(error)),
        SendError::Sent { error, .. } => ("closed the connection without an answer", cause(error)),
    };
    let by = proxy.as_ref().map(|proxy| format!(", asked through the proxy `{proxy}`,")).unwrap_or_default();
    let advice = if cause.contains("certificate") {
        "behind a proxy that inspects TLS, name its certificates in SSL_CERT_FILE"
    } else if endpoint.is_loopback() {
        "is the server running, and is `base_url` right?"
    } else if proxy.is_some() {
        "does the proxy run, and is its address right? Hosts in `NO_PROXY` are reached without it"
    } else {
        "check the network and `base_url`; behind a proxy, name it in `HTTPS_PROXY`"
    };
    CallFault::new(Failure::Network, format!("`{place}`{by} {what} ({cause}); {advice}"))
}

#[cfg(test)]
mod tests;
