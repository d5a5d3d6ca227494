//! What rules deny holds for whatever an agent touches it with: a search, a command, a check.

use std::path::Path;

use max_team_core::event::Event;
use max_team_core::plan::event::{Approve, Proof, Say};
use max_team_core::policy::rule::{Anchors, List, Origin, Scope};
use max_team_core::policy::{Permissions, Rule};
use max_team_journal::Journal;
use max_team_runtime::{Command, Which};

use super::limits::block_on;
use super::team::{rest, with_team};
use super::{house_of, open, order, owner, project, until};

/// Denials of the user's, for a project's folder.
fn denials(root: &Path, texts: &[&str]) -> Permissions {
    let root = root.to_str().unwrap();
    let origin = Origin { scope: Scope::User, file: "settings.json".into(), line: 1 };
    let anchors = Anchors { root, base: root, home: "/" };
    let rules = texts.iter().map(|text| Rule::new(List::Deny, text, origin.clone(), &anchors)).collect();
    Permissions { root: root.to_owned(), rules }
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
        let team = house_of(&Journal::memory(), folder.path(), recording);
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
        let team = house_of(&journal, folder.path(), &recording);
        let mut notices = team.watch();
        let mut open = with_team(Which::New, Approve::Plan);
        for mate in &mut open.team.as_mut().unwrap().members {
            mate.settings.permissions = denials(folder.path(), texts);
        }
        let opened = team.open(owner(), folder.path(), open).await.unwrap();
        rest(&mut notices).await;
        order(&team, Command::Say { session: opened.session, text: "go".into() }).await.unwrap();
        let (question, _) = rest(&mut notices).await.asked();
        order(&team, Command::Decide { question, say: Say::Approve }).await.unwrap();
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
