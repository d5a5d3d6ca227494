//! A piece of a log in a journal of its own.

use max_team_journal::{Commit, Entry, Journal, Projection};

use crate::make::{envelope, envelope_id, fact, on_disk};

fn project(entry: &Entry) -> Vec<Projection> {
    let (table, key, value) = ("seen".into(), entry.stream.clone(), entry.payload.clone().unwrap_or_default());
    vec![Projection::Put { table, key, value, sort_ms: entry.at_ms }]
}

#[test]
fn a_replica_is_complete_by_itself() {
    let (_dir, journal) = on_disk();
    for stream in ["other", "mine", "other", "mine"] {
        journal.commit_blocking(fact(stream, stream)).unwrap();
    }
    let sends = vec![envelope(1, "agent/mine"), envelope(2, "agent/mine")];
    journal.commit_blocking(Commit { sends, ..fact("other", "x") }).unwrap();
    journal.commit_blocking(Commit { acks: vec![envelope_id(1)], ..fact("mine", &"long ".repeat(2_000)) }).unwrap();
    let mut log = journal.read("mine", 0, 99).unwrap();
    log.extend(journal.read("mail/agent/mine", 0, 99).unwrap());
    log.sort_by_key(|entry| entry.seq);
    let before = journal.last_seq().unwrap();
    let replica = Journal::replica(log.clone(), project).unwrap();
    // Numbers and chains are its own; what was said, when and by whom is not.
    let held = replica.read_all(0, 99).unwrap();
    let what = |entry: &Entry| {
        (entry.stream.clone(), entry.stream_seq, entry.at_ms, entry.actor.clone(), entry.payload.clone())
    };
    assert_eq!(held.iter().map(what).collect::<Vec<_>>(), log.iter().map(what).collect::<Vec<_>>());
    assert_eq!(held.iter().map(|entry| entry.seq).collect::<Vec<_>>(), (1..=log.len() as u64).collect::<Vec<_>>());
    assert_eq!(replica.verify().unwrap().faults, vec![]);
    assert_eq!(replica.pending_mail("agent/mine").unwrap(), journal.pending_mail("agent/mine").unwrap());
    assert_eq!(replica.get("seen", "mine").unwrap(), log.iter().rfind(|entry| entry.stream == "mine").unwrap().payload);
    replica.commit_blocking(fact("mine", "more")).unwrap();
    assert_eq!((replica.head("mine").unwrap(), journal.last_seq().unwrap()), (4, before), "nobody else hears of it");
}
