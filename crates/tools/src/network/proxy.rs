//! A proxy for `CONNECT` and plain requests: each connection carries one request, which is admitted or refused, and what follows it.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use max_team_sandbox::ProxyRequest;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf, copy, copy_bidirectional, split,
};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio::try_join;
use tokio_util::sync::CancellationToken;

use super::body;

/// Bytes of a request before its body.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a request may take to be made.
const HEAD_WAIT: Duration = Duration::from_secs(60);
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How long nothing is accepted after an error.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(crate) type AdmitFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<SocketAddr>, String>> + Send + 'a>>;

/// Decides where a proxy connects.
pub(crate) trait Admission: Send + Sync + fmt::Debug + 'static {
    /// The addresses that a request may connect to, or why there are none. `proxy` is the address that the connection came in by.
    fn admit<'a>(&'a self, request: &'a ProxyRequest, proxy: Option<SocketAddr>) -> AdmitFuture<'a>;

    /// Bytes are passed on.
    fn passes(&self) {}
}

/// A host as the policy judges it.
pub(crate) fn target(host: &str, port: u16) -> String {
    let host = host.trim_end_matches('.');
    if matches!(port, 80 | 443) { host.to_owned() } else { format!("{host}:{port}") }
}

/// Serves a socket until `end` fires.
pub(crate) async fn serve(
    admission: Arc<dyn Admission>,
    listener: TcpListener,
    connections_max: usize,
    end: CancellationToken,
) {
    let listener = listener.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(listener));
    // Without its proxy, what is behind it reaches nothing.
    let Ok(listener) = listener else { return };
    let places = Arc::new(Semaphore::new(connections_max));
    loop {
        let accepted = tokio::select! {
            () = end.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((client, _)) = accepted else {
            // Such as too many open files, which takes a while to pass.
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // A connection too many is closed.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let (admission, end) = (Arc::clone(&admission), end.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = end.cancelled() => {}
                // The client sees that its connection has ended; the error matters nowhere else.
                _ = pass(&*admission, client) => {}
            }
            drop(place);
        });
    }
}

/// Takes one request and passes on what follows, both ways.
async fn pass(admission: &dyn Admission, mut client: TcpStream) -> io::Result<()> {
    let Ok(head) = timeout(HEAD_WAIT, head(&mut client)).await else { return Ok(()) };
    let Some((head, rest)) = head? else { return Ok(()) };
    let Some(request) = ProxyRequest::read(&head) else {
        return client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    };
    let addresses = match admission.admit(&request, client.local_addr().ok()).await {
        Ok(addresses) => addresses,
        Err(words) => return refuse(&mut client, "403 Forbidden", &words).await,
    };
    let mut server = match timeout(CONNECT, TcpStream::connect(addresses.as_slice())).await {
        Ok(Ok(server)) => server,
        Ok(Err(error)) => {
            let words = format!("`{}` cannot be reached: {error}", request.host);
            return refuse(&mut client, "502 Bad Gateway", &words).await;
        }
        Err(_) => return refuse(&mut client, "504 Gateway Timeout", "no connection in time").await,
    };
    // Small messages of web sockets are not to wait for larger ones.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let Some(plain) = &request.forward else {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        server.write_all(&rest).await?;
        return copy_bidirectional(&mut client, &mut Watched { stream: server, admission }).await.map(drop);
    };
    server.write_all(&plain.head).await?;
    let (mut from_server, mut to_server) = split(Watched { stream: server, admission });
    let (mut from_client, mut to_client) = client.split();
    let answers = async {
        copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    try_join!(body::send(plain.body, rest, &mut from_client, &mut to_server), answers).map(drop)
}

/// A connection whose bytes are noted.
struct Watched<'a> {
    stream: TcpStream,
    admission: &'a dyn Admission,
}

impl AsyncRead for Watched<'_> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.admission.passes();
        }
        read
    }
}

impl AsyncWrite for Watched<'_> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if written.is_ready() {
            self.admission.passes();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

async fn refuse(client: &mut TcpStream, status: &str, words: &str) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n");
    client.write_all(format!("{head}Content-Length: {}\r\n\r\n{words}\n", words.len() + 1).as_bytes()).await
}

/// A request up to the empty line, and the bytes that came after it.
async fn head(client: &mut TcpStream) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok(Some((bytes, rest)));
        }
        if bytes.len() > HEAD_BYTES_MAX || client.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
}
