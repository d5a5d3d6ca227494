//! What a hostile program plants in a project, and what the user does next: the same for every way to run code.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use max_team_core::policy::PROTECTED;

/// Folders at every depth from 0 to 3.
const PLACES: [&str; 4] = ["", "a/", "a/b/", "a/b/c/"];
/// What stands in most files that are planted.
const EVIL: &str = "evil";
/// How long something is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is planted in the repository of the project.
const IN_REPOSITORY: [&str; 4] = [".git/rebase-merge", ".git/commondir", ".git/hooks/post-checkout", "elsewhere"];

/// A project in a repository, in which a program plants what it must not.
#[derive(Debug)]
pub struct Planting {
    root: PathBuf,
    /// What is made by code that was planted and has run.
    mark: PathBuf,
}

impl Planting {
    /// Makes the project in a folder that may hold files, with the script `plant.sh` in it.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let mark = root.parent().expect("a folder around the project").join("it-ran");
        let planting = Self { mark, root };
        fs::create_dir_all(planting.root.join("a/b/c")).expect("folders");
        fs::write(planting.root.join("a/b/c/code.py"), "x\n").expect("a file");
        planting.git(&["init", "-q"]);
        planting.commit("one");
        let evil = format!("#!/bin/sh\ntouch '{}'\n", planting.mark.display());
        fs::write(planting.evil(), evil).expect("a program");
        fs::set_permissions(planting.evil(), fs::Permissions::from_mode(0o755)).expect("a program");
        fs::write(planting.root.join("plant.sh"), planting.script()).expect("a script");
        planting
    }

    /// The folder of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file that code makes which was planted and has run.
    pub fn mark(&self) -> &Path {
        &self.mark
    }

    /// Runs git for the user.
    pub fn git(&self, args: &[&str]) {
        let own = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
        let own = own.iter().chain(&["-c", "protocol.file.allow=always"]);
        let ran = self.by_user("git", "").args(own).args(args).output().expect("git");
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    /// Commits all that is there.
    pub fn commit(&self, message: &str) {
        self.git(&["add", "."]);
        self.git(&["commit", "-qm", message]);
    }

    /// Whether the project has a file of this name.
    pub fn has(&self, name: &str) -> bool {
        self.root.join(name).symlink_metadata().is_ok()
    }

    /// Everything that a run of the script must not leave.
    pub fn planted(&self) -> Vec<String> {
        let rows = PLACES.into_iter().flat_map(names).filter(|name| !self.is_other(name));
        let repositories = PLACES
            .into_iter()
            .flat_map(|place| ["new/.git", "bare/HEAD", "link/.git"].map(|name| format!("{place}{name}")).into_iter());
        let all = rows.chain(repositories).chain(IN_REPOSITORY.map(str::to_owned));
        all.filter(|name| self.has(name)).collect()
    }

    /// Whether a file has a text that the script has not written: Max Team itself keeps a log under such a name.
    fn is_other(&self, name: &str) -> bool {
        let text = fs::read_to_string(self.root.join(name)).unwrap_or_else(|_| EVIL.to_owned());
        text.trim_end() != EVIL && text.trim_end() != self.npm_settings()
    }

    /// Settings with which npm starts another program in place of git.
    fn npm_settings(&self) -> String {
        format!("git={}", self.evil().display())
    }

    /// Waits until nothing is left of what the script makes, while its program may still run.
    pub fn until_gone(&self) {
        assert!(soon(|| self.has("up")), "the script has not run");
        assert!(soon(|| self.planted().is_empty()), "{:?}", self.planted());
    }

    /// Does what the user does next, in every folder: none of it runs what was planted.
    pub fn use_project(&self) {
        for place in PLACES {
            for name in ["", "new", "bare", "link"] {
                for args in [&["status", "--short"][..], &["diff"], &["rev-parse", "--abbrev-ref", "HEAD"]] {
                    // In a folder that was made for the trap, git may fail.
                    let _ = self.by_user("git", &format!("{place}{name}")).args(args).output();
                }
            }
        }
        // npm reads the settings of the folder that it installs in.
        for place in [PLACES.first(), PLACES.last()].into_iter().flatten() {
            self.install(place);
        }
        assert!(!self.mark.exists(), "what was planted has run");
        self.git(&["status", "--short"]);
    }

    /// Installs packages as the user, where npm is there; the package cannot be had.
    fn install(&self, place: &str) -> Option<Output> {
        let folder = self.root.join(place);
        let home = self.mark.with_file_name("home-of-npm");
        fs::write(folder.join("package.json"), PACKAGE).ok()?;
        let mut npm = self.by_user("npm", place);
        npm.args(["install", "--ignore-scripts", "--offline", "--no-audit", "--no-fund", "--fetch-retries=0"]);
        npm.env("HOME", home).output().ok()
    }

    /// A program that the user starts in a folder of the project.
    fn by_user(&self, program: &str, place: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.root.join(place)).stdin(Stdio::null());
        if !self.root.join(place).is_dir() {
            command.current_dir(&self.root);
        }
        command
    }

    fn evil(&self) -> PathBuf {
        self.root.join("evil.sh")
    }

    /// A script that plants everything at every depth, and makes the file `up` in the end.
    fn script(&self) -> String {
        let evil = self.evil().display().to_string();
        let mut lines = vec!["exec 3>&2 2>/dev/null".to_owned()];
        for place in PLACES {
            for name in names(place) {
                let folder = Path::new(&name).parent().unwrap_or(Path::new("")).display();
                // npm starts the `git` that its settings name.
                let text = if name.ends_with(".npmrc") { self.npm_settings() } else { EVIL.to_owned() };
                lines.push(format!("mkdir -p './{folder}'; [ -e './{name}' ] || echo '{text}' > './{name}'"));
            }
            let config = format!("git -C ./{place}new config core.fsmonitor {evil}");
            lines.push(format!("git init -q ./{place}new; {config}; git add ./{place}new"));
            lines.push(format!("git init -q --bare ./{place}bare"));
            lines.push(format!(
                "printf '[core]\\nbare=false\\nworktree=..\\nfsmonitor={evil}\\n' > ./{place}bare/config"
            ));
            lines.push(format!("mkdir -p ./{place}link; echo 'gitdir: ../bare' > ./{place}link/.git"));
        }
        // The project's own repository: settings, hooks, and a list of what a rebase does next.
        lines.push(format!("git config core.fsmonitor {evil}; cp {evil} .git/hooks/post-checkout"));
        lines.push(format!("mkdir .git/rebase-merge; echo 'exec {evil}' > .git/rebase-merge/git-rebase-todo"));
        lines.push("echo ../a > .git/commondir; rm -rf .git/refs; mv .git elsewhere".to_owned());
        lines.push("touch up; exec 2>&3".to_owned());
        lines.join("\n") + "\n"
    }
}

/// The names of all rows in a folder of the project; those of rows that only count in the project's own folder only there. Rows in
/// folders of dependencies are not looked for, and repositories are planted as such.
fn names(place: &str) -> Vec<String> {
    let rows = PROTECTED.iter().map(|row| row.pattern).filter(|row| *row != ".git" && !row.contains("-packages/"));
    let rows = rows.filter(|row| place.is_empty() || !row.starts_with('/'));
    rows.map(|row| format!("{place}{}", row.trim_start_matches('/').replace('*', "x"))).collect()
}

/// A package whose dependency is fetched with git.
const PACKAGE: &str =
    r#"{ "name": "p", "version": "1.0.0", "dependencies": { "x": "git+file:///no/such/repository" } }"#;

/// The files beneath a folder, by their paths from there.
pub fn tree(folder: &Path) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            } else {
                found.extend(path.strip_prefix(folder).ok().map(|path| path.display().to_string()));
            }
        }
    }
    found
}

/// Waits for something, for a while; whether it came.
pub fn soon(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + PATIENCE;
    while !what() && Instant::now() < until {
        std::thread::yield_now();
    }
    what()
}

/// Starts an ignored test of this test binary in a process of its own. The folder is found there with [`folder_given`].
pub fn start_test(name: &str, folder: &Path) -> Child {
    Command::new(std::env::current_exe().expect("the test binary"))
        .args(["--ignored", "--exact", name, "--nocapture"])
        .args(["--skip", &format!("{FOLDER}{}", folder.display())])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the test binary")
}

/// The folder that [`start_test`] was given; `None` in any other process.
pub fn folder_given() -> Option<PathBuf> {
    std::env::args().find_map(|arg| arg.strip_prefix(FOLDER).map(PathBuf::from))
}

const FOLDER: &str = "folder=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planted_runs_if_nothing_takes_it_away() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        let planting = Planting::new(&root);
        assert_eq!(planting.planted(), Vec::<String>::new());
        let planted = PLACES.map(|place| format!("{place}.npmrc"));
        assert!(planting.by_user("sh", "").arg("plant.sh").status().unwrap().success());
        assert!(planting.has("up") && planted.iter().all(|name| planting.planted().contains(name)));
        // The script has started programs of its own, too.
        let _ = fs::remove_file(&planting.mark);
        // Without npm there is nothing to run it.
        let is_installed = planting.install("a/").is_some();
        assert_eq!(planting.mark().exists(), is_installed);
    }
}
