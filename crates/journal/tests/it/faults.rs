//! Disks that are full, places that cannot be written, files that are not ours.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use max_team_core::hash::Hash;
use max_team_journal::{Commit, FaultKind, Journal, JournalError, Options, ScanItem};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::make::{append, fact, fact_at, on_disk, texts};

/// Writes until there is no space; what was acknowledged must stay.
async fn fill(journal: &Journal) -> u64 {
    let text = "x".repeat(3_000);
    let mut stored = 0;
    loop {
        match journal.commit(fact_at("a", stored, &text)).await {
            Ok(_) => stored += 1,
            Err(JournalError::DiskFull { path }) => {
                assert!(path.ends_with("journal.db"));
                return stored;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn a_quota_ends_in_disk_full() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path(), Options { pages_max: Some(100), ..Options::default() }).unwrap();
    let stored = fill(&journal).await;
    assert!(stored > 10);
    assert_eq!(journal.head("a").unwrap(), stored);
    assert_eq!(journal.verify().unwrap().faults, []);
    drop(journal);
    let roomy = Journal::open(dir.path(), Options::default()).unwrap();
    roomy.commit(fact_at("a", stored, "there is room again")).await.unwrap();
    assert_eq!(roomy.verify().unwrap().faults, []);
}

/// A file system of one megabyte. Only root can make one; others rely on the quota above.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: &Path) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(path).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then(|| Self(path.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").args(["--lazy"]).arg(&self.0).output());
    }
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(&dir.path().join("disk")) else { return };
    let ballast = disk.0.join("ballast");
    fs::write(&ballast, vec![0; 200 << 10]).unwrap();
    let journal = Journal::open(disk.0.join("home"), Options::default()).unwrap();
    let stored = fill(&journal).await;
    assert!(stored > 10);
    assert_eq!(journal.head("a").unwrap(), stored);
    assert_eq!(journal.verify().unwrap().faults, []);
    fs::remove_file(ballast).unwrap();
    journal.commit(fact_at("a", stored, "there is room again")).await.unwrap();
    journal.close().await.unwrap();
    let journal = journal.reopen().unwrap();
    assert_eq!(journal.head("a").unwrap(), stored + 1);
    assert_eq!(journal.verify().unwrap().faults, []);
    // Nothing at all is left for a new one.
    journal.close().await.unwrap();
    fs::remove_dir_all(disk.0.join("home")).unwrap();
    drop(fs::write(disk.0.join("ballast"), vec![0; 2 << 20]));
    let refused = Journal::open(disk.0.join("home"), Options::default()).unwrap_err();
    assert!(matches!(refused, JournalError::DiskFull { .. }), "{refused}");
}

#[test]
fn an_unwritable_place_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let refused = Journal::open(file.join("home"), Options::default()).unwrap_err();
    let JournalError::NoFolder { path } = &refused else { panic!("{refused}") };
    assert_eq!(*path, file, "what is in the way");
    assert!(refused.to_string().contains("MAX_TEAM_HOME"), "{refused}");
}

/// What `open` says of a file, which must be left as it is.
fn refused(dir: &Path) -> JournalError {
    let path = dir.join("journal.db");
    let before = fs::read(&path).unwrap();
    let refused = Journal::open(dir, Options::default()).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), before, "the file was touched");
    refused
}

#[test]
fn garbage_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("journal.db"), "this is no database, whatever its name says ".repeat(100)).unwrap();
    let refused = refused(dir.path());
    assert!(matches!(refused, JournalError::Corrupt { .. }), "{refused}");
    assert!(refused.to_string().contains("max-team audit verify"), "{refused}");
}

#[test]
fn a_foreign_database_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let other = Connection::open(dir.path().join("journal.db")).unwrap();
    other.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(other);
    let refused = refused(dir.path());
    assert!(
        matches!(&refused, JournalError::Corrupt { detail, .. } if detail.contains("another program")),
        "{refused}"
    );
}

#[tokio::test]
async fn a_newer_programs_journal_is_left_alone() {
    let (dir, journal) = on_disk();
    journal.commit(fact("a", "x")).await.unwrap();
    journal.close().await.unwrap();
    drop(journal);
    let newer = Connection::open(dir.path().join("journal.db")).unwrap();
    // As if it had crashed: what it wrote last is still in its write-ahead log.
    newer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    newer.execute_batch("PRAGMA user_version = 99").unwrap();
    newer.close().unwrap();
    let log = fs::read(dir.path().join("journal.db-wal")).unwrap();
    let refused = refused(dir.path());
    assert!(matches!(refused, JournalError::Newer { found: 99, known: 1, .. }), "{refused}");
    assert_eq!(fs::read(dir.path().join("journal.db-wal")).unwrap(), log);
}

/// Whether the journal cannot be opened for its damage, or checking it tells of some.
fn is_found(dir: &Path) -> bool {
    match Journal::open(dir, Options::default()).and_then(|journal| journal.verify()) {
        Err(JournalError::Corrupt { .. }) => true,
        Ok(report) => !report.faults.is_empty(),
        Err(other) => panic!("{other}"),
    }
}

/// A bit that somebody could read is not missed; one in bytes that a page has left behind harms nobody.
#[tokio::test]
async fn a_flipped_bit_is_found() {
    let (dir, journal) = on_disk();
    let text = "what an agent was told ".repeat(1_000);
    let blobs = vec![text.clone().into_bytes()];
    journal.commit(Commit { blobs, ..fact("a", "small") }).await.unwrap();
    journal.commit(fact("b", &text.to_uppercase())).await.unwrap();
    journal.close().await.unwrap();
    let said = ["small".to_owned(), text.to_uppercase()];
    drop(journal);
    let path = dir.path().join("journal.db");
    let whole = fs::read(&path).unwrap();
    for words in ["was told", "WAS TOLD", "small"] {
        let found = |(at, window): (usize, &[u8])| (window == words.as_bytes()).then_some(at);
        let places: Vec<usize> = whole.windows(words.len()).enumerate().filter_map(found).collect();
        let mut any = false;
        for at in places.iter().step_by(100) {
            let mut damaged = whole.clone();
            damaged[*at] ^= 4;
            fs::write(&path, damaged).unwrap();
            let unharmed = |journal: Journal| {
                let told = journal.blob(&Hash::of(text.as_bytes())).unwrap();
                told == Some(text.clone().into_bytes()) && texts(&journal.read_all(0, 2).unwrap()) == said
            };
            let found = is_found(dir.path());
            assert!(found || unharmed(Journal::open(dir.path(), Options::default()).unwrap()), "`{words}` at {at}");
            any |= found;
        }
        assert!(any, "`{words}` is nowhere looked at");
    }
}

/// Damage shows where it is met: as a typed error, or in the report.
#[tokio::test]
async fn a_damaged_page_is_found() {
    let (dir, journal) = on_disk();
    let appends = (0..2_000).map(|number| append(&format!("s/{}", number % 7), &number.to_string())).collect();
    journal.commit(Commit { appends, ..Commit::default() }).await.unwrap();
    journal.close().await.unwrap();
    drop(journal);
    let path = dir.path().join("journal.db");
    let whole = fs::read(&path).unwrap();
    for page in (0..whole.len() / 4_096).filter(|page| *page < 8 || page % 11 == 0) {
        let mut damaged = whole.clone();
        damaged[page * 4_096..(page + 1) * 4_096].fill(0xff);
        fs::write(&path, damaged).unwrap();
        assert!(is_found(dir.path()), "page {page} is missed");
        // Each fault is told once, on a line.
        let Ok(journal) = Journal::open_damaged(dir.path()) else { continue };
        let mut told: Vec<String> = journal.verify().unwrap().faults.iter().map(|it| it.detail.to_string()).collect();
        assert!(told.len() <= 110 && told.iter().all(|words| !words.contains('\n')), "page {page}: {told:?}");
        let all = told.len();
        told.sort_unstable();
        told.dedup();
        assert_eq!(told.len(), all, "page {page}: {told:?}");
    }
}

#[tokio::test]
async fn a_truncated_database_is_corrupt() {
    let (dir, journal) = on_disk();
    let appends = (0..2_000).map(|number| append("s", &number.to_string())).collect();
    journal.commit(Commit { appends, ..Commit::default() }).await.unwrap();
    journal.close().await.unwrap();
    drop(journal);
    let path = dir.path().join("journal.db");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(is_found(dir.path()));
    fs::write(&path, "").unwrap();
    let absent = Journal::open_existing(dir.path(), Options::default()).unwrap_err();
    assert_eq!(absent, JournalError::Absent { path });
}

/// What a file that has lost its end still holds can be read, and nothing of it is changed by looking.
#[tokio::test]
async fn a_truncated_database_is_read_as_far_as_it_goes() {
    let (dir, journal) = on_disk();
    for number in 0..400 {
        journal.commit(fact("s", &format!("{number} {}", "x".repeat(900)))).await.unwrap();
    }
    journal.close().await.unwrap();
    drop(journal);
    let path = dir.path().join("journal.db");
    let whole = fs::read(&path).unwrap();
    for lost in [4_096, 40_960] {
        let bytes = &whole[..whole.len() - lost];
        fs::write(&path, bytes).unwrap();
        assert!(matches!(Journal::open_existing(dir.path(), Options::default()), Err(JournalError::Corrupt { .. })));
        let journal = Journal::open_damaged(dir.path()).unwrap();
        let (mut read, mut check) = (0, journal.check_behind(0));
        let mut unread = None;
        let walked = journal.export(1, |walked| {
            match walked {
                ScanItem::Entry(entry) => {
                    assert_eq!((entry.seq, check.entry(entry), unread), (read + 1, Vec::new(), None));
                    read = entry.seq;
                }
                ScanItem::Unread { from, .. } => unread = Some(from),
            }
            std::ops::ControlFlow::Continue(())
        });
        walked.unwrap();
        assert!(read > 200 && unread.is_none_or(|from| from == read + 1), "{read} {unread:?}");
        let report = journal.verify().unwrap();
        let short = report.faults[0].detail.to_string();
        assert_eq!(short, format!("its end is missing: {} bytes of {} are there", bytes.len(), whole.len()));
        drop(journal);
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

/// Pages in the middle that nobody can read hide what is in them and nothing else: the rest is checked as ever.
#[tokio::test]
async fn entries_behind_a_damaged_page_are_checked() {
    let (dir, journal) = on_disk();
    for number in 0..400 {
        journal
            .commit(fact(&format!("s/{}", number % 3), &format!("number {number}. {}", "x".repeat(900))))
            .await
            .unwrap();
    }
    journal.close().await.unwrap();
    drop(journal);
    let path = dir.path().join("journal.db");
    let whole = fs::read(&path).unwrap();
    let entries = Journal::open_existing(dir.path(), Options::default()).unwrap().last_seq().unwrap();
    // In the middle; at both ends; side by side, as an entry's page and the next.
    for lost in [&[100, 300][..], &[0, 399], &[200, 204], &[0, 399, 7, 31, 32, 150]] {
        let mut damaged = whole.clone();
        for number in lost {
            let words = format!("number {number}. ");
            let at = whole.windows(words.len()).position(|window| window == words.as_bytes()).unwrap() / 4_096 * 4_096;
            damaged[at..at + 4_096].fill(0xff);
        }
        fs::write(&path, &damaged).unwrap();
        let report = Journal::open_damaged(dir.path()).unwrap().verify().unwrap();
        let told: Vec<String> = report.faults.iter().map(|fault| fault.detail.to_string()).collect();
        let range = |words: &String| {
            let (from, to) = words.strip_prefix("entries ")?.strip_suffix(" cannot be read")?.split_once(" to ")?;
            Some(from.parse::<u64>().unwrap()..=to.parse::<u64>().unwrap())
        };
        let ranges: Vec<_> = told.iter().filter_map(range).collect();
        let hidden: u64 = ranges.iter().map(|range| range.clone().count() as u64).sum();
        assert!(
            lost.iter().all(|number| ranges.iter().any(|range| range.contains(&(number + 1)))),
            "{lost:?} {told:?}"
        );
        assert!(report.entries + hidden == entries && hidden < 60, "{lost:?} {hidden} {told:?}");
        assert!(ranges.is_sorted_by(|one, other| one.end() < other.start()), "{ranges:?}");
        // Nothing else is said to be wrong with the log.
        assert!(report.faults.iter().all(|fault| fault.kind == FaultKind::Damaged), "{told:?}");
        assert_eq!((report.streams, fs::read(&path).unwrap() == damaged), (4, true), "{told:?}");
    }
}

/// What somebody has changed behind the damage is still found.
#[tokio::test]
async fn damage_hides_no_forgery_behind_it() {
    let (dir, journal) = on_disk();
    for number in 0..400 {
        journal.commit(fact("s", &format!("number {number}. {}", "x".repeat(900)))).await.unwrap();
    }
    journal.close().await.unwrap();
    drop(journal);
    let path = dir.path().join("journal.db");
    let forger = Connection::open(&path).unwrap();
    forger
        .execute_batch("UPDATE entry SET actor = 'user/eve' WHERE seq = 350; DELETE FROM entry WHERE seq = 380")
        .unwrap();
    drop(forger);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(11).position(|window| window == b"number 100.").unwrap() / 4_096 * 4_096;
    bytes[at..at + 4_096].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let faults = Journal::open_damaged(dir.path()).unwrap().verify().unwrap().faults;
    let of =
        |kind: FaultKind| faults.iter().filter(|fault| fault.kind == kind).map(|fault| fault.seq).collect::<Vec<_>>();
    assert_eq!((of(FaultKind::Edited), of(FaultKind::Missing)), (vec![350], vec![381, 381]), "{faults:?}");
}

#[tokio::test]
async fn files_are_for_their_owner_alone() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("deep/home");
    let journal = Journal::open(&dir, Options::default()).unwrap();
    journal.commit(fact("a", "x")).await.unwrap();
    journal.head("a").unwrap();
    let _worker = journal.worker(crate::make::worker(1)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&dir.join("workers"))), (0o700, 0o700));
    for folder in [&dir, &dir.join("workers")] {
        for file in fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
    }
}

#[test]
fn many_may_make_one_journal_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let dir = dir.path().to_owned();
            std::thread::spawn(move || {
                let journal = Journal::open(&dir, Options::default()).unwrap();
                journal.commit_blocking(fact("a", &number.to_string())).unwrap();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let journal = Journal::open(dir.path(), Options::default()).unwrap();
    assert_eq!(journal.head("a").unwrap(), 8);
}

/// Refused commits share a transaction with others and sink none of them.
#[tokio::test]
async fn a_group_outlives_its_refused_members() {
    let (_dir, journal) = on_disk();
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let journal = journal.clone();
            let commit = match number % 4 {
                0 => fact_at("a", 999, "conflict"),
                1 => fact("mail/forged", "reserved"),
                _ => fact("b", &number.to_string()),
            };
            tokio::spawn(async move { journal.commit(commit).await.is_ok() })
        })
        .collect();
    let mut stored = 0;
    for task in tasks {
        stored += usize::from(task.await.unwrap());
    }
    assert_eq!((stored, texts(&journal.read_all(0, 999).unwrap()).len()), (100, 100));
}

/// More commits than the queue holds: writers wait, and none is dropped.
#[tokio::test]
async fn a_full_queue_pushes_back() {
    let (_dir, journal) = on_disk();
    let tasks: Vec<_> = (0..3_000)
        .map(|number| {
            let journal = journal.clone();
            tokio::spawn(async move { journal.commit(fact("a", &number.to_string())).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(journal.head("a").unwrap(), 3_000);
}

/// A file without a name takes every write and keeps none of them.
#[tokio::test]
async fn a_journal_that_is_deleted_or_replaced_while_in_use_is_an_error() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("the database is deleted", |dir| fs::remove_file(dir.join("journal.db")).unwrap()),
        ("its log is deleted", |dir| fs::remove_file(dir.join("journal.db-wal")).unwrap()),
        ("the folder is moved", |dir| fs::rename(dir, dir.with_extension("moved")).unwrap()),
        ("the database is replaced", |dir| {
            fs::copy(dir.join("journal.db"), dir.join("copy")).unwrap();
            fs::rename(dir.join("copy"), dir.join("journal.db")).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("home");
        let journal = Journal::open(&dir, Options::default()).unwrap();
        journal.commit(fact("a", "kept")).await.unwrap();
        damage(&dir);
        let refused = journal.commit(fact("a", "lost")).await.unwrap_err();
        assert!(matches!(&refused, JournalError::Removed { .. }), "{what}: {refused:?}");
        assert!(refused.to_string().contains("was deleted, moved or replaced"), "{refused}");
        assert!(journal.close().await.is_err(), "{what}: closing must not succeed");

        // What was committed last is not kept either: closing says so.
        fs::remove_dir_all(folder.path()).unwrap();
        let journal = Journal::open(&dir, Options::default()).unwrap();
        journal.commit(fact("a", "kept")).await.unwrap();
        damage(&dir);
        assert!(matches!(journal.close().await, Err(JournalError::Removed { .. })), "{what}");
    }
}
