//! What every event says.

use max_team_core::plan::Forecast;
use max_team_core::plan::event::Totals;

use super::*;
use crate::stream::bench::Bench;
use crate::stream::tell::tell;

type Row = (Event, &'static [&'static str]);

fn by() -> Value {
    json!({ "door": "cli", "user": "ann", "role": "owner" })
}

fn person() -> Value {
    json!({ "person": "ann at cli" })
}

fn called(outcome: &Value) -> Event {
    event("llm_ended", json!({ "call": 1, "outcome": outcome }))
}

fn of_sessions() -> Vec<Row> {
    let opened = json!({ "session": id("ses", 1), "lead": id("agt", 1), "cwd": "/p", "by": by() });
    let envelope = json!({
        "id": id("env", 2), "from": "user/ann", "to": "agent/x", "kind": "user_input", "body": { "text": "hi" },
        "sent_at_ms": 1,
    });
    vec![
        (event("session_opened", opened), &["status"]),
        (event("said", json!({ "envelope": id("env", 1), "text": "hi", "by": by() })), &[]),
        (event("replied", json!({ "turn": id("trn", 1), "text": "hi" })), &[]),
        (event("memory_handed", json!({ "upto": 1, "agent": id("agt", 1) })), &[]),
        (event("cache_cleared", json!({ "ids": [] })), &[]),
        (event("mailed", envelope), &["mail"]),
    ]
}

fn of_agents() -> Vec<Row> {
    let definition = json!({ "name": "leo", "role": "r", "prompt": "p", "tools": [] });
    let begun = json!({ "agent": id("agt", 1), "session": id("ses", 1), "definition": definition });
    let compacted = json!({
        "before": 1, "window": { "from": 0, "elide": 0 }, "why": "full", "summary": "s", "messages": [9, 2],
        "tokens": [9, 2],
    });
    let yes = json!({ "question": id("ask", 1), "answer": { "allow": true, "by": person() } });
    vec![
        (event("agent_started", begun), &["agent starting"]),
        (started(), &["agent busy"]),
        (intent(1), &["status"]),
        (answer(1, "Looking.", &["read_file"]), &["status", "budget spent"]),
        (answer(1, "", &["read_file"]), &["budget spent"]),
        (answer(1, "The end.", &[]), &["budget spent"]),
        (called(&json!({ "failed": { "failure": "auth", "detail": "no key", "retry_at_ms": 5 } })), &["error"]),
        (called(&json!("lost")), &["error", "budget unknown"]),
        (called(&json!({ "cancelled": { "partial": "x", "usage": { "input": 1, "output": 1 } } })), &["budget spent"]),
        (event("nudged", json!({ "text": "go on" })), &["status"]),
        (began("1.0"), &["tool_start"]),
        (done("1.0", "1"), &["tool_result"]),
        (asked(1), &["approval asked", "agent ready"]),
        (event("question_answered", yes), &["approval answered", "agent busy"]),
        (event("task_drafted", json!({ "id": "a", "description": "d" })), &["status"]),
        (event("plan_submitted", json!({ "plan": id("pln", 1), "key": "1.0" })), &[]),
        (event("compaction_failed", json!({ "detail": "no" })), &["status"]),
        (event("compacted", compacted), &["status"]),
        (event("interrupted", json!({ "by": "cli" })), &["status"]),
        (turn(json!("answered")), &["final", "agent ready"]),
        (turn(json!("proposed")), &["final", "agent ready"]),
        (turn(json!("truncated")), &["error", "agent ready"]),
        (turn(json!("interrupted")), &["error", "agent ready"]),
        (turn(json!("budget")), &["error", "budget reached", "agent ready"]),
        (turn(json!({ "failed": { "failure": "auth", "detail": "no key" } })), &["error", "agent ready"]),
    ]
}

fn of_plans() -> Vec<Row> {
    let (forecast, question) = (Forecast::default(), id("ask", 1));
    let proposed = json!({
        "plan": id("pln", 1), "session": id("ses", 1), "lead": id("agt", 1), "draft": { "goal": "g" },
        "forecast": forecast, "approve": "plan", "max_parallel": 2, "by": "max",
    });
    let edited = json!({ "draft": { "goal": "g" }, "forecast": forecast, "by": by() });
    let asked = |about: &str| event("plan_asked", json!({ "question": question, "about": about }));
    let no = json!({ "question": question, "say": { "reject": "no" }, "by": person() });
    let ended = |end: &str| event("plan_ended", json!({ "end": end, "tally": Totals::default() }));
    vec![
        (event("plan_proposed", proposed), &["plan proposed"]),
        (event("plan_edited", edited), &["plan edited"]),
        (event("edit_refused", json!({ "question": question, "error": "no", "by": by() })), &["plan edit_refused"]),
        (asked("proposal"), &["approval asked"]),
        (asked("budget"), &["approval asked", "budget reached"]),
        (event("plan_answered", no), &["approval answered"]),
        (
            event("plan_unasked", json!({ "questions": [question, id("ask", 2)] })),
            &["approval withdrawn", "approval withdrawn"],
        ),
        (event("plan_resumed", json!({ "by": "ann" })), &["plan resumed", "budget raised"]),
        (event("plan_stopped", json!({ "by": "ann", "task": "a" })), &["plan stopping"]),
        (event("plan_paused", json!({ "by": "ann" })), &["plan paused"]),
        (ended("done"), &["plan done"]),
        (ended("partial"), &["plan partial"]),
        (ended("failed"), &["plan failed"]),
        (ended("stopped"), &["plan stopped"]),
        (ended("rejected"), &["plan rejected"]),
        (ended("replaced"), &["plan replaced"]),
    ]
}

fn of_tasks() -> Vec<Row> {
    let spent = json!({ "nano": 1, "ms": 1 });
    let assigned = json!({ "attempt": 1, "agent": id("agt", 2), "member": "leo", "deadline_ms": 9 });
    let question = json!({ "attempt": 1, "question": "q", "letter": id("env", 1), "at_ms": 1 });
    let result = json!({ "output": "made", "proof": "verified" });
    vec![
        (of_task("task_assigned", assigned), &["task dispatched"]),
        (of_task("task_started", json!({ "attempt": 1 })), &["task running"]),
        (of_task("task_asked", question), &["task asking"]),
        (of_task("task_held", json!({ "attempt": 1, "at_ms": 1 })), &["task waiting"]),
        (of_task("task_answered", json!({ "answer": "a", "by": "max" })), &["task answered"]),
        (of_task("task_resumed", json!({ "deadline_ms": 1 })), &["task running"]),
        (of_task("task_reported", json!({ "attempt": 1, "output": "o", "spent": spent })), &["task checking"]),
        (of_task("task_done", json!({ "attempt": 1, "result": result })), &["task done"]),
        (
            of_task(
                "task_corrected",
                json!({ "attempt": 1, "result": result, "correction": { "spent": spent, "checks": "ran" } }),
            ),
            &["task corrected"],
        ),
        (of_task("task_failed", json!({ "attempt": 1, "cause": "timeout", "error": "e" })), &["task failed"]),
        (of_task("task_queued", json!({})), &["task approved"]),
        (of_task("task_deferred", json!({ "attempt": 1, "after": ["b"] })), &["task deferred"]),
        (of_task("task_changed", json!({ "description": "d", "by": "max" })), &["task changed"]),
        (of_task("task_ruled", json!({ "ruling": "skip", "by": "max" })), &["task ruled"]),
        (of_task("task_paused", json!({ "output": "o", "spent": spent })), &["task paused", "budget reached"]),
        (of_task("task_skipped", json!({ "reason": "condition", "detail": "d" })), &["task skipped"]),
        (of_task("task_cancelled", json!({ "detail": "d" })), &["task cancelled"]),
        (of_task("task_stopped", json!({ "attempt": 1, "spent": spent })), &["task stopped"]),
    ]
}

#[test]
fn messages_of_every_kind_show_their_words() {
    let table = [
        ("user_input", json!({ "text": "hi" }), "hi"),
        ("need_clarify", json!({ "question": "Which?" }), "Which?"),
        ("plan_approval_response", json!({ "question": id("ask", 1), "say": "approve" }), ""),
        ("shutdown", json!({ "by": "ann" }), ""),
    ];
    for (kind, body, words) in table {
        let envelope =
            json!({ "id": id("env", 2), "from": "a/b", "to": "c/d", "kind": kind, "body": body, "sent_at_ms": 1 });
        let told = tell(&Bench::default(), None, &event("mailed", envelope));
        let [What::Mail { message, from, to, .. }] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((message.as_str(), from.as_str(), to.as_str()), (words, "a/b", "c/d"), "{kind}");
    }
}

#[test]
fn every_event_says_what_it_should() {
    let plan = Some(PlanId::new(Uuid::from_u128(1)));
    for (event, expected) in [of_sessions(), of_agents(), of_plans(), of_tasks()].into_iter().flatten() {
        let mut bench = Bench::default();
        bench.take(&event);
        let told: Vec<String> = tell(&bench, plan, &event).iter().map(short).collect();
        assert_eq!(told, expected, "{}", event.name());
    }
}
