//! Teammates that a user asks for, by a message to the lead: the same ones that a lead's model could start.
//!
//! All of them start, in one commit with the acknowledgement of the message, so that reading it again starts none
//! twice; or none starts, and the reason is reported. If some need a worktree, it is made first, and the message
//! waits. If none starts, the worktrees are removed: after a crash the next reader of the message makes and removes
//! the same ones.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use max_team_core::body::Body;
use max_team_core::event::{Event, Nudged};
use max_team_core::id::EnvelopeId;
use max_team_core::interrupt::Hold;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::teammate::Spawn;
use tokio_util::sync::CancellationToken;

use super::commit::Guest;
use super::flight::{EffectDone, Flight};
use super::protocol::refused;
use super::teammates::{Joining, Started, row_of};
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::handle::Notice;
use crate::team_tools;
use crate::template::fill;
use crate::worktree::{self, Worker};

/// The reason if the teammates were stopped before they started.
const HALTED: &str = "stopped before anybody had begun";

/// The text for a lead about teammates that the user has started.
const RECRUITED: &str = include_str!("../../../../prompts/recruited.md");

impl Agent {
    /// Starts the teammates that a message names, if nothing else runs and all of them can start; otherwise the reason
    /// is reported.
    pub(super) async fn recruit(&mut self, envelope: &Envelope) -> Result<(), RuntimeError> {
        let Some(teammates) = wanted(envelope) else { return self.refuse(envelope, "it names no teammate").await };
        if self.turn.refuses_team(envelope) {
            return self.turn_down(envelope, teammates.len(), HALTED).await;
        }
        let teammates: Vec<Spawn> = teammates.into_iter().map(Spawn::repainted).collect();
        self.active.bind(&self.turn.stream, self.frame.settings());
        let (mut guests, mut new, mut told) = (Vec::new(), self.coming(Some(envelope.id))?, Vec::new());
        let (mut refused, mut unmade) = (Vec::new(), Vec::new());
        new.is_users = true;
        // A color that one of them asks for is not given to another.
        new.colors.extend(teammates.iter().filter_map(|teammate| teammate.color.clone()));
        let count = teammates.len();
        for (index, spawn) in teammates.into_iter().enumerate() {
            let (key, name) = (key_of(envelope, index), spawn.name.clone());
            let started = match team_tools::checked(spawn) {
                Ok(spawn) => self.engage_teammate(&key, &spawn, &new)?,
                Err(words) => Err(words),
            };
            match started {
                Ok(Started::Before(_)) => {}
                Ok(Started::Now(guest, _)) => {
                    let role =
                        guest.assignment.life.teammate().map(|teammate| teammate.role.clone()).unwrap_or_default();
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
        let whys =
            unmade.iter().filter_map(|(key, name, _)| Some(format!("`{name}`: {}", self.running.copying.why(key)?)));
        refused.extend(whys.collect::<Vec<_>>());
        if !refused.is_empty() {
            return self.turn_down(envelope, count, &refused.join("; ")).await;
        }
        if unmade.is_empty() {
            self.tell_of_copies(envelope, count, 0);
            self.running.copying.forget(envelope, count);
            return self.begin_all(envelope, guests, &told).await;
        }
        // The message is read again when the worktrees exist.
        let left = unmade.len();
        unmade.into_iter().for_each(|(key, _, worker)| self.awaits_copy(&key, *worker));
        self.tell_of_copies(envelope, count, left);
        Ok(())
    }

    /// Teammates of earlier messages whose worktrees are still being made: their names are taken.
    pub(super) fn coming(&self, before: Option<EnvelopeId>) -> Result<Joining, RuntimeError> {
        let mut waiting = self.active.unread(&self.turn.stream)?;
        let place = waiting.iter().position(|envelope| Some(envelope.id) == before);
        waiting.truncate(place.unwrap_or(waiting.len()));
        let there = self.active.teammates()?;
        let teammates = self.turn.team_requests(&waiting).filter_map(wanted).flatten();
        // Their start may not be stored yet.
        let teammates: Vec<Spawn> =
            teammates.filter(|teammate| there.iter().all(|(name, _)| *name != teammate.name)).collect();
        let colors = teammates.iter().filter_map(|teammate| teammate.color.clone()).collect();
        let names: Vec<String> = teammates.into_iter().map(|teammate| teammate.name).collect();
        Ok(Joining { coming: names.len(), names, colors, is_users: false })
    }

    /// Reports how many worktrees of a message are still to be made: it takes a while on a large project.
    fn tell_of_copies(&self, envelope: &Envelope, count: usize, left: usize) {
        let of = self.running.copying.count(envelope, count);
        if of > 0 {
            let (session, order, made) = (self.active.session, envelope.id, of.saturating_sub(left));
            self.active.shared.notices.tell(Notice::Copies { session, order, made, of });
        }
    }

    /// None of them starts. Their worktrees would have no owner: the message is refused once they are removed.
    async fn turn_down(&mut self, envelope: &Envelope, count: usize, why: &str) -> Result<(), RuntimeError> {
        // Worktrees that are still being made are given up.
        self.tell_of_copies(envelope, count, 0);
        if self.drops_copies(envelope, count) {
            return Ok(());
        }
        self.running.copying.forget(envelope, count);
        if self.turn.has_refused(envelope.id) {
            return self.commit(Vec::new(), Extra::acks(vec![envelope.id])).await;
        }
        self.refuse(envelope, why).await
    }

    /// Refusals of the requests that a stop finds waiting, to be committed with the stop: a newer turn may begin
    /// before their last worktree is removed, and the process may die. The messages stay in the mailbox until then.
    pub(super) fn turned_down(&self, held: Option<&Hold>) -> Result<Vec<Event>, RuntimeError> {
        let Some(held) = held.filter(|_| self.turn.origin.lead) else { return Ok(Vec::new()) };
        let mut waiting = self.active.unread(&self.turn.stream)?;
        let is_new = |envelope: &Envelope| held.envelopes.contains(&envelope.id) && !self.turn.has_refused(envelope.id);
        waiting.retain(|envelope| envelope.kind == MessageKind::TeamRequest && is_new(envelope));
        Ok(waiting.iter().map(|envelope| refused(envelope, HALTED)).collect())
    }

    /// Starts them, and tells their lead.
    async fn begin_all(
        &mut self,
        envelope: &Envelope,
        guests: Vec<Guest>,
        told: &[String],
    ) -> Result<(), RuntimeError> {
        let text = fill(RECRUITED, &[("mates", &told.join(", "))]);
        let nudged = (!told.is_empty()).then(|| Event::Nudged(Nudged { text: text.trim_end().to_owned() }));
        let known: Vec<_> = guests.iter().filter_map(row_of).collect();
        self.commit(nudged.into_iter().collect(), Extra { guests, ..Extra::acks(vec![envelope.id]) }).await?;
        known.into_iter().try_for_each(|(name, row)| self.active.know_teammate(&name, row))
    }

    /// Makes a worktree in the background, after which the message is read again. It belongs to no turn, so the end of
    /// one does not cancel it; a stop does, and then the message is read again, too.
    fn awaits_copy(&mut self, key: &str, worker: Worker) {
        if !self.running.preparing.insert(key.to_owned()) {
            return;
        }
        let Making { stop, why } = self.running.copying.begin(key);
        let (active, stream, key) = (self.active.clone(), self.turn.stream.clone(), key.to_owned());
        self.running.flights.push(Box::pin(async move {
            let made = worker.prepare(&active.shared, &stop).await;
            // A stop is no failure of the worktree.
            if let Some(words) = made.err().filter(|_| !stop.is_cancelled()) {
                drop(why.set(words));
            }
            active.ring(&stream);
            EffectDone { flight: Flight::Tool(key), input: None }
        }));
    }

    /// Removes the worktrees of a message's teammates that do not start, and stops making the others; whether that
    /// takes a while, after which the message is read again.
    fn drops_copies(&mut self, envelope: &Envelope, count: usize) -> bool {
        let mut waits = false;
        for key in (0..count).map(|index| key_of(envelope, index)) {
            let is_first = self.running.copying.give_up(&key);
            let agent = self.delegate(&key);
            // A teammate that has started nevertheless keeps its worktree.
            if self.exists(agent) {
                continue;
            }
            let id = agent.to_string();
            // A worktree that could not be removed is listed, and can be cleaned later.
            let is_left = is_first && !worktree::is_gone(&self.active.shared, &id);
            if self.running.preparing.contains(&key) {
                // It may exist nevertheless: then it is removed when the message is read again.
                self.running.copying.given_up.remove(&key);
                waits = true;
            } else if is_left {
                self.running.preparing.insert(key.clone());
                let (active, stream) = (self.active.clone(), self.turn.stream.clone());
                self.running.flights.push(Box::pin(async move {
                    worktree::drop_unused(&active.shared, id).await;
                    active.ring(&stream);
                    EffectDone { flight: Flight::Tool(key), input: None }
                }));
                waits = true;
            }
        }
        waits
    }
}

/// The teammates that a message names; `None`: it names none.
pub(crate) fn wanted(envelope: &Envelope) -> Option<Vec<Spawn>> {
    match Body::read(envelope) {
        Body::Team(wanted) => wanted.teammates.map(Cow::into_owned),
        _ => None,
    }
}

/// The key of the start of one teammate that a message names.
fn key_of(envelope: &Envelope, index: usize) -> String {
    format!("{}.{index}", envelope.id)
}

/// One worktree that is being made.
#[derive(Debug, Clone, Default)]
struct Making {
    stop: CancellationToken,
    /// Why it could not be made.
    why: Arc<OnceLock<String>>,
}

/// Worktrees for teammates that messages name, by the key of their start.
#[derive(Debug, Default)]
pub(super) struct Copying {
    begun: HashMap<String, Making>,
    /// Those that were given up because another teammate of the same message cannot start.
    given_up: HashSet<String>,
    /// Fires when the lead's loop ends.
    pub(super) over: CancellationToken,
}

impl Copying {
    /// Whether worktrees are being made.
    pub(super) fn is_making(&self) -> bool {
        !self.begun.is_empty()
    }

    fn begin(&mut self, key: &str) -> Making {
        self.given_up.remove(key);
        let making = Making { stop: self.over.child_token(), ..Making::default() };
        self.begun.insert(key.to_owned(), making.clone());
        making
    }

    /// Why a worktree could not be made, if that was tried.
    fn why(&self, key: &str) -> Option<&str> {
        self.begun.get(key)?.why.get().map(String::as_str)
    }

    /// How many worktrees were made for a message, or are being made.
    fn count(&self, envelope: &Envelope, count: usize) -> usize {
        (0..count).filter(|index| self.begun.contains_key(&key_of(envelope, *index))).count()
    }

    /// Stops making one; whether it was not given up before.
    fn give_up(&mut self, key: &str) -> bool {
        self.begun.get(key).into_iter().for_each(|making| making.stop.cancel());
        self.given_up.insert(key.to_owned())
    }

    /// Forgets the worktrees of a message that is settled.
    fn forget(&mut self, envelope: &Envelope, count: usize) {
        for key in (0..count).map(|index| key_of(envelope, index)) {
            self.begun.remove(&key);
            self.given_up.remove(&key);
        }
    }
}
