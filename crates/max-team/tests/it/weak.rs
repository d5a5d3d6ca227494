//! Weak models: wrong tool names, missing fields, prose instead of calls, endless repeats. Each ends with the work done or with a
//! failure that says why.

use max_team_testkit::{ModelServer, Recorded, Reply, Script};
use serde_json::json;

use crate::plans::{plan, task};
use crate::program::Program;
use crate::teammates::{is, spawn};

fn is_lead(request: &Recorded) -> bool {
    request.user_texts().first().is_some_and(|text| text.contains("please"))
}

/// Everything that a request tells its model, tool results included.
fn told(request: &Recorded) -> String {
    request.body["messages"].to_string()
}

/// A member that never finds the tool that writes, and a lead that answers a failure with prose: the plan fails and says why.
#[test]
fn a_member_with_wrong_tools_and_a_lead_with_only_words_fail_aloud() {
    let tasks = json!([{ "id": "impl", "title": "impl", "agent": "leo", "description": "Write a.txt.",
        "outputs": ["a.txt"], "retry": 1 }]);
    let server = ModelServer::start(Script::new().when(move |request| {
        Some(if task("impl")(request) {
            match request.tool_results() % 2 {
                0 => Reply::new().tool("w", "create_document", json!({ "file": "a.txt" })),
                _ => Reply::text("I would write a.txt now."),
            }
        } else if is_lead(request) && request.user_texts().len() == 1 {
            plan(tasks.clone())
        } else {
            Reply::text("I am sorry to hear that.")
        })
    }));
    let program = Program::team(&server);
    let ran = program.run(&["-p", "write it, please", "--approve", "never"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(!ran.err.trim().is_empty(), "the reason is said: {ran:?}");
    let requests = server.requests();
    let asked = requests.iter().find(|request| told(request).contains("there is no tool `create_document`"));
    assert!(asked.is_some(), "the member is told what there is");
    let failed = requests.iter().find(|request| is_lead(request) && told(request).contains("has failed")).unwrap();
    assert!(told(failed).contains("a.txt"), "the lead is told why: {}", told(failed));
    assert!(server.count() <= 20, "{} calls", server.count());
}

/// The same call for ever: the turn ends, and the answer says that there is none.
#[test]
fn a_lead_that_repeats_itself_is_stopped_aloud() {
    let again = || Reply::new().tool("q", "task_query", json!({ "task_id": "x" }));
    let server = ModelServer::start(Script::new().when(move |_| Some(again())));
    let program = Program::team(&server);
    let ran = program.run(&["-p", "do it, please", "--output-format", "json"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    let result = ran.json();
    assert!(result["is_error"] == true && !result["error"].as_str().unwrap_or_default().is_empty(), "{result}");
    assert!(server.count() <= 20, "{} calls", server.count());
}

/// A lead that leaves out what is needed is told which field, and mends it.
#[test]
fn missing_fields_are_named() {
    let server = ModelServer::start(Script::new().when(|request| {
        Some(match request.tool_results() {
            0 => Reply::new().tool("s", "submit_plan", json!({ "goal": "x", "tasks": [{ "title": "y" }] })),
            1 => Reply::new().tool("s", "spawn_teammate", json!({ "role": "r" })),
            2 => Reply::new().tool("s", "send_message", json!({ "message": "hi" })),
            3 => Reply::new().tool("s", "agent", json!({ "description": "look" })),
            4 => Reply::new().tool("s", "task", json!({ "arguments": {} })),
            5 => Reply::new().tool("s", "task_update", json!({})),
            _ => Reply::text("I give up."),
        })
    }));
    let program = Program::team(&server);
    let ran = program.run(&["-p", "do it, please"]);
    assert_eq!(ran.out.trim(), "I give up.", "{ran:?}");
    let last = told(server.requests().last().unwrap());
    for wanted in [
        "`agent` is missing; the members are",
        "\\\"name\\\" is a required property",
        "\\\"to\\\" is a required property",
        "\\\"prompt\\\" is a required property",
        "name the agent to call",
        "\\\"task_id\\\" is a required property",
    ] {
        assert!(last.contains(wanted), "{wanted}: {last}");
    }
}

/// A teammate whose model says nothing is a failure that its lead hears of.
#[test]
fn a_teammate_that_says_nothing_is_reported() {
    let server = ModelServer::start(Script::new().when(|request| {
        Some(if is(request, "alice") {
            Reply::new()
        } else if request.tool_results() == 0 {
            Reply::new().tool("s1", "spawn_teammate", spawn("alice", "Count."))
        } else if told(request).contains("the model said nothing") {
            Reply::text("Alice said nothing.")
        } else {
            Reply::text("She is at it.")
        })
    }));
    let program = Program::team(&server);
    let ran = program.run(&["-p", "count, please"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Alice said nothing.\n"), "{ran:?}");
}
