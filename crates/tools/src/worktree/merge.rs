//! Merges files of a worktree into the project, or rejects them.
//!
//! The intent is written down first, with the state of each file before and after. Each file is then replaced in one
//! step, if it still is as it was. A merge that cannot be finished is put back (`undo`). After a crash the intent
//! tells how far it came: a file is as it was, and can be merged again; or as intended, and is done; or was changed
//! otherwise, and is left. Requested once more, the same files are merged as if nothing had happened.
//!
//! An all-or-nothing merge that did not finish is always undone, so that nothing is merged for a caller that has given up
//! meanwhile. A caller that still wants it begins again.

use std::path::Path;

use max_team_core::policy::Visibility;
use max_team_core::rewind;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::diff::{Fate, IS, Review};
use super::{Change, FileDecision, FileState, IgnoredFiles, Worktree, WorktreeError, manifest, root};
use crate::files::{Content, RelPath, Root, prune, replace, state};
use crate::git::GitError;
use crate::tool::ToolError;

/// The file of the intent.
pub(super) const FILE: &str = "merge.json";

/// Why a file is not merged.
const MEANWHILE: &str = "it has changed in the project meanwhile";
const SINCE: &str = "it has changed in the worktree since it was shown";

/// What is to be merged.
#[derive(Debug, Clone, Copy)]
pub struct Accept<'a> {
    /// These files; `None`: all that differ.
    pub files: Option<&'a [String]>,
    /// Nothing is merged unless all of them can be.
    pub whole: bool,
    /// Only what this review showed, and only as it was then; `None`: everything that differs.
    pub shown: Option<&'a Review>,
    /// What may be changed in the project.
    pub sight: &'a Visibility,
}

impl Accept<'_> {
    /// The files that are taken even if git ignores them.
    fn named(&self) -> Vec<&str> {
        let shown = self.shown.iter().flat_map(|shown| &shown.changes).map(|change| change.path.as_str());
        self.files.unwrap_or_default().iter().map(|file| clean(file)).chain(shown).collect()
    }
}

/// What came of a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MergeResult {
    /// Files that are in the project now.
    pub files: Vec<String>,
    /// Files that are not, and why.
    pub stuck: Vec<(String, String)>,
    /// How many files are still undecided, including those in conflict.
    pub open: usize,
    /// Files that git ignores and that were not named: they were not taken.
    pub ignored: IgnoredFiles,
}

/// How far a merge is: said before each file and after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeProgress {
    /// Files that are done.
    pub done: usize,
    /// Files there are.
    pub of: usize,
}

/// Records what a merge will do to the project's files, before it does anything; if that fails, nothing is done.
pub type RecordIntent<'a> = &'a mut dyn FnMut(&[rewind::FileChange]) -> Result<(), String>;

/// What a merge will do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MergeIntent {
    pub(super) items: Vec<MergeItem>,
    /// All of them, or none.
    #[serde(default)]
    pub(super) whole: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MergeItem {
    pub(super) path: String,
    pub(super) before: FileState,
    pub(super) after: FileState,
}

impl Worktree {
    /// Merges files into the project, without a record elsewhere. Blocking.
    pub fn accept(
        &mut self,
        accept: &Accept<'_>,
        cancel: &CancellationToken,
        step: &mut dyn FnMut(MergeProgress),
    ) -> Result<MergeResult, WorktreeError> {
        self.accept_noted(accept, cancel, step, &mut |_| Ok(()))
    }

    /// Like `accept`, but records first what will be done. Blocking.
    pub fn accept_noted(
        &mut self,
        accept: &Accept<'_>,
        cancel: &CancellationToken,
        step: &mut dyn FnMut(MergeProgress),
        note: RecordIntent<'_>,
    ) -> Result<MergeResult, WorktreeError> {
        let _held = self.hold_anew()?;
        self.close(cancel)?;
        // Naming a rejected file revokes the rejection; if the file cannot be taken, the earlier decision stands.
        let mut decided = Vec::new();
        for file in accept.files.unwrap_or_default() {
            decided.extend(self.record.settled.remove_entry(clean(file)));
        }
        let mut review = self.look(&accept.named(), accept.sight, cancel)?;
        let mut merged = MergeResult { ignored: review.ignored.clone(), ..MergeResult::default() };
        if let Some(shown) = accept.shown {
            merged.ignored.clone_from(&shown.ignored);
            merged.stuck = keep_to(&mut review, shown);
        }
        let mut items = Vec::new();
        for change in chosen(&review, accept.files)? {
            match &change.fate {
                Fate::Ready => items.push(item(change)),
                Fate::Done => merged.files.push(change.path.clone()),
                Fate::Rejected | Fate::Back => {}
                Fate::Conflict { why } | Fate::Refused { why } => merged.stuck.push((change.path.clone(), why.clone())),
            }
        }
        for (path, settled) in decided {
            let accepted = settled.accepted || merged.files.contains(&path);
            self.record.settled.insert(path, FileDecision { accepted, ..settled });
        }
        if !(accept.whole && !merged.stuck.is_empty() || items.is_empty()) {
            if cancel.is_cancelled() {
                return Err(GitError::Stopped.into());
            }
            let noted: Vec<rewind::FileChange> = items.iter().map(MergeItem::change).collect();
            note(&noted).map_err(WorktreeError::Unwritten)?;
            manifest::write(&self.home.join(FILE), &MergeIntent { items, whole: accept.whole })?;
            let done = self.go_through(cancel, step)?;
            merged.files.extend(done.files);
            merged.stuck.extend(done.stuck);
        }
        merged.files.sort();
        merged.open = self.undecided(&review);
        self.decide(&merged)?;
        Ok(merged)
    }

    /// Rejects files; they stay in the worktree. Nothing is written into the project. Blocking.
    pub fn reject(
        &mut self,
        files: &[String],
        sight: &Visibility,
        cancel: &CancellationToken,
    ) -> Result<MergeResult, WorktreeError> {
        let _held = self.hold_anew()?;
        let named: Vec<&str> = files.iter().map(|file| clean(file)).collect();
        let review = self.look(&named, sight, cancel)?;
        let chosen = chosen(&review, Some(files))?;
        self.leave()?;
        for change in chosen {
            let settled = FileDecision { accepted: false, back: false, after: change.after };
            self.record.settled.insert(change.path.clone(), settled);
        }
        let open = self.undecided(&review);
        let decided = MergeResult { open, ignored: review.ignored, ..MergeResult::default() };
        self.decide(&decided)?;
        Ok(decided)
    }

    /// Marks files that were put back in the worktree as not the agent's work: as long as they stay as they are now,
    /// they are merged only by name. Blocking.
    pub fn put_back(&mut self, files: &[String]) -> Result<(), WorktreeError> {
        let _held = self.hold_anew()?;
        let tree = root(&self.root())?;
        for file in files {
            let place = tree.place(file)?;
            let after = state(&tree, &place)?.at_other_path();
            self.record.settled.insert(place.to_string(), FileDecision { accepted: false, back: true, after });
        }
        self.record.write(&self.home)
    }

    /// Records what is still undecided.
    fn decide(&mut self, merged: &MergeResult) -> Result<(), WorktreeError> {
        (self.record.open, self.record.ignored) = (Some(merged.open), merged.ignored.count());
        self.record.write(&self.home)
    }

    fn undecided(&self, review: &Review) -> usize {
        let is_settled = |change: &&Change| {
            let settled = self.record.settled.get(&change.path);
            settled.is_some_and(|settled| settled.after == change.after)
        };
        review.open().filter(|change| !is_settled(change)).count()
    }

    /// Carries out the intent. A merge that cannot be finished is put back; if even that fails, the intent stays
    /// written down.
    fn go_through(
        &mut self,
        cancel: &CancellationToken,
        step: &mut dyn FnMut(MergeProgress),
    ) -> Result<MergeResult, WorktreeError> {
        let Some(intent) = self.intent()? else { return Ok(MergeResult::default()) };
        let settled = self.record.settled.clone();
        let gone = self.meanwhile(&intent).map_or_else(|| self.go(&intent, cancel, step), Ok);
        let gone = match gone {
            Ok(merged) if intent.whole && !merged.stuck.is_empty() => Ok(merged),
            other => match other.and_then(|merged| self.record.write(&self.home).map(|()| merged)) {
                Ok(merged) => {
                    manifest::remove(&self.home.join(FILE))?;
                    return Ok(merged);
                }
                err => err,
            },
        };
        let why = match &gone {
            Ok(merged) => merged.stuck.first().map(|(path, why)| format!("`{path}`: {why}")).unwrap_or_default(),
            Err(err) => err.to_string(),
        };
        self.record.settled.clone_from(&settled);
        let halt = self.go_back(&intent.items, &why)?;
        if !halt.stays.is_empty() {
            return Err(WorktreeError::Halted(Box::new(halt)));
        }
        // The record may be on the disk although writing it reported a failure.
        self.resettle(settled)?;
        manifest::remove(&self.home.join(FILE))?;
        match gone {
            Ok(merged) => Ok(MergeResult { stuck: merged.stuck, ..MergeResult::default() }),
            Err(_) if !intent.whole => Err(WorktreeError::Halted(Box::new(halt))),
            Err(err) => Err(err),
        }
    }

    /// The files that block an all-or-nothing merge, if there are any.
    fn meanwhile(&self, intent: &MergeIntent) -> Option<MergeResult> {
        let project = root(&self.record.project).ok().filter(|_| intent.whole)?;
        let others = intent.items.iter().filter(|item| !item.fits(&project));
        let stuck: Vec<_> = others.map(|item| (item.path.clone(), MEANWHILE.to_owned())).collect();
        (!stuck.is_empty()).then(|| MergeResult { stuck, ..MergeResult::default() })
    }

    /// Merges one file after the other. An all-or-nothing merge stops at the first that cannot be merged, or when it
    /// is cancelled.
    fn go(
        &mut self,
        intent: &MergeIntent,
        cancel: &CancellationToken,
        step: &mut dyn FnMut(MergeProgress),
    ) -> Result<MergeResult, WorktreeError> {
        let (project, is) = (root(&self.record.project)?, root(&self.home.join(IS))?);
        let (of, mut merged) = (intent.items.len(), MergeResult::default());
        for (done, item) in intent.items.iter().enumerate() {
            step(MergeProgress { done, of });
            if intent.whole && cancel.is_cancelled() {
                return Err(GitError::Stopped.into());
            }
            match put(&project, &is, item, &self.root()) {
                Ok(()) => {
                    self.record.settled.insert(item.path.clone(), FileDecision::taken(item.after));
                    merged.files.push(item.path.clone());
                }
                Err(ToolError::Correctable(why)) => {
                    merged.stuck.push((item.path.clone(), why));
                    if intent.whole {
                        return Ok(merged);
                    }
                }
                Err(fatal) => return Err(fatal.into()),
            }
        }
        step(MergeProgress { done: of, of });
        Ok(merged)
    }
}

impl MergeItem {
    fn change(&self) -> rewind::FileChange {
        rewind::FileChange { path: self.path.clone(), before: self.before, after: self.after }
    }

    /// Whether the project has it as it was, or as it will be.
    fn fits(&self, project: &Root) -> bool {
        let now = self.now(project);
        // A folder makes room once it is empty.
        now == self.before || now == self.after || (self.before, now) == (FileState::Gone, FileState::Other)
    }
}

fn put(project: &Root, is: &Root, item: &MergeItem, tree: &Path) -> Result<(), ToolError> {
    let place = project.place(&item.path)?;
    let content = if item.after == FileState::Gone { Some(Content::Gone) } else { Content::read(is, &place)? };
    let same = content.filter(|content| content.state() == item.after);
    let content = same.ok_or_else(|| ToolError::correctable(format!("`{place}` is not what was shown any more")))?;
    // The rules were asked when the file was chosen; protected files are checked once more.
    replace(project, Some(&Visibility::default()), &place, item.before, &content)?;
    make_room(project, &place, item, tree);
    Ok(())
}

/// Removes the folders that a file leaves empty and that the worktree does not have.
pub(super) fn make_room(project: &Root, place: &RelPath, item: &MergeItem, tree: &Path) {
    if item.after == FileState::Gone {
        prune(project, place, &|folder| tree.join(folder).symlink_metadata().map_or(true, |meta| !meta.is_dir()));
    }
}

fn item(change: &Change) -> MergeItem {
    MergeItem { path: change.path.clone(), before: change.before, after: change.after }
}

/// Leaves of a review only what was shown before, as it was shown; returns what was shown and is not there any more.
fn keep_to(review: &mut Review, shown: &Review) -> Vec<(String, String)> {
    review.changes.retain_mut(|change| {
        let known = shown.changes.iter().find(|known| known.path == change.path);
        if known.is_some_and(|known| known.after != change.after) {
            change.fate = Fate::Conflict { why: SINCE.to_owned() };
        }
        known.is_some()
    });
    let is_there = |known: &&Change| review.changes.iter().any(|change| change.path == known.path);
    let gone = shown.changes.iter().filter(|known| !is_there(known));
    gone.map(|known| (known.path.clone(), SINCE.to_owned())).collect()
}

pub(super) fn clean(file: &str) -> &str {
    file.trim_start_matches("./").trim_end_matches('/')
}

/// The changes of these files; of all, if none are named.
fn chosen<'r>(review: &'r Review, files: Option<&[String]>) -> Result<Vec<&'r Change>, WorktreeError> {
    let Some(files) = files else { return Ok(review.changes.iter().collect()) };
    let find = |file: &String| {
        let found = review.changes.iter().find(|change| change.path == clean(file));
        found.ok_or_else(|| WorktreeError::NotChanged(file.clone()))
    };
    files.iter().map(find).collect()
}
