//! Killed at the n-th system call of one kind of one thread for every n, and at instants that follow a seed.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Proof;
use crate::place::{Outcome, Place, Ran};

/// What the program writes, syncs and sends with; each is swept by itself, the one that is made most often last.
const CALLS: [&str; 12] = [
    "fsync",
    "fdatasync",
    "write",
    "writev",
    "sendto",
    "recvfrom",
    "openat2",
    "rename",
    "unlink",
    "ftruncate",
    "mkdir",
    "pwrite64",
];
/// Kills of one kind in the short form.
const SHORT_MAX: usize = 2;
/// Random instants.
const INSTANTS: (usize, usize) = (500, 6);
/// A request comes, and so much later at most the program is killed.
const DELAY_US_MAX: u64 = 4_000;
/// Processes that are killed before one may end.
const KILLS_MAX: usize = 3;
/// How long nothing may happen.
const SILENCE_MAX: Duration = Duration::from_secs(60);

pub(crate) fn sweep(proof: &mut Proof) {
    let began = Instant::now();
    if let Err(why) = traced() {
        return proof.skip("killed at system calls", &why);
    }
    let calm = match Place::new(&proof.bin, false).end(None, 0) {
        Ok(calm) => calm,
        Err(why) => return proof.row("undisturbed", began, Err(why)),
    };
    for call in CALLS {
        let began = Instant::now();
        let result = each(proof, call, &calm);
        let some = if proof.short { "some" } else { "every" };
        proof.row(&format!("killed at {some} {call}"), began, result);
    }
}

/// Whether a process may be traced here.
pub(crate) fn traced() -> Result<(), String> {
    let ran = Command::new("strace").args(["-f", "-o", "/dev/null", "-e", "trace=none", "true"]).output();
    match ran {
        Ok(ran) if ran.status.success() => Ok(()),
        Ok(ran) => Err(format!("strace may not trace here: {}", String::from_utf8_lossy(&ran.stderr).trim())),
        Err(error) => Err(format!("there is no strace: {error}")),
    }
}

/// Every n until a run survives; in the short form a few, spread over as many as the calm run makes.
fn each(proof: &Proof, call: &str, calm: &Outcome) -> Result<String, String> {
    let step = if proof.short { (count(proof, call)? / SHORT_MAX).max(1) } else { 1 };
    let (next, survived, kills) = (AtomicUsize::new(1), AtomicBool::new(false), AtomicUsize::new(0));
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !survived.load(Ordering::Relaxed) {
                    let n = next.fetch_add(step, Ordering::Relaxed);
                    match one(proof, call, n, calm) {
                        Ok(true) => drop(kills.fetch_add(1, Ordering::Relaxed)),
                        Ok(false) => survived.store(true, Ordering::Relaxed),
                        Err(why) => {
                            survived.store(true, Ordering::Relaxed);
                            failed.lock().unwrap().get_or_insert(format!("{call} {n}: {why}"));
                        }
                    }
                }
            });
        }
    });
    match failed.into_inner().unwrap() {
        Some(why) => Err(why),
        None => Ok(match kills.into_inner() {
            0 => "no such call is made".into(),
            kills => format!("{kills} kills, each came to the same end"),
        }),
    }
}

/// How many calls of a kind one thread makes when nobody kills it.
fn count(proof: &Proof, call: &str) -> Result<usize, String> {
    let place = Place::new(&proof.bin, false);
    let log = place.folder.path().join("calls");
    let (log_name, trace) = (log.display().to_string(), format!("trace={call}"));
    place.run(&["strace", "-f", "-o", &log_name, "-e", &trace]);
    let text = std::fs::read_to_string(log).map_err(|error| error.to_string())?;
    let mut threads = std::collections::BTreeMap::new();
    for line in text.lines().filter(|line| line.contains(call)) {
        *threads.entry(line.split(' ').next()).or_insert(0) += 1;
    }
    Ok(threads.into_values().max().unwrap_or(0))
}

/// Whether the n-th call of the kind in any one thread killed; the next process may be killed at the same one.
fn one(proof: &Proof, call: &str, n: usize, calm: &Outcome) -> Result<bool, String> {
    let place = Place::new(&proof.bin, false);
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:signal=SIGKILL:when={n}"));
    let prefix = ["strace", "-f", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    if !is_killed(&place.run(&prefix))? {
        return place.judge(Some(calm), Some(0)).map(|_| false);
    }
    let mut kills = 1;
    if n.is_multiple_of(2) {
        if !is_killed(&place.run(&prefix))? {
            return place.judge(Some(calm), Some(kills)).map(|_| true);
        }
        kills += 1;
    }
    place.end(Some(calm), kills).map(|_| true)
}

/// Whether it was killed; it has ended well otherwise, for nothing else was wrong.
fn is_killed(ran: &Ran) -> Result<bool, String> {
    match ran.code {
        None => Ok(true),
        Some(0) => Ok(false),
        Some(code) => Err(format!("it ended with {code}: {ran:?}")),
    }
}

pub(crate) fn random(proof: &mut Proof) {
    let began = Instant::now();
    let calm = match Place::new(&proof.bin, true).end(None, 0) {
        Ok(calm) => calm,
        Err(why) => return proof.row("undisturbed", began, Err(why)),
    };
    let wanted = if proof.short { INSTANTS.1 } else { INSTANTS.0 };
    let (next, kills, failed) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(None));
    let shared = &*proof;
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while kills.load(Ordering::Relaxed) < wanted && failed.lock().unwrap().is_none() {
                    let at = next.fetch_add(1, Ordering::Relaxed) as u64;
                    match instants(shared, shared.seed.wrapping_add(at), &calm) {
                        Ok(times) => drop(kills.fetch_add(times, Ordering::Relaxed)),
                        Err(why) => drop(failed.lock().unwrap().insert(format!("seed {}: {why}", shared.seed + at))),
                    }
                }
            });
        }
    });
    let result = match failed.into_inner().unwrap() {
        Some(why) => Err(why),
        None => Ok(format!("{} kills, each came to the same end; seed {}", kills.into_inner(), proof.seed)),
    };
    proof.row("killed at random instants", began, result);
}

/// One story, killed a few times; how often.
fn instants(proof: &Proof, seed: u64, calm: &Outcome) -> Result<usize, String> {
    let place = Place::new(&proof.bin, true);
    let (mut random, mut kills) = (Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1), 0);
    while kills < KILLS_MAX {
        let due = place.server.count() + usize::try_from(random.below(10)).unwrap_or_default();
        let delay = Duration::from_micros(random.below(DELAY_US_MAX));
        let mut child = place.start(&[]);
        let began = Instant::now();
        let ended = loop {
            if child.try_wait().map_err(|error| error.to_string())?.is_some() {
                break true;
            }
            if began.elapsed() > SILENCE_MAX {
                return Err("it does not come to an end".into());
            }
            if place.server.count() >= due {
                std::thread::park_timeout(delay);
                child.kill().map_err(|error| error.to_string())?;
                break false;
            }
            std::thread::park_timeout(Duration::from_micros(200));
        };
        let status = child.wait().map_err(|error| error.to_string())?;
        if ended && status.code() != Some(0) {
            return Err(format!("it ended with {status} after {kills} kills"));
        }
        if ended || status.code().is_some() {
            return place.judge(Some(calm), Some(kills)).map(|_| kills);
        }
        kills += 1;
    }
    place.end(Some(calm), kills).map(|_| kills)
}

/// Numbers that look like chance, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }
}
