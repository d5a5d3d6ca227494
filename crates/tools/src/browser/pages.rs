//! The pages of one Chromium, kept up to date by its events.
//!
//! Events come on Chromium's thread and are handled there at once: the state of a page changes, and events that a page waits for
//! (a paused request, a dialog) are answered. Nothing here waits.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use max_team_core::policy::{Action, ActionKind, Verdict, is_local_host};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::devtools::{DevTools, Event, lock};
use super::downloads::Downloads;
use super::snapshot::Refs;
use crate::network::target;
use crate::policy_check::PolicyCheck;
use crate::text::{clip, visible};
use crate::web::{bare, host, is_host_opened};

/// Notes of one context that wait to be told.
const NOTES_MAX: usize = 20;
/// Bytes of a page's words in a note.
const NOTE_BYTES_MAX: usize = 400;

/// All pages of one Chromium.
#[derive(Debug)]
pub(super) struct Pages {
    devtools: DevTools,
    contexts: Mutex<HashMap<String, Arc<Context>>>,
    pages: Mutex<Vec<Arc<Page>>>,
    changed: Notify,
}

/// The pages of one agent: cookies and storage of their own.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) id: String,
    pub(super) policy: Mutex<PolicyCheck>,
    /// Hosts that were judged, with a port where it is not the usual one.
    pub(super) hosts: Mutex<HashSet<String>>,
    /// The answer to the next dialog: the text of a prompt. `None`: dialogs are dismissed.
    pub(super) dialog: Mutex<Option<String>>,
    pub(super) downloads: Downloads,
    /// The private host whose pages these are, without a port; `None`: pages of the public internet. No other private host is reached,
    /// and no page of another host is shown beside a private one.
    pub(super) private_host: Option<String>,
    /// Private hosts that the user has opened.
    opened: Vec<String>,
    notes: Mutex<Vec<String>>,
}

impl Context {
    /// The name of a browser's own context, which Chromium does not name.
    pub(super) const OWN: &str = "";

    /// Parameters of a call, with the context that they are about.
    pub(super) fn with_id(&self, mut params: Value) -> Value {
        if let (Some(members), false) = (params.as_object_mut(), self.id == Self::OWN) {
            members.insert("browserContextId".to_owned(), self.id.as_str().into());
        }
        params
    }

    pub(super) fn new(id: String, policy: PolicyCheck, opened: &[String], private_host: Option<String>) -> Self {
        Self {
            id,
            policy: Mutex::new(policy),
            hosts: Mutex::default(),
            dialog: Mutex::default(),
            downloads: Downloads::default(),
            private_host,
            opened: opened.to_vec(),
            notes: Mutex::default(),
        }
    }

    /// Tells something with the next result.
    pub(super) fn note(&self, words: String) {
        let mut notes = lock(&self.notes);
        if notes.len() < NOTES_MAX && !notes.contains(&words) {
            notes.push(words);
        }
    }

    pub(super) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notes))
    }

    /// Whether a page may go to an address: its host was judged, or rules allow it without a question.
    fn admits(&self, url: &str) -> bool {
        let Ok(url) = Url::parse(url) else { return false };
        if !matches!(url.scheme(), "http" | "https") {
            return matches!(url.scheme(), "about" | "blob" | "data");
        }
        let name = url.host_str().unwrap_or_default();
        let host = host(&url);
        let is_private = is_local_host(&host) || is_host_opened(&self.opened, name, url.port_or_known_default());
        if !self.is_at_home(name) && (is_private || self.private_host.is_some()) {
            return false;
        }
        if lock(&self.hosts).contains(&host) {
            return true;
        }
        let action = Action { kind: ActionKind::Fetch, ..Action::read(host.clone()) };
        let is_allowed = lock(&self.policy).judge(super::NAME, &action).verdict == Verdict::Allow;
        if is_allowed {
            lock(&self.hosts).insert(host);
        }
        is_allowed
    }

    /// Whether its pages are those of this private host.
    pub(super) fn is_at_home(&self, host: &str) -> bool {
        self.private_host.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(bare(host)))
    }

    /// Whether the policy has judged this host of this machine or of a private network.
    pub(super) fn has_judged_local(&self, host: &str, port: u16) -> bool {
        let target = target(host, port);
        is_local_host(&target) && lock(&self.hosts).contains(&target)
    }

    /// The rule that denies a host to all parts of a page, in words.
    pub(super) fn denial(&self, host: &str, port: u16) -> Option<String> {
        let action = Action { kind: ActionKind::Fetch, ..Action::read(target(host, port)) };
        let judged = lock(&self.policy).judge(super::NAME, &action);
        // A mode that never asks denies as well, but names no rule: the parts of a page may come from hosts that no rule names.
        let is_denied = judged.verdict == Verdict::Deny && judged.origin.is_some();
        is_denied.then(|| {
            format!("the page asked for something from `{}`, which is refused: {}", action.target, judged.rule)
        })
    }
}

#[derive(Debug)]
pub(super) struct Page {
    pub(super) session: String,
    /// Its name, which is also that of its outermost frame.
    pub(super) target: String,
    pub(super) context: Arc<Context>,
    pub(super) state: Mutex<PageState>,
    pub(super) changed: Notify,
}

#[derive(Debug, Default)]
pub(super) struct PageState {
    pub(super) url: String,
    /// The status of the response that its document came with.
    pub(super) status: u16,
    /// Whether a script or a click wants to go elsewhere, which has not begun yet.
    pub(super) is_leaving: bool,
    /// Whether a document is asked for that is not shown yet.
    pub(super) is_fetching: bool,
    pub(super) is_loading: bool,
    /// Whether no request has been under way for half a second since the page was loaded.
    pub(super) is_quiet: bool,
    pub(super) is_crashed: bool,
    /// Whether a script keeps it from answering.
    pub(super) is_stuck: bool,
    pub(super) is_closed: bool,
    /// The address of another host that the page leads to and that was not followed.
    pub(super) stopped_at: Option<String>,
    pub(super) refs: Refs,
}

impl Page {
    /// Whether something holds, now or before it is dropped.
    pub(super) async fn until(&self, holds: impl Fn(&PageState) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let state = lock(&self.state);
                if holds(&state) || state.is_closed || state.is_crashed {
                    return;
                }
            }
            changed.await;
        }
    }

    fn update(&self, change: impl FnOnce(&mut PageState)) {
        change(&mut lock(&self.state));
        self.changed.notify_waiters();
    }

    fn is_main(&self, params: &Value) -> bool {
        params.get("frameId").and_then(Value::as_str) == Some(self.target.as_str())
    }

    /// A document is shown. One whose request was not seen, because Chromium had fetched it ahead, is left at once.
    fn on_navigated(&self, devtools: &DevTools, url: String) {
        *lock(&self.context.dialog) = None;
        let is_stopped = !url.starts_with("chrome-error:") && !self.context.admits(&url);
        if is_stopped {
            self.stop_at(&url);
            devtools.post(Some(&self.session), "Page.navigate", &json!({ "url": "about:blank" }));
        }
        self.update(|state| {
            state.url = if is_stopped { String::new() } else { url };
            (state.is_fetching, state.is_leaving) = (false, false);
            state.is_loading |= is_stopped;
            state.refs.clear();
        });
    }

    /// Tells that another host was not opened.
    fn stop_at(&self, url: &str) {
        let url = visible(&clip(url, NOTE_BYTES_MAX));
        self.context.note(format!(
            "the page leads to another host: `{url}`. Call `browser` with `action: open` and that address if you want it"
        ));
        self.update(|state| (state.stopped_at, state.is_leaving, state.is_fetching) = (Some(url), false, false));
    }

    fn on_event(&self, devtools: &DevTools, method: &str, params: &Value) {
        let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
        match method {
            "Fetch.requestPaused" => self.on_request(devtools, params),
            "Page.javascriptDialogOpening" => self.on_dialog(devtools, params),
            "Page.frameRequestedNavigation" if self.is_main(params) && text("disposition") == "currentTab" => {
                self.update(|state| state.is_leaving = true);
            }
            "Page.frameStartedLoading" if self.is_main(params) => {
                self.update(|state| (state.is_loading, state.is_leaving) = (true, false));
            }
            "Page.frameStoppedLoading" if self.is_main(params) => {
                self.update(|state| (state.is_loading, state.is_leaving) = (false, false));
            }
            "Page.navigatedWithinDocument" if self.is_main(params) => {
                self.update(|state| {
                    state.url = text("url").to_owned();
                    state.is_leaving = false;
                });
            }
            "Page.lifecycleEvent" if self.is_main(params) => match text("name") {
                "init" => self.update(|state| state.is_quiet = false),
                "networkIdle" => self.update(|state| state.is_quiet = true),
                _ => {}
            },
            "Page.frameNavigated" => {
                let Some(frame) = params.get("frame") else { return };
                let field = |name: &str| frame.get(name).and_then(Value::as_str).unwrap_or_default();
                if field("id") == self.target {
                    self.on_navigated(devtools, format!("{}{}", field("url"), field("urlFragment")));
                }
            }
            "Inspector.targetCrashed" => self.update(|state| state.is_crashed = true),
            _ => {}
        }
    }

    /// A document is asked for. That of a frame is judged by the proxy; the page itself stays on hosts that were judged.
    fn on_request(&self, devtools: &DevTools, params: &Value) {
        let Some(request) = params.get("requestId").and_then(Value::as_str) else { return };
        let url = params.pointer("/request/url").and_then(Value::as_str).unwrap_or_default();
        if let Some(status) = response_status(params) {
            devtools.post(Some(&self.session), "Fetch.continueRequest", &json!({ "requestId": request }));
            // Such a response shows no document.
            if self.is_main(params) {
                self.update(|state| {
                    state.status = u16::try_from(status).unwrap_or_default();
                    state.is_fetching &= !matches!(status, 0 | 204 | 205);
                });
            }
            return;
        }
        if !self.is_main(params) || self.context.admits(url) {
            if self.is_main(params) {
                self.update(|state| (state.is_fetching, state.is_leaving) = (true, false));
            }
            devtools.post(Some(&self.session), "Fetch.continueRequest", &json!({ "requestId": request }));
            return;
        }
        // An answer without a document leaves the page as it is; after an error it would show that, or take no more clicks.
        let nothing = json!({ "requestId": request, "responseCode": 204 });
        devtools.post(Some(&self.session), "Fetch.fulfillRequest", &nothing);
        self.stop_at(url);
    }

    /// A dialog holds the page up, so it is answered at once.
    fn on_dialog(&self, devtools: &DevTools, params: &Value) {
        let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_leaving = text("type") == "beforeunload";
        let answer = if is_leaving { Some(String::new()) } else { lock(&self.context.dialog).take() };
        let mut reply = json!({ "accept": answer.is_some() });
        if let (Some(words), "prompt", Some(members)) = (&answer, text("type"), reply.as_object_mut()) {
            members.insert("promptText".to_owned(), words.as_str().into());
        }
        devtools.post(Some(&self.session), "Page.handleJavaScriptDialog", &reply);
        let done = if answer.is_some() { "accepted" } else { "dismissed" };
        let message = visible(&clip(text("message"), NOTE_BYTES_MAX));
        self.context.note(format!("the page showed a dialog ({}): \"{message}\"; it was {done}", text("type")));
    }
}

/// The status of a response that is paused; 0 for an error, `None` for a request.
fn response_status(params: &Value) -> Option<u64> {
    let is_failed = params.get("responseErrorReason").is_some();
    params.get("responseStatusCode").and_then(Value::as_u64).or(is_failed.then_some(0))
}

impl Pages {
    pub(super) fn new(devtools: DevTools) -> Self {
        Self { devtools, contexts: Mutex::default(), pages: Mutex::default(), changed: Notify::new() }
    }

    /// Adds a context; `false` if there is one of its name.
    pub(super) fn add_context(&self, context: &Arc<Context>) -> bool {
        let mut contexts = lock(&self.contexts);
        let is_free = !contexts.contains_key(&context.id);
        if is_free {
            contexts.insert(context.id.clone(), Arc::clone(context));
        }
        is_free
    }

    pub(super) fn remove_context(&self, id: &str) {
        lock(&self.contexts).remove(id);
        lock(&self.pages).retain(|page| page.context.id != id);
    }

    /// The pages of a context, oldest first.
    pub(super) fn of(&self, context: &str) -> Vec<Arc<Page>> {
        lock(&self.pages).iter().filter(|page| page.context.id == context).cloned().collect()
    }

    /// Waits for a page by its target.
    pub(super) async fn page(&self, target: &str) -> Arc<Page> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let found = lock(&self.pages).iter().find(|page| page.target == target).cloned();
            match found {
                Some(page) => return page,
                None => changed.await,
            }
        }
    }

    pub(super) fn on_event(&self, event: &Event) {
        let Event { session, method, params } = event;
        match (method.as_str(), session) {
            ("Target.attachedToTarget", None) => self.on_attached(params),
            ("Target.detachedFromTarget", None) => {
                let session = params.get("sessionId").and_then(Value::as_str).unwrap_or_default();
                let mut pages = lock(&self.pages);
                if let Some(at) = pages.iter().position(|page| page.session == session) {
                    pages.remove(at).update(|state| state.is_closed = true);
                }
                self.changed.notify_waiters();
            }
            ("Browser.downloadWillBegin", None) => self.on_download(params),
            ("Browser.downloadProgress", None) => {
                for context in lock(&self.contexts).values() {
                    context.downloads.progressed(&self.devtools, context, params);
                }
            }
            (_, Some(session)) => {
                let page = lock(&self.pages).iter().find(|page| page.session == *session).cloned();
                if let Some(page) = page {
                    page.on_event(&self.devtools, method, params);
                }
            }
            _ => {}
        }
    }

    /// A download of a page, or of a frame in one: then it belongs to the only agent, or to none.
    fn on_download(&self, params: &Value) {
        let frame = params.get("frameId").and_then(Value::as_str).unwrap_or_default();
        let page = lock(&self.pages).iter().find(|page| page.target == frame).cloned();
        let only = || match lock(&self.contexts).values().collect::<Vec<_>>().as_slice() {
            [only] => Some(Arc::clone(only)),
            _ => None,
        };
        let context = page.as_ref().map(|page| Arc::clone(&page.context)).or_else(only);
        if !context.is_some_and(|context| context.downloads.began(params)) {
            // Nothing would bound or tell it.
            let guid = params.get("guid").cloned().unwrap_or_default();
            self.devtools.post(None, "Browser.cancelDownload", &json!({ "guid": guid }));
        }
        if let Some(page) = page {
            page.update(|state| state.is_fetching = false);
        }
    }

    /// A new page waits until it is set up, so that nothing of it escapes the checks.
    fn on_attached(&self, params: &Value) {
        let text = |path: &str| params.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (session, target) = (text("/sessionId"), text("/targetInfo/targetId"));
        let context = {
            let contexts = lock(&self.contexts);
            contexts.get(text("/targetInfo/browserContextId")).or_else(|| contexts.get(Context::OWN)).cloned()
        };
        let Some(context) = context.filter(|_| text("/targetInfo/type") == "page") else {
            self.devtools.post(Some(session), "Runtime.runIfWaitingForDebugger", &json!({}));
            return;
        };
        let page = Arc::new(Page {
            session: session.to_owned(),
            target: target.to_owned(),
            context,
            state: Mutex::default(),
            changed: Notify::new(),
        });
        lock(&self.pages).push(page);
        let documents = json!({ "patterns": [
            { "urlPattern": "*", "resourceType": "Document", "requestStage": "Request" },
            { "urlPattern": "*", "resourceType": "Document", "requestStage": "Response" },
        ] });
        for (method, params) in [
            ("Page.enable", json!({})),
            ("Inspector.enable", json!({})),
            ("Page.setLifecycleEventsEnabled", json!({ "enabled": true })),
            ("Fetch.enable", documents),
            ("Runtime.runIfWaitingForDebugger", json!({})),
        ] {
            self.devtools.post(Some(session), method, &params);
        }
        self.changed.notify_waiters();
    }

    /// Marks every page as closed: Chromium is gone.
    pub(super) fn close_all(&self) {
        for page in lock(&self.pages).drain(..) {
            page.update(|state| state.is_closed = true);
        }
    }
}
