//! Members that work in a copy of the project: what they see, what comes back, and what does not.

use std::path::Path;
use std::sync::Arc;

use max_team_core::agent::Isolation;
use max_team_core::event::{Event, QuestionAsked};
use max_team_core::id::{QuestionId, SessionId};
use max_team_core::plan::event::{ApprovalMode, Cause, PlanDecision, PlanEnd, PlanQuestion, Proof, Ruling};
use max_team_core::policy::rule::{Anchors, List, Origin, RuleScope};
use max_team_core::policy::{ActionKind, DecidedBy, MergeDecision, PermissionAnswer, Rule};
use max_team_journal::{CrashPoint, Journal};
use max_team_llm::Replay;
use max_team_runtime::query;
use max_team_runtime::rewind::{Rewind, RewindPoint};
use max_team_runtime::{Command, Matter, Notice, Options, Order, Runtime, TeamHandle, UserMail, Which, new_id};
use max_team_tools::worktree::Worktrees;
use max_team_tools::{Registry, Services};
use tokio::sync::mpsc;

use super::crashes::{events, key, plans};
use super::read::Reads as _;
use super::team::{ask, repository, rest, with_team};
use super::{order, owner, runtime_of, yes};

fn copies(root: &Path) -> Worktrees {
    Worktrees::within(&root.join("home"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}

async fn approved(team: &TeamHandle, notices: &mut mpsc::Receiver<Notice>) -> super::team::Heard {
    let heard = rest(notices).await;
    order(team, Command::Decide { question: heard.asked().0, say: PlanDecision::Approve }).await.unwrap();
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
    let team = runtime_of(&journal, root, APART);
    let (_, mut notices) = ask(&team, root, ApprovalMode::Plan).await;
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
            Notice::Delta { .. } | Notice::Copies { .. } | Notice::Redefined { .. } | Notice::Idle { .. } => {}
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

const ALONE: &str = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: impl, agent: leo, description: Write it., isolation: worktree}]}}]
  - text: Done.
members:
  leo/impl:
    - parts: [{tool: write_file, input: {path: src/hello.txt, content: "hello\n"}}, {tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - text: Written.
"#;

/// Plays on until nothing is left to do.
async fn play_on(journal: &Journal, root: &Path) {
    let team = runtime_of(journal, root, ALONE);
    let mut notices = team.watch();
    let which = if team.sessions(1).unwrap().is_empty() { Which::New } else { Which::Latest };
    let session = team.open(owner(), root, with_team(which, ApprovalMode::Plan)).await.unwrap().session;
    loop {
        rest(&mut notices).await;
        let (key, command) = if !journal.has_mail(key("say")).unwrap() {
            (key("say"), Command::Say { session, text: "add a greeting".into() })
        } else if let Some(pending) = UserMail::new(journal).inbox().unwrap().first() {
            let question = pending.row.question;
            (key(&question.to_string()), Command::Decide { question, say: PlanDecision::Approve })
        } else {
            return;
        };
        team.command(Order { by: owner(), cwd: ".".into(), key, command }).await.unwrap();
    }
}

/// Dead when everything of a copy is in the project and the list of what was to be done is gone, and before the log says that it is over:
/// whoever goes on finds it done, does it no second time, and it is one step that can be taken back.
#[test]
fn a_merge_whose_end_was_not_written_down_is_found_done() {
    let count =
        |journal: &Journal, name: &str| events(journal).iter().filter(|(_, event)| event.name() == name).count();
    let mut met = 0;
    for commit in 1_u64.. {
        let folder = repository();
        let (root, mut journal) = (folder.path(), Journal::memory());
        let survived = super::lives(&journal, Some((CrashPoint::Before, commit)), play_on(&journal, root));
        if survived || count(&journal, "task_done") > 0 {
            break;
        }
        if !root.join("src/hello.txt").exists() {
            continue;
        }
        met += 1;
        let copy = copies(root).list().pop().unwrap();
        assert!(copy.is_settled() && !root.join("home/copies").join(copy.id()).join("merge.json").exists());
        journal = journal.reopen().unwrap();
        let notes = count(&journal, "files_changed");
        assert!(super::lives(&journal, None, play_on(&journal, root)), "killed at commit {commit}");
        let team = runtime_of(&journal, root, ALONE);
        let plan = team.plan(plans(&journal).pop_first().unwrap()).unwrap();
        let merged = plan.task(0).unwrap().result.unwrap().evidence.last().unwrap().clone();
        assert_eq!((plan.ended(), merged.detail.as_str()), (Some(PlanEnd::Done), "2 files"));
        assert_eq!((read(root.join("src/hello.txt")), read(root.join("a.txt"))), ("hello\n".into(), "two\n".into()));
        assert!(copies(root).list().is_empty() && count(&journal, "files_changed") == notes, "it was done once");
        let session = team.sessions(1).unwrap().pop().unwrap().session;
        let back = Rewind::new(&journal, &root.join("home"), session).plan(RewindPoint::LastTurn, &[]).unwrap();
        let is_back = |path: &str| back.puts.iter().any(|put| put.change.path == path);
        assert!(is_back("a.txt") && is_back("src/hello.txt") && back.skipped.is_empty(), "{back:?}");
    }
    assert!(met > 0, "nobody was killed there");
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
async fn concurrent_changes_of_the_user_fail_the_task_and_stay() {
    let folder = repository();
    let root = folder.path();
    let journal = Journal::memory();
    let team = runtime_of(&journal, root, MEANWHILE);
    let mut with = with_team(Which::New, ApprovalMode::Each);
    let members = with.team.iter_mut().flat_map(|team| &mut team.members);
    members.for_each(|teammate| teammate.settings.permissions.rules.push(asking(root)));
    let mut notices = team.watch();
    let session = team.open(owner(), root, with).await.unwrap().session;
    rest(&mut notices).await;
    order(&team, Command::Say { session, text: "add a greeting".into() }).await.unwrap();
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
    assert!(matches!(about, PlanQuestion::Failure { .. }), "{about:?}");
    order(&team, Command::Decide { question, say: PlanDecision::Rule(Ruling::GiveUp) }).await.unwrap();
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
        [(false, true, "is in no git repository"), (true, false, "is not confined to its worktree")]
    {
        if repository {
            super::team::commit_all(folder.path());
        }
        let journal = Journal::memory();
        let replay = Replay::read(NO_REPOSITORY).unwrap();
        let team = if walled {
            super::runtime_with(&journal, folder.path(), replay.clone())
        } else {
            open(&journal, folder.path(), replay.clone())
        };
        let (_, mut notices) = ask(&team, folder.path(), ApprovalMode::Plan).await;
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

/// A runtime without a sandbox.
fn open(journal: &Journal, root: &Path, replay: Replay) -> TeamHandle {
    let info = max_team_journal::WorkerInfo {
        id: max_team_core::id::WorkerId::new(new_id()),
        pid: std::process::id(),
        host: "here".into(),
        started_at_ms: 0,
        what: "a test".into(),
    };
    Runtime::build(Options {
        storage: journal.clone().into(),
        process: info,
        router: max_team_llm::Router::replay(replay),
        tools: Registry::builtin(),
        sources: Arc::new(Vec::new()),
        services: Services::default(),
        home: root.join("home"),
        others: Vec::new(),
        surroundings: "Platform: test".into(),
        walled: false,
        audit: None,
        skills: Default::default(),
        remember: None,
    })
    .unwrap()
}

const DELEGATED: &str = r#"
answers:
  - parts: [{tool: dispatch_task, input: {agent: leo, description: Change}}]
  - text: It is in a copy.
members:
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Changed.}]
"#;

/// Has leo change something in a copy of his, up to the question what becomes of it.
async fn changed(team: &TeamHandle, root: &Path) -> (SessionId, mpsc::Receiver<Notice>, QuestionAsked) {
    let (session, mut notices) = told_to(team, root, Which::New).await;
    rest(&mut notices).await;
    order(team, Command::Say { session, text: "change it".into() }).await.unwrap();
    let heard = rest(&mut notices).await;
    order(team, Command::Answer { session, question: question(&heard), answer: yes() }).await.unwrap();
    let asked = asked(&rest(&mut notices).await);
    assert_eq!((asked.tool.as_str(), asked.action.kind), ("dispatch_task", ActionKind::Merge));
    assert!(asked.action.preview.contains("-one\n+two"), "{}", asked.action.preview);
    assert_eq!(read(root.join("a.txt")), "one\n", "nothing is taken before somebody says so");
    (session, notices, asked)
}

#[tokio::test]
async fn the_user_takes_drops_or_leaves_the_changes_of_a_worktree() {
    let by = || DecidedBy::Person("test".into());
    let nobody = DecidedBy::Nobody("nobody is here".into());
    for (answer, file, kept, words) in [
        (PermissionAnswer::merge_answer(MergeDecision::Taken, by()), "two\n", 0, "1 file is in the project now"),
        (PermissionAnswer::merge_answer(MergeDecision::Dropped, by()), "one\n", 0, "The user has rejected the changes"),
        (PermissionAnswer::merge_answer(MergeDecision::Left, by()), "one\n", 1, "max-team worktrees accept"),
        (PermissionAnswer::new(false, nobody), "one\n", 1, "the user could not be asked"),
    ] {
        let folder = repository();
        let root = folder.path();
        let journal = Journal::memory();
        let team = runtime_of(&journal, root, DELEGATED);
        let (session, mut notices, asked) = changed(&team, root).await;
        let inbox = UserMail::new(&journal).inbox().unwrap();
        assert_eq!(inbox.iter().map(|pending| pending.row.question).collect::<Vec<_>>(), [asked.question]);
        order(&team, Command::Answer { session, question: asked.question, answer }).await.unwrap();
        let heard = rest(&mut notices).await;
        assert_eq!(heard.last_words().text, "It is in a copy.");
        let told = results(&heard);
        assert!(told.iter().any(|told| told.contains("Changed.") && told.contains(words)), "{told:?}");
        assert_eq!((read(root.join("a.txt")).as_str(), copies(root).list().len()), (file, kept), "{words}");
        team.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn concurrent_changes_of_the_user_are_told_and_stay() {
    let folder = repository();
    let root = folder.path();
    let team = runtime_of(&Journal::memory(), root, DELEGATED);
    let (session, mut notices, asked) = changed(&team, root).await;
    std::fs::write(root.join("a.txt"), "mine\n").unwrap();
    order(&team, Command::Answer { session, question: asked.question, answer: yes() }).await.unwrap();
    let told = results(&rest(&mut notices).await);
    let words = "0 files are in the project now. Not accepted: `a.txt`: it has changed in the project too";
    assert!(told.iter().any(|told| told.contains(words)), "{told:?}");
    assert_eq!((read(root.join("a.txt")).as_str(), copies(root).list().len()), ("mine\n", 1));
    team.shutdown().await.unwrap();
}

#[tokio::test]
async fn files_beyond_a_yes_are_named_in_the_question() {
    let folder = repository();
    let root = folder.path();
    let team = runtime_of(&Journal::memory(), root, DELEGATED);
    let (session, mut notices) = told_to(&team, root, Which::New).await;
    rest(&mut notices).await;
    order(&team, Command::Say { session, text: "change it".into() }).await.unwrap();
    let heard = rest(&mut notices).await;
    std::fs::write(root.join("a.txt"), "mine\n").unwrap();
    order(&team, Command::Answer { session, question: question(&heard), answer: yes() }).await.unwrap();
    let preview = asked(&rest(&mut notices).await).action.preview;
    assert!(preview.starts_with("`a.txt` cannot be accepted: it has changed in the project too\n"), "{preview}");
    team.shutdown().await.unwrap();
}

#[tokio::test]
async fn changes_that_were_not_shown_are_not_taken() {
    let folder = repository();
    let root = folder.path();
    let team = runtime_of(&Journal::memory(), root, DELEGATED);
    let (session, mut notices, asked) = changed(&team, root).await;
    let copy = copies(root).list().pop().unwrap();
    std::fs::write(copy.root().join("a.txt"), "three\n").unwrap();
    order(&team, Command::Answer { session, question: asked.question, answer: yes() }).await.unwrap();
    let told = results(&rest(&mut notices).await);
    assert!(told.iter().any(|told| told.contains("nothing was accepted")), "{told:?}");
    assert_eq!((read(root.join("a.txt")).as_str(), copies(root).list().len()), ("one\n", 1));
    team.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_copy_that_cannot_be_looked_at_is_told_of_and_never_taken_for_none() {
    for is_asked in [false, true] {
        let folder = repository();
        let root = folder.path();
        let team = runtime_of(&Journal::memory(), root, DELEGATED);
        let (session, mut notices) = told_to(&team, root, Which::New).await;
        rest(&mut notices).await;
        order(&team, Command::Say { session, text: "change it".into() }).await.unwrap();
        let mut heard = rest(&mut notices).await;
        if is_asked {
            order(&team, Command::Answer { session, question: question(&heard), answer: yes() }).await.unwrap();
            heard = rest(&mut notices).await;
        }
        let copy = copies(root).list().pop().unwrap();
        let record = copy.root().with_file_name("copy.json");
        std::fs::write(&record, "half of i").unwrap();
        order(&team, Command::Answer { session, question: question(&heard), answer: yes() }).await.unwrap();
        let told = results(&rest(&mut notices).await);
        let words = if is_asked { "Nothing was done about the changes" } else { "could not be read" };
        assert!(told.iter().any(|told| told.contains("Changed.") && told.contains(words)), "{told:?}");
        let waiting = team.ask(query::Worktrees { session }).await.unwrap();
        let [one] = waiting.as_slice() else { panic!("{waiting:?}") };
        assert!(one.id == copy.id() && one.trouble.as_ref().is_some_and(|why| why.contains("copy.json")), "{one:?}");
        assert_eq!(read(root.join("a.txt")), "one\n");
        team.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_copy_in_which_somebody_is_at_work_stays() {
    let folder = repository();
    let root = folder.path();
    let team = runtime_of(&Journal::memory(), root, DELEGATED);
    let (session, mut notices, asked) = changed(&team, root).await;
    let at_work = copies(root).list().pop().unwrap().occupy();
    order(&team, Command::Answer { session, question: asked.question, answer: yes() }).await.unwrap();
    let told = results(&rest(&mut notices).await);
    assert!(told.iter().any(|told| told.contains("1 file is in the project now")), "{told:?}");
    assert_eq!((read(root.join("a.txt")).as_str(), copies(root).list().len()), ("two\n", 1));
    drop(at_work);
    team.shutdown().await.unwrap();
}

/// What git ignores is told of; a change that the project has already is nothing to ask about.
#[tokio::test]
async fn a_decided_review_asks_no_question() {
    let folder = super::project();
    let root = folder.path();
    std::fs::write(root.join(".gitignore"), "ignored\n").unwrap();
    super::team::commit_all(root);
    let team = runtime_of(&Journal::memory(), root, DELEGATED);
    let (session, mut notices) = told_to(&team, root, Which::New).await;
    rest(&mut notices).await;
    order(&team, Command::Say { session, text: "change it".into() }).await.unwrap();
    let heard = rest(&mut notices).await;
    let copy = copies(root).list().pop().unwrap();
    std::fs::write(copy.root().join("ignored"), "new\n").unwrap();
    std::fs::write(root.join("a.txt"), "two\n").unwrap();
    order(&team, Command::Answer { session, question: question(&heard), answer: yes() }).await.unwrap();
    let heard = rest(&mut notices).await;
    assert_eq!(heard.last_words().text, "It is in a copy.");
    let told = results(&heard);
    assert!(told.iter().any(|told| told.contains("No file that git knows has changed")), "{told:?}");
    team.shutdown().await.unwrap();
}

const GIVES_UP: &str = r#"
answers:
  - parts: [{tool: dispatch_task, input: {agent: leo, description: Change}}]
  - text: He could not.
members:
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {fails: invalid_request, detail: no more}]
"#;

#[tokio::test]
async fn a_half_done_merge_is_told_and_asks_no_question() {
    let folder = repository();
    let root = folder.path();
    let team = runtime_of(&Journal::memory(), root, GIVES_UP);
    let (session, mut notices) = told_to(&team, root, Which::New).await;
    rest(&mut notices).await;
    order(&team, Command::Say { session, text: "change it".into() }).await.unwrap();
    let heard = rest(&mut notices).await;
    order(&team, Command::Answer { session, question: question(&heard), answer: yes() }).await.unwrap();
    let heard = rest(&mut notices).await;
    assert_eq!(heard.last_words().text, "He could not.");
    let told = results(&heard);
    let words = format!("max-team worktrees accept {}", copies(root).list().pop().unwrap().id());
    assert!(told.iter().any(|told| told.contains("no more") && told.contains(&words)), "{told:?}");
    team.shutdown().await.unwrap();
}

const TWO: &str = r#"
answers:
  - parts:
      - {tool: dispatch_task, input: {agent: leo, description: Change a}}
      - {tool: dispatch_task, input: {agent: ray, description: Write b}}
  - text: Both.
members:
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Changed.}]
  ray: [{parts: [{tool: write_file, input: {path: b.txt, content: b}}]}, {text: Written.}]
"#;

#[tokio::test]
async fn of_two_copies_one_is_asked_about_at_a_time() {
    let folder = repository();
    let root = folder.path();
    let journal = Journal::memory();
    let team = runtime_of(&journal, root, TWO);
    let (session, mut notices) = told_to(&team, root, Which::New).await;
    rest(&mut notices).await;
    order(&team, Command::Say { session, text: "change them".into() }).await.unwrap();
    let mut merged = 0;
    let heard = loop {
        let heard = rest(&mut notices).await;
        let inbox = UserMail::new(&journal).inbox().unwrap();
        let Some(pending) = inbox.first() else { break heard };
        let merges = |pending: &&max_team_runtime::PendingQuestion| match &pending.row.matter {
            Matter::Tool { action, .. } => action.kind == ActionKind::Merge,
            Matter::Plan(_) => false,
        };
        assert!(inbox.iter().filter(merges).count() <= 1, "{inbox:?}");
        merged += usize::from(merges(&pending));
        let question = pending.row.question;
        order(&team, Command::Answer { session, question, answer: yes() }).await.unwrap();
    };
    assert_eq!((heard.last_words().text.as_str(), merged), ("Both.", 2));
    assert_eq!((read(root.join("a.txt")), read(root.join("b.txt"))), ("two\n".into(), "b".into()));
    assert!(copies(root).list().is_empty());
    team.shutdown().await.unwrap();
}

/// A rule by which edits are asked about, also in a copy.
pub(crate) fn asking(root: &Path) -> Rule {
    let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
    let root = root.to_str().unwrap();
    Rule::new(List::Ask, "Edit", origin, &Anchors { root, base: root, home: "/" })
}

/// A session whose members work in copies, and ask before they edit.
async fn told_to(team: &TeamHandle, root: &Path, which: Which) -> (SessionId, mpsc::Receiver<Notice>) {
    let mut with = with_team(which, ApprovalMode::Plan);
    let members = with.team.iter_mut().flat_map(|team| &mut team.members);
    members.for_each(|teammate| {
        Arc::make_mut(&mut teammate.definition).isolation = Isolation::Worktree;
        teammate.settings.permissions.rules.push(asking(root));
    });
    with.definition.tools.push("send_message".to_owned());
    let notices = team.watch();
    let session = team.open(owner(), root, with).await.unwrap().session;
    (session, notices)
}

fn asked(heard: &super::team::Heard) -> QuestionAsked {
    let asked = heard.events.iter().rev().find_map(|(_, event)| match event {
        Event::QuestionAsked(asked) => Some(asked.clone()),
        _ => None,
    });
    asked.unwrap_or_else(|| panic!("{:?}", heard.names()))
}

fn question(heard: &super::team::Heard) -> QuestionId {
    asked(heard).question
}

fn results(heard: &super::team::Heard) -> Vec<String> {
    let done = heard.events.iter().filter_map(|(_, event)| match event {
        Event::ToolDone(done) => Some(format!("{:?}", done.content)),
        _ => None,
    });
    done.collect()
}

const AGAIN: &str = r#"
answers:
  - parts: [{tool: dispatch_task, input: {agent: leo, description: Look}}]
  - parts: [{tool: send_message, input: {to: leo, message: Now change it}}]
  - text: It is in a copy.
members:
  leo: [{text: Looked.}, {parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Changed.}]
"#;

#[tokio::test]
async fn an_agent_without_its_worktree_gets_another_before_its_mail() {
    let folder = repository();
    let root = folder.path();
    let team = runtime_of(&Journal::memory(), root, AGAIN);
    let (session, mut notices) = told_to(&team, root, Which::New).await;
    rest(&mut notices).await;
    order(&team, Command::Say { session, text: "change it".into() }).await.unwrap();
    let heard = rest(&mut notices).await;
    order(&team, Command::Answer { session, question: question(&heard), answer: yes() }).await.unwrap();
    let heard = rest(&mut notices).await;
    let answer = PermissionAnswer::merge_answer(MergeDecision::Left, DecidedBy::Person("test".into()));
    order(&team, Command::Answer { session, question: question(&heard), answer }).await.unwrap();
    let heard = rest(&mut notices).await;
    assert_eq!(heard.last_words().text, "It is in a copy.");
    let copy = copies(root).list().pop().unwrap();
    let words = format!("max-team worktrees accept {}", copy.id());
    assert!(results(&heard).iter().any(|told| told.contains(&words)), "{:#?}", heard.events);
    assert_eq!((read(root.join("a.txt")), read(copy.root().join("a.txt"))), ("one\n".into(), "two\n".into()));
}

#[tokio::test]
async fn an_agent_that_cannot_start_has_failed_and_the_session_opens() {
    let folder = repository();
    let root = folder.path();
    let team = runtime_of(&Journal::memory(), root, DELEGATED);
    let (session, mut notices) = told_to(&team, root, Which::New).await;
    rest(&mut notices).await;
    order(&team, Command::Say { session, text: "change it".into() }).await.unwrap();
    question(&rest(&mut notices).await);
    team.close(session).await;
    for copy in copies(root).list() {
        copy.remove().unwrap();
    }
    let (_, mut notices) = told_to(&team, root, Which::Id(session)).await;
    let heard = rest(&mut notices).await;
    assert_eq!(heard.last_words().text, "It is in a copy.", "the lead goes on");
    let told = results(&heard);
    assert!(
        told.iter().any(|told| told.contains("`leo` did not finish") && told.contains("there is no worktree")),
        "{told:?}"
    );
    assert_eq!(read(root.join("a.txt")), "one\n");
    team.shutdown().await.unwrap();
}

/// Waits until a copy is being made, which will not end by itself: git waits for the other end of a pipe.
fn endless(root: &Path) {
    let exclude = root.join(".git/info/exclude");
    drop(std::fs::remove_file(&exclude));
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, exclude, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

async fn making(root: &Path) {
    let is_made = || {
        let names = std::fs::read_dir(root.join("home/copies")).into_iter().flatten().flatten();
        names.into_iter().any(|entry| entry.path().join("tree").is_dir())
    };
    while !is_made() {
        tokio::task::yield_now().await;
    }
}

const SOON: std::time::Duration = std::time::Duration::from_secs(20);

#[tokio::test]
async fn a_plan_that_makes_a_copy_can_be_stopped_and_parked() {
    for park in [true, false] {
        let folder = repository();
        let root = folder.path();
        endless(root);
        let team = runtime_of(&Journal::memory(), root, NO_REPOSITORY);
        let (_, mut notices) = ask(&team, root, ApprovalMode::Plan).await;
        let proposed = approved(&team, &mut notices).await.plan();
        let ends = async {
            making(root).await;
            if !park {
                order(&team, Command::Stop { plan: proposed, task: None }).await.unwrap();
                rest(&mut notices).await;
                assert_eq!(team.plan(proposed).unwrap().ended(), Some(PlanEnd::Stopped));
            }
            team.shutdown().await.unwrap();
        };
        tokio::time::timeout(SOON, ends).await.unwrap();
        assert!(copies(root).list().is_empty());
    }
}

#[tokio::test]
async fn a_lead_whose_member_gets_a_copy_can_be_interrupted() {
    let folder = repository();
    let root = folder.path();
    endless(root);
    let team = runtime_of(&Journal::memory(), root, DELEGATED);
    let (session, mut notices) = told_to(&team, root, Which::New).await;
    rest(&mut notices).await;
    order(&team, Command::Say { session, text: "change it".into() }).await.unwrap();
    let ends = async {
        making(root).await;
        order(&team, Command::Interrupt { session }).await.unwrap();
        let heard = rest(&mut notices).await;
        assert_eq!(heard.last_words().end, max_team_core::event::TurnOutcome::Interrupted);
        team.shutdown().await.unwrap();
    };
    tokio::time::timeout(SOON, ends).await.unwrap();
}

#[tokio::test]
async fn changes_of_a_check_are_not_merged() {
    let folder = repository();
    let root = folder.path();
    let script = APART
        .replace("\"grep -q two a.txt\"", "\"cp src/hello.txt a.txt\"")
        .replace("isolation: worktree,", "isolation: worktree, retry: 0,");
    let team = runtime_of(&Journal::memory(), root, &script);
    let (_, mut notices) = ask(&team, root, ApprovalMode::Plan).await;
    approved(&team, &mut notices).await;
    let heard = rest(&mut notices).await;
    let failed = heard.events.iter().find_map(|(_, event)| match event {
        Event::TaskFailed(failed) => Some(failed.error.clone()),
        _ => None,
    });
    let failed = failed.unwrap_or_else(|| panic!("{:?}", heard.names()));
    assert!(failed.contains("`a.txt`: it has changed in the worktree since it was shown"), "{failed}");
    assert_eq!(read(root.join("a.txt")), "one\n");
    assert!(!root.join("src/hello.txt").exists());
    team.shutdown().await.unwrap();
}
