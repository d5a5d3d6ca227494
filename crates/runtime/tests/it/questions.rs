//! What waits for a person: the clock stands still, a changed plan is another question, a stricter mode holds at once.

use max_team_core::agent::Settings;
use max_team_core::event::{Event, ToolOutcome};
use max_team_core::id::EnvelopeId;
use max_team_core::plan::event::{ApprovalMode, Cause, PlanDecision, PlanEnd, PlanQuestion};
use max_team_core::plan::{Edit, TaskStatus, WaitReason, cannot_run};
use max_team_core::policy::{Mode, PermissionAnswer};
use max_team_journal::Journal;
use max_team_runtime::{AnswerWord, Command, RuntimeError, UserMail, Which, new_id};

use super::calls::{inputs, say};
use super::crashes::check_rest;
use super::limits::{block_on, only_plan, plan_of, run_plan, until};
use super::read::Reads as _;
use super::team::{ask, rest, with_team};
use super::{open, order, owner, project, runtime_of, yes};

/// Whoever waits for a person is not out of time, however long that takes; then they have what they had left.
#[test]
fn a_task_that_waits_for_a_person_does_not_run_out_of_time() {
    let recording = r#"
answers: [{text: Report.}, {text: Report.}, {text: Report.}]
members:
  leo/a: [{parts: [{tool: write_file, input: {path: a.txt, content: x}}]}, {text: Written.}]
  ada/b: [{text: One moment, delta_ms: 3600000}]
"#;
    block_on(async {
        let folder = super::project();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), recording);
        // b runs out of its longer time while a waits for a person.
        let tasks = r#"[
            {"id": "a", "agent": "leo", "description": "A", "owns": ["src/**"], "timeout_ms": 3000, "retry": 0},
            {"id": "b", "agent": "ada", "description": "B", "timeout_ms": 5000, "retry": 0}]"#;
        let (session, mut notices) = run_plan(&team, folder.path(), tasks).await;
        let heard = until(&mut notices, "task_failed", 1).await;
        let failed = heard.events.iter().rev().find_map(|(_, event)| match event {
            Event::TaskFailed(failed) => Some((failed.task.clone(), failed.cause)),
            _ => None,
        });
        assert_eq!(failed, Some(("b".to_owned(), Cause::Timeout)));
        let plan = team.plan(only_plan(&journal)).unwrap();
        let view = plan.task(0).unwrap();
        assert_eq!((view.status, view.waits), (TaskStatus::Running, WaitReason::Approval));
        let inbox = UserMail::new(&journal).inbox().unwrap();
        let asked = inbox.iter().find(|pending| pending.who == "leo").unwrap().row.question;
        order(&team, Command::Answer { session, question: asked, answer: yes() }).await.unwrap();
        until(&mut notices, "task_done", 1).await;
        assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "x");
    });
}

const ASKS: &str = r#"
answers:
  - parts: [{tool: submit_plan, input: {goal: g, tasks: [{id: a, agent: leo, description: A}]}}]
  - text: I have no idea.
  - text: Report.
members:
  leo/a:
    - parts: [{tool: need_clarify, input: {question: "Which colour?"}}]
    - {text: "Red it is.", given: crimson, otherwise: "I took blue."}
"#;

/// What the lead has no answer to is the user's to answer, if there is anybody to ask.
#[test]
fn a_question_that_the_lead_is_silent_about_is_the_users() {
    for (approve, said) in [(ApprovalMode::Plan, "Red it is."), (ApprovalMode::Never, "I took blue.")] {
        block_on(async {
            let folder = super::project();
            let journal = Journal::memory();
            let team = runtime_of(&journal, folder.path(), ASKS);
            let (session, mut notices) = ask(&team, folder.path(), approve).await;
            let mut heard = rest(&mut notices).await;
            if approve == ApprovalMode::Plan {
                order(&team, Command::Decide { question: heard.asked().0, say: PlanDecision::Approve }).await.unwrap();
                assert!(rest(&mut notices).await.waiting);
                let pending = UserMail::new(&journal).inbox().unwrap().pop().unwrap();
                assert_eq!((pending.who.as_str(), pending.words().as_str()), ("leo", "need_clarify: Which colour?"));
                let answer = PermissionAnswer { comment: "crimson".into(), ..yes() };
                order(&team, Command::Answer { session, question: pending.row.question, answer }).await.unwrap();
                heard = rest(&mut notices).await;
            }
            assert!(!heard.waiting, "{:?}", heard.names());
            let plan = team.plan(only_plan(&journal)).unwrap();
            assert_eq!(plan.ended(), Some(PlanEnd::Done), "{:?}", heard.names());
            assert_eq!(plan.task(0).unwrap().result.unwrap().output, said);
            let lead = inputs(&journal, "max");
            let rule = "If your turn ends without an answer, the user is asked, and you are told what they answer.";
            assert!(lead.iter().any(|text| text.contains(rule)), "{lead:?}");
            let answer = "(In task `a` I asked: Which colour? The user answered: crimson)";
            assert_eq!(lead.iter().any(|text| text.contains(answer)), approve == ApprovalMode::Plan, "{lead:?}");
            check_rest(&journal);
        });
    }
}

/// A yes is to what was shown, and a change that cannot be made says why.
#[test]
fn a_changed_plan_is_another_question() {
    let recording = "answers: [{text: Report.}]\nmembers:\n  ada/a: [{text: done}]\n";
    block_on(async {
        let folder = super::project();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), recording);
        let mut notices = team.watch();
        let mut start = with_team(Which::New, ApprovalMode::Plan);
        for teammate in start.team.iter_mut().flat_map(|team| &mut team.members) {
            let usual_ms = if teammate.definition.name == "ada" { 7_000 } else { 5_000 };
            teammate.settings.constraints.timeout_ms = Some(usual_ms);
        }
        let session = team.open(owner(), folder.path(), start).await.unwrap().session;
        rest(&mut notices).await;
        let draft = plan_of(r#"[{"id": "a", "agent": "leo", "description": "A"}]"#);
        order(&team, Command::Propose { session, draft, source: "a test".into() }).await.unwrap();
        let (first, _) = rest(&mut notices).await.asked();
        let proposed = || team.plan(only_plan(&journal)).unwrap().proposed().unwrap().clone();
        let edit =
            |question, edit: Edit| order(&team, Command::Decide { question, say: PlanDecision::Edit(vec![edit]) });

        let bob = || Edit::Assign { task: "a".into(), agent: "bob".into() };
        let nobody = edit(first, bob()).await;
        assert!(
            matches!(&nobody, Err(RuntimeError::DraftFlaws(flaws)) if cannot_run(flaws).contains("no member `bob`")),
            "{nobody:?}"
        );
        let elsewhere = journal.reopen().unwrap();
        let from_elsewhere = async |edit: Edit| {
            let key = EnvelopeId::new(new_id());
            UserMail::new(&elsewhere).decide(&owner(), key, first, &PlanDecision::Edit(vec![edit])).await
        };
        let nothing = from_elsewhere(Edit::Skip { task: "b".into(), skip: true }).await;
        assert!(
            matches!(&nothing, Err(RuntimeError::DraftFlaws(flaws)) if cannot_run(flaws).contains("no such task")),
            "{nothing:?}"
        );
        // A mistake that only the team reveals is found by the process that has the team, and told there.
        from_elsewhere(bob()).await.unwrap();
        let heard = until(&mut notices, "edit_refused", 1).await;
        let refused = heard.events.into_iter().find_map(|(_, event)| match event {
            Event::EditRefused(refused) => Some(refused),
            _ => None,
        });
        assert!(refused.unwrap().error.contains("no member `bob`"));

        edit(first, Edit::Assign { task: "a".into(), agent: "ada".into() }).await.unwrap();
        let (second, about) = until(&mut notices, "plan_asked", 1).await.asked();
        assert_eq!((about, first == second), (PlanQuestion::Proposal, false));
        assert_eq!(proposed().draft.tasks[0].timeout_ms, Some(7_000), "as long as its new owner has");
        let checked_by = |line: &str| Edit::Verify { task: "a".into(), verify: vec![line.into()] };
        edit(second, checked_by("rm -r src")).await.unwrap();
        let (third, _) = until(&mut notices, "plan_asked", 1).await.asked();
        assert_eq!(proposed().risks.len(), 1);
        edit(third, Edit::Verify { task: "a".into(), verify: Vec::new() }).await.unwrap();
        let (last, _) = until(&mut notices, "plan_asked", 1).await.asked();
        assert!(proposed().risks.is_empty());

        let stale = order(&team, Command::Decide { question: first, say: PlanDecision::Approve }).await;
        assert!(matches!(&stale, Err(RuntimeError::Answered { said, .. }) if *said == AnswerWord::Edited), "{stale:?}");
        assert_eq!(UserMail::new(&journal).inbox().unwrap().len(), 1);
        order(&team, Command::Decide { question: last, say: PlanDecision::Approve }).await.unwrap();
        until(&mut notices, "plan_ended", 1).await;
        assert_eq!(team.plan(only_plan(&journal)).unwrap().ended(), Some(PlanEnd::Done));
    });
}

/// The session became stricter while a member was at work: the member is, too, from its next step on.
#[test]
fn a_stricter_mode_reaches_those_at_work() {
    let recording = r#"
answers: [{text: I do not know.}, {text: Report.}]
members:
  leo/a:
    - parts: [{tool: need_clarify, input: {question: "May I?"}}]
    - parts: [{tool: write_file, input: {path: a.txt, content: x}}]
    - {text: Tried.}
"#;
    for restarts in [false, true] {
        block_on(async {
            let folder = super::project();
            let mut journal = Journal::memory();
            let mut team = runtime_of(&journal, folder.path(), recording);
            let tasks = r#"[{"id": "a", "agent": "leo", "description": "A"}]"#;
            let (session, mut notices) = run_plan(&team, folder.path(), tasks).await;
            // It asks the lead, who is silent, and then the user: a moment to think again.
            assert!(rest(&mut notices).await.waiting);
            if restarts {
                team.shutdown().await.unwrap();
                journal = journal.reopen().unwrap();
                team = runtime_of(&journal, folder.path(), recording);
                notices = team.watch();
                let mut again = with_team(Which::Latest, ApprovalMode::Plan);
                again.settings.mode = Mode::Plan;
                for teammate in again.team.iter_mut().flat_map(|team| &mut team.members) {
                    teammate.settings.mode = Mode::Plan;
                }
                team.open(owner(), folder.path(), again).await.unwrap();
                rest(&mut notices).await;
            } else {
                let settings = Settings { mode: Mode::Plan, ..open(Which::New).settings };
                order(&team, Command::Configure { session, settings }).await.unwrap();
            }
            let question = UserMail::new(&journal).inbox().unwrap().pop().unwrap().row.question;
            order(&team, Command::Answer { session, question, answer: yes() }).await.unwrap();
            let heard = until(&mut notices, "plan_ended", 1).await;
            let refused = heard.events.iter().any(|(who, event)| {
                who == "leo" && matches!(event, Event::ToolDone(done) if done.ending == ToolOutcome::Refused)
            });
            assert!(refused, "{:?}", heard.names());
            assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one\n");
        });
    }
}

/// What somebody has answered while nobody ran the session is a message for whoever asked, and no question any more.
#[test]
fn a_question_that_was_answered_meanwhile_is_not_counted() {
    let recording = r#"
answers:
  - parts: [{tool: spawn_teammate, input: {name: amy, role: writer, prompt: Write., type: general}},
            {tool: spawn_teammate, input: {name: ben, role: writer, prompt: Write., type: general}}]
  - text: Begun.
  - text: Noted.
  - text: Noted.
members:
  amy: [{parts: [{tool: write_file, input: {path: amy.txt, content: x}}]}, {text: Written.}]
  ben: [{parts: [{tool: write_file, input: {path: ben.txt, content: x}}]}, {text: Written.}]
"#;
    let folder = super::project();
    let journal = Journal::memory();
    block_on(async {
        let team = runtime_of(&journal, folder.path(), recording);
        let (_, mut notices) = super::calls::say(&team, folder.path(), super::teammates::leading(Which::New)).await;
        let heard = until(&mut notices, "question_asked", 2).await;
        let asked = heard.events.iter().filter_map(|(_, event)| match event {
            Event::QuestionAsked(asked) => Some(asked.question),
            _ => None,
        });
        let inbox = UserMail::new(&journal).inbox().unwrap().into_iter().map(|pending| pending.row.question);
        assert_eq!(inbox.collect::<Vec<_>>(), asked.collect::<Vec<_>>(), "they are listed as they were heard");
        team.shutdown().await.unwrap();
    });
    let journal = journal.reopen().unwrap();
    block_on(async {
        let post = UserMail::new(&journal);
        let ben = post.inbox().unwrap().into_iter().find(|pending| pending.who == "ben").unwrap().row.question;
        post.answer(&owner(), EnvelopeId::new(new_id()), ben, &yes()).await.unwrap();
        let team = runtime_of(&journal, folder.path(), recording);
        let opened = team.open(owner(), folder.path(), super::teammates::leading(Which::Latest)).await.unwrap();
        assert_eq!((opened.recovered.approvals, opened.recovered.mail), (1, 1));
        let [amy] = opened.asked.as_slice() else { panic!("{:?}", opened.asked) };
        assert_eq!((amy.by.as_str(), amy.task.as_deref()), ("amy", Some("Write.")));
        team.shutdown().await.unwrap();
    });
}

const EDITS: &str = r#"
answers:
  - parts: [{tool: edit_file, input: {path: a.txt, old: one, new: two}}]
"#;

/// Nobody ran the session when it was stopped: whoever opens it is not told that this goes on.
#[tokio::test]
async fn work_stopped_without_a_process_is_not_continued() {
    for stops in [false, true] {
        let folder = project();
        let journal = Journal::memory();
        let team = runtime_of(&journal, folder.path(), EDITS);
        let (session, mut notices) = say(&team, folder.path(), open(Which::New)).await;
        assert!(rest(&mut notices).await.waiting);
        order(&team, Command::Queue { session, text: "use tabs".into() }).await.unwrap();
        team.shutdown().await.unwrap();
        let journal = journal.reopen().unwrap();
        if stops {
            UserMail::new(&journal).stop_session(&owner(), session).await.unwrap();
        }
        let team = runtime_of(&journal, folder.path(), EDITS);
        let found = team.open(owner(), folder.path(), open(Which::Latest)).await.unwrap().recovered;
        let want = if stops { (0, 0, 0) } else { (1, 1, 1) };
        assert_eq!((found.agents, found.mail, found.approvals), want, "{found:?}");
        team.shutdown().await.unwrap();
    }
}
