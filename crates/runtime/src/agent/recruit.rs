//! Teammates that a user wants: the same ones that a lead's model could start, by a letter to the lead.
//!
//! They begin in one commit with the receipt of the letter, so that one that is read again starts nobody twice. Whoever needs a
//! copy of the project begins once that is made; the letter waits as long.

use max_team_core::event::{Event, Nudged};
use max_team_core::mates::LetterRefused;
use max_team_core::message::{Envelope, Kind};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::flight::{Flight, Landed};
use super::mates::{Started, row_of};
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::prompt::fill;
use crate::team_tools::Spawn;
use crate::worktree::Worker;

/// What a lead is told of those whom the user has started.
const RECRUITED: &str = include_str!("../../../../prompts/recruited.md");

impl Agent {
    /// Lets those begin whom a letter names, if nothing else is under way; why somebody cannot is told.
    pub(super) async fn recruit(&mut self, letter: &Envelope) -> Result<(), RuntimeError> {
        if !self.lead || !letter.from.starts_with("user/") {
            return self.refuse(letter, "only a user asks for teammates, and only a lead has any").await;
        }
        // What a lead is told about them must not come between a call and its result.
        if self.turn.is_busy() {
            self.left_over = true;
            return Ok(());
        }
        let mates = letter.body.get("mates").and_then(|mates| Vec::<Spawn>::deserialize(mates).ok());
        let Some(mates) = mates else { return self.refuse(letter, "it names nobody").await };
        self.floor.bind(&self.stream, self.frame.settings());
        let (mut guests, mut names, mut told) = (Vec::new(), Vec::new(), Vec::new());
        let (mut refused, mut waits) = (Vec::new(), false);
        for (index, spawn) in mates.into_iter().enumerate() {
            let (key, name) = (format!("{}.{index}", letter.id), spawn.name.clone());
            let started = match spawn.checked() {
                Ok(spawn) => self.engage_mate(&key, &spawn, &names)?,
                Err(words) => Err(words),
            };
            match started {
                Ok(Started::Before(_)) => {}
                Ok(Started::Now(guest, _)) => {
                    let role = guest.assignment.life.mate().map(|mate| mate.role.clone()).unwrap_or_default();
                    told.push(if role.is_empty() { format!("`{name}`") } else { format!("`{name}` ({role})") });
                    names.push(name);
                    guests.push(*guest);
                }
                Ok(Started::Later(worker)) => match self.awaits_copy(&key, *worker).await {
                    Ok(()) => waits = true,
                    Err(words) => refused.push(format!("`{name}`: {words}")),
                },
                Err(words) => refused.push(format!("`{name}`: {words}")),
            }
        }
        let mut events = Vec::new();
        if !told.is_empty() {
            let text = fill(RECRUITED, &[("mates", &told.join(", "))]);
            events.push(Event::Nudged(Nudged { text: text.trim_end().to_owned() }));
        }
        if !waits && !refused.is_empty() {
            let (letter, from, why) = (letter.id, letter.from.clone(), refused.join("; "));
            events.push(Event::LetterRefused(LetterRefused { letter, from, kind: Kind::TeamRequest, why }));
        }
        let acks = if waits { Vec::new() } else { vec![letter.id] };
        let known: Vec<_> = guests.iter().filter_map(row_of).collect();
        self.commit(events, Extra { guests, acks, ..Extra::default() }).await?;
        known.into_iter().try_for_each(|(name, row)| self.floor.know_mate(&name, row))
    }

    /// Makes a copy beside everything else, after which the letter is read again. One that is still not there then cannot be
    /// made, and the second try says why.
    async fn awaits_copy(&mut self, key: &str, worker: Worker) -> Result<(), String> {
        if self.preparing.contains(key) {
            return Ok(());
        }
        if !self.tried.insert(key.to_owned()) {
            return worker.prepare(&self.floor.shared, &CancellationToken::new()).await;
        }
        self.preparing.insert(key.to_owned());
        let (floor, stream, key) = (self.floor.clone(), self.stream.clone(), key.to_owned());
        let cancel = self.cancel.clone();
        self.flights.push(Box::pin(async move {
            // Why there is none is asked again by whoever looks.
            drop(worker.prepare(&floor.shared, &cancel).await);
            floor.ring(&stream);
            Landed { flight: Flight::Tool(key), input: None }
        }));
        Ok(())
    }
}
