//! Tasks that may run and wait for a free place, the longest chain behind them first.
//!
//! Tasks that own the same paths share one queue, of which only the first can be next: many tasks that wait for one
//! folder cost no more to skip than one task.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::Draft;

/// The longer the chain behind a task, the earlier it is; of equals the first written.
pub(super) type Rank = (Reverse<u32>, usize);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReadyQueue {
    /// The queue of each task; `None` for tasks that own no paths.
    queue_of: Vec<Option<usize>>,
    free: BTreeSet<Rank>,
    queues: BTreeMap<usize, BTreeSet<Rank>>,
    /// The first task of each queue.
    heads: BTreeSet<Rank>,
}

impl ReadyQueue {
    pub(super) fn new(draft: &Draft) -> Self {
        let mut known: HashMap<&[String], usize> = HashMap::new();
        let queue_of = draft.tasks.iter().map(|task| {
            let next = known.len();
            (!task.owned().is_empty()).then(|| *known.entry(task.owned()).or_insert(next))
        });
        Self { queue_of: queue_of.collect(), ..Self::default() }
    }

    pub(super) fn insert(&mut self, rank: Rank) {
        self.change(rank, |queue| queue.insert(rank));
    }

    pub(super) fn remove(&mut self, rank: Rank) {
        self.change(rank, |queue| queue.remove(&rank));
    }

    fn change(&mut self, rank: Rank, change: impl FnOnce(&mut BTreeSet<Rank>) -> bool) {
        let Some(queue) = self.queue_of.get(rank.1).copied().flatten() else {
            change(&mut self.free);
            return;
        };
        let ranks = self.queues.entry(queue).or_default();
        let before = ranks.first().copied();
        change(ranks);
        let after = ranks.first().copied();
        if after.is_none() {
            self.queues.remove(&queue);
        }
        if before != after {
            before.map(|head| self.heads.remove(&head));
            self.heads.extend(after);
        }
    }

    /// The tasks that can be next, in order. A task behind another with the same paths is not among them.
    pub(super) fn next(&self) -> impl Iterator<Item = usize> {
        let (mut free, mut heads) = (self.free.iter().peekable(), self.heads.iter().peekable());
        std::iter::from_fn(move || {
            let is_free = match (free.peek(), heads.peek()) {
                (Some(free), Some(head)) => free < head,
                (free, _) => free.is_some(),
            };
            if is_free { free.next() } else { heads.next() }.map(|(_, task)| *task)
        })
    }

    /// All tasks that may run.
    #[cfg(test)]
    pub(super) fn all(&self) -> BTreeSet<usize> {
        let heads: BTreeSet<Rank> = self.queues.values().filter_map(|queue| queue.first().copied()).collect();
        assert_eq!(heads, self.heads);
        self.queues.values().flatten().chain(&self.free).map(|(_, task)| *task).collect()
    }
}
