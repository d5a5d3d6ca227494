//! Every engine: owners, watchers, writers that race, and the end.

use max_team_journal::{Append, Commit, Durability, Fence, Journal, JournalError};

use crate::make::{append, fact, fact_at, texts, worker};

fn fenced(resource: &str, number: u64, epoch: u64) -> Commit {
    let fence = Fence { resource: resource.to_owned(), worker: worker(number).id, epoch };
    Commit { fence: Some(fence), ..fact("a", "mine") }
}

pub(super) async fn claims_are_exclusive_and_fenced(journal: Journal) {
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

pub(super) async fn a_dead_owner_is_succeeded(journal: Journal) {
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

pub(super) async fn the_living_owner_can_be_asked_for(journal: Journal) {
    let elsewhere = journal.reopen().unwrap();
    let one = journal.worker(worker(1)).unwrap();
    assert_eq!(elsewhere.owner("plan/x"), Ok(None));
    let epoch = journal.claim("plan/x", &one).await.unwrap();
    assert_eq!(elsewhere.owner("plan/x"), Ok(Some(worker(1))));
    assert_eq!(elsewhere.owner("plan/y"), Ok(None));
    journal.release("plan/x", &one, epoch).await.unwrap();
    assert_eq!(elsewhere.owner("plan/x"), Ok(None));
    journal.claim("plan/x", &one).await.unwrap();
    drop(one);
    assert_eq!(elsewhere.owner("plan/x"), Ok(None), "the dead own nothing");
}

pub(super) async fn a_watch_catches_up_and_follows(journal: Journal) {
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
    assert_eq!(watch.try_next(), Ok(None), "and whoever does not wait sees nothing");
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

pub(super) async fn watches_see_other_handles(journal: Journal) {
    let other = journal.reopen().unwrap();
    let mut watch = journal.watch(0).unwrap();
    let mut back = other.watch(0).unwrap();
    for round in 1..=50 {
        other.commit(fact("a", &round.to_string())).await.unwrap();
        assert_eq!(watch.next().await.unwrap().seq, 2 * round - 1);
        journal.commit(fact("b", &round.to_string())).await.unwrap();
        assert_eq!(watch.next().await.unwrap().seq, 2 * round);
        assert_eq!(back.try_next().unwrap().unwrap().seq, 2 * round - 1, "what is there need not be waited for");
        assert_eq!(back.next().await.unwrap().seq, 2 * round);
    }
}

pub(super) async fn a_closed_journal_refuses_and_can_be_opened_again(journal: Journal) {
    journal.commit(fact("a", "1")).await.unwrap();
    journal.close().await.unwrap();
    assert_eq!(journal.commit(fact("a", "2")).await, Err(JournalError::Closed));
    assert_eq!(journal.read("a", 0, 9), Err(JournalError::Closed));
    assert_eq!(journal.clone().close().await, Err(JournalError::Closed));
    let journal = journal.reopen().unwrap();
    journal.commit(fact_at("a", 1, "2")).await.unwrap();
    assert_eq!(texts(&journal.read("a", 0, 9).unwrap()), ["1", "2"]);
}

pub(super) async fn racing_writers_all_get_in_once(journal: Journal) {
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
                        let strength = if fact % 2 == 0 { Durability::Full } else { Durability::Normal };
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

pub(super) async fn threads_may_wait_for_a_commit(journal: Journal) {
    journal.commit_blocking(fact_at("a", 0, "inside a runtime")).unwrap();
    let clone = journal.clone();
    let outside = std::thread::spawn(move || clone.commit_blocking(fact_at("a", 1, "outside")));
    outside.join().unwrap().unwrap();
    assert_eq!(journal.head("a").unwrap(), 2);
}
