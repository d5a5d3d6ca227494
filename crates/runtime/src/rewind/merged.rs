//! What a copy brings into its project: one step, with how everything was before it.

use std::path::Path;

use max_team_core::event::Event;
use max_team_core::message::Principal;
use max_team_core::rewind::FilesChanged;
use max_team_journal::{Journal, Strength};
use max_team_tools::Root;
use max_team_tools::rewind::{Seen, Trees};
use tokio_util::sync::CancellationToken;

use crate::error::RuntimeError;
use crate::post;
use crate::session;
use crate::shared::{append, commit_at, now_ms};

/// Merges something into a project, and says what that changed; nothing, if nothing has. Blocking.
pub(crate) fn watched<T>(
    trees: &Trees,
    project: &Path,
    key: String,
    merge: impl FnOnce() -> T,
) -> (T, Option<FilesChanged>) {
    let root = Root::open(project).ok();
    let watch = root.as_ref().map(|root| trees.watch(root, &CancellationToken::new()));
    let came_to = merge();
    let changed = root.zip(watch).and_then(|(root, watch)| {
        let Seen { changes, left, since_ms } = watch.end(&root);
        let is_any = !changes.is_empty() || !left.is_empty();
        let root = root.path().display().to_string();
        is_any.then_some(FilesChanged { key, root, changes, left, seen: true, since_ms })
    });
    (came_to, changed)
}

/// Lets a person merge the copy of an agent into its project, and writes down in the agent's session what that changed, so that
/// it can be put back with the rest. If that cannot be written, it is done all the same, and counts as the person's own
/// work. Blocking.
pub fn accepted<T>(
    journal: &Journal,
    home: &Path,
    (copy, project): (&str, &Path),
    by: &Principal,
    merge: impl FnOnce() -> T,
) -> (T, Result<(), RuntimeError>) {
    // The copy of a fork has no agent: its session is the one that works in it.
    let Some(session) = post::session_at(journal, &format!("agent/{copy}")) else { return (merge(), Ok(())) };
    let (came_to, changed) = watched(&Trees::within(home), project, format!("accept {copy}"), merge);
    let write = |changed: FilesChanged| {
        let stream = session::stream(session);
        let mut commit = commit_at(now_ms());
        commit.strength = Strength::Full;
        commit.actor = by.address();
        commit.appends.push(append(&stream, &Event::FilesChanged(changed), &commit.actor)?);
        journal.commit_blocking(commit)?;
        Ok(())
    };
    (came_to, changed.map_or(Ok(()), write))
}
