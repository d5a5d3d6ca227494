//! `constraints.timeout` of an agent that the user talks to: a lead, or one that was chosen with `--agent`.
//!
//! The callers of all other agents keep their time. Time in which the turn waits for a person, or for agents that it has
//! called, does not count.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use max_team_core::id::TurnId;

use super::Agent;
use crate::work_clock;

type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The time of one turn.
#[derive(Default)]
pub(super) struct Deadline {
    /// The turn that is timed.
    turn: Option<TurnId>,
    /// `None`: the turn has no limit, or has reached it.
    timer: Option<Timer>,
}

impl Deadline {
    /// Resolves once when the turn has worked for as long as it may.
    pub(super) async fn over(&mut self) {
        match &mut self.timer {
            Some(timer) => timer.await,
            None => std::future::pending().await,
        }
        self.timer = None;
    }
}

impl Agent {
    /// Starts the clock of a new turn, and drops the clock of a finished one.
    pub(super) fn keep_time(&mut self) {
        let turn = self.turn.current().filter(|_| self.turn.origin.lead && self.turn.is_busy());
        if self.running.deadline.turn == turn {
            return;
        }
        let limit = turn.and_then(|_| self.frame.settings().turn_limit_ms());
        let timer = limit.map(|ms| {
            let (active, address) = (Arc::clone(&self.active), self.turn.stream.clone());
            let timer =
                async move { work_clock::worked(Duration::from_millis(ms), || active.is_waiting(&address)).await };
            Box::pin(timer) as Timer
        });
        self.running.deadline = Deadline { turn, timer };
    }
}
