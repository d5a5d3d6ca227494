//! A tunnel through an HTTP proxy. If the proxy grants none, it is known by which status.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower_service::Service;

/// Bytes of a proxy's answer up to the empty line.
const HEAD_BYTES_MAX: usize = 8 * 1024;
const READ_BYTES: usize = 1_024;

type Trouble = Box<dyn Error + Send + Sync>;

/// The proxy grants no tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("HTTP {0}")]
pub(super) struct TunnelRefused(pub(super) u16);

/// Asks for a tunnel over the connections of another connector.
pub(super) struct Tunnel<C> {
    pub(super) leg: C,
    pub(super) proxy: Uri,
    pub(super) authorization: Option<HeaderValue>,
}

impl<C> Service<Uri> for Tunnel<C>
where
    C: Service<Uri>,
    C::Response: Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<Trouble>,
{
    type Response = C::Response;
    type Error = Trouble;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, Trouble>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Trouble>> {
        self.leg.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = self.leg.call(self.proxy.clone());
        let place = format!("{}:{}", to.host().unwrap_or_default(), to.port_u16().unwrap_or(443));
        let mut asked = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            asked.extend([b"Proxy-Authorization: ", authorization.as_bytes(), b"\r\n"].concat());
        }
        asked.extend(b"\r\n");
        Box::pin(async move {
            let mut io = TokioIo::new(connecting.await.map_err(Into::into)?);
            io.write_all(&asked).await?;
            io.flush().await?;
            match status(&mut io).await? {
                200..=299 => Ok(io.into_inner()),
                other => Err(TunnelRefused(other).into()),
            }
        })
    }
}

/// Reads an answer as far as the empty line; its status.
async fn status(io: &mut (impl tokio::io::AsyncRead + Unpin)) -> Result<u16, Trouble> {
    let mut head = Vec::new();
    let mut piece = [0; READ_BYTES];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = io.read(&mut piece).await?;
        if read == 0 {
            return Err("it closed the connection without an answer".into());
        }
        head.extend_from_slice(piece.get(..read).unwrap_or_default());
        if !head.starts_with(b"HTTP/1.".get(..head.len().min(7)).unwrap_or_default()) || head.len() > HEAD_BYTES_MAX {
            return Err("it answered with what is not HTTP".into());
        }
    }
    let text = String::from_utf8_lossy(&head);
    let status = text.split(' ').nth(1).and_then(|word| word.get(..3)?.parse().ok());
    status.ok_or_else(|| "it answered with what is not HTTP".into())
}
