//! How somebody on a team comes to an end: asked, once its work and its mail are done; or told, at once.
//!
//! One commit says that it is no more, answers whoever asked, and sends back what nobody will read. Whatever comes later is
//! sent back too.

use std::sync::Arc;

use max_team_core::event::Event;
use max_team_core::mates::parting::{self, Parting};
use max_team_core::mates::{AgentEnded, Teammate};
use max_team_core::message::{Envelope, Kind};
use max_team_core::tasks::Why;
use max_team_core::turn::Input;
use serde_json::json;

use super::mail::{derived, stopper, text_at};
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::rows::MateRow;
use crate::session;
use crate::shared::now_ms;
use crate::team_tools;

/// Why what was written to somebody who has ended comes back.
const NO_MORE: &str = "it is no more";

/// What of these letters says that something which somebody wrote came to nothing: whoever watches hears of it, too.
pub(crate) fn to_people(letters: &[Envelope]) -> Vec<Event> {
    let is_told = |letter: &&Envelope| match letter.kind {
        Kind::Undelivered => letter.to.starts_with("user/"),
        kind => kind == Kind::ShutdownRejected,
    };
    letters.iter().filter(is_told).cloned().map(Event::Mailed).collect()
}

impl Agent {
    /// Comes to an end, if it can now; whoever is told to stops what it does first.
    pub(super) async fn part(&mut self, mut ends: Vec<Envelope>) -> Result<(), RuntimeError> {
        let lead = session::agent_stream(self.floor.lead);
        let mate = self.turn.mate().cloned();
        for letter in &ends {
            if let Some(why) = parting::misfit(letter, mate.is_some(), &lead) {
                self.refuse(letter, why).await?;
            }
        }
        ends.retain(|letter| parting::misfit(letter, mate.is_some(), &lead).is_none());
        let Some((letter, mate)) = parting::foremost(&ends).zip(mate) else { return Ok(()) };
        match parting::when(letter, self.turn.is_busy(), self.turn.stopped_by().is_some()) {
            Parting::Now => self.end(letter, mate).await,
            Parting::Later => {
                self.left_over = true;
                Ok(())
            }
            Parting::Stopping => {
                self.left_over = true;
                let by = stopper(letter);
                self.step(Input::Interrupt { by }, Extra::default()).await
            }
        }
    }

    /// Is no more.
    async fn end(&mut self, letter: &Envelope, mate: Teammate) -> Result<(), RuntimeError> {
        let forced = letter.kind == Kind::Shutdown;
        let by = Some(text_at(&letter.body, "by")).filter(|by| !by.is_empty());
        let by = by.or_else(|| Some(text_at(&letter.body, "from")).filter(|from| !from.is_empty()));
        let by = by.unwrap_or_else(|| letter.from.clone());
        let reason = text_at(&letter.body, "text");
        let ended = AgentEnded { session: self.floor.session, name: mate.name.clone(), by, reason, forced };
        let mut extra = Extra { sends: self.farewells(letter, &ended), ..Extra::default() };
        for waiting in self.floor.shared.journal.pending_mail(&self.stream)? {
            if !parting::is_end(&waiting) {
                extra.sends.extend(self.returned(&waiting));
            }
            extra.acks.push(waiting.id);
        }
        if !extra.acks.contains(&letter.id) {
            extra.acks.push(letter.id);
        }
        let row = self.origin.agent.map(|agent| MateRow {
            agent,
            color: String::new(),
            claims: false,
            gone: Some(ended.clone()),
        });
        // Before anybody hears of it: whoever does may take up what it held.
        self.floor.give_back(&self.doer(), Why::Ended, true, Arc::clone(&self.origin)).await?;
        let review = self.review_of_ended(&ended);
        // What it has left running ends with it.
        let commands = self.commands_ended().map(Event::CommandOver);
        let events = commands.chain([Event::AgentEnded(ended)]).chain(review).collect();
        self.commit(events, extra).await?;
        row.map_or(Ok(()), |row| self.floor.know_mate(&mate.name, row))
    }

    /// The answer to whoever asked, and the word to the lead if it was somebody else or it was not asked.
    fn farewells(&self, letter: &Envelope, ended: &AgentEnded) -> Vec<Envelope> {
        let lead = session::agent_stream(self.floor.lead);
        let mut sends = Vec::new();
        let written = |to: &str, kind: Kind, text: String, reply_to| {
            Envelope::new(
                derived(&[self.stream.as_bytes(), to.as_bytes(), kind.name().as_bytes()]),
                &self.stream,
                to,
                kind,
                json!({ "text": text, "from": ended.name, "by": ended.by, "forced": ended.forced }),
                now_ms(),
            )
            .answering(reply_to)
        };
        if letter.kind == Kind::ShutdownRequest {
            let text = format!("`{}` has finished and is no more.", ended.name);
            sends.push(written(&letter.from, Kind::ShutdownApproved, text, Some(letter.id)));
        }
        if ended.forced || letter.from != lead {
            let why = if ended.reason.is_empty() { String::new() } else { format!(": {}", ended.reason) };
            let text = format!("`{}` was ended by {}{why}.", ended.name, ended.by);
            sends.push(written(&lead, Kind::TeammateTerminated, text, None));
        }
        sends
    }

    /// A letter that nobody will read goes back to whoever wrote it, and its lead hears of it.
    pub(super) fn returned(&self, letter: &Envelope) -> Vec<Envelope> {
        if !parting::comes_back(letter.kind) {
            return Vec::new();
        }
        let name = self.origin.name.to_string();
        let said = team_tools::title(&text_at(&letter.body, "text"));
        let lead = session::agent_stream(self.floor.lead);
        let mut readers = vec![letter.from.clone()];
        if letter.from != lead {
            readers.push(lead);
        }
        let sent_back = |to: String| {
            Envelope::new(
                derived(&[letter.id.to_string().as_bytes(), to.as_bytes(), b"returned"]),
                &self.stream,
                to,
                Kind::Undelivered,
                json!({
                    "text": format!("A message to `{name}` was not delivered, because {NO_MORE}: {said}"),
                    "from": &name, "letter": letter.id, "sender": letter.from, "why": NO_MORE, "said": &said,
                }),
                now_ms(),
            )
        };
        readers.into_iter().map(sent_back).collect()
    }

    /// It is no more: what still comes goes back.
    pub(super) async fn send_back(&mut self, letter: &Envelope) -> Result<(), RuntimeError> {
        let extra = Extra { sends: self.returned(letter), ..Extra::acks(vec![letter.id]) };
        self.commit(Vec::new(), extra).await
    }
}
