//! The browsers of a process: one for each profile, started when an agent first needs it, and once more if it is lost.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use max_team_core::limits::BROWSER_RESTART_MS;

use super::devtools::lock;
use super::guard::Guard;
use super::process::{Chromium, Launch, can_be_kept_in, find_chromium};
use crate::network::Lookup;
use crate::services::Services;
use crate::tool::ToolContext;
use crate::web::WebFault;

/// Times that a browser is started again within [`BROWSER_RESTART_MS`].
const RESTARTS_MAX: usize = 1;

/// The place of one browser, locked while it starts.
type BrowserSlot = Arc<tokio::sync::Mutex<Weak<Chromium>>>;

/// The browsers of one process: one for each profile.
#[derive(Debug, Default)]
pub struct Browsers {
    lookup: Lookup,
    /// By profile, and by whether they run in the sandbox: an agent never shares one that is less contained than the agent itself. Each
    /// has a lock of its own, so that a slow start holds up only agents that wait for the same browser.
    running: Mutex<HashMap<(String, bool), BrowserSlot>>,
    /// When browsers were lost, by profile.
    lost: Arc<Mutex<HashMap<String, Vec<Instant>>>>,
}

impl Browsers {
    /// Browsers that find hosts in another way than the system's: for tests.
    #[doc(hidden)]
    pub fn with_lookup(
        lookup: impl Fn(&str) -> std::io::Result<Vec<std::net::IpAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self { lookup: Lookup::by(Arc::new(lookup)), ..Self::default() }
    }

    /// The same, with the address that is connected to in the place of a host's: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn reaching(mut self, reach: fn(SocketAddr) -> SocketAddr) -> Self {
        self.lookup.reach = reach;
        self
    }

    /// The Chromium of a profile, started if there is none.
    pub(super) async fn chromium(&self, cx: &ToolContext, profile: &str) -> Result<Arc<Chromium>, WebFault> {
        let key = (profile.to_owned(), cx.sandbox.on);
        let slot = Arc::clone(lock(&self.running).entry(key).or_default());
        let mut running = slot.lock().await;
        if let Some(chromium) = running.upgrade() {
            if chromium.ended().is_none() {
                return Ok(chromium);
            }
            // A crash is counted only once the process has ended.
            chromium.until_gone().await;
        }
        let now = Instant::now();
        let recent = lock(&self.lost).get_mut(profile).map_or(0, |lost| {
            lost.retain(|at| now.duration_since(*at) < Duration::from_millis(BROWSER_RESTART_MS));
            lost.len()
        });
        if recent > RESTARTS_MAX {
            return Err(WebFault::BrowserEnds { times: recent, minutes: BROWSER_RESTART_MS / 60_000 });
        }
        let chromium = self.start(cx, profile, false).await?;
        *running = Arc::downgrade(&chromium);
        Ok(chromium)
    }

    /// Starts the Chromium of a profile; a visible one is the user's to drive, and is kept in by its own sandbox alone.
    pub(super) async fn start(
        &self,
        cx: &ToolContext,
        profile: &str,
        is_visible: bool,
    ) -> Result<Arc<Chromium>, WebFault> {
        let services = &cx.services;
        if services.recorded_pages.is_some() {
            return Err(WebFault::Other("this run answers from recorded pages, so there is no `browser`".to_owned()));
        }
        let program = find_chromium(services.browser_path.as_deref()).ok_or_else(|| missing(services))?;
        if cx.sandbox.on && !can_be_kept_in() {
            return Err(WebFault::NoNamespaces);
        }
        let folder = if profile.is_empty() { None } else { Some(services.profile_folder(profile)?) };
        let launch = Launch { program, profile: folder, is_sandboxed: cx.sandbox.on && !is_visible, is_visible };
        cx.progress.say(|| "starting Chromium".to_owned());
        let (lost, name) = (Arc::clone(&self.lost), profile.to_owned());
        let on_lost = move || {
            if !is_visible {
                lock(&lost).entry(name).or_default().push(Instant::now());
            }
        };
        let guard = Guard::new(self.lookup.clone(), &services.private_hosts);
        Chromium::start(launch, guard, on_lost).await.map_err(WebFault::BrowserStart)
    }
}

fn missing(services: &Services) -> WebFault {
    let named = services.browser_path.as_ref();
    named.map_or(WebFault::NoBrowser, |named| WebFault::BrowserPath(named.display().to_string()))
}
