//! The messages that a plan's events send: tasks to members, reports to the lead.
//!
//! Long texts for a model are files under `prompts/`; this module fills them in, within named bounds.

use std::borrow::Cow;
use std::path::Path;

use max_team_core::body::{self, Body, Proposal};
use max_team_core::delegation::ending::not_done;
use max_team_core::event::Event;
use max_team_core::id::PlanId;
use max_team_core::ledger::dollars;
use max_team_core::limits::{BESIDE_TASKS_MAX, RESULT_TOLD_CHARS_MAX, RESULT_TOLD_CHARS_MIN, RESULTS_TOLD_CHARS_MAX};
use max_team_core::message::{Assignment, Envelope, MessageKind};
use max_team_core::plan::event::{
    Correction, PlanDecision, PlanEnd, PlanProposed, Proof, Recheck, ResourceUse, TaskAssigned, TaskFiles, TaskResult,
};
use max_team_core::plan::{Budget, LeadNote, Plan, TaskStatus, TaskView};
use max_team_core::policy::DecidedBy;

use super::{plan_stream, upstream};
use crate::active_session::ActiveSession;
use crate::agent::derived;
use crate::shared::now_ms;
use crate::template::fill;
use crate::{session, worktree};

const TASK: &str = include_str!("../../../../prompts/task.md");
const DELEGATED: &str = include_str!("../../../../prompts/delegated.md");
const FAILED: &str = include_str!("../../../../prompts/failed.md");
const CLARIFY: &str = include_str!("../../../../prompts/clarify.md");
const APPROVED: &str = include_str!("../../../../prompts/approved.md");
const CHANGES: &str = include_str!("../../../../prompts/changes.md");
const REJECTED: &str = include_str!("../../../../prompts/rejected.md");
const REPLACED: &str = include_str!("../../../../prompts/replaced.md");
const REPORT: &str = include_str!("../../../../prompts/report.md");
const STOPPED: &str = include_str!("../../../../prompts/stopped.md");

/// Tasks that a report lists one by one; of more, only those that did not succeed.
const REPORT_TASKS_MAX: usize = 60;
/// Characters of a task's error or evidence in a report.
const REPORT_CHARS_MAX: usize = 600;

/// The message to a member that the lead gives a single task.
pub(crate) fn delegated(description: &str) -> String {
    fill(DELEGATED, &[("description", description)])
}

/// The message that starts a plan.
pub(crate) fn proposal(active: &ActiveSession, from: &str, proposed: Box<PlanProposed>) -> Envelope {
    let to = plan_stream(proposed.plan);
    Envelope::new(
        derived(&[to.as_bytes(), b"proposal"]),
        from,
        to,
        MessageKind::PlanApprovalRequest,
        Body::Proposal(Proposal { session: Some(active.session), proposed: Some(proposed) }),
        now_ms(),
    )
}

/// The message that assigns a task to its owner, who works in `root`.
pub(crate) fn assignment(
    active: &ActiveSession,
    root: &Path,
    plan: &Plan,
    given: &Assignment,
    assigned: &TaskAssigned,
) -> Option<Envelope> {
    let (index, id) = (plan.graph()?.index(&assigned.task)?, given.plan?);
    let view = plan.task(index)?;
    let stream = plan_stream(id);
    let text = task_text(active, root, plan, id, &view, assigned);
    let Budget { nano: budget_nano, tokens: budget_tokens, .. } = plan.task_budget(index);
    let assignment = Some(Cow::Borrowed(given));
    let task = body::Task { text: &text, assignment, budget_nano, budget_tokens, ..body::Task::default() };
    Some(Envelope::new(
        derived(&[stream.as_bytes(), assigned.task.as_bytes(), &assigned.attempt.to_be_bytes(), b"assign"]),
        stream,
        session::agent_stream(assigned.agent),
        MessageKind::TaskAssign,
        Body::Task(task),
        now_ms(),
    ))
}

fn task_text(
    active: &ActiveSession,
    root: &Path,
    plan: &Plan,
    id: PlanId,
    view: &TaskView<'_>,
    assigned: &TaskAssigned,
) -> String {
    let (task, note) = (view.task, assigned.note.as_str());
    let list = |items: &[String]| items.iter().map(|item| format!("- `{item}`\n")).collect::<String>();
    let mut proof = String::new();
    if !task.outputs.is_empty() {
        proof.push_str(&format!("\n## Files that must exist afterwards: the program looks\n{}", list(&task.outputs)));
    }
    if !task.verify.is_empty() {
        proof.push_str(&format!(
            "\n## Commands that must pass afterwards: the program runs them\n{}",
            list(&task.verify)
        ));
    }
    let owned = match task.owns.as_deref() {
        None => String::new(),
        Some([]) => "\n## Files that are yours to change\nNone: this task changes no file.\n".to_owned(),
        Some(owns) => format!("\n## Files that are yours to change\n{}", list(owns)),
    };
    let upstream = upstream::told(active, root, plan, id, view);
    let note = if note.is_empty() { String::new() } else { format!("\n## Before you begin\n{note}\n") };
    let beside = beside(plan, &assigned.beside);
    let description = if task.description.trim().is_empty() { &task.title } else { &task.description };
    let description = format!("{description}{}", lead_notes(view.notes));
    let values = [
        ("title", task.caption()),
        ("description", description.as_str()),
        ("proof", proof.as_str()),
        ("owned", owned.as_str()),
        ("beside", beside.as_str()),
        ("upstream", upstream.as_str()),
        ("note", note.as_str()),
    ];
    fill(TASK, &values)
}

/// The lead's notes on an approved task, each marked as the lead's.
fn lead_notes(notes: &[LeadNote]) -> String {
    notes.iter().map(|note| format!("\n\nNote of {}: {}", note.by, note.text)).collect()
}

/// The tasks that run at the same time, with the files that each owns.
fn beside(plan: &Plan, tasks: &[String]) -> String {
    let views: Vec<TaskView<'_>> = tasks.iter().filter_map(|task| plan.task(plan.graph()?.index(task)?)).collect();
    if views.is_empty() {
        return String::new();
    }
    let mut text = "\n## At work beside you as you begin, in the same project\n".to_owned();
    for view in views {
        let owns = match view.task.owns.as_deref() {
            None => "owns no particular files".to_owned(),
            Some([]) => "changes no files".to_owned(),
            Some(owns) => format!("owns `{}`", owns.join("`, `")),
        };
        text.push_str(&format!("- `{}` ({}): {}; {owns}\n", view.task.id, view.member, view.task.caption()));
    }
    text.push_str("Do not change files that these tasks own. A fault there may be unfinished work.\n");
    text
}

/// The tasks whose owners are at work while a member whose task is over is asked again; empty if there are none.
pub(crate) fn beside_now(active: &ActiveSession, plan: &Plan, view: &TaskView<'_>) -> String {
    let at_work = |other: &TaskView<'_>| {
        let is_asked_again = |agent| active.is_working(&session::agent_stream(agent));
        plan.active().any(|index| index == other.index) || other.agent.is_some_and(is_asked_again)
    };
    let others = plan.tasks().filter(|other| other.index != view.index && at_work(other));
    let others: Vec<String> = others.map(|other| other.task.id.clone()).take(BESIDE_TASKS_MAX).collect();
    beside(plan, &others).trim().to_owned()
}

/// The message to the lead about an event, if there is one.
pub(super) fn news(plan: &Plan, id: PlanId, event: &Event) -> Option<(MessageKind, String)> {
    let name = id.to_string();
    let view = |task: &str| plan.task(plan.graph()?.index(task)?);
    match event {
        Event::TaskFailed(failed) if failed.retry_at_ms.is_none() => {
            let view = view(&failed.task)?;
            if !plan.awaits_ruling(view.index) {
                return None;
            }
            let attempt = failed.attempt.to_string();
            let values = [
                ("task", failed.task.as_str()),
                ("plan", &name),
                ("member", view.member),
                ("attempt", &attempt),
                ("error", &failed.error),
                ("caption", view.task.caption()),
            ];
            Some((MessageKind::TaskFailed, fill(FAILED, &values)))
        }
        Event::TaskAsked(asked) => {
            let view = view(&asked.task)?;
            let values = [
                ("member", view.member),
                ("task", asked.task.as_str()),
                ("plan", &name),
                ("caption", view.task.caption()),
                ("question", &asked.question),
            ];
            Some((MessageKind::NeedClarify, fill(CLARIFY, &values)))
        }
        Event::PlanAnswered(answered) => match &answered.say {
            // If a setting approves the plan, the lead was told so when it proposed the plan.
            say if is_yes(say) && has_just_begun(plan) && !matches!(answered.by, DecidedBy::Rule(_)) => {
                Some((MessageKind::PlanApprovalResponse, fill(APPROVED, &[("plan", &name)])))
            }
            PlanDecision::Changes(comment) => {
                Some((MessageKind::PlanApprovalResponse, fill(CHANGES, &[("plan", &name), ("comment", comment)])))
            }
            PlanDecision::Reject(reason) if !reason.trim().is_empty() && plan.ended() == Some(PlanEnd::Rejected) => {
                let revised = plan.proposed().and_then(|proposed| proposed.revises);
                let rest = revised.map_or_else(String::new, |old| format!(" Plan {old} goes on as it was."));
                let values = [("plan", name.as_str()), ("rest", &rest), ("comment", reason)];
                Some((MessageKind::PlanApprovalResponse, fill(REJECTED, &values)))
            }
            _ => None,
        },
        Event::PlanEnded(ended) => {
            let told = matches!(ended.end, PlanEnd::Done | PlanEnd::Partial | PlanEnd::Failed | PlanEnd::Stopped);
            let has_run = ended.tally.ran + ended.tally.cached > 0;
            match plan.replaced_by() {
                Some(by) if has_run => {
                    let values = [("plan", name.as_str()), ("by", &by.to_string()), ("summary", &summary(plan))];
                    Some((MessageKind::AllTasksDone, fill(REPLACED, &values)))
                }
                _ => (told && has_run).then(|| (MessageKind::AllTasksDone, report(plan, &name))),
            }
        }
        _ => None,
    }
}

/// Whether the plan was approved.
pub(super) fn is_yes(say: &PlanDecision) -> bool {
    matches!(say, PlanDecision::Approve | PlanDecision::FirstWave)
}

/// Whether the answer approves the start of the plan, not more budget or a later task.
fn has_just_begun(plan: &Plan) -> bool {
    plan.is_approved()
        && plan.tasks().all(|view| view.attempt == 0 || (view.attempt == 1 && view.status == TaskStatus::Dispatched))
}

/// The files that stopped tasks leave changed, for the lead.
pub(super) fn files_words(left: &[TaskFiles]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let line = |TaskFiles { task, files, running, moved }: &TaskFiles| {
        let mut words = vec![files.join(", ")];
        words
            .extend(running.iter().map(|command| format!("`{command}` was still running: its changes are not listed")));
        words
            .extend(moved.iter().map(|moved| format!("`{}` is protected and was moved to `{}`", moved.path, moved.to)));
        words.retain(|words| !words.is_empty());
        format!("- {task}: {}\n", words.join("; "))
    };
    format!("\nFiles that unfinished tasks have changed:\n{}", left.iter().map(line).collect::<String>())
}

fn report(plan: &Plan, id: &str) -> String {
    let goal = plan.draft().map_or("", |draft| draft.goal.as_str());
    let values = [("plan", id), ("goal", goal), ("summary", &summary(plan))];
    // A user who stopped the plan knows it: this text does not ask the lead to report it.
    fill(if plan.is_stopped_by_person() { STOPPED } else { REPORT }, &values)
}

/// The outcome of a plan, task by task.
pub(crate) fn summary(plan: &Plan) -> String {
    let tally = plan.tally();
    let mut text = format!(
        "{tally}. Cost: {}, {} tokens, {} s of work.\n",
        cost(tally.spent),
        tally.spent.usage.input_total() + tally.spent.usage.output,
        tally.spent.ms / 1_000,
    );
    let few = tally.tasks <= REPORT_TASKS_MAX;
    let named = || plan.tasks().filter(|view| few || view.status != TaskStatus::Done).take(REPORT_TASKS_MAX);
    let share = RESULTS_TOLD_CHARS_MAX / named().count().max(1);
    let most = share.clamp(RESULT_TOLD_CHARS_MIN, RESULT_TOLD_CHARS_MAX);
    for view in named() {
        text.push_str(beginning(&line(&view), REPORT_CHARS_MAX));
        text.push('\n');
        text.push_str(&told_result(&view, most));
    }
    text
}

/// The answer of a task's owner, cut to the room in a report.
fn told_result(view: &TaskView<'_>, most: usize) -> String {
    let output = view.result.map_or("", |result| result.output.trim());
    let told = beginning(output, most);
    let mut text = if told.is_empty() { String::new() } else { format!("{}\n", indented(told)) };
    if told.len() < output.len() {
        let (told, all, task) = (told.chars().count(), output.chars().count(), &view.task.id);
        text.push_str(&format!("  [{told} of {all} characters; `task_query` with `task_id: {task}` shows all.]\n"));
    }
    text
}

fn beginning(text: &str, chars: usize) -> &str {
    let end = text.char_indices().nth(chars).map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or(text)
}

/// A member's text, indented, so that none of its lines can pass for one of ours.
pub(super) fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// What something cost; estimates are marked.
pub(super) fn cost(spent: ResourceUse) -> String {
    let all = format!("${:.4}", dollars(spent.nano));
    match spent.unknown_nano {
        0 => all,
        unknown => format!("{all} (${:.4} of it estimated)", dollars(unknown)),
    }
}

pub(super) fn proof_words(result: &TaskResult) -> &'static str {
    match result.proof {
        Proof::Verified if result.is_only_files() => "verified only that its files exist",
        Proof::Verified => "verified",
        Proof::Unverified => "unverified",
        Proof::Failed => "a check failed",
    }
}

/// How the last correction of a task went; empty if there was none.
pub(super) fn corrected_words(view: &TaskView<'_>) -> String {
    let Some(Correction { checks, not_done, .. }) = view.correction else { return String::new() };
    let done = match checks {
        _ if not_done => "the last correction is not done",
        Recheck::Unneeded => "asked again",
        _ => "corrected",
    };
    let checked = checks.reason().map_or_else(String::new, |reason| format!(", not checked again: {reason}"));
    format!(", {done}{checked}")
}

/// Names the commands whose outcome is unknown.
fn unknown_words(commands: &[String]) -> String {
    match commands {
        [] => String::new(),
        commands => format!("; outcome unknown, interrupted by a crash: `{}`", commands.join("`, `")),
    }
}

/// Whether the answer of a task's owner says why the task is not done.
fn is_said(view: &TaskView<'_>) -> bool {
    view.result.is_some_and(|result| not_done(&result.output).is_some())
}

fn line(view: &TaskView<'_>) -> String {
    let proof = match view.result.filter(|_| view.status == TaskStatus::Done) {
        Some(TaskResult { cached: Some(cached), .. }) => format!(" (unverified, {})", cached.origin_text()),
        Some(result) => {
            format!(" ({}{}{})", proof_words(result), corrected_words(view), unknown_words(&result.unknown))
        }
        None => String::new(),
    };
    let mut line =
        format!("- {} by {}: {}{proof}, {}", view.task.id, view.member, view.status.name(), cost(view.spent));
    if let Some(result) = view.result {
        for evidence in &result.evidence {
            line.push_str(&format!("; {} {}", if evidence.ok { "✓" } else { "✗" }, evidence.what));
            // Which changes of a worktree are in the project, and which are not.
            if evidence.what == worktree::MERGE {
                line.push_str(&format!(" ({})", evidence.detail));
            }
            if let Some(caveat) = evidence.caveat() {
                line.push_str(&format!(" ({caveat})"));
            }
        }
    }
    if let Some(decision) = view.decision {
        line.push_str(&format!("; {}", decision.as_text()));
    }
    // The reason of an owner that ended its task as not done is in its answer, which follows.
    if !view.error.is_empty() && !is_said(view) {
        line.push_str(&format!(": {}", view.error));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_in_text_is_not_filled_again() {
        assert_eq!(fill("{a} {b} {c}", &[("a", "{b}"), ("b", "2")]), "{b} 2 {c}");
        assert_eq!(fill("{", &[("a", "1")]), "{");
    }

    /// One instruction each: a decision can follow a message to another owner, and a role says how its answer ends.
    #[test]
    fn texts_do_not_contradict_each_other() {
        assert!(FAILED.contains("Then decide `fixed` or `retry`") && !FAILED.contains("one call"), "{FAILED}");
        for text in [TASK, DELEGATED] {
            assert!(text.contains("End as your role says; if it says nothing about that,"), "{text}");
        }
        // The members also take part in talks of teammates.
        let roles = ["ada", "leo", "ray", "sam"].map(|name| {
            let path = format!("{}/../../prompts/{name}.md", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_to_string(path).unwrap()
        });
        assert!(roles.iter().all(|role| !role.contains("one task")), "{roles:?}");
    }
}
