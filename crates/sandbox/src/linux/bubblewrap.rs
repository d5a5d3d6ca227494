//! A command's file tree and namespaces as arguments of bubblewrap, for systems that let bubblewrap make namespaces and
//! not us.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::view::{FileTree, MountKind};
use crate::spec::{Network, Spec};

/// Where the supervisor is, inside.
pub(super) const INSIDE: &str = "/.supervisor";

/// How long a trial may take.
const TRIAL_MAX: Duration = Duration::from_secs(10);
/// Bytes of a failed trial's complaints.
const COMPLAINT_BYTES_MAX: usize = 2_000;

/// Arguments that bubblewrap takes.
pub(super) const ARGUMENTS_MAX: usize = 9_000;

/// Passes the arguments in a file that the started process has to inherit: there may be more than a command line can
/// hold.
pub(super) fn hand(command: &mut Command, arguments: &[OsString]) -> io::Result<File> {
    let mut file = File::from(memfd_create("walls", MemfdFlags::CLOEXEC)?);
    for word in arguments {
        file.write_all(word.as_bytes())?;
        file.write_all(&[0])?;
    }
    file.rewind()?;
    command.arg("--args").arg(file.as_raw_fd().to_string());
    Ok(file)
}

/// Leaves a file open in the started process.
#[expect(unsafe_code, reason = "the standard library has no safe way to hand on one more file")]
pub(super) fn keep(command: &mut Command, file: File) {
    // SAFETY: one system call, nothing is allocated and no lock is taken, so it may be done in a forked process.
    unsafe {
        command.pre_exec(move || Ok(fcntl_setfd(&file, FdFlags::empty())?));
    }
}

/// Runs a trial; what it complains about if it fails. A trial that was killed may leave a process that waits for it without
/// end and holds its standard error: it is ended, and only the trial itself is waited for.
pub(super) fn tried(mut command: Command) -> io::Result<Option<String>> {
    let mut child = command.stderr(Stdio::piped()).process_group(0).spawn()?;
    let group = Pid::from_child(&child);
    let handle = pidfd_open(group, PidfdFlags::empty())?;
    let within = Timespec::try_from(TRIAL_MAX).ok();
    let has_ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], within.as_ref())? > 0;
    // The group is there as long as the trial was not waited for.
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait()?;
    if has_ended && status.success() {
        return Ok(None);
    }
    let mut said = [0; COMPLAINT_BYTES_MAX];
    let mut count = 0;
    if let Some(mut complaints) = child.stderr.take() {
        ioctl_fionbio(&complaints, true)?;
        count = complaints.read(&mut said).unwrap_or_default();
    }
    let said = String::from_utf8_lossy(said.get(..count).unwrap_or_default()).trim().to_owned();
    Ok(Some(if said.is_empty() { status.to_string() } else { said }))
}

/// The arguments, up to the program.
pub(super) fn arguments(spec: &Spec, program: Option<&Path>) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    add(&["--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    // It must not die with its parent: the supervisor inside notices that we are gone, and still has work to do then.
    add(&["--new-session", "--as-pid-1", "--cap-drop", "ALL"]);
    if spec.isolation.as_ref().is_none_or(|isolation| isolation.network != Network::All) {
        add(&["--unshare-net"]);
    }
    let view = FileTree::of(spec);
    for path in view.system {
        add(&["--ro-bind", path, path]);
    }
    add(&["--proc", "/proc", "--dev", "/dev"]);
    for path in view.switches {
        add(&["--ro-bind", path, path]);
    }
    let size = view.size.to_string();
    add(&["--perms", "1777", "--size", &size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]);
    for (path, target) in view.links {
        args.extend([OsString::from("--symlink"), target.into(), path.into()]);
    }
    if let Some(program) = program {
        args.extend([OsString::from("--ro-bind"), program.into(), INSIDE.into()]);
    }
    for (path, put) in view.puts {
        args.extend(words(&path, put, &size));
    }
    args.extend(["--remount-ro", "/", "--chdir", "/"].map(OsString::from));
    args
}

fn words(path: &Path, put: MountKind, size: &str) -> Vec<OsString> {
    let path = path.as_os_str().to_owned();
    let word = OsString::from;
    match put {
        MountKind::Read => vec![word("--ro-bind"), path.clone(), path],
        MountKind::Write => vec![word("--bind"), path.clone(), path],
        MountKind::Fresh => vec![word("--perms"), word("1777"), word("--size"), word(size), word("--tmpfs"), path],
        MountKind::HideFolder => {
            vec![word("--perms"), word("0000"), word("--tmpfs"), path.clone(), word("--remount-ro"), path]
        }
        // Devices cannot be opened on what is put in this way, so this is "permission denied" and not an empty file.
        MountKind::HideFile => vec![word("--ro-bind"), word("/dev/null"), path],
    }
}
