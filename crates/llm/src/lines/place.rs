//! What is kept for one host: connections that lie idle, and those that are everybody's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::KEEP_ALIVE;
use super::line::{Line, One};
use super::shared::Shared;

/// So many idle connections are kept; what a larger crowd leaves behind is closed.
const KEPT_MAX: usize = 1_024;
/// So many connections are everybody's; a larger crowd than has seats there waits behind one another.
pub(super) const SHARED_MAX: usize = 64;

/// For how many seats there are, nobody waits longer than this: whoever takes a connection says it at once.
pub(super) const SETTINGS_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether the other side has closed a connection is known once the system was asked for news, which a busy program does
/// now and then. That is waited for with one that has lain idle for as long as this.
const RESTED: Duration = Duration::from_secs(1);

/// What is kept for one host.
#[derive(Default)]
pub(crate) struct Place {
    kept: Mutex<Kept>,
    first: tokio::sync::Mutex<()>,
    end: CancellationToken,
}

#[derive(Default)]
pub(super) struct Kept {
    pub(super) idle: Vec<Idle>,
    /// The oldest first, so that the others can be let go when the crowd is gone.
    shared: Vec<Shared>,
    /// How many of those there have been.
    number: u64,
    /// How many connections could not be made.
    pub(super) failed: u64,
    /// How many have had to wait behind others.
    behind: usize,
    /// Whether the other side is known to take one request at a time.
    pub(super) one_at_a_time: bool,
    /// Whether somebody closes what has lain too long.
    pub(super) is_swept: bool,
}

/// A connection that nobody uses.
pub(super) struct Idle {
    line: Box<One>,
    since: Instant,
    /// For as long as it is of use.
    until: Instant,
}

/// What a look for a seat comes to.
enum Found {
    Line(Line),
    /// How many seats there are is about to be known.
    Soon(u64, watch::Receiver<bool>),
    Nothing,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").field("idle", &self.kept().idle.len()).finish_non_exhaustive()
    }
}

impl Place {
    /// With nothing kept; whoever works for it ends with `end`.
    pub(super) fn new(end: CancellationToken) -> Self {
        Self { end, ..Self::default() }
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is there already; the one that was used last, which is the least likely to have been closed.
    pub(super) async fn take(&self) -> Option<Line> {
        if let Some(line) = self.seat().await {
            return Some(line);
        }
        loop {
            let Idle { mut line, since, until } = self.kept().idle.pop()?;
            let now = Instant::now();
            if now >= until {
                continue;
            }
            if now >= since + RESTED {
                tokio::task::yield_now().await;
            }
            if line.is_alive().await {
                return Some(Line::One(line));
            }
        }
    }

    /// Whether the other side takes many requests over one connection, and how many, is known when one stands. Until
    /// then everybody waits for whoever is at it, rather than connect for themselves; but once only: if nothing came of
    /// that, a crowd does not fail one after another. Given to whom the others wait for.
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

    /// A seat on a connection that is everybody's, if one is free or none is going to be.
    pub(super) async fn seat(&self) -> Option<Line> {
        loop {
            let found = self.kept().seat();
            match found {
                Found::Line(line) => return Some(line),
                Found::Nothing => return None,
                Found::Soon(number, mut heard) => {
                    let told = tokio::time::timeout(SETTINGS_TIMEOUT, heard.wait_for(|heard| *heard)).await;
                    if !told.is_ok_and(|told| told.is_ok()) && self.forget(Some(number)) {
                        // The next ones do not wait for one another in vain.
                        self.kept().failed += 1;
                    }
                }
            }
        }
    }

    /// Shares a new connection; the first seat is taken.
    pub(super) fn share(self: &Arc<Self>, mut shared: Shared) -> Line {
        let mut kept = self.kept();
        kept.number += 1;
        shared.number = kept.number;
        let many = shared.seat().unwrap_or_else(|| shared.behind());
        if kept.shared.len() < SHARED_MAX {
            kept.shared.push(shared);
        }
        drop(kept);
        self.see_to_sweeping();
        Line::Many(many)
    }

    /// Whatever befell a shared connection, what is asked next has one that nothing has befallen. Whether it was known.
    pub(super) fn forget(&self, number: Option<u64>) -> bool {
        let mut kept = self.kept();
        let known = kept.shared.len();
        kept.shared.retain(|shared| Some(shared.number) != number);
        kept.shared.len() < known
    }

    /// Keeps a connection for whoever comes next, for as long as it is of use.
    pub(super) fn keep(self: &Arc<Self>, line: Box<One>, kept_for: Duration) {
        {
            let mut kept = self.kept();
            if kept.idle.len() < KEPT_MAX && !kept_for.is_zero() {
                let since = Instant::now();
                kept.idle.push(Idle { line, since, until: since + kept_for });
            }
        }
        self.see_to_sweeping();
    }

    /// While something is kept, somebody wakes from time to time and closes what has lain too long.
    fn see_to_sweeping(self: &Arc<Self>) {
        if std::mem::replace(&mut self.kept().is_swept, true) {
            return;
        }
        let place = Arc::downgrade(self);
        tokio::spawn(self.end.clone().run_until_cancelled_owned(async move {
            loop {
                tokio::time::sleep(KEEP_ALIVE).await;
                if place.upgrade().is_none_or(|place| place.kept().sweep()) {
                    return;
                }
            }
        }));
    }
}

impl Kept {
    fn seat(&mut self) -> Found {
        self.shared.retain(|shared| !shared.is_closed());
        if let Some(many) = self.shared.iter_mut().find_map(Shared::seat) {
            return Found::Line(Line::Many(many));
        }
        if let Some((number, heard)) = self.shared.iter().find_map(|shared| Some((shared.number, shared.unheard()?))) {
            return Found::Soon(number, heard);
        }
        if self.shared.len() < SHARED_MAX {
            return Found::Nothing;
        }
        self.behind = self.behind.wrapping_add(1);
        let at = self.behind % SHARED_MAX;
        self.shared.get_mut(at).map_or(Found::Nothing, |shared| Found::Line(Line::Many(shared.behind())))
    }

    /// Closes what has lain too long; whether nothing is left.
    fn sweep(&mut self) -> bool {
        let now = Instant::now();
        self.idle.retain(|idle| now < idle.until);
        self.shared.retain(|shared| shared.used + KEEP_ALIVE > now && !shared.is_closed());
        self.is_swept = !(self.idle.is_empty() && self.shared.is_empty());
        !self.is_swept
    }
}
