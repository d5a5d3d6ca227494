//! The older way to a server at an address (2024-11-05): an event stream brings messages, and its first event says where
//! messages to the server are posted.

use std::collections::HashMap;

use futures_util::StreamExt;
use max_team_core::limits::MCP_MESSAGE_BYTES_MAX;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sse_stream::Sse;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::connection::McpError;
use crate::http_client::{HttpClient, fault_of};
use crate::http_fault::HttpFault;

/// Messages that wait to be read.
const WAITING_MAX: usize = 64;

/// A connection by two addresses.
pub(crate) struct SseTransport {
    client: HttpClient,
    headers: HashMap<HeaderName, HeaderValue>,
    /// Where messages to the server go.
    address: Url,
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    /// Ends the stream when the transport is dropped.
    _end: DropGuard,
}

impl SseTransport {
    /// Opens the stream and waits for the address that it names.
    pub(crate) async fn open(client: HttpClient, url: &str, given: HeaderMap) -> Result<Self, McpError> {
        let url = Url::parse(url).map_err(|error| McpError::Connect(format!("`{url}` is no address: {error}")))?;
        let headers: HashMap<_, _> = given.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut listens = headers.clone();
        listens.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = client.send(Method::GET, url.as_str(), listens, None).await?;
        if !response.status().is_success() {
            return Err(fault_of(&response).into());
        }
        let mut events = EventReader::default();
        let mut bytes = response.bytes_stream();
        let (mut early, address) = loop {
            let chunk = bytes.next().await.ok_or(HttpFault::Broken)?;
            let mut found = events.push(&chunk.map_err(HttpFault::from)?)?;
            if let Some(at) = found.iter().position(|event| event.kind == "endpoint") {
                let told = found.remove(at).data;
                break (found, url.join(told.trim()).map_err(|_| HttpFault::Content)?);
            }
        };
        if address.origin() != url.origin() {
            return Err(HttpFault::Redirect(address.origin().ascii_serialization()).into());
        }
        let (to, messages) = mpsc::channel(WAITING_MAX);
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let read = async move {
            loop {
                for event in std::mem::take(&mut early) {
                    let Ok(message) = serde_json::from_str(&event.data) else { continue };
                    if to.send(message).await.is_err() {
                        return;
                    }
                }
                let Some(Ok(chunk)) = bytes.next().await else { return };
                let Ok(found) = events.push(&chunk) else { return };
                early = found;
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = read => {}
            }
        });
        Ok(Self { client, headers, address, messages, _end: cancel.drop_guard() })
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = HttpFault;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), HttpFault>> + Send + 'static {
        let body = serde_json::to_vec(&item).unwrap_or_default();
        let (client, address, headers) = (self.client.clone(), self.address.clone(), self.headers.clone());
        async move {
            let response = client.send(Method::POST, address.as_str(), headers, Some(body)).await?;
            if response.status().is_success() { Ok(()) } else { Err(fault_of(&response)) }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), HttpFault> {
        self.messages.close();
        Ok(())
    }
}

/// One event of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    kind: String,
    data: String,
    /// Where the stream can be taken up again after this event.
    id: Option<String>,
    /// Milliseconds to wait before that.
    retry: Option<u64>,
}

impl From<Event> for Sse {
    fn from(event: Event) -> Self {
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        Self { event: some(event.kind), data: some(event.data), id: event.id, retry: event.retry }
    }
}

/// Divides a stream into events.
#[derive(Debug, Default)]
pub(crate) struct EventReader {
    rest: Vec<u8>,
    event: Event,
    /// Whether the event has a line of data yet.
    has_data: bool,
}

impl EventReader {
    /// Takes bytes and returns the events that are whole; an error if one is too long.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, HttpFault> {
        let mut found = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.rest.len() + self.event.data.len() + piece.len() > MCP_MESSAGE_BYTES_MAX {
                return Err(HttpFault::TooLong);
            }
            self.rest.extend_from_slice(piece);
            if piece.last() == Some(&b'\n') {
                let line = std::mem::take(&mut self.rest);
                found.extend(self.line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r'])));
            }
        }
        Ok(found)
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let is_told = std::mem::take(&mut self.has_data) || event.id.is_some() || event.retry.is_some();
            return is_told.then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.kind),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "id" => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok(),
            // A comment, or a field that is of no use here.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut reader = EventReader::default();
        let events = pieces.iter().flat_map(|piece| reader.push(piece).unwrap()).collect::<Vec<_>>();
        events.into_iter().map(|event| (event.kind, event.data)).collect()
    }

    const STREAM: &str =
        ": hello\r\nevent: endpoint\r\ndata: /m?id=1\r\n\r\n\ndata:{\"a\":\ndata: \"é\"}\nid: 7\n\ndata\n\nx";

    #[test]
    fn events_are_divided_at_empty_lines() {
        let want = [("endpoint", "/m?id=1"), ("", "{\"a\":\n\"é\"}"), ("", "")];
        assert_eq!(read(&[STREAM.as_bytes()]), want.map(|(kind, data)| (kind.to_owned(), data.to_owned())));
    }

    #[test]
    fn an_event_without_an_end_is_refused() {
        let mut reader = EventReader::default();
        let block = vec![b'x'; 1 << 20];
        assert!((0..=MCP_MESSAGE_BYTES_MAX >> 20).any(|_| reader.push(&block).is_err()));
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_how_bytes_arrive(cuts in prop::collection::vec(0..STREAM.len(), 0..6)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let bytes = STREAM.as_bytes();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(read(&pieces), read(&[bytes]));
        }
    }
}
