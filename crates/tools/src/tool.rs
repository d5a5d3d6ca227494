//! The `Tool` trait and what passes through it.
//!
//! Both halves of a tool are plain blocking functions: the caller runs them on a blocking thread
//! (`tokio::task::spawn_blocking`) and cancels through [`ToolContext::cancel`], which long ones look at. Tools that wait for a server
//! are [`RemoteTool`](crate::RemoteTool)s instead. A tool never decides whether it may run; it is never called with anything
//! but the action that was judged.

use std::borrow::Cow;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::agent_dirs::AgentDir;
use max_team_core::chat::Part;
use max_team_core::limits::TOOL_RESULT_BYTES_MAX;
use max_team_core::policy::{Action, Basis, Repeatability, Visibility};
use max_team_core::text::stripped;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent_store::AgentStore;
use crate::browser::{AgentBrowser, Browsers};
use crate::command::CommandSandbox;
use crate::files::{OpenedFile, RelPath, Root};
use crate::output_store::{self, OutputStore};
use crate::policy_check::PolicyCheck;
use crate::progress::Progress;
use crate::remote::RemoteCalls;
use crate::services::Services;
use crate::shell::Background;
use crate::text::{clip, ends, size};

/// Bytes of an error's words.
const ERROR_BYTES_MAX: usize = 8 << 10;
/// Bytes of the note between the beginning and the end of a result that was cut.
const CUT_NOTE_BYTES: usize = 400;

/// A tool that works on this machine. An open set: built-in tools and the team's own.
pub trait Tool: Send + Sync + fmt::Debug {
    /// What the model and the registry know about it.
    fn spec(&self) -> &Spec;

    /// What this call would do, for the policy to judge. Reads all that it needs in order to be exact (a write is told
    /// with the hashes before and after, and a diff) and changes nothing. Blocking.
    fn action(&self, cx: &ToolContext, args: &Value) -> Result<Action, ToolError>;

    /// What a crash in the middle of such a call means: no more than what the spec says of all calls.
    fn class(&self, _: &Action) -> Repeatability {
        self.spec().class
    }

    /// Does it if that takes no longer than a lookup and waits for nothing, so that another thread is not worth it.
    /// `None`: it needs `call`. Only calls that change nothing are done this way.
    fn try_inline(&self, _: &ToolContext, _: &Value, _: &Action) -> Option<Result<Output, ToolError>> {
        None
    }

    /// Does it. `intent` is the action that was judged: if the world has moved on since, the call is refused rather
    /// than adapted. `resumed` says that an earlier process may already have done it, wholly or in part. Blocking.
    fn call(&self, cx: &ToolContext, args: Value, intent: &Action, resumed: bool) -> Result<Output, ToolError>;
}

/// What is known about a tool before it is called.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Its name, unique in a registry.
    pub name: String,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// JSON Schema of its input: always an object.
    pub schema: Value,
    /// What a crash in the middle of a call means.
    pub class: Repeatability,
    /// Whether `null` stands for an optional input that is absent; many models write it so.
    pub null_is_absent: bool,
}

/// What a call works with.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The folder it may reach into.
    pub root: Arc<Root>,
    /// Whether file tools may leave that folder, because the user has turned the sandbox off.
    pub leaves_root: bool,
    /// What of it can be seen.
    pub sight: Arc<Visibility>,
    /// The sandbox of its commands.
    pub sandbox: Arc<CommandSandbox>,
    /// Fires when the call is cancelled.
    pub cancel: CancellationToken,
    /// Where it reports its progress.
    pub progress: Progress,
    /// Where results go that are too large to be told; `None`: they are only cut.
    pub outputs: Option<Arc<OutputStore>>,
    /// What it may use beyond the folder.
    pub services: Arc<Services>,
    /// The calls to servers that this process has under way.
    pub remote: Arc<RemoteCalls>,
    /// The browsers that this process runs.
    pub browsers: Arc<Browsers>,
    /// Its agent's place in one of them.
    pub browser: Arc<AgentBrowser>,
    /// Its agent's commands that run on by themselves.
    pub background: Arc<Background>,
    /// Folders outside that it may read and not change, by the names that a model calls them (`@skill/NAME`).
    pub folders: Arc<[(String, PathBuf)]>,
    /// Folders of its own that it may read and change (`@files`, `@data`); none: such a path is one of the project.
    pub stores: Arc<[AgentStore]>,
    /// Judges what it does beyond the call.
    pub policy: PolicyCheck,
    /// The session that it works in, by its id.
    pub session: Arc<str>,
}

impl ToolContext {
    /// A context that sees everything and is not cancelled.
    pub fn new(root: Arc<Root>) -> Self {
        let sandbox = Arc::new(CommandSandbox::around(root.path()));
        Self {
            root,
            leaves_root: false,
            sight: Arc::default(),
            sandbox,
            cancel: CancellationToken::new(),
            progress: Progress::default(),
            outputs: None,
            services: Arc::default(),
            remote: Arc::default(),
            browsers: Arc::default(),
            browser: Arc::default(),
            background: Arc::default(),
            folders: Arc::from([]),
            stores: Arc::from([]),
            policy: PolicyCheck::default(),
            session: Arc::from(""),
        }
    }

    /// If the path names an earlier output of this agent, or lies in a folder that was opened to it: the context to
    /// read it with, and its name there. All of an output is visible: it was told to this agent before.
    pub(crate) fn shelved<'a>(&self, path: &'a str) -> Result<Option<(Self, &'a str)>, ToolError> {
        if let Some((folder, name)) = self.handed(path) {
            let gone = |_| ToolError::correctable(format!("`{}` is not there any more", clip(path, 80)));
            let root = Root::open(folder).map_err(gone)?;
            let sight = Arc::new(self.sight.outside_project());
            let (folders, stores) = (Arc::from([]), Arc::from([]));
            let cx = Self { root: Arc::new(root), sight, folders, stores, ..self.clone() };
            return Ok(Some((cx, name)));
        }
        let Some(name) = path.strip_prefix(output_store::PREFIX) else { return Ok(None) };
        let root = self.outputs.as_ref().and_then(|store| store.root().ok());
        let root = root.ok_or_else(|| ToolError::correctable(format!("there is no output `{}`", clip(path, 80))))?;
        let stores = Arc::from([]);
        let cx = Self { root: Arc::new(root), sight: Arc::default(), outputs: None, stores, ..self.clone() };
        Ok(Some((cx, name)))
    }

    /// The folder that was opened to this agent and holds the path, and the path in it.
    fn handed<'a>(&self, path: &'a str) -> Option<(&Path, &'a str)> {
        self.folders.iter().find_map(|(name, folder)| {
            let inside = path.strip_prefix(name.as_str()).or_else(|| path.strip_prefix(folder.to_str()?))?;
            Some((folder.as_path(), inside.strip_prefix('/')?))
        })
    }

    /// Keeps a text that is too large to be told; returns where to read it.
    pub(crate) fn keep(&self, text: &str) -> Option<String> {
        let path = self.outputs.as_ref()?.keep(text).ok()?;
        Some(format!("all of it is in `{path}`: read on with `read_file`, or look inside with `search_code`"))
    }

    /// Whether a place is hidden. Then nothing there is read, not even to say what a call would do: the policy refuses
    /// the name.
    pub(crate) fn hides(&self, place: &RelPath) -> bool {
        self.veil(place).is_some()
    }

    /// The rule that hides a place, as text.
    fn veil(&self, place: &RelPath) -> Option<String> {
        self.sight_at(place).hidden_by(place.as_str()).map(|basis| basis.to_string())
    }

    /// What can be seen where a place lies.
    pub(crate) fn sight_at(&self, place: &RelPath) -> Cow<'_, Visibility> {
        match place.folder() {
            _ if place.is_outside() => Cow::Owned(self.sight.outside_project()),
            Some(folder) => Cow::Owned(self.sight.in_agent_dir(folder)),
            None => Cow::Borrowed(&*self.sight),
        }
    }

    /// A path that a model wrote, made clean: of the project, or of a folder that agents keep outside it.
    pub(crate) fn place(&self, text: &str) -> Result<RelPath, ToolError> {
        match AgentDir::split(text) {
            Some((folder, rest)) if self.store(folder).is_some() => RelPath::own(folder, rest),
            _ => match self.root.place(text) {
                Err(_) if self.leaves_root && !text.is_empty() && !text.starts_with('~') => {
                    RelPath::outside(text, self.root.path())
                }
                place => place.map(RelPath::of_project),
            },
        }
    }

    /// Like `place`, but fails if the path is hidden.
    pub(crate) fn named(&self, text: &str) -> Result<RelPath, ToolError> {
        let place = self.place(text)?;
        match self.veil(&place) {
            Some(rule) => Err(ToolError::correctable(format!("`{place}` is not for you to see: {rule}"))),
            None => Ok(place),
        }
    }

    /// The folder of that kind that agents keep outside the project.
    pub(crate) fn store(&self, folder: AgentDir) -> Option<&AgentStore> {
        self.stores.iter().find(|store| store.folder() == folder)
    }

    /// The context to read a place with: its root is the one that the place lies beneath. `None`: there is no such
    /// folder yet.
    pub(crate) fn reach(&self, place: &RelPath) -> Result<Option<Cow<'_, Self>>, ToolError> {
        if place.is_outside() {
            let closed = |error| ToolError::correctable(format!("`{place}` cannot be opened: {error}"));
            let root = Arc::new(Root::open("/").map_err(closed)?);
            let (sight, stores) = (Arc::new(self.sight.outside_project()), Arc::from([]));
            return Ok(Some(Cow::Owned(Self { root, sight, stores, ..self.clone() })));
        }
        let Some(folder) = place.folder() else { return Ok(Some(Cow::Borrowed(self))) };
        let Some(root) = self.store(folder).map_or(Ok(None), AgentStore::root)? else { return Ok(None) };
        let sight = Arc::new(self.sight.in_agent_dir(folder));
        Ok(Some(Cow::Owned(Self { root: Arc::new(root), sight, stores: Arc::from([]), ..self.clone() })))
    }

    /// Like `reach`, but fails if the folder does not exist.
    pub(crate) fn look(&self, place: &RelPath) -> Result<Cow<'_, Self>, ToolError> {
        self.reach(place)?.ok_or_else(|| {
            let name = place.folder().map_or(".", AgentDir::name);
            ToolError::correctable(format!("`{place}` does not exist: nothing is kept in `{name}` yet"))
        })
    }

    /// What a call sees that visits more than one place: files that a rule asks about are left out, unless the one
    /// place that was named is such a file, because then the user was asked.
    pub(crate) fn passing(&self, named: &[String]) -> Visibility {
        match named {
            [place] if self.sight.needs_approval_to_read(place) => Visibility::clone(&self.sight),
            _ => self.sight.for_scan(),
        }
    }

    /// A path of the project that a model wrote; fails if it is hidden.
    pub(crate) fn seen(&self, text: &str) -> Result<RelPath, ToolError> {
        let place = self.root.place(text)?;
        match self.sight.hidden_by(place.as_str()) {
            Some(rule) => Err(ToolError::correctable(format!("`{place}` is not for you to see: {rule}"))),
            None => Ok(place),
        }
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, path: &Path) -> Result<OpenedFile, ToolError> {
        self.root.open_file(path, &self.sight)
    }

    /// Opens a folder for reading.
    pub(crate) fn open_dir(&self, path: &Path) -> Result<OwnedFd, ToolError> {
        self.root.open_dir(path, &self.sight)
    }

    /// Whether there is a folder at that path.
    pub(crate) fn is_dir(&self, path: &Path) -> bool {
        self.root.is_dir(path, &self.sight)
    }

    /// Fails once the call has been cancelled.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() { Err(ToolError::correctable("stopped before it was done")) } else { Ok(()) }
    }
}

/// What a call gives back to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Text and images.
    pub content: Vec<Part>,
    /// Whether it failed in a way that is the tool's own to describe.
    pub is_error: bool,
}

impl Output {
    /// A result of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Part::text(text)], is_error: false }
    }

    /// The same within [`TOOL_RESULT_BYTES_MAX`] of text: the beginning and the end of what is longer, and where to
    /// read the rest.
    pub(crate) fn bounded(mut self, cx: &ToolContext) -> Self {
        let texts = self.content.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let whole = texts.collect::<Vec<_>>().join("\n");
        if whole.len() <= TOOL_RESULT_BYTES_MAX {
            return self;
        }
        let (head, tail) = ends(&whole, TOOL_RESULT_BYTES_MAX - CUT_NOTE_BYTES);
        let cut = size((whole.len() - head.len() - tail.len()) as u64);
        let rest = cx.keep(&whole).map(|words| format!("; {words}")).unwrap_or_default();
        let told = Part::text(format!("{head}\n[… {cut} of {} cut{rest} …]\n{tail}", size(whole.len() as u64)));
        self.content.retain(|part| !matches!(part, Part::Text { .. }));
        self.content.insert(0, told);
        self
    }
}

/// Why a call came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// Told to the model, which can correct it.
    #[error("{0}")]
    Correctable(String),
    /// The tool never does it, also with an approval.
    #[error("{words}")]
    Refused {
        /// What it would have changed.
        target: String,
        /// The rule that refuses it.
        basis: Basis,
        /// What the model is told.
        words: String,
    },
    /// The call began, and nothing can tell how far it came.
    #[error("{0}")]
    Unknown(String),
    /// The call is under way and waits for a person's answer to this question.
    #[error("{}", .0.preview)]
    Asks(Box<Action>),
    /// Nothing that the agent does in this turn can help (disk full, folder gone): the turn ends.
    #[error("{0}")]
    Fatal(String),
}

impl ToolError {
    /// An error the model is told.
    pub fn correctable(text: impl Into<String>) -> Self {
        Self::Correctable(text.into())
    }

    /// The same with its text cut to a useful length.
    pub fn bounded(self) -> Self {
        self.map(|words| clip(&words, ERROR_BYTES_MAX))
    }

    /// The same without control characters, for words that a server may have sent.
    pub(crate) fn without_controls(self) -> Self {
        self.map(|words| stripped(&words).into_owned())
    }

    fn map(self, change: impl Fn(String) -> String) -> Self {
        match self {
            Self::Correctable(words) => Self::Correctable(change(words)),
            Self::Refused { target, basis, words } => {
                let [target, words] = [target, words].map(change);
                Self::Refused { target, basis, words }
            }
            Self::Unknown(words) => Self::Unknown(change(words)),
            Self::Asks(action) => Self::Asks(Box::new(Action { preview: change(action.preview), ..*action })),
            Self::Fatal(words) => Self::Fatal(change(words)),
        }
    }

    /// An error that ends the turn.
    pub fn fatal(text: impl Into<String>) -> Self {
        Self::Fatal(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_cut_to_fit_and_say_where_the_rest_is() {
        let home = tempfile::TempDir::new().unwrap();
        let plain = ToolContext::new(Arc::new(Root::open(home.path()).unwrap()));
        assert_eq!(Output::text("fits").bounded(&plain), Output::text("fits"));

        let lines: String = (0..90_000).map(|number| format!("{number}\n")).collect();
        let long = Output { content: vec![Part::text(lines.as_str()), Part::text("more")], is_error: true };
        let store = Some(Arc::new(OutputStore::new(home.path().join("store"))));
        for cx in [plain.clone(), ToolContext { outputs: store, ..plain }] {
            let cut = long.clone().bounded(&cx);
            let [Part::Text { text }] = cut.content.as_slice() else { panic!("{cut:?}") };
            assert!(text.len() <= TOOL_RESULT_BYTES_MAX && cut.is_error);
            assert!(text.starts_with("0\n1\n") && text.ends_with("\n89999\n\nmore"), "{}", &text[text.len() - 60..]);
            let path = text.split_once('`').map(|(_, rest)| rest.split_once('`').unwrap().0);
            assert_eq!(path.is_some(), cx.outputs.is_some());
            if let Some(path) = path {
                let (inner, name) = cx.shelved(path).unwrap().unwrap();
                assert_eq!(std::fs::read_to_string(inner.root.path().join(name)).unwrap(), lines.clone() + "\nmore");
            }
        }
    }
}
