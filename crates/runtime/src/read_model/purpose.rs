//! The work behind a question, so that a person can answer it without opening the session.

use max_team_core::id::{AgentId, PlanId, SessionId};

use super::ReadModel;
use crate::error::RuntimeError;
use crate::session::{Sessions, preview};
use crate::user_mail;

impl ReadModel<'_> {
    /// The work that a question belongs to, in one line: the plan's task, else the agent's assignment, else the plan's
    /// goal, else the user's last message in the session.
    pub fn purpose(
        &self,
        address: &str,
        session: Option<SessionId>,
        plan: Option<PlanId>,
        task: Option<&str>,
    ) -> Result<Option<String>, RuntimeError> {
        let from_plan = plan.map(|plan| self.plan_purpose(plan, task)).transpose()?.flatten();
        let purpose = match from_plan {
            Some(purpose) => Some(purpose),
            None => match self.assigned_title(address)? {
                Some(title) => Some(title),
                None => {
                    session.map(|session| Sessions::new(self.journal).row(session)).transpose()?.map(|row| row.preview)
                }
            },
        };
        Ok(purpose.map(|purpose| preview(&purpose)).filter(|purpose| !purpose.is_empty()))
    }

    fn plan_purpose(&self, plan: PlanId, task: Option<&str>) -> Result<Option<String>, RuntimeError> {
        let plan = self.plan(plan)?;
        let Some(draft) = plan.draft() else { return Ok(None) };
        let task = task.and_then(|task| draft.tasks.iter().find(|other| other.id == task));
        Ok(Some(task.map_or(draft.goal.as_str(), |task| task.caption()).to_owned()))
    }

    fn assigned_title(&self, address: &str) -> Result<Option<String>, RuntimeError> {
        let Some(agent) = address.strip_prefix("agent/").and_then(|agent| agent.parse::<AgentId>().ok()) else {
            return Ok(None);
        };
        let turn = self.turn(agent)?;
        let first = user_mail::agent_row(self.journal, &agent.to_string())?.and_then(|row| row.assignment);
        let assignment = turn.assignment().or(first.as_deref());
        Ok(assignment.map(|assignment| assignment.title.clone()).filter(|title| !title.is_empty()))
    }
}
