//! What a person's stop leaves waiting: it begins no turn before something comes that is newer than the stop.
//!
//! Which letters had come is in the event that says so, so that the next process knows it, too. They stay in the mailbox, and
//! are told with whatever begins the next turn.

use max_team_core::event::Stopper;
use max_team_core::id::{EnvelopeId, TurnId};
use max_team_core::message::{Envelope, Kind};
use max_team_core::policy::By;
use max_team_core::stop::Held;
use uuid::Uuid;

use super::mail::stopper;
use super::{Agent, is_note};
use crate::error::RuntimeError;
use crate::session;

impl Agent {
    /// Whether a letter begins a turn of its own accord.
    pub(super) fn is_beginning(&self, letter: &Envelope) -> bool {
        let is_given = matches!(letter.kind, Kind::UserInput | Kind::TaskAssign);
        is_given || (self.is_news(letter) && !is_note(letter, self.lead))
    }

    /// Does what a letter says that stops it. What was read with the letter and came before it may not be stored yet.
    pub(super) async fn stop_by(&mut self, letter: &Envelope, came: &[EnvelopeId]) -> Result<(), RuntimeError> {
        let mut waiting = self.floor.shared.journal.pending_mail(&self.stream)?;
        let stop = waiting.iter().position(|known| known.id == letter.id);
        waiting.truncate(stop.unwrap_or(waiting.len()));
        waiting.retain(|letter| !came.contains(&letter.id) && self.is_beginning(letter));
        let letters = came.iter().copied().chain(waiting.iter().map(|letter| letter.id)).collect();
        let is_all = letter.from == session::agent_stream(self.floor.lead);
        let by = self.holding(stopper(letter), letters, is_all);
        self.interrupt(by, vec![letter.id]).await
    }

    /// Does what a person says who stops it here. Without `all`, what they have said themselves is told at once.
    pub(super) async fn stop_here(&mut self, by: Stopper, all: bool) -> Result<(), RuntimeError> {
        if !all && !self.turn.is_busy() {
            // Whoever speaks and says stop at once means what they have just said.
            Box::pin(self.take_mail(true)).await?;
        }
        let mut waiting = self.floor.unread(&self.stream)?;
        waiting.retain(|letter| self.is_beginning(letter) && (all || !self.lead || letter.kind != Kind::UserInput));
        let letters = waiting.iter().map(|letter| letter.id).collect();
        let by = self.holding(by, letters, false);
        self.interrupt(by, Vec::new()).await
    }

    /// Whoever stops it, with what is left waiting. Only what a person says holds: whom an agent stops, or the time, is given
    /// something else to do.
    fn holding(&self, by: Stopper, letters: Vec<EnvelopeId>, is_all: bool) -> Stopper {
        let is_person = matches!(by.who, Some(By::Person(_))) && !by.ends;
        // For whoever does nothing and has nothing to read it changes nothing.
        let is_any = self.turn.is_busy() || !letters.is_empty() || !self.stopping_apart(&by).is_empty();
        let since = (is_all || self.lead).then(|| TurnId::new(Uuid::now_v7()));
        let held = (is_person && is_any).then_some(Held { letters, since });
        Stopper { held, ..by }
    }

    /// Whether these wait with what a stop has left; if not, all of it is told.
    pub(super) fn is_held(&self, letters: &[Envelope]) -> bool {
        self.turn.held().is_some_and(|held| letters.iter().all(|letter| held.holds(letter)))
    }
}
