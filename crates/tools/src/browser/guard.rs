//! The only way out of a browser: a proxy that resolves each host once, checks its addresses and connects to those.
//!
//! Every request of every page, frame and worker comes through here, redirects and web sockets too, because Chromium's network has
//! nothing else in it. Chromium resolves no names, so the address that was checked is the address that is connected to.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use max_team_core::limits::{BROWSER_CONNECTIONS_MAX, REMOTE_LOOKUPS_MAX};
use max_team_sandbox::{ProxyRequest, is_public};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::devtools::lock;
use crate::web::is_host_opened;

/// Bytes of a request before its body.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a request may take to be made.
const HEAD_WAIT: Duration = Duration::from_secs(60);
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// Refusals that are kept until an action tells them.
const REFUSALS_MAX: usize = 16;

type LookupFn = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Finds the addresses of a host name.
#[derive(Clone)]
pub(super) struct Lookup(pub(super) Arc<LookupFn>);

impl Default for Lookup {
    fn default() -> Self {
        Self(Arc::new(|host| Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())))
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookup")
    }
}

/// Decides which addresses a browser reaches.
#[derive(Debug)]
pub(super) struct Guard {
    lookup: Lookup,
    /// Hosts that may be private, with or without a port.
    private: Vec<String>,
    lookups: Arc<Semaphore>,
    refusals: Mutex<VecDeque<String>>,
}

impl Guard {
    pub(super) fn new(lookup: Lookup, private: &[String]) -> Self {
        let lookups = Arc::new(Semaphore::new(REMOTE_LOOKUPS_MAX));
        Self { lookup, private: private.to_vec(), lookups, refusals: Mutex::default() }
    }

    /// The addresses of a host that may be connected to, or why there are none.
    pub(super) async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let bare = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        let found = match bare.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.look_up(bare).await.map_err(|error| format!("`{bare}` cannot be found: {error}"))?,
        };
        // One private address among public ones is a trap as well.
        match found.iter().find(|address| !is_public(**address)) {
            Some(own) if !is_host_opened(&self.private, bare, Some(port)) => Err(format!(
                "`{bare}` is `{own}`, on this machine or in a private network; only the user can open it, with \
                 `tools.private_hosts`"
            )),
            _ if found.is_empty() => Err(format!("`{bare}` has no address")),
            _ => Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect()),
        }
    }

    async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        // The system's look-up holds a thread until it ends, also when its caller no longer waits.
        let turn = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
        let (lookup, host) = (self.lookup.clone(), host.to_owned());
        spawn_blocking(move || {
            let found = (lookup.0)(&host);
            drop(turn);
            found
        })
        .await
        .map_err(io::Error::other)?
    }

    /// The refusals since the last call.
    pub(super) fn take_refusals(&self) -> Vec<String> {
        lock(&self.refusals).drain(..).collect()
    }

    fn note(&self, words: &str) {
        let mut refusals = lock(&self.refusals);
        if refusals.len() < REFUSALS_MAX && !refusals.iter().any(|known| known == words) {
            refusals.push_back(words.to_owned());
        }
    }

    /// Serves a socket until `end` fires.
    pub(super) async fn serve(self: Arc<Self>, listener: TcpListener, end: CancellationToken) {
        let listener = listener.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(listener));
        // Without its proxy a browser reaches nothing.
        let Ok(listener) = listener else { return };
        let places = Arc::new(Semaphore::new(BROWSER_CONNECTIONS_MAX));
        loop {
            let accepted = tokio::select! {
                () = end.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((client, _)) = accepted else { continue };
            // A connection too many is closed.
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            let (guard, end) = (Arc::clone(&self), end.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = end.cancelled() => {}
                    // Chromium sees that its connection has ended; the error matters nowhere else.
                    _ = guard.pass(client) => {}
                }
                drop(place);
            });
        }
    }

    /// Takes one request and passes on what follows, both ways.
    async fn pass(&self, mut client: TcpStream) -> io::Result<()> {
        let Ok(head) = timeout(HEAD_WAIT, head(&mut client)).await else { return Ok(()) };
        let Some((head, rest)) = head? else { return Ok(()) };
        let Some(request) = ProxyRequest::read(&head) else {
            return client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        };
        let addresses = match self.addresses(&request.host, request.port).await {
            Ok(addresses) => addresses,
            Err(words) => {
                self.note(&words);
                return refuse(&mut client, "403 Forbidden", &words).await;
            }
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
        match &request.forward {
            Some(head) => server.write_all(head).await?,
            None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
        }
        server.write_all(&rest).await?;
        copy_bidirectional(&mut client, &mut server).await.map(drop)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_public_and_named_hosts_are_reached() {
        let lookup = Lookup(Arc::new(|host| {
            let texts: &[&str] = match host {
                "public.example" => &["93.184.216.34"],
                "mixed.example" => &["93.184.216.34", "10.0.0.1"],
                "mine.example" => &["192.168.1.5"],
                _ => &[],
            };
            Ok(texts.iter().map(|text| text.parse().unwrap()).collect())
        }));
        let named = ["mine.example:8080", "127.0.0.1:9000", "[::1]:9000"].map(str::to_owned);
        let guard = Guard::new(lookup, &named);
        let table = [
            ("public.example", 443, true),
            ("mixed.example", 443, false),
            ("mine.example", 8080, true),
            ("mine.example", 80, false),
            ("127.0.0.1", 9000, true),
            ("127.0.0.1", 9001, false),
            ("[::1]", 9000, true),
            ("[::1]", 9001, false),
            ("169.254.169.254", 80, false),
            ("unknown.example", 80, false),
        ];
        for (host, port, is_open) in table {
            let found = guard.addresses(host, port).await;
            assert_eq!(found.is_ok(), is_open, "{host}:{port} {found:?}");
        }
    }
}
