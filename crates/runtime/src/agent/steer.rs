//! Messages of the user and the team that come during a turn.
//!
//! It stays in the mailbox until something takes it out: the turn's next call, in the commit that promises it; the next
//! turn, if there is no such call or the user wants it to wait; or the user, who takes it back. All three are done by the
//! agent's own loop, one after the other, so that each letter goes one way.

use max_team_core::chat::Part;
use max_team_core::event::{Event, Steered, Withdrawn};
use max_team_core::id::EnvelopeId;
use max_team_core::limits::MAIL_TOLD_BYTES_MAX;
use max_team_core::mates::report::Trigger;
use max_team_core::message::{Envelope, Kind};
use serde_json::Value;

use super::mail::text_at;
use super::{Agent, Extra};
use crate::error::RuntimeError;
use crate::skills::{self, Asked, Wish};

/// What was said and has not been taken in.
#[derive(Debug, Default)]
pub(super) struct Steering {
    letters: Vec<Spoken>,
    /// Messages of the team, as they are told.
    news: Vec<(EnvelopeId, String)>,
    /// Letters of the team that stay in the mailbox and are told of, and whether they were.
    asides: Vec<(EnvelopeId, String, bool)>,
    /// All of it, as the next call is told.
    told: Option<Steered>,
    wish: Wish,
    /// What the turn was told before. Whoever goes through the mail may have it still in their hands.
    taken: Vec<EnvelopeId>,
}

/// One message of the user's.
#[derive(Debug)]
struct Spoken {
    id: EnvelopeId,
    text: String,
    /// The files that it mentions.
    files: Vec<Part>,
}

impl Steering {
    /// What the next call is told.
    pub(super) fn told(&self) -> Option<Steered> {
        self.told.clone()
    }
}

/// Words of the user's to an agent that works for others, marked as the user's.
pub(super) fn of_user(words: &str) -> String {
    format!("The user writes to you:\n\n{words}")
}

/// Whether a user wants a letter to be read once the turn that runs is over.
pub(crate) fn waits(letter: &Envelope) -> bool {
    letter.body.get("wait").and_then(Value::as_bool).unwrap_or_default()
}

impl Agent {
    /// A letter that would begin a turn has come while one runs.
    pub(super) async fn put_by(&mut self, letter: &Envelope) {
        if self.steering.taken.contains(&letter.id) {
            return;
        }
        // If the turn does not take it in, the next one is about it.
        self.left_over = true;
        let is_known = self.steering.letters.iter().any(|known| known.id == letter.id);
        if letter.kind == Kind::UserInput && !waits(letter) && !is_known {
            let files = self.files_mentioned(std::slice::from_ref(letter)).await;
            self.steering.letters.push(Spoken { id: letter.id, text: text_at(&letter.body, "text"), files });
            self.put_together();
        }
    }

    /// A letter of the team has come that stays where it is and is worth a word.
    pub(super) fn put_aside(&mut self, letter: &Envelope) {
        if !self.steering.asides.iter().any(|(known, ..)| *known == letter.id) {
            self.steering.asides.push((letter.id, self.told_as(letter), false));
            self.put_together();
        }
    }

    /// A message of the team has come while a turn runs: it is told with the next call. If there is none, it begins the next turn.
    pub(super) fn offer(&mut self, letter: &Envelope) {
        let is_later = matches!(letter.kind, Kind::TaskAssign | Kind::ShutdownRejected | Kind::FilesRewound);
        let is_instruction = self.turn.engaged().is_some_and(|engaged| engaged.reply_to == letter.from);
        // This turn answers the user; an instruction of the lead waits for a turn that answers the lead.
        let is_others = is_instruction && self.turn.trigger() == Some(Trigger::User);
        let steering = &self.steering;
        let is_known = steering.taken.contains(&letter.id) || steering.news.iter().any(|(id, _)| *id == letter.id);
        let is_fit = self.turn.is_busy() && self.turn.reviewing().is_none() && !self.turn.holds(letter);
        let words = self.told_as(letter);
        let bytes: usize = steering.news.iter().map(|(_, words)| words.len()).sum();
        let is_too_much = bytes + words.len() > MAIL_TOLD_BYTES_MAX && !steering.news.is_empty();
        if !is_later && !is_others && !is_known && is_fit && !is_too_much {
            self.steering.news.push((letter.id, words));
            self.put_together();
        }
    }

    /// The additions to a commit that takes messages into a turn: the receipts and, for a teammate, the lines for its
    /// lead about the user's messages.
    pub(super) fn take_in(&self, steered: &Steered, extra: &mut Extra, at_ms: i64) {
        extra.acks.extend(steered.envelopes.iter().chain(&steered.letters));
        let said = self.steering.letters.iter().filter(|spoken| steered.envelopes.contains(&spoken.id));
        let lines = said.filter_map(|spoken| self.users_words(&spoken.text, &spoken.id.to_string(), at_ms));
        extra.sends.extend(lines);
    }

    /// What was said is told together, in words of the user's first and with the skills they ask for behind those.
    fn put_together(&mut self) {
        let envelopes: Vec<EnvelopeId> = self.steering.letters.iter().map(|spoken| spoken.id).collect();
        let words: Vec<String> = self.steering.letters.iter().map(|spoken| spoken.text.clone()).collect();
        (self.steering.told, self.steering.wish) = (None, Wish::default());
        let asides =
            self.steering.asides.iter().filter(|(_, _, told)| !told).map(|(_, words, _)| Part::text(words.clone()));
        let news = self.steering.news.iter().map(|(_, words)| Part::text(words.clone()));
        let beside: Vec<Part> = news.chain(asides).collect();
        let letters: Vec<EnvelopeId> = self.steering.news.iter().map(|(id, _)| *id).collect();
        if envelopes.is_empty() && beside.is_empty() {
            return;
        }
        if envelopes.is_empty() {
            self.steering.told = Some(Steered { envelopes, input: beside, letters });
            return;
        }
        let session = self.floor.session.to_string();
        let asked = Asked { root: self.frame.root(), session: &session };
        let expanded = skills::expand(&words, &self.floor.shared.skills.of(asked.root), &asked);
        let said = words.join("\n\n");
        let mut input = vec![Part::text(if self.lead { said } else { of_user(&said) })];
        input.extend(Some(expanded.text).filter(|text| !text.is_empty()).map(Part::text));
        input.extend(self.steering.letters.iter().flat_map(|spoken| &spoken.files).cloned());
        input.extend(beside);
        self.steering.told = Some(Steered { envelopes, input, letters });
        self.steering.wish = expanded.wish;
    }

    /// The turn has been told.
    pub(super) fn steered(&mut self, steered: &Steered) {
        self.frame.wish_also(std::mem::take(&mut self.steering.wish));
        self.steering.asides.iter_mut().for_each(|(_, _, told)| *told = true);
        self.steering.taken.extend(steered.envelopes.iter().chain(&steered.letters));
        self.steering.news.retain(|(id, _)| !steered.letters.contains(id));
        self.forget(&steered.envelopes);
    }

    /// The turn is over: whatever it was not told is read anew.
    pub(super) fn steer_no_more(&mut self) {
        self.steering = Steering::default();
    }

    fn forget(&mut self, letters: &[EnvelopeId]) {
        self.steering.letters.retain(|known| !letters.contains(&known.id));
        self.put_together();
    }

    /// The user takes a message back; whether nobody had read it.
    pub(super) async fn withdraw(&mut self, letter: EnvelopeId) -> Result<bool, RuntimeError> {
        let mail = self.floor.shared.journal.pending_mail(&self.stream)?;
        if !mail.iter().any(|known| known.id == letter && known.kind == Kind::UserInput) {
            return Ok(false);
        }
        let withdrawn = Event::Withdrawn(Withdrawn { envelope: letter });
        let others = vec![(self.session_stream.clone(), withdrawn)];
        self.commit(Vec::new(), Extra { others, ..Extra::acks(vec![letter]) }).await?;
        self.forget(&[letter]);
        Ok(true)
    }
}
