//! What a session has left that would go on without a word: the question that whoever goes on asks, for whoever leaves.

use max_team_core::event::TurnEnded;
use max_team_core::id::{AgentId, SessionId};
use serde::Serialize;

use super::Post;
use crate::census::{Census, fold_agent};
use crate::error::RuntimeError;
use crate::rows;
use crate::session::{Sessions, agent_stream};

/// What is there to go on with.
#[derive(Debug, Clone, Serialize)]
pub struct Left {
    /// Whether its lead has a turn, or letters that begin one.
    pub lead: bool,
    /// How many letters wait for its lead because of a stop.
    pub held: usize,
    /// How its lead's last turn ended, if one did.
    pub last: Option<TurnEnded>,
    /// Whether anybody else has something to go on with, or a plan does.
    pub others: bool,
}

impl Post<'_> {
    /// What of a session would go on.
    pub fn left(&self, session: SessionId) -> Result<Left, RuntimeError> {
        let lead = Sessions::new(self.journal).row(session)?.lead;
        let (turn, _) = fold_agent(self.journal, lead)?;
        let mail = self.journal.pending_mail(&agent_stream(lead))?;
        Ok(Left {
            lead: turn.is_busy() || turn.would_begin(&mail, true),
            held: turn.waiting(&mail, true),
            last: turn.last().cloned(),
            others: self.others_left(session)?,
        })
    }

    /// Of a plan that was stopped nothing goes on, though whoever works in it may not have heard it yet.
    fn others_left(&self, session: SessionId) -> Result<bool, RuntimeError> {
        let census = Census::new(self.journal);
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
