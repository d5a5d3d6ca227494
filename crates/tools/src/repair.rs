//! Calls as weak models write them: a tool's name in other capitals or behind a prefix, an input or a field as text that holds JSON.
//!
//! A certain correction is made before the call is journalled and judged; everything else is left to the tool's own
//! check, whose error says what to write. Nothing is guessed: a name must fit exactly one tool, a text must be JSON of
//! the type that the schema asks for.

use serde_json::{Map, Value};

use crate::aliases::{SEARCH, canonical, field, is_same};
use crate::registry::Registry;

/// How deep a schema is followed.
const DEPTH_MAX: usize = 8;

impl Registry {
    /// The call that is meant, if another was written: the tool's name and its input.
    pub fn mended(&self, name: &str, input: &Value) -> Option<(String, Value)> {
        let meant = if self.get(name).is_some() { name.to_owned() } else { self.meant(name)? };
        let spec = self.get(&meant)?.spec();
        let schema = &spec.schema;
        let mut fit = fitted(input, schema, 0);
        if let Value::Object(members) = &mut fit
            && rename(members, &spec.name, name, schema)
        {
            fit = fitted(&fit, schema, 0);
        }
        (meant != name || fit != *input).then_some((meant, fit))
    }

    /// The one tool that an unknown name means.
    fn meant(&self, name: &str) -> Option<String> {
        let bare = without_prefix(name);
        if is_glob(bare) && self.get(SEARCH).is_some() {
            return Some(SEARCH.to_owned());
        }
        let mut same = self.specs().map(|spec| &spec.name).filter(|known| is_same(known, bare));
        match (same.next(), same.next()) {
            (Some(only), None) => Some(only.clone()),
            (Some(_), Some(_)) => None,
            (None, _) => self.get(canonical(bare)).map(|tool| tool.spec().name.clone()),
        }
    }
}

/// Whether a name is of the tool that elsewhere lists files by a pattern of their names.
fn is_glob(name: &str) -> bool {
    is_same(name, "glob")
}

/// Gives the fields of a call the names that the tool knows; whether one had another. `called` is the name that the call was
/// made by.
fn rename(members: &mut Map<String, Value>, tool: &str, called: &str, schema: &Value) -> bool {
    let is_known = |name: &str| schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
    let theirs: Vec<String> = members.keys().cloned().collect();
    let mut has_renamed = false;
    for name in theirs {
        // What `Glob` calls a pattern is one of names, not of lines.
        let ours =
            if tool == SEARCH && is_glob(without_prefix(called)) && name == "pattern" { Some("glob") } else { None };
        let ours = ours.or_else(|| respelt(&name, schema)).or_else(|| field(tool, &name).filter(|_| !is_known(&name)));
        if let Some(ours) = ours.filter(|ours| is_known(ours) && !members.contains_key(*ours))
            && let Some(value) = members.remove(&name)
        {
            members.insert(ours.to_owned(), value);
            has_renamed = true;
        }
    }
    if tool == SEARCH {
        rename_modes(members);
    }
    has_renamed
}

/// The property that a name means which differs from it in capitals and joints alone: `taskId` is `task_id`.
fn respelt<'s>(name: &str, schema: &'s Value) -> Option<&'s str> {
    let known = schema.get("properties").and_then(Value::as_object)?;
    if known.contains_key(name) {
        return None;
    }
    known.keys().map(String::as_str).find(|known| is_same(known, name))
}

/// What `Grep` of Claude Code says in words or switches, and `search_code` by other fields or always.
fn rename_modes(members: &mut Map<String, Value>) {
    match members.get("output_mode").and_then(Value::as_str) {
        Some("files_with_matches") => drop(members.insert("files_only".to_owned(), Value::Bool(true))),
        Some("content") => {}
        _ => return,
    }
    for name in ["output_mode", "-n", "head_limit"] {
        members.remove(name);
    }
}

/// A name without what some models put before it: `functions.`, `default_api:`. `mcp__server__` stays: it names a tool
/// of that server, which is never one of ours.
fn without_prefix(name: &str) -> &str {
    let name = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
    if name.trim_start().starts_with("mcp__") { name } else { name.rsplit("__").next().unwrap_or(name).trim() }
}

/// A value in the type that its schema asks for, where the value says it in another form.
fn fitted(value: &Value, schema: &Value, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return value.clone();
    }
    let types = types(schema);
    let value = match value {
        Value::String(text) if !types.is_empty() && !types.contains(&"string") => read(text, &types, schema),
        Value::Number(_) | Value::Bool(_) if types == ["string"] => Some(Value::String(value.to_string())),
        _ => None,
    }
    .unwrap_or_else(|| value.clone());
    match value {
        Value::Object(members) => Value::Object(members_fitted(members, schema, depth)),
        Value::Array(items) => {
            let item = schema.get("items");
            let fit = |value: Value| item.map_or_else(|| value.clone(), |item| fitted(&value, item, depth + 1));
            Value::Array(items.into_iter().map(fit).collect())
        }
        other => other,
    }
}

fn members_fitted(members: Map<String, Value>, schema: &Value, depth: usize) -> Map<String, Value> {
    let fit = |(name, value): (String, Value)| {
        let property = schema.get("properties").and_then(|properties| properties.get(&name));
        let value = property.map_or_else(|| value.clone(), |property| fitted(&value, property, depth + 1));
        (name, value)
    };
    members.into_iter().map(fit).collect()
}

/// The types that a schema allows; none if it does not say.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => schema.get("anyOf").and_then(Value::as_array).into_iter().flatten().flat_map(types).collect(),
    }
}

/// The JSON value in a text, if it has one of these types; a single text may stand for a list of texts.
fn read(text: &str, types: &[&str], schema: &Value) -> Option<Value> {
    let parsed = serde_json::from_str::<Value>(text).ok().or_else(|| match text.trim().to_ascii_lowercase().as_str() {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => None,
    });
    let is_fit = |value: &Value| match value {
        Value::Object(_) => types.contains(&"object"),
        Value::Array(_) => types.contains(&"array"),
        Value::Bool(_) => types.contains(&"boolean"),
        Value::Number(number) => types.contains(&"number") || (types.contains(&"integer") && !number.is_f64()),
        Value::Null | Value::String(_) => false,
    };
    let is_list = types == ["array"] && schema.get("items").is_some_and(|item| self::types(item) == ["string"]);
    let one = || (is_list && !text.trim().is_empty()).then(|| Value::Array(vec![Value::String(text.to_owned())]));
    parsed.filter(is_fit).or_else(one)
}

#[cfg(test)]
mod tests {
    use max_team_core::policy::{Action, Repeatability};
    use serde_json::json;

    use super::*;
    use crate::tool::{Output, Spec, Tool, ToolContext, ToolError};

    #[derive(Debug)]
    struct Named(Spec);

    impl Tool for Named {
        fn spec(&self) -> &Spec {
            &self.0
        }

        fn action(&self, _: &ToolContext, _: &Value) -> Result<Action, ToolError> {
            Ok(Action::read(""))
        }

        fn call(&self, _: &ToolContext, _: Value, _: &Action, _: bool) -> Result<Output, ToolError> {
            Ok(Output::text(""))
        }
    }

    fn registry() -> Registry {
        let mut registry = Registry::builtin();
        let schema = json!({
            "type": "object",
            "properties": {
                "goal": { "type": "string" },
                "tasks": { "type": "array", "items": { "type": "object", "properties": {
                    "id": { "type": "string" },
                    "needs": { "type": "array", "items": { "type": "string" } },
                    "retry": { "type": "integer" },
                } } },
                "arguments": { "type": "object" },
                "fresh": { "type": "boolean" },
                "to": { "anyOf": [{ "type": "string" }, { "type": "array" }] },
            },
        });
        for name in ["submit_plan", "fly", "FLY", "task_update"] {
            let (name, description) = (name.to_owned(), String::new());
            let spec =
                Spec { name, description, schema: schema.clone(), class: Repeatability::Pure, null_is_absent: true };
            registry.put(Named(spec));
        }
        registry
    }

    #[test]
    fn a_name_that_fits_one_tool_means_it() {
        let registry = registry();
        for (name, meant) in [
            ("SubmitPlan", Some("submit_plan")),
            ("functions.submit_plan", Some("submit_plan")),
            ("default_api:submitPlan", Some("submit_plan")),
            ("functions__submit-plan", Some("submit_plan")),
            ("mcp__team__submit_plan", None),
            ("functions.mcp__files__read_file", None),
            ("EditFile", Some("edit_file")),
            ("functions.Read", Some("read_file")),
            ("TaskUpdate", Some("task_update")),
            ("Fly", None),
            ("create_document", None),
        ] {
            let mended = registry.mended(name, &json!({})).map(|(name, _)| name);
            assert_eq!(mended.as_deref(), meant, "{name}");
        }
        assert_eq!(registry.mended("FLY", &json!({})), None, "it is there under this name");
        let (_, input) = registry.mended("TaskUpdate", &json!({ "fresH": true })).unwrap();
        assert_eq!(input, json!({ "fresh": true }), "a field in other capitals");
    }

    #[test]
    fn fields_of_file_tools_may_have_the_names_that_they_have_elsewhere() {
        let registry = Registry::builtin();
        for (called, input, meant, want) in [
            ("Read", json!({ "file_path": "a" }), "read_file", json!({ "path": "a" })),
            ("read_file", json!({ "filePath": "a", "limit": 3 }), "read_file", json!({ "path": "a", "limit": 3 })),
            (
                "Write",
                json!({ "file_path": "a", "content": "x" }),
                "write_file",
                json!({ "path": "a", "content": "x" }),
            ),
            (
                "create_file",
                json!({ "path": "a", "file_text": "x" }),
                "write_file",
                json!({ "path": "a", "content": "x" }),
            ),
            (
                "Edit",
                json!({ "file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true }),
                "edit_file",
                json!({ "path": "a", "old": "x", "new": "y", "all": true }),
            ),
            (
                "str_replace",
                json!({ "path": "a", "old_str": "x", "new_str": "y" }),
                "edit_file",
                json!({ "path": "a", "old": "x", "new": "y" }),
            ),
            ("LS", json!({ "dir_path": "a" }), "list_dir", json!({ "path": "a" })),
            (
                "Grep",
                json!({ "pattern": "x", "path": "a", "glob": "*.rs", "-i": true, "-C": 2, "-n": true,
                    "output_mode": "files_with_matches", "head_limit": 5 }),
                "search_code",
                json!({ "pattern": "x", "path": "a", "glob": "*.rs", "ignore_case": true, "context": 2, "files_only": true }),
            ),
            (
                "grep_search",
                json!({ "query": "x", "include": "*.rs" }),
                "search_code",
                json!({ "pattern": "x", "glob": "*.rs" }),
            ),
            (
                "Glob",
                json!({ "pattern": "**/*.rs", "path": "a" }),
                "search_code",
                json!({ "glob": "**/*.rs", "path": "a" }),
            ),
            (
                "Bash",
                json!({ "command": "x", "run_in_background": true }),
                "Bash",
                json!({ "command": "x", "background": true }),
            ),
        ] {
            assert_eq!(registry.mended(called, &input), Some((meant.to_owned(), want)), "{called} {input}");
        }
        // A field that is there is not replaced, and what no field means is left to the tool's own check.
        for input in [json!({ "path": "a", "file_path": "b" }), json!({ "path": "a", "pages": "1" })] {
            assert_eq!(registry.mended("read_file", &input), None, "{input}");
        }
    }

    #[test]
    fn text_that_holds_what_the_schema_asks_for_is_read() {
        let registry = registry();
        let tasks = json!([{ "id": "1", "needs": ["a"], "retry": 2 }]);
        for (input, want) in [
            (json!("{\"goal\": \"x\"}"), json!({ "goal": "x" })),
            (json!({ "tasks": "[{\"id\": 1, \"needs\": \"a\", \"retry\": \"2\"}]" }), json!({ "tasks": tasks })),
            (json!({ "tasks": [{ "id": 1, "needs": "[\"a\"]", "retry": 2 }] }), json!({ "tasks": tasks })),
            (json!({ "arguments": "{\"city\": \"北京\"}" }), json!({ "arguments": { "city": "北京" } })),
            (json!({ "fresh": "True" }), json!({ "fresh": true })),
        ] {
            assert_eq!(registry.mended("submit_plan", &input), Some(("submit_plan".to_owned(), want)), "{input}");
        }
        for input in [
            json!({ "goal": "{\"a\": 1}" }),
            json!({ "tasks": "none" }),
            json!({ "arguments": "[1]" }),
            json!({ "to": "[\"bob\"]" }),
            json!({ "fresh": "maybe", "unknown": "1" }),
            json!("words"),
        ] {
            assert_eq!(registry.mended("submit_plan", &input), None, "{input}");
        }
    }
}
