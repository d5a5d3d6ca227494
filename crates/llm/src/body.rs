//! The bytes of a request, in three pieces; agents share the largest.
//!
//! System text and tools are the bulk of most requests, and equal for all agents with the same instructions: they are
//! encoded once and go from there to the socket, however many calls are under way.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::transcript::Head;

/// The body of a request. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Body {
    pieces: [Bytes; 3],
}

impl Body {
    /// Settings, then the shared head, then the messages.
    pub(crate) fn new(settings: Vec<u8>, head: &Head, messages: Vec<u8>) -> Self {
        Self { pieces: [settings.into(), head.bytes.clone(), messages.into()] }
    }

    /// All of it in one piece.
    pub fn whole(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    /// The body for an HTTP client. `is_sent` is set once a connection begins to take it.
    pub(crate) fn to_http(&self, is_sent: &Arc<AtomicBool>) -> Outgoing {
        Outgoing { pieces: self.pieces.clone(), sent: 0, is_sent: Arc::clone(is_sent) }
    }
}

/// A body on its way. Its length is known beforehand: some gateways take no chunked requests.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pieces: [Bytes; 3],
    sent: usize,
    is_sent: Arc<AtomicBool>,
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.is_sent.store(true, Ordering::Relaxed);
        let at = self.sent;
        let piece = self.pieces.get_mut(at).map(std::mem::take);
        self.sent += 1;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.sent >= self.pieces.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.pieces.iter().map(|piece| piece.len() as u64).sum())
    }
}
