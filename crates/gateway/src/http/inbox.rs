//! Questions and plans that wait for a person.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use max_team_core::id::SessionId;
use max_team_core::plan::event::PlanDecision;
use max_team_core::policy::{DecidedBy, GrantScope, PermissionAnswer};
use max_team_runtime::{Command, Matter, PendingQuestion, query};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::error::ApiError;
use super::extract::{Body, OrderKey, Path};

/// An answer to a question of an agent (`allow`), or of a plan (`decision`).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerBody {
    decision: Option<PlanDecision>,
    allow: Option<bool>,
    #[serde(default)]
    always: bool,
    until: Option<GrantScope>,
    #[serde(default)]
    comment: String,
    #[serde(default)]
    drop: bool,
    #[serde(default)]
    put_off: bool,
    /// The word that approves a deletion which cannot be taken back.
    #[serde(default)]
    word: String,
}

impl Web {
    /// The questions that wait, of one session or of all.
    pub(crate) async fn waiting(&self, session: Option<SessionId>) -> Result<Vec<Value>, ApiError> {
        let mut inbox = self.team.ask(query::Inbox {}).await?;
        inbox.retain(|pending| session.is_none() || pending.session == session);
        inbox.iter().map(shown).collect()
    }
}

fn shown(pending: &PendingQuestion) -> Result<Value, ApiError> {
    let mut value = serde_json::to_value(pending).map_err(|error| ApiError::internal(error.to_string()))?;
    if let Value::Object(value) = &mut value {
        value.insert("words".to_owned(), json!(pending.words()));
    }
    Ok(value)
}

pub(crate) async fn inbox(State(web): State<Arc<Web>>, _visitor: Visitor) -> Result<Json<Value>, ApiError> {
    Ok(Json(json!({ "inbox": web.waiting(None).await? })))
}

pub(crate) async fn answer(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    key: OrderKey,
    Path(question): Path<String>,
    Body(given): Body<AnswerBody>,
) -> Result<Json<Value>, ApiError> {
    // One that is no longer open is found by its whole id: the runtime tells who answered it.
    let pending = match (web.team.ask(query::FindPending { text: question.clone() }).await, question.parse()) {
        (Ok(pending), _) => Some(pending),
        (Err(_), Ok(question)) => {
            let closed = Command::Decide { question, say: given.decision.clone().unwrap_or(PlanDecision::Approve) };
            web.carry_out(&visitor, key, closed).await?;
            None
        }
        (Err(error), Err(_)) => return Err(error.into()),
    };
    let Some(pending) = pending else { return Ok(Json(json!({ "id": key.0 }))) };
    let question = pending.row.question;
    let command = match (&pending.row.matter, given.decision, given.allow) {
        (Matter::Plan(_), Some(say), None) => Command::Decide { question, say },
        (Matter::Tool { .. }, None, Some(allow)) => {
            let session = pending.session.ok_or_else(|| ApiError::not_found("the question belongs to no session"))?;
            let answer = PermissionAnswer {
                allow,
                always: given.always,
                until: given.until.unwrap_or_default(),
                comment: given.comment,
                drop: given.drop,
                put_off: given.put_off,
                word: given.word,
                by: DecidedBy::person(&visitor.principal),
            };
            Command::Answer { session, question, answer }
        }
        (Matter::Plan(_), ..) => return Err(ApiError::bad_request("a question of a plan is answered with `decision`")),
        (Matter::Tool { .. }, ..) => {
            return Err(ApiError::bad_request("a question of an agent is answered with `allow`"));
        }
    };
    let id = web.carry_out(&visitor, key, command).await?;
    Ok(Json(json!({ "id": id })))
}
