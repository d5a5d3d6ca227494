//! Lets one of several equal calls run.
//!
//! A call with a cacheable answer is claimed first; an equal call meanwhile waits until it is over, and is decided
//! again. A claim holds until the turn that answers has ended; that is in the journal, so that the claim can be
//! derived again after a crash. The answer itself is not kept here.
//!
//! A call never waits for itself, not even through others: an agent one call deeper has other tools, and with other
//! tools it is another call.

use std::sync::Arc;

use max_team_core::hash::Hash;
use max_team_core::id::AgentId;
use tokio_util::sync::CancellationToken;

use super::ActiveSession;
use crate::error::RuntimeError;
use crate::rows;
use crate::shared::lock;

/// A call that an agent works on.
#[derive(Debug, Default)]
pub(super) struct InflightCall {
    over: CancellationToken,
    /// Addresses of the waiting callers.
    waiting: Vec<String>,
}

/// The right to make a call; dropped unused, it goes to the next caller.
#[derive(Debug)]
pub(crate) struct Claim {
    active: Arc<ActiveSession>,
    call: Hash,
    has_begun: bool,
}

/// The outcome of a claim.
#[derive(Debug)]
pub(crate) enum Claimed {
    /// The call is ours to make.
    Ours(Claim),
    /// Another agent works on it; the token is cancelled when it no longer does.
    Theirs(CancellationToken),
}

impl Claim {
    /// An agent works on it now, and the end of its turn ends the claim.
    pub(crate) fn begun(mut self) {
        self.has_begun = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.has_begun {
            self.active.release(&self.call);
        }
    }
}

impl ActiveSession {
    /// Claims a call for the agent at an address.
    pub(crate) fn claim(self: &Arc<Self>, address: &str, call: Hash) -> Result<Claimed, RuntimeError> {
        let mut crew = lock(&self.crew);
        let is_known = crew.claims.contains_key(&call);
        // No agent of this process; but one of an earlier process may have an unfinished turn for it.
        let before = if is_known { None } else { self.at_work(&call)? };
        let held = crew.claims.entry(call).or_default();
        if !is_known && before.is_none() {
            return Ok(Claimed::Ours(Claim { active: Arc::clone(self), call, has_begun: false }));
        }
        held.waiting.push(address.to_owned());
        let over = held.over.clone();
        drop(crew);
        if let Some(Err(error)) = before.map(|agent| self.seat_agent(agent)) {
            self.release(&call);
            return Err(error);
        }
        Ok(Claimed::Theirs(over))
    }

    /// A call is over: the waiting callers decide again.
    pub(crate) fn release(self: &Arc<Self>, call: &Hash) {
        let Some(held) = lock(&self.crew).claims.remove(call) else { return };
        held.over.cancel();
        // They become busy at once, so that the session is not reported idle in between.
        held.waiting.iter().for_each(|address| self.ring(address));
    }

    /// The agent that was given a call and has not ended it.
    fn at_work(&self, call: &Hash) -> Result<Option<AgentId>, RuntimeError> {
        let journal = &self.shared.journal;
        let table = rows::asked_of(&self.session.to_string());
        let Some(agent) = rows::row::<AgentId>(journal, &table, &call.to_string())? else { return Ok(None) };
        Ok(journal.get(rows::WORKING, &agent.to_string())?.map(|_| agent))
    }
}
