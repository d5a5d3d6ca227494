//! `doctor --online`: one small request to the model that was chosen, and what its failure means.

use max_team_workspace::i18n::ModelFault;
use std::time::{Duration, Instant};

use max_team_core::agent::Model;
use max_team_core::chat::{Answer, Message, Part};
use max_team_core::context::Window;
use max_team_core::recovery::Failure;
use max_team_llm::{CallError, Delta, RequestOptions, Transcript};
use tokio_util::sync::CancellationToken;

use super::Findings;
use max_team_workspace::format::dollars;
use max_team_workspace::models::ChosenModel;

/// Tokens that the answer may have: some models refuse fewer.
const ANSWER_TOKENS_MAX: u32 = 16;
/// How long the answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// The prompt of the test request.
const QUESTION: &str = "Reply with the word ok.";

/// Sends one request and reports the result.
pub(super) fn ask(chosen: &ChosenModel, findings: &mut Findings) {
    let lang = findings.lang;
    // An answer of a few tokens leaves no room to think in.
    let model = Model { thinking_tokens: 0, ..chosen.model.clone() };
    let name = format!("{}/{}", model.provider, model.name);
    let begun = Instant::now();
    match call(chosen, &model) {
        Ok(answer) => {
            let cost = model.price.map(|price| dollars(price.cost_of(answer.usage)));
            let words = lang.online_answered(&name, begun.elapsed().as_millis(), cost.as_deref());
            findings.good(lang.online_word(), words);
        }
        Err((failure, detail)) => {
            let words = lang.online_failed(judge(&failure, &detail), &name, &chosen.key_source, &detail);
            findings.bad(lang.online_word(), words);
        }
    }
}

fn call(chosen: &ChosenModel, model: &Model) -> Result<Answer, (Failure, String)> {
    let transcript =
        Transcript::encode(chosen.router.wire(model), "", &[], &[Message::user(vec![Part::text(QUESTION)])]);
    let (number, window, upto) = (1, Window::default(), transcript.len());
    let request =
        transcript.request(&RequestOptions { number, max_tokens: ANSWER_TOKENS_MAX, tools_off: false, window, upto });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| (Failure::Setup, error.to_string()))?;
    let cancel = CancellationToken::new();
    let asked = chosen.router.call(&request, &cancel, |_: Delta<'_>| {});
    match runtime.block_on(async { tokio::time::timeout(ANSWER_WAIT, asked).await }) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(CallError::Failed { failure, detail, .. })) => Err((failure, detail)),
        Ok(Err(CallError::Cancelled { .. })) => Err((Failure::Timeout, String::new())),
        Err(_) => Err((Failure::Timeout, format!("nothing came within {} s", ANSWER_WAIT.as_secs()))),
    }
}

/// The conclusion of a failed request about key, server, model and address.
fn judge(failure: &Failure, detail: &str) -> ModelFault {
    match failure {
        Failure::Auth => ModelFault::Key,
        Failure::Network | Failure::Timeout => ModelFault::Server,
        Failure::RateLimited { .. } | Failure::Overloaded { .. } | Failure::Server { .. } => ModelFault::Busy,
        Failure::Malformed | Failure::Truncated | Failure::TooLarge => ModelFault::Address,
        Failure::InvalidRequest => {
            // Behind the last semicolon stands our own advice.
            let said = detail.rsplit_once("; ").map_or(detail, |(said, _)| said).to_lowercase();
            let is_elsewhere = ["http 3", "http 404", "http 405"].iter().any(|status| said.contains(status));
            match (said.contains("model"), is_elsewhere) {
                (true, _) => ModelFault::Model,
                (false, true) => ModelFault::Address,
                (false, false) => ModelFault::Request,
            }
        }
        Failure::Setup | Failure::ContextOverflow | Failure::Unrecorded => ModelFault::Request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_names_what_has_to_be_mended() {
        let refused = Failure::InvalidRequest;
        let table = [
            (Failure::Auth, "HTTP 401: invalid x-api-key; check the key", ModelFault::Key),
            (Failure::Network, "connection refused", ModelFault::Server),
            (Failure::Timeout, "", ModelFault::Server),
            (Failure::Overloaded { retry_after_ms: None }, "HTTP 529: overloaded; try later", ModelFault::Busy),
            (Failure::Malformed, "the answer cannot be read: <html>", ModelFault::Address),
            (refused.clone(), "HTTP 404: model: opus-9 (not_found_error); check the model's name", ModelFault::Model),
            (refused.clone(), "HTTP 400: Model Not Exist (invalid_request_error); change it", ModelFault::Model),
            (refused.clone(), "HTTP 404: Not Found; check the model's name and `base_url`", ModelFault::Address),
            (refused, "HTTP 400: max_tokens is too small; the request must change", ModelFault::Request),
        ];
        for (failure, detail, trouble) in table {
            assert_eq!(judge(&failure, detail), trouble, "{detail}");
        }
    }
}
