//! Commits an agent's decisions; then subscribers are told.

use std::sync::Arc;

use max_team_core::event::{Event, Replied, TurnEnded, TurnOutcome};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::message::{Assignment, Envelope, MessageKind};
use max_team_core::policy::Repeatability;
use max_team_core::task_list::ReleaseReason;
use max_team_journal::{Commit, Durability, Expect, Projection};

use super::mail::answering;
use super::memory::LookBack;
use super::parting::to_people;
use super::review::decided;
use super::{Agent, Newcomer};
use crate::driver::Part;
use crate::error::RuntimeError;
use crate::handle::AgentSpec;
use crate::shared::{append, now_ms};
use crate::tasks::ListChange;
use crate::{outbox, rows, session};

/// What goes into a commit besides the agent's own events.
#[derive(Default)]
pub(super) struct Extra {
    pub(super) acks: Vec<EnvelopeId>,
    pub(super) sends: Vec<Envelope>,
    /// Events of other streams.
    pub(super) others: Vec<(String, Event)>,
    /// The heads that other streams must have, because the decision depends on them.
    pub(super) expect: Vec<(String, u64)>,
    pub(super) projections: Vec<Projection>,
    /// The agents that start with this commit.
    pub(super) guests: Vec<Guest>,
}

/// An agent that starts, with its assignment.
pub(super) struct Guest {
    pub(super) id: AgentId,
    pub(super) teammate: AgentSpec,
    pub(super) assignment: Arc<Assignment>,
    pub(super) envelope: Envelope,
}

impl Extra {
    pub(super) fn acks(acks: Vec<EnvelopeId>) -> Self {
        Self { acks, ..Self::default() }
    }

    pub(super) fn send(envelope: Envelope) -> Self {
        Self { sends: vec![envelope], ..Self::default() }
    }

    /// Adds a change of the shared list to the commit, which fails if another writer was first.
    pub(super) fn change(&mut self, change: ListChange) {
        let ListChange { stream, head, events, .. } = change;
        if !events.is_empty() {
            self.others.extend(events.into_iter().map(|event| (stream.clone(), event)));
            self.expect.push((stream, head));
        }
    }

    /// The events of other streams that subscribers are told of.
    fn shown(&self) -> Vec<Event> {
        let is_shown =
            |event: &&Event| matches!(event, Event::ItemAdded(_) | Event::ItemWritten(_) | Event::ItemMoved(_));
        self.others.iter().map(|(_, event)| event).filter(is_shown).cloned().collect()
    }
}

/// A commit that has been put together.
struct PreparedCommit {
    commit: Commit,
    /// Events for the session's stream.
    replies: Vec<Event>,
    /// The call whose answer is kept with this commit.
    answered: Option<Hash>,
}

impl Agent {
    /// Commits a decision with everything that belongs to it, and applies it.
    pub(super) async fn commit(&mut self, events: Vec<Event>, extra: Extra) -> Result<(), RuntimeError> {
        if events.is_empty() && extra.acks.is_empty() && extra.sends.is_empty() && extra.others.is_empty() {
            return Ok(());
        }
        let ended = events.iter().any(|event| matches!(event, Event::TurnEnded(_)));
        let reviewed = ended && self.turn.review_message().is_some();
        if ended && !self.keeps_tasks() {
            // Before its answer: an agent that reads the answer may claim the tasks that it held.
            self.active.give_back(&self.doer(), ReleaseReason::Ended, false, Arc::clone(&self.turn.origin)).await?;
        }
        let (mut events, images) = self.imaged(events).await;
        let at_ms = now_ms();
        events.extend(self.review_after(&events, at_ms));
        let mut extra = extra;
        let guests = std::mem::take(&mut extra.guests);
        let shown = extra.shown();
        let PreparedCommit { mut commit, replies, answered } = self.write(&events, extra, at_ms)?;
        commit.blobs.extend(images);
        let shown = shown.into_iter().chain(to_people(&commit.sends));
        let shown: Vec<Event> = shown.collect();
        let mut newcomers = Vec::new();
        for Guest { id, teammate, assignment, envelope } in guests {
            commit.expect.push((session::agent_stream(id), Expect::At(0)));
            let AgentSpec { definition, settings } = teammate;
            let (active, settings) = (&self.active, settings.into());
            let newcomer = Newcomer::welcome(active, id, &definition, settings, assignment, &envelope, &mut commit)?;
            if newcomer.as_ref().is_some_and(Newcomer::has_begun) {
                self.active.shared.notices.envelope(&envelope);
            } else {
                commit.sends.push(envelope);
            }
            newcomers.extend(newcomer);
        }
        let word = self.active.shared.notices.ticket();
        let part = Part::hand_in(&self.active, commit, newcomers, events.len()).await?;
        self.turn.stored(&self.active, part, at_ms).await?;
        answered.iter().for_each(|call| self.active.release(call));
        self.reviewed |= reviewed;
        self.restart.tries_first &= !events.iter().any(|event| matches!(event, Event::LlmEnded(_)));
        self.turn.catch_up(&events, at_ms);
        for event in &events {
            if let Event::Steered(steered) = event {
                self.steered(steered);
            }
        }
        let events = events.into_iter().chain(replies).chain(shown);
        self.turn.will_tell(&self.active, word, at_ms, events);
        if ended {
            let looks_back = self.turn.origin.lead && !self.turn.is_stopped();
            self.look_back = if looks_back { LookBack::AfterTurn } else { LookBack::No };
            self.turn.snapshot(&self.active).await?;
        }
        Ok(())
    }

    /// Puts a commit together.
    fn write(&self, events: &[Event], mut extra: Extra, at_ms: i64) -> Result<PreparedCommit, RuntimeError> {
        let mut commit = self.turn.commit_at(&self.active, at_ms, 0);
        commit.batch = self.active.is_crowded();
        let actor = commit.actor.clone();
        let (mut replies, mut answered) = (Vec::new(), None);
        let is_reviewed = events.iter().any(|event| matches!(event, Event::ReviewBegun(_)));
        // A turn may end in the same decision that begins it, before its assignment is known.
        let mut assignment = self.turn.assignment();
        let mut stopped_by = self.turn.stopped_by();
        let mut quiet = self.turn.is_quiet();
        let mut asked = self.turn.began_with();
        for event in events {
            self.turn.append(event, &mut commit)?;
            extra.sends.extend(self.held_envelope(event, at_ms));
            match event {
                Event::Interrupted(interrupted) => {
                    extra.sends.extend(self.stopping(&interrupted.by, interrupted.who.as_ref()));
                    stopped_by = Some(&interrupted.by);
                }
                Event::QuestionAnswered(answered) => extra.sends.extend(self.answered_envelopes(answered, at_ms)?),
                Event::Steered(steered) => self.take_in(steered, &mut extra, at_ms),
                Event::TurnStarted(started) => {
                    assignment = started.assignment.as_deref();
                    asked = Some(started.envelope);
                    quiet = started.quiet;
                }
                Event::TurnEnded(over) => {
                    if self.turn.origin.lead && !self.turn.is_compacting() {
                        replies.push(self.reply(over, &mut commit)?);
                    }
                    extra
                        .sends
                        .extend(self.turn.review_message().and_then(|envelope| decided(envelope, &over.text, at_ms)));
                    if let Some(given) = assignment {
                        // If its changes are decided about first, the result is sent with that decision.
                        let envelopes = self.result_envelopes(given, over, stopped_by, quiet, at_ms).into_iter();
                        extra
                            .sends
                            .extend(envelopes.map(|envelope| answering(envelope, asked)).filter(|_| !is_reviewed));
                        extra.others.extend(self.keeping(given, over, at_ms)?);
                        answered = given.cache.as_ref().map(|asked| asked.call);
                    }
                }
                Event::LlmIntent(_) => commit.blobs.extend(self.frame.unstored(&self.active.shared)),
                // The call acts outside this process, and afterwards it could not be found out whether it ran.
                Event::ToolIntent(intent) if matches!(intent.class, Repeatability::Keyed | Repeatability::Opaque) => {
                    commit.strength = Durability::Full;
                }
                _ => {}
            }
        }
        let session = self.session_stream();
        for reply in &replies {
            commit.projections.extend(rows::project(&session, at_ms, reply));
            commit.appends.push(append(&session, reply, &actor)?);
        }
        commit.expect.extend(extra.expect.into_iter().map(|(stream, head)| (stream, Expect::At(head))));
        commit.acks = extra.acks;
        if extra.sends.iter().any(is_read_at_once) {
            commit.strength = Durability::Full;
        }
        commit.sends = self.counted(extra.sends, events);
        for (stream, event) in &extra.others {
            if let Event::Withdrawn(_) = event {
                // The user is told that the message was taken back, so it must survive a power cut.
                commit.strength = Durability::Full;
            }
            commit.projections.extend(rows::project(stream, at_ms, event));
            commit.appends.push(append(stream, event, &actor)?);
        }
        commit.projections.extend(extra.projections);
        Ok(PreparedCommit { commit, replies, answered })
    }

    /// The answer of a lead's turn. In a session of a chat that is sent answers it is put into the outbox by the same commit.
    fn reply(&self, over: &TurnEnded, commit: &mut Commit) -> Result<Event, RuntimeError> {
        // The answer is shown to the user, so it must survive a power cut.
        commit.strength = Durability::Full;
        let chat = self.active.chat.as_ref().filter(|chat| chat.gets_answers_sent());
        commit.outbox.extend(chat.map(|chat| outbox::reply(chat, over)).transpose()?);
        let whole = over.end == TurnOutcome::Answered;
        Ok(Event::Replied(Replied { turn: over.turn, text: over.text.clone(), whole }))
    }

    /// Adds the number of preceding messages to messages of a teammate, and to messages of all agents but the lead the
    /// turn in which they were written.
    fn counted(&self, mut envelopes: Vec<Envelope>, events: &[Event]) -> Vec<Envelope> {
        let hops = if self.turn.teammate().is_some() { self.turn.hops().saturating_add(1) } else { 0 };
        let begun = events.iter().find_map(|event| match event {
            Event::TurnStarted(started) => Some(started.turn),
            _ => None,
        });
        let turn = begun.or(self.turn.current()).filter(|_| !self.turn.origin.lead && !envelopes.is_empty());
        let cause = turn.map(|turn| turn.to_string());
        for envelope in &mut envelopes {
            (envelope.hops, envelope.cause) = (hops, cause.clone());
        }
        envelopes
    }

    /// Publishes the events since the last call. Running effects go first: their requests are sent before subscribers
    /// are told.
    pub(super) async fn tell(&mut self) {
        if self.turn.has_untold() || self.running.begun.is_some() {
            if !self.running.flights.is_empty() {
                tokio::task::yield_now().await;
            }
            self.running.begun.take().iter().for_each(|assignment| self.active.begun(assignment));
            self.turn.tell();
        }
    }
}

/// Whether people read a message as soon as it is sent: a power cut must not undo what they have read.
fn is_read_at_once(envelope: &Envelope) -> bool {
    envelope.to.starts_with("user/")
        && matches!(envelope.kind, MessageKind::Text | MessageKind::Undelivered | MessageKind::ShutdownRejected)
}
