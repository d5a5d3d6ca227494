//! What bounds a team: money, tokens, time, a person's stop, paths that others work on, room in a prompt.

use std::path::Path;
use std::time::Duration;

use max_team_core::event::{Event, LlmOutcome, TurnOutcome};
use max_team_core::hash::Hash;
use max_team_core::id::{PlanId, SessionId};
use max_team_core::ledger::Price;
use max_team_core::limits::{UPSTREAM_BYTES_MAX, UPSTREAM_ITEM_BYTES_MAX};
use max_team_core::plan::event::{ApprovalMode, Cause, PlanDecision, PlanEnd, PlanQuestion, Ruling};
use max_team_core::plan::{Draft, TaskStatus};
use max_team_journal::Journal;
use max_team_runtime::{
    Command, Matter, Notice, OpenOptions, Order, RuntimeError, TeamHandle, UserMail, Which, new_id,
};
use proptest::prelude::*;
use tokio::sync::mpsc;

use super::crashes::{check_rest, events, plans};
use super::read::Reads as _;
use super::team::{Heard, rest, with_team};
use super::{order, owner, runtime_of};

/// A team that costs something, under a cap.
pub(crate) fn priced(which: Which, price: Price, cap_nano: Option<u64>) -> OpenOptions {
    let mut open = with_team(which, ApprovalMode::Never);
    open.settings.model.price = Some(price);
    open.settings.budget_nano = cap_nano;
    for teammate in open.team.iter_mut().flat_map(|team| &mut team.members) {
        teammate.settings.model.price = Some(price);
    }
    open
}

/// What all calls of all agents cost, with what may have been paid.
fn spent(journal: &Journal) -> (u64, u64) {
    let (mut nano, mut tokens) = (0, 0);
    let mut calling = std::collections::HashMap::new();
    for (stream, event) in events(journal) {
        match event {
            Event::LlmIntent(intent) => drop(calling.insert(stream, intent)),
            Event::LlmEnded(ended) => {
                let intent = calling.get(&stream).unwrap();
                let usage = match &ended.outcome {
                    LlmOutcome::Done(answer) => answer.usage,
                    LlmOutcome::Cancelled { usage, .. } => *usage,
                    other => panic!("{other:?}"),
                };
                assert!(usage.output <= u64::from(intent.max_tokens));
                nano += intent.model.price.map_or(0, |price| price.cost_of(usage));
                tokens += usage.input_total() + usage.output;
            }
            _ => {}
        }
    }
    (nano, tokens)
}

/// A plan of tasks that do not wait for each other, each of some rounds with the same usage.
fn crowd(tasks: usize, rounds: usize, input: u64, output: u64, more: &str) -> String {
    let usage = format!("usage: {{input: {input}, output: {output}}}");
    let list: Vec<String> = (0..tasks).map(|n| format!("{{id: t{n}, agent: ada, description: T}}")).collect();
    let look = format!("    - {{parts: [{{tool: read_file, input: {{path: a.txt}}}}], {usage}}}\n");
    let mut text = format!(
        "answers:\n  - {{parts: [{{tool: submit_plan, input: {{goal: g, {more} tasks: [{}]}}}}], {usage}}}\n",
        list.join(", ")
    );
    text.push_str(&"  - {text: Report.}\n".repeat(20));
    text.push_str(&format!("members:\n  ada:\n{}", look.repeat(rounds)));
    text.push_str(&format!("    - {{text: done, {usage}}}\n").repeat(20));
    text
}

pub(crate) async fn begin(team: &TeamHandle, root: &Path, open: OpenOptions) -> (Heard, mpsc::Receiver<Notice>) {
    let mut notices = team.watch();
    let session = team.open(owner(), root, open).await.unwrap().session;
    rest(&mut notices).await;
    order(team, Command::Say { session, text: "go".into() }).await.unwrap();
    let heard = rest(&mut notices).await;
    (heard, notices)
}

pub(crate) fn asked_about(journal: &Journal) -> Vec<PlanQuestion> {
    let inbox = UserMail::new(journal).inbox().unwrap().into_iter();
    let about = inbox.filter_map(|pending| match pending.row.matter {
        Matter::Plan(about) => Some(about),
        Matter::Tool { .. } => None,
    });
    about.collect()
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Runs into a cap, then goes on under none.
async fn run_into(cap: u64, price: Price, recording: &str, tasks: usize) {
    let folder = super::project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let (heard, _) = begin(&team, folder.path(), priced(Which::New, price, Some(cap))).await;
    let (paid, _) = spent(&journal);
    assert!(paid <= cap, "{paid} of {cap}: {:?}", heard.names());
    if heard.waiting {
        assert_eq!(asked_about(&journal), [PlanQuestion::Budget], "{:?}", heard.names());
    }
    team.shutdown().await.unwrap();
    drop(team);

    let journal = journal.reopen().unwrap();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut notices = team.watch();
    let more = cap.saturating_mul(1_000).max(u64::MAX / 4);
    let opened = team.open(owner(), folder.path(), priced(Which::Latest, price, Some(more))).await.unwrap();
    let again = rest(&mut notices).await;
    assert!(!again.waiting, "{:?}", again.names());
    if let Some(plan) = opened.plans.first() {
        let plan = team.plan(*plan).unwrap();
        assert_eq!((plan.ended(), plan.tally().done), (Some(PlanEnd::Done), tasks), "{:?}", again.names());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// However many work at once, and whatever calls cost: together they never spend more than there is.
    #[test]
    fn the_sum_never_exceeds_the_cap(
        tasks in 1_usize..9,
        rounds in 0_usize..3,
        input in 1_u64..150,
        output in 1_u64..2_000,
        price in (1_u64..5_000, 1_u64..20_000),
        // In full calls of one agent, in tenths.
        cap in 0_u64..300,
    ) {
        let price = Price { input: price.0, output: price.1, cache_read: price.0, cache_write: price.0 };
        let cap = cap * (price.input * 1_000 + price.output * 1_000) / 10;
        block_on(run_into(cap, price, &crowd(tasks, rounds, input, output, ""), tasks));
    }
}

/// Says yes as long as a plan asks for more; how often that was.
async fn grant(team: &TeamHandle, journal: &Journal, notices: &mut mpsc::Receiver<Notice>) -> u64 {
    for grants in 0..1_000 {
        let Some(pending) = UserMail::new(journal).inbox().unwrap().pop() else { return grants };
        assert_eq!(pending.row.matter, Matter::Plan(PlanQuestion::Budget));
        order(team, Command::Decide { question: pending.row.question, say: PlanDecision::Approve }).await.unwrap();
        rest(notices).await;
    }
    panic!("it never has enough");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// A plan's own budget holds over a restart; whoever says yes gives as much again.
    #[test]
    fn a_plan_has_its_own_budget(tasks in 1_usize..7, output in 1_u64..1_000, calls in 2_u64..9, is_money: bool) {
        let price = Price { input: 1, output: 1, cache_read: 1, cache_write: 1 };
        let cap = calls * 1_500;
        let recording = crowd(tasks, 1, 100, output, &format!("budget: {{{}: {cap}}},", if is_money { "nano" } else { "tokens" }));
        block_on(async {
            let folder = super::project();
            let journal = Journal::memory();
            let team = runtime_of(&journal, folder.path(), &recording);
            let (heard, _) = begin(&team, folder.path(), priced(Which::New, price, None)).await;
            // The call that submits the plan is the session's.
            let own = |journal: &Journal| spent(journal).1 - 100 - output.min(1_000);
            assert!(own(&journal) <= cap, "{} of {cap}: {:?}", own(&journal), heard.names());
            team.shutdown().await.unwrap();
            drop(team);

            let journal = journal.reopen().unwrap();
            let team = runtime_of(&journal, folder.path(), &recording);
            let mut notices = team.watch();
            team.open(owner(), folder.path(), priced(Which::Latest, price, None)).await.unwrap();
            let again = rest(&mut notices).await;
            assert_eq!(again.waiting, heard.waiting);
            assert!(own(&journal) <= cap, "{} of {cap}: {:?}", own(&journal), again.names());
            let grants = grant(&team, &journal, &mut notices).await;
            let plan = team.plan(heard.plan()).unwrap();
            assert_eq!((plan.ended(), plan.tally().done), (Some(PlanEnd::Done), tasks));
            assert!(own(&journal) <= cap * (grants + 1), "{} of {cap}", own(&journal));
        });
    }
}

/// A larger cap is heard of at once; one that is too small for a single call says so and loses nothing.
#[test]
fn a_larger_cap_lets_a_running_session_go_on() {
    let price = Price { input: 1_000, output: 1_000, cache_read: 1_000, cache_write: 1_000 };
    block_on(async {
        let folder = super::project();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), &crowd(12, 0, 10, 900, ""));
        let tiny = priced(Which::New, price, Some(1));
        let mut notices = team.watch();
        let session = team.open(owner(), folder.path(), tiny.clone()).await.unwrap().session;
        rest(&mut notices).await;
        order(&team, Command::Say { session, text: "go".into() }).await.unwrap();
        let heard = rest(&mut notices).await;
        assert_eq!((&heard.last_words().end, heard.waiting), (&TurnOutcome::Budget, false));

        let configure = |cap| {
            let settings = max_team_core::agent::Settings { budget_nano: Some(cap), ..tiny.settings.clone() };
            order(&team, Command::Configure { session, settings })
        };
        configure(12_000_000).await.unwrap();
        order(&team, Command::Say { session, text: "go on".into() }).await.unwrap();
        let heard = rest(&mut notices).await;
        assert!(heard.waiting && asked_about(&journal) == [PlanQuestion::Budget], "{:?}", heard.names());
        configure(500_000_000).await.unwrap();
        let more = rest(&mut notices).await;
        assert!(!more.waiting, "{:?}", more.names());
        assert_eq!(team.plan(heard.plan()).unwrap().ended(), Some(PlanEnd::Done));
    });
}

/// What is set aside for calls that turn out cheap is not a reason to ask for more money.
#[test]
fn money_that_comes_back_is_spent_before_anybody_is_asked() {
    let price = Price { input: 1_000, output: 1_000, cache_read: 1_000, cache_write: 1_000 };
    block_on(async {
        let folder = super::project();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), &crowd(6, 1, 10, 10, ""));
        // Enough for two calls at once at their most expensive, and for all of them as they are.
        let (heard, _) = begin(&team, folder.path(), priced(Which::New, price, Some(6_000_000))).await;
        assert!(!heard.waiting, "{:?}", heard.names());
        assert_eq!(team.plan(heard.plan()).unwrap().ended(), Some(PlanEnd::Done));
        assert!(!heard.names().contains(&"question_asked"));
    });
}

/// Everything that was told until something of that name was.
pub(crate) async fn until(notices: &mut mpsc::Receiver<Notice>, name: &str, count: usize) -> Heard {
    let (mut events, mut seen) = (Vec::new(), 0);
    while seen < count {
        let notice = tokio::time::timeout(Duration::from_secs(20), notices.recv()).await;
        match notice.unwrap_or_else(|_| panic!("no {name} after {events:#?}")).unwrap() {
            Notice::Event { from, event, .. } => {
                seen += usize::from(event.name() == name);
                events.push((from.name.to_string(), (*event).clone()));
            }
            Notice::Stopped { error, .. } => panic!("{error}"),
            Notice::Idle { .. } | Notice::Delta { .. } | Notice::Copies { .. } | Notice::Redefined { .. } => {}
        }
    }
    Heard { events, waiting: false }
}

/// How members' turns ended.
fn ends(journal: &Journal) -> Vec<TurnOutcome> {
    let all = events(journal).into_iter().filter_map(|(_, event)| match event {
        Event::TurnEnded(ended) => Some(ended.end),
        _ => None,
    });
    all.collect()
}

pub(crate) fn plan_of(tasks: &str) -> Box<Draft> {
    Box::new(serde_json::from_str(&format!("{{\"goal\": \"g\", \"tasks\": {tasks}}}")).unwrap())
}

/// A session with a plan that is approved.
pub(crate) async fn run_plan(team: &TeamHandle, root: &Path, tasks: &str) -> (SessionId, mpsc::Receiver<Notice>) {
    let mut notices = team.watch();
    let session = team.open(owner(), root, with_team(Which::New, ApprovalMode::Plan)).await.unwrap().session;
    rest(&mut notices).await;
    let propose = Command::Propose { session, draft: plan_of(tasks), source: "a test".into() };
    order(team, propose).await.unwrap();
    let (question, _) = rest(&mut notices).await.asked();
    order(team, Command::Decide { question, say: PlanDecision::Approve }).await.unwrap();
    (session, notices)
}

pub(crate) fn only_plan(journal: &Journal) -> PlanId {
    plans(journal).into_iter().next().unwrap()
}

/// What a task is doing when it is stopped, and the event that says so.
const MOMENTS: [(&str, &str, &str); 4] = [
    ("working", "task_started", "{text: One moment, delta_ms: 3600000}"),
    ("waiting to be tried again", "task_failed", "{text: done}"),
    ("asking", "question_asked", "{parts: [{tool: need_clarify, input: {question: Which?}}]}"),
    ("being checked", "task_reported", "{text: done}"),
];

/// A stop reaches whoever is at work, whatever they are doing, and nothing is left busy.
#[test]
fn a_stop_reaches_whatever_runs() {
    for (moment, event, says) in MOMENTS {
        for whole in [true, false] {
            let asks = event == "question_asked";
            let ask_user = "  - parts: [{tool: ask_user, input: {question: Which?}}]\n";
            let lead = if asks { ask_user } else { "" };
            let recording =
                format!("answers:\n{lead}  - text: Report.\nmembers:\n  leo/a: [{says}]\n  ada/b: [{{text: b}}]\n");
            let verify = match event {
                "task_failed" => "false",
                "task_reported" => "sleep 100",
                _ => "true",
            };
            let tasks = format!(
                r#"[{{"id": "a", "agent": "leo", "description": "A", "verify": ["{verify}"]}}, {{"id": "b", "agent": "ada", "description": "B"}}]"#
            );
            // Dropping the runtime waits for whatever a check runs: a stop must end it.
            block_on(async {
                let folder = super::project();
                let journal = Journal::memory();
                let team = runtime_of(&journal, folder.path(), &recording);
                let (_, mut notices) = run_plan(&team, folder.path(), &tasks).await;
                until(&mut notices, event, 1).await;
                if asks {
                    assert!(rest(&mut notices).await.waiting);
                }
                let plan = only_plan(&journal);
                let task = (!whole).then(|| "a".to_owned());
                order(&team, Command::Stop { plan, task }).await.unwrap();
                let heard = rest(&mut notices).await;
                let plan = team.plan(plan).unwrap();
                assert_eq!(plan.task(0).unwrap().status, TaskStatus::Cancelled, "{moment}");
                let end = if whole { PlanEnd::Stopped } else { PlanEnd::Partial };
                assert_eq!(plan.ended(), Some(end), "{moment}: {:?}", heard.names());
                // Only the lead may still wait for a person: it asked on its own account.
                assert_eq!(heard.waiting, asks, "{moment}: {:?}", heard.names());
                if !asks {
                    check_rest(&journal);
                }
                let stopped = ends(&journal).into_iter().filter(|end| *end == TurnOutcome::Interrupted).count();
                assert_eq!(stopped, usize::from(event == "task_started" || asks), "{moment}");
            });
        }
    }
}

/// Time that runs out ends the work at once; nobody tries again before the lead has said so.
#[test]
fn a_task_out_of_time_is_stopped_and_the_lead_decides() {
    let recording = r#"
answers:
  - parts: [{tool: task_update, input: {task_id: a, decision: retry, note: faster}}]
  - text: Report.
members:
  leo/a: [{text: One moment, delta_ms: 3600000}, {text: Done now.}]
"#;
    block_on(async {
        let folder = super::project();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), recording);
        let tasks = r#"[{"id": "a", "agent": "leo", "description": "A", "timeout_ms": 700, "retry": 5}]"#;
        let (_, mut notices) = run_plan(&team, folder.path(), tasks).await;
        let heard = rest(&mut notices).await;
        let failed = heard.events.iter().find_map(|(_, event)| match event {
            Event::TaskFailed(failed) => Some(failed.clone()),
            _ => None,
        });
        let failed = failed.unwrap();
        assert_eq!((failed.cause, failed.retry_at_ms), (Cause::Timeout, None));
        let cancelled = heard.events.iter().any(|(who, event)| {
            who == "leo"
                && matches!(event, Event::LlmEnded(ended) if matches!(ended.outcome, LlmOutcome::Cancelled { .. }))
        });
        assert!(cancelled, "the call itself is cancelled: {:?}", heard.names());
        assert_eq!(ends(&journal).iter().filter(|end| **end == TurnOutcome::Interrupted).count(), 1);
        let plan = team.plan(only_plan(&journal)).unwrap();
        assert_eq!((plan.ended(), plan.task(0).unwrap().attempt), (Some(PlanEnd::Done), 2));
        assert_eq!(heard.last_words().text, "Report.");
        check_rest(&journal);
    });
}

/// Where the lead says nothing about a failure, the user does.
#[test]
fn a_failure_that_the_lead_is_silent_about_is_the_users() {
    let retry = Ruling::Retry { agent: Some("ray".into()), model: None, note: String::new() };
    // What the user says, whether they mend the file first, and what comes of it.
    let table = [
        (Ruling::Skip, false, PlanEnd::Done, TaskStatus::Skipped),
        (retry, false, PlanEnd::Done, TaskStatus::Done),
        (Ruling::Fixed, true, PlanEnd::Done, TaskStatus::Done),
        (Ruling::GiveUp, false, PlanEnd::Partial, TaskStatus::Failed),
    ];
    for (ruling, mends, end, status) in table {
        let recording = r#"
answers: [{text: I do not know.}, {text: Still not.}, {text: Report.}]
members:
  leo/a: [{text: I have done it.}]
  ray/a: [{parts: [{tool: write_file, input: {path: a.txt, content: mended}}]}, {text: Now it is.}]
  ada/b: [{text: b}]
"#;
        block_on(async {
            let folder = super::project();
            let journal = Journal::memory();
            let team = runtime_of(&journal, folder.path(), recording);
            let tasks = r#"[{"id": "a", "agent": "leo", "description": "A", "retry": 0, "verify": ["grep -q mended a.txt"]},
                {"id": "b", "agent": "ada", "description": "B"}]"#;
            let (_, mut notices) = run_plan(&team, folder.path(), tasks).await;
            let heard = rest(&mut notices).await;
            let question = UserMail::new(&journal).inbox().unwrap().pop().unwrap();
            let Matter::Plan(PlanQuestion::Failure { task, error, .. }) = &question.row.matter else {
                panic!("{question:?}")
            };
            assert!(heard.waiting && task == "a" && error.contains("grep"), "{error}");
            let decide = |question, ruling| order(&team, Command::Decide { question, say: PlanDecision::Rule(ruling) });
            if mends {
                // Said to be mended, and not: the one who said so hears of it again.
                decide(question.row.question, ruling.clone()).await.unwrap();
                assert!(rest(&mut notices).await.waiting);
                std::fs::write(folder.path().join("a.txt"), "mended").unwrap();
            }
            let question = UserMail::new(&journal).inbox().unwrap().pop().unwrap().row.question;
            decide(question, ruling.clone()).await.unwrap();
            let heard = rest(&mut notices).await;
            let plan = team.plan(only_plan(&journal)).unwrap();
            assert_eq!((plan.ended(), plan.task(0).unwrap().status), (Some(end), status), "{ruling:?}");
            assert!(!heard.waiting && UserMail::new(&journal).inbox().unwrap().is_empty(), "{ruling:?}");
            check_rest(&journal);
        });
    }
}

/// Tasks that own the same paths take turns, however many places there are.
#[test]
fn no_task_works_in_the_paths_of_another() {
    let edit =
        |path: &str| format!("{{parts: [{{tool: write_file, input: {{path: {path}, content: x}}}}]}}, {{text: done}}");
    let recording = format!(
        "answers: [{{text: Report.}}]\nmembers:\n  leo/a: [{}]\n  leo/b: [{}]\n  leo/c: [{}]\n  ray/d: [{}]\n",
        edit("src/one.txt"),
        edit("src/two.txt"),
        edit("docs/c.txt"),
        edit("src/deep/d.txt")
    );
    let tasks = r#"[{"id": "a", "agent": "leo", "description": "A", "owns": ["src/**"]},
        {"id": "b", "agent": "leo", "description": "B", "owns": ["src/two.txt"]},
        {"id": "c", "agent": "leo", "description": "C", "owns": ["docs/**"]},
        {"id": "d", "agent": "ray", "description": "D", "owns": ["src/deep/*"]}]"#;
    block_on(async {
        let folder = super::project();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), &recording);
        let (_, mut notices) = run_plan(&team, folder.path(), tasks).await;
        assert!(!rest(&mut notices).await.waiting, "what a task owns needs no question");
        let (mut at_work, mut most) = (std::collections::BTreeSet::new(), 0);
        for (_, event) in events(&journal) {
            match event {
                Event::TaskAssigned(assigned) => drop(at_work.insert(assigned.task)),
                Event::TaskDone(done) => drop(at_work.remove(&done.task)),
                _ => {}
            }
            let both = |one: &str, other: &str| at_work.contains(one) && at_work.contains(other);
            assert!(!both("a", "b") && !both("a", "d"), "{at_work:?}");
            most = most.max(at_work.len());
        }
        assert!(most > 1, "the others do work side by side");
        assert_eq!(team.plan(only_plan(&journal)).unwrap().tally().done, 4);
    });
}

/// What a task does not own is asked about; where nobody can be asked it is refused.
#[test]
fn a_write_outside_what_a_task_owns() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A, owns: ["src/**"]}]}}]
  - text: Report.
members:
  leo/a: [{parts: [{tool: write_file, input: {path: a.txt, content: x}}]}, {text: Tried.}]
"#;
    for approve in [ApprovalMode::Plan, ApprovalMode::Never] {
        block_on(async {
            let folder = super::project();
            let journal = Journal::memory();
            let team = runtime_of(&journal, folder.path(), recording);
            let (session, mut notices) = super::team::ask(&team, folder.path(), approve).await;
            let mut heard = rest(&mut notices).await;
            if approve == ApprovalMode::Plan {
                order(&team, Command::Decide { question: heard.asked().0, say: PlanDecision::Approve }).await.unwrap();
                assert!(rest(&mut notices).await.waiting);
                let pending = UserMail::new(&journal).inbox().unwrap().pop().unwrap();
                assert_eq!(pending.words(), "write_file: a.txt");
                let answer = super::yes();
                order(&team, Command::Answer { session, question: pending.row.question, answer }).await.unwrap();
                heard = rest(&mut notices).await;
            }
            assert!(!heard.waiting, "{:?}", heard.names());
            let written = std::fs::read_to_string(folder.path().join("a.txt")).unwrap();
            assert_eq!(written, if approve == ApprovalMode::Plan { "x" } else { "one\n" });
            check_rest(&journal);
        });
    }
}

/// A second process cannot own the session, but can answer for it; the first hears of that by itself.
#[test]
fn another_process_answers_without_owning() {
    let recording = r#"
answers: [{text: Report.}]
members:
  ada/a: [{text: done}]
"#;
    let folder = super::project();
    let home = tempfile::tempdir().unwrap();
    let on_disk = || Journal::open(home.path(), Default::default()).unwrap();
    for journal in [Journal::memory(), on_disk()] {
        block_on(async {
            let team = runtime_of(&journal, folder.path(), recording);
            let mut notices = team.watch();
            let session =
                team.open(owner(), folder.path(), with_team(Which::New, ApprovalMode::Plan)).await.unwrap().session;
            rest(&mut notices).await;
            let tasks = r#"[{"id": "a", "agent": "ada", "description": "A"}]"#;
            let propose = Command::Propose { session, draft: plan_of(tasks), source: "a test".into() };
            order(&team, propose).await.unwrap();
            assert!(rest(&mut notices).await.waiting);

            let other = journal.reopen().unwrap();
            let second = runtime_of(&other, folder.path(), recording);
            let opened = second.open(owner(), folder.path(), with_team(Which::Id(session), ApprovalMode::Plan)).await;
            let owned = matches!(&opened, Err(RuntimeError::OwnedElsewhere { .. }));
            assert!(owned, "{opened:?}");
            let question = UserMail::new(&other).find(&only_plan(&other).to_string()).unwrap().row.question;
            let key = max_team_core::id::EnvelopeId::new(new_id());
            UserMail::new(&other).decide(&owner(), key, question, &PlanDecision::Approve).await.unwrap();

            let done = rest(&mut notices).await;
            assert!(!done.waiting, "{:?}", done.names());
            assert_eq!(team.plan(only_plan(&journal)).unwrap().ended(), Some(PlanEnd::Done));
            let late = UserMail::new(&other).decide(&owner(), key, question, &PlanDecision::Approve).await;
            assert!(matches!(&late, Err(RuntimeError::Answered { by, .. }) if by == "ada at test"), "{late:?}");
            team.shutdown().await.unwrap();
        });
    }
}

/// Results that are too large to be told are files to read; what is told stays within its bounds.
#[test]
fn large_results_are_left_as_files() {
    let key = max_team_core::id::EnvelopeId::new(new_id());
    let plan = PlanId::new(key.uuid());
    // One that is too large by itself, and more than fit together.
    let sizes =
        [UPSTREAM_ITEM_BYTES_MAX * 3, UPSTREAM_ITEM_BYTES_MAX, UPSTREAM_ITEM_BYTES_MAX, UPSTREAM_ITEM_BYTES_MAX];
    let path = |task: usize| {
        let fields = [plan.to_string(), format!("t{task}"), "design_doc".to_owned()];
        let key = Hash::of_fields(&fields.each_ref().map(|field| field.as_bytes())).to_string();
        format!(".max-team/artifacts/t{task}-design-doc-{}.txt", key.get(..12).unwrap())
    };
    let mut recording = "answers: [{text: Report.}]\nmembers:\n".to_owned();
    for (task, size) in sizes.iter().enumerate() {
        recording.push_str(&format!("  ada/t{task}: [{{text: {}}}]\n", "é".repeat(size / 2)));
    }
    recording.push_str(&format!(
        "  leo/join: [{{parts: [{{tool: read_file, input: {{path: {}}}}}]}}, {{text: read}}]\n",
        path(0)
    ));
    let mut tasks: Vec<String> =
        (0..sizes.len()).map(|n| format!(r#"{{"id": "t{n}", "agent": "ada", "description": "T"}}"#)).collect();
    tasks.push(r#"{"id": "join", "agent": "leo", "description": "J", "needs": ["t0", "t1", "t2", "t3"]}"#.to_owned());
    block_on(async {
        let folder = super::project();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), &recording);
        let mut notices = team.watch();
        let session =
            team.open(owner(), folder.path(), with_team(Which::New, ApprovalMode::Never)).await.unwrap().session;
        rest(&mut notices).await;
        let draft = plan_of(&format!("[{}]", tasks.join(",")));
        let command = Command::Propose { session, draft, source: "a test".into() };
        team.command(Order { by: owner(), cwd: ".".into(), key, command }).await.unwrap();
        let heard = rest(&mut notices).await;
        let plan = team.plan(plan).unwrap();
        assert_eq!(plan.ended(), Some(PlanEnd::Done), "{:?}", heard.names());
        let told = heard.events.iter().find_map(|(who, event)| match event {
            Event::TurnStarted(started) if who == "leo" => Some(format!("{:?}", started.input)),
            _ => None,
        });
        let told = told.unwrap();
        assert!(told.len() < UPSTREAM_BYTES_MAX + 8_000, "{}", told.len());
        for (task, size) in sizes.iter().enumerate() {
            let kept = std::fs::read_to_string(folder.path().join(path(task))).map(|text| text.len()).ok();
            let is_told = told.contains(&path(task));
            let is_large = task == 0 || task == 3;
            assert_eq!((kept, is_told), (is_large.then_some(*size), is_large), "{task}");
        }
        let read = heard.events.iter().find_map(|(who, event)| match event {
            Event::ToolDone(done) if who == "leo" => Some(done.clone()),
            _ => None,
        });
        assert!(!read.unwrap().is_error);
    });
}
