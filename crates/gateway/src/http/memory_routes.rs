//! The memory: facts about the user and about the project, where they stand, and changes of them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use max_team_core::memory::{BoardScope, Fact, Key, KeyError};
use max_team_runtime::{Command, project_scope, query};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::error::ApiError;
use super::extract::{Body, OrderKey, Path};

/// Which of the two boards is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BoardName {
    User,
    Project,
}

impl BoardName {
    pub(crate) const NAMES: [&str; 2] = ["user", "project"];

    fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewFact {
    key: Key,
    value: Value,
    /// Without it, the section of the key decides.
    board: Option<BoardName>,
}

impl Web {
    fn memory_scope(&self, board: BoardName) -> BoardScope {
        match board {
            BoardName::User => BoardScope::User,
            BoardName::Project => project_scope(self.sessions.source().root()),
        }
    }

    fn read_key(key: &str) -> Result<Key, ApiError> {
        key.parse().map_err(|error: KeyError| ApiError::bad_request(error.to_string()))
    }
}

pub(crate) async fn list(State(web): State<Arc<Web>>, _visitor: Visitor) -> Result<Json<Value>, ApiError> {
    let mut boards = Vec::new();
    for name in [BoardName::User, BoardName::Project] {
        let board = web.team.ask(query::Memory { scope: web.memory_scope(name) }).await?;
        let facts: Vec<&Fact> = board.facts().collect();
        boards.push(json!({ "board": name.name(), "facts": facts }));
    }
    Ok(Json(json!({ "boards": boards })))
}

pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Path((board, key)): Path<(BoardName, String)>,
) -> Result<Json<Value>, ApiError> {
    let (scope, key) = (web.memory_scope(board), Web::read_key(&key)?);
    let fact = web.team.ask(query::MemoryFact { scope: scope.clone(), key: key.clone() }).await?;
    let uses = web.team.ask(query::MemoryUses { scope, key }).await?;
    Ok(Json(json!({ "fact": fact, "uses": uses })))
}

pub(crate) async fn remember(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    order: OrderKey,
    Body(NewFact { key, value, board }): Body<NewFact>,
) -> Result<Json<Value>, ApiError> {
    let usual = if key.section().is_users() { BoardName::User } else { BoardName::Project };
    let board = board.unwrap_or(usual);
    let command = Command::Remember { scope: web.memory_scope(board), key, value };
    let id = web.carry_out(&visitor, order, command).await?;
    Ok(Json(json!({ "id": id, "board": board.name() })))
}

pub(crate) async fn forget(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    order: OrderKey,
    Path((board, key)): Path<(BoardName, String)>,
) -> Result<StatusCode, ApiError> {
    let command = Command::Forget { scope: web.memory_scope(board), key: Web::read_key(&key)? };
    web.carry_out(&visitor, order, command).await?;
    Ok(StatusCode::NO_CONTENT)
}
