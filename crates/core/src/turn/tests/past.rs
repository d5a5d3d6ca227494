//! Going on from any point of a conversation.

use super::*;
use crate::chat::ChatRole;

/// Whether every call in a history has its result right behind it.
fn is_whole(history: &[Message]) -> bool {
    history.iter().enumerate().all(|(index, message)| {
        let answered = |id: &str| {
            let next = history.get(index + 1).map_or(&[][..], |next| next.parts.as_slice());
            next.iter().any(|part| matches!(part, Part::ToolResult { id: of, .. } if of == id))
        };
        message.tool_uses().all(|(id, ..)| answered(id))
    })
}

/// Wherever a turn is left, somebody else can go on: with a conversation that a provider takes, and without having spent.
#[test]
fn every_point_can_be_gone_on_from() {
    let script = || vec![uses(&[("read", json!({})), ("shell", json!({})), ("write", json!({}))]), says("done")];
    let whole = World::new(script()).talk().log;
    for upto in 2..=whole.len() {
        let mut then = Turn::new();
        whole[..upto].iter().for_each(|event| then.apply(event));
        let past = then.inherited_conversation();
        assert!(is_whole(&past.history), "after {upto}: {:?}", past.history);
        let told = past.with_note("It goes on elsewhere.");
        let mut world = World::new(vec![says("I go on.")]);
        let (session, agent) = (SessionId::new(id(8)), AgentId::new(id(9)));
        let seq = upto as u64;
        assert!(
            world.commit(vec![Event::Forked(Box::new(Forked { session, agent, seq, past: told.clone() }))]).is_ok()
        );
        assert_eq!(world.turn.history(), told.history);
        assert_eq!(world.turn.ledger().spent_nano, 0, "after {upto}");
        let world = world.talk();
        assert_eq!(world.end(), &TurnOutcome::Answered);
        let last = world.turn.history().last().unwrap();
        assert_eq!((last.role, last.text().as_str()), (ChatRole::Assistant, "I go on."));
        // What the log says is what was folded: a snapshot in between changes nothing.
        let json = serde_json::to_vec(&world.turn).unwrap();
        let again: Turn = serde_json::from_slice(&json).unwrap();
        assert_eq!(serde_json::to_vec(&again).unwrap(), json);
    }
}

/// What was asked and not answered was not run; what ran is unknown; what is done is done.
#[test]
fn open_calls_are_reported_to_a_fork() {
    let mut world = World::new(vec![uses(&[("read", json!({})), ("write", json!({}))])]);
    assert!(world.begin().is_ok());
    let calling = world.turn.inherited_conversation();
    assert_eq!((calling.history.len(), calling.last.map(|last| last.end)), (1, Some(TurnOutcome::Interrupted)));
    while !world.turn.is_asking() {
        let effect = world.turn.pending().into_iter().next().unwrap();
        assert!(world.perform(effect).is_ok());
    }
    let past = world.turn.inherited_conversation();
    let results: Vec<String> = past.history[2].parts.iter().map(|part| format!("{part:?}")).collect();
    assert!(results[0].contains("Outcome unknown") && results[1].contains("Not run"), "{results:?}");
    assert!(world.turn.is_asking(), "the one that was looked at is as it was");
}
