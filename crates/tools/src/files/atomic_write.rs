//! The place in a folder that one file is written to.
//!
//! The folder is reached part by part, through no symbolic link, and held open. The file is replaced, never written
//! into: temporary file, sync, rename, sync of the folder. So readers see the old file or the new one, a crash leaves
//! one of the two, and another name of the old file (a hard link) keeps the old content. Never follows a link, never
//! touches what other programs run or obey.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use max_team_core::hash::Hash;
use max_team_core::limits::WRITE_BYTES_MAX;
use max_team_core::policy::{Basis, Visibility};
use max_team_core::rewind::FileState;
use rustix::fs::{
    Access, AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, RawMode, RenameFlags, Stat, Uid, accessat, fchmod,
    fchown, flock, fstat, fsync, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::rel_path::RelPath;
use super::replace::file_state;
use super::root::{Root, bytes_in, not_a_file, open_part_dir, open_part_file};
use super::walk;
use crate::command::running;
use crate::text::size;
use crate::tool::ToolError;

/// Every permission to write.
const WRITE: Mode = Mode::WUSR.union(Mode::WGRP).union(Mode::WOTH);
/// Names that are tried for a temporary file.
const TEMP_TRIES_MAX: usize = 64;

/// A folder, held open, and the name of a file in it that may or may not exist.
#[derive(Debug)]
pub(crate) struct AtomicWrite<'a> {
    root: &'a Root,
    pub(super) place: &'a RelPath,
    pub(super) dir: OwnedFd,
    pub(super) name: &'a str,
}

/// The file that is in a slot.
#[derive(Debug)]
pub(crate) struct ExistingFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) hash: Hash,
    pub(super) stat: Stat,
}

impl ExistingFile {
    /// Whether the file has other names, perhaps outside the root.
    pub(crate) fn is_linked(&self) -> bool {
        self.stat.st_nlink > 1
    }
}

/// The permissions of a new file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NewFileMode {
    /// Whether it is a program; `None`: as the old file is.
    pub(super) program: Option<bool>,
    /// Only its owner may read it, at every instant; if not set, it is as the old file was.
    pub(super) private: bool,
    /// Exactly these permissions, at no instant more; then the other fields do not count.
    pub(super) mode: Option<Mode>,
}

impl<'a> AtomicWrite<'a> {
    /// The slot at a place, if its folder exists.
    pub(crate) fn find(root: &'a Root, sight: &Visibility, place: &'a RelPath) -> Result<Option<Self>, ToolError> {
        guard(sight, place)?;
        Self::reach(root, place, false)
    }

    /// The slot at a place; folders on the way are made.
    pub(crate) fn make(root: &'a Root, sight: &Visibility, place: &'a RelPath) -> Result<Self, ToolError> {
        guard(sight, place)?;
        Self::make_beneath(root, place)
    }

    /// Like `make`, also at protected places.
    pub(super) fn make_beneath(root: &'a Root, place: &'a RelPath) -> Result<Self, ToolError> {
        Self::reach(root, place, true)?
            .ok_or_else(|| ToolError::correctable(format!("the folder of `{place}` vanished while it was made")))
    }

    /// Like `find`, also at protected places.
    pub(super) fn beneath(root: &'a Root, place: &'a RelPath) -> Result<Option<Self>, ToolError> {
        Self::reach(root, place, false)
    }

    fn reach(root: &'a Root, place: &'a RelPath, make: bool) -> Result<Option<Self>, ToolError> {
        let trouble = |errno| root.trouble("write", place.as_path(), errno);
        let mut parts: Vec<&str> = place.parts().collect();
        let Some(name) = parts.pop() else {
            return Err(not_a_name(place));
        };
        let mut dir = root.dir().try_clone_to_owned().map_err(|err| trouble(errno(&err)))?;
        for part in parts {
            let next = match open_part_dir(dir.as_fd(), part.as_ref()) {
                Err(Errno::NOENT) if make => make_dir(&dir, part, root.modes().0),
                other => other,
            };
            dir = match next {
                Ok(next) => next,
                Err(Errno::NOENT) if !make => return Ok(None),
                Err(Errno::LOOP) => return Err(through_link(place, part)),
                Err(errno) => return Err(trouble(errno)),
            };
        }
        Ok(Some(Self { root, place, dir, name }))
    }

    /// The file as it is now. Refuses anything but a regular file, and a file that is read-only.
    pub(crate) fn look(&self) -> Result<Option<ExistingFile>, ToolError> {
        let Some((old, _)) = self.open()? else { return Ok(None) };
        // Renaming over it would work; but a read-only file is how people say "hands off", even to root.
        let may_anybody = Mode::from_raw_mode(old.stat.st_mode).intersects(WRITE);
        let may_we = accessat(&self.dir, self.name, Access::WRITE_OK, AtFlags::empty()).is_ok();
        if !(may_anybody && may_we) {
            return Err(ToolError::correctable(format!("`{}` is read-only", self.place)));
        }
        Ok(Some(old))
    }

    /// Whether the path exists, as a file, a folder or a link.
    pub(crate) fn is_taken(&self) -> bool {
        accessat(&self.dir, self.name, Access::EXISTS, AtFlags::SYMLINK_NOFOLLOW) != Err(Errno::NOENT)
    }

    /// Like `look`, but accepts a read-only file where the expected state is read-only, too: a tool set that permission, not the user.
    pub(super) fn look_at(&self, from: &FileState) -> Result<Option<ExistingFile>, ToolError> {
        let is_closed = |mode: u16| !Mode::from_raw_mode(RawMode::from(mode)).intersects(WRITE);
        if from.mode().is_some_and(is_closed) { Ok(self.open()?.map(|(old, _)| old)) } else { self.look() }
    }

    /// Gives the file that is there these permissions, if it is still what was seen; its bytes stay as they are.
    pub(super) fn chmod(&self, seen: &FileState, mode: Mode) -> Result<(), ToolError> {
        let (old, file) = self.open()?.ok_or_else(|| self.changed())?;
        if !file_state(old.hash, old.stat.st_mode).fits(seen) {
            return Err(self.changed());
        }
        fchmod(&file, mode).map_err(|errno| self.trouble(errno))?;
        file.sync_all().map_err(|err| self.trouble(errno(&err)))
    }

    /// The file as it is now, also if it is read-only. Refuses anything but a regular file.
    fn open(&self) -> Result<Option<(ExistingFile, File)>, ToolError> {
        let shown = self.place.to_string();
        let file = match open_part_file(self.dir.as_fd(), self.name.as_ref()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(not_a_file(&shown, FileType::Symlink)),
            Err(errno) => return Err(self.trouble(errno)),
        };
        let stat = fstat(&file).map_err(|errno| self.trouble(errno))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            other => return Err(not_a_file(&shown, other)),
        }
        let mut bytes = Vec::new();
        (&file).take(WRITE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|err| self.trouble(errno(&err)))?;
        if bytes.len() as u64 > WRITE_BYTES_MAX {
            return Err(ToolError::correctable(format!(
                "`{}` is {}; files larger than {} cannot be written or edited here",
                self.place,
                size(bytes_in(&stat)),
                size(WRITE_BYTES_MAX)
            )));
        }
        Ok(Some((ExistingFile { hash: Hash::of(&bytes), bytes, stat }, file)))
    }

    /// Puts these bytes there, in the stead of `old`. The new file has the old one's permissions and, where we may,
    /// its owner; set-id bits are dropped.
    pub(crate) fn put(&self, bytes: &[u8], old: Option<&ExistingFile>) -> Result<(), ToolError> {
        self.put_as(bytes, old, NewFileMode::default())
    }

    /// Like `put`, for a file with permissions of its own.
    pub(super) fn put_as(&self, bytes: &[u8], old: Option<&ExistingFile>, wear: NewFileMode) -> Result<(), ToolError> {
        let trouble = |errno| self.trouble(errno);
        sweep(&self.dir);
        // Until it has the old file's permissions, only its owner may read the new file.
        let is_closed = old.is_some() || wear.private;
        let mode = match wear.mode {
            Some(mode) => mode & Mode::RWXU,
            None if is_closed => Mode::RUSR | Mode::WUSR,
            None => self.root.modes().1,
        };
        let temp = TempFile::make(&self.dir, mode).map_err(trouble)?;
        (&temp.file).write_all(bytes).map_err(|err| trouble(errno(&err)))?;
        if let Some(old) = old {
            temp.own(&old.stat).map_err(trouble)?;
        }
        match (wear.mode, old) {
            (Some(mode), _) => fchmod(&temp.file, mode).map_err(trouble)?,
            (None, Some(old)) => temp.dress(&old.stat, wear.private).map_err(trouble)?,
            (None, None) => {}
        }
        if let Some(program) = wear.program.filter(|_| wear.mode.is_none()) {
            temp.run_as(program).map_err(trouble)?;
        }
        temp.file.sync_all().map_err(|err| trouble(errno(&err)))?;
        running::note(self.root.path(), self.place.as_path(), Hash::of(bytes));
        self.rename(temp, old)?;
        sync_dir(&self.dir).map_err(trouble)
    }

    /// Syncs what is there: the process that put it there may have died before it could.
    pub(crate) fn settle(&self) -> Result<(), ToolError> {
        let trouble = |errno| self.trouble(errno);
        let file = open_part_file(self.dir.as_fd(), self.name.as_ref()).map_err(trouble)?;
        File::from(file).sync_all().map_err(|err| trouble(errno(&err)))?;
        sync_dir(&self.dir).map_err(trouble)
    }

    /// Renames the finished file into its place if what is there has not changed since we looked.
    fn rename(&self, mut temp: TempFile<'_>, old: Option<&ExistingFile>) -> Result<(), ToolError> {
        let outcome = match old {
            None => match renameat_with(&self.dir, &temp.name, &self.dir, self.name, RenameFlags::NOREPLACE) {
                // Some file systems cannot guarantee it; then the check a moment ago has to do.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    renameat(&self.dir, &temp.name, &self.dir, self.name)
                }
                outcome => outcome,
            },
            Some(old) => match statat(&self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(now) if is_same(&now, &old.stat) => renameat(&self.dir, &temp.name, &self.dir, self.name),
                Ok(_) | Err(Errno::NOENT) => return Err(self.changed()),
                Err(errno) => Err(errno),
            },
        };
        temp.is_placed = outcome.is_ok();
        outcome.map_err(|errno| if errno == Errno::EXIST { self.changed() } else { self.trouble(errno) })
    }

    pub(super) fn changed(&self) -> ToolError {
        ToolError::correctable(format!("`{}` was just changed by another program; read it again", self.place))
    }

    pub(super) fn trouble(&self, errno: Errno) -> ToolError {
        self.root.trouble("write", self.place.as_path(), errno)
    }
}

fn not_a_name(place: &RelPath) -> ToolError {
    let what = if place.folder().is_some() { "a folder of your own" } else { "the project folder" };
    ToolError::correctable(format!("`{place}` is {what}, not a file"))
}

/// Refuses what is no file, and places whose content other programs run or obey: only the user changes them.
pub(super) fn guard(sight: &Visibility, place: &RelPath) -> Result<(), ToolError> {
    if place.parts().next().is_none() {
        return Err(not_a_name(place));
    }
    match sight.protecting_row(place.as_str()) {
        Some(why) => Err(ToolError::Refused {
            target: place.to_string(),
            basis: Basis::Held { path: place.to_string(), why: why.into() },
            words: format!(
                "`{place}` may not be written: {why}; only the user changes it. Tell the user what to put there, and go on \
                 with the rest"
            ),
        }),
        None => Ok(()),
    }
}

fn through_link(place: &RelPath, part: &str) -> ToolError {
    ToolError::correctable(format!(
        "`{place}` goes through the symbolic link `{part}`; files are written by their real path only"
    ))
}

fn make_dir(dir: &OwnedFd, part: &str, mode: Mode) -> Result<OwnedFd, Errno> {
    match mkdirat(dir, part, mode) {
        // Another process made it first: just as good, if it is a real folder.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    sync_dir(dir)?;
    open_part_dir(dir.as_fd(), part.as_ref())
}

pub(super) fn sync_dir(dir: &OwnedFd) -> Result<(), Errno> {
    match fsync(dir) {
        // File systems that cannot sync a folder say so.
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        outcome => outcome,
    }
}

pub(super) fn is_same(now: &Stat, then: &Stat) -> bool {
    now.st_dev == then.st_dev
        && now.st_ino == then.st_ino
        && now.st_size == then.st_size
        && now.st_mode == then.st_mode
        && (now.st_mtime, now.st_mtime_nsec) == (then.st_mtime, then.st_mtime_nsec)
        && (now.st_ctime, now.st_ctime_nsec) == (then.st_ctime, then.st_ctime_nsec)
}

pub(crate) fn errno(err: &std::io::Error) -> Errno {
    Errno::from_io_error(err).unwrap_or(Errno::IO)
}

/// A temporary file beside the one it will become. Locked as long as its writer lives; removed unless renamed.
#[derive(Debug)]
struct TempFile<'a> {
    dir: &'a OwnedFd,
    name: String,
    file: File,
    is_placed: bool,
}

impl<'a> TempFile<'a> {
    fn make(dir: &'a OwnedFd, mode: Mode) -> Result<Self, Errno> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..TEMP_TRIES_MAX {
            let name = format!(".max-team-{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let file = match openat(dir, &name, flags, mode) {
                // A leftover, or a process of the same id in another container.
                Err(Errno::EXIST) => continue,
                other => File::from(other?),
            };
            let temp = Self { dir, name, file, is_placed: false };
            // A sweep may take it for a leftover before we can lock it, and remove it. On a file system without locks,
            // no sweep removes it either.
            let is_taken = flock(&temp.file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
            if !is_taken && fstat(&temp.file)?.st_nlink > 0 {
                return Ok(temp);
            }
        }
        Err(Errno::EXIST)
    }

    /// Takes over the owner, if we may.
    fn own(&self, old: &Stat) -> Result<(), Errno> {
        let own = fstat(&self.file)?;
        if (own.st_uid, own.st_gid) != (old.st_uid, old.st_gid) {
            let (owner, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
            // Only root may give files away; others may still keep the group.
            let _ = fchown(&self.file, Some(owner), Some(group)).or_else(|_| fchown(&self.file, None, Some(group)));
        }
        Ok(())
    }

    /// Takes over the permissions; of one that is to be private, only its owner's.
    fn dress(&self, old: &Stat, private: bool) -> Result<(), Errno> {
        let most = if private { Mode::RWXU } else { Mode::RWXU | Mode::RWXG | Mode::RWXO };
        fchmod(&self.file, Mode::from_raw_mode(old.st_mode) & most)
    }

    /// All who may read it may run it, or it is no program at all.
    fn run_as(&self, program: bool) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(fstat(&self.file)?.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
        let runs = Mode::from_raw_mode((mode.as_raw_mode() & 0o444) >> 2);
        fchmod(&self.file, if program { mode | runs } else { mode & !(Mode::XUSR | Mode::XGRP | Mode::XOTH) })
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            // What cannot be removed now is swept by the next write here.
            let _ = unlinkat(self.dir, &self.name, AtFlags::empty());
        }
    }
}

/// Removes what killed processes left in the folder: files named like ours whose lock is free. A lock tells the living
/// from the dead across containers and reused process ids, which a number in a name does not.
fn sweep(dir: &OwnedFd) {
    let Ok(found) = walk::entries(dir) else { return };
    for entry in found.entries.iter().filter(|entry| entry.name.to_str().is_some_and(is_temp)) {
        let name = Path::new(&entry.name);
        let Ok(file) = open_part_file(dir.as_fd(), name) else { continue };
        let regular = fstat(&file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1);
        if regular && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = unlinkat(dir, name, AtFlags::empty());
        }
    }
}

/// Whether this is exactly how we name temporary files: `.max-team-<pid>-<count>.tmp`.
pub(crate) fn is_temp(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix(".max-team-")
        .and_then(|rest| rest.strip_suffix(".tmp"))
        .and_then(|rest| rest.split_once('-'))
        .is_some_and(|(pid, count)| is_number(pid) && is_number(count))
}
