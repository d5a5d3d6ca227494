//! Bench `walls`: what a command costs more within a sandbox than without, in the same run.

use std::process::Command;

use serde_json::{Value, json};

use crate::Bench;

/// What the sandbox may add to a command.
const ADDED_MS_MAX: f64 = 15.0;

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
}
