//! What a user says while a turn runs: with which call it goes, and when it is left for the next turn.

use super::*;

pub(super) fn steered(words: &str) -> Option<Steered> {
    Some(Steered { envelopes: vec![EnvelopeId::new(id(77))], input: vec![Part::text(words)], from_team: Vec::new() })
}

/// A turn whose first call is under way when the user says something.
fn told(mut world: World) -> World {
    assert!(world.begin().is_ok());
    world.steer = steered("use tabs");
    world
}

fn taken(world: &World) -> bool {
    names(world).contains(&"steered")
}

#[test]
fn a_steering_message_follows_the_results_in_the_next_call() {
    let mut world = told(World::new(vec![uses(&[("read", json!({})), ("write", json!({}))]), says("done")]));
    assert!(world.run().is_ok());
    let want = ["tool_done", "steered", "llm_intent", "llm_ended", "turn_ended"];
    assert!(names(&world).ends_with(&want), "{:?}", names(&world));
    let [_, _, results, said, _] = world.turn.history() else { panic!("{:?}", world.turn.history()) };
    assert_eq!((results.parts.len(), said), (2, &Message::user(vec![Part::text("use tabs")])));
    let sent = world.log.iter().rev().find_map(|event| match event {
        Event::LlmIntent(intent) => Some(intent.request.upto),
        _ => None,
    });
    assert_eq!(sent, Some(4), "the call carries it");
    assert_eq!(world.model_calls, [1, 2], "it costs no call of its own");
}

#[test]
fn without_a_call_it_is_left_for_the_next_turn() {
    let rounds = Settings { rounds_max: 1, ..Settings::new(model("m")) };
    let reads = || vec![uses(&[("read", json!({}))])];
    let table = [
        (World::new(vec![says("hi")]), TurnOutcome::Answered),
        (World::with(rounds, reads()), TurnOutcome::Rounds),
        (World::new(vec![uses(&[(STRUCTURED_OUTPUT, json!({}))])]), TurnOutcome::Answered),
    ];
    for (world, end) in table {
        let mut world = told(world);
        assert!(world.run().is_ok());
        assert_eq!((world.end(), taken(&world)), (&end, false), "{:?}", names(&world));
    }
}

#[test]
fn a_hand_back_call_carries_the_steering_message() {
    let mut world = told(World::new(vec![uses(&[("read", json!({}))]), says("so far")]));
    let little = RemainingBudget { nano: Some(6_000_000), tokens: None };
    world.left = (little, little);
    assert!(world.run().is_ok());
    let want = ["tool_done", "steered", "nudged", "llm_intent", "llm_ended", "turn_ended"];
    assert!(names(&world).ends_with(&want), "{:?}", names(&world));
    let sent = world.log.iter().rev().find_map(|event| match event {
        Event::LlmIntent(intent) => Some((intent.request.upto, intent.hand_back)),
        _ => None,
    });
    assert_eq!((sent, world.turn.history().len()), (Some((5, true)), 6));
}

#[test]
fn an_interrupt_comes_first() {
    let mut world = told(World::new(vec![uses(&[("read", json!({}))])]));
    for _ in 0..2 {
        let effect = world.turn.pending().remove(0);
        assert!(world.perform(effect).is_ok());
    }
    assert!(world.input(TurnInput::Interrupt { by: "me".into() }).is_ok());
    let (key, content) = ("1.0".to_owned(), vec![Part::text("ran")]);
    let ended = TurnInput::ToolEnded { key, content, is_error: false, ending: ToolOutcome::Ran, fatal: None, ms: 1 };
    assert!(world.input(ended).is_ok());
    assert_eq!((world.end(), taken(&world)), (&TurnOutcome::Interrupted, false));
}

#[test]
fn a_steered_model_is_not_taken_for_looping() {
    let same = || uses(&[("read", json!({}))]);
    let script: Vec<LlmOutcome> = (0..REPEATS_MAX - 1).map(|_| same()).collect();
    let settings = Settings { rounds_max: 1_000, ..Settings::new(model("m")) };
    let mut world = World::with(settings, [script.clone(), script, vec![says("at last")]].concat());
    assert!(world.begin().is_ok());
    while world.model_calls.len() < REPEATS_MAX as usize - 1 {
        let effect = world.turn.pending().remove(0);
        assert!(world.perform(effect).is_ok());
    }
    world.steer = steered("again, please");
    assert!(world.run().is_ok());
    assert_eq!(*world.end(), TurnOutcome::Answered);
}

#[test]
fn a_window_that_is_full_is_summed_up_first() {
    let small = Settings::new(Model { context_tokens: 10_000, ..model("m") });
    let long = || says(&"old ".repeat(1_000));
    let read = uses(&[("read", json!({}))]);
    let mut world = World::with(small, vec![long(), long(), long(), read, says("they talked"), says("hi")]);
    for _ in 0..3 {
        world = world.talk();
    }
    let mut world = told(world);
    world.steer = steered(&"new ".repeat(1_500));
    assert!(world.run().is_ok());
    let want =
        ["tool_done", "llm_intent", "llm_ended", "compacted", "steered", "llm_intent", "llm_ended", "turn_ended"];
    assert!(names(&world).ends_with(&want), "{:?}", names(&world));
}

#[test]
fn a_crash_at_every_boundary_tells_it_once() {
    let script = || vec![uses(&[("read", json!({})), ("write", json!({}))]), says("done")];
    let mut calm = told(World::new(script()));
    assert!(calm.run().is_ok());
    for at in 5..=calm.log.len() {
        let mut world = told(World::new(script()));
        world.crash_at = Some(at);
        if world.run().is_err() {
            world.refold();
            assert!(world.input(TurnInput::Recovered).is_ok() && world.run().is_ok());
        }
        assert_eq!(world.turn.history(), calm.turn.history(), "crash at {at}");
        assert_eq!(names(&world).iter().filter(|name| **name == "steered").count(), 1, "crash at {at}");
    }
}
