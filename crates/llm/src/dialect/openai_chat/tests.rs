//! The chat dialect against recorded frames: pieces of calls, reasoning, usage, faults.

use max_team_core::chat::{Answer, ChatRole, Message, NativeBlocks, Part, StopReason, Usage};
use max_team_core::context::Window;
use max_team_core::recovery::Failure;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::dialect::Dialect::OpenaiChat;
use crate::dialect::fixture::{streamed, whole, wire};
use crate::tool::ToolSpec;
use crate::transcript::{RequestOptions, Transcript};
use crate::wire::{Quirks, Thinking, Wire};

fn sse(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

fn chunk(delta: Value) -> Value {
    json!({"id": "chatcmpl-1", "model": "gpt-x", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"id": "chatcmpl-1", "model": "gpt-x", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn tools(pieces: Value) -> Value {
    chunk(json!({"tool_calls": pieces}))
}

fn native(message: Value) -> Option<NativeBlocks> {
    let blocks = RawValue::from_string(message.to_string()).unwrap();
    Some(NativeBlocks { dialect: "openai_chat".into(), model: "p/m".into(), blocks })
}

fn answer(parts: Vec<Part>, message: Option<Value>, stop: StopReason) -> Answer {
    Answer {
        message: Message { role: ChatRole::Assistant, parts, native: message.and_then(native) },
        stop,
        usage: Usage::default(),
        request_id: Some("chatcmpl-1".into()),
        model: "gpt-x".into(),
    }
}

fn call(id: &str, name: &str, input: Value) -> Part {
    Part::ToolUse { id: id.into(), name: name.into(), input: input.into() }
}

fn wire_call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// Plays chunks of tool call pieces and compares the assembled calls.
fn assembles(case: &str, chunks: Value, calls: &[Value]) {
    let pieces = chunks.as_array().unwrap().iter().cloned().map(tools);
    let stream: Vec<Value> = pieces.chain([finish("tool_calls")]).collect();
    let ended = streamed(OpenaiChat, &sse(&stream)).0.unwrap();
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    assert_eq!(ended.message.native, native(message), "{case}");
    assert_eq!(ended.stop, StopReason::ToolUse, "{case}");
}

#[test]
fn a_tool_call_is_assembled_from_any_pieces() {
    let table = [
        (
            "pieces by index",
            json!([
                [{"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}}],
                [{"index": 0, "function": {"arguments": "{\"p\""}}],
                [{"index": 0, "function": {"arguments": ": 1}"}}],
            ]),
            wire_call("a", "read", "{\"p\": 1}"),
        ),
        (
            "a name in pieces",
            json!([
                [{"index": 0, "id": "a", "function": {"name": "re"}}],
                [{"index": 0, "function": {"name": "ad", "arguments": "{}"}}],
            ]),
            wire_call("a", "read", "{}"),
        ),
        (
            "a name repeated",
            json!([
                [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{"}}],
                [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "}"}}],
            ]),
            wire_call("a", "read", "{}"),
        ),
        (
            "arguments as an object, no id",
            json!([[{"index": 0, "function": {"name": "read", "arguments": {"p": 1}}}]]),
            wire_call("call_0", "read", "{\"p\":1}"),
        ),
        (
            "arguments that are no JSON",
            json!([[{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{\"p\":"}}]]),
            wire_call("a", "read", r#"{"unreadable_input":"{\"p\":"}"#),
        ),
    ];
    for (case, chunks, call) in table {
        assembles(case, chunks, &[call]);
    }
}

#[test]
fn several_tool_calls_are_told_apart() {
    let calls = [wire_call("a", "read", "{\"p\": 1}"), wire_call("b", "list", "{}")];
    let table = [
        (
            "in one chunk",
            json!([[
                {"index": 0, "id": "a", "function": {"name": "read", "arguments": "{\"p\": 1}"}},
                {"index": 1, "id": "b", "function": {"name": "list", "arguments": ""}},
            ]]),
        ),
        (
            "interleaved",
            json!([
                [{"index": 0, "id": "a", "function": {"name": "read"}}],
                [{"index": 1, "id": "b", "function": {"name": "list"}}],
                [{"index": 0, "function": {"arguments": "{\"p\": 1}"}}, {"index": 1, "function": {"arguments": "{}"}}],
            ]),
        ),
        (
            "no index",
            json!([
                [{"id": "a", "function": {"name": "read", "arguments": "{\"p\":"}}],
                [{"function": {"arguments": " 1}"}}],
                [{"id": "b", "function": {"name": "list", "arguments": "{}"}}],
            ]),
        ),
        (
            "all under index 0",
            json!([
                [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{\"p\": 1}"}}],
                [{"index": 0, "id": "b", "function": {"name": "list", "arguments": "{}"}}],
            ]),
        ),
    ];
    for (case, chunks) in table {
        assembles(case, chunks, &calls);
    }
}

#[test]
fn reasoning_stays_beside_tool_calls_only() {
    let think = [chunk(json!({"reasoning_content": "Hm", "content": null})), chunk(json!({"reasoning": "m."}))];
    let say = chunk(json!({"role": "assistant", "content": "Hi"}));
    let use_tool = tools(json!([{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}, "sig": "x"}]));
    let thought = || Part::Thinking { text: "Hmm.".into() };

    let spoken = [think.to_vec(), vec![say.clone(), finish("stop")]].concat();
    let (ended, deltas) = streamed(OpenaiChat, &sse(&spoken));
    let message = json!({"role": "assistant", "content": "Hi"});
    assert_eq!(ended, Ok(answer(vec![thought(), Part::text("Hi")], Some(message), StopReason::EndTurn)));
    assert_eq!(deltas, ["thinking Hm", "thinking m.", "text Hi"]);

    let worked = [think.to_vec(), vec![say, use_tool, finish("stop")]].concat();
    let (ended, deltas) = streamed(OpenaiChat, &sse(&worked));
    let message = json!({"role": "assistant", "content": "Hi", "reasoning_content": "Hmm.", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}, "sig": "x"}]});
    let parts = vec![thought(), Part::text("Hi"), call("a", "read", json!({}))];
    assert_eq!(ended, Ok(answer(parts, Some(message), StopReason::ToolUse)));
    assert_eq!(deltas[3..], ["tool a read", "input {}"]);
}

#[test]
fn ends_and_usage_are_read_where_they_are() {
    let say = chunk(json!({"content": "A"}));
    let usage = |usage: Value| json!({"id": "chatcmpl-1", "choices": [], "usage": usage});
    let count = |input, output, cache_read, cache_write| Usage { input, output, cache_read, cache_write };
    let table = [
        (usage(json!({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11})), count(9, 2, 0, 0)),
        (usage(json!({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 18})), count(9, 9, 0, 0)),
        (
            usage(json!({"prompt_tokens": 9, "completion_tokens": 2,
                      "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}})),
            count(2, 2, 4, 3),
        ),
        (
            usage(json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4,
                      "prompt_cache_miss_tokens": 5})),
            count(5, 2, 4, 0),
        ),
        (usage(json!({"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 9})), count(0, 2, 9, 0)),
        (json!({"choices": [], "x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}}), count(9, 2, 0, 0)),
        (usage(Value::Null), Usage::default()),
    ];
    for (last, want) in table {
        let stream = sse(&[say.clone(), finish("stop"), last.clone()]) + "data: [DONE]\n\n";
        assert_eq!(streamed(OpenaiChat, &stream).0.unwrap().usage, want, "{last}");
    }
    let stops = [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Refusal),
        ("tool_calls", StopReason::EndTurn),
        ("weird", StopReason::Other("weird".into())),
    ];
    for (reason, want) in stops {
        assert_eq!(streamed(OpenaiChat, &sse(&[say.clone(), finish(reason)])).0.unwrap().stop, want, "{reason}");
    }
    let refused = sse(&[chunk(json!({"refusal": "No."})), finish("stop")]);
    assert_eq!(streamed(OpenaiChat, &refused).0, Ok(answer(vec![Part::text("No.")], None, StopReason::Refusal)));
}

#[test]
fn streams_that_fail_are_never_answers() {
    let say = sse(&[chunk(json!({"content": "A"}))]);
    assert_eq!(streamed(OpenaiChat, &say).0, Err(None), "cut");
    assert_eq!(streamed(OpenaiChat, &format!("{say}data: [DONE]\n\n")).0, Err(None), "no finish reason");
    let table = [
        ("data: {\"choices\": [\n\n", Failure::Malformed),
        (
            "data: {\"error\":{\"message\":\"boom\",\"code\":\"server_error\"}}\n\n",
            Failure::Server { retry_after_ms: None },
        ),
        (
            "data: {\"error\":{\"message\":\"slow down\",\"code\":429}}\n\n",
            Failure::RateLimited { retry_after_ms: None },
        ),
        ("event: error\ndata: {\"message\":\"boom\"}\n\n", Failure::Server { retry_after_ms: None }),
    ];
    for (event, want) in table {
        assert_eq!(streamed(OpenaiChat, &format!("{say}{event}")).0.unwrap_err().unwrap().failure, want, "{event}");
    }
}

#[test]
fn whole_answers_are_read_alike() {
    let body = json!({"id": "chatcmpl-1", "model": "gpt-x", "choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": null, "refusal": null, "annotations": [],
                    "tool_calls": [wire_call("a", "read", " {\"p\": 1.0} ")]}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2}});
    let message =
        json!({"role": "assistant", "content": null, "tool_calls": [wire_call("a", "read", " {\"p\": 1.0} ")]});
    let mut want = answer(vec![call("a", "read", json!({"p": 1.0}))], Some(message), StopReason::ToolUse);
    want.usage = Usage { input: 9, output: 2, ..Usage::default() };
    assert_eq!(whole(OpenaiChat, &body.to_string()), Ok(want));

    let parts =
        json!([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}, {"type": "text", "text": "A"}]);
    let body = json!({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]});
    let parts = whole(OpenaiChat, &body.to_string()).unwrap().message.parts;
    assert_eq!(parts, [Part::Thinking { text: "Hm".into() }, Part::text("A")]);

    assert_eq!(
        whole(OpenaiChat, r#"{"error":"no such model"}"#).unwrap_err().failure,
        Failure::Server { retry_after_ms: None }
    );
    assert_eq!(whole(OpenaiChat, "{}").unwrap_err().failure, Failure::Malformed);
}

fn all(transcript: &Transcript) -> RequestOptions {
    RequestOptions { number: 1, max_tokens: 9_000, tools_off: false, window: Window::default(), upto: transcript.len() }
}

fn body(wire: Wire, messages: &[Message], tools: &[ToolSpec], tools_off: bool) -> Value {
    let transcript = Transcript::encode(wire, "Be kind.", tools, messages);
    serde_json::from_slice(&transcript.request(&RequestOptions { tools_off, ..all(&transcript) }).body.whole()).unwrap()
}

#[test]
fn a_request_is_put_together() {
    let own = json!({"role": "assistant", "content": null, "reasoning_content": "x", "tool_calls": [wire_call("a", "read", "{ }")]});
    let result = |id: &str, content, is_error| Part::ToolResult { id: id.into(), content, is_error };
    let long = "x".repeat(41);
    let messages = [
        Message::user(vec![Part::text("one"), Part::text("two")]),
        Message { role: ChatRole::Assistant, parts: vec![call("a", "read", json!({}))], native: native(own.clone()) },
        Message::user(vec![
            Part::text("see"),
            result(
                "a",
                vec![Part::text("t"), Part::Image { media_type: "image/png".into(), data: "QQ==".into() }],
                false,
            ),
        ]),
        Message::assistant(vec![
            Part::Thinking { text: "gone".into() },
            Part::text("ok"),
            call(&long, "read", json!(7)),
        ]),
        Message::user(vec![result(&long, vec![], true)]),
        Message::assistant(vec![Part::Thinking { text: "gone".into() }]),
        Message::user(vec![Part::text(" ")]),
    ];
    let spec = ToolSpec { name: "read".into(), description: "d".into(), schema: json!({}) };
    let schema = json!({"type": "object", "properties": {}});
    let want = json!({
        "model": "m", "max_tokens": 9000, "stream": true, "stream_options": {"include_usage": true},
        "tools": [{"type": "function", "function": {"name": "read", "description": "d", "parameters": schema}}],
        "tool_choice": "none",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "one\n\ntwo"},
            own,
            {"role": "tool", "tool_call_id": "a", "content": "t"},
            {"role": "user", "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
            ]},
            {"role": "assistant", "content": "ok", "tool_calls": [wire_call("mt_1", "read", r#"{"unreadable_input":7}"#)]},
            {"role": "tool", "tool_call_id": "mt_1", "content": "Error: (no output)"},
        ],
    });
    assert_eq!(body(wire(OpenaiChat), &messages, &[spec], true), want);
}

#[test]
fn providers_oddities_are_honoured() {
    let asked = |thinking, thinking_tokens, tools: &[ToolSpec]| {
        let body = body(Wire { thinking, thinking_tokens, ..wire(OpenaiChat) }, &[], tools, false);
        (body.get("reasoning_effort").cloned(), body.get("thinking").cloned())
    };
    let tool = [ToolSpec { name: "t".into(), description: String::new(), schema: json!({}) }];
    assert_eq!(asked(Thinking::Effort, 0, &tool), (None, None));
    assert_eq!(asked(Thinking::Effort, 1_000, &tool), (Some(json!("low")), None));
    assert_eq!(asked(Thinking::Effort, 8_000, &tool), (Some(json!("medium")), None));
    assert_eq!(asked(Thinking::Effort, 32_000, &tool), (Some(json!("high")), None));
    assert_eq!(asked(Thinking::EffortWithoutTools, 8_000, &tool), (Some(json!("none")), None));
    assert_eq!(asked(Thinking::EffortWithoutTools, 8_000, &[]), (Some(json!("medium")), None));
    assert_eq!(asked(Thinking::Switch, 0, &[]), (None, Some(json!({"type": "disabled"}))));
    assert_eq!(asked(Thinking::Switch, 8_000, &[]), (None, Some(json!({"type": "enabled"}))));

    let quirks = Quirks { completion_tokens: true, no_stream_options: true };
    let odd = body(Wire { quirks, ..wire(OpenaiChat) }, &[], &[], false);
    assert_eq!(
        (&odd["max_completion_tokens"], odd.get("max_tokens"), odd.get("stream_options")),
        (&json!(9000), None, None)
    );
    let whole = body(Wire { stream: false, ..wire(OpenaiChat) }, &[], &[], false);
    assert_eq!((&whole["stream"], whole.get("stream_options")), (&json!(false), None));

    let foreign = [Message::assistant(vec![call("a", "read", json!({}))])];
    let insisting = body(Wire { thinking: Thinking::Switch, ..wire(OpenaiChat) }, &foreign, &[], false);
    assert_eq!(insisting["messages"][1]["reasoning_content"], json!(""));
}

proptest! {
    #[test]
    fn arguments_survive_any_split(
        text in "[a-zé🦀\"\\\\ {}:,]{0,40}", number in any::<i64>(), cuts in prop::collection::vec(0_usize..80, 0..10),
        indexed in any::<bool>(),
    ) {
        let input = json!({"text": text, "nested": {"list": [number, null, true]}});
        let written = input.to_string();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| written.is_char_boundary(*cut)).collect();
        cuts.extend([0, written.len()]);
        cuts.sort_unstable();
        let mut chunks = vec![tools(json!([{"index": 0, "id": "a", "function": {"name": "read", "arguments": ""}}]))];
        if !indexed {
            chunks = vec![tools(json!([{"id": "a", "function": {"name": "read", "arguments": ""}}]))];
        }
        chunks.extend(cuts.windows(2).map(|pair| {
            let function = json!({"arguments": written[pair[0]..pair[1]]});
            tools(if indexed { json!([{"index": 0, "function": function}]) } else { json!([{"function": function}]) })
        }));
        chunks.push(finish("tool_calls"));
        let message = streamed(OpenaiChat, &sse(&chunks)).0.unwrap().message;
        prop_assert_eq!(&message.parts, &[call("a", "read", input)]);
        let want = json!({"role": "assistant", "content": null, "tool_calls": [wire_call("a", "read", &written)]});
        prop_assert_eq!(message.native, native(want));
    }
}
