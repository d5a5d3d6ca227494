//! Why a page of the web could not be got or read, and what is to be known about one that was. Models get the English text; the
//! interface says both to users in their language.

use std::fmt;
use std::net::IpAddr;

use max_team_core::limits::REDIRECTS_MAX;

use crate::text::size;
use crate::tool::ToolError;

/// Why a page could not be got or read. Addresses are as they are shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebFault {
    #[error("the address `{url}` {flaw}")]
    Address { url: String, flaw: AddressFlaw },
    #[error("`{url}`: {address}")]
    Private { url: String, address: PrivateAddress },
    #[error("`{0}`: this run answers from recorded pages, and this address is not among them")]
    NotRecorded(String),
    /// Not even a request could be made.
    #[error("`{url}`: {why}")]
    NoClient { url: String, why: String },
    #[error("`{url}`: cannot be reached ({why}); check the address and the network")]
    Unreachable { url: String, why: String },
    #[error("`{url}`: {flaw}; fetch it again")]
    Body { url: String, flaw: BodyFlaw },
    #[error("`{url}`: no whole answer within {seconds} s; try again later")]
    Late { url: String, seconds: u64 },
    #[error("`{url}` leads to `{to}`, which {flaw}")]
    Redirect { url: String, to: String, flaw: RedirectFlaw },
    #[error("`{0}` is redirected more than {REDIRECTS_MAX} times; try another address")]
    RedirectLoop(String),
    #[error("`{url}` has {}; there is no page {number}", pages(*.count))]
    NoPart { url: String, number: usize, count: usize },
    #[error("`{url}`: `{selector}` is no CSS selector; write one like `main`, `#id .class` or `table.prices`")]
    NoSelector { url: String, selector: String },
    #[error(
        "`{url}`: no element of the page “{title}” fits the selector `{selector}`; fetch the page without a selector, or as \
         HTML (raw) to see its elements"
    )]
    NotFound { url: String, title: String, selector: String },
    /// Only a part of a document arrived.
    #[error("`{url}`: {flaw}; only {} of {kind} arrived, of which no text can be read: fetch it again", size(*.bytes))]
    PartOfDocument { url: String, flaw: BodyFlaw, bytes: u64, kind: &'static str },
    #[error("`{url}`: {kind} larger than {} cannot be read", size(*.most))]
    LargeDocument { url: String, kind: &'static str, most: u64 },
    #[error("`{url}`: {why}")]
    Document { url: String, why: String },
    #[error(
        "`{0}` cannot be rendered: there is no Chromium here. Leave `render` out, or let the user install the package `chromium`"
    )]
    NoChromium(String),
    #[error("`{url}`: {why}")]
    NotRendered { url: String, why: String },
    /// The program that the settings name.
    #[error(
        "`tools.browser_path` names `{0}`, which is no program here, so there is no `browser`; only the user can change it"
    )]
    BrowserPath(String),
    #[error(
        "no Chromium was found, so there is no `browser`; the user can install it (`sudo apt install chromium`) or name it \
         with `tools.browser_path`. Everything else works without it"
    )]
    NoBrowser,
    /// Neither namespaces nor macOS keep it in here.
    #[error(
        "Chromium is not started: its sandbox needs namespaces, which this system does not allow; the user can allow them or \
         install bubblewrap (`max-team doctor`). Everything else works without it"
    )]
    NoNamespaces,
    #[error("Chromium could not be started: {0}; go on without it, or let the user look at `max-team doctor`")]
    BrowserStart(String),
    #[error("the browser ended {times} times within {minutes} minutes and is not started again now; go on without it")]
    BrowserEnds { times: usize, minutes: u64 },
    #[error("`tools.web_search.url` {0}; only the user can set it, in config.yaml")]
    SearchAddress(SearchAddressFlaw),
    #[error("{0}")]
    Other(String),
}

/// What is wrong with an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressFlaw {
    #[error("is too long")]
    TooLong,
    #[error("cannot be used: {0}; begin with `https://`")]
    Unusable(String),
    #[error("is no web address; it must begin with `https://` or `http://`")]
    NotWeb,
    #[error("has a name or password in it; leave that out")]
    HasPassword,
}

/// Why a redirect is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedirectFlaw {
    #[error("is no web address")]
    NotWeb,
    #[error("is not encrypted; it is not followed")]
    Unencrypted,
}

/// Why a body ended before its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyFlaw {
    #[error("broke off ({0})")]
    BrokeOff(String),
    #[error("the compressed data is damaged: {0}")]
    Compressed(String),
}

/// What is wrong with the address of a search service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchAddressFlaw {
    #[error("is not set, and {0} has no address of its own")]
    Unset(&'static str),
    #[error("is no address: {0}")]
    Unusable(String),
}

/// A private address that the user has not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{host}` is `{address}`, on this machine or in a private network; only the user can open it, in the settings with \
     `tools.private_hosts` (for `max-team fetch` also with `--allow-host`)"
)]
pub struct PrivateAddress {
    pub host: String,
    pub address: IpAddr,
}

/// What is to be known about a page that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageNote {
    /// What the server says it is; empty if it does not say.
    Answer {
        status: u16,
        media_type: String,
    },
    Title(String),
    /// The body broke off after this many bytes.
    Incomplete {
        bytes: u64,
        flaw: BodyFlaw,
    },
    /// Only this many bytes of the body were taken.
    Cut(u64),
    /// Only this many bytes of the text are told.
    TextCut(u64),
    Document(&'static str),
    Empty,
    /// Compressed in this way, though that was not asked for.
    Compressed(String),
    Binary(u64),
    Part {
        number: usize,
        count: usize,
    },
    NeedsChromium,
    Rendered,
    NoText,
    NotRendered(Box<WebFault>),
}

impl fmt::Display for PageNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer { status, media_type } if media_type.is_empty() => write!(f, "{status}, no type"),
            Self::Answer { status, media_type } => write!(f, "{status}, {media_type}"),
            Self::Title(title) => write!(f, "“{title}”"),
            Self::Incomplete { bytes, flaw } => {
                write!(f, "INCOMPLETE: only {} arrived, {flaw}; fetch it again for the rest", size(*bytes))
            }
            Self::Cut(bytes) => write!(f, "only the first {} were taken", size(*bytes)),
            Self::TextCut(bytes) => write!(f, "only the first {} of its text are told", size(*bytes)),
            Self::Document(kind) => write!(f, "the text of {kind}"),
            Self::Empty => f.write_str("empty"),
            Self::Compressed(how) => {
                write!(f, "compressed with `{how}`, which was not asked for, and not shown")
            }
            Self::Binary(bytes) => write!(f, "binary data, {}, not shown", size(*bytes)),
            Self::Part { number, count } => write!(f, "page {number} of {count}"),
            Self::NeedsChromium => f.write_str(
                "nearly no text: the page's scripts may write it, and there is no Chromium here to run them; the user can install \
                 the package `chromium`",
            ),
            Self::Rendered => f.write_str("after its scripts ran"),
            Self::NoText => f.write_str("it shows no text"),
            Self::NotRendered(fault) => write!(f, "its scripts could not be run: {fault}"),
        }
    }
}

fn pages(count: usize) -> String {
    if count == 1 { "1 page".to_owned() } else { format!("{count} pages") }
}

impl From<WebFault> for ToolError {
    fn from(fault: WebFault) -> Self {
        Self::correctable(fault.to_string())
    }
}

impl From<ToolError> for WebFault {
    fn from(error: ToolError) -> Self {
        Self::Other(error.to_string())
    }
}
