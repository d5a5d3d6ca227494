//! Changes that a scan of the tree has found: steps in the streams of the sessions whose commands ran.

use std::collections::BTreeMap;
use std::io;

use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_core::rewind::FilesChanged;
use max_team_journal::{Durability, Journal};
use max_team_tools::rewind::{CommandCaller, KeptFiles, TrackedTrees, TreeStep};

use crate::error::RuntimeError;
use crate::session::{self, Sessions};
use crate::shared::{append, commit_at, now_ms};

/// Commits a step. Blocking.
pub(crate) fn record_tree_step(journal: &Journal, step: TreeStep) -> io::Result<()> {
    record(journal, step).map_err(io::Error::other)
}

fn record(
    journal: &Journal,
    TreeStep { root, callers, changes, left, since_ms }: TreeStep,
) -> Result<(), RuntimeError> {
    let mut sessions: BTreeMap<SessionId, Vec<String>> = BTreeMap::new();
    for caller in callers {
        sessions.entry(caller.session).or_default().push(caller.call);
    }
    let mut commit = commit_at(now_ms());
    for (session, calls) in sessions {
        let mut calls = calls.into_iter();
        // A session may have been forgotten since its command was killed.
        let Some(key) = calls.next().filter(|_| Sessions::new(journal).row(session).is_ok()) else { continue };
        let (changes, left) = (changes.clone(), left.clone());
        let step = FilesChanged::new(key, &root);
        let step = FilesChanged { changes, left, seen: true, since_ms, also: calls.collect(), ..step };
        commit.appends.push(append(&session::stream(session), &Event::FilesChanged(step), &commit.actor)?);
    }
    if !commit.appends.is_empty() {
        journal.commit_blocking(commit)?;
    }
    Ok(())
}

/// Commits a step about files that no scan watches: what a command may be about to delete, or (`seen`) what it left there.
/// Blocking.
pub(crate) fn record_deletion(
    journal: &Journal,
    caller: &CommandCaller,
    (root, changes): &KeptFiles,
    seen: bool,
) -> Result<(), RuntimeError> {
    let step = FilesChanged { changes: changes.clone(), seen, ..FilesChanged::new(caller.call.clone(), root) };
    let mut commit = commit_at(now_ms());
    // The files that this step names are deleted next.
    commit.strength = Durability::Full;
    commit.appends.push(append(&session::stream(caller.session), &Event::FilesChanged(step), &commit.actor)?);
    journal.commit_blocking(commit)?;
    Ok(())
}

/// Records the changes of commands of a session whose process was killed. Blocking.
pub(crate) fn settle(journal: &Journal, trees: &TrackedTrees, session: SessionId) {
    trees.settle(session, &|step| record_tree_step(journal, step));
}
