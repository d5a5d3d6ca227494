//! The end of a teammate: requested, after its work and its mail; or ordered, at once.
//!
//! One commit records its end, answers the requester, and returns unread messages. Messages that come later are
//! returned, too.

use std::sync::Arc;

use max_team_core::body::{Body, TeammateEnded, Undelivered};
use max_team_core::event::Event;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::task_list::ReleaseReason;
use max_team_core::teammate::shutdown::{self, Shutdown};
use max_team_core::teammate::{AgentEnded, Teammate};
use max_team_core::turn::TurnInput;

use super::mail::{derived, stopper};
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::rows::MateRow;
use crate::session;
use crate::shared::now_ms;
use crate::team_tools;

/// The reason in a message that an ended teammate returns.
const NO_MORE: &str = "it is no more";

/// Those of these messages that report a failed message or request of a person: subscribers are told of them, too.
pub(crate) fn to_people(letters: &[Envelope]) -> Vec<Event> {
    let is_told = |letter: &&Envelope| match letter.kind {
        MessageKind::Undelivered => letter.to.starts_with("user/"),
        kind => kind == MessageKind::ShutdownRejected,
    };
    letters.iter().filter(is_told).cloned().map(Event::Mailed).collect()
}

impl Agent {
    /// Ends, if it can now; an order to end stops its work first.
    pub(super) async fn part(&mut self, mut ends: Vec<Envelope>) -> Result<(), RuntimeError> {
        let lead = session::agent_stream(self.floor.lead);
        let mate = self.turn.mate().cloned();
        for letter in &ends {
            if let Some(why) = shutdown::misfit(letter, mate.is_some(), &lead) {
                self.refuse(letter, why).await?;
            }
        }
        ends.retain(|letter| shutdown::misfit(letter, mate.is_some(), &lead).is_none());
        let Some((letter, mate)) = shutdown::foremost(&ends).zip(mate) else { return Ok(()) };
        match shutdown::when(letter, self.turn.is_busy(), self.turn.stopped_by().is_some()) {
            Shutdown::Now => self.end(letter, mate).await,
            Shutdown::Later => Ok(()),
            Shutdown::Stopping => {
                let by = stopper(letter);
                self.step(TurnInput::Interrupt { by }, Extra::default()).await
            }
        }
    }

    /// Ends the teammate.
    async fn end(&mut self, letter: &Envelope, mate: Teammate) -> Result<(), RuntimeError> {
        let forced = letter.kind == MessageKind::Shutdown;
        let by = letter.asker().to_owned();
        let reason = letter.text().to_owned();
        let ended = AgentEnded { session: self.floor.session, name: mate.name.clone(), by, reason, forced };
        let mut extra = Extra { sends: self.farewells(letter, &ended), ..Extra::default() };
        for waiting in self.floor.shared.journal.pending_mail(&self.turn.stream)? {
            if !shutdown::is_end(&waiting) {
                extra.sends.extend(self.returned(&waiting));
            }
            extra.acks.push(waiting.id);
        }
        if !extra.acks.contains(&letter.id) {
            extra.acks.push(letter.id);
        }
        let row = self.turn.origin.agent.map(|agent| MateRow {
            agent,
            color: String::new(),
            claims: false,
            gone: Some(ended.clone()),
        });
        // Before its end is published: an agent that is told of it may claim the tasks that it held.
        self.floor.give_back(&self.doer(), ReleaseReason::Ended, true, Arc::clone(&self.turn.origin)).await?;
        let review = self.review_of_ended(&ended);
        // Its background commands end with it.
        let commands = self.commands.ended(&self.turn).map(Event::CommandOver);
        let events = commands.chain([Event::AgentEnded(ended)]).chain(review).collect();
        self.commit(events, extra).await?;
        row.map_or(Ok(()), |row| self.floor.know_mate(&mate.name, row))
    }

    /// The answer to the requester, and the message to the lead if the lead was not the requester.
    fn farewells(&self, letter: &Envelope, ended: &AgentEnded) -> Vec<Envelope> {
        let lead = session::agent_stream(self.floor.lead);
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
        if letter.kind == MessageKind::ShutdownRequest {
            let text = format!("`{}` has finished and is no more.", ended.name);
            sends.push(written(&letter.from, MessageKind::ShutdownApproved, &text, Some(letter.id)));
        }
        if ended.forced || letter.from != lead {
            let why = if ended.reason.is_empty() { String::new() } else { format!(": {}", ended.reason) };
            let text = format!("`{}` was ended by {}{why}.", ended.name, ended.by);
            sends.push(written(&lead, MessageKind::TeammateTerminated, &text, None));
        }
        sends
    }

    /// An unread message goes back to its sender, and the lead is told.
    pub(super) fn returned(&self, letter: &Envelope) -> Vec<Envelope> {
        if !shutdown::comes_back(letter.kind) {
            return Vec::new();
        }
        let name = self.turn.origin.name.to_string();
        let said = team_tools::title(letter.text());
        let lead = session::agent_stream(self.floor.lead);
        let mut readers = vec![letter.from.clone()];
        if letter.from != lead {
            readers.push(lead);
        }
        let text = format!("A message to `{name}` was not delivered, because {NO_MORE}: {said}");
        let sent_back = |to: String| {
            Envelope::new(
                derived(&[letter.id.to_string().as_bytes(), to.as_bytes(), b"returned"]),
                &self.turn.stream,
                to,
                MessageKind::Undelivered,
                Body::Undelivered(Undelivered {
                    text: &text,
                    from: &name,
                    letter: Some(letter.id),
                    sender: &letter.from,
                    why: NO_MORE,
                    said: &said,
                }),
                now_ms(),
            )
        };
        readers.into_iter().map(sent_back).collect()
    }

    /// Returns a message that came after the end.
    pub(super) async fn send_back(&mut self, letter: &Envelope) -> Result<(), RuntimeError> {
        let extra = Extra { sends: self.returned(letter), ..Extra::acks(vec![letter.id]) };
        self.commit(Vec::new(), extra).await
    }
}
