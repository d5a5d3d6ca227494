//! Bench `pages`: what it costs to make Markdown of a web page.

use std::process::Command;

use serde_json::{Value, json};

use crate::Bench;

pub(crate) fn pages(bench: &mut Bench) {
    let path = bench.example("page_bench");
    if !path.exists() {
        return bench.skip("pages", "the example `page_bench` of max-team-tools is not built");
    }
    // Its exit code says what the report says.
    let output = Command::new(path).arg("--json").output().unwrap();
    let lines: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    for line in lines {
        let name = format!("page-{}k", line["bytes"].as_u64().unwrap() / 1_000);
        let [own, bar] = ["own_ms", "bar_ms"].map(|name| line[name].as_f64().unwrap());
        bench.report(&name, own, "ms", bar, None, json!({ "whole_ms": line["whole_ms"] }));
    }
}
