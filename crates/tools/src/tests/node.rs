//! What the runners of the JavaScript world print: node itself (TAP and its own), jest, vitest, mocha, bun.
//!
//! Each has a summary that no other has, so all are looked for; names of failures come from the lines that mark them.

use super::tally::{Counts, number_before};

#[derive(Debug, Default)]
pub(super) struct Node {
    counts: Counts,
    /// What TAP lines say one by one, for producers without a summary.
    points: Counts,
    has_summary: bool,
}

impl Node {
    pub(super) fn line(&mut self, line: &str) {
        let inner = line.trim();
        if let Some(rest) = inner.strip_prefix("Tests:").filter(|rest| rest.contains(" total")) {
            self.summary(rest, "passed", "failed", &["skipped", "todo"]);
        } else if let Some(rest) = inner.strip_prefix("Tests ").filter(|rest| rest.ends_with(')')) {
            self.summary(rest, "passed", "failed", &["skipped", "todo"]);
        } else if let Some(rest) = line.strip_prefix("# ").or(line.strip_prefix("ℹ ")) {
            self.own(rest);
        } else if let Some(rest) = line.strip_prefix("ok ") {
            let is_skipped = rest.contains("# SKIP") || rest.contains("# TODO");
            self.points.add(u64::from(!is_skipped), 0, u64::from(is_skipped));
        } else if line.starts_with("not ok ") {
            self.points.add(0, 1, 0);
            self.marked(line);
        } else if !self.listed(inner) {
            self.marked(inner);
        }
    }

    /// `3 passing (10ms)` by mocha, `3 pass` by bun.
    fn listed(&mut self, line: &str) -> bool {
        let Some((number, what)) = line.split_once(' ') else { return false };
        let Ok(number) = number.parse::<u64>() else { return false };
        match what.split(" (").next() {
            Some("passing" | "pass") => self.counts.add(number, 0, 0),
            Some("failing" | "fail") => self.counts.add(0, number, 0),
            Some("pending" | "skip" | "todo") => self.counts.add(0, 0, number),
            _ => return false,
        }
        self.has_summary = true;
        true
    }

    /// `pass 3` by node.
    fn own(&mut self, rest: &str) {
        let Some((what, number)) = rest.split_once(' ') else { return };
        let Ok(number) = number.trim().parse::<u64>() else { return };
        match what {
            "pass" => self.counts.add(number, 0, 0),
            "fail" | "cancelled" => self.counts.add(0, number, 0),
            "skipped" | "todo" => self.counts.add(0, 0, number),
            _ => return,
        }
        self.has_summary = true;
    }

    fn summary(&mut self, rest: &str, passed: &str, failed: &str, skipped: &[&str]) {
        let count = |word: &str| number_before(rest, word).unwrap_or(0);
        let skipped = skipped.iter().map(|word| count(word)).fold(0, u64::saturating_add);
        self.counts.add(count(passed), count(failed), skipped);
        self.has_summary = true;
    }

    fn marked(&mut self, line: &str) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("not ok ") {
            self.counts.name(rest.split_once(" - ").map_or(rest, |(_, name)| name));
        } else if let Some(rest) = line.strip_prefix("✖ ").or(line.strip_prefix("(fail) ")) {
            if rest != "failing tests:" {
                self.counts
                    .name(rest.rsplit_once([' ']).filter(|(_, time)| is_time(time)).map_or(rest, |(name, _)| name));
            }
        } else if let Some(rest) = line.strip_prefix("● ").filter(|rest| *rest != "Console") {
            self.counts.name(rest);
        } else if let Some(rest) = line.strip_prefix("FAIL ").filter(|rest| rest.contains(" > ")) {
            self.counts.name(rest);
        } else if let Some((number, rest)) = line.split_once(") ").filter(|_| !self.has_summary) {
            // Mocha numbers failures as they come; after its summary the same numbers begin longer texts.
            if number.parse::<u32>().is_ok() {
                self.counts.name(rest);
            }
        }
    }

    pub(super) fn finish(mut self) -> Counts {
        if !self.has_summary {
            self.counts.add(self.points.passed, self.points.failed, self.points.skipped);
        }
        self.counts
    }
}

/// Whether this is a time as runners write it behind a name: `(1.67ms)`, `[0.12ms]`.
fn is_time(text: &str) -> bool {
    text.starts_with(['(', '[']) && text.ends_with(['s', ')', ']'])
}

#[cfg(test)]
mod tests {
    use crate::project::Kind;
    use crate::tests::{Counts, parse};

    #[test]
    fn every_runner_is_read() {
        let tap = "TAP version 13\n# Subtest: adds\nok 1 - adds\n  ---\n  duration_ms: 1.94\n  ...\n# Subtest: fails\nnot ok 2 - fails\n  ---\n  error: '1 == 2'\n  ...\n# Subtest: later\nok 3 - later # SKIP\n# Subtest: suite\n    # Subtest: inner ok\n    ok 1 - inner ok\n    # Subtest: inner bad\n    not ok 2 - inner bad\n    1..2\nnot ok 4 - suite\n1..4\n# tests 5\n# suites 1\n# pass 2\n# fail 2\n# cancelled 0\n# skipped 1\n# todo 0\n# duration_ms 229.8\n";
        let spec = "✔ adds (1.82174ms)\n✖ fails (1.677316ms)\n  AssertionError [ERR_ASSERTION]: 1 == 2\n\n﹣ later (0.201886ms) # SKIP\n▶ suite\n  ✔ inner ok (0.239822ms)\n  ✖ inner bad (0.169686ms)\n    Error: x\n\n✖ suite (0.890414ms)\nℹ tests 5\nℹ suites 1\nℹ pass 2\nℹ fail 2\nℹ cancelled 0\nℹ skipped 1\nℹ todo 0\nℹ duration_ms 246.4\n\n✖ failing tests:\n\ntest at a.test.js:2:25\n✖ fails (1.677316ms)\n";
        let bare = "1..3\nok 1 - adds\nnot ok 2 - fails\nok 3 - later # SKIP no\n";
        let jest = "PASS ./b.test.js\nFAIL ./a.test.js\n  math\n    ✓ adds (2 ms)\n    ✕ fails (1 ms)\n    ○ skipped later\n\n  ● math › fails\n\n    expect(received).toBe(expected)\n\nTest Suites: 1 failed, 1 passed, 2 total\nTests:       1 failed, 1 skipped, 2 passed, 4 total\nSnapshots:   0 total\nTime:        0.5 s\n";
        let vitest = " RUN  v2.1.8 /tmp/js\n\n ❯ a.test.ts (3 tests | 1 failed | 1 skipped) 5ms\n   × math > fails 3ms\n\n⎯⎯⎯ Failed Tests 1 ⎯⎯⎯\n\n FAIL  a.test.ts > math > fails\nAssertionError: expected 1 to be 2\n\n Test Files  1 failed | 1 passed (2)\n      Tests  1 failed | 2 passed | 1 skipped (4)\n   Start at  10:00:00\n   Duration  300ms\n";
        let mocha = "  math\n    ✔ adds\n    1) fails\n    - later\n\n\n  1 passing (5ms)\n  1 pending\n  1 failing\n\n  1) math\n       fails:\n     AssertionError: 1 == 2\n";
        let bun = "bun test v1.1.0\n\na.test.ts:\n(pass) adds [0.12ms]\n(fail) fails [0.30ms]\n\n 1 pass\n 1 fail\n 2 expect() calls\nRan 2 tests across 1 files. [10.00ms]\n";
        let table = [
            (tap, (2, 2, 1), vec!["fails", "inner bad", "suite"]),
            (spec, (2, 2, 1), vec!["fails", "inner bad", "suite"]),
            (bare, (1, 1, 1), vec!["fails"]),
            (jest, (2, 1, 1), vec!["math › fails"]),
            (vitest, (2, 1, 1), vec!["a.test.ts > math > fails"]),
            (mocha, (1, 1, 1), vec!["fails"]),
            (bun, (1, 1, 0), vec!["fails"]),
            ("> tiny@1.0.0 test\n> true\n\n", (0, 0, 0), vec![]),
        ];
        for (output, (passed, failed, skipped), names) in table {
            let failures = names.into_iter().map(str::to_owned).collect();
            assert_eq!(parse(Kind::Npm, output), Counts { passed, failed, skipped, failures }, "{output}");
        }
    }
}
