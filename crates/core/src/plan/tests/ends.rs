//! Money that runs out, people who stop things, inputs that come late, and processes that die.

use super::*;
use crate::ledger::RemainingBudget;

fn out_of_money(play: &mut Play, id: &str) {
    play.report(id, Report::OutOfMoney { output: "half of it".into(), left: None, own: false });
}

#[test]
fn without_money_nothing_new_starts_and_the_user_is_asked_once_all_rest() {
    for by_answer in [true, false] {
        let mut play = Play::running(vec![task("a"), task("b"), task("c")], 2);
        out_of_money(&mut play, "a");
        assert_eq!((play.at_work(), play.view("a").waits), (vec!["b"], WaitReason::Budget));
        assert_eq!(play.questions(), []);
        play.done("b");
        assert_eq!((play.at_work(), play.questions()), (vec![], vec![PlanQuestion::Budget]));
        play.crash();
        if by_answer {
            play.say(PlanDecision::Approve)
        } else {
            play.step(PlanInput::Resume { by: "user".into() })
        };
        assert_eq!((play.at_work(), play.questions()), (vec!["a", "c"], vec![]));
        assert_eq!(play.attempt("a"), 2);
        assert!(play.step(PlanInput::Resume { by: "user".into() }).is_empty());
    }
}

#[test]
fn a_question_asked_before_the_budget_ran_out_may_be_answered() {
    let mut play = Play::running(vec![task("a"), task("b"), task("c")], 2);
    play.asks("b");
    out_of_money(&mut play, "a");
    play.done("c");
    assert_eq!(play.questions(), [PlanQuestion::Budget]);
    play.told("b");
    assert_eq!(play.at_work(), ["b"]);
    out_of_money(&mut play, "b");
    assert_eq!(play.questions(), [PlanQuestion::Budget]);
    play.say(PlanDecision::Approve);
    assert_eq!(play.at_work(), ["a", "b"]);
}

#[test]
fn an_insufficient_budget_is_not_tried_again() {
    let nano = |nano| RemainingBudget { nano: Some(nano), tokens: None };
    let mut play = Play::running(vec![task("a"), task("b")], 2);
    for (id, left) in [("a", 50), ("b", 30)] {
        let left = Some(Budget { nano: Some(left), ..Budget::default() });
        play.report(id, Report::OutOfMoney { output: String::new(), left, own: false });
    }
    play.crash();
    let table = [(nano(0), false), (nano(30), false), (nano(31), true), (RemainingBudget::default(), true)];
    for (left, may) in table {
        assert_eq!(play.plan.may_resume(left), may, "{left:?}");
    }
    play.step(PlanInput::Resume { by: "more".into() });
    assert_eq!(play.at_work(), ["a", "b"]);
}

#[test]
fn only_a_person_raises_the_budget_of_a_task() {
    let budget = Budget { nano: Some(100), ..Budget::default() };
    let mut play = Play::of(Draft { budget, ..draft(vec![TaskDraft { budget, ..task("a") }, task("b")]) }, 2);
    play.report("a", Report::OutOfMoney { output: String::new(), left: None, own: true });
    assert!(!play.plan.may_resume(RemainingBudget::default()), "more for all is no more for this one");
    play.done("b");
    assert_eq!(play.questions(), [PlanQuestion::Budget]);
    play.crash();
    play.say(PlanDecision::Approve);
    assert_eq!((play.at_work(), play.plan.task_budget(0).nano), (vec!["a"], Some(200)));
    assert_eq!(play.plan.budget().nano, Some(100), "nobody else was short");
    out_of_money(&mut play, "a");
    play.say(PlanDecision::Approve);
    assert_eq!((play.plan.budget().nano, play.plan.task_budget(0).nano), (Some(200), Some(200)));
}

#[test]
fn no_more_money_stops_the_plan() {
    let mut play = Play::running(vec![task("a"), task("b")], 1);
    out_of_money(&mut play, "a");
    play.say(PlanDecision::Reject("enough".into()));
    play.ended(PlanEnd::Stopped);
}

#[test]
fn a_budget_question_is_void_once_no_task_waits_for_it() {
    let mut play = Play::running(vec![task("a"), task("b")], 1);
    out_of_money(&mut play, "a");
    assert_eq!(play.questions(), [PlanQuestion::Budget]);
    play.stop(Some("a"));
    assert_eq!((play.questions(), play.at_work()), (vec![], vec!["b"]));
}

#[test]
fn stopping_the_plan_cancels_unfinished_tasks() {
    let begin: [fn() -> Play; 5] = [
        || Play::proposed(proposal(draft(vec![task("a"), after("b", &["a"])]))),
        || Play::running(vec![task("a"), after("b", &["a"])], 1),
        || {
            let mut play = Play::running(vec![task("a"), task("b")], 1);
            play.asks("a");
            play
        },
        || {
            let mut play = Play::running(vec![TaskDraft { retry: 0, ..task("a") }, after("b", &["a"])], 1);
            play.fails("a");
            play.step(PlanInput::LeadSilent);
            play
        },
        || {
            let mut play = Play::running(vec![task("a"), after("b", &["a"])], 1);
            play.fails("a");
            // Late enough for whatever the clock holds.
            play.now += 10_000_000;
            play
        },
    ];
    for (row, begin) in begin.into_iter().enumerate() {
        let mut play = begin();
        play.stop(None);
        play.rest();
        assert_eq!((play.status("a"), play.status("b")), (TaskStatus::Cancelled, TaskStatus::Cancelled), "{row}");
        assert_eq!(play.questions(), [], "{row}");
        play.ended(PlanEnd::Stopped);
        assert_eq!(play.view("b").error, "stopped by user", "{row}");
    }
}

#[test]
fn stopping_one_task_cancels_its_dependents() {
    let mut play = Play::running(vec![task("a"), task("b"), after("c", &["a"]), after("d", &["b"])], 2);
    // It would have failed by the clock as well.
    play.now += 10_000_000;
    let events = play.stop(Some("a"));
    assert_eq!(told_short(&events)[..3], ["plan_stopped", "task_cancelled a", "task_cancelled c"]);
    assert_eq!((play.status("a"), play.status("d")), (TaskStatus::Cancelled, TaskStatus::Approved));
    assert!(play.stop(Some("a")).is_empty());
    assert_eq!(told_short(&play.done("a")), ["task_stopped a"], "too late to count for anything but its cost");
    assert_eq!((play.status("a"), play.plan.tally().spent), (TaskStatus::Cancelled, used(7)));
    assert!(play.done("a").is_empty());
}

#[test]
fn a_stopped_plan_ends_after_its_owners_and_counts_their_use() {
    let timed = TaskDraft { timeout_ms: Some(1_000), retry: 0, ..owning("a", &["src"]) };
    let mut play = Play::running(vec![timed, owning("b", &["src/x"]), task("c")], 5);
    play.wake_at(play.now + 1_000);
    assert_eq!((play.status("a"), play.at_work()), (TaskStatus::Failed, vec!["c"]), "its paths are not free yet");
    play.rule("a", Ruling::Retry { agent: None, model: None, note: String::new() });
    assert_eq!(play.at_work(), ["c"], "nobody begins again what somebody is still at");
    play.crash();
    play.rest();
    assert_eq!(play.at_work(), ["a", "c"]);
    play.stop(None);
    assert_eq!((play.plan.ended(), play.plan.held()), (None, names(&["src"])));
    assert_eq!(play.plan.stopping().collect::<Vec<_>>(), [0, 2]);
    play.rest();
    play.ended(PlanEnd::Stopped);
    assert_eq!((play.plan.tally().spent.nano, play.plan.held().len()), (21, 0));
}

#[test]
fn a_plan_stopped_without_a_process_ends_before_any_task_begins() {
    for (task, at_work) in [(None, vec![]), (Some(0), vec!["b"])] {
        let first = vec![PlanInput::Stop { task, by: "ada at cli".into() }];
        let timed = |id: &str| TaskDraft { timeout_ms: Some(1_000), ..super::task(id) };
        let mut play = Play::running(vec![timed("a"), timed("b"), after("c", &["a"])], 5);
        play.now += 9_000_000;
        let events = play.step(PlanInput::Recovered { first });
        let begun = events.iter().any(|event| matches!(event, Event::TaskAssigned(_) | Event::TaskFailed(_)));
        assert!(!begun, "{:?}", told_short(&events));
        assert_eq!((play.status("a"), play.at_work()), (TaskStatus::Cancelled, at_work));
    }
}

#[test]
fn a_stopped_failure_needs_no_ruling() {
    let mut play = Play::running(vec![TaskDraft { retry: 0, ..task("a") }, task("b")], 1);
    play.fails("a");
    play.rule("a", Ruling::Escalate);
    let question = play.question();
    play.stop(Some("a"));
    assert_eq!(play.questions(), []);
    assert!(play.step(PlanInput::Answered { question, say: PlanDecision::Approve, by: person() }).is_empty());
    play.done("b");
    play.ended(PlanEnd::Partial);
}

#[test]
fn a_stopped_owner_has_not_failed() {
    let mut play = Play::running(vec![task("a"), after("b", &["a"])], 1);
    play.report("a", Report::Stopped);
    assert_eq!((play.status("a"), play.plan.tally().spent), (TaskStatus::Cancelled, used(7)));
    play.ended(PlanEnd::Stopped);
    assert!(play.plan.is_stopped_by_person());
}

/// Where all that was to be done was stopped task by task, nothing has failed; where something did, it has.
#[test]
fn a_plan_whose_tasks_were_stopped_was_stopped() {
    for (fails, end) in [(false, PlanEnd::Stopped), (true, PlanEnd::Failed)] {
        let mut play = Play::running(vec![task("a"), TaskDraft { retry: 0, ..task("b") }, after("c", &["a"])], 2);
        play.stop(Some("a"));
        play.done("a");
        if fails {
            play.fails("b");
            play.rule("b", Ruling::GiveUp);
        } else {
            play.report("b", Report::Stopped);
        }
        play.ended(end);
    }
}

#[test]
fn late_and_repeated_inputs_decide_nothing() {
    let mut play = Play::running(vec![task("a"), after("b", &["a"])], 1);
    play.fails("a");
    play.wake_at(play.now + 1_000);
    let envelope = EnvelopeId::new(Uuid::from_u128(7));
    let question = QuestionId::new(Uuid::from_u128(7));
    let done = || Report::Done { output: "x".into(), findings: None, unknown: Vec::new() };
    let late = |task: usize, attempt: u32| {
        vec![
            PlanInput::Begun { task, attempt },
            PlanInput::Reported { task, attempt, report: done(), spent: used(1) },
            PlanInput::Reported {
                task,
                attempt,
                report: Report::OutOfMoney { output: "x".into(), left: None, own: false },
                spent: used(1),
            },
            PlanInput::Checked { task, attempt, findings: found(Proof::Verified) },
            PlanInput::Asked { task, attempt, question: "?".into(), envelope },
            PlanInput::Told { task, answer: "x".into(), by: "max".into() },
            PlanInput::Rule { task, ruling: Ruling::GiveUp, by: "max".into(), note: String::new() },
            PlanInput::Answered { question, say: PlanDecision::Approve, by: person() },
            PlanInput::LeadSilent,
            PlanInput::Resume { by: "user".into() },
            PlanInput::Woke,
        ]
    };
    // The attempt before, one that is to come, a task that waits, one that is not there.
    for (task, attempt) in [(0, 1), (0, 3), (1, 0), (1, 1), (9, 1), (usize::MAX, 0)] {
        for input in late(task, attempt) {
            assert!(play.step(input.clone()).is_empty(), "{input:?}");
        }
    }
    play.done("a");
    play.step(PlanInput::Begun { task: 1, attempt: 1 });
    for input in late(0, 2).into_iter().chain([PlanInput::Begun { task: 1, attempt: 1 }]) {
        assert!(play.step(input.clone()).is_empty(), "{input:?}");
    }
    play.done("b");
    play.ended(PlanEnd::Done);
    let ends =
        [PlanInput::Stop { task: None, by: "user".into() }, PlanInput::Stop { task: Some(1), by: "user".into() }];
    for input in late(1, 1).into_iter().chain(ends).chain([PlanInput::Recovered { first: Vec::new() }]) {
        assert!(play.step(input.clone()).is_empty(), "{input:?}");
    }
    assert!(Plan::new().step(PlanInput::Stop { task: None, by: "user".into() }, &PlanEnv::at(0), 0).is_empty());
}

#[test]
fn recovery_renews_the_time_of_those_at_work_and_no_others() {
    let timed = |id: &str| TaskDraft { timeout_ms: Some(10_000), ..task(id) };
    let mut play = Play::running(["begun", "sent", "asks", "fails", "checks", "waits"].map(timed).to_vec(), 5);
    play.step(PlanInput::Begun { task: 0, attempt: 1 });
    play.asks("asks");
    play.fails("fails");
    play.report("checks", Report::Done { output: "x".into(), findings: None, unknown: Vec::new() });
    play.now += 9_000_000;
    let log = play.log.len();
    play.crash();
    let events: Vec<Event> = play.log[log..].iter().map(|(_, event)| event.clone()).collect();
    let renewed = ["task_resumed begun", "task_resumed sent", "task_resumed waits"];
    assert_eq!(told_short(&events), [&renewed[..], &["task_queued fails", "task_assigned fails"]].concat());
    assert_eq!((play.status("begun"), play.status("sent")), (TaskStatus::Running, TaskStatus::Dispatched));
    play.wake_at(play.now + 9_999);
    assert_eq!(play.at_work(), ["begun", "sent", "fails", "checks", "waits"]);
    play.wake_at(play.now + 1);
    assert_eq!((play.status("begun"), play.status("sent")), (TaskStatus::Failed, TaskStatus::Failed));
}

#[test]
fn spending_adds_up_over_attempts() {
    let mut play = Play::running(vec![task("a")], 1);
    play.fails("a");
    play.wake_at(play.now + 1_000);
    out_of_money(&mut play, "a");
    play.say(PlanDecision::Approve);
    play.report("a", Report::Done { output: "x".into(), findings: None, unknown: Vec::new() });
    play.checked("a", Proof::Failed);
    play.wake_at(play.now + 2_000);
    play.done("a");
    play.ended(PlanEnd::Done);
    let tally = play.plan.tally();
    assert_eq!((tally.spent.nano, tally.spent.ms, play.attempt("a")), (28, 40, 4));
    assert_eq!(play.view("a").result.unwrap().spent, tally.spent);
}

#[test]
fn a_plan_stops_when_its_time_is_over() {
    let budget = Budget { wall_ms: Some(10_000), ..Budget::default() };
    let mut play = Play::of(Draft { budget, ..draft(vec![task("a"), after("b", &["a"])]) }, 2);
    let over = play.now + 10_000;
    play.wake_at(over - 1);
    assert_eq!((play.at_work(), play.plan.ended()), (vec!["a"], None));
    play.crash();
    play.wake_at(over);
    assert_eq!((play.at_work(), play.plan.ended()), (vec![], None));
    play.rest();
    play.ended(PlanEnd::Stopped);
    assert_eq!(play.plan.pending(), []);
}

#[test]
fn a_plan_has_one_state() {
    let mut play = Play::proposed(proposal(draft(vec![task("a")])));
    let state = |play: &Play, owner, stop| play.plan.state(owner, stop);
    assert_eq!(state(&play, false, false), PlanState::Waiting, "it asks whether it may run");
    assert_eq!(state(&play, false, true), PlanState::Stopped, "a stop that was not read yet counts");
    play = Play::running(vec![task("a")], 1);
    assert_eq!(state(&play, true, false), PlanState::Running);
    assert_eq!(state(&play, false, false), PlanState::Paused, "no process runs it");
    for (end, want) in [
        (PlanEnd::Done, PlanState::Done),
        (PlanEnd::Partial, PlanState::Failed),
        (PlanEnd::Failed, PlanState::Failed),
        (PlanEnd::Stopped, PlanState::Stopped),
        (PlanEnd::Rejected, PlanState::Stopped),
        (PlanEnd::Replaced, PlanState::Stopped),
    ] {
        assert_eq!(PlanState::of_end(end), want, "{end:?}");
    }
}

#[test]
fn a_stopped_plan_stays_stopped_until_it_is_continued_or_given_up() {
    let mut play = Play::running(vec![task("a"), task("b"), after("c", &["a"])], 2);
    play.done("a");
    assert_eq!(play.at_work(), ["b", "c"]);
    play.step(PlanInput::Hold { by: "user".into() });
    assert!(play.step(PlanInput::Hold { by: "user".into() }).is_empty(), "it is stopped once");
    assert_eq!(play.plan.state(true, false), PlanState::Stopped);
    play.report("b", Report::Stopped);
    play.report("c", Report::Stopped);
    assert_eq!((play.at_work(), play.view("b").waits), (vec![], WaitReason::Stopped));
    play.crash();
    assert_eq!(play.questions(), [], "nobody is asked for money");
    assert!(play.step(PlanInput::Resume { by: "a larger budget".into() }).is_empty());
    assert!(play.plan.is_held() && !play.plan.is_moving());
    let mut given_up = play.plan.clone();
    play.step(PlanInput::Continue { by: "user".into() });
    assert_eq!((play.at_work(), play.plan.is_held()), (vec!["b", "c"], false));
    assert_eq!(play.attempt("b"), 2);
    assert!(play.step(PlanInput::Continue { by: "user".into() }).is_empty());
    let now = PlanEnv { at_ms: 1, taken: &[], fresh: None, carried: None };
    given_up.step(PlanInput::Stop { task: None, by: "user".into() }, &now, now.at_ms);
    assert_eq!(given_up.ended(), Some(PlanEnd::Stopped));
}

#[test]
fn the_time_budget_of_a_plan_does_not_count_the_time_in_which_it_is_stopped() {
    let budget = Budget { wall_ms: Some(1_000), ..Budget::default() };
    let mut play = Play::of(Draft { budget, ..draft(vec![task("a")]) }, 1);
    play.step(PlanInput::Hold { by: "user".into() });
    play.report("a", Report::Stopped);
    play.wake_at(5_000);
    assert_eq!(play.plan.ended(), None);
    play.step(PlanInput::Continue { by: "user".into() });
    assert_eq!(play.at_work(), ["a"]);
}
