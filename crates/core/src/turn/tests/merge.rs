//! What somebody did in a copy: who is asked about it, and what each answer leads to.

use super::*;
use crate::event::ReviewBegun;
use crate::message::MessageKind;
use crate::policy::MergeDecision;

fn copy() -> Action {
    Action { kind: ActionKind::Merge, preview: "+two".into(), said: "Changed.".into(), ..Action::read("agt_1") }
}

/// A turn at work on two calls that others do, and on one that has not begun.
fn at_work(settings: Settings) -> World {
    let calls = [("read", json!({})), ("read", json!({"n": 1})), ("write", json!({}))];
    let mut world = World::with(settings, vec![uses(&calls)]);
    assert!(world.begin().is_ok());
    while !matches!(world.turn.pending().as_slice(), [TurnEffect::RunTool { .. }, TurnEffect::RunTool { .. }, ..]) {
        let next = world.turn.pending().into_iter().next().unwrap();
        assert!(world.perform(next).is_ok());
    }
    world
}

fn unmerged(world: &mut World, key: &str) {
    assert!(world.input(TurnInput::Unanswered { key: key.into(), action: copy() }).is_ok());
}

fn question(world: &World) -> QuestionId {
    let asked = world.log.iter().rev().find_map(|event| match event {
        Event::QuestionAsked(asked) => Some(asked),
        _ => None,
    });
    asked.unwrap().question
}

#[test]
fn each_answer_has_its_consequence() {
    let person = || DecidedBy::Person("here".into());
    let left = |why: &str| {
        format!(
            "Changed.\n\n[The changes are in a worktree and not in the project yet: {why}. The user accepts them with `max-team \
             worktrees accept agt_1`, looks with `show`, rejects them with `reject`.]"
        )
    };
    let later = "the user decides later";
    let table = [
        (PermissionAnswer::merge_answer(MergeDecision::Taken, person()), Ok("take")),
        (PermissionAnswer::new(true, DecidedBy::Rule("`--yes`".into())), Ok("take")),
        (PermissionAnswer::merge_answer(MergeDecision::Dropped, person()), Ok("drop")),
        (
            PermissionAnswer {
                comment: "too much".into(),
                ..PermissionAnswer::merge_answer(MergeDecision::Dropped, person())
            },
            Ok("drop"),
        ),
        (PermissionAnswer::merge_answer(MergeDecision::Left, person()), Err(left(later))),
        (PermissionAnswer { comment: "not yet".into(), ..PermissionAnswer::new(false, person()) }, Err(left(later))),
        (
            PermissionAnswer::new(false, DecidedBy::Nobody("no terminal".into())),
            Err(left("the user could not be asked")),
        ),
        (
            PermissionAnswer::merge_answer(MergeDecision::Dropped, DecidedBy::Nobody("no terminal".into())),
            Err(left("the user could not be asked")),
        ),
        (PermissionAnswer::merge_answer(MergeDecision::Dropped, DecidedBy::Rule("a rule".into())), Err(left(later))),
    ];
    for (answer, want) in table {
        let mut world = at_work(Settings::new(model("m")));
        unmerged(&mut world, "1.0");
        assert!(world.turn.is_asking());
        world.refold();
        let pending = world.turn.pending();
        let runs = |effect: &TurnEffect| matches!(effect, TurnEffect::RunTool { key, .. } if key == "1.1");
        assert!(pending.iter().any(runs), "it holds up nobody: {pending:?}");
        assert!(!pending.iter().any(|effect| matches!(effect, TurnEffect::Prepare(_))), "one question at a time");
        let question = question(&world);
        assert!(world.input(TurnInput::Answered { question, answer: answer.clone() }).is_ok());
        match want {
            Err(words) => assert_eq!(world.dones()[0].content, [Part::text(words)], "{answer:?}"),
            Ok(name) => {
                let Some(Event::ToolIntent(intent)) = world.log.last() else { panic!("{:?}", names(&world)) };
                assert_eq!(intent.action.parameters, [(SETTLE.to_owned(), name.to_owned())]);
                // What a colleague says and what the user says are two things.
                assert_eq!((intent.class, intent.action.said.as_str()), (Repeatability::Idempotent, "Changed."));
                let words = "[The user decided about the changes of `read` (call 1 of 3). They say: too much]";
                assert_eq!(intent.words, if answer.comment.is_empty() { "" } else { words });
                assert!(!world.turn.only_looked());
            }
        }
        world.refold();
        assert!(world.input(TurnInput::Recovered).is_ok() && world.run().is_ok());
        assert_eq!((world.end(), world.dones().len()), (&TurnOutcome::Answered, 3));
        // What a user says is told behind the results, whatever they decide.
        let said =
            format!("[The user decided about the changes of `read` (call 1 of 3). They say: {}]", answer.comment);
        let told = world.turn.history().iter().flat_map(|message| &message.parts);
        let count = told.filter(|part| **part == Part::text(&said)).count();
        assert_eq!(count, usize::from(!answer.comment.is_empty()), "{answer:?}");
    }
}

#[test]
fn unattended_changes_stay_in_the_worktree() {
    for (mode, asks) in [(Mode::DontAsk, false), (Mode::Plan, true), (Mode::BypassPermissions, true)] {
        let mut world = at_work(Settings { mode, ..Settings::new(model("m")) });
        unmerged(&mut world, "1.0");
        assert_eq!(world.turn.is_asking(), asks, "{mode:?}");
        let told = format!("{:?}", world.dones());
        assert!(asks || told.contains("worktrees accept agt_1"), "{told}");
    }
    let mut world = at_work(Settings::new(model("m")));
    let before = world.log.len();
    unmerged(&mut world, "9.9");
    assert_eq!(world.log.len(), before, "nobody waits for that");
}

#[test]
fn only_looking_is_told_from_doing() {
    for (tool, only) in [("read", true), ("linked", true), ("write", false), ("shell", false)] {
        let mut world = World::new(vec![uses(&[(tool, json!({}))])]);
        assert!(!world.turn.only_looked(), "there is no turn");
        assert!(world.begin().is_ok());
        while world.dones().is_empty() {
            let next = world.turn.pending().into_iter().next().unwrap();
            assert!(world.perform(next).is_ok());
        }
        world.refold();
        assert_eq!(world.turn.only_looked(), only, "{tool}");
    }
}

/// Whoever was called has answered and was paid: a stop does not throw that away.
#[test]
fn an_answer_outlives_the_stop_of_a_turn_that_asks_about_its_changes() {
    let mut world = at_work(Settings::new(model("m")));
    unmerged(&mut world, "1.0");
    assert!(world.input(TurnInput::Interrupt { by: "me".into() }).is_ok());
    let done = world.dones().into_iter().find(|done| done.key == "1.0").unwrap();
    let [Part::Text { text }] = done.content.as_slice() else { panic!("{done:?}") };
    assert_eq!(done.ending, ToolOutcome::Ran);
    assert!(text.starts_with("Changed.") && text.contains("accept agt_1"), "{text}");
}

fn begun() -> Event {
    let envelope = Envelope::new(EnvelopeId::new(id(7)), "agent/a", "agent/b", MessageKind::TaskResult, json!({}), 0);
    let turn = TurnId::new(id(8));
    Event::ReviewBegun(ReviewBegun { turn, copy: "agt_1".into(), envelope: Box::new(envelope) })
}

/// A turn that is about nothing but a copy, after one that has answered.
fn reviewing() -> World {
    let mut world = World::new(vec![says("Changed.")]);
    assert!(world.begin().is_ok() && world.run().is_ok());
    assert!(world.commit(vec![begun()]).is_ok());
    world
}

/// The end of the turn that was over last.
fn review_of(world: &World) -> &TurnEnded {
    let ended = world.log.iter().rev().find_map(|event| match event {
        Event::TurnEnded(ended) => Some(ended),
        _ => None,
    });
    ended.unwrap()
}

/// Whoever's work is over asks without a model, and what came of it is the turn's text and no part of what was said.
#[test]
fn a_review_is_a_turn_without_a_model() {
    let later = "the user decides later";
    let table = [
        (Some(PermissionAnswer::merge_answer(MergeDecision::Taken, DecidedBy::Person("here".into()))), Ok("take")),
        (Some(PermissionAnswer::merge_answer(MergeDecision::Dropped, DecidedBy::Person("here".into()))), Ok("drop")),
        (Some(PermissionAnswer::merge_answer(MergeDecision::Left, DecidedBy::Person("here".into()))), Err(later)),
        (Some(PermissionAnswer::new(false, DecidedBy::Nobody("headless".into()))), Err("the user could not be asked")),
        (None, Err(later)),
    ];
    for (answer, want) in table {
        let mut world = reviewing();
        let said = world.turn.history().len();
        let key = world.turn.current().unwrap().to_string();
        assert!(world.turn.review_message().is_some() && world.turn.call(&key).is_some());
        world.refold();
        assert!(world.input(TurnInput::Recovered).is_ok());
        assert!(matches!(world.turn.pending().as_slice(), [TurnEffect::RunTool { .. }]), "it is looked at again");
        assert!(
            world
                .input(TurnInput::Unanswered { key: key.clone(), action: Action { said: String::new(), ..copy() } })
                .is_ok()
        );
        world.refold();
        let question = question(&world);
        let next = match answer {
            Some(answer) => TurnInput::Answered { question, answer },
            None => TurnInput::Interrupt { by: "me".into() },
        };
        assert!(world.input(next).is_ok());
        if let Ok(name) = want {
            let Some(Event::ToolIntent(intent)) = world.log.last() else { panic!("{:?}", names(&world)) };
            assert_eq!(intent.action.parameters, [(SETTLE.to_owned(), name.to_owned())]);
            let content = vec![Part::text("\n\n[Done.]")];
            let ended =
                TurnInput::ToolEnded { key, content, is_error: false, ending: ToolOutcome::Ran, fatal: None, ms: 0 };
            assert!(world.input(ended).is_ok());
        }
        let over = review_of(&world);
        let text = want.map_or_else(|why| format!("not in the project yet: {why}"), |_| "[Done.]".to_owned());
        assert!(over.end == TurnOutcome::Answered && over.text.contains(&text), "{over:?}");
        assert!(!world.turn.is_busy() && world.turn.history().len() == said, "nobody was told");
    }
}

/// What the user has said is done, whoever stops the review and whenever the process ends; nobody says of it what is not known.
#[test]
fn a_merge_decision_is_carried_out() {
    let decided = || {
        let mut world = reviewing();
        let key = world.turn.current().unwrap().to_string();
        assert!(world.input(TurnInput::Unanswered { key, action: copy() }).is_ok());
        let (question, answer) =
            (question(&world), PermissionAnswer::merge_answer(MergeDecision::Taken, DecidedBy::Person("here".into())));
        assert!(world.input(TurnInput::Answered { question, answer }).is_ok());
        world
    };
    let mut world = decided();
    assert!(world.input(TurnInput::Interrupt { by: "me".into() }).is_ok());
    world.refold();
    assert!(world.input(TurnInput::Recovered).is_ok());
    assert!(matches!(world.turn.pending().as_slice(), [TurnEffect::RunTool { .. }]), "{:?}", world.turn.pending());

    let mut world = decided();
    assert!(
        world.input(TurnInput::Moot { words: "[Later.]".into() }).is_ok() && world.turn.is_busy(),
        "it is done first"
    );
    assert!(world.input(TurnInput::Broken { detail: "no project".into() }).is_ok());
    let text = &review_of(&world).text;
    assert!(text.contains("it is unknown whether it was done: no project") && !text.contains("not in the project yet"));
}

#[test]
fn a_copy_that_is_gone_is_no_question() {
    let mut world = reviewing();
    let key = world.turn.current().unwrap().to_string();
    assert!(world.input(TurnInput::Unanswered { key, action: Action { said: String::new(), ..copy() } }).is_ok());
    world.refold();
    assert!(world.input(TurnInput::Moot { words: "[It is gone.]".into() }).is_ok());
    assert_eq!(review_of(&world).text, "[It is gone.]");
    assert_eq!(world.turn.last().unwrap().text, "Changed.", "it is known how its work ended");
}

#[test]
fn a_review_ends_when_it_is_broken_or_was_stopped_before_the_question() {
    let mut world = reviewing();
    assert!(world.input(TurnInput::Broken { detail: "the copy is gone".into() }).is_ok());
    let over = review_of(&world);
    assert!(over.end == TurnOutcome::Answered && over.text.contains("the copy is gone"), "{over:?}");

    // The same if the process ends before anybody has looked.
    let mut world = reviewing();
    assert!(world.input(TurnInput::Interrupt { by: "me".into() }).is_ok() && world.turn.unknown().is_empty());
    world.refold();
    assert!(world.input(TurnInput::Recovered).is_ok() && !world.turn.is_busy());
    let over = review_of(&world);
    assert!(over.text.contains("the user decides later") && over.text.contains("accept agt_1"), "{over:?}");

    let mut world = reviewing();
    let key = world.turn.current().unwrap().to_string();
    assert!(world.input(TurnInput::Interrupt { by: "me".into() }).is_ok() && world.turn.is_busy());
    assert!(world.input(TurnInput::Unanswered { key, action: copy() }).is_ok());
    assert!(!world.turn.is_busy() && review_of(&world).text.contains("accept agt_1"));
}
