//! What things cost. Not run by default: `cargo test -p max-team-llm --release -- --ignored --nocapture speed`.

use std::time::{Duration, Instant};

use max_team_core::chat::{Message, Part};
use max_team_core::context::Window;
use max_team_llm::{Call, Catalog, Client, Dialect, Options, ToolSpec, Transcript, Wire};
use serde_json::json;

use crate::{endpoint, options};

fn took<T>(what: &str, work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    let took = start.elapsed();
    println!("{what}: {took:?}");
    (done, took)
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
#[ignore = "measures; run in release, alone"]
fn first_use_is_cheap() {
    took("catalogue, first use", || Catalog::builtin().models().count());
    took("a model resolved", || Catalog::builtin().resolve("claude-sonnet-4-6", None).unwrap());
    for (what, url) in [("loopback", "http://127.0.0.1:1"), ("remote", "https://api.anthropic.com")] {
        let before = resident_kb();
        let client = Client::new(options());
        took(&format!("client for {what}, built"), || client.warm(&endpoint(Dialect::Anthropic, url)));
        println!("resident: {before} kB before, {} kB after", resident_kb());
    }
    let bundle = "/etc/ssl/certs/ca-certificates.crt";
    if std::path::Path::new(bundle).exists() {
        let client = Client::new(Options { cert_file: Some(bundle.into()), ..options() });
        took("client with a bundle of certificates", || client.warm(&endpoint(Dialect::Anthropic, "https://x")));
    }
}

#[test]
#[ignore = "measures; run in release, alone"]
fn a_long_history_costs_a_copy() {
    for dialect in [Dialect::Anthropic, Dialect::OpenaiChat] {
        let tool = |n: usize| ToolSpec {
            name: format!("tool_{n}"),
            description: "d".repeat(400),
            schema: json!({"type": "object"}),
        };
        let tools: Vec<ToolSpec> = (0..30).map(tool).collect();
        let mut transcript = Transcript::new(Wire::new(dialect, "p", "m"));
        transcript.instruct(&"s".repeat(8_000), &tools);
        let result =
            Part::ToolResult { id: "a".into(), content: vec![Part::text("line \"x\"\n".repeat(180))], is_error: false };
        let (bytes, total) = took(&format!("{dialect:?}: 50 rounds to an 80 kB history"), || {
            let mut bytes = 0;
            for number in 0..50 {
                transcript.push(&Message::assistant(vec![Part::ToolUse {
                    id: format!("t{number}"),
                    name: "r".into(),
                    input: json!({"p": 1}),
                }]));
                transcript.push(&Message::user(vec![result.clone()]));
                let call =
                    Call { number, max_tokens: 1, tools_off: false, window: Window::default(), upto: transcript.len() };
                bytes = transcript.request(&call).body.len();
            }
            bytes
        });
        println!("last body {bytes} bytes; per round {:?}", total / 50);
    }
}
