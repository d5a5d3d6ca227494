//! From a proposal to a yes, a no, or another proposal.

use super::*;
use crate::message::{Principal, Role};
use event::{ApprovalMode, CarriedResult, PlanEdited, RiskyCheck};

fn two() -> Draft {
    draft(vec![task("a"), after("b", &["a"])])
}

fn edited(question: QuestionId, draft: Draft) -> PlanInput {
    let by = Principal { door: "cli".into(), user: "u".into(), role: Role::Owner };
    let risks = Some(names(&["it deletes"]));
    let edited =
        PlanEdited { draft, forecast: Forecast::default(), risks, risky_checks: None, risk_kinds: Vec::new(), by };
    PlanInput::Edited { question, edits: Vec::new(), edited: Box::new(edited) }
}

#[test]
fn a_rule_answers_or_the_user_does() {
    let risky = || vec!["it deletes".to_owned()];
    let table = [
        (ApprovalMode::Plan, vec![], false),
        (ApprovalMode::Each, vec![], false),
        (ApprovalMode::Never, vec![], true),
        (ApprovalMode::Never, risky(), false),
        (ApprovalMode::Risky, vec![], true),
        (ApprovalMode::Risky, risky(), false),
    ];
    for (approve, risks, by_rule) in table {
        let play = Play::proposed(PlanProposed { approve, risks, ..proposal(two()) });
        let row = format!("{approve:?} {by_rule}");
        assert_eq!(play.plan.is_approved(), by_rule, "{row}");
        assert_eq!(play.questions().is_empty(), by_rule, "{row}");
        assert_eq!(play.status("b"), if by_rule { TaskStatus::Approved } else { TaskStatus::Planned }, "{row}");
        let answered = play.log.iter().find_map(|(_, event)| match event {
            Event::PlanAnswered(answered) => Some(matches!(answered.by, DecidedBy::Rule(_))),
            _ => None,
        });
        assert_eq!(answered, by_rule.then_some(true), "{row}");
    }
}

#[test]
fn answers_of_the_user_to_a_proposal() {
    let table = [
        (PlanDecision::Approve, None, vec!["a"], vec!["plan_answered", "task_assigned a"]),
        (PlanDecision::FirstWave, None, vec!["a"], vec!["plan_answered", "task_assigned a"]),
        (PlanDecision::Edit(Vec::new()), None, vec![], vec![]),
        (PlanDecision::Rule(Ruling::Skip), None, vec![], vec![]),
        (PlanDecision::Changes("smaller".into()), Some(PlanEnd::Replaced), vec![], vec!["plan_answered", "plan_ended"]),
        (PlanDecision::Reject("no".into()), Some(PlanEnd::Rejected), vec![], vec!["plan_answered", "plan_ended"]),
    ];
    for (say, end, at_work, events) in table {
        let mut play = Play::proposed(proposal(two()));
        assert_eq!(play.questions(), [PlanQuestion::Proposal]);
        let question = play.question();
        assert_eq!(told_short(&play.say(say.clone())), events, "{say:?}");
        assert_eq!((play.plan.ended(), play.at_work()), (end, at_work), "{say:?}");
        // An edit leaves the question open; after all else it is unknown.
        let again = play.step(PlanInput::Answered { question, say: PlanDecision::Approve, by: person() });
        assert_eq!(again.is_empty(), !events.is_empty(), "{say:?}");
    }
}

#[test]
fn a_second_proposal_is_none() {
    let mut play = Play::proposed(proposal(two()));
    assert!(play.step(PlanInput::Propose(Box::new(proposal(two())))).is_empty());
}

#[test]
fn a_question_never_expires() {
    let mut play = Play::proposed(proposal(two()));
    play.wake_at(i64::MAX);
    assert_eq!(play.questions(), [PlanQuestion::Proposal]);
}

#[test]
fn edits_change_the_plan_until_it_is_approved() {
    let mut play = Play::proposed(proposal(two()));
    let first = play.question();
    let events = play.step(edited(first, draft(vec![task("x"), task("y")])));
    assert_eq!(told_short(&events), ["plan_answered", "plan_edited", "plan_asked"]);
    assert_eq!(play.questions(), [PlanQuestion::Proposal]);
    assert_eq!(play.plan.proposed().unwrap().risks, ["it deletes"]);
    let second = play.question();
    assert_ne!(first, second, "another draft is another question");
    let yes = |question| PlanInput::Answered { question, say: PlanDecision::Approve, by: person() };
    assert!(play.step(yes(first)).is_empty(), "a yes to what it said before is no yes to this");
    assert!(play.step(edited(first, two())).is_empty(), "nor is a change to it a change to this");
    let unsound = draft(vec![after("x", &["y"]), after("y", &["x"])]);
    assert!(play.step(edited(second, unsound)).is_empty());
    play.crash();
    play.step(yes(second));
    assert_eq!(play.at_work(), ["x", "y"]);
    assert!(play.step(edited(second, two())).is_empty());
}

#[test]
fn a_change_that_cannot_be_made_changes_nothing_and_is_told() {
    let mut play = Play::proposed(proposal(two()));
    let by = Principal { door: "cli".into(), user: "u".into(), role: Role::Owner };
    let question = play.question();
    let refused = event::EditRefused { question, error: "there is no such task".into(), flaws: Vec::new(), by };
    assert_eq!(told_short(&play.step(PlanInput::Unfit(refused))), ["edit_refused"]);
    assert_eq!((play.question(), play.plan.draft()), (question, Some(&two())));
}

#[test]
fn a_task_stopped_before_approval_stays_stopped() {
    let mut play = Play::proposed(proposal(two()));
    play.stop(Some("b"));
    assert_eq!(play.status("b"), TaskStatus::Cancelled);
    play.step(edited(play.question(), draft(vec![task("c"), after("b", &["a"]), task("a")])));
    play.say(PlanDecision::Approve);
    assert_eq!((play.status("b"), play.at_work()), (TaskStatus::Cancelled, vec!["c", "a"]));
    play.done("a");
    play.done("c");
    play.ended(PlanEnd::Partial);
}

#[test]
fn after_the_first_wave_the_rest_is_asked_for() {
    let tasks = || draft(vec![task("a"), task("z"), after("b", &["a"]), after("c", &["b"])]);
    for (say, end) in [
        (PlanDecision::Approve, PlanEnd::Done),
        (PlanDecision::FirstWave, PlanEnd::Done),
        (PlanDecision::Reject("enough".into()), PlanEnd::Stopped),
        (PlanDecision::Changes("otherwise".into()), PlanEnd::Replaced),
    ] {
        let mut play = Play::proposed(proposal(tasks()));
        play.say(PlanDecision::FirstWave);
        assert_eq!(play.at_work(), ["a", "z"]);
        play.done("a");
        assert_eq!((play.questions(), play.status("b")), (vec![], TaskStatus::Planned));
        play.done("z");
        assert_eq!(play.questions(), [PlanQuestion::Rest]);
        play.crash();
        play.say(say.clone());
        if end == PlanEnd::Done {
            play.done("b");
            if say == PlanDecision::FirstWave {
                // One more wave, and then it asks again.
                assert_eq!(play.questions(), [PlanQuestion::Rest]);
                play.say(PlanDecision::Approve);
            }
            play.done("c");
        }
        play.ended(end);
    }
}

#[test]
fn a_stopped_task_neither_asks_early_nor_comes_back() {
    let mut play = Play::proposed(proposal(draft(vec![task("a"), task("z"), after("b", &["a"]), after("c", &["a"])])));
    play.say(PlanDecision::FirstWave);
    play.stop(Some("b"));
    assert_eq!(play.questions(), []);
    play.done("a");
    play.done("z");
    play.say(PlanDecision::Approve);
    assert_eq!((play.status("b"), play.at_work()), (TaskStatus::Cancelled, vec!["c"]));
}

#[test]
fn a_plan_of_one_wave_has_no_rest() {
    let mut play = Play::proposed(proposal(draft(vec![task("a")])));
    play.say(PlanDecision::FirstWave);
    play.done("a");
    play.ended(PlanEnd::Done);
}

#[test]
fn struck_out_tasks_are_left_out_and_their_dependents_go_on() {
    let struck = TaskDraft { skip: true, ..task("a") };
    let mut play = Play::running(vec![struck, after("b", &["a"])], 1);
    assert_eq!((play.status("a"), play.at_work()), (TaskStatus::Skipped, vec!["b"]));
    play.done("b");
    play.ended(PlanEnd::Done);
}

#[test]
fn tasks_that_an_earlier_plan_finished_are_not_repeated() {
    let carry = |task: &str| CarriedResult {
        task: task.into(),
        result: TaskResult { output: "old".into(), spent: used(50), ..TaskResult::default() },
    };
    let carried = vec![carry("a"), carry("a"), carry("gone")];
    let mut play = Play::proposed(PlanProposed { carried, ..proposal(two()) });
    play.say(PlanDecision::Approve);
    assert_eq!((play.status("a"), play.at_work()), (TaskStatus::Done, vec!["b"]));
    assert_eq!(play.view("a").result.unwrap().output, "old");
    assert_eq!((play.plan.tally().done, play.plan.tally().ran, play.plan.tally().spent.nano), (1, 1, 0));
}

#[test]
fn a_log_without_a_sound_draft_ends_without_open_questions() {
    for say in [PlanDecision::Approve, PlanDecision::Reject("no".into())] {
        let mut play = Play::proposed(proposal(draft(Vec::new())));
        assert_eq!(play.questions(), [PlanQuestion::Proposal]);
        play.say(say);
        assert!(play.plan.ended().is_some());
    }
}

/// Whatever the clock says; of answers of former times only the time is known.
#[test]
fn a_plan_is_as_old_as_the_last_answer_to_it() {
    let at = |at_ms| TurnId::new(uuid::Builder::from_unix_timestamp_millis(at_ms, &[7; 10]).into_uuid());
    // When a person answered by the clock, and by the turns that are known; which stop is newer.
    let table = [
        (None, None, 4, false),
        (None, None, 6, true),
        (Some(3), None, 4, false),
        (Some(7), None, 6, false),
        (Some(7), None, 7, false),
        (Some(7), None, 8, true),
        (Some(-1), None, 6, true),
        (Some(3), Some(9), 8, false),
        (Some(9), Some(7), 8, true),
    ];
    for (clock_ms, fresh_ms, stopped_ms, is_older) in table {
        let mut plan = Plan::new();
        let proposed = PlanProposed { plan: PlanId::new(at(5).uuid()), ..proposal(two()) };
        plan.step(PlanInput::Propose(Box::new(proposed)), &PlanEnv::at(0), 0);
        if let Some(at_ms) = clock_ms {
            let (question, _) = plan.asked().next().unwrap();
            let now = PlanEnv { fresh: fresh_ms.map(at), ..PlanEnv::at(at_ms) };
            plan.step(PlanInput::Answered { question, say: PlanDecision::Approve, by: person() }, &now, now.at_ms);
        }
        assert_eq!(plan.turn() < Some(at(stopped_ms)), is_older, "{clock_ms:?} {fresh_ms:?} {stopped_ms}");
    }
}

/// A check that needs a person runs if the plan was approved with it; older entries tell that by their words alone.
#[test]
fn an_approval_covers_the_checks_that_it_named() {
    let check = |line: &str| RiskyCheck { task: "a".into(), line: line.into() };
    let known = |risky_checks| {
        let risks = vec!["task `a` runs `make` as a check: no rule allows it".to_owned()];
        PlanProposed { risks, risky_checks, ..proposal(two()) }
    };
    for (risky_checks, line, covered) in [
        (None, "make", true),
        (None, "make all", false),
        (Some(vec![check("make all")]), "make all", true),
        (Some(vec![check("make all")]), "make", false),
        (Some(Vec::new()), "make", false),
    ] {
        assert_eq!(known(risky_checks.clone()).covers(&check(line)), covered, "{risky_checks:?} {line}");
    }
}

/// A missing answer is marked; older entries tell it by a name.
#[test]
fn a_missing_answer_is_known_in_old_and_new_entries() {
    for (entry, missing) in [
        (r#"{"task":"a","answer":"x","by":"nobody"}"#, true),
        (r#"{"task":"a","answer":"x","by":"max","unanswered":true}"#, true),
        (r#"{"task":"a","answer":"x","by":"max"}"#, false),
    ] {
        assert_eq!(serde_json::from_str::<event::TaskAnswered>(entry).unwrap().is_missing(), missing, "{entry}");
    }
}
