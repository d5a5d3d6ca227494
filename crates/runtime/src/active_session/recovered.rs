//! Counts the work that was open when the last process ended, for the user who opens the session again.

use std::sync::Arc;

use max_team_core::id::{AgentId, PlanId};
use max_team_core::message::MessageKind;
use max_team_core::turn::Turn;

use super::{ActiveSession, fold_plan};
use crate::error::RuntimeError;
use crate::handle::Recovered;
use crate::{UserMail, session, user_mail};

impl ActiveSession {
    /// Counts open work, before any loop continues with it.
    pub(crate) fn recovered(&self, lead: &Turn, plans: &[PlanId]) -> Result<Recovered, RuntimeError> {
        let journal = &self.shared.journal;
        let post = UserMail::new(journal);
        // An agent that was stopped meanwhile does not continue.
        let is_stopped = |agent: AgentId| post.is_stopped(&session::agent_stream(agent));
        let goes_on = lead.is_busy() && !is_stopped(self.lead)?;
        let mut found =
            Recovered { agents: usize::from(goes_on), unknown: lead.unknown().len(), ..Recovered::default() };
        for (agent, _) in self.working()? {
            let (turn, _) = self.shared.fold_agent(agent)?;
            found.agents += usize::from(!is_stopped(agent)?);
            found.unknown += turn.unknown().len();
        }
        for plan in plans {
            found.tasks += fold_plan(&self.shared, *plan)?.0.active().count();
        }
        let is_mine = |address: &str| user_mail::session_at(journal, address) == Some(self.session);
        let leads = session::agent_stream(self.lead);
        for address in journal.mailboxes()?.into_iter().filter(|address| is_mine(address)) {
            let (mail, is_lead) = (journal.pending_mail(&address)?, address == leads);
            let reader = if is_lead { Some(lead.clone()) } else { self.reader(&address)? };
            // A request for teammates is a message, too, but is counted apart.
            let teams = reader.iter().filter(|_| is_lead).map(|turn| turn.team_requests(&mail).count()).sum();
            found.teams += teams;
            // Messages that are only added to a turn do not count, nor do those that a stop holds back.
            found.mail += match &reader {
                Some(turn) => turn.actionable_count(&mail, is_lead).saturating_sub(teams),
                None => mail.iter().filter(|envelope| envelope.kind != MessageKind::Shutdown).count(),
            };
        }
        // A question with an unread answer is counted as mail.
        let asked = post.inbox_of(self.session)?;
        found.approvals = asked.iter().filter(|asked| asked.noted.is_none()).count();
        Ok(found)
    }

    /// Starts the agents with unfinished work. Those of an open plan are started by the plan, once it has read what
    /// was stopped meanwhile; those of an ended plan must still be told of its end.
    pub(crate) fn seat_working(
        self: &Arc<Self>,
        working: Vec<(AgentId, Option<PlanId>)>,
        plans: &[PlanId],
    ) -> Result<(), RuntimeError> {
        let is_ours = |(_, plan): &(AgentId, Option<PlanId>)| plan.is_none_or(|plan| !plans.contains(&plan));
        working.into_iter().filter(is_ours).try_for_each(|(agent, _)| self.seat_agent(agent))
    }

    /// The ended plans of this session with unread messages: corrections that were on their way when the last process
    /// ended.
    pub(crate) fn plans_with_mail(&self, open: &[PlanId]) -> Result<Vec<PlanId>, RuntimeError> {
        let journal = &self.shared.journal;
        let mailboxes = journal.mailboxes()?.into_iter();
        let mine = mailboxes.filter(|address| user_mail::session_at(journal, address) == Some(self.session));
        let plans = mine.filter_map(|address| address.strip_prefix("plan/")?.parse().ok());
        Ok(plans.filter(|plan| !open.contains(plan)).collect())
    }

    /// Whether one of these agents would begin a turn. Messages that a stop holds back do not count.
    pub(crate) fn any_begins(&self, agents: &[AgentId]) -> Result<bool, RuntimeError> {
        for agent in agents {
            let mail = self.shared.journal.pending_mail(&session::agent_stream(*agent))?;
            let (turn, _) = self.shared.fold_agent(*agent)?;
            // An agent that was not stopped is told that its commands have ended.
            if turn.would_begin(&mail, false) || (turn.held().is_none() && !turn.commands().is_empty()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The agent that reads an address; `None` for a plan's.
    fn reader(&self, address: &str) -> Result<Option<Turn>, RuntimeError> {
        agent_at(address).map(|agent| Ok(self.shared.fold_agent(agent)?.0)).transpose()
    }
}

fn agent_at(address: &str) -> Option<AgentId> {
    address.strip_prefix("agent/")?.parse().ok()
}
