//! Calls that work.

use max_team_core::chat::{Message, Part, PartialAnswer, StopReason, Usage};
use max_team_llm::{Delta, Dialect, Options};
use max_team_testkit::{Gate, ModelServer, Reply};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{DIALECTS, KEY, ask, model, options, request, router, transcript};

fn working() -> Reply {
    Reply::new()
        .thinking("Hm, 你好.", "sig==")
        .say("I look. 🦀")
        .tool("t1", "read_file", json!({"path": "a.rs"}))
        .tool("t2", "list_dir", json!({}))
        .usage(100, 20, 7, 0)
        .request_id("req_x")
}

#[tokio::test]
async fn the_same_answer_comes_in_every_form() {
    for dialect in DIALECTS {
        let deliveries = [
            working(),
            working().chunk(1),
            working().split_bytes(1),
            working().split_bytes(7),
            working().json_instead(),
            working(),
        ];
        let server = ModelServer::start(deliveries);
        let router_of = |stream| router(dialect, &server.url(), Options { stream, ..options() });
        for stream in [true, true, true, true, true, false] {
            let answer = ask(&router_of(stream), dialect).await.unwrap();
            let call = |id: &str, name: &str, input: Value| Part::ToolUse {
                id: id.into(),
                name: name.into(),
                input: input.into(),
            };
            let parts = [
                Part::Thinking { text: "Hm, 你好.".into() },
                Part::text("I look. 🦀"),
                call("t1", "read_file", json!({"path": "a.rs"})),
                call("t2", "list_dir", json!({})),
            ];
            assert_eq!(answer.message.parts, parts);
            assert_eq!(answer.stop, StopReason::ToolUse);
            assert_eq!(answer.usage, Usage { input: 100, output: 20, cache_read: 7, cache_write: 0 });
            assert_eq!(answer.request_id.as_deref(), Some("req_x"));
            assert_eq!(answer.model, model(dialect).name);
            assert!(answer.message.native.is_some());
        }
        assert_eq!(server.problems(), [""; 0]);
    }
}

#[tokio::test]
async fn requests_carry_the_providers_headers_and_fields() {
    for dialect in DIALECTS {
        let server = ModelServer::start([Reply::text("Hi")]);
        let router = router(dialect, &format!("{}/v1/", server.url()), options());
        // On a task of its own, as agents are: what a call holds may move between threads.
        tokio::spawn(async move { ask(&router, dialect).await }).await.unwrap().unwrap();
        let sent = server.requests().remove(0);
        let header = |name| sent.header(name).map(str::to_owned);
        assert_eq!(header("content-type").as_deref(), Some("application/json"));
        assert!(header("user-agent").unwrap().starts_with("max-team/"));
        match dialect {
            Dialect::Anthropic => {
                assert_eq!(sent.path, "/v1/messages");
                assert_eq!(header("x-api-key").as_deref(), Some(KEY));
                assert_eq!(header("anthropic-version").as_deref(), Some("2023-06-01"));
                assert_eq!(sent.body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
            }
            Dialect::OpenaiChat => {
                assert_eq!(sent.path, "/v1/chat/completions");
                assert_eq!(header("authorization"), Some(format!("Bearer {KEY}")));
                assert_eq!(sent.body["max_completion_tokens"], json!(4000));
            }
        }
    }
}

#[tokio::test]
async fn native_blocks_go_back_byte_for_byte() {
    for dialect in DIALECTS {
        let odd = json!({"type": "odd_block", "x": [1.5, null]});
        let server = ModelServer::start([working().raw_block(odd), Reply::text("Done.")]);
        let router = router(dialect, &server.url(), options());
        let mut transcript = transcript(&router, dialect);
        let answer = router.call(&request(&transcript), &CancellationToken::new(), |_| {}).await.unwrap();
        transcript.push(&answer.message);
        let result = |id: &str| Part::ToolResult { id: id.into(), content: vec![Part::text("ok")], is_error: false };
        transcript.push(&Message::user(vec![result("t1"), result("t2")]));
        router.call(&request(&transcript), &CancellationToken::new(), |_| {}).await.unwrap();

        let sent = String::from_utf8(server.requests()[1].raw.clone()).unwrap();
        let native = answer.message.native.unwrap();
        let blocks = native.blocks.get().trim_start_matches('[').trim_end_matches(']');
        assert!(sent.contains(blocks), "{sent}\nholds no\n{blocks}");
        assert_eq!(server.requests()[1].tool_results(), 2);
    }
}

#[tokio::test]
async fn cancelling_returns_the_partial_answer_at_once() {
    for dialect in DIALECTS {
        let gate = Gate::new();
        // The role or the start of the message, then one delta at least; the rest never comes.
        let reply =
            Reply::text("one two three").chunk(4).gate_after(if dialect == Dialect::Anthropic { 5 } else { 3 }, &gate);
        let server = ModelServer::start([reply]);
        let router = router(dialect, &server.url(), options());
        let cancel = CancellationToken::new();
        let mut seen = String::new();
        let ended = router
            .call(&request(&transcript(&router, dialect)), &cancel, |delta| {
                if let Delta::Text(text) = delta {
                    seen.push_str(text);
                    if seen == "one two " {
                        cancel.cancel();
                    }
                }
            })
            .await;
        let input = if dialect == Dialect::Anthropic { 100 } else { 0 };
        let usage = Usage { input, output: u64::from(input > 0), ..Usage::default() };
        let streamed = PartialAnswer { is_sent: true, usage, bytes: "one two ".len() };
        assert_eq!(ended, Err(max_team_llm::CallError::Cancelled { partial: "one two ".into(), streamed }));
    }
}

#[tokio::test]
async fn cancelling_before_the_first_byte_works_too() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("never").gate_before(&gate)]);
    let router = router(Dialect::Anthropic, &server.url(), options());
    let cancel = CancellationToken::new();
    let request = request(&transcript(&router, Dialect::Anthropic));
    let call = router.call(&request, &cancel, |_| {});
    let stop = async {
        gate.reached().await;
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(call, stop);
    let streamed = PartialAnswer { is_sent: true, ..PartialAnswer::default() };
    assert_eq!(ended, Err(max_team_llm::CallError::Cancelled { partial: String::new(), streamed }));
    // Nothing is sent where no server listens.
    let nowhere = crate::router(Dialect::Anthropic, "http://127.0.0.1:1", options());
    let cancel = CancellationToken::new();
    cancel.cancel();
    let ended = nowhere.call(&request, &cancel, |_| {}).await;
    let streamed = PartialAnswer::default();
    assert_eq!(ended, Err(max_team_llm::CallError::Cancelled { partial: String::new(), streamed }));
}
