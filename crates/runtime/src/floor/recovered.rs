//! What a session had open when the process before this one left it: counted once, for whoever opens it again.

use std::sync::Arc;

use max_team_core::id::{AgentId, EnvelopeId, PlanId, TurnId};
use max_team_core::message::{Assignment, Envelope, Kind};
use max_team_core::turn::{Turn, is_stop};

use super::{Floor, fold_plan};
use crate::agent::since_of;
use crate::error::RuntimeError;
use crate::handle::Recovered;
use crate::shared::lock;
use crate::{Post, post, session};

/// Somebody, and a letter that stops them.
type Stop = (AgentId, EnvelopeId);

impl Floor {
    /// Counts what is open, before anybody goes on with it; and the stops that nobody has read, with whom they are for.
    pub(crate) fn recovered(&self, lead: &Turn, plans: &[PlanId]) -> Result<(Recovered, Vec<Stop>), RuntimeError> {
        let journal = &self.shared.journal;
        let post = Post::new(journal);
        // Nobody goes on who was told to stop meanwhile.
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
        let is_mine = |address: &str| post::session_at(journal, address) == Some(self.session);
        let (leads, mut stops) = (session::agent_stream(self.lead), Vec::new());
        for address in journal.mailboxes()?.into_iter().filter(|address| is_mine(address)) {
            let (mail, is_lead) = (journal.pending_mail(&address)?, address == leads);
            let agent = agent_at(&address).into_iter();
            stops.extend(agent.flat_map(|agent| mail.iter().filter(|it| is_stop(it)).map(move |it| (agent, it.id))));
            let reader = if is_lead { Some(lead.clone()) } else { self.reader(&address)? };
            // Who is to begin is wanted by a letter, too, which says nothing to anybody.
            let teams = reader.iter().filter(|_| is_lead).map(|turn| turn.recruiting(&mail).count()).sum();
            found.teams += teams;
            // What only waits to be told has done what it does, and what a stop has left is not gone on with.
            found.mail += match &reader {
                Some(turn) => turn.going_on(&mail, is_lead).saturating_sub(teams),
                None => mail.iter().filter(|letter| letter.kind != Kind::Shutdown).count(),
            };
        }
        // What was answered since is a letter, and no question any more; of whoever was stopped since there is none.
        let asked = post.inbox_of(self.session)?;
        found.approvals = asked.iter().filter(|asked| asked.noted.is_none()).count();
        Ok((found, stops))
    }

    /// Stops in a lead's mail count for whoever sits down first, too, also those of before there were rows for them.
    pub(crate) fn know_stops(&self, mail: &[Envelope]) {
        for stop in mail.iter().filter(|letter| is_stop(letter)) {
            let since = since_of(stop).unwrap_or_else(|| self.fresh_turn());
            self.know_turn(Some(since));
            self.know_stop(since);
            lock(&self.old_stops).insert(stop.id, since);
        }
    }

    /// Since when a stop counts that was said before the session was opened.
    pub(crate) fn old_stop(&self, letter: EnvelopeId) -> Option<TurnId> {
        lock(&self.old_stops).get(&letter).copied()
    }

    /// Whether somebody is at what it has begun since then, as far as that is stored; if not by whatever, because a user has written.
    pub(crate) fn has_begun_since(&self, since: TurnId, address: &str, by_whatever: bool) -> bool {
        let turn = self.reader(address).ok().flatten().filter(|turn| turn.current() > Some(since));
        let is_users = |turn: &Turn| turn.assignment().is_some_and(Assignment::is_for_user);
        turn.is_some_and(|turn| by_whatever || is_users(&turn))
    }

    /// Those of an open plan are seated by it, once it knows what was stopped meanwhile; those of a plan that is over must still hear
    /// of it.
    pub(crate) fn seat_working(
        self: &Arc<Self>,
        working: Vec<(AgentId, Option<PlanId>)>,
        plans: &[PlanId],
    ) -> Result<(), RuntimeError> {
        let is_ours = |(_, plan): &(AgentId, Option<PlanId>)| plan.is_none_or(|plan| !plans.contains(&plan));
        working.into_iter().filter(is_ours).try_for_each(|(agent, _)| self.seat_agent(agent))
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
        agent_at(address).map(|agent| Ok(self.shared.fold_agent(agent)?.0)).transpose()
    }
}

fn agent_at(address: &str) -> Option<AgentId> {
    address.strip_prefix("agent/")?.parse().ok()
}
