//! Teammates: agents that stay. They have a name, a context of their own and a mailbox, work when there is mail, and
//! end by a handshake.
//!
//! `name` says who can be called what, `word` what they and their lead may say to each other, `letter` how mail reaches a
//! model, `report` what a lead is told of a turn, `requests` which answers to a request count, `parting` how they come to an end. Nothing of it starts a turn: that is for whoever takes the mail.

pub mod letter;
pub mod name;
pub mod parting;
pub mod report;
pub mod requests;
pub mod word;

use serde::{Deserialize, Serialize};

use crate::id::{EnvelopeId, SessionId};
use crate::message::{Address, Kind};
use crate::policy::Grant;

/// How long somebody lives who was given something to do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// Until its answer, for which its caller waits.
    #[default]
    Call,
    /// Until its answer, which its caller is told of by mail.
    Background,
    /// Until it is shut down.
    Teammate(Box<Teammate>),
}

impl Life {
    /// Whether its caller waits for the answer.
    pub fn is_call(&self) -> bool {
        *self == Self::Call
    }

    /// The teammate, if it is one.
    pub fn mate(&self) -> Option<&Teammate> {
        match self {
            Self::Teammate(mate) => Some(mate),
            Self::Call | Self::Background => None,
        }
    }
}

/// Who a teammate is, beside what its type makes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Teammate {
    /// What the others call it; one of its name at a time.
    pub name: String,
    /// What it is there for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// What it is painted in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub color: String,
    /// Whether it takes tasks from the shared list when it has nothing else to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claims: bool,
    /// Whether it was to plan first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plans: bool,
    /// Whether it was to work in a copy of the project, whatever its type says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

/// The colours that teammates are given in turn.
pub const COLORS: [&str; 8] = ["blue", "green", "yellow", "purple", "orange", "pink", "cyan", "red"];

/// The colour that somebody means by a word; in words, if there is none like it.
pub fn color(word: &str) -> Result<&'static str, String> {
    let word = word.trim();
    let known = COLORS.into_iter().find(|known| known.eq_ignore_ascii_case(word));
    known.ok_or_else(|| format!("there is no colour `{word}`; there are {}", COLORS.join(", ")))
}

/// The colour of whoever comes next: they are given in turn, and none twice as long as there are others.
pub fn next_color(turn: usize, taken: &[&str]) -> &'static str {
    let in_turn = || (0..COLORS.len()).filter_map(|at| COLORS.get(turn.wrapping_add(at) % COLORS.len()).copied());
    let free = in_turn().find(|color| !taken.contains(color));
    free.or_else(|| in_turn().next()).unwrap_or_default()
}

/// An agent is no more (agent stream).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEnded {
    /// Its session.
    pub session: SessionId,
    /// What it was called.
    pub name: String,
    /// On whose word.
    pub by: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether it was not asked, or did not answer in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
}

/// What a person has allowed one of a team for the session, the others may (agent stream).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// What.
    pub grants: Vec<Grant>,
    /// Whom it was said to.
    pub asker: String,
}

/// A command runs on in the background (agent stream).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandBegun {
    /// What it is called.
    pub id: String,
    /// What it is.
    pub name: String,
}

impl CommandBegun {
    /// That it ended with whoever ran it.
    pub fn lost(&self) -> CommandOver {
        CommandOver { id: self.id.clone(), lost: true, stopped: true, name: self.name.clone() }
    }
}

/// It is over (agent stream).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOver {
    /// What it was called.
    pub id: String,
    /// Whether it ended with the process that ran it, and nobody knows how.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// Whether somebody who stopped its agent, or whom that works for, has ended it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// What it was, where whoever hears of it may not have heard of its beginning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// A letter could not be brought to whom it was for, or was not accepted (the stream of whoever it was for).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LetterRefused {
    /// Which.
    pub letter: EnvelopeId,
    /// Whose it was.
    pub from: Address,
    /// What it was about.
    pub kind: Kind,
    /// Why, in words.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_painted_like_another_while_a_colour_is_free() {
        assert_eq!(next_color(0, &[]), "blue");
        assert_eq!(next_color(9, &[]), "green");
        assert_eq!(next_color(2, &["yellow", "purple"]), "orange");
        assert_eq!(next_color(7, &["red", "blue"]), "green", "it begins again");
        assert_eq!(next_color(3, &COLORS), "purple", "there is none left");
    }

    #[test]
    fn a_colour_that_there_is_not_is_told_by_name() {
        assert_eq!(color(" Blue "), Ok("blue"));
        assert!(color("nocolor").unwrap_err().starts_with("there is no colour `nocolor`; there are blue, green"));
    }
}
