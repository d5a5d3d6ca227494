//! What a team costs that rests: nothing, however long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use max_team_journal::{Durability, Journal, Options, Sabotage};
use max_team_llm::Replay;
use max_team_runtime::{Command, Which};
use tokio::runtime::Handle;

use super::calls::say;
use super::team::rest;
use super::teammates::leading;
use super::{order, project, runtime_with, until};

const TEAMMATES: usize = 100;
const HOUR: Duration = Duration::from_secs(3_600);

/// How often the clock itself looks up on the way to a timer that is an hour ahead: its wheel has six levels. Somebody who
/// looked every ten minutes would double that.
const STEPS_MAX: u64 = 6;

/// A lead that starts a hundred, each of whom is ready and rests.
fn hundred() -> String {
    let spawn =
        |at: usize| format!("      - {{tool: spawn_teammate, input: {{name: m{at}, role: r, prompt: Be ready.}}}}\n");
    let answer = |from: usize| format!("  - parts:\n{}", (from..from + TEAMMATES / 2).map(spawn).collect::<String>());
    let noted = "  - text: Noted.\n".repeat(2 * TEAMMATES);
    let works = "{text: Ready.}, {text: One moment, delta_ms: 3600000}";
    let ready: String = (0..TEAMMATES).map(|at| format!("  m{at}: [{works}]\n")).collect();
    format!("answers:\n{}{}{noted}members:\n{ready}", answer(0), answer(TEAMMATES / 2))
}

/// The clock is stood still and moved from one timer to the next: whatever there is would fire.
#[tokio::test]
async fn a_hundred_at_rest_do_nothing_for_an_hour() {
    let folder = project();
    let journal = Journal::open(folder.path().join("journal"), Options::default()).unwrap();
    let replay = Replay::read(&hundred()).unwrap();
    let team = runtime_with(&journal, folder.path(), replay.clone());
    let (_, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    let state = || (replay.calls(), journal.read_all(0, 100_000).unwrap().len());
    let before = state();
    assert!(before.0.len() > TEAMMATES, "everybody has said something: {}", before.0.len());
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

/// Somebody works and is stopped: for those who rest nothing is written.
#[tokio::test]
async fn a_stop_costs_nothing_for_a_hundred_at_rest() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_with(&journal, folder.path(), Replay::read(&hundred()).unwrap());
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    order(&team, Command::Write { session, to: vec!["m0".into()], text: "go".into() }).await.unwrap();
    until(&mut notices, "turn_started").await;
    let (commits, synced) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counted = (Arc::clone(&commits), Arc::clone(&synced));
    journal.sabotage(move |commit| {
        counted.0.fetch_add(1, Ordering::Relaxed);
        counted.1.fetch_add(u64::from(commit.strength == Durability::Full), Ordering::Relaxed);
        Sabotage::Apart(vec![commit])
    });
    let before = journal.last_seq().unwrap();
    order(&team, Command::StopSession { session }).await.unwrap();
    rest(&mut notices).await;
    let [commits, synced] = [commits, synced].map(|count| count.load(Ordering::Relaxed));
    let entries = journal.last_seq().unwrap() - before;
    assert!(commits <= 5 && synced <= 3 && entries < 12, "{commits} commits, {synced} synced, {entries} entries");
}
