//! One command, run without a shell: an argv in a folder, bounded in time and memory.
//!
//! The command runs within [`CommandSandbox`], and every process that it starts ends with it: when it ends by itself, at a
//! limit, or when it is cancelled. It has no input, and only the variables that were chosen for it. Nothing here
//! judges whether a command may run.

mod approvals;
mod file_watch;
mod guard;
mod invocation;
mod isolation;
mod moved;
mod output_buffer;
mod path;
mod planted;
pub(crate) mod running;
mod scan;
mod server;
mod sockets;
mod tracked;

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub(crate) use invocation::{Invocation, variables};
pub use isolation::CommandSandbox;
pub(crate) use isolation::{OBEYED, linked};
pub use max_team_core::policy::command_line::{join, quote};
pub use max_team_core::policy::split::{LINE_BYTES_MAX, SplitError, split};
pub(crate) use max_team_sandbox::OutputSource;
pub use max_team_sandbox::child_before_main as child_before_main_by;
pub use max_team_sandbox::{
    EndReason, Engine, LandlockPart, Limit, Limits, Network, Obstacle, SandboxError as CommandError, engine, is_secret,
    probe, supervisor,
};
pub use moved::{MovedFiles, moved_note};
pub(crate) use output_buffer::OutputBuffer;
pub use running::{approve_file, is_planted};

/// If this process was started as the supervisor of a command, acts as one and returns its exit code.
pub fn child() -> Option<u8> {
    max_team_sandbox::child(watch_files)
}

/// Makes the watch of a command's files, in its supervisor.
#[doc(hidden)]
pub fn watch_files(order: &str, approvals: Option<File>) -> Option<Box<dyn max_team_sandbox::FileWatch>> {
    file_watch::watch(order, approvals)
}

/// Makes a test binary its own supervisor.
#[doc(hidden)]
#[macro_export]
macro_rules! child_before_main {
    () => {
        $crate::command::child_before_main_by!($crate::command::watch_files);
    };
}
pub use child_before_main;

/// Bytes of output that are kept of one command.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// A command that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    /// What it exited with, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// What it wrote to either output, in the order it was written; of more than [`OUTPUT_BYTES_MAX`], the beginning
    /// and the end, with the number of bytes in between.
    pub output: String,
    /// How long it ran, in milliseconds.
    pub ms: u64,
    /// Why it is over.
    pub ended: EndReason,
}

impl CommandOutput {
    /// Whether it ended by itself and says that all went well.
    pub fn ok(&self) -> bool {
        self.ended == EndReason::Exited && self.code == Some(0)
    }
}

/// Runs a command to its end in a sandbox; `None` only for programs that we choose ourselves, with arguments of our
/// own. Blocking; `cancel` ends it early.
pub fn run(
    argv: &[String],
    dir: &Path,
    timeout: Duration,
    isolation: Option<&CommandSandbox>,
    cancel: &CancellationToken,
) -> Result<CommandOutput, CommandError> {
    let mut kept = OutputBuffer::new(OUTPUT_BYTES_MAX);
    let over = Invocation::new(argv, dir, timeout, isolation).run(cancel, &mut |_, bytes| {
        kept.push(bytes);
        true
    })?;
    Ok(CommandOutput { code: over.code, signal: over.signal, output: kept.text(), ms: over.ms, ended: over.ended })
}
