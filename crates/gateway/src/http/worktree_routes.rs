//! Worktrees that wait for a decision.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use max_team_core::hash::Hash;
use max_team_runtime::{Command, query};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::error::ApiError;
use super::extract::{Body, OrderKey, Path};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecidedFiles {
    #[serde(default)]
    files: Vec<String>,
    shown: Option<Hash>,
}

pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Path(worktree): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let found = web.team.ask(query::WorktreeChanges { worktree: worktree.clone() }).await?;
    let found = found.ok_or_else(|| ApiError::not_found(format!("there is no worktree `{worktree}`")))?;
    Ok(Json(json!({ "worktree": found })))
}

pub(crate) async fn accept(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    key: OrderKey,
    Path(worktree): Path<String>,
    Body(DecidedFiles { files, shown }): Body<DecidedFiles>,
) -> Result<Json<Value>, ApiError> {
    let command = Command::AcceptWorktree { worktree: worktree.clone(), files, shown };
    web.decide_worktree(&visitor, key, worktree, command).await
}

pub(crate) async fn reject(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    key: OrderKey,
    Path(worktree): Path<String>,
    Body(DecidedFiles { files, shown }): Body<DecidedFiles>,
) -> Result<Json<Value>, ApiError> {
    let command = Command::RejectWorktree { worktree: worktree.clone(), files, shown };
    web.decide_worktree(&visitor, key, worktree, command).await
}

impl Web {
    /// Carries the decision out and answers with what is left of the worktree.
    async fn decide_worktree(
        &self,
        visitor: &Visitor,
        key: OrderKey,
        worktree: String,
        command: Command,
    ) -> Result<Json<Value>, ApiError> {
        let id = self.carry_out(visitor, key, command).await?;
        let left = self.team.ask(query::WorktreeChanges { worktree }).await?;
        Ok(Json(json!({ "id": id, "worktree": left })))
    }
}
