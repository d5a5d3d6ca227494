//! From a reply to the writes, waits and silences that deliver it.
//!
//! A plan is decided in full before the first byte goes out, so it can say the content length and refuse a fault that
//! lies past the end. Bytes that nothing separates are one write: head, events and closing chunk of a plain reply
//! leave in a single system call.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::fault::Mark;
use crate::gate::Gate;
use crate::http::{Connection, Framing, head};
use crate::reply::Reply;
use crate::wire::Ask;

#[derive(Debug, Default)]
pub(crate) struct Plan {
    steps: Vec<Step>,
    /// Whether the connection ends with this response.
    pub(crate) close: bool,
}

#[derive(Debug)]
enum Step {
    Write(Vec<u8>),
    Until(Instant),
    Gate(Gate),
    Stall,
    /// The same bytes again and again.
    Drip(Vec<u8>, Duration),
}

/// The body as it will leave, before framing.
enum Part {
    Bytes(Vec<u8>),
    Gate(Gate),
    Stall,
    Drip(String, Duration),
    Cut,
}

impl Plan {
    /// A plain JSON response.
    pub(crate) fn json(status: u16, body: &Value) -> Plan {
        let body = body.to_string();
        let framing = Framing::Length(body.len());
        let mut bytes = head(status, framing, &[content_type("application/json")]);
        framing.frame(body.as_bytes(), &mut bytes);
        Plan { steps: vec![Step::Write(bytes)], close: false }
    }

    /// A plain JSON error of our own, not of a provider.
    pub(crate) fn error(status: u16, message: &str) -> Plan {
        Plan::json(status, &json!({"error": {"type": "testkit", "message": message}}))
    }

    /// A scripted reply to a request that arrived just then, or what is wrong with the script.
    pub(crate) fn reply(reply: &Reply, ask: &Ask, arrived: Instant) -> Result<Plan, String> {
        let delivery = &reply.delivery;
        let delay = delivery.delay.map(|delay| Step::Until(arrived + delay));
        let gate = delivery.before.clone().map(Step::Gate);
        let mut plan = Plan { steps: delay.into_iter().chain(gate).collect(), close: delivery.close };
        if delivery.silent {
            plan.close = true;
            return Ok(plan);
        }
        let (status, stream, events) = render(reply, ask);
        let parts = parts(&events, reply, ask)?;
        let framing = if stream { Framing::Chunked } else { Framing::Length(length(&parts)) };
        let mut pending = head(status, framing, &headers(reply, ask, stream));
        for part in parts {
            match part {
                Part::Bytes(bytes) => {
                    for piece in bytes.chunks(delivery.split_bytes.unwrap_or(bytes.len()).max(1)) {
                        if delivery.split_bytes.is_some() {
                            plan.write(&mut pending);
                        }
                        framing.frame(piece, &mut pending);
                    }
                }
                Part::Gate(gate) => {
                    plan.write(&mut pending);
                    plan.steps.push(Step::Gate(gate));
                }
                Part::Stall => {
                    plan.write(&mut pending);
                    plan.steps.push(Step::Stall);
                    return Ok(plan);
                }
                Part::Drip(bytes, every) => {
                    plan.write(&mut pending);
                    framing.frame(bytes.as_bytes(), &mut pending);
                    plan.steps.push(Step::Drip(pending, every));
                    return Ok(plan);
                }
                Part::Cut => {
                    plan.write(&mut pending);
                    plan.close = true;
                    return Ok(plan);
                }
            }
        }
        framing.end(&mut pending);
        plan.write(&mut pending);
        Ok(plan)
    }

    /// Carries it out. An error means that the client has gone.
    pub(crate) async fn deliver(&self, connection: &mut Connection, clock: &LazyLock<Clock>) -> std::io::Result<()> {
        for step in &self.steps {
            match step {
                Step::Write(bytes) => connection.write(bytes).await?,
                Step::Until(at) => clock.until(*at).await,
                Step::Gate(gate) => gate.pass().await,
                Step::Drip(bytes, every) => loop {
                    connection.write(bytes).await?;
                    clock.until(Instant::now() + *every).await;
                },
                // Ends when the server stops and drops this task.
                Step::Stall => std::future::pending().await,
            }
        }
        Ok(())
    }

    fn write(&mut self, pending: &mut Vec<u8>) {
        if !pending.is_empty() {
            self.steps.push(Step::Write(std::mem::take(pending)));
        }
    }
}

/// Status, whether it is a stream, and its events; a plain body counts as two, its halves.
fn render(reply: &Reply, ask: &Ask) -> (u16, bool, Vec<Vec<u8>>) {
    let (status, body) = match &reply.failure {
        Some(failure) => (failure.status, ask.failure(failure)),
        None if ask.stream && !reply.delivery.json_instead => {
            return (200, true, ask.events(&reply.answer).into_iter().map(String::into_bytes).collect());
        }
        None => (200, ask.whole(&reply.answer)),
    };
    let body = body.to_string().into_bytes();
    let (first, second) = body.split_at(body.len() / 2);
    (status, false, vec![first.to_vec(), second.to_vec()])
}

fn parts(events: &[Vec<u8>], reply: &Reply, ask: &Ask) -> Result<Vec<Part>, String> {
    let marks = &reply.delivery.marks;
    if let Some((late, mark)) = marks.iter().find(|(at, _)| *at > events.len()) {
        return Err(format!("{mark:?} after {late} events, but the reply has only {}", events.len()));
    }
    let mut out = Vec::new();
    let join = reply.delivery.split_bytes.is_some();
    for at in 0..=events.len() {
        for (_, mark) in marks.iter().filter(|(mark_at, _)| *mark_at == at) {
            match mark {
                Mark::Gate(gate) => out.push(Part::Gate(gate.clone())),
                Mark::Cut => out.push(Part::Cut),
                Mark::Stall => out.push(Part::Stall),
                Mark::Drip(bytes, every) => out.push(Part::Drip(bytes.clone(), *every)),
                Mark::Malformed => add(&mut out, b"data: {\"type\": \"content_block_delta\", \"index\n\n", join),
                Mark::Error(kind) => {
                    add(&mut out, ask.error_event(kind).as_bytes(), join);
                    return Ok(out);
                }
                Mark::End => return Ok(out),
            }
        }
        if let Some(event) = events.get(at) {
            add(&mut out, event, join);
        }
    }
    Ok(out)
}

/// Appends bytes. Joined to the bytes before when they will be split anyway: pieces then run across events.
fn add(parts: &mut Vec<Part>, bytes: &[u8], join: bool) {
    match parts.last_mut() {
        Some(Part::Bytes(last)) if join => last.extend_from_slice(bytes),
        _ => parts.push(Part::Bytes(bytes.to_vec())),
    }
}

/// What a content length promises: also the bytes after a cut or a stall, which then never come.
fn length(parts: &[Part]) -> usize {
    parts.iter().map(|part| if let Part::Bytes(bytes) = part { bytes.len() } else { 0 }).sum()
}

fn headers(reply: &Reply, ask: &Ask, stream: bool) -> Vec<(String, String)> {
    let id = reply.request_id.clone().unwrap_or_else(|| format!("req_{}", ask.n));
    let mut out = vec![
        content_type(if stream { "text/event-stream; charset=utf-8" } else { "application/json" }),
        (ask.id_header().into(), id),
    ];
    if reply.delivery.close {
        out.push(("connection".into(), "close".into()));
    }
    out.extend_from_slice(&reply.headers);
    out
}

fn content_type(value: &str) -> (String, String) {
    ("content-type".into(), value.into())
}
