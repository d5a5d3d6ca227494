//! Takes back unread messages.

use std::sync::Arc;

use max_team_core::event::{Event, Withdrawn};
use max_team_core::id::{EnvelopeId, SessionId};
use max_team_core::message::Principal;
use tokio::sync::oneshot;

use super::{Runtime, heard};
use crate::active_session::ActiveSession;
use crate::agent::Control;
use crate::error::RuntimeError;
use crate::handle::{Notice, Origin};
use crate::read_model::{Fate, MailRecord, ReadModel};
use crate::shared::now_ms;
use crate::user_mail::UserMail;

impl Runtime {
    /// Takes a message back from every reader that has not read it. The reader's loop decides, so that each copy is
    /// either read or taken back. A reader that cannot be asked is named in the error, and the others are still asked.
    pub(super) async fn withdraw(
        &self,
        session: SessionId,
        order: EnvelopeId,
        by: &Principal,
    ) -> Result<(), RuntimeError> {
        let active = self.active(session)?;
        let copies = UserMail::new(&self.shared.journal).copies(session, order)?;
        let (mut is_taken, mut gone, mut failed) = (false, Vec::new(), Vec::new());
        let mut why = String::new();
        for (name, address, message) in copies {
            match self.take_back(&active, &address, message).await {
                Ok(true) => {
                    is_taken = true;
                    let (from, at_ms) = (Arc::new(Origin::named(&by.user)), now_ms());
                    let event = Arc::new(Event::Withdrawn(Withdrawn { envelope: message }));
                    self.shared.notices.show(&Notice::Event { session, from, at_ms, event });
                }
                Ok(false) => gone.push(message),
                Err(error) => {
                    if failed.is_empty() {
                        why = error.to_string();
                    }
                    failed.push(name);
                }
            }
        }
        let read = if gone.is_empty() { Vec::new() } else { self.readers_of(session, &gone)? };
        match (failed.is_empty(), read.is_empty()) {
            (false, _) => Err(RuntimeError::Untaken { failed, why, read }),
            (true, true) if is_taken => Ok(()),
            (true, false) if is_taken => Err(RuntimeError::TakenBy(read)),
            (true, _) => Err(RuntimeError::Taken),
        }
    }

    /// Takes one message back; `false`: it is no longer unread.
    async fn take_back(
        &self,
        active: &Arc<ActiveSession>,
        address: &str,
        envelope: EnvelopeId,
    ) -> Result<bool, RuntimeError> {
        if !self.shared.journal.pending_mail(address)?.iter().any(|known| known.id == envelope) {
            return Ok(false);
        }
        if !active.is_taken(address) {
            // An unloaded agent is loaded for it.
            active.ring(address);
        }
        let (reply, done) = oneshot::channel();
        active.tell(address, Control::Withdraw { envelope, reply }).await?;
        heard(done).await
    }

    /// Names of the agents that have read these messages; not those that returned one or from which one was taken
    /// back.
    fn readers_of(&self, session: SessionId, envelopes: &[EnvelopeId]) -> Result<Vec<String>, RuntimeError> {
        let all = ReadModel::new(&self.shared.journal).messages(session)?;
        let is_read = |envelope: &MailRecord| {
            envelopes.contains(&envelope.envelope.id) && matches!(envelope.fate, Fate::Read(_) | Fate::Acted(_))
        };
        Ok(all.into_iter().filter(is_read).map(|envelope| envelope.to).collect())
    }
}
