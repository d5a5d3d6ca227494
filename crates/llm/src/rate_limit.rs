//! No more requests to a provider than its row allows in any minute.
//!
//! A sliding window rather than a token bucket: a bucket lets a burst through on top of its refill, and a provider
//! that counts by the minute answers that with 429. Pure but for the lock; the router waits.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// The last minute's requests to one provider.
#[derive(Debug)]
pub(crate) struct RateLimit {
    per_minute: NonZeroU32,
    sent: Mutex<VecDeque<Instant>>,
}

impl RateLimit {
    pub(crate) fn new(per_minute: NonZeroU32) -> Self {
        Self { per_minute, sent: Mutex::default() }
    }

    /// Takes a place, or says how long to wait before asking again.
    pub(crate) fn take(&self, now: Instant) -> Result<(), Duration> {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        while sent.front().is_some_and(|first| now.saturating_duration_since(*first) >= MINUTE) {
            sent.pop_front();
        }
        match sent.front() {
            Some(first) if sent.len() as u64 >= u64::from(self.per_minute.get()) => {
                Err(MINUTE.saturating_sub(now.saturating_duration_since(*first)))
            }
            _ => {
                sent.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_holds_more_than_the_limit() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let pace = RateLimit::new(NonZeroU32::new(2).unwrap());
        let table = [
            (0, Ok(())),
            (10, Ok(())),
            (20, Err(40)),
            (59, Err(1)),
            (60, Ok(())),
            (61, Err(9)),
            (70, Ok(())),
            (71, Err(49)),
        ];
        for (second, want) in table {
            assert_eq!(pace.take(at(second)), want.map_err(Duration::from_secs), "second {second}");
        }
    }
}
