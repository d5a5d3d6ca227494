//! Agents that work in a worktree of the project, and what becomes of their changes.
//!
//! A worktree has the agent's id as its name, so that a restarted agent finds it. The agent's journalled settings say
//! where it is (`Permissions::copy`): an agent that was given a worktree never works in the project itself. Without a
//! sandbox nothing would keep an agent inside, so then there are no worktrees. `tools::worktree` makes and merges them,
//! and can repeat every step; nothing is journalled here besides.

mod decision;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::agent::{Definition, Isolation, Settings};
use max_team_core::hash::Hash;
use max_team_core::id::AgentId;
use max_team_core::plan::event::Evidence;
use max_team_core::policy::{Action, ActionKind, MergeDecision, Permissions, Visibility};
use max_team_core::rewind;
use max_team_tools::worktree::{
    Accept, Change, Fate, IgnoredFiles, MergeResult, Review, Worktree, WorktreeError, WorktreeOptions, Worktrees,
    file_names,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::active_session::ActiveSession;
use crate::error::RuntimeError;
use crate::rewind::Merger;
use crate::shared::{Shared, now_ms};

pub use decision::{ConflictText, WorktreeReview};
pub(crate) use decision::{WorktreeDecision, accept_by};

/// Files in conflict that a message names at most.
const NAMED_MAX: usize = 10;
/// What a merge is called among the checks of a task.
pub(crate) const MERGE: &str = "merge into the project";

/// The text about a worktree that no longer exists.
pub(crate) const GONE: &str = "The worktree is gone: its changes were accepted or rejected.";

/// Whether an agent works in a worktree: because of its definition or of its task.
pub(crate) fn wanted(who: Isolation, what: Isolation) -> bool {
    who == Isolation::Worktree || what == Isolation::Worktree
}

/// The settings of an agent that works in its worktree.
pub(crate) fn within(shared: &Shared, agent: AgentId, mut settings: Settings) -> Settings {
    settings.permissions.copy = copies(shared).root(&agent.to_string()).display().to_string();
    settings
}

/// The present permissions, with the worktree that the agent has.
pub(crate) fn still(known: &Permissions, now: &Permissions) -> Permissions {
    Permissions { copy: known.copy.clone(), ..now.clone() }
}

/// The name of the worktree in which an agent works. It may be its caller's: a called agent works in the worktree of
/// its caller.
pub(crate) fn id_of(settings: &Settings) -> String {
    let folder = Path::new(&settings.permissions.copy).parent().and_then(Path::file_name);
    folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The worktree whose tree this is, if it is one.
pub(crate) fn around(shared: &Shared, root: &Path) -> Option<Worktree> {
    let id = root.parent()?.file_name()?.to_str()?;
    let is_within = [Some(shared.home.clone()), shared.home.canonicalize().ok()];
    is_within.iter().flatten().find(|home| root.starts_with(home))?;
    copies(shared).find(id).ok().filter(|copy| copy.root() == root)
}

/// Whether no worktree of that name exists any more.
pub(crate) fn is_gone(shared: &Shared, id: &str) -> bool {
    matches!(copies(shared).find(id), Err(WorktreeError::NotFound(_)))
}

pub(crate) fn copies(shared: &Shared) -> Worktrees {
    Worktrees::within(&shared.home)
}

/// An agent that works in a worktree, and its task.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    /// The name of the worktree.
    pub id: String,
    pub project: PathBuf,
    pub settings: Settings,
    pub by: String,
    /// Files that are asked for by name: git may ignore them.
    pub named: Vec<String>,
}

impl Worker {
    /// A lead with a worktree of its own.
    pub(crate) fn leading(active: &ActiveSession, settings: &Settings, definition: &Definition) -> Self {
        let (id, project, by) = (active.lead.to_string(), active.root.clone(), definition.name.clone());
        Self { id, project, settings: settings.clone(), by, named: Vec::new() }
    }

    /// The agent's worktree; made if it does not exist. Blocking.
    pub(crate) fn copy(&self, shared: &Shared, cancel: &CancellationToken) -> Result<Worktree, WorktreeError> {
        if !shared.walled {
            return Err(WorktreeError::NoSandbox);
        }
        let sight = sight(&self.settings);
        let (id, project, named, by) = (&self.id, &self.project, &self.named, &self.by);
        copies(shared).make(&WorktreeOptions { id, project, sight: &sight, named, by, at_ms: now_ms() }, cancel)
    }

    /// Makes the worktree before its agent starts; fails with the reason as text.
    pub(crate) async fn prepare(self, shared: &Arc<Shared>, cancel: &CancellationToken) -> Result<(), String> {
        let (shared, cancel) = (Arc::clone(shared), cancel.clone());
        let made = tokio::task::spawn_blocking(move || self.copy(&shared, &cancel).map(drop)).await;
        let error = match made {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Err(format!("there is no copy to work in: {error}"))
    }

    /// The worktree of an agent that is about to start. It must exist already, because making one would take too long
    /// here.
    pub(crate) fn place(&self, shared: &Shared) -> Result<Worktree, RuntimeError> {
        let found = if shared.walled { copies(shared).find(&self.id) } else { Err(WorktreeError::NoSandbox) };
        let path = || self.settings.permissions.copy.clone();
        found.map_err(|error| RuntimeError::Root { path: path(), detail: error.to_string() })
    }
}

fn sight(settings: &Settings) -> Visibility {
    Visibility::from_policy(&settings.constraints, &settings.permissions)
}

/// Records the merge, then merges. Blocking.
fn accept(
    copy: &mut Worktree,
    accept: &Accept<'_>,
    merger: &Merger<'_>,
    cancel: &CancellationToken,
) -> Result<MergeResult, WorktreeError> {
    let project = copy.project().to_owned();
    let mut note = |changes: &[rewind::FileChange]| merger.note(&project, changes).map_err(|error| error.to_string());
    copy.accept_noted(accept, cancel, &mut |_| {}, &mut note)
}

/// Merges the reviewed changes of a worktree all or none, or says what prevents it. Blocking.
pub(crate) fn merge(
    copy: &mut Worktree,
    shown: &Review,
    sight: &Visibility,
    merger: &Merger<'_>,
    cancel: &CancellationToken,
) -> Evidence {
    let told = |ok, detail: String| Evidence::new(MERGE, ok, detail);
    let whole = Accept { files: None, whole: true, shown: Some(shown), sight };
    match accept(copy, &whole, merger, cancel) {
        Err(error) => told(false, error.to_string()),
        Ok(merged) if merged.stuck.is_empty() => {
            let files = match merged.files.len() {
                1 => "1 file".to_owned(),
                files => format!("{files} files"),
            };
            told(true, format!("{files}{}", not_accepted(copy.id(), &merged.ignored)))
        }
        Ok(merged) => {
            let id = copy.id();
            told(
                false,
                format!(
                    "nothing was merged: {}; see `max-team worktrees show {id}`, and accept what fits with \
                     `max-team worktrees accept {id}`",
                    stuck(&merged.stuck)
                ),
            )
        }
    }
}

/// The note about files that git ignores and that were not asked for; empty if there are none.
fn not_accepted(id: &str, ignored: &IgnoredFiles) -> String {
    if ignored.count() == 0 {
        return String::new();
    }
    let more = if ignored.more == 0 { String::new() } else { format!(" ({} in all)", ignored.count()) };
    format!(
        "; ignored by git, not accepted and still in the worktree: {}{more}; `max-team worktrees accept {id} FILE` accepts one \
         by its name, `max-team worktrees reject {id}` removes the worktree",
        file_names(ignored.files.iter())
    )
}

/// Removes an agent's worktree if nothing in it is left to decide. Blocking.
pub(crate) fn drop_settled(shared: &Shared, agent: AgentId) {
    let Ok(copy) = copies(shared).find(&agent.to_string()) else { return };
    if copy.is_settled() {
        // What cannot be removed is listed, and can be cleaned later.
        drop(copy.remove());
    }
}

/// Removes the worktree of that name if no agent works in it.
pub(crate) async fn drop_unused(shared: &Arc<Shared>, id: String) {
    let shared = Arc::clone(shared);
    // What cannot be removed is listed, and can be cleaned later.
    let dropped = tokio::task::spawn_blocking(move || copies(&shared).find(&id).and_then(remove_free));
    drop(dropped.await);
}

/// Changes in an agent's worktree that wait for a decision.
pub(crate) struct Changed {
    pub id: String,
    /// Whether there are files to decide about; not if there are only ignored ones, or if the worktree could not be
    /// read.
    pub is_open: bool,
    /// The diff for the person who decides, within git's bounds.
    pub diff: String,
    /// For the same person: what a yes would not merge.
    pub asides: String,
    /// The summary for an agent that is only told.
    pub news: String,
}

impl Changed {
    /// The text about a worktree that could not be read.
    fn unseen(id: &str, why: &str) -> Self {
        let news = format!(
            "[The worktree `{id}` could not be read: {why}. The user looks again with `max-team worktrees show \
             {id}`.]"
        );
        Self { id: id.to_owned(), is_open: false, diff: String::new(), asides: String::new(), news }
    }

    /// The question whether to merge it, with the agent's answer.
    pub(crate) fn question(self, said: String) -> Action {
        let after = Some(Hash::of(&self.diff));
        Action { kind: ActionKind::Merge, preview: self.asides + &self.diff, after, said, ..Action::read(self.id) }
    }
}

/// The changes that an agent left in its worktree after its answer; `None` if nothing differs.
pub(crate) async fn changed(shared: &Arc<Shared>, agent: AgentId) -> Option<Changed> {
    let (shared, id) = (Arc::clone(shared), agent.to_string());
    let looked = tokio::task::spawn_blocking(move || looked_at(&shared, &id)).await;
    // A crashed look does not mean that there are no changes.
    looked.unwrap_or_else(|crash| Some(Changed::unseen(&agent.to_string(), &crash.to_string())))
}

fn looked_at(shared: &Shared, id: &str) -> Option<Changed> {
    let look =
        |copy: Worktree| copy.review(&Visibility::default(), &CancellationToken::new()).map(|review| (copy, review));
    let (copy, review) = match copies(shared).find(id).and_then(look) {
        Ok(seen) => seen,
        Err(WorktreeError::NotFound(_)) => return None,
        Err(error) => return Some(Changed::unseen(id, &error.to_string())),
    };
    let changed: Vec<&str> = review.open().map(|change| change.path.as_str()).collect();
    if changed.is_empty() && review.ignored.count() == 0 {
        // What cannot be removed is listed, and can be cleaned later.
        drop(remove_free(copy));
        return None;
    }
    let (is_open, news) = (!changed.is_empty(), kept(copy.id(), &review, &changed));
    let asides = asides(&review);
    Some(Changed { id: copy.id().to_owned(), is_open, news, diff: review.diff.text, asides })
}

/// The files that a yes would not accept, a line each.
fn asides(review: &Review) -> String {
    let why = |change: &Change| match &change.fate {
        Fate::Conflict { why } | Fate::Refused { why } => {
            Some(format!("`{}` cannot be accepted: {why}\n", change.path))
        }
        _ => None,
    };
    let mut text: String = review.changes.iter().filter_map(why).take(NAMED_MAX).collect();
    if review.ignored.count() > 0 {
        let more = if review.ignored.more == 0 { "" } else { " and more" };
        text.push_str(&format!("ignored by git and not accepted: {}{more}\n", file_names(review.ignored.files.iter())));
    }
    text
}

/// Removes a worktree unless an agent works in it.
fn remove_free(copy: Worktree) -> Result<(), WorktreeError> {
    if copy.is_occupied() { Ok(()) } else { copy.remove() }
}

fn kept(id: &str, review: &Review, changed: &[&str]) -> String {
    let ignored = not_accepted(id, &review.ignored);
    if changed.is_empty() {
        return format!("[No file that git knows has changed{ignored}.]");
    }
    let stuck = review.changes.iter().filter(|change| matches!(change.fate, Fate::Conflict { .. })).count();
    let conflicts = if stuck == 0 { String::new() } else { format!(" {stuck} of them conflict with the project.") };
    format!(
        "[The changes are in a worktree and not in the project yet ({} changed: {}).{conflicts} The user accepts them with \
         `max-team worktrees accept {id}`, looks with `show`, rejects them with `reject`{ignored}.]",
        changed.len(),
        file_names(changed.iter())
    )
}

/// Carries out the user's decision about a worktree and describes the outcome. A repetition changes nothing. Blocking.
pub(crate) fn settle(
    shared: &Shared,
    id: &str,
    settled: MergeDecision,
    shown: Option<Hash>,
    merger: &Merger<'_>,
) -> String {
    let done = copies(shared).find(id).and_then(|copy| match settled {
        MergeDecision::Taken => take(copy, shown, merger),
        MergeDecision::Dropped => {
            copy.remove().map(|()| "The user has rejected the changes; nothing of them is left.".to_owned())
        }
        MergeDecision::Left => Ok("The changes stay in the worktree.".to_owned()),
    });
    let failed = |error: WorktreeError| match error {
        WorktreeError::NotFound(_) => GONE.to_owned(),
        error => format!("Nothing was done about the changes in the worktree `{id}`: {error}"),
    };
    format!("[{}]", done.unwrap_or_else(failed))
}

/// Accepts the changes that were shown, as far as they can be merged.
fn take(mut copy: Worktree, shown: Option<Hash>, merger: &Merger<'_>) -> Result<String, WorktreeError> {
    let (sight, cancel) = (Visibility::default(), CancellationToken::new());
    let review = copy.review(&sight, &cancel)?;
    let id = copy.id().to_owned();
    if shown.is_some_and(|shown| shown != Hash::of(&review.diff.text)) {
        return Ok(format!(
            "The worktree has changed since the user said yes: nothing was accepted. The user looks with \
             `max-team worktrees show {id}` and accepts with `accept`."
        ));
    }
    let shown = Accept { files: None, whole: false, shown: Some(&review), sight: &sight };
    let merged = accept(&mut copy, &shown, merger, &cancel)?;
    let mut words = match merged.files.len() {
        1 => "The user has accepted the changes: 1 file is in the project now.".to_owned(),
        files => format!("The user has accepted the changes: {files} files are in the project now."),
    };
    if !merged.stuck.is_empty() {
        words.push_str(&format!(
            " Not accepted: {}; they stay in the worktree, see `max-team worktrees show {id}`.",
            stuck(&merged.stuck)
        ));
    }
    if merged.ignored.count() > 0 {
        words = format!("{}{}", words.trim_end_matches('.'), not_accepted(&id, &merged.ignored));
    }
    if merged.open + merged.ignored.count() == 0 {
        remove_free(copy)?;
    }
    Ok(words)
}

/// Files that cannot be merged, and why.
fn stuck(files: &[(String, String)]) -> String {
    let named: Vec<String> = files.iter().take(NAMED_MAX).map(|(path, why)| format!("`{path}`: {why}")).collect();
    let more = match files.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join("; "))
}

/// Removes what killed processes left, on a thread of its own: removing worktrees of a large project takes minutes,
/// and if this process ends before, the next one continues.
pub(crate) fn sweep(home: &Path) {
    let copies = Worktrees::within(home);
    let sweep = move || drop(copies.sweep());
    // Without a thread for it, what was left stays until there is one.
    drop(std::thread::Builder::new().name("sweep".to_owned()).spawn(sweep));
}

/// Undoes the unfinished merges of agents that were killed. Blocking.
pub(crate) fn recover(home: &Path, agents: &[AgentId]) {
    let copies = Worktrees::within(home);
    // A merge that cannot be undone now stays recorded: it is tried again before the next merge, and `show` reports
    // it.
    for agent in agents {
        drop(copies.find(&agent.to_string()).and_then(|mut copy| copy.recover(&CancellationToken::new())));
    }
}

/// A worktree with changes that wait for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitingWorktree {
    pub id: String,
    /// The agent that worked in it, and its task.
    pub by: String,
    /// Changed files that wait for a decision.
    pub open: usize,
    /// Files that git ignores and that were not asked for.
    pub ignored: usize,
    /// Why the worktree could not be read, if so: then the counts mean nothing.
    pub trouble: Option<String>,
}

/// The worktrees of these names with changes that wait, or may wait, for a decision. Blocking.
pub(crate) fn waiting(home: &Path, names: &BTreeSet<String>) -> Vec<WaitingWorktree> {
    let copies = Worktrees::within(home);
    let mut found: Vec<_> = names.iter().filter_map(|id| waits(&copies, id)).collect();
    found.sort_by_key(|(made_at_ms, _)| *made_at_ms);
    found.into_iter().map(|(_, waiting)| waiting).collect()
}

/// What waits in the worktree of that name, and when it was made.
fn waits(copies: &Worktrees, id: &str) -> Option<(i64, WaitingWorktree)> {
    let (mut made_at_ms, mut by) = (i64::MAX, String::new());
    let seen = copies.find(id).and_then(|copy| {
        (made_at_ms, by) = (copy.made_at_ms(), copy.by().to_owned());
        copy.review(&Visibility::default(), &CancellationToken::new())
    });
    let (open, ignored, trouble) = match seen {
        Ok(review) => (review.open().count(), review.ignored.count(), None),
        Err(WorktreeError::NotFound(_)) => return None,
        Err(error) => (0, 0, Some(error.to_string())),
    };
    let id = id.to_owned();
    (open + ignored > 0 || trouble.is_some())
        .then_some((made_at_ms, WaitingWorktree { id, by, open, ignored, trouble }))
}
