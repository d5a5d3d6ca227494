//! Ownership between processes.

use max_team_journal::{Commit, Fence, Journal, JournalError};

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

/// Where nothing can be written, what is owned is let go of all the same; what nobody has taken is there on return.
#[tokio::test]
async fn a_worker_that_rests_owns_nothing() {
    for (_dir, journal) in [on_disk(), (tempfile::tempdir().unwrap(), Journal::memory())] {
        let (ours, theirs) = (journal.worker(worker(1)).unwrap(), journal.worker(worker(2)).unwrap());
        for plan in ["plan/x", "plan/y"] {
            assert_eq!(journal.claim(plan, &ours).await, Ok(1));
        }
        ours.rest();
        ours.rest();
        assert_eq!(journal.owner("plan/x").unwrap(), None);
        assert_eq!(journal.claim("plan/x", &theirs).await, Ok(2));
        ours.revive().unwrap();
        ours.revive().unwrap();
        assert!(matches!(journal.claim("plan/x", &ours).await, Err(JournalError::Owned { .. })));
        assert_eq!(journal.claim("plan/y", &ours).await, Ok(1));
        let refused = journal.claim("plan/y", &theirs).await;
        assert!(matches!(refused, Err(JournalError::Owned { .. })), "{refused:?}");
    }
}

/// A writer does not look again at what it has just written. What others write in between it must see all the same.
#[tokio::test]
async fn commits_of_other_processes_in_between_count() {
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
