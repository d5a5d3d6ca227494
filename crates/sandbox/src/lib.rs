//! Runs one command, or several joined ones, in a sandbox.
//!
//! A [`Spec`] says what is run and what it can reach; [`run`] runs it to its end. Every command has a small
//! supervisor, this very program started again (`supervisor`): it ends the whole tree of processes when the command is
//! over, at its limits, when it is told to, or when we die. On Linux the supervisor makes namespaces; where the system
//! denies us those, bubblewrap does; else there is Landlock; all with seccomp. On macOS it is seatbelt. Nothing here
//! judges whether a command may run.

mod detach;
mod environment;
mod home;
mod pipeline;
mod protocol;
mod proxy;
mod public_addr;
mod run;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
mod spec;
mod supervisor;
mod watch;

#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "macos.rs"]
mod system;

pub use detach::close_inherited;
pub use environment::{allowed, is_secret};
pub use home::{secrets, tools};
pub use pipeline::{Operator, PipelineStep, Redirect, RedirectTarget};
pub use proxy::{PlainRequest, ProxyRequest, RequestBody};
pub use public_addr::is_public;
pub use run::{OutputSource, run, run_by, supervisor};
pub use spec::{
    Activity, Capability, CommandOutcome, EndMark, EndReason, Engine, Isolation, LandlockPart, Limit, Limits,
    NameSockets, Network, NetworkDoor, Obstacle, ProxyServer, SandboxError, Spec, StdinPipe,
};
pub use supervisor::{child, set_aside};
pub use system::{engine, prefer, probe, release_code, renounce, wait_until_gone};
pub use watch::{AppearedListener, AppearedPath, FileWatch, WatchMaker, WatchOrder, run_helper};

/// The variable that names the one mechanism to use, for tests.
#[doc(hidden)]
pub const ENGINE: &str = "MAX_TEAM_SANDBOX";

/// Makes a test binary its own supervisor: it looks at its arguments before the test harness does.
#[doc(hidden)]
#[macro_export]
macro_rules! child_before_main {
    ($maker:expr) => {
        #[used]
        #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
        #[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
        #[expect(unsafe_code, reason = "a function that is run before `main` has to say so to the linker")]
        static CHILD: extern "C" fn() = {
            extern "C" fn start() {
                $crate::prefer(std::env::var_os($crate::ENGINE).as_deref());
                if let Some(code) = $crate::child($maker) {
                    #[expect(clippy::disallowed_methods, reason = "there is no `main` to return from yet")]
                    std::process::exit(code.into());
                }
            }
            start
        };
    };
}
