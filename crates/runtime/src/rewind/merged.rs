//! The merge of a worktree into its project: one step, recorded with the earlier states before any file is touched.

use std::path::Path;

use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::limits::REWIND_BYTES_MAX;
use max_team_core::message::Principal;
use max_team_core::rewind::{FileChange, FileState, FilesChanged, SkippedChange, SkippedReason};
use max_team_journal::{Durability, Fence, Journal};
use max_team_tools::rewind::RestoreRoot;
use tokio_util::sync::CancellationToken;

use crate::error::RuntimeError;
use crate::session;
use crate::shared::{append, commit_at, now_ms};
use crate::user_mail;

/// Records merges of worktrees into a project as steps of a session.
#[derive(Debug)]
pub(crate) struct Merger<'a> {
    pub(crate) journal: &'a Journal,
    pub(crate) session: SessionId,
    /// The ownership of the session that the commit requires.
    pub(crate) fence: Option<Fence>,
    /// The author of the merge.
    pub(crate) actor: String,
    /// Fires when the agent or plan that began the merge has ended; `None` for a person's command, which waits to the
    /// end.
    pub(crate) gone: Option<CancellationToken>,
    /// Identifies the merge: for a call, its agent's stream and its key.
    pub(crate) key: String,
}

impl Merger<'_> {
    /// Records the changes that are about to be made, with the present contents. Blocking.
    pub(crate) fn note(&self, project: &Path, changes: &[FileChange]) -> Result<(), RuntimeError> {
        let (mut blobs, mut left, mut held) = (Vec::new(), Vec::new(), 0_u64);
        let ground = RestoreRoot::open(project).ok();
        let mut changes = changes.to_vec();
        for FileChange { path, before, after } in changes.iter_mut().filter(|change| change.before != FileState::Gone) {
            let now = ground.as_ref().and_then(|ground| ground.look(path).ok());
            // A file that has changed since is not merged.
            let Some((now, Some(bytes))) = now.filter(|(now, _)| now == before) else { continue };
            // The same content, with the permissions that the file has now.
            (*before, *after) = (now, after.replacing(now));
            held = held.saturating_add(bytes.len() as u64);
            if held > REWIND_BYTES_MAX {
                left.push(SkippedChange { path: path.clone(), why: SkippedReason::Many });
            } else {
                blobs.push(bytes);
            }
        }
        let changed = FilesChanged { changes, left, ..FilesChanged::new(self.key.clone(), project) };
        let mut commit = commit_at(now_ms());
        // Must survive a power cut: the files themselves do not show that this program wrote them.
        commit.strength = Durability::Full;
        commit.fence.clone_from(&self.fence);
        commit.actor.clone_from(&self.actor);
        commit.appends.push(append(&session::stream(self.session), &Event::FilesChanged(changed), &self.actor)?);
        commit.blobs = blobs;
        let Some(gone) = &self.gone else {
            self.journal.commit_blocking(commit)?;
            return Ok(());
        };
        let stored = tokio::runtime::Handle::current().block_on(async {
            tokio::select! {
                biased;
                stored = self.journal.commit(commit) => Some(stored),
                () = gone.cancelled() => None,
            }
        });
        // The waiting loop has ended, and the commit may or may not be stored: no file is touched, and the next
        // process does the merge.
        stored.ok_or(RuntimeError::NotOpen(self.session))??;
        Ok(())
    }
}

/// Records in the agent's session what a person is about to merge from a worktree, so that a rewind can undo it.
/// Blocking.
pub(crate) fn note_accepted(
    journal: &Journal,
    (copy, project): (&str, &Path),
    by: &Principal,
    changes: &[FileChange],
) -> Result<(), RuntimeError> {
    // The worktree of a fork has no agent: its session is the one that works in it.
    let Some(session) = user_mail::session_at(journal, &format!("agent/{copy}")) else { return Ok(()) };
    let merger =
        Merger { journal, session, fence: None, actor: by.address(), gone: None, key: format!("accept {copy}") };
    merger.note(project, changes)
}
