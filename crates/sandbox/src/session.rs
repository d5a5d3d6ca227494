//! A session of its own for a command: no terminal, and a fair share of the processor beside its supervisor's.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the command lead a new session.
#[expect(unsafe_code, reason = "the standard library has no safe way to do something between fork and exec")]
pub(crate) fn lead(command: &mut Command) {
    let make = || {
        rustix::process::setsid()?;
        Ok(())
    };
    // SAFETY: one system call, nothing is allocated and no lock is taken, so it may be done in a forked process.
    unsafe {
        command.pre_exec(make);
    }
}
