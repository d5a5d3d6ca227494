//! The tree of processes below this one: what it uses, and how it is ended.
//!
//! This process is the first of its namespace, or the subreaper of its orphans; either way, every process that was
//! started here is below it, however often it forked and even in a session of its own.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{
    DumpableBehavior, Pid, Signal, getpgrp, getpid, kill_process, kill_process_group, set_child_subreaper,
    set_dumpable_behavior, setsid,
};

/// The highest priority, for the session of a supervisor.
const FIRST: &str = "-20";
/// Processes that are examined in one go.
const PIDS_MAX: u64 = 1 << 16;

/// What a tree uses.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResourceUse {
    /// Processes and threads.
    pub(crate) processes: u64,
    /// Bytes of memory that it shares with no other process.
    pub(crate) memory: u64,
    /// Clock ticks of processor time.
    pub(crate) ticks: u64,
}

struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
    threads: u64,
    ticks: u64,
}

/// Makes this process the parent of orphans, and keeps the processes below from looking into it.
pub(crate) fn own() -> std::io::Result<()> {
    // The system first shares the processor among sessions: in a session of its own, this process does not wait behind
    // the work of others. Either call may fail: it may lead a session already, or may not raise its priority.
    let _ = setsid();
    let _ = fs::write("/proc/self/autogroup", FIRST);
    set_child_subreaper(Some(getpid()))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Raises a supervisor that may not do so itself, from outside: the first process in the sandbox that `builder` built.
pub(crate) fn put_first(builder: Pid) {
    let builder = builder.as_raw_nonzero();
    let Ok(children) = fs::read_to_string(format!("/proc/{builder}/task/{builder}/children")) else { return };
    for pid in children.split_whitespace() {
        // Only root may.
        let _ = fs::write(format!("/proc/{pid}/autogroup"), FIRST);
    }
}

/// How many processes this one sees, counted up to `most`. It examines none of them, so it can be called often.
pub(crate) fn census(most: u64) -> u64 {
    pids(most).count() as u64
}

/// Processes and threads of a command, counted up to `most`; of those that left its session, see [`usage`].
pub(crate) fn processes(leader: Pid, most: u64) -> u64 {
    if getpid() == Pid::INIT {
        return census(most);
    }
    let session = leader.as_raw_nonzero().get();
    let mut count = 0;
    for process in pids(PIDS_MAX).filter_map(process).filter(|process| process.session == session) {
        count += process.threads;
        if count >= most {
            break;
        }
    }
    count
}

/// All processes and threads that this process sees.
pub(crate) fn threads() -> u64 {
    pids(PIDS_MAX).filter_map(process).map(|process| process.threads).sum()
}

/// What the tree uses now, among the first `most` processes that this one sees.
pub(crate) fn usage(most: u64) -> ResourceUse {
    let page = page_size() as u64;
    below(most).iter().fold(ResourceUse::default(), |sum, process| ResourceUse {
        processes: sum.processes + process.threads,
        memory: sum.memory + memory(process.pid, page),
        ticks: sum.ticks + process.ticks,
    })
}

/// Processor time as it is counted here.
pub(crate) fn ticks_of(time: std::time::Duration) -> u64 {
    time.as_secs().saturating_mul(clock_ticks_per_second())
}

/// Sends a signal to all processes of the tree, and leaves them no time to multiply. The group of a leader that is
/// still there is signalled first, which needs no list of processes; and only once, or the second signal would end a
/// program that the leader started in order to clean up.
pub(crate) fn kill_all(leader: Option<Pid>, signal: Signal) {
    if getpid() == Pid::INIT {
        // All processes in this namespace, at once, except this one.
        let _ = kill_process_group(Pid::INIT, signal);
        return;
    }
    if let Some(leader) = leader {
        let _ = kill_process_group(leader, signal);
    }
    let tree = below(PIDS_MAX);
    let own = getpgrp().as_raw_nonzero().get();
    let signalled = [own, leader.map_or(own, |leader| leader.as_raw_nonzero().get())];
    let groups: BTreeSet<i32> = tree.iter().map(|process| process.group).filter(|id| !signalled.contains(id)).collect();
    for group in groups.into_iter().filter(|group| *group > 1).filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
    for pid in tree.iter().filter(|process| process.group == own).filter_map(|process| Pid::from_raw(process.pid)) {
        let _ = kill_process(pid, signal);
    }
}

/// The ids of the first processes, bounded: new processes come last in the list, so reading to its end during a fork
/// bomb would take for ever.
fn pids(most: u64) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.take(usize::try_from(most).unwrap_or(usize::MAX))
}

/// All processes below this one, among the first so many.
fn below(most: u64) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in pids(most).filter_map(process) {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut next = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = next.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            if seen.insert(process.pid) {
                next.push(process.pid);
                found.push(process);
            }
        }
    }
    found
}

fn process(pid: i32) -> Option<Process> {
    read(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// A line of `/proc/<pid>/stat`. The name in it is in parentheses and may have any in it; the rest are numbers.
fn read(pid: i32, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    // A zombie has no threads, but counts until it is reaped.
    let threads = number(17)?.max(1);
    let id = |at: usize| fields.get(at)?.parse().ok();
    let (parent, group, session) = (id(1)?, id(2)?, id(3)?);
    Some(Process { pid, parent, group, session, threads, ticks: number(11)? + number(12)? + number(13)? + number(14)? })
}

/// Bytes that only this process has: the system can take pages that are mapped from files back at any time.
fn memory(pid: i32, page: u64) -> u64 {
    let Ok(statm) = fs::read_to_string(format!("/proc/{pid}/statm")) else { return 0 };
    let mut fields = statm.split_whitespace().skip(1).map_while(|field| field.parse::<u64>().ok());
    let (Some(resident), Some(shared)) = (fields.next(), fields.next()) else { return 0 };
    resident.saturating_sub(shared) * page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_only_a_name() {
        let line = "12 (a) R 99 (b) S 7 5 1 0 -1 4194304 1 2 3 4 100 50 20 10 20 0 3 0 12345 1 2";
        let process = read(12, line).unwrap();
        assert_eq!((process.session, process.parent, process.group, process.threads, process.ticks), (1, 7, 5, 3, 180));
        assert!(read(1, "no such thing").is_none());
    }
}
