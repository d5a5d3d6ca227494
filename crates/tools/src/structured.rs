//! `structured_output`: the tool through which a model hands over an answer in the shape that was asked for.
//!
//! Its schema is the user's. The registry validates the input against it like any other tool's; the loop takes the
//! valid input as the answer. The tool itself does nothing.

use max_team_core::policy::{Action, ActionKind, Repeatability};
use serde_json::{Value, json};

use crate::tool::{Output, Spec, Tool, ToolContext, ToolError};

/// The tool's name.
const NAME: &str = "structured_output";

/// A schema that cannot be a tool's input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema of the answer cannot be used: {0}")]
pub struct SchemaError(pub String);

/// The tool that takes the final answer.
#[derive(Debug)]
pub struct Structured {
    spec: Spec,
}

impl Structured {
    /// A tool that takes answers fitting `schema`, which must describe an object.
    pub fn new(mut schema: Value) -> Result<Self, SchemaError> {
        let Some(whole) = schema.as_object_mut() else {
            return Err(SchemaError("it must be a JSON object".to_owned()));
        };
        // Providers take objects only, and insist on being told so.
        if *whole.entry("type").or_insert_with(|| json!("object")) != "object" {
            return Err(SchemaError("its `type` must be `object`; put other types into a property".to_owned()));
        }
        jsonschema::validator_for(&schema).map_err(|err| SchemaError(err.to_string()))?;
        let description = "Hand over your final answer in the required shape. Call this exactly once, when you are \
                           done, instead of answering in text; the input is the answer.";
        Ok(Self {
            spec: Spec {
                name: NAME.to_owned(),
                description: description.to_owned(),
                schema,
                class: Repeatability::Pure,
                null_is_absent: false,
            },
        })
    }
}

impl Tool for Structured {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn action(&self, _: &ToolContext, _: &Value) -> Result<Action, ToolError> {
        Ok(Action { kind: ActionKind::Answer, ..Action::read("answer") })
    }

    fn call(&self, _: &ToolContext, _: Value, _: &Action, _: bool) -> Result<Output, ToolError> {
        Ok(Output::text("ok"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_usable_schemas_are_taken() {
        assert!(Structured::new(json!({ "properties": { "n": { "type": "integer" } } })).is_ok());
        let table = [
            (json!([]), "must be a JSON object"),
            (json!({ "type": "array" }), "must be `object`"),
            (json!({ "type": "object", "properties": { "n": { "type": "intger" } } }), "intger"),
            (json!({ "type": "object", "$ref": "https://example.com/s.json" }), "example.com"),
        ];
        for (schema, want) in table {
            let err = Structured::new(schema.clone()).unwrap_err().to_string();
            assert!(err.contains(want), "{schema}: {err}");
        }
    }
}
