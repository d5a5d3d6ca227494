//! What a session's log says about files: the points to go back to, and the changes after each.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use max_team_core::event::{Event, ToolOutcome};
use max_team_core::id::SessionId;
use max_team_core::rewind::{
    FileChange, FileStep, FileTouch, FilesChanged, RestoredFile, RewindEnded, Rewound, SkippedChange, SkippedReason,
    is_agent, is_opaque, standing_steps, without_recorded,
};
use max_team_journal::Journal;
use serde::{Deserialize, Serialize};

use super::{Outcome, Rewind};
use crate::agent::runs_on;
use crate::error::RuntimeError;
use crate::replay::{self, TurnMessage, spoken};
use crate::rows::event_of;
use crate::session;

/// Assumed duration of a merge that no call made: its end is not recorded.
const MERGE_MS: i64 = 60_000;

/// Which point to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindPoint {
    /// Before the last message of the user after which files have changed that can be restored.
    #[default]
    Last,
    /// Before the last message of the user.
    LastTurn,
    /// Before the message of the user with this number, from 1.
    Turn(usize),
    /// After the entry with this number.
    Behind(u64),
    /// This time, in milliseconds since 1970.
    At(i64),
    /// Before the last rewind, and only its files.
    Undo,
}

impl FromStr for RewindPoint {
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

/// A message of the user, and the file changes until the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// The number of the message, from 1.
    pub number: usize,
    /// The entry that the turn begins with.
    pub seq: u64,
    pub at_ms: i64,
    /// The text of the message.
    pub words: String,
    /// The changes in order, each with its root folder.
    pub changes: Vec<(String, FileChange)>,
    /// Changes that cannot be undone.
    pub left: Vec<SkippedChange>,
    /// Number of rewinds.
    pub rewound: usize,
}

/// A change, with its position in the log.
#[derive(Debug, Clone)]
struct LoggedChange {
    seq: u64,
    root: String,
    change: FileChange,
    is_sure: bool,
    /// A rewind restored the state after this entry.
    behind: Option<u64>,
    when: When,
}

/// When a change was made, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
enum When {
    /// The agent or merge that made the change recorded it itself; the change was complete at this time.
    Until(i64),
    /// A scan found the change; the scan before it was at this time.
    Since(i64),
}

impl LoggedChange {
    fn step(&self) -> FileStep<'_> {
        FileStep { root: &self.root, change: &self.change, is_sure: self.is_sure }
    }
}

/// A step with its position in the log and the end of its call.
type Placed = (usize, i64, LoggedChange);

#[derive(Debug, Default)]
pub(super) struct Log {
    changes: Vec<LoggedChange>,
    left: Vec<(u64, SkippedChange)>,
    turns: Vec<TurnMessage>,
    rewound: Vec<(u64, Rewound)>,
    /// The end of each rewind, and its outcome.
    ended: HashMap<uuid::Uuid, (i64, RewindEnded)>,
    /// Every entry's number and time, oldest first.
    times: Vec<(u64, i64)>,
}

/// What the log says about calls, by stream and key.
#[derive(Debug, Default)]
struct Calls<'e> {
    /// Calls that may change any file: the entry of each, and whether it can return while its command still runs.
    opaque: Vec<(u64, (&'e str, String), bool)>,
    begun_ms: HashMap<(&'e str, String), i64>,
    ended: HashMap<(&'e str, String), (i64, ToolOutcome, bool)>,
    /// Calls whose changes a later scan has found, or that recorded their changes themselves.
    seen: HashSet<(String, String)>,
    /// Background commands whose end is not recorded, with their entries.
    running: HashMap<(&'e str, String), u64>,
}

impl Calls<'_> {
    fn has_run(&self, stream: &str, key: &str) -> bool {
        self.ended
            .get(&(stream, key.to_owned()))
            .is_some_and(|(_, ending, failed)| *ending == ToolOutcome::Ran && !failed)
    }

    /// When the changes of a step were made. Old steps do not record the time of the scan before.
    fn when(&self, stream: &str, at_ms: i64, step: &FilesChanged) -> When {
        let call = step.calls(stream).next().map_or((stream, String::new()), |(by, key)| (by, key.to_owned()));
        match (step.seen, step.since_ms) {
            (false, _) if self.ended.contains_key(&call) || is_agent(stream) => {
                When::Until(self.ended.get(&call).map_or(i64::MAX, |(at_ms, ..)| *at_ms))
            }
            (false, _) => When::Until(at_ms.saturating_add(MERGE_MS)),
            (true, 0) => When::Since(self.begun_ms.get(&call).copied().unwrap_or(at_ms)),
            (true, since_ms) => When::Since(since_ms),
        }
    }

    /// Calls without a known end, whose changes are therefore unknown.
    fn cut(&self) -> impl Iterator<Item = (u64, SkippedChange)> {
        let is_cut = |(seq, call, runs_on): &&(u64, (&str, String), bool)| match self.ended.get(call) {
            _ if self.seen.contains(&(call.0.to_owned(), call.1.clone())) => false,
            None | Some((_, ToolOutcome::Unknown, _)) => true,
            Some((_, ToolOutcome::Ran, false)) if *runs_on => {
                self.running.iter().any(|((stream, _), at)| *stream == call.0 && at > seq)
            }
            Some(_) => false,
        };
        let left = |(seq, ..): &(u64, (&str, String), bool)| {
            (*seq, SkippedChange { path: String::new(), why: SkippedReason::Cut })
        };
        self.opaque.iter().filter(is_cut).map(left)
    }
}

/// The events that are read.
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
                // A stopped or lost command stays in the map: its changes are known only if a scan followed.
                Event::CommandOver(of) if !of.lost && !of.stopped => drop(calls.running.remove(&(stream, of.id))),
                Event::FilesChanged(of) => steps.push(((entry.seq, entry.at_ms), stream, of)),
                Event::Rewound(of) => log.rewound.push((entry.seq, of)),
                Event::RewindEnded(of) => drop(log.ended.insert(of.id, (entry.at_ms, of))),
                _ => {}
            }
        }
        for ((seq, at_ms), stream, step) in steps {
            let when = calls.when(stream, at_ms, &step);
            calls.seen.extend(step.calls(stream).map(|(by, key)| (by.to_owned(), key.to_owned())));
            let FilesChanged { key, root, changes, left, seen, .. } = step;
            let is_sure = seen || calls.has_run(stream, &key);
            log.left.extend(left.into_iter().map(|left| (seq, left)));
            let noted = |change| LoggedChange { seq, root: root.clone(), change, is_sure, behind: None, when };
            log.changes.extend(changes.into_iter().map(noted));
        }
        log.left.extend(calls.cut());
        log.left.sort_by_key(|(seq, _)| *seq);
        log.note_rewound();
        log.note_once();
        Ok(log)
    }

    /// Adds the changes that rewinds made: they are steps, too.
    fn note_rewound(&mut self) {
        for (seq, rewound) in &self.rewound {
            let ended = self.ended.get(&rewound.id);
            let when = When::Until(ended.map_or(i64::MAX, |(at_ms, _)| *at_ms));
            for put in &rewound.puts {
                let is_failed =
                    |ended: &RewindEnded| ended.failed.iter().any(|f| f.root == put.root && f.path == put.change.path);
                let is_sure = ended.is_some_and(|(_, ended)| !is_failed(ended));
                let (root, change) = (put.root.clone(), put.change.clone());
                self.changes.push(LoggedChange {
                    seq: *seq,
                    root,
                    change,
                    is_sure,
                    behind: Some(rewound.behind),
                    when,
                });
            }
        }
        // Stable: the changes of one step keep their order.
        self.changes.sort_by_key(|noted| noted.seq);
    }

    /// A change that a scan has found and that another step has recorded belongs to that step alone.
    fn note_once(&mut self) {
        let mut known: HashMap<(String, String), Vec<Placed>> = HashMap::new();
        // In order: the part of a change that precedes a step comes right before that step.
        let mut ordered: Vec<(usize, bool, LoggedChange)> = Vec::new();
        for (at, noted) in std::mem::take(&mut self.changes).into_iter().enumerate() {
            let file = (noted.root.clone(), noted.change.path.clone());
            match noted.when {
                When::Until(over) => {
                    known.entry(file).or_default().push((at, over, noted.clone()));
                    ordered.push((at, true, noted));
                }
                When::Since(since) => {
                    let others = known.get(&file).into_iter().flatten().filter(|(_, over, _)| *over >= since);
                    let others: Vec<&Placed> = others.collect();
                    let changes: Vec<_> = others.iter().map(|(.., other)| (&other.change, other.is_sure)).collect();
                    for (before, change) in without_recorded(&noted.change, &changes) {
                        let other = others.get(before).map(|(at, _, other)| (*at, other.seq));
                        let (at, seq) = other.unwrap_or((at, noted.seq));
                        ordered.push((at, other.is_none(), LoggedChange { seq, change, ..noted.clone() }));
                    }
                }
            }
        }
        ordered.sort_by_key(|(at, is_last, _)| (*at, *is_last));
        self.changes = ordered.into_iter().map(|(.., noted)| noted).collect();
    }

    /// The steps of every file whose changes are still in place.
    pub(super) fn standing(&self) -> BTreeMap<(String, String), Vec<u64>> {
        // A rewind that may not have restored a file does not count for that file.
        let counted = self.changes.iter().filter(|noted| noted.behind.is_none() || noted.is_sure);
        standing_steps(counted.map(|LoggedChange { seq, root, change, behind, .. }| FileTouch {
            seq: *seq,
            root,
            path: &change.path,
            behind: *behind,
        }))
    }

    /// The steps of these files, each from an entry on.
    pub(super) fn since(&self, firsts: &BTreeMap<(String, String), u64>) -> impl Iterator<Item = FileStep<'_>> {
        let is_in = |noted: &&LoggedChange| {
            let file = (noted.root.clone(), noted.change.path.clone());
            firsts.get(&file).is_some_and(|first| noted.seq >= *first)
        };
        self.changes.iter().filter(is_in).map(LoggedChange::step)
    }

    /// Whether any step has touched a file, or something beneath it.
    fn touches(&self, file: &Path) -> bool {
        self.changes.iter().any(|noted| Path::new(&noted.root).join(&noted.change.path).starts_with(file))
    }

    /// The steps after an entry.
    pub(super) fn behind(&self, seq: u64) -> impl Iterator<Item = FileStep<'_>> {
        self.changes.iter().filter(move |noted| noted.seq > seq).map(LoggedChange::step)
    }

    /// Changes after an entry that cannot be undone.
    pub(super) fn left(&self, seq: u64) -> Vec<SkippedChange> {
        self.left.iter().filter(|(at, _)| *at > seq).map(|(_, left)| left.clone()).collect()
    }

    /// The last rewind.
    pub(super) fn last_rewound(&self) -> Option<&(u64, Rewound)> {
        self.rewound.last()
    }

    /// Whether a rewind undoes the one before it.
    pub(super) fn is_undo(&self, rewound: &Rewound) -> bool {
        self.rewound.iter().any(|(seq, other)| other.id != rewound.id && *seq == rewound.behind + 1)
    }

    /// The changes of these rewinds, in order.
    pub(super) fn put_at(&self, times: &[uuid::Uuid]) -> Vec<RestoredFile> {
        let unread = self.rewound.iter().filter(|(_, of)| times.contains(&of.id));
        let done = |of: &Rewound| {
            let failed = self.ended.get(&of.id).map(|(_, ended)| ended.failed.as_slice()).unwrap_or_default();
            let is_done = |put: &&RestoredFile| !failed.iter().any(|f| f.root == put.root && f.path == put.change.path);
            of.puts.iter().filter(is_done).cloned().collect::<Vec<_>>()
        };
        unread.flat_map(|(_, of)| done(of)).collect()
    }

    /// The outcome of a rewind that has ended.
    pub(super) fn outcome(&self, id: uuid::Uuid) -> Option<Outcome> {
        let (_, ended) = self.ended.get(&id)?;
        Some(Outcome { done: self.put_at(&[id]), failed: ended.failed.clone() })
    }

    /// An unfinished rewind.
    pub(super) fn begun(&self) -> Option<Rewound> {
        let (_, last) = self.rewound.last()?;
        Some(last).filter(|last| !self.ended.contains_key(&last.id)).cloned()
    }

    /// The last entry before each message of the user, oldest first.
    pub(super) fn turns(&self) -> Vec<u64> {
        self.turns.iter().map(|turn| turn.seq.saturating_sub(1)).collect()
    }

    /// The last entry before the point.
    pub(super) fn point(&self, to: RewindPoint) -> Option<u64> {
        let turns = self.turns();
        match to {
            RewindPoint::Last | RewindPoint::LastTurn => turns.last().copied(),
            RewindPoint::Turn(number) => turns.get(number.checked_sub(1)?).copied(),
            RewindPoint::Behind(seq) => {
                let (first, last) = (self.times.first()?.0, self.times.last()?.0);
                Some(seq).filter(|seq| (first..=last).contains(seq))
            }
            RewindPoint::At(at_ms) => {
                let before = self.times.iter().filter(|(_, at)| *at <= at_ms).map(|(seq, _)| *seq);
                Some(before.max().unwrap_or(0))
            }
            RewindPoint::Undo => self.rewound.last().map(|(seq, _)| seq.saturating_sub(1)),
        }
    }

    fn moments(&self) -> Vec<Moment> {
        let ends = self.turns.iter().skip(1).map(|turn| turn.seq).chain([u64::MAX]);
        let moment = |(index, (TurnMessage { seq, at_ms, words, .. }, end)): (usize, (&TurnMessage, u64))| {
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
    /// The points to go back to, oldest first.
    pub fn moments(&self) -> Result<Vec<Moment>, RuntimeError> {
        Ok(Log::of(self.journal, self.session)?.moments())
    }

    /// The files, of these full paths, that the session has not touched.
    pub fn untouched(&self, files: &[PathBuf]) -> Result<Vec<PathBuf>, RuntimeError> {
        let log = Log::of(self.journal, self.session)?;
        Ok(files.iter().filter(|file| !log.touches(file)).cloned().collect())
    }
}
