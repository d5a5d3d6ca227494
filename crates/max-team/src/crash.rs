//! Crashes of this program: the message has no secrets, and no memory image is written, because memory holds keys.

use std::io::Write;
use std::panic::{PanicHookInfo, set_hook};
use std::thread;

use max_team_core::secret::redact;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Prepares the process for a crash. Child processes are not affected, except that they write no memory image either
/// unless they ask for one.
pub(crate) fn contain() {
    let maximum = getrlimit(Resource::Core).maximum;
    // Where the limit cannot be set there is nothing else to try.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
    // The limit does not hold where images go to a program (`|` in `core_pattern`); this does. A program that we start
    // begins without it, so the supervisor of commands can still make namespaces.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    set_hook(Box::new(tell));
}

fn tell(panic: &PanicHookInfo<'_>) {
    let trace = std::backtrace::Backtrace::capture();
    let name = thread::current().name().unwrap_or("unnamed").to_owned();
    let words = format!("thread `{name}` {panic}\n{trace}\n");
    // A failure cannot be reported here.
    drop(std::io::stderr().write_all(redact(&words).as_bytes()));
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Output};

    use super::*;

    /// How this process is told to crash.
    const HOW: &str = "MAX_TEAM_TEST_CRASH";

    /// Crashes, if it is told to; alone it does nothing.
    #[test]
    fn crash_when_told() {
        let Some(how) = std::env::var_os(HOW) else { return };
        let maximum = getrlimit(Resource::Core).maximum;
        setrlimit(Resource::Core, Rlimit { current: maximum, maximum }).unwrap();
        contain();
        match how.to_str() {
            Some("abort") => std::process::abort(),
            _ => panic!("the key is sk-ant-0123456789abcdef0123"),
        }
    }

    fn crash(how: &str) -> Output {
        let folder = tempfile::tempdir().unwrap();
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::tests::crash_when_told", "--nocapture"])
            .env(HOW, how)
            .current_dir(&folder)
            .output()
            .unwrap()
    }

    #[test]
    fn a_crash_leaves_no_image_and_no_key() {
        let aborted = crash("abort");
        assert!(aborted.status.signal().is_some() && !aborted.status.core_dumped(), "{aborted:?}");
        let told = String::from_utf8(crash("panic").stderr).unwrap();
        assert!(told.contains("the key is [redacted]") && !told.contains("0123456789abcdef"), "{told}");
    }
}
