//! Continues from any point of a run, in a new session.

use std::path::Path;
use std::str::FromStr;

use max_team_core::event::Event;
use max_team_core::text::visible;
use max_team_core::turn::{Forked, Turn};

use super::{Tape, spoken};
use crate::error::RuntimeError;
use crate::rows::event_of;
use crate::runtime::ResumedLead;
use crate::template::fill;

/// Prompts for the lead of a fork: that it continues another session, and in which folder it works.
const FORKED: &str = include_str!("../../../../prompts/forked.md");
const HERE: &str = include_str!("../../../../prompts/forked_here.md");
const COPY: &str = include_str!("../../../../prompts/forked_copy.md");
const BACK: &str = include_str!("../../../../prompts/forked_back.md");
const LEFT: &str = include_str!("../../../../prompts/forked_left.md");
/// Changed files that the prompt names at most.
const LEFT_FILES_MAX: usize = 50;

/// A point of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Point {
    /// The end of the run.
    #[default]
    End,
    /// After the entry with this number.
    Behind(u64),
    /// Before the last message of the user.
    LastTurn,
    /// Before the message of the user with this number, from 1.
    Turn(usize),
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        match text {
            "end" => Ok(Self::End),
            "last-turn" => Ok(Self::LastTurn),
            _ => match text.strip_prefix("turn:") {
                Some(turn) => number(turn).and_then(|turn| usize::try_from(turn).ok()).map(Self::Turn),
                None => number(text.trim_start_matches('#')).map(Self::Behind),
            }
            .ok_or_else(|| {
                "it is the number that `replay` and `events` show, `end`, `last-turn` or `turn:N`".to_owned()
            }),
        }
    }
}

/// The folder in which the fork works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site<'a> {
    /// In the project itself.
    Here,
    /// In a worktree of the project as it is now.
    Copy,
    /// In a worktree with files as they were at that point, except for these.
    Back(&'a [String]),
}

impl Site<'_> {
    fn words(self) -> String {
        match self {
            Self::Here => HERE.trim_end().to_owned(),
            Self::Copy => COPY.trim_end().to_owned(),
            Self::Back([]) => BACK.trim_end().to_owned(),
            Self::Back(left) => {
                let named = left.iter().take(LEFT_FILES_MAX);
                let mut named: Vec<String> = named.map(|path| format!("`{}`", visible(path))).collect();
                if left.len() > LEFT_FILES_MAX {
                    named.push("…".to_owned());
                }
                fill(LEFT.trim_end(), &[("files", &named.join(", "))])
            }
        }
    }
}

/// The beginning of a session that continues a run.
#[derive(Debug, Clone)]
pub struct Fork {
    /// Its first event.
    pub forked: Forked,
    /// The user's message at that point, if the point is before one.
    pub words: Option<String>,
    /// The constraints at the end of the run.
    pub bound: ResumedLead,
}

impl Tape {
    /// The beginning of a new session that works in `root` and continues from a point. `edit` goes back to before the
    /// last message of the user there, so that another can take its place.
    pub fn fork(&self, at: Point, edit: bool, root: &Path, site: Site<'_>) -> Result<Fork, RuntimeError> {
        let events = self.events(self.lead)?;
        let turns = spoken(&self.entries, self.lead)?;
        let nowhere = || RuntimeError::NoPoint { session: self.session, turns: turns.len() };
        let last = self.entries.last().map_or(0, |entry| entry.seq);
        let first = self.entries.first().map_or(0, |entry| entry.seq);
        // Before which message, or after which entry.
        let (before, behind) = match at {
            Point::End => (None, last),
            Point::Behind(seq) if (first..=last).contains(&seq) => (None, seq),
            Point::Behind(_) => return Err(nowhere()),
            Point::LastTurn => (Some(turns.last().ok_or_else(nowhere)?), last),
            Point::Turn(number) => (Some(turns.get(number.saturating_sub(1)).ok_or_else(nowhere)?), last),
        };
        let edited = || turns.iter().rev().find(|turn| turn.seq <= behind).ok_or_else(nowhere);
        let before = if edit && before.is_none() { Some(edited()?) } else { before };
        let end = before.map_or(behind, |turn| turn.seq.saturating_sub(1));
        let (past, rest) = events.split_at(events.partition_point(|(seq, ..)| *seq <= end));
        let mut turn = Turn::new();
        past.iter().for_each(|(_, _, event)| turn.apply(event));
        let note = fill(FORKED, &[("root", &root.display().to_string()), ("place", &site.words())]);
        let past = turn.inherited_conversation().with_note(note.trim_end());
        // Constraints that were added later in the run also hold in a fork of an earlier point.
        rest.iter().for_each(|(_, _, event)| turn.apply(event));
        let bound = ResumedLead::read(&turn).ok_or_else(|| self.unknown_lead())?;
        let forked = Forked { session: self.session, agent: self.lead, seq: end, past };
        // A plan that the user started there is no message.
        let words = before.filter(|turn| !turn.is_run).map(|turn| turn.words.clone());
        Ok(Fork { forked, words, bound })
    }

    /// Whether no entry follows this one.
    pub fn is_last(&self, seq: u64) -> bool {
        self.entries.last().is_none_or(|entry| entry.seq <= seq)
    }

    /// The names of all agents that took part, except the lead.
    pub fn others(&self) -> Result<Vec<String>, RuntimeError> {
        let mut names = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry.event == "agent_started") {
            let Event::AgentStarted(started) = event_of(entry)? else { continue };
            let teammate = started.assignment.as_ref().and_then(|given| given.life.teammate());
            let name = teammate.map_or(&started.definition.name, |teammate| &teammate.name);
            if started.agent != self.lead && !names.contains(name) {
                names.push(name.clone());
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_number_or_a_word() {
        let table = [
            ("end", Some(Point::End)),
            ("last-turn", Some(Point::LastTurn)),
            ("turn:2", Some(Point::Turn(2))),
            ("#120", Some(Point::Behind(120))),
            ("7", Some(Point::Behind(7))),
            ("turn:0", None),
            ("0", None),
            ("yesterday", None),
        ];
        for (text, want) in table {
            assert_eq!(text.parse::<Point>().ok(), want, "{text}");
        }
    }
}
