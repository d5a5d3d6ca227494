//! A moment of the working tree, and what has changed since.
//!
//! A snapshot marks every file that differs from the last commit, so it is cheap where little differs. A file changed
//! since then if its mark is not its content any more, or if it had no mark and differs now; commits in between do
//! not matter. While it lives in memory a snapshot also keeps small texts, so that work on top of uncommitted work is
//! told apart from it; read back from a store, it names the same files and shows them against the last commit.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use max_team_core::hash::Hash;
use max_team_core::policy::Sight;
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::repo::Repo;
use super::tree::{self, Changes};
use super::{Diff, FILES_MAX, GitError};
use crate::files::diff as lines;
use crate::text::visible;

/// Bytes of a file whose content is its mark; of a larger one, size and time are.
const HASHED_BYTES_MAX: u64 = 32 << 20;
/// Bytes of one text that a snapshot keeps.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// Bytes of all texts that a snapshot keeps.
const TEXTS_BYTES_MAX: usize = 8 << 20;

/// What differed from the last commit at some moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The commit, or the empty tree.
    base: String,
    /// The files that differed from it.
    marks: BTreeMap<PathBuf, Mark>,
    /// Whether there were more than are marked.
    #[serde(default)]
    cut: bool,
}

/// How a file was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    /// The hash of its content; `None` if it was not there.
    hash: Option<Hash>,
    #[serde(skip)]
    text: Option<Arc<str>>,
}

/// Marks how the working tree is now. `None`: there is no git repository here. Blocking.
pub fn snapshot(root: &Path, cancel: &CancellationToken) -> Result<Option<Snapshot>, GitError> {
    // Marks are for our own eyes; what is shown of them is up to whoever compares.
    let whole = Sight::default();
    let Some(repo) = Repo::open(root, &whole, cancel)? else { return Ok(None) };
    let mut snapshot = Snapshot { base: repo.base.clone(), marks: BTreeMap::new(), cut: false };
    let mut room = TEXTS_BYTES_MAX;
    for path in differing(&repo, &repo.specs(&[])?, &mut snapshot.cut)? {
        if cancel.is_cancelled() {
            return Err(GitError::Stopped);
        }
        let mark = Mark::of(&repo, &path, &mut room);
        snapshot.marks.insert(path, mark);
    }
    Ok(Some(snapshot))
}

/// What has changed since a moment, within `paths` (paths or globs relative to `root`; none means everything).
/// `None`: there is no git repository here any more. Blocking.
pub fn diff_since(
    root: &Path,
    then: &Snapshot,
    paths: &[String],
    cancel: &CancellationToken,
) -> Result<Option<Diff>, GitError> {
    diff_since_seen(root, then, paths, &Sight::default(), cancel)
}

/// The same for somebody who sees only a part: files out of sight are left out, and counted. Blocking.
pub fn diff_since_seen(
    root: &Path,
    then: &Snapshot,
    paths: &[String],
    sight: &Sight,
    cancel: &CancellationToken,
) -> Result<Option<Diff>, GitError> {
    let Some(mut repo) = Repo::open(root, sight, cancel)? else { return Ok(None) };
    // Against what was the base then: what was committed since is a change, too.
    repo.base.clone_from(&then.base);
    let mut changes = Changes::default();
    changes.patch.cut |= then.cut;
    let mut candidates = differing(&repo, &repo.specs(paths)?, &mut changes.patch.cut)?;
    let within = Within::new(&repo.clean(paths)?)?;
    candidates.extend(then.marks.keys().filter(|path| within.has(path)).cloned());
    let (mut known, mut tracked) = (Vec::new(), Vec::new());
    let mut room = TEXTS_BYTES_MAX;
    for path in candidates {
        if cancel.is_cancelled() {
            return Err(GitError::Stopped);
        }
        let marks = then.marks.get(&path).map(|mark| (mark, Mark::of(&repo, &path, &mut room)));
        match marks {
            Some((mark, now)) if mark.hash == now.hash => {}
            _ if changes.hides(&repo, &path.to_string_lossy()) => {}
            Some((mark, now)) if mark.is_told() && now.is_told() => known.push((path, mark, now)),
            _ => tracked.push(path),
        }
    }
    for (path, mark, now) in known {
        let name = visible(&path.to_string_lossy());
        let (old, new) = (mark.text.as_deref(), now.text.as_deref());
        let (added, removed) = lines::counts(old.unwrap_or_default(), new.unwrap_or_default());
        changes.count(&name, added as u64, removed as u64);
        let note = if new.is_none() { "deleted file\n" } else { "" };
        let told = lines::unified(&name, old, new.unwrap_or_default());
        changes.patch.push(format!("diff --git a/{name} b/{name}\n{note}{told}").as_bytes());
        changes.patch.end_file();
    }
    against_base(&repo, &mut changes, &tracked)?;
    Ok(Some(changes.finish()))
}

/// Shows files against the base: those that git knows by its diff, others as new. What is neither any more (it was
/// new then and is gone, or is as the base again) is named.
fn against_base(repo: &Repo<'_>, changes: &mut Changes, paths: &[PathBuf]) -> Result<(), GitError> {
    changes.patch.cut |= paths.len() > FILES_MAX;
    let names: Vec<&str> = paths.iter().take(FILES_MAX).filter_map(|path| path.to_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let specs = tree::literal(names.iter().copied());
    changes.tracked(repo, &specs)?;
    for path in tree::untracked(repo, &specs)?.paths(&mut changes.patch.cut) {
        changes.untracked(repo, &path);
    }
    let told: BTreeSet<String> = changes.files.iter().map(|file| file.path.clone()).collect();
    for name in names.into_iter().map(visible).filter(|name| !told.contains(name)) {
        changes.count(&name, 0, 0);
        let note = "[changed since; what it was then is not known any more]";
        changes.patch.push(format!("diff --git a/{name} b/{name}\n{note}\n").as_bytes());
    }
    Ok(())
}

/// Everything that differs from the base, whether git knows it or not.
pub(crate) fn differing(repo: &Repo<'_>, specs: &[String], cut: &mut bool) -> Result<BTreeSet<PathBuf>, GitError> {
    let mut paths: BTreeSet<PathBuf> = tree::changed(repo, specs)?.paths(cut).into_iter().collect();
    paths.extend(tree::untracked(repo, specs)?.paths(cut));
    // A name that is no text cannot be written down, so it is left out and that is said.
    let found = paths.len();
    paths.retain(|path| path.to_str().is_some());
    *cut |= paths.len() < found;
    Ok(paths)
}

/// One hash over how some files are.
pub(crate) fn fingerprint(repo: &Repo<'_>, paths: &BTreeSet<PathBuf>) -> Hash {
    let mut told = String::new();
    for path in paths {
        let hash = Mark::of(repo, path, &mut 0).hash;
        let hash = hash.map_or_else(|| "gone".to_owned(), |hash| hash.to_string());
        told.push_str(&format!("{hash} {}\0", path.display()));
    }
    Hash::of(told)
}

impl Mark {
    fn of(repo: &Repo<'_>, path: &Path, room: &mut usize) -> Self {
        let bare = |hash| Self { hash, text: None };
        if let Some(target) = tree::link(repo, path) {
            return bare(Some(Hash::of_fields(&[b"link", target.as_os_str().as_bytes()])));
        }
        let Ok(opened) = repo.root.open_file(path, repo.sight) else {
            let is_there = repo.root.path().join(path).symlink_metadata().is_ok();
            return bare(is_there.then(|| Hash::of_fields(&[b"not a file"])));
        };
        if opened.size() > HASHED_BYTES_MAX {
            return bare(Some(by_stat(&opened.stat)));
        }
        let mut bytes = Vec::new();
        if (&opened.file).take(HASHED_BYTES_MAX).read_to_end(&mut bytes).is_err() {
            return bare(Some(by_stat(&opened.stat)));
        }
        let hash = Some(Hash::of(&bytes));
        let keep = bytes.len() <= TEXT_BYTES_MAX.min(*room) && !bytes.contains(&0) && !opened.is_linked();
        let text = if keep { String::from_utf8(bytes).ok().map(Arc::from) } else { None };
        *room -= text.as_deref().map_or(0, str::len);
        Self { hash, text }
    }

    /// Whether all that the file was is known here.
    fn is_told(&self) -> bool {
        self.text.is_some() || self.hash.is_none()
    }
}

fn by_stat(stat: &Stat) -> Hash {
    Hash::of_fields(&[b"stat", format!("{} {} {}", stat.st_size, stat.st_mtime, stat.st_mtime_nsec).as_bytes()])
}

/// Which paths are meant, as git's own `:(glob)` means it.
struct Within {
    globs: Gitignore,
    plain: Vec<PathBuf>,
}

impl Within {
    fn new(paths: &[String]) -> Result<Self, GitError> {
        let mut globs = GitignoreBuilder::new("");
        let mut plain = Vec::new();
        for path in paths {
            if path.contains(['*', '?', '[']) {
                globs.add_line(None, &format!("/{path}")).map_err(|err| GitError::Path(err.to_string()))?;
            }
            // A name may have brackets in it and mean them.
            plain.push(PathBuf::from(if path == "." { "" } else { path }));
        }
        let globs = globs.build().map_err(|err| GitError::Path(err.to_string()))?;
        Ok(Self { globs, plain })
    }

    fn has(&self, path: &Path) -> bool {
        self.plain.iter().any(|plain| path.starts_with(plain)) || self.globs.matched(path, false).is_ignore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_meant_as_git_means_them() {
        let table = [
            (".", "a/b", true),
            ("a", "a/b", true),
            ("a", "ab", false),
            ("a/b", "a/b", true),
            ("a/*", "a/b", true),
            ("a/*", "a/b/c", false),
            ("a/**", "a/b/c", true),
            ("**/*.rs", "a/b.rs", true),
            ("*.rs", "b.rs", true),
            ("*.rs", "a/b.rs", false),
            ("a/**", "b/a/c", false),
            ("a/[id]/b", "a/[id]/b", true),
        ];
        for (glob, path, want) in table {
            let within = Within::new(&[glob.to_owned()]).unwrap();
            assert_eq!(within.has(Path::new(path)), want, "{glob} {path}");
        }
    }
}
