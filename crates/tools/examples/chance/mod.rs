//! Repeatable chance for the harnesses, and how long they go on.

#![expect(clippy::print_stdout, reason = "the seed must be seen")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Numbers that follow from a seed.
#[derive(Debug)]
pub(crate) struct Chance {
    state: u64,
    until: Instant,
    count: u64,
}

impl Chance {
    /// `[SECONDS] [SEED]`: ten seconds and a new seed without them.
    pub(crate) fn from_args(name: &str) -> Self {
        let mut args = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
        let seconds = args.next().unwrap_or(10);
        let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.subsec_nanos().into());
        let seed = args.next().unwrap_or_else(fresh).max(1);
        println!("{name} {seconds} {seed}");
        Self { state: seed, until: Instant::now() + Duration::from_secs(seconds), count: 0 }
    }

    /// Whether there is time for another round.
    pub(crate) fn goes_on(&mut self) -> bool {
        self.count += 1;
        Instant::now() < self.until
    }

    /// Rounds so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 11).unwrap_or(0) % bound.max(1)
    }

    /// One of some things.
    pub(crate) fn pick<'a>(&mut self, things: &[&'a str]) -> &'a str {
        let at = self.below(things.len());
        things.get(at).copied().unwrap_or_default()
    }
}
