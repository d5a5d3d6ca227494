//! Events as `text/event-stream`, and pages of stored events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use max_team_core::id::AgentId;
use max_team_core::limits::WEB_EVENTS_PAGE_MAX;
use max_team_runtime::{Mark, Scope};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::Web;
use super::access::Visitor;
use super::error::ApiError;
use super::extract::{Params, Path, page_limit};
use super::watcher::Watcher;

/// Time without an event after which a comment is sent, so that proxies and clients know that the connection lives.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Events that are written at once.
const WRITTEN_MAX: usize = 256;
/// Events of a page, if the client names no number.
const PAGE_DEFAULT: usize = 1_000;
/// How soon a browser connects again.
const BEGINNING: &[u8] = b"retry: 1000\n\n";

#[derive(Debug, Deserialize)]
pub(crate) struct EventsQuery {
    session: Option<String>,
    agent: Option<String>,
    from: Option<String>,
    limit: Option<usize>,
}

impl Web {
    /// The events that a client means.
    pub(crate) async fn scope(&self, session: Option<&str>, agent: Option<&str>) -> Result<Scope, ApiError> {
        let Some(session) = session else {
            return match agent {
                None => Ok(Scope::All),
                Some(_) => Err(ApiError::bad_request("`agent` needs `session`")),
            };
        };
        let session = self.find_session(session).await?;
        let agent =
            agent.map(|agent| agent.parse::<AgentId>().map_err(|error| ApiError::bad_request(error.to_string())));
        Ok(agent.transpose()?.map_or(Scope::Session(session), |agent| Scope::Agent(session, agent)))
    }

    /// A watcher, and its place among those that are allowed.
    pub(crate) fn watch(&self, scope: Scope, from: Option<Mark>) -> Result<(Watcher, OwnedSemaphorePermit), ApiError> {
        let place = Arc::clone(&self.watchers).try_acquire_owned();
        let place = place.map_err(|_| ApiError::unavailable("too many watchers: close some, or try again later"))?;
        Ok((Watcher::new(&self.hub, &self.team, scope, from)?, place))
    }
}

pub(crate) fn mark(text: &str) -> Result<Mark, ApiError> {
    text.trim().parse().map_err(|error: max_team_runtime::stream::NoMark| ApiError::bad_request(error.to_string()))
}

/// A connection that follows the stream.
struct Watching {
    watcher: Watcher,
    _place: OwnedSemaphorePermit,
    closing: CancellationToken,
    is_new: bool,
}

impl Watching {
    /// The next bytes to send; `None` when the server ends.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_new {
            self.is_new = false;
            return Some(Bytes::from_static(BEGINNING));
        }
        let first = tokio::select! {
            first = tokio::time::timeout(HEARTBEAT, self.watcher.next()) => first,
            () = self.closing.cancelled() => return None,
        };
        let Ok(first) = first else { return Some(Bytes::from_static(b": heartbeat\n\n")) };
        let first = first?.text();
        let more = self.watcher.more(WRITTEN_MAX);
        if more.is_empty() {
            return Some(first);
        }
        let mut all = first.to_vec();
        more.iter().for_each(|watched| all.extend_from_slice(&watched.text()));
        Some(all.into())
    }
}

pub(crate) async fn events(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    headers: HeaderMap,
    Params(asked): Params<EventsQuery>,
) -> Result<Response, ApiError> {
    let scope = web.scope(asked.session.as_deref(), asked.agent.as_deref()).await?;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).filter(|last| !last.is_empty());
    let from = last.or(asked.from.as_deref()).map(mark).transpose()?;
    let (watcher, place) = web.watch(scope, from)?;
    let watching = Watching { watcher, _place: place, closing: web.closing.clone(), is_new: true };
    let bytes = stream::unfold(watching, |mut watching| async move {
        watching.next().await.map(|bytes| (Ok::<_, Infallible>(bytes), watching))
    });
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))];
    // Buffering proxies would keep events back.
    let unbuffered = [("x-accel-buffering", "no")];
    Ok((kind, unbuffered, axum::body::Body::from_stream(bytes)).into_response())
}

/// A page of the stored events of a session.
pub(crate) async fn stored(
    State(web): State<Arc<Web>>,
    _visitor: Visitor,
    Path(session): Path<String>,
    Params(asked): Params<EventsQuery>,
) -> Result<Json<Value>, ApiError> {
    let scope = web.scope(Some(&session), asked.agent.as_deref()).await?;
    let from = asked.from.as_deref().map(mark).transpose()?.unwrap_or_default();
    let limit = page_limit(asked.limit, PAGE_DEFAULT, WEB_EVENTS_PAGE_MAX)?;
    let mut reader = web.team.log(scope, from)?;
    let mut events = Vec::new();
    while let Some(event) = reader.try_next()? {
        events.push(event);
        if events.len() >= limit {
            break;
        }
        if events.len() % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let next = (events.len() >= limit).then(|| events.last().map(|event| event.mark().to_string())).flatten();
    let mut page = json!({ "events": events });
    if let (Value::Object(page), Some(next)) = (&mut page, next) {
        page.insert("next".to_owned(), json!(next));
    }
    Ok(Json(page))
}
