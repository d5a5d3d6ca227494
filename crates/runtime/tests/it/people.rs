//! What people do to a team from outside: write, let more begin, end somebody; and what became of each message.

use max_team_core::event::Event;
use max_team_core::id::{AgentId, EnvelopeId, PlanId, QuestionId, SessionId, TurnId};
use max_team_core::message::{Envelope, MessageKind, Principal, Role};
use max_team_core::plan::event::PlanDecision;
use max_team_core::policy::{DecidedBy, Mode, PermissionAnswer};
use max_team_core::status::{BlockCause, IdleReason, SuspendedWork};
use max_team_journal::{Commit, Journal};
use max_team_runtime::{
    Caches, Command, EndMode, Fate, MailRecord, Order, ReadModel, RuntimeError, ShownContent, Spawn, TeamHandle,
    UserMail, Which,
};
use serde_json::json;
use uuid::Uuid;

use super::calls::say;
use super::crashes::{check_rest, events};
use super::team::rest;
use super::teammates::leading;
use super::{project, runtime_of};

const ALICE: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: alice, role: backend, prompt: Make a schema.}}]
  - text: At it.
  - text: Noted.
  - text: Noted.
  - text: Noted.
  - text: Noted.
members:
  alice: [{text: Made.}, {text: Tabs it is., given: use tabs, otherwise: No.}, {text: More.}]
  bob: [{text: Here.}, {text: Again.}]
  dora: [{text: Here.}]
"#;

fn by() -> Principal {
    Principal { door: "test".into(), user: "ada".into(), role: Role::Owner }
}

fn key(number: u128) -> EnvelopeId {
    EnvelopeId::new(Uuid::from_u128(number))
}

async fn order(team: &TeamHandle, number: u128, command: Command) -> Result<(), RuntimeError> {
    team.command(Order { by: by(), cwd: String::new(), key: key(number), command }).await
}

fn envelopes(journal: &Journal, session: SessionId) -> Vec<MailRecord> {
    ReadModel::new(journal).messages(session).unwrap()
}

fn fate_of(journal: &Journal, session: SessionId, text: &str) -> Fate {
    envelopes(journal, session).into_iter().find(|envelope| envelope.text() == text).unwrap().fate
}

#[tokio::test]
async fn words_for_a_teammate_are_read_once_and_answered_to_the_user() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), ALICE);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    let write = || Command::Write { session, to: vec!["alice".into()], text: "use tabs".into() };
    order(&team, 7, write()).await.unwrap();
    order(&team, 7, write()).await.unwrap();
    rest(&mut notices).await;
    let all = envelopes(&journal, session);
    let sent: Vec<&MailRecord> = all.iter().filter(|envelope| envelope.text() == "use tabs").collect();
    assert!(matches!(sent.as_slice(), [one] if matches!(one.fate, Fate::Acted(Some(_)))), "{sent:?}");
    let answer = all.iter().find(|envelope| envelope.text() == "Tabs it is.").unwrap();
    assert_eq!((answer.from.as_str(), answer.to.as_str(), &answer.fate), ("alice", "user", &Fate::Delivered));
    for (to, wanted) in [("carol", "there are `alice`, `max`, `team`"), ("alcie", "there is no agent `alcie`")] {
        let refused = order(&team, 8, Command::Write { session, to: vec![to.into()], text: "hi".into() }).await;
        assert!(refused.as_ref().is_err_and(|error| error.to_string().contains(wanted)), "{refused:?}");
    }
    check_rest(&journal);
}

#[tokio::test]
async fn of_messages_to_a_person_those_that_were_shown_are_read() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), ALICE);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    order(&team, 7, Command::Write { session, to: vec!["alice".into()], text: "use tabs".into() }).await.unwrap();
    rest(&mut notices).await;
    let alice = ReadModel::new(&journal).roll(session).unwrap().teammates[0].person.agent.unwrap();
    let ended = events(&journal).into_iter().filter_map(|(stream, event)| match event {
        Event::TurnEnded(ended) if stream == format!("agent/{alice}") => Some(ended.turn),
        _ => None,
    });
    let [made, answered] = *ended.collect::<Vec<TurnId>>() else { panic!("two turns") };
    let fate = || fate_of(&journal, session, "Tabs it is.");
    let others = [
        ShownContent::Message(key(1)),
        ShownContent::Message(key(7)),
        ShownContent::Turn(alice, made),
        ShownContent::End(alice),
    ];
    let read = async |by: Principal, shown: &[ShownContent]| {
        let command = Command::MarkRead { shown: shown.to_vec() };
        team.command(Order { by, cwd: ".".into(), key: key(9), command }).await
    };
    read(by(), &others).await.unwrap();
    assert_eq!(fate(), Fate::Delivered);
    read(Principal { user: "bob".into(), ..by() }, &[ShownContent::Turn(alice, answered)]).await.unwrap();
    assert_eq!(fate(), Fate::Delivered, "it is not his");
    let viewer = read(Principal { role: Role::Viewer, ..by() }, &[ShownContent::Turn(alice, answered)]).await;
    assert!(matches!(viewer, Err(RuntimeError::RoleTooLow { .. })), "{viewer:?}");
    assert_eq!(fate(), Fate::Delivered, "a viewer changes nothing");
    read(by(), &[ShownContent::Turn(alice, answered)]).await.unwrap();
    assert_eq!(fate(), Fate::Read(None));
    read(by(), &[ShownContent::Turn(alice, answered)]).await.unwrap();
    check_rest(&journal);
}

/// Commands without a running team write through `UserMail`, which checks the role as `TeamHandle` does.
#[tokio::test]
async fn mail_without_a_running_team_needs_the_role_of_its_command() {
    let journal = Journal::memory();
    let (post, session, to) = (UserMail::new(&journal), SessionId::new(Uuid::from_u128(1)), ["eva".to_owned()]);
    let (question, plan) = (QuestionId::new(Uuid::from_u128(2)), PlanId::new(Uuid::from_u128(3)));
    let agent = AgentId::new(Uuid::from_u128(4));
    let yes = PermissionAnswer::new(true, DecidedBy::Person("ada".into()));
    for role in [Role::Viewer, Role::Member, Role::Owner] {
        let by = Principal { role, ..by() };
        let table = [
            (Role::Member, post.write(&by, key(1), session, &to, "hi").await.err()),
            (Role::Member, post.go_on(&by, session, &to).await.err()),
            (Role::Member, post.stop(&by, key(2), plan, None).await.err()),
            (Role::Member, post.stop_agent(&by, key(3), agent).await.err()),
            (Role::Member, post.stop_session(&by, session).await.err()),
            (Role::Member, post.mark_read(&by, &[]).await.err()),
            (Role::Owner, post.answer(&by, key(4), question, &yes).await.err()),
            (Role::Owner, post.decide(&by, key(5), question, &PlanDecision::Approve).await.err()),
            (Role::Owner, post.part(&by, key(6), session, &to, EndMode::Asked).await.err()),
            (Role::Owner, post.set_mode(&by, key(7), session, &to, Mode::Plan).await.err()),
            (Role::Owner, post.recruit(&by, key(8), session, &[]).await.err()),
            (Role::Owner, Caches::new(&journal).clear("tides", &by).await.err()),
        ];
        for (number, (least, refused)) in table.into_iter().enumerate() {
            let is_refused = matches!(refused, Some(RuntimeError::RoleTooLow { .. }));
            assert_eq!(is_refused, role < least, "{number} {role:?}: {refused:?}");
        }
    }
}

#[tokio::test]
async fn teammates_that_a_user_wants_begin_once() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), ALICE);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    let spawn = |name: &str, kind: Option<&str>| Spawn {
        name: name.into(),
        prompt: "Be there.".into(),
        kind: kind.map(str::to_owned),
        ..Spawn::default()
    };
    let painted = |name: &str, color: &str| Spawn { color: Some(color.into()), ..spawn(name, None) };
    let names = |journal: &Journal| {
        let teammates = ReadModel::new(journal).roll(session).unwrap().teammates.into_iter();
        teammates.map(|teammate| (teammate.person.name, teammate.color)).collect::<Vec<_>>()
    };
    // Not all of them can, so nobody does.
    let odd = vec![spawn("bob", None), spawn("alice", None), spawn("carl", Some("wizard"))];
    order(&team, 8, Command::Team { session, teammates: odd }).await.unwrap();
    rest(&mut notices).await;
    assert_eq!(names(&journal), [("alice".to_owned(), "blue".to_owned())]);
    let request =
        envelopes(&journal, session).into_iter().find(|envelope| envelope.envelope.kind == MessageKind::TeamRequest);
    let why = request.unwrap().fate.why().unwrap().to_owned();
    for wanted in ["`alice` is there already", "there is no type `wizard`; there are `explore`, `general`"] {
        assert!(why.contains(wanted), "{why}");
    }
    // Nobody is called like somebody else, nor so that people would think so.
    let odd = ["leo", "Leo", "explore", "а1ice", "аӏісе", "7"].map(|name| spawn(name, None)).to_vec();
    order(&team, 7, Command::Team { session, teammates: odd }).await.unwrap();
    rest(&mut notices).await;
    let request =
        envelopes(&journal, session).into_iter().rfind(|envelope| envelope.envelope.kind == MessageKind::TeamRequest);
    let why = request.unwrap().fate.why().unwrap().to_owned();
    for name in ["leo", "Leo", "explore", "а1ice", "аӏісе", "7"] {
        assert!(why.contains(&format!("`{name}`: ")), "{name}: {why}");
    }
    // Nobody is painted like somebody else who is there or comes; a colour of former times is one that is free.
    let teammates = vec![painted("bob", "teal"), painted("dora", "green")];
    order(&team, 9, Command::Team { session, teammates: teammates.clone() }).await.unwrap();
    rest(&mut notices).await;
    order(&team, 9, Command::Team { session, teammates }).await.unwrap();
    let want = [("alice", "blue"), ("bob", "yellow"), ("dora", "green")];
    assert_eq!(names(&journal), want.map(|(name, color)| (name.to_owned(), color.to_owned())));
    let roll = ReadModel::new(&journal).roll(session).unwrap();
    assert_eq!(roll.teammates[1].spawn.prompt, "Be there.");
    check_rest(&journal);
}

#[tokio::test]
async fn messages_that_no_agent_will_read_come_back() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), ALICE);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    team.close(session).await;
    let post = UserMail::new(&journal);
    let alice = || vec!["alice".to_owned()];
    let written = post.part(&by(), key(1), session, &alice(), EndMode::Told).await.unwrap();
    let fate = |id| envelopes(&journal, session).into_iter().find(|envelope| envelope.envelope.id == id).unwrap().fate;
    assert_eq!(fate(written.envelopes[0].id), Fate::Queued);
    let open = leading(Which::Id(session));
    team.open(by(), folder.path(), open).await.unwrap();
    rest(&mut notices).await;
    assert_eq!(fate(written.envelopes[0].id), Fate::Acted(None));
    // Somebody has written before they could know: it is sent back, also to one who has gone home.
    let late = Envelope {
        id: key(2),
        kind: MessageKind::UserInput,
        body: json!({ "text": "too late" }),
        ..written.envelopes[0].clone()
    };
    journal.commit(Commit { sends: vec![late], ..Commit::default() }).await.unwrap();
    rest(&mut notices).await;
    let fate = fate_of(&journal, session, "too late");
    assert!(matches!(&fate, Fate::Dead { why, .. } if why.contains("it has ended")), "{fate:?}");
    let gone = post.write(&by(), key(3), session, &alice(), "hello?").await;
    assert!(matches!(gone, Err(RuntimeError::Gone { .. })), "{gone:?}");
    let lead = post.part(&by(), key(4), session, &["max".to_owned()], EndMode::Asked).await;
    assert!(matches!(lead, Err(RuntimeError::NoReader { .. })), "{lead:?}");
    check_rest(&journal);
}

const ASKING: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: bob, role: worker, prompt: Work.}}]
  - text: At it.
  - text: Noted.
members:
  bob:
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - text: Done.
"#;

/// What was written to all is taken back from whoever has not read it, and whoever has is named.
#[tokio::test]
async fn a_message_to_all_is_taken_back_at_once() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), ASKING);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    assert!(rest(&mut notices).await.waiting, "bob asks, and reads nothing meanwhile");
    order(&team, 7, Command::Write { session, to: vec!["team".into()], text: "hold on".into() }).await.unwrap();
    rest(&mut notices).await;
    let taken = order(&team, 8, Command::Withdraw { session, envelope: key(7) }).await;
    assert!(matches!(&taken, Err(RuntimeError::TakenBy(names)) if *names == ["max"]), "{taken:?}");
    let fates = envelopes(&journal, session).into_iter().filter(|envelope| envelope.text() == "hold on");
    let mut fates: Vec<(String, bool)> =
        fates.map(|envelope| (envelope.to, envelope.fate == Fate::Withdrawn)).collect();
    fates.sort();
    assert_eq!(fates, [("bob".to_owned(), true), ("max".to_owned(), false)]);
    let late = order(&team, 9, Command::Withdraw { session, envelope: key(7) }).await;
    assert!(matches!(late, Err(RuntimeError::Taken)), "{late:?}");
    // Where nobody has the session open it waits for all of them, and the lead's copy says so.
    team.close(session).await;
    let all = UserMail::new(&journal).write(&by(), key(13), session, &["team".into()], "hold on").await.unwrap();
    assert_eq!(all.envelopes.len(), 2, "{all:?}");
    let opened = team.open(by(), folder.path(), leading(Which::Id(session))).await.unwrap();
    let queued: Vec<(&str, bool)> = opened.queued.iter().map(|queued| (queued.text.as_str(), queued.all)).collect();
    assert_eq!(queued, [("hold on", true)]);
}

const TWO_ASKING: &str = r#"
answers:
  - parts:
      - {tool: spawn_teammate, input: {name: bob, role: worker, prompt: Work.}}
      - {tool: spawn_teammate, input: {name: amy, role: worker, prompt: Work.}}
  - text: At it.
  - text: Noted.
  - text: Noted.
members:
  bob:
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - text: Done.
  amy:
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - text: Done.
"#;

/// Of those from whom it could not be taken back only they are said to have read it who have: one that ended gave it back.
#[tokio::test]
async fn an_agent_that_ended_without_reading_has_not_read() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), TWO_ASKING);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    assert!(rest(&mut notices).await.waiting, "both ask, and read nothing meanwhile");
    order(&team, 7, Command::Write { session, to: vec!["team".into()], text: "hold on".into() }).await.unwrap();
    rest(&mut notices).await;
    UserMail::new(&journal).part(&by(), key(8), session, &["amy".into()], EndMode::Told).await.unwrap();
    rest(&mut notices).await;
    let fates = envelopes(&journal, session)
        .into_iter()
        .filter(|envelope| envelope.text() == "hold on" && envelope.to == "amy");
    let fates: Vec<Fate> = fates.map(|envelope| envelope.fate).collect();
    assert!(matches!(fates.as_slice(), [Fate::Dead { .. }]), "{fates:?}");
    let taken = order(&team, 9, Command::Withdraw { session, envelope: key(7) }).await;
    assert!(matches!(&taken, Err(RuntimeError::TakenBy(names)) if *names == ["max"]), "{taken:?}");
}

/// A teammate whose turn the user began, and not its lead, is unfinished work like any other.
#[tokio::test]
async fn a_teammate_that_works_for_the_user_is_seen_without_a_process() {
    let (folder, journal) = (project(), Journal::memory());
    let edit = "[{text: Made.}, {parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}]";
    let recording =
        ALICE.replace("[{text: Made.}, {text: Tabs it is., given: use tabs, otherwise: No.}, {text: More.}]", edit);
    let team = runtime_of(&journal, folder.path(), &recording);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    let write = Command::Write { session, to: vec!["alice".into()], text: "change it".into() };
    order(&team, 1, write).await.unwrap();
    while !rest(&mut notices).await.waiting {}
    team.shutdown().await.unwrap();
    let journal = journal.reopen().unwrap();
    let people = ReadModel::new(&journal).people(1, false).unwrap();
    assert!(people.iter().any(|person| person.name == "alice"), "{people:?}");
}

/// What somebody writes to a teammate at another terminal is seen here before it is answered, and what is written here is not
/// seen twice.
#[tokio::test]
async fn messages_from_another_process_are_seen_once() {
    let (folder, home) = (project(), tempfile::tempdir().unwrap());
    let journal = Journal::open(home.path(), max_team_journal::Options::default()).unwrap();
    let team = runtime_of(&journal, folder.path(), ALICE);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    let other = journal.reopen().unwrap();
    let write = |text: &str| Command::Write { session, to: vec!["alice".into()], text: text.into() };
    order(&team, 7, write("use tabs")).await.unwrap();
    rest(&mut notices).await;
    UserMail::new(&other).write(&by(), key(8), session, &["alice".into()], "and be quick").await.unwrap();
    let heard = rest(&mut notices).await;
    let mailed = |(who, event): &(String, Event)| match event {
        Event::Mailed(envelope) => Some((who.clone(), envelope.body["text"].clone())),
        _ => None,
    };
    let mailed: Vec<_> = heard.events.iter().filter_map(mailed).collect();
    assert_eq!(mailed, [("alice".to_owned(), json!("and be quick"))]);
    team.shutdown().await.unwrap();
}

/// What waits behind a stop is not lost when the program is: whoever looks sees it, and how to go on.
#[tokio::test]
async fn messages_behind_a_stop_are_seen_where_nobody_runs_the_session() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), ALICE);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    team.shutdown().await.unwrap();
    let journal = journal.reopen().unwrap();
    let (census, post) = (ReadModel::new(&journal), UserMail::new(&journal));
    assert!(census.people(0, false).unwrap().is_empty(), "all of it is done");
    let alice = census.roll(session).unwrap().teammates[0].person.agent.unwrap();
    for number in [21, 22] {
        post.write(&by(), key(number), session, &["alice".to_owned()], "use tabs").await.unwrap();
    }
    post.stop_agent(&by(), key(23), alice).await.unwrap();
    let people = census.people(0, false).unwrap();
    let alice = people.iter().find(|person| person.name == "alice").unwrap();
    let left = Some(SuspendedWork::Messages(2));
    assert_eq!(alice.reason, Some(IdleReason::Blocked(BlockCause::NoProcess { session, left })));
    // The stop itself is no message that is told.
    assert_eq!(census.roll(session).unwrap().teammates[0].unread, 2);
}
