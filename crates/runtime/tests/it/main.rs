//! The team through its one seam: a recorded model, real tools, the journal in memory.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a broken fixture must fail the test loudly")]

mod cache;
mod calls;
mod commands;
mod compact;
mod crashes;
mod crew;
mod denials;
mod holds;
mod idle;
mod limits;
mod memory;
mod mentions;
mod misfits;
mod people;
mod progress;
mod questions;
mod reach;
mod read;
mod remote;
mod reviews;
mod sources;
mod steer;
mod stops;
mod stream;
mod tasks;
mod team;
mod teammates;
mod worktrees;

use std::path::Path;
use std::sync::Arc;

use max_team_core::agent::{Definition, Model, Settings};
use max_team_core::event::{Event, TurnOutcome};
use max_team_core::id::{EnvelopeId, SessionId, WorkerId};
use max_team_core::message::{Principal, Role};
use max_team_core::policy::{DecidedBy, PermissionAnswer};
use max_team_journal::{CrashPoint, Journal, WorkerInfo};
use max_team_llm::{Replay, Router};
use max_team_runtime::skills::Places;
use max_team_runtime::{
    Command, Notice, OpenOptions, Options, Order, Remember, Runtime, RuntimeError, TeamHandle, Which, new_id,
};
use max_team_tools::{Registry, Services, ToolSource};
use read::Reads as _;
use tokio::sync::mpsc;

max_team_tools::command::child_before_main!();

const RECORDING: &str = r#"
answers:
  - parts:
      - {tool: read_file, input: {path: a.txt}}
      - {tool: edit_file, input: {path: a.txt, old: one, new: two}}
  - text: It says two now.
  - text: A second answer.
"#;

fn runtime(journal: &Journal, root: &Path) -> TeamHandle {
    runtime_of(journal, root, RECORDING)
}

fn runtime_of(journal: &Journal, root: &Path, recording: &str) -> TeamHandle {
    runtime_with(journal, root, Replay::read(recording).unwrap())
}

fn runtime_with(journal: &Journal, root: &Path, replay: Replay) -> TeamHandle {
    runtime_equipped(journal, root, replay, Registry::builtin())
}

fn runtime_equipped(journal: &Journal, root: &Path, replay: Replay, tools: Registry) -> TeamHandle {
    runtime_supplied(journal, root, replay, tools, Vec::new())
}

fn runtime_supplied(
    journal: &Journal,
    root: &Path,
    replay: Replay,
    tools: Registry,
    sources: Vec<Arc<dyn ToolSource>>,
) -> TeamHandle {
    build(journal, root, replay, tools, sources, None)
}

fn runtime_remembering(journal: &Journal, root: &Path, recording: &str, remember: Remember) -> TeamHandle {
    let replay = Replay::read(recording).unwrap();
    build(journal, root, replay, Registry::builtin(), Vec::new(), Some(remember))
}

fn build(
    journal: &Journal,
    root: &Path,
    replay: Replay,
    tools: Registry,
    sources: Vec<Arc<dyn ToolSource>>,
    remember: Option<Remember>,
) -> TeamHandle {
    let info = WorkerInfo {
        id: WorkerId::new(new_id()),
        pid: std::process::id(),
        host: "here".into(),
        started_at_ms: 0,
        what: "a test".into(),
    };
    Runtime::build(Options {
        storage: journal.clone().into(),
        process: info,
        router: Router::replay(replay),
        tools,
        sources: Arc::new(sources),
        services: Services::default(),
        home: root.join("home"),
        others: Vec::new(),
        surroundings: "Platform: test".into(),
        walled: true,
        audit: None,
        skills: Places { builtin: true, ..Places::default() },
        remember,
    })
    .unwrap()
}

fn owner() -> Principal {
    Principal { door: "test".into(), user: "ada".into(), role: Role::Owner }
}

fn open(which: Which) -> OpenOptions {
    let model = Model {
        provider: "recording".into(),
        name: "m".into(),
        context_tokens: 100_000,
        max_tokens: 1_000,
        thinking_tokens: 0,
        price: None,
    };
    let tools = ["read_file", "edit_file"].map(str::to_owned).to_vec();
    let definition =
        Definition { name: "solo".into(), role: "r".into(), prompt: "p".into(), tools, ..Definition::default() };
    OpenOptions::new(which, definition, Settings::new(model), None)
}

async fn order(team: &TeamHandle, command: Command) -> Result<(), RuntimeError> {
    let order = Order { by: owner(), cwd: ".".into(), key: EnvelopeId::new(new_id()), command };
    team.command(order).await
}

async fn next(notices: &mut mpsc::Receiver<Notice>) -> Arc<Event> {
    loop {
        match notices.recv().await.unwrap() {
            Notice::Event { event, .. } => return event,
            Notice::Stopped { error, .. } => panic!("{error}"),
            Notice::Delta { .. } | Notice::Copies { .. } | Notice::Redefined { .. } | Notice::Idle { .. } => {}
        }
    }
}

async fn until(notices: &mut mpsc::Receiver<Notice>, name: &str) -> Arc<Event> {
    loop {
        let event = next(notices).await;
        if event.name() == name {
            return event;
        }
    }
}

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "one\n").unwrap();
    folder
}

async fn begin(team: &TeamHandle, root: &Path) -> (SessionId, mpsc::Receiver<Notice>) {
    let notices = team.watch();
    let opened = team.open(owner(), root, open(Which::New)).await.unwrap();
    order(team, Command::Say { session: opened.session, text: "change it".into() }).await.unwrap();
    (opened.session, notices)
}

fn yes() -> PermissionAnswer {
    PermissionAnswer::new(true, DecidedBy::Person("test".into()))
}

#[tokio::test]
async fn a_question_is_rows_until_somebody_answers() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime(&journal, folder.path());
    let (session, mut notices) = begin(&team, folder.path()).await;
    let asked = until(&mut notices, "question_asked").await;
    let Event::QuestionAsked(asked) = &*asked else { panic!("{asked:?}") };
    assert!(asked.action.preview.contains("+two"));
    order(&team, Command::Answer { session, question: asked.question, answer: yes() }).await.unwrap();
    let ended = until(&mut notices, "turn_ended").await;
    let Event::TurnEnded(ended) = &*ended else { panic!("{ended:?}") };
    assert_eq!((&ended.end, ended.text.as_str()), (&TurnOutcome::Answered, "It says two now."));
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "two\n");
    // Whoever answers later is told who was faster.
    let late = order(&team, Command::Answer { session, question: asked.question, answer: yes() }).await;
    assert!(matches!(&late, Err(RuntimeError::Answered { by, .. }) if by == "ada at test"), "{late:?}");
    order(&team, Command::Say { session, text: "and?".into() }).await.unwrap();
    let ended = until(&mut notices, "turn_ended").await;
    let Event::TurnEnded(ended) = &*ended else { panic!("{ended:?}") };
    assert_eq!(ended.text, "A second answer.");
}

#[tokio::test]
async fn a_parked_question_waits_for_the_next_process() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime(&journal, folder.path());
    let (session, mut notices) = begin(&team, folder.path()).await;
    until(&mut notices, "question_asked").await;
    team.shutdown().await.unwrap();
    drop(team);

    let journal = journal.reopen().unwrap();
    let team = runtime(&journal, folder.path());
    let mut notices = team.watch();
    let opened = team.open(owner(), folder.path(), open(Which::Latest)).await.unwrap();
    assert!(opened.resumed && opened.continuing && opened.session == session);
    let asked = team.events(session).unwrap().into_iter().rev().find_map(|(_, event)| match event {
        Event::QuestionAsked(asked) => Some(asked),
        _ => None,
    });
    order(&team, Command::Answer { session, question: asked.unwrap().question, answer: yes() }).await.unwrap();
    let ended = until(&mut notices, "turn_ended").await;
    let Event::TurnEnded(ended) = &*ended else { panic!("{ended:?}") };
    assert_eq!(ended.text, "It says two now.");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "two\n");
}

#[tokio::test]
async fn bounds_are_refused_with_words() {
    let folder = project();
    let team = runtime(&Journal::memory(), folder.path());
    let nowhere = SessionId::new(new_id());
    let unknown = order(&team, Command::Say { session: nowhere, text: "hi".into() }).await;
    assert!(matches!(unknown, Err(RuntimeError::NotOpen(_))), "{unknown:?}");
    let none = team.open(owner(), folder.path(), open(Which::Latest)).await;
    assert!(matches!(none, Err(RuntimeError::NothingToContinue(_))), "{none:?}");
    let opened = team.open(owner(), folder.path(), open(Which::New)).await.unwrap();
    let long = "x".repeat(max_team_core::limits::MESSAGE_BYTES_MAX + 1);
    let refused = order(&team, Command::Say { session: opened.session, text: long }).await;
    assert!(matches!(refused, Err(RuntimeError::TooLong { .. })), "{refused:?}");
    for text in ["", " \n\t"] {
        let (session, text) = (opened.session, text.to_owned());
        let (to, words) = (vec!["team".to_owned()], text.clone());
        for command in [Command::Say { session, text }, Command::Write { session, to, text: words }] {
            let refused = order(&team, command).await;
            assert!(matches!(refused, Err(RuntimeError::Silent)), "{refused:?}");
        }
    }
}

/// A long session is folded from its snapshot, and comes out the same as from the beginning.
#[tokio::test]
async fn a_long_session_goes_on_from_its_snapshot() {
    let folder = project();
    let journal = Journal::memory();
    let answers: String = (1..=160).map(|n| format!("  - text: answer {n}\n")).collect();
    let recording = format!("answers:\n{answers}");
    let team = runtime_of(&journal, folder.path(), &recording);
    let mut notices = team.watch();
    let opened = team.open(owner(), folder.path(), open(Which::New)).await.unwrap();
    for n in 1..=150 {
        order(&team, Command::Say { session: opened.session, text: format!("question {n}") }).await.unwrap();
        until(&mut notices, "turn_ended").await;
    }
    team.shutdown().await.unwrap();
    drop(team);

    let journal = journal.reopen().unwrap();
    let snapshot = journal.snapshot(&format!("agent/{}", opened.agent)).unwrap().unwrap();
    assert!(snapshot.stream_seq >= 512, "{}", snapshot.stream_seq);
    let team = runtime_of(&journal, folder.path(), &recording);
    let mut notices = team.watch();
    let again = team.open(owner(), folder.path(), open(Which::Latest)).await.unwrap();
    assert_eq!(again.history.len(), 300);
    assert_eq!(again.history.last().unwrap().text(), "answer 150");
    order(&team, Command::Say { session: again.session, text: "one more".into() }).await.unwrap();
    let ended = until(&mut notices, "turn_ended").await;
    let Event::TurnEnded(ended) = &*ended else { panic!("{ended:?}") };
    assert_eq!(ended.text, "answer 151");
}

/// One process: until it dies at that commit, or until what it does is over; whether it came to that. Everything stops then
/// where it stands; only what a tool has begun is carried to its end.
fn lives(journal: &Journal, dies_with: Option<(CrashPoint, u64)>, play: impl Future<Output = ()>) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let died = dies_with.map(|(death, commit)| journal.die(death, commit));
    runtime.block_on(async {
        let died = async {
            match died {
                Some(died) => died.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = died => false,
            () = play => true,
        }
    })
}
