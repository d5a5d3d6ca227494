//! Rows that somebody changed behind the log's back are named, and made again.

use max_team_journal::{Commit, Drift, DriftKind, Entry, Journal, Options, Projection};
use rusqlite::Connection;

use crate::make::{envelope, fact, on_disk};

fn row(entry: &Entry) -> Vec<Projection> {
    if entry.event != "said" {
        return Vec::new();
    }
    let value = entry.payload.clone().unwrap_or_default();
    vec![Projection::Put {
        table: "facts".into(),
        key: format!("{} {}", entry.stream, entry.stream_seq),
        value,
        sort_ms: 0,
    }]
}

#[tokio::test]
async fn every_row_that_differs_is_named() {
    let (dir, journal) = on_disk();
    for text in ["1", "2", "3"] {
        let mut commit = Commit { sends: vec![envelope(text.parse().unwrap(), "user/ada")], ..fact("a", text) };
        let payload = commit.appends[0].payload.clone();
        let key = format!("a {text}");
        commit.projections = vec![Projection::Put { table: "facts".into(), key, value: payload, sort_ms: 0 }];
        journal.commit(commit).await.unwrap();
    }
    let compare = |journal: &Journal| journal.drift(row, |_, _, _| None).unwrap();
    assert!(compare(&journal).is_empty(), "{:?}", compare(&journal));
    let forger = Connection::open(dir.path().join("journal.db")).unwrap();
    forger
        .execute_batch(
            "UPDATE projection SET value = x'7b7d' WHERE key = 'a 1'; DELETE FROM projection WHERE key = 'a 2';
             INSERT INTO projection VALUES ('facts', 'b 1', 0, x'7b7d'); DELETE FROM mail WHERE seq = 2;
             INSERT INTO timer VALUES ('t/1', 5, 1)",
        )
        .unwrap();
    let drift = |table: &str, key: &str, how| Drift { table: table.to_owned(), key: key.to_owned(), how };
    let mail = format!("{:032x}", 1);
    let want = [
        drift("facts", "a 1", DriftKind::Differs),
        drift("facts", "a 2", DriftKind::Missing),
        drift("facts", "b 1", DriftKind::Extra),
        drift("mail", &mail, DriftKind::Missing),
        drift("timer", "t/1", DriftKind::Extra),
    ];
    let found = compare(&journal);
    assert_eq!((found.rows.as_slice(), found.count()), (&want[..], 5));
    // Looking has changed nothing; making them again has.
    assert_eq!(compare(&journal), found);
    journal.rebuild(row).unwrap();
    assert!(compare(&journal).is_empty());
    journal.close().await.unwrap();
    assert!(Journal::open(dir.path(), Options::default()).unwrap().verify().unwrap().is_sound());
}
