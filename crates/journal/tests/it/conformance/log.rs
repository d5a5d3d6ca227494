//! Every engine: the log itself, its payloads, its seals.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use max_team_core::hash::Hash;
use max_team_core::limits::{INLINE_BYTES_MAX, SEAL_EVERY};
use max_team_journal::{
    Append, Commit, Durability, Entry, Erase, Expect, FoldedState, Journal, JournalError, OutboxOp, PartState,
    Projection, ScanItem, TimerOp,
};
use serde_json::{Value, json};

use crate::make::{append, envelope, fact, fact_at, texts};

pub(super) async fn entries_are_chained_and_read_back(journal: Journal) {
    let commit = Commit { appends: vec![append("a", "1"), append("b", "2"), append("a", "3")], ..fact("a", "0") };
    let committed = journal.commit(commit).await.unwrap();
    assert_eq!((committed.first_seq, committed.last_seq), (1, 3));
    assert_eq!((committed.head("a"), committed.head("b"), committed.head("c")), (Some(2), Some(1), None));

    let all = journal.read_all(0, 100).unwrap();
    assert_eq!(texts(&all), ["1", "2", "3"]);
    let a = journal.read("a", 0, 100).unwrap();
    assert_eq!(texts(&a), ["1", "3"]);
    assert_eq!(texts(&journal.read("a", 1, 100).unwrap()), ["3"]);
    assert_eq!(journal.read("a", 0, 1).unwrap(), a[..1]);
    assert_eq!(texts(&journal.read_all(1, 1).unwrap()), ["2"]);
    assert_eq!(journal.read("nobody", 0, 100).unwrap(), []);

    let payload = br#"{"text":"3"}"#.to_vec();
    let expected = Entry {
        seq: 3,
        stream: "a".to_owned(),
        stream_seq: 2,
        at_ms: 1_000,
        actor: "user/ada".to_owned(),
        cause: Some("test".to_owned()),
        event: "said".into(),
        version: 1,
        payload_hash: Hash::of(&payload),
        prev_hash: a[0].hash,
        hash: a[1].digest(),
        payload: Some(payload),
    };
    assert_eq!(a[1], expected);
    assert_eq!((journal.head("a").unwrap(), journal.head("x").unwrap(), journal.last_seq().unwrap()), (2, 0, 3));
}

pub(super) async fn entries_are_found_by_their_event(journal: Journal) {
    let heard = |stream: &str, text: &str| Append { event: "heard".into(), ..append(stream, text) };
    let appends = vec![append("a", "1"), heard("a", "2"), append("b", "3"), heard("b", "4"), heard("a", "5")];
    journal.commit(Commit { appends, ..Commit::default() }).await.unwrap();
    assert_eq!(texts(&journal.read_event("heard", 0, 9).unwrap()), ["2", "4", "5"]);
    assert_eq!(texts(&journal.read_event("heard", 2, 1).unwrap()), ["4"]);
    assert_eq!(journal.read_event("seen", 0, 9).unwrap(), []);
}

pub(super) async fn a_lost_race_is_a_conflict_and_leaves_nothing(journal: Journal) {
    journal.commit(fact_at("a", 0, "first")).await.unwrap();
    let late = Commit {
        blobs: vec![b"blob".to_vec()],
        sends: vec![envelope(1, "user/ada")],
        timers: vec![TimerOp::Set { id: "t".into(), due_at_ms: 1, payload: Value::Null }],
        outbox: vec![OutboxOp::Put { id: "p".into(), to: "tg:1".into(), body: Value::Null }],
        projections: vec![Projection::Put { table: "t".into(), key: "k".into(), value: b"1".to_vec(), sort_ms: 1 }],
        ..fact_at("a", 0, "late")
    };
    let refused = journal.commit(late).await.unwrap_err();
    assert_eq!(refused, JournalError::Conflict { stream: "a".into(), expected: 0, found: 1 });
    assert_eq!(texts(&journal.read_all(0, 9).unwrap()), ["first"]);
    assert_eq!(journal.blob(&Hash::of("blob")).unwrap(), None);
    assert_eq!(journal.pending_mail("user/ada").unwrap(), []);
    assert_eq!(journal.due_timers(9, 9).unwrap(), []);
    assert_eq!(journal.outbox(PartState::Pending, "", 9).unwrap(), []);
    assert_eq!(journal.get("t", "k").unwrap(), None);
    journal.commit(fact_at("a", 1, "second")).await.unwrap();
}

pub(super) async fn streams_of_one_commit_move_together(journal: Journal) {
    journal.commit(fact("b", "old")).await.unwrap();
    let expect = vec![("a".to_owned(), Expect::At(0)), ("b".to_owned(), Expect::At(0)), ("c".to_owned(), Expect::Any)];
    let commit = Commit { expect, appends: vec![append("a", "x"), append("b", "y")], ..Commit::default() };
    assert!(
        matches!(journal.commit(commit.clone()).await, Err(JournalError::Conflict { stream, .. }) if stream == "b")
    );
    assert_eq!(journal.head("a").unwrap(), 0);
    let expect = vec![("a".to_owned(), Expect::At(0)), ("b".to_owned(), Expect::At(1))];
    let committed = journal.commit(Commit { expect, ..commit }).await.unwrap();
    assert_eq!(committed.heads, [("a".to_owned(), 1), ("b".to_owned(), 2)]);
}

pub(super) async fn large_payloads_are_stored_once(journal: Journal) {
    let big = "x".repeat(INLINE_BYTES_MAX + 1);
    journal.commit(fact("a", &big)).await.unwrap();
    journal.commit(fact("b", &big)).await.unwrap();
    journal.commit(fact("a", "small")).await.unwrap();
    assert_eq!(texts(&journal.read("a", 0, 9).unwrap()), [big.as_str(), "small"]);
    let entries = journal.read_all(0, 9).unwrap();
    assert_eq!(entries[0].payload_hash, entries[1].payload_hash);
    assert_eq!(journal.blob(&entries[0].payload_hash).unwrap(), entries[0].payload);
    assert_eq!(journal.blob(&entries[2].payload_hash).unwrap(), None);
}

pub(super) async fn blobs_are_kept_by_their_hash(journal: Journal) {
    let blobs = vec![b"tools".to_vec(), b"tools".to_vec(), Vec::new()];
    journal.commit(Commit { blobs, ..Commit::default() }).await.unwrap();
    assert_eq!(journal.blob(&Hash::of("tools")).unwrap(), Some(b"tools".to_vec()));
    assert_eq!(journal.blob(&Hash::of("")).unwrap(), Some(Vec::new()));
    assert_eq!(journal.blob(&Hash::of("else")).unwrap(), None);
    assert_eq!(journal.last_seq().unwrap(), 0);
}

pub(super) async fn folds_start_from_a_snapshot_of_their_version(journal: Journal) {
    for text in ["a", "b", "c"] {
        journal.commit(fact("s", text)).await.unwrap();
    }
    let fold = |version: u32| -> (FoldedState<Vec<String>>, usize) {
        let mut applied = 0;
        let folded = journal.fold("s", version, Vec::new(), |state, entry| {
            applied += 1;
            state.extend(texts(std::slice::from_ref(entry)));
            Ok::<_, JournalError>(())
        });
        (folded.unwrap(), applied)
    };
    let whole = FoldedState { state: vec!["a".to_owned(), "b".into(), "c".into()], stream_seq: 3 };
    assert_eq!(fold(1), (whole.clone(), 3));

    let snapshot = |version, state: &[u8]| Projection::Snapshot {
        stream: "s".into(),
        stream_seq: 2,
        version,
        state: state.to_vec(),
    };
    for (version, state, applied) in [(1, &br#"["a","b"]"#[..], 1), (2, br#"["a","b"]"#, 3), (1, b"not json", 3)] {
        journal.commit(Commit { projections: vec![snapshot(version, state)], ..Commit::default() }).await.unwrap();
        assert_eq!(fold(1), (whole.clone(), applied));
    }
    assert_eq!(journal.snapshot("s").unwrap().unwrap().stream_seq, 2);
    assert_eq!(journal.snapshot("t").unwrap(), None);
    assert_eq!(fold(9).0, whole);
}

pub(super) async fn seals_come_by_themselves_and_on_close(journal: Journal) {
    let facts = |count: u64| Commit { appends: (0..count).map(|_| append("a", "x")).collect(), ..Commit::default() };
    journal.commit(facts(SEAL_EVERY - 1)).await.unwrap();
    assert_eq!(journal.head("seal").unwrap(), 0);
    journal.commit(facts(3)).await.unwrap();
    assert_eq!(journal.head("seal").unwrap(), 1);
    journal.commit(facts(1)).await.unwrap();
    let report = journal.verify().unwrap();
    assert_eq!((report.entries, report.streams, report.seals, report.faults), (SEAL_EVERY + 4, 2, 1, vec![]));
    journal.close().await.unwrap();

    let journal = journal.reopen().unwrap();
    assert_eq!(journal.head("seal").unwrap(), 2);
    let seals: Vec<BTreeMap<String, Value>> = journal
        .read("seal", 0, 9)
        .unwrap()
        .iter()
        .map(|seal| serde_json::from_slice(seal.payload.as_ref().unwrap()).unwrap())
        .collect();
    assert_eq!((&seals[0]["from_seq"], &seals[0]["to_seq"]), (&json!(1), &json!(SEAL_EVERY + 2)));
    assert_eq!((&seals[1]["from_seq"], &seals[1]["count"]), (&json!(SEAL_EVERY + 3), &json!(2)));
    // Nothing new, no new seal.
    journal.commit(Commit::default()).await.unwrap();
    journal.close().await.unwrap();
    let journal = journal.reopen().unwrap();
    assert_eq!((journal.head("seal").unwrap(), journal.verify().unwrap().faults), (2, vec![]));
}

pub(super) async fn erased_payloads_leave_the_chain_whole(journal: Journal) {
    let big = "x".repeat(INLINE_BYTES_MAX);
    for text in ["keep", "secret", &big, "secret"] {
        journal.commit(fact("a", text)).await.unwrap();
    }
    journal.commit(Commit { sends: vec![envelope(1, "user/ada")], ..Commit::default() }).await.unwrap();
    let entries = journal.read_all(0, 9).unwrap();
    let payloads = vec![entries[1].payload_hash, entries[2].payload_hash, entries[4].payload_hash, Hash::of("none")];
    let erase =
        Erase { payloads, actor: "user/ada".into(), reason: "asked to".into(), at_ms: 2_000, ..Erase::default() };
    assert_eq!(journal.erase(erase.clone()).await, Ok(4));
    assert_eq!(journal.erase(erase).await, Ok(0));

    let after = journal.read_all(0, 9).unwrap();
    let kept: Vec<bool> = after.iter().map(|entry| entry.payload.is_some()).collect();
    assert_eq!(kept, [true, false, false, false, false, true, true]);
    assert_eq!(
        entries.iter().map(|entry| entry.hash).collect::<Vec<_>>()[..],
        after.iter().map(|entry| entry.hash).collect::<Vec<_>>()[..5]
    );
    assert_eq!(journal.blob(&entries[2].payload_hash).unwrap(), None);
    assert_eq!(journal.pending_mail("user/ada").unwrap(), []);
    let report = journal.verify().unwrap();
    assert_eq!((report.erased, report.faults), (4, vec![]));
    let line: Value = serde_json::from_slice(&after[1].to_line(&[]).unwrap()).unwrap();
    assert_eq!(line["payload"], Value::Null);
    // A seal cannot be erased away.
    journal.close().await.unwrap();
    let journal = journal.reopen().unwrap();
    let seal = journal.read("seal", 0, 1).unwrap().remove(0).payload_hash;
    assert_eq!(journal.erase(Erase { payloads: vec![seal], ..Erase::default() }).await, Ok(0));
    assert_eq!(journal.verify().unwrap().faults, []);
}

/// Somebody writes the same words elsewhere while it is decided what goes: theirs are either seen, or come afterwards.
pub(super) async fn entries_written_during_an_erase_are_kept(journal: Journal) {
    journal.commit(fact("mine", "the same words")).await.unwrap();
    let (here, other) = (journal.clone(), journal.reopen().unwrap());
    let writer = std::sync::Arc::new(std::sync::Mutex::new(None));
    let started = std::sync::Arc::clone(&writer);
    let decide = move || {
        let payloads = here.payloads_of(|_, stream| stream == "mine")?;
        let other = other.clone();
        let write = move || other.commit_blocking(fact("theirs", "the same words"));
        started.lock().unwrap().get_or_insert_with(|| std::thread::spawn(write));
        Ok::<_, JournalError>(Erase { payloads: payloads.into_iter().collect(), ..Erase::default() })
    };
    journal.erase_as(decide).await.unwrap();
    writer.lock().unwrap().take().unwrap().join().unwrap().unwrap();
    assert_eq!(texts(&journal.read("theirs", 0, 9).unwrap()), ["the same words"]);
    assert_eq!(journal.verify().unwrap().faults, []);
}

pub(super) async fn streams_of_the_journal_are_its_own(journal: Journal) {
    for stream in ["seal", "erased", "mail/user/ada", "timer/max", "outbox/tg:1"] {
        let refused = journal.commit(fact(stream, "forged")).await;
        assert_eq!(refused, Err(JournalError::Reserved { stream: stream.to_owned() }));
    }
    journal.commit(fact("mailbox", "fine")).await.unwrap();
    journal.commit(fact("sealed", "fine")).await.unwrap();
}

pub(super) async fn payloads_have_a_bound(journal: Journal) {
    let huge = vec![b' '; (64 << 20) + 1];
    let max = huge.len() - 1;
    let refused = journal.commit(Commit { blobs: vec![huge], ..fact("a", "x") }).await;
    assert_eq!(refused, Err(JournalError::TooBig { bytes: max + 1, max }));
    assert_eq!(journal.last_seq().unwrap(), 0);
}

pub(super) async fn the_log_is_exported_as_lines(journal: Journal) {
    let pretty = Append { payload: b"{\n  \"text\": \"a\\nb\"\r\n}".to_vec(), ..append("a", "") };
    let odd = Append { payload: b"not json".to_vec(), cause: None, ..append("a", "") };
    let commit = Commit { appends: vec![pretty, odd], at_ms: 1_709_210_096_789, ..Commit::default() };
    journal.commit(commit).await.unwrap();
    let mut lines: Vec<Value> = Vec::new();
    let each = |walked: ScanItem<'_>| {
        let ScanItem::Entry(entry) = walked else { panic!("{walked:?}") };
        let line = entry.to_line(&[]).unwrap();
        assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
        lines.push(serde_json::from_slice(&line).unwrap());
        ControlFlow::Continue(())
    };
    journal.export(1, each).unwrap();
    let mut entries = Vec::new();
    let first = |walked: ScanItem<'_>| {
        let ScanItem::Entry(entry) = walked else { panic!("{walked:?}") };
        entries.push(entry.clone());
        ControlFlow::Break(())
    };
    journal.export(2, first).unwrap();
    assert_eq!((lines.len(), entries.len()), (2, 1));
    assert_eq!(lines[0]["payload"], json!({ "text": "a\nb" }));
    let expected = json!({
        "seq": 2, "stream": "a", "stream_seq": 2, "at": "2024-02-29T12:34:56.789Z", "actor": "user/ada", "cause": null,
        "event": "said", "version": 1, "payload": "not json", "payload_hash": Hash::of("not json"),
        "prev_hash": lines[0]["hash"], "hash": entries[0].hash,
    });
    assert_eq!(lines[1], expected);
}

pub(super) async fn nothing_is_a_commit_too(journal: Journal) {
    let nothing = Commit { strength: Durability::Full, ..Commit::default() };
    assert_eq!(journal.commit(nothing.clone()).await.unwrap().last_seq, 0);
    journal.commit(fact("a", "x")).await.unwrap();
    assert_eq!(journal.commit(nothing).await.unwrap().heads, []);
    assert_eq!(journal.last_seq().unwrap(), 1);
    assert_eq!(journal.quick_check().unwrap(), [""; 0]);
}
