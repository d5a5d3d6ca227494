//! How a teammate comes to an end: whose word counts, when it does, and what of its mail comes back.
//!
//! It is asked, and ends once its turn is over unless it says no; or it is told, and what it does is stopped first.

use serde_json::Value;

use crate::message::{Envelope, Kind};

/// When somebody ends who is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parting {
    /// Now.
    Now,
    /// Once its turn is over.
    Later,
    /// The same, and the turn is stopped.
    Stopping,
}

/// Whether a letter wants its reader to be no more.
pub fn is_end(letter: &Envelope) -> bool {
    let ends = || letter.body.get("end").and_then(Value::as_bool).unwrap_or_default();
    letter.kind == Kind::ShutdownRequest || (letter.kind == Kind::Shutdown && ends())
}

/// Why a letter ends nobody; `None`: it may.
pub fn misfit(letter: &Envelope, is_mate: bool, lead: &str) -> Option<&'static str> {
    if !is_mate {
        return Some("only a teammate comes to an end like this");
    }
    let counts = letter.from == lead || letter.from.starts_with("user/");
    (!counts).then_some("only its lead or the user ends a teammate")
}

/// Which of the letters that may end somebody does: being told counts before being asked.
pub fn foremost<'a>(ends: impl IntoIterator<Item = &'a Envelope>) -> Option<&'a Envelope> {
    ends.into_iter().min_by_key(|letter| letter.kind != Kind::Shutdown)
}

/// When a letter ends somebody who is at work, or is not.
pub fn when(letter: &Envelope, is_busy: bool, is_stopped: bool) -> Parting {
    match (is_busy, letter.kind) {
        (false, _) => Parting::Now,
        (true, Kind::Shutdown) if !is_stopped => Parting::Stopping,
        (true, _) => Parting::Later,
    }
}

/// Whether a letter that nobody will read goes back to whoever wrote it. What carries no words is not missed.
pub fn comes_back(kind: Kind) -> bool {
    matches!(kind, Kind::Text | Kind::UserInput | Kind::TaskAssign | Kind::ModeSetRequest)
}
