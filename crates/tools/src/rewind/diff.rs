//! How a tree differs from a snapshot of it: the list that finds the changes of commands, kept for a task and shown as
//! a diff.
//!
//! A snapshot is a list, stored among the contents that are kept of the tree. It names files by their content, so
//! commits in between do not matter. Nothing hidden gets into a diff; an agent that does not see everything is not
//! shown links.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use max_team_core::hash::Hash;
use max_team_core::policy::Visibility;
use max_team_core::rewind::{FileChange, FileState};
use tokio_util::sync::CancellationToken;

use super::blobs::BlobDir;
use super::scan::FileRecord;
use super::tree::{AFTER_MAX, BEFORE_MAX, RecordStep, TrackedTrees, TreeIndex};
use crate::files::{Root, diff as lines, look};
use crate::git::repo::Repo;
use crate::git::worktree_diff::{DiffBuilder, LEFTOVERS, LINKED, UNSEEN_LINK, is_binary};
use crate::git::{Diff, FILES_MAX};
use crate::text::visible;

impl TrackedTrees {
    /// Keeps how a tree is now, and names it for [`Self::diff`]. `None`: it cannot be looked at. Blocking.
    pub fn snapshot(&self, root: &Path, cancel: &CancellationToken, record: RecordStep<'_>) -> Option<Hash> {
        let root = Root::open(root).ok()?;
        let ignored = tracked_though_ignored(&root, cancel);
        self.looked(&root, BEFORE_MAX, cancel, record, |objects, list| {
            let leftovers = leftovers()?;
            let mut files = list.files.clone();
            files.retain(|path, _| !is_in(&leftovers, path));
            for path in ignored {
                let state = on_disk(&root, objects, &path)?;
                files.insert(path, FileRecord { stamp: 0, is_fresh: true, state });
            }
            let text = TreeIndex { files, unread: list.unread.clone(), ..TreeIndex::default() }.text();
            let name = Hash::of(&text);
            list.held = list.held.saturating_add(objects.put(&name, text.as_bytes()).ok()?);
            Some(name)
        })
    }

    /// What has changed since a snapshot within `paths` (paths or globs relative to `root`; none means everything), as
    /// far as `sight` goes; hidden files are counted. `None`: the snapshot is gone, or the tree cannot be scanned.
    /// Blocking.
    pub fn diff(
        &self,
        root: &Path,
        then: &Hash,
        paths: &[String],
        sight: &Visibility,
        cancel: &CancellationToken,
        record: RecordStep<'_>,
    ) -> Option<Diff> {
        let root = Root::open(root).ok()?;
        let within = PathScope::new(&root, paths)?;
        let (objects, differing) = self.looked(&root, AFTER_MAX, cancel, record, |objects, list| {
            let then = TreeIndex::parse(&String::from_utf8(objects.get(then)?).ok()?)?;
            let differing = differing(&root, objects, &then, list, |path| within.has(Path::new(path)))?;
            Some((objects.clone(), differing))
        })?;
        let mut changes = DiffBuilder::default();
        changes.patch.cut |= differing.len() > FILES_MAX;
        for FileChange { path, before, after } in differing.into_iter().take(FILES_MAX) {
            if cancel.is_cancelled() {
                return None;
            }
            if !changes.hides(sight, &path) {
                show(&mut changes, &root, sight, &path, [before, after].map(|state| DiffSide::of(&objects, state)));
            }
        }
        Some(changes.finish())
    }
}

/// The files among `is_meant` that are not as they were.
fn differing(
    root: &Root,
    objects: &BlobDir,
    then: &TreeIndex,
    now: &TreeIndex,
    is_meant: impl Fn(&str) -> bool,
) -> Option<Vec<FileChange>> {
    let leftovers = leftovers()?;
    let was_unread = |path: &str| then.unread.iter().any(|folder| Path::new(path).starts_with(folder));
    let mut found = Vec::new();
    for (path, known) in now.files.iter().filter(|(path, _)| is_meant(path) && !is_in(&leftovers, path)) {
        match then.files.get(path) {
            Some(old) if old.state == known.state => {}
            Some(old) => found.push(FileChange { path: path.clone(), before: old.state, after: known.state }),
            None if was_unread(path) => {}
            None => found.push(FileChange { path: path.clone(), before: FileState::Gone, after: known.state }),
        }
    }
    // A file that is on the list no longer may only have become ignored.
    for (path, old) in then.files.iter().filter(|(path, _)| is_meant(path) && !now.files.contains_key(*path)) {
        let after = on_disk(root, objects, path)?;
        if after != old.state {
            found.push(FileChange { path: path.clone(), before: old.state, after });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Some(found)
}

/// The state of a file that a scan passes over; its bytes are kept.
fn on_disk(root: &Root, objects: &BlobDir, path: &str) -> Option<FileState> {
    let mut bytes = None;
    let state = look(root, &root.place(path).ok()?, &mut bytes).unwrap_or(FileState::Other);
    if let Some((hash, bytes)) = state.bytes().zip(bytes) {
        objects.put(&hash, &bytes).ok()?;
    }
    Some(state)
}

/// Files that the project ignores and git tracks all the same.
fn tracked_though_ignored(root: &Root, cancel: &CancellationToken) -> Vec<String> {
    let whole = Visibility::default();
    let Ok(Some(repo)) = Repo::open(root.path(), &whole, cancel) else { return Vec::new() };
    let args = ["ls-files", "--cached", "--ignored", "--exclude-standard", "-z", "--", "."];
    let told = repo.told(&args, "list ignored files");
    told.iter().flat_map(|told| told.fields()).filter_map(|path| Some(str::from_utf8(path).ok()?.to_owned())).collect()
}

/// One side of a change.
enum DiffSide {
    Gone,
    Text { text: String, mode: &'static str },
    Binary,
    Unknown(&'static str),
}

impl DiffSide {
    fn of(objects: &BlobDir, state: FileState) -> Self {
        let mode = match state {
            FileState::Gone => return Self::Gone,
            FileState::File { program: true, .. } => "100755",
            FileState::File { .. } => "100644",
            FileState::Link { .. } => "120000",
            FileState::Large | FileState::Bulky { .. } => return Self::Unknown("it is too large"),
            FileState::Other => return Self::Unknown("it is no file"),
        };
        match state.bytes().and_then(|hash| objects.get(&hash)) {
            None => Self::Unknown("what it was is not known any more"),
            Some(bytes) if is_binary(&bytes) => Self::Binary,
            Some(bytes) => Self::Text { text: String::from_utf8_lossy(&bytes).into_owned(), mode },
        }
    }

    fn is_link(&self) -> bool {
        matches!(self, Self::Text { mode: "120000", .. })
    }
}

fn show(changes: &mut DiffBuilder, root: &Root, sight: &Visibility, path: &str, sides: [DiffSide; 2]) {
    let name = visible(path);
    // One of its other names may be hidden.
    let is_linked = || root.open_file(Path::new(path), sight).is_ok_and(|file| file.is_linked());
    let unseen = match &sides {
        _ if sight.is_whole() => None,
        sides if sides.iter().any(DiffSide::is_link) => Some(UNSEEN_LINK),
        _ => is_linked().then_some(LINKED),
    };
    let (mut added, mut removed) = (0, 0);
    let mut unified = |old: Option<&str>, new: &str| {
        (added, removed) = lines::counts(old.unwrap_or_default(), new);
        if old.unwrap_or_default() == new { String::new() } else { lines::unified(path, old, new) }
    };
    let told = match (sides, unseen) {
        (_, Some(why)) | ([DiffSide::Unknown(why), _] | [_, DiffSide::Unknown(why)], _) => {
            format!("[not shown: {why}]\n")
        }
        ([DiffSide::Gone, DiffSide::Text { text, mode }], _) => {
            format!("new file mode {mode}\n{}", unified(None, &text))
        }
        ([DiffSide::Text { text, mode }, DiffSide::Gone], _) => {
            format!("deleted file mode {mode}\n{}", unified(Some(&text), ""))
        }
        ([DiffSide::Text { text: old, mode: was }, DiffSide::Text { text: new, mode: is }], _) => {
            let modes = if was == is { String::new() } else { format!("old mode {was}\nnew mode {is}\n") };
            modes + &unified(Some(&old), &new)
        }
        _ => format!("Binary files a/{name} and b/{name} differ\n"),
    };
    changes.count(&name, added as u64, removed as u64);
    changes.patch.push(format!("diff --git a/{name} b/{name}\n{told}").as_bytes());
    changes.patch.end_file();
}

fn leftovers() -> Option<Gitignore> {
    let mut rules = GitignoreBuilder::new("");
    for line in LEFTOVERS.iter().filter_map(|word| word.strip_prefix("--exclude=")) {
        rules.add_line(None, line).ok()?;
    }
    rules.build().ok()
}

fn is_in(rules: &Gitignore, path: &str) -> bool {
    rules.matched_path_or_any_parents(path, false).is_ignore()
}

/// Which paths are meant, as git's own `:(glob)` means it.
struct PathScope {
    globs: Gitignore,
    plain: Vec<PathBuf>,
}

impl PathScope {
    fn new(root: &Root, paths: &[String]) -> Option<Self> {
        let mut globs = GitignoreBuilder::new("");
        let mut plain = Vec::new();
        for path in paths {
            let path = root.place(path).ok()?.to_string();
            if path.contains(['*', '?', '[']) {
                globs.add_line(None, &format!("/{path}")).ok()?;
            }
            // A name may have brackets in it and mean them.
            plain.push(PathBuf::from(if path == "." { String::new() } else { path }));
        }
        if paths.is_empty() {
            plain.push(PathBuf::new());
        }
        Some(Self { globs: globs.build().ok()?, plain })
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
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
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
            let within = PathScope::new(&root, &[glob.to_owned()]).unwrap();
            assert_eq!(within.has(Path::new(path)), want, "{glob} {path}");
        }
    }
}
