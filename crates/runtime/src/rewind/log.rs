//! What a session's log says about files: the points that one can go back to, and what happened behind each.

use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use max_team_core::event::{Ending, Event};
use max_team_core::id::SessionId;
use max_team_core::rewind::{Change, FilesChanged, Left, RewindEnded, Rewound, Step};
use max_team_journal::Journal;

use super::Rewind;
use crate::error::RuntimeError;
use crate::replay;
use crate::rows::event_of;
use crate::session;

/// Which point to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum To {
    /// Before the last words of the user after which files have changed that can be put back.
    #[default]
    Last,
    /// Before the last words of the user.
    LastTurn,
    /// Before their words of this number, from 1.
    Turn(usize),
    /// Behind the entry of this number.
    Behind(u64),
    /// This moment, in milliseconds since 1970.
    At(i64),
    /// Before the last time that files were put back, and only those.
    Undo,
}

impl FromStr for To {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        use replay::Point;
        Ok(match text.parse()? {
            Point::LastTurn => Self::LastTurn,
            Point::Turn(number) => Self::Turn(number),
            Point::Behind(seq) => Self::Behind(seq),
            Point::End => return Err("there is nothing behind the end".to_owned()),
        })
    }
}

/// Words of the user, and what happened to files until they spoke again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// Which time they spoke, from 1.
    pub number: usize,
    /// The entry that the turn begins with.
    pub seq: u64,
    /// When.
    pub at_ms: i64,
    /// What they said.
    pub words: String,
    /// What was changed, in order, each with the folder it lies beneath.
    pub changes: Vec<(String, Change)>,
    /// What was done that cannot be put back.
    pub left: Vec<Left>,
    /// How often files were put back.
    pub rewound: usize,
}

/// A change, where it stands in the log.
#[derive(Debug)]
struct Noted {
    seq: u64,
    root: String,
    change: Change,
    is_sure: bool,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    changes: Vec<Noted>,
    left: Vec<(u64, Left)>,
    /// When the user spoke, and what.
    turns: Vec<(u64, i64, String)>,
    rewound: Vec<(u64, Rewound)>,
    ended: HashMap<uuid::Uuid, RewindEnded>,
    /// Every entry's number and time, oldest first.
    times: Vec<(u64, i64)>,
}

impl Log {
    pub(super) fn of(journal: &Journal, session: SessionId) -> Result<Self, RuntimeError> {
        let entries = replay::entries(journal, session)?;
        let lead = session::agent_stream(session::Sessions::new(journal).row(session)?.lead);
        let (mut log, mut said, mut ran) = (Self::default(), HashMap::new(), HashSet::new());
        let mut steps: Vec<(u64, &str, FilesChanged)> = Vec::new();
        for entry in &entries {
            log.times.push((entry.seq, entry.at_ms));
            let is_told = ["said", "turn_started", "tool_done", "files_changed", "rewound", "rewind_ended"]
                .contains(&&*entry.event);
            if !is_told {
                continue;
            }
            match event_of(entry)? {
                Event::Said(of) => drop(said.insert(of.envelope, of.text)),
                Event::TurnStarted(of) if entry.stream == lead => {
                    log.turns.extend(said.get(&of.envelope).map(|words| (entry.seq, entry.at_ms, words.clone())));
                }
                Event::ToolDone(of) if of.ending == Ending::Ran && !of.is_error => {
                    ran.insert((entry.stream.as_str(), of.key));
                }
                Event::FilesChanged(of) => steps.push((entry.seq, &entry.stream, of)),
                Event::Rewound(of) => log.rewound.push((entry.seq, of)),
                Event::RewindEnded(of) => drop(log.ended.insert(of.id, of)),
                _ => {}
            }
        }
        for (seq, stream, FilesChanged { key, root, changes, left, seen }) in steps {
            let is_sure = seen || ran.contains(&(stream, key));
            log.left.extend(left.into_iter().map(|left| (seq, left)));
            log.changes.extend(changes.into_iter().map(|change| Noted { seq, root: root.clone(), change, is_sure }));
        }
        for (seq, rewound) in &log.rewound {
            let ended = log.ended.get(&rewound.id);
            for put in &rewound.puts {
                let is_failed =
                    |ended: &RewindEnded| ended.failed.iter().any(|f| f.root == put.root && f.path == put.change.path);
                let is_sure = ended.is_some_and(|ended| !is_failed(ended));
                let (root, change) = (put.root.clone(), put.change.clone());
                log.changes.push(Noted { seq: *seq, root, change, is_sure });
            }
        }
        // Stable: what one step did stays in its order.
        log.changes.sort_by_key(|noted| noted.seq);
        Ok(log)
    }

    /// The steps behind an entry.
    pub(super) fn behind(&self, seq: u64) -> impl Iterator<Item = Step<'_>> {
        let noted = self.changes.iter().filter(move |noted| noted.seq > seq);
        noted.map(|Noted { root, change, is_sure, .. }| Step { root, change, is_sure: *is_sure })
    }

    /// What was done behind an entry that cannot be put back.
    pub(super) fn left(&self, seq: u64) -> Vec<Left> {
        self.left.iter().filter(|(at, _)| *at > seq).map(|(_, left)| left.clone()).collect()
    }

    /// The last time that files were put back.
    pub(super) fn last_rewound(&self) -> Option<&(u64, Rewound)> {
        self.rewound.last()
    }

    /// One that did not come to its end.
    pub(super) fn begun(&self) -> Option<Rewound> {
        let (_, last) = self.rewound.last()?;
        Some(last).filter(|last| !self.ended.contains_key(&last.id)).cloned()
    }

    /// The last entry before each time that the user spoke, oldest first.
    pub(super) fn turns(&self) -> Vec<u64> {
        self.turns.iter().map(|(seq, ..)| seq.saturating_sub(1)).collect()
    }

    /// The last entry that stays.
    pub(super) fn point(&self, to: To) -> Option<u64> {
        let turns = self.turns();
        match to {
            To::Last | To::LastTurn => turns.last().copied(),
            To::Turn(number) => turns.get(number.checked_sub(1)?).copied(),
            To::Behind(seq) => {
                let (first, last) = (self.times.first()?.0, self.times.last()?.0);
                Some(seq).filter(|seq| (first..=last).contains(seq))
            }
            To::At(at_ms) => {
                let before = self.times.iter().filter(|(_, at)| *at <= at_ms).map(|(seq, _)| *seq);
                Some(before.max().unwrap_or(0))
            }
            To::Undo => self.rewound.last().map(|(seq, _)| seq.saturating_sub(1)),
        }
    }

    fn moments(&self) -> Vec<Moment> {
        let ends = self.turns.iter().skip(1).map(|(seq, ..)| *seq).chain([u64::MAX]);
        let moment = |(index, ((seq, at_ms, words), end)): (usize, (&(u64, i64, String), u64))| {
            let is_in = |at: u64| at > *seq && at < end;
            let is_back = |at: u64| self.rewound.iter().any(|(seq, _)| *seq == at);
            let own = self.changes.iter().filter(|noted| is_in(noted.seq) && !is_back(noted.seq));
            Moment {
                number: index + 1,
                seq: *seq,
                at_ms: *at_ms,
                words: words.clone(),
                changes: own.map(|noted| (noted.root.clone(), noted.change.clone())).collect(),
                left: self.left.iter().filter(|(at, _)| is_in(*at)).map(|(_, left)| left.clone()).collect(),
                rewound: self.rewound.iter().filter(|(at, _)| is_in(*at)).count(),
            }
        };
        self.turns.iter().zip(ends).enumerate().map(moment).collect()
    }
}

impl Rewind<'_> {
    /// The points that one can go back to, oldest first.
    pub fn moments(&self) -> Result<Vec<Moment>, RuntimeError> {
        Ok(Log::of(self.journal, self.session)?.moments())
    }
}
