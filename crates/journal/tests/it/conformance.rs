//! What every engine must do: one list, run for each.

use std::collections::BTreeMap;

use max_team_core::hash::Hash;
use max_team_core::limits::{INLINE_BYTES_MAX, SEAL_EVERY};
use max_team_journal::{
    Append, Commit, Entry, Erase, Expect, Fence, Folded, Journal, JournalError, OutboxOp, PartState, Projection,
    Strength, TimerOp,
};
use serde_json::{Value, json};

use crate::make::{append, fact, fact_at, ids, letter, letter_id, on_disk, texts, worker};

macro_rules! suite {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() {
                let (_dir, journal) = super::on_disk();
                super::$name(journal).await;
            })+
        }
        mod memory {
            $(#[tokio::test] async fn $name() {
                super::$name(super::Journal::memory()).await;
            })+
        }
    };
}

suite!(
    entries_are_chained_and_read_back,
    a_lost_race_is_a_conflict_and_leaves_nothing,
    streams_of_one_commit_move_together,
    large_payloads_are_stored_once,
    blobs_are_kept_by_their_hash,
    letters_wait_until_they_are_taken,
    a_letter_is_sent_once,
    unknown_letters_cannot_be_taken,
    timers_fire_once,
    timers_come_in_order,
    parts_leave_the_outbox_by_legal_moves_only,
    projections_are_listed_newest_first,
    folds_start_from_a_snapshot_of_their_version,
    claims_are_exclusive_and_fenced,
    a_dead_owner_is_succeeded,
    rows_are_rebuilt_from_the_log_alone,
    seals_come_by_themselves_and_on_close,
    erased_payloads_leave_the_chain_whole,
    streams_of_the_journal_are_its_own,
    payloads_have_a_bound,
    a_watch_catches_up_and_follows,
    watches_see_other_handles,
    a_closed_journal_refuses_and_can_be_opened_again,
    the_log_is_exported_as_lines,
    racing_writers_all_get_in_once,
    threads_may_wait_for_a_commit,
    nothing_is_a_commit_too,
);

async fn entries_are_chained_and_read_back(journal: Journal) {
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

async fn a_lost_race_is_a_conflict_and_leaves_nothing(journal: Journal) {
    journal.commit(fact_at("a", 0, "first")).await.unwrap();
    let late = Commit {
        blobs: vec![b"blob".to_vec()],
        sends: vec![letter(1, "user/ada")],
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
    assert_eq!(journal.outbox(PartState::Pending, 9).unwrap(), []);
    assert_eq!(journal.get("t", "k").unwrap(), None);
    journal.commit(fact_at("a", 1, "second")).await.unwrap();
}

async fn streams_of_one_commit_move_together(journal: Journal) {
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

async fn large_payloads_are_stored_once(journal: Journal) {
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

async fn blobs_are_kept_by_their_hash(journal: Journal) {
    let blobs = vec![b"tools".to_vec(), b"tools".to_vec(), Vec::new()];
    journal.commit(Commit { blobs, ..Commit::default() }).await.unwrap();
    assert_eq!(journal.blob(&Hash::of("tools")).unwrap(), Some(b"tools".to_vec()));
    assert_eq!(journal.blob(&Hash::of("")).unwrap(), Some(Vec::new()));
    assert_eq!(journal.blob(&Hash::of("else")).unwrap(), None);
    assert_eq!(journal.last_seq().unwrap(), 0);
}

async fn letters_wait_until_they_are_taken(journal: Journal) {
    let sends = vec![letter(3, "user/ada"), letter(1, "user/bob"), letter(2, "user/ada")];
    let committed = journal.commit(Commit { sends, ..Commit::default() }).await.unwrap();
    assert_eq!(committed.heads, [("mail/user/ada".to_owned(), 2), ("mail/user/bob".to_owned(), 1)]);
    assert_eq!(journal.pending_mail("user/ada").unwrap(), [letter(3, "user/ada"), letter(2, "user/ada")]);

    let take = Commit { acks: vec![letter_id(3), letter_id(1)], ..fact("agent/max", "took them") };
    journal.commit(take.clone()).await.unwrap();
    assert_eq!(ids(&journal.pending_mail("user/ada").unwrap()), [letter_id(2)]);
    assert_eq!(journal.pending_mail("user/bob").unwrap(), []);
    let taken = journal.read("mail/user/ada", 2, 9).unwrap();
    assert_eq!((taken.len(), &*taken[0].event, &*taken[0].actor), (1, "acked", "test"));

    // Taking again what is taken changes nothing, and says so by writing nothing.
    let before = journal.head("mail/user/ada").unwrap();
    journal.commit(take).await.unwrap();
    assert_eq!(journal.head("mail/user/ada").unwrap(), before);
}

async fn a_letter_is_sent_once(journal: Journal) {
    let send = Commit { sends: vec![letter(1, "user/ada"), letter(1, "user/ada")], ..Commit::default() };
    journal.commit(send.clone()).await.unwrap();
    assert_eq!(journal.commit(send.clone()).await.unwrap().last_seq, 0);
    assert_eq!(journal.last_seq().unwrap(), 1);
    assert_eq!((journal.has_mail(letter_id(1)).unwrap(), journal.has_mail(letter_id(2)).unwrap()), (true, false));
    journal.commit(Commit { acks: vec![letter_id(1)], ..Commit::default() }).await.unwrap();
    journal.commit(send).await.unwrap();
    assert_eq!(journal.pending_mail("user/ada").unwrap(), []);
    // Sent and taken at once.
    let both = Commit { sends: vec![letter(2, "user/ada")], acks: vec![letter_id(2)], ..Commit::default() };
    journal.commit(both).await.unwrap();
    assert_eq!(journal.pending_mail("user/ada").unwrap(), []);
}

async fn unknown_letters_cannot_be_taken(journal: Journal) {
    let refused = journal.commit(Commit { acks: vec![letter_id(9)], ..fact("a", "x") }).await.unwrap_err();
    assert_eq!(refused, JournalError::UnknownMail { id: letter_id(9) });
    assert_eq!(journal.last_seq().unwrap(), 0);
}

fn set(id: &str, due_at_ms: i64) -> TimerOp {
    TimerOp::Set { id: id.to_owned(), due_at_ms, payload: json!({ "for": id }) }
}

fn timers(ops: Vec<TimerOp>) -> Commit {
    Commit { timers: ops, ..Commit::default() }
}

async fn timers_fire_once(journal: Journal) {
    journal.commit(timers(vec![set("max/sleep", 10), set("leo/retry", 20)])).await.unwrap();
    assert_eq!(journal.head("timer/max").unwrap(), 1);
    let fire = timers(vec![TimerOp::Fire { id: "max/sleep".into() }]);
    journal.commit(Commit { timers: fire.timers.clone(), ..fact("agent/max", "woke") }).await.unwrap();
    let again = Commit { timers: fire.timers, ..fact("agent/max", "woke twice") };
    assert_eq!(journal.commit(again).await.unwrap_err(), JournalError::Gone { timer: "max/sleep".into() });
    assert_eq!(texts(&journal.read("agent/max", 0, 9).unwrap()), ["woke"]);
    // Cancelling what is gone is no error and writes nothing.
    let cancel = timers(vec![TimerOp::Cancel { id: "max/sleep".into() }, TimerOp::Cancel { id: "leo/retry".into() }]);
    journal.commit(cancel).await.unwrap();
    assert_eq!((journal.head("timer/max").unwrap(), journal.head("timer/leo").unwrap()), (2, 2));
    assert_eq!(journal.due_timers(i64::MAX, 9).unwrap(), []);
    // Set and fired at once; set again afterwards.
    journal.commit(timers(vec![set("a", 1), TimerOp::Fire { id: "a".into() }, set("a", 2)])).await.unwrap();
    assert_eq!(journal.due_timers(5, 9).unwrap()[0].due_at_ms, 2);
}

async fn timers_come_in_order(journal: Journal) {
    journal.commit(timers(vec![set("c", 30), set("b", 10), set("a", 10), set("d", 5)])).await.unwrap();
    journal.commit(timers(vec![set("d", 40)])).await.unwrap();
    let due = |now, limit| -> Vec<String> {
        journal.due_timers(now, limit).unwrap().into_iter().map(|timer| timer.id).collect()
    };
    assert_eq!(due(9, 9), [""; 0]);
    assert_eq!(due(10, 9), ["a", "b"]);
    assert_eq!(due(10, 1), ["a"]);
    assert_eq!(due(100, 9), ["a", "b", "c", "d"]);
    let next = |now| journal.next_timer(now).unwrap().map(|timer| (timer.id, timer.due_at_ms, timer.payload));
    assert_eq!(next(0), Some(("a".into(), 10, json!({ "for": "a" }))));
    assert_eq!(next(10), Some(("c".into(), 30, json!({ "for": "c" }))));
    assert_eq!(next(40), None);
}

async fn parts_leave_the_outbox_by_legal_moves_only(journal: Journal) {
    let run = async |op: OutboxOp| journal.commit(Commit { outbox: vec![op], ..Commit::default() }).await;
    let put = |id: &str| OutboxOp::Put { id: id.into(), to: "tg:7".into(), body: json!({ "text": id }) };
    let sending = |id: &str| OutboxOp::Sending { id: id.into() };
    let found = |state| -> Vec<String> { journal.outbox(state, 9).unwrap().into_iter().map(|part| part.id).collect() };

    for id in ["b", "a", "c", "a"] {
        run(put(id)).await.unwrap();
    }
    assert_eq!(found(PartState::Pending), ["b", "a", "c"]);
    run(sending("a")).await.unwrap();
    let twice = run(sending("a")).await.unwrap_err();
    assert_eq!(twice, JournalError::IllegalMove { part: "a".into(), from: PartState::Sending, to: PartState::Sending });
    run(OutboxOp::Sent { id: "a".into(), native: "77".into() }).await.unwrap();
    let sent = journal.outbox(PartState::Sent, 9).unwrap();
    assert_eq!(
        (sent[0].native.as_deref(), sent[0].to.as_str(), &sent[0].body),
        (Some("77"), "tg:7", &json!({ "text": "a" }))
    );
    assert!(run(OutboxOp::Dead { id: "a".into(), reason: "no".into() }).await.is_err());

    run(sending("b")).await.unwrap();
    run(OutboxOp::Unknown { id: "b".into() }).await.unwrap();
    run(OutboxOp::Retry { id: "b".into() }).await.unwrap();
    run(OutboxOp::Dead { id: "c".into(), reason: "chat is gone".into() }).await.unwrap();
    assert_eq!((found(PartState::Pending), found(PartState::Dead)), (vec!["b".to_owned()], vec!["c".to_owned()]));
    let missing = run(sending("nobody")).await.unwrap_err();
    assert_eq!(missing, JournalError::UnknownPart { part: "nobody".into() });
    assert_eq!(journal.head("outbox/tg:7").unwrap(), 9);

    // A part may go all the way in one commit; and a put behind it changes nothing.
    let outbox = vec![put("d"), sending("d"), put("d"), OutboxOp::Sent { id: "d".into(), native: "9".into() }];
    journal.commit(Commit { outbox, ..Commit::default() }).await.unwrap();
    assert_eq!(found(PartState::Sent), ["a", "d"]);
}

fn put(table: &'static str, key: &str, sort_ms: i64) -> Projection {
    Projection::Put { table: table.into(), key: key.to_owned(), value: format!("\"{key}@{sort_ms}\"").into(), sort_ms }
}

async fn projections_are_listed_newest_first(journal: Journal) {
    let rows = vec![put("s", "a", 1), put("s", "b", 3), put("s", "c", 2), put("s", "d", 2), put("other", "z", 9)];
    journal.commit(Commit { projections: rows, ..Commit::default() }).await.unwrap();
    let changes = vec![put("s", "a", 4), Projection::Delete { table: "s".into(), key: "b".into() }];
    journal.commit(Commit { projections: changes, ..Commit::default() }).await.unwrap();
    let page = journal.list("s", 2, None).unwrap();
    assert_eq!(page.iter().map(|item| item.key.as_str()).collect::<Vec<_>>(), ["a", "d"]);
    let rest = journal.list("s", 9, Some(&page[1].cursor())).unwrap();
    assert_eq!(rest.iter().map(|item| item.key.as_str()).collect::<Vec<_>>(), ["c"]);
    assert_eq!(journal.get("s", "a").unwrap(), Some(br#""a@4""#.to_vec()));
    assert_eq!(journal.get("s", "b").unwrap(), None);
    assert_eq!(journal.list("none", 9, None).unwrap(), []);
}

async fn folds_start_from_a_snapshot_of_their_version(journal: Journal) {
    for text in ["a", "b", "c"] {
        journal.commit(fact("s", text)).await.unwrap();
    }
    let fold = |version: u32| -> (Folded<Vec<String>>, usize) {
        let mut applied = 0;
        let folded = journal.fold("s", version, Vec::new(), |state, entry| {
            applied += 1;
            state.extend(texts(std::slice::from_ref(entry)));
            Ok::<_, JournalError>(())
        });
        (folded.unwrap(), applied)
    };
    let whole = Folded { state: vec!["a".to_owned(), "b".into(), "c".into()], stream_seq: 3 };
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

fn fenced(resource: &str, number: u64, epoch: u64) -> Commit {
    let fence = Fence { resource: resource.to_owned(), worker: worker(number).id, epoch };
    Commit { fence: Some(fence), ..fact("a", "mine") }
}

async fn claims_are_exclusive_and_fenced(journal: Journal) {
    let one = journal.worker(worker(1)).unwrap();
    let two = journal.worker(worker(2)).unwrap();
    assert_eq!(journal.claim("plan/x", &one).await, Ok(1));
    assert_eq!(journal.claim("plan/x", &one).await, Ok(1));
    let owned = JournalError::Owned { resource: "plan/x".into(), by: Box::new(worker(1)) };
    assert_eq!(journal.claim("plan/x", &two).await, Err(owned));
    assert_eq!(journal.claim("plan/y", &two).await, Ok(1));

    journal.commit(fenced("plan/x", 1, 1)).await.unwrap();
    let owner = Some(worker(1).id);
    for (number, epoch) in [(1, 2), (2, 1)] {
        let refused = journal.commit(fenced("plan/x", number, epoch)).await;
        assert_eq!(refused, Err(JournalError::Fenced { resource: "plan/x".into(), owner }));
    }
    journal.release("plan/x", &two, 1).await.unwrap();
    journal.commit(fenced("plan/x", 1, 1)).await.unwrap();
    journal.release("plan/x", &one, 1).await.unwrap();
    let refused = journal.commit(fenced("plan/x", 1, 1)).await;
    assert_eq!(refused, Err(JournalError::Fenced { resource: "plan/x".into(), owner: None }));
    assert_eq!(journal.claim("plan/x", &two).await, Ok(2));
}

async fn a_dead_owner_is_succeeded(journal: Journal) {
    let elsewhere = journal.reopen().unwrap();
    let one = journal.worker(worker(1)).unwrap();
    assert_eq!(journal.claim("plan/x", &one).await, Ok(1));
    let two = elsewhere.worker(worker(2)).unwrap();
    assert!(elsewhere.claim("plan/x", &two).await.is_err());
    drop(one);
    assert_eq!(elsewhere.claim("plan/x", &two).await, Ok(2));
    let zombie = journal.commit(fenced("plan/x", 1, 1)).await;
    assert_eq!(zombie, Err(JournalError::Fenced { resource: "plan/x".into(), owner: Some(worker(2).id) }));
    elsewhere.commit(fenced("plan/x", 2, 2)).await.unwrap();
}

/// A pure projection: the last text of each stream.
fn project(entry: &Entry) -> Vec<Projection> {
    let text = entry.payload.clone().filter(|_| entry.event == "said");
    let row = |value| Projection::Put {
        table: "last".into(),
        key: entry.stream.clone(),
        value,
        sort_ms: i64::try_from(entry.seq).unwrap(),
    };
    text.map(row).into_iter().collect()
}

/// Everything that can be rebuilt, as readers see it.
fn rows(journal: &Journal) -> impl PartialEq + std::fmt::Debug + use<> {
    let states = [PartState::Pending, PartState::Sending, PartState::Sent, PartState::Unknown, PartState::Dead];
    let parts: Vec<_> = states.iter().map(|state| journal.outbox(*state, 99).unwrap()).collect();
    let mail: Vec<_> = ["user/ada", "user/bob"].iter().map(|to| journal.pending_mail(to).unwrap()).collect();
    (mail, journal.due_timers(i64::MAX, 99).unwrap(), parts, journal.list("last", 99, None).unwrap())
}

async fn rows_are_rebuilt_from_the_log_alone(journal: Journal) {
    for number in 1..=20_u64 {
        let stream = format!("s/{}", number % 3);
        let id = format!("p{}", number % 7);
        let mut commit = fact(&stream, &format!("{number}"));
        commit.sends = vec![letter(number, if number % 2 == 0 { "user/ada" } else { "user/bob" })];
        commit.acks = if number % 3 == 0 { vec![letter_id(number - 1)] } else { Vec::new() };
        commit.timers = vec![set(&format!("t/{}", number % 5), i64::try_from(number).unwrap())];
        if number % 4 == 0 {
            commit.timers.push(TimerOp::Fire { id: format!("t/{}", number % 5) });
        }
        commit.outbox = vec![OutboxOp::Put { id: id.clone(), to: "tg:1".into(), body: json!(number) }];
        if number <= 5 {
            commit.outbox.push(OutboxOp::Sending { id: id.clone() });
        }
        if number == 5 {
            commit.outbox.push(OutboxOp::Sent { id, native: "n".into() });
        }
        let seq = journal.last_seq().unwrap() + 1;
        let value = commit.appends[0].payload.clone();
        let sort_ms = i64::try_from(seq).unwrap();
        commit.projections = vec![Projection::Put { table: "last".into(), key: stream, value, sort_ms }];
        journal.commit(commit).await.unwrap();
    }
    let stray = Projection::Put { table: "last".into(), key: "stray".into(), value: vec![b'0'], sort_ms: 0 };
    let before = rows(&journal);
    journal.commit(Commit { projections: vec![stray], ..Commit::default() }).await.unwrap();
    assert_ne!(rows(&journal), before);
    journal.rebuild(project).unwrap();
    assert_eq!(rows(&journal), before);
    // What was sent is still known, so sending it again still changes nothing.
    let again = journal.commit(Commit { sends: vec![letter(1, "user/bob")], ..Commit::default() }).await.unwrap();
    assert_eq!(again.last_seq, 0);
}

async fn seals_come_by_themselves_and_on_close(journal: Journal) {
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

async fn erased_payloads_leave_the_chain_whole(journal: Journal) {
    let big = "x".repeat(INLINE_BYTES_MAX);
    for text in ["keep", "secret", &big, "secret"] {
        journal.commit(fact("a", text)).await.unwrap();
    }
    journal.commit(Commit { sends: vec![letter(1, "user/ada")], ..Commit::default() }).await.unwrap();
    let entries = journal.read_all(0, 9).unwrap();
    let payloads = vec![entries[1].payload_hash, entries[2].payload_hash, entries[4].payload_hash, Hash::of("none")];
    let erase = Erase { payloads, actor: "user/ada".into(), reason: "asked to".into(), at_ms: 2_000 };
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
    let line: Value = serde_json::from_slice(&after[1].to_line().unwrap()).unwrap();
    assert_eq!(line["payload"], Value::Null);
    // A seal cannot be erased away.
    journal.close().await.unwrap();
    let journal = journal.reopen().unwrap();
    let seal = journal.read("seal", 0, 1).unwrap().remove(0).payload_hash;
    assert_eq!(journal.erase(Erase { payloads: vec![seal], ..Erase::default() }).await, Ok(0));
    assert_eq!(journal.verify().unwrap().faults, []);
}

async fn streams_of_the_journal_are_its_own(journal: Journal) {
    for stream in ["seal", "erased", "mail/user/ada", "timer/max", "outbox/tg:1"] {
        let refused = journal.commit(fact(stream, "forged")).await;
        assert_eq!(refused, Err(JournalError::Reserved { stream: stream.to_owned() }));
    }
    journal.commit(fact("mailbox", "fine")).await.unwrap();
    journal.commit(fact("sealed", "fine")).await.unwrap();
}

async fn payloads_have_a_bound(journal: Journal) {
    let huge = vec![b' '; (64 << 20) + 1];
    let max = huge.len() - 1;
    let refused = journal.commit(Commit { blobs: vec![huge], ..fact("a", "x") }).await;
    assert_eq!(refused, Err(JournalError::TooBig { bytes: max + 1, max }));
    assert_eq!(journal.last_seq().unwrap(), 0);
}

async fn a_watch_catches_up_and_follows(journal: Journal) {
    let appends = |from: u64| -> Vec<Append> { (from..from + 100).map(|n| append("a", &n.to_string())).collect() };
    journal.commit(Commit { appends: appends(0), ..Commit::default() }).await.unwrap();
    let mut watch = journal.watch(1).unwrap();
    for seq in 2..=100 {
        assert_eq!(watch.next().await.unwrap().seq, seq);
    }
    // Nothing to see yet: the future waits, and dropping it loses nothing.
    tokio::select! {
        biased;
        seen = watch.next() => panic!("saw {seen:?}"),
        () = std::future::ready(()) => {}
    }
    let follower = tokio::spawn(async move {
        let mut seen = Vec::new();
        while let Ok(entry) = watch.next().await {
            seen.push(entry.seq);
            if entry.seq == 300 {
                break;
            }
        }
        seen
    });
    journal.commit(Commit { appends: appends(100), ..Commit::default() }).await.unwrap();
    journal.commit(Commit { appends: appends(200), ..Commit::default() }).await.unwrap();
    assert_eq!(follower.await.unwrap(), (101..=300).collect::<Vec<_>>());

    let mut watch = journal.watch(300).unwrap();
    let ended = tokio::spawn(async move {
        // The seal, and then the end.
        (watch.next().await.map(|entry| entry.stream), watch.next().await)
    });
    tokio::task::yield_now().await;
    journal.close().await.unwrap();
    let (seal, end) = ended.await.unwrap();
    assert!(seal == Ok("seal".to_owned()) && end == Err(JournalError::Closed) || seal == Err(JournalError::Closed));
}

async fn watches_see_other_handles(journal: Journal) {
    let other = journal.reopen().unwrap();
    let mut watch = journal.watch(0).unwrap();
    let mut back = other.watch(0).unwrap();
    for round in 1..=50 {
        other.commit(fact("a", &round.to_string())).await.unwrap();
        assert_eq!(watch.next().await.unwrap().seq, 2 * round - 1);
        journal.commit(fact("b", &round.to_string())).await.unwrap();
        assert_eq!(watch.next().await.unwrap().seq, 2 * round);
        assert_eq!(back.next().await.unwrap().seq, 2 * round - 1);
        assert_eq!(back.next().await.unwrap().seq, 2 * round);
    }
}

async fn a_closed_journal_refuses_and_can_be_opened_again(journal: Journal) {
    journal.commit(fact("a", "1")).await.unwrap();
    journal.close().await.unwrap();
    assert_eq!(journal.commit(fact("a", "2")).await, Err(JournalError::Closed));
    assert_eq!(journal.read("a", 0, 9), Err(JournalError::Closed));
    assert_eq!(journal.clone().close().await, Err(JournalError::Closed));
    let journal = journal.reopen().unwrap();
    journal.commit(fact_at("a", 1, "2")).await.unwrap();
    assert_eq!(texts(&journal.read("a", 0, 9).unwrap()), ["1", "2"]);
}

async fn the_log_is_exported_as_lines(journal: Journal) {
    let pretty = Append { payload: b"{\n  \"text\": \"a\\nb\"\r\n}".to_vec(), ..append("a", "") };
    let odd = Append { payload: b"not json".to_vec(), cause: None, ..append("a", "") };
    let commit = Commit { appends: vec![pretty, odd], at_ms: 1_709_210_096_789, ..Commit::default() };
    journal.commit(commit).await.unwrap();
    let mut out = Vec::new();
    assert_eq!(journal.export_lines(1, &mut out), Ok(2));
    let lines: Vec<Value> = out
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let mut entries = Vec::new();
    journal.export(2, |entry| entries.push(entry.clone())).unwrap();
    assert_eq!((lines.len(), entries.len()), (2, 1));
    assert_eq!(lines[0]["payload"], json!({ "text": "a\nb" }));
    let expected = json!({
        "seq": 2, "stream": "a", "stream_seq": 2, "at": "2024-02-29T12:34:56.789Z", "actor": "user/ada", "cause": null,
        "event": "said", "version": 1, "payload": "not json", "payload_hash": Hash::of("not json"),
        "prev_hash": lines[0]["hash"], "hash": entries[0].hash,
    });
    assert_eq!(lines[1], expected);
}

async fn racing_writers_all_get_in_once(journal: Journal) {
    const WRITERS: u64 = 8;
    const FACTS: u64 = 25;
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            // Half of them through another handle, as another process would.
            let journal = if writer % 2 == 0 { journal.clone() } else { journal.reopen().unwrap() };
            tokio::spawn(async move {
                let mut conflicts = 0;
                for fact in 0..FACTS {
                    loop {
                        let at = journal.head("shared").unwrap();
                        let strength = if fact % 2 == 0 { Strength::Full } else { Strength::Normal };
                        let commit = Commit { strength, ..fact_at("shared", at, &format!("{writer}/{fact}")) };
                        match journal.commit(commit).await {
                            Ok(_) => break,
                            Err(JournalError::Conflict { .. }) => conflicts += 1,
                            Err(other) => panic!("{other}"),
                        }
                    }
                }
                conflicts
            })
        })
        .collect();
    let mut conflicts = 0;
    for task in tasks {
        conflicts += task.await.unwrap();
    }
    let mut seen = texts(&journal.read("shared", 0, 1_000).unwrap());
    assert_eq!(seen.len() as u64, WRITERS * FACTS, "{conflicts} conflicts");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len() as u64, WRITERS * FACTS);
    assert_eq!(journal.verify().unwrap().faults, []);
}

async fn threads_may_wait_for_a_commit(journal: Journal) {
    journal.commit_blocking(fact_at("a", 0, "inside a runtime")).unwrap();
    let clone = journal.clone();
    let outside = std::thread::spawn(move || clone.commit_blocking(fact_at("a", 1, "outside")));
    outside.join().unwrap().unwrap();
    assert_eq!(journal.head("a").unwrap(), 2);
}

async fn nothing_is_a_commit_too(journal: Journal) {
    let nothing = Commit { strength: Strength::Full, ..Commit::default() };
    assert_eq!(journal.commit(nothing.clone()).await.unwrap().last_seq, 0);
    journal.commit(fact("a", "x")).await.unwrap();
    assert_eq!(journal.commit(nothing).await.unwrap().heads, []);
    assert_eq!(journal.last_seq().unwrap(), 1);
    assert_eq!(journal.quick_check().unwrap(), [""; 0]);
}
