//! Kill it at any instant: the next process goes on, nothing finished is paid or done twice.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout};

use max_team_testkit::{Gate, ModelServer, Reply, Script};
use serde_json::json;

use crate::program::{Program, finish, kill, kill_points, killed_at, signal};

const GO_ON: [&str; 5] = ["-c", "-p", "", "--permission-mode", "acceptEdits"];

/// A turn of four model calls: look, write, edit, answer.
fn replies() -> Vec<Reply> {
    vec![
        Reply::text("Looking.").tool("t1", "read_file", json!({"path": "a.txt"})).tool("t2", "list_dir", json!({})),
        Reply::new().tool("t3", "write_file", json!({"path": "out/b.txt", "content": "one\n"})),
        Reply::new().tool("t4", "edit_file", json!({"path": "out/b.txt", "old": "one", "new": "two"})),
        Reply::text("all done"),
    ]
}

fn start_turn(program: &Program) -> Child {
    program.start(&["-p", "do it", "--permission-mode", "acceptEdits"])
}

/// The intent must be in the journal when the request arrives, or a crash would forget that it was made.
#[test]
fn the_intent_is_journalled_before_the_call() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("hi").gate_before(&gate)]);
    let program = Program::with(&server);
    let mut child = program.start(&["-p", "hello"]);
    gate.wait_reached();
    assert_eq!(program.events().last().map(String::as_str), Some("llm_intent"));
    kill(&mut child);
    gate.open();
    // The call had no end: the next process starts a new attempt, and says so in the log.
    let server = ModelServer::start([Reply::text("hi")]);
    let program = program.variable("ANTHROPIC_BASE_URL", server.url());
    let ran = program.run(&GO_ON);
    assert_eq!((ran.code, ran.out.as_str()), (0, "hi\n"), "{ran:?}");
    let events = program.events();
    assert_eq!(
        events,
        [
            "agent_started",
            "configured",
            "turn_started",
            "llm_intent",
            "configured",
            "llm_ended",
            "llm_intent",
            "llm_ended",
            "turn_ended"
        ]
    );
}

/// Killed while each of the four calls is being answered, in turn and mid-stream.
#[test]
fn killed_in_every_call_it_comes_to_the_same_end() {
    for (held, midway) in (0..4).flat_map(|held| [(held, false), (held, true)]) {
        let gate = Gate::new();
        let mut script = Script::new();
        for (n, reply) in replies().into_iter().enumerate() {
            script = script.then(match (n == held, midway) {
                (true, false) => reply.gate_before(&gate),
                (true, true) => reply.gate_after(4, &gate),
                (false, _) => reply,
            });
        }
        // The call that was cut off is asked again.
        let again = replies().remove(held);
        let mut script_after = Script::new().then(again);
        for reply in replies().into_iter().skip(held + 1) {
            script_after = script_after.then(reply);
        }
        let server = ModelServer::start(script);
        let program = Program::with(&server).file("a.txt", "alpha");
        let mut child = start_turn(&program);
        gate.wait_reached();
        kill(&mut child);
        assert_eq!(server.count(), held + 1);

        let after = ModelServer::start(script_after);
        let program = program.variable("ANTHROPIC_BASE_URL", after.url());
        let ran = program.run(&GO_ON);
        assert_eq!((ran.code, ran.out.as_str()), (0, "all done\n"), "held {held}: {ran:?}");
        assert_eq!(after.count(), 4 - held, "no finished call is sent again");
        assert_eq!(program.read("out/b.txt"), "two\n");
        let verified = program.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{verified:?}");
    }
}

/// From outside: the process dies at its n-th call of one kind, for a sample of all n.
fn killed_at_some(call: &str) {
    let server = ModelServer::start(answer_by_progress());
    let calm = Program::with(&server).file("a.txt", "alpha");
    assert_eq!(finish(start_turn(&calm)).code, 0);
    let calls = server.count();
    let turns = |program: &Program| program.events().iter().filter(|event| *event == "turn_ended").count();
    let words = ["-p", "do it", "--permission-mode", "acceptEdits"];
    let traced = Program::with(&server).file("a.txt", "alpha");
    let mut killed = 0;
    for n in kill_points(call, |prefix| traced.prefixed(prefix, &words)) {
        let server = ModelServer::start(answer_by_progress());
        let program = Program::with(&server).file("a.txt", "alpha");
        let prefix = killed_at(call, n);
        let prefix: Vec<&str> = prefix.iter().map(String::as_str).collect();
        if finish(program.prefixed(&prefix, &words).spawn().unwrap()).code == 0 {
            // Threads share their work in another way each time.
            continue;
        }
        killed += 1;
        // Killed before the words were acknowledged, there is nothing to go on with; the user says them again.
        let ran = program.run(&GO_ON);
        let ran = if ran.code == 0 && ran.out == "all done\n" { ran } else { finish(start_turn(&program)) };
        assert_eq!((ran.code, ran.out.as_str()), (0, "all done\n"), "{call} {n}: {ran:?}");
        assert_eq!(program.read("out/b.txt"), "two\n", "{call} {n}");
        assert!(server.count() <= calls + 1, "{call} {n}: {} calls, {calls} undisturbed", server.count());
        assert_eq!(turns(&program), 1, "{call} {n}");
        assert_eq!(program.run(&["audit", "verify"]).code, 0, "{call} {n}");
    }
    assert!(killed > 1, "strace never fired");
}

#[test]
fn killed_at_a_write_it_comes_to_the_same_end() {
    killed_at_some("pwrite64");
}

#[test]
fn killed_at_a_sync_it_comes_to_the_same_end() {
    killed_at_some("fsync");
}

#[test]
fn killed_at_a_send_it_comes_to_the_same_end() {
    killed_at_some("writev");
}

#[test]
fn killed_at_a_receipt_it_comes_to_the_same_end() {
    killed_at_some("recvfrom");
}

/// Answers by how far the conversation is, so that a repeated call gets the same answer.
fn answer_by_progress() -> Script {
    Script::new().when(|request| {
        replies().into_iter().nth(match request.tool_results() {
            0 => 0,
            2 => 1,
            3 => 2,
            _ => 3,
        })
    })
}

#[test]
fn sigterm_parks_and_the_turn_goes_on() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("hi there").gate_after(4, &gate), Reply::text("hi there")]);
    let program = Program::with(&server);
    let child = program.start(&["-p", "hello"]);
    gate.wait_reached();
    signal(&child, "TERM");
    let ran = finish(child);
    assert_eq!((ran.code, ran.out.as_str()), (143, ""), "{ran:?}");
    assert!(ran.err.contains("go on with `max-team -r ses_"), "{ran:?}");
    assert_eq!(program.events().last().map(String::as_str), Some("llm_intent"), "parked, not ended");
    let ran = program.run(&GO_ON);
    assert_eq!((ran.code, ran.out.as_str()), (0, "hi there\n"), "{ran:?}");
}

#[test]
fn ctrl_c_pauses_the_run_as_a_kill_does() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("half of it").chunk(5).gate_after(5, &gate), Reply::text("the rest")]);
    let program = Program::with(&server);
    let mut child = program.start(&["-p", "hello", "--output-format", "stream-json", "--include-partial-messages"]);
    // What has left the server may not have been read yet.
    let out = heard(&mut child, "half");
    signal(&child, "INT");
    let ran = finish(child);
    drop(out);
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.err.contains("go on with `max-team -r ses_"), "{ran:?}");
    assert_eq!(program.events().last().map(String::as_str), Some("llm_intent"), "paused, not ended");
    let ran = program.run(&GO_ON);
    assert_eq!((ran.code, ran.out.as_str()), (0, "the rest\n"), "{ran:?}");
}

/// Reads until a line has these words. What is still to come can be read from what it hands back, together with the line.
fn heard(child: &mut Child, words: &str) -> (BufReader<ChildStdout>, String) {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "`{words}` never came");
    }
    (out, line)
}

#[test]
fn retries_survive_a_crash_with_their_wait() {
    let server = ModelServer::start([Reply::status(429).retry_after(1), Reply::text("hi")]);
    let program = Program::with(&server);
    let mut child = program.start(&["-p", "hello", "--output-format", "stream-json"]);
    // It is announced after its commit.
    let (_, line) = heard(&mut child, "api_retry");
    assert!(line.contains("\"attempt\":1") && line.contains("\"max_retries\":3"), "{line}");
    kill(&mut child);
    let ran = program.run(&GO_ON);
    assert_eq!((ran.code, ran.out.as_str(), server.count()), (0, "hi\n", 2), "{ran:?}");
}

/// Nobody could be asked, and the process died before the model heard of it: the next one tells it, and goes on.
#[test]
fn a_refusal_is_told_after_a_kill() {
    let gate = Gate::new();
    let server = ModelServer::start([
        Reply::new().tool("t1", "write_file", json!({"path": "b.txt", "content": "x"})),
        Reply::text("not written").gate_before(&gate),
        Reply::text("not written"),
    ]);
    let program = Program::with(&server);
    let mut child = program.start(&["-p", "write", "--permission-mode", "dontAsk"]);
    gate.wait_reached();
    kill(&mut child);
    gate.open();
    let ran = program.run(&["-c", "-p", ""]);
    assert_eq!(ran.out, "not written\n", "{ran:?}");
}

/// Parking does not wait for a retry to come due.
#[test]
fn a_graceful_stop_while_waiting_for_a_retry_is_quick() {
    let server = ModelServer::start([Reply::status(429).retry_after(60), Reply::text("late")]);
    let program = Program::with(&server);
    let mut child = program.start(&["-p", "hello", "--output-format", "stream-json"]);
    drop(heard(&mut child, "api_retry"));
    let started = std::time::Instant::now();
    signal(&child, "TERM");
    assert_eq!(finish(child).code, 143);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
