//! Every way a reply can go wrong.

use max_team_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::client::{CHAT, Client, MESSAGES, Response, joined, streamed, whole};

fn ask(path: &str, reply: Reply) -> Response {
    let server = ModelServer::start([reply]);
    Client::connect(&server).call("POST", path, &streamed())
}

#[test]
fn statuses_speak_the_dialect() {
    let rows = [
        (400, "invalid_request_error", json!(null)),
        (401, "authentication_error", json!("invalid_api_key")),
        (429, "rate_limit_error", json!("rate_limit_exceeded")),
        (500, "api_error", json!(null)),
        (529, "overloaded_error", json!("overloaded")),
    ];
    for (status, kind, code) in rows {
        let response = ask(MESSAGES, Reply::status(status));
        assert_eq!(response.head.status, status);
        assert_eq!(response.head.header("content-type"), Some("application/json"));
        assert_eq!(response.json()["type"], "error");
        assert_eq!(response.json()["error"]["type"], kind);
        let response = ask(CHAT, Reply::status(status));
        assert_eq!(response.head.status, status);
        assert_eq!(response.json()["error"]["code"], code);
    }
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let date = "Wed, 21 Oct 2026 07:28:00 GMT";
    assert_eq!(ask(CHAT, Reply::status(429).retry_after(3)).head.header("retry-after"), Some("3"));
    assert_eq!(ask(CHAT, Reply::status(503).retry_after(date)).head.header("retry-after"), Some(date));
}

#[test]
fn overflow_is_said_as_each_provider_says_it() {
    let response = ask(MESSAGES, Reply::overflow());
    assert_eq!(response.head.status, 400);
    assert_eq!(response.json()["error"]["message"], "prompt is too long: 210000 tokens > 200000 maximum");
    assert_eq!(ask(CHAT, Reply::overflow()).json()["error"]["code"], "context_length_exceeded");
}

#[test]
fn errors_can_have_other_words() {
    let response = ask(CHAT, Reply::status(429).error("insufficient_quota", "Pay first."));
    assert_eq!(response.head.status, 429);
    assert_eq!(
        response.json()["error"],
        json!({"message": "Pay first.", "type": "insufficient_quota", "param": null, "code": "insufficient_quota"})
    );
}

#[test]
fn cut_breaks_the_transfer() {
    for path in [MESSAGES, CHAT] {
        let response = ask(path, Reply::text("never all of it").chunk(2).cut_after(4));
        assert!(!response.whole);
        assert_eq!(response.events().len(), 4);
    }
}

#[test]
fn cut_breaks_a_plain_body_in_the_middle() {
    let server = ModelServer::start([Reply::text("hi").cut_after(1)]);
    let response = Client::connect(&server).call("POST", MESSAGES, &whole());
    assert!(!response.whole);
    let promised: usize = response.head.header("content-length").unwrap().parse().unwrap();
    assert_eq!(response.text().len(), promised / 2);
}

#[test]
fn early_end_is_good_http_without_a_closing_event() {
    let response = ask(MESSAGES, Reply::text("hi").end_after(4));
    assert!(response.whole);
    assert_eq!(response.events().last().unwrap().name, "content_block_delta");
}

#[test]
fn stall_keeps_the_connection_until_the_server_stops() {
    let server = ModelServer::start([Reply::text("hi").stall_after(2)]);
    let mut client = Client::connect(&server);
    client.send("POST", MESSAGES, &streamed().to_string());
    assert_eq!(client.head().status, 200);
    client.chunk().unwrap();
    client.chunk().unwrap();
    assert!(client.silent());
    assert_eq!(server.requests()[0].end_us, None);
    drop(server);
    assert!(client.closed());
}

#[test]
fn malformed_line_stands_between_good_ones() {
    for path in [MESSAGES, CHAT] {
        let good = ask(path, Reply::text("hi")).events();
        let mut bad = ask(path, Reply::text("hi").malformed_after(1)).events();
        let line = bad.remove(1).data;
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_err(), "{line}");
        assert_eq!(bad, good);
    }
}

#[test]
fn error_event_ends_the_stream() {
    let response = ask(MESSAGES, Reply::text("hi").error_event_after(3, "overloaded_error"));
    assert_eq!((response.head.status, response.whole), (200, true));
    let last = response.events().pop().unwrap();
    assert_eq!(last.name, "error");
    assert_eq!(last.data, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);

    let data = ask(CHAT, Reply::text("hi").error_event_after(1, "server_error")).data();
    assert_eq!(data.len(), 2);
    assert_eq!(data[1]["error"]["type"], "server_error");
}

#[test]
fn split_cuts_lines_and_characters() {
    for path in [MESSAGES, CHAT] {
        let plain = ask(path, Reply::text("你好，世界"));
        let split = ask(path, Reply::text("你好，世界").split_bytes(2));
        assert_eq!(split.text(), plain.text());
        assert!(split.chunks.iter().all(|chunk| chunk.len() <= 2));
        assert!(split.chunks.iter().any(|chunk| std::str::from_utf8(chunk).is_err()));
    }
}

#[test]
fn close_after_says_so_and_does_so() {
    let server = ModelServer::start([Reply::text("hi").close_after()]);
    let mut client = Client::connect(&server);
    let response = client.call("POST", MESSAGES, &streamed());
    assert!(response.whole);
    assert_eq!(response.head.header("connection"), Some("close"));
    assert!(client.closed());
}

#[test]
fn dropped_connection_gets_no_answer_but_is_recorded() {
    let server = ModelServer::start([Reply::new().drop_connection()]);
    let mut client = Client::connect(&server);
    client.send("POST", MESSAGES, &streamed().to_string());
    assert!(client.closed());
    assert_eq!(server.count(), 1);
}

#[test]
fn json_instead_of_a_stream() {
    let response = ask(MESSAGES, Reply::text("hi").json_instead());
    assert_eq!(response.head.header("content-type"), Some("application/json"));
    assert_eq!(joined(&[response.json()], "/content/0/text"), "hi");
}

#[test]
fn exhausted_script_is_a_clear_error() {
    let server = ModelServer::start([]);
    let response = Client::connect(&server).call("POST", MESSAGES, &json!({"model": "m"}));
    assert_eq!(response.head.status, 500);
    let problem = "#0 POST /v1/messages (13 bytes): the script has no reply left for it";
    assert_eq!(response.json()["error"]["message"], problem);
    assert_eq!(server.problems(), [problem]);
    assert_eq!(server.count(), 1);
}

#[test]
fn fault_past_the_end_is_a_clear_error() {
    let server = ModelServer::start([Reply::text("hi").cut_after(99)]);
    let response = Client::connect(&server).call("POST", MESSAGES, &streamed());
    assert_eq!(response.head.status, 500);
    assert!(server.problems()[0].ends_with("Cut after 99 events, but the reply has only 7"), "{:?}", server.problems());
}
