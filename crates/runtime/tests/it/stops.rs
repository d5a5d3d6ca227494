//! What ends before its time: who is still at it, what it cost, whose paths are free, and what the next process does.

use std::time::Duration;

use max_team_core::event::{Event, TurnOutcome};
use max_team_core::id::{EnvelopeId, PlanId, SessionId};
use max_team_core::ledger::Price;
use max_team_core::plan::event::{ApprovalMode, PlanDecision, PlanEnd, PlanQuestion, TaskStarted};
use max_team_core::plan::{Draft, Plan, TaskStatus};
use max_team_journal::{Append, Commit, Journal, Options};
use max_team_llm::Replay;
use max_team_runtime::{Command, Notice, Order, ReadModel, TeamHandle, UserMail, Which, new_id};

use super::crashes::{check_rest, events};
use super::limits::{asked_about, begin, block_on, only_plan, plan_of, priced, run_plan, until};
use super::read::Reads as _;
use super::team::{repository, rest, with_team};
use super::{order, owner, runtime_of, runtime_with, yes};

const PRICE: Price = Price { input: 1_000, output: 1_000, cache_read: 1_000, cache_write: 1_000 };

fn key() -> EnvelopeId {
    EnvelopeId::new(new_id())
}

async fn propose(team: &TeamHandle, session: SessionId, draft: Box<Draft>) -> PlanId {
    let key = key();
    let command = Command::Propose { session, draft, source: "a test".into() };
    team.command(Order { by: owner(), cwd: ".".into(), key, command }).await.unwrap();
    PlanId::new(key.uuid())
}

/// Two plans of a session do not work on the same paths at once, over a restart as well.
#[test]
fn plans_keep_out_of_each_others_paths() {
    let recording = r#"
answers: [{text: Report.}, {text: Report.}, {text: Report.}]
members:
  leo/a: [{parts: [{tool: write_file, input: {path: a.txt, content: x}}]}, {text: done}]
  leo/b: [{parts: [{tool: write_file, input: {path: src/b.txt, content: x}}]}, {text: done}]
"#;
    for restarts in [false, true] {
        block_on(async {
            let folder = super::project();
            let mut journal = Journal::memory();
            let mut team = runtime_of(&journal, folder.path(), recording);
            let mut notices = team.watch();
            let start = with_team(Which::New, ApprovalMode::Plan);
            let session = team.open(owner(), folder.path(), start).await.unwrap().session;
            rest(&mut notices).await;
            let mut plans = Vec::new();
            for (id, owns) in [("a", "src/**"), ("b", "src/b.txt")] {
                let task = format!(r#"[{{"id": "{id}", "agent": "leo", "description": "D", "owns": ["{owns}"]}}]"#);
                plans.push(propose(&team, session, plan_of(&task)).await);
                let (question, _) = rest(&mut notices).await.asked();
                order(&team, Command::Decide { question, say: PlanDecision::Approve }).await.unwrap();
                // a writes where it owns nothing, and waits for a yes with its paths in its hands.
                assert!(rest(&mut notices).await.waiting);
            }
            if restarts {
                team.shutdown().await.unwrap();
                journal = journal.reopen().unwrap();
                team = runtime_of(&journal, folder.path(), recording);
                notices = team.watch();
                team.open(owner(), folder.path(), with_team(Which::Latest, ApprovalMode::Plan)).await.unwrap();
                assert!(rest(&mut notices).await.waiting);
            }
            let stand = || plans.iter().map(|plan| team.plan(*plan).unwrap().task(0).unwrap().status);
            assert_eq!(stand().collect::<Vec<_>>(), [TaskStatus::Running, TaskStatus::Approved]);
            let question = UserMail::new(&journal).inbox().unwrap().pop().unwrap().row.question;
            order(&team, Command::Answer { session, question, answer: yes() }).await.unwrap();
            until(&mut notices, "plan_ended", 2).await;
            let told = events(&journal).into_iter().filter_map(|(_, event)| match event {
                Event::TaskAssigned(assigned) => Some(format!("{} begins", assigned.task)),
                Event::TaskDone(done) => Some(format!("{} is done", done.task)),
                _ => None,
            });
            assert_eq!(told.collect::<Vec<_>>(), ["a begins", "a is done", "b begins", "b is done"]);
        });
    }
}

/// A plan that takes another's place begins once everybody has stopped; what they used is counted.
#[test]
fn a_revision_waits_for_those_it_stops() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: a, agent: leo, description: A, owns: [src], retry: 0, outputs: [src/absent.txt]},
      {id: z, agent: leo, description: Z, owns: [docs]}]}}]
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: b, agent: ada, description: B, owns: [docs/x]}]}}]
  - text: Report.
  - text: Report.
members:
  leo/a: [{text: done, usage: {input: 1, output: 1}}]
  leo/z:
    - {parts: [{tool: read_file, input: {path: a.txt}}], usage: {input: 100, output: 100}}
    - {text: One moment, delta_ms: 3600000, usage: {input: 100, output: 100}}
  ada/b: [{text: done}]
"#;
    block_on(async {
        let folder = super::project();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), recording);
        let mut notices = team.watch();
        let mut start = with_team(Which::New, ApprovalMode::Plan);
        for teammate in start.team.iter_mut().flat_map(|team| &mut team.members) {
            teammate.settings.model.price = Some(PRICE);
        }
        let session = team.open(owner(), folder.path(), start).await.unwrap().session;
        rest(&mut notices).await;
        order(&team, Command::Say { session, text: "go".into() }).await.unwrap();
        let first = rest(&mut notices).await;
        order(&team, Command::Decide { question: first.asked().0, say: PlanDecision::Approve }).await.unwrap();
        // The lead plans anew, and the old plan asks what to do about the failure.
        let second = until(&mut notices, "plan_proposed", 1).await.plan();
        until(&mut notices, "plan_asked", 1).await;
        let (question, about) =
            team.plan(second).unwrap().asked().map(|(id, about)| (id, about.clone())).next().unwrap();
        assert_eq!(about, PlanQuestion::Proposal);
        order(&team, Command::Decide { question, say: PlanDecision::Approve }).await.unwrap();
        until(&mut notices, "plan_ended", 2).await;
        let told = events(&journal).into_iter().filter_map(|(_, event)| match event {
            Event::TaskAssigned(assigned) if assigned.task == "b" => Some("b begins"),
            Event::TaskCancelled(cancelled) if cancelled.task == "z" => Some("z is given up"),
            Event::TurnEnded(ended) if ended.end == TurnOutcome::Interrupted => Some("z has stopped"),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), ["z is given up", "z has stopped", "b begins"]);
        let old = team.plan(first.plan()).unwrap();
        assert_eq!(old.ended(), Some(PlanEnd::Replaced));
        assert_eq!((old.task(1).unwrap().spent.nano, old.tally().spent.nano), (400_000, 402_000));
    });
}

/// What was stopped while nobody ran it never calls a model again, and says so to whoever looks before that.
#[test]
fn a_stop_of_what_nobody_runs_comes_before_anything_else() {
    let recording = r#"
answers: [{text: Report.}]
members:
  leo/a: [{text: One moment, delta_ms: 3600000}]
  ada/b: [{text: One moment, delta_ms: 3600000}]
"#;
    for task in [None, Some("a")] {
        let folder = super::project();
        let journal = Journal::memory();
        block_on(async {
            let team = runtime_of(&journal, folder.path(), recording);
            let tasks = r#"[{"id": "a", "agent": "leo", "description": "A"},
                {"id": "b", "agent": "ada", "description": "B"},
                {"id": "c", "agent": "leo", "description": "C", "needs": ["a"]}]"#;
            let (_, mut notices) = run_plan(&team, folder.path(), tasks).await;
            until(&mut notices, "task_started", 2).await;
            team.shutdown().await.unwrap();
        });
        let journal = journal.reopen().unwrap();
        block_on(async {
            let plan = only_plan(&journal);
            UserMail::new(&journal).stop(&owner(), key(), plan, task).await.unwrap();
            let census = ReadModel::new(&journal);
            assert_eq!(census.stopping(plan).unwrap(), Some(task.map(str::to_owned)));
            let replay = Replay::read(recording).unwrap();
            let team = runtime_with(&journal, folder.path(), replay.clone());
            let mut notices = team.watch();
            team.open(owner(), folder.path(), with_team(Which::Latest, ApprovalMode::Plan)).await.unwrap();
            until(&mut notices, "task_stopped", 1).await;
            let state = team.plan(plan).unwrap();
            assert_eq!(state.task(0).unwrap().status, TaskStatus::Cancelled);
            assert_eq!(state.task(2).unwrap().status, TaskStatus::Cancelled);
            let called = replay.calls();
            assert!(!called.keys().any(|(who, _)| who.starts_with("leo")), "{called:?}");
            if task.is_none() {
                rest(&mut notices).await;
                assert!(replay.calls().keys().all(|(who, _)| !who.contains('/')), "{:?}", replay.calls());
                assert_eq!(team.plan(plan).unwrap().ended(), Some(PlanEnd::Stopped));
                assert_eq!(census.stopping(plan).unwrap(), None);
                check_rest(&journal);
            }
        });
    }
}

/// A task's own budget is raised by whoever says yes; the same too little is not tried again by the next process.
#[test]
fn a_tasks_own_budget_can_be_raised() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: a, agent: ada, description: A, budget: {nano: 4000000}}]}}]
  - text: Report.
members:
  ada/a:
    - {parts: [{tool: read_file, input: {path: a.txt}}], usage: {input: 900, output: 900}}
    - {text: Half of it., usage: {input: 100, output: 100}}
    - {text: All of it., usage: {input: 100, output: 100}}
    - {text: All of it., usage: {input: 100, output: 100}}
"#;
    for while_closed in [false, true] {
        block_on(async {
            let folder = super::project();
            let journal = Journal::memory();
            let team = runtime_of(&journal, folder.path(), recording);
            let (heard, _) = begin(&team, folder.path(), priced(Which::New, PRICE, None)).await;
            assert!(heard.waiting && asked_about(&journal) == [PlanQuestion::Budget], "{:?}", heard.names());
            team.shutdown().await.unwrap();
            drop(team);

            let journal = journal.reopen().unwrap();
            let question = UserMail::new(&journal).inbox().unwrap().pop().unwrap().row.question;
            if while_closed {
                UserMail::new(&journal).decide(&owner(), key(), question, &PlanDecision::Approve).await.unwrap();
            }
            let team = runtime_of(&journal, folder.path(), recording);
            let mut notices = team.watch();
            team.open(owner(), folder.path(), priced(Which::Latest, PRICE, None)).await.unwrap();
            let mut heard = rest(&mut notices).await;
            if !while_closed {
                assert!(heard.waiting && !heard.names().contains(&"task_assigned"), "{:?}", heard.names());
                order(&team, Command::Decide { question, say: PlanDecision::Approve }).await.unwrap();
                heard = rest(&mut notices).await;
            }
            let plan = team.plan(only_plan(&journal)).unwrap();
            assert_eq!(plan.ended(), Some(PlanEnd::Done), "{:?}", heard.names());
            assert_eq!(plan.task(0).unwrap().result.unwrap().output, "All of it.");
        });
    }
}

/// What a call whose process died may have cost is counted, and marked.
#[test]
fn calls_of_unknown_outcome_are_marked() {
    let slow = "answers: [{text: Report., usage: {input: 1, output: 1}}]\nmembers:\n  ada/a: [{text: One moment, delta_ms: 3600000}]\n";
    let recording = "answers: [{text: Report., usage: {input: 1, output: 1}}]\nmembers:\n  ada/a: [{text: done, usage: {input: 10, output: 10}}]\n";
    let folder = super::project();
    let journal = Journal::memory();
    block_on(async {
        let team = runtime_of(&journal, folder.path(), slow);
        let mut notices = team.watch();
        let session = team.open(owner(), folder.path(), priced(Which::New, PRICE, None)).await.unwrap().session;
        rest(&mut notices).await;
        propose(&team, session, plan_of(r#"[{"id": "a", "agent": "ada", "description": "A"}]"#)).await;
        until(&mut notices, "task_started", 1).await;
    });
    let journal = journal.reopen().unwrap();
    block_on(async {
        let team = runtime_of(&journal, folder.path(), recording);
        let mut notices = team.watch();
        let session = team.open(owner(), folder.path(), priced(Which::Latest, PRICE, None)).await.unwrap().session;
        rest(&mut notices).await;
        let plan = team.plan(only_plan(&journal)).unwrap();
        assert_eq!(plan.ended(), Some(PlanEnd::Done));
        let spent = plan.tally().spent;
        assert_eq!(spent.nano, spent.unknown_nano + 20_000, "{spent:?}");
        assert!(spent.unknown_nano > 500_000, "the request, and a few tokens of the answer: {spent:?}");
        let costs = team.costs(session).unwrap();
        assert_eq!(costs.iter().map(|cost| cost.charge.unknown_nano).sum::<u64>(), spent.unknown_nano);
        let told = events(&journal).into_iter().filter(|(_, event)| match event {
            Event::TurnStarted(started) => format!("{:?}", started.input).contains("of it estimated"),
            _ => false,
        });
        assert_eq!(told.count(), 1, "the lead is told as well");
    });
}

/// What a coder changed is measured from when the task began, also by a process that did not see that.
#[test]
fn a_resumed_coders_diff_is_its_own() {
    let recording = r#"
answers: [{text: Report.}]
members:
  leo/a: [{parts: [{tool: write_file, input: {path: other.txt, content: mine}}]}, {text: done}]
"#;
    let folder = repository();
    std::fs::write(folder.path().join("a.txt"), "of somebody else\n").unwrap();
    let journal = Journal::memory();
    block_on(async {
        let team = runtime_of(&journal, folder.path(), recording);
        let tasks = r#"[{"id": "a", "agent": "leo", "description": "A", "owns": ["*.txt"]}]"#;
        let (_, mut notices) = run_plan(&team, folder.path(), tasks).await;
        until(&mut notices, "task_started", 1).await;
    });
    let journal = journal.reopen().unwrap();
    block_on(async {
        let team = runtime_of(&journal, folder.path(), recording);
        let mut notices = team.watch();
        team.open(owner(), folder.path(), with_team(Which::Latest, ApprovalMode::Plan)).await.unwrap();
        rest(&mut notices).await;
        let plan = team.plan(only_plan(&journal)).unwrap();
        let result = plan.task(0).unwrap().result.unwrap().clone();
        let diff = result.artifacts.iter().find(|artifact| artifact.name == "code_diff").unwrap();
        assert!(diff.content.contains("+mine") && !diff.content.contains("somebody else"), "{}", diff.content);
    });
}

/// A plan with a long log is read from its snapshot, and comes out the same as from the beginning.
#[test]
fn a_long_plan_goes_on_from_its_snapshot() {
    let tasks: Vec<String> =
        (0..1_400).map(|n| format!(r#"{{"id": "t{n}", "agent": "ada", "description": "T"}}"#)).collect();
    block_on(async {
        let folder = super::project();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), "answers: [{text: Report.}]\nmembers:\n  ada: [{text: done}]\n");
        let (_, mut notices) = run_plan(&team, folder.path(), &format!("[{}]", tasks.join(","))).await;
        until(&mut notices, "plan_ended", 1).await;
        let plan = only_plan(&journal);
        let snapshot = journal.snapshot(&format!("plan/{plan}")).unwrap().unwrap();
        assert!(snapshot.stream_seq >= 4_096, "{}", snapshot.stream_seq);
        let census = ReadModel::new(&journal);
        let mut whole = Plan::new();
        census.plan_events(plan).unwrap().iter().for_each(|(at_ms, event)| whole.apply(event, *at_ms));
        assert_eq!((whole.tally().done, &census.plan(plan).unwrap()), (1_400, &whole));
    });
}

/// A message is handed over while the journal writes it. If the journal then refuses the commit that it came with, whoever
/// took it is refused too, before anything is done about it; the next process does it once.
#[test]
fn a_message_whose_commit_is_refused_is_acted_on_by_nobody() {
    let recording = "answers: [{text: I shall think of something else.}, {text: No second time.}]";
    let folder = super::project();
    let home = tempfile::tempdir().unwrap();
    block_on(async {
        let journal = Journal::open(home.path(), Options::default()).unwrap();
        let team = runtime_of(&journal, folder.path(), recording);
        let mut notices = team.watch();
        let opened = team.open(owner(), folder.path(), with_team(Which::New, ApprovalMode::Plan)).await.unwrap();
        let (session, lead) = (opened.session, format!("agent/{}", opened.agent));
        rest(&mut notices).await;
        let plan = propose(&team, session, plan_of(r#"[{"id": "a", "agent": "leo", "description": "A"}]"#)).await;
        let (question, _) = rest(&mut notices).await.asked();
        let before = journal.head(&lead).unwrap();

        // Somebody writes to the plan's own stream behind its back: what the plan decides next is a lost race.
        let said = Event::TaskStarted(TaskStarted { task: "no such task".into(), attempt: 1 });
        let stream = format!("plan/{plan}");
        let (event, payload) = (said.name().into(), serde_json::to_vec(&said).unwrap());
        let append = Append { stream, event, version: 1, payload, actor: "a test".into(), cause: None };
        journal.commit(Commit { appends: vec![append], ..Commit::default() }).await.unwrap();
        let say = PlanDecision::Changes("something else".into());
        order(&team, Command::Decide { question, say: say.clone() }).await.unwrap();
        let mut stopped = Vec::new();
        while stopped.len() < 2 {
            match tokio::time::timeout(Duration::from_secs(20), notices.recv()).await.unwrap().unwrap() {
                Notice::Stopped { whole, .. } => stopped.push(whole),
                Notice::Event { event, .. } => assert_ne!(event.name(), "turn_started", "nobody acts on it"),
                Notice::Idle { .. } | Notice::Delta { .. } | Notice::Copies { .. } | Notice::Redefined { .. } => {}
            }
        }
        stopped.sort_unstable();
        assert_eq!(stopped, [false, true], "where the plan stops the others may go on, where the lead does nobody can");
        assert_eq!(journal.head(&lead).unwrap(), before, "the lead has written nothing about it");
        team.shutdown().await.unwrap();
    });
    block_on(async {
        let journal = Journal::open(home.path(), Options::default()).unwrap();
        let team = runtime_of(&journal, folder.path(), recording);
        let mut notices = team.watch();
        team.open(owner(), folder.path(), with_team(Which::Latest, ApprovalMode::Plan)).await.unwrap();
        // The user's word was stored before, and is heard now.
        until(&mut notices, "turn_ended", 1).await;
        rest(&mut notices).await;
        let turns = events(&journal).into_iter().filter(|(_, event)| matches!(event, Event::TurnStarted(_))).count();
        assert_eq!(turns, 1);
        team.shutdown().await.unwrap();
    });
}
