//! What commands and queries look like, for the OpenAPI document.

use max_team_core::packages::PackageManager;
use max_team_core::policy::{GrantScope, Mode};
use max_team_runtime::{FieldKind, Query, QueryForm};
use serde_json::{Map, Value, json};

use super::schemas::{KEY_PATTERN, decision, fact_value, maybe, one, text};
use super::team::INTERNAL_QUERIES;

/// An id with this prefix.
pub(super) fn id(prefix: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{prefix}_[0-9a-f]{{32}}$") })
}

/// An object with these members, of which only the first may be all that are needed. The server ignores further ones.
fn object(members: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        members.iter().chain(optional).map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn string() -> Value {
    json!({ "type": "string" })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
}

/// Milliseconds since 1970.
fn time() -> Value {
    json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX })
}

fn digest() -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

fn modes() -> Value {
    json!({ "enum": Mode::NAMES.map(|(name, _)| name) })
}

fn isolation() -> Value {
    json!({ "enum": ["none", "worktree"] })
}

/// A board of the memory: the user's, or that of the project in a folder.
fn board() -> Value {
    json!({ "type": "string", "pattern": "^(user|project:/.*)$" })
}

fn fact_key() -> Value {
    json!({ "type": "string", "pattern": KEY_PATTERN })
}

/// A command: one of those that a client may give.
pub(super) fn command() -> Value {
    let of_session = |name, members: &[(&str, Value)], optional: &[(&str, Value)]| {
        let all: Vec<_> = std::iter::once(("session", id("ses"))).chain(members.iter().cloned()).collect();
        one(name, object(&all, optional))
    };
    let message = [("text", text())];
    let names = || list(&text());
    let mut commands: Vec<Value> =
        ["interrupt", "stop_session", "hand_over", "uncompact"].map(|name| of_session(name, &[], &[])).to_vec();
    commands.extend([
        of_session("say", &message, &[]),
        of_session("queue", &message, &[]),
        of_session("withdraw", &[("letter", id("env"))], &[]),
        of_session("write", &[("to", names()), ("text", text())], &[]),
        of_session("continue", &[("to", names())], &[]),
        of_session("team", &[("mates", list(&teammate()))], &[]),
        of_session("answer", &[("question", id("ask")), ("answer", answer())], &[]),
        of_session("propose", &[("draft", draft()), ("source", string())], &[]),
        of_session("rewind", &[("plan", rewind())], &[]),
        of_session("compact", &[("keep", string())], &[]),
        of_session("configure", &[("settings", settings())], &[]),
        one("decide", object(&[("question", id("ask")), ("say", decision())], &[])),
        one("stop", object(&[("plan", id("pln"))], &[("task", maybe(&text()))])),
        one("mark_read", object(&[("shown", list(&shown()))], &[])),
        one("remember", object(&[("scope", board()), ("key", fact_key()), ("value", fact_value())], &[])),
        one("forget", object(&[("scope", board()), ("key", fact_key())], &[])),
    ]);
    commands
        .extend(["accept_worktree", "reject_worktree"].map(|name| {
            one(name, object(&[("worktree", text())], &[("files", names()), ("shown", maybe(&digest()))]))
        }));
    json!({ "oneOf": commands })
}

/// A teammate that is to be started.
fn teammate() -> Value {
    let text = maybe(&text());
    object(
        &[("name", string()), ("prompt", string())],
        &[
            ("role", string()),
            ("type", text.clone()),
            ("model", text.clone()),
            ("mode", maybe(&modes())),
            ("plan_first", flag()),
            ("color", text),
            ("isolation", maybe(&isolation())),
            ("claims", maybe(&flag())),
        ],
    )
}

/// The answer to a permission question.
fn answer() -> Value {
    let until = json!({ "enum": GrantScope::NAMES.map(|(name, _)| name) });
    object(
        &[("allow", flag())],
        &[
            ("always", flag()),
            ("until", until),
            ("comment", string()),
            ("drop", flag()),
            ("put_off", flag()),
            ("word", string()),
        ],
    )
}

/// A plan, unchecked.
fn draft() -> Value {
    let budget =
        || object(&[], &[("nano", maybe(&count())), ("tokens", maybe(&count())), ("wall_ms", maybe(&count()))]);
    let texts = || list(&string());
    let retries = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    let task = object(
        &[("id", string()), ("description", string()), ("agent", string())],
        &[
            ("title", string()),
            ("needs", texts()),
            ("when", maybe(&string())),
            ("owns", maybe(&texts())),
            ("outputs", texts()),
            ("verify", texts()),
            ("installs", list(&json!({ "enum": PackageManager::ALL.map(PackageManager::name) }))),
            ("retry", retries.clone()),
            ("timeout_ms", maybe(&count())),
            ("budget", budget()),
            ("model", maybe(&string())),
            ("skip", flag()),
            ("isolation", isolation()),
        ],
    );
    let gate = object(&[("before", string())], &[("ask", string())]);
    object(
        &[("goal", string()), ("tasks", list(&task))],
        &[("budget", budget()), ("max_parallel", maybe(&retries)), ("gates", list(&gate))],
    )
}

/// The plan of a rewind, as the query `rewind_preview` gives it.
fn rewind() -> Value {
    let content = object(&[("hash", digest()), ("program", flag())], &[]);
    let state = json!({ "oneOf": [
        { "enum": ["gone", "large", "other"] },
        one("file", content),
        one("link", object(&[("hash", digest())], &[])),
        one("bulky", object(&[("size", count()), ("print", digest())], &[])),
    ] });
    let change = object(&[("path", string()), ("before", state.clone()), ("after", state)], &[]);
    let why = json!({ "oneOf": [{ "enum": ["Changed", "Lost", "Away", "Large"] }, one("Unread", string())] });
    let skipped = object(&[("root", string()), ("path", string()), ("why", why)], &[]);
    let why = json!({ "enum": ["large", "many", "slow", "unread", "background", "cut", "later"] });
    let left = object(&[("why", why)], &[("path", string())]);
    object(
        &[
            ("behind", count()),
            ("puts", list(&object(&[("root", string()), ("change", change)], &[]))),
            ("skipped", list(&skipped)),
            ("left", list(&left)),
        ],
        &[],
    )
}

/// The settings of an agent, as the query `details` gives them; members that are not named here are sent back unchanged.
fn settings() -> Value {
    let small = || json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    let price = ["input", "output", "cache_read", "cache_write"].map(|name| (name, count()));
    let model = object(
        &[("provider", string()), ("name", string()), ("context_tokens", count()), ("max_tokens", small())],
        &[("thinking_tokens", small()), ("price", maybe(&object(&price, &[])))],
    );
    object(
        &[("model", model), ("mode", modes()), ("rounds_max", small()), ("retries_max", small())],
        &[("budget_nano", maybe(&count())), ("budget_tokens", maybe(&count()))],
    )
}

/// Content that a screen has shown.
fn shown() -> Value {
    let turn = json!({ "type": "array", "prefixItems": [id("agt"), id("trn")], "items": false, "minItems": 2 });
    json!({ "oneOf": [one("letter", id("env")), one("turn", turn), one("end", id("agt"))] })
}

/// A query: one of those that are offered over HTTP.
pub(super) fn query() -> Value {
    let offered = Query::FORMS.iter().filter(|form| !INTERNAL_QUERIES.contains(&form.name));
    json!({ "oneOf": offered.map(form).collect::<Vec<_>>() })
}

fn form(form: &QueryForm) -> Value {
    let mut fields = Map::new();
    let mut required = Vec::new();
    for field in form.fields {
        fields.insert(field.name.to_owned(), described(kind(field.kind), field.about));
        if !matches!(field.kind, FieldKind::Optional(_)) {
            required.push(field.name);
        }
    }
    let fields = json!({ "type": "object", "required": required, "properties": fields });
    described(one(&snake_case(form.name), fields), form.about)
}

/// A schema with its description, if there is one.
fn described(mut schema: Value, about: &str) -> Value {
    if let Some(schema) = schema.as_object_mut().filter(|_| !about.is_empty()) {
        schema.insert("description".to_owned(), json!(about));
    }
    schema
}

/// `FindSession` as `find_session`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn kind(kind: FieldKind) -> Value {
    match kind {
        FieldKind::Session => id("ses"),
        FieldKind::Plan => id("pln"),
        FieldKind::Agent => id("agt"),
        FieldKind::Question => id("ask"),
        FieldKind::Message => id("env"),
        FieldKind::Text => string(),
        FieldKind::Count => count(),
        FieldKind::Time => time(),
        FieldKind::Flag => flag(),
        FieldKind::FactKey => fact_key(),
        FieldKind::Board => board(),
        FieldKind::RewindPoint => json!({ "oneOf": [
            { "enum": ["last", "last_turn", "undo"] },
            one("turn", count()),
            one("behind", count()),
            one("at", time()),
        ] }),
        FieldKind::Teammate => teammate(),
        FieldKind::Definition => json!({ "type": "object" }),
        FieldKind::Optional(inner) => maybe(&self::kind(*inner)),
        FieldKind::List(inner) => list(&self::kind(*inner)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use max_team_runtime::Command;
    use serde::de::DeserializeOwned;

    use super::*;

    /// The names that a type knows, as its parser tells them.
    fn known<T: DeserializeOwned>() -> BTreeSet<String> {
        let refused = serde_json::from_value::<T>(json!({ "?": {} })).err().unwrap().to_string();
        refused.split('`').skip(3).step_by(2).map(str::to_owned).collect()
    }

    fn described(schema: &Value) -> BTreeSet<String> {
        schema["oneOf"].as_array().unwrap().iter().map(|one| one["required"][0].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn each_command_and_query_that_a_client_may_send_is_described() {
        let internal = ["leave", "serve_folder", "settle_handover", "serve_channel", "deliver"].map(str::to_owned);
        let offered: BTreeSet<_> = known::<Command>().difference(&BTreeSet::from(internal)).cloned().collect();
        assert_eq!(described(&command()), offered);
        let internal = BTreeSet::from(INTERNAL_QUERIES.map(snake_case));
        let offered: BTreeSet<_> = known::<Query>().difference(&internal).cloned().collect();
        assert_eq!(described(&query()), offered);
    }
}
