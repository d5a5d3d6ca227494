//! The agent loop of `floor`: Anthropic streaming over one connection.
//!
//! The history is kept as the bytes of the request, so a turn only appends to it: nothing is built twice. Errors are
//! strings, since nothing here recovers from any.

mod stream;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use stream::Block;
pub(crate) use stream::Reader;

/// What a file may add to the history.
const READ_BYTES_MAX: usize = 256 * 1024;
/// Closes the request that `history` leaves open.
const TAIL: &[u8] = b"]}";

pub(crate) struct End {
    /// Turns that called a tool.
    pub turns: usize,
    pub text: String,
}

/// Runs until the model answers without a tool; more than `turns_max` tool turns is an error.
pub(crate) async fn run(host: &str, turns_max: usize, pad: usize) -> Result<End, String> {
    let stream = TcpStream::connect(host).await.map_err(|error| format!("`{host}`: {error}"))?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let mut reader = Reader::new(stream);
    let mut history = opening(pad);
    for turns in 0..=turns_max {
        send(&mut reader.stream, host, &mut history).await.map_err(|error| format!("sending: {error}"))?;
        let blocks = reader.answer().await?;
        let results: Vec<Value> = blocks.iter().filter_map(run_tool).collect();
        if results.is_empty() {
            return Ok(End { turns, text: blocks.iter().map(|block| block.text.as_str()).collect() });
        }
        let said: Vec<Value> = blocks.iter().map(native).collect();
        let messages = [json!({"role": "assistant", "content": said}), json!({"role": "user", "content": results})];
        for message in messages {
            history.push(b',');
            history.extend_from_slice(message.to_string().as_bytes());
        }
    }
    Err(format!("the model still calls tools after {turns_max} turns"))
}

/// The request as far as it never changes, padded to about `pad` bytes, its list of messages left open.
fn opening(pad: usize) -> Vec<u8> {
    let tools = json!([{
        "name": "read_file", "description": "Reads a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }]);
    let user = json!({"role": "user", "content": "Read the file until you know it."});
    let start = r#"{"model":"floor","max_tokens":1024,"stream":true,"#;
    let rest = format!(r#""tools":{tools},"messages":[{user}"#);
    let system = "x".repeat(pad.saturating_sub(start.len() + rest.len()));
    format!(r#"{start}"system":"{system}",{rest}"#).into_bytes()
}

async fn send(stream: &mut TcpStream, host: &str, history: &mut Vec<u8>) -> std::io::Result<()> {
    let open = history.len();
    history.extend_from_slice(TAIL);
    stream.write_all(head(host, history.len()).as_bytes()).await?;
    stream.write_all(history).await?;
    history.truncate(open);
    Ok(())
}

/// The head of a request with so many bytes of body.
pub(crate) fn head(host: &str, length: usize) -> String {
    format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nx-api-key: floor\r\n\
         anthropic-version: 2023-06-01\r\ncontent-length: {length}\r\n\r\n"
    )
}

fn native(block: &Block) -> Value {
    match &block.call {
        Some((id, name)) => json!({"type": "tool_use", "id": id, "name": name, "input": input(block)}),
        None => json!({"type": "text", "text": block.text}),
    }
}

fn run_tool(block: &Block) -> Option<Value> {
    let (id, name) = block.call.as_ref()?;
    let result = match (name.as_str(), input(block).get("path").and_then(Value::as_str)) {
        ("read_file", Some(path)) => std::fs::read_to_string(path).map_err(|error| format!("`{path}`: {error}")),
        _ => Err(format!("no tool `{name}` with these arguments")),
    };
    let (mut content, is_error) = result.map_or_else(|error| (error, true), |text| (text, false));
    content.truncate(content.floor_char_boundary(READ_BYTES_MAX));
    Some(json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}))
}

/// No arguments arrive as no text.
fn input(block: &Block) -> Value {
    serde_json::from_str(&block.text).unwrap_or_else(|_| json!({}))
}
