//! Files that a command must not make.
//!
//! New names that [`max_team_core::policy::PROTECTED`] lists, new repositories, and files that rules deny are renamed. Directly in
//! the project's folder, and for programs that live on, that happens at once; else when the command ends, because a test may
//! make a repository and remove it. What the user approved stays, and so does what git has at that path: a checkout by the user
//! is no work of the command. Nothing here is ever deleted.

use std::path::{Path, PathBuf};

use max_team_core::agent::Constraints;
use max_team_core::policy::{Permissions, Visibility, is_dependency_folder, row_at};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::approvals::ApprovedFiles;
use super::isolation::linked;
use super::scan::{is_bare_repository, walk};
use super::tracked::{TrackedFiles, content};

/// What one command must not make, as plain data.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PlantedFiles {
    /// The folders that it writes.
    pub(super) folders: Vec<PathBuf>,
    /// What was there when it began: protected files, and folders that could not be looked into.
    pub(super) known: Vec<PathBuf>,
    /// Patterns of the rows that it may change.
    pub(super) open: Vec<String>,
    /// Whether it may make repositories.
    pub(super) makes_repositories: bool,
    /// Rules that deny changes of paths.
    pub(super) rules: Option<Permissions>,
    /// Whether it lives on, so that its end is no time to look.
    pub(super) lives_on: bool,
    /// The user's git, and the working trees whose repositories were there.
    pub(super) git: Option<PathBuf>,
    pub(super) trees: Vec<PathBuf>,
}

impl PlantedFiles {
    /// The folder that holds a path, and the path from there.
    pub(super) fn place<'a>(&'a self, path: &'a Path) -> Option<(&'a Path, String)> {
        let within = |folder: &'a PathBuf| Some((folder.as_path(), path.strip_prefix(folder).ok()?));
        let (folder, rest) = self.folders.iter().filter_map(within).min_by_key(|(_, rest)| rest.as_os_str().len())?;
        Some((folder, rest.to_string_lossy().into_owned()))
    }

    /// Whether the command must not make what has this name in a folder.
    fn is_named(&self, folder: &Path, name: &str) -> bool {
        let is_row = row_at(name).is_some_and(|row| match row.pattern {
            ".git" => !self.makes_repositories,
            pattern => !self.open.iter().any(|open| open == pattern),
        });
        is_row
            || (!self.makes_repositories && is_bare_repository(folder, name))
            || self.rules.as_ref().is_some_and(|rules| !sight(rules, folder).allows_change(name))
    }

    /// Whether a path is new and lies at or beneath a name that the command must not create.
    pub(super) fn is_forbidden(&self, path: &Path, approved: &ApprovedFiles) -> bool {
        let Some((folder, name)) = self.place(path) else { return false };
        let parts: Vec<&str> = name.split('/').collect();
        if self.was_there(path) || parts.iter().rev().skip(1).any(|part| is_dependency_folder(part)) {
            return false;
        }
        let is_named = (1..=parts.len()).any(|upto| {
            let name = parts.get(..upto).unwrap_or_default().join("/");
            self.is_named(folder, &name) && !approved.opens(path, &name)
        });
        is_named && !approved.holds(path) && !self.tracked(&[path.to_owned()]).holds(path)
    }

    /// Whether the command has made a name that it must not make.
    pub(super) fn is_new(&self, path: &Path, folder: &Path, name: &str) -> bool {
        !self.was_there(path) && path.symlink_metadata().is_ok() && self.is_named(folder, name)
    }

    fn was_there(&self, path: &Path) -> bool {
        self.known.iter().any(|known| path.starts_with(known))
    }

    /// Whether other commands' watches also leave alone what matches this command's open rows. Not for lines of git: their files
    /// are recognised by the index.
    pub(super) fn opens_to_others(&self) -> bool {
        !self.open.is_empty() && !self.makes_repositories
    }

    pub(super) fn tracked(&self, paths: &[PathBuf]) -> TrackedFiles {
        let Some(git) = &self.git else { return TrackedFiles::default() };
        let mut trees = self.trees.clone();
        trees.extend(paths.iter().flat_map(|path| self.new_trees(path)));
        trees.sort();
        trees.dedup();
        TrackedFiles::of(git, &trees, paths)
    }

    /// The working trees around a path that were added meanwhile to a repository that was there: of submodules, and linked ones.
    fn new_trees<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        let within = self.place(path).map(|(folder, _)| folder);
        let above = path.ancestors().skip(1).take_while(move |above| within.is_some_and(|folder| *above != folder));
        above.filter(|tree| self.is_new_tree(&tree.join(".git"))).map(Path::to_owned)
    }

    fn is_new_tree(&self, git: &Path) -> bool {
        let is_module = |leads: &PathBuf| leads.iter().skip_while(|name| *name != ".git").any(|name| name == "modules");
        self.known_repository(git).is_some_and(|leads| is_module(&leads) || linked(git).is_some())
    }

    /// The folder in a repository that was there which a `.git` file leads to, as that of a submodule does. Its settings are
    /// the user's.
    pub(super) fn known_repository(&self, git: &Path) -> Option<PathBuf> {
        if !git.ends_with(".git") || git.is_symlink() || !git.is_file() {
            return None;
        }
        let text = String::from_utf8(content(git)?).ok()?;
        let leads = git.parent()?.join(text.strip_prefix("gitdir: ")?.trim_end()).canonicalize().ok()?;
        self.trees.iter().any(|tree| leads.starts_with(tree.join(".git"))).then_some(leads)
    }

    /// Everything beneath a folder that the command must not make and that was not there, and why there may be more of it.
    pub(super) fn find(&self, folder: &Path) -> (Vec<PathBuf>, Option<String>) {
        let sight = self.rules.as_ref().map(|rules| sight(rules, folder));
        let mut found = Vec::new();
        let looked = walk(folder, &CancellationToken::new(), &mut |path, name, kind| {
            let own = name.rsplit('/').next().unwrap_or(name);
            let is_denied = sight.as_ref().is_some_and(|sight| !sight.allows_change(name));
            if !is_denied && kind.is_dir() && is_dependency_folder(own) {
                return Ok(false);
            }
            let is_found = is_denied || self.is_named(folder, name);
            if is_found && !self.was_there(path) {
                found.push(path.to_owned());
            }
            Ok(!is_found && own != ".git")
        });
        let dark = |unread: Vec<PathBuf>| unread.into_iter().find(|folder| !self.was_there(folder));
        let why = match looked {
            Ok(unread) => dark(unread).map(|folder| format!("`{}` cannot be read any more", folder.display())),
            Err(error) => Some(error.to_string()),
        };
        (found, why)
    }
}

/// What rules leave to be changed in a folder.
fn sight(rules: &Permissions, folder: &Path) -> Visibility {
    let sight = Visibility::from_policy(&Constraints::default(), rules);
    sight.relative_to(&folder.to_string_lossy())
}
