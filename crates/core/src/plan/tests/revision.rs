//! A plan in whose place another one is proposed.

use super::*;
use event::{CarriedResult, PlanUnasked};

const REVISION: u128 = 9;

fn revision() -> PlanId {
    PlanId::new(Uuid::from_u128(REVISION))
}

fn revised(tasks: Vec<TaskDraft>) -> PlanInput {
    PlanInput::Revised { revision: revision(), tasks }
}

fn ended(reworked: bool) -> PlanInput {
    PlanInput::RevisionEnded { revision: revision(), reworked }
}

#[test]
fn a_plan_that_waits_is_withdrawn_at_once() {
    let mut play = Play::proposed(proposal(draft(vec![task("a")])));
    let question = play.question();
    let events = play.step(revised(vec![task("b")]));
    assert_eq!(told_short(&events), ["plan_revised", "plan_unasked", "plan_ended"]);
    let unasked = PlanUnasked { questions: vec![question], replaced_by: Some(revision()) };
    assert!(events.contains(&Event::PlanUnasked(unasked)));
    play.ended(PlanEnd::Replaced);
    assert_eq!(play.plan.replaced_by(), Some(revision()));
    assert!(play.step(PlanInput::Answered { question, say: PlanDecision::Approve, by: person() }).is_empty());
    assert!(!play.plan.is_approved());
}

/// What becomes of tasks while the user decides, and after each decision.
#[test]
fn tasks_that_a_revision_changes_wait_for_the_decision() {
    let kept = || after("kept", &["a"]);
    let changed = |words: &str| TaskDraft { description: words.into(), ..after("changed", &["a"]) };
    let tasks = || vec![task("a"), kept(), changed("old"), after("dropped", &["a"]), after("later", &["dropped"])];
    let new = || vec![task("a"), kept(), changed("new"), task("more")];
    type After = (Vec<PlanInput>, Option<PlanEnd>, Vec<&'static str>);
    let table: Vec<After> = vec![
        (vec![], None, vec!["kept"]),
        (vec![ended(false)], None, vec!["kept", "changed", "dropped"]),
        // The user wants another revision: the lead proposes one, or says nothing more.
        (vec![ended(true)], None, vec!["kept"]),
        (vec![ended(true), PlanInput::LeadSilent], None, vec!["kept", "changed", "dropped"]),
        (vec![ended(true), revised(tasks())], None, vec!["kept", "changed", "dropped"]),
        (vec![revised(vec![])], None, vec!["kept"]),
        (vec![PlanInput::Replaced { revision: revision() }], Some(PlanEnd::Replaced), vec![]),
    ];
    for (inputs, end, at_work) in table {
        let mut play = Play::running(tasks(), 5);
        assert_eq!(told_short(&play.step(revised(new()))), ["plan_revised"]);
        play.crash();
        play.done("a");
        assert_eq!((play.at_work(), play.view("dropped").waits.clone()), (vec!["kept"], WaitReason::Approval));
        let row = format!("{inputs:?}");
        inputs.into_iter().for_each(|input| drop(play.step(input)));
        play.rest();
        play.crash_unless_over();
        assert_eq!((play.plan.ended(), play.at_work()), (end, at_work), "{row}");
        assert_eq!(play.plan.awaits_lead(), row.starts_with("[RevisionEnded") && row.ends_with("reworked: true }]"));
    }
}

#[test]
fn of_two_revisions_the_later_counts() {
    let mut play = Play::running(vec![task("a"), after("b", &["a"])], 5);
    play.step(revised(vec![]));
    let second = PlanId::new(Uuid::from_u128(REVISION + 1));
    play.step(PlanInput::Revised { revision: second, tasks: Vec::new() });
    assert!(play.step(ended(false)).is_empty(), "the first one was withdrawn");
    play.done("a");
    assert_eq!(play.at_work(), [] as [&str; 0]);
    play.step(PlanInput::RevisionEnded { revision: second, reworked: false });
    assert_eq!(play.at_work(), ["b"]);
}

#[test]
fn a_revision_that_was_proposed_before_a_crash_holds_before_anything_begins() {
    let mut play = Play::running(vec![task("a"), task("b")], 1);
    play.done("a");
    let mut other = Play::running(vec![task("a"), task("b")], 1);
    // The message was not read before the process died; a place became free with its end.
    other.step(PlanInput::Recovered { first: vec![revised(vec![task("a")])] });
    other.done("a");
    assert_eq!((play.at_work(), other.at_work()), (vec!["b"], vec![]));
}

#[test]
fn a_failure_asks_no_question_while_a_revision_waits() {
    let mut play = Play::running(vec![TaskDraft { retry: 0, ..task("a") }], 1);
    play.fails("a");
    assert!(play.plan.awaits_lead());
    play.step(revised(vec![task("b")]));
    assert!(!play.plan.awaits_lead() && play.step(PlanInput::LeadSilent).is_empty());
    play.step(ended(false));
    assert!(play.plan.awaits_lead());
    assert_eq!(told_short(&play.step(PlanInput::LeadSilent)), ["plan_asked"]);
}

#[test]
fn a_held_task_that_waits_at_its_gate_begins_after_both_answers() {
    let gate = Gate { before: "a".into(), ask: "owner".into() };
    let mut play = Play::of(Draft { gates: vec![gate], ..draft(vec![task("a")]) }, 1);
    let question = play.question();
    play.step(revised(vec![]));
    play.step(PlanInput::Answered { question, say: PlanDecision::Approve, by: person() });
    assert_eq!(play.at_work(), [] as [&str; 0]);
    play.step(ended(false));
    assert_eq!(play.at_work(), ["a"]);
}

/// What was finished while the user thought about the revision is kept, too; what they have edited is done anew.
#[test]
fn an_approved_revision_takes_over_finished_tasks() {
    let carry = |id: &str| CarriedResult {
        task: id.into(),
        result: TaskResult { output: "old".into(), ..TaskResult::default() },
    };
    let proposed = PlanProposed { carried: vec![carry("a")], ..proposal(draft(vec![task("a"), task("b")])) };
    let mut play = Play::proposed(PlanProposed { revises: Some(revision()), ..proposed });
    let (question, now) = (play.question(), play.now);
    let by_now = [carry("b")];
    let answered = PlanInput::Answered { question, say: PlanDecision::Approve, by: person() };
    let events = play.plan.step(answered, &PlanEnv { carried: Some(&by_now), ..PlanEnv::at(now) }, now);
    events.iter().for_each(|event| play.fold(event));
    assert_eq!(play.plan, play.folded);
    assert_eq!((play.status("b"), play.at_work()), (TaskStatus::Done, vec!["a"]));
}
