//! The connections of all agents, kept for the next request.

mod connector;
mod h1;
mod h2;
mod host;
mod proxy;
#[cfg(test)]
mod tests;
mod tunnel;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use tokio_util::sync::CancellationToken;

pub(crate) use self::connector::ConnectError;
use self::connector::Connector;
pub(crate) use self::h1::HttpResponse;
use self::h1::{Connection, H1};
use self::h2::SharedH2;
use self::host::HostPool;
use self::proxy::is_secure;
use crate::body::Outgoing;
use crate::endpoint::Endpoint;

/// Connections are kept this long for the next request.
const KEEP_ALIVE: Duration = Duration::from_secs(90);

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The server was not reached.
    Connect(ConnectError),
    /// The connection broke. `is_unread`: before anything of the request was sent.
    Sent { error: hyper::Error, is_unread: bool },
}

/// The connections of all agents. Dropping it ends the tasks that work on them.
#[derive(Debug)]
pub(crate) struct Pool {
    connector: Connector,
    hosts: Mutex<HashMap<String, Arc<HostPool>>>,
    end: CancellationToken,
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Pool {
    /// Without any connection. Certificates to trust beside the usual ones come from a file.
    pub(crate) fn new(cert_file: Option<PathBuf>) -> Self {
        Self::over(Connector::new(cert_file))
    }

    fn over(connector: Connector) -> Self {
        Self { connector, hosts: Mutex::default(), end: CancellationToken::new() }
    }

    /// Uses these variables for proxies instead of the environment.
    #[cfg(test)]
    pub(crate) fn with_proxy_variables(variables: &[(&str, &str)]) -> Self {
        Self::over(Connector::by(proxy::Proxies::of(variables), None))
    }

    /// Does the work of the first use ahead of time.
    pub(crate) fn warm(&self, endpoint: &Endpoint) {
        self.connector.warm(endpoint.uri());
    }

    /// The host and port of the proxy that an endpoint is asked through.
    pub(crate) fn proxy(&self, endpoint: &Endpoint) -> Option<String> {
        self.connector.proxy_name(endpoint.uri(), endpoint.is_loopback()).ok()?
    }

    /// Like `proxy`, but fails with what has to be corrected before a request can be sent.
    pub(crate) fn proxy_for(&self, endpoint: &Endpoint) -> Result<Option<String>, String> {
        let by = self.connector.proxy_name(endpoint.uri(), endpoint.is_loopback())?;
        self.connector.check(endpoint.uri())?;
        Ok(by)
    }

    /// Sends a request and waits for the head of the response; not over an idle connection, if `fresh`.
    pub(crate) async fn send(
        &self,
        endpoint: &Endpoint,
        headers: HeaderMap,
        body: Outgoing,
        fresh: bool,
    ) -> Result<HttpResponse, SendError> {
        let host = self.host(endpoint.origin());
        let line = self.line(endpoint, &host, fresh).await.map_err(SendError::Connect)?;
        let number = line.number();
        let reply = line.send(endpoint, headers, body, &host).await;
        if reply.is_err() {
            host.forget(number);
        }
        reply
    }

    async fn line(&self, endpoint: &Endpoint, host: &Arc<HostPool>, fresh: bool) -> Result<Connection, ConnectError> {
        if !fresh && let Some(line) = host.take().await {
            return Ok(line);
        }
        let first = if is_secure(endpoint.uri()) { host.first().await } else { None };
        if let Some(line) = host.seat().await {
            return Ok(line);
        }
        let line = self.connect(endpoint, host).await;
        host.kept().failed += u64::from(line.is_err());
        drop(first);
        line
    }

    async fn connect(&self, endpoint: &Endpoint, host: &Arc<HostPool>) -> Result<Connection, ConnectError> {
        let reached = self.connector.reach(endpoint.uri(), endpoint.is_loopback()).await?;
        if reached.speaks_two {
            return Ok(host.share(SharedH2::begin(reached.io, &self.end).await?));
        }
        host.kept().one_at_a_time = true;
        Ok(Connection::H1(H1::begin(reached.io, reached.forward).await?))
    }

    fn host(&self, origin: &str) -> Arc<HostPool> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        match hosts.get(origin) {
            Some(host) => Arc::clone(host),
            None => {
                let host = Arc::new(HostPool::new(self.end.clone()));
                Arc::clone(hosts.entry(origin.to_owned()).or_insert(host))
            }
        }
    }
}
