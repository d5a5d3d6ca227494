//! Reads one streamed answer: HTTP head, chunks, server-sent events.
//!
//! One buffer per connection. An answer counts only when its closing event came.

use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

const READ_BYTES: usize = 64 * 1024;

pub(crate) struct Reader {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

/// Text, or a tool call with its id and name; then the text is its arguments.
#[derive(Debug)]
pub(crate) struct Block {
    pub call: Option<(String, String)>,
    pub text: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    ContentBlockStart {
        content_block: Start,
    },
    ContentBlockDelta {
        delta: Delta,
    },
    MessageStop,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Start {
    ToolUse {
        id: String,
        name: String,
    },
    #[serde(other)]
    Other,
}

/// Text or arguments, whichever it carries; thinking and signatures carry neither.
#[derive(Deserialize)]
struct Delta {
    #[serde(default, alias = "text", alias = "partial_json")]
    piece: String,
}

impl Reader {
    pub(crate) fn new(stream: TcpStream) -> Reader {
        Reader { stream, buffer: Vec::with_capacity(READ_BYTES) }
    }

    pub(crate) async fn answer(&mut self) -> Result<Vec<Block>, String> {
        let status = self.line().await?;
        if !status.starts_with("HTTP/1.1 200") {
            return Err(format!("the server said `{status}`"));
        }
        let mut chunked = false;
        loop {
            let line = self.line().await?;
            chunked |= line.eq_ignore_ascii_case("transfer-encoding: chunked");
            if line.is_empty() {
                break;
            }
        }
        if !chunked {
            return Err("the answer is not a stream".into());
        }
        self.body().await
    }

    async fn body(&mut self) -> Result<Vec<Block>, String> {
        let (mut text, mut blocks, mut done) = (Vec::new(), Vec::new(), false);
        loop {
            let size = self.line().await?;
            let size = usize::from_str_radix(&size, 16).map_err(|_| format!("`{size}` is no chunk size"))?;
            let chunk = self.take(size + 2).await?;
            if size == 0 {
                break;
            }
            text.extend_from_slice(chunk.get(..size).unwrap_or_default());
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            for line in text.drain(..whole).as_slice().split(|byte| *byte == b'\n') {
                if let Some(data) = line.strip_prefix(b"data: ") {
                    done |= apply(data, &mut blocks)?;
                }
            }
        }
        if done { Ok(blocks) } else { Err("the stream ended without its closing event".into()) }
    }

    async fn line(&mut self) -> Result<String, String> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|bytes| bytes == b"\r\n") {
                let line = self.take(at + 2).await?;
                return Ok(String::from_utf8_lossy(line.get(..at).unwrap_or_default()).into_owned());
            }
            self.fill().await?;
        }
    }

    async fn take(&mut self, bytes: usize) -> Result<Vec<u8>, String> {
        while self.buffer.len() < bytes {
            self.fill().await?;
        }
        Ok(self.buffer.drain(..bytes).collect())
    }

    async fn fill(&mut self) -> Result<(), String> {
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(1..) => Ok(()),
            Ok(0) => Err("the server closed the connection".into()),
            Err(error) => Err(format!("reading: {error}")),
        }
    }
}

/// Adds an event to the answer; true when it is the closing one.
fn apply(data: &[u8], blocks: &mut Vec<Block>) -> Result<bool, String> {
    let event = serde_json::from_slice(data).map_err(|error| format!("an event is not JSON: {error}"))?;
    match event {
        Event::ContentBlockStart { content_block } => {
            let call = if let Start::ToolUse { id, name } = content_block { Some((id, name)) } else { None };
            blocks.push(Block { call, text: String::new() });
        }
        Event::ContentBlockDelta { delta } => {
            if let Some(block) = blocks.last_mut() {
                block.text.push_str(&delta.piece);
            }
        }
        Event::MessageStop => return Ok(true),
        Event::Other => {}
    }
    Ok(false)
}
