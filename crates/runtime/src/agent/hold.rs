//! A person's stop: the message that says it, and how an agent acts on it.
//!
//! The stop is read before all other mail. The event that records it lists the messages that were unread, so that the next
//! process holds them, too. They stay in the mailbox and are read with the message that begins the next turn.

use max_team_core::body::{Body, Stop};
use max_team_core::event::InterruptedBy;
use max_team_core::id::{EnvelopeId, TurnId};
use max_team_core::interrupt::{self, Hold};
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::policy::DecidedBy;
use max_team_core::turn::is_stop;

use super::mail::{derived, stopper};
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::read_model::stopped_since;
use crate::user_mail::is_go_on;

/// A person's stop of agents and plans.
pub(crate) struct PersonStop<'s> {
    pub(crate) from: &'s str,
    pub(crate) by: &'s str,
    /// Of a session stop.
    pub(crate) since: Option<TurnId>,
    pub(crate) at_ms: i64,
}

impl PersonStop<'_> {
    /// The message of a session stop to one of its readers. Its id follows from the stop, so that each reader gets it once.
    pub(crate) fn to_reader(&self, to: String) -> Envelope {
        let since = self.since.map_or_else(String::new, |since| since.to_string());
        self.message(derived(&[since.as_bytes(), to.as_bytes(), b"stop"]), to)
    }

    /// The message that stops an agent, or a plan.
    pub(crate) fn message(&self, id: EnvelopeId, to: String) -> Envelope {
        let stop = Stop { by: self.by, stopped: true, since: self.since, ..Stop::default() };
        Envelope::new(id, self.from, to, MessageKind::Shutdown, Body::Stop(stop), self.at_ms)
    }
}

/// The turn id of a session stop.
pub(crate) fn since_of(envelope: &Envelope) -> Option<TurnId> {
    envelope.stop().since.filter(|_| is_stop(envelope))
}

impl Agent {
    /// Acts on the stops among these messages, and removes them: before anything else that came is read or continued.
    pub(super) async fn stop_first(&mut self, mail: &mut Vec<Envelope>) -> Result<(), RuntimeError> {
        if !mail.iter().any(is_stop) {
            return Ok(());
        }
        mail.retain(|envelope| !is_stop(envelope));
        // Not every unread message was handed over: the mailbox has all, in order.
        let mut waiting = self.active.shared.journal.pending_mail(&self.turn.stream)?;
        waiting.truncate(waiting.iter().rposition(is_stop).map_or(0, |last| last + 1));
        let (stops, before): (Vec<Envelope>, Vec<Envelope>) = waiting.into_iter().partition(is_stop);
        let Some(last) = stops.last() else { return Ok(()) };
        let is_beginning = |envelope: &&Envelope| self.turn.is_beginning(envelope, self.turn.origin.lead);
        let envelopes = before.iter().filter(is_beginning).map(|envelope| envelope.id).collect();
        let hold = Hold { envelopes, since: stops.iter().filter_map(since_of).max(), at_ms: last.sent_at_ms };
        self.active.know_turn(hold.since);
        let by = stopper(last);
        // A stop by a limit or by another agent is followed by other work: it puts nothing on hold.
        let is_person = matches!(by.who, Some(DecidedBy::Person(_))) && !by.ends;
        let by = InterruptedBy { held: is_person.then_some(hold), ..by };
        let sends = if self.turn.origin.lead { self.pass_on(last)? } else { Vec::new() };
        let acks = stops.iter().map(|stop| stop.id).collect();
        self.interrupt(by, Extra { sends, ..Extra::acks(acks) }).await
    }

    /// A session stop for the teammates that have begun to work while it was written: the others have it already.
    fn pass_on(&self, stop: &Envelope) -> Result<Vec<Envelope>, RuntimeError> {
        let Some(since) = since_of(stop) else { return Ok(Vec::new()) };
        let stop = PersonStop { from: &stop.from, by: stop.by(), since: Some(since), at_ms: stop.sent_at_ms };
        let mut sends = Vec::new();
        for address in self.active.teammates_working()? {
            let message = stop.to_reader(address);
            sends.extend((!self.active.shared.journal.has_mail(message.id)?).then_some(message));
        }
        Ok(sends)
    }

    /// A session stop is not written to idle teammates: the row tells of it.
    pub(super) fn know_stop(&mut self) -> Result<(), RuntimeError> {
        self.turn.machine.hold_idle(stopped_since(&self.active.shared.journal, self.active.session)?);
        Ok(())
    }

    /// The messages that only say that a teammate was stopped, and the one note that stands for all of them and for the agent's own
    /// last turn, if that was stopped.
    pub(super) fn stop_note(&self, envelopes: &[&Envelope]) -> (Vec<EnvelopeId>, Option<String>) {
        let is_later = |at: usize, from: &str| envelopes.iter().skip(at + 1).any(|later| later.from == from);
        let (mut told, mut teammates) = (Vec::new(), Vec::new());
        for (at, envelope) in envelopes.iter().enumerate() {
            if interrupt::is_bare_report(envelope) {
                told.push(envelope.id);
                // Its later messages show how it went on.
                teammates.extend(
                    (!is_later(at, &envelope.from)).then(|| envelope.teammate().unwrap_or_default().to_owned()),
                );
            }
        }
        teammates.sort_unstable();
        teammates.dedup();
        let own = self.turn.halted().map(|halted| interrupt::stopper_words(&halted.by, halted.who.as_ref()));
        let goes_on = envelopes.iter().any(|envelope| is_go_on(envelope.text()));
        (told, interrupt::stop_note(own.as_deref(), &teammates, goes_on))
    }
}
