//! What the program says in a turn's place of the user's words is never shown as theirs.

use std::sync::Arc;

use crossterm::event::KeyCode;
use max_team_core::chat::{Message, Part};
use max_team_core::event::{Event, TurnOutcome, TurnStarted};
use max_team_core::id::{AgentId, EnvelopeId};
use max_team_core::message::{Envelope, MessageKind};
use max_team_core::teammate::render::{MessageAttributes, OF_PLAN, wrap};
use max_team_core::turn::{Forked, InheritedConversation};
use max_team_runtime::storage::JournalError;
use max_team_runtime::{CONTINUE, Fate, MailRecord, Notice, OpenedSession, READ_ON, RuntimeError, ShownContent};
use serde_json::json;
use uuid::Uuid;

use super::super::command_queue::{Arrival, CommandResult, UiCommand};
use super::stage::{self, Stage, session_id, started};
use super::teammates::{begins, ends, teammate};

/// What a turn is told, and the rows that it is shown by; what is shown of it anew must be the same.
const NEWS: &str = "✉ news from the team";

fn table() -> Vec<(String, Vec<&'static str>)> {
    let (go_on, read_on) = (CONTINUE.trim_end(), READ_ON.trim_end());
    let report = format!("{}Plan pln_1 is over: three\n\nTell the user, briefly.", OF_PLAN[0]);
    let envelope = wrap(MessageAttributes { from: "bob", ..MessageAttributes::default() }, "it was stopped");
    vec![
        (format!("thanks\n\nwhat now?\n\n{report}"), vec!["> thanks", "what now?", NEWS]),
        (format!("thanks\n\n{envelope}\n\n{report}"), vec!["> thanks", NEWS]),
        (go_on.to_owned(), vec!["going on"]),
        (format!("{read_on}\n\n{envelope}"), vec!["going on", NEWS]),
        (format!("use tabs\n\n{read_on}"), vec!["> use tabs"]),
    ]
}

fn assert_shown(screen: &str, rows: &[&str]) {
    assert!(rows.iter().all(|row| screen.contains(row)), "{rows:?}: {screen}");
    let own =
        ["From the team", "Tell the user", "Go on with what", "Read the messages that came", "it was stopped", "pln_1"];
    assert!(own.iter().all(|words| !screen.contains(words)), "{screen}");
    assert_eq!(screen.contains(NEWS), rows.contains(&NEWS), "{screen}");
}

#[test]
fn text_of_the_program_is_not_the_users() {
    for (told, rows) in table() {
        let mut stage = Stage::new(80, 24);
        stage.event(started(&told));
        assert_shown(&stage.glass.screen(), &rows);
        // And in what a session goes on from.
        let mut stage = Stage::new(80, 24);
        let past = InheritedConversation {
            history: vec![Message::user(vec![Part::text(told)])],
            turns: vec![0],
            ..InheritedConversation::default()
        };
        let agent = AgentId::new(Uuid::from_u128(5));
        stage.event(Event::Forked(Box::new(Forked { session: session_id(), agent, seq: 1, past })));
        assert_shown(&stage.glass.screen(), &rows);
    }
}

/// Until it is read it is not the user's either: neither on the screen, nor for Up, nor where it could not be sent.
#[test]
fn text_of_the_program_waits_unseen() {
    let mut stage = Stage::new(80, 24);
    stage.say("go");
    stage.begin("go");
    stage.end(TurnOutcome::Interrupted);
    stage.say("/continue");
    let said = stage.acts.iter().find_map(|act| match act {
        UiCommand::Say { key, text, .. } if text == CONTINUE.trim_end() => Some((*key, text.clone())),
        _ => None,
    });
    let (key, text) = said.unwrap();
    assert!(!stage.glass.everything().contains("Go on with what"), "{}", stage.glass.everything());
    stage.acts.clear();
    stage.key(KeyCode::Up);
    assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Withdraw { .. })), "{:?}", stage.acts);
    stage.control('u');
    let Event::TurnStarted(begun) = started(&text) else { unreachable!() };
    stage.event(Event::TurnStarted(TurnStarted { envelope: key, ..begun }));
    assert_shown(&stage.glass.screen(), &["> go", "going on"]);

    let outcome = Err(RuntimeError::TooMuch);
    stage.chat.done(CommandResult::Said { key, text, outcome });
    stage.paint();
    assert!(stage.glass.screen().contains("> /continue"), "{}", stage.glass.screen());
}

/// A session that is opened again in the same chat has its messages on the screen.
#[test]
fn messages_are_not_shown_twice_in_one_chat() {
    for is_again in [false, true] {
        let mut stage = Stage::new(80, 24);
        stage.say("go");
        stage.begin("go");
        stage.end(TurnOutcome::Answered);
        if is_again {
            let error = Arc::new(RuntimeError::AgentStopped("disk full".into()));
            stage.chat.notice(&Notice::Stopped { session: session_id(), whole: true, error });
            stage.say("more");
        }
        let arrival =
            Arrival { opened: Box::new(OpenedSession { resumed: true, ..stage::opened() }), events: Vec::new() };
        stage.chat.done(CommandResult::Opened { outcome: Ok(arrival) });
        let (id, body) = (EnvelopeId::new(Uuid::from_u128(8)), json!({ "text": "use tabs" }));
        let envelope = Envelope::new(id, "user/me", "agent/b", MessageKind::UserInput, body, 0);
        let (from, to) = ("user".to_owned(), "bob".to_owned());
        stage.chat.done(CommandResult::Messages(Ok(vec![MailRecord {
            envelope,
            seq: 0,
            from,
            to,
            fate: Fate::Delivered,
        }])));
        stage.paint();
        let shown = stage.glass.everything();
        assert_eq!(shown.contains("use tabs"), !is_again, "{shown}");
    }
}

/// Of what was written to the user, what stands on the screen is read, and nothing else.
#[test]
fn messages_that_were_not_shown_are_not_read() {
    let seen = |stage: &mut Stage| {
        let acts = std::mem::take(&mut stage.acts).into_iter();
        acts.filter_map(|act| if let UiCommand::Seen(shown) = act { Some(shown) } else { None })
            .flatten()
            .collect::<Vec<_>>()
    };
    let message = |number: u128, kind: MessageKind, to: &str, fate: Fate| MailRecord {
        envelope: Envelope::new(
            EnvelopeId::new(Uuid::from_u128(number)),
            "agent/a",
            "user/me",
            kind,
            json!({ "text": number.to_string() }),
            0,
        ),
        seq: 0,
        from: "alice".into(),
        to: to.into(),
        fate,
    };
    let mut messages: Vec<MailRecord> =
        (1..=12).map(|number| message(number, MessageKind::Text, "user", Fate::Delivered)).collect();
    messages.push(message(13, MessageKind::Text, "bob", Fate::Delivered));
    messages.push(message(14, MessageKind::Text, "user", Fate::Read(None)));
    messages.push(message(15, MessageKind::IdleNotification, "user", Fate::Delivered));
    let mut stage = Stage::new(80, 24);
    stage.chat.done(CommandResult::Messages(Ok(messages)));
    stage.paint();
    // Two of the ten rows are not the user's to read.
    let want: Vec<ShownContent> =
        (5..=12).rev().map(|number| ShownContent::Message(EnvelopeId::new(Uuid::from_u128(number)))).collect();
    assert_eq!(seen(&mut stage), want);
    stage.chat.done(CommandResult::Messages(Err(RuntimeError::AgentStopped("disk full".into()))));
    stage.chat.done(CommandResult::Messages(Ok(Vec::new())));
    stage.paint();
    assert_eq!(seen(&mut stage), []);
    let alice = teammate(11, "alice", "blue");
    begins(&mut stage, &alice, "Make a schema");
    assert_eq!(seen(&mut stage), []);
    ends(&mut stage, &alice, "Made.");
    assert!(matches!(seen(&mut stage)[..], [ShownContent::Turn(agent, _)] if Some(agent) == alice.agent));
}

/// What follows for one from what another could not store is nothing to read about.
#[test]
fn a_full_disk_is_told_without_what_follows_from_it() {
    let unknown = || JournalError::UnknownMail { id: EnvelopeId::new(Uuid::from_u128(9)) };
    let full = || JournalError::DiskFull { path: "journal.db".into() };
    for errors in
        [[(full(), true), (unknown(), true)], [(unknown(), true), (full(), true)], [(full(), true), (unknown(), false)]]
    {
        let mut stage = Stage::new(80, 24);
        for (error, whole) in errors {
            let error = Arc::new(RuntimeError::Journal(error));
            stage.chat.notice(&Notice::Stopped { session: session_id(), whole, error });
        }
        stage.paint();
        let shown = stage.glass.everything();
        assert!(shown.contains("journal.db") && !shown.contains("env_") && !shown.contains("pending_mail"), "{shown}");
        assert_eq!(shown.matches("This session has stopped").count(), 1, "{shown}");
    }
}
