//! Commands that run on in the background of somebody who stays: it is told when one is over.
//!
//! That one began is written down with the result of the call that began it, that it is over with the turn that is told so,
//! or with the word of whoever stops it, before it is stopped. One that was running when its process ended is over too; how, nobody knows.

use max_team_core::event::{Event, Stopper};
use max_team_core::id::EnvelopeId;
use max_team_core::mates::{CommandBegun, CommandOver};
use max_team_core::turn::Input;
use max_team_tools::shell::Known;

use super::{Agent, Extra};
use crate::error::RuntimeError;

impl Agent {
    /// The commands that began since this was last asked.
    pub(super) fn commands_begun(&self) -> Vec<Event> {
        if !self.background.is_used() || !self.stays() {
            return Vec::new();
        }
        let written = self.turn.commands();
        // One that is over before anybody looked is told like the others.
        let is_new = |known: &Known| {
            let is_told = known.is_over && known.is_seen;
            // One that was stopped was written down as over before it was.
            !is_told && !known.is_stopped && written.iter().all(|begun| begun.id != known.id)
        };
        let new = self.background.known().into_iter().filter(is_new);
        new.map(|known| Event::CommandBegun(CommandBegun { id: known.id, name: known.name })).collect()
    }

    /// That each of its commands is over, for whoever brings all to an end that runs.
    pub(super) fn commands_ended(&self) -> impl Iterator<Item = CommandOver> {
        let known = self.background.known();
        self.turn.commands().iter().map(move |CommandBegun { id, name }| {
            let known = known.iter().find(|known| known.id == *id);
            let stopped = known.is_none_or(|known| !known.is_over);
            CommandOver { id: id.clone(), lost: known.is_none(), stopped, name: name.clone() }
        })
    }

    /// That its commands are stopped, to be written down before they are: if nobody comes to it, nobody is woken by them either.
    /// What was over before somebody said stop is told as ever.
    fn commands_stopped(&self) -> Vec<Event> {
        self.commands_ended().filter(|over| over.stopped).map(Event::CommandOver).collect()
    }

    /// Stops the turn that runs, if one does, and what it left running; for a lead, also while it rests, whoever works for it.
    pub(super) async fn interrupt(&mut self, by: Stopper, acks: Vec<EnvelopeId>) -> Result<(), RuntimeError> {
        self.follow().await?;
        let mut events = self.commands_stopped();
        events.extend(self.turned_down(by.held.as_ref())?);
        let stopped = self.decide(Input::Interrupt { by: by.clone() });
        // Where that is an event, the commit that says so stops the others.
        let sends = if stopped.is_empty() { self.stopping_apart(&by, &acks)? } else { Vec::new() };
        events.extend(stopped);
        self.commit(events, Extra { sends, ..Extra::acks(acks) }).await?;
        self.background.stop_all();
        Ok(())
    }

    /// Begins a turn about commands that are over, once there is none; whether it did.
    pub(super) async fn hear_commands(&mut self) -> Result<bool, RuntimeError> {
        if self.turn.is_busy() || self.turn.gone().is_some() {
            return Ok(false);
        }
        if self.turn.commands().is_empty() {
            // What one did that was stopped is known once it has ended.
            let seen = self.files_seen();
            self.commit(seen, Extra::default()).await?;
            return Ok(false);
        }
        // It is told once whoever was stopped has begun something.
        if self.turn.held().is_some() {
            return Ok(false);
        }
        let known = self.background.known();
        let (mut events, mut told) = (Vec::new(), Vec::new());
        for CommandBegun { id, name } in self.turn.commands() {
            let known = known.iter().find(|known| known.id == *id);
            let stopped = known.is_some_and(|known| known.is_stopped);
            let lost = match known {
                Some(known) if !known.is_over => continue,
                Some(known) if known.is_seen => false,
                Some(_) => {
                    told.push(self.background.last_words(id).unwrap_or_else(|| format!("`{id}` ({name}): ended")));
                    false
                }
                None => {
                    told.push(format!(
                        "`{id}` ({name}): it died with the program, which ended while it ran. Nobody knows how far it came: look \
                         before you run it again."
                    ));
                    true
                }
            };
            let (id, name) = (id.clone(), if lost { name.clone() } else { String::new() });
            events.push(Event::CommandOver(CommandOver { id, lost, stopped, name }));
        }
        if events.is_empty() {
            return Ok(false);
        }
        events.extend(self.files_seen());
        let begins = !told.is_empty();
        if begins {
            let words = format!("What you had left running in the background is over:\n\n{}", told.join("\n\n"));
            let begin = self.beginning_about(words, &told.join(" "));
            self.follow().await?;
            events.extend(self.decide(begin));
        }
        self.commit(events, Extra::default()).await?;
        // Where no turn begins, nothing else would say so for long.
        self.tell().await;
        self.know_task();
        Ok(begins)
    }
}
