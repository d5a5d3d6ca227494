//! What a session had open when the process before this one left it: counted once, for whoever opens it again.

use max_team_core::id::{AgentId, PlanId};
use max_team_core::message::Envelope;
use max_team_core::turn::{Turn, is_stop};

use super::{Floor, fold_plan};
use crate::error::RuntimeError;
use crate::handle::Recovered;
use crate::{Post, post, session};

impl Floor {
    /// Counts what is open, before anybody goes on with it.
    pub(crate) fn recovered(&self, lead: &Turn, plans: &[PlanId]) -> Result<Recovered, RuntimeError> {
        let journal = &self.shared.journal;
        // Whoever was stopped while nobody ran the session does not go on.
        let goes_on = |agent| -> Result<bool, RuntimeError> {
            Ok(!journal.pending_mail(&session::agent_stream(agent))?.iter().any(is_stop))
        };
        let agents = usize::from(lead.is_busy() && goes_on(self.lead)?);
        let mut found = Recovered { agents, unknown: lead.unknown().len(), ..Recovered::default() };
        for (agent, _) in self.working()? {
            let (turn, _) = self.shared.fold_agent(agent)?;
            found.agents += usize::from(goes_on(agent)?);
            found.unknown += turn.unknown().len();
        }
        for plan in plans {
            found.tasks += fold_plan(&self.shared, *plan)?.0.active().count();
        }
        let is_mine = |address: &str| post::session_at(journal, address) == Some(self.session);
        let leads = session::agent_stream(self.lead);
        for address in journal.mailboxes()?.into_iter().filter(|address| is_mine(address)) {
            let (mail, is_lead) = (journal.pending_mail(&address)?, address == leads);
            let reader = if is_lead { Some(lead.clone()) } else { self.reader(&address)? };
            // What only waits to be told has done what it does, and what a stop has left is not gone on with.
            let is_left = |letter: &&Envelope| reader.as_ref().is_some_and(|turn| turn.leaves(letter, is_lead));
            // Nor is a stop that nobody has read a letter, and what came before it waits.
            let stop = mail.iter().rposition(is_stop).map_or(0, |stop| stop + 1);
            found.mail += mail.iter().skip(stop).filter(|letter| !is_left(letter)).count();
        }
        // What was answered since is a letter, and no question any more; of whoever was stopped since there is none.
        let mut asked = Post::new(journal).inbox()?;
        asked.retain(|asked| asked.session == Some(self.session) && asked.noted.is_none());
        found.approvals = asked.len();
        Ok(found)
    }

    /// Whether somebody of these has something to begin with: what a stop has left waiting is none.
    pub(crate) fn any_begins(&self, agents: &[AgentId]) -> Result<bool, RuntimeError> {
        for agent in agents {
            let mail = self.shared.journal.pending_mail(&session::agent_stream(*agent))?;
            let (turn, _) = self.shared.fold_agent(*agent)?;
            // Who was not stopped is told that its commands are over.
            if turn.would_begin(&mail, false) || (turn.held().is_none() && !turn.commands().is_empty()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whoever reads what comes to an address; nobody, where it is a plan's.
    fn reader(&self, address: &str) -> Result<Option<Turn>, RuntimeError> {
        let agent = address.strip_prefix("agent/").and_then(|id| id.parse().ok());
        agent.map(|agent| Ok(self.shared.fold_agent(agent)?.0)).transpose()
    }
}
