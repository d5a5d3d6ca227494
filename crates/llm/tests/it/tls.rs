//! TLS: certificates of one's own are trusted when named, and refused with advice when not; over HTTP/2, which needs
//! TLS, what the other side has refused unread is sent once more.
//!
//! The files in `tls/` were made for this test and protect nothing: a CA, and a key with its certificate for
//! `localhost`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

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

type Tls = StreamOwned<ServerConnection, TcpStream>;

/// Answers one request over TLS, if the client goes through with it.
fn serve() -> String {
    on_each(&[], |mut stream, _| {
        if read_request(&mut stream) {
            stream.write_all(response("application/json", ANSWER).unwrap().as_bytes()).unwrap();
        }
    })
}

/// Some connections, each with its number, that speak one of these protocols.
fn on_each(protocols: &[&[u8]], talk: impl Fn(Tls, usize) + Send + Sync + 'static) -> String {
    let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let talk = Arc::new(talk);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (talk, tls) = (Arc::clone(&talk), ServerConnection::new(Arc::clone(&config)).unwrap());
            thread::spawn(move || talk(StreamOwned::new(tls, stream.unwrap()), number));
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

/// HTTP/2 in the few frames that are needed: kind, flags, stream and payload.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, size @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&size[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Reads on until a request begins; its stream.
fn request(stream: &mut Tls) -> Option<u32> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let [a, b, c, kind, _, id @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        stream.read_exact(&mut payload).ok()?;
        if kind == 1 {
            return Some(u32::from_be_bytes(id));
        }
    }
}

/// Refuses the first request in this way, and answers the next, on whichever connection it comes.
fn refuse(stream: &mut Tls, number: usize, refusal: fn(u32) -> Vec<u8>) -> Option<()> {
    greet(stream)?;
    if number == 0 {
        let id = request(stream)?;
        stream.write_all(&refusal(id)).ok()?;
    }
    answer_all(stream)
}

fn greet(stream: &mut Tls) -> Option<()> {
    greet_with(stream, &[])
}

fn greet_with(stream: &mut Tls, settings: &[u8]) -> Option<()> {
    stream.read_exact(&mut [0; 24]).ok()?;
    stream.write_all(&frame(4, 0, 0, settings)).ok()
}

/// Answers every request until the client is gone: an end of ours would cut the last answer off.
fn answer_all(stream: &mut Tls) -> Option<()> {
    while let Some(id) = request(stream) {
        answer(stream, id)?;
    }
    Some(())
}

fn answer(stream: &mut Tls, id: u32) -> Option<()> {
    // `:status: 200` and `content-type: application/json`, the latter by its number in the static table.
    let headers = [&[0x88, 0x0f, 0x10, 16][..], b"application/json"].concat();
    stream.write_all(&frame(1, 4, id, &headers)).ok()?;
    stream.write_all(&frame(0, 1, id, ANSWER.as_bytes())).ok()?;
    Some(())
}

#[tokio::test]
async fn a_request_refused_unread_is_resent_once() {
    let reset = |id| frame(3, 0, id, &7_u32.to_be_bytes());
    let leave = |_| frame(7, 0, 0, &[0; 8]);
    for refusal in [reset as fn(u32) -> Vec<u8>, leave] {
        let url = on_each(&[b"h2"], move |mut stream, number| {
            refuse(&mut stream, number, refusal);
        });
        let options = Options { cert_file: Some(file("ca.pem")), ..options() };
        let answer = ask(&router(Dialect::Anthropic, &url, options), Dialect::Anthropic).await.unwrap();
        assert_eq!(answer.message.text(), "Hi");
    }
}

#[tokio::test]
async fn a_crowd_shares_one_connection() {
    let (tell, told) = mpsc::channel();
    let url = on_each(&[b"h2"], move |mut stream, number| {
        tell.send(number).unwrap();
        let _ = greet(&mut stream).and_then(|()| answer_all(&mut stream));
    });
    let options = Options { cert_file: Some(file("ca.pem")), ..options() };
    let router = router(Dialect::Anthropic, &url, options);
    let one = || {
        let router = router.clone();
        tokio::spawn(async move { ask(&router, Dialect::Anthropic).await.unwrap().message.text() })
    };
    let crowd: Vec<_> = (0..20).map(|_| one()).collect();
    for answer in crowd {
        assert_eq!(answer.await.unwrap(), "Hi");
    }
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [0]);
}

#[tokio::test]
async fn a_request_without_a_free_stream_uses_another_connection() {
    let together = Barrier::new(3);
    let (tell, told) = mpsc::channel();
    let url = on_each(&[b"h2"], move |mut stream, number| {
        let _ = tell.send(number);
        // Two at a time; nobody is answered before there are six.
        let _: Option<()> = (|| {
            greet_with(&mut stream, &[0, 3, 0, 0, 0, 2])?;
            let ids = [request(&mut stream)?, request(&mut stream)?];
            together.wait();
            ids.into_iter().try_for_each(|id| answer(&mut stream, id))?;
            answer_all(&mut stream)
        })();
    });
    let options = Options { cert_file: Some(file("ca.pem")), ..options() };
    let router = router(Dialect::Anthropic, &url, options);
    let one = || {
        let router = router.clone();
        tokio::spawn(async move { ask(&router, Dialect::Anthropic).await.unwrap().message.text() })
    };
    let crowd: Vec<_> = (0..6).map(|_| one()).collect();
    for answer in crowd {
        assert_eq!(answer.await.unwrap(), "Hi");
    }
    // The seats are free again.
    assert_eq!(one().await.unwrap(), "Hi");
    let mut connections: Vec<usize> = told.try_iter().collect();
    connections.sort_unstable();
    assert_eq!(connections, [0, 1, 2]);
}

#[tokio::test]
async fn a_crowd_for_which_there_are_no_seats_is_answered_all_the_same() {
    let (tell, told) = mpsc::channel();
    // One at a time.
    let url = on_each(&[b"h2"], move |mut stream, number| {
        let _ = tell.send(number);
        let _ = greet_with(&mut stream, &[0, 3, 0, 0, 0, 1]).and_then(|()| answer_all(&mut stream));
    });
    let options = Options { cert_file: Some(file("ca.pem")), ..options() };
    let router = router(Dialect::Anthropic, &url, options);
    let crowd: Vec<_> = (0..200)
        .map(|_| {
            let router = router.clone();
            tokio::spawn(async move { ask(&router, Dialect::Anthropic).await.unwrap().message.text() })
        })
        .collect();
    for answer in crowd {
        assert_eq!(answer.await.unwrap(), "Hi");
    }
    let connections = told.try_iter().count();
    assert!((2..=64).contains(&connections), "{connections}");
}

/// So many calls one after the other, each with little patience; the connections that came, and what became of the calls.
async fn one_after_another(
    calls: usize,
    talk: impl Fn(&mut Tls, usize) -> Option<()> + Send + Sync + 'static,
) -> (Vec<usize>, Vec<String>) {
    let (tell, told) = mpsc::channel();
    let url = on_each(&[b"h2"], move |mut stream, number| {
        let _ = tell.send(number);
        let _ = talk(&mut stream, number);
        // It stays open until the client is gone.
        while request(&mut stream).is_some() {}
    });
    let options = Options { cert_file: Some(file("ca.pem")), idle_timeout: Duration::from_millis(500), ..options() };
    let router = router(Dialect::Anthropic, &url, options);
    let mut said = Vec::new();
    for _ in 0..calls {
        said.push(match ask(&router, Dialect::Anthropic).await {
            Ok(answer) => answer.message.text(),
            failed_one => format!("{:?}", failed(failed_one).0),
        });
    }
    (told.try_iter().collect(), said)
}

#[tokio::test]
async fn a_silent_connection_is_not_used_again() {
    type Silence = fn(&mut Tls) -> Option<()>;
    // It says nothing at all; no more after an answer; or no more in the middle of one.
    let silences: [(&[&str], Silence); 3] = [
        (&["Timeout", "Hi"], |_| None),
        (&["Hi", "Timeout", "Hi"], |stream| {
            greet(stream)?;
            let id = request(stream)?;
            answer(stream, id)
        }),
        (&["Timeout", "Hi"], |stream| {
            greet(stream)?;
            let id = request(stream)?;
            let headers = [&[0x88, 0x0f, 0x10, 16][..], b"application/json"].concat();
            stream.write_all(&frame(1, 4, id, &headers)).ok()?;
            stream.write_all(&frame(0, 0, id, b"{")).ok()
        }),
    ];
    for (want, silence) in silences {
        let came = one_after_another(want.len(), move |stream, number| match number {
            0 => silence(stream),
            _ => greet(stream).and_then(|()| answer_all(stream)),
        });
        assert_eq!(came.await, (vec![0, 1], want.iter().map(ToString::to_string).collect()));
    }
}

#[tokio::test]
async fn an_active_connection_survives_a_timed_out_request() {
    let came = one_after_another(2, |stream, _| {
        greet(stream)?;
        request(stream)?;
        // No answer, but a sign of life.
        stream.write_all(&frame(6, 0, 0, &[7; 8])).ok()?;
        answer_all(stream)
    });
    assert_eq!(came.await, (vec![0], vec!["Timeout".to_owned(), "Hi".to_owned()]));
}
