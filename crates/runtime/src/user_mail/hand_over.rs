//! Hands a session over to the server of its folder.
//!
//! A server (`max-team serve`) claims its folder and reads a mailbox of that name. The hand-over is a message there, so it outlives the
//! process that writes it: the server opens the session as soon as that process has let go of it, by closing it or by its death.

use std::path::Path;

use max_team_core::body::{Body, Handover};
use max_team_core::hash::Hash;
use max_team_core::id::{EnvelopeId, SessionId, WorkerId};
use max_team_core::message::{Envelope, MessageKind, Principal, Role};
use max_team_journal::{Journal, WorkerInfo};
use max_team_tools::worktree::Worktrees;
use serde::Serialize;

use super::UserMail;
use crate::error::RuntimeError;
use crate::handle::require;
use crate::session::{self, Sessions};

/// A session that the server of a folder is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingHandover {
    pub id: EnvelopeId,
    pub session: SessionId,
    /// The process that had the session open when it was handed over.
    pub from: Option<WorkerId>,
}

/// The claim of a folder's server, and its mailbox. A folder's name may be longer than the name of a mailbox.
pub(crate) fn server_of(folder: &str) -> String {
    format!("server/{}", Hash::of(folder))
}

/// The process that serves a folder.
pub(crate) fn server(journal: &Journal, folder: &str) -> Result<Option<WorkerInfo>, RuntimeError> {
    Ok(journal.owner(&server_of(folder))?)
}

/// The sessions that were handed over to the server of a folder and that it has not taken, oldest first.
pub(crate) fn handovers(journal: &Journal, folder: &str) -> Result<Vec<PendingHandover>, RuntimeError> {
    let mail = journal.pending_mail(&server_of(folder))?;
    Ok(mail.iter().filter_map(read).collect())
}

fn read(envelope: &Envelope) -> Option<PendingHandover> {
    let Body::Handover(Handover { session, from, .. }) = Body::read(envelope) else { return None };
    Some(PendingHandover { id: envelope.id, session: session?, from })
}

impl UserMail<'_> {
    /// Hands a session over to the server of its folder, or of the project if the folder is a worktree; there must be one.
    pub async fn hand_over(
        &self,
        by: &Principal,
        key: EnvelopeId,
        session: SessionId,
        worktrees: &Worktrees,
    ) -> Result<(), RuntimeError> {
        require(by, Role::Member)?;
        let folder = Sessions::new(self.journal).row(session)?.cwd;
        let folder = worktrees.project_of(Path::new(&folder)).map_or(folder, |project| project.display().to_string());
        if server(self.journal, &folder)?.is_none() {
            return Err(RuntimeError::NoServer(folder));
        }
        let owner = self.journal.owner(&session::stream(session))?;
        let name = by.signature();
        let body = Handover { by: &name, session: Some(session), from: owner.map(|owner| owner.id) };
        self.send(by, key, server_of(&folder), MessageKind::SessionHandover, Body::Handover(body)).await.map(drop)
    }
}
