//! Measures working time, for deadlines.
//!
//! A deadline is a time of day, and the clock runs on while a laptop sleeps or a process is suspended. So the owner of
//! a deadline reads the clock once per beat. If a reading is late by more than a beat, the process was suspended: the
//! time in between does not count, except for one beat, which may have been work.

use std::time::Duration;

/// How often a running clock is read.
pub(crate) const BEAT: Duration = Duration::from_secs(5);
const BEAT_MS: i64 = 5_000;

/// The time of the last reading.
#[derive(Debug)]
pub(crate) struct WorkClock {
    last_ms: i64,
}

impl WorkClock {
    pub(crate) fn new(now_ms: i64) -> Self {
        Self { last_ms: now_ms }
    }

    /// The time since the last reading in which the process was suspended, if it was.
    pub(crate) fn missed_ms(&mut self, now_ms: i64) -> Option<i64> {
        let since_ms = now_ms.saturating_sub(std::mem::replace(&mut self.last_ms, now_ms));
        (since_ms > 2 * BEAT_MS).then(|| since_ms - BEAT_MS)
    }
}

/// Waits until an agent has worked for this long. Time in which it waits for a person does not count, nor does a
/// suspended machine.
pub(crate) async fn worked(most: Duration, is_waiting: impl Fn() -> bool) {
    let mut left = most;
    while !left.is_zero() {
        tokio::time::sleep(left.min(BEAT)).await;
        left = after_beat(left, is_waiting());
    }
}

/// The time that is left after a beat; a beat counts its nominal length, however long it took.
fn after_beat(left: Duration, waited: bool) -> Duration {
    if waited { left } else { left.saturating_sub(BEAT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_work_is_told_from_slow_beats() {
        let table = [(0, None), (5_000, None), (10_000, None), (10_001, Some(5_001)), (3_600_000, Some(3_595_000))];
        for (later_ms, missed) in table {
            let mut beat = WorkClock::new(1_000);
            assert_eq!(beat.missed_ms(1_000 + later_ms), missed, "{later_ms}");
            assert_eq!(beat.missed_ms(1_000 + later_ms), None, "it is told once");
        }
        assert_eq!(WorkClock::new(1_000).missed_ms(0), None, "a clock that is set back");
    }

    #[test]
    fn waiting_for_a_person_is_not_work() {
        let secs = Duration::from_secs;
        for (left, waited, then) in [(12, true, 12), (12, false, 7), (2, true, 2), (2, false, 0)] {
            assert_eq!(after_beat(secs(left), waited), secs(then), "{left} {waited}");
        }
    }
}
