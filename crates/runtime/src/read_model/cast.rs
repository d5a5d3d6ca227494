//! The agents of a session, and every stream that the session has written to.

use max_team_core::channel::ChatAddress;
use max_team_core::id::{AgentId, PlanId, SessionId};
use max_team_journal::Journal;

use crate::error::RuntimeError;
use crate::plan::plan_stream;
use crate::rows::{self, AgentRow, PlanRow};
use crate::session::{self, Sessions};
use crate::tasks;

/// The agents and plans of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cast {
    session: SessionId,
    /// The lead; `None` if it has not started yet.
    lead: Option<AgentId>,
    /// The chat of a messaging service that it is held in.
    chat: Option<ChatAddress>,
    pub(crate) agents: Vec<AgentId>,
    pub(crate) plans: Vec<PlanId>,
}

impl Cast {
    /// All agents in the rows of a journal.
    pub(crate) fn of(journal: &Journal, session: SessionId) -> Result<Self, RuntimeError> {
        let agents = rows::rows::<AgentRow>(journal, &rows::agents_of(&session.to_string()))?;
        let known = rows::rows::<PlanRow>(journal, rows::PLAN)?.into_iter().filter(|(_, row)| row.session == session);
        let mine = session.to_string();
        let open = rows::rows::<String>(journal, rows::PLAN_OPEN)?.into_iter().filter(|(_, of)| *of == mine);
        let keys = known.map(|(key, _)| key).chain(open.map(|(key, _)| key));
        let mut plans: Vec<PlanId> = keys.filter_map(|key| key.parse().ok()).collect();
        plans.sort_unstable();
        plans.dedup();
        let mut agents: Vec<AgentId> = agents.into_iter().map(|(_, row)| row.agent).collect();
        agents.sort_unstable();
        let row = Sessions::new(journal).row(session).ok();
        let lead = row.as_ref().map(|row| row.lead).filter(|lead| !agents.contains(lead));
        Ok(Self { session, lead, chat: row.and_then(|row| row.chat), agents, plans })
    }

    /// Their mailbox addresses.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> {
        let agents = self.agents.iter().map(|agent| session::agent_stream(*agent));
        agents.chain(self.plans.iter().map(|plan| plan_stream(*plan)))
    }

    /// Every stream of their session.
    pub(crate) fn streams(&self) -> Vec<String> {
        let addresses = self.addresses().chain(self.lead.map(session::agent_stream));
        let own = addresses.flat_map(|address| [format!("mail/{address}"), address]);
        let chat = self.chat.iter().map(|chat| format!("outbox/{chat}"));
        [session::stream(self.session), tasks::stream(self.session)].into_iter().chain(own).chain(chat).collect()
    }
}
