//! The crate against a scripted model server, over real HTTP on loopback.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "fixtures fail loudly")]

mod calls;
mod connections;
mod faults;
mod replay;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use max_team_core::agent::Model;
use max_team_core::chat::{Answer, Message, Part};
use max_team_core::context::Window;
use max_team_llm::{
    CallError, Catalog, Delta, Dialect, Endpoint, Options, Request, RequestOptions, Router, Transcript,
};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

pub const KEY: &str = "sk-test-0123456789abcdef";
pub const DIALECTS: [Dialect; 2] = [Dialect::Anthropic, Dialect::OpenaiChat];

pub fn options() -> Options {
    // Long enough for a loaded machine; tests that wait for it set their own.
    Options { idle_timeout: Duration::from_secs(20), ..Options::default() }
}

/// The provider that stands for a dialect, at another address.
pub fn endpoint(dialect: Dialect, url: &str) -> Endpoint {
    let provider = Catalog::builtin().provider(provider(dialect)).unwrap();
    Endpoint::new(provider, Some(url), Some(SecretString::from(KEY))).unwrap()
}

pub fn provider(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "anthropic",
        Dialect::OpenaiChat => "openai",
    }
}

pub fn router(dialect: Dialect, url: &str, options: Options) -> Router {
    Router::http(Arc::new(Catalog::builtin().clone()), [endpoint(dialect, url)], options)
}

pub fn model(dialect: Dialect) -> Model {
    let name = match dialect {
        Dialect::Anthropic => "claude-sonnet-4-6",
        Dialect::OpenaiChat => "gpt-5-mini",
    };
    Catalog::builtin().resolve(name, None).unwrap()
}

pub fn transcript(router: &Router, dialect: Dialect) -> Transcript {
    let hello = Message::user(vec![Part::text("Hello")]);
    Transcript::encode(router.wire(&model(dialect)), "Be kind.", &[], &[hello])
}

pub fn request(transcript: &Transcript) -> Request {
    let window = Window::default();
    transcript.request(&RequestOptions {
        number: 1,
        max_tokens: 4_000,
        tools_off: false,
        window,
        upto: transcript.len(),
    })
}

/// One call that nobody watches or cancels.
pub async fn ask(router: &Router, dialect: Dialect) -> Result<Answer, CallError> {
    let request = request(&transcript(router, dialect));
    router.call(&request, &CancellationToken::new(), |_: Delta<'_>| {}).await
}

pub fn failed(end: Result<Answer, CallError>) -> (max_team_core::recovery::Failure, String) {
    match end {
        Err(CallError::Failed { failure, detail, .. }) => (failure, detail),
        other => panic!("expected a failure, got {other:?}"),
    }
}
