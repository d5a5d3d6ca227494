//! The tools, prompts and resources that the conformance suite expects of a server, behind our own HTTP server.
//!
//! `conformance_server` prints its address and serves until it is ended. `scripts/conformance.sh` runs it.
#![expect(clippy::print_stdout, clippy::indexing_slicing, reason = "a program for tests, whose JSON is its own")]
#![expect(
    deprecated,
    reason = "the suite tests logging, sampling and subscriptions, which the newest protocol leaves out"
)]

use std::time::Duration;

use max_team_gateway::mcp::{HttpOptions, HttpServer};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerCapabilities, ServerConfig, ServerRequest, SetLevelRequestParams, SubscribeRequestParams,
    UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound of no length.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
/// The pause that the suite wants between two notifications.
const PAUSE: Duration = Duration::from_millis(50);

type Context = RequestContext<RoleServer>;

#[derive(Debug, Clone)]
struct Fixtures;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = HttpOptions { host: "127.0.0.1".into(), port: 0, token: None, origins: Vec::new() };
    let server = HttpServer::bind(Fixtures, options).await?;
    println!("{}", server.url());
    server.run(&CancellationToken::new()).await;
    Ok(())
}

/// A value of the protocol, written as its JSON.
fn of<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn text(words: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": words.into() }] })
}

fn tools() -> Value {
    let simple = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_error_handling",
        "test_tool_with_progress",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
    ];
    let tool = |name: &str, properties: Value| {
        json!({ "name": name, "description": format!("The fixture {name}"),
                "inputSchema": { "type": "object", "properties": properties } })
    };
    let mut tools: Vec<Value> = simple.iter().map(|name| tool(name, json!({}))).collect();
    tools.push(tool("test_sampling", json!({ "prompt": { "type": "string" } })));
    tools.push(tool("test_elicitation", json!({ "message": { "type": "string" } })));
    tools.push(json!({
        "name": "json_schema_2020_12_tool", "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "$defs": { "address": { "type": "object", "properties": {
                "street": { "type": "string" }, "city": { "type": "string" } } } },
            "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" } },
            "additionalProperties": false,
        },
    }));
    json!({ "tools": tools })
}

/// The result of a tool that only answers.
fn simple(tool: &str) -> Option<Value> {
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let resource = |uri: &str, kind: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } });
    let content = |blocks: Vec<Value>| json!({ "content": blocks });
    Some(match tool {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => content(vec![image]),
        "test_audio_content" => content(vec![json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" })]),
        "test_embedded_resource" => {
            content(vec![resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")])
        }
        "test_multiple_content_types" => content(vec![
            json!({ "type": "text", "text": "Multiple content types test:" }),
            image,
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ]),
        "test_error_handling" => {
            let mut result = text("This tool intentionally returns an error for testing");
            result["isError"] = true.into();
            result
        }
        _ => return None,
    })
}

/// The questions of the tools that ask the user something.
fn question(tool: &str, arguments: &Value) -> Option<Value> {
    let schema = |properties: Value| json!({ "type": "object", "properties": properties });
    let titled = |first: &str| {
        json!([{ "const": "value1", "title": format!("First {first}") },
               { "const": "value2", "title": format!("Second {first}") },
               { "const": "value3", "title": format!("Third {first}") }])
    };
    let options = json!(["option1", "option2", "option3"]);
    let (message, schema) = match tool {
        "test_elicitation" => {
            let field = |about: &str| json!({ "type": "string", "description": about });
            let (user, email) = (field("User's response"), field("User's email address"));
            let mut schema = schema(json!({ "username": user, "email": email }));
            schema["required"] = json!(["username", "email"]);
            (arguments["message"].as_str().unwrap_or_default().to_owned(), schema)
        }
        "test_elicitation_sep1034_defaults" => {
            let fields = json!({
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                "verified": { "type": "boolean", "default": true },
            });
            ("Check the values".to_owned(), schema(fields))
        }
        "test_elicitation_sep1330_enums" => {
            let fields = json!({
                "untitledSingle": { "type": "string", "enum": options },
                "titledSingle": { "type": "string", "oneOf": titled("Option") },
                "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"],
                                "enumNames": ["Option One", "Option Two", "Option Three"] },
                "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
                "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
            });
            ("Choose".to_owned(), schema(fields))
        }
        _ => return None,
    };
    Some(json!({ "mode": "form", "message": message, "requestedSchema": schema }))
}

/// Sends a request to the client and gives its answer as JSON.
async fn ask(context: &Context, method: &str, params: Value) -> Result<Value, ErrorData> {
    let request: ServerRequest = of(json!({ "method": method, "params": params }))?;
    let answer = context.peer.send_request(request).await;
    let answer: ClientResult = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn call(request: &CallToolRequestParams, context: &Context) -> Result<Value, ErrorData> {
    let tool = request.name.as_ref();
    let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
    if let Some(result) = simple(tool) {
        return Ok(result);
    }
    if let Some(question) = question(tool, &arguments) {
        let answer = ask(context, "elicitation/create", question).await?;
        let (action, content) = (answer["action"].as_str().unwrap_or_default(), &answer["content"]);
        return Ok(text(match tool {
            "test_elicitation" => format!("User response: action: {action}, content: {content}"),
            _ => format!("Elicitation completed: action={action}, content={content}"),
        }));
    }
    match tool {
        "test_tool_with_logging" => {
            for said in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                let note = of(json!({ "level": "info", "data": said }))?;
                drop(context.peer.notify_logging_message(note).await);
                tokio::time::sleep(PAUSE).await;
            }
            Ok(text("logged"))
        }
        "test_tool_with_progress" => {
            for progress in [0, 50, 100] {
                if let Some(token) = context.meta.get_progress_token() {
                    let note = of(json!({ "progressToken": token, "progress": progress, "total": 100 }))?;
                    drop(context.peer.notify_progress(note).await);
                }
                tokio::time::sleep(PAUSE).await;
            }
            Ok(text("done"))
        }
        "test_sampling" => {
            let message = json!({ "role": "user", "content": { "type": "text", "text": arguments["prompt"] } });
            let params = json!({ "messages": [message], "maxTokens": 100 });
            let answer = ask(context, "sampling/createMessage", params).await?;
            Ok(text(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default())))
        }
        _ => Err(ErrorData::invalid_params(format!("there is no tool `{tool}`"), None)),
    }
}

fn prompt(request: &GetPromptRequestParams) -> Result<Value, ErrorData> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let said = |text: &str| json!({ "type": "text", "text": text });
    let blocks = match request.name.as_str() {
        "test_simple_prompt" => vec![said("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            vec![said(&format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1"), argument("arg2")))]
        }
        "test_prompt_with_embedded_resource" => vec![
            json!({ "type": "resource", "resource": { "uri": argument("resourceUri"), "mimeType": "text/plain",
                    "text": "Embedded resource content for testing." } }),
            said("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            json!({ "type": "image", "data": PNG, "mimeType": "image/png" }),
            said("Please analyze the image above."),
        ],
        other => return Err(ErrorData::invalid_params(format!("there is no prompt `{other}`"), None)),
    };
    let messages: Vec<Value> =
        blocks.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
    Ok(json!({ "messages": messages }))
}

fn resource(uri: &str) -> Result<Value, ErrorData> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let contents = match (uri, id) {
        ("test://static-text", _) => json!({ "uri": uri, "mimeType": "text/plain",
            "text": "This is the content of the static text resource." }),
        ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        (_, Some(id)) => json!({ "uri": uri, "mimeType": "application/json",
            "text": json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }).to_string() }),
        _ => return Err(ErrorData::resource_not_found(format!("there is no resource `{uri}`"), None)),
    };
    Ok(json!({ "contents": [contents] }))
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources();
        ServerConfig::new(can.enable_resources_subscribe().enable_logging().enable_completions().build())
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: Context) -> Result<ListToolsResult, ErrorData> {
        of(tools())
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        let result: CallToolResult = of(call(&request, &context).await?)?;
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = |name: &str, arguments: &[&str]| {
            let arguments: Vec<Value> =
                arguments.iter().map(|name| json!({ "name": name, "required": true })).collect();
            json!({ "name": name, "description": format!("The fixture {name}"), "arguments": arguments })
        };
        of(json!({ "prompts": [
            prompt("test_simple_prompt", &[]), prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
            prompt("test_prompt_with_embedded_resource", &["resourceUri"]), prompt("test_prompt_with_image", &[]),
        ] }))
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: Context) -> Result<GetPromptResponse, ErrorData> {
        let result: GetPromptResult = of(prompt(&request)?)?;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        of(json!({ "resources": [
            { "uri": "test://static-text", "name": "text", "description": "A text", "mimeType": "text/plain" },
            { "uri": "test://static-binary", "name": "image", "description": "An image", "mimeType": "image/png" },
            { "uri": "test://watched-resource", "name": "watched", "description": "A text that may change" },
        ] }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        of(json!({ "resourceTemplates": [
            { "uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json" },
        ] }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let result: ReadResourceResult = of(resource(&request.uri)?)?;
        Ok(result.into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(&self, _: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        of(json!({ "completion": { "values": ["paris", "park"], "total": 2, "hasMore": false } }))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }
}
