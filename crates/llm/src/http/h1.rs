//! One connection, and the responses that come over it.
//!
//! An HTTP/1.1 connection is driven by the task that uses it. The usual way, one task per connection that hands every
//! piece over, wakes two tasks per piece, which is expensive with a thousand agents. An HTTP/2 connection has many
//! users, and a task of its own.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1};
use tokio::sync::OwnedSemaphorePermit;

use super::connector::{Forward, Io};
use super::h2::{H2, ResponseWait};
use super::host::HostPool;
use super::{KEEP_ALIVE, SendError};
use crate::body::Outgoing;
use crate::endpoint::Endpoint;

/// A connection is dropped so long before the server will close it, if the server says when: a request sent at that
/// moment may be lost.
const MARGIN: Duration = Duration::from_secs(1);

type H1Driver = http1::Connection<Box<dyn Io>, Outgoing>;

/// A connection that carries one request at a time.
pub(super) struct H1 {
    sender: http1::SendRequest<Outgoing>,
    /// `None` once the connection has ended.
    connection: Option<H1Driver>,
    forward: Option<Forward>,
}

impl H1 {
    /// Begins to talk to a host that was reached.
    pub(super) async fn begin(io: Box<dyn Io>, forward: Option<Forward>) -> hyper::Result<Box<Self>> {
        let (sender, connection) = http1::handshake(io).await?;
        Ok(Box::new(Self { sender, connection: Some(connection), forward }))
    }

    /// Whether it can be used again: the other side may have closed it while it lay idle.
    pub(super) async fn is_alive(&mut self) -> bool {
        std::future::poll_fn(|cx| {
            work(&mut self.connection, cx);
            Poll::Ready(())
        })
        .await;
        self.connection.is_some() && self.sender.is_ready()
    }

    fn request(&self, endpoint: &Endpoint, mut headers: HeaderMap, body: Outgoing) -> Request<Outgoing> {
        headers.insert(HOST, endpoint.host().clone());
        let uri = match &self.forward {
            None => endpoint.path().clone(),
            Some(forward) => {
                if let Some(authorization) = &forward.authorization {
                    headers.insert(PROXY_AUTHORIZATION, authorization.clone());
                }
                endpoint.uri().clone()
            }
        };
        post(uri, headers, body)
    }
}

/// Put together by hand: a builder would go through the headers one by one, for each request of each agent.
fn post(uri: Uri, headers: HeaderMap, body: Outgoing) -> Request<Outgoing> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request
}

/// A connection over which one request is sent.
pub(super) enum Connection {
    H1(Box<H1>),
    H2(H2),
}

impl Connection {
    /// The number of the connection, if it is shared.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::H1(_) => None,
            Self::H2(many) => Some(many.number),
        }
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(
        self,
        endpoint: &Endpoint,
        headers: HeaderMap,
        body: Outgoing,
        home: &Arc<HostPool>,
    ) -> Result<HttpResponse, SendError> {
        let home = Arc::clone(home);
        match self {
            Self::H1(mut line) => {
                let request = line.request(endpoint, headers, body);
                let ready = drive(&mut line.connection, line.sender.ready()).await;
                ready.map_err(|error| SendError::Sent { error, is_unread: true })?;
                let asked = line.sender.try_send_request(request);
                let response = drive(&mut line.connection, asked).await.map_err(broken)?;
                Ok(HttpResponse { response, line: Some(line), seat: None, wait: None, home })
            }
            Self::H2(mut many) => {
                let request = post(endpoint.uri().clone(), headers, body);
                let mut wait = many.wait(&home);
                let response = many.sender.try_send_request(request).await.map_err(broken)?;
                wait.close();
                Ok(HttpResponse { response, line: None, seat: many.seat, wait: Some(wait), home })
            }
        }
    }
}

/// hyper gives the request back only if nothing of it was sent.
fn broken(mut failed: TrySendError<Request<Outgoing>>) -> SendError {
    let is_unread = failed.take_message().is_some();
    SendError::Sent { error: failed.into_error(), is_unread }
}

/// Waits for `next`, and meanwhile drives the connection that it depends on.
async fn drive<T>(connection: &mut Option<H1Driver>, next: impl Future<Output = T>) -> T {
    let mut next = pin!(next);
    std::future::poll_fn(|cx| {
        if let Poll::Ready(come) = next.as_mut().poll(cx) {
            return Poll::Ready(come);
        }
        work(connection, cx);
        next.as_mut().poll(cx)
    })
    .await
}

fn work(connection: &mut Option<H1Driver>, cx: &mut std::task::Context<'_>) {
    if let Some(working) = connection
        && pin!(working).poll(cx).is_ready()
    {
        // The request that waits on it learns the reason, because its channel is dropped with the connection.
        *connection = None;
    }
}

/// A response on its way.
pub(crate) struct HttpResponse {
    response: Response<Incoming>,
    line: Option<Box<H1>>,
    seat: Option<OwnedSemaphorePermit>,
    /// Set if the connection is shared.
    wait: Option<ResponseWait>,
    home: Arc<HostPool>,
}

impl HttpResponse {
    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Whether a proxy has passed the request on, and may have answered itself.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.forward.is_some())
    }

    /// The next piece has taken too long.
    pub(crate) fn give_up(&self) {
        if let Some(wait) = &self.wait {
            wait.give_up();
        }
    }

    /// The next piece of the body; none at its end.
    pub(crate) async fn chunk(&mut self) -> hyper::Result<Option<Bytes>> {
        if let Some(wait) = &mut self.wait {
            wait.begin();
        }
        loop {
            let body = self.response.body_mut();
            let next = std::future::poll_fn(|cx| pin!(&mut *body).poll_frame(cx));
            let frame = match &mut self.line {
                Some(line) => drive(&mut line.connection, next).await,
                None => next.await,
            };
            match frame {
                Some(frame) => {
                    if let Ok(piece) = frame?.into_data() {
                        return Ok(Some(piece));
                    }
                }
                None => {
                    self.seat = None;
                    if let Some(line) = self.line.take()
                        && line.connection.is_some()
                        && line.sender.is_ready()
                    {
                        self.home.keep(line, kept_for(self.response.headers()));
                    }
                    return Ok(None);
                }
            }
        }
    }
}

/// How long a connection is of use: the other side may say when it closes it (`Keep-Alive: timeout=5`).
fn kept_for(headers: &HeaderMap) -> Duration {
    let said = headers.get("keep-alive").and_then(|value| value.to_str().ok());
    let seconds =
        said.and_then(|said| said.split(',').find_map(|part| part.trim().strip_prefix("timeout=")?.parse().ok()));
    seconds.map_or(KEEP_ALIVE, |seconds| Duration::from_secs(seconds).saturating_sub(MARGIN).min(KEEP_ALIVE))
}
