//! One tab: what is done in it, and what it shows.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::future::join_all;
use max_team_core::limits::{
    BROWSER_CHARS_MAX, BROWSER_ELEMENTS_MAX, BROWSER_FIELDS_MAX, BROWSER_FRAMES_MAX, BROWSER_LOAD_MS,
    BROWSER_SETTLE_MS, BROWSER_WAIT_MS_MAX, IMAGE_BYTES_MAX,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::devtools::{DevTools, DevToolsError, lock};
use super::pages::Page;
use super::snapshot::{self, FrameTree};
use super::{BrowserAction, BrowserInput};
use crate::text::clip;

/// How often `wait` looks for its text.
const WAIT_LOOK: Duration = Duration::from_millis(100);
/// Bytes of text of a page that is too large for its tree.
const LARGE_BYTES_MAX: usize = 16 << 10;

/// Waits until the page has worked off what an event began, and has drawn once if it is visible.
const SETTLE: &str = "new Promise(done => { setTimeout(() => requestAnimationFrame(() => setTimeout(done)), 0); setTimeout(done, 100) })";
/// What is needed to know before the tree is read.
const MEASURE: &str = "({ title: document.title, elements: document.getElementsByTagName('*').length, \
                       chars: document.documentElement ? document.documentElement.textContent.length : 0 })";
/// Selects what a field holds, so that typing replaces it. The text of a label stands for the label's field.
const SELECT_ALL: &str = "function() { const box = this.nodeType === 1 ? this : this.parentElement; const label = box.closest('label'); \
                          const field = 'value' in box || box.isContentEditable ? box : box.control || label && label.control || box; \
                          field.focus(); if (field.select) { field.select(); } else { \
                          const range = document.createRange(); range.selectNodeContents(field); \
                          const selection = getSelection(); selection.removeAllRanges(); selection.addRange(range); } \
                          return field.isContentEditable || 'value' in field; }";
/// Chooses an option by its value or its text.
const CHOOSE: &str = "function(wanted) { const part = this.nodeType === 1 ? this : this.parentElement; const label = part.closest('label'); \
                      const box = part.closest('select') || label && label.querySelector('select'); if (!box) return 'no list'; \
                      const fits = option => option.value === wanted || option.label.trim() === wanted.trim(); \
                      const option = [...box.options].find(fits); \
                      if (!option) return 'options: ' + [...box.options].slice(0, 50).map(option => option.label.trim()).join(', '); \
                      if (box.multiple) option.selected = !option.selected; else box.value = option.value; \
                      box.dispatchEvent(new Event('input', { bubbles: true })); \
                      box.dispatchEvent(new Event('change', { bubbles: true })); return ''; }";
/// Scrolls the nearest part that can be scrolled.
const SCROLL: &str = "(way => { const all = [document.scrollingElement, ...document.querySelectorAll('*')]; \
                      const can = part => part && part.scrollHeight > part.clientHeight + 4 && \
                      (part === document.scrollingElement || /auto|scroll/.test(getComputedStyle(part).overflowY)); \
                      const part = all.slice(0, 5000).find(can) || document.scrollingElement; const page = part.clientHeight * 0.85; \
                      const top = { down: part.scrollTop + page, up: part.scrollTop - page, top: 0, bottom: part.scrollHeight }[way]; \
                      part.scrollTo({ top, behavior: 'instant' }); \
                      return `${Math.round(part.scrollTop)} of ${part.scrollHeight - part.clientHeight}`; })";

/// Keys by the names that models write: code, Windows number and text.
const KEYS: [(&str, &str, u32, &str); 15] = [
    ("Enter", "Enter", 13, "\r"),
    ("Tab", "Tab", 9, ""),
    ("Escape", "Escape", 27, ""),
    ("Backspace", "Backspace", 8, ""),
    ("Delete", "Delete", 46, ""),
    ("ArrowUp", "ArrowUp", 38, ""),
    ("ArrowDown", "ArrowDown", 40, ""),
    ("ArrowLeft", "ArrowLeft", 37, ""),
    ("ArrowRight", "ArrowRight", 39, ""),
    ("PageUp", "PageUp", 33, ""),
    ("PageDown", "PageDown", 34, ""),
    ("Home", "Home", 36, ""),
    ("End", "End", 35, ""),
    ("Space", "Space", 32, " "),
    ("F5", "F5", 116, ""),
];

pub(super) type Done<T> = Result<T, DevToolsError>;

/// A tab at work.
#[derive(Debug, Clone)]
pub(super) struct Tab {
    pub(super) devtools: DevTools,
    pub(super) page: Arc<Page>,
}

/// What a page shows.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) title: String,
    pub(super) lines: Vec<String>,
    /// References of fields for passwords.
    pub(super) passwords: HashSet<u64>,
}

pub(super) fn refused<T>(words: impl Into<String>) -> Done<T> {
    Err(DevToolsError::Refused(words.into()))
}

fn wanted<'a>(field: Option<&'a str>, name: &str, action: &str) -> Done<&'a str> {
    field.map_or_else(|| refused(format!("`{action}` needs `{name}`")), Ok)
}

impl Tab {
    pub(super) async fn call(&self, method: &str, params: Value) -> Done<Value> {
        let call = self.devtools.call(Some(&self.page.session), method, params);
        tokio::select! {
            biased;
            answer = call => answer,
            () = self.page.until(|_| false) => Err(self.gone()),
        }
    }

    /// Why a tab that is gone is gone.
    fn gone(&self) -> DevToolsError {
        let is_crashed = lock(&self.page.state).is_crashed;
        let words = if is_crashed { "the page crashed; open it again" } else { "the tab was closed" };
        if self.devtools.is_over() { DevToolsError::Ended } else { DevToolsError::Refused(words.to_owned()) }
    }

    async fn evaluate(&self, expression: &str) -> Done<Value> {
        let answer = self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true })).await?;
        value(&answer)
    }

    /// Goes to an address, and waits until the page is loaded or its time is over.
    pub(super) async fn navigate(&self, url: &str, notes: &mut Vec<String>) -> Done<()> {
        {
            let mut state = lock(&self.page.state);
            (state.is_loading, state.is_quiet, state.stopped_at) = (true, false, None);
        }
        let limit = Duration::from_millis(BROWSER_LOAD_MS);
        let downloads = self.page.context.downloads.count();
        let session = Some(self.page.session.as_str());
        let call = self.devtools.call_within(limit, session, "Page.navigate", json!({ "url": url }));
        let answer = tokio::select! {
            biased;
            answer = call => answer,
            () = self.page.until(|_| false) => return Err(self.gone()),
        };
        let answer = match answer {
            Err(DevToolsError::Late(_)) => {
                self.devtools.post(session, "Page.stopLoading", &json!({}));
                self.stop_waiting();
                return refused(format!("no answer within {} s", limit.as_secs()));
            }
            answer => answer?,
        };
        let error = answer.get("errorText").and_then(Value::as_str).filter(|text| !text.is_empty());
        let is_download =
            self.page.context.downloads.count() > downloads || answer.get("isDownload") == Some(&Value::Bool(true));
        match error {
            Some(_) if is_download => {
                // The answer may come before the event which says that the download began.
                let _ = timeout(limit, self.page.until(|state| !state.is_fetching)).await;
                self.stop_waiting();
                self.until_downloaded().await;
                return Ok(());
            }
            Some(_) if lock(&self.page.state).stopped_at.is_some() => {
                self.stop_waiting();
                return Ok(());
            }
            Some(error) => {
                self.stop_waiting();
                return refused(error);
            }
            // The same document, at another place.
            None if answer.get("loaderId").is_none() => self.stop_waiting(),
            None => {}
        }
        self.until_loaded(notes).await;
        Ok(())
    }

    /// Nothing more comes of what was asked for.
    fn stop_waiting(&self) {
        let mut state = lock(&self.page.state);
        (state.is_loading, state.is_fetching, state.is_leaving) = (false, false, false);
    }

    async fn until_loaded(&self, notes: &mut Vec<String>) {
        let limit = Duration::from_millis(BROWSER_LOAD_MS);
        if timeout(limit, self.page.until(|state| !state.is_loading && !state.is_fetching)).await.is_err() {
            notes.push(format!(
                "the page was still loading after {} s; this is what it showed by then",
                limit.as_secs()
            ));
        }
    }

    async fn until_downloaded(&self) {
        let downloads = &self.page.context.downloads;
        let over = async {
            loop {
                let changed = downloads.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if !downloads.are_running() {
                    return;
                }
                changed.await;
            }
        };
        // One that takes longer is told with a later action.
        let _ = timeout(Duration::from_millis(BROWSER_LOAD_MS), over).await;
    }

    /// Waits until no request has been under way for half a second, or the page's time is over.
    pub(super) async fn until_quiet(&self) {
        let _ = timeout(Duration::from_millis(BROWSER_LOAD_MS), self.page.until(|state| state.is_quiet)).await;
    }

    /// Waits until an action has had its effect: the page has worked it off, and has loaded what it led to.
    pub(super) async fn settle(&self) {
        let params = json!({ "expression": SETTLE, "awaitPromise": true });
        let limit = Duration::from_millis(BROWSER_SETTLE_MS);
        // A page that goes elsewhere meanwhile gives no answer.
        let _ = timeout(limit, self.call("Runtime.evaluate", params)).await;
        let _ = timeout(limit, self.page.until(|state| !state.is_leaving)).await;
        self.until_loaded(&mut Vec::new()).await;
        if !self.page.context.downloads.is_empty() {
            self.until_downloaded().await;
        }
    }

    pub(super) async fn close(&self) {
        let _ = self.devtools.call(None, "Target.closeTarget", json!({ "targetId": self.page.target })).await;
        let _ = timeout(Duration::from_millis(BROWSER_SETTLE_MS), self.page.until(|state| state.is_closed)).await;
    }

    /// Does what is asked. The result is a picture, if one is asked for.
    pub(super) async fn act(&self, input: &BrowserInput, notes: &mut Vec<String>) -> Done<Option<String>> {
        let name = input.action.name();
        let text = input.text.as_deref();
        match input.action {
            BrowserAction::Click => self.click(self.node(input)?).await?,
            BrowserAction::Type => self.type_text(self.node(input)?, wanted(text, "text", name)?).await?,
            BrowserAction::Press => self.press(wanted(text, "text", name)?).await?,
            BrowserAction::Select => {
                self.choose(self.node(input)?, wanted(input.value.as_deref(), "value", name)?).await?;
            }
            BrowserAction::Scroll => self.scroll(input, notes).await?,
            BrowserAction::Wait => self.wait(input, notes).await?,
            BrowserAction::Back => self.back().await?,
            BrowserAction::Screenshot => return self.screenshot(input).await.map(Some),
            BrowserAction::Dialog => {
                *lock(&self.page.context.dialog) = Some(text.unwrap_or_default().to_owned());
                notes.push("the next dialog will be accepted".to_owned());
                return Ok(None);
            }
            BrowserAction::Open
            | BrowserAction::SignIn
            | BrowserAction::Snapshot
            | BrowserAction::Tabs
            | BrowserAction::Close => return Ok(None),
        }
        if input.submit == Some(true) && input.action == BrowserAction::Type {
            self.press("Enter").await?;
        }
        if input.action != BrowserAction::Wait {
            self.settle().await;
        }
        Ok(None)
    }

    fn node(&self, input: &BrowserInput) -> Done<i64> {
        let reference = wanted(input.reference.as_deref(), "ref", input.action.name())?;
        let node = lock(&self.page.state).refs.node(reference);
        node.map_or_else(
            || refused(format!("there is no `{}` on this page; take a new `snapshot`", clip(reference, 20))),
            Ok,
        )
    }

    /// The middle of an element, in the visible part of the page.
    pub(super) async fn middle(&self, node: i64) -> Done<(f64, f64)> {
        // Chromium works them off in their order.
        let (scrolled, quads) = tokio::join!(
            self.call("DOM.scrollIntoViewIfNeeded", json!({ "backendNodeId": node })),
            self.call("DOM.getContentQuads", json!({ "backendNodeId": node })),
        );
        scrolled?;
        let quads = quads?;
        let corners: Vec<f64> = quads
            .pointer("/quads/0")
            .and_then(Value::as_array)
            .map(|corners| corners.iter().filter_map(Value::as_f64).collect())
            .unwrap_or_default();
        let [x1, y1, x2, y2, x3, y3, x4, y4] = corners.as_slice() else { return refused("the element is not visible") };
        Ok(((x1 + x2 + x3 + x4) / 4.0, (y1 + y2 + y3 + y4) / 4.0))
    }

    async fn click(&self, node: i64) -> Done<()> {
        let Ok(place) = self.middle(node).await else {
            // Without a place on the page it can still be chosen by a script.
            return self
                .function(node, "function() { (this.click ? this : this.parentElement).click(); }", &[])
                .await
                .map(drop);
        };
        let (x, y) = self.uncovered(node, place).await?;
        let mouse = |kind: &str, button: &str, buttons: u8| {
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event)
        };
        // Each waits for a frame of the page, so they are sent together; Chromium keeps their order.
        let (moved, pressed, released) = tokio::join!(
            mouse("mouseMoved", "none", 0),
            mouse("mousePressed", "left", 1),
            mouse("mouseReleased", "left", 0)
        );
        moved.and(pressed).and(released).map(drop)
    }

    /// Calls a function with the element as `this`.
    pub(super) async fn function(&self, node: i64, function: &str, arguments: &[&str]) -> Done<Value> {
        let found = self.call("DOM.resolveNode", json!({ "backendNodeId": node })).await?;
        let arguments: Vec<Value> = arguments.iter().map(|argument| json!({ "value": argument })).collect();
        let call = json!({
            "objectId": found.pointer("/object/objectId"), "functionDeclaration": function, "arguments": arguments,
            "returnByValue": true, "userGesture": true,
        });
        value(&self.call("Runtime.callFunctionOn", call).await?)
    }

    async fn type_text(&self, node: i64, text: &str) -> Done<()> {
        self.click(node).await?;
        if self.function(node, SELECT_ALL, &[]).await? != Value::Bool(true) {
            return refused("the element takes no text; name a text field");
        }
        if text.is_empty() {
            return self.press("Delete").await;
        }
        self.call("Input.insertText", json!({ "text": text })).await.map(drop)
    }

    async fn press(&self, key: &str) -> Done<()> {
        let known = KEYS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(key.trim()));
        let Some((name, code, number, text)) = known else {
            let names: Vec<&str> = KEYS.iter().map(|(name, ..)| *name).collect();
            return refused(format!("there is no key `{}`; the keys are {}", clip(key, 20), names.join(", ")));
        };
        let name = if *name == "Space" { " " } else { name };
        for kind in [if text.is_empty() { "rawKeyDown" } else { "keyDown" }, "keyUp"] {
            let mut event = json!({ "type": kind, "key": name, "code": code, "windowsVirtualKeyCode": number });
            if let (Some(members), false, true) = (event.as_object_mut(), text.is_empty(), kind == "keyDown") {
                members.insert("text".to_owned(), (*text).into());
            }
            self.call("Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }

    async fn choose(&self, node: i64, option: &str) -> Done<()> {
        match self.function(node, CHOOSE, &[option]).await?.as_str() {
            Some("") => Ok(()),
            Some("no list") => refused("the element is no list of options; open it with `click` and click an option"),
            Some(options) => refused(format!("there is no option `{}`; {}", clip(option, 80), clip(options, 2_000))),
            None => refused("the option could not be chosen"),
        }
    }

    async fn scroll(&self, input: &BrowserInput, notes: &mut Vec<String>) -> Done<()> {
        if input.reference.is_some() {
            let node = self.node(input)?;
            return self.call("DOM.scrollIntoViewIfNeeded", json!({ "backendNodeId": node })).await.map(drop);
        }
        let way = input.value.as_deref().unwrap_or("down");
        if !["down", "up", "top", "bottom"].contains(&way) {
            return refused(format!("`scroll` takes down, up, top or bottom, not `{}`", clip(way, 20)));
        }
        let place = self.evaluate(&format!("{SCROLL}('{way}')")).await?;
        notes.push(format!("scrolled to {}", place.as_str().unwrap_or_default()));
        // Pages that go on without an end load more now.
        lock(&self.page.state).is_quiet = false;
        Ok(())
    }

    async fn wait(&self, input: &BrowserInput, notes: &mut Vec<String>) -> Done<()> {
        let limit = Duration::from_millis(input.ms.unwrap_or(10_000).min(BROWSER_WAIT_MS_MAX));
        let Some(text) = &input.text else {
            sleep(limit).await;
            return Ok(());
        };
        let until = Instant::now() + limit;
        let shows = format!("document.body && document.body.innerText.includes({})", Value::from(text.as_str()));
        // A page that is being replaced gives no answer; the next one is asked.
        while self.evaluate(&shows).await.unwrap_or_default() != Value::Bool(true) {
            if Instant::now() >= until {
                notes.push(format!("\"{}\" did not appear within {} s", clip(text, 80), limit.as_secs_f32()));
                return Ok(());
            }
            sleep(WAIT_LOOK).await;
        }
        Ok(())
    }

    async fn back(&self) -> Done<()> {
        let history = self.call("Page.getNavigationHistory", json!({})).await?;
        let at = history.get("currentIndex").and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
        let before = at.and_then(|at| history.get("entries")?.get(at.checked_sub(1)?)?.get("id").cloned());
        let Some(entry) = before else { return refused("there is no page before this one") };
        lock(&self.page.state).is_loading = true;
        self.call("Page.navigateToHistoryEntry", json!({ "entryId": entry })).await.map(drop)
    }

    /// A picture as Base64: of what is visible, or of one element.
    async fn screenshot(&self, input: &BrowserInput) -> Done<String> {
        let mut clip = Value::Null;
        if input.reference.is_some() {
            let node = self.node(input)?;
            self.call("DOM.scrollIntoViewIfNeeded", json!({ "backendNodeId": node })).await?;
            let rect = self
                .function(
                    node,
                    "function() { const box = (this.getBoundingClientRect ? this : this.parentElement).getBoundingClientRect(); \
                     return { x: box.x + scrollX, y: box.y + scrollY, width: Math.max(1, Math.min(box.width, 2000)), \
                     height: Math.max(1, Math.min(box.height, 4000)), scale: 1 }; }",
                    &[],
                )
                .await?;
            clip = rect;
        }
        for quality in [80, 40, 10] {
            let mut params = json!({ "format": "jpeg", "quality": quality, "optimizeForSpeed": true });
            if let (Some(members), false) = (params.as_object_mut(), clip.is_null()) {
                members.insert("clip".to_owned(), clip.clone());
                members.insert("captureBeyondViewport".to_owned(), true.into());
            }
            let taken = self.call("Page.captureScreenshot", params).await?;
            let data = taken.get("data").and_then(Value::as_str).unwrap_or_default();
            let bytes = BASE64_STANDARD.decode(data).map_err(|error| DevToolsError::Refused(error.to_string()))?;
            if !bytes.is_empty() && bytes.len() as u64 <= IMAGE_BYTES_MAX {
                return Ok(data.to_owned());
            }
        }
        refused("the picture is too large")
    }

    /// The page's HTML as it is now, up to `max` characters.
    pub(super) async fn html(&self, max: usize) -> Done<String> {
        let html = self.evaluate(&format!("document.documentElement.outerHTML.slice(0, {max})")).await?;
        Ok(html.as_str().unwrap_or_default().to_owned())
    }

    /// The page's title and its tree with all frames.
    pub(super) async fn content(&self) -> Done<Content> {
        let (measured, tree) = tokio::join!(self.evaluate(MEASURE), self.call("Page.getFrameTree", json!({})));
        let (measured, tree) = (measured?, tree?);
        let title = measured.get("title").and_then(Value::as_str).unwrap_or_default().to_owned();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a script's number may be anything; any will do"
        )]
        let count = |name: &str| measured.get(name).and_then(Value::as_f64).unwrap_or_default() as u64;
        if count("elements") > BROWSER_ELEMENTS_MAX || count("chars") > BROWSER_CHARS_MAX {
            return self.large(title, count("elements"), count("chars")).await;
        }
        let frames = self.frames(&tree).await?;
        let passwords = self.passwords(snapshot::fields(&frames)).await;
        let mut state = lock(&self.page.state);
        let base = reqwest::Url::parse(&state.url).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        let lines = snapshot::read(&frames, &base, &mut state.refs, &passwords);
        let passwords = passwords.into_iter().filter_map(|node| state.refs.known(node)).collect();
        Ok(Content { title, lines, passwords })
    }

    /// A page that is too large for its tree: the beginning of its text.
    async fn large(&self, title: String, elements: u64, chars: u64) -> Done<Content> {
        let text = self.evaluate(&format!("document.documentElement.textContent.slice(0, {LARGE_BYTES_MAX})")).await?;
        let note = format!(
            "[the page is too large for its tree ({elements} elements, {chars} characters); this is the beginning of its text. Fetch it \
             in parts instead]"
        );
        let text = text.as_str().unwrap_or_default().lines().map(str::trim).filter(|line| !line.is_empty());
        // No line of the page's own words may look like an element with a reference.
        let text = text.map(|line| format!("| {line}"));
        Ok(Content { title, lines: std::iter::once(note).chain(text).collect(), ..Content::default() })
    }

    /// Those of some fields that are for passwords.
    async fn passwords(&self, fields: Vec<i64>) -> HashSet<i64> {
        let ask = |node: &i64| self.call("DOM.describeNode", json!({ "backendNodeId": node }));
        let mut told = join_all(fields.iter().take(BROWSER_FIELDS_MAX).map(ask)).await.into_iter();
        // A field that cannot be asked counts as one for a password: then dots are shown.
        let is_asked = |_: &i64| told.next().and_then(Result::ok).is_none_or(|told| is_password(&told));
        fields.into_iter().filter(is_asked).collect()
    }

    async fn frames(&self, tree: &Value) -> Done<Vec<FrameTree>> {
        let mut names = Vec::new();
        collect_frames(tree.get("frameTree").unwrap_or(&Value::Null), &mut names);
        let ask = async |(at, name): (usize, &String)| {
            let owner = async {
                match at {
                    0 => Ok(None),
                    _ => self.call("DOM.getFrameOwner", json!({ "frameId": name })).await.map(Some),
                }
            };
            tokio::try_join!(owner, self.call("Accessibility.getFullAXTree", json!({ "frameId": name })))
        };
        let mut frames = Vec::new();
        for (at, answer) in join_all(names.iter().enumerate().map(ask)).await.into_iter().enumerate() {
            match answer {
                Ok((owner, mut tree)) => {
                    let owner = owner.and_then(|owner| owner.get("backendNodeId").and_then(Value::as_i64));
                    let nodes = tree.get_mut("nodes").map(Value::take).unwrap_or_default();
                    let nodes =
                        serde_json::from_value(nodes).map_err(|error| DevToolsError::Refused(error.to_string()))?;
                    frames.push(FrameTree { owner, nodes });
                }
                // A frame that has gone meanwhile, or that another process draws, is left out.
                Err(_) if at > 0 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(frames)
    }
}

/// Whether an element is a field for a password.
fn is_password(told: &Value) -> bool {
    let attributes = told.pointer("/node/attributes").and_then(Value::as_array);
    let words: Vec<&str> = attributes.into_iter().flatten().filter_map(Value::as_str).collect();
    words.chunks_exact(2).any(|pair| matches!(pair, ["type", kind] if kind.eq_ignore_ascii_case("password")))
}

/// The frames of a page, outermost first.
fn collect_frames(tree: &Value, names: &mut Vec<String>) {
    if let Some(name) = tree.pointer("/frame/id").and_then(Value::as_str) {
        names.push(name.to_owned());
    }
    for child in tree.get("childFrames").and_then(Value::as_array).into_iter().flatten() {
        if names.len() < BROWSER_FRAMES_MAX {
            collect_frames(child, names);
        }
    }
}

/// What a script gave back, or its error.
pub(super) fn value(answer: &Value) -> Done<Value> {
    if let Some(thrown) = answer.get("exceptionDetails") {
        let words = thrown.pointer("/exception/description").or_else(|| thrown.get("text")).and_then(Value::as_str);
        return refused(format!("the page's script failed: {}", clip(words.unwrap_or("unknown"), 200)));
    }
    Ok(answer.pointer("/result/value").cloned().unwrap_or_default())
}
