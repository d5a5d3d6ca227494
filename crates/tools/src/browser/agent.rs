//! The tabs of one agent, and its actions from the call to the result.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use max_team_core::chat::Part;
use max_team_core::limits::{
    BROWSER_ACTION_MS, BROWSER_CONTEXTS_ASIDE_MAX, BROWSER_LOAD_MS, BROWSER_SNAPSHOT_BYTES_MAX, BROWSER_TABS_MAX,
    PAGE_BYTES_MAX,
};
use max_team_core::policy::{Action, is_local_host};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::act::{Content, Tab};
use super::devtools::{DevToolsError, lock};
use super::guard::{ContextProxy, Guard};
use super::pages::{Context, Page};
use super::process::{Chromium, Ended, find_chromium};
use super::sign_in::sign_in;
use super::snapshot::Refs;
use super::{BrowserAction, BrowserInput};
use crate::remote::on_thread;
use crate::services::Services;
use crate::text::{clip, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::web::{PageRenderer, RenderFuture, RenderedPage, WebFault, address, bare, host, is_host_opened};

/// Bytes of a title.
const TITLE_BYTES_MAX: usize = 200;
/// Lines of the last tree that are remembered for questions to the user.
const LINES_MAX: usize = 5_000;

/// The browser of one agent: its own tabs, cookies and storage.
#[derive(Debug, Default)]
pub struct AgentBrowser {
    seat: tokio::sync::Mutex<Option<Seat>>,
    /// Contexts of other hosts, the oldest first.
    aside: Mutex<Vec<Seat>>,
    /// The window in which the user signs in for this agent.
    pub(super) window: tokio::sync::Mutex<Option<Arc<Chromium>>>,
    shown: Mutex<ShownPage>,
}

/// What the agent saw last.
#[derive(Debug, Default)]
struct ShownPage {
    host: String,
    lines: Vec<String>,
    /// References of fields for passwords.
    passwords: HashSet<u64>,
}

impl AgentBrowser {
    /// The host of the page that the agent saw last; empty if there is none.
    pub(super) fn host(&self) -> String {
        lock(&self.shown).host.clone()
    }

    /// An element as the last tree shows it.
    pub(super) fn line(&self, reference: &str) -> Option<String> {
        let mark = format!("[{}] ", reference.trim().trim_start_matches('[').trim_end_matches(']'));
        let shown = lock(&self.shown);
        shown.lines.iter().find(|line| line.trim_start().starts_with(&mark)).map(|line| line.trim().to_owned())
    }

    /// Whether an element of the last tree is a field for a password.
    pub(super) fn is_password(&self, reference: &str) -> bool {
        Refs::number(reference).is_some_and(|number| lock(&self.shown).passwords.contains(&number))
    }
}

/// A place in a browser.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) chromium: Arc<Chromium>,
    context: Arc<Context>,
    /// Where the requests of its context come in; `None`: as those of the browser itself.
    _proxy: Option<ContextProxy>,
    profile: String,
    /// The tab in use, by its target.
    current: Option<String>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let devtools = &self.chromium.devtools;
        if self.profile.is_empty() {
            devtools.post(None, "Target.disposeBrowserContext", &json!({ "browserContextId": self.context.id }));
        } else {
            // The profile's own context stays for as long as its browser.
            for page in self.pages() {
                devtools.post(None, "Target.closeTarget", &json!({ "targetId": page.target }));
            }
        }
        self.chromium.pages.remove_context(&self.context.id);
        self.chromium.guard.forget(&self.context);
    }
}

impl Seat {
    async fn take(
        cx: &ToolContext,
        chromium: Arc<Chromium>,
        profile: &str,
        private_host: Option<String>,
    ) -> Result<Self, ToolError> {
        let devtools = &chromium.devtools;
        // Only a browser's own context is kept on the disk.
        let (id, proxy) = if profile.is_empty() {
            let proxy = chromium.open_proxy().map_err(ToolError::correctable)?;
            let wanted = json!({
                "disposeOnDetach": true, "proxyServer": format!("http://{}", proxy.address), "proxyBypassList": "<-loopback>",
            });
            let made = devtools.call(None, "Target.createBrowserContext", wanted).await;
            let made = made.map_err(|error| trouble(&chromium, &error))?;
            (made.get("browserContextId").and_then(Value::as_str).unwrap_or_default().to_owned(), Some(proxy))
        } else {
            (Context::OWN.to_owned(), None)
        };
        let context = Arc::new(Context::new(id, cx.policy.clone(), &cx.services.private_hosts, private_host));
        if !chromium.pages.add_context(&context) {
            return Err(ToolError::correctable(format!("another agent uses the profile `{profile}` now")));
        }
        chromium.guard.judge_by(proxy.as_ref(), &context);
        let folder = chromium.folder.downloads();
        let downloads = json!({ "behavior": "allowAndName", "eventsEnabled": true, "downloadPath": folder });
        devtools.post(None, "Browser.setDownloadBehavior", &context.with_id(downloads));
        Ok(Self { chromium, context, _proxy: proxy, profile: profile.to_owned(), current: None })
    }

    /// The seat for pages of a host. Those of a private host have a context of their own, so that no other page reaches that host; the
    /// context that was in use is kept aside.
    async fn switched(
        cx: &ToolContext,
        held: Option<Self>,
        chromium: Arc<Chromium>,
        profile: &str,
        private_host: Option<String>,
        notes: &mut Vec<String>,
    ) -> Result<Self, ToolError> {
        let held = match held {
            Some(seat) if seat.context.private_host == private_host => return Ok(seat),
            held => held,
        };
        if let Some(held) = held {
            notes.push(match profile {
                "" => "the tabs of other hosts are kept apart from those of a private host".to_owned(),
                _ => "the tabs of other hosts were closed: they are kept apart from those of a private host".to_owned(),
            });
            let mut aside = lock(&cx.browser.aside);
            // A profile has one context.
            if profile.is_empty() {
                aside.push(held);
            }
            let found = aside.iter().position(|seat| seat.context.private_host == private_host);
            if let Some(found) = found {
                return Ok(aside.remove(found));
            }
            if aside.len() > BROWSER_CONTEXTS_ASIDE_MAX {
                aside.remove(0);
            }
        }
        Self::take(cx, chromium, profile, private_host).await
    }

    fn pages(&self) -> Vec<Arc<Page>> {
        self.chromium.pages.of(&self.context.id)
    }

    /// The tab in use; the newest if that is closed.
    fn page(&self) -> Option<Arc<Page>> {
        let pages = self.pages();
        let current = pages.iter().find(|page| Some(&page.target) == self.current.as_ref());
        current.or(pages.last()).cloned()
    }

    fn tab(&self, page: &Arc<Page>) -> Tab {
        Tab { devtools: self.chromium.devtools.clone(), page: Arc::clone(page) }
    }

    async fn new_page(&mut self) -> Result<Arc<Page>, ToolError> {
        if self.pages().len() >= BROWSER_TABS_MAX {
            return Err(ToolError::correctable(format!("{BROWSER_TABS_MAX} tabs are open; close one first")));
        }
        let wanted = self.context.with_id(json!({ "url": "about:blank" }));
        let made = self.chromium.devtools.call(None, "Target.createTarget", wanted).await;
        let made = made.map_err(|error| trouble(&self.chromium, &error))?;
        let target = made.get("targetId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let limit = Duration::from_millis(BROWSER_LOAD_MS);
        let page = timeout(limit, self.chromium.pages.page(&target)).await;
        let page = page.map_err(|_| ToolError::correctable("the browser opened no tab"))?;
        // Its events come only once it has answered what it was set up with.
        let ready = self.chromium.devtools.call(Some(&page.session), "Page.enable", json!({})).await;
        ready.map_err(|error| trouble(&self.chromium, &error))?;
        self.current = Some(target);
        Ok(page)
    }
}

/// Why the browser did not do something: it ended, or it says so.
fn trouble(chromium: &Chromium, error: &DevToolsError) -> ToolError {
    ToolError::correctable(match (error, chromium.ended()) {
        (DevToolsError::Ended, Some(Ended::Lost(why))) => {
            format!("the browser ended: {why}; it is started again with the next `open`, without its pages")
        }
        _ => error.to_string(),
    })
}

/// Does one action and tells what the page is then.
pub(super) async fn run(cx: &ToolContext, input: &BrowserInput, intent: &Action) -> Result<Output, ToolError> {
    let mut seat = cx.browser.seat.lock().await;
    let limit = Duration::from_millis(BROWSER_ACTION_MS);
    let done = timeout(limit, run_in(cx, &mut seat, input, intent)).await;
    done.unwrap_or_else(|_| Err(unclear(input.action, format!("the action took longer than {} s", limit.as_secs()))))
}

/// An error after which the page may have got the action: one that changes something must not be repeated blindly.
fn unclear(action: BrowserAction, words: String) -> ToolError {
    if action.is_change() {
        ToolError::Unknown(format!("{words}; whether it took effect is unknown: look at the page before you repeat it"))
    } else {
        ToolError::correctable(words)
    }
}

async fn run_in(
    cx: &ToolContext,
    seat: &mut Option<Seat>,
    input: &BrowserInput,
    intent: &Action,
) -> Result<Output, ToolError> {
    let mut notes = Vec::new();
    if let Some(ended) = seat.as_ref().and_then(|seat| seat.chromium.ended()) {
        *seat = None;
        lock(&cx.browser.aside).clear();
        let why = match ended {
            Ended::Lost(why) => format!("the browser had ended ({why})"),
            Ended::Closed => "the browser was closed because it was not used".to_owned(),
        };
        if !matches!(input.action, BrowserAction::Open | BrowserAction::SignIn) {
            lock(&cx.browser.shown).host.clear();
            return Err(ToolError::correctable(format!("{why}, and its pages are gone; use `open` to start it again")));
        }
        notes.push(format!("{why} and was started again; its other pages are gone"));
    }
    match input.action {
        BrowserAction::Open => return open(cx, seat, input, intent, notes).await,
        BrowserAction::SignIn => return sign_in(cx, seat, input, intent).await,
        _ => {}
    }
    let none = || ToolError::correctable("no page is open; begin with `action: open` and a `url`");
    let seat = seat.as_mut().ok_or_else(none)?;
    seat.chromium.touch();
    *lock(&seat.context.policy) = cx.policy.clone();
    if input.action == BrowserAction::Tabs {
        if let Some(number) = &input.tab {
            let page = number
                .trim()
                .parse::<usize>()
                .ok()
                .and_then(|number| seat.pages().get(number.checked_sub(1)?).cloned());
            let page = page.ok_or_else(|| ToolError::correctable(format!("there is no tab `{}`", clip(number, 20))))?;
            seat.current = Some(page.target.clone());
            seat.chromium.devtools.post(Some(&page.session), "Page.bringToFront", &json!({}));
        }
        return report(cx, seat, input, notes).await;
    }
    let page = seat.page().ok_or_else(none)?;
    if input.action == BrowserAction::Close {
        seat.tab(&page).close().await;
        seat.current = None;
        return report(cx, seat, input, notes).await;
    }
    let here = page_host(&page);
    if input.action.is_change() && here != intent.target {
        return Err(ToolError::correctable(format!(
            "the page is now on `{here}` and not on `{}`, where the action was judged; look at it with `snapshot` first",
            intent.target
        )));
    }
    let before = seat.pages().len();
    let done = seat.tab(&page).act(input, &mut notes).await;
    if seat.pages().len() > before {
        seat.current = None;
        notes.push("it opened a new tab, which is now in use".to_owned());
        if let Some(page) = seat.page() {
            seat.tab(&page).settle().await;
        }
    }
    match done {
        Ok(Some(image)) => picture(&page, image),
        Ok(None) => report(cx, seat, input, notes).await.map_err(|error| match error {
            ToolError::Correctable(words) => unclear(input.action, words),
            other => other,
        }),
        Err(error @ DevToolsError::Refused(_)) => Err(failed(seat, &page, &error)),
        Err(error) => Err(unclear(input.action, failed(seat, &page, &error).to_string())),
    }
}

/// An error of a page. One that does not answer is replaced by the next `open`.
fn failed(seat: &Seat, page: &Page, error: &DevToolsError) -> ToolError {
    if matches!(error, DevToolsError::Late(_)) {
        lock(&page.state).is_stuck = true;
    }
    trouble(&seat.chromium, error)
}

/// The host of a page, as the policy judges it.
fn page_host(page: &Page) -> String {
    let url = lock(&page.state).url.clone();
    // A page that a script made has the host of its maker.
    let url = url.strip_prefix("blob:").unwrap_or(&url);
    Url::parse(url).ok().filter(Url::has_host).map(|url| host(&url)).unwrap_or_default()
}

fn picture(page: &Page, data: String) -> Result<Output, ToolError> {
    let url = visible(&clip(&lock(&page.state).url, TITLE_BYTES_MAX));
    let image = Part::Image { media_type: "image/jpeg".to_owned(), data };
    Ok(Output { content: vec![Part::text(format!("[a picture of `{url}`]")), image], is_error: false })
}

pub(super) async fn open(
    cx: &ToolContext,
    seat: &mut Option<Seat>,
    input: &BrowserInput,
    intent: &Action,
    mut notes: Vec<String>,
) -> Result<Output, ToolError> {
    let url = address(input.url.as_deref().unwrap_or_default())?;
    if host(&url) != intent.target {
        return Err(ToolError::fatal(format!("the host of `{url}` is not what was judged (`{}`)", intent.target)));
    }
    let profile = input.profile.clone().unwrap_or_default();
    if seat.as_ref().is_some_and(|seat| input.profile.is_some() && seat.profile != profile) {
        *seat = None;
        lock(&cx.browser.aside).clear();
    }
    if let Some(window) = cx.browser.window.lock().await.take() {
        window.close().await;
    }
    let (chromium, profile) = match seat.as_ref() {
        Some(seat) => (Arc::clone(&seat.chromium), seat.profile.clone()),
        None => (cx.browsers.chromium(cx, &profile).await?, profile),
    };
    chromium.touch();
    check(&chromium.guard, &url, true).await?;
    let private_host = private_host(cx, &url, true);
    let taken = Seat::switched(cx, seat.take(), chromium, &profile, private_host, &mut notes).await?;
    let seat = seat.insert(taken);
    *lock(&seat.context.policy) = cx.policy.clone();
    lock(&seat.context.hosts).insert(intent.target.clone());
    // A tab that crashed, or whose scripts never end, is of no use.
    let is_lost = |page: &Arc<Page>| lock(&page.state).is_crashed || lock(&page.state).is_stuck;
    for page in seat.pages().iter().filter(|page| is_lost(page)) {
        seat.tab(page).close().await;
        notes.push("the tab before it had crashed or hung and was closed".to_owned());
    }
    let page = match seat.page().filter(|page| input.tab.as_deref() != Some("new") && !is_lost(page)) {
        Some(page) => page,
        None => seat.new_page().await?,
    };
    cx.progress.say(|| format!("opening {url}"));
    match seat.tab(&page).navigate(url.as_str(), &mut notes).await {
        Ok(()) => report(cx, seat, input, notes).await,
        Err(error) => {
            let refusals = seat.context.take_notes();
            let words = trouble(&seat.chromium, &error).to_string();
            let words = std::iter::once(words).chain(refusals).collect::<Vec<_>>().join("; ");
            Err(ToolError::correctable(format!("`{}`: {words}", visible(&clip(url.as_str(), TITLE_BYTES_MAX)))))
        }
    }
}

/// Refuses an address that the proxy would refuse, in words instead of an error page.
pub(super) async fn check(guard: &Guard, url: &Url, is_judged: bool) -> Result<(), ToolError> {
    let port = url.port_or_known_default().unwrap_or(443);
    let is_judged = is_judged && is_local_host(&host(url));
    let found = guard.addresses(url.host_str().unwrap_or_default(), port, is_judged).await;
    found.map(drop).map_err(ToolError::correctable)
}

/// The host of an address without its port, if the user has opened it as a private one.
pub(super) fn private_host(cx: &ToolContext, url: &Url, is_judged: bool) -> Option<String> {
    let name = bare(url.host_str().unwrap_or_default());
    let is_opened = is_host_opened(&cx.services.private_hosts, name, url.port_or_known_default());
    (is_opened || (is_judged && is_local_host(&host(url)))).then(|| name.to_owned())
}

/// The page that is in use now: its address, title, what happened, and its tree.
async fn report(
    cx: &ToolContext,
    seat: &Seat,
    input: &BrowserInput,
    mut notes: Vec<String>,
) -> Result<Output, ToolError> {
    let pages = seat.pages();
    let (downloads, folder, cx2) = (Arc::clone(&seat.context), seat.chromium.folder.downloads(), cx.clone());
    if !downloads.downloads.is_empty() {
        notes.extend(on_thread(move || Ok(downloads.downloads.collect(&cx2, &folder))).await?);
    }
    let Some(page) = seat.page() else {
        *lock(&cx.browser.shown) = ShownPage::default();
        notes.extend(seat.context.take_notes());
        return Ok(Output::text(brackets(&notes) + "[no tab is open]"));
    };
    let content = seat.tab(&page).content().await.map_err(|error| failed(seat, &page, &error))?;
    notes.extend(seat.context.take_notes());
    let Content { title, lines, passwords } = content;
    let url = lock(&page.state).url.clone();
    let mut text =
        format!("[`{}`: {}]\n", visible(&clip(&url, super::SHOWN_BYTES_MAX)), visible(&clip(&title, TITLE_BYTES_MAX)));
    if !seat.profile.is_empty() {
        text.push_str(&format!("[in the profile `{}`; `profile: \"\"` with `open` leaves it]\n", seat.profile));
    }
    if pages.len() > 1 || input.action == BrowserAction::Tabs {
        for (at, other) in pages.iter().enumerate() {
            let mark = if other.target == page.target { " (in use)" } else { "" };
            let url = visible(&clip(&lock(&other.state).url, TITLE_BYTES_MAX));
            text.push_str(&format!("[tab {}: `{url}`{mark}]\n", at + 1));
        }
    }
    text.push_str(&brackets(&notes));
    text.push_str(&super::snapshot::page(&lines, input.offset.unwrap_or(1), BROWSER_SNAPSHOT_BYTES_MAX));
    let lines = lines.into_iter().take(LINES_MAX).collect();
    *lock(&cx.browser.shown) = ShownPage { host: page_host(&page), lines, passwords };
    Ok(Output::text(text))
}

fn brackets(notes: &[String]) -> String {
    notes.iter().map(|note| format!("[{note}]\n")).collect()
}

/// The browser as it renders pages for `web_fetch`.
#[derive(Debug, Clone, Copy)]
pub struct ChromiumRenderer;

impl PageRenderer for ChromiumRenderer {
    fn is_there(&self, services: &Services) -> bool {
        find_chromium(services.browser_path.as_deref()).is_some()
    }

    fn render<'a>(&'a self, cx: &'a ToolContext, url: &'a Url, is_judged: bool) -> RenderFuture<'a> {
        Box::pin(render(cx, url, is_judged))
    }
}

/// Loads a page whose host was judged.
async fn render(cx: &ToolContext, url: &Url, is_judged: bool) -> Result<RenderedPage, WebFault> {
    let limit = Duration::from_millis(BROWSER_ACTION_MS);
    let shown = || visible(&clip(url.as_str(), TITLE_BYTES_MAX));
    let work = async {
        let chromium = cx.browsers.chromium(cx, "").await?;
        chromium.touch();
        let rendered = render_in(cx, chromium, url, is_judged).await;
        rendered.map_err(|error| WebFault::NotRendered { url: shown(), why: error.to_string() })
    };
    let late = || WebFault::Late { url: shown(), seconds: limit.as_secs() };
    timeout(limit, work).await.unwrap_or_else(|_| Err(late()))
}

/// Lets the scripts of a page run until its network is quiet, and gives its HTML. A host that it leads to and that rules do not
/// allow is not followed.
async fn render_in(
    cx: &ToolContext,
    chromium: Arc<Chromium>,
    url: &Url,
    is_judged: bool,
) -> Result<RenderedPage, ToolError> {
    check(&chromium.guard, url, is_judged).await?;
    let mut seat = Seat::take(cx, chromium, "", private_host(cx, url, is_judged)).await?;
    lock(&seat.context.hosts).insert(host(url));
    let page = seat.new_page().await?;
    let tab = seat.tab(&page);
    let failed = |error: DevToolsError| ToolError::correctable(error.to_string());
    tab.navigate(url.as_str(), &mut Vec::new()).await.map_err(failed)?;
    tab.until_quiet().await;
    if let Some(next) = lock(&page.state).stopped_at.clone() {
        return Err(ToolError::correctable(format!(
            "it leads to another host, `{next}`, which was not followed; fetch that address instead"
        )));
    }
    let html = tab.html(2 * PAGE_BYTES_MAX).await.map_err(failed)?;
    let state = lock(&page.state);
    let url = Url::parse(&state.url).unwrap_or_else(|_| url.clone());
    Ok(RenderedPage { url, status: state.status, html })
}
