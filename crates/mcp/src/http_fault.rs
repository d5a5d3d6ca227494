//! The ways in which a server at an address fails, as a user can understand them.

use std::error::Error;
use std::io;

use max_team_core::limits::MCP_MESSAGE_BYTES_MAX;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde::{Deserialize, Serialize};

/// Why a request to a server failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum HttpFault {
    /// No program listens at the address.
    #[error("nothing listens at `{0}`: is the server running?")]
    Refused(String),
    /// The host is not known, or the network does not lead to it.
    #[error("`{0}` cannot be reached: check the address and the network")]
    Unreachable(String),
    /// The server wants a login first (401).
    #[error("it asks for a login")]
    Login,
    /// The token of the entry is not accepted (401).
    #[error("it does not accept the token in the header `Authorization` of its entry: correct it with `mcp add`")]
    Token,
    /// The login is known and has no right to this (403).
    #[error("it refuses access (403): check the token and its rights")]
    Forbidden,
    /// Nothing is served at this path (404, 405 or 410).
    #[error("there is no MCP server at this address ({0}): check the path of the address")]
    NotFound(u16),
    /// Another status that is no success.
    #[error("it answers with HTTP status {0}: try again later, or look at its own log")]
    Status(u16),
    /// It sends requests on to another host, which would get the headers, too.
    #[error("it sends requests on to `{0}`: if that is right, put that address into its entry")]
    Redirect(String),
    /// The answer is of a type that no MCP server sends.
    #[error("it answers with `{0}` instead of MCP messages: check the address")]
    ContentType(String),
    /// The answer is no message.
    #[error("its answer is no MCP message: check the address")]
    Content,
    /// The answer is longer than a message may be.
    #[error("it sent a message of more than {} MB", MCP_MESSAGE_BYTES_MAX >> 20)]
    TooLong,
    /// The connection ended in the middle of an answer.
    #[error("the connection broke off: try again")]
    Broken,
    /// The server has forgotten our session; it did nothing.
    #[error("it has ended our session: call again")]
    SessionEnded,
    /// The stored login is not accepted any more.
    #[error("its login has ended")]
    LoginEnded,
    /// The login could not be renewed now.
    #[error("its login cannot be renewed now: try again later")]
    NotRenewed,
}

impl HttpFault {
    /// Whether the server may have begun to do what it was asked.
    pub(crate) fn may_have_run(&self) -> bool {
        match self {
            Self::Status(status) => *status >= 500,
            Self::ContentType(_) | Self::Content | Self::TooLong | Self::Broken => true,
            Self::Refused(_)
            | Self::Unreachable(_)
            | Self::Login
            | Self::Token
            | Self::Forbidden
            | Self::NotFound(_)
            | Self::Redirect(_)
            | Self::SessionEnded
            | Self::LoginEnded
            | Self::NotRenewed => false,
        }
    }

    /// Whether the server is gone, so that the next call begins anew.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(
            self,
            Self::Refused(_)
                | Self::Unreachable(_)
                | Self::Broken
                | Self::NotFound(_)
                | Self::SessionEnded
                | Self::TooLong
        )
    }

    /// The fault of a response, by its status.
    pub(crate) fn of_status(status: u16, url: &reqwest::Url, location: Option<&str>) -> Self {
        match status {
            401 => Self::Login,
            403 => Self::Forbidden,
            404 | 405 | 410 => Self::NotFound(status),
            300..=399 => {
                let target = location.and_then(|to| url.join(to).ok()).unwrap_or_else(|| url.clone());
                Self::Redirect(crate::clean::text(target.origin().ascii_serialization().as_str(), 200))
            }
            other => Self::Status(other),
        }
    }
}

impl From<reqwest::Error> for HttpFault {
    fn from(error: reqwest::Error) -> Self {
        let place = error.url().map_or_else(String::new, place);
        let chain = std::iter::successors(Some(&error as &(dyn Error + 'static)), |error| (**error).source());
        let kind = chain.filter_map(|error| error.downcast_ref::<io::Error>()).last().map(io::Error::kind);
        match kind {
            Some(io::ErrorKind::ConnectionRefused) => Self::Refused(place),
            _ if error.is_connect() => Self::Unreachable(place),
            _ => Self::Broken,
        }
    }
}

/// The host and port of an address.
fn place(url: &reqwest::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The fault behind an error of the protocol's library.
pub(crate) fn behind(error: &(dyn Error + 'static)) -> Option<HttpFault> {
    std::iter::successors(Some(error), |error| (**error).source()).find_map(|error| {
        if let Some(fault) = error.downcast_ref::<HttpFault>() {
            return Some(fault.clone());
        }
        match error.downcast_ref::<StreamableHttpError<HttpFault>>()? {
            StreamableHttpError::Client(fault) => Some(fault.clone()),
            StreamableHttpError::Deserialize(_) => Some(HttpFault::Content),
            StreamableHttpError::UnexpectedServerResponse(_) => Some(HttpFault::Content),
            StreamableHttpError::UnexpectedEndOfStream => Some(HttpFault::Broken),
            StreamableHttpError::SessionExpired => Some(HttpFault::SessionEnded),
            StreamableHttpError::Sse(rmcp::transport::streamable_http_client::SseError::Body(error)) => {
                Some(error.downcast_ref::<HttpFault>().cloned().unwrap_or(HttpFault::Broken))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_to_do() {
        let url = reqwest::Url::parse("https://one.example/mcp").unwrap();
        for (status, location, words) in [
            (401, None, "it asks for a login"),
            (403, None, "it refuses access (403): check the token and its rights"),
            (404, None, "there is no MCP server at this address (404): check the path of the address"),
            (500, None, "it answers with HTTP status 500: try again later, or look at its own log"),
            (
                307,
                Some("https://two.example/mcp?key=1"),
                "it sends requests on to `https://two.example`: if that is right, put that address into its entry",
            ),
        ] {
            assert_eq!(HttpFault::of_status(status, &url, location).to_string(), words);
        }
    }

    #[test]
    fn only_an_answer_after_the_work_began_leaves_its_outcome_open() {
        assert!(HttpFault::Broken.may_have_run() && HttpFault::Status(500).may_have_run());
        assert!(!HttpFault::Refused(String::new()).may_have_run() && !HttpFault::Login.may_have_run());
    }
}
