//! Watchers are woken by other processes, wherever the journal lies.

use std::fs;
use std::os::unix::net::UnixDatagram;

use max_team_journal::{Journal, Options};

use crate::child::Child;
use crate::make::{fact, on_disk};

#[tokio::test]
async fn a_commit_of_another_process_wakes_a_watcher() {
    let (dir, journal) = on_disk();
    let mut watch = journal.watch(0).unwrap();
    for round in 1..=3 {
        let _child = Child::start("once", dir.path());
        let entry = watch.next().await.unwrap();
        assert_eq!((entry.seq, entry.stream.as_str()), (round, "from/child"));
    }
}

#[tokio::test]
async fn long_paths_are_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a".repeat(100)).join("b".repeat(100));
    let journal = Journal::open(&deep, Options::default()).unwrap();
    let other = journal.reopen().unwrap();
    let mut watch = journal.watch(0).unwrap();
    other.commit(fact("a", "x")).await.unwrap();
    assert_eq!(watch.next().await.unwrap().seq, 1);
}

#[tokio::test]
async fn sockets_of_dead_watchers_are_removed() {
    let (dir, journal) = on_disk();
    let workers = dir.path().join("workers");
    fs::create_dir_all(&workers).unwrap();
    let dead = workers.join("0000000000000000.sock");
    drop(UnixDatagram::bind(&dead).unwrap());
    let deaf = workers.join("1111111111111111.sock");
    let _never_read = UnixDatagram::bind(&deaf).unwrap();
    for number in 0..1_000 {
        journal.commit(fact("a", &number.to_string())).await.unwrap();
    }
    assert!(!dead.exists());
    assert!(deaf.exists(), "a watcher that is slow to listen is not dead");
}

#[tokio::test]
async fn a_handle_that_is_gone_leaves_no_socket() {
    let (dir, journal) = on_disk();
    let sockets = || fs::read_dir(dir.path().join("workers")).unwrap().count();
    let watch = journal.watch(0).unwrap();
    let _second = journal.watch(0).unwrap();
    assert_eq!(sockets(), 1);
    drop((watch, _second, journal));
    assert_eq!(sockets(), 0);
}
