//! Calls that are made once for everybody who makes them.
//!
//! Whoever makes a call whose answer may be kept claims it first; whoever makes the same one meanwhile waits until it is
//! over, and looks again. A claim holds until the turn that answers has ended; that is in the journal, so that after a
//! crash it is seen who was at it. Nothing here says what the answer was.
//!
//! Nobody waits for themselves, not even through others: whoever can call has other tools one call deeper, and with other
//! tools it is another call.

use std::sync::Arc;

use max_team_core::hash::Hash;
use max_team_core::id::AgentId;
use tokio_util::sync::CancellationToken;

use super::Floor;
use crate::error::RuntimeError;
use crate::rows;
use crate::shared::lock;

/// A call that somebody is at.
#[derive(Debug, Default)]
pub(super) struct Held {
    over: CancellationToken,
    /// Who waits for it.
    waiting: Vec<String>,
}

/// The right to make a call; if nobody begins with it, it is the next one's.
#[derive(Debug)]
pub(crate) struct Claim {
    floor: Arc<Floor>,
    call: Hash,
    has_begun: bool,
}

/// What became of asking for it.
#[derive(Debug)]
pub(crate) enum Claimed {
    /// The call is ours to make.
    Ours(Claim),
    /// Somebody is at it; this says when they no longer are.
    Theirs(CancellationToken),
}

impl Claim {
    /// Somebody is at it now, and the end of their turn ends the claim.
    pub(crate) fn begun(mut self) {
        self.has_begun = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.has_begun {
            self.floor.release(&self.call);
        }
    }
}

impl Floor {
    /// Claims a call for whoever is at an address.
    pub(crate) fn claim(self: &Arc<Self>, address: &str, call: Hash) -> Result<Claimed, RuntimeError> {
        let mut claims = lock(&self.claims);
        let is_known = claims.contains_key(&call);
        // Nobody of this process: but somebody may have been at it before, and then they still are.
        let before = if is_known { None } else { self.at_work(&call)? };
        let held = claims.entry(call).or_default();
        if !is_known && before.is_none() {
            return Ok(Claimed::Ours(Claim { floor: Arc::clone(self), call, has_begun: false }));
        }
        held.waiting.push(address.to_owned());
        let over = held.over.clone();
        drop(claims);
        if let Some(Err(error)) = before.map(|agent| self.seat_agent(agent)) {
            self.release(&call);
            return Err(error);
        }
        Ok(Claimed::Theirs(over))
    }

    /// A call is over: whoever waits looks again.
    pub(crate) fn release(self: &Arc<Self>, call: &Hash) {
        let Some(held) = lock(&self.claims).remove(call) else { return };
        held.over.cancel();
        // They have something to do again before anybody could think that nobody has.
        held.waiting.iter().for_each(|address| self.ring(address));
    }

    /// Who was given a call and has not ended it.
    fn at_work(&self, call: &Hash) -> Result<Option<AgentId>, RuntimeError> {
        let journal = &self.shared.journal;
        let table = rows::asked_of(&self.session.to_string());
        let Some(agent) = rows::row::<AgentId>(journal, &table, &call.to_string())? else { return Ok(None) };
        Ok(journal.get(rows::WORKING, &agent.to_string())?.map(|_| agent))
    }
}
