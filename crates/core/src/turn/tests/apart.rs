//! For whom somebody works, by what it was started with, what it is at and what it has to read.

use super::*;
use crate::id::PlanId;
use crate::message::{Assignment, Envelope, MessageKind};
use crate::teammate::Lifetime;

/// A turn for somebody, begun and perhaps stopped; nobody: it rests.
fn at(reply_to: Option<&str>, stopped: bool) -> Turn {
    let mut world = World::new(Vec::new());
    let Some(reply_to) = reply_to else { return world.turn };
    let assignment = Some(Assignment { reply_to: reply_to.to_owned(), ..Assignment::default() }.into());
    let (turn, envelope) = (TurnId::new(id(3)), EnvelopeId::new(id(4)));
    let begin = TurnInput::Begin {
        turn,
        envelope,
        input: vec![Part::text("hello")],
        assignment,
        recall: None,
        rewound: Vec::new(),
        envelopes: Vec::new(),
        quiet: false,
        hops: 0,
    };
    assert!(world.input(begin).is_ok());
    if stopped {
        let stop = TurnInput::Interrupt { by: "me".into() };
        assert!(world.input(stop).is_ok());
        let outcome = LlmOutcome::Cancelled { partial: String::new(), usage: Usage::default() };
        assert!(
            world
                .input(TurnInput::ModelEnded {
                    call: (1, 1),
                    outcome,
                    ms: 1,
                    streamed: PartialAnswer::default(),
                    prepared: Vec::new()
                })
                .is_ok()
        );
    }
    world.turn
}

#[test]
fn an_agent_without_a_waiting_caller_works_in_a_worktree() {
    let [call, background] =
        [Lifetime::Call, Lifetime::Background].map(|life| Assignment { life, ..Assignment::default() });
    let planned = Assignment { plan: Some(PlanId::new(id(9))), ..background.clone() };
    let envelope =
        |from: &str| Envelope::new(EnvelopeId::new(id(5)), from, "agent/a", MessageKind::Text, Value::Null, 0);
    let (user, lead) = ("user/me", "agent/lead");
    // What it was started with, for whom its turn is and whether that was stopped, who has written to it.
    let table = [
        (None, None, false, None, true),
        (Some(&background), Some(lead), false, None, true),
        (Some(&background), None, false, None, true),
        (Some(&planned), Some(user), false, Some(user), false),
        (Some(&call), None, false, None, false),
        (Some(&call), Some(lead), false, None, false),
        (Some(&call), Some(lead), false, Some(lead), false),
        (Some(&call), Some(lead), false, Some(user), true),
        (Some(&call), Some(user), false, None, true),
        (Some(&call), Some(user), false, Some(lead), true),
        (Some(&call), Some(user), true, None, true),
        (Some(&call), Some(lead), true, None, false),
        (Some(&call), Some(lead), true, Some(user), true),
        (Some(&call), Some(lead), true, Some(lead), false),
        (Some(&call), Some(user), true, Some(lead), true),
        (Some(&call), None, false, Some(user), true),
        (Some(&call), None, false, Some(lead), false),
    ];
    for (given, reply_to, stopped, wrote, want) in table {
        let mail: Vec<Envelope> = wrote.into_iter().map(envelope).collect();
        let is_apart = at(reply_to, stopped).has_no_waiter(given, &mail);
        assert_eq!(is_apart, want, "{given:?} {reply_to:?} {stopped} {wrote:?}");
    }
}
