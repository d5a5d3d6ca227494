//! The body of a request: read within its bounds, and answered once per idempotency key.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::request::Parts;
use max_team_core::hash::Hash;
use max_team_core::limits::{WEB_BODY_BYTES_MAX, WEB_FILE_MS_MAX};
use max_team_core::message::Role;
use max_team_runtime::require;
use tokio::sync::OwnedSemaphorePermit;

use super::Web;
use super::access::Visitor;
use super::error::ApiError;
use super::extract::OrderKey;
use super::keys::KeptAnswer;

/// How the body of a route is received.
#[derive(Clone)]
pub(crate) struct BodyRules {
    pub(crate) web: Arc<Web>,
    /// Whether the route needs no login.
    pub(crate) is_open: bool,
    pub(crate) takes_key: bool,
    pub(crate) bytes_max: usize,
}

/// The permit under which a large body is held in memory. A handler takes it for as long as it needs the body.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyPermit {
    _permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl FromRequestParts<Arc<Web>> for BodyPermit {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _web: &Arc<Web>) -> Result<Self, ApiError> {
        Ok(parts.extensions.remove::<Self>().unwrap_or_default())
    }
}

/// Reads the body before the handler runs.
pub(crate) async fn receive(State(rules): State<BodyRules>, request: Request, next: Next) -> Response {
    received(&rules, request, next).await.unwrap_or_else(ApiError::into_response)
}

async fn received(rules: &BodyRules, request: Request, next: Next) -> Result<Response, ApiError> {
    let BodyRules { web, is_open, takes_key, bytes_max } = rules;
    let (mut parts, body) = request.into_parts();
    if !is_open {
        let visitor = Visitor::from_request_parts(&mut parts, web).await?;
        if *takes_key {
            require(&visitor.principal, Role::Member)?;
        }
    }
    // Before the body and its permit: repeated requests that wait for the first one hold no memory.
    let place = match *takes_key && parts.headers.contains_key("idempotency-key") {
        true => Some(web.keys.enter(OrderKey::from_request_parts(&mut parts, web).await?).await),
        false => None,
    };
    let is_large = *bytes_max > WEB_BODY_BYTES_MAX;
    let permit = if is_large { Arc::clone(&web.files).acquire_owned().await.ok() } else { None };
    parts.extensions.insert(BodyPermit { _permit: permit.map(Arc::new) });
    let bytes = read(body, *bytes_max).await?;
    let Some(place) = place else { return Ok(next.run(Request::from_parts(parts, Body::from(bytes))).await) };
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    let asked = fingerprint(parts.method.as_str(), target, &bytes);
    if let Some(kept) = place.answer(asked)? {
        return kept.into_response();
    }
    // A write that has begun is finished and its answer kept, even if the client is gone.
    let run = tokio::spawn(async move {
        let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
        if !response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        // A stream has no bound, and cannot be repeated.
        let is_bounded = body.size_hint().upper().is_some_and(|most| most <= WEB_BODY_BYTES_MAX as u64);
        let status = head.status.as_u16();
        if !is_bounded {
            place.keep(&KeptAnswer { asked, status, body: None });
            return Ok(Response::from_parts(head, body));
        }
        let text = to_bytes(body, WEB_BODY_BYTES_MAX).await.map_err(|error| ApiError::internal(error.to_string()))?;
        place.keep(&KeptAnswer { asked, status, body: Some(String::from_utf8_lossy(&text).into_owned()) });
        Ok(Response::from_parts(head, Body::from(text)))
    });
    run.await.map_err(|crash| ApiError::internal(crash.to_string()))?
}

async fn read(body: Body, bytes_max: usize) -> Result<Bytes, ApiError> {
    let large = |_| {
        let words = format!("the body has more than {bytes_max} bytes, or was not sent as a whole");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", words)
    };
    let late = |_| ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body came too slowly");
    let received = tokio::time::timeout(Duration::from_millis(WEB_FILE_MS_MAX), to_bytes(body, bytes_max)).await;
    received.map_err(late)?.map_err(large)
}

/// What a request asks for: a repeated request has the same bytes.
pub(crate) fn fingerprint(method: &str, target: &str, body: &[u8]) -> Hash {
    Hash::of_fields(&[method.as_bytes(), target.as_bytes(), body])
}
