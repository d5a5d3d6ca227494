//! Bench `mcp`: what MCP servers cost: memory of known servers, time that a call adds, and leaks.

use std::process::Command;

use serde_json::{Value, json};

use crate::Bench;

/// Milliseconds that a call may add to the bare exchange with its server.
const ADDED_MS_MAX: f64 = 0.5;
/// Kilobytes that a hundred known servers may take.
const KNOWN_KB_MAX: f64 = 1_024.0;

pub(crate) fn mcp(bench: &mut Bench) {
    let path = bench.example("mcp_bench");
    if !path.exists() {
        return bench.skip("mcp", "the example `mcp_bench` of max-team-mcp is not built");
    }
    let output = Command::new(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |part: &str, name: &str| measured[part][name].as_f64().unwrap();
    let bare = number("call", "bare_us") / 1_000.0;
    bench.report("mcp-call-added", number("call", "added_us") / 1_000.0, "ms", ADDED_MS_MAX, Some(bare), json!({}));
    bench.report("mcp-known", number("known", "kb"), "kB", KNOWN_KB_MAX, None, json!({ "measured": measured }));
}
