//! The addresses of host names.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use max_team_core::limits::REMOTE_LOOKUPS_MAX;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::web::bare;

type LookupFn = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Finds the addresses of a host name, and reaches them.
#[derive(Clone)]
pub(crate) struct Lookup {
    find: Arc<LookupFn>,
    /// What is connected to for an address: in tests, a server on this machine.
    pub(crate) reach: fn(SocketAddr) -> SocketAddr,
    turns: Arc<Semaphore>,
}

impl Default for Lookup {
    fn default() -> Self {
        Self::by(Arc::new(|host: &str| Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())))
    }
}

impl Lookup {
    pub(crate) fn by(find: Arc<LookupFn>) -> Self {
        Self { find, reach: |address| address, turns: Arc::new(Semaphore::new(REMOTE_LOOKUPS_MAX)) }
    }

    /// The addresses of a host, at least one, or why there are none.
    pub(crate) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        let bare = bare(host);
        let found = match bare.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.look_up(bare).await.map_err(|error| format!("`{bare}` cannot be found: {error}"))?,
        };
        if found.is_empty() { Err(format!("`{bare}` has no address")) } else { Ok(found) }
    }

    async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        // The system's look-up holds a thread until it ends, also when its caller no longer waits.
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(io::Error::other)?;
        let (find, host) = (Arc::clone(&self.find), host.to_owned());
        spawn_blocking(move || {
            let found = find(&host);
            drop(turn);
            found
        })
        .await
        .map_err(io::Error::other)?
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookup")
    }
}
