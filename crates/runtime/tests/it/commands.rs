//! Commands that somebody who stays has left running: whoever did is told once that one is over, whenever the program dies.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command as Process;

use max_team_core::event::Event;
use max_team_core::id::SessionId;
use max_team_journal::{Commit, CrashPoint, Journal, Projection};
use max_team_runtime::{Command, EndMode, Notice, Order, ReadModel, TeamHandle, UserMail, Which};
use tokio::sync::mpsc;

use super::calls::{alone, inputs};
use super::crashes::{check_rest, events, key};
use super::read::Reads as _;
use super::team::rest;
use super::teammates::leading;
use super::{owner, project, runtime_of};

/// A teammate with a command that ends at once and one that ends when somebody writes into the pipe.
const SERVE: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: eva, role: server, prompt: Serve., type: explore}}]
  - text: Started.
  - text: Noted.
  - text: Noted.
  - text: Noted.
  - text: Noted.
members:
  eva:
    - parts:
        - {tool: run_shell, input: {command: cat a.txt, background: true}}
        - {tool: run_shell, input: {command: cat pipe, background: true}}
    - text: They run.
    - text: I have heard.
    - text: I have heard.
    - text: I have heard.
"#;

/// How often a story whose length depends on time is told.
const ROUNDS_MAX: usize = 6;

/// A project with a pipe that nobody writes into.
fn with_pipe() -> tempfile::TempDir {
    let folder = project();
    assert!(Process::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    folder
}

/// Lets whatever reads the pipe come to its end.
fn end_pipe(root: &Path) {
    let pipe = root.join("pipe");
    // Opening it waits for a reader.
    std::thread::spawn(move || std::fs::write(pipe, "the end\n"));
}

/// A runtime in which the first command is over and the one at the pipe runs on.
async fn one_left_running(journal: &Journal, root: &Path) -> (TeamHandle, SessionId, mpsc::Receiver<Notice>) {
    let team = runtime_of(journal, root, SERVE);
    let (session, mut notices) = super::calls::say(&team, root, leading(Which::New)).await;
    while overs(journal).values().all(Vec::is_empty) {
        rest(&mut notices).await;
    }
    (team, session, notices)
}

/// For each command that began: how often it was over, and whether that is not known of it.
fn overs(journal: &Journal) -> BTreeMap<String, Vec<bool>> {
    let mut overs = BTreeMap::new();
    for (_, event) in events(journal) {
        match event {
            Event::CommandBegun(begun) => {
                assert_eq!(overs.insert(begun.id.clone(), Vec::new()), None, "it begins twice: {begun:?}");
            }
            Event::CommandOver(over) => overs.get_mut(&over.id).unwrap().push(over.lost),
            _ => {}
        }
    }
    overs
}

/// What its owner was told of a command, each time.
fn told(journal: &Journal, owner: &str, id: &str) -> Vec<String> {
    let about = format!("`{id}` (");
    let news = |text: &String| text.starts_with("What you had left running in the background is over:");
    let all = inputs(journal, owner).into_iter().filter(news);
    all.flat_map(|text| text.split("\n\n").map(str::to_owned).collect::<Vec<_>>())
        .filter(|part| part.starts_with(&about))
        .collect()
}

#[tokio::test]
async fn who_left_commands_running_is_told_of_each_once() {
    let folder = with_pipe();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), SERVE);
    let (_, mut notices) = super::calls::say(&team, folder.path(), leading(Which::New)).await;
    let ended = |journal: &Journal| overs(journal).into_values().filter(|overs| !overs.is_empty()).count();
    while ended(&journal) < 1 {
        assert!(!rest(&mut notices).await.waiting, "nobody is asked about what only looks");
    }
    end_pipe(folder.path());
    while ended(&journal) < 2 {
        rest(&mut notices).await;
    }
    assert_eq!(overs(&journal), BTreeMap::from([("sh-1".into(), vec![false]), ("sh-2".into(), vec![false])]));
    for (id, printed) in [("sh-1", "one"), ("sh-2", "the end")] {
        let [told] = told(&journal, "explore", id).try_into().unwrap();
        assert!(told.contains("exit code 0") && told.contains(printed), "{told}");
    }
    check_rest(&journal);
}

/// Whether the lead is stopped while it rests, or whoever has left them running: they end, that is written down, and nobody is
/// woken by it.
#[tokio::test]
async fn background_commands_end_with_a_stop() {
    for through_lead in [true, false] {
        let folder = with_pipe();
        let journal = Journal::memory();
        let (team, session, mut notices) = one_left_running(&journal, folder.path()).await;
        let census = ReadModel::new(&journal);
        let [(eva, pipe)] = census.commands(session, None).unwrap().try_into().unwrap();
        assert_eq!((eva.name.as_str(), pipe.name.as_str()), ("eva", "`cat pipe`"));
        let turns = inputs(&journal, "explore").len();
        if through_lead {
            let command = Command::StopSession { session };
            team.command(Order { by: owner(), cwd: ".".into(), key: key("stop"), command }).await.unwrap();
        } else {
            UserMail::new(&journal).stop_agent(&owner(), key("stop"), eva.agent).await.unwrap();
        }
        while !census.commands(session, Some(eva.agent)).unwrap().is_empty() {
            super::until(&mut notices, "command_over").await;
        }
        let stopped = events(&journal).into_iter().filter_map(|(_, event)| match event {
            Event::CommandOver(over) => Some((over.id, over.stopped)),
            _ => None,
        });
        assert_eq!(stopped.collect::<Vec<_>>(), [("sh-1".to_owned(), false), ("sh-2".to_owned(), true)]);
        assert_eq!(inputs(&journal, "explore").len(), turns, "nobody is woken by that");
        check_rest(&journal);
    }
}

/// With whoever is ended ends what it has left running, and that is written down: nothing is there to be stopped afterwards.
#[tokio::test]
async fn with_whoever_ends_their_commands_are_over() {
    let folder = with_pipe();
    let journal = Journal::memory();
    let (_team, session, mut notices) = one_left_running(&journal, folder.path()).await;
    let census = ReadModel::new(&journal);
    let [(eva, pipe)] = census.commands(session, None).unwrap().try_into().unwrap();
    let by = owner();
    UserMail::new(&journal).part(&by, key("end"), session, &["eva".into()], EndMode::Told).await.unwrap();
    super::until(&mut notices, "agent_ended").await;
    assert_eq!(overs(&journal), BTreeMap::from([("sh-1".into(), vec![false]), ("sh-2".into(), vec![false])]));
    assert!(census.commands(session, None).unwrap().is_empty());
    check_rest(&journal);
    // Older versions have left the row.
    let (key, value) = (format!("{}/sh-2", eva.agent), serde_json::to_vec(&pipe.name).unwrap());
    let row = Projection::Put { table: "commands".into(), key, value, sort_ms: 1 };
    journal.commit(Commit { projections: vec![row], ..Commit::default() }).await.unwrap();
    assert!(census.commands(session, None).unwrap().is_empty());
}

/// A lead has nobody who would ring it when the turn that it begins by itself is over: faces hear of that too.
#[tokio::test]
async fn a_lead_is_told_as_well_and_its_face_hears_when_it_rests() {
    let folder = with_pipe();
    let journal = Journal::memory();
    let recording = "answers:\n  - parts: [{tool: run_shell, input: {command: cat pipe, background: true}}]\n  \
                     - text: It runs.\n  - text: I have heard.\n";
    let team = runtime_of(&journal, folder.path(), recording);
    let mut open = alone(1);
    open.definition.tools.push("run_shell".into());
    let (_, mut notices) = super::calls::say(&team, folder.path(), open).await;
    assert!(!rest(&mut notices).await.waiting);
    assert_eq!(overs(&journal), BTreeMap::from([("sh-1".into(), vec![])]));
    end_pipe(folder.path());
    let heard = rest(&mut notices).await;
    assert_eq!(heard.names().last(), Some(&"replied"), "{:?}", heard.names());
    let [told] = told(&journal, "solo", "sh-1").try_into().unwrap();
    assert!(told.contains("the end"), "{told}");
    check_rest(&journal);
}

/// One process: until it dies with that commit, or until nobody has anything to do and it is killed. Whether it came to rest.
fn live(journal: &Journal, root: &Path, dies_with: Option<u64>) -> bool {
    super::lives(journal, dies_with.map(|commit| (CrashPoint::After, commit)), play(journal, root))
}

async fn play(journal: &Journal, root: &Path) {
    let team = runtime_of(journal, root, SERVE);
    let mut notices = team.watch();
    let which = if team.sessions(1).unwrap().is_empty() { Which::New } else { Which::Latest };
    let session = team.open(owner(), root, leading(which)).await.unwrap().session;
    rest(&mut notices).await;
    if !journal.has_mail(key("say")).unwrap() {
        let command = Command::Say { session, text: "go".into() };
        team.command(Order { by: owner(), cwd: ".".into(), key: key("say"), command }).await.unwrap();
        rest(&mut notices).await;
    }
}

/// Killed at every commit, and then twice more: of no command somebody hears twice, of none nothing.
#[test]
fn whenever_the_program_dies_each_is_told_once() {
    let mut lost = 0;
    for commit in 1.. {
        let folder = with_pipe();
        let mut journal = Journal::memory();
        let survived = live(&journal, folder.path(), Some(commit));
        for _ in 0..3 {
            journal = journal.reopen().unwrap();
            assert!(live(&journal, folder.path(), None));
        }
        check_rest(&journal);
        let overs = overs(&journal);
        for (id, overs) in &overs {
            let told = told(&journal, "explore", id);
            let ([over], [told]) = (overs.as_slice(), told.as_slice()) else {
                panic!("killed at commit {commit}: {id}: {overs:?}, {told:?}");
            };
            assert_eq!(told.contains("it died with the program"), *over, "{told}");
            lost += usize::from(*over);
        }
        if survived {
            assert!(commit > 10 && overs.len() == 2, "a story that short proves nothing");
            break;
        }
    }
    assert!(lost > 2, "hardly any died with the program");
}

/// Says stop once the command runs; until the program dies with that commit, or everything is over.
async fn play_stop(journal: &Journal, root: &Path) {
    let team = runtime_of(journal, root, SERVE);
    let mut notices = team.watch();
    let session = team.open(owner(), root, leading(Which::New)).await.unwrap().session;
    rest(&mut notices).await;
    let command = Command::Say { session, text: "go".into() };
    team.command(Order { by: owner(), cwd: ".".into(), key: key("say"), command }).await.unwrap();
    while overs(journal).values().all(Vec::is_empty) {
        rest(&mut notices).await;
    }
    let [(eva, _)] = ReadModel::new(journal).commands(session, None).unwrap().try_into().unwrap();
    UserMail::new(journal).stop_agent(&owner(), key("stop"), eva.agent).await.unwrap();
    // That of the other may be told later than it was written down.
    while !matches!(&*super::until(&mut notices, "command_over").await, Event::CommandOver(over) if over.id == "sh-2") {
    }
}

/// The word that stops is as good as the end of what it stops: whenever the program dies behind it, nobody is woken next time.
#[test]
fn who_was_stopped_is_not_woken_when_the_program_dies_meanwhile() {
    // How many commits there are before the stop depends on when the first command ends, so one story may be killed
    // before its stop and the next, which is shorter, not at all: then they are told again.
    let rounds = (0..ROUNDS_MAX).map(|_| stop_and_die_at_every_commit());
    assert!({ rounds }.any(|checked| checked > 1), "a story that short proves nothing");
}

/// Says stop, dies at each commit in turn, and checks what is told next time; how many deaths came behind the stop.
fn stop_and_die_at_every_commit() -> usize {
    let mut checked = 0;
    for commit in 1.. {
        let folder = with_pipe();
        let mut journal = Journal::memory();
        let survived = super::lives(&journal, Some((CrashPoint::After, commit)), play_stop(&journal, folder.path()));
        journal = journal.reopen().unwrap();
        if journal.has_mail(key("stop")).unwrap() {
            assert!(live(&journal, folder.path(), None));
            assert_eq!(told(&journal, "explore", "sh-2"), Vec::<String>::new(), "killed at commit {commit}");
            let over = overs(&journal).remove("sh-2").unwrap();
            assert_eq!(over.len(), 1, "killed at commit {commit}: {over:?}");
            check_rest(&journal);
            checked += 1;
        }
        if survived {
            break;
        }
    }
    checked
}
