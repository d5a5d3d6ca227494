//! What the tests of both dialects share: streams played into a reader, and the deltas that watchers saw.

use max_team_core::chat::Answer;

use super::{Dialect, Reader};
use crate::call::{CallFault, Delta};
use crate::sse::Parser;
use crate::wire::Wire;

pub(crate) fn wire(dialect: Dialect) -> Wire {
    Wire::new(dialect, "p", "m")
}

/// Plays server-sent events; a stream that ends too early is an error of kind `None`.
pub(crate) fn streamed(dialect: Dialect, stream: &str) -> (Result<Answer, Option<CallFault>>, Vec<String>) {
    let mut reader = Reader::new(dialect);
    let mut deltas = Vec::new();
    let mut sink = |delta: Delta<'_>| deltas.push(show(delta));
    let fed = Parser::default().feed(stream.as_bytes(), |event| reader.event(event, &mut sink));
    let ended = match fed {
        Err(fault) => Err(Some(fault)),
        Ok(()) if reader.is_complete() => Ok(reader.answer(&wire(dialect), None)),
        Ok(()) => Err(None),
    };
    (ended, deltas)
}

/// Reads an answer that came in one piece.
pub(crate) fn whole(dialect: Dialect, body: &str) -> Result<Answer, CallFault> {
    let mut reader = Reader::new(dialect);
    reader.whole(body.as_bytes(), &mut |_| {})?;
    Ok(reader.answer(&wire(dialect), None))
}

fn show(delta: Delta<'_>) -> String {
    match delta {
        Delta::Waiting(wait) => format!("wait {wait:?}"),
        Delta::Text(text) => format!("text {text}"),
        Delta::Thinking(text) => format!("thinking {text}"),
        Delta::ToolStart { id, name } => format!("tool {id} {name}"),
        Delta::ToolInput(piece) => format!("input {piece}"),
        Delta::Usage(usage) => {
            format!("usage {} {} {} {}", usage.input, usage.output, usage.cache_read, usage.cache_write)
        }
    }
}
