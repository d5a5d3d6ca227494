//! A worktree: a copy of a project for an agent that writes; made, reviewed, and merged back or dropped.
//!
//! A worktree is a folder of ours. In it, `tree` is the agent's root, with a repository of its own that borrows the
//! project's objects (what `git clone --shared` makes); nothing of the project can be written from it. Beside it, out
//! of the agent's reach, `keep` is our own record of the original tree. Differences are found with that record alone,
//! so nothing that is done to the tree or to its repository can make us run a program, or hide a file that is merged.
//! Files are merged one by one, each only if the project still has the original; no commit is made.
//!
//! Every step can be done again: an unfinished worktree is swept, a merge writes its intent down first, and a folder
//! is renamed before it is removed. Only accepting and its owner's recovery write into the project.

mod baseline;
mod collect;
mod diff;
mod ignored;
mod manifest;
mod merge;
mod undo;

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use max_team_core::policy::Visibility;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, lstat, openat};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use self::baseline::Baseline;
use self::manifest::Manifest;
use crate::files::Root;
use crate::git::GitError;
use crate::git::repo::Repo;
use crate::tool::ToolError;

pub use diff::{Change, Fate, Review};
pub use ignored::IgnoredFiles;
pub use manifest::FileDecision;
pub use max_team_core::rewind::FileState;
pub use merge::{Accept, MergeProgress, MergeResult, RecordIntent};
pub use undo::{MergeHalted, file_names};

/// Files of one worktree.
pub const FILES_MAX: usize = 200_000;
/// Bytes of one worktree.
pub const BYTES_MAX: u64 = 16 << 30;
/// Files of one worktree that differ.
pub const CHANGES_MAX: usize = 10_000;
/// Bytes of a worktree's name.
const NAME_BYTES_MAX: usize = 64;
/// How often a folder is begun again because another process took it for a leftover.
const BEGIN_TRIES_MAX: usize = 8;

/// What a folder is called while it is made, and after it was dropped.
const MAKING: &str = ".making-";
const LEAVING: &str = ".leaving-";

/// Why there is no worktree, or nothing was done with it.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// A worktree is made of a repository.
    #[error("`{0}` is in no git repository, and a worktree needs one; run `git init` there, or leave `isolation` out")]
    NoRepository(String),
    /// No such worktree.
    #[error("there is no worktree `{0}`; `max-team worktrees list` lists the worktrees")]
    NotFound(String),
    /// Without a sandbox nothing keeps the agent in its worktree.
    #[error(
        "without a sandbox an agent is not confined to its worktree; run `max-team doctor` to see why there is none"
    )]
    NoSandbox,
    /// Another process uses it.
    #[error("the worktree `{0}` is in use by another process; try again when that is done")]
    Busy(String),
    /// The name is not valid.
    #[error("`{0}` cannot be the name of a worktree: letters, digits, `-` and `_` can")]
    Name(String),
    /// It would be too large.
    #[error("the project is too large for a worktree: {0}; ignore what need not be in it (`.gitignore`)")]
    TooLarge(String),
    /// Too many files differ in it.
    #[error("more than {CHANGES_MAX} files differ in the worktree `{0}`; look at it in `{1}`")]
    TooMany(String, String),
    /// A file that was named has not changed in it.
    #[error("`{0}` has not changed in this worktree; `max-team worktrees show` lists what has")]
    NotChanged(String),
    /// The intent could not be written down.
    #[error("nothing was accepted: the record of it could not be written first: {0}")]
    Unwritten(String),
    /// A merge stopped on its way.
    #[error("{0}")]
    Halted(Box<MergeHalted>),
    /// What it was made from is not there any more.
    #[error("what the worktree `{0}` was made from cannot be read: {1}")]
    Broken(String, String),
    /// The file system refuses.
    #[error("cannot write `{0}`: {1}")]
    Io(String, String),
    /// An error of git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file cannot be read or written.
    #[error("{0}")]
    File(#[from] ToolError),
}

/// What a worktree is made for.
#[derive(Debug, Clone, Copy)]
pub struct WorktreeOptions<'a> {
    /// What it is called.
    pub id: &'a str,
    /// The project's folder.
    pub project: &'a Path,
    /// What its agent sees of the project; nothing else gets into it.
    pub sight: &'a Visibility,
    /// Files that are in it even if git ignores them, because they will be asked for by name.
    pub named: &'a [String],
    /// Its agent, and what the agent works at: for people.
    pub by: &'a str,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// All worktrees of one user.
#[derive(Debug, Clone)]
pub struct Worktrees {
    folder: PathBuf,
}

impl Worktrees {
    /// Those in the user's folder.
    pub fn within(home: &Path) -> Self {
        Self { folder: home.join("copies") }
    }

    /// The project of which a folder is a worktree.
    pub fn project_of(&self, folder: &Path) -> Option<PathBuf> {
        let id = folder.parent()?.file_name()?.to_str()?;
        let found = self.find(id).ok()?;
        (found.root() == folder).then(|| found.project().to_owned())
    }

    /// The worktree of that name, made if it is not there yet. Blocking.
    pub fn make(&self, order: &WorktreeOptions<'_>, cancel: &CancellationToken) -> Result<Worktree, WorktreeError> {
        check(order.id)?;
        match self.find(order.id) {
            Err(WorktreeError::NotFound(_)) => {}
            found => return found,
        }
        make_private(&self.folder)?;
        let folder = self.folder.canonicalize().map_err(|err| failed(&self.folder, &err))?;
        let (making, last) = (folder.join(format!("{MAKING}{}", order.id)), folder.join(order.id));
        let held = begin(&making, order.id)?;
        let made = Baseline::make(order, &making, &last, cancel).and_then(|()| {
            sync(&making);
            fs::rename(&making, &last).map_err(|err| failed(&last, &err))
        });
        if made.is_err() {
            // What cannot be removed now is swept later.
            let _ = clear(&making);
        }
        made?;
        sync(&folder);
        drop(held);
        self.find(order.id)
    }

    /// Where the agent of that worktree works, or would.
    pub fn root(&self, id: &str) -> PathBuf {
        let folder = self.folder.parent().and_then(|home| Some(home.canonicalize().ok()?.join("copies")));
        folder.unwrap_or_else(|| self.folder.clone()).join(id).join(baseline::TREE)
    }

    /// An existing worktree.
    pub fn find(&self, id: &str) -> Result<Worktree, WorktreeError> {
        check(id)?;
        let place = self.folder.join(id);
        // Most agents have none, which one look tells.
        match place.join(manifest::FILE).is_file().then(|| place.canonicalize()) {
            Some(Ok(home)) => Ok(Worktree { record: Manifest::read(&home)?, home }),
            _ => Err(WorktreeError::NotFound(id.to_owned())),
        }
    }

    /// All worktrees, the oldest first.
    pub fn list(&self) -> Vec<Worktree> {
        let mut found: Vec<Worktree> = self.names().iter().filter_map(|name| self.find(name).ok()).collect();
        found.sort_by(|one, other| (one.record.made_at_ms, one.id()).cmp(&(other.record.made_at_ms, other.id())));
        found
    }

    /// Removes what processes left that were killed while they made or dropped a worktree. Returns what could not be
    /// removed.
    pub fn sweep(&self) -> Vec<WorktreeError> {
        let mut failed = Vec::new();
        for name in self.names().iter().filter(|name| name.starts_with(MAKING) || name.starts_with(LEAVING)) {
            let folder = self.folder.join(name);
            if let Ok(Some(_held)) = hold(&folder, name) {
                failed.extend(clear(&folder).err());
            }
        }
        failed
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

#[derive(Debug)]
pub struct Worktree {
    home: PathBuf,
    record: Manifest,
}

impl Worktree {
    /// What it is called.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Where its agent works: all that the agent can write.
    pub fn root(&self) -> PathBuf {
        self.home.join(baseline::TREE)
    }

    /// What its agent's commands can read besides: the objects that its repository borrows.
    pub fn reads(&self) -> Vec<PathBuf> {
        std::iter::once(self.home.join(baseline::OBJECTS)).chain(self.record.objects.iter().cloned()).collect()
    }

    /// The project it is a copy of.
    pub fn project(&self) -> &Path {
        &self.record.project
    }

    /// Its agent, and what the agent works at.
    pub fn by(&self) -> &str {
        &self.record.by
    }

    /// When it was made, in milliseconds since 1970.
    pub fn made_at_ms(&self) -> i64 {
        self.record.made_at_ms
    }

    /// Marks that an agent works in it, as long as the file lives.
    pub fn occupy(&self) -> Option<OwnedFd> {
        let tree = open_folder(&self.root()).ok()?;
        // On a file system without locks there is no mark.
        let _ = flock(&tree, FlockOperation::NonBlockingLockShared);
        Some(tree)
    }

    /// Whether an agent works in it, in any process.
    pub fn is_occupied(&self) -> bool {
        let tree = open_folder(&self.root());
        tree.is_ok_and(|tree| flock(&tree, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK))
    }

    /// Whether all that differed in it at the last decision was decided, and nothing was in it that git ignores.
    pub fn is_settled(&self) -> bool {
        self.record.open == Some(0) && self.record.ignored == 0
    }

    /// What of the project is not in it, and why.
    pub fn left(&self) -> &[String] {
        &self.record.left
    }

    /// Drops it, with everything in it. Blocking.
    pub fn remove(self) -> Result<(), WorktreeError> {
        let held = self.hold()?;
        let leaving = self.home.with_file_name(format!("{LEAVING}{}", self.id()));
        if leaving.exists() {
            clear(&leaving)?;
        }
        fs::rename(&self.home, &leaving).map_err(|err| failed(&self.home, &err))?;
        clear(&leaving)?;
        drop(held);
        Ok(())
    }

    /// Locks it against other processes. Waits for a process that has it, which is short: one review or one merge.
    fn hold(&self) -> Result<OwnedFd, WorktreeError> {
        let gone = || WorktreeError::NotFound(self.id().to_owned());
        let folder = open_folder(&self.home).map_err(|_| gone())?;
        while flock(&folder, FlockOperation::LockExclusive) == Err(Errno::INTR) {}
        // The process that had it may have dropped it.
        if self.home.join(manifest::FILE).is_file() { Ok(folder) } else { Err(gone()) }
    }

    /// Like `hold`, and reads the decisions that were made meanwhile.
    fn hold_anew(&mut self) -> Result<OwnedFd, WorktreeError> {
        let held = self.hold()?;
        self.record = Manifest::read(&self.home)?;
        Ok(held)
    }
}

/// The project's repository, or why there is none to copy.
fn open<'a>(project: &Path, sight: &'a Visibility, cancel: &'a CancellationToken) -> Result<Repo<'a>, WorktreeError> {
    Repo::open(project, sight, cancel)?.ok_or_else(|| WorktreeError::NoRepository(project.display().to_string()))
}

fn root(path: &Path) -> Result<Root, WorktreeError> {
    Root::open(path).map_err(|err| failed(path, &err))
}

fn failed(path: &Path, err: &std::io::Error) -> WorktreeError {
    WorktreeError::Io(path.display().to_string(), err.to_string())
}

fn check(id: &str) -> Result<(), WorktreeError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let fits = !id.is_empty() && id.len() <= NAME_BYTES_MAX && id.bytes().all(is_name);
    if fits { Ok(()) } else { Err(WorktreeError::Name(crate::text::visible(&crate::text::clip(id, NAME_BYTES_MAX)))) }
}

fn make_private(path: &Path) -> Result<(), WorktreeError> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|err| failed(path, &err))
}

/// Makes an empty folder and locks it. Until it is locked, another process may take it for a leftover.
fn begin(path: &Path, id: &str) -> Result<OwnedFd, WorktreeError> {
    for _ in 0..BEGIN_TRIES_MAX {
        if let Some(_held) = hold(path, id)? {
            clear(path)?;
        }
        make_private(path)?;
        if let Some(held) = hold(path, id)? {
            return Ok(held);
        }
    }
    Err(WorktreeError::Busy(id.to_owned()))
}

/// Locks a folder against other processes as long as the file lives; `None` if it is not there, or is another by now.
fn hold(path: &Path, id: &str) -> Result<Option<OwnedFd>, WorktreeError> {
    let folder = match open_folder(path) {
        Err(Errno::NOENT) => return Ok(None),
        other => other.map_err(|errno| failed(path, &errno.into()))?,
    };
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(WorktreeError::Busy(id.to_owned())),
        // On a file system without locks, other processes are not kept out.
        _ => Ok(Some(folder).filter(|folder| is_at(folder, path))),
    }
}

/// Whether a folder is still the one of that name.
fn is_at(folder: &OwnedFd, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (fstat(folder), lstat(path)) else { return false };
    (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
}

fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

/// Removes a folder of ours, also if a folder in it was made unwritable.
fn clear(path: &Path) -> Result<(), WorktreeError> {
    match fs::remove_dir_all(path) {
        Err(err) if err.kind() == std::io::ErrorKind::PermissionDenied => {
            open_up(path);
            fs::remove_dir_all(path).map_err(|err| failed(path, &err))
        }
        Err(err) if err.kind() != std::io::ErrorKind::NotFound => Err(failed(path, &err)),
        _ => Ok(()),
    }
}

fn open_up(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        // A folder that cannot be changed cannot be removed either, which is then reported.
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
}

/// Syncs all that was written so far: a file that a power cut emptied would look like one that was changed.
fn sync(folder: &Path) {
    #[cfg(target_os = "linux")]
    if let Ok(folder) = fs::File::open(folder) {
        let _ = rustix::fs::syncfs(folder);
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        rustix::fs::sync();
    }
}
