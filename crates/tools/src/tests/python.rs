//! What pytest and unittest print.
//!
//! Both end in a summary; names of failures come from the lines that both write for each. An expected failure is
//! counted as skipped: nobody learned anything from it.

use super::tally::{Counts, number_before};

#[derive(Debug, Default)]
pub(super) struct Python {
    counts: Counts,
    /// Tests that unittest ran, until it says how.
    ran: Option<u64>,
    /// Whether the line before was the rule that unittest draws above a failure.
    is_below_rule: bool,
}

impl Python {
    pub(super) fn line(&mut self, line: &str) {
        let is_rule = line.len() == 70 && line.bytes().all(|byte| byte == b'=');
        if let Some(rest) = line.strip_prefix("FAILED (").or(line.strip_prefix("OK (")) {
            self.unittest(rest.trim_end_matches(')'));
        } else if matches!(line, "OK" | "NO TESTS RAN") {
            self.unittest("");
        } else if let Some(name) = line.strip_prefix("FAIL: ").or(line.strip_prefix("ERROR: ")) {
            if self.is_below_rule {
                self.counts.name(name);
            }
        } else if let Some(rest) = line.strip_prefix("Ran ").filter(|rest| rest.contains(" in ")) {
            self.ran = number_before(rest, "tests").or_else(|| number_before(rest, "test"));
        } else if let Some(rest) = line.strip_prefix("FAILED ").or(line.strip_prefix("ERROR ")) {
            if rest.contains(".py") {
                self.counts.name(rest.split_once(" - ").map_or(rest, |(name, _)| name));
            }
        } else {
            self.pytest(line.trim_matches(['=', ' ']));
        }
        self.is_below_rule = is_rule;
    }

    /// `1 failed, 3 passed, 1 warning in 0.12s`
    fn pytest(&mut self, line: &str) {
        let Some((what, time)) = line.rsplit_once(" in ") else { return };
        let is_time = time.split('s').next().is_some_and(|time| time.parse::<f64>().is_ok());
        let known = |part: &str| {
            part.split_once(' ').is_some_and(|(number, word)| {
                let words = "passed failed error errors skipped xfailed xpassed deselected warning warnings rerun";
                number.parse::<u64>().is_ok() && words.split(' ').any(|known| known == word)
            })
        };
        if !is_time || !what.split(", ").all(known) {
            return;
        }
        let count = |word| number_before(what, word).unwrap_or(0);
        let failed = count("failed").saturating_add(count("error")).saturating_add(count("errors"));
        self.counts.add(
            count("passed").saturating_add(count("xpassed")),
            failed,
            count("skipped").saturating_add(count("xfailed")),
        );
    }

    /// `failures=1, errors=1, skipped=1`
    fn unittest(&mut self, rest: &str) {
        let Some(ran) = self.ran.take() else { return };
        let count = |word: &str| -> u64 {
            let parts = rest.split(", ").filter_map(|part| part.split_once('='));
            parts
                .filter(|(name, _)| *name == word)
                .filter_map(|(_, count)| count.parse::<u64>().ok())
                .next()
                .unwrap_or(0)
        };
        let failed = count("failures").saturating_add(count("errors")).saturating_add(count("unexpected successes"));
        let skipped = count("skipped").saturating_add(count("expected failures"));
        self.counts.add(ran.saturating_sub(failed).saturating_sub(skipped), failed, skipped);
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
    fn unittest_is_read() {
        let rule = "=".repeat(70);
        let output = format!(
            "test_bad (test_a.A.test_bad) ... FAIL\ntest_err (test_a.A.test_err) ... ERROR\ntest_ok (test_a.A.test_ok) ... ok\ntest_skip (test_a.A.test_skip) ... skipped 'later'\nERROR: printed by a test\n\n{rule}\nERROR: test_err (test_a.A.test_err)\n----------------------------------------------------------------------\nTraceback (most recent call last):\nValueError: x\n\n{rule}\nFAIL: test_bad (test_a.A.test_bad)\n----------------------------------------------------------------------\nAssertionError: 1 != 2\n\n----------------------------------------------------------------------\nRan 4 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1)\n"
        );
        let failures = vec!["test_err (test_a.A.test_err)".to_owned(), "test_bad (test_a.A.test_bad)".to_owned()];
        assert_eq!(parse(Kind::Unittest, &output), Counts { passed: 1, failed: 2, skipped: 1, failures });
        let table = [
            ("Ran 1 test in 0.000s\n\nOK\n", (1, 0, 0)),
            ("Ran 3 tests in 0.000s\n\nOK (skipped=1, expected failures=1)\n", (1, 0, 2)),
            ("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", (0, 0, 0)),
            ("OK\nFAILED (failures=9)\n", (0, 0, 0)),
        ];
        for (output, (passed, failed, skipped)) in table {
            assert_eq!(parse(Kind::Unittest, output), Counts { passed, failed, skipped, failures: vec![] }, "{output}");
        }
    }

    #[test]
    fn pytest_is_read() {
        let output = "============================= test session starts ==============================\nplatform linux -- Python 3.12.3, pytest-8.2.0, pluggy-1.5.0\nrootdir: /tmp/py\ncollected 6 items\n\ntests/test_a.py .F.sxE                                                   [100%]\n\n=================================== FAILURES ===================================\n___________________________________ test_bad ___________________________________\n\n    def test_bad():\n>       assert 1 == 2\nE       assert 1 == 2\n\ntests/test_a.py:5: AssertionError\n=========================== short test summary info ============================\nFAILED tests/test_a.py::test_bad - assert 1 == 2\nERROR tests/test_a.py::test_fixture - ValueError: x\n========= 1 failed, 2 passed, 1 skipped, 1 xfailed, 1 error in 0.12s ==========\n";
        let failures = vec!["tests/test_a.py::test_bad".to_owned(), "tests/test_a.py::test_fixture".to_owned()];
        assert_eq!(parse(Kind::Pytest, output), Counts { passed: 2, failed: 2, skipped: 2, failures });
        let table = [
            ("3 passed in 0.01s\n", (3, 0, 0)),
            ("===== 3 passed, 2 warnings in 61.20s (0:01:01) =====\n", (3, 0, 0)),
            ("============================ no tests ran in 0.01s =============================\n", (0, 0, 0)),
            ("12 bottles passed in 3s\n", (0, 0, 0)),
        ];
        for (output, (passed, failed, skipped)) in table {
            assert_eq!(parse(Kind::Pytest, output), Counts { passed, failed, skipped, failures: vec![] }, "{output}");
        }
    }
}
