//! A letter that has chosen an answer, when something else than Enter or a word follows it.

use crossterm::event::{KeyCode, KeyModifiers};
use max_team_core::event::{Event, QuestionAnswered};
use max_team_core::id::QuestionId;
use max_team_core::policy::{DecidedBy, PermissionAnswer};
use uuid::Uuid;

use super::super::command_queue::UiCommand;
use super::stage::{Stage, edit};
use super::{DIFF, conversation};

/// Somebody is asked whether a file may be edited, and looks at it.
fn asked() -> Stage {
    let mut stage = Stage::new(80, 24);
    conversation(&mut stage);
    stage.asks(7, "2.0", edit("README.md", DIFF));
    stage.wait(1_000);
    stage.acts.clear();
    stage
}

fn answered_elsewhere(stage: &mut Stage, number: u128) {
    let answer = PermissionAnswer::new(true, DecidedBy::Person("telegram".into()));
    let question = QuestionId::new(Uuid::from_u128(number));
    stage.event(Event::QuestionAnswered(QuestionAnswered { question, answer }));
}

fn says_nothing(stage: &Stage) -> bool {
    !stage.acts.iter().any(|act| matches!(act, UiCommand::Say { .. } | UiCommand::Answer { .. }))
}

#[test]
fn a_letter_whose_question_has_gone_is_no_message() {
    for letter in ['y', 'n', 'a'] {
        let mut stage = asked();
        stage.key(KeyCode::Char(letter));
        answered_elsewhere(&mut stage, 7);
        stage.key(KeyCode::Enter);
        assert!(says_nothing(&stage), "{letter}: {:?}", stage.acts);
        // Nor is it the first letter of the next one, whenever that is written.
        stage.write("hello");
        stage.key(KeyCode::Enter);
        assert!(matches!(stage.acts.last(), Some(UiCommand::Say { text, .. }) if text == "hello"), "{:?}", stage.acts);
    }
    let mut stage = asked();
    stage.key(KeyCode::Char('y'));
    answered_elsewhere(&mut stage, 7);
    stage.chat.paste("a paste");
    stage.paint();
    assert!(stage.glass.screen().contains("> a paste"), "{}", stage.glass.screen());
}

#[test]
fn a_letter_for_one_question_says_nothing_to_the_next() {
    let mut stage = asked();
    stage.asks(8, "2.1", edit("other.md", DIFF));
    stage.key(KeyCode::Char('n'));
    answered_elsewhere(&mut stage, 7);
    assert!(stage.glass.screen().contains("other.md"), "{}", stage.glass.screen());
    stage.key(KeyCode::Enter);
    assert!(says_nothing(&stage), "{:?}", stage.acts);
    // However long one looks at it: a bare Enter may still be meant for the one before.
    stage.wait(60_000);
    stage.key(KeyCode::Enter);
    assert!(says_nothing(&stage) && stage.glass.screen().contains("this is another question"), "{:?}", stage.acts);
    // The other one is answered by what is chosen at it.
    stage.wait(1_000);
    stage.key(KeyCode::Char('n'));
    stage.key(KeyCode::Enter);
    let Some(UiCommand::Answer { question, answer }) = stage.acts.last() else { panic!("{:?}", stage.acts) };
    assert_eq!((*question, answer.allow), (QuestionId::new(Uuid::from_u128(8)), false));
}

#[test]
fn a_letter_whose_question_has_no_room_is_no_message() {
    let mut stage = asked();
    stage.key(KeyCode::Char('y'));
    stage.resize(30, 24);
    assert!(!stage.glass.screen().contains("edit_file"), "{}", stage.glass.screen());
    stage.key(KeyCode::Enter);
    assert!(says_nothing(&stage), "{:?}", stage.acts);
}

#[test]
fn a_letter_with_control_or_alt_is_not_the_first_of_a_message() {
    for (letter, modifier) in [
        ('a', KeyModifiers::CONTROL),
        ('e', KeyModifiers::CONTROL),
        ('y', KeyModifiers::CONTROL),
        ('b', KeyModifiers::ALT),
        ('n', KeyModifiers::ALT),
    ] {
        let mut stage = asked();
        stage.press(KeyCode::Char(letter), modifier);
        stage.write("hello");
        let screen = stage.glass.screen();
        assert!(screen.contains("> hello"), "{modifier:?} {letter}: {screen}");
    }
}

/// A bare Enter, with nothing chosen by anybody, is no answer, however long one looks at the question.
#[test]
fn enter_with_nothing_chosen_answers_nothing() {
    let mut stage = asked();
    for wait_ms in [0, 1_000, 60_000] {
        stage.wait(wait_ms);
        stage.key(KeyCode::Enter);
        assert!(says_nothing(&stage), "{:?}", stage.acts);
        let screen = stage.glass.screen();
        assert!(screen.contains("nothing is chosen yet: y, a, n, ←, → chooses, then Enter answers"), "{screen}");
    }
    // Nor is what was taken back still chosen.
    for key in [KeyCode::Char('y'), KeyCode::Backspace, KeyCode::Enter] {
        stage.key(key);
    }
    assert!(says_nothing(&stage), "{:?}", stage.acts);
    stage.press(KeyCode::Char('n'), KeyModifiers::CONTROL);
    stage.key(KeyCode::Enter);
    assert!(says_nothing(&stage), "{:?}", stage.acts);
    stage.key(KeyCode::Left);
    stage.key(KeyCode::Enter);
    assert!(matches!(stage.acts.last(), Some(UiCommand::Answer { answer, .. }) if !answer.allow), "{:?}", stage.acts);
}

/// A question has no cursor, and a terminal that becomes lower drops what is below it: nothing that is not ours is erased for that.
#[test]
fn a_window_that_shrinks_around_a_question_takes_nothing_of_the_conversation() {
    let mut stage = asked();
    stage.resize(110, 40);
    let said = |stage: &Stage| -> Vec<String> {
        let everything = stage.glass.everything();
        let rows = everything.lines().take_while(|line| !line.starts_with("? ") && !line.starts_with('⏸'));
        rows.flat_map(str::split_whitespace).map(str::to_owned).collect()
    };
    let before = said(&stage);
    assert!(before.len() > 3, "{before:?}");
    for (columns, rows) in [(20, 5), (40, 10), (110, 40), (80, 24), (20, 5), (40, 10), (20, 5)] {
        stage.resize(columns, rows);
        assert_eq!(said(&stage).concat(), before.concat(), "{columns}x{rows}: {}", stage.glass.everything());
    }
}

/// In a window that becomes too small words that go along with an answer wait, and so does the answer.
#[test]
fn words_along_with_an_answer_wait_for_a_larger_window() {
    let mut stage = asked();
    for key in [KeyCode::Char('n'), KeyCode::Tab] {
        stage.key(key);
    }
    stage.write("use tabs");
    stage.resize(30, 24);
    stage.key(KeyCode::Enter);
    assert!(says_nothing(&stage), "{:?}", stage.acts);
    stage.resize(80, 24);
    stage.key(KeyCode::Enter);
    let Some(UiCommand::Answer { answer, .. }) = stage.acts.last() else { panic!("{:?}", stage.acts) };
    assert_eq!((answer.allow, answer.comment.as_str()), (false, "use tabs"));
}

/// A question is answered elsewhere while words are written that would go along with an answer: they are not lost, and go to nobody
/// else by the key that was meant for it.
#[test]
fn words_for_a_question_that_is_answered_elsewhere_come_back() {
    let mut stage = asked();
    for key in [KeyCode::Char('y'), KeyCode::Tab] {
        stage.key(key);
    }
    stage.write("my long comment");
    stage.acts.clear();
    let answer = PermissionAnswer::new(false, DecidedBy::Person("me at cli".into()));
    let question = stage.chat.session().questions.first().unwrap().id;
    stage.event(Event::QuestionAnswered(QuestionAnswered { question, answer }));
    assert!(stage.glass.screen().contains("> my long comment"), "{}", stage.glass.screen());
    stage.key(KeyCode::Enter);
    assert!(says_nothing(&stage) && stage.acts.is_empty(), "{:?}", stage.acts);
    stage.wait(1_000);
    stage.key(KeyCode::Enter);
    assert!(
        matches!(stage.acts.last(), Some(UiCommand::Say { text, .. }) if text == "my long comment"),
        "{:?}",
        stage.acts
    );

    // What has gone along with an answer does not.
    let mut stage = asked();
    for key in [KeyCode::Char('y'), KeyCode::Tab] {
        stage.key(key);
    }
    stage.write("with tabs");
    stage.key(KeyCode::Enter);
    let Some(UiCommand::Answer { question, answer }) = stage.acts.last().cloned() else { panic!("{:?}", stage.acts) };
    stage.event(Event::QuestionAnswered(QuestionAnswered { question, answer }));
    assert!(!stage.glass.screen().contains("with tabs"), "{}", stage.glass.screen());
}

/// Words for an answer that nobody has chosen yet wait for it: they go along with it, and never to the lead.
#[test]
fn words_that_are_written_before_an_answer_is_chosen_go_along_with_it() {
    let mut stage = asked();
    // Also right behind a key that was for the draft.
    for key in [KeyCode::Char('x'), KeyCode::Backspace, KeyCode::Tab] {
        stage.key(key);
    }
    assert!(stage.glass.screen().contains("Comment to send with the answer"), "{}", stage.glass.screen());
    stage.write("use tabs, any");
    stage.key(KeyCode::Enter);
    let screen = stage.glass.screen();
    assert!(says_nothing(&stage), "{:?}", stage.acts);
    assert!(screen.contains("your comment: use tabs, any") && screen.contains("nothing is chosen yet"), "{screen}");
    // They can be changed, and are dropped by Esc before the question is put off.
    stage.key(KeyCode::Tab);
    stage.write(" time");
    stage.key(KeyCode::Enter);
    stage.key(KeyCode::Char('n'));
    stage.key(KeyCode::Enter);
    let Some(UiCommand::Answer { answer, .. }) = stage.acts.last() else { panic!("{:?}", stage.acts) };
    assert_eq!((answer.allow, answer.comment.as_str()), (false, "use tabs, any time"));
    let mut stage = asked();
    stage.key(KeyCode::Tab);
    stage.write("no");
    for key in [KeyCode::Enter, KeyCode::Esc, KeyCode::Char('y'), KeyCode::Enter] {
        stage.key(key);
    }
    let Some(UiCommand::Answer { answer, .. }) = stage.acts.last() else { panic!("{:?}", stage.acts) };
    assert_eq!((answer.allow, answer.comment.as_str()), (true, ""));
}

/// Where what is being written takes the place of the question, that is said.
#[test]
fn a_draft_that_takes_the_room_of_a_question_is_said_to() {
    for (rows, name) in [(10, "draft_40x10"), (8, "draft_40x8")] {
        let mut stage = Stage::new(40, rows);
        conversation(&mut stage);
        stage.asks(7, "2.0", edit("README.md", DIFF));
        stage.wait(1_000);
        stage.write("hello");
        insta::assert_snapshot!(name, stage.glass.screen());
    }
}
