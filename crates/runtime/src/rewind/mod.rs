//! Restores files as they were at an earlier point of a session.
//!
//! The plan follows from the log alone: each step records the states of the files it changed, and `core::rewind` says
//! which of them have no other changes since. The plan is committed before any file changes ([`Rewound`]), with the
//! present contents, so that it can be completed after a crash and undone itself. The caller owns the session.

mod log;
mod merged;
mod observed;
mod plan;

use std::io;
use std::path::{Path, PathBuf};

use max_team_core::body::{Body, FilesRewound};
use max_team_core::event::Event;
use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::limits::{REWIND_BYTES_MAX, REWIND_FILES_MAX};
use max_team_core::message::{Envelope, MessageKind, Principal};
use max_team_core::rewind::{FailedRestore, FileState, RestoredFile, RewindEnded, RewindNote, Rewound};
use max_team_core::text::visible;
use max_team_journal::{Commit, Durability, Expect, Fence, Journal, Worker, WorkerInfo};
use max_team_tools::rewind::{RestoreRoot, TrackedTrees};
use serde::Serialize;
use uuid::Uuid;

use crate::error::RuntimeError;
use crate::session;
use crate::shared::{append, commit_at, new_id, now_ms};
use crate::template::fill;

pub use log::{Moment, RewindPoint};
pub(crate) use merged::Merger;
pub(crate) use merged::note_accepted;
pub(crate) use observed::{record_deletion, record_tree_step, settle};
pub use plan::{RewindPlan, Sheet, Skip, Skipped};

/// Messages to the lead.
const TOLD: &str = include_str!("../../../../prompts/rewound.md");
const TOLD_AGAIN: &str = include_str!("../../../../prompts/rewound_again.md");
/// Files that such a message names at most.
const TOLD_FILES_MAX: usize = 50;

/// The outcome of a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Outcome {
    /// Files that were restored.
    pub done: Vec<RestoredFile>,
    /// Files that could not be restored.
    pub failed: Vec<FailedRestore>,
}

/// Restores files of one session.
#[derive(Debug)]
pub struct Rewind<'j> {
    journal: &'j Journal,
    trees: TrackedTrees,
    /// The folder of this user's data: worktrees and stores in it come and go.
    home: PathBuf,
    session: SessionId,
    /// Restores files of the first folder in the second, and nowhere else.
    moved: Option<(PathBuf, PathBuf)>,
}

impl<'j> Rewind<'j> {
    /// For a session; `home` is where this user's journal is. Records first the changes of its commands whose process was killed.
    /// Blocking.
    pub fn new(journal: &'j Journal, home: &Path, session: SessionId) -> Self {
        let real = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let trees = TrackedTrees::within(home);
        settle(journal, &trees, session);
        Self { journal, trees, home: real, session, moved: None }
    }

    /// Claims the session, so that no process opens it while its files are restored; fails if one has it open.
    pub async fn claim(&self, process: WorkerInfo, by: Principal) -> Result<ClaimedRewind<'_>, RuntimeError> {
        let worker = self.journal.worker(process)?;
        let resource = session::stream(self.session);
        let epoch = self.journal.claim(&resource, &worker).await?;
        let fence = Fence { resource, worker: worker.id(), epoch };
        Ok(ClaimedRewind { rewind: self, fence, by, _worker: worker })
    }

    /// An unfinished rewind.
    pub fn begun(&self) -> Result<Option<Rewound>, RuntimeError> {
        Ok(log::Log::of(self.journal, self.session)?.begun())
    }

    /// Turns a worktree into the state that the project had after an entry, as far as it is known; a file with other
    /// changes since keeps its present content. Only the worktree is written. Blocking.
    pub fn restore(self, behind: u64, project: &Path, copy: &Path) -> Result<(RewindPlan, Outcome), RuntimeError> {
        let there = Self { moved: Some((project.to_owned(), copy.to_owned())), ..self };
        let plan = there.plan(RewindPoint::Behind(behind), &[])?;
        let outcome = there.put_all(&plan.puts);
        Ok((plan, outcome))
    }

    /// The folder in which files beneath a root are restored.
    fn ground(&self, root: &str) -> io::Result<RestoreRoot> {
        match &self.moved {
            None => RestoreRoot::open(Path::new(root)),
            Some((from, to)) if from == Path::new(root) => RestoreRoot::open(to),
            Some(_) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The outcome of the rewind with this id, once it has ended.
    pub(crate) fn outcome(&self, id: EnvelopeId) -> Result<Option<Outcome>, RuntimeError> {
        Ok(log::Log::of(self.journal, self.session)?.outcome(id.uuid()))
    }

    /// Restores files, as the rewind with this id. Blocking.
    pub(crate) fn carry_out(
        &self,
        id: EnvelopeId,
        plan: &RewindPlan,
        fence: &Fence,
        by: &Principal,
    ) -> Result<Outcome, RuntimeError> {
        let rewound = self.begin(id, plan, fence, by)?;
        self.finish(&rewound, fence, by)
    }

    /// Commits the plan, with the present contents. Blocking.
    pub(crate) fn begin(
        &self,
        id: EnvelopeId,
        plan: &RewindPlan,
        fence: &Fence,
        by: &Principal,
    ) -> Result<Rewound, RuntimeError> {
        let (mut blobs, mut bytes) = (Vec::new(), 0_u64);
        for RestoredFile { root, change } in &plan.puts {
            let now = self.ground(root).ok().and_then(|ground| ground.look(&change.path).ok());
            // A file that has changed since the plan was made is refused later.
            if let Some((FileState::File { .. } | FileState::Link { .. }, Some(now))) = now {
                bytes = bytes.saturating_add(now.len() as u64);
                blobs.push(now);
            }
            if bytes > REWIND_BYTES_MAX || plan.puts.len() > REWIND_FILES_MAX {
                return Err(RuntimeError::TooMuch);
            }
        }
        let rewound = Rewound { id: id.uuid(), behind: plan.behind, puts: plan.puts.clone(), by: Some(by.clone()) };
        let mut commit = self.commit(&Event::Rewound(rewound.clone()), fence, by)?;
        commit.blobs = blobs;
        self.journal.commit_blocking(commit)?;
        Ok(rewound)
    }

    /// Carries out a committed rewind, or what is left of it. Blocking.
    pub(crate) fn finish(&self, rewound: &Rewound, fence: &Fence, by: &Principal) -> Result<Outcome, RuntimeError> {
        let outcome = self.put_all(&rewound.puts);
        let ended = Event::RewindEnded(RewindEnded { id: rewound.id, failed: outcome.failed.clone() });
        let mut commit = self.commit(&ended, fence, by)?;
        let (envelope, stale) = self.envelope(rewound, &outcome)?;
        commit.sends.extend(envelope);
        commit.acks.extend(stale);
        self.journal.commit_blocking(commit)?;
        Ok(outcome)
    }

    fn put_all(&self, puts: &[RestoredFile]) -> Outcome {
        let mut outcome = Outcome::default();
        for put in puts {
            match self.put(put) {
                Ok(()) => outcome.done.push(put.clone()),
                Err(why) => {
                    let (root, path) = (put.root.clone(), put.change.path.clone());
                    outcome.failed.push(FailedRestore { root, path, why });
                }
            }
        }
        outcome
    }

    fn put(&self, RestoredFile { root, change }: &RestoredFile) -> Result<(), String> {
        let ground = self.ground(root).map_err(|error| error.to_string())?;
        let bytes = match change.after.bytes() {
            Some(hash) => self.bytes(root, &hash).map_err(|error| error.to_string())?,
            None => None,
        };
        ground.put(change, bytes).map_err(|error| error.to_string())
    }

    /// A stored content.
    fn bytes(&self, root: &str, hash: &max_team_core::hash::Hash) -> Result<Option<Vec<u8>>, RuntimeError> {
        match self.journal.blob(hash)? {
            Some(bytes) => Ok(Some(bytes)),
            None => Ok(self.trees.bytes(Path::new(root), hash)),
        }
    }

    fn commit(&self, event: &Event, fence: &Fence, by: &Principal) -> Result<Commit, RuntimeError> {
        let stream = session::stream(self.session);
        let mut commit = commit_at(now_ms());
        // Must survive a power cut: the files themselves do not show that this program wrote them.
        commit.strength = Durability::Full;
        commit.fence = Some(fence.clone());
        commit.expect.push((stream.clone(), Expect::Any));
        commit.appends.push(append(&stream, event, &by.address())?);
        Ok(commit)
    }

    /// One message to the lead about the present state of files, read with the user's next message. It replaces
    /// earlier unread ones.
    fn envelope(
        &self,
        rewound: &Rewound,
        outcome: &Outcome,
    ) -> Result<(Option<Envelope>, Vec<EnvelopeId>), RuntimeError> {
        let row = session::Sessions::new(self.journal).row(self.session)?;
        let lead = session::agent_stream(row.lead);
        let mail = self.journal.pending_mail(&lead)?;
        let unread = || mail.iter().filter(|envelope| envelope.kind == MessageKind::FilesRewound);
        let stale: Vec<EnvelopeId> = unread().map(|envelope| envelope.id).collect();
        let mut times: Vec<Uuid> = unread().flat_map(times_in).collect();
        let log = log::Log::of(self.journal, self.session)?;
        let mut puts = log.put_at(&times);
        puts.extend(outcome.done.iter().cloned());
        let files = told(&puts);
        if files.is_empty() {
            return Ok((None, stale));
        }
        let shown = |put: &RestoredFile| {
            let full = Path::new(&put.root).join(&put.change.path);
            visible(&full.strip_prefix(&row.cwd).unwrap_or(&full).display().to_string())
        };
        let first: Vec<(&RestoredFile, String)> =
            files.iter().take(TOLD_FILES_MAX).map(|put| (put, shown(put))).collect();
        let line = |(put, name): &(&RestoredFile, String)| {
            let what = if put.change.after == FileState::Gone { " (removed)" } else { "" };
            format!("- `{name}`{what}")
        };
        times.push(rewound.id);
        let mut named: Vec<String> = first.iter().map(line).collect();
        let more = files.len().saturating_sub(TOLD_FILES_MAX);
        if more > 0 {
            named.push(format!("- and {more} more"));
        }
        let again = log.is_undo(rewound);
        let words = if again { TOLD_AGAIN } else { TOLD };
        let text = fill(words.trim_end(), &[("files", &named.join("\n"))]);
        let names: Vec<String> = first.into_iter().map(|(_, name)| name).collect();
        let told = RewindNote { text, files: names, count: files.len(), again };
        let envelope = Envelope::new(
            EnvelopeId::new(rewound.id),
            session::stream(self.session),
            lead,
            MessageKind::FilesRewound,
            Body::Rewound(FilesRewound { told, times: Some(times) }),
            now_ms(),
        );
        Ok((Some(envelope), stale))
    }
}

/// Restores files of a session that this process has claimed and no process has open.
#[derive(Debug)]
pub struct ClaimedRewind<'r> {
    rewind: &'r Rewind<'r>,
    fence: Fence,
    by: Principal,
    /// The claim ends with it.
    _worker: Worker,
}

impl ClaimedRewind<'_> {
    /// Completes an unfinished rewind, if there is one. Blocking.
    pub fn complete(&self) -> Result<Option<Outcome>, RuntimeError> {
        let begun = self.rewind.begun()?;
        begun.map(|begun| self.rewind.finish(&begun, &self.fence, &self.by)).transpose()
    }

    /// Restores files. Blocking.
    pub fn carry_out(&self, plan: &RewindPlan) -> Result<Outcome, RuntimeError> {
        self.rewind.carry_out(EnvelopeId::new(new_id()), plan, &self.fence, &self.by)
    }
}

/// The rewinds that a message reports; an older message reports only the one that its id is made of.
fn times_in(envelope: &Envelope) -> Vec<Uuid> {
    match Body::read(envelope) {
        Body::Rewound(FilesRewound { times: Some(times), .. }) => times,
        _ => vec![envelope.id.uuid()],
    }
}

/// The sum of several rewinds: one change per file, and none for a file that is again what it was.
fn told(puts: &[RestoredFile]) -> Vec<RestoredFile> {
    let mut files: Vec<RestoredFile> = Vec::new();
    for put in puts {
        match files.iter_mut().find(|known| known.root == put.root && known.change.path == put.change.path) {
            Some(known) => known.change.after = put.change.after,
            None => files.push(put.clone()),
        }
    }
    files.retain(|put| !put.change.before.fits(&put.change.after));
    files
}
