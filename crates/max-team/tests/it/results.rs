//! How a run ends: the exit code, the `result` object and standard error agree in every ending and every format.

use max_team_testkit::{Gate, ModelServer, Reply, Script};
use serde_json::{Value, json};

use crate::plans::{news, plan, task, voice};
use crate::program::{Program, Ran};
use crate::teammates::{is, spawn};

const FORMATS: [&str; 3] = ["text", "json", "stream-json"];
/// The fields of every `result`, as documented in `docs/en/reference/output.md`.
const FIELDS: [&str; 24] = [
    "answered_before",
    "duration_api_ms",
    "duration_ms",
    "error",
    "exit_code",
    "is_error",
    "modelUsage",
    "moved_files",
    "num_turns",
    "permission_denials",
    "plan",
    "question",
    "result",
    "session_id",
    "stop_reason",
    "stopped",
    "structured_output",
    "subtype",
    "terminal_reason",
    "total_cost_usd",
    "ttft_ms",
    "type",
    "unknown_cost_usd",
    "usage",
];
const ERROR: &str = "error_during_execution";
const SCHEMA: &str = r#"{"type":"object","properties":{"score":{"type":"integer"}},"required":["score"]}"#;
const GO_ON: [&str; 3] = ["-c", "-p", ""];

/// The last line, which is the result.
fn result(ran: &Ran) -> Value {
    let last = ran.out.trim_end().lines().last().unwrap_or_else(|| panic!("no result: {ran:?}"));
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Runs in each format; in the two that programs read, the object says what the code says, in full.
fn agrees(
    name: &str,
    program: impl Fn() -> (ModelServer, Program),
    words: &[&str],
    (code, subtype, reason): (i32, &str, &str),
) {
    for format in FORMATS {
        let (_server, program) = program();
        let ran = program.run(&[words, &["--output-format", format]].concat());
        assert_eq!(ran.code, code, "{name}, {format}: {ran:?}");
        if format == "text" {
            continue;
        }
        let result = result(&ran);
        let told = (&result["exit_code"], &result["is_error"], &result["subtype"], &result["terminal_reason"]);
        let want = (&json!(code), &json!(code != 0), &json!(subtype), &json!(reason));
        assert_eq!(told, want, "{name}, {format}: {ran:?}");
        assert_eq!(result["error"].is_string(), code != 0, "{name}, {format}: {ran:?}");
        let mut fields: Vec<&str> = result.as_object().unwrap().keys().map(String::as_str).collect();
        fields.retain(|field| *field != "uuid");
        fields.sort_unstable();
        assert_eq!(fields, FIELDS, "{name}, {format}");
    }
}

fn solo(replies: &[Reply]) -> (ModelServer, Program) {
    let server = ModelServer::start(replies.to_vec());
    let program = Program::with(&server).file("a.txt", "x");
    (server, program)
}

/// Its name, what the model says, further flags, and the code, subtype and reason that it ends with.
type Ending<'a> = (&'a str, Vec<Reply>, &'a [&'a str], (i32, &'a str, &'a str));

#[test]
fn a_turn_ends_with_one_code_and_one_result() {
    let say = |text: &str| Reply::text(text);
    let look = || Reply::new().tool("t1", "read_file", json!({"path": "a.txt"}));
    let write = || Reply::new().tool("t1", "write_file", json!({"path": "b.txt", "content": "b"}));
    let turns = ["--max-turns", "1"];
    let dont_ask = ["--permission-mode", "dontAsk"];
    let rows: [Ending; 10] = [
        ("answered", vec![say("hi")], &[], (0, "success", "answered")),
        ("truncated", vec![say("ha").stop("max_tokens")], &[], (7, ERROR, "truncated")),
        ("refused", vec![say("no").stop("refusal")], &[], (1, ERROR, "refused")),
        ("empty", vec![say(""), say(""), say("")], &[], (1, ERROR, "empty")),
        ("rounds", vec![look(), say("never")], &turns, (7, "error_max_turns", "rounds")),
        ("budget", vec![say("never")], &["--max-budget-usd", "0.000001"], (6, "error_max_budget_usd", "budget")),
        ("key refused", vec![Reply::status(401)], &[], (4, ERROR, "failed")),
        ("asks", vec![write(), say("never")], &[], (5, "needs_approval", "needs_approval")),
        ("denied", vec![write(), say("I could not.")], &dont_ask, (0, "success", "answered")),
        (
            "unstructured",
            vec![say("no"), say("no"), say("no")],
            &["--json-schema", SCHEMA],
            (7, "error_max_structured_output_retries", "unstructured"),
        ),
    ];
    for (name, replies, words, want) in rows {
        agrees(name, || solo(&replies), &[&["-p", "go"], words].concat(), want);
    }
}

#[test]
fn a_run_that_cannot_begin_has_a_whole_result() {
    let alone = || (ModelServer::start([Reply::text("never")]), Program::alone());
    agrees("no key", alone, &["-p", "hi"], (4, ERROR, "no_key"));
    let bad = || {
        let (server, program) = solo(&[Reply::text("never")]);
        (server, program.file(".max-team/config.yaml", "llm: [\n"))
    };
    agrees("bad settings", bad, &["-p", "hi"], (3, ERROR, "config"));
    let fine = || solo(&[Reply::text("never")]);
    agrees(
        "no such model price",
        fine,
        &["-p", "hi", "--model", "mine", "--max-budget-usd", "1"],
        (3, ERROR, "config"),
    );
    agrees("no budget", fine, &["-p", "hi", "--max-budget-usd", "0"], (6, "error_max_budget_usd", "budget"));
    agrees("no number", fine, &["-p", "hi", "--max-turns", "many"], (2, ERROR, "usage"));
    agrees("bad schema", fine, &["-p", "hi", "--json-schema", "{"], (2, ERROR, "usage"));
    agrees("no session", fine, &GO_ON, (2, ERROR, "usage"));
    agrees("no plan file", fine, &["run", "none.yaml", "--yes"], (3, ERROR, "config"));
}

#[test]
fn a_plan_ends_with_one_code_and_one_result() {
    let tasks = || json!([{ "id": "a", "title": "a", "agent": "ada", "description": "Look.", "retry": 0 }]);
    let served = |reply: &Reply| {
        let server = ModelServer::start(
            Script::new()
                .when(voice(task("a"), vec![reply.clone()]))
                .on(news("is over:"), Reply::text("That is how it ended."))
                .on(
                    news("has failed"),
                    Reply::new().tool("u", "task_update", json!({ "task_id": "a", "decision": "give_up" })),
                )
                .on(news("please"), plan(tasks()))
                .on(|_| true, Reply::text("Noted.")),
        );
        let program = Program::team(&server);
        (server, program)
    };
    let (fine, broken) = (Reply::text("Nothing."), Reply::text("no").stop("refusal"));
    let (go, never) = (["-p", "look, please"], ["-p", "look, please", "--approve", "never"]);
    agrees("waits", || served(&fine), &go, (5, "needs_approval", "needs_approval"));
    agrees("done", || served(&fine), &never, (0, "success", "answered"));
    agrees("failed", || served(&broken), &never, (1, ERROR, "failed"));
}

/// `-c -p ""` where nothing is open repeats the answer with the outcome that it had.
#[test]
fn a_repeated_answer_keeps_its_outcome() {
    let write = || Reply::new().tool("t1", "write_file", json!({"path": "b.txt", "content": "b"}));
    let (server, program) = solo(&[write(), Reply::text("I could not."), Reply::text("Four.")]);
    let dont_ask = ["--permission-mode", "dontAsk"];
    let first = program.run(&[&["-p", "write", "--output-format", "json"], &dont_ask[..]].concat());
    let again = program.run(&[&GO_ON[..], &["--output-format", "json"]].concat());
    let known = |ran: &Ran| ["is_error", "subtype", "terminal_reason", "result"].map(|name| ran.json()[name].clone());
    assert_eq!((again.code, known(&again)), (first.code, known(&first)), "{again:?}");
    assert_eq!((again.code, &again.json()["answered_before"]), (0, &json!(true)), "{again:?}");
    assert_eq!(again.json()["permission_denials"], first.json()["permission_denials"], "{again:?}");
    // What was asked and answered since has an outcome of its own.
    assert_eq!(program.run(&["-c", "-p", "2+2?"]).code, 0);
    let again = program.run(&GO_ON);
    assert_eq!((again.code, again.out.as_str(), server.count()), (0, "Four.\n", 3), "{again:?}");
}

/// The same of a plan: one that failed or was stopped is no success the second time.
#[test]
fn a_plan_that_failed_or_was_stopped_is_no_success_the_second_time() {
    let tasks = json!([{ "id": "a", "title": "a", "agent": "ada", "description": "Look.", "retry": 0 }]);
    let gate = Gate::new();
    let held = Reply::text("Nothing.").gate_before(&gate);
    let stopped = {
        let server = ModelServer::start(
            Script::new().when(voice(task("a"), vec![held])).on(news("please"), plan(tasks.clone())),
        );
        let program = Program::team(&server);
        let child = program.start(&["-p", "look, please", "--approve", "never"]);
        gate.wait_reached();
        assert_eq!(program.run(&["stop", "--all"]).code, 0);
        gate.open();
        assert_eq!(crate::program::finish(child).code, 130);
        let again = program.run(&[&GO_ON[..], &["--output-format", "json"]].concat());
        (again.code, again.json()["is_error"].clone(), again.json()["terminal_reason"].clone())
    };
    assert_eq!(stopped, (130, json!(true), json!("stopped")));

    let server = ModelServer::start(
        Script::new()
            .when(voice(task("a"), vec![Reply::text("no").stop("refusal")]))
            .on(news("is over:"), Reply::text("It failed."))
            .on(
                news("has failed"),
                Reply::new().tool("u", "task_update", json!({ "task_id": "a", "decision": "give_up" })),
            )
            .on(news("please"), plan(tasks))
            .on(|_| true, Reply::text("Noted.")),
    );
    let program = Program::team(&server);
    let first = program.run(&["-p", "look, please", "--approve", "never"]);
    assert_eq!((first.code, first.out.as_str()), (1, "It failed.\n"), "{first:?}");
    let again = program.run(&GO_ON);
    assert_eq!((again.code, again.out.as_str()), (1, "It failed.\n"), "{again:?}");
    assert!(again.err.contains("plan: failed"), "{again:?}");
}

/// A mode that asks nobody says which call it refused, and why.
#[test]
fn a_refusal_is_explained_on_standard_error() {
    let write = || Reply::new().tool("t1", "write_file", json!({"path": "b.txt", "content": "b"}));
    for (mode, lang, words) in [
        ("dontAsk", "en", "refused `write_file b.txt` of max: permission mode `dontAsk`; a rule (--allowed-tools)"),
        ("plan", "en", "refused `write_file b.txt` of max: permission mode `plan`"),
        ("dontAsk", "zh", "已拒绝 max 的 `write_file b.txt`"),
    ] {
        let (_server, program) = solo(&[write(), Reply::text("I could not.")]);
        let ran = program.run(&["-p", "write", "--permission-mode", mode, "--lang", lang]);
        assert!(ran.code == 0 && ran.err.contains(words), "{ran:?}");
    }
    let (_server, program) = solo(&[write(), Reply::text("I could not.")]);
    let ran = program.run(&["-p", "write", "--permission-mode", "dontAsk", "--output-format", "json"]);
    let denial = &ran.json()["permission_denials"][0];
    let told = [&denial["tool_name"], &denial["tool_use_id"], &denial["target"], &denial["reason"]];
    assert_eq!(told, [&json!("write_file"), &json!("t1"), &json!("b.txt"), &json!("permission mode `dontAsk`")]);
}

/// A teammate whose next call cannot be paid is gone on with once there is more, and nothing was acted on before.
#[test]
fn a_teammate_without_money_goes_on_with_more() {
    let server = ModelServer::start(Script::new().when(|request| {
        Some(if is(request, "alice") {
            Reply::text(if request.contains("use tabs") { "Tabs it is." } else { "The schema is made." })
        } else if request.tool_results() == 0 {
            Reply::new().tool("s1", "spawn_teammate", spawn("alice", "Make a schema."))
        } else {
            Reply::text("Noted.")
        })
    }));
    let program = Program::team(&server);
    assert_eq!(program.run(&["-p", "go"]).code, 0);
    assert_eq!(program.run(&["send", "alice", "use tabs"]).code, 0);
    let state = || {
        let envelopes = program.run(&["mail", "list", "--json"]).json();
        let envelope = envelopes.as_array().unwrap().iter().find(|envelope| envelope.to_string().contains("use tabs"));
        envelope.unwrap()["state"].clone()
    };
    let calls = server.count();
    let poor = [&GO_ON[..], &["--max-budget-usd", "0.000001", "--output-format", "json"]].concat();
    for _ in 0..2 {
        let ran = program.run(&poor);
        assert_eq!((ran.code, &ran.json()["subtype"]), (6, &json!("error_max_budget_usd")), "{ran:?}");
        assert_eq!((server.count(), state()), (calls, json!("read")), "no model was told");
    }
    let ran = program.run(&[&GO_ON[..], &["--max-budget-usd", "5"]].concat());
    assert_eq!((ran.code, state()), (0, json!("acted")), "{ran:?}");
    assert!(server.requests().iter().any(|request| is(request, "alice") && request.contains("use tabs")));
}
