//! Killed at every commit: a team that dies anywhere and is started again comes to the same end.
//!
//! Each scene is played once undisturbed, then once for every commit N: the process dies when N is stored, the next one
//! opens the same session and plays on. Nothing that was finished is asked of the model or done again, nothing is
//! lost, nobody is left in the middle of something.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use max_team_core::agent::CachePolicy;
use max_team_core::chat::Part;
use max_team_core::delegation::tool_filter::{SEND_MESSAGE, TASK};
use max_team_core::event::{Event, LlmOutcome, TurnStarted};
use max_team_core::hash::Hash;
use max_team_core::id::{EnvelopeId, PlanId};
use max_team_core::message::Envelope;
use max_team_core::plan::TaskStatus;
use max_team_core::plan::event::{ApprovalMode, PlanDecision, PlanEnd, PlanQuestion, Proof, Ruling, Totals};
use max_team_core::task_list::{self, StatusChange, TaskList};
use max_team_core::turn::is_note;
use max_team_journal::{CrashPoint, Journal};
use max_team_llm::Replay;
use max_team_runtime::{Command, Matter, Order, PendingQuestion, TaskLists, TeamHandle, UserMail, Which};

use super::calls::calling;
use super::read::Reads as _;
use super::team::rest;
use super::{owner, runtime_with, yes};

/// Processes that one play may take; a team that needs more does not come forward.
const LIVES_MAX: u32 = 60;

/// A story that a team plays, and how the user answers in it.
struct Scene {
    recording: &'static str,
    approve: ApprovalMode,
    /// What is said to a plan, by what is asked and how many plans there have been.
    say: fn(&PlanQuestion, usize) -> PlanDecision,
    /// What is done about a member's question.
    then: Then,
}

/// What a user does who is asked by a member.
#[derive(Clone, Copy)]
enum Then {
    Allow,
    StopThePlan,
    InterruptTheLead,
}

/// What is left when everything is over.
#[derive(Debug, PartialEq)]
struct Outcomes {
    plans: Vec<(Option<PlanEnd>, Totals, Vec<Task>)>,
    files: BTreeMap<String, String>,
    words: Vec<String>,
    answers: BTreeSet<(String, u32)>,
    /// What each `send_message` came to.
    results: Vec<String>,
    /// What begins the turns of agents that are not the lead.
    inputs: BTreeMap<String, u32>,
    /// The tasks of the shared list; who did one is whoever was first.
    list: Vec<(String, max_team_core::task_list::ListTaskStatus)>,
}

#[derive(Debug, PartialEq)]
struct Task {
    id: String,
    status: TaskStatus,
    attempt: u32,
    result: Option<(String, Proof)>,
}

fn approve(_: &PlanQuestion, _: usize) -> PlanDecision {
    PlanDecision::Approve
}

pub(crate) fn key(words: &str) -> EnvelopeId {
    EnvelopeId::new(Hash::of(words).uuid())
}

async fn give(team: &TeamHandle, key: EnvelopeId, command: Command) {
    team.command(Order { by: owner(), cwd: ".".into(), key, command }).await.unwrap();
}

/// Plays on until nothing is left to do.
async fn play(scene: &Scene, journal: &Journal, root: &Path, replay: Replay) {
    let team = runtime_with(journal, root, replay);
    let mut notices = team.watch();
    let which = if team.sessions(1).unwrap().is_empty() { Which::New } else { Which::Latest };
    let mut open = calling(which);
    open.definition.tools.extend(task_list::TOOLS.map(str::to_owned));
    if let Some(team) = &mut open.team {
        team.approve = scene.approve;
        for teammate in &mut team.members {
            Arc::make_mut(&mut teammate.definition)
                .tools
                .extend(std::iter::once(TASK).chain(task_list::TOOLS).map(str::to_owned));
            // Whoever does the same again is not asked.
            Arc::make_mut(&mut teammate.definition).cache = Some(CachePolicy { ttl_s: 3_600, keys: Vec::new() });
        }
    }
    let opened = team.open(owner(), root, open).await.unwrap();
    let session = opened.session;
    loop {
        let heard = rest(&mut notices).await;
        if !journal.has_mail(key("say")).unwrap() {
            give(&team, key("say"), Command::Say { session, text: "do it".into() }).await;
            continue;
        }
        let inbox = UserMail::new(journal).inbox().unwrap();
        assert_eq!(heard.waiting, !inbox.is_empty(), "{inbox:?} after {:?}", heard.names());
        let Some(PendingQuestion { row, noted, plan, .. }) = inbox.into_iter().next() else { return };
        assert_eq!(noted, None, "an answer that nobody reads");
        let command = match &row.matter {
            Matter::Plan(about) => {
                let plans = plans(journal).len();
                Command::Decide { question: row.question, say: (scene.say)(about, plans) }
            }
            Matter::Tool { .. } => match scene.then {
                Then::Allow => Command::Answer { session, question: row.question, answer: yes() },
                Then::StopThePlan => Command::Stop { plan: plan.unwrap(), task: None },
                Then::InterruptTheLead => {
                    // From another terminal: the owner hears of it by itself.
                    UserMail::new(journal).stop_agent(&owner(), key("interrupt"), opened.agent).await.unwrap();
                    continue;
                }
            },
        };
        give(&team, key(&row.question.to_string()), command).await;
    }
}

/// One process: until it dies, or until everything is over. The model's calls that it made.
fn live(scene: &Scene, journal: &Journal, root: &Path, dies_with: Option<u64>) -> (bool, BTreeSet<(String, u32)>) {
    let replay = Replay::read(scene.recording).unwrap();
    let dies_with = dies_with.map(|commit| (CrashPoint::After, commit));
    let is_over = super::lives(journal, dies_with, play(scene, journal, root, replay.clone()));
    (is_over, replay.calls().into_keys().collect())
}

pub(crate) fn events(journal: &Journal) -> Vec<(String, Event)> {
    let entries = journal.read_all(0, 100_000).unwrap().into_iter();
    let events = entries.filter_map(|entry| {
        let event = serde_json::from_slice(entry.payload.as_deref()?).ok()?;
        Some((entry.stream, event))
    });
    events.collect()
}

pub(crate) fn plans(journal: &Journal) -> BTreeSet<PlanId> {
    let streams = events(journal).into_iter().map(|(stream, _)| stream);
    streams.filter_map(|stream| stream.strip_prefix("plan/")?.parse().ok()).collect()
}

/// The answers that are in the journal, by speaker and number.
fn answers(journal: &Journal) -> BTreeSet<(String, u32)> {
    let (mut speakers, mut answers): (BTreeMap<_, String>, _) = (BTreeMap::new(), BTreeSet::new());
    for (stream, event) in events(journal) {
        match event {
            Event::AgentStarted(started) => {
                let task = started.assignment.filter(|given| given.plan.is_some() || given.depth > 0);
                let name = started.definition.name.clone();
                speakers.insert(stream, task.map_or(name.clone(), |task| format!("{name}/{}", task.task)));
            }
            Event::LlmEnded(ended) if matches!(ended.outcome, LlmOutcome::Done(_)) => {
                assert!(
                    answers.insert((speakers.get(&stream).cloned().unwrap_or_default(), ended.call)),
                    "answered twice: {stream}"
                );
            }
            _ => {}
        }
    }
    answers
}

/// What each `send_message` came to, without the ids that differ from run to run.
fn results(journal: &Journal) -> Vec<String> {
    let (mut messages, mut results) = (BTreeSet::new(), Vec::new());
    for (stream, event) in events(journal) {
        match event {
            Event::ToolIntent(intent) if intent.tool == SEND_MESSAGE => drop(messages.insert((stream, intent.key))),
            Event::ToolDone(done) if messages.contains(&(stream, done.key.clone())) => {
                let said = done.content.iter().filter_map(|part| match part {
                    Part::Text { text } => text.lines().next(),
                    _ => None,
                });
                results.extend(said.map(str::to_owned));
            }
            _ => {}
        }
    }
    results
}

/// What began the turns of members, and how often.
fn inputs(journal: &Journal) -> BTreeMap<String, u32> {
    let mut inputs = BTreeMap::new();
    for (_, event) in events(journal) {
        if let Event::TurnStarted(TurnStarted { input, assignment: Some(_), .. }) = event {
            let text: String =
                input.iter().map(|part| if let Part::Text { text } = part { text } else { "" }).collect();
            *inputs.entry(text).or_default() += 1;
        }
    }
    inputs
}

fn outcomes(journal: &Journal, root: &Path) -> Outcomes {
    let plans = plans(journal).into_iter().map(|plan| {
        let team = runtime_with(journal, root, Replay::default());
        let plan = team.plan(plan).unwrap();
        let tasks = plan.tasks().map(|view| Task {
            id: view.task.id.clone(),
            status: view.status,
            attempt: view.attempt,
            result: view.result.map(|result| (result.output.clone(), result.proof)),
        });
        let tally = Totals { spent: Default::default(), ..plan.tally() };
        (plan.ended(), tally, tasks.collect())
    });
    let words = events(journal).into_iter().filter_map(|(_, event)| match event {
        Event::Replied(replied) => Some(replied.text),
        _ => None,
    });
    let list = lists(journal)
        .into_values()
        .flat_map(|tasks| tasks.items().map(|item| (item.text.subject.clone(), item.state.status)).collect::<Vec<_>>());
    Outcomes {
        plans: plans.collect(),
        files: files(root),
        words: words.collect(),
        answers: answers(journal),
        results: results(journal),
        inputs: inputs(journal),
        list: list.collect(),
    }
}

fn files(root: &Path) -> BTreeMap<String, String> {
    let found = std::fs::read_dir(root).unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file());
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    found.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), read(&path))).collect()
}

/// The shared lists, folded; nobody ever claims what somebody holds.
pub(crate) fn lists(journal: &Journal) -> BTreeMap<String, TaskList> {
    let mut lists: BTreeMap<String, TaskList> = BTreeMap::new();
    for (stream, event) in events(journal).into_iter().filter(|(stream, _)| stream.starts_with("tasks/")) {
        let tasks = lists.entry(stream).or_default();
        if let Event::ItemMoved(moved) = &event
            && moved.what == StatusChange::Claimed
        {
            let was = &tasks.find(&moved.id.to_string()).unwrap().state;
            assert_eq!((&was.holder, was.epoch + 1), (&None, moved.state.epoch), "claimed twice: {moved:?}");
        }
        tasks.apply(&event);
    }
    lists
}

/// What holds at rest, whatever happened before.
pub(crate) fn check_rest(journal: &Journal) {
    assert!(journal.verify().unwrap().faults.is_empty());
    for (stream, tasks) in lists(journal) {
        let session = stream.strip_prefix("tasks/").unwrap().parse().unwrap();
        assert_eq!(TaskLists::new(journal).tasks(session).unwrap(), tasks, "the rows are the list");
        assert!(tasks.items().all(|item| item.state.holder.is_none()), "held by somebody who is done: {tasks:?}");
    }
    let mut open: BTreeMap<String, i32> = BTreeMap::new();
    let mut done = BTreeSet::new();
    for (stream, event) in events(journal) {
        match event {
            Event::TurnStarted(_) | Event::ReviewBegun(_) => *open.entry(stream).or_default() += 1,
            Event::TurnEnded(_) => *open.entry(stream).or_default() -= 1,
            Event::ToolDone(tool) => assert!(done.insert((stream, tool.key)), "a call has two results"),
            _ => {}
        }
    }
    assert!(open.values().all(|open| *open == 0), "somebody is in the middle of something: {open:?}");
    // That somebody, or a plan, was stopped by a person waits for the next message.
    let is_told_later = |envelope: &Envelope| is_note(envelope, true);
    for stream in open.keys() {
        let unread = journal.pending_mail(stream).unwrap();
        assert!(unread.iter().all(is_told_later), "unread mail at {stream}: {unread:?}");
    }
}

/// Plays a scene with processes that die after so many commits each; the last one given dies no more.
fn run(scene: &Scene, lives: impl Fn(u32) -> Option<u64>) -> (Outcomes, u32) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.txt", "b.txt"] {
        std::fs::write(folder.path().join(name), "one\n").unwrap();
    }
    // A copy is made of a repository.
    if scene.recording.contains("isolation: worktree") {
        super::team::commit_all(folder.path());
    }
    let mut journal = Journal::memory();
    for life in 0..LIVES_MAX {
        let finished = answers(&journal);
        let (is_over, calls) = live(scene, &journal, folder.path(), lives(life));
        let again: Vec<_> = finished.intersection(&calls).collect();
        assert!(again.is_empty(), "asked again in life {life}: {again:?}");
        if is_over {
            check_rest(&journal);
            return (outcomes(&journal, folder.path()), life);
        }
        journal = journal.reopen().unwrap();
    }
    panic!(
        "it does not come to an end: {:#?}",
        events(&journal).iter().map(|(s, e)| (s, e.name())).collect::<Vec<_>>()
    );
}

/// Kills at every commit, then again and again.
fn sweep(scene: &Scene) -> Outcomes {
    let (undisturbed, _) = run(scene, |_| None);
    let (next, end) = (AtomicU64::new(1), AtomicU64::new(u64::MAX));
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                loop {
                    let commit = next.fetch_add(1, Ordering::Relaxed);
                    if commit > end.load(Ordering::Relaxed) {
                        return;
                    }
                    let (outcomes, lives) = run(scene, |life| (life == 0).then_some(commit));
                    assert_eq!(outcomes, undisturbed, "killed at commit {commit}");
                    if lives == 0 {
                        end.fetch_min(commit, Ordering::Relaxed);
                    }
                }
            });
        }
        threads.spawn(|| {
            for commits in [9, 12, 15] {
                let (outcomes, _) = run(scene, |_| Some(commits));
                assert_eq!(outcomes, undisturbed, "killed after every {commits} commits");
            }
        });
    });
    assert!(end.into_inner() > 10, "a scene that short proves nothing");
    undisturbed
}

#[test]
fn three_tasks_side_by_side_and_a_join() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: a, agent: leo, description: A, owns: [a.txt], verify: ["grep -q one.a a.txt"]},
      {id: b, agent: leo, description: B, owns: [b.txt], outputs: [b.txt]},
      {id: c, agent: ray, description: C, owns: [c.txt], outputs: [c.txt]},
      {id: join, agent: ada, description: J, depends_on: [a, b, c]}]}}]
  - text: All ran.
members:
  leo/a: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}]}, {text: a is done}]
  leo/b: [{parts: [{tool: edit_file, input: {path: b.txt, old: one, new: one+b}}]}, {text: b is done}]
  ray/c: [{parts: [{tool: write_file, input: {path: c.txt, content: c}}]}, {text: c is done}]
  ada/join: [{parts: [{tool: read_file, input: {path: a.txt}}, {tool: read_file, input: {path: c.txt}}]}, {text: joined}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.plans[0].0, Some(PlanEnd::Done));
    assert_eq!((outcomes.plans[0].1.done, outcomes.plans[0].1.verified), (4, 1));
    assert_eq!((outcomes.files["a.txt"].as_str(), outcomes.files["b.txt"].as_str()), ("one+a\n", "one+b\n"));
    assert_eq!(outcomes.words.last().unwrap(), "All ran.");
}

#[test]
fn a_wave_that_is_assigned_in_several_commits() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: a, agent: ada, description: A}, {id: b, agent: ada, description: B}, {id: c, agent: ada, description: C},
      {id: d, agent: ada, description: D}, {id: e, agent: ada, description: E}, {id: f, agent: ada, description: F},
      {id: join, agent: ada, description: J, depends_on: [a, b, c, d, e, f]}]}}]
  - text: All ran.
members:
  ada/a: [{text: a is done}]
  ada/b: [{text: b is done}]
  ada/c: [{text: c is done}]
  ada/d: [{text: d is done}]
  ada/e: [{text: e is done}]
  ada/f: [{text: f is done}]
  ada/join: [{text: joined}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!((outcomes.plans[0].0, outcomes.plans[0].1.done), (Some(PlanEnd::Done), 7));
}

#[test]
fn the_same_step_twice_is_asked_once() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, max_parallel: 1, tasks: [
      {id: a, agent: ada, description: Look at it.}, {id: b, agent: ada, description: Look at it.},
      {id: c, agent: leo, description: C, depends_on: [a], outputs: [c.txt]},
      {id: join, agent: ada, description: J, depends_on: [a, b, c]}]}}]
  - text: All of it.
members:
  ada/a: [{parts: [{tool: read_file, input: {path: a.txt}}]}, {text: it says one}]
  leo/c: [{parts: [{tool: write_file, input: {path: c.txt, content: c}}]}, {text: c is done}]
  ada/join: [{text: joined}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    let (end, tally, tasks) = &outcomes.plans[0];
    assert_eq!((*end, tally.ran, tally.cached, tally.done), (Some(PlanEnd::Done), 3, 1, 4));
    assert_eq!(tasks[1].result, tasks[0].result);
    assert!(!outcomes.answers.iter().any(|(who, _)| who == "ada/b"), "{:?}", outcomes.answers);
}

#[test]
fn a_second_attempt_after_a_failed_check() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A, verify: ["grep -q one.a a.txt"]}]}}]
  - text: It took two.
members:
  leo/a: [{text: I have done it.}, {parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}]}, {text: Now I have.}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.plans[0].2[0].attempt, 2);
    assert_eq!(outcomes.files["a.txt"], "one+a\n");
}

#[test]
fn a_task_in_a_copy_that_fails_its_check_once() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A, isolation: worktree, verify: ["grep -q one.a a.txt"]}]}}]
  - text: It took two.
members:
  leo/a: [{parts: [{tool: write_file, input: {path: c.txt, content: c}}]}, {text: I have done it.}, {parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}]}, {text: Now I have.}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.plans[0].2[0].attempt, 2);
    assert_eq!((outcomes.files["a.txt"].as_str(), outcomes.files["c.txt"].as_str()), ("one+a\n", "c"));
}

#[test]
fn changes_of_a_worktree_that_are_taken() {
    let recording = r#"
answers:
  - parts: [{tool: agent, input: {type: leo, prompt: Change it., isolation: worktree}}]
  - text: It is in.
members:
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Changed.}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!((outcomes.files["a.txt"].as_str(), outcomes.words.as_slice()), ("two\n", &["It is in.".to_owned()][..]));
}

#[test]
fn a_list_that_several_work_off() {
    let recording = r#"
answers:
  - parts:
      - {tool: TaskCreate, input: {subject: one, description: The first.}}
      - {tool: TaskCreate, input: {subject: two, description: The second.}}
      - {tool: TaskCreate, input: {subject: three, description: The last., activeForm: Ending}}
      - {tool: TaskUpdate, input: {taskId: "3", addBlockedBy: ["1", "2"]}}
  - parts:
      - {tool: dispatch_task, input: {agent: leo, description: Begin with one.}}
      - {tool: dispatch_task, input: {agent: ada, description: Begin with two.}}
  - parts: [{tool: TaskUpdate, input: {taskId: "3", status: completed}}]
  - text: All three.
members:
  leo:
    - parts: [{tool: TaskUpdate, input: {taskId: "1", owner: leo, status: in_progress}}]
    - parts: [{tool: write_file, input: {path: c.txt, content: c}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "1", status: completed}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "3", status: in_progress}}]
    - text: Done what I could.
  ada:
    - parts: [{tool: TaskUpdate, input: {taskId: "2", status: in_progress}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "2", status: completed}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "3", status: in_progress}}]
    - text: Done what I could.
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    let done = |subject: &str| (subject.to_owned(), task_list::ListTaskStatus::Completed);
    assert_eq!(outcomes.list, ["one", "two", "three"].map(done));
    assert_eq!(outcomes.words, ["All three."]);
}

#[test]
fn a_question_to_the_lead() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A}]}}]
  - parts: [{tool: task_update, input: {task_id: a, answer: "Use blue."}}]
  - text: Report.
members:
  leo/a:
    - parts: [{tool: need_clarify, input: {question: "Which colour?"}}]
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+blue}}]
    - text: "Blue it is."
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Never, say: approve, then: Then::Allow });
    assert_eq!(outcomes.files["a.txt"], "one+blue\n");
    assert_eq!(outcomes.words.last().unwrap(), "Report.");
}

#[test]
fn a_failure_that_the_lead_rules_about() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: a, agent: leo, description: A, verify: ["grep -q one.a a.txt"], retry: 0},
      {id: b, agent: ada, description: B, depends_on: [a]}]}}]
  - parts: [{tool: task_update, input: {task_id: a, decision: retry, agent: ray, note: really}}]
  - text: Report.
members:
  leo/a: [{text: I have done it.}]
  ray/a: [{parts: [{tool: write_file, input: {path: a.txt, content: one+a}}]}, {text: Really.}]
  ada/b: [{text: seen}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.plans[0].2[0].attempt, 2);
    assert_eq!(outcomes.plans[0].0, Some(PlanEnd::Done));
}

#[test]
fn a_failure_that_the_user_rules_about() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: a, agent: ada, description: A, verify: ["false"], retry: 0},
      {id: b, agent: ada, description: B}]}}]
  - text: I cannot say.
  - text: Report.
members:
  ada/a: [{text: I have done it.}]
  ada/b: [{text: seen}]
"#;
    let say = |about: &PlanQuestion, _: usize| match about {
        PlanQuestion::Failure { .. } => PlanDecision::Rule(Ruling::Skip),
        _ => PlanDecision::Approve,
    };
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say, then: Then::Allow });
    assert_eq!((outcomes.plans[0].1.done, outcomes.plans[0].1.skipped), (1, 1));
}

#[test]
fn delegations_without_a_plan() {
    let recording = r#"
answers:
  - parts: [{tool: dispatch_task, input: {agent: ada, description: Look}}, {tool: dispatch_task, input: {agent: leo, description: Change}}]
  - text: Both are done.
members:
  ada: [{parts: [{tool: read_file, input: {path: b.txt}}]}, {text: It says one.}]
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}]}, {text: Changed.}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.files["a.txt"], "one+a\n");
    assert_eq!(outcomes.words, ["Both are done."]);
}

#[test]
fn changes_lead_to_another_plan() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: ada, description: A}, {id: b, agent: leo, description: B, depends_on: [a]}]}}]
  - parts: [{text: Without the design then.}, {tool: submit_plan, input: {goal: g, tasks: [{id: b, agent: leo, description: B}]}}]
  - text: Reported.
members:
  leo/b: [{parts: [{tool: edit_file, input: {path: b.txt, old: one, new: one+b}}]}, {text: done}]
"#;
    let say = |_: &PlanQuestion, plans: usize| {
        if plans == 1 { PlanDecision::Changes("no design".into()) } else { PlanDecision::Approve }
    };
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say, then: Then::Allow });
    let ends: Vec<_> = outcomes.plans.iter().map(|(end, ..)| *end).collect();
    assert_eq!(ends, [Some(PlanEnd::Replaced), Some(PlanEnd::Done)]);
}

/// Every change is asked about, also of members in a plan.
#[test]
fn members_that_ask_about_every_change() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A}]}}]
  - text: Report.
members:
  leo/a: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}, {tool: edit_file, input: {path: b.txt, old: one, new: one+b}}]}, {text: Changed.}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Each, say: approve, then: Then::Allow });
    assert_eq!(outcomes.files["a.txt"], "one+a\n");
}

#[test]
fn a_plan_that_is_stopped_while_its_member_asks() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A}, {id: b, agent: ada, description: B, depends_on: [a]}]}}]
  - text: Report.
members:
  leo/a: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}]}, {text: Changed.}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Each, say: approve, then: Then::StopThePlan });
    assert_eq!((outcomes.plans[0].0, outcomes.plans[0].1.cancelled), (Some(PlanEnd::Stopped), 2));
    assert_eq!(outcomes.files["a.txt"], "one\n");
}

#[test]
fn a_lead_that_is_interrupted_while_its_delegate_asks() {
    let recording = r#"
answers:
  - parts: [{tool: dispatch_task, input: {agent: leo, description: Change}}]
  - text: Never said.
members:
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}]}, {text: Changed.}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::InterruptTheLead });
    assert_eq!(outcomes.files["a.txt"], "one\n");
    assert_eq!(outcomes.words, [""]);
}

#[test]
fn three_experts_at_once_and_one_gone_on_with() {
    let recording = r#"
answers:
  - parts:
      - {tool: task, input: {agent: weather, arguments: {city: Berlin}}}
      - {tool: agent, input: {description: look, prompt: Look at a., type: explore}}
      - {tool: agent, input: {description: read, prompt: Read b., type: ada}}
  - parts: [{tool: send_message, input: {to: explore, message: And b?}}]
  - text: All of them answered.
members:
  weather: [{text: "---RESULT---\n{\"temp\": 5}\n---TEXT---\nFive degrees."}]
  explore: [{parts: [{tool: read_file, input: {path: a.txt}}, {tool: run_shell, input: {command: "cat b.txt"}}]}, {text: One.}, {text: The same.}]
  ada: [{parts: [{tool: read_file, input: {path: b.txt}}]}, {text: One too.}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.words, ["All of them answered."]);
    assert_eq!(outcomes.answers.len(), 9, "{:?}", outcomes.answers);
}

/// The lead writes to a member whose task is over. Its answer is the result of that call, and it is told once.
#[test]
fn a_member_of_a_plan_that_is_gone_on_with() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: ada, description: A}]}}]
  - parts: [{tool: send_message, input: {to: ada, message: And b?}}]
  - text: Both are known.
members:
  ada: [{text: a says one}, {parts: [{tool: read_file, input: {path: b.txt}}]}, {text: b says one}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.results, ["b says one"]);
    assert_eq!(outcomes.inputs["And b?"], 1, "{:?}", outcomes.inputs);
}

/// What it changes then is no longer part of the plan: the user is asked, and the process can end there.
#[test]
fn a_member_that_is_gone_on_with_and_asks() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A, owns: [a.txt]}]}}]
  - parts: [{tool: send_message, input: {to: leo, message: And b?}}]
  - text: Both are changed.
members:
  leo:
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}]
    - text: a is changed
    - parts: [{tool: edit_file, input: {path: b.txt, old: one, new: one+b}}]
    - text: b is changed
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.results, ["b is changed"]);
    assert_eq!((outcomes.files["b.txt"].as_str(), outcomes.inputs["And b?"]), ("one+b\n", 1));
}

#[test]
fn a_delegate_that_is_gone_on_with_twice() {
    let recording = r#"
answers:
  - parts: [{tool: dispatch_task, input: {agent: ada, description: Look}}]
  - parts: [{tool: send_message, input: {to: ada, message: And b?}}, {tool: send_message, input: {to: ada, message: And a again?}}]
  - text: All of it is known.
members:
  ada: [{text: a says one}, {parts: [{tool: read_file, input: {path: b.txt}}]}, {text: b says one}, {text: still one}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.results, ["b says one", "still one"]);
}

#[test]
fn a_call_that_asks_while_its_caller_is_interrupted() {
    let recording = r#"
answers:
  - parts: [{tool: agent, input: {description: change, prompt: Change it., type: leo}}]
  - text: Never said.
members:
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}]}, {text: Changed.}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::InterruptTheLead });
    assert_eq!(outcomes.files["a.txt"], "one\n");
    assert_eq!(outcomes.words, [""]);
}

#[test]
fn the_same_call_twice_at_once_and_once_more() {
    let recording = r#"
answers:
  - parts:
      - {tool: task, input: {agent: tides, arguments: {port: Hamburg}}}
      - {tool: task, input: {agent: tides, arguments: {port: Hamburg}}}
      - {tool: task, input: {agent: tides, arguments: {port: Bremen}}}
  - parts: [{tool: task, input: {agent: tides, arguments: {port: Hamburg}}}]
  - text: All of them answered.
members:
  tides: [{parts: [{tool: read_file, input: {path: a.txt}}]}, {text: "---RESULT---\n{\"m\": 3}\n---TEXT---\nThree metres."}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.words, ["All of them answered."]);
    assert_eq!(outcomes.answers.len(), 7, "three of the lead's, two of each port's: {:?}", outcomes.answers);
}

#[test]
fn the_same_call_of_two_callers_at_once() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: a, agent: leo, description: A}, {id: b, agent: leo, description: B}]}}]
  - text: Both know.
members:
  leo: [{parts: [{tool: task, input: {agent: tides, arguments: {port: Hamburg}}}]}, {text: I know.}]
  tides: [{parts: [{tool: read_file, input: {path: a.txt}}]}, {text: Three metres.}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.plans[0].0, Some(PlanEnd::Done));
    assert_eq!(outcomes.words.last().unwrap(), "Both know.");
    assert_eq!(outcomes.answers.len(), 8, "two of each, and of the one expert: {:?}", outcomes.answers);
}

#[test]
fn a_lead_whose_window_is_too_full_in_the_middle_of_its_turn() {
    let recording = r#"
answers:
  - parts: [{tool: dispatch_task, input: {agent: leo, description: Change}}]
  - parts: [{tool: dispatch_task, input: {agent: ada, description: Look}}]
  - fails: context_overflow
  - text: Leo has changed a, and ada has looked at b.
  - text: Both are done.
members:
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: one+a}}]}, {text: Changed.}]
  ada: [{parts: [{tool: read_file, input: {path: b.txt}}]}, {text: It says one.}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.files["a.txt"], "one+a\n");
    assert_eq!(outcomes.words, ["Both are done."]);
    // The summary is an answer like the others: it is asked for once.
    assert!(outcomes.answers.contains(&("max".to_owned(), 4)), "{:?}", outcomes.answers);
}

/// Somebody begins to exist for a skill; what does not have the agreed shape is sent back once, also across lives.
#[test]
fn a_skill_that_somebody_else_carries_out() {
    let recording = r#"
answers:
  - parts:
      - {tool: skill, input: {name: bug_triage, input: {report: it hangs}}}
      - {tool: skill, input: {name: bug_triage, input: {report: it is slow}}}
  - text: One bug.
members:
  skill:bug_triage/1.0:
    - parts: [{tool: read_file, input: {path: a.txt}}]
    - parts: [{tool: structured_output, input: {title: t}}]
    - parts: [{tool: structured_output, input: {title: t, severity: low, is_bug: true, cause: c, confidence: guess, evidence: [], next_step: n}}]
  skill:bug_triage/1.1:
    - parts: [{tool: structured_output, input: {title: t}}]
    - parts: [{tool: structured_output, input: {title: u}}]
"#;
    let outcomes = sweep(&Scene { recording, approve: ApprovalMode::Plan, say: approve, then: Then::Allow });
    assert_eq!(outcomes.words, ["One bug."]);
    assert_eq!(outcomes.answers.len(), 7, "{:?}", outcomes.answers);
}
