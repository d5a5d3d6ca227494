//! The list of tasks that everybody in a session shares: who holds what, what becomes of it, and what plans show in it.

use std::sync::Arc;

use max_team_core::event::Event;
use max_team_core::message::Principal;
use max_team_core::plan::event::ApprovalMode;
use max_team_core::task_list::{ListRequest, ListTaskStatus, NewTask, ReleaseReason, StatusChange, TOOLS, TaskUpdate};
use max_team_journal::Journal;
use max_team_runtime::{OpenOptions, RuntimeError, TaskLists, Which, new_id};

use super::calls::{calling, came_to, say};
use super::crashes::{check_rest, lists};
use super::team::{Heard, rest};
use super::{owner, project, runtime_of};

/// A team in which everybody has the list.
fn listing() -> OpenOptions {
    let mut open = calling(Which::New);
    let team = open.team.as_mut().unwrap();
    team.approve = ApprovalMode::Never;
    let all = team.members.iter_mut().map(|teammate| Arc::make_mut(&mut teammate.definition));
    for definition in all.chain([&mut open.definition]) {
        definition.tools.extend(TOOLS.map(str::to_owned));
    }
    open
}

fn moves(heard: &Heard) -> Vec<(String, StatusChange)> {
    let moved = |(_, event): &(String, Event)| match event {
        Event::ItemMoved(moved) => Some((format!("{} by {}", moved.id, moved.by), moved.what)),
        _ => None,
    };
    heard.events.iter().filter_map(moved).collect()
}

#[tokio::test]
async fn an_agent_that_ends_early_releases_its_task() {
    let folder = project();
    let journal = Journal::memory();
    let recording = r#"
answers:
  - parts: [{tool: TaskCreate, input: {subject: Write it, description: All of it.}}]
  - parts: [{tool: dispatch_task, input: {agent: leo, description: Take a task.}}]
  - parts: [{tool: TaskList, input: {}}]
  - parts: [{tool: TaskUpdate, input: {taskId: "1", status: in_progress}}, {tool: TaskGet, input: {taskId: "1"}}]
  - text: I hold it.
members:
  leo:
    - parts:
        - {tool: TaskUpdate, input: {taskId: "1", owner: leo, status: in_progress}}
        - {tool: TaskUpdate, input: {taskId: "1", metadata: {files: [a.txt]}}}
    - text: I could not end it.
"#;
    let team = runtime_of(&journal, folder.path(), recording);
    let (session, mut notices) = say(&team, folder.path(), listing()).await;
    let heard = rest(&mut notices).await;
    let want = [
        ("1 by leo", StatusChange::Claimed),
        ("1 by leo", StatusChange::Released(ReleaseReason::Ended)),
        ("1 by max", StatusChange::Claimed),
    ];
    assert_eq!(moves(&heard), want.map(|(who, what)| (who.to_owned(), what)));
    let [claimed, noted] = came_to(&heard, "leo");
    assert_eq!(
        claimed.0,
        "Task #1 is yours: say `completed` when it is done, `pending` to give it back.\n\nAll of it."
    );
    assert_eq!(noted.0, "Task #1 says so now.");
    let [created, _, listed, _, got] = came_to(&heard, "max");
    assert_eq!(created.0, "Task #1 added: Write it");
    assert_eq!(listed.0, "The shared list:\n#1 [pending] Write it");
    assert_eq!(got.0, "#1 [in_progress] Write it (max)\nmetadata: {\"files\":[\"a.txt\"]}\n\nAll of it.");
    // A lead comes back to what it holds; the user can take it away, from anywhere.
    let lists = TaskLists::new(&journal);
    let back = TaskUpdate { id: "1".into(), status: Some(ListTaskStatus::Pending), ..TaskUpdate::default() };
    let events = lists.write(session, &owner(), &ListRequest::Update(Box::new(back))).await.unwrap();
    assert!(
        matches!(&*events, [Event::ItemMoved(moved)] if moved.what == StatusChange::Released(ReleaseReason::Taken)),
        "{events:?}"
    );
    check_rest(&journal);
}

#[tokio::test]
async fn impossible_changes_are_told_and_change_nothing() {
    let folder = project();
    let journal = Journal::memory();
    let recording = r#"
answers:
  - parts:
      - {tool: TaskCreate, input: {subject: One, description: ""}}
      - {tool: TaskUpdate, input: {taskId: "1", owner: loe}}
      - {tool: TaskUpdate, input: {taskId: "1", owner: leo}}
      - {tool: TaskUpdate, input: {taskId: "7", status: completed}}
      - {tool: TaskUpdate, input: {taskId: "1", addBlockedBy: ["1"]}}
      - {tool: TaskUpdate, input: {taskId: "plan:a", status: completed}}
      - {tool: TaskGet, input: {taskId: "plan:a"}}
  - text: So it is.
"#;
    let team = runtime_of(&journal, folder.path(), recording);
    let (_, mut notices) = say(&team, folder.path(), listing()).await;
    let heard = rest(&mut notices).await;
    let [.., nobody, meant, unknown, circle, of_plan, no_plan] = came_to::<7>(&heard, "max");
    assert_eq!(nobody, ("no agent is called `loe`, did you mean `leo`?".to_owned(), true));
    assert_eq!(meant, ("Task #1 is pending, meant for leo.".to_owned(), false));
    assert!(unknown.1 && unknown.0.starts_with("there is no task `7`"), "{unknown:?}");
    assert!(circle.1 && circle.0.contains("`1` waits for `1`"), "{circle:?}");
    assert!(of_plan.1 && of_plan.0.starts_with("there is no task `plan:a`"), "{of_plan:?}");
    assert!(no_plan.0.starts_with("There is no task `plan:a` in the plans"), "{no_plan:?}");
    assert_eq!(moves(&heard), [("1 by max".to_owned(), StatusChange::Assigned)]);
}

/// One family of tools: names and fields of other programs mean the same, for a lead and for a member.
#[tokio::test]
async fn other_names_and_fields_of_the_tools_mean_the_same() {
    let folder = project();
    let journal = Journal::memory();
    let recording = r#"
answers:
  - parts: [{tool: task_create, input: {title: Plan it, agent: leo}}, {tool: TaskCreate, input: {subject: Build it, owner: ada, addBlockedBy: [1]}}]
  - parts: [{tool: dispatch_task, input: {agent: leo, description: Take your task.}}]
  - text: Fine.
members:
  leo:
    - parts: [{tool: taskUpdate, input: {taskId: 1, status: completed}}, {tool: task_update, input: {task_id: "2", decision: skip, title: Build all}}]
    - parts: [{tool: task_query, input: {}}, {tool: TaskGet, input: {taskId: 2}}, {tool: task_list, input: {}}]
    - text: Done.
"#;
    let team = runtime_of(&journal, folder.path(), recording);
    let (_, mut notices) = say(&team, folder.path(), listing()).await;
    let heard = rest(&mut notices).await;
    let [first, second, _] = came_to(&heard, "max");
    assert_eq!(first.0, "Task #1 added: Plan it\nTask #1 is pending, meant for leo.");
    assert_eq!(second.0, "Task #2 added: Build it\nTask #2 waits for #1.\nTask #2 is pending, meant for ada.");
    let [done, said, listed, one, again] = came_to(&heard, "leo");
    assert!(done.0.ends_with("\nTask #1 is completed."), "{done:?}");
    assert!(said.0.starts_with("task `2` is meant for `ada`"), "a member decides nothing: {said:?}");
    assert_eq!(listed.0, "#1 [completed] Plan it (leo)\n#2 [pending] Build it (ada)");
    assert!(one.0.starts_with("#2 [pending] Build it (ada)") && again.0 == listed.0, "{one:?} {again:?}");
    check_rest(&journal);
}

#[tokio::test]
async fn tasks_of_plans_are_listed_beside() {
    let folder = project();
    let journal = Journal::memory();
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: a, agent: leo, title: First, description: A}, {id: b, agent: ada, title: Second, description: B, depends_on: [a]}]}}]
  - text: Report.
members:
  leo/a:
    - parts: [{tool: TaskCreate, input: {subject: Found on the way, description: x}}]
    - parts: [{tool: TaskList, input: {}}, {tool: TaskGet, input: {taskId: "plan:b"}}]
    - text: a is done
  ada/b:
    - text: b is done
"#;
    let team = runtime_of(&journal, folder.path(), recording);
    let (session, mut notices) = say(&team, folder.path(), listing()).await;
    let heard = rest(&mut notices).await;
    let [_, listed, got] = came_to(&heard, "leo");
    assert_eq!(
        listed.0,
        "#1 [pending] Found on the way\n#plan:a [in_progress] First (leo)\n#plan:b [pending] Second (ada) [blocked by \
         #plan:a]"
    );
    assert!(got.0.contains("A plan's task, which is approved there") && got.0.ends_with("\n\nB"), "{got:?}");
    let lines = TaskLists::new(&journal).lines(session).unwrap();
    assert_eq!(lines.len(), 1, "a plan that is over is not at work");
    check_rest(&journal);
}

/// Many at once, each on a thread of its own: every task is somebody's, and only theirs.
#[test]
fn in_a_crowd_nobody_claims_what_somebody_holds() {
    const TASKS: usize = 24;
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path(), max_team_journal::Options::default()).unwrap();
    let session = max_team_core::id::SessionId::new(new_id());
    let write = |user: &str, input: &ListRequest| {
        let by = Principal { user: user.to_owned(), ..owner() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(TaskLists::new(&journal).write(session, &by, input))
    };
    for number in 1..=TASKS {
        write("ada", &ListRequest::Create(NewTask { subject: format!("task {number}"), ..NewTask::default() }))
            .unwrap();
    }
    let claims = &|user: &str| {
        let mut claimed = 0;
        loop {
            match write(user, &ListRequest::Next) {
                Ok(events) if events.is_empty() => return claimed,
                Ok(events) => claimed += events.len(),
                Err(RuntimeError::Busy(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    let claimed: usize = std::thread::scope(|threads| {
        let crowd: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|user| threads.spawn(move || claims(user))).into();
        crowd.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(claimed, TASKS);
    let tasks = lists(&journal).into_values().next().unwrap();
    assert!(
        tasks.items().all(|item| item.state.status == ListTaskStatus::InProgress && item.state.epoch == 1),
        "{tasks:?}"
    );
}

/// What somebody does to the list at another terminal is heard here at once, and only once.
#[tokio::test]
async fn changes_of_the_list_by_another_process_are_heard() {
    let (folder, home) = (project(), tempfile::tempdir().unwrap());
    let journal = Journal::open(home.path(), max_team_journal::Options::default()).unwrap();
    let recording = r#"
answers:
  - parts: [{tool: TaskCreate, input: {subject: Ours, description: All of it.}}]
  - text: Noted.
"#;
    let team = runtime_of(&journal, folder.path(), recording);
    let (session, mut notices) = say(&team, folder.path(), listing()).await;
    rest(&mut notices).await;
    let other = journal.reopen().unwrap();
    for subject in ["first", "second"] {
        let new = ListRequest::Create(NewTask { subject: subject.into(), ..NewTask::default() });
        TaskLists::new(&other).write(session, &owner(), &new).await.unwrap();
        let added = super::until(&mut notices, "item_added").await;
        let Event::ItemAdded(added) = &*added else { panic!("{added:?}") };
        assert_eq!(added.text.subject, subject);
    }
    team.shutdown().await.unwrap();
}
