//! What calls are charged whose usage the provider has not told, and calls that wait for a server that is away.

use super::*;
use crate::context::BYTES_PER_KILOTOKEN;
use crate::event::{LlmEnded, LlmOutcome};
use crate::id::PlanId;
use crate::limits::LOST_OUTPUT_TOKENS;

fn ended(world: &World) -> Vec<&LlmEnded> {
    let calls =
        world.log.iter().filter_map(|event| if let Event::LlmEnded(ended) = event { Some(ended) } else { None });
    calls.collect()
}

fn silent(text: &str, usage: Usage) -> LlmOutcome {
    let LlmOutcome::Done(answer) = says(text) else { unreachable!() };
    LlmOutcome::Done(chat::Answer { usage, ..answer })
}

fn begun() -> World {
    let mut world = World::new(Vec::new());
    assert!(world.begin().is_ok());
    world
}

fn ends(world: &mut World, outcome: LlmOutcome, streamed: PartialAnswer) {
    let call = world.turn.calling().map(|intent| (intent.call, intent.attempt)).unwrap();
    assert!(world.input(TurnInput::ModelEnded { call, outcome, ms: 1, streamed, prepared: Vec::new() }).is_ok());
}

#[test]
fn usage_that_was_not_told_is_estimated() {
    let told = Usage { input: 100, output: 10, ..Usage::default() };
    let cached = Usage { cache_read: 90, output: 10, ..Usage::default() };
    let long = "word ".repeat(700);
    // What was told, and whether input and output are estimated.
    for (usage, text, input, output) in [
        (told, "hello", false, false),
        (cached, "hello", false, false),
        (Usage::default(), long.as_str(), true, true),
        (Usage { output: 0, ..told }, long.as_str(), false, true),
        (Usage { input: 0, ..told }, "hello", true, false),
    ] {
        let mut world = begun();
        let intent = world.turn.calling().cloned().unwrap();
        ends(&mut world, silent(text, usage), PartialAnswer::default());
        let estimate = ended(&world)[0].estimate;
        assert_eq!(estimate.is_some(), input || output, "{usage:?}");
        let charged = estimate.unwrap_or(usage);
        let tokens = |bytes: usize| bytes as u64 * 1_000 / BYTES_PER_KILOTOKEN;
        assert_eq!(charged.input, if input { tokens(intent.bytes) } else { usage.input }, "{usage:?}");
        if output {
            assert!(charged.output >= 1_000 && charged.output < 1_200, "{charged:?}");
        } else {
            assert_eq!(charged.output, usage.output);
        }
        let ledger = world.turn.ledger();
        let nano = intent.model.price.unwrap().cost_of(charged);
        let is_estimated = input || output;
        assert_eq!((ledger.spent_nano, ledger.unknown_nano), if is_estimated { (0, nano) } else { (nano, 0) });
        assert_eq!((ledger.usage, ledger.reserved_nano), (charged, 0));
        let charge = &world.turn.last().unwrap().charges[0];
        assert_eq!((charge.nano, charge.unknown_nano), (nano, if is_estimated { nano } else { 0 }));
    }
}

#[test]
fn calls_without_an_end_are_charged_by_the_streamed_part() {
    let price = model("m").price.unwrap();
    let input = |world: &World| world.turn.calling().unwrap().bytes as u64 * 1_000 / BYTES_PER_KILOTOKEN;
    let start = Usage { input: 80, output: 1, ..Usage::default() };
    let cancelled = |usage| LlmOutcome::Cancelled { partial: "so far".into(), usage };
    let sent = PartialAnswer { is_sent: true, ..PartialAnswer::default() };
    let some = PartialAnswer { bytes: 3_500, ..sent };
    let known = PartialAnswer { usage: start, ..some };
    for (outcome, streamed, want) in [
        (cancelled(Usage::default()), PartialAnswer::default(), None),
        (cancelled(Usage::default()), sent, Some((None, 0))),
        (cancelled(Usage::default()), some, Some((None, 1_000))),
        (cancelled(start), known, Some((Some(80), 1_000))),
        (fails(Failure::Network), PartialAnswer::default(), None),
        (fails(Failure::Network), some, Some((None, 1_000))),
        (fails(Failure::Server { retry_after_ms: None }), sent, None),
        (fails(Failure::Truncated), known, Some((Some(80), 1_000))),
        (fails(Failure::Timeout), sent, Some((None, 0))),
    ] {
        let mut world = begun();
        let (told, reserved) = (input(&world), world.turn.calling().unwrap().reserved_nano);
        ends(&mut world, outcome.clone(), streamed);
        let want = want.map(|(known, output)| Usage { input: known.unwrap_or(told), output, ..Usage::default() });
        assert_eq!(ended(&world)[0].estimate, want, "{outcome:?} {streamed:?}");
        let ledger = world.turn.ledger();
        let nano = want.map_or(0, |usage| price.cost_of(usage));
        assert_eq!((ledger.unknown_nano, ledger.reserved_nano), (nano, 0), "{outcome:?} {streamed:?}");
        assert!(nano < reserved / 2, "far less than what was set aside");
    }

    // The process died: what had come is not known.
    let mut world = begun();
    let told = input(&world);
    assert!(world.input(TurnInput::Recovered).is_ok());
    let want = Usage { input: told, output: u64::from(LOST_OUTPUT_TOKENS), ..Usage::default() };
    assert_eq!(ended(&world)[0].estimate, Some(want));
    assert_eq!(world.turn.ledger().unknown_nano, price.cost_of(want));
}

/// Journals of before there were estimates are folded as ever.
#[test]
fn an_end_without_an_estimate_is_charged_as_it_was() {
    let mut world = begun();
    let reserved = world.turn.calling().unwrap().reserved_nano;
    let lost: LlmEnded = serde_json::from_value(json!({ "call": 1, "outcome": "lost" })).unwrap();
    assert!(world.commit(vec![Event::LlmEnded(lost)]).is_ok());
    assert_eq!(world.turn.ledger().unknown_nano, reserved);
}

fn planned(script: Vec<LlmOutcome>) -> World {
    let mut world = World::new(script);
    let assignment = Assignment { plan: Some(PlanId::new(id(9))), task: "t".into(), ..Assignment::default() };
    let begun = world.input(TurnInput::Begin {
        turn: TurnId::new(id(3)),
        envelope: EnvelopeId::new(id(4)),
        input: vec![Part::text("hello")],
        assignment: Some(assignment.into()),
        recall: None,
        rewound: Vec::new(),
        envelopes: Vec::new(),
        quiet: false,
        hops: 0,
    });
    assert!(begun.is_ok());
    world
}

#[test]
fn a_call_of_a_plan_waits_for_a_server_that_is_away() {
    let mut script = vec![fails(Failure::Network); 9];
    script.push(says("done"));
    let mut world = planned(script.clone());
    assert!(world.run().is_ok());
    assert_eq!(world.turn.last().unwrap().end, TurnOutcome::Answered);
    let parked: Vec<bool> =
        ended(&world).iter().map(|call| matches!(call.outcome, LlmOutcome::Failed { parked: true, .. })).collect();
    assert_eq!(parked, [false, false, false, true, true, true, true, true, true, false]);
    assert_eq!(world.turn.ledger().unknown_nano, 0, "what was not reached costs nothing");

    // A process that dies meanwhile loses nothing: the next one waits for the same call.
    for crash in 1..world.log.len() {
        let mut world = planned(script.clone());
        world.crash_at = Some(crash);
        let _ = world.run();
        let log = world.log.clone();
        let mut again = World::new(script.clone());
        (again.log, again.turn) = (Vec::new(), Turn::new());
        assert!(again.commit(log).is_ok());
        let is_parked = again.turn.is_parked();
        again.model_calls = world.model_calls.clone();
        assert!(again.input(TurnInput::Recovered).is_ok());
        assert_eq!(again.turn.is_parked(), is_parked);
        assert!(again.run().is_ok());
        assert_eq!(again.turn.last().unwrap().end, TurnOutcome::Answered, "crash at {crash}");
    }
}

#[test]
fn other_failures_are_reported_after_their_retries() {
    let mut world = World::new(vec![fails(Failure::Network); 9]);
    assert!(world.begin().is_ok());
    assert!(world.run().is_ok());
    assert!(matches!(world.turn.last().unwrap().end, TurnOutcome::Failed { failure: Failure::Network, .. }));
    assert_eq!(world.model_calls.len(), 4);

    // What is no outage, or had begun to answer, is not waited for either.
    let mut world = planned(vec![fails(Failure::Truncated); 9]);
    assert!(world.run().is_ok());
    assert!(matches!(world.turn.last().unwrap().end, TurnOutcome::Failed { failure: Failure::Truncated, .. }));
}

#[test]
fn a_call_that_waits_can_be_stopped() {
    let mut world = planned(vec![fails(Failure::Network); 4]);
    while !world.turn.is_parked() {
        let effect = world.turn.pending().remove(0);
        assert!(world.perform(effect).is_ok());
    }
    assert!(world.input(TurnInput::Interrupt { by: "you".into() }).is_ok());
    assert_eq!(world.turn.last().unwrap().end, TurnOutcome::Interrupted);
}

#[test]
fn neither_a_crash_nor_a_retry_overspends() {
    let settings = Settings { budget_nano: Some(40_000_000), ..Settings::new(model("m")) };
    let mut world = World::with(settings, vec![]);
    assert!(world.begin().is_ok());
    // Each lost call is charged its input and a few tokens of output.
    for _ in 0..40 {
        assert!(world.input(TurnInput::Recovered).is_ok());
        let ledger = world.turn.ledger();
        assert!(ledger.spent_nano + ledger.reserved_nano + ledger.unknown_nano <= 40_000_000, "{ledger:?}");
    }
    assert_eq!(*world.end(), TurnOutcome::Budget);
    let unknown_nano = world.turn.ledger().unknown_nano;
    assert_eq!(world.turn.last().unwrap().unknown_nano, unknown_nano, "it is an estimate");
    assert!(unknown_nano > 0);
}

#[test]
fn a_call_waits_for_reservations_of_other_agents() {
    let [none, much] = [0, 1_000_000_000].map(|nano| RemainingBudget { nano: Some(nano), tokens: None });
    let mut world = World::new(vec![says("hello")]);
    world.left = (none, much);
    assert!(world.begin().is_ok());
    assert!(matches!(world.log.last(), Some(Event::TurnStarted(_))));
    assert_eq!(world.turn.pending(), [TurnEffect::Afford]);
    // Nothing came back that would be enough, and more may come.
    assert!(world.input(TurnInput::Woke).is_ok());
    assert_eq!(world.turn.pending(), [TurnEffect::Afford]);
    world.left = (much, much);
    assert!(world.run().is_ok());
    assert_eq!(world.turn.last().map(|ended| &ended.end), Some(&TurnOutcome::Answered));

    let mut world = World::new(Vec::new());
    world.left = (none, none);
    assert!(world.begin().is_ok());
    assert_eq!(world.turn.last().map(|ended| &ended.end), Some(&TurnOutcome::Budget), "nobody else holds anything");
}

#[test]
fn a_call_is_settled_at_the_price_it_was_made_at() {
    let mut world = World::new(vec![]);
    assert!(world.begin().is_ok());
    let dear = Model { price: Some(Price { input: 9, output: 9, cache_read: 9, cache_write: 9 }), ..model("other") };
    assert!(world.input(TurnInput::Configure(Settings::new(dear).into())).is_ok());
    assert!(world.run().is_ok());
    assert_eq!(world.turn.ledger().spent_nano, 100 * 1_000 + 10 * 5_000);
}
