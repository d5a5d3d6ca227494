//! Bench `judge`: what it costs to say whether a command line may run.

use std::process::Command;

use serde_json::{Value, json};

use crate::Bench;

/// What judging one command of a line may take, of the slowest line.
const COMMAND_US_MAX: f64 = 100.0;

pub(crate) fn judge(bench: &mut Bench) {
    let path = bench.example("judge_bench");
    if !path.exists() {
        return bench.skip("judge", "the example `judge_bench` of max-team-tools is not built");
    }
    // Its exit code says what the report says.
    let output = Command::new(path).arg("--json").output().unwrap();
    let lines: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let most = |name: &str| lines.iter().filter_map(|line| line[name].as_f64()).fold(0.0, f64::max);
    let more = json!({ "line_us": most("line_us"), "of_it_reading_us": most("read_us"), "lines": lines.len() });
    bench.report("judge-command", most("command_us"), "µs", COMMAND_US_MAX, None, more);
}
