//! `/detach`: the chat ends once its session was handed over, and stays without a server.

use max_team_runtime::RuntimeError;

use super::super::command_queue::{CommandResult, UiCommand};
use super::stage::Stage;

fn detach() -> Stage {
    let mut stage = Stage::new(80, 24);
    stage.begin("go");
    stage.say("/detach");
    assert!(matches!(stage.acts.as_slice(), [.., UiCommand::Detach]), "{:?}", stage.acts);
    stage
}

#[test]
fn without_a_server_the_chat_stays_and_says_how_to_start_one() {
    let mut stage = detach();
    stage.chat.done(CommandResult::Detached(Err(RuntimeError::NoServer("/project".to_owned()))));
    stage.paint();
    assert!(stage.chat.session().farewell().is_none());
    assert!(stage.glass.screen().contains("start `max-team serve` there"), "{}", stage.glass.screen());
}

#[test]
fn a_session_that_the_server_has_not_opened_in_time_is_handed_over_all_the_same() {
    let mut stage = detach();
    stage.chat.done(CommandResult::Detached(Ok(None)));
    stage.chat.part();
    stage.paint();
    let screen = stage.glass.screen();
    assert!(screen.contains("is handed over") && screen.contains("come back with `max-team -r"), "{screen}");
}

#[test]
fn a_demo_cannot_be_handed_over() {
    let mut stage = Stage::new(80, 24);
    stage.chat.session_mut().set_recorded(true);
    stage.say("/detach");
    stage.paint();
    assert!(!stage.acts.iter().any(|act| matches!(act, UiCommand::Detach)));
    assert!(stage.glass.screen().contains("A demo ends with its terminal"), "{}", stage.glass.screen());
}
