//! Teammates that a user wants: the same ones that a lead's model could start, by a letter to the lead.
//!
//! All of them begin, in one commit with the receipt of the letter, so that one that is read again starts nobody twice; or nobody
//! does, and what is wrong is told. Where some need a copy of the project, that is made first; the letter waits as long. Where
//! nobody begins, nothing that was made for them stays: whoever reads the letter after a crash makes and drops the same ones.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use max_team_core::event::{Event, Nudged};
use max_team_core::id::EnvelopeId;
use max_team_core::message::{Envelope, Kind};
use max_team_core::stop::Held;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::commit::Guest;
use super::flight::{Flight, Landed};
use super::mates::{Joining, Started, row_of};
use super::protocol::refused;
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::handle::Notice;
use crate::prompt::fill;
use crate::team_tools::Spawn;
use crate::worktree::{self, Worker};

/// Why those do not begin whom somebody has stopped before they did.
const HALTED: &str = "stopped before anybody had begun";

/// What a lead is told of those whom the user has started.
const RECRUITED: &str = include_str!("../../../../prompts/recruited.md");

impl Agent {
    /// Lets those begin whom a letter names, if nothing else is under way and all of them can; why somebody cannot is told.
    pub(super) async fn recruit(&mut self, letter: &Envelope) -> Result<(), RuntimeError> {
        if !self.lead || !letter.from.starts_with("user/") {
            return self.refuse(letter, "only a user asks for teammates, and only a lead has any").await;
        }
        let Some(mates) = wanted(letter) else { return self.refuse(letter, "it names nobody").await };
        if self.turn.holds(letter) || self.turn.has_refused(letter.id) {
            return self.turn_down(letter, mates.len(), HALTED).await;
        }
        // What a lead is told about them must not come between a call and its result.
        if self.turn.is_busy() {
            self.left_over = true;
            return Ok(());
        }
        let mates: Vec<Spawn> = mates.into_iter().map(Spawn::repainted).collect();
        self.floor.bind(&self.stream, self.frame.settings());
        let (mut guests, mut new, mut told) = (Vec::new(), self.coming(Some(letter.id))?, Vec::new());
        let (mut refused, mut unmade) = (Vec::new(), Vec::new());
        new.is_users = true;
        // What some are to be painted in is nobody else's.
        new.colors.extend(mates.iter().filter_map(|mate| mate.color.clone()));
        let count = mates.len();
        for (index, spawn) in mates.into_iter().enumerate() {
            let (key, name) = (key_of(letter, index), spawn.name.clone());
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
        let whys = unmade.iter().filter_map(|(key, name, _)| Some(format!("`{name}`: {}", self.copying.why(key)?)));
        refused.extend(whys.collect::<Vec<_>>());
        if !refused.is_empty() {
            return self.turn_down(letter, count, &refused.join("; ")).await;
        }
        if unmade.is_empty() {
            self.tell_of_copies(letter, count, 0);
            self.copying.forget(letter, count);
            return self.begin_all(letter, guests, &told).await;
        }
        // It is read again once the copies are there.
        let left = unmade.len();
        unmade.into_iter().for_each(|(key, _, worker)| self.awaits_copy(&key, *worker));
        self.tell_of_copies(letter, count, left);
        Ok(())
    }

    /// Those who are about to begin because a letter asks for them that came before this one: their names are taken, although copies
    /// are still made for them.
    pub(super) fn coming(&self, before: Option<EnvelopeId>) -> Result<Joining, RuntimeError> {
        let mut waiting = self.floor.unread(&self.stream)?;
        let place = waiting.iter().position(|letter| Some(letter.id) == before);
        waiting.truncate(place.unwrap_or(waiting.len()));
        let there = self.floor.teammates()?;
        let mates = self.turn.recruiting(&waiting).filter_map(wanted).flatten();
        // That they have begun may not be stored yet.
        let mates: Vec<Spawn> = mates.filter(|mate| there.iter().all(|(name, _)| *name != mate.name)).collect();
        let colors = mates.iter().filter_map(|mate| mate.color.clone()).collect();
        let names: Vec<String> = mates.into_iter().map(|mate| mate.name).collect();
        Ok(Joining { coming: names.len(), names, colors, is_users: false })
    }

    /// Whoever watches is told how many of a letter's copies are still to be made: it takes a while on a large project.
    fn tell_of_copies(&self, letter: &Envelope, count: usize, left: usize) {
        let of = self.copying.count(letter, count);
        if of > 0 {
            let (session, order, made) = (self.floor.session, letter.id, of.saturating_sub(left));
            self.floor.shared.herald.tell(Notice::Copies { session, order, made, of });
        }
    }

    /// Nobody of them begins. Nobody would own what was made for them: the letter is refused once that is gone.
    async fn turn_down(&mut self, letter: &Envelope, count: usize, why: &str) -> Result<(), RuntimeError> {
        // What is still made is given up.
        self.tell_of_copies(letter, count, 0);
        if self.drops_copies(letter, count) {
            return Ok(());
        }
        self.copying.forget(letter, count);
        if self.turn.has_refused(letter.id) {
            return self.commit(Vec::new(), Extra::acks(vec![letter.id])).await;
        }
        self.refuse(letter, why).await
    }

    /// That nobody begins of those whom a stop finds waiting, to be written down with it: something newer may begin before the last
    /// of their copies is gone, and the program may die. The letters stay as long.
    pub(super) fn turned_down(&self, held: Option<&Held>) -> Result<Vec<Event>, RuntimeError> {
        let Some(held) = held.filter(|_| self.lead) else { return Ok(Vec::new()) };
        let mut waiting = self.floor.unread(&self.stream)?;
        let is_new = |letter: &Envelope| held.letters.contains(&letter.id) && !self.turn.has_refused(letter.id);
        waiting.retain(|letter| letter.kind == Kind::TeamRequest && is_new(letter));
        Ok(waiting.iter().map(|letter| refused(letter, HALTED)).collect())
    }

    /// They begin, and their lead is told.
    async fn begin_all(&mut self, letter: &Envelope, guests: Vec<Guest>, told: &[String]) -> Result<(), RuntimeError> {
        let text = fill(RECRUITED, &[("mates", &told.join(", "))]);
        let nudged = (!told.is_empty()).then(|| Event::Nudged(Nudged { text: text.trim_end().to_owned() }));
        let known: Vec<_> = guests.iter().filter_map(row_of).collect();
        self.commit(nudged.into_iter().collect(), Extra { guests, ..Extra::acks(vec![letter.id]) }).await?;
        known.into_iter().try_for_each(|(name, row)| self.floor.know_mate(&name, row))
    }

    /// Makes a copy beside everything else, after which the letter is read again. It belongs to no turn, so none ends it; a stop
    /// does, which has the letter read again.
    fn awaits_copy(&mut self, key: &str, worker: Worker) {
        if !self.preparing.insert(key.to_owned()) {
            return;
        }
        let Making { stop, why } = self.copying.begin(key);
        let (floor, stream, key) = (self.floor.clone(), self.stream.clone(), key.to_owned());
        self.flights.push(Box::pin(async move {
            let made = worker.prepare(&floor.shared, &stop).await;
            // That somebody stopped it is no reason against it.
            if let Some(words) = made.err().filter(|_| !stop.is_cancelled()) {
                drop(why.set(words));
            }
            floor.ring(&stream);
            Landed { flight: Flight::Tool(key), input: None }
        }));
    }

    /// Drops the copies of those of a letter who do not begin, and stops what is still being made; whether that takes a while,
    /// after which the letter is read again.
    fn drops_copies(&mut self, letter: &Envelope, count: usize) -> bool {
        let mut waits = false;
        for key in (0..count).map(|index| key_of(letter, index)) {
            let is_first = self.copying.give_up(&key);
            let agent = self.delegate(&key);
            // Whoever has begun all the same keeps its own.
            if self.exists(agent) {
                continue;
            }
            let id = agent.to_string();
            // What could not be dropped is listed, and can be cleaned later.
            let is_left = is_first && !worktree::is_gone(&self.floor.shared, &id);
            if self.preparing.contains(&key) {
                // Perhaps it is there all the same: then it is dropped when the letter is read again.
                self.copying.given_up.remove(&key);
                waits = true;
            } else if is_left {
                self.preparing.insert(key.clone());
                let (floor, stream) = (self.floor.clone(), self.stream.clone());
                self.flights.push(Box::pin(async move {
                    worktree::drop_unused(&floor.shared, id).await;
                    floor.ring(&stream);
                    Landed { flight: Flight::Tool(key), input: None }
                }));
                waits = true;
            }
        }
        waits
    }
}

/// Those whom a letter names; `None`: it does not say.
pub(crate) fn wanted(letter: &Envelope) -> Option<Vec<Spawn>> {
    Vec::<Spawn>::deserialize(letter.body.get("mates")?).ok()
}

/// What the start of one of those is called whom a letter names.
fn key_of(letter: &Envelope, index: usize) -> String {
    format!("{}.{index}", letter.id)
}

/// One copy that is being made.
#[derive(Debug, Clone, Default)]
struct Making {
    stop: CancellationToken,
    /// Why there is none.
    why: Arc<OnceLock<String>>,
}

/// Copies for those whom letters name, by what their start is called.
#[derive(Debug, Default)]
pub(super) struct Copying {
    begun: HashMap<String, Making>,
    /// Those that were dropped because somebody else of their letter cannot begin.
    given_up: HashSet<String>,
    /// Fires when whoever has them made leaves.
    pub(super) over: CancellationToken,
}

impl Copying {
    /// Whether somebody waits for a copy.
    pub(super) fn is_making(&self) -> bool {
        !self.begun.is_empty()
    }

    fn begin(&mut self, key: &str) -> Making {
        self.given_up.remove(key);
        let making = Making { stop: self.over.child_token(), ..Making::default() };
        self.begun.insert(key.to_owned(), making.clone());
        making
    }

    /// Why a copy cannot be made, if that was tried.
    fn why(&self, key: &str) -> Option<&str> {
        self.begun.get(key)?.why.get().map(String::as_str)
    }

    /// How many copies a letter has had made, or has being made.
    fn count(&self, letter: &Envelope, count: usize) -> usize {
        (0..count).filter(|index| self.begun.contains_key(&key_of(letter, *index))).count()
    }

    /// Stops one; whether nobody had given it up before.
    fn give_up(&mut self, key: &str) -> bool {
        self.begun.get(key).into_iter().for_each(|making| making.stop.cancel());
        self.given_up.insert(key.to_owned())
    }

    /// What becomes of a letter is decided.
    fn forget(&mut self, letter: &Envelope, count: usize) {
        for key in (0..count).map(|index| key_of(letter, index)) {
            self.begun.remove(&key);
            self.given_up.remove(&key);
        }
    }
}
