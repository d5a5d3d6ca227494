//! A mention that is typed: its menu, what Tab makes of it, and the files below the message.

use crossterm::event::KeyCode;
use max_team_core::chat::Part;
use max_team_core::event::Event;
use max_team_core::mention;

use super::super::command_queue::{CommandResult, UiCommand};
use super::stage::{Stage, started};

fn listed(stage: &mut Stage) {
    let is_asked = stage.acts.iter().filter(|act| matches!(act, UiCommand::Paths(_))).count();
    assert_eq!(is_asked, 1, "the paths are listed once for a mention");
    let paths = ["README.md", "docs/", "docs/a guide to the team.md", "src/", "src/main.rs", "src/terminal/main.rs"];
    stage.chat.done(CommandResult::Paths(paths.map(str::to_owned).to_vec()));
    stage.paint();
}

#[test]
fn a_mention_is_completed_from_a_menu() {
    let mut stage = Stage::new(80, 24);
    stage.write("explain @mai");
    listed(&mut stage);
    insta::assert_snapshot!("mention_80x24", stage.glass.screen());
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Tab);
    stage.write("and @guide");
    stage.write("x");
    stage.key(KeyCode::Backspace);
    stage.chat.done(CommandResult::Paths(vec!["docs/a guide to the team.md".into()]));
    stage.key(KeyCode::Tab);
    stage.key(KeyCode::Enter);
    let Some(UiCommand::Say { text, .. }) = stage.acts.last() else { panic!("{:?}", stage.acts) };
    assert_eq!(text, "explain @src/terminal/main.rs and @\"docs/a guide to the team.md\" ");
}

#[test]
fn a_narrow_window_shows_the_end_of_a_path_and_the_chosen_one() {
    let mut stage = Stage::new(24, 8);
    stage.write("@m");
    listed(&mut stage);
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Down);
    insta::assert_snapshot!("mention_24x8", stage.glass.screen());
}

#[test]
fn the_files_of_a_message_stand_below_it() {
    for (columns, name) in [(80, "files_80x24"), (40, "files_40x24")] {
        let mut stage = Stage::new(columns, 24);
        let Event::TurnStarted(mut begun) = started("compare @a.rs, @big.log, @docs and @.env") else { unreachable!() };
        begun.input.extend([
            Part::text(mention::content("a.rs", false, "1\tx\n2\ty")),
            Part::text(mention::content("big.log", false, "1\tx\n[lines 1-1 of 9000; read on with offset 2]")),
            Part::text(mention::content("docs", true, "docs/\n  a.md  1 byte\n  b.md  2 bytes")),
            Part::text(mention::left_out(".env", "the member's `blocked_patterns` (`.env*`)\u{1b}[2J")),
        ]);
        stage.event(Event::TurnStarted(begun));
        insta::assert_snapshot!(name, stage.glass.screen());
    }
}
