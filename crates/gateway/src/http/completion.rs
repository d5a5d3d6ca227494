//! The team as a model of an OpenAI-compatible API: `max` is the lead with its team, `max/NAME` one agent alone.
//!
//! A request without `user` is a conversation of its own, and its earlier messages are told as text; requests with the same `user` continue
//! one session. A question for a person is told with a link, because no client of this API can answer it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{StatusCode, header};
use max_team_core::event::LaunchFlags;
use max_team_core::hash::Hash;
use max_team_core::id::SessionId;
use max_team_core::limits::WEB_COMPLETION_MS_MAX;
use max_team_runtime::stream::ApprovalStep;
use max_team_runtime::{Command, Scope, StreamEvent, What, new_id, now_ms, query};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::Web;
use super::access::Visitor;
use super::body::BodyPermit;
use super::error::ApiError;
use super::extract::{Body, OrderKey};
use super::prompt::{ChatMessage, Prompt};
use super::watcher::{WatchItem, Watcher};

/// The model that stands for the lead with its team.
const LEAD: &str = "max";

#[derive(Debug, Deserialize)]
pub(crate) struct CompletionRequest {
    model: String,
    messages: Vec<ChatMessage>,
    #[serde(default)]
    stream: bool,
    user: Option<String>,
}

pub(crate) async fn models(State(web): State<Arc<Web>>, _visitor: Visitor) -> Result<Json<Value>, ApiError> {
    let agents = web.agent_names()?;
    let names = std::iter::once(LEAD.to_owned()).chain(agents.into_iter().map(|name| format!("{LEAD}/{name}")));
    let model = |name: String| json!({ "id": name, "object": "model", "created": 0, "owned_by": "max-team" });
    Ok(Json(json!({ "object": "list", "data": names.map(model).collect::<Vec<_>>() })))
}

pub(crate) async fn completions(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    key: OrderKey,
    permit: BodyPermit,
    Body(CompletionRequest { model, messages, stream, user }): Body<CompletionRequest>,
) -> Result<Response, ApiError> {
    let agent = match model.split_once('/') {
        None if model == LEAD => None,
        Some((LEAD, agent)) if web.agent_names()?.iter().any(|name| name == agent) => Some(agent.to_owned()),
        _ => return Err(ApiError::not_found(format!("there is no model `{}`: see /v1/models", model))),
    };
    let prompt = Prompt::read(&messages, user.is_some())?;
    drop(messages);
    let name = match &user {
        Some(user) => Hash::of_fields(&[b"user", model.as_bytes(), user.as_bytes()]).uuid(),
        None => key.0.uuid(),
    };
    let choice = LaunchFlags { agent, ..LaunchFlags::default() };
    let session = web.sessions.create(&visitor.principal, &name.simple().to_string(), &choice, true).await?;
    if web.team.ask(query::Status { session }).await?.is_busy() {
        return Err(ApiError::conflict("the team still works on the last request of this `user`"));
    }
    let text = prompt.keep(&web, &visitor, session).await?;
    // The pictures are on the disk; the answer may take long.
    drop(permit);
    let from = web.team.ask(query::Position {}).await?;
    let (watcher, place) = web.watch(Scope::Session(session), Some(from))?;
    web.carry_out(&visitor, key, Command::Say { session, text }).await?;
    let answering = Answering::new(&web, watcher, place, session, model);
    if stream {
        return Ok(streamed(answering));
    }
    answering.whole().await
}

impl Web {
    /// The members and experts that can be talked to alone; none in a demo.
    fn agent_names(&self) -> Result<Vec<String>, ApiError> {
        let open = self.new_session()?;
        let team = open.team.filter(|_| self.about.demo.is_none());
        let specs = team.into_iter().flat_map(|team| team.members.into_iter().chain(team.experts));
        Ok(specs.map(|spec| spec.definition.name.clone()).collect())
    }
}

/// A piece of the answer.
enum Piece {
    Text(String),
    /// The end, and why it is one.
    End(&'static str),
    Failed(String),
}

/// An answer that is being given.
struct Answering {
    watcher: Watcher,
    _place: OwnedSemaphorePermit,
    session_url: String,
    id: String,
    model: String,
    created: i64,
    /// The text of the present model call that was passed on.
    sent: String,
    iteration: u32,
    tokens: (u64, u64),
    queue: VecDeque<Piece>,
    is_over: bool,
}

impl Answering {
    fn new(web: &Web, watcher: Watcher, place: OwnedSemaphorePermit, session: SessionId, model: String) -> Self {
        Self {
            watcher,
            _place: place,
            session_url: format!("{}/#/s/{session}", web.url),
            id: format!("chatcmpl-{}", new_id().simple()),
            model,
            created: now_ms() / 1_000,
            sent: String::new(),
            iteration: 0,
            tokens: (0, 0),
            queue: VecDeque::new(),
            is_over: false,
        }
    }

    /// The next piece; `None` after the end.
    async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.queue.pop_front() {
                return Some(piece);
            }
            if self.is_over {
                return None;
            }
            let late = Duration::from_millis(WEB_COMPLETION_MS_MAX);
            match tokio::time::timeout(late, self.watcher.next()).await {
                Ok(Some(WatchItem::Frame(frame))) => {
                    if let Ok(event) = serde_json::from_str::<StreamEvent>(frame.data()) {
                        self.take(event);
                    }
                }
                Ok(Some(WatchItem::Ready(_))) => {}
                Ok(None) => self.fail("the server ends: ask again".to_owned()),
                Err(_) => self.fail("the team takes too long: look at the session in the browser".to_owned()),
            }
        }
    }

    fn take(&mut self, event: StreamEvent) {
        let is_lead = event.agent.as_ref().is_some_and(|who| who.lead);
        match event.what {
            What::Budget { usage: Some(usage), .. } => {
                self.tokens.0 += usage.input + usage.cache_read + usage.cache_write;
                self.tokens.1 += usage.output;
            }
            What::ContentDelta { iteration, delta, whole } if is_lead => {
                let rest = if whole { delta.strip_prefix(&self.sent).unwrap_or_default().to_owned() } else { delta };
                self.pass_on(iteration, &rest);
            }
            What::Final { iteration, response, end, .. } if is_lead => {
                let has_part = self.iteration == iteration && response.starts_with(&self.sent);
                let rest =
                    if has_part { response.get(self.sent.len()..).unwrap_or_default().to_owned() } else { response };
                self.pass_on(iteration, &rest);
                if end == "proposed" {
                    self.ask_person();
                }
                self.end();
            }
            What::Error { message, done: true, .. } if is_lead => self.fail(message.to_string()),
            What::Approval { state: ApprovalStep::Asked, plan: None, message, .. } => {
                self.queue.push_back(Piece::Text(format!("\n\n{message}")));
                self.ask_person();
                self.end();
            }
            _ => {}
        }
    }

    fn pass_on(&mut self, iteration: u32, text: &str) {
        if iteration != self.iteration {
            // Text between tool calls is a paragraph of its own.
            if !self.sent.is_empty() {
                self.queue.push_back(Piece::Text("\n\n".to_owned()));
            }
            self.iteration = iteration;
            self.sent.clear();
        }
        if !text.is_empty() {
            self.sent.push_str(text);
            self.queue.push_back(Piece::Text(text.to_owned()));
        }
    }

    fn ask_person(&mut self) {
        let words = format!("\n\nThis waits for the user's decision: {}", self.session_url);
        self.queue.push_back(Piece::Text(words));
    }

    fn end(&mut self) {
        self.queue.push_back(Piece::End("stop"));
        self.is_over = true;
    }

    fn fail(&mut self, message: String) {
        self.queue.push_back(Piece::Failed(message));
        self.is_over = true;
    }

    async fn whole(mut self) -> Result<Response, ApiError> {
        let mut text = String::new();
        let mut finish = "stop";
        while let Some(piece) = self.next().await {
            match piece {
                Piece::Text(more) => text.push_str(&more),
                Piece::End(reason) => finish = reason,
                Piece::Failed(message) => {
                    return Err(ApiError::new(StatusCode::BAD_GATEWAY, "team_failed", message));
                }
            }
        }
        let (input, output) = self.tokens;
        Ok(Json(json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": finish }],
            "usage": { "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output },
        }))
        .into_response())
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> String {
        let chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        });
        format!("data: {chunk}\n\n")
    }

    fn text(&self, piece: Piece) -> String {
        match piece {
            Piece::Text(text) => self.chunk(&json!({ "content": text }), None),
            Piece::End(reason) => self.chunk(&json!({}), Some(reason)) + "data: [DONE]\n\n",
            Piece::Failed(message) => {
                let error = json!({ "error": { "code": "team_failed", "message": message } });
                format!("data: {error}\n\ndata: [DONE]\n\n")
            }
        }
    }
}

fn streamed(answering: Answering) -> Response {
    let begin = answering.chunk(&json!({ "role": "assistant", "content": "" }), None);
    let pieces = stream::unfold((Some(begin), answering), |(begin, mut answering)| async move {
        let text = match begin {
            Some(begin) => begin,
            None => {
                let piece = answering.next().await?;
                answering.text(piece)
            }
        };
        Some((Ok::<_, Infallible>(Bytes::from(text)), (None, answering)))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], axum::body::Body::from_stream(pieces)).into_response()
}
