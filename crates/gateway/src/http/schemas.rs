//! What the bodies of requests look like, for the OpenAPI document.

use max_team_core::policy::Mode;
use max_team_workspace::permissions::PermissionQuestion;
use serde_json::{Value, json};

use super::command_schemas;
use super::memory_routes::BoardName;

/// Keys of facts, as far as generated clients need to know them.
pub(crate) const KEY_PATTERN: &str =
    "^(personality|user_profile|preferences|agent_errors|dialog_context|notes)(\\.[A-Za-z0-9_-]{1,12}){0,4}$";

pub(super) fn text() -> Value {
    json!({ "type": "string", "minLength": 1, "pattern": "\\S" })
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// An object with this one member.
pub(super) fn one(name: &str, schema: Value) -> Value {
    json!({ "type": "object", "required": [name], "properties": { name: schema }, "additionalProperties": false })
}

/// A value that may be left out, or be `null`.
pub(super) fn maybe(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

/// A decision about a plan.
pub(super) fn decision() -> Value {
    let text = text();
    let retry = object(json!({ "agent": maybe(&text), "model": maybe(&text), "note": text }), &[]);
    let ruling =
        json!({ "oneOf": [{ "enum": ["skip", "fixed", "accept", "give_up", "escalate"] }, one("retry", retry)] });
    json!({ "oneOf": [
        { "enum": ["approve", "first_wave"] },
        one("changes", text.clone()),
        one("reject", text),
        one("edit", json!({ "type": "array", "items": edit() })),
        one("rule", ruling),
    ] })
}

/// A change of a plan.
fn edit() -> Value {
    let text = text();
    let names = json!({ "type": "array", "items": text });
    let flag = json!({ "type": "boolean" });
    let amount = json!({ "type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64 });
    let budget = object(json!({ "nano": maybe(&amount), "tokens": maybe(&amount), "wall_ms": maybe(&amount) }), &[]);
    let of = |name: &str, field: &str, schema: Value| {
        one(name, object(json!({ "task": text, field: schema }), &["task", field]))
    };
    json!({ "oneOf": [
        of("describe", "text", text.clone()),
        of("retitle", "text", text.clone()),
        of("assign", "agent", text.clone()),
        of("needs", "needs", names.clone()),
        one("budget", object(json!({ "task": maybe(&text), "budget": budget }), &["budget"])),
        of("skip", "skip", flag),
        one("remove", one("task", text.clone())),
        of("verify", "verify", names),
        one("model", object(json!({ "task": text, "model": maybe(&text) }), &["task"])),
    ] })
}

/// The value of a fact to store.
pub(super) fn fact_value() -> Value {
    let text = json!({ "type": "string" });
    let flag = json!({ "type": "boolean" });
    let member = json!({ "anyOf": [text, { "type": "number" }, flag] });
    let list = json!({ "type": "array" });
    let parts = json!({
        "type": "object", "minProperties": 1, "maxProperties": 8, "additionalProperties": member,
        "propertyNames": { "pattern": "^[A-Za-z0-9_-]{1,12}$" },
        "description": "One fact per member.",
    });
    json!({ "anyOf": [text, { "type": "number" }, flag, list, parts] })
}

/// A fact to store.
fn fact() -> Value {
    let key = json!({ "type": "string", "pattern": KEY_PATTERN });
    let board = json!({ "type": "string", "enum": BoardName::NAMES });
    object(json!({ "key": key, "value": fact_value(), "board": maybe(&board) }), &["key", "value"])
}

/// A request of an OpenAI client.
fn completion() -> Value {
    let text = text();
    let address = json!({ "type": "string", "pattern": "^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$" });
    let picture = json!({ "type": "object", "required": ["url"], "properties": { "url": address } });
    let parts = json!({ "type": "array", "minItems": 1, "items": { "oneOf": [
        object(json!({ "type": { "const": "text" }, "text": text }), &["type", "text"]),
        object(json!({ "type": { "const": "image_url" }, "image_url": picture }), &["type", "image_url"]),
    ] } });
    let message = json!({ "role": text, "content": { "anyOf": [text, parts] } });
    json!({
        "type": "object", "required": ["model", "messages"],
        "properties": {
            "model": text, "stream": { "type": "boolean" }, "user": maybe(&text),
            "messages": { "type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["role", "content"], "properties": message,
            } },
        },
    })
}

/// The body of a request that has one.
pub(crate) fn body(path: &str) -> Option<Value> {
    let text = text();
    let flag = json!({ "type": "boolean" });
    let names = json!({ "type": "array", "items": text });
    Some(match path {
        "/api/v1/login" => json!({ "oneOf": [
            object(json!({ "code": text }), &["code"]),
            object(json!({ "token": text }), &["token"]),
        ] }),
        "/api/v1/commands" => command_schemas::command(),
        "/api/v1/queries" => command_schemas::query(),
        "/api/v1/sessions" => object(json!({ "text": maybe(&text), "agent": maybe(&text) }), &[]),
        "/api/v1/sessions/{session}/messages" => object(json!({ "text": text, "wait": flag, "to": names }), &["text"]),
        "/api/v1/sessions/{session}/continue" => object(json!({ "to": names }), &[]),
        "/api/v1/questions/{question}/answer" => {
            let until = json!({ "type": "string", "enum": ["once", "task", "session", "repository"] });
            let properties = json!({
                "decision": maybe(&decision()), "allow": maybe(&flag), "always": flag, "until": maybe(&until), "comment": text, "drop": flag, "put_off": flag, "word": text,
            });
            object(properties, &[])
        }
        "/api/v1/sessions/{session}/fork" => {
            let at =
                json!({ "type": "string", "pattern": "^(end|last-turn|turn:[1-9][0-9]{0,5}|#?[1-9][0-9]{0,14})$" });
            object(json!({ "at": maybe(&at), "here": flag, "text": maybe(&text) }), &[])
        }
        "/api/v1/worktrees/{worktree}/accept" | "/api/v1/worktrees/{worktree}/reject" => {
            let shown = json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" });
            object(json!({ "files": names, "shown": maybe(&shown) }), &[])
        }
        "/api/v1/memory" => fact(),
        "/api/v1/permissions/why" => {
            let mode = json!({ "type": "string", "enum": Mode::NAMES.map(|(name, _)| name) });
            let tool = json!({ "type": "string", "enum": PermissionQuestion::TOOLS });
            object(
                json!({ "tool": maybe(&tool), "input": text, "agent": maybe(&text), "mode": maybe(&mode) }),
                &["input"],
            )
        }
        "/api/v1/plans/{plan}/decision" => {
            let question = json!({ "type": "string", "pattern": "^ask_[0-9a-f]{32}$" });
            object(json!({ "decision": decision(), "question": maybe(&question) }), &["decision"])
        }
        "/api/v1/plans/{plan}/stop" => object(json!({ "task": maybe(&text) }), &[]),
        "/v1/chat/completions" => completion(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The alternatives of a schema: its values, or the names of its members.
    fn names(schema: &Value) -> Vec<String> {
        let alternatives = schema["oneOf"].as_array().unwrap();
        let of = |one: &Value| match one["enum"].as_array() {
            Some(values) => values.iter().map(|value| value.as_str().unwrap().to_owned()).collect(),
            None => one["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>(),
        };
        alternatives.iter().flat_map(of).collect()
    }

    #[test]
    fn the_manual_names_each_decision_and_each_edit() {
        let pages = [
            include_str!("../../../../docs/en/reference/http-api.md"),
            include_str!("../../../../docs/zh/reference/http-api.md"),
        ];
        let decision = decision();
        let ruling = &decision["oneOf"].as_array().unwrap().last().unwrap()["properties"]["rule"];
        let edits = edit();
        for page in pages {
            // Only code gives a decision up to a person.
            for name in [&decision, ruling, &edits].into_iter().flat_map(names).filter(|name| name != "escalate") {
                assert!(page.contains(&format!("\"{name}\"")), "{name}");
            }
        }
    }
}
