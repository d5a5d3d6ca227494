//! The Messages dialect against recorded frames: order, thinking, unknown blocks, faults.

use max_team_core::chat::{Answer, ChatRole, Message, NativeBlocks, Part, StopReason, Usage};
use max_team_core::context::Window;
use max_team_core::recovery::Failure;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::dialect::Dialect::Anthropic;
use crate::dialect::fixture::{streamed, whole, wire};
use crate::tool::ToolSpec;
use crate::transcript::{RequestOptions, Transcript};
use crate::wire::{Thinking, Wire};

fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}

fn opening() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "model": "claude-x",
        "usage": {"input_tokens": 10, "output_tokens": 1}}})
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn closing(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason},
               "usage": {"output_tokens": 20, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3}}),
        json!({"type": "message_stop"}),
    ]
}

fn native(blocks: &str) -> Option<NativeBlocks> {
    let blocks = RawValue::from_string(blocks.into()).unwrap();
    Some(NativeBlocks { dialect: "anthropic".into(), model: "p/m".into(), blocks })
}

fn answer(parts: Vec<Part>, blocks: &str, stop: StopReason) -> Answer {
    Answer {
        message: Message { role: ChatRole::Assistant, parts, native: native(blocks) },
        stop,
        usage: Usage { input: 10, output: 20, cache_read: 5, cache_write: 3 },
        request_id: Some("msg_1".into()),
        model: "claude-x".into(),
    }
}

/// A message's blocks as they go back to the model that wrote them.
fn sent_back(message: &Message) -> String {
    let mut transcript = Transcript::new(wire(Anthropic));
    transcript.push(message);
    let request = transcript.request(&all(&transcript));
    let body = String::from_utf8(request.body.whole()).unwrap();
    let (_, content) = body.split_once(r#""content":"#).unwrap();
    content.strip_suffix("}]}").unwrap().to_owned()
}

fn call(id: &str, input: Value) -> Part {
    Part::ToolUse { id: id.into(), name: "read".into(), input: input.into() }
}

#[test]
fn a_stream_keeps_order_signatures_and_unknown_kinds() {
    let stream = [
        vec![
            opening(),
            json!({"type": "ping"}),
            start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "Hm"})),
            delta(0, json!({"type": "thinking_delta", "thinking": "m."})),
            delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
            json!({"type": "content_block_stop", "index": 0}),
            start(1, json!({"type": "redacted_thinking", "data": "x"})),
            start(2, json!({"type": "text", "text": ""})),
            delta(2, json!({"type": "text_delta", "text": "A"})),
            delta(2, json!({"type": "citations_delta", "citation": {"url": "u"}})),
            delta(2, json!({"type": "citations_delta", "citation": {"url": "v"}})),
            start(3, json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}})),
            delta(3, json!({"type": "input_json_delta", "partial_json": "{\"q\": 1.0e2}"})),
            start(4, json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []})),
            start(5, json!({"type": "novel", "words": "a", "n": 1})),
            delta(5, json!({"type": "novel_delta", "words": "b", "n": 2, "extra": [1]})),
            start(6, json!({"type": "tool_use", "id": "t1", "name": "read"})),
            delta(6, json!({"type": "input_json_delta", "partial_json": ""})),
            delta(6, json!({"type": "input_json_delta", "partial_json": "{\"path\": \"a\""})),
            delta(6, json!({"type": "input_json_delta", "partial_json": ", \"big\": 12345678901234567890123}"})),
            json!({"type": "unheard_of"}),
            start(7, json!({"type": "text", "text": "\n"})),
        ],
        closing("tool_use").to_vec(),
    ];
    let (ended, deltas) = streamed(Anthropic, &sse(&stream.concat()));
    let blocks = concat!(
        r#"[{"type":"thinking","thinking":"Hmm.","signature":"c2ln"},{"type":"redacted_thinking","data":"x"},"#,
        r#"{"type":"text","text":"A","citations":[{"url":"u"},{"url":"v"}]},"#,
        r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q": 1.0e2}},"#,
        r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":[]},"#,
        r#"{"type":"novel","words":"ab","n":2,"extra":[1]},"#,
        r#"{"type":"tool_use","id":"t1","name":"read","input":{"path": "a", "big": 12345678901234567890123}}]"#,
    );
    let parts = vec![
        Part::Thinking { text: "Hmm.".into() },
        Part::text("A"),
        call("t1", serde_json::from_str(r#"{"path": "a", "big": 12345678901234567890123}"#).unwrap()),
    ];
    assert_eq!(ended, Ok(answer(parts, blocks, StopReason::ToolUse)));
    let want = [
        "usage 10 1 0 0",
        "thinking Hm",
        "thinking m.",
        "text A",
        "tool t1 read",
        "input ",
        "input {\"path\": \"a\"",
        "input , \"big\": 12345678901234567890123}",
        "text \n",
        "usage 10 20 5 3",
    ];
    assert_eq!(deltas, want);
}

#[test]
fn pieces_in_a_known_shape_are_read_like_all_others() {
    let pieces = [
        json!({"type": "text_delta", "text": "A \"b\" 你\n"}),
        json!({"type": "text_delta", "text": ""}),
        json!({"type": "thinking_delta", "thinking": "Hm"}),
        json!({"type": "input_json_delta", "partial_json": "{\"a\": \"\\n\"}"}),
        json!({"type": "text_delta", "text": "x", "more": 1}),
        json!({"text": "x"}),
        json!({}),
    ];
    for kind in ["text", "thinking", "tool_use"] {
        for piece in &pieces {
            let stream = [
                vec![opening(), start(0, json!({"type": kind, "id": "t", "name": "n"})), delta(0, piece.clone())],
                closing("end_turn").to_vec(),
            ];
            let named = sse(&stream.concat());
            let unnamed: String =
                named.lines().filter(|line| !line.starts_with("event")).map(|line| format!("{line}\n")).collect();
            assert_ne!(named, unnamed);
            assert_eq!(streamed(Anthropic, &named), streamed(Anthropic, &unnamed), "{kind} {piece}");
        }
    }
}

#[test]
fn tool_input_of_any_shape_is_assembled() {
    let table: [(&str, StopReason, Value, &str); 5] = [
        ("", StopReason::ToolUse, json!({}), "{}"),
        ("{\"a\":1}", StopReason::ToolUse, json!({"a": 1}), "{\"a\":1}"),
        ("{\"a\":", StopReason::MaxTokens, json!("{\"a\":"), r#"{"unreadable_input":"{\"a\":"}"#),
        ("[1]", StopReason::ToolUse, json!([1]), r#"{"unreadable_input":[1]}"#),
        ("nonsense", StopReason::ToolUse, json!("nonsense"), r#"{"unreadable_input":"nonsense"}"#),
    ];
    for (written, stop, input, back) in table {
        let reason = if stop == StopReason::MaxTokens { "max_tokens" } else { "tool_use" };
        let stream = [
            vec![
                opening(),
                start(0, json!({"type": "tool_use", "id": "t1", "name": "read", "input": {}})),
                delta(0, json!({"type": "input_json_delta", "partial_json": written})),
            ],
            closing(reason).to_vec(),
        ];
        let blocks = format!(r#"[{{"type":"tool_use","id":"t1","name":"read","input":{back}}}]"#);
        let ended = streamed(Anthropic, &sse(&stream.concat())).0.unwrap();
        assert_eq!(sent_back(&ended.message), blocks, "{written}");
        let is_ours = ended.message.native.is_none();
        assert_eq!(is_ours, back == written || written.is_empty(), "{written}");
        let want = answer(vec![call("t1", input)], &blocks, stop);
        assert_eq!(
            Answer { message: Message { native: native(&blocks), ..ended.message }, ..ended },
            want,
            "{written}"
        );
    }
}

#[test]
fn reproducible_blocks_are_not_stored_as_native() {
    let tool = |id: &str| json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
    let table = [
        (vec![json!({"type": "text", "text": "A \"b\" 你\n"})], "", true),
        (vec![json!({"type": "text", "text": "A"}), tool("t1")], r#"{"a":1.5,"b":[null,"ü"]}"#, true),
        // Spelt in another way than ours, names that could not go out, and what has no neutral form.
        (vec![tool("t1")], r#"{"a": 1}"#, false),
        (vec![tool("t1")], r#"{"a":1e2}"#, false),
        (vec![tool("t1")], r#"{"a":"\u00fc"}"#, false),
        (vec![tool("t1")], r#"{"a":1,"a":2}"#, false),
        (vec![tool("t:1")], "{}", false),
        (
            vec![json!({"type": "thinking", "thinking": "Hm", "signature": "s"}), json!({"type": "text", "text": "A"})],
            "",
            false,
        ),
        (vec![json!({"type": "text", "text": "A", "citations": []})], "", false),
    ];
    for (blocks, written, is_ours) in table {
        let starts = blocks.iter().enumerate().map(|(index, block)| start(index as u64, block.clone()));
        let fed = delta(blocks.len() as u64 - 1, json!({"type": "input_json_delta", "partial_json": written}));
        let stream = std::iter::once(opening()).chain(starts).chain((!written.is_empty()).then_some(fed));
        let stream: Vec<Value> = stream.chain(closing("end_turn")).collect();
        let message = streamed(Anthropic, &sse(&stream)).0.unwrap().message;
        assert_eq!(message.native.is_none(), is_ours, "{blocks:?} {written}");
        let back =
            blocks.iter().map(|block| block.to_string().replace(r#""input":{}"#, &format!(r#""input":{written}"#)));
        assert_eq!(sent_back(&message), format!("[{}]", back.collect::<Vec<_>>().join(",")));
    }
}

#[test]
fn an_event_type_is_read_from_either_field() {
    let stream = [
        vec![
            opening(),
            json!({"type": "ping"}),
            start(0, json!({"type": "text", "text": ""})),
            delta(0, json!({"type": "text_delta", "text": "A"})),
            json!({"type": "content_block_stop", "index": 0}),
            start(1, json!({"type": "tool_use", "id": "t1", "name": "read", "input": {}})),
            delta(1, json!({"type": "input_json_delta", "partial_json": "{\"a\":1}"})),
        ],
        closing("tool_use").to_vec(),
    ]
    .concat();
    let said_last = |event: &Value| {
        let mut fields = event.as_object().unwrap().clone();
        let kind = fields.shift_remove("type").unwrap();
        fields.insert("type".into(), kind);
        Value::Object(fields)
    };
    let last: Vec<Value> = stream.iter().map(said_last).collect();
    let unnamed = |events: &[Value]| events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>();
    let spaced = sse(&stream).replace(r#"{"type":"#, r#"{"type":  "#);
    let (usual, told) = streamed(Anthropic, &sse(&stream));
    let usual = usual.unwrap();
    for other in [sse(&last), unnamed(&stream), unnamed(&last), spaced] {
        let (ended, deltas) = streamed(Anthropic, &other);
        let ended = ended.unwrap();
        assert_eq!((&ended.message.parts, &ended.stop, ended.usage), (&usual.message.parts, &usual.stop, usual.usage));
        assert_eq!((sent_back(&ended.message), &deltas), (sent_back(&usual.message), &told), "{other}");
    }
}

#[test]
fn streams_that_fail_are_never_answers() {
    let text = [opening(), start(0, json!({"type": "text", "text": "A"}))];
    let cut = sse(&text);
    let no_stop = sse(&[text.to_vec(), closing("end_turn")[..1].to_vec()].concat());
    assert_eq!(streamed(Anthropic, &cut).0, Err(None));
    assert_eq!(streamed(Anthropic, &no_stop).0, Err(None));
    let table = [
        ("data: {\"type\": \"content_bl\n\n", Failure::Malformed),
        (
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
            Failure::Overloaded { retry_after_ms: None },
        ),
        ("event: error\ndata: {\"error\":{\"message\":\"boom\"}}\n\n", Failure::Server { retry_after_ms: None }),
        (
            "data: {\"type\":\"content_block_delta\",\"index\":7,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n",
            Failure::Malformed,
        ),
    ];
    for (event, want) in table {
        let fault = streamed(Anthropic, &format!("{cut}{event}")).0.unwrap_err().unwrap();
        assert_eq!(fault.failure, want, "{event}");
    }
}

#[test]
fn whole_answers_keep_their_bytes() {
    let body = r#"{"id":"msg_1","model":"claude-x","role":"assistant","stop_reason":"pause_turn",
        "content":[ {"type":"thinking", "thinking":"","signature":"s\u002b"}, {"type":"text","text":"","citations":null},
            {"type":"odd","x":1.50} ],
        "usage":{"input_tokens":10,"output_tokens":20,"cache_read_input_tokens":5,"cache_creation_input_tokens":3}}"#;
    let blocks = r#"[{"type":"thinking", "thinking":"","signature":"s\u002b"},{"type":"odd","x":1.50}]"#;
    let parts = vec![Part::Thinking { text: String::new() }];
    assert_eq!(whole(Anthropic, body), Ok(answer(parts, blocks, StopReason::Pause)));

    let server_tools_only = body.replace("\"thinking\", \"thinking\":\"\"", "\"odd\", \"x\":\"\"");
    let parts = whole(Anthropic, &server_tools_only).unwrap().message.parts;
    assert_eq!(parts, [Part::Thinking { text: String::new() }], "a message with blocks is not empty");

    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#;
    assert_eq!(whole(Anthropic, error).unwrap_err().failure, Failure::Overloaded { retry_after_ms: None });
    assert_eq!(whole(Anthropic, "<html>").unwrap_err().failure, Failure::Malformed);
}

fn all(transcript: &Transcript) -> RequestOptions {
    RequestOptions { number: 1, max_tokens: 9_000, tools_off: false, window: Window::default(), upto: transcript.len() }
}

fn body(transcript: &Transcript, call: &RequestOptions) -> Value {
    serde_json::from_slice(&transcript.request(call).body.whole()).unwrap()
}

fn result(id: &str, content: Vec<Part>, is_error: bool) -> Part {
    Part::ToolResult { id: id.into(), content, is_error }
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec { name: name.into(), description: "d".into(), schema: json!({"type": "object", "title": "T"}) }
}

const MARK: &str = r#"{"type":"ephemeral"}"#;

#[test]
fn a_request_is_put_together_with_its_breakpoints() {
    let own = r#"[ {"type":"thinking","thinking":"x", "signature":"s"},{"type":"tool_use","id":"t:1","name":"read","input":{"n":1.50}} ]"#;
    let messages = [
        Message::user(vec![Part::text("one")]),
        Message { role: ChatRole::Assistant, parts: vec![call("t:1", json!({"n": 1.5}))], native: native(own) },
        Message::user(vec![
            Part::text("and look at this"),
            result(
                "t:1",
                vec![Part::text(""), Part::Image { media_type: "image/png".into(), data: "QQ==".into() }],
                true,
            ),
        ]),
        Message::assistant(vec![Part::text("  "), Part::Thinking { text: "gone".into() }]),
        Message::user(vec![Part::text("two"), Part::text("\n")]),
        Message::assistant(vec![Part::text("three")]),
        Message::user(vec![Part::text("four")]),
    ];
    let transcript = Transcript::encode(wire(Anthropic), "Be kind.", &[spec("a"), spec("b")], &messages);
    let sent = String::from_utf8(transcript.request(&all(&transcript)).body.whole()).unwrap();
    assert!(sent.contains(r#"{"type":"thinking","thinking":"x", "signature":"s"},{"type":"tool_use","id":"t:1","name":"read","input":{"n":1.50}}"#));
    let schema = json!({"type": "object", "properties": {}});
    let mark: Value = serde_json::from_str(MARK).unwrap();
    let want = json!({
        "model": "m", "max_tokens": 9000, "stream": true,
        "system": [{"type": "text", "text": "Be kind.", "cache_control": mark}],
        "tools": [
            {"name": "a", "description": "d", "input_schema": schema},
            {"name": "b", "description": "d", "input_schema": schema, "cache_control": mark},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "one"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "x", "signature": "s"},
                {"type": "tool_use", "id": "t:1", "name": "read", "input": {"n": 1.5}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t:1", "is_error": true, "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
                ]},
                {"type": "text", "text": "and look at this"},
                {"type": "text", "text": "two", "cache_control": mark},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "three"}]},
            {"role": "user", "content": [{"type": "text", "text": "four", "cache_control": mark}]},
        ],
    });
    assert_eq!(serde_json::from_str::<Value>(&sent).unwrap(), want);
    assert_eq!(sent.matches(MARK).count(), 4);
}

#[test]
fn foreign_calls_are_made_to_fit() {
    let messages = [
        Message::assistant(vec![call("functions.read:0", json!("broken")), call("ok", json!({}))]),
        Message::user(vec![result("functions.read:0", vec![], true), result("ok", vec![Part::text("fine")], false)]),
        Message::assistant(vec![call("ok", json!({}))]),
        Message::user(vec![result("ok", vec![Part::text("again")], false)]),
    ];
    let transcript = Transcript::encode(wire(Anthropic), "", &[], &messages);
    let no_output = json!([{"type": "text", "text": "(no output)"}]);
    let want = json!([
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "mt_0", "name": "read", "input": {"unreadable_input": "broken"}},
            {"type": "tool_use", "id": "ok", "name": "read", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "mt_0", "content": no_output, "is_error": true},
            {"type": "tool_result", "tool_use_id": "ok", "content": [{"type": "text", "text": "fine"}],
             "cache_control": {"type": "ephemeral"}},
        ]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "mt_2", "name": "read", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "mt_2", "content": [{"type": "text", "text": "again"}],
             "cache_control": {"type": "ephemeral"}},
        ]},
    ]);
    assert_eq!(body(&transcript, &all(&transcript))["messages"], want);
}

#[test]
fn invisible_characters_of_others_are_not_told() {
    let hidden = "a\u{202e}b\u{e0041}\u{200b}c ❤\u{fe0f}";
    let messages = [
        Message::user(vec![Part::text(hidden)]),
        Message::assistant(vec![call("a", json!({}))]),
        Message::user(vec![result("a", vec![Part::text(hidden)], false)]),
    ];
    let transcript = Transcript::encode(wire(Anthropic), hidden, &[], &messages);
    let sent = body(&transcript, &all(&transcript)).to_string();
    assert_eq!(sent.matches("abc ❤\u{fe0f}").count(), 3, "{sent}");
    for letter in ['\u{202e}', '\u{e0041}', '\u{200b}'] {
        assert!(!sent.contains(letter), "{letter:?}");
    }
}

#[test]
fn the_window_moves_without_encoding_again() {
    let messages = [
        Message::user(vec![Part::text("old")]),
        Message::assistant(vec![call("a", json!({}))]),
        Message::user(vec![result("a", vec![Part::text("long")], false)]),
        Message::assistant(vec![Part::text("done")]),
        Message::user(vec![Part::text("new")]),
    ];
    let transcript = Transcript::encode(wire(Anthropic), "", &[spec("a")], &messages);
    let texts = |window, upto| {
        let call = RequestOptions { window, upto, ..all(&transcript) };
        let sent = body(&transcript, &call)["messages"].to_string();
        ["old", "long", "[result left out", "done", "new"].map(|word| sent.contains(word))
    };
    assert_eq!(texts(Window { from: 0, elide: 0 }, 5), [true, true, false, true, true]);
    assert_eq!(texts(Window { from: 0, elide: 4 }, 5), [true, false, true, true, true]);
    assert_eq!(texts(Window { from: 4, elide: 4 }, 5), [false, false, false, false, true]);
    assert_eq!(texts(Window { from: 0, elide: 0 }, 3), [true, true, false, false, false]);
    let handed_back = body(&transcript, &RequestOptions { tools_off: true, ..all(&transcript) });
    assert_eq!(handed_back["tool_choice"], json!({"type": "none"}));
    assert!(handed_back["tools"].is_array());
}

#[test]
fn thinking_is_asked_for_as_the_model_wants_it() {
    let asked = |thinking, thinking_tokens, max_tokens| {
        let wire = Wire { thinking, thinking_tokens, ..wire(Anthropic) };
        let transcript = Transcript::new(wire);
        body(&transcript, &RequestOptions { max_tokens, ..all(&transcript) }).get("thinking").cloned()
    };
    let budget = |tokens: u32| Some(json!({"type": "enabled", "budget_tokens": tokens}));
    assert_eq!(asked(Thinking::Budget, 4_000, 9_000), budget(4_000));
    assert_eq!(asked(Thinking::Budget, 9_000, 9_000), budget(7_976));
    assert_eq!(asked(Thinking::Budget, 10, 9_000), budget(1_024));
    assert_eq!(asked(Thinking::Budget, 4_000, 1_024), None);
    assert_eq!(asked(Thinking::Budget, 0, 9_000), None);
    assert_eq!(asked(Thinking::Adaptive, 1, 9_000), Some(json!({"type": "adaptive", "display": "summarized"})));
    assert_eq!(asked(Thinking::Switch, 1, 9_000), Some(json!({"type": "enabled"})));
    assert_eq!(asked(Thinking::Switch, 0, 9_000), Some(json!({"type": "disabled"})));
    assert_eq!(asked(Thinking::None, 1, 9_000), None);
}

proptest! {
    #[test]
    fn arguments_survive_any_split(
        text in "[a-zé🦀\"\\\\ {}:,]{0,40}", number in any::<i64>(), cuts in prop::collection::vec(0_usize..80, 0..10),
    ) {
        let input = json!({"text": text, "nested": {"list": [number, null, true]}});
        let written = input.to_string();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| written.is_char_boundary(*cut)).collect();
        cuts.extend([0, written.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| {
            delta(0, json!({"type": "input_json_delta", "partial_json": written[pair[0]..pair[1]]}))
        });
        let first = [opening(), start(0, json!({"type": "tool_use", "id": "t1", "name": "read", "input": {}}))];
        let stream: Vec<Value> = first.into_iter().chain(pieces).chain(closing("tool_use")).collect();
        let message = streamed(Anthropic, &sse(&stream)).0.unwrap().message;
        prop_assert_eq!(&message.parts, &[call("t1", input)]);
        let blocks = format!(r#"[{{"type":"tool_use","id":"t1","name":"read","input":{written}}}]"#);
        prop_assert_eq!(sent_back(&message), blocks);
    }
}
