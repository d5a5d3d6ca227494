//! What providers say when they refuse, and what it means.

use super::*;

#[test]
fn statuses_and_words_are_judged() {
    let limited = |ms| Failure::RateLimited { retry_after_ms: ms };
    let table: [(u16, &str, Failure); 26] = [
        (
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            Failure::Auth,
        ),
        (403, "", Failure::Auth),
        (404, r#"{"error":{"type":"not_found_error","message":"model: x"}}"#, Failure::InvalidRequest),
        (400, r#"{"error":{"type":"invalid_request_error","message":"bad"}}"#, Failure::InvalidRequest),
        (400, r#"{"error":{"message":"prompt is too long: 2 tokens > 1 maximum"}}"#, Failure::ContextOverflow),
        (
            400,
            r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 1 + 2 > 2"}}"#,
            Failure::ContextOverflow,
        ),
        (400, r#"{"error":{"code":"context_length_exceeded","message":"too big"}}"#, Failure::ContextOverflow),
        (
            400,
            r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request (9 tokens)"}}"#,
            Failure::ContextOverflow,
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 5 tokens."}"#,
            Failure::ContextOverflow,
        ),
        (400, r#"{"error":"Range of input length should be [1, 30720]"}"#, Failure::ContextOverflow),
        (400, r#"{"error":{"code":"1261","message":"Prompt 超长"}}"#, Failure::ContextOverflow),
        (
            400,
            r#"{"error":{"message":"max_tokens is too large: 9. This model supports at most 8 completion tokens"}}"#,
            Failure::InvalidRequest,
        ),
        (
            422,
            r#"{"detail":"Prompt contains 9 tokens, too large for model with 8 maximum context length"}"#,
            Failure::ContextOverflow,
        ),
        (500, r#"{"error":{"message":"the request exceeds the available context size"}}"#, Failure::ContextOverflow),
        (413, "", Failure::ContextOverflow),
        (429, r#"{"error":{"message":"Request too large for x on tokens per min"}}"#, Failure::ContextOverflow),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"prompt is too long"}}}"#,
            Failure::ContextOverflow,
        ),
        (402, r#"{"error":{"message":"Insufficient Balance"}}"#, Failure::InvalidRequest),
        (
            429,
            r#"{"error":{"type":"insufficient_quota","message":"You exceeded your current quota"}}"#,
            Failure::InvalidRequest,
        ),
        (429, r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#, limited(Some(7))),
        (429, "<html>busy</html>", limited(Some(7))),
        (503, "", Failure::Overloaded { retry_after_ms: Some(7) }),
        (529, "", Failure::Overloaded { retry_after_ms: Some(7) }),
        (408, "", Failure::Server { retry_after_ms: Some(7) }),
        (500, "", Failure::Server { retry_after_ms: Some(7) }),
        (302, "", Failure::InvalidRequest),
    ];
    for (status, body, want) in table {
        assert_eq!(by_status(status, &ProviderError::read(body.as_bytes()), Some(7)).failure, want, "{status} {body}");
    }
}

#[test]
fn words_inside_a_stream_are_judged() {
    let limited = Failure::RateLimited { retry_after_ms: None };
    let server = Failure::Server { retry_after_ms: None };
    let streamed = [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Failure::Overloaded { retry_after_ms: None },
        ),
        (r#"{"type":"error","error":{"type":"rate_limit_error","message":"x"}}"#, limited),
        (r#"{"type":"error","error":{"type":"api_error","message":"x"}}"#, server.clone()),
        (r#"{"type":"error","error":{"type":"authentication_error","message":"x"}}"#, Failure::Auth),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}"#,
            Failure::ContextOverflow,
        ),
        (r#"{"error":{"code":502,"message":"upstream"}}"#, server.clone()),
        (r#"{"error":{"code":"insufficient_quota","message":"x"}}"#, Failure::InvalidRequest),
        (r#"{"error":"out of memory"}"#, server),
    ];
    for (data, want) in streamed {
        assert_eq!(in_stream(&serde_json::from_str(data).unwrap()).failure, want, "{data}");
    }
}

#[test]
fn a_failure_names_its_cause_and_a_remedy() {
    let table = [
        (
            404,
            r#"{"error":{"type":"not_found_error","message":"model: nope"}}"#,
            "HTTP 404: model: nope (not_found_error); check the model's name and `base_url`",
        ),
        (
            429,
            r#"{"error":{"code":"insufficient_quota"}}"#,
            "HTTP 429: {\"code\":\"insufficient_quota\"} (insufficient_quota); top up the account, or use another model",
        ),
        (
            302,
            "",
            "HTTP 302: no reason was given; redirects are not followed, so that the key stays here: correct `base_url`",
        ),
        (500, "line\none\u{7}", "HTTP 500: line one; the provider has a problem: try later, or use another model"),
    ];
    for (status, body, want) in table {
        assert_eq!(by_status(status, &ProviderError::read(body.as_bytes()), None).detail, want);
    }
    assert_eq!(ProviderError::read("é".repeat(500).as_bytes()).message.chars().count(), MESSAGE_CHARS_MAX + 1);
}

#[test]
fn waits_are_read_in_all_their_forms() {
    let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    type Pairs = &'static [(&'static str, &'static str)];
    let table: [(Pairs, Option<u64>); 9] = [
        (&[("retry-after", "7")], Some(7_000)),
        (&[("retry-after", "0.25")], Some(250)),
        (&[("retry-after-ms", "1500"), ("retry-after", "7")], Some(1_500)),
        (&[("retry-after", "Sun, 15 Nov 2026 12:00:30 GMT")], Some(30_000)),
        (&[("retry-after", "Sun, 15 Nov 2026 12:00:30 GMT"), ("date", "Sun, 15 Nov 2026 12:00:20 GMT")], Some(10_000)),
        (&[("retry-after", "Sun, 15 Nov 2026 11:00:00 GMT")], Some(0)),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "-1")], None),
        (&[], None),
    ];
    for (pairs, want) in table {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        assert_eq!(retry_after_ms(&headers, now), want, "{pairs:?}");
    }
}
