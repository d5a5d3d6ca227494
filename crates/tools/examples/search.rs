//! Searches a folder as `search_code` does and prints what it finds: to be timed from outside against other programs.
//!
//! `search FOLDER PATTERN`
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for benchmarks stops loudly")]

use std::sync::Arc;

use max_team_core::chat::Part;
use max_team_tools::{Registry, Root, ToolContext};
use serde_json::json;

fn main() {
    let mut args = std::env::args().skip(1);
    let (folder, pattern) = (args.next().unwrap(), args.next().unwrap());
    let cx = ToolContext::new(Arc::new(Root::open(folder).unwrap()));
    let (registry, input) = (Registry::builtin(), json!({ "pattern": pattern }));
    let intent = registry.prepare(&cx, "search_code", &input).unwrap().action;
    let output = registry.run(&cx, "search_code", input, &intent, false).unwrap();
    for part in output.content {
        if let Part::Text { text } = part {
            println!("{text}");
        }
    }
}
