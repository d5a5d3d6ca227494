//! What stands between a model's words and a tool.

use max_team_core::limits::{LIST_ENTRIES_MAX, READ_LINES_MAX, SEARCH_MATCHES_MAX, TOOL_INPUT_BYTES_MAX};
use max_team_core::policy::{ActionKind, Repeatability};
use max_team_tools::{Output, Registry, RegistryError, Spec, Structured, ToolError};
use serde_json::{Value, json};

use crate::project::Project;

#[test]
fn inputs_that_do_not_fit_are_explained() {
    let project = Project::new();
    let takes = "It takes `path` (string, required), `offset` (integer), `limit` (integer)";
    let table = [
        ("raed_file", json!({}), "there is no tool `raed_file`; did you mean `read_file`? The tools are: `browser`, `coverage_report`, `edit_file`, `geocode`, `git_commit`, `git_diff`, `git_log`, `git_status`, `list_dir`, `query_log`, `query_metrics`, `read_file`, `run_shell`, `run_test`, `search_code`, `shell_output`, `shell_stop`, `web_fetch`, `web_search`, `write_file`".to_owned()),
        ("dance", json!({}), "there is no tool `dance`. The tools are: `browser`, `coverage_report`, `edit_file`, `geocode`, `git_commit`, `git_diff`, `git_log`, `git_status`, `list_dir`, `query_log`, `query_metrics`, `read_file`, `run_shell`, `run_test`, `search_code`, `shell_output`, `shell_stop`, `web_fetch`, `web_search`, `write_file`".to_owned()),
        ("read_file", json!("a.txt"), format!("the input of `read_file` must be a JSON object, not a string; {takes}")),
        ("read_file", json!({}), format!("the input of `read_file` does not fit: \"path\" is a required property. {takes}")),
        ("read_file", json!({ "path": null }), format!("the input of `read_file` does not fit: `/path`: null is not of type \"string\". {takes}")),
        ("read_file", json!({ "path": "a", "limit": "x" }), format!("the input of `read_file` does not fit: `/limit`: \"x\" is not of type \"integer\". {takes}")),
        ("read_file", json!({ "path": 1, "offset": 0 }), format!("the input of `read_file` does not fit: `/path`: 1 is not of type \"string\"; `/offset`: 0 is less than the minimum of 1. {takes}")),
        ("read_file", json!({ "path": "a", "pth": 1 }), format!("the input of `read_file` does not fit: Additional properties are not allowed ('pth' was unexpected). {takes}")),
    ];
    for (tool, input, want) in table {
        assert_eq!(project.refused(tool, input), want);
    }
}

#[test]
fn faults_and_inputs_are_bounded() {
    let project = Project::new();
    let large = "x".repeat(TOOL_INPUT_BYTES_MAX);
    let err = project.refused("read_file", json!({ "path": large }));
    assert_eq!(err, "the input of `read_file` is larger than 8.0 MiB; do it in pieces");
    let err = project.refused("read_file", json!({ "path": ["x".repeat(1 << 20)] }));
    assert!(err.len() < 1_000, "{}", err.len());
    let many: Value = (0..100).map(|n| (format!("p{n}"), json!(n))).collect();
    let mut registry = Registry::new();
    let properties: Value = (0..100).map(|n| (format!("p{n}"), json!({ "type": "string" }))).collect();
    registry.add(Structured::new(json!({ "properties": properties })).unwrap()).unwrap();
    let err = registry.prepare(&project.cx, "structured_output", &many).unwrap_err().to_string();
    assert!(err.contains("; and more. It takes") && err.len() < 2_000, "{err}");
}

#[test]
fn a_null_is_an_absent_option_to_our_tools_only() {
    let project = Project::new();
    project.write("a", "x\n");
    assert!(project.call("read_file", json!({ "path": "a", "offset": null })).is_ok());
    let mut registry = Registry::new();
    registry.add(Structured::new(json!({ "properties": { "n": { "type": "integer" } } })).unwrap()).unwrap();
    assert!(registry.prepare(&project.cx, "structured_output", &json!({ "n": null })).is_err());
    assert!(registry.prepare(&project.cx, "structured_output", &json!({})).is_ok());
}

#[test]
fn the_structured_answer_is_a_tool() {
    let project = Project::new();
    let mut registry = Registry::builtin();
    let schema = json!({
        "type": "object",
        "properties": { "answer": { "type": "integer", "maximum": 100 } },
        "required": ["answer"],
    });
    registry.add(Structured::new(schema.clone()).unwrap()).unwrap();
    let again = registry.add(Structured::new(schema).unwrap());
    assert_eq!(again, Err(RegistryError::Duplicate("structured_output".into())));

    let input = json!({ "answer": 42 });
    let prepared = registry.prepare(&project.cx, "structured_output", &input).unwrap();
    assert_eq!((prepared.action.kind, prepared.class), (ActionKind::Answer, Repeatability::Pure));
    let told = registry.run(&project.cx, "structured_output", input, &prepared.action, false);
    assert_eq!(told, Ok(Output::text("ok")));
    let err = registry.prepare(&project.cx, "structured_output", &json!({ "answer": 101 })).unwrap_err();
    assert!(matches!(&err, ToolError::Correctable(words) if words.contains("`/answer`: 101")), "{err}");
}

#[test]
fn a_subset_has_what_was_asked_for_or_says_what_is_not_there() {
    let registry = Registry::builtin();
    let names = |registry: &Registry| registry.specs().map(|spec| spec.name.clone()).collect::<Vec<_>>();
    let some = registry.subset(["write_file", "read_file"]).unwrap();
    assert_eq!(names(&some), ["read_file", "write_file"]);
    assert!(some.get("edit_file").is_none() && some.get("read_file").is_some());
    let err = registry.subset(["read_fiel"]).unwrap_err().to_string();
    assert!(err.contains("did you mean `read_file`?"), "{err}");
}

/// The schemas as they go to a model: words on what a name does not say, nothing that a provider would stumble over.
#[test]
fn every_tool_explains_itself() {
    for Spec { name, description, schema, .. } in Registry::builtin().specs() {
        assert!((40..900).contains(&description.len()), "{name}: {description}");
        assert!(!description.contains('\n'), "{name}: {description}");
        assert_eq!(schema["type"], "object", "{name}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none(), "{name}: {schema}");
        for (property, about) in schema["properties"].as_object().unwrap() {
            let is_sentence = |words: &str| words.len() > 10 && words.ends_with('.');
            assert!(about["description"].as_str().is_none_or(is_sentence), "{name}.{property}: {about}");
            assert!(about["type"].is_string(), "{name}.{property}: {about}");
            let known = ["description", "type", "enum", "minimum", "maximum", "items"];
            assert!(about.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{about}");
        }
    }
    // Bounds that the words name are those that hold.
    let table = [("read_file", READ_LINES_MAX), ("list_dir", LIST_ENTRIES_MAX), ("search_code", SEARCH_MATCHES_MAX)];
    for (name, bound) in table {
        let registry = Registry::builtin();
        let description = &registry.get(name).unwrap().spec().description;
        assert!(description.contains(&format!("t most {bound} ")), "{description}");
    }
}
