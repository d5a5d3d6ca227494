//! Corrections of tasks of ended plans: the answer says what the task's checks say now, and what the correction cost. The stream
//! of an ended plan takes no more events, so nothing of it is recorded there.

use std::sync::Arc;

use max_team_core::event::{End, Event};
use max_team_core::id::{AgentId, PlanId};
use max_team_core::plan::event::{Evidence, Spent};
use max_team_core::plan::{Findings, Plan};
use max_team_journal::{Entry, Journal};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::letters::cost;
use super::{Landed, PlanLoop, plan_stream};
use crate::agent::text_at;
use crate::error::RuntimeError;
use crate::floor::{Floor, Place};
use crate::rows::event_of;
use crate::session;

/// Tells the lead that the evidence of a task says nothing about its correction.
const NOT_CHECKED: &str = "The task's checks were not run after this correction.";

/// The answer of a member to a message about its task, after the plan has ended.
pub(crate) struct Correction {
    floor: Arc<Floor>,
    id: PlanId,
    plan: Plan,
    agent: AgentId,
    output: String,
    acted: bool,
    spent: Spent,
}

impl Correction {
    /// Reads the answer of an agent. `None` if it has no task of an ended plan.
    pub(crate) fn read(floor: &Arc<Floor>, agent: AgentId, body: &Value) -> Result<Option<Self>, RuntimeError> {
        let given = floor.row_of(agent).and_then(|row| row.assignment);
        let Some(id) = given.and_then(|given| given.plan) else { return Ok(None) };
        let (plan, _) = crate::census::fold_plan(&floor.shared.journal, id)?;
        if plan.ended().is_none() {
            return Ok(None);
        }
        let spent = body.get("spent").and_then(|spent| Spent::deserialize(spent).ok()).unwrap_or_default();
        let acted = body.get("acted").and_then(Value::as_bool).unwrap_or(true);
        let (floor, output) = (Arc::clone(floor), text_at(body, "output"));
        Ok(Some(Self { floor, id, plan, agent, output, acted, spent }))
    }

    /// Whether the member used tools for its answer, so that files may have changed.
    pub(crate) fn acted(&self) -> bool {
        self.acted
    }

    /// The words for the lead if the checks do not run again.
    pub(crate) fn unchecked(&self) -> String {
        unchecked(self.acted, self.spent)
    }

    /// Runs the checks of the task again; what they say, for the lead.
    pub(crate) async fn check(self, cancel: &CancellationToken) -> String {
        let cost = cost_words(self.spent);
        let checked = match self.look(cancel).await.filter(|_| !cancel.is_cancelled()) {
            None => NOT_CHECKED.to_owned(),
            Some(found) if found.evidence.is_empty() => {
                "The task has no checks: nothing verifies this correction.".to_owned()
            }
            Some(found) => {
                format!("The task's checks after this correction:\n{}", evidence_lines(&found.evidence).trim_end())
            }
        };
        format!("{checked}\n\n{cost}")
    }

    /// Looks at the task as at its end. A stopped plan starts no command, and the changes of a worktree wait for the user.
    async fn look(self, cancel: &CancellationToken) -> Option<Findings> {
        let view = self.plan.tasks().find(|view| view.agent == Some(self.agent))?;
        let (index, attempt) = (view.index, view.attempt);
        if !self.plan.is_approved() || self.plan.is_stopped() {
            return None;
        }
        let (_, controls) = mpsc::channel(1);
        let place = Place { bell: Arc::default(), controls };
        let mut ended = PlanLoop::new(self.floor, self.id, self.plan, 0, place);
        ended.cancel = cancel.clone();
        if ended.is_apart(index) {
            return None;
        }
        match ended.check_saying(index, attempt, self.output)?.await {
            Landed::Checked { findings, .. } => Some(findings),
            _ => None,
        }
    }
}

/// The words for the lead about an answer after which no check has run: if nothing was changed, the checks still hold.
pub(crate) fn unchecked(acted: bool, spent: Spent) -> String {
    let cost = cost_words(spent);
    if acted { format!("{NOT_CHECKED}\n\n{cost}") } else { cost }
}

fn cost_words(spent: Spent) -> String {
    format!("[This answer cost {}.]", cost(spent))
}

/// One line for each check.
pub(super) fn evidence_lines(evidence: &[Evidence]) -> String {
    let mark = |evidence: &Evidence| if evidence.ok { "✓" } else { "✗" };
    evidence.iter().map(|one| format!("{} {}: {}\n", mark(one), one.what, one.detail)).collect()
}

/// The newest answer of an agent after its plan has ended.
pub(super) fn newest_answer(journal: &Journal, plan: PlanId, agent: AgentId) -> Result<Option<String>, RuntimeError> {
    let stream = session::agent_stream(agent);
    let Some(end) = last_entry(journal, &plan_stream(plan))?.map(|entry| entry.seq) else { return Ok(None) };
    // Most members have not been written to again: one entry tells so.
    if last_entry(journal, &stream)?.is_none_or(|entry| entry.seq < end) {
        return Ok(None);
    }
    let entries = journal.read(&stream, 0, usize::MAX)?;
    for entry in entries.iter().rev().take_while(|entry| entry.seq > end) {
        if entry.event == "turn_ended"
            && let Event::TurnEnded(over) = event_of(entry)?
            && over.end == End::Answered
            && !over.text.trim().is_empty()
        {
            return Ok(Some(over.text));
        }
    }
    Ok(None)
}

fn last_entry(journal: &Journal, stream: &str) -> Result<Option<Entry>, RuntimeError> {
    let Some(before) = journal.head(stream)?.checked_sub(1) else { return Ok(None) };
    Ok(journal.read(stream, before, 1)?.pop())
}
