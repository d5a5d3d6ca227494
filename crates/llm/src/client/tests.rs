//! What is said of proxies that fail. The password that was written for them is in no word of it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use max_team_core::chat::{Message, Part};
use max_team_core::context::Window;

use super::*;
use crate::transcript::{RequestOptions, Transcript};
use crate::{Catalog, Router};

/// A proxy that answers whatever it is asked with this; its address.
fn proxy(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = Vec::new();
            while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
                let mut piece = [0; 512];
                let read = stream.read(&mut piece).unwrap();
                asked.extend_from_slice(&piece[..read]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    at
}

/// What one call through a proxy comes to.
async fn through_proxy(proxy: &str, to: &str) -> (Failure, String) {
    let pool = Pool::with_proxy_variables(&[("ALL_PROXY", proxy)]);
    let client = Client {
        inner: Arc::new(Inner {
            idle_timeout: Duration::from_secs(20),
            progress_timeout: Duration::from_secs(20),
            pool,
        }),
    };
    let catalog = Arc::new(Catalog::builtin().clone());
    let endpoint = Endpoint::new(catalog.provider("anthropic").unwrap(), Some(to), None).unwrap();
    let model = catalog.resolve("claude-sonnet-4-6", None).unwrap();
    let router = Router::http(catalog, [], Options::default());
    let hello = Message::user(vec![Part::text("Hello")]);
    let transcript = Transcript::encode(router.wire(&model), "Be kind.", &[], &[hello]);
    let window = Window::default();
    let call = RequestOptions { number: 1, max_tokens: 4_000, tools_off: false, window, upto: transcript.len() };
    match client.call(&endpoint, &transcript.request(&call), &CancellationToken::new(), |_| {}).await {
        Err(CallError::Failed { failure, detail, .. }) => (failure, detail),
        other => panic!("expected a failure, got {other:?}"),
    }
}

#[tokio::test]
async fn a_proxy_that_fails_is_named_with_its_status() {
    let table = [
        ("HTTP/1.1 407 Who\r\ncontent-length: 0\r\n\r\n", Failure::Setup, "407", "NAME:PASSWORD@"),
        ("HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n", Failure::Setup, "403", "NO_PROXY"),
        ("HTTP/1.1 502 Bad\r\ncontent-length: 0\r\n\r\n", Failure::Network, "502", "try later"),
        ("HTTP/1.1 302 Away\r\nlocation: /\r\n\r\n", Failure::Setup, "302", "the proxy's operator"),
    ];
    for (answer, want, status, advice) in table {
        let at = proxy(answer);
        let (failure, detail) = through_proxy(&format!("http://ann:s3cr3t@{at}"), "https://models.test").await;
        assert_eq!(failure, want, "{detail}");
        assert!(detail.starts_with(&format!("anthropic: the proxy `{at}` answered with HTTP {status}; ")), "{detail}");
        assert!(detail.contains(advice) && !detail.contains("s3cr3t"), "{detail}");
    }
}

#[tokio::test]
async fn a_plain_answer_may_be_the_proxys_own() {
    let at = proxy("HTTP/1.1 407 Who\r\ncontent-length: 6\r\n\r\n<html>");
    let (failure, detail) = through_proxy(&at, "http://models.test").await;
    assert_eq!(failure, Failure::Setup);
    assert!(detail.starts_with(&format!("anthropic: the proxy `{at}` answered with HTTP 407; ")), "{detail}");

    let at = proxy("HTTP/1.1 502 Bad\r\ncontent-length: 0\r\n\r\n");
    let (failure, detail) = through_proxy(&at, "http://models.test").await;
    assert_eq!(failure, Failure::Server { retry_after_ms: None });
    assert!(detail.ends_with(&format!("; it was asked for through the proxy `{at}`")), "{detail}");
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (scheme, to) in
        [("http", "https://models.test"), ("http", "http://models.test"), ("socks5h", "https://models.test")]
    {
        let (failure, detail) = through_proxy(&format!("{scheme}://ann:s3cr3t@{gone}"), to).await;
        assert_eq!(failure, Failure::Network, "{detail}");
        let words = format!("anthropic: `models.test`, asked through the proxy `{gone}`, cannot be reached (");
        assert!(detail.starts_with(&words) && !detail.contains("s3cr3t"), "{detail}");
    }
    let (failure, detail) = through_proxy("ftp://ann:s3cr3t@10.0.0.1:1", "https://models.test").await;
    assert_eq!(failure, Failure::Setup);
    assert!(detail.starts_with("anthropic: the proxy in `ALL_PROXY` is not understood"), "{detail}");
    assert!(!detail.contains("s3cr3t"), "{detail}");
}
