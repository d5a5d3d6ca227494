//! Which calls end a turn, which answers do, and which are asked about once more.

use super::*;
use crate::id::PlanId;
use crate::message::Assignment;

const CALLER: &str = "agent/lead";

/// A turn that an agent, a plan or the user began.
#[derive(Debug, Clone, Copy, PartialEq)]
enum For {
    User,
    Caller,
    Plan,
    /// News of the team.
    Team,
    /// The same, and the user has said something meanwhile.
    TeamAndUser,
}

fn begun(by: For, script: Vec<LlmOutcome>) -> World {
    let mut world = World::new(script);
    let plan = (by == For::Plan).then(|| PlanId::new(id(9)));
    let given = Assignment { reply_to: CALLER.into(), plan, attempt: 1, ..Assignment::default() };
    let begin = TurnInput::Begin {
        turn: TurnId::new(id(3)),
        envelope: EnvelopeId::new(id(4)),
        input: vec![Part::text("hello")],
        assignment: matches!(by, For::Caller | For::Plan).then(|| given.into()),
        recall: None,
        rewound: Vec::new(),
        envelopes: Vec::new(),
        quiet: matches!(by, For::Team | For::TeamAndUser),
        hops: 0,
    };
    assert!(world.input(begin).is_ok());
    if by == For::TeamAndUser {
        world.steer = steer::steered("and?");
    }
    assert!(world.run().is_ok());
    world
}

/// Model calls of a turn, how it ended and with which words.
fn came_to(by: For, script: Vec<LlmOutcome>) -> (usize, String) {
    let world = begun(by, script);
    assert_eq!(*world.end(), TurnOutcome::Answered);
    (world.model_calls.len(), world.turn.last().unwrap().text.clone())
}

#[test]
fn a_question_of_the_team_ends_with_the_call_that_answers_it() {
    use For::*;
    let answer = || ("task_update", json!({ "task_id": "a", "answer": "Blue." }));
    let decision = || ("task_update", json!({ "task_id": "a", "decision": "retry" }));
    let change = || ("task_update", json!({ "task_id": "a", "description": "Other." }));
    let note = || ("task_update", json!({ "task_id": "b", "note": "Mind the gap." }));
    let look = || ("read", json!({}));
    let unknown = || ("fly", json!({}));
    for (by, calls, want) in [
        (Team, vec![answer()], 1),
        (Team, vec![decision()], 1),
        (Team, vec![answer(), decision()], 1),
        (Team, vec![note(), decision()], 1),
        (Team, vec![note()], 2),
        (Team, vec![change()], 2),
        (Team, vec![change(), decision()], 2),
        (Team, vec![answer(), look()], 2),
        (Team, vec![answer(), unknown()], 2),
        (TeamAndUser, vec![look(), answer()], 2),
        (User, vec![answer()], 2),
        (User, vec![decision()], 2),
        (Plan, vec![decision()], 2),
    ] {
        assert_eq!(came_to(by, vec![uses(&calls)]).0, want, "{by:?} {calls:?}");
    }
    // What the user said meanwhile is answered in words.
    let (calls, words) = came_to(TeamAndUser, vec![uses(&[look()]), uses(&[decision()]), says("Yes.")]);
    assert_eq!((calls, words.as_str()), (3, "Yes."));
}

#[test]
fn a_question_of_an_agent_that_was_called_is_its_answer() {
    use For::*;
    let ask = |question: &str| ("need_clarify", json!({ "question": question }));
    for (by, calls, want) in [
        (Caller, vec![ask("Which colour?")], (1, "Which colour?")),
        (Caller, vec![ask("Which colour?"), ("read", json!({}))], (1, "Which colour?")),
        (Caller, vec![ask(" ")], (2, "done")),
        (Caller, vec![("read", json!({}))], (2, "done")),
        // A plan's lead answers the call itself, and the turn goes on.
        (Plan, vec![ask("Which colour?")], (2, "done")),
    ] {
        let (count, words) = came_to(by, vec![uses(&calls)]);
        assert_eq!((count, words.as_str()), want, "{by:?} {calls:?}");
    }
}

#[test]
fn an_agent_that_only_announces_is_asked_once_to_do_it() {
    use For::*;
    let announced = || says("I will now change the file.");
    for (by, script, want) in [
        (Plan, vec![announced(), says("Changed.")], (2, "Changed.")),
        (Plan, vec![announced(), announced()], (2, "I will now change the file.")),
        (Plan, vec![announced(), says("NOT DONE: it is not mine.")], (2, "NOT DONE: it is not mine.")),
        (Caller, vec![announced(), uses(&[("write", json!({}))]), says("Changed.")], (3, "Changed.")),
        (Plan, vec![says("Changed.")], (1, "Changed.")),
        // What is said to the user is the user's to judge.
        (User, vec![announced()], (1, "I will now change the file.")),
    ] {
        let (count, words) = came_to(by, script);
        assert_eq!((count, words.as_str()), want, "{by:?}");
    }
}
