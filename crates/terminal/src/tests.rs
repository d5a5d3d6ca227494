//! Whole conversations, as a terminal shows them.
//!
//! The bytes go through a terminal in memory (`glass`), so that scrolling, resizing and the scrollback are tested with
//! the painter itself. Snapshots are the screen, or the scrollback with it.

mod busy;
mod detach;
mod gate;
mod glass;
mod keys;
mod list;
mod mentions;
mod output;
mod own;
pub(crate) mod stage;
mod team;
pub(super) mod team_stage;
mod teammates;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyModifiers};
use max_team_core::chat::Part;
use max_team_core::context::Window;
use max_team_core::context::summary::{Compacted, CompactionFailed, CompactionReason};
use max_team_core::event::{
    Event, Interrupted, LlmEnded, LlmOutcome, QuestionAnswered, ToolOutcome, TurnEnded, TurnOutcome, UserMessage,
};
use max_team_core::id::{EnvelopeId, QuestionId};
use max_team_core::message::{Principal, Role};
use max_team_core::policy::{Action, DecidedBy, GrantScope, MergeDecision, Mode, PermissionAnswer};
use max_team_core::recovery::Failure;
use max_team_runtime::{Delta, Notice, OpenedSession, RuntimeError, Which};
use proptest::prelude::*;
use ratatui::layout::Size;
use ratatui::text::Line;
use serde_json::json;
use uuid::Uuid;

use super::chat::Wish;
use super::command_queue::{Arrival, CommandResult, UiCommand};
use super::screen::{Screen, View};
use glass::Glass;
use max_team_workspace::i18n::Lang;
use stage::{Stage, edit, intent, session_id, tool_use};

const DIFF: &str = "--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,4 @@\n # Demo\n \n-A small project.\n+A *small* project, 有中文.\n+It is being edited.\n";

const ANSWER: &str = "\
## What I found

The readme is **short**, see `README.md` and [the docs](https://example.com):

1. a title
2. one paragraph that is long enough to be wrapped when the terminal is no wider than eighty columns
   - nested

```rust
fn main() {}
```

| name | 说明 |
|------|-----:|
| 中文 | wide |
";

/// Reads, asks, edits and answers; stops before the turn ends.
fn conversation(stage: &mut Stage) {
    stage.say("make the readme nicer");
    stage.begin("make the readme nicer");
    stage.delta(Delta::Thinking("Let me look at it first.\nThen I will".into()));
    stage.wait(2_300);
    stage.stream("I will look at the file.");
    let calls = vec![
        Part::Thinking { text: "Let me look".into() },
        Part::text("I will look at the file."),
        tool_use("read_file", json!({"path": "README.md"})),
        tool_use("read_file", json!({"path": "nope.md"})),
    ];
    stage.answer(calls);
    stage.runs("1.0", "read_file", Action::read("README.md"));
    stage.done("1.1", ToolOutcome::Invalid, "`nope.md` does not exist\nmore", true, 0);
    stage.done("1.0", ToolOutcome::Ran, "1\n2\n3\n", false, 1_240);
    stage.call();
    stage.answer(vec![tool_use("edit_file", json!({"path": "README.md"}))]);
}

#[test]
fn a_conversation_at_80x24() {
    let mut stage = Stage::new(80, 24);
    insta::assert_snapshot!("start_80x24", stage.glass.screen());
    conversation(&mut stage);
    stage.asks(7, "2.0", edit("README.md", DIFF));
    stage.wait(1_000);
    insta::assert_snapshot!("question_80x24", stage.glass.screen());

    assert_eq!(stage.key(KeyCode::Char('y')), None);
    assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Answer { .. })), "it only chooses");
    stage.key(KeyCode::Enter);
    let Some(UiCommand::Answer { answer, .. }) = stage.acts.last() else { panic!("{:?}", stage.acts) };
    assert_eq!((answer.allow, answer.always, &answer.by), (true, false, &DecidedBy::Person("terminal".into())));
    stage.runs("2.0", "edit_file", edit("README.md", DIFF));
    stage.wait(500);
    insta::assert_snapshot!("running_80x24", stage.glass.screen());
    stage.done("2.0", ToolOutcome::Ran, "ok", false, 20);
    stage.call();
    stage.stream(ANSWER);
    insta::assert_snapshot!("writing_80x24", stage.glass.screen());
    stage.answer(vec![Part::text(ANSWER)]);
    stage.end(TurnOutcome::Answered);
    insta::assert_snapshot!("whole_80x24", stage.glass.everything());
}

#[test]
fn a_conversation_at_120x40() {
    let mut stage = Stage::new(120, 40);
    conversation(&mut stage);
    stage.asks(7, "2.0", edit("README.md", DIFF));
    stage.asks(8, "2.1", edit("src/深/lib.rs", &format!("@@ -0,0 +1,90 @@\n{}", "+let x = 1;\n".repeat(90))));
    stage.wait(1_000);
    insta::assert_snapshot!("question_120x40", stage.glass.screen());
    stage.key(KeyCode::Char('a'));
    stage.key(KeyCode::Enter);
    stage.key(KeyCode::PageDown);
    insta::assert_snapshot!("second_question_120x40", stage.glass.screen());
}

#[test]
fn worktree_changes_are_accepted_dropped_or_left() {
    let table = [
        (vec![KeyCode::Char('y'), KeyCode::Enter], MergeDecision::Taken),
        (vec![KeyCode::Enter, KeyCode::Right, KeyCode::Enter], MergeDecision::Taken),
        (vec![KeyCode::Char('n'), KeyCode::Enter], MergeDecision::Dropped),
        (vec![KeyCode::Right, KeyCode::Right, KeyCode::Enter], MergeDecision::Dropped),
        (vec![KeyCode::Esc], MergeDecision::Left),
        (vec![KeyCode::Tab, KeyCode::Left, KeyCode::Enter], MergeDecision::Left),
    ];
    for (keys, want) in table {
        let mut stage = Stage::new(80, 24);
        conversation(&mut stage);
        stage.event(stage::merges("2.0", DIFF));
        stage.wait(1_000);
        if want == MergeDecision::Taken {
            insta::assert_snapshot!("merge_80x24", stage.glass.screen());
        }
        for key in &keys {
            assert_eq!(stage.key(*key), None);
        }
        let Some(UiCommand::Answer { answer, .. }) = stage.acts.last() else { panic!("{keys:?}: {:?}", stage.acts) };
        assert_eq!((answer.merge_decision(), answer.always), (want, false), "{keys:?}");
        stage.done("2.0", ToolOutcome::Ran, "Changed.\n\n[The user has rejected the changes.]", false, 0);
        let screen = stage.glass.screen();
        assert!(screen.contains(" → The user has rejected") && !screen.contains("(+2"), "{screen}");
    }
    let mut stage = Stage::with(80, 24, false, Lang::Zh);
    conversation(&mut stage);
    stage.event(stage::merges("2.0", DIFF));
    stage.wait(1_000);
    let screen = stage.glass.screen();
    assert!(["工作树", "接受改动", "丢弃改动", "稍后决定"].iter().all(|words| screen.contains(words)), "{screen}");
}

#[test]
fn a_conversation_in_chinese_without_colour() {
    let mut stage = Stage::with(80, 24, false, Lang::Zh);
    stage.say("你好，请帮我看看这个项目里有没有什么问题，并且告诉我应该怎样修改才会更好一些，谢谢您");
    stage.begin("你好，请帮我看看这个项目里有没有什么问题，并且告诉我应该怎样修改才会更好一些，谢谢您");
    let answer = "好的！这是一个**很长**的段落，用来检查换行。每个汉字占两列，标点不应出现在行首，包括逗号、句号和引号“这样”。\n\n- 第一项 `代码`\n- 第二项 👩‍💻\n";
    stage.stream(answer);
    stage.write("还有一个问题");
    insta::assert_snapshot!("chinese_80x24", stage.glass.screen());
    assert_eq!(stage.glass.cursor(), (14, 14));
    assert!(!stage.glass.colored);
    stage.answer(vec![Part::text(answer)]);
    stage.asks(7, "1.0", edit("说明.md", DIFF));
    stage.wait(1_000);
    insta::assert_snapshot!("chinese_question_80x24", stage.glass.screen());
    assert!(!stage.glass.colored);
    stage.press(KeyCode::Char('u'), KeyModifiers::CONTROL);
    stage.wait(1_000);
    stage.key(KeyCode::Char('n'));
    stage.key(KeyCode::Enter);
    stage.done("1.0", ToolOutcome::Refused, "The user said no.", true, 0);
    stage.end(TurnOutcome::Failed { failure: Failure::Auth, detail: "invalid x-api-key".into() });
    insta::assert_snapshot!("chinese_end_80x24", stage.glass.screen());
}

#[test]
fn a_resize_loses_nothing_and_shows_nothing_twice() {
    let mut stage = Stage::new(80, 24);
    conversation(&mut stage);
    stage.call();
    stage.stream(ANSWER);
    stage.write("a draft of some length 草稿");
    for (columns, rows) in [(60, 24), (100, 30), (47, 20), (120, 40), (80, 24)] {
        stage.resize(columns, rows);
        let everything = stage.glass.everything();
        for once in [
            "make the readme nicer",
            "thought for",
            "does not exist",
            "What I found",
            "fn main",
            "a draft of",
            "default mode",
        ] {
            assert_eq!(everything.matches(once).count(), 1, "{once} at {columns}x{rows}:\n{everything}");
        }
    }
    insta::assert_snapshot!("resized_80x24", stage.glass.everything());
}

#[test]
fn a_tiny_terminal_still_shows_the_draft() {
    let mut stage = Stage::new(20, 4);
    conversation(&mut stage);
    stage.write("draft");
    stage.asks(7, "2.0", edit("README.md", DIFF));
    assert!(stage.glass.screen().contains("draft"), "{}", stage.glass.screen());
    for (columns, rows) in [(2, 2), (1, 1), (3, 24), (80, 2), (80, 24)] {
        stage.resize(columns, rows);
    }
}

#[test]
fn queued_messages_are_chips_until_their_turn_begins() {
    let mut stage = Stage::new(80, 24);
    stage.say("first");
    assert!(stage.glass.screen().contains("\n> first\n"), "{}", stage.glass.screen());
    stage.begin("first");
    stage.wait(1_500);
    stage.say("second 第二");
    stage.say("third");
    insta::assert_snapshot!("queued_80x24", stage.glass.screen());
    stage.end(TurnOutcome::Answered);
    stage.begin("second 第二");
    let screen = stage.glass.screen();
    assert!(screen.contains("> second 第二") && screen.contains("(Up takes it back): third"), "{screen}");
    assert!(!screen.contains(": second"), "{screen}");
}

#[test]
fn the_news_of_a_message_may_come_after_its_turn_began() {
    let mut stage = Stage::new(80, 24);
    stage.say("hello");
    let Some(UiCommand::Say { key, .. }) = stage.acts.last() else { panic!() };
    let key = *key;
    stage.begin("hello");
    let by = Principal { door: "terminal".into(), user: "me".into(), role: Role::Owner };
    stage.event(Event::Said(UserMessage { envelope: key, text: "hello".into(), by, cwd: String::new() }));
    stage.end(TurnOutcome::Answered);
    assert!(!stage.chat.session().is_busy());
}

#[test]
fn a_message_that_was_not_sent_comes_back_into_the_draft() {
    let mut stage = Stage::new(80, 24);
    stage.say("precious words");
    let Some(UiCommand::Say { key, text, .. }) = stage.acts.last().cloned() else { panic!() };
    stage.chat.done(CommandResult::Said { key, text, outcome: Err(RuntimeError::QueueFull(20)) });
    stage.paint();
    let screen = stage.glass.screen();
    assert!(screen.contains("> precious words") && screen.contains("20 messages are queued"), "{screen}");
    assert!(!stage.chat.session().is_busy());
}

#[test]
fn a_question_under_somebodys_typing_is_not_answered_by_it() {
    let mut stage = Stage::new(80, 24);
    conversation(&mut stage);
    stage.write("ye");
    stage.asks(7, "2.0", edit("README.md", DIFF));
    stage.write("y");
    assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Answer { .. })));
    assert!(stage.glass.screen().contains("> yey"));
    // Nor in the middle of a sentence, however long that pauses.
    stage.wait(1_000);
    stage.write("n");
    assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Answer { .. })));
    let screen = stage.glass.screen();
    assert!(screen.contains("> yeyn") && screen.contains("send or clear your draft, then answer"), "{screen}");
    for _ in 0..4 {
        stage.key(KeyCode::Backspace);
    }
    // Once it is cleared, a letter key chooses at once.
    stage.write("n");
    stage.key(KeyCode::Enter);
    let Some(UiCommand::Answer { answer, .. }) = stage.acts.last() else { panic!("{:?}", stage.acts) };
    assert!(!answer.allow);
}

/// Letter keys only choose: whatever a sentence begins with, it goes whole into the draft and answers nothing.
#[test]
fn a_sentence_answers_no_question() {
    for words in ["yes but slowly", "no", "all good, go on", "any", "nay", "can you wait", "12 files?"] {
        let mut stage = Stage::new(80, 24);
        conversation(&mut stage);
        stage.asks(7, "2.0", edit("README.md", DIFF));
        stage.wait(1_000);
        stage.write(words);
        let screen = stage.glass.screen();
        assert!(screen.contains(&format!("> {words}")), "{screen}");
        stage.wait(1_000);
        stage.key(KeyCode::Enter);
        assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Answer { .. })), "{words}: {:?}", stage.acts);
        assert!(matches!(stage.acts.last(), Some(UiCommand::Say { text, .. }) if text == words), "{:?}", stage.acts);
    }
    // A letter key pressed by mistake is taken back, and the other key counts.
    let mut stage = Stage::new(80, 24);
    conversation(&mut stage);
    stage.asks(7, "2.0", edit("README.md", DIFF));
    stage.wait(1_000);
    for key in [KeyCode::Char('y'), KeyCode::Backspace, KeyCode::Char('n'), KeyCode::Enter] {
        stage.key(key);
    }
    let Some(UiCommand::Answer { answer, .. }) = stage.acts.last() else { panic!("{:?}", stage.acts) };
    assert!(!answer.allow);
}

/// Who does not answer has not said no: the question stays, and comes back when it is asked for.
#[test]
fn a_question_that_is_put_off_is_no_answer() {
    let mut stage = Stage::new(80, 24);
    conversation(&mut stage);
    stage.asks(7, "2.0", edit("README.md", DIFF));
    stage.wait(1_000);
    assert!(stage.glass.screen().contains(" Esc  later"), "{}", stage.glass.screen());
    stage.acts.clear();
    stage.key(KeyCode::Esc);
    assert!(stage.acts.is_empty(), "{:?}", stage.acts);
    let screen = stage.glass.screen();
    assert!(screen.contains("Max goes on waiting for your answer (edit_file)"), "{screen}");
    assert!(screen.contains("⏸ a question waits for you") && !screen.contains("A *small* project"), "{screen}");
    stage.say("/inbox");
    stage.wait(1_000);
    assert!(stage.glass.screen().contains("A *small* project"), "{}", stage.glass.screen());
    stage.key(KeyCode::Char('y'));
    stage.key(KeyCode::Enter);
    assert!(matches!(stage.acts.last(), Some(UiCommand::Answer { answer, .. }) if answer.allow), "{:?}", stage.acts);
}

#[test]
fn questions_are_answered_one_by_one_with_words_or_elsewhere() {
    let mut stage = Stage::new(80, 24);
    conversation(&mut stage);
    for number in 7..10 {
        stage.asks(number, &format!("2.{number}"), edit(&format!("file{number}"), DIFF));
    }
    stage.wait(1_000);
    assert!(stage.glass.screen().contains("1 of 3 questions"));
    stage.key(KeyCode::Char('n'));
    stage.key(KeyCode::Tab);
    stage.write("use tabs 用制表符");
    assert!(stage.glass.screen().contains("> use tabs 用制表符"));
    stage.key(KeyCode::Enter);
    let Some(UiCommand::Answer { question, answer, .. }) = stage.acts.last() else { panic!("{:?}", stage.acts) };
    assert_eq!(*question, QuestionId::new(Uuid::from_u128(7)));
    assert_eq!((answer.allow, answer.comment.as_str()), (false, "use tabs 用制表符"));

    assert!(stage.glass.screen().contains("file8"));
    let elsewhere = PermissionAnswer::new(true, DecidedBy::Person("telegram".into()));
    let question = QuestionId::new(Uuid::from_u128(8));
    stage.event(Event::QuestionAnswered(QuestionAnswered { question, answer: elsewhere }));
    let screen = stage.glass.screen();
    assert!(screen.contains("answered elsewhere: yes (telegram)") && screen.contains("file9"), "{screen}");

    stage.chat.done(CommandResult::Answered {
        question: QuestionId::new(Uuid::from_u128(7)),
        outcome: Err(RuntimeError::NotOpen(session_id())),
    });
    stage.paint();
    assert!(stage.glass.screen().contains("file7"), "an answer that did not get through is asked for again");
    stage.done("2.7", ToolOutcome::Interrupted, "", true, 0);
    stage.end(TurnOutcome::Interrupted);
    assert!(!stage.glass.screen().contains("waiting for your answer"));
}

#[test]
fn a_yes_for_the_repository_is_written_down_once_it_counts() {
    let yes = PermissionAnswer {
        always: true,
        until: GrantScope::Repository,
        ..PermissionAnswer::new(true, DecidedBy::Person("me".into()))
    };
    let no = PermissionAnswer::new(false, DecidedBy::Person("ada at cli".into()));
    for (counted, want) in [(yes, vec![vec!["Edit".to_owned()]]), (no, Vec::new())] {
        let mut stage = Stage::new(80, 24);
        conversation(&mut stage);
        stage.asks(7, "2.0", edit("README.md", DIFF));
        stage.wait(1_000);
        for key in [KeyCode::Right, KeyCode::Right, KeyCode::Right, KeyCode::Right, KeyCode::Enter] {
            stage.key(key);
        }
        let Some(UiCommand::Answer { question, answer }) = stage.acts.last().cloned() else {
            panic!("{:?}", stage.acts)
        };
        assert_eq!((answer.allow, answer.until), (true, GrantScope::Repository));
        stage.event(Event::QuestionAnswered(QuestionAnswered { question, answer: counted }));
        let kept = |act| if let UiCommand::Remember(rules) = act { Some(rules) } else { None };
        let rules: Vec<Vec<String>> = stage.acts.into_iter().filter_map(kept).collect();
        assert_eq!(rules, want);
    }
}

#[test]
fn a_compaction_is_one_line_and_can_be_taken_back() {
    let mut stage = Stage::new(100, 24);
    stage.say("/compact undo");
    assert!(stage.acts.iter().any(|act| matches!(act, UiCommand::Uncompact)));
    stage.say("go");
    stage.begin("go");
    let compacted = Compacted {
        before: 52,
        window: Window::default(),
        why: CompactionReason::Full,
        summary: "They talked.".into(),
        facts: String::new(),
        messages: (61, 9),
        tokens: (160_000, 9_000),
    };
    stage.event(Event::Compacted(compacted));
    let screen = stage.glass.screen();
    assert!(screen.contains("context compacted: 61 → 9 messages; /compact undo takes it back"), "{screen}");
    assert!(!screen.contains("They talked."));
    stage.event(Event::CompactionFailed(CompactionFailed { detail: "overloaded".into() }));
    assert!(stage.glass.screen().contains("no summary could be made (overloaded)"));
}

#[test]
fn escape_and_ctrl_c_interrupt_clear_and_leave() {
    let interrupts = |stage: &Stage| stage.acts.iter().filter(|act| matches!(act, UiCommand::Interrupt)).count();
    let mut stage = Stage::new(80, 24);
    stage.say("go");
    stage.begin("go");
    stage.write("draft");
    stage.key(KeyCode::Esc);
    assert_eq!(interrupts(&stage), 1);
    stage.event(Event::Interrupted(Interrupted { by: "terminal".into(), who: None, ends: false, held: None }));
    assert!(stage.glass.screen().contains("stopping"));
    stage.control('c');
    assert_eq!(interrupts(&stage), 1, "it is stopping already");
    stage.event(Event::LlmEnded(LlmEnded {
        call: 1,
        outcome: LlmOutcome::Cancelled { partial: "so far".into(), usage: Default::default() },
        ms: 1,
        summary: false,
        estimate: None,
    }));
    stage.end(TurnOutcome::Interrupted);
    assert!(stage.glass.screen().contains("so far"));

    stage.write("more");
    stage.key(KeyCode::Esc);
    assert!(stage.glass.screen().contains("press Esc again"));
    stage.key(KeyCode::Esc);
    stage.write("x");
    assert!(stage.glass.screen().contains("> x\n"));
    assert_eq!(stage.control('c'), None);
    assert_eq!(stage.control('c'), None);
    assert!(stage.glass.screen().contains("press Ctrl-C again"));
    stage.write("y");
    assert_eq!(stage.control('d'), None, "there is a draft");
    stage.control('u');
    stage.control('c');
    assert_eq!(stage.control('c'), Some(Wish::Leave));
    assert_eq!(stage.control('d'), Some(Wish::Leave));
}

/// Half a hint is none.
#[test]
fn hints_are_whole_on_a_small_screen() {
    for lang in [Lang::En, Lang::Zh] {
        assert!(lang.placeholder("leo").contains("Leo"));
    }
    let mut stage = Stage::new(32, 16);
    stage.write("more");
    stage.key(KeyCode::Esc);
    let words = |stage: &Stage| stage.glass.screen().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&stage).contains("press Esc again to clear the draft"), "{}", stage.glass.screen());
    stage.key(KeyCode::Esc);
    stage.say("go");
    stage.begin("go");
    stage.wait(65_000);
    stage.stream("so far");
    assert!(words(&stage).contains("esc to interrupt"), "{}", stage.glass.screen());
}

#[test]
fn alt_enter_interrupts_first_and_shift_tab_changes_the_mode() {
    let mut stage = Stage::new(80, 24);
    stage.say("go");
    stage.begin("go");
    stage.write("no, stop");
    stage.press(KeyCode::Enter, KeyModifiers::ALT);
    let [.., UiCommand::Interrupt, UiCommand::Say { text, .. }] = stage.acts.as_slice() else {
        panic!("{:?}", stage.acts)
    };
    assert_eq!(text, "no, stop");
    stage.key(KeyCode::BackTab);
    let Some(UiCommand::Configure(settings)) = stage.acts.last() else { panic!() };
    assert_eq!(settings.mode, Mode::AcceptEdits);
    assert!(stage.glass.screen().contains("acceptEdits mode"));
}

#[test]
fn retries_and_gaps_are_told() {
    let mut stage = Stage::new(80, 24);
    stage.say("go");
    stage.begin("go");
    stage.stream("The beginning of");
    let failed = |retry_at_ms| {
        let failure = Failure::Overloaded { retry_after_ms: None };
        Event::LlmEnded(LlmEnded {
            call: 1,
            outcome: LlmOutcome::Failed { failure, detail: "529".into(), retry_at_ms, parked: false },
            ms: 5,
            summary: false,
            estimate: None,
        })
    };
    stage.event(failed(Some(stage::START_MS + 2_100)));
    assert!(stage.glass.screen().contains("retrying in 3 s"));
    stage.wait(2_100);
    stage.event(intent(1, 2));
    stage.delta(Delta::Text("The whole".into()));
    stage.delta(Delta::Text("with a hole".into()));
    stage.answer(vec![Part::text("The whole answer with a hole")]);
    stage.end(TurnOutcome::Truncated);
    insta::assert_snapshot!("retries_80x24", stage.glass.everything());
}

#[test]
fn slash_commands_answer_and_order() {
    let mut stage = Stage::new(80, 24);
    stage.write("/");
    insta::assert_snapshot!("completions_80x24", stage.glass.screen());
    stage.write("mod");
    stage.key(KeyCode::Tab);
    stage.say("gpt-5");
    let Some(UiCommand::Configure(settings)) = stage.acts.last() else { panic!("{:?}", stage.acts) };
    assert_eq!(settings.model.name, "gpt-5");
    stage.say("/model gtp");
    assert!(stage.glass.screen().contains("there is no model `gtp`"));
    stage.say("/colst");
    assert!(stage.glass.screen().contains("did you mean /cost?"));
    // It can be put right, and what is written next is not behind it.
    assert!(!stage.glass.screen().contains("> /colst") && stage.glass.screen().contains("Up brings the line back"));
    stage.key(KeyCode::Up);
    assert!(stage.glass.screen().contains("> /colst"), "{}", stage.glass.screen());
    stage.control('u');
    stage.say("/clear");
    assert!(matches!(stage.acts.last(), Some(UiCommand::Open { .. })));
    stage.say("/help");
    insta::assert_snapshot!("help_80x24", stage.glass.everything());
    assert_eq!(
        {
            stage.write("/quit");
            stage.key(KeyCode::Enter)
        },
        Some(Wish::Leave)
    );
}

#[test]
fn history_and_search_bring_drafts_back() {
    let mut stage = Stage::new(80, 24);
    for text in ["first\\", "second line", "other"] {
        stage.say(text);
    }
    stage.write("draft");
    stage.key(KeyCode::Up);
    assert!(stage.glass.screen().contains("> other"));
    stage.key(KeyCode::Up);
    assert!(stage.glass.screen().contains("> first\n  second line"), "{}", stage.glass.screen());
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Down);
    assert!(stage.glass.screen().contains("> draft"));
    stage.control('r');
    stage.write("sec");
    assert!(stage.glass.screen().contains("search history: sec  first second line"), "{}", stage.glass.screen());
    stage.key(KeyCode::Enter);
    assert!(stage.glass.screen().contains("> first\n  second line"));
}

#[test]
fn an_agent_that_stops_is_told_and_leaves_nothing_busy() {
    let mut stage = Stage::new(80, 24);
    stage.say("go");
    stage.begin("go");
    let error = Arc::new(RuntimeError::AgentStopped("disk full".into()));
    stage.chat.notice(&Notice::Stopped { session: session_id(), whole: true, error });
    stage.paint();
    assert!(stage.glass.screen().contains("disk full"));
    assert!(!stage.chat.session().is_busy() && !stage.chat.is_moving());
}

/// It is let go of; whatever is said next opens it again first, and is not lost if that fails.
#[test]
fn a_session_that_has_stopped_is_opened_again_by_what_is_said_next() {
    let mut stage = Stage::new(80, 24);
    stage.say("go");
    stage.begin("go");
    let stopped = |words: &str| {
        let error = Arc::new(RuntimeError::AgentStopped(words.into()));
        Notice::Stopped { session: session_id(), whole: true, error }
    };
    stage.acts.clear();
    for words in ["disk full", "disk full", "the same of another"] {
        stage.chat.notice(&stopped(words));
    }
    stage.begin("too late");
    let screen = stage.glass.screen();
    let counts = ["This session has stopped", "disk full", "too late"].map(|words| screen.matches(words).count());
    assert_eq!(counts, [1, 1, 0], "{screen}");
    assert!(matches!(stage.acts.as_slice(), [UiCommand::Leave]), "{:?}", stage.acts);
    let takes_up = |act: &UiCommand| matches!(act, UiCommand::Open { which: Which::Id(id), .. } if *id == session_id());
    let stops: [(&str, KeyCode); 3] = [("/stop", KeyCode::Enter), ("stop", KeyCode::Enter), ("", KeyCode::Esc)];
    for (words, key) in stops {
        stage.acts.clear();
        stage.write(words);
        stage.key(key);
        assert!(matches!(stage.acts.as_slice(), [UiCommand::StopSession, open] if takes_up(open)), "{:?}", stage.acts);
        let failed = Err(RuntimeError::AgentStopped("still full".into()));
        stage.chat.done(CommandResult::Opened { outcome: failed });
    }
    stage.acts.clear();
    stage.say("one more thing");
    assert!(matches!(stage.acts.as_slice(), [open] if takes_up(open)), "{:?}", stage.acts);
    let failed = Err(RuntimeError::AgentStopped("still full".into()));
    stage.chat.done(CommandResult::Opened { outcome: failed });
    stage.paint();
    assert!(stage.glass.screen().contains("> one more thing"), "{}", stage.glass.screen());
    stage.acts.clear();
    stage.key(KeyCode::Enter);
    let arrival = || Arrival {
        opened: Box::new(OpenedSession { resumed: true, continuing: true, ..stage::opened() }),
        events: vec![(1, stage::started("go"))],
    };
    stage.chat.done(CommandResult::Opened { outcome: Ok(arrival()) });
    stage.paint();
    let (screen, said) = (stage.glass.screen(), stage.acts.last());
    assert_eq!(stage.glass.everything().matches("> go").count(), 1, "it is not shown again: {screen}");
    assert!(matches!(said, Some(UiCommand::Say { text, .. }) if text == "one more thing"), "{said:?}");
    assert!(!stage.chat.session().is_stopped() && stage.chat.session().is_busy());
    // That the session has stopped again may be heard before what became of the words.
    let Some(UiCommand::Say { key, text, .. }) = stage.acts.last().cloned() else { panic!("{:?}", stage.acts) };
    stage.chat.notice(&stopped("disk full"));
    let outcome = Err(RuntimeError::AgentStopped("disk full".into()));
    stage.chat.done(CommandResult::Said { key, text, outcome });
    stage.paint();
    assert!(stage.glass.screen().contains("> one more thing"), "{}", stage.glass.screen());
    stage.key(KeyCode::Esc);
    stage.control('c');
    stage.acts.clear();
    stage.say("/clear");
    assert!(matches!(stage.acts.as_slice(), [.., UiCommand::Open { which: Which::New, .. }]), "{:?}", stage.acts);
}

/// A chat that does not keep up ends: nothing can be tried again in it.
#[test]
fn a_chat_that_is_behind_does_not_say_how_to_try_again() {
    let mut stage = Stage::new(80, 24);
    stage.say("go");
    let error = Arc::new(RuntimeError::Behind(64));
    stage.chat.notice(&Notice::Stopped { session: session_id(), whole: true, error });
    stage.paint();
    let screen = stage.glass.screen();
    assert!(screen.contains("open the session again") && !screen.contains("This session has stopped"), "{screen}");
}

/// A plan or a teammate that breaks is told; the chat goes on, and so does the way to stop it.
#[test]
fn where_one_of_many_stops_the_others_are_heard() {
    let mut stage = Stage::new(80, 24);
    stage.say("go");
    stage.begin("go");
    let error = Arc::new(RuntimeError::AgentStopped("a plan broke".into()));
    stage.chat.notice(&Notice::Stopped { session: session_id(), whole: false, error });
    stage.asks(7, "2.0", edit("a", DIFF));
    stage.wait(1_000);
    let screen = stage.glass.screen();
    assert!(screen.contains("a plan broke") && !screen.contains("This session has stopped"), "{screen}");
    assert!(stage.chat.session().is_busy() && screen.contains("A *small* project"), "{screen}");
}

#[test]
fn a_budget_that_may_not_have_been_spent_says_so() {
    for (unknown_nano, is_told) in [(0, false), (956_200_000, true)] {
        let mut stage = Stage::new(100, 24);
        stage.say("go");
        stage.begin("go");
        let Event::TurnEnded(ended) = stage::ended(TurnOutcome::Budget) else { panic!() };
        stage.event(Event::TurnEnded(TurnEnded { unknown_nano, ..ended }));
        let screen = stage.glass.screen();
        assert!(screen.contains("The budget is used up"), "{screen}");
        assert_eq!(screen.contains("$0.96 of that budget is estimated"), is_told, "{screen}");
    }
}

#[test]
fn an_idle_chat_has_nothing_to_wait_for() {
    let mut stage = Stage::new(80, 24);
    assert!(!stage.chat.is_moving() && stage.chat.changes_at_ms().is_none());
    conversation(&mut stage);
    assert!(stage.chat.is_moving());
    stage.asks(7, "2.0", edit("a", DIFF));
    stage.wait(1_000);
    assert!(!stage.chat.is_moving() && stage.chat.changes_at_ms().is_none());
}

#[test]
fn messages_from_another_door_are_shown_too() {
    let mut stage = Stage::new(80, 24);
    let by = Principal { door: "web".into(), user: "me".into(), role: Role::Owner };
    let envelope = EnvelopeId::new(Uuid::from_u128(99));
    stage.event(Event::Said(UserMessage { envelope, text: "from the web".into(), by, cwd: String::new() }));
    stage.begin("from the web");
    assert_eq!(stage.glass.screen().matches("> from the web").count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is painted, in whatever steps: the terminal shows every finished line once, then the live rows.
    #[test]
    fn the_painter_loses_nothing(
        steps in prop::collection::vec((prop::collection::vec("[a-z中 ]{0,12}", 0..6), prop::collection::vec("[a-z中]{0,12}", 0..6)), 1..12),
        rows in 2usize..9,
    ) {
        let mut glass = Glass::new(12, rows);
        let mut screen = Screen::new(Size::new(12, u16::try_from(rows).unwrap()));
        let mut all = Vec::new();
        let mut live = Vec::new();
        for (finished, now) in steps {
            let fit = |text: &String| Line::from(super::text::cut(text, 12).trim_end().to_owned());
            let finished: Vec<Line<'static>> = finished.iter().map(fit).collect();
            live = now.iter().map(fit).take(rows - 1).collect();
            let view = View { lines: live.clone(), cursor: live.len().checked_sub(1).map(|last| (0, last)) };
            let mut bytes = Vec::new();
            screen.paint(&mut bytes, &finished, &view).unwrap();
            glass.feed(&bytes);
            all.extend(finished);
        }
        let want: Vec<String> = all.iter().chain(&live).map(ToString::to_string).collect();
        let want = format!("\n{}", want.join("\n")).trim_end().to_owned();
        prop_assert_eq!(glass.everything(), want);
    }
}
