//! An HTTP server whose answers a test decides, byte by byte.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// The head, in small letters.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Request {
    /// The method of the protocol that the body asks for.
    pub(crate) fn asks(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The answer that the protocol expects.
    pub(crate) fn result(&self, result: Value) -> Reply {
        Reply::json(200, json!({ "jsonrpc": "2.0", "id": self.json()["id"], "result": result }))
    }
}

/// What a request is answered with.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// These bytes, then the end of the connection.
    Bytes(Vec<u8>),
    /// Nothing, on a connection that stays open.
    Silence,
    /// These bytes, then the second ones for ever.
    Endless(Vec<u8>, Vec<u8>),
}

impl Reply {
    pub(crate) fn new(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n");
        Self::Bytes([head.as_bytes(), body.as_bytes()].concat())
    }

    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self::new(status, "content-type: application/json\r\n", &body.to_string())
    }

    /// A body of that type whose end never comes.
    pub(crate) fn endless(kind: &str, begin: &str, block: Vec<u8>) -> Self {
        let head = format!("HTTP/1.1 200 X\r\nconnection: close\r\ncontent-type: {kind}\r\n\r\n{begin}");
        Self::Endless(head.into_bytes(), block)
    }
}

/// A server that answers as a function says.
pub(crate) struct FakeServer {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    written: Arc<Mutex<usize>>,
}

impl FakeServer {
    pub(crate) async fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (requests, written, answer) = (Arc::default(), Arc::default(), Arc::new(answer));
        let (seen, sum) = (Arc::clone(&requests), Arc::clone(&written));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, sum, answer) = (Arc::clone(&seen), Arc::clone(&sum), Arc::clone(&answer));
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let Some(request) = read(&mut stream).await else { return };
                    let seen: Arc<Mutex<Vec<Request>>> = seen;
                    seen.lock().unwrap().push(request.clone());
                    write(stream, answer(&request), &sum).await;
                });
            }
        });
        Self { url, requests, written }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Bytes that were written so far.
    pub(crate) fn written(&self) -> usize {
        *self.written.lock().unwrap()
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (stream.read_line(&mut head).await.ok()? > 0).then_some(())?;
    }
    let mut words = head.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { method, path, head, body: String::from_utf8(body).ok()? })
}

async fn write(mut stream: BufReader<TcpStream>, reply: Reply, sum: &Mutex<usize>) {
    match reply {
        Reply::Bytes(bytes) => drop(stream.write_all(&bytes).await),
        // Until the client gives up.
        Reply::Silence => drop(stream.read_u8().await),
        Reply::Endless(begin, block) => {
            let mut next = begin;
            while stream.write_all(&next).await.is_ok() {
                *sum.lock().unwrap() += next.len();
                next.clone_from(&block);
            }
        }
    }
}

/// Answers as a server of the older protocol with one tool, `x`; the call itself is answered by `call`.
pub(crate) fn legacy(request: &Request, call: impl Fn(&Request) -> Reply) -> Reply {
    match request.asks().as_str() {
        _ if request.method == "GET" => Reply::new(405, "", ""),
        _ if request.method == "DELETE" => Reply::new(200, "", ""),
        "initialize" => request.result(json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "f", "version": "1" },
        })),
        "tools/list" => request.result(json!({ "tools": [{ "name": "x", "inputSchema": { "type": "object" } }] })),
        "tools/call" => call(request),
        asks if asks.starts_with("notifications/") => Reply::new(202, "", ""),
        _ => Reply::new(400, "", "unknown"),
    }
}
