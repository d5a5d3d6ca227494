//! The memory: facts in the journal, rows to find them by, and their form in prompts.
//!
//! Each board (the user's, a project's) is a stream with many writers; its facts are rows, one look-up away, and the
//! terms they are found by are rows too, so that a search costs what it finds, in any process. All of them follow from
//! the log. Who may write what is decided in `core::memory` alone.

mod extract;
mod live;
mod recall;
mod rows;
mod tools;

use std::collections::VecDeque;
use std::path::Path;

use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::{EnvelopeId, SessionId, TurnId};
use max_team_core::limits::{MEMORY_USE_CHARS_MAX, MEMORY_USES_MAX, MEMORY_WRITE_TRIES_MAX};
use max_team_core::memory::{
    self, Board, BoardScope, Fact, Key, MemorySet, RecalledFact, Section, Source, WriteRefusal, Writer,
};
use max_team_journal::{Durability, Erase, Expect, Journal, JournalError, Projection};
use serde::Serialize;
use serde_json::Value;

use crate::error::RuntimeError;
use crate::rows::event_of;
use crate::session;
use crate::shared::{append, commit_at, now_ms};

pub use extract::Remember;
pub(crate) use extract::{HANDED, Handover, expert, handover, is_aside};
pub(crate) use live::MemoryFiles;
pub use recall::{Hit, RecalledFacts};
pub(crate) use recall::{MemorySection, recalled};
pub(crate) use rows::{project, replaced, unfind};
pub(crate) use tools::{MemoryReadArgs, MemoryRequest, Where, Write, all as tools};
pub use tools::{READ, WRITE};

/// Entries of a session that are searched for a quoted text.
const SAID_ENTRIES_MAX: u64 = 400;
/// The event that records which facts went into a turn.
const TURN_STARTED: &str = "turn_started";
/// Entries read from the journal at a time.
const PAGE: usize = 512;

/// The memory in a journal; needs no runtime.
#[derive(Debug)]
pub struct Memories<'j> {
    journal: &'j Journal,
}

/// Outcome of forgetting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenFacts {
    /// The facts that were forgotten.
    pub keys: Vec<Key>,
    /// Entries of the log whose text was erased.
    pub erased: u64,
    /// Sessions whose messages the facts come from; those messages remain.
    pub said_in: Vec<SessionId>,
    /// Other sessions whose prompts contained them; those prompts remain, too.
    pub told_in: Vec<SessionId>,
}

/// Where else the facts under a key stand, besides the memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MemoryUses {
    /// Sessions whose messages the facts come from.
    pub said_in: Vec<SessionId>,
    /// The last turns whose prompt contained one of them, newest first.
    pub told: Vec<FactUse>,
    /// How many earlier turns are left out.
    pub left_out: usize,
}

/// A turn whose prompt contained a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactUse {
    pub session: SessionId,
    pub turn: TurnId,
    /// When it began.
    pub at_ms: i64,
    /// What the user had said, or the beginning of it.
    pub said: String,
    /// The fact, with its reason.
    pub fact: RecalledFact,
}

/// The beginning of a long message.
fn beginning(mut text: String) -> String {
    if let Some((cut, _)) = text.char_indices().nth(MEMORY_USE_CHARS_MAX) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// The board of the project in a folder.
pub fn project_scope(root: &Path) -> BoardScope {
    BoardScope::Project(root.display().to_string())
}

/// A change to commit: events for a board's stream, and rows that they make stale.
#[derive(Debug, Default)]
pub(crate) struct BoardChange {
    pub stream: String,
    /// The head of the stream for which it was decided.
    pub head: u64,
    pub events: Vec<Event>,
    pub stale: Vec<Projection>,
}

impl<'j> Memories<'j> {
    pub fn new(journal: &'j Journal) -> Self {
        Self { journal }
    }

    /// Every board that was ever written to, last used first.
    pub fn scopes(&self) -> Result<Vec<BoardScope>, RuntimeError> {
        let boards = crate::rows::rows::<Value>(self.journal, rows::BOARDS)?;
        Ok(boards.into_iter().filter_map(|(scope, _)| scope.parse().ok()).collect())
    }

    /// All facts of a scope, read from its stream.
    pub fn board(&self, scope: &BoardScope) -> Result<Board, RuntimeError> {
        let mut board = Board::default();
        for (_, section) in Section::NAMES {
            self.facts(scope, section)?.into_iter().for_each(|fact| board.put(fact));
        }
        Ok(board)
    }

    /// A section of a board.
    pub fn section(&self, scope: &BoardScope, section: Section) -> Result<Board, RuntimeError> {
        let mut board = Board::default();
        self.facts(scope, section)?.into_iter().for_each(|fact| board.put(fact));
        Ok(board)
    }

    /// The newest facts of a section.
    fn newest(&self, scope: &BoardScope, section: Section, limit: usize) -> Result<Vec<Fact>, RuntimeError> {
        let items = self.journal.list(&rows::facts(scope, section), limit, None)?;
        Ok(items.into_iter().filter_map(|item| serde_json::from_slice(&item.value).ok()).collect())
    }

    /// The facts of a section, newest first.
    fn facts(&self, scope: &BoardScope, section: Section) -> Result<Vec<Fact>, RuntimeError> {
        let found = crate::rows::rows::<Fact>(self.journal, &rows::facts(scope, section))?;
        Ok(found.into_iter().map(|(_, fact)| fact).collect())
    }

    /// The fact under exactly this key.
    pub fn fact(&self, scope: &BoardScope, key: &Key) -> Result<Option<Fact>, RuntimeError> {
        crate::rows::row(self.journal, &rows::facts(scope, key.section()), key.as_str())
    }

    /// Stores a fact on behalf of a writer.
    pub async fn set(
        &self,
        scope: &BoardScope,
        by: &Writer,
        key: &Key,
        value: &Value,
        source: &Source,
    ) -> Result<Vec<Key>, RuntimeError> {
        for _ in 0..MEMORY_WRITE_TRIES_MAX {
            let (change, keys) = self.setting(scope, by, key, value, source, false)?;
            if self.commit(change, by).await? {
                return Ok(keys);
            }
        }
        Err(RuntimeError::Busy(scope.stream()))
    }

    /// Forgets the facts under a key, and erases their text from the memory's log: all versions, also of facts that
    /// were forgotten before and whose text is left.
    pub async fn forget(&self, scope: &BoardScope, by: &Writer, key: &Key) -> Result<ForgottenFacts, RuntimeError> {
        for _ in 0..MEMORY_WRITE_TRIES_MAX {
            let head = self.journal.head(&scope.stream())?;
            let written = self.written(scope, key)?;
            let (mut change, mut keys) = match self.forgetting(scope, by, key, true) {
                // The fact itself is already deleted; only its text in the log is left to erase.
                Err(RuntimeError::Memory(WriteRefusal::Nothing(_))) if !written.is_empty() => {
                    (BoardChange { stream: scope.stream(), head, ..BoardChange::default() }, Vec::new())
                }
                decided => decided?,
            };
            // The head from before the log was read: later entries cause a conflict, and are read the next time.
            change.head = head;
            let (mut payloads, mut said_in): (Vec<Hash>, Vec<SessionId>) = Default::default();
            for (payload, fact) in written {
                payloads.push(payload);
                said_in.extend(fact.source.session.filter(|session| !said_in.contains(session)));
                // Also the terms of earlier values.
                change.stale.extend(rows::unfind(scope, &fact.key, &fact.value));
                if !keys.contains(&fact.key) {
                    keys.push(fact.key);
                }
            }
            let mut told_in = self.told_in(scope, key)?;
            told_in.retain(|session| !said_in.contains(session));
            // The fact is deleted first: after a crash in between it is in no prompt, and forgetting it again erases
            // the rest.
            if self.commit(change, by).await? {
                let reason = "forgotten from memory".to_owned();
                let erase =
                    Erase { payloads, actor: actor(by), reason, forgotten: None, at_ms: now_ms(), rows: Vec::new() };
                let erased = self.journal.erase(erase).await?;
                return Ok(ForgottenFacts { keys, erased, said_in, told_in });
            }
        }
        Err(RuntimeError::Busy(scope.stream()))
    }

    /// Removes the state of these sessions from every board, and erases all its earlier versions.
    pub(crate) async fn forget_dialogs(&self, sessions: &[SessionId]) -> Result<(), RuntimeError> {
        let key = Key::of(Section::DialogContext);
        let is_theirs = |source: &Source| source.session.is_some_and(|session| sessions.contains(&session));
        for scope in self.scopes()? {
            let written = self.written(&scope, &key)?;
            let payloads: Vec<Hash> =
                written.into_iter().filter(|(_, set)| is_theirs(&set.source)).map(|(payload, _)| payload).collect();
            if payloads.is_empty() {
                continue;
            }
            let board = self.section(&scope, Section::DialogContext)?;
            for fact in board.facts().filter(|fact| is_theirs(&fact.source)) {
                let (change, _) = self.forgetting(&scope, &Writer::Program, &fact.key, true)?;
                self.commit(change, &Writer::Program).await?;
            }
            let reason = "forgotten with its session".to_owned();
            let actor = actor(&Writer::Program);
            self.journal
                .erase(Erase { payloads, actor, reason, forgotten: None, at_ms: now_ms(), rows: Vec::new() })
                .await?;
        }
        Ok(())
    }

    /// The sessions whose prompts contained a fact under a key.
    fn told_in(&self, scope: &BoardScope, key: &Key) -> Result<Vec<SessionId>, RuntimeError> {
        let mut found = Vec::new();
        self.each_use(scope, key, |told| {
            if !found.contains(&told.session) {
                found.push(told.session);
            }
        })?;
        Ok(found)
    }

    /// Where the facts under a key came from, and the last turns that were told them.
    pub fn uses(&self, scope: &BoardScope, key: &Key) -> Result<MemoryUses, RuntimeError> {
        let mut uses = MemoryUses::default();
        for (_, set) in self.written(scope, key)? {
            uses.said_in.extend(set.source.session.filter(|session| !uses.said_in.contains(session)));
        }
        let mut told = VecDeque::new();
        self.each_use(scope, key, |one| {
            if told.len() == MEMORY_USES_MAX {
                told.pop_front();
                uses.left_out += 1;
            }
            told.push_back(one);
        })?;
        uses.told = told.into_iter().rev().collect();
        Ok(uses)
    }

    /// Walks over the turns whose prompt contained a fact under a key, oldest first.
    fn each_use(&self, scope: &BoardScope, key: &Key, mut each: impl FnMut(FactUse)) -> Result<(), RuntimeError> {
        let is_meant = |told: &&RecalledFact| told.scope == *scope && told.key.below(key).is_some();
        let mut after = 0;
        loop {
            let turns = self.journal.read_event(TURN_STARTED, after, PAGE)?;
            let Some(last) = turns.last() else { return Ok(()) };
            after = last.seq;
            for turn in &turns {
                let Ok(Event::TurnStarted(started)) = event_of(turn) else { continue };
                let Some(fact) = started.recall.iter().flat_map(|recall| &recall.facts).find(is_meant).cloned() else {
                    continue;
                };
                let agent = turn.stream.strip_prefix("agent/").unwrap_or_default();
                let session = crate::rows::row::<String>(self.journal, crate::rows::AGENT, agent)?;
                let Some(session) = session.and_then(|session| session.parse().ok()) else { continue };
                let said = beginning(max_team_core::chat::Message::user(started.input).text());
                each(FactUse { session, turn: started.turn, at_ms: turn.at_ms, said, fact });
            }
        }
    }

    /// All versions under a key, with their payloads.
    fn written(&self, scope: &BoardScope, key: &Key) -> Result<Vec<(Hash, MemorySet)>, RuntimeError> {
        let (mut found, stream) = (Vec::new(), scope.stream());
        for entry in crate::rows::entries(self.journal, &stream, 0) {
            let entry = entry?;
            match event_of(&entry) {
                Ok(Event::MemorySet(set)) if set.key.below(key).is_some() => found.push((entry.payload_hash, set)),
                // Erased before, or another fact.
                _ => {}
            }
        }
        Ok(found)
    }

    /// The change that stores a fact; the caller commits it.
    pub(crate) fn setting(
        &self,
        scope: &BoardScope,
        by: &Writer,
        key: &Key,
        value: &Value,
        source: &Source,
        vouched: bool,
    ) -> Result<(BoardChange, Vec<Key>), RuntimeError> {
        let head = self.journal.head(&scope.stream())?;
        let board = self.section(scope, key.section())?;
        let sets = memory::set(&board, by, key, value, source, vouched)?;
        let keys = sets.iter().map(|set| set.key.clone()).collect();
        let stale = sets.iter().flat_map(|set| rows::stale(scope, &board, set)).collect();
        let events = sets.into_iter().map(Event::MemorySet).collect();
        Ok((BoardChange { stream: scope.stream(), head, events, stale }, keys))
    }

    /// Like `setting`, for forgetting.
    pub(crate) fn forgetting(
        &self,
        scope: &BoardScope,
        by: &Writer,
        key: &Key,
        vouched: bool,
    ) -> Result<(BoardChange, Vec<Key>), RuntimeError> {
        let head = self.journal.head(&scope.stream())?;
        let board = self.section(scope, key.section())?;
        let forgotten = memory::forget(&board, by, key, vouched)?;
        let gone = forgotten.keys.iter().filter_map(|key| board.get(key));
        let stale = gone.flat_map(|fact| rows::unfind(scope, &fact.key, &fact.value)).collect();
        let keys = forgotten.keys.clone();
        let events = vec![Event::MemoryForgotten(forgotten)];
        Ok((BoardChange { stream: scope.stream(), head, events, stale }, keys))
    }

    /// Commits a change, unless the board was written to since the change was decided.
    async fn commit(&self, change: BoardChange, by: &Writer) -> Result<bool, RuntimeError> {
        let mut commit = commit_at(now_ms());
        if *by != Writer::Program {
            // The caller is told that the write is done, so it must survive a power cut.
            commit.strength = Durability::Full;
        }
        commit.actor = actor(by);
        for event in &change.events {
            commit.projections.extend(crate::rows::project(&change.stream, commit.at_ms, event));
            commit.appends.push(append(&change.stream, event, &commit.actor)?);
        }
        commit.projections.extend(change.stale);
        commit.expect.push((change.stream, Expect::At(change.head)));
        match self.journal.commit(commit).await {
            Ok(_) => Ok(true),
            Err(JournalError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The user's messages in a session, up to a bound.
    pub(crate) fn said(&self, session: SessionId) -> Result<Vec<String>, RuntimeError> {
        let stream = session::stream(session);
        let after = self.journal.head(&stream)?.saturating_sub(SAID_ENTRIES_MAX);
        let most = usize::try_from(SAID_ENTRIES_MAX).unwrap_or(usize::MAX);
        let entries = self.journal.read(&stream, after, most)?;
        let mut said: Vec<(EnvelopeId, String)> = Vec::new();
        for entry in &entries {
            match event_of(entry) {
                Ok(Event::Said(one)) => said.push((one.envelope, one.text)),
                // A message that was taken back does not count.
                Ok(Event::Withdrawn(withdrawn)) => said.retain(|(envelope, _)| *envelope != withdrawn.envelope),
                _ => {}
            }
        }
        Ok(said.into_iter().map(|(_, text)| text).collect())
    }
}

fn actor(by: &Writer) -> String {
    match by {
        Writer::User(name) => format!("user/{name}"),
        agent => format!("agent:{}", agent.name()),
    }
}
