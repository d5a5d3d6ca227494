//! As much HTTP/1.1 as a model client speaks to us.
//!
//! Requests with a content length, one after the other on a connection that stays open. A request body in chunks is
//! refused: no client of a model API needs it. Nothing here knows about models.

use std::io;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HEAD_BYTES_MAX: usize = 64 * 1024;
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
const HEADERS_MAX: usize = 100;
/// Room made for each read. Requests carry whole conversations, so small reads would cost many system calls.
const READ_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// When its last byte was read.
    pub(crate) arrived: Instant,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether the client wants the connection closed after this request.
    pub(crate) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    fn length(&self) -> Result<usize, String> {
        if self.header("transfer-encoding").is_some() {
            return Err("a request body in chunks is not supported: send a content-length".into());
        }
        let length = match self.header("content-length") {
            Some(value) => value.parse().map_err(|_| format!("content-length `{value}` is not a number"))?,
            None => 0,
        };
        if length > BODY_BYTES_MAX {
            return Err(format!("a body of {length} bytes is over {BODY_BYTES_MAX}"));
        }
        Ok(length)
    }
}

/// One client, with what it has sent but we have not used yet.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// When the last write began. The client may act on it long before the system call returns.
    pub(crate) wrote_at: Instant,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::new(), wrote_at: Instant::now() })
    }

    /// The next whole request, none when the client has gone, an error when what it sent is not for us.
    pub(crate) async fn next(&mut self) -> Result<Option<Request>, String> {
        let Some(head_bytes) = self.head().await? else { return Ok(None) };
        let head: Vec<u8> = self.buffer.drain(..head_bytes).collect();
        let mut request = parse(&String::from_utf8_lossy(&head))?;
        let length = request.length()?;
        if request.header("expect").is_some() && self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_err() {
            return Ok(None);
        }
        while self.buffer.len() < length {
            let rest = length - self.buffer.len();
            if !self.read(rest).await {
                return Ok(None);
            }
        }
        let next = self.buffer.split_off(length);
        request.body = std::mem::replace(&mut self.buffer, next);
        request.arrived = Instant::now();
        Ok(Some(request))
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.wrote_at = Instant::now();
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Reads until the empty line, and says where the body starts.
    async fn head(&mut self) -> Result<Option<usize>, String> {
        loop {
            if let Some(at) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                return Ok(Some(at + 4));
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(format!("a request head over {HEAD_BYTES_MAX} bytes"));
            }
            if !self.read(READ_BYTES).await {
                return Ok(None);
            }
        }
    }

    /// Reads what there is; false when the client has gone, killed or not: that is no news to a crash test.
    async fn read(&mut self, room: usize) -> bool {
        self.buffer.reserve(room);
        matches!(self.stream.read_buf(&mut self.buffer).await, Ok(1..))
    }
}

fn parse(head: &str) -> Result<Request, String> {
    let mut lines = head.split("\r\n").take_while(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1"), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(format!("`{first}` is not an HTTP/1.1 request line"));
    };
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| format!("`{line}` is not a header"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    if headers.len() > HEADERS_MAX {
        return Err(format!("{} headers are over {HEADERS_MAX}", headers.len()));
    }
    let (method, target) = (method.to_owned(), target.to_owned());
    Ok(Request { method, target, headers, body: Vec::new(), arrived: Instant::now() })
}

/// How the client learns where a body ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

impl Framing {
    /// Appends a piece of the body.
    pub(crate) fn frame(self, piece: &[u8], out: &mut Vec<u8>) {
        match self {
            Framing::Length(_) => out.extend_from_slice(piece),
            Framing::Chunked => {
                out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                out.extend_from_slice(piece);
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Appends what says that the body is complete.
    pub(crate) fn end(self, out: &mut Vec<u8>) {
        if let Framing::Chunked = self {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }
}

/// The status line and headers of a response.
pub(crate) fn head(status: u16, framing: Framing, headers: &[(String, String)]) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    match framing {
        Framing::Length(bytes) => out.push_str(&format!("content-length: {bytes}\r\n")),
        Framing::Chunked => out.push_str("transfer-encoding: chunked\r\n"),
    }
    for (name, value) in headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    out.push_str("\r\n");
    out.into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Scripted",
    }
}
