//! One look at everything beneath an agent's folder, before a command runs there.

use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use max_team_core::policy::{ProtectedRow, Visibility, obeyed_row};
use tokio_util::sync::CancellationToken;

use super::CommandError;

/// Names that are looked at.
const LOOKED_AT_MAX: usize = 500_000;
/// Folders in folders.
const DEPTH_MAX: usize = 128;
/// Files and folders that are hidden one by one: each is a mount, and building a thousand takes a second.
const HIDDEN_MAX: usize = 1_000;
/// Files of one pattern that are protected one by one; of more, the whole folder is.
const NAMED_MAX: usize = 200;
/// Folders that dependencies and builds fill.
const FOREIGN: [&str; 7] = [".git", "node_modules", "target", "vendor", ".venv", "venv", "__pycache__"];
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
    /// Folders that could not be read.
    pub(super) unread: Vec<PathBuf>,
}

impl ProtectedScan {
    /// Looks; once `cancel` has fired, no further.
    pub(super) fn of(root: &Path, sight: &Visibility, cancel: &CancellationToken) -> Result<Self, CommandError> {
        let mut found = Self::default();
        let unread = walk(root, cancel, &mut |path, name, _| {
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
            found.check(root)?;
            // Within git's own folder there is nothing to find but what is out of sight.
            Ok(is_seen && !(is_git && sight.is_whole()))
        })?;
        found.unread = unread;
        let hidden = other_names(&found.hidden, root, &|name| sight.is_visible(name), cancel)?;
        found.hidden.extend(hidden);
        let kept = other_names(&found.kept, root, &|name| sight.allows_change(name), cancel)?;
        found.kept.extend(kept);
        found.check(root)?;
        Ok(found)
    }

    fn check(&self, root: &Path) -> Result<(), CommandError> {
        if self.hidden.len().max(self.kept.len()) > HIDDEN_MAX {
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
    walk(root, cancel, &mut |path, name, is_dir| {
        let is_open = is_open(name);
        if is_open && !is_dir && file(path).is_some_and(|file| files.contains(&file)) {
            found.push(path.to_owned());
        }
        Ok(is_open)
    })?;
    Ok(found)
}

/// The files and folders of a project that agents obey at any depth, with their rows; those nearest to the project's folder
/// come first. Folders of dependencies and builds are not looked into: no agent works there.
pub(super) fn obeyed(
    root: &Path,
    cancel: &CancellationToken,
) -> Result<Vec<(PathBuf, &'static ProtectedRow)>, CommandError> {
    let mut found = Vec::new();
    walk(root, cancel, &mut |path, name, is_dir| {
        let own = name.rsplit('/').next().unwrap_or(name);
        if is_dir && FOREIGN.contains(&own) {
            return Ok(false);
        }
        let row = obeyed_row(name);
        found.extend(row.map(|row| (path.to_owned(), row)));
        Ok(row.is_none())
    })?;
    found.sort_by_cached_key(|(path, _)| (path.components().count(), path.clone()));
    Ok(found)
}

fn too_many(root: &Path, what: &str, advice: &str) -> CommandError {
    CommandError::NoSandbox { why: format!("`{}` has {what} in it", root.display()), advice: advice.to_owned() }
}

/// Says whether to go into what is looked at.
type ScanVisitor<'a> = dyn FnMut(&Path, &str, bool) -> Result<bool, CommandError> + 'a;

/// The paths of a row of the table of protected files, beneath a project's folder: files that match its pattern, and
/// the targets of links among them. A name without a `*` counts also if it does not exist.
pub(super) fn named(root: &Path, row: &ProtectedRow) -> Result<Vec<PathBuf>, CommandError> {
    let (folder, name) = row.split();
    let folder = root.join(folder);
    let real = |path: &Path| path.canonicalize().ok().filter(|real| real != path && real.starts_with(root));
    if !name.contains('*') {
        let path = folder.join(name);
        let is_link = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink());
        let leads_to = if is_link { real(&path) } else { None };
        return Ok(leads_to.into_iter().chain([path]).collect());
    }
    // Nothing is read from a folder that is a link.
    if !fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_dir()) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in entries(&folder)?.unwrap_or_default() {
        let kind = entry.file_type().ok();
        if !row.is_name(&entry.file_name().to_string_lossy()) || kind.is_some_and(|kind| kind.is_dir()) {
            continue;
        }
        if kind.is_some_and(|kind| kind.is_symlink()) {
            found.extend(real(&entry.path()));
        }
        found.push(entry.path());
    }
    match (found.len() > NAMED_MAX, row.split().0) {
        (false, _) => Ok(found),
        (true, "") => Err(too_many(root, &format!("more than {NAMED_MAX} `{name}`"), "keep them in another folder")),
        (true, _) => Ok(vec![folder]),
    }
}

/// What is in a folder: nothing if it has gone meanwhile, `None` if it is not ours to look into.
fn entries(folder: &Path) -> Result<Option<Vec<DirEntry>>, CommandError> {
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
fn walk(root: &Path, cancel: &CancellationToken, look: &mut ScanVisitor<'_>) -> Result<Vec<PathBuf>, CommandError> {
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
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if look(&entry.path(), &name, is_dir)? && is_dir {
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

    fn row(pattern: &str) -> &'static ProtectedRow {
        max_team_core::policy::sandbox_rows().find(|row| row.pattern == pattern).unwrap()
    }

    #[test]
    fn a_link_is_protected_with_what_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        assert_eq!(named(&root, row("CLAUDE.md")).unwrap(), [root.join("CLAUDE.md")]);
        fs::write(root.join("real.md"), "x").unwrap();
        std::os::unix::fs::symlink("real.md", root.join("CLAUDE.md")).unwrap();
        assert_eq!(named(&root, row("CLAUDE.md")).unwrap(), [root.join("real.md"), root.join("CLAUDE.md")]);
    }

    #[test]
    fn many_files_of_a_pattern_are_protected_with_their_folder() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("agents")).unwrap();
        for number in 0..NAMED_MAX {
            fs::write(root.join(format!("agents/{number}.md")), "x").unwrap();
            fs::write(root.join(format!("{number}.code-workspace")), "x").unwrap();
        }
        assert_eq!(named(&root, row("/agents/*.md")).unwrap().len(), NAMED_MAX);
        assert_eq!(named(&root, row("*.code-workspace")).unwrap().len(), NAMED_MAX);
        fs::write(root.join("agents/more.md"), "x").unwrap();
        fs::write(root.join("more.code-workspace"), "x").unwrap();
        assert_eq!(named(&root, row("/agents/*.md")).unwrap(), [root.join("agents")]);
        assert!(named(&root, row("*.code-workspace")).unwrap_err().to_string().contains("more than 200"));
    }

    #[test]
    fn definitions_are_files_directly_in_their_folder_and_what_they_lead_to() {
        let definitions = |root: &Path| named(root, row("/agents/*.md"));
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        assert!(definitions(&root).unwrap().is_empty());
        fs::create_dir_all(root.join("agents/sub")).unwrap();
        fs::create_dir_all(root.join("agents/folder.md")).unwrap();
        for file in ["agents/leo.md", "agents/Ada.MD", "agents/code.py", "agents/sub/real.md"] {
            fs::write(root.join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink("sub/real.md", root.join("agents/link.md")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("agents/out.md")).unwrap();
        let mut found = definitions(&root).unwrap();
        found.sort();
        let want = ["agents/Ada.MD", "agents/leo.md", "agents/link.md", "agents/out.md", "agents/sub/real.md"];
        assert_eq!(found, want.map(|name| root.join(name)));
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
