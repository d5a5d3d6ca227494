//! What a session had open when the process before this one left it: counted once, for whoever opens it again.

use max_team_core::id::{AgentId, PlanId};
use max_team_core::message::Envelope;
use max_team_core::stop::Held;
use max_team_core::turn::Turn;

use super::{Floor, fold_plan};
use crate::agent::is_note;
use crate::error::RuntimeError;
use crate::handle::Recovered;
use crate::rows::{self, InboxRow};
use crate::{Post, post, session};

impl Floor {
    /// Counts what is open, before anybody goes on with it.
    pub(crate) fn recovered(&self, lead: &Turn, plans: &[PlanId]) -> Result<Recovered, RuntimeError> {
        let journal = &self.shared.journal;
        let mut found =
            Recovered { agents: usize::from(lead.is_busy()), unknown: lead.unknown().len(), ..Recovered::default() };
        for (agent, _) in self.working()? {
            let (turn, _) = self.shared.fold_agent(agent)?;
            found.agents += 1;
            found.unknown += turn.unknown().len();
        }
        for plan in plans {
            found.tasks += fold_plan(&self.shared, *plan)?.0.active().count();
        }
        let is_mine = |address: &str| post::session_at(journal, address) == Some(self.session);
        let leads = session::agent_stream(self.lead);
        for address in journal.mailboxes()?.into_iter().filter(|address| is_mine(address)) {
            let held = if address == leads { lead.held().cloned() } else { self.held_at(&address)? };
            // What only waits to be told has done what it does, and what a stop has left is not gone on with.
            let is_told = |letter: &&Envelope| {
                is_note(letter, address == leads)
                    || (address == leads && lead.requests().is_accepted(letter.id))
                    || held.as_ref().is_some_and(|held| held.holds(letter))
            };
            found.mail += journal.pending_mail(&address)?.iter().filter(|letter| !is_told(letter)).count();
        }
        // What was answered since is a letter, and no question any more.
        let post = Post::new(journal);
        for (_, row) in rows::rows::<InboxRow>(journal, rows::INBOX)? {
            found.approvals += usize::from(is_mine(&row.address) && post.noted(&row)?.is_none());
        }
        Ok(found)
    }

    /// Whether somebody of these has something to begin with: what a stop has left waiting is none.
    pub(crate) fn any_begins(&self, agents: &[AgentId]) -> Result<bool, RuntimeError> {
        for agent in agents {
            let address = session::agent_stream(*agent);
            let (held, mail) = (self.held_at(&address)?, self.shared.journal.pending_mail(&address)?);
            // Without mail it is told of its commands.
            let will_begin = match &held {
                Some(held) => mail.iter().any(|letter| !held.holds(letter)),
                None => true,
            };
            if will_begin {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What a stop has left waiting at an address.
    fn held_at(&self, address: &str) -> Result<Option<Held>, RuntimeError> {
        let Some(agent) = address.strip_prefix("agent/").and_then(|id| id.parse().ok()) else { return Ok(None) };
        Ok(self.shared.fold_agent(agent)?.0.held().cloned())
    }
}
