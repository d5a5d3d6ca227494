//! What commands print: a live tail, an excerpt below the call, and all of it with Ctrl-O.

use crossterm::event::KeyCode;
use max_team_core::event::{ToolOutcome, TurnOutcome};
use max_team_core::policy::{Action, ActionKind};
use max_team_runtime::Delta;
use serde_json::json;

use super::super::command_queue::UiCommand;
use super::stage::{Stage, tool_use};
use max_team_workspace::i18n::Lang;

fn command(line: &str) -> Action {
    Action { kind: ActionKind::Execute, ..Action::read(line) }
}

/// A turn that runs these commands, each with its result and whether it failed.
fn run(stage: &mut Stage, commands: &[(&str, &str, bool)]) {
    stage.say("run it");
    stage.begin("run it");
    stage.answer(commands.iter().map(|(line, ..)| tool_use("run_shell", json!({ "command": line }))).collect());
    for (index, (line, result, is_error)) in commands.iter().enumerate() {
        let key = format!("1.{index}");
        stage.runs(&key, "run_shell", command(line));
        stage.done(&key, ToolOutcome::Ran, result, *is_error, 1_240);
    }
}

fn lines(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

fn mixed() -> Vec<(&'static str, String, bool)> {
    vec![
        ("seq 40", format!("exit code 0, 0.1 s\n{}", lines(40)), false),
        ("seq 6", format!("exit code 0, 0.1 s\n{}", lines(6)), false),
        ("true", "exit code 0, 0.0 s\n(it printed nothing)".into(), false),
        (
            "cargo test",
            format!("exit code 101, 9.9 s\n{}error: 測試失敗 `a == b`\n\u{202e}\u{1b}[31mred\u{200b}\n", lines(9)),
            true,
        ),
        ("pull", "exit code 0, 2.0 s\n10%\r50%\r100% 完成\n".into(), false),
    ]
}

#[test]
fn an_excerpt_of_the_output_stands_below_each_command() {
    for (columns, rows, name) in [(80, 24, "output_80x24"), (120, 40, "output_120x40"), (24, 40, "output_24x40")] {
        let mut stage = Stage::new(columns, rows);
        let mixed = mixed();
        let commands: Vec<(&str, &str, bool)> =
            mixed.iter().map(|(line, out, bad)| (*line, out.as_str(), *bad)).collect();
        run(&mut stage, &commands);
        insta::assert_snapshot!(name, stage.glass.everything());
    }
    let mut stage = Stage::with(80, 24, false, Lang::Zh);
    run(&mut stage, &[("seq 40", &format!("exit code 0, 0.1 s\n{}", lines(40)), false)]);
    insta::assert_snapshot!("output_chinese", stage.glass.everything());
}

#[test]
fn a_command_that_runs_shows_its_last_lines() {
    let mut stage = Stage::new(60, 24);
    stage.say("run it");
    stage.begin("run it");
    stage.answer(vec![tool_use("run_shell", json!({ "command": "make" })), tool_use("search_code", json!({}))]);
    stage.runs("1.0", "run_shell", command("make"));
    let words = "compiling a.c\n编译 b.c\nlinking a program with a name that is longer than the window is wide";
    stage.delta(Delta::Progress { key: "1.0".into(), words: words.into() });
    insta::assert_snapshot!("tail_60x24", stage.glass.screen());
    stage.delta(Delta::Progress { key: "1.0".into(), words: "done".into() });
    let screen = stage.glass.screen();
    assert!(screen.contains("⎿ done") && !screen.contains("compiling"), "{screen}");
    stage.done("1.0", ToolOutcome::Ran, "exit code 0, 3.0 s\ndone\n", false, 3_000);
    assert_eq!(stage.glass.everything().matches("⎿ done").count(), 1, "the tail gives way to the excerpt");
}

#[test]
fn ctrl_o_unfolds_the_last_turn_and_folds_it_again() {
    let mut stage = Stage::new(80, 24);
    stage.control('o');
    assert!(stage.glass.screen().contains("Nothing to expand"));
    let result = format!("exit code 1, 0.1 s\n{}", lines(60));
    run(&mut stage, &[("seq 60; exit 1", &result, true), ("true", "exit code 0, 0.0 s\n(it printed nothing)", false)]);
    stage.end(TurnOutcome::Answered);
    let before = stage.glass.screen();
    stage.write("half a draft");
    stage.control('o');
    insta::assert_snapshot!("expanded_80x24", stage.glass.screen());
    stage.key(KeyCode::PageUp);
    let (up, first) = (stage.glass.screen(), stage.key(KeyCode::Home));
    assert!(first.is_none() && up.contains("line 40") && !up.contains("(it printed nothing)"), "{up}");
    let top = stage.glass.screen();
    assert!(top.contains("command: seq 60; exit 1") && top.contains("line 1\n") && top.contains("lines 1-"), "{top}");
    stage.key(KeyCode::End);
    stage.write("qhi");
    let folded = stage.glass.screen();
    assert!(folded.contains("> half a drafthi") && !folded.contains("PgUp"), "{folded}");
    assert!(before.contains("… +55 lines (Ctrl-O)"), "{before}");
    assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Interrupt)));
    stage.control('o');
    stage.key(KeyCode::Esc);
    assert!(!stage.glass.screen().contains("Ctrl-O closes"));
}

#[test]
fn the_next_turn_and_a_question_are_seen_while_it_is_unfolded() {
    let mut stage = Stage::new(80, 24);
    run(&mut stage, &[("seq 3", "exit code 0, 0.1 s\n1\n2\n3\n", false)]);
    stage.control('o');
    stage.asks(7, "1.0", super::stage::edit("a.txt", "@@ -1 +1 @@\n-x\n+y\n"));
    assert!(stage.glass.screen().contains("⏸ waiting for your answer"), "{}", stage.glass.screen());
    stage.wait(1_000);
    stage.write("y");
    stage.key(KeyCode::Enter);
    assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Answer { .. })), "keys are the pager's");
    stage.resize(40, 12);
    stage.control('o');
    assert!(stage.glass.screen().contains("a.txt"), "{}", stage.glass.screen());
}
