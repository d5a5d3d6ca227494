//! Windows that fill: summed up, taken back, or, where no summary is to be had, cut as before.

use super::*;
use crate::context::summary::Compacted;

/// A model whose window holds about five of the long answers.
fn small() -> Settings {
    Settings::new(Model { context_tokens: 10_000, ..model("m") })
}

fn long() -> LlmOutcome {
    says(&"old ".repeat(1_000))
}

/// Four long turns; the fifth begins with four fifths of the window used.
fn filled(script: Vec<LlmOutcome>) -> World {
    let script = [long(), long(), long(), long()].into_iter().chain(script).collect();
    let mut world = World::with(small(), script);
    for _ in 0..4 {
        world = world.talk();
    }
    assert!(!names(&world).contains(&"compacted"));
    world
}

fn last_turn(world: &World) -> Vec<&'static str> {
    let started = |event: &Event| matches!(event, Event::TurnStarted(_) | Event::CompactionAsked(_));
    let from = world.log.iter().rposition(started).unwrap();
    world.log[from..].iter().map(Event::name).collect()
}

fn compacted(world: &World) -> &Compacted {
    let found = world.log.iter().rev().find_map(|event| match event {
        Event::Compacted(compacted) => Some(compacted),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_turn_begins_with_a_summary_when_the_window_is_nearly_full() {
    let world = filled(vec![says("they talked"), says("hi")]).talk();
    let want = ["turn_started", "llm_intent", "llm_ended", "compacted", "llm_intent", "llm_ended", "turn_ended"];
    assert_eq!(last_turn(&world), want);
    let done = compacted(&world);
    assert_eq!((done.before, done.messages, done.window.from), (8, (9, 2), 0));
    assert!(done.tokens.0 > 10 * done.tokens.1, "{:?}", done.tokens);
    // It is no message: only the head of the window says it, with what was kept without asking.
    assert_eq!(world.turn.history().len(), 10);
    assert!(world.turn.history().iter().all(|message| message.text() != "they talked"));
    let head = world.turn.summary_message().unwrap().text();
    assert!(head.contains("they talked") && head.contains("- `b` changed"), "{head}");
    assert_eq!(world.turn.last().unwrap().text, "hi");
    assert_eq!(world.turn.ledger().reserved_nano, 0);
    // What the summary cost is on the turn's bill.
    assert_eq!(world.turn.last().unwrap().charges[0].calls, 2);
}

#[test]
fn a_crash_at_every_boundary_gives_the_same_window() {
    let script = vec![says("they talked"), says("hi")];
    let undisturbed = filled(script.clone()).talk();
    let from = filled(script.clone()).log.len();
    for at in from + 1..undisturbed.log.len() {
        let mut world = filled(script.clone());
        world.crash_at = Some(at);
        assert!(world.begin().is_err() || world.run().is_err(), "killed at {at}");
        world.refold();
        let killed_in_call = matches!(world.turn.pending().as_slice(), [TurnEffect::CallModel(_)]);
        assert!(world.input(TurnInput::Recovered).is_ok());
        assert!(world.run().is_ok());
        assert!(killed_in_call || !world.turn.is_busy(), "at {at}");
        assert_eq!(world.turn.window(), undisturbed.turn.window(), "at {at}");
        assert_eq!(world.turn.summary_message(), undisturbed.turn.summary_message(), "at {at}");
        assert_eq!(world.turn.history(), undisturbed.turn.history(), "at {at}");
        let state = serde_json::to_value(&world.turn).unwrap();
        world.refold();
        assert_eq!(serde_json::to_value(&world.turn).unwrap(), state, "folding again gives the same");
    }
}

#[test]
fn without_a_summary_the_window_is_cut_as_before() {
    for bad in [fails(Failure::InvalidRequest), fails(Failure::ContextOverflow), says(" ")] {
        let mut world = filled(vec![bad, long(), says("hi")]).talk();
        let want =
            ["turn_started", "llm_intent", "llm_ended", "compaction_failed", "llm_intent", "llm_ended", "turn_ended"];
        assert_eq!(last_turn(&world), want);
        assert_eq!((world.turn.summary_message(), world.end()), (None, &TurnOutcome::Answered));
        // The next turn tries again.
        world.script = vec![says("x"); 20];
        let world = world.talk();
        assert!(last_turn(&world).contains(&"compacted"));
    }
}

#[test]
fn a_context_overflow_is_compacted_within_the_turn() {
    let script = vec![long(), fails(Failure::ContextOverflow), says("they talked"), says("hi")];
    let world = World::new(script).talk().talk();
    let tail = ["llm_ended", "llm_intent", "llm_ended", "compacted", "llm_intent", "llm_ended", "turn_ended"];
    assert_eq!(last_turn(&world)[2..], tail);
    assert_eq!((compacted(&world).before, world.turn.window().from), (2, 2));
    // No summary either: half of it goes, as before.
    let script = vec![long(), fails(Failure::ContextOverflow), fails(Failure::Auth), says("hi")];
    let world = World::new(script).talk().talk();
    assert_eq!(
        (world.turn.summary_message(), world.turn.window().from, world.end()),
        (None, 2, &TurnOutcome::Answered)
    );
}

#[test]
fn a_long_turn_is_summed_up_before_its_results_are_lost() {
    let big = |n: u32| answer(vec![Part::text("x".repeat(6_000)), call(n)], StopReason::ToolUse);
    fn call(n: u32) -> Part {
        Part::ToolUse { id: format!("t{n}"), name: "read".into(), input: json!({ "n": n }).into() }
    }
    let world = World::with(small(), vec![big(1), big(2), big(3), says("they looked"), says("hi")]).talk();
    let done = compacted(&world);
    // The question has left the window, too; the newest exchange is there.
    assert_eq!((done.before, done.messages), (5, (7, 3)));
    assert_eq!(*world.end(), TurnOutcome::Answered);
    assert_eq!(world.turn.last().unwrap().text, "hi");
}

#[test]
fn the_user_compacts_and_undoes_it() {
    let mut world = World::new(vec![says("one"), says("two"), says("they talked")]).talk().talk();
    let keep = "the port is 8080".to_owned();
    assert!(world.input(TurnInput::Compact { turn: TurnId::new(id(9)), keep }).is_ok());
    assert!(world.turn.is_compacting());
    let Some(TurnEffect::CallModel(intent)) = world.turn.pending().into_iter().next() else { panic!("no call") };
    let asked = world.turn.asked_for(intent.summary.as_ref().unwrap(), &intent.model);
    assert!(asked.contains("[assistant]\ntwo") && asked.ends_with("the port is 8080"), "{asked}");
    assert!(world.run().is_ok());
    assert_eq!(last_turn(&world), ["compaction_asked", "llm_intent", "llm_ended", "compacted", "turn_ended"]);
    assert_eq!((compacted(&world).messages, world.turn.window().from), ((4, 1), 4));
    // Nothing has been said since.
    let before = world.log.len();
    assert!(world.input(TurnInput::Compact { turn: TurnId::new(id(9)), keep: String::new() }).is_ok());
    assert_eq!(world.log.len(), before);
    assert!(world.input(TurnInput::Uncompact).is_ok());
    assert_eq!((world.turn.window(), world.turn.summary_message()), (Window::default(), None));
    world.refold();
    assert_eq!((world.turn.window(), world.turn.summary_message()), (Window::default(), None));
    assert!(world.input(TurnInput::Uncompact).is_ok());
    assert_eq!(world.log.len(), before + 1, "there is nothing left to take back");
}

#[test]
fn an_undone_compaction_is_not_repeated_automatically() {
    let mut world = filled(vec![says("they talked"), says("hi")]).talk();
    assert!(world.input(TurnInput::Uncompact).is_ok());
    let world = world.talk();
    assert_eq!(last_turn(&world), ["turn_started", "llm_intent", "llm_ended", "turn_ended"]);
}

#[test]
fn an_undone_compaction_is_repeated_before_messages_are_cut() {
    let more = std::iter::repeat_with(long).take(8);
    let mut world = filled([says("they talked"), says("hi")].into_iter().chain(more).collect()).talk();
    assert!(world.input(TurnInput::Uncompact).is_ok());
    for _ in 0..8 {
        world = world.talk();
        if last_turn(&world).contains(&"compacted") {
            return;
        }
        assert_eq!(world.turn.window(), Window::default(), "something was left out and nobody said so");
    }
    panic!("eight long answers and still room");
}

#[test]
fn stopping_it_stops_the_turn_and_leaves_no_words_behind() {
    let mut world = filled(vec![]);
    assert!(world.begin().is_ok());
    assert!(world.input(TurnInput::Interrupt { by: "me".into() }).is_ok());
    let outcome = LlmOutcome::Cancelled { partial: "half a summ".into(), usage: Usage::default() };
    let call = world.turn.calling().map(|intent| (intent.call, intent.attempt)).unwrap();
    assert!(
        world
            .input(TurnInput::ModelEnded { call, outcome, ms: 1, streamed: PartialAnswer::default(), prepared: vec![] })
            .is_ok()
    );
    assert_eq!((world.end(), world.turn.last().unwrap().text.as_str()), (&TurnOutcome::Interrupted, ""));
    assert_eq!(world.turn.history().len(), 9);
}
