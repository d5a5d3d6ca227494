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
    envelopes: Vec<SteeringMessage>,
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
    pub(super) async fn steer(&mut self, envelope: &Envelope) {
        let steering = &self.inbox.steering;
        let is_known =
            steering.taken.contains(&envelope.id) || steering.envelopes.iter().any(|known| known.id == envelope.id);
        if !is_known {
            let files = self.read_mentions(std::slice::from_ref(envelope)).await;
            self.inbox.steering.envelopes.push(SteeringMessage {
                id: envelope.id,
                text: envelope.text().to_owned(),
                files,
            });
            self.put_together();
        }
    }

    /// A message of the team that stays in the mailbox and is mentioned in the next call.
    pub(super) fn put_aside(&mut self, envelope: &Envelope) {
        if !self.inbox.steering.asides.iter().any(|(known, ..)| *known == envelope.id) {
            self.inbox.steering.asides.push((envelope.id, self.told_as(envelope), false));
            self.put_together();
        }
    }

    /// A message of the team during a turn: it is added to the next call, or begins the next turn if there is none.
    pub(super) fn offer(&mut self, envelope: &Envelope) {
        let steering = &self.inbox.steering;
        let is_known = steering.taken.contains(&envelope.id) || steering.news.iter().any(|(id, _)| *id == envelope.id);
        let words = self.told_as(envelope);
        let bytes: usize = steering.news.iter().map(|(_, words)| words.len()).sum();
        let is_too_much = bytes + words.len() > MAIL_TOLD_BYTES_MAX && !steering.news.is_empty();
        if !is_known && !is_too_much {
            self.inbox.steering.news.push((envelope.id, words));
            self.put_together();
        }
    }

    /// The additions to a commit that takes messages into a turn: the receipts and, for a teammate, the lines for its
    /// lead about the user's messages.
    pub(super) fn take_in(&self, steered: &Steered, extra: &mut Extra, at_ms: i64) {
        extra.acks.extend(steered.envelopes.iter().chain(&steered.from_team));
        let said = self.inbox.steering.envelopes.iter().filter(|spoken| steered.envelopes.contains(&spoken.id));
        let lines = said.filter_map(|spoken| self.users_words(&spoken.text, &spoken.id.to_string(), at_ms));
        extra.sends.extend(lines);
    }

    /// Combines the messages: the user's first, with the skills that they ask for behind them.
    fn put_together(&mut self) {
        let envelopes: Vec<EnvelopeId> = self.inbox.steering.envelopes.iter().map(|spoken| spoken.id).collect();
        let words: Vec<String> = self.inbox.steering.envelopes.iter().map(|spoken| spoken.text.clone()).collect();
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
        let from_team: Vec<EnvelopeId> = self.inbox.steering.news.iter().map(|(id, _)| *id).collect();
        if envelopes.is_empty() && beside.is_empty() {
            return;
        }
        if envelopes.is_empty() {
            self.inbox.steering.told = Some(Steered { envelopes, input: beside, from_team });
            return;
        }
        let session = self.active.session.to_string();
        let asked = SkillContext { root: self.frame.root(), session: &session };
        let expanded = skills::expand(&words, &self.active.shared.skills.of(asked.root), &asked);
        let said = words.join("\n\n");
        let mut input = vec![Part::text(if self.turn.origin.lead { said } else { of_user(&said) })];
        input.extend(Some(expanded.text).filter(|text| !text.is_empty()).map(Part::text));
        input.extend(self.inbox.steering.envelopes.iter().flat_map(|spoken| &spoken.files).cloned());
        input.extend(beside);
        self.inbox.steering.told = Some(Steered { envelopes, input, from_team });
        self.inbox.steering.wish = expanded.wish;
    }

    /// The messages have been added to a call.
    pub(super) fn steered(&mut self, steered: &Steered) {
        self.frame.wish_also(std::mem::take(&mut self.inbox.steering.wish));
        self.inbox.steering.asides.iter_mut().for_each(|(_, _, told)| *told = true);
        self.inbox.steering.taken.extend(steered.envelopes.iter().chain(&steered.from_team));
        self.inbox.steering.news.retain(|(id, _)| !steered.from_team.contains(id));
        self.forget(&steered.envelopes);
    }

    /// The turn is over: messages that it was not told are read again.
    pub(super) fn steer_no_more(&mut self) {
        self.inbox.steering = Steering::default();
    }

    fn forget(&mut self, envelopes: &[EnvelopeId]) {
        self.inbox.steering.envelopes.retain(|known| !envelopes.contains(&known.id));
        self.put_together();
    }

    /// The user takes a message back; whether it was unread.
    pub(super) async fn withdraw(&mut self, message: EnvelopeId) -> Result<bool, RuntimeError> {
        let mail = self.active.shared.journal.pending_mail(&self.turn.stream)?;
        if !mail.iter().any(|known| known.id == message && known.kind == MessageKind::UserInput) {
            return Ok(false);
        }
        let withdrawn = Event::Withdrawn(Withdrawn { envelope: message });
        let others = vec![(self.session_stream(), withdrawn)];
        self.commit(Vec::new(), Extra { others, ..Extra::acks(vec![message]) }).await?;
        self.forget(&[message]);
        Ok(true)
    }
}
