//! What happens when something does not work: retries, rulings, conditions.

use super::*;
use crate::limits::RULED_RETRIES_MAX;
use event::{Artifact, ArtifactType, CheckFault, Correction, PlanEnd, Recheck, SkipReason, TaskErrorKind};

fn once(id: &str) -> TaskDraft {
    TaskDraft { retry: 0, ..task(id) }
}

fn retry(agent: Option<&str>, model: Option<&str>) -> Ruling {
    Ruling::Retry {
        agent: agent.map(str::to_owned),
        model: model.map(str::to_owned),
        note: "use the other door".into(),
    }
}

/// One failed task with its dependent, waiting for the lead's word.
fn failed() -> Play {
    let mut play = Play::running(vec![once("a"), after("b", &["a"])], 1);
    play.fails("a");
    assert_eq!((play.status("a"), play.view("a").waits), (TaskStatus::Failed, WaitReason::Ruling));
    play
}

#[test]
fn failures_are_tried_again_with_growing_waits() {
    let mut play = Play::running(vec![TaskDraft { retry: 10, ..task("a") }], 1);
    for (n, wait_ms) in
        [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000].into_iter().enumerate()
    {
        assert_eq!(play.attempt("a") as usize, n + 1);
        play.fails("a");
        let at_ms = play.now + wait_ms;
        assert_eq!(play.view("a").waits, WaitReason::Retry { at_ms });
        assert_eq!(play.plan.pending(), [PlanEffect::Sleep { until_ms: at_ms }]);
        play.wake_at(at_ms - 1);
        assert_eq!(play.at_work().len(), 0);
        play.wake_at(at_ms);
        assert_eq!(play.at_work(), ["a"]);
    }
    play.fails("a");
    assert_eq!(play.view("a").waits, WaitReason::Ruling);
    assert_eq!((play.attempt("a"), play.plan.tally().spent.nano), (11, 77));
}

#[test]
fn the_next_attempt_knows_of_the_last() {
    let mut play = Play::running(vec![task("a")], 1);
    play.report("a", Report::Done { output: "done".into(), findings: None, unknown: Vec::new() });
    let failed = play.checked("a", Proof::Failed);
    assert!(
        matches!(&failed[0], Event::TaskFailed(failed) if failed.cause == Cause::Checks && failed.output == "done")
    );
    play.now += 1_000;
    let events = play.step(PlanInput::Woke);
    assert_eq!(told_short(&events), ["task_queued a", "task_assigned a"]);
    assert!(matches!(&events[1], Event::TaskAssigned(assigned) if assigned.note.contains("cargo test: seen")));
}

#[test]
fn time_that_runs_out_is_not_tried_again() {
    let mut play = Play::running(vec![TaskDraft { timeout_ms: Some(5_000), retry: 2, ..task("a") }], 1);
    play.wake_at(play.now + 4_999);
    assert_eq!(play.status("a"), TaskStatus::Dispatched);
    play.wake_at(play.now + 1);
    assert_eq!((play.status("a"), play.view("a").waits), (TaskStatus::Failed, WaitReason::Ruling));
    assert_eq!(told_short(&play.done("a")), ["task_stopped a"], "too late");
    assert!(play.plan.is_moving(), "the lead is to say");
    // The longest times there are do no harm.
    let mut play = Play::running(vec![TaskDraft { timeout_ms: Some(u64::MAX), ..task("a") }], 1);
    play.asks("a");
    play.told("a");
    play.done("a");
}

/// Its owner would say the same again: the lead is asked at once, and decides as about any failure.
#[test]
fn a_task_reported_as_not_done_is_not_retried() {
    let mut play = Play::running(vec![TaskDraft { retry: 2, ..task("a") }, after("b", &["a"])], 1);
    let events = play.report("a", Report::NotDone { output: "NOT DONE: the code is wrong".into() });
    let [Event::TaskFailed(failed)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((failed.cause, failed.error.as_str()), (Cause::NotDone, "not done: the code is wrong"));
    assert_eq!((failed.retry_at_ms, play.view("a").waits), (None, WaitReason::Ruling));
    play.rule("a", retry(None, None));
    assert_eq!((play.at_work(), play.attempt("a")), (vec!["a"], 2));
}

/// Whatever is decided about a failed task, the last answer of its owner stays: its dependents and the report get it, with the
/// decision beside it.
#[test]
fn the_last_answer_stays_after_every_ruling() {
    let words = "NOT DONE: add(1, 2) is 4";
    let table = [
        (Ruling::Skip, TaskStatus::Skipped),
        (Ruling::Accept, TaskStatus::Done),
        (Ruling::Fixed, TaskStatus::Running),
        (Ruling::GiveUp, TaskStatus::Failed),
        (Ruling::Escalate, TaskStatus::Failed),
    ];
    for (ruling, status) in table {
        let mut play = Play::running(vec![task("a"), after("b", &["a"])], 1);
        play.report("a", Report::NotDone { output: words.into() });
        play.step(PlanInput::Rule { task: 0, ruling: ruling.clone(), by: "max".into(), note: "see a.txt".into() });
        let view = play.view("a");
        assert_eq!((view.status, view.result.unwrap().output.as_str()), (status, words), "{ruling:?}");
        let told = format!("max decided: {}, see a.txt", ruling.name());
        assert_eq!(view.decision.unwrap().as_text(), told);
        let [(need, artifacts)] = play.plan.upstream(1)[..] else { panic!() };
        assert_eq!((need, artifacts[0].content.as_str()), ("a", words), "{ruling:?}");
    }
    // A check by hand that passes leaves the same answer, too.
    let mut play = Play::running(vec![task("a"), after("b", &["a"])], 1);
    play.report("a", Report::NotDone { output: words.into() });
    play.rule("a", Ruling::Fixed);
    play.checked("a", Proof::Verified);
    assert_eq!(play.view("a").result.unwrap().output, words);
    assert!(play.view("a").decision.is_some());
}

/// An attempt without an answer leaves the answer of the attempt before it. An accepted answer counts with the evidence against it.
#[test]
fn an_accepted_answer_keeps_its_evidence() {
    let mut play = Play::running(vec![TaskDraft { retry: 1, ..task("a") }, after("b", &["a"])], 1);
    play.report("a", Report::Done { output: "first".into(), findings: None, unknown: Vec::new() });
    play.checked("a", Proof::Failed);
    let WaitReason::Retry { at_ms } = play.view("a").waits else { panic!() };
    play.wake_at(at_ms);
    play.fails("a");
    play.rule("a", Ruling::Accept);
    let (tally, view) = (play.plan.tally(), play.view("a"));
    assert_eq!((tally.done, tally.verified, tally.failed), (1, 0, 0));
    let result = view.result.unwrap();
    assert_eq!((result.output.as_str(), result.proof, result.spent), ("first", Proof::Failed, view.spent));
    assert!(!result.evidence[0].ok, "{result:?}");
    assert_eq!(play.at_work(), ["b"]);
}

/// After a correction, the newest answer and the newest diff are what others build on and what is reported.
#[test]
fn the_result_of_a_task_is_its_newest() {
    let mut play = Play::running(vec![task("a"), after("b", &["a"]), after("c", &["b"])], 1);
    let text =
        |name: &str, content: &str| Artifact { name: name.into(), kind: ArtifactType::Text, content: content.into() };
    play.report("a", Report::Done { output: "old".into(), findings: None, unknown: Vec::new() });
    let findings = Findings {
        proof: Proof::Verified,
        artifacts: vec![text("answer", "old"), text("code_diff", "-1")],
        ..Findings::default()
    };
    play.step(PlanInput::Checked { task: 0, attempt: 1, findings });
    let tally = play.plan.tally();
    assert_eq!((tally.done, tally.verified, play.at_work()), (1, 1, vec!["b"]));
    let said = "new\n\n(Before it was asked again it had said:)\n";
    let seen =
        |proof| Some(Findings { artifacts: vec![text("answer", "new"), text("code_diff", "-2")], ..found(proof) });
    let corrected = |task, output: &str, findings, checks| {
        let answer = NewAnswer { output: output.into(), findings, checks, spent: used(5) };
        PlanInput::Corrected { task, answer }
    };
    let table = [
        (None, Recheck::Unneeded, 1, "-1", 0),
        (seen(Proof::Failed), Recheck::Ran, 0, "-2", 1),
        (seen(Proof::Verified), Recheck::Ran, 1, "-2", 1),
        (None, Recheck::Worktree, 0, "-2", 0),
        (seen(Proof::Verified), Recheck::Ran, 1, "-2", 1),
    ];
    for (findings, checks, verified, diff, evidence) in table {
        let before = play.plan.tally().spent.nano;
        play.step(corrected(0, "new", findings, checks));
        assert_eq!(play.view("a").correction, Some(Correction { spent: used(5), checks, not_done: false }));
        assert_eq!(play.plan.newer_needs(1), [0], "b was told of the first result");
        let tally = play.plan.tally();
        assert_eq!(tally.spent.nano, before + 5, "a correction costs what it costs");
        assert_eq!(play.view("a").result.unwrap().evidence.len(), evidence);
        assert_eq!((tally.done, tally.verified, play.at_work()), (1, verified, vec!["b"]), "nothing else follows");
        let [(need, artifacts)] = play.plan.upstream(1)[..] else { panic!() };
        assert!(
            need == "a" && artifacts[0].content.starts_with(said) && artifacts[0].content.ends_with("\nold"),
            "{artifacts:?}"
        );
        assert_eq!(artifacts[1].content, diff);
    }
    // One that is not over has nothing to correct.
    assert!(play.step(corrected(2, "new", None, Recheck::Unneeded)).is_empty());
    // The plan's end does not end corrections: its counts follow them.
    play.report("b", Report::Done { output: "b".into(), findings: Some(Findings::default()), unknown: Vec::new() });
    play.report("c", Report::Done { output: "c".into(), findings: Some(Findings::default()), unknown: Vec::new() });
    assert_eq!(play.plan.ended(), Some(PlanEnd::Done));
    let before = play.plan.tally();
    let events = play.step(corrected(0, "NOT DONE: no.", seen(Proof::Failed), Recheck::Ran));
    let [Event::TaskCorrected(last)] = &events[..] else { panic!("{events:?}") };
    assert!(last.correction.not_done && last.result.output.starts_with("NOT DONE: no.\n"), "{last:?}");
    let ended = last.ended.as_ref().unwrap();
    assert_eq!((ended.end, ended.tally), (PlanEnd::Done, play.plan.tally()));
    assert_eq!((ended.tally.verified + 1, ended.tally.spent.nano), (before.verified, before.spent.nano + 5));
    assert_eq!(play.plan.newer_needs(1), [0]);
    play.step(corrected(1, "I looked again.", None, Recheck::Unneeded));
    assert!(play.plan.newer_needs(1).is_empty());
    play.crash();
}

#[test]
fn rulings_of_the_lead() {
    let table = [
        (Ruling::Skip, TaskStatus::Skipped, TaskStatus::Dispatched, 0),
        (Ruling::GiveUp, TaskStatus::Failed, TaskStatus::Cancelled, 0),
        (Ruling::Fixed, TaskStatus::Running, TaskStatus::Approved, 0),
        (Ruling::Accept, TaskStatus::Done, TaskStatus::Dispatched, 0),
        (retry(Some("ada"), Some("opus")), TaskStatus::Dispatched, TaskStatus::Approved, 0),
        (Ruling::Escalate, TaskStatus::Failed, TaskStatus::Approved, 1),
    ];
    for (ruling, a, b, questions) in table {
        let mut play = failed();
        play.rule("a", ruling.clone());
        assert_eq!((play.status("a"), play.status("b"), play.questions().len()), (a, b, questions), "{ruling:?}");
        let again = play.rule("a", ruling.clone());
        assert!(again.is_empty(), "{ruling:?} {again:?}");
        play.crash();
    }
}

#[test]
fn rulings_of_the_user_after_a_silent_lead() {
    let failure = PlanQuestion::Failure { task: "a".into(), error: "could not".into(), kind: TaskErrorKind::Text };
    let table = [
        (PlanDecision::Rule(Ruling::Skip), TaskStatus::Skipped, false),
        (PlanDecision::Rule(Ruling::GiveUp), TaskStatus::Failed, false),
        (PlanDecision::Rule(Ruling::Fixed), TaskStatus::Running, false),
        (PlanDecision::Rule(retry(None, None)), TaskStatus::Dispatched, false),
        (PlanDecision::Approve, TaskStatus::Dispatched, false),
        (PlanDecision::Reject("leave it".into()), TaskStatus::Failed, false),
        (PlanDecision::Changes("leave it".into()), TaskStatus::Failed, false),
        (PlanDecision::Rule(Ruling::Escalate), TaskStatus::Failed, true),
        (PlanDecision::FirstWave, TaskStatus::Failed, true),
        (PlanDecision::Edit(Vec::new()), TaskStatus::Failed, true),
    ];
    for (say, status, open) in table {
        let mut play = failed();
        assert_eq!(told_short(&play.step(PlanInput::LeadSilent)), ["plan_asked"]);
        assert!(play.step(PlanInput::LeadSilent).is_empty());
        assert_eq!(play.questions(), std::slice::from_ref(&failure));
        assert!(!play.plan.is_moving());
        play.say(say.clone());
        assert_eq!((play.status("a"), !play.questions().is_empty()), (status, open), "{say:?}");
    }
}

#[test]
fn the_lead_may_still_speak_while_the_user_is_asked() {
    let mut play = failed();
    play.rule("a", Ruling::Escalate);
    let question = play.question();
    play.rule("a", retry(None, None));
    assert_eq!(play.questions(), []);
    assert!(
        play.step(PlanInput::Answered { question, say: PlanDecision::Rule(Ruling::Skip), by: person() }).is_empty()
    );
}

#[test]
fn a_retry_by_ruling_counts_attempts_on_and_failures_anew() {
    let mut play = Play::running(vec![TaskDraft { retry: 1, ..task("a") }], 1);
    play.fails_for_good("a");
    let before = play.view("a").agent;
    let events = play.rule("a", retry(Some("ada"), Some("opus")));
    let Event::TaskAssigned(assigned) = &events[1] else { panic!("{events:?}") };
    assert_eq!((assigned.attempt, assigned.member.as_str(), assigned.model.as_deref()), (3, "ada", Some("opus")));
    assert!(assigned.note.contains("could not") && assigned.note.contains("the other door"));
    assert_ne!(play.view("a").agent, before);
    play.fails("a");
    assert!(matches!(play.view("a").waits, WaitReason::Retry { .. }), "it has its retries again");
}

#[test]
fn a_decision_is_recorded_with_its_author() {
    let mut play = Play::running(vec![TaskDraft { retry: 0, ..task("a") }], 1);
    let decided = |events: &[Event]| {
        let ruled = events.iter().find_map(|event| match event {
            Event::TaskRuled(ruled) => Some((ruled.ruling.clone(), ruled.who.clone().unwrap())),
            _ => None,
        });
        ruled.unwrap()
    };
    for _ in 0..RULED_RETRIES_MAX {
        play.fails_for_good("a");
        assert_eq!(decided(&play.rule("a", retry(None, None))).1, DecidedBy::Lead("max".into()));
    }
    play.fails_for_good("a");
    let (ruling, who) = decided(&play.rule("a", retry(None, None)));
    assert!(ruling == Ruling::Escalate && matches!(who, DecidedBy::Rule(_)), "not the lead's decision: {who:?}");
    assert_eq!(decided(&play.say(PlanDecision::Rule(Ruling::Skip))), (Ruling::Skip, person()));
}

#[test]
fn a_manual_fix_is_checked_in_its_turn() {
    let mut play = Play::running(
        vec![TaskDraft { timeout_ms: Some(1_000), ..owning("a", &["src"]) }, owning("b", &["src/x"]), task("c")],
        2,
    );
    play.wake_at(play.now + 1_000);
    play.rest();
    assert_eq!(play.at_work(), ["b", "c"]);
    play.rule("a", Ruling::Fixed);
    assert_eq!(
        (play.at_work(), play.status("a"), play.view("a").waits),
        (vec!["b", "c"], TaskStatus::Failed, WaitReason::Place)
    );
    play.done("c");
    assert_eq!(play.at_work(), ["b"], "somebody is at work on its paths");
    play.crash();
    play.done("b");
    assert_eq!((play.at_work(), play.status("a")), (vec!["a"], TaskStatus::Running));
    play.checked("a", Proof::Failed);
    assert_eq!(play.view("a").waits, WaitReason::Ruling, "who mended it is told");
    play.rule("a", Ruling::Fixed);
    play.checked("a", Proof::Verified);
    play.ended(PlanEnd::Done);
}

#[test]
fn conditions_decide_which_task_runs() {
    let (ok, failed) = (true, false);
    let table: [(bool, &str, TaskStatus); 4] = [
        (ok, "a.ok", TaskStatus::Dispatched),
        (ok, "a.failed", TaskStatus::Skipped),
        (failed, "a.failed", TaskStatus::Dispatched),
        (failed, "a.ok", TaskStatus::Skipped),
    ];
    for (went_well, condition, status) in table {
        // The second handler makes the failure the plan's own business.
        let tasks = vec![once("a"), when("x", condition), when("h", "a.failed"), after("y", &["x"])];
        let mut play = Play::running(tasks, 5);
        if went_well {
            play.done("a")
        } else {
            play.fails("a")
        };
        assert_eq!(play.status("x"), status, "{condition}");
        let follows = if status == TaskStatus::Skipped { TaskStatus::Skipped } else { TaskStatus::Approved };
        assert_eq!(play.status("y"), follows, "{condition}");
        assert_eq!(play.plan.upstream_error(play.place("x")).is_some(), !went_well);
    }
}

#[test]
fn a_task_with_something_left_to_build_on_runs() {
    let tasks = vec![task("a"), task("b"), when("x", "a.failed"), after("y", &["x", "b"]), after("z", &["x"])];
    let mut play = Play::running(tasks, 5);
    play.done("a");
    let skipped = play.log.iter().filter_map(|(_, event)| match event {
        Event::TaskSkipped(skipped) => Some((skipped.task.as_str(), skipped.reason, skipped.detail.as_str())),
        _ => None,
    });
    let skipped: Vec<_> = skipped.collect();
    assert_eq!(
        skipped,
        [("x", SkipReason::Condition, "`a` did not fail"), ("z", SkipReason::Condition, "`x` was skipped")]
    );
    play.done("b");
    play.done("y");
    play.ended(PlanEnd::Done);
}

#[test]
fn a_handled_failure_blocks_no_task() {
    let tasks = vec![
        once("a"),
        when("fix", "a.failed"),
        when("also", "a.failed"),
        after("b", &["a", "fix"]),
        after("c", &["a"]),
    ];
    let mut play = Play::running(tasks, 5);
    play.fails("a");
    assert_eq!(play.questions(), []);
    assert_eq!((play.at_work(), play.status("c")), (vec!["fix", "also"], TaskStatus::Cancelled));
    assert_eq!(play.view("c").error, "it needs `a`, which failed");
    play.done("fix");
    play.done("also");
    assert_eq!(play.at_work(), ["b"]);
    play.done("b");
    assert_eq!((play.plan.tally().failed, play.plan.tally().mended), (1, 1));
    play.ended(PlanEnd::Partial);
}

#[test]
fn how_a_plan_with_a_failure_ends() {
    // What becomes of the task that is to make up for it.
    for (mends, end) in [(true, PlanEnd::Done), (false, PlanEnd::Failed)] {
        let mut play = Play::running(
            vec![once("a"), TaskDraft { retry: 0, ..when("fix", "a.failed") }, after("b", &["a", "fix"])],
            5,
        );
        play.fails("a");
        if mends {
            play.done("fix");
            play.done("b");
        } else {
            play.fails("fix");
            play.rule("fix", Ruling::GiveUp);
            assert_eq!(play.status("b"), TaskStatus::Cancelled);
        }
        play.ended(end);
    }
}

#[test]
fn a_handler_that_will_never_run_handles_nothing() {
    let struck = TaskDraft { skip: true, ..when("fix", "a.failed") };
    let mut play = Play::running(vec![once("a"), struck], 5);
    play.fails("a");
    assert_eq!(play.view("a").waits, WaitReason::Ruling);
    let mut play = Play::running(vec![once("a"), when("fix", "a.failed")], 5);
    play.stop(Some("fix"));
    play.fails("a");
    assert_eq!(play.view("a").waits, WaitReason::Ruling);
}

/// Says that a task is done, and that its checks failed while these others could change files.
fn fails_beside(play: &mut Play, id: &str, beside: &[&str]) -> Vec<Event> {
    play.report(id, Report::Done { output: "done".into(), findings: None, unknown: Vec::new() });
    let (task, attempt) = (play.place(id), play.attempt(id));
    let beside = beside.iter().map(|id| play.place(id)).collect();
    play.step(PlanInput::Checked { task, attempt, findings: Findings { beside, ..found(Proof::Failed) } })
}

#[test]
fn a_check_that_fails_beside_others_runs_again_once_they_are_through() {
    let mut play = Play::running(vec![task("a"), task("b"), task("c")], 3);
    assert_eq!(told_short(&fails_beside(&mut play, "a", &["a", "b"])), ["task_deferred a"]);
    assert_eq!((play.status("a"), play.view("a").waits), (TaskStatus::Running, WaitReason::For(vec!["b"])));
    play.crash();
    // `b` fails with no other task at work: it is tried again at once, and `a` still waits for it.
    assert_eq!(told_short(&fails_beside(&mut play, "b", &["a"])), ["task_failed b"]);
    assert_eq!(play.view("a").waits, WaitReason::For(vec!["b"]));
    play.wake_at(play.now + 60_000);
    play.done("b");
    let attempt = play.attempt("a");
    let check = PlanEffect::Check { task: play.place("a"), attempt };
    assert!(play.plan.pending().contains(&check), "{:?}", play.plan.pending());
    // The second failure counts, also beside other tasks.
    assert_eq!(told_short(&play.checked("a", Proof::Failed)), ["task_failed a"]);
    play.wake_at(play.now + 60_000);
    // Another attempt may be put off once more; what it waits for may also be stopped.
    assert_eq!(told_short(&fails_beside(&mut play, "a", &["c"])), ["task_deferred a"]);
    play.stop(Some("c"));
    play.rest();
    assert_eq!(told_short(&play.checked("a", Proof::Verified)), ["task_done a", "plan_ended"]);
    play.ended(PlanEnd::Partial);
}

#[test]
fn a_missing_file_is_not_blamed_on_other_tasks() {
    let mut play = Play::running(vec![TaskDraft { outputs: names(&["cargo test"]), ..task("a") }, task("b")], 2);
    assert_eq!(told_short(&fails_beside(&mut play, "a", &["b"])), ["task_failed a"]);
}

#[test]
fn a_check_that_cannot_start_is_no_fault_of_the_task() {
    let evidence = |code| vec![Evidence { code, ..Evidence::new("nox", false, "not found") }];
    for (code, cause, tried_again) in [
        (Some(127), Cause::Environment, false),
        (Some(126), Cause::Environment, false),
        (Some(1), Cause::Checks, true),
        (None, Cause::Checks, true),
    ] {
        let mut play = Play::running(vec![task("a")], 1);
        play.report("a", Report::Done { output: "done".into(), findings: None, unknown: Vec::new() });
        let findings = Findings { proof: Proof::Failed, evidence: evidence(code), ..Findings::default() };
        let (task, attempt) = (play.place("a"), play.attempt("a"));
        let events = play.step(PlanInput::Checked { task, attempt, findings });
        let Event::TaskFailed(failed) = &events[0] else { panic!("{events:?}") };
        assert_eq!((failed.cause, failed.retry_at_ms.is_some()), (cause, tried_again), "{code:?}");
        assert_eq!(failed.error.contains("cannot be started here"), !tried_again, "{}", failed.error);
        assert!(!failed.error.contains('\n'));
    }
    // Where another check failed for good reason, the task is to blame.
    let both = evidence(Some(127)).into_iter().chain(evidence(Some(1))).collect();
    let mut play = Play::running(vec![task("a")], 1);
    play.report("a", Report::Done { output: "done".into(), findings: None, unknown: Vec::new() });
    let findings = Findings { proof: Proof::Failed, evidence: both, ..Findings::default() };
    let events = play.step(PlanInput::Checked { task: 0, attempt: 1, findings });
    assert!(matches!(&events[0], Event::TaskFailed(failed) if failed.cause == Cause::Checks));
}

#[test]
fn only_the_user_accepts_changes_that_are_not_the_tasks_to_make() {
    let unowned = Evidence::fault("paths of the task", CheckFault::Unowned(vec!["b.txt".into()]));
    let failed = Evidence::new("cargo test", false, "exit 1");
    for (evidence, cause, accepted) in [
        (vec![unowned.clone()], Cause::Unowned, ["task_ruled a", "plan_asked"]),
        (vec![unowned, failed.clone()], Cause::Checks, ["task_ruled a", "plan_asked"]),
        (vec![failed], Cause::Checks, ["task_ruled a", "task_assigned b"]),
    ] {
        let mut play = Play::running(vec![TaskDraft { retry: 0, ..task("a") }, after("b", &["a"])], 1);
        play.report("a", Report::Done { output: "done".into(), findings: None, unknown: Vec::new() });
        let findings = Findings { proof: Proof::Failed, evidence: evidence.clone(), ..Findings::default() };
        let events = play.step(PlanInput::Checked { task: 0, attempt: 1, findings });
        let Event::TaskFailed(failed) = &events[0] else { panic!("{events:?}") };
        assert_eq!((failed.cause, failed.retry_at_ms), (cause, None), "{evidence:?}");
        let ruled =
            play.step(PlanInput::Rule { task: 0, ruling: Ruling::Accept, by: "max".into(), note: String::new() });
        assert_eq!(told_short(&ruled), accepted, "{evidence:?}");
    }
}

#[test]
fn a_note_stands_beside_the_approved_words() {
    let note = |task| PlanInput::Note { task, note: "tabs, please".into(), by: "max".into() };
    let none: [&str; 0] = [];
    let owned = TaskDraft { needs: names(&["a"]), ..owning("b", &["b.txt"]) };
    let mut play = Play::running(vec![owning("a", &["a.txt"]), owned, after("c", &["a"])], 1);
    assert_eq!(told_short(&play.step(note(0))), none, "it has begun");
    assert_eq!(told_short(&play.step(note(2))), none, "no `owns` keeps it to files that the user saw");
    assert_eq!(told_short(&play.step(note(1))), ["task_changed b"]);
    play.crash();
    let view = play.view("b");
    assert_eq!(view.task.description, "do b");
    assert_eq!(view.notes, [LeadNote { by: "max".into(), text: "tabs, please".into() }]);
    for _ in 0..crate::limits::TASK_NOTES_MAX {
        play.step(note(1));
    }
    assert_eq!(play.view("b").notes.len(), crate::limits::TASK_NOTES_MAX);
    play.done("a");
    assert_eq!(told_short(&play.step(note(1))), none, "it has begun");
    let mut play = Play::proposed(proposal(draft(vec![owning("a", &["a.txt"])])));
    assert_eq!(told_short(&play.step(note(0))), none, "the plan is not approved");
    // Older entries replaced the words.
    let old = r#"{"task_changed":{"task":"a","description":"anew","by":"max"}}"#;
    play.plan.apply(&serde_json::from_str(old).unwrap(), 0);
    assert_eq!(play.view("a").task.description, "anew");
}

#[test]
fn a_check_that_passed_before_the_task_is_remembered() {
    let probed = |tasks: &[usize]| PlanInput::Probed { tasks: tasks.to_vec(), line: "cargo test".into() };
    let mut play = Play::running(vec![task("a"), task("b"), after("c", &["a"])], 5);
    assert_eq!(told_short(&play.step(probed(&[0, 1, 2]))), ["task_marked a", "task_marked b"]);
    assert_eq!(told_short(&play.step(probed(&[0]))), [] as [&str; 0], "known already");
    play.crash();
    assert_eq!((play.plan.passed_before(0), play.plan.passed_before(2).len()), (&names(&["cargo test"])[..], 0));
    play.report("b", Report::Done { output: "b".into(), findings: None, unknown: Vec::new() });
    play.checked("b", Proof::Failed);
    assert_eq!(play.plan.passed_before(1).len(), 0, "it has failed since: its next pass shows something");
    let old =
        r#"{"task_marked":{"task":"a","tree":"0000000000000000000000000000000000000000000000000000000000000000"}}"#;
    assert!(serde_json::from_str::<Event>(old).is_ok(), "of older journals");
}

#[test]
fn a_plan_that_the_user_leaves_is_paused_until_something_happens() {
    let pause = || PlanInput::Pause { by: "ann".into(), files: Vec::new() };
    let mut play = Play::running(vec![task("a")], 1);
    assert_eq!(told_short(&play.step(pause())), ["plan_paused"]);
    assert_eq!(play.plan.paused_by(), Some("ann"));
    play.crash();
    assert_eq!((play.plan.paused_by(), play.status("a")), (None, TaskStatus::Dispatched), "it goes on");
    play.done("a");
    assert_eq!(told_short(&play.step(pause())), [] as [&str; 0], "it is over");
    let mut play = Play::proposed(proposal(draft(vec![task("a")])));
    assert_eq!(told_short(&play.step(pause())), [] as [&str; 0], "it only waits for a person");
}

#[test]
fn a_result_says_whether_only_files_were_checked() {
    let file = |name: &str| Artifact { name: name.into(), kind: ArtifactType::FilePath, content: name.into() };
    let result = |artifacts: &[&str], evidence: &[&str], proof| TaskResult {
        artifacts: artifacts.iter().map(|name| file(name)).collect(),
        evidence: evidence.iter().map(|what| Evidence::new(*what, true, "seen")).collect(),
        proof,
        ..TaskResult::default()
    };
    for (result, only_files) in [
        (result(&["a.py"], &["a.py"], Proof::Verified), true),
        (result(&["a.py"], &["a.py"], Proof::Unverified), false),
        (result(&["a.py"], &["a.py", "cargo test"], Proof::Verified), false),
        (result(&[], &["cargo test"], Proof::Verified), false),
        (result(&[], &[], Proof::Verified), false),
    ] {
        assert_eq!(result.is_only_files(), only_files, "{result:?}");
    }
}
