//! The state of an agent at every step of a turn.

use super::*;
use crate::message::{Envelope, MessageKind};
use crate::status::{Activity, AgentStage, AgentStatus, IdleReason, StatusFacts};

const SURROUNDINGS: StatusFacts<'_> = StatusFacts {
    mail: &[],
    is_lead: true,
    is_run: true,
    takes_no_task: false,
    giver: IdleReason::USER,
    answers_by_mail: |tool, _| tool == "task_update",
};

fn said() -> Envelope {
    let body = json!({ "text": "hi" });
    Envelope::new(EnvelopeId::new(id(9)), "user/me", "agent/a", MessageKind::UserInput, body, 0)
}

/// A turn after so many effects; the model uses one tool.
fn after(tool: &str, effects: usize) -> World {
    let mut world = World::new(vec![uses(&[(tool, json!({}))])]);
    assert!(world.begin().is_ok());
    for _ in 0..effects {
        let effect = world.turn.pending().remove(0);
        assert!(world.perform(effect).is_ok());
    }
    world
}

#[test]
fn the_state_follows_from_the_turn() {
    let waits = |what: &str| Some(IdleReason::WaitingFor(what.to_owned()));
    let asking = Activity::Asking { tool: "linked".into(), target: "l".into() };
    let running = |tool: &str, target: &str| Some(Activity::Running { tool: tool.into(), target: target.into() });
    let calling = Some(Activity::Calling { model: "m".into(), attempt: 1 });
    let table = [
        (World::new(vec![]), AgentStage::Ready, None, None),
        (after("read", 0), AgentStage::Busy, None, calling),
        (after("read", 1), AgentStage::Busy, None, Some(Activity::Preparing)),
        (after("read", 2), AgentStage::Busy, None, running("read", "a")),
        (after("linked", 2), AgentStage::Ready, waits(IdleReason::YOU), Some(asking)),
        (after("need_clarify", 2), AgentStage::Ready, waits(IdleReason::USER), running("need_clarify", "t")),
        (after("task_update", 2), AgentStage::Ready, waits("t"), running("task_update", "t")),
        (after("read", 4), AgentStage::Ready, Some(IdleReason::Done), None),
    ];
    for (number, (world, standing, reason, doing)) in table.into_iter().enumerate() {
        let found = AgentStatus::of_turn(&world.turn, &SURROUNDINGS);
        assert_eq!(found, AgentStatus { standing, reason, doing }, "{number}");
    }
}

#[test]
fn a_message_starts_an_agent_and_a_stop_holds_it() {
    let mail = [said()];
    let world = after("read", 4);
    let found = AgentStatus::of_turn(&world.turn, &StatusFacts { mail: &mail, ..SURROUNDINGS });
    assert_eq!((found.standing, found.reason), (AgentStage::Starting, None));
    let found = AgentStatus::of_turn(&world.turn, &StatusFacts { takes_no_task: true, ..SURROUNDINGS });
    assert!(
        matches!(&found.reason, Some(IdleReason::Blocked(why)) if why.starts_with(IdleReason::CLAIMS)),
        "{found:?}"
    );
    let mut world = after("read", 0);
    assert!(world.input(TurnInput::Interrupt { by: "me".into() }).is_ok());
    assert_eq!(AgentStatus::of_turn(&world.turn, &SURROUNDINGS).doing, Some(Activity::Stopping));
}

#[test]
fn no_agent_works_in_a_session_that_no_process_runs() {
    let session = SessionId::new(id(2));
    let words = format!("no process runs this session: max-team -r {session}");
    let unread = IdleReason::Blocked(format!("{}2", IdleReason::MESSAGES));
    let stopped = IdleReason::Failed(IdleReason::STOPPED.to_owned());
    let table = [
        (None, words.clone()),
        (Some(IdleReason::Done), words.clone()),
        (Some(unread), format!("messages wait: 2; {words}")),
        (Some(stopped), format!("{}; {words}", IdleReason::STOPPED)),
        (Some(IdleReason::WaitingFor(IdleReason::COPIES.to_owned())), format!("{}; {words}", IdleReason::TEAM)),
    ];
    for (reason, words) in table {
        let status = AgentStatus { standing: AgentStage::Busy, reason, doing: Some(Activity::Preparing) };
        let want = AgentStatus { standing: AgentStage::Stopped, reason: Some(IdleReason::Blocked(words)), doing: None };
        assert_eq!(status.without_process(session), want);
    }
}
