//! The connections to one host: idle ones, and HTTP/2 connections that requests share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::KEEP_ALIVE;
use super::h1::{Connection, H1};
use super::h2::SharedH2;

/// Idle connections that are kept; further ones are closed.
const KEPT_MAX: usize = 1_024;
/// Shared connections that are kept. When all their seats are taken, further requests wait within them.
pub(super) const SHARED_MAX: usize = 64;

/// The longest wait for the number of seats: a server says it as soon as it accepts a connection.
pub(super) const SETTINGS_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that the server has closed is noticed only after the runtime has polled for events. A connection that
/// was idle for at least this long is checked after such a poll.
const RESTED: Duration = Duration::from_secs(1);

/// The connections to one host.
#[derive(Default)]
pub(crate) struct HostPool {
    kept: Mutex<HostConnections>,
    first: tokio::sync::Mutex<()>,
    end: CancellationToken,
}

#[derive(Default)]
pub(super) struct HostConnections {
    pub(super) idle: Vec<IdleConnection>,
    /// Oldest first: requests use the oldest with a free seat, so that newer ones fall idle and are closed when there
    /// are fewer requests.
    shared: Vec<SharedH2>,
    /// How many shared connections there have been.
    number: u64,
    /// How many connections could not be made.
    pub(super) failed: u64,
    /// How many requests found no free seat; it spreads them over the connections.
    behind: usize,
    /// Whether the other side is known to take one request at a time.
    pub(super) one_at_a_time: bool,
    /// Whether a task runs that closes expired connections.
    pub(super) is_swept: bool,
}

/// A connection that no request uses.
pub(super) struct IdleConnection {
    line: Box<H1>,
    since: Instant,
    /// When it expires.
    until: Instant,
}

/// The result of a search for a seat.
enum SeatSearch {
    Line(Connection),
    /// The number of seats is about to be known.
    Soon(u64, watch::Receiver<bool>),
    Nothing,
}

impl std::fmt::Debug for HostPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").field("idle", &self.kept().idle.len()).finish_non_exhaustive()
    }
}

impl HostPool {
    /// A host without connections; its tasks end with `end`.
    pub(super) fn new(end: CancellationToken) -> Self {
        Self { end, ..Self::default() }
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, HostConnections> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An existing connection: of the idle ones the last used, which the server is least likely to have closed.
    pub(super) async fn take(&self) -> Option<Connection> {
        if let Some(line) = self.seat().await {
            return Some(line);
        }
        loop {
            let IdleConnection { mut line, since, until } = self.kept().idle.pop()?;
            let now = Instant::now();
            if now >= until {
                continue;
            }
            if now >= since + RESTED {
                tokio::task::yield_now().await;
            }
            if line.is_alive().await {
                return Some(Connection::H1(line));
            }
        }
    }

    /// Until a connection stands, it is unknown whether the server takes many requests over one. So the request that
    /// gets this guard connects, and the others wait for it instead of connecting, too. If it fails, all of them
    /// connect at once, so that they do not fail one after another.
    pub(super) async fn first(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let failed = {
            let kept = self.kept();
            if kept.one_at_a_time {
                return None;
            }
            kept.failed
        };
        let first = self.first.lock().await;
        let kept = self.kept();
        (!kept.one_at_a_time && kept.failed == failed).then_some(first)
    }

    /// A seat on a shared connection, also one behind others if no more connections are allowed. Waits while the
    /// number of seats is unknown; `None` if the caller has to connect.
    pub(super) async fn seat(&self) -> Option<Connection> {
        loop {
            let found = self.kept().seat();
            match found {
                SeatSearch::Line(line) => return Some(line),
                SeatSearch::Nothing => return None,
                SeatSearch::Soon(number, mut heard) => {
                    let told = tokio::time::timeout(SETTINGS_TIMEOUT, heard.wait_for(|heard| *heard)).await;
                    if !told.is_ok_and(|told| told.is_ok()) && self.forget(Some(number)) {
                        // Requests that wait in `first` now connect by themselves.
                        self.kept().failed += 1;
                    }
                }
            }
        }
    }

    /// Shares a new connection, and takes its first seat.
    pub(super) fn share(self: &Arc<Self>, mut shared: SharedH2) -> Connection {
        let mut kept = self.kept();
        kept.number += 1;
        shared.number = kept.number;
        let many = shared.seat().unwrap_or_else(|| shared.behind());
        if kept.shared.len() < SHARED_MAX {
            kept.shared.push(shared);
        }
        drop(kept);
        self.see_to_sweeping();
        Connection::H2(many)
    }

    /// Stops using a shared connection, so that the next request gets another one. Returns whether it was in use.
    pub(super) fn forget(&self, number: Option<u64>) -> bool {
        let mut kept = self.kept();
        let known = kept.shared.len();
        kept.shared.retain(|shared| Some(shared.number) != number);
        kept.shared.len() < known
    }

    /// Keeps an idle connection for the next request until it expires.
    pub(super) fn keep(self: &Arc<Self>, line: Box<H1>, kept_for: Duration) {
        {
            let mut kept = self.kept();
            if kept.idle.len() < KEPT_MAX && !kept_for.is_zero() {
                let since = Instant::now();
                kept.idle.push(IdleConnection { line, since, until: since + kept_for });
            }
        }
        self.see_to_sweeping();
    }

    /// Starts the task that closes expired connections, unless it runs; it ends when no connection is left.
    fn see_to_sweeping(self: &Arc<Self>) {
        if std::mem::replace(&mut self.kept().is_swept, true) {
            return;
        }
        let host = Arc::downgrade(self);
        tokio::spawn(self.end.clone().run_until_cancelled_owned(async move {
            loop {
                tokio::time::sleep(KEEP_ALIVE).await;
                if host.upgrade().is_none_or(|host| host.kept().sweep()) {
                    return;
                }
            }
        }));
    }
}

impl HostConnections {
    fn seat(&mut self) -> SeatSearch {
        self.shared.retain(|shared| !shared.is_closed());
        if let Some(many) = self.shared.iter_mut().find_map(SharedH2::seat) {
            return SeatSearch::Line(Connection::H2(many));
        }
        if let Some((number, heard)) = self.shared.iter().find_map(|shared| Some((shared.number, shared.unheard()?))) {
            return SeatSearch::Soon(number, heard);
        }
        if self.shared.len() < SHARED_MAX {
            return SeatSearch::Nothing;
        }
        self.behind = self.behind.wrapping_add(1);
        let at = self.behind % SHARED_MAX;
        self.shared.get_mut(at).map_or(SeatSearch::Nothing, |shared| SeatSearch::Line(Connection::H2(shared.behind())))
    }

    /// Closes expired connections; returns whether none is left.
    fn sweep(&mut self) -> bool {
        let now = Instant::now();
        self.idle.retain(|idle| now < idle.until);
        self.shared.retain(|shared| shared.used + KEEP_ALIVE > now && !shared.is_closed());
        self.is_swept = !(self.idle.is_empty() && self.shared.is_empty());
        !self.is_swept
    }
}
