//! The work of a session that would continue on its own if it were opened: shown before a user leaves or resumes it.

use max_team_core::event::TurnEnded;
use max_team_core::id::{AgentId, SessionId};
use serde::Serialize;

use super::UserMail;
use crate::error::RuntimeError;
use crate::read_model::{ReadModel, fold_agent};
use crate::rows;
use crate::session::{Sessions, agent_stream};

/// Work that would go on.
#[derive(Debug, Clone, Serialize)]
pub struct ResumableWork {
    /// Whether its lead has a turn, or messages that begin one.
    pub lead: bool,
    /// How many messages to its lead a stop holds back.
    pub held: usize,
    /// How its lead's last turn ended, if one did.
    pub last: Option<TurnEnded>,
    /// Whether another agent or a plan has work to continue.
    pub others: bool,
}

impl UserMail<'_> {
    /// The work of a session that would go on.
    pub fn left(&self, session: SessionId) -> Result<ResumableWork, RuntimeError> {
        let lead = Sessions::new(self.journal).row(session)?.lead;
        let (turn, _) = fold_agent(self.journal, lead)?;
        let mail = self.journal.pending_mail(&agent_stream(lead))?;
        Ok(ResumableWork {
            lead: turn.is_busy() || turn.would_begin(&mail, true),
            held: turn.waiting(&mail, true),
            last: turn.last().cloned(),
            others: self.others_left(session)?,
        })
    }

    /// Whether other agents or plans would continue. A stopped plan does not, even if its members have not read the
    /// stop yet.
    fn others_left(&self, session: SessionId) -> Result<bool, RuntimeError> {
        let census = ReadModel::new(self.journal);
        for plan in census.open_plans(Some(session))? {
            if census.stopping(plan)? != Some(None) {
                return Ok(true);
            }
        }
        let table = rows::agents_of(&session.to_string());
        let is_apart = |agent: AgentId| -> Result<bool, RuntimeError> {
            let row = rows::row::<rows::AgentRow>(self.journal, &table, &agent.to_string())?;
            Ok(row.and_then(|row| row.assignment).is_some_and(|given| given.plan.is_none()))
        };
        for agent in rows::working(self.journal, session)? {
            if is_apart(agent)? {
                return Ok(true);
            }
        }
        Ok(!self.stopped(session)?.is_empty())
    }
}
