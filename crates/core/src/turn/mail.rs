//! What a letter is to its reader: it begins a turn, is only told with one, or waits because of a stop.
//!
//! Everybody asks here: whoever reads the letter, whoever opens a session that has it, and whoever only looks.

use serde_json::Value;

use super::Turn;
use crate::mates::parting;
use crate::message::{Envelope, Kind};

/// The field of a message that begins no turn of its own: it is told with the next one.
pub const ASIDE: &str = "aside";

impl Turn {
    /// Whether a letter is news, which is told together with other news.
    pub fn is_news(&self, letter: &Envelope, lead: bool) -> bool {
        match letter.kind {
            Kind::TaskFailed | Kind::NeedClarify | Kind::AllTasksDone | Kind::ShutdownRejected => true,
            Kind::Text => letter.reply_to.is_none(),
            Kind::TaskAssign => letter.body.get("assignment").is_none(),
            Kind::TaskResult => letter.body.get("mate").is_some(),
            Kind::PlanApprovalRequest => letter.body.get("question").is_some(),
            Kind::PlanApprovalResponse => self.mate().is_none(),
            Kind::UserInput => self.mate().is_some(),
            Kind::TeammateTerminated | Kind::Undelivered => lead,
            _ => false,
        }
    }

    /// Whether a letter begins something of its own accord: a turn, or those whom a user wants on the team.
    pub fn is_beginning(&self, letter: &Envelope, lead: bool) -> bool {
        let is_given = matches!(letter.kind, Kind::UserInput | Kind::TaskAssign);
        let is_wanted = lead && letter.kind == Kind::TeamRequest;
        is_given || is_wanted || (self.is_news(letter, lead) && !is_note(letter, lead))
    }

    /// Whether a letter stays where it is until something else comes: it has done what it does and is only told, or waits with
    /// what a stop has left.
    pub fn leaves(&self, letter: &Envelope, lead: bool) -> bool {
        self.is_left(letter, lead) || self.requests().is_accepted(letter.id)
    }

    fn is_left(&self, letter: &Envelope, lead: bool) -> bool {
        is_note(letter, lead) || self.holds(letter) || self.has_refused(letter.id)
    }

    /// Whether any of this mail, in the order it came, does something to a reader who rests. What came before a person's stop does
    /// not: it is held once that is read.
    pub fn would_begin(&self, mail: &[Envelope], lead: bool) -> bool {
        let stop = before_stop(mail);
        // What only interrupts does nothing to it; what ends it does.
        let is_done = |letter: &Envelope| letter.kind == Kind::Shutdown && !parting::is_end(letter);
        let is_any = |letter: &Envelope| !is_done(letter) && !self.is_left(letter, lead);
        // Whoever is no more sends all of it back.
        if self.gone().is_some() { !mail.is_empty() } else { mail.iter().skip(stop).any(is_any) }
    }

    /// Those of a lead's letters, in the order they came, whose wanted ones are about to begin: no stop has turned them down, nor
    /// anything else.
    pub fn recruiting<'m>(&self, mail: &'m [Envelope]) -> impl Iterator<Item = &'m Envelope> {
        let is_open = |letter: &&Envelope| letter.kind == Kind::TeamRequest && !self.is_left(letter, true);
        mail.iter().skip(before_stop(mail)).filter(is_open)
    }

    /// How many of these letters, in the order they came, are gone on with: no stop has left them, or is behind them.
    pub fn going_on(&self, mail: &[Envelope], lead: bool) -> usize {
        let is_open = |letter: &&Envelope| !self.leaves(letter, lead);
        mail.iter().skip(before_stop(mail)).filter(is_open).count()
    }

    /// How many of these letters, in the order they came, wait because of a stop. Those whom a user wanted on the team are turned
    /// down by it: there is nothing that could be read later.
    pub fn waiting(&self, mail: &[Envelope], lead: bool) -> usize {
        let stop = before_stop(mail);
        let is_held = |(place, letter): &(usize, &Envelope)| {
            self.holds(letter) || (*place < stop && self.is_beginning(letter, lead))
        };
        let is_read = |letter: &Envelope| !is_note(letter, lead) && letter.kind != Kind::TeamRequest;
        mail.iter().enumerate().filter(|held| is_held(held) && is_read(held.1)).count()
    }
}

/// Whether a letter asks for nothing: it is told with whatever begins the next turn.
pub fn is_note(letter: &Envelope, lead: bool) -> bool {
    match letter.kind {
        Kind::TaskResult | Kind::AllTasksDone => is_stopped(letter) || is_aside(letter),
        Kind::TeammateTerminated | Kind::Undelivered => !lead,
        Kind::FilesRewound => true,
        _ => is_aside(letter),
    }
}

/// Whether a message carries the field `ASIDE`.
fn is_aside(letter: &Envelope) -> bool {
    letter.body.get(ASIDE).and_then(Value::as_bool).unwrap_or_default()
}

/// Whether a letter tells that somebody, or a plan, was stopped by a person, who needs not be told.
fn is_stopped(letter: &Envelope) -> bool {
    letter.body.get("stopped").and_then(Value::as_bool).unwrap_or_default()
}

/// How many of these letters came before a person's stop that nobody has read, or are one.
fn before_stop(mail: &[Envelope]) -> usize {
    mail.iter().rposition(is_stop).map_or(0, |stop| stop + 1)
}

/// Whether a letter stops its reader, for a person.
pub fn is_stop(letter: &Envelope) -> bool {
    letter.kind == Kind::Shutdown && is_stopped(letter)
}
