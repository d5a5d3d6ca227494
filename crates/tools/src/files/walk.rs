//! The content of a folder, and what of it counts: names in order, ignore rules, and a walk over the files beneath.
//!
//! Folders are opened one from the other, never by their full path and never through a symbolic link, so a folder that
//! is swapped for a link meanwhile cannot lead a walk out of the root. Order is by name, always. Hidden files are
//! passed over and counted.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use max_team_core::policy::Visibility;
use rustix::fs::{AtFlags, Dir, FileType, fstat, statat};
use rustix::io::Errno;

use super::rel_path::RelPath;
use super::root::{Root, open_part_dir, open_part_file};
use crate::tool::ToolContext;

/// Names of one folder that are looked at.
const ENTRIES_MAX: usize = 100_000;
/// Folders within folders that a walk goes down; each holds one open file.
const DEPTH_MAX: usize = 100;
/// Bytes of one file of ignore rules.
const RULES_BYTES_MAX: u64 = 256 << 10;

/// Where rules are; within one folder, what comes later wins.
const RULES_FILES: [&str; 3] = [".git/info/exclude", ".gitignore", ".ignore"];

/// One name in a folder.
#[derive(Debug, Clone)]
pub(crate) struct DirEntry {
    pub(crate) name: OsString,
    pub(crate) kind: FileType,
}

/// The names of a folder, ordered.
#[derive(Debug, Default)]
pub(crate) struct DirEntries {
    pub(crate) entries: Vec<DirEntry>,
    /// Whether there were more than are looked at.
    pub(crate) more: bool,
}

/// Lists an open folder without following anything.
pub(crate) fn entries(dir: &OwnedFd) -> Result<DirEntries, Errno> {
    let mut found = DirEntries::default();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if found.entries.len() >= ENTRIES_MAX {
            found.more = true;
            break;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => FileType::Unknown,
            },
            kind => kind,
        };
        found.entries.push(DirEntry { name: name.to_owned(), kind });
    }
    found.entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The ignore rules that hold in one folder: its own and those of the folders above. Cheap to copy.
#[derive(Debug, Clone, Default)]
pub(crate) struct IgnoreRules(Option<Arc<IgnoreLevel>>);

#[derive(Debug)]
struct IgnoreLevel {
    above: IgnoreRules,
    /// The folder that the rules were written in.
    base: PathBuf,
    rules: Gitignore,
}

impl IgnoreRules {
    /// The rules that hold at a place: from the top of the repository, even where that is above the root, down.
    pub(crate) fn at(root: &Root, place: &RelPath) -> Self {
        // The ignore rules around a folder that agents keep outside the project do not count in it.
        let mut rules = if root.is_own() { Self::default() } else { Self::above(root.path()) };
        let Ok(mut dir) = root.dir().try_clone_to_owned() else { return rules };
        let mut path = PathBuf::new();
        for part in place.parts() {
            rules = rules.within(root, &dir, &path);
            path.push(part);
            dir = match open_part_dir(dir.as_fd(), part.as_ref()) {
                Ok(dir) => dir,
                // A place that is reached through a link has the rules of what is above the link.
                Err(_) => return rules,
            };
        }
        rules
    }

    /// The rules of the folders above the root, if it lies inside a repository. These are the user's own files about
    /// the project, read by us and never shown.
    fn above(root: &Path) -> Self {
        if root.join(".git").exists() {
            return Self::default();
        }
        let Some(top) = root.ancestors().skip(1).find(|folder| folder.join(".git").exists()) else {
            return Self::default();
        };
        let mut folders: Vec<_> = root.ancestors().skip(1).take_while(|folder| folder.starts_with(top)).collect();
        folders.reverse();
        let rules = folders.into_iter().fold(Self::default(), |rules, folder| {
            rules.with(folder, RULES_FILES.iter().filter_map(|name| text_of(File::open(folder.join(name)).ok()?)))
        });
        // In a folder that the repository around it ignores (in a home full of dot files) its rules do not count.
        let is_ignored = root.ancestors().take_while(|folder| *folder != top).any(|folder| rules.hide(folder, true));
        if is_ignored { Self::default() } else { rules }
    }

    /// The rules that hold in a folder which these rules hold above.
    pub(crate) fn within(&self, root: &Root, dir: &OwnedFd, path: &Path) -> Self {
        // A repository inside another one goes by its own rules alone.
        let is_top = statat(dir, ".git", AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let above = if is_top { Self::default() } else { self.clone() };
        let texts = RULES_FILES.iter().filter(|name| is_top || !name.starts_with(".git/")).filter_map(|name| {
            let file = match name.rsplit_once('/') {
                None => open_part_file(dir.as_fd(), name.as_ref()).ok()?,
                // Rules are read by us and never shown.
                Some(_) => root.open_file(&path.join(name), &Visibility::default()).ok()?.file.into(),
            };
            text_of(file.into())
        });
        above.with(&root.path().join(path), texts)
    }

    fn with(self, base: &Path, texts: impl Iterator<Item = String>) -> Self {
        let mut builder = GitignoreBuilder::new("");
        for line in texts.collect::<Vec<_>>().iter().flat_map(|text| text.lines()) {
            // A rule that cannot be parsed does not count, as in git.
            let _ = builder.add_line(None, line);
        }
        match builder.build() {
            Ok(rules) if !rules.is_empty() => {
                Self(Some(Arc::new(IgnoreLevel { above: self, base: base.to_owned(), rules })))
            }
            _ => self,
        }
    }

    /// Whether something in the folder is to be ignored, by its full path.
    pub(crate) fn hide(&self, full: &Path, is_dir: bool) -> bool {
        let mut rules = self;
        while let Some(level) = &rules.0 {
            if let Ok(inner) = full.strip_prefix(&level.base) {
                match level.rules.matched(inner, is_dir) {
                    Match::None => {}
                    decided => return decided.is_ignore(),
                }
            }
            rules = &level.above;
        }
        false
    }
}

fn text_of(file: File) -> Option<String> {
    let stat = fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(RULES_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The files beneath a folder that are neither hidden nor ignored, in order. Symbolic links are passed over.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    cx: &'a ToolContext,
    /// What is visible on the way: not the files that a rule asks about, unless the place itself is one
    /// (`ToolContext::passing`).
    sight: Visibility,
    stack: Vec<WalkFrame>,
    /// Whether ignore rules count.
    is_ruled: bool,
    /// Folders that could not be looked into.
    pub(crate) unread: usize,
    /// Names that are hidden.
    pub(crate) unseen: usize,
}

#[derive(Debug)]
struct WalkFrame {
    dir: OwnedFd,
    path: PathBuf,
    rules: IgnoreRules,
    entries: std::vec::IntoIter<DirEntry>,
}

impl<'a> Walk<'a> {
    /// A walk from `place`, which was opened as `dir`. The place itself is walked even if it is hidden or ignored:
    /// it was named.
    pub(crate) fn new(cx: &'a ToolContext, place: &RelPath, dir: OwnedFd) -> Self {
        let mut walk = Self::at(cx, place, true);
        walk.enter(dir, place.parts().collect(), &IgnoreRules::at(&cx.root, place));
        walk
    }

    /// Like `new`, where nothing is ignored.
    pub(crate) fn unruled(cx: &'a ToolContext, place: &RelPath, dir: OwnedFd) -> Self {
        let mut walk = Self::at(cx, place, false);
        walk.enter(dir, place.parts().collect(), &IgnoreRules::default());
        walk
    }

    fn at(cx: &'a ToolContext, place: &RelPath, is_ruled: bool) -> Self {
        Self { cx, sight: cx.passing(&[place.as_str().to_owned()]), stack: Vec::new(), is_ruled, unread: 0, unseen: 0 }
    }

    fn enter(&mut self, dir: OwnedFd, path: PathBuf, above: &IgnoreRules) {
        match entries(&dir) {
            Ok(found) if self.stack.len() < DEPTH_MAX => {
                self.unread += usize::from(found.more);
                let rules =
                    if self.is_ruled { above.within(&self.cx.root, &dir, &path) } else { IgnoreRules::default() };
                self.stack.push(WalkFrame { dir, path, rules, entries: found.entries.into_iter() });
            }
            _ => self.unread += 1,
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = PathBuf;

    fn next(&mut self) -> Option<PathBuf> {
        while !self.cx.cancel.is_cancelled() {
            let frame = self.stack.last_mut()?;
            let Some(entry) = frame.entries.next() else {
                self.stack.pop();
                continue;
            };
            let is_dir = entry.kind == FileType::Directory;
            if !(is_dir || entry.kind == FileType::RegularFile) || entry.name.as_bytes().starts_with(b".") {
                continue;
            }
            let path = frame.path.join(&entry.name);
            if frame.rules.hide(&self.cx.root.path().join(&path), is_dir) {
                continue;
            }
            if !self.sight.is_visible(&path.to_string_lossy()) {
                self.unseen += 1;
                continue;
            }
            if !is_dir {
                return Some(path);
            }
            match open_part_dir(frame.dir.as_fd(), entry.name.as_ref()) {
                Ok(dir) => {
                    let rules = frame.rules.clone();
                    self.enter(dir, path, &rules);
                }
                Err(_) => self.unread += 1,
            }
        }
        None
    }
}
