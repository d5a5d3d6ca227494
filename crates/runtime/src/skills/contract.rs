//! Skills with a contract: a prompt, the tools it needs, JSON schemas for input and output, and a time limit.
//!
//! They are written in YAML. A contract is checked when it is read: an unusable schema or an unknown tool makes the
//! file invalid. The caller that runs it checks the input before and the output after; nothing here runs anything.

use std::path::Path;

use max_team_core::suggest::did_you_mean;
use max_team_core::text::quote;
use max_team_tools::Structured;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::{Head, Scope, Skill, State, read::is_name};
use crate::yaml::{self, Node, Value};

/// Time limit in seconds, if the file has none.
const TIMEOUT_S_DEFAULT: u64 = 600;
/// Greatest time limit in seconds.
const TIMEOUT_S_MAX: u64 = 24 * 3_600;
/// Faults of one value that are reported together.
const FAULTS_MAX: usize = 8;
/// Bytes of one such fault.
const FAULT_BYTES_MAX: usize = 300;

const KEYS: [&str; 7] = ["name", "description", "prompt", "tools", "input", "output", "timeout"];

/// The parsed contract of a skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    /// The prompt of the agent that carries it out.
    pub prompt: String,
    /// Tools that it needs.
    pub tools: Vec<String>,
    /// JSON Schema of the input: an object.
    pub input: Json,
    /// JSON Schema of the output: an object.
    pub output: Json,
    /// Time limit for carrying it out.
    pub timeout_ms: u64,
}

/// A value that does not match the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} does not fit: {faults}")]
pub struct Misfit {
    /// `input` or `output`.
    pub what: &'static str,
    /// What is wrong with it.
    pub faults: String,
}

impl Contract {
    /// The role of the agent that carries out one skill; no other agent has it.
    pub const ROLE: &str = "skill";
    /// The first line of the input.
    pub(crate) const HEAD: &str = "# Input";

    /// Checks an input.
    pub fn takes(&self, input: &Json) -> Result<(), Misfit> {
        fits("input", &self.input, input)
    }

    /// Checks an output.
    pub fn gives(&self, output: &Json) -> Result<(), Misfit> {
        fits("output", &self.output, output)
    }

    /// The input, as the agent that carries out the skill reads it.
    pub fn asked(input: &Json) -> String {
        format!("{}\n\n```json\n{input:#}\n```\n", Self::HEAD)
    }

    /// The input in a line, for a list: its properties with their types, `?` behind optional ones.
    pub(crate) fn shape(&self) -> String {
        let required = self.input.get("required").and_then(Json::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
        let properties = self.input.get("properties").and_then(Json::as_object);
        let shown = properties.into_iter().flatten().map(|(name, property)| {
            let kind = property.get("type").and_then(Json::as_str).unwrap_or("any");
            format!("{name}{}: {kind}", if is_required(name) { "" } else { "?" })
        });
        format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
    }

    /// The property that plain text is meant for: the only one, or the only required one, if it takes text.
    pub(crate) fn only_text(&self) -> Option<&str> {
        let properties = self.input.get("properties").and_then(Json::as_object)?;
        let required = self.input.get("required").and_then(Json::as_array);
        let mut required = required.into_iter().flatten().filter_map(Json::as_str);
        let name = match (properties.len(), required.next(), required.next()) {
            (1, ..) => properties.keys().next()?.as_str(),
            (_, Some(only), None) => only,
            _ => return None,
        };
        let kind = properties.get(name)?.get("type").and_then(Json::as_str);
        kind.is_none_or(|kind| kind == "string").then_some(name)
    }

    /// The refusal for an agent that lacks a tool of the contract.
    pub(crate) fn lacking(&self) -> String {
        format!("it takes the tools {}, and you do not have all of them", self.tools.join(", "))
    }
}

fn fits(what: &'static str, schema: &Json, value: &Json) -> Result<(), Misfit> {
    let misfit = |faults: String| Misfit { what, faults };
    let validator = jsonschema::validator_for(schema).map_err(|error| misfit(error.to_string()))?;
    let told = |fault: jsonschema::ValidationError<'_>| {
        let (path, mut words) = (fault.instance_path().to_string(), fault.to_string());
        words.truncate(words.floor_char_boundary(FAULT_BYTES_MAX));
        if path.is_empty() { words } else { format!("`{path}`: {words}") }
    };
    let faults: Vec<String> = validator.iter_errors(value).take(FAULTS_MAX).map(told).collect();
    if faults.is_empty() { Ok(()) } else { Err(misfit(faults.join("; "))) }
}

/// Reads a contract, or says why it is none.
pub(super) fn read(bytes: &[u8], file: &Path, called: &str, scope: Scope) -> Result<Skill, String> {
    let text = String::from_utf8_lossy(bytes);
    let node = yaml::parse(&text)
        .map_err(|fault| format!("line {}, column {}: {}", fault.spot.line, fault.spot.col, fault.kind))?;
    let Value::Map(entries) = &node.value else { return Err("it must be `key: value` lines".to_owned()) };
    let mut warnings = Vec::new();
    for (key, _) in entries.iter().filter(|(key, _)| !KEYS.contains(&meant(&key.text))) {
        let near = did_you_mean(&key.text, KEYS);
        warnings.push(format!("line {}: `{}` is no key of a contract{near}", key.spot.line, quote(&key.text)));
    }
    let get = |key: &str| entries.iter().find(|(name, _)| meant(&name.text) == key).map(|(_, node)| node);
    let word = |key: &str| get(key).and_then(Node::text).map(str::to_owned).filter(|text| !text.is_empty());
    let needed = |key: &str| word(key).ok_or_else(|| format!("it has no `{key}`"));
    let (description, prompt) = (needed("description")?, needed("prompt")?);
    let name = word("name").filter(|name| is_name(name)).unwrap_or_else(|| called.to_owned());
    let tools = match get("tools").map(|node| &node.value) {
        Some(Value::List(items)) => items.iter().filter_map(Node::text).map(str::to_owned).collect(),
        Some(Value::Scalar(_)) | None => Vec::new(),
        Some(Value::Map(_)) => return Err("`tools` must be a list".to_owned()),
    };
    let schema = |key: &str| match get(key).map(Node::json) {
        Some(schema @ Json::Object(_)) => usable(scope, key, schema),
        Some(_) => Err(format!("`{key}` must be a JSON Schema: a map")),
        None if key == "input" => Ok(json!({ "type": "object" })),
        None => Err(format!("it has no `{key}`: the shape of what comes out")),
    };
    let contract = Contract {
        prompt,
        tools,
        input: schema("input")?,
        output: schema("output")?,
        timeout_ms: word("timeout").map_or(Ok(TIMEOUT_S_DEFAULT), |text| seconds(&text))? * 1_000,
    };
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let (file, contract) = (file.to_path_buf(), Some(Box::new(contract)));
    let (folder, head, state) = (None, Head::default(), State::Ready);
    Ok(Skill { name, description, scope, file, folder, head, first_line: 1, contract, warnings, state })
}

/// Keys in the spelling of other programs.
fn meant(key: &str) -> &str {
    match key {
        "required_tools" | "requiredTools" | "required-tools" => "tools",
        "input_schema" | "inputSchema" | "input-schema" => "input",
        "output_schema" | "outputSchema" | "output-schema" => "output",
        other => other,
    }
}

/// Checks that answers can be validated against a schema.
fn usable(scope: Scope, key: &str, mut schema: Json) -> Result<Json, String> {
    // A test checks our own.
    if scope != Scope::Builtin {
        Structured::new(schema.clone()).map_err(|error| format!("`{key}`: {error}"))?;
    }
    if let Some(whole) = schema.as_object_mut() {
        whole.entry("type").or_insert_with(|| json!("object"));
    }
    Ok(schema)
}

/// `90`, `90s`, `5m`, `1h`.
fn seconds(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or_default() {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3_600),
        _ => None,
    };
    let whole = digits.trim().parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    whole
        .filter(|seconds| (1..=TIMEOUT_S_MAX).contains(seconds))
        .ok_or_else(|| format!("`timeout: {}` is no time that can be used; write `90s`, `5m` or `1h`", quote(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "name: count\ndescription: Counts\nprompt: Count them.\nrequired_tools: [read_file]\n\
        input: {properties: {path: {type: string}}, required: [path]}\n\
        output: {properties: {n: {type: integer}}, required: [n], additionalProperties: false}\ntimeout: 2m\n";

    fn read(text: &str) -> Result<Skill, String> {
        super::read(text.as_bytes(), Path::new("count.yaml"), "count", Scope::User)
    }

    #[test]
    fn shapes_are_held() {
        let contract = *read(FILE).unwrap().contract.unwrap();
        assert_eq!((contract.timeout_ms, contract.tools.as_slice()), (120_000, ["read_file".to_owned()].as_slice()));
        assert!(contract.takes(&json!({ "path": "x" })).is_ok() && contract.gives(&json!({ "n": 1 })).is_ok());
        let misfit = contract.gives(&json!({ "n": "one", "m": 1 })).unwrap_err().to_string();
        assert!(misfit.contains("`/n`") && misfit.contains('m'), "{misfit}");
        assert!(contract.takes(&json!({})).unwrap_err().to_string().contains("path"));
        assert!(Contract::asked(&json!({ "path": "x" })).contains("\"path\": \"x\""));
    }

    #[test]
    fn an_unkeepable_promise_is_no_contract() {
        let cases = [
            ("prompt: Count them.\n", "", "no `prompt`"),
            ("output: {", "outputs: {", "no `output`"),
            ("type: integer", "type: intger", "intger"),
            ("timeout: 2m", "timeout: soon", "no time"),
            ("description: Counts\n", "", "no `description`"),
        ];
        for (from, to, want) in cases {
            let error = read(&FILE.replace(from, to)).unwrap_err();
            assert!(error.contains(want), "{to:?}: {error}");
        }
        let odd = read(&format!("{FILE}promt: x\n")).unwrap();
        assert!(odd.warnings[0].contains("did you mean `prompt`"), "{:?}", odd.warnings);
    }
}
