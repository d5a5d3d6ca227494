//! A server at an address: streamable HTTP, by the protocol's own library.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use max_team_core::limits::MCP_MESSAGE_BYTES_MAX;
use max_team_core::mcp::McpServer;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::http_client::HttpClient;

/// Headers that belong to the protocol.
const RESERVED: [&str; 5] = ["accept", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id"];
/// Redirects that are followed, all within one origin.
const REDIRECTS_MAX: usize = 5;

/// A client that stays with the server it was given: a redirect to another host, or to a worse protocol, ends the request.
pub(crate) fn client(cert_file: Option<&Path>, connect: Duration) -> Result<reqwest::Client, String> {
    let within_origin = Policy::custom(|attempt| {
        let first = attempt.previous().first();
        let is_same = first.is_some_and(|first| first.origin() == attempt.url().origin());
        // Other answers would turn a message into a request without a body.
        let keeps_body = matches!(attempt.status().as_u16(), 307 | 308);
        if attempt.previous().len() > REDIRECTS_MAX {
            attempt.error("too many redirects")
        } else if is_same && keeps_body {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let client = max_team_tools::http_client(cert_file)?.connect_timeout(connect).redirect(within_origin);
    client.build().map_err(|error| format!("the HTTP client cannot be built: {error}"))
}

/// The headers that a server's entry gives.
pub(crate) fn headers(server: &McpServer) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &server.headers {
        let bad = || format!("the header `{name}` cannot be sent; check its name and value");
        if RESERVED.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return Err(format!("the header `{name}` belongs to the protocol; remove it from the entry"));
        }
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

/// The way to a server that speaks streamable HTTP.
pub(crate) fn transport(
    client: HttpClient,
    server: &McpServer,
) -> Result<StreamableHttpClientTransport<HttpClient>, String> {
    let given = headers(server)?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    config.custom_headers = given.iter().map(|(name, value)| (name.clone(), value.clone())).collect::<HashMap<_, _>>();
    config.allow_stateless = true;
    config.max_sse_event_size = MCP_MESSAGE_BYTES_MAX;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
