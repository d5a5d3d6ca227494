//! What an agent has decided goes into the journal; then whoever watches is told.

use std::sync::Arc;

use max_team_core::event::{End, Event, Interrupted, Replied, Stopper};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::limits::SNAPSHOT_ENTRIES_MIN;
use max_team_core::message::{Assignment, Envelope, Kind};
use max_team_core::policy::Class;
use max_team_core::tasks::Why;
use max_team_journal::{Commit, Expect, Projection, Strength};

use super::mail::answering;
use super::parting::to_people;
use super::review::decided;
use super::{Agent, Newcomer, SNAPSHOT_VERSION};
use crate::error::RuntimeError;
use crate::handle::{Mate, Notice};
use crate::herald::Word;
use crate::shared::{append, commit_at, now_ms};
use crate::tasks::Change;
use crate::{rows, session};

/// What goes into a commit besides the agent's own events.
#[derive(Default)]
pub(super) struct Extra {
    pub(super) acks: Vec<EnvelopeId>,
    pub(super) sends: Vec<Envelope>,
    /// Events of other streams.
    pub(super) others: Vec<(String, Event)>,
    /// Where such a stream must stand, for whoever has decided by what is in it.
    pub(super) expect: Vec<(String, u64)>,
    pub(super) projections: Vec<Projection>,
    /// Whoever begins to exist with it.
    pub(super) guests: Vec<Guest>,
    /// How many of the agent's events its turn has seen already.
    pub(super) seen: usize,
}

/// Somebody who begins to exist, with what they are given.
pub(super) struct Guest {
    pub(super) id: AgentId,
    pub(super) mate: Mate,
    pub(super) assignment: Arc<Assignment>,
    pub(super) letter: Envelope,
}

impl Extra {
    pub(super) fn acks(acks: Vec<EnvelopeId>) -> Self {
        Self { acks, ..Self::default() }
    }

    pub(super) fn send(letter: Envelope) -> Self {
        Self { sends: vec![letter], ..Self::default() }
    }

    /// A change of the shared list goes with it, unless somebody else is first.
    pub(super) fn change(&mut self, change: Change) {
        let Change { stream, head, events, .. } = change;
        if !events.is_empty() {
            self.others.extend(events.into_iter().map(|event| (stream.clone(), event)));
            self.expect.push((stream, head));
        }
    }

    /// What of it whoever watches the session is told.
    fn shown(&self) -> Vec<Event> {
        let is_shown =
            |event: &&Event| matches!(event, Event::ItemAdded(_) | Event::ItemWritten(_) | Event::ItemMoved(_));
        self.others.iter().map(|(_, event)| event).filter(is_shown).cloned().collect()
    }
}

/// A commit that has been put together.
struct Written {
    commit: Commit,
    /// What the session is told.
    replies: Vec<Event>,
    /// The call of which an answer is kept with it.
    answered: Option<Hash>,
}

impl Agent {
    /// Writes down what was decided, with all that goes with it, and applies it.
    pub(super) async fn commit(&mut self, events: Vec<Event>, extra: Extra) -> Result<(), RuntimeError> {
        if events.is_empty() && extra.acks.is_empty() && extra.sends.is_empty() && extra.others.is_empty() {
            return Ok(());
        }
        let ended = events.iter().any(|event| matches!(event, Event::TurnEnded(_)));
        let reviewed = ended && self.turn.reviewing().is_some();
        if ended && !self.keeps_tasks() {
            // Before its answer: whoever reads that may take up what it held.
            self.floor.give_back(&self.doer(), Why::Ended, false, Arc::clone(&self.origin)).await?;
        }
        let (mut events, images) = self.imaged(events).await;
        let at_ms = now_ms();
        events.extend(self.review_after(&events, at_ms));
        let mut extra = extra;
        let (guests, seen) = (std::mem::take(&mut extra.guests), extra.seen);
        let shown = extra.shown();
        let Written { mut commit, replies, answered } = self.write(&events, extra, at_ms)?;
        commit.blobs.extend(images);
        let shown = shown.into_iter().chain(to_people(&commit.sends));
        let shown: Vec<Event> = shown.collect();
        let mut newcomers = Vec::new();
        for Guest { id, mate, assignment, letter } in guests {
            commit.expect.push((session::agent_stream(id), Expect::At(0)));
            let Mate { definition, settings } = mate;
            let (floor, settings) = (&self.floor, settings.into());
            let newcomer = Newcomer::welcome(floor, id, &definition, settings, assignment, &letter, &mut commit)?;
            if newcomer.as_ref().is_some_and(Newcomer::has_begun) {
                self.floor.shared.herald.letter(&letter);
            } else {
                commit.sends.push(letter);
            }
            newcomers.extend(newcomer);
        }
        let word = self.floor.shared.herald.word();
        let prepare = || newcomers.iter_mut().for_each(|newcomer| newcomer.prepare(at_ms));
        self.floor.commit(commit, prepare).await?;
        newcomers.into_iter().for_each(|newcomer| newcomer.begin(&self.floor));
        answered.iter().for_each(|call| self.floor.release(call));
        self.head += events.len() as u64;
        self.reviewed |= reviewed;
        self.tries_first &= !events.iter().any(|event| matches!(event, Event::LlmEnded(_)));
        events.iter().skip(seen).for_each(|event| self.turn.apply(event));
        for event in &events {
            if let Event::Steered(steered) = event {
                self.steered(steered);
            }
        }
        self.will_tell(word, at_ms, events.into_iter().chain(replies).chain(shown));
        if ended {
            self.look_back = self.lead && !self.turn.is_stopped();
            self.answered = self.look_back;
            self.snapshot().await?;
        }
        Ok(())
    }

    /// That it was stopped, for all whom that is for.
    fn spread(&self, interrupted: &Interrupted, extra: &mut Extra, commit: &mut Commit) -> Result<(), RuntimeError> {
        let Interrupted { by, who, held, .. } = interrupted.clone();
        let since = held.as_ref().and_then(|held| held.since);
        // The user is about to be told what waits. Whoever was stopped by a letter would read that again.
        if held.is_some() && (self.lead || extra.acks.is_empty()) {
            commit.strength = Strength::Full;
        }
        let by = Stopper { name: by, who, ends: false, held };
        extra.sends.extend(self.stopping(&by));
        extra.sends.extend(self.stopping_apart(&by, &extra.acks)?);
        since.filter(|_| self.lead).into_iter().for_each(|since| self.floor.know_stop(since));
        Ok(())
    }

    /// Puts a commit together.
    fn write(&self, events: &[Event], mut extra: Extra, at_ms: i64) -> Result<Written, RuntimeError> {
        let mut commit = commit_at(at_ms);
        commit.fence = Some(self.floor.fence.clone());
        commit.patient = self.floor.is_crowded();
        commit.expect.push((self.stream.clone(), Expect::At(self.head)));
        let actor = format!("agent:{}", self.origin.name);
        commit.actor.clone_from(&actor);
        let (mut replies, mut answered) = (Vec::new(), None);
        let is_reviewed = events.iter().any(|event| matches!(event, Event::ReviewBegun(_)));
        // A turn may end in the same decision that begins it, before anybody knows whose it was.
        let mut assignment = self.turn.assignment();
        let mut stopped_by = self.turn.stopped_by();
        let mut quiet = self.turn.is_quiet();
        let mut asked = self.turn.began_with();
        for event in events {
            commit.appends.push(append(&self.stream, event, &actor)?);
            commit.projections.extend(rows::project(&self.stream, at_ms, event));
            extra.sends.extend(self.held_letter(event, at_ms));
            match event {
                Event::Interrupted(interrupted) => {
                    self.spread(interrupted, &mut extra, &mut commit)?;
                    stopped_by = Some(&interrupted.by);
                }
                Event::QuestionAnswered(answered) => extra.sends.extend(self.answered_letters(answered, at_ms)?),
                Event::Steered(steered) => self.take_in(steered, &mut extra, at_ms),
                Event::TurnStarted(started) => {
                    assignment = started.assignment.as_deref();
                    asked = Some(started.envelope);
                    quiet = started.quiet;
                }
                Event::TurnEnded(over) => {
                    if self.lead && !self.turn.is_compacting() {
                        let whole = over.end == End::Answered;
                        replies.push(Event::Replied(Replied { turn: over.turn, text: over.text.clone(), whole }));
                        // The answer is about to be shown.
                        commit.strength = Strength::Full;
                    }
                    extra.sends.extend(self.turn.reviewing().and_then(|letter| decided(letter, &over.text, at_ms)));
                    if let Some(given) = assignment {
                        // Where its changes are decided about first, it goes with what came of that.
                        let letters = self.result_letters(given, over, stopped_by, quiet, at_ms).into_iter();
                        extra.sends.extend(letters.map(|letter| answering(letter, asked)).filter(|_| !is_reviewed));
                        extra.others.extend(self.keeping(given, over, at_ms)?);
                        answered = given.cache.as_ref().map(|asked| asked.call);
                    }
                }
                Event::LlmIntent(_) => commit.blobs.extend(self.frame.unstored(&self.floor.shared)),
                // It is about to leave us, and nobody could tell afterwards whether it had.
                Event::ToolIntent(intent) if matches!(intent.class, Class::Keyed | Class::Opaque) => {
                    commit.strength = Strength::Full;
                }
                _ => {}
            }
        }
        for reply in &replies {
            commit.projections.extend(rows::project(&self.session_stream, at_ms, reply));
            commit.appends.push(append(&self.session_stream, reply, &actor)?);
        }
        commit.expect.extend(extra.expect.into_iter().map(|(stream, head)| (stream, Expect::At(head))));
        commit.acks = extra.acks;
        if extra.sends.iter().any(is_read_at_once) {
            commit.strength = Strength::Full;
        }
        commit.sends = self.counted(extra.sends, events);
        for (stream, event) in &extra.others {
            if let Event::Withdrawn(_) = event {
                // The user is about to be told that nobody will read it.
                commit.strength = Strength::Full;
            }
            commit.projections.extend(rows::project(stream, at_ms, event));
            commit.appends.push(append(stream, event, &actor)?);
        }
        commit.projections.extend(extra.projections);
        Ok(Written { commit, replies, answered })
    }

    /// The letters of a teammate say how many led to them; those of everybody who works for others, in which turn they were written.
    fn counted(&self, mut letters: Vec<Envelope>, events: &[Event]) -> Vec<Envelope> {
        let hops = if self.turn.mate().is_some() { self.turn.hops().saturating_add(1) } else { 0 };
        let begun = events.iter().find_map(|event| match event {
            Event::TurnStarted(started) => Some(started.turn),
            _ => None,
        });
        let turn = begun.or(self.turn.current()).filter(|_| !self.lead && !letters.is_empty());
        let cause = turn.map(|turn| turn.to_string());
        for letter in &mut letters {
            (letter.hops, letter.cause) = (hops, cause.clone());
        }
        letters
    }

    /// Tells whoever watches what has happened since they were last told. What is under way comes first: its bytes
    /// are on the wire before anybody hears of it.
    pub(super) async fn tell(&mut self) {
        if self.untold.is_empty() && self.begun.is_none() {
            return;
        }
        if !self.flights.is_empty() {
            tokio::task::yield_now().await;
        }
        if let Some(assignment) = self.begun.take() {
            self.floor.begun(&assignment);
        }
        for (word, notices) in std::mem::take(&mut self.untold) {
            word.tell(notices);
        }
    }

    pub(super) fn will_tell(&mut self, word: Word, at_ms: i64, events: impl IntoIterator<Item = Event>) {
        let (session, from) = (self.floor.session, &self.origin);
        let notice = |event| Notice::Event { session, from: Arc::clone(from), at_ms, event: Arc::new(event) };
        let notices = events.into_iter().map(notice).collect();
        self.untold.push((word, notices));
    }

    /// Keeps folding short without ever writing more than the log itself: at most one snapshot per doubling.
    async fn snapshot(&mut self) -> Result<(), RuntimeError> {
        if self.head < SNAPSHOT_ENTRIES_MIN.max(self.snapshot_at.saturating_mul(2)) {
            return Ok(());
        }
        let Ok(state) = serde_json::to_vec(&self.turn) else { return Ok(()) };
        let mut commit = commit_at(now_ms());
        commit.fence = Some(self.floor.fence.clone());
        commit.projections.push(Projection::Snapshot {
            stream: self.stream.clone(),
            stream_seq: self.head,
            version: SNAPSHOT_VERSION,
            state,
        });
        self.snapshot_at = self.head;
        self.floor.shared.keep(commit).await
    }
}

/// Whether people read a letter as soon as it is sent: what they have read must not come undone by a power cut.
fn is_read_at_once(letter: &Envelope) -> bool {
    letter.to.starts_with("user/") && matches!(letter.kind, Kind::Text | Kind::Undelivered | Kind::ShutdownRejected)
}
