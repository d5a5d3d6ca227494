//! A control group for one command: the system's own cap on its processes and its memory, where we may make one.
//!
//! The supervisor checks every few milliseconds, and much can happen in between; the system counts at the moment of
//! each allocation. Only version two is used, and only where a folder that we may write hands both caps down. The
//! process that made a group holds a lock on its folder, so that a group that a killed run left is recognised by its
//! free lock.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, FlockOperation, access, flock};

use crate::spec::{Limit, Limits, Obstacle};
use crate::supervisor::PROCESSES_SLACK;

/// Where the second version is mounted: alone, or beside the first.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// What every group of ours is called, before its numbers.
const PREFIX: &str = "max-team-";
/// Folders that are looked at, from our own group up.
const DEPTH_MAX: usize = 32;

/// The folder that groups are made in, or why there is none. Found out once.
pub(crate) fn place() -> &'static Result<PathBuf, Obstacle> {
    static PLACE: OnceLock<Result<PathBuf, Obstacle>> = OnceLock::new();
    PLACE.get_or_init(|| {
        let mount = MOUNTS.iter().map(Path::new).find(|path| path.join("cgroup.controllers").is_file());
        let mount = mount.ok_or_else(|| other("control groups (version 2) are not mounted"))?;
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let own = own.ok_or_else(|| other("this process is in no control group"))?;
        above(mount, &mount.join(own))
    })
}

/// Caps that may be set for us; without a cap, the first word of the file is `max`.
const CAPS: [&str; 5] = ["memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max"];

/// The nearest folder that hands both caps down. The search stops at a cap that we run under: a group above would
/// escape it.
fn above(mount: &Path, own: &Path) -> Result<PathBuf, Obstacle> {
    for folder in own.ancestors().take(DEPTH_MAX).take_while(|folder| folder.starts_with(mount)) {
        let handed = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
        if ["memory", "pids"].iter().all(|cap| handed.split_whitespace().any(|word| word == *cap)) {
            let may =
                access(folder, Access::WRITE_OK).and_then(|()| access(folder.join("cgroup.procs"), Access::WRITE_OK));
            return match may {
                Ok(()) => Ok(folder.to_owned()),
                Err(_) => Err(Obstacle::Other(format!("`{}` may not be written", folder.display()))),
            };
        }
        let is_set = |cap: &&&str| {
            let most = fs::read_to_string(folder.join(**cap));
            most.is_ok_and(|most| most.split_whitespace().next().is_some_and(|most| most != "max"))
        };
        if let Some(cap) = CAPS.iter().find(is_set) {
            let why = format!("`{}` has a cap of its own (`{cap}`) and hands none down", folder.display());
            return Err(Obstacle::Other(why));
        }
    }
    Err(Obstacle::NoControlGroup(own.to_owned()))
}

fn other(why: &str) -> Obstacle {
    Obstacle::Other(why.to_owned())
}

/// One group, for as long as it is held.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    /// Its folder, locked.
    folder: File,
}

impl Cgroup {
    /// A group with a command's caps, where one can be made. Also removes groups that killed runs have left.
    pub(crate) fn of(limits: &Limits) -> Option<Self> {
        let place = place().as_ref().ok()?;
        sweep(place);
        let caps = [("pids.max", limits.processes.saturating_add(PROCESSES_SLACK)), ("memory.max", limits.memory)];
        let group = Self::below(place).ok()?;
        for (name, most) in caps {
            fs::write(group.path.join(name), most.to_string()).ok()?;
        }
        // The file does not exist on systems without swap.
        let _ = fs::write(group.path.join("memory.swap.max"), "0");
        Some(group)
    }

    fn below(place: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        let folder = File::open(&path)?;
        flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, folder })
    }

    /// The cap that was exceeded, by the system's own count.
    pub(crate) fn passed(&self) -> Option<Limit> {
        let count = |file: &str, name: &str| {
            let events = fs::read_to_string(self.path.join(file)).unwrap_or_default();
            let line = events.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
            line.unwrap_or(0)
        };
        if count("memory.events", "oom_kill ") > 0 {
            Some(Limit::Memory)
        } else if count("pids.events", "max ") > 0 {
            Some(Limit::Processes)
        } else {
            None
        }
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

impl Drop for Cgroup {
    /// A group that cannot be removed yet, because a process in it is still ending, is removed by a later sweep.
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Kills the processes of a group, and removes the group.
fn remove(path: &Path) {
    let _ = fs::write(path.join("cgroup.kill"), "1");
    let _ = fs::remove_dir(path);
}

/// Removes our groups that no process has locked.
fn sweep(place: &Path) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)));
    for path in ours.map(|entry| entry.path()) {
        let Ok(folder) = File::open(&path) else { continue };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    /// A hierarchy like the system's own, as files: enough for what is only read.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn groups_are_made_where_caps_are_handed_down_and_never_past_a_cap() {
        let dir = tree(&[
            ("cgroup.subtree_control", "cpuset cpu io memory pids\n"),
            ("cgroup.procs", ""),
            ("app/cgroup.subtree_control", "memory pids\n"),
            ("app/cgroup.procs", ""),
            ("app/shell/cgroup.subtree_control", ""),
            ("app/shell/memory.max", "max\n"),
            ("app/shell/memory.swap.max", "max\n"),
            ("app/shell/pids.max", "max\n"),
            ("app/shell/cpu.max", "max 100000\n"),
            ("app/capped/memory.max", "1073741824\n"),
            ("app/soft/memory.high", "1073741824\n"),
            ("app/still/memory.swap.max", "0\n"),
            ("app/few/pids.max", "64\n"),
            ("app/slow/cpu.max", "50000 100000\n"),
            ("half/cgroup.subtree_control", "memory\n"),
        ]);
        let root = dir.path();
        assert_eq!(above(root, &root.join("app/shell")), Ok(root.join("app")));
        assert_eq!(above(root, &root.join("half")), Ok(root.to_owned()));
        for capped in ["capped", "soft", "still", "few", "slow"] {
            let told = above(root, &root.join("app").join(capped));
            assert!(
                told.as_ref().is_err_and(|why| why.to_string().contains("has a cap of its own")),
                "{capped}: {told:?}"
            );
        }
        let bare = tree(&[("a/cgroup.subtree_control", "")]);
        assert!(
            above(bare.path(), &bare.path().join("a")).unwrap_err().to_string().contains("control groups cannot limit")
        );
    }

    /// A folder for groups, if this machine lets us have one at all: they need no caps to be made and ended.
    fn mount() -> Option<PathBuf> {
        let mount = MOUNTS.iter().map(PathBuf::from).find(|path| path.join("cgroup.controllers").is_file())?;
        access(&mount, Access::WRITE_OK).ok().map(|()| mount)
    }

    #[test]
    fn a_cgroup_ends_its_processes_and_a_stale_one_is_removed() {
        let Some(mount) = mount() else {
            eprintln!("SKIPPED: no control group can be made here");
            return;
        };
        let place = mount.join(format!("test-of-max-team-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        let held = Cgroup::below(&place).unwrap();
        let left = Cgroup::below(&place).unwrap();
        let path = left.path.clone();
        let mut sleeper = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        fs::write(path.join("cgroup.procs"), sleeper.id().to_string()).unwrap();
        sweep(&place);
        assert!(path.is_dir() && sleeper.try_wait().unwrap().is_none(), "what is held is not swept");

        // As if its owner had been killed: the lock is gone, the folder and the process are not.
        flock(&left.folder, FlockOperation::Unlock).unwrap();
        sweep(&place);
        assert_eq!(sleeper.wait().unwrap().signal(), Some(9));
        sweep(&place);
        assert!(!path.exists() && held.path.is_dir());
        drop(left);
        drop(held);
        fs::remove_dir(&place).unwrap();
    }

    #[test]
    fn a_process_started_in_a_cgroup_is_in_it_from_the_start() {
        let Some(mount) = mount() else {
            eprintln!("SKIPPED: no control group can be made here");
            return;
        };
        let place = mount.join(format!("test-of-max-team-start-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        let group = Cgroup::below(&place).unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "cat /proc/self/cgroup; pwd; exit 3"]).env_clear();
        let (reader, writer) = io::pipe().unwrap();
        let null = File::open("/dev/null").unwrap();
        let pid = super::super::spawn::within(&group, &command, None, [null.as_fd(), writer.as_fd(), writer.as_fd()]);
        let pid = pid.unwrap();
        drop(writer);
        let said = io::read_to_string(reader).unwrap();
        let status = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).unwrap().unwrap().1;
        assert_eq!(status.exit_status(), Some(3), "{said}");
        let name = group.path.file_name().unwrap().to_str().unwrap();
        assert!(said.lines().any(|line| line.starts_with("0::/") && line.ends_with(name)), "{said}");
        assert!(said.contains("\n/\n"), "{said}");
        let missing = Command::new("/no/such/program");
        let error = super::super::spawn::within(&group, &missing, None, [null.as_fd(), null.as_fd(), null.as_fd()]);
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::NotFound);
        drop(group);
        fs::remove_dir(&place).unwrap();
    }
}
