//! Bench `long`: what a journal of a million entries costs whoever starts, and whoever writes.
//!
//! A demo is played once; the example `long_journal` lets the same happen again and again to others, until the journal is
//! as long as wanted. Starts with it are held against starts with the short one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::{Bench, SPAWNS, median, millis};

/// From start to the first request.
const FIRST_MS_MAX: f64 = 25.0;
/// How much more memory a start may take than with a short journal.
const MEMORY_MAX: f64 = 1.1;
/// How much more an append may cost than at a thousand entries.
const APPEND_MAX: f64 = 2.0;

pub(crate) fn long(bench: &mut Bench) {
    let maker = bench.example("long_journal");
    if !maker.exists() {
        return bench.skip("long", "the example `long_journal` of max-team-runtime is not built");
    }
    let short = played(bench);
    let home = bench.scratch.path().join("long");
    let output = Command::new(maker)
        .arg("--from")
        .arg(&short)
        .arg("--to")
        .arg(&home)
        .args(["--entries", &bench.entries.to_string()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    // By turns, so that whatever else the machine does weighs on both.
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..SPAWNS {
        few.push(start(bench, &short));
        many.push(start(bench, &home));
    }
    let of = |starts: &[(f64, f64)], pick: fn(&(f64, f64)) -> f64| median(starts.iter().map(pick));
    let [few_ms, many_ms] = [&few, &many].map(|starts| of(starts, |start| start.0));
    let [few_mb, many_mb] = [&few, &many].map(|starts| of(starts, |start| start.1));
    bench.report("long-first", many_ms, "ms", FIRST_MS_MAX, Some(few_ms), json!({ "entries": made["entries"] }));
    let memory = json!({ "short_mb": few_mb, "long_mb": many_mb, "making_kib": made["rss_kib"] });
    bench.report("long-memory", many_mb / few_mb, "x", MEMORY_MAX, None, memory);
    let [short_us, long_us] = ["short_us", "long_us"].map(|name| made[name].as_f64().unwrap());
    bench.report("long-append", long_us / short_us, "x", APPEND_MAX, None, made);
    std::fs::remove_dir_all(&home).unwrap();
}

/// Plays a demo, and says where its journal is.
fn played(bench: &Bench) -> PathBuf {
    let folder = bench.scratch.path().join("played");
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = bench.program(&folder, "http://127.0.0.1:1");
    let ran = command.args(["demo", "--yes", "--keep"]).env("TMPDIR", &folder).stderr(Stdio::null()).status();
    assert!(ran.unwrap().success());
    let made = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path().join("home"));
    made.into_iter().find(|home| home.join("journal.db").exists()).unwrap()
}

/// Milliseconds to the first request, and the most memory until then.
fn start(bench: &Bench, home: &Path) -> (f64, f64) {
    let server = ModelServer::start(Script::new().when(|_| Some(Reply::text("hi"))));
    let begun = Instant::now();
    let mut child = bench.program(home, &server.url()).args(["-p", "hello"]).spawn().unwrap();
    server.wait_requests(1);
    let took = millis(begun.elapsed());
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(child.wait().unwrap().success());
    (took, kib / 1_024.0)
}
