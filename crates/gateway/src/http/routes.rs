//! All routes: the table from which the server and the OpenAPI document are made.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use max_team_core::limits::{WEB_BODY_BYTES_MAX, WEB_FILE_BYTES_MAX};

use super::body::BodyRules;
use super::{
    Web, access, assets, body, completion, events, files, folder_routes, forks, inbox, memory_routes, metrics, openapi,
    plans, session_routes, team, worktree_routes, ws,
};

/// The route that carries out any command.
pub(crate) const COMMANDS: &str = "/api/v1/commands";
/// Writes without an idempotency key: they change nothing, or begin and end a login.
const KEYLESS: [&str; 4] = ["/api/v1/queries", "/api/v1/permissions/why", "/api/v1/login", "/api/v1/logout"];

/// A route, with what the OpenAPI document says about it.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// What it does, in a line.
    pub(crate) about: &'static str,
    /// Whether it needs a login.
    pub(crate) is_open: bool,
    /// Bytes that its body may have.
    bytes_max: usize,
    handler: MethodRouter<Arc<Web>>,
}

impl Route {
    fn new<H, T>(method: &'static str, path: &'static str, about: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Web>>,
        T: 'static,
    {
        let filter = match method {
            "post" => MethodFilter::POST,
            "delete" => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        Self { method, path, about, is_open: false, bytes_max: WEB_BODY_BYTES_MAX, handler: on(filter, handler) }
    }

    fn open(self) -> Self {
        Self { is_open: true, ..self }
    }

    /// With a body of so many bytes.
    fn takes(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// Whether a repeated request with the same idempotency key is answered as before.
    pub(crate) fn takes_key(&self) -> bool {
        self.method != "get" && !KEYLESS.contains(&self.path)
    }

    /// The handler, behind the reception of the body.
    fn received(self, web: &Arc<Web>) -> MethodRouter<Arc<Web>> {
        if self.method == "get" {
            return self.handler;
        }
        let (is_open, takes_key) = (self.is_open, self.takes_key());
        let rules = BodyRules { web: Arc::clone(web), is_open, takes_key, bytes_max: self.bytes_max };
        self.handler.layer(axum::middleware::from_fn_with_state(rules, body::receive))
    }
}

/// The routes of the team.
pub(crate) fn table() -> Vec<Route> {
    let mut table = vec![
        Route::new("get", "/health", "Whether the server runs", metrics::health).open(),
        Route::new("get", "/ready", "Whether the server can answer", metrics::ready).open(),
        Route::new("get", "/metrics", "Figures in the text format of Prometheus", metrics::metrics),
        Route::new("get", "/api/v1/openapi.json", "This document", openapi::document),
        Route::new("post", "/api/v1/login", "Log a browser in with a one-time code or a token", access::login).open(),
        Route::new("post", "/api/v1/logout", "End the login of a browser", access::logout),
        Route::new("get", "/api/v1/me", "Who you are, and what the server works on", access::me),
        Route::new("post", COMMANDS, "Carry out any command of the team", team::command),
        Route::new("post", "/api/v1/queries", "Answer any query about the team", team::queries),
        Route::new("get", "/api/v1/events", "Events as a stream (text/event-stream)", events::events),
        Route::new("get", "/api/v1/ws", "Events, commands and queries over one WebSocket", ws::socket),
        Route::new("get", "/api/v1/now", "What waits, what runs, and the last sessions", session_routes::now),
        Route::new("get", "/api/v1/inbox", "Questions that wait for a person", inbox::inbox),
        Route::new("post", "/api/v1/questions/{question}/answer", "Answer a question", inbox::answer),
        Route::new("get", "/api/v1/cost", "Cost of all sessions", session_routes::costs),
        Route::new("get", "/api/v1/complete", "Paths, skills and agents to complete", folder_routes::complete),
        Route::new("get", "/api/v1/settings", "Settings with their sources", folder_routes::settings),
        Route::new("post", "/api/v1/permissions/why", "Whether a call would be allowed, and why", folder_routes::why),
        Route::new("get", "/api/v1/team", "The lead, members and experts of a new session", folder_routes::team),
        Route::new("get", "/v1/models", "Agents as models of an OpenAI-compatible API", completion::models),
        Route::new("post", "/v1/chat/completions", "Ask the team, OpenAI-compatible", completion::completions)
            .takes(WEB_FILE_BYTES_MAX),
    ];
    table.extend(of_sessions());
    table.extend(of_plans());
    table.extend(of_files_and_memory());
    table
}

fn of_sessions() -> Vec<Route> {
    vec![
        Route::new("get", "/api/v1/sessions", "Sessions, last used first", session_routes::list),
        Route::new("post", "/api/v1/sessions", "Begin a session", session_routes::create),
        Route::new("get", "/api/v1/sessions/{session}", "A session", session_routes::show),
        Route::new("get", "/api/v1/sessions/{session}/events", "A page of its stored events", events::stored),
        Route::new("post", "/api/v1/sessions/{session}/messages", "Send a message", session_routes::send),
        Route::new("get", "/api/v1/sessions/{session}/messages", "The messages in it", session_routes::messages),
        Route::new(
            "delete",
            "/api/v1/sessions/{session}/messages/{message}",
            "Take an unread message back",
            session_routes::take_back,
        ),
        Route::new("post", "/api/v1/sessions/{session}/interrupt", "Stop the lead's turn", session_routes::interrupt),
        Route::new("post", "/api/v1/sessions/{session}/stop", "Stop everything in it", session_routes::stop),
        Route::new("post", "/api/v1/sessions/{session}/continue", "Go on with stopped work", session_routes::go_on),
        Route::new(
            "post",
            "/api/v1/sessions/{session}/fork",
            "Continue from a point of it in a new session",
            forks::fork,
        ),
        Route::new("post", "/api/v1/sessions/{session}/open", "Run it in this server", session_routes::open),
        Route::new("get", "/api/v1/sessions/{session}/files", "Its files", files::list),
        Route::new("post", "/api/v1/sessions/{session}/files", "Add a file to mention in a message", files::add)
            .takes(WEB_FILE_BYTES_MAX),
        Route::new("get", "/api/v1/sessions/{session}/files/{file}", "Download one of its files", files::download),
        Route::new(
            "get",
            "/api/v1/sessions/{session}/{part}",
            "Its trace, cost, tasks, team, memory, audit, details or worktrees",
            session_routes::part,
        ),
    ]
}

fn of_plans() -> Vec<Route> {
    vec![
        Route::new("get", "/api/v1/plans", "Plans of all sessions, newest first", plans::list),
        Route::new("get", "/api/v1/plans/{plan}", "A plan with its tasks and its layout", plans::show),
        Route::new("get", "/api/v1/plans/{plan}/trace", "A plan as a tree of spans", plans::trace),
        Route::new("get", "/api/v1/plans/{plan}/mermaid", "A plan as a Mermaid chart", plans::mermaid),
        Route::new("post", "/api/v1/plans/{plan}/decision", "Decide about a plan", plans::decide),
        Route::new("post", "/api/v1/plans/{plan}/stop", "Give up a plan or a task", plans::stop),
    ]
}

fn of_files_and_memory() -> Vec<Route> {
    vec![
        Route::new("get", "/api/v1/worktrees/{worktree}", "What differs in a worktree", worktree_routes::show),
        Route::new("post", "/api/v1/worktrees/{worktree}/accept", "Merge its files", worktree_routes::accept),
        Route::new("post", "/api/v1/worktrees/{worktree}/reject", "Reject its files", worktree_routes::reject),
        Route::new("get", "/api/v1/memory", "Facts about the user and the project", memory_routes::list),
        Route::new("post", "/api/v1/memory", "Store a fact", memory_routes::remember),
        Route::new("get", "/api/v1/memory/{board}/{key}", "A fact, and where else it stands", memory_routes::show),
        Route::new("delete", "/api/v1/memory/{board}/{key}", "Forget the facts under a key", memory_routes::forget),
    ]
}

/// The service that answers all requests.
pub(crate) fn router(web: &Arc<Web>) -> Router {
    let routes = table().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.received(web)));
    routes
        .fallback(assets::page)
        .method_not_allowed_fallback(assets::wrong_method)
        // Each route has a bound of its own, which `body` holds.
        .layer(DefaultBodyLimit::disable())
        .layer(axum::middleware::from_fn_with_state(Arc::clone(web), access::guard))
        .with_state(Arc::clone(web))
}
