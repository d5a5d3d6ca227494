//! One connection, and what comes over it.
//!
//! A connection of HTTP/1.1 is worked by whoever uses it, within the same task: the usual way, a task for each
//! connection that hands every piece over, wakes two tasks per piece, which is dear where a thousand agents talk. One of
//! HTTP/2 has many users, and a task of its own.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::Place;
use super::road::{Forward, Io, Reached};
use crate::body::Outgoing;
use crate::endpoint::Endpoint;

type Connection = http1::Connection<Box<dyn Io>, Outgoing>;

/// A connection that one request at a time has for itself.
pub(super) struct One {
    sender: http1::SendRequest<Outgoing>,
    /// Gone when the connection is.
    connection: Option<Connection>,
    forward: Option<Forward>,
}

impl One {
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

/// A way to ask.
pub(super) enum Line {
    One(Box<One>),
    /// One that is everybody's, and its number among those to this host.
    Many(http2::SendRequest<Outgoing>, u64),
}

impl Line {
    /// Begins to talk to a host that was reached.
    pub(super) async fn begin(reached: Reached) -> hyper::Result<Self> {
        let Reached { io, speaks_two, forward } = reached;
        if speaks_two {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            let (sender, connection) = builder.timer(TokioTimer::new()).handshake(io).await?;
            // How it ended, each of its users hears.
            tokio::spawn(async { drop(connection.await) });
            return Ok(Self::Many(sender, 0));
        }
        let (sender, connection) = http1::handshake(io).await?;
        Ok(Self::One(Box::new(One { sender, connection: Some(connection), forward })))
    }

    /// Its number, if others have it too.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::One(_) => None,
            Self::Many(_, number) => Some(*number),
        }
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn ask(
        self,
        endpoint: &Endpoint,
        headers: HeaderMap,
        body: Outgoing,
        home: &Arc<Place>,
    ) -> hyper::Result<Reply> {
        match self {
            Self::One(mut line) => {
                let request = line.request(endpoint, headers, body);
                drive(&mut line.connection, line.sender.ready()).await?;
                let asked = line.sender.send_request(request);
                let response = drive(&mut line.connection, asked).await?;
                Ok(Reply { response, line: Some(line), home: Arc::clone(home) })
            }
            Self::Many(mut sender, _) => {
                let response = sender.send_request(post(endpoint.uri().clone(), headers, body)).await?;
                Ok(Reply { response, line: None, home: Arc::clone(home) })
            }
        }
    }
}

/// Waits for something that only this connection brings, and works it meanwhile.
async fn drive<T>(connection: &mut Option<Connection>, next: impl Future<Output = T>) -> T {
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

fn work(connection: &mut Option<Connection>, cx: &mut std::task::Context<'_>) {
    if let Some(working) = connection
        && pin!(working).poll(cx).is_ready()
    {
        // Whoever waits hears why; with the connection, what they wait for is dropped.
        *connection = None;
    }
}

/// A response on its way.
pub(crate) struct Reply {
    response: Response<Incoming>,
    line: Option<Box<One>>,
    home: Arc<Place>,
}

impl Reply {
    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next piece of the body; none at its end.
    pub(crate) async fn chunk(&mut self) -> hyper::Result<Option<Bytes>> {
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
                    if let Some(line) = self.line.take()
                        && line.connection.is_some()
                        && line.sender.is_ready()
                    {
                        self.home.keep(line);
                    }
                    return Ok(None);
                }
            }
        }
    }
}
