//! Killed at any instant, nothing that was acknowledged is lost.

use std::collections::BTreeMap;

use max_team_journal::{Journal, Options};

use crate::child::Child;
use crate::make::{fact, on_disk, texts};

#[test]
fn every_acknowledged_commit_survives_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged: BTreeMap<String, u64> = BTreeMap::new();
    let mut take = |line: String| {
        let (writer, at) = line.split_once(' ').unwrap();
        acknowledged.insert(format!("writer/{writer}"), at.parse().unwrap());
    };
    for acks in [1, 2, 3, 10, 50, 200, 500] {
        let mut child = Child::start("writer", dir.path());
        for _ in 0..acks {
            take(child.heard().unwrap());
        }
        child.kill().into_iter().for_each(&mut take);
    }
    let journal = Journal::open(dir.path(), Options::default()).unwrap();
    assert_eq!(journal.verify().unwrap().faults, []);
    assert_eq!(journal.quick_check().unwrap(), [""; 0]);
    assert_eq!(acknowledged.len(), 4);
    for (stream, at) in acknowledged {
        let stored = texts(&journal.read(&stream, 0, usize::MAX).unwrap());
        assert!(stored.len() as u64 >= at, "{stream}: {at} acknowledged, {} stored", stored.len());
        assert!(stored.iter().enumerate().all(|(place, text)| *text == place.to_string()), "{stream}");
    }
}

#[tokio::test]
async fn dropping_the_last_handle_loses_nothing_that_was_queued() {
    let (_dir, journal) = on_disk();
    let mut watch = journal.reopen().unwrap().watch(0).unwrap();
    for number in 0..100 {
        let commit = journal.commit(fact("a", &number.to_string()));
        // Polled once: handed over, and then forgotten.
        tokio::select! { biased; _ = commit => {}, () = std::future::ready(()) => {} }
    }
    drop(journal);
    for seq in 1..=100 {
        assert_eq!(watch.next().await.unwrap().seq, seq);
    }
}
