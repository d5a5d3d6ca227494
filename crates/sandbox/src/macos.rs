//! What macOS can enforce: seatbelt. It has no subreaper, so a process that leaves its group is out of reach there.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::protocol::Order;
use crate::protocol::WORD;
use crate::seatbelt;
use crate::spec::{Capability, Engine, Isolation, Limit, Obstacle, SandboxError, Spec};
use crate::supervisor::Separated;

const SEATBELT: &str = "/usr/bin/sandbox-exec";

static CAPABILITY: Capability = Capability {
    namespaces: LazyLock::new(|| Err("this is not Linux".to_owned())),
    bubblewrap: LazyLock::new(|| Err(Obstacle::Other("this is not Linux".to_owned()))),
    landlock: LazyLock::new(|| Err(Obstacle::Other("this is not Linux".to_owned()))),
    seatbelt: LazyLock::new(|| {
        Path::new(SEATBELT).is_file().then_some(()).ok_or_else(|| format!("`{SEATBELT}` is not there"))
    }),
    group: LazyLock::new(|| Err(Obstacle::Other("macOS has no control groups".to_owned()))),
};

/// What this machine can enforce.
pub fn probe() -> &'static Capability {
    &CAPABILITY
}

/// There is only one mechanism here.
#[doc(hidden)]
pub fn prefer(_: Option<&OsStr>) {}

/// The mechanism that works here, or why none does.
pub fn engine() -> Result<Engine, String> {
    CAPABILITY.seatbelt.clone().map(|()| Engine::Seatbelt)
}

/// Nothing to do: the system shuts the supervisor in before it starts.
pub(crate) fn separate(_: &Order) -> Result<Separated, String> {
    Ok(Separated::Inside(None))
}

/// The system refuses every connection by itself.
pub(crate) fn has_bypassed(_: &Order) -> bool {
    false
}

/// Chooses the mechanism for this sandbox.
pub(crate) fn choose(isolation: Option<&Isolation>) -> Result<Engine, SandboxError> {
    let Some(isolation) = isolation else { return Ok(Engine::Bare) };
    let none = |why: String| SandboxError::NoSandbox {
        why,
        advice: "turn the sandbox off with `project.sandbox: false` in your own settings".to_owned(),
    };
    engine().map_err(none)
}

/// macOS has no control groups.
#[derive(Debug)]
pub(crate) struct Cgroup;

impl Cgroup {
    pub(crate) fn passed(&self) -> Option<Limit> {
        None
    }
}

/// Starts the process that builds the sandbox and becomes the supervisor inside, with its standard input and outputs.
pub(crate) fn start(
    spec: &Spec,
    engine: Engine,
    program: &Path,
    [input, output, errors]: [OwnedFd; 3],
) -> Result<(Pid, Option<Cgroup>), SandboxError> {
    let mut command = match (engine, &spec.isolation) {
        (Engine::Seatbelt, Some(isolation)) => {
            let mut command = Command::new(SEATBELT);
            command.arg("-p").arg(seatbelt::profile(isolation, program)).arg(program);
            command
        }
        _ => Command::new(program),
    };
    command.arg(WORD).env_clear().current_dir("/").stdin(input).stdout(output).stderr(errors);
    let child = command.spawn().map_err(|error| SandboxError::unstarted(spec, error))?;
    Ok((Pid::from_child(&child), None))
}

/// Nothing to do: the system restricts the process before it starts.
pub(crate) fn enter(_: &Spec) -> Result<(), String> {
    Ok(())
}

/// Nothing to do: the process is restricted already.
pub(crate) fn shut_in(_: &Spec, _: Engine) -> Result<(), String> {
    Ok(())
}

/// Nothing to do: macOS cannot make this process the parent of orphans.
pub(crate) fn own() -> std::io::Result<()> {
    Ok(())
}

/// Nothing to do: to tell what a process was started for, a system program would have to examine each of them.
pub(crate) fn wait_for_orphans() {}

/// The same, for tests.
#[doc(hidden)]
pub fn wait_until_gone() {}

/// Priorities are left to the system here.
pub(crate) fn put_first(_: Pid) {}

/// What a process tree uses: unknown here, because macOS has no documented way to ask.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResourceUse {
    pub(crate) processes: u64,
    pub(crate) memory: u64,
    pub(crate) ticks: u64,
}

/// The number of processes is unknown, too.
pub(crate) fn census(_: u64) -> u64 {
    0
}

pub(crate) fn processes(_: Pid, _: u64) -> u64 {
    0
}

pub(crate) fn usage(_: u64) -> ResourceUse {
    ResourceUse::default()
}

pub(crate) fn ticks_of(time: Duration) -> u64 {
    time.as_secs()
}

/// Sends a signal to the command's group.
pub(crate) fn kill_all(leader: Option<Pid>, signal: Signal) {
    if let Some(leader) = leader {
        let _ = kill_process_group(leader, signal);
    }
}

/// Nothing to do: a process cannot give up rights here without a profile of its own.
pub fn renounce() -> std::io::Result<()> {
    Ok(())
}

/// Nothing to do: the system takes unused code out of memory itself.
pub fn release_code() {}
