//! Plans a rewind: which files would be restored, and which not.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use max_team_core::rewind::{
    FileChange, FileHistory, FileState, FileStep, RestoredFile, SkippedChange, file_histories,
};
use max_team_tools::diff;
use max_team_tools::rewind::RestoreRoot;
use serde::{Deserialize, Serialize};

use super::Rewind;
use super::log::{Log, RewindPoint};
use crate::error::RuntimeError;

/// The plan of a rewind to a point.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RewindPlan {
    /// Files become what they were after the entry with this number.
    pub behind: u64,
    /// The files to restore, in order: removals come first, to make room.
    pub puts: Vec<RestoredFile>,
    /// The files that are left as they are.
    pub skipped: Vec<Skipped>,
    /// Changes since then that were not fully recorded.
    pub left: Vec<SkippedChange>,
}

impl RewindPlan {
    /// Whether all changes since are known and undone.
    pub fn is_complete(&self) -> bool {
        self.skipped.is_empty() && self.left.is_empty()
    }

    /// Files that are removed and whose content was never stored, so that this cannot be undone.
    pub fn lost(&self) -> usize {
        self.puts.iter().filter(|put| put.change.before.is_large()).count()
    }
}

/// A file that is not restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its root folder.
    pub root: String,
    pub path: String,
    pub why: Skip,
}

/// Why a file is not restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Skip {
    /// It has other changes since.
    Changed,
    /// Its earlier content is not stored.
    Lost,
    /// It cannot be read: the reason.
    Unread(String),
    /// The root folder does not exist.
    Away,
    /// It is too large to be stored: its earlier content is unknown, and so is whether it has changed since.
    Large,
}

/// How a rewind changes one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sheet {
    /// Its full path.
    pub path: PathBuf,
    /// A unified diff; for a binary file, a line that says so.
    pub text: String,
}

/// Root folders, each opened once.
struct Grounds<'r, 'j> {
    rewind: &'r Rewind<'j>,
    open: HashMap<String, Option<RestoreRoot>>,
}

impl<'r, 'j> Grounds<'r, 'j> {
    fn of(rewind: &'r Rewind<'j>) -> Self {
        Self { rewind, open: HashMap::new() }
    }

    fn at(&mut self, root: &str) -> Option<&RestoreRoot> {
        self.open.entry(root.to_owned()).or_insert_with(|| self.rewind.ground(root).ok()).as_ref()
    }
}

impl Rewind<'_> {
    /// The plan of a rewind to a point. `files`: only these, or files beneath them, by their full paths. Blocking.
    pub fn plan(&self, to: RewindPoint, files: &[PathBuf]) -> Result<RewindPlan, RuntimeError> {
        let log = Log::of(self.journal, self.session)?;
        let nowhere = || match to {
            RewindPoint::Undo => RuntimeError::NothingRewound(self.session),
            _ => RuntimeError::NoPoint { session: self.session, turns: log.turns().len() },
        };
        let is_meant = |root: &str, path: &str| {
            let full = Path::new(root).join(path);
            files.is_empty() || files.iter().any(|file| full.starts_with(file))
        };
        if to == RewindPoint::Last {
            return self.plan_last(&log, &is_meant);
        }
        let behind = log.point(to).ok_or_else(nowhere)?;
        match log.last_rewound().filter(|_| to == RewindPoint::Undo) {
            Some((_, rewound)) => {
                let puts = rewound.puts.iter();
                let steps = puts.map(|put| FileStep { root: &put.root, change: &put.change, is_sure: false });
                self.plan_for(behind, steps, Vec::new(), &is_meant)
            }
            None => self.plan_for(behind, log.behind(behind), log.left(behind), &is_meant),
        }
    }

    /// Goes back to before the last message whose changes are still there. Files that were already restored stay as
    /// they are: a common point for all files would redo what was undone.
    fn plan_last(&self, log: &Log, is_meant: &dyn Fn(&str, &str) -> bool) -> Result<RewindPlan, RuntimeError> {
        let standing = log.standing();
        let (mut before, mut other) = (u64::MAX, None);
        for behind in log.turns().into_iter().rev() {
            let is_in = |seq: &u64| (behind + 1..=before).contains(seq);
            let is_any = standing.values().flatten().any(is_in);
            before = behind;
            let left = log.left(behind);
            if !is_any {
                let unseen = RewindPlan { behind, left, ..RewindPlan::default() };
                other = other.or(Some(unseen).filter(|plan| !plan.left.is_empty()));
                continue;
            }
            // Each file goes back to before the first of its later steps that is still in place.
            let first = |steps: &Vec<u64>| steps.iter().rfind(|seq| **seq > behind).copied();
            let firsts = standing.iter().filter_map(|(file, steps)| Some((file.clone(), first(steps)?))).collect();
            let plan = self.plan_for(behind, log.since(&firsts), left, is_meant)?;
            if !plan.puts.is_empty() {
                return Ok(plan);
            }
            other =
                other.filter(|known: &RewindPlan| !known.skipped.is_empty() || plan.skipped.is_empty()).or(Some(plan));
        }
        Ok(other.unwrap_or_default())
    }

    fn plan_for<'s>(
        &self,
        behind: u64,
        steps: impl Iterator<Item = FileStep<'s>>,
        left: Vec<SkippedChange>,
        is_meant: &dyn Fn(&str, &str) -> bool,
    ) -> Result<RewindPlan, RuntimeError> {
        let mut plan = RewindPlan { behind, left, ..RewindPlan::default() };
        let (mut grounds, mut folders) = (Grounds::of(self), Vec::new());
        for ((root, path), trail) in file_histories(steps) {
            if !is_meant(&root, &path) {
                continue;
            }
            let Some(ground) = grounds.at(&root) else {
                self.miss(&mut plan, root);
                continue;
            };
            let seen = ground.look(&path).map(|(now, _)| if self.moved.is_some() { now.at_other_path() } else { now });
            match seen {
                Ok(now) if now.fits(&trail.was) => {}
                Ok(FileState::Other) if trail.leads_to(FileState::Gone) => folders.push((root, path, trail)),
                Ok(now) => self.add(&mut plan, root, path, &trail, now)?,
                Err(error) => plan.skipped.push(Skipped { root, path, why: Skip::Unread(error.to_string()) }),
            }
        }
        // A folder in place of a file is removed with its content.
        for (root, path, trail) in folders {
            let goes = |put: &RestoredFile| {
                let inside = Path::new(&put.change.path).starts_with(&path);
                put.root == root && inside && put.change.after == FileState::Gone
            };
            let now = if plan.puts.iter().any(goes) { FileState::Gone } else { FileState::Other };
            self.add(&mut plan, root, path, &trail, now)?;
        }
        let depth = |put: &RestoredFile| Reverse(put.change.path.matches('/').count());
        plan.puts.sort_by_key(|put| (put.change.after != FileState::Gone, depth(put)));
        Ok(plan)
    }

    /// A root folder does not exist. A removed worktree has nothing to restore, but a project may have been moved.
    fn miss(&self, plan: &mut RewindPlan, root: String) {
        let is_ours = self.moved.is_some() || Path::new(&root).starts_with(&self.home);
        let away = Skipped { root, path: String::new(), why: Skip::Away };
        if !is_ours && !plan.skipped.contains(&away) {
            plan.skipped.push(away);
        }
    }

    fn add(
        &self,
        plan: &mut RewindPlan,
        root: String,
        path: String,
        trail: &FileHistory,
        now: FileState,
    ) -> Result<(), RuntimeError> {
        if !trail.leads_to(now) {
            plan.skipped.push(Skipped { root, path, why: Skip::Changed });
            return Ok(());
        }
        // A large file can be removed if the session created it and it is still the same file. Any other earlier
        // content of it is unknown.
        if now.is_large() && !(trail.was == FileState::Gone && trail.names(now)) {
            plan.skipped.push(Skipped { root, path, why: Skip::Large });
            return Ok(());
        }
        let is_kept = match (trail.was, trail.was.bytes()) {
            (FileState::Gone, _) => true,
            (_, Some(hash)) => self.bytes(&root, &hash)?.is_some(),
            (_, None) => false,
        };
        if is_kept {
            plan.puts.push(RestoredFile { root, change: FileChange { path, before: now, after: trail.was } });
        } else {
            plan.skipped.push(Skipped { root, path, why: Skip::Lost });
        }
        Ok(())
    }

    /// How each file changes. Blocking.
    pub fn sheets(&self, plan: &RewindPlan) -> Result<Vec<Sheet>, RuntimeError> {
        let mut grounds = Grounds::of(self);
        let mut sheets = Vec::new();
        for RestoredFile { root, change } in &plan.puts {
            let now = grounds.at(root).and_then(|ground| ground.look(&change.path).ok()).and_then(|(_, bytes)| bytes);
            let then = match change.after.bytes() {
                Some(hash) => self.bytes(root, &hash)?,
                None => None,
            };
            let text = shown(change, now.as_deref(), then.as_deref());
            sheets.push(Sheet { path: Path::new(root).join(&change.path), text });
        }
        Ok(sheets)
    }
}

/// The change of one file as text for people.
fn shown(change: &FileChange, now: Option<&[u8]>, then: Option<&[u8]>) -> String {
    let path = &change.path;
    if let FileState::Bulky { size, .. } = change.before {
        return format!("{}: {size} bytes, too large to be kept: removed whole\n", max_team_core::text::visible(path));
    }
    let is_file = |state| matches!(state, FileState::File { .. });
    let texts = now.map_or(Ok(""), std::str::from_utf8).ok().zip(then.map_or(Ok(""), std::str::from_utf8).ok());
    let is_link = matches!(change.before, FileState::Link { .. }) || matches!(change.after, FileState::Link { .. });
    let mut text = match texts.filter(|_| !is_link) {
        Some(("", _)) if is_file(change.before) && change.after == FileState::Gone => {
            format!("{}: empty, becomes nothing\n", max_team_core::text::visible(path))
        }
        Some((now, _)) if change.after == FileState::Gone => {
            let named = format!("\n+++ b/{}\n", max_team_core::text::visible(path));
            diff::unified(path, Some(now), "").replacen(&named, "\n+++ /dev/null\n", 1)
        }
        Some((now, then)) => diff::unified(path, is_file(change.before).then_some(now), then),
        None => {
            let what = |state: FileState, bytes: Option<&[u8]>| match state {
                FileState::Link { .. } => format!("a link to {}", String::from_utf8_lossy(bytes.unwrap_or_default())),
                FileState::Gone => "nothing".to_owned(),
                _ => format!("{} bytes", bytes.unwrap_or_default().len()),
            };
            let (now, then) = (what(change.before, now), what(change.after, then));
            let shown = max_team_core::text::visible(&format!("{path}: {now} becomes {then}"));
            format!("{shown}\n")
        }
    };
    if let (Some(now), Some(then)) = (change.before.mode(), change.after.mode())
        && now != then
    {
        text.push_str(&format!("mode: {now:04o} becomes {then:04o}\n"));
    } else if let (FileState::File { program: now, .. }, FileState::File { program: then, .. }) =
        (change.before, change.after)
        && now != then
    {
        text.push_str(if then { "mode: becomes executable\n" } else { "mode: no longer executable\n" });
    }
    text
}
