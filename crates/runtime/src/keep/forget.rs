//! Forgetting sessions: what was said and done goes, and the log still proves that something was.
//!
//! Payloads are erased under a tombstone, in one transaction with the rows that followed from them, and what goes is decided
//! inside it: whoever writes the same words meanwhile keeps theirs. A payload that other sessions have, too, says nothing
//! about this one and stays; so does a text or a file's bytes that others refer to. What a session has left in streams that
//! it shares goes with it: experts' answers that were kept, and letters to people. Nobody can open the sessions
//! meanwhile: whoever forgets them owns them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::{SessionId, WorkerId};
use max_team_core::message::Principal;
use max_team_journal::{Entry, Erase, Journal, Projection, Worker};
use max_team_tools::rewind::Trees;

use crate::cache::{self, Caches};
use crate::census::Cast;
use crate::error::RuntimeError;
use crate::post;
use crate::rows::{all_entries, event_of, project};
use crate::session::{self, Sessions};
use crate::shared::now_ms;

/// Entries read from the journal at a time.
const PAGE: usize = 512;
/// The events that refer to bytes beside the log.
const REFERRING: [&str; 4] = ["llm_intent", "files_changed", "rewound", "task_assigned"];
/// The event that a session goes on from another's past with.
const FORKED: &str = "forked";
/// Whose mailboxes are people's.
const PERSON: &str = "user/";

/// What was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forgotten {
    /// Entries whose payloads are gone.
    pub entries: u64,
}

/// The sessions that go on from one of these, and are none of them.
pub fn forks_of(journal: &Journal, sessions: &[SessionId]) -> Result<Vec<SessionId>, RuntimeError> {
    let mut forks = BTreeSet::new();
    each_event(journal, FORKED, |entry, event| {
        let Event::Forked(forked) = event else { return };
        let fork = post::session_at(journal, &entry.stream).filter(|fork| !sessions.contains(fork));
        forks.extend(fork.filter(|_| sessions.contains(&forked.session)));
    })?;
    Ok(forks.into_iter().collect())
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
            Ok(()) => erase(journal, worker.id(), sessions, by).await,
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
    worker: WorkerId,
    sessions: &[SessionId],
    by: &Principal,
) -> Result<Forgotten, RuntimeError> {
    let (here, sessions, actor, at_ms) = (journal.clone(), sessions.to_vec(), by.address(), now_ms());
    let decide = move || decide(&here, worker, &sessions, actor.clone(), at_ms);
    Ok(Forgotten { entries: journal.erase_as(decide).await? })
}

/// What goes, and what becomes of the rows.
fn decide(
    journal: &Journal,
    worker: WorkerId,
    sessions: &[SessionId],
    actor: String,
    at_ms: i64,
) -> Result<Erase, RuntimeError> {
    let mut streams = BTreeSet::new();
    for session in sessions {
        streams.extend(Cast::of(journal, *session)?.streams());
    }
    let mut entries = all_entries(journal, &streams)?;
    let Elsewhere { seqs, shared } = elsewhere(journal, &streams, &entries)?;
    let mut payloads = journal.payloads_of(|seq, stream| streams.contains(stream) || seqs.contains(&seq))?;
    entries.extend(shared);
    let rows = rows(journal, entries, &payloads, sessions)?;
    // Another process may count on a text being there that it has stored itself.
    let is_alone = journal.living()?.iter().all(|other| other.id == worker);
    payloads.extend(referred(journal, &streams, is_alone)?);
    let named: Vec<String> = sessions.iter().map(SessionId::to_string).collect();
    let reason = format!("forgotten: {}", named.join(", "));
    Ok(Erase { payloads: payloads.into_iter().collect(), actor, reason, at_ms, rows })
}

/// What sessions have left in streams that they share with others.
struct Elsewhere {
    /// Their entries.
    seqs: BTreeSet<u64>,
    /// Those that rows follow from, with everything in the streams whose rows follow from more than one entry.
    shared: Vec<Entry>,
}

fn elsewhere(journal: &Journal, streams: &BTreeSet<String>, entries: &[Entry]) -> Result<Elsewhere, RuntimeError> {
    let own: BTreeSet<u64> = entries.iter().map(|entry| entry.seq).collect();
    let (mut seqs, mut shared) = (BTreeSet::new(), Vec::new());
    for expert in Caches::new(journal).experts()? {
        let kept = all_entries(journal, [&cache::stream(&expert)])?;
        // An answer is kept by the commit that ends the turn which gave it, right behind what is said about that.
        let mine = |entry: &&Entry| entry.event == cache::KEPT && own.contains(&entry.seq.saturating_sub(1));
        let before = seqs.len();
        seqs.extend(kept.iter().filter(mine).map(|entry| entry.seq));
        if seqs.len() > before {
            shared.extend(kept);
        }
    }
    // Whoever was written to has spoken before.
    let people: BTreeSet<&str> =
        entries.iter().map(|entry| &*entry.actor).filter(|who| who.starts_with(PERSON)).collect();
    for person in people {
        let letters = all_entries(journal, [&format!("mail/{person}")])?;
        let mine: Vec<Entry> = letters.into_iter().filter(|letter| streams.contains(&letter.actor)).collect();
        seqs.extend(mine.iter().map(|letter| letter.seq));
        shared.extend(mine);
    }
    Ok(Elsewhere { seqs, shared })
}

/// Drops the bytes of files that were kept to put them back and that no session refers to any more; how many went. Nobody
/// else may be at work: what they keep is not written down before their command is over. Blocking.
pub fn prune_images(journal: &Journal, home: &Path) -> Result<u64, RuntimeError> {
    let mut named = HashSet::new();
    for name in ["files_changed", "rewound"] {
        each_event(journal, name, |_, event| named.extend(refers(&event)))?;
    }
    Ok(Trees::within(home).prune(&named))
}

/// Everything of one name in the log that can be read.
fn each_event(journal: &Journal, name: &str, mut each: impl FnMut(&Entry, Event)) -> Result<(), RuntimeError> {
    let mut after = 0;
    loop {
        let page = journal.read_event(name, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        for entry in &page {
            if let Ok(event) = event_of(entry) {
                each(entry, event);
            }
        }
    }
}

/// What becomes of the rows: those of what goes are deleted, and those that what stays makes are made again.
fn rows(
    journal: &Journal,
    mut entries: Vec<Entry>,
    payloads: &BTreeSet<Hash>,
    sessions: &[SessionId],
) -> Result<Vec<Projection>, RuntimeError> {
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

/// The bytes beside the log that these streams refer to and no others do: of files, and, if `texts` may go, what requests
/// were made of.
fn referred(journal: &Journal, streams: &BTreeSet<String>, texts: bool) -> Result<BTreeSet<Hash>, RuntimeError> {
    let mut found: HashMap<Hash, bool> = HashMap::new();
    for name in REFERRING {
        each_event(journal, name, |entry, event| {
            let is_mine = streams.contains(&entry.stream) && (texts || !matches!(event, Event::LlmIntent(_)));
            for hash in refers(&event) {
                *found.entry(hash).or_insert(true) &= is_mine;
            }
        })?;
    }
    Ok(found.into_iter().filter_map(|(hash, is_mine)| is_mine.then_some(hash)).collect())
}

/// The bytes beside the log that an event refers to.
fn refers(event: &Event) -> Vec<Hash> {
    match event {
        Event::LlmIntent(intent) => {
            let request = &intent.request;
            vec![request.instructions, request.tools, request.settings]
        }
        Event::FilesChanged(changed) => changed.changes.iter().filter_map(|change| change.before.bytes()).collect(),
        Event::Rewound(rewound) => rewound.puts.iter().filter_map(|put| put.change.before.bytes()).collect(),
        Event::TaskAssigned(assigned) => assigned.tree.into_iter().collect(),
        _ => Vec::new(),
    }
}
