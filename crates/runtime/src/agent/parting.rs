//! The end of a teammate: requested, after its work and its mail; or ordered, at once.
//!
//! One commit records its end, answers the requester, and returns unread messages. Messages that come later are
//! returned, too.

use std::sync::Arc;

use max_team_core::body::{Body, ReturnCause, TeammateEnded, Undelivered};
use max_team_core::event::Event;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::task_list::ReleaseReason;
use max_team_core::teammate::shutdown::{self, Shutdown};
use max_team_core::teammate::{AgentEnded, Teammate};
use max_team_core::turn::TurnInput;

use super::mail::{derived, stopper};
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::rows::TeammateRow;
use crate::session;
use crate::shared::now_ms;
use crate::team_tools;

/// Those of these messages that report a failed message or request of a person: subscribers are told of them, too.
pub(crate) fn to_people(envelopes: &[Envelope]) -> Vec<Event> {
    let is_told = |envelope: &&Envelope| match envelope.kind {
        MessageKind::Undelivered => envelope.to.starts_with("user/"),
        kind => kind == MessageKind::ShutdownRejected,
    };
    envelopes.iter().filter(is_told).cloned().map(Event::Mailed).collect()
}

impl Agent {
    /// Ends, if it can now; an order to end stops its work first.
    pub(super) async fn part(&mut self, mut ends: Vec<Envelope>) -> Result<(), RuntimeError> {
        let lead = session::agent_stream(self.active.lead);
        let teammate = self.turn.teammate().cloned();
        for envelope in &ends {
            if let Some(why) = shutdown::shutdown_error(envelope, teammate.is_some(), &lead) {
                self.refuse(envelope, why).await?;
            }
        }
        ends.retain(|envelope| shutdown::shutdown_error(envelope, teammate.is_some(), &lead).is_none());
        let Some((envelope, teammate)) = shutdown::strongest(&ends).zip(teammate) else { return Ok(()) };
        match shutdown::shutdown_time(envelope, self.turn.is_busy(), self.turn.stopped_by().is_some()) {
            Shutdown::Now => self.end(envelope, teammate).await,
            Shutdown::Later => Ok(()),
            Shutdown::Stopping => {
                let by = stopper(envelope);
                self.step(TurnInput::Interrupt { by }, Extra::default()).await
            }
        }
    }

    /// Ends the teammate.
    async fn end(&mut self, envelope: &Envelope, teammate: Teammate) -> Result<(), RuntimeError> {
        let forced = envelope.kind == MessageKind::Shutdown;
        let by = envelope.asker().to_owned();
        let reason = envelope.text().to_owned();
        let ended = AgentEnded { session: self.active.session, name: teammate.name.clone(), by, reason, forced };
        let mut extra = Extra { sends: self.farewells(envelope, &ended), ..Extra::default() };
        for waiting in self.active.shared.journal.pending_mail(&self.turn.stream)? {
            if !shutdown::is_end(&waiting) {
                extra.sends.extend(self.returned(&waiting));
            }
            extra.acks.push(waiting.id);
        }
        if !extra.acks.contains(&envelope.id) {
            extra.acks.push(envelope.id);
        }
        let row = self.turn.origin.agent.map(|agent| TeammateRow {
            agent,
            color: String::new(),
            claims: false,
            gone: Some(ended.clone()),
        });
        // Before its end is published: an agent that is told of it may claim the tasks that it held.
        self.active.give_back(&self.doer(), ReleaseReason::Ended, true, Arc::clone(&self.turn.origin)).await?;
        let review = self.review_of_ended(&ended);
        // Its background commands end with it.
        let commands = self.commands.ended(&self.turn).map(Event::CommandOver);
        let events = commands.chain([Event::AgentEnded(ended)]).chain(review).collect();
        self.commit(events, extra).await?;
        row.map_or(Ok(()), |row| self.active.know_teammate(&teammate.name, row))
    }

    /// The answer to the requester, and the message to the lead if the lead was not the requester.
    fn farewells(&self, envelope: &Envelope, ended: &AgentEnded) -> Vec<Envelope> {
        let lead = session::agent_stream(self.active.lead);
        let mut sends = Vec::new();
        let written = |to: &str, kind: MessageKind, text: &str, reply_to| {
            Envelope::new(
                derived(&[self.turn.stream.as_bytes(), to.as_bytes(), kind.name().as_bytes()]),
                &self.turn.stream,
                to,
                kind,
                Body::Ended(TeammateEnded { text, from: &ended.name, by: &ended.by, forced: ended.forced }),
                now_ms(),
            )
            .answering(reply_to)
        };
        if envelope.kind == MessageKind::ShutdownRequest {
            let text = format!("`{}` has finished its work and ended.", ended.name);
            sends.push(written(&envelope.from, MessageKind::ShutdownApproved, &text, Some(envelope.id)));
        }
        if ended.forced || envelope.from != lead {
            let why = if ended.reason.is_empty() { String::new() } else { format!(": {}", ended.reason) };
            let text = format!("`{}` was ended by {}{why}.", ended.name, ended.by);
            sends.push(written(&lead, MessageKind::TeammateTerminated, &text, None));
        }
        sends
    }

    /// An unread message goes back to its sender, and the lead is told.
    pub(super) fn returned(&self, envelope: &Envelope) -> Vec<Envelope> {
        if !shutdown::returns_to_sender(envelope.kind) {
            return Vec::new();
        }
        let name = self.turn.origin.name.to_string();
        let said = team_tools::title(envelope.text());
        let lead = session::agent_stream(self.active.lead);
        let mut readers = vec![envelope.from.clone()];
        if envelope.from != lead {
            readers.push(lead);
        }
        let why = ReturnCause::Ended.to_string();
        let text = format!("A message to `{name}` was not delivered, because {why}: {said}");
        let sent_back = |to: String| {
            Envelope::new(
                derived(&[envelope.id.to_string().as_bytes(), to.as_bytes(), b"returned"]),
                &self.turn.stream,
                to,
                MessageKind::Undelivered,
                Body::Undelivered(Undelivered {
                    text: &text,
                    from: &name,
                    envelope: Some(envelope.id),
                    sender: &envelope.from,
                    why: &why,
                    cause: ReturnCause::Ended,
                    said: &said,
                }),
                now_ms(),
            )
        };
        readers.into_iter().map(sent_back).collect()
    }

    /// Returns a message that came after the end.
    pub(super) async fn send_back(&mut self, envelope: &Envelope) -> Result<(), RuntimeError> {
        let extra = Extra { sends: self.returned(envelope), ..Extra::acks(vec![envelope.id]) };
        self.commit(Vec::new(), extra).await
    }
}
