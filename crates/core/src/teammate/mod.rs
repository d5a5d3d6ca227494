//! Teammates: agents that stay for the session. They have a name, a context and a mailbox of their own, work when a
//! message arrives, and end by a handshake.
//!
//! `name` checks names, `protocol` lists what teammates and their lead may send each other, `render` wraps messages for a
//! model, `report` decides what a lead is told about a turn, `requests` which answers to a request count, `shutdown`
//! how a teammate ends. Nothing here starts a turn: the agent loop that reads the mailbox does.

pub mod name;
pub mod protocol;
pub mod render;
pub mod report;
pub mod requests;
pub mod shutdown;
mod spawn;

use serde::{Deserialize, Serialize};

use crate::id::{EnvelopeId, SessionId};
use crate::message::{Address, MessageKind};
use crate::policy::Grant;

pub use spawn::Spawn;

/// How long an agent that was given a task lives.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// Until its answer, for which its caller waits.
    #[default]
    Call,
    /// Until its answer, which its caller gets as a message.
    Background,
    /// Until it is shut down.
    Teammate(Box<Teammate>),
}

impl Lifetime {
    /// Whether its caller waits for the answer.
    pub fn is_call(&self) -> bool {
        *self == Self::Call
    }

    /// The teammate, if it is one.
    pub fn teammate(&self) -> Option<&Teammate> {
        match self {
            Self::Teammate(teammate) => Some(teammate),
            Self::Call | Self::Background => None,
        }
    }
}

/// What distinguishes a teammate from others of its type.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Teammate {
    /// Its name, unique among the teammates that exist.
    pub name: String,
    /// What it is responsible for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Its color on screen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub color: String,
    /// Whether it takes tasks from the shared list when it has nothing else to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claims: bool,
    /// Whether it has to submit a plan before it works.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plans: bool,
    /// Whether it works in a worktree, even if its type does not say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

/// The colours that teammates are given in turn.
pub const COLORS: [&str; 8] = ["blue", "green", "yellow", "purple", "orange", "pink", "cyan", "red"];

/// The color that a word names; the error lists the colors.
pub fn color(word: &str) -> Result<&'static str, String> {
    let word = word.trim();
    let known = COLORS.into_iter().find(|known| known.eq_ignore_ascii_case(word));
    known.ok_or_else(|| format!("there is no colour `{word}`; there are {}", COLORS.join(", ")))
}

/// The color of the next teammate: colors are used in turn, and none twice while another is free.
pub fn next_color(turn: usize, taken: &[&str]) -> &'static str {
    let in_turn = || (0..COLORS.len()).filter_map(|at| COLORS.get(turn.wrapping_add(at) % COLORS.len()).copied());
    let free = in_turn().find(|color| !taken.contains(color));
    free.or_else(|| in_turn().next()).unwrap_or_default()
}

/// An agent has ended (agent stream).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEnded {
    pub session: SessionId,
    /// What it was called.
    pub name: String,
    /// The person, agent or component that ended it.
    pub by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether it was ended without a request, or did not answer the request in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
}

/// A permission that a person granted to one member of a team applies to the others (agent stream).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Granted {
    pub grants: Vec<Grant>,
    /// The member that had asked for it.
    pub asker: String,
}

/// A command continues in the background (agent stream).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandBegun {
    /// The id that tools use for it.
    pub id: String,
    /// The command as shown.
    pub name: String,
}

impl CommandBegun {
    /// The command ended with the process that ran it.
    pub fn lost(&self) -> CommandOver {
        CommandOver { id: self.id.clone(), lost: true, stopped: true, name: self.name.clone() }
    }
}

/// A background command has ended (agent stream).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOver {
    /// What it was called.
    pub id: String,
    /// Whether it ended with the process that ran it, so that its outcome is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// Whether it was ended by a stop of its agent, or of an agent that this one works for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The command as shown, for readers that have not seen `CommandBegun`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// A message could not be delivered, or was not accepted (stream of the recipient).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRefused {
    #[serde(rename = "letter")]
    pub envelope: EnvelopeId,
    /// The sender of the message.
    pub from: Address,
    /// What it was about.
    pub kind: MessageKind,
    /// Why, in words.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teammates_share_a_colour_only_if_none_is_free() {
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
