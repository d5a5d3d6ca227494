//! One WebSocket with the same events, commands and queries.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use http::StatusCode;
use max_team_core::limits::WEB_BODY_BYTES_MAX;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::Web;
use super::access::Visitor;
use super::body::fingerprint;
use super::error::ApiError;
use super::events::mark;
use super::extract::{OrderKey, read_json};
use super::keys::KeptAnswer;
use super::routes::COMMANDS;
use super::team::read_command;
use super::watcher::{WatchItem, Watcher};

/// A message of the client: one of `subscribe`, `command` and `query`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SocketRequest {
    /// Repeated in the answer.
    #[serde(default)]
    id: Value,
    subscribe: Option<Subscription>,
    command: Option<Value>,
    /// The idempotency key of the command.
    key: Option<String>,
    query: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subscription {
    session: Option<String>,
    agent: Option<String>,
    from: Option<String>,
}

type SocketWatch = Option<(Watcher, OwnedSemaphorePermit)>;

pub(crate) async fn socket(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    upgrade: WebSocketUpgrade,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.max_message_size(WEB_BODY_BYTES_MAX).max_frame_size(WEB_BODY_BYTES_MAX);
    Ok(upgrade.on_upgrade(move |socket| converse(web, visitor, socket)))
}

async fn converse(web: Arc<Web>, visitor: Visitor, mut socket: WebSocket) {
    let mut watching: SocketWatch = None;
    let closing = web.closing.clone();
    loop {
        let sent = tokio::select! {
            () = closing.cancelled() => return,
            received = socket.recv() => match received {
                Some(Ok(Message::Text(text))) => {
                    let answer = web.answer(&visitor, &text, &mut watching).await;
                    socket.send(Message::text(answer.to_string())).await
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => Ok(()),
            },
            watched = next(&mut watching) => match watched {
                Some(WatchItem::Frame(frame)) => socket.send(Message::text(format!("{{\"event\":{}}}", frame.data()))).await,
                Some(WatchItem::Ready(position)) => {
                    let ready = json!({ "ready": { "position": position.to_string() } });
                    socket.send(Message::text(ready.to_string())).await
                }
                None => return,
            },
        };
        if sent.is_err() {
            return;
        }
    }
}

/// The next event of the subscription; never, without one.
async fn next(watching: &mut SocketWatch) -> Option<WatchItem> {
    match watching {
        Some((watcher, _)) => watcher.next().await,
        None => std::future::pending().await,
    }
}

impl Web {
    async fn answer(&self, visitor: &Visitor, text: &str, watching: &mut SocketWatch) -> Value {
        let asked: SocketRequest = match read_json(text.as_bytes()) {
            Ok(asked) => asked,
            Err(error) => return json!({ "id": null, "error": ApiError::bad_request(error.to_string()).object() }),
        };
        let id = asked.id.clone();
        // A token that ended meanwhile ends the rights of the connection with it.
        let is_known = self.tokens.is_alive(&visitor.token, max_team_runtime::now_ms());
        let done = if is_known { self.do_asked(visitor, asked, watching).await } else { Err(ApiError::unauthorized()) };
        match done {
            Ok(value) => json!({ "id": id, "ok": value }),
            Err(error) => json!({ "id": id, "error": error.object() }),
        }
    }

    /// Carries a command out: once, if it has a key.
    async fn command_once(&self, visitor: &Visitor, command: Value, key: Option<String>) -> Result<Value, ApiError> {
        let Some(key) = key else {
            let id = self.carry_out(visitor, OrderKey::fresh(), read_command(visitor, command)?).await?;
            return Ok(json!({ "id": id }));
        };
        let key = OrderKey::of(visitor, &key)?;
        let asked = fingerprint("POST", COMMANDS, command.to_string().as_bytes());
        let place = self.keys.enter(key).await;
        if place.answer(asked)?.is_some() {
            return Ok(json!({ "id": key.0 }));
        }
        let answer = json!({ "id": self.carry_out(visitor, key, read_command(visitor, command)?).await? });
        place.keep(&KeptAnswer { asked, status: StatusCode::OK.as_u16(), body: Some(answer.to_string()) });
        Ok(answer)
    }

    async fn do_asked(
        &self,
        visitor: &Visitor,
        asked: SocketRequest,
        watching: &mut SocketWatch,
    ) -> Result<Value, ApiError> {
        match asked {
            SocketRequest { subscribe: Some(wanted), command: None, query: None, .. } => {
                let scope = self.scope(wanted.session.as_deref(), wanted.agent.as_deref()).await?;
                let from = wanted.from.as_deref().map(mark).transpose()?;
                // The place of the old subscription is free for the new one.
                *watching = None;
                *watching = Some(self.watch(scope, from)?);
                Ok(json!({}))
            }
            SocketRequest { command: Some(command), subscribe: None, query: None, key, .. } => {
                self.command_once(visitor, command, key).await
            }
            SocketRequest { query: Some(query), subscribe: None, command: None, .. } => {
                let query = serde_json::from_value(query);
                self.look_up(query.map_err(|error| ApiError::bad_request(error.to_string()))?).await
            }
            _ => Err(ApiError::bad_request("a message has one of `subscribe`, `command` and `query`")),
        }
    }
}
