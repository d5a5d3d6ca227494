//! Bounds the time without bytes, and the time without new content.
//!
//! An answer has some hundred pieces, and a timer per piece would cost more than reading it. So there is one timer per
//! answer: when it fires and something has come meanwhile, it is set again.

use std::pin::{Pin, pin};
use std::time::Duration;

use max_team_core::limits::PROGRESS_BYTES_MIN;
use max_team_core::recovery::Failure;
use tokio::time::{Instant, Sleep};

use crate::call::CallFault;

/// The timeouts of one answer.
#[derive(Debug)]
pub(crate) struct IdleTimeout<'a> {
    idle_max: Duration,
    progress_max: Duration,
    /// Since when the next piece is awaited.
    since: Instant,
    /// The last progress, once an answer is coming in.
    progress: Option<Progress>,
    alarm: Pin<&'a mut Sleep>,
}

/// When enough new content had come for the last time, and how much had come by then.
#[derive(Debug)]
struct Progress {
    at: Instant,
    bytes: usize,
}

impl<'a> IdleTimeout<'a> {
    /// The alarm first fires after `idle_max`; `progress_max` is at least as long.
    pub(crate) fn new(idle_max: Duration, progress_max: Duration, alarm: Pin<&'a mut Sleep>) -> Self {
        let progress_max = progress_max.max(idle_max);
        Self { idle_max, progress_max, since: Instant::now(), progress: None, alarm }
    }

    /// From now on there must be progress: the answer has begun.
    pub(crate) fn expect_progress(&mut self) {
        self.progress = Some(Progress { at: Instant::now(), bytes: 0 });
    }

    /// So many bytes of content have come in all.
    pub(crate) fn has_come(&mut self, bytes: usize) {
        if let Some(progress) = self.progress.as_mut().filter(|last| bytes >= last.bytes + PROGRESS_BYTES_MIN) {
            *progress = Progress { at: Instant::now(), bytes };
        }
    }

    /// Waits for what comes next.
    pub(crate) async fn with<T>(&mut self, next: impl Future<Output = T>) -> Result<T, CallFault> {
        self.since = Instant::now();
        let mut next = pin!(next);
        loop {
            tokio::select! {
                biased;
                come = &mut next => return Ok(come),
                () = &mut self.alarm => {}
            }
            let due = self.overdue()?;
            self.alarm.as_mut().reset(due);
        }
    }

    /// When the next bound ends; a fault, if one has ended.
    fn overdue(&self) -> Result<Instant, CallFault> {
        let now = Instant::now();
        let idle_due = self.since + self.idle_max;
        if idle_due <= now {
            let detail = format!("nothing came for {:?}; try again, or raise `llm.timeout`", self.idle_max);
            return Err(CallFault::new(Failure::Timeout, detail));
        }
        let progress_due = self.progress.as_ref().map(|progress| progress.at + self.progress_max);
        if progress_due.is_some_and(|due| due <= now) {
            let detail = format!(
                "no new content came for {:?}, though the connection is alive; try again, or raise `llm.progress_timeout`",
                self.progress_max
            );
            return Err(CallFault::new(Failure::Timeout, detail));
        }
        Ok(progress_due.map_or(idle_due, |due| due.min(idle_due)))
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
        let mut patience = IdleTimeout::new(bound, bound, alarm);
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

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_new_content_ends() {
        let (idle, progress) = (Duration::from_millis(100), Duration::from_millis(1_000));
        // Bytes of content every 90 ms, and when that ends.
        for (step, ended_after) in [(0, 1_000), (1, 1_000), (8, 10_000), (PROGRESS_BYTES_MIN, 10_000)] {
            let began = Instant::now();
            let alarm = pin!(tokio::time::sleep(idle));
            let mut patience = IdleTimeout::new(idle, progress, alarm);
            patience.expect_progress();
            let mut content = 0;
            let fault = loop {
                if let Err(fault) = patience.with(after(90)).await {
                    break Some(fault);
                }
                content += step;
                patience.has_come(content);
                if began.elapsed() >= Duration::from_secs(10) {
                    break None;
                }
            };
            let lasted = began.elapsed().as_millis();
            assert_eq!(fault.is_some(), ended_after == 1_000, "{step} bytes at a time: {lasted} ms");
            assert!(lasted >= ended_after && lasted < ended_after + 200, "{step} bytes at a time: {lasted} ms");
            if let Some(fault) = fault {
                assert!(
                    fault.failure == Failure::Timeout && fault.detail.contains("llm.progress_timeout"),
                    "{fault:?}"
                );
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silence_that_is_allowed_needs_no_progress() {
        let bound = Duration::from_millis(1_000);
        let alarm = pin!(tokio::time::sleep(bound));
        let mut patience = IdleTimeout::new(bound, Duration::from_millis(10), alarm);
        assert_eq!(patience.with(after(990)).await.unwrap(), 990);
        patience.expect_progress();
        assert_eq!(patience.with(after(990)).await.unwrap(), 990);
    }
}
