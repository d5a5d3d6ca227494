//! A conversation in wire bytes: each message is encoded once, each request is put together from the pieces.
//!
//! A turn of fifty rounds over a long history would otherwise serialise that history fifty times. A transcript is
//! bound to one [`Wire`]; another model means encoding again, because native blocks go back only to the model that
//! made them. It decides nothing about what belongs into the window: that comes in as `core::context::Window`.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use max_team_core::chat::{ChatRole, Message, Part};
use max_team_core::context::{Window, elided};
use max_team_core::text::{has_hidden, stripped};

use crate::dialect::{self, Dialect};
use crate::tool::ToolSpec;
use crate::wire::{Request, Wire};

/// What one request asks for, besides what the transcript holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestOptions {
    /// Counts the agent's calls from 1.
    pub number: u32,
    /// Output tokens it may write.
    pub max_tokens: u32,
    /// No tool may be called. The tools are still described: providers refuse a history of tool calls without them,
    /// and the cached prefix stays the same.
    pub tools_off: bool,
    /// The part of the history it carries …
    pub window: Window,
    /// … up to this message.
    pub upto: usize,
}

/// A conversation in wire bytes.
#[derive(Debug)]
pub struct Transcript {
    wire: Arc<Wire>,
    head: Arc<Head>,
    /// What stands in the place of messages that have left the window.
    opening: Option<EncodedMessage>,
    pieces: Vec<EncodedMessage>,
    ids: CallIds,
    speaker: Arc<str>,
}

/// What stands between a request's settings and its messages: the system text and the tools, up to the bracket that
/// opens the messages. Agents with the same instructions share these bytes, which are never copied.
#[derive(Debug)]
pub struct Head {
    pub(crate) bytes: Bytes,
    pub(crate) has_tools: bool,
}

impl Head {
    /// The system text and the tools, as this dialect has them.
    pub fn new(dialect: Dialect, system: &str, tools: &[ToolSpec]) -> Self {
        dialect::head(dialect, &stripped(system), tools)
    }
}

/// One message: as it is, and as it looks once its tool results have left the window.
#[derive(Debug)]
struct EncodedMessage {
    role: ChatRole,
    full: MessageItems,
    light: Option<MessageItems>,
}

/// A message's items, joined by commas. Tool results stand apart because they come first, also when several messages
/// of the user follow each other.
#[derive(Debug, Default)]
pub(crate) struct MessageItems {
    pub(crate) results: Vec<u8>,
    pub(crate) rest: Vec<u8>,
}

impl MessageItems {
    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty() && self.rest.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.results.len() + self.rest.len()
    }
}

impl Transcript {
    /// An empty conversation with a model.
    pub fn new(wire: Wire) -> Self {
        Self {
            head: Arc::new(Head::new(wire.dialect, "", &[])),
            wire: Arc::new(wire),
            opening: None,
            pieces: Vec::new(),
            ids: CallIds::default(),
            speaker: Arc::from(""),
        }
    }

    /// The same conversation with another model, or with other instructions.
    pub fn encode(wire: Wire, system: &str, tools: &[ToolSpec], messages: &[Message]) -> Self {
        let mut transcript = Self::new(wire);
        transcript.instruct(Arc::new(Head::new(transcript.wire.dialect, system, tools)));
        for message in messages {
            transcript.push(message);
        }
        transcript
    }

    /// Whose conversation it is: `leo/impl` for a member at a task. A recording answers by it; a provider never sees it.
    pub fn belongs_to(&mut self, speaker: &str) {
        if *self.speaker != *speaker {
            self.speaker = Arc::from(speaker);
        }
    }

    /// How its model is spoken to.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// How many messages it holds.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Sets the system text and the tools.
    pub fn instruct(&mut self, head: Arc<Head>) {
        self.head = head;
    }

    /// Sets what stands before the messages in the window.
    pub fn open_with(&mut self, message: Option<&Message>) {
        self.opening = message.map(|message| {
            let full = dialect::message(&self.wire, &seen(message), &mut self.ids);
            EncodedMessage { role: message.role, full, light: None }
        });
    }

    /// Takes in the next message.
    pub fn push(&mut self, message: &Message) {
        let message = &*seen(message);
        let full = dialect::message(&self.wire, message, &mut self.ids);
        let has_results = message.parts.iter().any(|part| matches!(part, Part::ToolResult { .. }));
        let light = has_results.then(|| dialect::message(&self.wire, &elided(message), &mut self.ids));
        self.pieces.push(EncodedMessage { role: message.role, full, light });
    }

    /// Puts a request together.
    pub fn request(&self, call: &RequestOptions) -> Request {
        let opening = self.opening.iter().map(|piece| (piece.role, &piece.full));
        let shown = self.pieces.iter().enumerate().take(call.upto).skip(call.window.from).map(|(index, piece)| {
            let light = piece.light.as_ref().filter(|_| index < call.window.elide);
            (piece.role, light.unwrap_or(&piece.full))
        });
        let shown: Vec<(ChatRole, &MessageItems)> =
            opening.chain(shown).filter(|(_, halves)| !halves.is_empty()).collect();
        let body = dialect::body(&self.wire, &self.head, call, &shown);
        Request {
            wire: self.wire.clone(),
            number: call.number,
            speaker: Arc::clone(&self.speaker),
            max_tokens: call.max_tokens,
            body,
        }
    }
}

/// A message as a model gets it. Text from outside is stripped of invisible characters, which could carry hidden
/// instructions; the model's own text is returned unchanged.
fn seen(message: &Message) -> Cow<'_, Message> {
    fn hides(part: &Part) -> bool {
        match part {
            Part::Text { text } => has_hidden(text),
            Part::ToolResult { content, .. } => content.iter().any(hides),
            _ => false,
        }
    }
    fn strip(part: &mut Part) {
        match part {
            Part::Text { text } => *text = stripped(text).into_owned(),
            Part::ToolResult { content, .. } => content.iter_mut().for_each(strip),
            _ => {}
        }
    }
    if message.role != ChatRole::User || !message.parts.iter().any(hides) {
        return Cow::Borrowed(message);
    }
    let mut message = message.clone();
    message.parts.iter_mut().for_each(strip);
    Cow::Owned(message)
}

/// Names of tool calls. Providers are strict about foreign ones: characters, length, no name twice in a
/// conversation. A call that had to be renamed takes its result along.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    seen: HashSet<String>,
    renamed: HashMap<String, String>,
}

impl CallIds {
    /// A call goes out under the id it has.
    pub(crate) fn keep(&mut self, id: &str) {
        self.renamed.remove(id);
        self.seen.insert(id.to_owned());
    }

    /// The id under which a foreign call goes out.
    pub(crate) fn adopt(&mut self, id: &str, fits: fn(&str) -> bool) -> String {
        if fits(id) && self.seen.insert(id.to_owned()) {
            self.renamed.remove(id);
            return id.to_owned();
        }
        let mut count = self.seen.len();
        let mut fresh = format!("mt_{count}");
        while !self.seen.insert(fresh.clone()) {
            count += 1;
            fresh = format!("mt_{count}");
        }
        self.renamed.insert(id.to_owned(), fresh.clone());
        fresh
    }

    /// The id under which its result goes out.
    pub(crate) fn of_result<'i>(&'i self, id: &'i str) -> &'i str {
        self.renamed.get(id).map_or(id, String::as_str)
    }
}
