//! The connections of all agents, kept for the next request.

mod line;
mod road;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use hyper::client::conn::http2;
use tokio::time::Instant;

pub(crate) use self::line::Reply;
use self::line::{Line, One};
use self::road::{Road, Trouble};
use crate::body::Outgoing;
use crate::endpoint::Endpoint;

/// Connections are kept this long for the next request.
const KEEP_ALIVE: Duration = Duration::from_secs(90);
/// And so many to one host; what a larger crowd leaves behind is closed.
const KEPT_MAX: usize = 1_024;

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum Broken {
    /// Nobody was reached.
    Connect(Trouble),
    /// The request was sent, as far as is known. `kept`: over a connection that had been used before.
    Sent { error: hyper::Error, kept: bool },
}

/// The connections of all agents.
#[derive(Debug)]
pub(crate) struct Lines {
    road: Road,
    places: Mutex<HashMap<String, Arc<Place>>>,
}

impl Lines {
    /// Without any connection. Certificates to trust beside the usual ones come from a file.
    pub(crate) fn new(cert_file: Option<PathBuf>) -> Self {
        Self { road: Road::new(cert_file), places: Mutex::default() }
    }

    /// Does the work of the first use ahead of it.
    pub(crate) fn warm(&self, endpoint: &Endpoint) {
        self.road.warm(endpoint.uri());
    }

    /// Sends a request and waits for the head of the response; over none that has lain idle, if `fresh`.
    pub(crate) async fn ask(
        &self,
        endpoint: &Endpoint,
        headers: HeaderMap,
        body: Outgoing,
        fresh: bool,
    ) -> Result<Reply, Broken> {
        let place = self.place(endpoint.origin());
        let (line, kept) = self.line(endpoint, &place, fresh).await.map_err(Broken::Connect)?;
        let number = line.number();
        line.ask(endpoint, headers, body, &place).await.map_err(|error| {
            place.forget(number);
            Broken::Sent { error, kept }
        })
    }

    /// A connection, and whether it was kept.
    async fn line(&self, endpoint: &Endpoint, place: &Arc<Place>, fresh: bool) -> Result<(Line, bool), Trouble> {
        if !fresh && let Some(line) = place.take().await {
            return Ok((line, true));
        }
        let is_known = endpoint.uri().scheme_str() != Some("https") || place.kept().one_at_a_time;
        let _first = if is_known { None } else { place.first().await };
        if let Some(line) = place.shared() {
            return Ok((line, true));
        }
        let reached = self.road.reach(endpoint.uri(), endpoint.is_loopback()).await?;
        let line = Line::begin(reached).await?;
        Ok((place.know(line), false))
    }

    fn place(&self, origin: &str) -> Arc<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        match places.get(origin) {
            Some(place) => Arc::clone(place),
            None => Arc::clone(places.entry(origin.to_owned()).or_default()),
        }
    }
}

/// What is kept for one host.
#[derive(Default)]
pub(crate) struct Place {
    kept: Mutex<Kept>,
    first: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Kept {
    idle: Vec<(Instant, Box<One>)>,
    /// The connection that is everybody's, and when it was last asked for.
    shared: Option<(Instant, http2::SendRequest<Outgoing>)>,
    /// How many of those there have been.
    number: u64,
    /// Whether the other side is known to take one request at a time.
    one_at_a_time: bool,
    /// Whether somebody closes what has lain too long.
    is_swept: bool,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").field("idle", &self.kept().idle.len()).finish_non_exhaustive()
    }
}

impl Place {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is there already; the one that was used last, which is the least likely to have been closed.
    async fn take(&self) -> Option<Line> {
        if let Some(line) = self.shared() {
            return Some(line);
        }
        loop {
            let (since, mut line) = self.kept().idle.pop()?;
            if since.elapsed() < KEEP_ALIVE && line.is_alive().await {
                return Some(Line::One(line));
            }
        }
    }

    /// Whether the other side takes many requests over one connection is known when the first one stands. Until then
    /// everybody waits for whoever is at it, rather than connect for themselves; but once only: if nothing came of
    /// that, a crowd does not fail one after another.
    async fn first(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let first = self.first.try_lock().ok();
        if first.is_none() {
            drop(self.first.lock().await);
        }
        first
    }

    fn shared(&self) -> Option<Line> {
        let mut kept = self.kept();
        let number = kept.number;
        let (used, sender) = kept.shared.as_mut()?;
        if sender.is_closed() {
            kept.shared = None;
            return None;
        }
        *used = Instant::now();
        Some(Line::Many(sender.clone(), number))
    }

    /// Knows by a new connection what the other side speaks, and shares it if it can be shared.
    fn know(self: &Arc<Self>, line: Line) -> Line {
        let mut kept = self.kept();
        let Line::Many(sender, _) = line else {
            kept.one_at_a_time = true;
            return line;
        };
        kept.number += 1;
        kept.shared = Some((Instant::now(), sender.clone()));
        let line = Line::Many(sender, kept.number);
        drop(kept);
        self.see_to_sweeping();
        line
    }

    /// Whatever befell a shared connection, what is asked next has one that nothing has befallen.
    fn forget(&self, number: Option<u64>) {
        let mut kept = self.kept();
        if number == Some(kept.number) {
            kept.shared = None;
        }
    }

    /// Keeps a connection for whoever comes next.
    fn keep(self: &Arc<Self>, line: Box<One>) {
        {
            let mut kept = self.kept();
            if kept.idle.len() < KEPT_MAX {
                kept.idle.push((Instant::now(), line));
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
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(KEEP_ALIVE).await;
                if place.upgrade().is_none_or(|place| place.kept().sweep()) {
                    return;
                }
            }
        });
    }
}

impl Kept {
    /// Closes what has lain too long; whether nothing is left.
    fn sweep(&mut self) -> bool {
        self.idle.retain(|(since, _)| since.elapsed() < KEEP_ALIVE);
        self.shared = self.shared.take().filter(|(used, sender)| used.elapsed() < KEEP_ALIVE && !sender.is_closed());
        self.is_swept = !(self.idle.is_empty() && self.shared.is_none());
        !self.is_swept
    }
}
