//! What `go test -v` prints.
//!
//! A test with subtests is not counted itself: its subtests are. A package that does not build fails by its name,
//! without a number, because none of its tests ran.

use super::tally::Counts;

#[derive(Debug, Default)]
pub(super) struct Go {
    counts: Counts,
    /// The results that led to the present one, outermost first.
    above: Vec<Seen>,
}

#[derive(Debug)]
struct Seen {
    name: String,
    how: How,
    is_counted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Passed,
    Failed,
    Skipped,
}

impl Go {
    pub(super) fn line(&mut self, line: &str) {
        let inner = line.trim_start();
        let found = [("--- PASS: ", How::Passed), ("--- FAIL: ", How::Failed), ("--- SKIP: ", How::Skipped)];
        let found = found.into_iter().find_map(|(sign, how)| Some((inner.strip_prefix(sign)?, how)));
        if let Some((rest, how)) = found {
            // The time follows in parentheses.
            let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
            self.result(name, how);
        } else if let Some(rest) = line.strip_prefix("FAIL\t")
            && (rest.contains("[build failed]") || rest.contains("[setup failed]"))
        {
            self.counts.name(&rest.replace('\t', " "));
        }
    }

    fn result(&mut self, name: &str, how: How) {
        self.above.retain(|seen| name.strip_prefix(&seen.name).is_some_and(|rest| rest.starts_with('/')));
        if let Some(parent) = self.above.last_mut().filter(|parent| parent.is_counted) {
            parent.is_counted = false;
            let (how, parent) = (parent.how, parent.name.clone());
            self.count(how, -1);
            self.counts.failures.retain(|failed| *failed != parent);
        }
        self.count(how, 1);
        if how == How::Failed {
            self.counts.name(name);
        }
        self.above.push(Seen { name: name.to_owned(), how, is_counted: true });
    }

    fn count(&mut self, how: How, by: i64) {
        let count = match how {
            How::Passed => &mut self.counts.passed,
            How::Failed => &mut self.counts.failed,
            How::Skipped => &mut self.counts.skipped,
        };
        *count = count.saturating_add_signed(by);
    }

    pub(super) fn finish(self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use crate::project::Kind;
    use crate::tests::{Counts, parse};

    #[test]
    fn leaves_are_counted() {
        let output = "=== RUN   TestAdd\n--- PASS: TestAdd (0.00s)\n=== RUN   TestTable\n=== RUN   TestTable/one\n=== RUN   TestTable/two\n=== RUN   TestTable/two/deep\n    a_test.go:12: got 3, want 4\n--- FAIL: TestTable (0.00s)\n    --- PASS: TestTable/one (0.00s)\n    --- FAIL: TestTable/two (0.00s)\n        --- FAIL: TestTable/two/deep (0.00s)\n=== RUN   TestLater\n    a_test.go:20: not yet\n--- SKIP: TestLater (0.00s)\nFAIL\nFAIL\texample.org/tiny\t0.002s\n?   \texample.org/tiny/none\t[no test files]\n# example.org/tiny/broken\nbroken/b.go:3:1: syntax error\nFAIL\texample.org/tiny/broken [build failed]\nok  \texample.org/tiny/other\t0.001s\nFAIL\n";
        let failures = vec!["TestTable/two/deep".to_owned(), "example.org/tiny/broken [build failed]".to_owned()];
        assert_eq!(parse(Kind::Go, output), Counts { passed: 2, failed: 1, skipped: 1, failures });
        assert_eq!(parse(Kind::Go, "?   \tx\t[no test files]\n"), Counts::default());
    }
}
