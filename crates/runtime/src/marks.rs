//! Coders whose tools that change files must wait until the snapshot of the working tree is committed.
//!
//! A snapshot takes several runs of git. It is taken during the coder's first model call, which takes longer, so only a
//! tool that changes something waits for it.

use std::collections::HashMap;
use std::sync::Mutex;

use max_team_core::id::AgentId;
use tokio::sync::watch;

use crate::shared::lock;

/// The agents whose snapshot is pending.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    pending: Mutex<HashMap<AgentId, watch::Sender<()>>>,
}

impl Marks {
    /// A snapshot is about to be taken for these agents.
    pub(crate) fn begin(&self, agents: impl Iterator<Item = AgentId>) {
        let mut pending = lock(&self.pending);
        agents.for_each(|agent| drop(pending.entry(agent).or_default().subscribe()));
    }

    /// The snapshot is committed, or will not be.
    pub(crate) fn end(&self, agents: impl Iterator<Item = AgentId>) {
        let mut pending = lock(&self.pending);
        agents.for_each(|agent| drop(pending.remove(&agent)));
    }

    /// Waits until an agent may change something.
    pub(crate) fn wait(&self, agent: Option<AgentId>) -> impl Future<Output = ()> + Send + use<> {
        let pending = agent.and_then(|agent| lock(&self.pending).get(&agent).map(watch::Sender::subscribe));
        async move {
            if let Some(mut pending) = pending {
                // The sender says nothing: it goes.
                while pending.changed().await.is_ok() {}
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
        let (marks, agent) = (Marks::default(), |n| AgentId::new(Uuid::from_u128(n)));
        marks.begin([agent(1), agent(2)].into_iter());
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = pin!(marks.wait(Some(agent(1))));
        let mut second = pin!(marks.wait(Some(agent(2))));
        assert!(pin!(marks.wait(Some(agent(3)))).poll(&mut cx).is_ready());
        assert!(pin!(marks.wait(None)).poll(&mut cx).is_ready());
        assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
        marks.end([agent(1)].into_iter());
        assert_eq!((first.poll(&mut cx), second.poll(&mut cx)), (Poll::Ready(()), Poll::Pending));
    }
}
