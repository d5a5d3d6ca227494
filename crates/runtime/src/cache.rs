//! Answers of experts, kept for reuse: a stream per expert, and a row per answer.
//!
//! An answer is committed together with the end of the turn that gave it, so it is kept if and only if it was given.
//! Expired answers are skipped by readers, and dropped with the next answer that is kept. Which calls an answer serves
//! is decided in `core::delegation::cache` alone.

use max_team_core::delegation::cache::{CacheCleared, CacheEntry, CacheKept};
use max_team_core::event::Event;
use max_team_core::message::{Principal, Role};
use max_team_journal::{Durability, Journal, Projection};
use serde_json::Value;

use crate::error::RuntimeError;
use crate::handle::require;
use crate::rows::{self, put};
use crate::shared::{append, commit_at, now_ms};

/// Experts with kept answers, now or earlier.
const EXPERTS: &str = "cache_expert";
/// The event that keeps an answer.
pub(crate) const KEPT: &str = "cache_kept";
/// Prefix of the streams, and of the tables of answers.
const PREFIX: &str = "cache/";

/// The kept answers of experts; needs only a journal.
#[derive(Debug)]
pub struct Caches<'j> {
    journal: &'j Journal,
}

impl<'j> Caches<'j> {
    pub fn new(journal: &'j Journal) -> Self {
        Self { journal }
    }

    /// Names of the experts with kept answers, now or earlier.
    pub fn experts(&self) -> Result<Vec<String>, RuntimeError> {
        let mut experts: Vec<String> =
            rows::rows::<Value>(self.journal, EXPERTS)?.into_iter().map(|(expert, _)| expert).collect();
        experts.sort_unstable();
        Ok(experts)
    }

    /// The kept answers of an expert, newest first; also expired ones that were not dropped yet.
    pub fn entries(&self, expert: &str) -> Result<Vec<CacheEntry>, RuntimeError> {
        let found = rows::rows::<CacheEntry>(self.journal, &stream(expert))?;
        Ok(found.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Drops the kept answers of an expert; returns how many there were.
    pub async fn clear(&self, expert: &str, by: &Principal) -> Result<usize, RuntimeError> {
        require(by, Role::Owner)?;
        let ids: Vec<String> = self.entries(expert)?.iter().map(CacheEntry::id).collect();
        let count = ids.len();
        if count == 0 {
            return Ok(0);
        }
        let (stream, cleared) = (stream(expert), Event::CacheCleared(CacheCleared { ids }));
        let mut commit = commit_at(now_ms());
        // The user is told that it is done, so it must survive a power cut.
        commit.strength = Durability::Full;
        commit.actor = by.address();
        commit.projections.extend(rows::project(&stream, commit.at_ms, &cleared));
        commit.appends.push(append(&stream, &cleared, &commit.actor)?);
        self.journal.commit(commit).await?;
        Ok(count)
    }
}

/// The stream of an expert's answers.
pub(crate) fn stream(expert: &str) -> String {
    format!("{PREFIX}{expert}")
}

/// The rows that an event of such a stream changes; `None`: it is no such stream.
pub(crate) fn project(stream: &str, at_ms: i64, event: &Event) -> Option<Vec<Projection>> {
    let expert = stream.strip_prefix(PREFIX)?;
    let delete = |id: &String| Projection::Delete { table: stream.to_owned().into(), key: id.clone() };
    Some(match event {
        Event::CacheKept(CacheKept { entry, dropped }) => {
            let mut changed: Vec<Projection> = dropped.iter().map(delete).collect();
            changed.extend(put(stream, &entry.id(), at_ms, entry));
            changed.extend(put(EXPERTS, expert, at_ms, &()));
            changed
        }
        Event::CacheCleared(cleared) => cleared.ids.iter().map(delete).collect(),
        _ => Vec::new(),
    })
}
