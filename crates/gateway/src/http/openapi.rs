//! The OpenAPI document, made from the table of routes.

use axum::Json;
use max_team_core::limits::{WEB_EVENTS_PAGE_MAX, WEB_ROWS_MAX};
use serde_json::{Map, Value, json};

use super::access::Visitor;
use super::command_schemas::id;
use super::memory_routes::BoardName;
use super::routes::{Route, table};
use super::schemas::{KEY_PATTERN, body};
use super::session_routes::{NUMBER_MAX, SESSION_PARTS};

pub(crate) async fn document(_visitor: Visitor) -> Json<Value> {
    Json(made())
}

fn made() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in table() {
        let operations = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Value::Object(operations) = operations {
            operations.insert(route.method.to_owned(), operation(&route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Max Team", "version": env!("CARGO_PKG_VERSION"),
            "description": "The team over HTTP: commands, queries and the stream of events, with readable routes for the most common of them.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "max_team_PORT" },
            },
            "responses": {
                "KeyReused": { "description": "The idempotency key was sent with another request", "content": {
                    "application/json": { "schema": { "$ref": "#/components/schemas/Error" } },
                } },
            },
            "schemas": {
                "Error": {
                    "type": "object", "required": ["error"],
                    "properties": { "error": {
                        "type": "object", "required": ["code", "message"],
                        "properties": {
                            "code": { "type": "string" },
                            "message": { "type": "string" },
                            "message_zh": { "type": "string" },
                        },
                    } },
                },
            },
        },
        "security": [{ "token": [] }, { "cookie": [] }],
    })
}

fn operation(route: &Route) -> Value {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> =
        names.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": parameter(name) })).collect();
    parameters.extend(
        query_parameters(route.path).iter().filter(|name| (route.method == "get") != (**name == "name")).map(|name| {
            let schema = query_parameter(route.path, name);
            json!({ "name": name, "in": "query", "required": *name == "name", "schema": schema })
        }),
    );
    if route.takes_key() {
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$" });
        parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "required": false, "schema": schema }));
    }
    let mut operation = json!({
        "operationId": operation_id(route), "summary": route.about, "parameters": parameters, "responses": responses(route),
    });
    if let Value::Object(operation) = &mut operation {
        if is_upload(route) {
            let content = json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } });
            operation.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
        } else if let Some(schema) = body(route.path).filter(|_| route.method == "post") {
            let is_required = schema.get("required") != Some(&json!([]));
            let content = json!({ "application/json": { "schema": schema } });
            operation.insert("requestBody".to_owned(), json!({ "required": is_required, "content": content }));
        }
        if route.is_open {
            operation.insert("security".to_owned(), json!([]));
        }
    }
    operation
}

/// Whether the body of a request is a file.
fn is_upload(route: &Route) -> bool {
    route.method == "post" && route.path.ends_with("/files")
}

/// A name for generated clients: `post_sessions_session_messages`.
fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/api/v1").replace(['{', '}', '.'], "");
    let words = path.split('/').filter(|word| !word.is_empty());
    std::iter::once(route.method).chain(words).collect::<Vec<_>>().join("_")
}

fn query_parameters(path: &str) -> &'static [&'static str] {
    match path {
        "/api/v1/events" => &["session", "agent", "from"],
        "/api/v1/sessions/{session}/events" => &["agent", "from", "limit"],
        "/api/v1/sessions" => &["limit"],
        "/api/v1/sessions/{session}/{part}" => &["after", "since_ms"],
        "/api/v1/sessions/{session}/files" => &["name"],
        "/api/v1/cost" => &["since_ms"],
        _ => &[],
    }
}

/// The values that a parameter of this name can have. Ids are given whole; the server also takes unique ends of them.
fn parameter(name: &str) -> Value {
    match name {
        "session" => id("ses"),
        "plan" => id("pln"),
        "question" => id("ask"),
        "message" => id("env"),
        "agent" => id("agt"),
        // Names of worktrees and keys of facts.
        "worktree" => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,80}$" }),
        "board" => json!({ "type": "string", "enum": BoardName::NAMES }),
        "key" => json!({ "type": "string", "pattern": KEY_PATTERN }),
        "part" => json!({ "type": "string", "enum": SESSION_PARTS }),
        "name" | "file" => json!({ "type": "string", "minLength": 1 }),
        "from" => json!({ "type": "string", "pattern": "^[0-9]{1,15}(\\.[0-9]{1,6})?$" }),
        _ => json!({ "type": "integer", "minimum": 0, "maximum": NUMBER_MAX }),
    }
}

fn query_parameter(path: &str, name: &str) -> Value {
    let max = if path.ends_with("/events") { WEB_EVENTS_PAGE_MAX } else { WEB_ROWS_MAX };
    match name {
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": max }),
        _ => parameter(name),
    }
}

fn responses(route: &Route) -> Value {
    let error = json!({ "description": "Refused or failed", "content": {
        "application/json": { "schema": { "$ref": "#/components/schemas/Error" } },
    } });
    let (kind, schema) = match route.path {
        "/metrics" | "/api/v1/plans/{plan}/mermaid" => ("text/plain", json!({ "type": "string" })),
        "/api/v1/sessions/{session}/files/{file}" => {
            ("application/octet-stream", json!({ "type": "string", "format": "binary" }))
        }
        "/api/v1/events" => ("text/event-stream", json!({ "type": "string" })),
        _ => ("application/json", json!({ "type": "object" })),
    };
    let done = json!({ "description": "Done", "content": { kind: { "schema": schema } } });
    let (status, done) = match (route.method, route.path) {
        (_, "/api/v1/login" | "/api/v1/logout") | ("delete", _) => ("204", json!({ "description": "Done" })),
        (_, "/api/v1/ws") => ("101", json!({ "description": "The WebSocket begins" })),
        ("post", "/api/v1/sessions" | "/api/v1/sessions/{session}/fork") => ("201", done),
        ("post", _) if is_upload(route) => ("201", done),
        ("post", path) if ["messages", "interrupt", "stop", "continue"].iter().any(|end| path.ends_with(end)) => {
            ("202", done)
        }
        _ => ("200", done),
    };
    let mut all = json!({ status: done, "default": error });
    if let (Value::Object(all), true) = (&mut all, route.takes_key()) {
        let reused = json!({ "$ref": "#/components/responses/KeyReused" });
        all.insert("422".to_owned(), reused);
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_operation_has_a_name_of_its_own_and_each_path_parameter_is_declared() {
        let document = made();
        let mut names = BTreeSet::new();
        let mut count = 0;
        for (path, operations) in document["paths"].as_object().into_iter().flatten() {
            for operation in operations.as_object().into_iter().flatten().map(|(_, operation)| operation) {
                count += 1;
                names.insert(operation["operationId"].to_string());
                let declared =
                    operation["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "path");
                assert_eq!(declared.count(), path.matches('{').count(), "{path}");
            }
        }
        assert!(count > 30 && names.len() == count, "{names:?}");
    }
}
