//! Answers to `task_query`: the state of tasks, and the whole result of one, page by page. Finished plans stay
//! queryable.

use max_team_core::id::PlanId;
use max_team_core::limits::{PLANS_LISTED_MAX, RESULT_PAGE_CHARS, TASKS_LISTED_MAX};
use max_team_core::plan::{Plan, TaskStatus, TaskView, WaitReason};
use max_team_core::task_list::OF_PLAN;
use max_team_core::text::Page;

use super::correct::evidence_lines;
use super::messages::{corrected_words, indented, proof_words};
use super::propose::open_plans;
use crate::active_session::ActiveSession;
use crate::error::RuntimeError;
use crate::read_model::ReadModel;
use crate::team_tools::TaskQueryArgs;

/// The state of tasks, as text for a model: of open plans, then of finished ones, newest first.
pub(crate) fn describe(active: &ActiveSession, query: &TaskQueryArgs) -> Result<String, RuntimeError> {
    let open = open_plans(active)?;
    let is_wanted = |id: PlanId| query.plan.is_none_or(|wanted| wanted == id);
    let mut text = String::new();
    if let Some(task) = &query.task_id {
        let known = open.iter().rev().filter(|(id, _)| is_wanted(*id));
        if let Some((id, view)) = known.clone().find_map(|(id, plan)| Some((*id, view_of(plan, task)?))) {
            return Ok(whole(id, &view, query.page));
        }
        for (id, plan) in finished(active, query.plan)? {
            if let Some(view) = view_of(&plan, task) {
                return Ok(whole(id, &view, query.page));
            }
        }
        text.push_str(&format!("There is no task `{task}` in the plans of this session. There are:\n\n"));
    }
    for (id, plan) in open.iter().filter(|(id, _)| is_wanted(*id)) {
        text.push_str(&listed(*id, plan, query));
    }
    for (id, plan) in finished(active, query.plan)? {
        text.push_str(&listed(id, &plan, query));
    }
    Ok(text)
}

/// The finished plans of this session, newest first: one of them, or the last few.
fn finished(active: &ActiveSession, wanted: Option<PlanId>) -> Result<Vec<(PlanId, Plan)>, RuntimeError> {
    let census = ReadModel::new(&active.shared.journal);
    let is_wanted = |plan: PlanId| wanted.is_none_or(|wanted| wanted == plan);
    let lines = census.plans_of(active.session)?.into_iter();
    let over = lines.filter(|line| line.end.is_some() && is_wanted(line.row.plan));
    over.take(PLANS_LISTED_MAX).map(|line| Ok((line.row.plan, census.plan(line.row.plan)?))).collect()
}

fn view_of<'p>(plan: &'p Plan, task: &str) -> Option<TaskView<'p>> {
    plan.task(plan.graph()?.index(task.strip_prefix(OF_PLAN).unwrap_or(task))?)
}

/// One plan with a line for each task that is asked for.
fn listed(id: PlanId, plan: &Plan, query: &TaskQueryArgs) -> String {
    let state = if plan.ended().is_some() { "finished" } else { "open" };
    let (tally, goal) = (plan.tally(), plan.draft().map_or("", |draft| draft.goal.as_str()));
    let mut text =
        format!("Plan {id} ({state}): {} of {} tasks done, {} failed. {goal}\n", tally.done, tally.tasks, tally.failed);
    let is_wanted = |view: &TaskView<'_>| query.status.is_none_or(|status| status == view.status);
    let mut views = plan.tasks().filter(is_wanted);
    for view in views.by_ref().take(TASKS_LISTED_MAX) {
        text.push_str(&line(&view));
        text.push('\n');
    }
    if let more @ 1.. = views.count() {
        text.push_str(&format!("[{more} more tasks: name one with `task_id`, or choose with `status`.]\n"));
    }
    text
}

fn line(view: &TaskView<'_>) -> String {
    let mut text = format!("- {} ({}): {}, attempt {}", view.task.id, view.member, view.status.name(), view.attempt);
    match &view.waits {
        WaitReason::For(needs) => text.push_str(&format!(", waits for {}", needs.join(", "))),
        WaitReason::Answer(question) => text.push_str(&format!(", asks: {question}")),
        WaitReason::Ruling => text.push_str(", waits for a decision"),
        _ => {}
    }
    if let Some(result) = view.result {
        let proof = if view.status == TaskStatus::Done { proof_words(result) } else { "its last answer" };
        let corrected = corrected_words(view);
        text.push_str(&format!(" ({proof}{corrected}, {} characters)", result.output.chars().count()));
    }
    if let Some(decision) = view.decision {
        text.push_str(&format!("; {}", decision.as_text()));
    }
    if !view.error.is_empty() {
        text.push_str(&format!(": {}", view.error));
    }
    text
}

/// One task with a page of its result.
fn whole(id: PlanId, view: &TaskView<'_>, page: Option<usize>) -> String {
    let mut text = format!("{}\nIt is a task of plan {id}: {}\n", line(view), view.task.caption());
    for note in view.notes {
        text.push_str(&format!("Note of {}: {}\n", note.by, note.text));
    }
    let Some(result) = view.result else { return text };
    text.push_str(&evidence_lines(&result.evidence));
    let Page { number, of, text: shown } = Page::of(result.output.trim(), page.unwrap_or(1), RESULT_PAGE_CHARS);
    let more = if number < of { format!("; `page: {}` shows the next", number + 1) } else { String::new() };
    let head = if of > 1 { format!("Result, page {number} of {of}{more}:\n") } else { "Result:\n".to_owned() };
    text.push_str(&format!("{head}{}", indented(shown)));
    text
}
