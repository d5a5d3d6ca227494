//! Undoes a merge that was begun and not finished: finds what of it is in the project, and puts that back.
//!
//! Such a merge is never continued unasked. An all-or-nothing merge is put back by the caller that began it, or before
//! the next merge begins. Of a merge file by file, what is in the project stays there and counts as taken; the rest is
//! merged only if it is requested again. A review or a rejection writes nothing into the project.

use std::collections::BTreeMap;
use std::fmt;

use max_team_core::policy::Visibility;
use tokio_util::sync::CancellationToken;

use super::baseline::{Baseline, FIRST};
use super::diff::WAS;
use super::manifest::Manifest;
use super::merge::{FILE, MergeIntent, MergeItem, make_room};
use super::{FileDecision, FileState, Worktree, WorktreeError, manifest, root};
use crate::files::{Content, Root, prune, replace, state};
use crate::text::visible;
use crate::tool::ToolError;

/// Files that are named in a row.
const NAMED_MAX: usize = 10;

/// The state of a merge that stopped on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeHalted {
    pub(super) id: String,
    /// What stopped it.
    pub why: String,
    /// Files that were accepted and could not be restored.
    pub stays: Vec<String>,
    /// Files that were accepted and are restored.
    pub back: Vec<String>,
    /// Files that were not accepted.
    pub never: Vec<String>,
}

impl fmt::Display for MergeHalted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, why, stays, back, never } = self;
        write!(f, "{why}; ")?;
        if stays.is_empty() {
            f.write_str("nothing was accepted")?;
        } else {
            write!(f, "in the project already: {}", file_names(stays.iter()))?;
        }
        for (words, files) in [("restored", back), ("not accepted", never)] {
            if !files.is_empty() {
                write!(f, "; {words}: {}", file_names(files.iter()))?;
            }
        }
        write!(f, "; mend that, and run `max-team worktrees accept {id}` again")?;
        if stays.is_empty() {
            return Ok(());
        }
        write!(f, ", or `max-team worktrees reject {id}` to leave the project as it is now")
    }
}

/// Some files in a row, and how many more there are.
pub fn file_names(files: impl ExactSizeIterator<Item = impl AsRef<str>>) -> String {
    let more = files.len().saturating_sub(NAMED_MAX);
    let names: Vec<String> = files.take(NAMED_MAX).map(|file| format!("`{}`", visible(file.as_ref()))).collect();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", names.join(", "))
}

impl Worktree {
    /// The files that an unfinished merge has taken; `None` if there is no such merge. Blocking.
    pub fn begun(&self) -> Result<Option<Vec<String>>, WorktreeError> {
        let _held = self.hold()?;
        let Some(intent) = self.intent()? else { return Ok(None) };
        let project = root(&self.record.project)?;
        let mut taken: Vec<String> =
            intent.items.into_iter().filter(|item| item.is_done(item.now(&project))).map(|item| item.path).collect();
        taken.sort();
        Ok(Some(taken))
    }

    /// Ends an unfinished merge that the owner of this worktree began. Blocking.
    pub fn recover(&mut self, cancel: &CancellationToken) -> Result<(), WorktreeError> {
        let _held = self.hold_anew()?;
        self.close(cancel)
    }

    /// Ends an unfinished merge: puts an all-or-nothing one back; of any other, counts what it has taken as taken.
    pub(super) fn close(&mut self, cancel: &CancellationToken) -> Result<(), WorktreeError> {
        let Some(intent) = self.intent()? else { return Ok(()) };
        let project = root(&self.record.project)?;
        let goes_back = |item: &MergeItem| {
            let now = item.now(&project);
            if intent.whole { item.is_done(now) } else { item.made_room(now) }
        };
        let (back, stay): (Vec<MergeItem>, Vec<MergeItem>) = intent.items.into_iter().partition(goes_back);
        if !back.is_empty() {
            // A later review may have been killed while it laid this out.
            let keep = Baseline::new(&self.home, &self.record.objects, cancel);
            let known = back.iter().filter(|item| item.before != FileState::Gone);
            self.lay_out(&keep, WAS, FIRST, known.map(|item| item.path.as_str()))?;
        }
        let halt = self.go_back(&back, "a merge that was begun cannot be put back")?;
        if !halt.stays.is_empty() {
            return Err(WorktreeError::Halted(Box::new(halt)));
        }
        if intent.whole {
            self.uncount(back.iter().chain(&stay))?;
        } else {
            self.count(&stay, &project);
            self.record.write(&self.home)?;
            // A file may be gone while its folder is still in the way.
            for item in stay.iter().filter(|item| item.now(&project) == item.after) {
                make_room(&project, &project.place(&item.path)?, item, &self.root());
            }
        }
        manifest::remove(&self.home.join(FILE))
    }

    /// Forgets an unfinished merge without touching the project: what it has taken counts as taken.
    pub(super) fn leave(&mut self) -> Result<(), WorktreeError> {
        let Some(intent) = self.intent()? else { return Ok(()) };
        let project = root(&self.record.project)?;
        self.count(&intent.items, &project);
        self.record.write(&self.home)?;
        manifest::remove(&self.home.join(FILE))
    }

    fn count(&mut self, items: &[MergeItem], project: &Root) {
        for item in items.iter().filter(|item| item.now(project) == item.after) {
            self.record.settled.insert(item.path.clone(), FileDecision::taken(item.after));
        }
    }

    /// A process that was killed at the very end had already recorded these as taken, which they no longer are.
    fn uncount<'i>(&mut self, items: impl Iterator<Item = &'i MergeItem>) -> Result<(), WorktreeError> {
        let mut settled = self.record.settled.clone();
        for item in items {
            if settled.get(&item.path) == Some(&FileDecision::taken(item.after)) {
                settled.remove(&item.path);
            }
        }
        self.resettle(settled)
    }

    /// Restores earlier decisions. Nothing is written if they are on the disk already, so that a full disk does not
    /// prevent it.
    pub(super) fn resettle(&mut self, settled: BTreeMap<String, FileDecision>) -> Result<(), WorktreeError> {
        self.record.settled = settled;
        if Manifest::read(&self.home)?.settled == self.record.settled {
            return Ok(());
        }
        self.record.open = None;
        self.record.write(&self.home)
    }

    /// Puts back what a merge has done, in reverse order, as far as possible. Files that were changed since are left.
    pub(super) fn go_back(&self, items: &[MergeItem], why: &str) -> Result<MergeHalted, WorktreeError> {
        let (id, why) = (self.id().to_owned(), why.to_owned());
        let mut halt = MergeHalted { id, why, stays: Vec::new(), back: Vec::new(), never: Vec::new() };
        if items.is_empty() {
            return Ok(halt);
        }
        let (project, was) = (root(&self.record.project)?, root(&self.home.join(WAS))?);
        for item in items.iter().rev() {
            let files = match put_back(&project, &was, item) {
                Ok(true) => &mut halt.back,
                Ok(false) => &mut halt.never,
                Err(_) => &mut halt.stays,
            };
            files.push(item.path.clone());
        }
        [&mut halt.stays, &mut halt.back, &mut halt.never].into_iter().for_each(|files| files.sort());
        Ok(halt)
    }

    /// The intent, in the order in which it is done: removed files make room for new ones, and those deep down go
    /// first.
    pub(super) fn intent(&self) -> Result<Option<MergeIntent>, WorktreeError> {
        let mut intent: Option<MergeIntent> = manifest::read(&self.home.join(FILE))?;
        if let Some(intent) = &mut intent {
            let depth = |item: &MergeItem| std::cmp::Reverse(item.path.matches('/').count());
            intent.items.sort_by_key(|item| (item.after != FileState::Gone, depth(item)));
        }
        Ok(intent)
    }
}

impl MergeItem {
    /// How the project has it.
    pub(super) fn now(&self, project: &Root) -> FileState {
        project.place(&self.path).and_then(|place| state(project, &place)).unwrap_or(FileState::Other)
    }

    fn is_done(&self, now: FileState) -> bool {
        now == self.after || self.made_room(now)
    }

    /// Whether it is half done: a link makes room before a file takes its place.
    fn made_room(&self, now: FileState) -> bool {
        now == FileState::Gone && matches!((self.before, self.after), (FileState::Link { .. }, FileState::File { .. }))
    }
}

/// Puts one file back; returns whether there was something to put back.
fn put_back(project: &Root, was: &Root, item: &MergeItem) -> Result<bool, ToolError> {
    let place = project.place(&item.path)?;
    let now = state(project, &place)?;
    if !item.is_done(now) {
        return Ok(false);
    }
    let content = if item.before == FileState::Gone { Some(Content::Gone) } else { Content::read(was, &place)? };
    let content = content.filter(|content| content.state() == item.before);
    let content = content
        .ok_or_else(|| ToolError::correctable(format!("the earlier content of `{place}` is no longer stored")))?;
    // A file that was made read-only since stays so.
    replace(project, Some(&Visibility::default()), &place, now.at_other_path(), &content)?;
    if item.before == FileState::Gone {
        prune(project, &place, &|_| true);
    }
    Ok(true)
}
