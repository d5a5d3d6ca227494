//! The tools for teammates: a lead starts them, all agents send messages and read their mailbox, and a teammate that
//! must plan first proposes its plan.

use max_team_core::delegation::tool_filter::{CHECK_INBOX, EXIT_PLAN_MODE, SEND_MESSAGE, SPAWN_TEAMMATE, SPAWNED};
use max_team_core::policy::ActionKind;
use max_team_core::teammate::protocol::ProtocolMessage;
use max_team_core::teammate::{Spawn, color};
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{bounded, read};
use super::{TeamTool, tool};

/// The input of `spawn_teammate`.
pub(super) fn read_spawn(input: Value) -> Result<Spawn, String> {
    checked(read(SPAWN_TEAMMATE, input)?)
}

/// Trims the fields; fails without a prompt, or with an unknown color.
pub(crate) fn checked(spawn: Spawn) -> Result<Spawn, String> {
    if spawn.prompt.trim().is_empty() {
        return Err("`prompt` is missing: a teammate sees nothing of this conversation".to_owned());
    }
    let name = spawn.name.trim().to_owned();
    let wanted = spawn.color.as_deref().filter(|color| !color.trim().is_empty());
    let color = wanted.map(color).transpose()?.map(str::to_owned);
    bounded(spawn.prompt).map(|prompt| Spawn { name, prompt, color, ..spawn })
}

/// Something for one, several or all.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub to: Vec<String>,
    pub word: ProtocolMessage,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MessageArgs {
    #[serde(alias = "agent", alias = "recipient", alias = "id")]
    to: Addressees,
    #[serde(alias = "content", alias = "prompt", alias = "text")]
    message: Value,
    /// Some models write the message's type beside its text.
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Addressees {
    One(String),
    Several(Vec<String>),
}

impl Default for Addressees {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Message {
    pub(super) fn read(input: Value) -> Result<Self, String> {
        let beside = input.clone();
        let MessageArgs { to, message, kind } = read(SEND_MESSAGE, input)?;
        let mut names = match to {
            Addressees::One(one) => one.split(',').map(|name| name.trim().to_owned()).collect(),
            Addressees::Several(several) => several,
        };
        names.retain(|name| !name.trim().is_empty());
        names.dedup();
        if kind.as_deref() == Some("broadcast") && names.is_empty() {
            names.push("team".to_owned());
        }
        if names.is_empty() {
            return Err("`to` is missing: say who is to read it".to_owned());
        }
        let is_protocol = kind.is_some_and(|kind| !matches!(kind.as_str(), "message" | "text" | "broadcast"));
        let word = if is_protocol { ProtocolMessage::parse(&beside)? } else { ProtocolMessage::parse(&message)? };
        Ok(Self { to: names, word })
    }
}

/// A question about what runs in the background.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Spawned {
    #[serde(alias = "task_id", alias = "task")]
    pub id: Option<String>,
    pub stop: bool,
}

impl Spawned {
    pub(super) fn read(input: Value) -> Result<Self, String> {
        read(SPAWNED, input)
    }
}

/// A plan that a teammate proposes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TeammatePlanArgs {
    pub plan: String,
}

impl TeammatePlanArgs {
    pub(super) fn read(input: Value) -> Result<Self, String> {
        let Self { plan } = read(EXIT_PLAN_MODE, input)?;
        if plan.trim().is_empty() {
            return Err("`plan` is missing: say what you mean to do".to_owned());
        }
        bounded(plan).map(|plan| Self { plan })
    }
}

const SPAWN_WORDS: &str = "Delegate: start a teammate that works beside you, keeps its context and reads messages. Does not wait: \
    its results are sent to you. For one answer call `agent`.";
const SEND_WORDS: &str = "Write to a teammate, to several, to `team` (all of them), or to a task of a plan (its id): its member reads it with \
    the next tool result. Does not wait: an answer comes as a message. To an agent that you asked before (by the name under its \
    answer), or the owner of a task that is over: it continues, and this call returns its answer.";
const INBOX_WORDS: &str = "See the messages that came since this turn began. You also get them without this call.";
const SPAWNED_WORDS: &str = "See your tasks in the background; with `id` the result of one; or stop one. You get answers \
    without this call.";
const PLAN_WORDS: &str = "Propose what you mean to do. Change nothing before it is approved; the answer is the result.";

/// All of them.
pub(super) fn tools() -> [TeamTool; 5] {
    let text = |words: &str| json!({ "type": "string", "description": words });
    let spawn = json!({
        "type": "object", "required": ["name", "role", "prompt"],
        "properties": {
            "name": text("A new name: letters, digits, - _ and ."),
            "role": text("Its part, in a few words."),
            "prompt": text("The whole task."),
            "type": text("As for `agent`."),
            "model": { "type": "string" },
            "mode": { "type": "string", "enum": ["plan"], "description": "Changes nothing until you have approved its plan." },
            "isolation": { "type": "string", "enum": ["worktree"], "description": "Works in a copy of the project." },
            "auto_claim": { "type": "boolean", "description": "Takes open tasks from the shared list by itself." },
            "wait": { "type": "boolean", "description": "End your turn after the teammates of this answer have started; their reports start your next turn." },
        },
    });
    let to = json!({
        "description": "A name, the id of a task, or a list of names.",
        "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
    });
    let message = json!({
        "description": "Text, or {\"type\": \"shutdown_request\", \"reason\"} to end a teammate. Requests say how to answer them.",
        "anyOf": [{ "type": "string" }, { "type": "object" }],
    });
    let wait = json!({ "type": "boolean", "description": "If you are a teammate: end your turn after sending; the answer begins your next turn." });
    let send = json!({
        "type": "object", "required": ["to", "message"],
        "properties": { "to": to, "message": message, "wait": wait },
    });
    let spawned = json!({
        "type": "object",
        "properties": {
            "id": text("A task's id; left out: all of yours."),
            "stop": { "type": "boolean" },
        },
    });
    let plan = json!({ "type": "object", "required": ["plan"], "properties": { "plan": text("The steps, and the files they touch.") } });
    [
        tool(SPAWN_TEAMMATE, ActionKind::Team, SPAWN_WORDS, spawn),
        tool(SEND_MESSAGE, ActionKind::Team, SEND_WORDS, send),
        tool(CHECK_INBOX, ActionKind::Team, INBOX_WORDS, json!({ "type": "object", "properties": {} })),
        tool(EXIT_PLAN_MODE, ActionKind::Propose, PLAN_WORDS, plan),
        tool(SPAWNED, ActionKind::Team, SPAWNED_WORDS, spawned),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_for_one_for_several_or_for_all() {
        let text = |to: &[&str]| {
            let to = to.iter().map(|name| (*name).to_owned()).collect();
            Ok(Message { to, word: ProtocolMessage::Text { text: "hi".into() } })
        };
        for (input, want) in [
            (json!({ "to": "bob", "message": "hi" }), text(&["bob"])),
            (json!({ "recipient": "bob, eve", "content": "hi" }), text(&["bob", "eve"])),
            (json!({ "to": ["bob", "eve"], "message": "hi" }), text(&["bob", "eve"])),
            (json!({ "type": "broadcast", "content": "hi" }), text(&["team"])),
            (json!({ "type": "message", "to": "bob", "content": "hi" }), text(&["bob"])),
        ] {
            assert_eq!(Message::read(input.clone()), want, "{input}");
        }
        let beside = json!({ "type": "shutdown_request", "to": "bob", "content": "done" });
        let word = ProtocolMessage::ShutdownRequest { reason: "done".into(), deadline_s: None };
        assert_eq!(Message::read(beside), Ok(Message { to: vec!["bob".into()], word }));
        for input in [json!({ "message": "hi" }), json!({ "to": "bob" }), json!({ "to": 3, "message": "hi" })] {
            assert!(Message::read(input.clone()).is_err(), "{input}");
        }
    }

    #[test]
    fn a_teammate_is_asked_for_by_every_name_its_fields_have() {
        let want = Spawn { name: "ann".into(), role: "r".into(), prompt: "p".into(), ..Spawn::default() };
        for input in
            [json!({ "name": "ann", "role": "r", "prompt": "p" }), json!({ "name": " ann ", "role": "r", "task": "p" })]
        {
            assert_eq!(read_spawn(input.clone()), Ok(want.clone()), "{input}");
        }
        let planner =
            read_spawn(json!({ "name": "a", "prompt": "p", "plan_mode_required": true, "subagent_type": "explore" }));
        assert!(planner.is_ok_and(|spawn| spawn.plans() && spawn.kind() == "explore"));
        assert!(read_spawn(json!({ "name": "a" })).is_err());
    }
}
