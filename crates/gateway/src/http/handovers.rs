//! Sessions that a terminal hands over: the server opens them as soon as the terminal has let go.

use std::collections::HashSet;
use std::time::Duration;

use http::StatusCode;
use max_team_core::id::EnvelopeId;
use max_team_core::limits::HANDOVER_LOOK_MS;
use max_team_core::message::{Principal, Role};
use max_team_runtime::{Command, Order, RuntimeError, new_id, query};

use super::WEB_DOOR;
use super::sessions::OpenSessions;

impl OpenSessions {
    /// Makes this process the server of the folder: the only one, to which sessions are handed over.
    pub(crate) async fn serve_folder(&self, user: &str) -> Result<(), RuntimeError> {
        let folder = self.folder();
        self.carry_out(&principal(user), Command::ServeFolder { folder }).await
    }

    /// Opens the sessions that are handed over to the folder, until the journal fails.
    pub(crate) async fn take_handovers(&self, user: &str) {
        let by = principal(user);
        // A journal that cannot be followed has failed already.
        let Ok(mut changes) = self.team().changes_elsewhere() else { return };
        let mut failed = HashSet::new();
        loop {
            // What cannot be read or written now is tried with the next change.
            let waits = self.take_pending(&by, &mut failed).await.unwrap_or_default();
            tokio::select! {
                changed = changes.next() => if changed.is_err() { return },
                // A process that is killed tells of nothing.
                () = tokio::time::sleep(Duration::from_millis(HANDOVER_LOOK_MS)), if waits => {}
            }
        }
    }

    /// Opens the sessions that were handed over; whether one of them is still open where it was.
    async fn take_pending(&self, by: &Principal, failed: &mut HashSet<EnvelopeId>) -> Result<bool, RuntimeError> {
        let mut waits = false;
        for handover in self.team().ask(query::Handovers { folder: self.folder() }).await? {
            if failed.contains(&handover.id) {
                continue;
            }
            let session = handover.session;
            let is_here = self.list().await.contains(&session);
            let owner = self.team().ask(query::Owner { session }).await?.map(|owner| owner.id);
            if !is_here && owner.is_some() && owner == handover.from {
                waits = true;
                continue;
            }
            // If another process has opened it meanwhile, the user goes on there. The list of open sessions on the disk names the
            // session before the hand-over is settled.
            let opened = if owner.is_none() { self.ensure(session, by).await } else { Ok(()) };
            match opened {
                // There is no room now, or the journal is busy.
                Err(error) if error.status.is_server_error() => {
                    waits = true;
                    continue;
                }
                // The page that opens it tells why. The next start tries again.
                Err(error) if error.status != StatusCode::NOT_FOUND => {
                    failed.insert(handover.id);
                    continue;
                }
                // A session that was forgotten meanwhile has nothing to open.
                Ok(()) | Err(_) => {}
            }
            self.carry_out(by, Command::SettleHandover { folder: self.folder(), handover: handover.id }).await?;
        }
        Ok(waits)
    }

    async fn carry_out(&self, by: &Principal, command: Command) -> Result<(), RuntimeError> {
        let (cwd, key) = (self.folder(), EnvelopeId::new(new_id()));
        self.team().command(Order { by: by.clone(), cwd, key, command }).await
    }

    fn folder(&self) -> String {
        self.source().root().display().to_string()
    }
}

fn principal(user: &str) -> Principal {
    Principal { door: WEB_DOOR.to_owned(), user: user.to_owned(), role: Role::Owner }
}
