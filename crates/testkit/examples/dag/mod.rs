//! The plan of `floor`: layers of model calls, each layer after all of the one before.
//!
//! One connection per place, kept alive, opened by its first call. A call is a written request and a parsed stream; a
//! layer is over when its last answer is whole. Nothing is planned, kept or checked beyond that.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::talk::{self, Reader};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub layers: usize,
    pub width: usize,
    /// Size of a request's body.
    pub bytes: usize,
}

/// What a call leaves behind.
struct Call {
    reader: Reader,
    sent: Instant,
    whole: Instant,
}

/// From the first request sent to the last answer whole.
pub(crate) async fn run(host: &str, shape: Shape) -> Result<Duration, String> {
    let (mut idle, mut first, mut last): (Vec<Reader>, Option<Instant>, Option<Instant>) = (Vec::new(), None, None);
    for layer in 0..shape.layers {
        let mut calls = JoinSet::new();
        for place in 0..shape.width {
            calls.spawn(call(idle.pop(), host.to_owned(), format!("{layer}.{place}"), shape.bytes));
        }
        while let Some(call) = calls.join_next().await {
            let call = call.map_err(|error| format!("a call broke: {error}"))??;
            first = Some(first.map_or(call.sent, |first| first.min(call.sent)));
            last = last.max(Some(call.whole));
            idle.push(call.reader);
        }
    }
    first.zip(last).map(|(first, last)| last - first).ok_or_else(|| "a plan without tasks".into())
}

async fn call(idle: Option<Reader>, host: String, task: String, bytes: usize) -> Result<Call, String> {
    let mut reader = match idle {
        Some(reader) => reader,
        None => {
            let stream = TcpStream::connect(&host).await.map_err(|error| format!("`{host}`: {error}"))?;
            stream.set_nodelay(true).map_err(|error| error.to_string())?;
            Reader::new(stream)
        }
    };
    let body = body(&task, bytes);
    let request = talk::head(&host, body.len()) + &body;
    let sent = Instant::now();
    reader.stream.write_all(request.as_bytes()).await.map_err(|error| format!("sending: {error}"))?;
    if reader.answer().await?.iter().all(|block| block.text.is_empty()) {
        return Err(format!("task {task} got an empty answer"));
    }
    Ok(Call { reader, sent, whole: Instant::now() })
}

/// A request of exactly `bytes`, or the least that is one.
fn body(task: &str, bytes: usize) -> String {
    let messages = json!([{"role": "user", "content": format!("# Your task\n\nDo {task} and say `done`.")}]);
    let start = r#"{"model":"floor","max_tokens":1024,"stream":true,"system":""#;
    let rest = format!(r#"","messages":{messages}}}"#);
    format!("{start}{}{rest}", "x".repeat(bytes.saturating_sub(start.len() + rest.len())))
}
