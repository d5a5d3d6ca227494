//! The shared list of tasks, for whoever comes and goes on this floor.
//!
//! A claim lasts as long as whoever made it is at work. Whoever notices that somebody no longer is gives back what they
//! held: the end of their turn, the excuse of somebody who cannot work, or the next process that opens the session.

use std::collections::HashMap;
use std::sync::Arc;

use max_team_core::event::Event;
use max_team_core::id::AgentId;
use max_team_core::stop::Held;
use max_team_core::tasks::{Doer, Input, Item, Why};

use super::Floor;
use crate::error::RuntimeError;
use crate::handle::{Notice, Origin};
use crate::rows::event_of;
use crate::shared::{commit_at, lock, now_ms};
use crate::tasks::{self, Change, LIST_READ, Put, TaskLists};
use crate::{rows, session};

/// What a task is called that is meant for the user.
const USER: &str = "user";

/// What somebody takes from the list by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Whatever is free.
    Any,
    /// Nothing.
    Nothing,
    /// Whatever is free, once something stands on the list behind so many entries that a person or the lead has put there.
    Newer(u64),
}

impl Takes {
    /// By what a stop has left.
    pub(crate) fn of(held: Option<&Held>) -> Self {
        match held.map(|held| (held.listed, held.letters.is_empty())) {
            None | Some((None, true)) => Self::Any,
            Some((None, false)) => Self::Nothing,
            Some((Some(listed), _)) => Self::Newer(listed),
        }
    }
}

/// What people and the lead have put on the list, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct News {
    read: u64,
    /// The last task that was added.
    added: u64,
    /// The last that was given to somebody, by name.
    given: HashMap<String, u64>,
}

impl Floor {
    /// The first task that somebody idle can begin with, and the claim of it, to be committed with whatever begins its
    /// turn: `Extra::change` puts it there. A conflict over the list's stream means that somebody was faster: ask again.
    /// Whoever holds one takes no other.
    pub(crate) fn claim_next(&self, doer: &Doer) -> Result<Option<(Item, Change)>, RuntimeError> {
        let change = TaskLists::new(&self.shared.journal).change(self.session, doer, &Input::Next)?;
        let claimed = change.events.iter().find_map(|event| match event {
            Event::ItemMoved(moved) => change.tasks.get(moved.id).cloned(),
            _ => None,
        });
        let claimed = claimed.filter(|_| change.tasks.held_by(&doer.at).nth(1).is_none());
        Ok(claimed.map(|item| (item, change)))
    }

    /// How many entries the list has.
    pub(crate) fn list_head(&self) -> Result<u64, RuntimeError> {
        Ok(self.shared.journal.head(&tasks::stream(self.session))?)
    }

    /// Whether somebody may take tasks by itself. Whoever was stopped at work may once a person or the lead has added one since
    /// then, or given it one: what a colleague lists may be the last thing it did before it read of the stop.
    pub(crate) fn may_claim(&self, takes: Takes, name: &str) -> Result<bool, RuntimeError> {
        let Takes::Newer(listed) = takes else { return Ok(takes == Takes::Any) };
        let (lead, mut news) = (format!("agent:{}", self.lead_name()), lock(&self.news));
        let News { read, added, given } = &mut *news;
        *read = tasks::each_put(&self.shared.journal, self.session, *read, &lead, |put, at| match put {
            Put::Added => *added = at,
            Put::Given(name) => drop(given.insert(name, at)),
        })?;
        Ok(*added > listed || given.get(name).is_some_and(|given| *given > listed))
    }

    /// Whether there is a task on the list that somebody could begin with.
    pub(crate) fn has_free(&self, name: &str) -> Result<bool, RuntimeError> {
        let tasks = TaskLists::new(&self.shared.journal).tasks(self.session)?;
        Ok(tasks::free_for(&tasks, name).next().is_some())
    }

    /// Somebody who takes tasks by itself rests, with what a stop has left: who wakes it need not look that up.
    pub(crate) fn rests(&self, agent: Option<AgentId>, held: Option<&Held>) {
        lock(&self.takes).extend(agent.map(|agent| (agent, Takes::of(held))));
    }

    /// What somebody takes who rests, sits here or not: nobody but itself changes that.
    fn takes(&self, agent: AgentId) -> Result<Takes, RuntimeError> {
        if let Some(known) = lock(&self.takes).get(&agent) {
            return Ok(*known);
        }
        let takes = Takes::of(self.shared.fold_agent(agent)?.0.held());
        // It may have come to rest meanwhile, and knows better.
        Ok(*lock(&self.takes).entry(agent).or_insert(takes))
    }

    /// The list has changed: as many of those who take tasks by themselves and rest as there are tasks to take look at it. Whoever
    /// takes none is not one of them, stopped or with a task in hand: the bell is for somebody else.
    pub(crate) fn wake_claimers(self: &Arc<Self>) -> Result<(), RuntimeError> {
        let claimers = self.claimers()?;
        if claimers.is_empty() {
            return Ok(());
        }
        let tasks = TaskLists::new(&self.shared.journal).tasks(self.session)?;
        let (meant, anybodys): (Vec<&Item>, Vec<&Item>) =
            tasks::free(&tasks).partition(|item| !item.state.owner.is_empty());
        let mut left = anybodys.len();
        for (name, agent) in claimers {
            let address = session::agent_stream(agent);
            // Whoever still holds one takes no other.
            if self.is_working(&address) || tasks.held_by(&address).next().is_some() {
                continue;
            }
            let is_meant = meant.iter().any(|item| item.state.owner == name);
            if (!is_meant && left == 0) || !self.may_claim(self.takes(agent)?, &name)? {
                continue;
            }
            left -= usize::from(!is_meant);
            self.ring(&address);
        }
        Ok(())
    }

    /// People in other processes may have changed the list: whoever watches hears of it as if it had been here. What our own
    /// agents have written was told when they did.
    pub(crate) fn hear_of_list(self: &Arc<Self>) -> Result<(), RuntimeError> {
        let mut listed = lock(&self.listed);
        loop {
            let entries = self.shared.journal.read(&tasks::stream(self.session), *listed, LIST_READ)?;
            for entry in &entries {
                *listed = entry.stream_seq;
                let user = entry.actor.strip_prefix("user/");
                let (Some(user), Ok(event)) = (user, event_of(entry)) else { continue };
                let (from, at_ms) = (Arc::new(Origin::named(user)), entry.at_ms);
                let event = Arc::new(event);
                self.shared.herald.tell(Notice::Event { session: self.session, from, at_ms, event });
            }
            if entries.len() < LIST_READ {
                return Ok(());
            }
        }
    }

    /// What it takes to give back all that somebody holds, to be committed with whatever ends them; `None`: they hold
    /// nothing. `for_good`: nobody of their name comes again, so that what is meant for them is anybody's.
    pub(crate) fn releasing(&self, doer: &Doer, why: Why, for_good: bool) -> Result<Option<Change>, RuntimeError> {
        let gone = Input::Gone { why, for_good };
        let change = TaskLists::new(&self.shared.journal).change(self.session, doer, &gone)?;
        Ok(Some(change).filter(|change| !change.events.is_empty()))
    }

    /// The same in a commit of its own, told to whoever watches.
    pub(crate) async fn give_back(
        self: &Arc<Self>,
        doer: &Doer,
        why: Why,
        for_good: bool,
        from: Arc<Origin>,
    ) -> Result<(), RuntimeError> {
        if self.releasing(doer, why, for_good)?.is_none() {
            return Ok(());
        }
        let at_ms = now_ms();
        let mut commit = commit_at(at_ms);
        commit.fence = Some(self.fence.clone());
        commit.actor = format!("agent:{}", doer.name);
        let gone = Input::Gone { why, for_good };
        let word = self.shared.herald.word();
        let events = TaskLists::new(&self.shared.journal).commit(self.session, doer, &gone, commit).await?;
        let notice =
            |event| Notice::Event { session: self.session, from: Arc::clone(&from), at_ms, event: Arc::new(event) };
        word.tell(events.into_iter().map(notice).collect());
        self.wake_claimers()
    }

    /// Gives back what is held by those who are no longer at work: the process that was to do so has died before.
    pub(crate) async fn sweep_tasks(self: &Arc<Self>) -> Result<(), RuntimeError> {
        // What was written before this process came is known from the list itself.
        *lock(&self.listed) = self.shared.journal.head(&tasks::stream(self.session))?;
        let tasks = TaskLists::new(&self.shared.journal).tasks(self.session)?;
        let mut gone: Vec<Doer> = Vec::new();
        for item in tasks.items() {
            let Some(at) = item.state.holder.as_ref().filter(|at| !gone.iter().any(|doer| doer.at == **at)) else {
                continue;
            };
            if !self.may_hold(at)? {
                gone.push(Doer { at: at.clone(), name: item.state.owner.clone(), steers: false });
            }
        }
        for doer in gone {
            let agent = doer.at.strip_prefix("agent/").and_then(|id| id.parse().ok());
            let origin = agent.map(Origin::agent).unwrap_or_else(|| Origin::agent(self.lead));
            let from = Arc::new(Origin { name: doer.name.as_str().into(), ..origin });
            self.give_back(&doer, Why::Died, false, from).await?;
        }
        Ok(())
    }

    /// Whether somebody is still there to end what they hold: a person, the lead, or an agent at work.
    fn may_hold(&self, at: &str) -> Result<bool, RuntimeError> {
        let Some(agent) = at.strip_prefix("agent/") else { return Ok(true) };
        let is_lead = at == session::agent_stream(self.lead);
        let is_mate = self.teammates()?.iter().any(|(_, mate)| mate.to_string() == agent);
        Ok(is_lead || is_mate || self.shared.journal.get(rows::WORKING, agent)?.is_some())
    }

    /// The names of everybody whom a task can be meant for.
    pub(crate) fn names(&self) -> Vec<String> {
        let team = self.team();
        let mates = team.iter().flat_map(|team| team.members.iter().chain(&team.experts));
        let mut names: Vec<String> = mates.map(|mate| mate.definition.name.clone()).collect();
        let table = rows::agents_of(&self.session.to_string());
        // Whoever cannot be read is not guessed at; if it is the journal, the next commit says so.
        let agents = rows::rows::<rows::AgentRow>(&self.shared.journal, &table).unwrap_or_default();
        names.extend(agents.into_iter().map(|(_, row)| row.name));
        names.push(USER.to_owned());
        names.sort_unstable();
        names.dedup();
        names
    }
}
