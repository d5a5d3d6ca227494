//! What a server says of its tools, made fit for a request: bounded, without control characters, with nothing to fetch.

use max_team_core::limits::{MCP_DESCRIPTION_BYTES_MAX, MCP_SCHEMA_BYTES_MAX};
use max_team_core::text::stripped;
use serde_json::{Map, Value, json};

/// Levels of a schema that are kept.
const SCHEMA_DEPTH_MAX: usize = 32;

/// A text of a server within `max` bytes.
pub(crate) fn text(text: &str, max: usize) -> String {
    let clean = stripped(text);
    let mut end = clean.len().min(max);
    while !clean.is_char_boundary(end) {
        end -= 1;
    }
    let kept = clean.get(..end).unwrap_or_default();
    if kept.len() == clean.len() { kept.to_owned() } else { format!("{kept} …") }
}

/// The description of a tool, with its origin.
pub(crate) fn description(server: &str, said: &str) -> String {
    let said = text(said.trim(), MCP_DESCRIPTION_BYTES_MAX);
    let said = if said.is_empty() { "It is not described.".to_owned() } else { said };
    format!("The MCP server `{server}` describes this tool as: {said}")
}

/// The input schema of a tool: always an object, without references to other documents.
pub(crate) fn schema(told: &Map<String, Value>) -> Value {
    let mut schema = Value::Object(told.clone());
    keep_local(&mut schema, 0);
    let is_short = serde_json::to_vec(&schema).is_ok_and(|bytes| bytes.len() <= MCP_SCHEMA_BYTES_MAX);
    match schema {
        Value::Object(mut map) if is_short => {
            map.insert("type".into(), "object".into());
            map.entry("properties").or_insert_with(|| json!({}));
            Value::Object(map)
        }
        _ => json!({ "type": "object", "properties": {} }),
    }
}

/// Removes references that lead out of the document, and what lies too deep.
fn keep_local(value: &mut Value, depth: usize) {
    if depth > SCHEMA_DEPTH_MAX {
        *value = Value::Bool(true);
        return;
    }
    match value {
        Value::Object(map) => {
            for key in ["$ref", "$dynamicRef", "$schema", "$id"] {
                let is_local = map.get(key).and_then(Value::as_str).is_some_and(|target| target.starts_with('#'));
                if !is_local && map.get(key).is_some_and(Value::is_string) {
                    map.remove(key);
                }
            }
            for (key, inner) in map.iter_mut() {
                match inner {
                    Value::String(said) if key == "description" || key == "title" => {
                        *said = text(said, MCP_DESCRIPTION_BYTES_MAX);
                    }
                    inner => keep_local(inner, depth + 1),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| keep_local(item, depth + 1)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_schema_is_an_object_without_foreign_references() {
        let told = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {
                "a": { "$ref": "https://evil.example/x.json" },
                "b": { "$ref": "#/$defs/b" },
                "$ref": { "type": "string", "description": "an input of that name\u{1b}[2J" },
            },
            "$defs": { "b": { "type": "string" } },
        });
        let want = json!({
            "type": "object",
            "properties": {
                "a": {}, "b": { "$ref": "#/$defs/b" },
                "$ref": { "type": "string", "description": "an input of that name[2J" },
            },
            "$defs": { "b": { "type": "string" } },
        });
        assert_eq!(schema(told.as_object().unwrap()), want);
        let empty = json!({ "type": "object", "properties": {} });
        assert_eq!(schema(&Map::new()), empty);
        let long = json!({ "properties": { "a": { "enum": ["x".repeat(MCP_SCHEMA_BYTES_MAX)] } } });
        assert_eq!(schema(long.as_object().unwrap()), empty);
    }

    #[test]
    fn a_description_names_its_server_and_is_bounded() {
        let said = description("git", &format!("Reads.\u{202e}\u{7}{}", "é".repeat(MCP_DESCRIPTION_BYTES_MAX)));
        assert!(said.starts_with("The MCP server `git` describes this tool as: Reads.é"), "{said}");
        assert!(said.ends_with(" …") && said.len() < MCP_DESCRIPTION_BYTES_MAX + 100);
    }

    proptest! {
        #[test]
        fn any_text_is_cut_at_a_character(said in "\\PC{0,40}", max in 0_usize..60) {
            let kept = text(&said, max);
            prop_assert!(kept.len() <= max + " …".len());
        }
    }
}
