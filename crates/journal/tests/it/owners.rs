//! Ownership between processes.

use max_team_journal::{Commit, Fence, JournalError};

use crate::child::Child;
use crate::make::{fact, fact_at, on_disk, worker};

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

/// A writer does not look again at what it has just written. What others write in between it must see all the same.
#[tokio::test]
async fn what_others_wrote_in_between_counts() {
    let (_dir, one) = on_disk();
    let two = one.reopen().unwrap();
    for round in 0..4 {
        let (first, second) = if round % 2 == 0 { (&one, &two) } else { (&two, &one) };
        first.commit(fact_at("s", 2 * round, "first")).await.unwrap();
        let late = second.commit(fact_at("s", 2 * round, "late")).await;
        assert!(matches!(late, Err(JournalError::Conflict { .. })), "{late:?}");
        assert_eq!(second.commit(fact_at("s", 2 * round + 1, "second")).await.unwrap().last_seq, 2 * round + 2);
    }

    let (ours, theirs) = (one.worker(worker(1)).unwrap(), two.worker(worker(2)).unwrap());
    let epoch = one.claim("plan/x", &ours).await.unwrap();
    let fence = Fence { resource: "plan/x".to_owned(), worker: ours.id(), epoch };
    let fenced = || Commit { fence: Some(fence.clone()), ..fact("t", "mine") };
    one.commit(fenced()).await.unwrap();
    one.commit(fenced()).await.unwrap();
    drop(ours);
    two.claim("plan/x", &theirs).await.unwrap();
    let zombie = one.commit(fenced()).await;
    assert!(matches!(zombie, Err(JournalError::Fenced { .. })), "{zombie:?}");
}
