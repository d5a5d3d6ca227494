//! The connections of all agents, kept for the next request.

mod line;
mod place;
mod proxy;
mod road;
mod shared;
#[cfg(test)]
mod tests;
mod tunnel;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use tokio_util::sync::CancellationToken;

pub(crate) use self::line::Reply;
use self::line::{Line, One};
use self::place::Place;
use self::proxy::is_secure;
use self::road::Road;
pub(crate) use self::road::Trouble;
use self::shared::Shared;
use crate::body::Outgoing;
use crate::endpoint::Endpoint;

/// Connections are kept this long for the next request.
const KEEP_ALIVE: Duration = Duration::from_secs(90);

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The server was not reached.
    Connect(Trouble),
    /// The connection broke. `is_unread`: before anything of the request was sent.
    Sent { error: hyper::Error, is_unread: bool },
}

/// The connections of all agents. Dropping it ends the tasks that work on them.
#[derive(Debug)]
pub(crate) struct Lines {
    road: Road,
    places: Mutex<HashMap<String, Arc<Place>>>,
    end: CancellationToken,
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Lines {
    /// Without any connection. Certificates to trust beside the usual ones come from a file.
    pub(crate) fn new(cert_file: Option<PathBuf>) -> Self {
        Self::over(Road::new(cert_file))
    }

    fn over(road: Road) -> Self {
        Self { road, places: Mutex::default(), end: CancellationToken::new() }
    }

    /// Uses these variables for proxies instead of the environment.
    #[cfg(test)]
    pub(crate) fn by(variables: &[(&str, &str)]) -> Self {
        Self::over(Road::by(proxy::Proxies::of(variables), None))
    }

    /// Does the work of the first use ahead of time.
    pub(crate) fn warm(&self, endpoint: &Endpoint) {
        self.road.warm(endpoint.uri());
    }

    /// The host and port of the proxy that an endpoint is asked through.
    pub(crate) fn proxy(&self, endpoint: &Endpoint) -> Option<String> {
        self.road.proxy_name(endpoint.uri(), endpoint.is_loopback()).ok()?
    }

    /// Like `proxy`, but fails with what has to be corrected before a request can be sent.
    pub(crate) fn way(&self, endpoint: &Endpoint) -> Result<Option<String>, String> {
        let by = self.road.proxy_name(endpoint.uri(), endpoint.is_loopback())?;
        self.road.check(endpoint.uri())?;
        Ok(by)
    }

    /// Sends a request and waits for the head of the response; not over an idle connection, if `fresh`.
    pub(crate) async fn ask(
        &self,
        endpoint: &Endpoint,
        headers: HeaderMap,
        body: Outgoing,
        fresh: bool,
    ) -> Result<Reply, Broken> {
        let place = self.place(endpoint.origin());
        let line = self.line(endpoint, &place, fresh).await.map_err(Broken::Connect)?;
        let number = line.number();
        let reply = line.ask(endpoint, headers, body, &place).await;
        if reply.is_err() {
            place.forget(number);
        }
        reply
    }

    async fn line(&self, endpoint: &Endpoint, place: &Arc<Place>, fresh: bool) -> Result<Line, Trouble> {
        if !fresh && let Some(line) = place.take().await {
            return Ok(line);
        }
        let first = if is_secure(endpoint.uri()) { place.first().await } else { None };
        if let Some(line) = place.seat().await {
            return Ok(line);
        }
        let line = self.connect(endpoint, place).await;
        place.kept().failed += u64::from(line.is_err());
        drop(first);
        line
    }

    async fn connect(&self, endpoint: &Endpoint, place: &Arc<Place>) -> Result<Line, Trouble> {
        let reached = self.road.reach(endpoint.uri(), endpoint.is_loopback()).await?;
        if reached.speaks_two {
            return Ok(place.share(Shared::begin(reached.io, &self.end).await?));
        }
        place.kept().one_at_a_time = true;
        Ok(Line::One(One::begin(reached.io, reached.forward).await?))
    }

    fn place(&self, origin: &str) -> Arc<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        match places.get(origin) {
            Some(place) => Arc::clone(place),
            None => {
                let place = Arc::new(Place::new(self.end.clone()));
                Arc::clone(places.entry(origin.to_owned()).or_insert(place))
            }
        }
    }
}
