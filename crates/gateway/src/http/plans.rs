//! Plans: as a screen draws them, and decisions about them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use max_team_core::id::{PlanId, QuestionId};
use max_team_core::plan::event::PlanDecision;
use max_team_runtime::{Command, Query, query};
use max_team_workspace::{plan_diagram, plan_view};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::error::ApiError;
use super::extract::{Body, OrderKey, Path};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionBody {
    decision: PlanDecision,
    question: Option<QuestionId>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopBody {
    task: Option<String>,
}

impl Web {
    async fn find_plan(&self, text: &str) -> Result<PlanId, ApiError> {
        let found = self.team.ask(query::FindPlan { text: text.to_owned() }).await?;
        found.ok_or_else(|| ApiError::not_found(format!("there is no plan `{text}`")))
    }
}

pub(crate) async fn list(State(web): State<Arc<Web>>, _visitor: Visitor) -> Result<Json<Value>, ApiError> {
    let mut plans = web.team.ask(query::AllPlans {}).await?;
    plans.truncate(max_team_core::limits::WEB_ROWS_MAX);
    Ok(Json(json!({ "plans": plans })))
}

pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Path(plan): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let id = web.find_plan(&plan).await?;
    let (plan, state) = web.team.ask(query::PlanWithState { plan: id }).await?;
    let events = web.team.ask(query::PlanEvents { plan: id }).await?;
    Ok(Json(plan_view::screen(id, &plan, state, &events)))
}

pub(crate) async fn mermaid(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Path(plan): Path<String>,
) -> Result<String, ApiError> {
    let id = web.find_plan(&plan).await?;
    let plan = web.team.ask(query::Plan { plan: id }).await?;
    match (plan.draft(), plan.graph()) {
        (Some(draft), Some(graph)) => Ok(plan_diagram::mermaid(draft, graph)),
        _ => Err(ApiError::not_found(format!("plan `{id}` was never proposed"))),
    }
}

pub(crate) async fn trace(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Path(plan): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let plan = web.find_plan(&plan).await?;
    Ok(Json(web.look_up(Query::TracePlan(query::TracePlan { plan })).await?))
}

pub(crate) async fn decide(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    key: OrderKey,
    Path(plan): Path<String>,
    Body(given): Body<DecisionBody>,
) -> Result<Json<Value>, ApiError> {
    let id = web.find_plan(&plan).await?;
    let plan = web.team.ask(query::Plan { plan: id }).await?;
    let question = given.question.or_else(|| plan.asked().next().map(|(question, _)| question));
    let question = question.ok_or_else(|| ApiError::conflict(format!("plan `{id}` waits for no decision")))?;
    let id = web.carry_out(&visitor, key, Command::Decide { question, say: given.decision }).await?;
    Ok(Json(json!({ "id": id })))
}

pub(crate) async fn stop(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    key: OrderKey,
    Path(plan): Path<String>,
    Body(StopBody { task }): Body<StopBody>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let plan = web.find_plan(&plan).await?;
    let id = web.carry_out(&visitor, key, Command::Stop { plan, task }).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "id": id }))))
}
