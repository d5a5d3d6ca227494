//! Those who take tasks from the shared list by themselves: who would begin with one, and who was stopped and takes none.

use max_team_core::id::{AgentId, SessionId};
use max_team_core::message::Envelope;
use max_team_core::tasks::Tasks;
use max_team_core::turn::{Turn, is_stop};

use super::Census;
use crate::error::RuntimeError;
use crate::floor::Takes;
use crate::rows;
use crate::session::{self, Sessions};
use crate::tasks::{self, Put, TaskLists};

impl Census<'_> {
    /// Those of a session who rest and would take a task that is free as soon as they look. Whoever cannot be read may be one.
    pub(super) fn would_take(&self, session: SessionId) -> Result<Vec<AgentId>, RuntimeError> {
        let mut claimers = rows::mates_there(self.journal, session)?;
        claimers.retain(|(_, mate)| mate.claims);
        if claimers.is_empty() {
            return Ok(Vec::new());
        }
        let list = TaskLists::new(self.journal).tasks(session)?;
        claimers.retain(|(name, mate)| {
            let is_any = tasks::free_for(&list, name).next().is_some();
            is_any && self.looks(session, mate.agent, &list).unwrap_or(true)
        });
        Ok(claimers.into_iter().map(|(_, mate)| mate.agent).collect())
    }

    /// Whether somebody rests and may take a task, and will not read first that it was stopped.
    fn looks(&self, session: SessionId, agent: AgentId, list: &Tasks) -> Result<bool, RuntimeError> {
        let (turn, mail) = (self.turn(agent)?, self.journal.pending_mail(&session::agent_stream(agent))?);
        Ok(!turn.is_busy() && !mail.iter().any(is_stop) && self.is_free(session, &turn, list)?)
    }

    /// Whether somebody with this mail who takes tasks by itself takes none, although it rests, because it was stopped or will read
    /// so: `/continue` sets it to work.
    pub(crate) fn takes_none(&self, session: SessionId, turn: &Turn, mail: &[Envelope]) -> Result<bool, RuntimeError> {
        let claims = turn.gone().is_none() && !turn.is_busy();
        let Some(mate) = turn.mate().filter(|mate| mate.claims && claims) else { return Ok(false) };
        let (is_any, is_told) = (Takes::of(turn.held()) == Takes::Any, mail.iter().any(is_stop));
        if is_any && !is_told {
            return Ok(false);
        }
        let list = TaskLists::new(self.journal).tasks(session)?;
        match is_any {
            true => Ok(tasks::free_for(&list, &mate.name).next().is_some()),
            false => Ok(is_told || !self.is_free(session, turn, &list)?),
        }
    }

    /// Of those in a session who take tasks by themselves: who takes none because it was stopped, if nobody else is there who does.
    pub fn nobody_takes(&self, session: SessionId) -> Result<Vec<String>, RuntimeError> {
        let mut stopped = Vec::new();
        for (name, mate) in rows::mates_there(self.journal, session)?.into_iter().filter(|(_, mate)| mate.claims) {
            let mail = self.journal.pending_mail(&session::agent_stream(mate.agent))?;
            if !self.takes_none(session, &self.turn(mate.agent)?, &mail)? {
                return Ok(Vec::new());
            }
            stopped.push(name);
        }
        stopped.sort_unstable();
        Ok(stopped)
    }

    /// Whether somebody may take a task: it holds none, and was not stopped, or something is newer than that.
    fn is_free(&self, session: SessionId, turn: &Turn, list: &Tasks) -> Result<bool, RuntimeError> {
        let Some((agent, _, _)) = turn.identity() else { return Ok(false) };
        let name = turn.mate().map(|mate| mate.name.as_str()).unwrap_or_default();
        if list.held_by(&session::agent_stream(agent)).next().is_some() {
            return Ok(false);
        }
        match Takes::of(turn.held()) {
            Takes::Any => Ok(true),
            Takes::Nothing => Ok(false),
            Takes::Newer(listed) => self.is_any_newer(session, listed, name),
        }
    }

    /// Whether a person or the lead has put something on a list behind so many entries that is anybody's, or meant for somebody.
    fn is_any_newer(&self, session: SessionId, listed: u64, name: &str) -> Result<bool, RuntimeError> {
        let lead = Sessions::new(self.journal).row(session)?.lead;
        let lead = self.agents(session)?.into_iter().find(|row| row.agent == lead).map(|row| row.name);
        let lead = format!("agent:{}", lead.unwrap_or_default());
        let mut is_any = false;
        tasks::each_put(self.journal, session, listed, &lead, |put, _| {
            is_any |= put == Put::Added || put == Put::Given(name.to_owned());
        })?;
        Ok(is_any)
    }
}
