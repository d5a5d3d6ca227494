//! What each entry says, and that it does not matter where somebody begins to read.

mod table;

use max_team_core::event::Event;
use max_team_core::id::{AgentId, PlanId, SessionId};
use max_team_core::message::Envelope;
use max_team_journal::Journal;
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::event::{Mark, NoMark, StreamEvent, What};
use super::reader::{Scope, StreamReader};
use crate::plan::plan_stream;
use crate::shared::{append, commit_at};
use crate::{rows, session};

fn id(prefix: &str, number: u128) -> String {
    format!("{prefix}_{}", Uuid::from_u128(number).simple())
}

fn event(name: &str, fields: Value) -> Event {
    let event = json!({ name: fields });
    serde_json::from_value(event).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn intent(call: u32) -> Event {
    let hash = max_team_core::hash::Hash::of("x");
    let model = json!({
        "provider": "p", "name": "m", "context_tokens": 1_000, "max_tokens": 100,
        "price": { "input": 2_000_000, "output": 1_000_000, "cache_read": 0, "cache_write": 0 },
    });
    let request = json!({
        "instructions": hash, "tools": hash, "settings": hash, "window": { "from": 0, "elide": 0 }, "upto": 1,
    });
    let fields = json!({
        "call": call, "attempt": 1, "request": request, "model": model, "max_tokens": 100, "reserved_nano": 0,
    });
    event("llm_intent", fields)
}

/// An answer with words and calls.
fn answer(call: u32, words: &str, calls: &[&str]) -> Event {
    let text = json!({ "type": "text", "text": words });
    let uses =
        calls.iter().map(|name| json!({ "type": "tool_use", "id": "t", "name": name, "input": { "path": "a" } }));
    let parts: Vec<Value> = std::iter::once(text).chain(uses).collect();
    let answer = json!({
        "message": { "role": "assistant", "parts": parts }, "stop": "end_turn", "model": "m",
        "usage": { "input": 10, "output": 5 },
    });
    event("llm_ended", json!({ "call": call, "outcome": { "done": answer } }))
}

fn action() -> Value {
    json!({ "deed": "read", "target": "a.txt", "preview": "-a\n+b" })
}

fn done(key: &str, text: &str) -> Event {
    let content = json!([{ "type": "text", "text": text }]);
    event("tool_done", json!({ "key": key, "ending": "ran", "content": content, "is_error": false, "ms": 3 }))
}

fn began(key: &str) -> Event {
    let fields = json!({
        "key": key, "tool": "read_file", "input": max_team_core::hash::Hash::of("x"), "class": "pure",
        "approval": { "rule": "free" }, "action": action(),
    });
    event("tool_intent", fields)
}

fn turn(end: Value) -> Event {
    event("turn_ended", json!({ "turn": id("trn", 1), "end": end, "text": "the words" }))
}

fn started() -> Event {
    event("turn_started", json!({ "turn": id("trn", 1), "envelope": id("env", 1), "input": [] }))
}

fn asked(agent: u128) -> Event {
    let fields = json!({
        "question": id("ask", agent), "key": "1.0", "tool": "read_file", "action": action(), "class": "pure", "rule": "r",
    });
    event("question_asked", fields)
}

fn of_task(name: &str, mut fields: Value) -> Event {
    fields["task"] = json!("a");
    event(name, fields)
}

/// `type`, and behind it the state if there is one.
fn short(what: &What) -> String {
    let value = serde_json::to_value(what).unwrap();
    assert_eq!(value["type"], what.name());
    assert!(What::TYPES.contains(&what.name()));
    match value["state"].as_str() {
        Some(state) => format!("{} {state}", what.name()),
        None => what.name().to_owned(),
    }
}

/// A journal with two agents of a session, one of another, and a plan.
struct Log {
    journal: Journal,
    session: SessionId,
}

const AGENTS: u128 = 3;

impl Log {
    fn new() -> Self {
        let log = Self { journal: Journal::memory(), session: SessionId::new(Uuid::from_u128(1)) };
        for number in 0..AGENTS {
            let (session, agent) = (1 + number / 2, id("agt", number));
            let opened = json!({ "session": id("ses", session), "lead": agent, "cwd": "/p", "by": { "door": "d", "user": "u", "role": "owner" } });
            if number != 1 {
                let stream = session::stream(SessionId::new(Uuid::from_u128(session)));
                log.put(&stream, &event("session_opened", opened));
            }
            let definition = json!({ "name": format!("a{number}"), "role": "r", "prompt": "p", "tools": [] });
            let given = (number == 1).then(|| json!({ "reply_to": "plan/x", "task": "a", "attempt": 1 }));
            let fields = json!({
                "agent": agent, "session": id("ses", session), "definition": definition, "assignment": given,
            });
            log.put(&agent_stream(number), &event("agent_started", fields));
        }
        log
    }

    fn put(&self, stream: &str, event: &Event) {
        let mut commit = commit_at(7);
        commit.projections = rows::project(stream, 7, event);
        commit.appends.push(append(stream, event, "test").unwrap());
        self.journal.commit_blocking(commit).unwrap();
    }

    fn send(&self, number: u128, from: u128, to: u128) {
        let envelope = json!({
            "id": id("env", number), "from": agent_stream(from), "to": agent_stream(to), "kind": "text",
            "body": { "text": "psst" }, "sent_at_ms": 7,
        });
        let envelope: Envelope = serde_json::from_value(envelope).unwrap();
        let mut commit = commit_at(7);
        commit.sends.push(envelope);
        self.journal.commit_blocking(commit).unwrap();
    }

    fn read(&self, scope: Scope, from: Mark) -> Vec<StreamEvent> {
        let mut reader = StreamReader::open(&self.journal, scope, from).unwrap();
        std::iter::from_fn(|| reader.try_next().unwrap()).collect()
    }
}

fn agent_stream(number: u128) -> String {
    session::agent_stream(AgentId::new(Uuid::from_u128(number)))
}

#[test]
fn an_event_looks_as_promised() {
    let log = Log::new();
    for event in [
        started(),
        intent(4),
        answer(4, "Looking.", &["search", "read_file"]),
        began("4.1"),
        done("4.1", "\n one\ntwo"),
    ] {
        log.put(&agent_stream(0), &event);
    }
    log.put(&agent_stream(0), &turn(json!("answered")));
    let told = log.read(Scope::Session(log.session), Mark { seq: 6, part: None });
    let lines: Vec<Value> = told.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let who = json!({ "id": id("agt", 0), "name": "a0", "lead": true });
    let head = |seq: u64, part: Option<u32>, rest: Value| {
        let mut line = json!({ "v": 1, "seq": seq });
        part.into_iter().for_each(|part| line["part"] = json!(part));
        (line["session"], line["at_ms"], line["agent"]) = (json!(id("ses", 1)), json!(7), who.clone());
        rest.as_object().unwrap().iter().for_each(|(name, value)| line[name] = value.clone());
        line
    };
    let usage = json!({ "input": 10, "output": 5, "cache_read": 0, "cache_write": 0 });
    let args = r#"{"path":"a"}"#;
    let expected = [
        head(7, None, json!({ "type": "status", "iteration": 1, "message": "calls m", "model": "m" })),
        head(8, Some(1), json!({ "type": "status", "iteration": 1, "message": "Looking." })),
        head(8, None, json!({ "type": "budget", "state": "spent", "model": "m", "usage": usage, "cost_usd": 0.025 })),
        head(
            9,
            None,
            json!({ "type": "tool_start", "iteration": 1, "tool_id": "4.1", "tool_name": "read_file", "tool_args": args, "target": "a.txt" }),
        ),
        head(
            10,
            None,
            json!({ "type": "tool_result", "iteration": 1, "tool_id": "4.1", "tool_name": "read_file", "summary": "one", "tool_result": "\n one\ntwo", "ending": "ran", "is_error": false, "ms": 3 }),
        ),
        head(
            11,
            Some(1),
            json!({ "type": "final", "iteration": 1, "response": "the words", "done": true, "end": "answered" }),
        ),
        head(11, Some(2), json!({ "type": "agent", "state": "ready", "reason": "done" })),
        json!({
            "v": 1, "seq": 11, "session": id("ses", 1), "at_ms": 7,
            "type": "session", "status": { "agents": [], "questions": {} },
        }),
    ];
    assert_eq!(lines, expected);
    for (line, event) in lines.into_iter().zip(told) {
        assert_eq!(serde_json::from_value::<StreamEvent>(line).unwrap(), event);
    }
}

/// Two agents of a session work, one asks and is answered; each change of that is told once, for the session.
#[test]
fn a_changed_status_of_the_session_is_an_event() {
    let log = Log::new();
    let answered = event(
        "question_answered",
        json!({ "question": id("ask", 1), "answer": { "allow": true, "by": { "person": "me" } } }),
    );
    for (agent, event) in [
        (0, started()),
        (0, intent(1)),
        (1, started()),
        (1, asked(1)),
        (1, answered),
        (1, turn(json!("answered"))),
        (0, turn(json!("answered"))),
    ] {
        log.put(&agent_stream(agent), &event);
    }
    let told = log.read(Scope::Session(log.session), Mark::default());
    let told: Vec<(Vec<String>, usize)> = told
        .iter()
        .filter_map(|event| match &event.what {
            What::Session { status } => Some((status.working().map(str::to_owned).collect(), status.questions())),
            _ => None,
        })
        .collect();
    let working = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let expected = [
        (working(&["a0"]), 0),
        (working(&["a0", "a1"]), 0),
        (working(&["a0", "a1"]), 1),
        (working(&["a0", "a1"]), 0),
        (working(&["a0"]), 0),
        (working(&[]), 0),
    ];
    assert_eq!(told, expected);
    let status = super::status_before(&log.journal, log.session, 9).unwrap();
    assert_eq!((status.working().count(), status.questions()), (2, 0));
}

/// A turn that is longer than what is looked at at once.
#[test]
fn a_late_reader_of_a_long_turn_knows_the_round_and_the_calls() {
    let log = Log::new();
    log.put(&agent_stream(0), &started());
    for call in 1..100 {
        log.put(&agent_stream(0), &intent(call));
        log.put(&agent_stream(0), &answer(call, "", &["search"]));
    }
    log.put(&agent_stream(0), &done("99.0", "found"));
    let from = Mark { seq: log.journal.last_seq().unwrap() - 1, part: None };
    let told = log.read(Scope::All, from);
    let [StreamEvent { what: What::ToolResult { iteration, tool_name, .. }, .. }] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!((*iteration, tool_name.as_str()), (99, "search"));
}

#[test]
fn an_agent_s_own_events_are_its_work_its_mail_and_its_tasks() {
    let log = Log::new();
    let plan = plan_stream(PlanId::new(Uuid::from_u128(1)));
    let assigned = |number: u128| {
        let agent = id("agt", number);
        of_task("task_assigned", json!({ "attempt": 1, "agent": agent, "member": "m", "deadline_ms": 9 }))
    };
    let proposed = json!({
        "plan": id("pln", 1), "session": id("ses", 1), "lead": id("agt", 0), "draft": { "goal": "g" }, "approve": "plan",
        "forecast": max_team_core::plan::Forecast::default(), "max_parallel": 2, "by": "max",
    });
    log.put(&plan, &event("plan_proposed", proposed));
    log.put(&plan, &assigned(0));
    log.put(&plan, &assigned(1));
    log.put(&agent_stream(1), &started());
    log.send(1, 0, 1);
    log.send(2, 1, 0);
    log.send(3, 0, 2);
    let agent = AgentId::new(Uuid::from_u128(1));
    let told = log.read(Scope::Agent(log.session, agent), Mark::default());
    let told: Vec<String> = told.iter().map(|event| short(&event.what)).collect();
    assert_eq!(told, ["agent starting", "task dispatched", "agent busy", "mail", "mail"]);
}

#[test]
fn places_are_read_as_they_are_written() {
    for (text, mark) in
        [("0", Mark::default()), ("42", Mark { seq: 42, part: None }), ("42.1", Mark { seq: 42, part: Some(1) })]
    {
        assert_eq!((text.parse(), mark.to_string().as_str()), (Ok(mark), text));
    }
    for wrong in ["", ".", "1.", ".1", "-1", "+1", "1.+1", "1.1.1", "x", "99999999999999999999"] {
        assert_eq!(wrong.parse::<Mark>(), Err(NoMark), "{wrong}");
    }
}

/// One step of somebody: which agent, and what.
fn step(log: &Log, number: usize, agent: u128, what: usize) {
    let call = u32::try_from(what % 3).unwrap();
    let stream = agent_stream(agent);
    match what {
        0..3 => log.put(&stream, &intent(call)),
        3..6 => log.put(&stream, &answer(call, "words", &["read_file", "search"])),
        6..9 => log.put(&stream, &began(&format!("{call}.0"))),
        9..12 => log.put(&stream, &done(&format!("{call}.1"), "result")),
        12 => log.put(&stream, &started()),
        13 => log.put(&stream, &turn(json!("budget"))),
        14 => log.put(&stream, &asked(agent)),
        _ => log.send(100 + number as u128, agent, (agent + 1) % AGENTS),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// Whoever goes on behind any event hears exactly the rest, and the same as whoever never left.
    #[test]
    fn it_does_not_matter_where_somebody_begins(steps in proptest::collection::vec((0..AGENTS, 0..16_usize), 0..40)) {
        let log = Log::new();
        steps.iter().enumerate().for_each(|(number, (agent, what))| step(&log, number, *agent, *what));
        let agent = AgentId::new(Uuid::from_u128(1));
        for scope in [Scope::All, Scope::Session(log.session), Scope::Agent(log.session, agent)] {
            let whole = log.read(scope, Mark::default());
            for (number, event) in whole.iter().enumerate() {
                let rest = log.read(scope, event.mark());
                prop_assert_eq!(&rest, &whole[number + 1..], "{:?} behind {}", scope, event.mark());
            }
            // An entry is a place whether or not it says something.
            for seq in 0..=log.journal.last_seq().unwrap() {
                let rest = log.read(scope, Mark { seq, part: None });
                let expected: Vec<_> = whole.iter().filter(|event| event.seq > seq).cloned().collect();
                prop_assert_eq!(rest, expected);
            }
        }
    }
}
