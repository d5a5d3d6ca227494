//! A blocking HTTP client that shows everything: each chunk, and whether the body ended as promised.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use max_team_testkit::ModelServer;
use serde_json::{Value, json};

pub(crate) const MESSAGES: &str = "/v1/messages";
pub(crate) const CHAT: &str = "/v1/chat/completions";
/// A test that waits this long has failed.
const READ_MAX: Duration = Duration::from_secs(20);

pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: Head,
    pub(crate) chunks: Vec<Vec<u8>>,
    /// False when the connection closed before the body was complete.
    pub(crate) whole: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
}

impl Client {
    pub(crate) fn connect(server: &ModelServer) -> Client {
        let stream = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(READ_MAX)).unwrap();
        Client { stream, buffer: Vec::new() }
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, body: &str) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: test\r\nX-Api-Key: k\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).unwrap();
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn call(&mut self, method: &str, path: &str, body: &Value) -> Response {
        self.send(method, path, &body.to_string());
        self.response()
    }

    pub(crate) fn response(&mut self) -> Response {
        let head = self.head();
        let mut chunks = Vec::new();
        let whole = if let Some(length) = head.header("content-length") {
            let length = length.parse().unwrap();
            let whole = self.fill(length);
            chunks.push(self.take(length.min(self.buffer.len())));
            whole
        } else {
            loop {
                match self.chunk() {
                    Some(chunk) if chunk.is_empty() => break true,
                    Some(chunk) => chunks.push(chunk),
                    None => break false,
                }
            }
        };
        Response { head, chunks, whole }
    }

    pub(crate) fn head(&mut self) -> Head {
        let text = self.line().expect("a response");
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().expect("a whole head");
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        Head { status, headers }
    }

    /// The next chunk, empty at the end of the body; none when the connection broke.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line()?, 16).unwrap();
        self.fill(size + 2).then(|| {
            let mut chunk = self.take(size + 2);
            chunk.truncate(size);
            chunk
        })
    }

    /// Whether there is nothing to read: the server is alive and says nothing.
    pub(crate) fn silent(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let read = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        self.buffer.is_empty() && read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// Whether the server has closed the connection, and sent nothing before.
    pub(crate) fn closed(&mut self) -> bool {
        self.buffer.is_empty() && !self.fill(1)
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|bytes| bytes == b"\r\n") {
                let line = self.take(at + 2);
                return Some(String::from_utf8(line[..at].to_vec()).unwrap());
            }
            if !self.fill(self.buffer.len() + 1) {
                return None;
            }
        }
    }

    /// Reads until the buffer holds so many bytes; false at the end of the connection.
    fn fill(&mut self, bytes: usize) -> bool {
        let mut piece = [0; 4096];
        while self.buffer.len() < bytes {
            match self.stream.read(&mut piece).unwrap() {
                0 => return false,
                read => self.buffer.extend_from_slice(&piece[..read]),
            }
        }
        true
    }

    fn take(&mut self, bytes: usize) -> Vec<u8> {
        self.buffer.drain(..bytes).collect()
    }
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.chunks.concat()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.text().split_terminator("\n\n").map(event).collect()
    }

    /// The data of all events, which must be JSON.
    pub(crate) fn data(&self) -> Vec<Value> {
        self.events().iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect()
    }
}

fn event(text: &str) -> Event {
    let mut event = Event { name: String::new(), data: String::new() };
    for line in text.lines() {
        match line.split_once(": ").unwrap() {
            ("event", name) => event.name = name.to_owned(),
            ("data", data) => event.data = data.to_owned(),
            _ => panic!("`{line}` is no line of an event"),
        }
    }
    event
}

/// A request for a stream, good for both dialects.
pub(crate) fn streamed() -> Value {
    json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]})
}

/// A request for one body, good for both dialects.
pub(crate) fn whole() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
}

/// The strings at `pointer` of each value, put together.
pub(crate) fn joined(values: &[Value], pointer: &str) -> String {
    values.iter().filter_map(|value| value.pointer(pointer)?.as_str()).collect()
}
