//! A session of its own for a command: no terminal, nothing open that its starter had open, and a share of the
//! processor that leaves its supervisor one.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the command lead a new session, as nice as it is told: its supervisor may be in a hurry.
#[expect(unsafe_code, reason = "the standard library has no safe way to do something between fork and exec")]
pub(crate) fn lead(command: &mut Command, nice: i32) {
    let make = move || {
        rustix::process::setsid()?;
        rustix::process::setpriority_process(None, nice)?;
        Ok(())
    };
    // SAFETY: two system calls, nothing is allocated and no lock is taken, so it may be done in a forked process.
    unsafe {
        command.pre_exec(make);
    }
}

/// Closes whatever this process was started with besides the three that everybody has: a folder that a shell left open
/// would lead a command out of its walls. To be called before anything else is opened.
#[expect(unsafe_code, reason = "descriptors that nobody here owns have no safe name")]
pub fn close_inherited() {
    #[cfg(target_os = "linux")]
    // SAFETY: nothing in this process owns a descriptor above the first three yet.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32);
    }
    #[cfg(not(target_os = "linux"))]
    for descriptor in 3..1_024 {
        // SAFETY: as above.
        unsafe {
            libc::close(descriptor);
        }
    }
}
