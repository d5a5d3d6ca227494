//! Health, and figures in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use max_team_core::status::AgentStage;
use max_team_runtime::query;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::error::ApiError;

/// What the server counts itself.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: AtomicU64,
}

impl Metrics {
    pub(crate) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) async fn health() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// Whether the journal answers, and the server is not about to end.
pub(crate) async fn ready(State(web): State<Arc<Web>>) -> Result<Json<Value>, ApiError> {
    if web.closing.is_cancelled() || web.team.ask(query::Position {}).await.is_err() {
        return Err(ApiError::unavailable("the server is not ready"));
    }
    Ok(Json(json!({ "status": "ready" })))
}

pub(crate) async fn metrics(State(web): State<Arc<Web>>, _visitor: Visitor) -> Result<Response, ApiError> {
    let people = web.team.ask(query::Ps { all: false }).await?;
    let costs = web.team.ask(query::Costs { session: None, since_ms: 0 }).await?;
    let stages = [AgentStage::Busy, AgentStage::Ready, AgentStage::Starting, AgentStage::Stopped, AgentStage::Created];
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, about: &str, values: &[(String, f64)]| {
        let _ = writeln!(text, "# HELP max_team_{name} {about}\n# TYPE max_team_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "max_team_{name}{labels} {value}");
        }
    };
    let plain = |value: f64| vec![(String::new(), value)];
    let number = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    let agents: Vec<(String, f64)> = stages
        .into_iter()
        .map(|stage| {
            let count = people.iter().filter(|person| person.state == stage).count();
            (format!("{{state=\"{}\"}}", stage.name()), number(count))
        })
        .collect();
    let tokens =
        |pick: fn(&max_team_core::chat::Usage) -> u64| costs.iter().map(|cost| pick(&cost.charge.usage)).sum::<u64>();
    let token_kinds = [
        ("input", tokens(|usage| usage.input)),
        ("output", tokens(|usage| usage.output)),
        ("cache_read", tokens(|usage| usage.cache_read)),
        ("cache_write", tokens(|usage| usage.cache_write)),
    ];
    let tokens: Vec<(String, f64)> =
        token_kinds.into_iter().map(|(kind, count)| (format!("{{kind=\"{kind}\"}}"), float(count))).collect();
    let nano: u64 = costs.iter().map(|cost| cost.charge.nano).sum();
    let calls: u64 = costs.iter().map(|cost| cost.charge.calls).sum();
    let seq = web.team.ask(query::Position {}).await?.seq;
    metric("requests_total", "counter", "HTTP requests.", &plain(float(web.metrics.requests.load(Ordering::Relaxed))));
    metric("watchers", "gauge", "Open event streams.", &plain(number(web.hub.watchers())));
    metric(
        "sessions_open",
        "gauge",
        "Sessions that this server runs.",
        &plain(number(web.sessions.list().await.len())),
    );
    metric("inbox", "gauge", "Questions that wait for a person.", &plain(number(web.waiting(None).await?.len())));
    metric("agents", "gauge", "Agents by state.", &agents);
    metric(
        "plans_open",
        "gauge",
        "Plans that have not ended.",
        &plain(number(web.team.ask(query::OpenPlans { session: None }).await?.len())),
    );
    metric("journal_entries", "counter", "Entries of the journal.", &plain(float(seq)));
    metric("model_calls_total", "counter", "Calls of models, in all sessions.", &plain(float(calls)));
    metric("tokens_total", "counter", "Tokens, in all sessions.", &tokens);
    metric("cost_usd_total", "counter", "Cost in dollars, in all sessions.", &plain(float(nano) / 1e9));
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

#[expect(clippy::cast_precision_loss, reason = "a figure on a dashboard")]
fn float(value: u64) -> f64 {
    value as f64
}
