//! Who works when: places, paths, gates, questions of the owners.

use super::*;

#[test]
fn all_that_is_ready_runs_up_to_the_places() {
    let tasks = || vec![task("a"), task("b"), task("c"), after("d", &["a", "b"])];
    for (settings, own, at_work) in
        [(5, None, 3), (2, None, 2), (1, None, 1), (5, Some(2), 2), (2, Some(5), 2), (0, None, 1)]
    {
        let play = Play::of(Draft { max_parallel: own, ..draft(tasks()) }, settings);
        assert_eq!(play.at_work().len(), at_work, "{settings} {own:?}");
    }
}

#[test]
fn a_task_starts_as_soon_as_its_needs_are_there_and_not_before() {
    let mut play = Play::running(vec![task("a"), task("b"), after("c", &["a", "b"]), after("d", &["a"])], 5);
    assert_eq!(play.view("c").waits, WaitReason::For(vec!["a", "b"]));
    play.done("a");
    assert_eq!(play.at_work(), ["b", "d"]);
    play.done("b");
    assert_eq!(play.at_work(), ["c", "d"]);
    assert_eq!(play.plan.upstream(play.place("c")).len(), 2);
}

#[test]
fn the_longest_chain_goes_first() {
    let mut play = Play::running(vec![task("short"), task("long"), after("x", &["long"]), after("y", &["x"])], 1);
    assert_eq!(play.at_work(), ["long"]);
    play.done("long");
    assert_eq!(play.at_work(), ["x"]);
    play.done("x");
    assert_eq!(play.at_work(), ["short"], "of equals the first written");
}

#[test]
fn tasks_that_own_the_same_paths_take_turns() {
    let table = [
        ("src/**", "src/a.rs", true),
        ("src/a/*", "src/b/*", false),
        ("*.md", "docs/**", true),
        ("docs", "docs/x/y.md", true),
        ("SRC/a", "src/A", true),
        ("./src/a", "src/a/b", true),
        ("src", "srcs", false),
        ("src/[ab].rs", "src/a.rs", true),
        ("[", "anything", true),
        ("anything", "[", true),
    ];
    for (first, second, together) in table {
        let mut claims = super::super::path_locks::PathLocks::default();
        claims.hold(0, &names(&[first]));
        assert_eq!(claims.block(1, &names(&["x/y", second])), together, "{first} {second}");
        assert!(!claims.block(0, &names(&[first])), "nobody is in their own way");
        claims.release(0, &names(&[first]));
        assert_eq!(claims, super::super::path_locks::PathLocks::default());
    }
    let mut play = Play::running(vec![owning("a", &["src/**"]), owning("b", &["src/x"]), owning("c", &["docs"])], 5);
    assert_eq!(play.at_work(), ["a", "c"]);
    assert_eq!(play.view("b").waits, WaitReason::Place);
    play.asks("a");
    assert_eq!(play.at_work(), ["c"], "who asks keeps their paths");
    play.told("a");
    play.done("a");
    assert_eq!(play.at_work(), ["b", "c"]);
}

#[test]
fn paths_that_another_plan_works_on_are_waited_for() {
    let mut play = Play::proposed(proposal(draft(vec![owning("a", &["src/a.rs"]), owning("b", &["docs"])])));
    play.taken = names(&["src/**"]);
    play.say(PlanDecision::Approve);
    assert_eq!((play.at_work(), play.view("a").waits), (vec!["b"], WaitReason::Place));
    assert!(play.plan.has_ready());
    assert_eq!(play.plan.held(), ["docs"]);
    play.taken.clear();
    play.step(PlanInput::Woke);
    assert_eq!((play.at_work(), play.plan.has_ready()), (vec!["a", "b"], false));
}

#[test]
fn the_clock_stands_still_while_a_person_is_asked_or_the_machine_sleeps() {
    let timed = |id: &str| TaskDraft { timeout_ms: Some(10_000), ..task(id) };
    let mut play = Play::running(vec![timed("a"), timed("b")], 2);
    play.now += 4_000;
    assert_eq!(told_short(&play.step(PlanInput::Held { task: 0, attempt: 1, outage: None })), ["task_held a"]);
    assert!(play.step(PlanInput::Held { task: 0, attempt: 1, outage: None }).is_empty());
    assert_eq!((play.view("a").waits, play.status("a")), (WaitReason::Approval, TaskStatus::Running));
    play.now += 1_000_000;
    assert_eq!(told_short(&play.step(PlanInput::Slept { ms: 1_000_000 })), ["task_resumed b"]);
    play.crash();
    play.now += 9_999;
    assert_eq!(told_short(&play.step(PlanInput::Freed { task: 0, attempt: 1 })), ["task_resumed a"]);
    assert!(play.step(PlanInput::Freed { task: 0, attempt: 1 }).is_empty());
    play.wake_at(play.now + 1);
    assert_eq!(play.at_work(), ["a"], "a has what it had left, b had all of it after the crash");
    play.wake_at(play.now + 5_998);
    assert_eq!(play.at_work(), ["a"]);
    play.wake_at(play.now + 1);
    assert_eq!(play.status("a"), TaskStatus::Failed);
}

#[test]
fn a_gate_asks_when_its_task_becomes_ready() {
    let gates = || vec![Gate { before: "b".into(), ask: "owner".into() }];
    let start = PlanQuestion::Start { task: "b".into() };
    for (say, status, end) in [
        (PlanDecision::Approve, TaskStatus::Dispatched, None),
        (PlanDecision::FirstWave, TaskStatus::Dispatched, None),
        (PlanDecision::Reject("no".into()), TaskStatus::Cancelled, None),
        (PlanDecision::Edit(Vec::new()), TaskStatus::Approved, None),
        (PlanDecision::Rule(Ruling::Skip), TaskStatus::Approved, None),
        (PlanDecision::Changes("x".into()), TaskStatus::Cancelled, Some(PlanEnd::Replaced)),
    ] {
        let tasks = vec![task("a"), after("b", &["a"]), after("z", &["a"])];
        let mut play = Play::of(Draft { gates: gates(), ..draft(tasks) }, 1);
        assert_eq!(play.questions(), []);
        play.done("a");
        // There is no place for it, and it is asked for nevertheless.
        assert_eq!((play.questions(), play.at_work()), (vec![start.clone()], vec!["z"]));
        assert_eq!(play.view("b").waits, WaitReason::Approval);
        play.done("z");
        let events = play.say(say.clone());
        assert_eq!((play.status("b"), play.plan.ended().filter(|_| end.is_some())), (status, end), "{say:?}");
        if let PlanDecision::Reject(_) = say {
            assert!(matches!(&events[0], Event::PlanAnswered(answered) if answered.say == say));
            play.ended(PlanEnd::Partial);
        }
    }
}

#[test]
fn a_gate_is_passed_once() {
    let gates = vec![Gate { before: "a".into(), ask: "owner".into() }];
    let mut play = Play::of(Draft { gates, ..draft(vec![task("a")]) }, 1);
    play.say(PlanDecision::Approve);
    play.fails("a");
    play.wake_at(play.now + 1_000);
    assert_eq!((play.attempt("a"), play.questions()), (2, vec![]));
}

#[test]
fn an_owner_that_asks_frees_its_place_and_its_clock_stops() {
    let timed = |id: &str| TaskDraft { timeout_ms: Some(10_000), ..task(id) };
    let mut play = Play::running(vec![timed("a"), timed("b")], 1);
    let begun = play.now;
    play.now += 4_000;
    play.asks("a");
    assert_eq!((play.at_work(), play.view("a").waits), (vec!["b"], WaitReason::Answer("which?")));
    play.now += 1_000;
    play.asks("a");
    play.now += 1_000;
    assert_eq!(told_short(&play.told("a")), ["task_answered a"]);
    assert_eq!(play.view("a").waits, WaitReason::Place);
    assert!(play.told("a").is_empty());
    play.now += 1_000;
    let events = play.done("b");
    assert_eq!(told_short(&events), ["task_done b", "task_resumed a"]);
    assert_eq!(play.plan.pending(), [PlanEffect::Sleep { until_ms: begun + 7_000 + 6_000 }]);
    play.wake_at(begun + 12_999);
    assert_eq!(play.status("a"), TaskStatus::Running);
    play.wake_at(begun + 13_000);
    assert_eq!(play.status("a"), TaskStatus::Failed);
}

#[test]
fn the_same_message_asks_once() {
    let mut play = Play::running(vec![task("a")], 1);
    play.asks("a");
    play.told("a");
    play.envelopes -= 1;
    assert!(play.asks("a").is_empty());
    assert_eq!(play.status("a"), TaskStatus::Running);
}

#[test]
fn a_report_after_a_question_waits_for_a_place_to_be_checked() {
    let mut play = Play::running(vec![task("a"), task("b"), task("c")], 1);
    play.asks("a");
    play.report("a", Report::Done { output: "done after all".into(), findings: None, unknown: Vec::new() });
    assert_eq!((play.at_work(), play.view("a").waits), (vec!["b"], WaitReason::Place));
    play.done("b");
    assert_eq!(play.at_work(), ["a"], "it comes before what is new");
    assert_eq!(play.plan.pending(), [PlanEffect::Check { task: 0, attempt: 1 }]);
    play.checked("a", Proof::Unverified);
    assert_eq!(play.view("a").result.unwrap().output, "done after all");
    assert_eq!(play.at_work(), ["c"]);
}

#[test]
fn reports_are_checked_before_they_count() {
    let mut play = Play::running(vec![task("a")], 1);
    let (task, attempt) = (0, 1);
    assert_eq!(told_short(&play.step(PlanInput::Begun { task, attempt })), ["task_started a"]);
    play.report("a", Report::Done { output: "done".into(), findings: None, unknown: Vec::new() });
    assert_eq!(play.plan.pending(), [PlanEffect::Check { task, attempt }]);
    assert_eq!(play.view("a").waits, WaitReason::Checks);
    play.crash();
    assert_eq!(play.plan.pending(), [PlanEffect::Check { task, attempt }]);
    play.checked("a", Proof::Verified);
    play.ended(PlanEnd::Done);
    assert_eq!((play.plan.tally().verified, play.plan.tally().spent), (1, used(7)));
}

#[test]
fn a_cached_answer_completes_a_first_attempt_at_once() {
    let mut play = Play::running(vec![task("a"), after("b", &["a"]), after("c", &["b"])], 1);
    let events = play.step(served(0, 1));
    assert_eq!(told_short(&events), ["task_done a", "task_assigned b"]);
    let view = play.view("a");
    let result = view.result.unwrap();
    assert_eq!((result.output.as_str(), result.proof), ("as before", Proof::Unverified));
    assert_eq!(result.cached.as_ref().map(|cached| cached.age_ms), Some(180_000));
    assert_eq!((view.agent, view.spent), (None, ResourceUse::default()), "nobody was at it");
    assert!(play.step(served(0, 1)).is_empty(), "it is done");

    // Whoever tries again, or has begun, is not spared.
    play.fails("b");
    let WaitReason::Retry { at_ms } = play.view("b").waits else { panic!("{:?}", play.view("b")) };
    play.wake_at(at_ms);
    assert!(play.step(served(1, 2)).is_empty() && play.step(served(1, 1)).is_empty());
    play.crash();
    play.done("b");
    play.step(PlanInput::Begun { task: 2, attempt: 1 });
    assert!(play.step(served(2, 1)).is_empty());
    play.done("c");
    play.ended(PlanEnd::Done);
    let tally = play.plan.tally();
    assert_eq!((tally.ran, tally.cached, tally.done, tally.tasks), (2, 1, 3, 3));
}

#[test]
fn a_task_that_leaves_files_is_never_answered_from_the_cache() {
    let tasks = [
        owning("owns", &["docs/**"]),
        TaskDraft { outputs: names(&["a.md"]), ..task("file") },
        TaskDraft { verify: names(&["true"]), ..task("check") },
        TaskDraft { isolation: crate::agent::Isolation::Worktree, ..task("copy") },
    ];
    for task in tasks {
        let mut play = Play::running(vec![task.clone()], 1);
        assert!(play.step(served(0, 1)).is_empty(), "{}", task.id);
        assert_eq!(play.status(&task.id), TaskStatus::Dispatched);
    }
    let mut play = Play::running(vec![task("a")], 1);
    play.stop(None);
    assert!(play.step(served(0, 1)).is_empty(), "it was stopped");
    play.rest();
    play.ended(PlanEnd::Stopped);
}

#[test]
fn a_setting_approves_a_plan_that_is_not_risky() {
    use event::ApprovalMode::{Each, Never, Plan, Risky};
    for (approve, is_risky, rule) in [
        (Never, false, true),
        (Never, true, false),
        (Risky, false, true),
        (Risky, true, false),
        (Plan, false, false),
        (Each, false, false),
    ] {
        let risks = if is_risky { names(&["runs a command"]) } else { Vec::new() };
        let proposed = PlanProposed { approve, risks, ..proposal(draft(vec![task("a")])) };
        assert_eq!(proposed.approving_rule().is_some(), rule, "{approve:?}");
        assert_eq!(Play::proposed(proposed).plan.is_approved(), rule, "{approve:?}");
    }
}
