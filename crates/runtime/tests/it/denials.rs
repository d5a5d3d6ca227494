//! What rules deny holds for whatever an agent touches it with: a search, a command, a check.

use std::path::Path;

use max_team_core::agent::Settings;
use max_team_core::event::Event;
use max_team_core::plan::DraftFlaw;
use max_team_core::plan::event::{ApprovalMode, PlanDecision, Proof};
use max_team_core::policy::rule::{Anchors, List, Origin, RuleScope};
use max_team_core::policy::{Permissions, Rule};
use max_team_journal::Journal;
use max_team_runtime::{Basis, Command, Which, preview};

use super::limits::{block_on, plan_of};
use super::team::{rest, with_team};
use super::{open, order, owner, project, runtime_of, until};

/// Denials of the user's, for a project's folder.
fn denials(root: &Path, texts: &[&str]) -> Permissions {
    let root = root.to_str().unwrap();
    let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
    let anchors = Anchors { root, base: root, home: "/" };
    let rules = texts.iter().map(|text| Rule::new(List::Deny, text, origin.clone(), &anchors)).collect();
    Permissions { root: root.to_owned(), rules, ..Permissions::default() }
}

fn secretive() -> tempfile::TempDir {
    let folder = project();
    std::fs::create_dir(folder.path().join("secrets")).unwrap();
    std::fs::write(folder.path().join("secrets/key"), "hush\n").unwrap();
    folder
}

#[tokio::test]
async fn a_search_does_not_tell_what_a_rule_denies() {
    let recording = r#"
answers:
  - parts: [{tool: search_code, input: {pattern: ".", path: "."}}]
  - {text: "It tells.", given: hush, otherwise: "It is silent."}
"#;
    for (texts, said) in [(&[][..], "It tells."), (&["Read(./secrets/**)"][..], "It is silent.")] {
        let folder = secretive();
        let team = runtime_of(&Journal::memory(), folder.path(), recording);
        let mut notices = team.watch();
        let mut open = open(Which::New);
        open.definition.tools = vec!["search_code".into()];
        open.settings.permissions = denials(folder.path(), texts);
        let opened = team.open(owner(), folder.path(), open).await.unwrap();
        order(&team, Command::Say { session: opened.session, text: "look".into() }).await.unwrap();
        let ended = until(&mut notices, "turn_ended").await;
        let Event::TurnEnded(ended) = &*ended else { panic!("{ended:?}") };
        assert_eq!(ended.text, said);
    }
}

/// Runs a plan of one task for `leo` with one check: what it proved, or why the task failed.
fn checked(line: &str, texts: &[&str]) -> Result<Proof, String> {
    let recording = format!(
        r#"
answers:
  - parts: [{{tool: submit_plan, input: {{goal: g, tasks: [{{id: a, agent: leo, description: A, retry: 0, verify: ["{line}"]}}]}}}}]
  - text: Report.
  - text: Report.
members:
  leo/a: [{{text: Done.}}]
"#
    );
    block_on(async {
        let folder = secretive();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), &recording);
        let mut notices = team.watch();
        let mut open = with_team(Which::New, ApprovalMode::Plan);
        for teammate in &mut open.team.as_mut().unwrap().members {
            teammate.settings.permissions = denials(folder.path(), texts);
        }
        let opened = team.open(owner(), folder.path(), open).await.unwrap();
        rest(&mut notices).await;
        order(&team, Command::Say { session: opened.session, text: "go".into() }).await.unwrap();
        let (question, _) = rest(&mut notices).await.asked();
        order(&team, Command::Decide { question, say: PlanDecision::Approve }).await.unwrap();
        let heard = rest(&mut notices).await;
        let seen = heard.events.iter().find_map(|(_, event)| match event {
            Event::TaskDone(done) => Some(Ok(done.result.proof)),
            Event::TaskFailed(failed) => Some(Err(failed.error.clone())),
            _ => None,
        });
        seen.unwrap_or_else(|| panic!("{:?}", heard.names()))
    })
}

#[test]
fn a_check_does_not_see_what_a_rule_denies_its_owner() {
    assert_eq!(checked("grep -rq hush .", &[]), Ok(Proof::Verified));
    checked("grep -rq hush .", &["Read(./secrets/**)"]).unwrap_err();
}

/// What a plan with this check of `leo`'s is answered with: its risks, or why it cannot run.
fn proposed(line: &str, change: impl Fn(&mut Settings)) -> Result<Vec<String>, String> {
    let folder = secretive();
    let mut team = with_team(Which::New, ApprovalMode::Plan).team.unwrap();
    let leo = team.members.iter_mut().find(|teammate| teammate.definition.name == "leo").unwrap();
    change(&mut leo.settings);
    leo.settings.permissions.root = folder.path().to_str().unwrap().to_owned();
    let tasks = format!(r#"[{{"id": "a", "agent": "leo", "description": "A", "verify": ["{line}"]}}]"#);
    let told = |flaws: Vec<DraftFlaw>| flaws.iter().map(ToString::to_string).collect::<String>();
    let plan = preview(&team, folder.path(), *plan_of(&tasks), &Basis::default()).map_err(told)?;
    Ok(plan.proposed().unwrap().risks.clone())
}

#[test]
fn a_task_that_owns_protected_files_is_marked() {
    let folder = secretive();
    let team = with_team(Which::New, ApprovalMode::Plan).team.unwrap();
    let tasks = r#"[{"id": "a", "agent": "leo", "description": "A",
        "owns": ["src/**", ".github/workflows/**", "docs/AGENTS.md", ".mcp.json"]}]"#;
    let plan = preview(&team, folder.path(), *plan_of(tasks), &Basis::default()).unwrap();
    let want = [
        "task `a` changes `.github/workflows/**`, which is protected: the CI service runs it by itself",
        "task `a` changes `docs/AGENTS.md`, which is protected: a coding agent takes it for instructions",
        "task `a` changes `.mcp.json`, which is protected: it configures the servers that agents start: who works there \
         and what they may do",
    ];
    assert_eq!(plan.proposed().unwrap().risks, want);
}

#[test]
fn a_check_is_judged_by_its_owners_rules_when_it_is_proposed() {
    let none = |_: &mut Settings| {};
    assert_eq!(proposed("cargo test", none), Ok(vec![]));
    assert_eq!(proposed("grep -q a a.txt", none).unwrap(), ["task `a` runs `grep -q a a.txt` as a check"]);
    let risks = proposed("git push origin main", none).unwrap();
    assert!(risks[0].starts_with("task `a` runs `git push origin main` as a check: always asked"), "{risks:?}");
    let denied = |settings: &mut Settings| settings.permissions = denials(Path::new("/p"), &["Bash(cargo test:*)"]);
    let why = proposed("cargo test", denied).unwrap_err();
    assert!(why.contains("which `leo` may not run: the rule `deny: Bash(cargo test:*)`"), "{why}");
    let kept = |settings: &mut Settings| settings.constraints.allowed_commands = Some(vec!["cargo test".into()]);
    assert_eq!(proposed("cargo test --lib", kept), Ok(vec![]));
    let known = |settings: &mut Settings| settings.constraints.allowed_commands = Some(vec!["make".into()]);
    assert_eq!(proposed("make check", known), Ok(vec![]));
    let strange = |settings: &mut Settings| {
        known(settings);
        settings.constraints.foreign_commands = true;
    };
    let marked = proposed("make check", strange).unwrap();
    assert_eq!(marked, ["task `a` runs `make check` as a check"], "a project's own list vouches for nothing");
    // The list is of what the owner runs by itself; what is not on it is for a person to look at.
    assert_eq!(proposed("make", kept).unwrap(), ["task `a` runs `make` as a check"]);
}

/// What another member may run says nothing about the owner.
#[test]
fn a_check_is_known_by_its_owners_commands_alone() {
    let folder = secretive();
    let mut team = with_team(Which::New, ApprovalMode::Plan).team.unwrap();
    let ada = team.members.iter_mut().find(|teammate| teammate.definition.name == "ada").unwrap();
    ada.settings.constraints.allowed_commands = Some(vec!["make".into()]);
    let tasks = r#"[{"id": "a", "agent": "leo", "description": "A", "verify": ["make"]}]"#;
    let plan = preview(&team, folder.path(), *plan_of(tasks), &Basis::default()).unwrap();
    assert_eq!(plan.proposed().unwrap().risks, ["task `a` runs `make` as a check"]);
}

/// Rules that came after the approval hold as well.
#[test]
fn a_check_is_judged_again_before_it_runs() {
    let tasks = r#"[{"id": "a", "agent": "leo", "description": "A", "retry": 0, "verify": ["touch ran"]}]"#;
    let recording = "answers: [{text: Report.}, {text: Report.}]\nmembers:\n  leo/a: [{text: Done.}]\n";
    block_on(async {
        let folder = secretive();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), recording);
        let mut notices = team.watch();
        let session =
            team.open(owner(), folder.path(), with_team(Which::New, ApprovalMode::Plan)).await.unwrap().session;
        rest(&mut notices).await;
        let draft = plan_of(tasks);
        order(&team, Command::Propose { session, draft, source: "a test".into() }).await.unwrap();
        let (question, _) = rest(&mut notices).await.asked();
        team.shutdown().await.unwrap();
        drop(team);

        let journal = journal.reopen().unwrap();
        let team = runtime_of(&journal, folder.path(), recording);
        let mut notices = team.watch();
        let mut open = with_team(Which::Latest, ApprovalMode::Plan);
        for teammate in &mut open.team.as_mut().unwrap().members {
            teammate.settings.permissions = denials(folder.path(), &["Bash(touch:*)"]);
        }
        team.open(owner(), folder.path(), open).await.unwrap();
        order(&team, Command::Decide { question, say: PlanDecision::Approve }).await.unwrap();
        let heard = until_failed(&mut notices).await;
        assert!(heard.contains("it was not run: the rule `deny: Bash(touch:*)`"), "{heard}");
        assert!(!folder.path().join("ran").exists());
    });
}

async fn until_failed(notices: &mut tokio::sync::mpsc::Receiver<max_team_runtime::Notice>) -> String {
    match &*until(notices, "task_failed").await {
        Event::TaskFailed(failed) => failed.error.clone(),
        other => panic!("{other:?}"),
    }
}
