//! What five hundred definitions of agents add to a start.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use serde_json::json;

use crate::{Bench, SPAWNS, median, millis};

const DEFINITIONS: usize = 500;
/// Milliseconds that they may add.
const ADDED_MS_MAX: f64 = 15.0;

pub(crate) fn defs(bench: &mut Bench) {
    let [none, many] = ["defs-none", "defs-many"].map(|name| bench.scratch.path().join(name));
    std::fs::create_dir_all(&none).unwrap();
    let folder = many.join(".claude/agents");
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..DEFINITIONS {
        // A third of them need YAML's whole grammar.
        let tools = if number % 3 == 0 { "[Read, Grep, \"Bash\"]" } else { "Read, Grep, Bash" };
        let text = format!(
            "---\nname: agent-{number}\ndescription: Use this agent when a change of kind {number} is to be reviewed\n\
             tools: {tools}\nmodel: sonnet\ncolor: blue\n---\n{}",
            "You review code, and say what is wrong with it.\n".repeat(40)
        );
        std::fs::write(folder.join(format!("agent-{number}.md")), text).unwrap();
    }
    let home = bench.scratch.path().join("defs-home");
    let start = |folder: &Path| {
        let mut command = bench.program(&home, "http://127.0.0.1:1");
        command.args(["agents", "show", "general", "--json"]).current_dir(folder).stderr(Stdio::null());
        let begun = Instant::now();
        assert!(command.status().unwrap().success());
        millis(begun.elapsed())
    };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..SPAWNS {
        without.push(start(&none));
        with.push(start(&many));
    }
    let (without, with) = (median(without.into_iter()), median(with.into_iter()));
    let more = json!({ "definitions": DEFINITIONS, "without_ms": without, "with_ms": with });
    bench.report("definitions", with - without, "ms", ADDED_MS_MAX, None, more);
}
