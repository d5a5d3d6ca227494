//! The sandbox of one agent's commands: its folder, what it may see, which hosts it may reach.
//!
//! Commands may write the folder, except protected files ([`max_team_core::policy::kept`]) and git's own settings.
//! What is hidden from the agent is hidden from its commands.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use max_team_core::policy::{ProtectedRow, Visibility, sandbox_rows};
use max_team_core::rewind::MovedFile;
use max_team_sandbox::{AppearedPath, EndMark, Limits, Network, allowed, secrets, tools};
use tokio_util::sync::CancellationToken;

use super::CommandError;
use super::scan::{self, ProtectedScan};

/// What git obeys within its own folder: everything that can name a program, or another such folder.
pub(crate) const OBEYED: [&str; 7] =
    ["hooks", "config", "config.worktree", "commondir", "modules", "worktrees", "objects/info/alternates"];

/// Protected files that are named when a command could not change one.
const SHOWN_MAX: usize = 8;

/// The sandbox of commands.
#[derive(Debug, Clone)]
pub struct CommandSandbox {
    /// Whether it is on; only the user turns it off, by name.
    pub on: bool,
    /// The agent's folder: what its commands write.
    pub root: PathBuf,
    /// Folders of our own that they write, too.
    pub also: Vec<PathBuf>,
    /// Whether they can write nothing at all.
    pub read_only: bool,
    /// Further folders that they only read.
    pub reads: Vec<PathBuf>,
    /// What the agent can see.
    pub sight: Arc<Visibility>,
    /// Which hosts they can reach.
    pub network: Network,
    /// Whether a person has seen and approved this very command.
    pub attended: bool,
    /// Protected files that this command may change.
    pub open: Vec<&'static ProtectedRow>,
    /// Where they are stopped; their time is the command's own.
    pub limits: Limits,
    /// Protected files that they made without approval and that were moved away; the runtime tells them to the user.
    pub moved: Arc<Mutex<Vec<MovedFile>>>,
    /// Where the end of this command is noted, if its changes are looked for.
    pub end_mark: Option<EndMark>,
}

impl CommandSandbox {
    /// A sandbox around a folder, without a network.
    pub fn around(root: impl Into<PathBuf>) -> Self {
        Self {
            on: true,
            root: root.into(),
            also: Vec::new(),
            read_only: false,
            reads: Vec::new(),
            sight: Arc::default(),
            network: Network::None,
            attended: false,
            open: Vec::new(),
            limits: Limits::default(),
            moved: Arc::default(),
            end_mark: None,
        }
    }

    /// Takes the protected files that were moved away since this was last asked.
    pub fn take_moved(&self) -> Vec<MovedFile> {
        std::mem::take(&mut *self.moved.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes protected files that were moved away.
    pub(super) fn note_moved(&self, appeared: &[AppearedPath]) {
        let shown = |path: &Path| path.display().to_string();
        let moved = appeared.iter().map(|AppearedPath { path, moved }| MovedFile {
            path: shown(path),
            to: moved.as_deref().map(shown).unwrap_or_default(),
        });
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).extend(moved);
    }

    /// The sandbox as plain data; `None` if it is off. Removes the variables that are not handed on from `vars`. Once
    /// `cancel` has fired it may be incomplete, and nothing is run.
    pub(super) fn build(
        &self,
        vars: &mut Vec<(String, String)>,
        cancel: &CancellationToken,
    ) -> Result<Option<max_team_sandbox::Isolation>, CommandError> {
        if !self.on {
            return Ok(None);
        }
        vars.retain(|(name, value)| allowed(name, value));
        let folders = self.folders()?;
        let home =
            vars.iter().find(|(name, _)| name == "HOME").and_then(|(_, home)| Path::new(home).canonicalize().ok());
        let mut readable = home.as_deref().map(|home| tools(home, vars)).unwrap_or_default();
        let mut writable: Vec<PathBuf> = folders.iter().map(|(folder, _)| folder.clone()).collect();
        readable.extend(writable.iter().cloned());
        if self.sight.are_additional_read_only() {
            writable.truncate(1);
        }
        // A folder that is gone meanwhile cannot be read.
        readable.extend(self.reads.iter().filter_map(|folder| folder.canonicalize().ok()));
        let mut protected: Vec<PathBuf> = self.sight.named_files().iter().map(PathBuf::from).collect();
        protected.retain(|file| writable.iter().any(|folder| file.starts_with(folder)));
        let mut hidden = home.as_deref().map(secrets).unwrap_or_default();
        for (folder, sight) in &folders {
            for row in self.rows() {
                protected.extend(scan::named(folder, row)?);
            }
            let git = GitPaths::of(folder);
            readable.extend(git.readable);
            protected.extend(git.protected);
            let survey = ProtectedScan::of(folder, sight, cancel)?;
            protected.extend(survey.repositories.iter().flat_map(|folder| GitPaths::of(folder).protected));
            protected.extend(survey.kept);
            hidden.extend(survey.hidden);
        }
        if self.read_only {
            writable.clear();
        } else {
            for folder in &self.also {
                writable.push(folder.canonicalize().map_err(|_| CommandError::Folder(folder.clone()))?);
            }
        }
        Ok(Some(max_team_sandbox::Isolation {
            readable,
            writable,
            protected,
            hidden,
            home,
            network: self.network.clone(),
            attended: self.attended,
        }))
    }
}

impl CommandSandbox {
    /// The rows of protected files that this command may not change.
    fn rows(&self) -> impl Iterator<Item = &'static ProtectedRow> + '_ {
        sandbox_rows().filter(|row| !self.open.contains(row))
    }

    /// Names of protected files that the command may change: those that are there.
    pub(super) fn opened(&self) -> Vec<PathBuf> {
        let folders = self.folders().unwrap_or_default();
        let names = folders.iter().flat_map(|(folder, _)| self.open.iter().map(move |row| scan::named(folder, row)));
        let there = names.flatten().flatten().filter(|path| path.symlink_metadata().is_ok());
        let nested = folders.iter().filter(|_| !self.open.is_empty()).flat_map(|(folder, _)| {
            let found = scan::obeyed(folder, &CancellationToken::new()).unwrap_or_default();
            found.into_iter().filter(|(_, row)| self.open.contains(row)).map(|(path, _)| path)
        });
        let mut all: Vec<PathBuf> = there.chain(nested).collect();
        all.sort();
        all.dedup();
        all
    }

    /// The folders that commands write; none where they write nothing, or have no sandbox.
    pub(super) fn written(&self) -> Vec<PathBuf> {
        if !self.on || self.read_only {
            return Vec::new();
        }
        self.folders().unwrap_or_default().into_iter().map(|(folder, _)| folder).collect()
    }

    /// Protected names directly beneath these folders that are there and that the command may not make: a repository, too.
    pub(super) fn protected_now(&self, folders: &[PathBuf]) -> Vec<PathBuf> {
        let named = |folder: &PathBuf| {
            let names = self.rows().filter_map(|row| scan::named(folder, row).ok()).flatten();
            names.chain([folder.join(".git")]).collect::<Vec<_>>()
        };
        folders.iter().flat_map(named).filter(|path| path.symlink_metadata().is_ok()).collect()
    }

    /// Protected files and folders that are there and stay as they are, as they are called from the agent's folder; at most
    /// as many as are told.
    pub(super) fn shown(&self) -> Vec<String> {
        let names =
            self.rows().filter(|row| !row.is_held).filter_map(|row| scan::named(&self.root, row).ok()).flatten();
        let there = names.filter(|path| path.symlink_metadata().is_ok());
        let name = |path: PathBuf| path.strip_prefix(&self.root).ok().map(|path| format!("`{}`", path.display()));
        there.filter_map(name).take(SHOWN_MAX).collect()
    }

    /// The folders that commands write, and what they see there: files that a rule asks about only if a person
    /// approved this very command.
    fn folders(&self) -> Result<Vec<(PathBuf, Visibility)>, CommandError> {
        let root = self.root.canonicalize().map_err(|_| CommandError::Folder(self.root.clone()))?;
        let sight = if self.attended { Visibility::clone(&self.sight) } else { self.sight.for_scan() };
        // A folder that is gone is no reason to run nothing.
        let also = self.sight.additional_folders().iter().filter_map(|folder| Path::new(folder).canonicalize().ok());
        let also: Vec<_> = also.map(|folder| (folder.clone(), sight.relative_to(&folder.to_string_lossy()))).collect();
        Ok(std::iter::once((root, sight)).chain(also).collect())
    }

    /// Existing files that commands may not create: protected files, and files that rules protect. A failed scan is an error.
    pub(super) fn kept(&self) -> Result<ProtectedFiles, CommandError> {
        let mut standing = ProtectedFiles::default();
        if !self.on || self.read_only {
            return Ok(standing);
        }
        let sight = self.sight.only_path_denials();
        let is_free = sight.denies_no_change();
        for (folder, sight) in (Self { sight: Arc::new(sight), ..self.clone() }).folders()? {
            for row in self.rows().filter(|row| row.pattern.contains('*')) {
                standing.kept.extend(scan::named(&folder, row)?);
            }
            // This cannot be cancelled: files that the command made are there even if it was.
            let nested = scan::obeyed(&folder, &CancellationToken::new())?;
            let nested = nested.into_iter().filter(|(_, row)| !self.open.contains(row)).map(|(path, _)| path);
            standing.obeyed.extend(nested);
            standing.kept.extend(self.protected_now(std::slice::from_ref(&folder)));
            if !is_free {
                let survey = ProtectedScan::of(&folder, &sight, &CancellationToken::new())?;
                standing.kept.extend(survey.kept);
                standing.unread.extend(survey.unread);
            }
        }
        standing.kept.extend(standing.obeyed.iter().cloned());
        Ok(standing)
    }
}

/// The protected files at one moment.
#[derive(Debug, Default)]
pub(super) struct ProtectedFiles {
    pub(super) kept: Vec<PathBuf>,
    /// Those of them that agents obey at any depth, nearest to the project's folder first.
    pub(super) obeyed: Vec<PathBuf>,
    /// Folders that could not be read.
    pub(super) unread: Vec<PathBuf>,
}

impl ProtectedFiles {
    /// What has come since an earlier moment. Files in folders that could not be read then do not count: they may be
    /// older.
    pub(super) fn since(self, before: &Self) -> Self {
        let is_new = |path: &PathBuf| !before.kept.iter().chain(&before.unread).any(|known| path.starts_with(known));
        // A path may be found by its row and by its folder.
        let new = |paths: Vec<PathBuf>| paths.into_iter().filter(is_new).collect::<BTreeSet<_>>().into_iter().collect();
        Self { kept: new(self.kept), obeyed: Vec::new(), unread: new(self.unread) }
    }
}

/// What git needs and what it obeys.
#[derive(Debug, Default)]
struct GitPaths {
    readable: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

impl GitPaths {
    fn of(root: &Path) -> Self {
        let own = root.join(".git");
        match fs::symlink_metadata(&own) {
            // Only the user may make a folder a repository: git would obey its settings.
            Err(_) => {
                let above = root.ancestors().skip(1).map(|folder| folder.join(".git")).find(|git| git.is_dir());
                Self { readable: above.into_iter().collect(), protected: vec![own] }
            }
            Ok(meta) if meta.is_dir() => {
                let protected = OBEYED.iter().map(|name| own.join(name)).collect();
                Self { readable: Vec::new(), protected }
            }
            Ok(_) => Self { readable: linked(&own).into_iter().collect(), protected: vec![own] },
        }
    }
}

/// The real folder behind a linked working tree. A file can name any folder; only one that names this file in return is
/// believed.
pub(crate) fn linked(own: &Path) -> Option<PathBuf> {
    let read = |path: &Path| fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned());
    let named = read(own)?.strip_prefix("gitdir: ")?.to_owned();
    let folder = own.parent()?.join(named).canonicalize().ok()?;
    if Path::new(&read(&folder.join("gitdir"))?).canonicalize().ok()? != own {
        return None;
    }
    let shared = folder.join(read(&folder.join("commondir"))?).canonicalize().ok()?;
    folder.starts_with(&shared).then_some(shared)
}

#[cfg(test)]
mod tests {
    use max_team_core::agent::Constraints;
    use max_team_core::policy::rule::{Anchors, List, Origin, RuleScope};
    use max_team_core::policy::{Permissions, Rule};

    use super::*;

    #[test]
    fn paths_that_a_rule_protects_are_protected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("db/old")).unwrap();
        fs::write(root.join("db/old/1.sql"), "x").unwrap();
        fs::hard_link(root.join("db/old/1.sql"), root.join("copy")).unwrap();
        let text = root.to_str().unwrap();
        let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
        let anchors = Anchors { root: text, base: text, home: "/" };
        let rules = vec![Rule::new(List::Deny, "Edit(./db/**)", origin, &anchors)];
        let guarded = vec![format!("{text}/mine.yaml"), "/elsewhere/mine.yaml".to_owned()];
        let permissions = Permissions { root: text.to_owned(), rules, guarded, ..Permissions::default() };
        let sight = Arc::new(Visibility::from_policy(&Constraints::default(), &permissions));
        let built = CommandSandbox { sight, ..CommandSandbox::around(&root) }
            .build(&mut Vec::new(), &CancellationToken::new())
            .unwrap()
            .unwrap();
        assert!(!built.protected.contains(&PathBuf::from("/elsewhere/mine.yaml")), "nobody is to read it there");
        for name in ["db", "copy", "mine.yaml", "config/config.yaml"] {
            assert!(built.protected.contains(&root.join(name)), "{name}");
        }
        assert!(built.hidden.is_empty(), "{:?}", built.hidden);
    }

    #[test]
    fn only_what_was_not_there_before_is_new() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let standing = |kept: &[&str], unread: &[&str]| ProtectedFiles {
            kept: paths(kept),
            unread: paths(unread),
            ..ProtectedFiles::default()
        };
        let before = standing(&["/p/a.sql", "/p/gen"], &["/p/dark"]);
        let since = standing(&["/p/a.sql", "/p/gen/x", "/p/b.sql", "/p/dark/c.sql"], &["/p/shut"]).since(&before);
        assert_eq!((since.kept, since.unread), (paths(&["/p/b.sql"]), paths(&["/p/shut"])));
    }

    #[test]
    fn a_row_that_is_open_is_not_protected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("AGENTS.md"), "x").unwrap();
        let protects = |isolation: &CommandSandbox, name: &str| {
            let built = isolation.build(&mut Vec::new(), &CancellationToken::new()).unwrap().unwrap();
            built.protected.contains(&root.join(name))
        };
        let shut = CommandSandbox::around(&root);
        assert!(protects(&shut, "AGENTS.md") && protects(&shut, ".github/workflows"));
        assert_eq!((shut.shown(), shut.opened()), (vec!["`AGENTS.md`".to_owned()], vec![]));
        let open = CommandSandbox { open: sandbox_rows().filter(|row| row.pattern == "AGENTS.md").collect(), ..shut };
        assert!(!protects(&open, "AGENTS.md") && protects(&open, ".github/workflows"));
        assert_eq!((open.shown(), open.opened()), (vec![], vec![root.join("AGENTS.md")]));
    }

    #[test]
    fn a_worktree_agent_only_reads_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (tree, shared) = (root.join("tree"), root.join("shared"));
        fs::create_dir_all(&tree).unwrap();
        fs::create_dir_all(&shared).unwrap();
        let writable = |copy: &str| {
            let also = vec![shared.display().to_string()];
            let permissions = Permissions { also, copy: copy.to_owned(), ..Permissions::default() };
            let sight = Arc::new(Visibility::from_policy(&Constraints::default(), &permissions));
            let isolation = CommandSandbox { sight, ..CommandSandbox::around(&tree) };
            let built = isolation.build(&mut Vec::new(), &CancellationToken::new()).unwrap().unwrap();
            assert!(built.readable.contains(&shared));
            built.writable
        };
        assert_eq!(writable(""), [tree.clone(), shared.clone()]);
        assert_eq!(writable("/copies/a/tree"), std::slice::from_ref(&tree));
    }

    #[test]
    fn only_a_folder_that_names_the_tree_in_return_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (tree, shared) = (root.join("tree"), root.join("main/.git"));
        let real = shared.join("worktrees/tree");
        fs::create_dir_all(&real).unwrap();
        fs::create_dir_all(root.join("secret")).unwrap();
        fs::create_dir_all(&tree).unwrap();
        fs::write(real.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
        fs::write(real.join("commondir"), "../..\n").unwrap();
        let named = |folder: &Path| {
            fs::write(tree.join(".git"), format!("gitdir: {}\n", folder.display())).unwrap();
            GitPaths::of(&tree)
        };
        let git = named(&real);
        assert_eq!((git.readable, git.protected), (vec![shared], vec![tree.join(".git")]));
        let sly = named(&root.join("secret"));
        assert_eq!((sly.readable, sly.protected), (vec![], vec![tree.join(".git")]));
    }

    #[test]
    fn variables_and_folders_are_chosen_and_not_inherited() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("home/.cargo/bin")).unwrap();
        fs::create_dir_all(root.join("project/.git")).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let home = root.join("home").display().to_string();
        let mut vars = vec![pair("HOME", &home), pair("DATABASE_URL", "x"), pair("PATH", "/usr/bin")];
        let built =
            CommandSandbox::around(root.join("project")).build(&mut vars, &CancellationToken::new()).unwrap().unwrap();
        assert_eq!(vars, [pair("HOME", &home), pair("PATH", "/usr/bin")]);
        assert!(
            built.readable.contains(&root.join("home/.cargo/bin")) && built.readable.contains(&root.join("project"))
        );
        assert_eq!(built.writable, [root.join("project")]);
        for name in [".mcp.json", "config/agents.yaml", ".git/config", ".git/objects/info/alternates", ".max-team"] {
            assert!(built.protected.contains(&root.join("project").join(name)), "{name}");
        }
        let off = CommandSandbox { on: false, ..CommandSandbox::around(root.join("project")) };
        assert_eq!(off.build(&mut vars, &CancellationToken::new()).unwrap(), None);
        let looks = CommandSandbox {
            read_only: true,
            also: vec![root.join("home")],
            ..CommandSandbox::around(root.join("project"))
        };
        let built = looks.build(&mut vars, &CancellationToken::new()).unwrap().unwrap();
        assert!(built.writable.is_empty() && built.readable.contains(&root.join("project")));
    }
}
