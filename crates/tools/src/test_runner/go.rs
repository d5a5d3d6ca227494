//! The events of `go test -json`, one JSON object per line.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::TestCounts;

/// Bytes of one line; the rest of a longer line is dropped, and the line is not an event.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Tests that are counted.
const TESTS_MAX: usize = 100_000;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct GoEvent {
    action: String,
    package: String,
    test: String,
    output: String,
}

/// Events that were read so far.
#[derive(Debug, Default)]
pub(super) struct GoEvents {
    line: Vec<u8>,
    ended: BTreeMap<(String, String), GoOutcome>,
    has_events: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GoOutcome {
    Passed,
    Failed,
    Skipped,
}

impl GoEvents {
    /// Takes output as it comes; `show` gets the text that the tests and the compiler printed.
    pub(super) fn push(&mut self, bytes: &[u8], show: &mut dyn FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len()).min(piece.len());
            self.line.extend_from_slice(piece.get(..room).unwrap_or_default());
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take(&line, show);
            }
        }
    }

    fn take(&mut self, line: &[u8], show: &mut dyn FnMut(&[u8])) {
        let Some(event) = serde_json::from_slice::<GoEvent>(line).ok().filter(|event| !event.action.is_empty()) else {
            return show(line);
        };
        self.has_events = true;
        show(event.output.as_bytes());
        let ending = match event.action.as_str() {
            "pass" => GoOutcome::Passed,
            "fail" => GoOutcome::Failed,
            "skip" => GoOutcome::Skipped,
            _ => return,
        };
        if self.ended.len() < TESTS_MAX {
            self.ended.insert((event.package, event.test), ending);
        }
    }

    /// The tests that ended, each once: a test with subtests counts by its subtests. A package that failed without a failed
    /// test did not build, and is named.
    pub(super) fn finish(self) -> Option<TestCounts> {
        let mut counts = TestCounts::default();
        let mut failed = BTreeSet::new();
        for ((package, test), ending) in self.ended.iter().filter(|((_, test), _)| !test.is_empty()) {
            if *ending == GoOutcome::Failed {
                failed.insert(package);
            }
            let below = (package.clone(), format!("{test}/"));
            let next = self.ended.range(below.clone()..).next();
            if next.is_some_and(|((of, other), _)| of == package && other.starts_with(&below.1)) {
                continue;
            }
            match ending {
                GoOutcome::Passed => counts.passed += 1,
                GoOutcome::Skipped => counts.skipped += 1,
                GoOutcome::Failed => {
                    counts.failed += 1;
                    counts.name(&format!("{package}.{test}"));
                }
            }
        }
        for ((package, test), ending) in &self.ended {
            if test.is_empty() && *ending == GoOutcome::Failed && !failed.contains(package) {
                counts.name(package);
            }
        }
        self.has_events.then_some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_and_output_is_shown() {
        let event = |action: &str, package: &str, test: &str| {
            serde_json::json!({ "Action": action, "Package": package, "Test": test }).to_string() + "\n"
        };
        let mut text = "# x/broken\nbroken.go:3: syntax error\n".to_owned();
        text +=
            "{\"Action\":\"output\",\"Package\":\"x/a\",\"Test\":\"TestAdd\",\"Output\":\"a_test.go:7: 1 != 2\\n\"}\n";
        for (action, package, test) in [
            ("run", "x/a", "TestAdd"),
            ("fail", "x/a", "TestAdd/two"),
            ("pass", "x/a", "TestAdd/one"),
            ("fail", "x/a", "TestAdd"),
            ("skip", "x/a", "TestLater"),
            ("pass", "x/a", "TestAddMore"),
            ("fail", "x/a", ""),
            ("fail", "x/broken", ""),
        ] {
            text += &event(action, package, test);
        }
        let (mut events, mut shown) = (GoEvents::default(), Vec::new());
        for piece in text.as_bytes().chunks(7) {
            events.push(piece, &mut |text| shown.extend_from_slice(text));
        }
        assert_eq!(String::from_utf8(shown).unwrap(), "# x/broken\nbroken.go:3: syntax error\na_test.go:7: 1 != 2\n");
        let failures = vec!["x/a.TestAdd/two".to_owned(), "x/broken".to_owned()];
        assert_eq!(events.finish(), Some(TestCounts { passed: 2, failed: 1, skipped: 1, failures }));
        assert_eq!(GoEvents::default().finish(), None);
    }
}
