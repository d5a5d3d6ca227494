//! Files of agents that change while a team is at work: what runs keeps what it has but for what has become stricter, what
//! begins is as it is written then.

use std::sync::{Arc, Mutex};

use max_team_core::agent::Constraints;
use max_team_core::event::{Configured, Event};
use max_team_core::id::SessionId;
use max_team_core::plan::event::{ApprovalMode, PlanDecision, PlanEnd, PlanQuestion};
use max_team_journal::Journal;
use max_team_runtime::{
    AgentSpec, Changes, Command, Definitions, Lead, OpenOptions, RuntimeError, TeamDefinitions, TeamHandle, Which,
};

use super::calls::{calling, came_to, say};
use super::crashes::{check_rest, events};
use super::read::Reads as _;
use super::team::{Heard, rest, teammate, with_team};
use super::{order, owner, project, runtime_of, yes};

/// Definitions that a test changes.
#[derive(Debug, Default)]
pub(crate) struct Files(Mutex<Option<Arc<TeamDefinitions>>>);

impl Definitions for Files {
    fn changes(&self) -> Changes {
        Changes { crew: self.0.lock().unwrap().clone(), notes: Vec::new() }
    }

    fn current(&self) -> Changes {
        Changes::default()
    }

    fn accepted(&self, _: &TeamDefinitions) {
        *self.0.lock().unwrap() = None;
    }
}

impl Files {
    pub(crate) fn of(open: &mut OpenOptions) -> Arc<Self> {
        let files = Arc::new(Self::default());
        open.definitions = Some(files.clone());
        files
    }

    /// Changes the definitions. A message to an unknown name makes the runtime read them, and is refused after that.
    pub(crate) async fn change(
        &self,
        team: &TeamHandle,
        session: SessionId,
        crew: TeamDefinitions,
    ) -> Result<(), RuntimeError> {
        *self.0.lock().unwrap() = Some(Arc::new(crew));
        let (to, text) = (vec!["no-such-agent".into()], "x".into());
        let refused = order(team, Command::Write { session, to, text }).await.unwrap_err();
        if self.0.lock().unwrap().take().is_some() { Err(refused) } else { Ok(()) }
    }
}

fn members() -> Vec<AgentSpec> {
    with_team(Which::New, ApprovalMode::Plan).team.unwrap().members
}

/// The question that somebody waits for.
fn asked(heard: &Heard) -> max_team_core::id::QuestionId {
    let mut asked = heard.events.iter().rev().filter_map(|(_, event)| match event {
        Event::QuestionAsked(asked) => Some(asked.question),
        _ => None,
    });
    asked.next().unwrap()
}

/// While Leo waits for a yes, a tool is taken from him, another given, and his constraints are tightened.
#[tokio::test]
async fn a_working_agent_only_loses_tools() {
    let recording = r#"
answers: [{parts: [{tool: dispatch_task, input: {agent: leo, description: Do it.}}]}, {text: One.},
          {parts: [{tool: dispatch_task, input: {agent: leo, description: Again.}}]}, {text: Two.}]
members:
  leo:
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - parts: [{tool: read_file, input: {path: a.txt}}]
    - parts: [{tool: list_dir, input: {path: .}}]
    - parts: [{tool: write_file, input: {path: b.txt, content: b}}]
    - text: done
"#;
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = with_team(Which::New, ApprovalMode::Plan);
    let files = Files::of(&mut open);
    let (session, mut notices) = say(&team, folder.path(), open).await;
    let question = asked(&rest(&mut notices).await);
    let mut leo = teammate("leo", "coder", &["list_dir", "write_file", "edit_file"]);
    let constraints = Constraints { write_patterns: Some(vec!["*.md".into()]), ..Constraints::default() };
    leo.settings = leo.settings.limited_by(&constraints);
    let crew = TeamDefinitions { lead: None, members: vec![leo], experts: Vec::new() };
    files.change(&team, session, crew).await.unwrap();
    order(&team, Command::Answer { session, question, answer: yes() }).await.unwrap();
    let heard = rest(&mut notices).await;
    let [edited, read, listed, written] = came_to(&heard, "leo");
    assert!(!edited.1, "what was allowed is done: {edited:?}");
    assert!(read.1 && read.0.contains("there is no tool `read_file`"), "{read:?}");
    assert!(
        listed.1 && listed.0.contains("there is no tool `list_dir`"),
        "what is new is for the next task: {listed:?}"
    );
    assert!(written.1 && written.0.contains("Not allowed"), "{written:?}");
    assert!(!folder.path().join("b.txt").exists());
    order(&team, Command::Say { session, text: "and?".into() }).await.unwrap();
    let [_, read, listed, _] = came_to(&rest(&mut notices).await, "leo");
    assert!(read.1 && !listed.1 && listed.0.contains("a.txt"), "the next one is as written: {read:?} {listed:?}");
    check_rest(&journal);
}

/// Whoever leaves does what it was given in a plan, and is given nothing else.
#[tokio::test]
async fn a_plan_keeps_whom_it_was_made_with() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: a, agent: leo, description: A}, {id: b, agent: ray, description: B, depends_on: [a]}]}}]
  - text: Both.
  - parts: [{tool: dispatch_task, input: {agent: ray, description: More.}}]
  - text: So be it.
members:
  leo: [{text: a is done}]
  ray: [{text: b is done}]
"#;
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = with_team(Which::New, ApprovalMode::Plan);
    let files = Files::of(&mut open);
    let (session, mut notices) = say(&team, folder.path(), open).await;
    let heard = rest(&mut notices).await;
    let (question, _) = heard.asked();
    let members: Vec<AgentSpec> = members().into_iter().filter(|teammate| teammate.definition.name != "ray").collect();
    let crew = TeamDefinitions { lead: None, members, experts: Vec::new() };
    files.change(&team, session, crew).await.unwrap();
    order(&team, Command::Decide { question, say: PlanDecision::Approve }).await.unwrap();
    rest(&mut notices).await;
    assert_eq!(team.plan(heard.plan()).unwrap().ended(), Some(PlanEnd::Done));
    order(&team, Command::Say { session, text: "and?".into() }).await.unwrap();
    let [(words, true)] = came_to(&rest(&mut notices).await, "max") else { panic!("there is no ray") };
    assert!(words.contains("there is no member `ray`"), "{words}");
    check_rest(&journal);
}

/// Whoever had left when the program began again owns nothing that it had not begun with: its tasks fail, and say why.
#[tokio::test]
async fn a_task_of_somebody_who_is_gone_fails_at_once() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: b, agent: ray, description: B, retry: 0}]}}]
  - text: Planned.
"#;
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let (session, mut notices) = say(&team, folder.path(), with_team(Which::New, ApprovalMode::Plan)).await;
    let heard = rest(&mut notices).await;
    let (question, _) = heard.asked();
    team.shutdown().await.unwrap();
    drop(team);
    let journal = journal.reopen().unwrap();
    let team = runtime_of(&journal, folder.path(), "answers: [{text: Tell the user.}, {text: Tell the user.}]");
    let mut open = with_team(Which::Id(session), ApprovalMode::Plan);
    open.team.as_mut().unwrap().members.retain(|teammate| teammate.definition.name != "ray");
    let mut notices = team.watch();
    team.open(owner(), folder.path(), open).await.unwrap();
    order(&team, Command::Decide { question, say: PlanDecision::Approve }).await.unwrap();
    rest(&mut notices).await;
    let plan = team.plan(heard.plan()).unwrap();
    let error = plan.task(0).map(|view| view.error.to_owned()).unwrap_or_default();
    assert!(error.contains("`ray` is not on the team any more"), "{error}: {:?}", plan.task(0).map(|view| view.status));
}

/// A lead is somebody else from its next turn on, which is in the journal; one that could not sit down changes nothing.
#[tokio::test]
async fn a_lead_is_redefined_between_its_turns() {
    let folder = project();
    let journal = Journal::memory();
    let team =
        runtime_of(&journal, folder.path(), "answers: [{text: One.}, {text: Two.}, {text: Three.}, {text: Four.}]");
    let mut open = calling(Which::New);
    let files = Files::of(&mut open);
    let (session, mut notices) = say(&team, folder.path(), open.clone()).await;
    rest(&mut notices).await;
    let led = |prompt: &str, tool: Option<&str>| {
        let mut definition = open.definition.clone();
        definition.prompt = prompt.to_owned();
        definition.tools.extend(tool.map(str::to_owned));
        let lead = Some(Lead { definition, constraints: Constraints::default(), model: None });
        TeamDefinitions { lead, members: Vec::new(), experts: Vec::new() }
    };
    let refused = files.change(&team, session, led("You are odd.", Some("no_such_tool"))).await;
    assert!(matches!(&refused, Err(RuntimeError::Definition { detail, .. }) if detail.contains("no_such_tool")));
    order(&team, Command::Say { session, text: "still?".into() }).await.unwrap();
    rest(&mut notices).await;
    let redefined = || {
        let all = events(&journal).into_iter().filter_map(|(_, event)| match event {
            Event::Configured(Configured { definition: Some(definition), .. }) => Some(definition.prompt.clone()),
            _ => None,
        });
        all.collect::<Vec<_>>()
    };
    assert!(redefined().is_empty());
    files.change(&team, session, led("You are Maxine.", None)).await.unwrap();
    order(&team, Command::Say { session, text: "and now?".into() }).await.unwrap();
    rest(&mut notices).await;
    assert_eq!(redefined(), ["You are Maxine."]);
    let mut other = open.definition.clone();
    (other.name, other.prompt) = ("other".into(), "You are another.".into());
    let lead = Some(Lead { definition: other, constraints: Constraints::default(), model: None });
    let crew = TeamDefinitions { lead, members: Vec::new(), experts: Vec::new() };
    files.change(&team, session, crew).await.unwrap();
    order(&team, Command::Say { session, text: "and who now?".into() }).await.unwrap();
    rest(&mut notices).await;
    assert_eq!(redefined(), ["You are Maxine."], "whoever has led before goes on");
    team.shutdown().await.unwrap();
    drop(team);

    // The next process goes on with what is written then, and writes that down only if it is something else.
    let journal = journal.reopen().unwrap();
    let team = runtime_of(&journal, folder.path(), "answers: []");
    let mut next = calling(Which::Latest);
    next.definition.prompt = "You are Maxine.".into();
    let before = events(&journal).len();
    team.open(owner(), folder.path(), next).await.unwrap();
    assert_eq!(events(&journal).len(), before);
    check_rest(&journal);
}

/// What a member's definition allots is its task's budget; whoever says yes gives as much again.
#[tokio::test]
async fn a_task_has_the_budget_of_its_owner() {
    let recording = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A}]}}]
  - text: Done.
members:
  leo: [{text: a is done}]
"#;
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = with_team(Which::New, ApprovalMode::Plan);
    for teammate in &mut open.team.as_mut().unwrap().members {
        teammate.settings.budget_tokens = Some(10);
    }
    let (_, mut notices) = say(&team, folder.path(), open).await;
    let heard = rest(&mut notices).await;
    let plan = heard.plan();
    assert_eq!(team.plan(plan).unwrap().draft().unwrap().tasks[0].budget.tokens, Some(10));
    order(&team, Command::Decide { question: heard.asked().0, say: PlanDecision::Approve }).await.unwrap();
    let heard = rest(&mut notices).await;
    assert!(heard.waiting && team.plan(plan).unwrap().ended().is_none(), "{:?}", heard.names());
    assert_eq!(heard.asked().1, PlanQuestion::Budget);
    order(&team, Command::Decide { question: heard.asked().0, say: PlanDecision::Approve }).await.unwrap();
    let again = rest(&mut notices).await;
    assert_eq!(again.asked().1, PlanQuestion::Budget, "twice next to nothing is next to nothing");
}
