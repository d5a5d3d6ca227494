//! Accepts connections, with TLS if a certificate is given.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use max_team_core::limits::WEB_CONNECTIONS_MAX;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// How long a client may take to send the head of a request, and to finish the TLS handshake.
const HEAD_WAIT: Duration = Duration::from_secs(30);
/// How long to wait after a connection could not be accepted, such as when no file can be opened.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("`{path}` cannot be read as PEM: {detail}")]
    File { path: PathBuf, detail: String },
    #[error("certificate and key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
}

/// Accepts connections, in the clear or with TLS.
pub(crate) struct Acceptor(Option<TlsAcceptor>);

impl Acceptor {
    pub(crate) fn new(files: Option<&(PathBuf, PathBuf)>) -> Result<Self, TlsError> {
        let Some((cert, key)) = files else { return Ok(Self(None)) };
        let unreadable = |path: &Path, detail: String| TlsError::File { path: path.to_owned(), detail };
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
        let chain = chain.map_err(|error| unreadable(cert, error.to_string()))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(Self(Some(TlsAcceptor::from(Arc::new(config)))))
    }
}

/// Serves connections until `shutdown`.
pub(crate) async fn serve(listener: &TcpListener, acceptor: &Acceptor, router: Router, shutdown: &CancellationToken) {
    let places = Arc::new(Semaphore::new(WEB_CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(listener, &places) => accepted,
            () = shutdown.cancelled() => break,
        };
        while connections.try_join_next().is_some() {}
        let Some((stream, place)) = accepted else { continue };
        let (router, tls) = (router.clone(), acceptor.0.clone());
        connections.spawn(async move {
            match tls {
                None => answer(stream, router).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_WAIT, tls.accept(stream)).await {
                        answer(stream, router).await;
                    }
                }
            }
            drop(place);
        });
    }
    connections.shutdown().await;
}

/// The next connection, once there is a place for it.
async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Events are small, and each is waited for.
            drop(stream.set_nodelay(true));
            Some((stream, place))
        }
        Err(_) => {
            tokio::time::sleep(ACCEPT_RETRY).await;
            None
        }
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT);
    let service = TowerToHyperService::new(router);
    // A connection that breaks concerns its client alone.
    drop(server.serve_connection(TokioIo::new(stream), service).with_upgrades().await);
}
