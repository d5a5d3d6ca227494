//! Messages of the user and the team that come during a turn.
//!
//! A message stays in the mailbox until it is taken: by the turn's next model call, in the commit of its intent; by
//! the next turn, if there is no such call or the user wants it to wait; or by the user, who takes it back. The
//! agent's own loop does all three, one after the other, so that each message goes one way.

use max_team_core::chat::Part;
use max_team_core::event::{Event, Steered, Withdrawn};
use max_team_core::id::EnvelopeId;
use max_team_core::limits::MAIL_TOLD_BYTES_MAX;
use max_team_core::message::{Envelope, MessageKind};

use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::skills::{self, SkillContext, SkillWishes};

/// Messages that the turn has not taken in yet.
#[derive(Debug, Default)]
pub(super) struct Steering {
    letters: Vec<SteeringMessage>,
    /// Messages of the team, as the model reads them.
    news: Vec<(EnvelopeId, String)>,
    /// Messages of the team that stay in the mailbox and are only mentioned, and whether they were.
    asides: Vec<(EnvelopeId, String, bool)>,
    /// All of it, for the next call.
    told: Option<Steered>,
    wish: SkillWishes,
    /// Messages that the turn was told before; the mail being sorted may still contain them.
    taken: Vec<EnvelopeId>,
}

/// A message of the user.
#[derive(Debug)]
struct SteeringMessage {
    id: EnvelopeId,
    text: String,
    /// The files that it mentions.
    files: Vec<Part>,
}

impl Steering {
    /// The messages for the next call.
    pub(super) fn told(&self) -> Option<Steered> {
        self.told.clone()
    }
}

/// A message of the user to an agent that works for others, marked as the user's.
pub(super) fn of_user(words: &str) -> String {
    format!("The user writes to you:\n\n{words}")
}

impl Agent {
    /// A message of the user during a turn: it is added to the next call.
    pub(super) async fn steer(&mut self, letter: &Envelope) {
        let steering = &self.inbox.steering;
        let is_known =
            steering.taken.contains(&letter.id) || steering.letters.iter().any(|known| known.id == letter.id);
        if !is_known {
            let files = self.files_mentioned(std::slice::from_ref(letter)).await;
            self.inbox.steering.letters.push(SteeringMessage { id: letter.id, text: letter.text().to_owned(), files });
            self.put_together();
        }
    }

    /// A message of the team that stays in the mailbox and is mentioned in the next call.
    pub(super) fn put_aside(&mut self, letter: &Envelope) {
        if !self.inbox.steering.asides.iter().any(|(known, ..)| *known == letter.id) {
            self.inbox.steering.asides.push((letter.id, self.told_as(letter), false));
            self.put_together();
        }
    }

    /// A message of the team during a turn: it is added to the next call, or begins the next turn if there is none.
    pub(super) fn offer(&mut self, letter: &Envelope) {
        let steering = &self.inbox.steering;
        let is_known = steering.taken.contains(&letter.id) || steering.news.iter().any(|(id, _)| *id == letter.id);
        let words = self.told_as(letter);
        let bytes: usize = steering.news.iter().map(|(_, words)| words.len()).sum();
        let is_too_much = bytes + words.len() > MAIL_TOLD_BYTES_MAX && !steering.news.is_empty();
        if !is_known && !is_too_much {
            self.inbox.steering.news.push((letter.id, words));
            self.put_together();
        }
    }

    /// The additions to a commit that takes messages into a turn: the receipts and, for a teammate, the lines for its
    /// lead about the user's messages.
    pub(super) fn take_in(&self, steered: &Steered, extra: &mut Extra, at_ms: i64) {
        extra.acks.extend(steered.envelopes.iter().chain(&steered.letters));
        let said = self.inbox.steering.letters.iter().filter(|spoken| steered.envelopes.contains(&spoken.id));
        let lines = said.filter_map(|spoken| self.users_words(&spoken.text, &spoken.id.to_string(), at_ms));
        extra.sends.extend(lines);
    }

    /// Combines the messages: the user's first, with the skills that they ask for behind them.
    fn put_together(&mut self) {
        let envelopes: Vec<EnvelopeId> = self.inbox.steering.letters.iter().map(|spoken| spoken.id).collect();
        let words: Vec<String> = self.inbox.steering.letters.iter().map(|spoken| spoken.text.clone()).collect();
        (self.inbox.steering.told, self.inbox.steering.wish) = (None, SkillWishes::default());
        let asides = self
            .inbox
            .steering
            .asides
            .iter()
            .filter(|(_, _, told)| !told)
            .map(|(_, words, _)| Part::text(words.clone()));
        let news = self.inbox.steering.news.iter().map(|(_, words)| Part::text(words.clone()));
        let beside: Vec<Part> = news.chain(asides).collect();
        let letters: Vec<EnvelopeId> = self.inbox.steering.news.iter().map(|(id, _)| *id).collect();
        if envelopes.is_empty() && beside.is_empty() {
            return;
        }
        if envelopes.is_empty() {
            self.inbox.steering.told = Some(Steered { envelopes, input: beside, letters });
            return;
        }
        let session = self.floor.session.to_string();
        let asked = SkillContext { root: self.frame.root(), session: &session };
        let expanded = skills::expand(&words, &self.floor.shared.skills.of(asked.root), &asked);
        let said = words.join("\n\n");
        let mut input = vec![Part::text(if self.turn.origin.lead { said } else { of_user(&said) })];
        input.extend(Some(expanded.text).filter(|text| !text.is_empty()).map(Part::text));
        input.extend(self.inbox.steering.letters.iter().flat_map(|spoken| &spoken.files).cloned());
        input.extend(beside);
        self.inbox.steering.told = Some(Steered { envelopes, input, letters });
        self.inbox.steering.wish = expanded.wish;
    }

    /// The messages have been added to a call.
    pub(super) fn steered(&mut self, steered: &Steered) {
        self.frame.wish_also(std::mem::take(&mut self.inbox.steering.wish));
        self.inbox.steering.asides.iter_mut().for_each(|(_, _, told)| *told = true);
        self.inbox.steering.taken.extend(steered.envelopes.iter().chain(&steered.letters));
        self.inbox.steering.news.retain(|(id, _)| !steered.letters.contains(id));
        self.forget(&steered.envelopes);
    }

    /// The turn is over: messages that it was not told are read again.
    pub(super) fn steer_no_more(&mut self) {
        self.inbox.steering = Steering::default();
    }

    fn forget(&mut self, letters: &[EnvelopeId]) {
        self.inbox.steering.letters.retain(|known| !letters.contains(&known.id));
        self.put_together();
    }

    /// The user takes a message back; whether it was unread.
    pub(super) async fn withdraw(&mut self, letter: EnvelopeId) -> Result<bool, RuntimeError> {
        let mail = self.floor.shared.journal.pending_mail(&self.turn.stream)?;
        if !mail.iter().any(|known| known.id == letter && known.kind == MessageKind::UserInput) {
            return Ok(false);
        }
        let withdrawn = Event::Withdrawn(Withdrawn { envelope: letter });
        let others = vec![(self.session_stream(), withdrawn)];
        self.commit(Vec::new(), Extra { others, ..Extra::acks(vec![letter]) }).await?;
        self.forget(&[letter]);
        Ok(true)
    }
}
