//! Windows that are summed up: what survives, what a model is shown afterwards, and the way back.

use max_team_core::context::summary::{Compacted, CompactionReason};
use max_team_core::event::Event;
use max_team_journal::Journal;
use max_team_llm::Replay;
use max_team_runtime::query;
use max_team_runtime::{Command, ReadModel, RuntimeError, SpanKind, Which};

use super::crashes::events;
use super::{open, order, owner, project, runtime_with, until};

const RECORDING: &str = r#"
answers:
  - parts: [{tool: read_file, input: {path: a.txt}}]
  - text: It says one.
  - text: They looked at a file.
  - {text: It says one., given: They looked at a file., otherwise: I have forgotten everything.}
"#;

fn compacted(journal: &Journal) -> Compacted {
    let found = events(journal).into_iter().find_map(|(_, event)| match event {
        Event::Compacted(compacted) => Some(compacted),
        _ => None,
    });
    found.unwrap()
}

#[tokio::test]
async fn a_conversation_becomes_a_summary_and_comes_back() {
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_with(&journal, folder.path(), Replay::read(RECORDING).unwrap());
    let mut notices = team.watch();
    let session = team.open(owner(), folder.path(), open(Which::New)).await.unwrap().session;
    let say = |text: &str| Command::Say { session, text: text.into() };

    let nothing = order(&team, Command::Compact { session, keep: String::new() }).await;
    assert!(matches!(nothing, Err(RuntimeError::NothingToCompact)), "{nothing:?}");
    let nothing = order(&team, Command::Uncompact { session }).await;
    assert!(matches!(nothing, Err(RuntimeError::NothingCompacted)), "{nothing:?}");

    order(&team, say("What does `a.txt` say?")).await.unwrap();
    until(&mut notices, "turn_ended").await;
    let whole = team.ask(query::Details { session }).await.unwrap();
    order(&team, Command::Compact { session, keep: "the file".into() }).await.unwrap();
    until(&mut notices, "turn_ended").await;
    let short = team.ask(query::Details { session }).await.unwrap();
    assert_eq!((whole.messages, short.messages), ((4, 4), (0, 4)));

    // What must survive was written by us.
    let done = compacted(&journal);
    assert_eq!((done.why, done.before, done.summary.as_str()), (CompactionReason::Asked, 4, "They looked at a file."));
    assert!(done.facts.contains("- `a.txt`: read"), "{}", done.facts);
    assert!(done.facts.contains("word for word:\nWhat does `a.txt` say?"), "{}", done.facts);

    // The next request begins with it; the user was not answered by it.
    order(&team, say("And what did it say?")).await.unwrap();
    let ended = until(&mut notices, "turn_ended").await;
    let Event::TurnEnded(ended) = &*ended else { panic!("{ended:?}") };
    assert_eq!(ended.text, "It says one.");
    let replies = events(&journal).into_iter().filter(|(_, event)| matches!(event, Event::Replied(_))).count();
    assert_eq!(replies, 2);

    order(&team, Command::Uncompact { session }).await.unwrap();
    assert_eq!(team.ask(query::Details { session }).await.unwrap().messages, (6, 6));
    let trace = ReadModel::new(&journal).trace_session(session).unwrap();
    let spans = trace.children.iter().flat_map(|turn| &turn.children);
    let shown: Vec<String> =
        spans.filter(|span| span.kind == SpanKind::Compaction).map(|span| span.name.clone().into()).collect();
    assert_eq!(shown, ["4 → 1 messages", "taken back"]);
}
