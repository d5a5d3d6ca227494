//! What differs in a worktree, and what would become of it in the project.
//!
//! Found by our own record, independently of the worktree's repository: a commit there changes nothing here. What
//! differs is laid out beside the worktree as it was and as it is, and is merged from there, so what was shown is what
//! is merged.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use max_team_core::policy::Visibility;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::baseline::{Baseline, FIRST};
use super::ignored::IgnoredFiles;
use super::manifest::Manifest;
use super::merge::clean;
use super::{CHANGES_MAX, FileState, Worktree, WorktreeError, clear, failed, root};
use crate::files::{Content, RelPath, Root, state};
use crate::git::patch::Patch;
use crate::git::process::GitOutput;
use crate::git::{Diff, FILES_MAX, FileStat, GitError};
use crate::text::visible;

/// Where what differs is laid out: as it was, and as it is.
pub(super) const WAS: &str = "was";
pub(super) const IS: &str = "is";
/// Files that git lays out at once.
const BATCH: usize = 200;
/// What git says of a path where another repository is.
const REPOSITORY: &str = "160000";

/// Everything that differs in a worktree.
#[derive(Debug, Clone, Serialize)]
pub struct Review {
    pub changes: Vec<Change>,
    /// The same as a text to read.
    pub diff: Diff,
    /// Files that git ignores, that were made in the worktree, and that were not named.
    pub ignored: IgnoredFiles,
}

impl Review {
    /// What is still undecided.
    pub fn open(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| !matches!(change.fate, Fate::Done | Fate::Rejected | Fate::Back))
    }

    /// What cannot be merged as things are.
    pub fn stuck(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| matches!(change.fate, Fate::Conflict { .. } | Fate::Refused { .. }))
    }
}

/// One file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where, relative to the project's folder.
    pub path: String,
    /// How it was when the worktree was made.
    pub before: FileState,
    /// How it is in the worktree.
    pub after: FileState,
    /// What becomes of it.
    #[serde(flatten)]
    pub fate: Fate,
}

/// What becomes of a file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    /// It can be merged: the project has it as it was.
    Ready,
    /// It is in the project.
    Done,
    /// It was rejected.
    Rejected,
    /// It was put back before the agent worked in the worktree, and has not changed there since.
    Back,
    /// The project has changed it too.
    Conflict {
        /// What the project has.
        why: String,
    },
    /// A worktree may not change it, or it cannot be written.
    Refused { why: String },
}

impl Worktree {
    /// Looks at what differs. `sight` says what may be changed in the project. Blocking.
    pub fn review(&self, sight: &Visibility, cancel: &CancellationToken) -> Result<Review, WorktreeError> {
        self.review_with(&[], sight, cancel)
    }

    /// Like `review`; files and folders of these names count even if git ignores them. Blocking.
    pub fn review_with(
        &self,
        named: &[String],
        sight: &Visibility,
        cancel: &CancellationToken,
    ) -> Result<Review, WorktreeError> {
        let _held = self.hold()?;
        let named: Vec<&str> = named.iter().map(|name| clean(name)).collect();
        self.look(&named, sight, cancel)
    }

    /// Like `review_with`, for a caller that holds the worktree. Files that were decided about count as named.
    pub(super) fn look(
        &self,
        named: &[&str],
        sight: &Visibility,
        cancel: &CancellationToken,
    ) -> Result<Review, WorktreeError> {
        let keep = Baseline::new(&self.home, &self.record.objects, cancel);
        let named = named.iter().copied().chain(self.record.settled.keys().map(String::as_str)).collect();
        let (first, now, ignored) = self.lists(&keep, &named)?;
        let differs = |path: &&PathBuf| first.get(*path) != now.get(*path);
        let paths: BTreeSet<&PathBuf> = first.keys().chain(now.keys()).filter(differs).collect();
        if paths.len() > CHANGES_MAX {
            return Err(WorktreeError::TooMany(self.id().to_owned(), self.root().display().to_string()));
        }
        let known = paths.iter().copied().filter(|path| first.contains_key(*path));
        let was = self.lay_out(&keep, WAS, FIRST, known.filter_map(|path| path.to_str()))?;
        let is_file = |path: &&PathBuf| now.get(*path).is_some_and(|entry| !entry.is_repository());
        let there = paths.iter().copied().filter(is_file);
        let is = self.lay_out(&keep, IS, &keep.now, there.filter_map(|path| path.to_str()))?;
        let project = root(&self.record.project)?;
        let judge = ChangeJudge { record: &self.record, sight, was: &was, is: &is, project: &project };
        let changes = paths.iter().map(|path| judge.change(path, first.get(*path), now.get(*path)));
        Ok(Review { changes: changes.collect::<Result<_, _>>()?, diff: self.diff(&keep)?, ignored })
    }

    /// The tree as it was and as it is, by path, and what git ignores in it.
    fn lists(
        &self,
        keep: &Baseline<'_>,
        named: &BTreeSet<&str>,
    ) -> Result<(IndexEntries, IndexEntries, IgnoredFiles), WorktreeError> {
        let tree = self.root();
        keep.begin_now()?;
        // What is merged must survive a power cut as it was shown.
        let add = ["-c", "core.fsync=all", "-c", "advice.addEmbeddedRepo=false", "add", "--all", "."];
        keep.told(&tree, &keep.now, &add, "read the worktree")?;
        let ignored = self.sift(keep, named)?;
        let list = |name: &str| {
            keep.told(&tree, name, &["ls-files", "-z", "--stage"], "list the worktree").map(|told| read(&told))
        };
        Ok((list(FIRST)?, list(&keep.now)?, ignored))
    }

    /// Lays files out as one of our lists has them.
    pub(super) fn lay_out<'p>(
        &self,
        keep: &Baseline<'_>,
        folder: &str,
        list: &str,
        paths: impl Iterator<Item = &'p str>,
    ) -> Result<Root, WorktreeError> {
        let place = self.home.join(folder);
        clear(&place)?;
        fs::create_dir(&place).map_err(|err| failed(&place, &err))?;
        let names: Vec<&str> = paths.collect();
        for batch in names.chunks(BATCH) {
            let args = [&["checkout-index", "--force", "--"], batch].concat();
            let broken = |err: GitError| WorktreeError::Broken(self.id().to_owned(), err.to_string());
            keep.told(&place, list, &args, "lay files out").map_err(broken)?;
        }
        root(&place)
    }

    fn diff(&self, keep: &Baseline<'_>) -> Result<Diff, WorktreeError> {
        let tree = self.root();
        let plain =
            ["diff", "--cached", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--submodule=short"];
        let numbers = [plain.as_slice(), &["--numstat", "-z", &self.record.base]].concat();
        let counted = keep.told(&tree, &keep.now, &numbers, "compare files")?;
        let stats = crate::git::worktree_diff::stats(&counted);
        let stat = |path: &str, added, removed| FileStat { path: visible(path), added, removed };
        let mut files: Vec<FileStat> = stats.iter().map(|one| stat(&one.path, one.added, one.removed)).collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let mut patch = Patch::default();
        let shown = [plain.as_slice(), &["--patch", &self.record.base]].concat();
        let (code, complaint) = keep.question(&tree, &keep.now).stream(&shown, &mut |bytes| patch.push(bytes))?;
        patch.end_file();
        if code != Some(0) && !patch.cut {
            return Err(GitOutput { code, bytes: Vec::new(), is_cut: false, complaint }.failed("compare files").into());
        }
        let cut = patch.cut || files.len() > FILES_MAX;
        files.truncate(FILES_MAX);
        Ok(Diff { text: patch.text(), files, cut, hidden: 0 })
    }

    /// A file in conflict with the changes of both sides in it, marked where they meet; `None` if it is not a text on
    /// both sides. After a review. Blocking.
    pub fn conflict(&self, path: &str, cancel: &CancellationToken) -> Result<Option<String>, WorktreeError> {
        let project = root(&self.record.project)?;
        let place = project.place(path)?;
        let sides =
            [(&project, "yours"), (&root(&self.home.join(WAS))?, "base"), (&root(&self.home.join(IS))?, "copy")];
        let mut args: Vec<String> = ["merge-file", "--stdout", "--diff3"].map(str::to_owned).into();
        let mut files = Vec::new();
        for (side, name) in sides {
            let Some(Content::File { bytes, .. }) = Content::read(side, &place)? else { return Ok(None) };
            if bytes.contains(&0) {
                return Ok(None);
            }
            let file = self.home.join(format!("{name}.side"));
            fs::write(&file, bytes).map_err(|err| failed(&file, &err))?;
            args.extend(["-L".to_owned(), name.to_owned()]);
            files.push(file.display().to_string());
        }
        args.extend(files);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let keep = Baseline::new(&self.home, &self.record.objects, cancel);
        let told = keep.ask(&self.root(), FIRST, &args)?;
        // It exits with the number of conflicts.
        Ok(told.code.is_some_and(|code| (0..128).contains(&code)).then(|| String::from_utf8_lossy(&told.bytes).into()))
    }
}

type IndexEntries = BTreeMap<PathBuf, IndexEntry>;

/// What git's list says about a path: its mode and its content.
#[derive(Debug, PartialEq, Eq)]
struct IndexEntry(String);

impl IndexEntry {
    fn is_repository(&self) -> bool {
        self.0.starts_with(REPOSITORY)
    }
}

fn read(answer: &GitOutput) -> IndexEntries {
    let entry = |field: &[u8]| {
        let at = field.iter().position(|byte| *byte == b'\t')?;
        let (about, path) = (field.get(..at)?, field.get(at + 1..)?);
        Some((PathBuf::from(OsStr::from_bytes(path)), IndexEntry(String::from_utf8_lossy(about).into_owned())))
    };
    answer.fields().filter_map(entry).collect()
}

/// Says what becomes of each file.
struct ChangeJudge<'a> {
    record: &'a Manifest,
    sight: &'a Visibility,
    was: &'a Root,
    is: &'a Root,
    project: &'a Root,
}

impl ChangeJudge<'_> {
    fn change(
        &self,
        path: &Path,
        first: Option<&IndexEntry>,
        now: Option<&IndexEntry>,
    ) -> Result<Change, WorktreeError> {
        let shown = visible(&path.to_string_lossy());
        let refused = |why: &str| Fate::Refused { why: why.to_owned() };
        let place = match path.to_str().map(|path| self.project.place(path)) {
            Some(Ok(place)) => place,
            Some(Err(err)) => return Ok(Change::refused(shown, err.to_string())),
            None => return Ok(Change::refused(shown, "its name is not text".to_owned())),
        };
        let side = |root: &Root, entry: Option<&IndexEntry>| match entry {
            None => Ok(FileState::Gone),
            Some(entry) if entry.is_repository() => Ok(FileState::Other),
            // What group and others may do with a file does not matter in a worktree.
            Some(_) => state(root, &place).map(FileState::at_other_path),
        };
        let (before, after) = (side(self.was, first)?, side(self.is, now)?);
        let path = place.to_string();
        let settled = self.record.settled.get(&path).filter(|settled| settled.after == after);
        let fate = match settled {
            Some(settled) if settled.accepted => Fate::Done,
            Some(settled) if settled.back => Fate::Back,
            Some(_) => Fate::Rejected,
            None => match self.cannot(&place, before, after)? {
                Some(why) => refused(&why),
                None => self.meets(&place, before, after)?,
            },
        };
        Ok(Change { path, before, after, fate })
    }

    /// Why a file cannot be merged, independently of what the project has.
    fn cannot(&self, place: &RelPath, before: FileState, after: FileState) -> Result<Option<String>, WorktreeError> {
        let path = place.to_string();
        if let Some(why) = self.sight.protecting_row(&path) {
            return Ok(Some(format!("{why}; only the user changes it")));
        }
        if !self.sight.allows_change(&path) {
            return Ok(Some("a rule keeps it from being changed".to_owned()));
        }
        Ok(match (before, after) {
            (FileState::Other, _) | (_, FileState::Other) => {
                Some("it is a repository of its own, or no file".to_owned())
            }
            (FileState::Large, _) | (_, FileState::Large) => {
                Some("it is too large to be merged; copy it by hand".to_owned())
            }
            (_, FileState::Link { .. }) if self.leads_out(place)? => {
                Some("it is a link that leads out of the project; make it by hand".to_owned())
            }
            _ => None,
        })
    }

    fn leads_out(&self, place: &RelPath) -> Result<bool, WorktreeError> {
        let Some(Content::Link(target)) = Content::read(self.is, place)? else { return Ok(false) };
        // Only `..` at the beginning of the target is certain: a named part may be a link that leads elsewhere.
        let (mut depth, mut named) = (place.parts().count().saturating_sub(1), false);
        for part in Path::new(&target).components() {
            match part {
                Component::RootDir | Component::Prefix(_) => return Ok(true),
                Component::ParentDir if depth == 0 || named => return Ok(true),
                Component::ParentDir => depth -= 1,
                Component::Normal(_) => named = true,
                Component::CurDir => {}
            }
        }
        Ok(false)
    }

    /// What becomes of a file, by what the project has there.
    fn meets(&self, place: &RelPath, before: FileState, after: FileState) -> Result<Fate, WorktreeError> {
        let now = state(self.project, place)?;
        let conflict = |why: &str| Fate::Conflict { why: why.to_owned() };
        // Where a folder made room for a file in the worktree, it will here, too, if nothing else is in it.
        let makes_room =
            before == FileState::Gone && now == FileState::Other && self.was.path().join(place.as_path()).is_dir();
        Ok(match now {
            now if now == after => Fate::Done,
            now if now == before || makes_room => Fate::Ready,
            FileState::Gone => conflict("it is gone from the project"),
            FileState::Other => conflict("the project has a folder there"),
            _ if before == FileState::Gone => conflict("the project has another file there"),
            _ => conflict("it has changed in the project too"),
        })
    }
}

impl Change {
    fn refused(path: String, why: String) -> Self {
        Self { path, before: FileState::Other, after: FileState::Other, fate: Fate::Refused { why } }
    }
}
