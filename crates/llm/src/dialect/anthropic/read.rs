//! Reads answers in the format of Anthropic Messages.
//!
//! Blocks of every kind are kept in order and in full: unknown ones go back to the provider as they came. Deltas of
//! unknown kinds are merged by shape (strings append, everything else is set). An answer of only text and tool calls,
//! spelled exactly as our encoder writes them, is not kept a second time as blocks. Only `message_stop` ends a stream;
//! a stream that ends without it is a failure.

use std::borrow::Cow;
use std::io;

use max_team_core::chat::{Part, StopReason, Usage};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::encode::fits;
use crate::call::{CallFault, Delta, Sink};
use crate::dialect::Draft;
use crate::failure;
use crate::json::{self, put};
use crate::sse::Event;

#[derive(Debug, Default)]
pub(crate) struct AnthropicReader {
    pub(crate) usage: Usage,
    id: Option<String>,
    model: Option<String>,
    stop: Option<String>,
    blocks: Vec<Block>,
    ended: bool,
    /// Whether the end of the stream reported the usage: the beginning counts only the first token.
    has_told_usage: bool,
}

#[derive(Debug)]
struct Block {
    index: u64,
    body: BlockBody,
    /// A tool's input as it was streamed.
    input: String,
    /// The block as it came, when it came whole.
    raw: Option<String>,
}

#[derive(Debug)]
enum BlockBody {
    /// Text and nothing else.
    Text(String),
    /// A call and nothing else; its input is streamed.
    Tool { id: String, name: String },
    /// The fields of any other block.
    Other(Map<String, Value>),
}

/// An answer that came in one piece.
#[derive(Deserialize)]
struct WholeAnswer {
    id: Option<String>,
    model: Option<String>,
    content: Vec<Box<RawValue>>,
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Value,
}

/// `message_start` in its usual shape. Events of a usual shape are parsed straight into these types; all others are
/// parsed as JSON values first.
#[derive(Deserialize)]
struct MessageStart {
    message: MessageHead,
}

/// `content_block_start`.
#[derive(Deserialize)]
struct BlockStart<'e> {
    index: Option<u64>,
    #[serde(borrow)]
    content_block: BlockHead<'e>,
}

/// `content_block_delta`.
#[derive(Deserialize)]
struct BlockDelta<'e> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: DeltaFields<'e>,
}

/// `message_delta`.
#[derive(Deserialize)]
struct MessageDelta<'e> {
    #[serde(borrow)]
    delta: Option<DeltaFields<'e>>,
    usage: Option<Counts>,
}

/// How a block begins, if it has no unknown fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockHead<'e> {
    #[serde(borrow, rename = "type")]
    kind: Words<'e>,
    #[serde(borrow)]
    text: Option<Words<'e>>,
    #[serde(borrow)]
    id: Option<Words<'e>>,
    #[serde(borrow)]
    name: Option<Words<'e>>,
    input: Option<Map<String, Value>>,
}

impl BlockHead<'_> {
    fn body(self) -> Option<BlockBody> {
        let is_fed_later = self.input.as_ref().is_none_or(Map::is_empty);
        match (&*self.kind.0, self.text, self.id, self.name) {
            ("text", Some(Words(text)), None, None) if self.input.is_none() => Some(BlockBody::Text(text.into_owned())),
            ("tool_use", None, Some(Words(id)), Some(Words(name))) if is_fed_later => {
                Some(BlockBody::Tool { id: id.into_owned(), name: name.into_owned() })
            }
            _ => None,
        }
    }
}

/// A piece of a block, or how the message ends, if it has no unknown fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeltaFields<'e> {
    #[serde(borrow, rename = "type")]
    _kind: Option<Words<'e>>,
    #[serde(borrow)]
    text: Option<Words<'e>>,
    #[serde(borrow)]
    partial_json: Option<Words<'e>>,
    #[serde(borrow)]
    thinking: Option<Words<'e>>,
    stop_reason: Option<String>,
    #[serde(borrow, rename = "stop_sequence")]
    _stop_sequence: Option<Words<'e>>,
}

#[derive(Deserialize)]
struct MessageHead {
    id: Option<String>,
    model: Option<String>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    cache_read_input_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: u64,
}

impl Counts {
    fn tells_output(&self) -> bool {
        self.output_tokens > 0
    }

    /// A field that is not a number counts as 0.
    fn of(usage: &Value) -> Option<Self> {
        let number = |key| json::number(usage, key).unwrap_or_default();
        usage.is_object().then(|| Self {
            input_tokens: number("input_tokens"),
            output_tokens: number("output_tokens"),
            cache_read_input_tokens: number("cache_read_input_tokens"),
            cache_creation_input_tokens: number("cache_creation_input_tokens"),
        })
    }
}

/// Text that borrows from the event, unless something in it is escaped.
#[derive(Deserialize)]
struct Words<'e>(#[serde(borrow)] Cow<'e, str>);

impl AnthropicReader {
    pub(crate) fn event(&mut self, event: Event<'_>, sink: &mut Sink<'_>) -> Result<(), CallFault> {
        if self.usual(event.data, sink)? || event.data.trim().is_empty() {
            return Ok(());
        }
        let data: Value = serde_json::from_str(event.data)
            .map_err(|error| CallFault::malformed(format!("an event of the stream is not JSON ({error})")))?;
        match json::text(&data, "type").unwrap_or(event.name) {
            "message_start" => {
                let message = data.get("message").unwrap_or(&Value::Null);
                self.id = json::text(message, "id").map(str::to_owned);
                self.model = json::text(message, "model").map(str::to_owned);
                self.count(message.get("usage").and_then(Counts::of), sink);
            }
            "content_block_start" => {
                let fields = data.get("content_block").and_then(Value::as_object).cloned();
                self.start(json::number(&data, "index"), BlockBody::Other(fields.unwrap_or_default()), sink);
            }
            "content_block_delta" => self.delta(&data, sink)?,
            "message_delta" => {
                if let Some(reason) = data.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.stop = Some(reason.to_owned());
                }
                let counts = data.get("usage").and_then(Counts::of);
                self.has_told_usage |= counts.as_ref().is_some_and(Counts::tells_output);
                self.count(counts, sink);
            }
            "message_stop" => self.ended = true,
            "error" => return Err(failure::in_stream(&data)),
            // `ping`, `content_block_stop`, and what may come.
            _ => {}
        }
        Ok(())
    }

    /// Handles an event of a usual shape; false if it has another shape.
    fn usual(&mut self, data: &str, sink: &mut Sink<'_>) -> Result<bool, CallFault> {
        match kind(data) {
            Some("content_block_delta") => {
                let Ok(BlockDelta { index, delta }) = serde_json::from_str(data) else { return Ok(false) };
                self.piece(index.unwrap_or_default(), &delta, sink)?;
            }
            Some("content_block_start") => {
                let Ok(BlockStart { index, content_block }) = serde_json::from_str(data) else { return Ok(false) };
                let Some(body) = content_block.body() else { return Ok(false) };
                self.start(index, body, sink);
            }
            Some("message_start") => {
                let Ok(MessageStart { message }) = serde_json::from_str(data) else { return Ok(false) };
                (self.id, self.model) = (message.id, message.model);
                self.count(message.usage, sink);
            }
            Some("message_delta") => {
                let Ok(MessageDelta { delta, usage }) = serde_json::from_str(data) else { return Ok(false) };
                self.stop = delta.and_then(|delta| delta.stop_reason).or(self.stop.take());
                self.has_told_usage |= usage.as_ref().is_some_and(Counts::tells_output);
                self.count(usage, sink);
            }
            // The end counts only if its event is valid JSON.
            Some("message_stop") if serde_json::from_str::<IgnoredAny>(data).is_ok() => self.ended = true,
            Some("ping" | "content_block_stop") => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn whole(&mut self, body: &[u8], sink: &mut Sink<'_>) -> Result<(), CallFault> {
        let whole: WholeAnswer = serde_json::from_slice(body).map_err(|error| failure::unreadable(body, &error))?;
        self.id = whole.id;
        self.model = whole.model;
        self.stop = whole.stop_reason;
        for raw in whole.content {
            let fields = serde_json::from_str(raw.get())
                .map_err(|error| CallFault::malformed(format!("a content block is not an object ({error})")))?;
            let raw = Some(raw.get().to_owned());
            let block = Block { index: 0, body: BlockBody::Other(fields), input: String::new(), raw };
            block.announce(sink);
            if block.kind() == "tool_use" {
                sink(Delta::ToolInput(&block.tool_input().1));
            }
            self.blocks.push(block);
        }
        self.count(Counts::of(&whole.usage), sink);
        (self.ended, self.has_told_usage) = (true, true);
        Ok(())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn partial(&self) -> String {
        self.blocks.iter().filter(|block| block.kind() == "text").map(|block| block.field("text")).collect()
    }

    pub(crate) fn content_bytes(&self) -> usize {
        self.blocks.iter().map(Block::content_bytes).sum()
    }

    pub(crate) fn draft(self) -> Draft {
        let told = self.blocks.into_iter().filter(|block| !block.is_blank());
        let told: Vec<(Option<Part>, Block)> = told.map(|block| (block.part(), block)).collect();
        let is_ours = told.iter().all(|(part, block)| block.is_ours(part.as_ref()));
        let (mut parts, mut native) = (Vec::with_capacity(told.len()), Vec::new());
        for (part, block) in told {
            parts.extend(part);
            native.extend((!is_ours).then(|| block.native()));
        }
        let stop = match self.stop.as_deref() {
            Some("end_turn" | "stop_sequence") | None => StopReason::EndTurn,
            Some("tool_use") => StopReason::ToolUse,
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
            Some("refusal") => StopReason::Refusal,
            Some("pause_turn") => StopReason::Pause,
            Some(other) => StopReason::Other(other.to_owned()),
        };
        let native = (!native.is_empty()).then(|| format!("[{}]", native.join(",")));
        let output = if self.has_told_usage { self.usage.output } else { 0 };
        Draft { parts, native, stop, usage: Usage { output, ..self.usage }, id: self.id, model: self.model }
    }

    /// Counts are cumulative and some events leave some of them out (or say 0), so the largest is the truth.
    fn count(&mut self, counts: Option<Counts>, sink: &mut Sink<'_>) {
        let Some(counts) = counts else { return };
        self.usage = Usage {
            input: counts.input_tokens.max(self.usage.input),
            output: counts.output_tokens.max(self.usage.output),
            cache_read: counts.cache_read_input_tokens.max(self.usage.cache_read),
            cache_write: counts.cache_creation_input_tokens.max(self.usage.cache_write),
        };
        sink(Delta::Usage(self.usage));
    }

    fn start(&mut self, index: Option<u64>, body: BlockBody, sink: &mut Sink<'_>) {
        let index = index.unwrap_or(self.blocks.len() as u64);
        let block = Block { index, body, input: String::new(), raw: None };
        block.announce(sink);
        self.blocks.push(block);
    }

    fn block(&mut self, index: u64) -> Result<&mut Block, CallFault> {
        let block = self.blocks.iter_mut().rev().find(|block| block.index == index);
        block.ok_or_else(|| CallFault::malformed(format!("a delta came for block {index}, which never started")))
    }

    fn piece(&mut self, index: u64, piece: &DeltaFields<'_>, sink: &mut Sink<'_>) -> Result<(), CallFault> {
        let block = self.block(index)?;
        if let Some(Words(text)) = &piece.text {
            block.append("text", text);
            sink(Delta::Text(text));
        }
        if let Some(Words(thinking)) = &piece.thinking {
            block.append("thinking", thinking);
            sink(Delta::Thinking(thinking));
        }
        if let Some(Words(partial)) = &piece.partial_json {
            block.feed(partial, sink);
        }
        Ok(())
    }

    fn delta(&mut self, data: &Value, sink: &mut Sink<'_>) -> Result<(), CallFault> {
        let block = self.block(json::number(data, "index").unwrap_or_default())?;
        let delta = data.get("delta").and_then(Value::as_object);
        for (key, value) in delta.into_iter().flatten().filter(|(key, _)| *key != "type") {
            match (key.as_str(), value) {
                ("partial_json", Value::String(piece)) => block.feed(piece, sink),
                ("citation", citation) => {
                    let citations = block.fields().entry("citations").or_insert(Value::Null);
                    match citations {
                        Value::Array(list) => list.push(citation.clone()),
                        other => *other = json!([citation]),
                    }
                }
                (key, Value::String(piece)) => {
                    block.append(key, piece);
                    match key {
                        "text" => sink(Delta::Text(piece)),
                        "thinking" => sink(Delta::Thinking(piece)),
                        _ => {}
                    }
                }
                (key, other) => {
                    block.fields().insert(key.to_owned(), other.clone());
                }
            }
        }
        Ok(())
    }
}

impl Block {
    fn kind(&self) -> &str {
        match &self.body {
            BlockBody::Text(_) => "text",
            BlockBody::Tool { .. } => "tool_use",
            BlockBody::Other(_) => self.field("type"),
        }
    }

    /// The text under a key.
    fn field(&self, key: &str) -> &str {
        match (&self.body, key) {
            (BlockBody::Text(text), "text") => text,
            (BlockBody::Tool { id, .. }, "id") => id,
            (BlockBody::Tool { name, .. }, "name") => name,
            (BlockBody::Other(fields), key) => fields.get(key).and_then(Value::as_str).unwrap_or_default(),
            _ => "",
        }
    }

    /// All its fields, for deltas that the known kinds have no field for: a text or tool block becomes a general one.
    fn fields(&mut self) -> &mut Map<String, Value> {
        let known = match &mut self.body {
            BlockBody::Other(_) => Value::Null,
            BlockBody::Text(text) => json!({"type": "text", "text": std::mem::take(text)}),
            BlockBody::Tool { id, name } => {
                json!({"type": "tool_use", "id": std::mem::take(id), "name": std::mem::take(name), "input": {}})
            }
        };
        if let Value::Object(known) = known {
            self.body = BlockBody::Other(known);
        }
        match &mut self.body {
            BlockBody::Other(fields) => fields,
            BlockBody::Text(_) | BlockBody::Tool { .. } => unreachable!("it was made into one above"),
        }
    }

    /// More of a tool's input.
    fn feed(&mut self, piece: &str, sink: &mut Sink<'_>) {
        self.input.push_str(piece);
        if self.kind() == "tool_use" {
            sink(Delta::ToolInput(piece));
        }
    }

    fn append(&mut self, key: &str, piece: &str) {
        if let (BlockBody::Text(text), "text") = (&mut self.body, key) {
            text.push_str(piece);
            return;
        }
        let fields = self.fields();
        match fields.get_mut(key) {
            Some(Value::String(text)) => text.push_str(piece),
            _ => {
                fields.insert(key.to_owned(), json!(piece));
            }
        }
    }

    fn content_bytes(&self) -> usize {
        let body = match &self.body {
            BlockBody::Text(text) => text.len(),
            BlockBody::Tool { name, .. } => name.len(),
            BlockBody::Other(fields) => {
                let held = fields.iter().filter(|(key, _)| *key != "type").map(|(_, value)| match value {
                    Value::String(text) => text.len(),
                    Value::Array(items) => items.len(),
                    Value::Object(fields) => fields.len(),
                    _ => 0,
                });
                held.sum()
            }
        };
        body + self.input.len()
    }

    /// Sends what the block holds from its beginning to the watchers.
    fn announce(&self, sink: &mut Sink<'_>) {
        match self.kind() {
            "text" if !self.field("text").is_empty() => sink(Delta::Text(self.field("text"))),
            "thinking" if !self.field("thinking").is_empty() => sink(Delta::Thinking(self.field("thinking"))),
            "tool_use" => sink(Delta::ToolStart { id: self.field("id"), name: self.field("name") }),
            _ => {}
        }
    }

    /// Blank text, which the provider sends but refuses to take back.
    fn is_blank(&self) -> bool {
        let cited = match &self.body {
            BlockBody::Other(fields) => {
                fields.get("citations").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
            }
            BlockBody::Text(_) | BlockBody::Tool { .. } => false,
        };
        self.kind() == "text" && self.field("text").trim().is_empty() && !cited
    }

    fn part(&self) -> Option<Part> {
        match self.kind() {
            "text" => Some(Part::text(self.field("text"))),
            "thinking" => Some(Part::Thinking { text: self.field("thinking").to_owned() }),
            "tool_use" => Some(Part::ToolUse {
                id: self.field("id").to_owned(),
                name: self.field("name").to_owned(),
                input: self.tool_input().0.into(),
            }),
            _ => None,
        }
    }

    /// Whether our encoder writes its part exactly as the provider wrote the block.
    fn is_ours(&self, part: Option<&Part>) -> bool {
        match (&self.body, part) {
            (BlockBody::Text(_), _) => true,
            (BlockBody::Tool { id, .. }, Some(Part::ToolUse { input, .. })) => {
                let written = if self.input.trim().is_empty() { "{}" } else { &self.input };
                fits(id) && input.is_object() && is_spelt(input, written)
            }
            _ => false,
        }
    }

    /// The input: as a value for us, and as JSON for the way back. Input that is no object is wrapped into one there,
    /// so the block stays replayable with everything around it.
    fn tool_input(&self) -> (Value, Cow<'_, str>) {
        let whole = match &self.body {
            BlockBody::Other(fields) => fields.get("input").filter(|input| !input.is_null()),
            BlockBody::Text(_) | BlockBody::Tool { .. } => None,
        };
        match whole {
            Some(input) if self.input.trim().is_empty() => (input.clone(), json::object(input).to_string().into()),
            _ => json::input(&self.input),
        }
    }

    fn native(mut self) -> String {
        let takes_input = self.kind() == "tool_use" || !self.input.is_empty();
        let mended = takes_input && !matches!(self.fields().get("input"), Some(Value::Object(_)));
        if let (Some(raw), false) = (&self.raw, mended) {
            return raw.clone();
        }
        let mut out = vec![b'{'];
        for (key, value) in self.fields().iter().filter(|(key, _)| !(takes_input && *key == "input")) {
            json::join(&mut out, b"");
            put(&mut out, key);
            out.push(b':');
            put(&mut out, value);
        }
        if takes_input {
            json::join(&mut out, br#""input":"#);
            out.extend_from_slice(self.tool_input().1.as_bytes());
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }
}

/// The type of an event, if the event begins with it.
fn kind(data: &str) -> Option<&str> {
    let said = data.strip_prefix(r#"{"type":"#)?.trim_ascii_start().strip_prefix('"')?;
    said.split_once('"').map(|(kind, _)| kind)
}

/// Whether a value is serialised to exactly this text.
fn is_spelt(value: &Value, written: &str) -> bool {
    /// The text that is still to be written.
    struct Rest<'w>(&'w [u8]);

    impl io::Write for Rest<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut rest = Rest(written.as_bytes());
    serde_json::to_writer(&mut rest, value).is_ok() && rest.0.is_empty()
}
