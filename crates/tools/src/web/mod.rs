//! The network, as far as tools may use it: pages of the web, and the services that the user has set up.
//!
//! `client` makes one request and follows no redirect, and reaches no private address unless the user has opened it or
//! has a service there; `get` is `http_get`, which follows redirects only as far as the policy has judged; `geocode`
//! finds places by name; `html` makes pages readable. Nothing here sends anything but a GET.

mod client;
mod geocode;
mod get;
mod html;

/// Bytes of text that a page becomes: more than the page, because links are written out and JSON is laid out.
const TEXT_BYTES_MAX: usize = 2 * max_team_core::limits::PAGE_BYTES_MAX;

pub use client::builder as http_client;
pub(crate) use client::{AddressGuard, HttpReply, fetch};
pub use geocode::Geocode;
pub(crate) use geocode::geocode;
pub use get::HttpGet;
pub(crate) use get::http_get;

/// The part of an address that the policy judges: the host, with its port if that is not the scheme's default.
fn host(url: &reqwest::Url) -> String {
    let name = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}
