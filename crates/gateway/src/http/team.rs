//! Commands and queries in the form that the runtime gives them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::policy::DecidedBy;
use max_team_runtime::{Command, Order, Query, RuntimeError, query};
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::error::ApiError;
use super::extract::{Body, OrderKey};

/// Queries that are not offered over HTTP, by the names of their types.
pub(crate) const INTERNAL_QUERIES: [&str; 3] = ["Settled", "Paths", "Recording"];

impl Web {
    /// Carries a command out. A session of this folder that no process runs is opened first, or afterwards if an answer lets it go on.
    pub(crate) async fn carry_out(
        &self,
        visitor: &Visitor,
        key: OrderKey,
        mut command: Command,
    ) -> Result<EnvelopeId, ApiError> {
        let by = visitor.principal.clone();
        match &mut command {
            Command::ServeChannel { .. }
            | Command::ServeFolder { .. }
            | Command::SettleHandover { .. }
            | Command::Deliver { .. }
            | Command::Leave { .. } => {
                return Err(ApiError::bad_request("this command belongs to the process that runs a session"));
            }
            Command::Answer { answer, .. } => answer.by = DecidedBy::person(&by),
            _ => {}
        }
        let goes_on = self.session_that_goes_on(&command).await;
        let cwd = self.sessions.source().root().display().to_string();
        let order = Order { by, cwd, key: key.0, command };
        // A command that has begun is carried out to its end, also if the client has gone.
        let (team, begun) = (self.team.clone(), order.clone());
        let carried_out = tokio::spawn(async move { team.command(begun).await }).await;
        match carried_out.map_err(|crash| ApiError::internal(crash.to_string()))? {
            Err(RuntimeError::NotOpen(session)) => {
                self.sessions.ensure(session, &visitor.principal).await?;
                self.team.command(order).await?;
            }
            carried_out => carried_out?,
        }
        if let Some(session) = goes_on {
            // A session of another folder goes on when it is opened there.
            drop(self.sessions.ensure(session, &visitor.principal).await);
        }
        Ok(key.0)
    }

    /// The session whose work a command lets go on.
    async fn session_that_goes_on(&self, command: &Command) -> Option<SessionId> {
        match command {
            Command::Answer { session, .. } | Command::Continue { session, .. } | Command::Write { session, .. } => {
                Some(*session)
            }
            Command::Decide { question, .. } => {
                let pending = self.team.ask(query::FindPending { text: question.to_string() }).await;
                pending.ok().and_then(|pending| pending.session)
            }
            _ => None,
        }
    }

    /// Answers a query that came over the wire.
    pub(crate) async fn look_up(&self, query: Query) -> Result<Value, ApiError> {
        if INTERNAL_QUERIES.contains(&query.name()) {
            return Err(ApiError::bad_request("this query is not offered over HTTP"));
        }
        let reply = self.team.query(query).await?;
        serde_json::to_value(&reply).map_err(|error| ApiError::internal(error.to_string()))
    }

    /// The session with this id, or with this unique end of one.
    pub(crate) async fn find_session(&self, text: &str) -> Result<SessionId, ApiError> {
        if let Ok(session) = text.parse() {
            return Ok(self.team.ask(query::Session { session }).await?.session);
        }
        let found = self.team.ask(query::FindSession { text: text.to_owned() }).await?;
        found.ok_or_else(|| RuntimeError::NoSession(text.to_owned()).into())
    }
}

pub(crate) async fn command(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    key: OrderKey,
    Body(command): Body<Value>,
) -> Result<Json<Value>, ApiError> {
    let id = web.carry_out(&visitor, key, read_command(&visitor, command)?).await?;
    Ok(Json(json!({ "id": id })))
}

/// Reads a command. The author of an answer is the visitor, so the answer need not name one.
pub(crate) fn read_command(visitor: &Visitor, mut command: Value) -> Result<Command, ApiError> {
    let wrong = |error: serde_json::Error| ApiError::bad_request(format!("the command is not as expected: {error}"));
    if let Some(Value::Object(answer)) = command.pointer_mut("/answer/answer") {
        let by = serde_json::to_value(DecidedBy::person(&visitor.principal)).map_err(wrong)?;
        answer.insert("by".to_owned(), by);
    }
    serde_json::from_value(command).map_err(wrong)
}

pub(crate) async fn queries(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Body(query): Body<Query>,
) -> Result<Json<Value>, ApiError> {
    Ok(Json(web.look_up(query).await?))
}
