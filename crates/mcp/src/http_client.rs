//! Sends the protocol's messages over HTTP. The protocol's library reads a whole answer into memory; here every answer is bounded.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use max_team_core::limits::MCP_MESSAGE_BYTES_MAX;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use crate::http_fault::HttpFault;
use crate::login::Login;
use crate::process::ExitReason;
use crate::server_end::ServerEnd;
use crate::sse::EventReader;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

type Failure = StreamableHttpError<HttpFault>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// Requests to one server.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    client: reqwest::Client,
    /// The user's login, if the entry brings none.
    login: Option<Login>,
    /// Why a stream of events was ended: the library then closes the connection without a reason.
    ended: ExitReason,
}

impl HttpClient {
    pub(crate) fn new(client: reqwest::Client, login: Option<Login>, ended: ExitReason) -> Self {
        Self { client, login, ended }
    }

    /// Sends one request. If the server no longer accepts its token, the token is renewed and the request sent once more.
    pub(crate) async fn send(
        &self,
        method: Method,
        uri: &str,
        headers: Headers,
        body: Option<Vec<u8>>,
    ) -> Result<Response, HttpFault> {
        let token = match &self.login {
            Some(login) => login.token(uri).await?,
            None => None,
        };
        let response = self.send_with(token.as_deref(), method.clone(), uri, &headers, body.clone()).await?;
        match (&self.login, token) {
            (Some(login), Some(token)) if response.status() == StatusCode::UNAUTHORIZED => {
                let renewed = login.renew(&token).await?;
                self.send_with(Some(&renewed), method, uri, &headers, body).await
            }
            _ => Ok(response),
        }
    }

    async fn send_with(
        &self,
        token: Option<&str>,
        method: Method,
        uri: &str,
        headers: &Headers,
        body: Option<Vec<u8>>,
    ) -> Result<Response, HttpFault> {
        let mut request = self.client.request(method, uri);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, JSON).body(body);
        }
        Ok(request.send().await?)
    }

    async fn post(
        &self,
        uri: &str,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        mut headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let has_session = session.is_some();
        add(&mut headers, SESSION, session.as_deref());
        let body = serde_json::to_vec(&message)?;
        let response = self.send(Method::POST, uri, headers, Some(body)).await.map_err(Failure::Client)?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(Failure::SessionExpired);
        }
        if !status.is_success() {
            return refused(response, &message, has_session).await;
        }
        let session = response.headers().get(&SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        match content_type(&response) {
            kind if kind.starts_with(EVENTS) => Ok(StreamableHttpPostResponse::Sse(self.events(response), session)),
            kind if kind.starts_with(JSON) => {
                let body = body_of(response).await.map_err(Failure::Client)?;
                match serde_json::from_slice(&body) {
                    Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                    // A notification needs no answer, so an odd one does no harm.
                    Err(_) if !is_request => Ok(StreamableHttpPostResponse::Accepted),
                    Err(_) => Err(Failure::Client(HttpFault::Content)),
                }
            }
            _ if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            kind => Err(Failure::Client(HttpFault::ContentType(crate::clean::text(&kind, 60)))),
        }
    }

    async fn listen(
        &self,
        uri: &str,
        session: Option<Arc<str>>,
        last: Option<String>,
        mut headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
        add(&mut headers, SESSION, session.as_deref());
        add(&mut headers, LAST_EVENT, last.as_deref());
        let response = self.send(Method::GET, uri, headers, None).await.map_err(Failure::Client)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(Failure::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(Failure::Client(fault_of(&response))),
            _ if content_type(&response).starts_with(EVENTS) => Ok(self.events(response)),
            _ => Err(Failure::ServerDoesNotSupportSse),
        }
    }

    /// The events of a response. An event that is too long ends the stream with an error.
    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let ended = self.ended.clone();
        let pieces = response.bytes_stream().map_err(HttpFault::from).boxed();
        let read = stream::unfold((pieces, Some(EventReader::default())), move |(mut pieces, reader)| {
            let ended = ended.clone();
            async move {
                let mut reader = reader?;
                let found = pieces.next().await?.and_then(|piece| reader.push(&piece));
                let reader = found.is_ok().then_some(reader);
                let events = match found {
                    Ok(events) => events.into_iter().map(|event| Ok(event.into())).collect::<Vec<_>>(),
                    Err(fault) => {
                        if fault == HttpFault::TooLong {
                            ended.set(ServerEnd::LongMessage { mb: MCP_MESSAGE_BYTES_MAX >> 20 });
                        }
                        vec![Err(SseError::Body(Box::new(fault)))]
                    }
                };
                Some((stream::iter(events), (pieces, reader)))
            }
        });
        read.flatten().boxed()
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post(&uri, message, session_id, custom_headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        mut custom_headers: Headers,
    ) -> Result<(), Failure> {
        add(&mut custom_headers, SESSION, Some(&session_id));
        let sent = self.send(Method::DELETE, &uri, custom_headers, None).await.map_err(Failure::Client)?;
        match sent.status() {
            StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status if status.is_success() => Ok(()),
            _ => Err(Failure::Client(fault_of(&sent))),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.listen(&uri, session_id, last_event_id, custom_headers).await
    }
}

fn add(headers: &mut Headers, name: HeaderName, value: Option<&str>) {
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(name, value);
    }
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    String::from_utf8_lossy(value).to_ascii_lowercase()
}

pub(crate) fn fault_of(response: &Response) -> HttpFault {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    HttpFault::of_status(response.status().as_u16(), response.url(), location)
}

/// The whole body, if it is no longer than a message may be.
pub(crate) async fn body_of(response: Response) -> Result<Vec<u8>, HttpFault> {
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        if body.len() + piece.len() > MCP_MESSAGE_BYTES_MAX {
            return Err(HttpFault::TooLong);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// A status that is no success. It may carry an error of the protocol, which says more than the status.
async fn refused(
    response: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, Failure> {
    let (status, fault) = (response.status(), fault_of(&response));
    if matches!(status.as_u16(), 300..=399 | 401 | 403 | 429) {
        return Err(Failure::Client(fault));
    }
    let is_json = content_type(&response).starts_with(JSON);
    let body = if is_json { body_of(response).await.map_err(Failure::Client)? } else { Vec::new() };
    let told = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(ServerJsonRpcMessage::Error(told)) => Some(told),
        _ => None,
    };
    // A server of the older protocol refuses `server/discover`, often without the request's id: the library tries `initialize`
    // once it has an answer under that id.
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !has_session
        && status.is_client_error()
    {
        let error = told.map_or_else(|| ErrorData::invalid_request(fault.to_string(), None), |told| told.error);
        return Ok(StreamableHttpPostResponse::Json(
            ServerJsonRpcMessage::error(error, Some(request.id.clone())),
            None,
        ));
    }
    match (told, message) {
        // Under the request's id, which servers often leave out: otherwise the request would wait until its time is over.
        (Some(told), ClientJsonRpcMessage::Request(request)) => {
            let error = ServerJsonRpcMessage::error(told.error, Some(request.id.clone()));
            Ok(StreamableHttpPostResponse::Json(error, None))
        }
        _ => Err(Failure::Client(fault)),
    }
}
