//! Answers to `task_query`: how tasks stand, and the whole result of one, page by page. Finished plans stay queryable.

use max_team_core::id::PlanId;
use max_team_core::limits::{PLANS_LISTED_MAX, RESULT_PAGE_CHARS, TASKS_LISTED_MAX};
use max_team_core::plan::{Plan, Status, Task, TaskView, Waits};
use max_team_core::text::Page;

use super::letters::{indented, proof_words};
use super::propose::open_plans;
use super::recheck::{evidence_lines, newest_answer};
use crate::census::Census;
use crate::error::RuntimeError;
use crate::floor::Floor;
use crate::team_tools::Query;

/// How tasks stand, in words for a model: of open plans, then of finished ones, newest first.
pub(crate) fn describe(floor: &Floor, query: &Query, drafts: &[Task]) -> Result<String, RuntimeError> {
    let open = open_plans(floor)?;
    let is_wanted = |id: PlanId| query.plan.is_none_or(|wanted| wanted == id);
    let mut text = String::new();
    if let Some(task) = &query.task_id {
        let known = open.iter().rev().filter(|(id, _)| is_wanted(*id));
        if let Some((id, view)) = known.clone().find_map(|(id, plan)| Some((*id, view_of(plan, task)?))) {
            return Ok(whole(id, &view, None, query.page));
        }
        for (id, plan) in finished(floor, query.plan)? {
            if let Some(view) = view_of(&plan, task) {
                return Ok(whole(id, &view, later(floor, id, &view)?.as_deref(), query.page));
            }
        }
        text.push_str(&format!("There is no task `{task}` in the plans of this session. There are:\n\n"));
    }
    for (id, plan) in open.iter().filter(|(id, _)| is_wanted(*id)) {
        text.push_str(&listed(floor, *id, plan, query)?);
    }
    for (id, plan) in finished(floor, query.plan)? {
        text.push_str(&listed(floor, id, &plan, query)?);
    }
    for draft in drafts {
        text.push_str(&format!("- {} ({}): written down, not proposed: {}\n", draft.id, draft.agent, draft.caption()));
    }
    Ok(if text.is_empty() { "There are no plans and no tasks written down.".to_owned() } else { text })
}

/// The finished plans of this session, newest first: one of them, or the last few.
fn finished(floor: &Floor, wanted: Option<PlanId>) -> Result<Vec<(PlanId, Plan)>, RuntimeError> {
    let census = Census::new(&floor.shared.journal);
    let is_wanted = |plan: PlanId| wanted.is_none_or(|wanted| wanted == plan);
    let lines = census.plans_of(floor.session)?.into_iter();
    let over = lines.filter(|line| line.end.is_some() && is_wanted(line.row.plan));
    over.take(PLANS_LISTED_MAX).map(|line| Ok((line.row.plan, census.plan(line.row.plan)?))).collect()
}

fn view_of<'p>(plan: &'p Plan, task: &str) -> Option<TaskView<'p>> {
    plan.task(plan.graph()?.index(task)?)
}

/// The newest answer of a task's member, if it has answered again after the plan ended.
fn later(floor: &Floor, id: PlanId, view: &TaskView<'_>) -> Result<Option<String>, RuntimeError> {
    view.agent.map_or(Ok(None), |agent| newest_answer(&floor.shared.journal, id, agent))
}

/// One plan with a line for each task that is asked for.
fn listed(floor: &Floor, id: PlanId, plan: &Plan, query: &Query) -> Result<String, RuntimeError> {
    let is_over = plan.ended().is_some();
    let state = if is_over { "finished" } else { "open" };
    let (tally, goal) = (plan.tally(), plan.draft().map_or("", |draft| draft.goal.as_str()));
    let mut text =
        format!("Plan {id} ({state}): {} of {} tasks done, {} failed. {goal}\n", tally.done, tally.tasks, tally.failed);
    let is_wanted = |view: &TaskView<'_>| query.status.is_none_or(|status| status == view.status);
    let mut views = plan.tasks().filter(is_wanted);
    for view in views.by_ref().take(TASKS_LISTED_MAX) {
        let later = if is_over { later(floor, id, &view)? } else { None };
        text.push_str(&line(&view, later.as_deref()));
        text.push('\n');
    }
    if let more @ 1.. = views.count() {
        text.push_str(&format!("[{more} more tasks: name one with `task_id`, or choose with `status`.]\n"));
    }
    Ok(text)
}

/// One task. What was checked before the plan ended verifies no later answer.
fn line(view: &TaskView<'_>, later: Option<&str>) -> String {
    let mut text = format!("- {} ({}): {}, attempt {}", view.task.id, view.member, view.status.name(), view.attempt);
    match &view.waits {
        Waits::For(needs) => text.push_str(&format!(", waits for {}", needs.join(", "))),
        Waits::Answer(question) => text.push_str(&format!(", asks: {question}")),
        Waits::Ruling => text.push_str(", waits for a decision"),
        _ => {}
    }
    if let Some(answer) = later {
        text.push_str(&format!(" (answered again after the plan ended, {} characters)", answer.chars().count()));
    } else if let Some(result) = view.result {
        let proof = if view.status == Status::Done { proof_words(result) } else { "its last answer" };
        text.push_str(&format!(" ({proof}, {} characters)", result.output.chars().count()));
    }
    if let Some(decision) = view.decision {
        text.push_str(&format!("; {}", decision.words()));
    }
    if !view.error.is_empty() {
        text.push_str(&format!(": {}", view.error));
    }
    text
}

/// One task with a page of its result.
fn whole(id: PlanId, view: &TaskView<'_>, later: Option<&str>, page: Option<usize>) -> String {
    let mut text = format!("{}\nIt is a task of plan {id}: {}\n", line(view, later), view.task.caption());
    for note in view.notes {
        text.push_str(&format!("Note of {}: {}\n", note.by, note.text));
    }
    let evidence = view.result.map_or(String::new(), |result| evidence_lines(&result.evidence));
    text.push_str(&evidence);
    if later.is_some() && !evidence.is_empty() {
        text.push_str("The evidence above is from before the newest answer.\n");
    }
    let known = view.result.map_or("", |result| result.output.trim());
    let output = match later.map(str::trim) {
        Some(answer) if known.is_empty() => answer.to_owned(),
        Some(answer) => format!("{answer}\n\n(Before the plan ended it had said:)\n{known}"),
        None if view.result.is_none() => return text,
        None => known.to_owned(),
    };
    let Page { number, of, text: shown } = Page::of(&output, page.unwrap_or(1), RESULT_PAGE_CHARS);
    let more = if number < of { format!("; `page: {}` shows the next", number + 1) } else { String::new() };
    let head = if of > 1 { format!("Result, page {number} of {of}{more}:\n") } else { "Result:\n".to_owned() };
    text.push_str(&format!("{head}{}", indented(shown)));
    text
}
