//! What a person's stop leaves waiting: it begins no turn before something comes that is newer than the stop.
//!
//! Which letters had come is in the event that says so, so that the next process knows it, too. They stay in the mailbox, and
//! are told with whatever begins the next turn.

use max_team_core::event::Stopper;
use max_team_core::id::{EnvelopeId, TurnId};
use max_team_core::message::{Envelope, Kind};
use max_team_core::policy::By;
use max_team_core::stop::{self, Held};
use max_team_core::turn::is_stop;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Agent;
use super::mail::{add, derived, stopper, text_at};
use super::report::STOPPED_WORDS;
use crate::error::RuntimeError;
use crate::post::is_go_on;
use crate::session;

/// Where a letter that stops somebody says since when what others write is no news.
const SINCE: &str = "since";
/// Where it says how far the shared list was.
const LISTED: &str = "listed";

/// A person's stop, as it is told to each of those it is for: since when, and how far the shared list was.
pub(crate) struct Halt<'h> {
    pub(crate) from: &'h str,
    pub(crate) by: &'h str,
    pub(crate) who: Option<&'h By>,
    pub(crate) since: Option<TurnId>,
    pub(crate) listed: Option<u64>,
    pub(crate) at_ms: i64,
}

impl Halt<'_> {
    /// The letter for somebody. Of a stop that says since when, one is stored, whoever writes it.
    pub(crate) fn letter(&self, to: String) -> Envelope {
        let when = self.since.map_or_else(|| format!("{} {}", self.from, self.at_ms), |since| since.to_string());
        self.under(derived(&[when.as_bytes(), to.as_bytes(), b"stop"]), to)
    }

    /// The same under an id of its own.
    pub(crate) fn under(&self, id: EnvelopeId, to: String) -> Envelope {
        let mut body = json!({ "by": self.by, "stopped": true });
        self.who.iter().for_each(|who| add(&mut body, "who", who));
        self.since.iter().for_each(|since| add(&mut body, SINCE, since));
        self.listed.iter().for_each(|listed| add(&mut body, LISTED, listed));
        Envelope::new(id, self.from, to, Kind::Shutdown, body, self.at_ms)
    }
}

/// Since when what others write is no news, if a letter stops everybody.
pub(crate) fn since_of(letter: &Envelope) -> Option<TurnId> {
    TurnId::deserialize(letter.body.get(SINCE)?).ok().filter(|_| is_stop(letter))
}

impl Agent {
    /// Does what a letter says that stops it. What was read with the letter and came before it may not be stored yet.
    pub(super) async fn stop_by(&mut self, letter: &Envelope, came: &[EnvelopeId]) -> Result<(), RuntimeError> {
        let mut waiting = self.floor.shared.journal.pending_mail(&self.stream)?;
        let stop = waiting.iter().position(|known| known.id == letter.id);
        waiting.truncate(stop.unwrap_or(waiting.len()));
        waiting.retain(|letter| !came.contains(&letter.id) && self.turn.is_beginning(letter, self.lead));
        let letters = came.iter().copied().chain(waiting.iter().map(|letter| letter.id)).collect();
        let is_all = self.lead || letter.from == session::agent_stream(self.floor.lead);
        // When it was said counts, not when it is read.
        let said = since_of(letter).or_else(|| self.floor.old_stop(letter.id));
        self.floor.know_turn(said);
        let since = said.or_else(|| is_all.then(|| self.floor.fresh_turn()));
        let listed = letter.body.get(LISTED).and_then(Value::as_u64);
        let by = self.holding(stopper(letter), letters, since, listed)?;
        self.left_over |= self.lead && !self.preparing.is_empty();
        self.interrupt(by, vec![letter.id]).await
    }

    /// What somebody has stopped while nobody was here is not gone on with first.
    pub(super) async fn stop_first(&mut self) -> Result<(), RuntimeError> {
        let mut mail = self.floor.shared.journal.pending_mail(&self.stream)?;
        mail.retain(|letter| self.turn.is_busy() && is_stop(letter));
        match mail.pop() {
            Some(stop) => self.stop_by(&stop, &[]).await,
            None => Ok(()),
        }
    }

    /// Whoever a user wanted on the team before a stop does not begin first and is stopped afterwards: of a lead's mail, in the order it
    /// came, the stop is read first then.
    pub(super) async fn stop_ahead(&mut self, mail: &mut Vec<Envelope>) -> Result<(), RuntimeError> {
        let Some(at) = mail.iter().rposition(is_stop).filter(|_| self.lead && !self.turn.is_busy()) else {
            return Ok(());
        };
        if !mail.iter().take(at).any(|letter| letter.kind == Kind::TeamRequest) {
            return Ok(());
        }
        let stop = mail.remove(at);
        let came = mail.iter().take(at).filter(|letter| self.turn.is_beginning(letter, self.lead));
        let came: Vec<EnvelopeId> = came.map(|letter| letter.id).collect();
        self.stop_by(&stop, &came).await
    }

    /// Does what a person says who stops it here. Without `all`, what they have said themselves is told at once.
    pub(super) async fn stop_here(&mut self, by: Stopper, all: bool) -> Result<(), RuntimeError> {
        let was_busy = self.turn.is_busy();
        if !all && !was_busy {
            // Whoever speaks and says stop at once means what they have just said.
            Box::pin(self.take_mail(true)).await?;
        }
        let mut waiting = self.floor.unread(&self.stream)?;
        // While nothing else is to be stopped, a team that is about to begin is meant.
        let is_said = |kind: Kind| kind == Kind::UserInput || (was_busy && kind == Kind::TeamRequest);
        let is_kept = |letter: &Envelope| !all && self.lead && is_said(letter.kind);
        waiting.retain(|letter| self.turn.is_beginning(letter, self.lead) && !is_kept(letter));
        let letters = waiting.iter().map(|letter| letter.id).collect();
        let since = self.lead.then(|| self.floor.fresh_turn());
        let by = self.holding(by, letters, since, None)?;
        let is_team = waiting.iter().any(|letter| letter.kind == Kind::TeamRequest);
        self.interrupt(by, Vec::new()).await?;
        // Whoever is about to join is turned down, and what is made for them is given up.
        if is_team { Box::pin(self.take_mail(true)).await } else { Ok(()) }
    }

    /// Whoever stops it, with what is left waiting. Only what a person says holds: whom an agent stops, or the time, is given
    /// something else to do.
    fn holding(
        &self,
        by: Stopper,
        letters: Vec<EnvelopeId>,
        since: Option<TurnId>,
        listed: Option<u64>,
    ) -> Result<Stopper, RuntimeError> {
        let is_person = matches!(by.who, Some(By::Person(_))) && !by.ends;
        let claims = self.turn.mate().is_some_and(|mate| mate.claims);
        // Whoever rests over a list with nothing to take was not taken from it. A lead passes it on to those who were.
        let is_at_any = self.turn.is_busy() || !letters.is_empty();
        let is_taken = self.lead || (claims && (is_at_any || self.floor.has_free(&self.origin.name)?));
        let listed = if is_taken { Some(listed.map_or_else(|| self.floor.list_head(), Ok)?) } else { None };
        // For whoever does nothing and has nothing to read it changes nothing, unless everybody was stopped: what others still write
        // must not begin it.
        let is_any = is_at_any || (!self.lead && (since.is_some() || listed.is_some()));
        // Of two stops the later counts for all, whichever is read last, and whatever has begun between them.
        let known = if self.lead && since.is_some() { self.floor.stopped_since()? } else { None };
        let since = since.max(known);
        let by = Stopper { held: is_person.then_some(Held { letters, since, listed }), ..by };
        // Who works in a plan or for a call may still write to a teammate that rests.
        let may_write = || Ok::<_, RuntimeError>(!self.floor.working()?.is_empty() && self.floor.count_mates()?.0 > 0);
        let is_any = is_any || (self.lead && may_write()?) || !self.stopped_apart()?.is_empty();
        Ok(if is_any { by } else { Stopper { held: None, ..by } })
    }

    /// Whether these wait with what a stop has left; if not, all of it is told.
    pub(super) fn is_held(&self, letters: &[Envelope]) -> bool {
        self.turn.held().is_some() && letters.iter().all(|letter| self.turn.holds(letter))
    }

    /// The letters that only say that a teammate was stopped, and the one note that stands for all of them and for the agent's own
    /// last turn, if that was stopped.
    pub(super) fn stop_note(&self, letters: &[&Envelope]) -> (Vec<EnvelopeId>, Option<String>) {
        let is_later = |at: usize, from: &str| letters.iter().skip(at + 1).any(|later| later.from == from);
        let (mut told, mut mates) = (Vec::new(), Vec::new());
        for (at, letter) in letters.iter().enumerate() {
            let is_stopped = letter.body.get("stopped").and_then(Value::as_bool).unwrap_or_default();
            let is_mates = letter.kind == Kind::TaskResult && letter.body.get("mate").is_some();
            if is_stopped && is_mates && text_at(&letter.body, "text") == STOPPED_WORDS {
                told.push(letter.id);
                // Its later messages show how it went on.
                mates.extend((!is_later(at, &letter.from)).then(|| text_at(&letter.body, "mate")));
            }
        }
        mates.sort_unstable();
        mates.dedup();
        let own = self.turn.halted().map(|halted| stop::stopper_words(&halted.by, halted.who.as_ref()));
        let goes_on = letters.iter().any(|letter| is_go_on(&text_at(&letter.body, "text")));
        (told, stop::note(own.as_deref(), &mates, goes_on))
    }
}
