//! What a message says, by its kind.
//!
//! The envelope's kind is the tag, so bodies that earlier releases wrote are read like new ones: a missing field has its default,
//! an unknown one is ignored, and so is one of another type. A body borrows from the envelope that it is read from, or from the values that it is written
//! from.

use std::borrow::Cow;

use serde::de::value::MapDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::TurnOutcome;
use crate::id::{SessionId, TurnId};
use crate::message::{Assignment, Envelope, MessageKind};
use crate::plan::Budget;
use crate::plan::event::ResourceUse;
use crate::policy::DecidedBy;

/// The body of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Body<'a> {
    /// Messages of users and agents, and all kinds of which only the text is read.
    Words(Words<'a>),
    /// `task_assign`.
    Task(Task<'a>),
    /// `task_result` and `idle_notification`.
    Result(Box<TaskResult<'a>>),
    /// `shutdown`.
    Stop(Stop<'a>),
}

/// The fields that any message with words may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Words<'a> {
    pub text: &'a str,
    /// The name of the agent that wrote them.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub from: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub color: &'a str,
    /// The message that they are about.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub about: &'a str,
    /// They begin no turn of their own: they are told with the next one.
    #[serde(skip_serializing_if = "is_false")]
    pub aside: bool,
    /// A plan, or a teammate, was stopped by a person, who needs not be told.
    #[serde(skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// The user wants them to be read once the turn that runs is over.
    #[serde(skip_serializing_if = "is_false")]
    pub wait: bool,
    /// No agent could answer: the user is asked.
    #[serde(skip_serializing_if = "is_false")]
    pub ask: bool,
}

/// A task for an agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Task<'a> {
    /// What to do.
    pub text: &'a str,
    /// Whose task it is, and who waits for it. A task of the shared list has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Cow<'a, Assignment>>,
    /// Nano-dollars that it may cost, if that has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_nano: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
}

/// The outcome of a turn, for the agent, plan or user that waits for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskResult<'a> {
    /// The words for its reader.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub text: &'a str,
    /// Of a teammate or a background task: the name of its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mate: Option<&'a str>,
    /// The same for the reader of the words.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub from: &'a str,
    /// Of a teammate.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub color: &'a str,
    /// Of a teammate: `done`, `failed` or `blocked`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'a str,
    /// Of a teammate: the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The session, if its use is to be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// It was stopped by a person.
    #[serde(skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// It was stopped before its model had said anything.
    #[serde(skip_serializing_if = "is_false")]
    pub silent: bool,
    /// It begins no turn of its reader.
    #[serde(skip_serializing_if = "is_false")]
    pub aside: bool,
    /// Of a task or a call.
    #[serde(flatten)]
    pub work: Work<'a>,
}

/// The outcome of a task or a call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Work<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Cow<'a, Assignment>>,
    /// The key of the call that waits.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub call: &'a str,
    /// The agent that did it.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub by: &'a str,
    /// Whether it was done.
    #[serde(skip_serializing_if = "is_false")]
    pub ok: bool,
    /// Whether it failed.
    #[serde(skip_serializing_if = "is_false")]
    pub is_error: bool,
    /// The last words of the model.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub output: &'a str,
    /// Why it failed.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub error: &'a str,
    /// How the turn ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<TurnOutcome>,
    /// The answer in the agreed form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// What it cost, with the agents that it called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<ResourceUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// What all agents of the plan or session have left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Budget>,
    /// Whether its own budget was the shorter one.
    #[serde(skip_serializing_if = "is_false")]
    pub own: bool,
    /// Whether it may have changed something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acted: Option<bool>,
    /// Whether its time limit stopped it.
    #[serde(skip_serializing_if = "is_false")]
    pub timed_out: bool,
    /// What it did with its tools, in words.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub did: &'a str,
    /// The targets of calls whose outcome is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Of a correction, on its way through the plan: its reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrects: Option<&'a str>,
    /// Of a correction: what the checks say, for its reader.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub checked: &'a str,
}

/// A stop of an agent, a plan or a task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Stop<'a> {
    /// The name of the person, agent or limit.
    pub by: &'a str,
    /// The kind of stopper; absent if a person stops: the sender is that person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<DecidedBy>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub text: &'a str,
    /// A person's stop, which puts unread messages on hold.
    #[serde(skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// Of a session stop: messages that were written in turns older than this one are on hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<TurnId>,
    /// It ends a teammate.
    #[serde(skip_serializing_if = "is_false")]
    pub end: bool,
    /// The task of a plan that is stopped; without it the plan is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<&'a str>,
    /// The plan that replaces the stopped one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<&'a str>,
}

fn fields<'a, I: Iterator<Item = (&'a str, &'a Value)>>(all: I) -> MapDeserializer<'a, I, serde_json::Error> {
    MapDeserializer::new(all)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl<'a> Body<'a> {
    /// The body of a message; empty if it cannot be read.
    pub fn read(letter: &'a Envelope) -> Self {
        match letter.kind {
            MessageKind::TaskAssign => Self::Task(letter.task()),
            MessageKind::TaskResult | MessageKind::IdleNotification => Self::Result(Box::new(letter.result())),
            MessageKind::Shutdown => Self::Stop(letter.stop()),
            _ => Self::Words(letter.words()),
        }
    }
}

impl From<Body<'_>> for Value {
    fn from(body: Body<'_>) -> Self {
        serde_json::to_value(body).unwrap_or_default()
    }
}

impl Envelope {
    /// The words of a message of any kind.
    pub fn text(&self) -> &str {
        self.string("text")
    }

    /// The sender's name as the reader sees it.
    pub fn author(&self) -> &str {
        self.string("from")
    }

    /// The name of the person, agent or limit that a message acts for.
    pub fn by(&self) -> &str {
        self.string("by")
    }

    /// Like `by`; falls back to the sender's name, then its address.
    pub fn asker(&self) -> &str {
        [self.by(), self.author()].into_iter().find(|name| !name.is_empty()).unwrap_or(&self.from)
    }

    /// Of a report of a teammate or a background task: the name of its agent.
    pub fn mate(&self) -> Option<&str> {
        self.body.get("mate").and_then(Value::as_str)
    }

    /// Whether a message begins no turn of its own.
    pub fn is_aside(&self) -> bool {
        self.flag("aside")
    }

    /// Whether a message says that its sender was stopped by a person, or is such a stop.
    pub fn is_stopped(&self) -> bool {
        self.flag("stopped")
    }

    /// The body of a message with words.
    pub fn words(&self) -> Words<'_> {
        self.read()
    }

    /// The body of a task.
    pub fn task(&self) -> Task<'_> {
        self.read()
    }

    /// The body of a result.
    pub fn result(&self) -> TaskResult<'_> {
        self.read()
    }

    /// The body of a stop.
    pub fn stop(&self) -> Stop<'_> {
        self.read()
    }

    /// The body without the fields that cannot be read: each has its default.
    fn read<'a, T: Deserialize<'a> + Default>(&'a self) -> T {
        let readable = |field: &(&'a str, &'a Value)| T::deserialize(fields(std::iter::once(*field))).is_ok();
        T::deserialize(&self.body).unwrap_or_else(|_| {
            let all = self.body.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value));
            T::deserialize(fields(all.filter(readable))).unwrap_or_default()
        })
    }

    fn string(&self, name: &str) -> &str {
        self.body.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.body.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::id::EnvelopeId;

    fn letter(kind: MessageKind, body: impl Into<Value>) -> Envelope {
        Envelope::new(EnvelopeId::new(Uuid::nil()), "agent/a", "agent/b", kind, body, 0)
    }

    #[test]
    fn bodies_of_earlier_releases_are_read() {
        let given = json!({ "reply_to": "agent/b", "task": "2.0", "attempt": 1 });
        let result = letter(
            MessageKind::TaskResult,
            json!({
                "assignment": given, "call": "2.0", "ok": false, "is_error": true, "text": "no", "output": "", "error": "late",
                "end": { "broken": { "detail": "x" } }, "spent": { "nano": 1, "usage": { "input": 3, "output": 4 }, "ms": 2 }, "ms": 2, "left": {},
                "own": false, "by": "ann", "structured": null, "acted": true, "mate": "ann", "stopped": false, "later": [1],
            }),
        );
        let Body::Result(read) = Body::read(&result) else { unreachable!() };
        let work = &read.work;
        assert_eq!((read.text, read.mate, work.by, work.error, work.ms), ("no", Some("ann"), "ann", "late", Some(2)));
        assert_eq!(work.end, Some(TurnOutcome::Broken { detail: "x".to_owned() }));
        assert_eq!(work.assignment.as_ref().map(|given| given.task.as_str()), Some("2.0"));
        assert!(work.is_error && work.structured.is_none() && !read.stopped);
        let task = letter(MessageKind::TaskAssign, json!({ "text": "go", "assignment": given, "budget_nano": null }));
        let Body::Task(read) = Body::read(&task) else { unreachable!() };
        assert_eq!((read.text, read.assignment.is_some(), read.budget_nano), ("go", true, None));
        let stop = letter(MessageKind::Shutdown, json!({ "by": "me at terminal", "who": null, "stopped": true }));
        let Body::Stop(read) = Body::read(&stop) else { unreachable!() };
        assert_eq!((read.by, read.who, read.stopped, read.end), ("me at terminal", None, true, false));
        let words = letter(MessageKind::UserInput, json!({ "text": "hi", "by": "me", "wait": true }));
        assert_eq!(Body::read(&words), Body::Words(Words { text: "hi", wait: true, ..Words::default() }));
        assert_eq!(Body::read(&letter(MessageKind::Text, Value::Null)), Body::Words(Words::default()));
    }

    #[test]
    fn a_field_of_another_type_is_left_out() {
        let old = letter(MessageKind::TaskResult, json!({ "text": "yes", "corrects": true, "by": 7, "ok": true }));
        let read = old.result();
        assert_eq!((read.text, read.work.by, read.work.ok, read.work.corrects), ("yes", "", true, None));
    }

    #[test]
    fn a_body_is_read_as_it_was_written() {
        let work = Work {
            by: "ann",
            ok: true,
            end: Some(TurnOutcome::Answered),
            unknown: vec!["a".into()],
            ..Work::default()
        };
        let result =
            Body::Result(Box::new(TaskResult { text: "yes", mate: Some("ann"), work, ..TaskResult::default() }));
        assert_eq!(Body::read(&letter(MessageKind::TaskResult, result.clone())), result);
        let stop =
            Body::Stop(Stop { by: "max", who: Some(DecidedBy::Lead("max".into())), end: true, ..Stop::default() });
        assert_eq!(Body::read(&letter(MessageKind::Shutdown, stop.clone())), stop);
    }
}
