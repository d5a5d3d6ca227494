//! A server at an address that misbehaves harms nothing but its own calls, and the user is told what to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use max_team_core::limits::MCP_MESSAGE_BYTES_MAX;
use max_team_core::mcp::{HttpTransport, McpServer};
use max_team_core::policy::Repeatability;
use max_team_mcp::{ServerEntry, ServerStatus};
use max_team_tools::{Handler, Root, ToolContext, ToolError, ToolSources, run_remote};
use serde_json::json;

use super::fake_http::{FakeServer, Reply, legacy};
use super::{World, text};

const DONE: &str = "Done.";

fn world(url: &str, transport: HttpTransport) -> World {
    let headers = [("Authorization".to_owned(), "Bearer very-secret".to_owned())].into();
    let (connect_ms, call_ms) = (Some(2_000), Some(2_000));
    let url = format!("{url}/mcp");
    World::new(McpServer { name: "bad".into(), url, transport, headers, connect_ms, call_ms, ..McpServer::default() })
}

/// The only notice of a server that answers everything so.
async fn notice(reply: Reply) -> String {
    let server = FakeServer::start(move |_| reply.clone()).await;
    let world = world(&server.url, HttpTransport::Either);
    assert!(world.tools().await.is_empty());
    let notices = world.source().notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    notices[0].strip_prefix("the MCP server `bad` is not used: ").unwrap().to_owned()
}

#[tokio::test]
async fn an_address_that_is_no_server_is_named_with_a_way_out() {
    let html = "<html><body>Welcome</body></html>";
    for (reply, words) in [
        (Reply::new(401, "", ""), "it does not accept the token in the header `Authorization` of its entry"),
        (Reply::new(403, "", html), "it refuses access (403): check the token and its rights"),
        (Reply::new(404, "", html), "there is no MCP server at this address (404): check the path of the address"),
        (Reply::new(500, "", html), "it answers with HTTP status 500: try again later, or look at its own log"),
        (
            Reply::new(200, "content-type: text/html; charset=utf-8\r\n", html),
            "it answers with `text/html; charset=utf-8` instead of MCP messages: check the address",
        ),
        (
            Reply::new(200, "content-type: application/json\r\n", "{\"hello\": 1}"),
            "its answer is no MCP message: check the address",
        ),
        (Reply::new(302, "location: /login\r\n", ""), "it sends requests on to `http://127.0.0.1:"),
    ] {
        let said = notice(reply).await;
        assert!(said.starts_with(words), "{said}");
    }
}

#[tokio::test]
async fn a_port_without_a_server_is_asked_about() {
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let world = world(&format!("http://{free}"), HttpTransport::Either);
    assert!(world.tools().await.is_empty());
    let want = format!("the MCP server `bad` is not used: nothing listens at `{free}`: is the server running?");
    assert_eq!(world.source().notices(), [want]);
}

#[tokio::test]
async fn a_server_that_never_answers_is_waited_for_no_longer_than_its_bound() {
    let server = FakeServer::start(|_| Reply::Silence).await;
    for transport in [HttpTransport::Either, HttpTransport::Http, HttpTransport::Sse] {
        let mut entry = world(&server.url, transport).server().config().clone();
        entry.connect_ms = Some(200);
        let world = World::new(entry);
        let began = Instant::now();
        assert!(world.tools().await.is_empty());
        assert!(began.elapsed() < Duration::from_secs(5), "{transport:?}");
        assert_eq!(
            world.source().notices(),
            ["the MCP server `bad` is not used: it did not answer within 0.2 s"],
            "{transport:?}"
        );
    }
}

#[tokio::test]
async fn a_redirect_to_another_host_gets_no_header_and_no_message() {
    let other = FakeServer::start(|request| legacy(request, |request| request.result(json!({})))).await;
    let target = format!("location: {}/mcp\r\n", other.url);
    for status in [301, 302, 303, 307, 308] {
        let target = target.clone();
        let server = FakeServer::start(move |_| Reply::new(status, &target, "")).await;
        for transport in [HttpTransport::Either, HttpTransport::Sse] {
            let world = world(&server.url, transport);
            assert!(world.tools().await.is_empty());
            let notices = world.source().notices();
            let want =
                format!("it sends requests on to `{}`: if that is right, put that address into its entry", other.url);
            assert!(notices[0].ends_with(&want), "{status} {notices:?}");
        }
        assert!(server.requests()[0].head.contains("very-secret"));
    }
    assert!(other.requests().is_empty(), "{:?}", other.requests());
}

#[tokio::test]
async fn an_event_stream_that_names_another_host_for_messages_is_refused() {
    let server = FakeServer::start(|_| {
        let body = "event: endpoint\ndata: http://evil.example/messages\n\n";
        Reply::new(200, "content-type: text/event-stream\r\n", body)
    })
    .await;
    let world = world(&server.url, HttpTransport::Sse);
    assert!(world.tools().await.is_empty());
    assert!(world.source().notices()[0].contains("it sends requests on to `http://evil.example`"));
}

#[tokio::test]
async fn a_redirect_within_the_server_is_followed_with_the_message() {
    let server = FakeServer::start(|request| match request.path.as_str() {
        "/mcp" => Reply::new(307, "location: /moved\r\n", ""),
        _ => legacy(request, |request| request.result(json!({ "content": [{ "type": "text", "text": DONE }] }))),
    })
    .await;
    let world = world(&server.url, HttpTransport::Http);
    let output = world.call("x", json!({})).await.unwrap();
    assert!(text(&output).ends_with(DONE), "{output:?}");
}

/// The error of a call that a server answers so, and whether its outcome is open.
async fn call_error(reply: Reply) -> (String, bool, FakeServer) {
    let server = FakeServer::start(move |request| legacy(request, |_| reply.clone())).await;
    let world = world(&server.url, HttpTransport::Http);
    let error = world.call("x", json!({})).await.unwrap_err();
    let is_unknown = matches!(error, ToolError::Unknown(_));
    (error.to_string(), is_unknown, server)
}

#[tokio::test]
async fn a_call_that_fails_says_whether_it_may_have_taken_effect() {
    let html = "content-type: text/html\r\n";
    for (reply, words, may_have_run) in [
        (Reply::new(401, "", ""), "it does not accept the token", false),
        (Reply::new(403, "", ""), "it refuses access (403)", false),
        (Reply::new(500, html, "<p>"), "it answers with HTTP status 500", true),
        (Reply::new(200, html, "<p>"), "it answers with `text/html` instead of MCP messages", true),
        (Reply::new(200, "content-type: application/json\r\n", "{"), "its answer is no MCP message", true),
        (Reply::Bytes(Vec::new()), "the connection broke off", true),
        (Reply::Silence, "it did not answer within 2 s", true),
    ] {
        let (error, is_unknown, _server) = call_error(reply).await;
        assert!(error.contains(words), "{error}");
        assert_eq!(is_unknown, may_have_run, "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_read_no_further() {
    let block = vec![b'x'; 64 << 10];
    let endless = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": \"";
    for reply in [
        Reply::endless("application/json", endless, block.clone()),
        // It says beforehand how long it will be: 200 MB.
        Reply::Endless(
            format!("HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 209715200\r\n\r\n{endless}")
                .into(),
            block.clone(),
        ),
        // A line of an event stream that never ends, and an event of very many lines.
        Reply::endless("text/event-stream", "data: ", block.clone()),
        Reply::endless("text/event-stream", "", [b"data: ", block.as_slice(), b"\n"].concat()),
    ] {
        let (error, is_unknown, server) = call_error(reply).await;
        assert!(error.contains("it sent a message of more than 16 MB") && is_unknown, "{error}");
        // Beyond the bound there is only what the sockets hold.
        assert!(server.written() < MCP_MESSAGE_BYTES_MAX + (32 << 20), "{}", server.written());
    }
}

#[tokio::test]
async fn events_that_are_no_message_are_ended_by_the_bound_of_time() {
    let server = FakeServer::start(|request| {
        legacy(request, |_| Reply::endless("text/event-stream", "", b": still here\n\n".repeat(64)))
    })
    .await;
    let mut entry = world(&server.url, HttpTransport::Http).server().config().clone();
    entry.call_ms = Some(200);
    let world = World::new(entry);
    let error = world.call("x", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("it did not answer within 0.2 s"), "{error}");
}

#[tokio::test]
async fn a_server_that_went_away_is_asked_about_and_comes_back() {
    let server = FakeServer::start(|request| legacy(request, |_| Reply::new(404, "", ""))).await;
    let world = world(&server.url, HttpTransport::Http);
    let tools = world.tools().await;
    let error = world.call_on(&tools[0], json!({})).await.unwrap_err();
    assert!(matches!(&error, ToolError::Correctable(_)), "{error:?}");
    assert!(matches!(world.server().status(), ServerStatus::Failed(_)), "{:?}", world.server().status());
}

#[tokio::test]
async fn a_call_that_is_stopped_while_its_server_is_still_reached_was_never_sent() {
    let is_slow = Arc::new(AtomicBool::new(false));
    let slow = Arc::clone(&is_slow);
    let server = FakeServer::start(move |request| match slow.load(Ordering::Relaxed) {
        true => Reply::Silence,
        false => legacy(request, |_| Reply::new(500, "", "")),
    })
    .await;
    let world = world(&server.url, HttpTransport::Http);
    let tools = world.tools().await;
    assert_eq!(tools[0].spec().class, Repeatability::Opaque);
    // Another process: the tools are known, the server is not connected.
    is_slow.store(true, Ordering::Relaxed);
    let entry = McpServer { connect_ms: Some(600_000), ..world.server().config().clone() };
    let again = World::servers(&world.folder, &world.root());
    again.set(vec![ServerEntry { source: "bad".into(), server: entry, pin: None }]);
    let Handler::Remote(tool) = again.source("bad").unwrap().tools().remove(0) else { panic!() };
    let cx = ToolContext::new(Arc::new(Root::open(world.root()).unwrap()));
    let (stop, intent) = (cx.cancel.clone(), tool.action(&cx, &json!({})).unwrap());
    let before = server.requests().len();
    let call = tokio::spawn(run_remote(tool, cx, json!({}), intent, false));
    while server.requests().len() == before {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    assert_eq!(call.await.unwrap(), Err(ToolError::correctable("stopped before the call was sent")));
}

#[tokio::test]
async fn a_server_that_answers_any_question_is_spoken_to_in_the_older_way() {
    let server = FakeServer::start(|request| match request.asks().as_str() {
        "server/discover" => request.result(json!({})),
        _ => legacy(request, |request| request.result(json!({ "content": [{ "type": "text", "text": DONE }] }))),
    })
    .await;
    let world = world(&server.url, HttpTransport::Http);
    assert!(text(&world.call("x", json!({})).await.unwrap()).ends_with(DONE));
}

#[tokio::test]
async fn headers_of_the_protocol_cannot_be_given() {
    let headers = [("Mcp-Session-Id".to_owned(), "1".to_owned())].into();
    let world =
        World::new(McpServer { name: "bad".into(), url: "http://127.0.0.1:1".into(), headers, ..McpServer::default() });
    assert!(world.tools().await.is_empty());
    assert!(world.source().notices()[0].contains("the header `Mcp-Session-Id` belongs to the protocol"));
}
