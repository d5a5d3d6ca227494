//! What bounds a team: money, tokens, time, a person's stop, paths that others work on, room in a prompt.

use std::path::Path;
use std::time::Duration;

use max_team_core::event::{End, Event, Outcome};
use max_team_core::id::{PlanId, SessionId};
use max_team_core::ledger::Price;
use max_team_core::plan::event::{About, Approve, PlanEnd, Say};
use max_team_core::plan::{Draft, Status};
use max_team_journal::Journal;
use max_team_runtime::{Command, Matter, Notice, Open, Post, TeamHandle, Which};
use proptest::prelude::*;
use tokio::sync::mpsc;

use super::crashes::{check_rest, events, plans};
use super::team::{Heard, rest, with_team};
use super::{house_of, order, owner};

/// A team that costs something, under a cap.
fn priced(which: Which, price: Price, cap_nano: Option<u64>) -> Open {
    let mut open = with_team(which, Approve::Never);
    open.settings.model.price = Some(price);
    open.settings.budget_nano = cap_nano;
    for mate in open.team.iter_mut().flat_map(|team| &mut team.members) {
        mate.settings.model.price = Some(price);
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
                let intent = &calling[&stream];
                let usage = match &ended.outcome {
                    Outcome::Done(answer) => answer.usage,
                    Outcome::Cancelled { usage, .. } => *usage,
                    other => panic!("{other:?}"),
                };
                assert!(usage.output <= u64::from(intent.max_tokens));
                nano += intent.model.price.map_or(0, |price| price.of(usage));
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

async fn begin(team: &TeamHandle, root: &Path, open: Open) -> (Heard, mpsc::Receiver<Notice>) {
    let mut notices = team.watch();
    let session = team.open(owner(), root, open).await.unwrap().session;
    rest(&mut notices).await;
    order(team, Command::Say { session, text: "go".into() }).await.unwrap();
    let heard = rest(&mut notices).await;
    (heard, notices)
}

fn asked_about(journal: &Journal) -> Vec<About> {
    let inbox = Post::new(journal).inbox().unwrap().into_iter();
    let about = inbox.filter_map(|pending| match pending.row.matter {
        Matter::Plan(about) => Some(about),
        Matter::Tool { .. } => None,
    });
    about.collect()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Runs into a cap, then goes on under none.
async fn run_into(cap: u64, price: Price, recording: &str, tasks: usize) {
    let folder = super::project();
    let journal = Journal::memory();
    let team = house_of(&journal, folder.path(), recording);
    let (heard, _) = begin(&team, folder.path(), priced(Which::New, price, Some(cap))).await;
    let (paid, _) = spent(&journal);
    assert!(paid <= cap, "{paid} of {cap}: {:?}", heard.names());
    if heard.waiting {
        assert_eq!(asked_about(&journal), [About::Budget], "{:?}", heard.names());
    }
    team.shutdown().await.unwrap();
    drop(team);

    let journal = journal.reopen().unwrap();
    let team = house_of(&journal, folder.path(), recording);
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
        let Some(pending) = Post::new(journal).inbox().unwrap().pop() else { return grants };
        assert_eq!(pending.row.matter, Matter::Plan(About::Budget));
        order(team, Command::Decide { question: pending.row.question, say: Say::Approve }).await.unwrap();
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
            let team = house_of(&journal, folder.path(), &recording);
            let (heard, _) = begin(&team, folder.path(), priced(Which::New, price, None)).await;
            // The call that submits the plan is the session's.
            let own = |journal: &Journal| spent(journal).1 - 100 - output.min(1_000);
            assert!(own(&journal) <= cap, "{} of {cap}: {:?}", own(&journal), heard.names());
            team.shutdown().await.unwrap();
            drop(team);

            let journal = journal.reopen().unwrap();
            let team = house_of(&journal, folder.path(), &recording);
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
        let team = house_of(&journal, folder.path(), &crowd(12, 0, 10, 900, ""));
        let tiny = priced(Which::New, price, Some(1));
        let mut notices = team.watch();
        let session = team.open(owner(), folder.path(), tiny.clone()).await.unwrap().session;
        rest(&mut notices).await;
        order(&team, Command::Say { session, text: "go".into() }).await.unwrap();
        let heard = rest(&mut notices).await;
        assert_eq!((&heard.last_words().end, heard.waiting), (&End::Budget, false));

        let configure = |cap| {
            let settings = max_team_core::team::Settings { budget_nano: Some(cap), ..tiny.settings.clone() };
            order(&team, Command::Configure { session, settings })
        };
        configure(12_000_000).await.unwrap();
        order(&team, Command::Say { session, text: "go on".into() }).await.unwrap();
        let heard = rest(&mut notices).await;
        assert!(heard.waiting && asked_about(&journal) == [About::Budget], "{:?}", heard.names());
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
        let team = house_of(&journal, folder.path(), &crowd(6, 1, 10, 10, ""));
        // Enough for two calls at once at their most expensive, and for all of them as they are.
        let (heard, _) = begin(&team, folder.path(), priced(Which::New, price, Some(6_000_000))).await;
        assert!(!heard.waiting, "{:?}", heard.names());
        assert_eq!(team.plan(heard.plan()).unwrap().ended(), Some(PlanEnd::Done));
        assert!(!heard.names().contains(&"question_asked"));
    });
}

/// Everything that was told until something of that name was.
async fn until(notices: &mut mpsc::Receiver<Notice>, name: &str, count: usize) -> Heard {
    let (mut events, mut seen) = (Vec::new(), 0);
    while seen < count {
        let notice = tokio::time::timeout(Duration::from_secs(20), notices.recv()).await;
        match notice.unwrap_or_else(|_| panic!("no {name} after {events:#?}")).unwrap() {
            Notice::Event { from, event, .. } => {
                seen += usize::from(event.name() == name);
                events.push((from.name.to_string(), (*event).clone()));
            }
            Notice::Stopped { error, .. } => panic!("{error}"),
            Notice::Idle { .. } | Notice::Delta { .. } => {}
        }
    }
    Heard { events, waiting: false }
}

/// How members' turns ended.
fn ends(journal: &Journal) -> Vec<End> {
    let all = events(journal).into_iter().filter_map(|(_, event)| match event {
        Event::TurnEnded(ended) => Some(ended.end),
        _ => None,
    });
    all.collect()
}

fn plan_of(tasks: &str) -> Box<Draft> {
    Box::new(serde_json::from_str(&format!("{{\"goal\": \"g\", \"tasks\": {tasks}}}")).unwrap())
}

/// A session with a plan that is approved.
async fn run_plan(team: &TeamHandle, root: &Path, tasks: &str) -> (SessionId, mpsc::Receiver<Notice>) {
    let mut notices = team.watch();
    let session = team.open(owner(), root, with_team(Which::New, Approve::Plan)).await.unwrap().session;
    rest(&mut notices).await;
    let propose = Command::Propose { session, draft: plan_of(tasks), source: "a test".into() };
    order(team, propose).await.unwrap();
    let (question, _) = rest(&mut notices).await.asked();
    order(team, Command::Decide { question, say: Say::Approve }).await.unwrap();
    (session, notices)
}

fn only_plan(journal: &Journal) -> PlanId {
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
                let team = house_of(&journal, folder.path(), &recording);
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
                assert_eq!(plan.task(0).unwrap().status, Status::Cancelled, "{moment}");
                let end = if whole { PlanEnd::Stopped } else { PlanEnd::Partial };
                assert_eq!(plan.ended(), Some(end), "{moment}: {:?}", heard.names());
                // Only the lead may still wait for a person: it asked on its own account.
                assert_eq!(heard.waiting, asks, "{moment}: {:?}", heard.names());
                if !asks {
                    check_rest(&journal);
                }
                let stopped = ends(&journal).into_iter().filter(|end| *end == End::Interrupted).count();
                assert_eq!(stopped, usize::from(event == "task_started" || asks), "{moment}");
            });
        }
    }
}
