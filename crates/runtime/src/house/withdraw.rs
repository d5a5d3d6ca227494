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
use crate::read_model::{Fate, Letter, ReadModel};
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
        let floor = self.floor(session)?;
        let copies = UserMail::new(&self.shared.journal).copies(session, order)?;
        let (mut is_taken, mut gone, mut failed) = (false, Vec::new(), Vec::new());
        let mut why = String::new();
        for (name, address, letter) in copies {
            match self.take_back(&floor, &address, letter).await {
                Ok(true) => {
                    is_taken = true;
                    let (from, at_ms) = (Arc::new(Origin::named(&by.user)), now_ms());
                    let event = Arc::new(Event::Withdrawn(Withdrawn { envelope: letter }));
                    self.shared.notices.show(&Notice::Event { session, from, at_ms, event });
                }
                Ok(false) => gone.push(letter),
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
        floor: &Arc<ActiveSession>,
        address: &str,
        letter: EnvelopeId,
    ) -> Result<bool, RuntimeError> {
        if !self.shared.journal.pending_mail(address)?.iter().any(|known| known.id == letter) {
            return Ok(false);
        }
        if !floor.is_taken(address) {
            // An unloaded agent is loaded for it.
            floor.ring(address);
        }
        let (reply, done) = oneshot::channel();
        floor.tell(address, Control::Withdraw { letter, reply }).await?;
        heard(done).await
    }

    /// Names of the agents that have read these messages; not those that returned one or from which one was taken
    /// back.
    fn readers_of(&self, session: SessionId, letters: &[EnvelopeId]) -> Result<Vec<String>, RuntimeError> {
        let all = ReadModel::new(&self.shared.journal).letters(session)?;
        let is_read = |letter: &Letter| {
            letters.contains(&letter.envelope.id) && matches!(letter.fate, Fate::Read(_) | Fate::Acted(_))
        };
        Ok(all.into_iter().filter(is_read).map(|letter| letter.to).collect())
    }
}
