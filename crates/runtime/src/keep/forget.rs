//! Forgetting sessions: what was said and done goes, and the log still proves that something was.
//!
//! Payloads are erased under a tombstone, in one transaction with the rows that followed from them. A payload that other
//! sessions have, too, says nothing about this one and stays; so does a request's text that others refer to. Nobody can
//! open the sessions meanwhile: whoever forgets them owns them.

use std::collections::{BTreeSet, HashMap};

use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::SessionId;
use max_team_core::message::Principal;
use max_team_journal::{Entry, Erase, Journal, Projection, Worker};

use crate::census::Census;
use crate::census::record::read;
use crate::error::RuntimeError;
use crate::rows::{event_of, project};
use crate::session::{self, Sessions};
use crate::shared::now_ms;

/// Entries read from the journal at a time.
const PAGE: usize = 512;
/// The event that refers to texts beside the log.
const LLM_INTENT: &str = "llm_intent";

/// What was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forgotten {
    /// Entries whose payloads are gone.
    pub entries: u64,
}

/// Erases what was said and done in sessions. One that a living process runs is refused, naming it. What they keep beside
/// the journal is `clear`ed first, once nobody can open them any more: whoever is stopped in between finds them again.
pub async fn forget_sessions(
    journal: &Journal,
    worker: &Worker,
    sessions: &[SessionId],
    by: &Principal,
    clear: impl FnOnce() -> Result<(), String>,
) -> Result<Forgotten, RuntimeError> {
    let mut claimed = Vec::new();
    let mut done = Ok(Forgotten::default());
    for session in sessions {
        let resource = session::stream(*session);
        match journal.claim(&resource, worker).await {
            Ok(epoch) => claimed.push((resource, epoch)),
            Err(error) => {
                done = Err(error.into());
                break;
            }
        }
    }
    if done.is_ok() {
        done = match clear() {
            Ok(()) => erase(journal, worker, sessions, by).await,
            Err(detail) => Err(RuntimeError::NotCleared { detail }),
        };
    }
    for (resource, epoch) in claimed {
        journal.release(&resource, worker, epoch).await?;
    }
    done
}

async fn erase(
    journal: &Journal,
    worker: &Worker,
    sessions: &[SessionId],
    by: &Principal,
) -> Result<Forgotten, RuntimeError> {
    let census = Census::new(journal);
    let mut streams = BTreeSet::new();
    for session in sessions {
        streams.extend(census.streams(*session)?);
    }
    let mut payloads = journal.payloads_of(&streams)?;
    let letters = letters(journal, &streams, by)?;
    payloads.extend(letters.iter().map(|letter| letter.payload_hash));
    let rows = rows(journal, &streams, letters, &payloads, sessions)?;
    // Another process may count on a text being there that it has stored itself.
    if journal.living()?.iter().all(|other| other.id == worker.id()) {
        payloads.extend(texts(journal, &streams)?);
    }
    let named: Vec<String> = sessions.iter().map(SessionId::to_string).collect();
    let reason = format!("forgotten: {}", named.join(", "));
    let erase = Erase { payloads: payloads.into_iter().collect(), actor: by.address(), reason, at_ms: now_ms(), rows };
    Ok(Forgotten { entries: journal.erase(erase).await? })
}

/// What those who work in these sessions have written to whoever forgets them.
fn letters(journal: &Journal, streams: &BTreeSet<String>, by: &Principal) -> Result<Vec<Entry>, RuntimeError> {
    let mut all = read(journal, &format!("mail/{}", by.address()))?;
    all.retain(|entry| matches!(event_of(entry), Ok(Event::Mailed(letter)) if streams.contains(&letter.from)));
    Ok(all)
}

/// What becomes of the rows: those of what goes are deleted, and those that what stays makes are made again.
fn rows(
    journal: &Journal,
    streams: &BTreeSet<String>,
    letters: Vec<Entry>,
    payloads: &BTreeSet<Hash>,
    sessions: &[SessionId],
) -> Result<Vec<Projection>, RuntimeError> {
    let mut entries = letters;
    for stream in streams {
        entries.extend(read(journal, stream)?);
    }
    entries.sort_unstable_by_key(|entry| entry.seq);
    let (mut gone, mut again) = (BTreeSet::new(), Vec::new());
    for entry in &entries {
        let Ok(event) = event_of(entry) else { continue };
        let changed = project(&entry.stream, entry.at_ms, &event);
        for row in &changed {
            if let Projection::Put { table, key, .. } = row {
                gone.insert((table.to_string(), key.clone()));
            }
        }
        if !payloads.contains(&entry.payload_hash) {
            again.extend(changed);
        }
    }
    let mut rows: Vec<Projection> = Vec::new();
    for (table, key) in gone {
        if table == session::IN_DIRECTORY {
            rows.extend(Sessions::new(journal).latest_without(&key, sessions)?);
        } else {
            rows.push(Projection::Delete { table: table.into(), key });
        }
    }
    rows.extend(again);
    Ok(rows)
}

/// The texts that requests of these streams refer to and no others do.
fn texts(journal: &Journal, streams: &BTreeSet<String>) -> Result<BTreeSet<Hash>, RuntimeError> {
    let mut referred: HashMap<Hash, bool> = HashMap::new();
    let mut after = 0;
    loop {
        let page = journal.read_event(LLM_INTENT, after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for entry in &page {
            let Ok(Event::LlmIntent(intent)) = event_of(entry) else { continue };
            let is_inside = streams.contains(&entry.stream);
            let request = intent.request;
            for text in [request.instructions, request.tools, request.settings] {
                let only_inside = referred.entry(text).or_insert(true);
                *only_inside &= is_inside;
            }
        }
    }
    Ok(referred.into_iter().filter_map(|(text, only_inside)| only_inside.then_some(text)).collect())
}
