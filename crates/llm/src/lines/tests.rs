//! Proxies as people have them, and connections that lie too long.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use bytes::Bytes;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tokio::io::AsyncReadExt;

use super::*;
use crate::Catalog;
use crate::body::Body;
use crate::lines::road::Reached;
use crate::transcript::Head;

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

/// Somebody who listens on this machine, and what they tell of it.
fn listen<T: Send + 'static>(talk: impl FnOnce(TcpStream) -> T + Send + 'static) -> (String, mpsc::Receiver<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(talk(listener.accept().unwrap().0)));
    (at, told)
}

/// Everything up to the empty line.
fn head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn road(proxy: &str) -> Road {
    let certificates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls/ca.pem");
    Road::by(Matcher::builder().all(proxy.to_owned()).build(), Some(certificates))
}

fn lines(proxy: &str) -> Lines {
    Lines { road: road(proxy), places: Mutex::default() }
}

fn endpoint(url: &str) -> Endpoint {
    Endpoint::new(Catalog::builtin().provider("anthropic").unwrap(), Some(url), None).unwrap()
}

async fn ask(lines: &Lines, endpoint: &Endpoint) -> String {
    let body = Body::new(b"{}".to_vec(), &Head { bytes: Bytes::new(), has_tools: false }, Vec::new());
    let mut reply = lines.ask(endpoint, HeaderMap::new(), body.to_http(), false).await.unwrap();
    let mut text = Vec::new();
    while let Some(piece) = reply.chunk().await.unwrap() {
        text.extend_from_slice(&piece);
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn a_plain_request_is_told_to_the_proxy() {
    let (at, told) = listen(|mut stream| {
        [(); 2].map(|()| {
            let head = head(&mut stream);
            stream.read_exact(&mut [0; 2]).unwrap();
            stream.write_all(ANSWER.as_bytes()).unwrap();
            head
        })
    });
    let (lines, endpoint) = (lines(&format!("http://ann:s%20x@{at}")), endpoint("http://models.test:81/v1"));
    // The second goes over the connection that was kept.
    assert_eq!([ask(&lines, &endpoint).await, ask(&lines, &endpoint).await], ["hi", "hi"]);
    for head in told.recv().unwrap() {
        assert!(head.starts_with("POST http://models.test:81/v1/messages HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("host: models.test:81\r\n"), "{head}");
        assert!(head.contains("proxy-authorization: Basic YW5uOnMgeA==\r\n"), "{head}");
    }
}

#[tokio::test]
async fn a_server_on_this_machine_is_reached_without_it() {
    let (at, told) = listen(|mut stream| {
        let head = head(&mut stream);
        stream.write_all(ANSWER.as_bytes()).unwrap();
        head
    });
    // Nobody listens at the proxy's address.
    assert_eq!(ask(&lines("http://127.0.0.1:1"), &endpoint(&format!("http://{at}"))).await, "hi");
    let head = told.recv().unwrap();
    assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\n") && head.contains(&format!("host: {at}\r\n")), "{head}");
}

fn tls_server(speaks: &str) -> ServerConnection {
    let file = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name);
    let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![speaks.into()];
    ServerConnection::new(Arc::new(config)).unwrap()
}

#[tokio::test]
async fn behind_a_proxy_tls_goes_through_a_tunnel() {
    for speaks in ["h2", "http/1.1"] {
        let (at, told) = listen(move |mut stream| {
            let head = head(&mut stream);
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
            let mut tls = StreamOwned::new(tls_server(speaks), stream);
            // The handshake, and then the end.
            let _ = tls.read(&mut [0]);
            head
        });
        let road = road(&format!("http://ann:word@{at}"));
        let Reached { speaks_two, forward, .. } =
            road.reach(&"https://localhost:444/v1".parse().unwrap(), false).await.unwrap();
        assert_eq!((speaks_two, forward.is_some()), (speaks == "h2", false));
        let head = told.recv().unwrap();
        assert!(head.starts_with("CONNECT localhost:444 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("Proxy-Authorization: Basic YW5uOndvcmQ=\r\n"), "{head}");
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_is_heard() {
    let (at, _told) = listen(|mut stream| {
        head(&mut stream);
        stream.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    let trouble = road(&format!("http://{at}")).reach(&"https://models.test/".parse().unwrap(), false).await.err();
    assert_eq!(trouble.unwrap().to_string(), "tunnel error: proxy authorization required");
}

#[tokio::test]
async fn a_socks_proxy_is_told_the_name() {
    let (at, told) = listen(|mut stream| {
        let mut greeting = [0; 3];
        stream.read_exact(&mut greeting).unwrap();
        stream.write_all(&[5, 0]).unwrap();
        let mut wanted = [0; 5 + 11 + 2];
        stream.read_exact(&mut wanted).unwrap();
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
        let head = head(&mut stream);
        stream.write_all(ANSWER.as_bytes()).unwrap();
        (wanted, head)
    });
    assert_eq!(ask(&lines(&format!("socks5h://{at}")), &endpoint("http://models.test")).await, "hi");
    let (wanted, head) = told.recv().unwrap();
    assert_eq!(&wanted[..], [&[5, 1, 0, 3, 11][..], b"models.test", &[0, 80]].concat());
    // It is a connection like any other: the host is asked, not the proxy.
    assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\nhost: models.test\r\n"), "{head}");
}

#[tokio::test(start_paused = true)]
async fn what_lies_too_long_is_closed() {
    let place = Arc::new(Place::default());
    let mut ends = Vec::new();
    for _ in 0..2 {
        let (here, there) = tokio::io::duplex(64);
        let reached = Reached { io: Box::new(TokioIo::new(here)), speaks_two: false, forward: None };
        let Line::One(line) = Line::begin(reached).await.unwrap() else { panic!("HTTP/1.1 was spoken of") };
        place.keep(line);
        ends.push(there);
        tokio::time::sleep(KEEP_ALIVE / 2).await;
    }
    // The first has lain for as long as it may, the second for half of it.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(place.kept().idle.len(), 1);
    for mut end in ends {
        assert_eq!(end.read(&mut [0]).await.unwrap(), 0, "closed");
    }
    assert!(!place.kept().is_swept, "nobody watches over nothing");
}

#[tokio::test(start_paused = true)]
async fn a_crowd_does_not_fail_one_after_another() {
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = endpoint(&format!("https://{}", silent.local_addr().unwrap()));
    let lines = Arc::new(Lines::new(None));
    let began = Instant::now();
    let one = || {
        let (lines, endpoint) = (Arc::clone(&lines), endpoint.clone());
        tokio::spawn(async move {
            let place = lines.place(endpoint.origin());
            lines.line(&endpoint, &place, false).await.map(drop).unwrap_err().to_string()
        })
    };
    for failed in [one(), one(), one(), one()] {
        assert_eq!(failed.await.unwrap(), "it took longer than 10s");
    }
    assert!(began.elapsed() <= Duration::from_secs(21), "{:?}", began.elapsed());
}
