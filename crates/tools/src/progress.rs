//! The progress of a call, for frontends that watch it.
//!
//! A few lines now and then, for display only: they are not journalled, nothing waits for them, and a tool may report
//! as much as it likes, because most reports are dropped before their text is made.

use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use max_team_core::limits::{PROGRESS_BYTES_MAX, PROGRESS_LINES_MAX, PROGRESS_MS};
use max_team_core::output::Tail;

use crate::text::{clip, visible};

/// The least time between two reports.
const EVERY: Duration = Duration::from_millis(PROGRESS_MS);

/// Where a tool reports its progress. The default is nowhere.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Sink>>);

struct Sink {
    say: Box<dyn Fn(String) + Send + Sync>,
    next: Mutex<Instant>,
}

impl Progress {
    /// Reports go to `say`, which must not block. The first comes after a moment: short calls report nothing.
    pub fn new(say: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Sink { say: Box::new(say), next: Mutex::new(Instant::now() + EVERY) })))
    }

    /// Reports progress, unless a report was made just now.
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
        sink.tell(&words());
    }

    /// Runs a command and reports the last lines of its output while it runs. Output is passed to the function that
    /// `run` gets. A line is also reported if the command then prints nothing for a while.
    pub fn follow<T>(&self, run: impl FnOnce(&mut dyn FnMut(&[u8])) -> T) -> T {
        let Some(sink) = &self.0 else { return run(&mut |_| {}) };
        let printed: Mutex<(Tail, bool)> = Mutex::default();
        let lock = || printed.lock().unwrap_or_else(PoisonError::into_inner);
        std::thread::scope(|scope| {
            let (runs, over) = channel::<()>();
            scope.spawn(move || {
                while over.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    let mut printed = lock();
                    let lines = std::mem::take(&mut printed.1).then(|| printed.0.lines(PROGRESS_LINES_MAX));
                    drop(printed);
                    if let Some(lines) = lines {
                        sink.tell(&lines);
                    }
                }
            });
            let result = run(&mut |bytes| {
                let mut printed = lock();
                printed.0.push(bytes);
                printed.1 = true;
            });
            drop(runs);
            result
        })
    }
}

impl Sink {
    /// The last lines, each cut and made visible.
    fn tell(&self, words: &str) {
        let lines: Vec<String> =
            words.lines().rev().take(PROGRESS_LINES_MAX).map(|line| visible(&clip(line, PROGRESS_BYTES_MAX))).collect();
        (self.say)(lines.into_iter().rev().collect::<Vec<_>>().join("\n"));
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

    /// The command waits until its last line was reported: a line that nothing follows is reported, too.
    #[test]
    fn the_last_lines_of_a_command_are_reported_while_it_runs() {
        let (said, heard) = mpsc::channel();
        let progress = Progress::new(move |lines| said.send(lines).unwrap());
        let result = progress.follow(|follow| {
            (1..=9).for_each(|number| follow(format!("line {number}\n").as_bytes()));
            follow(b"10%\r\x1b[31m99%\x1b[0m");
            heard.recv().unwrap()
        });
        assert_eq!(result, "line 6\nline 7\nline 8\nline 9\n99%");
        assert!(heard.try_recv().is_err(), "nothing new, nothing said");
        let unheard = Progress::default().follow(|follow| {
            follow(b"nowhere");
            7
        });
        assert_eq!(unheard, 7);
    }
}
