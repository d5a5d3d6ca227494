//! A tool as a model hears of it, and its schema made plain.
//!
//! Schemas come from our own types and from foreign MCP servers; providers understand a subset of JSON Schema. Local
//! references are inlined, annotations that only cost tokens are dropped, the top becomes an object. Nothing is
//! validated here: the tool judges its input itself.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Schemas that grow past this many values by inlining are cut with `{}`, which allows anything.
const SCHEMA_NODES_MAX: usize = 10_000;
/// References inside references; deeper ones (a type that holds itself) become `{}`.
const SCHEMA_REFS_MAX: usize = 8;

/// Keys that say nothing to a model, or that inlining has used up.
const DROPPED: [&str; 6] = ["$schema", "$id", "$comment", "$defs", "definitions", "title"];
/// Keys whose values are named by the schema's author: a property may well be called `title`.
const NAMED: [&str; 4] = ["properties", "patternProperties", "dependentSchemas", "dependentRequired"];
/// Keys whose values are plain data.
const DATA: [&str; 5] = ["enum", "const", "default", "examples", "required"];

/// A tool as a model hears of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its input.
    pub schema: Value,
}

/// The schema as providers take it.
pub(crate) fn plain(schema: &Value) -> Value {
    let mut nodes_left = SCHEMA_NODES_MAX;
    let mut plain = match visit(schema, schema, 0, &mut nodes_left) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    // Refused at the top by some providers; the tool still checks what they said.
    for key in ["oneOf", "anyOf", "allOf"] {
        plain.shift_remove(key);
    }
    plain.insert("type".into(), json!("object"));
    plain.entry("properties").or_insert_with(|| json!({}));
    Value::Object(plain)
}

fn visit(node: &Value, root: &Value, refs: usize, nodes_left: &mut usize) -> Value {
    if *nodes_left == 0 {
        return json!({});
    }
    *nodes_left -= 1;
    match node {
        Value::Object(fields) => object(fields, root, refs, nodes_left),
        Value::Array(items) => items.iter().map(|item| visit(item, root, refs, nodes_left)).collect(),
        plain => plain.clone(),
    }
}

fn object(fields: &Map<String, Value>, root: &Value, refs: usize, nodes_left: &mut usize) -> Value {
    let mut out = Map::new();
    if let Some(Value::String(reference)) = fields.get("$ref") {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        if let (Some(target), true) = (target, refs < SCHEMA_REFS_MAX)
            && let Value::Object(inlined) = visit(target, root, refs + 1, nodes_left)
        {
            out = inlined;
        }
    }
    for (key, value) in fields {
        let key = key.as_str();
        if key == "$ref" || DROPPED.contains(&key) {
            continue;
        }
        let value = match value {
            Value::Object(named) if NAMED.contains(&key) => {
                named.iter().map(|(name, value)| (name.clone(), visit(value, root, refs, nodes_left))).collect()
            }
            data if DATA.contains(&key) => data.clone(),
            other => visit(other, root, refs, nodes_left),
        };
        out.insert(key.to_owned(), value);
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_become_plain() {
        let table = [
            (json!(null), json!({"type": "object", "properties": {}})),
            (
                json!({"$schema": "x", "title": "Args", "type": "object",
                       "properties": {"title": {"type": "string", "title": "Title"}}, "required": ["title"]}),
                json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}),
            ),
            (
                json!({"type": "object", "properties": {"at": {"$ref": "#/$defs/Point", "description": "where"}},
                       "$defs": {"Point": {"type": "object", "properties": {"x": {"$ref": "#/$defs/Num"}}},
                                 "Num": {"type": "number"}}}),
                json!({"type": "object", "properties": {"at": {"type": "object",
                       "properties": {"x": {"type": "number"}}, "description": "where"}}}),
            ),
            (
                json!({"anyOf": [{"required": ["a"]}], "properties": {"a": {"enum": [{"title": "kept"}]}}}),
                json!({"properties": {"a": {"enum": [{"title": "kept"}]}}, "type": "object"}),
            ),
            (
                json!({"properties": {"a": {"$ref": "https://elsewhere/schema"}, "b": {"$ref": "#/nowhere"}}}),
                json!({"properties": {"a": {}, "b": {}}, "type": "object"}),
            ),
        ];
        for (schema, want) in table {
            assert_eq!(plain(&schema), want);
        }
    }

    #[test]
    fn a_type_that_holds_itself_ends() {
        let tree = json!({"properties": {"root": {"$ref": "#/$defs/Node"}},
            "$defs": {"Node": {"properties": {"left": {"$ref": "#/$defs/Node"}, "right": {"$ref": "#/$defs/Node"}}}}});
        let text = plain(&tree).to_string();
        assert!(!text.contains("$ref"));
        assert!(text.len() < 40 * SCHEMA_NODES_MAX);
    }
}
