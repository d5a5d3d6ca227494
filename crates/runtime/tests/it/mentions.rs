//! Files that a message mentions stand in the journal with it, whoever takes the message in.

use max_team_core::chat::Part;
use max_team_core::event::{Event, TurnOutcome};
use max_team_journal::Journal;
use max_team_runtime::{Command, Which};

use super::crashes::events;
use super::{open, order, owner, project, runtime_of, until, yes};

const RECORDING: &str = r#"
answers:
  - {text: It says kiwi., given: kiwi, otherwise: I see no file.}
  - {text: It still says kiwi., given: kiwi, otherwise: It is gone.}
"#;

#[tokio::test]
async fn a_mentioned_file_is_journalled_with_the_message_and_kept() {
    let (folder, journal) = (project(), Journal::memory());
    std::fs::write(folder.path().join("a.txt"), "kiwi\n").unwrap();
    // The lead has that name.
    std::fs::write(folder.path().join("solo"), "").unwrap();
    let team = runtime_of(&journal, folder.path(), RECORDING);
    let mut notices = team.watch();
    let session = team.open(owner(), folder.path(), open(Which::New)).await.unwrap().session;
    order(&team, Command::Say { session, text: "what is in @a.txt? not @b.txt, @solo".into() }).await.unwrap();
    let started = until(&mut notices, "turn_started").await;
    let Event::TurnStarted(started) = &*started else { panic!("{started:?}") };
    let want =
        [Part::text("what is in @a.txt? not @b.txt, @solo"), Part::text("<file path=\"a.txt\">\n1\tkiwi\n</file>")];
    assert_eq!(started.input, want);
    let Event::TurnEnded(ended) = &*until(&mut notices, "turn_ended").await.clone() else { panic!() };
    assert_eq!((&ended.end, ended.text.as_str()), (&TurnOutcome::Answered, "It says kiwi."));

    // The file changes and the process ends: what was said stays as it was.
    std::fs::write(folder.path().join("a.txt"), "two\n").unwrap();
    team.close(session).await;
    let team = runtime_of(&journal, folder.path(), RECORDING);
    let mut notices = team.watch();
    let opened = team.open(owner(), folder.path(), open(Which::Id(session))).await.unwrap();
    assert!(opened.history.iter().any(|message| message.text().contains("1\tkiwi")), "{:?}", opened.history);
    order(&team, Command::Say { session, text: "and now?".into() }).await.unwrap();
    let Event::TurnEnded(ended) = &*until(&mut notices, "turn_ended").await.clone() else { panic!() };
    assert_eq!(ended.text, "It still says kiwi.");
}

const STEERED: &str = r#"
answers:
  - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
  - {text: I read it., given: kiwi, otherwise: I see no file.}
"#;

#[tokio::test]
async fn a_message_during_a_turn_brings_its_files() {
    let (folder, journal) = (project(), Journal::memory());
    std::fs::write(folder.path().join("b.txt"), "kiwi\n").unwrap();
    let team = runtime_of(&journal, folder.path(), STEERED);
    let mut notices = team.watch();
    let session = team.open(owner(), folder.path(), open(Which::New)).await.unwrap().session;
    order(&team, Command::Say { session, text: "change it".into() }).await.unwrap();
    let asked = until(&mut notices, "question_asked").await;
    let Event::QuestionAsked(asked) = &*asked else { panic!("{asked:?}") };
    order(&team, Command::Say { session, text: "look at @b.txt first".into() }).await.unwrap();
    order(&team, Command::Answer { session, question: asked.question, answer: yes() }).await.unwrap();
    let Event::TurnEnded(ended) = &*until(&mut notices, "turn_ended").await.clone() else { panic!() };
    assert_eq!(ended.text, "I read it.");
    let steered = events(&journal).into_iter().find_map(|(_, event)| match event {
        Event::Steered(steered) => Some(steered.input),
        _ => None,
    });
    assert_eq!(steered.map(|input| input.len()), Some(2));
}
