//! The only way out of a browser: a proxy that resolves each host once, checks its addresses and connects to those.
//!
//! Every request of every page, frame and worker comes through here, redirects and web sockets too, because Chromium's network has
//! nothing else in it. Chromium resolves no names, so the address that was checked is the address that is connected to.
//!
//! Each context has a proxy address of its own, so a request is judged by the rules of its agent, reaches the private host of its own
//! pages only, and a refusal is told to the agent whose page was refused.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use max_team_core::limits::{BROWSER_CONNECTIONS_MAX, REMOTE_LOOKUPS_MAX};
use max_team_sandbox::{ProxyRequest, is_public};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::devtools::lock;
use super::pages::Context;
use crate::web::{PrivateAddress, bare, is_host_opened};

/// Bytes of a request before its body.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a request may take to be made.
const HEAD_WAIT: Duration = Duration::from_secs(60);
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// Numbers of the addresses that contexts have in a network of their own: `127.0.0.2` and up.
const PROXIES_MAX: u32 = 0xff_fffd;

type LookupFn = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Finds the addresses of a host name, and reaches them.
#[derive(Clone)]
pub(super) struct Lookup {
    pub(super) find: Arc<LookupFn>,
    /// What is connected to for an address: in tests, a server on this machine.
    pub(super) reach: fn(SocketAddr) -> SocketAddr,
}

impl Default for Lookup {
    fn default() -> Self {
        let find = |host: &str| Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect());
        Self { find: Arc::new(find), reach: |address| address }
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookup")
    }
}

/// The proxy address of one context. Where it has a listener of its own, that ends with this.
#[derive(Debug)]
pub(super) struct ContextProxy {
    pub(super) address: SocketAddr,
    _listener: Option<DropGuard>,
}

/// Decides which addresses a browser reaches.
#[derive(Debug)]
pub(super) struct Guard {
    lookup: Lookup,
    /// Hosts that may be private, with or without a port.
    private: Vec<String>,
    lookups: Arc<Semaphore>,
    /// The address of the first listener: `0.0.0.0` in a network that has nothing else in it.
    first: OnceLock<SocketAddr>,
    proxies: AtomicU32,
    /// The contexts by the addresses that their connections come in by.
    contexts: Mutex<HashMap<SocketAddr, Arc<Context>>>,
}

impl Guard {
    pub(super) fn new(lookup: Lookup, private: &[String]) -> Self {
        let lookups = Arc::new(Semaphore::new(REMOTE_LOOKUPS_MAX));
        Self {
            lookup,
            private: private.to_vec(),
            lookups,
            first: OnceLock::new(),
            proxies: AtomicU32::new(0),
            contexts: Mutex::default(),
        }
    }

    /// Notes the first listener, before it is served.
    pub(super) fn listens_at(&self, listener: &TcpListener) {
        if let Ok(address) = listener.local_addr() {
            // There is one.
            let _ = self.first.set(address);
        }
    }

    /// A proxy address for a context, served until `end` fires or the proxy is dropped.
    pub(super) fn open_proxy(self: &Arc<Self>, end: &CancellationToken) -> io::Result<ContextProxy> {
        let first = self.first.get().ok_or(io::ErrorKind::NotConnected)?;
        if first.ip().is_unspecified() {
            let number = self.proxies.fetch_add(1, Ordering::Relaxed) % PROXIES_MAX;
            let ip = Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + 1 + number);
            return Ok(ContextProxy { address: SocketAddr::new(ip.into(), first.port()), _listener: None });
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let end = end.child_token();
        tokio::spawn(Arc::clone(self).serve(listener, end.clone()));
        Ok(ContextProxy { address, _listener: Some(end.drop_guard()) })
    }

    /// Judges connections that come in by this address by that context. `None`: those of Chromium's own context.
    pub(super) fn judge_by(&self, proxy: Option<&ContextProxy>, context: &Arc<Context>) {
        if let Some(address) = proxy.map(|proxy| proxy.address).or_else(|| self.own_proxy()) {
            lock(&self.contexts).insert(address, Arc::clone(context));
        }
    }

    pub(super) fn forget(&self, context: &Arc<Context>) {
        lock(&self.contexts).retain(|_, known| !Arc::ptr_eq(known, context));
    }

    /// The address that Chromium itself is told.
    fn own_proxy(&self) -> Option<SocketAddr> {
        let first = self.first.get()?;
        Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), first.port()))
    }

    /// The addresses that a page of a context may connect to, or why there are none.
    async fn admit(&self, context: Option<&Context>, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        if let Some(words) = context.and_then(|context| context.denial(host, port)) {
            return Err(words);
        }
        let is_judged = context.is_some_and(|context| context.has_judged_local(host, port));
        let found = self.addresses(host, port, is_judged).await?;
        let is_private = found.iter().any(|address| !is_public(address.ip()));
        if is_private && !context.is_some_and(|context| context.is_at_home(host)) {
            return Err(format!(
                "`{host}` is in a private network, and only its own pages reach it; this page is another's"
            ));
        }
        Ok(found)
    }

    /// The addresses of a host that may be connected to, or why there are none. `is_judged`: the policy has opened it by its name.
    pub(super) async fn addresses(&self, host: &str, port: u16, is_judged: bool) -> Result<Vec<SocketAddr>, String> {
        let bare = bare(host);
        let found = match bare.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.look_up(bare).await.map_err(|error| format!("`{bare}` cannot be found: {error}"))?,
        };
        // One private address among public ones is a trap as well.
        match found.iter().find(|address| !is_public(**address)) {
            Some(own) if !is_judged && !is_host_opened(&self.private, bare, Some(port)) => {
                Err(PrivateAddress { host: bare.to_owned(), address: *own }.to_string())
            }
            _ if found.is_empty() => Err(format!("`{bare}` has no address")),
            _ => Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect()),
        }
    }

    async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        // The system's look-up holds a thread until it ends, also when its caller no longer waits.
        let turn = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
        let (lookup, host) = (self.lookup.clone(), host.to_owned());
        spawn_blocking(move || {
            let found = (lookup.find)(&host);
            drop(turn);
            found
        })
        .await
        .map_err(io::Error::other)?
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
            let context = client.local_addr().ok().and_then(|proxy| lock(&self.contexts).get(&proxy).cloned());
            let (guard, end) = (Arc::clone(&self), end.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = end.cancelled() => {}
                    // Chromium sees that its connection has ended; the error matters nowhere else.
                    _ = guard.pass(client, context) => {}
                }
                drop(place);
            });
        }
    }

    /// Takes one request and passes on what follows, both ways.
    async fn pass(&self, mut client: TcpStream, context: Option<Arc<Context>>) -> io::Result<()> {
        let Ok(head) = timeout(HEAD_WAIT, head(&mut client)).await else { return Ok(()) };
        let Some((head, rest)) = head? else { return Ok(()) };
        let Some(request) = ProxyRequest::read(&head) else {
            return client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        };
        let addresses = match self.admit(context.as_deref(), &request.host, request.port).await {
            Ok(addresses) => addresses,
            Err(words) => {
                context.iter().for_each(|context| context.note(words.clone()));
                return refuse(&mut client, "403 Forbidden", &words).await;
            }
        };
        let addresses: Vec<SocketAddr> = addresses.into_iter().map(self.lookup.reach).collect();
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
        let find = |host: &str| {
            let texts: &[&str] = match host {
                "public.example" => &["93.184.216.34"],
                "mixed.example" => &["93.184.216.34", "10.0.0.1"],
                "mine.example" => &["192.168.1.5"],
                _ => &[],
            };
            Ok(texts.iter().map(|text| text.parse().unwrap()).collect())
        };
        let lookup = Lookup { find: Arc::new(find), ..Lookup::default() };
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
            let found = guard.addresses(host, port, false).await;
            assert_eq!(found.is_ok(), is_open, "{host}:{port} {found:?}");
        }
    }
}
