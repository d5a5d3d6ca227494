//! OpenAI chat completions, streamed and whole.

use max_team_testkit::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::client::{CHAT, Client, Event, Response, joined, streamed, whole};

fn ask(reply: Reply, body: &Value) -> Response {
    let server = ModelServer::start([reply]);
    Client::connect(&server).call("POST", CHAT, body)
}

fn full() -> Reply {
    Reply::new()
        .thinking("Look first.", "unused")
        .say("Ich lese … 文件")
        .tool("call_a", "read_file", json!({"path": "a"}))
        .tool("call_b", "read_file", json!({"path": "b"}))
        .raw_block(json!({"type": "unknown"}))
        .usage(7, 11, 13, 17)
        .chunk(4)
}

/// All chunks of a stream, once its closing line is checked and taken off.
fn chunks(response: &Response) -> Vec<Value> {
    let mut events = response.events();
    assert_eq!(events.pop(), Some(Event { name: String::new(), data: "[DONE]".into() }));
    events.iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect()
}

#[test]
fn stream_adds_up_to_the_blocks() {
    let response = ask(full(), &streamed());
    assert!(response.whole);
    assert_eq!(response.head.header("x-request-id"), Some("req_0"));
    let chunks = chunks(&response);
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert_eq!(joined(&chunks, "/choices/0/delta/reasoning_content"), "Look first.");
    assert_eq!(joined(&chunks, "/choices/0/delta/content"), "Ich lese … 文件");
    assert_eq!(joined(&chunks, "/choices/0/finish_reason"), "tool_calls");
    let calls: Vec<Value> =
        chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/tool_calls/0")).cloned().collect();
    for (index, id, args) in [(0, "call_a", r#"{"path":"a"}"#), (1, "call_b", r#"{"path":"b"}"#)] {
        let own: Vec<Value> = calls.iter().filter(|call| call["index"] == index).cloned().collect();
        let first = json!({
            "index": index, "id": id, "type": "function", "function": {"name": "read_file", "arguments": ""},
        });
        assert_eq!(own[0], first);
        assert_eq!(joined(&own, "/function/arguments"), args);
    }
}

#[test]
fn usage_streams_only_when_asked_for() {
    let mut body = streamed();
    assert!(chunks(&ask(full(), &body)).iter().all(|chunk| chunk.get("usage").is_none()));
    body["stream_options"] = json!({"include_usage": true});
    let mut chunks = chunks(&ask(full(), &body));
    let last = chunks.pop().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(
        last["usage"],
        json!({
            "prompt_tokens": 37, "completion_tokens": 11, "total_tokens": 48,
            "prompt_tokens_details": {"cached_tokens": 13},
        })
    );
    assert!(chunks.iter().all(|chunk| chunk["usage"].is_null()));
}

#[test]
fn whole_body_has_the_same_blocks() {
    let call = |id: &str, args: &str| json!({"id": id, "type": "function", "function": {"name": "read_file", "arguments": args}});
    assert_eq!(
        ask(full(), &whole()).json(),
        json!({
            "id": "chatcmpl-0", "object": "chat.completion", "created": 1_700_000_000, "model": "m",
            "choices": [{
                "index": 0,
                "message": {
                    "role": "assistant", "content": "Ich lese … 文件", "reasoning_content": "Look first.",
                    "tool_calls": [call("call_a", r#"{"path":"a"}"#), call("call_b", r#"{"path":"b"}"#)],
                },
                "logprobs": null, "finish_reason": "tool_calls",
            }],
            "usage": {
                "prompt_tokens": 37, "completion_tokens": 11, "total_tokens": 48,
                "prompt_tokens_details": {"cached_tokens": 13},
            },
        })
    );
}

#[test]
fn stop_reasons_are_translated() {
    for (stop, finish) in
        [("end_turn", "stop"), ("tool_use", "tool_calls"), ("max_tokens", "length"), ("refusal", "content_filter")]
    {
        let chunks = chunks(&ask(Reply::text("x").stop(stop), &streamed()));
        assert_eq!(joined(&chunks, "/choices/0/finish_reason"), finish);
    }
}

#[test]
fn short_path_is_the_same_endpoint() {
    let server = ModelServer::start([Reply::text("hi")]);
    let response = Client::connect(&server).call("POST", "/chat/completions", &whole());
    assert_eq!(response.json()["choices"][0]["message"], json!({"role": "assistant", "content": "hi"}));
}
