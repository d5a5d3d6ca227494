//! The only way out of a browser: a proxy that resolves each host once, checks its addresses and connects to those.
//!
//! Every request of every page, frame and worker comes through here, redirects and web sockets too, because Chromium's network has
//! nothing else in it. Chromium resolves no names, so the address that was checked is the address that is connected to.
//!
//! Each context has a proxy address of its own, so a request is judged by the rules of its agent, reaches the private host of its own
//! pages only, and a refusal is told to the agent whose page was refused.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use max_team_core::limits::BROWSER_CONNECTIONS_MAX;
use max_team_sandbox::{ProxyRequest, is_public};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::devtools::lock;
use super::pages::Context;
use crate::network::{Admission, AdmitFuture, Lookup, serve};
use crate::web::{PrivateAddress, bare, is_host_opened};

/// Numbers of the addresses that contexts have in a network of their own: `127.0.0.2` and up.
const PROXIES_MAX: u32 = 0xff_fffd;

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
    /// The address of the first listener: `0.0.0.0` in a network that has nothing else in it.
    first: OnceLock<SocketAddr>,
    proxies: AtomicU32,
    /// The contexts by the addresses that their connections come in by.
    contexts: Mutex<HashMap<SocketAddr, Arc<Context>>>,
}

impl Guard {
    pub(super) fn new(lookup: Lookup, private: &[String]) -> Self {
        Self {
            lookup,
            private: private.to_vec(),
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
    async fn admit_page(&self, context: Option<&Context>, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
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
        let found = self.lookup.addresses(host).await?;
        // One private address among public ones is a trap as well.
        match found.iter().find(|address| !is_public(**address)) {
            Some(own) if !is_judged && !is_host_opened(&self.private, host, Some(port)) => {
                Err(PrivateAddress { host: bare(host).to_owned(), address: *own }.to_string())
            }
            _ => Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect()),
        }
    }

    /// Serves a socket until `end` fires.
    pub(super) async fn serve(self: Arc<Self>, listener: TcpListener, end: CancellationToken) {
        serve(self, listener, BROWSER_CONNECTIONS_MAX, end).await;
    }
}

impl Admission for Guard {
    fn admit<'a>(&'a self, request: &'a ProxyRequest, proxy: Option<SocketAddr>) -> AdmitFuture<'a> {
        let context = proxy.and_then(|proxy| lock(&self.contexts).get(&proxy).cloned());
        Box::pin(async move {
            let admitted = self.admit_page(context.as_deref(), &request.host, request.port).await;
            let addresses =
                admitted.inspect_err(|words| context.iter().for_each(|context| context.note(words.clone())))?;
            Ok(addresses.into_iter().map(self.lookup.reach).collect())
        })
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
        let lookup = Lookup::by(Arc::new(find));
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
