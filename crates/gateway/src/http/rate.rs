//! How many requests a token may send.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use max_team_core::limits::{
    WEB_LOGIN_MS, WEB_LOGINS_BURST, WEB_REQUESTS_BURST, WEB_REQUESTS_PER_SECOND, WEB_TOKENS_MAX,
};

/// The allowance of one key: it is filled up steadily, and each request takes one piece.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    pieces: f64,
    at: Instant,
}

/// Allowances by key.
#[derive(Debug)]
pub(crate) struct RateLimit {
    burst: f64,
    /// The time in which one piece comes back.
    refill: Duration,
    keys: Mutex<HashMap<String, Allowance>>,
}

impl RateLimit {
    /// For requests, by token.
    pub(crate) fn of_requests() -> Self {
        Self::new(WEB_REQUESTS_BURST, Duration::from_secs(1) / WEB_REQUESTS_PER_SECOND)
    }

    /// For failed logins, from anywhere.
    pub(crate) fn of_logins() -> Self {
        Self::new(WEB_LOGINS_BURST, Duration::from_millis(WEB_LOGIN_MS))
    }

    fn new(burst: u32, refill: Duration) -> Self {
        Self { burst: f64::from(burst), refill, keys: Mutex::default() }
    }

    /// Takes one piece; the seconds to wait if there is none.
    pub(crate) fn take(&self, key: &str, now: Instant) -> Result<(), u64> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() > WEB_TOKENS_MAX {
            keys.retain(|_, known| self.filled(known, now) < self.burst);
        }
        let known = keys.entry(key.to_owned()).or_insert(Allowance { pieces: self.burst, at: now });
        *known = Allowance { pieces: self.filled(known, now), at: now };
        if known.pieces < 1.0 {
            let wait = self.refill.mul_f64(1.0 - known.pieces);
            return Err(wait.as_secs() + 1);
        }
        known.pieces -= 1.0;
        Ok(())
    }

    /// Whether a piece is there, without taking it.
    pub(crate) fn check(&self, key: &str, now: Instant) -> Result<(), u64> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        match keys.get(key) {
            Some(known) if self.filled(known, now) < 1.0 => Err(self.refill.as_secs() + 1),
            _ => Ok(()),
        }
    }

    fn filled(&self, known: &Allowance, now: Instant) -> f64 {
        let since = now.saturating_duration_since(known.at);
        (known.pieces + since.as_secs_f64() / self.refill.as_secs_f64()).min(self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_a_steady_rate() {
        let limit = RateLimit::new(2, Duration::from_secs(1));
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!([0, 0, 0].map(|ms| limit.take("a", at(ms))), [Ok(()), Ok(()), Err(2)]);
        assert_eq!(limit.take("b", at(0)), Ok(()), "another key has its own");
        assert!(limit.check("a", at(500)).is_err() && limit.check("a", at(1_100)).is_ok());
        assert_eq!(limit.take("a", at(1_100)), Ok(()));
        assert!(limit.take("a", at(1_200)).is_err());
    }
}
