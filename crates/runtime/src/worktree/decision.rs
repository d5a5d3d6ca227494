//! A person's look at a worktree, and their decision about its files.

use std::path::PathBuf;

use max_team_core::hash::Hash;
use max_team_core::message::Principal;
use max_team_core::policy::{MergeDecision, Visibility};
use max_team_core::rewind::FileChange;
use max_team_journal::Journal;
use max_team_tools::git::Diff;
use max_team_tools::worktree::{Accept, Change, Fate, IgnoredFiles, MergeResult, Review, Worktree, WorktreeError};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{copies, stuck};
use crate::error::RuntimeError;
use crate::rewind;
use crate::shared::Shared;

/// Everything that differs in a worktree, for the person who decides about it.
#[derive(Debug, Clone, Serialize)]
pub struct WorktreeReview {
    pub id: String,
    /// The agent that worked in it, and its task.
    pub by: String,
    pub project: PathBuf,
    pub root: PathBuf,
    /// Files of the project that are not in it, and why.
    pub left: Vec<String>,
    pub changes: Vec<Change>,
    pub ignored: IgnoredFiles,
    /// The files of a merge that has begun and not ended.
    pub begun: Option<Vec<String>>,
    pub diff: Diff,
    /// Files that the project has changed too, with both versions.
    pub conflicts: Vec<ConflictText>,
    /// The digest of the changes: merging them by it merges nothing else.
    pub shown: Hash,
}

/// A file with the lines of both sides.
#[derive(Debug, Clone, Serialize)]
pub struct ConflictText {
    pub path: String,
    pub text: String,
}

/// Of all files and what they hold: the text of a diff has an end.
fn digest(changes: &[Change]) -> Hash {
    let states: Vec<_> = changes.iter().map(|change| (&change.path, &change.after)).collect();
    Hash::of(serde_json::to_string(&states).unwrap_or_default())
}

impl WorktreeReview {
    /// Reads a worktree. Blocking.
    pub fn read(copy: &Worktree, cancel: &CancellationToken) -> Result<Self, WorktreeError> {
        let review = copy.review(&Visibility::default(), cancel)?;
        let mut conflicts = Vec::new();
        for change in review.changes.iter().filter(|change| matches!(change.fate, Fate::Conflict { .. })) {
            let text = copy.conflict(&change.path, cancel)?;
            conflicts.extend(text.map(|text| ConflictText { path: change.path.clone(), text }));
        }
        Ok(Self {
            id: copy.id().to_owned(),
            by: copy.by().to_owned(),
            project: copy.project().to_owned(),
            root: copy.root(),
            left: copy.left().to_vec(),
            begun: copy.begun()?,
            shown: digest(&review.changes),
            changes: review.changes,
            ignored: review.ignored,
            diff: review.diff,
            conflicts,
        })
    }

    /// Reads the worktree of that name, if there is one. Blocking.
    pub(crate) fn find(shared: &Shared, id: &str) -> Result<Option<Self>, RuntimeError> {
        let read = copies(shared).find(id).and_then(|copy| Self::read(&copy, &CancellationToken::new()));
        match read {
            Err(WorktreeError::NotFound(_)) => Ok(None),
            read => Ok(Some(read?)),
        }
    }
}

/// Merges files of a worktree, once the agent's session says so, so that a rewind can undo it. Blocking.
pub(crate) fn accept_by(
    journal: &Journal,
    by: &Principal,
    copy: &mut Worktree,
    accept: &Accept<'_>,
    cancel: &CancellationToken,
) -> Result<MergeResult, WorktreeError> {
    let (id, project) = (copy.id().to_owned(), copy.project().to_owned());
    let mut note = |changes: &[FileChange]| {
        rewind::note_accepted(journal, (&id, &project), by, changes).map_err(|error| error.to_string())
    };
    copy.accept_noted(accept, cancel, &mut |_| {}, &mut note)
}

/// A decision of a person about files of a worktree.
#[derive(Debug)]
pub(crate) struct WorktreeDecision {
    pub decision: MergeDecision,
    /// No names stand for all files.
    pub files: Vec<String>,
    /// The digest of the changes that the person saw.
    pub shown: Option<Hash>,
    /// Whether a session works in it: then it stays when nothing is left to decide.
    pub is_inhabited: bool,
}

impl WorktreeDecision {
    /// Carries it out. Returns whether the worktree is gone. Blocking.
    pub(crate) fn carry_out(&self, shared: &Shared, mut copy: Worktree, by: &Principal) -> Result<bool, RuntimeError> {
        let (sight, cancel) = (Visibility::default(), CancellationToken::new());
        let seen = self.seen(&copy)?;
        let decided = match self.decision {
            MergeDecision::Taken => self.accept(shared, &mut copy, by, seen)?,
            _ if self.files.is_empty() && !self.is_inhabited => {
                copy.remove()?;
                return Ok(true);
            }
            _ if self.files.is_empty() => {
                let review = copy.review(&sight, &cancel)?;
                let files: Vec<String> = review.open().map(|change| change.path.clone()).collect();
                copy.reject(&files, &sight, &cancel)?
            }
            _ => copy.reject(&self.files, &sight, &cancel)?,
        };
        let is_settled = decided.open + decided.ignored.count() == 0 && !self.is_inhabited;
        if is_settled {
            copy.remove()?;
        }
        Ok(is_settled)
    }

    /// The changes, if they are those that the person saw. All of them are decided by what was seen only.
    fn seen(&self, copy: &Worktree) -> Result<Option<Review>, RuntimeError> {
        let Some(shown) = self.shown else {
            let is_named = !self.files.is_empty();
            return if is_named { Ok(None) } else { Err(RuntimeError::WorktreeUnseen(copy.id().to_owned())) };
        };
        let seen = copy.review(&Visibility::default(), &CancellationToken::new())?;
        let is_same = digest(&seen.changes) == shown;
        if is_same { Ok(Some(seen)) } else { Err(RuntimeError::WorktreeChanged(copy.id().to_owned())) }
    }

    fn accept(
        &self,
        shared: &Shared,
        copy: &mut Worktree,
        by: &Principal,
        seen: Option<Review>,
    ) -> Result<MergeResult, RuntimeError> {
        let (sight, cancel) = (Visibility::default(), CancellationToken::new());
        // Ignored files are in no diff; they are merged by their names.
        let review = match seen {
            Some(_) if !self.files.is_empty() => Some(copy.review_with(&self.files, &sight, &cancel)?),
            seen => seen,
        };
        let files = (!self.files.is_empty()).then_some(self.files.as_slice());
        let accept = Accept { files, whole: false, shown: review.as_ref(), sight: &sight };
        let merged = accept_by(&shared.journal, by, copy, &accept, &cancel)?;
        if merged.files.is_empty() && !merged.stuck.is_empty() {
            return Err(RuntimeError::NothingMerged(stuck(&merged.stuck)));
        }
        Ok(merged)
    }
}
