//! Recorded replies in place of the network, for demos.
//!
//! `client::send` answers from them, so the checks before a request and the reading of a reply are the real ones.

use std::collections::HashMap;

use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use super::client::content_type;
use super::{HttpReply, HttpRequest};
use crate::document;

/// Replies by address. A process that has them reaches no network.
#[derive(Debug, Default)]
pub struct RecordedPages(HashMap<Url, RecordedPage>);

/// One reply, as a recording has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedPage {
    url: String,
    #[serde(default = "ok")]
    status: u16,
    /// The header of that name.
    #[serde(default = "html")]
    content_type: String,
    /// Where it says to go instead.
    location: Option<String>,
    #[serde(default)]
    body: String,
}

fn ok() -> u16 {
    200
}

fn html() -> String {
    "text/html; charset=utf-8".to_owned()
}

impl RecordedPages {
    /// Reads a list of pages, each with its `url`.
    pub fn read(pages: Vec<Value>) -> Result<Self, String> {
        let mut by_url = HashMap::new();
        for (at, page) in pages.into_iter().enumerate() {
            let wrong = |why: String| format!("page {} of the recording: {why}", at + 1);
            let page: RecordedPage = serde_json::from_value(page).map_err(|error| wrong(error.to_string()))?;
            let url = Url::parse(&page.url).map_err(|error| wrong(format!("`{}` is no address: {error}", page.url)))?;
            if by_url.insert(url, page).is_some() {
                return Err(wrong("its address is recorded twice".to_owned()));
            }
        }
        Ok(Self(by_url))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The reply to a request, within its bounds; `None` if its address is not recorded.
    pub(super) fn reply(&self, request: &HttpRequest<'_>) -> Option<HttpReply> {
        let page = self.0.get(request.url)?;
        let mut body = page.body.clone().into_bytes();
        let most = if document::kind(&body).is_some() { request.document_max } else { request.max as u64 };
        let is_cut = body.len() as u64 > most;
        body.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        let (media_type, charset) = content_type(&page.content_type);
        let location = page.location.clone();
        Some(HttpReply { status: page.status, location, media_type, charset, body, is_cut, ..HttpReply::default() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::web::AddressGuard;

    fn read(pages: Value) -> Result<RecordedPages, String> {
        RecordedPages::read(serde_json::from_value(pages).unwrap())
    }

    #[test]
    fn a_reply_is_found_by_its_address_and_bounded() {
        let pages = read(json!([
            { "url": "https://a.example/x?q=%E5%8C%97", "body": "<p>four" },
            { "url": "https://a.example/moved", "status": 302, "location": "/x" },
            { "url": "https://a.example/data", "content_type": "Application/JSON", "body": "{}" },
        ]))
        .unwrap();
        let reply = |url: &str, max| {
            let url = Url::parse(url).unwrap();
            pages.reply(&HttpRequest::get(&url, AddressGuard::Public, max))
        };
        let page = reply("https://a.example/x?q=北", 100).unwrap();
        assert_eq!((page.status, page.media_type.as_str(), page.body.as_slice()), (200, "text/html", &b"<p>four"[..]));
        assert_eq!(page.charset.as_deref(), Some("utf-8"));
        let cut = reply("https://a.example/x?q=北", 3).unwrap();
        assert_eq!((cut.is_cut, cut.body.as_slice()), (true, &b"<p>"[..]));
        assert_eq!(reply("https://a.example/moved", 100).unwrap().location.as_deref(), Some("/x"));
        assert_eq!(reply("https://a.example/data", 100).unwrap().media_type, "application/json");
        assert!(reply("https://a.example/", 100).is_none());
    }

    #[test]
    fn a_wrong_recording_is_named_by_its_page() {
        let table = [
            (json!([{ "url": "nowhere" }]), "page 1 of the recording: `nowhere` is no address"),
            (json!([{ "url": "https://a.example/" }, { "url": "https://a.example" }]), "page 2 of the recording: its"),
            (json!([{ "url": "https://a.example/", "boddy": "" }]), "unknown field `boddy`"),
        ];
        for (pages, words) in table {
            let why = read(pages).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
