//! Tools whose input is a Rust struct.
//!
//! The struct is the single source: its fields give the JSON Schema, its doc comments the words the model reads, its
//! `Deserialize` the parsing. Two plain functions give the behaviour. Nothing here validates: the registry does,
//! against the schema, before a typed tool sees its input.

use std::fmt;
use std::future::ready;

use max_team_core::policy::{Action, Repeatability};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::remote::{RemoteFuture, RemoteTool};
use crate::tool::{Output, Spec, Tool, ToolContext, ToolError};

/// A tool whose input is an `A`.
pub struct Typed<A> {
    spec: Spec,
    action: fn(&ToolContext, &A) -> Result<Action, ToolError>,
    call: fn(&ToolContext, A, &Action, bool) -> Result<Output, ToolError>,
    try_inline: fn(&ToolContext, &A, &Action) -> Option<Result<Output, ToolError>>,
}

impl<A: DeserializeOwned + JsonSchema> Typed<A> {
    /// A tool from its name, its class and its two halves; the rest is in `A`.
    pub fn new(
        name: &str,
        class: Repeatability,
        action: fn(&ToolContext, &A) -> Result<Action, ToolError>,
        call: fn(&ToolContext, A, &Action, bool) -> Result<Output, ToolError>,
    ) -> Self {
        Self { spec: Spec::of::<A>(name, class), action, call, try_inline: |_, _, _| None }
    }

    /// The same tool where some calls are over as soon as they are looked at.
    #[must_use]
    pub fn or_inline(self, try_inline: fn(&ToolContext, &A, &Action) -> Option<Result<Output, ToolError>>) -> Self {
        Self { try_inline, ..self }
    }
}

/// Makes the call of a remote tool whose input is an `A`.
pub(crate) type RemoteCall<A> = for<'a> fn(&'a ToolContext, A, &'a Action) -> RemoteFuture<'a>;

/// A remote tool whose input is an `A`.
pub(crate) struct RemoteTyped<A> {
    spec: Spec,
    action: fn(&ToolContext, &A) -> Result<Action, ToolError>,
    server: fn(&A, &Action) -> Option<String>,
    call: RemoteCall<A>,
}

impl<A: DeserializeOwned + JsonSchema> RemoteTyped<A> {
    /// A tool that only reads, from its name and its parts; the rest is in `A`.
    pub(crate) fn reading(
        name: &str,
        action: fn(&ToolContext, &A) -> Result<Action, ToolError>,
        server: fn(&A, &Action) -> Option<String>,
        call: RemoteCall<A>,
    ) -> Self {
        Self { spec: Spec::of::<A>(name, Repeatability::Pure), action, server, call }
    }
}

impl<A> fmt::Debug for RemoteTyped<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTyped").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

impl<A: DeserializeOwned> RemoteTool for RemoteTyped<A> {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn action(&self, cx: &ToolContext, args: &Value) -> Result<Action, ToolError> {
        (self.action)(cx, &A::deserialize(args).map_err(|err| misfit(&self.spec, &err))?)
    }

    fn server(&self, args: &Value, intent: &Action) -> Option<String> {
        (self.server)(&A::deserialize(args).ok()?, intent)
    }

    fn call<'a>(&'a self, cx: &'a ToolContext, args: Value, intent: &'a Action, _: bool) -> RemoteFuture<'a> {
        match serde_json::from_value(args) {
            Ok(args) => (self.call)(cx, args, intent),
            Err(err) => Box::pin(ready(Err(misfit(&self.spec, &err)))),
        }
    }
}

impl Spec {
    /// What is known about a tool that takes an `A`: for tools that need more than two plain functions.
    pub fn of<A: JsonSchema>(name: &str, class: Repeatability) -> Self {
        let (description, schema) = plain_schema::<A>();
        Self { name: name.to_owned(), description, schema, class, null_is_absent: true }
    }
}

impl<A> fmt::Debug for Typed<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

impl<A: DeserializeOwned> Tool for Typed<A> {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn action(&self, cx: &ToolContext, args: &Value) -> Result<Action, ToolError> {
        (self.action)(cx, &A::deserialize(args).map_err(|err| misfit(&self.spec, &err))?)
    }

    fn try_inline(&self, cx: &ToolContext, args: &Value, intent: &Action) -> Option<Result<Output, ToolError>> {
        (self.try_inline)(cx, &A::deserialize(args).ok()?, intent)
    }

    fn call(&self, cx: &ToolContext, args: Value, intent: &Action, resumed: bool) -> Result<Output, ToolError> {
        let args = serde_json::from_value(args).map_err(|err| misfit(&self.spec, &err))?;
        (self.call)(cx, args, intent, resumed)
    }
}

fn misfit(spec: &Spec, err: &serde_json::Error) -> ToolError {
    ToolError::correctable(format!("the input of `{}` does not fit: {err}", spec.name))
}

/// The description and the schema of `A`, as plain as every provider takes it: one type per property, nothing that
/// only a validator of another world would use.
fn plain_schema<A: JsonSchema>() -> (String, Value) {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    let mut description = String::new();
    if let Some(whole) = schema.as_object_mut() {
        whole.shift_remove("title");
        if let Some(Value::String(words)) = whole.shift_remove("description") {
            description = reflow(&words);
        }
        // There even where it is empty: some providers take no object without it.
        let properties = whole.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
        if let Some(properties) = properties.as_object_mut() {
            properties.values_mut().for_each(make_plain);
        }
    }
    (description, schema)
}

fn make_plain(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    property.shift_remove("format");
    if let Some(Value::String(words)) = property.get_mut("description") {
        *words = reflow(words);
    }
    let single = match property.get("type") {
        Some(Value::Array(types)) => types.iter().find(|kind| kind.as_str() != Some("null")).cloned(),
        _ => None,
    };
    if let Some(kind) = single {
        property.insert("type".to_owned(), kind);
    }
}

/// Doc comments are wrapped for people who read code; a model gets each paragraph as one line.
fn reflow(words: &str) -> String {
    words.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// Greets
    /// somebody.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Greet {
        /// Whom.
        #[expect(dead_code, reason = "only the schema is of interest")]
        name: String,
        /// How often.
        #[schemars(range(min = 1))]
        #[expect(dead_code, reason = "only the schema is of interest")]
        times: Option<u32>,
    }

    #[test]
    fn the_struct_gives_description_and_plain_schema() {
        let (description, schema) = plain_schema::<Greet>();
        assert_eq!(description, "Greets somebody.");
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "name": { "description": "Whom.", "type": "string" },
                    "times": { "description": "How often.", "type": "integer", "minimum": 1 },
                },
                "additionalProperties": false,
                "required": ["name"],
            })
        );
    }
}
