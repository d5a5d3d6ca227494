//! Stored bodies of each kind.

use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::event::TurnOutcome;
use crate::policy::DecidedBy;

fn envelope(kind: MessageKind, body: impl Into<Value>) -> Envelope {
    Envelope::new(EnvelopeId::new(Uuid::nil()), "agent/a", "agent/b", kind, body, 0)
}

#[test]
fn bodies_of_earlier_releases_are_read() {
    let given = json!({ "reply_to": "agent/b", "task": "2.0", "attempt": 1 });
    let result = envelope(
        MessageKind::TaskResult,
        json!({
            "assignment": given, "call": "2.0", "ok": false, "is_error": true, "text": "no", "output": "", "error": "late",
            "end": { "broken": { "detail": "x" } }, "spent": { "nano": 1, "usage": { "input": 3, "output": 4 }, "ms": 2 }, "ms": 2, "left": {},
            "own": false, "by": "ann", "structured": null, "acted": true, "mate": "ann", "stopped": false, "later": [1],
        }),
    );
    let Body::Result(read) = Body::read(&result) else { unreachable!() };
    let work = &read.work;
    assert_eq!((read.text, read.teammate, work.by, work.error, work.ms), ("no", Some("ann"), "ann", "late", Some(2)));
    assert_eq!(work.end, Some(TurnOutcome::Broken { detail: "x".to_owned() }));
    assert_eq!(work.assignment.as_ref().map(|given| given.task.as_str()), Some("2.0"));
    assert!(work.is_error && work.structured.is_none() && !read.stopped);
    let task = envelope(MessageKind::TaskAssign, json!({ "text": "go", "assignment": given, "budget_nano": null }));
    let Body::Task(read) = Body::read(&task) else { unreachable!() };
    assert_eq!((read.text, read.assignment.is_some(), read.budget_nano), ("go", true, None));
    let stop = envelope(MessageKind::Shutdown, json!({ "by": "me at terminal", "who": null, "stopped": true }));
    let Body::Stop(read) = Body::read(&stop) else { unreachable!() };
    assert_eq!((read.by, read.who, read.stopped, read.end), ("me at terminal", None, true, false));
    let input = envelope(MessageKind::UserInput, json!({ "text": "hi", "by": "me", "wait": true }));
    assert_eq!(Body::read(&input), Body::Input(UserInput { text: "hi", by: "me", wait: true, ..UserInput::default() }));
    assert_eq!(Body::read(&envelope(MessageKind::Text, Value::Null)), Body::Words(Words::default()));
}

#[test]
fn a_field_of_another_type_is_left_out() {
    let old = envelope(MessageKind::TaskResult, json!({ "text": "yes", "corrects": true, "by": 7, "ok": true }));
    let read = old.result();
    assert_eq!((read.text, read.work.by, read.work.ok, read.work.corrects), ("yes", "", true, None));
}

#[test]
fn a_body_is_read_as_it_was_written() {
    let work =
        Work { by: "ann", ok: true, end: Some(TurnOutcome::Answered), unknown: vec!["a".into()], ..Work::default() };
    let result =
        Body::Result(Box::new(TaskResult { text: "yes", teammate: Some("ann"), work, ..TaskResult::default() }));
    assert_eq!(Body::read(&envelope(MessageKind::TaskResult, result.clone())), result);
    let stop = Body::Stop(Stop { by: "max", who: Some(DecidedBy::Lead("max".into())), end: true, ..Stop::default() });
    assert_eq!(Body::read(&envelope(MessageKind::Shutdown, stop.clone())), stop);
}

/// Bodies as journals have them: each is read into the fields of its kind and written again without a loss.
#[test]
#[expect(clippy::too_many_lines, reason = "one line for each form of a stored body")]
fn a_stored_body_of_each_kind_is_read_whole() {
    let env = "env_01990000000070008000000000000001";
    let ask = "ask_01990000000070008000000000000002";
    let plan = "pln_01990000000070008000000000000003";
    let session = "ses_01990000000070008000000000000004";
    let turn = "trn_01990000000070008000000000000005";
    let given = json!({ "reply_to": "plan/p", "plan": plan, "task": "a", "attempt": 1 });
    let answer = json!({ "allow": true, "always": false, "until": "session", "by": { "person": "me" } });
    let person = json!({ "door": "terminal", "user": "me", "role": "owner" });
    let task = json!({ "id": "a", "agent": "leo", "description": "x", "retry": 1 });
    let forecast = json!({
        "likely_nano": 1, "likely_tokens": 2, "likely_ms": 3, "calls_likely": 4, "agents": 1, "unpriced": false, "samples": 0,
    });
    let proposed = json!({
        "plan": plan, "session": session, "lead": "agt_01990000000070008000000000000006", "draft": { "goal": "g", "tasks": [task] },
        "forecast": forecast, "approve": "plan", "max_parallel": 2, "by": "max",
    });
    let grant = json!({ "deed": "execute", "until": "session" });
    let teammate = json!({
        "name": "ann", "role": "r", "prompt": "p", "type": null, "model": null, "mode": "plan", "plan_first": false, "color": null,
        "isolation": null, "claims": null,
    });
    let bodies = [
        (MessageKind::UserInput, "input", json!({ "text": "hi" })),
        (MessageKind::UserInput, "input", json!({ "text": "hi", "wait": true })),
        (MessageKind::UserInput, "input", json!({ "text": "hi", "all": true })),
        (MessageKind::UserInput, "input", json!({ "text": "hi", "by": "me at terminal", "session": session })),
        (MessageKind::Text, "words", json!({ "text": "hi", "from": "ann", "color": "blue" })),
        (MessageKind::Text, "words", json!({ "text": "(note)", "from": "ann", "about": env, "aside": true })),
        (MessageKind::Text, "words", json!({ "text": "no", "asked": env, "ask": true })),
        (
            MessageKind::TaskAssign,
            "task",
            json!({ "text": "go", "assignment": given, "budget_nano": 5, "budget_tokens": 6 }),
        ),
        (
            MessageKind::TaskAssign,
            "task",
            json!({ "text": "go on", "assignment": given, "by": "me at terminal", "session": session }),
        ),
        (MessageKind::TaskAssign, "task", json!({ "text": "yours", "from": "max", "task": "3" })),
        (
            MessageKind::TaskResult,
            "result",
            json!({
                "assignment": given, "call": "a", "by": "leo", "ok": true, "text": "yes", "output": "yes", "end": "answered",
                "ms": 2, "acted": false, "corrects": "agent/m", "checked": "passed", "unknown": ["make"],
            }),
        ),
        (
            MessageKind::TaskResult,
            "result",
            json!({ "mate": "ann", "from": "ann", "reason": "done", "text": "yes", "session": session }),
        ),
        (
            MessageKind::IdleNotification,
            "result",
            json!({ "mate": "ann", "from": "ann", "reason": "done", "turn": turn }),
        ),
        (MessageKind::Shutdown, "stop", json!({ "by": "me at terminal", "stopped": true, "since": turn })),
        (MessageKind::Shutdown, "stop", json!({ "by": "me at terminal", "task": "a" })),
        (MessageKind::Shutdown, "stop", json!({ "by": "plan p", "replaced_by": plan })),
        (MessageKind::ShutdownRequest, "stop", json!({ "by": "me at terminal", "end": true })),
        (MessageKind::ShutdownRequest, "stop", json!({ "text": "done", "from": "max" })),
        (MessageKind::ShutdownRejected, "words", json!({ "text": "busy", "from": "ann", "color": "blue" })),
        (
            MessageKind::ShutdownApproved,
            "ended",
            json!({ "text": "over", "from": "ann", "by": "max", "forced": false }),
        ),
        (
            MessageKind::TeammateTerminated,
            "ended",
            json!({ "text": "over", "from": "ann", "by": "me", "forced": true }),
        ),
        (MessageKind::PermissionRequest, "question", json!({ "assignment": given, "question": ask })),
        (MessageKind::PermissionRequest, "question", json!({ "assignment": given, "outage": "refused" })),
        (MessageKind::PermissionRequest, "question", json!({ "from": "ann", "tool": "run_shell", "target": "make" })),
        (
            MessageKind::SandboxPermissionRequest,
            "question",
            json!({ "from": "ann", "tool": "fetch", "target": "example.org" }),
        ),
        (MessageKind::PermissionResponse, "answer", json!({ "question": ask, "answer": answer, "key": env })),
        (MessageKind::PermissionResponse, "answer", json!({ "assignment": given, "question": ask })),
        (MessageKind::PermissionResponse, "answer", json!({ "assignment": given })),
        (MessageKind::SandboxPermissionResponse, "answer", json!({ "question": ask, "answer": answer })),
        (
            MessageKind::NeedClarify,
            "clarification",
            json!({ "assignment": given, "question": "which?", "call": "1.0", "from": "leo" }),
        ),
        (MessageKind::NeedClarify, "words", json!({ "text": "leo asks: which?", "plan": plan })),
        (MessageKind::TaskFailed, "words", json!({ "text": "a failed", "plan": plan })),
        (MessageKind::AllTasksDone, "words", json!({ "text": "over", "plan": plan, "stopped": true })),
        (
            MessageKind::TaskUpdate,
            "update",
            json!({ "task": "a", "says": { "answer": "this" }, "by": "max", "note": "n" }),
        ),
        (MessageKind::TaskUpdate, "update", json!({ "task": "a", "says": { "rule": "skip" }, "by": "max" })),
        (MessageKind::TaskUpdate, "update", json!({ "task": "a", "says": "cancel", "by": "max" })),
        (MessageKind::TaskUpdate, "update", json!({ "continue": true, "by": "me at terminal" })),
        (MessageKind::PlanApprovalRequest, "proposal", json!({ "session": session, "proposed": proposed })),
        (
            MessageKind::PlanApprovalRequest,
            "question",
            json!({ "from": "ann", "tool": "exit_plan_mode", "target": "", "question": ask, "text": "1. x" }),
        ),
        (
            MessageKind::PlanApprovalResponse,
            "plan answer",
            json!({ "question": ask, "say": "approve", "by": person, "key": env }),
        ),
        (
            MessageKind::PlanApprovalResponse,
            "plan answer",
            json!({ "question": ask, "say": { "reject": "no" }, "by": person }),
        ),
        (
            MessageKind::PlanApprovalResponse,
            "answer",
            json!({ "text": "", "from": "max", "question": ask, "answer": answer }),
        ),
        (MessageKind::PlanApprovalResponse, "words", json!({ "text": "They say yes.", "plan": plan, "aside": true })),
        (MessageKind::PlanRevised, "revision", json!({ "revision": plan, "tasks": [task] })),
        (MessageKind::PlanRevised, "revision", json!({ "revision": plan, "reworked": true })),
        (MessageKind::TeamPermissionUpdate, "grant", json!({ "grants": [grant], "asker": "ann" })),
        (MessageKind::ModeSetRequest, "mode", json!({ "mode": "plan" })),
        (MessageKind::ModeSetRequest, "mode", json!({ "mode": "plan", "text": "", "from": "max" })),
        (
            MessageKind::Undelivered,
            "undelivered",
            json!({ "text": "not read", "from": "ann", "letter": env, "sender": "user/me", "why": "gone", "said": "hi" }),
        ),
        (MessageKind::TeamRequest, "team", json!({ "mates": [teammate], "by": "me at terminal", "session": session })),
        (
            MessageKind::SessionHandover,
            "handover",
            json!({ "by": "me at terminal", "session": session, "from": format!("wrk_{:032x}", 1) }),
        ),
        (
            MessageKind::FilesRewound,
            "rewound",
            json!({ "text": "put back", "times": [Uuid::nil()], "files": ["a"], "count": 1, "again": true }),
        ),
    ];
    for (kind, name, stored) in bodies {
        let envelope = envelope(kind, stored.clone());
        let read = Body::read(&envelope);
        assert_eq!(shape(&read), name, "{stored}");
        let Value::Object(written) = Value::from(read) else { unreachable!() };
        let Value::Object(mut stored) = stored else { unreachable!() };
        // An empty text is not written.
        stored.retain(|name, value| written.contains_key(name) || value != "");
        for (name, value) in &stored {
            assert_eq!(written.get(name), Some(value), "{} {name}", kind.name());
        }
        assert_eq!(written.len(), stored.len(), "{} {written:?}", kind.name());
    }
}

fn shape(body: &Body<'_>) -> &'static str {
    match body {
        Body::Words(_) => "words",
        Body::Input(_) => "input",
        Body::Task(_) => "task",
        Body::Result(_) => "result",
        Body::Stop(_) => "stop",
        Body::Proposal(_) => "proposal",
        Body::Question(_) => "question",
        Body::Clarification(_) => "clarification",
        Body::Answer(_) => "answer",
        Body::PlanAnswer(_) => "plan answer",
        Body::Update(_) => "update",
        Body::Revision(_) => "revision",
        Body::Ended(_) => "ended",
        Body::Mode(_) => "mode",
        Body::Grant(_) => "grant",
        Body::Undelivered(_) => "undelivered",
        Body::Team(_) => "team",
        Body::Rewound(_) => "rewound",
        Body::Handover(_) => "handover",
    }
}
