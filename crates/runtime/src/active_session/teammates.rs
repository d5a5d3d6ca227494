//! The teammates of a session.
//!
//! The journal has them as rows; the owner of the session reads these once and keeps its own list up to date.

use std::collections::HashMap;

use max_team_core::id::AgentId;
use max_team_core::teammate::COLORS;
use max_team_core::teammate::name::looks_like;

use super::ActiveSession;
use crate::error::RuntimeError;
use crate::rows::{self, TeammateRow};
use crate::session;
use crate::shared::lock;

/// Teammates by name; `None` until they are first needed.
pub(super) type TeammateRows = Option<HashMap<String, TeammateRow>>;

impl ActiveSession {
    fn with_teammates<T>(&self, look: impl FnOnce(&mut HashMap<String, TeammateRow>) -> T) -> Result<T, RuntimeError> {
        let teammates = &mut lock(&self.crew).teammates;
        if let Some(known) = teammates {
            return Ok(look(known));
        }
        let table = rows::teammates_of(&self.session.to_string());
        let read = rows::rows::<TeammateRow>(&self.shared.journal, &table)?;
        Ok(look(teammates.insert(read.into_iter().collect())))
    }

    /// A teammate by name, also one that has ended.
    pub(crate) fn teammate(&self, name: &str) -> Result<Option<TeammateRow>, RuntimeError> {
        self.with_teammates(|teammates| teammates.get(name).cloned())
    }

    /// A present teammate with a name that could be confused with this one.
    pub(crate) fn namesake(&self, name: &str) -> Result<Option<String>, RuntimeError> {
        let is_like = |(known, row): &(&String, &TeammateRow)| row.gone.is_none() && looks_like(known, name);
        self.with_teammates(|teammates| teammates.iter().find(is_like).map(|(known, _)| known.clone()))
    }

    /// All present teammates, by name.
    pub(crate) fn teammates(&self) -> Result<Vec<(String, AgentId)>, RuntimeError> {
        let mut there = self.with_teammates(|teammates| {
            let there = teammates.iter().filter(|(_, row)| row.gone.is_none());
            there.map(|(name, row)| (name.clone(), row.agent)).collect::<Vec<_>>()
        })?;
        there.sort_unstable();
        Ok(there)
    }

    /// The addresses of teammates that work here, also of those whose start is not stored yet.
    pub(crate) fn teammates_working(&self) -> Result<Vec<String>, RuntimeError> {
        let there = self.teammates()?.into_iter().map(|(_, agent)| session::agent_stream(agent));
        Ok(there.filter(|address| self.is_working(address)).collect())
    }

    /// The colors of present teammates.
    pub(crate) fn colors(&self) -> Result<Vec<&'static str>, RuntimeError> {
        self.with_teammates(|teammates| {
            let is_worn = |color: &&str| teammates.values().any(|row| row.gone.is_none() && row.color == **color);
            COLORS.into_iter().filter(is_worn).collect()
        })
    }

    /// Teammates that claim tasks by themselves.
    pub(crate) fn claimers(&self) -> Result<Vec<(String, AgentId)>, RuntimeError> {
        self.with_teammates(|teammates| {
            let there = teammates.iter().filter(|(_, row)| row.gone.is_none() && row.claims);
            there.map(|(name, row)| (name.clone(), row.agent)).collect()
        })
    }

    /// What the lead is called.
    pub(crate) fn lead_name(&self) -> String {
        self.row_of(self.lead).map_or_else(String::new, |row| row.name)
    }

    /// The number of present teammates, and of all that there ever were.
    pub(crate) fn count_teammates(&self) -> Result<(usize, usize), RuntimeError> {
        self.with_teammates(|teammates| (teammates.values().filter(|row| row.gone.is_none()).count(), teammates.len()))
    }

    /// A teammate has joined, or has ended.
    pub(crate) fn know_teammate(&self, name: &str, row: TeammateRow) -> Result<(), RuntimeError> {
        self.with_teammates(|teammates| drop(teammates.insert(name.to_owned(), row)))
    }

    /// The agents with unread mail: teammates, and other agents that a person has written to.
    pub(crate) fn teammates_with_mail(&self) -> Result<Vec<AgentId>, RuntimeError> {
        // Also ended ones: their unread messages are returned.
        let there: Vec<AgentId> = self.with_teammates(|teammates| teammates.values().map(|row| row.agent).collect())?;
        let mut waiting = Vec::new();
        for address in self.shared.journal.mailboxes()? {
            let agent = address.strip_prefix("agent/").and_then(|id| id.parse().ok());
            let Some(agent) = agent.filter(|agent| *agent != self.lead) else { continue };
            if there.contains(&agent) || self.is_called_for(&address) {
                waiting.push(agent);
            }
        }
        // Agents whose commands ended with the last process are told so.
        let commands = rows::with_commands(&self.shared.journal)?;
        let is_new = |agent: &&AgentId| commands.contains(agent) && !waiting.contains(agent);
        waiting.extend(self.teammates()?.iter().map(|(_, agent)| agent).filter(is_new).copied().collect::<Vec<_>>());
        Ok(waiting)
    }
}
