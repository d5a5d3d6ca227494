//! `browser` in the system's Chromium, against pages on this machine.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use max_team_core::agent::Constraints;
use max_team_core::chat::Part;
use max_team_core::policy::{Action, ActionKind, Mode, Rules, judge};
use max_team_tools::{Browsers, Handler, Output, PolicyCheck, Services, ToolError, find_chromium, run_remote};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::project::Project;
use crate::web::{Server, reply};

mod covered;
mod hosts;
mod pages;
mod safety;
mod sign_in;

/// Tests of one process run side by side; one that kills browsers takes this for itself.
static ALIVE: RwLock<()> = RwLock::new(());

/// A project with a browser, and the runtime that it lives in.
struct Browsing {
    project: Project,
    runtime: Runtime,
    base: String,
    _alive: Option<RwLockReadGuard<'static, ()>>,
}

impl Browsing {
    /// A browser that may reach this server, unless there is no Chromium.
    fn at(server: &Server) -> Option<Self> {
        Self::with(server, Browsers::default())
    }

    fn with(server: &Server, browsers: Browsers) -> Option<Self> {
        let alive = ALIVE.read().unwrap_or_else(PoisonError::into_inner);
        Some(Self { _alive: Some(alive), ..Self::alone(server, browsers)? })
    }

    /// The same, for a test that holds [`ALIVE`] for itself.
    fn alone(server: &Server, browsers: Browsers) -> Option<Self> {
        if find_chromium(None).is_none() {
            #[expect(clippy::print_stderr, reason = "the notice that this test did nothing")]
            {
                eprintln!(
                    "Chromium is not installed: this test does nothing; install it with `sudo apt install chromium`"
                );
            }
            return None;
        }
        let mut project = Project::new();
        let private_hosts = vec![format!("127.0.0.1:{}", server.port), format!("localhost:{}", server.port)];
        project.cx.services = Arc::new(Services { private_hosts, ..Services::default() });
        project.cx.browsers = Arc::new(browsers);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Some(Self { project, runtime, base: format!("http://127.0.0.1:{}", server.port), _alive: None })
    }

    fn output(&self, input: &Value) -> Result<Output, ToolError> {
        let intent = self.project.action("browser", input)?;
        self.answer(input, intent)
    }

    /// The call with what was judged, or with the answer to its question.
    fn answer(&self, input: &Value, intent: Action) -> Result<Output, ToolError> {
        let Some(Handler::Remote(tool)) = self.project.registry.get("browser") else { panic!() };
        let call = run_remote(Arc::clone(tool), self.project.cx.clone(), input.clone(), intent, false);
        self.runtime.block_on(call)
    }

    fn act(&self, input: Value) -> String {
        crate::project::text(self.output(&input).unwrap())
    }

    fn refused(&self, input: &Value) -> String {
        match self.output(input) {
            Err(ToolError::Correctable(words)) => words,
            other => panic!("{input}: {other:?}"),
        }
    }

    fn open(&self, path: &str) -> String {
        self.act(json!({ "action": "open", "url": format!("{}{path}", self.base) }))
    }

    fn click(&self, page: &str, words: &str) -> String {
        self.act(json!({ "action": "click", "ref": reference(page, words) }))
    }
}

/// The reference of the first line with these words.
fn reference(page: &str, words: &str) -> String {
    let line = page.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words} in {page}"));
    line.trim().strip_prefix('[').and_then(|line| line.split_once(']')).unwrap().0.to_owned()
}

/// A server of HTML pages by their paths.
fn html(pages: &[(&'static str, &'static str)]) -> Server {
    let pages: HashMap<&str, &str> = pages.iter().copied().collect();
    Server::new(move |path, stream| {
        let bare = path.split('?').next().unwrap();
        match pages.get(bare) {
            Some(body) => reply(stream, "200 OK", "Content-Type: text/html; charset=utf-8", body),
            None => reply(stream, "404 Not Found", "Content-Type: text/html", "nothing"),
        }
    })
}
