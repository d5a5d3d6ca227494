//! The tools that call somebody: `task` with arguments, `agent` with words, `spawn` without waiting.
//!
//! What a model is told about whom it may call is made for each agent, from whom there is now. All of them, and
//! `dispatch_task`, come down to the same [`Call`].

use max_team_core::calling::cache;
use max_team_core::calling::hands::{AGENT, GENERAL, SPAWN, TASK};
use max_team_core::limits::{
    CALL_TEXT_BYTES_MAX, CALL_TITLE_CHARS_MAX, CALLEE_ABOUT_CHARS_MAX, CALLEES_ABOUT_BYTES_MAX, CALLEES_NAMED_MAX,
};
use max_team_core::policy::Deed;
use max_team_core::team::Isolation;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{TeamTool, tool};

/// Somebody who can be called, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Callee {
    pub name: String,
    pub about: String,
}

/// How somebody is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Way {
    /// A member is given something to do.
    Dispatch,
    /// An expert is handed arguments.
    Arguments,
    /// Somebody is told what to do.
    #[default]
    Words,
}

/// A call, whichever tool made it.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Call {
    pub way: Way,
    /// Whom.
    pub who: String,
    /// What it is about, for people.
    pub title: String,
    /// What they are told first.
    pub text: String,
    /// Whether they work in a copy of the project, whoever they are.
    pub isolation: Isolation,
    /// The skill that they carry out, if they do.
    pub skill: Option<String>,
    /// Whether nobody waits for them.
    pub background: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Task {
    #[serde(alias = "agent_name", alias = "expert")]
    agent: String,
    #[serde(alias = "args")]
    arguments: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Agent {
    description: String,
    prompt: String,
    #[serde(rename = "type", alias = "subagent_type", alias = "agent", alias = "agent_type")]
    kind: Option<String>,
    isolation: Option<Isolation>,
    #[serde(alias = "background")]
    run_in_background: bool,
}

impl Call {
    /// A call of an expert: what it is told is the arguments, and what was found before, if anything was.
    pub(super) fn task(input: Value) -> Result<Self, String> {
        let Task { agent, arguments } = read(TASK, input)?;
        if agent.trim().is_empty() {
            return Err("`agent` is missing: say whom to call".to_owned());
        }
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
        Ok(Self { way: Way::Arguments, who: agent, title, text: bounded(text)?, ..Self::default() })
    }

    /// A call of a sub-agent.
    pub(super) fn agent(input: Value) -> Result<Self, String> {
        Self::words(AGENT, input)
    }

    /// The same that nobody waits for.
    pub(super) fn spawn(input: Value) -> Result<Self, String> {
        Ok(Self { background: true, ..Self::words(SPAWN, input)? })
    }

    fn words(tool: &str, input: Value) -> Result<Self, String> {
        let Agent { description, prompt, kind, isolation, run_in_background } = read(tool, input)?;
        let who = kind.filter(|kind| !kind.trim().is_empty()).unwrap_or_else(|| GENERAL.to_owned());
        if prompt.trim().is_empty() {
            return Err("`prompt` is missing: whoever is called sees nothing of this conversation".to_owned());
        }
        let about = if description.trim().is_empty() { &prompt } else { &description };
        let isolation = isolation.unwrap_or_default();
        let (title, background) = (title(about), run_in_background);
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

/// What a model is told about the agents it may call. Every request carries this text and any file can add to it, so
/// it is bounded: descriptions as far as there is room, then names, then the number of the rest. An agent that is not
/// listed can still be called by its name.
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
    told.join(" ")
}

const TASK_WORDS: &str = "Call one of the team's experts with arguments, and get what it says. It sees nothing of this \
    conversation. Several calls in one answer run side by side; what one says can be an argument of the next.";
const AGENT_WORDS: &str = "Have a sub-agent do something by itself, and get its answer. It has a context of its own and \
    sees nothing of this conversation: `prompt` must say everything (what is wanted and why, files and symbols that are \
    known, what to give back). Several calls in one answer run side by side: use that for questions that do not depend on \
    each other. It is never allowed more than you are.";
const SPAWN_WORDS: &str = "Have a sub-agent do something by itself in the background: like `agent`, but you go on at once with its \
    task id, and are sent its answer when it is there.";

/// The tools that call, for somebody who may call these.
pub(crate) fn tools(callees: &[Callee]) -> [TeamTool; 3] {
    let about = about(callees);
    // Without an `enum`, which would refuse agents that are not listed: an unknown name is answered with candidates.
    let who = |words: &str| json!({ "type": "string", "description": format!("{words} {about}").trim_end() });
    let task = json!({
        "type": "object",
        "properties": {
            "agent": who("Whom to call."),
            "arguments": { "type": "object", "description": "What it needs to know, as its description says." },
        },
    });
    let kind = who("Who does it; left out: `general`.");
    let mut agent = json!({
        "type": "object", "required": ["description", "prompt"],
        "properties": {
            "description": { "type": "string", "description": "What it is about, in three to five words." },
            "prompt": { "type": "string", "description": "What to do, self-contained." },
            "type": kind,
            "isolation": {
                "type": "string", "enum": ["worktree"],
                "description": "`worktree`: in a copy of the project; the user takes the changes from there.",
            },
        },
    });
    let mut spawn = agent.clone();
    if let Some(properties) = agent.get_mut("properties").and_then(Value::as_object_mut) {
        let words = "Whether you go on at once; the answer is then sent to you by itself.";
        properties.insert("run_in_background".to_owned(), json!({ "type": "boolean", "description": words }));
    }
    if let Some(kinds) = spawn.pointer_mut("/properties/type").and_then(Value::as_object_mut) {
        // It is said once, at `agent`.
        kinds.insert("description".to_owned(), json!("Who does it, as for `agent`."));
    }
    [
        tool(TASK, Deed::Team, TASK_WORDS, task),
        tool(AGENT, Deed::Team, AGENT_WORDS, agent),
        tool(SPAWN, Deed::Team, SPAWN_WORDS, spawn),
    ]
}

#[cfg(test)]
mod tests {
    use max_team_tools::Tool;

    use super::*;

    #[test]
    fn calls_are_read_by_every_name_their_fields_have() {
        let words = |who: &str| Call { who: who.into(), title: "look".into(), text: "p".into(), ..Call::default() };
        for (input, who) in [
            (json!({ "description": "look", "prompt": "p" }), "general"),
            (json!({ "description": "look", "prompt": "p", "type": "explore" }), "explore"),
            (json!({ "description": "look", "prompt": "p", "subagent_type": "plan" }), "plan"),
            (json!({ "description": "look", "prompt": "p", "type": "" }), "general"),
        ] {
            assert_eq!(Call::agent(input).unwrap(), words(who));
        }
        for input in [
            json!({ "agent": "weather", "arguments": { "city": "北京" } }),
            json!({ "agent_name": "weather", "arguments": "{\"city\":\"北京\"}" }),
        ] {
            let call = Call::task(input).unwrap();
            assert_eq!((call.way, call.who.as_str()), (Way::Arguments, "weather"));
            let told: Value = serde_json::from_str(&call.text).unwrap();
            assert_eq!(told, json!({ "args": { "city": "北京" }, "cache_data": null }));
        }
        assert_eq!(Call::task(json!({ "agent": "a" })).unwrap().text, r#"{"args":{},"cache_data":null}"#);
    }

    #[test]
    fn what_cannot_be_meant_is_told() {
        let wrong = [
            Call::task(json!({ "arguments": {} })),
            Call::task(json!({ "agent": "a", "arguments": [1] })),
            Call::task(json!({ "agent": "a", "arguments": "not json" })),
            Call::agent(json!({ "description": "d" })),
            Call::agent(json!({ "description": "d", "prompt": "x".repeat(CALL_TEXT_BYTES_MAX + 1) })),
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
        assert_eq!(schema["required"], json!(["description", "prompt"]), "`type` left out means `general`");
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
