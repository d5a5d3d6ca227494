//! Teammates that misbehave: the others go on, and whoever must know is told.

use max_team_core::event::{Event, TurnOutcome};
use max_team_core::limits::{CALLS_PER_ANSWER_MAX, MAIL_WAITING_MAX};
use max_team_core::message::MessageKind;
use max_team_core::policy::{Action, Repeatability};
use max_team_journal::Journal;
use max_team_llm::Replay;
use max_team_runtime::Which;
use max_team_tools::{Output, Registry, Spec, Tool, ToolContext, ToolError};
use serde_json::{Value, json};

use super::calls::{inputs, say};
use super::crashes::{check_rest, events};
use super::team::rest;
use super::teammates::{envelopes, leading};
use super::{project, runtime_equipped, runtime_of, until};

/// A tool that breaks the loop of whoever calls it.
#[derive(Debug)]
struct Trap(Spec);

impl Tool for Trap {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn action(&self, _: &ToolContext, _: &Value) -> Result<Action, ToolError> {
        panic!("a fault that nobody has thought of")
    }

    fn call(&self, _: &ToolContext, _: Value, _: &Action, _: bool) -> Result<Output, ToolError> {
        Ok(Output::text("never"))
    }
}

fn trapped() -> Registry {
    let mut tools = Registry::builtin();
    let spec = Spec {
        name: "trap".into(),
        description: "Breaks.".into(),
        schema: json!({ "type": "object", "properties": {} }),
        class: Repeatability::Pure,
        null_is_absent: true,
    };
    tools.add(Trap(spec)).unwrap();
    tools
}

/// How the turns of those who are called so ended.
fn ends(journal: &Journal) -> Vec<TurnOutcome> {
    let ended = |event: Event| if let Event::TurnEnded(ended) = event { Some(ended.end) } else { None };
    events(journal).into_iter().filter_map(|(_, event)| ended(event)).collect()
}

#[tokio::test]
async fn one_whose_loop_breaks_and_one_that_loops_hold_nobody_up() {
    let (folder, journal) = (project(), Journal::memory());
    let looped = "    - parts: [{tool: read_file, input: {path: a.txt}}]\n".repeat(100);
    let recording = format!(
        r#"
answers:
  - parts:
      - {{tool: spawn_teammate, input: {{name: ann, role: unlucky, prompt: Step on it.}}}}
      - {{tool: spawn_teammate, input: {{name: bob, role: reader, prompt: Read a.txt.}}}}
      - {{tool: spawn_teammate, input: {{name: eve, role: reader, prompt: Read a.txt again and again.}}}}
  - text: They are at it.
  - text: I see.
  - text: I see.
  - text: I see.
members:
  ann:
    - parts: [{{tool: trap, input: {{}}}}]
  bob:
    - parts: [{{tool: read_file, input: {{path: a.txt}}}}]
    - text: It says one.
  eve:
{looped}"#
    );
    let team = runtime_equipped(&journal, folder.path(), Replay::read(&recording).unwrap(), trapped());
    let (_, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    // It comes to rest, and nothing says that the team has stopped.
    drop(rest(&mut notices).await);
    let told = inputs(&journal, "max").join("\n");
    for words in ["It says one.", "a fault in this program", "a fault that nobody has thought of"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let ends = ends(&journal);
    assert!(ends.iter().any(|end| matches!(end, TurnOutcome::Broken { .. })), "{ends:?}");
    assert!(ends.iter().any(|end| matches!(end, TurnOutcome::Rounds | TurnOutcome::Looping)), "{ends:?}");
    let reported = |who: &str| told.matches(&format!("teammate_id=\"{who}\"")).count();
    assert_eq!((reported("ann"), reported("bob"), reported("eve")), (1, 1, 1), "{told}");
    check_rest(&journal);
}

/// A turn that never ends by itself.
const BUSY: &str = "    - text: Wait for it.\n      delta_ms: 3600000\n";

#[tokio::test]
async fn one_that_floods_a_mailbox_is_told_that_it_is_full() {
    let (folder, journal) = (project(), Journal::memory());
    let over = 8;
    let sends: Vec<String> = (0..MAIL_WAITING_MAX + over)
        .map(|n| format!("{{tool: send_message, input: {{to: bob, message: \"letter {n}\"}}}}"))
        .collect();
    let answers: String =
        sends.chunks(CALLS_PER_ANSWER_MAX).map(|calls| format!("    - parts: [{}]\n", calls.join(", "))).collect();
    let recording = format!(
        r#"
answers:
  - parts:
      - {{tool: spawn_teammate, input: {{name: bob, role: busy, prompt: Work.}}}}
      - {{tool: spawn_teammate, input: {{name: mallory, role: writer, prompt: Write to bob.}}}}
  - text: They are at it.
  - text: I see.
members:
  bob:
{BUSY}  mallory:
{answers}    - text: I have written.
"#
    );
    let team = runtime_of(&journal, folder.path(), &recording);
    let (_, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    loop {
        let ended = until(&mut notices, "turn_ended").await;
        if matches!(&*ended, Event::TurnEnded(ended) if ended.text == "I have written.") {
            break;
        }
    }
    assert_eq!(envelopes(&journal, MessageKind::Text).len(), MAIL_WAITING_MAX);
    let refused = events(&journal).into_iter().filter(|(_, event)| {
        matches!(event, Event::ToolDone(done) if done.is_error && format!("{:?}", done.content).contains("nothing was sent"))
    });
    assert_eq!(refused.count(), over);
    team.shutdown().await.unwrap();
}

#[tokio::test]
async fn one_that_does_not_answer_a_shutdown_is_ended_at_the_deadline() {
    let (folder, journal) = (project(), Journal::memory());
    let recording = format!(
        r#"
answers:
  - parts: [{{tool: spawn_teammate, input: {{name: bob, role: busy, prompt: Work.}}}}]
  - parts:
      - {{tool: send_message, input: {{to: bob, message: {{type: shutdown_request, reason: enough, deadline_s: 1}}}}}}
  - text: I have asked it.
  - text: It is ended.
  - text: It is ended.
members:
  bob:
{BUSY}"#
    );
    let team = runtime_of(&journal, folder.path(), &recording);
    let (_, mut notices) = say(&team, folder.path(), leading(Which::New)).await;
    let ended = until(&mut notices, "agent_ended").await;
    let Event::AgentEnded(ended) = &*ended else { panic!("{ended:?}") };
    assert!(ended.forced && ended.name == "bob" && ended.reason == "it did not answer in time", "{ended:?}");
    drop(rest(&mut notices).await);
    let unanswered = events(&journal)
        .into_iter()
        .filter(|(_, event)| matches!(event, Event::Responded(responded) if responded.kind.is_none()));
    assert_eq!(unanswered.count(), 1);
    let told = inputs(&journal, "max").join("\n");
    assert!(told.contains("`bob` was ended by the deadline of its shutdown: it did not answer in time."), "{told}");
    check_rest(&journal);
}
