//! Every shell example of the manual, run by the program as it is written there.
//!
//! The examples of a page run in order, in one git project of their own, with a scripted model. A block with `file=PATH` behind
//! its fence is written to that file first. A comment `# exit N` says how the command of its line ends. `no-run=REASON` behind
//! the fence leaves a block out. `MANUAL_PAGE=TEXT` plays only pages with TEXT in their path.

use std::path::PathBuf;
use std::process::Command;

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::{Value, json};

use super::{Block, outline, pairs};
use crate::program::{Program, finish};

/// Why an example may be left out.
const REASONS: [&str; 7] = [
    "key",         // it needs a key of a real provider
    "terminal",    // it opens a chat, or waits for keys
    "server",      // it needs a server that runs meanwhile
    "network",     // it reaches other machines
    "build",       // it builds this repository
    "placeholder", // it holds a made-up id, which no other run has
    "system",      // it changes settings of the machine
];
/// At least this share of the examples runs.
const SHARE_PERCENT: usize = 70;
/// Pages that are played at a time.
const THREADS: usize = 4;

fn has_tool(request: &Recorded, name: &str) -> bool {
    let tools = request.body["tools"].as_array();
    tools.into_iter().flatten().any(|tool| tool["name"] == name)
}

fn tool(name: &str, input: Value) -> Option<Reply> {
    Some(Reply::new().tool("t", name, input))
}

/// The model of all examples: it plans when CSV is mentioned, starts two teammates when one is, writes the file that it is
/// asked for, and else says that it is done.
fn model(request: &Recorded) -> Option<Reply> {
    let (said, done) = (request.last_user(), request.tool_results() > 0);
    let task = request.user_texts().first().is_some_and(|text| text.contains("# Your task: Write the import"));
    let wants = |word: &str, tool: &str| !done && said.contains(word) && has_tool(request, tool);
    let tasks = json!([
        { "id": "design", "agent": "ada", "title": "Decide on the columns", "description": "Decide which columns are read." },
        { "id": "import", "agent": "leo", "title": "Write the import", "description": "Write src/import.sh.",
          "depends_on": ["design"], "owns": ["src/**"], "outputs": ["src/import.sh"] },
    ]);
    if task && !done {
        return tool("write_file", json!({ "path": "src/import.sh", "content": "cut -d, -f1\n" }));
    }
    if has_tool(request, "structured_output") {
        return tool("structured_output", json!({ "files": 3 }));
    }
    if wants("CSV", "submit_plan") {
        return tool("submit_plan", json!({ "goal": "import CSV files", "tasks": tasks }));
    }
    if wants("NOTES.md", "write_file") {
        return tool("write_file", json!({ "path": "NOTES.md", "content": "Notes.\n" }));
    }
    Some(Reply::text("Done."))
}

fn git(program: &Program, words: &[&str]) {
    let name = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
    let ran = Command::new("git").args(name).args(words).current_dir(program.project()).output().unwrap();
    assert!(ran.status.success(), "{words:?}: {ran:?}");
}

/// A small project in git with one session.
fn project(server: &ModelServer) -> Program {
    let program = Program::team(server)
        .variable("LANG", "C.UTF-8")
        .file("README.md", "# Example\n")
        .file("src/main.sh", "echo example\n")
        .file("tests/run.sh", "sh src/main.sh\n")
        .file("questions.txt", "what does this project do?\n");
    git(&program, &["init", "-q"]);
    git(&program, &["add", "."]);
    git(&program, &["commit", "-qm", "first"]);
    let ran = program.run(&["-p", "hello"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    program
}

/// The script of a block: a line with `# exit N` must end with N.
fn script(block: &Block) -> String {
    let binary = Program::binary().parent().unwrap().to_str().unwrap();
    let mut script = format!("set -euo pipefail\nPATH='{binary}':$PATH\n");
    for line in block.text.lines() {
        let (command, comment) = line.split_once(" # ").unwrap_or((line, ""));
        let digits =
            comment.strip_prefix("exit ").map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap());
        match digits {
            Some(code) => script.push_str(&format!("if {command}; then false; else [ $? -eq {code} ]; fi\n")),
            None => script.push_str(&format!("{line}\n")),
        }
    }
    script
}

/// Runs the examples of one page; the messages of those that failed.
fn play(page: &str, blocks: &[Block]) -> Vec<String> {
    let server = ModelServer::start(Script::new().when(model));
    let program = project(&server);
    let mut failed = Vec::new();
    for block in blocks {
        if let Some(path) = block.value("file") {
            let path: PathBuf = program.project().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &block.text).unwrap();
        }
        if block.kind() != "sh" || block.value("no-run").is_some() {
            continue;
        }
        let ran = finish(program.prefixed(&["bash", "-c", &script(block)], &[]).spawn().unwrap());
        if ran.code != 0 {
            failed.push(format!("{page}: exit {}\n{}\n{}\n{}", ran.code, block.text, ran.out, ran.err));
        }
    }
    failed
}

#[test]
fn every_example_runs_as_it_is_written() {
    let pages: Vec<(String, Vec<Block>)> =
        pairs().into_iter().map(|(name, english, _)| (name, outline(&english).blocks)).collect();
    let shell: Vec<&Block> = pages.iter().flat_map(|(_, blocks)| blocks).filter(|block| block.kind() == "sh").collect();
    let left_out: Vec<&str> = shell.iter().filter_map(|block| block.value("no-run")).collect();
    let unknown: Vec<&&str> = left_out.iter().filter(|reason| !REASONS.contains(reason)).collect();
    assert!(unknown.is_empty(), "no such reason: {unknown:?}; there are {REASONS:?}");
    let runs = shell.len() - left_out.len();
    assert!(runs * 100 >= shell.len() * SHARE_PERCENT, "only {runs} of {} examples run", shell.len());
    let wanted = std::env::var_os("MANUAL_PAGE").unwrap_or_default().to_string_lossy().into_owned();
    let runs = |block: &Block| block.kind() == "sh" && block.value("no-run").is_none();
    let chosen = pages.iter().filter(|(name, blocks)| name.contains(&wanted) && blocks.iter().any(runs));
    let chosen: Vec<_> = chosen.collect();
    let failed: Vec<String> = std::thread::scope(|scope| {
        let threads = chosen
            .chunks(chosen.len().div_ceil(THREADS).max(1))
            .map(|some| scope.spawn(|| some.iter().flat_map(|(name, blocks)| play(name, blocks)).collect::<Vec<_>>()));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n----\n"));
}
