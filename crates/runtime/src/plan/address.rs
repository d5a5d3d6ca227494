//! The addresses of tasks: a message goes to a task by its id, or by the name of its member if that has only one task.

use std::collections::BTreeMap;

use max_team_core::id::{PlanId, SessionId};
use max_team_core::plan::TaskStatus;
use max_team_journal::Journal;

use crate::error::RuntimeError;
use crate::read_model::ReadModel;
use crate::rows::{self, AgentRow};

/// The task that an address stands for.
#[derive(Debug, Clone)]
pub(crate) struct TaskAddress {
    /// The agent that has the task, with its assignment.
    pub(crate) row: AgentRow,
    /// The id of the task.
    pub(crate) task: String,
    /// The status of the task, while its plan runs.
    pub(crate) status: Option<TaskStatus>,
}

/// Finds the task that an address stands for: tasks of running plans come first, then those of the newest plan that has any;
/// `PLAN/ID` is a task of that plan. A name that stands for several tasks is refused with their ids.
pub(crate) fn find_task(journal: &Journal, session: SessionId, to: &str) -> Result<Option<TaskAddress>, RuntimeError> {
    let named = to.split_once('/').and_then(|(plan, task)| Some((plan.parse::<PlanId>().ok()?, task)));
    let (only, to) = named.map_or((None, to), |(plan, task)| (Some(plan), task));
    let (mut open, mut over) = (Vec::new(), Vec::new());
    for (plan, rows) in begun(journal, session)?.into_iter().rev() {
        if only.is_some_and(|only| only != plan) {
            continue;
        }
        let rows: Vec<AgentRow> = rows.into_iter().filter(|row| row.is(to) || task_of(row) == to).collect();
        if rows.is_empty() {
            continue;
        }
        let plan = ReadModel::new(journal).plan(plan)?;
        let is_open = plan.ended().is_none();
        let found = rows.into_iter().filter_map(|row| {
            // Of several agents that had the same task, the last one has it.
            let view = plan.tasks().find(|view| view.agent == Some(row.agent))?;
            let (task, status) = (view.task.id.clone(), is_open.then_some(view.status));
            Some(TaskAddress { row, task, status })
        });
        match is_open {
            true => open.extend(found),
            false if over.is_empty() => over.extend(found),
            false => {}
        }
    }
    let mut found = if open.is_empty() { over } else { open };
    if found.iter().any(|address| address.task == to) {
        found.retain(|address| address.task == to);
        found.truncate(1);
    }
    found.sort_by(|one, other| one.task.cmp(&other.task));
    if found.len() > 1 {
        let tasks = found.into_iter().map(|address| address.task).collect();
        return Err(RuntimeError::SeveralTasks { name: to.to_owned(), tasks });
    }
    Ok(found.pop())
}

/// The ids of the tasks that have begun, for the reader of an error: those of the newest plan.
pub(crate) fn task_ids(journal: &Journal, session: SessionId) -> Result<Vec<String>, RuntimeError> {
    let newest = begun(journal, session)?.pop_last();
    let mut ids: Vec<String> =
        newest.map(|(_, rows)| rows.iter().map(|row| task_of(row).to_owned()).collect()).unwrap_or_default();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// The agents that were given tasks, by their plans, the oldest first.
fn begun(journal: &Journal, session: SessionId) -> Result<BTreeMap<PlanId, Vec<AgentRow>>, RuntimeError> {
    let mut plans: BTreeMap<PlanId, Vec<AgentRow>> = BTreeMap::new();
    for (_, row) in rows::rows::<AgentRow>(journal, &rows::agents_of(&session.to_string()))? {
        if let Some(plan) = row.assignment.as_ref().and_then(|given| given.plan) {
            plans.entry(plan).or_default().push(row);
        }
    }
    Ok(plans)
}

fn task_of(row: &AgentRow) -> &str {
    row.assignment.as_ref().map_or("", |given| &given.task)
}
