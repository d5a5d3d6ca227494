//! Bench `steps`: what a plan costs in `core` alone, from the two examples that measure it.
//!
//! `plan_bench` prints a line per plan that it checked, `plan_steps` one object with a list per kind of plan. Here
//! they only become rows with bars; one that is not built is left out with a word.

use std::process::Command;

use serde_json::{Map, Value, json};

use crate::Bench;

/// The largest plan, and the smallest it is compared to.
const LARGE: u64 = 10_000;
const SMALL: u64 = 100;
/// Checking the largest plan.
const VALIDATE_MS_MAX: f64 = 50.0;
/// How much more a step of the largest plan may cost than one of the smallest.
const GROWTH_MAX: f64 = 2.0;

pub(crate) fn steps(bench: &mut Bench) {
    match run(bench, "plan_bench") {
        Ok(rows) => validate(bench, &rows),
        Err(reason) => bench.skip("steps-validate", &reason),
    }
    match run(bench, "plan_steps") {
        Ok(objects) => growth(bench, &objects),
        Err(reason) => bench.skip("steps-growth", &reason),
    }
}

/// What the example printed, line by line.
fn run(bench: &Bench, name: &str) -> Result<Vec<Value>, String> {
    let path = bench.example(name);
    if !path.exists() {
        return Err(format!("the example `{name}` of max-team-core is not built"));
    }
    let output = Command::new(path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    Ok(output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

fn validate(bench: &mut Bench, rows: &[Value]) {
    let large = rows.iter().filter(|row| row["tasks"] == LARGE);
    let worst = large.filter_map(|row| row["validate_ms"].as_f64()).max_by(f64::total_cmp);
    match worst {
        Some(worst) => bench.report("steps-validate", worst, "ms", VALIDATE_MS_MAX, None, json!({ "plans": rows })),
        None => bench.skip("steps-validate", &format!("`plan_bench` says nothing about {LARGE} tasks: {rows:?}")),
    }
}

fn growth(bench: &mut Bench, objects: &[Value]) {
    let mut told = false;
    for (kind, rows) in objects.iter().filter_map(Value::as_object).flatten() {
        let costs: Vec<(u64, f64)> = rows.as_array().into_iter().flatten().filter_map(cost).collect();
        let at = |tasks: u64| costs.iter().find(|(size, _)| *size == tasks).map(|(_, us)| *us);
        let (Some(large), Some(small)) = (at(LARGE), at(SMALL)) else { continue };
        let step_us: Map<String, Value> = costs.iter().map(|(tasks, us)| (tasks.to_string(), json!(us))).collect();
        let name = format!("steps-{kind}");
        bench.report(&name, large / small, "x", GROWTH_MAX, None, json!({ "step_us": step_us, "measured": rows }));
        told = true;
    }
    if !told {
        bench.skip("steps-growth", &format!("`plan_steps` has no `step_us` for {SMALL} and {LARGE} tasks"));
    }
}

/// Tasks, and microseconds per step.
fn cost(row: &Value) -> Option<(u64, f64)> {
    Some((row["tasks"].as_u64()?, row["step_us"].as_f64()?))
}
