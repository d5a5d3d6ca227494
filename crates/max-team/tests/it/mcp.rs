//! `mcp serve` against the protocol's own client, in both eras, over standard input and HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use max_team_testkit::{Gate, ModelServer, Reply, Script};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, GetTaskParams,
    Implementation, ProgressNotificationParam, ProtocolVersion, TaskPayload,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::{Value, json};
use tokio::net::unix::pipe;

use super::plans::{news, plan, task, voice};
use super::program::{Program, soon};

const TOOLS: [&str; 8] =
    ["ask", "propose_plan", "run_plan", "status", "answer_of", "search_memory", "read_artifact", "list_agents"];

type Client = RunningService<RoleClient, Tester>;

/// A client that keeps the reports it gets.
#[derive(Clone, Default)]
struct Tester {
    has_tasks: bool,
    reports: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Tester {
    fn get_info(&self) -> ClientConfig {
        let capabilities = match self.has_tasks {
            true => ClientCapabilities::builder().enable_tasks().build(),
            false => ClientCapabilities::default(),
        };
        ClientConfig::new(capabilities, Implementation::new("tester", "1"))
            .with_protocol_version(ProtocolVersion::V_2025_06_18)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.reports.lock().unwrap().extend(params.message);
    }
}

/// The ways of both eras to begin.
fn eras() -> [ClientLifecycleMode; 2] {
    [ClientLifecycleMode::Initialize, discover()]
}

fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already needs no kill.
        drop(self.0.kill());
        self.0.wait().unwrap();
    }
}

async fn over_stdio(program: &Program, words: &[&str], era: ClientLifecycleMode, tester: Tester) -> (Server, Client) {
    let words: Vec<&str> = ["mcp", "serve"].iter().chain(words).copied().collect();
    let mut child = program.command(&words).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let output = pipe::Receiver::from_owned_fd(OwnedFd::from(child.stdout.take().unwrap())).unwrap();
    let input = pipe::Sender::from_owned_fd(OwnedFd::from(child.stdin.take().unwrap())).unwrap();
    let server = Server(child);
    let client = tester.serve_with_lifecycle((output, input), era).await.unwrap();
    (server, client)
}

/// Starts a server on a free port; returns its address and the lines that it prints behind it.
fn http_server(program: &Program, words: &[&str]) -> (Server, String, BufReader<std::process::ChildStderr>) {
    let words: Vec<&str> = ["mcp", "serve", "--http", "--port", "0"].iter().chain(words).copied().collect();
    let mut child = program.start(&words);
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let server = Server(child);
    let mut line = String::new();
    while !line.contains("http://") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the server has ended");
    }
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
    (server, url, lines)
}

async fn over_http(url: &str, token: Option<&str>, era: ClientLifecycleMode) -> Client {
    // Another test may have installed it.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.auth_header = token.map(str::to_owned);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let transport = StreamableHttpClientTransport::with_client(client, config);
    Tester::default().serve_with_lifecycle(transport, era).await.unwrap()
}

fn request(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone())
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    client.call_tool(request(tool, arguments)).await.unwrap()
}

fn text(result: &CallToolResult) -> String {
    result.content[0].as_text().unwrap().text.clone()
}

fn is_error(result: &CallToolResult) -> bool {
    result.is_error == Some(true)
}

/// The status line of the answer to a request that is written by hand.
fn raw(url: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" } } })
    .to_string();
    let host = headers.iter().find(|(name, _)| *name == "host").map_or(address, |(_, host)| host);
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         connection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    String::from_utf8(status.to_vec()).unwrap().replace("HTTP/1.1 ", "")
}

#[tokio::test]
async fn clients_of_both_eras_list_tools_and_ask_over_stdio() {
    for era in eras() {
        let model = ModelServer::start([Reply::text("Hello."), Reply::text("Hello again.")]);
        let program = Program::with(&model);
        let (_server, client) = over_stdio(&program, &["--solo"], era, Tester::default()).await;
        let names: Vec<String> =
            client.list_all_tools().await.unwrap().iter().map(|tool| tool.name.to_string()).collect();
        assert_eq!(names, TOOLS);
        let first = text(&call(&client, "ask", json!({ "text": "Who is there?" })).await);
        let second = text(&call(&client, "ask", json!({ "text": "And now?" })).await);
        assert!(first.starts_with("Hello.\n") && second.starts_with("Hello again.\n"), "{first} {second}");
        let session = |text: &str| text.lines().last().unwrap().to_owned();
        assert_eq!(session(&first), session(&second), "the conversation is kept");
        assert!(text(&call(&client, "answer_of", json!({})).await).starts_with("Hello again."));
        assert!(is_error(&call(&client, "ask", json!({ "txt": "?" })).await));
        assert!(client.call_tool(request("dig", json!({}))).await.is_err());
        client.cancel().await.unwrap();
        // The client is a member of its own, not the owner.
        let said = program.journal().into_iter().find(|entry| entry["event"] == "said").unwrap();
        let by = &said["payload"]["said"]["by"];
        assert_eq!((&by["user"], &by["role"]), (&json!("mcp:tester"), &json!("member")), "{said}");
    }
}

#[tokio::test]
async fn clients_of_both_eras_list_tools_and_ask_over_http() {
    let model = ModelServer::start(Script::new().on(|_| true, Reply::text("Hello.")));
    let program = Program::with(&model);
    let (_server, url, _lines) = http_server(&program, &["--solo"]);
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"), "{url}");
    for era in eras() {
        let client = over_http(&url, None, era).await;
        assert_eq!(client.list_all_tools().await.unwrap().len(), TOOLS.len());
        let answer = text(&call(&client, "ask", json!({ "text": "Who is there?" })).await);
        assert!(answer.starts_with("Hello.\n"), "{answer}");
        client.cancel().await.unwrap();
    }
}

#[test]
fn web_pages_and_other_hosts_are_refused() {
    let program = Program::alone();
    let (_server, url, _lines) = http_server(&program, &["--allow-origin", "http://localhost:6274"]);
    let port = url.trim_end_matches("/mcp").rsplit(':').next().unwrap().to_owned();
    let by_name = format!("localhost:{port}");
    assert_eq!(raw(&url, "/mcp", &[]), "200");
    assert_eq!(raw(&url, "/mcp", &[("host", &by_name)]), "200");
    assert_eq!(raw(&url, "/mcp", &[("origin", "http://localhost:6274")]), "200");
    assert_eq!(raw(&url, "/mcp", &[("origin", "http://evil.example")]), "403");
    assert_eq!(raw(&url, "/mcp", &[("origin", "http://localhost:1")]), "403");
    assert_eq!(raw(&url, "/mcp", &[("origin", "null")]), "403");
    assert_eq!(raw(&url, "/mcp", &[("host", "evil.example")]), "403");
    assert_eq!(raw(&url, "/", &[]), "404");
}

#[tokio::test]
async fn an_address_for_other_machines_needs_a_token() {
    let program = Program::alone();
    let (_server, url, mut lines) = http_server(&program, &["--host", "0.0.0.0"]);
    let url = url.replace("0.0.0.0", "127.0.0.1");
    let (mut note, mut token) = (String::new(), String::new());
    lines.read_line(&mut note).unwrap();
    lines.read_line(&mut token).unwrap();
    let token = token.trim();
    assert_eq!(token.len(), 64, "{note}{token}");
    assert_eq!(raw(&url, "/mcp", &[]), "401");
    assert_eq!(raw(&url, "/mcp", &[("authorization", "Bearer wrong")]), "401");
    assert_eq!(
        raw(&url, "/mcp", &[("authorization", &format!("Bearer {token}")), ("origin", "http://evil.example")]),
        "403"
    );
    let client = over_http(&url, Some(token), discover()).await;
    assert_eq!(client.list_all_tools().await.unwrap().len(), TOOLS.len());
    client.cancel().await.unwrap();

    // A token in a file, which only its owner may read.
    let file = program.project().join("token");
    std::fs::write(&file, "0123456789abcdef0123\n").unwrap();
    let words = ["mcp", "serve", "--http", "--port", "0", "--token-file", "token"];
    let refused = program.run(&words);
    assert!(refused.code == 3 && refused.err.contains("chmod 600"), "{refused:?}");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let (_second, url, _lines) = http_server(&program, &["--token-file", "token"]);
    assert_eq!(raw(&url, "/mcp", &[]), "401");
    assert_eq!(raw(&url, "/mcp", &[("authorization", "Bearer 0123456789abcdef0123")]), "200");
}

#[tokio::test]
async fn it_starts_without_a_key_and_says_what_to_set() {
    let program = Program::alone();
    let (_server, client) = over_stdio(&program, &[], discover(), Tester::default()).await;
    assert_eq!(client.list_all_tools().await.unwrap().len(), TOOLS.len());
    for tool in ["ask", "propose_plan"] {
        let arguments = if tool == "ask" { json!({ "text": "hi" }) } else { json!({ "goal": "hi" }) };
        let refused = call(&client, tool, arguments).await;
        assert!(is_error(&refused) && text(&refused).contains("ANTHROPIC_API_KEY"), "{refused:?}");
    }
    let agents = call(&client, "list_agents", json!({})).await.structured_content.unwrap();
    assert!(agents["agents"].as_array().unwrap().iter().any(|agent| agent["name"] == "leo"), "{agents}");
    let status = call(&client, "status", json!({})).await.structured_content.unwrap();
    assert_eq!(status, json!({ "sessions": [], "agents": [], "questions": [], "plans": [] }));
    let found = call(&client, "search_memory", json!({ "words": "tea" })).await.structured_content.unwrap();
    assert_eq!(found, json!({ "facts": [] }));
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn only_the_user_approves_a_plan() {
    let tasks = json!([{ "id": "greet", "title": "greet", "agent": "leo", "description": "Greet." }]);
    let model = ModelServer::start(
        Script::new()
            .when(voice(task("greet"), vec![Reply::text("Good morning.")]))
            .on(news("is over:"), Reply::text("Leo has greeted."))
            .on(news("say hello"), plan(tasks)),
    );
    let program = Program::team(&model);
    let tester = Tester::default();
    let (_server, client) = over_stdio(&program, &[], ClientLifecycleMode::Initialize, tester.clone()).await;
    let proposed = text(&call(&client, "propose_plan", json!({ "goal": "say hello" })).await);
    assert!(proposed.contains("greet") && proposed.contains("max-team approve"), "{proposed}");
    let status = call(&client, "status", json!({})).await.structured_content.unwrap();
    let waiting = &status["plans"][0];
    assert_eq!((&waiting["state"], &waiting["approved"]), (&json!("waiting"), &json!(false)), "{status}");
    let id = waiting["id"].as_str().unwrap().to_owned();
    assert!(proposed.contains(&id), "{proposed}");
    let refused = call(&client, "run_plan", json!({ "plan": id })).await;
    assert!(is_error(&refused) && text(&refused).contains("not approved"), "{refused:?}");
    let question = status["questions"][0]["id"].as_str().unwrap();
    assert!(text(&refused).contains(&format!("max-team approve {question}")), "{refused:?}");

    let approved = program.run(&["approve", question]);
    assert_eq!(approved.code, 0, "{approved:?}");
    let ran = call(&client, "run_plan", json!({ "plan": id })).await;
    assert!(!is_error(&ran) && text(&ran).contains("greet (leo): done: Good morning."), "{ran:?}");
    let artifact = text(&call(&client, "read_artifact", json!({ "plan": id, "task": "greet" })).await);
    assert!(artifact.contains("Good morning."), "{artifact}");
    let unknown = call(&client, "read_artifact", json!({ "plan": id, "task": "greet", "name": "../x" })).await;
    assert!(is_error(&unknown), "{unknown:?}");
    let reports = tester.reports.lock().unwrap().clone();
    // Reports that come close together are joined, so which of them arrive is open.
    assert!(reports.iter().any(|report| report.starts_with("max: ")), "{reports:?}");
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_question_waits_for_the_user() {
    let write = Reply::new().tool("w", "write_file", json!({ "path": "a.txt", "content": "hello\n" }));
    let model = ModelServer::start([write, Reply::text("It is written.")]);
    let program = Program::with(&model);
    let (_server, client) = over_stdio(&program, &["--solo"], discover(), Tester::default()).await;
    let asked = text(&call(&client, "ask", json!({ "text": "write it" })).await);
    assert!(asked.contains("waits for the user") && asked.contains("write_file a.txt"), "{asked}");
    assert!(text(&call(&client, "answer_of", json!({})).await).contains("waits for the user"));
    assert_eq!(program.run(&["approve"]).code, 0);
    assert!(soon(|| program.project().join("a.txt").exists()));
    loop {
        let answer = text(&call(&client, "answer_of", json!({})).await);
        if answer.starts_with("It is written.") {
            break;
        }
        tokio::task::yield_now().await;
    }
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn long_work_becomes_a_task_for_clients_that_know_tasks() {
    let gate = Gate::new();
    let model = ModelServer::start([Reply::text("Done.").gate_before(&gate)]);
    let program = Program::with(&model);
    let tester = Tester { has_tasks: true, ..Tester::default() };
    let (_server, client) = over_stdio(&program, &["--solo"], discover(), tester).await;
    let response = client.call_tool_once(request("ask", json!({ "text": "work" }))).await.unwrap();
    let CallToolResponse::Task(created) = response else { panic!("{response:?}") };
    gate.reached().await;
    let params = || GetTaskParams::new(created.task.task_id.clone());
    assert!(!client.peer().get_task(params()).await.unwrap().task.status().is_terminal());
    gate.open();
    let result = loop {
        match client.peer().get_task(params()).await.unwrap().task.payload {
            TaskPayload::Completed { result } => break Value::Object(result),
            TaskPayload::Working => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    };
    assert!(result["content"][0]["text"].as_str().unwrap().starts_with("Done."), "{result}");
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_killed_server_leaves_a_session_that_goes_on() {
    let gate = Gate::new();
    let mut calls = 0;
    let stuck = gate.clone();
    let model = ModelServer::start(Script::new().when(move |_| {
        calls += 1;
        Some(if calls == 1 { Reply::text("lost").gate_before(&stuck) } else { Reply::text("Here again.") })
    }));
    let program = Program::with(&model);
    let (server, client) = over_stdio(&program, &["--solo"], discover(), Tester::default()).await;
    let peer = client.peer().clone();
    let asked =
        tokio::spawn(async move { peer.call_tool(request("ask", json!({ "text": "remember the blue door" }))).await });
    gate.reached().await;
    drop(server);
    assert!(asked.await.unwrap().is_err());

    let (_server, client) = over_stdio(&program, &["--solo"], discover(), Tester::default()).await;
    let before = text(&call(&client, "answer_of", json!({})).await);
    assert!(before.contains("goes on with the next `ask`"), "{before}");
    let answer = text(&call(&client, "ask", json!({ "text": "go on" })).await);
    assert!(answer.starts_with("Here again."), "{answer}");
    let last = model.requests().pop().unwrap().body.to_string();
    assert!(last.contains("remember the blue door") && last.contains("go on"), "{last}");
    gate.open();
    client.cancel().await.unwrap();
}
