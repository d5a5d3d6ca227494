//! What somebody did in a copy and nobody waits for: the user is asked when its work is over, whoever it was.

use std::path::Path;
use std::sync::Arc;

use max_team_core::agent::Isolation;
use max_team_core::event::{Event, QuestionAsked, TurnOutcome};
use max_team_core::hash::Hash;
use max_team_core::id::{AgentId, EnvelopeId, SessionId};
use max_team_core::message::MessageKind;
use max_team_core::policy::{ActionKind, DecidedBy, MergeDecision, Mode, PermissionAnswer};
use max_team_journal::{CrashPoint, Journal};
use max_team_runtime::{CONTINUE, Command, Matter, Notice, OpenOptions, Order, ReadModel, Spawn, UserMail, Which};
use max_team_tools::worktree::Worktrees;
use uuid::Uuid;

use super::calls::{came_to, inputs, say, started};
use super::crashes::{check_rest, events, key};
use super::read::Reads as _;
use super::team::{Heard, repository, rest};
use super::teammates::{envelopes, leading};
use super::{order, owner, runtime_of, yes};

/// A task in the background.
const APART: &str = r#"
answers:
  - parts: [{tool: spawn, input: {description: change it, prompt: Change it., type: leo, isolation: worktree}}]
  - text: It is at it.
  - text: It is over.
members:
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Changed.}]
"#;

/// A teammate that is shut down when it has said what it came to.
const TEAMMATE: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: leo, role: writer, prompt: Change it., type: leo, isolation: worktree}}]
  - text: Started.
  - parts: [{tool: send_message, input: {to: leo, message: {type: shutdown_request, reason: all is done}}}]
  - text: I have asked it.
  - text: So it is.
members:
  leo: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Changed.}]
"#;

/// A team that edits without being asked about it.
fn editing(which: Which) -> OpenOptions {
    let mut open = leading(which);
    open.settings.mode = Mode::AcceptEdits;
    for teammate in &mut open.team.as_mut().unwrap().members {
        teammate.settings.mode = Mode::AcceptEdits;
    }
    open
}

fn copies(root: &Path) -> usize {
    Worktrees::within(&root.join("home")).list().len()
}

fn read(root: &Path) -> String {
    std::fs::read_to_string(root.join("a.txt")).unwrap()
}

fn asked(heard: &Heard) -> QuestionAsked {
    let asked = heard.events.iter().find_map(|(who, event)| match event {
        Event::QuestionAsked(asked) if who == "leo" => Some(asked.clone()),
        _ => None,
    });
    asked.unwrap_or_else(|| panic!("{:?}", heard.names()))
}

/// What becomes of it: the project's file, the copies that are left, and what is said of it.
const FATES: [(MergeDecision, &str, usize, &str); 3] = [
    (MergeDecision::Taken, "two\n", 0, "1 file is in the project now"),
    (MergeDecision::Dropped, "one\n", 0, "The user has rejected the changes"),
    (MergeDecision::Left, "one\n", 1, "the user decides later"),
];

#[tokio::test]
async fn a_background_task_that_is_over_asks_and_is_told_of_once() {
    for (settled, file, left, words) in FATES {
        let folder = repository();
        let root = folder.path();
        let journal = Journal::memory();
        let team = runtime_of(&journal, root, APART);
        let (session, mut notices) = say(&team, root, editing(Which::New)).await;
        let heard = rest(&mut notices).await;
        assert!(heard.waiting && read(root) == "one\n", "nothing is taken before the yes");
        let asked = asked(&heard);
        assert!(asked.action.kind == ActionKind::Merge && asked.action.preview.contains("+two"), "{asked:?}");
        assert_eq!(inputs(&journal, "max").len(), 1, "its lead hears of it when that is decided");
        let answer = PermissionAnswer::merge_answer(settled, DecidedBy::Person("test".into()));
        order(&team, Command::Answer { session, question: asked.question, answer }).await.unwrap();
        let heard = rest(&mut notices).await;
        assert!(!heard.waiting && heard.last_words().text == "It is over.", "{:?}", heard.names());
        let [_, told] = inputs(&journal, "max").try_into().unwrap();
        assert!(told.contains("Changed.\n\n[") && told.contains(words), "{told}");
        assert_eq!((read(root).as_str(), copies(root)), (file, left), "{settled:?}");
        check_rest(&journal);
    }
}

#[tokio::test]
async fn a_teammate_that_was_shut_down_asks_also_in_the_next_process() {
    for (settled, file, left, words) in FATES {
        let folder = repository();
        let root = folder.path();
        let journal = Journal::memory();
        let team = runtime_of(&journal, root, TEAMMATE);
        let (session, mut notices) = say(&team, root, editing(Which::New)).await;
        let heard = rest(&mut notices).await;
        let gone = heard.names().iter().position(|name| *name == "agent_ended");
        let question = heard.names().iter().position(|name| *name == "question_asked");
        assert!(heard.waiting && gone.is_some() && gone < question, "{:?}", heard.names());
        let question = asked(&heard).question;
        team.shutdown().await.unwrap();
        drop(team);

        let journal = journal.reopen().unwrap();
        let team = runtime_of(&journal, root, TEAMMATE);
        let mut notices = team.watch();
        team.open(owner(), root, editing(Which::Latest)).await.unwrap();
        assert!(rest(&mut notices).await.waiting);
        let answer = PermissionAnswer::merge_answer(settled, DecidedBy::Person("test".into()));
        order(&team, Command::Answer { session, question, answer }).await.unwrap();
        let heard = rest(&mut notices).await;
        assert!(!heard.waiting && !heard.names().contains(&"turn_started"), "nobody is woken by what the user did");
        assert_eq!((read(root).as_str(), copies(root)), (file, left), "{settled:?}");
        team.shutdown().await.unwrap();
        drop(team);

        let journal = journal.reopen().unwrap();
        let team = runtime_of(&journal, root, TEAMMATE);
        let mut notices = team.watch();
        let recovered = team.open(owner(), root, editing(Which::Latest)).await.unwrap().recovered;
        assert!(recovered.is_empty(), "what only waits to be told is nothing to go on with: {recovered:?}");
        assert!(!rest(&mut notices).await.waiting);
        order(&team, Command::Say { session, text: "and now?".into() }).await.unwrap();
        rest(&mut notices).await;
        let told = inputs(&journal, "max").pop().unwrap();
        assert!(told.starts_with("and now?") && told.contains(words), "{told}");
        check_rest(&journal);
    }
}

#[tokio::test]
async fn no_changes_ask_no_question_and_unattended_ones_stay() {
    let idle = APART.replace("parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]", "text: No need.");
    for (recording, never_asks, left, words) in
        [(idle.as_str(), false, 0, "No need."), (APART, true, 1, "the user could not be asked")]
    {
        let folder = repository();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), recording);
        let mut open = editing(Which::New);
        for teammate in &mut open.team.as_mut().unwrap().members {
            teammate.settings.permissions.never_asks = never_asks;
        }
        let (_, mut notices) = say(&team, folder.path(), open).await;
        let heard = rest(&mut notices).await;
        assert!(!heard.waiting && !heard.names().contains(&"question_asked"), "{:?}", heard.names());
        let told = inputs(&journal, "max").pop().unwrap();
        assert!(told.contains(words), "{told}");
        assert_eq!((read(folder.path()).as_str(), copies(folder.path())), ("one\n", left));
        check_rest(&journal);
    }
}

/// Whoever was not done has changed something all the same: the user is asked about that, too, and it has failed whatever they say.
#[tokio::test]
async fn one_that_failed_asks_about_what_it_left() {
    for (settled, file, left, words) in FATES {
        let recording = APART.replace(
            "  - text: It is over.",
            "  - parts: [{tool: spawned, input: {}}]\n  - text: So it is.\n  - text: A pity.",
        );
        let folder = repository();
        let root = folder.path();
        let journal = Journal::memory();
        let team = runtime_of(&journal, root, &recording);
        let mut open = editing(Which::New);
        for teammate in &mut open.team.as_mut().unwrap().members {
            teammate.settings.rounds_max = 1;
        }
        let (session, mut notices) = say(&team, root, open).await;
        let heard = rest(&mut notices).await;
        assert!(heard.waiting && asked(&heard).action.preview.contains("+two"), "{:?}", heard.names());
        order(&team, Command::Say { session, text: "how is it?".into() }).await.unwrap();
        let [(told, false)] = came_to(&rest(&mut notices).await, "max") else { panic!() };
        assert!(told.ends_with(": failed, and the user decides what becomes of its changes"), "{told}");
        let answer = PermissionAnswer::merge_answer(settled, DecidedBy::Person("test".into()));
        order(&team, Command::Answer { session, question: asked(&heard).question, answer }).await.unwrap();
        let heard = rest(&mut notices).await;
        assert!(!heard.waiting && heard.last_words().text == "A pity.", "{:?}", heard.names());
        let told = inputs(&journal, "max").pop().unwrap();
        assert!(told.contains("the limit of 1 rounds was reached") && told.contains(words), "{told}");
        assert_eq!((read(root).as_str(), copies(root)), (file, left), "{settled:?}");
        let [leo] = started(&journal, "leo").try_into().unwrap();
        assert_eq!(ReadModel::new(&journal).turn(leo.agent).unwrap().last().unwrap().end, TurnOutcome::Rounds);
        check_rest(&journal);
    }
}

/// A task in the background that is gone on with once it has asked.
const MORE: &str = r#"
answers:
  - parts: [{tool: spawn, input: {description: change it, prompt: Change it., type: leo, isolation: worktree}}]
  - text: It is at it.
  - parts: [{tool: send_message, input: {to: leo, message: Change it more.}}]
  - text: Changed twice.
  - text: I know.
members:
  leo:
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - text: Changed.
    - parts: [{tool: edit_file, input: {path: a.txt, old: two, new: three}}]
    - text: Changed again.
"#;

/// What came of the first piece of work, with what becomes of it.
const MOOT: &str = "Changed.\n\n[It was given more to do before anybody had decided about its changes.";

/// How often it was said.
fn told(journal: &Journal, words: &str) -> usize {
    envelopes(journal, MessageKind::TaskResult).iter().filter(|text| text.starts_with(words)).count()
}

/// Whoever is given more to do asks once it has done that, too; nobody is asked about half of it.
#[tokio::test]
async fn one_that_is_gone_on_with_asks_anew_when_it_is_done() {
    let folder = repository();
    let root = folder.path();
    let journal = Journal::memory();
    let team = runtime_of(&journal, root, MORE);
    let (session, mut notices) = say(&team, root, editing(Which::New)).await;
    let first = asked(&rest(&mut notices).await);
    order(&team, Command::Say { session, text: "go on".into() }).await.unwrap();
    let heard = rest(&mut notices).await;
    assert!(heard.waiting && read(root) == "one\n", "{:?}", heard.names());
    let inbox = UserMail::new(&journal).inbox().unwrap();
    let [pending] = inbox.as_slice() else { panic!("{inbox:?}") };
    assert_ne!(pending.row.question, first.question, "{:?}", heard.names());
    assert!(matches!(&pending.row.matter, Matter::Tool { action, .. } if action.preview.contains("+three")));
    let late = Command::Answer { session, question: first.question, answer: yes() };
    assert!(order(&team, late).await.is_err(), "nobody asks that any more");
    order(&team, Command::Answer { session, question: pending.row.question, answer: yes() }).await.unwrap();
    let heard = rest(&mut notices).await;
    assert!(!heard.waiting, "{:?}", heard.names());
    assert_eq!((read(root).as_str(), copies(root)), ("three\n", 0));
    assert_eq!((told(&journal, MOOT), told(&journal, "Changed again.")), (1, 1));
    check_rest(&journal);
}

/// The same where the user goes on with it, here or while no process runs the session.
#[tokio::test]
async fn one_that_the_user_goes_on_with_asks_anew_also_in_the_next_process() {
    for reopens in [false, true] {
        let folder = repository();
        let root = folder.path();
        let recording =
            MORE.replace("  - parts: [{tool: send_message, input: {to: leo, message: Change it more.}}]\n", "");
        let mut journal = Journal::memory();
        let mut team = runtime_of(&journal, root, &recording);
        let (session, mut notices) = say(&team, root, editing(Which::New)).await;
        assert!(rest(&mut notices).await.waiting);
        let to = ["leo".to_owned()];
        if reopens {
            team.shutdown().await.unwrap();
            drop(team);
            journal = journal.reopen().unwrap();
            UserMail::new(&journal).write(&owner(), key("more"), session, &to, "Change it more.").await.unwrap();
            team = runtime_of(&journal, root, &recording);
            notices = team.watch();
            team.open(owner(), root, editing(Which::Latest)).await.unwrap();
        } else {
            order(&team, Command::Write { session, to: to.to_vec(), text: "Change it more.".into() }).await.unwrap();
        }
        let heard = rest(&mut notices).await;
        assert!(heard.waiting && read(root) == "one\n", "{:?}", heard.names());
        let second = asked(&heard);
        assert!(second.action.preview.contains("+three"), "{second:?}");
        order(&team, Command::Answer { session, question: second.question, answer: yes() }).await.unwrap();
        let heard = rest(&mut notices).await;
        assert!(!heard.waiting, "{:?}", heard.names());
        assert_eq!((read(root).as_str(), copies(root)), ("three\n", 0));
        assert_eq!((told(&journal, MOOT), told(&journal, "Changed again.")), (1, 1));
        check_rest(&journal);
    }
}

/// A teammate, which is called like the door that people come through here, and a task in the background, each of which asks before
/// it changes something.
const BOTH: &str = r#"
answers:
  - parts:
      - {tool: spawn_teammate, input: {name: test, role: writer, prompt: Change it., type: leo}}
      - {tool: spawn, input: {description: change it, prompt: Change it., type: ray, isolation: worktree}}
  - text: They are at it.
  - text: So they are.
  - text: So they are.
members:
  test: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Ann is done.}]
  ray: [{parts: [{tool: write_file, input: {path: b.txt, content: b}}]}, {text: Ray is done.}]
"#;

/// Whoever an interrupt has stopped goes on with what it was at, one of them or all, and for whom it was at it. Where one worked in a
/// copy in which nothing had changed, it gets another.
#[tokio::test]
async fn an_interrupted_agent_continues_for_its_caller() {
    for one_by_one in [true, false] {
        let folder = repository();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), BOTH);
        let mut open = leading(Which::New);
        open.settings.permissions.rules.push(super::worktrees::asking(folder.path()));
        let (session, mut notices) = say(&team, folder.path(), open).await;
        while UserMail::new(&journal).inbox().unwrap().len() < 2 {
            rest(&mut notices).await;
        }
        assert!(team.stopped(session).unwrap().is_empty());
        order(&team, Command::StopSession { session }).await.unwrap();
        while team.stopped(session).unwrap().len() < 2 || copies(folder.path()) > 0 {
            rest(&mut notices).await;
        }
        let names: Vec<String> = team.stopped(session).unwrap().into_iter().map(|reader| reader.name).collect();
        let refused =
            order(&team, Command::Continue { session, to: vec!["bob".into()] }).await.unwrap_err().to_string();
        assert!(refused.starts_with("`bob` was not interrupted") && refused.contains("test"), "{refused}");
        let lists = if one_by_one { names.iter().map(|name| vec![name.clone()]).collect() } else { vec![Vec::new()] };
        for to in lists {
            order(&team, Command::Continue { session, to: to.clone() }).await.unwrap();
            // Said again before it is heard, it is said once; behind that there is nobody to go on.
            drop(order(&team, Command::Continue { session, to }).await);
        }
        let told =
            envelopes(&journal, MessageKind::TaskAssign).into_iter().filter(|text| text == CONTINUE.trim_end()).count();
        assert_eq!(told, 2);
        assert_eq!(inputs(&journal, "max").len(), 1);
        while envelopes(&journal, MessageKind::TaskResult).iter().filter(|text| text.contains(" is done.")).count() < 2
        {
            rest(&mut notices).await;
        }
        assert!(team.stopped(session).unwrap().is_empty(), "they have gone on");
        let told = inputs(&journal, "max").join("\n");
        assert!(told.contains("Ann is done.") && told.contains("Ray is done."), "{told}");
        check_rest(&journal);
    }
}

/// Whether a command with this among its words runs on this machine.
fn runs(word: &str) -> bool {
    let has = |process: std::fs::DirEntry| {
        std::fs::read(process.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(word))
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(has)
}

/// What a teammate left running would change what the user looks at.
#[tokio::test]
async fn commands_of_one_that_is_no_more_end_before_the_user_is_asked() {
    let word = format!("86400.{}", std::process::id());
    let commanding = format!("new: two}}}}, {{tool: run_shell, input: {{command: sleep {word}, background: true}}}}]");
    let recording = TEAMMATE.replace("new: two}}]", &commanding);
    let folder = repository();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), &recording);
    let mut open = editing(Which::New);
    for teammate in &mut open.team.as_mut().unwrap().members {
        Arc::make_mut(&mut teammate.definition).tools.push("run_shell".into());
    }
    let (_, mut notices) = say(&team, folder.path(), open).await;
    let heard = rest(&mut notices).await;
    assert_eq!(asked(&heard).action.kind, ActionKind::Merge, "{:?}", heard.names());
    assert!(heard.names().contains(&"command_begun") && !runs(&word), "{:?}", heard.names());
}

/// The copy was taken from another terminal while nobody ran the session: who asked has nothing to ask any more, and what it had
/// said is not lost.
#[tokio::test]
async fn changes_taken_meanwhile_are_no_question_any_more() {
    let folder = repository();
    let root = folder.path();
    let journal = Journal::memory();
    let team = runtime_of(&journal, root, APART);
    let (_, mut notices) = say(&team, root, editing(Which::New)).await;
    assert!(rest(&mut notices).await.waiting);
    team.shutdown().await.unwrap();
    drop(team);
    Worktrees::within(&root.join("home")).list().pop().unwrap().remove().unwrap();

    let journal = journal.reopen().unwrap();
    let team = runtime_of(&journal, root, APART);
    let mut notices = team.watch();
    team.open(owner(), root, editing(Which::Latest)).await.unwrap();
    let heard = rest(&mut notices).await;
    assert!(!heard.waiting && heard.last_words().text == "It is over.", "{:?}", heard.names());
    let told = inputs(&journal, "max").pop().unwrap();
    assert!(told.contains("Changed.\n\n[The worktree is gone: its changes were accepted or rejected.]"), "{told}");
    assert!(UserMail::new(&journal).inbox().unwrap().is_empty());
    check_rest(&journal);
}

/// One process: until it dies with that commit, or until nothing is left to do.
fn live(recording: &str, journal: &Journal, root: &Path, dies_with: Option<(CrashPoint, u64)>) -> bool {
    super::lives(journal, dies_with, play(recording, journal, root))
}

async fn play(recording: &str, journal: &Journal, root: &Path) {
    let team = runtime_of(journal, root, recording);
    let mut notices = team.watch();
    let which = if team.sessions(1).unwrap().is_empty() { Which::New } else { Which::Latest };
    let session = team.open(owner(), root, editing(which)).await.unwrap().session;
    loop {
        let waiting = rest(&mut notices).await.waiting;
        let inbox = UserMail::new(journal).inbox().unwrap();
        let (key, command) = if !journal.has_mail(key("say")).unwrap() {
            (key("say"), Command::Say { session, text: "go".into() })
        } else if let Some(pending) = inbox.first() {
            let question = pending.row.question;
            (key(&question.to_string()), Command::Answer { session, question, answer: yes() })
        } else {
            assert!(!waiting);
            return;
        };
        team.command(Order { by: owner(), cwd: ".".into(), key, command }).await.unwrap();
    }
}

/// Before this commit nobody is at work in a copy.
const FIRST_COMMIT: u64 = 6;

/// Killed at every commit, the user is asked once, and what they said is done once and told once.
fn sweep(recording: &str, death: CrashPoint) {
    for commit in FIRST_COMMIT.. {
        let folder = repository();
        let mut journal = Journal::memory();
        let survived = live(recording, &journal, folder.path(), Some((death, commit)));
        if !survived {
            journal = journal.reopen().unwrap();
            assert!(live(recording, &journal, folder.path(), None), "killed at commit {commit}");
        }
        assert_eq!((read(folder.path()).as_str(), copies(folder.path())), ("two\n", 0), "killed at commit {commit}");
        let count = |name: &str| events(&journal).iter().filter(|(_, event)| event.name() == name).count();
        assert_eq!((count("review_begun"), count("question_asked")), (1, 1), "killed at commit {commit}");
        let told = envelopes(&journal, MessageKind::TaskResult);
        let is_true = |text: &&String| {
            // One that dies between the action and the word for it finds the copy gone.
            text.contains("1 file is in the project now")
                || (death == CrashPoint::Before && text.contains("The worktree is gone"))
        };
        assert_eq!(told.iter().filter(is_true).count(), 1, "{death:?} at commit {commit}: {told:?}");
        assert!(
            !told.iter().any(|text| text.contains("not in the project yet")),
            "{death:?} at commit {commit}: {told:?}"
        );
        if survived {
            assert!(commit > FIRST_COMMIT + 8, "a story that short proves nothing");
            break;
        }
    }
}

#[test]
fn a_background_task_asks_whenever_the_program_dies() {
    [CrashPoint::After, CrashPoint::Before].into_iter().for_each(|death| sweep(APART, death));
}

#[test]
fn a_teammate_asks_whenever_the_program_dies() {
    [CrashPoint::After, CrashPoint::Before].into_iter().for_each(|death| sweep(TEAMMATE, death));
}

/// A copy says whose it is: the teammate's name, of whatever type it is.
#[tokio::test]
async fn a_copy_is_named_after_the_teammate_in_it() {
    let folder = repository();
    let journal = Journal::memory();
    let recording =
        TEAMMATE.replace("name: leo", "name: wil").replace("to: leo", "to: wil").replace("  leo:", "  wil:");
    let team = runtime_of(&journal, folder.path(), &recording);
    let (_, mut notices) = say(&team, folder.path(), editing(Which::New)).await;
    rest(&mut notices).await;
    let [copy] = Worktrees::within(&folder.path().join("home")).list().try_into().unwrap();
    assert_eq!(copy.by(), "wil");
}

/// A lead that has had its turn, and two whom the user lets begin, each in a copy.
const LOADED: &str = r#"
answers: [{text: Hello.}, {text: Noted.}, {text: Noted.}]
members:
  ann: [{text: Here.}]
  bob: [{text: Here.}]
"#;

fn loaded() -> Vec<Spawn> {
    let teammate = |name: &str| Spawn { name: name.into(), prompt: "Be there.".into(), ..Spawn::default() };
    let apart = |name: &str| Spawn { isolation: Some(Isolation::Worktree), ..teammate(name) };
    vec![apart("ann"), apart("bob"), teammate("cid")]
}

fn teammates(journal: &Journal, session: SessionId) -> Vec<String> {
    let roll = ReadModel::new(journal).roll(session).unwrap();
    roll.teammates.into_iter().map(|teammate| teammate.person.name).collect()
}

/// What a turn that is over had to stop does not stop what is asked for afterwards.
#[tokio::test]
async fn a_team_that_works_in_copies_begins_after_a_turn() {
    let folder = repository();
    let root = folder.path();
    let journal = Journal::memory();
    let recording = LOADED.to_owned() + "  cid: [{text: Here.}]\n";
    let team = runtime_of(&journal, root, &recording);
    let (session, mut notices) = say(&team, root, editing(Which::New)).await;
    rest(&mut notices).await;
    order(&team, Command::Team { session, teammates: loaded() }).await.unwrap();
    let mut told = Vec::new();
    loop {
        match notices.recv().await.unwrap() {
            Notice::Copies { made, of, .. } => told.push((made, of)),
            Notice::Idle { .. } => break,
            _ => {}
        }
    }
    assert_eq!((told.first(), told.last()), (Some(&(0, 2)), Some(&(2, 2))), "{told:?}");
    assert_eq!(teammates(&journal, session), ["ann", "bob", "cid"]);
    check_rest(&journal);
}

/// The lead's model wants somebody, too, while copies are made for those whom the user wants.
const WANTED_TWICE: &str = r#"
answers:
  - text: Hello.
  - parts: [{tool: spawn_teammate, input: {name: ann, role: another, prompt: Be there.}}]
  - text: I leave it.
  - text: Noted.
  - text: Noted.
  - text: Noted.
members:
  ann: [{text: Here.}]
  bob: [{text: Here.}]
  cid: [{text: Here.}]
"#;

/// Whom somebody has asked for is as good as there, although copies are still made for them: a later order takes no name from them
/// and is told so at once, and the lead's model, too.
#[tokio::test]
async fn the_names_of_a_team_that_is_about_to_begin_are_taken() {
    let folder = repository();
    let root = folder.path();
    let journal = Journal::memory();
    let team = runtime_of(&journal, root, WANTED_TWICE);
    let (session, mut notices) = say(&team, root, editing(Which::New)).await;
    rest(&mut notices).await;
    team.close(session).await;
    let (post, number) = (UserMail::new(&journal), |number| EnvelopeId::new(Uuid::from_u128(number)));
    let plain = |name: &str| Spawn { name: name.into(), prompt: "Be there.".into(), ..Spawn::default() };
    let wanted = || vec![plain("ann"), plain("dan")];
    let names = |teammates: Vec<Spawn>| teammates.into_iter().map(|teammate| teammate.name).collect::<Vec<_>>();
    let (there, new) = team.newcomers(session, wanted()).unwrap();
    assert_eq!((names(there), names(new)), (vec![], vec!["ann".to_owned(), "dan".to_owned()]));
    post.recruit(&owner(), number(9), session, &loaded()).await.unwrap();
    let (there, new) = team.newcomers(session, wanted()).unwrap();
    assert_eq!((names(there), names(new)), (vec!["ann".to_owned()], vec!["dan".to_owned()]));
    // Somebody did not look before.
    post.recruit(&owner(), number(10), session, &wanted()).await.unwrap();
    post.write(&owner(), number(11), session, &["max".to_owned()], "start ann").await.unwrap();
    team.open(owner(), root, editing(Which::Id(session))).await.unwrap();
    let heard = rest(&mut notices).await;
    let refused = events(&journal).into_iter().filter_map(|(_, event)| match event {
        Event::MessageRefused(refused) => Some((refused.envelope, refused.why)),
        _ => None,
    });
    let words = "`ann`: `ann` is about to begin: choose another name";
    assert_eq!(refused.collect::<Vec<_>>(), [(number(10), words.to_owned())]);
    let [(words, is_error)] = came_to(&heard, "max");
    assert!(is_error && words.contains("`ann` is about to begin: write to it with `send_message` once"), "{words}");
    assert_eq!(teammates(&journal, session), ["ann", "bob", "cid"]);
    check_rest(&journal);
}

/// Somebody says stop while the copies are made, wherever the program then dies: nobody begins, and no copy stays. Also where
/// something newer is said at once.
#[test]
fn a_team_can_be_stopped_before_it_has_begun() {
    [false, true].into_iter().for_each(|speaks| stopped_before_it_has_begun(&loaded(), speaks));
}

/// The same where nothing has to be copied, so that all could begin at once.
#[test]
fn a_team_can_be_stopped_that_could_begin_at_once() {
    let whole: Vec<Spawn> = loaded().into_iter().filter(|teammate| teammate.isolation.is_none()).collect();
    [false, true].into_iter().for_each(|speaks| stopped_before_it_has_begun(&whole, speaks));
}

fn stopped_before_it_has_begun(teammates_wanted: &[Spawn], speaks: bool) {
    for commit in 1.. {
        let folder = repository();
        let (root, journal) = (folder.path(), Journal::memory());
        let meet = async {
            let team = runtime_of(&journal, root, LOADED);
            let (session, mut notices) = say(&team, root, editing(Which::New)).await;
            rest(&mut notices).await;
            team.shutdown().await.unwrap();
            session
        };
        let mut met = None;
        assert!(super::lives(&journal, None, async { met = Some(meet.await) }));
        let (session, journal) = (met.unwrap(), journal.reopen().unwrap());
        let ask = async {
            let post = UserMail::new(&journal);
            post.recruit(&owner(), EnvelopeId::new(Uuid::from_u128(9)), session, teammates_wanted).await.unwrap();
            post.stop_session(&owner(), session).await.unwrap();
            if speaks {
                let key = EnvelopeId::new(Uuid::from_u128(11));
                post.write(&owner(), key, session, &["max".to_owned()], "and now?").await.unwrap();
            }
        };
        assert!(super::lives(&journal, None, ask));
        let open = async |journal: &Journal| {
            let team = runtime_of(journal, root, LOADED);
            let mut notices = team.watch();
            team.open(owner(), root, editing(Which::Latest)).await.unwrap();
            rest(&mut notices).await;
        };
        let survived = super::lives(&journal, Some((CrashPoint::After, commit)), open(&journal));
        let journal = journal.reopen().unwrap();
        told_to_nobody_once_refused(&journal, session, usize::from(speaks));
        assert!(super::lives(&journal, None, open(&journal)));
        let refused = events(&journal).into_iter().filter_map(|(_, event)| match event {
            Event::MessageRefused(refused) => Some(refused.why),
            _ => None,
        });
        assert_eq!(refused.collect::<Vec<_>>(), ["stopped before anybody had begun"], "killed at commit {commit}");
        assert!(teammates(&journal, session).is_empty(), "killed at commit {commit}");
        assert!(Worktrees::within(&root.join("home")).list().is_empty(), "killed at commit {commit}");
        if survived {
            assert!(commit > 2, "a story that short proves nothing");
            break;
        }
    }
}

/// A request that was refused lies there till its copies are gone, and is none of what the lead will be told.
fn told_to_nobody_once_refused(journal: &Journal, session: SessionId, said_since: usize) {
    let is_refused = events(journal).iter().any(|(_, event)| matches!(event, Event::MessageRefused(_)));
    let unread = ReadModel::new(journal).roll(session).unwrap().lead.unwrap().unread;
    assert!(!is_refused || unread <= said_since, "{unread} unread");
}

/// Nothing was ever said in it; all the same somebody wanted a team there, and no message waits for its lead.
#[tokio::test]
async fn a_session_in_which_only_a_team_was_stopped_is_one() {
    let folder = repository();
    let root = folder.path();
    let journal = Journal::memory();
    let team = runtime_of(&journal, root, LOADED);
    let (_, mut notices) = say(&team, root, editing(Which::New)).await;
    rest(&mut notices).await;
    let opened = team.open(owner(), root, editing(Which::New)).await.unwrap();
    let session = opened.session;
    team.close(session).await;
    let post = UserMail::new(&journal);
    post.recruit(&owner(), EnvelopeId::new(Uuid::from_u128(9)), session, &loaded()).await.unwrap();
    post.stop_session(&owner(), session).await.unwrap();
    assert_eq!(team.held(session).unwrap(), 0, "whoever does not begin is no letter");
    for when in ["before it is read", "after"] {
        let latest = team.open(owner(), root, editing(Which::Latest)).await.unwrap();
        assert_eq!(latest.session, session, "{when}");
        rest(&mut notices).await;
        let listed = team.sessions(5).unwrap();
        let names: Vec<&str> = listed.iter().map(|row| row.preview.as_str()).collect();
        assert_eq!((names[0], names.len()), ("@ann @bob @cid", 2), "{when}");
        assert_eq!(team.held(session).unwrap(), 0, "{when}");
        team.close(session).await;
    }
    assert!(teammates(&journal, session).is_empty());
    check_rest(&journal);
}

/// One copy cannot be made: nobody begins, and the other one does not stay.
#[tokio::test]
async fn copies_of_a_team_that_does_not_begin_do_not_stay() {
    let folder = repository();
    let root = folder.path();
    let journal = Journal::memory();
    let team = runtime_of(&journal, root, LOADED);
    let (session, mut notices) = say(&team, root, editing(Which::New)).await;
    rest(&mut notices).await;
    let key = EnvelopeId::new(Uuid::from_u128(9));
    let lead = ReadModel::new(&journal).roll(session).unwrap().lead.unwrap().person.agent.unwrap();
    let start = format!("{key}.1");
    let stream = format!("agent/{lead}");
    let bob = AgentId::new(Hash::of_fields(&[stream.as_bytes(), start.as_bytes(), b"dispatch"]).uuid());
    let copies_folder = root.join("home/copies");
    std::fs::create_dir_all(&copies_folder).unwrap();
    std::fs::write(copies_folder.join(bob.to_string()), "in the way").unwrap();
    let command = Command::Team { session, teammates: loaded() };
    team.command(Order { by: owner(), cwd: String::new(), key, command }).await.unwrap();
    rest(&mut notices).await;
    let refused = events(&journal).into_iter().find_map(|(_, event)| match event {
        Event::MessageRefused(refused) => Some(refused.why),
        _ => None,
    });
    let why = refused.unwrap();
    assert!(why.starts_with("`bob`: there is no copy to work in") && !why.contains("`ann`"), "{why}");
    assert!(teammates(&journal, session).is_empty());
    let left: Vec<_> = std::fs::read_dir(&copies_folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [bob.to_string().as_str()], "nobody would own it");
    check_rest(&journal);
}
