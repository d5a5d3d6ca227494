//! The shared task list, for the agents of this session.
//!
//! A claim lasts while its owner works. Tasks of an owner that no longer does are released: by the end of its turn, by
//! the failure of an agent that cannot run, or by the next process that opens the session.

use std::sync::Arc;

use max_team_core::event::Event;
use max_team_core::task_list::{Claimant, ListRequest, ListTask, ReleaseReason};

use super::ActiveSession;
use crate::error::RuntimeError;
use crate::handle::{Notice, Origin};
use crate::rows::event_of;
use crate::shared::{commit_at, lock, now_ms};
use crate::tasks::{self, LIST_READ, ListChange, TaskLists};
use crate::{rows, session};

/// The owner's name of a task that is meant for the user.
const USER: &str = "user";

impl ActiveSession {
    /// The first task that an idle agent can begin with, and the change that claims it, for the commit that begins its
    /// turn (`Extra::change`). A conflict on the list's stream means that another agent was faster: ask again. An
    /// agent that holds a task gets no other.
    pub(crate) fn claim_next(&self, doer: &Claimant) -> Result<Option<(ListTask, ListChange)>, RuntimeError> {
        let change = TaskLists::new(&self.shared.journal).change(self.session, doer, &ListRequest::Next)?;
        let claimed = change.events.iter().find_map(|event| match event {
            Event::ItemMoved(moved) => change.tasks.get(moved.id).cloned(),
            _ => None,
        });
        let claimed = claimed.filter(|_| change.tasks.held_by(&doer.at).nth(1).is_none());
        Ok(claimed.map(|item| (item, change)))
    }

    /// The list has changed: wakes as many idle claiming teammates as there are free tasks. Skips those that are
    /// stopped or hold a task, because they would take none.
    pub(crate) fn wake_claimers(self: &Arc<Self>) -> Result<(), RuntimeError> {
        let claimers = self.claimers()?;
        if claimers.is_empty() {
            return Ok(());
        }
        let tasks = TaskLists::new(&self.shared.journal).tasks(self.session)?;
        let (meant, anybodys): (Vec<&ListTask>, Vec<&ListTask>) =
            tasks::free(&tasks).partition(|item| !item.state.owner.is_empty());
        let mut left = anybodys.len();
        for (name, agent) in claimers {
            let address = session::agent_stream(agent);
            // An agent that holds a task takes no other.
            if self.is_working(&address) || tasks.held_by(&address).next().is_some() {
                continue;
            }
            let is_meant = meant.iter().any(|item| item.state.owner == name);
            if (!is_meant && left == 0) || self.shared.fold_agent(agent)?.0.held().is_some() {
                continue;
            }
            left -= usize::from(!is_meant);
            self.ring(&address);
        }
        Ok(())
    }

    /// Publishes changes that people in other processes made to the list. Changes of our own agents were published
    /// when they were made.
    pub(crate) fn hear_of_list(self: &Arc<Self>) -> Result<(), RuntimeError> {
        loop {
            let listed = lock(&self.crew).listed;
            let entries = self.shared.journal.read(&tasks::stream(self.session), listed, LIST_READ)?;
            for entry in &entries {
                lock(&self.crew).listed = entry.stream_seq;
                let user = entry.actor.strip_prefix("user/");
                let (Some(user), Ok(event)) = (user, event_of(entry)) else { continue };
                let (from, at_ms) = (Arc::new(Origin::named(user)), entry.at_ms);
                let event = Arc::new(event);
                self.shared.notices.tell(Notice::Event { session: self.session, from, at_ms, event });
            }
            if entries.len() < LIST_READ {
                return Ok(());
            }
        }
    }

    /// The change that releases all tasks of an agent, for the commit that ends it; `None`: it holds none. `for_good`:
    /// no agent of its name will come again, so tasks meant for it become free for all.
    pub(crate) fn releasing(
        &self,
        doer: &Claimant,
        why: ReleaseReason,
        for_good: bool,
    ) -> Result<Option<ListChange>, RuntimeError> {
        let gone = ListRequest::Gone { why, for_good };
        let change = TaskLists::new(&self.shared.journal).change(self.session, doer, &gone)?;
        Ok(Some(change).filter(|change| !change.events.is_empty()))
    }

    /// Like `releasing`, in a commit of its own, and published.
    pub(crate) async fn give_back(
        self: &Arc<Self>,
        doer: &Claimant,
        why: ReleaseReason,
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
        let gone = ListRequest::Gone { why, for_good };
        let word = self.shared.notices.ticket();
        let events = TaskLists::new(&self.shared.journal).commit(self.session, doer, &gone, commit).await?;
        let notice =
            |event| Notice::Event { session: self.session, from: Arc::clone(&from), at_ms, event: Arc::new(event) };
        word.tell(events.into_iter().map(notice).collect());
        self.wake_claimers()
    }

    /// Releases the tasks of agents that are no longer at work, where an earlier process died before it did.
    pub(crate) async fn sweep_tasks(self: &Arc<Self>) -> Result<(), RuntimeError> {
        // Earlier entries need no notices: frontends read the list itself.
        let head = self.shared.journal.head(&tasks::stream(self.session))?;
        lock(&self.crew).listed = head;
        let tasks = TaskLists::new(&self.shared.journal).tasks(self.session)?;
        let mut gone: Vec<Claimant> = Vec::new();
        for item in tasks.items() {
            let Some(at) = item.state.holder.as_ref().filter(|at| !gone.iter().any(|doer| doer.at == **at)) else {
                continue;
            };
            if !self.may_hold(at)? {
                gone.push(Claimant { at: at.clone(), name: item.state.owner.clone(), steers: false });
            }
        }
        for doer in gone {
            let agent = doer.at.strip_prefix("agent/").and_then(|id| id.parse().ok());
            let origin = agent.map(Origin::agent).unwrap_or_else(|| Origin::agent(self.lead));
            let from = Arc::new(Origin { name: doer.name.as_str().into(), ..origin });
            self.give_back(&doer, ReleaseReason::Died, false, from).await?;
        }
        Ok(())
    }

    /// Whether an owner may still hold tasks: a person, the lead, a teammate, or an agent at work.
    fn may_hold(&self, at: &str) -> Result<bool, RuntimeError> {
        let Some(agent) = at.strip_prefix("agent/") else { return Ok(true) };
        let is_lead = at == session::agent_stream(self.lead);
        let is_teammate = self.teammates()?.iter().any(|(_, teammate)| teammate.to_string() == agent);
        Ok(is_lead || is_teammate || self.shared.journal.get(rows::WORKING, agent)?.is_some())
    }

    /// All names that a task can be meant for.
    pub(crate) fn names(&self) -> Vec<String> {
        let team = self.team();
        let teammates = team.iter().flat_map(|team| team.members.iter().chain(&team.experts));
        let mut names: Vec<String> = teammates.map(|teammate| teammate.definition.name.clone()).collect();
        let table = rows::agents_of(&self.session.to_string());
        // If the rows cannot be read, their names are missing; the next commit reports the error.
        let agents = rows::rows::<rows::AgentRow>(&self.shared.journal, &table).unwrap_or_default();
        names.extend(agents.into_iter().map(|(_, row)| row.name));
        names.push(USER.to_owned());
        names.sort_unstable();
        names.dedup();
        names
    }
}
