//! A session stop reaches every agent: those that have only just begun, and those beside an agent whose stream cannot be read.

use std::sync::Arc;

use max_team_core::delegation::tool_filter::GENERAL;
use max_team_core::event::{Event, Interrupted, TurnOutcome};
use max_team_core::id::{AgentId, SessionId, TurnId};
use max_team_core::interrupt::Hold;
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::status::{AgentStage, BlockCause, IdleReason};
use max_team_core::task_list::{ListRequest, NewTask};
use max_team_core::turn::is_stop;
use max_team_journal::{Append, Commit, Journal, Projection};
use max_team_runtime::{Command, ReadModel, TaskLists, UserMail, Which, compare_rows, new_id, query};
use serde_json::json;
use tokio::sync::Notify;
use uuid::Uuid;

use super::calls::{inputs, say};
use super::crashes::{events, key};
use super::team::rest;
use super::teammates::leading;
use super::{order, owner, project, runtime_of, until};

/// Passes of the scheduler for which a commit is held back: more than anybody needs to say stop.
const HELD_BACK: u32 = 10_000;

fn agent(journal: &Journal, session: SessionId, name: &str) -> AgentId {
    let roll = ReadModel::new(journal).roll(session).unwrap();
    roll.lead.into_iter().chain(roll.teammates).find(|of| of.person.name == name).unwrap().person.agent.unwrap()
}

const CLAIMER: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: ann, role: worker, prompt: Work., auto_claim: true}}]
  - text: At it.
  - text: Noted.
  - text: Noted.
members:
  ann: [{text: Ready.}, {text: One moment, delta_ms: 3600000}]
"#;

/// It takes a task from the list, and the stop comes before that is stored.
#[tokio::test]
async fn a_stop_reaches_who_has_begun_and_is_not_stored_yet() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), CLAIMER);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    while inputs(&journal, "max").len() < 2 {
        rest(&mut notices).await;
    }
    team.ask(query::Settled { session }).await.unwrap();
    let begun = Arc::new(Notify::new());
    let (begins, mut commits) = (Arc::clone(&begun), 0);
    journal.wait_before(move || {
        commits += 1;
        // The first is the user's own.
        if commits != 2 {
            return 0;
        }
        begins.notify_one();
        HELD_BACK
    });
    let new = ListRequest::Create(NewTask { subject: "first".into(), ..NewTask::default() });
    TaskLists::new(&journal).write(session, &owner(), &new).await.unwrap();
    begun.notified().await;
    assert_eq!(inputs(&journal, GENERAL).len(), 1, "ann's claim is on its way");
    order(&team, Command::StopSession { session }).await.unwrap();
    rest(&mut notices).await;
    assert_eq!(inputs(&journal, GENERAL).len(), 2);
    let ann = ReadModel::new(&journal).turn(agent(&journal, session, "ann")).unwrap();
    assert_eq!(ann.last().unwrap().end, TurnOutcome::Interrupted);
}

const BOTH: &str = r#"
answers:
  - parts:
      - {tool: spawn_teammate, input: {name: ann, role: worker, prompt: Work.}}
      - {tool: spawn_teammate, input: {name: bob, role: worker, prompt: Work.}}
  - text: At it.
  - text: Noted.
  - text: Noted.
members:
  ann: [{text: One moment, delta_ms: 3600000}, {text: One moment, delta_ms: 3600000}]
  bob: [{text: BOB}]
"#;

/// Waits until bob has told the lead that he is done.
async fn until_reported(journal: &Journal, notices: &mut tokio::sync::mpsc::Receiver<max_team_runtime::Notice>) {
    while super::teammates::envelopes(journal, MessageKind::TaskResult).is_empty() {
        until(notices, "turn_ended").await;
    }
}

/// Puts an entry at the end of somebody's stream.
async fn append(journal: &Journal, agent: AgentId, event: &'static str, payload: Vec<u8>) {
    journal.commit(Commit { appends: vec![entry(agent, event, payload)], ..Commit::default() }).await.unwrap();
}

fn entry(agent: AgentId, event: &'static str, payload: Vec<u8>) -> Append {
    let stream = format!("agent/{agent}");
    Append { stream, event: event.into(), version: 1, payload, actor: "test".into(), cause: None }
}

#[tokio::test]
async fn one_that_cannot_be_read_keeps_a_stop_from_nobody() {
    let (folder, journal) = (project(), Journal::memory());
    let team =
        runtime_of(&journal, folder.path(), &BOTH.replace("{text: BOB}", "{text: One moment, delta_ms: 3600000}"));
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    while inputs(&journal, GENERAL).len() < 2 {
        until(&mut notices, "turn_started").await;
    }
    team.shutdown().await.unwrap();
    let journal = journal.reopen().unwrap();
    let [lead, ann, bob] = ["max", "ann", "bob"].map(|name| agent(&journal, session, name));
    append(&journal, ann, "of_tomorrow", b"{}".to_vec()).await;
    assert!(ReadModel::new(&journal).turn(ann).is_err());
    UserMail::new(&journal).stop_session(&owner(), session).await.unwrap();
    for agent in [lead, ann, bob] {
        let mail = journal.pending_mail(&format!("agent/{agent}")).unwrap();
        assert!(mail.iter().any(is_stop), "{agent}: {mail:?}");
    }
}

const CALLED: &str = r#"
answers:
  - parts: [{tool: agent, input: {description: look, prompt: Look., type: explore}}]
  - text: Seen.
members:
  explore: [{text: One moment, delta_ms: 3600000}, {text: Here.}]
"#;

/// Somebody works for the lead's call and was written to by the user: with the call, what was written is stopped, too.
#[tokio::test]
async fn messages_to_a_called_agent_wait_after_a_stop() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), CALLED);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    while inputs(&journal, "explore").is_empty() {
        until(&mut notices, "turn_started").await;
    }
    let agents = ReadModel::new(&journal).agents(session).unwrap();
    let called = agents.into_iter().find(|row| row.name == "explore").unwrap();
    order(&team, Command::Write { session, to: vec![called.handle()], text: "and b?".into() }).await.unwrap();
    order(&team, Command::StopSession { session }).await.unwrap();
    rest(&mut notices).await;
    assert_eq!(inputs(&journal, "explore").len(), 1, "it begins nothing");
    order(&team, Command::Continue { session, to: Vec::new() }).await.unwrap();
    while inputs(&journal, "explore").len() < 2 {
        rest(&mut notices).await;
    }
    let told = inputs(&journal, "explore").split_off(1).join("|");
    assert!(told.contains("and b?") && !told.contains('|'), "{told}");
}

const TAKER: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: ann, role: worker, prompt: Work., auto_claim: true}}]
  - text: At it.
  - text: Noted.
  - text: Noted.
  - text: Noted.
members:
  ann: [{text: Ready.}, {text: Taken.}, {text: Taken.}, {text: Taken.}]
"#;

fn subject(subject: &str) -> ListRequest {
    ListRequest::Create(NewTask { subject: subject.into(), ..NewTask::default() })
}

/// Where somebody stands, and why.
fn stands(journal: &Journal, session: SessionId, name: &str) -> (AgentStage, Option<IdleReason>) {
    let roll = ReadModel::new(journal).roll(session).unwrap();
    let person = roll.teammates.into_iter().find(|teammate| teammate.person.name == name).unwrap().person;
    (person.state, person.reason)
}

fn takes_none(name: &str) -> (AgentStage, Option<IdleReason>) {
    (AgentStage::Stopped, Some(IdleReason::Blocked(BlockCause::NoClaims(name.to_owned()))))
}

/// Tasks were listed while no process ran the session, and the session was stopped before one did.
#[tokio::test]
async fn a_stop_holds_a_teammate_that_could_take_a_task() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), TAKER);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    while inputs(&journal, "max").len() < 2 {
        rest(&mut notices).await;
    }
    team.ask(query::Settled { session }).await.unwrap();
    team.close(session).await;
    for name in ["first", "second"] {
        TaskLists::new(&journal).write(session, &owner(), &subject(name)).await.unwrap();
    }
    let ann = agent(&journal, session, "ann");
    assert_eq!(ReadModel::new(&journal).at_work(session).unwrap(), [ann], "there is something to stop");
    UserMail::new(&journal).stop_session(&owner(), session).await.unwrap();
    assert!(ReadModel::new(&journal).at_work(session).unwrap().is_empty(), "and then there is not");
    team.open(owner(), folder.path(), leading(Which::Id(session))).await.unwrap();
    team.ask(query::Settled { session }).await.unwrap();
    assert_eq!(inputs(&journal, GENERAL).len(), 1);
    assert_eq!(stands(&journal, session, "ann"), takes_none("ann"));
    order(&team, Command::Continue { session, to: vec!["ann".into()] }).await.unwrap();
    while !inputs(&journal, GENERAL).iter().any(|told| told.contains("You have taken")) {
        rest(&mut notices).await;
    }
}

/// What it was at it keeps, and takes no other; whoever looks at it, or adds a task that nobody takes, is told so.
#[tokio::test]
async fn an_agent_stopped_with_a_task_is_shown_as_stopped() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), CLAIMER);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    while inputs(&journal, "max").len() < 2 {
        rest(&mut notices).await;
    }
    TaskLists::new(&journal).write(session, &owner(), &subject("first")).await.unwrap();
    until(&mut notices, "turn_started").await;
    assert!(ReadModel::new(&journal).nobody_takes(session).unwrap().is_empty());
    order(&team, Command::StopSession { session }).await.unwrap();
    rest(&mut notices).await;
    team.ask(query::Settled { session }).await.unwrap();
    assert_eq!(stands(&journal, session, "ann").0, AgentStage::Stopped);
    TaskLists::new(&journal).write(session, &owner(), &subject("second")).await.unwrap();
    team.ask(query::Settled { session }).await.unwrap();
    assert_eq!(ReadModel::new(&journal).nobody_takes(session).unwrap(), ["ann"]);
    assert_eq!(stands(&journal, session, "ann"), takes_none("ann"));
    assert_eq!(inputs(&journal, GENERAL).len(), 2, "she takes no other");
}

/// A journal of before there were rows for it is sound; a row that says something else than its entry is told of.
#[tokio::test]
async fn a_stop_of_before_there_were_rows_for_it_is_no_fault() {
    let folder = project();
    let journal = Journal::open(folder.path().join("journal"), Default::default()).unwrap();
    let turn = |number| TurnId::new(Uuid::from_u128(number));
    let lead = AgentId::new(Uuid::from_u128(1));
    let held = Some(Hold { since: Some(turn(5)), ..Hold::default() });
    let stop = Event::Interrupted(Interrupted { by: "ada".into(), who: None, ends: false, held });
    let stop = serde_json::to_vec(&stop).unwrap();
    append(&journal, lead, "interrupted", stop.clone()).await;
    assert!(compare_rows(&journal).unwrap().is_empty());
    // One that every build has written since then is missed.
    let late =
        Commit { at_ms: 1_900_000_000_000, appends: vec![entry(lead, "interrupted", stop)], ..Commit::default() };
    journal.commit(late).await.unwrap();
    assert_eq!(compare_rows(&journal).unwrap().count(), 1);
    for (since, faults) in [(5, 0), (4, 1)] {
        let (table, value) = ("stopped".into(), serde_json::to_vec(&turn(since)).unwrap());
        let row = Projection::Put { table, key: lead.to_string(), value, sort_ms: 1_900_000_000_000 };
        journal.commit(Commit { projections: vec![row], ..Commit::default() }).await.unwrap();
        let found = compare_rows(&journal).unwrap();
        assert_eq!(found.count(), faults, "{found:?}");
    }
}

/// The lead starts ann and bob after the readers of a stop were listed and before the lead reads it: it passes the stop on.
#[tokio::test]
async fn a_stop_reaches_teammates_that_begin_before_the_lead_has_read_it() {
    let (folder, journal) = (project(), Journal::memory());
    let team =
        runtime_of(&journal, folder.path(), &BOTH.replace("{text: BOB}", "{text: One moment, delta_ms: 3600000}"));
    let since = TurnId::new(new_id());
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    while inputs(&journal, GENERAL).len() < 2 {
        until(&mut notices, "turn_started").await;
    }
    let [lead, ann, bob] = ["max", "ann", "bob"].map(|name| agent(&journal, session, name));
    let body = json!({ "by": "cli", "stopped": true, "since": since });
    let stop = Envelope::new(key("stop"), owner().address(), format!("agent/{lead}"), MessageKind::Shutdown, body, 1);
    journal.commit(Commit { sends: vec![stop], ..Commit::default() }).await.unwrap();
    let is_at_work = |agent| ReadModel::new(&journal).turn(agent).unwrap().is_busy();
    while is_at_work(ann) || is_at_work(bob) {
        until(&mut notices, "turn_ended").await;
    }
}

/// Whoever ended its last turn by itself has nothing to go on with: that is told by one entry, and the others are not read, even where
/// they cannot be.
#[tokio::test]
async fn finished_agents_are_not_folded_to_continue_others() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), &BOTH.replace("BOB", "Ready."));
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    until_reported(&journal, &mut notices).await;
    order(&team, Command::StopSession { session }).await.unwrap();
    rest(&mut notices).await;
    let bob = agent(&journal, session, "bob");
    let is_bobs = |stream: &str| stream == format!("agent/{bob}");
    let ended = events(&journal).into_iter().rfind(|(stream, event)| is_bobs(stream) && event.name() == "turn_ended");
    append(&journal, bob, "of_tomorrow", b"{}".to_vec()).await;
    append(&journal, bob, "turn_ended", serde_json::to_vec(&ended.unwrap().1).unwrap()).await;
    assert!(ReadModel::new(&journal).turn(bob).is_err());
    let stopped = UserMail::new(&journal).stopped(session).unwrap();
    assert_eq!(stopped.iter().map(|reader| reader.name.as_str()).collect::<Vec<_>>(), ["ann"]);
}

const HOLDERS: &str = r#"
answers:
  - parts:
      - {tool: spawn_teammate, input: {name: ann, role: worker, prompt: Work., auto_claim: true}}
      - {tool: spawn_teammate, input: {name: bob, role: worker, prompt: Work., auto_claim: true}}
  - text: They are here.
  - text: Well.
  - text: Well.
  - text: Well.
  - text: Well.
members:
  ann: [{text: Here.}, {text: I have begun with it.}]
  bob: [{text: Here.}, {text: I have begun with it.}]
"#;

/// Whoever rests with a task in hand takes no other: the bell is for somebody who does.
#[tokio::test]
async fn a_task_rings_for_somebody_with_empty_hands() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), HOLDERS);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    team.ask(query::Settled { session }).await.unwrap();
    for (name, taken) in [("first", 1), ("second", 2)] {
        TaskLists::new(&journal).write(session, &owner(), &subject(name)).await.unwrap();
        while inputs(&journal, GENERAL).iter().filter(|told| told.contains("You have taken")).count() < taken {
            rest(&mut notices).await;
        }
        team.ask(query::Settled { session }).await.unwrap();
    }
}
