//! What the model says, free of any wire format.
//!
//! A reply is an ordered list of blocks with usage and a stop reason, or a failure with an HTTP status. How it is
//! written on the wire is `wire`'s business; how its delivery goes wrong is in `fault`.

use serde_json::Value;

use crate::fault::Delivery;

/// Usage of a reply that does not say: tokens in, tokens out.
const USAGE: Usage = Usage { input: 100, output: 20, cache_read: 0, cache_write: 0 };
/// Characters per streamed delta of a reply that does not say.
const DELTA_CHARS: usize = 24;

/// One scripted answer. Start with [`Reply::text`], [`Reply::new`], [`Reply::status`] or [`Reply::overflow`].
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) answer: Answer,
    /// Present: the reply is an error response and `answer` is not sent.
    pub(crate) failure: Option<Failure>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) request_id: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) delivery: Delivery,
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) blocks: Vec<Block>,
    pub(crate) usage: Usage,
    stop: Option<String>,
    pub(crate) delta_chars: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Block {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    /// `args` is text, so that a script can cut it short as a real model does at `max_tokens`.
    Tool {
        id: String,
        name: String,
        args: String,
    },
    Raw(Value),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) cause: Cause,
}

#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// The dialect's own words for the status.
    Status,
    Overflow,
    Said {
        kind: String,
        message: String,
    },
}

impl Default for Reply {
    fn default() -> Reply {
        Reply {
            answer: Answer { blocks: Vec::new(), usage: USAGE, stop: None, delta_chars: DELTA_CHARS },
            failure: None,
            headers: Vec::new(),
            request_id: None,
            label: None,
            delivery: Delivery::default(),
        }
    }
}

impl Reply {
    /// An answer without blocks yet.
    pub fn new() -> Reply {
        Reply::default()
    }

    /// An answer that starts with a text block.
    pub fn text(text: impl Into<String>) -> Reply {
        Reply::new().say(text)
    }

    /// An HTTP error with the provider's usual body for that status.
    pub fn status(status: u16) -> Reply {
        Reply { failure: Some(Failure { status, cause: Cause::Status }), ..Reply::default() }
    }

    /// HTTP 400: the prompt does not fit the context window.
    pub fn overflow() -> Reply {
        Reply { failure: Some(Failure { status: 400, cause: Cause::Overflow }), ..Reply::default() }
    }

    /// Adds a text block.
    pub fn say(self, text: impl Into<String>) -> Reply {
        self.block(Block::Text(text.into()))
    }

    /// Adds a thinking block; `reasoning_content` at OpenAI, where there is no signature.
    pub fn thinking(self, text: impl Into<String>, signature: impl Into<String>) -> Reply {
        self.block(Block::Thinking { text: text.into(), signature: signature.into() })
    }

    /// Adds a tool call.
    pub fn tool(self, id: impl Into<String>, name: impl Into<String>, args: Value) -> Reply {
        self.tool_text(id, name, args.to_string())
    }

    /// Adds a tool call whose arguments need not be JSON: models cut them short and get them wrong.
    pub fn tool_text(self, id: impl Into<String>, name: impl Into<String>, args: impl Into<String>) -> Reply {
        self.block(Block::Tool { id: id.into(), name: name.into(), args: args.into() })
    }

    /// Adds a block of a kind this crate does not know. Anthropic only; left out at OpenAI.
    pub fn raw_block(self, block: Value) -> Reply {
        self.block(Block::Raw(block))
    }

    /// Tokens as Anthropic counts them: `input` is without the cache. OpenAI's `prompt_tokens` is the sum of all three.
    pub fn usage(mut self, input: u64, output: u64, cache_read: u64, cache_write: u64) -> Reply {
        self.answer.usage = Usage { input, output, cache_read, cache_write };
        self
    }

    /// Anthropic's word for why the model stopped. By default `tool_use` when a tool is called, else `end_turn`.
    pub fn stop(mut self, reason: impl Into<String>) -> Reply {
        self.answer.stop = Some(reason.into());
        self
    }

    /// The provider's id of the request, in its header. By default `req_` and the arrival number.
    pub fn request_id(mut self, id: impl Into<String>) -> Reply {
        self.request_id = Some(id.into());
        self
    }

    /// A word that [`Recorded::label`](crate::Recorded::label) gives back for each request that got this reply. The
    /// client does not see it.
    pub fn label(mut self, label: impl Into<String>) -> Reply {
        self.label = Some(label.into());
        self
    }

    /// How many characters a streamed delta carries.
    pub fn chunk(mut self, chars: usize) -> Reply {
        self.answer.delta_chars = chars.max(1);
        self
    }

    /// Adds a response header.
    pub fn header(mut self, name: impl Into<String>, value: impl ToString) -> Reply {
        self.headers.push((name.into(), value.to_string()));
        self
    }

    /// The `retry-after` header: seconds, or an HTTP date.
    pub fn retry_after(self, delay: impl ToString) -> Reply {
        self.header("retry-after", delay)
    }

    /// Other words for an error than the status suggests, such as `insufficient_quota` for a 429.
    pub fn error(mut self, kind: impl Into<String>, message: impl Into<String>) -> Reply {
        let status = self.failure.map_or(500, |failure| failure.status);
        self.failure = Some(Failure { status, cause: Cause::Said { kind: kind.into(), message: message.into() } });
        self
    }

    fn block(mut self, block: Block) -> Reply {
        self.answer.blocks.push(block);
        self
    }
}

impl Answer {
    pub(crate) fn stop(&self) -> &str {
        let calls = self.blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
        self.stop.as_deref().unwrap_or(if calls { "tool_use" } else { "end_turn" })
    }
}
