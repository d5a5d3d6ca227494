//! Time in which somebody could work.
//!
//! Deadlines are moments on the clock, and a clock runs on while a laptop sleeps or a process is stopped. So whoever
//! keeps a deadline looks at the clock once per beat. A look that comes more than a beat late says that nobody worked
//! in between: that much, less the one beat that may have been work, does not count.

use std::time::Duration;

/// How often a clock that runs is looked at.
pub(crate) const BEAT: Duration = Duration::from_secs(5);
const BEAT_MS: i64 = 5_000;

/// When the clock was last looked at.
#[derive(Debug)]
pub(crate) struct Beat {
    last_ms: i64,
}

impl Beat {
    pub(crate) fn new(now_ms: i64) -> Self {
        Self { last_ms: now_ms }
    }

    /// How much of the time since the last look nobody could work in.
    pub(crate) fn missed_ms(&mut self, now_ms: i64) -> Option<i64> {
        let since_ms = now_ms.saturating_sub(std::mem::replace(&mut self.last_ms, now_ms));
        (since_ms > 2 * BEAT_MS).then(|| since_ms - BEAT_MS)
    }
}

/// Waits until somebody has worked for so long. What they wait for a person does not count, nor does a sleep.
pub(crate) async fn worked(most: Duration, is_waiting: impl Fn() -> bool) {
    let mut left = most;
    while !left.is_zero() {
        tokio::time::sleep(left.min(BEAT)).await;
        left = after_beat(left, is_waiting());
    }
}

/// What is left after a beat, however long that beat was on the clock.
fn after_beat(left: Duration, waited: bool) -> Duration {
    if waited { left } else { left.saturating_sub(BEAT) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_worked_in_is_told_from_slow_beats() {
        let table = [(0, None), (5_000, None), (10_000, None), (10_001, Some(5_001)), (3_600_000, Some(3_595_000))];
        for (later_ms, missed) in table {
            let mut beat = Beat::new(1_000);
            assert_eq!(beat.missed_ms(1_000 + later_ms), missed, "{later_ms}");
            assert_eq!(beat.missed_ms(1_000 + later_ms), None, "it is told once");
        }
        assert_eq!(Beat::new(1_000).missed_ms(0), None, "a clock that is set back");
    }

    #[test]
    fn waiting_for_a_person_is_not_work() {
        let secs = Duration::from_secs;
        for (left, waited, then) in [(12, true, 12), (12, false, 7), (2, true, 2), (2, false, 0)] {
            assert_eq!(after_beat(secs(left), waited), secs(then), "{left} {waited}");
        }
    }
}
