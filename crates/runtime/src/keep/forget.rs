//! Forgetting sessions: what was said and done goes, and the log still proves that something was.
//!
//! Payloads are erased under a tombstone, in one transaction with the rows that followed from them. What goes is decided before
//! it, as that walks through the whole log and others want to write; inside it only what has come since is looked at, and it is
//! decided anew if that changes anything: whoever writes the same words meanwhile keeps theirs. A payload that other sessions have, too, says nothing
//! about this one and stays; so does a text or a file's bytes that others refer to. What a session has left in streams that
//! it shares goes with it: experts' answers that were kept, and letters to people. Nobody can open the sessions
//! meanwhile: whoever forgets them owns them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::{SessionId, WorkerId};
use max_team_core::message::Principal;
use max_team_core::policy::By;
use max_team_journal::{Entry, Erase, Journal, Projection, Worker};
use max_team_tools::rewind::Trees;
use serde_json::Value;

use crate::cache::{self, Caches};
use crate::census::Cast;
use crate::error::RuntimeError;
use crate::memory::Memories;
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
/// The event of a tombstone, and the stream that they are in.
const ERASED: &str = "erased";
/// How the reason of a tombstone begins that names sessions, and what stands before who wanted that.
const FORGOTTEN: &str = "forgotten: ";
const BY: &str = "; by ";
/// Whose mailboxes are people's.
const PERSON: &str = "user/";

/// What was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forgotten {
    /// Entries whose payloads are gone.
    pub entries: u64,
}

/// That a session was forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// Which.
    pub session: String,
    /// The tombstone.
    pub seq: u64,
    /// When.
    pub at_ms: i64,
    /// Who wanted it, and through which door.
    pub by: String,
}

/// Whether a session that there is no more was forgotten, by what tombstones say; the last that `means` it.
pub(crate) fn gone(journal: &Journal, means: impl Fn(&str) -> bool) -> Result<Option<Gone>, RuntimeError> {
    let (mut found, mut after) = (None, 0);
    loop {
        let page = journal.read(ERASED, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(found) };
        after = last.stream_seq;
        for entry in &page {
            let said: Value = serde_json::from_slice(entry.payload.as_deref().unwrap_or_default()).unwrap_or_default();
            let Some(named) =
                said.get("reason").and_then(Value::as_str).and_then(|reason| reason.strip_prefix(FORGOTTEN))
            else {
                continue;
            };
            let (named, by) = named.split_once(BY).unwrap_or((named, &entry.actor));
            let session = named.split(", ").find(|id| means(id));
            found = session
                .map(|session| Gone {
                    session: session.to_owned(),
                    seq: entry.seq,
                    at_ms: entry.at_ms,
                    by: by.to_owned(),
                })
                .or(found);
        }
    }
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

/// Erases what was said and done in sessions; blocking while it looks for that. One that a living process runs is refused, naming it. What they keep beside
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
            Ok(()) => match Memories::new(journal).forget_dialogs(sessions).await {
                Ok(()) => erase(journal, worker.id(), sessions, by).await,
                Err(error) => Err(error),
            },
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
    let wish = Wish { worker, sessions: sessions.to_vec(), by: by.clone(), at_ms: now_ms() };
    carry_out(journal, wish.decide(journal)?).await
}

/// Erases what was decided on, or what is to go by now.
async fn carry_out(journal: &Journal, decided: Decided) -> Result<Forgotten, RuntimeError> {
    let here = journal.clone();
    let now = move || {
        let anew = if decided.holds(&here)? { None } else { Some(decided.wish.decide(&here)?) };
        Ok::<_, RuntimeError>(anew.as_ref().unwrap_or(&decided).erase.clone())
    };
    Ok(Forgotten { entries: journal.erase_as(now).await? })
}

/// Who wants which sessions forgotten.
#[derive(Debug, Clone)]
struct Wish {
    worker: WorkerId,
    sessions: Vec<SessionId>,
    by: Principal,
    at_ms: i64,
}

/// What goes, as far as the log had come when that was decided.
#[derive(Debug)]
struct Decided {
    wish: Wish,
    erase: Erase,
    /// The last entry that it was decided by.
    seen: u64,
    /// Whether nobody else was at work.
    is_alone: bool,
    /// The sessions' own streams, and those whose rows were made anew as a whole.
    streams: BTreeSet<String>,
}

impl Wish {
    /// What goes, and what becomes of the rows.
    fn decide(&self, journal: &Journal) -> Result<Decided, RuntimeError> {
        let (seen, is_alone) = (journal.last_seq()?, self.is_alone(journal)?);
        let mut streams = BTreeSet::new();
        for session in &self.sessions {
            streams.extend(Cast::of(journal, *session)?.streams());
        }
        let mut entries = all_entries(journal, &streams)?;
        let Elsewhere { seqs, shared } = elsewhere(journal, &streams, &entries)?;
        let mut payloads = journal.payloads_of(|seq, stream| streams.contains(stream) || seqs.contains(&seq))?;
        let caches: BTreeSet<String> =
            shared.iter().filter(|entry| entry.event == cache::KEPT).map(|entry| entry.stream.clone()).collect();
        entries.extend(shared);
        let rows = rows(journal, entries, &payloads, &self.sessions)?;
        payloads.extend(referred(journal, &streams, is_alone)?);
        let named: Vec<String> = self.sessions.iter().map(SessionId::to_string).collect();
        let reason = format!("{FORGOTTEN}{}{BY}{}", named.join(", "), By::person(&self.by).name());
        let (payloads, actor, at_ms) = (payloads.into_iter().collect(), self.by.address(), self.at_ms);
        streams.extend(caches);
        let erase = Erase { payloads, actor, reason, at_ms, rows };
        Ok(Decided { wish: self.clone(), erase, seen, is_alone, streams })
    }

    /// Another process may count on a text being there that it has stored itself.
    fn is_alone(&self, journal: &Journal) -> Result<bool, RuntimeError> {
        Ok(journal.living()?.iter().all(|other| other.id == self.worker))
    }
}

impl Decided {
    /// Whether nothing has been written since that it would have been decided otherwise by.
    fn holds(&self, journal: &Journal) -> Result<bool, RuntimeError> {
        if self.wish.is_alone(journal)? != self.is_alone {
            return Ok(false);
        }
        let payloads: HashSet<&Hash> = self.erase.payloads.iter().collect();
        let rows: HashSet<(&str, &str)> = self.erase.rows.iter().filter_map(named).collect();
        let mut after = self.seen;
        loop {
            let page = journal.read_all(after, PAGE)?;
            let Some(last) = page.last() else { return Ok(true) };
            after = last.seq;
            if page.iter().any(|entry| self.is_moved_by(entry, &payloads, &rows)) {
                return Ok(false);
            }
        }
    }

    /// An entry counts that is in one of the streams or comes from there, that has or refers to what is to go, or that one of
    /// the rows follows from; so does a tombstone, which takes away what others were counted on to keep.
    fn is_moved_by(&self, entry: &Entry, payloads: &HashSet<&Hash>, rows: &HashSet<(&str, &str)>) -> bool {
        if entry.event == ERASED
            || self.streams.contains(&entry.stream)
            || self.streams.contains(&entry.actor)
            || payloads.contains(&entry.payload_hash)
        {
            return true;
        }
        event_of(entry).is_ok_and(|event| {
            refers(&event).iter().any(|hash| payloads.contains(hash))
                || project(&entry.stream, entry.at_ms, &event).iter().filter_map(named).any(|row| rows.contains(&row))
        })
    }
}

/// The row that a change is about.
fn named(change: &Projection) -> Option<(&str, &str)> {
    match change {
        Projection::Put { table, key, .. }
        | Projection::Raise { table, key, .. }
        | Projection::Delete { table, key } => Some((table, key)),
        Projection::Snapshot { .. } => None,
    }
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
            if let Projection::Put { table, key, .. } | Projection::Raise { table, key, .. } = row {
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

#[cfg(test)]
mod tests {
    use max_team_core::event::{Said, SessionOpened};
    use max_team_core::id::{AgentId, EnvelopeId, TurnId};
    use max_team_core::message::Role;
    use max_team_journal::Options;
    use uuid::Uuid;

    use super::*;
    use crate::agent::Halt;
    use crate::rows::{STOPPED, keys, of_sends};
    use crate::shared::{append, commit_at};

    const MINE: u128 = 1;
    const OTHER: u128 = 2;

    fn ada() -> Principal {
        Principal { door: "cli".into(), user: "ada".into(), role: Role::Owner }
    }

    fn id(number: u128) -> SessionId {
        SessionId::new(Uuid::from_u128(number))
    }

    /// What a session does, with the rows that follow.
    fn write(journal: &Journal, session: u128, event: &Event) {
        let stream = session::stream(id(session));
        let mut commit = commit_at(7);
        commit.appends.push(append(&stream, event, "user/ada").unwrap());
        commit.projections = project(&stream, 7, event);
        journal.commit_blocking(commit).unwrap();
    }

    fn opened(session: u128, cwd: &str) -> Event {
        let lead = AgentId::new(Uuid::from_u128(session + 100));
        Event::SessionOpened(SessionOpened {
            session: id(session),
            lead,
            cwd: cwd.into(),
            by: ada(),
            choice: Default::default(),
        })
    }

    fn said(cwd: &str, text: &str) -> Event {
        let envelope = EnvelopeId::new(Uuid::from_u128(7));
        Event::Said(Said { envelope, text: text.into(), by: ada(), cwd: cwd.into() })
    }

    fn wish() -> Wish {
        Wish { worker: WorkerId::new(Uuid::from_u128(9)), sessions: vec![id(MINE)], by: ada(), at_ms: 9 }
    }

    fn journal_with_two_sessions(home: &Path) -> Journal {
        let journal = Journal::open(home, Options::default()).unwrap();
        write(&journal, MINE, &opened(MINE, "/p"));
        write(&journal, MINE, &said("/p", "my secret"));
        write(&journal, OTHER, &opened(OTHER, "/q"));
        journal
    }

    fn texts(journal: &Journal, session: u128) -> Vec<Option<String>> {
        let entries = all_entries(journal, [&session::stream(id(session))]).unwrap();
        let text = |entry: &Entry| match event_of(entry) {
            Ok(Event::Said(said)) => Some(said.text),
            _ => None,
        };
        entries.iter().filter(|entry| entry.event == "said").map(text).collect()
    }

    #[tokio::test]
    async fn what_others_write_after_the_decision_changes_it_only_if_it_is_about_the_same() {
        let cases = [
            (OTHER, said("/q", "something else"), true),
            (OTHER, said("/p", "my secret"), false),
            (MINE, said("/q", "one more word"), false),
            // Which session was last used in the folder is a row that goes.
            (OTHER, said("/p", "something else"), false),
            (3, opened(3, "/p"), true),
        ];
        for (session, event, holds) in cases {
            let home = tempfile::tempdir().unwrap();
            let journal = journal_with_two_sessions(home.path());
            let decided = wish().decide(&journal).unwrap();
            assert!(decided.holds(&journal).unwrap());
            write(&journal, session, &event);
            assert_eq!(decided.holds(&journal).unwrap(), holds, "{event:?}");
        }
    }

    #[tokio::test]
    async fn the_same_words_that_came_after_the_decision_stay_and_what_was_added_goes() {
        let home = tempfile::tempdir().unwrap();
        let journal = journal_with_two_sessions(home.path());
        let decided = wish().decide(&journal).unwrap();
        write(&journal, OTHER, &said("/p", "my secret"));
        write(&journal, MINE, &said("/p", "one more word"));
        carry_out(&journal, decided).await.unwrap();
        assert_eq!(texts(&journal, OTHER), [Some("my secret".to_owned())]);
        // A payload that somebody else has, too, says nothing about this session.
        assert_eq!(texts(&journal, MINE), [Some("my secret".to_owned()), None]);
        assert_eq!(journal.verify().unwrap().faults, []);
    }

    /// Since when everybody was stopped is a row of those it was told to.
    #[tokio::test]
    async fn a_stop_goes_with_its_session() {
        let home = tempfile::tempdir().unwrap();
        let journal = journal_with_two_sessions(home.path());
        for session in [MINE, OTHER] {
            let (since, to) =
                (Some(TurnId::new(Uuid::from_u128(session))), AgentId::new(Uuid::from_u128(session + 100)));
            let halt = Halt { from: "user/ada", by: "ada", who: None, since, listed: None, at_ms: 7 };
            let mut commit = commit_at(7);
            commit.sends.push(halt.letter(session::agent_stream(to)));
            of_sends(&mut commit);
            journal.commit_blocking(commit).unwrap();
        }
        carry_out(&journal, wish().decide(&journal).unwrap()).await.unwrap();
        let other = AgentId::new(Uuid::from_u128(OTHER + 100));
        assert_eq!(keys(&journal, STOPPED).unwrap(), [format!("told/agent/{other}")]);
    }

    #[tokio::test]
    async fn whoever_forgets_at_the_same_time_is_seen() {
        let home = tempfile::tempdir().unwrap();
        let journal = journal_with_two_sessions(home.path());
        let decided = wish().decide(&journal).unwrap();
        let theirs = Wish { sessions: vec![id(OTHER)], ..wish() };
        carry_out(&journal, theirs.decide(&journal).unwrap()).await.unwrap();
        assert!(!decided.holds(&journal).unwrap());
        carry_out(&journal, decided).await.unwrap();
        assert_eq!(texts(&journal, MINE), [None]);
    }
}
