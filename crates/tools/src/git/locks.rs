//! Locks that a commit of ours leaves behind where git and its supervisor are killed together.
//!
//! Git removes its locks when it is asked to end, and the supervisor asks first. What is left after a harder end blocks
//! every later commit, of agents and of the user. So a commit first notes, in git's folder, which of these locks are not
//! there, and locks that note (`flock`). A note that no process locks was left by a killed commit, and the git locks that it
//! names were made by that commit. They are removed unless a git that runs now is at work in the repository.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::command::linked;

/// The note, in the folder that git keeps for the working tree.
const NOTE: &str = "max-team-commit";
/// Bytes of a note.
const NOTE_BYTES_MAX: u64 = 4 << 10;
/// Locks beside the one of the branch. A git in a process namespace of its own has the number 2, every time.
const LOCKS: [&str; 3] = ["index.lock", "HEAD.lock", "next-index-2.lock"];
/// The name of the branch's lock in a note.
const BRANCH: &str = "branch";

/// Where a repository is kept: the working tree, git's folder for it, and the one that all working trees share.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepoDirs<'a> {
    pub(super) top: &'a Path,
    pub(super) own: &'a Path,
    pub(super) shared: &'a Path,
}

/// The same, found without asking git anything.
struct LocatedRepo {
    top: PathBuf,
    own: PathBuf,
    shared: PathBuf,
}

impl LocatedRepo {
    /// The repository that a folder is in.
    fn around(root: &Path) -> Option<Self> {
        let root = root.canonicalize().ok()?;
        let top = root.ancestors().find(|folder| folder.join(".git").exists())?.to_owned();
        let own = top.join(".git");
        if own.is_dir() {
            let own = own.canonicalize().ok()?;
            return Some(Self { top, shared: own.clone(), own });
        }
        let shared = linked(&own)?;
        let named = fs::read_to_string(&own).ok()?;
        let own = top.join(named.trim_end().strip_prefix("gitdir: ")?).canonicalize().ok()?;
        Some(Self { top, own, shared })
    }

    fn places(&self) -> RepoDirs<'_> {
        RepoDirs { top: &self.top, own: &self.own, shared: &self.shared }
    }
}

/// Removes the locks that a killed commit has left in the repository around a folder, if one has. Blocking.
pub fn clear_left_locks(root: &Path) {
    let Some(found) = LocatedRepo::around(root) else { return };
    // What cannot be removed now is named by `doctor` and by the next commit.
    let _ = tidy(&found.places());
}

/// Locks in the repository around a folder that no running git can be seen to hold: they block every commit. Blocking.
pub fn blocking_locks(root: &Path) -> Vec<PathBuf> {
    LocatedRepo::around(root).map(|found| blocking(&found.places())).unwrap_or_default()
}

impl RepoDirs<'_> {
    /// Each lock by its name in a note, and where it would be.
    fn locks(&self) -> Vec<(&'static str, PathBuf)> {
        let branch = fs::read_to_string(self.own.join("HEAD")).ok();
        let branch = branch.as_deref().and_then(|head| head.trim().strip_prefix("ref: ")).map(Path::new);
        let is_plain = |name: &&Path| {
            name.starts_with("refs/heads") && name.components().all(|part| matches!(part, Component::Normal(_)))
        };
        let branch = branch.filter(is_plain).map(|name| {
            let mut name = self.shared.join(name).into_os_string();
            name.push(".lock");
            (BRANCH, PathBuf::from(name))
        });
        LOCKS.into_iter().map(|name| (name, self.own.join(name))).chain(branch).collect()
    }
}

/// One commit's claim to a repository.
#[derive(Debug)]
pub(super) struct CommitClaim<'a> {
    places: RepoDirs<'a>,
    note: File,
}

impl<'a> CommitClaim<'a> {
    /// Claims it, and removes leftovers of a killed commit; `None` while another commit of ours runs, or a running git
    /// uses these locks.
    pub(super) fn take(places: RepoDirs<'a>) -> io::Result<Option<Self>> {
        let Some(mut note) = open(&places, true)? else { return Ok(None) };
        // A lock of ours that a running git keeps from being removed blocks this commit, too; its note must stay.
        if !sweep(&places, &note)? {
            return Ok(None);
        }
        let absent = places.locks().into_iter().filter(|(_, path)| path.symlink_metadata().is_err());
        let absent: Vec<&str> = absent.map(|(name, _)| name).collect();
        note.set_len(0)?;
        note.write_all(absent.join("\n").as_bytes())?;
        Ok(Some(Self { places, note }))
    }

    /// Releases it. If git was killed, its leftovers are removed.
    pub(super) fn end(self, is_killed: bool) {
        let removed = if is_killed { sweep(&self.places, &self.note) } else { Ok(true) };
        // A note that stays is read by the next commit.
        if removed.is_ok_and(|removed| removed) {
            let _ = fs::remove_file(self.places.own.join(NOTE));
        }
    }
}

fn tidy(places: &RepoDirs<'_>) -> io::Result<()> {
    if let Some(note) = open(places, false)?
        && sweep(places, &note)?
    {
        fs::remove_file(places.own.join(NOTE))?;
    }
    Ok(())
}

/// Locks that are there and that no running git can be seen to hold.
pub(super) fn blocking(places: &RepoDirs<'_>) -> Vec<PathBuf> {
    let there = places.locks().into_iter().filter(|(_, path)| path.symlink_metadata().is_ok());
    let there: Vec<PathBuf> = there.map(|(_, path)| path).collect();
    if there.is_empty() || is_at_work(places) { Vec::new() } else { there }
}

/// The note, held; `None` if another process holds it, or there is none and none is to be made.
fn open(places: &RepoDirs<'_>, is_made: bool) -> io::Result<Option<File>> {
    let path = places.own.join(NOTE);
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let opened =
        OpenOptions::new().read(true).write(true).create(is_made).truncate(false).custom_flags(flags).open(&path);
    let note = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_made => return Ok(None),
        opened => opened?,
    };
    if flock(&note, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    // Its owner may have removed it meanwhile.
    let is_there =
        path.symlink_metadata().is_ok_and(|there| note.metadata().is_ok_and(|held| held.ino() == there.ino()));
    Ok(Some(note).filter(|_| is_there))
}

/// Removes the locks that a note names and that are not older than it; whether none of them is left.
fn sweep(places: &RepoDirs<'_>, mut note: &File) -> io::Result<bool> {
    let mut text = String::new();
    note.rewind()?;
    note.take(NOTE_BYTES_MAX).read_to_string(&mut text)?;
    note.rewind()?;
    let noted = note.metadata()?;
    let named: Vec<&str> = text.lines().collect();
    let is_ours = |(name, path): &(&str, PathBuf)| {
        let since = path.symlink_metadata().is_ok_and(|lock| {
            lock.is_file() && (lock.ctime(), lock.ctime_nsec()) >= (noted.mtime(), noted.mtime_nsec())
        });
        let is_inside = path.parent().and_then(|folder| folder.canonicalize().ok());
        named.contains(name) && since && is_inside.is_some_and(|folder| folder.starts_with(places.shared))
    };
    let ours: Vec<PathBuf> = places.locks().into_iter().filter(is_ours).map(|(_, path)| path).collect();
    if ours.is_empty() {
        return Ok(true);
    }
    if is_at_work(places) {
        return Ok(false);
    }
    for path in ours {
        fs::remove_file(path)?;
    }
    Ok(true)
}

/// Whether a running git works in these folders; a git process with an unknown folder counts.
#[cfg(target_os = "linux")]
fn is_at_work(places: &RepoDirs<'_>) -> bool {
    let is_git = |process: &PathBuf| {
        fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim() == "git" || name.starts_with("git-"))
    };
    let is_here = |process: PathBuf| match fs::read_link(process.join("cwd")) {
        Ok(folder) => [places.top, places.own, places.shared].iter().any(|place| folder.starts_with(place)),
        // It has just ended, or is another user's.
        Err(error) => error.kind() != io::ErrorKind::NotFound && process.exists(),
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    processes.filter(is_git).any(is_here)
}

/// Other systems do not say, so nothing is removed there.
#[cfg(not(target_os = "linux"))]
fn is_at_work(_: &RepoDirs<'_>) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_whose_git_was_killed_removes_its_locks_and_its_note() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join(".git");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let places = RepoDirs { top: folder.path(), own: &own, shared: &own };
        let claim = CommitClaim::take(places).unwrap().unwrap();
        fs::write(own.join("index.lock"), "").unwrap();
        claim.end(true);
        assert!(!own.join("index.lock").exists() && !own.join(NOTE).exists());
    }
}
