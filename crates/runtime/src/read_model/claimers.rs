//! Teammates that claim tasks from the shared list by themselves: which would begin with one, and which were stopped
//! and take none.

use max_team_core::id::{AgentId, SessionId};
use max_team_core::message::Envelope;
use max_team_core::task_list::TaskList;
use max_team_core::turn::{Turn, is_stop};

use super::ReadModel;
use crate::error::RuntimeError;
use crate::rows;
use crate::session;
use crate::tasks::{self, TaskLists};

impl ReadModel<'_> {
    /// The idle teammates of a session that would claim a free task as soon as they run. An agent whose state cannot
    /// be read is included.
    pub(super) fn would_take(&self, session: SessionId) -> Result<Vec<AgentId>, RuntimeError> {
        let mut claimers = rows::teammates_there(self.journal, session)?;
        claimers.retain(|(_, teammate)| teammate.claims);
        if claimers.is_empty() {
            return Ok(Vec::new());
        }
        let list = TaskLists::new(self.journal).tasks(session)?;
        claimers.retain(|(name, teammate)| {
            let is_any = tasks::free_for(&list, name).next().is_some();
            is_any && self.looks(teammate.agent, &list).unwrap_or(true)
        });
        Ok(claimers.into_iter().map(|(_, teammate)| teammate.agent).collect())
    }

    /// Whether an idle agent may claim a task: it holds none, and no stop applies to it or is unread.
    fn looks(&self, agent: AgentId, list: &TaskList) -> Result<bool, RuntimeError> {
        let (turn, mail) = (self.turn(agent)?, self.journal.pending_mail(&session::agent_stream(agent))?);
        let has_task = list.held_by(&session::agent_stream(agent)).next().is_some();
        Ok(!turn.is_busy() && turn.held().is_none() && !has_task && !mail.iter().any(is_stop))
    }

    /// Whether an idle teammate that claims tasks leaves a free one because it was stopped, or will read so.
    pub(crate) fn takes_none(&self, session: SessionId, turn: &Turn, mail: &[Envelope]) -> Result<bool, RuntimeError> {
        let is_idle = turn.agent_end().is_none() && !turn.is_busy();
        let Some(teammate) = turn.teammate().filter(|teammate| teammate.claims && is_idle) else { return Ok(false) };
        let is_stopped = turn.held().is_some() || mail.iter().any(is_stop);
        let is_any = |list: TaskList| tasks::free_for(&list, &teammate.name).next().is_some();
        Ok(is_stopped && TaskLists::new(self.journal).tasks(session).map(is_any)?)
    }

    /// Names of the teammates that would claim tasks but were stopped; empty if another teammate still claims.
    pub fn nobody_takes(&self, session: SessionId) -> Result<Vec<String>, RuntimeError> {
        let mut stopped = Vec::new();
        for (name, teammate) in
            rows::teammates_there(self.journal, session)?.into_iter().filter(|(_, teammate)| teammate.claims)
        {
            let mail = self.journal.pending_mail(&session::agent_stream(teammate.agent))?;
            if !self.takes_none(session, &self.turn(teammate.agent)?, &mail)? {
                return Ok(Vec::new());
            }
            stopped.push(name);
        }
        stopped.sort_unstable();
        Ok(stopped)
    }
}
