//! TLS: certificates of one's own are trusted when named, and refused with advice when not.
//!
//! The files in `tls/` were made for this test and protect nothing: a CA, and a key with its certificate for
//! `localhost`.

use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use max_team_core::recovery::Failure;
use max_team_llm::{Dialect, Options};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::connections::{ANSWER, read_request, response};
use crate::{ask, failed, options, router};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name)
}

/// Answers one request over TLS, if the client goes through with it.
fn serve() -> String {
    let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), stream);
        if read_request(&mut stream) {
            stream.write_all(response("application/json", ANSWER).unwrap().as_bytes()).unwrap();
        }
    });
    url
}

#[tokio::test]
async fn ones_own_certificates_are_trusted_when_named() {
    let options = Options { cert_file: Some(file("ca.pem")), ..options() };
    let answer = ask(&router(Dialect::Anthropic, &serve(), options), Dialect::Anthropic).await.unwrap();
    assert_eq!(answer.message.text(), "Hi");
}

#[tokio::test]
async fn unknown_certificates_are_refused_with_advice() {
    let (failure, detail) = failed(ask(&router(Dialect::Anthropic, &serve(), options()), Dialect::Anthropic).await);
    assert_eq!(failure, Failure::Network);
    assert!(detail.contains("certificate") && detail.contains("SSL_CERT_FILE"), "{detail}");
}
