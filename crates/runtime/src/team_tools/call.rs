//! The tools that ask another agent: `agent`, and the names that do a part of it (`task` with arguments, `spawn` without
//! waiting).
//!
//! The list of agents in the schema is made for each caller, from the agents that exist now. All of these tools, and
//! `dispatch_task`, come down to the same [`Call`].

use max_team_core::agent::Isolation;
use max_team_core::delegation::cache;
use max_team_core::delegation::tool_filter::{AGENT, GENERAL, SPAWN, TASK};
use max_team_core::limits::{
    CALL_TEXT_BYTES_MAX, CALL_TITLE_CHARS_MAX, CALLEE_ABOUT_CHARS_MAX, CALLEES_ABOUT_BYTES_MAX, CALLEES_NAMED_MAX,
};
use max_team_core::policy::ActionKind;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{TeamTool, tool};

/// An agent that can be called, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Callee {
    pub name: String,
    pub about: String,
}

/// What a call passes to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Way {
    /// A task for a member.
    Dispatch,
    /// Arguments for an expert.
    Arguments,
    /// A task as text.
    #[default]
    Words,
}

/// A call, whichever tool made it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DelegateCall {
    pub way: Way,
    /// Name of the agent to call.
    pub who: String,
    /// A short description for people.
    pub title: String,
    /// The agent's first message.
    pub text: String,
    /// Whether the call asks for a worktree, independent of the agent's definition.
    pub isolation: Isolation,
    /// The skill that the agent carries out, if any.
    pub skill: Option<String>,
    /// Whether the caller does not wait for the answer.
    pub background: bool,
    /// Whether an expert is called even if a kept answer fits.
    pub fresh: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ExpertArgs {
    #[serde(alias = "agent_name", alias = "expert")]
    agent: String,
    #[serde(alias = "args")]
    arguments: Value,
    fresh: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AgentArgs {
    description: String,
    prompt: String,
    #[serde(rename = "type", alias = "subagent_type", alias = "agent", alias = "agent_type", alias = "expert")]
    kind: Option<String>,
    #[serde(alias = "args")]
    arguments: Value,
    isolation: Option<Isolation>,
    #[serde(alias = "background")]
    run_in_background: bool,
    fresh: bool,
}

impl DelegateCall {
    /// A call of an expert: its message holds the arguments, and earlier findings, if there are any.
    pub(super) fn task(input: Value) -> Result<Self, String> {
        let ExpertArgs { agent, arguments, fresh } = read(TASK, input)?;
        if agent.trim().is_empty() {
            return Err("`agent` is missing: name the agent to call".to_owned());
        }
        Ok(Self { fresh, ..Self::arguments(agent, arguments)? })
    }

    fn arguments(who: String, arguments: Value) -> Result<Self, String> {
        let arguments = match arguments {
            Value::Null => json!({}),
            // Some models write the object as text.
            Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            other => other,
        };
        if !arguments.is_object() {
            return Err(format!("`arguments` must be a JSON object, not `{arguments}`"));
        }
        let title = title(&arguments.to_string());
        let text = cache::message(&arguments, None);
        Ok(Self { way: Way::Arguments, who, title, text: bounded(text)?, ..Self::default() })
    }

    /// A call of a sub-agent.
    pub(super) fn agent(input: Value) -> Result<Self, String> {
        Self::words(AGENT, input)
    }

    /// Like `agent`, for a call that does not wait for the answer.
    pub(super) fn spawn(input: Value) -> Result<Self, String> {
        Ok(Self { background: true, ..Self::words(SPAWN, input)? })
    }

    fn words(tool: &str, input: Value) -> Result<Self, String> {
        let AgentArgs { description, prompt, kind, mut arguments, isolation, run_in_background, fresh } =
            read(tool, input)?;
        let who = kind.filter(|kind| !kind.trim().is_empty()).unwrap_or_else(|| GENERAL.to_owned());
        let (isolation, background) = (isolation.unwrap_or_default(), run_in_background);
        if arguments.as_object().is_some_and(|arguments| !arguments.is_empty()) || arguments.is_string() {
            if let Some(arguments) = arguments.as_object_mut().filter(|_| !prompt.trim().is_empty()) {
                arguments.entry("question").or_insert_with(|| json!(prompt));
            }
            return Ok(Self { isolation, background, fresh, ..Self::arguments(who, arguments)? });
        }
        if prompt.trim().is_empty() {
            return Err("`prompt` is missing: the agent sees nothing of this conversation".to_owned());
        }
        let about = if description.trim().is_empty() { &prompt } else { &description };
        let title = title(about);
        Ok(Self { who, title, text: bounded(prompt)?, isolation, background, ..Self::default() })
    }
}

pub(super) fn read<T: for<'de> Deserialize<'de>>(tool: &str, input: Value) -> Result<T, String> {
    serde_json::from_value(input).map_err(|error| format!("the input of `{tool}` does not fit: {error}"))
}

pub(super) fn bounded(text: String) -> Result<String, String> {
    if text.len() <= CALL_TEXT_BYTES_MAX {
        return Ok(text);
    }
    let bytes = text.len();
    Err(format!("a call hands over at most {CALL_TEXT_BYTES_MAX} bytes, not {bytes}; name the files to read instead"))
}

/// The first words of a text, on one line.
pub(crate) fn title(text: &str) -> String {
    clipped(&text.split_whitespace().collect::<Vec<_>>().join(" "), CALL_TITLE_CHARS_MAX)
}

fn clipped(words: &str, most: usize) -> String {
    match words.char_indices().nth(most) {
        Some((cut, _)) => format!("{}…", words.get(..cut).unwrap_or_default().trim_end()),
        None => words.to_owned(),
    }
}

/// The list of agents that a model may call. It is part of every request, and any file can add to it, so it is bounded:
/// descriptions as far as there is room, then names, then the number of the rest. An agent that is not listed can still
/// be called by its name.
fn about(callees: &[Callee]) -> String {
    let mut told = Vec::new();
    let mut left = CALLEES_ABOUT_BYTES_MAX;
    let mut rest = callees.iter();
    while let Some(callee) = rest.as_slice().first() {
        let words = format!("`{}`: {}", callee.name, clipped(&callee.about, CALLEE_ABOUT_CHARS_MAX));
        let Some(room) = left.checked_sub(words.len() + 1) else { break };
        left = room;
        told.push(words);
        rest.next();
    }
    let named = CALLEES_NAMED_MAX.saturating_sub(told.len());
    let names: Vec<String> = rest.by_ref().take(named).map(|callee| format!("`{}`", callee.name)).collect();
    if !names.is_empty() {
        told.push(format!("Without a description here: {}.", names.join(", ")));
    }
    if let more @ 1.. = rest.len() {
        told.push(format!("[{more} more are not listed; call one by its name.]"));
    }
    told.join("\n")
}

const TASK_WORDS: &str = "Ask an expert with arguments and wait for its answer. It sees nothing of this conversation. Several \
    calls in one answer run side by side.";
const AGENT_WORDS: &str = "Ask another agent and wait for its answer. It sees nothing of this conversation. Several calls in \
    one answer run side by side. To go on with an agent that has answered, call `send_message`.";
const SPAWN_WORDS: &str = "Ask another agent without waiting: `agent` with `run_in_background`.";

/// The tools for calling agents, for an agent that may call these.
pub(crate) fn tools(callees: &[Callee]) -> [TeamTool; 3] {
    let text = |words: &str| json!({ "type": "string", "description": words });
    // Without an `enum`, which would refuse agents that are not listed: an unknown name is answered with candidates.
    let about = about(callees);
    let kind = format!("The agent's name; default `general`.\n{about}");
    let task = json!({
        "type": "object",
        "properties": {
            "agent": text(format!("The expert's name.\n{about}").trim_end()),
            "arguments": { "type": "object", "description": "As the expert's description says." },
            "fresh": { "type": "boolean", "description": "Ask anew instead of taking an answer that is kept." },
        },
    });
    let mut agent = json!({
        "type": "object",
        "properties": {
            "type": text(kind.trim_end()),
            "prompt": text("The whole task: what is wanted and why, known files and names, what to give back."),
            "arguments": { "type": "object", "description": "Instead of `prompt`, for an agent whose description lists arguments." },
            "fresh": { "type": "boolean", "description": "With `arguments`: ask anew instead of taking an answer that is kept." },
            "description": text("The task in three to five words."),
            "isolation": {
                "type": "string", "enum": ["worktree"],
                "description": "It works in a copy of the project; the user decides about the changes.",
            },
        },
    });
    let mut spawn = agent.clone();
    if let Some(properties) = agent.get_mut("properties").and_then(Value::as_object_mut) {
        let words = "Go on without waiting; the answer is sent to you later.";
        properties.insert("run_in_background".to_owned(), json!({ "type": "boolean", "description": words }));
    }
    if let Some(kinds) = spawn.pointer_mut("/properties/type").and_then(Value::as_object_mut) {
        kinds.insert("description".to_owned(), json!("As `type` of `agent`."));
    }
    [
        tool(TASK, ActionKind::Team, TASK_WORDS, task),
        tool(AGENT, ActionKind::Team, AGENT_WORDS, agent),
        tool(SPAWN, ActionKind::Team, SPAWN_WORDS, spawn),
    ]
}

#[cfg(test)]
mod tests {
    use max_team_tools::Tool;

    use super::*;

    #[test]
    fn calls_are_read_by_every_name_their_fields_have() {
        let words = |who: &str| DelegateCall {
            who: who.into(),
            title: "look".into(),
            text: "p".into(),
            ..DelegateCall::default()
        };
        for (input, who) in [
            (json!({ "description": "look", "prompt": "p" }), "general"),
            (json!({ "description": "look", "prompt": "p", "type": "explore" }), "explore"),
            (json!({ "description": "look", "prompt": "p", "subagent_type": "plan" }), "plan"),
            (json!({ "description": "look", "prompt": "p", "type": "" }), "general"),
        ] {
            assert_eq!(DelegateCall::agent(input).unwrap(), words(who));
        }
        for input in [
            json!({ "agent": "weather", "arguments": { "city": "北京" } }),
            json!({ "agent_name": "weather", "arguments": "{\"city\":\"北京\"}" }),
        ] {
            let call = DelegateCall::task(input).unwrap();
            assert_eq!((call.way, call.who.as_str()), (Way::Arguments, "weather"));
            let told: Value = serde_json::from_str(&call.text).unwrap();
            assert_eq!(told, json!({ "args": { "city": "北京" }, "cache_data": null }));
        }
        let asked = DelegateCall::agent(json!({ "type": "weather", "arguments": { "city": "北京" }, "prompt": "雨?" }))
            .unwrap();
        assert_eq!((asked.way, asked.who.as_str()), (Way::Arguments, "weather"));
        assert_eq!(asked.text, r#"{"args":{"city":"北京","question":"雨?"},"cache_data":null}"#);
        assert_eq!(DelegateCall::task(json!({ "agent": "a" })).unwrap().text, r#"{"args":{},"cache_data":null}"#);
    }

    #[test]
    fn wrong_arguments_are_told() {
        let wrong = [
            DelegateCall::task(json!({ "arguments": {} })),
            DelegateCall::task(json!({ "agent": "a", "arguments": [1] })),
            DelegateCall::task(json!({ "agent": "a", "arguments": "not json" })),
            DelegateCall::agent(json!({ "description": "d" })),
            DelegateCall::agent(json!({ "description": "d", "prompt": "x".repeat(CALL_TEXT_BYTES_MAX + 1) })),
        ];
        for call in wrong {
            assert!(!call.unwrap_err().is_empty());
        }
        let cut = title(&"ab\n".repeat(99));
        assert!(cut.starts_with("ab ab") && cut.ends_with("ab…") && cut.chars().count() <= CALL_TITLE_CHARS_MAX + 1);
    }

    #[test]
    fn a_model_is_told_whom_it_may_call_now() {
        let callee = |name: &str, about: &str| Callee { name: name.into(), about: about.into() };
        let [task, agent, _] = tools(&[callee("explore", "Looks."), callee("weather", "Knows the weather.")]);
        let schema = &agent.spec().schema;
        assert_eq!(
            schema["required"],
            Value::Null,
            "`type` left out means `general`, and `arguments` stand for `prompt`"
        );
        let about =
            |schema: &Value, field: &str| schema["properties"][field]["description"].as_str().unwrap().to_owned();
        assert!(about(schema, "type").contains("`explore`: Looks."), "{schema}");
        let told = about(&task.spec().schema, "agent");
        assert!(told.contains("`weather`: Knows the weather."), "{told}");
    }

    #[test]
    fn however_many_can_be_called_a_request_stays_small() {
        let callee = |number: usize| Callee { name: format!("e{number}"), about: "字 ".repeat(50_000) };
        let many: Vec<Callee> = (0..500).map(callee).collect();
        let [task, agent, _] = tools(&many);
        for schema in [&task.spec().schema, &agent.spec().schema] {
            assert!(schema.to_string().len() < CALLEES_ABOUT_BYTES_MAX + 4_096, "{}", schema.to_string().len());
        }
        let about = agent.spec().schema["properties"]["type"]["description"].as_str().unwrap().to_owned();
        let told = about.matches("`: ").count();
        assert!(told > 3 && about.contains(&format!("Without a description here: `e{told}`")), "{about}");
        assert!(about.contains("`e127`.") && about.contains("[372 more are not listed"), "{about}");
        assert_eq!(tools(&many)[0].spec().schema, task.spec().schema, "the same for the same callees");
    }
}
