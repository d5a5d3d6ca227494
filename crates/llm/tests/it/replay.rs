//! Models that answer from a recording, through the same seam as real ones.

use max_team_core::chat::{Message, Part, PartialAnswer, StopReason, Usage};
use max_team_core::context::Window;
use max_team_core::recovery::Failure;
use max_team_llm::{BadRecording, CallError, Delta, Dialect, Replay, Request, RequestOptions, Router, Transcript};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{failed, model};

const RECORDING: &str = "
answers:
  - parts:
      - thinking: A look first.
      - {tool: read_file, input: {path: README.md}}
    usage: {input: 1200, output: 40}
  - text: It is a readme.
  - fails: overloaded
    detail: as recorded
";

fn router(text: &str) -> Router {
    Router::replay(Replay::read(text).unwrap())
}

fn request(router: &Router, number: u32) -> Request {
    let transcript = Transcript::new(router.wire(&model(Dialect::Anthropic)));
    transcript.request(&RequestOptions { number, max_tokens: 40, tools_off: false, window: Window::default(), upto: 0 })
}

#[tokio::test]
async fn answers_come_by_number() {
    let router = router(RECORDING);
    let nobody = CancellationToken::new();
    let mut deltas = Vec::new();
    let first = router.call(&request(&router, 1), &nobody, |delta| deltas.push(format!("{delta:?}"))).await.unwrap();
    let call =
        Part::ToolUse { id: "call_1_1".into(), name: "read_file".into(), input: json!({"path": "README.md"}).into() };
    assert_eq!(first.message, Message::assistant(vec![Part::Thinking { text: "A look first.".into() }, call]));
    assert_eq!(first.stop, StopReason::ToolUse);
    assert_eq!(first.usage, Usage { input: 1_200, output: 40, ..Usage::default() });
    assert_eq!(first.model, "claude-sonnet-4-6");
    // An answer claims no more than the call allows.
    let few = Request { max_tokens: 7, ..request(&router, 1) };
    assert_eq!(router.call(&few, &nobody, |_| {}).await.unwrap().usage.output, 7);
    let want = [
        "Thinking(\"A \")",
        "Thinking(\"look \")",
        "Thinking(\"first.\")",
        "ToolStart { id: \"call_1_1\", name: \"read_file\" }",
        "ToolInput(\"{\\\"path\\\":\\\"README.md\\\"}\")",
    ];
    assert_eq!(deltas[..5], want);

    // A process that was killed asks for the second answer first.
    let second = router.call(&request(&router, 2), &nobody, |_| {}).await.unwrap();
    assert_eq!((second.message.text().as_str(), second.stop), ("It is a readme.", StopReason::EndTurn));

    let ended = router.call(&request(&router, 3), &nobody, |_| {}).await;
    assert_eq!(failed(ended), (Failure::Overloaded { retry_after_ms: None }, "as recorded".into()));
    let ended = router.call(&request(&router, 4), &nobody, |_| {}).await;
    assert_eq!(failed(ended), (Failure::Unrecorded, "the recording has 3 answers, and this is call 4".into()));
}

#[tokio::test]
async fn beyond_a_recording_words_can_be_given() {
    let replay = Replay::read("{answers: [{text: one}]}").unwrap().ending_with("It is over.");
    let (router, nobody) = (Router::replay(replay), CancellationToken::new());
    for (number, words) in [(1, "one"), (2, "It is over."), (9, "It is over.")] {
        let answer = router.call(&request(&router, number), &nobody, |_| {}).await.unwrap();
        assert_eq!((answer.message.text().as_str(), answer.stop), (words, StopReason::EndTurn));
    }
}

#[tokio::test]
async fn a_shown_answer_can_be_cancelled() {
    let router = router("{delta_ms: 1, answers: [{text: one two three}]}");
    let cancel = CancellationToken::new();
    let ended = router
        .call(&request(&router, 1), &cancel, |delta| {
            if delta == Delta::Text("two ") {
                cancel.cancel();
            }
        })
        .await;
    let streamed = PartialAnswer { is_sent: true, bytes: "one two ".len(), ..PartialAnswer::default() };
    assert_eq!(ended, Err(CallError::Cancelled { partial: "one two ".into(), streamed }));
}

#[test]
fn bad_recordings_are_explained() {
    let problem = |text| Replay::read(text).map(|_| ()).unwrap_err();
    let answer = |number, problem| BadRecording::Answer { number, problem };
    assert_eq!(problem("answers: [{text: a}, {}]"), answer(2, "it has neither `text`, nor `parts`, nor `fails`"));
    assert_eq!(
        problem("answers: [{parts: [{text: a, tool: b}]}]"),
        answer(1, "a part is exactly one of `text`, `thinking` and `tool`")
    );
    assert_eq!(problem("answers: [{fails: badly}]"), answer(1, "`fails` names no failure"));
    assert!(matches!(problem("answers: [{txt: a}]"), BadRecording::Unreadable(_)));
}

#[tokio::test]
async fn an_answer_that_counts_on_words_is_given_only_if_they_are_there() {
    let router = router("answers: [{text: All is well., given: 2 verified, otherwise: Who knows.}]");
    for (said, want) in [("3 done (2 verified)", "All is well."), ("3 done (1 verified)", "Who knows.")] {
        let mut transcript = Transcript::new(router.wire(&model(Dialect::Anthropic)));
        transcript.push(&Message::user(vec![Part::text(said)]));
        let call = RequestOptions { number: 1, max_tokens: 1, tools_off: false, window: Window::default(), upto: 1 };
        let answer = router.call(&transcript.request(&call), &CancellationToken::new(), |_| {}).await.unwrap();
        assert_eq!((answer.message.text().as_str(), answer.stop), (want, StopReason::EndTurn), "{said}");
    }
}

/// However many requests come before the words, the answer that needs them is given once and the next ones follow it.
#[tokio::test]
async fn an_answer_waits_for_its_words() {
    let router = router("answers: [{text: Done., given: it is built, meanwhile: \"I \\\"wait\\\".\"}, {text: Bye.}]");
    let mut transcript = Transcript::new(router.wire(&model(Dialect::Anthropic)));
    let table = [
        ("hello", "I \"wait\"."),
        ("news: I \"wait\".", "I \"wait\"."),
        ("news: it is built", "Done."),
        ("thanks", "Bye."),
    ];
    for (number, (said, want)) in (1..).zip(table) {
        transcript.push(&Message::user(vec![Part::text(said)]));
        let upto = usize::try_from(number * 2 - 1).unwrap();
        let call = RequestOptions { number, max_tokens: 9, tools_off: false, window: Window::default(), upto };
        let answer = router.call(&transcript.request(&call), &CancellationToken::new(), |_| {}).await.unwrap();
        assert_eq!(answer.message.text(), want, "{said}");
        transcript.push(&answer.message);
    }
}
