//! Whatever is committed, the engines say the same: the same answers, the same log, the same rows.

use max_team_journal::{Commit, Expect, Journal, OutboxOp, PartState, Projection, TimerOp};
use proptest::prelude::*;
use serde_json::json;

use crate::make::{envelope, envelope_id, fact, on_disk};

fn streams() -> impl Strategy<Value = String> {
    (0..3_u8).prop_map(|number| format!("s/{number}"))
}

fn timer() -> impl Strategy<Value = TimerOp> {
    (0..3_u8, 0..4_u8, 0..50_i64).prop_map(|(which, id, due_at_ms)| {
        let id = format!("{}/{id}", id % 2);
        match which {
            0 => TimerOp::Set { id, due_at_ms, payload: json!(due_at_ms) },
            1 => TimerOp::Cancel { id },
            _ => TimerOp::Fire { id },
        }
    })
}

fn part() -> impl Strategy<Value = OutboxOp> {
    (0..6_u8, 0..3_u8).prop_map(|(which, id)| {
        let to = format!("tg:{id}");
        let id = format!("p{id}");
        match which {
            0 => OutboxOp::Put { id, to, body: json!({}) },
            1 => OutboxOp::Sending { id },
            2 => OutboxOp::Sent { id, native: "n".into() },
            3 => OutboxOp::Unknown { id },
            4 => OutboxOp::Retry { id },
            _ => OutboxOp::Dead { id, reason: "r".into() },
        }
    })
}

fn row() -> impl Strategy<Value = Projection> {
    (0..4_u8, 0..4_u8, 0..4_i64).prop_map(|(which, key, sort_ms)| match which {
        3 => Projection::Raise { table: "t".into(), key: (3 - key).to_string(), value: vec![key] },
        0 | 1 => Projection::Put { table: "t".into(), key: key.to_string(), value: vec![key], sort_ms },
        _ => Projection::Delete { table: "t".into(), key: key.to_string() },
    })
}

fn commits() -> impl Strategy<Value = Commit> {
    let some = |count| 0..count;
    (
        prop::collection::vec((streams(), 0..4_u64), some(2)),
        prop::collection::vec((streams(), 0..6_000_usize), some(3)),
        prop::collection::vec(0..8_u64, some(3)),
        prop::collection::vec(0..8_u64, some(2)),
        prop::collection::vec(timer(), some(3)),
        prop::collection::vec(part(), some(3)),
        prop::collection::vec(row(), some(3)),
    )
        .prop_map(|(expect, facts, sends, acks, timers, outbox, projections)| Commit {
            expect: expect.into_iter().map(|(stream, at)| (stream, Expect::At(at))).collect(),
            appends: facts.iter().flat_map(|(stream, size)| fact(stream, &"x".repeat(*size)).appends).collect(),
            sends: sends.into_iter().map(|number| envelope(number, &format!("user/{}", number % 2))).collect(),
            acks: acks.into_iter().map(envelope_id).collect(),
            timers,
            outbox,
            projections,
            at_ms: 7,
            actor: "test".into(),
            ..Commit::default()
        })
}

/// Everything that readers can see.
fn seen(journal: &Journal) -> String {
    let states = [PartState::Pending, PartState::Sending, PartState::Sent, PartState::Unknown, PartState::Dead];
    format!(
        "{:#?}",
        (
            journal.read_all(0, 9_999).unwrap(),
            ["user/0", "user/1"].map(|to| journal.pending_mail(to).unwrap()),
            states.map(|state| journal.outbox(state, "", 99).unwrap()),
            (journal.due_timers(25, 99).unwrap(), journal.next_timer(25).unwrap()),
            journal.list("t", 99, None).unwrap(),
        )
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn engines_agree(commits in prop::collection::vec(commits(), 1..25)) {
        let (_dir, sqlite) = on_disk();
        let memory = Journal::memory();
        for commit in commits {
            let answers = (sqlite.commit_blocking(commit.clone()), memory.commit_blocking(commit));
            prop_assert_eq!(answers.0, answers.1);
        }
        prop_assert_eq!(seen(&sqlite), seen(&memory));
        prop_assert_eq!(sqlite.verify().unwrap(), memory.verify().unwrap());
        prop_assert_eq!(sqlite.verify().unwrap().faults, vec![]);

        // Rebuilt, all but the caller's own projections is as it was.
        let before = seen(&sqlite);
        let rows = sqlite.list("t", 99, None).unwrap();
        let project = |entry: &max_team_journal::Entry| -> Vec<Projection> {
            let put = |item: &max_team_journal::ListedRow| Projection::Put {
                table: "t".into(), key: item.key.clone(), value: item.value.clone(), sort_ms: item.sort_ms,
            };
            rows.iter().filter(|_| entry.seq == 1).map(put).collect()
        };
        if sqlite.last_seq().unwrap() > 0 {
            sqlite.rebuild(project).unwrap();
            memory.rebuild(project).unwrap();
            prop_assert_eq!(seen(&sqlite), before);
            prop_assert_eq!(seen(&sqlite), seen(&memory));
        }
    }
}
