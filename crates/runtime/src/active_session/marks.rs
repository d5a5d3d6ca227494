//! Coders whose changing tools wait until a snapshot of the working tree is committed.
//!
//! A snapshot takes several runs of git, so a plan takes it when the first such tool wants to run: a coder that changes
//! nothing waits for nothing.

use std::collections::HashMap;
use std::sync::Arc;

use max_team_core::id::AgentId;
use tokio::sync::{Notify, watch};

/// The agents without a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    pending: HashMap<AgentId, PendingSnapshot>,
}

#[derive(Debug)]
struct PendingSnapshot {
    /// Signals the plan that a tool waits.
    wanted: Arc<Notify>,
    /// Dropped once the tool may run.
    done: watch::Sender<()>,
}

impl Marks {
    /// These agents have no snapshot; `wanted` is notified when one of them needs it.
    pub(crate) fn begin(&mut self, agents: impl Iterator<Item = AgentId>, wanted: &Arc<Notify>) {
        for agent in agents {
            let fresh = || PendingSnapshot { wanted: Arc::clone(wanted), done: watch::Sender::new(()) };
            self.pending.entry(agent).or_insert_with(fresh);
        }
    }

    /// The snapshot is committed, or will not be.
    pub(crate) fn end(&mut self, agents: impl Iterator<Item = AgentId>) {
        agents.for_each(|agent| drop(self.pending.remove(&agent)));
    }

    /// Waits until an agent may change something.
    pub(crate) fn wait(&self, agent: Option<AgentId>) -> impl Future<Output = ()> + Send + use<> {
        let pending = agent.and_then(|agent| {
            self.pending.get(&agent).map(|pending| (Arc::clone(&pending.wanted), pending.done.subscribe()))
        });
        async move {
            if let Some((wanted, mut done)) = pending {
                wanted.notify_one();
                // The sender sends nothing: its drop ends the wait.
                while done.changed().await.is_ok() {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use uuid::Uuid;

    use super::*;

    #[test]
    fn only_who_is_looked_for_waits() {
        let (mut marks, agent) = (Marks::default(), |n| AgentId::new(Uuid::from_u128(n)));
        let wanted = Arc::new(Notify::new());
        marks.begin([agent(1), agent(2)].into_iter(), &wanted);
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = pin!(marks.wait(Some(agent(1))));
        let mut second = pin!(marks.wait(Some(agent(2))));
        assert!(pin!(marks.wait(Some(agent(3)))).poll(&mut cx).is_ready());
        assert!(pin!(marks.wait(None)).poll(&mut cx).is_ready());
        assert!(pin!(wanted.notified()).poll(&mut cx).is_pending(), "no tool waits yet");
        assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
        assert!(pin!(wanted.notified()).poll(&mut cx).is_ready());
        marks.end([agent(1)].into_iter());
        assert_eq!((first.poll(&mut cx), second.poll(&mut cx)), (Poll::Ready(()), Poll::Pending));
    }
}
