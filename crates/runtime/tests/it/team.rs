//! Plans with a recorded model: proposed, approved, carried out by members with real tools, checked by code.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command as Process;

use max_team_core::event::{End, Event, TurnEnded};
use max_team_core::id::{PlanId, QuestionId, SessionId};
use max_team_core::plan::Status;
use max_team_core::plan::event::{About, Approve, PlanEnd, Proof, Say};
use max_team_core::team::{Definition, Settings};
use max_team_journal::Journal;
use max_team_runtime::{
    ASK_USER, Command, DISPATCH_TASK, Mate, Notice, Open, Post, TASK_CREATE, TASK_QUERY, TASK_UPDATE, Team, TeamHandle,
    Which,
};
use tokio::sync::mpsc;

use super::{house_of, open, order, owner};

pub(crate) fn mate(name: &str, role: &str, tools: &[&str]) -> Mate {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    let definition = Definition { name: name.into(), role: role.into(), prompt: format!("You are {name}."), tools };
    Mate { definition, settings: Settings { retries_max: 0, ..open(Which::New).settings } }
}

pub(crate) fn with_team(which: Which, approve: Approve) -> Open {
    let lead = ["submit_plan", TASK_CREATE, TASK_UPDATE, TASK_QUERY, DISPATCH_TASK, ASK_USER];
    let definition = Definition {
        name: "max".into(),
        role: "team_lead".into(),
        prompt: "You are Max.".into(),
        tools: lead.map(str::to_owned).to_vec(),
    };
    let members = vec![
        mate("ada", "architect", &["read_file", "need_clarify"]),
        mate("leo", "coder", &["read_file", "write_file", "edit_file", "need_clarify"]),
        mate("ray", "tester", &["read_file", "write_file", "need_clarify"]),
    ];
    let team = Team { members, approve, max_parallel: 4, models: BTreeMap::new() };
    Open { definition, team: Some(team), ..open(which) }
}

fn git(root: &Path, words: &[&str]) {
    let ran = Process::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
        .args(words)
        .current_dir(root)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

pub(crate) fn repository() -> tempfile::TempDir {
    let folder = super::project();
    git(folder.path(), &["init", "-q"]);
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "-qm", "first"]);
    folder
}

/// Everything that was told until the session came to rest.
pub(crate) struct Heard {
    pub(crate) events: Vec<(String, Event)>,
    pub(crate) waiting: bool,
}

impl Heard {
    pub(crate) fn asked(&self) -> (QuestionId, About) {
        let mut asked = self.events.iter().rev().filter_map(|(_, event)| match event {
            Event::PlanAsked(asked) => Some((asked.question, asked.about.clone())),
            _ => None,
        });
        asked.next().unwrap()
    }

    pub(crate) fn plan(&self) -> PlanId {
        let mut plans = self.events.iter().filter_map(|(_, event)| match event {
            Event::PlanSubmitted(submitted) => Some(submitted.plan),
            _ => None,
        });
        plans.next_back().unwrap()
    }

    pub(crate) fn last_words(&self) -> &TurnEnded {
        let mut ends = self.events.iter().rev().filter_map(|(who, event)| match event {
            Event::TurnEnded(ended) if who == "max" => Some(ended),
            _ => None,
        });
        ends.next().unwrap()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.events.iter().map(|(_, event)| event.name()).collect()
    }
}

pub(crate) async fn rest(notices: &mut mpsc::Receiver<Notice>) -> Heard {
    let mut events = Vec::new();
    loop {
        match notices.recv().await.unwrap() {
            Notice::Event { from, event, .. } => events.push((from.name.to_string(), (*event).clone())),
            Notice::Idle { waiting, .. } => return Heard { events, waiting },
            Notice::Stopped { error, .. } => panic!("{error}"),
            Notice::Delta { .. } => {}
        }
    }
}

pub(crate) async fn ask(team: &TeamHandle, root: &Path, approve: Approve) -> (SessionId, mpsc::Receiver<Notice>) {
    let mut notices = team.watch();
    let opened = team.open(owner(), root, with_team(Which::New, approve)).await.unwrap();
    rest(&mut notices).await;
    order(team, Command::Say { session: opened.session, text: "add a greeting".into() }).await.unwrap();
    (opened.session, notices)
}

const FEATURE: &str = r#"
answers:
  - parts:
      - {text: "This needs a design first."}
      - tool: submit_plan
        input:
          goal: A greeting
          tasks:
            - {id: design, agent: ada, description: Design it.}
            - {id: impl, agent_name: leo, description: Write it., depends_on: [design], owns: ["src/**"], outputs: [src/hello.txt], verify: ["grep -q hello src/hello.txt"]}
            - {id: review, agent: ada, description: Look at it., depends_on: [impl]}
  - text: "Done: 3 of 3 ran."
members:
  ada/design:
    - text: "Write hello into src/hello.txt."
  leo/impl:
    - parts: [{tool: write_file, input: {path: src/hello.txt, content: "hello\n"}}]
    - text: "Written."
  ada/review:
    - text: "It is fine."
"#;

#[tokio::test]
async fn a_plan_is_proposed_approved_carried_out_and_checked() {
    let folder = repository();
    let journal = Journal::memory();
    let team = house_of(&journal, folder.path(), FEATURE);
    let (_, mut notices) = ask(&team, folder.path(), Approve::Plan).await;
    let heard = rest(&mut notices).await;
    assert!(heard.waiting, "{:?}", heard.names());
    assert_eq!(heard.last_words().end, End::Proposed);
    assert_eq!(heard.last_words().text, "This needs a design first.");
    let (question, about) = heard.asked();
    assert_eq!(about, About::Proposal);
    assert_eq!(Post::new(&journal).inbox().unwrap().len(), 1);
    assert!(!folder.path().join("src").exists(), "nothing runs before it is approved");

    order(&team, Command::Decide { question, say: Say::Approve }).await.unwrap();
    let done = rest(&mut notices).await;
    assert!(!done.waiting, "{:?}", done.names());
    assert_eq!(done.last_words().text, "Done: 3 of 3 ran.");
    assert!(!done.names().contains(&"question_asked"), "an approved plan is the permission");
    let plan = team.plan(heard.plan()).unwrap();
    assert_eq!(plan.ended(), Some(PlanEnd::Done));
    let tally = plan.tally();
    assert_eq!((tally.tasks, tally.ran, tally.done, tally.verified), (3, 3, 3, 1));
    let result = plan.task(1).unwrap().result.unwrap().clone();
    assert_eq!(result.proof, Proof::Verified);
    let diff = result.artifacts.iter().find(|artifact| artifact.name == "code_diff").unwrap();
    assert!(diff.content.contains("+hello"), "{}", diff.content);
    assert!(Post::new(&journal).inbox().unwrap().is_empty());
    assert_eq!(plan.task(0).unwrap().status, Status::Done);
}
