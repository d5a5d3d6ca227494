//! A copy elsewhere, and back again.

use std::fs;
use std::path::Path;

use max_team_journal::{Entry, Journal, JournalError, Options};
use rusqlite::Connection;

use crate::child::Child;
use crate::make::{fact, on_disk, texts, worker};

async fn written(texts: &[&str]) -> (tempfile::TempDir, Journal) {
    let (dir, journal) = on_disk();
    for text in texts {
        journal.commit(fact("a", text)).await.unwrap();
    }
    (dir, journal)
}

fn entries(journal: &Journal) -> Vec<Entry> {
    journal.read_all(0, usize::MAX).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_backup_is_one_file_with_everything_in_it() {
    let (_dir, journal) = written(&["1", "2"]).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("copy.db");
    let report = journal.backup(&file).unwrap();
    assert_eq!((report.entries, report.is_sound()), (2, true));
    journal.commit(fact("a", "later")).await.unwrap();
    assert_eq!(names(elsewhere.path()), ["copy.db"]);
    let copy = Journal::look(&file).unwrap();
    assert_eq!(texts(&entries(&copy)), ["1", "2"]);
    assert!(matches!(copy.commit(fact("a", "x")).await, Err(JournalError::Closed)), "it is only looked at");
    // Nothing is overwritten, and nothing is left over.
    let before = fs::read(&file).unwrap();
    assert_eq!(journal.backup(&file), Err(JournalError::Exists { path: file.clone() }));
    assert_eq!((fs::read(&file).unwrap() == before, names(elsewhere.path())), (true, vec!["copy.db".to_owned()]));
    journal.close().await.unwrap();
}

/// Somebody writes all the time; the copy is one state, and made.
#[tokio::test]
async fn a_backup_is_made_while_others_write() {
    let (dir, journal) = written(&["1"]).await;
    let mut other = Child::start("writer", dir.path());
    for number in 0..5 {
        other.heard().unwrap();
        let file = dir.path().join(format!("copy-{number}.db"));
        let report = journal.backup(&file).unwrap();
        assert!(report.is_sound() && report.entries > 0, "{report:?}");
    }
}

/// A copy of what is broken is no backup: it is told, and not kept.
#[tokio::test]
async fn a_damaged_journal_is_not_backed_up_in_silence() {
    let (dir, journal) = written(&["1", "2", "3"]).await;
    let forger = Connection::open(dir.path().join("journal.db")).unwrap();
    forger.execute_batch("UPDATE entry SET actor = 'user/eve' WHERE seq = 2").unwrap();
    let file = dir.path().join("copy.db");
    let report = journal.backup(&file).unwrap();
    assert_eq!((report.faults[0].seq, file.exists()), (2, false), "{report:?}");
}

#[tokio::test]
async fn a_restored_journal_goes_on_and_the_old_one_is_kept() {
    let (dir, journal) = written(&["1", "2"]).await;
    let (backup, kept) = (dir.path().join("copy.db"), dir.path().join("kept.db"));
    journal.backup(&backup).unwrap();
    journal.commit(fact("a", "wrong")).await.unwrap();
    // Whoever has it open is in the way, also one who only looks.
    let refused = Journal::restore(dir.path(), &backup, &kept).await.unwrap_err();
    assert!(matches!(refused, JournalError::InUse { .. }), "{refused}");
    journal.close().await.unwrap();
    drop(journal);
    let report = Journal::restore(dir.path(), &backup, &kept).await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(texts(&entries(&Journal::look(&kept).unwrap())[..3]), ["1", "2", "wrong"]);
    let journal = Journal::open(dir.path(), Options::default()).unwrap();
    assert_eq!(texts(&journal.read("a", 0, 9).unwrap()), ["1", "2"]);
    journal.commit(fact("a", "right")).await.unwrap();
    assert!(journal.verify().unwrap().is_sound());
    journal.close().await.unwrap();
    assert!(!names(dir.path()).iter().any(|name| name.starts_with("restoring")), "{:?}", names(dir.path()));
}

#[tokio::test]
async fn a_restore_names_the_blocking_worker_and_refuses_a_broken_backup() {
    let (dir, journal) = written(&["1", "2"]).await;
    let (backup, kept) = (dir.path().join("copy.db"), dir.path().join("kept.db"));
    journal.backup(&backup).unwrap();
    let at_work = journal.worker(worker(7)).unwrap();
    journal.close().await.unwrap();
    drop(journal);
    let refused = Journal::restore(dir.path(), &backup, &kept).await.unwrap_err().to_string();
    assert!(refused.contains("chat 7") && refused.contains(&std::process::id().to_string()), "{refused}");
    drop(at_work);
    let mut reader = Child::start("reader", dir.path());
    reader.heard().unwrap();
    let refused = Journal::restore(dir.path(), &backup, &kept).await.unwrap_err().to_string();
    assert!(refused.contains("process "), "{refused}");
    drop(reader);
    let forger = Connection::open(&backup).unwrap();
    forger.execute_batch("UPDATE entry SET actor = 'user/eve' WHERE seq = 2").unwrap();
    drop(forger);
    let report = Journal::restore(dir.path(), &backup, &kept).await.unwrap();
    assert!(!report.is_sound() && !kept.exists(), "{report:?}");
    let journal = Journal::open(dir.path(), Options::default()).unwrap();
    assert_eq!(texts(&journal.read("a", 0, 9).unwrap()), ["1", "2"]);
    assert!(matches!(Journal::look(&dir.path().join("none")), Err(JournalError::Absent { .. })));
}

/// What is no journal any more is moved aside as it is.
#[tokio::test]
async fn a_journal_that_cannot_be_read_is_replaced_too() {
    let (dir, journal) = written(&["1", "2"]).await;
    let (backup, kept) = (dir.path().join("copy.db"), dir.path().join("kept.db"));
    journal.backup(&backup).unwrap();
    journal.close().await.unwrap();
    drop(journal);
    fs::write(dir.path().join("journal.db"), "not a database, and long enough to look like one".repeat(99)).unwrap();
    assert!(Journal::restore(dir.path(), &backup, &kept).await.unwrap().is_sound());
    assert!(fs::read(&kept).unwrap().starts_with(b"not a database"));
    assert_eq!(texts(&Journal::open(dir.path(), Options::default()).unwrap().read("a", 0, 9).unwrap()), ["1", "2"]);
}

/// What a killed program leaves: the file, and beside it the log with its last entries.
async fn killed(texts: &[&str]) -> tempfile::TempDir {
    let (dir, journal) = written(texts).await;
    let left = tempfile::tempdir().unwrap();
    for name in ["journal.db", "journal.db-wal"] {
        fs::copy(dir.path().join(name), left.path().join(name)).unwrap();
    }
    assert!(fs::metadata(left.path().join("journal.db-wal")).unwrap().len() > 0);
    journal.close().await.unwrap();
    left
}

/// The log of a journal that somebody has deleted is none of the new one's.
#[tokio::test]
async fn a_log_that_is_left_alone_is_not_played_into_another_journal() {
    let (elsewhere, journal) = written(&["good"]).await;
    let backup = elsewhere.path().join("copy.db");
    journal.backup(&backup).unwrap();
    journal.close().await.unwrap();
    let dir = killed(&["1", "2", "3"]).await;
    fs::remove_file(dir.path().join("journal.db")).unwrap();
    fs::write(dir.path().join("journal.db-shm"), "old").unwrap();
    let (kept, log) = (dir.path().join("kept.db"), fs::read(dir.path().join("journal.db-wal")).unwrap());
    assert!(Journal::restore(dir.path(), &backup, &kept).await.unwrap().is_sound());
    assert_eq!(names(dir.path()), ["journal.db", "kept.db-wal"]);
    assert_eq!(fs::read(dir.path().join("kept.db-wal")).unwrap(), log, "nothing is thrown away");
    let journal = Journal::open(dir.path(), Options::default()).unwrap();
    assert_eq!(texts(&journal.read("a", 0, 9).unwrap()), ["good"]);
    assert!(journal.verify().unwrap().is_sound());
    journal.close().await.unwrap();
}

/// What was copied by hand from a killed program comes with the entries that are only in its log.
#[tokio::test]
async fn a_copy_comes_with_its_log() {
    let copied = killed(&["1", "2", "3"]).await;
    let from = copied.path().join("journal.db");
    let before = names(copied.path());
    let (dir, journal) = written(&["other"]).await;
    journal.close().await.unwrap();
    drop(journal);
    let kept = dir.path().join("kept.db");
    assert!(Journal::restore(dir.path(), &from, &kept).await.unwrap().is_sound());
    let journal = Journal::open(dir.path(), Options::default()).unwrap();
    assert_eq!(texts(&journal.read("a", 0, 9).unwrap()), ["1", "2", "3"]);
    journal.close().await.unwrap();
    assert_eq!(names(copied.path()), before, "the copy stays as it is");
    assert_eq!(texts(&entries(&Journal::look(&kept).unwrap())[..1]), ["other"]);
}
