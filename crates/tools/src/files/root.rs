//! The folder that files are opened beneath. Nothing outside it can be reached by any path, even if files are moved
//! meanwhile.
//!
//! Reading follows symbolic links only while every step stays beneath the root; the kernel checks that while it
//! resolves (`openat2`), so there is no moment in between, and the opened file must be visible by its own name. Where
//! the kernel cannot, each part is opened by itself and symbolic links are refused. Writing (`atomic_write`) always goes part
//! by part and through no link at all.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use max_team_core::agent_dirs::AgentDir;
use max_team_core::policy::Visibility;
use max_team_core::suggest::nearest;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::rel_path::RelPath;
use super::walk;
use crate::tool::ToolError;

/// Times that an open is tried again when something moved in the middle of it.
#[cfg(target_os = "linux")]
const OPEN_TRIES_MAX: usize = 32;

/// `O_NONBLOCK`: opening a fifo must not wait for its other end. It means nothing to regular files.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A folder, held open: it stays the same folder when its name is given to another.
#[derive(Debug)]
pub struct Root {
    dir: OwnedFd,
    path: PathBuf,
    given: PathBuf,
    how: ResolveMode,
    /// Which folder of agents (`@files`, `@data`) it is; `None`: the project's.
    own: Option<AgentDir>,
}

/// How a path is kept beneath the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResolveMode {
    /// The kernel, in one call.
    #[cfg(target_os = "linux")]
    Kernel,
    /// We, part by part, without symbolic links.
    Parts,
}

/// A regular file that was opened beneath the root.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) file: File,
    pub(crate) stat: Stat,
}

impl OpenedFile {
    /// Whether the file has other names, perhaps outside the root.
    pub(crate) fn is_linked(&self) -> bool {
        self.stat.st_nlink > 1
    }

    /// Bytes in it, by its own account.
    pub(crate) fn size(&self) -> u64 {
        bytes_in(&self.stat)
    }
}

impl Root {
    /// Opens a folder to work beneath.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut root = Self::portable(path)?;
        root.how = best(root.dir.as_fd());
        Ok(root)
    }

    /// Opens a folder that agents keep outside the project, unless its name is a link: what is made in it is private.
    pub(crate) fn own(path: &Path, folder: AgentDir) -> io::Result<Self> {
        let dir = openat(CWD, path, DIR | OFlags::NOFOLLOW, Mode::empty())?;
        let how = best(dir.as_fd());
        Ok(Self { dir, path: path.to_owned(), given: path.to_owned(), how, own: Some(folder) })
    }

    /// Like `open` on any Unix, without `openat2`: symbolic links are refused even where they stay inside.
    pub fn portable(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        // Opened under the name that was given; what it resolves to is only a name for people.
        let dir = openat(CWD, path, DIR, Mode::empty())?;
        let given = std::path::absolute(path)?;
        Ok(Self { dir, path: path.canonicalize()?, given, how: ResolveMode::Parts, own: None })
    }

    /// Its name, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Whether it is a folder that agents keep outside the project.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// What folders and files that are made beneath it allow.
    pub(crate) fn modes(&self) -> (Mode, Mode) {
        let (folder, file) = if self.is_own() { (0o700, 0o600) } else { (0o777, 0o644) };
        (Mode::from_raw_mode(folder), Mode::from_raw_mode(file))
    }

    /// A path beneath it, as people know it.
    fn shown(&self, path: &Path) -> String {
        match self.own {
            Some(folder) => Path::new(folder.name()).join(path).display().to_string(),
            None => path.display().to_string(),
        }
    }

    /// The folder itself, as people know it.
    fn itself(&self) -> String {
        self.own.map_or_else(|| "the project folder".to_owned(), |folder| format!("`{}`", folder.name()))
    }

    /// Cleans a path that a model wrote.
    pub(crate) fn place(&self, text: &str) -> Result<RelPath, ToolError> {
        RelPath::parse(text, &[&self.path, &self.given])
    }

    /// Opens a regular file for reading; anything else is refused.
    pub(crate) fn open_file(&self, path: &Path, sight: &Visibility) -> Result<OpenedFile, ToolError> {
        let file = self.open_beneath(path, FILE, sight).map_err(|errno| self.missing(path, errno, sight))?;
        let stat = fstat(&file).map_err(|errno| self.trouble("read", path, errno))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(OpenedFile { file: file.into(), stat }),
            other => Err(not_a_file(&self.shown(path), other)),
        }
    }

    /// Opens a folder for reading.
    pub(crate) fn open_dir(&self, path: &Path, sight: &Visibility) -> Result<OwnedFd, ToolError> {
        self.open_beneath(path, DIR, sight).map_err(|errno| match errno {
            Errno::NOTDIR if self.open_beneath(path, FILE, sight).is_ok() => {
                ToolError::correctable(format!("`{}` is not a folder; use `read_file`", self.shown(path)))
            }
            errno => self.missing(path, errno, sight),
        })
    }

    /// Whether there is a folder at that path.
    pub(crate) fn is_dir(&self, path: &Path, sight: &Visibility) -> bool {
        self.open_beneath(path, DIR, sight).is_ok()
    }

    /// Whether a path that a user wrote names something beneath the folder.
    pub fn has_path(&self, text: &str) -> bool {
        self.place(text).is_ok_and(|place| self.has(place.as_path()))
    }

    /// Whether something has that name, readable or not. Nothing is opened.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return path == Path::new(".") };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let dir = self.open_beneath(folder, DIR, &Visibility::default());
        dir.is_ok_and(|dir| statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    /// If some files are hidden, a link is followed only to a target that is visible by its own name.
    fn open_beneath(&self, path: &Path, flags: OFlags, sight: &Visibility) -> Result<OwnedFd, Errno> {
        match self.how {
            #[cfg(target_os = "linux")]
            ResolveMode::Kernel if sight.is_whole() => by_kernel(self.dir(), path, flags),
            #[cfg(target_os = "linux")]
            ResolveMode::Kernel => match by_parts(self.dir(), path, flags) {
                Err(Errno::LOOP) => self.through_links(path, flags, sight),
                outcome => outcome,
            },
            ResolveMode::Parts => by_parts(self.dir(), path, flags),
        }
    }

    /// Opens the target of a link, and asks the kernel for the name of the opened file, so that a rename meanwhile does
    /// not matter.
    #[cfg(target_os = "linux")]
    fn through_links(&self, path: &Path, flags: OFlags, sight: &Visibility) -> Result<OwnedFd, Errno> {
        let name = |fd: BorrowedFd<'_>| {
            let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
            std::fs::read_link(link).map_err(|_| Errno::LOOP)
        };
        let opened = by_kernel(self.dir(), path, flags)?;
        let (real, root) = (name(opened.as_fd())?, name(self.dir())?);
        let inside = real.strip_prefix(&root).map_err(|_| Errno::LOOP)?;
        let is_seen = inside.to_str().is_some_and(|inside| sight.for_scan().is_visible(inside));
        if is_seen { Ok(opened) } else { Err(Errno::LOOP) }
    }

    /// Describes an error, and says whether the agent can do something about it in this turn.
    pub(crate) fn trouble(&self, doing: &str, path: &Path, errno: Errno) -> ToolError {
        let shown = self.shown(path);
        if errno == Errno::NOENT && fstat(&self.dir).is_ok_and(|stat| stat.st_nlink == 0) {
            let gone = format!("{} `{}` is gone", self.itself(), self.path.display());
            // A folder of agents is made again by the next write.
            return if self.is_own() { ToolError::correctable(gone) } else { ToolError::fatal(gone) };
        }
        let words = match errno {
            Errno::NOSPC | Errno::DQUOT => {
                return ToolError::fatal(format!("cannot {doing} `{shown}`: the disk is full ({errno})"));
            }
            Errno::IO | Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::STALE => {
                return ToolError::fatal(format!("cannot {doing} `{shown}`: {errno}"));
            }
            Errno::NOENT => format!("`{shown}` does not exist"),
            Errno::NOTDIR => format!("`{shown}` leads through something that is not a folder"),
            Errno::XDEV => format!("`{shown}` leads out of {} through a symbolic link", self.itself()),
            Errno::LOOP => format!("`{shown}` leads through a symbolic link that may not be followed"),
            Errno::NXIO => format!("`{shown}` is a socket or a device, not a file"),
            Errno::ACCESS | Errno::PERM => format!("cannot {doing} `{shown}`: permission denied"),
            Errno::NAMETOOLONG => format!("the path `{shown}` is too long for this system"),
            errno => format!("cannot {doing} `{shown}`: {errno}"),
        };
        ToolError::Correctable(words)
    }

    /// Like `trouble` while opening to read; names what the model may have meant.
    fn missing(&self, path: &Path, errno: Errno, sight: &Visibility) -> ToolError {
        let told = self.trouble("open", path, errno);
        let (ToolError::Correctable(words), Errno::NOENT) = (&told, errno) else { return told };
        match self.similar(path, sight) {
            Some(like) => ToolError::correctable(format!("{words}; did you mean `{like}`?")),
            None => told,
        }
    }

    fn similar(&self, path: &Path, sight: &Visibility) -> Option<String> {
        let (folder, name) = (path.parent()?, path.file_name()?.to_str()?);
        let beside = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let dir = self.open_beneath(beside, DIR, sight).ok()?;
        let names = walk::entries(&dir).map(|found| found.entries).unwrap_or_default();
        let seen = |name: &&str| sight.is_visible(&folder.join(name).to_string_lossy());
        let like = nearest(name, names.iter().filter_map(|entry| entry.name.to_str()).filter(seen))?;
        Some(self.shown(&folder.join(like)))
    }
}

/// Says why something that was opened is not a file to read or replace.
pub(crate) fn not_a_file(shown: &str, kind: FileType) -> ToolError {
    ToolError::Correctable(match kind {
        FileType::Directory => format!("`{shown}` is a folder; use `list_dir`"),
        FileType::Fifo => format!("`{shown}` is a pipe, not a file"),
        FileType::Socket => format!("`{shown}` is a socket, not a file"),
        FileType::CharacterDevice | FileType::BlockDevice => format!("`{shown}` is a device, not a file"),
        FileType::Symlink => format!("`{shown}` is a symbolic link; write to the file it points to, by its own path"),
        _ => format!("`{shown}` is not a regular file"),
    })
}

pub(crate) fn bytes_in(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

#[cfg(target_os = "linux")]
fn best(dir: BorrowedFd<'_>) -> ResolveMode {
    // Old kernels lack the call; some containers forbid it.
    match by_kernel(dir, Path::new("."), DIR) {
        Ok(_) => ResolveMode::Kernel,
        Err(_) => ResolveMode::Parts,
    }
}

#[cfg(not(target_os = "linux"))]
fn best(_: BorrowedFd<'_>) -> ResolveMode {
    ResolveMode::Parts
}

#[cfg(target_os = "linux")]
fn by_kernel(dir: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    // Other mounts are fine: only an administrator can put one beneath the root, and then it is meant to be there.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..OPEN_TRIES_MAX {
        match openat2(dir, path, flags, Mode::empty(), resolve) {
            // Something was renamed while the kernel followed a `..` of a link: it asks to try again.
            Err(Errno::AGAIN) => {}
            outcome => return outcome,
        }
    }
    Err(Errno::AGAIN)
}

fn by_parts(dir: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut parts = path.iter().peekable();
    let mut at: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        // Paths come here clean; this is the barrier, so it does not rely on that.
        if part == ".." || part == "/" {
            return Err(Errno::XDEV);
        }
        let flags = if parts.peek().is_some() { DIR } else { flags };
        let next = open_part(at.as_ref().map_or(dir, AsFd::as_fd), part.as_ref(), flags)?;
        at = Some(next);
    }
    at.ok_or(Errno::NOENT)
}

/// Opens one name in an open folder, unless it is a symbolic link.
pub(crate) fn open_part(dir: BorrowedFd<'_>, part: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(dir, part, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(|errno| match errno {
        // Linux says "not a folder" of a link that should be one.
        Errno::NOTDIR if is_link(dir, part) => Errno::LOOP,
        errno => errno,
    })
}

/// Opens one name in an open folder to read it as a file, unless it is a symbolic link.
pub(crate) fn open_part_file(dir: BorrowedFd<'_>, part: &Path) -> Result<OwnedFd, Errno> {
    open_part(dir, part, FILE)
}

/// Opens one name in an open folder as a folder, unless it is a symbolic link.
pub(crate) fn open_part_dir(dir: BorrowedFd<'_>, part: &Path) -> Result<OwnedFd, Errno> {
    open_part(dir, part, DIR)
}

fn is_link(dir: BorrowedFd<'_>, part: &Path) -> bool {
    rustix::fs::statat(dir, part, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}
