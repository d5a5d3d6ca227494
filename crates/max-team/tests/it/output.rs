//! What a command prints, in a real terminal: live, folded below the call, and all of it with Ctrl-O.

use max_team_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::chat::Terminal;
use crate::program::Program;

const FREE: [&str; 2] = ["--permission-mode", "bypassPermissions"];

/// Prints, waits for a file, prints more and fails.
const SCRIPT: &str = "\
echo begun; printf '10%%\\r\\033[31m50%%\\033[0m\\n'
while [ ! -e go ]; do sleep 0.05; done
i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo \"out $i\"; done
echo 'error: 测试 failed' >&2; exit 3
";

fn program(server: &ModelServer) -> Program {
    Program::with(server).file("run.sh", SCRIPT)
}

fn server() -> ModelServer {
    ModelServer::start([
        Reply::new().tool("t1", "run_shell", json!({"command": "sh run.sh", "timeout": 60})),
        Reply::text("it failed"),
    ])
}

#[test]
fn output_is_live_then_folded_then_unfolded() {
    let server = server();
    let program = program(&server);
    let mut terminal = Terminal::open(&program, &FREE);
    terminal.wait("or give a task");
    terminal.keys(&["run it", "Enter"]);
    terminal.wait("50%");
    let live = terminal.screen();
    assert!(live.contains("⎿ begun") && live.contains("    50%") && !live.contains("10%"), "{live}");
    std::fs::write(program.project().join("go"), "").unwrap();
    terminal.wait("tokens in");
    let folded = terminal.screen();
    assert!(folded.contains("✗ run_shell sh run.sh exit code 3"), "{folded}");
    assert!(folded.contains("… +38 lines (Ctrl-O)") && folded.contains("out 40"), "{folded}");
    assert!(folded.contains("error: 测试 failed") && !folded.contains("out 1\n"), "{folded}");
    terminal.keys(&["C-o"]);
    terminal.wait("Ctrl-O closes");
    terminal.keys(&["Home"]);
    terminal.wait("lines 1-");
    let unfolded = terminal.screen();
    assert!(unfolded.contains("command: sh run.sh") && unfolded.contains("begun"), "{unfolded}");
    terminal.keys(&["C-o"]);
    terminal.wait("or give a task");
    terminal.keys(&["C-d"]);
    terminal.wait_end();
}

#[test]
fn a_failed_command_is_told_on_standard_error_and_in_the_log() {
    let server = server();
    let program = program(&server).file("go", "");
    let ran = program.run(&[&["-p", "run it"], FREE.as_slice()].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "it failed\n"), "{ran:?}");
    assert!(ran.err.contains("`sh run.sh` failed: exit code 3"), "{}", ran.err);
    assert!(ran.err.contains("\n    out 40\n    error: 测试 failed\n"), "{}", ran.err);
    let log = program.run(&["logs", "max"]);
    assert!(log.out.contains("✗ run_shell") && log.out.contains("\n    error: 测试 failed\n"), "{}", log.out);
}
