//! A plan as JSON: `plans show --json`, and what a web page draws.
//!
//! The JSON of a task has the names that the product's design gave it, so that what reads those reads this.

use std::collections::HashMap;

use max_team_core::event::Event;
use max_team_core::id::PlanId;
use max_team_core::plan::{Graph, Plan, PlanState, TaskStatus, TaskView};
use max_team_core::time::rfc3339;
use serde_json::{Map, Value, json};

use crate::plan_diagram;

/// When things happened to a task.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    updated: i64,
    started: Option<i64>,
    finished: Option<i64>,
}

/// A plan with the results of its tasks. `events` are those of the plan.
pub fn view(id: PlanId, plan: &Plan, state: PlanState, events: &[(i64, Event)]) -> Value {
    let created = events.first().map_or(0, |(at_ms, _)| *at_ms);
    let times = times(events);
    let tasks: Vec<Value> = plan
        .tasks()
        .map(|view| {
            let known = times.get(view.task.id.as_str()).copied().unwrap_or_default();
            task(plan, &view, created, known)
        })
        .collect();
    json!({
        "id": id,
        "session": plan.session(),
        "goal": plan.draft().map(|draft| &draft.goal),
        "created_at": rfc3339(created),
        "approved": plan.is_approved(),
        "state": state,
        "ended": plan.ended(),
        "tally": plan.tally(),
        "forecast": plan.forecast(),
        "tasks": tasks,
    })
}

/// The same for a screen: with the open questions, the place of each task, and all that its draft says.
pub fn screen(id: PlanId, plan: &Plan, state: PlanState, events: &[(i64, Event)]) -> Value {
    let mut value = view(id, plan, state, events);
    let Value::Object(object) = &mut value else { return value };
    let questions: Vec<Value> =
        plan.asked().map(|(question, about)| json!({ "question": question, "about": about })).collect();
    object.insert("questions".to_owned(), json!(questions));
    let (Some(draft), Some(graph)) = (plan.draft(), plan.graph()) else { return value };
    object.insert("layout".to_owned(), json!(plan_diagram::place(draft, graph)));
    let critical = graph.critical();
    if let Some(Value::Array(tasks)) = object.get_mut("tasks") {
        for (task, view) in tasks.iter_mut().zip(plan.tasks()) {
            let Value::Object(task) = task else { continue };
            task.extend(more(graph, &view, critical.contains(&view.index)));
        }
    }
    value
}

/// What a screen shows of a task beyond its result.
fn more(graph: &Graph, view: &TaskView<'_>, is_critical: bool) -> Map<String, Value> {
    let draft = view.task;
    let mut more = Map::new();
    for (name, value) in [
        ("worker", json!(view.agent)),
        ("error", json!(view.error)),
        ("gated", json!(graph.is_gated(view.index))),
        ("critical", json!(is_critical)),
        ("spent", json!(view.spent)),
        ("outputs", json!(draft.outputs)),
        ("verify", json!(draft.verify)),
    ] {
        more.insert(name.to_owned(), value);
    }
    let optional = [
        ("when", draft.when.as_ref().map(|when| json!(when))),
        ("owns", draft.owns.as_ref().map(|owns| json!(owns))),
        ("model", draft.model.as_ref().map(|model| json!(model))),
        ("budget", (!draft.budget.is_empty()).then(|| json!(draft.budget))),
        ("skip", draft.skip.then_some(Value::Bool(true))),
    ];
    more.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    more
}

fn task(plan: &Plan, view: &TaskView<'_>, created: i64, times: Times) -> Value {
    let over =
        matches!(view.status, TaskStatus::Done | TaskStatus::Failed | TaskStatus::Skipped | TaskStatus::Cancelled);
    let upstream: Vec<_> = plan.upstream(view.index).into_iter().flat_map(|(_, artifacts)| artifacts).collect();
    let mut value = json!({
        "id": view.task.id,
        "title": view.task.title,
        "description": view.task.description,
        "agent_name": view.member,
        "depends_on": view.task.needs,
        "artifacts": upstream,
        "status": view.status.name(),
        "retry_count": view.attempt.saturating_sub(1),
        "max_retries": view.task.retry,
        "created_at": rfc3339(created),
        "updated_at": rfc3339(times.updated.max(created)),
    });
    let result = (view.result.is_some() || !view.error.is_empty() && over).then(|| {
        let mut result = json!({
            "success": view.status == TaskStatus::Done,
            "output": view.result.map_or_else(|| plan.output(view.index), |result| &result.output),
        });
        if let (Some(found), Value::Object(result)) = (view.result, &mut result) {
            result.insert("artifacts".to_owned(), json!(found.artifacts));
            result.insert("proof".to_owned(), json!(found.proof));
            result.insert("evidence".to_owned(), json!(found.evidence));
            if let Some(correction) = &view.correction {
                result.insert("correction".to_owned(), json!(correction));
            }
            if let Some(cached) = &found.cached {
                result.insert("cached".to_owned(), json!(cached));
            }
        }
        if let (false, Value::Object(result)) = (view.error.is_empty() || view.status == TaskStatus::Done, &mut result)
        {
            result.insert("error".to_owned(), json!(view.error));
        }
        result
    });
    if let Value::Object(value) = &mut value {
        let more = [
            ("result", result),
            ("started_at", times.started.map(|at_ms| json!(rfc3339(at_ms)))),
            ("finished_at", times.finished.filter(|_| over).map(|at_ms| json!(rfc3339(at_ms)))),
        ];
        value.extend(more.into_iter().filter_map(|(name, found)| Some((name.to_owned(), found?))));
    }
    value
}

fn times(events: &[(i64, Event)]) -> HashMap<&str, Times> {
    let mut times: HashMap<&str, Times> = HashMap::new();
    for (at_ms, event) in events {
        let (task, started, finished) = match event {
            Event::TaskAssigned(assigned) => (&assigned.task, false, false),
            Event::TaskStarted(started) => (&started.task, true, false),
            Event::TaskAsked(asked) => (&asked.task, false, false),
            Event::TaskAnswered(answered) => (&answered.task, false, false),
            Event::TaskResumed(resumed) => (&resumed.task, false, false),
            Event::TaskReported(reported) => (&reported.task, false, false),
            Event::TaskDeferred(deferred) => (&deferred.task, false, false),
            Event::TaskQueued(queued) => (&queued.task, false, false),
            Event::TaskRuled(ruled) => (&ruled.task, false, false),
            Event::TaskPaused(paused) => (&paused.task, false, false),
            Event::TaskDone(done) => (&done.task, false, true),
            Event::TaskCorrected(corrected) => (&corrected.task, false, false),
            Event::TaskFailed(failed) => (&failed.task, false, true),
            Event::TaskSkipped(skipped) => (&skipped.task, false, true),
            Event::TaskCancelled(cancelled) => (&cancelled.task, false, true),
            _ => continue,
        };
        let known = times.entry(task).or_default();
        known.updated = *at_ms;
        if started {
            known.started.get_or_insert(*at_ms);
        }
        if finished {
            known.finished = Some(*at_ms);
        }
    }
    times
}
