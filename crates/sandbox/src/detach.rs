//! A session of its own for a command: no terminal, nothing open that its starter had open, and a share of the
//! processor that leaves its supervisor one. And forking, which only a process with one thread may do here.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, WaitOptions, waitpid};

/// The highest descriptor that is closed where the system cannot close a whole range.
#[cfg(not(target_os = "linux"))]
const DESCRIPTORS_MAX: u32 = 1_023;

/// Makes the command lead a new session with this niceness: its supervisor may have a higher priority.
#[expect(unsafe_code, reason = "the standard library has no safe way to do something between fork and exec")]
pub(crate) fn lead(command: &mut Command, nice: i32) {
    // SAFETY: two system calls, nothing is allocated and no lock is taken, so it may be done in a forked process.
    unsafe {
        command.pre_exec(move || begin(nice));
    }
}

/// Like `lead`, for this process.
pub(crate) fn begin(nice: i32) -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(rustix::process::setpriority_process(None, nice)?)
}

/// Closes all descriptors that this process has inherited, except the standard three: a folder that a shell left open
/// would lead a command out of its sandbox. Must be called before anything else is opened.
pub fn close_inherited() {
    close_range(3, u32::MAX);
}

/// Forks; `None` in the child, which may go on as it likes, because this process must have one thread.
#[expect(unsafe_code, reason = "the standard library has no fork")]
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: with one thread, no lock can be held by a thread that the child lacks.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Closes everything, waits until a child is over, does what is left to do, and ends.
pub(crate) fn stand_by(child: Pid, last: impl FnOnce()) -> ! {
    close_range(0, u32::MAX);
    let _ = rustix::io::retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
    last();
    leave(0)
}

/// Closes everything in a forked process that its parent had open, but for the outputs and one file.
pub(crate) fn close_others(kept: &impl AsRawFd) {
    let kept = kept.as_raw_fd().unsigned_abs();
    close_range(3, kept.saturating_sub(1));
    close_range(kept.saturating_add(1), u32::MAX);
}

/// Ends this process at once, without cleaning up what its parent still needs.
#[expect(unsafe_code, reason = "the standard library only has an end that puts things away")]
pub(crate) fn leave(code: u8) -> ! {
    // SAFETY: it takes a number and does not return.
    unsafe { libc::_exit(code.into()) }
}

#[expect(unsafe_code, reason = "descriptors that have no owner have no safe name")]
fn close_range(first: u32, last: u32) {
    if first > last {
        return;
    }
    #[cfg(target_os = "linux")]
    // SAFETY: the closed descriptor is not used again.
    unsafe {
        libc::syscall(libc::SYS_close_range, first, last, 0_u32);
    }
    #[cfg(not(target_os = "linux"))]
    for descriptor in first..=last.min(DESCRIPTORS_MAX) {
        // SAFETY: as above.
        unsafe {
            libc::close(descriptor.cast_signed());
        }
    }
}
