//! The effects that an agent has started: futures under way, calls that wait for other agents, worktrees in preparation.
//!
//! All of it lives in this process alone. What is pending follows from the log, so a new process starts it again.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use futures_util::stream::FuturesUnordered;
use max_team_core::message::Assignment;
use tokio_util::sync::CancellationToken;

use super::deadline::Deadline;
use super::flight::{Flight, Future};
use super::recruit::Copying;
use super::running_call::ParkedCalls;
use crate::shared::lock;

pub(super) struct Running {
    pub(super) flights: FuturesUnordered<Future>,
    /// Keys of started effects: `pending` may list them again, but they are not started twice.
    started: HashSet<Flight>,
    /// Cancels the effects of the turn that runs.
    pub(super) cancel: CancellationToken,
    /// When that turn began, as far as this process knows.
    pub(super) began: Instant,
    /// The task that it began with, until its plan is told.
    pub(super) begun: Option<Assignment>,
    /// The time limit of the turn.
    pub(super) deadline: Deadline,
    /// Calls on which another agent works. The token fires when the call has its answer.
    delegated: HashMap<String, CancellationToken>,
    /// Fires when the next of them is over.
    pub(super) freed: CancellationToken,
    /// Calls that wait for a worktree: one is made, or its agent has still to leave it.
    pub(super) preparing: HashSet<String>,
    /// Calls of the turn that run on while a person is asked.
    pub(super) parked: ParkedCalls,
    /// Worktrees for the teammates that a user's message asks for.
    pub(super) copying: Copying,
}

impl Running {
    pub(super) fn new() -> Self {
        Self {
            flights: FuturesUnordered::new(),
            started: HashSet::new(),
            cancel: CancellationToken::new(),
            began: Instant::now(),
            begun: None,
            deadline: Deadline::default(),
            delegated: HashMap::new(),
            freed: CancellationToken::new(),
            preparing: HashSet::new(),
            parked: ParkedCalls::default(),
            copying: Copying::default(),
        }
    }

    /// Marks an effect as started; `false` if it was before.
    pub(super) fn start(&mut self, flight: &Flight) -> bool {
        self.started.insert(flight.clone())
    }

    pub(super) fn has_started(&self, flight: &Flight) -> bool {
        self.started.contains(flight)
    }

    pub(super) fn land(&mut self, flight: &Flight) {
        self.started.remove(flight);
    }

    /// A new turn begins: its effects have a cancellation of their own.
    pub(super) fn begin_turn(&mut self) {
        (self.cancel, self.began) = (CancellationToken::new(), Instant::now());
    }

    /// The turn is over, and its effects with it.
    pub(super) fn end_turn(&mut self) {
        self.cancel.cancel();
        lock(&self.parked).clear();
        self.delegated.clear();
    }

    /// The loop ends, and all effects with it.
    pub(super) fn stop(&self) {
        self.cancel.cancel();
        self.copying.over.cancel();
    }

    /// Another agent works on a call; the token fires when the call has its answer.
    pub(super) fn delegate(&mut self, key: &str) -> CancellationToken {
        self.delegated.entry(key.to_owned()).or_default().clone()
    }

    /// A tool call has its result: calls that wait for a free place look again.
    pub(super) fn end_call(&mut self, key: &str) {
        self.land(&Flight::Tool(key.to_owned()));
        if let Some(answered) = self.delegated.remove(key) {
            answered.cancel();
        }
        std::mem::take(&mut self.freed).cancel();
    }

    /// Whether other calls take all places, so that this one waits.
    pub(super) fn is_full(&self, key: &str, places: usize) -> bool {
        let coming = self.preparing.iter().filter(|other| !self.delegated.contains_key(*other));
        let others = self.delegated.keys().chain(coming).filter(|other| *other != key).count();
        others >= places && !self.delegated.contains_key(key)
    }
}
