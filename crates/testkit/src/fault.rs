//! How a reply's delivery goes wrong, or waits.
//!
//! `n_events` counts server-sent events as they are written: at Anthropic 1 is `message_start`, 2 is `ping`, 3 the
//! first `content_block_start`; at OpenAI 1 is the chunk with the role, and the last is `[DONE]`. A body that is not a
//! stream counts as two events, its halves, so `cut_after(1)` cuts it in the middle. A number past the end is a mistake
//! in the test and is answered with HTTP 500 that says so.

use std::time::Duration;

use crate::gate::Gate;
use crate::reply::Reply;

#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    pub(crate) delay: Option<Duration>,
    pub(crate) before: Option<Gate>,
    /// What happens after so many events, in the order it was asked for.
    pub(crate) marks: Vec<(usize, Mark)>,
    pub(crate) split_bytes: Option<usize>,
    pub(crate) close: bool,
    pub(crate) silent: bool,
    pub(crate) json_instead: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Mark {
    Gate(Gate),
    Cut,
    End,
    Stall,
    Drip(String, Duration),
    Malformed,
    Error(String),
}

impl Reply {
    /// Holds the whole response until so long after the request arrived: a model that thinks. Good to a fraction of a
    /// millisecond, for any number of requests at once. It is for benches; a test that waits for something uses a
    /// [`Gate`].
    pub fn delay(mut self, delay: Duration) -> Reply {
        self.delivery.delay = Some(delay);
        self
    }

    /// Holds the whole response, its status line included, until the gate opens.
    pub fn gate_before(mut self, gate: &Gate) -> Reply {
        self.delivery.before = Some(gate.clone());
        self
    }

    /// Holds the rest of the response after `n_events` until the gate opens.
    pub fn gate_after(self, n_events: usize, gate: &Gate) -> Reply {
        self.mark(n_events, Mark::Gate(gate.clone()))
    }

    /// Closes the connection in the middle of the body: the client sees a broken transfer.
    pub fn cut_after(self, n_events: usize) -> Reply {
        self.mark(n_events, Mark::Cut)
    }

    /// Ends the body politely but early, as proxies do: HTTP is satisfied, the closing event never came.
    pub fn end_after(self, n_events: usize) -> Reply {
        self.mark(n_events, Mark::End)
    }

    /// Keeps the connection open and sends nothing more until the server stops.
    pub fn stall_after(self, n_events: usize) -> Reply {
        self.mark(n_events, Mark::Stall)
    }

    /// Keeps the connection open and sends nothing but these bytes, again and again, until the server stops.
    pub fn drip_after(self, n_events: usize, bytes: impl Into<String>, every: Duration) -> Reply {
        self.mark(n_events, Mark::Drip(bytes.into(), every))
    }

    /// Puts in a `data:` line that is not JSON, then goes on as if nothing had happened.
    pub fn malformed_after(self, n_events: usize) -> Reply {
        self.mark(n_events, Mark::Malformed)
    }

    /// Sends an error inside the stream (the status was 200 already) and ends it.
    pub fn error_event_after(self, n_events: usize, kind: impl Into<String>) -> Reply {
        self.mark(n_events, Mark::Error(kind.into()))
    }

    /// Writes the body in pieces of so many bytes, each its own write and, in a stream, its own HTTP chunk, so that
    /// lines and characters fall apart whatever the kernel joins together again.
    pub fn split_bytes(mut self, bytes: usize) -> Reply {
        self.delivery.split_bytes = Some(bytes.max(1));
        self
    }

    /// Answers with `connection: close`, and does close.
    pub fn close_after(mut self) -> Reply {
        self.delivery.close = true;
        self
    }

    /// Reads the request and closes the connection without a word.
    pub fn drop_connection(mut self) -> Reply {
        self.delivery.silent = true;
        self
    }

    /// Answers with one JSON body although a stream was asked for.
    pub fn json_instead(mut self) -> Reply {
        self.delivery.json_instead = true;
        self
    }

    fn mark(mut self, n_events: usize, mark: Mark) -> Reply {
        self.delivery.marks.push((n_events, mark));
        self
    }
}
