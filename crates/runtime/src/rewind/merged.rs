//! What a copy brings into its project: one step, written down with how everything was before anything is touched.

use std::path::Path;

use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::limits::REWIND_BYTES_MAX;
use max_team_core::message::Principal;
use max_team_core::rewind::{Change, FilesChanged, Left, State, Why};
use max_team_journal::{Fence, Journal, Strength};
use max_team_tools::rewind::Ground;
use tokio_util::sync::CancellationToken;

use crate::error::RuntimeError;
use crate::post;
use crate::session;
use crate::shared::{append, commit_at, now_ms};

/// Whoever merges copies into a project, and the session that this is a step of.
#[derive(Debug)]
pub(crate) struct Merger<'a> {
    pub(crate) journal: &'a Journal,
    pub(crate) session: SessionId,
    /// Who still has to own the session.
    pub(crate) fence: Option<Fence>,
    /// Who does it.
    pub(crate) actor: String,
    /// Fires when whoever began it is gone; a person at a command waits to the end.
    pub(crate) gone: Option<CancellationToken>,
    /// What it is called: of a call, its agent's stream and its key.
    pub(crate) key: String,
}

impl Merger<'_> {
    /// Writes down what is about to be changed, with the bytes that are there. Blocking.
    pub(crate) fn note(&self, project: &Path, changes: &[Change]) -> Result<(), RuntimeError> {
        let (mut blobs, mut left, mut held) = (Vec::new(), Vec::new(), 0_u64);
        let ground = Ground::open(project).ok();
        let mut changes = changes.to_vec();
        for Change { path, before, after } in changes.iter_mut().filter(|change| change.before != State::Gone) {
            let now = ground.as_ref().and_then(|ground| ground.look(path).ok());
            // What is not as it was any more is not taken.
            let Some((now, Some(bytes))) = now.filter(|(now, _)| now == before) else { continue };
            // The same, and who may do what with it.
            (*before, *after) = (now, after.in_stead_of(now));
            held = held.saturating_add(bytes.len() as u64);
            if held > REWIND_BYTES_MAX {
                left.push(Left { path: path.clone(), why: Why::Many });
            } else {
                blobs.push(bytes);
            }
        }
        let (key, root) = (self.key.clone(), project.display().to_string());
        let changed = FilesChanged { key, root, changes, left, seen: false, moved: Vec::new(), since_ms: 0 };
        let mut commit = commit_at(now_ms());
        // Nobody can tell from a file whether it was us who put it there.
        commit.strength = Strength::Full;
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
        // Nobody waits for it any more, nor knows whether it was stored: nothing is touched, and the next process does it.
        stored.ok_or(RuntimeError::NotOpen(self.session))??;
        Ok(())
    }
}

/// Writes down in its agent's session what a person is about to take out of a copy, so that it can be put back with the rest. Blocking.
pub fn note_accepted(
    journal: &Journal,
    (copy, project): (&str, &Path),
    by: &Principal,
    changes: &[Change],
) -> Result<(), RuntimeError> {
    // The copy of a fork has no agent: its session is the one that works in it.
    let Some(session) = post::session_at(journal, &format!("agent/{copy}")) else { return Ok(()) };
    let merger =
        Merger { journal, session, fence: None, actor: by.address(), gone: None, key: format!("accept {copy}") };
    merger.note(project, changes)
}
