//! Bad surroundings: each ends in a clear message or in the same end as ever, never in a wrong one.
//!
//! After a message the surroundings are mended, the program is started again, and must come to that end. Only a log that
//! `audit verify` itself calls damaged is left as it is.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Proof;
use crate::kills::traced;
use crate::place::{Outcome, Place, Ran, finish, go_on};

const BAD_SYNC: &str = "EIO when syncing";
const CLOCK_JUMPS: &str = "clock jumps";
/// Exit of the shell that could not mount.
const NOT_MOUNTED: i32 = 99;
/// Requests after which a run is in its middle.
const MIDDLE: usize = 5;
/// How long a stopped process stands still.
const STOPPED: Duration = Duration::from_secs(2);
/// Bits that are flipped, in the long and the short form.
const FLIPS: (u64, u64) = (150, 4);
/// How long nothing may happen.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A home on a file system of its own that is too small; what is left is kept for the next start.
const SMALL_DISK: &str = r#"kept=$1 size=$2; shift 2; mkdir -p "$MAX_TEAM_HOME" "$kept"
mount -t tmpfs -o "size=$size" tmpfs "$MAX_TEAM_HOME" 2>/dev/null || exit 99
"$@"; code=$?; cp -a "$MAX_TEAM_HOME"/. "$kept"/; exit $code"#;
/// Where nothing can be mounted: no file may become larger.
const SMALL_FILES: &str = r#"trap '' XFSZ; ulimit -f "$1"; shift; exec "$@""#;
const FEW_FILES: &str = r#"ulimit -n "$1"; shift; exec "$@""#;

/// A clock that jumps after so many looks at it.
const CLOCK: &str = r#"#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    static int looks;
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, at);
    if (id == CLOCK_REALTIME && __sync_add_and_fetch(&looks, 1) > atoi(getenv("JUMP_AFTER")))
        at->tv_sec += atol(getenv("JUMP_S"));
    return result;
}
"#;

pub(crate) fn faults(proof: &mut Proof) {
    let began = Instant::now();
    let calm = match Place::new(&proof.bin, false).end(None, 0) {
        Ok(calm) => calm,
        Err(why) => return proof.row("undisturbed", began, Err(why)),
    };
    type Fault = fn(&Proof, &Outcome) -> Result<String, String>;
    let faults: [(&str, Fault); 7] = [
        ("disk full", disk_full),
        (BAD_SYNC, bad_sync),
        ("too few files", few_files),
        ("stopped, and a second owner", stopped),
        (CLOCK_JUMPS, clock_jumps),
        ("cut-off database or log", cut_off),
        ("flipped bits", flipped),
    ];
    for (name, fault) in faults {
        let cannot = match name {
            BAD_SYNC => traced().err(),
            CLOCK_JUMPS => compiles().err(),
            _ => None,
        };
        if let Some(why) = cannot {
            proof.skip(name, &why);
            continue;
        }
        let began = Instant::now();
        let result = fault(proof, &calm);
        proof.row(name, began, result);
    }
}

/// A process in bad surroundings either ended well or said why not: its output is a result that names the error.
fn is_clear(ran: &Ran) -> Result<bool, String> {
    let is_error = |line: &str| {
        let result: Value = serde_json::from_str(line).unwrap_or_default();
        result["is_error"] == true && result["error"].as_str().is_some_and(|why| !why.is_empty())
    };
    match ran.code {
        Some(0) => Ok(true),
        Some(_) if ran.out.lines().last().is_some_and(is_error) && !ran.err.contains("panicked") => Ok(false),
        _ => Err(format!("no clear message: {ran:?}")),
    }
}

/// Ended well, or told, mended and then ended well. Whether it was told.
fn mended(place: &Place, ran: &Ran, calm: &Outcome) -> Result<bool, String> {
    let told = |why: String| format!("{why}\nbefore that: {ran:?}");
    if is_clear(ran)? {
        return place.judge(Some(calm), Some(0)).map(|_| false).map_err(told);
    }
    place.end(Some(calm), 1).map(|_| true).map_err(told)
}

fn summary(runs: usize, messages: usize) -> String {
    format!("{runs} runs: {messages} ended in a message and then well, {} well", runs - messages)
}

fn disk_full(proof: &Proof, calm: &Outcome) -> Result<String, String> {
    let sizes: Vec<usize> = if proof.short { vec![128, 400] } else { (1..=24).map(|n| n * 48).collect() };
    let (mut messages, mut how) = (0, "a small file system");
    for size in &sizes {
        let place = Place::new(&proof.bin, false);
        let kept = place.folder.path().join("kept");
        let (kept_name, size_name) = (kept.display().to_string(), format!("{size}k"));
        let mut ran = place.run(&["unshare", "-m", "sh", "-c", SMALL_DISK, "sh", &kept_name, &size_name]);
        if ran.code == Some(NOT_MOUNTED) || ran.err.starts_with("unshare") {
            how = "a limit on files, for nothing can be mounted here";
            ran = place.run(&["sh", "-c", SMALL_FILES, "sh", &(size * 2).to_string()]);
        } else {
            drop(std::fs::remove_dir_all(place.home()));
            std::fs::rename(&kept, place.home()).map_err(|error| error.to_string())?;
        }
        messages += usize::from(mended(&place, &ran, calm).map_err(|why| format!("{size} KiB: {why}"))?);
    }
    Ok(format!("{} ({how})", summary(sizes.len(), messages)))
}

fn bad_sync(proof: &Proof, calm: &Outcome) -> Result<String, String> {
    let (last, step) = if proof.short { (9, 4) } else { (30, 1) };
    let (mut messages, mut runs) = (0, 0);
    for n in (1..=last).step_by(step) {
        let place = Place::new(&proof.bin, false);
        let inject = format!("inject=fsync,fdatasync:error=EIO:when={n}+");
        let ran = place.run(&["strace", "-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", &inject]);
        runs += 1;
        messages += usize::from(mended(&place, &ran, calm).map_err(|why| format!("from sync {n} on: {why}"))?);
    }
    Ok(summary(runs, messages))
}

fn few_files(proof: &Proof, calm: &Outcome) -> Result<String, String> {
    let files: Vec<usize> = if proof.short { vec![14, 22] } else { (4..48).collect() };
    let (mut runs, mut messages) = (0, 0);
    for most in &files {
        let place = Place::new(&proof.bin, false);
        let ran = place.run(&["sh", "-c", FEW_FILES, "sh", &most.to_string()]);
        // So few that the program's own libraries cannot be opened is not ours to tell.
        if ran.err.contains("error while loading shared libraries") {
            continue;
        }
        runs += 1;
        messages += usize::from(mended(&place, &ran, calm).map_err(|why| format!("{most} files: {why}"))?);
    }
    Ok(summary(runs, messages))
}

fn stopped(proof: &Proof, calm: &Outcome) -> Result<String, String> {
    let place = Place::new(&proof.bin, false);
    let child = begun(&place)?;
    signal(&child, "STOP")?;
    let second = finish(place.under(&[], &go_on()).spawn().map_err(|error| error.to_string())?);
    std::thread::park_timeout(STOPPED);
    signal(&child, "CONT")?;
    let (pid, first) = (child.id().to_string(), finish(child));
    // Whoever was stopped in the middle of a transaction keeps everybody from looking who it is.
    let is_told = second.err.contains(&pid) || second.err.contains("is being written by another process");
    if second.code == Some(0) || !is_told {
        return Err(format!("the second does not name the owner `{pid}`: {second:?}"));
    }
    if first.code != Some(0) {
        return Err(format!("it does not go on after it was stopped: {first:?}"));
    }
    place.judge(Some(calm), Some(0))?;
    Ok("the second is refused and told why; the first goes on once it may".into())
}

/// Whether a clock can be built here.
fn compiles() -> Result<(), String> {
    let ran = Command::new("cc").arg("--version").output();
    ran.map(drop).map_err(|error| format!("there is no C compiler for the clock: {error}"))
}

fn clock_jumps(proof: &Proof, calm: &Outcome) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (source, library) = (folder.path().join("clock.c"), folder.path().join("clock.so"));
    std::fs::write(&source, CLOCK).map_err(|error| error.to_string())?;
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    if !made.is_ok_and(|status| status.success()) {
        return Err("the clock was not built".into());
    }
    let jumps: &[i64] =
        if proof.short { &[3_600, -3_600] } else { &[3_600, -3_600, 86_400 * 400, -86_400 * 400, 2, -2] };
    let looks: &[u32] = if proof.short { &[60] } else { &[0, 10, 30, 60, 100, 150, 250, 400] };
    for (jump, looks) in jumps.iter().flat_map(|jump| looks.iter().map(move |looks| (jump, looks))) {
        let place = Place::new(&proof.bin, false);
        let mut command = place.under(&[], &place.words());
        command.env("LD_PRELOAD", &library).env("JUMP_S", jump.to_string()).env("JUMP_AFTER", looks.to_string());
        let ran = finish(command.spawn().map_err(|error| error.to_string())?);
        if ran.code != Some(0) {
            return Err(format!("by {jump} s after {looks} looks: {ran:?}"));
        }
        place.judge(Some(calm), Some(0)).map_err(|why| format!("by {jump} s after {looks} looks: {why}"))?;
    }
    Ok(format!("{} runs, by seconds, hours and years, forwards and back: all well", jumps.len() * looks.len()))
}

fn cut_off(proof: &Proof, calm: &Outcome) -> Result<String, String> {
    let cuts: &[u64] = if proof.short { &[2] } else { &[1, 2, 3, 5, 10, 50, 99] };
    let (mut runs, mut messages) = (0, 0);
    for (file, part) in
        ["journal.db", "journal.db-wal"].iter().flat_map(|file| cuts.iter().map(move |part| (file, part)))
    {
        let harm = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() * usize::try_from(*part).unwrap_or(1) / 100);
        runs += 1;
        messages += usize::from(harmed(proof, calm, file, harm).map_err(|why| format!("{part} % of `{file}`: {why}"))?);
    }
    Ok(format!("{runs} runs: {messages} told of the damage, {} well", runs - messages))
}

fn flipped(proof: &Proof, calm: &Outcome) -> Result<String, String> {
    let wanted = if proof.short { FLIPS.1 } else { FLIPS.0 };
    let mut messages = 0;
    for n in 0..wanted {
        let file = if n % 2 == 0 { "journal.db-wal" } else { "journal.db" };
        let seed = proof.seed.wrapping_add(n).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8;
        let harm = |bytes: &mut Vec<u8>| {
            let at = usize::try_from(seed).unwrap_or_default() % bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << (seed % 8);
            }
        };
        let told =
            harmed(proof, calm, file, harm).map_err(|why| format!("`{file}`, seed {}: {why}", proof.seed + n))?;
        messages += u64::from(told);
    }
    Ok(format!("{wanted} runs: {messages} told of the damage, {} well; seed {}", wanted - messages, proof.seed))
}

/// Killed in the middle, harmed, and started again. Whether somebody was told.
fn harmed(proof: &Proof, calm: &Outcome, file: &str, harm: impl Fn(&mut Vec<u8>)) -> Result<bool, String> {
    let place = Place::new(&proof.bin, false);
    let mut child = begun(&place)?;
    child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
    let path = place.home().join(file);
    let mut bytes = read(&path)?;
    harm(&mut bytes);
    std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
    let ran = finish(place.under(&[], &go_on()).spawn().map_err(|error| error.to_string())?);
    let mut is_told = !is_clear(&ran)?;
    let verified = place.verify();
    if verified.code != Some(0) {
        is_told = true;
        if verified.err.contains("restore") {
            return Ok(true);
        }
        // Rows follow from the log, so they can be made again; the end is judged with them.
        let made = place.under(&[], &["doctor", "--rebuild"]).spawn().map(finish).map_err(|error| error.to_string())?;
        if !verified.err.contains("doctor --rebuild") || made.code != Some(0) {
            return Err(format!("no clear message: {verified:?}\nthen: {made:?}\nbefore that: {ran:?}"));
        }
    }
    // Nothing is wrong with what is left, so it comes to its end.
    if is_told {
        let again = place.run(&[]);
        if again.code != Some(0) {
            return Err(format!("nothing is wrong, and it does not go on: {again:?}\nbefore that: {ran:?}"));
        }
    }
    // What a log loses is done again: the answers that were in it, too.
    place.judge(Some(calm), None).map(|_| is_told).map_err(|why| format!("{why}\nit said: {ran:?}"))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("`{}`: {error}", path.display()))
}

/// A process in the middle of its work.
fn begun(place: &Place) -> Result<Child, String> {
    let (mut child, began) = (place.start(&[]), Instant::now());
    while place.server.count() < MIDDLE {
        if began.elapsed() > SILENCE_MAX {
            child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
            return Err("it does not come to its middle".into());
        }
        std::thread::park_timeout(Duration::from_micros(200));
    }
    Ok(child)
}

fn signal(child: &Child, name: &str) -> Result<(), String> {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    if sent.is_ok_and(|status| status.success()) { Ok(()) } else { Err(format!("`{name}` was not sent")) }
}
