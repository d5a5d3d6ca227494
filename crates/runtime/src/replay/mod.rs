//! Runs, taken out of the journal: replayed, compared, and checked against today's code.
//!
//! A [`Tape`] is everything that the log holds of one session, in order, with the texts that its requests were made
//! of. It is read once and never written back. Playing uses a journal of its own, in memory ([`Tape::replica`]), made
//! from the entries alone; so nothing here can touch the user's journal, a project or a model.

mod again;
mod compare;
mod file;
mod fork;
mod kept;
mod strict;
mod turns;

use std::collections::BTreeMap;

use max_team_core::agent::{Definition, Settings};
use max_team_core::event::{Event, LaunchFlags, SessionOpened};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, SessionId};
use max_team_core::turn::Turn;
use max_team_journal::{Entry, FaultDetail, Journal};

use crate::error::RuntimeError;
use crate::maintenance::Storage;
use crate::read_model::Cast;
use crate::rows::{self, event_of, project_entry};
use crate::session;
use crate::stream::{Mark, Scope, StreamEvent, StreamReader};

pub use compare::{AgentStep, Comparison, Figures, FirstDifference};
pub use file::{BadTape, TAPE_VERSION};
pub use fork::{Fork, Point, Site};
pub use kept::Fingerprint;
pub use strict::{CallPart, RecordedCall, ReplayDifference, VerdictPair};
pub(crate) use turns::{TurnMessage, spoken};

/// How often a running session is read until its entries and its derived state match.
const LOOKS_MAX: usize = 4;

/// All entries and texts of one session, taken out of the journal.
#[derive(Debug, Clone)]
pub struct Tape {
    pub session: SessionId,
    pub lead: AgentId,
    /// The directory that it worked in.
    pub cwd: String,
    /// Its entries in order, with their numbers in the journal.
    entries: Vec<Entry>,
    /// The parts of its requests, by the hashes in its intents.
    texts: BTreeMap<Hash, Vec<u8>>,
    /// Its derived state; `None` if the session went on while it was read.
    kept: Option<Fingerprint>,
    /// Damaged entries, with what is wrong; empty for a recording, which has no hashes to check.
    damaged: Vec<(u64, Vec<FaultDetail>)>,
    /// Whether it comes from a file.
    recorded: bool,
}

impl Tape {
    /// Reads everything that a journal holds of a session, as of one moment: the session may go on meanwhile.
    pub fn of(journal: &Journal, session: SessionId) -> Result<Self, RuntimeError> {
        let mut looks = 0;
        loop {
            let cast = Cast::of(journal, session)?;
            let entries = rows::all_entries(journal, &cast.streams())?;
            let (lead, cwd) = opened(&entries).ok_or_else(|| RuntimeError::NoSession(session.to_string()))?;
            let mut tape = Self {
                session,
                lead,
                cwd,
                entries,
                texts: BTreeMap::new(),
                kept: None,
                damaged: Vec::new(),
                recorded: false,
            };
            let kept = Fingerprint::of(journal, &tape)?;
            looks += 1;
            // A state that was folded after later entries would belong to another run.
            let is_still = Cast::of(journal, session)? == cast && tape.ends_at(journal, &cast)?;
            if is_still || looks == LOOKS_MAX {
                tape.kept = Some(kept).filter(|_| is_still);
                tape.damaged = tape.checked(journal);
                tape.texts = tape.named(journal)?;
                return Ok(tape);
            }
        }
    }

    /// Whether the journal has no further entries of it.
    fn ends_at(&self, journal: &Journal, cast: &Cast) -> Result<bool, RuntimeError> {
        let mut held = 0;
        for stream in cast.streams() {
            held += journal.head(&stream)?;
        }
        Ok(held == self.entries.len() as u64)
    }

    fn checked(&self, journal: &Journal) -> Vec<(u64, Vec<FaultDetail>)> {
        let mut check = journal.check_streams();
        let checked = self.entries.iter().map(|entry| (entry.seq, check.entry(entry)));
        checked.filter(|(_, damaged)| !damaged.is_empty()).collect()
    }

    /// The parts of its requests.
    fn named(&self, journal: &Journal) -> Result<BTreeMap<Hash, Vec<u8>>, RuntimeError> {
        let mut texts = BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| entry.event == "llm_intent") {
            let Event::LlmIntent(intent) = event_of(entry)? else { continue };
            for hash in [intent.request.instructions, intent.request.tools, intent.request.settings] {
                if !texts.contains_key(&hash)
                    && let Some(text) = journal.blob(&hash)?
                {
                    texts.insert(hash, text);
                }
            }
        }
        Ok(texts)
    }

    /// The lead's definition, and its first settings.
    pub fn led(&self) -> Result<(Definition, Settings), RuntimeError> {
        let mut turn = Turn::new();
        for (_, _, event) in self.events(self.lead)? {
            turn.apply(&event);
            if let (Some((_, _, definition)), Some(settings)) = (turn.identity(), turn.settings()) {
                return Ok((Definition::clone(definition), Settings::clone(settings)));
            }
        }
        Err(self.unknown_lead())
    }

    fn unknown_lead(&self) -> RuntimeError {
        RuntimeError::AgentStopped(format!("the run does not say what `{}` is", self.lead))
    }

    /// The flags that chose its lead and its team.
    pub fn choice(&self) -> LaunchFlags {
        let opened = self.entries.iter().find_map(|entry| match event_of(entry) {
            Ok(Event::SessionOpened(opened)) => Some(opened.choice),
            _ => None,
        });
        opened.unwrap_or_default()
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no entries; a run that was read has some.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of its model calls.
    pub fn calls(&self) -> usize {
        self.entries.iter().filter(|entry| entry.event == "llm_intent").count()
    }

    /// Its derived state; `None` if the session went on while it was read.
    pub fn kept(&self) -> Option<&Fingerprint> {
        self.kept.as_ref()
    }

    /// Whether it was read from a file, not from a journal.
    pub fn is_recording(&self) -> bool {
        self.recorded
    }

    /// Its damaged entries, with what is wrong.
    pub fn damaged(&self) -> &[(u64, Vec<FaultDetail>)] {
        &self.damaged
    }

    /// A journal in memory with only this run, and everything that follows from it.
    pub fn replica(&self) -> Result<Storage, RuntimeError> {
        Ok(Journal::replica(self.entries.clone(), project_entry)?.into())
    }

    /// Plays it: the events as every frontend reads them, with their numbers in the journal.
    pub fn play(&self, replica: &Storage) -> Result<Vec<StreamEvent>, RuntimeError> {
        let mut reader = StreamReader::open(&replica.journal, Scope::Session(self.session), Mark::default())?;
        let mut events = Vec::new();
        while let Some(mut event) = reader.try_next()? {
            event.seq = self.number(event.seq);
            events.push(event);
        }
        Ok(events)
    }

    /// The number in the journal of an entry of the replica.
    fn number(&self, position: u64) -> u64 {
        let index = usize::try_from(position).ok().and_then(|position| position.checked_sub(1));
        index.and_then(|index| self.entries.get(index)).map_or(position, |entry| entry.seq)
    }

    /// The events of one of its agents, with their numbers in the journal.
    pub(crate) fn events(&self, agent: AgentId) -> Result<Vec<(u64, i64, Event)>, RuntimeError> {
        let stream = session::agent_stream(agent);
        let own = self.entries.iter().filter(|entry| entry.stream == stream);
        own.map(|entry| Ok((entry.seq, entry.at_ms, event_of(entry)?))).collect()
    }
}

/// Everything that a journal holds of a session, in order.
pub(crate) fn entries(journal: &Journal, session: SessionId) -> Result<Vec<Entry>, RuntimeError> {
    rows::all_entries(journal, &Cast::of(journal, session)?.streams())
}

/// The lead of a session, and its directory.
fn opened(entries: &[Entry]) -> Option<(AgentId, String)> {
    let opened = entries.iter().find(|entry| entry.event == "session_opened")?;
    match event_of(opened) {
        Ok(Event::SessionOpened(SessionOpened { lead, cwd, .. })) => Some((lead, cwd)),
        _ => None,
    }
}
