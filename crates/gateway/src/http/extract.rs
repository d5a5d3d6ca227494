//! What requests carry: bodies, parameters, ids and idempotency keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::StatusCode;
use http::request::Parts;
use max_team_core::hash::Hash;
use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::limits::WEB_KEY_CHARS_MAX;
use max_team_runtime::{Command, new_id};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Web;
use super::access::Visitor;
use super::error::ApiError;

/// A JSON body. An empty one is an empty object.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Web>> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, web: &Arc<Web>) -> Result<Self, ApiError> {
        let cut = |_| ApiError::bad_request("the body was not sent as a whole");
        let bytes = Bytes::from_request(request, web).await.map_err(cut)?;
        let bytes: &[u8] = if bytes.trim_ascii().is_empty() { b"{}" } else { &bytes };
        let wrong = |error| ApiError::bad_request(format!("the body is not as expected: {error}"));
        Ok(Self(read_json(bytes).map_err(wrong)?))
    }
}

/// Reads JSON, in which `5.0` is the whole number 5: some languages write it so.
pub(crate) fn read_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, serde_json::Error> {
    let mut value = serde_json::from_slice(text)?;
    make_whole(&mut value);
    serde_json::from_value(value)
}

fn make_whole(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(members) => members.values_mut().for_each(make_whole),
        Value::Number(number) if number.is_f64() => {
            let text = number.to_string();
            if let Some(whole) = text.strip_suffix(".0").and_then(|digits| digits.parse::<i64>().ok()) {
                *value = json!(whole);
            }
        }
        _ => {}
    }
}

/// A write to the session in the path.
pub(crate) struct SessionOrder {
    pub(crate) web: Arc<Web>,
    pub(crate) visitor: Visitor,
    pub(crate) key: OrderKey,
    pub(crate) session: SessionId,
}

impl FromRequestParts<Arc<Web>> for SessionOrder {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<Web>) -> Result<Self, ApiError> {
        let visitor = Visitor::from_request_parts(parts, web).await?;
        let key = OrderKey::from_request_parts(parts, web).await?;
        let Path(path) = Path::<BTreeMap<String, String>>::from_request_parts(parts, web).await?;
        let session = web.find_session(path.get("session").map_or("", String::as_str)).await?;
        Ok(Self { web: Arc::clone(web), visitor, key, session })
    }
}

impl SessionOrder {
    /// Carries a command for the session out.
    pub(crate) async fn carry_out(self, command: Command) -> Result<(StatusCode, Json<Value>), ApiError> {
        let id = self.web.carry_out(&self.visitor, self.key, command).await?;
        Ok((StatusCode::ACCEPTED, Json(json!({ "id": id }))))
    }
}

/// The parameters in the path.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Web>> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<Web>) -> Result<Self, ApiError> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, web).await;
        read.map(|path| Self(path.0)).map_err(|error| ApiError::bad_request(error.body_text()))
    }
}

/// The page size that the client asks for; an error outside 1 to `max`.
pub(crate) fn page_limit(given: Option<usize>, usual: usize, max: usize) -> Result<usize, ApiError> {
    match given {
        None => Ok(usual),
        Some(limit) if (1..=max).contains(&limit) => Ok(limit),
        Some(limit) => Err(ApiError::bad_request(format!("`limit` is {limit}; it is a number from 1 to {max}"))),
    }
}

/// The parameters behind the question mark.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Web>> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _web: &Arc<Web>) -> Result<Self, ApiError> {
        let read = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        read.map(|query| Self(query.0)).map_err(|error| ApiError::bad_request(error.body_text()))
    }
}

/// The key of an order: the one that the client gives, so that the order is carried out once, or a new one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderKey(pub(crate) EnvelopeId);

impl OrderKey {
    /// The key for a text that a visitor chose. Keys of different visitors never meet.
    pub(crate) fn of(visitor: &Visitor, text: &str) -> Result<Self, ApiError> {
        let is_plain = text.chars().all(|letter| letter.is_ascii_graphic());
        if text.is_empty() || text.len() > WEB_KEY_CHARS_MAX || !is_plain {
            let words = format!(
                "an idempotency key has 1 to {WEB_KEY_CHARS_MAX} characters: letters, digits and signs of ASCII, no blanks"
            );
            return Err(ApiError::bad_request(words));
        }
        let fields = ["web", &visitor.principal.user, text].map(str::as_bytes);
        Ok(Self(EnvelopeId::new(Hash::of_fields(&fields).uuid())))
    }

    /// A key that no other order has.
    pub(crate) fn fresh() -> Self {
        Self(EnvelopeId::new(new_id()))
    }
}

impl FromRequestParts<Arc<Web>> for OrderKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<Web>) -> Result<Self, ApiError> {
        let Some(given) = parts.headers.get("idempotency-key").cloned() else { return Ok(Self::fresh()) };
        let visitor = Visitor::from_request_parts(parts, web).await?;
        Self::of(&visitor, given.to_str().map_err(|_| ApiError::bad_request("the idempotency key is no text"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_may_have_a_fraction_of_zero() {
        let read = |text: &str| read_json::<Value>(text.as_bytes()).unwrap();
        assert_eq!(read(r#"{"a": [5.0, -0.0, 5.5, "5.0"]}"#), json!({ "a": [5, 0, 5.5, "5.0"] }));
        assert_eq!(read("1e300"), json!(1e300), "too large for a whole number");
        assert_eq!(read_json::<u64>(b"25346.0").unwrap(), 25_346);
    }
}
