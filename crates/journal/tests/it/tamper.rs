//! Whoever edits the log behind our back is found out.

use std::path::Path;

use max_team_core::limits::INLINE_BYTES_MAX;
use max_team_journal::FaultKind::{self, Edited, Missing, PayloadMissing, Reordered, SealBroken};
use max_team_journal::{Commit, ExternalSeal, Journal, Options, Report};
use rusqlite::Connection;

use crate::make::{append, fact, on_disk};

/// Two streams by turns, one large payload, sealed on close: entries 1 to 7 and the seal.
async fn written() -> tempfile::TempDir {
    let (dir, journal) = on_disk();
    for text in ["1", "2", "3"] {
        let appends = vec![append("a", text), append("b", text)];
        journal.commit(Commit { appends, ..fact("a", text) }).await.unwrap();
    }
    journal.commit(fact("b", &"x".repeat(INLINE_BYTES_MAX))).await.unwrap();
    journal.close().await.unwrap();
    dir
}

fn verify(dir: &Path) -> Report {
    Journal::open(dir, Options::default()).unwrap().verify().unwrap()
}

async fn found_after(sql: &str) -> Vec<FaultKind> {
    let dir = written().await;
    let forger = Connection::open(dir.path().join("journal.db")).unwrap();
    forger.execute_batch(sql).unwrap();
    forger.close().unwrap();
    let mut kinds: Vec<FaultKind> = verify(dir.path()).faults.into_iter().map(|fault| fault.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[tokio::test]
async fn an_honest_log_has_no_faults() {
    let dir = written().await;
    let report = verify(dir.path());
    let digest = report.digest;
    assert_eq!(report, Report { entries: 8, last_seq: 8, streams: 3, seals: 1, digest, ..Report::default() });
}

#[tokio::test]
async fn every_edited_column_is_found() {
    for (edit, also) in [
        ("seq = 100 WHERE seq = 3", &[Missing][..]),
        ("stream = 1 WHERE seq = 7", &[]),
        ("stream = 99 WHERE seq = 7", &[]),
        ("stream_seq = 9 WHERE seq = 3", &[Missing]),
        ("at_ms = at_ms + 1 WHERE seq = 3", &[]),
        ("version = 2 WHERE seq = 3", &[]),
        ("event = 'sung' WHERE seq = 3", &[]),
        ("actor = 'user/eve' WHERE seq = 3", &[]),
        ("cause = NULL WHERE seq = 3", &[]),
        ("cause = '' WHERE seq = 3", &[]),
        ("payload_hash = zeroblob(32) WHERE seq = 3", &[]),
        ("payload_hash = zeroblob(3) WHERE seq = 3", &[]),
        ("prev_hash = zeroblob(32) WHERE seq = 3", &[]),
        ("hash = zeroblob(32) WHERE seq = 3", &[SealBroken]),
        ("payload = CAST('{\"text\":\"forged\"}' AS BLOB) WHERE seq = 3", &[]),
        ("payload = x'' WHERE seq = 3", &[]),
    ] {
        let found = found_after(&format!("UPDATE entry SET {edit}")).await;
        assert!(found.contains(&Edited), "{edit}: {found:?}");
        assert!(also.iter().all(|kind| found.contains(kind)), "{edit}: {found:?}");
    }
}

#[tokio::test]
async fn missing_and_moved_entries_are_found() {
    for (what, sql, expected) in [
        ("an entry in the middle", "DELETE FROM entry WHERE seq = 3", &[Missing, SealBroken][..]),
        ("the tail of a stream", "DELETE FROM entry WHERE stream = 1 AND seq > 3", &[Missing, SealBroken]),
        (
            "a tail whose head was set back",
            "UPDATE stream SET stream_seq = 2, hash = (SELECT hash FROM entry WHERE seq = 3) WHERE id = 1;
             DELETE FROM entry WHERE stream = 1 AND stream_seq > 2",
            &[Missing, SealBroken],
        ),
        ("a whole stream", "DELETE FROM entry WHERE stream = 1; DELETE FROM stream WHERE id = 1", &[Missing, SealBroken]),
        (
            "a whole stream, closing the gaps",
            "DELETE FROM entry WHERE stream = 1; DELETE FROM stream WHERE id = 1;
             UPDATE entry SET seq = seq - 100; UPDATE entry SET seq = 100 + seq - (SELECT count(*) FROM entry e WHERE e.seq > entry.seq)",
            &[Edited, SealBroken],
        ),
        ("the last seal", "DELETE FROM entry WHERE seq = 8", &[Missing]),
        ("a stream's row", "DELETE FROM stream WHERE id = 1", &[Edited]),
        ("a renamed stream", "UPDATE stream SET name = 'c' WHERE id = 1", &[Edited]),
        ("a head", "UPDATE stream SET hash = zeroblob(32) WHERE id = 1", &[Edited]),
        ("a head that ran ahead", "UPDATE stream SET stream_seq = 9 WHERE id = 1", &[Missing]),
        ("a large payload", "DELETE FROM blob", &[PayloadMissing]),
        ("a large payload's bytes", "UPDATE blob SET bytes = x'00'", &[Edited]),
        ("a small payload", "UPDATE entry SET payload = NULL WHERE seq = 3", &[PayloadMissing]),
        (
            "two entries",
            "UPDATE entry SET seq = -3 WHERE seq = 3; UPDATE entry SET seq = 3 WHERE seq = 5; UPDATE entry SET seq = 5 WHERE seq = -3",
            &[Edited, Missing, Reordered, SealBroken],
        ),
        (
            "two contents",
            "CREATE TEMP TABLE t AS SELECT payload, payload_hash FROM entry WHERE seq = 3;
             UPDATE entry SET (payload, payload_hash) = (SELECT payload, payload_hash FROM entry WHERE seq = 5) WHERE seq = 3;
             UPDATE entry SET (payload, payload_hash) = (SELECT payload, payload_hash FROM t) WHERE seq = 5",
            &[Edited],
        ),
    ] {
        let found = found_after(sql).await;
        assert!(expected.iter().all(|kind| found.contains(kind)), "{what}: {found:?}");
    }
}

/// A forger who also makes the entry fit its own hash is betrayed by the next one.
#[tokio::test]
async fn a_rehashed_entry_does_not_link() {
    let dir = written().await;
    let journal = Journal::open(dir.path(), Options::default()).unwrap();
    let mut forged = journal.read_all(2, 1).unwrap().remove(0);
    forged.actor = "user/eve".to_owned();
    let forger = Connection::open(dir.path().join("journal.db")).unwrap();
    forger
        .execute("UPDATE entry SET actor = ?1, hash = ?2 WHERE seq = 3", (&forged.actor, &forged.digest().0))
        .unwrap();
    let faults = journal.verify().unwrap().faults;
    assert_eq!(faults[0].kind, Edited);
    assert!(faults[0].detail.to_string().contains("does not follow"), "{faults:?}");
    assert!(faults.iter().any(|fault| fault.kind == SealBroken));
}

/// SQLite's own check finds none of these.
#[tokio::test]
async fn a_changed_schema_is_found() {
    for (sql, kind, told) in [
        ("DROP INDEX entry_stream", Missing, "the index `entry_stream` was removed from the database"),
        ("DROP TABLE timer", Missing, "the table `timer` was removed from the database"),
        ("DROP TABLE entry", Missing, "the table `entry` was removed from the database"),
        (
            "CREATE TRIGGER late AFTER INSERT ON mail BEGIN DELETE FROM mail; END",
            Edited,
            "the trigger `late` was added to the database",
        ),
        ("CREATE VIEW names AS SELECT name FROM stream", Edited, "the view `names` was added to the database"),
        ("CREATE INDEX extra ON entry (actor)", Edited, "the index `extra` was added to the database"),
        ("ALTER TABLE timer ADD COLUMN extra TEXT", Edited, "the table `timer` was changed in the database"),
        ("DROP INDEX timer_due; CREATE INDEX timer_due ON timer (seq)", Edited, "the index `timer_due` was changed"),
    ] {
        let dir = written().await;
        Connection::open(dir.path().join("journal.db")).unwrap().execute_batch(sql).unwrap();
        let faults = Journal::open_damaged(dir.path()).unwrap().verify().unwrap().faults;
        let found = faults.iter().find(|fault| fault.detail.to_string().starts_with(told));
        assert_eq!(found.map(|fault| fault.kind), Some(kind), "{sql}: {faults:?}");
    }
    let dir = written().await;
    Connection::open(dir.path().join("journal.db")).unwrap().execute_batch("ANALYZE").unwrap();
    assert_eq!(verify(dir.path()).faults, []);
}

/// A log that was written anew from its beginning, with seals of its own, is another one.
#[tokio::test]
async fn a_seal_kept_elsewhere_finds_a_log_that_was_replaced_or_cut_off() {
    let dir = written().await;
    let report = verify(dir.path());
    let seal = ExternalSeal { to_seq: report.last_seq, digest: report.digest };
    let against = |dir: &Path| Journal::open(dir, Options::default()).unwrap().verify_against(Some(seal)).unwrap();
    assert_eq!(against(dir.path()).faults, []);

    // What is written later changes nothing about what is sealed.
    let journal = Journal::open(dir.path(), Options::default()).unwrap();
    journal.commit(fact("a", "later")).await.unwrap();
    journal.close().await.unwrap();
    assert_eq!(against(dir.path()).faults, []);

    let (other, journal) = on_disk();
    journal.commit(fact("a", "another")).await.unwrap();
    assert!(against(other.path()).faults[0].detail.to_string().contains("the log ends with entry 1"));
    for _ in 0..10 {
        journal.commit(fact("a", "another")).await.unwrap();
    }
    journal.close().await.unwrap();
    assert_eq!(verify(other.path()).faults, []);
    let faults = against(other.path()).faults;
    assert_eq!(faults[0].kind, SealBroken, "{faults:?}");
    assert!(faults[0].detail.to_string().contains("entries 1 to 8 are not those"), "{faults:?}");
}

/// A thousand faults are listed; the rest are counted.
#[tokio::test]
async fn a_report_is_bounded() {
    let (dir, journal) = on_disk();
    let appends = (0..1_500).map(|number| append("a", &number.to_string())).collect();
    journal.commit(Commit { appends, ..Commit::default() }).await.unwrap();
    let forger = Connection::open(dir.path().join("journal.db")).unwrap();
    forger.execute_batch("UPDATE entry SET actor = 'user/eve'").unwrap();
    let report = journal.verify().unwrap();
    assert_eq!((report.faults.len(), report.more_faults), (1_000, 500));
}
