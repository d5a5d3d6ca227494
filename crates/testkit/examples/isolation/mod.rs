//! Bench `walls`: what a command costs more within a sandbox than without, in the same run: `true` in milliseconds, `cargo build` and
//! `npm install` as a ratio.

use std::process::Command;

use serde_json::{Value, json};

use crate::Bench;

/// What the sandbox may add to a command.
const ADDED_MS_MAX: f64 = 15.0;
/// How much longer a build or an installation may take within it.
const WORK_RATIO_MAX: f64 = 1.05;

pub(crate) fn isolation(bench: &mut Bench) {
    let path = bench.example("isolation_bench");
    if !path.exists() {
        return bench.skip("walls", "the example `isolation_bench` of max-team-tools is not built");
    }
    let output = Command::new(path).arg(&bench.bin).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    if let Some(reason) = measured["skipped"].as_str() {
        return bench.skip("walls", reason);
    }
    let number = |name: &str| measured[name].as_f64().unwrap();
    let added = number("walled_ms") - number("bare_ms");
    let floor = measured["bwrap_ms"].as_f64().map(|bwrap| bwrap - number("bare_ms"));
    bench.report("walls-added", added, "ms", ADDED_MS_MAX, floor, json!({ "measured": measured }));
    for (row, name) in [("walls-cargo-build", "cargo_build"), ("walls-npm-install", "npm_install")] {
        let work = &measured["work"][name];
        match (work["bare_ms"].as_f64(), work["walled_ms"].as_f64()) {
            (Some(bare), Some(walled)) => bench.report(row, walled / bare, "times", WORK_RATIO_MAX, None, work.clone()),
            _ => bench.skip(row, "its program is not installed"),
        }
    }
}
