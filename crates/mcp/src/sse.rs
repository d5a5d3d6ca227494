//! The older way to a server at an address (2024-11-05): an event stream brings messages, and its first event says where
//! messages to the server are posted.

use futures_util::StreamExt;
use max_team_core::limits::MCP_MESSAGE_BYTES_MAX;
use reqwest::header::{ACCEPT, HeaderMap};
use reqwest::{Client, Url};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Messages that wait to be read.
const WAITING_MAX: usize = 64;

/// A connection by two addresses.
pub(crate) struct SseTransport {
    client: Client,
    headers: HeaderMap,
    /// Where messages to the server go.
    address: Url,
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    /// Ends the stream when the transport is dropped.
    _end: DropGuard,
}

/// A message did not reach the server.
#[derive(Debug, thiserror::Error)]
#[error("the server did not take a message: {0}")]
pub(crate) struct PostError(String);

impl SseTransport {
    /// Opens the stream and waits for the address that it names.
    pub(crate) async fn open(client: Client, url: &str, headers: HeaderMap) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|error| format!("`{url}` is no address: {error}"))?;
        let request = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream");
        let response = request.send().await.map_err(|error| error.without_url().to_string())?;
        if !response.status().is_success() {
            return Err(format!("it answers `{}`", response.status()));
        }
        let mut events = EventReader::default();
        let mut bytes = response.bytes_stream();
        let (mut early, address) = loop {
            let chunk = bytes.next().await.ok_or("its event stream ended at once")?;
            let mut found = events.push(&chunk.map_err(|error| error.without_url().to_string())?)?;
            if let Some(at) = found.iter().position(|event| event.kind == "endpoint") {
                let told = found.remove(at).data;
                break (found, url.join(told.trim()).map_err(|error| format!("its address for messages: {error}"))?);
            }
        };
        if address.origin() != url.origin() {
            return Err(format!("it sends messages to another host, `{}`", address.host_str().unwrap_or_default()));
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
    type Error = PostError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), PostError>> + Send + 'static {
        let body = serde_json::to_vec(&item).unwrap_or_default();
        let request = self.client.post(self.address.clone()).headers(self.headers.clone()).body(body);
        async move {
            let request = request.header("content-type", "application/json");
            let response = request.send().await.map_err(|error| PostError(error.without_url().to_string()))?;
            match response.status() {
                status if status.is_success() => Ok(()),
                status => Err(PostError(format!("it answers `{status}`"))),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), PostError> {
        self.messages.close();
        Ok(())
    }
}

/// One event of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Event {
    kind: String,
    data: String,
}

/// Divides a stream into events.
#[derive(Debug, Default)]
struct EventReader {
    rest: Vec<u8>,
    event: Event,
    /// Whether the event has a line of data yet.
    has_data: bool,
}

impl EventReader {
    /// Takes bytes and returns the events that are whole; an error if one is too long.
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String> {
        let mut found = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.rest.len() + self.event.data.len() + piece.len() > MCP_MESSAGE_BYTES_MAX {
                return Err(format!("it sent a message of more than {} MB", MCP_MESSAGE_BYTES_MAX >> 20));
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
            return std::mem::take(&mut self.has_data).then_some(event);
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
