//! What a session's log says about files: the points that one can go back to, and what happened behind each.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use max_team_core::event::{Ending, Event};
use max_team_core::id::SessionId;
use max_team_core::rewind::{
    Change, FilesChanged, Left, Put, RewindEnded, Rewound, Step, Touch, Why, is_opaque, rebased, standing,
};
use max_team_journal::Journal;
use serde::{Deserialize, Serialize};

use super::Rewind;
use crate::agent::runs_on;
use crate::error::RuntimeError;
use crate::replay::{self, Spoken, spoken};
use crate::rows::event_of;
use crate::session;

/// How long a merge may have taken that no call has made: nobody has written down its end.
const MERGE_MS: i64 = 60_000;

/// Which point to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// It was put back to what it was behind this entry.
    behind: Option<u64>,
    when: When,
}

/// When a change was made, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
enum When {
    /// Whoever made it has noted it, and was done with it by then.
    Until(i64),
    /// Whoever has found it had last looked then.
    Since(i64),
}

impl Noted {
    fn step(&self) -> Step<'_> {
        Step { root: &self.root, change: &self.change, is_sure: self.is_sure }
    }
}

/// Until when a change was made, what it was, and whether it is known to have been made.
type Made = (i64, Change, bool);

#[derive(Debug, Default)]
pub(super) struct Log {
    changes: Vec<Noted>,
    left: Vec<(u64, Left)>,
    turns: Vec<Spoken>,
    rewound: Vec<(u64, Rewound)>,
    /// When each of them was over, and what came of it.
    ended: HashMap<uuid::Uuid, (i64, RewindEnded)>,
    /// Every entry's number and time, oldest first.
    times: Vec<(u64, i64)>,
}

/// What calls say of themselves, by the stream and the key of each.
#[derive(Debug, Default)]
struct Calls<'e> {
    /// Those that may change anything: where each stands, and whether it comes back before it is over.
    opaque: Vec<(u64, (&'e str, String), bool)>,
    begun_ms: HashMap<(&'e str, String), i64>,
    ended: HashMap<(&'e str, String), (i64, Ending, bool)>,
    /// Those that somebody has looked at afterwards, or that have said themselves what they will do.
    seen: HashSet<(String, String)>,
    /// Commands in the background of which nobody has seen the end, and where they stand.
    running: HashMap<(&'e str, String), u64>,
}

impl Calls<'_> {
    fn has_run(&self, stream: &str, key: &str) -> bool {
        self.ended.get(&(stream, key.to_owned())).is_some_and(|(_, ending, failed)| *ending == Ending::Ran && !failed)
    }

    /// When what a step says came about; an old one does not say since when nobody had looked.
    fn when(&self, stream: &str, at_ms: i64, step: &FilesChanged) -> When {
        let (by, key) = whose(stream, &step.key);
        let call = (by, key.to_owned());
        match (step.seen, step.since_ms) {
            (false, _) if self.ended.contains_key(&call) || is_call(stream) => {
                When::Until(self.ended.get(&call).map_or(i64::MAX, |(at_ms, ..)| *at_ms))
            }
            (false, _) => When::Until(at_ms.saturating_add(MERGE_MS)),
            (true, 0) => When::Since(self.begun_ms.get(&call).copied().unwrap_or(at_ms)),
            (true, since_ms) => When::Since(since_ms),
        }
    }

    /// Those that did not come to their end, so that nobody knows what they did.
    fn cut(&self) -> impl Iterator<Item = (u64, Left)> {
        let is_cut = |(seq, call, runs_on): &&(u64, (&str, String), bool)| match self.ended.get(call) {
            _ if self.seen.contains(&(call.0.to_owned(), call.1.clone())) => false,
            None | Some((_, Ending::Unknown, _)) => true,
            Some((_, Ending::Ran, false)) if *runs_on => {
                self.running.iter().any(|((stream, _), at)| *stream == call.0 && at > seq)
            }
            Some(_) => false,
        };
        let left = |(seq, ..): &(u64, (&str, String), bool)| (*seq, Left { path: String::new(), why: Why::Cut });
        self.opaque.iter().filter(is_cut).map(left)
    }
}

/// The stream and the key of the call that a step was made by: of a merge, which is a step of the session, both are in its key.
fn whose<'s>(stream: &'s str, key: &'s str) -> (&'s str, &'s str) {
    key.split_once(' ').filter(|(by, _)| is_call(by)).unwrap_or((stream, key))
}

/// Whether calls are made there, each of which says its own end.
fn is_call(stream: &str) -> bool {
    stream.starts_with("agent/")
}

/// What the log of files is read from.
const TOLD: [&str; 7] =
    ["tool_intent", "tool_done", "files_changed", "command_begun", "command_over", "rewound", "rewind_ended"];

impl Log {
    pub(super) fn of(journal: &Journal, session: SessionId) -> Result<Self, RuntimeError> {
        let entries = replay::entries(journal, session)?;
        let turns = spoken(&entries, session::Sessions::new(journal).row(session)?.lead)?;
        let (mut log, mut calls) = (Self { turns, ..Self::default() }, Calls::default());
        let mut steps: Vec<((u64, i64), &str, FilesChanged)> = Vec::new();
        for entry in &entries {
            log.times.push((entry.seq, entry.at_ms));
            if !TOLD.contains(&&*entry.event) {
                continue;
            }
            let stream = &*entry.stream;
            match event_of(entry)? {
                Event::ToolIntent(of) if is_opaque(of.class, &of.action) => {
                    calls.begun_ms.insert((stream, of.key.clone()), entry.at_ms);
                    calls.opaque.push((entry.seq, (stream, of.key), runs_on(&of.action)));
                }
                Event::ToolDone(of) => {
                    calls.ended.insert((stream, of.key), (entry.at_ms, of.ending, of.is_error));
                }
                Event::CommandBegun(of) => drop(calls.running.insert((stream, of.id), entry.seq)),
                // What a stopped one did is known if somebody has looked after its end.
                Event::CommandOver(of) if !of.lost && !of.stopped => drop(calls.running.remove(&(stream, of.id))),
                Event::FilesChanged(of) => steps.push(((entry.seq, entry.at_ms), stream, of)),
                Event::Rewound(of) => log.rewound.push((entry.seq, of)),
                Event::RewindEnded(of) => drop(log.ended.insert(of.id, (entry.at_ms, of))),
                _ => {}
            }
        }
        for ((seq, at_ms), stream, step) in steps {
            let when = calls.when(stream, at_ms, &step);
            let FilesChanged { key, root, changes, left, seen, .. } = step;
            let is_sure = seen || calls.has_run(stream, &key);
            let (by, call) = whose(stream, &key);
            calls.seen.insert((by.to_owned(), call.to_owned()));
            log.left.extend(left.into_iter().map(|left| (seq, left)));
            let noted = |change| Noted { seq, root: root.clone(), change, is_sure, behind: None, when };
            log.changes.extend(changes.into_iter().map(noted));
        }
        log.left.extend(calls.cut());
        log.left.sort_by_key(|(seq, _)| *seq);
        log.note_rewound();
        log.note_once();
        Ok(log)
    }

    /// What was put back are steps, too.
    fn note_rewound(&mut self) {
        for (seq, rewound) in &self.rewound {
            let ended = self.ended.get(&rewound.id);
            let when = When::Until(ended.map_or(i64::MAX, |(at_ms, _)| *at_ms));
            for put in &rewound.puts {
                let is_failed =
                    |ended: &RewindEnded| ended.failed.iter().any(|f| f.root == put.root && f.path == put.change.path);
                let is_sure = ended.is_some_and(|(_, ended)| !is_failed(ended));
                let (root, change) = (put.root.clone(), put.change.clone());
                self.changes.push(Noted { seq: *seq, root, change, is_sure, behind: Some(rewound.behind), when });
            }
        }
        // Stable: what one step did stays in its order.
        self.changes.sort_by_key(|noted| noted.seq);
    }

    /// What a look has found and others have noted before it is theirs, where they noted it.
    fn note_once(&mut self) {
        let mut known: HashMap<(String, String), Vec<Made>> = HashMap::new();
        for mut noted in std::mem::take(&mut self.changes) {
            let file = (noted.root.clone(), noted.change.path.clone());
            match noted.when {
                When::Until(over) => known.entry(file).or_default().push((over, noted.change.clone(), noted.is_sure)),
                When::Since(since) => {
                    let others = known.get(&file).into_iter().flatten().filter(|(over, ..)| *over >= since);
                    let left = rebased(&noted.change, others.map(|(_, change, is_sure)| (change, *is_sure)));
                    let Some(left) = left else { continue };
                    noted.change = left;
                }
            }
            self.changes.push(noted);
        }
    }

    /// The steps of every file whose work is still in place.
    pub(super) fn standing(&self) -> BTreeMap<(String, String), Vec<u64>> {
        // What may not have been put back may still be there.
        let counted = self.changes.iter().filter(|noted| noted.behind.is_none() || noted.is_sure);
        standing(counted.map(|Noted { seq, root, change, behind, .. }| Touch {
            seq: *seq,
            root,
            path: &change.path,
            behind: *behind,
        }))
    }

    /// The steps of these files from an entry of each on.
    pub(super) fn since(&self, firsts: &BTreeMap<(String, String), u64>) -> impl Iterator<Item = Step<'_>> {
        let is_in = |noted: &&Noted| {
            let file = (noted.root.clone(), noted.change.path.clone());
            firsts.get(&file).is_some_and(|first| noted.seq >= *first)
        };
        self.changes.iter().filter(is_in).map(Noted::step)
    }

    /// Whether any step has touched a file, or something beneath it.
    fn touches(&self, file: &Path) -> bool {
        self.changes.iter().any(|noted| Path::new(&noted.root).join(&noted.change.path).starts_with(file))
    }

    /// The steps behind an entry.
    pub(super) fn behind(&self, seq: u64) -> impl Iterator<Item = Step<'_>> {
        self.changes.iter().filter(move |noted| noted.seq > seq).map(Noted::step)
    }

    /// What was done behind an entry that cannot be put back.
    pub(super) fn left(&self, seq: u64) -> Vec<Left> {
        self.left.iter().filter(|(at, _)| *at > seq).map(|(_, left)| left.clone()).collect()
    }

    /// The last time that files were put back.
    pub(super) fn last_rewound(&self) -> Option<&(u64, Rewound)> {
        self.rewound.last()
    }

    /// Whether one takes the one before it back.
    pub(super) fn is_undo(&self, rewound: &Rewound) -> bool {
        self.rewound.iter().any(|(seq, other)| other.id != rewound.id && *seq == rewound.behind + 1)
    }

    /// What was put back at these times, in order.
    pub(super) fn put_at(&self, times: &[uuid::Uuid]) -> Vec<Put> {
        let unread = self.rewound.iter().filter(|(_, of)| times.contains(&of.id));
        let done = |of: &Rewound| {
            let failed = self.ended.get(&of.id).map(|(_, ended)| ended.failed.as_slice()).unwrap_or_default();
            let is_done = |put: &&Put| !failed.iter().any(|f| f.root == put.root && f.path == put.change.path);
            of.puts.iter().filter(is_done).cloned().collect::<Vec<_>>()
        };
        unread.flat_map(|(_, of)| done(of)).collect()
    }

    /// One that did not come to its end.
    pub(super) fn begun(&self) -> Option<Rewound> {
        let (_, last) = self.rewound.last()?;
        Some(last).filter(|last| !self.ended.contains_key(&last.id)).cloned()
    }

    /// The last entry before each time that the user spoke, oldest first.
    pub(super) fn turns(&self) -> Vec<u64> {
        self.turns.iter().map(|turn| turn.seq.saturating_sub(1)).collect()
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
        let ends = self.turns.iter().skip(1).map(|turn| turn.seq).chain([u64::MAX]);
        let moment = |(index, (Spoken { seq, at_ms, words, .. }, end)): (usize, (&Spoken, u64))| {
            let is_in = |at: u64| at > *seq && at < end;
            let own = self.changes.iter().filter(|noted| is_in(noted.seq) && noted.behind.is_none());
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

    /// Those of these files, by their full paths, that nothing in the session has touched.
    pub fn untouched(&self, files: &[PathBuf]) -> Result<Vec<PathBuf>, RuntimeError> {
        let log = Log::of(self.journal, self.session)?;
        Ok(files.iter().filter(|file| !log.touches(file)).cloned().collect())
    }
}
