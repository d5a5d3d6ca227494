//! The network, as far as tools may use it: pages of the web, and the services that the user has set up.
//!
//! `client` makes one request and follows no redirect, and reaches no private address unless the user has opened it or
//! has a service there; `fetch` is `web_fetch`, which follows redirects only as far as the policy has judged; `page` makes
//! text of a reply and `html` Markdown of a page; `fault` has the reasons why a page does not come; `cache` keeps pages for their session; `render` is the seam to a browser;
//! `search` is `web_search`; `geocode` finds places by name; `recorded` stands for the network in demos.

mod cache;
mod client;
mod fault;
mod fetch;
mod geocode;
mod html;
mod page;
mod recorded;
mod render;
mod search;

/// Bytes of text that a page becomes: more than the page, because links are written out and JSON is laid out.
const TEXT_BYTES_MAX: usize = 2 * max_team_core::limits::PAGE_BYTES_MAX;

pub(crate) use cache::PageCache;
pub use client::builder as http_client;
pub(crate) use client::{AddressGuard, HttpReply, HttpRequest, bare, fetch, is_host_opened, send};
pub use fault::{AddressFlaw, BodyFlaw, PageNote, PrivateAddress, RedirectFlaw, SearchAddressFlaw, WebFault};
pub use fetch::{PageAnswer, PageQuery, WebFetch, fetch_page};
pub(crate) use fetch::{address, web_fetch};
pub use geocode::Geocode;
pub(crate) use geocode::geocode;
pub use recorded::RecordedPages;
pub use render::{PageRenderer, RenderFuture, RenderMode, RenderedPage};
pub(crate) use search::web_search;
pub use search::{SearchKey, SearchProvider, SearchService, WebSearch};

/// The part of an address that the policy judges: the host, with its port if that is not the scheme's default.
pub(crate) fn host(url: &reqwest::Url) -> String {
    let name = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}
