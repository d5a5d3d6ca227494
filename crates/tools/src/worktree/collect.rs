//! What of a project goes into a worktree: the files as they lie there, known to git or new; ignored ones only if they
//! are named.
//!
//! Bytes are taken as they are, so that no content filter has to run and the worktree looks as the project does. A
//! submodule, or any repository further down, is taken as the files it holds. What is hidden from the agent does not
//! get into its worktree.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use max_team_core::policy::Visibility;
use tokio_util::sync::CancellationToken;

use super::{BYTES_MAX, FILES_MAX, WorktreeError};
use crate::files::{PathContent, Root, find};
use crate::git::GitError;
use crate::git::process::GitOutput;
use crate::git::repo::Repo;
use crate::git::worktree_diff::LEFTOVERS;
use crate::text::{size, visible};

/// Repositories in repositories that are looked into.
const DEPTH_MAX: usize = 8;
/// What git says of a path where another repository is.
const REPOSITORY: &[u8] = b"160000";

/// What is in a project.
#[derive(Debug, Default)]
pub(super) struct ProjectFiles {
    files: BTreeSet<PathBuf>,
    /// Files that git does not know.
    new: BTreeSet<PathBuf>,
    /// What is there and stays out, with the reason.
    pub(super) left: Vec<String>,
    /// A folder that nothing is taken from.
    without: Option<PathBuf>,
}

impl ProjectFiles {
    /// Lists a project. `repo` is its own repository; nothing is taken from `without`, which may lie in it.
    pub(super) fn of(repo: &Repo<'_>, without: &Path, cancel: &CancellationToken) -> Result<Self, WorktreeError> {
        let without = without.strip_prefix(repo.root.path()).ok().map(Path::to_owned);
        let mut list = Self { without, ..Self::default() };
        list.add(repo, Path::new(""), 0, cancel)?;
        Ok(list)
    }

    /// Adds files that are named, ignored or not.
    pub(super) fn name(&mut self, project: &Root, named: &[String]) -> Result<(), WorktreeError> {
        for name in named {
            let Ok(place) = project.place(name) else { continue };
            let path = place.as_path();
            let is_ours = self.without.as_ref().is_some_and(|without| path.starts_with(without));
            let is_git = place.parts().any(|part| part == ".git");
            let is_there = matches!(find(project, &place)?, PathContent::File(..) | PathContent::Link(_));
            if is_there && !is_git && !is_ours && !self.files.contains(path) {
                self.new.insert(path.to_owned());
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        repo: &Repo<'_>,
        prefix: &Path,
        depth: usize,
        cancel: &CancellationToken,
    ) -> Result<(), WorktreeError> {
        let mut inner = BTreeSet::new();
        for field in asked(repo, &["ls-files", "-z", "--stage"])?.fields() {
            // The mode, the hash and the stage, a tab, and the path.
            let mut parts = field.splitn(2, |byte| *byte == b'\t');
            let (Some(about), Some(path)) = (parts.next(), parts.next()) else { continue };
            let path = Path::new(OsStr::from_bytes(path));
            if about.starts_with(REPOSITORY) {
                inner.insert(path.to_owned());
            } else {
                self.files.insert(prefix.join(path));
            }
        }
        let others = [&["ls-files", "-z", "--others", "--exclude-standard"], LEFTOVERS.as_slice()].concat();
        for field in asked(repo, &others)?.fields() {
            match field.strip_suffix(b"/") {
                Some(folder) => drop(inner.insert(PathBuf::from(OsStr::from_bytes(folder)))),
                None => drop(self.new.insert(prefix.join(OsStr::from_bytes(field)))),
            }
        }
        if let Some(without) = &self.without {
            self.new.retain(|path| !path.starts_with(without));
            inner.retain(|path| !prefix.join(path).starts_with(without));
        }
        if self.files.len() + self.new.len() > FILES_MAX {
            return Err(WorktreeError::TooLarge(format!("more than {FILES_MAX} files")));
        }
        for folder in inner {
            self.add_inner(repo, &folder, prefix, depth, cancel)?;
        }
        Ok(())
    }

    /// A repository within the repository. One that was never fetched has no files.
    fn add_inner(
        &mut self,
        repo: &Repo<'_>,
        folder: &Path,
        prefix: &Path,
        depth: usize,
        cancel: &CancellationToken,
    ) -> Result<(), WorktreeError> {
        let (place, name) = (repo.root.path().join(folder), prefix.join(folder));
        if !place.is_dir() || place.join(".git").symlink_metadata().is_err() {
            return Ok(());
        }
        let is_beneath = place.canonicalize().is_ok_and(|real| real == place);
        if depth >= DEPTH_MAX || !is_beneath {
            self.leave(&name, "it is a repository too deep within others");
            return Ok(());
        }
        match Repo::open(&place, repo.sight, cancel) {
            Ok(Some(inner)) => self.add(&inner, &name, depth + 1, cancel),
            Ok(None) => Ok(()),
            Err(GitError::Stopped) => Err(GitError::Stopped.into()),
            Err(err) => {
                self.leave(&name, &err.to_string());
                Ok(())
            }
        }
    }

    fn leave(&mut self, path: &Path, why: &str) {
        self.left.push(format!("`{}`: {why}", visible(&path.to_string_lossy())));
    }

    /// Puts everything into an empty folder.
    pub(super) fn put(
        &mut self,
        project: &Root,
        sight: &Visibility,
        tree: &Path,
        cancel: &CancellationToken,
    ) -> Result<(), WorktreeError> {
        let (files, new) = (std::mem::take(&mut self.files), std::mem::take(&mut self.new));
        let mut room = BYTES_MAX;
        for path in files.union(&new) {
            if cancel.is_cancelled() {
                return Err(GitError::Stopped.into());
            }
            let is_known = files.contains(path);
            if let Some(why) = put_one(project, sight, tree, path, is_known, &mut room)? {
                self.leave(path, &why);
            }
        }
        Ok(())
    }
}

/// Puts one file into the worktree; returns why it stays out, if it does.
fn put_one(
    project: &Root,
    sight: &Visibility,
    tree: &Path,
    path: &Path,
    is_known: bool,
    room: &mut u64,
) -> Result<Option<String>, WorktreeError> {
    let stays = |why: &str| Ok(Some(why.to_owned()));
    let Some(name) = path.to_str() else { return stays("its name is not text") };
    let place = match project.place(name) {
        Ok(place) => place,
        Err(err) => return stays(&err.to_string()),
    };
    if !sight.is_visible(name) {
        return stays("it is out of sight");
    }
    let to = tree.join(path);
    let trouble = |err: io::Error| WorktreeError::Io(to.display().to_string(), err.to_string());
    let made = || to.parent().map_or(Ok(()), fs::create_dir_all);
    match find(project, &place)? {
        PathContent::Gone => Ok(None),
        PathContent::Other => stays("it is neither a file nor a link"),
        PathContent::Link(target) => {
            made().and_then(|()| symlink(target, &to)).map_err(trouble)?;
            Ok(None)
        }
        // What git knows is in the repository anyway; a new file may be a second name of a file outside the project.
        PathContent::File(_, stat) if stat.st_nlink > 1 && !is_known => stays("it has other names (hard links)"),
        PathContent::File(mut file, stat) => {
            let bytes = u64::try_from(stat.st_size).unwrap_or(0);
            let most = || WorktreeError::TooLarge(format!("more than {}", size(BYTES_MAX)));
            *room = room.checked_sub(bytes).ok_or_else(most)?;
            let mode = if stat.st_mode & 0o100 == 0 { 0o644 } else { 0o755 };
            made().map_err(trouble)?;
            let mut copy = new_file(&to, mode).map_err(trouble)?;
            io::copy(&mut file, &mut copy).map_err(trouble)?;
            Ok(None)
        }
    }
}

fn new_file(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

fn asked(repo: &Repo<'_>, args: &[&str]) -> Result<GitOutput, WorktreeError> {
    let answer = repo.long(args, "list its files")?;
    if answer.is_cut {
        return Err(WorktreeError::TooLarge(format!("more than {FILES_MAX} files")));
    }
    Ok(answer)
}
