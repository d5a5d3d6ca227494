//! How far a call is, for whoever watches.
//!
//! A line now and then, for show only: it is not journalled, nobody waits for it, and a tool may say as much as it
//! likes, because most of it is dropped before it is put into words.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use max_team_core::limits::PROGRESS_BYTES_MAX;

use crate::text::{clip, visible};

/// The least time between two lines.
const EVERY: Duration = Duration::from_millis(200);

/// Where a tool says how far it is. The default is nowhere.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Sink>>);

struct Sink {
    say: Box<dyn Fn(String) + Send + Sync>,
    next: Mutex<Instant>,
}

impl Progress {
    /// Lines go to `say`, which must not wait. The first comes after a moment: short calls say nothing.
    pub fn new(say: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Sink { say: Box::new(say), next: Mutex::new(Instant::now() + EVERY) })))
    }

    /// Says how far it is, unless something was said just now.
    pub fn say(&self, words: impl FnOnce() -> String) {
        let Some(sink) = &self.0 else { return };
        let now = Instant::now();
        {
            let mut next = sink.next.lock().unwrap_or_else(PoisonError::into_inner);
            if now < *next {
                return;
            }
            *next = now + EVERY;
        }
        (sink.say)(visible(&clip(&words(), PROGRESS_BYTES_MAX)));
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn lines_are_few_short_and_visible() {
        let (said, heard) = mpsc::channel();
        let progress = Progress::new(move |line| said.send(line).unwrap());
        progress.say(|| panic!("too early to be put into words"));
        let started = Instant::now();
        while started.elapsed() < EVERY * 2 {
            progress.say(|| format!("\u{1b}[2J{}", "x".repeat(1_000)));
        }
        drop(progress);
        let lines: Vec<String> = heard.iter().collect();
        assert!((1..=3).contains(&lines.len()), "{}", lines.len());
        assert!(lines.iter().all(|line| line.starts_with("\\u{1b}[2Jx") && line.len() < PROGRESS_BYTES_MAX + 20));
    }
}
