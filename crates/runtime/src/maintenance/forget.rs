//! Erases sessions; the log still proves that entries existed.
//!
//! Payloads are erased under a tombstone, in one transaction with the rows that followed from them. The decision what
//! to erase is made before that transaction, because it reads the whole log while other processes write; the
//! transaction checks only newer entries, and decides again if they change anything, so that a payload with the same
//! content that was written meanwhile is kept. A payload that other sessions also have says nothing about this one and
//! stays; so does a text or a file's content that others refer to. Entries of the session in shared streams are erased
//! with it: kept answers of experts, and messages to people. The process that erases sessions owns them, so no other
//! can open them meanwhile.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use max_team_core::event::Event;
use max_team_core::hash::Hash;
use max_team_core::id::{SessionId, WorkerId};
use max_team_core::message::Principal;
use max_team_core::policy::DecidedBy;
use max_team_journal::{Entry, Erase, ForgottenSessions, Journal, Projection, Worker};
use max_team_tools::rewind::TrackedTrees;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cache::{self, Caches};
use crate::error::RuntimeError;
use crate::memory::Memories;
use crate::read_model::Cast;
use crate::rows::{all_entries, event_of, project};
use crate::session::{self, Sessions};
use crate::shared::now_ms;
use crate::user_mail;

/// Entries read from the journal at a time.
const PAGE: usize = 512;
/// The events that refer to blobs.
const REFERRING: [&str; 4] = ["llm_intent", "files_changed", "rewound", "task_assigned"];
/// The event that begins a fork.
const FORKED: &str = "forked";
/// The event of a tombstone, and the stream that they are in.
const ERASED: &str = "erased";
/// The parts of a tombstone's reason that people read, before the ids of sessions and before the person's name.
const FORGOTTEN: &str = "forgotten: ";
const BY: &str = "; by ";
/// Addresses of people's mailboxes begin with this.
const PERSON: &str = "user/";

/// Outcome of an erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErasureOutcome {
    /// Entries whose payloads are gone.
    pub entries: u64,
}

/// The tombstone of an erased session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tombstone {
    pub session: String,
    /// The entry that records the deletion.
    pub seq: u64,
    pub at_ms: i64,
    /// Who asked for it, and through which frontend.
    pub by: String,
}

/// The tombstone of a session that was erased: the last one that `means` accepts.
pub(crate) fn gone(journal: &Journal, means: impl Fn(&str) -> bool) -> Result<Option<Tombstone>, RuntimeError> {
    let (mut found, mut after) = (None, 0);
    loop {
        let page = journal.read(ERASED, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(found) };
        after = last.stream_seq;
        for entry in &page {
            let Some(ForgottenSessions { sessions, by }) = forgotten(entry) else { continue };
            let session = sessions.into_iter().find(|id| means(id));
            found = session.map(|session| Tombstone { session, seq: entry.seq, at_ms: entry.at_ms, by }).or(found);
        }
    }
}

/// The sessions that a tombstone names. Older ones name them in their reason only.
fn forgotten(entry: &Entry) -> Option<ForgottenSessions> {
    let said: Value = serde_json::from_slice(entry.payload.as_deref()?).ok()?;
    if let Some(forgotten) = said.get("forgotten") {
        return ForgottenSessions::deserialize(forgotten).ok();
    }
    let named = said.get("reason")?.as_str()?.strip_prefix(FORGOTTEN)?;
    let (named, by) = named.split_once(BY).unwrap_or((named, &entry.actor));
    Some(ForgottenSessions { sessions: named.split(", ").map(str::to_owned).collect(), by: by.to_owned() })
}

/// The sessions that were forked from one of these, and are not among them.
pub fn forks_of(journal: &Journal, sessions: &[SessionId]) -> Result<Vec<SessionId>, RuntimeError> {
    let mut forks = BTreeSet::new();
    each_event(journal, FORKED, |entry, event| {
        let Event::Forked(forked) = event else { return };
        let fork = user_mail::session_at(journal, &entry.stream).filter(|fork| !sessions.contains(fork));
        forks.extend(fork.filter(|_| sessions.contains(&forked.session)));
    })?;
    Ok(forks.into_iter().collect())
}

/// Erases sessions; blocks while it reads the log. A session that a living process runs is refused, naming the
/// process. Files beside the journal are removed first (`clear`), once the sessions are claimed: after a crash in
/// between the sessions are still listed and can be erased again.
pub async fn forget_sessions(
    journal: &Journal,
    worker: &Worker,
    sessions: &[SessionId],
    by: &Principal,
    clear: impl FnOnce() -> Result<(), String>,
) -> Result<ErasureOutcome, RuntimeError> {
    let mut claimed = Vec::new();
    let mut done = Ok(ErasureOutcome::default());
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
) -> Result<ErasureOutcome, RuntimeError> {
    let wish = ErasureRequest { worker, sessions: sessions.to_vec(), by: by.clone(), at_ms: now_ms() };
    carry_out(journal, wish.decide(journal)?).await
}

/// Erases what was decided, or what must be erased by now.
async fn carry_out(journal: &Journal, decided: Decided) -> Result<ErasureOutcome, RuntimeError> {
    let here = journal.clone();
    let now = move || {
        let anew = if decided.holds(&here)? { None } else { Some(decided.wish.decide(&here)?) };
        Ok::<_, RuntimeError>(anew.as_ref().unwrap_or(&decided).erase.clone())
    };
    Ok(ErasureOutcome { entries: journal.erase_as(now).await? })
}

/// The sessions to erase, and who asked for it.
#[derive(Debug, Clone)]
struct ErasureRequest {
    worker: WorkerId,
    sessions: Vec<SessionId>,
    by: Principal,
    at_ms: i64,
}

/// A decision what to erase, as of a place in the log.
#[derive(Debug)]
struct Decided {
    wish: ErasureRequest,
    erase: Erase,
    /// The last entry that was considered.
    seen: u64,
    /// Whether no other process was at work.
    is_alone: bool,
    /// The sessions' own streams, and those whose rows were made again as a whole.
    streams: BTreeSet<String>,
}

impl ErasureRequest {
    /// Decides what is erased, and how the rows change.
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
        let by = DecidedBy::person(&self.by).name();
        let reason = format!("{FORGOTTEN}{}{BY}{by}", named.join(", "));
        let forgotten = Some(ForgottenSessions { sessions: named, by });
        let (payloads, actor, at_ms) = (payloads.into_iter().collect(), self.by.address(), self.at_ms);
        streams.extend(caches);
        let erase = Erase { payloads, actor, reason, forgotten, at_ms, rows };
        Ok(Decided { wish: self.clone(), erase, seen, is_alone, streams })
    }

    /// Another process may rely on a text that it has stored itself.
    fn is_alone(&self, journal: &Journal) -> Result<bool, RuntimeError> {
        Ok(journal.living()?.iter().all(|other| other.id == self.worker))
    }
}

impl Decided {
    /// Whether nothing written since changes the decision.
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

    /// Whether a newer entry changes the decision: it is in one of the streams or comes from there, has or refers to
    /// something that is to be erased, or makes one of the rows; or it is a tombstone, which may have erased what
    /// other entries were expected to keep.
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

/// Entries of sessions in streams that they share with others.
struct Elsewhere {
    /// Numbers of the entries that belong to these sessions.
    seqs: BTreeSet<u64>,
    /// Entries that make rows, with whole streams whose rows follow from more than one entry.
    shared: Vec<Entry>,
}

fn elsewhere(journal: &Journal, streams: &BTreeSet<String>, entries: &[Entry]) -> Result<Elsewhere, RuntimeError> {
    let own: BTreeSet<u64> = entries.iter().map(|entry| entry.seq).collect();
    let (mut seqs, mut shared) = (BTreeSet::new(), Vec::new());
    for expert in Caches::new(journal).experts()? {
        let kept = all_entries(journal, [&cache::stream(&expert)])?;
        // A kept answer is committed with the end of its turn, right after the turn's entry.
        let mine = |entry: &&Entry| entry.event == cache::KEPT && own.contains(&entry.seq.saturating_sub(1));
        let before = seqs.len();
        seqs.extend(kept.iter().filter(mine).map(|entry| entry.seq));
        if seqs.len() > before {
            shared.extend(kept);
        }
    }
    // Only people who wrote in these sessions got messages from them.
    let people: BTreeSet<&str> =
        entries.iter().map(|entry| &*entry.actor).filter(|who| who.starts_with(PERSON)).collect();
    for person in people {
        let envelopes = all_entries(journal, [&format!("mail/{person}")])?;
        let mine: Vec<Entry> = envelopes.into_iter().filter(|envelope| streams.contains(&envelope.actor)).collect();
        seqs.extend(mine.iter().map(|envelope| envelope.seq));
        shared.extend(mine);
    }
    Ok(Elsewhere { seqs, shared })
}

/// Deletes stored file contents for rewind that no session refers to any more; returns how many. No other process may
/// be at work, because a command's step is journalled only after the command. Blocking.
pub fn prune_images(journal: &Journal, home: &Path) -> Result<u64, RuntimeError> {
    let mut named = HashSet::new();
    for name in ["files_changed", "rewound", "task_marked"] {
        each_event(journal, name, |_, event| named.extend(refers(&event)))?;
    }
    Ok(TrackedTrees::within(home).prune(&named))
}

/// Calls `each` with all readable events of one name.
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

/// The changes of rows: rows of erased entries are deleted, and rows that remaining entries make are made again.
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

/// The blobs that only these streams refer to: contents of files and, if `texts` may go, parts of requests.
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

/// The blobs that an event refers to.
fn refers(event: &Event) -> Vec<Hash> {
    match event {
        Event::LlmIntent(intent) => {
            let request = &intent.request;
            vec![request.instructions, request.tools, request.settings]
        }
        Event::FilesChanged(changed) => changed.changes.iter().filter_map(|change| change.before.bytes()).collect(),
        Event::Rewound(rewound) => rewound.puts.iter().filter_map(|put| put.change.before.bytes()).collect(),
        Event::TaskAssigned(assigned) => assigned.tree.into_iter().collect(),
        Event::TaskMarked(marked) => marked.tree.into_iter().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use max_team_core::event::{SessionOpened, UserMessage};
    use max_team_core::id::{AgentId, EnvelopeId, TurnId};
    use max_team_core::message::Role;
    use max_team_journal::Options;
    use uuid::Uuid;

    use super::*;
    use crate::agent::PersonStop;
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
            chat: None,
        })
    }

    fn said(cwd: &str, text: &str) -> Event {
        let envelope = EnvelopeId::new(Uuid::from_u128(7));
        Event::Said(UserMessage { envelope, text: text.into(), by: ada(), cwd: cwd.into() })
    }

    fn wish() -> ErasureRequest {
        ErasureRequest { worker: WorkerId::new(Uuid::from_u128(9)), sessions: vec![id(MINE)], by: ada(), at_ms: 9 }
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
    async fn later_writes_change_the_decision_only_if_they_are_about_the_same() {
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
            let stop = PersonStop { from: "user/ada", by: "ada", since, at_ms: 7 };
            let mut commit = commit_at(7);
            commit.sends.push(stop.to_reader(session::agent_stream(to)));
            of_sends(&mut commit);
            journal.commit_blocking(commit).unwrap();
        }
        carry_out(&journal, wish().decide(&journal).unwrap()).await.unwrap();
        let other = AgentId::new(Uuid::from_u128(OTHER + 100));
        assert_eq!(keys(&journal, STOPPED).unwrap(), [format!("told/agent/{other}")]);
    }

    #[tokio::test]
    async fn a_concurrent_forget_is_seen() {
        let home = tempfile::tempdir().unwrap();
        let journal = journal_with_two_sessions(home.path());
        let decided = wish().decide(&journal).unwrap();
        let theirs = ErasureRequest { sessions: vec![id(OTHER)], ..wish() };
        carry_out(&journal, theirs.decide(&journal).unwrap()).await.unwrap();
        assert!(!decided.holds(&journal).unwrap());
        carry_out(&journal, decided).await.unwrap();
        assert_eq!(texts(&journal, MINE), [None]);
    }

    /// A tombstone names the forgotten sessions; older ones do so in their reason alone.
    #[tokio::test]
    async fn a_forgotten_session_is_known_from_old_and_new_tombstones() {
        let journal = Journal::memory();
        let old = "forgotten: ses_1, ses_2; by ada at cli".to_owned();
        let new = Some(ForgottenSessions { sessions: vec!["ses_3".to_owned()], by: "bob at cli".to_owned() });
        let (actor, payloads) = ("user/ada".to_owned(), vec![Hash::of("x")]);
        let erase = Erase { payloads, actor, reason: old, ..Erase::default() };
        journal.erase(erase.clone()).await.unwrap();
        journal.erase(Erase { reason: "words".to_owned(), forgotten: new, ..erase }).await.unwrap();
        for (id, by) in [("ses_2", Some("ada at cli")), ("ses_3", Some("bob at cli")), ("ses_4", None)] {
            let found = gone(&journal, |known| known == id).unwrap();
            assert_eq!(found.map(|gone| gone.by), by.map(str::to_owned), "{id}");
        }
    }
}
