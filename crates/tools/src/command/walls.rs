//! What the commands of one agent are kept within: its folder, what it may see, whom it may talk to.
//!
//! The folder is theirs to write, but for what other programs obey: git's own settings, and the files that say who is on
//! the team and what it may do. What is out of sight for the agent is out of sight for its commands.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use max_team_core::policy::{GUARDED, Sight};
use max_team_sandbox::{Limits, Network, allowed, secrets, tools};

use super::CommandError;

/// Files that are looked at for what is out of sight.
const LOOKED_AT_MAX: usize = 500_000;
/// Folders in folders.
const DEPTH_MAX: usize = 128;

/// What is obeyed within git's own folder: everything that can name a program, or another such folder.
const PROTECTED_GIT: [&str; 6] = ["hooks", "config", "config.worktree", "commondir", "modules", "worktrees"];

/// What commands are kept within.
#[derive(Debug, Clone)]
pub struct Walls {
    /// Whether they stand; only the user turns them off, by name.
    pub on: bool,
    /// The agent's folder: what its commands write.
    pub root: PathBuf,
    /// Further folders that they write.
    pub also: Vec<PathBuf>,
    /// What the agent can see.
    pub sight: Arc<Sight>,
    /// Whom they can talk to.
    pub network: Network,
    /// Whether a person has looked at this very command and said yes.
    pub attended: bool,
    /// Where they are stopped; their time is the command's own.
    pub limits: Limits,
}

impl Walls {
    /// Walls around a folder, without a network.
    pub fn around(root: impl Into<PathBuf>) -> Self {
        Self {
            on: true,
            root: root.into(),
            also: Vec::new(),
            sight: Arc::default(),
            network: Network::None,
            attended: false,
            limits: Limits::default(),
        }
    }

    /// As the sandbox takes them; `None` if they are off. Takes out of `vars` what is not handed on.
    pub(super) fn build(
        &self,
        vars: &mut Vec<(String, String)>,
    ) -> Result<Option<max_team_sandbox::Walls>, CommandError> {
        if !self.on {
            return Ok(None);
        }
        vars.retain(|(name, value)| allowed(name, value));
        let real = |path: &Path| path.canonicalize().map_err(|_| CommandError::Folder(path.to_owned()));
        let root = real(&self.root)?;
        let home =
            vars.iter().find(|(name, _)| name == "HOME").and_then(|(_, home)| Path::new(home).canonicalize().ok());
        let mut readable = home.as_deref().map(|home| tools(home, vars)).unwrap_or_default();
        readable.push(root.clone());
        // What is not there must not appear.
        let mut protected: Vec<PathBuf> = GUARDED.iter().map(|name| root.join(name)).collect();
        protected.extend(self.sight.given().iter().map(PathBuf::from).filter(|file| file.starts_with(&root)));
        let git = Git::of(&root);
        readable.extend(git.readable);
        protected.extend(git.protected);
        let mut hidden = home.as_deref().map(secrets).unwrap_or_default();
        if !self.sight.is_whole() {
            hidden.extend(apart(&root, &|name| self.sight.sees(name))?);
        }
        if !self.sight.is_free() {
            protected.extend(apart(&root, &|name| self.sight.frees(name))?);
        }
        let mut writable = vec![root];
        for folder in &self.also {
            writable.push(real(folder)?);
        }
        Ok(Some(max_team_sandbox::Walls {
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

/// What git needs and what it obeys.
#[derive(Debug, Default)]
struct Git {
    readable: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

impl Git {
    fn of(root: &Path) -> Self {
        let own = root.join(".git");
        match fs::symlink_metadata(&own) {
            // Nobody but the user makes a folder a repository: git would obey its settings.
            Err(_) => {
                let above = root.ancestors().skip(1).map(|folder| folder.join(".git")).find(|git| git.is_dir());
                Self { readable: above.into_iter().collect(), protected: vec![own] }
            }
            Ok(meta) if meta.is_dir() => {
                let protected = PROTECTED_GIT.iter().map(|name| own.join(name)).collect();
                Self { readable: Vec::new(), protected }
            }
            Ok(_) => Self { readable: linked(&own).unwrap_or_default(), protected: vec![own] },
        }
    }
}

/// The real folders behind a linked working tree. A file can name any folder; only one that names this file in return is
/// believed.
fn linked(own: &Path) -> Option<Vec<PathBuf>> {
    let read = |path: &Path| fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned());
    let named = read(own)?.strip_prefix("gitdir: ")?.to_owned();
    let folder = own.parent()?.join(named).canonicalize().ok()?;
    if Path::new(&read(&folder.join("gitdir"))?).canonicalize().ok()? != own {
        return None;
    }
    let shared = folder.join(read(&folder.join("commondir"))?).canonicalize().ok()?;
    folder.starts_with(&shared).then(|| vec![shared])
}

/// What beneath a folder is not open (to be seen, or to be changed), and every other name of the same files.
fn apart(root: &Path, is_open: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>, CommandError> {
    let mut found = Vec::new();
    walk(root, &mut |path, name, _| {
        let is_apart = !is_open(name);
        if is_apart {
            found.push(path.to_owned());
        }
        !is_apart
    })?;
    let file = |path: &PathBuf| fs::symlink_metadata(path).ok().filter(|meta| meta.is_file() && meta.nlink() > 1);
    let mut files: HashSet<(u64, u64)> = found.iter().filter_map(file).map(|meta| (meta.dev(), meta.ino())).collect();
    for folder in found.iter().filter(|path| path.is_dir()) {
        walk(folder, &mut |path, _, _| {
            files.extend(file(&path.to_owned()).map(|meta| (meta.dev(), meta.ino())));
            true
        })?;
    }
    if !files.is_empty() {
        walk(root, &mut |path, name, is_dir| {
            let is_same =
                !is_dir && file(&path.to_owned()).is_some_and(|meta| files.contains(&(meta.dev(), meta.ino())));
            if is_same && is_open(name) {
                found.push(path.to_owned());
            }
            is_open(name)
        })?;
    }
    Ok(found)
}

/// Looks at everything beneath a folder, with its name relative to that; `look` says whether to go into it.
fn walk(root: &Path, look: &mut dyn FnMut(&Path, &str, bool) -> bool) -> Result<(), CommandError> {
    let mut looked_at = 0;
    let mut folders = vec![(root.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > LOOKED_AT_MAX || depth > DEPTH_MAX {
                return Err(CommandError::NoWalls {
                    why: format!("`{}` has too many files to find those that are out of sight", root.display()),
                    advice: "keep the member to fewer folders (`allowed_dirs`)".to_owned(),
                });
            }
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if look(&entry.path(), &name, is_dir) && is_dir {
                folders.push((entry.path(), format!("{name}/"), depth + 1));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use max_team_core::policy::rule::{Anchors, List, Origin, Scope};
    use max_team_core::policy::{Permissions, Rule};
    use max_team_core::team::Constraints;

    use super::*;

    #[test]
    fn what_is_out_of_sight_is_found_under_every_name() {
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
        let constraints =
            Constraints { blocked_patterns: vec!["*.env".into(), "vault".into()], ..Constraints::default() };
        let sight = Sight::of(&constraints);
        let mut found = apart(&root, &|name| sight.sees(name)).unwrap();
        found.sort();
        assert_eq!(found, ["other", "src/copy", "src/prod.env", "vault"].map(|name| root.join(name)));
        assert!(apart(&root, &|_| true).unwrap().is_empty());
    }

    #[test]
    fn what_a_rule_keeps_from_being_changed_is_protected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("db/old")).unwrap();
        fs::write(root.join("db/old/1.sql"), "x").unwrap();
        fs::hard_link(root.join("db/old/1.sql"), root.join("copy")).unwrap();
        let text = root.to_str().unwrap();
        let origin = Origin { scope: Scope::User, file: "settings.json".into(), line: 1 };
        let anchors = Anchors { root: text, base: text, home: "/" };
        let rules = vec![Rule::new(List::Deny, "Edit(./db/**)", origin, &anchors)];
        let guarded = vec![format!("{text}/mine.yaml"), "/elsewhere/mine.yaml".to_owned()];
        let permissions = Permissions { root: text.to_owned(), rules, guarded };
        let sight = Arc::new(Sight::under(&Constraints::default(), &permissions));
        let built = Walls { sight, ..Walls::around(&root) }.build(&mut Vec::new()).unwrap().unwrap();
        assert!(!built.protected.contains(&PathBuf::from("/elsewhere/mine.yaml")), "nobody is to read it there");
        for name in ["db", "copy", "mine.yaml", "config/config.yaml"] {
            assert!(built.protected.contains(&root.join(name)), "{name}");
        }
        assert!(built.hidden.is_empty(), "{:?}", built.hidden);
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
            Git::of(&tree)
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
        let built = Walls::around(root.join("project")).build(&mut vars).unwrap().unwrap();
        assert_eq!(vars, [pair("HOME", &home), pair("PATH", "/usr/bin")]);
        assert!(
            built.readable.contains(&root.join("home/.cargo/bin")) && built.readable.contains(&root.join("project"))
        );
        assert_eq!(built.writable, [root.join("project")]);
        for name in [".mcp.json", "config/agents.yaml", ".git/config", ".git/hooks", ".max-team", ".claude"] {
            assert!(built.protected.contains(&root.join("project").join(name)), "{name}");
        }
        let off = Walls { on: false, ..Walls::around(root.join("project")) };
        assert_eq!(off.build(&mut vars).unwrap(), None);
    }
}
