//! Forks: a new session that continues from a point of another.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Json;
use http::StatusCode;
use max_team_core::event::LaunchFlags;
use max_team_core::id::SessionId;
use max_team_core::message::{Principal, Role};
use max_team_runtime::replay::{Fork, Point, Site, Tape};
use max_team_runtime::{Command, OpenOptions, RuntimeError, Which, query, require};
use max_team_workspace::exit::CliError;
use max_team_workspace::fork::{self, ForkWorktree, RestoreOutcome};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ApiError;
use super::extract::{Body, SessionOrder};
use super::sessions::{OpenSessions, SessionSource};

/// What `at` can be.
const POINTS: &str = "it is the number of an event (`seq`), `end`, `last-turn` or `turn:N`";
/// Files that could not be put back and are named one by one.
const LEFT_MAX: usize = 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewFork {
    /// The number of an event, `end`, `last-turn` or `turn:N`.
    at: Option<String>,
    /// Whether it works in the folder of the session itself.
    #[serde(default)]
    here: bool,
    /// The first message.
    text: Option<String>,
}

/// A session that continues another, and its files.
pub(crate) struct ForkedSession {
    session: SessionId,
    /// The last entry that it took over; `None` for one that the same key began before.
    seq: Option<u64>,
    worktree: Option<ForkWorktree>,
}

/// What is known before the session is opened.
struct ForkStart {
    open: OpenOptions,
    root: PathBuf,
    seq: u64,
    worktree: Option<ForkWorktree>,
}

pub(crate) async fn fork(
    order: SessionOrder,
    Body(NewFork { at, here, text }): Body<NewFork>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let SessionOrder { web, visitor, key, session } = order;
    let at: Point = match at {
        Some(at) => at.parse().map_err(|_| ApiError::bad_request(format!("`at` is `{at}`; {POINTS}")))?,
        None => Point::End,
    };
    require(&visitor.principal, Role::Member)?;
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(ApiError::bad_request("`text` is empty; leave it out to fork without a message"));
    }
    let tape = *web.team.ask(query::Recording { session }).await?;
    let name = key.0.uuid().simple().to_string();
    // A fork that has begun is made to its end, also if the client has gone: no worktree is left without its session.
    let (server, by) = (Arc::clone(&web), visitor.principal.clone());
    let forked = tokio::spawn(async move { server.sessions.fork(&by, &name, tape, at, here).await }).await;
    let forked = forked.map_err(|crash| ApiError::internal(crash.to_string()))??;
    let mut answer = json!({
        "session": web.row(forked.session).await?, "at": forked.seq, "worktree": forked.worktree.map(|made| shown(&made)),
    });
    if let (Value::Object(answer), Some(text)) = (&mut answer, text) {
        let id = web.carry_out(&visitor, key, Command::Say { session: forked.session, text }).await?;
        answer.insert("id".to_owned(), json!(id));
    }
    Ok((StatusCode::CREATED, Json(answer)))
}

fn shown(worktree: &ForkWorktree) -> Value {
    let (restored, left) = match &worktree.restored {
        Some(RestoreOutcome::Done(done, left)) => (Some(*done), left.as_slice()),
        _ => (None, [].as_slice()),
    };
    let named: Vec<Value> = left.iter().take(LEFT_MAX).map(|(path, why)| json!({ "path": path, "why": why })).collect();
    json!({
        "id": worktree.id, "root": worktree.root, "restored": restored, "left": named, "left_count": left.len(),
        "files_unknown": matches!(worktree.restored, Some(RestoreOutcome::Unknown)),
    })
}

impl OpenSessions {
    /// Begins a session that continues a run, or finds the one that the same key has begun.
    pub(crate) async fn fork(
        &self,
        by: &Principal,
        name: &str,
        tape: Tape,
        at: Point,
        is_here: bool,
    ) -> Result<ForkedSession, ApiError> {
        let (chat, account) = Self::chat(by, name)?;
        // Held until the session is known, so that a second request with the same key finds it.
        let _forking = self.forking.lock().await;
        if let Some(session) = self.of_chat(&chat, account).await? {
            self.ensure(session, by).await?;
            return Ok(ForkedSession { session, seq: None, worktree: None });
        }
        let row = self.team.ask(query::Session { session: tape.session }).await?;
        if !self.source.has(&row.cwd) {
            let words = format!("session `{}` works in `{}`: fork it there", row.session, row.cwd);
            return Err(ApiError::conflict(words));
        }
        if !is_here && self.source.root() != Path::new(&row.cwd) {
            let words = format!(
                "session `{}` works in a worktree, of which no second one can be made: fork it with `here`",
                row.session
            );
            return Err(ApiError::conflict(words));
        }
        let choice = self.team.ask(query::SessionChoice { session: row.session }).await?;
        let source = Arc::clone(&self.source);
        let start = move || source.start_fork(&tape, at, is_here, PathBuf::from(row.cwd), &choice);
        let start = tokio::task::spawn_blocking(start).await;
        let mut start = start.map_err(|crash| ApiError::internal(crash.to_string()))??;
        if let Which::Fork(_, _, known) = &mut start.open.which {
            *known = Some(chat);
        }
        match self.begin(&mut *self.open.lock().await, &start.root, start.open, by).await {
            Ok(session) => Ok(ForkedSession { session, seq: Some(start.seq), worktree: start.worktree }),
            Err(error) => {
                // The first failure is the one to tell; `worktrees clean` removes what is left.
                drop(self.source.drop_worktree(start.worktree).await);
                Err(error)
            }
        }
    }
}

impl SessionSource {
    /// Reads what the fork is opened with, and makes its worktree. Blocking.
    fn start_fork(
        &self,
        tape: &Tape,
        at: Point,
        is_here: bool,
        folder: PathBuf,
        choice: &LaunchFlags,
    ) -> Result<ForkStart, ApiError> {
        let Self::Folder { place, storage, .. } = self else {
            let words =
                "the demo plays a recording, which has no answers for a fork: start `max-team serve` without --demo";
            return Err(ApiError::conflict(words));
        };
        // What cannot be gone on from is said before anything is made.
        let begun = tape.fork(at, false, &folder, Site::Here).map_err(|error| match error {
            RuntimeError::NoPoint { turns, .. } => {
                let words =
                    format!("`at` is no point of this session, in which the user spoke {turns} times; {POINTS}");
                ApiError::not_found(words)
            }
            error => error.into(),
        });
        let point = begun?.forked.seq;
        let worktree = match is_here {
            true => None,
            false => Some(
                ForkWorktree::make(place, tape, point, &folder, || Ok(storage.clone()), "`here`")
                    .map_err(ApiError::from)?,
            ),
        };
        let root = worktree.as_ref().map_or(folder, |made| made.root.clone());
        let start = || {
            let Fork { forked, bound, .. } = fork::begin(tape, at, false, &root, worktree.as_ref())?;
            let seq = forked.seq;
            Ok((self.request(Which::Fork(Box::new(forked), bound, None), choice, &root)?, seq))
        };
        match start() {
            Ok((open, seq)) => Ok(ForkStart { open, root, seq, worktree }),
            Err(error) => {
                worktree.map_or(Ok(()), |made| made.remove(place))?;
                Err(error)
            }
        }
    }

    /// Removes the worktree of a session that could not be opened.
    async fn drop_worktree(self: &Arc<Self>, worktree: Option<ForkWorktree>) -> Result<(), ApiError> {
        let (Self::Folder { place, .. }, Some(made)) = (&**self, worktree) else { return Ok(()) };
        let place = place.clone();
        let removed: Result<Result<(), CliError>, _> = tokio::task::spawn_blocking(move || made.remove(&place)).await;
        removed.map_err(|crash| ApiError::internal(crash.to_string()))?.map_err(ApiError::from)
    }
}
