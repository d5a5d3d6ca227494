//! The basis of a forecast: the tasks of the last plans in the journal, and the rest of the session's budget.

use max_team_core::limits::{HISTORY_PLANS_MAX, HISTORY_TASKS_MAX};
use max_team_core::plan::{History, TaskSample, TaskStatus, TaskView};
use max_team_journal::Journal;

use crate::error::RuntimeError;
use crate::read_model::ReadModel;
use crate::rows::{self, CostRow};

/// The basis of a forecast.
#[derive(Debug, Clone, Default)]
pub struct Basis {
    /// Tasks of earlier plans, of every session.
    pub history: History,
    /// The rest of the session's budget in nano-dollars, if it has one.
    pub session_nano: Option<u64>,
}

impl Basis {
    /// Reads the last plans. A history that cannot be read is none: a forecast is not worth failing for.
    pub fn read(journal: &Journal, session_nano: Option<u64>) -> Self {
        Self { history: samples(journal).map(History).unwrap_or_default(), session_nano }
    }
}

/// The tasks of the last plans that are over, newest plan first.
fn samples(journal: &Journal) -> Result<Vec<TaskSample>, RuntimeError> {
    let census = ReadModel::new(journal);
    let over = census.plans()?.into_iter().filter(|line| line.end.is_some()).take(HISTORY_PLANS_MAX);
    let mut samples = Vec::new();
    for line in over {
        for view in census.plan(line.row.plan)?.tasks() {
            if samples.len() >= HISTORY_TASKS_MAX {
                return Ok(samples);
            }
            samples.extend(sample(journal, &view)?);
        }
    }
    Ok(samples)
}

/// The cost and time of a task, if a model worked on it.
fn sample(journal: &Journal, view: &TaskView<'_>) -> Result<Option<TaskSample>, RuntimeError> {
    let is_over = matches!(view.status, TaskStatus::Done | TaskStatus::Failed);
    let is_served = view.result.is_some_and(|result| result.cached.is_some());
    let Some(agent) = view.agent.filter(|_| is_over && !is_served) else { return Ok(None) };
    let turns = rows::rows::<CostRow>(journal, &rows::costs_of(&agent.to_string()))?;
    let charges: Vec<_> = turns.into_iter().flat_map(|(_, row)| row.charges).collect();
    let Some(most) = charges.iter().max_by_key(|charge| charge.calls) else { return Ok(None) };
    Ok(Some(TaskSample {
        member: view.member.to_owned(),
        model: most.model.clone(),
        calls: charges.iter().map(|charge| charge.calls).sum(),
        nano: charges.iter().map(|charge| charge.nano.saturating_sub(charge.unknown_nano)).sum(),
        ms: view.spent.ms,
    }))
}
