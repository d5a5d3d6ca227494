//! A model server that is away, answers without usage, or is cut off: what a plan does, and what is charged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use max_team_testkit::{Gate, ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::chat::Terminal;
use super::plans::{news, plan, task};
use super::program::{Program, finish, kill, signal};

const AT_ONCE: &str = "llm:\n  max_retries: 0\n";

/// A lead with a plan of two tasks, one after the other; the first cannot be answered while the server is away.
fn team(is_away: &Arc<AtomicBool>, gone: Reply) -> Script {
    let tasks = json!([
        { "id": "a", "title": "a", "agent": "ada", "description": "A" },
        { "id": "b", "title": "b", "agent": "ada", "description": "B", "depends_on": ["a"] },
    ]);
    let away = Arc::clone(is_away);
    Script::new()
        .when(move |request| (task("a")(request) && away.load(Ordering::SeqCst)).then(|| gone.clone()))
        .on(task("a"), Reply::text("A is done."))
        .on(task("b"), Reply::text("B is done."))
        .on(news("is over:"), Reply::text("Both are done."))
        .on(|_| true, plan(tasks))
}

fn held(program: &Program) -> Vec<Value> {
    program.journal().into_iter().filter(|entry| entry["event"] == "task_held").collect()
}

#[test]
fn a_plan_is_parked_while_the_server_is_away_and_goes_on_with_the_next_run() {
    for gone in [Reply::status(503), Reply::status(500), Reply::text("never").drop_connection()] {
        let away = Arc::new(AtomicBool::new(true));
        let server = ModelServer::start(team(&away, gone.clone()));
        let program = Program::team(&server).file(".max-team/config.yaml", AT_ONCE);
        let parked = program.run(&["-p", "please", "--approve", "never"]);
        assert_eq!(parked.code, 1, "{gone:?}: {parked:?}");
        assert!(parked.err.contains("is parked") && parked.err.contains("`max-team -c`"), "{gone:?}: {parked:?}");
        assert!(parked.err.contains("anthropic"), "the server is named: {parked:?}");
        assert_eq!(held(&program).len(), 1, "{gone:?}");
        let shown = program.run(&["plans", "show"]);
        assert!(shown.out.contains("a: waits for the model server"), "{gone:?}: {shown:?}");

        // It is still away: nothing is lost by asking once more.
        let again = program.run(&["-c", "-p", "", "--approve", "never", "--output-format", "json"]);
        assert_eq!((again.code, &again.json()["is_error"]), (1, &json!(true)), "{gone:?}: {again:?}");
        away.store(false, Ordering::SeqCst);
        let ran = program.run(&["-c", "-p", "", "--approve", "never"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "Both are done.\n"), "{gone:?}: {ran:?}");
        assert_eq!(program.run(&["audit", "verify"]).code, 0);
    }
}

#[test]
fn a_parked_plan_goes_on_by_itself_and_survives_a_kill() {
    let away = Arc::new(AtomicBool::new(true));
    let server = ModelServer::start(team(&away, Reply::status(503)));
    let program = Program::team(&server).file(".max-team/config.yaml", AT_ONCE);
    let mut terminal = Terminal::watched(&program, &["--approve", "never"]);
    terminal.wait("or give a task");
    terminal.keys(&["please", "Enter"]);
    terminal.wait("waits for the model server");
    terminal.kill();
    drop(terminal);
    std::fs::remove_file(program.home().with_file_name("screen")).unwrap();

    let mut terminal = Terminal::watched(&program, &["-c", "--approve", "never"]);
    terminal.wait("waits for the model server");
    away.store(false, Ordering::SeqCst);
    terminal.wait("Both are done.");
}

#[test]
fn a_lead_reports_an_outage_after_its_retries() {
    let server = ModelServer::start(Script::new().on(|_| true, Reply::status(503)));
    let program = Program::team(&server).file(".max-team/config.yaml", AT_ONCE);
    let ran = program.run(&["-p", "please"]);
    assert_eq!((ran.code, server.count()), (1, 1), "{ran:?}");
}

fn cost(program: &Program) -> (f64, f64) {
    let told = program.run(&["cost", "--json"]).json();
    let total = |key: &str| {
        let rows = told.as_array().cloned().unwrap_or_else(|| told["rows"].as_array().cloned().unwrap_or_default());
        rows.iter().filter_map(|row| row[key].as_f64()).sum::<f64>()
    };
    (total("cost_usd"), total("unknown_cost_usd"))
}

#[test]
fn an_answer_without_usage_is_charged_by_an_estimate() {
    let server = ModelServer::start([Reply::text("word ".repeat(2_000)).usage(0, 0, 0, 0)]);
    let program = Program::with(&server);
    assert_eq!(program.run(&["-p", "hello"]).code, 0);
    let (all, estimated) = cost(&program);
    assert!(all > 0.03 && all < 0.2, "2,000 words and the instructions cost about that: {all}");
    assert!((all - estimated).abs() < 1e-9, "all of it is an estimate: {all} {estimated}");
    // It counts against a budget: there is nothing left for a second one.
    let server = ModelServer::start([
        Reply::new().tool("t", "list_dir", json!({})).say("word ".repeat(2_000)).usage(0, 0, 0, 0),
        Reply::text("more"),
        Reply::text("more"),
    ]);
    let ran = Program::with(&server).run(&["-p", "hello", "--max-budget-usd", "0.08"]);
    assert_eq!(ran.code, 6, "{ran:?}");
}

#[test]
fn a_call_that_is_cut_off_is_charged_by_what_had_come() {
    for how in ["kill", "interrupt"] {
        let gate = Gate::new();
        let long = Reply::text("word ".repeat(100)).chunk(50).gate_after(6, &gate);
        let server = ModelServer::start([long, Reply::text("again")]);
        let program = Program::with(&server);
        let mut child = program.start(&["-p", "hello"]);
        gate.wait_reached();
        if how == "kill" {
            kill(&mut child);
        } else {
            signal(&child, "INT");
            finish(child);
        }
        gate.open();
        // The next process settles the call that was cut off.
        assert_eq!(program.run(&["-c", "-p", ""]).code, 0);
        let (all, estimated) = cost(&program);
        assert!(estimated > 0.0 && all < 0.1, "{how}: {all} {estimated}: far less than the half dollar set aside");
    }
}
