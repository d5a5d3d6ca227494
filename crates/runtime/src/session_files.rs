//! The files of a session (`@files`): those that a person attaches, and those that agents write.

use std::time::UNIX_EPOCH;

use max_team_core::id::SessionId;
use max_team_tools::{AgentStore, StoredFile, ToolError};
use serde::Serialize;

use crate::error::RuntimeError;
use crate::session::Sessions;
use crate::shared::Shared;

/// A file of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionFile {
    /// Its path among the session's files.
    pub path: String,
    pub bytes: u64,
    pub changed_at_ms: i64,
}

impl From<StoredFile> for SessionFile {
    fn from(file: StoredFile) -> Self {
        let since = file.changed_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let changed_at_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Self { path: file.path.to_string_lossy().into_owned(), bytes: file.bytes, changed_at_ms }
    }
}

/// The files of a session that there is.
fn store(shared: &Shared, session: SessionId) -> Result<AgentStore, RuntimeError> {
    Sessions::new(&shared.journal).row(session)?;
    Ok(AgentStore::files(&shared.home, session))
}

fn refused(error: ToolError) -> RuntimeError {
    RuntimeError::File(error.to_string())
}

/// All files of a session, in order of their paths.
pub(crate) fn list(shared: &Shared, session: SessionId) -> Result<Vec<SessionFile>, RuntimeError> {
    let held = store(shared, session)?.held().map_err(refused)?;
    Ok(held.files.into_iter().map(SessionFile::from).collect())
}

/// Keeps a file under its name or one like it; returns its path (`@files/NAME`).
pub(crate) fn add(shared: &Shared, session: SessionId, name: &str, bytes: &[u8]) -> Result<String, RuntimeError> {
    store(shared, session)?.add(name, bytes).map_err(refused)
}

pub(crate) fn read(shared: &Shared, session: SessionId, path: &str) -> Result<Vec<u8>, RuntimeError> {
    store(shared, session)?.read(path).map_err(refused)
}
