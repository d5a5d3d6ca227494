//! The state of an agent at every step of a turn.

use super::*;
use crate::message::{Envelope, MessageKind};
use crate::status::{
    Activity, AgentStage, AgentStatus, BlockCause, FailureCause, IdleReason, StatusFacts, SuspendedWork, WaitTarget,
    WorkSource,
};

const SURROUNDINGS: StatusFacts<'_> = StatusFacts {
    mail: &[],
    is_lead: true,
    is_run: true,
    takes_no_task: false,
    giver: WorkSource::User,
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
    let waits = |target| Some(IdleReason::waits_for(target));
    let asking = Activity::Asking { tool: "linked".into(), target: "l".into() };
    let running = |tool: &str, target: &str| Some(Activity::Running { tool: tool.into(), target: target.into() });
    let calling = Some(Activity::Calling { model: "m".into(), attempt: 1 });
    let table = [
        (World::new(vec![]), AgentStage::Ready, None, None),
        (after("read", 0), AgentStage::Busy, None, calling),
        (after("read", 1), AgentStage::Busy, None, Some(Activity::Preparing)),
        (after("read", 2), AgentStage::Busy, None, running("read", "a")),
        (after("linked", 2), AgentStage::Ready, waits(WaitTarget::You), Some(asking)),
        (after("need_clarify", 2), AgentStage::Ready, waits(WaitTarget::User), running("need_clarify", "t")),
        (after("task_update", 2), AgentStage::Ready, waits(WaitTarget::Named("t".into())), running("task_update", "t")),
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
    assert!(matches!(&found.reason, Some(IdleReason::Blocked(BlockCause::NoClaims(_)))), "{found:?}");
    let mut world = after("read", 0);
    assert!(world.input(TurnInput::Interrupt { by: "me".into() }).is_ok());
    assert_eq!(AgentStatus::of_turn(&world.turn, &SURROUNDINGS).doing, Some(Activity::Stopping));
}

#[test]
fn no_agent_works_in_a_session_that_no_process_runs() {
    let session = SessionId::new(id(2));
    let unread = IdleReason::Blocked(BlockCause::Messages(2));
    let table = [
        (None, None),
        (Some(IdleReason::Done), None),
        (Some(unread), Some(SuspendedWork::Messages(2))),
        (Some(IdleReason::Failed(FailureCause::Stopped)), Some(SuspendedWork::Stopped)),
        (Some(IdleReason::waits_for(WaitTarget::Worktrees)), Some(SuspendedWork::Team)),
    ];
    for (reason, left) in table {
        let status = AgentStatus { standing: AgentStage::Busy, reason, doing: Some(Activity::Preparing) };
        let reason = Some(IdleReason::Blocked(BlockCause::NoProcess { session, left }));
        let want = AgentStatus { standing: AgentStage::Stopped, reason, doing: None };
        assert_eq!(status.without_process(session), want);
    }
}
