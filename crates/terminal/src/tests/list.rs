//! The shared list of tasks on the screen.

use max_team_core::event::Event;
use max_team_core::task_list::{Claimant, ListRequest, ListTaskStatus, NewTask, TaskList, TaskUpdate};

use super::super::command_queue::{CommandResult, UiCommand};
use super::stage::Stage;
use super::team_stage::{TeamStage, at_work};
use max_team_workspace::i18n::Lang;

fn doer(name: &str) -> Claimant {
    Claimant { at: format!("agent/{name}"), name: name.to_owned(), steers: name == "max" }
}

/// What somebody wants happens; the last of what that was.
fn step(tasks: &mut TaskList, who: &str, input: ListRequest) -> Event {
    let events = tasks.decide(&doer(who), &input).unwrap();
    events.iter().for_each(|event| tasks.apply(event));
    events.into_iter().next_back().unwrap()
}

fn to(id: &str, status: ListTaskStatus) -> ListRequest {
    ListRequest::Update(Box::new(TaskUpdate { id: id.into(), status: Some(status), ..TaskUpdate::default() }))
}

/// Four tasks: one is done, one is being done, one could be, one waits.
fn list() -> TaskList {
    let mut tasks = TaskList::default();
    for (subject, active_form) in
        [("Read the format", ""), ("Write the parser", "Writing the parser"), ("Describe it", ""), ("Test it", "")]
    {
        let new = NewTask { subject: subject.into(), active_form: active_form.into(), ..NewTask::default() };
        step(&mut tasks, "max", ListRequest::Create(new));
    }
    let waits = TaskUpdate { id: "4".into(), blocked_by: vec!["2".into(), "3".into()], ..TaskUpdate::default() };
    step(&mut tasks, "max", ListRequest::Update(Box::new(waits)));
    step(&mut tasks, "ada", to("1", ListTaskStatus::Completed));
    step(&mut tasks, "leo", to("2", ListTaskStatus::InProgress));
    tasks
}

fn reads(stage: &Stage) -> usize {
    stage.acts.iter().filter(|act| matches!(act, UiCommand::Tasks)).count()
}

#[test]
fn a_list_at_work() {
    for (lang, name) in [(Lang::En, "list_80x24"), (Lang::Zh, "chinese_list_80x24")] {
        let mut stage = Stage::with(80, 24, false, lang);
        let mut tasks = list();
        let added = step(
            &mut tasks,
            "leo",
            ListRequest::Create(NewTask { subject: "Found\u{1b}[2J it".into(), ..NewTask::default() }),
        );
        stage.event(added.clone());
        stage.event(added);
        assert_eq!(reads(&stage), 1, "read once, however much is heard meanwhile");
        stage.chat.done(CommandResult::Tasks(Ok(tasks)));
        stage.wait(1_000);
        assert_eq!(reads(&stage), 2, "and once more for what came after");
        insta::assert_snapshot!(name, stage.glass.screen());
        stage.control('t');
        stage.control('t');
        assert!(!stage.glass.screen().contains("parser"), "{}", stage.glass.screen());
    }
}

#[test]
fn a_list_below_a_plan() {
    let mut team_stage = TeamStage::approved(80, 24, Lang::En);
    at_work(&mut team_stage);
    team_stage.stage.control('t');
    team_stage.stage.chat.done(CommandResult::Tasks(Ok(list())));
    team_stage.stage.wait(1_000);
    insta::assert_snapshot!("list_below_a_plan_80x24", team_stage.stage.glass.screen());
}

#[test]
fn a_list_that_is_done_takes_no_room() {
    let mut stage = Stage::new(80, 24);
    let mut tasks = list();
    for id in ["2", "3", "4"] {
        step(&mut tasks, "max", to(id, ListTaskStatus::Completed));
    }
    stage.chat.done(CommandResult::Tasks(Ok(tasks)));
    stage.wait(1_000);
    assert!(!stage.glass.screen().contains("▸"), "{}", stage.glass.screen());
}
