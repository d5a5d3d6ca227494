//! Our client as the conformance suite drives it: connects to the address it is given, signs in if it has to, and calls every tool.
//!
//! `scripts/conformance.sh` runs it; the suite names its scenario in `MCP_CONFORMANCE_SCENARIO`.

use std::error::Error;
use std::sync::Arc;

use max_team_core::mcp::{HttpTransport, McpServer, OauthClient};
use max_team_mcp::{Launch, McpError, ServerEntry, Servers, SignIn};
use max_team_tools::{Handler, RemoteTool, Root, ToolContext, ToolError, ToolSources, run_remote};
use reqwest::redirect::Policy;
use serde_json::{Map, Value, json};

type Failure = Box<dyn Error>;

fn variable(name: &str) -> Option<String> {
    std::env::vars().find(|(own, _)| own == name).map(|(_, value)| value)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let url = std::env::args().next_back().ok_or("an address is needed")?;
    let folder = tempfile::tempdir()?;
    let (root, home) = (folder.path().canonicalize()?, folder.path().join("home"));
    let context: Value =
        variable("MCP_CONFORMANCE_CONTEXT").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let word = |name: &str| context.get(name).and_then(Value::as_str).map(str::to_owned);
    let oauth =
        OauthClient { client_id: word("client_id"), client_secret: word("client_secret"), ..OauthClient::default() };
    let server = McpServer { name: "suite".into(), url, transport: HttpTransport::Http, oauth, ..McpServer::default() };
    let launch = Launch { root: root.clone(), home: home.clone(), user: None, sandboxed: false };
    let servers = Servers::new(launch, None);
    let entry = |call_ms| ServerEntry {
        source: "suite".into(),
        server: McpServer { call_ms: Some(call_ms), ..server.clone() },
        pin: None,
    };
    servers.set(vec![entry(20_000)]);
    let known = servers.get("suite").ok_or("no server")?.refresh().await;
    if let Err(McpError::Login(_)) = known {
        sign_in(&home, &server).await?;
        // Another bound makes it another server, which is connected to at once.
        servers.set(vec![entry(20_001)]);
        servers.get("suite").ok_or("no server")?.refresh().await?;
    } else {
        known?;
    }
    for tool in servers.source("suite").ok_or("no source")?.tools() {
        if let Handler::Remote(tool) = tool {
            call(tool, &root).await?;
        }
    }
    Ok(())
}

/// Opens the address as a browser would, for a user who agrees to everything.
async fn sign_in(home: &std::path::Path, server: &McpServer) -> Result<(), Failure> {
    let begun = SignIn::begin(home, server, None).await?;
    let browser = max_team_tools::http_client(None)?.redirect(Policy::none()).build()?;
    let answer = browser.get(begun.url()).send().await?;
    let back = answer.headers().get("location").ok_or("the login leads nowhere")?.to_str()?.to_owned();
    Ok(begun.finish(std::future::ready(back)).await?)
}

/// Calls a tool with a value for each input that it requires.
async fn call(tool: Arc<dyn RemoteTool>, root: &std::path::Path) -> Result<(), Failure> {
    let properties = tool.spec().schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let value = |schema: &Value| match schema.get("type").and_then(Value::as_str) {
        Some("number" | "integer") => json!(5),
        Some("boolean") => json!(true),
        _ => json!("text"),
    };
    let input: Map<String, Value> = properties.iter().map(|(name, schema)| (name.clone(), value(schema))).collect();
    let cx = ToolContext::new(Arc::new(Root::open(root)?));
    let (input, name) = (Value::Object(input), tool.spec().name.clone());
    let mut action = tool.action(&cx, &input)?;
    let output = loop {
        match run_remote(Arc::clone(&tool), cx.clone(), input.clone(), action, false).await {
            // A user who leaves every field at its default.
            Err(ToolError::Asks(question)) => action = question.with_answer(Some("")),
            ended => break ended?,
        }
    };
    if output.is_error { Err(format!("`{name}` failed: {output:?}").into()) } else { Ok(()) }
}
