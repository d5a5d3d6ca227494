//! Locks of git after a commit that was killed: none of ours is left in the way, and none of others is touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use max_team_tools::git::{blocking_locks, clear_left_locks};
use max_team_tools::{Registry, Root, ToolContext};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::project::{Project, names};
use super::repository::{commit, git, init};

/// Where the child commits; without it, the child is no test.
const PLACE: &str = "MAX_TEAM_TEST_COMMIT";
/// Files that keep git busy with its index for a while.
const FILES: usize = 1_500;
/// How often a commit is begun until one is met while it holds the lock.
const TRIES_MAX: usize = 20;

/// What is killed: one commit.
#[test]
#[ignore = "run by those below, in a process of its own"]
fn child() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let (cx, registry) = (ToolContext::new(Arc::new(Root::open(PathBuf::from(place)).unwrap())), Registry::builtin());
    let input = json!({ "message": "many", "paths": ["many"] });
    let intent = registry.prepare(&cx, "git_commit", &input).unwrap().action;
    registry.run(&cx, "git_commit", input, &intent, false).unwrap();
}

fn repository() -> Project {
    let project = Project::new();
    init(&project);
    project.write("a", "a\n");
    commit(&project, "begin");
    project
}

fn fill(project: &Project, round: usize) {
    for number in 0..FILES {
        project.write(&format!("many/{number}"), format!("{round} {number}\n"));
    }
}

/// Every process below one.
fn below(pid: u32) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> =
        children.flat_map(|line| line.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect();
    children
        .into_iter()
        .flat_map(|pid| [vec![Pid::from_raw(pid.cast_signed()).unwrap()], below(pid)].concat())
        .collect()
}

/// A repository whose last commit was killed with its supervisor, and has left its lock.
fn killed() -> Project {
    let project = repository();
    let lock = project.inside(".git/index.lock");
    for round in 0..TRIES_MAX {
        fill(&project, round);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "locks::child"])
            .env(PLACE, project.inside(""))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !lock.exists() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        // Stopped first: the supervisor would let git remove its lock.
        let all = below(child.id());
        for pid in &all {
            let _ = kill_process(*pid, Signal::STOP);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for pid in &all {
            let _ = kill_process(*pid, Signal::KILL);
        }
        if lock.exists() && soon(|| all.iter().all(|pid| is_gone(*pid))) && lock.exists() {
            return project;
        }
    }
    panic!("no commit could be killed while it held the lock");
}

fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}

fn soon(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        if what() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

fn locks(project: &Project) -> Vec<String> {
    names(&project.inside(".git")).into_iter().filter(|name| name.ends_with(".lock")).collect()
}

/// A git of somebody else that stays at work in a folder until it is dropped.
struct Other(Child);

impl Other {
    fn in_folder(folder: &Path) -> Self {
        let mut command = Command::new("git");
        let other = command.args(["cat-file", "--batch"]).current_dir(folder).stdin(Stdio::piped()).spawn().unwrap();
        // It bears its parent's name for a moment.
        let name = format!("/proc/{}/comm", other.id());
        assert!(soon(|| fs::read_to_string(&name).is_ok_and(|name| name == "git\n")));
        Self(other)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn locks_of_a_killed_commit_are_removed_by_the_next() {
    let project = killed();
    let told = project.call("git_commit", json!({ "message": "again", "paths": ["many"] })).unwrap();
    assert!(told.contains("committed as"), "{told}");
    assert_eq!(locks(&project), Vec::<String>::new());
    assert!(!project.inside(".git/max-team-commit").exists());
    project.write("a", "the user's\n");
    commit(&project, "the user's");
}

#[test]
fn locks_of_a_killed_commit_are_removed_at_the_next_start_unless_a_git_runs() {
    let project = killed();
    let other = Other::in_folder(&project.inside("many"));
    clear_left_locks(&project.inside(""));
    assert_eq!(locks(&project), ["index.lock"], "it may be that git's");
    assert_eq!(blocking_locks(&project.inside("")), Vec::<PathBuf>::new());
    drop(other);
    assert_eq!(
        blocking_locks(&project.inside("many")),
        [project.inside("").canonicalize().unwrap().join(".git/index.lock")]
    );
    clear_left_locks(&project.inside(""));
    assert_eq!(locks(&project), Vec::<String>::new());
    git(&project, &["add", "--all"]);
}

#[test]
fn a_lock_that_was_there_before_is_not_ours() {
    let project = killed();
    let lock = project.inside(".git/index.lock");
    fs::remove_file(&lock).unwrap();
    let note = project.inside(".git/max-team-commit");
    assert!(note.exists());
    // As a commit notes it that begins while somebody else holds the lock.
    fs::write(&lock, "").unwrap();
    fs::write(&note, "HEAD.lock\nnext-index-2.lock\nbranch").unwrap();
    clear_left_locks(&project.inside(""));
    assert_eq!(locks(&project), ["index.lock"]);
    let told = project.refused("git_commit", json!({ "message": "again", "paths": ["many"] }));
    assert!(told.contains("index.lock` blocks git"), "{told}");
    assert_eq!(locks(&project), ["index.lock"]);
}

#[test]
fn a_commit_that_is_stopped_leaves_no_lock() {
    let project = repository();
    fill(&project, 0);
    let input = json!({ "message": "many", "paths": ["many"] });
    let intent = project.action("git_commit", &input).unwrap();
    let lock = project.inside(".git/index.lock");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| project.run("git_commit", &input, &intent, false));
        while !lock.exists() && !running.is_finished() {
            std::thread::yield_now();
        }
        project.cx.cancel.cancel();
        let _ = running.join().unwrap();
    });
    assert_eq!(locks(&project), Vec::<String>::new());
    assert!(!project.inside(".git/max-team-commit").exists());
    git(&project, &["add", "--all"]);
}
