//! Replaces one path by another state of it: a file, a program, a link, nothing.
//!
//! What is there is compared with what was expected before anything is touched, and each step leaves the old state or
//! the new one. Doing it again after a crash finds out which. Goes through no link, and touches nothing that other
//! programs obey.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use max_team_core::hash::Hash;
use max_team_core::limits::WRITE_BYTES_MAX;
use max_team_core::policy::Visibility;
use max_team_core::rewind::FileState;
use rustix::fs::{
    AtFlags, FileType, Mode, RawMode, RenameFlags, Stat, fstat, readlinkat, renameat, renameat_with, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;

use super::atomic_write::{AtomicWrite, NewFileMode, errno, guard, is_same, sync_dir};
use super::rel_path::RelPath;
use super::root::{Root, bytes_in, open_part_dir, open_part_file};
use crate::tool::ToolError;

/// What is to be at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Gone,
    File { bytes: Vec<u8>, program: bool, private: bool, mode: Option<u16> },
    Link(OsString),
}

impl Content {
    pub(crate) fn state(&self) -> FileState {
        match self {
            Self::Gone => FileState::Gone,
            Self::File { bytes, program, private, mode } => {
                FileState::File { hash: Hash::of(bytes), program: *program, private: *private, mode: *mode }
            }
            Self::Link(target) => FileState::Link { hash: Hash::of(target.as_bytes()) },
        }
    }

    /// What is at a path; `None` if it is nothing that can be put elsewhere.
    pub(crate) fn read(root: &Root, place: &RelPath) -> Result<Option<Self>, ToolError> {
        let mut bytes = None;
        let state = look(root, place, &mut bytes)?;
        let bytes = bytes.unwrap_or_default();
        Ok(match state {
            FileState::Gone => Some(Self::Gone),
            // Who may read a file in a worktree says nothing about the project.
            FileState::File { program, .. } => Some(Self::File { bytes, program, private: false, mode: None }),
            FileState::Link { .. } => Some(Self::Link(OsString::from_vec(bytes))),
            FileState::Large | FileState::Bulky { .. } | FileState::Other => None,
        })
    }
}

/// What is at a path.
pub(crate) fn state(root: &Root, place: &RelPath) -> Result<FileState, ToolError> {
    look(root, place, &mut None)
}

/// What was found at a path, opened where it can be.
#[derive(Debug)]
pub(crate) enum PathContent {
    Gone,
    File(File, Stat),
    Link(OsString),
    Other,
}

/// Finds what is at a path, through no link.
pub(crate) fn find(root: &Root, place: &RelPath) -> Result<PathContent, ToolError> {
    let slot = match AtomicWrite::beneath(root, place) {
        Ok(Some(slot)) => slot,
        // Where a folder on the way is a file or a link by now, the path itself leads nowhere.
        Ok(None) | Err(ToolError::Correctable(_)) => return Ok(PathContent::Gone),
        Err(err) => return Err(err),
    };
    let trouble = |errno| slot.trouble(errno);
    let stat = match statat(&slot.dir, slot.name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(PathContent::Gone),
        other => other.map_err(trouble)?,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = readlinkat(&slot.dir, slot.name, Vec::new()).map_err(trouble)?;
            Ok(PathContent::Link(OsString::from_vec(target.into_bytes())))
        }
        FileType::RegularFile => {
            let file = open_part_file(slot.dir.as_fd(), slot.name.as_ref()).map_err(trouble)?;
            let stat = fstat(&file).map_err(trouble)?;
            Ok(PathContent::File(file.into(), stat))
        }
        _ => Ok(PathContent::Other),
    }
}

/// Like `state`, with the bytes.
pub(crate) fn look(root: &Root, place: &RelPath, content: &mut Option<Vec<u8>>) -> Result<FileState, ToolError> {
    let (bytes, mode) = match find(root, place)? {
        PathContent::Gone => return Ok(FileState::Gone),
        PathContent::Other => return Ok(FileState::Other),
        PathContent::Link(target) => (target.into_vec(), None),
        PathContent::File(_, stat) if bytes_in(&stat) > WRITE_BYTES_MAX => return Ok(bulky(&stat)),
        PathContent::File(file, stat) => {
            let mut bytes = Vec::new();
            let read = file.take(WRITE_BYTES_MAX).read_to_end(&mut bytes);
            read.map_err(|err| root.trouble("read", place.as_path(), errno(&err)))?;
            (bytes, Some(stat.st_mode))
        }
    };
    let hash = Hash::of(&bytes);
    *content = Some(bytes);
    Ok(mode.map_or(FileState::Link { hash }, |mode| file_state(hash, mode)))
}

/// A file with these bytes and permissions.
pub(crate) fn file_state(hash: Hash, mode: RawMode) -> FileState {
    let (run, others) = (Mode::XUSR, Mode::RWXG | Mode::RWXO);
    let mode = Mode::from_raw_mode(mode) & (Mode::RWXU | others);
    let worn = u16::try_from(mode.as_raw_mode()).ok();
    FileState::File { hash, program: mode.contains(run), private: !mode.intersects(others), mode: worn }
}

/// A file that is too large to be read. Writing to it, or putting another in its place, changes one of these numbers.
pub(crate) fn bulky(stat: &Stat) -> FileState {
    let (changed, touched) = ((stat.st_mtime, stat.st_mtime_nsec), (stat.st_ctime, stat.st_ctime_nsec));
    let numbers = format!("{} {} {changed:?} {touched:?}", stat.st_ino, stat.st_size);
    FileState::Bulky { size: bytes_in(stat), print: Hash::of(numbers) }
}

/// Puts `to` where `from` is. If it is there already, it is only synced. Without a `sight`, no place is protected.
pub(crate) fn replace(
    root: &Root,
    sight: Option<&Visibility>,
    place: &RelPath,
    from: FileState,
    to: &Content,
) -> Result<(), ToolError> {
    let (now, then) = (state(root, place)?, to.state());
    sight.map_or(Ok(()), |sight| guard(sight, place))?;
    let found = AtomicWrite::beneath(root, place)?;
    let slot = match (found, to) {
        (Some(slot), _) => slot,
        (None, Content::Gone) => return Ok(()),
        (None, _) => AtomicWrite::make_beneath(root, place)?,
    };
    if now.fits(&then) {
        return sync_dir(&slot.dir).map_err(|errno| slot.trouble(errno));
    }
    // A link makes room before a file takes its place; a process may have died in between.
    let made_room = now == FileState::Gone && matches!((from, then), (FileState::Link { .. }, FileState::File { .. }));
    if !now.fits(&from) && !made_room {
        return Err(slot.changed());
    }
    match to {
        Content::Gone => remove(&slot, from),
        Content::Link(target) => put_link(&slot, from, target),
        Content::File { mode: Some(mode), .. }
            if now.bytes() == then.bytes() && matches!(now, FileState::File { .. }) =>
        {
            slot.chmod(&now, Mode::from_raw_mode(RawMode::from(*mode)))
        }
        Content::File { bytes, program, private, mode } => {
            if matches!(now, FileState::Link { .. }) {
                remove(&slot, now)?;
            }
            let mode = mode.map(|mode| Mode::from_raw_mode(RawMode::from(mode)));
            slot.put_as(
                bytes,
                slot.look_at(&from)?.as_ref(),
                NewFileMode { program: Some(*program), private: *private, mode },
            )
        }
    }
}

/// Takes away what is there, unless it is something else by now.
fn remove(slot: &AtomicWrite<'_>, from: FileState) -> Result<(), ToolError> {
    let trouble = |errno| slot.trouble(errno);
    if from.is_large() {
        let now = statat(&slot.dir, slot.name, AtFlags::SYMLINK_NOFOLLOW).map_err(trouble)?;
        if bulky(&now) != from {
            return Err(slot.changed());
        }
    } else if !matches!(from, FileState::Link { .. }) {
        let old = slot.look_at(&from)?.ok_or_else(|| slot.changed())?;
        let now = statat(&slot.dir, slot.name, AtFlags::SYMLINK_NOFOLLOW).map_err(trouble)?;
        if !is_same(&now, &old.stat) {
            return Err(slot.changed());
        }
    }
    unlinkat(&slot.dir, slot.name, AtFlags::empty()).map_err(trouble)?;
    sync_dir(&slot.dir).map_err(trouble)
}

fn put_link(slot: &AtomicWrite<'_>, from: FileState, target: &OsString) -> Result<(), ToolError> {
    let trouble = |errno| slot.trouble(errno);
    if let FileState::File { .. } = from {
        // Fails if the file may not be replaced.
        slot.look_at(&from)?;
    }
    // One name per path, so that a repeated attempt removes what an earlier one left.
    let [one, two, three, four, ..] = Hash::of(slot.place.to_string()).0;
    let temp = format!(".max-team-0-{}.tmp", u32::from_le_bytes([one, two, three, four]));
    match unlinkat(&slot.dir, &temp, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(trouble(errno)),
    }
    symlinkat(target, &slot.dir, &temp).map_err(trouble)?;
    let placed = if from == FileState::Gone {
        match renameat_with(&slot.dir, &temp, &slot.dir, slot.name, RenameFlags::NOREPLACE) {
            // Some file systems cannot guarantee it; then the check a moment ago has to do.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => renameat(&slot.dir, &temp, &slot.dir, slot.name),
            outcome => outcome,
        }
    } else {
        renameat(&slot.dir, &temp, &slot.dir, slot.name)
    };
    if let Err(errno) = placed {
        let _ = unlinkat(&slot.dir, &temp, AtFlags::empty());
        return Err(trouble(errno));
    }
    sync_dir(&slot.dir).map_err(trouble)
}

/// Removes the folders above a path that have become empty, as long as `goes` says so of them.
pub(crate) fn prune(root: &Root, place: &RelPath, goes: &dyn Fn(&Path) -> bool) {
    let folders = place.as_path().ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
    for folder in folders.take_while(|path| goes(path)) {
        match remove_dir(root, folder) {
            // Another process may have removed it and died.
            Ok(()) | Err(Errno::NOENT) => {}
            // One that is not empty stays, and so do those above it.
            Err(_) => return,
        }
    }
}

fn remove_dir(root: &Root, folder: &Path) -> Result<(), Errno> {
    let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else { return Err(Errno::INVAL) };
    let mut dir = root.dir().try_clone_to_owned().map_err(|err| errno(&err))?;
    for part in above.iter() {
        dir = open_part_dir(dir.as_fd(), part.as_ref())?;
    }
    unlinkat(&dir, name, AtFlags::REMOVEDIR)
}
