//! Copies of real repositories: made, worked in, merged, and killed on the way.

mod crash;
mod hostile;
mod kinds;
mod merging;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use max_team_core::policy::Visibility;
use max_team_tools::worktree::{Accept, Fate, IgnoredFiles, MergeResult, Review, Worktree, WorktreeOptions, Worktrees};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::project::Project;
use crate::repository::{commit, git, init};

/// A project and the copies of its user.
struct Fixture {
    project: Project,
    home: TempDir,
}

impl Fixture {
    fn new(project: Project) -> Self {
        Self { project, home: TempDir::new().unwrap() }
    }

    /// One with a bit of everything in its history.
    fn usual() -> Self {
        let project = Project::new();
        init(&project);
        project.write("src/a.rs", "one\ntwo\nthree\n");
        project.write("src/b.rs", "b\n");
        project.write("docs/空 格.md", "你好\n");
        project.write("win.txt", "one\r\ntwo\r\n");
        project.write("data.bin", [0, 159, 146, 150]);
        project.write("run.sh", "#!/bin/sh\n");
        fs::set_permissions(project.inside("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("src/a.rs", project.inside("link")).unwrap();
        project.write(".gitignore", "ignored\n");
        project.write("ignored", "secret\n");
        commit(&project, "begin");
        Self::new(project)
    }

    fn copies(&self) -> Worktrees {
        Worktrees::within(self.home.path())
    }

    fn copy(&self, id: &str) -> Worktree {
        self.copy_of(&self.project.inside(""), id)
    }

    fn copy_of(&self, project: &Path, id: &str) -> Worktree {
        let order = WorktreeOptions { id, project, sight: &Visibility::default(), named: &[], by: "leo", at_ms: 1 };
        self.copies().make(&order, &CancellationToken::new()).unwrap()
    }

    fn files(&self) -> BTreeMap<String, String> {
        files(&self.project.inside(""))
    }
}

fn review(copy: &Worktree) -> Review {
    copy.review(&Visibility::default(), &CancellationToken::new()).unwrap()
}

fn fates(review: &Review) -> Vec<(&str, &str)> {
    let name = |fate: &Fate| match fate {
        Fate::Ready => "ready",
        Fate::Done => "done",
        Fate::Rejected => "rejected",
        Fate::Back => "back",
        Fate::Conflict { .. } => "conflict",
        Fate::Refused { .. } => "refused",
    };
    review.changes.iter().map(|change| (change.path.as_str(), name(&change.fate))).collect()
}

fn accept(copy: &mut Worktree, files: Option<&[&str]>) -> MergeResult {
    let files: Option<Vec<String>> = files.map(|files| files.iter().map(|file| (*file).to_owned()).collect());
    let accept = Accept { files: files.as_deref(), whole: false, shown: None, sight: &Visibility::default() };
    copy.accept(&accept, &CancellationToken::new(), &mut |_| {}).unwrap()
}

/// Everything beneath a folder but git's own: content, where a link points to, and whether it is a program.
fn files(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if entry.file_name() == ".git" {
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if kind.is_dir() {
                found.insert(format!("{name}/"), String::new());
                folders.push(path);
            } else if kind.is_symlink() {
                found.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
            } else {
                let program = if entry.metadata().unwrap().mode() & 0o100 == 0 { "" } else { "+x " };
                found.insert(name, format!("{program}{:?}", String::from_utf8_lossy(&fs::read(&path).unwrap())));
            }
        }
    }
    found
}

/// Git as whoever works in the copy would run it.
fn git_in(root: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env_remove("GIT_DIR")
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The project's own `.git`, to see that nobody touches it.
fn git_state(project: &Project) -> BTreeMap<String, String> {
    files(&project.inside(".git"))
}

#[test]
fn a_worktree_has_the_files_of_the_project_and_leaves_it_unchanged() {
    let fixture = Fixture::usual();
    let project = &fixture.project;
    project.write("src/a.rs", "one\n2\nthree\n");
    project.write("new/文件.txt", "new\n");
    project.write("staged", "s\n");
    git(project, &["add", "staged"]);
    fs::remove_file(project.inside("src/b.rs")).unwrap();
    project.write("node_modules/x/i.js", "left by a build\n");
    symlink("/etc/passwd", project.inside("out")).unwrap();
    let (before, own) = (git_state(project), fixture.files());

    let copy = fixture.copy("one");
    let mut want = own.clone();
    for gone in ["ignored", "node_modules/", "node_modules/x/", "node_modules/x/i.js"] {
        want.remove(gone);
    }
    assert_eq!(files(&copy.root()), want);
    assert_eq!(copy.left(), [] as [String; 0]);
    assert_eq!(fates(&review(&copy)), []);
    assert_eq!(git_in(&copy.root(), &["status", "--porcelain"]), "");
    assert_eq!(git_in(&copy.root(), &["log", "--format=%s"]).lines().last(), Some("begin"));
    assert_eq!(git_in(&copy.root(), &["branch", "--show-current"]), "main\n");

    fs::write(copy.root().join("src/a.rs"), "one\n2\n3\n").unwrap();
    git_in(&copy.root(), &["commit", "--quiet", "--all", "-m", "mine"]);
    let seen = review(&copy);
    assert_eq!(fates(&seen), [("src/a.rs", "ready")], "a commit in the copy changes nothing");
    assert!(seen.diff.text.contains("-three\n+3\n"), "{}", seen.diff.text);
    assert_eq!((git_state(project), fixture.files()), (before, own));

    let again = fixture.copy("one");
    assert_eq!(fates(&review(&again)), [("src/a.rs", "ready")], "the same copy, not another");
    assert_eq!(fixture.copies().list().len(), 1);
    again.remove().unwrap();
    assert!(fixture.copies().list().is_empty());
    assert_eq!(fs::read_dir(fixture.home.path().join("copies")).unwrap().count(), 0);
}

#[test]
fn hidden_files_are_not_in_the_worktree() {
    let fixture = Fixture::usual();
    fixture.project.write("prod.env", "TOKEN=x\n");
    let blocked = max_team_core::agent::Constraints {
        blocked_patterns: vec!["*.env".to_owned(), "data.bin".to_owned()],
        ..Default::default()
    };
    let sight = Visibility::from_constraints(&blocked);
    let order = WorktreeOptions {
        id: "a",
        project: &fixture.project.inside(""),
        sight: &sight,
        named: &[],
        by: "leo",
        at_ms: 1,
    };
    let copy = fixture.copies().make(&order, &CancellationToken::new()).unwrap();
    let names = files(&copy.root());
    assert!(!names.contains_key("prod.env") && !names.contains_key("data.bin"), "{names:?}");
    assert_eq!(copy.left(), ["`data.bin`: it is out of sight", "`prod.env`: it is out of sight"]);
    let all = git_in(&copy.root(), &["log", "--all", "--format=", "--patch"]);
    assert!(!all.contains("TOKEN"), "{all}");
    assert_eq!(fates(&review(&copy)), []);
}

#[test]
fn a_worktree_needs_a_repository_and_a_valid_name() {
    let fixture = Fixture::new(Project::new());
    let make = |id| {
        let order = WorktreeOptions {
            id,
            project: &fixture.project.inside(""),
            sight: &Visibility::default(),
            named: &[],
            by: "leo",
            at_ms: 1,
        };
        fixture.copies().make(&order, &CancellationToken::new()).unwrap_err().to_string()
    };
    assert!(make("a").contains("is in no git repository"), "{}", make("a"));
    for id in ["", "../a", "a/b", ".making-a", "a b"] {
        assert!(make(id).contains("cannot be the name of a worktree"), "{id}");
    }
    assert_eq!(fs::read_dir(fixture.home.path().join("copies")).unwrap().count(), 0, "what was begun is cleared away");
}
