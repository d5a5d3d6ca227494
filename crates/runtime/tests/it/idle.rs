//! What a team costs that rests: nothing, however long.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use max_team_journal::{Bent, Journal, Options, Strength};
use max_team_llm::Replay;
use max_team_runtime::{Command, Which};
use tokio::runtime::Handle;

use super::calls::say;
use super::mates::leading;
use super::team::rest;
use super::{house_with, order, project, until};

const MATES: usize = 100;
const HOUR: Duration = Duration::from_secs(3_600);

/// How often the clock itself looks up on the way to a timer that is an hour ahead: its wheel has six levels. Somebody who
/// looked every ten minutes would double that.
const STEPS_MAX: u64 = 6;

/// A lead that starts so many, each of whom is ready and rests.
fn crowd(count: usize) -> String {
    let spawn =
        |at: usize| format!("      - {{tool: spawn_teammate, input: {{name: m{at}, role: r, prompt: Be ready.}}}}\n");
    let answer = |from: usize| format!("  - parts:\n{}", (from..from + MATES / 2).map(spawn).collect::<String>());
    let answers: String = (0..count).step_by(MATES / 2).map(answer).collect();
    let noted = "  - text: Noted.\n".repeat(2 * count);
    let works = "{text: Ready.}, {text: One moment, delta_ms: 3600000}";
    let ready: String = (0..count).map(|at| format!("  m{at}: [{works}]\n")).collect();
    format!("answers:\n{answers}{noted}members:\n{ready}")
}

/// The clock is stood still and moved from one timer to the next: whatever there is would fire.
#[tokio::test]
async fn a_hundred_at_rest_do_nothing_for_an_hour() {
    let folder = project();
    let journal = Journal::open(folder.path().join("journal"), Options::default()).unwrap();
    let replay = Replay::read(&crowd(MATES)).unwrap();
    let team = house_with(&journal, folder.path(), replay.clone());
    let (_, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    let state = || (replay.calls(), journal.read_all(0, 100_000).unwrap().len());
    let before = state();
    assert!(before.0.len() > MATES, "everybody has said something: {}", before.0.len());
    let parked = || Handle::current().metrics().worker_park_count(0);
    tokio::time::pause();
    let (began, parks) = (tokio::time::Instant::now(), parked());
    tokio::time::sleep(HOUR).await;
    let woken = parked() - parks;
    assert!(woken <= STEPS_MAX, "somebody woke up {woken} times");
    assert!(began.elapsed() >= HOUR);
    assert_eq!(state(), before, "nobody was asked and nothing was written");
    assert!(notices.try_recv().is_err(), "nobody was told anything");
}

/// What a stop writes where one of so many works and the others rest: commits, how many of them are synced, entries.
async fn stop_of(journal: &Journal, root: &Path, count: usize) -> [u64; 3] {
    let team = house_with(journal, root, Replay::read(&crowd(count)).unwrap());
    let (session, mut notices) = say(&team, root, leading(Which::New)).await;
    rest(&mut notices).await;
    order(&team, Command::Write { session, to: vec!["m0".into()], text: "go".into() }).await.unwrap();
    until(&mut notices, "turn_started").await;
    let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let counted = Arc::clone(&counts);
    journal.bend(move |commit| {
        counted[0].fetch_add(1, Ordering::Relaxed);
        counted[1].fetch_add(u64::from(commit.strength == Strength::Full), Ordering::Relaxed);
        Bent::Apart(vec![commit])
    });
    let (before, began) = (journal.last_seq().unwrap(), std::time::Instant::now());
    order(&team, Command::Halt { session }).await.unwrap();
    rest(&mut notices).await;
    let entries = journal.last_seq().unwrap() - before;
    let [commits, full] = [0, 1].map(|at: usize| counts[at].load(Ordering::Relaxed));
    eprintln!("one of {count} is stopped: {commits} commits, {full} synced, {entries} entries, {:?}", began.elapsed());
    [commits, full, entries]
}

/// Somebody works and is stopped: for those who rest nothing is written.
#[tokio::test]
async fn a_stop_costs_nothing_for_a_hundred_at_rest() {
    let folder = project();
    let [commits, full, entries] = stop_of(&Journal::memory(), folder.path(), MATES).await;
    assert!(commits < 10 && full < 5 && entries < 10, "{commits} commits, {full} synced, {entries} entries");
}

#[tokio::test]
#[ignore = "takes a minute: what it prints is for whoever measures"]
async fn a_stop_where_a_thousand_rest() {
    let folder = project();
    let journal = Journal::open(folder.path().join("journal"), Options::default()).unwrap();
    stop_of(&journal, folder.path(), 10 * MATES).await;
}
