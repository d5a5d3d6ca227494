//! A question of a server to the user: how it is shown, and how the answer in words becomes the values that were asked for.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData};
use serde_json::{Map, Value};

use crate::clean;

/// Bytes of a question that are shown.
const QUESTION_BYTES_MAX: usize = 4_000;
/// The answers to a question that asks the user to open an address.
const VISITED: &str = "done|no";
/// Bytes of a server's error that are told.
const ERROR_BYTES_MAX: usize = 400;
/// Fields of a form that are asked for.
const FIELDS_MAX: usize = 32;

/// A question of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Elicitation {
    message: String,
    form: Form,
}

#[derive(Debug, Clone, PartialEq)]
enum Form {
    Fields(Vec<Field>),
    /// The user is to visit an address and then to confirm.
    Address(String),
}

#[derive(Debug, Clone, PartialEq)]
struct Field {
    name: String,
    kind: Kind,
    is_required: bool,
    default: Option<Value>,
    description: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Text,
    Number {
        is_integer: bool,
    },
    Boolean,
    /// One of these values, each with the title that is shown.
    OneOf(Vec<(String, String)>),
    ManyOf(Vec<(String, String)>),
}

impl Elicitation {
    /// Reads a server's request; `None`: it asks for a form that cannot be shown.
    pub(crate) fn read(request: &ElicitRequestParams) -> Option<Self> {
        let told = serde_json::to_value(request).ok()?;
        let message = clean::text(told.get("message")?.as_str()?, QUESTION_BYTES_MAX);
        let form = match told.get("url").and_then(Value::as_str) {
            Some(url) if is_web(url) => Form::Address(clean::text(url, QUESTION_BYTES_MAX)),
            Some(_) => return None,
            None => Form::Fields(fields(told.get("requestedSchema")?)?),
        };
        Some(Self { message, form })
    }

    /// The question as a person reads it. Fields are shown as the lines to answer with.
    pub(crate) fn words(&self, server: &str) -> String {
        let head = format!("[MCP `{server}`] {}", self.message);
        match &self.form {
            Form::Address(url) => format!("{head}\n{url}\n{VISITED}"),
            Form::Fields(fields) if matches!(fields.as_slice(), [field] if field.kind == Kind::Text) => head,
            Form::Fields(fields) => {
                let lines = fields.iter().map(Field::line);
                std::iter::once(head).chain(lines).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// What is sent to the server for an answer in words; an error names what is missing or does not fit.
    pub(crate) fn accept(&self, answer: &str) -> Result<ElicitResult, String> {
        let accepted = ElicitResult::new(ElicitationAction::Accept);
        match &self.form {
            Form::Address(_) => match answer.trim().to_lowercase().as_str() {
                "done" | "yes" | "y" | "ok" | "是" | "好" | "完成" | "已完成" => Ok(accepted),
                "no" | "n" | "否" | "不" => Ok(ElicitResult::new(ElicitationAction::Decline)),
                _ => Err(VISITED.to_owned()),
            },
            Form::Fields(fields) => Ok(accepted.with_content(Value::Object(values(fields, answer.trim())?))),
        }
    }
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// The code of an error that says: the user has to open addresses before the call can be made.
const URL_ELICITATION_REQUIRED: i32 = -32_042;

/// An error of a server in words, with the addresses that the user has to open first, if it names any.
pub(crate) fn error_words(error: &ErrorData) -> String {
    let message = clean::text(&error.message, ERROR_BYTES_MAX);
    let named = error
        .data
        .as_ref()
        .filter(|_| error.code.0 == URL_ELICITATION_REQUIRED)
        .and_then(|data| data.get("elicitations"));
    let named = named.and_then(Value::as_array).into_iter().flatten().take(FIELDS_MAX);
    let addresses: Vec<&str> = named.filter_map(|one| one.get("url")?.as_str()).filter(|url| is_web(url)).collect();
    if addresses.is_empty() {
        return message;
    }
    let all = clean::text(&addresses.join(" "), QUESTION_BYTES_MAX);
    format!("{message}. Ask the user to open this address, then call again: {all}")
}

fn fields(schema: &Value) -> Option<Vec<Field>> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Some(Vec::new()) };
    if properties.len() > FIELDS_MAX {
        return None;
    }
    let field = |(name, told): (&String, &Value)| {
        let description = told.get("description").or_else(|| told.get("title")).and_then(Value::as_str);
        Some(Field {
            // Sent back as it is, so it must fit as it is.
            name: Some(name.clone()).filter(|name| clean::text(name, 100) == *name)?,
            kind: kind(told)?,
            is_required: required.contains(&name.as_str()),
            default: told.get("default").cloned(),
            description: clean::text(description.unwrap_or_default(), 300),
        })
    };
    properties.iter().map(field).collect()
}

fn kind(told: &Value) -> Option<Kind> {
    if let Some(options) = options(told) {
        return Some(Kind::OneOf(options));
    }
    match told.get("type").and_then(Value::as_str)? {
        "string" => Some(Kind::Text),
        "number" => Some(Kind::Number { is_integer: false }),
        "integer" => Some(Kind::Number { is_integer: true }),
        "boolean" => Some(Kind::Boolean),
        "array" => options(told.get("items")?).map(Kind::ManyOf),
        _ => None,
    }
}

/// The values to choose from, with titles where the server gives some.
fn options(told: &Value) -> Option<Vec<(String, String)>> {
    let text = |value: &Value| value.as_str().map(|text| clean::text(text, 200));
    let whole = |value: &Value| value.as_str().filter(|text| clean::text(text, 200) == *text).map(str::to_owned);
    if let Some(values) = told.get("enum").and_then(Value::as_array) {
        let titles = told.get("enumNames").and_then(Value::as_array);
        let title = |index: usize| titles.and_then(|titles| titles.get(index)).and_then(text);
        let pair = |(index, value): (usize, &Value)| Some((whole(value)?, title(index).or_else(|| text(value))?));
        return values.iter().enumerate().map(pair).collect();
    }
    let titled = told.get("oneOf").or_else(|| told.get("anyOf")).and_then(Value::as_array)?;
    let pair = |option: &Value| {
        let value = whole(option.get("const")?)?;
        Some((value.clone(), option.get("title").and_then(text).unwrap_or(value)))
    };
    titled.iter().map(pair).collect()
}

impl Field {
    /// The line to answer with: `size=small|large [large] *  description`, with the default and `*` for a needed field.
    fn line(&self) -> String {
        let titles = |options: &[(String, String)]| {
            options.iter().map(|(_, title)| title.as_str()).collect::<Vec<_>>().join("|")
        };
        let form = match &self.kind {
            Kind::Text => "…".to_owned(),
            Kind::Number { is_integer: true } => "1".to_owned(),
            Kind::Number { is_integer: false } => "1.5".to_owned(),
            Kind::Boolean => "yes|no".to_owned(),
            Kind::OneOf(options) => titles(options),
            Kind::ManyOf(options) => format!("{}, …", titles(options)),
        };
        let default = self.default.as_ref().map(|value| format!(" [{}]", self.shown(value))).unwrap_or_default();
        let mark = if self.is_required { " *" } else { "" };
        let about = if self.description.is_empty() { String::new() } else { format!("  {}", self.description) };
        format!("{}={form}{default}{mark}{about}", self.name)
    }

    /// A value as it is written in an answer.
    fn shown(&self, value: &Value) -> String {
        let (Kind::OneOf(options) | Kind::ManyOf(options)) = &self.kind else { return plain(value) };
        let titles = options.iter().filter(|(option, _)| match value {
            Value::Array(items) => items.iter().any(|item| item == option),
            value => value == option,
        });
        titles.map(|(_, title)| title.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn value(&self, said: &str) -> Result<Value, String> {
        let wrong = || format!("`{said}`: {}", self.line());
        let one = |options: &[(String, String)], said: &str| {
            let is_meant = |(value, title): &&(String, String)| {
                value == said || title.eq_ignore_ascii_case(said) || value.eq_ignore_ascii_case(said)
            };
            options.iter().find(is_meant).map(|(value, _)| Value::String(value.clone())).ok_or_else(wrong)
        };
        match &self.kind {
            Kind::Text => Ok(Value::String(said.to_owned())),
            Kind::Number { is_integer: true } => said.parse::<i64>().map(Value::from).map_err(|_| wrong()),
            Kind::Number { is_integer: false } => {
                said.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from).ok_or_else(wrong)
            }
            Kind::Boolean => match said.to_lowercase().as_str() {
                "yes" | "y" | "true" | "1" | "是" | "对" => Ok(Value::Bool(true)),
                "no" | "n" | "false" | "0" | "否" | "不" => Ok(Value::Bool(false)),
                _ => Err(wrong()),
            },
            Kind::OneOf(options) => one(options, said),
            Kind::ManyOf(options) => {
                let all = said.split([',', '，', '|']).map(str::trim).filter(|part| !part.is_empty());
                all.map(|part| one(options, part)).collect::<Result<_, _>>().map(Value::Array)
            }
        }
    }
}

/// The values of a form. An answer is a JSON object, lines `name=value`, or the bare value of the only field.
fn values(fields: &[Field], answer: &str) -> Result<Map<String, Value>, String> {
    let said = match serde_json::from_str::<Map<String, Value>>(answer) {
        Ok(map) => map.into_iter().map(|(name, value)| (name, plain(&value))).collect(),
        Err(_) => pairs(fields, answer),
    };
    let mut values = Map::new();
    for field in fields {
        let told = said.iter().rev().find(|(name, _)| *name == field.name).map(|(_, value)| value.trim());
        match told.filter(|value| !value.is_empty()) {
            Some(value) => drop(values.insert(field.name.clone(), field.value(value)?)),
            None if field.default.is_some() => {
                values.extend(field.default.clone().map(|value| (field.name.clone(), value)));
            }
            None if field.is_required => return Err(field.line()),
            None => {}
        }
    }
    Ok(values)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// The `name=value` pairs of an answer: each begins a line, or follows a comma.
fn pairs(fields: &[Field], answer: &str) -> Vec<(String, String)> {
    let named = |part: &str| {
        let (name, value) = part.split_once(['=', ':', '：'])?;
        let field = fields.iter().find(|field| field.name.eq_ignore_ascii_case(name.trim()))?;
        Some((field.name.clone(), value.trim().to_owned()))
    };
    let mut found: Vec<(String, String)> = Vec::new();
    for part in answer.lines().flat_map(|line| line.split_inclusive([',', '，', ';'])) {
        match (named(part), found.last_mut()) {
            (Some(pair), _) => found.push(pair),
            // A comma inside a value.
            (None, Some((_, value))) if value.ends_with([',', '，', ';']) => value.push_str(part),
            (None, Some((_, value))) => {
                value.push('\n');
                value.push_str(part);
            }
            (None, None) => {}
        }
    }
    if let ([field], true) = (fields, found.is_empty()) {
        return vec![(field.name.clone(), answer.to_owned())];
    }
    let trim = |(name, value): (String, String)| (name, value.trim_end_matches([',', '，', ';']).to_owned());
    found.into_iter().map(trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn form(properties: Value, required: &[&str]) -> Elicitation {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        let request = json!({ "mode": "form", "message": "Who?", "requestedSchema": schema });
        Elicitation::read(&serde_json::from_value(request).unwrap()).unwrap()
    }

    fn sent(question: &Elicitation, answer: &str) -> Result<Value, String> {
        question.accept(answer).map(|result| result.content.unwrap_or_default())
    }

    #[test]
    fn answers_become_values() {
        let name = form(json!({ "name": { "type": "string" } }), &["name"]);
        let mixed = form(
            json!({
                "age": { "type": "integer" }, "color": { "type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"] },
                "is_new": { "type": "boolean" }, "name": { "type": "string", "default": "Ann" }
            }),
            &["age", "color"],
        );
        let table = [
            (&name, "Ann Lee, of York", Ok(json!({ "name": "Ann Lee, of York" }))),
            (&name, "name=Ann", Ok(json!({ "name": "Ann" }))),
            (&name, r#"{"name": "Ann"}"#, Ok(json!({ "name": "Ann" }))),
            (&name, "  ", Err("name=… *")),
            (&mixed, "age=3, color=red", Ok(json!({ "age": 3, "color": "r", "name": "Ann" }))),
            (
                &mixed,
                "age: 3\ncolor: g\nis_new: 是\nname: Lee, Bo",
                Ok(json!({ "age": 3, "color": "g", "is_new": true, "name": "Lee, Bo" })),
            ),
            (&mixed, "age=x, color=red", Err("`x`: age=1 *")),
            (&mixed, "age=3", Err("color=Red|Green *")),
            (&mixed, "3", Err("age=1 *")),
        ];
        for (question, answer, want) in table {
            assert_eq!(sent(question, answer), want.map_err(str::to_owned), "{answer}");
        }
    }

    #[test]
    fn a_question_shows_the_lines_to_answer_with() {
        let question = form(
            json!({ "n": { "type": "number", "description": "how many\u{7}" }, "tags": { "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }, { "const": "b", "title": "B" }] }, "default": ["b"] } }),
            &["n"],
        );
        assert_eq!(question.words("shop"), "[MCP `shop`] Who?\nn=1.5 *  how many\ntags=A|B, … [B]");
        let name = form(json!({ "name": { "type": "string" } }), &["name"]);
        assert_eq!(name.words("shop"), "[MCP `shop`] Who?");
        assert_eq!(sent(&question, "n=2 tags=a"), Err("`2 tags=a`: n=1.5 *  how many".to_owned()));
        assert_eq!(sent(&question, "n=2, tags=a, b"), Ok(json!({ "n": 2.0, "tags": ["a", "b"] })));
    }

    #[test]
    fn addresses_are_of_the_web() {
        let read = |url: &str| {
            let told = json!({ "mode": "url", "message": "Sign in", "url": url, "elicitationId": "1" });
            Elicitation::read(&serde_json::from_value(told).unwrap())
        };
        let question = read("https://a.example/x").unwrap();
        assert_eq!(question.words("shop"), "[MCP `shop`] Sign in\nhttps://a.example/x\ndone|no");
        let action = |answer: &str| question.accept(answer).map(|result| result.action);
        assert_eq!(action("Done"), Ok(ElicitationAction::Accept));
        assert_eq!(action("no"), Ok(ElicitationAction::Decline));
        assert_eq!(action("later"), Err("done|no".to_owned()));
        assert!(read("javascript:alert(1)").is_none() && read("file:///etc/passwd").is_none());
    }

    #[test]
    fn addresses_to_open_first_are_told_with_the_error() {
        let data =
            json!({ "elicitations": [{ "mode": "url", "url": "https://a.example/login", "elicitationId": "1" }] });
        let error = |code| ErrorData::new(rmcp::model::ErrorCode(code), "Sign in", Some(data.clone()));
        let words = "Sign in. Ask the user to open this address, then call again: https://a.example/login";
        assert_eq!(error_words(&error(URL_ELICITATION_REQUIRED)), words);
        assert_eq!(error_words(&error(-32_603)), "Sign in");
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(answer in ".{0,200}") {
            let question = form(json!({ "a": { "type": "string" }, "b": { "type": "integer" } }), &["a"]);
            if let Ok(values) = sent(&question, &answer) {
                prop_assert!(values["a"].is_string());
            }
        }
    }
}
