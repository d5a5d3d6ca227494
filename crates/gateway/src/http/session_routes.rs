//! Sessions: lists, messages, and what is known about one.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use max_team_core::event::LaunchFlags;
use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::limits::WEB_ROWS_MAX;
use max_team_runtime::{Command, PlanLine, Query, SessionRow, query};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::error::ApiError;
use super::extract::{Body, OrderKey, Params, Path, SessionOrder, page_limit};

/// Rows of the first page.
const ROWS_DEFAULT: usize = 50;

/// The facts about a session that one query answers.
pub(crate) const SESSION_PARTS: [&str; 8] =
    ["trace", "cost", "tasks", "team", "memory", "audit", "details", "worktrees"];

#[derive(Debug, Deserialize)]
pub(crate) struct PageQuery {
    limit: Option<usize>,
    /// Audit records behind this place.
    after: Option<u64>,
    since_ms: Option<u64>,
}

/// The largest whole number that every client can write in JSON.
pub(crate) const NUMBER_MAX: u64 = (1 << 53) - 1;

impl PageQuery {
    fn after(&self) -> Result<u64, ApiError> {
        number("after", self.after)
    }

    fn since_ms(&self) -> Result<i64, ApiError> {
        number("since_ms", self.since_ms).map(u64::cast_signed)
    }
}

fn number(name: &str, given: Option<u64>) -> Result<u64, ApiError> {
    let number = given.unwrap_or_default();
    let wrong = || ApiError::bad_request(format!("`{name}` is {number}; it is a number from 0 to {NUMBER_MAX}"));
    if number <= NUMBER_MAX { Ok(number) } else { Err(wrong()) }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewSession {
    text: Option<String>,
    agent: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    text: String,
    #[serde(default)]
    wait: bool,
    #[serde(default)]
    to: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipients {
    #[serde(default)]
    to: Vec<String>,
}

impl Web {
    async fn rows(&self, rows: &[SessionRow]) -> Result<Vec<Value>, ApiError> {
        let here = self.sessions.list().await;
        let mut values = Vec::new();
        for row in rows {
            values.push(self.sessions.row(row, &here).await?);
        }
        Ok(values)
    }

    pub(crate) async fn row(&self, session: SessionId) -> Result<Value, ApiError> {
        let row = self.team.ask(query::Session { session }).await?;
        self.sessions.row(&row, &self.sessions.list().await).await
    }

    async fn plans(&self, limit: usize) -> Result<Vec<PlanLine>, ApiError> {
        let mut plans = self.team.ask(query::AllPlans {}).await?;
        plans.truncate(limit);
        Ok(plans)
    }
}

pub(crate) async fn now(State(web): State<Arc<Web>>, _visitor: Visitor) -> Result<Json<Value>, ApiError> {
    // First the place: an event that comes meanwhile is told twice rather than never.
    let position = web.team.ask(query::Position {}).await?;
    let sessions = web.team.ask(query::Sessions { limit: ROWS_DEFAULT }).await?;
    Ok(Json(json!({
        "position": position.to_string(),
        "inbox": web.waiting(None).await?,
        "people": web.team.ask(query::Ps { all: false }).await?,
        "sessions": web.rows(&sessions).await?,
        "plans": web.plans(ROWS_DEFAULT).await?,
    })))
}

pub(crate) async fn list(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Params(page): Params<PageQuery>,
) -> Result<Json<Value>, ApiError> {
    let limit = page_limit(page.limit, ROWS_DEFAULT, WEB_ROWS_MAX)?;
    let sessions = web.team.ask(query::Sessions { limit }).await?;
    Ok(Json(json!({ "sessions": web.rows(&sessions).await? })))
}

pub(crate) async fn create(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    key: OrderKey,
    Body(new): Body<NewSession>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    if new.agent.as_ref().is_some_and(|agent| agent.trim().is_empty()) {
        return Err(ApiError::bad_request("`agent` is empty; leave it out to talk to the lead"));
    }
    let choice = LaunchFlags { agent: new.agent, ..LaunchFlags::default() };
    let name = key.0.uuid().simple().to_string();
    let session = web.sessions.create(&visitor.principal, &name, &choice, false).await?;
    let id = match new.text {
        Some(text) => Some(web.carry_out(&visitor, key, Command::Say { session, text }).await?),
        None => None,
    };
    let mut answer = json!({ "session": web.row(session).await? });
    if let (Value::Object(answer), Some(id)) = (&mut answer, id) {
        answer.insert("id".to_owned(), json!(id));
    }
    Ok((StatusCode::CREATED, Json(answer)))
}

pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Path(session): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let session = web.find_session(&session).await?;
    let position = web.team.ask(query::Position {}).await?;
    Ok(Json(json!({
        "session": web.row(session).await?,
        "status": web.team.ask(query::Status { session }).await?,
        "agents": web.team.ask(query::Agents { session }).await?,
        "plans": web.team.ask(query::Plans { session }).await?,
        "inbox": web.waiting(Some(session)).await?,
        "position": position.to_string(),
    })))
}

/// Facts about a session that one query answers.
pub(crate) async fn part(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Path((session, part)): Path<(String, String)>,
    Params(page): Params<PageQuery>,
) -> Result<Json<Value>, ApiError> {
    if !SESSION_PARTS.contains(&part.as_str()) {
        return Err(ApiError::not_found(format!("a session has no `{part}`; there are {}", SESSION_PARTS.join(", "))));
    }
    let session = web.find_session(&session).await?;
    let query = match part.as_str() {
        "trace" => Query::Trace(query::Trace { session }),
        "cost" => Query::Costs(query::Costs { session: Some(session), since_ms: page.since_ms()? }),
        "tasks" => Query::TaskLines(query::TaskLines { session }),
        "team" => Query::Team(query::Team { session }),
        "memory" => Query::Recalled(query::Recalled { session }),
        "audit" => Query::Audit(query::Audit { session: Some(session), after_seq: page.after()? }),
        "details" => Query::Details(query::Details { session }),
        _ => Query::Worktrees(query::Worktrees { session }),
    };
    Ok(Json(web.look_up(query).await?))
}

pub(crate) async fn messages(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Path(session): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let session = web.find_session(&session).await?;
    Ok(Json(web.look_up(Query::Messages(query::Messages { session })).await?))
}

pub(crate) async fn costs(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Params(page): Params<PageQuery>,
) -> Result<Json<Value>, ApiError> {
    let costs = query::Costs { session: None, since_ms: page.since_ms()? };
    Ok(Json(web.look_up(Query::Costs(costs)).await?))
}

pub(crate) async fn send(
    order: SessionOrder,
    Body(NewMessage { text, wait, to }): Body<NewMessage>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let session = order.session;
    let command = match (to.is_empty(), wait) {
        (false, _) => Command::Write { session, to, text },
        (true, true) => Command::Queue { session, text },
        (true, false) => Command::Say { session, text },
    };
    order.carry_out(command).await
}

pub(crate) async fn take_back(
    order: SessionOrder,
    Path((_, message)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let session = order.session;
    let envelope: EnvelopeId =
        message.parse().map_err(|error: max_team_core::id::IdError| ApiError::bad_request(error.to_string()))?;
    drop(order.carry_out(Command::Withdraw { session, envelope }).await?);
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn interrupt(order: SessionOrder) -> Result<(StatusCode, Json<Value>), ApiError> {
    let session = order.session;
    order.carry_out(Command::Interrupt { session }).await
}

pub(crate) async fn stop(order: SessionOrder) -> Result<(StatusCode, Json<Value>), ApiError> {
    let session = order.session;
    order.carry_out(Command::StopSession { session }).await
}

pub(crate) async fn go_on(
    order: SessionOrder,
    Body(Recipients { to }): Body<Recipients>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let session = order.session;
    order.carry_out(Command::Continue { session, to }).await
}

/// Runs a closed session in this server.
pub(crate) async fn open(order: SessionOrder) -> Result<Json<Value>, ApiError> {
    let SessionOrder { web, visitor, session, .. } = order;
    web.sessions.ensure(session, &visitor.principal).await?;
    Ok(Json(json!({ "session": web.row(session).await? })))
}
