//! One look at everything beneath an agent's folder, before a command runs there.

use std::collections::HashSet;
use std::fs::{self, DirEntry, FileType};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use max_team_core::policy::{ProtectedRow, Visibility, is_build_folder, is_dependency_folder, row_at};
use rustix::process::getuid;
use tokio_util::sync::CancellationToken;

use super::CommandError;

/// Names that are looked at.
const LOOKED_AT_MAX: usize = 500_000;
/// Folders in folders.
const DEPTH_MAX: usize = 128;
/// Files and folders that are hidden one by one: each is a mount, and building a thousand takes a second.
const HIDDEN_MAX: usize = 1_000;
/// Repositories in the folder that are protected, each by a few mounts.
const REPOSITORIES_MAX: usize = 200;

/// What the sandbox has to treat separately.
#[derive(Debug, Default)]
pub(super) struct ProtectedScan {
    /// What is out of sight, and every other name of the same files.
    pub(super) hidden: Vec<PathBuf>,
    /// What may be seen and not changed, and every other name of the same files.
    pub(super) kept: Vec<PathBuf>,
    /// Folders further down that are repositories of their own.
    pub(super) repositories: Vec<PathBuf>,
    /// `HEAD` of bare repositories.
    pub(super) bare: Vec<PathBuf>,
    /// Protected files and folders outside those of dependencies, with their rows, nearest to the project's folder first.
    pub(super) rows: Vec<(PathBuf, &'static ProtectedRow)>,
    /// Folders of builds and tests.
    pub(super) builds: Vec<PathBuf>,
    /// Sockets of programs that run outside.
    pub(super) sockets: Vec<PathBuf>,
    /// Folders of other users that could not be read.
    pub(super) unread: Vec<PathBuf>,
}

impl ProtectedScan {
    /// Looks; once `cancel` has fired, no further.
    pub(super) fn of(root: &Path, sight: &Visibility, cancel: &CancellationToken) -> Result<Self, CommandError> {
        let mut found = Self::default();
        let unread = walk(root, cancel, &mut |path, name, kind| {
            let is_seen = sight.is_visible(name);
            let is_git = path.file_name().is_some_and(|name| name == ".git");
            if !is_seen {
                found.hidden.push(path.to_owned());
            } else if !sight.allows_change(name) {
                // A folder keeps all that is in it.
                if !found.kept.iter().any(|kept| path.starts_with(kept)) {
                    found.kept.push(path.to_owned());
                }
            } else if is_git && let Some(folder) = path.parent().filter(|folder| *folder != root) {
                found.repositories.push(folder.to_owned());
            }
            if is_seen && kind.is_dir() && is_build_folder(name) {
                found.builds.push(path.to_owned());
            }
            if kind.is_socket() {
                found.sockets.push(path.to_owned());
            }
            if let Some(row) = row_at(name).filter(|_| !is_in_dependencies(name)) {
                found.rows.push((path.to_owned(), row));
            } else if is_bare_repository(root, name) {
                found.bare.push(path.to_owned());
            }
            found.check(root)?;
            // Within git's own folder there is nothing to find but what is out of sight.
            Ok(is_seen && !(is_git && sight.is_whole()))
        })?;
        // A folder of ours that cannot be read is out of reach, so that no command opens it, plants in it and closes it again.
        let is_ours = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.uid() == getuid().as_raw());
        let (own, foreign) = unread.into_iter().partition::<Vec<_>, _>(is_ours);
        found.hidden.extend(own);
        found.unread = foreign;
        found.rows.sort_by_cached_key(|(path, _)| (path.components().count(), path.clone()));
        let hidden = other_names(&found.hidden, root, &|name| sight.is_visible(name), cancel)?;
        found.hidden.extend(hidden);
        let kept = other_names(&found.kept, root, &|name| sight.allows_change(name), cancel)?;
        found.kept.extend(kept);
        found.check(root)?;
        Ok(found)
    }

    /// Everything that was there before a command ran, so that the command cannot have made it.
    pub(super) fn known(&self) -> impl Iterator<Item = &PathBuf> {
        let rows = self.rows.iter().map(|(path, _)| path);
        rows.chain(&self.bare).chain(&self.kept).chain(&self.hidden).chain(&self.unread)
    }

    fn check(&self, root: &Path) -> Result<(), CommandError> {
        if self.hidden.len().max(self.kept.len()) + self.sockets.len() > HIDDEN_MAX {
            let what = format!("more than {HIDDEN_MAX} files that are out of sight or not to be changed");
            return Err(too_many(
                root,
                &what,
                "keep them in a folder and block that, not each file (`blocked_patterns`)",
            ));
        }
        if self.repositories.len() > REPOSITORIES_MAX {
            let what = format!("more than {REPOSITORIES_MAX} repositories");
            return Err(too_many(root, &what, "remove those that were left behind (`find . -name .git`)"));
        }
        Ok(())
    }
}

/// Whether a path of a project lies in a folder of dependencies or builds.
fn is_in_dependencies(name: &str) -> bool {
    name.split('/').rev().skip(1).any(is_dependency_folder)
}

/// Whether a path of a project is the `HEAD` of a bare repository: git obeys the settings beside it.
pub(super) fn is_bare_repository(root: &Path, name: &str) -> bool {
    let folder = match name.strip_suffix("HEAD") {
        Some("") => root.to_owned(),
        Some(folder) if folder.ends_with('/') && !folder.split('/').any(|part| part == ".git") => root.join(folder),
        _ => return false,
    };
    !is_in_dependencies(name) && ["objects", "refs"].iter().all(|part| folder.join(part).is_dir())
}

/// The open names of files that also have a name which is not.
fn other_names(
    apart: &[PathBuf],
    root: &Path,
    is_open: &dyn Fn(&str) -> bool,
    cancel: &CancellationToken,
) -> Result<Vec<PathBuf>, CommandError> {
    let file = |path: &Path| {
        let meta = fs::symlink_metadata(path).ok().filter(|meta| meta.is_file() && meta.nlink() > 1)?;
        Some((meta.dev(), meta.ino()))
    };
    let mut files: HashSet<(u64, u64)> = apart.iter().filter_map(|path| file(path)).collect();
    for folder in apart.iter().filter(|path| path.is_dir()) {
        walk(folder, cancel, &mut |path, _, _| {
            files.extend(file(path));
            Ok(true)
        })?;
    }
    let mut found = Vec::new();
    if files.is_empty() {
        return Ok(found);
    }
    walk(root, cancel, &mut |path, name, kind| {
        let is_open = is_open(name);
        if is_open && !kind.is_dir() && file(path).is_some_and(|file| files.contains(&file)) {
            found.push(path.to_owned());
        }
        Ok(is_open)
    })?;
    Ok(found)
}

fn too_many(root: &Path, what: &str, advice: &str) -> CommandError {
    CommandError::NoSandbox { why: format!("`{}` has {what} in it", root.display()), advice: advice.to_owned() }
}

/// Says whether to go into what is looked at.
type ScanVisitor<'a> = dyn FnMut(&Path, &str, FileType) -> Result<bool, CommandError> + 'a;

/// What is in a folder: nothing if it has gone meanwhile, `None` if it is not ours to look into. Commands of root cannot read
/// what its owner has closed, so such a folder is closed for root, too.
fn entries(folder: &Path) -> Result<Option<Vec<DirEntry>>, CommandError> {
    let is_closed = |meta: fs::Metadata| meta.is_dir() && meta.mode() & 0o500 != 0o500;
    if fs::symlink_metadata(folder).is_ok_and(is_closed) {
        return Ok(None);
    }
    match fs::read_dir(folder).and_then(|entries| entries.take(LOOKED_AT_MAX + 1).collect()) {
        Ok(entries) => Ok(Some(entries)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(Some(Vec::new())),
            ErrorKind::PermissionDenied => Ok(None),
            // What is in there is not known, and must not count as nothing.
            _ => Err(CommandError::NoSandbox {
                why: format!("`{}` cannot be looked into: {error}", folder.display()),
                advice: "try again when less is open (`ulimit -n`), or look after the disk".to_owned(),
            }),
        },
    }
}

/// Looks at everything beneath a folder, with its name relative to that. Says which folders could not be looked into.
pub(super) fn walk(
    root: &Path,
    cancel: &CancellationToken,
    look: &mut ScanVisitor<'_>,
) -> Result<Vec<PathBuf>, CommandError> {
    let mut looked_at = 0;
    let mut unread = Vec::new();
    let mut folders = vec![(root.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        let Some(entries) = entries(&folder)? else {
            unread.push(folder);
            continue;
        };
        for entry in entries {
            if cancel.is_cancelled() {
                return Ok(unread);
            }
            looked_at += 1;
            if looked_at > LOOKED_AT_MAX || depth > DEPTH_MAX {
                return Err(too_many(root, "too many files", "keep the member to fewer folders (`allowed_dirs`)"));
            }
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            // A name that is gone by now was there for a moment only.
            let Ok(kind) = entry.file_type() else { continue };
            if look(&entry.path(), &name, kind)? && kind.is_dir() {
                folders.push((entry.path(), format!("{name}/"), depth + 1));
            }
        }
    }
    Ok(unread)
}

#[cfg(test)]
mod tests {
    use max_team_core::agent::Constraints;

    use super::*;

    fn blind(patterns: &[&str]) -> Visibility {
        let blocked_patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Visibility::from_constraints(&Constraints { blocked_patterns, ..Constraints::default() })
    }

    fn survey(root: &Path, sight: &Visibility) -> Result<ProtectedScan, CommandError> {
        ProtectedScan::of(root, sight, &CancellationToken::new())
    }

    #[test]
    fn hidden_files_are_found_under_every_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["src", "vault/deep"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in ["src/a", "src/prod.env", "vault/deep/key"] {
            fs::write(root.join(file), file).unwrap();
        }
        fs::hard_link(root.join("src/prod.env"), root.join("src/copy")).unwrap();
        fs::hard_link(root.join("vault/deep/key"), root.join("other")).unwrap();
        let mut found = survey(&root, &blind(&["*.env", "vault"])).unwrap().hidden;
        found.sort();
        assert_eq!(found, ["other", "src/copy", "src/prod.env", "vault"].map(|name| root.join(name)));
        assert!(survey(&root, &Visibility::default()).unwrap().hidden.is_empty());
    }

    #[test]
    fn repositories_further_down_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in [".git/modules/.git", "a/b/.git/x/.git", "vault/.git"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::create_dir_all(root.join("tree")).unwrap();
        fs::write(root.join("tree/.git"), "gitdir: ../.git/worktrees/tree\n").unwrap();
        let mut found = survey(&root, &Visibility::default()).unwrap().repositories;
        found.sort();
        assert_eq!(found, ["a/b", "tree", "vault"].map(|name| root.join(name)));
        assert!(!survey(&root, &blind(&["vault"])).unwrap().repositories.contains(&root.join("vault")));
    }

    #[test]
    fn a_look_that_fails_is_not_a_look_at_nothing() {
        // No system takes a name of that length, and this is neither a folder that has gone nor one that is shut.
        let odd = PathBuf::from(format!("/{}", "x".repeat(5_000)));
        let told = survey(&odd, &Visibility::default()).unwrap_err();
        assert!(
            matches!(&told, CommandError::NoSandbox { why, .. } if why.contains("cannot be looked into")),
            "{told}"
        );
        let dir = tempfile::tempdir().unwrap();
        assert!(survey(&dir.path().join("gone"), &Visibility::default()).unwrap().unread.is_empty());
    }

    #[test]
    fn protected_files_and_repositories_are_found_at_every_depth() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["a/b/.git", "a/.github/workflows", "bare.git/objects", "bare.git/refs", "vendor/x", "agents/sub"]
        {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            "AGENTS.md",
            "a/b/.envrc",
            "bare.git/HEAD",
            "docs-HEAD",
            "vendor/x/AGENTS.md",
            "agents/leo.md",
            "agents/sub/x.md",
            "HEAD",
        ] {
            fs::write(root.join(file), "x").unwrap();
        }
        let socket = std::os::unix::net::UnixListener::bind(root.join("a/s.sock")).unwrap();
        let scan = survey(&root, &Visibility::default()).unwrap();
        drop(socket);
        let found: Vec<String> =
            scan.rows.iter().map(|(path, _)| path.strip_prefix(&root).unwrap().display().to_string()).collect();
        assert_eq!(found, ["AGENTS.md", "agents/leo.md", "a/.github/workflows", "a/b/.envrc", "a/b/.git"]);
        assert_eq!((scan.bare, scan.sockets), (vec![root.join("bare.git/HEAD")], vec![root.join("a/s.sock")]));
    }

    #[test]
    fn a_hostile_tree_is_refused_or_left() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for number in 0..=HIDDEN_MAX {
            fs::write(root.join(format!("{number}.pem")), "").unwrap();
        }
        let told = survey(&root, &blind(&["*.pem"])).unwrap_err();
        assert!(matches!(&told, CommandError::NoSandbox { why, .. } if why.contains("more than 1000 files")), "{told}");
        fs::remove_file(root.join("0.pem")).unwrap();
        assert_eq!(survey(&root, &blind(&["*.pem"])).unwrap().hidden.len(), HIDDEN_MAX);
        let nobody = CancellationToken::new();
        nobody.cancel();
        assert!(ProtectedScan::of(&root, &blind(&["*.pem"]), &nobody).unwrap().hidden.is_empty());
        for number in 0..=REPOSITORIES_MAX {
            fs::create_dir_all(root.join(format!("{number}/.git"))).unwrap();
        }
        let told = survey(&root, &Visibility::default()).unwrap_err();
        assert!(matches!(&told, CommandError::NoSandbox { why, .. } if why.contains("repositories")), "{told}");
    }
}
