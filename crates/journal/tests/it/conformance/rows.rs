//! Every engine: mail, timers, outbox, projections, and building them again.

use max_team_journal::{Commit, Entry, Journal, JournalError, OutboxOp, PartState, Projection, TimerOp};
use serde_json::json;

use crate::make::{envelope, envelope_id, fact, ids, texts};

pub(super) async fn messages_wait_until_they_are_taken(journal: Journal) {
    let sends = vec![envelope(3, "user/ada"), envelope(1, "user/bob"), envelope(2, "user/ada")];
    let committed = journal.commit(Commit { sends, ..Commit::default() }).await.unwrap();
    assert_eq!(committed.heads, [("mail/user/ada".to_owned(), 2), ("mail/user/bob".to_owned(), 1)]);
    assert_eq!(journal.pending_mail("user/ada").unwrap(), [envelope(3, "user/ada"), envelope(2, "user/ada")]);

    let take = Commit { acks: vec![envelope_id(3), envelope_id(1)], ..fact("agent/max", "took them") };
    journal.commit(take.clone()).await.unwrap();
    assert_eq!(ids(&journal.pending_mail("user/ada").unwrap()), [envelope_id(2)]);
    assert_eq!(journal.mailboxes().unwrap(), ["user/ada"]);
    assert_eq!(journal.pending_mail("user/bob").unwrap(), []);
    let taken = journal.read("mail/user/ada", 2, 9).unwrap();
    assert_eq!((taken.len(), &*taken[0].event, &*taken[0].actor), (1, "acked", "test"));

    // Taking again what is taken changes nothing, and says so by writing nothing.
    let before = journal.head("mail/user/ada").unwrap();
    journal.commit(take).await.unwrap();
    assert_eq!(journal.head("mail/user/ada").unwrap(), before);
}

pub(super) async fn a_message_is_sent_once(journal: Journal) {
    let send = Commit { sends: vec![envelope(1, "user/ada"), envelope(1, "user/ada")], ..Commit::default() };
    journal.commit(send.clone()).await.unwrap();
    assert_eq!(journal.commit(send.clone()).await.unwrap().last_seq, 0);
    assert_eq!(journal.last_seq().unwrap(), 1);
    assert_eq!((journal.has_mail(envelope_id(1)).unwrap(), journal.has_mail(envelope_id(2)).unwrap()), (true, false));
    journal.commit(Commit { acks: vec![envelope_id(1)], ..Commit::default() }).await.unwrap();
    journal.commit(send).await.unwrap();
    assert_eq!(journal.pending_mail("user/ada").unwrap(), []);
    // Sent and taken at once.
    let both = Commit { sends: vec![envelope(2, "user/ada")], acks: vec![envelope_id(2)], ..Commit::default() };
    journal.commit(both).await.unwrap();
    assert_eq!(journal.pending_mail("user/ada").unwrap(), []);
}

pub(super) async fn unknown_messages_cannot_be_taken(journal: Journal) {
    let refused = journal.commit(Commit { acks: vec![envelope_id(9)], ..fact("a", "x") }).await.unwrap_err();
    assert_eq!(refused, JournalError::UnknownMail { id: envelope_id(9) });
    assert_eq!(journal.last_seq().unwrap(), 0);
}

fn set(id: &str, due_at_ms: i64) -> TimerOp {
    TimerOp::Set { id: id.to_owned(), due_at_ms, payload: json!({ "for": id }) }
}

fn timers(ops: Vec<TimerOp>) -> Commit {
    Commit { timers: ops, ..Commit::default() }
}

pub(super) async fn timers_fire_once(journal: Journal) {
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

pub(super) async fn timers_come_in_order(journal: Journal) {
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

pub(super) async fn parts_leave_the_outbox_by_legal_moves_only(journal: Journal) {
    let run = async |op: OutboxOp| journal.commit(Commit { outbox: vec![op], ..Commit::default() }).await;
    let put = |id: &str| OutboxOp::Put { id: id.into(), to: "tg:7".into(), body: json!({ "text": id }) };
    let sending = |id: &str| OutboxOp::Sending { id: id.into() };
    let found =
        |state| -> Vec<String> { journal.outbox(state, "", 9).unwrap().into_iter().map(|part| part.id).collect() };

    for id in ["b", "a", "c", "a"] {
        run(put(id)).await.unwrap();
    }
    assert_eq!(found(PartState::Pending), ["b", "a", "c"]);
    run(sending("a")).await.unwrap();
    let twice = run(sending("a")).await.unwrap_err();
    assert_eq!(twice, JournalError::IllegalMove { part: "a".into(), from: PartState::Sending, to: PartState::Sending });
    run(OutboxOp::Sent { id: "a".into(), native: "77".into() }).await.unwrap();
    let sent = journal.outbox(PartState::Sent, "", 9).unwrap();
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

pub(super) async fn projections_are_listed_newest_first(journal: Journal) {
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
    let parts: Vec<_> = states.iter().map(|state| journal.outbox(*state, "", 99).unwrap()).collect();
    let mail: Vec<_> = ["user/ada", "user/bob"].iter().map(|to| journal.pending_mail(to).unwrap()).collect();
    (mail, journal.due_timers(i64::MAX, 99).unwrap(), parts, journal.list("last", 99, None).unwrap())
}

pub(super) async fn rows_are_rebuilt_from_the_log_alone(journal: Journal) {
    for number in 1..=20_u64 {
        let stream = format!("s/{}", number % 3);
        let id = format!("p{}", number % 7);
        let mut commit = fact(&stream, &format!("{number}"));
        commit.sends = vec![envelope(number, if number % 2 == 0 { "user/ada" } else { "user/bob" })];
        commit.acks = if number % 3 == 0 { vec![envelope_id(number - 1)] } else { Vec::new() };
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
    let again = journal.commit(Commit { sends: vec![envelope(1, "user/bob")], ..Commit::default() }).await.unwrap();
    assert_eq!(again.last_seq, 0);
}
