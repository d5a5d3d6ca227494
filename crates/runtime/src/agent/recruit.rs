//! Teammates that a user wants: the same ones that a lead's model could start, by a letter to the lead.
//!
//! All of them begin, in one commit with the receipt of the letter, so that one that is read again starts nobody twice; or nobody
//! does, and what is wrong is told. Where some need a copy of the project, that is made first; the letter waits as long.

use max_team_core::event::{Event, Nudged};
use max_team_core::message::Envelope;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::commit::Guest;
use super::flight::{Flight, Landed};
use super::mates::{Joining, Started, row_of};
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::prompt::fill;
use crate::team_tools::Spawn;
use crate::worktree::Worker;

/// What a lead is told of those whom the user has started.
const RECRUITED: &str = include_str!("../../../../prompts/recruited.md");

impl Agent {
    /// Lets those begin whom a letter names, if nothing else is under way and all of them can; why somebody cannot is told.
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
        let (mut guests, mut new, mut told) = (Vec::new(), Joining::default(), Vec::new());
        let (mut refused, mut unmade) = (Vec::new(), Vec::new());
        // What some are to be painted in is nobody else's.
        new.colors = mates.iter().filter_map(|mate| mate.color.clone()).collect();
        for (index, spawn) in mates.into_iter().enumerate() {
            let (key, name) = (format!("{}.{index}", letter.id), spawn.name.clone());
            let started = match spawn.checked() {
                Ok(spawn) => self.engage_mate(&key, &spawn, &new)?,
                Err(words) => Err(words),
            };
            match started {
                Ok(Started::Before(_)) => {}
                Ok(Started::Now(guest, _)) => {
                    let role = guest.assignment.life.mate().map(|mate| mate.role.clone()).unwrap_or_default();
                    told.push(if role.is_empty() { format!("`{name}`") } else { format!("`{name}` ({role})") });
                    new.add(&guest);
                    guests.push(*guest);
                }
                Ok(Started::Later(worker)) => {
                    new.names.push(name.clone());
                    unmade.push((key, name, worker));
                }
                Err(words) => refused.push(format!("`{name}`: {words}")),
            }
        }
        let waits = refused.is_empty() && !unmade.is_empty();
        for (key, name, worker) in unmade.into_iter().filter(|_| waits) {
            if let Err(words) = self.awaits_copy(&key, *worker).await {
                refused.push(format!("`{name}`: {words}"));
            }
        }
        match (refused.is_empty(), waits) {
            (false, _) => self.refuse(letter, &refused.join("; ")).await,
            // It is read again once the copies are there.
            (true, true) => Ok(()),
            (true, false) => self.begin_all(letter, guests, &told).await,
        }
    }

    /// They begin, and their lead is told.
    async fn begin_all(&mut self, letter: &Envelope, guests: Vec<Guest>, told: &[String]) -> Result<(), RuntimeError> {
        let text = fill(RECRUITED, &[("mates", &told.join(", "))]);
        let nudged = (!told.is_empty()).then(|| Event::Nudged(Nudged { text: text.trim_end().to_owned() }));
        let known: Vec<_> = guests.iter().filter_map(row_of).collect();
        self.commit(nudged.into_iter().collect(), Extra { guests, ..Extra::acks(vec![letter.id]) }).await?;
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
