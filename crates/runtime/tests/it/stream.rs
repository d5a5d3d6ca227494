//! The stream of a team at work: the same for whoever reads it, from wherever, however slowly.

use std::time::Duration;

use max_team_core::plan::event::{ApprovalMode, PlanDecision};
use max_team_journal::Journal;
use max_team_runtime::query;
use max_team_runtime::{Command, Mark, Scope, StreamEvent, StreamReader, TeamHandle, What, Which};
use tokio::time::timeout;

use super::read::Reads as _;
use super::team::{FEATURE, ask, repository, rest};
use super::{open, order, owner, project, runtime_of};

/// Nobody waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);

async fn next(reader: &mut StreamReader) -> StreamEvent {
    timeout(PATIENCE, reader.next()).await.unwrap().unwrap()
}

fn read(journal: &Journal, scope: Scope, from: Mark) -> Vec<StreamEvent> {
    let mut reader = StreamReader::open(journal, scope, from).unwrap();
    std::iter::from_fn(|| reader.try_next().unwrap()).collect()
}

fn is_delta(event: &StreamEvent) -> bool {
    matches!(event.what, What::ContentDelta { .. })
}

fn is_over(event: &StreamEvent) -> bool {
    matches!(event.what, What::Final { .. } | What::Error { done: true, .. })
        && event.agent.as_ref().is_some_and(|who| who.lead)
}

#[tokio::test]
async fn a_follower_of_a_plan_has_seen_the_events_of_the_log() {
    let (folder, journal) = (repository(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), FEATURE);
    let mut reader = team.stream(Scope::All, Mark::default()).unwrap();
    let (session, mut notices) = ask(&team, folder.path(), ApprovalMode::Plan).await;
    let (question, _) = rest(&mut notices).await.asked();
    order(&team, Command::Decide { question, say: PlanDecision::Approve }).await.unwrap();
    rest(&mut notices).await;
    let whole = read(&journal, Scope::Session(session), Mark::default());
    let mut followed = Vec::new();
    while followed.last() != whole.last() {
        followed.push(next(&mut reader).await);
    }
    followed.retain(|event| !is_delta(event));
    assert_eq!(followed, whole);
    let types: Vec<&str> = whole.iter().map(|event| event.what.name()).collect();
    for name in What::TYPES.iter().filter(|name| !["content_delta", "error"].contains(name)) {
        assert!(types.contains(name), "{name} in {types:?}");
    }
    // Wherever somebody goes on, they hear the rest.
    for (number, event) in whole.iter().enumerate() {
        assert_eq!(read(&journal, Scope::Session(session), event.mark()), whole.get(number + 1..).unwrap());
    }
    let leo = team.read(query::Agents { session }).unwrap().into_iter().find(|row| row.name == "leo").unwrap().agent;
    let own = read(&journal, Scope::Agent(session, leo), Mark::default());
    let finals: Vec<&What> = own.iter().map(|event| &event.what).filter(|what| what.name() == "final").collect();
    assert!(
        matches!(finals.as_slice(), [What::Final { response, iteration: 2, .. }] if response == "Written."),
        "{finals:?}"
    );
}

async fn say(team: &TeamHandle, root: &std::path::Path, rounds_max: u32) -> max_team_core::id::SessionId {
    let mut open = open(Which::New);
    // Nothing is to be summed up on the way.
    (open.settings.rounds_max, open.settings.model.context_tokens) = (rounds_max, 10_000_000);
    let session = team.open(owner(), root, open).await.unwrap().session;
    order(team, Command::Say { session, text: "go".into() }).await.unwrap();
    session
}

#[tokio::test]
async fn pieces_of_an_answer_come_before_it_and_lead_on_to_it() {
    let recording = "answers:\n  - {text: \"one two three four\", delta_ms: 1}\n";
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), recording);
    let mut reader = team.stream(Scope::All, Mark::default()).unwrap();
    say(&team, folder.path(), 4).await;
    let mut seen = Vec::new();
    while !seen.last().is_some_and(is_over) {
        seen.push(next(&mut reader).await);
    }
    let (pieces, rest): (Vec<_>, Vec<_>) = seen.iter().partition(|event| is_delta(event));
    let words = pieces.iter().map(|event| match &event.what {
        What::ContentDelta { delta, iteration: 1, .. } => delta.as_str(),
        other => panic!("{other:?}"),
    });
    assert_eq!(words.collect::<String>(), "one two three four");
    // Whoever goes on behind a piece misses nothing that is in the log.
    let after = read(&journal, Scope::All, pieces.first().unwrap().mark());
    let came_after = rest.iter().filter(|event| event.seq > pieces.first().unwrap().seq).count();
    assert!(came_after > 0 && after.len() >= came_after);
    assert_eq!(after.first().unwrap().seq, pieces.first().unwrap().seq + 1);
}

/// Whoever comes too late for all pieces of an answer is shown its beginning and no more, and then the whole of it.
#[tokio::test]
async fn pieces_never_have_a_gap() {
    let words: String = (0..3_000).map(|number| format!("{number} ")).collect();
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), &format!("answers:\n  - text: \"{words}end\"\n"));
    let mut late = team.stream(Scope::All, Mark::default()).unwrap();
    let mut quick = team.stream(Scope::All, Mark::default()).unwrap();
    say(&team, folder.path(), 4).await;
    while !is_over(&next(&mut quick).await) {}
    let (mut shown, mut whole) = (String::new(), String::new());
    while whole.is_empty() {
        match next(&mut late).await.what {
            What::ContentDelta { delta, .. } => shown.push_str(&delta),
            What::Final { response, .. } => whole = response,
            _ => {}
        }
    }
    assert_eq!(whole, format!("{words}end"));
    assert!(!shown.is_empty() && shown.len() < whole.len() && whole.starts_with(&shown), "{}", shown.len());
}

/// Somebody who watches and never listens, somebody who reads and never goes on: the team finishes, and whoever looks
/// afterwards finds everything.
#[tokio::test]
async fn no_agent_waits_for_a_slow_reader() {
    let (answers, calls) = (80, 64);
    let mut recording = "answers:\n".to_owned();
    for answer in 0..answers {
        recording.push_str("  - parts:\n");
        for call in 0..calls {
            // Answers that are all alike would end the turn.
            let path = if call == 0 { format!("{answer}.txt") } else { "a.txt".to_owned() };
            recording.push_str(&format!("      - {{tool: read_file, input: {{path: {path}}}}}\n"));
        }
    }
    recording.push_str("  - text: All looked at.\n");
    let (folder, journal) = (project(), Journal::memory());
    let team = runtime_of(&journal, folder.path(), &recording);
    let deaf = team.watch();
    let mut late = team.stream(Scope::All, Mark::default()).unwrap();
    let session = say(&team, folder.path(), answers + 1).await;
    let mut quick = team.stream(Scope::Session(session), Mark::default()).unwrap();
    let over = loop {
        let event = next(&mut quick).await;
        if is_over(&event) {
            break event;
        }
    };
    assert!(journal.last_seq().unwrap() > 10_000, "{over:?}");
    assert!(deaf.len() > 10_000, "everything that happened waits for it");
    let mut heard = Vec::new();
    while !heard.last().is_some_and(is_over) {
        heard.push(next(&mut late).await);
    }
    let results = heard.iter().filter(|event| event.what.name() == "tool_result").count();
    assert_eq!(results, usize::try_from(answers * calls).unwrap());
}

/// Another process that follows is woken by what happens, not by a clock.
#[tokio::test]
async fn another_handle_on_the_journal_follows_without_a_runtime() {
    let (folder, home) = (project(), tempfile::tempdir().unwrap());
    let journal = Journal::open(home.path(), max_team_journal::Options::default()).unwrap();
    let other = journal.reopen().unwrap();
    let mut reader = StreamReader::open(&other, Scope::All, Mark::default()).unwrap();
    let follow = tokio::spawn(async move {
        let mut seen = Vec::new();
        while !seen.last().is_some_and(is_over) {
            seen.push(next(&mut reader).await);
        }
        seen
    });
    let team = runtime_of(&journal, folder.path(), "answers:\n  - text: Hello.\n");
    say(&team, folder.path(), 4).await;
    let seen = timeout(PATIENCE, follow).await.unwrap().unwrap();
    let types: Vec<&str> = seen.iter().map(|event| event.what.name()).collect();
    assert_eq!(types, ["status", "agent", "mail", "agent", "session", "status", "budget", "final"]);
    team.shutdown().await.unwrap();
}
