//! What every loop of this process shares: the journal, the models, the tools, and whoever watches.

use std::cell::RefCell;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use max_team_core::context::instructions::Instructions;
use max_team_core::event::{Event, VERSION};
use max_team_core::folder::Folder;
use max_team_core::hash::Hash;
use max_team_core::id::SessionId;
use max_team_journal::{Append, Commit, Journal, JournalError, Worker};
use max_team_llm::Router;
use max_team_tools::rewind::Trees;
use max_team_tools::{Reach, Registry};
use uuid::{ContextV7, Timestamp, Uuid};

use crate::audit::Audit;
use crate::error::RuntimeError;
use crate::herald::Herald;
use crate::house::Options;
use crate::memory::Remember;
use crate::skills::Library;
use crate::stream::Pieces;
use crate::{session, team_tools};

/// How long what was read of the instruction files holds.
const INSTRUCTIONS_FRESH: Duration = Duration::from_secs(1);

/// Room for an event that is kept for the next.
const DRAFT_BYTES_KEPT: usize = 64 << 10;

/// What every loop of this process shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub journal: Journal,
    pub worker: Worker,
    pub router: Router,
    pub tools: Registry,
    pub reach: Arc<Reach>,
    pub home: PathBuf,
    /// Where agents keep what is their own: nobody sees it by its real name.
    pub closed: Vec<String>,
    /// That, and where other programs keep what is the user's own.
    pub homes: Vec<PathBuf>,
    pub surroundings: String,
    pub walled: bool,
    /// Blobs that this process has put into the journal.
    pub stored: Mutex<HashSet<Hash>>,
    read: Mutex<Option<(PathBuf, Instant, Arc<Instructions>)>>,
    /// Skills of whatever is worked on.
    pub skills: Arc<Library>,
    /// How it looks after its memory, once somebody has said so.
    pub remember: OnceLock<Remember>,
    /// Set where the user cannot be asked.
    pub unattended: AtomicBool,
    /// Sessions that this process has noted the state of: `/clear` begins anew, so their successors are not told of them.
    pub noted: Mutex<HashSet<SessionId>>,
    pub herald: Arc<Herald>,
    /// Pieces of answers on their way to whoever reads the stream.
    pub pieces: Pieces,
    /// How projects are before and after commands.
    pub trees: Trees,
}

impl Shared {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            journal: options.journal,
            worker: options.worker,
            router: options.router,
            tools: team_tools::with_team(options.tools),
            reach: Arc::new(options.reach),
            closed: closed(&options.home),
            trees: Trees::within(&options.home),
            homes: std::iter::once(options.home.clone()).chain(options.others).collect(),
            home: options.home,
            surroundings: options.surroundings,
            walled: options.walled,
            stored: Mutex::new(HashSet::new()),
            read: Mutex::new(None),
            skills: Arc::new(Library::new(options.skills)),
            remember: OnceLock::new(),
            unattended: AtomicBool::new(false),
            noted: Mutex::default(),
            herald: Herald::new(options.audit.map(Audit::new)),
            pieces: Pieces::default(),
        }
    }

    /// Whether leads are told what is remembered.
    pub(crate) fn recalls(&self) -> bool {
        self.remember.get().is_none_or(|remember| remember.recall)
    }

    /// Commits what only spares work later; if it is refused, nothing is lost.
    pub(crate) async fn keep(&self, commit: Commit) -> Result<(), RuntimeError> {
        match self.journal.commit(commit).await {
            Err(error) if !error.is_refusal() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The instruction files of a directory, read again unless they have just been: a wave of members reads them once.
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
    /// Room to write the next event in: what grows while it is written is copied again and again.
    static DRAFT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An event as the journal takes it.
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

/// A commit decided now, by the house.
pub(crate) fn commit_at(at_ms: i64) -> Commit {
    Commit { at_ms, actor: "house".to_owned(), ..Commit::default() }
}

/// Milliseconds since 1970, UTC; less than 0 before it, so that a clock that is wrong still moves on.
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

/// A lock whose holder panicked still guards plain data.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The folders that hold what agents keep, by every name that they have.
fn closed(home: &Path) -> Vec<String> {
    let homes = [Some(home.to_path_buf()), home.canonicalize().ok()];
    let folders = homes.into_iter().flatten().flat_map(|home| Folder::ALL.map(|folder| home.join(folder.home())));
    folders.map(|folder| folder.to_string_lossy().into_owned()).collect()
}
