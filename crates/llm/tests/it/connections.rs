//! Connections: kept, dropped, and answered with things that are no answers.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use max_team_core::recovery::Failure;
use max_team_llm::Dialect;

use crate::{ask, failed, options, router};

pub(crate) const ANSWER: &str =
    r#"{"model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"Hi"}],"usage":{}}"#;

/// Serves one connection per step list; each step answers one request, or hangs up on it. Tells what each
/// connection was asked for.
fn serve(connections: Vec<Vec<Option<String>>>) -> (String, mpsc::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for (number, steps) in connections.into_iter().enumerate() {
            let (mut stream, _) = listener.accept().unwrap();
            for step in steps {
                if !read_request(&mut stream) {
                    break;
                }
                // Not every test listens.
                let _ = tell.send(number);
                match step {
                    Some(response) => stream.write_all(response.as_bytes()).unwrap(),
                    None => break,
                }
            }
        }
    });
    (url, told)
}

/// Reads one request; false if none came.
pub(crate) fn read_request(stream: &mut impl Read) -> bool {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
            if body.len() >= length.unwrap().parse::<usize>().unwrap() {
                return true;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

pub(crate) fn response(kind: &str, body: &str) -> Option<String> {
    Some(format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

fn chunked(events: &str) -> Option<String> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    Some(format!("{head}{:x}\r\n{events}\r\n0\r\n\r\n", events.len()))
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_replaced_without_a_word() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    let (let_go, wait) = mpsc::channel::<()>();
    thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(read_request(&mut stream));
            stream.write_all(response("application/json", ANSWER).unwrap().as_bytes()).unwrap();
            wait.recv().unwrap();
            drop(stream);
            tell.send(()).unwrap();
        }
    });
    let router = router(Dialect::Anthropic, &url, options());
    ask(&router, Dialect::Anthropic).await.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(2)).await;
    tokio::time::resume();
    // Nothing else runs meanwhile: that it was closed is not known when it is asked for.
    let_go.send(()).unwrap();
    told.recv().unwrap();
    ask(&router, Dialect::Anthropic).await.unwrap();
    let_go.send(()).unwrap();
    told.recv().unwrap();
}

#[tokio::test]
async fn a_request_that_may_have_been_read_is_not_resent() {
    let json = || response("application/json", ANSWER);
    let (url, told) = serve(vec![vec![json(), None], vec![json()]]);
    let router = router(Dialect::Anthropic, &url, options());
    ask(&router, Dialect::Anthropic).await.unwrap();
    let (failure, detail) = failed(ask(&router, Dialect::Anthropic).await);
    // Whoever keeps the books asks again, and writes it down.
    assert_eq!(failure, Failure::Network);
    assert!(detail.contains("closed the connection without an answer"), "{detail}");
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [0, 0]);
}

#[tokio::test]
async fn a_fresh_connection_that_drops_is_a_failure() {
    let (url, told) = serve(vec![vec![None], vec![None]]);
    let (failure, detail) = failed(ask(&router(Dialect::Anthropic, &url, options()), Dialect::Anthropic).await);
    assert_eq!(failure, Failure::Network);
    assert!(detail.contains("closed the connection without an answer"), "{detail}");
    assert_eq!(told.try_iter().count(), 1);
}

#[tokio::test]
async fn connections_are_kept_after_streams() {
    let events = "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let (url, told) = serve(vec![vec![chunked(events), chunked(events), chunked(events)]]);
    let router = router(Dialect::Anthropic, &url, options());
    for _ in 0..3 {
        ask(&router, Dialect::Anthropic).await.unwrap();
    }
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [0, 0, 0]);
}

#[tokio::test]
async fn responses_without_an_answer_are_distinguished() {
    let table = [
        (response("text/html", "<html>log in</html>"), Failure::InvalidRequest, "a web page came instead"),
        (response("application/json", "{}"), Failure::Malformed, "cannot be read"),
        (
            response("application/json", r#"{"error":{"type":"overloaded_error"}}"#),
            Failure::Overloaded { retry_after_ms: None },
            "busy",
        ),
        (response("text/plain", "hello"), Failure::Truncated, "ended before"),
    ];
    for (response, want, words) in table {
        let (url, _) = serve(vec![vec![response]]);
        let (failure, detail) = failed(ask(&router(Dialect::Anthropic, &url, options()), Dialect::Anthropic).await);
        assert_eq!(failure, want);
        assert!(detail.contains(words), "{detail}");
    }
}
