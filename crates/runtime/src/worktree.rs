//! Agents that work in a copy of the project, and what becomes of what they did there.
//!
//! An agent's copy bears the agent's name, so whoever sits down again finds it. Its settings say where it is
//! (`Permissions::copy`), and they are journalled: an agent that was given a copy never works in the project itself. A
//! copy without walls would keep nobody in, so without them there is none. Copies are made and merged by
//! `tools::copy`, which can do every step again; nothing here is written down besides.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::hash::Hash;
use max_team_core::id::AgentId;
use max_team_core::plan::event::Evidence;
use max_team_core::policy::{Action, Deed, Permissions, Settled, Sight};
use max_team_core::rewind;
use max_team_core::team::{Definition, Isolation, Settings};
use max_team_tools::copy::{Accept, Change, Copies, Copy, CopyError, Fate, Ignored, Merged, Order, Review, named};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::error::RuntimeError;
use crate::floor::Floor;
use crate::rewind::Merger;
use crate::shared::{Shared, now_ms};

/// Files in conflict that are named to whoever must do something about them.
const NAMED_MAX: usize = 10;
/// What a merge is called among the checks of a task.
pub(crate) const MERGE: &str = "merge into the project";

/// What is said of a copy that is not there any more.
pub(crate) const GONE: &str = "The copy is gone: what was in it has been taken or dropped.";

/// Whether somebody works in a copy: because of who it is, or of what it is given to do.
pub(crate) fn wanted(who: Isolation, what: Isolation) -> bool {
    who == Isolation::Worktree || what == Isolation::Worktree
}

/// The same settings for somebody who works in a copy.
pub(crate) fn within(shared: &Shared, agent: AgentId, mut settings: Settings) -> Settings {
    settings.permissions.copy = copies(shared).root(&agent.to_string()).display().to_string();
    settings
}

/// What settings say now, for somebody who may work in a copy.
pub(crate) fn still(known: &Permissions, now: &Permissions) -> Permissions {
    Permissions { copy: known.copy.clone(), ..now.clone() }
}

/// What the copy is called that somebody works in: whoever is called from within one works in the same.
pub(crate) fn id_of(settings: &Settings) -> String {
    let folder = Path::new(&settings.permissions.copy).parent().and_then(Path::file_name);
    folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The copy whose tree this is, if it is one's.
pub(crate) fn around(shared: &Shared, root: &Path) -> Option<Copy> {
    let id = root.parent()?.file_name()?.to_str()?;
    let is_within = [Some(shared.home.clone()), shared.home.canonicalize().ok()];
    is_within.iter().flatten().find(|home| root.starts_with(home))?;
    copies(shared).find(id).ok().filter(|copy| copy.root() == root)
}

/// Whether there is no copy of that name any more.
pub(crate) fn is_gone(shared: &Shared, id: &str) -> bool {
    matches!(copies(shared).find(id), Err(CopyError::NotFound(_)))
}

pub(crate) fn copies(shared: &Shared) -> Copies {
    Copies::within(&shared.home)
}

/// Whoever works in a copy, and at what.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    /// What the copy is called.
    pub id: String,
    pub project: PathBuf,
    pub settings: Settings,
    pub by: String,
    /// Files that are asked for by name: git may ignore them.
    pub named: Vec<String>,
}

impl Worker {
    /// A lead, whose copy is its own.
    pub(crate) fn leading(floor: &Floor, settings: &Settings, definition: &Definition) -> Self {
        let (id, project, by) = (floor.lead.to_string(), floor.root.clone(), definition.name.clone());
        Self { id, project, settings: settings.clone(), by, named: Vec::new() }
    }

    /// The copy of somebody whose settings say that there is one; made if it is not there. Blocking.
    pub(crate) fn copy(&self, shared: &Shared, cancel: &CancellationToken) -> Result<Copy, CopyError> {
        if !shared.walled {
            return Err(CopyError::NoWalls);
        }
        let sight = sight(&self.settings);
        let (id, project, named, by) = (&self.id, &self.project, &self.named, &self.by);
        copies(shared).make(&Order { id, project, sight: &sight, named, by, at_ms: now_ms() }, cancel)
    }

    /// Makes the copy before anybody is told to begin; words on why there is none.
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

    /// The copy of somebody who is about to sit down. It is there: making one takes too long for whoever waits.
    pub(crate) fn place(&self, shared: &Shared) -> Result<Copy, RuntimeError> {
        let found = if shared.walled { copies(shared).find(&self.id) } else { Err(CopyError::NoWalls) };
        let path = || self.settings.permissions.copy.clone();
        found.map_err(|error| RuntimeError::Root { path: path(), detail: error.to_string() })
    }
}

fn sight(settings: &Settings) -> Sight {
    Sight::under(&settings.constraints, &settings.permissions)
}

/// Merges, once that is written down. Blocking.
fn accept(
    copy: &mut Copy,
    accept: &Accept<'_>,
    merger: &Merger<'_>,
    cancel: &CancellationToken,
) -> Result<Merged, CopyError> {
    let project = copy.project().to_owned();
    let mut note = |changes: &[rewind::Change]| merger.note(&project, changes).map_err(|error| error.to_string());
    copy.accept_noted(accept, cancel, &mut |_| {}, &mut note)
}

/// Merges what was shown of a copy whole, or says what stands in the way. Blocking.
pub(crate) fn merge(
    copy: &mut Copy,
    shown: &Review,
    sight: &Sight,
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
            told(true, format!("{files}{}", not_taken(copy.id(), &merged.ignored)))
        }
        Ok(merged) => {
            let id = copy.id();
            told(
                false,
                format!(
                    "nothing was merged: {}; see `max-team worktrees show {id}`, and take what fits with \
                     `max-team worktrees accept {id}`",
                    stuck(&merged.stuck)
                ),
            )
        }
    }
}

/// What is said of files that git ignores and nobody asked for; nothing if there are none.
fn not_taken(id: &str, ignored: &Ignored) -> String {
    if ignored.count() == 0 {
        return String::new();
    }
    let more = if ignored.more == 0 { String::new() } else { format!(" ({} in all)", ignored.count()) };
    format!(
        "; ignored by git, not taken and still in the copy: {}{more}; `max-team worktrees accept {id} FILE` takes one by \
         its name, `max-team worktrees reject {id}` drops the copy",
        named(ignored.files.iter())
    )
}

/// Drops an agent's copy if nobody has anything to decide about it any more. Blocking.
pub(crate) fn drop_settled(shared: &Shared, agent: AgentId) {
    let Ok(copy) = copies(shared).find(&agent.to_string()) else { return };
    if copy.is_settled() {
        // What cannot be removed is listed, and can be cleaned later.
        drop(copy.remove());
    }
}

/// Drops the copy of that name, in which nobody has begun.
pub(crate) async fn drop_unused(shared: &Arc<Shared>, id: String) {
    let shared = Arc::clone(shared);
    // What cannot be removed is listed, and can be cleaned later.
    let dropped = tokio::task::spawn_blocking(move || copies(&shared).find(&id).and_then(remove_free));
    drop(dropped.await);
}

/// What somebody did in a copy of theirs that nobody has decided about.
pub(crate) struct Changed {
    pub id: String,
    /// Whether there are files to decide about; not if all there is are ignored ones, or if nobody could look.
    pub is_open: bool,
    /// For whoever decides, within git's bounds.
    pub diff: String,
    /// For the same: what a yes would not take.
    pub asides: String,
    /// For whoever is only told.
    pub news: String,
}

impl Changed {
    /// What is said where nobody could look.
    fn unseen(id: &str, why: &str) -> Self {
        let news = format!(
            "[Nobody could look at what is in the copy `{id}`: {why}. The user looks again with `max-team worktrees show \
             {id}`.]"
        );
        Self { id: id.to_owned(), is_open: false, diff: String::new(), asides: String::new(), news }
    }

    /// The question what becomes of it, with what whoever did it has said.
    pub(crate) fn question(self, said: String) -> Action {
        let after = Some(Hash::of(&self.diff));
        Action { deed: Deed::Merge, preview: self.asides + &self.diff, after, said, ..Action::read(self.id) }
    }
}

/// What an agent that has answered left in its copy; nothing if nothing differs there.
pub(crate) async fn changed(shared: &Arc<Shared>, agent: AgentId) -> Option<Changed> {
    let (shared, id) = (Arc::clone(shared), agent.to_string());
    let looked = tokio::task::spawn_blocking(move || looked_at(&shared, &id)).await;
    // That a look has broken says nothing about what there is to see.
    looked.unwrap_or_else(|crash| Some(Changed::unseen(&agent.to_string(), &crash.to_string())))
}

fn looked_at(shared: &Shared, id: &str) -> Option<Changed> {
    let look = |copy: Copy| copy.review(&Sight::default(), &CancellationToken::new()).map(|review| (copy, review));
    let (copy, review) = match copies(shared).find(id).and_then(look) {
        Ok(seen) => seen,
        Err(CopyError::NotFound(_)) => return None,
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

/// What a yes would not take, a line each.
fn asides(review: &Review) -> String {
    let why = |change: &Change| match &change.fate {
        Fate::Conflict { why } | Fate::Refused { why } => Some(format!("`{}` cannot be taken: {why}\n", change.path)),
        _ => None,
    };
    let mut text: String = review.changes.iter().filter_map(why).take(NAMED_MAX).collect();
    if review.ignored.count() > 0 {
        let more = if review.ignored.more == 0 { "" } else { " and more" };
        text.push_str(&format!("ignored by git and not taken: {}{more}\n", named(review.ignored.files.iter())));
    }
    text
}

/// Removes a copy unless somebody is at work in it.
fn remove_free(copy: Copy) -> Result<(), CopyError> {
    if copy.is_occupied() { Ok(()) } else { copy.remove() }
}

fn kept(id: &str, review: &Review, changed: &[&str]) -> String {
    let ignored = not_taken(id, &review.ignored);
    if changed.is_empty() {
        return format!("[Nothing has changed that git knows of{ignored}.]");
    }
    let stuck = review.changes.iter().filter(|change| matches!(change.fate, Fate::Conflict { .. })).count();
    let conflicts = if stuck == 0 { String::new() } else { format!(" {stuck} of them are in conflict with it.") };
    format!(
        "[The changes are in a copy and not in the project yet ({} changed: {}).{conflicts} The user takes them with \
         `max-team worktrees accept {id}`, looks with `show`, drops them with `reject`{ignored}.]",
        changed.len(),
        named(changed.iter())
    )
}

/// Does with a copy what the user has said, and says what came of it. Doing it again changes nothing. Blocking.
pub(crate) fn settle(shared: &Shared, id: &str, settled: Settled, shown: Option<Hash>, merger: &Merger<'_>) -> String {
    let done = copies(shared).find(id).and_then(|copy| match settled {
        Settled::Taken => take(copy, shown, merger),
        Settled::Dropped => {
            copy.remove().map(|()| "The user has dropped the changes; nothing of them is left.".to_owned())
        }
        Settled::Left => Ok("The changes stay in the copy.".to_owned()),
    });
    let failed = |error: CopyError| match error {
        CopyError::NotFound(_) => GONE.to_owned(),
        error => format!("Nothing was done about the changes in the copy `{id}`: {error}"),
    };
    format!("[{}]", done.unwrap_or_else(failed))
}

/// Takes what was shown, as far as it can be taken.
fn take(mut copy: Copy, shown: Option<Hash>, merger: &Merger<'_>) -> Result<String, CopyError> {
    let (sight, cancel) = (Sight::default(), CancellationToken::new());
    let review = copy.review(&sight, &cancel)?;
    let id = copy.id().to_owned();
    if shown.is_some_and(|shown| shown != Hash::of(&review.diff.text)) {
        return Ok(format!(
            "The user said yes to other changes than there are in the copy now: nothing was taken. They look with \
             `max-team worktrees show {id}` and take them with `accept`."
        ));
    }
    let shown = Accept { files: None, whole: false, shown: Some(&review), sight: &sight };
    let merged = accept(&mut copy, &shown, merger, &cancel)?;
    let mut words = match merged.files.len() {
        1 => "The user has taken the changes: 1 file is in the project now.".to_owned(),
        files => format!("The user has taken the changes: {files} files are in the project now."),
    };
    if !merged.stuck.is_empty() {
        words.push_str(&format!(
            " Not taken: {}; they stay in the copy, see `max-team worktrees show {id}`.",
            stuck(&merged.stuck)
        ));
    }
    if merged.ignored.count() > 0 {
        words = format!("{}{}", words.trim_end_matches('.'), not_taken(&id, &merged.ignored));
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

/// Sweeps what killed processes left. Nobody waits for it: the copies of a large project take minutes to go, and if this process
/// ends before, the next one goes on with it.
pub(crate) fn sweep(home: &Path) {
    let copies = Copies::within(home);
    let sweep = move || drop(copies.sweep());
    // Without a thread for it, what was left stays until there is one.
    drop(std::thread::Builder::new().name("sweep".to_owned()).spawn(sweep));
}

/// Puts back what these agents' merges had done when they were killed. Blocking.
pub(crate) fn recover(home: &Path, agents: &[AgentId]) {
    let copies = Copies::within(home);
    // What cannot be put back now stays written down: it is tried again before the next merge, and `show` tells of it.
    for agent in agents {
        drop(copies.find(&agent.to_string()).and_then(|mut copy| copy.recover(&CancellationToken::new())));
    }
}

/// A copy in which something waits for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// What it is called.
    pub id: String,
    /// Who worked in it, and at what.
    pub by: String,
    /// Files that nobody has decided about.
    pub open: usize,
    /// Files that git ignores and nobody has asked for.
    pub ignored: usize,
    /// Why nobody could look, if so: then nothing is known of its files.
    pub trouble: Option<String>,
}

/// The copies of these agents in which something waits, or may. Blocking.
pub(crate) fn waiting(home: &Path, agents: &[AgentId]) -> Vec<Waiting> {
    let (copies, names) = (Copies::within(home), agents.iter().map(ToString::to_string).collect::<BTreeSet<_>>());
    let mut found: Vec<_> = names.iter().filter_map(|id| waits(&copies, id)).collect();
    found.sort_by_key(|(made_at_ms, _)| *made_at_ms);
    found.into_iter().map(|(_, waiting)| waiting).collect()
}

/// What waits in the copy of that name, and when that was made.
fn waits(copies: &Copies, id: &str) -> Option<(i64, Waiting)> {
    let (mut made_at_ms, mut by) = (i64::MAX, String::new());
    let seen = copies.find(id).and_then(|copy| {
        (made_at_ms, by) = (copy.made_at_ms(), copy.by().to_owned());
        copy.review(&Sight::default(), &CancellationToken::new())
    });
    let (open, ignored, trouble) = match seen {
        Ok(review) => (review.open().count(), review.ignored.count(), None),
        Err(CopyError::NotFound(_)) => return None,
        Err(error) => (0, 0, Some(error.to_string())),
    };
    let id = id.to_owned();
    (open + ignored > 0 || trouble.is_some()).then_some((made_at_ms, Waiting { id, by, open, ignored, trouble }))
}
