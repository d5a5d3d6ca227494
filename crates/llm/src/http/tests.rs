//! Proxies as people have them, and connections that lie too long.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::*;
use crate::Catalog;
use crate::body::Body;
use crate::http::connector::ConnectedHost;
use crate::http::proxy::Proxies;
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

fn connector(proxy: &str) -> Connector {
    let certificates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls/ca.pem");
    Connector::by(Proxies::of(&[("ALL_PROXY", proxy)]), Some(certificates))
}

fn pool(proxy: &str) -> Pool {
    Pool::over(connector(proxy))
}

fn endpoint(url: &str) -> Endpoint {
    Endpoint::new(Catalog::builtin().provider("anthropic").unwrap(), Some(url), None).unwrap()
}

async fn ask(pool: &Pool, endpoint: &Endpoint) -> String {
    let body = Body::new(b"{}".to_vec(), &Head { bytes: Bytes::new(), has_tools: false }, Vec::new());
    let mut reply = pool.send(endpoint, HeaderMap::new(), body.to_http(&Arc::default()), false).await.unwrap();
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
    let (pool, endpoint) = (pool(&format!("http://ann:s%20x@{at}")), endpoint("http://models.test:81/v1"));
    // The second goes over the connection that was kept.
    assert_eq!([ask(&pool, &endpoint).await, ask(&pool, &endpoint).await], ["hi", "hi"]);
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
    assert_eq!(ask(&pool("http://127.0.0.1:1"), &endpoint(&format!("http://{at}"))).await, "hi");
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
        let connector = connector(&format!("http://ann:word@{at}"));
        let ConnectedHost { speaks_two, forward, .. } =
            connector.reach(&"https://localhost:444/v1".parse().unwrap(), false).await.unwrap();
        assert_eq!((speaks_two, forward.is_some()), (speaks == "h2", false));
        let head = told.recv().unwrap();
        assert!(head.starts_with("CONNECT localhost:444 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("Proxy-Authorization: Basic YW5uOndvcmQ=\r\n"), "{head}");
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_is_heard() {
    let table: [(&[u8], &str); 4] = [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n", "Refused(407)"),
        (b"HTTP/1.0 502\r\n\r\n", "Refused(502)"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "Failed(\"it answered with what is not HTTP\")"),
        (b"HTTP/1.1 200 OK", "Failed(\"it closed the connection without an answer\")"),
    ];
    for (answer, want) in table {
        let (at, _told) = listen(move |mut stream| {
            head(&mut stream);
            stream.write_all(answer).unwrap();
        });
        let trouble =
            connector(&format!("http://{at}")).reach(&"https://models.test/".parse().unwrap(), false).await.err();
        assert_eq!(format!("{:?}", trouble.unwrap()), want);
    }
}

fn way(variables: &[(&str, &str)], to: &str) -> Result<Option<String>, String> {
    let proxy = Proxies::of(variables).to(&to.parse().unwrap())?;
    Ok(proxy.map(|proxy| proxy.uri().to_string()))
}

#[test]
fn a_proxy_that_is_not_understood_is_an_error_and_never_passed_over() {
    for odd in [
        "ftp://ann:s3cr3t@10.0.0.1:3128",
        "socks6://10.0.0.1:3128",
        "http:/10.0.0.1:3128",
        "http://ann:s3cr3t@10.0.0.1:notaport",
        "http://10.0.0.1:70000",
        "http://ann:s3cr3t/w#rd@10.0.0.1:3128",
        "http://ann:s3cr3t@w@10.0.0.1:3128",
        "ann s3cr3t",
        "\u{fffd}",
    ] {
        let said = way(&[("HTTP_PROXY", odd), ("ALL_PROXY", "http://10.0.0.2:1")], "http://models.test/").unwrap_err();
        assert!(said.starts_with("the proxy in `HTTP_PROXY` is not understood") && !said.contains("s3cr3t"), "{said}");
        let said = way(&[("all_proxy", odd)], "https://192.0.2.2/").unwrap_err();
        assert!(said.starts_with("the proxy in `all_proxy` is not understood"), "{said}");
        // Whoever is reached without a proxy is reached.
        for none in ["models.test", "*", "a.test, *"] {
            assert_eq!(way(&[("ALL_PROXY", odd), ("NO_PROXY", none)], "https://models.test/"), Ok(None), "{none}");
        }
    }
}

#[test]
fn proxies_are_taken_as_people_write_them() {
    for (written, want) in [
        ("10.0.0.1:3128", "http://10.0.0.1:3128/"),
        ("http://proxy.test/", "http://proxy.test/"),
        ("https://ann:p%40ss@proxy.test:8443", "https://proxy.test:8443/"),
        ("socks5h://[::1]:1080", "socks5h://[::1]:1080/"),
    ] {
        assert_eq!(way(&[("HTTPS_PROXY", written)], "https://models.test/"), Ok(Some(want.to_owned())));
        assert_eq!(way(&[("HTTPS_PROXY", written)], "http://models.test/"), Ok(None));
    }
    let all = ("ALL_PROXY", "http://proxy.test");
    // A star is for everybody, also for those without a name.
    for to in ["http://192.0.2.2:81/", "https://[2001:db8::1]/", "https://models.test/"] {
        assert_eq!(way(&[all, ("NO_PROXY", "*")], to), Ok(None), "{to}");
        assert_eq!(way(&[all, ("NO_PROXY", "other.test")], to), Ok(Some("http://proxy.test/".into())), "{to}");
    }
}

#[tokio::test]
async fn certificates_that_are_none_are_an_error() {
    let words = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let connector = Connector::by(Proxies::of(&[]), Some(words.clone()));
    let Err(ConnectError::Setup(said)) =
        connector.reach(&"https://127.0.0.1:1/".parse().unwrap(), true).await.map(drop)
    else {
        panic!("it was taken");
    };
    let words = words.display();
    assert_eq!(said, format!("there is no certificate in `{words}`; correct SSL_CERT_FILE, or leave it out"));
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
    assert_eq!(ask(&pool(&format!("socks5h://{at}")), &endpoint("http://models.test")).await, "hi");
    let (wanted, head) = told.recv().unwrap();
    assert_eq!(&wanted[..], [&[5, 1, 0, 3, 11][..], b"models.test", &[0, 80]].concat());
    // It is a connection like any other: the host is asked, not the proxy.
    assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\nhost: models.test\r\n"), "{head}");
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed_after_their_time() {
    let host = Arc::new(HostPool::default());
    let mut ends = Vec::new();
    for _ in 0..2 {
        let (here, there) = tokio::io::duplex(64);
        host.keep(H1::begin(Box::new(TokioIo::new(here)), None).await.unwrap(), KEEP_ALIVE);
        ends.push(there);
        tokio::time::sleep(KEEP_ALIVE / 2).await;
    }
    // The first has lain for as long as it may, the second for half of it.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(host.kept().idle.len(), 1);
    for mut end in ends {
        assert_eq!(end.read(&mut [0]).await.unwrap(), 0, "closed");
    }
    assert!(!host.kept().is_swept, "nobody watches over nothing");
}

#[tokio::test]
async fn dropping_the_pool_ends_its_tasks() {
    let pool = Pool::new(None);
    let host = pool.host("https://models.test");
    let (here, _there) = tokio::io::duplex(64);
    let shared = SharedH2::begin(Box::new(TokioIo::new(here)), &pool.end).await.unwrap();
    let _line = host.share(shared);
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks(), 3, "the connection, hyper's half of it, and who sweeps");
    drop(pool);
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
    assert_eq!(tasks(), 0);
}

#[tokio::test]
async fn the_servers_keep_alive_timeout_is_respected() {
    let (at, _told) = listen(|mut stream| {
        head(&mut stream);
        stream.read_exact(&mut [0; 2]).unwrap();
        let answer = "HTTP/1.1 200 OK\r\nkeep-alive: max=9, timeout=5\r\ncontent-length: 2\r\n\r\nhi";
        stream.write_all(answer.as_bytes()).unwrap();
        stream
    });
    let (pool, endpoint) = (Pool::with_proxy_variables(&[]), endpoint(&format!("http://{at}")));
    assert_eq!(ask(&pool, &endpoint).await, "hi");
    let host = pool.host(endpoint.origin());
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3)).await;
    let line = host.take().await;
    let Some(Connection::H1(line)) = line else { panic!("it is of use for four seconds") };
    host.keep(line, Duration::from_secs(4));
    tokio::time::advance(Duration::from_secs(4)).await;
    assert!(host.take().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_crowd_does_not_fail_one_after_another() {
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = endpoint(&format!("https://{}", silent.local_addr().unwrap()));
    let pool = Arc::new(Pool::new(None));
    let began = Instant::now();
    let one = || {
        let (pool, endpoint) = (Arc::clone(&pool), endpoint.clone());
        tokio::spawn(async move {
            let host = pool.host(endpoint.origin());
            format!("{:?}", pool.line(&endpoint, &host, false).await.map(drop).unwrap_err())
        })
    };
    for failed in [one(), one(), one(), one()] {
        assert_eq!(failed.await.unwrap(), "Failed(\"it took longer than 10s\")");
    }
    assert!(began.elapsed() <= Duration::from_secs(21), "{:?}", began.elapsed());
}

/// A connection of HTTP/2 to somebody who takes everything and says nothing.
async fn silent(pool: &Pool, host: &Arc<HostPool>) -> (Connection, tokio::io::DuplexStream) {
    let (here, there) = tokio::io::duplex(1 << 16);
    let shared = SharedH2::begin(Box::new(TokioIo::new(here)), &pool.end).await.unwrap();
    (host.share(shared), there)
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_only_briefly_for_the_stream_limit() {
    let pool = Pool::with_proxy_variables(&[]);
    let host = pool.host("https://models.test");
    let (_line, _there) = silent(&pool, &host).await;
    let began = Instant::now();
    let (one, other) = tokio::join!(host.seat(), host.seat());
    assert!(one.is_none() && other.is_none(), "they connect for themselves");
    assert_eq!(began.elapsed(), host::SETTINGS_TIMEOUT);
    assert!(host.seat().await.is_none() && began.elapsed() == host::SETTINGS_TIMEOUT, "it is forgotten");
    assert_eq!(host.kept().failed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_asked_for_a_sign() {
    let pool = Pool::with_proxy_variables(&[]);
    let endpoint = endpoint("https://models.test");
    let host = pool.host(endpoint.origin());
    let (line, _there) = silent(&pool, &host).await;
    let body = Body::new(b"{}".to_vec(), &Head { bytes: Bytes::new(), has_tools: false }, Vec::new());
    let began = Instant::now();
    let Err(SendError::Sent { error, .. }) =
        line.send(&endpoint, HeaderMap::new(), body.to_http(&Arc::default()), &host).await
    else {
        panic!("there is nobody");
    };
    assert!(error.is_timeout(), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert!(host.seat().await.is_none(), "nobody asks over it");
}
