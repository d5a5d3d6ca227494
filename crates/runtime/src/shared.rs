//! What all loops of this process share: the journal, the models, the tools, and the subscribers.

use std::cell::RefCell;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use max_team_core::agent::{ALL_SOURCES, Definition};
use max_team_core::agent_dirs::AgentDir;
use max_team_core::context::instructions::Instructions;
use max_team_core::event::{Event, VERSION};
use max_team_core::hash::Hash;
use max_team_core::id::SessionId;
use max_team_journal::{Append, Commit, Journal, JournalError, Worker};
use max_team_llm::Router;
use max_team_tools::rewind::TrackedTrees;
use max_team_tools::{Browsers, Registry, RemoteCalls, Services, ToolSource, ToolSources};
use uuid::{ContextV7, Timestamp, Uuid};

use crate::audit::Audit;
use crate::error::RuntimeError;
use crate::memory::Remember;
use crate::notices::NoticeBus;
use crate::runtime::Options;
use crate::skills::Library;
use crate::stream::Pieces;
use crate::{session, team_tools};

/// How long the contents of instruction files are used before they are read again.
const INSTRUCTIONS_FRESH: Duration = Duration::from_secs(1);

/// Capacity of the buffer that is kept for the next event.
const DRAFT_BYTES_KEPT: usize = 64 << 10;

/// State that every loop of this process shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub journal: Journal,
    pub worker: Worker,
    pub router: Router,
    pub tools: Registry,
    /// Sources of further tools.
    pub sources: Arc<dyn ToolSources>,
    pub services: Arc<Services>,
    pub remote: Arc<RemoteCalls>,
    pub browsers: Arc<Browsers>,
    pub home: PathBuf,
    /// Agents' own folders: no tool shows them by their real paths.
    pub closed: Vec<String>,
    /// These, and the user's folders of other programs.
    pub homes: Vec<PathBuf>,
    pub surroundings: String,
    pub walled: bool,
    /// Blobs and notes that this process has already stored.
    pub stored: Mutex<StoredNotes>,
    read: Mutex<Option<(PathBuf, Instant, Arc<Instructions>)>>,
    /// Skills of the current project.
    pub skills: Arc<Library>,
    /// How the memory is kept.
    pub remember: Option<Remember>,
    pub notices: Arc<NoticeBus>,
    /// Live pieces of answers, for readers of the stream.
    pub pieces: Pieces,
    /// Snapshots of projects before and after commands.
    pub trees: TrackedTrees,
}

#[derive(Debug, Default)]
pub(crate) struct StoredNotes {
    pub blobs: HashSet<Hash>,
    /// Sessions whose state was noted in this process: `/clear` starts a new session, which must not be told the state
    /// of the old one.
    pub noted: HashSet<SessionId>,
}

impl Shared {
    /// The sources whose tools an agent has.
    pub(crate) fn sources_of(&self, definition: &Definition) -> Vec<Arc<dyn ToolSource>> {
        let mut names: Vec<String> = Vec::new();
        for source in definition.own_sources() {
            match source.as_str() {
                ALL_SOURCES => names.extend(self.sources.shared()),
                name => names.push(name.split_once('/').map_or(name, |(name, _)| name).to_owned()),
            }
        }
        names.sort_unstable();
        names.dedup();
        names.iter().filter_map(|name| self.sources.source(name)).collect()
    }

    pub(crate) fn new(options: Options) -> Result<Self, JournalError> {
        let journal = options.storage.journal;
        Ok(Self {
            worker: journal.worker(options.process)?,
            journal,
            router: options.router,
            tools: team_tools::with_team(options.tools),
            sources: options.sources,
            services: Arc::new(options.services),
            remote: Arc::default(),
            browsers: Arc::default(),
            closed: closed(&options.home),
            trees: TrackedTrees::within(&options.home),
            homes: std::iter::once(options.home.clone()).chain(options.others).collect(),
            pieces: Pieces::within(&options.home),
            home: options.home,
            surroundings: options.surroundings,
            walled: options.walled,
            stored: Mutex::default(),
            read: Mutex::new(None),
            skills: Arc::new(Library::new(options.skills)),
            remember: options.remember,
            notices: NoticeBus::new(options.audit.map(Audit::new)),
        })
    }

    /// Whether prompts of leads contain remembered facts.
    pub(crate) fn recalls(&self) -> bool {
        self.remember.as_ref().is_none_or(|remember| remember.recall)
    }

    /// Commits something that only saves work later; if it is refused, nothing is lost.
    pub(crate) async fn keep(&self, commit: Commit) -> Result<(), RuntimeError> {
        match self.journal.commit(commit).await {
            Err(error) if !error.is_refusal() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The instruction files of a directory, read again unless that was just done: a wave of members reads them once.
    pub(crate) fn instructions(&self, root: &Path) -> Arc<Instructions> {
        let mut read = lock(&self.read);
        if let Some((path, at, known)) = &*read
            && path == root
            && at.elapsed() < INSTRUCTIONS_FRESH
        {
            return Arc::clone(known);
        }
        let known = Arc::new(session::instructions::read(root, Some(&self.home)));
        *read = Some((root.to_path_buf(), Instant::now(), Arc::clone(&known)));
        known
    }

    /// The skills that a user can ask for by name.
    pub(crate) fn callable_skills(&self, root: &Path) -> Vec<String> {
        let catalogue = self.skills.of(root);
        catalogue.all().filter(|skill| skill.is_callable()).map(|skill| skill.name.clone()).collect()
    }
}

thread_local! {
    /// A reused buffer for the next event: a new one would be reallocated many times as it grows.
    static DRAFT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An event in the form that the journal takes.
pub(crate) fn append(stream: &str, event: &Event, actor: &str) -> Result<Append, RuntimeError> {
    let malformed =
        |error: serde_json::Error| JournalError::Malformed { what: "an event".to_owned(), detail: error.to_string() };
    let payload = DRAFT.with_borrow_mut(|draft| {
        let written = serde_json::to_writer(&mut *draft, event).map(|()| draft.to_vec());
        draft.clear();
        draft.shrink_to(DRAFT_BYTES_KEPT);
        written
    });
    Ok(Append {
        stream: stream.to_owned(),
        event: event.name().into(),
        version: VERSION,
        payload: payload.map_err(malformed)?,
        actor: actor.to_owned(),
        cause: None,
    })
}

/// A commit decided now, by the runtime.
pub(crate) fn commit_at(at_ms: i64) -> Commit {
    Commit { at_ms, actor: "house".to_owned(), ..Commit::default() }
}

/// Milliseconds since 1970, UTC; negative before, so that a wrong clock still advances.
pub fn now_ms() -> i64 {
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    SystemTime::now().duration_since(UNIX_EPOCH).map_or_else(|before| -ms(before.duration()), ms)
}

/// A new id; those of one process are in the order of their creation. `Uuid::now_v7` panics where the clock says a time before
/// 1970: here that counts as 1970.
pub fn new_id() -> Uuid {
    static CONTEXT: Mutex<AssertUnwindSafe<ContextV7>> = Mutex::new(AssertUnwindSafe(ContextV7::new()));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Uuid::new_v7(Timestamp::from_unix(&CONTEXT, since.as_secs(), since.subsec_nanos()))
}

/// The data behind a poisoned lock is still consistent: no holder leaves it half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The agents' own folders, under every path that leads to them.
fn closed(home: &Path) -> Vec<String> {
    let homes = [Some(home.to_path_buf()), home.canonicalize().ok()];
    let folders = homes.into_iter().flatten().flat_map(|home| AgentDir::ALL.map(|folder| home.join(folder.home())));
    folders.map(|folder| folder.to_string_lossy().into_owned()).collect()
}
