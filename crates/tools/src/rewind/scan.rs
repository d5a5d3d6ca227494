//! One look at everything beneath a root: how each file is, with its bytes kept.
//!
//! What a file's name and numbers say to be unchanged is not opened. Folders are opened one from the other, through no
//! link. What the project ignores, what repositories keep for themselves and what is ours is passed over.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use max_team_core::hash::Hash;
use max_team_core::limits::REWIND_FILE_BYTES_MAX;
use max_team_core::rewind::{FileState, SkippedReason};
use rustix::fs::{AtFlags, FileType, Stat, readlinkat, statat};
use rustix::io::Errno;

use super::blobs::BlobDir;
use super::deadline::Deadline;
use crate::files::{
    DirEntry, IgnoreRules, Root, bulky, bytes_in, entries, file_state, is_temp, open_part_dir, open_part_file,
};

/// Files of one tree.
pub(super) const FILES_MAX: usize = 100_000;
/// Bytes of all of them.
const BYTES_MAX: u64 = 1 << 30;
/// Folders within folders.
const DEPTH_MAX: usize = 100;
/// Files between two looks at the clock.
const CLOCK_EVERY: usize = 64;
/// Seconds within which a file may change twice and look the same afterwards.
const FRESH_S: i64 = 2;

/// How a file was when it was last looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileRecord {
    /// What its numbers were: equal numbers, equal bytes.
    pub(super) stamp: u64,
    /// It had only just changed: its numbers prove nothing.
    pub(super) is_fresh: bool,
    pub(super) state: FileState,
}

/// Files by their paths.
pub(super) type FileRecords = BTreeMap<String, FileRecord>;

/// What one look has found.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    pub(super) files: FileRecords,
    /// Folders and files that could not be looked at.
    pub(super) unread: Vec<String>,
    /// Bytes that are kept and were not before.
    pub(super) added: u64,
    /// Why it came to no end.
    pub(super) ended: Option<SkippedReason>,
}

/// What a look needs to know.
pub(super) struct Scan<'a> {
    pub(super) root: &'a Root,
    /// Where we keep what is ours.
    pub(super) home: &'a Path,
    pub(super) objects: &'a BlobDir,
    pub(super) old: &'a FileRecords,
    pub(super) now_s: i64,
    pub(super) patience: &'a Deadline<'a>,
}

struct ScanLevel {
    dir: OwnedFd,
    path: PathBuf,
    rules: IgnoreRules,
    entries: std::vec::IntoIter<DirEntry>,
}

impl Scan<'_> {
    pub(super) fn look(&self) -> ScanResult {
        let mut found = ScanResult::default();
        let mut levels = Vec::new();
        match self.root.place(".").ok().zip(self.root.dir().try_clone_to_owned().ok()) {
            Some((place, dir)) => {
                let rules = IgnoreRules::at(self.root, &place);
                self.enter(dir, PathBuf::new(), &rules, &mut levels, &mut found);
            }
            None => found.ended = Some(SkippedReason::Unread),
        }
        let (mut bytes, mut seen) = (0_u64, 0_usize);
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.entries.next() else {
                levels.pop();
                continue;
            };
            seen += 1;
            if seen.is_multiple_of(CLOCK_EVERY) && self.patience.is_over() {
                found.ended = Some(SkippedReason::Slow);
                return found;
            }
            let path = level.path.join(&entry.name);
            let is_dir = entry.kind == FileType::Directory;
            if self.is_passed_over(&entry, &level.rules, &path) {
                continue;
            }
            if is_dir {
                match unless_gone(open_part_dir(level.dir.as_fd(), entry.name.as_ref())) {
                    Ok(Some(dir)) => {
                        let rules = level.rules.clone();
                        self.enter(dir, path, &rules, &mut levels, &mut found);
                    }
                    Ok(None) => {}
                    Err(_) => found.unread.push(path.to_string_lossy().into_owned()),
                }
                continue;
            }
            if !matches!(entry.kind, FileType::RegularFile | FileType::Symlink) {
                continue;
            }
            match self.file(&level.dir, &entry, &path, &mut found.added) {
                Ok(Some((name, known, size))) => {
                    bytes = bytes.saturating_add(size);
                    found.files.insert(name, known);
                }
                Ok(None) => {}
                Err(error) if is_full(&error) => {
                    found.ended = Some(SkippedReason::Unread);
                    return found;
                }
                Err(_) => found.unread.push(path.to_string_lossy().into_owned()),
            }
            if found.files.len() > FILES_MAX || bytes > BYTES_MAX {
                found.ended = Some(SkippedReason::Many);
                return found;
            }
        }
        found
    }

    fn enter(
        &self,
        dir: OwnedFd,
        path: PathBuf,
        above: &IgnoreRules,
        levels: &mut Vec<ScanLevel>,
        found: &mut ScanResult,
    ) {
        match unless_gone(entries(&dir)) {
            Ok(None) => {}
            Ok(Some(inside)) if levels.len() < DEPTH_MAX && !inside.more => {
                let rules = above.within(self.root, &dir, &path);
                levels.push(ScanLevel { dir, path, rules, entries: inside.entries.into_iter() });
            }
            _ => found.unread.push(path.to_string_lossy().into_owned()),
        }
    }

    fn is_passed_over(&self, entry: &DirEntry, rules: &IgnoreRules, path: &Path) -> bool {
        let full = self.root.path().join(path);
        entry.name == ".git"
            || entry.name.to_str().is_some_and(is_temp)
            || full == self.home
            || rules.hide(&full, entry.kind == FileType::Directory)
    }

    /// One file: its name, how it is, and its size.
    fn file(
        &self,
        dir: &OwnedFd,
        entry: &DirEntry,
        path: &Path,
        added: &mut u64,
    ) -> io::Result<Option<(String, FileRecord, u64)>> {
        let name = path.to_str().filter(|name| !name.chars().any(char::is_control));
        let name = name.ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
        let Some(stat) = unless_gone(statat(dir, &entry.name, AtFlags::SYMLINK_NOFOLLOW))? else { return Ok(None) };
        let size = bytes_in(&stat);
        let is_large = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && size > REWIND_FILE_BYTES_MAX;
        if is_large {
            // It is never opened and never kept: its numbers are all that is known of it.
            let known = FileRecord { stamp: large_stamp(&stat), is_fresh: false, state: bulky(&stat) };
            return Ok(Some((name, known, 0)));
        }
        let stamp = stamp(&stat);
        if let Some(known) = self.old.get(&name).filter(|known| known.stamp == stamp && !known.is_fresh) {
            return Ok(Some((name, known.clone(), size)));
        }
        let is_fresh = stat.st_ctime >= self.now_s - FRESH_S;
        let state = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                let target = unless_gone(readlinkat(dir, &entry.name, Vec::new()))?;
                let Some(target) = target.map(CString::into_bytes) else { return Ok(None) };
                let hash = Hash::of(&target);
                *added += self.objects.put(&hash, &target)?;
                FileState::Link { hash }
            }
            FileType::RegularFile => {
                let file = unless_gone(open_part_file(dir.as_fd(), Path::new(&entry.name)))?;
                let Some(file) = file.map(File::from) else { return Ok(None) };
                let mut bytes = Vec::new();
                file.take(REWIND_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
                let hash = Hash::of(&bytes);
                *added += self.objects.put(&hash, &bytes)?;
                file_state(hash, stat.st_mode)
            }
            _ => return Ok(None),
        };
        Ok(Some((name, FileRecord { stamp, is_fresh, state }, size)))
    }
}

/// `None` if the file was removed since its folder was read: it is no longer part of the tree, and nothing is unread.
fn unless_gone<T>(found: Result<T, Errno>) -> io::Result<Option<T>> {
    match found {
        Err(Errno::NOENT) => Ok(None),
        found => Ok(Some(found?)),
    }
}

/// Whether nothing more can be kept.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn stamp(stat: &Stat) -> u64 {
    let mut hasher = DefaultHasher::new();
    (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mode).hash(&mut hasher);
    (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec).hash(&mut hasher);
    hasher.finish()
}

/// What tells a file that is never read from itself, changed.
fn large_stamp(stat: &Stat) -> u64 {
    let mut hasher = DefaultHasher::new();
    (stat.st_size, stat.st_mtime, stat.st_mtime_nsec).hash(&mut hasher);
    hasher.finish()
}

/// Whether a file says what is ignored.
pub(super) fn is_rules(path: &str) -> bool {
    let name = Path::new(path).file_name().map(|name| name.as_bytes());
    matches!(name, Some(b".gitignore" | b".ignore"))
}
