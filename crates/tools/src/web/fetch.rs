//! `web_fetch`: a page of the web, as text.
//!
//! The policy judges the host and its port. A redirect on the same host and port is followed; any other redirect is
//! reported, so that the policy judges it when the model asks for it. `max-team fetch` follows all redirects: its user has
//! named the address, and every address on the way is checked.

use std::sync::Arc;

use max_team_core::limits::{DOCUMENT_BYTES_MAX, PAGE_BYTES_MAX, REDIRECTS_MAX};
use max_team_core::policy::{Action, ActionKind};
use reqwest::Url;
use reqwest::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use schemars::JsonSchema;
use serde::Deserialize;

use super::cache::{CachedPage, PageKey};
use super::fault::{AddressFlaw, PageNote, RedirectFlaw, WebFault};
use super::page::{PageText, PageView, check_selector, may_have_scripts};
use super::render::RenderMode;
use super::{AddressGuard, HttpReply, HttpRequest, host, send};
use crate::remote::on_thread;
use crate::text::{clip, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::RemoteTyped;

/// Bytes of an address.
const URL_BYTES_MAX: usize = 4_096;
/// Bytes of an address that an error repeats.
const URL_SHOWN_MAX: usize = 200;

/// Read a page of the web. HTML comes as Markdown: the main text with its links and tables; JSON laid out, PDF and office
/// documents as their text, other text as it is. A long text comes in pages: ask for the next with `page`. A redirect to
/// another host is not followed: you get its address and may fetch it. The user may be asked about a new host; this machine
/// and private networks need the user's permission.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebFetch {
    /// The address, like `https://docs.rs/serde/latest/serde/`.
    url: String,
    /// Only the elements of an HTML page that fit this CSS selector, like `table.prices` or `#comments`.
    selector: Option<String>,
    /// Which page of a long text. Default: 1.
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// When to run the page's scripts in a browser: `auto` (if there is nearly no text without them), `never` or `always`.
    /// Default: auto.
    #[schemars(extend("enum" = ["auto", "never", "always"]))]
    render: Option<String>,
    /// Give HTML and JSON as they are. Default: false.
    raw: Option<bool>,
}

pub(crate) fn web_fetch() -> RemoteTyped<WebFetch> {
    RemoteTyped::reading(
        "web_fetch",
        action,
        |_, intent| Some(intent.target.clone()),
        |cx, args, intent| Box::pin(call(cx, args, intent)),
    )
}

fn action(_: &ToolContext, args: &WebFetch) -> Result<Action, ToolError> {
    let url = parse(&args.url)?;
    Ok(Action { kind: ActionKind::Fetch, preview: format!("GET {url}"), ..Action::read(host(&url)) })
}

async fn call(cx: &ToolContext, args: WebFetch, intent: &Action) -> Result<Output, ToolError> {
    let url = parse(&args.url)?;
    if host(&url) != intent.target {
        return Err(ToolError::fatal(format!("the host of `{url}` is not what was judged (`{}`)", intent.target)));
    }
    let number = args.page.map_or(1, |page| page as usize);
    let wanted = FetchRequest {
        render: args.render.as_deref().and_then(RenderMode::named).unwrap_or_default(),
        view: PageView { selector: args.selector, raw: args.raw.unwrap_or(false) },
        is_further_page: number > 1,
        guard: AddressGuard::Judged,
        url,
    };
    match read_page(cx, &wanted).await? {
        Fetched::Page(url, page) => told(cx, &url, page, number),
        Fetched::Elsewhere(url, next) => Ok(Output::text(format!(
            "[`{}` leads to another host: `{}`. Call `web_fetch` with that address if you want it]",
            shown(&url),
            shown(&next)
        ))),
    }
}

/// One part of a page in words.
fn told(cx: &ToolContext, url: &Url, mut page: PageText, number: usize) -> Result<Output, ToolError> {
    let mut notes: Vec<String> = std::mem::take(&mut page.notes).iter().map(ToString::to_string).collect();
    let (part, count) = page.part(number);
    let part = part.ok_or_else(|| WebFault::NoPart { url: shown(url), number, count })?;
    if count > 1 {
        let next = if number < count { format!(", read on with `page: {}`", number + 1) } else { String::new() };
        notes.push(format!("page {number} of {count}{next}"));
        if number == 1
            && let Some(place) = cx.keep(&page.text)
        {
            notes.push(place);
        }
    }
    let text = format!("[`{}`: {}]\n{part}", shown(url), notes.join("; "));
    Ok(Output { is_error: page.is_error, ..Output::text(text) })
}

/// A page that a user asks for.
#[derive(Debug, Clone, Default)]
pub struct PageQuery {
    pub url: String,
    /// Only the elements that this CSS selector finds.
    pub selector: Option<String>,
    /// Only this part of the text, from 1; none: all of it.
    pub page: Option<usize>,
    pub render: RenderMode,
    /// HTML and JSON as they are.
    pub raw: bool,
}

impl PageQuery {
    /// Checks the address and the selector without asking the server.
    pub fn check(&self) -> Result<(), WebFault> {
        let url = parse(&self.url)?;
        self.selector.as_deref().map_or(Ok(()), |selector| check_selector(&url, selector))
    }
}

/// The text of a page for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageAnswer {
    pub text: String,
    /// The address that it came from.
    pub url: String,
    /// What is to be known about it: its status, its type, its title.
    pub notes: Vec<PageNote>,
    /// Whether the server answered with an error.
    pub is_error: bool,
    /// Whether something of the page is missing.
    pub is_incomplete: bool,
}

/// Fetches a page for a user, who has named its address: redirects to other hosts are followed.
pub async fn fetch_page(cx: &ToolContext, query: PageQuery) -> Result<PageAnswer, WebFault> {
    let PageQuery { url, selector, page: number, render, raw } = query;
    let url = parse(&url)?;
    let view = PageView { selector, raw };
    let wanted = FetchRequest { url, view, render, is_further_page: false, guard: AddressGuard::Public };
    let (url, mut page) = match read_page(cx, &wanted).await? {
        Fetched::Page(url, page) => (url, page),
        Fetched::Elsewhere(url, next) => {
            return Err(WebFault::Other(format!("`{}` leads to `{}`", shown(&url), shown(&next))));
        }
    };
    if let Some(number) = number {
        let (part, count) = page.part(number);
        let part = part.ok_or_else(|| WebFault::NoPart { url: shown(&url), number, count })?.to_owned();
        page.notes.push(PageNote::Part { number, count });
        page.text = part;
    }
    let PageText { text, notes, is_error, is_incomplete, .. } = page;
    Ok(PageAnswer { text, url: shown(&url), notes, is_error, is_incomplete })
}

/// What is to be fetched.
#[derive(Debug)]
pub(crate) struct FetchRequest {
    pub(crate) url: Url,
    pub(crate) view: PageView,
    pub(crate) render: RenderMode,
    /// Whether an earlier page of the same text was told: the text must not change in between.
    pub(crate) is_further_page: bool,
    /// Where it may go. What the policy judges is one host: redirects to others are not followed then.
    pub(crate) guard: AddressGuard,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Fetched {
    Page(Url, PageText),
    /// A redirect to another host that is not followed.
    Elsewhere(Url, Url),
}

/// Fetches a page and reads its text.
pub(crate) async fn read_page(cx: &ToolContext, wanted: &FetchRequest) -> Result<Fetched, WebFault> {
    let renderer = cx.services.renderer.as_deref();
    let without_chromium = || renderer.is_none_or(|renderer| !renderer.is_there(&cx.services));
    if wanted.render == RenderMode::Always && without_chromium() {
        return Err(WebFault::NoChromium(shown(&wanted.url)));
    }
    if wanted.render == RenderMode::Always {
        // A document has no scripts: Chromium would download it and show nothing.
        return match load(cx, wanted).await {
            Ok(Loaded::Page(page)) if !may_have_scripts(&page.reply) => {
                let text = text_of(cx, &page, &wanted.view).await?;
                Ok(Fetched::Page(page.url.clone(), text))
            }
            Ok(Loaded::Elsewhere(url, next)) => Ok(Fetched::Elsewhere(url, next)),
            Err(fault @ WebFault::Private { .. }) => Err(fault),
            Ok(Loaded::Page(_)) | Err(_) => render(cx, wanted).await,
        };
    }
    let page = match load(cx, wanted).await? {
        Loaded::Page(page) => page,
        Loaded::Elsewhere(url, next) => return Ok(Fetched::Elsewhere(url, next)),
    };
    let read = text_of(cx, &page, &wanted.view).await;
    let needs_scripts = match &read {
        Ok(text) => text.needs_scripts && !wanted.view.raw,
        // What a selector looks for may be written by scripts.
        Err(_) if wanted.view.selector.is_some() => {
            text_of(cx, &page, &PageView::default()).await.is_ok_and(|text| text.needs_scripts)
        }
        Err(_) => false,
    };
    if !needs_scripts || wanted.render == RenderMode::Never {
        return read.map(|text| Fetched::Page(page.url.clone(), text));
    }
    if without_chromium() {
        let mut text = read?;
        text.notes.push(PageNote::NeedsChromium);
        text.is_incomplete = true;
        return Ok(Fetched::Page(page.url.clone(), text));
    }
    match (render(cx, wanted).await, read) {
        // Text without scripts is better than none.
        (Err(error), Ok(mut text)) => {
            text.notes.push(PageNote::NotRendered(Box::new(error)));
            text.is_incomplete = true;
            Ok(Fetched::Page(page.url.clone(), text))
        }
        (rendered, _) => rendered,
    }
}

async fn text_of(cx: &ToolContext, page: &Arc<CachedPage>, view: &PageView) -> Result<PageText, WebFault> {
    let (cx, page, view) = (cx.clone(), Arc::clone(page), view.clone());
    on_thread(move || Ok(PageText::read(&cx, &page.url, &page.reply, &view))).await?
}

/// Has a page rendered by the browser.
async fn render(cx: &ToolContext, wanted: &FetchRequest) -> Result<Fetched, WebFault> {
    let key = PageKey { session: Arc::clone(&cx.session), url: wanted.url.clone(), is_rendered: true };
    let kept = cx.remote.pages().get(&key).filter(|_| wanted.is_further_page);
    let page = match (kept, &cx.services.renderer) {
        (Some(kept), _) => kept,
        (None, Some(renderer)) => {
            let rendered = renderer.render(cx, &wanted.url, wanted.guard == AddressGuard::Judged).await?;
            let reply = HttpReply {
                status: rendered.status,
                media_type: "text/html".to_owned(),
                charset: Some("utf-8".to_owned()),
                body: rendered.html.into_bytes(),
                ..HttpReply::default()
            };
            let page = Arc::new(CachedPage { url: rendered.url, reply });
            cx.remote.pages().put(key, Arc::clone(&page));
            page
        }
        (None, None) => return Err(WebFault::NoChromium(shown(&wanted.url))),
    };
    let mut text = text_of(cx, &page, &wanted.view).await?;
    text.notes.push(PageNote::Rendered);
    if text.text.trim().is_empty() {
        text.notes.push(PageNote::NoText);
    }
    Ok(Fetched::Page(page.url.clone(), text))
}

enum Loaded {
    Page(Arc<CachedPage>),
    Elsewhere(Url, Url),
}

/// Gets a page by HTTP, or from the session's earlier pages.
async fn load(cx: &ToolContext, wanted: &FetchRequest) -> Result<Loaded, WebFault> {
    let key = PageKey { session: Arc::clone(&cx.session), url: wanted.url.clone(), is_rendered: false };
    let kept = cx.remote.pages().get(&key);
    if let Some(kept) = kept.as_ref().filter(|_| wanted.is_further_page) {
        return Ok(Loaded::Page(Arc::clone(kept)));
    }
    let mut url = wanted.url.clone();
    for _ in 0..=REDIRECTS_MAX {
        let known = kept.as_ref().filter(|kept| kept.url == url);
        let mut request = HttpRequest::get(&url, wanted.guard, PAGE_BYTES_MAX);
        request.document_max = DOCUMENT_BYTES_MAX;
        request.takes_part = true;
        if let Some(known) = known {
            let etag = known.reply.etag.clone().map(|etag| (IF_NONE_MATCH, etag));
            let since = known.reply.last_modified.clone().map(|at| (IF_MODIFIED_SINCE, at));
            request.headers.extend(etag.into_iter().chain(since));
        }
        let reply = send(cx, request).await?;
        if let Some(known) = known.filter(|_| reply.status == 304) {
            return Ok(Loaded::Page(Arc::clone(known)));
        }
        match next(&url, &reply)? {
            None => {
                let page = Arc::new(CachedPage { url, reply });
                // Neither an error nor a part is kept: the next call may find the whole page.
                if page.reply.status < 400 && page.reply.broken.is_none() {
                    cx.remote.pages().put(key, Arc::clone(&page));
                }
                return Ok(Loaded::Page(page));
            }
            Some(next) if wanted.guard == AddressGuard::Public || host(&next) == host(&url) => url = next,
            Some(next) => return Ok(Loaded::Elsewhere(url, next)),
        }
    }
    Err(WebFault::RedirectLoop(shown(&url)))
}

/// An address to fetch: what stands behind `#` never reaches a server.
pub(crate) fn parse(text: &str) -> Result<Url, WebFault> {
    let mut url = address(text)?;
    url.set_fragment(None);
    Ok(url)
}

/// An address that a model or a user wrote.
pub(crate) fn address(text: &str) -> Result<Url, WebFault> {
    let wrong = |flaw| WebFault::Address { url: visible(&clip(text, URL_SHOWN_MAX)), flaw };
    if text.len() > URL_BYTES_MAX {
        return Err(wrong(AddressFlaw::TooLong));
    }
    let url = Url::parse(text).map_err(|err| wrong(AddressFlaw::Unusable(err.to_string())))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong(AddressFlaw::NotWeb));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(AddressFlaw::HasPassword));
    }
    Ok(url)
}

/// Where a reply says to go, if it does.
fn next(url: &Url, reply: &HttpReply) -> Result<Option<Url>, WebFault> {
    let (301 | 302 | 303 | 307 | 308, Some(location)) = (reply.status, &reply.location) else { return Ok(None) };
    let wrong = |flaw| {
        let to = visible(&clip(location, URL_SHOWN_MAX));
        WebFault::Redirect { url: shown(url), to, flaw }
    };
    let next = url.join(location).map_err(|_| wrong(RedirectFlaw::NotWeb))?;
    let next = parse(next.as_str()).map_err(|_| wrong(RedirectFlaw::NotWeb))?;
    if (url.scheme(), next.scheme()) == ("https", "http") {
        return Err(wrong(RedirectFlaw::Unencrypted));
    }
    Ok(Some(next))
}

fn shown(url: &Url) -> String {
    visible(&clip(url.as_str(), URL_SHOWN_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_cleaned_or_refused() {
        assert_eq!(parse("HTTPS://Docs.RS:443/a#b").unwrap().as_str(), "https://docs.rs/a");
        assert_eq!(parse("http://0x7f.1/").unwrap().host_str(), Some("127.0.0.1"));
        for text in ["", "docs.rs", "file:///etc/passwd", "ftp://a/", "http://", "https://u:p@a/", "data:text/plain,x"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn redirects_stay_encrypted() {
        let reply =
            |location: &str| HttpReply { status: 302, location: Some(location.to_owned()), ..HttpReply::default() };
        let url = parse("https://a.org/x/y").unwrap();
        assert_eq!(next(&url, &reply("z")).unwrap().unwrap().as_str(), "https://a.org/x/z");
        assert_eq!(next(&url, &reply("//b.org/")).unwrap().unwrap().as_str(), "https://b.org/");
        for location in ["http://a.org/", "file:///etc/passwd", "gopher://a.org/", "https://u:p@a.org/"] {
            assert!(next(&url, &reply(location)).is_err(), "{location}");
        }
    }
}
