//! Starts a process inside a control group. The standard library starts it outside, and moving it makes the whole
//! machine stand still for a moment: some 6 ms on an idle one. Started inside, it costs nothing.

use std::ffi::{CString, c_char, c_int};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use rustix::process::{Pid, WaitOptions, waitpid};

use super::cgroup::Cgroup;

/// Says to the system that the new process starts in a group. The library's own constant is cut short on some systems.
const INTO_GROUP: u64 = 0x2_0000_0000;
/// The exit code of a process that could not become the program. Its value does not matter.
const NOT_STARTED: c_int = 127;

/// Everything that the new process needs, made beforehand: it may not allocate, because another thread of ours may have
/// held the allocator's lock when it was made.
struct PreparedExec {
    program: *const c_char,
    argv: Vec<*const c_char>,
    environment: [*const c_char; 1],
    ends: [RawFd; 3],
    kept: Option<RawFd>,
    /// Where it says why it could not become the program.
    failure: RawFd,
}

/// Starts a command with an empty environment, at the root, inside a group. `kept` is one more file that it has open;
/// of the command only its program and its arguments are looked at.
pub(super) fn within(
    group: &Cgroup,
    command: &Command,
    kept: Option<BorrowedFd<'_>>,
    ends: [BorrowedFd<'_>; 3],
) -> io::Result<Pid> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| CString::new(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    let mut argv: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
    argv.push(std::ptr::null());
    let (mut failed, failure) = io::pipe()?;
    let ready = PreparedExec {
        program: argv.first().copied().unwrap_or(std::ptr::null()),
        argv,
        environment: [std::ptr::null()],
        ends: ends.map(|end| end.as_raw_fd()),
        kept: kept.map(|file| file.as_raw_fd()),
        failure: failure.as_raw_fd(),
    };
    let pid = fork_into(group.as_fd(), &ready)?;
    drop((failure, words));
    let mut errno = [0; 4];
    match failed.read_exact(&mut errno) {
        // Closed without a word: it has become the program.
        Err(_) => Ok(pid),
        Ok(()) => {
            let _ = waitpid(Some(pid), WaitOptions::empty());
            Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno)))
        }
    }
}

#[expect(unsafe_code, reason = "no library has a safe way to start a process inside a group")]
fn fork_into(group: BorrowedFd<'_>, ready: &PreparedExec) -> io::Result<Pid> {
    // SAFETY: all zeros are what the system takes for "nothing of this".
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = INTO_GROUP;
    args.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
    args.cgroup = u64::from(group.as_raw_fd().unsigned_abs());
    // SAFETY: without shared memory this is a fork: the new process has a copy of everything and goes its own way
    // below, where it neither allocates nor returns.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<libc::clone_args>()) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: this is the new process, and what was made ready is in its copy of our memory.
        0 => unsafe { become_program(ready) },
        pid => i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("a process without a number")),
    }
}

/// What the new process does: system calls and nothing else.
///
/// # Safety
/// Only for a process that was just forked, with pointers that are good in it.
#[expect(unsafe_code, reason = "between fork and exec there is only the system")]
unsafe fn become_program(ready: &PreparedExec) -> ! {
    // SAFETY: plain system calls on numbers and pointers that were made ready; none of them allocates or takes a lock.
    unsafe {
        let mut is_well = libc::chdir(c"/".as_ptr()) == 0;
        for (number, end) in (0..).zip(ready.ends) {
            is_well = is_well && libc::dup2(end, number) == number;
        }
        if let Some(kept) = ready.kept {
            is_well = is_well && libc::fcntl(kept, libc::F_SETFD, 0) == 0;
        }
        // As the standard library does it: the started program inherits no blocked or ignored signals of ours.
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        if is_well {
            libc::execve(ready.program, ready.argv.as_ptr(), ready.environment.as_ptr());
        }
        let errno = (*libc::__errno_location()).to_ne_bytes();
        libc::write(ready.failure, errno.as_ptr().cast(), errno.len());
        libc::_exit(NOT_STARTED)
    }
}
