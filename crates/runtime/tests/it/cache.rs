//! Experts whose answers serve again: who is called, who waits, and what a caller is told.

use std::path::Path;

use max_team_core::delegation::tool_filter::{GENERAL, TASK};
use max_team_core::event::{Event, LlmOutcome};
use max_team_journal::Journal;
use max_team_runtime::{Caches, Command, Notice, TeamHandle, UserMail, Which, project_entry};
use tokio::sync::mpsc;

use super::calls::{alone, calling, came_to, inputs, say, started};
use super::crashes::{check_rest, events, key};
use super::team::{Heard, rest};
use super::{order, owner, project, runtime_of, yes};

const FIRST: &str = r#"{"args":{"port":"Hamburg"},"cache_data":null}"#;

/// Answers that the models gave for these experts.
fn answered(journal: &Journal) -> usize {
    let streams: Vec<String> =
        started(journal, "tides").iter().map(|started| format!("agent/{}", started.agent)).collect();
    let all = events(journal).into_iter().filter(|(stream, _)| streams.contains(stream));
    all.filter(|(_, event)| matches!(event, Event::LlmEnded(ended) if matches!(ended.outcome, LlmOutcome::Done(_))))
        .count()
}

async fn play(journal: &Journal, root: &Path, recording: &str) -> Heard {
    let team = runtime_of(journal, root, recording);
    let (_, mut notices) = say(&team, root, calling(Which::New)).await;
    let heard = rest(&mut notices).await;
    check_rest(journal);
    heard
}

#[tokio::test]
async fn the_same_call_is_answered_without_a_model_and_one_like_it_with_what_was_found() {
    let recording = r#"
answers:
  - parts: [{tool: task, input: {agent: tides, arguments: {port: Hamburg}}}]
  - parts:
      - {tool: task, input: {agent: tides, arguments: {port: Hamburg}}}
      - {tool: task, input: {agent: tides, arguments: {port: Hamburg, units: ft}}}
  - parts: [{tool: task, input: {agent: tides, arguments: {units: ft, port: Hamburg}}}]
  - parts: [{tool: task, input: {agent: tides, arguments: {port: Bremen}}}]
  - text: Done.
members:
  tides/1.0: [{text: "---RESULT---\n{\"m\": 3}\n---TEXT---\nThree metres."}]
  tides/2.1: [{text: "---TEXT---\nTen feet."}]
  tides/4.0: [{text: "Two metres.\n---CACHE---\n{\"m\": 2}"}]
"#;
    let folder = project();
    let journal = Journal::memory();
    let heard = play(&journal, folder.path(), recording).await;
    let [(first, false), (again, false), (feet, false), (feet_again, false), (bremen, false)] = came_to(&heard, "max")
    else {
        panic!()
    };
    assert!(first.starts_with("Three metres.\n\n[To ask it more: `send_message` to `tides-"), "{first}");
    assert_eq!(again, "Three metres.\n\n[From the cache of `tides`, less than a minute old; `fresh: true` asks anew.]");
    assert!(feet.starts_with("Ten feet."), "{feet}");
    assert_eq!(
        feet_again,
        "Ten feet.\n\n[From the cache of `tides`, less than a minute old; `fresh: true` asks anew.]"
    );
    assert!(bremen.starts_with("Two metres.") && !bremen.contains("CACHE"), "{bremen}");
    let with_data = r#"{"args":{"port":"Hamburg","units":"ft"},"cache_data":{"m":3}}"#;
    assert_eq!(inputs(&journal, "tides"), [FIRST, with_data, r#"{"args":{"port":"Bremen"},"cache_data":null}"#]);
    assert_eq!(answered(&journal), 3);

    // Another session, another process: it is still there, and what was said about it is as old as what was found.
    let entries = Caches::new(&journal).entries("tides").unwrap();
    let [_, feet, metres] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((feet.created_at_ms, &feet.data, &feet.key), (metres.created_at_ms, &metres.data, &metres.key));
    let journal = journal.reopen().unwrap();
    journal.rebuild(project_entry).unwrap();
    assert_eq!(Caches::new(&journal).entries("tides").unwrap(), entries, "all of it follows from the log");
    let one = r#"
answers:
  - parts: [{tool: task, input: {agent: tides, arguments: {port: Hamburg}}}]
  - text: Done.
"#;
    let heard = play(&journal, folder.path(), one).await;
    let [(words, false)] = came_to(&heard, "max") else { panic!() };
    assert!(words.starts_with("Three metres.\n\n[From the cache"), "{words}");
    assert_eq!(answered(&journal), 3);

    // Elsewhere it is another matter.
    let elsewhere = project();
    let heard = play(&journal, elsewhere.path(), &format!("{one}members:\n  tides: [{{text: None here.}}]\n")).await;
    let [(words, false)] = came_to(&heard, "max") else { panic!() };
    assert!(words.starts_with("None here."), "{words}");

    assert_eq!(Caches::new(&journal).experts().unwrap(), ["tides"]);
    assert_eq!(Caches::new(&journal).clear("tides", &owner()).await.unwrap(), 4);
    assert_eq!(Caches::new(&journal).clear("tides", &owner()).await.unwrap(), 0);
    assert!(Caches::new(&journal).entries("tides").unwrap().is_empty());
}

/// Newer data under the same keys displaces an older answer, and `fresh` asks anew.
#[tokio::test]
async fn an_answer_is_displaced_by_newer_data_and_asked_for_anew() {
    let recording = r#"
answers:
  - parts: [{tool: task, input: {agent: tides, arguments: {port: Hamburg}}}]
  - parts: [{tool: task, input: {agent: tides, arguments: {port: Hamburg, units: ft}}}]
  - parts: [{tool: task, input: {agent: tides, arguments: {port: Hamburg}}}]
  - parts: [{tool: task, input: {agent: tides, arguments: {port: Hamburg}, fresh: true}}]
  - text: Done.
members:
  tides/1.0: [{text: "---RESULT---\n{\"m\": 3}\n---TEXT---\nThree metres."}]
  tides/2.0: [{text: "---RESULT---\n{\"m\": 4}\n---TEXT---\nThirteen feet now."}]
  tides/3.0: [{text: "---TEXT---\nFour metres."}]
  tides/4.0: [{text: "---RESULT---\n{\"m\": 5}\n---TEXT---\nFive metres."}]
"#;
    let (folder, journal) = (project(), Journal::memory());
    let heard = play(&journal, folder.path(), recording).await;
    let [_, _, (third, false), (fourth, false)] = came_to(&heard, "max") else { panic!() };
    assert!(third.starts_with("Four metres."), "not the older answer: {third}");
    assert!(fourth.starts_with("Five metres."), "{fourth}");
    let with_data = r#"{"args":{"port":"Hamburg"},"cache_data":{"m":4}}"#;
    let told = inputs(&journal, "tides");
    assert_eq!((told[2].as_str(), told[3].as_str()), (with_data, FIRST));
    let entries = Caches::new(&journal).entries("tides").unwrap();
    assert_eq!(entries.len(), 1, "what newer data has displaced is gone: {entries:?}");
}

const TWINS: &str = r#"
answers:
  - parts:
      - {tool: task, input: {agent: tides, arguments: {port: Hamburg}}}
      - {tool: task, input: {agent: tides, arguments: {port: Hamburg}}}
      - {tool: task, input: {agent_name: tides, arguments: {port: Hamburg}}}
  - text: Done.
members:
"#;

#[tokio::test]
async fn the_same_call_in_one_answer_is_made_once() {
    let folder = project();
    let journal = Journal::memory();
    let heard = play(&journal, folder.path(), &format!("{TWINS}  tides: [{{text: Three metres.}}]\n")).await;
    let [(first, false), (second, false), (third, false)] = came_to(&heard, "max") else { panic!() };
    assert!(first.starts_with("Three metres.\n\n[To ask it more: `send_message`"), "{first}");
    assert_eq!(
        second,
        "Three metres.\n\n[From the cache of `tides`, less than a minute old; `fresh: true` asks anew.]"
    );
    assert_eq!(second, third);
    assert_eq!((inputs(&journal, "tides").len(), answered(&journal)), (1, 1));
}

#[tokio::test]
async fn if_the_first_fails_the_next_one_runs() {
    let folder = project();
    let journal = Journal::memory();
    let members =
        "  tides/1.0: [{fails: invalid_request, detail: no such port}]\n  tides/1.1: [{text: Three metres.}]\n";
    let heard = play(&journal, folder.path(), &format!("{TWINS}{members}")).await;
    let [(first, true), (second, false), (third, false)] = came_to(&heard, "max") else { panic!() };
    assert!(first.starts_with("`tides` did not finish"), "{first}");
    assert!(second.starts_with("Three metres.\n\n[To ask it more: `send_message`"), "{second}");
    assert_eq!(third, "Three metres.\n\n[From the cache of `tides`, less than a minute old; `fresh: true` asks anew.]");
    assert_eq!((inputs(&journal, "tides").len(), answered(&journal)), (2, 1));
}

/// Two of one session, each of whom calls the same.
const TWO: &str = r#"
answers:
  - parts:
      - {tool: agent, input: {description: one, prompt: One.}}
      - {tool: agent, input: {description: other, prompt: Other.}}
  - text: Done.
members:
  general: [{parts: [{tool: task, input: {agent: tides, arguments: {port: Hamburg}}}]}, {text: I know.}]
"#;

async fn two(journal: &Journal, root: &Path, tides: &str) -> (TeamHandle, mpsc::Receiver<Notice>, Heard) {
    let team = runtime_of(journal, root, &format!("{TWO}  tides: [{tides}]\n"));
    let mut open = alone(2);
    open.definition.tools.push(TASK.to_owned());
    let (_, mut notices) = say(&team, root, open).await;
    let heard = rest(&mut notices).await;
    (team, notices, heard)
}

#[tokio::test]
async fn the_same_call_of_two_agents_is_made_once() {
    let folder = project();
    let journal = Journal::memory();
    let (_team, _, heard) = two(&journal, folder.path(), "{text: Three metres.}").await;
    check_rest(&journal);
    let told: [(String, bool); 2] = came_to(&heard, GENERAL);
    assert!(told.iter().all(|(text, is_error)| text.starts_with("Three metres.") && !is_error), "{told:?}");
    assert_eq!(told.iter().filter(|(text, _)| text.contains("From the cache of `tides`")).count(), 1, "{told:?}");
    assert_eq!((started(&journal, "tides").len(), answered(&journal)), (1, 1));
}

#[tokio::test]
async fn if_whoever_made_the_call_is_stopped_it_is_the_others_turn() {
    let folder = project();
    let journal = Journal::memory();
    let asks = "{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Three metres.}";
    let (team, mut notices, heard) = two(&journal, folder.path(), asks).await;
    assert!(heard.waiting);
    let [first] = started(&journal, "tides").try_into().unwrap_or_else(|all| panic!("the other waits: {all:?}"));
    let caller = first.assignment.unwrap().reply_to.strip_prefix("agent/").unwrap().parse().unwrap();
    UserMail::new(&journal).stop_agent(&owner(), key("stop"), caller).await.unwrap();
    // The first says that it was stopped, then the second asks.
    while started(&journal, "tides").len() < 2 {
        rest(&mut notices).await;
    }
    let inbox = loop {
        let inbox = UserMail::new(&journal).inbox().unwrap();
        match inbox.as_slice() {
            [one] if one.row.address != format!("agent/{}", first.agent) => break inbox,
            _ => rest(&mut notices).await,
        };
    };
    let question = inbox[0].row.question;
    order(&team, Command::Answer { session: first.session, question, answer: yes() }).await.unwrap();
    let heard = rest(&mut notices).await;
    assert!(!heard.waiting);
    check_rest(&journal);
    let told = came_to::<1>(&heard, GENERAL);
    assert!(told[0].0.starts_with("Three metres.\n\n[To ask it more: `send_message`"), "{told:?}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "two\n");
}
