//! Plans with a recorded model: proposed, approved, carried out by members with real tools, checked by code.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command as Process;

use max_team_core::agent::{Definition, Settings};
use max_team_core::event::{Event, TurnEnded, TurnOutcome};
use max_team_core::id::{PlanId, QuestionId, SessionId};
use max_team_core::plan::TaskStatus;
use max_team_core::plan::event::{ApprovalMode, PlanDecision, PlanEnd, PlanQuestion, Proof};
use max_team_journal::Journal;
use max_team_runtime::{
    ASK_USER, AgentSpec, Command, DISPATCH_TASK, Notice, OpenOptions, Team, TeamHandle, UserMail, Which,
};
use tokio::sync::mpsc;

use super::read::Reads as _;
use super::{open, order, owner, runtime_of};

pub(crate) fn teammate(name: &str, role: &str, tools: &[&str]) -> AgentSpec {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    let definition = Definition {
        name: name.into(),
        role: role.into(),
        prompt: format!("You are {name}."),
        tools,
        ..Definition::default()
    };
    AgentSpec { definition: definition.into(), settings: Settings { retries_max: 0, ..open(Which::New).settings } }
}

pub(crate) fn with_team(which: Which, approve: ApprovalMode) -> OpenOptions {
    let lead = ["submit_plan", "task_create", "task_update", "task_query", DISPATCH_TASK, ASK_USER];
    let definition = Definition {
        name: "max".into(),
        role: "team_lead".into(),
        prompt: "You are Max.".into(),
        tools: lead.map(str::to_owned).to_vec(),
        ..Definition::default()
    };
    let members = vec![
        teammate("ada", "architect", &["read_file", "need_clarify"]),
        teammate("leo", "coder", &["read_file", "write_file", "edit_file", "need_clarify"]),
        teammate("ray", "tester", &["read_file", "write_file", "need_clarify"]),
    ];
    let team = Team {
        members,
        experts: Vec::new(),
        approve,
        max_parallel: 6,
        models: BTreeMap::new(),
        call_depth: 1,
        coordinator: false,
        wished: BTreeMap::new(),
    };
    OpenOptions { definition, team: Some(team), ..open(which) }
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
    commit_all(folder.path());
    folder
}

pub(crate) fn commit_all(folder: &Path) {
    git(folder, &["init", "-q"]);
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", "first"]);
}

/// Everything that was told until the session came to rest.
pub(crate) struct Heard {
    pub(crate) events: Vec<(String, Event)>,
    pub(crate) waiting: bool,
}

impl Heard {
    pub(crate) fn asked(&self) -> (QuestionId, PlanQuestion) {
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
        // A session that never comes to rest must fail the test, not hang it.
        let notice = tokio::time::timeout(std::time::Duration::from_secs(20), notices.recv()).await;
        match notice.unwrap_or_else(|_| panic!("no rest after {events:#?}")).unwrap() {
            Notice::Event { from, event, .. } => events.push((from.name.to_string(), (*event).clone())),
            Notice::Idle { waiting, .. } => return Heard { events, waiting },
            Notice::Stopped { error, .. } => panic!("{error}"),
            Notice::Delta { .. } | Notice::Copies { .. } | Notice::Redefined { .. } => {}
        }
    }
}

pub(crate) async fn ask(team: &TeamHandle, root: &Path, approve: ApprovalMode) -> (SessionId, mpsc::Receiver<Notice>) {
    let mut notices = team.watch();
    let opened = team.open(owner(), root, with_team(Which::New, approve)).await.unwrap();
    rest(&mut notices).await;
    order(team, Command::Say { session: opened.session, text: "add a greeting".into() }).await.unwrap();
    (opened.session, notices)
}

pub(crate) const FEATURE: &str = r#"
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
    let team = runtime_of(&journal, folder.path(), FEATURE);
    let (_, mut notices) = ask(&team, folder.path(), ApprovalMode::Plan).await;
    let heard = rest(&mut notices).await;
    assert!(heard.waiting, "{:?}", heard.names());
    assert_eq!(heard.last_words().end, TurnOutcome::Proposed);
    assert_eq!(heard.last_words().text, "This needs a design first.");
    let (question, about) = heard.asked();
    assert_eq!(about, PlanQuestion::Proposal);
    assert_eq!(UserMail::new(&journal).inbox().unwrap().len(), 1);
    assert!(!folder.path().join("src").exists(), "nothing runs before it is approved");

    order(&team, Command::Decide { question, say: PlanDecision::Approve }).await.unwrap();
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
    assert!(UserMail::new(&journal).inbox().unwrap().is_empty());
    assert_eq!(plan.task(0).unwrap().status, TaskStatus::Done);
}

const REPLAN: &str = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: ada, description: A}, {id: b, agent: leo, description: B, depends_on: [a]}]}}]
  - parts: [{text: "Without the design then."}, {tool: submit_plan, input: {goal: g, tasks: [{id: b, agent: leo, description: B}]}}]
  - text: Reported.
members:
  leo/b: [{text: done}]
"#;

#[tokio::test]
async fn changes_are_asked_for_and_the_lead_plans_again() {
    let folder = repository();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), REPLAN);
    let (_, mut notices) = ask(&team, folder.path(), ApprovalMode::Plan).await;
    let first = rest(&mut notices).await;
    let say = PlanDecision::Changes("no design, please".into());
    order(&team, Command::Decide { question: first.asked().0, say }).await.unwrap();
    let second = rest(&mut notices).await;
    assert!(second.waiting);
    assert_ne!(first.plan(), second.plan());
    assert_eq!(team.plan(first.plan()).unwrap().ended(), Some(PlanEnd::Replaced));
    let told = second.events.iter().find_map(|(_, event)| match event {
        Event::TurnStarted(started) => Some(started.input.clone()),
        _ => None,
    });
    assert!(format!("{told:?}").contains("no design, please"));
    order(&team, Command::Decide { question: second.asked().0, say: PlanDecision::Approve }).await.unwrap();
    let done = rest(&mut notices).await;
    assert_eq!(done.last_words().text, "Reported.");
    assert_eq!(team.plan(second.plan()).unwrap().ended(), Some(PlanEnd::Done));
}

const FALSE_CLAIMS: &str = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [
      {id: file, agent: leo, description: Write it, outputs: [made.txt], retry: 0},
      {id: check, agent: leo, description: Check it, verify: ["false"], retry: 0},
      {id: fine, agent: ada, description: Think}]}}]
  - parts: [{tool: task_update, input: {task_id: file, decision: give_up}}, {tool: task_update, input: {task_id: check, decision: skip}}]
  - text: Decided.
  - text: Decided more.
  - text: "1 of 3 is done."
  - text: "1 of 3 is done."
members:
  leo/file: [{text: "I have written the file and all tests pass."}]
  leo/check: [{text: "All checks pass."}]
  ada/fine: [{text: "Thought."}]
"#;

/// What a model says is not what happened.
#[tokio::test]
async fn a_false_done_comes_out_as_failed() {
    let folder = repository();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), FALSE_CLAIMS);
    let (_, mut notices) = ask(&team, folder.path(), ApprovalMode::Plan).await;
    let mut heard = rest(&mut notices).await;
    order(&team, Command::Decide { question: heard.asked().0, say: PlanDecision::Approve }).await.unwrap();
    loop {
        let more = rest(&mut notices).await;
        heard.events.extend(more.events);
        // The recorded lead decides about what it hears of first; whatever is left is the user's.
        match open_question(&journal) {
            Some((question, PlanQuestion::Failure { .. })) => {
                let say = PlanDecision::Rule(max_team_core::plan::event::Ruling::GiveUp);
                order(&team, Command::Decide { question, say }).await.unwrap();
            }
            _ => break,
        }
    }
    let plan = team.plan(heard.plan()).unwrap();
    let failed: Vec<&str> = heard
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::TaskFailed(failed) => Some(failed.error.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed.iter().any(|error| error.contains("made.txt: the file does not exist")), "{failed:?}");
    assert!(failed.iter().any(|error| error.contains("false: exit 1")), "{failed:?}");
    let tally = plan.tally();
    assert_eq!((tally.done, tally.verified), (1, 0));
    assert_eq!(plan.ended(), Some(PlanEnd::Partial));
}

fn open_question(journal: &Journal) -> Option<(QuestionId, PlanQuestion)> {
    let inbox = UserMail::new(journal).inbox().unwrap();
    inbox.into_iter().find_map(|pending| match pending.row.matter {
        max_team_runtime::Matter::Plan(about) => Some((pending.row.question, about)),
        max_team_runtime::Matter::Tool { .. } => None,
    })
}

const CLARIFY: &str = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A}]}}]
  - parts: [{tool: task_update, input: {task_id: a, answer: "Use blue."}}]
  - text: Report.
members:
  leo/a:
    - parts: [{tool: need_clarify, input: {question: "Which colour?"}}]
    - text: "Blue it is."
"#;

#[tokio::test]
async fn a_worker_asks_the_lead_answers_and_the_work_goes_on() {
    let folder = repository();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), CLARIFY);
    let (_, mut notices) = ask(&team, folder.path(), ApprovalMode::Never).await;
    let heard = rest(&mut notices).await;
    assert!(!heard.waiting, "{:?}", heard.names());
    let plan = team.plan(heard.plan()).unwrap();
    assert_eq!(plan.ended(), Some(PlanEnd::Done), "{:?}", heard.names());
    assert_eq!(plan.task(0).unwrap().result.unwrap().output, "Blue it is.");
    assert_eq!(heard.last_words().text, "Report.");
}

const DISPATCH: &str = r#"
answers:
  - parts: [{tool: dispatch_task, input: {agent: ada, description: Look at a.txt}}, {tool: dispatch_task, input: {agent: leo, description: Change a.txt}}]
  - text: "Ada and Leo are done."
members:
  ada:
    - parts: [{tool: read_file, input: {path: a.txt}}]
    - text: "It says one."
  leo:
    - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
    - text: "Changed."
"#;

/// One member's work needs no plan; the usual questions are asked, by the member.
#[tokio::test]
async fn a_delegation_asks_the_usual_questions() {
    let folder = repository();
    let journal = Journal::memory();
    let team = runtime_of(&journal, folder.path(), DISPATCH);
    let (session, mut notices) = ask(&team, folder.path(), ApprovalMode::Plan).await;
    let heard = rest(&mut notices).await;
    assert!(heard.waiting, "{:?}", heard.names());
    let inbox = UserMail::new(&journal).inbox().unwrap();
    assert_eq!(inbox.len(), 1);
    assert_eq!((inbox[0].who.as_str(), inbox[0].words().as_str()), ("leo", "edit_file: a.txt"));
    let question = inbox[0].row.question;
    order(&team, Command::Answer { session, question, answer: super::yes() }).await.unwrap();
    let done = rest(&mut notices).await;
    assert_eq!(done.last_words().text, "Ada and Leo are done.");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "two\n");
}

/// Whatever a model submits comes back in words that it can act on.
#[tokio::test]
async fn malformed_plans_come_back_as_words() {
    let many: Vec<String> = (0..10_001).map(|n| format!("{{id: t{n}, agent: leo, description: x}}")).collect();
    let many = many.join(", ");
    let table = [
        (
            "tasks: [{id: a, agent: leo, description: x, depends_on: [b]}, {id: b, agent: leo, description: x, depends_on: [a]}]",
            "wait for each other",
        ),
        ("tasks: [{id: a, agent: leo, description: x, depends_on: [a]}]", "itself"),
        ("tasks: [{id: a, agent: bob, description: x}]", "no member `bob`"),
        ("tasks: [{id: a, agent: leo, description: x}, {id: a, agent: leo, description: x}]", "unique"),
        ("tasks: [{agent: leo, description: x}]", "no `id`"),
        ("tasks: [{id: a, description: x}]", "`agent` is missing"),
        ("tasks: [{id: a, agent: leo}]", "`description` (or `do`) is missing"),
        ("tasks: []", "at least one task"),
        ("tasks: [{id: a, agent: leo, description: x, verify: [\"make; rm -rf /\"]}]", "without a shell"),
        ("tasks: [{id: a, agent: leo, description: x, outputs: [\"../x\"]}]", "out of the project"),
        ("tasks: 7", "does not fit"),
        (&format!("tasks: [{many}]"), "too many"),
    ];
    for (input, wanted) in table {
        let folder = repository();
        let recording =
            format!("answers:\n  - parts: [{{tool: submit_plan, input: {{goal: g, {input}}}}}]\n  - text: I see.\n");
        let team = runtime_of(&Journal::memory(), folder.path(), &recording);
        let (_, mut notices) = ask(&team, folder.path(), ApprovalMode::Plan).await;
        let heard = rest(&mut notices).await;
        assert!(!heard.waiting);
        let told = heard.events.iter().find_map(|(_, event)| match event {
            Event::ToolDone(done) => Some(done.clone()),
            _ => None,
        });
        let told = told.unwrap();
        let words = format!("{:?}", told.content);
        assert!(told.is_error && words.contains(wanted), "{wanted}: {}", &words[..words.len().min(600)]);
        assert_eq!(heard.last_words().text, "I see.");
    }
}
