//! The three stops: everything in a session, the lead's turn, one agent. A new message wakes only its addressee; `Continue` resumes
//! the rest.

use std::path::Path;

use max_team_core::delegation::tool_filter::GENERAL;
use max_team_core::event::{Event, TurnOutcome};
use max_team_core::id::{SessionId, TurnId};
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::plan::PlanState;
use max_team_core::plan::event::{ApprovalMode, PlanDecision};
use max_team_core::status::{AgentStage, BlockCause, IdleReason};
use max_team_core::task_list::{ListRequest, ListTaskStatus, NewTask, TaskUpdate};
use max_team_journal::{Commit, CrashPoint, Journal};
use max_team_runtime::{
    Command, Enrolled, Fate, Order, READ_ON, ReadModel, RuntimeError, TaskLists, TeamHandle, UserMail, Which, new_id,
    query,
};
use serde_json::json;

use super::calls::{inputs, say};
use super::crashes::{check_rest, events, key};
use super::limits::{only_plan, plan_of};
use super::read::Reads as _;
use super::team::{rest, with_team};
use super::teammates::leading;
use super::{open, order, owner, project, runtime_of, until};

/// What a lead is told behind the words that follow a stop.
const STOPPED: &str = "\n\n(From the program, not from the user.) The user stopped your last turn before it was finished. Nothing \
                       of it goes on by itself.";

const BOB: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: bob, role: worker, prompt: Work.}}]
  - text: At it.
  - text: Noted.
  - text: Noted.
  - text: Noted.
members:
  bob:
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - text: Both.
    - text: More.
    - text: More.
"#;

/// The ways in which a person stops somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Esc, in the chat.
    Key,
    /// `/stop`, in the chat.
    Chat,
    /// `max-team stop bob`.
    Bob,
    /// `max-team stop SESSION`.
    Session,
}

async fn stop(way: Way, team: &TeamHandle, journal: &Journal, session: SessionId) {
    let roll = ReadModel::new(journal).roll(session).unwrap();
    let (post, teammate) = (UserMail::new(journal), roll.teammates.first().and_then(|teammate| teammate.person.agent));
    match way {
        Way::Key => order(team, Command::Interrupt { session }).await.unwrap(),
        Way::Chat => order(team, Command::StopSession { session }).await.unwrap(),
        Way::Bob => post.stop_agent(&owner(), key("stop"), teammate.unwrap()).await.unwrap(),
        Way::Session => post.stop_session(&owner(), session).await.unwrap(),
    }
}

async fn write(team: &TeamHandle, session: SessionId, text: &str) {
    let command = Command::Write { session, to: vec!["bob".into()], text: text.into() };
    team.command(Order { by: owner(), cwd: ".".into(), key: key(text), command }).await.unwrap();
}

fn bob(journal: &Journal, session: SessionId) -> Enrolled {
    ReadModel::new(journal).roll(session).unwrap().teammates.remove(0)
}

#[tokio::test]
async fn messages_to_whoever_is_stopped_wait_for_a_new_one() {
    for (way, goes_on) in [(Way::Chat, false), (Way::Bob, true), (Way::Session, true)] {
        let folder = project();
        let mut journal = Journal::memory();
        let mut team = runtime_of(&journal, folder.path(), BOB);
        let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
        assert!(rest(&mut notices).await.waiting, "bob asks");
        write(&team, session, "second").await;
        rest(&mut notices).await;
        stop(way, &team, &journal, session).await;
        let heard = rest(&mut notices).await;
        assert!(!heard.waiting && heard.names().contains(&"interrupted"), "{way:?}: {:?}", heard.names());
        for restarts in [false, true] {
            if restarts {
                team.shutdown().await.unwrap();
                journal = journal.reopen().unwrap();
                team = runtime_of(&journal, folder.path(), BOB);
                notices = team.watch();
                let opened = team.open(owner(), folder.path(), leading(Which::Latest)).await.unwrap();
                assert_eq!(opened.recovered.mail, 0, "{way:?}");
                // Also where bob alone was stopped: that he was is only told with something else.
                assert!(!opened.continuing, "{way:?}");
                rest(&mut notices).await;
            }
            assert_eq!(inputs(&journal, GENERAL).len(), 1, "{way:?}, {restarts}");
            let bob = bob(&journal, session);
            let reason = IdleReason::Blocked(BlockCause::Messages(1));
            assert_eq!((bob.person.state, bob.person.reason), (AgentStage::Stopped, Some(reason)), "{way:?}");
        }
        if goes_on {
            order(&team, Command::Continue { session, to: vec!["bob".into()] }).await.unwrap();
        } else {
            write(&team, session, "third").await;
        }
        rest(&mut notices).await;
        let told = inputs(&journal, GENERAL).split_off(1).join("|");
        let (second, new) = (told.find("second"), told.find(if goes_on { "Go on with what" } else { "third" }));
        assert!(second.is_some() && new.is_some() && (goes_on || second < new), "{way:?}: {told}");
        assert_eq!(told.matches("second").count(), 1, "{way:?}: {told}");
        assert!(!told.contains('|'), "{way:?}: both in one turn: {told}");
        assert_eq!(bob(&journal, session).unread, 0);
        // That bob was stopped is told with what is said next.
        order(&team, Command::Say { session, text: "go".into() }).await.unwrap();
        rest(&mut notices).await;
        check_rest(&journal);
    }
}

const TWICE: &str = r#"
answers:
  - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
  - text: Both.
  - text: More.
"#;

#[tokio::test]
async fn messages_to_a_stopped_lead_wait_except_after_a_key_stop() {
    for way in [Way::Key, Way::Chat, Way::Session] {
        let folder = project();
        let mut journal = Journal::memory();
        let mut team = runtime_of(&journal, folder.path(), TWICE);
        let (session, mut notices) = say(&team, folder.path(), open(Which::New)).await;
        assert!(rest(&mut notices).await.waiting);
        order(&team, Command::Say { session, text: "use tabs".into() }).await.unwrap();
        stop(way, &team, &journal, session).await;
        until(&mut notices, "turn_ended").await;
        team.ask(query::Settled { session }).await.unwrap();
        if way == Way::Key {
            until(&mut notices, "turn_ended").await;
            assert_eq!(inputs(&journal, "solo"), ["do it", &format!("use tabs{STOPPED}")]);
            continue;
        }
        for restarts in [false, true] {
            if restarts {
                team.shutdown().await.unwrap();
                journal = journal.reopen().unwrap();
                team = runtime_of(&journal, folder.path(), TWICE);
                notices = team.watch();
                let opened = team.open(owner(), folder.path(), open(Which::Latest)).await.unwrap();
                let found = (opened.continuing, opened.queued.len(), opened.recovered.mail);
                assert_eq!(found, (false, 1, 0), "{way:?}");
                rest(&mut notices).await;
            }
            assert_eq!(inputs(&journal, "solo"), ["do it"], "{way:?}, {restarts}");
            let lead = ReadModel::new(&journal).roll(session).unwrap().lead.unwrap().person;
            assert_eq!(lead.state, AgentStage::Stopped, "{lead:?}");
        }
        // What is to have a turn of its own has one.
        let (text, is_alone) = ("and be quick".to_owned(), way == Way::Session);
        let say = if is_alone { Command::Queue { session, text } } else { Command::Say { session, text } };
        order(&team, say).await.unwrap();
        rest(&mut notices).await;
        let told = inputs(&journal, "solo").split_off(1).join("|");
        let alone = format!("use tabs{STOPPED}|and be quick");
        let want = if is_alone { alone } else { format!("use tabs\n\nand be quick{STOPPED}") };
        assert_eq!(told, want, "{way:?}");
        check_rest(&journal);
    }
}

/// A teammate may have said its last word in the moment in which its lead was stopped.
#[tokio::test]
async fn results_of_work_from_before_a_stop_wake_no_agent() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), BOB);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    assert!(rest(&mut notices).await.waiting);
    stop(Way::Chat, &team, &journal, session).await;
    rest(&mut notices).await;
    let lead = inputs(&journal, "max").len();
    // That bob was stopped is told with something else: Max could begin at once.
    let max = ReadModel::new(&journal).roll(session).unwrap().lead.unwrap();
    assert_eq!((max.person.state, max.unread), (AgentStage::Ready, 1));
    let begun = events(&journal).into_iter().filter_map(|(stream, event)| match event {
        Event::TurnStarted(started) => Some((stream, started.turn)),
        _ => None,
    });
    let (stream, turn) = begun.into_iter().next_back().unwrap();
    let late = async |text: &str, turn: TurnId| {
        let to = format!("agent/{}", max.person.agent.unwrap());
        let body = json!({ "mate": "bob", "from": "bob", "color": "blue", "text": text });
        let envelope = Envelope::new(key(text), &*stream, to, MessageKind::TaskResult, body, 1);
        let envelope = Envelope { cause: Some(turn.to_string()), ..envelope };
        journal.commit(Commit { sends: vec![envelope], ..Commit::default() }).await.unwrap();
        rest(&mut team.watch()).await;
    };
    late("of before", turn).await;
    assert_eq!(inputs(&journal, "max").len(), lead);
    late("of later", TurnId::new(new_id())).await;
    let told = inputs(&journal, "max").split_off(lead).join("|");
    assert!(told.contains("of before") && told.contains("of later") && !told.contains('|'), "{told}");
}

const ESC: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: bob, role: worker, prompt: Work.}}]
  - parts: [{tool: agent, input: {description: look, prompt: Look., type: explore}}]
members:
  bob: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Done.}]
  explore: [{text: One moment, delta_ms: 3600000}]
"#;

#[tokio::test]
async fn esc_stops_the_turn_and_the_called_agent_and_no_teammate() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), ESC);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    while inputs(&journal, "explore").is_empty() || UserMail::new(&journal).inbox().unwrap().is_empty() {
        notices.recv().await.unwrap();
    }
    stop(Way::Key, &team, &journal, session).await;
    assert!(rest(&mut notices).await.waiting, "bob still asks");
    let turn = |name: &str| {
        let row = ReadModel::new(&journal).agents(session).unwrap().into_iter().find(|row| row.name == name).unwrap();
        ReadModel::new(&journal).turn(row.agent).unwrap()
    };
    assert_eq!(turn("explore").last().unwrap().end, TurnOutcome::Interrupted);
    assert_eq!(turn("max").last().unwrap().end, TurnOutcome::Interrupted);
    assert!(turn("max").held().is_none() && turn("bob").is_busy());
}

const PLAN: &str = r#"
answers: [{text: Hello.}, {text: Well.}, {text: Well.}]
members:
  ada/a: [{text: One moment, delta_ms: 3600000}, {text: done}]
  leo/b: [{text: done}]
"#;

/// A running plan is stopped with its session. A message to the lead wakes the lead alone; then the plan goes on, or is given up.
#[tokio::test]
async fn a_stopped_plan_stays_stopped_until_it_is_continued_or_given_up() {
    for continues in [true, false] {
        let (folder, journal) = (project(), Journal::memory());
        let team = runtime_of(&journal, folder.path(), PLAN);
        let mut notices = team.watch();
        let opened = team.open(owner(), folder.path(), with_team(Which::New, ApprovalMode::Plan)).await.unwrap();
        let session = opened.session;
        let draft = plan_of(
            r#"[{"id": "a", "agent": "ada", "description": "A"},
                {"id": "b", "agent": "leo", "description": "B", "needs": ["a"]}]"#,
        );
        order(&team, Command::Propose { session, draft, source: "a test".into() }).await.unwrap();
        let (question, _) = rest(&mut notices).await.asked();
        order(&team, Command::Decide { question, say: PlanDecision::Approve }).await.unwrap();
        until(&mut notices, "task_started").await;
        stop(Way::Session, &team, &journal, session).await;
        until(&mut notices, "task_paused").await;
        team.ask(query::Settled { session }).await.unwrap();
        let plan = only_plan(&journal);
        let state = |journal: &Journal| {
            let census = ReadModel::new(journal);
            census.plan_state(&census.plan(plan).unwrap()).unwrap()
        };
        assert_eq!(state(&journal), PlanState::Stopped);
        team.shutdown().await.unwrap();
        let journal = journal.reopen().unwrap();
        let team = runtime_of(&journal, folder.path(), PLAN);
        let mut notices = team.watch();
        team.open(owner(), folder.path(), with_team(Which::Latest, ApprovalMode::Plan)).await.unwrap();
        order(&team, Command::Say { session, text: "hello".into() }).await.unwrap();
        until(&mut notices, "turn_ended").await;
        team.ask(query::Settled { session }).await.unwrap();
        assert_eq!((state(&journal), inputs(&journal, "ada").len()), (PlanState::Stopped, 1), "only max begins");
        assert_eq!(UserMail::new(&journal).stopped_plans(session).unwrap(), [plan]);
        match continues {
            true => order(&team, Command::Continue { session, to: Vec::new() }).await.unwrap(),
            false => order(&team, Command::Stop { plan, task: None }).await.unwrap(),
        }
        until(&mut notices, "plan_ended").await;
        assert_eq!(state(&journal), if continues { PlanState::Done } else { PlanState::Stopped });
        assert_eq!(inputs(&journal, "leo").len(), usize::from(continues));
        if continues {
            let told = inputs(&journal, "ada").pop().unwrap();
            assert!(told.contains("go on where you were"), "{told}");
        }
    }
}

const CLAIMERS: &str = r#"
answers:
  - parts:
      - {tool: spawn_teammate, input: {name: ann, role: worker, prompt: Work., auto_claim: true}}
      - {tool: spawn_teammate, input: {name: bob, role: worker, prompt: Work., auto_claim: true}}
  - text: At it.
  - text: Noted.
  - text: Noted.
  - text: Noted.
members:
  STOPPED:
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
  FREE:
    - text: Ready.
    - text: Taken.
"#;

/// Changes the shared list, as a user does.
async fn list(journal: &Journal, session: SessionId, input: ListRequest) {
    TaskLists::new(journal).write(session, &owner(), &input).await.unwrap();
}

fn new(subject: &str) -> ListRequest {
    ListRequest::Create(NewTask { subject: subject.into(), ..NewTask::default() })
}

/// Two tasks of which the second waits for the first, which is the user's.
async fn list_two(journal: &Journal, session: SessionId) {
    let update = |update: TaskUpdate| ListRequest::Update(Box::new(update));
    list(journal, session, new("first")).await;
    list(journal, session, update(TaskUpdate { id: "1".into(), owner: Some("user".into()), ..TaskUpdate::default() }))
        .await;
    list(journal, session, new("second")).await;
    list(
        journal,
        session,
        update(TaskUpdate { id: "2".into(), blocked_by: vec!["1".into()], ..TaskUpdate::default() }),
    )
    .await;
}

/// The second can be taken from now on, and is no newer than it was.
fn done() -> ListRequest {
    ListRequest::Update(Box::new(TaskUpdate {
        id: "1".into(),
        status: Some(ListTaskStatus::Completed),
        ..TaskUpdate::default()
    }))
}

/// A free task is taken by a teammate that was not stopped.
#[tokio::test]
async fn a_stopped_teammate_leaves_a_task_to_another() {
    for (stopped, free) in [("ann", "bob"), ("bob", "ann")] {
        let (folder, journal) = (project(), Journal::memory());
        let recording = CLAIMERS.replace("STOPPED", stopped).replace("FREE", free);
        let team = runtime_of(&journal, folder.path(), &recording);
        let mut notices = team.watch();
        let session = team.open(owner(), folder.path(), leading(Which::New)).await.unwrap().session;
        list_two(&journal, session).await;
        order(&team, Command::Say { session, text: "do it".into() }).await.unwrap();
        assert!(rest(&mut notices).await.waiting, "{stopped} asks");
        let teammates = ReadModel::new(&journal).roll(session).unwrap().teammates;
        let agent =
            teammates.into_iter().find(|teammate| teammate.person.name == stopped).unwrap().person.agent.unwrap();
        UserMail::new(&journal).stop_agent(&owner(), key("stop"), agent).await.unwrap();
        rest(&mut notices).await;
        list(&journal, session, done()).await;
        until(&mut notices, "turn_started").await;
        let tasks = team.tasks(session).unwrap();
        assert_eq!(tasks.find("2").unwrap().state.owner, free);
    }
}

const CLAIMER: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: ann, role: worker, prompt: Work., auto_claim: true}}]
  - text: At it.
  - text: Noted.
  - text: Noted.
members:
  ann:
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - text: Taken.
    - text: Taken.
"#;

/// A new task on the list is no message: a stopped teammate takes none before it is written to or continued.
#[tokio::test]
async fn a_stopped_teammate_takes_no_task_before_a_message_or_continue() {
    for (way, writes) in [(Way::Bob, true), (Way::Chat, false)] {
        let (folder, journal) = (project(), Journal::memory());
        let team = runtime_of(&journal, folder.path(), CLAIMER);
        let mut notices = team.watch();
        let session = team.open(owner(), folder.path(), leading(Which::New)).await.unwrap().session;
        order(&team, Command::Say { session, text: "do it".into() }).await.unwrap();
        assert!(rest(&mut notices).await.waiting, "ann asks");
        stop(way, &team, &journal, session).await;
        rest(&mut notices).await;
        list(&journal, session, new("third")).await;
        team.ask(query::Settled { session }).await.unwrap();
        assert_eq!(inputs(&journal, GENERAL).len(), 1, "{way:?}");
        let to = vec!["ann".to_owned()];
        let command = match writes {
            true => Command::Write { session, to, text: "go".into() },
            false => Command::Continue { session, to },
        };
        order(&team, command).await.unwrap();
        while !inputs(&journal, GENERAL).iter().any(|told| told.contains("You have taken")) {
            rest(&mut notices).await;
        }
    }
}

const CAROL: &str = r#"
answers:
  - parts:
      - {tool: spawn_teammate, input: {name: bob, role: worker, prompt: Work.}}
      - {tool: spawn_teammate, input: {name: carol, role: worker, prompt: Work.}}
  - text: At it.
  - text: Noted.
  - text: Noted.
members:
  bob:
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - parts: [{tool: send_message, input: {to: carol, message: of later}}]
    - text: Said.
  carol: [{text: Ready.}, {text: Read.}, {text: Read.}]
"#;

/// A teammate's last message is on its way to an idle one when the session is stopped.
#[tokio::test]
async fn a_session_stop_holds_idle_teammates_too() {
    let (folder, mut journal) = (project(), Journal::memory());
    let mut team = runtime_of(&journal, folder.path(), CAROL);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    assert!(rest(&mut notices).await.waiting, "bob asks");
    stop(Way::Chat, &team, &journal, session).await;
    rest(&mut notices).await;
    let teammates = ReadModel::new(&journal).roll(session).unwrap().teammates;
    let agent =
        |name: &str| teammates.iter().find(|teammate| teammate.person.name == name).unwrap().person.agent.unwrap();
    let [bob, carol] = ["bob", "carol"].map(agent);
    let held: Vec<_> =
        [bob, carol].map(|agent| ReadModel::new(&journal).turn(agent).unwrap().held().unwrap().since).into();
    let lead = ReadModel::new(&journal).roll(session).unwrap().lead.unwrap().person.agent.unwrap();
    let since = ReadModel::new(&journal).turn(lead).unwrap().held().unwrap().since;
    assert!(since.is_some() && held.iter().all(|held| *held == since), "{since:?} {held:?}");
    let begun = events(&journal).into_iter().find_map(|(stream, event)| match event {
        Event::TurnStarted(started) if stream == format!("agent/{bob}") => Some(started.turn),
        _ => None,
    });
    let late = async |journal: &Journal| {
        let body = json!({ "from": "bob", "color": "blue", "text": "of before" });
        let envelope =
            Envelope::new(key("late"), format!("agent/{bob}"), format!("agent/{carol}"), MessageKind::Text, body, 1);
        let envelope = Envelope { cause: begun.map(|turn| turn.to_string()), ..envelope };
        journal.commit(Commit { sends: vec![envelope], ..Commit::default() }).await.unwrap();
    };
    late(&journal).await;
    rest(&mut team.watch()).await;
    team.shutdown().await.unwrap();
    journal = journal.reopen().unwrap();
    team = runtime_of(&journal, folder.path(), CAROL);
    notices = team.watch();
    let opened = team.open(owner(), folder.path(), leading(Which::Latest)).await.unwrap();
    assert!(!opened.continuing && opened.recovered.mail == 0, "{opened:?}");
    rest(&mut notices).await;
    assert_eq!(inputs(&journal, GENERAL).len(), 2, "carol begins nothing");
    // It counts as what waits, though no stop has named it.
    let waits = UserMail::new(&journal).stopped(session).unwrap();
    assert!(waits.iter().any(|reader| reader.name == "carol"), "{waits:?}");
    // What bob writes himself, in a turn that began later, is news; with it she is told what waited.
    write(&team, session, "go").await;
    rest(&mut notices).await;
    let told = inputs(&journal, GENERAL).split_off(3).join("|");
    assert!(told.contains("of before") && told.contains("of later") && !told.contains('|'), "{told}");
    let envelopes = ReadModel::new(&journal).messages(session).unwrap();
    let wrote = envelopes.into_iter().find(|envelope| envelope.text() == "of later").unwrap().envelope;
    let turn = ReadModel::new(&journal).turn(bob).unwrap().last().unwrap().turn;
    assert_eq!(wrote.cause, Some(turn.to_string()), "whoever writes says in which turn");
    assert!(Some(turn) > since, "and that is newer than the stop");
}

const RESTS: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: bob, role: worker, prompt: Work.}}]
  - text: At it.
  - text: Noted.
  - text: Noted.
members:
  bob: [{text: Ready.}, {text: More.}]
"#;

/// Nobody runs the session: what is written to one who rests would begin with the next process.
#[tokio::test]
async fn one_who_is_about_to_begin_can_be_stopped() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), RESTS);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    team.shutdown().await.unwrap();
    let journal = journal.reopen().unwrap();
    let (post, census) = (UserMail::new(&journal), ReadModel::new(&journal));
    assert!(census.at_work(session).unwrap().is_empty());
    post.write(&owner(), key("second"), session, &["bob".to_owned()], "second").await.unwrap();
    let agent = bob(&journal, session).person.agent.unwrap();
    assert_eq!(census.at_work(session).unwrap(), [agent]);
    post.stop_agent(&owner(), key("stop"), agent).await.unwrap();
    let begun = inputs(&journal, GENERAL).len();
    let team = runtime_of(&journal, folder.path(), RESTS);
    let mut notices = team.watch();
    team.open(owner(), folder.path(), leading(Which::Latest)).await.unwrap();
    rest(&mut notices).await;
    assert_eq!((inputs(&journal, GENERAL).len(), bob(&journal, session).unread), (begun, 1));
    assert!(census.at_work(session).unwrap().is_empty(), "it is held");
    // It was at nothing: it is only to read.
    order(&team, Command::Continue { session, to: vec!["bob".into()] }).await.unwrap();
    rest(&mut notices).await;
    let told = inputs(&journal, GENERAL).split_off(begun).join("|");
    assert!(told.contains("second") && told.contains(READ_ON.trim_end()) && !told.contains('|'), "{told}");
    assert_eq!(told.matches("The user writes to you").count(), 1, "nobody wrote that it is to read: {told}");
}

const READY: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: bob, role: worker, prompt: Be ready.}}]
  - text: At it.
  - text: Noted.
members:
  bob:
    - text: Ready.
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
"#;

/// What somebody is at is what its turn is about, and not what it was once started for; so is the time.
#[tokio::test]
async fn an_agent_is_shown_with_the_task_of_its_turn() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), READY);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    let census = ReadModel::new(&journal);
    let started = census.roll(session).unwrap().teammates.remove(0).person.since_ms.unwrap();
    // Ids of turns are newer than everything before them, to the millisecond at least.
    let later = std::iter::repeat_with(|| new_id().get_timestamp().unwrap().to_unix());
    let at_ms = |(secs, nanos): (u64, u32)| i64::try_from(secs * 1_000 + u64::from(nanos / 1_000_000)).unwrap();
    let later = later.map(at_ms).find(|at_ms| *at_ms > started).unwrap();
    write(&team, session, "put two into a.txt").await;
    assert!(rest(&mut notices).await.waiting, "bob asks");
    let people = census.people(later, false).unwrap();
    let bob = people.iter().find(|person| person.name == "bob").unwrap();
    assert!(bob.since_ms >= Some(later), "{bob:?}: {later}");
    assert_eq!(census.roll(session).unwrap().teammates[0].title, "put two into a.txt");
    team.shutdown().await.unwrap();
    let journal = journal.reopen().unwrap();
    let team = runtime_of(&journal, folder.path(), READY);
    let opened = team.open(owner(), folder.path(), leading(Which::Latest)).await.unwrap();
    let tasks: Vec<Option<String>> = opened.asked.into_iter().map(|asked| asked.task).collect();
    assert_eq!(tasks, [Some("put two into a.txt".to_owned())]);
}

/// A teammate that was stopped and has gone on since is not told of as stopped.
#[tokio::test]
async fn a_teammate_that_has_gone_on_is_not_told_of_as_stopped() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), BOB);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    assert!(rest(&mut notices).await.waiting, "bob asks");
    stop(Way::Chat, &team, &journal, session).await;
    rest(&mut notices).await;
    order(&team, Command::Continue { session, to: vec!["bob".into()] }).await.unwrap();
    while inputs(&journal, "max").len() < 2 {
        rest(&mut notices).await;
    }
    let told = inputs(&journal, "max").pop().unwrap();
    assert!(told.contains("Both.") && !told.contains("stopped"), "it has gone on since: {told}");
}

/// No process runs the session, and a teammate was in the middle of a turn while the lead rested: the turn does not go on, and a
/// message that is written after the stop begins the next one.
#[tokio::test]
async fn a_stop_counts_from_when_it_was_written() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), CLAIMER);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    assert!(rest(&mut notices).await.waiting, "ann asks");
    team.shutdown().await.unwrap();
    let journal = journal.reopen().unwrap();
    let (post, census) = (UserMail::new(&journal), ReadModel::new(&journal));
    let lead = census.roll(session).unwrap().lead.unwrap().person.agent.unwrap();
    let [ann] = census.at_work(session).unwrap().try_into().unwrap();
    assert_ne!(ann, lead);
    post.stop_session(&owner(), session).await.unwrap();
    assert!(census.turn(ann).unwrap().is_busy(), "no process has read it");
    assert!(post.inbox().unwrap().is_empty(), "an answer to her question changes nothing");
    post.write(&owner(), key("later"), session, &["ann".to_owned()], "later").await.unwrap();
    let team = runtime_of(&journal, folder.path(), CLAIMER);
    let mut notices = team.watch();
    team.open(owner(), folder.path(), leading(Which::Latest)).await.unwrap();
    while inputs(&journal, GENERAL).len() < 2 {
        rest(&mut notices).await;
    }
    team.ask(query::Settled { session }).await.unwrap();
    let [_, told] = inputs(&journal, GENERAL).try_into().unwrap();
    assert!(told.contains("later"), "{told}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one\n");
}

const CALLED: &str = r#"
answers:
  - parts: [{tool: agent, input: {description: look, prompt: Look., type: explore}}]
  - text: Seen.
members:
  explore: [{text: Looked.}, {text: One moment, delta_ms: 3600000}, {text: Here.}]
"#;

/// Whoever was called once goes on for a person who writes to it: no call of anybody's would stop it, and none is made again.
#[tokio::test]
async fn one_that_was_called_is_stopped_and_goes_on_also_while_it_works_for_a_person() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), CALLED);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    let agents = ReadModel::new(&journal).agents(session).unwrap();
    let called = agents.into_iter().find(|row| row.name == "explore").unwrap();
    order(&team, Command::Write { session, to: vec![called.handle()], text: "again".into() }).await.unwrap();
    until(&mut notices, "turn_started").await;
    order(&team, Command::StopSession { session }).await.unwrap();
    rest(&mut notices).await;
    let last = || ReadModel::new(&journal).turn(called.agent).unwrap().last().unwrap().clone();
    assert_eq!(last().end, TurnOutcome::Interrupted);
    let stopped = UserMail::new(&journal).stopped(session).unwrap();
    assert_eq!(stopped.into_iter().map(|reader| reader.name).collect::<Vec<_>>(), [called.handle()]);
    order(&team, Command::Continue { session, to: Vec::new() }).await.unwrap();
    rest(&mut notices).await;
    assert_eq!((last().end, last().text.as_str()), (TurnOutcome::Answered, "Here."));
    let envelopes = ReadModel::new(&journal).messages(session).unwrap();
    assert!(envelopes.iter().any(|envelope| envelope.text() == "Here." && envelope.envelope.to.starts_with("user/")));
}

async fn play(journal: &Journal, root: &Path, words: &str) {
    let team = runtime_of(journal, root, BOB);
    let mut notices = team.watch();
    let which = if team.sessions(1).unwrap().is_empty() { Which::New } else { Which::Latest };
    let session = team.open(owner(), root, leading(which)).await.unwrap().session;
    if words == "second" {
        let command = Command::Say { session, text: "go".into() };
        team.command(Order { by: owner(), cwd: ".".into(), key: key("go"), command }).await.unwrap();
        until(&mut notices, "question_asked").await;
    }
    rest(&mut notices).await;
    if !words.is_empty() {
        write(&team, session, words).await;
        rest(&mut notices).await;
    }
    if words == "second" {
        stop(Way::Bob, &team, journal, session).await;
        rest(&mut notices).await;
    }
    if words == "third" {
        order(&team, Command::Say { session, text: "go".into() }).await.unwrap();
        rest(&mut notices).await;
    }
}

/// Killed at each commit: once the stop is in the journal, what it found waiting waits, and is told once.
#[test]
fn whenever_the_program_dies_a_stop_holds() {
    let mut checked = 0;
    for commit in 1.. {
        let folder = project();
        let mut journal = Journal::memory();
        let survived =
            super::lives(&journal, Some((CrashPoint::After, commit)), play(&journal, folder.path(), "second"));
        journal = journal.reopen().unwrap();
        if journal.has_mail(key("stop")).unwrap() {
            assert!(super::lives(&journal, None, play(&journal, folder.path(), "")));
            let told = inputs(&journal, GENERAL).join("|");
            assert!(!told.contains("second"), "killed at commit {commit}: {told}");
            journal = journal.reopen().unwrap();
            assert!(super::lives(&journal, None, play(&journal, folder.path(), "third")));
            let told = inputs(&journal, GENERAL).join("|");
            assert_eq!((told.matches("second").count(), told.matches("third").count()), (1, 1), "{told}");
            assert!(told.find("second") < told.find("third"), "killed at commit {commit}: {told}");
            check_rest(&journal);
            checked += 1;
        }
        if survived {
            break;
        }
    }
    assert!(checked > 2, "a story that short proves nothing");
}

/// A teammate's message is its own to give back, like a lead's.
#[tokio::test]
async fn a_message_to_a_teammate_is_taken_back_before_it_is_read() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), BOB);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    assert!(rest(&mut notices).await.waiting, "bob asks");
    let fate = |text: &str| {
        let all = ReadModel::new(&journal).messages(session).unwrap();
        all.into_iter().find(|envelope| envelope.text() == text).unwrap().fate
    };
    let take_back = async |text: &str| order(&team, Command::Withdraw { session, envelope: key(text) }).await;
    write(&team, session, "second").await;
    assert_eq!(fate("second"), Fate::Delivered);
    take_back("second").await.unwrap();
    assert_eq!(fate("second"), Fate::Withdrawn);
    assert!(matches!(take_back("second").await, Err(RuntimeError::Taken)));
    write(&team, session, "third").await;
    stop(Way::Bob, &team, &journal, session).await;
    rest(&mut notices).await;
    write(&team, session, "fourth").await;
    rest(&mut notices).await;
    assert!(matches!(take_back("third").await, Err(RuntimeError::Taken)), "it was read");
    let told = inputs(&journal, GENERAL).join("|");
    let (third, fourth) = (told.find("third"), told.find("fourth"));
    assert!(third.is_some() && third < fourth && !told.contains("second"), "{told}");
}
