//! Members that work in a copy of the project: what they see, what comes back, and what does not.

use std::path::Path;

use max_team_core::event::Event;
use max_team_core::plan::event::{About, Approve, Cause, PlanEnd, Proof, Ruling, Say};
use max_team_core::team::Isolation;
use max_team_journal::Journal;
use max_team_llm::Replay;
use max_team_runtime::{Command, House, Notice, Options, TeamHandle, Which};
use max_team_tools::copy::Copies;
use max_team_tools::{Reach, Registry};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::team::{ask, repository, rest, with_team};
use super::{house_of, order, owner, yes};

fn copies(root: &Path) -> Copies {
    Copies::within(&root.join("home"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}

async fn approved(team: &TeamHandle, notices: &mut mpsc::Receiver<Notice>) -> super::team::Heard {
    let heard = rest(notices).await;
    order(team, Command::Decide { question: heard.asked().0, say: Say::Approve }).await.unwrap();
    heard
}

const APART: &str = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: impl, agent: leo, description: Write it., isolation: worktree, outputs: [src/hello.txt], verify: ["grep -q hello src/hello.txt", "grep -q two a.txt"]},
      {id: look, agent: ada, description: Look at it., depends_on: [impl]}]}}]
  - text: Done.
members:
  leo/impl:
    - parts: [{tool: write_file, input: {path: src/hello.txt, content: "hello\n"}}, {tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - text: Written.
  ada/look:
    - parts: [{tool: read_file, input: {path: src/hello.txt}}]
    - text: It is fine.
"#;

#[tokio::test]
async fn a_task_in_a_copy_is_checked_there_and_then_merged() {
    let folder = repository();
    let root = folder.path();
    std::fs::write(root.join("dirty.txt"), "mine\n").unwrap();
    let journal = Journal::memory();
    let team = house_of(&journal, root, APART);
    let (_, mut notices) = ask(&team, root, Approve::Plan).await;
    let proposed = approved(&team, &mut notices).await;
    let mut before = None;
    let heard = loop {
        match notices.recv().await.unwrap() {
            Notice::Event { event, .. } => match &*event {
                Event::ToolDone(_) if before.is_none() => {
                    let copy = copies(root).list().pop().unwrap();
                    assert_eq!(read(copy.root().join("dirty.txt")), "mine\n", "it sees what the user sees");
                    before = Some(copy);
                }
                Event::TaskReported(_) => break rest(&mut notices).await,
                _ => {}
            },
            Notice::Stopped { error, .. } => panic!("{error}"),
            Notice::Delta { .. } | Notice::Idle { .. } => {}
        }
    };
    assert_eq!(heard.last_words().text, "Done.");
    let plan = team.plan(proposed.plan()).unwrap();
    assert_eq!(plan.ended(), Some(PlanEnd::Done));
    let result = plan.task(0).unwrap().result.unwrap().clone();
    assert_eq!(result.proof, Proof::Verified);
    let merged = result.evidence.last().unwrap();
    assert_eq!((merged.what.as_str(), merged.ok, merged.detail.as_str()), ("merge into the project", true, "2 files"));
    let diff = result.artifacts.iter().find(|artifact| artifact.name == "code_diff").unwrap();
    assert!(diff.content.contains("+hello") && !diff.content.contains("mine"), "{}", diff.content);
    assert_eq!((read(root.join("src/hello.txt")), read(root.join("a.txt"))), ("hello\n".into(), "two\n".into()));
    team.shutdown().await.unwrap();
    assert!(before.is_some(), "it worked in a copy");
    assert!(copies(root).list().is_empty(), "and that is gone");
}

const MEANWHILE: &str = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: impl, agent: leo, description: Write it., isolation: worktree, retry: 0}]}}]
  - text: I cannot say.
  - text: Reported.
members:
  leo/impl:
    - parts: [{tool: write_file, input: {path: b.txt, content: "copy\n"}}, {tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - text: Written.
"#;

#[tokio::test]
async fn what_the_user_changes_meanwhile_fails_the_task_and_stays() {
    let folder = repository();
    let root = folder.path();
    let journal = Journal::memory();
    let team = house_of(&journal, root, MEANWHILE);
    let (session, mut notices) = ask(&team, root, Approve::Each).await;
    approved(&team, &mut notices).await;
    let mut heard = rest(&mut notices).await;
    loop {
        let asked = heard.events.iter().rev().find_map(|(_, event)| match event {
            Event::QuestionAsked(asked) => Some(asked.question),
            _ => None,
        });
        let Some(question) = asked else { break };
        std::fs::write(root.join("a.txt"), "mine\n").unwrap();
        order(&team, Command::Answer { session, question, answer: yes() }).await.unwrap();
        heard = rest(&mut notices).await;
    }
    let failed = heard.events.iter().find_map(|(_, event)| match event {
        Event::TaskFailed(failed) => Some(failed),
        _ => None,
    });
    let failed = failed.unwrap_or_else(|| panic!("{:?}", heard.names()));
    assert_eq!(failed.cause, Cause::Checks);
    assert!(failed.error.contains("`a.txt`: it has changed in the project too"), "{}", failed.error);
    assert_eq!(read(root.join("a.txt")), "mine\n");
    assert!(!root.join("b.txt").exists(), "all of it or nothing");
    let copy = copies(root).list().pop().unwrap();
    assert!(failed.error.contains(&format!("max-team worktrees accept {}", copy.id())), "{}", failed.error);
    assert_eq!(copy.by(), "leo at `impl`");

    let (question, about) = heard.asked();
    assert!(matches!(about, About::Failure { .. }), "{about:?}");
    order(&team, Command::Decide { question, say: Say::Rule(Ruling::GiveUp) }).await.unwrap();
    rest(&mut notices).await;
    team.shutdown().await.unwrap();
    assert_eq!(copies(root).list().len(), 1, "what was not taken is kept");
}

const NO_REPOSITORY: &str = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: impl, agent: leo, description: Write it., isolation: worktree, retry: 0}]}}]
  - text: I cannot say.
  - text: Reported.
members:
  leo/impl: [{text: Never asked.}]
"#;

#[tokio::test]
async fn without_a_copy_nobody_works_in_the_project_instead() {
    let folder = super::project();
    for (repository, walled, words) in
        [(false, true, "is in no git repository"), (true, false, "keeps nobody in it without walls")]
    {
        if repository {
            super::team::commit_all(folder.path());
        }
        let journal = Journal::memory();
        let replay = Replay::read(NO_REPOSITORY).unwrap();
        let team = if walled {
            super::house_with(&journal, folder.path(), replay.clone())
        } else {
            open(&journal, folder.path(), replay.clone())
        };
        let (_, mut notices) = ask(&team, folder.path(), Approve::Plan).await;
        approved(&team, &mut notices).await;
        let heard = rest(&mut notices).await;
        let failed = heard.events.iter().find_map(|(_, event)| match event {
            Event::TaskFailed(failed) => Some(failed.error.clone()),
            _ => None,
        });
        assert!(failed.as_ref().is_some_and(|error| error.contains(words)), "{failed:?}");
        assert!(!replay.calls().keys().any(|(who, _)| who.contains("leo")), "{:?}", replay.calls());
        team.shutdown().await.unwrap();
    }
}

/// A house without walls.
fn open(journal: &Journal, root: &Path, replay: Replay) -> TeamHandle {
    let info = max_team_journal::WorkerInfo {
        id: max_team_core::id::WorkerId::new(uuid::Uuid::now_v7()),
        pid: std::process::id(),
        host: "here".into(),
        started_at_ms: 0,
        what: "a test".into(),
    };
    House::build(Options {
        journal: journal.clone(),
        worker: journal.worker(info).unwrap(),
        router: max_team_llm::Router::replay(replay),
        tools: Registry::builtin(),
        reach: Reach::default(),
        home: root.join("home"),
        surroundings: "Platform: test".into(),
        walled: false,
        audit: None,
        skills: Default::default(),
    })
}

const DELEGATED: &str = r#"
answers:
  - parts: [{tool: dispatch_task, input: {agent: leo, description: Change}}]
  - text: It is in a copy.
members:
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Changed.}]
"#;

#[tokio::test]
async fn what_a_member_with_a_copy_of_its_own_did_is_kept_and_told() {
    let folder = repository();
    let root = folder.path();
    let journal = Journal::memory();
    let team = house_of(&journal, root, DELEGATED);
    let mut with = with_team(Which::New, Approve::Plan);
    let leo = with.team.iter_mut().flat_map(|team| &mut team.members).find(|mate| mate.definition.name == "leo");
    leo.unwrap().definition.isolation = Isolation::Worktree;
    let mut notices = team.watch();
    let session = team.open(owner(), root, with).await.unwrap().session;
    rest(&mut notices).await;
    order(&team, Command::Say { session, text: "change it".into() }).await.unwrap();
    let mut heard = rest(&mut notices).await;
    let asked = heard.events.iter().find_map(|(_, event)| match event {
        Event::QuestionAsked(asked) => Some(asked.question),
        _ => None,
    });
    order(&team, Command::Answer { session, question: asked.unwrap(), answer: yes() }).await.unwrap();
    heard = rest(&mut notices).await;
    assert_eq!(heard.last_words().text, "It is in a copy.");
    assert_eq!(read(root.join("a.txt")), "one\n");
    let copy = copies(root).list().pop().unwrap();
    let told = heard.events.iter().any(|(_, event)| match event {
        Event::ToolDone(done) => {
            format!("{:?}", done.content).contains(&format!("max-team worktrees accept {}", copy.id()))
        }
        _ => false,
    });
    assert!(told, "{:#?}", heard.events);
    let seen = copy.review(&Default::default(), &CancellationToken::new()).unwrap();
    assert_eq!(seen.open().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["a.txt"]);
}
