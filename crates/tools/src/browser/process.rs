//! One Chromium: found, started within our sandbox, closed when no agent uses it.
//!
//! Chromium's supervisor ends it with this process, also after a kill. Its network has nothing in it but our proxy (`guard`), where
//! the system lets us make namespaces; elsewhere it is only told to use that proxy.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use max_team_core::limits::{BROWSER_IDLE_MS, BROWSER_START_MS};
use max_team_sandbox::{
    CommandOutcome, EndReason, Engine, Network, OutputSource, ProxyServer, SandboxError, StdinPipe,
};
use serde_json::json;
use tokio::net::unix::pipe;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::devtools::{DevTools, MessageReader, lock};
use super::guard::{ContextProxy, Guard};
use super::pages::Pages;
use crate::command::CommandSandbox;
use crate::text::{clip, visible};

/// Names of the program, in the order in which they are looked for.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
/// Where it is on macOS.
const APPLICATION: &str = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome";
/// Makes the input and output of the process the pipes that Chromium takes orders from (descriptors 3 and 4).
///
/// A page that Chromium fetches ahead because another page asks for it would be shown without a request that can be stopped, so a new
/// profile forbids that.
const ENTER: &str = r#"exec 3<&0 4>&1 </dev/null >&2; program=$1; profile=$2; shift 2
mkdir -p "$profile/Default"; preferences="$profile/Default/Preferences"
[ -e "$preferences" ] || echo '{"net":{"network_prediction_options":2}}' >"$preferences"
exec "$program" --proxy-server="$HTTP_PROXY" --user-data-dir="$profile" "$@""#;
/// Bytes of Chromium's own messages that an error repeats.
const COMPLAINT_BYTES_MAX: usize = 600;
/// How often an idle browser is looked for.
const IDLE_LOOK: Duration = Duration::from_secs(20);

/// How often a profile that is in use is looked at.
const LOCK_LOOK: Duration = Duration::from_millis(50);
/// How long it may take to close.
const CLOSE: Duration = Duration::from_secs(5);
/// Variables that lead a program to the user's screen.
const SCREEN: [&str; 4] = ["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"];

/// What is always turned off: services of its vendor, the user's keys, crash reports, and every way around the proxy.
const ARGUMENTS: [&str; 32] = [
    "--remote-debugging-pipe",
    "--no-startup-window",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    "--no-pings",
    "--noerrdialogs",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    "--metrics-recording-only",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-search-engine-choice-screen",
    "--disable-sync",
    "--window-size=1280,900",
    "--proxy-bypass-list=<-loopback>",
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    // Its vendor's services for accounts and updates are asked in spite of the switches above; a port that Chromium never calls stops them.
    "--gaia-url=http://nowhere.invalid:9",
    "--component-updater=url-source=http://nowhere.invalid:9",
    // Frames of other sites stay in the page's process, so that one accessibility tree and one set of node numbers holds all. What
    // keeps a hostile page in is our sandbox, around all processes. An address is asked for as it was judged, and not with `https` first.
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,IsolateSandboxedIframes,OriginKeyedProcessesByDefault,\
     HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,NetworkTimeServiceQuerying,Translate,MediaRouter,OptimizationHints,\
     AutofillServerCommunication,DialMediaRouteProvider,PreconnectToSearch,PreconnectFromKeyedService",
];

/// What to start.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    /// The folder of a named profile; `None`: a profile that is gone with the browser.
    pub(super) profile: Option<PathBuf>,
    pub(super) is_sandboxed: bool,
    /// Whether the user sees it.
    pub(super) is_visible: bool,
}

/// A running Chromium. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Chromium {
    pub(super) devtools: DevTools,
    pub(super) pages: Arc<Pages>,
    pub(super) guard: Arc<Guard>,
    pub(super) folder: Arc<Folder>,
    used_at: Mutex<Instant>,
    end: CancellationToken,
    ended: Arc<Mutex<Option<Ended>>>,
    /// Fires when no process of it is left.
    gone: CancellationToken,
}

/// Why a Chromium is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// We closed it.
    Closed,
    /// It ended by itself, or was killed.
    Lost(String),
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.end.cancel();
        // The process may end before its thread does.
        self.folder.remove();
    }
}

impl Chromium {
    /// Starts it, and waits until it answers.
    pub(super) async fn start(
        launch: Launch,
        guard: Guard,
        on_lost: impl FnOnce() + Send + 'static,
    ) -> Result<Arc<Self>, String> {
        let lock_file = match &launch.profile {
            Some(profile) => Some(lock_profile(profile).await?),
            None => None,
        };
        let folder =
            Arc::new(Folder::make().map_err(|error| format!("no folder for the browser can be made: {error}"))?);
        let end = CancellationToken::new();
        let (input, writer) = io::pipe().map_err(|error| error.to_string())?;
        let writer = pipe::Sender::from_owned_fd(OwnedFd::from(writer)).map_err(|error| error.to_string())?;
        let devtools = DevTools::new(writer, end.clone());
        let pages = Arc::new(Pages::new(devtools.clone()));
        let guard = Arc::new(guard);
        let run = ChromiumRun {
            launch,
            folder: Arc::clone(&folder),
            input: StdinPipe(Arc::new(OwnedFd::from(input))),
            devtools: devtools.clone(),
            pages: Arc::clone(&pages),
            guard: Arc::clone(&guard),
            end: end.clone(),
            runtime: tokio::runtime::Handle::current(),
        };
        let ended = Arc::new(Mutex::new(None));
        let (told, client) = (Arc::clone(&ended), devtools.clone());
        let gone = CancellationToken::new();
        let left = gone.clone().drop_guard();
        let is_visible = run.launch.is_visible;
        let work = move || {
            let over = run.run();
            // Counted before a waiting call fails: the next `open` must see it.
            if matches!(over, Ended::Lost(_)) {
                on_lost();
            }
            lock(&told).get_or_insert(over);
            client.fail_all();
            run.pages.close_all();
            // Only now another browser may use the profile.
            drop((lock_file, left));
        };
        thread::Builder::new().name("browser".into()).spawn(work).map_err(|error| error.to_string())?;
        let used_at = Mutex::new(Instant::now());
        let chromium = Arc::new(Self { devtools, pages, guard, folder, used_at, end, ended, gone });
        chromium.set_up().await?;
        // A window is the user's for as long as its agent waits.
        if !is_visible {
            tokio::spawn(close_when_idle(Arc::downgrade(&chromium), chromium.end.clone()));
        }
        Ok(chromium)
    }

    async fn set_up(&self) -> Result<(), String> {
        // New pages are attached to and wait until they are set up; workers and frames only pass the proxy.
        let attach = json!({
            "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true,
            "filter": [{ "type": "page" }, { "exclude": true }],
        });
        let limit = Duration::from_millis(BROWSER_START_MS);
        match self.devtools.call_within(limit, None, "Target.setAutoAttach", attach).await {
            Ok(_) => Ok(()),
            Err(error) => {
                self.end.cancel();
                match lock(&self.ended).clone() {
                    Some(Ended::Lost(words)) => Err(words),
                    _ => Err(error.to_string()),
                }
            }
        }
    }

    /// Why it is over, once it is.
    pub(super) fn ended(&self) -> Option<Ended> {
        let ended = lock(&self.ended).clone();
        ended.or_else(|| self.devtools.is_over().then_some(Ended::Closed))
    }

    /// Closes it as a user would, so that it writes its cookies, and waits for its end.
    pub(super) async fn close(&self) {
        let _ = self.devtools.call_within(CLOSE, None, "Browser.close", json!({})).await;
        self.until_gone().await;
        self.end.cancel();
        self.until_gone().await;
    }

    /// Waits until its process has ended, for at most [`CLOSE`].
    pub(super) async fn until_gone(&self) {
        // After that time the caller goes on.
        let _ = timeout(CLOSE, self.gone.cancelled()).await;
    }

    /// A proxy address for a context.
    pub(super) fn open_proxy(&self) -> Result<ContextProxy, String> {
        self.guard.open_proxy(&self.end).map_err(|error| format!("the browser has no proxy: {error}"))
    }

    /// Notes that an agent uses it.
    pub(super) fn touch(&self) {
        *lock(&self.used_at) = Instant::now();
    }
}

/// Closes a browser that no agent has used for a while.
async fn close_when_idle(chromium: Weak<Chromium>, end: CancellationToken) {
    loop {
        tokio::select! {
            () = end.cancelled() => return,
            () = tokio::time::sleep(IDLE_LOOK) => {}
        }
        let Some(chromium) = chromium.upgrade() else { return };
        let idle = lock(&chromium.used_at).elapsed();
        if idle > Duration::from_millis(BROWSER_IDLE_MS) {
            chromium.end.cancel();
        }
    }
}

/// The thread of one Chromium.
struct ChromiumRun {
    launch: Launch,
    folder: Arc<Folder>,
    input: StdinPipe,
    devtools: DevTools,
    pages: Arc<Pages>,
    guard: Arc<Guard>,
    end: CancellationToken,
    runtime: tokio::runtime::Handle,
}

impl ChromiumRun {
    /// Runs it to its end.
    fn run(&self) -> Ended {
        let lost = |words: String| if self.end.is_cancelled() { Ended::Closed } else { Ended::Lost(words) };
        let spec = match self.spec() {
            Ok(spec) => spec,
            Err(words) => return Ended::Lost(words),
        };
        let pages = Arc::clone(&self.pages);
        let mut reader = MessageReader::new(self.devtools.clone(), move |event| pages.on_event(&event));
        let mut complaint = Vec::new();
        let over = max_team_sandbox::run(&spec, true, &self.end, &mut |source, bytes| {
            match source {
                OutputSource::Output => reader.push(bytes),
                OutputSource::Error => {
                    complaint.extend_from_slice(bytes);
                    let surplus = complaint.len().saturating_sub(COMPLAINT_BYTES_MAX);
                    complaint.drain(..surplus);
                }
            }
            true
        });
        lost(why(over, &String::from_utf8_lossy(&complaint)))
    }

    fn spec(&self) -> Result<max_team_sandbox::Spec, String> {
        let Launch { program, profile, is_sandboxed, is_visible } = &self.launch;
        let has_namespaces = *is_sandboxed && max_team_sandbox::engine().is_ok_and(|engine| engine.has_namespaces());
        let mut sandbox = CommandSandbox::around(self.folder.downloads());
        sandbox.on = *is_sandboxed;
        sandbox.reads.extend(program.canonicalize().ok().and_then(|program| program.parent().map(Path::to_owned)));
        sandbox.also.extend(profile.clone());
        // The user has the browser by its definition; a page's programs are what it keeps in.
        sandbox.attended = true;
        let value = |name: &str| std::env::var_os(name)?.into_string().ok();
        let screen = SCREEN.iter().filter_map(|name| Some(((*name).to_owned(), value(name)?)));
        let headless = ("CHROME_HEADLESS".to_owned(), "1".to_owned());
        let mut given: Vec<(String, String)> = if *is_visible { screen.collect() } else { vec![headless] };
        sandbox.network = if has_namespaces { Network::Proxy } else { Network::All };
        if !has_namespaces {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
            let address = listener.local_addr().map_err(|error| error.to_string())?;
            given.push(("HTTP_PROXY".to_owned(), format!("http://{address}")));
            self.serve(listener);
        }
        let profile = match profile {
            Some(named) => named.clone(),
            // In a file tree of its own, `/tmp` is empty and gone with the process.
            None if has_namespaces => PathBuf::from("/tmp/profile"),
            None => self.folder.profile().map_err(|error| error.to_string())?,
        };
        if !has_namespaces {
            sandbox.also.push(profile.clone());
        }
        let mut argv: Vec<String> = ["/bin/sh", "-c", ENTER, "browser"].map(str::to_owned).to_vec();
        argv.extend([program, &profile].map(|path| path.display().to_string()));
        argv.extend(ARGUMENTS.map(str::to_owned));
        if !is_visible {
            argv.push("--headless=new".to_owned());
        }
        // Chromium's own sandbox needs namespaces, which ours does not let it make, and refuses to be started by root.
        if *is_sandboxed || rustix::process::geteuid().is_root() {
            argv.push("--no-sandbox".to_owned());
        }
        let spec = sandbox.server(argv, &self.folder.downloads(), &given, self.input.clone());
        let mut spec = spec.map_err(|error| error.to_string())?;
        spec.ends_its_children = true;
        spec.scratch = Some(self.folder.0.clone());
        let (guard, end, runtime) = (Arc::clone(&self.guard), self.end.clone(), self.runtime.clone());
        spec.proxy = Some(ProxyServer(Arc::new(move |door| {
            guard.listens_at(&door.proxy);
            runtime.spawn(Arc::clone(&guard).serve(door.proxy, end.clone()));
        })));
        Ok(spec)
    }

    fn serve(&self, listener: TcpListener) {
        self.guard.listens_at(&listener);
        self.runtime.spawn(Arc::clone(&self.guard).serve(listener, self.end.clone()));
    }
}

/// Why a browser ended, in words.
fn why(over: Result<CommandOutcome, SandboxError>, complaint: &str) -> String {
    let said =
        complaint.lines().rev().find(|line| !line.trim().is_empty() && !line.contains("dbus")).unwrap_or_default();
    let said = visible(&clip(said.trim(), COMPLAINT_BYTES_MAX));
    let how = match over {
        Err(error) => return error.to_string(),
        Ok(CommandOutcome { ended: EndReason::Limit(limit), .. }) => format!("it used too much {}", limit.name()),
        Ok(CommandOutcome { signal: Some(signal), .. }) => format!("it was ended by signal {signal}"),
        Ok(CommandOutcome { code: Some(code), .. }) => format!("it exited with {code}"),
        Ok(_) => "it ended".to_owned(),
    };
    if said.is_empty() { how } else { format!("{how} ({said})") }
}

/// Whether a sandbox here is strong enough: Landlock alone leaves the sockets of other programs within reach, so it forbids those that
/// Chromium cannot do without.
pub(super) fn can_be_kept_in() -> bool {
    max_team_sandbox::engine().is_ok_and(|engine| engine != Engine::Landlock)
}

/// Whether a window can be shown to the user.
pub(super) fn has_screen() -> bool {
    cfg!(target_os = "macos")
        || SCREEN.iter().take(2).any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// The program: the one that the settings name, or the first in `PATH`.
pub fn find_chromium(named: Option<&Path>) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    if let Some(named) = named {
        return Some(named.to_owned()).filter(is_program);
    }
    let places = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&places).filter(|place| place.is_absolute()).collect();
    let all = NAMES.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    all.chain([PathBuf::from(APPLICATION)]).find(is_program)
}

static FOLDERS: AtomicU64 = AtomicU64::new(0);

/// A folder of one browser, private to the user and gone with it.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    const PREFIX: &str = "max-team-browser-";

    fn make() -> io::Result<Self> {
        sweep();
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        // The sandbox takes real paths.
        let path =
            std::env::temp_dir().canonicalize()?.join(format!("{}{}-{number}", Self::PREFIX, std::process::id()));
        // An existing folder is a leftover of an earlier process with our id, or a trap: it is never used.
        let _ = fs::remove_dir_all(&path);
        let folder = Self(path);
        for path in [folder.0.clone(), folder.downloads()] {
            fs::DirBuilder::new().mode(0o700).create(path)?;
        }
        Ok(folder)
    }

    fn remove(&self) {
        let _ = fs::remove_dir_all(&self.0);
    }

    /// Makes the folder of a profile that is gone with the browser.
    fn profile(&self) -> io::Result<PathBuf> {
        let path = self.0.join("profile");
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Where Chromium puts files.
    pub(super) fn downloads(&self) -> PathBuf {
        self.0.join("downloads")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Takes a profile, which one browser at a time can use; waits for one that is about to end. Chromium's own lock does not see a
/// browser in other namespaces.
async fn lock_profile(profile: &Path) -> Result<fs::File, String> {
    let file = fs::File::create(profile.join("max-team.lock")).map_err(|error| error.to_string())?;
    let until = Instant::now() + CLOSE;
    while rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
        if Instant::now() >= until {
            return Err("another browser uses this profile; try again when it is closed".to_owned());
        }
        tokio::time::sleep(LOCK_LOOK).await;
    }
    Ok(file)
}

/// Removes folders of processes that were killed.
fn sweep() {
    let Ok(found) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in found.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(Folder::PREFIX)?.split('-').next()?.parse().ok());
        let Some(owner) = owner.and_then(rustix::process::Pid::from_raw) else { continue };
        if rustix::process::test_kill_process(owner) == Err(rustix::io::Errno::SRCH) {
            // One of another user cannot be removed.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
