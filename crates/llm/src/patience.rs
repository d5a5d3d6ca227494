//! How long nothing may come.
//!
//! An answer is some hundred pieces, and an alarm per piece would cost more than to read it. So there is one alarm per
//! answer: when it rings and something has come meanwhile, it is set anew.

use std::pin::{Pin, pin};
use std::time::Duration;

use max_team_core::recovery::Failure;
use tokio::time::{Instant, Sleep};

use crate::call::Fault;

/// The patience with one answer.
#[derive(Debug)]
pub(crate) struct Patience<'a> {
    bound: Duration,
    /// Since when something is waited for.
    since: Instant,
    alarm: Pin<&'a mut Sleep>,
}

impl<'a> Patience<'a> {
    /// With an alarm that rings once the bound is over.
    pub(crate) fn new(bound: Duration, alarm: Pin<&'a mut Sleep>) -> Self {
        Self { bound, since: Instant::now(), alarm }
    }

    /// Waits for what comes next.
    pub(crate) async fn with<T>(&mut self, next: impl Future<Output = T>) -> Result<T, Fault> {
        self.since = Instant::now();
        let mut next = pin!(next);
        loop {
            tokio::select! {
                biased;
                come = &mut next => return Ok(come),
                () = &mut self.alarm => {}
            }
            let due = self.since + self.bound;
            if due <= Instant::now() {
                let detail = format!("nothing came for {:?}; try again, or raise `llm.timeout`", self.bound);
                return Err(Fault::new(Failure::Timeout, detail));
            }
            self.alarm.as_mut().reset(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn after(ms: u64) -> u64 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        ms
    }

    #[tokio::test(start_paused = true)]
    async fn every_piece_has_the_whole_bound() {
        let began = Instant::now();
        let bound = Duration::from_millis(100);
        let alarm = pin!(tokio::time::sleep(bound));
        let mut patience = Patience::new(bound, alarm);
        for ms in [90, 90, 1, 99] {
            assert_eq!(patience.with(after(ms)).await.unwrap(), ms);
        }
        assert_eq!(began.elapsed(), Duration::from_millis(280));
        let fault = patience.with(after(101)).await.unwrap_err();
        assert_eq!((fault.failure, began.elapsed()), (Failure::Timeout, Duration::from_millis(380)));
        // What comes after an alarm has its own wait.
        assert_eq!(patience.with(std::future::ready(1)).await.unwrap(), 1);
        assert_eq!(patience.with(after(99)).await.unwrap(), 99);
    }
}
