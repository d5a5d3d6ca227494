//! Calls that fail, and what is said about it.

use std::sync::Arc;
use std::time::Duration;

use max_team_core::recovery::Failure;
use max_team_llm::{CallError, Catalog, Delta, Dialect, Endpoint, Options, Router};
use max_team_testkit::{Gate, ModelServer, Reply};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{DIALECTS, KEY, ask, endpoint, failed, model, options, provider, request, router, transcript};

/// Long enough that its third event is not its last in any dialect.
fn spoken() -> Reply {
    Reply::text("one two three").chunk(4)
}

#[tokio::test]
async fn providers_failures_are_typed() {
    let table = [
        (Reply::status(400), Failure::InvalidRequest),
        (Reply::status(401), Failure::Auth),
        (Reply::status(403), Failure::Auth),
        (Reply::status(404), Failure::InvalidRequest),
        (Reply::overflow(), Failure::ContextOverflow),
        (Reply::status(413), Failure::ContextOverflow),
        (Reply::status(429).retry_after(7), Failure::RateLimited { retry_after_ms: Some(7_000) }),
        (Reply::status(429).header("retry-after-ms", 250), Failure::RateLimited { retry_after_ms: Some(250) }),
        (Reply::status(429).error("insufficient_quota", "You exceeded your current quota"), Failure::InvalidRequest),
        (Reply::status(500), Failure::Server { retry_after_ms: None }),
        (Reply::status(503).retry_after(1), Failure::Overloaded { retry_after_ms: Some(1_000) }),
        (Reply::status(529), Failure::Overloaded { retry_after_ms: None }),
        (spoken().cut_after(3), Failure::Network),
        (spoken().end_after(3), Failure::Truncated),
        (spoken().malformed_after(3), Failure::Malformed),
        (spoken().error_event_after(3, "overloaded_error"), Failure::Overloaded { retry_after_ms: None }),
        (spoken().json_instead().cut_after(1), Failure::Network),
        (Reply::text("never").drop_connection(), Failure::Network),
    ];
    for dialect in DIALECTS {
        for (reply, want) in &table {
            let server = ModelServer::start([reply.clone().request_id("req_y")]);
            let ended = ask(&router(dialect, &server.url(), options()), dialect).await;
            let dropped = matches!(want, Failure::Network)
                && ended.as_ref().is_err_and(|error| error.to_string().contains("without an answer"));
            match &ended {
                Err(CallError::Failed { failure, detail, request_id, .. }) => {
                    assert_eq!(failure, want, "{dialect:?} {reply:?}");
                    assert!(detail.starts_with(provider(dialect)), "{detail}");
                    assert_eq!(request_id.as_deref(), (!dropped).then_some("req_y"), "{detail}");
                }
                other => panic!("{dialect:?} {reply:?}: {other:?}"),
            }
            assert_eq!(server.count(), 1, "one attempt");
            assert_eq!(server.problems(), [""; 0]);
        }
    }
}

#[tokio::test]
async fn silence_times_out() {
    let short = || Options { idle_timeout: Duration::from_millis(60), ..options() };
    for dialect in DIALECTS {
        let gate = Gate::new();
        for reply in [Reply::text("never").gate_before(&gate), spoken().stall_after(3)] {
            let server = ModelServer::start([reply]);
            let (failure, detail) = failed(ask(&router(dialect, &server.url(), short()), dialect).await);
            assert_eq!(failure, Failure::Timeout);
            assert_eq!(
                detail,
                format!("{}: nothing came for 60ms; try again, or raise `llm.timeout`", provider(dialect))
            );
        }
    }
}

/// Comments, pings, empty pieces and single bytes keep a connection alive, and are no answer.
#[tokio::test]
async fn a_stream_without_new_content_times_out() {
    // A second and a half: a busy machine may delay a drip for long. The cases run side by side.
    let limit = Duration::from_millis(1_500);
    let short = || Options { idle_timeout: limit, progress_timeout: limit, ..options() };
    let every = Duration::from_millis(100);
    let empty = |dialect| match dialect {
        Dialect::Anthropic => {
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\"}}\n\n"
        }
        Dialect::OpenaiChat => "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n",
    };
    let mut cases = JoinSet::new();
    for dialect in DIALECTS {
        let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
        for reply in [
            spoken().drip_after(0, ": still here\n\n", every),
            spoken().drip_after(3, ping, every),
            spoken().drip_after(3, empty(dialect), every),
            spoken().drip_after(3, "d", every),
            spoken().json_instead().drip_after(1, " ", every),
        ] {
            let options = short();
            cases.spawn(async move {
                let server = ModelServer::start([reply.clone()]);
                let (failure, detail) = failed(ask(&router(dialect, &server.url(), options), dialect).await);
                assert_eq!(failure, Failure::Timeout, "{dialect:?} {reply:?}: {detail}");
                assert!(detail.contains("`llm.progress_timeout`"), "{dialect:?} {reply:?}: {detail}");
            });
        }
    }
    cases.join_all().await;
}

/// What had come of an answer that broke off is known, so that it can be charged.
#[tokio::test]
async fn a_failure_tells_how_much_had_come() {
    for dialect in DIALECTS {
        let server = ModelServer::start([spoken().end_after(4), Reply::status(500)]);
        let router = router(dialect, &server.url(), options());
        let Err(CallError::Failed { streamed, .. }) = ask(&router, dialect).await else { panic!("it broke off") };
        assert!(streamed.is_sent && streamed.bytes > 0, "{streamed:?}");
        assert_eq!(streamed.usage.input > 0, dialect == Dialect::Anthropic, "{streamed:?}");
        let Err(CallError::Failed { streamed, .. }) = ask(&router, dialect).await else { panic!("it was refused") };
        assert_eq!((streamed.bytes, streamed.usage), (0, Default::default()));
    }
}

#[tokio::test]
async fn a_missing_done_is_forgiven_and_a_missing_finish_is_not() {
    // Role, one delta, finish, usage, [DONE].
    let server = ModelServer::start([
        Reply::text("Hi").end_after(4),
        Reply::text("Hi").end_after(3),
        Reply::text("Hi").cut_after(3),
        Reply::text("Hi").end_after(2),
    ]);
    let router = router(Dialect::OpenaiChat, &server.url(), options());
    for _ in 0..3 {
        assert_eq!(ask(&router, Dialect::OpenaiChat).await.unwrap().message.text(), "Hi");
    }
    assert_eq!(failed(ask(&router, Dialect::OpenaiChat).await).0, Failure::Truncated);
}

#[tokio::test]
async fn keys_never_leave_in_words() {
    let echo = format!("invalid key {KEY} (you sent `Bearer {KEY}`)");
    for dialect in DIALECTS {
        let server = ModelServer::start([
            Reply::status(401).error("authentication_error", echo.clone()),
            Reply::status(418).error("teapot", echo.clone()),
        ]);
        let router = router(dialect, &server.url(), options());
        for _ in 0..2 {
            let (_, detail) = failed(ask(&router, dialect).await);
            assert!(detail.contains("invalid key [redacted]") && !detail.contains(KEY), "{detail}");
        }
        assert!(!format!("{router:?} {:?}", endpoint(dialect, &server.url())).contains(KEY));
    }
}

#[tokio::test]
async fn redirects_are_refused_with_the_key_in_hand() {
    let elsewhere = ModelServer::start([Reply::text("caught")]);
    let away = Reply::status(302).header("location", format!("{}/v1/messages", elsewhere.url()));
    let server = ModelServer::start([away]);
    let (failure, detail) =
        failed(ask(&router(Dialect::Anthropic, &server.url(), options()), Dialect::Anthropic).await);
    assert_eq!(failure, Failure::InvalidRequest);
    assert!(detail.contains("HTTP 302") && detail.contains("base_url"), "{detail}");
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test]
async fn a_missing_setup_is_reported_before_any_request() {
    let catalog = Arc::new(Catalog::builtin().clone());
    let none = Router::http(catalog.clone(), [], options());
    let detail = "`anthropic` is not set up; choose another model, or configure the provider".to_owned();
    assert_eq!(failed(ask(&none, Dialect::Anthropic).await), (Failure::InvalidRequest, detail));

    let keyless = Endpoint::new(catalog.provider("anthropic").unwrap(), None, None).unwrap();
    let router = Router::http(catalog, [keyless], options());
    let detail = "no key for `anthropic`; set `ANTHROPIC_API_KEY`".to_owned();
    assert_eq!(failed(ask(&router, Dialect::Anthropic).await), (Failure::Auth, detail));
}

#[tokio::test]
async fn hosts_that_cannot_be_reached_are_named() {
    let gone = ModelServer::start([]).url();
    let (failure, detail) = failed(ask(&router(Dialect::OpenaiChat, &gone, options()), Dialect::OpenaiChat).await);
    let place = gone.trim_start_matches("http://");
    assert_eq!(failure, Failure::Network);
    assert!(detail.starts_with(&format!("openai: `{place}` cannot be reached (")), "{detail}");
    assert!(detail.ends_with("is the server running, and is `base_url` right?"), "{detail}");

    let options = Options { cert_file: Some("/nowhere/certs.pem".into()), ..options() };
    let gone = format!("https://{place}");
    let (failure, detail) = failed(ask(&router(Dialect::OpenaiChat, &gone, options), Dialect::OpenaiChat).await);
    assert_eq!(failure, Failure::Setup);
    assert!(detail.contains("`/nowhere/certs.pem`") && detail.ends_with("correct SSL_CERT_FILE"), "{detail}");
}

#[tokio::test]
async fn the_pace_is_kept_and_the_wait_can_be_cancelled() {
    let server = ModelServer::start([Reply::text("one"), Reply::text("two")]);
    let rows = json!({"providers": {"anthropic": {"requests_per_minute": 1}}});
    let catalog = Arc::new(Catalog::builtin().with(&rows).unwrap());
    let endpoint = Endpoint::new(catalog.provider("anthropic").unwrap(), Some(&server.url()), None).unwrap();
    let router = Router::http(catalog, [endpoint], options());
    ask(&router, Dialect::Anthropic).await.unwrap();
    let cancel = CancellationToken::new();
    let mut waits = Vec::new();
    let request = request(&transcript(&router, Dialect::Anthropic));
    let ended = router
        .call(&request, &cancel, |delta| {
            if let Delta::Waiting(wait) = delta {
                waits.push(wait);
                cancel.cancel();
            }
        })
        .await;
    assert!(matches!(ended, Err(CallError::Cancelled { .. })), "{ended:?}");
    assert!(waits.len() == 1 && waits[0] > Duration::from_secs(30), "{waits:?}");
    assert_eq!(server.count(), 1);
    assert_eq!(router.wire(&model(Dialect::Anthropic)).provider, "anthropic");
}
