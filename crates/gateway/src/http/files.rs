//! The files of a session: attached in the browser, and downloaded.
//!
//! A page must not be able to run what an agent wrote: every file is sent as an `application/octet-stream` attachment.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderName, StatusCode, header};
use max_team_core::id::SessionId;
use max_team_core::mention;
use max_team_runtime::{RuntimeError, query};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::Web;
use super::access::Visitor;
use super::body::BodyPermit;
use super::error::ApiError;
use super::extract::{Params, SessionOrder};

/// Bytes of a download that are sent at once.
const PIECE_BYTES: usize = 64 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileName {
    name: String,
}

impl Web {
    /// Keeps a file of a visitor; returns its path (`@files/NAME`).
    pub(crate) async fn add_file(
        &self,
        visitor: &Visitor,
        session: SessionId,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<String, ApiError> {
        if bytes.is_empty() {
            return Err(ApiError::bad_request(format!("`{name}` is empty")));
        }
        Ok(self.team.add_file(&visitor.principal, session, name.to_owned(), bytes).await?)
    }
}

/// Keeps the body of the request as a file.
pub(crate) async fn add(
    order: SessionOrder,
    _permit: BodyPermit,
    Params(FileName { name }): Params<FileName>,
    bytes: Bytes,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let SessionOrder { web, visitor, session, .. } = order;
    let count = bytes.len();
    let path = web.add_file(&visitor, session, &name, bytes.into()).await?;
    Ok((StatusCode::CREATED, Json(json!({ "path": path, "mention": mention_of(&path), "bytes": count }))))
}

/// How a message mentions a file of its session.
pub(crate) fn mention_of(path: &str) -> String {
    mention::written(path.trim_start_matches('@'))
}

pub(crate) async fn list(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Path(session): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let session = web.find_session(&session).await?;
    Ok(Json(json!({ "files": web.team.ask(query::Files { session }).await? })))
}

pub(crate) async fn download(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Path(path): Path<BTreeMap<String, String>>,
) -> Result<Response, ApiError> {
    let part = |name: &str| path.get(name).cloned().unwrap_or_default();
    let (session, file) = (web.find_session(&part("session")).await?, part("file"));
    let permit = Arc::clone(&web.files).acquire_owned().await;
    let bytes = match web.team.read_file(session, file.clone()).await {
        Err(RuntimeError::File(words)) => return Err(ApiError::not_found(words)),
        read => read?,
    };
    let name = encoded(file.rsplit('/').next().unwrap_or_default());
    let headers: [(HeaderName, String); 3] = [
        (header::CONTENT_LENGTH, bytes.len().to_string()),
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename*=UTF-8''{name}")),
    ];
    Ok((headers, sent_in_pieces(bytes.into(), permit.ok())).into_response())
}

/// A body that holds its permit until the last piece is sent: a slow reader keeps the file in memory so long.
fn sent_in_pieces(bytes: Bytes, permit: Option<OwnedSemaphorePermit>) -> Body {
    Body::from_stream(stream::unfold((bytes, permit), |(mut rest, permit)| async move {
        let piece = rest.split_to(rest.len().min(PIECE_BYTES));
        (!piece.is_empty()).then_some((Ok::<_, Infallible>(piece), (rest, permit)))
    }))
}

/// A name for a header: bytes that are not plain are written as `%XX`.
fn encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
