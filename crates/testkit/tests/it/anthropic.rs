//! Anthropic Messages, streamed and whole.

use max_team_testkit::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::client::{Client, MESSAGES, joined, streamed, whole};

fn ask(reply: Reply, body: &Value) -> crate::client::Response {
    let server = ModelServer::start([reply]);
    Client::connect(&server).call("POST", MESSAGES, body)
}

fn full() -> Reply {
    Reply::new()
        .thinking("Erst schauen …", "c2lnbmF0dXJl")
        .say("读一下 README。")
        .tool("toolu_1", "read_file", json!({"path": "README.md"}))
        .raw_block(json!({"type": "redacted_thinking", "data": "x"}))
        .usage(7, 11, 13, 17)
        .request_id("req_x")
        .chunk(5)
}

#[test]
fn stream_has_every_event_in_order() {
    let response = ask(full(), &streamed());
    assert!(response.whole);
    assert_eq!(response.head.status, 200);
    assert_eq!(response.head.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(response.head.header("request-id"), Some("req_x"));
    let mut kinds: Vec<String> = response.events().into_iter().map(|event| event.name).collect();
    kinds.dedup();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let expected = [
        &["message_start", "ping"],
        &block[..],
        &block,
        &block,
        &block[..1],
        &block[2..],
        &["message_delta", "message_stop"],
    ]
    .concat();
    assert_eq!(kinds, expected);
}

#[test]
fn event_names_equal_their_types() {
    let response = ask(full(), &streamed());
    for (event, data) in response.events().iter().zip(response.data()) {
        assert_eq!(data["type"], event.name.as_str());
    }
}

#[test]
fn deltas_add_up_to_the_blocks() {
    let data = ask(full(), &streamed()).data();
    assert_eq!(joined(&data, "/delta/thinking"), "Erst schauen …");
    assert_eq!(joined(&data, "/delta/signature"), "c2lnbmF0dXJl");
    assert_eq!(joined(&data, "/delta/text"), "读一下 README。");
    assert_eq!(joined(&data, "/delta/partial_json"), r#"{"path":"README.md"}"#);
    let longest = data.iter().filter_map(|data| data.pointer("/delta/text")?.as_str()).map(|text| text.chars().count());
    assert_eq!(longest.max(), Some(5));
    let starts: Vec<&Value> = data.iter().filter_map(|data| data.get("content_block")).collect();
    assert_eq!(
        starts,
        [
            &json!({"type": "thinking", "thinking": "", "signature": ""}),
            &json!({"type": "text", "text": ""}),
            &json!({"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}}),
            &json!({"type": "redacted_thinking", "data": "x"}),
        ]
    );
}

#[test]
fn stream_ends_with_stop_reason_and_usage() {
    let data = ask(full(), &streamed()).data();
    let usage = |output| {
        json!({
            "input_tokens": 7, "cache_creation_input_tokens": 17, "cache_read_input_tokens": 13,
            "output_tokens": output,
        })
    };
    assert_eq!(data[0]["message"]["usage"], usage(1));
    assert_eq!(data[0]["message"]["model"], "m");
    assert_eq!(
        data[data.len() - 2],
        json!({
            "type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": usage(11),
        })
    );
}

#[test]
fn whole_body_has_the_same_blocks() {
    assert_eq!(
        ask(full(), &whole()).json(),
        json!({
            "id": "msg_0", "type": "message", "role": "assistant", "model": "m",
            "content": [
                {"type": "thinking", "thinking": "Erst schauen …", "signature": "c2lnbmF0dXJl"},
                {"type": "text", "text": "读一下 README。"},
                {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "README.md"}},
                {"type": "redacted_thinking", "data": "x"},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {
                "input_tokens": 7, "cache_creation_input_tokens": 17, "cache_read_input_tokens": 13,
                "output_tokens": 11,
            },
        })
    );
}

#[test]
fn stop_reason_is_derived_or_told() {
    let stop = |reply| ask(reply, &whole()).json()["stop_reason"].clone();
    assert_eq!(stop(Reply::text("hi")), "end_turn");
    assert_eq!(stop(Reply::new().tool("t", "x", json!({}))), "tool_use");
    assert_eq!(stop(Reply::text("hi").stop("max_tokens")), "max_tokens");
    assert_eq!(stop(Reply::new().stop("refusal")), "refusal");
}

#[test]
fn tool_without_arguments_streams_one_empty_delta() {
    let data = ask(Reply::new().tool("t", "now", json!({})), &streamed()).data();
    let deltas: Vec<&Value> = data.iter().filter_map(|data| data.pointer("/delta/partial_json")).collect();
    assert_eq!(deltas, [""]);
}

#[test]
fn arguments_may_be_cut_short() {
    let data = ask(Reply::new().tool_text("t", "x", r#"{"path": "RE"#).stop("max_tokens"), &streamed()).data();
    assert_eq!(joined(&data, "/delta/partial_json"), r#"{"path": "RE"#);
}
