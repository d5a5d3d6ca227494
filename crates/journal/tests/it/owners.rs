//! Ownership between processes.

use max_team_journal::JournalError;

use crate::child::Child;
use crate::make::{on_disk, worker};

#[tokio::test]
async fn a_killed_process_owns_nothing() {
    let (dir, journal) = on_disk();
    let mut child = Child::start("owner", dir.path());
    assert_eq!(child.heard().as_deref(), Some("1"));
    let lock = dir.path().join("workers").join(format!("{}.lock", worker(77).id));

    let ours = journal.worker(worker(1)).unwrap();
    let Err(JournalError::Owned { by, .. }) = journal.claim("plan/x", &ours).await else { panic!("not owned") };
    assert_eq!((by.what.as_str(), by.pid == std::process::id()), ("chat 77", false));
    assert!(lock.exists());

    drop(child);
    assert_eq!(journal.claim("plan/x", &ours).await, Ok(2));
    assert!(!lock.exists(), "what a dead worker left is removed");
}

#[tokio::test]
async fn the_same_worker_cannot_live_twice() {
    let (_dir, journal) = on_disk();
    let first = journal.worker(worker(1)).unwrap();
    assert!(matches!(journal.worker(worker(1)), Err(JournalError::Unwritable { .. })));
    drop(first);
    journal.worker(worker(1)).unwrap();
}
