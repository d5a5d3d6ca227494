//! Benches `pages` and `browser`: what it costs to make Markdown of a web page, and what an action in a browser costs.

use std::process::Command;

use serde_json::{Value, json};

use crate::Bench;

pub(crate) fn pages(bench: &mut Bench) {
    for line in figures(bench, "pages", "page_bench") {
        let name = format!("page-{}k", line["bytes"].as_u64().unwrap() / 1_000);
        let [own, bar] = ["own_ms", "bar_ms"].map(|name| line[name].as_f64().unwrap());
        bench.report(&name, own, "ms", bar, None, json!({ "whole_ms": line["whole_ms"] }));
    }
}

pub(crate) fn browser(bench: &mut Bench) {
    for line in figures(bench, "browser", "browser_bench") {
        let row = line["row"].as_str().unwrap();
        let [whole, own, bar] = ["whole_ms", "own_ms", "bar_ms"].map(|name| line[name].as_f64().unwrap());
        // The first action is measured as its user waits for it, the others by our part of it.
        let (ours, other) =
            if row == "first" { (whole, json!({ "own_ms": own })) } else { (own, json!({ "whole_ms": whole })) };
        bench.report(&format!("browser-{row}"), ours, "ms", bar, None, other);
    }
}

/// The lines of an example of max-team-tools; none if it is not built or cannot run here. Its exit code says what the report says.
fn figures(bench: &Bench, name: &str, example: &str) -> Vec<Value> {
    let path = bench.example(example);
    if !path.exists() {
        bench.skip(name, &format!("the example `{example}` of max-team-tools is not built"));
        return Vec::new();
    }
    let output = Command::new(path).arg("--json").output().unwrap();
    if output.status.code() == Some(2) {
        bench.skip(name, "Chromium is not installed");
        return Vec::new();
    }
    let lines: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    lines
}
