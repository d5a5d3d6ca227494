//! Teammates: they stay, write to each other and to their lead, wait at no cost, and end by a handshake.

use max_team_core::delegation::tool_filter::{CHECK_INBOX, GENERAL, SPAWN, SPAWN_TEAMMATE, SPAWNED};
use max_team_core::event::{Event, TurnOutcome};
use max_team_core::message::MessageKind;
use max_team_core::policy::Mode;
use max_team_journal::Journal;
use max_team_runtime::{Command, OpenOptions, Which, new_id};

use super::calls::{calling, came_to, inputs, say, started};
use super::crashes::{check_rest, events};
use super::team::{Heard, rest};
use super::{order, project, runtime_of};

/// A lead that starts teammates.
pub(crate) fn leading(which: Which) -> OpenOptions {
    let mut open = calling(which);
    open.definition.tools.extend([SPAWN_TEAMMATE, CHECK_INBOX, SPAWN, SPAWNED].map(str::to_owned));
    open
}

/// The messages of a kind that were sent, by the words in them.
pub(crate) fn envelopes(journal: &Journal, kind: MessageKind) -> Vec<String> {
    let mailed = events(journal).into_iter().filter_map(|(_, event)| match event {
        Event::Mailed(envelope) if envelope.kind == kind => Some(envelope),
        _ => None,
    });
    mailed
        .map(|envelope| envelope.body.get("text").and_then(|text| text.as_str()).unwrap_or_default().to_owned())
        .collect()
}

/// How somebody's turns ended.
fn ended(heard: &Heard, who: &str) -> Vec<(TurnOutcome, String)> {
    let ends = heard.events.iter().filter_map(|(name, event)| match event {
        Event::TurnEnded(ended) if name == who => Some((ended.end.clone(), ended.text.clone())),
        _ => None,
    });
    ends.collect()
}

const PAIR: &str = r#"
answers:
  - parts:
      - {tool: spawn_teammate, input: {name: alice, role: backend, prompt: Make a schema.}}
      - {tool: spawn_teammate, input: {name: bob, role: frontend, prompt: Wait for alice., type: explore}}
  - text: They are at it.
  - text: One is done.
  - text: All is done.
  - text: All is done.
members:
  alice:
    - parts: [{tool: send_message, input: {to: bob, message: "users(id, name)"}}]
    - text: The schema is made.
  bob: [{text: I wait.}, {text: "Got it.", given: "users(id, name)", otherwise: "Got nothing."}]
"#;

#[tokio::test]
async fn teammates_write_to_each_other_and_their_results_wake_the_lead() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), PAIR);
    let (_, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    let heard = rest(&mut notices).await;
    let [alice, bob] = came_to(&heard, "max");
    assert!(alice.0.starts_with("`alice` has begun.") && !alice.1 && !bob.1, "{alice:?}");
    assert_eq!(ended(&heard, "alice"), [(TurnOutcome::Answered, "The schema is made.".to_owned())]);
    let bobs: Vec<String> = ended(&heard, "bob").into_iter().map(|(_, text)| text).collect();
    // The message may have come before or after bob's first turn was over, never during it.
    assert_eq!(bobs, ["I wait.", "Got it."]);
    // What each turn came to goes to the lead, whichever message began it.
    let mut results = envelopes(&journal, MessageKind::TaskResult);
    results.sort();
    assert_eq!(results, ["Got it.", "I wait.", "The schema is made."]);
    let [_, lead] = inputs(&journal, "max").try_into().unwrap();
    for words in [
        "<teammate-message teammate_id=\"alice\" color=\"blue\" type=\"task_result\" as=\"data\">\nThe schema is made.",
        "I wait.",
        "Got it.",
    ] {
        assert!(lead.contains(words), "{lead}");
    }
    let told = inputs(&journal, "explore");
    assert!(told[0].starts_with("You are `bob` (frontend), a teammate in a team that `max` leads."), "{told:?}");
    assert!(told[0].ends_with("Wait for alice.\n"), "{told:?}");
    let mail =
        "<teammate-message teammate_id=\"alice\" color=\"blue\" as=\"data\">\nusers(id, name)\n</teammate-message>";
    assert_eq!(told[1], mail);
    let [general] = started(&journal, GENERAL).try_into().unwrap();
    let tools = &general.definition.tools;
    assert!(
        tools.iter().any(|tool| tool == "send_message") && !tools.iter().any(|tool| tool == SPAWN_TEAMMATE),
        "{tools:?}"
    );
    check_rest(&journal);
}

const PARTING: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: alice, role: helper, prompt: Say hello.}}]
  - text: Started.
  - parts:
      - {tool: send_message, input: {to: alice, message: {type: shutdown_request, reason: all is done}}}
      - {tool: spawn_teammate, input: {name: alice, role: another, prompt: Say hello.}}
      - {tool: send_message, input: {to: bob, message: hello}}
  - text: I have asked it.
  - parts: [{tool: send_message, input: {to: alice, message: are you there?}}]
  - text: It is no more.
members:
  alice: [{text: Hello.}]
"#;

#[tokio::test]
async fn a_teammate_that_is_asked_ends_and_gets_no_more_messages() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), PARTING);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    let heard = rest(&mut notices).await;
    assert_eq!(heard.last_words().text, "I have asked it.");
    let [_, asked, taken, nobody] = came_to(&heard, "max");
    assert!(asked.0.starts_with("Sent to `alice`. `alice` ends as soon as it has no work.") && !asked.1, "{asked:?}");
    assert!(taken.1 && taken.0.contains("`alice` is there already"), "{taken:?}");
    assert!(nobody.1 && nobody.0.contains("you have called no agent `bob`"), "{nobody:?}");
    let gone = heard.events.iter().find_map(|(who, event)| match event {
        Event::AgentEnded(ended) => Some((who.as_str(), ended.by.as_str(), ended.reason.as_str(), ended.forced)),
        _ => None,
    });
    assert_eq!(gone, Some(("alice", "max", "all is done", false)));
    let responded = heard.events.iter().any(|(who, event)| {
        who == "max" && matches!(event, Event::Responded(answer) if answer.kind == Some(MessageKind::ShutdownApproved))
    });
    assert!(responded, "{:?}", heard.names());
    super::order(&team, max_team_runtime::Command::Say { session, text: "ask again".into() }).await.unwrap();
    let heard = rest(&mut notices).await;
    let [late] = came_to(&heard, "max");
    assert!(late.1 && late.0.starts_with("`alice` has ended (by max: all is done)"), "{late:?}");
    check_rest(&journal);
}

const PLANNER: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: ann, role: coder, prompt: Change a.txt., mode: plan}}]
  - text: Started.
  - parts: [{tool: check_inbox, input: {}}]
  - text: I will look.
members:
  ann:
    - parts: [{tool: write_file, input: {path: a.txt, content: two}}]
    - parts: [{tool: exit_plan_mode, input: {plan: Write two into a.txt.}}]
    - parts: [{tool: exit_plan_mode, input: {plan: Write two into b.txt.}}]
    - parts: [{tool: write_file, input: {path: b.txt, content: two}}]
    - text: Done.
"#;

#[tokio::test]
async fn one_who_plans_first_changes_nothing_before_somebody_says_yes() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), PLANNER);
    let mut open = leading(Which::New);
    for teammate in &mut open.team.as_mut().unwrap().experts {
        teammate.settings.mode = Mode::AcceptEdits;
    }
    open.settings.mode = Mode::AcceptEdits;
    let (session, mut notices) = say(&team, folder.path(), open).await;
    let heard = rest(&mut notices).await;
    assert!(heard.waiting, "it waits for its lead or a person");
    let [refused] = came_to(&heard, "ann");
    assert!(refused.1 && refused.0.contains("plan"), "{refused:?}");
    let asked = inputs(&journal, "max");
    let wrapped = "<teammate-message teammate_id=\"ann\" type=\"plan_approval_request\" request_id=\"";
    assert!(asked[1].starts_with(wrapped) && asked[1].contains("Write two into a.txt."), "{asked:?}");
    // A person says no, with a word; then yes.
    let post = max_team_runtime::UserMail::new(&journal);
    let answer = |allow: bool, comment: &str| max_team_core::policy::PermissionAnswer {
        comment: comment.to_owned(),
        ..max_team_core::policy::PermissionAnswer::new(allow, max_team_core::policy::DecidedBy::Person("test".into()))
    };
    let [question] = post.inbox().unwrap().try_into().unwrap();
    let no = max_team_runtime::Command::Answer {
        session,
        question: question.row.question,
        answer: answer(false, "use b.txt"),
    };
    super::order(&team, no).await.unwrap();
    let heard = rest(&mut notices).await;
    let told = came_to::<1>(&heard, "ann");
    assert!(told[0].0.contains("use b.txt"), "{told:?}");
    let [question] = post.inbox().unwrap().try_into().unwrap();
    let yes = max_team_runtime::Command::Answer { session, question: question.row.question, answer: answer(true, "") };
    super::order(&team, yes).await.unwrap();
    let heard = rest(&mut notices).await;
    let told = came_to::<2>(&heard, "ann");
    assert!(told[0].0.starts_with("Your plan is approved") && !told[1].1, "{told:?}");
    assert_eq!(std::fs::read_to_string(folder.path().join("b.txt")).unwrap(), "two");
    check_rest(&journal);
}

const APART: &str = r#"
answers:
  - parts:
      - {tool: spawn, input: {description: find it, prompt: What does a.txt say?, type: explore}}
      - {tool: spawn, input: {description: never ends, prompt: Ask., type: tides}}
      - {tool: spawned, input: {}}
  - text: I go on.
  - text: It says one.
  - text: Stopped.
members:
  explore: [{parts: [{tool: read_file, input: {path: a.txt}}]}, {text: It says one.}]
  tides: [{parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]}, {text: Done.}]
"#;

#[tokio::test]
async fn a_background_result_is_told_once_and_stops_with_everything() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), APART);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    let heard = rest(&mut notices).await;
    assert!(heard.waiting, "one of them asks");
    let [first, second, list] = came_to(&heard, "max");
    assert!(first.0.starts_with("It runs in the background as task `explore-") && !second.1, "{first:?}");
    assert!(list.0.contains("`tides-") && list.0.contains("(never ends): "), "{list:?}");
    let told = inputs(&journal, "max");
    assert_eq!(told.len(), 2, "{told:?}");
    let head = "<teammate-message teammate_id=\"explore-";
    assert!(
        told[1].starts_with(head) && told[1].contains("type=\"task_result\" as=\"data\">\nIt says one.\n</"),
        "{told:?}"
    );
    // The user stops everything: nobody is woken by that.
    super::order(&team, max_team_runtime::Command::StopSession { session }).await.unwrap();
    let heard = rest(&mut notices).await;
    assert!(!heard.waiting && heard.names().contains(&"interrupted"), "{:?}", heard.names());
    assert_eq!(ended(&heard, "tides").len(), 1);
    assert_eq!(inputs(&journal, "max").len(), 2);
    super::order(&team, max_team_runtime::Command::Say { session, text: "go on".into() }).await.unwrap();
    rest(&mut notices).await;
    let [_, _, told] = inputs(&journal, "max").try_into().unwrap();
    let note = "go on\n\n(From the program, not from the user.) The user stopped `tides-";
    assert!(told.starts_with(note) && told.ends_with("They go on when you or the user write to them."), "{told}");
    check_rest(&journal);
}

const CLAIMS: &str = r#"
answers:
  - parts:
      - {tool: TaskCreate, input: {subject: first, description: Do the first.}}
      - {tool: TaskCreate, input: {subject: second, description: Do the second.}}
      - {tool: spawn_teammate, input: {name: ben, role: worker, prompt: Wait.}}
  - parts: [{tool: send_message, input: {to: ben, message: {type: task_assignment, taskId: "2", text: Mind the gap.}}}]
  - parts: [{tool: spawn_teammate, input: {name: ann, role: worker, prompt: Take tasks., auto_claim: true}}]
  - text: Handed out.
  - text: So far.
  - text: So far.
  - text: So far.
  - text: So far.
members:
  ann:
    - text: Ready.
    - parts: [{tool: TaskUpdate, input: {taskId: "1", status: completed}}]
    - text: The first is done.
  ben:
    - text: Waiting.
    - parts: [{tool: TaskUpdate, input: {taskId: "2", status: in_progress}}]
    - parts: [{tool: TaskUpdate, input: {taskId: "2", status: completed}}]
    - text: The second is done.
"#;

#[tokio::test]
async fn tasks_are_taken_by_who_rests_or_given_to_one() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), CLAIMS);
    let mut open = leading(Which::New);
    open.definition.tools.extend(max_team_core::task_list::TOOLS.map(str::to_owned));
    let (session, mut notices) = say(&team, folder.path(), open).await;
    let heard = rest(&mut notices).await;
    let done = |who: &str| ended(&heard, who).into_iter().next_back().map(|(_, text)| text);
    assert_eq!(done("ann").as_deref(), Some("The first is done."));
    assert_eq!(done("ben").as_deref(), Some("The second is done."));
    let told = inputs(&journal, GENERAL).join("\n---\n");
    assert!(told.contains("You have taken task #1 of the shared list: first\n\nDo the first."), "{told}");
    assert!(
        told.contains("type=\"task_assign\" as=\"instruction\">\nThis is yours") && told.contains("Mind the gap."),
        "{told}"
    );
    let lines = max_team_runtime::TaskLists::new(&journal).lines(session).unwrap();
    assert!(lines.len() == 2 && format!("{lines:?}").matches("Completed").count() == 2, "{lines:?}");
    check_rest(&journal);
}

const ALLOWED: &str = r#"
answers:
  - parts:
      - {tool: spawn_teammate, input: {name: ann, role: writer, prompt: Write.}}
      - {tool: spawn_teammate, input: {name: ben, role: writer, prompt: Wait.}}
  - text: They are at it.
  - text: Well.
  - text: Well.
  - text: Well.
members:
  ann:
    - parts: [{tool: write_file, input: {path: ann.txt, content: a}}]
    - parts: [{tool: send_message, input: {to: ben, message: your turn}}]
    - text: Written.
  ben:
    - text: Waiting.
    - parts: [{tool: write_file, input: {path: ben.txt, content: b}}]
    - text: Written too.
"#;

#[tokio::test]
async fn a_grant_for_the_session_holds_for_all_teammates() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), ALLOWED);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    let heard = rest(&mut notices).await;
    assert!(heard.waiting && heard.names().contains(&"question_asked"), "{:?}", heard.names());
    let [pending] = max_team_runtime::UserMail::new(&journal).inbox().unwrap().try_into().unwrap();
    assert_eq!(pending.who, "ann");
    let answer = max_team_core::policy::PermissionAnswer { always: true, ..super::yes() };
    let always = max_team_runtime::Command::Answer { session, question: pending.row.question, answer };
    super::order(&team, always).await.unwrap();
    let heard = rest(&mut notices).await;
    assert!(!heard.waiting, "{:?}", heard.names());
    assert_eq!(heard.names().iter().filter(|name| **name == "question_asked").count(), 0, "{:?}", heard.names());
    let granted = heard.events.iter().find_map(|(who, event)| match event {
        Event::Granted(granted) => Some((who.as_str(), granted.asker.as_str())),
        _ => None,
    });
    assert_eq!(granted, Some(("ben", "ann")));
    // Evidence names the answer that ben's file rests on.
    let mut words = Vec::new();
    let filter = max_team_runtime::Filter { kinds: vec!["tool_intent".into()], ..Default::default() };
    let each = |seen: max_team_runtime::EvidenceItem<'_>| {
        let max_team_runtime::EvidenceItem::Record(_, record) = seen else { panic!("{seen:?}") };
        if let Some(max_team_runtime::Allowed::Before { word, .. }) = &record.allowed {
            words.push((String::from(record.what.clone()), word.as_ref().map(|word| word.at_ms)));
        }
        std::ops::ControlFlow::Continue(())
    };
    max_team_runtime::ReadModel::new(&journal).records(&filter, each).unwrap();
    let entries = journal.read_all(0, usize::MAX).unwrap();
    let answered = entries.iter().find(|entry| &*entry.event == "question_answered").unwrap().at_ms;
    assert_eq!(words, [("write_file ben.txt".to_owned(), Some(answered))]);
    assert_eq!(std::fs::read_to_string(folder.path().join("ben.txt")).unwrap(), "b");
    check_rest(&journal);
}

const REFUSES: &str = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: ann, role: worker, prompt: Work.}}]
  - text: Started.
  - parts: [{tool: send_message, input: {to: ann, message: {type: plan_approval_response, request_id: nope, approve: true}}}]
  - text: Well.
members:
  ann: [{text: Done.}]
"#;

#[tokio::test]
async fn an_answer_to_nothing_is_refused_where_it_is_given_and_where_it_comes() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), REFUSES);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    let heard = rest(&mut notices).await;
    let [_, nothing] = came_to(&heard, "max");
    assert!(nothing.1 && nothing.0.contains("it waits for no answer to `nope`"), "{nothing:?}");
    // Somebody sends one all the same, to the teammate itself.
    let ann = started(&journal, GENERAL)[0].agent;
    let envelope = max_team_core::message::Envelope::new(
        max_team_core::id::EnvelopeId::new(new_id()),
        "user/somebody",
        format!("agent/{ann}"),
        MessageKind::PermissionResponse,
        serde_json::json!({ "question": max_team_core::id::QuestionId::new(new_id()), "answer": super::yes() }),
        0,
    );
    journal.commit(max_team_journal::Commit { sends: vec![envelope], ..Default::default() }).await.unwrap();
    super::order(&team, max_team_runtime::Command::Write { session, to: vec!["ann".into()], text: "hi".into() })
        .await
        .unwrap();
    let heard = rest(&mut notices).await;
    let refused = heard.events.iter().find_map(|(who, event)| match event {
        Event::MessageRefused(refused) => Some((who.as_str(), refused.kind, refused.why.as_str())),
        _ => None,
    });
    let (who, kind, why) = refused.unwrap();
    assert_eq!((who, kind), ("ann", MessageKind::PermissionResponse));
    assert!(why.contains("nothing waits for this answer"), "{why}");
    check_rest(&journal);
}

const QUEUED: &str = "answers: [{text: One.}, {text: Two.}, {text: Three.}]";

#[tokio::test]
async fn of_several_messages_that_wait_each_is_answered() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), QUEUED);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    for text in ["a", "b"] {
        super::order(&team, max_team_runtime::Command::Queue { session, text: text.into() }).await.unwrap();
    }
    while inputs(&journal, "max").len() < 3 {
        rest(&mut notices).await;
    }
    assert_eq!(inputs(&journal, "max"), ["do it", "a", "b"]);
    check_rest(&journal);
    // The same if nobody was there when they came.
    team.shutdown().await.unwrap();
}

const GOES_ON: &str = r#"
answers:
  - parts: [{tool: spawn, input: {description: look, prompt: Look., type: explore}}]
  - text: I go on.
  - parts: [{tool: send_message, input: {to: explore, message: And now?}}]
  - text: Done.
members:
  explore: [{text: One.}, {text: Two.}]
"#;

#[tokio::test]
async fn a_background_agent_is_continued() {
    let folder = project();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), GOES_ON);
    let (_, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    let heard = rest(&mut notices).await;
    assert_eq!(heard.last_words().text, "Done.");
    let [_, second] = came_to(&heard, "max");
    assert!(second.0.starts_with("Two.") && !second.1, "{second:?}");
    check_rest(&journal);
}

/// A lead that thanks for each answer is thanked for each thanks.
#[tokio::test]
async fn a_lead_and_a_teammate_who_only_answer_each_other_come_to_rest() {
    let (folder, journal) = (project(), Journal::memory());
    let turns = max_team_core::limits::UNASKED_TURNS_MAX as usize + 10;
    let thanks =
        "  - parts: [{tool: send_message, input: {to: gil, message: thanks}}]\n  - text: Thanked.\n".repeat(turns);
    let script = format!(
        "answers:\n  - parts: [{{tool: spawn_teammate, input: {{name: gil, role: helper, prompt: Help.}}}}]\n  - text: Begun.\n\
         {thanks}members:\n  gil:\n{}",
        "    - text: No thanks.\n".repeat(turns)
    );
    let team = runtime_of(&journal, folder.path(), &script);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    let told = inputs(&journal, "max");
    assert_eq!(
        told.len(),
        max_team_core::limits::UNASKED_TURNS_MAX as usize + 3,
        "two for each teammate, and the user's"
    );
    assert!(told.last().unwrap().contains("until\nthe user writes"), "{told:?}");
    // What has come meanwhile is told with what the user says.
    order(&team, Command::Say { session, text: "well?".into() }).await.unwrap();
    let heard = rest(&mut notices).await;
    assert!(!ended(&heard, "max").is_empty());
    check_rest(&journal);
}

#[tokio::test]
async fn two_who_only_answer_each_other_come_to_rest() {
    let folder = project();
    let journal = Journal::memory();
    let answers = |to: &str| {
        let turn = format!(
            "    - parts: [{{tool: send_message, input: {{to: {to}, message: and you?}}}}]\n    - text: Asked.\n"
        );
        turn.repeat(max_team_core::limits::ECHOES_MAX as usize + 60)
    };
    let spawn = |name: &str| {
        format!("      - {{tool: spawn_teammate, input: {{name: {name}, role: talker, prompt: Talk.}}}}\n")
    };
    let lead = "  - text: Well.\n".repeat(8);
    let script = format!(
        "answers:\n  - parts:\n{}{}{lead}members:\n  ann:\n{}  ben:\n{}",
        spawn("ann"),
        spawn("ben"),
        answers("ben"),
        answers("ann")
    );
    let team = runtime_of(&journal, folder.path(), &script);
    let (_, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    let heard = rest(&mut notices).await;
    let told = inputs(&journal, "max").join("\n");
    assert!(told.contains("leaves its mail unread until one of you writes to it."), "{told}");
    let turns = ended(&heard, "ann").len();
    assert!((20..=24).contains(&turns), "{turns}");
}

/// Otherwise the first writes to somebody who is not there yet, and how many are depends on the machine's speed.
#[tokio::test]
async fn as_many_as_an_answer_may_start_begin_together() {
    let folder = project();
    let journal = Journal::memory();
    let last = max_team_core::limits::CALLS_PER_ANSWER_MAX - 1;
    let spawn =
        |at: usize| format!("      - {{tool: spawn_teammate, input: {{name: m{at}, role: r, prompt: Be ready.}}}}\n");
    let ready: String = (1..=last).map(|at| format!("  m{at}: [{{text: Ready.}}, {{text: Heard.}}]\n")).collect();
    let script = format!(
        "answers:\n  - parts:\n{}{}members:\n  m0:\n    - parts: [{{tool: send_message, input: {{to: m{last}, message: hello}}}}]\n    - text: Sent.\n{ready}",
        (0..=last).map(spawn).collect::<String>(),
        "  - text: Noted.\n".repeat(2 * last),
    );
    let team = runtime_of(&journal, folder.path(), &script);
    let (_, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    assert_eq!(envelopes(&journal, MessageKind::Text), ["hello"]);
    let log = events(&journal);
    let begun = log.iter().rposition(|(_, event)| matches!(event, Event::AgentStarted(_)));
    let second_answer = log.iter().enumerate().filter(|(_, (_, event))| matches!(event, Event::LlmEnded(_))).nth(1);
    assert_eq!(started(&journal, GENERAL).len(), last + 1);
    assert!(begun < second_answer.map(|(at, _)| at), "nobody has said anything before all are there");
}

/// Whoever many write to works often for nobody but colleagues, and is in no circle with them.
#[tokio::test]
async fn messages_that_answer_nothing_are_read_however_many_they_are() {
    let (folder, journal) = (project(), Journal::memory());
    let times = max_team_core::limits::ECHOES_MAX as usize + 10;
    let sends =
        "    - parts: [{tool: send_message, input: {to: ben, message: news}}]\n    - text: Sent.\n".repeat(times);
    let script = format!(
        "answers:\n  - parts:\n      - {{tool: spawn_teammate, input: {{name: ann, role: r, prompt: Wait.}}}}\n      - {{tool: spawn_teammate, input: {{name: ben, role: r, prompt: Wait.}}}}\n{}members:\n  ann:\n    - text: Ready.\n{sends}  ben:\n{}",
        "  - text: Well.\n".repeat(4),
        "    - text: Read.\n".repeat(times + 1),
    );
    let team = runtime_of(&journal, folder.path(), &script);
    let (session, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    rest(&mut notices).await;
    for _ in 0..times {
        order(&team, Command::Write { session, to: vec!["ann".into()], text: "go".into() }).await.unwrap();
        rest(&mut notices).await;
    }
    let turns =
        events(&journal).into_iter().filter(|(_, event)| matches!(event, Event::TurnStarted(turn) if turn.hops == 1));
    assert_eq!(turns.count(), times, "each letter has begun a turn of its reader's");
}
