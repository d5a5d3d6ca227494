//! The database grows by what is said, whatever the history.

use std::fs;
use std::path::Path;

use max_team_journal::{Append, Commit, Erase, Expect, Journal, Options, Projection};

use crate::make::{append, envelope, envelope_id, fact, on_disk};

/// Bytes beside the payload that one entry may cost.
const OVERHEAD_BYTES_MAX: u64 = 1_000;
const STEPS: u64 = 400;

fn size(dir: &Path) -> u64 {
    fs::metadata(dir.join("journal.db")).unwrap().len()
}

fn payload(step: u64) -> Vec<u8> {
    format!("{{\"text\":\"{}\"}}", format!("{step:08x}").repeat(75)).into_bytes()
}

/// Runs some steps of sixteen agents; returns by how much a step makes the file grow beyond its payload.
async fn overhead(dir: &Path, step: impl Fn(u64, String) -> Commit) -> u64 {
    let before = size(dir);
    let journal = Journal::open(dir, Options::default()).unwrap();
    let from = journal.head("agent/0").unwrap() * 16;
    for number in from..from + STEPS {
        let stream = format!("agent/{}", number % 16);
        let expect = vec![(stream.clone(), Expect::At(number / 16))];
        journal.commit(Commit { expect, ..step(number, stream) }).await.unwrap();
    }
    journal.close().await.unwrap();
    (size(dir) - before) / STEPS - payload(0).len() as u64
}

fn small(number: u64, stream: String) -> Commit {
    let append = Append { payload: payload(number), ..append(&stream, "") };
    Commit { appends: vec![append], ..Commit::default() }
}

/// Three entries: a fact, a message, and taking the message before.
fn busy(number: u64, stream: String) -> Commit {
    let acks = if number == 0 { Vec::new() } else { vec![envelope_id(number - 1)] };
    let row = Projection::Put {
        table: "agents".into(),
        key: stream.clone(),
        value: b"{\"state\":\"busy\"}".to_vec(),
        sort_ms: i64::try_from(number).unwrap(),
    };
    Commit { sends: vec![envelope(number, "user/ada")], acks, projections: vec![row], ..small(number, stream) }
}

/// Makes a history without growing the streams that are measured.
async fn live_long(dir: &Path) {
    let journal = Journal::open(dir, Options::default()).unwrap();
    for round in 0..40 {
        let appends = (0..500).map(|n| append(&format!("past/{}", n % 50), &format!("{round}/{n}"))).collect();
        journal.commit(Commit { appends, ..Commit::default() }).await.unwrap();
    }
    journal.close().await.unwrap();
}

#[tokio::test]
async fn a_small_step_costs_a_kilobyte_at_any_length_of_the_log() {
    for (name, step, entries) in [("small", small as fn(u64, String) -> Commit, 1), ("busy", busy, 3)] {
        let (dir, journal) = on_disk();
        journal.close().await.unwrap();
        let young = overhead(dir.path(), step).await;
        live_long(dir.path()).await;
        let old = overhead(dir.path(), step).await;
        assert!(young <= entries * OVERHEAD_BYTES_MAX, "{name}: {young} bytes when young");
        assert!(old <= entries * OVERHEAD_BYTES_MAX, "{name}: {old} bytes when old");
        assert!(old <= young * 3 / 2, "{name}: {young} bytes when young, {old} when old");
    }
}

/// The log beside the database is what a crash leaves to be read again at the next start.
#[tokio::test]
async fn the_write_ahead_log_is_bounded() {
    let (dir, journal) = on_disk();
    let mut largest = 0;
    for number in 0..4_000 {
        journal.commit(small(number, "agent/0".to_owned())).await.unwrap();
        largest = largest.max(fs::metadata(dir.path().join("journal.db-wal")).unwrap().len());
    }
    assert!(largest < 12 << 20, "{largest} bytes");
    assert!(size(dir.path()) > 2 << 20, "it was moved into the database");
    journal.close().await.unwrap();
    assert!(!dir.path().join("journal.db-wal").exists(), "nothing is left to be read again");
}

/// What was deleted or overwritten before an erasure is in no page of the file, and neither is what was erased.
#[tokio::test]
async fn nothing_that_was_erased_is_left_in_the_file() {
    const ROWS: u64 = 600;
    let (dir, journal) = on_disk();
    // In no order, and of many sizes, so that pages are split, joined, and too small for some.
    let key = |number: u64| format!("k{:03}", number * 379 % ROWS);
    let secret =
        |number: u64, time: u64| format!("secret-{number}-{time}-{}", "x".repeat((number * 97 % 3_000) as usize));
    let put = |number: u64, value: String| Projection::Put {
        table: "facts".into(),
        key: key(number),
        value: value.into_bytes(),
        sort_ms: i64::try_from(number).unwrap(),
    };
    for time in 0..2 {
        for number in 0..ROWS {
            let text = secret(number, time);
            let commit = Commit { projections: vec![put(number, text.clone())], ..fact("facts", &text) };
            journal.commit(commit).await.unwrap();
        }
    }
    let doomed = |number: u64| number.is_multiple_of(3);
    let delete = |number| Projection::Delete { table: "facts".into(), key: key(number) };
    let projections = (0..ROWS).filter(|number| doomed(*number)).map(delete).collect();
    journal.commit(Commit { projections, ..Commit::default() }).await.unwrap();
    let entries = journal.read("facts", 0, 2_000).unwrap();
    let gone = |index: usize| index < 600 || doomed(index as u64 % ROWS);
    let payloads = entries.iter().enumerate().filter(|(index, _)| gone(*index)).map(|(_, entry)| entry.payload_hash);
    let erase = Erase { payloads: payloads.collect(), at_ms: 2_000, ..Erase::default() };
    assert_eq!(journal.erase(erase).await, Ok(800));
    // At once, not only when everybody has gone.
    let file: Vec<u8> =
        ["journal.db", "journal.db-wal"].iter().flat_map(|name| fs::read(dir.path().join(name)).unwrap()).collect();
    let text = String::from_utf8_lossy(&file);
    let left: Vec<&str> = text.match_indices("secret-").filter_map(|(at, _)| text.get(at..at + 12)).collect();
    let is_kept = |words: &str| {
        let mut parts = words.split('-').skip(1);
        let number: u64 = parts.next().unwrap().parse().unwrap();
        !doomed(number) && parts.next() == Some("1")
    };
    let wrong: Vec<&&str> = left.iter().filter(|words| !is_kept(words)).collect();
    assert!(wrong.is_empty() && !left.is_empty(), "{wrong:?}");
    assert_eq!(journal.list("facts", 1_000, None).unwrap().len(), 400);
    journal.close().await.unwrap();
}
