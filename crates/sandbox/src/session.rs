//! A session of its own for a command: no terminal, and a share of the processor that leaves its supervisor one.

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
