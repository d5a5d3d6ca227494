//! What is said while a turn runs: heard by it, by the next one, or by nobody because it was taken back.

use max_team_core::event::{Event, Steered, TurnOutcome};
use max_team_core::id::{EnvelopeId, SessionId};
use max_team_journal::{CrashPoint, Journal};
use max_team_runtime::query;
use max_team_runtime::replay::{Point, Site, Tape};
use max_team_runtime::{
    Command, Fate, Notice, Order, Queued, ReadModel, RuntimeError, Sessions, TeamHandle, UserMail, Which, new_id,
};
use tokio::sync::mpsc;

use super::crashes::events;
use super::read::Reads as _;
use super::{begin, open, order, owner, project, runtime_of, until, yes};

/// The first answer ends in a question to the user, so that the turn stands still until they answer.
const RECORDING: &str = r#"
answers:
  - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
  - {text: With tabs., given: use tabs, otherwise: With spaces.}
  - {text: With tests., given: then the tests, otherwise: Without.}
  - text: A last word.
"#;

async fn give(team: &TeamHandle, command: Command) -> EnvelopeId {
    let key = EnvelopeId::new(new_id());
    team.command(Order { by: owner(), cwd: ".".into(), key, command }).await.unwrap();
    key
}

async fn say(team: &TeamHandle, session: SessionId, text: &str) -> EnvelopeId {
    give(team, Command::Say { session, text: text.into() }).await
}

async fn queue(team: &TeamHandle, session: SessionId, text: &str) -> EnvelopeId {
    give(team, Command::Queue { session, text: text.into() }).await
}

/// Says yes to whatever the lead asks.
async fn allow(team: &TeamHandle, session: SessionId) {
    let question = team.events(session).unwrap().into_iter().rev().find_map(|(_, event)| match event {
        Event::QuestionAsked(asked) => Some(asked.question),
        _ => None,
    });
    order(team, Command::Answer { session, question: question.unwrap(), answer: yes() }).await.unwrap();
}

async fn ends(notices: &mut mpsc::Receiver<Notice>) -> (TurnOutcome, String) {
    let ended = until(notices, "turn_ended").await;
    let Event::TurnEnded(ended) = &*ended else { panic!("{ended:?}") };
    (ended.end.clone(), ended.text.clone())
}

fn steered(journal: &Journal) -> Vec<Steered> {
    let found = events(journal).into_iter().filter_map(|(_, event)| match event {
        Event::Steered(steered) => Some(steered),
        _ => None,
    });
    found.collect()
}

fn turns(journal: &Journal) -> usize {
    events(journal).iter().filter(|(_, event)| matches!(event, Event::TurnStarted(_))).count()
}

#[tokio::test]
async fn the_turn_that_runs_hears_it_behind_its_results() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), RECORDING);
    let (session, mut notices) = begin(&team, folder.path()).await;
    until(&mut notices, "question_asked").await;
    let messages = vec![say(&team, session, "use tabs").await, say(&team, session, "and be quick").await];
    allow(&team, session).await;
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "With tabs.".to_owned()));
    let told = steered(&journal);
    let [Steered { envelopes, input, .. }] = told.as_slice() else {
        panic!("what came together is told together: {told:?}")
    };
    assert_eq!(
        (envelopes, max_team_core::chat::Message::user(input.clone()).text()),
        (&messages, "use tabs\n\nand be quick".into())
    );
    assert_eq!(turns(&journal), 1);
    let late = order(&team, Command::Withdraw { session, envelope: messages[0] }).await;
    assert!(matches!(late, Err(RuntimeError::Taken)), "{late:?}");
    say(&team, session, "then the tests").await;
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "With tests.".to_owned()));
}

#[tokio::test]
async fn queued_messages_begin_the_next_turn() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), RECORDING);
    let (session, mut notices) = begin(&team, folder.path()).await;
    until(&mut notices, "question_asked").await;
    queue(&team, session, "then the tests").await;
    allow(&team, session).await;
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "With spaces.".to_owned()));
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "With tests.".to_owned()));
    assert_eq!((turns(&journal), steered(&journal).len()), (2, 0));
}

#[tokio::test]
async fn an_interrupt_leaves_it_for_the_next_turn() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), RECORDING);
    let (session, mut notices) = begin(&team, folder.path()).await;
    until(&mut notices, "question_asked").await;
    say(&team, session, "use tabs").await;
    order(&team, Command::Interrupt { session }).await.unwrap();
    assert_eq!(ends(&mut notices).await.0, TurnOutcome::Interrupted);
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "With tabs.".to_owned()));
    assert_eq!((turns(&journal), steered(&journal).len()), (2, 0));
}

/// As at a step of a turn; each stays a message of its own, and what was to wait has a turn of its own.
#[tokio::test]
async fn messages_waiting_at_an_interrupt_are_told_together() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), RECORDING);
    let (session, mut notices) = begin(&team, folder.path()).await;
    until(&mut notices, "question_asked").await;
    let said = [say(&team, session, "use tabs").await, say(&team, session, "and be quick").await];
    queue(&team, session, "then the tests").await;
    let late = say(&team, session, "and the docs").await;
    order(&team, Command::Interrupt { session }).await.unwrap();
    assert_eq!(ends(&mut notices).await.0, TurnOutcome::Interrupted);
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "With tabs.".to_owned()));
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "With tests.".to_owned()));
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "A last word.".to_owned()));
    let begun = events(&journal).into_iter().filter_map(|(_, event)| match event {
        Event::TurnStarted(started) => {
            Some((started.envelope, started.envelopes, max_team_core::chat::Message::user(started.input).text()))
        }
        _ => None,
    });
    let begun: Vec<_> = begun.skip(1).collect();
    let [(first, envelopes, words), (_, _, tests), (last, _, docs)] = begun.as_slice() else { panic!("{begun:?}") };
    assert_eq!((first, envelopes.as_slice()), (&said[0], &said[1..]));
    assert!(words.starts_with("use tabs\n\nand be quick\n\n(From the program"), "{words}");
    assert_eq!((tests.as_str(), last, docs.as_str()), ("then the tests", &late, "and the docs"));
    let fates = ReadModel::new(&journal).messages(session).unwrap();
    assert!(fates.iter().all(|envelope| matches!(envelope.fate, Fate::Acted(_))), "{fates:?}");
    // Whoever goes on from before that turn says all of it again.
    let fork = Tape::of(&journal, session).unwrap().fork(Point::Turn(2), false, folder.path(), Site::Here).unwrap();
    assert_eq!(fork.words.as_deref(), Some("use tabs\n\nand be quick"));
}

/// Killed at each commit between the words and their answer: each is told once, in order.
#[test]
fn whenever_the_program_dies_what_waits_is_told_once() {
    for commit in 1.. {
        let (folder, mut journal) = (project(), Journal::memory());
        let play = async |journal: &Journal| {
            let team = runtime_of(journal, folder.path(), RECORDING);
            let mut notices = team.watch();
            let which = if team.sessions(1).unwrap().is_empty() { Which::New } else { Which::Latest };
            let session = team.open(owner(), folder.path(), open(which)).await.unwrap().session;
            for (text, interrupts) in [("go", false), ("use tabs", false), ("and be quick", true)] {
                let key = super::crashes::key(text);
                if !journal.has_mail(key).unwrap() {
                    let command = Command::Say { session, text: text.into() };
                    team.command(Order { by: owner(), cwd: ".".into(), key, command }).await.unwrap();
                }
                let is_asked = |(_, event): &(String, Event)| matches!(event, Event::QuestionAsked(_));
                if text == "go" && !events(journal).iter().any(is_asked) {
                    until(&mut notices, "question_asked").await;
                }
                if interrupts && turns(journal) < 2 {
                    order(&team, Command::Interrupt { session }).await.unwrap();
                }
            }
            while turns(journal) < 2 {
                notices.recv().await.unwrap();
            }
            team.ask(query::Settled { session }).await.unwrap();
        };
        let survived = super::lives(&journal, Some((CrashPoint::After, commit)), play(&journal));
        journal = journal.reopen().unwrap();
        assert!(super::lives(&journal, None, play(&journal)));
        let told = events(&journal).into_iter().filter_map(|(_, event)| match event {
            Event::TurnStarted(started) => Some(started.input),
            Event::Steered(steered) => Some(steered.input),
            _ => None,
        });
        let told: String = told.map(|input| max_team_core::chat::Message::user(input).text() + "|").collect();
        for words in ["use tabs", "and be quick"] {
            assert_eq!(told.matches(words).count(), 1, "killed at commit {commit}: {told}");
        }
        assert!(told.find("use tabs") < told.find("and be quick"), "killed at commit {commit}: {told}");
        if survived {
            assert!(commit > 5, "a story that short proves nothing");
            break;
        }
    }
}

/// A message ends the turn, and others are read in the same breath.
#[tokio::test]
async fn nothing_is_told_twice_when_a_message_stops_the_turn() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), RECORDING);
    let (session, mut notices) = begin(&team, folder.path()).await;
    until(&mut notices, "question_asked").await;
    say(&team, session, "use tabs").await;
    team.ask(query::Details { session }).await.unwrap();
    let lead = Sessions::new(&journal).row(session).unwrap().lead;
    UserMail::new(&journal).stop_agent(&owner(), EnvelopeId::new(new_id()), lead).await.unwrap();
    say(&team, session, "and be quick").await;
    assert_eq!(ends(&mut notices).await.0, TurnOutcome::Interrupted);
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "With tabs.".to_owned()));
    team.ask(query::Settled { session }).await.unwrap();
    let history = team.events(session).unwrap().into_iter().filter_map(|(_, event)| match event {
        Event::TurnStarted(started) => Some(started.input),
        Event::Steered(steered) => Some(steered.input),
        _ => None,
    });
    let told: Vec<String> = history.map(|input| max_team_core::chat::Message::user(input).text()).collect();
    for words in ["use tabs", "and be quick"] {
        assert_eq!(told.iter().filter(|text| text.contains(words)).count(), 1, "{told:?}");
    }
}

#[tokio::test]
async fn a_withdrawn_message_was_never_said() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), RECORDING);
    let (session, mut notices) = begin(&team, folder.path()).await;
    until(&mut notices, "question_asked").await;
    let envelopes = [say(&team, session, "use tabs").await, queue(&team, session, "then the tests").await];
    for envelope in envelopes {
        order(&team, Command::Withdraw { session, envelope }).await.unwrap();
        let again = order(&team, Command::Withdraw { session, envelope }).await;
        assert!(matches!(again, Err(RuntimeError::Taken)), "{again:?}");
    }
    allow(&team, session).await;
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "With spaces.".to_owned()));
    team.ask(query::Settled { session }).await.unwrap();
    assert_eq!((turns(&journal), steered(&journal).len()), (1, 0));
    let told = events(&journal).into_iter().filter_map(|(stream, event)| match event {
        Event::Withdrawn(withdrawn) => Some((stream.starts_with("session/"), withdrawn.envelope)),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), envelopes.map(|envelope| (true, envelope)));
    let listed = ReadModel::new(&journal).messages(session).unwrap();
    let fates =
        envelopes.map(|envelope| listed.iter().find(|known| known.envelope.id == envelope).unwrap().fate.clone());
    assert_eq!(fates, [Fate::Withdrawn, Fate::Withdrawn], "nobody has acted on it");
}

/// A message and its withdrawal race: whoever is first wins, and both know who was.
#[tokio::test]
async fn a_message_goes_one_way() {
    let mut heard = 0;
    for round in 0..40 {
        let (folder, journal) = (project(), Journal::memory());
        let team = runtime_of(&journal, folder.path(), RECORDING);
        let (session, mut notices) = begin(&team, folder.path()).await;
        until(&mut notices, "question_asked").await;
        let envelope = say(&team, session, "use tabs").await;
        let withdraw = order(&team, Command::Withdraw { session, envelope });
        let withdrawn = match ["", "tool_intent", "tool_done"][round % 3] {
            "" => tokio::join!(withdraw, allow(&team, session)).0,
            moment => {
                allow(&team, session).await;
                until(&mut notices, moment).await;
                withdraw.await
            }
        };
        let want = if withdrawn.is_ok() { "With spaces." } else { "With tabs." };
        assert_eq!(ends(&mut notices).await.1, want, "{withdrawn:?}");
        team.ask(query::Settled { session }).await.unwrap();
        assert_eq!((turns(&journal), steered(&journal).len()), (1, usize::from(withdrawn.is_err())));
        heard += steered(&journal).len();
    }
    assert!((1..40).contains(&heard), "each has won: {heard}");
}

#[tokio::test]
async fn the_next_process_knows_what_nobody_has_read() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), RECORDING);
    let (session, mut notices) = begin(&team, folder.path()).await;
    until(&mut notices, "question_asked").await;
    let (now, later) = (say(&team, session, "use tabs").await, queue(&team, session, "then the tests").await);
    team.shutdown().await.unwrap();
    drop(team);

    let journal = journal.reopen().unwrap();
    let team = runtime_of(&journal, folder.path(), RECORDING);
    let mut notices = team.watch();
    let opened = team.open(owner(), folder.path(), open(Which::Latest)).await.unwrap();
    let queued = |envelope, text: &str, wait| Queued { envelope, text: text.into(), wait, all: false };
    assert_eq!(opened.queued, [queued(now, "use tabs", false), queued(later, "then the tests", true)]);
    allow(&team, session).await;
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "With tabs.".to_owned()));
    assert_eq!(ends(&mut notices).await, (TurnOutcome::Answered, "With tests.".to_owned()));
}
