//! The database grows by what is said, whatever the history.

use std::fs;
use std::path::Path;

use max_team_journal::{Append, Commit, Expect, Journal, Options, Projection};

use crate::make::{append, letter, letter_id, on_disk};

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

/// Three entries: a fact, a letter, and taking the letter before.
fn busy(number: u64, stream: String) -> Commit {
    let acks = if number == 0 { Vec::new() } else { vec![letter_id(number - 1)] };
    let row = Projection::Put {
        table: "agents".into(),
        key: stream.clone(),
        value: b"{\"state\":\"busy\"}".to_vec(),
        sort_ms: i64::try_from(number).unwrap(),
    };
    Commit { sends: vec![letter(number, "user/ada")], acks, projections: vec![row], ..small(number, stream) }
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
async fn a_small_step_costs_a_kilobyte_whatever_came_before() {
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
