//! Requests to authorization servers: over the one HTTP stack, bounded, and never unencrypted to another machine.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use max_team_core::limits::{MCP_LOGIN_BODY_BYTES_MAX, MCP_LOGIN_REQUEST_MS};
use reqwest::Url;
use reqwest::redirect::Policy;
use rmcp::transport::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};

/// Redirects that are followed, all within one origin.
const REDIRECTS_MAX: usize = 5;

/// Why a request to an authorization server was not made or not read.
#[derive(Debug, thiserror::Error)]
enum RequestRefused {
    #[error("`{0}` is not encrypted")]
    Open(String),
    #[error("the answer is too long")]
    TooLong,
}

/// Sends what a login needs.
#[derive(Debug)]
pub(crate) struct LoginClient {
    follow: reqwest::Client,
    stop: reqwest::Client,
}

impl LoginClient {
    pub(crate) fn new(cert_file: Option<&Path>) -> Result<Self, String> {
        let build = |policy: Policy| {
            let client = max_team_tools::http_client(cert_file)?;
            let client = client.timeout(Duration::from_millis(MCP_LOGIN_REQUEST_MS)).redirect(policy);
            client.build().map_err(|error| format!("the HTTP client cannot be built: {error}"))
        };
        let within_origin = Policy::custom(|attempt| {
            let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
            if is_same && attempt.previous().len() <= REDIRECTS_MAX { attempt.follow() } else { attempt.stop() }
        });
        Ok(Self { follow: build(within_origin)?, stop: build(Policy::none())? })
    }

    /// The plain client, for a first request to the server itself.
    pub(crate) fn plain(&self) -> &reqwest::Client {
        &self.stop
    }
}

/// Whether codes and tokens may go there: encrypted, or within this machine.
pub(crate) fn is_safe(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    url.scheme() == "https" || (url.scheme() == "http" && is_here)
}

impl OAuthHttpClient for LoginClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let client = match request.redirect_policy {
                OAuthHttpRedirectPolicy::Follow => &self.follow,
                _ => &self.stop,
            };
            let request = reqwest::Request::try_from(request.request)?;
            if !is_safe(request.url()) {
                let refused = RequestRefused::Open(request.url().origin().ascii_serialization());
                return Err(Box::new(refused) as OAuthHttpClientError);
            }
            let response = client.execute(request).await?;
            let mut builder = http::Response::builder().status(response.status());
            for (name, value) in response.headers() {
                builder = builder.header(name, value);
            }
            let mut body = Vec::new();
            let mut pieces = response.bytes_stream();
            while let Some(piece) = pieces.next().await {
                let piece = piece?;
                if body.len() + piece.len() > MCP_LOGIN_BODY_BYTES_MAX {
                    return Err(Box::new(RequestRefused::TooLong) as OAuthHttpClientError);
                }
                body.extend_from_slice(&piece);
            }
            Ok(builder.body(body)?)
        })
    }
}
