//! Supervisors whose process was killed: they end their commands by themselves, within their grace.
//!
//! Each supervisor is started with the process that it works for as its last argument. The first command of a process waits until
//! no supervisor of a dead process is left, so that a command which is run again does not run beside its first run.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{geteuid, getpid};

use crate::protocol::WORD;

/// How long they are waited for: longer than the grace of a command that does not want to end.
const ORPHANS_WAIT: Duration = Duration::from_secs(4);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// This process, as its supervisors name it: its number, and when it began, because numbers are used again.
pub(super) fn owner() -> String {
    static OWNER: OnceLock<String> = OnceLock::new();
    OWNER
        .get_or_init(|| {
            let pid = getpid().as_raw_nonzero().to_string();
            format!("{pid}:{}", began(&pid).unwrap_or_default())
        })
        .clone()
}

/// Waits, once per process, until no supervisor of a dead process is left.
pub(crate) fn wait_for_orphans() {
    static WAITED: OnceLock<()> = OnceLock::new();
    WAITED.get_or_init(wait_until_gone);
}

/// Like `wait_for_orphans`, but on every call.
#[doc(hidden)]
pub fn wait_until_gone() {
    let until = Instant::now() + ORPHANS_WAIT;
    while is_any() && Instant::now() < until {
        thread::park_timeout(LOOK);
    }
}

fn is_any() -> bool {
    let own = geteuid().as_raw();
    let is_ours = |entry: &fs::DirEntry| entry.metadata().is_ok_and(|meta| meta.uid() == own);
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten().filter(is_ours);
    entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok()).any(|line| is_orphan(&line))
}

/// Whether a command line is that of a supervisor whose process has ended.
fn is_orphan(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let mut words = line.trim_end_matches('\0').split('\0').skip(1);
    let owner = words.next().filter(|word| *word == WORD).and_then(|_| words.next());
    let known = owner.and_then(|owner| owner.split_once(':'));
    known.is_some_and(|(pid, since)| began(pid).as_deref() != Some(since))
}

/// When a process began, in ticks since the machine started. Its name, which may hold anything, stands in parentheses
/// before.
fn began(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    // A zombie does nothing any more.
    let is_alive = !matches!(fields.next()?, "Z" | "X");
    is_alive.then(|| fields.nth(18).map(str::to_owned)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_supervisors_of_dead_processes_are_orphans() {
        let line = |owner: &str| format!("/usr/bin/max-team\0{WORD}\0{owner}\0").into_bytes();
        assert!(!is_orphan(&line(&owner())));
        let other = format!("{}:1", getpid().as_raw_nonzero());
        assert!(is_orphan(&line(&other)), "another process had this number");
        assert!(is_orphan(&line("4194999:5")));
        assert!(!is_orphan(b"/usr/bin/max-team\0-p\0__sandbox\0"), "a prompt");
        assert!(!is_orphan(format!("max-team\0{WORD}\0").as_bytes()) && !is_orphan(b""));
    }
}
