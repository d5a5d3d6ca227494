//! A request as its model sees it: its role, the tools offered, and the conversation.
//!
//! The policy decides from this alone, so it serves any number of conversations in any order, also after a crash. Each
//! step that the policy takes is written into the id of its tool calls (`s0_2_1_17`: phase, step, call, request), which
//! the program hands back with the results.

use serde_json::Value;

use super::policy::Call;

/// What a task text says to name its part: `ref:review`.
const REFERENCE: &str = "ref:";

#[derive(Debug)]
pub(super) enum Item {
    Heard(String),
    Said(String),
    Called { id: String, name: String, input: Value },
    Returned { id: String, text: String, failed: bool },
}

#[derive(Debug)]
pub(super) struct View {
    /// The part that the task text names; `lead`, `keeper` (of the memory) or `other` without one.
    pub(super) role: String,
    pub(super) system: String,
    tools: Vec<(String, Value)>,
    pub(super) items: Vec<Item>,
}

impl View {
    /// Of the body of a request.
    pub(super) fn new(request: &Value) -> View {
        let list = |name: &str| request.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let tool = |tool: &Value| {
            let schema = tool.get("input_schema").cloned().unwrap_or_default();
            Some((tool.get("name")?.as_str()?.to_owned(), schema))
        };
        let mut view = View {
            role: String::new(),
            system: request.get("system").map(text).unwrap_or_default(),
            tools: list("tools").iter().filter_map(tool).collect(),
            items: list("messages").iter().flat_map(items).collect(),
        };
        view.role = view.named_role().unwrap_or_else(|| view.unnamed_role().to_owned());
        view
    }

    /// The schema of a tool, if it is offered.
    pub(super) fn offered(&self, tool: &str) -> Option<&Value> {
        self.tools.iter().find(|(name, _)| name == tool).map(|(_, schema)| schema)
    }

    /// Whether a tool is offered that takes this field.
    pub(super) fn takes(&self, tool: &str, field: &str) -> bool {
        self.offered(tool).is_some_and(|schema| schema.pointer(&format!("/properties/{field}")).is_some())
    }

    /// Everything that came in: messages and results, without the system prompt.
    pub(super) fn heard(&self) -> String {
        let texts = self.items.iter().filter_map(|item| match item {
            Item::Heard(text) | Item::Returned { text, .. } => Some(text.as_str()),
            Item::Said(_) | Item::Called { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    pub(super) fn has_heard(&self, word: &str) -> bool {
        self.heard().contains(word)
    }

    /// What came since the model last answered.
    pub(super) fn new_items(&self) -> impl Iterator<Item = &Item> {
        let is_own = |item: &Item| matches!(item, Item::Said(_) | Item::Called { .. });
        let since = self.items.iter().rposition(is_own).map_or(0, |at| at + 1);
        self.items.iter().skip(since)
    }

    /// The messages since the model last answered.
    pub(super) fn news(&self) -> String {
        let texts = self.new_items().filter_map(|item| match item {
            Item::Heard(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    pub(super) fn has_said(&self, words: &str) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Said(text) if text.contains(words)))
    }

    pub(super) fn has_called(&self, tool: &str, arguments: &Value) -> bool {
        let equal =
            |item: &Item| matches!(item, Item::Called { name, input, .. } if name == tool && input == arguments);
        self.items.iter().any(equal)
    }

    /// Whether exactly this call of a step was refused or failed; one that was cut off may be made again.
    pub(super) fn has_failed(&self, step: &str, tool: &str, arguments: &Value) -> bool {
        let is_failure = |wanted: &str| {
            let failure = |item: &Item| match item {
                Item::Returned { id, text, failed } => id == wanted && *failed && !text.contains("interrupted"),
                _ => false,
            };
            self.items.iter().any(failure)
        };
        self.items.iter().any(|item| match item {
            Item::Called { id, name, input } => {
                id.starts_with(step) && name == tool && input == arguments && is_failure(id)
            }
            _ => false,
        })
    }

    /// How often the call of this step was made.
    pub(super) fn attempts(&self, step: &str) -> usize {
        self.items.iter().filter(|item| matches!(item, Item::Called { id, .. } if id.starts_with(step))).count()
    }

    /// The last call of this conversation, with its step.
    pub(super) fn last_call(&self) -> Option<Call> {
        self.items.iter().rev().find_map(|item| match item {
            Item::Called { id, name, input } => {
                let (step, _) = id.rsplit_once('_')?;
                Some(Call { step: format!("{step}_"), tool: name.clone(), input: input.clone() })
            }
            _ => None,
        })
    }

    /// The results of this step's call so far: text, and whether it failed.
    pub(super) fn results(&self, step: &str) -> Vec<(&str, bool)> {
        let mut results = Vec::new();
        for item in &self.items {
            match item {
                Item::Returned { id, text, failed } if id.starts_with(step) => results.push((text.as_str(), *failed)),
                _ => {}
            }
        }
        results
    }

    fn named_role(&self) -> Option<String> {
        let Some(Item::Heard(first)) = self.items.first() else { return None };
        let (_, rest) = first.split_once(REFERENCE)?;
        Some(rest.chars().take_while(char::is_ascii_alphanumeric).collect())
    }

    fn unnamed_role(&self) -> &'static str {
        let offers = |names: &[&str]| names.iter().any(|name| self.offered(name).is_some());
        if offers(&["submit_plan", "ask_user"]) {
            "lead"
        } else if offers(&["memory_write"]) {
            "keeper"
        } else {
            "other"
        }
    }
}

/// The texts inside a message's content, a result or a system prompt.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn items(message: &Value) -> Vec<Item> {
    let is_user = message.get("role").and_then(Value::as_str) == Some("user");
    let plain = |text: String| if is_user { Item::Heard(text) } else { Item::Said(text) };
    let Some(content) = message.get("content") else { return Vec::new() };
    let Value::Array(blocks) = content else { return vec![plain(text(content))] };
    let field = |block: &Value, name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let item = |block: &Value| match block.get("type").and_then(Value::as_str)? {
        "text" => Some(plain(field(block, "text"))),
        "tool_use" => {
            let input = block.get("input").cloned().unwrap_or_default();
            Some(Item::Called { id: field(block, "id"), name: field(block, "name"), input })
        }
        "tool_result" => Some(Item::Returned {
            id: field(block, "tool_use_id"),
            text: block.get("content").map(text).unwrap_or_default(),
            failed: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
        }),
        _ => None,
    };
    blocks.iter().filter_map(item).collect()
}
