//! What can be said and pressed while a turn runs.

use crossterm::event::{KeyCode, KeyModifiers};
use max_team_core::chat::Part;
use max_team_core::event::{
    Event, Interrupted, LlmEnded, LlmOutcome, Steered, TurnEnded, TurnOutcome, UserMessage, Withdrawn,
};
use max_team_core::id::EnvelopeId;
use max_team_core::interrupt::Hold;
use max_team_core::ledger::Charge;
use max_team_core::message::{Principal, Role};
use max_team_core::rewind::RewindNote;
use max_team_runtime::{Notice, OpenedSession, Queued, RuntimeError, Spawn};
use uuid::Uuid;

use super::super::command_queue::{CommandResult, UiCommand};
use super::stage::{self, Stage, opened};
use super::teammates;
use max_team_workspace::config::choice::WhileBusy;
use max_team_workspace::i18n::Lang;

/// A turn runs.
fn busy(while_busy: WhileBusy) -> Stage {
    let mut stage = Stage::keyed(while_busy, &opened());
    stage.say("go");
    stage.begin("go");
    stage
}

/// What was ordered since a turn runs.
fn orders(stage: &Stage) -> Vec<String> {
    let told = stage.acts.iter().filter_map(|act| match act {
        UiCommand::Say { text, .. } if text == "go" => None,
        UiCommand::Say { text, wait, .. } => Some(format!("say {text}{}", if *wait { " later" } else { "" })),
        UiCommand::Withdraw { text, .. } => Some(format!("withdraw {text}")),
        UiCommand::Interrupt => Some("interrupt".into()),
        UiCommand::StopSession => Some("halt".into()),
        _ => None,
    });
    told.collect()
}

fn key_of(stage: &Stage, words: &str) -> EnvelopeId {
    let said = stage.acts.iter().find_map(|act| match act {
        UiCommand::Say { key, text, .. } if text == words => Some(*key),
        _ => None,
    });
    said.unwrap()
}

#[test]
fn each_setting_gives_enter_its_meaning() {
    let (plain, shift, alt) = (KeyModifiers::NONE, KeyModifiers::SHIFT, KeyModifiers::ALT);
    let table = [
        (WhileBusy::Steer, plain, vec!["say x"]),
        (WhileBusy::Steer, shift, vec![]),
        (WhileBusy::Steer, alt, vec!["interrupt", "say x"]),
        (WhileBusy::Queue, plain, vec!["say x later"]),
        (WhileBusy::Queue, shift, vec![]),
        (WhileBusy::Queue, alt, vec!["interrupt", "say x"]),
        (WhileBusy::Interrupt, plain, vec!["interrupt", "say x"]),
        (WhileBusy::Interrupt, shift, vec!["say x"]),
        (WhileBusy::Interrupt, alt, vec!["interrupt", "say x"]),
    ];
    for (setting, modifiers, want) in table {
        let mut stage = busy(setting);
        stage.write("x");
        stage.press(KeyCode::Enter, modifiers);
        assert_eq!(orders(&stage), want, "{setting:?} {modifiers:?}");
        // With nothing running, Enter sends and Shift-Enter makes a line, whatever was chosen.
        let mut stage = Stage::keyed(setting, &opened());
        stage.write("x");
        stage.press(KeyCode::Enter, modifiers);
        assert_eq!(
            orders(&stage),
            if modifiers == shift { vec![] } else { vec!["say x"] },
            "{setting:?} {modifiers:?}"
        );
    }
}

#[test]
fn words_that_stop_are_no_messages_while_something_runs() {
    for word in ["stop", " STOP ", "打断", "停", "停止", "/stop", "/Stop"] {
        let mut stage = busy(WhileBusy::Steer);
        stage.say(word);
        assert_eq!(orders(&stage), ["halt"], "{word}");
    }
    let mut stage = busy(WhileBusy::Steer);
    stage.say("stop using tabs");
    assert_eq!(orders(&stage), ["say stop using tabs"]);
    let mut stage = Stage::new(80, 24);
    stage.say("stop");
    assert_eq!(orders(&stage), ["say stop"], "nothing runs");
    let mut stage = Stage::new(80, 24);
    stage.say("/stop");
    assert!(orders(&stage).is_empty() && stage.glass.screen().contains("Nothing runs."), "{}", stage.glass.screen());
}

#[test]
fn steered_messages_move_from_the_chips_into_the_conversation() {
    let mut stage = busy(WhileBusy::Steer);
    stage.say("use tabs");
    let key = key_of(&stage, "use tabs");
    assert!(
        stage.glass.screen().contains("⧗ for the next step (Up takes it back): use tabs"),
        "{}",
        stage.glass.screen()
    );
    stage.event(Event::Steered(Steered {
        envelopes: vec![key],
        input: vec![Part::text("use tabs")],
        from_team: Vec::new(),
    }));
    // The news that it was said may come later.
    let by = Principal { door: "terminal".into(), user: "me".into(), role: Role::Owner };
    stage.event(Event::Said(UserMessage { envelope: key, text: "use tabs".into(), by, cwd: String::new() }));
    let screen = stage.glass.screen();
    assert!(screen.contains("\n> use tabs\n") && !screen.contains('⧗'), "{screen}");
    stage.end(TurnOutcome::Answered);
    assert!(!stage.chat.session().is_busy());
}

#[test]
fn up_takes_the_newest_message_back_for_editing() {
    let mut stage = busy(WhileBusy::Queue);
    for words in ["one", "two", "three"] {
        stage.say(words);
    }
    insta::assert_snapshot!("waiting_80x24", stage.glass.screen());
    stage.key(KeyCode::Up);
    stage.key(KeyCode::Up);
    assert_eq!(orders(&stage)[3..], ["withdraw three"], "one at a time");
    let (key, text) = (key_of(&stage, "three"), "three".to_owned());
    stage.event(Event::Withdrawn(Withdrawn { envelope: key }));
    stage.chat.done(CommandResult::Withdrawn { key, text, outcome: Ok(()) });
    stage.paint();
    let screen = stage.glass.screen();
    assert!(screen.contains("\n> three\n") && screen.contains("(Up takes it back): two"), "{screen}");
    // With words in the draft Up is about those.
    stage.key(KeyCode::Up);
    assert_eq!(orders(&stage).len(), 4);
}

#[test]
fn a_late_message_is_reported() {
    for (lang, want) in [(Lang::En, "Max has read it"), (Lang::Zh, "Max 已经读到")] {
        let mut stage = Stage::with(80, 24, false, lang);
        stage.say("go");
        stage.begin("go");
        stage.say("use tabs");
        stage.key(KeyCode::Up);
        let (key, text) = (key_of(&stage, "use tabs"), "use tabs".to_owned());
        stage.event(Event::Steered(Steered {
            envelopes: vec![key],
            input: vec![Part::text("use tabs")],
            from_team: Vec::new(),
        }));
        stage.chat.done(CommandResult::Withdrawn { key, text, outcome: Err(RuntimeError::Taken) });
        stage.paint();
        let screen = stage.glass.screen();
        assert!(screen.contains(want) && screen.contains("\n> use tabs\n"), "{screen}");
        stage.key(KeyCode::Up);
        assert!(
            stage.glass.screen().contains("> use tabs\n  claude"),
            "now it is the history: {}",
            stage.glass.screen()
        );
    }
}

#[test]
fn notes_of_the_program_beside_the_words_are_rows_of_their_own() {
    let wants = [
        (Lang::En, "⟲ the lead is told that you put 2 files back: a, b"),
        (Lang::Zh, "⟲ 已告知主管：您恢复了 2 个文件：a, b"),
    ];
    for (lang, want) in wants {
        let mut stage = Stage::with(80, 24, false, lang);
        stage.say("go");
        let Event::TurnStarted(mut begun) = super::stage::started("go") else { unreachable!() };
        let (text, files) = ("(From the program) Files were put back.".into(), vec!["a".into(), "b".into()]);
        begun.rewound = vec![RewindNote { text, files, count: 2, again: false }];
        assert!(
            begun
                .model_input()
                .iter()
                .any(|part| matches!(part, Part::Text { text } if text.contains("From the program")))
        );
        stage.event(Event::TurnStarted(begun));
        let screen = stage.glass.screen();
        assert!(screen.contains("\n> go\n") && screen.contains(want) && !screen.contains("From the"), "{screen}");
    }
}

#[test]
fn a_resumed_session_shows_unread_messages() {
    let queued = |n, text: &str, wait| Queued {
        envelope: EnvelopeId::new(Uuid::from_u128(n)),
        text: text.into(),
        wait,
        all: false,
    };
    let waiting = vec![queued(70, "use tabs", false), queued(71, "then the tests", true)];
    let opened = OpenedSession { resumed: true, continuing: true, queued: waiting, ..opened() };
    let mut stage = Stage::keyed(WhileBusy::Steer, &opened);
    let screen = stage.glass.screen();
    assert!(screen.contains("queued (Up takes it back): then the tests"), "{screen}");
    assert!(screen.contains("for the next step: use tabs"), "{screen}");
    stage.key(KeyCode::Up);
    assert_eq!(orders(&stage), ["withdraw then the tests"]);
}

#[test]
fn a_turn_that_was_interrupted_can_be_continued() {
    let mut stage = Stage::new(80, 24);
    let gone_on = |lead, names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        CommandResult::Continued { lead, outcome: Ok((names, 0)) }
    };
    stage.say("/continue");
    stage.chat.done(gone_on(false, &[]));
    stage.paint();
    assert!(stage.glass.screen().contains("nothing to continue"), "{}", stage.glass.screen());
    stage.say("go");
    stage.begin("go");
    stage.say("/continue");
    assert!(stage.glass.screen().contains("press Esc to interrupt it first"), "{}", stage.glass.screen());
    stage.end(TurnOutcome::Interrupted);
    assert!(stage.glass.screen().contains("or /continue"), "{}", stage.glass.screen());
    stage.say("/continue");
    assert!(orders(&stage).iter().any(|order| order.starts_with("say Go on with what you were doing")));
    assert!(matches!(stage.acts.last(), Some(UiCommand::Continue { name: None, lead: true })), "{:?}", stage.acts);
    stage.begin("Go on");
    // One of the others goes on whatever the lead does.
    stage.say("/continue ann");
    assert!(matches!(stage.acts.last(), Some(UiCommand::Continue { name: Some(name), lead: false }) if name == "ann"));
    stage.chat.done(gone_on(false, &["ann"]));
    stage.paint();
    assert!(stage.glass.screen().contains("ann: going on"), "{}", stage.glass.screen());
}

/// A message that waits when somebody says stop goes on waiting: nothing moves, a row says so, and `/continue` lets it be read.
#[test]
fn held_messages_are_reported_and_do_not_count_as_busy() {
    let mut stage = busy(WhileBusy::Steer);
    stage.say("use tabs");
    let key = key_of(&stage, "use tabs");
    stage.say("stop");
    let held = Some(Hold { envelopes: vec![key], ..Hold::default() });
    stage.event(Event::Interrupted(Interrupted { by: "terminal".into(), who: None, ends: false, held }));
    stage.end(TurnOutcome::Interrupted);
    counted(&mut stage, 1);
    let screen = stage.glass.screen();
    let rows = ["✉ 1 message waits; write or /continue", "⧗ waits (Up takes it back): use tabs"];
    assert!(rows.iter().all(|row| screen.contains(row)) && !screen.contains("esc to interrupt"), "{screen}");
    stage.acts.clear();
    stage.key(KeyCode::Esc);
    // Whoever says it once more does not let go what it has held.
    stage.say("stop");
    assert!(orders(&stage).is_empty() && stage.glass.screen().contains("Nothing runs"), "{}", stage.glass.screen());
    stage.say("/continue");
    let said = orders(&stage);
    assert!(matches!(said.as_slice(), [only] if only.starts_with("say Go on with what you were doing")), "{said:?}");
    assert!(stage.glass.screen().contains("esc to interrupt"), "something is on its way: {}", stage.glass.screen());
}

/// Whoever says stop twice does not mean the second one for Max, whether anything waits or not.
#[test]
fn a_second_stop_is_no_message() {
    let mut stage = busy(WhileBusy::Steer);
    stage.say("stop");
    stage.end(TurnOutcome::Interrupted);
    stage.acts.clear();
    stage.say("stop");
    assert!(orders(&stage).is_empty() && stage.glass.screen().contains("Nothing runs"), "{}", stage.glass.screen());
    stage.say("well");
    stage.begin("well");
    stage.end(TurnOutcome::Answered);
    stage.acts.clear();
    stage.say("stop");
    assert_eq!(orders(&stage), ["say stop"], "something was begun since");
}

/// What waits for a lead that rested when it was stopped: its own messages as long as they are not taken back, and what came later of
/// work that had begun before.
#[test]
fn the_waiting_count_follows_the_mailbox() {
    let mut stage = busy(WhileBusy::Steer);
    stage.end(TurnOutcome::Answered);
    let key = EnvelopeId::new(Uuid::from_u128(70));
    let by = Principal { door: "cli".into(), user: "me".into(), role: Role::Owner };
    stage.event(Event::Said(UserMessage { envelope: key, text: "use tabs".into(), by, cwd: String::new() }));
    let held = Some(Hold { envelopes: vec![key], ..Hold::default() });
    stage.event(Event::Interrupted(Interrupted { by: "cli".into(), who: None, ends: false, held }));
    counted(&mut stage, 1);
    assert!(stage.glass.screen().contains("✉ 1 message waits"), "{}", stage.glass.screen());
    stage.event(Event::Withdrawn(Withdrawn { envelope: key }));
    // The runtime is quiet, and the mail is looked at once more: what was taken back is not there.
    stage.chat.notice(&Notice::Idle { session: stage::session_id(), waiting: false });
    stage.paint();
    counted(&mut stage, 0);
    assert_eq!(stage.glass.screen().matches("message waits").count(), 1, "{}", stage.glass.screen());
    stage.acts.clear();
    stage.say("/continue");
    assert!(orders(&stage).is_empty(), "{:?}", stage.acts);
    stage.chat.done(CommandResult::Continued { lead: false, outcome: Ok((Vec::new(), 0)) });
    stage.paint();
    assert!(stage.glass.screen().contains("nothing to continue"), "{}", stage.glass.screen());
    stage.say("/continue");
    stage.chat.done(CommandResult::Continued { lead: false, outcome: Ok((Vec::new(), 1)) });
    stage.paint();
    let said = orders(&stage);
    assert!(matches!(said.as_slice(), [only] if only.starts_with("say Read the messages that came")), "{said:?}");
}

#[test]
fn a_stopped_teammate_is_not_shown_as_idle() {
    let mut stage = teammates::stage(Lang::En);
    let [bob, ann] =
        [(11, "bob", "blue"), (12, "ann", "green")].map(|(at, name, color)| teammates::teammate(at, name, color));
    for teammate in [&bob, &ann] {
        teammates::begins(&mut stage, teammate, "Work");
        teammates::ends(&mut stage, teammate, "Done.");
    }
    rests(&mut stage);
    assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Standing)), "nobody was stopped: {:?}", stage.acts);
    teammates::begins(&mut stage, &bob, "Work");
    let held = Some(Hold::default());
    let stopped = Event::Interrupted(Interrupted { by: "cli".into(), who: None, ends: false, held });
    stage.event_from(bob.clone(), stopped);
    teammates::ends(&mut stage, &bob, "");
    // Asked for as long as somebody is.
    for (names, row) in [(vec!["bob"], "○ idle: ann · stopped: bob"), (vec!["ann", "bob"], "○ stopped: bob, ann")]
    {
        stage.acts.clear();
        rests(&mut stage);
        assert_eq!(stage.acts.iter().filter(|act| matches!(act, UiCommand::Standing)).count(), 1, "{:?}", stage.acts);
        stage.chat.done(CommandResult::Standing(Ok(names.into_iter().map(str::to_owned).collect())));
        stage.paint();
        assert!(stage.glass.screen().lines().any(|line| line.trim_end() == row), "{}", stage.glass.screen());
    }
    teammates::begins(&mut stage, &bob, "Go on");
    assert!(stage.glass.screen().contains("○ stopped: ann"), "{}", stage.glass.screen());
}

fn rests(stage: &mut Stage) {
    stage.chat.notice(&Notice::Idle { session: stage::session_id(), waiting: false });
    stage.paint();
}

/// The mail was looked at, as it was asked for: so many messages wait.
fn counted(stage: &mut Stage, count: usize) {
    assert!(matches!(stage.acts.last(), Some(UiCommand::Held { read: false })), "{:?}", stage.acts);
    stage.chat.done(CommandResult::Held { read: false, outcome: Ok(count) });
    stage.paint();
}

/// What came after a stop, of work that had begun before it, waits like what it found: the stop's own list does not know of it.
#[test]
fn messages_after_a_stop_are_counted_by_the_mail() {
    let mut stage = busy(WhileBusy::Steer);
    stage.end(TurnOutcome::Answered);
    let held = Some(Hold::default());
    stage.event(Event::Interrupted(Interrupted { by: "cli".into(), who: None, ends: false, held }));
    counted(&mut stage, 0);
    stage.chat.notice(&Notice::Idle { session: stage::session_id(), waiting: false });
    stage.paint();
    counted(&mut stage, 1);
    assert!(stage.glass.screen().contains("✉ 1 message waits; write or /continue"), "{}", stage.glass.screen());
    stage.acts.clear();
    // It is no message, for it would let go what it has held.
    stage.say("stop");
    assert!(orders(&stage).is_empty() && stage.glass.screen().contains("Nothing runs"), "{}", stage.glass.screen());
    stage.say("/continue Max");
    assert!(matches!(stage.acts.as_slice(), [UiCommand::Held { read: true }]), "{:?}", stage.acts);
    stage.chat.done(CommandResult::Held { read: true, outcome: Ok(1) });
    stage.paint();
    let said = orders(&stage);
    assert!(matches!(said.as_slice(), [only] if only.starts_with("say Read the messages that came")), "{said:?}");
}

/// A session that is opened says what waits in it, whoever has written it.
#[test]
fn waiting_messages_are_told_when_a_session_is_opened() {
    for (count, is_told) in [(0, false), (2, true)] {
        let opened = OpenedSession { resumed: true, held: count, ..stage::opened() };
        let stage = Stage::led(80, 24, false, Lang::En, None, &opened);
        let screen = stage.glass.screen();
        assert_eq!(screen.contains("✉ 2 messages wait; write or /continue"), is_told, "{screen}");
    }
}

/// A call that was lost with the program and stopped meanwhile is not made again.
#[test]
fn a_lost_call_that_was_stopped_is_not_said_to_be_made_again() {
    for is_stopped in [false, true] {
        let mut stage = busy(WhileBusy::Steer);
        if is_stopped {
            let by = Interrupted { by: "cli".into(), who: None, ends: false, held: None };
            stage.event(Event::Interrupted(by));
        }
        let ended = LlmEnded { call: 1, outcome: LlmOutcome::Lost, ms: 0, summary: false, estimate: None };
        stage.event(Event::LlmEnded(ended));
        assert_eq!(stage.glass.screen().contains("it is made again"), !is_stopped, "{}", stage.glass.screen());
    }
}

/// A large project takes its time; nobody wonders whether anything happens, and it can be stopped.
#[test]
fn copies_that_are_made_for_a_team_have_a_row_until_they_are_there() {
    let mut stage = busy(WhileBusy::Steer);
    stage.end(TurnOutcome::Answered);
    let copies = |order, made, of| {
        let order = EnvelopeId::new(Uuid::from_u128(order));
        Notice::Copies { session: stage::session_id(), order, made, of }
    };
    // Two teams at once are counted together, until both are there.
    for (order, made, of, row) in
        [(1, 0, 3, "0 of 3"), (1, 1, 3, "1 of 3"), (2, 0, 2, "1 of 5"), (1, 3, 3, "3 of 5"), (2, 1, 2, "4 of 5")]
    {
        stage.chat.notice(&copies(order, made, of));
        stage.paint();
        let words = format!("⧗ making worktrees for the team: {row} · /stop stops it");
        assert!(stage.glass.screen().contains(&words), "{}", stage.glass.screen());
    }
    stage.say("stop");
    assert!(matches!(stage.acts.last(), Some(UiCommand::StopSession)), "{:?}", stage.acts);
    stage.chat.notice(&copies(2, 2, 2));
    stage.paint();
    assert!(!stage.glass.screen().contains("making worktrees"), "{}", stage.glass.screen());
}

/// What may not have been paid is marked under the turn, too.
#[test]
fn a_turn_whose_cost_is_a_bound_says_so() {
    // What is unknown is in the sum, as it is in the status line's.
    for (unknown_nano, shown) in [(0, " · $0.0087 · "), (5_000_000, " · ≈ $0.0137 · ")] {
        let mut stage = busy(WhileBusy::Steer);
        stage.call();
        stage.answer(vec![Part::text("Done.")]);
        let Event::TurnEnded(ended) = stage::ended(TurnOutcome::Answered) else { unreachable!() };
        let charges = vec![Charge { calls: 1, nano: unknown_nano, unknown_nano, ..Charge::default() }];
        stage.event(Event::TurnEnded(TurnEnded { charges, ..ended }));
        let screen = stage.glass.screen();
        let footer = screen.lines().find(|line| line.contains("tokens in")).unwrap();
        assert!(footer.contains(shown), "{screen}");
    }
}

#[test]
fn messages_to_a_teammate_that_is_stopped_have_a_row() {
    let mut stage = teammates::stage(Lang::En);
    let bob = teammates::teammate(11, "bob", "blue");
    teammates::begins(&mut stage, &bob, "Work");
    let envelopes = vec![EnvelopeId::new(Uuid::from_u128(1)), EnvelopeId::new(Uuid::from_u128(2))];
    let held = Some(Hold { envelopes, ..Hold::default() });
    let stopped = Event::Interrupted(Interrupted { by: "cli".into(), who: None, ends: false, held });
    for _ in 0..2 {
        stage.event_from(bob.clone(), stopped.clone());
        counted_for(&mut stage, "bob", 1);
    }
    let (screen, row) = (stage.glass.screen(), "✉ bob: 1 message waits; write to bob or /continue bob");
    assert_eq!(screen.matches(row).count(), 1, "one was taken back, and once is enough: {screen}");
    // What somebody else wrote to it with its last step waits as well.
    stage.chat.notice(&Notice::Idle { session: stage::session_id(), waiting: false });
    stage.paint();
    counted_for(&mut stage, "bob", 2);
    let (screen, row) = (stage.glass.screen(), "✉ bob: 2 messages wait; write to bob or /continue bob");
    assert_eq!(screen.matches(row).count(), 1, "{screen}");
    // Whoever has begun has read them.
    teammates::begins(&mut stage, &bob, "Go on");
    stage.chat.done(CommandResult::TeammatesHeld(Ok(vec![("bob".to_owned(), 3)])));
    stage.paint();
    assert!(!stage.glass.screen().contains("3 messages wait"), "{}", stage.glass.screen());
}

/// The mail was looked at, as it was asked for: so many messages wait for a teammate.
fn counted_for(stage: &mut Stage, name: &str, count: usize) {
    let asked = stage.acts.iter().rev().find_map(|act| match act {
        UiCommand::TeammatesHeld(teammates) => {
            Some(teammates.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>())
        }
        _ => None,
    });
    assert_eq!(asked, Some(vec![name]), "{:?}", stage.acts);
    stage.acts.clear();
    stage.chat.done(CommandResult::TeammatesHeld(Ok(vec![(name.to_owned(), count)])));
    stage.paint();
}

/// Whom somebody has asked for before is left out of a later order, which says so, and is still waited for.
#[test]
fn a_starting_teammate_is_left_out_of_a_later_order() {
    let mut stage = Stage::new(80, 24);
    for _ in 0..2 {
        stage.chat.session_mut().recruit(vec![Spawn { name: "eva".into(), ..Spawn::default() }]);
    }
    stage.chat.done(CommandResult::Recruited(Ok(Vec::new())));
    stage.chat.done(CommandResult::Recruited(Ok(vec!["eva".into()])));
    stage.paint();
    let screen = stage.glass.screen();
    assert!(screen.contains("eva: already here or about to start"), "{screen}");
    stage.say("stop");
    assert!(matches!(stage.acts.last(), Some(UiCommand::StopSession)), "the first order goes on: {:?}", stage.acts);
}
