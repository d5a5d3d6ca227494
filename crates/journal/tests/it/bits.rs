//! Bits that flip on the disk: whatever they change is found, or they change nothing that anybody reads.

use std::fs;
use std::path::Path;

use max_team_core::limits::INLINE_BYTES_MAX;
use max_team_journal::{
    Append, Commit, Entry, FoldedState, Journal, JournalError, ListedRow, Options, OutboxOp, Projection, Snapshot,
    TimerOp,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::make::{append, envelope, envelope_id, fact, on_disk};

const PAGE: usize = 4_096;
const VERSION: u32 = 3;

/// Rows of the caller's: the last text of each stream.
fn project(entry: &Entry) -> Vec<Projection> {
    let said = entry.payload.as_deref().and_then(|payload| serde_json::from_slice::<Value>(payload).ok());
    match said.as_ref().and_then(|said| said.get("text")?.as_str()) {
        Some(text) if entry.event == "said" => vec![Projection::Put {
            table: "last".into(),
            key: entry.stream.clone(),
            value: text.as_bytes().to_vec(),
            sort_ms: entry.at_ms,
        }],
        _ => Vec::new(),
    }
}

/// A state that is all that was said.
fn refold(journal: &Journal, stream: &str, upto: u64) -> Option<Vec<u8>> {
    let entries = journal.read(stream, 0, usize::try_from(upto).unwrap()).ok()?;
    let texts: Vec<Value> =
        entries.iter().map(|entry| serde_json::from_slice(entry.payload.as_ref()?).ok()).collect::<Option<_>>()?;
    Some(json!(texts).to_string().into_bytes())
}

/// Everything that the journal keeps, small.
async fn written() -> tempfile::TempDir {
    let (dir, journal) = on_disk();
    for number in 0..12_u64 {
        let stream = format!("s/{}", number % 3);
        let long = "long ".repeat(if number == 5 { INLINE_BYTES_MAX } else { usize::try_from(number).unwrap() });
        let mut commit = fact(&stream, &format!("{number} {long}"));
        commit.at_ms = i64::try_from(number).unwrap();
        commit.projections = vec![Projection::Put {
            table: "last".into(),
            key: stream,
            value: format!("{number} {long}").into_bytes(),
            sort_ms: commit.at_ms,
        }];
        commit.sends = vec![envelope(number, "user/ada")];
        commit.acks = number.checked_sub(2).map(envelope_id).into_iter().collect();
        commit.blobs = vec![format!("blob {number}").into_bytes()];
        let id = format!("t/{number}");
        commit.timers = vec![TimerOp::Set { id, due_at_ms: 9_000, payload: json!({}) }];
        let (id, to) = (format!("p/{number}"), "cli:1".to_owned());
        commit.outbox = vec![OutboxOp::Put { id, to, body: json!({ "text": "hi" }) }];
        journal.commit(commit).await.unwrap();
    }
    let state = refold(&journal, "s/0", 4).unwrap();
    let snapshot = Projection::Snapshot { stream: "s/0".into(), stream_seq: 4, version: VERSION, state };
    let beside = Append { event: "kept".into(), ..append("s/9", "x") };
    let commit = Commit { appends: vec![beside], projections: vec![snapshot], ..Commit::default() };
    journal.commit(commit).await.unwrap();
    journal.close().await.unwrap();
    dir
}

/// All that anybody can read of a journal.
#[derive(Debug, PartialEq)]
struct Seen {
    entries: Vec<Entry>,
    blobs: Vec<Option<Vec<u8>>>,
    rows: Vec<ListedRow>,
    mail: Vec<String>,
    rest: String,
    state: Option<Snapshot>,
}

fn seen(journal: &Journal) -> Result<Seen, JournalError> {
    let blob = |number: u64| journal.blob(&max_team_core::hash::Hash::of(format!("blob {number}")));
    let fold = |_: &mut Vec<Value>, _: &Entry| Ok::<_, JournalError>(());
    let folded: FoldedState<Vec<Value>> = journal.fold("s/0", VERSION, Vec::new(), fold)?;
    Ok(Seen {
        entries: journal.read_all(0, usize::MAX)?,
        blobs: (0..12).map(blob).collect::<Result<_, _>>()?,
        rows: journal.list("last", 99, None)?,
        mail: journal.pending_mail("user/ada")?.iter().map(|envelope| envelope.id.to_string()).collect(),
        rest: format!(
            "{:?} {:?} {folded:?}",
            journal.due_timers(10_000, 99)?,
            journal.outbox(max_team_journal::PartState::Pending, "", 99)?
        ),
        state: journal.snapshot("s/0")?,
    })
}

/// Whether a damaged journal is told apart, or reads as the whole one does.
fn is_found_or_harmless(dir: &Path, whole: &Seen) -> bool {
    let Ok(journal) = Journal::open(dir, Options::default()) else { return true };
    let Ok(report) = journal.verify() else { return true };
    if !report.is_sound() {
        return true;
    }
    let Ok(drifted) = journal
        .drift(project, |stream, upto, version| (version == VERSION).then(|| refold(&journal, stream, upto)).flatten())
    else {
        return true;
    };
    !drifted.is_empty() || seen(&journal).is_ok_and(|seen| seen == *whole)
}

fn flipped(file: &[u8], bit: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = file.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(dir.path().join("journal.db"), bytes).unwrap();
    dir
}

fn made() -> (Vec<u8>, Seen) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let dir = runtime.block_on(written());
    let journal = Journal::open(dir.path(), Options::default()).unwrap();
    let refolded = |stream: &str, upto, _| refold(&journal, stream, upto);
    assert!(journal.drift(project, refolded).unwrap().is_empty(), "{:?}", journal.drift(project, refolded));
    let whole = seen(&journal).unwrap();
    assert_eq!((whole.blobs.len(), whole.mail.len(), whole.rows.len()), (12, 2, 3));
    drop(journal);
    (fs::read(dir.path().join("journal.db")).unwrap(), whole)
}

/// Some bits of every page, spread so that all kinds of cells are met.
#[test]
fn a_flipped_bit_on_any_page_is_found_or_harmless() {
    let (file, whole) = made();
    let pages = file.len() / PAGE;
    assert!(pages > 10, "{pages} pages");
    for page in 0..pages {
        for step in 0..24 {
            let bit = page * PAGE * 8 + (step * 1_399 + page * 31) % (PAGE * 8);
            assert!(is_found_or_harmless(flipped(&file, bit).path(), &whole), "bit {bit} of page {page}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_flipped_bit_anywhere_is_found_or_harmless(place in any::<prop::sample::Index>()) {
        static MADE: std::sync::LazyLock<(Vec<u8>, Seen)> = std::sync::LazyLock::new(made);
        let (file, whole) = &*MADE;
        let bit = place.index(file.len() * 8);
        prop_assert!(is_found_or_harmless(flipped(file, bit).path(), whole), "bit {bit}");
    }
}
