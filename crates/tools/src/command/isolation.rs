//! The sandbox of one agent's commands: its folder, what it may see, which hosts it may reach.
//!
//! Commands may write the folder, except protected files ([`max_team_core::policy::PROTECTED`]) and `.git`.
//! What is hidden from the agent is hidden from its commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::limits::NESTED_PROTECTED_MAX;
use max_team_core::policy::{CommandReach, DeletionTarget, GitAccess, ProtectedRow, Visibility};
use max_team_sandbox::{AppearedListener, EndMark, Limits, Network, WatchOrder, allowed, secrets, tools};
use tokio_util::sync::CancellationToken;

use super::moved::MovedFiles;
use super::planted::PlantedFiles;
use super::running::RunningCommand;
use super::scan::ProtectedScan;
use super::{CommandError, path, sockets};
use crate::network::HostRules;

/// What git obeys within its own folder: everything that can name a program, or another such folder.
pub(crate) const OBEYED: [&str; 7] =
    ["hooks", "config", "config.worktree", "commondir", "modules", "worktrees", "objects/info/alternates"];

/// Folders that no command gets as a whole: the sandbox has its own, or the system is in them.
const CLOSED: [&str; 6] = ["/", "/etc", "/home", "/tmp", "/var/tmp", "/dev/shm"];

/// Protected files that are named when a command could not change one.
const SHOWN_MAX: usize = 8;
/// Repositories of submodules whose settings are protected one by one.
const MODULES_MAX: usize = 200;

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
    /// Whether they can still write the build folders that exist.
    pub writes_builds: bool,
    /// Whether this command was allowed knowing that protected files may change and blocked ones be read where it writes.
    pub unshielded: bool,
    /// Whether the verdict made it read-only, so that a call with `writes: true` could write.
    pub may_write_if_said: bool,
    /// Whether repositories are hidden, because their history may hold hidden files.
    pub hides_history: bool,
    /// Further folders that they only read.
    pub reads: Vec<PathBuf>,
    /// What the agent can see.
    pub sight: Arc<Visibility>,
    /// Which network they have.
    pub network: Network,
    /// The rules for their connections, if that network is a proxy of ours.
    pub hosts: HostRules,
    /// Whether a person has seen and approved this very command.
    pub attended: bool,
    /// Protected files that this command may change.
    pub open: Vec<&'static ProtectedRow>,
    /// Paths that the person who approved this command saw it delete: no repository in them is protected.
    pub deletes: Vec<PathBuf>,
    /// What this command may do in the project's repositories.
    pub git: GitAccess,
    /// Where they are stopped; their time is the command's own.
    pub limits: Limits,
    /// Protected files that they made without approval and that were moved away; the runtime tells them to the user.
    pub moved: Arc<MovedFiles>,
    /// Where the end of this command is noted, if its changes are looked for.
    pub end_mark: Option<EndMark>,
}

impl CommandSandbox {
    /// A sandbox around a folder, whose network reaches no host.
    pub fn around(root: impl Into<PathBuf>) -> Self {
        Self {
            on: true,
            root: root.into(),
            also: Vec::new(),
            read_only: false,
            writes_builds: false,
            unshielded: false,
            may_write_if_said: false,
            hides_history: false,
            reads: Vec::new(),
            sight: Arc::default(),
            network: Network::Proxy,
            hosts: HostRules::default(),
            attended: false,
            open: Vec::new(),
            deletes: Vec::new(),
            git: GitAccess::Read,
            limits: Limits::default(),
            moved: Arc::default(),
            end_mark: None,
        }
    }

    /// Opens what an approved line deletes: repositories, and outside the project the folders around the paths. A path
    /// that contains the project is not opened.
    pub(crate) fn open_deleted(&mut self, project: &Path, targets: &[DeletionTarget]) {
        for target in targets {
            let DeletionTarget::Path(path) = target else { continue };
            let path = project.join(path);
            let Some((parent, name)) = path.parent().zip(path.file_name()) else { continue };
            let Ok(parent) = parent.canonicalize() else { continue };
            let path = parent.join(name);
            if self.root.starts_with(&path) || fs::symlink_metadata(&path).is_err() {
                continue;
            }
            if !path.starts_with(&self.root) && !CLOSED.iter().any(|folder| parent == Path::new(folder)) {
                self.also.push(parent);
            }
            self.deletes.push(path);
        }
    }

    /// The watch of a command, and the record that it runs; `None` if it writes no folder that is watched.
    pub(super) fn watch(&self, planted: PlantedFiles) -> Option<(WatchOrder, Arc<RunningCommand>)> {
        if planted.folders.is_empty() {
            return None;
        }
        let text = serde_json::to_string(&planted).unwrap_or_default();
        let running = RunningCommand::begin(planted);
        let (own, moved) = (Arc::clone(&running), Arc::clone(&self.moved));
        let listener = AppearedListener(Arc::new(move |appeared| {
            // The record stays as long as the order does.
            let _ = &own;
            moved.note(std::slice::from_ref(appeared));
        }));
        let order = WatchOrder { text, notes: RunningCommand::approvals(), listener: Some(listener) };
        Some((order, running))
    }

    /// The sandbox that a verdict named: never a wider one than the agent's own.
    #[must_use]
    pub fn within(&self, reach: CommandReach) -> Self {
        let is_unknown = match reach {
            CommandReach::Project => return self.clone(),
            CommandReach::Unshielded => return Self { unshielded: true, ..self.clone() },
            CommandReach::BuildFolders | CommandReach::Temporary => false,
            CommandReach::ReadOnly => true,
        };
        Self {
            // Also if the user has turned it off since the verdict.
            on: true,
            also: Vec::new(),
            read_only: true,
            writes_builds: reach == CommandReach::BuildFolders && !self.read_only,
            may_write_if_said: !self.read_only,
            hides_history: is_unknown && !self.sight.for_scan().is_whole(),
            network: Network::None,
            ..self.clone()
        }
    }

    /// Protected files that the command may change and that are there now, but were not before.
    pub(super) fn opened_since(&self, before: &BuiltSandbox) -> Vec<PathBuf> {
        let now = self.build(&mut Vec::new(), &CancellationToken::new()).ok().flatten().unwrap_or_default();
        now.opened.into_iter().filter(|path| !before.opened.contains(path)).collect()
    }

    /// The sandbox as plain data; `None` if it is off. Removes the variables that are not handed on from `vars`. Once
    /// `cancel` has fired it may be incomplete, and nothing is run.
    pub(super) fn build(
        &self,
        vars: &mut Vec<(String, String)>,
        cancel: &CancellationToken,
    ) -> Result<Option<BuiltSandbox>, CommandError> {
        if !self.on {
            return Ok(None);
        }
        vars.retain(|(name, value)| allowed(name, value));
        let folders = self.folders()?;
        let home =
            vars.iter().find(|(name, _)| name == "HOME").and_then(|(_, home)| Path::new(home).canonicalize().ok());
        let mut built = BuiltSandbox::default();
        let isolation = &mut built.isolation;
        isolation.readable = home.as_deref().map(|home| tools(home, vars)).unwrap_or_default();
        isolation.writable = folders.iter().map(|(folder, _)| folder.clone()).collect();
        isolation.readable.extend(isolation.writable.iter().cloned());
        if self.sight.are_additional_read_only() {
            isolation.writable.truncate(1);
        }
        // A folder that is gone meanwhile cannot be read.
        let reads = self.reads.iter().filter(|_| !self.hides_history);
        isolation.readable.extend(reads.filter_map(|folder| folder.canonicalize().ok()));
        isolation.protected = self.sight.named_files().iter().map(PathBuf::from).collect();
        let written = isolation.writable.clone();
        isolation.protected.retain(|file| written.iter().any(|folder| file.starts_with(folder)));
        isolation.hidden = home.as_deref().map(secrets).unwrap_or_default();
        for (folder, sight) in &folders {
            built.add(folder, ProtectedScan::of(folder, sight, cancel)?, self);
        }
        let isolation = &mut built.isolation;
        if self.read_only {
            // Nothing is written there, and a protected file deeper down would show a hidden folder.
            isolation.writable.clear();
            isolation.protected.clear();
            if self.writes_builds {
                isolation.writable.append(&mut built.builds);
            }
        }
        if !self.read_only || self.writes_builds {
            for folder in &self.also {
                isolation.writable.push(folder.canonicalize().map_err(|_| CommandError::Folder(folder.clone()))?);
            }
        }
        let is_deleted = |path: &PathBuf| {
            self.deletes.iter().any(|deleted| path.starts_with(deleted)) && path.iter().any(|name| name == ".git")
        };
        isolation.protected.retain(|path| !is_deleted(path));
        isolation.home = home;
        isolation.network = self.network;
        isolation.unshielded = self.attended || self.unshielded;
        built.planted.folders = if self.read_only { Vec::new() } else { written };
        built.planted.open = self.open.iter().map(|row| row.pattern.to_owned()).collect();
        built.planted.makes_repositories = self.git != GitAccess::Read;
        built.planted.rules = self.sight.path_denials();
        built.planted.git = path::user_program("git", vars, &self.root);
        Ok(Some(built))
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
}

/// A sandbox, and what its watch looks for.
#[derive(Debug, Default)]
pub(super) struct BuiltSandbox {
    pub(super) isolation: max_team_sandbox::Isolation,
    pub(super) planted: PlantedFiles,
    /// Existing protected files that stay as they are, relative to the agent's folder; at most `SHOWN_MAX`.
    pub(super) shown: Vec<String>,
    /// Protected files that are there and that the command may change.
    pub(super) opened: Vec<PathBuf>,
    /// Build folders without a file that is hidden or stays as it is, or a socket.
    builds: Vec<PathBuf>,
}

impl BuiltSandbox {
    /// Adds what was found in one folder.
    fn add(&mut self, folder: &Path, scan: ProtectedScan, sandbox: &CommandSandbox) {
        let Self { isolation, planted, .. } = self;
        let git = GitPaths::of(folder, sandbox.git);
        let around = git.readable.iter().map(|folder| folder.join(".git")).chain(git.linked);
        if sandbox.hides_history {
            let own = scan.repositories.iter().map(PathBuf::as_path).chain([folder]).map(|folder| folder.join(".git"));
            isolation.hidden.extend(around.chain(own).filter(|path| path.exists()));
        } else {
            isolation.readable.extend(around);
        }
        let is_apart = |build: &PathBuf| {
            !scan.hidden.iter().chain(&scan.kept).chain(&scan.sockets).any(|path| path.starts_with(build))
        };
        self.builds.extend(scan.builds.iter().filter(|build| is_apart(build)).cloned());
        isolation.protected.extend(git.protected);
        planted.trees.extend(git.readable);
        planted.trees.extend(folder.join(".git").exists().then(|| folder.to_owned()));
        for tree in &scan.repositories {
            isolation.protected.extend(GitPaths::of(tree, sandbox.git).protected);
        }
        for bare in scan.bare.iter().filter_map(|head| head.parent()) {
            isolation.protected.extend(OBEYED.map(|name| bare.join(name)));
        }
        planted.trees.extend(scan.repositories.iter().cloned());
        planted.known.extend(scan.known().cloned());
        let (open, shut): (Vec<_>, Vec<_>) = scan
            .rows
            .into_iter()
            .filter(|(_, row)| row.pattern != ".git")
            .partition(|(_, row)| sandbox.open.contains(row));
        self.opened.extend(open.into_iter().map(|(path, _)| path));
        let shown = shut.iter().filter(|(_, row)| !row.is_held);
        let shown = shown.filter_map(|(path, _)| path.strip_prefix(folder).ok());
        let left = SHOWN_MAX.saturating_sub(self.shown.len());
        self.shown.extend(shown.map(|path| format!("`{}`", path.display())).take(left));
        for (path, _) in shut.into_iter().take(NESTED_PROTECTED_MAX) {
            // A link is protected with what it leads to.
            let leads_to = path.is_symlink().then(|| path.canonicalize().ok()).flatten();
            isolation.protected.extend(leads_to.filter(|real| real.starts_with(folder)));
            isolation.protected.push(path);
        }
        isolation.protected.extend(scan.kept);
        isolation.hidden.extend(scan.hidden);
        isolation.hidden.extend(scan.sockets.into_iter().filter(|socket| sockets::is_served(socket)));
    }
}

/// What git needs and what stays as it is.
#[derive(Debug, Default)]
struct GitPaths {
    /// The working tree around the folder, whose repository can be read.
    readable: Option<PathBuf>,
    /// The repository of a linked working tree.
    linked: Option<PathBuf>,
    protected: Vec<PathBuf>,
}

impl GitPaths {
    fn of(root: &Path, access: GitAccess) -> Self {
        let own = root.join(".git");
        match fs::symlink_metadata(&own) {
            Err(_) => {
                let readable = root.ancestors().skip(1).find(|folder| folder.join(".git").is_dir());
                Self { readable: readable.map(Path::to_owned), ..Self::default() }
            }
            Ok(meta) if meta.is_dir() && access != GitAccess::Read => {
                let repositories = std::iter::once(own.clone()).chain(modules(&own.join("modules")));
                let names = OBEYED.iter().filter(|name| match **name {
                    "config" => access != GitAccess::Submodules,
                    "modules" => false,
                    _ => true,
                });
                let protected = repositories.flat_map(|folder| names.clone().map(move |name| folder.join(name)));
                Self { protected: protected.collect(), ..Self::default() }
            }
            Ok(meta) if meta.is_dir() => Self { protected: vec![own], ..Self::default() },
            Ok(_) => Self { linked: linked(&own), protected: vec![own], ..Self::default() },
        }
    }
}

/// The repositories of submodules, below a folder; those of nested names lie deeper.
fn modules(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop().filter(|_| found.len() < MODULES_MAX) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            if path.join("HEAD").exists() {
                folders.push(path.join("modules"));
                found.push(path);
            } else {
                folders.push(path);
            }
        }
    }
    found
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
    use max_team_core::policy::{Permissions, Rule, sandbox_rows};

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
            .unwrap()
            .isolation;
        assert!(!built.protected.contains(&PathBuf::from("/elsewhere/mine.yaml")), "nobody is to read it there");
        for name in ["db", "copy", "mine.yaml"] {
            assert!(built.protected.contains(&root.join(name)), "{name}");
        }
        assert!(built.hidden.is_empty(), "{:?}", built.hidden);
    }

    #[test]
    fn a_row_that_is_open_is_not_protected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/.github/workflows")).unwrap();
        for name in ["AGENTS.md", "a/AGENTS.md"] {
            fs::write(root.join(name), "x").unwrap();
        }
        let build = |isolation: &CommandSandbox| {
            let built = isolation.build(&mut Vec::new(), &CancellationToken::new()).unwrap().unwrap();
            let is_protected = ["AGENTS.md", "a/AGENTS.md", "a/.github/workflows"]
                .map(|name| built.isolation.protected.contains(&root.join(name)));
            (is_protected, built.shown, built.opened)
        };
        let shut = CommandSandbox::around(&root);
        let shown = ["`AGENTS.md`", "`a/AGENTS.md`", "`a/.github/workflows`"].map(str::to_owned);
        assert_eq!(build(&shut), ([true; 3], shown.to_vec(), vec![]));
        let open = sandbox_rows().filter(|row| row.pattern == "AGENTS.md").collect();
        let opened = vec![root.join("AGENTS.md"), root.join("a/AGENTS.md")];
        assert_eq!(build(&CommandSandbox { open, ..shut }), ([false, false, true], vec![shown[2].clone()], opened));
    }

    #[test]
    fn git_writes_what_it_stores_and_never_its_settings() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".git/modules/a/b/refs")).unwrap();
        fs::write(root.join(".git/modules/a/b/HEAD"), "x").unwrap();
        let protected = |git| {
            let sandbox = CommandSandbox { git, ..CommandSandbox::around(&root) };
            sandbox.build(&mut Vec::new(), &CancellationToken::new()).unwrap().unwrap().isolation.protected
        };
        assert_eq!(protected(GitAccess::Read), [root.join(".git")]);
        let (writes, submodules) = (protected(GitAccess::Write), protected(GitAccess::Submodules));
        for name in [".git/hooks", ".git/commondir", ".git/modules/a/b/hooks"] {
            assert!(writes.contains(&root.join(name)) && submodules.contains(&root.join(name)), "{name}");
        }
        for name in [".git/config", ".git/modules/a/b/config"] {
            assert!(writes.contains(&root.join(name)) && !submodules.contains(&root.join(name)), "{name}");
        }
        assert!(!writes.contains(&root.join(".git")) && !writes.contains(&root.join(".git/modules")));
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
            let built = isolation.build(&mut Vec::new(), &CancellationToken::new()).unwrap().unwrap().isolation;
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
            GitPaths::of(&tree, GitAccess::Read)
        };
        let git = named(&real);
        assert_eq!((git.linked, git.protected), (Some(shared), vec![tree.join(".git")]));
        let sly = named(&root.join("secret"));
        assert_eq!((sly.linked, sly.protected), (None, vec![tree.join(".git")]));
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
        let built = CommandSandbox::around(root.join("project"))
            .build(&mut vars, &CancellationToken::new())
            .unwrap()
            .unwrap()
            .isolation;
        assert_eq!(vars, [pair("HOME", &home), pair("PATH", "/usr/bin")]);
        assert!(
            built.readable.contains(&root.join("home/.cargo/bin")) && built.readable.contains(&root.join("project"))
        );
        assert_eq!(built.writable, [root.join("project")]);
        assert_eq!(built.protected, [root.join("project/.git")]);
        let off = CommandSandbox { on: false, ..CommandSandbox::around(root.join("project")) };
        assert!(off.build(&mut vars, &CancellationToken::new()).unwrap().is_none());
        let looks = CommandSandbox {
            read_only: true,
            also: vec![root.join("home")],
            ..CommandSandbox::around(root.join("project"))
        };
        let built = looks.build(&mut vars, &CancellationToken::new()).unwrap().unwrap().isolation;
        assert!(built.writable.is_empty() && built.readable.contains(&root.join("project")));
    }
}
